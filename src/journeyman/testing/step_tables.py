"""Possible steps (state, action, next state) with their probabilities, to be compared."""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.world import Predecessors, Successors


@dataclass(frozen=True, eq=False)
class StepTable:
    """`keys` is (steps x 3): state, action, next state."""

    keys: IntArray
    probabilities: FloatArray

    @classmethod
    def forwards(cls, states: IntArray, actions: IntArray, answer: Successors) -> "StepTable":
        """What `successors` says of given pairs; steps named several times are added up."""
        used = answer.probabilities > 0
        counts = used.sum(axis=1)
        named = np.column_stack(
            [np.repeat(states, counts), np.repeat(actions, counts), answer.states[used]]
        )
        which, first = numbered(named)
        sums = np.bincount(which, answer.probabilities[used], minlength=first.size)
        return cls(named[first], sums.astype(np.float64))

    @classmethod
    def backwards(cls, states: IntArray, answer: Predecessors) -> "StepTable":
        """What `predecessors` says of given states, in its order."""
        reached = np.repeat(states, np.diff(answer.offsets))
        return cls(np.column_stack([answer.states, answer.actions, reached]), answer.probabilities)

    def __len__(self) -> int:
        return len(self.keys)

    def only(self, chosen: IntArray) -> "StepTable":
        return StepTable(self.keys[chosen], self.probabilities[chosen])

    def leaving(self, states: IntArray) -> "StepTable":
        """The steps that begin in one of the given states."""
        return self.only(np.flatnonzero(np.isin(self.keys[:, 0], states)))

    def probabilities_of(self, other: "StepTable") -> FloatArray:
        """What this table says of the steps of another one; 0 of steps it does not have."""
        which, first = numbered(np.vstack([self.keys, other.keys]))
        said = np.zeros(first.size)
        said[which[: len(self)]] = self.probabilities
        return np.asarray(said[which[len(self) :]])

    def sorted(self) -> "StepTable":
        return self.only(np.lexsort(self.keys.T[::-1]))

    def words(self, row: int) -> str:
        state, action, reached = self.keys[row].tolist()
        return f"from state {state}, action {action} to state {reached}"


def numbered(rows: IntArray) -> tuple[IntArray, IntArray]:
    """A number for each row, the same for equal ones, in their order; and where each is first."""
    order = np.lexsort(rows.T[::-1])
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (np.diff(rows[order], axis=0) != 0).any(axis=1)
    numbers = np.empty(len(rows), dtype=np.int64)
    numbers[order] = np.cumsum(new) - 1
    return numbers, np.asarray(order[new])


def distinct(rows: IntArray) -> IntArray:
    return np.asarray(rows[numbered(rows)[1]])
