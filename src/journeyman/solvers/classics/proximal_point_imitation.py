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

    gap(pi_K) - least gap  <=  (h/K) (KL(mu* | mu_0)/eta + KL(pi* | pi_0)/alpha)
                           <=  (h/K) log(actions) (h/eta + 1/alpha)

for an even pi_0: the telescoping sum of proximal points, and KL(mu* | mu_0) <= h KL(pi* | pi_0).
Steps may grow: K is then the sum of their sizes, and here they are doubled while L-BFGS finds the
maximum in its iterations and the gap falls, and halved when not.
Steps are not exact, so nothing rests on this: mu_{k+1} is evaluated anew as the occupancy of
pi_{k+1}, the gap is that policy's, and a plan for w_{k+1} proves a lower bound. CONVERGED means
that the best policy and the best bound are within `accuracy`, in units of 2N/(1 - discount). With
other features a step is as good as they can tell Q-functions apart.

*Offline* (`OfflineProximalImitation`) takes a single step from the expert's records, with what
followed in them in place of the laws: p_0 are the discounted shares of recorded pairs, pi_0 is the
cloned expert. Nothing is drawn or planned; without records of an action Q is at its largest there.

*Cost.* An evaluation of the dual costs two passes over the laws; a step some 20 to 200 of them, one
linear system and one plan.

*Reference.* Viano, Kamoutsi, Neu, Krawczuk, Cevher, "Proximal point imitation learning", 2022.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from journeyman.arrays import FloatArray, Matrix, SparseMatrix
from journeyman.costs.cost_class import BALL, BOX, HULL, KernelForm, in_simplex
from journeyman.demonstrations import clone
from journeyman.features.base import Features
from journeyman.policy import Plan, Policy, occupancy, plan
from journeyman.problem import Apprenticeship, Witness, lower_bound
from journeyman.solvers.answer import Answer, Work
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

GROWTH = 2.0
"""From step to step, when L-BFGS has found the maximum and the gap falls; else its inverse."""
SMOOTHING = 0.1
"""Imagined visits to every action of a state, in the cloned expert."""


@dataclass(frozen=True, eq=False)
class ProximalPointImitation:
    """Learn by proximal steps over occupancies, each a smooth program over costs and Q-functions.

    Args:
        features: of Q-functions (pairs x features); every pair by default.
        step: eta N and alpha N h of the first step: about how far the logarithms of probabilities
            move.
        accuracy: of the gap at which to stop, relative to 2N/(1 - discount).
        inner_iterations: of L-BFGS in a step, at most.
        max_iterations: steps.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    >>> visits = jm.occupancy(world, expert).expectations(basis)
    >>> problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(visits))
    >>> answer = jm.solve(problem, ProximalPointImitation(accuracy=0.01))
    >>> answer.status.name, answer.value < 0.01 * problem.gap_scale
    ('CONVERGED', True)
    """

    features: Features | None = None
    step: float = 10.0
    accuracy: float = 0.001
    inner_iterations: int = 500
    max_iterations: int = 200
    time_limit: float | None = None

    def __post_init__(self) -> None:
        _check(self)
        require_positive("accuracy", self.accuracy)
        require_count("max_iterations", self.max_iterations)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, type(self).__name__)
        steps = _Steps(self, problem, watch)
        status, iterations = iterate(steps.advance, watch, int(self.max_iterations))
        return answer_of(
            problem, steps.best, status, engine="proximal points, L-BFGS",
            work=Work(iterations=iterations, forward_solves=iterations),
            weights=steps.hardest, recovered=steps.weights, seconds=watch.elapsed,
            log=f"{iterations} steps, {steps.evaluations} evaluations of the dual; exact steps "
            f"would be within {steps.promise():.3g} of 2N/(1 - discount)",
        )  # fmt: skip


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
        _check(self)

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
        bellman = LogisticBellman(
            problem, _matrix(self.features, problem), laws, first, *_rates(self, problem)
        )
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


def _check(solver: ProximalPointImitation | OfflineProximalImitation) -> None:
    require_kind(
        "features", solver.features, Features | None, "Give jm.features.Features(matrix), or None"
    )
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
    value: float
    evaluations: int
    finished: bool


class _Stop(Exception):
    """The watch wants the search to end."""


