"""The loop of `BandedProgram`: an interior-point method whose equations are a band.

    maximise    <initial, V> - <target, y>
    over        y in Y,  slack = C y - E V >= 0,         E = B - discount P

is the dual of the exact program, in units (`dual_set.UnitProgram`); the measures mu are the
multipliers of the slacks. A step of Newton's method on

    E' mu = initial,      y answers C' mu - target over Y,      mu slack = goal

has with D = diag(mu/slack) the equations

    K dV - E' D C dy = f               K = E' D E = L L', a band (`band`)
    (S + bounds of Y) dy = g           S = R' D R,  R = C - E T,  T = K^-1 E' D C

(early on S = C' D C - W' W with W = L^-1 E' D C, which takes fewer operations and loses digits)

so costs and budgets are a border of the band, and all of Y, whatever the class, is a matter of
small dense matrices (`dual_interior`).

One call is one step: Mehrotra's predictor and corrector, each part weighted so that the step is
longest (Colombo and Gondzio), then correctors that move single products back to the middle. A
measure that misses the flow by r misses it by more after a step than Newton's method says, since
K can be ill-conditioned: one step of refinement puts that right.

Bounds. (V, y) is feasible all along, so its value is a lower bound. The measure defines a policy,
whose occupancy is the measure and that of the policy from r on: its gap is at most the measure's
and |r|_1 in units. Near the end the policy is evaluated exactly instead, and y is planned for.

States that no policy gets to are left out: their measure is zero, so there is no interior.

Reference: Mehrotra, "On the implementation of a primal-dual interior point method", 1992; Gondzio,
"Multiple centrality corrections in a primal-dual method for linear programming", 1996; Colombo and
Gondzio, "Further development of multiple centrality correctors for interior point methods", 2008.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError

from journeyman.arrays import FloatArray
from journeyman.policy import extract
from journeyman.policy.planning import improve
from journeyman.policy.policy_evaluation import Chains
from journeyman.policy.table import Policy
from journeyman.solvers.exact.band import BandEquations, BandFactor, band_order
from journeyman.solvers.exact.column_search import BoundedSearch, DualPoint, shortest_ending
from journeyman.solvers.exact.dual_interior import (
    InteriorWeights,
    Products,
    WeightChange,
    WeightSystem,
)
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.exact.smooth_search import SoftChain
from journeyman.solvers.running import Watch

TO_THE_BOUNDARY = 0.995
LEAST_GOAL = 1e-4
"""Of the mean product: what a step aims at, at least."""
FEW, MANY = 2, 3
"""Correctors of single products, where a step costs as much as some solves and where more."""
HEAVY = 50
"""Costs, from which on it is the latter."""
AMBITION, WORTHWHILE = 1.5, 0.1
"""A corrector aims at steps that are longer by this, and has to gain this share of it."""
NARROWEST, WIDEST = 0.1, 10.0
"""Products are moved to between so many times the goal."""
SHARES = np.linspace(1.0, 0.1, 10)
"""Of a corrector, that are tried."""
ROOM = 0.5
"""Of the mean slack and measure, that a start is away from the boundary."""
WARM = 1e-2
"""Of the bounds' distance: from there a search for a program nearby begins."""
EARLY, EARLY_WITH_MANY = 1e-3, 1e-7
"""Sum of all products, from which on the curvature is computed without cancellation: with few costs
and with many, where it takes most of the time."""
NEGLIGIBLE = 1e-2
"""Of the tolerance: how much of a flow may be lost before it is put right."""
SPENT = 1e-4
"""Of the tolerance: with smaller products nothing changes any more."""
PATIENCE = 12
PLAN_STEPS = 60
ACCURACY = 1e-10


@dataclass(frozen=True, eq=False)
class BandedPoint:
    """Measure, slack and values in the order of the band, and the weights inside Y."""

    measure: FloatArray
    slack: FloatArray
    values: FloatArray
    weights: InteriorWeights

    @property
    def product(self) -> float:
        return float(self.measure @ self.slack) + self.weights.product

    @property
    def num_products(self) -> int:
        return self.measure.size + self.weights.num_products


