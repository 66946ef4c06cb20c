"""Proximal points: a smooth concave program over costs and Q-functions in every step.

    mu_{k+1} = argmin over occupancies   gap_W(Psi' mu - target)
                   + h KL(mu | mu_k)/eta + h KL(pi_mu | pi_k)/alpha

*where* occupancies have mass h = 1/(1 - discount), the first distance is that of their shares p =
mu/h and the second that of what is done, averaged over the states of mu. The dual, Q = Phi theta,

    maximise over w in W, theta
        initial' V - <w, target> - (h/eta) log sum p_k exp(-eta (c_w + discount P V - Q)),
        V(x) = -(1/alpha) log sum_a pi_k(a | x) exp(-alpha Q(x, a))

has the logistic Bellman error: smooth, concave, without constraints but those of W. At its maximum
pi_{k+1} ~ pi_k exp(-alpha Q), and p_k exp(-eta (c_w + discount P V - Q)) are the shares of its
occupancy. It is maximised by L-BFGS; weights in a box have bounds, those in a ball are xi/max(1,
|xi|), mixtures of points have shares xi/sum xi, xi >= 0, so that nothing is asked about the class
but its `KernelForm`.

*Guarantee.* Exact steps with all pairs as features make the gap fall in every step, and

    gap(pi_K) - least gap  <=  (h/S) (KL(mu* | mu_0)/eta + KL(pi* | pi_0)/alpha)
                           <=  (h/S) log(actions) (h/eta + 1/alpha)                      (promise)

for an even pi_0: the telescoping sum of proximal points, and KL(mu* | mu_0) <= h KL(pi* | pi_0). S
is the sum of the sizes s_k of the steps, by which eta and alpha are multiplied; a size is doubled
while L-BFGS finds the maximum in its iterations and the gap falls, and halved, to 1 at least, when
not.
Whatever point (w, theta) a step ends in, with D_k its dual value and q_{k+1} the shares
p_k exp(-eta (..)) at it, in place of the occupancy p_{k+1} of the policy,

    least gap  >=  (1/S) sum_k s_k D_k - promise - (h/(eta S)) max over pairs of sum_k log(q_k/p_k),

because c_w = (what is left of Bellman's equation) + Q - discount P V, the first part is
log(p_k/q_{k+1})/eta and the second log(pi_k/pi_{k+1})/alpha along any occupancy, up to constants
that D_k counts. So the log has two numbers: the promise, and what the best gap is away from this
bound: promise + errors of the optimisation, which were measured. CONVERGED rests on neither: a plan
for w_{k+1} proves a lower bound, and the best policy and the best bound are within `accuracy`, in
units of 2N/(1 - discount). With other features a step is as good as they can tell Q-functions
apart; the bound holds for them too.

*In a stepped world* (`DrawnFeatures`) p_k are the pairs of walks of pi_k that end with probability
1 - discount in every step, all laws that lead from them are asked for, and Q(x, a) is a mean of
coefficients, weighted by the shares that the columns have in the pair: the policy is a
`SoftFeaturePolicy`. With laws instead of next states the exponent is exact, so the drawn dual has
the right maximum as walks become many; nothing is proven about how many, as what bounds an
exponential of values grows like exp(2 eta N h). Certify with `Rollouts`.

*Offline* (`OfflineProximalImitation`) takes a single step from the expert's records, with what
followed in them in place of the laws: p_0 are the discounted shares of recorded pairs, pi_0 is the
cloned expert. Nothing is drawn or planned; without records of an action Q is at its largest there.

*Cost.* An evaluation of the dual costs two passes over the laws; a step some 20 to 200 of them, one
linear system and one plan. In a stepped world the same passes over what was drawn, and the walks.

*Reference.* Viano, Kamoutsi, Neu, Krawczuk, Cevher, "Proximal point imitation learning", 2022.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from journeyman.arrays import FloatArray, IntArray, Matrix, SparseMatrix, read_only
from journeyman.costs.cost_class import BALL, BOX, HULL, KernelForm, in_simplex
from journeyman.demonstrations import clone
from journeyman.features.base import DrawnFeatures, Features
from journeyman.policy import Plan, Policy, SoftFeaturePolicy, occupancy, plan
from journeyman.policy.function_policy import column_shares
from journeyman.problem import Apprenticeship, Witness, lower_bound
from journeyman.problem.drawn import block_stream, reduced_of
from journeyman.solvers.answer import Answer, Details, SampledSolution, Work
from journeyman.solvers.classics.answering import (
    answer_of,
    require_demonstrations,
    require_suitable,
)
from journeyman.solvers.running import (
    Advance,
    Status,
    Watch,
    iterate,
    require_count,
    require_kind,
    require_positive,
    require_time_limit,
)
from journeyman.world import Pairs
from journeyman.world.large_world import first_states, sampled_step, successor_laws
from journeyman.world.levels import Level

SMOOTHING = 0.1
"""Imagined visits to every action of a state, in the cloned expert."""
STREAM = 12
"""Of the seed, that walks are drawn from."""


@dataclass(frozen=True, eq=False)
class ProximalPointImitation:
    """Learn by proximal steps over occupancies, each a smooth program over costs and Q-functions.

    Args:
        features: of Q-functions, `Features` (pairs x features), or in a stepped world
            `DrawnFeatures`; every pair by default.
        step: eta N and alpha N h of the first step: about how far the logarithms of probabilities
            move.
        accuracy: of the gap at which to stop, relative to 2N/(1 - discount); in a stepped world
            nothing is proven, and all steps are taken.
        inner_iterations: of L-BFGS in a step, at most.
        max_iterations: steps.
        samples: pairs of a step in a stepped world, about, and first states; a step asks for the
            features of all actions in whatever follows them.
        seed: of all draws there.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    >>> visits = jm.occupancy(world, expert).expectations(basis)
    >>> problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(visits))
    >>> answer = jm.solve(problem, ProximalPointImitation(accuracy=0.01))
    >>> answer.status.name, answer.value < 0.01 * problem.gap_scale
    ('CONVERGED', True)
    """

    features: Features | DrawnFeatures | None = None
    step: float = 10.0
    accuracy: float = 0.001
    inner_iterations: int = 500
    max_iterations: int = 200
    samples: int = 2048
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        _check(self, Features | DrawnFeatures | None)
        require_positive("accuracy", self.accuracy)
        require_count("max_iterations", self.max_iterations)
        require_count("samples", self.samples)
        require_count("seed", self.seed, least=0)

    @property
    def needs(self) -> Level:
        """Arrays, or callables for features of a large world."""
        return Level.EXPLICIT if self.features is None else self.features.needs

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, type(self).__name__)
        kind = _SteppedSteps if isinstance(self.features, DrawnFeatures) else _ExplicitSteps
        steps = kind(self, problem, watch)
        status, iterations = iterate(steps.advance, watch, int(self.max_iterations))
        return steps.answer(status, iterations)


@dataclass(frozen=True, eq=False)
class OfflineProximalImitation:
    """A single proximal step from the expert's records, without asking the world for anything.

    Args:
        features: of Q-functions (pairs x features); every pair by default.
        step: see `ProximalPointImitation`.
        inner_iterations: of L-BFGS, at most.
        time_limit: seconds.
    """

    features: Features | None = None
    step: float = 10.0
    inner_iterations: int = 1000
    time_limit: float | None = None

    def __post_init__(self) -> None:
        _check(self, Features | None)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, type(self).__name__)
        demos = require_demonstrations(problem, type(self).__name__)
        world = problem.world
        pairs = demos.pairs_in(world)
        weights = world.discount ** demos.step_times.astype(float)
        shares = np.bincount(pairs, weights, minlength=world.num_pairs)
        counts = np.bincount(pairs, minlength=world.num_pairs)
        laws = sparse.csr_array(
            (1.0 / counts[pairs], (pairs, demos.next_states)),
            shape=(world.num_pairs, world.num_states),
        )
        first = np.bincount(demos.first_states, minlength=world.num_states) / len(demos)
        centre = clone(demos, world, smoothing=SMOOTHING).per_pair
        seen = Seen(world.pairs, laws, first, problem.cost_matrix, _matrix(self.features, problem))
        bellman = LogisticBellman(problem, seen, *_rates(self, problem))
        found = bellman.maximum(
            shares / shares.sum(), centre, bellman.start(), int(self.inner_iterations), watch
        )
        status = Status.CONVERGED if found.finished else Status.STEP_LIMIT
        if watch.must_stop or watch.report(1, -found.value):
            status = watch.stop_status
        return answer_of(
            problem, Policy(found.law, world.pairs.offsets), status,
            engine="one proximal step, L-BFGS", work=Work(iterations=1),
            recovered=found.weights, seconds=watch.elapsed,
            log=f"{found.evaluations} evaluations of the dual",
        )  # fmt: skip


def _check(solver: ProximalPointImitation | OfflineProximalImitation, kinds: Any) -> None:
    require_kind("features", solver.features, kinds, "Give jm.features.Features(matrix), or None")
    require_positive("step", solver.step)
    require_count("inner_iterations", solver.inner_iterations)
    require_time_limit(solver.time_limit)


def _rates(
    solver: ProximalPointImitation | OfflineProximalImitation, problem: Apprenticeship
) -> tuple[float, float]:
    """eta and alpha."""
    size = problem.cost_class.pointwise_bound(problem.basis.matrix) or 1.0
    return solver.step / size, solver.step / (size * problem.effective_horizon)


def _matrix(features: Features | None, problem: Apprenticeship) -> Matrix | None:
    return None if features is None else features.on(problem.world).matrix


class Maximum(NamedTuple):
    """Where L-BFGS has ended."""

    point: FloatArray
    weights: FloatArray
    law: FloatArray
    """pi_{k+1}, pair by pair."""
    shares: FloatArray
    """q_{k+1}."""
    value: float
    evaluations: int
    finished: bool


class _Stop(Exception):
    """The watch wants the search to end."""


class Seen(NamedTuple):
    """What a step knows of the world, in numbers of its own for states and pairs."""

    pairs: Pairs
    laws: SparseMatrix
    """Of pairs; zeros where nothing is known, and nothing weighs."""
    first: FloatArray
    costs: Matrix
    features: Matrix | None
    """Of Q; None has one for every pair."""
    averaging: bool = False
    """Whether Q is a mean of coefficients, so that these need not be larger than it is."""


@dataclass(frozen=True, eq=False)
class LogisticBellman:
    """The dual of a proximal step, for some laws: those of the world, or what was seen of them."""

    problem: Apprenticeship
    seen: Seen
    eta: float
    alpha: float

    @cached_property
    def form(self) -> KernelForm:
        return self.problem.cost_class.kernel_form(self.problem.num_costs)

    @property
    def num_weights(self) -> int:
        """Coordinates xi of the weights."""
        form = self.form
        return len(form.points) if form.code == HULL else form.scale.size

    @property
    def num_features(self) -> int:
        features = self.seen.features
        return len(self.seen.pairs) if features is None else int(features.shape[1])

    @cached_property
    def unit(self) -> float:
        """Of the coordinates of Q: the largest total, over the largest feature."""
        size = self.problem.cost_class.pointwise_bound(self.problem.basis.matrix) or 1.0
        given = None if self.seen.averaging else self.seen.features
        largest = 1.0 if given is None else float(abs(given).max()) or 1.0
        return size * self.problem.effective_horizon / largest

    def start(self) -> FloatArray:
        """The middle of the class, and Q-functions that are zero."""
        shares = 0.0 if self.form.code in (BOX, BALL) else 1 / self.num_weights
        return np.concatenate([np.full(self.num_weights, shares), np.zeros(self.num_features)])

    def weights(self, xi: FloatArray) -> FloatArray:
        """The member of the class with coordinates xi."""
        code, scale, centre, points = self.form
        if code == BOX:
            return np.asarray(centre + scale * xi)
        if code == BALL:
            return np.asarray(centre + scale * xi / max(1.0, float(np.linalg.norm(xi))))
        shares = in_simplex(xi)
        return np.asarray(shares @ points if code == HULL else centre + scale * shares)

    def pulled(self, xi: FloatArray, slope: FloatArray) -> FloatArray:
        """The derivative of <w(xi), slope>."""
        code, scale, _, points = self.form
        scaled = points @ slope if code == HULL else scale * slope
        if code == BOX:
            return np.asarray(scaled)
        if code == BALL:
            length = float(np.linalg.norm(xi))
            unit = xi / length if length > 1 else np.zeros_like(xi)
            return np.asarray((scaled - unit * float(unit @ scaled)) / max(1.0, length))
        total = float(xi.sum())
        return np.asarray((scaled - in_simplex(xi) @ scaled) / total if total > 0 else scaled)

    def restarted(self, point: FloatArray) -> FloatArray:
        """The same weights, and no Q-function, which starts from the last policy."""
        found, count = np.zeros_like(point), self.num_weights
        xi = point[:count]
        if self.form.code == BALL:
            xi = xi / max(1.0, float(np.linalg.norm(xi)))
        found[:count] = xi if self.form.code in (BOX, BALL) else in_simplex(xi)
        return found

    def parts(
        self, point: FloatArray, law: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Q, V, the next law and what is left of Bellman's equation, at a point."""
        pairs, laws, _, costs, features, _ = self.seen
        Q = self.unit * point[self.num_weights :]
        if features is not None:
            Q = np.asarray(features @ Q)
        starts = pairs.offsets[:-1]
        least = np.minimum.reduceat(np.where(law > 0, Q, np.inf), starts)
        powers = law * np.exp(np.minimum(-self.alpha * (Q - pairs.spread(least)), 0.0))
        sums = np.add.reduceat(powers, starts)
        V = least - np.log(sums) / self.alpha
        cost = costs @ self.weights(point[: self.num_weights])
        left = cost + self.problem.world.discount * (laws @ V) - Q
        return Q, V, powers / pairs.spread(sums), np.asarray(left)

    def next_shares(self, left: FloatArray, shares: FloatArray) -> tuple[float, FloatArray]:
        """-(1/eta) log sum p exp(-eta left), and the shares that it is the sum of."""
        least = float(left[shares > 0].min())
        powers = shares * np.exp(np.minimum(-self.eta * (left - least), 0.0))
        total = float(powers.sum())
        return least - math.log(total) / self.eta, powers / total

    def value(
        self, point: FloatArray, shares: FloatArray, law: FloatArray
    ) -> tuple[float, FloatArray]:
        """Minus the dual, and its gradient."""
        problem, h = self.problem, self.problem.effective_horizon
        pairs, laws, first, costs, features, _ = self.seen
        xi = point[: self.num_weights]
        _, V, following, left = self.parts(point, law)
        soft, after = self.next_shares(left, shares)
        measure, weights = h * after, self.weights(xi)
        dual = h * soft + first @ V - weights @ problem.target
        slope = np.asarray(costs.T @ measure) - problem.target
        reached = first + problem.world.discount * (laws.T @ measure)
        of_Q = pairs.spread(reached) * following - measure
        if features is not None:
            of_Q = np.asarray(features.T @ of_Q)
        gradient = np.concatenate([self.pulled(xi, slope), self.unit * of_Q])
        return -float(dual), -gradient

    def maximum(
        self, shares: FloatArray, law: FloatArray, start: FloatArray, iterations: int, watch: Watch
    ) -> Maximum:
        """The best point that L-BFGS finds."""
        scale = self.problem.gap_scale or 1.0
        best: list[tuple[float, FloatArray]] = []
        count = 0

        def evaluated(point: FloatArray) -> tuple[float, FloatArray]:
            nonlocal count
            count += 1
            value, gradient = self.value(point, shares, law)
            if np.isfinite(value) and (not best or value < best[0][0]):
                best[:] = [(value, point.copy())]
            if count > 1 and watch.must_stop:
                raise _Stop
            return value / scale, gradient / scale

        ends = {BOX: (-1.0, 1.0), BALL: (None, None)}.get(self.form.code, (0.0, 1.0))
        limits = [ends] * self.num_weights
        free = self.seen.features is not None and not self.seen.averaging
        limits += [(None, None) if free else (-1.0, 1.0)] * self.num_features
        finished = False
        try:
            found = minimize(
                evaluated, start, jac=True, method="L-BFGS-B", bounds=limits,
                options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20,
                         "ftol": 1e-15, "gtol": 1e-9},
            )  # fmt: skip
            finished = bool(found.success)
        except _Stop:
            pass
        value, point = best[0] if best else (math.nan, start)
        _, _, following, left = self.parts(point, law)
        weights = self.weights(point[: self.num_weights])
        after = self.next_shares(left, shares)[1]
        return Maximum(point, weights, following, after, -value, count, finished)


