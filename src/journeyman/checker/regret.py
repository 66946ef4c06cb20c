"""The regret under the expert's own cost: added up again from the stored prices.

For prices kappa of recorded pairs, t of their sum, tau of estimates and lam of all pairs, none
of them negative but lam where all actions of a state have one law and one cost, with
y = kappa + t counts - lam and sig = (1 - sum tau) initial - E' y, where E = B - discount P,

    regret  <=  gap_W(Psi'(mu - y) - sum_k tau_k x_k) + <limit, kappa> + t B + sum_k tau_k (a + r_k)
                - <sig+, low> + <sig-, high>

for every low below and high above the optimal values of every cost of the class: low is if
(B - discount P) low <= least cost in all pairs, high if in one pair of every state
(B - discount P) high >= largest cost. What they miss is taken off or added here.

With budgets <mu, d_j> <= b_j the least cost is that of policies that keep them. By weak duality it
is not below <initial, V> - <b, xi> for every xi >= 0 and V with E V <= c_w + D xi, and premises are
about the advantages c_w + D xi - E V for one such xi. With column j of Dlow and Dhigh below and
above all values of d_j (E Dlow <= D <= E Dhigh), low + Dlow xi and high + Dhigh xi bound V; and
<initial, V> - <b, xi> is at least F = <initial, low>, less T h log A for a soft-rational expert.
With a price alpha of that, sig = (1 - sum tau - alpha) initial - E' y, and the bound has the
further term -alpha F, if the factor of every xi_j in it is not positive:

    (1 - sum tau - alpha) b_j - <d_j, y> - <sig+, Dlow_j> + <sig-, Dhigh_j>  <=  0.

Prices are not searched for. Better ones than those stored for the uniform policy might refute a
premise; so whether one is tested is read from a stored cost of the class and values V for which the
rows that it declares hold, up to next to nothing, and the uniform policy has a regret. With budgets
a stored random policy stands for the uniform one, and policies have to differ under that cost.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from journeyman.checker.archives import Floats, Ints, archive, dense, reals
from journeyman.checker.chain import EPSILON, Chain
from journeyman.checker.expert import Estimate
from journeyman.checker.findings import DerivedTerm, Findings, Refused, number
from journeyman.checker.inputs import StoredWorld
from journeyman.checker.policy import Evaluated

ABOUT_A_COST = ("Rational", "NearlyOptimal", "SoftRational")
PARTS = {
    "bound", "contradiction", "failure_probability", "premises", "share", "terms", "trivial_bound",
    "uniform", "uniform_terms", "valid",
}  # fmt: skip
NOTHING, LONG, LITTLE, EXACT = 1e-5, 100.0, 0.05, 1e-9
SHOWN, MISSED = 0.9e-9, 1.1e-3
"""As the certificate has them, but for rounding."""
WORDS = 6
"""Of the steps in contradiction, so many are named."""
VISITED = 1e-12
BLOCK = 1 << 14
STEPS_FOLLOW = "steps follow the transition law"
OWN_COST = {
    "name": "the expert's own cost is one of the class under which policies differ",
    "status": "declared",
    "detail": "one cost for all records; which, is not known",
    "level": None,
}
SAME_WORLD = {
    "name": "the expert acted for the costs of this world alone",
    "status": "declared",
    "detail": (
        "it knew the laws and the discount of this world, and planned for no budget and no time "
        "limit that the world does not have; where it is good from the initial law only, the "
        "episodes are its own from there"
    ),
    "level": None,
}
SAME_BUDGETS = {
    "name": "the expert kept to these budgets in this world and to nothing else",
    "status": "declared",
    "detail": (
        "for totals from the initial law; every budget then has a price, the same in all records, "
        "at which the recorded actions are judged; that the prices which agree with the records "
        "are those of the best policy within the budgets is not tested"
    ),
    "level": None,
}
FIXED_LENGTH = {
    "name": "the number of recorded steps was bounded before recording",
    "status": "declared",
    "detail": "limits of single steps hold for all of them at once",
    "level": None,
}


@dataclass(frozen=True, eq=False)
class Prices:
    """kappa, t, tau, lam and alpha."""

    of_steps: Floats
    of_total: float
    of_averages: Floats
    of_pairs: Floats
    of_floor: float


@dataclass(frozen=True, eq=False)
class Premises:
    """What is declared about the expert's own cost, as rows over recorded pairs and estimates."""

    declared: dict[str, dict[str, Any]]
    pairs: Ints
    counts: Floats
    limits: Floats
    total: float
    regret: float
    averages: tuple[Estimate, ...]
    failure_probability: float

    @classmethod
    def of(cls, run: Any) -> "Premises":
        declared = run.problem.expert_is
        taken = np.zeros(0, dtype=np.int64) if run.records is None else run.records.pair
        shown = taken if {"Rational", "SoftRational"} & set(declared) else taken[:0]
        pairs, times = np.unique(shown, return_counts=True)
        counts, steps = times.astype(float), int(shown.size)
        limits, total, spent, delta = np.full(pairs.size, math.inf), math.inf, 0.0, 0.0
        if "Rational" in declared:
            total = number(declared["Rational"]["regret_per_step"]) * steps
            limits = total / counts
        if "SoftRational" in declared:
            spent = run.failure_probability
            limits = np.minimum(limits, _soft_limit(run.world, declared, steps, spent))
        averages: tuple[Estimate, ...] = ()
        regret = math.inf
        if "NearlyOptimal" in declared:
            averages = tuple(one for one in run.estimates if math.isfinite(one.error))
            regret = number(declared["NearlyOptimal"]["regret"])
            delta = run.failure_probability if run.problem.estimated else 0.0
        if min(total, regret, float(limits.min(initial=0.0))) < 0:
            raise Refused("a declared regret is negative")
        return cls(declared, pairs, counts, limits, total, regret, averages, spent + delta)


