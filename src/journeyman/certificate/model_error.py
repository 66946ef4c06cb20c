"""What it costs that a world is an estimate.

A policy with occupancy measure mu^ in the model has in the true world one, mu, with

    |mu - mu^|_1 <= distance = (discount <mu^, err> + err0)/(1 - discount)

    gap(true world)           <=  gap(model) + N_c distance
    <mu, d_j>                 <=  <mu^, d_j> + (max d_j - min d_j)/2 distance

where err(s) and err0 bound the 1-norm distances of the true laws from the model's and N_c = max
|c_w| over the class; the middle of each cost's range is subtracted first where that is smaller, for
both measures have the same mass. The expert gets no such term: demonstrations come from the true
world. Demonstrations simulated in the model, or expectations computed from it, fail that premise.

Robust evaluation (`worst_total`) of each cost and its negative gives ranges that are often far
narrower when the possible next states are known: `robust_ranges`, `robust_gap`, `robust_budgets`.

For any weights w of the class, prices xi >= 0, and values V, with c = Psi w + D xi,

    gap(pi) >= least(initial, V) + min over pairs (c + discount least(row, V) - B V)/(1 - discount)
               - <w, target> - <xi, b>

for every policy pi over the offered actions that keeps the budgets in the true world. Here
least(row, V) >= <row, V> - err/2 (max V - min V) is the least mean of V within the distance.

Laws from counts: a pair that led n_y times to y, n times in all, was bet on with the Dirichlet
mixture of all laws on the S states that are possible (all states where they are not known),

    Q_a = Gamma(S a)/Gamma(n + S a) prod_y Gamma(n_y + a)/Gamma(a)
    Q = mean of Q_a over a = 1/2 and a = 1/S

(a = 1/S pays little for states that were never reached). Q/prod_y p(y)^n_y is the wealth of a bet
against the law p, a martingale of mean one. So with probability 1 - delta, for every pair and every
number of records at once (Ville), the true law p satisfies

    KL(frequencies, p) <= info(s) = ( log(K/delta) + log prod_y (n_y/n)^n_y - log Q )/n

    err(s) <= sqrt(2 info(s))    (Pinsker) and never more than 2

The mixture pays (S - 1)/2 log n for not knowing where the law is. A bet against p may begin at p:

    Q_c(p) = Gamma(c + 1)/Gamma(n + c + 1) prod_y Gamma(n_y + c p(y) + 1/S)/Gamma(c p(y) + 1/S)

Its wealth against p is a martingale of mean one too. It pays (S - 1)/2 log(1 + n/c) only, and a
share c/n of the draws for being held at p. Bets of the two kinds have half of delta each, and
twelve c = 1, 4, 16, ... share theirs; of them the one with 4 <= n/c < 16 is looked at. Here
log Q_c(p) - sum_y n_y log p(y) is convex in p: its second derivatives are n_y/p(y)^2 less n_y terms
c^2/(c p(y) + 1/S + i)^2. So means over the laws it leaves are bounded by duality, like means over
divergences (`Evidence`, `LawBall`). Pair by pair the narrower kind is taken. Neither looks at
policies or values: what was planned or learned from the same records is held against all of them.

K counts the laws that might have been observed: the pairs of the world or, when it offers only what
was observed, the states times A (A + 1) for A recorded actions, which pays for not knowing A in
advance. An estimated initial law takes `INITIAL_SHARE` of delta. Declared distances are certain.
Where pairs share laws of outcomes (`SharedLaws`) info is that of a group, by its outcomes, with K
the number of groups: KL(f(p), f(q)) <= KL(p, q) for every map f of outcomes, so it holds for every
pair of the group; a pair all of whose outcomes lead to one state has error 0. No bets begin at the
law tested there.

*Reference*: Krichevsky and Trofimov (1981) for the mixture; Chowdhury, Saux, Maillard and Gopalan,
Bregman deviations of generic exponential families (2023), for bets that begin at what they test;
Filippi, Cappe and Garivier, Optimism
in reinforcement learning and Kullback-Leibler divergence (2010).
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    SparseMatrix,
    read_only,
    require_between,
)
from journeyman.certificate.concentration import require_probability
from journeyman.certificate.terms import PolicyEvaluation, Term, above
from journeyman.costs import CostBasis
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidProblem
from journeyman.policy import Occupancy, Policy, occupancy
from journeyman.policy.planning import PRECISION, WORK_LIMIT, attainable_ranges, widest_ranges
from journeyman.policy.policy_evaluation import DiscountedSystem
from journeyman.problem import Apprenticeship, Witness, least_cost_bound, lower_bound
from journeyman.problem.bounds import TrivialBound, priced_cost, with_ranges, without_plans
from journeyman.world import World
from journeyman.world.estimation import FURTHEST
from journeyman.world.levels import Level

INITIAL_SHARE = 0.1
"""Of the failure probability, for the initial law where both laws are estimated."""
CENTRED_SHARE, NUM_CENTRINGS = 0.5, 12
"""Of the failure probability of laws, for bets centred at the law tested; c = 1, 4, ..., 4^11."""
MANY = 1 << 100
"""More transitions nobody has."""
WORTHWHILE = 0.1
"""A model term below this share of the largest gaps leaves room for a certificate."""


@dataclass(frozen=True, eq=False)
class ModelError:
    """1-norm distances that the true laws keep from the model's."""

    transition: FloatArray
    """err(s) of every pair."""
    initial: float
    """err0."""
    failure_probability: float
    """With which the distances may fail: 0 when nothing was estimated from counts."""
    evidence: "Evidence | None" = None
    """Of the counts of pairs, and of those of starts; None where none were counted."""
    initial_evidence: "Evidence | None" = None

    def steps(self, world: World) -> "LawBall":
        """The laws that pairs may have in the true world."""
        return LawBall(world.transition, self.transition, world.support, self.evidence)

    def starts(self, world: World) -> "LawBall":
        """The initial laws of the true world."""
        rows = sparse.csr_array(world.initial[np.newaxis])
        return LawBall(rows, np.array([self.initial]), None, self.initial_evidence)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What counts say about the law p of every row: excess(p) <= allowed.

        excess(p) = KL(row, p) + (1/n) sum_y ( G(n_y, c p(y) + a) - G(n_y, c row(y) + a) )

    where G(k, x) = log Gamma(k + x)/Gamma(x) and n_y = n row(y). With c = 0 it is the divergence
    alone. It is convex in p, and 0 at the row.
    """

    allowed: FloatArray
    """Infinite for a row that was not counted."""
    counts: FloatArray
    """n."""
    centring: FloatArray
    """c."""
    smoothing: FloatArray
    """a > 0."""

    @classmethod
    def of(
        cls, tallies: SparseMatrix, support_sizes: ArrayLike, num_laws: int, delta: float
    ) -> "tuple[FloatArray, Evidence]":
        """Distances of laws from the frequencies of their counts, and the evidence for them."""
        S, rows = np.asarray(support_sizes, dtype=float), _Tallied(sparse.csr_array(tallies))
        n, a = rows.totals, 1 / S
        plain = information_radii(tallies, S, num_laws, (1 - CENTRED_SHARE) * delta)
        c = 4.0 ** np.clip(np.floor(np.log2(np.maximum(n, 1.0)) / 2 - 1), 0, NUM_CENTRINGS - 1)
        shapes = c[rows.row] * rows.frequencies + a[rows.row]
        wealth, size = rows.log_mixture(shapes, c + S * a)
        needed = math.log(num_laws * NUM_CENTRINGS / CENTRED_SHARE) - math.log(delta)
        rounding = 32 * EPSILON * (size + np.abs(rows.log_likelihood) + needed)
        with np.errstate(divide="ignore", invalid="ignore"):
            centred = (needed + rows.log_likelihood - wealth + rounding) / n
            narrower = (n > 0) & (S > 1) & (centred * (1 + c / n) < plain)
        allowed = np.where(narrower, centred, plain)
        parts = allowed, n, np.where(narrower, c, 0.0), a
        return distances_of(plain), cls(*(read_only(part) for part in parts))

    def at(self, rows: SparseMatrix, law: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """excess(p) of every row and minus its derivative at every stored entry, for the `law` of
        the stored entries; and the size of what excess(p) adds up."""
        from scipy.special import gammaln, psi

        def summed(entries: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(entries, rows.indptr[:-1]))

        mass = rows.data
        found, slope = mass * np.log(mass / law), mass / law
        size = np.abs(mass * np.log(mass)) + np.abs(mass * np.log(law))
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        at = np.flatnonzero((self.centring > 0)[row])
        n, c, a = (part[row[at]] for part in (self.counts, self.centring, self.smoothing))
        m, here, there = n * mass[at], c * law[at] + a, c * mass[at] + a
        gains = gammaln(m + here), -gammaln(here), -gammaln(m + there), gammaln(there)
        found[at] += sum(gains) / n
        slope[at] -= c / n * (psi(m + here) - psi(here))
        size[at] += sum(np.abs(gain) for gain in gains) / n
        return summed(found), slope, summed(size)

    def of_rows(self, chosen: IntArray) -> "Evidence":
        parts = self.allowed, self.counts, self.centring, self.smoothing
        return Evidence(*(part[chosen] for part in parts))

    @classmethod
    def divergence(cls, allowed: FloatArray) -> "Evidence":
        """KL(row, p) <= allowed."""
        return cls(allowed, np.ones(allowed.size), np.zeros(allowed.size), np.ones(allowed.size))


@dataclass(frozen=True, eq=False)
class _Tallied:
    """Rows of counts."""

    counts: SparseMatrix

    @cached_property
    def row(self) -> IntArray:
        """Of every stored entry."""
        return np.repeat(np.arange(self.counts.shape[0]), np.diff(self.counts.indptr))

    def summed(self, entries: FloatArray) -> FloatArray:
        return np.bincount(self.row, entries, minlength=self.counts.shape[0]).astype(float)

    @cached_property
    def totals(self) -> FloatArray:
        return self.summed(self.counts.data)

    @cached_property
    def frequencies(self) -> FloatArray:
        """Of every stored entry."""
        return np.asarray(self.counts.data / np.maximum(self.totals, 1.0)[self.row])

    @cached_property
    def log_likelihood(self) -> FloatArray:
        """log prod_y (n_y/n)^n_y."""
        from scipy.special import xlogy

        return self.summed(xlogy(self.counts.data, self.frequencies))

    def log_mixture(self, shapes: FloatArray, total: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log probability of every row under the Dirichlet mixture with these shapes, one for each
        stored entry, `total` for all states; and the size of what was added up."""
        from scipy.special import gammaln

        each, whole = gammaln(self.counts.data + shapes), gammaln(self.totals + total)
        found = gammaln(total) - whole + self.summed(each - gammaln(shapes))
        return found, np.abs(whole) + self.summed(np.abs(each))