class _Steps(ABC):
    """Shares, policy and weights from step to step."""

    seen: Seen
    shares: FloatArray
    law: FloatArray
    best: Any
    least_gap: float
    growth: ClassVar[float]
    """Of sizes from step to step, when L-BFGS has found the maximum and the gap falls; else its
    inverse, but never below 1: an inexact step of that size still counts."""

    def __init__(
        self, solver: ProximalPointImitation, problem: Apprenticeship, watch: Watch
    ) -> None:
        self.solver, self.problem, self.watch = solver, problem, watch
        self.eta, self.alpha = _rates(solver, problem)
        self.evaluations, self.size, self.total = 0, 1.0, 0.0
        """Evaluations of the dual; the size of the next step and that of all steps."""
        self.begin()
        bellman = LogisticBellman(problem, self.seen, self.eta, self.alpha)
        self.point = bellman.start()
        self.weights = bellman.weights(self.point[: bellman.num_weights])

    def advance(self) -> Advance:
        """One step, and what is known of its policy."""
        bellman = LogisticBellman(
            self.problem, self.seen, self.size * self.eta, self.size * self.alpha
        )
        found = bellman.maximum(
            self.shares, self.law, bellman.restarted(self.point),
            int(self.solver.inner_iterations), self.watch,
        )  # fmt: skip
        self.evaluations += found.evaluations
        policy, gap = self.move(bellman, found)
        self.total += self.size
        rises = found.finished and gap <= self.least_gap
        self.size = max(1.0, self.size * self.growth if rises else self.size / self.growth)
        self.point, self.weights = found.point, self.problem.cost_class.admit(found.weights)
        if gap <= self.least_gap:
            self.best, self.least_gap = policy, gap
        return self.outcome()

    @abstractmethod
    def begin(self) -> None:
        """At an even policy."""

    @abstractmethod
    def move(self, bellman: LogisticBellman, found: Maximum) -> tuple[Any, float]:
        """To the next policy; it, and its gap."""

    @abstractmethod
    def outcome(self) -> Advance:
        """What is known now."""

    @abstractmethod
    def answer(self, status: Status, iterations: int) -> Answer:
        """With the best policy."""


