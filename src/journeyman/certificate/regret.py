"""The regret of a policy under the expert's own cost, where a premise about that cost is declared.

    <mu, c_w> - least possible cost  <=  bound          for the cost c_w that the expert had in mind

which nobody knows. With budgets it compares with the best policy that keeps them, and a policy that
breaks one can have less regret than none. It compares with the *optimum* under one cost, while the
bound of a certificate compares with the expert under every cost of the class; neither contains the
other. The bound is added up from prices of the recorded steps (`problem.rational`), which any
engine may have found.

*Tested*: the same bound for the uniform policy. Where it is zero, although policies differ under
costs of the class, no cost that distinguishes them is compatible with the records and the premise
is refuted; the bound is then what bounded costs imply, and a small set of recorded steps that
suffices for it is named. What is not contradicted may still be false: with one demonstration
hardly anything is.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.certificate.premises import STEPS_FOLLOW
from journeyman.certificate.terms import (
    ExpertEstimate,
    PolicyEvaluation,
    Premise,
    PremiseStatus,
    Term,
    declared,
    failed,
    refuted,
    total,
)
from journeyman.policy import Policy, occupancy
from journeyman.policy.policy_evaluation import advantages
from journeyman.problem import Apprenticeship
from journeyman.problem.bounds import plain_bound
from journeyman.problem.expert_premises import (
    ABOUT_A_COST,
    ExpertPremise,
    NearlyOptimal,
    Rational,
    SoftRational,
)
from journeyman.problem.rational import (
    VISITED,
    Average,
    Member,
    RationalPrices,
    RationalSet,
    RegretBound,
    next_to_nothing,
)

OWN_COST = "the expert's own cost is one of the class under which policies differ"
SAME_WORLD = "the expert acted for the costs of this world alone"
SAME_BUDGETS = "the expert kept to these budgets in this world and to nothing else"
FIXED_LENGTH = "the number of recorded steps was bounded before recording"
NAMED = 6
"""Steps in contradiction that are named in words."""
LITTLE = 0.05
"""Of what is possible: so little regret of the uniform policy is worth a word."""


@dataclass(frozen=True, eq=False)
class Regret:
    """What is known about the regret to the optimum under the expert's own cost."""

    terms: tuple[Term, ...]
    uniform_terms: tuple[Term, ...]
    """Of the policy that the premise is tested with, or, where it is refuted, of the steps in
    contradiction."""
    trivial_bound: float
    """What bounded costs imply for every policy."""
    premises: tuple[Premise, ...]
    failure_probability: float
    """With which the bound may be wrong; zero where it needs no statistics."""
    prices: RationalPrices
    uniform_prices: RationalPrices
    value_range: tuple[FloatArray, FloatArray]
    """Values below and above those of every cost of the class."""
    example: Member | None = None
    """A cost with values for which the premise is true and policies differ, where one was found."""
    contradiction: tuple[tuple[int, int], ...] = ()
    """Recorded steps (episode, step) that suffice to refute the premise."""
    contributions: FloatArray | None = None
    """What every start adds to the bound; None where the premise is refuted, and in runs that were
    read back."""
    budget_range: tuple[FloatArray, FloatArray] | None = None
    """The same of every cost of a budget (budgets x states); None without budgets."""
    tested_with: Policy | None = None
    """With budgets the random policy that the premise is tested with: it tries every action, and
    keeps the budgets with something to spare where a policy that does was found."""

    @property
    def valid(self) -> bool:
        """Whether no premise of it has failed."""
        return not refuted(self.premises)

    @property
    def found(self) -> float:
        """What the terms add up to."""
        return total(self.terms)

    @property
    def bound(self) -> float:
        """The upper bound on the regret."""
        return min(self.found, self.trivial_bound) if self.valid else self.trivial_bound

    @property
    def uniform(self) -> float:
        """The bound for the policy that draws every action with equal probability; with budgets
        for the policy that the premise is `tested_with`."""
        return min(total(self.uniform_terms), self.trivial_bound)

    @property
    def share(self) -> float:
        """The bound as a share of what bounded costs imply."""
        return self.bound / self.trivial_bound if self.trivial_bound > 0 else 0.0

    def next_start(self, among: FloatArray | None = None) -> int | None:
        """The state from which a further demonstration promises most; None if none does.

        Args:
            among: states that can be chosen, as numbers; all by default.
        """
        gains = self.contributions
        if gains is None or not (gains > 0).any():
            return None
        if among is None:
            return int(np.argmax(gains))
        states = np.asarray(among, dtype=int)
        return int(states[np.argmax(gains[states])])


