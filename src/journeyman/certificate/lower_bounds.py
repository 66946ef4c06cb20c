"""What no policy can go below, on the data and in truth, and what that says about the data.

A witness (w, V, xi) proves a lower bound on the gap to any target (`problem.lower_bound`): *on the
data*, in the world as it is given. In an estimated world that is the model, where the gap on the
data is evaluated too, so the two can be compared. What the witness proves of the true world allows
for the model's error (`true_world_lower_bound`). Moved from the target to an estimate of the expert
and reduced by its error, it is a lower bound on the *true* gap:

    min over policies of gap(policy) >= bound at the estimate - error of the estimate

The expert itself is a policy of the world whose gap to every estimate is at most the estimate's
error. So a lower bound on the gap to an estimate that is above its error, with budgets left out
because the expert may have broken them, refutes the model or the independence of the
demonstrations: the *alarm*. It does not ask for the target, which was moved to what is attainable.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.certificate.model_error import ModelError, true_world_lower_bound
from journeyman.certificate.terms import ExpertEstimate, above, total
from journeyman.demonstrations.expectation import sweeps_in
from journeyman.policy import Occupancy
from journeyman.problem import (
    Apprenticeship,
    Witness,
    lower_bound,
    witness_from_plan,
)
from journeyman.problem.bounds import plain_bound
from journeyman.problem.surrogate import reduced_lower_bound
from journeyman.progress import out_of_time, say

ROUGHLY = 1e-5
"""Of 2N/(1 - discount): what plans for lower bounds miss in large worlds."""


@dataclass(frozen=True)
class LowerBounds:
    """All four bounds of the module's docstring."""

    on_data: float
    """In the world as given: no allowance for model error or sampling."""
    without_budgets: float
    """Without budgets and allowing for model error, on the gap to the estimate that it exceeds the
    error of by most, or falls short by least; to the target where nothing was estimated. The alarm
    looks at it."""
    true: float
    """In the true world and to the true expert: allows for model error and sampling."""
    expert_radius: float
    """The error of that estimate; infinite where nothing was estimated."""


@dataclass(frozen=True)
class ReducedBounds:
    """Over features: the loss of the answer's coefficients, and what no coefficients can go below.

    Both are recomputed, the second by weak duality from the answer's dual point.
    """

    loss: float
    lower_bound: float
    radius: float
    """The lower bound speaks about coefficients of at most this 2-norm."""


def of_class(problem: Apprenticeship) -> LowerBounds:
    """What the class itself says, where no values in every state can prove more: zero where zero
    cost is in it, else minus the largest gap the other way round."""
    least = 0.0
    if not problem.cost_class.contains_zero:
        least = -plain_bound(problem, problem.exact_target, -1.0)
    return LowerBounds(least, least, least, math.inf)


def reduced_bounds(answer: Any) -> ReducedBounds | None:
    """For an answer over features; None for any other."""
    found = getattr(answer, "reduced", None)
    if found is None:
        return None
    bound = reduced_lower_bound(found.surrogate, found.witness, found.radius)
    return ReducedBounds(found.surrogate.value(found.coefficients), bound, found.radius)


def witnesses_of(
    problem: Apprenticeship,
    visits: Occupancy,
    answer: Any,
    given: Witness | None,
    estimates: tuple[ExpertEstimate, ...],
) -> tuple[Witness, ...]:
    """Dual points that may prove something: the given one, the answer's, and the policy's own.

    Where the policy's gap to an estimate is above its error, every policy's may be: another point
    asks for that.
    """
    unpriced = np.zeros(len(problem.constraints))
    rough = planned_to(problem)
    zero = Witness(np.zeros(problem.basis.num_costs), np.zeros(problem.world.num_states))
    proposed = (given, getattr(answer, "witness", None))
    points = [point for point in proposed if isinstance(point, Witness)]
    own_expectations, wanted = visits.expectations(problem.basis), []
    for estimate in estimates:
        difference = own_expectations - estimate.values
        if problem.cost_class.gap(difference) > _radius(problem, estimate):
            wanted.append(problem.cost_class.worst_case(difference))
    found: list[Witness] = []
    for weights in (problem.cost_class.worst_case(own_expectations - problem.target), *wanted):
        if out_of_time() and (points or found):
            break
        say("a plan for a lower bound")
        found.append(witness_from_plan(problem, weights, unpriced, tolerance=rough))
    return (*found[:1], zero, *points, *found[1:])


