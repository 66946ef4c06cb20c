"""Costs of steps that are only seen, one by one, as they come out of a simulator.

    psi(o, a, o', r, terminated),      lowest_i <= psi_i <= highest_i

where o and o' are what was observed before and after, a the action, r the simulator's own reward.
After an episode has terminated every further step costs `after_end`, by declaration: 0 where
nothing happens any more, 1 where a fall is a failure for good.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import FloatArray, assign, real_array
from journeyman.costs.functions import (
    declared_ranges,
    out_of_range,
    returned_values,
)
from journeyman.errors import InvalidCosts

StepFunction: TypeAlias = Callable[
    [NDArray[Any], NDArray[Any], NDArray[Any], FloatArray, NDArray[np.bool_]], Any
]
"""Called with n observations, actions, next observations, rewards and ends; returns (n x costs)."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class StepCosts:
    """Basis costs of what is seen in a step; lower is better.

    Args:
        function: `function(observations, actions, next_observations, rewards, terminated)`, all
            with n rows, gives (n x costs).
        names: one name per cost.
        lowest, highest: between which each cost lies, in every step; one number stands for all.
        after_end: of every step after an episode has terminated; one number stands for all.

    >>> costs = StepCosts(lambda o, a, after, r, end: np.column_stack([abs(o[:, 0]), a]),
    ...                   ["off centre", "effort"], lowest=0, highest=[2.4, 1], after_end=[2.4, 0])
    >>> o = np.array([[0.5, 0.0], [-1.0, 3.0]])
    >>> costs.at(o, np.array([1, 0]), o, np.ones(2), np.zeros(2, bool)).tolist()
    [[0.5, 1.0], [1.0, 0.0]]
    """

    function: StepFunction
    names: tuple[str, ...]
    lowest: FloatArray
    highest: FloatArray
    after_end: FloatArray

    def __init__(
        self,
        function: StepFunction,
        names: Sequence[str],
        *,
        lowest: ArrayLike,
        highest: ArrayLike,
        after_end: ArrayLike = 0.0,
    ) -> None:
        if not callable(function):
            raise InvalidCosts(
                f"function is a {type(function).__name__}",
                "Give a function of (observations, actions, next_observations, rewards, "
                "terminated)",
            )
        given_names, low, high = declared_ranges(names, lowest, highest)
        count = len(given_names)
        given = np.full(count, after_end) if np.ndim(after_end) == 0 else after_end
        rest = real_array("after_end", given, ndim=1, size=count, refusal=InvalidCosts)
        outside = (rest < low) | (rest > high)
        if outside.any():
            which = int(np.argmax(outside))
            raise InvalidCosts(
                f"{given_names[which]!r} is {rest[which]} after the end of an episode, declared "
                f"between {low[which]} and {high[which]}",
                "Say what it costs by after_end, or declare a range that holds it",
            )
        assign(self, function=function, names=given_names, lowest=low, highest=high, after_end=rest)

    @property
    def num_costs(self) -> int:
        return len(self.names)

    def at(
        self,
        observations: NDArray[Any],
        actions: NDArray[Any],
        following: NDArray[Any],
        rewards: FloatArray,
        terminated: NDArray[np.bool_],
    ) -> FloatArray:
        """(steps x costs); a value outside its declared range is refused."""
        found = self.function(observations, actions, following, rewards, terminated)
        steps = len(rewards)
        values = returned_values(found, f"{steps} steps", steps, self.num_costs)
        outside = out_of_range(values, self.lowest, self.highest)
        if outside.any():
            row, which = (int(part[0]) for part in np.nonzero(outside))
            raise InvalidCosts(
                f"{self.names[which]!r} is {values[row, which]} when {actions[row]!r} is done at "
                f"{observations[row]!r}, declared between {self.lowest[which]} and "
                f"{self.highest[which]}",
                "Correct the function, clip its values, or declare the range it has",
            )
        return np.clip(values, self.lowest, self.highest)

    def __repr__(self) -> str:
        return f"StepCosts({self.num_costs} costs: {', '.join(self.names)})"
