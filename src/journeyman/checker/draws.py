"""Samples: their statistics as a certificate states them, the seed they must have come from, and
comparison with other draws.

The seed is a digest of world and policy: whole numbers as 64 bits, real ones in double precision,
the least byte first, each array behind the number of its entries.

Of n independent draws in a range of width R, with probability 1 - delta each,

    |mean - expectation|     <= min(Hoeffding, empirical Bernstein)
    |deviation - its truth|  <= R sqrt(2 log(2/delta)/(n - 1))

(Maurer and Pontil, 2009), so two honest samples differ by no more than the sum of their radii. All
comparisons of an audit together fail an honest run with probability `LEVEL` at most.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.checker.archives import Floats
from journeyman.checker.costs import SPREAD, Costs, smaller_radii
from journeyman.checker.findings import AGREEMENT, Findings, Refused, number

PARTS = (0.80, 0.20)
"""Of delta, for data-independent radii of rollouts and for the empirical Bernstein radius."""
LEVEL = 1e-6
COMPARISONS = 6
"""Of one number, both sides counted: with fresh draws, and with the exact expectation."""
OTHER_SEED = 0x61756469
SAMPLE_PARTS = {
    "name", "seed", "count", "means", "variances", "ranges", "failure_probability", "horizon",
    "unrecorded",
}  # fmt: skip
OTHER_NUMBERS = (
    "draws from the stored seed give other statistics; the run names another version of numpy, "
    "under which the same seed may mean other numbers: what was drawn looks alike, no more"
)
TOO_MANY = "there are too many steps to draw them again: fewer were drawn, and look alike"


@dataclass(frozen=True)
class Way:
    """One combination of an evaluation and an estimate, as it is stated."""

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
    """Statistics of one sample: of several means where a draw has several numbers."""

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
        if not isinstance(facts, dict) or set(facts) != SAMPLE_PARTS:
            raise Refused("the statistics of a sample lack a part, or have one too many")
        lists = {
            name: np.array([number(one) for one in facts[name]])
            for name in ("means", "variances", "ranges")
        }
        seed, count, horizon = facts["seed"], facts["count"], facts["horizon"]
        if not all(type(one) is int for one in (seed, count, 1 if horizon is None else horizon)):
            raise Refused("a seed, a count or a horizon is not a whole number")
        if len({one.size for one in lists.values()}) != 1:
            raise Refused("a sample has not as many variances and ranges as means")
        if seed < 0 or count < 2 or (horizon is not None and horizon < 1):
            raise Refused("a seed, a count or a horizon is too small")
        every = np.concatenate(list(lists.values()))
        if not np.isfinite(every).all() or min(lists["variances"].min(), 0.0) < 0:
            raise Refused("a statistic is not finite, or a variance is negative")
        return cls(
            name=str(facts["name"]), seed=seed, count=count, horizon=horizon,
            failure_probability=number(facts["failure_probability"]),
            unrecorded=number(facts["unrecorded"]), **lists,
        )  # fmt: skip

    def radius(self, costs: Costs, horizon: float, stated: str | None) -> tuple[float, str, str]:
        """Of the mean of rollouts, with formula and source: the one whose formula is stated, or
        else the smallest. Each holds with a part of the failure probability of its own."""
        first, second = (part * self.failure_probability for part in PARTS)
        drawn = f"{self.count} rollouts"
        radii = costs.radii(horizon, self.count, first).values()
        found = [(radius, formula, drawn) for radius, formula in radii]
        radius = costs.spread_radius(horizon, self.variances, self.count, second)
        found.append((radius, SPREAD, f"{drawn} and their spread"))
        found.sort(key=lambda one: (one[1] != stated, one[0]))
        return found[0]


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and variances of a sample."""

    count: int
    means: Floats
    variances: Floats

    @classmethod
    def of(cls, samples: Floats) -> "Moments":
        """Of a table with one row per draw."""
        return cls(len(samples), samples.mean(axis=0), samples.var(axis=0, ddof=1))

    def radius(self, widths: Floats, level: float) -> Floats:
        """Of the means, to either side."""
        return smaller_radii(self.variances, widths, self.count, level / 2)


def stated_ways(facts: dict[str, Any]) -> list[Way]:
    return [Way(**one | {"bound": number(one["bound"])}) for one in facts["combinations"]]


