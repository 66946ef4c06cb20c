"""`certify`: from a problem and any policy to a certificate.

    bound = min over evaluations and estimates of
            gap_W(expectations - values) + terms of the evaluation + terms of the estimate

Nothing a solver said is used: the policy is evaluated again, the expert's expectations are
estimated again from the demonstrations, and a witness only proposes a lower bound that weak duality
makes true. The failure probability is divided between what was estimated: the expert, the rollouts
or sampled rows of the evaluation if there are any, and the transition counts of an estimated world.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from journeyman.arrays import FloatArray, read_only, real_array
from journeyman.certificate.certificate import Certificate
from journeyman.certificate.concentration import require_probability
from journeyman.certificate.evaluation import defines, exact_evaluation, measure_evaluations
from journeyman.certificate.expert import expert_estimates
from journeyman.certificate.intervals import (
    apprentice_intervals,
    budget_certificates,
    expert_intervals,
)
from journeyman.certificate.large_certificate import certify_large
from journeyman.certificate.lower_bounds import (
    LowerBounds,
    lower_bounds,
    reduced_bounds,
    witnesses_of,
)
from journeyman.certificate.model_error import (
    ModelError,
    in_the_true_world,
    model_error,
    model_terms_of_budgets,
    true_world_trivial_bound,
    worst_laws_term,
)
from journeyman.certificate.premises import expert_premises, world_premises
from journeyman.certificate.rollouts import Rollouts
from journeyman.certificate.sampled_rows import SampledRows
from journeyman.certificate.terms import (
    Combination,
    Estimate,
    Evaluation,
    Premise,
    Term,
    Verdict,
    total,
)
from journeyman.errors import InvalidProblem
from journeyman.execution import Executor
from journeyman.policy import Occupancy, Policy, extract, occupancy
from journeyman.policy.acting import AnyPolicy
from journeyman.problem import Apprenticeship, Witness, lower_bound
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.world.levels import Level

NEARLY = 1e-9
"""A measure whose policy is further off than rounding belongs to another policy."""
PREMISE_LEVEL = 1e-3
"""Probability with which the test of a true premise refutes it."""


class HasStatePolicy(Protocol):
    """Anything with a policy that is asked state by state: the answer of a large problem."""

    @property
    def policy(self) -> AnyPolicy: ...


class HasPolicy(Protocol):
    """Anything with a policy: an answer of `solve`, or your own."""

    @property
    def policy(self) -> Policy: ...


def certify(
    problem: Apprenticeship,
    answer: Any,
    failure_probability: float = 0.05,
    *,
    witness: Witness | None = None,
    measure: FloatArray | None = None,
    evaluation: Any = None,
    executor: Executor | None = None,
) -> Any:
    """What is known about the gap of a policy, wherever it came from.

    Args:
        problem: an `Apprenticeship`, or a `Forward` problem (the gap is then the cost itself).
        answer: a policy, or something that has one. Its `witness` and `reduced` are used if there.
        failure_probability: with which the bound may be wrong; 0.05 by default.
        witness: a dual point that proposes a lower bound.
        measure: the vector over pairs that defines the policy, for the kinds A, B, B' and C.
        evaluation: `Rollouts` or `SampledRows` instead of exact evaluation. It takes half of what
            the expert would have of the failure probability, or all of it when the expert's
            expectations are exact. Of several policies compared by it each needs a part of its own:
            divide `failure_probability` by their number. Budgets, intervals of the apprentice and
            `gap_on_data` stay exact. In a world too large to enumerate it must be given: `Rollouts`
            or, for a policy over features, `LargeRows`. For a mixture it is `MixtureRollouts`, and
            the answer of `PolicyMixture` has one.
        executor: runs the shards of an evaluation in a large world; no figure depends on it.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=2000, horizon=150, seed=0)
    >>> problem = jm.Apprenticeship(world, basis, demos)
    >>> certificate = certify(problem, jm.clone(demos, world))
    >>> certificate.valid, certificate.bound < 0.1 * certificate.trivial_bound
    (True, True)
    """
    if _needs_rollouts(problem, answer, evaluation):
        return certify_large(problem, answer, failure_probability, evaluation, executor)
    delta, policy = require_probability(failure_probability), _policy(problem, answer)
    visits = occupancy(problem.world, policy)
    error = model_error(problem, delta)
    remaining = delta - (0.0 if error is None else error.failure_probability)
    expert_share, evaluation_share = _shares(problem, evaluation, remaining)
    if evaluation is None:
        vector = _measure(problem, policy, answer, measure)
        evaluations = _exact(problem, policy, visits, vector)
    else:
        vector = None
        evaluations = _sampled(problem, policy, evaluation, measure, evaluation_share)
    estimates = expert_estimates(problem, expert_share)
    evidence = _Evidence(
        problem, policy, delta, visits, vector, evaluations, estimates,
        witnesses_of(problem, visits, answer, witness, estimates), error,
    )  # fmt: skip
    return replace(evidence.certificate(), reduced=reduced_bounds(answer))


def _needs_rollouts(problem: Apprenticeship, answer: Any, evaluation: Any) -> bool:
    """Whether nothing is evaluated exactly: below the explicit level, and for mixtures."""
    if not isinstance(problem, Apprenticeship) or problem.level < Level.EXPLICIT:
        return isinstance(problem, Apprenticeship)
    given = getattr(answer, "rollouts", None) if evaluation is None else evaluation
    return isinstance(given, MixtureRollouts)


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What a certificate is put together from."""

    problem: Apprenticeship
    policy: Policy
    failure_probability: float
    visits: Occupancy
    measure: FloatArray | None
    evaluations: list[Evaluation]
    estimates: tuple[Estimate, ...]
    witnesses: tuple[Witness, ...]
    error: ModelError | None

    def certificate(self) -> Certificate:
        problem, visits, error = self.problem, self.visits, self.error
        evaluations = self.evaluations
        if error is not None:
            evaluations = in_the_true_world(problem, self.policy, visits, evaluations, error)
        premises = (*_premises(problem), *self.evaluations[0].premises)
        bounds = lower_bounds(problem, self.witnesses, self.estimates, error)
        premises = (*premises, *_alarm(problem, bounds, self.failure_probability))
        valid = all(one.verdict is not Verdict.FAILED for one in premises)
        trivial = true_world_trivial_bound(problem, error, valid=valid)
        return Certificate(
            problem=problem,
            policy=self.policy,
            failure_probability=self.failure_probability,
            combinations=_combinations(problem, evaluations, self.estimates, error),
            trivial_bound=trivial.value,
            least_possible=trivial.least,
            ranges=trivial.ranges,
            gap_on_data=problem.gap(visits),
            lower_bounds=bounds,
            premises=premises,
            budgets=budget_certificates(
                problem,
                self.policy,
                visits,
                model_terms_of_budgets(problem, self.policy, visits, error),
                0.0 if error is None else error.failure_probability,
            ),
            expert_intervals=expert_intervals(problem, self.failure_probability),
            apprentice_intervals=apprentice_intervals(problem, visits, error),
            expectations=visits.expectations(problem.basis),
            witnesses=tuple(sorted(self.witnesses, key=lambda one: -lower_bound(problem, one))),
            measure=self.measure,
        )


