"""Whether a world is what an environment does: predicted against observed transitions.

The first step that is impossible in the world refutes it. Otherwise

    exact laws       are bet against, pair by pair and all together (`certificate.betting`); the
                     world is refuted when the e-value reaches 1/failure_probability
    estimated laws   are refuted when the frequencies of a pair are further from them, in the
                     1-norm, than both errors allow: l1(observed, world) > err(counts of the
                     world) + err(counts observed), with failure_probability/2 for each

*Guarantee*: a world that is right is refuted with probability `failure_probability` at most, for
every number of steps, whatever made the actions be chosen as they were.

*Not shown*: that a world which passes is right. Pairs that were not seen may be anything, and small
errors need many steps.
"""

import math
from bisect import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import BoolArray, IntArray, first_true, require_between
from journeyman.certificate.betting import start_evidence, step_evidence
from journeyman.certificate.model_error import (
    distances_of,
    information_radii,
    transition_radii,
)
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidWorld
from journeyman.world import World

END = "the end of the episode"
LONGEST = 1000
"""Steps after which an episode that does not end by itself is started again."""


@dataclass(frozen=True, eq=False)
class ObservedSteps:
    """In `states[k]`, `actions[k]` led to `next_states[k]`; -1 is an end that the world lacks."""

    states: IntArray
    actions: IntArray
    next_states: IntArray
    first_states: IntArray
    """First states of episodes; none when they are not known."""