def transition_radii(world: World, failure_probability: float) -> ModelError:
    """The distances that `world` declares, or those that follow from its counts.

    An exact world has distance 0. Where a distance is declared and counted, the smaller holds.

    >>> world = World([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]], [1, 0, 0], 0.9,
    ...               transition_counts=1000, transition_error=[2, 2, 0],
    ...               support=[[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    >>> transition_radii(world, 0.05).transition.round(3).tolist()
    [0.13, 0.133, 0.0]
    """
    delta = require_probability(failure_probability)
    return radii_at(world, world.transition_counts, delta)


def information_radii(
    tallies: SparseMatrix, support_sizes: ArrayLike, num_laws: int, failure_probability: float
) -> FloatArray:
    """info of every row of counts, rounded up; infinite for a row without any."""
    S, rows = np.asarray(support_sizes, dtype=float), _Tallied(sparse.csr_array(tallies))
    n, likelihood = rows.totals, rows.log_likelihood
    bets, sizes = [], np.abs(likelihood)
    for a in (np.full(S.size, 0.5), 1 / S):
        bet, size = rows.log_mixture(a[rows.row], S * a)
        bets.append(bet)
        sizes = np.maximum(sizes, size)
    wealth = np.logaddexp(*bets) - math.log(2)
    needed = math.log(num_laws) - math.log(failure_probability)
    with np.errstate(divide="ignore", invalid="ignore"):
        info = (needed + likelihood - wealth + 32 * EPSILON * (sizes + needed)) / n
    return np.where(S <= 1, 0.0, np.where(n > 0, info, np.inf))


