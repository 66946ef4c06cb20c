"""A bound on a gap with its grounds: what all certificates have in common.

What a bound is worth is its *share* of the trivial bound, the largest gap that is possible at all
(`problem.trivial`). One that reaches it is *vacuous*, one above half of it *weak*. For a known cost
the share is that of the way from the least possible total to the largest. Where nothing can be
chosen that matters, so that the largest and the least agree up to rounding, the share is 0.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from journeyman.certificate.evaluation import Statistics
from journeyman.certificate.premises import Premise, Verdict, refuted
from journeyman.certificate.terms import Term
from journeyman.costs import KnownCost
from journeyman.errors import NotCertified

if TYPE_CHECKING:
    from journeyman.problem.cost_problem import CostProblem

WEAK = 0.5
"""Of the trivial bound: a bound above it is called weak."""
ROUNDING_STEPS = 256
"""Operations per step of the horizon: a possible gap below their rounding is none."""
EPSILON = 2.0**-52
NEGLIGIBLE = 1e-10
"""Of 2 N/(1 - discount): less is shown as zero in a sentence."""


@dataclass(frozen=True)
class Combination:
    """One way to bound the gap: an evaluation of the policy with an estimate of the expert."""

    kind: str
    estimate: str
    terms: tuple[Term, ...]
    bound: float
    statistics: tuple[Statistics, ...] = ()
    """What was sampled for the evaluation; nothing when it is exact."""


class GapBound:
    """Reads the bound off combinations and premises."""

    problem: "CostProblem"
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
        return isinstance(self.problem.cost_class, KnownCost)

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