class WorldEnvironment:
    """A world with the two methods of a Gymnasium environment, to be simulated like one."""

    def __init__(self, world: World) -> None:
        matrix = world.transition
        sums = np.cumsum(matrix.data)
        before = np.concatenate([[0.0], sums])[matrix.indptr[:-1]]
        pairs = zip(world.pairs.states.tolist(), world.pairs.actions.tolist(), strict=True)
        self._row = {pair: row for row, pair in enumerate(pairs)}
        self._bounds, self._targets = matrix.indptr.tolist(), matrix.indices.tolist()
        self._sums, self._before = sums.tolist(), before.tolist()
        self.unwrapped, self._world, self._rng = self, world, np.random.default_rng()
        self.state = 0

    def reset(self, *, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.state = int(self._rng.choice(self._world.num_states, p=self._world.initial))
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        row = self._row.get((self.state, action))
        if row is None:
            raise InvalidWorld(
                f"the simulated world has no action {action} in state {self.state}",
                "Compare worlds with the same actions",
            )
        first, last = self._bounds[row], self._bounds[row + 1]
        point = self._before[row] + self._rng.random() * (self._sums[last - 1] - self._before[row])
        place = bisect(self._sums, point, first, last - 1)
        self.state = self._targets[place]
        return self.state, 0.0, self.state == self._world.sink, False, {}


def observe(world: World, environment: Any, steps: int, seed: int) -> ObservedSteps:
    """`steps` steps of an environment, from as many episodes as they take.

    The action is the one that was tried least in the state so far, so that steps are not wasted on
    what is known already. That depends on the past only, which is all that the tests ask for.
    """
    explorer = _Explorer(world, seed)
    _require_same_actions(environment, world)
    horizon = getattr(environment.unwrapped, "horizon", None)
    first = int(getattr(getattr(environment, "action_space", None), "start", 0))
    seen = np.empty((3, steps), dtype=np.int64)
    starts: list[int] = []
    state, elapsed, ended = 0, 0, True
    for k in range(steps):
        if ended:
            fresh = explorer.seed() if not starts else None
            state, elapsed = _state(environment, environment.reset(seed=fresh)[0]), 0
            starts.append(state)
            explorer.require_state(state)
        action = explorer.next_action(state)
        observation, _, terminated, truncated, _ = environment.step(first + action)
        after, elapsed = _state(environment, observation), elapsed + 1
        over = terminated and elapsed != horizon
        seen[0, k], seen[1, k], seen[2, k] = state, action, _end(world, after) if over else after
        ended = terminated or truncated or elapsed >= LONGEST or explorer.is_stuck(after)
        state = after
    return ObservedSteps(seen[0], seen[1], seen[2], np.array(starts))


class _Explorer:
    """Takes the action that was tried least in a state; the first of them."""

    def __init__(self, world: World, seed: int) -> None:
        self.names: list[int] = world.pairs.actions.tolist()
        self._rng = np.random.default_rng(seed)
        self._offsets: list[int] = world.pairs.offsets.tolist()
        self._stuck: list[bool] = world.absorbing.tolist()
        self._tried = [0] * world.num_pairs

    def seed(self) -> int:
        return int(self._rng.integers(1 << 31))

    def next_action(self, state: int) -> int:
        first, last = self._offsets[state], self._offsets[state + 1]
        pair = min(range(first, last), key=self._tried.__getitem__)
        self._tried[pair] += 1
        return self.names[pair]

    def is_stuck(self, state: int) -> bool:
        """In a state that is never left, or that the world does not have."""
        return not 0 <= state < len(self._stuck) or self._stuck[state]

    def require_state(self, state: int) -> None:
        if not 0 <= state < len(self._stuck):
            raise InvalidWorld(
                f"the environment starts in state {state}, the world has states "
                f"0..{len(self._stuck) - 1}",
                "Check that both are the same environment, with the same arguments",
            )


def _end(world: World, after: int) -> int:
    """Where an episode's end leads: to the sink, or to rest in the state that was reached."""
    if world.sink is not None:
        return world.sink
    inside = 0 <= after < world.num_states
    return after if inside and world.absorbing[after] else -1


def _state(environment: Any, observation: Any) -> int:
    """The number of the state that the environment is in."""
    space = getattr(environment, "observation_space", None)
    if isinstance(observation, int | np.integer):
        return int(observation) - int(getattr(space, "start", 0))
    state = getattr(environment.unwrapped, "state", None)
    if isinstance(state, int | np.integer):
        return int(state)
    raise InvalidWorld(
        f"observations are from {space}, and not the numbers of states",
        "Give an environment with a Discrete observation space",
    )


def _require_same_actions(environment: Any, world: World) -> None:
    """The same number of them; a record may lack the last ones."""
    count = getattr(getattr(environment, "action_space", None), "n", None)
    num_actions, recorded = world.pairs.width, world.observed_actions is not None
    if count is not None and (
        int(count) < num_actions or (int(count) > num_actions and not recorded)
    ):
        raise InvalidWorld(
            f"the environment has {count} actions, the world {num_actions}",
            "Check that both are the same environment, with the same arguments",
        )


@dataclass(frozen=True)
class TransitionCheck:
    """What comparing a world with observed steps has shown."""

    refuted: bool
    num_steps: int
    num_starts: int
    pairs_seen: int
    num_pairs: int
    finding: str
    """The first impossible step, or the evidence and what is most out of line."""
    failure_probability: float

    @property
    def agrees(self) -> bool:
        return not self.refuted

    def __str__(self) -> str:
        outcome = "the world is WRONG" if self.refuted else "no contradiction found"
        return (
            f"{outcome}: {self.num_steps} steps in {self.pairs_seen} of {self.num_pairs} pairs, "
            f"{self.num_starts} starts; {self.finding} (a right world is refuted with probability "
            f"{self.failure_probability:g} at most)"
        )


def check_transitions(
    world: World,
    environment: Any,
    *,
    steps: int = 20_000,
    seed: int = 0,
    failure_probability: float = 0.05,
) -> TransitionCheck:
    """Compare `world` with what `environment` does.

    Args:
        environment: a Gymnasium environment whose observations are states, another `World` to
            simulate, or steps that were observed already (`Demonstrations`, `ObservedSteps`).
        steps: how many to simulate; observed ones are all used.

    >>> from journeyman.world import World
    >>> fair = World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9)
    >>> check_transitions(fair, fair, steps=1000).refuted
    False
    >>> unfair = World([[0.7, 0.3], [0.5, 0.5]], [1, 0], 0.9)
    >>> check_transitions(unfair, fair, steps=1000).refuted
    True
    """
    level = require_between(
        "failure_probability", failure_probability, 0, 1, InvalidWorld, "Give for example 0.05"
    )
    if isinstance(environment, Demonstrations):
        seen = _of_demonstrations(environment)
    elif isinstance(environment, ObservedSteps):
        seen = environment
    else:
        if not isinstance(steps, int) or steps < 1:
            raise InvalidWorld(f"steps = {steps!r}", "Give a whole number from 1")
        real = WorldEnvironment(environment) if isinstance(environment, World) else environment
        seen = observe(world, real, steps, seed)
    return judge(world, seen, level)


def judge(world: World, seen: ObservedSteps, level: float) -> TransitionCheck:
    """What observed steps say about `world`."""
    if not seen.states.size:
        raise InvalidWorld("no step was observed", "Give at least one")
    offered = _offered(world, seen)
    pairs = _pairs(world, seen, offered)
    finding = _impossible(world, seen)
    refuted = finding is not None
    if finding is None:
        test = _against_estimates if world.is_estimated else _against_exact_laws
        refuted, finding = test(world, seen, pairs, level)
    return TransitionCheck(
        refuted=refuted,
        num_steps=seen.states.size,
        num_starts=seen.first_states.size,
        pairs_seen=np.unique(pairs).size,
        num_pairs=world.num_pairs,
        finding=finding,
        failure_probability=level,
    )


def _of_demonstrations(demos: Demonstrations) -> ObservedSteps:
    return ObservedSteps(demos.step_states, demos.actions, demos.next_states, demos.first_states)


def _impossible(world: World, seen: ObservedSteps) -> str | None:
    """The first step, or else the first start, that the world does not have, in words."""
    offered = _offered(world, seen)
    inside = (seen.next_states >= 0) & (seen.next_states < world.num_states)
    possible = offered & inside
    if possible.any() and (not world.is_estimated or world.support is not None):
        laws = world.transition if world.support is None else world.support
        held = laws[_pairs(world, seen, possible), seen.next_states[possible]]
        possible[possible] = np.asarray(held).ravel() > 0
    if not possible.all():
        step = int(np.argmin(possible))
        where = f"state {seen.states[step]}, action {seen.actions[step]}"
        if not offered[step]:
            return f"step {step} is impossible: the world has no {where}"
        return f"step {step} is impossible: {where} led to {_target(world, seen, step)}"
    starts = seen.first_states
    if world.initial_count is None and world.initial_error is None:
        episode = first_true(world.initial[starts] <= 0)
        if episode is not None:
            return f"episode {episode} starts in state {starts[episode]}, of initial probability 0"
    return None


def _target(world: World, seen: ObservedSteps, step: int) -> str:
    target = int(seen.next_states[step])
    if target < 0:
        return END
    return f"state {target}" + (f", {END}" if target == world.sink else "")


def _offered(world: World, seen: ObservedSteps) -> BoolArray:
    """Whether each step's state exists, and has the step's action."""
    return world.pairs.offers(seen.states, seen.actions)


def _pairs(world: World, seen: ObservedSteps, some: BoolArray) -> IntArray:
    """The pairs of those steps that are marked."""
    return world.pairs.index(seen.states[some], seen.actions[some], InvalidWorld)


def _against_exact_laws(
    world: World, seen: ObservedSteps, pairs: IntArray, level: float
) -> tuple[bool, str]:
    """Bets on steps and on starts, with half of the stake each."""
    strongest, log_value = step_evidence(world, _one_by_one(world, pairs, seen.next_states))
    pair, outcome, frequencies = strongest.most_out_of_line()
    worst = f"most out of line is {world.describe_pair(pair)} to state {outcome}: {frequencies}"
    if seen.first_states.size:
        starts = seen.first_states
        pairs_of_starts = world.pairs.offsets[starts]
        bet, log_start = start_evidence(world, _one_by_one(world, pairs_of_starts, starts))
        if log_start > max(log_value, 0.0):
            _, state, frequencies = bet.most_out_of_line()
            worst = f"most out of line are starts from state {state} on: {frequencies}"
        log_value = float(np.logaddexp(log_value, log_start) - math.log(2))
    shown = f"10^{log_value / math.log(10):.1f}"
    return log_value >= -math.log(level), f"e-value {shown}, wrong from {1 / level:g} on; {worst}"


def _one_by_one(world: World, pairs: IntArray, following: IntArray) -> Demonstrations:
    """Steps as episodes of their own."""
    states = np.column_stack([world.pairs.states[pairs], following]).ravel()
    return Demonstrations(
        states,
        world.pairs.actions[pairs],
        np.arange(pairs.size + 1),
        choice_offsets=world.pairs,
    )


def _against_estimates(
    world: World, seen: ObservedSteps, pairs: IntArray, level: float
) -> tuple[bool, str]:
    """Distances of observed frequencies from the model's, beside what counts allow."""
    counts = np.bincount(pairs, minlength=world.num_pairs)
    shape = world.transition.shape
    tally = sparse.coo_array((np.ones(pairs.size), (pairs, seen.next_states)), shape=shape).tocsr()
    frequencies = tally.multiply(1.0 / np.maximum(counts, 1)[:, np.newaxis]).tocsr()
    distance = np.asarray(abs(frequencies - world.transition).sum(axis=1)).ravel()
    possible = np.diff(world.support.indptr) if world.support is not None else shape[1]
    allowed = transition_radii(world, level / 2).transition
    sizes = np.broadcast_to(possible, counts.shape)
    own = information_radii(tally, sizes, world.num_pairs, level / 2)
    allowed = allowed + distances_of(own)
    excess = np.where(counts > 0, distance - allowed, -np.inf)
    pair = int(np.argmax(excess))
    return bool(excess[pair] > 0), (
        f"the world is an estimate; closest to the limit is {world.describe_pair(pair)}: "
        f"{counts[pair]} draws at distance {distance[pair]:.3g}, {allowed[pair]:.3g} is allowed"
    )
