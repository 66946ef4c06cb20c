"""Sampled rows once more: the sums themselves, their laws, and fresh draws from them.

The auditor makes the pass over all rows that sampling avoids. With u = base + Phi theta, E = B -
discount P, t = initial - E' base, p = initial - E' base+,

    V1 = sum u-     V2 = sum |E' Phi theta - t|     r+ = sum |p - E' (u+ - base+)|

are drawn by laws proportional to their envelopes, in 2-norms

    [|Phi_s| |theta| - base_s]+     |(E' Phi)_y| |theta| + |t_y|
    ((B + discount P)' |Phi| |theta|)_y + |p_y|

where of theta >= 0 or <= 0 only the part counts that can have the sign, when Phi >= 0.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.auditing import protocol
from journeyman.auditing.apprentice import Apprentice, Way
from journeyman.auditing.concentration import bernstein, hoeffding
from journeyman.auditing.draws import (
    Moments,
    check_alike,
    check_expected,
    check_same,
    fresh_generator,
    stored_generator,
)
from journeyman.auditing.inputs import World
from journeyman.auditing.ledger import AGREEMENT, Figure, Ledger
from journeyman.auditing.reading import Refused, archive
from journeyman.auditing.stored import ROWS, Sample
from journeyman.auditing.tables import Floats, reals, sparse_rows

STREAM = protocol.STREAMS[ROWS]
NAMES = ["V1", "V2", "r+"]
HIDDEN = 1e-12
"""Relative: a row that is never drawn and counts for less does so by rounding."""


@dataclass(frozen=True, eq=False)
class Features:
    """Phi, theta and the base measure."""

    matrix: Any
    coefficients: Floats
    base: Floats | None

    @cached_property
    def change(self) -> Floats:
        """Phi theta."""
        return np.asarray(self.matrix @ self.coefficients)

    @property
    def fixed(self) -> Floats:
        """The base measure, zero without one."""
        return np.zeros(self.matrix.shape[0]) if self.base is None else self.base

    @property
    def measure(self) -> Floats:
        return self.change + self.fixed

    @cached_property
    def norms(self) -> Floats:
        return _norms(self.matrix)

    @property
    def mass(self) -> float:
        """At least the 1-norm of the measure."""
        length = math.hypot(*self.coefficients)
        return length * math.fsum(self.norms) + math.fsum(np.abs(self.fixed))

    @property
    def reach(self) -> tuple[float, float]:
        """How far Phi theta goes down and up, per unit of a row's norm."""
        theta = self.coefficients
        entries = self.matrix.data if sparse.issparse(self.matrix) else self.matrix
        if (entries < 0).any():
            return math.hypot(*theta), math.hypot(*theta)
        return math.hypot(*theta[theta < 0]), math.hypot(*theta[theta > 0])


def read_features(data: bytes, world: World) -> Features:
    _, arrays = archive(data, "features", 1)
    theta = reals(arrays, "coefficients", 1)
    if "matrix" in arrays:
        matrix: Any = reals(arrays, "matrix", 2, world.num_pairs)
    else:
        matrix = sparse_rows(arrays, "matrix_", (world.num_pairs, theta.size))
    if not theta.size or matrix.shape[1] != theta.size:
        raise Refused("it has not one coefficient for every feature")
    base = reals(arrays, "base", 1, world.num_pairs) if "base" in arrays else None
    return Features(matrix, theta, base)


@dataclass(frozen=True, eq=False)
class Sum:
    """What is summed, and the envelope that it is drawn by."""

    values: Floats
    envelope: Floats

    @property
    def width(self) -> float:
        return (1 + protocol.SLACK) * float(self.envelope.sum())

    @cached_property
    def law(self) -> Floats:
        whole = float(self.envelope.sum())
        return self.envelope / whole if whole > 0 else np.full(self.envelope.size, 1 / self.size)

    @property
    def size(self) -> int:
        return self.envelope.size

    @property
    def missed(self) -> float:
        """The largest value that is never drawn."""
        never = (self.law <= 0) | (self.width <= 0)
        return float(self.values[never].max(initial=0.0))

    def drawn(self, count: int, rng: np.random.Generator) -> Floats:
        rows = rng.choice(self.size, size=count, p=self.law)
        return np.asarray(self.values[rows] / self.law[rows])


def sums_of(world: World, features: Features) -> tuple[Sum, Sum, Sum]:
    """V1, V2 and r+."""
    base, change, norms = features.fixed, features.change, (1 + protocol.SLACK) * features.norms
    down, up = features.reach
    u, lifted = features.measure, np.maximum(base, 0.0)
    flow = _flow(world)
    t, p = world.initial - world.outflow(base), world.initial - world.outflow(lifted)
    length = math.hypot(*features.coefficients)
    steep = _norms(flow.T @ features.matrix) * length
    entering = world.discount * np.bincount(
        world.rows.indices, world.rows.data * norms.repeat(np.diff(world.rows.indptr)),
        minlength=world.num_states,
    )  # fmt: skip
    near = np.bincount(world.state_of, norms, minlength=world.num_states) + entering
    furthest = up if features.base is None else max(down, up)
    grown = np.where(base >= 0, np.maximum(change, -base), np.maximum(change + base, 0.0))
    return (
        Sum(np.maximum(-u, 0.0), np.maximum(down * norms - base, 0.0)),
        Sum(np.abs(world.outflow(change) - t), steep + np.abs(t)),
        Sum(np.abs(p - world.outflow(grown)), furthest * near + np.abs(p)),
    )


