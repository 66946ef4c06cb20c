"""`certify`: from a problem and any policy to a certificate.

    bound = min over evaluations and estimates of
            gap_W(expectations - values) + terms of the evaluation + terms of the estimate

Nothing a solver reported is used: the policy is evaluated again, the expert's expectations are
estimated again from the demonstrations, and a witness only proposes a lower bound that weak duality
makes true. The failure probability is divided between what was estimated: the expert, the rollouts
or sampled rows of the evaluation if there are any, and the transition counts of an estimated world.

An evaluation states the level of the world it needs. At the explicit level the policy is also
evaluated exactly, whichever evaluation the bound rests on, unless that is one of a mixture: for
lower bounds, budgets and intervals. Elsewhere every budget is evaluated like the gap, and all of
them take half of what the evaluation has of the failure probability.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from journeyman.arrays import FloatArray, read_only, real_array, require_seconds
from journeyman.certificate.certificate import Certificate
from journeyman.certificate.concentration import require_probability
from journeyman.certificate.evaluation import (
    BudgetCertificate,
    apprentice_intervals,
    budget_certificates,
    defines,
    exact_evaluation,
    expert_intervals,
    measure_evaluations,
)
from journeyman.certificate.expert_estimates import estimates_in_time
from journeyman.certificate.lower_bounds import (
    LowerBounds,
    lower_bounds,
    of_class,
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
from journeyman.certificate.rollouts import MixtureEvaluation, Rollouts
from journeyman.certificate.sampled_rows import SampledRows
from journeyman.certificate.terms import (
    Combination,
    ExpertEstimate,
    PolicyEvaluation,
    Premise,
    PremiseStatus,
    Term,
    refuted,
    total,
)
from journeyman.costs import CostBasis, Simplex
from journeyman.demonstrations import ExpertExpectation
from journeyman.errors import InvalidProblem
from journeyman.execution import Executor
from journeyman.policy import Occupancy, Policy, extract, occupancy
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.policy.observation_policy import Model, ObservationPolicy, acting_model
from journeyman.problem import Apprenticeship, Witness, lower_bound
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.progress import Observer, in_time, keeping, say, whatever_it_takes
from journeyman.world.levels import Level, require_discounted, require_level, require_totals

if TYPE_CHECKING:
    from journeyman.certificate.consistency import Consistency
    from journeyman.certificate.regret import Regret

EVALUATION_SHARE, BOUNDS_SHARE = 0.5, 0.3
"""Of the time there is, that estimates of the expert leave to evaluation and bounds, and plans for
lower bounds to what comes after them."""
STEPS_ROUNDING = 1e-12
"""Relative, of the expected steps of a policy."""
NEARLY = 1e-9
"""A measure whose policy is further off than rounding belongs to another policy."""


class HasPolicy(Protocol):
    """Anything with a policy: an answer of `solve`, or your own."""

    @property
    def policy(self) -> AnyPolicy: ...


def certify(
    problem: Apprenticeship,
    answer: Model | HasPolicy,
    failure_probability: float = 0.05,
    *,
    witness: Witness | None = None,
    measure: FloatArray | None = None,
    evaluation: Rollouts | SampledRows | MixtureRollouts | None = None,
    executor: Executor | None = None,
    time_limit: float | None = None,
    observer: Observer | None = None,
) -> Certificate:
    """What is known about the gap of a policy, wherever it came from.

    Args:
        problem: an `Apprenticeship`, or a `Forward` problem (the gap is then the cost itself).
        answer: a policy, or something that has one. Its `witness`, `reduced` and `rollouts` are
            used if there. Models of other packages are policies too: algorithms and policies of
            Stable-Baselines3 and `imitation`, classifiers with `predict_proba`, functions of
            observations (`policy.observation_policy` says how each is asked).
        failure_probability: with which the bound may be wrong; 0.05 by default.
        witness: a dual point that proposes a lower bound.
        measure: the vector over pairs that defines the policy, for the kinds A, B, B' and C.
        evaluation: `Rollouts` or `SampledRows` instead of exact evaluation. It takes half of what
            the expert would have of the failure probability, or all of it when the expert's
            expectations are exact. Of several policies compared by it each needs a part of its own:
            divide `failure_probability` by their number. Below the explicit level it must be given,
            unless the answer has one (that of `PolicyMixture` has). For a mixture it may be
            `MixtureRollouts`.
        executor: runs the tasks of an evaluation; no number depends on it.
        time_limit: seconds. Estimates of the expert that there is no time for are left out
            (`Certificate.left_out`), and plans for lower bounds end early: all bounds hold, and are
            less sharp than they could be. The policy itself is evaluated whatever it takes.
        observer: gets progress, as for `solve`.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=2000, horizon=150, seed=0)
    >>> problem = jm.Apprenticeship(world, basis, demos)
    >>> certificate = certify(problem, jm.clone(demos, world))
    >>> certificate.valid, certificate.bound < 0.1 * certificate.trivial_bound
    (True, True)
    """
    _require_problem(problem)
    delta = require_probability(failure_probability)
    require_seconds(time_limit, InvalidProblem)
    with each_warning_once(), in_time(time_limit, observer):
        problem = problem.in_time()
        return _certificate(problem, answer, delta, witness, measure, evaluation, executor)


@contextmanager
def each_warning_once() -> Iterator[None]:
    """A model is asked thousands of times: what it warns of at one place is shown once, at the
    end."""
    found: dict[tuple[Any, ...], Warning | str] = {}

    def keep(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any
    ) -> None:
        found.setdefault((category, filename, lineno), message)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = keep  # type: ignore[assignment]
            yield
    finally:
        for (category, filename, lineno), message in found.items():
            warnings.warn_explicit(str(message), category, filename, lineno)


def _certificate(
    problem: Apprenticeship,
    answer: Any,
    delta: float,
    witness: Witness | None,
    measure: FloatArray | None,
    evaluation: Any,
    executor: Executor | None,
) -> Certificate:
    """`certify`, of arguments that were checked."""
    if problem.level is Level.RECORDED:
        _refuse_more(witness=witness, measure=measure, evaluation=evaluation)
        from journeyman.certificate.agreement import recorded_certificate

        return recorded_certificate(problem, answer, delta)
    given = getattr(answer, "rollouts", None) if evaluation is None else evaluation
    exactly = problem.level is Level.EXPLICIT and not isinstance(given, MixtureRollouts)
    evaluation = evaluation if exactly else given
    policy = _table(problem, answer) if exactly else _acting(answer)
    error = model_error(problem, delta)
    remaining = delta - (0.0 if error is None else error.failure_probability)
    if evaluation is None:
        require_level(
            problem, Level.EXPLICIT, "exact evaluation, which is certify's without evaluation=,"
        )
        shares = remaining, 0.0
    else:
        shares = (0.0, remaining) if problem.expectation.is_declared else (remaining / 2,) * 2
    laws = _share_of_laws(problem) * shares[0] if exactly else 0.0
    say("estimates of what the expert costs")
    with keeping(EVALUATION_SHARE):
        estimates, left_out = estimates_in_time(problem, shares[0] - laws)
    if not exactly:
        part = shares[1] / 2 if problem.constraints else 0.0
        evaluations = _sampled(problem, policy, evaluation, measure, shares[1] - part, executor)
        budgets, broken = _sampled_budgets(problem, policy, evaluation, part, executor)
        premises = (*_premises(problem, evaluations), *broken)
        trivial = true_world_trivial_bound(problem, error, valid=not refuted(premises))
        return Certificate(
            problem, cast(Policy, policy), delta, _combinations(problem, evaluations, estimates),
            trivial.value, premises, of_class(problem), evaluations[0].expectations, trivial.least,
            budgets=budgets,
        )  # fmt: skip
    assert isinstance(policy, Policy)
    say("what the policy does and costs")
    visits, vector = occupancy(problem.world, policy), None
    if problem.world.has_goal:
        _require_exact(problem, visits, evaluation)
    if evaluation is not None:
        require_totals(problem.world, "an evaluation by draws")
    if evaluation is None:
        goal = problem.world.has_goal
        vector = None if goal else _measure(problem, policy, answer, measure)
        evaluations = [exact_evaluation(problem, visits)]
        evaluations += [] if vector is None else measure_evaluations(problem, policy, vector)
    else:
        evaluations = _sampled(problem, policy, evaluation, measure, shares[1], executor)
    with keeping(BOUNDS_SHARE):
        witnesses = witnesses_of(problem, visits, answer, witness, estimates)
    bounds = lower_bounds(problem, witnesses, estimates, error)
    premises = (*_premises(problem, evaluations), *_alarm(problem, bounds, delta))
    trivial = true_world_trivial_bound(problem, error, valid=not refuted(premises))
    own = exact_evaluation(problem, visits)
    with whatever_it_takes():
        regret = _regret(problem, own, estimates, premises, delta, trivial.value)
        consistent = _consistency(problem, laws)
    if error is not None:
        evaluations = in_the_true_world(problem, policy, visits, evaluations, error)
    return Certificate(
        problem=problem,
        policy=policy,
        failure_probability=delta,
        combinations=_combinations(problem, evaluations, estimates, error, consistent),
        trivial_bound=trivial.value,
        premises=premises,
        lower_bounds=bounds,
        expectations=visits.expectations(problem.basis),
        least_possible=trivial.least,
        gap_on_data=problem.gap(visits),
        budgets=budget_certificates(
            problem,
            policy,
            visits,
            model_terms_of_budgets(problem, policy, visits, error),
            0.0 if error is None else error.failure_probability,
        ),
        expert_intervals=expert_intervals(problem, delta),
        apprentice_intervals=apprentice_intervals(problem, visits, error),
        witnesses=tuple(sorted(witnesses, key=lambda one: -lower_bound(problem, one))),
        measure=vector,
        ranges=trivial.ranges,
        reduced=reduced_bounds(answer),
        consistency=consistent,
        regret=regret,
        left_out=left_out,
    )


def _require_exact(problem: Apprenticeship, visits: Occupancy, evaluation: Any) -> None:
    """What is certified with discount 1: exact evaluation in an exact world, within M steps."""
    if evaluation is not None or problem.world.is_estimated:
        what = "an evaluation by draws" if evaluation is not None else "the error of a model"
        require_discounted(problem.world, what)
    most = problem.world.effective_horizon
    if visits.steps > most * (1 + STEPS_ROUNDING):
        raise InvalidProblem(
            f"the policy expects {visits.steps:.6g} steps, more than the {most:.6g} that are "
            "allowed for, so that nothing bounds its gap to policies that keep to them",
            "Give the world a larger steps_at_most",
        )


def _refuse_more(**given: Any) -> None:
    """Where there are records alone, a policy is compared with them and with nothing else."""
    for name, value in given.items():
        if value is not None:
            raise InvalidProblem(
                f"{name} is given, and of this world nothing is known but records",
                f"Leave {name} out",
            )


def _require_problem(problem: Any) -> None:
    if not isinstance(problem, Apprenticeship):
        raise InvalidProblem(
            f"a {type(problem).__name__} is not a problem",
            "Give certify(problem, policy): an Apprenticeship or a Forward, then a policy",
        )


def _table(problem: Apprenticeship, answer: Any) -> Policy:
    """The policy of an explicit world, with its probabilities for every pair."""
    acts = any(callable(getattr(answer, way, None)) for way in ACTING)
    policy: Any = answer if isinstance(answer, Policy) or acts else getattr(answer, "policy", None)
    if isinstance(policy, Policy):
        return policy.fitted(problem.world)
    able = any(callable(getattr(policy, way, None)) for way in ACTING)
    if not able or isinstance(policy, MixturePolicy):
        raise InvalidProblem(
            f"there is no policy in a {type(answer).__name__}",
            "Give jm.Policy(probabilities), the answer of jm.solve, or a model of another package",
        )
    return ObservationPolicy(policy).in_world(problem.world)


ACTING = ("sample", "predict", "predict_proba", "probabilities", "__call__")


def _acting(answer: Any) -> AnyPolicy:
    """What is a policy itself, whatever it is made of, or the policy of an answer."""
    acts = any(callable(getattr(answer, name, None)) for name in ACTING)
    policy: AnyPolicy = acting_model(answer if acts else getattr(answer, "policy", answer))
    return policy


def _sampled(
    problem: Apprenticeship,
    policy: AnyPolicy,
    evaluation: Any,
    measure: FloatArray | None,
    delta: float,
    executor: Executor | None,
) -> list[PolicyEvaluation]:
    """Kind E, or A and B from sampled rows."""
    way = MixtureEvaluation(evaluation) if isinstance(evaluation, MixtureRollouts) else evaluation
    if not isinstance(way, Rollouts | SampledRows | MixtureEvaluation):
        raise InvalidProblem(
            f"evaluation is {evaluation!r}",
            "Give Rollouts(...), SampledRows(...), for a mixture MixtureRollouts(...), or None",
        )
    if measure is not None:
        raise InvalidProblem(
            "both measure and evaluation are given",
            "Give the measure alone for exact evaluation, SampledRows(...) alone for sampled rows",
        )
    require_level(problem, way.needs, f"the evaluation {type(evaluation).__name__}")
    return list(way.evaluate(problem, policy, delta, executor))


def _sampled_budgets(
    problem: Apprenticeship,
    policy: AnyPolicy,
    evaluation: Any,
    delta: float,
    executor: Executor | None,
) -> tuple[tuple[BudgetCertificate, ...], list[Premise]]:
    """What each budget costs by an evaluation of its own, and premises that failed there.

    A budget is a problem with that one cost and target zero: <mu, d> is its gap, so whatever bounds
    gaps bounds what is spent. The budgets share delta evenly.
    """
    found: list[BudgetCertificate] = []
    broken: list[Premise] = []
    for budget in problem.constraints:
        costs = CostBasis(budget.on(problem.world)) if budget.function is None else budget.function
        alone = Apprenticeship(problem.world, costs, ExpertExpectation([0.0]), Simplex())
        share = delta / len(problem.constraints)
        (best, *_) = _sampled(alone, policy, evaluation, None, share, executor)
        spent = Term("spent", float(best.expectations[0]), "<mu, d>", f"evaluation {best.kind}")
        terms = (spent, *best.terms)
        found.append(BudgetCertificate(budget.name, total(terms), budget.at_most, terms, delta))
        broken += refuted(best.premises)
    return tuple(found), broken


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
                "Certify jm.policy.extract(world, measure), or leave the measure out",
            )
    elif reduced is not None:
        measure = read_only(reduced.surrogate.reduced.features.measure(reduced.coefficients))
    else:
        return None
    return measure if defines(measure, policy, problem) else None


def _combinations(
    problem: Apprenticeship,
    evaluations: list[PolicyEvaluation],
    estimates: tuple[ExpertEstimate, ...],
    error: ModelError | None = None,
    consistent: "Consistency | None" = None,
) -> tuple[Combination, ...]:
    """Every evaluation with every estimate, and with what is consistent, the smallest bound
    first."""
    found = []
    name = "expected cost" if problem.has_known_cost else "gap to the estimate"
    for evaluation in evaluations:
        for estimate in estimates:
            gap = problem.cost_class.gap(evaluation.expectations - estimate.values)
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
        if consistent is not None:
            from journeyman.certificate.consistency import consistent_combination

            found.append(consistent_combination(problem, evaluation, estimates, consistent))
    return tuple(sorted(found, key=lambda combination: combination.bound))


def _premises(problem: Apprenticeship, evaluations: list[PolicyEvaluation]) -> tuple[Premise, ...]:
    declared: tuple[Premise, ...] = ()
    if problem.expert_is:
        from journeyman.certificate.consistency import consistency_premises

        declared = consistency_premises(problem)
    return (
        *expert_premises(problem), *world_premises(problem), *declared, *evaluations[0].premises,
    )  # fmt: skip


# What follows from premises about the expert. Its modules are imported where some are declared.


def _share_of_laws(problem: Apprenticeship) -> float:
    if not problem.expert_is:
        return 0.0
    from journeyman.certificate.consistency import part_for_laws

    return part_for_laws(problem)


def _consistency(problem: Apprenticeship, failure_probability: float) -> "Consistency | None":
    if not problem.expert_is:
        return None
    from journeyman.certificate.consistency import consistency

    return consistency(problem, failure_probability)


def _regret(
    problem: Apprenticeship,
    evaluation: PolicyEvaluation,
    estimates: tuple[ExpertEstimate, ...],
    premises: tuple[Premise, ...],
    failure_probability: float,
    possible: float,
) -> "Regret | None":
    if not problem.expert_is:
        return None
    from journeyman.certificate.regret import regret_of

    return regret_of(
        problem, evaluation, estimates, premises, failure_probability, possible=possible
    )


def _alarm(problem: Apprenticeship, bounds: LowerBounds, level: float) -> tuple[Premise, ...]:
    """Whether the lower bound without budgets refutes the data."""
    if problem.expectation.is_declared:
        return ()
    least, radius = bounds.without_budgets, bounds.expert_radius
    detail = (
        f"every policy has a gap of {least:.4g} or more on the data, but a policy of this world "
        f"that made them would have at most {radius:.4g}"
        if least > radius
        else f"{max(least, 0.0):.4g} from the data is possible, {radius:.4g} is to be expected"
    )
    status = PremiseStatus.FAILED if least > radius else PremiseStatus.TESTED
    name = "a policy of this world can have made the demonstrations"
    return (Premise(name, status, detail, level),)