@dataclass(frozen=True, eq=False)
class LogisticBellman:
    """The dual of a proximal step, for some laws: those of the world or those of records."""

    problem: Apprenticeship
    features: Matrix | None
    laws: SparseMatrix
    first: FloatArray
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
        if self.features is None:
            return self.problem.world.num_pairs
        return int(self.features.shape[1])

    @cached_property
    def unit(self) -> float:
        """Of the coordinates of Q: the largest total, over the largest feature."""
        size = self.problem.cost_class.pointwise_bound(self.problem.basis.matrix) or 1.0
        largest = 1.0 if self.features is None else float(abs(self.features).max()) or 1.0
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
        pairs = self.problem.world.pairs
        Q = self.unit * point[self.num_weights :]
        if self.features is not None:
            Q = np.asarray(self.features @ Q)
        starts = pairs.offsets[:-1]
        least = np.minimum.reduceat(np.where(law > 0, Q, np.inf), starts)
        powers = law * np.exp(np.minimum(-self.alpha * (Q - pairs.spread(least)), 0.0))
        sums = np.add.reduceat(powers, starts)
        V = least - np.log(sums) / self.alpha
        cost = self.problem.cost_of(self.weights(point[: self.num_weights]))
        left = cost + self.problem.world.discount * (self.laws @ V) - Q
        return Q, V, powers / pairs.spread(sums), np.asarray(left)

    def value(
        self, point: FloatArray, shares: FloatArray, law: FloatArray
    ) -> tuple[float, FloatArray]:
        """Minus the dual, and its gradient."""
        problem, h = self.problem, self.problem.effective_horizon
        discount, xi = problem.world.discount, point[: self.num_weights]
        _, V, following, left = self.parts(point, law)
        used = shares > 0
        least = float(left[used].min())
        powers = shares * np.exp(np.minimum(-self.eta * (left - least), 0.0))
        total = float(powers.sum())
        measure = h * powers / total
        weights = self.weights(xi)
        dual = h * (least - math.log(total) / self.eta) + self.first @ V - weights @ problem.target
        slope = problem.difference(measure)
        reached = self.first + discount * (self.laws.T @ measure)
        of_Q = problem.world.pairs.spread(reached) * following - measure
        if self.features is not None:
            of_Q = np.asarray(self.features.T @ of_Q)
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
        limits += [(-1.0, 1.0) if self.features is None else (None, None)] * self.num_features
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
        following = self.parts(point, law)[2]
        weights = self.weights(point[: self.num_weights])
        return Maximum(point, weights, following, -value, count, finished)


class _Steps:
    """Occupancy, policy and weights from step to step."""

    def __init__(
        self, solver: ProximalPointImitation, problem: Apprenticeship, watch: Watch
    ) -> None:
        self.solver, self.problem, self.watch = solver, problem, watch
        world = problem.world
        self.bellman = LogisticBellman(
            problem, _matrix(solver.features, problem), world.transition, world.initial,
            *_rates(solver, problem),
        )  # fmt: skip
        self.best: Policy = Policy.uniform(world)
        self.point, self.law = self.bellman.start(), self.best.per_pair
        visits = occupancy(world, self.best)
        self.shares = visits.measure / problem.effective_horizon
        self.least_gap, self.proven = problem.gap(visits), -math.inf
        self.hardest: FloatArray | None = None
        self.weights = self.bellman.weights(self.point[: self.bellman.num_weights])
        self.evaluations, self.size, self.total = 0, 1.0, 0.0
        """Evaluations of the dual; the size of the next step and that of all steps."""
        self.last_plan: Plan | None = None

    def advance(self) -> Advance:
        """One step, evaluated; and what its weights prove."""
        problem, world = self.problem, self.problem.world
        bellman = replace(
            self.bellman, eta=self.size * self.bellman.eta, alpha=self.size * self.bellman.alpha
        )
        start = bellman.restarted(self.point)
        found = bellman.maximum(
            self.shares, self.law, start, int(self.solver.inner_iterations), self.watch
        )
        self.evaluations += found.evaluations
        policy = Policy(found.law, world.pairs.offsets)
        visits = occupancy(world, policy)
        gap = problem.gap(visits)
        self.total += self.size
        self.size *= GROWTH if found.finished and gap <= self.least_gap else 1 / GROWTH
        self.point, self.law = found.point, policy.per_pair
        self.shares = np.maximum(visits.measure, 0.0) / problem.effective_horizon
        self.weights = problem.cost_class.admit(found.weights)
        if gap <= self.least_gap:
            self.best, self.least_gap = policy, gap
        self._prove()
        left = self.least_gap - self.proven
        return Advance(
            self.least_gap, self.proven, left <= self.solver.accuracy * (problem.gap_scale or 1.0)
        )

    def _prove(self) -> None:
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

    def promise(self) -> float:
        """(h/K) log(actions) (h/eta + 1/alpha), in units of 2N/(1 - discount)."""
        world, h = self.problem.world, self.problem.effective_horizon
        actions = int(np.diff(world.pairs.offsets).max())
        sizes = h / self.bellman.eta + 1 / self.bellman.alpha
        return h / (self.total or 1.0) * math.log(actions) * sizes / (self.problem.gap_scale or 1.0)
