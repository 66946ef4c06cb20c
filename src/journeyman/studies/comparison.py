"""What a study has found: its trials, as a table, as CSV, and as a page."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from journeyman.storage import PathLike
from journeyman.studies.directory import write_text
from journeyman.studies.summary import Summary, compared_figure, summaries
from journeyman.studies.trial import COUNTS, Trial

GAPS = {
    "true_gap": "true gap", "gap_on_data": "gap on the data", "certified_bound": "certified",
    "seconds": "seconds",
}  # fmt: skip
UNKNOWN = "-"
"""In place of a figure that there is none of."""


@dataclass(frozen=True)
class Comparison:
    """The outcome of `jm.compare`. Trials stand in the order of problems, solvers and seeds."""

    trials: tuple[Trial, ...]
    failure_probability: float = 0.05
    settings: Mapping[str, str] = field(default_factory=dict)
    """What every problem is, in words, by its name."""

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
        """Write all trials, one a line, with every figure in full."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        names = [one.name for one in fields(Trial)]
        writer.writerow(names)
        for trial in self.trials:
            facts = trial.facts()
            writer.writerow(["" if facts[name] is None else facts[name] for name in names])
        write_text(Path(path), text.getvalue())

    def report(self, path: PathLike, *, title: str = "Methods compared") -> None:
        """Write one self-contained HTML file: pictures and tables, no script, no network."""
        from journeyman.studies.page import page

        write_text(Path(path), page(self, title))

    def _repr_html_(self) -> str:
        """For notebooks."""
        from journeyman.studies.page import fragment

        return fragment(self)

    def __repr__(self) -> str:
        rows = self.summaries
        figure, words = compared_figure(self.trials)
        best = [(row.spread(figure), row.solver) for row in rows]
        least = min(((one.median, name) for one, name in best if one is not None), default=None)
        told = "" if least is None else f"; least median {words} {least[0]:.4g} by {least[1]}"
        return f"Comparison({len(self.trials)} trials, {len(rows)} rows{told})"


def _shown(rows: Sequence[Summary]) -> dict[str, str]:
    """Columns in which at least one row has something to say."""
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
