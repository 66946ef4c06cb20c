"""`learn`: from a world, costs and demonstrations to a policy with its certificate.

The only module that sees both solvers and certificates. Whatever a policy was found by, it is
certified alike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from journeyman.arrays import require_seconds
from journeyman.certificate import Certificate, Rollouts, SampledRows, certify
from journeyman.certificate.code_references import Reference
from journeyman.certificate.expert_estimates import TargetChoice, choose_target
from journeyman.costs import CostClass
from journeyman.demonstrations import Demonstrations, ExpertExpectation
from journeyman.demonstrations.simulation import Simulator
from journeyman.errors import InvalidInput
from journeyman.lazy import InNotebooks
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship, Budget
from journeyman.problem.apprenticeship import Costs, Expert
from journeyman.problem.expert_premises import ExpertPremise
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.progress import Deadline, Observer, in_time, keeping, say
from journeyman.solvers import Answer, Solver, solve
from journeyman.solvers.solve import Choice, default_solver
from journeyman.storage import PathLike
from journeyman.world.large_world import AnyWorld
from journeyman.world.levels import Level
from journeyman.world.records import Records

if TYPE_CHECKING:
    from journeyman.certificate.consistency import Consistency

MARGINS = (1.0, 1.1, 1.25, 1.5, 2.0)
"""Times the slack of a budget's bound that its limit is lowered by, one try after the other: a
policy that spends less may be known less well."""


@dataclass(frozen=True, eq=False)
class Apprentice(InNotebooks):
    """A policy, how it was found, and what is certified about it."""

    problem: Apprenticeship
    answer: Answer
    certificate: Certificate
    seed: int | None = None
    """Of the solver."""
    target: TargetChoice | None = None
    """Which estimate of the expert the policy was learned from, and why; None where you chose."""

    @property
    def policy(self) -> Policy:
        return self.answer.policy

    def summary(self) -> str:
        """The bound, its probability, the trivial bound and the best possible; then the target."""
        summary = self.certificate.summary()
        return summary if self.target is None else f"{summary} Target: {self.target.reason}."

    def save(
        self, directory: PathLike, *, code: Reference | Sequence[Reference] | None = None
    ) -> None:
        """Write policy, certificate and all they rest on into a directory that `jm.audit` reads.

        The trace of bounds and the recovered costs go with them, if the solver left any. Below the
        explicit level `code` refers to how world, costs, features and policies were made.
        """
        if not self.certificate.is_exact:
            evaluation = self.answer.rollouts
            self.certificate.save(directory, code=code, evaluation=evaluation, seed=self.seed)
            return
        from journeyman.certificate.saving import save_run

        estimate, learned = self.answer.likelihood, self.answer.nonlinear
        save_run(
            self.certificate, directory, seeds={"solver": self.seed},
            bounds_trace=self.answer.bounds_trace, recovered=self.answer.recovered,
            recovered_errors=None if estimate is None else estimate.standard_errors,
            nonlinear=None if learned is None else learned.arrays(),
        )  # fmt: skip

    def report(self, path: PathLike) -> None:
        """Write all that is known as one self-contained HTML page (`jm.report.write_report`)."""
        import_module("journeyman.report").write_report(self, path)

    def __repr__(self) -> str:
        return f"Apprentice({self.answer.engine}; {self.certificate!r})"


def learn(
    world: AnyWorld | Simulator | Records,
    costs: Costs | None,
    expert: Expert,
    *,
    cost_class: CostClass | None = None,
    constraints: Iterable[Budget] | Budget = (),
    expert_is: Iterable[ExpertPremise] | ExpertPremise = (),
    solver: Solver | None = None,
    failure_probability: float = 0.05,
    evaluation: Rollouts | SampledRows | MixtureRollouts | None = None,
    keep_budgets: bool = True,
    seed: int = 0,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    observer: Observer | None = None,
) -> Apprentice:
    """Learn from an expert and certify the result.

    From demonstrations the target is chosen by the rule of `certificate.expert`: the
    estimate of least variance (`Blend`), unless another one lowers the certified bound by more than
    5 % and to less than half of the trivial bound. `Apprentice.target` is which and why. Radii of
    certificates hold for every policy, so this choice may look at the data. An `ExpertExpectation`
    is taken as it is.

    Args:
        world, costs, expert, cost_class, constraints, expert_is: the problem, as for
            `Apprenticeship`.
        solver: by default the exact program in one of its forms; `answer.reason` is why. Below the
            explicit level there is no default, except for records alone.
        failure_probability, evaluation: of the certificate, as for `certify`.
        keep_budgets: lower the limits until the certificate shows that the given ones are kept;
            where that cannot be reached, the last policy is returned and its certificate says so.
        time_limit: seconds for target, solve and certificate together. What there is no time for is
            replaced by what is cheaper or left out; `Apprentice.target`, `answer.status` and
            `certificate.left_out` say so, and all bounds hold.
        seed, memory_limit, observer: as for `solve`.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=2000, horizon=150, seed=0)
    >>> apprentice = learn(world, basis, demos)
    >>> apprentice.certificate.valid
    True
    """
    require_seconds(time_limit, InvalidInput)
    with in_time(time_limit, observer) as deadline:
        say("checking the problem")
        problem = Apprenticeship(world, costs, expert, cost_class, constraints, expert_is)
        target = None
        if isinstance(expert, Demonstrations) and problem.level is Level.EXPLICIT:
            with keeping(TARGET_SHARE):
                target = choose_target(problem, failure_probability)
            problem = Apprenticeship(
                world, problem.costs, target.expectation, problem.cost_class, problem.constraints,
                problem.expert_is,
            )  # fmt: skip
        say("choosing a solver")
        chosen, reason = default_solver(problem) if solver is None else Choice(solver, "")
        work = _Work(
            chosen, seed, memory_limit, failure_probability, evaluation, deadline
        )  # fmt: skip
        answer, certificate = work.done(problem)
        if keep_budgets:
            answer, certificate = work.within_budgets(problem, answer, certificate)
        answer, certificate = work.aimed(problem, answer, certificate)
    answer = replace(answer, reason=reason or answer.reason)
    return Apprentice(problem, answer, certificate, seed, target)


CERTIFYING = 0.15
"""Of the time that is left before a solve, for the certificate of its policy."""
TARGET_SHARE = 0.7
"""Of all time, that the choice of a target leaves to what comes after it."""


@dataclass(frozen=True)
class _Work:
    """Solves and certificates of one call."""

    solver: Any
    seed: int
    memory_limit: float | None
    failure_probability: float
    evaluation: Any
    deadline: Deadline

    def solved(self, problem: Apprenticeship) -> Answer:
        """By the solver's own limit or what the call leaves, whichever comes first."""
        limit, left = self.solver.time_limit, self.deadline.seconds
        if left is not None:
            left = max((1 - CERTIFYING) * left, LEAST_SECONDS)
            limit = left if limit is None else min(limit, left)
        return solve(
            problem, self.solver, seed=self.seed, time_limit=limit, memory_limit=self.memory_limit
        )

    def done(self, problem: Apprenticeship) -> tuple[Answer, Certificate]:
        """A policy and its certificate."""
        answer = self.solved(problem)
        return answer, self.certified(problem, answer)

    def certified(self, problem: Apprenticeship, answer: Answer) -> Certificate:
        return certify(problem, answer, self.failure_probability, evaluation=self.evaluation)

    def within_budgets(
        self, problem: Apprenticeship, answer: Answer, certificate: Certificate
    ) -> tuple[Answer, Certificate]:
        """With limits that are lowered until the certificate shows that the given ones are kept, or
        there is no time."""
        for margin in MARGINS:
            if all(budget.is_kept for budget in certificate.budgets) or self.deadline.must_stop:
                break
            retried = self.solved(tightened(problem, certificate, margin))
            if retried.solution is None:
                break
            answer, certificate = retried, self.certified(problem, retried)
        return answer, certificate

    def aimed(
        self, problem: Apprenticeship, answer: Answer, certificate: Certificate
    ) -> tuple[Answer, Certificate]:
        """The better of this policy and one for what is consistent with a premise."""
        # the smaller of two drawn bounds would not hold as stated
        drawn = self.evaluation is not None
        known = certificate.consistency
        if known is None or certificate.regret is not None or drawn or self.deadline.must_stop:
            return answer, certificate
        aim = aimed(problem, known)
        if aim is None:
            return answer, certificate
        other = self.solved(aim)
        if other.solution is not None:
            found = certify(problem, other, self.failure_probability)
            kept = all(budget.is_kept for budget in found.budgets)
            if kept and found.bound < certificate.bound:
                return other, found
        return answer, certificate


LEAST_SECONDS = 1e-9
"""A solve that has no time left is still asked for a policy."""


def aimed(problem: Apprenticeship, known: "Consistency") -> Apprenticeship | None:
    """The problem with the middle of what is consistent for a target: under a premise about the
    laws of its actions the expert may be known better by them than by its totals."""
    centre = known.centre()
    if centre is None:
        return None
    return Apprenticeship(
        problem.world, problem.costs, ExpertExpectation(centre), problem.cost_class,
        problem.constraints,
    )  # fmt: skip


def tightened(
    problem: Apprenticeship, certificate: Certificate, margin: float = 1.0
) -> Apprenticeship:
    """The problem with each limit lowered by `margin` times the slack of the budget's bound."""
    lowered = [
        Budget(cost=one.cost, at_most=one.at_most - margin * known.slack, name=one.name)
        for one, known in zip(problem.constraints, certificate.budgets, strict=True)
    ]
    return Apprenticeship(
        problem.world, problem.costs, problem.expectation, problem.cost_class, lowered,
        problem.expert_is,
    )  # fmt: skip
