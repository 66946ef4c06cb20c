"""`learn`: from a world, costs and demonstrations to a policy with its certificate.

The only module that sees both solvers and certificates. The exact program is used where it is
quick, beyond that the reduced program over default features; either policy is certified alike.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module

from journeyman import features
from journeyman.certificate import Certificate, certify
from journeyman.certificate.expert import TargetChoice, choose_target
from journeyman.certificate.saving import save_run
from journeyman.costs import CostBasis, CostClass
from journeyman.demonstrations import Demonstrations, ExpertExpectation
from journeyman.errors import InvalidProblem
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship, Budget
from journeyman.progress import Observer
from journeyman.solvers import Answer, Solver, solve
from journeyman.solvers.default_choice import solver_for
from journeyman.storage import PathLike
from journeyman.world import World

EXACT_UP_TO = 1_000_000
"""State-action pairs up to which the exact program takes seconds to a minute."""
MARGINS = (1.0, 1.1, 1.25, 1.5, 2.0)
"""Times the slack of a budget's bound that its limit is lowered by, one try after the other: a
policy that spends less may be known less well."""


@dataclass(frozen=True, eq=False)
class Apprentice:
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
        said = self.certificate.summary()
        return said if self.target is None else f"{said} Target: {self.target.reason}."

    def save(self, directory: PathLike) -> None:
        """Write policy, certificate and all they rest on into a directory that `jm.audit` reads.

        The trace of bounds and the recovered costs go with them, if the solver left any.
        """
        save_run(
            self.certificate, directory, seeds={"solver": self.seed},
            bounds_trace=self.answer.bounds_trace, recovered=self.answer.recovered,
        )  # fmt: skip

    def report(self, path: PathLike) -> None:
        """Write all that is known as one self-contained HTML page (`jm.report.write_report`)."""
        import_module("journeyman.report").write_report(self, path)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return str(import_module("journeyman.report").as_html(self))

    def __repr__(self) -> str:
        return f"Apprentice({self.answer.engine}; {self.certificate!r})"


def learn(
    world: World,
    basis: CostBasis,
    expert: Demonstrations | ExpertExpectation,
    *,
    cost_class: CostClass | None = None,
    constraints: Iterable[Budget] | Budget = (),
    solver: Solver | None = None,
    failure_probability: float = 0.05,
    keep_budgets: bool = True,
    seed: int = 0,
    observer: Observer | None = None,
) -> Apprentice:
    """Learn from an expert and certify the result.

    From demonstrations the target is chosen by the rule of `certificate.target_choice`: the
    estimate of least variance (`Blend`), unless another one lowers the certified bound by more than
    5 % and to less than half of the trivial bound. `Apprentice.target` says which and why. Radii of
    certificates hold for every policy, so this choice may look at the data. An `ExpertExpectation`
    is taken as it is.

    Args:
        world, basis, expert, cost_class, constraints: the problem, as for `Apprenticeship`.
        solver: by default the exact program, or the reduced one in larger worlds.
        failure_probability: of the certificate.
        keep_budgets: lower the limits until the certificate shows that the given ones are kept;
            where that cannot be reached, the last policy is returned and its certificate says so.
        seed, observer: as for `solve`.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=2000, horizon=150, seed=0)
    >>> apprentice = learn(world, basis, demos)
    >>> apprentice.certificate.valid
    True
    """
    problem = Apprenticeship(world, basis, expert, cost_class, constraints)
    target = None
    if isinstance(expert, Demonstrations):
        target = choose_target(problem, failure_probability)
        problem = Apprenticeship(world, basis, target.expectation, cost_class, problem.constraints)
    chosen = default_solver(problem) if solver is None else solver
    answer = solve(problem, chosen, seed=seed, observer=observer)
    certificate = certify(problem, answer, failure_probability)
    for margin in MARGINS if keep_budgets else ():
        if all(budget.is_kept for budget in certificate.budgets):
            break
        retried = solve(
            tightened(problem, certificate, margin), chosen, seed=seed, observer=observer
        )
        if retried.solution is None:
            break
        answer, certificate = retried, certify(problem, retried, failure_probability)
    return Apprentice(problem, answer, certificate, seed, target)


def tightened(
    problem: Apprenticeship, certificate: Certificate, margin: float = 1.0
) -> Apprenticeship:
    """The problem with each limit lowered by `margin` times the slack of the budget's bound."""
    lowered = [
        Budget(cost=one.cost, at_most=one.at_most - margin * known.slack, name=one.name)
        for one, known in zip(problem.constraints, certificate.budgets, strict=True)
    ]
    return Apprenticeship(
        problem.world, problem.basis, problem.expectation, problem.cost_class, lowered
    )


def default_solver(problem: Apprenticeship) -> Solver:
    """The exact program where it is quick, otherwise the reduced one over default features."""
    if problem.world.num_pairs <= EXACT_UP_TO:
        return solver_for(problem)[0]
    from journeyman.solvers.reduced.reduced_program import ReducedProgram

    if problem.demonstrations is None:
        raise InvalidProblem(
            f"{problem.world.num_pairs} pairs are many for the exact program, and there are no "
            "demonstrations to make features from",
            "Give a solver, for example ReducedProgram(features) or LinearProgram()",
        )
    return ReducedProgram(features.partition(problem.world, problem.demonstrations))