def _policy(problem: Apprenticeship, answer: Policy | HasPolicy) -> Policy:
    if not isinstance(problem, Apprenticeship):
        raise InvalidProblem(
            f"a {type(problem).__name__} is not a problem",
            "Give certify(problem, policy): an Apprenticeship or a Forward, then a policy",
        )
    wraps = any(callable(getattr(answer, way, None)) for way in ("predict", "sample"))
    policy = answer if isinstance(answer, Policy) or wraps else getattr(answer, "policy", None)
    if not isinstance(policy, Policy):
        raise InvalidProblem(
            f"there is no policy in a {type(answer).__name__}",
            "Give jm.Policy(probabilities), or the answer of jm.solve",
        )
    return policy.fitted(problem.world)


def _shares(
    problem: Apprenticeship, evaluation: Rollouts | SampledRows | None, delta: float
) -> tuple[float, float]:
    """Parts of delta for the expert and for the evaluation; what is exact needs none."""
    if evaluation is None:
        return delta, 0.0
    estimated = problem.expert is not None and not problem.expectation.is_declared
    return (delta / 2, delta / 2) if estimated else (0.0, delta)


def _exact(
    problem: Apprenticeship, policy: Policy, visits: Occupancy, measure: FloatArray | None
) -> list[Evaluation]:
    """Kind D, and A to C where a measure defines the policy."""
    measured = () if measure is None else measure_evaluations(problem, policy, measure)
    return [exact_evaluation(problem, visits), *measured]


