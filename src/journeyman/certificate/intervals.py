"""Where single expectations lie: the expert's in probability, the apprentice's by the laws of the
world, or in probability where these were estimated from counts.

The expert's intervals hold together: both ends of each by bets on plain totals, with delta/(2n),
unrecorded tails at their least and greatest. They are a statement of their own, beside the bound.

No interval reaches beyond min psi_i h and max psi_i h, with h = 1/(1 - discount), or the time of an
episode in a world with a horizon: there every total lies. Expectations that were declared are left
as they are.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.evaluation import exact_evaluation
from journeyman.certificate.expert_estimates import PlainMean
from journeyman.certificate.model_error import ModelError, occupancy_distance
from journeyman.certificate.terms import Term, above, rounding_term, total
from journeyman.policy import Occupancy, Policy
from journeyman.problem import Apprenticeship, Budget

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
            _residual_term(problem, budget, residual),
            _rounding_term(problem, budget, visits.measure),
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


def _residual_term(problem: Apprenticeship, budget: Budget, residual: FloatArray) -> Term:
    lost, made = np.maximum(residual, 0.0).sum(), np.maximum(-residual, 0.0).sum()
    value = float(budget.cost.max() * lost - budget.cost.min() * made)
    value = max(0.0, value) * problem.world.effective_horizon
    return Term("evaluation", above(value), "h (max d |r+|_1 - min d |r-|_1)", "residual")


def _rounding_term(problem: Apprenticeship, budget: Budget, measure: FloatArray) -> Term:
    formula = "2 eps (pairs + branches + 8) (1 + |mu|_1) max|d| h"
    mass = float(np.abs(measure).sum())
    return rounding_term(problem.world, mass, budget.size, formula)
