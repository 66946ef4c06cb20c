"""The cost basis Psi: the features in which every cost under consideration is expressed.

    c_w(x, a) = sum_i w_i psi_i(x, a)

Costs: lower is better. Features that are rewards are given with `CostBasis.from_rewards`; their
sign is turned there, once, and turned back whenever numbers are shown to a person.
"""

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign, dense, freeze_rows, read_only, real_matrix
from journeyman.costs.cost_tables import KEYS, numbers_rows, read_cost_table
from journeyman.errors import InvalidCosts
from journeyman.tables import FRAME, frame_columns, frame_table, is_frame, plain_name
from journeyman.world import World

LARGEST = 1e100
"""Costs beyond this, or all below its inverse, are refused."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CostBasis:
    """Basis costs psi_1 .. psi_n as columns.

    Args:
        matrix: (pairs x costs) or (states x costs, the same for every action of a state), dense
            or sparse; one-dimensional for a single cost. Entries beyond [-1, 1] are legal. In a
            world that does not offer every action everywhere, also one row for every state and
            action number: those of actions that a state lacks are left out.
        names: one name per cost; by default the column names of a data frame, or numbers.
        world: whose costs these are. Needed for a data frame with columns state, or state and
            action, which say whose costs a row has, by numbers or names.

    >>> basis = CostBasis([[1.0, 0.0], [0.5, -1.0]], names=["effort", "delay"])
    >>> basis.lowest.tolist(), basis.highest.tolist(), basis.centre.tolist()
    ([0.5, -1.0], [1.0, 0.0], [0.75, -0.5])
    """

    matrix: Matrix
    names: tuple[str, ...]
    note: str
    """What was left out when the costs were read, in words."""
    rewards: bool
    """True when the features were given as rewards: `matrix` then holds minus the rewards."""

    def __init__(
        self, matrix: Any, names: Sequence[str] | None = None, world: World | None = None
    ) -> None:
        note = ""
        if world is not None and names is None and is_frame(matrix):
            found = read_cost_table(frame_table(matrix), world)
            matrix, names, note = found.values, found.names, found.note
        elif names is None and is_frame(matrix):
            names, columns = frame_columns(matrix)
            _refuse_keys(names)
            matrix = np.column_stack([_numbers(*one) for one in zip(names, columns, strict=True)])
        elif isinstance(matrix, str | os.PathLike):
            raise InvalidCosts(
                f"cost basis is the name {os.fspath(matrix)!r}",
                "Read a file with jm.read_costs(path, world)",
            )
        checked = real_matrix("cost basis", matrix, InvalidCosts)
        if 0 in checked.shape:
            raise InvalidCosts(
                f"cost basis is empty (shape {checked.shape})", "Give at least one cost"
            )
        named = _names(names, checked.shape[1])
        assign(self, matrix=checked, names=named, rewards=False, note=note)
        _refuse_extreme(self.norms, self.names)
        if world is not None:
            self.on(world)

    @classmethod
    def from_rewards(
        cls, matrix: Any, names: Sequence[str] | None = None, world: World | None = None
    ) -> Self:
        """A basis from reward features (higher is better): the costs are their negatives."""
        basis = cls(matrix, names, world)
        basis = basis._with_matrix(-basis.matrix)
        assign(basis, rewards=True)
        return basis

    def noted(self, note: str) -> Self:
        """The same basis, with what was left out when it was read."""
        twin = copy(self)
        assign(twin, note=note)
        return twin

    @property
    def num_costs(self) -> int:
        return int(self.matrix.shape[1])

    @cached_property
    def lowest(self) -> FloatArray:
        """The least entry of each cost."""
        return read_only(dense(self.matrix.min(axis=0)).astype(float).ravel())

    @cached_property
    def highest(self) -> FloatArray:
        """The greatest entry of each cost."""
        return read_only(dense(self.matrix.max(axis=0)).astype(float).ravel())

    @property
    def norms(self) -> FloatArray:
        """max |psi_i| of each cost."""
        return np.maximum(np.abs(self.lowest), np.abs(self.highest))

    @property
    def centre(self) -> FloatArray:
        """The middle of each cost's range."""
        return np.asarray((self.lowest + self.highest) / 2)

    def centred(self) -> FloatArray:
        """Psi - 1 centre', dense: the basis with every cost moved to the middle of its range."""
        return np.asarray(dense(self.matrix) - self.centre)

    def on(self, world: World) -> Matrix:
        """The basis with one row per pair of `world`."""
        made = world.reduction
        if made is not None and made.is_base_shaped(self.matrix.shape):
            rows = made.base.pairs.per_pair("cost basis", self.matrix, InvalidCosts)
            return cast(Matrix, made.lifted(rows, world.pairs))
        return world.pairs.per_pair("cost basis", self.matrix, InvalidCosts)

    def fitted(self, world: World) -> "CostBasis":
        """The same basis without rows of pairs that `world` does not offer, if it has such rows; in
        a world that was made of another, as costs of that one."""
        if world.reduction is not None:
            return self._reduced(world)
        rows, pairs = self.matrix.shape[0], world.pairs
        if pairs.is_complete or rows in (len(pairs), world.num_states):
            return self
        return self._with_matrix(self.on(world))

    def _reduced(self, world: World) -> "CostBasis":
        assert world.reduction is not None
        rows = self.on(world)
        if abs(rows[world.pairs.offsets[world.reduction.end] :]).max() > 0:
            raise InvalidCosts(
                "the basis has costs at the end of an episode, behind its last step",
                "Give zeros there, or the costs of the world without the horizon",
            )
        return self if rows is self.matrix else self._with_matrix(rows)

    def _with_matrix(self, matrix: Matrix) -> Self:
        twin = copy(self)
        for kept in ("lowest", "highest"):
            vars(twin).pop(kept, None)
        assign(twin, matrix=freeze_rows(matrix) if sparse.issparse(matrix) else read_only(matrix))
        return twin

    def as_given(self, values: FloatArray) -> FloatArray:
        """Expectations of the costs in the sign the features were given in."""
        return -values if self.rewards else values

    def __repr__(self) -> str:
        kind = "rewards" if self.rewards else "costs"
        shown = [*self.names[:4], "…"] if self.num_costs > 4 else self.names
        return f"CostBasis({self.num_costs} {kind}: {', '.join(shown)})"


