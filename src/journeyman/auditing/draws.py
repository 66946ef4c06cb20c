"""Samples against other samples: what was drawn must look like what is drawn now.

Of n independent draws in a range of width R, with probability 1 - delta each,

    |mean - expectation|     <= min(Hoeffding, empirical Bernstein)
    |deviation - its truth|  <= R sqrt(2 log(2/delta)/(n - 1))

(Maurer and Pontil, 2009), so two honest samples differ by no more than the sum of their radii. All
comparisons of an audit together fail an honest run with probability `LEVEL` at most.
"""

import math
from dataclasses import dataclass

import numpy as np

from journeyman.auditing.concentration import bernstein, hoeffding
from journeyman.auditing.ledger import AGREEMENT, Ledger
from journeyman.auditing.tables import Floats

LEVEL = 1e-6
COMPARISONS = 6
"""Of one figure, both sides counted: with fresh draws, and with the exact expectation."""
SEED = 0x61756469
"""Of the fresh draws."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and variances of a sample, figure by figure."""

    count: int
    means: Floats
    variances: Floats

    @classmethod
    def of(cls, samples: Floats) -> "Moments":
        """Of a table with one row per draw."""
        return cls(len(samples), samples.mean(axis=0), samples.var(axis=0, ddof=1))

    def radius(self, widths: Floats, level: float) -> Floats:
        """Of the means, to either side."""
        return np.array([
            min(
                hoeffding(float(width), self.count, level / 2),
                bernstein(float(variance), float(width), self.count, level / 2),
            )
            for variance, width in zip(self.variances, widths, strict=True)
        ])  # fmt: skip


def fresh_generator(seed: int, stream: int) -> np.random.Generator:
    """A stream of its own for every seed that was used."""
    return np.random.default_rng(np.random.SeedSequence((SEED, seed), spawn_key=(stream, 1)))


def stored_generator(seed: int, stream: int) -> np.random.Generator:
    """The stream that a certificate draws from."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))


def check_alike(
    ledger: Ledger,
    names: list[str],
    stored: Moments,
    fresh: Moments,
    widths: Floats,
    floors: Floats,
) -> None:
    """Whether a stored sample and fresh draws can come from one law."""
    level = LEVEL / (COMPARISONS * len(names))
    reach = stored.radius(widths, level) + fresh.radius(widths, level)
    spread = math.sqrt(2 * math.log(2 / level))
    roots = 1 / math.sqrt(stored.count - 1) + 1 / math.sqrt(fresh.count - 1)
    for k, name in enumerate(names):
        slack = AGREEMENT * float(floors[k])
        off = abs(float(stored.means[k] - fresh.means[k]))
        ledger.check(
            off <= reach[k] + slack,
            f"the mean of {name} is {stored.means[k]!r}, fresh draws give {fresh.means[k]!r}",
        )
        deviations = [math.sqrt(one.variances[k]) for one in (stored, fresh)]
        ledger.check(
            abs(deviations[0] - deviations[1]) <= widths[k] * spread * roots + math.sqrt(slack),
            f"the deviation of {name} is {deviations[0]!r}, fresh draws give {deviations[1]!r}",
        )


def check_expected(
    ledger: Ledger,
    names: list[str],
    stored: Moments,
    exact: Floats,
    widths: Floats,
    margins: Floats,
) -> None:
    """Whether a stored sample can have the given expectations, give or take the margins."""
    level = LEVEL / (COMPARISONS * len(names))
    reach = stored.radius(widths, level) + margins
    for k, name in enumerate(names):
        ledger.check(
            abs(float(stored.means[k] - exact[k])) <= reach[k],
            f"the mean of {name} is {stored.means[k]!r}, and should be near {exact[k]!r}",
        )


OTHER_NUMBERS = (
    "draws from the stored seed give other statistics; the run names another version of numpy, "
    "under which the same seed may mean other numbers: what was drawn looks alike, no more"
)
TOO_MANY = "there are too many steps to draw them again: fewer were drawn, and look alike"


def settle(ledger: Ledger, attempt: Ledger, *, same_numpy: bool) -> None:
    """What drawing again has shown. The same statistics are the same under every version of numpy;
    others are a finding, or unsettled where the run names another version."""
    if attempt.findings and not same_numpy:
        ledger.checked += attempt.checked
        ledger.leave_open(OTHER_NUMBERS)
    else:
        ledger.adopt(attempt)


def check_same(
    ledger: Ledger,
    names: list[str],
    stored: Moments,
    again: Moments,
    floors: Floats,
    *,
    same_numpy: bool,
) -> None:
    """Whether the draws of the stored seed give the stored statistics."""
    attempt = Ledger()
    _compare(attempt, names, stored, again, floors)
    settle(ledger, attempt, same_numpy=same_numpy)


def _compare(
    ledger: Ledger, names: list[str], stored: Moments, again: Moments, floors: Floats
) -> None:
    for k, name in enumerate(names):
        size = float(floors[k])
        for word, one, other, floor in (
            ("mean", stored.means[k], again.means[k], size),
            ("variance", stored.variances[k], again.variances[k], size**2),
        ):
            what = f"the {word} of {name} that its seed gives"
            ledger.close(what, float(one), float(other), floor)