@dataclass(frozen=True, eq=False)
class Step:
    """A change of all of it."""

    measure: FloatArray
    slack: FloatArray
    values: FloatArray
    weights: WeightChange

    def plus(self, other: "Step", along: float, across: float) -> "Step":
        return Step(
            self.measure + across * other.measure, self.slack + along * other.slack,
            self.values + along * other.values, self.weights.plus(other.weights, along, across),
        )  # fmt: skip


class BandedSearch(BoundedSearch):
    """State of one solve. `lower`, `upper` and the best policy are valid after every call."""

    patience = PATIENCE

    def __init__(
        self, task: UnitProgram, tolerance: float, watch: Watch, memory_limit: float = np.inf
    ) -> None:
        super().__init__(task, tolerance, watch, memory_limit)
        self.measure: FloatArray | None = None
        """That of the best policy."""
        self.point: BandedPoint | None = None
        self.early: BandedPoint | None = None
        """The point from which a program nearby is begun."""
        self.equations: BandEquations | None = None
        self._given_out, self._call_seconds = False, 0.0

    @property
    def held_bytes(self) -> int:
        """Of everything that outlives a call."""
        return 0 if self.equations is None else self.equations.held_bytes

    @property
    def description(self) -> str:
        """The engine in words."""
        if self.equations is None:
            return "interior point (not started)"
        order = self.equations.order
        hubs = f" and {order.num_hubs} hubs" if order.num_hubs else ""
        return f"interior point ({self.calls} steps, a band of {order.width}{hubs})"

    def policy(self, accuracy: float) -> Policy:
        """The best policy."""
        if self.measure is None or self.equations is None:
            return Policy.uniform(self.world)
        measure = np.zeros(self.world.num_pairs)
        measure[self.equations.pairs] = self.measure
        return extract(self.world, measure)

    def take_over(self, other: "BandedSearch") -> None:
        """Begin near a point of another search over the same costs."""
        self.equations = other.equations
        if other.early is None or self.equations is None:
            return
        weights = replace(other.early.weights, duals=self.duals)
        moved = self.duals.weights(weights.v) - other.duals.weights(weights.v)
        slack = other.early.slack + self.equations.costs @ moved
        room = max(0.0, float((other.early.slack - slack).max()))
        values = other.early.values - room * self.world.effective_horizon
        self.point = BandedPoint(other.early.measure, slack + room, values, weights)

    def raise_prices(self, factor: float) -> None:
        """Let broken budgets cost more; the upper bound starts again."""
        raised = self.duals.raised(factor)
        if self.point is not None:
            weights = self.point.weights
            above = weights.above + raised.upper - self.duals.upper
            weights = replace(weights, duals=raised, above=above)
            self.point = replace(self.point, weights=weights)
        self.duals, self.upper, self._given_out = raised, np.inf, False

    def call(self) -> bool:
        """One step; False when it was cut short by the watch."""
        began = self.watch.elapsed
        if self.equations is None:
            order = band_order(self.world)
            self.equations = BandEquations(self.world, self.costs, order)
        with np.errstate(all="ignore"):  # what is not finite ends the search
            if self.point is None:
                self.point = self._start(self.equations)
            elif not self._given_out:
                self._advance(self.equations, self.point)
            self._judge(self.equations, self.point)
        self.calls += 1
        self.trace.append((self.watch.elapsed, *self.bounds))
        self._call_seconds = self.watch.elapsed - began
        return True

    def ending_seconds(self) -> float:
        """How long it will take to evaluate the best policy, by what a step takes, which has a
        factor and many products."""
        return 2 * self._call_seconds or shortest_ending(self.world, self.watch)

    def _start(self, equations: BandEquations) -> BandedPoint:
        """Least squares for values and measure, moved inside by a constant."""
        world, E, count = self.world, equations.E, equations.pairs.size
        dual = self.duals.weights(self.duals.middle())
        cost = np.asarray(equations.costs @ dual)
        factor = equations.factor(np.ones(count))
        values = factor.solve(equations.E_transposed @ cost)
        slack = cost - E @ values
        room = max(0.0, -1.5 * float(slack.min())) + ROOM * float(np.abs(slack).mean())
        room += 0.1 / world.effective_horizon
        measure = E @ factor.solve(self._initial(equations))
        measure += max(0.0, -1.5 * float(measure.min())) + ROOM * world.effective_horizon / count
        values, slack = values - room * world.effective_horizon, slack + room
        slope = self.duals.lifted(self._missed(equations, measure))
        size = float(measure @ slack) / count + 0.01 * float(np.abs(slope).mean())
        return BandedPoint(measure, slack, values, InteriorWeights.start(self.duals, slope, size))

    def _initial(self, equations: BandEquations) -> FloatArray:
        return self.world.initial[equations.states]

    def _missed(self, equations: BandEquations, measure: FloatArray) -> FloatArray:
        """C' measure - target."""
        return np.asarray(equations.costs_transposed @ measure) - self.task.target

    def _advance(self, equations: BandEquations, point: BandedPoint) -> None:
        try:
            moved = _Newton(self, equations, point).advanced()
        except (LinAlgError, ValueError, ZeroDivisionError):  # no factor, or nothing finite
            moved = None
        if moved is None:
            self._given_out = True
        else:
            self.point = moved

    def _judge(self, equations: BandEquations, point: BandedPoint) -> None:
        """Both bounds of a point; exactly where it is as good as it will be."""
        point = self.point or point
        dual = self.duals.weights(point.weights.v)
        initial = self._initial(equations)
        bound = float(initial @ point.values - self.task.target @ dual)
        if bound > self.best.bound:
            self.best = DualPoint(bound, dual, self._everywhere(equations, point.values, dual))
        lost = float(np.abs(initial - equations.E_transposed @ point.measure).sum())
        self._offer(self._missed(equations, point.measure), lost, point.measure)
        if self.early is None and self.gap <= WARM:
            self.early = point
        self._given_out |= point.product <= SPENT * self.tolerance
        self.patience = 1 if self._given_out else PATIENCE
        near = self._given_out or point.product <= self.tolerance
        if near and self.gap > self.tolerance:
            self._polish(equations, point, dual)

    def _offer(self, difference: FloatArray, lost: float, measure: FloatArray) -> None:
        """A policy whose expectations are within `lost` of a difference, in units."""
        upper = self.duals.support(self.duals.lifted(difference)) + lost * self._widest
        upper += float(self.duals.base(difference))
        if upper < self.upper:
            self.upper, self.measure = upper, measure
            self._difference = difference + lost

    @property
    def _widest(self) -> float:
        """What a unit of lost mass can be worth: costs and budgets have size one."""
        count = self.duals.num_lifted
        prices = float(self.duals.upper[count:].sum())
        centre = 0.0 if self.duals.chosen is None else float(np.abs(self.duals.chosen.centre).sum())
        return 1.0 + prices + centre

    def _polish(self, equations: BandEquations, point: BandedPoint, dual: FloatArray) -> None:
        """The policy evaluated exactly, the weights planned for."""
        world, whole = self.world, np.zeros(self.world.num_pairs)
        if not (np.isfinite(point.measure).all() and np.isfinite(point.values).all()):
            return
        whole[equations.pairs] = point.measure
        law = extract(world, whole).on(world)
        chains = Chains(world)
        visits = SoftChain(chains, law).visits(world.initial * world.effective_horizon, ACCURACY)
        measure = world.pairs.spread(visits) * law
        difference = np.asarray(self.costs.T @ measure) - self.task.target
        lost = float(np.abs(world.flow.residual(measure)).sum())
        self._offer(difference, lost, measure[equations.pairs])
        if self.gap <= self.tolerance:
            return
        cost = np.asarray(self.costs @ dual)
        allowed = 0.1 * self.tolerance * (1 - world.discount)
        start = self._everywhere(equations, point.values, dual)
        plan = improve(chains, cost, start, allowed=allowed, most=PLAN_STEPS)
        bound = float(world.initial @ plan.values - self.task.target @ dual)
        bound -= plan.loss * world.effective_horizon
        if bound > self.best.bound:
            self.best = DualPoint(bound, dual, plan.values)

    def _everywhere(
        self, equations: BandEquations, values: FloatArray, dual: FloatArray
    ) -> FloatArray:
        """Values in the world's order; so low where no policy gets to that nothing is better."""
        world = self.world
        found = np.zeros(world.num_states)
        found[equations.states] = values
        if values.size < world.num_states:
            least = float(np.asarray(self.costs @ dual).min()) * world.effective_horizon
            found[equations.order.place < 0] = min(least, float(values.min()))
        return found