def _numbers(name: str, column: list[Any]) -> FloatArray:
    """A column of a data frame."""
    try:
        return np.array(column, dtype=float)
    except (TypeError, ValueError):
        row = next(k for k, value in enumerate(column) if not isinstance(value, int | float))
        raise InvalidCosts(
            f"{FRAME}, row {row}: {name} is {column[row]!r}, expected a number", "Give numbers"
        ) from None


def _refuse_keys(columns: list[str]) -> None:
    for place, name in enumerate(columns):
        if numbers_rows(name, first=place == 0) or plain_name(name) in KEYS:
            raise InvalidCosts(
                f"the column {name!r} of the data frame tells which row is whose and is no cost",
                "Give the world too, jm.CostBasis(frame, world=world); if it is a cost after all, "
                "give names=",
            )


def _refuse_extreme(sizes: FloatArray, names: tuple[str, ...]) -> None:
    """Squares of such costs would vanish or overflow, and bounds with them."""
    extreme = (sizes > LARGEST) | ((sizes > 0) & (sizes < 1 / LARGEST))
    if extreme.any():
        which = int(np.argmax(extreme))
        raise InvalidCosts(
            f"{names[which]!r} has costs of size {sizes[which]:.3g}",
            f"Give costs in units in which they lie between {1 / LARGEST:g} and {LARGEST:g}",
        )


def _names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"cost {i}" for i in range(count))
    given = tuple(str(name) for name in names)
    if len(given) != count:
        raise InvalidCosts(f"{len(given)} names for {count} costs", "Name each cost once")
    if len(set(given)) != count:
        twice = next(name for name in given if given.count(name) > 1)
        raise InvalidCosts(f"two costs are named {twice!r}", "Give each cost its own name")
    return given
