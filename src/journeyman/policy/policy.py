"""Stationary policies: for each state a law over its actions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Seed,
    first_index,
    generator,
    integer_array,
    read_only,
    real_array,
    require_in_range,
)
from journeyman.errors import InvalidPolicy
from journeyman.frozen import assign
from journeyman.policy.prediction import Predicting
from journeyman.storage import PathLike, load_arrays, save_arrays, take
from journeyman.world import Pairs, World
from journeyman.world.laws import mended

SCHEMA_VERSION = 1
SUM_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Policy(Predicting):
    """A law over actions in every state.

    Args:
        probabilities: (states x actions) array, or one entry per pair with `choice_offsets`.
        choice_offsets: as in `World`, for states that differ in their actions.

    >>> policy = Policy([[0.25, 0.75], [1.0, 0.0]])
    >>> policy.probabilities([1, 0]).tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """

    per_pair: FloatArray
    pairs: Pairs

    def __init__(self, probabilities: ArrayLike, choice_offsets: ArrayLike | None = None) -> None:
        if choice_offsets is None:
            table = real_array("probabilities", probabilities, ndim=2, refusal=InvalidPolicy)
            if 0 in table.shape:
                raise InvalidPolicy(
                    f"probabilities is empty (shape {table.shape})",
                    "Give one row per state and one column per action",
                )
            pairs = Pairs.rectangular(*table.shape)
            flat = table.ravel()
        else:
            pairs = Pairs(choice_offsets)
            flat = real_array(
                "probabilities", probabilities, ndim=1, size=len(pairs), refusal=InvalidPolicy
            )
        assign(self, per_pair=_law(flat, pairs), pairs=pairs)

    @classmethod
    def uniform(cls, world: World) -> Self:
        """Every action of a state equally likely."""
        return cls(world.pairs.uniform, world.pairs.offsets)

    @property
    def num_states(self) -> int:
        return self.pairs.num_states

    @cached_property
    def _table(self) -> FloatArray:
        return self.pairs.table(self.per_pair)

    @cached_property
    def _cumulative(self) -> FloatArray:
        """Running sums per state, 1 from its last possible action on (so none beyond is drawn)."""
        sums = np.cumsum(self._table, axis=1)
        last = self._table.shape[1] - 1 - np.argmax(self._table[:, ::-1] > 0, axis=1)
        sums[np.arange(sums.shape[1]) >= last[:, np.newaxis]] = 1.0
        return sums

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws; an action a state lacks has probability zero."""
        return np.asarray(self._table[self._checked(states)])

    def sample(self, states: ArrayLike, seed: Seed) -> IntArray:
        """One action for each state."""
        rows = self._cumulative[self._checked(states)]
        draws = generator(seed).random(len(rows))
        return np.asarray((rows <= draws[:, np.newaxis]).sum(axis=1))

    def mixed_with(self, other: "Policy", share: float) -> "Policy":
        """In each state follow `other` with probability `share`."""
        if other.pairs != self.pairs:
            raise InvalidPolicy("the policies have different actions", "Mix policies of one world")
        if not 0 <= share <= 1:
            raise InvalidPolicy(f"share = {share}", "Give a share between 0 and 1")
        mixture = (1 - share) * self.per_pair + share * other.per_pair
        return Policy(mixture, self.pairs.offsets)

    def on(self, world: World) -> FloatArray:
        """Probabilities per pair of `world`; refused when the policy belongs to another world."""
        if self.pairs != world.pairs:
            raise InvalidPolicy(
                f"the policy is for {self.num_states} states and {len(self.pairs)} pairs, the "
                f"world has {world.num_states} and {world.num_pairs} (or other action sets)",
                "Use a policy made for this world",
            )
        return self.per_pair

    def save(self, path: PathLike) -> None:
        """Write the policy to one file, atomically and without pickle."""
        arrays = {"probabilities": self.per_pair, "choice_offsets": self.pairs.offsets}
        save_arrays(path, "policy", SCHEMA_VERSION, arrays)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a policy written by `save`; everything is checked again."""
        _, arrays = load_arrays(path, "policy", SCHEMA_VERSION)
        return cls(take(path, arrays, "probabilities"), take(path, arrays, "choice_offsets"))

    def _checked(self, states: ArrayLike) -> IntArray:
        ids = integer_array("states", states, refusal=InvalidPolicy)
        require_in_range("states", ids, self.num_states, InvalidPolicy)
        return ids

    def __repr__(self) -> str:
        return f"Policy({self.num_states} states, {len(self.pairs)} pairs)"


def _law(probabilities: FloatArray, pairs: Pairs) -> FloatArray:
    """Probabilities whose sum over each state's actions is one; an error below 1e-8 is mended."""
    if (probabilities < 0).any():
        pair = int(first_index(probabilities < 0))  # type: ignore[arg-type]
        raise InvalidPolicy(
            f"probability {probabilities[pair]} in state {pairs.states[pair]}, "
            f"action {pairs.actions[pair]} is negative",
            "Probabilities are at least 0",
        )
    sums = pairs.total(probabilities)
    wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
    if wrong.any():
        state = first_index(wrong)
        raise InvalidPolicy(
            f"the probabilities of state {state} sum to {float(sums[state])!r}",
            "They must sum to 1 within 1e-8 in every state",
        )
    return read_only(probabilities / pairs.spread(mended(sums, pairs.actions_per_state)))
