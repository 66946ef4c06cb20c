"""Least-squares policy iteration: a planner that needs nothing but episodes of a simulator.

    Q(o, a) = <phi(o), theta_a>,   pi(o) = the action of least Q(o, a)
    theta solves   sum over steps of  phi(o, a) (phi(o, a) - g phi(o', pi(o')))' theta
                 = sum over steps of  phi(o, a) c_w,          again and again for its own pi

*Where*: c_w = <w, psi> is the cost that is planned for, g the discount, phi(o, a) the features of o
in the block of action a; behind a terminated step phi is 0, and its cost has g/(1 - g) <w,
after_end> added to it. The steps come from episodes of uniformly random actions, of policies that
know their way about (`guides`), and of the policies found so far, all with some random actions: one
batch, to which every pass adds. A pass improves the policy whose episodes have cost least so far, a
guide or one of its own, a few times; without guides the first one improves random actions. What is
returned is the policy of all passes whose episodes cost least.

*Features*: `RadialFeatures`, Gaussians about observed points that lie far apart, with each
coordinate divided by its standard deviation; one for each state where observations are numbers of
states.

*Guarantee*: with one feature for every state and steps of every pair the policies of a pass are
those of policy iteration in the observed world. With other features there is none: which policy is
best is decided by episodes, and what a mixture of such policies is worth by its own certificate.

*Cost*: `budget` steps of the simulator; n k^2 + (k actions)^3 operations an iteration for n steps
and k features.

Reference: Lagoudakis, Parr, "Least-squares policy iteration", Journal of Machine Learning Research
4, 2003.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import FloatArray, IntArray, assign, read_only, real_array
from journeyman.demonstrations.simulation import Simulator, Steps
from journeyman.errors import InvalidCosts, InvalidSolver
from journeyman.policy.acting import Actor, AnyPolicy, require_policy
from journeyman.policy.linear_values import (
    Features,
    LinearValuePolicy,
    QuadraticFeatures,
    RadialFeatures,
    StateFeatures,
    in_rows,
    in_units,
)
from journeyman.solvers.running import require_count, require_positive

Maker: TypeAlias = Callable[[NDArray[Any], np.random.Generator], Features]
"""From observations and a generator to features."""


class StepSimulator(Simulator, Protocol):
    """A simulator that shows its episodes step by step."""

    @property
    def action_numbers(self) -> IntArray: ...

    def steps(
        self, policy: AnyPolicy, trajectories: int, horizon: int, rng: np.random.Generator
    ) -> Steps: ...


CANDIDATE_CENTRES = 4000
"""Observations that centres are chosen among."""
MOST_SQUARED = 30
"""Numbers of an observation up to which their products are features by default."""
MOST_STATES = 2000
"""That have features of their own."""


def quadratic(observations: NDArray[Any], rng: np.random.Generator) -> Features:
    """Features that fit costs about a point to be kept, such as an upright pole."""
    return QuadraticFeatures(*_spread(observations))


@dataclass(frozen=True)
class Radial:
    """Features that fit anything near the observed points, the more the closer they lie.

    Args:
        centres: how many points at most; each lies as far from those before as one can.
        overlap: width of the Gaussians, in the largest distance to the nearest centre.
    """

    centres: int = 100
    overlap: float = 1.0

    def __call__(self, observations: NDArray[Any], rng: np.random.Generator) -> Features:
        mean, scale = _spread(observations)
        some = rng.permutation(len(observations))[:CANDIDATE_CENTRES]
        z = in_units(observations[some], mean, scale)
        chosen, apart = [0], ((z - z[0]) ** 2).sum(axis=1)
        while len(chosen) < self.centres and apart.max() > 0:
            chosen.append(int(np.argmax(apart)))
            apart = np.minimum(apart, ((z - z[chosen[-1]]) ** 2).sum(axis=1))
        reach = float(np.sqrt(apart.max())) or 1.0
        return RadialFeatures(mean, scale, z[chosen], self.overlap * reach)


def by_state(observations: NDArray[Any], rng: np.random.Generator) -> Features:
    """One feature for every state that was observed, by its number."""
    states = np.unique(observations)
    if states.size > MOST_STATES:
        raise InvalidSolver(
            f"{states.size} states were observed, more than the {MOST_STATES} that can have "
            "features of their own",
            "Give LeastSquaresPlanner(..., features=[...]): functions of (states, generator) that "
            "return a function from n states to (n x features)",
        )
    return StateFeatures(states)


def _spread(observations: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    rows = in_rows(observations).astype(np.float64)
    scale = rows.std(axis=0)
    return rows.mean(axis=0), np.where(scale > 0, scale, 1.0)


EXPLORING, TRYING, FITTING = 0x6578706C, 0x74727969, 0x66697474
"""Which of a seed's streams random actions, trials and features are drawn from."""
NOISE = (0.05, 0.2, 0.6)
"""How often explorers do something at random, one after the other."""
HELD = 8
"""Steps that a random action is held for, on average: single ones cancel out."""


