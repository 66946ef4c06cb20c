"""What the stochastic primal-dual steps work on, and their loops by NumPy, for few numbers.

`saddle_kernels` has the same loops compiled, which takes seconds where it was never done. Up to
`PLAIN_NUMBERS` numbers in the rows, stored with their zeros, NumPy's are about as quick. That size
alone decides, so bits do not depend on what was compiled before.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.costs.cost_class import BALL, BOX

PLAIN_NUMBERS = 1 << 15


class PlainRows(NamedTuple):
    """Rows with their zeros, and what each is compared to."""

    matrix: FloatArray
    targets: FloatArray


class Program(NamedTuple):
    """The saddle point problem as arrays for the loops, with the steps at omega = 1.

    Rows are those of pairs and states as they were dealt to blocks; block k has the rows from
    `starts[k]` up to `starts[k + 1]`. The block after them is `small`: budgets, then costs.
    """

    rows: Any
    """`PlainRows`, or `Rows` for compiled loops."""
    starts: IntArray
    low: FloatArray
    high: FloatArray
    dual_steps: FloatArray
    small: FloatArray
    small_target: FloatArray
    small_steps: FloatArray
    num_budgets: int
    kind: int
    primal_steps: FloatArray
    slope: FloatArray
    constant: float
    radius: float

    @property
    def num_blocks(self) -> int:
        return self.starts.size


class Point(NamedTuple):
    """Everything that a step changes, in place."""

    theta: FloatArray
    y: FloatArray
    small: FloatArray
    z: FloatArray
    dz: FloatArray
    """What the last step has changed of z, before it is added."""
    theta_sum: FloatArray
    y_sum: FloatArray
    small_sum: FloatArray


def into_ball(theta: FloatArray, steps: FloatArray, radius: float) -> None:
    """The nearest point of the ball in the norm |.|_{1/steps}, by Newton's method.

    It is theta_j/(1 + mu steps_j) for the mu at which its length is the radius; 1/length is concave
    in mu, so Newton's method from 0 gets there from below.
    """
    mu, length = 0.0, float(np.linalg.norm(theta))
    for _ in range(64):
        shares = 1.0 / (1.0 + mu * steps)
        squares = (theta * shares) ** 2
        square, fall = float(squares.sum()), float(squares @ (steps * shares))
        length = square**0.5
        if not (length > radius * (1.0 + 1e-13) and fall > 0.0):
            break
        mu += (length - radius) / radius * square / fall
    if length > radius:
        theta *= radius / length
    theta /= 1.0 + mu * steps


def into_simplex(v: FloatArray) -> None:
    """The nearest point with v >= 0 and sum one: what is above a level, which rises while entries
    fall below it (Michelot 1986)."""
    level, kept, above = -np.inf, v.size + 1, v.size
    while above < kept:
        level, kept = float((v[v > level].sum() - 1.0) / above), above
        above = int((v > level).sum())
    np.maximum(v - level, 0.0, out=v)


def into_class(kind: int, v: FloatArray) -> None:
    """The nearest point of the box, the ball or the simplex of a cost class."""
    if kind == BOX:
        np.clip(v, -1.0, 1.0, out=v)
    elif kind == BALL:
        v /= max(float(np.linalg.norm(v)), 1.0)
    else:
        into_simplex(v)


def move_small(program: Program, steps: FloatArray, at: Point) -> None:
    """The dual variables of budgets and costs."""
    moved, budgets = at.small + steps * (program.small @ at.theta - program.small_target), 0
    if program.num_budgets:
        budgets = program.num_budgets
        np.clip(moved[:budgets], 0.0, 1.0, out=moved[:budgets])
    if moved.size > budgets:
        into_class(program.kind, moved[budgets:])
    np.add(at.small_sum, moved, out=at.small_sum)
    np.matmul(moved - at.small, program.small, out=at.dz)
    at.small[:] = moved


def advance(order: IntArray, program: Program, omega: float, at: Point) -> None:
    """One step for each block of `order`."""
    theta, z, dz = at.theta, at.z, at.dz
    ahead, square = float(program.num_blocks), program.radius**2
    primal_steps, small_steps = omega * program.primal_steps, program.small_steps / omega
    blocks = _blocks(program, omega, at)
    with np.errstate(all="ignore"):  # who calls sees whether numbers are finite
        for block in order.tolist():
            np.add(z, dz, out=z)
            push = dz * ahead
            push += z
            push += program.slope
            push *= primal_steps
            np.subtract(theta, push, out=theta)
            if not theta @ theta <= square:
                into_ball(theta, program.primal_steps, program.radius)
            np.add(at.theta_sum, theta, out=at.theta_sum)
            if block == len(blocks):
                move_small(program, small_steps, at)
                continue
            matrix, targets, steps, low, high, y, y_sum = blocks[block]
            moved = matrix @ theta
            moved -= targets
            moved *= steps
            moved += y
            np.maximum(moved, low, out=moved)
            np.minimum(moved, high, out=moved)
            np.add(y_sum, moved, out=y_sum)
            np.matmul(moved - y, matrix, out=dz)
            y[:] = moved


def _blocks(program: Program, omega: float, at: Point) -> list[tuple[FloatArray, ...]]:
    """What a step looks at in each block; dual variables and their sums are those of `at`."""
    steps = program.dual_steps / omega
    parts = *program.rows, steps, program.low, program.high, at.y, at.y_sum
    starts = program.starts.tolist()
    return [tuple(part[start:stop] for part in parts) for start, stop in pairwise(starts)]


def row_errors(rows: PlainRows, theta: FloatArray, into: FloatArray) -> None:
    """A theta - b, for all rows of the blocks."""
    np.subtract(rows.matrix @ theta, rows.targets, out=into)


def add_rows(rows: PlainRows, y: FloatArray, into: FloatArray) -> None:
    """into += A'y, likewise."""
    into += y @ rows.matrix


def largest_columns(rows: PlainRows, starts: IntArray, into: FloatArray) -> None:
    """The largest sum of the sizes of a column in any block."""
    totals = np.add.reduceat(np.abs(rows.matrix), starts[:-1], axis=0)
    np.maximum(into, totals.max(axis=0), out=into)
