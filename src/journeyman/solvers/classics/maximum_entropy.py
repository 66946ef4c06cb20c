"""Maximum causal entropy: of all policies that match the expert, the one that assumes least.

    maximise   H(mu) = -sum_{x,a} mu(x, a) log( mu(x, a)/mu(x) )
    over       mu >= 0,  (B - discount P)' mu = initial,  Psi' mu = target

*where* mu(x) = sum_a mu(x, a), and H(mu) = E sum_t -discount^t log pi(a_t | x_t) is the discounted
causal entropy of mu's policy. Its Lagrangian dual is smooth and convex,

    minimise over w   <w, target> - <initial, V_w>,        gradient   target - Psi' mu_w

with V_w the soft values and mu_w the occupancy of the soft-optimal policy of the cost Psi w at
temperature 1 (`soft_plan`): the answer's policy is that policy, and `answer.recovered`
is w, the cost under which that policy is soft-optimal.

*Not maximum likelihood.* w is the cost with the largest likelihood when every decision at time t of
the records counts discount^t times and the records are complete, or are continued by the fitted
policy itself where they are cut off. Likelihood counts all decisions alike and needs nothing beyond
the cut. On records that are cut off, whose target rests on a continuation by somebody else, and on
records that are weighted otherwise, another cost explains the recorded actions better.

Estimated targets are often out of reach of every policy, and the dual is then unbounded. What is
solved is therefore, with z the mismatch Psi' mu - target in the units below,

    maximise   rate H(mu) - |z|^2 / (2 ridge),        whose solution has   z = ridge u,

which always has exactly one solution. Without a `ridge` of your own it starts at 1e-2 and is
lowered until either

- the policy *matches*: |z|_2 <= tolerance, which happens whenever a policy of positive
  probabilities matches the expert; or
- matching is *proven impossible*: the recovered cost w separates the target from all policies, no
  policy's |z|_2 is below a bound d > tolerance (a plan for w and weak duality), and this policy's
  is at most 1.25 d.

`answer.log` says which, with numbers. Between the two lie targets on the very edge of the reachable
set, such as the exact expectations of a deterministic expert, which have no finite w: the mismatch
falls with every iteration until `max_iterations` is over (STEP_LIMIT).

Units. z_i is scale_i (psi_i' mu - target_i)/U with the scale of the problem's cost class and U the
Euclidean norm of the scaled target, or of the attainable ranges of the scaled costs where that is
less: tolerance 1e-6 means expectations that agree to 1e-6 of what the expert totals, and of what
policies can differ by. In a continuing world U is of the order of N/(1 - discount), with N the
largest Euclidean norm of a scaled row of Psi; where episodes end it is of the size of an episode's
total, however near 1 the discount is. `rate` is N/U.

*Guarantee.* CONVERGED: the gradient of the dual is below `tolerance`, hence (strong duality) the
policy is the solution up to that. A matched policy's gap is at most tolerance x sqrt(number of
costs) x U for every class. Among policies, the solution predicts the actions of
whoever has the target's expectations with the least log loss in the worst case (Ziebart, Bagnell
and Dey). The papers state this for finite horizons and rewards; here it is for costs and discounted
sums without end, for which the duality is the same (Bloem and Bambos).

*Method.* L-BFGS-B of SciPy for the first ridge, truncated Newton steps for those that follow.
*Cost.* Per evaluation some 2 to 10 sparse systems for the soft plan and one adjoint for mu_w; per
Newton step two systems for each product with the second derivative. In narrow worlds (grids)
systems share one factor. No dense matrix of states.

*Reference.* Ziebart, Maas, Bagnell and Dey, "Maximum entropy inverse reinforcement learning", 2008;
Ziebart, Bagnell and Dey, "Modeling interaction via the principle of maximum causal entropy", 2010;
Bloem and Bambos, "Infinite time horizon maximum causal entropy inverse reinforcement learning",
2014.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray, norms
from journeyman.costs import EuclideanBall
from journeyman.policy import Plan, plan
from journeyman.policy.planning import attainable_ranges, soft_plan, soft_scales
from journeyman.policy.policy_evaluation import DiscountedSystem, PolicySystems
from journeyman.problem import Apprenticeship, least_cost_bound
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import answer_of, require_suitable
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_positive,
    require_time_limit,
)


@dataclass(frozen=True)
class MaximumEntropy:
    """The maximum causal entropy policy that matches the expert's expectations.

    Args:
        tolerance: asked-for mismatch of the expectations, relative to the size of the expert's, or
            to how far apart those of two policies can be where that is less.
        ridge: weight of |u|^2/2 in the dual, for an expert who is not to be matched exactly; by
            default lowered until the policy matches, or until no policy can.
        max_iterations: steps of L-BFGS and of Newton's method together.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world = jm.World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> basis, expert = jm.CostBasis([[1.0], [0.0]]), jm.ExpertExpectation([0.5])
    >>> problem = jm.Apprenticeship(world, basis, expert)
    >>> answer = jm.solve(problem, MaximumEntropy())
    >>> answer.policy.probabilities([0]).round(5).tolist(), answer.recovered.round(4).tolist()
    ([[0.25, 0.75]], [1.0986])
    """

    tolerance: float = 1e-6
    ridge: float | None = None
    max_iterations: int = 500
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_positive("tolerance", self.tolerance, below=1)
        if self.ridge is not None:
            require_positive("ridge", self.ridge)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, type(self).__name__)
        dual = EntropyDual(problem)
        path = RidgePath(dual, self.tolerance, watch, self.max_iterations)
        try:
            path.follow(self.ridge)
            status = Status.CONVERGED
        except Stopped as stopped:
            path.turn_back()
            status = stopped.status
        return answer_of(
            problem,
            path.point.plan.policy,
            status,
            engine="L-BFGS-B, truncated Newton",
            work=Work(iterations=path.iterations, forward_solves=dual.plans),
            recovered=dual.weights(path.point.u),
            seconds=watch.elapsed,
            log=path.words,
        )


VALUE_ERROR = 1e-10
"""Asked of soft values, in units of the temperature, per unit of 1/rate (1/(1 - discount) where
nothing ends): laws are as exact as that."""
LEAST_CHOICE = 1e-9
"""Ranges below this share of N/(1 - discount) are rounding: there is nothing to choose."""
LEAST_SIZE = 1e-4
"""Share of the ranges that counts as the size of a target whose costs cancel each other out."""
PRODUCT_ACCURACY = 1e-7
"""Of products with the second derivative, which only shape a step."""


class EntropyDual:
    """f and its derivatives for one problem; counts the soft plans it makes.

        f(u) = <u, t> - rate <initial, V_u>,        grad f(u) = t - m(u)

    where V_u are the soft values (`soft_plan` at temperature 1) of the cost Psi_n u, m(u)
    = rate Psi_n' mu_u the expectations of its soft-optimal policy, and t those of the expert. All
    is of size one: Psi_n is Psi in the scale of the cost class, divided by the largest Euclidean
    norm N of a row, and U = N/rate the size of what is to be matched, at most N/(1 - discount): the
    Euclidean norm of the scaled target, or that of the attainable ranges (`policy.attainable`)
    where it is less, or how far the target lies outside of them where that is more. Where episodes
    end after a few steps, U is of the size of an episode however near 1 the discount is, even if
    policies could go on for ever.

    The second derivative is a variance. With A v the advantages Q - V of the cost Psi_n v under the
    soft-optimal policy pi (hard values: no entropy in them),

        H v = rate A' diag(mu_u/temperature) A v

    which takes one system with the chain of pi for the advantages and one adjoint system for A'.
    """

    def __init__(self, problem: Apprenticeship) -> None:
        self.problem, self.world = problem, problem.world
        scale = problem.cost_class.scaling(problem.basis.num_costs)
        self.unit = EuclideanBall(scale).pointwise_bound(problem.basis.matrix) or 1.0
        self.factor = scale / self.unit
        self.rate = self._rate(scale)
        self.target = self.rate * self.factor * problem.target
        self.systems = PolicySystems(self.world)
        scales = soft_scales(self.world)[self.world.pairs.states]
        self.sharpness = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales > 0)
        """1/temperature of every pair."""
        self.plans = 0

    def _rate(self, scale: FloatArray) -> float:
        """N/U."""
        ranges, target = attainable_ranges(self.world, self.problem.basis), self.problem.target
        apart = float(norms(scale * (ranges.highest - ranges.lowest)))
        outside = float(norms(scale * (target - ranges.clip(target))))
        most = self.unit * self.world.effective_horizon
        size = min(apart, max(float(norms(scale * target)), LEAST_SIZE * apart))
        matched = min(max(size, outside), most)
        return self.unit / (matched if matched > LEAST_CHOICE * most else most)

    @property
    def size(self) -> float:
        """U, what a mismatch is relative to."""
        return self.unit / self.rate

    def weights(self, u: FloatArray) -> FloatArray:
        """Cost weights w of the problem's basis with Psi w = Psi_n u."""
        return np.asarray(self.factor * u)

    def at(self, u: FloatArray, near: "EntropyPoint | None" = None) -> "EntropyPoint":
        """f around `u`; the plan of a point nearby saves work."""
        self.plans += 1
        plan = soft_plan(
            self.world,
            self.problem.cost_of(self.weights(u)),
            tolerance=VALUE_ERROR / self.rate,
            warm_start=None if near is None else near.plan,
            systems=self.systems,
        )
        return EntropyPoint(self, np.array(u, dtype=float), plan)


