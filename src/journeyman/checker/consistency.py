"""Experts declared deterministic or stationary: where their expectations can lie.

The probability of every action lies between bounds that the record gives: 0 or 1 where a
deterministic expert was seen; for a stationary one, of k times in n visits, all p with

    Q(k, n - k) < p^k (1 - p)^(n - k) / d
    Q(k, l) = prod_{i<k} (i + 1/2) prod_{i<l} (i + 1/2) / (k + l)!

where Q is what the estimator of Krichevsky and Trofimov, (times so far + 1/2)/(visits so far + 1),
assigned to the visits one after the other, and d the failure probability over the number of
intervals in all states: one for each action, one for both of two, none for a single one.

For weights w and any values V no policy between the bounds totals less of the cost Psi w than

    <initial, V> + h min over states ( least mean of Psi w + discount P V by such a law - V )

where the least mean takes the lowest probabilities, and the rest from the least entry on. If the
weights are all extreme points of the class, no gap exceeds the largest <w, z> less that total; if
they are plus and minus every cost, none exceeds the largest over the box between these totals.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.checker.archives import Arrays, Floats, Ints, dense, reals
from journeyman.checker.chain import EPSILON
from journeyman.checker.expert import Estimate
from journeyman.checker.findings import AGREEMENT, DerivedTerm, Findings, Refused
from journeyman.checker.inputs import Problem, Records, StoredWorld

DETERMINISTIC, STATIONARY = "Deterministic", "Stationary"
ONE_ACTION = "the expert has one action for every state"
ONE_LAW = "the expert has one law of actions for every state"
LAWS_SHARE = 0.2
"""Of the expert's failure probability, for the laws of a stationary expert."""
SHARES = (0.25, 0.5, 0.75)
NAME, TERM = "consistency", "gap to what is consistent"
HALVINGS = 60
STEPS = re.compile(
    r"in state (\d+) step (\d+) of episode (\d+) takes action (\d+) and step (\d+) of episode "
    r"(\d+) action (\d+); (\d+) states have such steps"
)


@dataclass(frozen=True, eq=False)
class Directions:
    """Weights, and values that prove how little of their costs a consistent policy totals."""

    weights: Floats
    values: Floats
    is_hull: bool


def read_directions(
    header: dict[str, Any], arrays: Arrays, world: StoredWorld, problem: Problem
) -> Directions | None:
    """As stored among the evidence; None where there are none."""
    if "consistent_weights" not in arrays:
        return None
    weights = reals(arrays, "consistent_weights", 2)
    values = reals(arrays, "consistent_values", 2, weights.shape[0])
    if (weights.shape[1], values.shape[1]) != (len(problem.names), world.num_states):
        raise Refused("its directions or their values are not those of this problem")
    is_hull = header.get("consistent_hull")
    wanted = problem.costs.points() if is_hull is True else _plus_and_minus(len(problem.names))
    if type(is_hull) is not bool or wanted is None or wanted.shape != weights.shape:
        raise Refused("its directions are not those of the cost class")
    if not np.array_equal(_ordered(wanted), _ordered(weights)):
        raise Refused("its directions are not those of the cost class")
    return Directions(weights, values, is_hull)


def _plus_and_minus(count: int) -> Floats:
    return np.vstack([np.eye(count), -np.eye(count)])


def _ordered(rows: Floats) -> Floats:
    """In lexicographic order."""
    return np.asarray(rows[np.lexsort(rows.T[::-1])])


def laws_part(problem: Problem) -> float:
    """Of the expert's failure probability, what the laws of its actions take."""
    declared = problem.expert_is
    return LAWS_SHARE if STATIONARY in declared and DETERMINISTIC not in declared else 0.0