def regret_of(
    problem: Apprenticeship,
    evaluation: PolicyEvaluation,
    estimates: tuple[ExpertEstimate, ...],
    premises: tuple[Premise, ...],
    failure_probability: float,
    *,
    possible: float,
) -> Regret | None:
    """The regret of a policy; None without a premise about the expert's own cost.

    `estimates` and `premises` are those of the certificate: an expert who is declared nearly
    optimal is known by them. `possible` is its trivial bound: where that is nothing no policy
    differs from another, and R of the uniform policy is small by itself. Where a premise has failed
    it is what bounded costs allow, and does not show whether policies differ; `largest_difference`
    then does.
    """
    named = [one for one in problem.expert_is if isinstance(one, ABOUT_A_COST)]
    if not named:
        return None
    averages = [Average(one.values, total(one.terms)) for one in estimates]
    given = RationalSet.of(problem, averages, failure_probability)
    spent = given.failure_probability
    if given.averages and not problem.expectation.is_declared:
        spent = failure_probability
    trivial = plain_bound(problem, None)
    uniform, against = given.uniform_bound, np.zeros(0, dtype=int)
    example = given.example
    least = next_to_nothing(problem)
    is_refuted = uniform.computed <= least < possible and example is None
    is_refuted = is_refuted and bool((given.spare > 0).all())
    if is_refuted and refuted(premises):
        is_refuted = least < largest_difference(problem)
    if is_refuted:
        against = given.contradiction()
        uniform = _alone(given, against)
    prices, member, _ = given.solved(evaluation.expectations)
    found = given.bound(evaluation.expectations, prices)
    steps = contradicting_steps(problem, given.pairs[against])
    rows = tuple(
        _premise(
            problem,
            one,
            uniform,
            (trivial, possible),
            _in_words(problem, steps) if is_refuted else "",
            example is not None,
            spent,
        )
        for one in named
    )
    with_budgets = bool(problem.constraints)
    return Regret(
        (*regret_terms(given, found), *evaluation.terms), regret_terms(given, uniform), trivial,
        (*rows, *_beside(problem, given, premises)), float(spent), found.prices, uniform.prices,
        given.value_range, example, steps, None if is_refuted else given.openness(member),
        given.budget_range if with_budgets else None,
        given.random_policy if with_budgets else None,
    )  # fmt: skip


def largest_difference(problem: Apprenticeship) -> float:
    """What no two policies differ by more than, under any cost of the class; zero, but for
    rounding, where all of them are alike.

    With A the advantages of actions over the uniform policy, the cost of a policy differs from that
    of the uniform one by <mu, A> for its occupancy mu, which lies in states that the uniform policy
    visits too. Where A is not zero in one of them, taking a better action there lowers the cost.
    """
    world, uniform = problem.world, Policy.uniform(problem.world)
    visited = occupancy(world, uniform).measure > VISITED
    rows = advantages(world, uniform, problem.cost_matrix)[visited]
    gaps = np.maximum(problem.cost_class.row_gaps(rows), problem.cost_class.row_gaps(-rows))
    return float(2 * world.effective_horizon * gaps.max(initial=0.0))


def regret_terms(given: RationalSet, found: RegretBound) -> tuple[Term, ...]:
    """The parts of a bound with their formulas."""
    sampled = Term("sampling", found.sampling, "tau radius", "estimates of the expert")
    least = Term("least cost", found.floor, "-alpha floor", "values of every cost")
    return (
        Term(
            "worst cost", found.under_worst_cost, "gap_W(Psi'(mu - y) - tau x)",
            "prices of recorded steps",
        ),
        Term("declared", found.declared, "kappa limit + t most + tau regret", "the premise"),
        *((sampled,) if given.averages else ()),
        Term("unseen", found.unseen, "sig- high - sig+ low", "values of every cost"),
        *((least,) if given.problem.constraints else ()),
        Term("rounding", found.rounding, "eps (pairs + n + 16) sizes", "double precision"),
    )  # fmt: skip


def _alone(given: RationalSet, against: IntArray) -> RegretBound:
    """What the steps in contradiction prove by themselves, as prices of all recorded pairs."""
    smaller = given.restricted(against)
    found = smaller.uniform_bound.prices
    of_steps, others = np.zeros(given.pairs.size), np.ones(given.pairs.size, dtype=bool)
    of_steps[against], others[against] = found.of_steps, False
    of_pairs = found.of_pairs.copy()
    of_pairs[given.pairs[others]] += found.of_total * given.counts[others]
    prices = RationalPrices(of_steps, found.of_total, found.of_averages, of_pairs, found.of_floor)
    return given.bound(given.uniform, prices)


