"""What a study has found: its trials, as a table, as CSV, and as a page."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from statistics import median
from typing import Any

from journeyman.lazy import InNotebooks
from journeyman.storage import PathLike, write_text
from journeyman.studies.trial import COUNTS, RAISED, REFUSED, Trial
from journeyman.tables import to_frame


@dataclass(frozen=True)
class Spread:
    """The median of numbers, and from where to where they reach."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return short(self.median)
        return f"{short(self.median)} ({short(self.low)} .. {short(self.high)})"


def short(value: float) -> str:
    """A number to three digits, counts in full.

    >>> short(0.123456), short(13405.5), short(7.0), short(5.1e-12)
    ('0.123', '13,406', '7', '5.1e-12')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


@dataclass(frozen=True)
class Summary:
    """The trials of one method on one problem."""

    problem: str
    solver: str
    trials: tuple[Trial, ...]

    def spread(self, name: str) -> Spread | None:
        """Of one field, over the trials that have it."""
        values = self.values(name)
        return Spread(median(values), min(values), max(values)) if values else None

    def values(self, name: str) -> list[float]:
        """One field of every trial that has it; a refusal takes no time worth reporting."""
        ended = [trial for trial in self.trials if trial.status not in (REFUSED, RAISED)]
        found = [getattr(trial, name) for trial in ended]
        return [float(value) for value in found if value is not None]

    @property
    def outcome(self) -> str:
        """How the trials ended, the most frequent first.

        >>> trials = [Trial("p", "s", k, "OPTIMAL" if k else "TIME_LIMIT") for k in range(3)]
        >>> Summary("p", "s", tuple(trials)).outcome
        'OPTIMAL 2, TIME_LIMIT 1'
        """
        counts = Counter(trial.status for trial in self.trials).most_common()
        return counts[0][0] if len(counts) == 1 else ", ".join(f"{w} {n}" for w, n in counts)

    @property
    def shortcomings(self) -> list[str]:
        """What the numbers alone would hide."""
        found = [
            (trial.has_policy and not trial.valid, "a premise of the certificate failed")
            for trial in self.trials
        ]
        found += [
            (trial.budgets_kept is False, "budgets not shown to be kept") for trial in self.trials
        ]
        found += [
            (bool(trial.weak), f"certified bound {'vacuous' if trial.vacuous else 'weak'}")
            for trial in self.trials
            if trial.valid
        ]
        return list(dict.fromkeys(words for so, words in found if so))


def summaries(trials: Sequence[Trial]) -> list[Summary]:
    """One for every method and problem, in their order."""
    together: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        together.setdefault((trial.problem, trial.solver), []).append(trial)
    return [Summary(*names, tuple(group)) for names, group in together.items()]


def compared_gap(trials: Sequence[Trial]) -> tuple[str, str]:
    """The field by which methods are compared, and its words: the true gap where it is known."""
    if any(trial.true_gap is not None for trial in trials):
        return "true_gap", "true gap"
    return "gap_on_data", "gap on the data"


GAPS = {
    "true_gap": "true gap", "gap_on_data": "gap on the data", "certified_bound": "certified",
    "seconds": "seconds",
}  # fmt: skip
UNKNOWN = "-"
"""In place of a number that there is none of."""


@dataclass(frozen=True)
class Comparison(InNotebooks):
    """The outcome of `jm.compare`. Trials stand in the order of problems, solvers and seeds."""

    trials: tuple[Trial, ...]
    failure_probability: float = 0.05
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """What every problem is, in words, by its name."""
    _shown_by = "journeyman.studies.study_page"

    @property
    def summaries(self) -> list[Summary]:
        """One for every problem and method: medians over the seeds, and how the trials ended."""
        return summaries(self.trials)

    def table(self) -> str:
        """Medians over the seeds with their range, a row for every problem and method."""
        rows = self.summaries
        columns = _shown(rows)
        several = len({row.problem for row in rows}) > 1
        head = [*(["problem"] if several else []), "method", "trials", *columns.values(), "outcome"]
        body = [
            [
                *([row.problem] if several else []), row.solver, str(len(row.trials)),
                *(str(row.spread(name) or UNKNOWN) for name in columns), _ending(row),
            ]
            for row in rows
        ]  # fmt: skip
        notes = [f"{row.solver}: {words}" for row in rows for words in _reasons(row)]
        return "\n".join([*_aligned([head, *body]), *(["", *notes] if notes else [])])

    def csv(self, path: PathLike) -> None:
        """Write all trials, one a line, with every number in full."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        names = [one.name for one in fields(Trial)]
        writer.writerow(names)
        for row in self.to_rows():
            writer.writerow(["" if row[name] is None else row[name] for name in names])
        write_text(path, text.getvalue())

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for every trial; None for what it does not have."""
        return [trial.facts() for trial in self.trials]

    def to_frame(self) -> Any:
        """`to_rows` as a pandas DataFrame (extra `frames`)."""
        return to_frame(self.to_rows())

    def report(self, path: PathLike, *, title: str = "Methods compared") -> None:
        """Write one self-contained HTML file: pictures and tables, no script, no network."""
        from journeyman.studies.study_page import page

        write_text(path, page(self, title))

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the gaps and certified bounds of all trials, and return the matplotlib Axes (extra
        `plot`): those given, or new ones."""
        return import_module("journeyman.plot").comparison(self, ax=ax)

    def __repr__(self) -> str:
        rows = self.summaries
        gap, words = compared_gap(self.trials)
        best = [(row.spread(gap), row.solver) for row in rows]
        least = min(((one.median, name) for one, name in best if one is not None), default=None)
        best_of_all = (
            "" if least is None else f"; least median {words} {least[0]:.4g} by {least[1]}"
        )
        return f"Comparison({len(self.trials)} trials, {len(rows)} rows{best_of_all})"


def _shown(rows: Sequence[Summary]) -> dict[str, str]:
    """Columns in which at least one row has something to show."""
    columns = GAPS | {name: name.replace("_", " ") for name in COUNTS}
    return {
        name: words
        for name, words in columns.items()
        if name == "seconds" or any(any(row.values(name)) or _differs(row, name) for row in rows)
    }


def _differs(row: Summary, name: str) -> bool:
    """Gaps of exactly zero are worth showing, counts that are all zero are not."""
    return name in GAPS and bool(row.values(name))


def _ending(row: Summary) -> str:
    return "; ".join([row.outcome, *row.shortcomings])


def _reasons(row: Summary) -> list[str]:
    """Why there are no answers, each reason once."""
    return list(dict.fromkeys(trial.message for trial in row.trials if trial.message))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
