"""What the loops of SGD-AL work on, and the loop by NumPy, for the first steps of a run.

The compiled loops (`kernels`) take seconds to compile where that was never done, as long as
hundreds of thousands of their steps. The first `PLAIN_STEPS` steps of a run over at most
`PLAIN_FEATURES` features are therefore NumPy's: a short run in a small world needs no compiler, and
a long one pays half a second for that. The number of a step alone decides, so bits do not depend on
what was compiled before, nor on how a run is cut.
"""

from typing import NamedTuple

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.costs.cost_class import BALL, BOX, LARGEST
from journeyman.solvers.reduced.rows import ACTIVE, HEADER, IMPORTANCE, SEEN, THRESHOLD, Rows
from journeyman.solvers.reduced.step_rules import (
    COORDINATE_ADAPTIVE,
    DUAL_AVERAGING,
    INVERSE_ROOT,
    NORM_ADAPTIVE,
    REGRET,
    SQUARED_NORM,
    SQUARED_WEIGHT,
    WEIGHT,
)

PLAIN_STEPS, PLAIN_FEATURES = 1 << 15, 128
PLAIN_NUMBERS = 1 << 17
"""Of the rows that are copied together."""
SMALLEST = 1e-300
"""Stands for a sum of squares that is still zero."""


class Exact(NamedTuple):
    """The part of the loss that is not sampled: matching and budgets."""

    kind: int
    matching: FloatArray
    target: FloatArray
    scale: FloatArray
    centre: FloatArray
    points: FloatArray
    budgets: FloatArray
    limits: FloatArray
    budget_penalty: float


class Motion(NamedTuple):
    """Batch, step rule, projection and averaging."""

    batch: int
    rule: int
    rate: float
    radius: float
    nonnegative: bool
    power: float


class Iterate(NamedTuple):
    """Everything the next step needs, updated in place."""

    theta: FloatArray
    weighted_theta: FloatArray
    weighted_gradient: FloatArray
    gradient_sum: FloatArray
    squares: FloatArray
    totals: FloatArray
    weighted_costs: FloatArray
    weighted_budgets: FloatArray


class Images(NamedTuple):
    """Images under G of the rows of Phi and D, and G G'."""

    pairs: FloatArray
    flow: FloatArray
    costs: FloatArray


class Matched(NamedTuple):
    """z, the scaled signs s of z, since when they stand, G's and G G's; updated in place."""

    z: FloatArray
    signs: FloatArray
    since: FloatArray
    slope: FloatArray
    image: FloatArray


