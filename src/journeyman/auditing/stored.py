"""Combinations and samples as a certificate tells of them, before anything is believed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.auditing.reading import Refused, number
from journeyman.auditing.tables import Floats

ROLLOUTS, ROWS = "rollouts", "rows"
KINDS = {"E": ROLLOUTS, "A (sampled)": ROWS, "B (sampled)": ROWS}
"""Kinds of evaluation that rest on draws."""
SAMPLE_KEYS = {
    "name", "seed", "count", "means", "variances", "ranges", "failure_probability", "horizon",
    "unrecorded",
}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """One combination as it was written."""

    kind: str
    estimate: str
    bound: float
    terms: list[dict[str, Any]]
    statistics: list[Any]

    @property
    def title(self) -> str:
        return f"the combination ({self.kind}; {self.estimate})"


@dataclass(frozen=True, eq=False)
class Sample:
    """Statistics of one sample: of several means where a draw has several figures."""

    name: str
    seed: int
    count: int
    means: Floats
    variances: Floats
    ranges: Floats
    failure_probability: float
    horizon: int | None
    unrecorded: float

    @classmethod
    def read(cls, facts: Any) -> "Sample":
        """From JSON; whatever no sample can have is `Refused`."""
        if not isinstance(facts, dict) or set(facts) != SAMPLE_KEYS:
            raise Refused("the statistics of a sample lack a part, or have one too many")
        lists = {
            name: np.array([number(one) for one in facts[name]])
            for name in ("means", "variances", "ranges")
        }
        whole = [facts[name] for name in ("seed", "count")]
        horizon = facts["horizon"]
        if not all(type(one) is int for one in whole) or type(horizon) not in (int, type(None)):
            raise Refused("a seed, a count or a horizon is not a whole number")
        if len({one.size for one in lists.values()}) != 1:
            raise Refused("a sample has not as many variances and ranges as means")
        if whole[0] < 0 or whole[1] < 2 or (horizon is not None and horizon < 1):
            raise Refused("a seed, a count or a horizon is too small")
        figures = np.concatenate(list(lists.values()))
        if not np.isfinite(figures).all() or min(lists["variances"].min(), 0.0) < 0:
            raise Refused("a statistic is not finite, or a variance is negative")
        return cls(
            name=str(facts["name"]), seed=whole[0], count=whole[1], horizon=horizon,
            failure_probability=number(facts["failure_probability"]),
            unrecorded=number(facts["unrecorded"]), **lists,
        )  # fmt: skip


def stored_combinations(facts: dict[str, Any]) -> list[Stored]:
    return [Stored(**one | {"bound": number(one["bound"])}) for one in facts["combinations"]]


def sampling_of(claimed: list[Stored]) -> str | None:
    """What the evaluations of a certificate drew: `ROLLOUTS`, `ROWS` or nothing."""
    drawn = {KINDS[one.kind] for one in claimed if one.kind in KINDS}
    if len(drawn) > 1:
        raise Refused("a certificate rests on rollouts and on sampled rows")
    for one in claimed:
        if bool(one.statistics) != (one.kind in KINDS):
            raise Refused(f"{one.title} does not tell of what it drew, or drew nothing")
    return next(iter(drawn), None)


def samples_of(claimed: list[Stored]) -> list[Sample]:
    """The samples that all combinations which rest on draws share."""
    told = [one.statistics for one in claimed if one.kind in KINDS]
    if any(one != told[0] for one in told):
        raise Refused("two combinations rest on different samples")
    return [Sample.read(facts) for facts in told[0]] if told else []
