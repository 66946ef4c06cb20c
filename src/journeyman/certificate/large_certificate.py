"""Certificates in worlds too large to enumerate.

    gap(policy) <= gap_W(expectations - values) + terms of the evaluation + terms of the estimate

as everywhere, from walks of the policy (kind E) or fresh rows of its features (kind A), and from
the plain mean of the demonstrations. No lower bound is sought beyond what the class itself says:
it would need values in every state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.arrays import FloatArray
from journeyman.certificate.certificate import GapBound
from journeyman.certificate.concentration import require_probability
from journeyman.certificate.expert import PLAIN_SHARES, PlainMean
from journeyman.certificate.premises import doubt_of_copies, in_words, sampled_expert_premises
from journeyman.certificate.presentation import legend
from journeyman.certificate.rollouts import Rollouts, mixed, walked
from journeyman.certificate.sampled_rows import LargeRows, from_rows
from journeyman.certificate.terms import (
    Combination,
    Estimate,
    Evaluation,
    Premise,
    Term,
    refuted,
    total,
)
from journeyman.demonstrations.large_control_variate import discounted_totals
from journeyman.demonstrations.simulation import EpisodeTotals
from journeyman.errors import InvalidProblem
from journeyman.execution import Executor
from journeyman.features.base import LargeFeatures
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.function_policy import FeaturePolicy
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.problem.trivial import plain_bound
from journeyman.storage import PathLike

if TYPE_CHECKING:
    from journeyman.certificate.code_references import Reference


@dataclass(frozen=True, eq=False)
class LargeCertificate(GapBound):
    """An upper bound on the true gap of a policy in a large world, and its grounds."""

    problem: Apprenticeship
    policy: AnyPolicy
    failure_probability: float
    combinations: tuple[Combination, ...]
    trivial_bound: float
    premises: tuple[Premise, ...]

    @property
    def lower_bound(self) -> float:
        """No policy has a smaller gap: zero where zero cost is in the class, else the trivial."""
        return (
            0.0
            if self.problem.cost_class.contains_zero
            else -plain_bound(self.problem, self._exact_target, -1.0)
        )

    @property
    def _exact_target(self) -> FloatArray | None:
        return self.problem.target if self.problem.expectation.is_declared else None

    def require(self, gap: float) -> "LargeCertificate":
        """This certificate, or `NotCertified` when it does not show a gap of at most `gap`."""
        self._require_premises()
        self._require_bound(gap)
        return self

    def advice(self) -> str:
        """What the bound is dominated by."""
        largest = max(self.terms, key=lambda term: term.value)
        return f"the largest term is {largest.name}, {largest.value:.4g} [{largest.source}]"

    def summary(self) -> str:
        """The bound and its probability, what to compare it with, and what it rests on."""
        if not self.valid:
            failed = "; ".join(one.name for one in refuted(self.premises))
            return (
                f"Nothing is certified because a premise failed ({failed}); only the trivial bound "
                f"{self.trivial_bound:.4g} holds."
            )
        demos = getattr(self.problem, "demonstrations", None)
        return (
            f"With probability {1 - self.failure_probability:.4g} the policy costs at most "
            f"{self.bound:.4g} more than the expert under every cost of the class "
            f"({self.normalised_bound:.4g} per step), {self.worth()}. "
            + " ".join([in_words(self.premises), *doubt_of_copies(self.premises, demos)])
        )

    def table(self) -> str:
        """Terms, alternatives and premises as text."""
        strength = f"   {self.strength}" if self.strength else ""
        lines = [
            f"{'upper bound on the gap':<30}{self.bound:>12.6g}   per step "
            f"{self.normalised_bound:.6g}{strength}",
            *(
                f"  {term.name:<28}{term.value:>12.6g}   {term.formula}  [{term.source}]"
                for term in self.terms
            ),
            f"{'trivial bound':<30}{self.trivial_bound:>12.6g}   no policy has a larger gap",
            f"{'failure probability':<30}{self.failure_probability:>12.6g}",
            "",
            "ways to bound it (evaluation, expert)",
            *(f"  {way.kind + ', ' + way.estimate:<44}{way.bound:>12.6g}"
              for way in self.combinations),
            "",
            "premises",
            *(f"  {one.verdict.name.lower():<10}{one.name}: {one.detail}" for one in self.premises),
            *legend(self.terms, [way.kind for way in self.combinations]),
        ]  # fmt: skip
        return "\n".join(lines)

    def save(
        self,
        directory: PathLike,
        *,
        code: "Reference | Sequence[Reference]",
        evaluation: MixtureRollouts | None = None,
        seed: int | None = None,
    ) -> None:
        """Write the certificate and all it rests on into a directory that `jm.audit` reads.

        `code` tells by reference how world, costs, features and policies were made. Rollouts of
        mixtures in rounds need the `evaluation` that `certify` was given; `seed` is the solver's.
        """
        from journeyman.certificate.large_dossier import save_large_run

        save_large_run(self, directory, code=code, evaluation=evaluation, seed=seed)

    def __repr__(self) -> str:
        state = "" if self.valid else "NOT VALID, "
        strength = f", {self.strength}" if self.strength else ""
        return (
            f"LargeCertificate({state}gap <= {self.bound:.6g} with probability "
            f"{1 - self.failure_probability:g}{strength}; trivial bound {self.trivial_bound:.6g})"
        )


def certify_large(
    problem: Apprenticeship,
    answer: Any,
    failure_probability: float,
    evaluation: Rollouts | LargeRows | MixtureRollouts | None,
    executor: Executor | None = None,
) -> LargeCertificate:
    """What is known about the gap of a policy; `certify` comes here for large worlds."""
    policy = answer if can_act(answer) else getattr(answer, "policy", answer)
    if evaluation is None:
        evaluation = getattr(answer, "rollouts", None)
    delta = require_probability(failure_probability)
    declared_expert = problem.expectation.is_declared
    share = delta if declared_expert else delta / 2
    found = _evaluation(problem, policy, evaluation, share, executor)
    estimates = expert_estimates(problem, delta / 2)
    return LargeCertificate(
        problem, policy, delta, combinations(problem, found, estimates),
        problem.trivial_bound,
        (*sampled_expert_premises(problem), *found.premises),
    )  # fmt: skip


def can_act(answer: Any) -> bool:
    """Whether it is a policy itself, whatever policy it may be made of."""
    ways = (getattr(answer, name, None) for name in ("sample", "predict", "__call__"))
    return any(callable(way) for way in ways)


def expert_estimates(problem: Apprenticeship, delta: float) -> tuple[Estimate, ...]:
    """The plain mean of the demonstrations with two radii, or what was declared."""
    records = records_of(problem)
    if problem.expectation.is_declared or records is None:
        return (Estimate("declared", problem.target, (), 0.0),)
    mean = PlainMean(problem, records.totals, records.unrecorded, "demonstrations")
    independent, adaptive = (part * delta for part in PLAIN_SHARES)
    return mean.independent(independent), mean.adaptive(adaptive)


def records_of(problem: Apprenticeship) -> EpisodeTotals | None:
    """Totals of the demonstrations, added up again where they are there."""
    if not problem.has_states:
        return problem.records
    demos = problem.demonstrations
    if demos is None:
        return None
    totals = discounted_totals(demos, problem.cost_functions, problem.world.discount)
    missing = problem.world.discount**demos.lengths * problem.effective_horizon
    return EpisodeTotals(totals, missing)


def combinations(
    problem: Apprenticeship, evaluation: Evaluation, estimates: tuple[Estimate, ...]
) -> tuple[Combination, ...]:
    """The evaluation with every estimate, the smallest bound first."""
    found = []
    for estimate in estimates:
        gap = problem.cost_class.gap(evaluation.expectations - estimate.values)
        data = Term("gap to the estimate", gap, "gap_W(expectations - values)", estimate.name)
        terms = (data, *evaluation.terms, *estimate.terms)
        found.append(
            Combination(evaluation.kind, estimate.name, terms, total(terms), evaluation.statistics)
        )
    return tuple(sorted(found, key=lambda one: one.bound))


def _evaluation(
    problem: Apprenticeship,
    policy: AnyPolicy,
    evaluation: Rollouts | LargeRows | MixtureRollouts | None,
    delta: float,
    executor: Executor | None,
) -> Evaluation:
    if isinstance(evaluation, Rollouts):
        return walked(problem, policy, evaluation, delta, executor)
    if isinstance(evaluation, MixtureRollouts):
        return mixed(problem, policy, evaluation, delta, executor)
    if isinstance(evaluation, LargeRows) and problem.has_states:
        if not isinstance(policy, FeaturePolicy) or not isinstance(policy.features, LargeFeatures):
            raise InvalidProblem(
                f"a {type(policy).__name__} has no features to draw rows from",
                "Give evaluation=jm.Rollouts(...)",
            )
        if policy.features.world is not problem.world:
            raise InvalidProblem(
                "the policy has features of another world, whose rows prove nothing here",
                "Make the features for problem.world itself, or give evaluation=jm.Rollouts(...)",
            )
        return from_rows(problem, policy, evaluation, delta, executor)
    raise InvalidProblem(
        f"evaluation is {evaluation!r}: a world too large to enumerate allows no exact one",
        "Give evaluation=jm.Rollouts(trajectories=..., horizon=...), jm.LargeRows(...) "
        "or, for a mixture, jm.MixtureRollouts(...)",
    )
