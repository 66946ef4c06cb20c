"""Expert and apprentice, cost by cost, in the sign in which the features were given."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.certificate import Certificate
from journeyman.certificate.intervals import Interval
from journeyman.certificate.large_certificate import LargeCertificate
from journeyman.costs import CostBasis
from journeyman.report.drawing import Across, Element, axis, label, name_of, picture, shortened, tag
from journeyman.report.elements import Place, above, beside, figures, legend, table
from journeyman.report.numbers import column, exactly, figure, signed
from journeyman.report.report_data import Subject


@dataclass(frozen=True, eq=False)
class Side:
    """Where the expectations of one of the two lie, one entry per cost."""

    low: FloatArray
    middle: FloatArray
    high: FloatArray

    def at(self, order: Sequence[int]) -> "Side":
        index = np.asarray(order, dtype=int)
        return Side(self.low[index], self.middle[index], self.high[index])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Both sides, and what their intervals mean."""

    names: tuple[str, ...]
    expert: Side
    apprentice: Side
    expert_words: str
    apprentice_words: str
    rewards: bool

    @property
    def differences(self) -> FloatArray:
        return self.apprentice.middle - self.expert.middle

    def most_different(self, most: int) -> "Comparison":
        """The costs with the largest differences, in their old order; all where they are few."""
        if len(self.names) <= most:
            return self
        largest = np.argsort(-np.abs(self.differences), kind="stable")[:most]
        order = [int(index) for index in np.sort(largest)]
        return Comparison(
            tuple(self.names[index] for index in order), self.expert.at(order),
            self.apprentice.at(order), self.expert_words, self.apprentice_words, self.rewards,
        )  # fmt: skip


def comparison_of(subject: Subject) -> Comparison | None:
    """What is known of single costs; None where that is nothing, or where there is no expert."""
    if not subject.has_expert:
        return None
    if isinstance(subject.certificate, Certificate):
        return _certified(subject.certificate)
    return _sampled(subject.certificate)


def _certified(certificate: Certificate) -> Comparison:
    """Intervals of the certificate."""
    basis = certificate.problem.basis
    chance = f"{1 - certificate.failure_probability:.4g}"
    declared = certificate.problem.expectation.is_declared  # type: ignore[attr-defined]
    whole = f"intervals of all costs hold together with probability {chance}"
    exact = not certificate.problem.world.is_estimated
    return Comparison(
        basis.names,
        _side(basis, certificate.expert_intervals, certificate.problem.target),
        _side(basis, certificate.apprentice_intervals, certificate.expectations),
        f"expert: {'declared' if declared else whole}",
        f"apprentice: {'evaluated exactly' if exact else 'as wide as the model allows'}",
        basis.rewards,
    )  # fmt: skip


def _side(basis: CostBasis, intervals: Sequence[Interval], middle: FloatArray) -> Side:
    ends = np.array([(one.low, one.high) for one in intervals])
    turned = np.sort(np.array([basis.as_given(end) for end in ends.T]), axis=0)
    return Side(turned[0], basis.as_given(middle), turned[1])


def _sampled(certificate: LargeCertificate) -> Comparison | None:
    """Means and twice their standard errors, where single costs were sampled."""
    samples, problem = certificate.best.statistics, certificate.problem
    basis, expectation = problem.basis, problem.expectation
    if len(samples) != 1 or len(samples[0].means) != basis.num_costs:
        return None
    sample = samples[0]
    centre = np.array(sample.means) + basis.centre * sample.unrecorded
    ours = 2 * np.sqrt(np.array(sample.variances) / sample.count)
    theirs = 2 * expectation.spread / np.sqrt(expectation.num_trajectories or 1)
    told = "mean and two standard errors of {} {}, no part of the certificate"
    demos = expectation.num_trajectories
    return Comparison(
        basis.names,
        _around(basis, problem.target, theirs),
        _around(basis, centre, ours),
        "expert: declared" if demos is None else
        f"expert: {told.format(f'{demos:,}', 'demonstrations')}",
        f"apprentice: {told.format(f'{sample.count:,}', 'rollouts')}",
        basis.rewards,
    )  # fmt: skip


def _around(basis: CostBasis, centre: FloatArray, radius: FloatArray) -> Side:
    middle = basis.as_given(centre)
    return Side(middle - radius, middle, middle + radius)


# Expert against apprentice as a picture: two intervals for every cost on one axis.

ROW, TEXT = 44, 14
LONGEST = 36
MOST_DRAWN, MOST_LISTED = 16, 64
"""Costs in the picture and in the table; of more, those with the largest differences."""


