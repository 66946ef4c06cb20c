"""Policies by a rule: one action in every state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Seed,
    assign,
    generator,
    integer_array,
    require_in_range,
)
from journeyman.errors import InvalidPolicy
from journeyman.policy.prediction import Predicting
from journeyman.policy.state_policy import StatePolicy, checked_function
from journeyman.world.row_draws import draw_columns

Rule: TypeAlias = Callable[[IntArray], IntArray]
"""Called with n states; returns n actions."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class RulePolicy(Predicting):
    """A heuristic by a vectorised rule from states to actions, checked wherever it is asked.

    Args:
        rule: `rule(states)` with an int64 array of length n gives n actions.
        num_actions: the same in every state.

    >>> alternate = RulePolicy(lambda x: x % 2, 2)
    >>> alternate.actions([4, 7]).tolist(), alternate.probabilities([4, 7]).tolist()
    ([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    """

    rule: Rule
    num_actions: int

    def __init__(self, rule: Rule, num_actions: int) -> None:
        assign(self, **checked_function("rule", rule, num_actions))

    def actions(self, states: ArrayLike) -> IntArray:
        """One action for each state."""
        x = integer_array("states", states, refusal=InvalidPolicy)
        chosen = integer_array(
            "what the policy's rule returns", self.rule(x), refusal=InvalidPolicy, size=x.size
        )
        require_in_range("actions", chosen, self.num_actions, InvalidPolicy)
        return chosen

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws, each with a single one."""
        chosen = self.actions(states)
        laws = np.zeros((chosen.size, self.num_actions))
        laws[np.arange(chosen.size), chosen] = 1.0
        return laws

    def sample(self, states: ArrayLike, seed: Seed) -> IntArray:
        """The rule's actions. As many numbers are spent as by policies that need them, so that
        walks of both from one seed meet the same events."""
        chosen = self.actions(states)
        generator(seed).random(chosen.size)
        return chosen

    def predict(
        self,
        observation: ArrayLike,
        state: tuple[Any, ...] | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, tuple[Any, ...] | None]:
        """The rule's actions, deterministic or not, and `state` as it was."""
        observed = np.asarray(observation)
        return self.actions(observed.ravel()).reshape(observed.shape)[()], state

    def __repr__(self) -> str:
        name = getattr(self.rule, "__name__", None) or repr(self.rule)
        return f"RulePolicy({name}, {self.num_actions} actions)"


def chosen_share(policy: StatePolicy, states: IntArray, actions: IntArray) -> FloatArray:
    """h(a | x) at given pairs; a rule is not asked for whole laws."""
    if isinstance(policy, RulePolicy):
        return np.asarray(policy.actions(states) == actions, dtype=float)
    return np.asarray(policy.probabilities(states)[np.arange(states.size), actions])


def drawn_actions(policy: StatePolicy, states: IntArray, uniforms: FloatArray) -> IntArray:
    """An action for each state and uniform number."""
    if isinstance(policy, RulePolicy):
        return policy.actions(states)
    return draw_columns(policy.probabilities(states), uniforms)
