"""Steps seen in an environment, in another world, or in a log: what a world is checked against.

In simulations the action is the one that was tried least in the state so far, so that steps are
not wasted on what is known already. That depends on the past only, which is all that the tests of
`world_check` ask for.
"""

from bisect import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.arrays import IntArray
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


class WorldSimulator:
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
    """`steps` steps of an environment, from as many episodes as they take."""
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
