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

*Why*: mu_pi - u' = sum_t discount^t (..)^t r' for every u' = s(x) pi(a|x), so the 1-norm of the
difference is at most h |r'|_1.
"""

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.terms import PolicyEvaluation, Term, above, rounding_term
from journeyman.policy import Occupancy, Policy, extract
from journeyman.problem import Apprenticeship

TINY = 1e-100
"""A measure with less mass than this is not worth scaling."""


def exact_evaluation(problem: Apprenticeship, visits: Occupancy) -> PolicyEvaluation:
    """Kind D, from the occupancy measure of the policy."""
    residual = largest_cost(problem) * problem.world.effective_horizon * visits.residual
    terms = (
        Term("evaluation", above(residual), "N h |initial - (B - discount P)' mu|_1", "residual"),
        _rounding(problem, visits.measure),
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


def rounding(problem: Apprenticeship, mass: float, num_features: int = 0) -> Term:
    """Of expectations under a measure of the given mass, a sum over features if there are any."""
    formula = "2 eps (pairs + branches + 8) (1 + |u|_1) N h"
    return rounding_term(problem.world, mass, largest_cost(problem), formula, num_features)
