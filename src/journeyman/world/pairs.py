"""The state-action pairs of a world, in state-major order, with as many actions as a state has.

The matrix B of the paper, B[(x,a), y] = 1{x = y}, is never stored: `total` is B' and `spread` is B.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Refusal,
    first_index,
    integer_array,
    read_only,
    real_array,
    require_in_range,
)
from journeyman.errors import InvalidInput, InvalidWorld
from journeyman.frozen import assign


@dataclass(frozen=True, eq=False, init=False)
class Pairs:
    """Pairs of state x are `offsets[x]:offsets[x+1]`; the k-th of them is its action k."""

    offsets: IntArray

    def __init__(self, choice_offsets: ArrayLike) -> None:
        offsets = integer_array("choice_offsets", choice_offsets, refusal=InvalidWorld)
        if offsets.size < 2:
            raise InvalidWorld("choice_offsets describes no state", "Give at least one state")
        if offsets[0] != 0:
            raise InvalidWorld(f"choice_offsets[0] = {offsets[0]}", "Start the offsets at 0")
        without_action = np.diff(offsets) < 1
        if without_action.any():
            raise InvalidWorld(
                f"choice_offsets leave state {first_index(without_action)} without an action",
                "Give every state at least one action, for example a self-loop",
            )
        assign(self, offsets=offsets)

    @classmethod
    def rectangular(cls, num_states: int, num_actions: int) -> Self:
        """The same number of actions in every state."""
        return cls(np.arange(num_states + 1, dtype=np.int64) * num_actions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pairs) and np.array_equal(self.offsets, other.offsets)

    __hash__ = None  # type: ignore[assignment]  # equal by value, and the value is an array

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @property
    def num_states(self) -> int:
        return self.offsets.size - 1

    @cached_property
    def actions_per_state(self) -> IntArray:
        return read_only(np.diff(self.offsets))

    @cached_property
    def max_actions(self) -> int:
        return int(self.actions_per_state.max())

    @cached_property
    def is_rectangular(self) -> bool:
        return bool(self.actions_per_state.min() == self.max_actions)

    @cached_property
    def states(self) -> IntArray:
        """The state of each pair."""
        return read_only(np.repeat(np.arange(self.num_states), self.actions_per_state))

    @cached_property
    def actions(self) -> IntArray:
        """The action of each pair, numbered from 0 within its state."""
        return read_only(np.arange(len(self)) - self.offsets[self.states])

    @cached_property
    def uniform(self) -> FloatArray:
        """The law that takes every action of a state with the same probability."""
        return read_only(np.repeat(1.0 / self.actions_per_state, self.actions_per_state))

    def total(self, measure: FloatArray) -> FloatArray:
        """B' measure: the mass of each state. Further axes are kept."""
        if self.is_rectangular:
            shape = (self.num_states, self.max_actions, *measure.shape[1:])
            return np.asarray(measure.reshape(shape).sum(axis=1))
        return np.asarray(np.add.reduceat(measure, self.offsets[:-1], axis=0))

    def smallest(self, values: FloatArray) -> FloatArray:
        """The least entry over the actions of each state."""
        return np.asarray(np.minimum.reduceat(values, self.offsets[:-1], axis=0))

    def spread(self, values: FloatArray) -> FloatArray:
        """B values: each state's value at each of its pairs. Further axes are kept."""
        return np.asarray(values[self.states])

    def index(
        self, states: ArrayLike, actions: ArrayLike, refusal: Refusal = InvalidInput
    ) -> IntArray:
        """The pairs of given states and actions; the first action a state lacks is named."""
        states = integer_array("states", states, refusal=refusal)
        actions = integer_array("actions", actions, refusal=refusal, size=states.size)
        require_in_range("states", states, self.num_states, refusal)
        missing = (actions < 0) | (actions >= self.actions_per_state[states])
        if missing.any():
            where = first_index(missing)
            state = int(states[where])
            raise refusal(
                f"actions[{where}] = {actions[where]}, but state {state} has actions "
                f"0..{self.actions_per_state[state] - 1}",
                "Number the actions of each state from 0",
            )
        return np.asarray(self.offsets[states] + actions)

    def table(self, values: FloatArray) -> FloatArray:
        """(states x actions) view of a vector over pairs, zero where a state lacks the action."""
        if self.is_rectangular:
            return values.reshape(self.num_states, self.max_actions)
        padded = np.zeros((self.num_states, self.max_actions))
        padded[self.states, self.actions] = values
        return padded

    def flattened(self, name: str, values: ArrayLike, refusal: Refusal) -> FloatArray:
        """One figure per pair from figures per pair, per state, or a (states x actions) table."""
        table = np.asarray(values)
        if table.ndim == 2 and table.shape == (self.num_states, self.max_actions):
            table = table[self.states, self.actions]
        flat: FloatArray = self.per_pair(
            name, real_array(name, table, ndim=1, refusal=refusal), refusal
        )
        return flat

    def per_pair(self, name: str, values: Any, refusal: Refusal) -> Any:
        """Rows given per pair, or per state and then repeated over the state's actions."""
        rows = values.shape[0]
        if rows == len(self):
            return values
        if rows == self.num_states:
            return values[self.states]
        raise refusal(
            f"{name} has {rows} rows, but the world has {self.num_states} states and "
            f"{len(self)} state-action pairs",
            "Give one row per pair (state-major) or one per state",
        )
