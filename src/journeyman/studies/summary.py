"""Trials of one method on one problem, over the seeds: medians with their range, and outcomes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from journeyman.studies.trial import RAISED, REFUSED, Trial


@dataclass(frozen=True)
class Spread:
    """The median of figures, and from where to where they reach."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return short(self.median)
        return f"{short(self.median)} ({short(self.low)} .. {short(self.high)})"


def short(value: float) -> str:
    """A figure to three digits, counts in full.

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

    def spread(self, figure: str) -> Spread | None:
        """Of one figure, over the trials that have it."""
        values = self.values(figure)
        return Spread(median(values), min(values), max(values)) if values else None

    def values(self, figure: str) -> list[float]:
        """One figure of every trial that has it; a refusal takes no time worth telling."""
        ended = [trial for trial in self.trials if trial.status not in (REFUSED, RAISED)]
        found = [getattr(trial, figure) for trial in ended]
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
        """What the figures alone would hide."""
        told = [
            (trial.has_policy and not trial.valid, "a premise of the certificate failed")
            for trial in self.trials
        ]
        told += [
            (trial.budgets_kept is False, "budgets not shown to be kept") for trial in self.trials
        ]
        told += [
            (bool(trial.weak), f"certified bound {'vacuous' if trial.vacuous else 'weak'}")
            for trial in self.trials
            if trial.valid
        ]
        return list(dict.fromkeys(words for so, words in told if so))


def summaries(trials: Sequence[Trial]) -> list[Summary]:
    """One for every method and problem, in their order."""
    together: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        together.setdefault((trial.problem, trial.solver), []).append(trial)
    return [Summary(*names, tuple(group)) for names, group in together.items()]


def compared_figure(trials: Sequence[Trial]) -> tuple[str, str]:
    """The field by which methods are compared, and its words: the true gap where it is known."""
    if any(trial.true_gap is not None for trial in trials):
        return "true_gap", "true gap"
    return "gap_on_data", "gap on the data"