@dataclass(frozen=True, eq=False)
class LeastSquaresPlanner:
    """A planner for `PolicyMixture(..., planner=...)`: least-squares policy iteration.

    Args:
        horizon: steps after which an episode is cut off.
        guides: policies that are worth learning from and improving, such as a clone of the
            demonstrations.
        features: makers of features from observations and a generator, used in turn; by default
            `quadratic` and `Radial()`, or `by_state` where observations are numbers of states.
        trials: episodes by which a policy is judged.
        improvements: of the policy in every pass.
        ridge: added to the diagonal of the equations, per step.
    """

    horizon: int
    guides: Sequence[AnyPolicy] = ()
    features: Sequence[Maker] | None = None
    trials: int = 8
    improvements: int = 3
    ridge: float = 1e-7

    def __post_init__(self) -> None:
        for name in ("horizon", "trials", "improvements"):
            require_count(name, getattr(self, name))
        require_positive("ridge", self.ridge)
        assign(self, guides=tuple(require_policy(guide) for guide in self.guides))
        if self.features is not None:
            assign(self, features=tuple(self.features))
            if not self.features or not all(callable(one) for one in self.features):
                raise InvalidSolver(
                    f"features = {self.features!r}",
                    "Give functions of (observations, generator), or leave it out",
                )

    def guided_by(self, policy: AnyPolicy) -> "LeastSquaresPlanner":
        """The same planner with one more guide: a mixture names its candidate that costs least."""
        if any(policy is guide for guide in self.guides):
            return self
        return replace(self, guides=(*self.guides, policy))

    def __call__(
        self, cost_weights: ArrayLike, simulator: Any, budget: int, seed: int
    ) -> LinearValuePolicy:
        """A policy that is good for the cost <w, psi>, from `budget` steps of the simulator or a
        few episodes more."""
        require_count("budget", budget)
        require_count("seed", seed, least=0)
        weights = real_array(
            "cost_weights", cost_weights, ndim=1, size=len(simulator.names), refusal=InvalidCosts
        )
        if not hasattr(simulator, "steps"):
            raise InvalidSolver(
                f"a {type(simulator).__name__} has no steps(policy, trajectories, horizon, rng)",
                "Give a GymnasiumSimulator, a world, or a simulator that has totals and steps",
            )
        return _Search(self, weights, simulator, budget, seed).run()


