"""Features Phi: a few measures over pairs whose combinations are searched instead of all measures.

    u_theta = base + Phi theta

where the columns of Phi are measures over the pairs of a world and `base` (often absent) is a fixed
measure. `Features` are a matrix, for worlds of arrays; `DrawnFeatures` are callables, for worlds
too large to enumerate (`needs` is the level of world that either is for). The paper's Assumption 2
(positive entries, column mass 1/(1 - discount)) is reported by `Features.assumption_2`, not
required: no inequality needs it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    SparseMatrix,
    assign,
    dense,
    freeze_rows,
    read_only,
    real_array,
    real_matrix,
)
from journeyman.costs.functions import CostFunctions
from journeyman.errors import InvalidCosts
from journeyman.policy import Policy, occupancy
from journeyman.world import World
from journeyman.world.large_world import LargeWorld, effective_horizon_of, sampled_step
from journeyman.world.levels import Level

BLOCK = 1 << 16
"""Pairs evaluated at a time when features are given as a callable."""
SPARSE_BELOW = 0.25
"""Share of non-zeros up to which occupancies are stored sparsely."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Features:
    """Columns of measures over pairs, dense or sparse, with an optional base measure.

    >>> features = Features([[1.0, 0.0], [0.0, 2.0]])
    >>> features.num_features, features.measure([1.0, 0.5]).tolist()
    (2, [1.0, 1.0])
    """

    needs: ClassVar[Level] = Level.EXPLICIT
    """The level of the worlds that these features are for."""
    matrix: Matrix
    base: FloatArray | None

    def __init__(self, matrix: Any, base: ArrayLike | None = None) -> None:
        checked = real_matrix("features", matrix, InvalidCosts)
        if 0 in checked.shape:
            raise InvalidCosts(f"features is empty (shape {checked.shape})", "Give columns")
        fixed = None
        if base is not None:
            fixed = real_array(
                "base measure", base, ndim=1, size=checked.shape[0], refusal=InvalidCosts
            )
        assign(self, matrix=checked, base=fixed)

    @classmethod
    def from_callable(
        cls, world: World, rows: Callable[[IntArray, IntArray], Any], base: ArrayLike | None = None
    ) -> Self:
        """From `rows(states, actions)`, which returns one row of features per pair, vectorised."""
        states, actions = world.pairs.states, world.pairs.actions
        cuts = range(0, world.num_pairs, BLOCK)
        parts = [rows(states[cut : cut + BLOCK], actions[cut : cut + BLOCK]) for cut in cuts]
        stacked = (
            sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)
        )
        return cls(stacked, base)

    @property
    def num_features(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def num_pairs(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self.matrix))

    @property
    def masses(self) -> FloatArray:
        """The 1-norm of every column."""
        return np.asarray(abs(self.matrix).sum(axis=0)).ravel()

    @property
    def is_nonnegative(self) -> bool:
        """Whether no entry (of base or columns) is negative."""
        based = self.base is None or bool((self.base >= 0).all())
        return based and bool(self.matrix.min() >= 0)

    def measure(self, coefficients: ArrayLike) -> FloatArray:
        """u_theta = base + Phi theta."""
        combined = np.asarray(self.matrix @ np.asarray(coefficients, dtype=float))
        return combined if self.base is None else combined + self.base

    def normalised(self, world: World) -> "Features":
        """The same columns scaled to mass 1/(1 - discount); columns of zeros are dropped."""
        masses = self.masses
        kept = masses > 0
        scale = world.effective_horizon / masses[kept]
        columns = self.matrix[:, kept]
        if sparse.issparse(columns):
            return Features(columns @ sparse.diags_array(scale), self.base)
        return Features(columns * scale, self.base)

    def mixture_radius(self, world: World) -> float:
        """A ball of coefficients that holds every mixture of the columns: the mass 1/(1 - discount)
        over the smallest column mass, so 1 for normalised columns."""
        masses = self.on(world).masses
        if not masses.any():
            raise InvalidCosts("every feature is zero", "Give columns with mass")
        return world.effective_horizon / float(masses[masses > 0].min())

    def with_base(self, base: ArrayLike) -> "Features":
        """The same columns around a base measure, such as the occupancy of a known policy."""
        return Features(self.matrix, base)

    def on(self, world: World) -> Self:
        """The features, checked to have one row per pair of `world`."""
        if self.num_pairs != world.num_pairs:
            raise InvalidCosts(
                f"the features have {self.num_pairs} rows, the world {world.num_pairs} pairs",
                "Give one row per state-action pair, state-major",
            )
        return self

    def assumption_2(self, world: World) -> str:
        """Which parts of the paper's Assumption 2 hold, in words."""
        horizon = world.effective_horizon
        smallest, masses = float(self.matrix.min()), self.masses
        positive = "all entries are positive" if smallest > 0 else f"least entry {smallest:.3g}"
        exact = bool(np.isclose(masses.max(), horizon))
        norm = f"|Phi|_1 = {masses.max():.6g}" + ("" if exact else f", not {horizon:.6g}")
        outcome = "holds" if smallest > 0 and exact else "does not hold (nothing here needs it)"
        return f"Assumption 2 {outcome}: {positive}; {norm}"

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        based = "" if self.base is None else ", with a base measure"
        return f"Features({self.num_features} {kind} columns over {self.num_pairs} pairs{based})"


