"""How the policy is known: its expectations, with a bound on their error.

    gap_W(Psi' mu_pi - x) <= gap_W(expectations - x) + total(terms)        for every x

With h = 1/(1 - discount), u any vector over the pairs that defines the policy, u+ its positive part
and r = initial - (B - discount P)' u+,

| kind | expectations          | error                                   | needs                   |
|------|-----------------------|-----------------------------------------|-------------------------|
| A    | Psi' u                | N h (2 V1 + V2)                         | u (Lemma 2)             |
| B    | Psi' u+               | N h |r|_1                               | u                       |
| B'   | Psi' a u+             | N h |initial - a (B - discount P)' u+|_1 | u and any scale a      |
| C    | Psi' u+ + c h sum(r)  | N(Psi - 1 c') h |r|_1                   | u and any centre c      |
| D    | Psi' mu               | N h |initial - (B - discount P)' mu|_1  | an approximate solve mu |

All are deterministic: the smallest may be taken. D holds for any policy, wherever it came from;
the others also where no linear system can be solved. Evaluations by sampling are in `rollouts` and
`sampled_rows`: they fail with a probability, and keep the statistics they rest on.

With discount 1 there is kind D only, and h is what the policy's expected steps from any state it
gets to are proven not to exceed (`Occupancy.horizon`): neither the mass of a measure nor how far a
residual is carried is known without the policy.

*Why*: mu_pi - u' = sum_t discount^t (..)^t r' for every u' = s(x) pi(a|x), so the 1-norm of the
difference is at most h |r'|_1.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.expert_estimates import PlainMean
from journeyman.certificate.model_error import ModelError, occupancy_distance
from journeyman.certificate.terms import PolicyEvaluation, Term, above, rounding_term, total
from journeyman.policy import Occupancy, Policy, extract
from journeyman.problem import Apprenticeship, Budget

TINY = 1e-100
"""A measure with less mass than this is not worth scaling."""


def exact_evaluation(problem: Apprenticeship, visits: Occupancy) -> PolicyEvaluation:
    """Kind D, from the occupancy measure of the policy."""
    residual = largest_cost(problem) * visits.horizon * visits.residual
    mass = float(np.abs(visits.measure).sum())
    terms = (
        Term("evaluation", above(residual), "N h |initial - (B - discount P)' mu|_1", "residual"),
        rounding(problem, mass, horizon=visits.horizon),
    )
    return PolicyEvaluation("D", _expectations(problem, visits.measure), terms)


def measure_evaluations(
    problem: Apprenticeship, policy: Policy, measure: FloatArray
) -> tuple[PolicyEvaluation, ...]:
    """Kinds A, B, B' and C for the vector u that defines `policy`; none when it does not."""
    if not defines(measure, policy, problem):
        return ()
    positive = np.maximum(measure, 0.0)
    residual = problem.world.flow.residual(positive)
    scale = best_scale(problem, positive)
    return (
        _lemma_2(problem, measure),
        _positive_part(problem, "B", positive),
        _positive_part(problem, "B'", scale * positive),
        _centred(problem, positive, residual),
    )


def defines(measure: FloatArray, policy: Policy, problem: Apprenticeship) -> bool:
    """Whether `policy` is the one extracted from `measure`."""
    defined = extract(problem.world, measure).per_pair
    return np.array_equal(defined, policy.on(problem.world))


def _lemma_2(problem: Apprenticeship, measure: FloatArray) -> PolicyEvaluation:
    negativity = float(np.maximum(-measure, 0.0).sum())
    violation = float(np.abs(problem.world.flow.residual(measure)).sum())
    error = largest_cost(problem) * problem.world.effective_horizon * (2 * negativity + violation)
    term = Term("Lemma 2", above(error), "N h (2 V1 + V2)", "the measure")
    return PolicyEvaluation(
        "A", _expectations(problem, measure), (term, _rounding(problem, measure))
    )


def _positive_part(problem: Apprenticeship, kind: str, positive: FloatArray) -> PolicyEvaluation:
    residual = float(np.abs(problem.world.flow.residual(positive)).sum())
    error = largest_cost(problem) * problem.world.effective_horizon * residual
    formula = "N h |r|_1" if kind == "B" else "N h |initial - a (B - discount P)' u+|_1"
    term = Term("flow residual", above(error), formula, "the measure")
    return PolicyEvaluation(
        kind, _expectations(problem, positive), (term, _rounding(problem, positive))
    )


