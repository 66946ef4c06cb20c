"""Episodes by simulation, and their discounted totals: all that a guarantee needs of rollouts.

    total_i = sum_{t < T} discount^t psi_i,t,       unrecorded = discount^T/(1 - discount)

of every episode, with unrecorded = 0 where the costs behind its end are known and were added. A
`Simulator` is anything that makes such totals for a policy: a world that can be walked in, or an
environment of another package. States, actions and observations are its own affair.

In a world of callables all walks take a step together, so the cost is that of `horizon` vectorised
calls. Nothing ends early there: such a world does not say which states are absorbing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import BoolArray, FloatArray, IntArray, assign, real_array, require_whole
from journeyman.costs.functions import CostFunctions, StepCosts
from journeyman.demonstrations.demonstrations import Demonstrations, flags
from journeyman.errors import InvalidCosts, InvalidDemonstrations
from journeyman.execution import Executor, Serial
from journeyman.policy.acting import Actor, AnyPolicy, StatePolicy, asked_by_predict
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.world.large_world import AnyWorld, effective_horizon_of, first_states, sampled_step
from journeyman.world.laws import discount as checked_discount


def record_walks(
    world: AnyWorld, expert: StatePolicy, trajectories: int, horizon: int, rng: np.random.Generator
) -> Demonstrations:
    """Independent trajectories of exactly `horizon` steps."""
    states = np.empty((trajectories, horizon + 1), dtype=np.int64)
    actions = np.empty((trajectories, horizon), dtype=np.int64)
    states[:, 0] = first_states(world, rng, trajectories)
    for t in range(horizon):
        actions[:, t], states[:, t + 1] = _step(world, expert, states[:, t], rng)
    offsets = np.arange(trajectories + 1) * horizon
    return Demonstrations(states.ravel(), actions.ravel(), offsets)


def walk_totals(
    world: AnyWorld,
    policy: StatePolicy,
    costs: CostFunctions,
    trajectories: int,
    horizon: int,
    rng: np.random.Generator,
) -> FloatArray:
    """sum_{t < horizon} discount^t psi(x_t, a_t) of independent walks, (walks x costs)."""
    here = first_states(world, rng, trajectories)
    totals = np.zeros((trajectories, costs.num_costs))
    for t in range(horizon):
        actions, following = _step(world, policy, here, rng)
        totals += world.discount**t * costs.at(here, actions)
        here = following
    return totals


def _step(
    world: AnyWorld, policy: StatePolicy, here: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    actions = np.asarray(policy.sample(here, rng))
    return actions, sampled_step(world, rng, here, actions)


EPISODES_PER_TASK = 1 << 10
"""Episodes of one task."""
EXPERT = 0x65787074
"""Which of a seed's streams experts are recorded from."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class EpisodeTotals:
    """What independent episodes cost.

    Args:
        totals: (episodes x costs), discounted.
        unrecorded: discounted time without a record, per episode or for all of them. It has to be
            given: discount^T/(1 - discount) behind T recorded steps, and 0 only where the costs of
            all time are in the total.

    >>> EpisodeTotals([[2.0, 1.0], [4.0, 0.0]], unrecorded=0).mean.tolist()
    [3.0, 0.5]
    """

    totals: FloatArray
    unrecorded: FloatArray

    def __init__(self, totals: ArrayLike, unrecorded: ArrayLike | None = None) -> None:
        if unrecorded is None:
            raise InvalidDemonstrations(
                "unrecorded is not given, so nobody knows whether the totals are complete",
                "Give unrecorded=discount**T/(1 - discount) for T recorded steps (one number, or "
                "one per episode), or unrecorded=0 if nothing is missing behind any record",
            )
        table = real_array("totals", totals, ndim=2, refusal=InvalidDemonstrations)
        if 0 in table.shape:
            raise InvalidDemonstrations(
                f"totals is empty (shape {table.shape})",
                "Give one row per episode and one column per cost",
            )
        given = np.full(len(table), unrecorded) if np.ndim(unrecorded) == 0 else unrecorded
        left = real_array(
            "unrecorded", given, ndim=1, size=len(table), refusal=InvalidDemonstrations
        )
        if (left < 0).any():
            episode = int(np.argmax(left < 0))
            raise InvalidDemonstrations(
                f"unrecorded[{episode}] = {left[episode]}",
                "Give discount^T/(1 - discount) for T recorded steps, or 0",
            )
        assign(self, totals=table, unrecorded=left)

    @classmethod
    def of_episodes(
        cls,
        observations: Sequence[ArrayLike],
        actions: Sequence[ArrayLike],
        terminated: ArrayLike,
        costs: StepCosts,
        discount: float,
        rewards: Sequence[ArrayLike] | None = None,
    ) -> Self:
        """Recorded episodes of any observations and actions, continuous ones too.

            total = sum_{t < T} discount^t psi_t (+ discount^T/(1 - discount) after_end, terminated)

        Args:
            observations: one array per episode, with a row for each of its T + 1 observations.
            actions: one array per episode, with a row for each of its T actions.
            terminated: for each episode whether it ended by itself; the others were cut off, and
                what they cost from there on is unrecorded.
            costs: what a step costs.
            discount: gamma.
            rewards: one array of T numbers per episode, for costs that look at them; not a number
                where none are given, so that such costs are refused.

        >>> costs = StepCosts(lambda o, a, after, r, end: np.column_stack([abs(after[:, 0]), a**2]),
        ...                   ["off", "effort"], lowest=0, highest=1)
        >>> seen, done = [[0.0], [0.5], [1.0]], [[0.5], [1.0]]
        >>> EpisodeTotals.of_episodes([seen], [done], [True], costs, 0.5).totals.tolist()
        [[1.0, 0.75]]
        """
        if not isinstance(costs, StepCosts):
            raise InvalidDemonstrations(
                f"costs is a {type(costs).__name__}",
                "Give jm.costs.StepCosts(function, names, lowest=..., highest=...)",
            )
        gamma = checked_discount(discount)
        counts = {len(observations), len(actions), np.size(terminated)}
        counts |= set() if rewards is None else {len(rewards)}
        if len(counts) > 1 or not len(observations):
            raise InvalidDemonstrations(
                f"{len(observations)} arrays of observations, {len(actions)} of actions and "
                f"{np.size(terminated)} ends",
                "Give all of them for each episode",
            )
        found, left = [], []
        for episode, ended in enumerate(flags(np.ravel(np.asarray(terminated)), len(observations))):
            seen = _recorded(observations, "observations", episode)
            done = _recorded(actions, "actions", episode)
            count = len(done) if done.ndim else 0
            paid = np.full(count, np.nan)
            if rewards is not None:
                paid = _recorded(rewards, "rewards", episode, float)
            if not count or seen.ndim == 0 or len(seen) != count + 1 or paid.shape != (count,):
                raise InvalidDemonstrations(
                    f"episode {episode} has observations of shape {seen.shape}, actions of shape "
                    f"{done.shape} and rewards of shape {paid.shape}",
                    "Give one observation more than actions, at least one action, and a reward for "
                    "each if any",
                )
            ends = np.zeros(count, dtype=bool)
            ends[-1] = ended
            steps = _costs_of(costs, episode, seen, done, paid, ends)
            behind = gamma**count / (1.0 - gamma)
            found.append(gamma ** np.arange(count) @ steps + ended * behind * costs.after_end)
            left.append(0.0 if ended else behind)
        return cls(np.array(found), np.array(left))

    def __len__(self) -> int:
        return len(self.totals)

    @property
    def mean(self) -> FloatArray:
        """Mean totals, unrecorded tails at zero."""
        return np.asarray(self.totals.mean(axis=0))

    @classmethod
    def joined(cls, parts: Sequence["EpisodeTotals"]) -> "EpisodeTotals":
        """One record of all episodes, in their order."""
        return cls(
            np.vstack([part.totals for part in parts]),
            np.concatenate([part.unrecorded for part in parts]),
        )

    def __repr__(self) -> str:
        episodes, costs = self.totals.shape
        return f"EpisodeTotals({episodes} episodes, {costs} costs)"


