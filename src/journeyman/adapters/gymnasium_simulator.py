"""Any Gymnasium environment as a simulator: episodes of a policy, and what they cost.

    total = sum_{t < T} discount^t psi_t  (+ discount^T/(1 - discount) after_end, if terminated)

An episode that *terminated* is complete: what every later step costs was declared. One that was
*truncated*, by the environment's own time limit or by the horizon, leaves discount^T/(1 - discount)
without a record, and certificates say what that is worth; `gymnasium.make(id,
max_episode_steps=...)` moves the limit.

Episodes run side by side, one in each environment, until all have ended; what a vector environment
does by itself after an end (it resets on the next step) is never looked at. So no episode is left
out for being long. Environments are made anew for each task of rollouts, and seeded once from its
generator.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    assign,
    read_only,
    real_array,
    require_finite,
    require_whole,
)
from journeyman.costs.functions import StepCosts
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.demonstrations.simulation import EpisodeTotals, StatedCosts, Step, Steps
from journeyman.errors import (
    InvalidCosts,
    InvalidDemonstrations,
    InvalidPolicy,
    InvalidWorld,
    MissingExtra,
)
from journeyman.policy.acting import Actor, AnyPolicy
from journeyman.world.laws import discount as checked_discount

LARGEST_SEED = 1 << 31
"""Some environments take no larger ones."""
RECORDS = 0x7265636F
"""Which of a seed's streams demonstrations are recorded from."""
Maker: TypeAlias = Callable[[], Any]
Seen: TypeAlias = tuple[NDArray[Any], FloatArray, BoolArray, BoolArray]
"""Next observations, rewards, terminated, truncated: one row for each episode."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class GymnasiumSimulator(StatedCosts):
    """Run episodes in an environment of Gymnasium.

    Args:
        environment: the id of a registered one, or a function that makes one. It may make a vector
            environment, for example `partial(gymnasium.make_vec, id, num_envs=64)`; executors in
            other processes need a function at the top level of a module.
        costs: what a step costs.
        discount: gamma.
        num_envs: episodes that run side by side; a vector environment says so itself. Figures
            depend on it as they depend on a seed.
        actions: a list of some actions of the environment. Policies then choose their numbers 0, 1,
            ..., and costs are shown the actions themselves: a discrete world out of one with
            continuous actions.

    >>> import numpy as np
    >>> from journeyman.costs.functions import StepCosts
    >>> haste = StepCosts(lambda o, a, after, r, end: np.ones((len(r), 1)), ["steps"],
    ...                   lowest=0, highest=1)
    >>> lake = GymnasiumSimulator("FrozenLake-v1", haste, discount=0.9)
    >>> rule = lambda o, rng: rng.integers(4, size=len(o))
    >>> lake.totals(rule, 100, 50, np.random.default_rng(0))
    EpisodeTotals(100 episodes, 1 costs)
    """

    environment: str | Maker
    costs: StepCosts
    discount: float
    num_envs: int
    observation_axes: int
    """Axes of a single observation."""
    observation_shape: tuple[int, ...]
    actions: NDArray[Any] | None
    """What the actions 0, 1, ... of policies do, where they are listed."""
    action_space: Any
    """Of the environment itself."""

    def __init__(
        self,
        environment: str | Maker,
        costs: StepCosts,
        discount: float,
        num_envs: int = 32,
        *,
        actions: ArrayLike | None = None,
    ) -> None:
        if not (isinstance(environment, str) or callable(environment)):
            raise InvalidWorld(
                f"the environment is a {type(environment).__name__}",
                "Give the id of an environment, or a function that makes one",
            )
        if not isinstance(costs, StepCosts):
            raise InvalidCosts(
                f"costs is a {type(costs).__name__}",
                "Give jm.costs.StepCosts(function, names, lowest=..., highest=...)",
            )
        assign(
            self, environment=environment, costs=costs, discount=checked_discount(discount),
            num_envs=require_whole("num_envs", num_envs, 1, InvalidWorld),
        )  # fmt: skip
        row = self._make_row(1)
        row.close()
        listed = None if actions is None else _listed(actions, row.action_space)
        assign(
            self, observation_axes=len(row.observation_shape), actions=listed,
            observation_shape=row.observation_shape, action_space=row.action_space,
        )  # fmt: skip

    def totals(
        self, policy: AnyPolicy, trajectories: int, horizon: int, rng: np.random.Generator
    ) -> EpisodeTotals:
        """Independent episodes of at most `horizon` steps."""
        rows = self._rows(trajectories)
        try:
            parts = [self._totalled(row, policy, horizon, rng) for row in rows]
        finally:
            rows[0].close()
        all_of_them = EpisodeTotals.joined(parts)
        return EpisodeTotals(
            all_of_them.totals[:trajectories], all_of_them.unrecorded[:trajectories]
        )

    def steps(
        self, policy: AnyPolicy, trajectories: int, horizon: int, rng: np.random.Generator
    ) -> Steps:
        """The same episodes step by step, for planners."""
        rows = self._rows(trajectories)
        try:
            parts = [Steps.sorted(self._played(row, policy, horizon, rng)) for row in rows]
        finally:
            rows[0].close()
        found = Steps.joined(parts).first(trajectories)
        for shown in (found.observations, found.following):
            require_finite("what the environment shows", shown, InvalidWorld)
        return found

    def record(
        self, policy: AnyPolicy, *, trajectories: int, horizon: int, seed: int
    ) -> Demonstrations:
        """Episodes of a policy with discrete or listed actions, as `Demonstrations` of
        observations."""
        for name, value, least in (
            ("trajectories", trajectories, 1), ("horizon", horizon, 1), ("seed", seed, 0),
        ):  # fmt: skip
            require_whole(name, value, least, InvalidDemonstrations)
        _ = self.action_numbers
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(RECORDS,)))
        return self.steps(policy, trajectories, horizon, rng).demonstrations()

    def expert_totals(self, demonstrations: Demonstrations) -> EpisodeTotals:
        """What recorded episodes of observations cost; `Apprenticeship` asks for it.

        Rewards are no part of `Demonstrations`: a cost that looks at them needs
        `EpisodeTotals.of_episodes(..., rewards=...)`.
        """
        demos = demonstrations
        if demos.states.shape[1:] != self.observation_shape:
            raise InvalidDemonstrations(
                f"the demonstrations hold observations of shape {demos.states.shape[1:]}, those of "
                f"the environment have the shape {self.observation_shape}",
                "Record what the environment shows",
            )
        self._require_numbers(demos.actions)
        episodes = [demos.episode(number) for number in range(len(demos))]
        return EpisodeTotals.of_episodes(
            [states for states, _ in episodes],
            [self._performed(actions) for _, actions in episodes],
            demos.terminated, self.costs, self.discount,
        )  # fmt: skip

    def nearest_actions(self, actions: ArrayLike) -> IntArray:
        """For each action of the environment the number of the listed one nearest to it."""
        if self.actions is None:
            raise InvalidPolicy(
                "the simulator has no list of actions",
                "Give GymnasiumSimulator(..., actions=[...])",
            )
        given = np.asarray(actions, dtype=np.float64).reshape(-1, *self.actions.shape[1:])
        apart = given[:, np.newaxis] - self.actions
        squares = (apart**2).reshape(len(given), len(self.actions), -1).sum(axis=2)
        return np.asarray(squares.argmin(axis=1))

    @property
    def action_numbers(self) -> IntArray:
        """The actions that policies choose from."""
        if self.actions is not None:
            return np.arange(len(self.actions))
        space = self.action_space
        if type(space).__name__ != "Discrete":
            raise InvalidWorld(
                f"actions are from {space}, which has no numbers",
                "List some: GymnasiumSimulator(..., actions=[[-1.0], [0.0], [1.0]])",
            )
        return np.arange(int(space.start), int(space.start + space.n))

    def training(self, cost_weights: ArrayLike) -> Any:
        """The environment with minus the weighted costs as its reward, for learners.

        A terminal step is also charged what all later ones cost, so that a learner with the same
        discount, whose values are zero after the end, minimises the expected cost itself.
        """
        import gymnasium

        simulator = self
        weights = real_array(
            "cost_weights", cost_weights, ndim=1, size=self.costs.num_costs, refusal=InvalidCosts
        )

        class Training(gymnasium.Wrapper):
            """Counts costs in place of rewards."""

            def reset(self, **options: Any) -> Any:
                self._seen, info = self.env.reset(**options)
                return self._seen, info

            def step(self, action: Any) -> Any:
                done = action if simulator.actions is None else simulator.actions[action]
                following, reward, terminated, truncated, info = self.env.step(done)
                before, done, after = (np.asarray([x]) for x in (self._seen, done, following))
                paid, ends = np.array([reward], dtype=float), np.array([terminated])
                costs = simulator.costs.at(before, done, after, paid, ends)[0]
                if terminated:
                    costs = costs + simulator.discount * simulator._rest * simulator.costs.after_end
                self._seen = following
                return following, -float(weights @ costs), terminated, truncated, info

        made = _made(self.environment)
        if hasattr(made, "num_envs"):
            raise InvalidWorld(
                "a vector environment cannot be handed to a learner",
                "Make a simulator of a single environment for training",
            )
        training = Training(made)
        if self.actions is not None:
            training.action_space = gymnasium.spaces.Discrete(len(self.actions))
        return training

    @property
    def _rest(self) -> float:
        return 1.0 / (1.0 - self.discount)

    def _make_row(self, count: int) -> "_Row":
        made = _made(self.environment)
        if hasattr(made, "num_envs"):
            return _VectorRow(made)
        return _ListRow([made, *(_made(self.environment) for _ in range(count - 1))])

    def _rows(self, trajectories: int) -> list["_Row"]:
        """One row of environments, as often as it takes."""
        require_whole("trajectories", trajectories, 1, InvalidDemonstrations)
        row = self._make_row(min(self.num_envs, trajectories))
        return [row] * -(-trajectories // row.size)

    def _totalled(
        self, row: "_Row", policy: AnyPolicy, horizon: int, rng: np.random.Generator
    ) -> EpisodeTotals:
        """What one episode in each environment of the row costs."""
        totals = np.zeros((row.size, self.costs.num_costs))
        left = np.full(row.size, self.discount**horizon * self._rest)
        for step in self._played(row, policy, horizon, rng):
            on, behind = step.episodes, self.discount ** (step.time + 1) * self._rest
            totals[on] += self.discount**step.time * step.costs
            totals[on[step.terminated]] += behind * self.costs.after_end
            left[on[step.truncated]] = behind
            left[on[step.terminated]] = 0.0
        return EpisodeTotals(totals, left)

    def _played(
        self, row: "_Row", policy: AnyPolicy, horizon: int, rng: np.random.Generator
    ) -> Iterator[Step]:
        """One episode in each environment of the row, all side by side."""
        actor, seen = Actor(policy, rng), row.reset(rng)
        running = np.ones(row.size, dtype=bool)
        for t in range(horizon):
            chosen = actor.sample(seen, rng)
            self._require_numbers(chosen[running])
            done = self._performed(chosen)
            following, rewards, terminated, truncated = row.step(done, running)
            on = running
            costs = self.costs.at(seen[on], done[on], following[on], rewards[on], terminated[on])
            yield Step(
                t, np.flatnonzero(on), seen[on], chosen[on], following[on], costs, terminated[on],
                truncated[on] & ~terminated[on],
            )  # fmt: skip
            running, seen = on & ~(terminated | truncated), following
            if not running.any():
                break

    def _performed(self, chosen: NDArray[Any]) -> NDArray[Any]:
        """What the environment does for these numbers; those of ended episodes may be any."""
        if self.actions is None:
            return chosen
        return np.asarray(self.actions[np.clip(chosen, 0, len(self.actions) - 1)])

    def _require_numbers(self, chosen: NDArray[Any]) -> None:
        """Refuse actions that a Discrete space or the list lacks; other spaces are left to the
        environment."""
        discrete = self.actions is not None or type(self.action_space).__name__ == "Discrete"
        if not discrete or not chosen.size:
            return
        if self.actions is not None and chosen.dtype.kind not in "iu":
            raise InvalidPolicy(
                f"the policy returns actions of type {chosen.dtype}, and actions are listed",
                "Return the number of an action in the list",
            )
        first, last = self.action_numbers[[0, -1]]
        numbers = np.asarray(chosen, dtype=float)
        wrong = chosen[~((numbers >= first) & (numbers <= last) & (numbers == np.floor(numbers)))]
        if wrong.size:
            raise InvalidPolicy(
                f"the policy takes action {wrong.ravel()[0]}, and the environment has "
                f"{first}..{last}",
                "Give a policy whose actions are those of the environment, numbered alike",
            )

    def __repr__(self) -> str:
        name = self.environment if isinstance(self.environment, str) else "environment by function"
        return f"GymnasiumSimulator({name}, {self.costs!r}, discount {self.discount})"


class _ListRow:
    """Single environments side by side; those whose episode has ended are left alone."""

    def __init__(self, environments: list[Any]) -> None:
        self.environments = environments
        self.size = len(environments)
        self.observation_shape = _shape(environments[0].observation_space)
        self.action_space = environments[0].action_space
        self._seeded = False

    def reset(self, rng: np.random.Generator) -> NDArray[Any]:
        seeds: list[int | None] = [None] * self.size
        if not self._seeded:
            seeds = [int(seed) for seed in rng.integers(LARGEST_SEED, size=self.size)]
        self._seeded = True
        pairs = zip(self.environments, seeds, strict=True)
        return np.stack([np.asarray(one.reset(seed=seed)[0]) for one, seed in pairs])

    def step(self, actions: NDArray[Any], running: BoolArray) -> Seen:
        following: list[Any] = [None] * self.size
        rewards, ends = np.zeros(self.size), np.zeros((2, self.size), dtype=bool)
        for k in np.flatnonzero(running):
            seen, rewards[k], ends[0, k], ends[1, k], _ = self.environments[k].step(actions[k])
            following[k] = np.asarray(seen)
        some = following[int(np.argmax(running))]
        rows = [some if one is None else one for one in following]
        return np.stack(rows), rewards, ends[0], ends[1]

    def close(self) -> None:
        for environment in self.environments:
            environment.close()


class _VectorRow:
    """A vector environment."""

    def __init__(self, environment: Any) -> None:
        mode = environment.metadata.get("autoreset_mode")
        self.mode = str(getattr(mode, "name", mode))
        if self.mode not in ("NEXT_STEP", "DISABLED"):
            raise InvalidWorld(
                f"the vector environment resets itself in mode {self.mode}, which hides the last "
                "observation of an episode",
                "Make it with autoreset_mode NEXT_STEP or DISABLED, or give a single environment",
            )
        self.environment, self.size = environment, int(environment.num_envs)
        self.observation_shape = _shape(environment.single_observation_space)
        self.action_space = environment.single_action_space
        self._seeded = False

    def reset(self, rng: np.random.Generator) -> NDArray[Any]:
        seed = None if self._seeded else int(rng.integers(LARGEST_SEED))
        seen, _ = self.environment.reset(seed=seed)
        self._seeded = True
        self._ended = np.zeros(self.size, dtype=bool)
        return np.array(seen)

    def step(self, actions: NDArray[Any], running: BoolArray) -> Seen:
        if self.mode == "DISABLED" and self._ended.any():
            self.environment.reset(options={"reset_mask": self._ended})
        seen, rewards, terminated, truncated, _ = self.environment.step(actions)
        terminated, truncated = np.array(terminated, bool), np.array(truncated, bool)
        self._ended = terminated | truncated
        return np.array(seen), np.array(rewards, float), terminated, truncated

    def close(self) -> None:
        self.environment.close()


_Row: TypeAlias = _ListRow | _VectorRow


def _made(environment: str | Maker) -> Any:
    if not isinstance(environment, str):
        return environment()
    try:
        import gymnasium
    except ImportError:
        raise MissingExtra("Gymnasium", "gymnasium") from None
    return gymnasium.make(environment, disable_env_checker=True)


def _listed(actions: ArrayLike, space: Any) -> NDArray[Any]:
    """The list of actions, each of which the environment takes."""
    table = np.array(actions, dtype=getattr(space, "dtype", None))
    if table.ndim < 1 or not len(table):
        raise InvalidWorld("actions is empty", "List at least one action of the environment")
    for number, action in enumerate(table):
        if not space.contains(np.asarray(action)):
            raise InvalidWorld(
                f"actions[{number}] = {action.tolist()} is not in {space}",
                "List actions of the environment, each of the shape it takes",
            )
    return read_only(table)


def _shape(space: Any) -> tuple[int, ...]:
    if getattr(space, "shape", None) is None:
        raise InvalidWorld(
            f"observations are from {space}, which is not a space of arrays",
            "Wrap the environment in gymnasium.wrappers.FlattenObservation",
        )
    return tuple(space.shape)
