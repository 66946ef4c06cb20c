"""What is known about a policy's gap: one value, whatever it rests on.

    gap(policy) = max over the cost class of (policy's cost - expert's cost)  <=  bound

with probability 1 - failure_probability over the demonstrations (and over whatever else was drawn),
provided the premises hold. A premise that failed makes the bound the trivial one, which always
holds.

What a bound is worth is its *share* of the trivial bound, the largest gap that is possible at all
(`problem.bounds`). One that reaches it is *vacuous*, one above half of it *weak*. For a known cost
the share is that of the way from the least possible total to the largest. Where nothing can be
chosen that matters, so that the largest and the least agree up to rounding, the share is 0.

*Parts*: bound, terms, combinations, premises, trivial bound, lower bound and expectations are there
in every world. What needs exact evaluation is there where that is possible (`is_exact`); elsewhere
numbers and objects are None, tuples are empty, and the lower bounds are what the class itself says.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from journeyman.arrays import FloatArray
from journeyman.certificate.evaluation import BudgetCertificate, Interval
from journeyman.certificate.lower_bounds import LowerBounds, ReducedBounds
from journeyman.certificate.terms import Combination, Premise, PremiseStatus, Term, refuted
from journeyman.errors import InvalidInput, NotCertified
from journeyman.lazy import InNotebooks
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship, Witness
from journeyman.problem.bounds import ProvenRanges
from journeyman.problem.expert_premises import ABOUT_A_COST
from journeyman.storage import PathLike
from journeyman.tables import to_frame
from journeyman.world.levels import Level

if TYPE_CHECKING:
    from journeyman.certificate.agreement import Agreement
    from journeyman.certificate.code_references import Reference
    from journeyman.certificate.consistency import Consistency
    from journeyman.certificate.regret import Regret

WEAK = 0.5
"""Of the trivial bound: a bound above it is called weak."""
ROUNDING_STEPS = 256
"""Operations per step of the horizon: a possible gap below their rounding is none."""
EPSILON = 2.0**-52


@dataclass(frozen=True, eq=False)
class Certificate(InNotebooks):
    """An upper bound on the true gap of a policy, a lower bound on any policy's, and what they rest
    on. `bound` is the number to rely on; `combinations` lists every way it was sought, the best
    first.
    """

    problem: Apprenticeship
    policy: Policy
    """Typed as the table of an explicit world; elsewhere it is whatever was certified."""
    failure_probability: float
    combinations: tuple[Combination, ...]
    trivial_bound: float
    premises: tuple[Premise, ...]
    lower_bounds: LowerBounds
    expectations: FloatArray
    """The policy's expectation of every cost: exact where `is_exact`, elsewhere as sampled."""
    least_possible: float = 0.0
    """No policy has a smaller gap: zero for a class that contains the cost zero. The share of a
    known cost is measured from here, that of others from zero."""
    gap_on_data: float | None = None
    """The policy's gap to the target of the problem, by exact evaluation. So are the budgets and
    the apprentice's intervals, also where the bound comes from rollouts or sampled rows."""
    budgets: tuple[BudgetCertificate, ...] = ()
    expert_intervals: tuple[Interval, ...] = ()
    apprentice_intervals: tuple[Interval, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    """Dual points that prove the lower bounds, the best on the data first."""
    measure: FloatArray | None = None
    """The vector over pairs behind the kinds A, B, B' and C, where they were certified."""
    ranges: ProvenRanges | None = None
    """What proves the trivial bound beyond bounded costs, where more is known."""
    reduced: ReducedBounds | None = None
    """For an answer over features, what the best coefficients could reach."""
    regret: "Regret | None" = None
    """The regret to the optimum under the expert's own cost, where a premise about that cost is
    declared (`Rational`, `NearlyOptimal`, `SoftRational`) and the policy was evaluated exactly."""
    agreement: "Agreement | None" = None
    """Of a policy beside records alone: how far it agrees with the recorded actions."""
    left_out: tuple[str, ...] = ()
    """Estimates of the expert for which the time limit left no time. The bound holds without them;
    with them it may be smaller."""
    consistency: "Consistency | None" = None
    """Where the expert was declared deterministic or stationary, what its record then says."""

    @property
    def is_exact(self) -> bool:
        """Whether the policy was evaluated exactly, so that all parts are there."""
        return self.gap_on_data is not None

    @property
    def valid(self) -> bool:
        """Whether no premise has failed."""
        return all(premise.status is not PremiseStatus.FAILED for premise in self.premises)

    @property
    def best(self) -> Combination:
        return self.combinations[0]

    @property
    def bound(self) -> float:
        """The upper bound on the true gap."""
        return min(self.best.bound, self.trivial_bound) if self.valid else self.trivial_bound

    @property
    def regret_bound(self) -> float | None:
        """The upper bound on the regret to the optimum under the expert's own cost, which nobody
        knows; None without a premise about it. `bound` is about the expert, and every cost."""
        return None if self.regret is None else self.regret.bound

    @property
    def normalised_bound(self) -> float:
        """The bound per step: times 1 - discount, or over the time of an episode."""
        return self.bound / self.problem.total_time

    @property
    def terms(self) -> tuple[Term, ...]:
        """What the bound is made of."""
        return self.best.terms

    @property
    def witness(self) -> Witness | None:
        """The dual point behind the lower bound on the data."""
        return self.witnesses[0] if self.witnesses else None

    @property
    def lower_bound(self) -> float:
        """No policy within the budgets has a smaller gap on the data. Like `gap_on_data` it is
        about the world as given: in an estimated world about the model, its error not allowed for.
        Below the explicit level it is zero where zero cost is in the class, else minus the largest
        gap the other way round.
        """
        return self.lower_bounds.on_data

    @property
    def true_lower_bound(self) -> float:
        """No policy within the budgets has a smaller gap to the true expert, with the stated
        probability (a statement of its own). It allows for the errors of sampling and model."""
        return self.lower_bounds.true

    @property
    def optimality_gap(self) -> float | None:
        """By how much the policy can be worse on the data than the best one there is."""
        return None if self.gap_on_data is None else self.gap_on_data - self.lower_bound

    @property
    def alarm(self) -> bool:
        """Whether the data refute the model or the independence of the demonstrations."""
        return self.lower_bounds.without_budgets > self.lower_bounds.expert_radius

    @property
    def vacuous(self) -> bool:
        """Whether the bound says no more than holds for every policy of the world."""
        return self.bound >= self.trivial_bound and not self.nothing_matters

    @property
    def share(self) -> float:
        """The bound as a share of the trivial bound, between 0 and 1."""
        if self.vacuous or self.nothing_matters:
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
        return self.problem.has_known_cost

    @property
    def nothing_matters(self) -> bool:
        """Whether the largest and the least possible gap differ by rounding only."""
        problem = self.problem
        starts = problem.world.num_states if problem.level is Level.EXPLICIT else 0
        steps = ROUNDING_STEPS * problem.effective_horizon + starts
        possible = abs(self.trivial_bound - self.least_possible)
        return possible <= steps * EPSILON * problem.gap_scale

    def require(self, gap: float | None = None, *, regret: float | None = None) -> "Certificate":
        """This certificate, or `NotCertified` when it does not show what is required.

        Args:
            gap: that the policy costs at most so much more than the expert under every cost of the
                class (`bound`), and that every budget is kept.
            regret: that it costs at most so much more than the best policy under the expert's own
                cost (`regret_bound`), which needs a premise about that cost.
        """
        if gap is None and regret is None:
            raise InvalidInput("nothing is required", "Give gap=..., regret=... or both")
        if gap is not None:
            self._require_gap(gap)
        if regret is not None:
            self._require_regret(regret)
        return self

    def _require_regret(self, regret: float) -> None:
        known = self.regret
        if known is None and any(isinstance(one, ABOUT_A_COST) for one in self.problem.expert_is):
            raise NotCertified(
                "no regret is certified, because the policy was not evaluated exactly. Certify a "
                "policy of the explicit world, such as jm.Policy(probabilities)"
            )
        if known is None:
            raise NotCertified(
                "no regret is certified, because nothing is declared about the expert's own cost. "
                "Declare it, for example expert_is=jm.Rational(regret_per_step=0.01)"
            )
        _refuse_failed(known.premises)
        if not known.bound <= regret:
            raise NotCertified(
                f"the bound on the regret under the expert's own cost is {known.bound:.6g}, "
                f"{regret:.6g} was required. certificate.advice() says what would help"
            )

    def _require_gap(self, gap: float) -> None:
        _refuse_failed(self.premises)
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
        if not self.bound <= gap:
            largest = sorted(self.terms, key=lambda term: -term.value)[:3]
            named = ", ".join(f"{term.name} {term.value:.4g}" for term in largest)
            raise NotCertified(
                f"the bound is {self.bound:.6g}, a gap of {gap:.6g} was required. Largest terms: "
                f"{named}. certificate.advice() says what would help"
            )

    def advice(self) -> str:
        """What the bound is dominated by and, in numbers, what would halve it."""
        from journeyman.certificate.presentation import advice

        return advice(self)

    def summary(self) -> str:
        """One sentence."""
        from journeyman.certificate.presentation import summary

        return summary(self)

    def table(self, *, formulas: bool = True) -> str:
        """Terms, budgets and premises in words; then, unless `formulas` is False, the formulas of
        the terms, the other ways to bound the gap, and what the symbols stand for."""
        from journeyman.certificate.presentation import table

        return table(self, formulas=formulas)

    def to_dict(self) -> dict[str, Any]:
        """All that is known as plain values, for JSON: infinities are words there.

        >>> import journeyman as jm
        >>> world, basis, expert = jm.gallery.grid(4)
        >>> problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.5] * 16))
        >>> jm.certify(problem, expert).to_dict()["premises"][0]["status"]
        'declared'
        """
        from journeyman.certificate.presentation import as_dict

        return as_dict(self)

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for every term of every combination, the best first; `polars.DataFrame` takes
        them as they are."""
        from journeyman.certificate.presentation import plain

        return [
            {"evaluation": way.kind, "estimate": way.estimate, "bound": way.bound, **plain(term)}
            for way in self.combinations
            for term in way.terms
        ]

    def to_frame(self) -> Any:
        """`to_rows` as a pandas DataFrame (extra `frames`)."""
        return to_frame(self.to_rows())

    def save(
        self,
        directory: PathLike,
        *,
        code: "Reference | Sequence[Reference] | None" = None,
        evaluation: Any = None,
        seed: int | None = None,
    ) -> None:
        """Write the certificate and all it rests on into a directory that `jm.audit` reads.

        Args:
            code: below the explicit level, how world, costs, features and policies were made.
            evaluation: what `certify` was given, if that was sampled rows or rollouts in rounds.
            seed: the solver's.
        """
        from journeyman.certificate.saving import save_run

        save_run(self, directory, seeds={"solver": seed}, evaluation=evaluation, code=code or ())

    def plot(self, *, ax: Any = None) -> Any:
        """Draw what the bound is made of, and return the matplotlib Axes (extra `plot`): those
        given, or new ones."""
        return import_module("journeyman.plot").certificate(self, ax=ax)

    def __repr__(self) -> str:
        from journeyman.certificate.presentation import one_line

        return one_line(self)


def _refuse_failed(premises: tuple[Premise, ...]) -> None:
    failed = refuted(premises)
    if failed:
        reasons = "; ".join(f"{premise.name}: {premise.detail}" for premise in failed)
        raise NotCertified(f"a premise has failed, so nothing is certified. {reasons}")