def _soft_limit(
    world: StoredWorld, declared: dict[str, dict[str, Any]], steps: int, delta: float
) -> float:
    """T log(M A/delta) + discount T h log A."""
    soft = declared["SoftRational"]
    most = soft.get("most_steps")
    if most is not None and most < steps:
        raise Refused(f"{steps} steps are recorded, and {most} are stated to be the most")
    steps = steps if most is None else int(most)
    actions = int(np.bincount(world.state_of).max())
    likely = math.log(steps * actions / delta)
    bias = world.discount * world.horizon * math.log(actions)
    return number(soft["temperature"]) * (likely + bias)


@dataclass(frozen=True, eq=False)
class Sums:
    """Bounds from prices, for policies of one run."""

    run: Any
    premises: Premises
    low: Floats
    high: Floats
    budget_low: Floats
    """Dlow, a row for every budget."""
    budget_high: Floats

    @cached_property
    def budget_ends(self) -> tuple[Floats, Floats]:
        """Dlow and Dhigh, moved until they are what they are taken for."""
        world, ends = self.run.world, (self.budget_low.copy(), self.budget_high.copy())
        for at, budget in enumerate(self.run.problem.budgets):
            for sign, rows in zip((1.0, -1.0), ends, strict=True):
                beyond = sign * (_adjoint(world, rows[at]) - budget.cost)
                rows[at] -= sign * float(np.max(beyond, initial=0.0)) * world.horizon
        return ends

    @cached_property
    def floor(self) -> float:
        """F."""
        world, declared = self.run.world, self.premises.declared
        least = float(world.initial @ self.ends[0])
        if "SoftRational" not in declared:
            return least
        actions = int(np.bincount(world.state_of).max())
        temperature = float(number(declared["SoftRational"]["temperature"]))
        return least - temperature * float(world.horizon) * math.log(actions)

    def bears_budgets(self, prices: Prices) -> bool:
        """Whether no price of a budget can make the bound larger, whatever rounding hides."""
        world, given = self.run.world, self.premises
        y = self._flow(prices)
        share = 1.0 - float(prices.of_averages.sum()) - prices.of_floor
        flow = world.residual(y) - (1.0 - share) * world.initial
        mass, whole, ends = float(np.abs(y).sum()), 2.0 - share, self.budget_ends
        count = world.num_pairs + world.num_states + given.pairs.size + 16
        for at, budget in enumerate(self.run.problem.budgets):
            low, high = ends[0][at], ends[1][at]
            factor = share * budget.limit - float(budget.cost @ y)
            factor += float(np.maximum(-flow, 0.0) @ high - np.maximum(flow, 0.0) @ low)
            largest = float(max(np.abs(low).max(), np.abs(high).max()))
            size = whole * abs(budget.limit) + mass * float(np.abs(budget.cost).max())
            size += (whole + 2 * mass) * largest
            hidden = EPSILON * count * size if mass or share else 0.0
            if not factor + hidden <= 0:
                return False
        return True

    def _flow(self, prices: Prices) -> Floats:
        y = -prices.of_pairs
        paid = prices.of_steps + prices.of_total * self.premises.counts
        np.add.at(y, self.premises.pairs, paid)
        return y

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """low and high, moved until they are what they are taken for."""
        world, rows = self.run.world, self.run.problem.matrix
        least = np.empty(world.num_pairs)
        largest = np.empty(world.num_pairs)
        for at in range(0, world.num_pairs, BLOCK):
            some = dense(rows[at : at + BLOCK])
            least[at : at + BLOCK] = -_row_gaps(self.run.problem.costs, -some)
            largest[at : at + BLOCK] = _row_gaps(self.run.problem.costs, some)
        down = float(np.max(_adjoint(world, self.low) - least, initial=0.0))
        beyond = np.full(world.num_states, math.inf)
        np.minimum.at(beyond, world.state_of, largest - _adjoint(world, self.high))
        up = float(np.max(beyond, initial=0.0))
        return self.low - down * world.horizon, self.high + up * world.horizon

    def terms(self, expectations: Floats, prices: Prices) -> list[DerivedTerm]:
        """The parts of the bound for a policy with these expectations."""
        world, problem, given = self.run.world, self.run.problem, self.premises
        y = self._flow(prices)
        spent = float(prices.of_averages.sum())
        flow = world.residual(y) - (spent + prices.of_floor) * world.initial
        z, sizes = expectations - problem.matrix.T @ y, np.abs(expectations)
        sizes = sizes + float(np.abs(y).sum()) * problem.costs.norms
        sampling = 0.0
        for tau, one in zip(prices.of_averages, given.averages, strict=True):
            z, sizes = z - tau * one.values, sizes + tau * np.abs(one.values)
            sampling += tau * one.error
        declared = _paid(given.limits, prices.of_steps)
        declared += _paid(np.array([given.total]), np.array([prices.of_total]))
        declared += _paid(np.array([given.regret]), np.array([spent]))
        low, high = self.ends
        unseen = float(np.maximum(-flow, 0.0) @ high - np.maximum(flow, 0.0) @ low)
        largest = float(max(np.abs(low).max(), np.abs(high).max()))
        flows = (1 + spent + prices.of_floor + 2 * float(np.abs(y).sum())) * largest
        flows += prices.of_floor * abs(self.floor)
        count = world.num_pairs + world.num_states + problem.target.size + 16
        matched = problem.costs.largest_gap(-sizes, sizes)
        rounding = EPSILON * count * (matched + flows + declared + sampling)
        sampled = DerivedTerm("sampling", "tau radius", sampling, "estimates of the expert")
        floor = -prices.of_floor * self.floor if prices.of_floor else 0.0
        known = DerivedTerm("least cost", "-alpha floor", floor, "values of every cost")
        return [
            DerivedTerm(
                "worst cost", "gap_W(Psi'(mu - y) - tau x)",
                problem.costs.gap(np.asarray(z)), "prices of recorded steps",
            ),
            DerivedTerm("declared", "kappa limit + t most + tau regret", declared, "the premise"),
            *([sampled] if given.averages else []),
            DerivedTerm("unseen", "sig- high - sig+ low", unseen, "values of every cost"),
            *([known] if problem.budgets else []),
            DerivedTerm("rounding", "eps (pairs + n + 16) sizes", rounding, "double precision"),
        ]  # fmt: skip


