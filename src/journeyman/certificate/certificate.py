"""What is known about a policy's gap, figure by figure.

    gap(policy) = max over the cost class of (policy's cost - expert's cost)  <=  bound

with probability 1 - failure_probability over the demonstrations (and over whatever else was drawn),
provided the premises hold. A premise that failed makes the bound the trivial one, which always
holds.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from journeyman.arrays import FloatArray
from journeyman.certificate.gap_bound import Combination, GapBound
from journeyman.certificate.intervals import Interval
from journeyman.certificate.lower_bounds import LowerBounds, ReducedBounds
from journeyman.certificate.premises import Premise
from journeyman.certificate.terms import Term
from journeyman.errors import NotCertified
from journeyman.policy import Policy
from journeyman.problem import Program, Witness
from journeyman.problem.trivial import ProvenRanges
from journeyman.storage import PathLike

if TYPE_CHECKING:
    from journeyman.certificate.sampled_rows import SampledRows


@dataclass(frozen=True)
class BudgetCertificate:
    """What is known about one budget: <mu, d> <= spent, by the laws of the world or, where these
    were estimated from counts, with probability 1 - failure_probability."""

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
        """By how much the bound on the spending exceeds the figure of the evaluation."""
        return self.spent - self.terms[0].value


@dataclass(frozen=True, eq=False)
class Certificate(GapBound):
    """An upper bound on the true gap of a policy, a lower bound on any policy's, and their grounds.

    `bound` is the figure to rely on; `combinations` lists every way it was sought, the best first.
    """

    problem: Program
    policy: Policy
    failure_probability: float
    combinations: tuple[Combination, ...]
    trivial_bound: float
    gap_on_data: float
    """The policy's gap to the target of the problem, by exact evaluation. So are the budgets and
    the apprentice's intervals, also where the bound comes from rollouts or sampled rows."""
    lower_bounds: LowerBounds
    premises: tuple[Premise, ...]
    budgets: tuple[BudgetCertificate, ...]
    expert_intervals: tuple[Interval, ...]
    apprentice_intervals: tuple[Interval, ...]
    expectations: FloatArray
    """The policy's expectation of every cost."""
    witnesses: tuple[Witness, ...]
    """Dual points that prove the lower bounds, the best on the data first."""
    measure: FloatArray | None
    """The vector over pairs behind the kinds A, B, B' and C, where they were certified."""
    least_possible: float = 0.0
    """What the share is measured from: zero or, for a known cost, the least that any policy has."""
    ranges: ProvenRanges | None = None
    """What proves the trivial bound beyond bounded costs, where more is known."""
    reduced: ReducedBounds | None = None
    """For an answer over features, what the best coefficients could reach."""

    @property
    def witness(self) -> Witness:
        """The dual point behind the lower bound on the data."""
        return self.witnesses[0]

    @property
    def optimality_gap(self) -> float:
        """By how much the policy can be worse on the data than the best one there is."""
        return self.gap_on_data - self.lower_bound

    @property
    def lower_bound(self) -> float:
        """No policy within the budgets has a smaller gap on the data. Like `gap_on_data` it is
        about the world as given: in an estimated world about the model, its error not allowed for.
        """
        return self.lower_bounds.on_data

    @property
    def true_lower_bound(self) -> float:
        """No policy within the budgets has a smaller gap to the true expert, with the stated
        probability (a statement of its own). It allows for the errors of sampling and model."""
        return self.lower_bounds.true

    @property
    def alarm(self) -> bool:
        """Whether the data refute the model or the independence of the demonstrations."""
        return self.lower_bounds.without_budgets > self.lower_bounds.expert_radius

    @property
    def _num_states(self) -> int:
        return self.problem.world.num_states

    def require(self, gap: float) -> "Certificate":
        """This certificate, or `NotCertified` when it does not show a gap of at most `gap`."""
        self._require_premises()
        broken = [budget for budget in self.budgets if not budget.is_kept]
        if broken:
            raise NotCertified(
                "; ".join(
                    f"the budget {budget.name!r} may be spent up to {budget.spent:.6g}"
                    f"{budget.chance}, by {budget.spent - budget.limit:.2g} more than allowed"
                    for budget in broken
                )
                + ". learn(..., keep_budgets=True) lowers limits until the given ones are kept"
            )
        self._require_bound(gap)
        return self

    def advice(self) -> str:
        """What the bound is dominated by and, in numbers, what would halve it."""
        from journeyman.certificate.advice import advice

        return advice(self)

    def summary(self) -> str:
        """One sentence."""
        from journeyman.certificate.presentation import summary

        return summary(self)

    def table(self) -> str:
        """Terms, alternatives, premises and budgets as text."""
        from journeyman.certificate.presentation import table

        return table(self)

    def save(self, directory: PathLike, *, evaluation: "SampledRows | None" = None) -> None:
        """Write the certificate and all it rests on into a directory that `jm.audit` reads.

        A certificate from sampled rows needs the `evaluation` that `certify` was given.
        """
        from journeyman.certificate.dossier import save_run

        save_run(self, directory, seeds={"solver": None}, evaluation=evaluation)

    def __repr__(self) -> str:
        state = "" if self.valid else "NOT VALID, "
        chance = f" with probability {1 - self.failure_probability:g}" if self.valid else ""
        strength = f", {self.strength}" if self.strength else ""
        there = " in the model" if self.problem.world.is_estimated else ""
        what = "cost" if self.known_cost else "gap"
        where = "cost" if self.known_cost else "data"
        broken = sum(not budget.is_kept for budget in self.budgets)
        budgets = f", {broken} of {len(self.budgets)} budgets NOT certified" if broken else ""
        return (
            f"Certificate({state}{what} <= {self.bound:.6g}{chance}{strength}{budgets}; trivial "
            f"bound {self.trivial_bound:.6g}, lower bound on the {where} {self.lower_bound:.6g}"
            f"{there})"
        )