def _recorded(
    episodes: Sequence[ArrayLike], name: str, episode: int, kind: type | None = None
) -> NDArray[Any]:
    """What was recorded of an episode, as an array."""
    try:
        return np.asarray(episodes[episode], dtype=kind)
    except (TypeError, ValueError) as fault:
        raise InvalidDemonstrations(
            f"the {name} of episode {episode} are no array ({fault})",
            "Give rows of one shape, a row for each step",
        ) from fault


def _costs_of(
    costs: StepCosts,
    episode: int,
    seen: NDArray[Any],
    done: NDArray[Any],
    paid: FloatArray,
    ends: BoolArray,
) -> FloatArray:
    """What the steps of an episode cost; what is refused is named by the episode."""
    try:
        return costs.at(seen[:-1], done, seen[1:], paid, ends)
    except InvalidCosts as fault:
        remedy = fault.remedy
        if np.isnan(paid).any():
            remedy += "; if it looks at rewards, give EpisodeTotals.of_episodes(..., rewards=...)"
        raise InvalidCosts(f"episode {episode}: {fault.what}", remedy) from fault


class Step(NamedTuple):
    """What n episodes that run side by side did at one time."""

    time: int
    episodes: IntArray
    observations: NDArray[Any]
    actions: NDArray[Any]
    following: NDArray[Any]
    costs: FloatArray
    terminated: BoolArray
    truncated: BoolArray