class _ExplicitSteps(_Steps):
    """In a world of arrays: policies are evaluated, and plans prove bounds."""

    growth = 2.0

    def begin(self) -> None:
        problem, world = self.problem, self.problem.world
        features = self.solver.features
        assert not isinstance(features, DrawnFeatures)  # these have steps of their own
        self.seen = Seen(
            world.pairs, world.transition, world.initial, problem.cost_matrix,
            _matrix(features, problem),
        )  # fmt: skip
        self.best = Policy.uniform(world)
        visits = occupancy(world, self.best)
        self.law, self.shares = self.best.per_pair, visits.measure / problem.effective_horizon
        self.least_gap, self.proven = problem.gap(visits), -math.inf
        self.hardest: FloatArray | None = None
        self.last_plan: Plan | None = None
        self.possible = self.shares > 0
        self.duals, self.strayed = 0.0, np.zeros(world.num_pairs)
        self.strayed_next = self.strayed
        """sum s_k D_k; sum log(q_k/p_k) of the centres so far, and with the next one."""

    def move(self, bellman: LogisticBellman, found: Maximum) -> tuple[Policy, float]:
        world = self.problem.world
        policy = Policy(found.law, world.pairs.offsets)
        visits = occupancy(world, policy)
        self.law = policy.per_pair
        self.shares = np.maximum(visits.measure, 0.0) / self.problem.effective_horizon
        self.duals += self.size * found.value
        self.strayed = self.strayed_next
        with np.errstate(divide="ignore", invalid="ignore"):
            self.strayed_next = self.strayed + np.log(found.shares) - np.log(self.shares)
        return policy, self.problem.gap(visits)

    def outcome(self) -> Advance:
        """A lower bound by a plan for the weights; in a class with the zero cost at least 0."""
        problem = self.problem
        self.last_plan = plan(
            problem.world, problem.cost_of(self.weights), warm_start=self.last_plan
        )
        proven = lower_bound(problem, Witness(self.weights, self.last_plan.values))
        if proven > self.proven:
            self.proven, self.hardest = proven, self.weights
        if problem.cost_class.contains_zero and self.proven < 0:
            self.proven, self.hardest = 0.0, np.zeros(problem.num_costs)
        left = self.least_gap - self.proven
        return Advance(
            self.least_gap, self.proven, left <= self.solver.accuracy * (problem.gap_scale or 1.0)
        )

    @property
    def promise(self) -> float:
        """(h/S) log(actions) (h/eta + 1/alpha): of exact steps."""
        h = self.problem.effective_horizon
        actions = int(np.diff(self.problem.world.pairs.offsets).max())
        return h / (self.total or 1.0) * math.log(actions) * (h / self.eta + 1 / self.alpha)

    @property
    def regret(self) -> float:
        """How far above the least gap the best policy can be, by these steps; infinite after one
        whose centre was zero where an occupancy need not be."""
        strayed = float(self.strayed[self.possible].max())
        strayed *= self.problem.effective_horizon / self.eta
        found = self.least_gap + (strayed - self.duals) / (self.total or 1.0) + self.promise
        return found if math.isfinite(found) else math.inf

    def answer(self, status: Status, iterations: int) -> Answer:
        unit = self.problem.gap_scale or 1.0
        return answer_of(
            self.problem, self.best, status, engine="proximal points, L-BFGS",
            work=Work(iterations=iterations, forward_solves=iterations),
            weights=self.hardest, recovered=self.weights, seconds=self.watch.elapsed,
            log=f"{iterations} steps, {self.evaluations} evaluations of the dual; exact steps "
            f"are within {self.promise / unit:.3g} of 2N/(1 - discount), these with the errors of "
            f"their optimisation within {self.regret / unit:.3g}",
        )  # fmt: skip


