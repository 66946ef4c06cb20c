"""Which estimate of the expert's expectations `learn` aims at, and why.

A certificate holds for every policy at once, however it was found: its radii bound the error of
estimates of the expert and do not speak of the policy. So the target may be chosen after looking at
the data. A policy that attains a target t is certified by

    bound(t) = min over the certificate's estimates of gap_W(t - values) + total(terms)

(and what the model's error adds for a cloned policy, in an estimated world). The candidates are the
estimate of least variance (`Blend`), the completed plain mean, and the mean of the stopped shaped
totals. The rule:

1. the blend, whose estimated error is the smallest, as long as no other candidate promises a bound
   that is smaller by more than `WORTHWHILE`, or is below half of the trivial bound at all;
2. otherwise the candidate with the smallest bound.

No candidate leaves out what is behind a record that was cut off, nor lies outside the attainable
ranges.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.certificate.estimated_world import model_error
from journeyman.certificate.expert import Estimate, expert_estimates
from journeyman.certificate.model_error import ModelError, model_term, robust_ranges
from journeyman.certificate.sample_sizes import require_probability
from journeyman.certificate.terms import total
from journeyman.certificate.trivial import trivial_bound
from journeyman.demonstrations import (
    Blend,
    Demonstrations,
    ExpertExpectation,
    MonteCarlo,
    StoppedShaping,
    clone,
)
from journeyman.demonstrations.control_variate import Tails
from journeyman.policy import occupancy
from journeyman.problem import Apprenticeship

WORTHWHILE = 0.05
"""Of the bound: what another target than the blend must lower it by."""
WEAK = 0.5
"""Of the trivial bound: promises above it decide nothing."""
NAMES = {
    Blend: "the blend of plain and shaped totals",
    MonteCarlo: "the completed plain mean",
    StoppedShaping: "the mean of stopped shaped totals",
}


@dataclass(frozen=True, eq=False)
class TargetChoice:
    """The target that was chosen, and the bound that each candidate promised."""

    expectation: ExpertExpectation
    promised: dict[str, float]
    """The certified bound of a policy that attains it, by the candidate's name."""
    reason: str


def choose_target(problem: Apprenticeship, failure_probability: float) -> TargetChoice:
    """The target for the demonstrations of `problem`, whose own target is the blend."""
    demos, delta = problem.demonstrations, require_probability(failure_probability)
    assert demos is not None
    error = model_error(problem, delta)
    remaining = delta - (0.0 if error is None else error.failure_probability)
    estimates = expert_estimates(problem, remaining)
    shaped = stopped_shaping(problem, estimates)
    candidates = [problem.expectation, _completed(problem, demos), shaped]
    model = 0.0 if error is None else _model(problem, demos, error)
    found = [one for one in candidates if one is not None]
    bounds = [_promised(problem, one, estimates) + model for one in found]
    promised = {name_of(one): bound for one, bound in zip(found, bounds, strict=True)}
    best = int(np.argmin(bounds))
    blend, least = bounds[0], bounds[best]
    name, saved = name_of(found[0]), 1 - least / blend if blend > 0 else 0.0
    if least >= WEAK * trivial_bound(problem, error, valid=True).value:
        reason = f"{name}, of least variance; no target promises a bound that says much"
        return TargetChoice(found[0], promised, reason)
    if saved <= WORTHWHILE:
        other = f"would lower the certified bound by {max(saved, 0.0):.1%} at most"
        return TargetChoice(found[0], promised, f"{name}, of least variance; another {other}")
    reason = f"{name_of(found[best])}; with {name} the certified bound is {blend / least - 1:.0%} "
    return TargetChoice(found[best], promised, reason + "larger")


def name_of(expectation: ExpertExpectation) -> str:
    """In words, how expectations were estimated."""
    return NAMES[type(expectation.method)]


def stopped_shaping(
    problem: Apprenticeship, estimates: tuple[Estimate, ...]
) -> ExpertExpectation | None:
    """The values of the shaped one of the certificate's estimates; None where there is none."""
    demos, world = problem.demonstrations, problem.world
    totals = next((one.totals for one in estimates if one.totals is not None), None)
    if totals is None or demos is None:
        return None
    missing = Tails.of(demos, problem.cost_matrix, world).unknown_mass
    found = ExpertExpectation.from_totals(totals, missing, StoppedShaping(), demos)
    return found.attainable(problem.basis, world)


def _completed(problem: Apprenticeship, demos: Demonstrations) -> ExpertExpectation:
    way = MonteCarlo(completed=True)
    return ExpertExpectation.from_demonstrations(demos, problem.basis, problem.world, method=way)


def _model(problem: Apprenticeship, demos: Demonstrations, error: ModelError) -> float:
    """What the error of the model adds to the bound of the cloned policy."""
    policy = clone(demos, problem.world)
    visits = occupancy(problem.world, policy)
    own = visits.expectations(problem.basis)
    least, greatest = robust_ranges(problem, policy, error)
    worst = problem.cost_class.largest_gap(least - own, greatest - own)
    return min(worst, model_term(problem, visits, error))


def _promised(
    problem: Apprenticeship, target: ExpertExpectation, estimates: tuple[Estimate, ...]
) -> float:
    return min(
        problem.cost_class.gap(target.values - one.values) + total(one.terms) for one in estimates
    )
