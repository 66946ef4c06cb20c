"""Expert and apprentice, cost by cost, in the sign in which the features were given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from journeyman.arrays import FloatArray
from journeyman.certificate.certificate import Certificate
from journeyman.certificate.evaluation import Interval
from journeyman.costs import CostBasis
from journeyman.report.certificate_sections import totals_in_words
from journeyman.report.drawing import (
    Across,
    Element,
    axis,
    diamond,
    label,
    mark,
    picture,
    shortened,
    tag,
)
from journeyman.report.numbers import exact_column, number, signed_column
from journeyman.report.rendering import Section
from journeyman.report.report_data import ReportData


@dataclass(frozen=True, eq=False)
class CostRanges:
    """Where the expectations of one of the two lie, one entry per cost."""

    low: FloatArray
    middle: FloatArray
    high: FloatArray

    def at(self, order: Sequence[int]) -> "CostRanges":
        index = np.asarray(order, dtype=int)
        return CostRanges(self.low[index], self.middle[index], self.high[index])


@dataclass(frozen=True, eq=False)
class CostComparison:
    """Expert and apprentice, and what their intervals mean."""

    names: tuple[str, ...]
    expert: CostRanges
    apprentice: CostRanges
    expert_words: str
    apprentice_words: str
    rewards: bool

    @property
    def differences(self) -> FloatArray:
        return self.apprentice.middle - self.expert.middle

    def most_different(self, most: int) -> "CostComparison":
        """The costs with the largest differences, in their old order; all where they are few."""
        if len(self.names) <= most:
            return self
        largest = np.argsort(-np.abs(self.differences), kind="stable")[:most]
        order = [int(index) for index in np.sort(largest)]
        return CostComparison(
            tuple(self.names[index] for index in order), self.expert.at(order),
            self.apprentice.at(order), self.expert_words, self.apprentice_words, self.rewards,
        )  # fmt: skip


def comparison_of(data: ReportData) -> CostComparison | None:
    """What is known of single costs; None where that is nothing, or where there is no expert."""
    certificate = data.certificate
    if certificate.known_cost or certificate.agreement is not None:
        return None
    return _certified(certificate) if certificate.is_exact else _sampled(certificate)


def _certified(certificate: Certificate) -> CostComparison:
    """Intervals of the certificate."""
    basis = certificate.problem.basis
    chance = f"{1 - certificate.failure_probability:.4g}"
    declared = certificate.problem.expectation.is_declared
    whole = f"intervals of all costs hold together with probability {chance}"
    exact = not certificate.problem.world.is_estimated
    return CostComparison(
        basis.names,
        _ranges(basis, certificate.expert_intervals, certificate.problem.target),
        _ranges(basis, certificate.apprentice_intervals, certificate.expectations),
        f"expert: {'declared' if declared else whole}",
        f"apprentice: {'evaluated exactly' if exact else 'as wide as the model allows'}",
        basis.rewards,
    )  # fmt: skip


def _ranges(basis: CostBasis, intervals: Sequence[Interval], middle: FloatArray) -> CostRanges:
    ends = np.array([(one.low, one.high) for one in intervals])
    turned = np.sort(np.array([basis.as_given(end) for end in ends.T]), axis=0)
    return CostRanges(turned[0], basis.as_given(middle), turned[1])


def _sampled(certificate: Certificate) -> CostComparison | None:
    """Means and twice their standard errors, where single costs were sampled."""
    samples, problem = certificate.best.statistics, certificate.problem
    basis, expectation = problem.basis, problem.expectation
    if len(samples) != 1 or len(samples[0].means) != basis.num_costs:
        return None
    sample = samples[0]
    centre = np.array(sample.means) + basis.centre * sample.unrecorded
    ours = 2 * np.sqrt(np.array(sample.variances) / sample.count)
    theirs = 2 * expectation.spread / np.sqrt(expectation.num_trajectories or 1)
    words = "mean and two standard errors of {} {}, no part of the certificate"
    demos = expectation.num_trajectories
    return CostComparison(
        basis.names,
        _around(basis, problem.target, theirs),
        _around(basis, centre, ours),
        "expert: declared" if demos is None else
        f"expert: {words.format(f'{demos:,}', 'demonstrations')}",
        f"apprentice: {words.format(f'{sample.count:,}', 'rollouts')}",
        basis.rewards,
    )  # fmt: skip


def _around(basis: CostBasis, centre: FloatArray, radius: FloatArray) -> CostRanges:
    middle = basis.as_given(centre)
    return CostRanges(middle - radius, middle, middle + radius)


ROW, TEXT = 44, 14
LONGEST = 36
MOST_DRAWN, MOST_LISTED = 16, 64
"""Costs in the picture and in the table; of more, those with the largest differences."""


def costs(data: ReportData, prefix: str) -> Section | None:
    """Cost by cost as a picture, two intervals for every cost on one axis, and as a table; None
    where single costs are not known."""
    found = comparison_of(data)
    if found is None:
        return None
    kind = "reward" if found.rewards else "cost"
    drawn, listed = found.most_different(MOST_DRAWN), found.most_different(MOST_LISTED)
    totals, per_step = totals_in_words(data)
    content = {
        "totals": totals.replace("cost", kind), "per_step": per_step,
        "kind": kind, "better": "higher" if found.rewards else "lower",
        "drawn": len(drawn.names), "all": len(found.names),
        "expert_words": found.expert_words, "apprentice_words": found.apprentice_words,
        "picture": _picture(drawn, kind, f"{prefix}intervals"), "rows": _rows(listed, data.horizon),
    }  # fmt: skip
    return Section("costs", f"Expert and apprentice, {kind} by {kind}", content, link="Costs")


def _picture(found: CostComparison, kind: str, name: str) -> Markup:
    parts = [part for one in (found.expert, found.apprentice) for part in vars(one).values()]
    scale = Across.covering([float(value) for part in parts for value in part])
    changes = signed_column(found.differences, [scale.high, scale.low])
    rows: list[Element] = []
    for index, cost in enumerate(found.names):
        top = ROW * index
        rows += [
            label(shortened(cost, LONGEST), "0%", top + TEXT, cls="start over"),
            label(changes[index].text, "100%", top + TEXT, cls="end over quiet"),
            *_interval(scale, found.expert, index, top + TEXT + 10, "expert"),
            *_interval(scale, found.apprentice, index, top + TEXT + 19, "apprentice"),
        ]
    largest = int(abs(found.differences).argmax())
    return picture(
        name, f"Expert and apprentice for each {kind}",
        f"For each of {len(found.names)} {kind}s an interval of the expert and one of the "
        f"apprentice; the largest difference is {number(float(found.differences[largest]))}, in "
        f"{shortened(found.names[largest], LONGEST)}.",
        ROW * len(found.names) + 24, *axis(scale, len(found.names), ROW, TEXT + 4), *rows,
    )  # fmt: skip


def _interval(scale: Across, ranges: CostRanges, index: int, y: float, kind: str) -> list[Element]:
    """A line from end to end with a mark in the middle: round for the expert, a diamond for us."""
    low, middle, high = (float(part[index]) for part in (ranges.low, ranges.middle, ranges.high))
    shape = tag("circle", r="4", cls="mark expert") if kind == "expert" else diamond()
    return [
        tag("line", x1=scale.at(low), x2=scale.at(high), y1=f"{y:g}", y2=f"{y:g}",
            cls=f"range {kind}"),
        mark(scale.at(middle), y, shape),
    ]  # fmt: skip


def _rows(found: CostComparison, horizon: float) -> list[dict[str, Any]]:
    whole = [float(value) for one in (found.expert, found.apprentice) for value in one.middle]
    count = len(found.names)
    middles = exact_column(whole)
    ends = exact_column([*found.expert.low, *found.expert.high], whole)
    columns = {
        "name": found.names, "expert": middles[:count], "apprentice": middles[count:],
        "low": ends[:count], "high": ends[count:],
        "difference": signed_column(found.differences, whole),
        "per_step": signed_column(found.differences / horizon, [v / horizon for v in whole]),
    }  # fmt: skip
    return [{name: column[index] for name, column in columns.items()} for index in range(count)]