def check_rows(
    ledger: Ledger,
    apprentice: Apprentice,
    features: Features,
    samples: list[Sample],
    delta: float,
    *,
    same_numpy: bool,
) -> None:
    """Whether the statistics can be those of sampled rows, at `delta` for all of them together."""
    if [one.name for one in samples] != NAMES or any(one.means.size != 1 for one in samples):
        raise Refused("the statistics are not those of sampled rows")
    apprentice.require_defined(features.measure)
    first, sums = samples[0], sums_of(apprentice.world, features)
    positive = max(1, sum(one.ranges[0] > 0 for one in samples))
    floor = apprentice.world.horizon + features.mass
    for name, sample, one in zip(NAMES, samples, sums, strict=True):
        n, width = sample.count, one.width
        ledger.equal(f"the draws of {name}", (sample.seed, n), (first.seed, first.count))
        ledger.close(f"the range of {name}", float(sample.ranges[0]), width, floor)
        what = f"the failure probability of {name}"
        ledger.close(what, sample.failure_probability, delta / positive, 0.0)
        ledger.within(f"the mean of {name}", float(sample.means[0]), 0.0, width, floor)
        largest = width**2 / 4 * n / (n - 1)
        what = f"the variance of {name}"
        ledger.within(what, float(sample.variances[0]), 0.0, largest, floor**2)
        nothing = sample.horizon is None and sample.unrecorded == 0
        ledger.check(nothing, f"the statistics of {name} tell of rollouts")
    _check_draws(ledger, samples, sums, floor, same_numpy=same_numpy)


def _check_draws(
    ledger: Ledger,
    samples: list[Sample],
    sums: tuple[Sum, ...],
    floor: float,
    *,
    same_numpy: bool,
) -> None:
    """The statistics beside the sums themselves, fresh draws, and those of the stored seed."""
    count, seed = samples[0].count, samples[0].seed
    means, variances = (
        np.concatenate([getattr(one, name) for one in samples]) for name in ("means", "variances")
    )
    stored, floors = Moments(count, means, variances), np.full(len(sums), floor)
    widths = np.array([one.width for one in sums])
    exact = np.array([math.fsum(one.values[one.law > 0]) for one in sums])
    check_expected(ledger, NAMES, stored, exact, widths, AGREEMENT * floors)
    fresh, own = (make(seed, STREAM) for make in (fresh_generator, stored_generator))
    drawn = np.column_stack([one.drawn(count, fresh) for one in sums])
    check_alike(ledger, NAMES, stored, Moments.of(drawn), widths, floors)
    same = np.column_stack([one.drawn(count, own) for one in sums])
    check_same(ledger, NAMES, stored, Moments.of(same), floors, same_numpy=same_numpy)


def row_ways(apprentice: Apprentice, features: Features, samples: list[Sample]) -> list[Way]:
    """Kinds A and B from their statistics."""
    V1, V2, r_plus = (_upper(one) for one in samples)
    N, h, source = apprentice.question.costs.plain, apprentice.world.horizon, samples[0].count
    hidden = apprentice.rounding_of_mass(features.mass, features.coefficients.size)
    expectations = apprentice.expected(features.measure)
    told = {
        "A (sampled)": (
            ("negativity", "2 N h V1", 2 * N * h * V1), ("flow violation", "N h V2", N * h * V2),
        ),
        "B (sampled)": (
            ("negativity", "N V1", N * V1), ("flow residual", "N h r+", N * h * r_plus),
        ),
    }  # fmt: skip
    return [
        Way(
            kind,
            expectations,
            (*(Figure.exactly(*one, f"{source} rows") for one in figures), hidden),
            floor=2 * N * features.mass,
        )
        for kind, figures in told.items()
    ]


def is_supported(world: World, features: Features) -> bool:
    """Whether no row of probability zero counts."""
    size = HIDDEN * (world.horizon + features.mass)
    return all(one.missed <= size for one in sums_of(world, features))


def _upper(sample: Sample) -> float:
    width, half = float(sample.ranges[0]), sample.failure_probability / 2
    radius = min(
        hoeffding(width, sample.count, half),
        bernstein(float(sample.variances[0]), width, sample.count, half),
    )
    return min(width, float(sample.means[0]) + radius)


def _flow(world: World) -> Any:
    """E = B - discount P, one row per pair."""
    stays = sparse.csr_array(
        (np.ones(world.num_pairs), world.state_of, np.arange(world.num_pairs + 1)),
        shape=world.rows.shape,
    )
    return (stays - world.discount * world.rows).tocsr()


def _norms(matrix: Any) -> Floats:
    """The 2-norm of every row."""
    squares = matrix.multiply(matrix) if sparse.issparse(matrix) else np.square(matrix)
    return np.asarray(np.sqrt(np.asarray(squares.sum(axis=1)).ravel()))
