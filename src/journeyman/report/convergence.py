"""How the answer was found: its outcome in figures, and bounds or loss against time."""

import math
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.report.drawing import Across, Element, label, percent, picture, tag
from journeyman.report.elements import Place, beside, facts, figures, legend, table
from journeyman.report.line_chart import linear_ticks, log_ticks, tick_label
from journeyman.report.numbers import figure, seconds
from journeyman.report.report_data import AnyAnswer, Subject
from journeyman.solvers import Answer
from journeyman.solvers.large_answer import LargeAnswer
from journeyman.solvers.mixture_answer import MixtureAnswer

# How an answer was approached: lines against time, read off whatever trace its solver left.


@dataclass(frozen=True, eq=False)
class Trace:
    """Lines over the same moments."""

    moments: FloatArray
    unit: str
    """Of the moments."""
    lines: dict[str, FloatArray]
    """The first comes from above."""
    words: str

    @classmethod
    def of(
        cls, moments: FloatArray, unit: str, lines: dict[str, FloatArray], words: str
    ) -> "Trace":
        """With the moments at which every line is finite; `moments` rise."""
        sound = np.isfinite(np.array([moments, *lines.values()])).all(axis=0)
        kept = {name: line[sound] for name, line in lines.items()}
        return cls(moments[sound], unit, kept, words)

    def thinned(self, most: int) -> "Trace":
        """At most so many moments, first and last among them."""
        count = self.moments.size
        if count <= most:
            return self
        index = np.unique(np.rint(np.linspace(0, count - 1, most)).astype(int))
        lines = {name: line[index] for name, line in self.lines.items()}
        return Trace(self.moments[index], self.unit, lines, self.words)


def trace_of(subject: Subject) -> Trace | None:
    """The trace, if there is one with two moments or more."""
    found = _bounds(subject) if subject.answer is None else _of_answer(subject.answer)
    return found if found is not None and found.moments.size > 1 else None


def _bounds(subject: Subject) -> Trace | None:
    run = subject.run
    return None if run is None or run.bounds_trace is None else _both_bounds(run.bounds_trace)


def _of_answer(answer: AnyAnswer) -> Trace | None:
    if isinstance(answer, Answer):
        return _of_explicit(answer)
    if answer.trace is None or not answer.trace.size:
        return None
    if isinstance(answer, LargeAnswer):
        _, clock, loss, _ = answer.trace.T
        words = "The loss bounds the gap on the data; it is an estimate from fresh rows."
        return Trace.of(clock, "seconds", {"loss": loss}, words)
    rounds, _, value, least = answer.trace.T
    lines = {"gap of the mixture": value, "no mixture is below": least}
    return Trace.of(rounds, "rounds", lines, "On the rollouts and the demonstrations.")


def _of_explicit(answer: Answer) -> Trace | None:
    if answer.bounds_trace is not None:
        return _both_bounds(answer.bounds_trace)
    if answer.optimisation is None or not answer.optimisation.trace:
        return None
    points = answer.optimisation.trace
    clock, loss, bound = (
        np.array([getattr(point, name) for point in points])
        for name in ("seconds", "loss", "bound")
    )
    lines = {"loss": loss, "no coefficients are below": bound}
    words = "The loss of the average so far, which bounds the gap on the data."
    proven = np.isfinite(bound)
    if not proven.all():
        return Trace.of(clock, "seconds", {"loss": loss}, words)
    return Trace.of(clock, "seconds", lines, words)


def _both_bounds(trace: FloatArray) -> Trace:
    clock, low, high = trace.T
    lines = {"best policy at hand": high, "no policy is below": low}
    return Trace.of(clock, "seconds", lines, "Both bounds on the smallest gap on the data.")


HEIGHT, TOP, BOTTOM = 270, 18, 240
"""Of the picture, of the highest point and of the axis, in pixels."""
LEFT = 13
"""Per cents of the width for the figures of the upright axis."""
WIDE = 1000
"""Units across the nested picture that holds the lines."""
OUTCOME = "The solver and its outcome"
MOST_POINTS, MOST_ROWS = 160, 8
STEEP = 30.0
"""From this ratio on equal ratios have equal distances."""


def convergence(subject: Subject, place: Place) -> Element | None:
    """None when neither the answer nor a trace of it is known."""
    trace = trace_of(subject)
    told = _told(subject)
    if trace is None and told is None:
        return None
    drawn = [] if trace is None else _drawn(trace, place)
    return place.section("convergence", "How it was found", told, *drawn)