class _Newton:
    """Steps from one point, which share a factor. `border` is W early on, later T."""

    def __init__(self, search: BandedSearch, equations: BandEquations, at: BandedPoint) -> None:
        self.equations, self.at, self.duals = equations, at, search.duals
        self.ratio, self.negligible = at.measure / at.slack, NEGLIGIBLE * search.tolerance
        self.lost = search._initial(equations) - equations.E_transposed @ at.measure
        self.factor: BandFactor = equations.factor(self.ratio)
        self.border = self.factor.forward(equations.border(self.ratio), equations.reached)
        many = self.border.shape[1] > HEAVY
        self.correctors = MANY if many else FEW
        self.early = at.product > (EARLY_WITH_MANY if many else EARLY)
        if self.early:
            curvature = equations.remainder(self.ratio, self.border)
        else:
            self.border = self.factor.backward(self.border)
            curvature = equations.curvature(self.ratio, self.border)
        slope = self.duals.lifted(search._missed(equations, at.measure))
        matrix = self.duals.lifted(self.duals.lifted(curvature).T)
        self.system = WeightSystem(at.weights, slope, matrix)

    def advanced(self) -> BandedPoint | None:
        """The point after a step; None where there is no way on."""
        at = self.at
        mean = at.product / at.num_products
        step = self._step(-at.measure * at.slack, at.weights.emptied(), repair=True)
        after = self._moved(step, *self._reach(step)).product
        goal = mean * max(min(1.0, max(after, 0.0) / at.product) ** 3, LEAST_GOAL)
        second = self._step(
            goal - step.measure * step.slack, self.system.raised(goal, step.weights), repair=False
        )
        step, along, across = self._longest(step, second)
        for _ in range(self.correctors):
            aims = [min(1.0, AMBITION * length + WORTHWHILE) for length in (along, across)]
            centring = self._step(*self._towards(goal, step, *aims), repair=False)
            longer, farther, wider = self._longest(step, centring)
            gained = farther - along > WORTHWHILE * (aims[0] - along)
            gained |= wider - across > WORTHWHILE * (aims[1] - across)
            if not gained:
                break
            step, along, across = longer, farther, wider
        along, across = TO_THE_BOUNDARY * along, TO_THE_BOUNDARY * across
        moved = self._moved(step, along, across)
        finite = np.isfinite(moved.measure).all() and np.isfinite(moved.values).all()
        return moved if finite and max(along, across) > 1e-10 else None

    def _step(self, wanted: FloatArray, products: Products, *, repair: bool) -> Step:
        """Newton towards products; with `repair` also towards the flow and balanced weights."""
        equations, factor = self.equations, self.factor
        lost = self.lost if repair else np.zeros_like(self.lost)
        own = wanted / self.at.slack
        flow = lost - equations.E_transposed @ own
        above = factor.forward_vector(flow)
        passed = self.border.T @ (above if self.early else flow)
        behind = np.asarray(equations.costs_transposed @ own) + passed
        weights = self.system.change(products, self.duals.lifted(behind), repair=repair)
        turned = self._turned(weights.v)
        raised = self.border @ turned
        values = factor.backward_vector(above + raised if self.early else above)
        if not self.early:
            values = values + raised
        slack = np.asarray(equations.costs @ turned) - equations.E @ values
        measure = own - self.ratio * slack
        rounding = lost - equations.E_transposed @ measure
        if float(np.abs(rounding).sum()) > self.negligible:
            more = factor.solve(rounding)
            change = equations.E @ more
            values, slack = values + more, slack - change
            measure = measure + self.ratio * change
        return Step(measure, slack, values, weights)

    def _turned(self, v: FloatArray) -> FloatArray:
        """The change of weights and prices that a change of v makes."""
        chosen, count = self.duals.chosen, self.duals.num_lifted
        if chosen is None or chosen.generators is None:
            return v
        moved = chosen.weights(v[:count]) - chosen.centre
        return np.concatenate([moved, v[count:]])

    def _towards(
        self, goal: float, step: Step, along: float, across: float
    ) -> tuple[FloatArray, Products]:
        """What products after a longer step lack to be between both ends."""
        at, change = self.at.weights, step.weights

        def lacking(products: FloatArray) -> FloatArray:
            missing = np.clip(products, NARROWEST * goal, WIDEST * goal) - products
            return np.maximum(missing, -WIDEST * goal)

        measure = self.at.measure + across * step.measure
        own = lacking(measure * (self.at.slack + along * step.slack))
        high = (at.high + across * change.high) * (at.above - along * change.v)
        low = (at.low + across * change.low) * (at.below + along * change.v)
        return own, Products(lacking(high), lacking(low), np.zeros_like(at.cone.z))

    def _longest(self, step: Step, other: Step) -> tuple[Step, float, float]:
        """With the shares of another one with which it is longest, and how long."""
        from journeyman.solvers.exact.band_kernels import reaches

        at, one, two = self.at.weights, step.weights, other.weights
        along, across = np.ones(SHARES.size), np.ones(SHARES.size)
        reaches(self.at.slack, step.slack, other.slack, SHARES, along)
        reaches(at.above, -one.v, -two.v, SHARES, along)
        reaches(at.below, one.v, two.v, SHARES, along)
        reaches(self.at.measure, step.measure, other.measure, SHARES, across)
        reaches(at.high, one.high, two.high, SHARES, across)
        reaches(at.low, one.low, two.low, SHARES, across)
        if at.cone.is_there:
            cones = [at.cone.reach(one.plus(two, share, share).cone) for share in SHARES]
            along, across = (np.minimum(own, part) for own, part in
                             zip((along, across), np.transpose(cones), strict=True))  # fmt: skip
        best, widest = int(along.argmax()), int(across.argmax())
        both = step.plus(other, float(SHARES[best]), float(SHARES[widest]))
        return both, float(along[best]), float(across[widest])

    def _reach(self, step: Step) -> tuple[float, float]:
        from journeyman.solvers.exact.band_kernels import reaches

        none, along, across = np.zeros(1), np.ones(1), np.ones(1)
        reaches(self.at.slack, step.slack, step.slack, none, along)
        reaches(self.at.measure, step.measure, step.measure, none, across)
        lengths = self.at.weights.reach(step.weights)
        return min(float(along[0]), lengths[0]), min(float(across[0]), lengths[1])

    def _moved(self, step: Step, along: float, across: float) -> BandedPoint:
        return BandedPoint(
            self.at.measure + across * step.measure, self.at.slack + along * step.slack,
            self.at.values + along * step.values,
            self.at.weights.moved(step.weights, along, across),
        )  # fmt: skip