def contradicting_steps(
    problem: Apprenticeship, pairs: IntArray
) -> tuple[tuple[int, int], ...]:  # fmt: skip
    """The first recorded step of every pair."""
    demos = problem.demonstrations
    if demos is None or not pairs.size:
        return ()
    taken = demos.pairs_in(problem.world)
    first = sorted(int(np.argmax(taken == pair)) for pair in pairs)
    return tuple((int(demos.step_episodes[at]), int(demos.step_times[at])) for at in first)


def _in_words(problem: Apprenticeship, steps: tuple[tuple[int, int], ...]) -> str:
    """The steps with what was done there, the first few of many."""
    demos = problem.demonstrations
    if demos is None or not steps:
        return "the estimated expectations alone contradict it"
    at = [int(demos.offsets[episode]) + step for episode, step in steps[:NAMED]]
    states, actions = demos.step_states[at], demos.actions[at]
    named = [
        f"episode {episode}, step {step} (state {state}, action {action})"
        for (episode, step), state, action in zip(steps, states, actions, strict=False)
    ]
    named += ["..."] * (len(steps) > NAMED)
    count = (
        "1 recorded step suffices" if len(steps) == 1 else f"{len(steps)} recorded steps suffice"
    )
    return f"{count} to show it: {'; '.join(named)}"


def name_of_premise(one: ExpertPremise, *, with_budgets: bool = False) -> str:
    """A premise as a statement."""
    priced = " and the prices of the budgets" if with_budgets else ""
    if isinstance(one, Rational):
        if not one.regret_per_step:
            return f"every recorded action is optimal for the expert's own cost{priced}"
        return (
            f"recorded actions cost at most {one.regret_per_step:g} more than the best ones on "
            f"average, for the expert's own cost{priced}"
        )
    if isinstance(one, SoftRational):
        within = " for its own cost and the prices of the budgets" if with_budgets else ""
        return f"the expert draws soft-optimal actions at temperature {one.temperature:g}{within}"
    assert isinstance(one, NearlyOptimal)
    within = " within the budgets" if with_budgets else ""
    return f"the expert is within {one.regret:g} of the optimum of its own cost{within}"


def _premise(
    problem: Apprenticeship,
    one: ExpertPremise,
    uniform: RegretBound,
    limits: tuple[float, float],
    contradiction: str,
    is_possible: bool,
    level: float,
) -> Premise:
    with_budgets = bool(problem.constraints)
    name = name_of_premise(one, with_budgets=with_budgets)
    if contradiction:
        detail = (
            "no cost of the class under which policies differ is compatible with it: "
            f"{contradiction}. Declare more regret, or check these steps"
        )
        return failed(name, detail, level)
    trivial = limits[0]
    doubt = (
        ": little is left of the class, which suggests that too little regret is declared"
        if uniform.value < LITTLE * min(limits)
        else ""
    )
    tested_with = "a random policy" if with_budgets else "the uniform policy"
    detail = (
        f"the records leave {tested_with} a regret of {uniform.value:.4g} at most, where "
        f"bounded costs allow {trivial:.4g}{doubt}; a false premise need not be found"
    )
    if not is_possible:
        return declared(name, f"not tested, for no cost was found that it is true for: {detail}")
    return Premise(name, PremiseStatus.TESTED, detail, level)


def _beside(
    problem: Apprenticeship, given: RationalSet, premises: tuple[Premise, ...]
) -> tuple[Premise, ...]:
    """What else the bound rests on."""
    rows = [
        declared(OWN_COST, "one cost for all records; which, is not known"),
        declared(
            SAME_WORLD,
            "it knew the laws and the discount of this world, and planned for no budget and no "
            "time limit that the world does not have; where it is good from the initial law only, "
            "the episodes are its own from there",
        ),
    ]
    if problem.constraints:
        rows.append(
            declared(
                SAME_BUDGETS,
                "for totals from the initial law; every budget then has a price, the same in all "
                "records, at which the recorded actions are judged; that the prices which agree "
                "with the records are those of the best policy within the budgets is not tested",
            )
        )
    if any(isinstance(one, SoftRational) for one in problem.expert_is):
        rows.append(declared(FIXED_LENGTH, "limits of single steps hold for all of them at once"))
    others = premises if given.averages else ()
    others = others or tuple(one for one in premises if one.name == STEPS_FOLLOW)
    return *rows, *others