def distances_of(information: FloatArray) -> FloatArray:
    """sqrt(2 info), rounded up and never more than 2."""
    return np.minimum(np.sqrt(2 * information) * (1 + 16 * EPSILON) + 4 * EPSILON, FURTHEST) * (
        information > 0
    )


def occupancy_distance(visits: Occupancy, error: ModelError) -> float:
    """(discount <mu^, err> + err0)/(1 - discount), at most 2/(1 - discount), rounded up."""
    world = visits.world
    _check_fit(world, error)
    h, largest = world.effective_horizon, float(error.transition.max())
    branches = int(np.diff(world.transition.indptr).max())
    residual = visits.residual + EPSILON * (branches + 8) * 2 * h
    weighted = float(visits.measure @ error.transition) + largest * residual * h
    distance = min(world.discount * weighted + error.initial, FURTHEST) * h
    return distance * (1 + EPSILON * (world.num_pairs + 16))


def model_term(problem: Apprenticeship, visits: Occupancy, error: ModelError) -> float:
    """N_c distance: by how much the policy's gap in the true world may exceed that in the model."""
    rounding = EPSILON * (problem.basis.num_costs + 8)
    plain = problem.cost_class.pointwise_bound(problem.basis.matrix)
    largest = problem.cost_class.centred_bound(problem.basis) + rounding * plain
    return largest * occupancy_distance(visits, error)


def greatest_model_term(problem: Apprenticeship, error: ModelError) -> float:
    """N_c distance of the policy for which it is largest: for bounds made before there is one."""
    world = problem.world
    _check_fit(world, error)
    weighted, most = 0.0, float(error.transition.max())
    if most > 0:
        shares = CostBasis(error.transition / most)
        weighted = most * float(attainable_ranges(world, shares).highest[0]) * (1 + 4 * EPSILON)
    distance = min(world.discount * weighted + error.initial, FURTHEST) * world.effective_horizon
    rounding = EPSILON * (problem.basis.num_costs + 8)
    plain = problem.cost_class.pointwise_bound(problem.basis.matrix)
    largest = problem.cost_class.centred_bound(problem.basis) + rounding * plain
    return largest * distance * (1 + EPSILON * (world.num_pairs + 16))


def budget_terms(problem: Apprenticeship, visits: Occupancy, error: ModelError) -> FloatArray:
    """For every budget, by how much <mu, d_j> may be larger in the true world than in the model."""
    return _half_spans(problem.budget_matrix) * occupancy_distance(visits, error)


def true_world_lower_bound(problem: Apprenticeship, witness: Witness, error: ModelError) -> float:
    """A value that no policy over the offered actions, within the budgets in the true world, can go
    below there. With exact laws it is `lower_bound`."""
    world = problem.world
    _check_fit(world, error)
    in_model = lower_bound(problem, witness)
    values = witness.values
    prices = np.maximum(witness.budget_prices, 0.0)
    if not prices.size:
        prices = np.zeros(len(problem.constraints))
    cost = priced_cost(problem, problem.cost_class.admit(witness.cost_weights), prices)
    branches, size = int(np.diff(world.transition.indptr).max()), float(np.abs(values).max())
    rounding = EPSILON * (branches + 4) * size
    least = error.steps(world).lowest(values)
    loss = np.where(error.transition > 0, world.transition @ values - least + rounding, 0.0)
    shifted = least_cost_bound(world, cost - world.discount * loss, values)
    change = shifted - least_cost_bound(world, cost, values)
    initial_loss = float(world.initial @ values - error.starts(world).lowest(values)[0])
    initial_loss += EPSILON * world.num_states * size
    if error.initial == 0:
        initial_loss = 0.0
    sizes = abs(in_model) + abs(shifted) + abs(change) + abs(initial_loss)
    return in_model + change - initial_loss - 4 * EPSILON * sizes


def robust_expectations(problem: Apprenticeship, policy: Policy, error: ModelError) -> FloatArray:
    """For every cost, what the policy's expected discounted total cannot exceed in the true world.

    Robust evaluation, or the model's expectation plus half the cost's span times the distance where
    that is smaller; see `robust_gap`.
    """
    return _robust(problem.world, problem.cost_matrix, policy, error)


def robust_ranges(
    problem: Apprenticeship, policy: Policy, error: ModelError
) -> tuple[FloatArray, FloatArray]:
    """For every cost, the least and the greatest expected discounted total in the true world."""
    least = -_robust(problem.world, -problem.cost_matrix, policy, error)
    return least, robust_expectations(problem, policy, error)


def robust_gap(
    problem: Apprenticeship, ranges: tuple[FloatArray, FloatArray], expert: FloatArray
) -> float:
    """The largest gap to the `expert`'s expectations of an apprentice whose own lie in `ranges`."""
    least, greatest = ranges
    return problem.cost_class.largest_gap(least - expert, greatest - expert)


