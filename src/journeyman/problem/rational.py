"""Rational experts: which costs the recorded actions are compatible with, and what that bounds.

Declared is that for one cost c_w, w in W, that nobody knows, the recorded actions are good. With V
the optimal values of c_w, E = B - discount P and the advantage (Psi w - E V)(s) >= 0 of a pair s,
what its action costs more than the best one would have, (w, V) lies in the convex set

    K = { (w, V) :  w in W,   E V <= Psi w   in all pairs,      low <= V <= high,
                    E V = Psi w                                 in pairs without a choice,
                    (Psi w - E V)(s) <= limit_s                 for every recorded pair s,
                    sum over recorded steps of Psi w - E V <= B,
                    <e, w> - <initial, V> <= a }

| premise         | what it adds                                                                  |
|-----------------|-------------------------------------------------------------------------------|
| `Rational`      | B = regret_per_step times the recorded steps, so limit_s = B/count_s          |
| `SoftRational`  | limit_s = T log(M A/delta) + discount T h log A, with probability 1 - delta   |
| `NearlyOptimal` | the last row: e estimated by x within a radius r, a = regret + r              |

A state has no choice if all its actions have one law and one cost: one action, or an end where
episodes rest. Its advantage is zero whatever the cost, so what lies behind an end is known.

Where M bounds the steps and A the actions of a state: an action of probability q or less is drawn
with probability A q at most, so with probability 1 - delta all M have probability delta/(M A) or
more, that is a soft advantage of T log(M A/delta) or less; and soft values are below the optimal
ones by at most T h log A. low and high are values of the least and the largest cost that W has in
each pair: V lies between them whatever w is.

*Guarantee.* For every policy with occupancy mu, and the expert's own w,

    <mu, c_w> - least possible cost  <=  R(policy) = max over K of <Psi' mu, w> - <initial, V>

a bound on the regret to the optimum under that one cost, not on the supremum over W. By weak
duality every kappa, lam, t, tau >= 0 (kappa on recorded pairs; lam of any sign in pairs without a
choice) proves a bound, with y = kappa + t counts - lam and sig = (1 - sum tau) initial - E' y:

    R  <=  gap_W(Psi'(mu - y) - sum_k tau_k x_k) + <limit, kappa> + t B + <tau, a>
           - <sig+, low> + <sig-, high>

`RationalSet.bound` adds this up, rounding included; no optimiser is believed. In words: the policy
is compared with any signed flow whose positive part the expert was seen to take.

*When it cannot be true.* R >= 0 whenever K holds anything, and W often holds a cost under which all
policies are alike (zero in a ball): records that contradict each other leave only that one, and R
is zero for every policy. So R of the uniform policy is always computed: zero or less, where costs
of the class do distinguish policies, refutes the premise. It does not find everything, and an
expert whose own cost makes all policies alike is excluded with it.

*The minimax policy*: min over mu of R is one linear program (a cone program for a ball),

    maximise <initial, V2> - <initial, V>  over (w, V) in K and E V2 <= Psi w

whose prices of the last rows are mu. *Cost*: twice the states of the exact program.

*Budgets* <mu, d_j> <= b_j. The expert is compared with the best policy that keeps them. That policy
is a solution of a linear program, so there are prices xi >= 0 of the budgets with

    least cost within the budgets  =  <initial, V> - <b, xi>,

V the optimal values of the cost c_w + D xi. An expert who reaches it has <mu, c_w + D xi> =
<initial, V> and what it leaves of a budget has no price: so every action that it takes in episodes
of its own, drawn or not, has advantage zero under c_w + D xi. K is then a set of (w, xi, V): in its
rows Psi w becomes Psi w + D xi and <initial, V> becomes <initial, V> - <b, xi>, and

    xi >= 0,      low + Dlow xi <= V <= high + Dhigh xi,
    floor <= <initial, V> - <b, xi>

where column j of Dlow and Dhigh has the least and the largest values of d_j, and floor = <initial,
low>, less T h log A for a soft-rational expert: its prices are those of its own problem, whose
optimum is below the least cost by so much at most, and not above <initial, V> - <b, xi>.
For a policy mu that is strictly inside all budgets the rows imply

    <xi, b - D'mu>  <=  <mu, c_w> - floor

so xi is bounded, and nothing has to be declared about it. Whatever xi >= 0 is, <initial, V> -
<b, xi> is not above the least cost within the budgets: so

    <mu, c_w> - least cost within the budgets  <=  R(policy)
                            R(policy) = max over K of <Psi' mu, w> - <initial, V> + <b, xi>

for every policy, also one that breaks a budget, which may cost less than the best that keep them:
R can be negative then. With alpha >= 0 the price of the floor, sig = (1 - alpha - sum tau) initial
- E' y, and the bound above gets the term -alpha floor, if for every budget

    (1 - alpha - sum tau) b - D' y - Dlow' sig+ + Dhigh' sig-  <=  0.

Prices that miss this by a little are moved: adding delta mu to lam and delta to alpha, for mu
strictly inside, leaves sig as it is and takes delta (b - D'mu) off. Where no such mu is known,
alpha = 1 alone is what remains: what bounded costs imply.

The random policy that the premise is tested with is then not the uniform one but a mixture of it
with a policy well inside: its regret at a member of K is its advantage under c_w + D xi plus
<xi, b - D'mu>, so R >= 0 again, and zero only where K holds nothing but costs under which all
policies are alike, and xi = 0. A cost that a price cancels, as that of an expert who wants to use
all of a budget, is not one of those. What an expert leaves of a budget is not in K: it is where
`NearlyOptimal` is declared too, for its row bounds <xi, b - D'mu> of the expert.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix, read_only
from journeyman.costs.cost_class import WeightSet
from journeyman.errors import InvalidProblem
from journeyman.policy import Occupancy, Policy, extract, occupancy, plan
from journeyman.policy.policy_evaluation import advantages
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.problem.bounds import least_cost_bound, plain_bound, priced_cost
from journeyman.problem.cone_program import Cone, ConeModel, clarabel_settings, clarabel_solver
from journeyman.problem.expert_premises import NearlyOptimal, Rational, SoftRational
from journeyman.problem.reduced import within_all_budgets
from journeyman.world import World

EPSILON = float(np.finfo(float).eps)
TOLERANCE = 1e-10
"""Asked of the engine; what its point proves is added up afterwards."""
GIVEN_UP = ("InsufficientProgress", "NumericalError", "MaxIterations")
"""Words of the engine after which a program is solved again, more carefully."""
REFINEMENTS = 1
"""Of every linear system: more are a third of the engine's time."""
CAP = 1e3
"""Times the horizon: prices of the expert's rows add up to this at most, so that the program has a
solution also where K is empty. A smaller price proves no less than the truth."""
NOTHING = 1e-5
"""Of what bounded costs allow: an R of the uniform policy below this, but for what rounding may
hide, is zero; beyond a horizon of 100 steps times the horizon over 100, for engines are less exact
there. They leave up to 1e-7 of records that contradict each other (2e-5 at discount .999); experts
who satisfy a premise left 8e-3 or more in hundreds of random worlds."""
LONG = 100.0
SHOWN = 1e-9
"""Of what bounded costs allow: a smaller regret of the uniform policy shows no cost."""
MISSED = 1e-3
"""Of the uniform policy's regret: what a cost that is shown for a premise may miss, and with
budgets, by how much policies differ under it at least."""
VISITED = 1e-12
"""Discounted visits that are not just rounding."""
MOVES = 8
"""Of prices, until they bear the budgets' rounding too."""
KEPT = 0.5
"""Of what a policy well inside the budgets leaves: as much is left by the random one."""