@dataclass(frozen=True, eq=False)
class EntropyPoint:
    """f, its gradient and its curvature at one point."""

    dual: EntropyDual
    u: FloatArray
    plan: Plan

    @property
    def value(self) -> float:
        """f(u)."""
        future = float(self.dual.world.initial @ self.plan.values)
        return float(self.u @ self.dual.target) - self.dual.rate * future

    @cached_property
    def system(self) -> DiscountedSystem:
        return self.dual.systems.of(self.plan.policy)

    @cached_property
    def measure(self) -> FloatArray:
        """The occupancy measure of the soft-optimal policy."""
        world = self.dual.world
        visits = self.system.solve(
            world.initial, transposed=True, guess=world.initial * world.effective_horizon
        )
        return np.asarray(world.pairs.spread(visits.x) * self.plan.policy.per_pair)

    @cached_property
    def mismatch(self) -> FloatArray:
        """m(u) - t, which is minus the gradient."""
        dual = self.dual
        return dual.rate * dual.factor * dual.problem.difference(self.measure)

    def curvature(self, v: FloatArray) -> FloatArray:
        """H v."""
        dual, world, law = self.dual, self.dual.world, self.plan.policy.per_pair
        cost = dual.problem.cost_of(dual.factor * v)
        values = self.system.solve(world.pairs.total(law * cost), reduction=PRODUCT_ACCURACY).x
        backup = cost + world.discount * (world.transition @ values)
        weighted = self.measure * (backup - world.pairs.spread(world.pairs.total(law * backup)))
        weighted *= dual.sharpness
        later = world.discount * (world.transition.T @ weighted)
        visits = self.system.solve(later, transposed=True, reduction=PRODUCT_ACCURACY).x
        shifted = weighted + law * world.pairs.spread(visits)
        return np.asarray(dual.rate * dual.factor * (dual.problem.cost_matrix.T @ shifted))