def advance(
    done: int,
    pair_at: IntArray,
    state_at: IntArray,
    pairs: Rows,
    flow: Rows,
    exact: Exact,
    motion: Motion,
    it: Iterate,
) -> None:
    """Consume the drawn rows, a batch of pairs and states per step, after `done` steps."""
    size = it.theta.size
    piece = max(1, PLAIN_NUMBERS // (motion.batch * size)) * motion.batch
    with np.errstate(all="ignore"):  # who calls sees whether numbers are finite
        for first in range(0, pair_at.size, piece):
            part = slice(first, first + piece)
            of_pairs = _Drawn(pairs, pair_at[part], size, motion)
            of_flow = _Drawn(flow, state_at[part], size, motion)
            for t in range(of_pairs.rows.shape[0]):
                _step(done + first // motion.batch + t + 1, t, of_pairs, of_flow, exact, motion, it)
            of_pairs.book()
            of_flow.book()


class _Drawn:
    """Drawn rows side by side, (steps, batch, features), and what was active among them."""

    def __init__(self, table: Rows, at: IntArray, size: int, motion: Motion) -> None:
        self.table, shape = table, (at.size // motion.batch, motion.batch)
        rows, self.place = np.unique(at, return_inverse=True)
        self.heads = table.heads[rows]
        self.rows = _dense(table, rows, size)[self.place].reshape(*shape, size)
        thresholds = table.numbers[self.heads + THRESHOLD]
        weights = table.numbers[self.heads + IMPORTANCE] / motion.batch
        self.thresholds = thresholds[self.place].reshape(shape)
        self.weights = weights[self.place].reshape(shape)
        self.seen, self.active = np.empty(shape), np.empty(shape)

    def book(self) -> None:
        """Count it in the table."""
        for counted, position in ((self.seen, SEEN), (self.active, ACTIVE)):
            places = self.heads[self.place] + position
            np.add.at(self.table.numbers, places, counted.ravel())  # one by one, as compiled loops


def _dense(table: Rows, at: IntArray, size: int) -> FloatArray:
    """Rows of a table with their zeros."""
    starts = table.heads[at] + HEADER
    if not table.is_sparse:
        return np.asarray(table.numbers[starts[:, None] + np.arange(size)])
    counts = (table.heads[at + 1] - starts) // 3 * 2
    owner = np.repeat(np.arange(at.size), counts)
    inside = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = table.integers[2 * (starts + counts)[owner] + inside]
    rows = np.zeros((at.size, size))
    np.add.at(rows, (owner, columns), table.numbers[starts[owner] + inside])  # padding adds 0
    return rows


def _step(
    step: int,
    t: int,
    of_pairs: _Drawn,
    of_flow: _Drawn,
    exact: Exact,
    motion: Motion,
    it: Iterate,
) -> None:
    theta = it.theta
    omega = float(step) ** motion.power
    weights = worst_case(exact, exact.matching @ theta - exact.target)
    gradient = weights @ exact.matching
    if exact.limits.size:
        over = (exact.budgets @ theta > exact.limits) * 1.0
        np.add(it.weighted_budgets, omega * over, out=it.weighted_budgets)
        gradient += exact.budget_penalty * (over @ exact.budgets)
    np.add(it.weighted_costs, omega * weights, out=it.weighted_costs)
    rows, others = of_pairs.rows[t], of_flow.rows[t]
    active = (rows @ theta < of_pairs.thresholds[t]) * 1.0
    signs = np.sign(others @ theta - of_flow.thresholds[t])
    gradient -= (of_pairs.weights[t] * active) @ rows
    gradient += (of_flow.weights[t] * signs) @ others
    of_pairs.seen[t] = of_flow.seen[t] = omega
    of_pairs.active[t], of_flow.active[t] = omega * active, omega * signs
    np.add(it.weighted_theta, omega * theta, out=it.weighted_theta)
    np.add(it.weighted_gradient, omega * gradient, out=it.weighted_gradient)
    np.add(it.gradient_sum, gradient, out=it.gradient_sum)
    it.totals[WEIGHT] += omega
    it.totals[SQUARED_WEIGHT] += omega * omega
    it.totals[REGRET] += omega * (gradient @ theta)
    it.totals[SQUARED_NORM] += gradient @ gradient
    _move(motion, step, it, gradient)
    if motion.nonnegative:
        np.maximum(theta, 0.0, out=theta)
    length = float(np.linalg.norm(theta))
    if length > motion.radius:
        theta *= motion.radius / length


def worst_case(exact: Exact, z: FloatArray) -> FloatArray:
    """Cost weights that attain the support function at z, by the form of the class."""
    scaled = exact.scale * z if exact.kind in (BALL, LARGEST) else z
    if exact.kind == BOX:
        return np.asarray(exact.centre + exact.scale * np.sign(z))
    if exact.kind == BALL:
        length = float(np.linalg.norm(scaled))
        share = scaled / length if length > 0 else np.zeros_like(z)
        return np.asarray(exact.centre + exact.scale * share)
    if exact.kind == LARGEST:
        weights, best = np.zeros_like(z), int(scaled.argmax())
        weights[best] = exact.scale[best]
        return weights
    return np.asarray(exact.points[int((exact.points @ z).argmax())])


def _move(motion: Motion, step: int, it: Iterate, gradient: FloatArray) -> None:
    """theta after step number `step` (from 1), before the projection."""
    theta, size = it.theta, motion.rate
    if motion.rule == COORDINATE_ADAPTIVE:
        np.add(it.squares, gradient * gradient, out=it.squares)
        np.subtract(theta, size * gradient / np.sqrt(np.maximum(it.squares, SMALLEST)), out=theta)
        return
    if motion.rule == DUAL_AVERAGING:
        np.multiply(it.gradient_sum, -size / np.sqrt(step + 1.0), out=theta)
        return
    if motion.rule == INVERSE_ROOT:
        size = motion.rate / np.sqrt(float(step))
    elif motion.rule == NORM_ADAPTIVE:
        total = it.totals[SQUARED_NORM]
        size = motion.rate / np.sqrt(total) if total > 0.0 else 0.0
    np.subtract(theta, size * gradient, out=theta)
