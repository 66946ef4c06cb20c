"""What a policy spends of each budget, at most.

    <mu_pi, d> <= <mu, d> + h (max d |r+|_1 - min d |r-|_1),      r = initial - (B - discount P)' mu

where mu is the computed occupancy and r its residual, positive and negative parts apart. d is
known, so demonstrations play no part: what is spent follows from the laws of the world. In an
estimated world the model term is added. If laws were counted the bound holds with the probability
of their distances only, for all budgets at once; if distances were declared it rests on them. A
policy that never chooses a pair with d > 0 spends nothing if d >= 0, whatever the laws.
"""

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.certificate import BudgetCertificate
from journeyman.certificate.rounding import rounding_term
from journeyman.certificate.terms import Term, above, total
from journeyman.policy import Occupancy, Policy
from journeyman.problem import Budget, Program


def budget_certificates(
    problem: Program,
    policy: Policy,
    visits: Occupancy,
    model_terms: tuple[Term, ...] = (),
    failure_probability: float = 0.0,
) -> tuple[BudgetCertificate, ...]:
    """One for each budget of the problem; in an estimated world `model_terms` are added, which may
    fail with `failure_probability`."""
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
            _residual_term(problem, budget, residual),
            _rounding_term(problem, budget, visits.measure),
        ]
        every = (*terms, *model_terms[j : j + 1])
        found.append(
            BudgetCertificate(budget.name, total(every), budget.at_most, every, failure_probability)
        )
    return tuple(found)


def _is_never_spent(problem: Program, policy: Policy, budget: Budget) -> bool:
    """Whether no pair that costs anything is ever chosen: zero then, whatever the world does."""
    cost = budget.on(problem.world)
    return bool((cost >= 0).all() and not policy.on(problem.world)[cost > 0].any())


def _residual_term(problem: Program, budget: Budget, residual: FloatArray) -> Term:
    lost, made = np.maximum(residual, 0.0).sum(), np.maximum(-residual, 0.0).sum()
    value = float(budget.cost.max() * lost - budget.cost.min() * made)
    value = max(0.0, value) * problem.world.effective_horizon
    return Term("evaluation", above(value), "h (max d |r+|_1 - min d |r-|_1)", "residual")


def _rounding_term(problem: Program, budget: Budget, measure: FloatArray) -> Term:
    formula = "2 eps (pairs + branches + 8) (1 + |mu|_1) max|d| h"
    mass = float(np.abs(measure).sum())
    return rounding_term(problem.world, mass, budget.size, formula)