def check_regret(findings: Findings, facts: dict[str, Any], run: Any, data: bytes | None) -> None:
    """Every part of the claim about the regret."""
    stated, about = facts["regret"], [one for one in run.problem.expert_is if one in ABOUT_A_COST]
    if not about:
        findings.check(stated is None, "a regret is stated, and nothing is declared about a cost")
        findings.check(data is None, "regret.npz is there without a regret")
        return
    if not findings.check(
        isinstance(stated, dict) and set(stated) == PARTS and data is not None,
        "the regret under the expert's own cost is not stated with its evidence",
    ):
        return
    assert data is not None
    if run.world.knowledge.is_estimate:
        raise Refused("a regret cannot be stated in an estimated world")
    given = Premises.of(run)
    arrays = archive(data, "regret", 1)[1]
    world = run.world
    low, high = (reals(arrays, name, 1, world.num_states) for name in ("low", "high"))
    sums = Sums(run, given, low, high, *_budget_ends(arrays, run))
    own = _prices(arrays, "", sums)
    findings.close("the probability", stated["failure_probability"], given.failure_probability)
    trivial = 2 * run.problem.step_costs.smaller * world.total_time
    findings.close("what bounds the regret of every policy", stated["trivial_bound"], trivial)
    evaluated = run.evaluated.exact
    derived = [*sums.terms(evaluated.expectations, own), *evaluated.terms]
    values = findings.terms("the regret", stated["terms"], derived, run.size)
    found, valid = _sum(values), stated["valid"]
    failed = [one for one in stated["premises"] if one.get("status") == "failed"]
    findings.equal("whether the regret is valid", valid, not failed)
    least = min(found, stated["trivial_bound"]) if valid else stated["trivial_bound"]
    _check_up(findings, "the bound on the regret", stated["bound"], least)
    share = stated["bound"] / trivial if trivial > 0 else 0.0
    findings.close("the share of the regret", stated["share"], share)
    random = _random_policy(arrays, run)
    uniform = _check_uniform(findings, facts, run, sums, _prices(arrays, "uniform_", sums), random)
    shown = "weights" in arrays and _shows(run, sums, arrays, trivial, random)
    _check_premises(findings, facts, run, given, (uniform, trivial), about, shown, random)