def concatenate(parts: Sequence[Features]) -> Features:
    """All columns of several feature sets; at most one of them may have a base measure."""
    if not parts:
        raise InvalidCosts("there is nothing to concatenate", "Give at least one feature set")
    bases = [part.base for part in parts if part.base is not None]
    if len(bases) > 1:
        raise InvalidCosts("two feature sets have a base measure", "Keep one of them")
    columns = [part.matrix for part in parts]
    joined = (
        freeze_rows(sparse.hstack(columns, format="csr"))
        if all(part.is_sparse for part in parts)
        else read_only(np.hstack([dense(column) for column in columns]))
    )
    return Features(joined, bases[0] if bases else None)


class FlowRows(NamedTuple):
    """Rows of D = (B - discount P)' Phi with the probabilities q2 of their states."""

    rows: SparseMatrix
    law: FloatArray


class DrawnFeatures(ABC):
    """Columns over the pairs of a world too large to enumerate: what callables can give of Phi.

        q1(s) = sum_j phi_j(s) / (d h)                                    pairs
        q2(y) = sum_j ((B + discount P)' phi_j)(y) / ((1 + discount) d h)   states

    where every column phi_j is a nonnegative measure of mass h = 1/(1 - discount) and d is their
    number. Both laws can be drawn from and evaluated where they were drawn, and the row norms over
    them are at most C_1 = d h and C_2 = (1 + discount) d h: nothing grows with the number of
    states. A flow row costs the rows of its state's own pairs and of the pairs that lead there.
    """

    needs: ClassVar[Level] = Level.STEPPED
    world: LargeWorld
    num_features: int

    @abstractmethod
    def rows(self, states: IntArray, actions: IntArray) -> SparseMatrix:
        """Rows of Phi at given pairs, as CSR."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
        """Pairs from q1: a column, each as likely, and a pair from the column."""

    @property
    def pair_ratio(self) -> float:
        """No row of Phi is longer than this times its q1."""
        return self.num_features * effective_horizon_of(self.world)

    @property
    def flow_ratio(self) -> float:
        """No row of D is longer than this times its q2."""
        return (1 + self.world.discount) * self.pair_ratio

    def pair_law(self, rows: SparseMatrix) -> FloatArray:
        """q1 at the pairs whose rows are given."""
        return np.asarray(rows.sum(axis=1)).ravel() / self.pair_ratio

    def exact_matching(self, costs: CostFunctions) -> FloatArray:
        """<phi_j, psi_i> (costs x features) where it is known without sampling, NaN elsewhere."""
        return np.full((costs.num_costs, self.num_features), np.nan)

    def require_tables(  # noqa: B027
        self, costs: CostFunctions, states: IntArray, values: FloatArray
    ) -> None:
        """Refuse what `exact_matching` rests on where it contradicts `values`, the costs there.

        Features with an `exact_matching` of their own check it here.
        """

    def shares(self, states: IntArray) -> SparseMatrix:
        """What each column has of the mass of a state: functions of states that sum up to one."""
        actions = self.world.num_actions
        rows = self.rows(*every_action(states, actions))
        heads = np.arange(states.size + 1) * actions
        owner = sparse.csr_array((np.ones(rows.shape[0]), np.arange(rows.shape[0]), heads))
        mass = sparse.csr_array(owner @ rows)
        total = np.asarray(mass.sum(axis=1)).ravel()
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        return sparse.csr_array(sparse.diags_array(inverse) @ mass)

    def draw_flow(self, rng: np.random.Generator, count: int) -> IntArray:
        """States from q2: of a pair from q1 its own state, or the next one."""
        states, actions = self.draw(rng, count)
        moves = rng.random(count) >= 1 / (1 + self.world.discount)
        following = sampled_step(self.world, rng, states, actions)
        return np.where(moves, following, states)

    def flow(self, states: IntArray) -> FlowRows:
        """Rows of D at given states."""
        world, count = self.world, states.size
        own = self.rows(*every_action(states, world.num_actions))
        entering = world.predecessors(states)
        before = self.rows(entering.states, entering.actions)
        here = sparse.csr_array(
            (np.ones(own.shape[0]), np.arange(own.shape[0]),
             np.arange(count + 1) * world.num_actions),
            shape=(count, own.shape[0]),
        )  # fmt: skip
        from_before = sparse.csr_array(
            (world.discount * entering.probabilities, np.arange(before.shape[0]), entering.offsets),
            shape=(count, before.shape[0]),
        )
        mass = here @ own.sum(axis=1) + from_before @ before.sum(axis=1)
        return FlowRows(
            sparse.csr_array(here @ own - from_before @ before), np.asarray(mass) / self.flow_ratio
        )


def every_action(states: IntArray, num_actions: int) -> tuple[IntArray, IntArray]:
    """All pairs of given states, state by state."""
    return np.repeat(states, num_actions), np.tile(np.arange(num_actions), states.size)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class JoinedFeatures(DrawnFeatures):
    """The columns of all blocks, in their order; in this order."""

    world: LargeWorld
    blocks: tuple[DrawnFeatures, ...]
    num_features: int

    def __init__(self, *blocks: DrawnFeatures) -> None:
        if not blocks:
            raise InvalidCosts("there is nothing to join", "Give at least one feature set")
        first = blocks[0].world
        for block in blocks[1:]:
            if block.world is not first:
                raise InvalidCosts(
                    "the feature sets belong to different worlds", "Make all of them for one world"
                )
        count = sum(block.num_features for block in blocks)
        assign(self, world=first, blocks=blocks, num_features=count)

    @property
    def _shares(self) -> FloatArray:
        """The share of each block in the mixture of all columns."""
        return np.array([block.num_features for block in self.blocks]) / self.num_features

    def rows(self, states: IntArray, actions: IntArray) -> SparseMatrix:
        parts = [block.rows(states, actions) for block in self.blocks]
        return sparse.hstack(parts, format="csr")

    def draw(self, rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
        owners = rng.choice(len(self.blocks), size=count, p=self._shares)
        states, actions = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        for k, block in enumerate(self.blocks):
            own = owners == k
            states[own], actions[own] = block.draw(rng, int(own.sum()))
        return states, actions

    def flow(self, states: IntArray) -> FlowRows:
        parts = [block.flow(states) for block in self.blocks]
        law = sum(
            (share * part.law for share, part in zip(self._shares, parts, strict=True)),
            np.zeros(states.size),
        )
        return FlowRows(sparse.hstack([part.rows for part in parts], format="csr"), law)

    def exact_matching(self, costs: CostFunctions) -> FloatArray:
        return np.hstack([block.exact_matching(costs) for block in self.blocks])

    def require_tables(self, costs: CostFunctions, states: IntArray, values: FloatArray) -> None:
        for block in self.blocks:
            block.require_tables(costs, states, values)

    def __repr__(self) -> str:
        return f"JoinedFeatures({', '.join(repr(block) for block in self.blocks)})"


def occupancies(world: World, policies: Sequence[Policy]) -> Features:
    """Occupancy measures of known policies, phi_k = mu^{pi_k}, each of mass 1/(1 - discount).

    For theta in the simplex u_theta is itself an occupancy measure, so V1 = V2 = 0 and the policy
    of u_theta has exactly this occupancy. Only mixtures of the given policies are in reach: use
    them beside other features (`concatenate`), or where start states are matched by nothing smooth.

    >>> world = World([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    >>> stay = Policy([1.0, 0.0, 1.0], [0, 2, 3])
    >>> occupancies(world, [stay, Policy.uniform(world)]).masses.round(12).tolist()
    [2.0, 2.0]
    """
    if not policies:
        raise InvalidCosts("there are no policies", "Give at least one")
    columns = np.column_stack([occupancy(world, policy).measure for policy in policies])
    if np.count_nonzero(columns) <= SPARSE_BELOW * columns.size:
        return Features(sparse.csr_array(columns)).normalised(world)
    return Features(columns).normalised(world)
