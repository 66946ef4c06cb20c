"""`certify`: from a problem and any policy to a certificate.

    bound = min over evaluations and estimates of
            gap_W(expectations - values) + terms of the evaluation + terms of the estimate

Nothing a solver said is used: the policy is evaluated again, the expert's expectations are
estimated again from the demonstrations, and a witness only proposes a lower bound that weak duality
makes true. The failure probability is divided between what was estimated: the expert, the rollouts
or sampled rows of the evaluation if there are any, and the transition counts of an estimated world.
"""

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.certificate import Certificate, Combination
from journeyman.certificate.evaluation import (
    Evaluation,
    exact_evaluation,
    measure_evaluations,
)
from journeyman.certificate.expert import Estimate, expert_estimates
from journeyman.certificate.intervals import apprentice_intervals, expert_intervals
from journeyman.certificate.lower_bounds import lower_bounds, witnesses_of
from journeyman.certificate.premises import Premise, Verdict, expert_premises
from journeyman.certificate.sample_sizes import centred_bound, require_probability
from journeyman.certificate.spending import budget_certificates
from journeyman.certificate.terms import Term, above, total
from journeyman.errors import InvalidProblem
from journeyman.policy import Policy, occupancy
from journeyman.problem import Apprenticeship, Program, Witness

PREMISE_LEVEL = 1e-3
"""Probability with which the test of a true premise refutes it."""


class HasPolicy(Protocol):
    """Anything with a policy: an answer of `solve`, or your own."""

    @property
    def policy(self) -> Policy: ...


def certify(
    problem: Program,
    answer: Policy | HasPolicy,
    failure_probability: float = 0.05,
    *,
    witness: Witness | None = None,
    measure: FloatArray | None = None,
) -> Certificate:
    """What is known about the gap of a policy, wherever it came from.

    Args:
        problem: an `Apprenticeship`, or a `Forward` problem (the gap is then the cost itself).
        answer: a policy, or something that has one. Its `witness` and `reduced` are used if there.
        failure_probability: with which the bound may be wrong; 0.05 by default.
        witness: a dual point that proposes a lower bound.
        measure: the vector over pairs that defines the policy, for the kinds A, B, B' and C.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=2000, horizon=150, seed=0)
    >>> problem = jm.Apprenticeship(world, basis, demos)
    >>> certificate = certify(problem, jm.clone(demos, world))
    >>> certificate.valid, certificate.bound < 0.1 * certificate.trivial_bound
    (True, True)
    """
    delta = require_probability(failure_probability)
    policy = answer if isinstance(answer, Policy) else getattr(answer, "policy", None)
    if not isinstance(policy, Policy):
        raise InvalidProblem(
            f"there is no policy in a {type(answer).__name__}",
            "Give a Policy, or the answer of jm.solve",
        )
    visits = occupancy(problem.world, policy)
    evaluations = [exact_evaluation(problem, visits)]
    vector = _measure(answer, measure)
    if vector is not None:
        evaluations += measure_evaluations(problem, policy, vector)
    estimates = expert_estimates(problem, delta)
    trivial = 2 * centred_bound(problem, problem.cost_class) * problem.world.effective_horizon
    certificate = Certificate(
        problem=problem,
        policy=policy,
        failure_probability=delta,
        combinations=_combinations(problem, evaluations, estimates),
        trivial_bound=above(trivial),
        gap_on_data=problem.gap(visits),
        lower_bounds=lower_bounds(
            problem, witnesses_of(problem, visits, answer, witness), estimates
        ),
        premises=_premises(problem),
        budgets=budget_certificates(problem, visits),
        expert_intervals=expert_intervals(problem, delta),
        apprentice_intervals=apprentice_intervals(problem, visits),
        expectations=visits.expectations(problem.basis),
    )
    return _with_alarm(certificate)


def _measure(answer: Any, given: FloatArray | None) -> FloatArray | None:
    """u = base + Phi theta of a solver over features, when the answer has coefficients."""
    if given is not None:
        return np.asarray(given, dtype=float)
    reduced = getattr(answer, "reduced", None)
    if reduced is None:
        return None
    return np.asarray(reduced.surrogate.reduced.features.measure(reduced.coefficients))


def _combinations(
    problem: Program, evaluations: list[Evaluation], estimates: tuple[Estimate, ...]
) -> tuple[Combination, ...]:
    """Every evaluation with every estimate, the smallest bound first."""
    found = []
    for evaluation in evaluations:
        for estimate in estimates:
            gap = problem.cost_class.gap(evaluation.expectations - estimate.values)
            data = Term("gap on the data", gap, "gap_W(expectations - target)", estimate.name)
            terms = (data, *evaluation.terms, *estimate.terms)
            found.append(Combination(evaluation.kind, estimate.name, terms, total(terms)))
    return tuple(sorted(found, key=lambda combination: combination.bound))


def _premises(problem: Program) -> tuple[Premise, ...]:
    return expert_premises(problem, PREMISE_LEVEL) if isinstance(problem, Apprenticeship) else ()


def _with_alarm(certificate: Certificate) -> Certificate:
    """The certificate with the verdict of the lower bound among its premises."""
    problem, bounds = certificate.problem, certificate.lower_bounds
    if not isinstance(problem, Apprenticeship) or problem.expectation.is_declared:
        return certificate
    least, radius = bounds.without_budgets, bounds.expert_radius
    detail = (
        f"every policy has a gap of {least:.4g} or more on the data, but a policy of this world "
        f"that made them would have at most {radius:.4g}"
        if certificate.alarm
        else f"{max(least, 0.0):.4g} from the data is possible, {radius:.4g} is to be expected"
    )
    verdict = Verdict.FAILED if certificate.alarm else Verdict.TESTED
    premise = Premise(
        "a policy of this world can have made the demonstrations", verdict, detail,
        certificate.failure_probability,
    )  # fmt: skip
    return replace(certificate, premises=(*certificate.premises, premise))