def _centred(
    problem: Apprenticeship, positive: FloatArray, residual: FloatArray
) -> PolicyEvaluation:
    centre, h = problem.basis.centre, problem.world.effective_horizon
    bound = problem.cost_class.pointwise_bound(problem.basis.centred())
    error = bound * h * float(np.abs(residual).sum())
    moved = _expectations(problem, positive) + centre * h * float(residual.sum())
    term = Term("flow residual", above(error), "N(Psi - 1 c') h |r|_1", "the measure")
    return PolicyEvaluation("C", moved, (term, _rounding(problem, positive)))


def best_scale(problem: Apprenticeship, positive: FloatArray) -> float:
    """The scale a >= 0 with the smallest bound B' on the data (a convex function of a)."""
    from scipy.optimize import minimize_scalar

    expectations, outflow = _expectations(problem, positive), problem.world.flow.apply(positive)
    weight = largest_cost(problem) * problem.world.effective_horizon

    def bound(scale: float) -> float:
        gap = problem.cost_class.gap(scale * expectations - problem.target)
        return gap + weight * float(np.abs(problem.world.initial - scale * outflow).sum())

    mass = float(positive.sum())
    top = 4 * problem.world.effective_horizon / mass if mass > TINY else 1.0
    found = minimize_scalar(
        bound, bounds=(0.0, top), method="bounded", options={"xatol": 1e-9 * top}
    )
    return min((1.0, float(found.x)), key=bound)


def largest_cost(problem: Apprenticeship) -> float:
    """N."""
    return problem.cost_class.pointwise_bound(problem.basis.matrix)


def _expectations(problem: Apprenticeship, measure: FloatArray) -> FloatArray:
    return np.asarray(problem.cost_matrix.T @ measure)


def _rounding(problem: Apprenticeship, measure: FloatArray) -> Term:
    return rounding(problem, float(np.abs(measure).sum()))


def rounding(
    problem: Apprenticeship, mass: float, num_features: int = 0, horizon: float | None = None
) -> Term:
    """Of expectations under a measure of the given mass, a sum over features if there are any."""
    formula = "2 eps (pairs + branches + 8) (1 + |u|_1) N h"
    size = largest_cost(problem)
    return rounding_term(problem.world, mass, size, formula, num_features, horizon)


# Where single expectations lie: the expert's in probability, the apprentice's by the laws of the
# world, or in probability where these were estimated from counts.
#
# The expert's intervals hold together: both ends of each by bets on plain totals, with delta/(2n),
# unrecorded tails at their least and greatest. They are a statement of their own, beside the bound.
#
# No interval reaches beyond min psi_i h and max psi_i h, with h = 1/(1 - discount), or the time of
# an episode in a world with a horizon: there every total lies. Expectations that were declared are
# left as they are.

EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Interval:
    """One expectation."""

    name: str
    low: float
    high: float


def expert_intervals(problem: Apprenticeship, failure_probability: float) -> tuple[Interval, ...]:
    """One for each cost; a point where the expectations were declared."""
    if problem.expert is None or problem.demonstrations is None:
        return _intervals(problem, problem.target, problem.target)
    mean, eye = PlainMean.of(problem), np.eye(problem.basis.num_costs)
    share = failure_probability / (2 * len(eye))
    return _within_range(problem, mean.lower(eye, share), -mean.lower(-eye, share))


def apprentice_intervals(
    problem: Apprenticeship, visits: Occupancy, error: ModelError | None = None
) -> tuple[Interval, ...]:
    """One for each cost, as wide as residual, rounding and the model's error demand."""
    basis, largest = problem.basis, problem.cost_unit
    width = basis.norms / largest * total(exact_evaluation(problem, visits).terms)
    if error is not None:
        width = width + (basis.highest - basis.lowest) / 2 * occupancy_distance(visits, error)
    middle = visits.expectations(problem.basis)
    return _within_range(problem, middle - width, middle + width)