def _sampled(
    problem: Apprenticeship,
    policy: Policy,
    evaluation: Rollouts | SampledRows,
    measure: FloatArray | None,
    delta: float,
) -> list[Evaluation]:
    """Kind E, or A and B from sampled rows."""
    if not isinstance(evaluation, Rollouts | SampledRows):
        raise InvalidProblem(
            f"evaluation is {evaluation!r}", "Give Rollouts(...), SampledRows(...) or None"
        )
    if measure is not None:
        raise InvalidProblem(
            "both measure and evaluation are given",
            "Give the measure alone for exact evaluation, SampledRows(...) alone for sampled rows",
        )
    return list(evaluation.evaluate(problem, policy, delta))


def _measure(
    problem: Apprenticeship, policy: Policy, answer: Any, given: FloatArray | None
) -> FloatArray | None:
    """The given u, or base + Phi theta of an answer with coefficients, if it defines the policy."""
    reduced = getattr(answer, "reduced", None)
    if given is not None:
        measure = real_array(
            "measure", given, ndim=1, size=problem.world.num_pairs, refusal=InvalidProblem
        )
        defined = extract(problem.world, measure).per_pair
        if not np.allclose(defined, policy.on(problem.world), rtol=0, atol=NEARLY):
            raise InvalidProblem(
                "the measure does not define this policy",
                "Certify jm.extract(world, measure), or leave the measure out",
            )
    elif reduced is not None:
        measure = read_only(reduced.surrogate.reduced.features.measure(reduced.coefficients))
    else:
        return None
    return measure if defines(measure, policy, problem) else None


def _combinations(
    problem: Apprenticeship,
    evaluations: list[Evaluation],
    estimates: tuple[Estimate, ...],
    error: ModelError | None,
) -> tuple[Combination, ...]:
    """Every evaluation with every estimate, the smallest bound first."""
    found, known_cost = [], problem.cost_class.is_known
    for evaluation in evaluations:
        for estimate in estimates:
            gap = problem.cost_class.gap(evaluation.expectations - estimate.values)
            name = "expected cost" if known_cost else "gap to the estimate"
            data = Term(name, gap, "gap_W(expectations - values)", estimate.name)
            terms = (data, *evaluation.terms, *estimate.terms)
            if evaluation.ranges is not None and error is not None:
                model = worst_laws_term(problem, evaluation.ranges, estimate.values, gap, error)
                terms = (data, model, *estimate.terms)
            found.append(
                Combination(
                    evaluation.kind, estimate.name, terms, total(terms), evaluation.statistics
                )
            )
    return tuple(sorted(found, key=lambda combination: combination.bound))


def _premises(problem: Apprenticeship) -> tuple[Premise, ...]:
    expert: tuple[Premise, ...] = ()
    if problem.expert is not None:
        expert = expert_premises(problem, PREMISE_LEVEL)
    return *expert, *world_premises(problem)


def _alarm(problem: Apprenticeship, bounds: LowerBounds, level: float) -> tuple[Premise, ...]:
    """Whether the lower bound without budgets refutes the data."""
    if problem.expert is None or problem.expectation.is_declared:
        return ()
    least, radius = bounds.without_budgets, bounds.expert_radius
    detail = (
        f"every policy has a gap of {least:.4g} or more on the data, but a policy of this world "
        f"that made them would have at most {radius:.4g}"
        if least > radius
        else f"{max(least, 0.0):.4g} from the data is possible, {radius:.4g} is to be expected"
    )
    verdict = Verdict.FAILED if least > radius else Verdict.TESTED
    name = "a policy of this world can have made the demonstrations"
    return (Premise(name, verdict, detail, level),)
