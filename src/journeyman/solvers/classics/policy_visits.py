"""Whether a policy's visits are solved for or drawn: one choice for all policy-gradient methods."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, IntArray, Matrix, SparseMatrix, dense
from journeyman.policy.policy_evaluation import DiscountedSystem, averaging
from journeyman.problem import Apprenticeship
from journeyman.solvers.running import require_count
from journeyman.world.sampling import walk

REDUCTION = 1e-9
"""Solves reduce the residual of their starting point by this factor; answers are recomputed."""


@dataclass(frozen=True, eq=False)
class ExactVisits:
    """A policy's law per pair and its occupancy measure; `system` evaluates it."""

    evaluator: "ExactEvaluator"
    law: FloatArray
    measure: FloatArray
    system: DiscountedSystem = field(repr=False)

    @property
    def difference(self) -> FloatArray:
        """Psi' mu - target."""
        return self.evaluator.problem.difference(self.measure)

    def advantages(self, cost: FloatArray) -> FloatArray:
        """A per pair for a cost per pair."""
        world = self.evaluator.problem.world
        values = self.evaluator.values_of(self.system, world.pairs.total(self.law * cost))
        later = world.discount * (world.transition @ values)
        return np.asarray(cost + later - world.pairs.spread(values))

    def signal(self, cost: FloatArray) -> FloatArray:
        """mu A per pair: what a policy gradient sums up."""
        return self.measure * self.advantages(cost)

    def change(self, costs: Matrix, law: FloatArray) -> FloatArray:
        """How much more the policy `law` costs in each column of `costs` (pairs x columns)."""
        return np.asarray(costs.T @ (self.evaluator.visits(law).measure - self.measure))


class ExactEvaluator:
    """Evaluates policies one after the other; each solve starts from the solution before.

        mu(x, a) = nu(x) pi(a | x),           (I - discount P_pi)' nu = initial
        A(x, a)  = c(x, a) + discount (P V)(x, a) - V(x),      (I - discount P_pi) V = sum_a pi c

    The gradient of <mu_theta, c> is sum over pairs of mu A grad log pi (the policy gradient
    theorem): `signal` is mu A. Cost: a solve for each policy, and one for each cost whose signal is
    asked.
    """

    def __init__(self, problem: Apprenticeship) -> None:
        self.problem = problem
        self.steps = 0
        """Transitions drawn: none."""
        world = problem.world
        self.values = np.zeros(world.num_states)
        """Of the last cost and policy: a dual point costs nothing more."""
        self._states = world.initial * world.effective_horizon
        self._last: ExactVisits | None = None

    def visits(self, law: FloatArray) -> ExactVisits:
        """What the policy with this law does; the last answer is kept."""
        if self._last is None or self._last.law is not law:
            world = self.problem.world
            system = DiscountedSystem(
                averaging(world, law) @ world.transition, world.discount, forward=world.is_forward
            )
            solved = system.solve(
                world.initial, transposed=True, guess=self._states, reduction=REDUCTION
            )
            self._states = np.maximum(solved.x, 0.0)
            measure = world.pairs.spread(self._states) * law
            self._last = ExactVisits(self, law, measure, system)
        return self._last

    def values_of(self, system: DiscountedSystem, cost: FloatArray) -> FloatArray:
        """The values of a cost per state."""
        self.values = system.solve(cost, guess=self.values, reduction=REDUCTION).x
        return self.values


REMAINDER = 0.01
"""The default horizon leaves this share of the discounted time out."""


def default_horizon(discount: float) -> int:
    """Steps after which the discount is REMAINDER.

    >>> default_horizon(0.95)
    90
    """
    return max(1, int(np.ceil(np.log(REMAINDER) / np.log(discount))))


