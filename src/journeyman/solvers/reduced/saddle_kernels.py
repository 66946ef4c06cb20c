"""Compiled loops of the stochastic primal-dual steps; `plain_saddle` does the same without a
compiler."""

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import add, dot, inner_kernel, norm, vector_kernel
from journeyman.costs.cost_class import BALL, BOX
from journeyman.solvers.reduced.kernels import row_add, row_dot
from journeyman.solvers.reduced.plain_saddle import Point, Program
from journeyman.solvers.reduced.rows import HEADER, THRESHOLD, Rows


@vector_kernel
def into_ball(theta: FloatArray, steps: FloatArray, radius: float) -> None:
    """The nearest point of the ball in the norm |.|_{1/steps}, by Newton's method.

    It is theta_j/(1 + mu steps_j) for the mu at which its length is the radius; 1/length is concave
    in mu, so Newton's method from 0 gets there from below.
    """
    mu, length = 0.0, norm(theta)
    for _ in range(64):
        fall, square = 0.0, 0.0
        for j in range(theta.size):
            shrunk = theta[j] / (1.0 + mu * steps[j])
            square += shrunk * shrunk
            fall += shrunk * shrunk * steps[j] / (1.0 + mu * steps[j])
        length = np.sqrt(square)
        if not (length > radius * (1.0 + 1e-13) and fall > 0.0):
            break
        mu += (length - radius) / radius * square / fall
    factor = min(1.0, radius / length)
    for j in range(theta.size):
        theta[j] *= factor / (1.0 + mu * steps[j])


@vector_kernel
def into_simplex(v: FloatArray) -> None:
    """The nearest point with v >= 0 and sum one: what is above a level, which rises while entries
    fall below it (Michelot 1986; the compiler takes long for a sort)."""
    level, kept, above = -np.inf, v.size + 1, v.size
    while above < kept:
        total, kept, above = 0.0, above, 0
        for i in range(v.size):
            if v[i] > level:
                total += v[i]
        level = (total - 1.0) / kept
        for i in range(v.size):
            above += v[i] > level
    for i in range(v.size):
        v[i] = max(v[i] - level, 0.0)


@vector_kernel
def into_class(kind: int, v: FloatArray) -> None:
    """The nearest point of the box, the ball or the simplex of a cost class."""
    if kind == BOX:
        for i in range(v.size):
            v[i] = min(max(v[i], -1.0), 1.0)
    elif kind == BALL:
        length = norm(v)
        if length > 1.0:
            for i in range(v.size):
                v[i] /= length
    else:
        into_simplex(v)


@inner_kernel
def move_theta(program: Program, omega: float, ahead: float, at: Point) -> None:
    """theta after a step against slope + zbar, where zbar = z + ahead dz for z after dz."""
    theta, square = at.theta, 0.0
    for j in range(theta.size):
        changed = at.dz[j]
        z = at.z[j] + changed
        at.z[j], at.dz[j] = z, 0.0
        push = program.slope[j] + z + ahead * changed
        theta[j] -= omega * program.primal_steps[j] * push
        square += theta[j] * theta[j]
    if not square <= program.radius * program.radius:
        into_ball(theta, program.primal_steps, program.radius)
    add(1.0, theta, at.theta_sum)


@inner_kernel
def move_small(program: Program, omega: float, before: FloatArray, at: Point) -> None:
    """The dual variables of budgets and costs."""
    y = at.small
    for i in range(y.size):
        before[i] = y[i]
        error = dot(program.small[i], at.theta) - program.small_target[i]
        y[i] += program.small_steps[i] / omega * error
    for i in range(program.num_budgets):
        y[i] = min(max(y[i], 0.0), 1.0)
    if y.size > program.num_budgets:
        into_class(program.kind, y[program.num_budgets :])
    for i in range(y.size):
        at.small_sum[i] += y[i]
        if y[i] != before[i]:
            add(y[i] - before[i], program.small[i], at.dz)


@vector_kernel
def advance(order: IntArray, program: Program, omega: float, at: Point) -> None:
    """One step for each block of `order`."""
    rows, y, ahead = program.rows, at.y, float(program.starts.size)
    before = np.empty_like(at.small)
    for k in range(order.size):
        move_theta(program, omega, ahead, at)
        block = order[k]
        if block == program.starts.size - 1:
            move_small(program, omega, before, at)
            continue
        for r in range(program.starts[block], program.starts[block + 1]):
            error = row_dot(rows, r, at.theta) - rows.numbers[rows.heads[r] + THRESHOLD]
            moved = y[r] + program.dual_steps[r] / omega * error
            moved = min(max(moved, program.low[r]), program.high[r])
            change = moved - y[r]
            at.y_sum[r] += moved
            if change != 0.0:
                y[r] = moved
                row_add(rows, r, change, at.dz)


@vector_kernel
def row_errors(rows: Rows, theta: FloatArray, into: FloatArray) -> None:
    """A theta - b, for all rows of the blocks."""
    for r in range(into.size):
        into[r] = row_dot(rows, r, theta) - rows.numbers[rows.heads[r] + THRESHOLD]


@vector_kernel
def add_rows(rows: Rows, y: FloatArray, into: FloatArray) -> None:
    """into += A'y, likewise."""
    for r in range(y.size):
        if y[r] != 0.0:
            row_add(rows, r, y[r], into)


@vector_kernel
def largest_columns(rows: Rows, starts: IntArray, into: FloatArray) -> None:
    """The largest sum of the sizes of a column in any block."""
    total = np.empty_like(into)
    for block in range(starts.size - 1):
        total[:] = 0.0
        for r in range(starts[block], starts[block + 1]):
            start, stop = rows.heads[r] + HEADER, rows.heads[r + 1]
            middle = start + (stop - start) // 3 * 2 if rows.is_sparse else stop
            for k in range(start, middle):
                column = rows.integers[2 * middle + k - start] if rows.is_sparse else k - start
                total[column] += abs(rows.numbers[k])
        for j in range(into.size):
            into[j] = max(into[j], total[j])
