"""How an answer was approached: lines against time, read off whatever trace its solver left."""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.report.subject import AnyAnswer, Subject
from journeyman.solvers import Answer
from journeyman.solvers.large_answer import LargeAnswer


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