def robust_budgets(problem: Apprenticeship, policy: Policy, error: ModelError) -> FloatArray:
    """The same for the cost of every budget: at most its limit proves that the budget is kept."""
    return _robust(problem.world, problem.budget_matrix, policy, error)


def transitions_needed(
    problem: Apprenticeship,
    visits: Occupancy,
    *,
    failure_probability: float,
    share: float = WORTHWHILE,
) -> int:
    """Of every pair, how many transitions bring the model term of this policy to `share` of
    2 N/(1 - discount). Laws declared to be exact stay so; the initial law stays as it is."""
    delta = require_probability(failure_probability)
    part = require_between("share", share, 0.0, 1.0, InvalidProblem, "Give for example 0.1")
    world, target = problem.world, part * problem.gap_scale

    def term(count: int) -> float:
        counts = np.full(world.num_pairs, count, dtype=float)
        return model_term(problem, visits, radii_at(world, counts, delta))

    high = 1
    while term(high) > target:
        floor = _initial_part(problem, visits, delta)
        if floor >= target or high > MANY:
            raise InvalidProblem(
                f"the initial law alone costs {floor:.3g}, and the model term is to be at most "
                f"{target:.3g}",
                "Observe more starts, or give the initial law if it is known",
            )
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if term(middle) <= target else (middle, high)
    return high


def _initial_part(problem: Apprenticeship, visits: Occupancy, delta: float) -> float:
    """The model term when transitions are exact."""
    rows = np.zeros(problem.world.num_pairs)
    known = ModelError(rows, radii_at(problem.world, rows, delta).initial, delta)
    return model_term(problem, visits, known)


def radii_at(world: World, counts: ArrayLike | None, delta: float) -> ModelError:
    """The distances of `world` if its pairs had the given counts."""
    starts = world.initial_count
    share = INITIAL_SHARE if counts is not None and starts is not None else 0.0
    rows = _declared(world.transition_error, counts is not None, world.num_pairs)
    evidence = initial_evidence = None
    if counts is not None:
        found, evidence = _evidence(world, np.asarray(counts, dtype=float), (1 - share) * delta)
        rows = np.minimum(rows, found)
    initial = _declared(world.initial_error, starts is not None, 1)
    if starts is not None:
        tally, level = sparse.csr_array(world.initial[np.newaxis] * starts), (share or 1.0) * delta
        found, initial_evidence = Evidence.of(tally, [world.num_states], 1, level)
        initial = np.minimum(initial, found)
    counted = counts is not None or starts is not None
    return ModelError(
        read_only(rows), float(initial[0]), delta if counted else 0.0, evidence, initial_evidence
    )  # fmt: skip


def _evidence(world: World, counts: FloatArray, delta: float) -> tuple[FloatArray, Evidence]:
    """Of every pair from its counts, or from those of the group whose law it shares."""
    laws, shared = world.transition, world.shared
    if shared is None:
        times = np.repeat(counts, np.diff(laws.indptr))
        tallies = sparse.csr_array((laws.data * times, laws.indices, laws.indptr), laws.shape)
        return Evidence.of(tallies, support_sizes(world), num_laws(world), delta)
    label = shared.of(world.pairs)
    members, first = np.unique(label, return_index=True)
    totals = np.zeros(shared.num_groups)
    totals[members[members >= 0]] = counts[first[members >= 0]]
    tallies = shared.group_tallies.astype(float)
    tallies *= (totals / np.maximum(tallies.sum(axis=1), 1.0))[:, np.newaxis]
    found = information_radii(sparse.csr_array(tallies), shared.outcomes, shared.num_groups, delta)
    found = np.append(found, np.inf)[label]
    info = read_only(np.where((label >= 0) & (support_sizes(world) <= 1), 0.0, found))
    return distances_of(info), Evidence.divergence(info)


def _declared(error: FloatArray | float | None, counted: bool, size: int) -> FloatArray:
    unknown = FURTHEST if counted else 0.0
    return np.full(size, unknown if error is None else error, dtype=float)


def support_sizes(world: World) -> FloatArray:
    """How many next states are possible, as far as is known."""
    if world.support is None:
        return np.full(world.num_pairs, float(world.num_states))
    return np.asarray(np.diff(world.support.indptr), dtype=float)


def num_laws(world: World) -> int:
    """K: what the union over pairs costs."""
    if world.shared is not None:
        return world.shared.num_declared
    if world.observed_actions is None:
        return world.num_pairs
    recorded = int(world.observed_actions.max()) + 1
    return world.num_states * recorded * (recorded + 1)


def _robust(world: World, costs: Matrix, policy: Policy, error: ModelError) -> FloatArray:
    _check_fit(world, error)
    visits = occupancy(world, policy)
    measure, h = visits.measure, world.effective_horizon
    columns = sparse.csc_array(costs)
    sizes = np.asarray(abs(columns).max(axis=0).toarray()).ravel()
    rounding = EPSILON * (world.num_pairs + 8) * (float(measure.sum()) + h)
    inexact = sizes * (visits.residual * h + rounding)
    simple = columns.T @ measure + inexact + _half_spans(costs) * occupancy_distance(visits, error)
    robust = [
        worst_total(world, policy, columns[:, [i]].toarray().ravel(), error)
        for i in range(columns.shape[1])
    ]
    return np.asarray(np.minimum(simple, robust))


def _half_spans(costs: Matrix) -> FloatArray:
    """(max - min)/2 of every column, rounded up."""
    dense = [costs.max(axis=0), costs.min(axis=0)]
    high, low = (
        np.asarray(part.toarray() if sparse.issparse(part) else part).ravel() for part in dense
    )
    return np.asarray((high - low) / 2 + 2 * EPSILON * (np.abs(high) + np.abs(low)))