def _budget_ends(arrays: Any, run: Any) -> tuple[Floats, Floats]:
    """Dlow and Dhigh as stored; nothing without budgets."""
    count = len(run.problem.budgets)
    if not count:
        return np.zeros((0, run.world.num_states)), np.zeros((0, run.world.num_states))
    found = [reals(arrays, f"budget_{end}", 2, count) for end in ("low", "high")]
    if any(one.shape[1] != run.world.num_states for one in found):
        raise Refused("values of budgets are those of another world")
    return found[0], found[1]


def _random_policy(arrays: Any, run: Any) -> Evaluated:
    """The policy that the premise is tested with: the uniform one, or with budgets a stored one
    that tries every action."""
    world = run.world
    visits = reals(arrays, "uniform_visits", 1, world.num_states)
    law = 1.0 / np.bincount(world.state_of)[world.state_of]
    if run.problem.budgets:
        law = reals(arrays, "uniform_law", 1, world.num_pairs)
        sums = np.bincount(world.state_of, law)
        if (law <= 0).any() or np.abs(sums - 1).max() > EXACT:
            raise Refused("the random policy that a premise is tested with is none")
    return Evaluated(world, run.problem, law, visits)


def _shows(run: Any, sums: Sums, arrays: Any, trivial: float, random: Evaluated) -> bool:
    """Whether the stored cost is one for which the premise is true and policies differ."""
    world, problem, given = run.world, run.problem, sums.premises
    weights = problem.costs.member(reals(arrays, "weights", 1, problem.target.size))
    values = reals(arrays, "values", 1, world.num_states)
    cost, low, least = problem.matrix @ weights, sums.ends[0], float(world.initial @ values)
    priced, missed = cost.copy(), [0.0]
    if problem.budgets:
        paid = reals(arrays, "prices", 1, len(problem.budgets))
        if (paid < 0).any():
            raise Refused("a price of a budget is negative")
        for price, budget, end in zip(paid, problem.budgets, sums.budget_ends[0], strict=True):
            priced += price * budget.cost
            low = low + price * end
            least -= price * budget.limit
        missed.append(sums.floor - least)
    advantage = priced - _adjoint(world, values)
    missed += [-float(advantage.min()), float((low - values).max())]
    missed.append(float(advantage[_forced(run)].max(initial=0.0)))
    if given.pairs.size:
        recorded = advantage[given.pairs]
        missed.append(float((recorded - given.limits).max()))
        missed.append((float(given.counts @ recorded) - given.total) / float(given.counts.sum()))
    for one in given.averages:
        missed.append(float(one.values @ weights) - least - given.regret - one.error)
    regret = float(random.expectations @ weights) - least
    if not all(one < math.inf for one in [regret, *missed]):  # nor nan
        return False
    scale = min(regret, _difference(random, cost)) if problem.budgets else regret
    if regret <= SHOWN * trivial or max(missed) * world.horizon > MISSED * scale:
        return False
    return not problem.budgets or scale >= 0.9 * MISSED * regret