SUFFICIENT = 1e-4
"""Share of the promised decrease that a step must bring."""
SHORTER = 0.25
SHORTEST = 1e-6
ROUGH = 0.1
"""Conjugate gradients leave at most this share of the gradient."""
EPSILON = float(np.finfo(float).eps)


def ridged_value(point: EntropyPoint, ridge: float) -> float:
    """f_ridge."""
    return point.value + ridge / 2 * float(point.u @ point.u)


def ridged_gradient(point: EntropyPoint, ridge: float) -> FloatArray:
    """grad f_ridge = ridge u - (m(u) - t)."""
    return np.asarray(ridge * point.u - point.mismatch)


def newton_step(
    point: EntropyPoint, ridge: float, in_haste: Callable[[], bool] = lambda: False
) -> EntropyPoint | None:
    """The point one step on, or None where float64 sees no better one.

    `in_haste` is asked after every product; if so, the direction at hand is taken.

        f_ridge(u) = f(u) + ridge/2 |u|^2        (f of `entropy_dual`, convex)

    The step solves (H + ridge) s = -grad f_ridge by conjugate gradients, roughly while the gradient
    is large; it is shortened until f_ridge falls as much as a convex function should (Armijo).
    Where f is known to fewer digits than a step changes it, the gradient decides instead.

    Reference: Dembo and Steihaug, "Truncated-Newton algorithms for large-scale unconstrained
    optimization", 1983.
    """
    gradient = ridged_gradient(point, ridge)
    size = float(np.linalg.norm(gradient))
    step = conjugate_gradients(
        lambda v: point.curvature(v) + ridge * v, -gradient, min(ROUGH, size**0.5), in_haste
    )
    value, slope = ridged_value(point, ridge), float(gradient @ step)
    unseen = 4 * (point.dual.rate * point.plan.error + EPSILON * abs(value))
    length = 1.0
    while length >= SHORTEST:
        there = point.dual.at(point.u + length * step, near=point)
        gained = value - ridged_value(there, ridge)
        if gained >= max(-SUFFICIENT * length * slope, unseen):
            return there
        if abs(gained) <= unseen and np.linalg.norm(ridged_gradient(there, ridge)) < size:
            return there
        length *= SHORTER
    return None


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    accuracy: float,
    in_haste: Callable[[], bool] = lambda: False,
) -> FloatArray:
    """x with |right - product(x)| <= accuracy |right|, or what 2n + 10 products have made of it."""
    x = np.zeros_like(right)
    residual, direction = right.copy(), right.copy()
    left = float(residual @ residual)
    wanted = accuracy**2 * left
    for done in range(2 * right.size + 10):
        if left <= wanted or (done and in_haste()):
            break
        image = product(direction)
        length = left / float(direction @ image)
        x += length * direction
        residual -= length * image
        before, left = left, float(residual @ residual)
        direction = residual + left / before * direction
    return x