@dataclass(frozen=True, eq=False)
class Steps:
    """Episodes step by step, one after the other: what planners learn from."""

    observations: NDArray[Any]
    actions: NDArray[Any]
    following: NDArray[Any]
    """What was observed after each step."""
    costs: FloatArray
    """(steps x costs)"""
    terminated: BoolArray
    """Whether the episode ended by itself with this step."""
    offsets: IntArray
    """Of the episodes, as in `Demonstrations`."""

    @classmethod
    def sorted(cls, played: Iterable[Step]) -> Self:
        """From what all episodes did at each time."""
        steps = list(played)
        episodes = np.concatenate([step.episodes for step in steps])
        order = np.argsort(episodes, kind="stable")
        arrays = {
            name: np.concatenate([getattr(step, name) for step in steps])[order]
            for name in STEP_ARRAYS
        }
        return cls(**arrays, offsets=_offsets(np.bincount(episodes)))

    @classmethod
    def joined(cls, parts: Sequence["Steps"]) -> Self:
        """All episodes of all parts."""
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in STEP_ARRAYS
        }
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(**arrays, offsets=_offsets(lengths))

    def first(self, episodes: int) -> Self:
        """As many episodes as asked for."""
        offsets = self.offsets[: episodes + 1]
        arrays = {name: getattr(self, name)[: offsets[-1]] for name in STEP_ARRAYS}
        return type(self)(**arrays, offsets=offsets)

    def __len__(self) -> int:
        return len(self.actions)

    def demonstrations(self) -> Demonstrations:
        """The same episodes without their costs."""
        ends = self.offsets[1:]
        states = np.insert(self.observations, ends, self.following[ends - 1], axis=0)
        return Demonstrations(states, self.actions, self.offsets, self.terminated[ends - 1])


STEP_ARRAYS = ("observations", "actions", "following", "costs", "terminated")


def _offsets(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)])


class Simulator(Protocol):
    """Runs episodes of a policy and adds up their discounted costs.

    - `names`, `lowest`, `highest`: of the costs; every step lies in the declared ranges, those
      behind the end of an episode included.
    - `discount`, and `observation_axes`: 0 when policies are shown state ids, 1 for vectors.
    - `totals(policy, trajectories, horizon, rng)`: independent episodes of at most `horizon` steps,
      with no randomness but that of `rng` and the policy.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def lowest(self) -> FloatArray: ...

    @property
    def highest(self) -> FloatArray: ...

    @property
    def discount(self) -> float: ...

    @property
    def observation_axes(self) -> int: ...

    def totals(
        self, policy: AnyPolicy, trajectories: int, horizon: int, rng: np.random.Generator
    ) -> EpisodeTotals: ...


Stream = tuple[int, ...]
"""Which of a seed's streams: a spawn key, to which the first episode of a task is added."""