class _Search:
    """All steps so far, and the best policy."""

    def __init__(
        self,
        planner: LeastSquaresPlanner,
        weights: FloatArray,
        simulator: StepSimulator,
        budget: int,
        seed: int,
    ) -> None:
        self.planner, self.weights, self.simulator, self.budget = (
            planner, weights, simulator, budget,
        )  # fmt: skip
        self.seed = seed
        self.exploring, self.fitting = (self._stream(one) for one in (EXPLORING, FITTING))
        self.actions = simulator.action_numbers
        self.parts: list[Steps] = []
        self.best: LinearValuePolicy | None = None
        self.least = np.inf
        self.guide: AnyPolicy | None = None
        self.guided = np.inf
        self.explored = 0
        if self.actions[0] < 0:
            raise InvalidSolver(
                f"actions are numbered from {self.actions[0]}",
                "Wrap the environment so that they are numbered from 0",
            )

    def run(self) -> LinearValuePolicy:
        share, number = max(1, self.budget // 10), 0
        for guide in self.planner.guides:
            cost = self._tried(guide)
            if cost < self.guided:
                self.guide, self.guided = guide, cost
        while not self.best or self.used < self.budget:
            self._explore(share)
            makers = self._makers
            self._pass(makers[number % len(makers)])
            number += 1
        return self.best

    @property
    def _makers(self) -> Sequence[Maker]:
        if self.planner.features is not None:
            return self.planner.features
        if self.simulator.observation_axes == 0:
            return (by_state,)
        is_small = math.prod(self.parts[0].observations.shape[1:]) <= MOST_SQUARED
        return (quadratic, Radial()) if is_small else (Radial(),)

    def _stream(self, which: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(which,)))

    @property
    def used(self) -> int:
        return sum(len(part) for part in self.parts)

    def _explore(self, steps: int) -> None:
        """Episodes of random actions, of guides and of the best policy, in turn."""
        leaders: list[AnyPolicy | None] = [None, *self.planner.guides]
        leaders += [] if self.best is None else [self.best] * max(1, len(self.planner.guides))
        until = self.used + steps
        while self.used < until:
            leader = leaders[self.explored % len(leaders)]
            noise = NOISE[self.explored // len(leaders) % len(NOISE)]
            rule = _Explorer(leader, self.actions, noise)
            trials, horizon = self.planner.trials, self.planner.horizon
            self.parts.append(self.simulator.steps(rule, trials, horizon, self.exploring))
            self.explored += 1

    def _pass(self, maker: Maker) -> None:
        """Improve the cheapest policy a few times over features of its own; keep what is better."""
        steps = Steps.joined(self.parts)
        features = maker(steps.observations, self.fitting)
        equations = _Equations(steps, features, self._costs(steps), self.simulator, self.planner)
        policy = self.guide if self.guided < self.least else self.best
        before = None
        for _ in range(self.planner.improvements):
            following = self._chosen(policy, steps.following)
            if before is not None and np.array_equal(following, before):
                break
            before = following
            coefficients = equations.solve(following)
            policy = LinearValuePolicy(
                features, coefficients, int(self.actions[0]), self.simulator.observation_axes
            )
        assert isinstance(policy, LinearValuePolicy)
        cost = self._tried(policy)
        if cost < self.least or self.best is None:
            self.best, self.least = policy, cost

    def _chosen(self, policy: AnyPolicy | None, observations: NDArray[Any]) -> IntArray:
        """Numbers from 0 of the actions that a policy takes, or of any."""
        if policy is None:
            return self.fitting.integers(len(self.actions), size=len(observations))
        if isinstance(policy, LinearValuePolicy):
            return policy.least(observations)
        return np.asarray(Actor(policy, self.fitting).sample(observations) - self.actions[0])

    def _tried(self, policy: AnyPolicy) -> float:
        """What episodes of a policy cost; they are learned from, too."""
        rng = self._stream(TRYING)
        found = self.simulator.steps(policy, self.planner.trials, self.planner.horizon, rng)
        self.parts.append(found)
        return self._mean(found)

    def _costs(self, steps: Steps) -> FloatArray:
        """Of every step, with all that a terminated one leaves behind."""
        behind = self.simulator.discount / (1.0 - self.simulator.discount)
        after_end = getattr(getattr(self.simulator, "costs", None), "after_end", None)
        rest = 0.0 if after_end is None else float(self.weights @ after_end)
        return np.asarray(steps.costs @ self.weights + steps.terminated * behind * rest)

    def _mean(self, steps: Steps) -> float:
        """The mean total of episodes, behind whose cut-off ends the last step is repeated: a
        policy must not seem better for what nobody saw."""
        discount, costs = self.simulator.discount, self._costs(steps)
        lengths = np.diff(steps.offsets)
        times = np.arange(len(steps)) - np.repeat(steps.offsets[:-1], lengths)
        totals = np.add.reduceat(costs * discount**times, steps.offsets[:-1])
        last = steps.offsets[1:] - 1
        cut = ~steps.terminated[last] * discount**lengths / (1.0 - discount)
        return float((totals + cut * costs[last]).mean())


class _Explorer:
    """Follow a leader, or nobody, and hold a random action now and then."""

    def __init__(self, leader: AnyPolicy | None, actions: IntArray, noise: float) -> None:
        self.leader, self.actions, self.noise = leader, actions, noise
        self.actor: Actor | None = None
        self.left = self.held = np.zeros(0, dtype=np.int64)

    def __call__(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        count = len(observations)
        if self.left.size != count:  # the first step
            self.left, self.held = np.zeros(count, np.int64), np.zeros(count, np.int64)
            self.actor = None if self.leader is None else Actor(self.leader, rng)
        begins = (self.left == 0) & (rng.random(count) < self.noise / (1 if not self.actor else 4))
        self.held = np.where(begins, rng.integers(len(self.actions), size=count), self.held)
        self.left = np.where(begins, rng.geometric(1 / HELD, size=count), self.left)
        free = (
            self.actions[rng.integers(len(self.actions), size=count)]
            if self.actor is None
            else self.actor.sample(observations, rng)
        )
        chosen = np.where(self.left > 0, self.actions[self.held], free)
        self.left = np.maximum(self.left - 1, 0)
        return np.asarray(chosen)


class _Equations:
    """The linear equations of one batch of steps, for whatever is done next."""

    def __init__(
        self,
        steps: Steps,
        features: Features,
        costs: FloatArray,
        simulator: StepSimulator,
        planner: LeastSquaresPlanner,
    ) -> None:
        numbers = steps.actions - simulator.action_numbers[0]
        self.count = simulator.action_numbers.size
        self.rows = [np.flatnonzero(numbers == action) for action in range(self.count)]
        self.now, self.then = features(steps.observations), features(steps.following)
        self.then[steps.terminated] = 0.0
        self.size, self.discount = self.now.shape[1], simulator.discount
        whole = self.count * self.size
        self.fixed, self.right = np.zeros((whole, whole)), np.zeros(whole)
        for action, rows in enumerate(self.rows):
            block = slice(action * self.size, (action + 1) * self.size)
            self.fixed[block, block] = self.now[rows].T @ self.now[rows]
            self.right[block] = self.now[rows].T @ costs[rows]
        self.fixed[np.diag_indices(whole)] += planner.ridge * len(steps)

    def solve(self, following: IntArray) -> FloatArray:
        """(features x actions) for the policy that does `following` at the next observations."""
        matrix = self.fixed.copy()
        for action, rows in enumerate(self.rows):
            for later in range(self.count):
                some = rows[following[rows] == later]
                matrix[
                    action * self.size : (action + 1) * self.size,
                    later * self.size : (later + 1) * self.size,
                ] -= self.discount * (self.now[some].T @ self.then[some])
        found, *_ = np.linalg.lstsq(matrix, self.right, rcond=None)
        return read_only(found.reshape(self.count, self.size).T.copy())
