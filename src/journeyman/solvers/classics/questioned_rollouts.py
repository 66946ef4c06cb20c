"""Rollouts of a learner with the expert at its side, who is asked what to do in every state.

In each step the learner acts, or the expert does with probability `share`; the expert's action is
written down either way. An episode that arrives in an absorbing state is over, as in `jm.record`:
nothing is asked there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import BoolArray, FloatArray, IntArray, Seed, generator
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.simulation import record_walks
from journeyman.errors import InvalidPolicy
from journeyman.policy import Policy
from journeyman.policy.acting import Actor, Predictor, StatePolicy, asked_by_predict
from journeyman.world import World

ActionFunction: TypeAlias = Callable[[IntArray], Any]
"""Called with n states, returns n actions."""
Expert: TypeAlias = StatePolicy | Predictor | ActionFunction


def question(
    world: World,
    expert: Expert,
    learner: Policy,
    share: float,
    *,
    trajectories: int,
    horizon: int,
    rng: np.random.Generator,
) -> Demonstrations:
    """The states of rollouts, each with what the expert would do there.

    These are decisions and not walks: an action need not have led to the state behind it.
    """
    asking = _Asking(world, expert, learner, share, rng)
    walks = record_walks(world, asking, trajectories, horizon, rng)
    visited = walks.states.reshape(trajectories, horizon + 1)
    asked = np.column_stack(asking.asked)
    lengths = asked.sum(axis=1)
    kept = np.arange(horizon + 1) <= lengths[:, np.newaxis]
    return Demonstrations(
        visited[kept],
        np.column_stack(asking.told)[asked],
        np.concatenate([[0], np.cumsum(lengths)]),
        choice_offsets=world.pairs,
    )


def surprise(world: World, policy: Policy, decisions: Demonstrations) -> FloatArray:
    """-log pi(a | x) of an expert's decisions, episode by episode in a discounted state of each."""
    with np.errstate(divide="ignore"):
        return _discounted(world, decisions, -np.log(_likely(world, policy, decisions)))


def disagreement(world: World, policy: Policy, decisions: Demonstrations) -> FloatArray:
    """1 - pi(a | x) of an expert's decisions, in the same way."""
    return _discounted(world, decisions, 1 - _likely(world, policy, decisions))


def _likely(world: World, policy: Policy, decisions: Demonstrations) -> FloatArray:
    pairs = world.pairs.index(decisions.step_states, decisions.actions)
    return np.asarray(policy.on(world)[pairs])


def _discounted(world: World, decisions: Demonstrations, losses: FloatArray) -> FloatArray:
    weights = world.discount**decisions.step_times / world.effective_horizon
    counted = np.multiply(weights, losses, out=np.zeros_like(losses), where=weights > 0)
    totals = np.bincount(decisions.step_episodes, counted, minlength=len(decisions))
    return np.asarray(totals, dtype=np.float64)


class _Asking:
    """The mixture of learner and expert as a policy that remembers what it was told."""

    def __init__(
        self, world: World, expert: Expert, learner: Policy, share: float, rng: np.random.Generator
    ) -> None:
        self._world, self._learner, self._share = world, learner, share
        if isinstance(expert, Policy):
            expert = expert.fitted(world)
        self._whole = asked_by_predict(expert)
        self._expert = Actor(_actor_form(expert), rng)
        self.told: list[IntArray] = []
        self.asked: list[BoolArray] = []

    def sample(self, states: ArrayLike, seed: Seed) -> IntArray:
        here, rng = np.asarray(states), generator(seed)
        actions = self._learner.sample(here, rng)
        going = ~self._world.absorbing[here] | (not self.told)
        told = actions.copy()
        if going.any():
            told[going] = self._answers(here, going)
        self.told.append(told)
        self.asked.append(going)
        return np.where(rng.random(here.size) < self._share, told, actions)

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """Those of the mixture, if the expert has any."""
        shown = self._share * self._expert.probabilities(states)
        return np.asarray(shown + (1 - self._share) * self._learner.probabilities(states))

    def _answers(self, here: IntArray, going: BoolArray) -> IntArray:
        """The expert's actions; one who carries a state along has to see every episode."""
        states = here[going]
        chosen = self._expert.sample(here)[going] if self._whole else self._expert.sample(states)
        pairs = self._world.pairs.index(states, chosen, InvalidPolicy)
        return np.asarray(self._world.pairs.actions[pairs])


@dataclass(frozen=True)
class _Told:
    """A function of states in the form that actors take."""

    function: ActionFunction

    def __call__(self, states: IntArray, rng: np.random.Generator) -> Any:
        return self.function(states)

    def __repr__(self) -> str:
        return repr(self.function)


def _actor_form(expert: Any) -> Any:
    has_way = hasattr(expert, "sample") or hasattr(expert, "predict")
    return expert if has_way else _Told(expert)