def costs(subject: Subject, place: Place) -> Element | None:
    """Cost by cost; None where single costs are not known."""
    found = comparison_of(subject)
    if found is None:
        return None
    kind = "reward" if found.rewards else "cost"
    better = "higher is better" if found.rewards else "lower is better"
    drawn, listed = found.most_different(MOST_DRAWN), found.most_different(MOST_LISTED)
    return place.section(
        "costs", f"Expert and apprentice, {kind} by {kind}",
        tag("p", f"Expected discounted totals in {kind} units; {better}.", _left(found, drawn)),
        legend(("expert", found.expert_words), ("apprentice", found.apprentice_words)),
        beside(_picture(drawn, kind, place), _table(listed, kind, subject.horizon)),
    )  # fmt: skip


def _left(found: Comparison, drawn: Comparison) -> str:
    if len(drawn.names) == len(found.names):
        return ""
    return (
        f" Drawn are the {len(drawn.names)} of {len(found.names):,} with the largest differences."
    )


def _picture(found: Comparison, kind: str, place: Place) -> Element:
    parts = [part for side in (found.expert, found.apprentice) for part in vars(side).values()]
    scale = Across.covering([float(value) for part in parts for value in part])
    bottom = ROW * len(found.names)
    changes = _signed(found.differences, [scale.high, scale.low])
    rows: list[Element] = []
    for index, name in enumerate(found.names):
        top = ROW * index
        rows += [
            label(shortened(name, LONGEST), "0%", top + TEXT, cls="start over"),
            label(changes[index], "100%", top + TEXT, cls="end over quiet"),
            *_interval(scale, found.expert, index, top + TEXT + 10, "expert"),
            *_interval(scale, found.apprentice, index, top + TEXT + 19, "apprentice"),
        ]  # fmt: skip
    largest = int(abs(found.differences).argmax())
    return picture(
        place.name("intervals"), f"Expert and apprentice for each {kind}",
        f"For each of {len(found.names)} {kind}s an interval of the expert and one of the "
        f"apprentice; the largest difference is {figure(float(found.differences[largest]))}, in "
        f"{shortened(found.names[largest], LONGEST)}.",
        bottom + 24, *axis(scale, len(found.names), ROW, TEXT + 4), *rows,
    )  # fmt: skip


def _interval(scale: Across, side: Side, index: int, y: float, kind: str) -> list[Element]:
    """A line from end to end with a mark in the middle: round for the expert, a diamond for us."""
    low, middle, high = (float(part[index]) for part in (side.low, side.middle, side.high))
    mark = (
        tag("circle", r="4", cls=f"mark {kind}") if kind == "expert"
        else tag("path", d="M0-5.2L5.2 0L0 5.2L-5.2 0z", cls=f"mark {kind}")
    )  # fmt: skip
    return [
        tag("line", x1=scale.at(low), x2=scale.at(high), y1=f"{y:g}", y2=f"{y:g}",
            cls=f"range {kind}"),
        tag("svg", mark, x=scale.at(middle), y=f"{y:g}", overflow="visible",
            aria_hidden="true"),
    ]  # fmt: skip


def _table(found: Comparison, kind: str, horizon: float) -> Element:
    change = [float(value) for value in found.differences]
    whole = [float(value) for side in (found.expert, found.apprentice) for value in side.middle]
    count = len(change)
    middles, ends = figures(whole), _ranges(found.expert, whole)
    differences = [
        exactly(*cell) for cell in zip(change, _signed(found.differences, whole), strict=True)
    ]
    per_step = found.differences / horizon
    steps = [
        exactly(*cell)
        for cell in zip(
            per_step, _signed(per_step, [value / horizon for value in whole]), strict=True
        )
    ]
    rows = zip(
        [name_of(name) for name in found.names],
        (above(*cell) for cell in zip(middles[:count], ends, strict=True)),
        middles[count:],
        (above(*cell) for cell in zip(differences, steps, strict=True)),
        strict=True,
    )
    return table(
        f"Expected discounted {kind}s: the expert with its interval below, the apprentice, and the "
        "difference of the two with that per step, times 1 − discount, below",
        [kind, "expert", "apprentice", "difference"], list(rows),
    )  # fmt: skip


def _signed(values: FloatArray, like: list[float]) -> list[str]:
    shown = column(values.tolist(), like)
    return [signed(value, text) for value, text in zip(values.tolist(), shown, strict=True)]


def _ranges(side: Side, like: list[float]) -> list[Element | None]:
    """Both ends in one cell; none where they are one."""
    ends = figures([float(value) for value in (*side.low, *side.high)], like)
    count = len(side.low)
    return [
        None
        if side.low[i] == side.high[i]
        else tag("span", ends[i], " … ", tag("wbr"), ends[count + i])
        for i in range(count)
    ]