FIRST_RIDGE, LOWERED = 1e-2, 0.1
CENTRED = 0.1
"""A ridge is left when the gradient is this share of the mismatch."""
NEAR = 1.25
"""A mismatch this many times the least possible one is close enough to it."""
FIRST_STEPS = 100
"""Of L-BFGS; what is left then is left to Newton's method."""
LAST_DIGIT = 5e-4
"""What rounding to four digits can add to a number."""


class Stopped(Exception):
    """The search ended before it was done."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class RidgePath:
    """Holds the point reached; `follow` goes on until it is done or raises `Stopped`.

    The mismatch rises for a while whenever the ridge is lowered: who was stopped calls `turn_back`.

        minimise over u   f(u) + ridge/2 |u|^2        (f of `entropy_dual`)

    The minimiser's mismatch is z = ridge u, so z falls with the ridge: to zero where a policy
    matches the expert, to the least possible |z| where none does. The latter is proven by weak
    duality: for every policy

        |z|_2 >= <z, u>/|u|_2 >= ( min over policies of their cost under u  -  the expert's )/|u|_2

    where costs are in the units of `entropy_dual` and a plan bounds the minimum
    (`least_cost_bound`).
    """

    def __init__(
        self, dual: EntropyDual, tolerance: float, watch: Watch, max_iterations: int
    ) -> None:
        self.dual, self.tolerance = dual, tolerance
        self.watch, self.max_iterations = watch, max_iterations
        self.iterations = 0
        self.least = 0.0
        """No policy's mismatch is below this."""
        self.ridge = FIRST_RIDGE
        self.point = dual.at(np.zeros(dual.target.size))
        self._closest = self.ridge, self.point

    @property
    def mismatch(self) -> float:
        return float(np.linalg.norm(self.point.mismatch))

    @property
    def words(self) -> str:
        """What was reached, for the log."""
        reached = (
            f"mismatch {self.mismatch:.3g} (in units of {self.dual.size:.4g}) with ridge "
            f"{self.ridge:.3g}"
        )
        if self.mismatch <= self.tolerance:
            return f"matched: {reached}"
        if self.least > self.tolerance:
            proven = f"{self.least * (1 - LAST_DIGIT):.4g}"
            return f"out of reach: {reached}, no policy is below {proven}"
        return f"not matched: {reached}"

    def follow(self, last: float | None) -> None:
        """Lower the ridge to `last`, or until the policy matches or nearly the best one does."""
        self.ridge = FIRST_RIDGE if last is None else max(FIRST_RIDGE, last)
        self._first()
        while True:
            self._descend(CENTRED * self.mismatch)
            if last is None and self.mismatch <= self.tolerance:
                return
            if self.ridge == last or (last is None and self._is_near_the_least()):
                self._descend(self.tolerance)
                if self.ridge == last or self._is_near_the_least():
                    return
            self.ridge = max(LOWERED * self.ridge, last or 0.0)

    def turn_back(self) -> None:
        """Go back to the point of least mismatch so far."""
        self.ridge, self.point = self._closest

    def _is_near_the_least(self) -> bool:
        """Whether matching is proven impossible, and no policy is much closer."""
        self.least = max(self.least, self._least_mismatch())
        return self.least > self.tolerance and self.mismatch <= NEAR * self.least

    def _least_mismatch(self) -> float:
        size = float(np.linalg.norm(self.point.u))
        if size == 0.0:
            return 0.0
        direction = self.point.u / size
        world = self.dual.world
        cost = self.dual.problem.cost_of(self.dual.weights(direction))
        cheapest = least_cost_bound(world, cost, plan(world, cost).values)
        return self.dual.rate * cheapest - float(direction @ self.dual.target)

    def _first(self) -> None:
        """L-BFGS from wherever the point is."""
        from scipy.optimize import minimize

        trial = self.point

        def evaluate(u: FloatArray) -> tuple[float, FloatArray]:
            nonlocal trial
            trial = self.dual.at(u, near=trial)
            return ridged_value(trial, self.ridge), ridged_gradient(trial, self.ridge)

        def accept(u: FloatArray) -> None:
            self._reach(trial if np.array_equal(u, trial.u) else self.dual.at(u, near=trial))

        minimize(
            evaluate, self.point.u, jac=True, method="L-BFGS-B", callback=accept,
            options={"maxiter": FIRST_STEPS, "gtol": CENTRED * FIRST_RIDGE, "ftol": 0.0},
        )  # fmt: skip

    def _descend(self, wanted: float) -> None:
        """Newton's method at this ridge until the gradient is below `wanted`."""
        while np.linalg.norm(ridged_gradient(self.point, self.ridge)) > max(
            wanted, self.tolerance / 4
        ):
            there = newton_step(self.point, self.ridge, lambda: self.watch.must_stop)
            if there is None:
                raise Stopped(Status.INACCURATE)
            self._reach(there)

    def _reach(self, point: EntropyPoint) -> None:
        """Move there; stop when it is time to."""
        value = ridged_value(point, self.ridge)
        self.iterations += 1
        if not math.isfinite(value):
            raise Stopped(Status.NOT_FINITE)
        self.point = point
        if self.mismatch < np.linalg.norm(self._closest[1].mismatch):
            self._closest = self.ridge, point
        if self.watch.report(self.iterations, value):
            raise Stopped(self.watch.stop_status)
        if self.iterations >= self.max_iterations:
            raise Stopped(Status.STEP_LIMIT)
