"""Policies that are asked state by state; nothing about them has the length of the state space.

| class               | the law of a state comes from                              |
|---------------------|------------------------------------------------------------|
| `FunctionPolicy`    | a function of states that returns laws                     |
| `RulePolicy`        | a function of states that returns actions                  |
| `FeaturePolicy`     | a combination of features, u = Phi theta                   |
| `SoftFeaturePolicy` | a Q-function over features, the more likely the less it is |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Seed,
    SparseMatrix,
    assign,
    generator,
    integer_array,
    normaliser,
    plain_array,
    real_array,
    require_in_range,
)
from journeyman.errors import InvalidPolicy
from journeyman.policy.acting import Predicting, StatePolicy
from journeyman.policy.table import sum_tolerance
from journeyman.world.large_world import LargeWorld
from journeyman.world.laws import draw_columns

StateFunction: TypeAlias = Callable[[IntArray], FloatArray]
"""Called with n states; returns (n x actions) probabilities."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FunctionPolicy(Predicting):
    """A policy by a vectorised function of states, checked wherever it is asked.

    Args:
        function: `function(states)` with an int64 array of length n gives (n x actions) laws; a
            law that is the same everywhere may be broadcast, and is then held once.
        num_actions: the same in every state.

    >>> alternate = FunctionPolicy(lambda x: np.eye(2)[x % 2], 2)
    >>> alternate.probabilities([4, 7]).tolist(), alternate.sample([4, 7], seed=0).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    """

    function: StateFunction
    num_actions: int

    def __init__(self, function: StateFunction, num_actions: int) -> None:
        assign(self, **checked_function("function", function, num_actions))

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws."""
        x = integer_array("states", states, refusal=InvalidPolicy)
        given = plain_array("what the policy's function returns", self.function(x), InvalidPolicy)
        if given.shape != (x.size, self.num_actions):
            raise InvalidPolicy(
                f"the policy's function returns shape {given.shape} for {x.size} states and "
                f"{self.num_actions} actions",
                f"Return an array of shape ({x.size}, {self.num_actions})",
            )
        alike = given.strides[0] == 0
        laws = (given[:1] if alike else given).astype(np.float64)
        sums, allowed = laws @ np.ones(self.num_actions), sum_tolerance(given)
        if not (laws.min(initial=0.0) >= 0 and np.abs(sums - 1.0).max(initial=0) <= allowed):
            sound = (laws >= 0).all(axis=1) & (np.abs(sums - 1.0) <= allowed)
            row = int(np.argmin(sound))
            raise InvalidPolicy(
                f"the probabilities of state {x[row]} are {laws[row].tolist()}",
                "They must be at least 0 and sum to 1 within 1e-8, in single precision 1e-5",
            )
        laws /= normaliser(sums, self.num_actions)[:, np.newaxis]
        return np.broadcast_to(laws, given.shape) if alike else laws

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", None) or repr(self.function)
        return f"FunctionPolicy({name}, {self.num_actions} actions)"


def checked_function(name: str, function: object, num_actions: int) -> dict[str, object]:
    """The fields of a policy by a function, which is its field `name`."""
    if not callable(function):
        raise InvalidPolicy(
            f"{name} is a {type(function).__name__}",
            "Give a function of states; a table goes into Policy",
        )
    count = int(integer_array("num_actions", [num_actions], refusal=InvalidPolicy)[0])
    if count < 1:
        raise InvalidPolicy(f"num_actions = {count}", "Give a whole number from 1")
    return {name: function, "num_actions": count}


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


class PairFeatures(Protocol):
    """Rows of Phi at any pairs of a world."""

    world: LargeWorld
    num_features: int

    def rows(self, states: IntArray, actions: IntArray) -> SparseMatrix: ...


class _OverFeatures(Predicting):
    """A policy of coefficients, one for each column of some features."""

    features: PairFeatures
    coefficients: FloatArray

    def __init__(self, features: PairFeatures, coefficients: ArrayLike) -> None:
        theta = real_array(
            "coefficients", coefficients, ndim=1, size=features.num_features,
            refusal=InvalidPolicy,
        )  # fmt: skip
        assign(self, features=features, coefficients=theta)

    @property
    def num_actions(self) -> int:
        return self.features.world.num_actions

    def rows(self, states: ArrayLike) -> SparseMatrix:
        """Of Phi, for all pairs of given states, state by state."""
        asked = np.asarray(states, dtype=np.int64).ravel()
        count = self.num_actions
        return self.features.rows(np.repeat(asked, count), np.tile(np.arange(count), asked.size))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.coefficients.size} coefficients over {self.features!r})"
        )


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FeaturePolicy(_OverFeatures):
    """The policy of coefficients over features, evaluated state by state.

        pi(a | x) = u+(x, a) / sum_b u+(x, b),   u = Phi theta,   uniform where that sum is zero

    Nothing is stored: asking for a state costs the rows of its pairs.

    Args:
        features: rows at pairs, such as `features.factored(...)`.
        coefficients: theta.
    """

    def measure(self, states: IntArray, actions: IntArray) -> FloatArray:
        """u at given pairs."""
        return np.asarray(self.features.rows(states, actions) @ self.coefficients)

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws."""
        measure = np.asarray(self.rows(states) @ self.coefficients)
        positive = np.maximum(measure, 0.0).reshape(-1, self.num_actions)
        total = positive.sum(axis=1, keepdims=True)
        uniform = np.full(positive.shape, 1 / self.num_actions)
        return np.asarray(np.divide(positive, total, out=uniform, where=total > 0))


@dataclass(frozen=True, eq=False, init=False, repr=False)
class SoftFeaturePolicy(_OverFeatures):
    """The softmax of a Q-function over features, evaluated state by state.

        pi(a | x) ~ exp(-Q(x, a)),      Q(x, a) = sum_j phi_j(x, a) theta_j / sum_j phi_j(x, a)

    where the columns phi_j are nonnegative measures and Q is zero where all of them are: a mean of
    coefficients, weighted by the shares that the columns have in a pair.

    Args:
        features: rows at pairs, such as `features.factored(...)`.
        coefficients: theta.
    """

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws."""
        return self.law_of(column_shares(self.rows(states)))

    def law_of(self, shares: SparseMatrix) -> FloatArray:
        """The same where the shares of the columns in the pairs are at hand."""
        Q = np.asarray(shares @ self.coefficients)
        above = Q.reshape(-1, self.num_actions)
        powers = np.exp(above.min(axis=1, keepdims=True) - above)
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def column_shares(rows: SparseMatrix) -> SparseMatrix:
    """Rows of nonnegative columns, each divided by its sum; zeros stay.

    >>> column_shares(sparse.csr_array([[1.0, 3.0], [0.0, 0.0]])).toarray().tolist()
    [[0.25, 0.75], [0.0, 0.0]]
    """
    total = np.asarray(rows.sum(axis=1)).ravel()
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return sparse.csr_array(sparse.diags_array(inverse) @ rows)
