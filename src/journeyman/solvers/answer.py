"""What a solver returns."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from journeyman.arrays import FloatArray, read_only
from journeyman.errors import NoSolution
from journeyman.policy import Occupancy, Policy, occupancy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem import Apprenticeship, Witness, lower_bound
from journeyman.solvers.status import Status

if TYPE_CHECKING:
    from journeyman.solvers.reduced.descent import Optimisation
    from journeyman.solvers.reduced.solution import ReducedSolution


# What a method has spent, in the units in which methods are compared.


@dataclass(frozen=True)
class Work:
    """Counts of a run. Checks made afterwards for the answer's bounds are not among them."""

    iterations: int = 0
    forward_solves: int = 0
    """Optimal policies of a known cost that were planned; soft-optimal ones count too."""
    environment_steps: int = 0
    """Transitions that were drawn from the world."""
    expert_queries: int = 0
    """States in which the expert was asked what to do, beyond the demonstrations."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy and a dual point with the figures that follow from them, recomputed from the data.

    `value` is the objective at the policy by exact evaluation, `lower_bound` what no policy within
    the budgets can go below. Neither rests on what an engine said about itself.
    """

    policy: Policy
    occupancy: Occupancy
    witness: Witness
    value: float
    lower_bound: float
    overspending: FloatArray
    """<mu, d_j> - b_j per budget; positive means broken."""

    @classmethod
    def of(cls, problem: Apprenticeship, policy: Policy, witness: Witness) -> "Solution":
        visits = occupancy(problem.world, policy)
        return cls(
            policy, visits, witness, problem.gap(visits), lower_bound(problem, witness),
            read_only(problem.overspending(visits.measure)),
        )  # fmt: skip


def total_surplus(problem: Apprenticeship, solution: Solution) -> float:
    """How much less the policy costs than the target, summed over scaled costs."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    return -float(scale @ problem.difference(solution.occupancy.measure))


@dataclass(frozen=True, eq=False)
class Relaxation:
    """How far budgets are from possible.

    `increase` minimises sum_j t_j (1 - discount)/(max d_j - min d_j) over increases t >= 0 of the
    limits; `least` is for each budget the smallest limit that is possible while the others are
    kept (infinite when the others exclude each other, NaN when it was not found); `prices` prove
    that the budgets exclude each other (`infeasibility_margin`); `policy` keeps the increased
    limits.
    """

    names: tuple[str, ...]
    increase: FloatArray
    least: FloatArray
    prices: FloatArray
    policy: Policy

    def __str__(self) -> str:
        return "; ".join(
            f"{name!r} would have to give way by {more:.6g} (alone, {least:.6g} is possible)"
            for name, more, least in zip(self.names, self.increase, self.least, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Answer:
    """The outcome of `jm.solve`. Asking an answer without a solution for its policy raises."""

    problem: Apprenticeship
    status: Status
    engine: str
    """The engine that really ran, with its version."""
    solution: Solution | None
    relaxation: Relaxation | None = None
    reduced: "ReducedSolution | None" = None
    """For solvers over features: coefficients, loss and the bound on it."""
    optimisation: "Optimisation | None" = None
    """For stochastic methods: the trace, and the bound in probability on the error."""
    bounds_trace: FloatArray | None = None
    """For `ColumnGeneration`: seconds, lower and upper bound after every call (calls x 3)."""
    total_surplus: float | None = None
    """For `Simplex`: how much less the policy costs than the expert, summed over scaled costs."""
    work: Work | None = None
    """For the classic methods: iterations, forward solves, drawn steps, questions to the expert."""
    mixture: MixturePolicy | None = None
    """For methods that mix policies: the mixture whose stationary equivalent `policy` is."""
    recovered: FloatArray | None = None
    """For methods with a cost of their own (inferred from the expert, most separating, or what a
    discriminator has learned): its weights, in the method's own scale."""
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    log: str = field(default="", repr=False)

    @property
    def policy(self) -> Policy:
        return self._solution.policy

    @property
    def occupancy(self) -> Occupancy:
        return self._solution.occupancy

    @property
    def witness(self) -> Witness:
        return self._solution.witness

    @property
    def cost_weights(self) -> FloatArray:
        """The method's own cost where it has one (`recovered`); otherwise the one that separates
        best. At an optimum no policy beats this one under the latter (`witness.cost_weights`).
        """
        if self.recovered is not None:
            return self.recovered
        return self._solution.witness.cost_weights

    @property
    def value(self) -> float:
        """The objective at the policy: for an `Apprenticeship` its gap on the data."""
        return self._solution.value

    @property
    def lower_bound(self) -> float:
        """No policy within the budgets has a smaller value. Both are about the world as given: in
        an estimated world about the model, whatever its error."""
        return self._solution.lower_bound

    @property
    def overspending(self) -> FloatArray:
        return self._solution.overspending

    @property
    def _solution(self) -> Solution:
        if self.solution is None:
            why = f"{self.status.name}: {self.status.message}; {self.status.remedy}"
            raise NoSolution(why if self.relaxation is None else f"{why}. {self.relaxation}")
        return self.solution

    @property
    def advice(self) -> str:
        """What to change where the method's own figures show that it has failed; else empty."""
        return "" if self.reduced is None else self.reduced.advice

    def __repr__(self) -> str:
        there = " in the model" if self.problem.world.is_estimated else ""
        figures = (
            f"value {self.value:.6g}, lower bound {self.lower_bound:.6g}{there}"
            if self.solution is not None
            else f"{self.status.message}: {self.relaxation or 'no relaxation was found'}"
        )
        return (
            f"Answer({self.status.name}: {figures}; {self.engine}, "
            f"build {self.build_seconds:.2g} s, solve {self.solve_seconds:.2g} s)"
            + (f"\n{self.advice}" if self.advice else "")
        )