def _difference(random: Evaluated, cost: Floats) -> float:
    """What policies differ by at most under one cost: 2 h times the largest advantage over the
    random policy, in states that can be reached."""
    world = random.world
    values = Chain(world, random.policy).values(cost[:, np.newaxis])[:, 0]
    aside = cost + world.discount * (world.rows @ values) - values[world.state_of]
    visited = random.visits > VISITED
    return float(2 * world.horizon * np.abs(aside[visited]).max(initial=0.0))


def _is_inside(run: Any, policy: Evaluated) -> bool:
    """Whether a policy is strictly inside all budgets."""
    return all(float(one.cost @ policy.visits) < one.limit for one in run.problem.budgets)


def _check_uniform(
    findings: Findings, facts: dict[str, Any], run: Any, sums: Sums, prices: Prices,
    policy: Evaluated,
) -> float:  # fmt: skip
    """The bound of the policy that the premise is tested with, and what it says about it."""
    stated, world = facts["regret"], run.world
    missed = float(np.abs(policy.residual).sum())
    findings.check(missed <= EXACT * world.horizon, "the visits of the uniform policy are others")
    derived = sums.terms(policy.expectations, prices)
    values = findings.terms(
        "the uniform policy's regret", stated["uniform_terms"], derived, run.size
    )
    found, trivial = _sum(values), stated["trivial_bound"]
    least = min(found, trivial)
    _check_up(findings, "the uniform policy's regret", stated["uniform"], least)
    steps, records = stated["contradiction"], run.records
    if not steps:
        return found
    computed = found - derived[-1].value
    findings.check(
        computed <= NOTHING * max(1.0, world.horizon / LONG) * trivial,
        "the steps in contradiction do not refute a premise",
    )
    findings.check(_is_inside(run, policy), "a policy that breaks a budget cannot refute a premise")
    if records is None:
        raise Refused("steps are in contradiction, and none are recorded")
    offsets = np.concatenate([[0], np.cumsum(records.lengths)])
    known = all(
        isinstance(one, list) and len(one) == 2 and all(type(part) is int for part in one)
        and 0 <= one[0] < offsets.size - 1 and 0 <= one[1] < offsets[one[0] + 1] - offsets[one[0]]
        for one in steps
    )  # fmt: skip
    if findings.check(known, "a step in contradiction is not recorded"):
        named = {int(records.pair[offsets[episode] + step]) for episode, step in steps}
        pairs, times = sums.premises.pairs, sums.premises.counts
        flow = prices.of_steps + prices.of_total * times - prices.of_pairs[pairs]
        beside = ~np.isin(pairs, sorted(named))
        slack = EXACT * float(1 + np.abs(flow).max(initial=0.0))
        findings.check((flow[beside] <= slack).all(), "other steps than those named are needed")
    return found


