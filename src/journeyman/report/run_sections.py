"""How the answer was found (the solver's outcome, and bounds or loss against time, as lines that
are read off whatever trace the solver left), and everything needed to reproduce it: versions,
seeds, SHA-256 of inputs, commands.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from journeyman.arrays import FloatArray, IntArray
from journeyman.certificate.certificate import Certificate
from journeyman.demonstrations import Demonstrations
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship
from journeyman.report.drawing import (
    Across,
    Element,
    Scale,
    anchor,
    label,
    percent,
    picture,
    tag,
    tick_text,
)
from journeyman.report.numbers import exact_column, number, seconds
from journeyman.report.rendering import Section
from journeyman.report.report_data import ReportData
from journeyman.solvers import Answer
from journeyman.storage import digest
from journeyman.world import Pairs

HEIGHT, TOP, BOTTOM = 270, 18, 240
"""Of the picture, of the highest point and of the axis, in pixels."""
LEFT = 13
"""Per cents of the width for the numbers of the upright axis."""
WIDE = 1000
"""Units across the nested picture that holds the lines."""
MOST_POINTS, MOST_ROWS = 160, 8
STEEP = 30.0
"""From this ratio on equal ratios have equal distances."""


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


def trace_of(data: ReportData) -> Trace | None:
    """The trace, if there is one with two moments or more."""
    found = _bounds(data) if data.answer is None else trace_of_answer(data.answer)
    return found if found is not None and found.moments.size > 1 else None


def _bounds(data: ReportData) -> Trace | None:
    run = data.run
    return None if run is None or run.bounds_trace is None else _both_bounds(run.bounds_trace)


def trace_of_answer(answer: Answer) -> Trace | None:
    """The lines that a solver has left, if it has."""
    if answer.candidates is not None:
        rounds, _, value, least = answer.candidates.trace.T
        lines = {"gap of the mixture": value, "no mixture is below": least}
        return Trace.of(rounds, "rounds", lines, "On the rollouts and the demonstrations.")
    if answer.bounds_trace is not None:
        return _both_bounds(answer.bounds_trace)
    if answer.optimisation is None or not answer.optimisation.trace:
        return None
    points = answer.optimisation.trace
    clock, loss, bound = (
        np.array([getattr(point, name) for point in points])
        for name in ("seconds", "loss", "bound")
    )
    if answer.reduced is not None and answer.reduced.is_estimate:
        words = "The loss bounds the gap on the data; it is an estimate from fresh rows."
        return Trace.of(clock, "seconds", {"loss": loss}, words)
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


def convergence(data: ReportData, prefix: str) -> Section | None:
    """None when neither the answer nor a trace of it is known."""
    trace = trace_of(data)
    outcome = _outcome(data.answer) if data.answer is not None else _kept_outcome(data)
    if trace is None and not outcome:
        return None
    content: dict[str, Any] = {"outcome": outcome, "trace": trace}
    if trace is not None:
        listed = trace.thinned(MOST_ROWS)
        cells = zip(*(exact_column(line) for line in listed.lines.values()), strict=True)
        moments = [f"{float(moment):.4g}" for moment in listed.moments]
        content |= {
            "legend": list(zip(("line", "dashes"), trace.lines, strict=False)),
            "picture": _chart(trace.thinned(MOST_POINTS), f"{prefix}trace"),
            "rows": list(zip(moments, cells, strict=True)),
        }
    return Section("convergence", "How it was found", content, link="Solver")


def _kept_outcome(data: ReportData) -> list[tuple[str, str]]:
    """Solver, status and time, where they were kept beside a saved run."""
    return [] if data.run is None else list(data.run.found.items())


def _outcome(answer: Answer) -> list[tuple[str, str]]:
    before = ("rollouts" if answer.candidates else "building", answer.build_seconds)
    return [
        ("solver", answer.engine),
        *((("chosen for", answer.reason),) if answer.reason else ()),
        ("status", f"{answer.status.name}: {answer.status.message}"),
        *((name, seconds(time)) for name, time in (before,) if time > 0),
        ("solving", seconds(answer.solve_seconds)),
    ]


def _chart(trace: Trace, name: str) -> Markup:
    heights = Scale(
        [float(value) for line in trace.lines.values() for value in line], steep=STEEP, least=0.0
    )
    across = Across(float(trace.moments[0]), float(trace.moments[-1]))
    parts: list[Element] = []
    for tick in heights.ticks:
        y = _height(heights, tick)
        parts.append(tag("line", x1=f"{LEFT}%", x2="100%", y1=f"{y:g}", y2=f"{y:g}", cls="grid"))
        parts.append(label(tick_text(tick), f"{LEFT - 2}%", y + 4, cls="end quiet"))
    for tick in across.ticks:
        share = across.share(tick)
        x = percent(LEFT + (100 - LEFT) * share)
        parts.append(label(tick_text(tick), x, BOTTOM + 20, cls=f"quiet {anchor(share)}"))
    lines = [
        _line(trace.moments, values, across, heights, kind)
        for kind, values in zip(("apprentice", "limit"), trace.lines.values(), strict=False)
    ]
    plot = tag(
        "svg", *lines, x=f"{LEFT}%", width=f"{100 - LEFT}%", height=f"{HEIGHT}",
        viewBox=f"0 0 {WIDE} {HEIGHT}", preserveAspectRatio="none", aria_hidden="true",
    )  # fmt: skip
    ends = ", ".join(
        f"{line_name} from {number(float(line[0]))} to {number(float(line[-1]))}"
        for line_name, line in trace.lines.items()
    )
    return picture(
        name, f"Convergence against {trace.unit}{heights.words}",
        f"{ends}, after {number(float(trace.moments[-1]))} {trace.unit}.", HEIGHT, *parts, plot,
    )  # fmt: skip


def _line(
    moments: FloatArray, values: FloatArray, across: Across, heights: Scale, kind: str
) -> Element:
    """A path whose stroke keeps its width however the picture is stretched."""
    points = [
        f"{WIDE * across.share(float(x)):.4g},{_height(heights, float(y)):.4g}"
        for x, y in zip(moments, values, strict=True)
    ]
    return tag("path", d="M" + "L".join(points), cls=f"trace {kind}")


def _height(scale: Scale, value: float) -> float:
    """Pixels from the top."""
    return round(BOTTOM - (BOTTOM - TOP) * scale.share(value), 2)


def reproduction(data: ReportData, prefix: str) -> Section:
    """The last section of every report."""
    files = {} if data.run is None else dict(data.run.files)
    content = {
        "circumstances": list(_circumstances(data)),
        "digests": [
            ("SHA-256 of the contents, whatever file they are kept in", "what",
             list(_digests(data))),
            ("SHA-256 of the files of the run, checked when this report was made", "file",
             sorted(files.items())),
        ],
        "introduction": _introduction(data), "commands": _commands(data),
    }  # fmt: skip
    return Section("reproduction", "To reproduce this", content, link="Reproduction")


def _circumstances(data: ReportData) -> Iterator[tuple[str, str]]:
    problem = data.certificate.problem
    recorded = data.certificate.agreement is not None
    yield from _origin(problem, recorded)
    if not recorded:
        costs = f"{problem.basis.num_costs} costs"
        yield "costs", costs if data.world is None else repr(problem.basis)
        yield "cost class", _class_name(data)
    demos = data.demonstrations
    if demos is not None:
        yield "demonstrations", repr(demos)
    elif not data.certificate.known_cost:
        yield "expert", "expectations, no demonstrations"
    method = None if recorded else problem.expectation.method
    if method is not None:
        yield "target", f"estimated by {method!r}"
    yield "failure probability", repr(data.certificate.failure_probability)
    for name, seed in data.seeds.items():
        if seed is not None:
            yield f"seed of the {name}", str(seed)
    for sample in data.certificate.best.statistics:
        yield f"seed of the {sample.name}", f"{sample.seed} ({sample.count:,} drawn)"
    if data.answer is not None:
        yield "solver", data.answer.engine
    yield "software", ", ".join(f"{name} {text}" for name, text in data.software.items())


def _origin(problem: Any, recorded: bool) -> Iterator[tuple[str, str]]:
    """The world, or the functions that make it where that is saved by reference."""
    made_by = getattr(problem, "made_by", None)
    yield ("problem", type(problem).__name__) if made_by is None else ("made by", made_by)
    if made_by is None or problem.has_states:
        yield "simulator" if not (problem.has_states or recorded) else "world", repr(problem.world)


def _class_name(data: ReportData) -> str:
    chosen = data.certificate.problem.cost_class
    given = ", ".join(f"{name}=..." for name in chosen.parameters())
    return f"{type(chosen).__name__}({given})"


def _digests(data: ReportData) -> Iterator[tuple[str, str]]:
    if data.world is not None:
        yield from _explicit_digests(data.certificate)
    demos = data.demonstrations
    if demos is not None:
        yield "demonstrations", _demonstrations_digest(demos)


def _explicit_digests(certificate: Certificate) -> Iterator[tuple[str, str]]:
    problem, policy = certificate.problem, certificate.policy
    world = problem.world
    laws = (world.transition, world.initial, world.discount)
    yield "world", digest(*laws, *_pairs_parts(world.pairs))
    yield "problem", _problem_digest(problem)
    if isinstance(policy, Policy):
        yield "policy", digest(policy.per_pair, *_pairs_parts(policy.pairs))


def _pairs_parts(pairs: Pairs) -> tuple[IntArray, ...]:
    """What distinguishes pairs; numbers of actions only where they are not 0, 1, 2, ..."""
    return (pairs.offsets,) if pairs.numbers is None else (pairs.offsets, pairs.numbers)


def _problem_digest(problem: Apprenticeship) -> str:
    """Costs, their class, the target and the budgets."""
    chosen, basis = problem.cost_class, problem.basis
    budgets = [(one.name, one.at_most, one.cost) for one in problem.constraints]
    return digest(
        basis.matrix, basis.names, basis.rewards, json.dumps(chosen.describe()),
        problem.target, budgets,
    )  # fmt: skip


def _demonstrations_digest(demos: Demonstrations) -> str:
    return digest(demos.states, demos.actions, demos.offsets, demos.terminated)


def _introduction(data: ReportData) -> str:
    if data.run is not None:
        return "The audit derives every number again, by other code, from the files of the run:"
    if _needs_code(data):
        return "The same call with the same seeds gives the same numbers:"
    return "Saved, the evidence can be audited: every number is derived again, by other code:"


def _needs_code(data: ReportData) -> bool:
    """Whether the world is one of callables, or a simulator."""
    return data.world is None and data.certificate.agreement is None


def _commands(data: ReportData) -> str:
    if data.run is not None:
        option, trust = (" --trust-code", ", trust_code=True") if _needs_code(data) else ("", "")
        return (
            f"journeyman audit {data.run.name}{option}\n\n# or in Python\n"
            f"import journeyman as jm\n\njm.audit({data.run.name!r}{trust})\n"
        )
    delta = data.certificate.failure_probability
    if _needs_code(data):
        return f"jm.certify(problem, answer, failure_probability={delta!r}, evaluation=...)\n"
    if data.answer is None:
        return (
            f"certificate = jm.certify(problem, policy, failure_probability={delta!r})\n"
            'certificate.save("run/")\njm.audit("run/")\n'
        )
    seed = data.seeds.get("solver")
    return (
        "apprentice = jm.learn(\n"
        f"    world, basis, expert, cost_class=jm.costs.{_class_name(data)},\n"
        f"    failure_probability={delta!r}, seed={seed!r},\n)\n"
        'apprentice.save("run/")\njm.audit("run/")\n'
    )