def _check_fit(world: World, error: ModelError) -> None:
    if error.transition.shape != (world.num_pairs,):
        raise InvalidProblem(
            f"the model error has {error.transition.size} distances, the world {world.num_pairs} "
            "pairs",
            "Use transition_radii of this problem's world",
        )


MODEL_SHARE = 0.25
"""Of the failure probability, for transition and start counts."""
FAR_TOO_MANY = 1 << 40
"""Transitions of a pair: where these do not help, others do not."""


def model_error(problem: Apprenticeship, failure_probability: float) -> ModelError | None:
    """How far the true laws may be from the model's; None in an exact world."""
    if problem.level is not Level.EXPLICIT or not problem.world.is_estimated:
        return None
    return transition_radii(problem.world, MODEL_SHARE * failure_probability)


def in_the_true_world(
    problem: Apprenticeship,
    policy: Policy,
    visits: Occupancy,
    evaluations: list[PolicyEvaluation],
    error: ModelError,
) -> list[PolicyEvaluation]:
    """The evaluations with the model term, and one more: cost by cost under the worst laws."""
    formula = "N h (discount <mu, err> + err0)"
    term = Term("model", model_term(problem, visits, error), formula, source_of(error))
    found = [replace(one, terms=(*one.terms, term)) for one in evaluations]
    worst = PolicyEvaluation(
        "D, worst laws", visits.expectations(problem.basis), (), error.failure_probability,
        ranges=robust_ranges(problem, policy, error),
    )  # fmt: skip
    return [*found, worst]


def worst_laws_term(
    problem: Apprenticeship,
    ranges: tuple[FloatArray, FloatArray],
    values: FloatArray,
    gap: float,
    error: ModelError,
) -> Term:
    """By how much the gap to `values` under the worst laws exceeds `gap`, that in the model."""
    worst = robust_gap(problem, ranges, values)
    worst += EPSILON * (problem.basis.num_costs + 8) * (abs(worst) + abs(gap))
    formula = "gap_W under the worst laws - gap_W in the model"
    return Term("model", above(max(worst - gap, 0.0)), formula, source_of(error))