def _check_premises(
    findings: Findings, facts: dict[str, Any], run: Any, given: Premises,
    bounds: tuple[float, float], about: list[str], shown: bool, random: Evaluated,
) -> None:  # fmt: skip
    """Names, outcomes, words and levels of what the bound rests on."""
    stated = facts["regret"]["premises"]
    steps = facts["regret"]["contradiction"]
    possible, (uniform, trivial) = number(facts["trivial_bound"]), bounds
    rows = facts["regret"]["uniform_terms"]
    hidden = sum(number(one["value"]) for one in rows if one["name"] == "rounding")
    least = NOTHING * max(1.0, run.world.horizon / LONG) * trivial
    failed = uniform - hidden <= least < possible and not shown and _is_inside(run, random)
    if failed and not facts["valid"]:  # then the largest possible gap is that of bounded costs
        failed = least < _largest_difference(run, random)
    with_budgets = bool(run.problem.budgets)
    rest = [OWN_COST, SAME_WORLD, *([SAME_BUDGETS] if with_budgets else [])]
    rest += [FIXED_LENGTH] if "SoftRational" in given.declared else []
    others = list(facts["premises"]) if given.averages else []
    others = others or [one for one in facts["premises"] if one["name"] == STEPS_FOLLOW]
    if not findings.equal(
        "the number of premises of the regret", len(stated), len(about) + len(rest) + len(others)
    ):
        return
    for row, wanted in zip(stated[len(about) :], [*rest, *others], strict=True):
        findings.check(row == wanted, f"the premise {row.get('name')!r} is stated otherwise")
    for row, name in zip(stated, about, strict=False):
        wanted = _name(name, given.declared[name], with_budgets=with_budgets)
        findings.equal("the name of a premise", row.get("name"), wanted)
        outcome = "failed" if failed else TESTED if shown else "declared"
        findings.equal("its outcome", row.get("status"), outcome)
        level = None if outcome == "declared" else given.failure_probability
        findings.equal("its level", row.get("level"), level)
        tested_with = "a random policy" if with_budgets else "the uniform policy"
        wanted = _detail(uniform, trivial, possible, tested_with)
        wanted = _contradiction(run, steps) if failed else wanted
        untested = "" if failed or shown else UNTESTED
        findings.equal("its detail", row.get("detail"), f"{untested}{wanted}")


def _largest_difference(run: Any, random: Evaluated) -> float:
    """What the costs of two policies differ by at most: 2 h times the largest advantage over the
    random policy, in states that it visits."""
    world, matrix = run.world, run.problem.matrix
    values, largest = Chain(world, random.policy).values(matrix), 0.0
    visited = np.flatnonzero(random.visits > VISITED)
    for at in range(0, visited.size, BLOCK):
        some = visited[at : at + BLOCK]
        ahead = world.discount * (world.rows[some] @ values)
        rows = dense(matrix[some]) + ahead - values[world.state_of[some]]
        for sign in (1.0, -1.0):
            largest = max(largest, float(_row_gaps(run.problem.costs, sign * rows).max()))
    return float(2 * world.horizon * largest)


TESTED = "tested, not refuted"
UNTESTED = "not tested, for no cost was found that it is true for: "


def _contradiction(run: Any, steps: list[list[int]]) -> str:
    """The refutation in words."""
    why = "the estimated expectations alone contradict it"
    if steps:
        offsets = np.concatenate([[0], np.cumsum(run.records.lengths)])
        at = [int(offsets[episode]) + step for episode, step in steps[:WORDS]]
        named = [
            f"episode {episode}, step {step} (state {state}, action {action})"
            for (episode, step), state, action in zip(
                steps, run.records.state[at], run.records.action[at], strict=False
            )
        ]
        named += ["..."] * (len(steps) > WORDS)
        count = "1 recorded step suffices"
        if len(steps) > 1:
            count = f"{len(steps)} recorded steps suffice"
        why = f"{count} to show it: {'; '.join(named)}"
    return (
        f"no cost of the class under which policies differ is compatible with it: {why}. Declare "
        "more regret, or check these steps"
    )