@dataclass(frozen=True, eq=False)
class RolloutVisits:
    """Walks of one policy: the pair of every step (times x walks), lengths, and the last state."""

    problem: Apprenticeship
    law: FloatArray
    pairs: IntArray = field(repr=False)
    lengths: IntArray = field(repr=False)
    last: IntArray = field(repr=False)

    @property
    def num_walks(self) -> int:
        return int(self.lengths.size)

    @cached_property
    def measure(self) -> FloatArray:
        """The estimated occupancy measure."""
        counted = np.bincount(self.pairs.ravel(), self._weights.ravel(), self.law.size)
        return np.asarray(counted + self._resting_pairs(self.law))

    @cached_property
    def difference(self) -> FloatArray:
        """Psi' mu^ - target."""
        return self.problem.difference(self.measure)

    def signal(self, cost: FloatArray) -> FloatArray:
        """The sum, per pair, of what a policy gradient weights scores with."""
        rows, table = self._signals(cost[:, np.newaxis])
        signal = np.zeros(self.law.size)
        signal[rows] = table[:, 0]
        return signal

    def change(self, costs: Matrix, law: FloatArray) -> FloatArray:
        """How much more the policy `law` costs in each column of `costs`, to first order."""
        known = costs is self.problem.cost_matrix
        rows, table = self._signals_in_basis if known else self._signals(costs)
        return np.asarray((law[rows] / self.law[rows] - 1.0) @ table)

    def returns(self, costs: Matrix) -> FloatArray:
        """R_t of every step and cost (times x walks x costs); of a walk at rest, what rest costs.

        In an absorbing state that is the same at any time.
        """
        discount, tail = self.problem.world.discount, self._rest(costs)
        found = dense(costs[self.pairs.ravel()]).reshape(*self.pairs.shape, costs.shape[1])
        later = tail
        for time in range(len(found) - 1, -1, -1):
            going = self._present[time][:, np.newaxis]
            later = np.where(going, found[time] + discount * later, tail)
            found[time] = later
        return found

    def _above_baseline(self, costs: Matrix) -> FloatArray:
        """R_t - b_t of every step and cost (times x walks x costs)."""
        left = self.returns(costs)
        if self.num_walks == 1:
            return left
        total = left.sum(axis=1, keepdims=True)
        return np.asarray(left - (total - left) / (self.num_walks - 1))

    @cached_property
    def _signals_in_basis(self) -> tuple[IntArray, FloatArray]:
        return self._signals(self.problem.cost_matrix)

    def _signals(self, costs: Matrix) -> tuple[IntArray, FloatArray]:
        """The pairs that were seen, and the signal of each cost there (pairs seen x costs)."""
        resting = self._resting_pairs(self.law)
        steps, rest = self.pairs[self._present], np.flatnonzero(resting)
        rows, place = np.unique(np.concatenate([steps, rest]), return_inverse=True)
        weighted = self._weights[..., np.newaxis] * self._above_baseline(costs)
        joined = sparse.csr_array(
            (np.ones(steps.size), (place[: steps.size], np.arange(steps.size))),
            shape=(rows.size, steps.size),
        )
        mean = self._averaging[self.problem.world.pairs.states[rows]] @ costs
        now = dense(costs[rows]) - dense(mean)
        table = joined @ weighted[self._present] + resting[rows][:, np.newaxis] * now
        return rows, np.asarray(table)

    @cached_property
    def _present(self) -> BoolArray:
        return np.arange(len(self.pairs))[:, np.newaxis] < self.lengths

    @cached_property
    def _weights(self) -> FloatArray:
        """discount^t / walks of every step, zero where there is none."""
        discounts = self.problem.world.discount ** np.arange(len(self.pairs), dtype=float)
        return np.where(self._present, discounts[:, np.newaxis] / self.num_walks, 0.0)

    @cached_property
    def _averaging(self) -> SparseMatrix:
        return averaging(self.problem.world, self.law)

    def _resting_pairs(self, law: FloatArray) -> FloatArray:
        """The discounted mass at rest in absorbing states, spread by a law over their actions."""
        world = self.problem.world
        rest = world.discount ** self.lengths.astype(float) * world.effective_horizon
        kept = np.where(world.absorbing[self.last], rest / self.num_walks, 0.0)
        mass = np.asarray(np.bincount(self.last, kept, world.num_states), dtype=float)
        return np.asarray(world.pairs.spread(mass) * law)

    def _rest(self, costs: Matrix) -> FloatArray:
        """What walks that have come to rest cost from then on; zero for the others."""
        world = self.problem.world
        rest = dense(self._averaging[self.last] @ costs)
        resting = world.absorbing[self.last][:, np.newaxis]
        return np.where(resting, rest * world.effective_horizon, 0.0)


class RolloutEvaluator:
    """Draws walks of one policy after the other and counts their steps.

        mu^(x, a) = mean over walks of sum_t discount^t 1{x_t = x, a_t = a}
        signal    = mean over walks of sum_t discount^t (R_t - b_t) 1{(x_t, a_t) = (x, a)}

    where R_t is the discounted cost from time t on and b_t, the baseline, the mean of R_t over the
    *other* walks, which does not depend on the action taken: the gradient sum signal grad log pi is
    unbiased up to the horizon. A walk that has come to rest in an absorbing state is continued by
    its expectation, which is known: there the policy decides about its own costs only.

    Another policy's costs are estimated from the same walks by the ratio of probabilities,

        change(pi') = mean of sum_t discount^t (pi'(a_t | x_t)/pi(a_t | x_t) - 1)(R_t - b_t),

    the surrogate of trust-region methods: exact to first order. Cost: the walks, times the costs.
    """

    def __init__(
        self, problem: Apprenticeship, rollouts: int, horizon: int | None, seed: int
    ) -> None:
        self.problem = problem
        self.steps = 0
        """Transitions drawn so far."""
        self._rollouts = rollouts
        self._horizon = default_horizon(problem.world.discount) if horizon is None else horizon
        self._rng = np.random.default_rng(seed)

    def visits(self, law: FloatArray) -> RolloutVisits:
        """New walks of the policy with this law."""
        world = self.problem.world
        walks = walk(world, law, self._rollouts, self._horizon, self._rng)
        self.steps += int(walks.lengths.sum())
        ends = np.cumsum(walks.lengths + 1) - 1
        pairs = np.zeros((walks.lengths.size, int(walks.lengths.max())), dtype=np.int64)
        pairs[np.arange(pairs.shape[1]) < walks.lengths[:, np.newaxis]] = walks.pairs
        last = walks.states[ends]
        return RolloutVisits(self.problem, law, pairs.T, walks.lengths, last)


@dataclass(frozen=True)
class VisitOptions:
    """Exact without `rollouts`; otherwise so many walks of at most `horizon` steps per policy."""

    rollouts: int | None
    horizon: int | None
    seed: int

    def __post_init__(self) -> None:
        for name in ("rollouts", "horizon"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        require_count("seed", self.seed, least=0)

    def evaluator(self, problem: Apprenticeship) -> ExactEvaluator | RolloutEvaluator:
        """What evaluates the policies of one run."""
        if self.rollouts is None:
            return ExactEvaluator(problem)
        return RolloutEvaluator(problem, self.rollouts, self.horizon, self.seed)