def simulate(
    simulator: Simulator,
    policies: Sequence[tuple[AnyPolicy, Stream]],
    trajectories: int,
    horizon: int,
    seed: int,
    executor: Executor | None = None,
) -> list[EpisodeTotals]:
    """Episodes of several policies, each from a stream of its own.

    Tasks are of a fixed size and have streams of their own, so nothing depends on the executor.
    """
    firsts = range(0, trajectories, EPISODES_PER_TASK)
    tasks = [
        (which, (*stream, first), min(EPISODES_PER_TASK, trajectories - first), horizon, seed)
        for which, (_, stream) in enumerate(policies)
        for first in firsts
    ]
    shared = (simulator, tuple(policy for policy, _ in policies))
    run = _executor_for([policy for policy, _ in policies], executor)
    parts = run.map(_task, tasks, shared=shared)
    count = len(firsts)
    return [
        EpisodeTotals.joined(parts[which * count : (which + 1) * count])
        for which in range(len(policies))
    ]


def record_totals(
    simulator: Simulator,
    expert: AnyPolicy,
    *,
    trajectories: int,
    horizon: int,
    seed: int,
    executor: Executor | None = None,
) -> EpisodeTotals:
    """Demonstrations of an expert in a simulator, as their discounted totals."""
    for name, value, least in (
        ("trajectories", trajectories, 1), ("horizon", horizon, 1), ("seed", seed, 0),
    ):  # fmt: skip
        require_whole(name, value, least, InvalidDemonstrations)
    policies = [(expert, (EXPERT,))]
    return simulate(simulator, policies, trajectories, horizon, seed, executor)[0]


def _executor_for(policies: Sequence[AnyPolicy], executor: Executor | None) -> Executor:
    """`executor`, or one task after the other where a policy may have its own stream.

    Workers would have copies of that stream: their episodes would share their luck, and not be
    independent.
    """
    if executor is None or any(has_own_stream(policy) for policy in policies):
        return Serial()
    return executor


def has_own_stream(policy: AnyPolicy) -> bool:
    """Whether it may draw from something else than the generator of the rollout."""
    if isinstance(policy, MixturePolicy):
        return any(has_own_stream(candidate) for candidate in policy.candidates)
    return asked_by_predict(policy) and not hasattr(policy, "seeded")


def _task(
    task: tuple[int, Stream, int, int, int], shared: tuple[Simulator, tuple[AnyPolicy, ...]]
) -> EpisodeTotals:
    (which, stream, count, horizon, seed), (simulator, policies) = task, shared
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))
    return simulator.totals(policies[which], count, horizon, rng)


class StatedCosts:
    """Names and ranges of a simulator's costs, where its `costs` state them."""

    costs: CostFunctions | StepCosts

    @property
    def names(self) -> tuple[str, ...]:
        return self.costs.names

    @property
    def lowest(self) -> FloatArray:
        return self.costs.lowest

    @property
    def highest(self) -> FloatArray:
        return self.costs.highest


@dataclass(frozen=True, eq=False)
class WorldSimulator(StatedCosts):
    """A world with costs as a simulator: walks of exactly `horizon` steps; policies are shown state
    ids."""

    world: AnyWorld
    costs: CostFunctions

    @property
    def discount(self) -> float:
        return self.world.discount

    @property
    def observation_axes(self) -> int:
        return 0

    def totals(
        self, policy: AnyPolicy, trajectories: int, horizon: int, rng: np.random.Generator
    ) -> EpisodeTotals:
        """Totals of walks, all of which are cut off after `horizon` steps."""
        actor = Actor(policy, rng)
        totals = walk_totals(self.world, actor, self.costs, trajectories, horizon, rng)
        return EpisodeTotals(totals, self.discount**horizon * effective_horizon_of(self.world))

    def steps(
        self, policy: AnyPolicy, trajectories: int, horizon: int, rng: np.random.Generator
    ) -> Steps:
        """The same walks step by step, for planners."""
        return Steps.sorted(self._walked(Actor(policy, rng), trajectories, horizon, rng))

    @property
    def action_numbers(self) -> IntArray:
        """The actions that policies choose from."""
        return np.arange(self.world.num_actions)

    def _walked(
        self, actor: Actor, trajectories: int, horizon: int, rng: np.random.Generator
    ) -> Iterator[Step]:
        here, everyone = first_states(self.world, rng, trajectories), np.arange(trajectories)
        never = np.zeros(trajectories, dtype=bool)
        for t in range(horizon):
            actions, following = _step(self.world, actor, here, rng)
            costs = self.costs.at(here, actions)
            yield Step(t, everyone, here, actions, following, costs, never, never)
            here = following
