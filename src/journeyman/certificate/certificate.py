"""What is known about a policy's gap, figure by figure.

    gap(policy) = max over the cost class of (policy's cost - expert's cost)  <=  bound

with probability 1 - failure_probability over the demonstrations (and over whatever else was drawn),
provided the premises hold. A premise that failed makes the bound the trivial one, which always
holds.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from journeyman.arrays import FloatArray
from journeyman.certificate.intervals import BudgetCertificate, Interval
from journeyman.certificate.lower_bounds import LowerBounds, ReducedBounds
from journeyman.certificate.terms import Combination, Premise, Term, Verdict, refuted
from journeyman.errors import NotCertified
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship, Witness
from journeyman.problem.trivial import ProvenRanges
from journeyman.storage import PathLike

if TYPE_CHECKING:
    from journeyman.certificate.sampled_rows import SampledRows
    from journeyman.problem.apprenticeship import Apprenticeship


# A bound on a gap with its grounds: what all certificates have in common.
#
# What a bound is worth is its *share* of the trivial bound, the largest gap that is possible at all
# (`problem.trivial`). One that reaches it is *vacuous*, one above half of it *weak*. For a known
# cost the share is that of the way from the least possible total to the largest. Where nothing can
# be chosen that matters, so that the largest and the least agree up to rounding, the share is 0.

WEAK = 0.5
"""Of the trivial bound: a bound above it is called weak."""
ROUNDING_STEPS = 256
"""Operations per step of the horizon: a possible gap below their rounding is none."""
EPSILON = 2.0**-52
NEGLIGIBLE = 1e-10
"""Of 2 N/(1 - discount): less is shown as zero in a sentence."""


class GapBound:
    """Reads the bound off combinations and premises."""

    problem: "Apprenticeship"
    combinations: tuple[Combination, ...]
    trivial_bound: float
    premises: tuple[Premise, ...]
    least_possible: float = 0.0

    @property
    def valid(self) -> bool:
        """Whether no premise has failed."""
        return all(premise.verdict is not Verdict.FAILED for premise in self.premises)

    @property
    def best(self) -> Combination:
        return self.combinations[0]

    @property
    def bound(self) -> float:
        """The upper bound on the true gap."""
        return min(self.best.bound, self.trivial_bound) if self.valid else self.trivial_bound

    @property
    def terms(self) -> tuple[Term, ...]:
        """What the bound is made of."""
        return self.best.terms

    @property
    def vacuous(self) -> bool:
        """Whether the bound says no more than holds for every policy of the world."""
        return self.bound >= self.trivial_bound and not self._nothing_matters

    @property
    def share(self) -> float:
        """The bound as a share of the trivial bound, between 0 and 1."""
        if self.vacuous or self._nothing_matters:
            return float(self.vacuous)
        zero = self.least_possible if self.known_cost else 0.0
        possible = self.trivial_bound - zero
        share = (self.bound - zero) / possible if possible > 0 else 0.0
        return min(max(share, 0.0), 1.0)

    @property
    def weak(self) -> bool:
        """Whether the bound is above half of the trivial bound; every vacuous one is."""
        return self.share > WEAK

    @property
    def strength(self) -> str:
        """`vacuous`, `weak` or nothing: the word that belongs to the share."""
        return "vacuous" if self.vacuous else "weak" if self.weak else ""

    @property
    def known_cost(self) -> bool:
        """Whether the gap is the expected total of a known cost, so that there is no expert."""
        return self.problem.cost_class.is_known

    def worth(self) -> str:
        """The share in words, and the word that belongs to it."""
        if self._nothing_matters:
            return "under these costs all policies are alike up to rounding"
        if self.known_cost:
            least, most = map(self._shown, (self.least_possible, self.trivial_bound))
            scale = f"the way from the least possible cost {least} to the largest {most}"
        else:
            scale = f"the trivial bound {self.trivial_bound:.4g}, the largest possible gap"
            if self.bound <= 0:
                every = ", and every policy attains it: vacuous" if self.vacuous else ""
                return f"to be compared with {scale}{every}"
        words = {"vacuous": ", and therefore vacuous", "weak": ": a weak bound"}
        return f"which is {percent(self.share)} of {scale}{words.get(self.strength, '')}"

    def _shown(self, value: float) -> str:
        """A figure, zero when it is no more than rounding."""
        return f"{0.0 if abs(value) < NEGLIGIBLE * self.problem.gap_scale else value:.4g}"

    @property
    def _nothing_matters(self) -> bool:
        """Whether the largest and the least possible gap differ by rounding only."""
        steps = ROUNDING_STEPS * self.problem.effective_horizon + self._num_states
        possible = abs(self.trivial_bound - self.least_possible)
        return possible <= steps * EPSILON * self.problem.gap_scale

    @property
    def _num_states(self) -> int:
        """Summands of a total over the starts, where plans were made."""
        return 0

    @property
    def normalised_bound(self) -> float:
        """The bound per step: times 1 - discount."""
        return self.bound / self.problem.effective_horizon

    def _require_premises(self) -> None:
        failed = refuted(self.premises)
        if failed:
            reasons = "; ".join(f"{premise.name}: {premise.detail}" for premise in failed)
            raise NotCertified(f"a premise has failed, so nothing is certified. {reasons}")

    def _require_bound(self, gap: float) -> None:
        if not self.bound <= gap:
            largest = sorted(self.terms, key=lambda term: -term.value)[:3]
            named = ", ".join(f"{term.name} {term.value:.4g}" for term in largest)
            raise NotCertified(
                f"the bound is {self.bound:.6g}, a gap of {gap:.6g} was required. Largest terms: "
                f"{named}. certificate.advice() says what would help"
            )

    def _repr_html_(self) -> str:
        """For notebooks; the report room lies above this one and is asked for by name."""
        return str(import_module("journeyman.report").as_html(self))


def percent(share: float) -> str:
    """A part of a whole. It is not rounded up to the whole, nor down to nothing.

    >>> percent(0.1234), percent(0.0), percent(1e-5), percent(0.9999), percent(1.0)
    ('12.3 %', '0 %', '< 0.1 %', '> 99.9 %', '100 %')
    """
    if 0 < share < 5e-4:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{100 * share:.3g} %"


@dataclass(frozen=True, eq=False)
class Certificate(GapBound):
    """An upper bound on the true gap of a policy, a lower bound on any policy's, and their grounds.

    `bound` is the figure to rely on; `combinations` lists every way it was sought, the best first.
    """

    problem: Apprenticeship
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
        from journeyman.certificate.presentation import advice

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
