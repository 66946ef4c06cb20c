"""The state-action pairs of a world, in state-major order, with as many actions as a state has.

A state need not have actions 0, 1, 2, ...: a world from a log offers what was recorded there,
perhaps 0 and 2. Its actions keep the numbers under which they were given. Where a pair stands among
those of its state (its position) is an affair of this package and is never shown.

The matrix B of the paper, B[(x,a), y] = 1{x = y}, is never stored: `total` is B' and `spread` is B.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Refusal,
    assign,
    first_index,
    integer_array,
    read_only,
    real_array,
    require_in_range,
)
from journeyman.errors import InvalidInput, InvalidWorld

LARGEST_NUMBER = 1 << 31
"""Action numbers are below this, so that states times numbers fit into 64 bits."""
MOST_NAMED = 20
"""Actions that a message lists."""


@dataclass(frozen=True, eq=False, init=False)
class Pairs:
    """Pairs of state x are `offsets[x]:offsets[x+1]`, in the order of their action numbers.

    Args:
        choice_offsets: the offsets.
        action_numbers: the number of each pair's action, increasing within a state; by default the
            k-th pair of a state is its action k.

    >>> pairs = Pairs([0, 2, 3], action_numbers=[0, 2, 1])
    >>> pairs.index([0, 1], [2, 1]).tolist(), pairs.width
    ([1, 2], 3)
    """

    offsets: IntArray
    numbers: IntArray | None
    """Action numbers; None when the k-th pair of every state is its action k."""
    horizon: int | None
    """Of a world with a horizon, whose states are those of a layer for every step and one end."""

    def __init__(self, choice_offsets: ArrayLike, action_numbers: ArrayLike | None = None) -> None:
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
        assign(self, offsets=offsets, numbers=None, horizon=None)
        if action_numbers is not None:
            numbers = self._checked_numbers(action_numbers)
            assign(self, numbers=None if np.array_equal(numbers, self.positions) else numbers)

    def _checked_numbers(self, values: ArrayLike) -> IntArray:
        numbers = integer_array("action numbers", values, refusal=InvalidWorld, size=len(self))
        inside = self.positions > 0
        wrong = (numbers < 0) | (numbers >= LARGEST_NUMBER)
        wrong[1:] |= inside[1:] & (np.diff(numbers) <= 0)
        if wrong.any():
            pair = int(np.argmax(wrong))
            raise InvalidWorld(
                f"the action number of pair {pair} (state {self.states[pair]}) is {numbers[pair]}",
                "Number the actions of a state in increasing order, from 0 and below "
                f"{LARGEST_NUMBER}",
            )
        return numbers

    @classmethod
    def of(cls, given: "ArrayLike | Pairs") -> "Pairs":
        """Pairs as they are, or those of choice offsets."""
        return given if isinstance(given, Pairs) else cls(given)

    @classmethod
    def rectangular(cls, num_states: int, num_actions: int) -> Self:
        """The same number of actions in every state."""
        return cls(np.arange(num_states + 1, dtype=np.int64) * num_actions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs) or not np.array_equal(self.offsets, other.offsets):
            return False
        if self.numbers is None or other.numbers is None:
            return self.numbers is other.numbers
        return np.array_equal(self.numbers, other.numbers)

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
        """How many actions a state has at most."""
        return int(self.actions_per_state.max())

    @cached_property
    def width(self) -> int:
        """One more than the largest action number: the columns of a (states x actions) table."""
        return self.max_actions if self.numbers is None else int(self.numbers.max()) + 1

    @cached_property
    def is_rectangular(self) -> bool:
        """Whether every state has as many actions as every other."""
        return bool(self.actions_per_state.min() == self.max_actions)

    @property
    def is_complete(self) -> bool:
        """Whether every state has the actions 0..width - 1."""
        return self.is_rectangular and self.numbers is None

    @cached_property
    def states(self) -> IntArray:
        """The state of each pair."""
        return read_only(np.repeat(np.arange(self.num_states), self.actions_per_state))

    @cached_property
    def positions(self) -> IntArray:
        """Where each pair stands among those of its state, from 0; not for people."""
        return read_only(np.arange(len(self)) - self.offsets[self.states])

    @property
    def actions(self) -> IntArray:
        """The number of each pair's action."""
        return self.positions if self.numbers is None else self.numbers

    @cached_property
    def _keys(self) -> IntArray:
        """One increasing number per pair, from which its state and action follow."""
        return read_only(self.states * self.width + self.actions)

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
        found, missing = self._found(states, actions)
        if missing.any():
            where = first_index(missing)
            state = int(states[where])
            raise refusal(
                f"actions[{where}] = {actions[where]}, but state {state} has "
                f"{self.actions_in_words(state)}",
                "Number the actions of each state from 0"
                if self.numbers is None
                else "Use the numbers under which the world was given its actions",
            )
        return found

    def offers(self, states: IntArray, actions: IntArray) -> BoolArray:
        """Whether each state exists and has the action."""
        inside = (states >= 0) & (states < self.num_states)
        _, missing = self._found(np.where(inside, states, 0), actions)
        return np.asarray(inside & ~missing)

    def _found(self, states: IntArray, actions: IntArray) -> tuple[IntArray, BoolArray]:
        """The pairs of states that exist, and where there is none."""
        if self.numbers is None:
            missing = (actions < 0) | (actions >= self.actions_per_state[states])
            return np.asarray(self.offsets[states] + actions), missing
        inside = (actions >= 0) & (actions < self.width)
        wanted = states * self.width + np.where(inside, actions, 0)
        found = np.minimum(np.searchsorted(self._keys, wanted), len(self) - 1)
        return found, np.asarray(~inside | (self._keys[found] != wanted))

    def actions_in_words(self, state: int) -> str:
        """The actions of a state, for messages."""
        if self.numbers is None:
            return f"actions 0..{self.actions_per_state[state] - 1}"
        own = self.numbers[self.offsets[state] : self.offsets[state + 1]]
        shown = ", ".join(str(number) for number in own[:MOST_NAMED])
        more = f", ... ({own.size} in all)" if own.size > MOST_NAMED else ""
        return f"action{'s' * (own.size > 1)} {shown}{more}"

    def pair_in_words(self, pair: int) -> str:
        """A pair for people, by numbers."""
        state = int(np.searchsorted(self.offsets, pair, side="right")) - 1
        return f"state {state}, action {self.actions[pair]}"

    def table(self, values: FloatArray) -> FloatArray:
        """(states x actions) view of a vector over pairs, zero where a state lacks the action."""
        if self.is_complete:
            return values.reshape(self.num_states, self.max_actions)
        padded = np.zeros((self.num_states, self.width))
        padded[self.states, self.actions] = values
        return padded

    def packed(self, values: FloatArray) -> FloatArray:
        """(states x most actions) view by position, zero behind a state's last action."""
        if self.is_rectangular:
            return values.reshape(self.num_states, self.max_actions)
        padded = np.zeros((self.num_states, self.max_actions))
        padded[self.states, self.positions] = values
        return padded

    def flattened(self, name: str, values: ArrayLike, refusal: Refusal) -> FloatArray:
        """One number per pair from numbers per pair, per state, or a (states x actions) table."""
        table = np.asarray(values)
        if table.ndim == 2 and table.shape[0] == self.num_states:
            table = self._offered_entries(name, table, refusal)
        flat: FloatArray = self.per_pair(
            name, real_array(name, table, ndim=1, refusal=refusal), refusal
        )
        return flat

    def _offered_entries(self, name: str, table: Any, refusal: Refusal) -> Any:
        columns = table.shape[1]
        if self.is_complete and columns != self.width:
            return table
        if columns < self.width:
            short = int(np.argmax(self.actions >= columns))
            raise refusal(
                f"{name} has {columns} column{'s' * (columns != 1)}, but the world offers "
                f"{self.pair_in_words(short)}",
                f"Give one column for each of the actions 0..{self.width - 1}",
            )
        return table[self.states, self.actions]

    def per_pair(self, name: str, values: Any, refusal: Refusal) -> Any:
        """Rows given per pair, per state and then repeated over the state's actions, or complete.

        Complete are `width` rows per state, one for each action number, whether the state has the
        action or not: rows of actions that are not offered are left out.
        """
        rows = values.shape[0]
        if rows == len(self):
            return values
        if rows == self.num_states:
            return values[self.states]
        if rows == self.num_states * self.width:
            return values[self._keys]
        complete = "" if self.is_complete else f", or {self.width} per state for actions 0.."
        raise refusal(
            f"{name} has {rows} rows, but the world has {self.num_states} states and "
            f"{len(self)} state-action pairs",
            "Give one row per pair (state-major) or one per state"
            + (complete and f"{complete}{self.width - 1}"),
        )