def planned_to(problem: Apprenticeship) -> float | None:
    """How exactly plans for lower bounds are made, which hold however rough they are: as exactly as
    float64 allows, and in large worlds to a share of the largest gap."""
    if sweeps_in(problem.world, problem.num_costs) is None:
        return None
    return ROUGHLY * problem.gap_scale or None


def lower_bounds(
    problem: Apprenticeship,
    witnesses: tuple[Witness, ...],
    estimates: tuple[ExpertEstimate, ...],
    error: ModelError | None = None,
) -> LowerBounds:
    """The best that the witnesses prove; with an `error` of the model about the true world too."""
    free = without_budgets(problem)
    in_model = [lower_bound(problem, point) for point in witnesses]
    proven = list(zip(witnesses, in_model, strict=True))
    if error is not None:
        proven = [(point, true_world_lower_bound(problem, point, error)) for point in witnesses]
    free_bounds = proven
    if free is not problem:
        unpriced = [Witness(point.cost_weights, point.values) for point in witnesses]
        free_bounds = [(point, _proven(free, point, error)) for point in unpriced]
    attempts = [
        (
            max(bound + _moved(problem, point, estimate) for point, bound in free_bounds),
            _radius(problem, estimate),
        )
        for estimate in estimates
    ]
    least, radius = max(attempts, key=lambda attempt: attempt[0] - attempt[1])
    return LowerBounds(
        on_data=max(in_model),
        without_budgets=least,
        true=max(
            _true(problem, point, bound, estimate)
            for point, bound in proven
            for estimate in estimates
        ),
        expert_radius=radius,
    )


def _proven(problem: Apprenticeship, point: Witness, error: ModelError | None) -> float:
    if error is None:
        return lower_bound(problem, point)
    return true_world_lower_bound(problem, point, error)


def without_budgets(problem: Apprenticeship) -> Apprenticeship:
    """The same problem without its constraints."""
    if not problem.constraints or problem.expert is None:
        return problem
    return Apprenticeship(problem.world, problem.basis, problem.expectation, problem.cost_class)


def _true(problem: Apprenticeship, point: Witness, bound: float, estimate: ExpertEstimate) -> float:
    """A bound on the data moved to the estimate, less its error; a zero cost knows no error."""
    weights = problem.cost_class.admit(point.cost_weights)
    if not weights.any():
        return bound
    return bound + _moved(problem, point, estimate) - _error(problem, estimate)


def _moved(problem: Apprenticeship, point: Witness, estimate: ExpertEstimate) -> float:
    """What a bound gains when the estimate takes the place of the target."""
    weights = problem.cost_class.admit(point.cost_weights)
    return float(weights @ (problem.target - estimate.values)) if weights.any() else 0.0


def _error(problem: Apprenticeship, estimate: ExpertEstimate) -> float:
    """Of an estimate, seen from the expert, with what rounding can have done to its means."""
    steps = 0
    if problem.expert is not None and problem.demonstrations is not None:
        steps = int(problem.demonstrations.lengths.max()) + len(problem.demonstrations)
    rounding = (steps + problem.basis.num_costs + 16) * float(np.finfo(float).eps)
    error = total(estimate.terms) if estimate.reverse is None else estimate.reverse
    return error + rounding * problem.gap_scale


def _radius(problem: Apprenticeship, estimate: ExpertEstimate) -> float:
    """What the expert's own gap to the estimate stays below; none is known of a declared one."""
    if problem.expert is None or problem.expectation.is_declared:
        return math.inf
    return above(_error(problem, estimate))
