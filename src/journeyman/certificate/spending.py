"""What a policy spends of each budget, with certainty.

    <mu_pi, d> <= <mu, d> + h (max d |r+|_1 - min d |r-|_1),      r = initial - (B - discount P)' mu

where mu is the computed occupancy and r its residual, positive and negative parts apart. d is
known, so demonstrations play no part.
"""

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.certificate import BudgetCertificate
from journeyman.certificate.terms import Term, above, total
from journeyman.policy import Occupancy
from journeyman.problem import Budget, Program

EPSILON = float(np.finfo(float).eps)


def budget_certificates(
    problem: Program, visits: Occupancy, model_terms: tuple[Term, ...] = ()
) -> tuple[BudgetCertificate, ...]:
    """One for each budget of the problem; `model_terms` are added in an estimated world."""
    residual = problem.world.flow.residual(visits.measure)
    found = []
    for j, budget in enumerate(problem.constraints):
        spent = float(visits.measure @ budget.on(problem.world))
        terms = [
            Term("spent", spent, "<mu, d>", "evaluation"),
            _residual_term(problem, budget, residual),
            _rounding_term(problem, budget, visits.measure),
        ]
        every = (*terms, *model_terms[j : j + 1])
        found.append(BudgetCertificate(budget.name, total(every), budget.at_most, every))
    return tuple(found)


def _residual_term(problem: Program, budget: Budget, residual: FloatArray) -> Term:
    lost, made = np.maximum(residual, 0.0).sum(), np.maximum(-residual, 0.0).sum()
    value = float(budget.cost.max() * lost - budget.cost.min() * made)
    value = max(0.0, value) * problem.world.effective_horizon
    return Term("evaluation", above(value), "h (max d |r+|_1 - min d |r-|_1)", "residual")


def _rounding_term(problem: Program, budget: Budget, measure: FloatArray) -> Term:
    branches = int(np.diff(problem.world.transition.indptr).max())
    terms = branches + 2 + np.log2(problem.world.num_pairs + 1)
    mass = 1.0 + float(np.abs(measure).sum())
    value = 8 * EPSILON * float(terms) * mass * budget.size * problem.world.effective_horizon
    return Term("rounding", value, "8 eps (branches + 2) (1 + |mu|_1) max|d| h", "double precision")