def bounds(
    world: StoredWorld, problem: Problem, records: Records | None, part: float
) -> tuple[Floats, Floats]:
    """The lowest and the highest probability of every pair."""
    if records is None or not {DETERMINISTIC, STATIONARY} & set(problem.expert_is):
        raise Refused("nothing was declared of the expert that makes it consistent")
    taken = np.bincount(records.pair, minlength=world.num_pairs)
    visits = np.add.reduceat(taken, world.first[:-1])[world.state_of]
    if DETERMINISTIC in problem.expert_is:
        if (world.per_state((taken > 0).astype(float)) > 1).any():
            raise Refused("a deterministic expert is recorded with two actions in one state")
        known = (taken > 0).astype(float)
        return known, np.where(visits > 0, known, 1.0)
    actions = np.diff(world.first)
    intervals = sum(count if count > 2 else count - 1 for count in actions.tolist())
    if not intervals:
        return np.ones(world.num_pairs), np.ones(world.num_pairs)
    threshold = float(np.log(intervals / part))
    highest = _highest(taken, visits, threshold)
    lowest = 1.0 - _highest(visits - taken, visits, threshold)
    alone = actions[world.state_of] == 1
    return np.where(alone, 1.0, lowest), np.where(alone, 1.0, highest)


def _highest(taken: Ints, visits: Ints, threshold: float) -> Floats:
    most = int(visits.max(initial=0))
    halves = np.concatenate([[0.0], np.cumsum(np.log(np.arange(most) + 0.5))])
    wholes = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
    others = visits - taken
    assigned = halves[taken] + halves[others] - wholes[visits]
    low, high = taken / np.maximum(visits, 1), np.ones(taken.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(HALVINGS):
            p = (low + high) / 2
            chance = np.where(taken > 0, taken * np.log(p), 0.0)
            chance = chance + np.where(others > 0, others * np.log1p(-p), 0.0)
            out = assigned - chance > threshold
            low, high = np.where(out, low, p), np.where(out, p, high)
    return high


def least_totals(
    world: StoredWorld, problem: Problem, lowest: Floats, highest: Floats, found: Directions
) -> tuple[Floats, Floats]:
    """What no consistent policy totals less of each direction's cost than; what rounding hides."""
    totals, hidden, h = [], [], world.horizon
    widest = int(np.diff(world.first).max())
    for w, values in zip(found.weights, found.values, strict=True):
        cost = dense(problem.matrix @ w).ravel()
        ahead = cost + world.discount * (world.rows @ values)
        change = _least_means(world, ahead, lowest, highest) - values
        totals.append(float(world.initial @ values) + h * float(change.min()))
        size, largest = float(np.abs(values).max()), float(np.abs(cost).max())
        steps = (world.branches + 2 * widest + 6) * (largest + 2 * size) * h
        weighed = (w.size + 2) * float(np.abs(w) @ problem.costs.norms) * h
        hidden.append(EPSILON * (steps + (world.num_states + 4) * size + weighed))
    return np.array(totals), np.array(hidden)


def _least_means(world: StoredWorld, ahead: Floats, lowest: Floats, highest: Floats) -> Floats:
    """Lowest probabilities everywhere; the rest of each state's one from its least entry on."""
    order = np.lexsort((ahead, world.state_of))
    room = (highest - lowest)[order]
    before = np.cumsum(room) - room
    before = before - before[world.first[:-1]][world.state_of]
    rest = 1.0 - world.per_state(lowest)
    law = lowest.copy()
    law[order] += np.clip(rest[world.state_of] - before, 0.0, room)
    return world.per_state(law * ahead)


@dataclass(frozen=True, eq=False)
class Consistent:
    """Directions with their least totals: by the values as they are, and with rounding allowed
    for."""

    problem: Problem
    found: Directions
    least: tuple[Floats, Floats]

    @classmethod
    def of(
        cls, world: StoredWorld, problem: Problem, records: Records | None, found: Directions,
        part: float, size: float,
    ) -> "Consistent":  # fmt: skip
        lowest, highest = bounds(world, problem, records, part)
        totals, hidden = least_totals(world, problem, lowest, highest, found)
        most = totals - np.where(hidden > AGREEMENT * size, hidden / 2, 0.0)
        return cls(problem, found, (most, totals - 2 * hidden))

    def term(self, name: str, z: Floats, estimate: Estimate | None, share: float) -> DerivedTerm:
        """The first term of a combination."""
        values = np.zeros(z.size) if estimate is None else estimate.values
        low, high = (self._gap(z, least, values, share) for least in self.least)
        way = "max of gap_W over [z - high, z - low]"
        way = "max over points w of <w, z> - least_w" if self.found.is_hull else way
        return DerivedTerm(TERM, way, low, name, high)

    def _gap(self, z: Floats, least: Floats, values: Floats, share: float) -> float:
        if self.found.is_hull:
            reduced = least + share * (self.found.weights @ values - least)
            return float((self.found.weights @ z - reduced).max())
        order = np.lexsort(self.found.weights.T[::-1])
        count = z.size
        minus, plus = least[order[:count]], least[order[count:]][::-1]
        low, high = (1 - share) * plus + share * values, -(1 - share) * minus + share * values
        return self.problem.costs.largest_gap(z - high, z - low)


def parts_of_name(
    name: str, estimates: dict[str, Estimate]
) -> tuple[Estimate | None, float] | None:
    """Which estimate is combined with what is consistent, and how much of it; None for a name that
    no combination has."""
    if name == NAME:
        return None, 0.0
    named = {
        f"{NAME} {1 - share:g}, {one} {share:g}": (estimate, share)
        for one, estimate in estimates.items()
        for share in SHARES
    }
    return named.get(name)


def scaled(terms: tuple[DerivedTerm, ...], share: float) -> tuple[DerivedTerm, ...]:
    """The terms of an estimate of which a part is used."""
    return tuple(
        DerivedTerm(
            one.name, f"{share:g} ({one.formula})", share * one.value, one.source,
            None if one.most is None else share * one.most,
        )
        for one in terms
    )  # fmt: skip


def check_laws_of_actions(
    findings: Findings, premises: dict[str, Any], world: StoredWorld, records: Records
) -> None:
    """What is declared of the expert's laws of actions."""
    for name in (ONE_ACTION, ONE_LAW):
        if name in premises:
            _check_premise(findings, premises[name], world, records)


def _check_premise(
    findings: Findings, stated: dict[str, Any], world: StoredWorld, records: Records
) -> None:
    """Whether the record refutes that the expert has one action, or one law, for every state."""
    visits = np.bincount(records.state, minlength=world.num_states)
    seen = f"{int((visits > 0).sum())} of {visits.size} states were visited"
    name, detail = stated["name"], stated["detail"]
    pairs = np.bincount(records.pair, minlength=world.num_pairs) > 0
    several = np.flatnonzero(world.per_state(pairs.astype(int)) > 1)
    again = int((visits > 1).sum())
    wanted: tuple[str, float | None] = ("declared", None)
    if name == ONE_ACTION and several.size:
        wanted = ("failed", 0.0)
        says = STEPS.fullmatch(detail)
        held = says is not None and _contradicts(records, [int(one) for one in says.groups()[:-1]])
        findings.check(held, f"that {name} is not refuted by the steps that are named")
        findings.check(says is None or int(says[8]) == several.size, f"that {name}: other numbers")
    else:
        findings.check(seen in detail, f"that {name} speaks of other visits")
        if name == ONE_ACTION and again:
            wanted = ("tested, not refuted", 0.0)
            says_again = f"; {again} of them again, always with the same action" in detail
            findings.check(says_again, f"that {name} speaks of other visits")
    findings.equal(f"the premise that {name}", (stated["status"], stated["level"]), wanted)


def _contradicts(records: Records, numbers: list[int]) -> bool:
    """Whether two named steps take different actions in the named state."""
    state, t, one, a, s, other, b = numbers
    first = (records.episode == one) & (records.time == t) & (records.action == a)
    second = (records.episode == other) & (records.time == s) & (records.action == b)
    here = records.state == state
    return a != b and bool((first & here).any() and (second & here).any())