def enough_transitions(
    problem: Apprenticeship,
    policy: Policy,
    visits: Occupancy,
    failure_probability: float,
    share: float,
) -> int:
    """So many transitions of every pair bring the smaller of the two model terms to `share` of
    2 N/(1 - discount), by an eighth too many at most; `InvalidProblem` where none do."""
    delta, target = MODEL_SHARE * failure_probability, share * problem.gap_scale
    own = visits.expectations(problem.basis)

    def suffice(count: int) -> bool:
        counts = np.full(problem.world.num_pairs, count)
        error = radii_at(problem.world, counts, delta)
        least, greatest = robust_ranges(problem, policy, error)
        return above(problem.cost_class.largest_gap(least - own, greatest - own)) <= target

    try:
        high = transitions_needed(problem, visits, failure_probability=delta, share=share)
    except InvalidProblem:
        if not suffice(FAR_TOO_MANY):
            raise
        high = FAR_TOO_MANY
    while high > 1 and suffice(high // 2):
        high //= 2
    low = high // 2
    while high - low > max(1, low // 8):
        middle = (low + high) // 2
        low, high = (low, middle) if suffice(middle) else (middle, high)
    return high


def model_terms_of_budgets(
    problem: Apprenticeship, policy: Policy, visits: Occupancy, error: ModelError | None
) -> tuple[Term, ...]:
    """One term for each budget; none in an exact world."""
    if error is None:
        return ()
    formula = "(max d - min d)/2 h (discount <mu, err> + err0), or the worst laws"
    surplus = robust_budgets(problem, policy, error) - problem.budget_matrix.T @ visits.measure
    values = np.minimum(budget_terms(problem, visits, error), np.maximum(surplus, 0.0))
    return tuple(Term("model", float(value), formula, source_of(error)) for value in values)


def source_of(error: ModelError) -> str:
    return "transition counts" if error.failure_probability > 0 else "declared errors of the model"


DISTANCE_ROUNDING = 1e-9
"""Of a distance: less than this above the limit is not held against a premise."""


@dataclass(frozen=True)
class Agreement:
    """What is closest to the limit."""

    place: str
    draws: int
    distance: float
    allowed: float

    @property
    def is_refuted(self) -> bool:
        return self.distance > self.allowed + DISTANCE_ROUNDING

    def __str__(self) -> str:
        return (
            f"closest to the limit is {self.place}: {self.draws} draws at distance "
            f"{self.distance:.3g}, {self.allowed:.3g} is allowed"
        )


def agreement(world: World, demos: Demonstrations, level: float) -> Agreement:
    """What is closest to the limit in an estimated `world`, starts or a pair.

    The expert acts in the true world, and so did whoever made the record behind the model.
    Frequencies that are further apart, in the 1-norm, than both errors allow have not one law in
    common:

        l1(demonstrated, model) > err(model) + err(demonstrated)

    for some pair or, where the initial law is an estimate, for the starts. A step outside of the
    known support is impossible whatever was counted.

    *Guarantee*: a true premise is refuted with probability `level` at most: half of it is for the
    distances of the model, half for those of the demonstrations, both as in `model_error`. Record
    and demonstrations may overlap. Few steps per pair allow large distances, so much goes
    unnoticed; demonstrations that were simulated in the model agree with it best of all.

    *Cost*: sorting the steps, and the rows of the pairs they visit.

    >>> world = World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9, transition_counts=1000)
    >>> print(agreement(world, Demonstrations([0] * 301, [0] * 300, [0, 300]), 1e-3))
    closest to the limit is state 0, action 0: 300 draws at distance 1, 0.439 is allowed
    """
    starts_known = world.initial_error is None and world.initial_count is None
    steps_known = world.transition_error is None and world.transition_counts is None
    known = transition_radii(world, level / 2)
    part = level / 2 if starts_known or steps_known else level / 4
    found = []
    if not starts_known:
        found.append(_of_starts(world, demos.first_states, known.initial, part))
    if not steps_known and demos.num_steps:
        found.append(_of_steps(world, demos, known.transition, part))
    if not found:
        return Agreement("nothing", 0, 0.0, 0.0)
    return max(found, key=lambda one: one.distance - one.allowed)


def num_unobserved(world: World, demos: Demonstrations) -> int | None:
    """How many demonstrated steps are not among those that `world` was estimated from; None where
    it was not estimated from a record."""
    if world.transition_counts is None:
        return None
    return int((~_reached(world.transition, demos.pairs_in(world), demos.next_states)).sum())


def _of_starts(world: World, starts: IntArray, error: float, delta: float) -> Agreement:
    frequencies = np.bincount(starts, minlength=world.num_states) / starts.size
    distance = float(np.abs(frequencies - world.initial).sum())
    tally = sparse.csr_array(frequencies[np.newaxis] * starts.size)
    own = float(distances_of(information_radii(tally, [world.num_states], 1, delta))[0])
    return Agreement("the law of the starts", starts.size, distance, error + own)


def _of_steps(world: World, demos: Demonstrations, error: FloatArray, delta: float) -> Agreement:
    pairs, following = demos.pairs_in(world), demos.next_states
    visited, place, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    shape = (visited.size, world.num_states)
    tally = sparse.csr_array((1.0 / counts[place], (place, following)), shape=shape)
    distance = np.asarray(abs(tally - world.transition[visited]).sum(axis=1)).ravel()
    times = sparse.csr_array((np.ones(place.size), (place, following)), shape=shape)
    known = support_sizes(world)[visited], num_laws(world)
    own = distances_of(information_radii(times, *known, delta))
    allowed = error[visited] + own
    if world.support is not None:
        outside = ~_reached(world.support, pairs, following)
        allowed[np.unique(place[outside])] = 0.0
    sure = (allowed <= 0) & (distance <= DISTANCE_ROUNDING)
    worst = int(np.argmax(np.where(sure & ~sure.all(), -np.inf, distance - allowed)))
    where = world.pairs.pair_in_words(int(visited[worst]))
    return Agreement(where, int(counts[worst]), float(distance[worst]), float(allowed[worst]))


def _reached(laws: SparseMatrix, pairs: IntArray, following: IntArray) -> BoolArray:
    """Whether each step is among those that `laws` allow."""
    return np.asarray(laws[pairs, following]).ravel() > 0


def true_world_trivial_bound(
    problem: Apprenticeship, error: ModelError | None, *, valid: bool
) -> TrivialBound:
    """No policy has a larger gap, on the event on which the certificate holds."""
    known_cost = problem.cost_class.is_known
    plain = without_plans(problem, problem.exact_target, known_cost=known_cost)
    if not valid:
        return plain
    if error is None:
        return problem.trivial
    if problem.world.transition.nnz * problem.basis.num_costs * SEARCH > WORK_LIMIT:
        return plain
    ranges = WidenedRanges(problem.world, problem.basis, error)
    return with_ranges(problem, problem.exact_target, ranges, known_cost=known_cost)


# Laws within a distance of given ones, and what a policy costs under the worst of them.
#
#     highest(s) = max { <p, V> : p a law, |p - row_s|_1 <= error_s, p = 0 outside the support }
#
# The worst law takes error/2 of mass from the successors of lowest value and gives it to the state
# of highest value. As a linear program it has the dual
#
#     <row, V> + min over tau >= 0 of  tau error/2 + sum_y row(y) max(0, V_top - V(y) - tau)
#
# and any tau gives an upper bound: rounding while the worst law is sought cannot make it too small.
#
#     highest(s) = max { <p, V> : p a law, excess_s(p) <= allowed_s, p = 0 outside the support }
#
# with the convex excess of `Evidence`. For any law q (where the row is positive) and any scale > 0,
# with g = -excess'(q), which is 0 outside the row, and T = max over the support of V + scale g,
#
#     <p, V> <= T - scale <g, p> <= T + scale (allowed - excess(q) - <g, q>)
#
# since excess(p) >= excess(q) - <g, p - q>. The best q has V + scale g = T where it is positive
# outside of the top state, and excess(q) = allowed: `law_kernels` seeks it, and whatever it finds
# gives an upper bound. Of two balls around a row the smaller bound holds.
#
# Robust policy evaluation is policy iteration of an adversary who chooses one law per pair. For any
# values V, with T the adversary's Bellman operator under the policy,
#
#     T V <= V + excess   implies   worst value <= V + excess/(1 - discount)
#
# so every iteration ends with a bound, and the best one is kept.
#
# *Cost*: a sort of the stored transitions and a sparse solve per iteration, of which there are few.
#
# *Reference*: Strehl and Littman (2008) for the worst law; Iyengar (2005) and Nilim and El Ghaoui
# (2005) for robust dynamic programming.


EPSILON = float(np.finfo(float).eps)
MAX_ITERATIONS = 100
LEAST_INFORMATION = 1e-15
LEAST_GAIN = 1e-12
"""An iteration that lowers the bound by less than this share of the largest value is the last."""


@dataclass(frozen=True, eq=False)
class LawBall:
    """For every row a ball of laws around it.

    >>> rows = sparse.csr_array([[0.5, 0.5, 0.0]])
    >>> ball = LawBall(rows, np.array([0.4]))
    >>> float(ball.highest(np.array([1.0, 2.0, 3.0]))[0].round(12))
    1.9
    """

    rows: SparseMatrix
    error: FloatArray
    support: SparseMatrix | None = None
    evidence: Evidence | None = None

    def highest(self, values: FloatArray) -> FloatArray:
        """max <p, values> over each ball, with a little added for rounding."""
        move = _Move.towards(self, values)
        gap = np.maximum(move.top_values[self._row] - values[self.rows.indices], 0.0)
        beyond = np.maximum(gap - move.price[self._row], 0.0)
        gain = move.price * self.error / 2 + self._per_row(self.rows.data * beyond)
        mean = np.asarray(self.rows @ values)
        found = mean + np.where(self.error > 0, gain, 0.0) + self._rounding(values)
        if self.evidence is None:
            return np.asarray(found)
        return np.minimum(found, _Tilt.towards(self, values, move).highest)

    def lowest(self, values: FloatArray) -> FloatArray:
        """min <p, values> over each ball, with a little subtracted for rounding."""
        return -self.highest(-values)

    def worst_rows(self, values: FloatArray) -> SparseMatrix:
        """Laws that attain `highest(values)`."""
        move = _Move.towards(self, values)
        left = self.rows.data - move.taken
        if self.evidence is not None:
            tilt, reached = (
                _Tilt.towards(self, values, move),
                self._per_row(left * values[self.rows.indices]),
            )
            reached = reached + self._per_row(move.taken) * move.top_values
            left = np.where((tilt.highest < reached)[self._row], tilt.left, left)
        gained = np.maximum(self._per_row(self.rows.data - left), 0.0)
        moved = (gained, (np.arange(self.rows.shape[0]), move.top_states))
        kept = sparse.csr_array((left, self.rows.indices, self.rows.indptr), shape=self.rows.shape)
        return (kept + sparse.coo_array(moved, shape=self.rows.shape)).tocsr()

    def of(self, chosen: IntArray) -> "LawBall":
        """The balls of some rows."""
        support = None if self.support is None else self.support[chosen]
        known = None if self.evidence is None else self.evidence.of_rows(chosen)
        return LawBall(self.rows[chosen], self.error[chosen], support, known)

    @cached_property
    def _row(self) -> IntArray:
        """The row of each stored entry."""
        return np.repeat(np.arange(self.rows.shape[0]), np.diff(self.rows.indptr))

    def _per_row(self, entries: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(entries, self.rows.indptr[:-1]))

    def _rounding(self, values: FloatArray) -> float:
        branches = int(np.diff(self.rows.indptr).max())
        return EPSILON * (3 * branches + 12) * float(np.abs(values).max())


@dataclass(frozen=True, eq=False)
class _Move:
    """How the worst laws differ from the rows of a ball."""

    taken: FloatArray
    """Mass taken from each stored entry."""
    price: FloatArray
    """tau: what the last bit of mass moved in each row gained."""
    top_states: IntArray
    top_values: FloatArray

    @classmethod
    def towards(cls, ball: LawBall, values: FloatArray) -> "_Move":
        rows, num_states = ball.rows, values.size
        by_value = np.argsort(values, kind="stable")
        rank = np.empty(num_states, dtype=np.int64)
        rank[by_value] = np.arange(num_states)
        top = np.full(rows.shape[0], by_value[-1])
        if ball.support is not None:
            reachable = rank[ball.support.indices]
            top = by_value[np.maximum.reduceat(reachable, ball.support.indptr[:-1])]
        order = np.argsort(ball._row * num_states + rank[rows.indices], kind="stable")
        mass = rows.data[order]
        running = np.concatenate([[0.0], np.cumsum(mass)])
        before = running[:-1] - running[rows.indptr[:-1]][ball._row]
        budget = (ball.error / 2)[ball._row]
        moved = np.clip(budget - before, 0.0, mass)
        taken = np.empty_like(moved)
        taken[order] = moved
        last = np.maximum(np.add.reduceat((moved > 0).astype(np.int64), rows.indptr[:-1]), 1) - 1
        marginal = values[rows.indices[order[rows.indptr[:-1] + last]]]
        price = np.maximum(values[top] - marginal, 0.0)
        return cls(taken, price, top, values[top])


@dataclass(frozen=True, eq=False)
class _Tilt:
    """The worst laws that the evidence of a ball allows, and what they prove."""

    highest: FloatArray
    """An upper bound on the greatest mean of each row; infinite where nothing is known."""
    left: FloatArray
    """Of each stored entry; what is missing of a row's mass is at its top state."""

    @classmethod
    def towards(cls, ball: LawBall, values: FloatArray, move: _Move) -> "_Tilt":
        from journeyman.certificate.law_kernels import tilt

        evidence = ball.evidence
        assert evidence is not None
        known = np.isfinite(evidence.allowed)
        allowed = np.where(known, evidence.allowed, 1.0)
        row, top = ball._row, move.top_values
        below = np.maximum(top[row] - values[ball.rows.indices], 0.0)
        span = np.maximum.reduceat(below, ball.rows.indptr[:-1])
        unit = np.where(span > 0, span, 1.0)
        below = below / unit[row]
        n, c, a = evidence.counts, evidence.centring, evidence.smoothing
        law, scale = np.empty_like(ball.rows.data), np.empty(top.size)
        least = np.maximum(allowed, LEAST_INFORMATION)
        tilt(ball.rows.indptr, ball.rows.data, below, least, n, c, a, law, scale)
        excess, slope, size = evidence.at(ball.rows, law)
        price = np.maximum.reduceat(scale[row] * slope - below, ball.rows.indptr[:-1])
        price = np.maximum(price, 0.0)
        beyond = allowed - excess - ball._per_row(slope * law)
        steps = int(np.diff(ball.rows.indptr).max()) + 32
        sizes = unit * (price + scale * (1 + allowed + size)) + np.abs(top)
        bound = top + unit * (price + scale * beyond) + 2 * EPSILON * steps * sizes
        left = law / np.maximum(ball._per_row(law), 1.0)[row]
        return cls(np.where(known, bound, np.inf), left)


def worst_total(
    world: World,
    policy: Policy,
    cost: FloatArray,
    error: ModelError,
) -> float:
    """An upper bound on the expected discounted total of `cost` (per pair) under `policy`, for all
    worlds whose laws are within the given distances of this one's; nearly attained by one."""
    used = np.flatnonzero(policy.on(world))
    weights, discount = policy.on(world)[used], world.discount
    ball, starts = error.steps(world).of(used), error.starts(world)
    homes = np.searchsorted(used, world.pairs.offsets)
    averaging = sparse.csr_array(
        (weights, np.arange(used.size), homes), shape=(world.num_states, used.size)
    )
    running_cost, largest = averaging @ cost[used], float(np.abs(cost[used]).max())
    terms = int(np.diff(homes).max()) + 4
    rows, values, best = ball.rows, np.zeros(world.num_states), np.inf
    for _ in range(MAX_ITERATIONS):
        system = DiscountedSystem(averaging @ rows, discount)
        reached = system.solve(running_cost, guess=values).x
        gain = np.inf if best == np.inf else float((reached - values).max())
        values = reached
        size = float(np.abs(values).max())
        backup = running_cost + discount * (averaging @ ball.highest(values))
        excess = float((backup - values).max()) + EPSILON * terms * (largest + 2 * size)
        beyond = excess * world.effective_horizon
        bound = float(starts.highest(values)[0]) + beyond + 4 * EPSILON * (abs(beyond) + size)
        best = min(best, bound)
        worthwhile = LEAST_GAIN * max(size, largest)
        if beyond <= worthwhile or gain <= worthwhile:
            break
        rows = ball.worst_rows(values)
    return best


MOST_STEPS = 30
"""Of policy iteration; it seldom takes ten."""
SEARCH = 8
"""A step of it sorts the transitions: so many times the work of a plan in an exact world."""


class WidenedRanges:
    """No policy over the offered actions has an expectation outside of [lowest, highest] in any
    world whose laws are within the distances of the model's.

    In an exact world it is `problem.trivial_bound`. In an estimated one the attainable ranges of
    the model are widened by the model's error, on the event on which the bound itself rests: for
    any V no policy over the offered actions totals in the true world less than

        least(initial, V) + h min over pairs (c + discount least(row, V) - B V)

    where least(row, V) >= <row, V> - err/2 (max V - min V) is the least mean of V over the laws
    within the distance. V is sought by policy iteration of a player who also chooses the law of
    every pair; whatever it finds is a bound.

    A certificate whose premises failed has the plain bound 2 N h: ranges of a world that is wrong
    prove nothing. That the expert is a policy over the offered actions is one of the premises.
    """

    def __init__(self, world: World, basis: CostBasis, error: "ModelError") -> None:
        self.world = world
        self.widest = widest_ranges(world, basis)
        self._matrix = basis.on(world)
        self._ball, self._starts = error.steps(world), error.starts(world)
        self._found: dict[int, tuple[float, float, FloatArray, FloatArray]] = {}

    def of(self, cost: int) -> tuple[float, float]:
        return self._plans(cost)[:2]

    def potentials(self, cost: int) -> tuple[FloatArray, FloatArray]:
        return self._plans(cost)[2:]

    def _plans(self, k: int) -> tuple[float, float, FloatArray, FloatArray]:
        if k not in self._found:
            column = self._matrix[:, [k]]
            dense = column.toarray() if sparse.issparse(column) else column
            cost = np.asarray(dense).ravel().copy()
            low, low_values = self._least(cost)
            high, high_values = self._least(-cost)
            ends = max(low, self.widest[0][k]), min(-high, self.widest[1][k])
            proofs = read_only(low_values), read_only(high_values)
            self._found[k] = float(ends[0]), float(ends[1]), *proofs
        return self._found[k]

    def _least(self, cost: FloatArray) -> tuple[float, FloatArray]:
        """What no policy totals less than under any of the laws, and the V that proves it."""
        world, h = self.world, self.world.effective_horizon
        allowed = PRECISION * float(cost.max() - cost.min())
        values = np.full(world.num_states, h * float(cost.max() + cost.min()) / 2)
        best, proof = -np.inf, values
        for _ in range(MOST_STEPS):
            backup = cost + world.discount * self._ball.lowest(values)
            ahead = world.pairs.smallest(backup)
            change = ahead - values
            total = float(self._starts.lowest(values)[0]) + h * float(change.min())
            total -= self._rounding(cost, values)
            if total > best:
                best, proof = total, values
            if change.max() - change.min() <= allowed:
                break
            choice = self._greedy(backup, ahead)
            system = DiscountedSystem(self._ball.of(choice).worst_rows(-values), world.discount)
            values = system.solve(cost[choice], guess=ahead).x
        return best, proof

    def _greedy(self, backup: FloatArray, best: FloatArray) -> IntArray:
        """The first pair of every state that attains the best."""
        world = self.world
        first = np.where(backup == world.pairs.spread(best), np.arange(world.num_pairs), np.inf)
        return np.asarray(world.pairs.smallest(first).astype(np.int64))

    def _rounding(self, cost: FloatArray, values: FloatArray) -> float:
        """What float64 can have hidden beyond what the least means allow for themselves."""
        size = float(np.abs(cost).max() + 2 * np.abs(values).max())
        steps = 8 * size * self.world.effective_horizon
        return EPSILON * (steps + (self.world.num_states + 4) * float(np.abs(values).max()))