@dataclass(frozen=True, eq=False)
class Average:
    """The last row of K: the expert's expectations as estimated, and what they may miss."""

    values: FloatArray
    radius: float
    """gap_W(values - truth) is at most this, with the stated probability."""


@dataclass(frozen=True, eq=False)
class RationalPrices:
    """A dual point: prices of the rows of K. Whatever they are, they prove a bound."""

    of_steps: FloatArray
    """kappa, one for every recorded pair."""
    of_total: float
    """t, of the sum over all recorded steps."""
    of_averages: FloatArray
    """tau, one for every estimate."""
    of_pairs: FloatArray
    """lam, of E V <= Psi w, one for every pair."""
    of_floor: float = 0.0
    """alpha, of the least cost that is possible within the budgets; 0 without budgets."""

    def repaired(self, forced: IntArray) -> "RationalPrices":
        """The same without infinite prices, and without negative ones but in `forced` pairs."""
        of_pairs = _positive(self.of_pairs)
        of_pairs[forced] = np.nan_to_num(self.of_pairs[forced], posinf=0.0, neginf=0.0)
        return RationalPrices(
            _positive(self.of_steps), float(_positive(np.array([self.of_total]))[0]),
            _positive(self.of_averages), of_pairs,
            float(_positive(np.array([self.of_floor]))[0]),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class RegretBound:
    """What prices prove about the regret of a policy, in its parts."""

    prices: RationalPrices
    under_worst_cost: float
    """gap_W(Psi'(mu - y) - sum_k tau_k x_k)."""
    declared: float
    """<limit, kappa> + t B + <tau, regret>."""
    sampling: float
    """<tau, radius>."""
    unseen: float
    """-<sig+, low> + <sig-, high>: what is left to values that no record shows."""
    floor: float
    """-alpha floor; 0 without budgets."""
    rounding: float
    flow: FloatArray
    """sig, per state."""

    @property
    def value(self) -> float:
        return float(np.nextafter(self.computed + self.rounding, np.inf))

    @property
    def computed(self) -> float:
        """Without what rounding may hide, which grows with the prices."""
        known = self.under_worst_cost + self.declared + self.sampling
        return float(known + self.unseen + self.floor)


@dataclass(frozen=True, eq=False)
class Member:
    """A cost and values that the engine found in K, or so near as its accuracy is."""

    weights: FloatArray
    values: FloatArray
    violation: float = 0.0
    """By how much, at most, a row of K is not met."""
    prices: FloatArray = field(default_factory=lambda: np.zeros(0))
    """xi, of every budget."""
    response: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Prices of the budgets for the best policy under this cost, where one was looked for."""


Found = tuple[RationalPrices, Member, FloatArray | None]
Stop = Callable[[int, float], bool]
"""Called with the iteration and the objective; True ends the search."""


def never(iteration: int, objective: float) -> bool:
    """No reason to stop."""
    return False


@dataclass(frozen=True, eq=False)
class RationalSet:
    """K of a problem with premises about the expert's own cost."""

    problem: Apprenticeship
    pairs: IntArray
    """Recorded pairs, sorted."""
    counts: FloatArray
    """How often each was recorded."""
    limits: FloatArray
    """limit_s."""
    total: float
    """B; infinite where nothing is declared about the sum."""
    averages: tuple[Average, ...]
    regret: float
    """Declared of the expert as a whole."""
    failure_probability: float
    """Of what is declared by a law: the limits of a soft-rational expert."""

    @classmethod
    def of(
        cls,
        problem: Apprenticeship,
        averages: Sequence[Average] = (),
        failure_probability: float = 0.05,
    ) -> "RationalSet":
        """K as declared; `averages` of finite radius are used if the expert is declared nearly
        optimal, and `failure_probability` if it is soft-rational."""
        declared = {type(one): one for one in problem.expert_is}
        rational, soft = declared.get(Rational), declared.get(SoftRational)
        overall = declared.get(NearlyOptimal)
        pairs, counts = np.zeros(0, dtype=int), np.zeros(0)
        demos, total, spent = problem.demonstrations, np.inf, 0.0
        if demos is not None and (rational or soft):
            pairs, found = np.unique(demos.pairs_in(problem.world), return_counts=True)
            counts = found.astype(float)
        limits = np.full(pairs.size, np.inf)
        if isinstance(rational, Rational) and demos is not None:
            total = rational.regret_per_step * demos.num_steps
            limits = total / counts
        if isinstance(soft, SoftRational) and demos is not None:
            spent = failure_probability
            limits = np.minimum(limits, soft_limit(problem, soft, demos.num_steps, spent))
        nearly = isinstance(overall, NearlyOptimal)
        return cls(
            problem, pairs, read_only(counts), read_only(limits), float(total),
            tuple(one for one in averages if nearly and np.isfinite(one.radius)),
            overall.regret if isinstance(overall, NearlyOptimal) else np.inf, spent,
        )  # fmt: skip

    def restricted(self, kept: IntArray) -> "RationalSet":
        """The larger set that only the recorded pairs at these positions define."""
        return replace(
            self, pairs=self.pairs[kept], counts=self.counts[kept], limits=self.limits[kept]
        )

    # Values between which those of every cost of the class lie.

    @cached_property
    def value_range(self) -> tuple[FloatArray, FloatArray]:
        """low and high, proven: E low <= least cost; in every state one action keeps
        (E high) >= largest cost."""
        return value_range(self.problem)

    @cached_property
    def budget_range(self) -> tuple[FloatArray, FloatArray]:
        """Dlow and Dhigh (budgets x states), proven: E Dlow <= D <= E Dhigh."""
        world, columns = self.problem.world, self.problem.budget_matrix.T
        shape = (columns.shape[0], world.num_states)
        low = [_below(world, one, plan(world, one).values) for one in columns]
        high = [-_below(world, -one, plan(world, -one).values) for one in columns]
        return read_only(np.reshape(low, shape)), read_only(np.reshape(high, shape))

    @cached_property
    def floor(self) -> float:
        """No policy costs less from the start, whatever w is; less what a soft-rational expert's
        own optimum may be below that."""
        problem, least = self.problem, float(self.problem.world.initial @ self.value_range[0])
        soft = [one for one in problem.expert_is if isinstance(one, SoftRational)]
        if not soft:
            return least
        actions = problem.world.pairs.max_actions
        return least - soft[0].temperature * problem.effective_horizon * float(np.log(actions))

    @cached_property
    def forced(self) -> IntArray:
        """The first pair of every state without a choice."""
        world, costs = self.problem.world, sparse.csr_array(self.problem.cost_matrix)
        first = world.pairs.offsets[:-1]
        of_state = first[world.pairs.states]
        differs = np.zeros(world.num_pairs)
        for rows in (world.transition, costs, sparse.csr_array(self.problem.budget_matrix)):
            differs += abs(rows - rows[of_state]).sum(axis=1)
        return np.asarray(first[world.pairs.smallest(-differs) == 0])

    @cached_property
    def random_policy(self) -> Policy:
        """The policy that the premise is tested with: the uniform one, with budgets mixed with one
        that is well inside all of them, where one was found."""
        problem, world = self.problem, self.problem.world
        uniform = Policy.uniform(world)
        if not problem.constraints:
            return uniform
        inside, measure = within_all_budgets(problem), occupancy(world, uniform).measure
        spare, left = -problem.overspending(inside), -problem.overspending(measure)
        if spare.min() <= 0:
            return uniform
        lost = np.maximum(spare - left, (1 - KEPT) * spare)
        share = float(np.min((1 - KEPT) * spare / lost))
        return extract(world, (1 - share) * inside + share * measure)

    @cached_property
    def random_visits(self) -> Occupancy:
        """Of the random policy."""
        return occupancy(self.problem.world, self.random_policy)

    @cached_property
    def spare(self) -> FloatArray:
        """What the random policy leaves of every budget; negative where it breaks it."""
        return -self.problem.overspending(self.random_visits.measure)

    @cached_property
    def uniform(self) -> FloatArray:
        """Expectations of the random policy, which without budgets is the uniform one."""
        return np.asarray(self.random_visits.expectations(self.problem.basis))

    # What prices prove.

    def bound(self, expectations: FloatArray, prices: RationalPrices) -> RegretBound:
        """The bound that prices prove for a policy with these expectations."""
        point = self._bearing_budgets(prices.repaired(self.forced))
        problem, (low, high) = self.problem, self.value_range
        y, _, flow = self._flows(point)
        spent = float(point.of_averages.sum())
        z = expectations - problem.cost_matrix.T @ y
        for tau, one in zip(point.of_averages, self.averages, strict=True):
            z = z - tau * one.values
        declared = _paid(self.limits, point.of_steps) + _paid(self.total, point.of_total)
        declared += _paid(self.regret, spent)
        sampling = sum(
            tau * one.radius for tau, one in zip(point.of_averages, self.averages, strict=True)
        )
        unseen = -(np.maximum(flow, 0.0) @ low) + np.maximum(-flow, 0.0) @ high
        return RegretBound(
            point, problem.cost_class.gap(np.asarray(z)), float(declared), float(sampling),
            float(unseen), -point.of_floor * self.floor if point.of_floor else 0.0,
            self._rounding(expectations, y, point, declared + sampling), read_only(flow),
        )  # fmt: skip

    def _flows(self, point: RationalPrices) -> tuple[FloatArray, float, FloatArray]:
        """y, the share 1 - alpha - sum tau of the start, and sig."""
        world = self.problem.world
        y = -point.of_pairs
        y[self.pairs] += point.of_steps + point.of_total * self.counts
        share = 1.0 - float(point.of_averages.sum()) - point.of_floor
        return y, share, share * world.initial - world.flow.apply(y)

    def _bearing_budgets(self, point: RationalPrices) -> RationalPrices:
        """The same prices, moved until no price xi of a budget makes the bound larger."""
        if not self.problem.constraints:
            return replace(point, of_floor=0.0)
        for _ in range(MOVES):
            missed = self._missed_by_budgets(point)
            if (missed <= 0).all():
                return point
            if not (self.spare > 0).all() or not np.isfinite(missed).all():
                break
            more = float(np.max(missed / self.spare)) * (1 + 8 * EPSILON)
            point = replace(
                point, of_pairs=point.of_pairs + more * self.random_visits.measure,
                of_floor=point.of_floor + more,
            )  # fmt: skip
        none = [np.zeros_like(one) for one in (point.of_steps, point.of_averages, point.of_pairs)]
        return RationalPrices(none[0], 0.0, none[1], none[2], 1.0)

    def _missed_by_budgets(self, point: RationalPrices) -> FloatArray:
        """By how much prices of budgets could make the bound larger, with more than rounding."""
        problem, (low, high) = self.problem, self.budget_range
        y, share, flow = self._flows(point)
        missed = share * problem.limits - problem.budget_matrix.T @ y
        missed += high @ np.maximum(-flow, 0.0) - low @ np.maximum(flow, 0.0)
        mass, whole = float(np.abs(y).sum()), 2.0 - share
        largest = np.maximum(np.abs(low), np.abs(high)).max(axis=1)
        sizes = whole * np.abs(problem.limits) + mass * np.abs(problem.budget_matrix).max(axis=0)
        sizes += (whole + 2.0 * mass) * largest
        count = problem.world.num_pairs + problem.world.num_states + 16
        hidden = EPSILON * count * sizes if mass or share else 0.0 * sizes
        return np.asarray(missed + 4 * hidden)

    def _rounding(
        self, expectations: FloatArray, y: FloatArray, point: RationalPrices, paid: float
    ) -> float:
        """Sums of n products are off by n eps/2 times the sum of their sizes at most."""
        problem, world = self.problem, self.problem.world
        mass, spent = float(np.abs(y).sum()), float(point.of_averages.sum())
        sizes = np.abs(expectations) + mass * problem.basis.norms
        for tau, one in zip(point.of_averages, self.averages, strict=True):
            sizes = sizes + tau * np.abs(one.values)
        largest = float(max(np.abs(end).max() for end in self.value_range))
        matched = problem.cost_class.largest_gap(-sizes, sizes)
        flows = (1.0 + spent + point.of_floor + 2.0 * mass) * largest
        flows += point.of_floor * abs(self.floor)
        count = world.num_pairs + world.num_states + problem.num_costs + 16
        return float(EPSILON * count * (matched + flows + paid))

    # Search. Nothing that is found here is believed.

    def best_prices(self, expectations: FloatArray) -> RegretBound:
        """The least bound that the engine finds for a policy with these expectations."""
        return self.bound(expectations, self.solved(expectations)[0])

    def solved(
        self,
        expectations: FloatArray | None,
        *,
        tilt: FloatArray | None = None,
        tolerance: float = TOLERANCE,
        stop: Stop = never,
        careful: bool = False,
    ) -> Found:
        """Prices, a member of K, and without expectations the measure of the minimax policy, or of
        the policy that minimises R and its own total of the cost `tilt` (per pair).

        The tolerance is the engine's, for costs of size 1; `careful` costs twice the time and finds
        out that K is next to nothing.
        """
        program = _Program.of(self, expectations)
        if tilt is not None:
            program = program.tilted(tilt)
        return program.solved(tolerance, stop, careful=careful)

    def central_weights(self, stop: Stop = never) -> FloatArray:
        """Weights well inside of K: where interior points end that have nothing to maximise."""
        program = _Program.of(self, self.uniform).without_objective()
        return program.solved(TOLERANCE, stop, careful=False)[1].weights

    def least_regret(self, member: Member) -> float:
        """The regret of the best policy at a member of K: no policy has a smaller R, if the member
        is one; it is to within `member.violation`, the accuracy of the engine."""
        problem = self.problem
        prices = np.zeros(len(problem.constraints))
        if member.response.size:
            prices = member.response
        cost = priced_cost(problem, member.weights, prices)
        best = least_cost_bound(problem.world, cost, plan(problem.world, cost).values)
        return float(best - prices @ problem.limits - self.least_cost(member))

    def least_cost(self, member: Member) -> float:
        """<initial, V> - <b, xi>."""
        least = float(self.problem.world.initial @ member.values)
        return least - float(member.prices @ self.problem.limits)

    def openness(self, member: Member) -> FloatArray:
        """initial (V* - V) per state, at a member (w, xi, V) of K that leaves much open and V* the
        optimal values of c_w + D xi: what is unknown about the best that can be done from each
        start. A demonstration from where it is largest promises most."""
        problem = self.problem
        best = plan(problem.world, priced_cost(problem, member.weights, member.prices)).values
        return np.asarray(problem.world.initial * np.maximum(best - member.values, 0.0))

    @cached_property
    def uniform_bound(self) -> RegretBound:
        """R of the uniform policy, which the premise is tested with."""
        return self.bound(self.uniform, self._uniformly[0])

    @cached_property
    def _uniformly(self) -> Found:
        quick = self.solved(self.uniform)
        shown = self.shows_a_cost(quick[1], self._uniform_regret(quick[1]))
        return quick if shown else self.solved(self.uniform, careful=True)

    @cached_property
    def example(self) -> Member | None:
        """A cost for which the premise is true and the uniform policy has a regret; None where none
        was found."""
        member = self._uniformly[1]
        return member if self.shows_a_cost(member, self._uniform_regret(member)) else None

    def _uniform_regret(self, member: Member) -> float:
        return float(self.uniform @ member.weights) - self.least_cost(member)

    def shows_a_cost(self, member: Member, regret: float) -> bool:
        """Whether a member of K at which policies have at least this regret shows that the premise
        is possible: it meets the rows of K up to a violation that is next to nothing of the regret
        also when it adds up over the horizon."""
        horizon, shown = self.problem.effective_horizon, SHOWN * plain_bound(self.problem, None)
        if regret <= shown:
            return False
        least = regret
        if self.problem.constraints:
            least = min(regret, self._difference(member))
        return least >= MISSED * regret and member.violation <= MISSED * least / horizon

    def _difference(self, member: Member) -> float:
        """What policies differ by at most under the cost of a member, from its advantages over the
        random policy in states that can be reached: with budgets a price alone may be what agrees
        with the records."""
        cost = self.problem.cost_of(member.weights)[:, np.newaxis]
        found = advantages(self.problem.world, self.random_policy, cost)
        reached = np.abs(found[self.random_visits.measure > VISITED])
        return 2 * self.problem.effective_horizon * float(reached.max(initial=0.0))

    def contradiction(self, most_programs: int = 100) -> IntArray:
        """Positions of recorded pairs that refute the premise together: none of them can be left
        out, unless `most_programs` were too few to find that out.

        Refutation is monotone in the recorded pairs. With the others in the order of their prices,
        the shortest beginning that refutes together with what is known to be needed ends with a
        pair that is needed; it is found by bisection.
        """
        prices = self.uniform_bound.prices
        weight = prices.of_steps + prices.of_total * self.counts
        order, needed, programs = np.argsort(-weight, kind="stable"), np.zeros(0, dtype=int), 0
        while not (needed.size and self.restricted(needed).is_refuted):
            fewest, most = 1, order.size
            while fewest < most and programs < most_programs:
                middle, programs = (fewest + most) // 2, programs + 1
                if self.restricted(np.union1d(needed, order[:middle])).is_refuted:
                    most = middle
                else:
                    fewest = middle + 1
            if programs >= most_programs or not order.size:
                return np.union1d(needed, order[:most])
            needed, order = np.union1d(needed, order[most - 1 : most]), order[: most - 1]
        return needed

    @property
    def is_refuted(self) -> bool:
        """Whether no cost that distinguishes policies is compatible with the premise; a random
        policy that breaks a budget cannot tell."""
        least = next_to_nothing(self.problem)
        if self.uniform_bound.computed > least or self.example is not None:
            return False
        if not (self.spare > 0).all():
            return False
        return self.problem.largest_excess > least


def next_to_nothing(problem: Apprenticeship) -> float:
    """An R of the uniform policy that is not above this counts as zero."""
    factor = max(1.0, problem.effective_horizon / LONG)
    return NOTHING * factor * plain_bound(problem, None)


def soft_limit(
    problem: Apprenticeship, soft: SoftRational, num_steps: int, failure_probability: float
) -> float:
    """T log(M A/delta) + discount T h log A."""
    steps = num_steps if soft.most_steps is None else soft.most_steps
    actions = problem.world.pairs.max_actions
    likely = np.log(steps * actions / failure_probability)
    bias = problem.world.discount * problem.effective_horizon * np.log(actions)
    return float(soft.temperature * (likely + bias))


def value_range(problem: Apprenticeship) -> tuple[FloatArray, FloatArray]:
    """Values below and above the optimal ones of every cost of the class, in every state.

    V with E V <= c in all pairs is below the optimal values of c; V that is at least as large as
    c + discount P V in one pair of every state is above them. Plans are moved by what they miss.
    """
    world, matrix = problem.world, problem.cost_matrix
    least, largest = -problem.cost_class.row_gaps(-matrix), problem.cost_class.row_gaps(matrix)
    low, high = plan(world, least).values, plan(world, largest).values
    up = float(np.max(world.pairs.smallest(largest - world.flow.adjoint(high)), initial=0.0))
    slack = _value_slack(world, problem.num_costs, low, high, largest)
    return (
        read_only(_below(world, least, low, slack)),
        read_only(high + (up + slack) * world.effective_horizon),
    )


def _below(
    world: World, cost: FloatArray, values: FloatArray, slack: float | None = None
) -> FloatArray:
    """Values moved down until E V <= cost, rounding included; `slack` is for costs that are sums of
    larger ones."""
    down = float(np.max(world.flow.adjoint(values) - cost, initial=0.0))
    down += _value_slack(world, 0, values, cost) if slack is None else slack
    return values - down * world.effective_horizon


def _value_slack(world: World, num_costs: int, *sizes: FloatArray) -> float:
    """What rounding may hide in a row of E V <= cost."""
    size = float(max(1e-300, *(np.abs(one).max() for one in sizes)))
    branches = int(np.diff(world.transition.indptr).max(initial=0))
    return EPSILON * (branches + num_costs + 16) * 4 * size


@dataclass(frozen=True)
class CostRange:
    """Between which numbers the weight of a cost lies."""

    name: str
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 where it is known, else 0."""
        return int(self.low > 0) - int(self.high < 0)


def cost_ranges(
    problem: Apprenticeship, *, relative_to: str | None = None, failure_probability: float = 0.05
) -> tuple[CostRange, ...]:
    """What the records show about the expert's own cost, if the premise about it holds.

    The scale of a cost shows nowhere in what its optimal policies do. So weights are given in units
    of what acting uniformly at random costs more than the best policy, or relative to the size of
    the weight of one cost whose sign is known. Ranges are over the costs of K under which the
    uniform policy loses at least half of the most that it can lose under any of them. With budgets
    their prices follow, and `RationalSet.random_policy` stands for the uniform one.

    Args:
        relative_to: the name of a cost: ranges are then of w_i/|w_j|.
        failure_probability: of the limits of a `SoftRational` expert. What `NearlyOptimal` declares
            is not used.

    Ends are as exact as the engine; nothing certified rests on them. *Cost*: two programs per cost,
    each as large as that of R.
    """
    given = RationalSet.of(problem, (), failure_probability)
    names, unit = problem.basis.names, problem.cost_unit
    if given.is_refuted:
        raise InvalidProblem(
            "the records contradict the premise: no cost under which policies differ is left",
            "Declare more regret",
        )
    cone = _Cone.of(given)
    rows = [cone.weight(at) for at in range(len(names))]
    for budget, size in enumerate(problem.budget_units):
        rows.append(cone.price(budget) * unit / size)
    called = (*names, *(f"price of {one.name}" for one in problem.constraints))
    if relative_to is None:
        found = [(low / unit, high / unit) for low, high in map(cone.ends, rows)]
        return tuple(CostRange(name, *ends) for name, ends in zip(called, found, strict=True))
    if relative_to not in names:
        raise InvalidProblem(f"there is no cost {relative_to!r}", f"Give one of {', '.join(names)}")
    base = names.index(relative_to)
    sign = CostRange(relative_to, *cone.ends(rows[base])).sign
    if not sign:
        raise InvalidProblem(
            f"the sign of the weight of {relative_to!r} is not known",
            "Take a cost whose range does not hold 0",
        )
    scaled = cone.relative_to(base, sign)
    return tuple(CostRange(name, *scaled.ends(row)) for name, row in zip(called, rows, strict=True))


@dataclass(frozen=True, eq=False)
class _Cone:
    """K times every s >= 0, cut where one linear function is 1: rows A x <= b become A x <= b s."""

    chosen: WeightSet
    model: ConeModel
    normal: FloatArray
    first_price: int

    @classmethod
    def of(cls, given: RationalSet) -> "_Cone":
        """Cut where the regret of the uniform policy is 1, in units of N."""
        problem, program = given.problem, _Program.of(given, given.uniform)
        unit, chosen, model = problem.cost_unit, program.chosen, program.model
        regret = np.append(-model.cost, chosen.centre @ given.uniform / unit)
        regret[program.variables["slack"]] = 0.0
        half = -regret
        half[-1] += given.uniform_bound.value / unit / 2
        exact, positive = np.zeros(regret.size), np.zeros(regret.size)
        exact[-2], exact[-1], positive[-1] = 1.0, -1e-8, -1.0
        return cls(
            chosen,
            ConeModel(
                sparse.vstack([
                    sparse.hstack([model.matrix, sparse.csc_array(-model.right[:, np.newaxis])]),
                    sparse.csc_array(np.array([half, exact, positive])),
                ], format="csc"),
                np.zeros(model.right.size + 3), np.zeros(regret.size),
                (*model.cones, (Cone.NONNEGATIVE, 3)),
            ),
            regret, program.variables["prices"].start,
        )  # fmt: skip

    def price(self, budget: int) -> FloatArray:
        """xi_j as a linear function of the variables, in units of N over those of the budget."""
        row = np.zeros(self.normal.size)
        row[self.first_price + budget] = 1.0
        return row

    def weight(self, cost: int) -> FloatArray:
        """w_i as a linear function of the variables."""
        row, unit = np.zeros(self.normal.size), np.zeros(self.chosen.num_costs)
        unit[cost] = 1.0
        row[: self.chosen.size] = self.chosen.pulled(unit)
        row[-1] = self.chosen.centre[cost]
        return row

    def relative_to(self, cost: int, sign: int) -> "_Cone":
        """The same cut where the weight of a cost is 1 in size."""
        return replace(self, normal=sign * self.weight(cost))

    def ends(self, row: FloatArray) -> tuple[float, float]:
        """The least and the largest value of a linear function, such as the weight of a cost."""
        found = [self._least(sign * row) for sign in (1.0, -1.0)]
        return found[0], -found[1]

    def _least(self, objective: FloatArray) -> float:
        model = self.model
        rows = sparse.vstack([model.matrix, sparse.csc_array(self.normal[np.newaxis])])
        right = np.append(model.right, 1.0)
        cut = ConeModel(rows.tocsc(), right, objective, (*model.cones, (Cone.ZERO, 1)))
        settings = clarabel_settings(1, TOLERANCE)
        settings.verbose = False
        found = clarabel_solver(cut, settings).solve()
        least = float(objective @ np.array(found.x))
        return least if "Solved" in str(found.status) else -np.inf


@dataclass(frozen=True, eq=False)
class _Program:
    """The search over K in conic form, in units of the largest cost N of the class.

    Variables are the v of the class (`WeightSet`), V, xi, one slack for all rows of the expert at
    the price CAP h, and V2 and prices of the budgets for the minimax policy. Prices of budgets are
    in units of N over those of the budget. Values are in units of N sqrt(h), and the engine
    does not rescale the program: on grids of discount .99 it then takes 30 to 40 steps, and 60 to
    90 with values in units of N. Rescaled it takes as many, but is far more exact where K is next
    to nothing (`careful`).
    """

    given: RationalSet
    chosen: WeightSet
    model: ConeModel
    rows: dict[str, slice]
    variables: dict[str, slice]

    def solved(self, tolerance: float, stop: Stop, *, careful: bool) -> Found:
        """What the engine finds."""
        settings = clarabel_settings(1, tolerance)
        settings.equilibrate_enable, settings.verbose = careful, False
        settings.direct_solve_method = "qdldl"
        settings.iterative_refinement_max_iter = REFINEMENTS
        solver = clarabel_solver(self.model, settings)
        unit = self.given.problem.cost_unit
        solver.set_termination_callback(
            lambda info: stop(info.iterations, -info.cost_primal * unit)
        )
        found = solver.solve()
        if not careful and str(found.status) in GIVEN_UP:
            return self.solved(tolerance, stop, careful=True)
        return self.read(np.array(found.x), np.array(found.z))

    @classmethod
    def of(cls, given: RationalSet, expectations: FloatArray | None) -> "_Program":
        problem, world, unit = given.problem, given.problem.world, given.problem.cost_unit
        chosen = problem.cost_class.weight_set(problem.num_costs)
        num_states, num_budgets = world.num_states, len(problem.constraints)
        widths = {"weights": chosen.size, "values": num_states, "prices": num_budgets, "slack": 1}
        if expectations is None:
            widths |= {"best": num_states, "response": num_budgets}
        rows, size = _Rows(widths), _value_unit(world)
        _add_expert(rows, given, chosen)
        if num_budgets:
            _add_budgets(rows, given)
        else:
            low = -given.value_range[0] / (unit * size)
            rows.add("values", low, values=-_identity(num_states))
        rows.add("slack", np.zeros(1), slack=-_identity(1))
        for name, sign, end, implied in (
            ("lower", -1.0, chosen.lower, chosen.implied_lower),
            ("upper", 1.0, chosen.upper, chosen.implied_upper),
        ):
            kept = np.flatnonzero(~implied)
            rows.add(name, sign * end[kept], weights=sign * _identity(chosen.size)[kept])
        cones = [(Cone.NONNEGATIVE, rows.count)]
        if chosen.right.size:
            rows.add("equations", chosen.right, weights=sparse.csr_array(chosen.equations))
            cones.append((Cone.ZERO, chosen.right.size))
        if chosen.axes is not None:
            top, inverse = sparse.csr_array((1, chosen.size)), sparse.diags_array(1 / chosen.axes)
            right = np.concatenate([np.ones(1), np.zeros(chosen.size)])
            rows.add("ball", right, weights=sparse.vstack([top, -inverse], format="csr"))
            cones.append((Cone.SECOND_ORDER, chosen.size + 1))
        limits = problem.limits / problem.budget_units
        cost = [
            np.zeros(chosen.size),
            size * world.initial,
            -limits,
            np.array([CAP * world.effective_horizon]),
        ]
        if expectations is None:
            cost += [-size * world.initial, limits]
        else:
            cost[0] = -chosen.pulled(expectations) / unit
        model = ConeModel(rows.matrix(), rows.right(), np.concatenate(cost), tuple(cones))
        return cls(given, chosen, model, rows.places, rows.variables)

    def tilted(self, cost: FloatArray) -> "_Program":
        """With a cost per pair that the measure pays on top: E V2 <= Psi w + cost."""
        right = self.model.right.copy()
        right[self.rows["measure"]] += cost / self.given.problem.cost_unit
        return replace(self, model=replace(self.model, right=right))

    def without_objective(self) -> "_Program":
        """Only the slack has its price."""
        cost, at = np.zeros_like(self.model.cost), self.variables["slack"]
        cost[at] = self.model.cost[at]
        return replace(self, model=replace(self.model, cost=cost))

    def read(self, x: FloatArray, duals: FloatArray) -> Found:
        """What the engine left, in the problem's own units."""
        given, problem = self.given, self.given.problem
        world, size = problem.world, self.chosen.size

        def prices(name: str, count: int) -> FloatArray:
            return duals[self.rows[name]] if name in self.rows else np.zeros(count)

        shown = np.isfinite(given.limits)
        of_steps = np.zeros(given.pairs.size)
        of_steps[shown] = prices("steps", int(shown.sum()))
        averages = [
            prices(f"average {number}", 1)[0] / world.effective_horizon
            for number in range(len(given.averages))
        ]
        of_pairs = prices("pairs", world.num_pairs).copy()
        of_pairs[given.forced] -= prices("forced", given.forced.size)
        point = RationalPrices(
            of_steps, float(prices("total", 1)[0] / max(given.counts.sum(), 1.0)),
            np.array(averages), of_pairs, float(prices("floor", 1)[0] / world.effective_horizon),
        )  # fmt: skip
        x = np.nan_to_num(x)
        weights = problem.cost_class.admit(self.chosen.weights(self.chosen.admit(x[:size])))
        values = x[self.variables["values"]] * (problem.cost_unit * _value_unit(world))
        of_budgets, response = (
            np.maximum(x[self.variables[name]], 0.0) * problem.cost_unit / problem.budget_units
            if name in self.variables
            else np.zeros(0)
            for name in ("prices", "response")
        )
        member = self._member(weights, values, of_budgets, response)
        measure = prices("measure", 0) if "measure" in self.rows else None
        return point, member, measure

    def _member(
        self, weights: FloatArray, values: FloatArray, prices: FloatArray, response: FloatArray
    ) -> Member:
        """The values moved down until E V <= Psi w + D xi holds; what the other rows then miss."""
        given, problem, world = self.given, self.given.problem, self.given.problem.world
        advantage = priced_cost(problem, weights, prices) - world.flow.adjoint(values)
        down = max(0.0, -float(advantage.min()))
        values = values - down * world.effective_horizon
        advantage = advantage + down
        least = float(world.initial @ values - prices @ problem.limits)
        low = given.value_range[0] + prices @ given.budget_range[0]
        missed = [0.0, float(np.max(low - values))]
        missed += [given.floor - least] if problem.constraints else []
        missed += [float(np.max(advantage[given.forced], initial=0.0))]
        missed += [float(np.max(advantage[given.pairs] - given.limits, initial=0.0))]
        if np.isfinite(given.total) and given.counts.size:
            beyond = float(given.counts @ advantage[given.pairs]) - given.total
            missed += [beyond / float(given.counts.sum())]
        for one in given.averages:
            missed += [float(one.values @ weights - least - given.regret - one.radius)]
        return Member(
            read_only(weights), read_only(values), max(missed), read_only(prices),
            read_only(response),
        )  # fmt: skip


class _Rows:
    """Rows of a program, block by block over named groups of variables."""

    def __init__(self, widths: dict[str, int]) -> None:
        self.widths, self.count = widths, 0
        ends = np.cumsum([0, *widths.values()]).tolist()
        self.variables = {
            name: slice(*between) for name, between in zip(widths, pairwise(ends), strict=True)
        }
        self.places: dict[str, slice] = {}
        self._blocks: list[SparseMatrix] = []
        self._right: list[FloatArray] = []

    def add(self, name: str, right: FloatArray, **blocks: SparseMatrix) -> None:
        size = right.size
        parts = [
            blocks.get(group, sparse.csr_array((size, width)))
            for group, width in self.widths.items()
        ]
        self._blocks.append(sparse.hstack(parts, format="csr"))
        self._right.append(right)
        self.places[name] = slice(self.count, self.count + size)
        self.count += size

    def matrix(self) -> SparseMatrix:
        return sparse.vstack(self._blocks, format="csc")

    def right(self) -> FloatArray:
        return np.concatenate(self._right)


def _add_expert(rows: _Rows, given: RationalSet, chosen: WeightSet) -> None:
    """E V <= Psi w + D xi for V and V2, with equality for V where there is no choice, and the rows
    of what is declared."""
    problem, world, unit = given.problem, given.problem.world, given.problem.cost_unit
    size = _value_unit(world)
    flow, costs = size * world.flow.matrix(), _lifted(problem, chosen) / unit
    budgets = sparse.csr_array(problem.budget_matrix / problem.budget_units)
    fixed, shown = problem.cost_of(chosen.centre) / unit, given.pairs
    rows.add("pairs", fixed, weights=-costs, values=flow, prices=-budgets)
    if "best" in rows.widths:
        rows.add("measure", fixed, weights=-costs, best=flow, response=-budgets)

    def advantage(at: IntArray) -> dict[str, SparseMatrix]:
        return {"weights": costs[at], "values": -flow[at], "prices": budgets[at]}

    if given.forced.size:
        at = given.forced
        rows.add("forced", -fixed[at], **advantage(at))
    some = np.isfinite(given.limits)
    if some.any():
        at, less = shown[some], sparse.csr_array(-np.ones((int(some.sum()), 1)))
        right = given.limits[some] / unit - fixed[at]
        rows.add("steps", right, **advantage(at), slack=less)
    minus = sparse.csr_array([[-1.0]])
    if np.isfinite(given.total) and given.total > 0:
        shares = given.counts / given.counts.sum()
        mixed = sparse.csr_array(shares[np.newaxis])
        right = np.array([given.total / given.counts.sum() / unit - shares @ fixed[shown]])
        together = {name: mixed @ rows_of for name, rows_of in advantage(shown).items()}
        rows.add("total", right, **together, slack=minus)
    scale = unit * world.effective_horizon
    for number, one in enumerate(given.averages):
        right = np.array([given.regret + one.radius - chosen.centre @ one.values]) / scale
        lifted = sparse.csr_array(chosen.pulled(one.values)[np.newaxis] / scale)
        start = sparse.csr_array(-size / world.effective_horizon * world.initial[np.newaxis])
        paid = sparse.csr_array(problem.limits[np.newaxis] / problem.budget_units)
        rows.add(
            f"average {number}", right, weights=lifted, values=start,
            prices=paid / world.effective_horizon, slack=minus,
        )  # fmt: skip


def _add_budgets(rows: _Rows, given: RationalSet) -> None:
    """What bounds values and prices of budgets, which are none of them negative."""
    problem, world, unit = given.problem, given.problem.world, given.problem.cost_unit
    size, horizon = _value_unit(world), given.problem.world.effective_horizon
    for name in ("prices", "response"):
        if name in rows.widths:
            count = rows.widths[name]
            rows.add(f"signs of {name}", np.zeros(count), **{name: -_identity(count)})
    least = sparse.csr_array((given.budget_range[0] / problem.budget_units[:, np.newaxis] / size).T)
    low = -given.value_range[0] / (unit * size)
    rows.add("values", low, values=-_identity(world.num_states), prices=least)
    start = sparse.csr_array(-size / horizon * world.initial[np.newaxis])
    paid = sparse.csr_array(problem.limits[np.newaxis] / problem.budget_units / horizon)
    rows.add("floor", np.array([-given.floor / unit / horizon]), values=start, prices=paid)


def _value_unit(world: World) -> float:
    """What values of costs of size 1 are divided by in programs."""
    return float(np.sqrt(world.effective_horizon))


def _identity(size: int) -> SparseMatrix:
    return sparse.eye_array(size, format="csr")


def _lifted(problem: Apprenticeship, chosen: WeightSet) -> SparseMatrix:
    """Psi generators, sparse."""
    costs = sparse.csr_array(problem.cost_matrix)
    if chosen.generators is None:
        return costs
    if chosen.generators.ndim == 1:
        return (costs @ sparse.diags_array(chosen.generators)).tocsr()
    return sparse.csr_array(costs @ sparse.csr_array(chosen.generators))


def _positive(prices: FloatArray) -> FloatArray:
    return np.where(np.isfinite(prices), np.maximum(prices, 0.0), 0.0)


def _paid(limits: Any, prices: Any) -> float:
    """<limits, prices>, where what has no price costs nothing although its limit is infinite."""
    limit, price = np.atleast_1d(limits), np.atleast_1d(prices)
    return float(np.where(price > 0, limit, 0.0) @ price)