class _SteppedSteps(_Steps):
    """In a world of callables: the dual of pairs that walks of the policy have met. Whether a gap
    falls is hidden in the noise of walks, so sizes do not change."""

    growth = 1.0

    def begin(self) -> None:
        assert isinstance(self.solver.features, DrawnFeatures)
        self.features = self.solver.features
        reduced_of(self.problem, self.features, int(self.solver.seed))  # refuses what does not fit
        self.world = self.features.world
        self.best = SoftFeaturePolicy(self.features, np.zeros(self.features.num_features))
        self.steps, self.drawn = 0, 0
        """Walks and steps that were drawn."""
        rng = block_stream(int(self.solver.seed), STREAM, 0)
        drawn = first_states(self.world, rng, int(self.solver.samples))
        self.starts, counts = np.unique(drawn, return_counts=True)
        self.start_shares = counts / counts.sum()
        self.coefficients = self.best.coefficients
        self.least_gap = self.look(self.best)

    def look(self, policy: SoftFeaturePolicy) -> float:
        """Draw pairs of the policy and all that the next step asks of the world; its gap there."""
        problem, world, num_actions = self.problem, self.world, self.world.num_actions
        met = np.column_stack(self.walked(policy))
        met, counts = np.unique(met, axis=0, return_counts=True)
        states, actions = met[:, 0], met[:, 1]
        reached, chances = successor_laws(world, states, actions)
        used = chances > 0
        at_hand = np.unique(np.concatenate([states, reached[used], self.starts]))
        rows = column_shares(policy.rows(at_hand))
        here = np.searchsorted(at_hand, states) * num_actions + actions
        count = at_hand.size * num_actions
        laws = sparse.csr_array(
            (chances[used],
             (np.repeat(here, used.sum(axis=1)), np.searchsorted(at_hand, reached[used]))),
            shape=(count, at_hand.size),
        )  # fmt: skip
        first = np.zeros(at_hand.size)
        first[np.searchsorted(at_hand, self.starts)] = self.start_shares
        values = problem.cost_functions.at(states, actions)
        costs = np.zeros((count, problem.num_costs))
        costs[here] = values
        self.shares = np.zeros(count)
        self.shares[here] = counts / counts.sum()
        pairs = Pairs.rectangular(at_hand.size, num_actions)
        self.seen = Seen(pairs, laws, first, costs, rows, averaging=True)
        self.law = policy.law_of(rows).ravel()
        total = problem.effective_horizon * (counts @ values) / counts.sum()
        return problem.cost_class.gap(total - problem.target)

    def walked(self, policy: SoftFeaturePolicy) -> tuple[IntArray, IntArray]:
        """All pairs of walks that end with probability 1 - discount in every step: their shares are
        those of the occupancy."""
        self.drawn += 1
        rng = block_stream(int(self.solver.seed), STREAM, self.drawn)
        walks = max(1, round(self.solver.samples / self.problem.effective_horizon))
        here, all_states, all_actions = first_states(self.world, rng, walks), [], []
        while here.size:
            actions = np.asarray(policy.sample(here, rng))
            all_states.append(here)
            all_actions.append(actions)
            on = rng.random(here.size) < self.world.discount
            here = sampled_step(self.world, rng, here[on], actions[on])
        states, actions = np.concatenate(all_states), np.concatenate(all_actions)
        self.steps += states.size
        return states, actions

    def move(self, bellman: LogisticBellman, found: Maximum) -> tuple[SoftFeaturePolicy, float]:
        theta = found.point[bellman.num_weights :]
        self.coefficients = self.coefficients + bellman.alpha * bellman.unit * theta
        policy = SoftFeaturePolicy(self.features, self.coefficients)
        return policy, self.look(policy)

    def outcome(self) -> Advance:
        return Advance(self.least_gap, None, False)

    def answer(self, status: Status, iterations: int) -> Answer:
        """The best policy of all, with an estimate of its gap from walks of its own."""
        problem, value = self.problem, self.look(self.best)
        least = 0.0 if problem.cost_class.contains_zero else -math.inf
        return Answer(
            problem, status, "proximal points, L-BFGS",
            SampledSolution(self.best, value, least, read_only(self.weights)),
            Details(
                work=Work(iterations=iterations, environment_steps=self.steps),
                recovered=read_only(self.weights),
            ),
            solve_seconds=self.watch.elapsed,
            log=f"{iterations} steps, {self.evaluations} evaluations of the dual; the value is an "
            "estimate by walks that the policy was not chosen for",
        )  # fmt: skip
