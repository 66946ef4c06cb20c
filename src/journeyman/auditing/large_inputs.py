"""The inputs of a run in a large world as plain arrays: all of it can be read without its code.

    Q = { psi : lowest <= psi <= highest, sum_i |psi_i| <= largest }

is where costs lie; `extremes` are rows that are to be as large as any of them. No function can be
asked here, so members of Q are made up, and none may be larger than the stored rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.auditing.costs import Costs
from journeyman.auditing.ledger import AGREEMENT, Ledger
from journeyman.auditing.reading import Refused, archive
from journeyman.auditing.tables import Floats, Ints, reals, wholes, words

PROBES = 100
"""Members of Q, made by filling costs in random orders."""


@dataclass(frozen=True, eq=False)
class LargeQuestion:
    """Cost class, ranges, discount, and what was declared of the expert."""

    names: list[str]
    costs: Costs
    lowest: Floats
    highest: Floats
    largest: float
    discount: float
    target: Floats | None
    """None when the expert is known from its record only."""
    sizes: tuple[int, int] | None
    """States and actions; None where there is only a simulator."""

    @property
    def horizon(self) -> float:
        """1/(1 - discount)."""
        return 1 / (1 - self.discount)

    @property
    def floor(self) -> float:
        """What absolute errors of gaps are measured by."""
        return 2 * (self.costs.smaller + 1e-3 * self.costs.plain) * self.horizon

    def readings(self) -> list[bool]:
        """Whether unrecorded tails count as mid-range: when that is smaller, both when equal."""
        costs = self.costs
        centred = costs.about_centre < costs.plain
        if abs(costs.about_centre - costs.plain) <= AGREEMENT * costs.plain:
            return [centred, not centred]
        return [centred]

    def trivial(self, sign: float = 1.0) -> float:
        """What no gap exceeds; with sign -1, what minus a gap does not exceed."""
        costs, h = self.costs, self.horizon
        if self.target is None:
            return 2 * costs.smaller * h
        plain = costs.plain * h + costs.gap(-sign * self.target)
        return min(
            plain, costs.about_centre * h + costs.gap(sign * (h * costs.centre - self.target))
        )


@dataclass(frozen=True, eq=False)
class Episodes:
    """What every demonstration cost, and the time without a record behind it."""

    totals: Floats
    missing: Floats


@dataclass(frozen=True, eq=False)
class Walked:
    """Demonstrations as one row per step."""

    states: Ints
    actions: Ints
    following: Ints
    episode: Ints
    time: Ints
    starts: Ints
    lengths: Ints


@dataclass(frozen=True, eq=False)
class Form:
    """A policy as figures, and the form they are put into."""

    told: dict[str, Any]
    arrays: dict[str, Any]

    def figures(self, what: str, name: str) -> Floats:
        return reals(self.arrays, f"{what} of the {name}", 1)

    def wholes(self, what: str, name: str) -> Ints:
        return wholes(self.arrays, f"{what} of the {name}")


def read_large_question(data: bytes) -> LargeQuestion:
    header, arrays = archive(data, "large problem", 1)
    names, discount = words(header, "names"), header.get("discount")
    if not isinstance(discount, float) or not 0 < discount < 1:
        raise Refused(f"its discount is {discount!r}")
    count = len(names)
    low, high = (reals(arrays, name, 1, count) for name in ("lowest", "highest"))
    extremes, scale = reals(arrays, "extremes", 2), np.ones(count)
    if "scale" in arrays:
        scale = reals(arrays, "scale", 1, count)
    if not count or extremes.shape[1] != count or (low > high).any() or (scale <= 0).any():
        raise Refused("ranges, extreme rows or scales of the costs are not sound")
    if ("target" in arrays) != header.get("declared"):
        raise Refused("it does not say whether the expert's expectations were declared")
    target = reals(arrays, "target", 1, count) if "target" in arrays else None
    sizes = (header.get("num_states"), header.get("num_actions"))
    if sizes != (None, None) and not all(type(one) is int and one > 0 for one in sizes):
        raise Refused(f"the world has sizes {sizes}")
    return LargeQuestion(
        names, Costs(str(header.get("cost_class")), scale, extremes), low, high,
        float(reals(arrays, "largest", 0)), discount, target,
        None if sizes == (None, None) else (int(sizes[0] or 0), int(sizes[1] or 0)),
    )  # fmt: skip


def read_episodes(data: bytes, question: LargeQuestion) -> Episodes:
    _, arrays = archive(data, "totals", 1)
    totals, missing = reals(arrays, "totals", 2), reals(arrays, "unrecorded", 1)
    if not missing.size or totals.shape != (missing.size, len(question.names)):
        raise Refused("it has not one total of every cost for every episode")
    if (missing < 0).any() or (missing > question.horizon * (1 + AGREEMENT)).any():
        raise Refused("an episode has more time behind it than there is")
    ends = (question.costs.ends[0] - 1e-9, question.costs.ends[1] + 1e-9)
    time = (question.horizon - missing)[:, np.newaxis]
    slack = AGREEMENT * question.costs.norms * question.horizon
    if (totals < ends[0] * time - slack).any() or (totals > ends[1] * time + slack).any():
        raise Refused("an episode costs more or less than the ranges allow")
    return Episodes(totals, missing)


def read_walked(data: bytes, question: LargeQuestion) -> Walked:
    _, arrays = archive(data, "demonstrations", 1)
    states, actions, offsets = (wholes(arrays, name) for name in ("states", "actions", "offsets"))
    lengths = np.diff(offsets)
    if not lengths.size or offsets[0] != 0 or (lengths < 1).any():
        raise Refused("its offsets do not describe episodes")
    if actions.size != offsets[-1] or states.size != actions.size + lengths.size:
        raise Refused("it has not one state more than actions in every episode")
    most = question.sizes
    if most is None or (states < 0).any() or (actions < 0).any():
        raise Refused("demonstrations do not belong to this problem")
    if (states >= most[0]).any() or (actions >= most[1]).any():
        raise Refused("it visits a state or takes an action that the world lacks")
    episode = np.arange(lengths.size).repeat(lengths)
    at = np.arange(actions.size) + episode
    time = np.arange(actions.size) - offsets[:-1].repeat(lengths)
    starts = states[offsets[:-1] + np.arange(lengths.size)]
    return Walked(states[at], actions, states[at + 1], episode, time, starts, lengths)


def read_form(data: bytes) -> Form:
    header, arrays = archive(data, "policy of a large world", 1)
    told = header.get("policy")
    if not isinstance(told, dict) or "form" not in told:
        raise Refused("it tells of no policy")
    return Form(told, arrays)


def check_extremes(ledger: Ledger, question: LargeQuestion) -> None:
    """Whether the stored extreme rows are at least as large as what lies in the ranges."""
    low, high, scale = question.lowest, question.highest, question.costs.scale
    members, costs = _members(question), question.costs
    found = Costs(costs.kind, scale, members)
    slack = 1 + 1e-9
    ledger.check(
        (costs.ends[0] >= low - 1e-9 * np.abs(low)).all()
        and (costs.ends[1] <= high + 1e-9 * np.abs(high)).all(),
        "extreme rows of the costs lie outside their declared ranges",
    )
    tiny = 1e-9 * costs.norms
    ledger.check(
        (found.ends[0] >= costs.ends[0] - tiny).all()
        and (found.ends[1] <= costs.ends[1] + tiny).all(),
        "costs in their declared ranges can lie outside the extreme rows",
    )
    centre = costs.centre
    for power in (1, 2):
        for about in (np.zeros(centre.size), centre):
            sizes = [((scale * np.abs(rows - about)) ** power).sum(axis=1).max()
                     for rows in (members, costs.matrix)]  # fmt: skip
            ledger.check(
                sizes[0] <= sizes[1] * slack, "costs in their ranges can be larger than told"
            )


def _members(question: LargeQuestion) -> Floats:
    """Rows of Q: from the least costs on, one cost after the other is moved to an end of its range
    as far as the largest sum allows."""
    low, high = question.lowest, question.highest
    least = np.minimum(np.maximum(low, 0.0), high)
    rng = np.random.default_rng(0)
    rows = np.tile(least, (PROBES + 2 * low.size, 1))
    for number, row in enumerate(rows):
        left = question.largest - np.abs(row).sum()
        order = rng.permutation(low.size)
        ends = np.where(rng.random(low.size) < 0.5, low, high)
        if number % 2:
            ends = np.where(np.abs(low) > np.abs(high), low, high)
        for i in order:
            step = min(abs(ends[i]) - abs(row[i]), max(left, 0.0))
            if step > 0:
                row[i] += np.sign(ends[i]) * step if row[i] == 0 else np.sign(row[i]) * step
                left -= step
    return rows
