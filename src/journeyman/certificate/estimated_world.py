"""Certificates in estimated worlds: every evaluation in the model gets what the model may hide."""

from dataclasses import replace

import numpy as np

from journeyman.certificate.evaluation import Evaluation
from journeyman.certificate.expert import coordinatewise
from journeyman.certificate.model_error import (
    ModelError,
    budget_terms,
    model_term,
    robust_budgets,
    robust_ranges,
    transition_radii,
)
from journeyman.certificate.terms import Term, above
from journeyman.costs import KnownCost, Simplex
from journeyman.policy import Occupancy, Policy
from journeyman.problem import Program

MODEL_SHARE = 0.25
"""Of the failure probability, for transition and start counts."""


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
    term = Term("model", model_term(problem, visits, error), formula, _source(error))
    found = [replace(one, terms=(*one.terms, term)) for one in evaluations]
    return [*found, _worst_laws(problem, policy, error)]


def _worst_laws(problem: Program, policy: Policy, error: ModelError) -> Evaluation:
    """Every cost under the laws that are worst for it; one side suffices for a one-sided class."""
    least, greatest = robust_ranges(problem, policy, error)
    if isinstance(problem.cost_class, Simplex | KnownCost):
        return Evaluation("D, worst laws", greatest, (), error.failure_probability)
    half = (greatest - least) / 2
    value = above(coordinatewise(problem.cost_class, half))
    term = Term("model", value, "gap_W of half the ranges under all laws", _source(error))
    return Evaluation("D, worst laws", greatest - half, (term,), error.failure_probability)


def model_terms_of_budgets(
    problem: Program, policy: Policy, visits: Occupancy, error: ModelError | None
) -> tuple[Term, ...]:
    """One term for each budget; none in an exact world."""
    if error is None:
        return ()
    formula = "(max d - min d)/2 h (discount <mu, err> + err0), or the worst laws"
    surplus = robust_budgets(problem, policy, error) - problem.budget_matrix.T @ visits.measure
    values = np.minimum(budget_terms(problem, visits, error), np.maximum(surplus, 0.0))
    return tuple(Term("model", float(value), formula, _source(error)) for value in values)


def _source(error: ModelError) -> str:
    return "transition counts" if error.failure_probability > 0 else "declared errors of the model"