def _told(subject: Subject) -> Element | None:
    """Solver, status and times, from the answer or from what was kept of it."""
    if subject.answer is not None:
        return _outcome(subject.answer)
    if subject.run is None or not subject.run.found:
        return None
    return facts(OUTCOME, list(subject.run.found.items()))


def _outcome(answer: AnyAnswer) -> Element:
    before = (
        ("rollouts", answer.rollout_seconds)
        if isinstance(answer, MixtureAnswer)
        else ("building", answer.build_seconds)
    )
    clock = [(name, seconds(time)) for name, time in (before,) if time > 0]
    return facts(
        OUTCOME,
        [
            ("solver", answer.engine),
            ("status", f"{answer.status.name}: {answer.status.message}"),
            *clock,
            ("solving", seconds(answer.solve_seconds)),
        ],
    )


def _drawn(trace: Trace, place: Place) -> list[Element]:
    keys = zip(("line", "dashes"), trace.lines, strict=False)
    return [
        tag("p", f"{trace.words} In cost units, against {trace.unit}."),
        legend(*keys),
        beside(_chart(trace.thinned(MOST_POINTS), place), _table(trace.thinned(MOST_ROWS))),
    ]


def _chart(trace: Trace, place: Place) -> Element:
    heights = _Heights([float(value) for line in trace.lines.values() for value in line])
    across = Across(float(trace.moments[0]), float(trace.moments[-1]))
    parts: list[Element] = []
    for tick in heights.ticks:
        y = heights.at(tick)
        shown = tick_label(tick).replace("-", "−")
        parts.append(tag("line", x1=f"{LEFT}%", x2="100%", y1=f"{y:g}", y2=f"{y:g}", cls="grid"))
        parts.append(label(shown, f"{LEFT - 2}%", y + 4, cls="end quiet"))
    for tick in across.ticks():
        at = float(across.at(tick)[:-1])
        side = "start" if at < 5 else "end" if at > 94 else "middle"
        x = percent(LEFT + (100 - LEFT) / 100 * at)
        parts.append(label(tick_label(tick), x, BOTTOM + 20, cls=f"quiet {side}"))
    lines = [
        _line(trace.moments, values, across, heights, kind)
        for kind, values in zip(("apprentice", "limit"), trace.lines.values(), strict=False)
    ]
    plot = tag(
        "svg", *lines, x=f"{LEFT}%", width=f"{100 - LEFT}%", height=f"{HEIGHT}",
        viewBox=f"0 0 {WIDE} {HEIGHT}", preserveAspectRatio="none", aria_hidden="true",
    )  # fmt: skip
    ends = ", ".join(
        f"{name} from {figure(float(line[0]))} to {figure(float(line[-1]))}"
        for name, line in trace.lines.items()
    )
    ruled = " (logarithmic scale)" if heights.log else ""
    return picture(
        place.name("trace"), f"Convergence against {trace.unit}{ruled}",
        f"{ends}, after {figure(float(trace.moments[-1]))} {trace.unit}.", HEIGHT, *parts, plot,
    )  # fmt: skip


def _line(
    moments: FloatArray, values: FloatArray, across: Across, heights: "_Heights", kind: str
) -> Element:
    """A path whose stroke keeps its width however the picture is stretched."""
    points = [
        f"{WIDE / 100 * float(across.at(float(x))[:-1]):.4g},{heights.at(float(y)):.4g}"
        for x, y in zip(moments, values, strict=True)
    ]
    return tag("path", d="M" + "L".join(points), cls=f"trace {kind}")


class _Heights:
    """From values to pixels from the top."""

    def __init__(self, values: list[float]) -> None:
        low, high = min(values), max(values)
        self.log = low > 0 and high / low >= STEEP
        low, high = self._place(low), self._place(high)
        room = 0.04 * (high - low) or abs(low) / 10 or 1.0
        self.low, self.high = low - room, high + room
        ticks = (log_ticks if self.log else linear_ticks)(self.low, self.high)
        self.ticks = ticks if len(ticks) <= 6 else ticks[::2]

    def _place(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def at(self, value: float) -> float:
        share = (self._place(value) - self.low) / (self.high - self.low)
        return round(BOTTOM - (BOTTOM - TOP) * share, 2)


def _table(trace: Trace) -> Element:
    columns = [figures([float(value) for value in line]) for line in trace.lines.values()]
    moments = [f"{float(moment):.4g}" for moment in trace.moments]
    return table(
        f"The same at {len(moments)} moments", [trace.unit, *trace.lines],
        list(zip(moments, *columns, strict=True)),
    )  # fmt: skip