def _detail(uniform: float, trivial: float, possible: float, tested_with: str) -> str:
    doubt = ""
    if uniform < LITTLE * min(trivial, possible):
        doubt = ": little is left of the class, which suggests that too little regret is declared"
    return (
        f"the records leave {tested_with} a regret of {uniform:.4g} at most, where bounded "
        f"costs allow {trivial:.4g}{doubt}; a false premise need not be found"
    )


def _name(name: str, one: dict[str, Any], *, with_budgets: bool) -> str:
    priced = " and the prices of the budgets" if with_budgets else ""
    if name == "SoftRational":
        temperature = f"{number(one['temperature']):g}"
        within = f" for its own cost{priced}" if with_budgets else ""
        return f"the expert draws soft-optimal actions at temperature {temperature}{within}"
    if name == "NearlyOptimal":
        within = " within the budgets" if with_budgets else ""
        regret = f"{number(one['regret']):g}"
        return f"the expert is within {regret} of the optimum of its own cost{within}"
    if not number(one["regret_per_step"]):
        return f"every recorded action is optimal for the expert's own cost{priced}"
    return (
        f"recorded actions cost at most {number(one['regret_per_step']):g} more than the best ones "
        f"on average, for the expert's own cost{priced}"
    )


def _forced(run: Any) -> Ints:
    """The pairs of states all of whose actions have one law and one cost."""
    of_state = run.world.state_of
    first = np.searchsorted(of_state, np.arange(run.world.num_states))[of_state]
    choice = np.zeros(run.world.num_states, dtype=bool)
    for at in range(0, of_state.size, BLOCK):
        here, to = slice(at, at + BLOCK), first[at : at + BLOCK]
        laws = abs(run.world.rows[here] - run.world.rows[to]).max(axis=1)
        costs = np.abs(dense(run.problem.matrix[here]) - dense(run.problem.matrix[to])).max(axis=1)
        differs = (dense(laws).ravel() > 0) | (costs > 0)
        for budget in run.problem.budgets:
            differs |= budget.cost[here] != budget.cost[to]
        choice[of_state[here][differs]] = True
    return np.flatnonzero(~choice[of_state])


def _prices(arrays: Any, prefix: str, sums: Sums) -> Prices:
    given, run, floor = sums.premises, sums.run, 0.0
    if run.problem.budgets:
        floor = float(reals(arrays, f"{prefix}floor", 0))
    found = Prices(
        reals(arrays, f"{prefix}steps", 1, given.pairs.size),
        float(reals(arrays, f"{prefix}total", 0)),
        reals(arrays, f"{prefix}averages", 1, len(given.averages)),
        reals(arrays, f"{prefix}pairs", 1, run.world.num_pairs),
        floor,
    )
    bound = np.delete(found.of_pairs, _forced(run))
    parts = (found.of_steps, np.array([found.of_total, floor]), found.of_averages, bound)
    if any((part < 0).any() for part in parts):
        raise Refused("a price is negative")
    if not sums.bears_budgets(found):
        raise Refused("prices of the budgets could make a bound larger than the one stated")
    return found


def _row_gaps(costs: Any, rows: Floats) -> Floats:
    different, which = np.unique(rows, axis=0, return_inverse=True)
    gaps = np.array([costs.gap(row) for row in different])
    return np.asarray(gaps[which.ravel()])


def _adjoint(world: StoredWorld, values: Floats) -> Floats:
    return np.asarray(values[world.state_of] - world.discount * (world.rows @ values))


def _paid(limits: Floats, prices: Floats) -> float:
    return float(np.where(prices > 0, limits, 0.0) @ prices)


def _sum(values: list[float]) -> float:
    return math.nextafter(math.fsum(values), math.inf)


def _check_up(findings: Findings, what: str, stated: Any, least: float) -> None:
    """A bound is what it should be, to the last few digits."""
    found = number(stated)
    findings.check(
        abs(found - least) <= 8 * EPSILON * abs(least), f"{what} is {found!r}, not {least!r}"
    )
