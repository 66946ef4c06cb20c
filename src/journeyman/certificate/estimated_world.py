"""Certificates in estimated worlds: every evaluation in the model gets what the model may hide."""

from dataclasses import replace

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.evaluation import Evaluation
from journeyman.certificate.model_error import (
    ModelError,
    budget_terms,
    model_term,
    radii_at,
    robust_budgets,
    robust_gap,
    robust_ranges,
    transition_radii,
    transitions_needed,
)
from journeyman.certificate.terms import Term, above
from journeyman.errors import InvalidProblem
from journeyman.policy import Occupancy, Policy
from journeyman.problem import Program

EPSILON = float(np.finfo(float).eps)
MODEL_SHARE = 0.25
"""Of the failure probability, for transition and start counts."""
FAR_TOO_MANY = 1 << 40
"""Transitions of a pair: where these do not help, others do not."""


def model_error(problem: Program, failure_probability: float) -> ModelError | None:
    """How far the true laws may be from the model's; None in an exact world."""
    if not problem.world.is_estimated:
        return None
    return transition_radii(problem.world, MODEL_SHARE * failure_probability)


def in_the_true_world(
    problem: Program,
    policy: Policy,
    visits: Occupancy,
    evaluations: list[Evaluation],
    error: ModelError,
) -> list[Evaluation]:
    """The evaluations with the model term, and one more: cost by cost under the worst laws."""
    formula = "N h (discount <mu, err> + err0)"
    term = Term("model", model_term(problem, visits, error), formula, source_of(error))
    found = [replace(one, terms=(*one.terms, term)) for one in evaluations]
    worst = Evaluation(
        "D, worst laws", visits.expectations(problem.basis), (), error.failure_probability,
        ranges=robust_ranges(problem, policy, error),
    )  # fmt: skip
    return [*found, worst]


def worst_laws_term(
    problem: Program,
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
    problem: Program, policy: Policy, visits: Occupancy, failure_probability: float, share: float
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
    problem: Program, policy: Policy, visits: Occupancy, error: ModelError | None
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