def _within_range(
    problem: Apprenticeship, low: FloatArray, high: FloatArray
) -> tuple[Interval, ...]:
    """Cut where no total can be, with room for rounding."""
    basis, h = problem.totals.basis, problem.total_time
    room = EPSILON * (problem.world.num_pairs + 8) * basis.norms * h
    least, most = basis.lowest * h - room, basis.highest * h + room
    ends = (np.clip(end, least, most) for end in (low, high))
    return _intervals(problem, *ends)


def _intervals(problem: Apprenticeship, low: FloatArray, high: FloatArray) -> tuple[Interval, ...]:
    ends = zip(problem.basis.names, low, high, strict=True)
    return tuple(Interval(name, float(least), float(most)) for name, least, most in ends)


@dataclass(frozen=True)
class BudgetCertificate:
    """What is known about one budget: <mu, d> <= spent, by the laws of the world or, where these
    were estimated from counts or the policy was evaluated by rollouts or drawn rows, with
    probability 1 - failure_probability."""

    name: str
    spent: float
    limit: float
    terms: tuple[Term, ...]
    failure_probability: float = 0.0
    """With which the bounds on all budgets together may be wrong: a part of the certificate's."""

    @property
    def chance(self) -> str:
        """The probability of the bound in words; nothing where it follows from the laws."""
        known = self.failure_probability == 0
        return "" if known else f" with probability {1 - self.failure_probability:.6g}"

    @property
    def is_kept(self) -> bool:
        return self.spent <= self.limit

    @property
    def slack(self) -> float:
        """By how much the bound exceeds the value of the evaluation."""
        return self.spent - self.terms[0].value


def budget_certificates(
    problem: Apprenticeship,
    policy: Policy,
    visits: Occupancy,
    model_terms: tuple[Term, ...] = (),
    failure_probability: float = 0.0,
) -> tuple[BudgetCertificate, ...]:
    """One for each budget of the problem; in an estimated world `model_terms` are added, which may
    fail with `failure_probability`.

        <mu_pi, d> <= <mu, d> + h (max d |r+|_1 - min d |r-|_1)
        r = initial - (B - discount P)' mu

    where mu is the computed occupancy and r its residual, positive and negative parts apart. d is
    known, so demonstrations play no part: what is spent follows from the laws of the world. In an
    estimated world the model term is added. If laws were counted the bound holds with the
    probability of their distances only, for all budgets at once; if distances were declared it
    rests on them. A policy that never chooses a pair with d > 0 spends nothing if d >= 0, whatever
    the laws.
    """
    residual = problem.world.flow.residual(visits.measure)
    found = []
    for j, budget in enumerate(problem.constraints):
        if _is_never_spent(problem, policy, budget):
            never = Term("spent", 0.0, "<mu, d>", "the policy avoids every pair with d > 0")
            found.append(BudgetCertificate(budget.name, 0.0, budget.at_most, (never,)))
            continue
        spent = float(visits.measure @ budget.on(problem.world))
        terms = [
            Term("spent", spent, "<mu, d>", "evaluation"),
            _residual_term(budget, residual, visits.horizon),
            _rounding_term(problem, budget, visits),
        ]
        every = (*terms, *model_terms[j : j + 1])
        found.append(
            BudgetCertificate(budget.name, total(every), budget.at_most, every, failure_probability)
        )
    return tuple(found)


def _is_never_spent(problem: Apprenticeship, policy: Policy, budget: Budget) -> bool:
    """Whether no pair that costs anything is ever chosen: zero then, whatever the world does."""
    cost = budget.on(problem.world)
    return bool((cost >= 0).all() and not policy.on(problem.world)[cost > 0].any())


def _residual_term(budget: Budget, residual: FloatArray, horizon: float) -> Term:
    lost, made = np.maximum(residual, 0.0).sum(), np.maximum(-residual, 0.0).sum()
    value = float(budget.cost.max() * lost - budget.cost.min() * made)
    value = max(0.0, value) * horizon
    return Term("evaluation", above(value), "h (max d |r+|_1 - min d |r-|_1)", "residual")


def _rounding_term(problem: Apprenticeship, budget: Budget, visits: Occupancy) -> Term:
    formula = "2 eps (pairs + branches + 8) (1 + |mu|_1) max|d| h"
    mass = float(np.abs(visits.measure).sum())
    return rounding_term(problem.world, mass, budget.size, formula, horizon=visits.horizon)
