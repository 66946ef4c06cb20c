"""How the answer was found: its outcome in figures, and bounds or loss against time."""

import math

from journeyman.arrays import FloatArray
from journeyman.report.drawing import Across, label, percent, picture
from journeyman.report.figures import figure, seconds
from journeyman.report.line_chart import linear_ticks, log_ticks, tick_label
from journeyman.report.markup import Element, tag
from journeyman.report.sections import Place, beside, legend
from journeyman.report.subject import AnyAnswer, Subject
from journeyman.report.tables import facts, figures, table
from journeyman.report.traces import Trace, trace_of
from journeyman.solvers.mixture_answer import MixtureAnswer

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