def samples_of(ways: list[Way], drawn: Iterable[str]) -> list[Sample]:
    """The samples that all combinations of the kinds in `drawn` share; others have none."""
    stated = [way.statistics for way in ways if way.kind in drawn]
    for way in ways:
        if bool(way.statistics) != (way.kind in drawn):
            raise Refused(f"{way.title} does not name what it drew, or drew nothing")
    if any(one != stated[0] for one in stated):
        raise Refused("two combinations rest on different samples")
    return [Sample.read(facts) for facts in stated[0]] if stated else []


def generator(seed: int, *stream: int, fresh: bool = False) -> np.random.Generator:
    """The stream that a certificate draws from; a fresh one shares nothing with any of them."""
    if fresh:
        sequence = np.random.SeedSequence((OTHER_SEED, seed), spawn_key=(*stream, 1))
    else:
        sequence = np.random.SeedSequence(seed, spawn_key=stream)
    return np.random.default_rng(sequence)


def check_alike(
    findings: Findings, names: list[str], stated: Moments, fresh: Moments, widths: Floats,
    sizes: Floats,
) -> None:  # fmt: skip
    """Whether a stated sample and fresh draws can come from one law."""
    level = LEVEL / (COMPARISONS * len(names))
    reach = stated.radius(widths, level) + fresh.radius(widths, level)
    spread = math.sqrt(2 * math.log(2 / level))
    roots = 1 / math.sqrt(stated.count - 1) + 1 / math.sqrt(fresh.count - 1)
    for k, name in enumerate(names):
        slack = AGREEMENT * float(sizes[k])
        findings.check(
            abs(float(stated.means[k] - fresh.means[k])) <= reach[k] + slack,
            f"the mean of {name} is {stated.means[k]!r}, fresh draws give {fresh.means[k]!r}",
        )
        deviations = [math.sqrt(one.variances[k]) for one in (stated, fresh)]
        findings.check(
            abs(deviations[0] - deviations[1]) <= widths[k] * spread * roots + math.sqrt(slack),
            f"the deviation of {name} is {deviations[0]!r}, fresh draws give {deviations[1]!r}",
        )


def check_expected(
    findings: Findings, names: list[str], stated: Moments, exact: Floats, widths: Floats,
    margins: Floats,
) -> None:  # fmt: skip
    """Whether a stated sample can have the given expectations, up to the margins."""
    reach = stated.radius(widths, LEVEL / (COMPARISONS * len(names))) + margins
    for k, name in enumerate(names):
        findings.check(
            abs(float(stated.means[k] - exact[k])) <= reach[k],
            f"the mean of {name} is {stated.means[k]!r}, and should be near {exact[k]!r}",
        )


def check_same(
    findings: Findings, names: list[str], stated: Moments, again: Moments, sizes: Floats,
    *, same_numpy: bool,
) -> bool:  # fmt: skip
    """Whether the draws of the stored seed give the stated statistics."""
    attempt = Findings()
    for k, name in enumerate(names):
        for word, one, other, size in (
            ("mean", stated.means[k], again.means[k], float(sizes[k])),
            ("variance", stated.variances[k], again.variances[k], float(sizes[k]) ** 2),
        ):
            attempt.close(
                f"the {word} of {name} that its seed gives", float(one), float(other), size
            )
    return settle(findings, attempt, same_numpy=same_numpy)


def settle(findings: Findings, attempt: Findings, *, same_numpy: bool) -> bool:
    """What drawing again has shown. The same statistics are the same under every version of numpy;
    others are a finding, or open where the run names another version."""
    if attempt.findings and not same_numpy:
        findings.checked += attempt.checked
        findings.leave_open(OTHER_NUMBERS)
    else:
        findings.adopt(attempt)
    return not attempt.findings


def seed_of(*content: bytes) -> int:
    """60 bits of the digest."""
    found = hashlib.sha256(b"journeyman draws\n" + b"".join(content)).digest()
    return int.from_bytes(found[:8], "big") >> 4


def whole_bytes(values: Any) -> bytes:
    return _framed(np.array(values, dtype="<i8"))


def real_bytes(values: Any) -> bytes:
    array = np.array(values, dtype="<f8")
    array[array == 0] = 0.0
    return _framed(array)


def _framed(array: Any) -> bytes:
    return np.array([array.size], dtype="<i8").tobytes() + bytes(array.tobytes())
