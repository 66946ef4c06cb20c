"""The compiled loop of SGD-AL: consumes blocks of drawn rows, knows nothing of where they are from.

    g_t = G'w* + lambda_3 C'1{over budget}
          + (1/b) sum_k weight_k sign(D_k theta - nu_k) D_k
          - (1/b) sum_k weight_k 1{Phi_k theta < floor_k} Phi_k
    theta_{t+1} = project(move(theta_t, g_t)),      totals of omega_t theta_t and omega_t g_t

where k runs over the b states and b pairs drawn for step t, weight_k is their importance weight and
omega_t = t^power the weight of step t in the average. What each row contributed is counted, which
makes a dual point. Cost per step: O(num_costs d) for the matching term plus the entries of 2b rows.
"""

from typing import NamedTuple

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import add, dot, norm, prefetch, sparse_add, sparse_dot, vector_kernel
from journeyman.solvers.row_source import ACTIVE, FIGURES, IMPORTANCE, SEEN, THRESHOLD, Rows
from journeyman.solvers.subgradient_codes import (
    COORDINATE_ADAPTIVE,
    DUAL_AVERAGING,
    EUCLIDEAN_BALL,
    INFINITY_BALL,
    INVERSE_ROOT,
    NORM_ADAPTIVE,
    REGRET,
    SIMPLEX,
    SQUARED_NORM,
    SQUARED_WEIGHT,
    WEIGHT,
)

NUMBERS_PER_LINE = 8
"""Numbers that come from memory together."""
SMALLEST = 1e-300
"""Stands for a sum of squares that is still zero."""


class Exact(NamedTuple):
    """The part of the loss that is not sampled: matching and budgets."""

    kind: int
    matching: FloatArray
    target: FloatArray
    scale: FloatArray
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


@vector_kernel
def row_dot(rows: Rows, k: int, theta: FloatArray) -> float:
    """<row k, theta>."""
    start, stop = rows.heads[k] + FIGURES, rows.heads[k + 1]
    if not rows.is_sparse:
        return dot(rows.numbers[start:stop], theta)
    middle = start + (stop - start) // 3 * 2
    return sparse_dot(rows.numbers[start:middle], rows.integers[2 * middle : 2 * stop], theta)


@vector_kernel
def row_add(rows: Rows, k: int, factor: float, into: FloatArray) -> None:
    """into += factor * row k."""
    start, stop = rows.heads[k] + FIGURES, rows.heads[k + 1]
    if not rows.is_sparse:
        add(factor, rows.numbers[start:stop], into)
    else:
        middle = start + (stop - start) // 3 * 2
        sparse_add(factor, rows.numbers[start:middle], rows.integers[2 * middle : 2 * stop], into)


@vector_kernel
def worst_case(kind: int, z: FloatArray, scale: FloatArray, weights: FloatArray) -> None:
    """Cost weights that attain the support function at z."""
    if kind == INFINITY_BALL:
        for i in range(z.size):
            weights[i] = scale[i] * np.sign(z[i])
    elif kind == EUCLIDEAN_BALL:
        for i in range(z.size):
            weights[i] = scale[i] * z[i]
        length = norm(weights)
        for i in range(z.size):
            weights[i] = scale[i] * (weights[i] / length) if length > 0 else 0.0
    elif kind == SIMPLEX:
        best = 0
        for i in range(z.size):
            weights[i] = 0.0
            if scale[i] * z[i] > scale[best] * z[best]:
                best = i
        weights[best] = scale[best]
    else:
        weights[0] = 1.0


@vector_kernel
def exact_part(
    exact: Exact, theta: FloatArray, z: FloatArray, weights: FloatArray, gradient: FloatArray
) -> None:
    """gradient = G'w*, in full; w* is left in `weights`."""
    for i in range(z.size):
        z[i] = dot(exact.matching[i], theta) - exact.target[i]
    worst_case(exact.kind, z, exact.scale, weights)
    gradient[:] = 0.0
    for i in range(z.size):
        if weights[i] != 0.0:
            add(weights[i], exact.matching[i], gradient)


@vector_kernel
def budget_part(exact: Exact, omega: float, it: Iterate, gradient: FloatArray) -> None:
    """gradient += lambda_3 C'1{over budget}."""
    for i in range(exact.limits.size):
        if dot(exact.budgets[i], it.theta) > exact.limits[i]:
            it.weighted_budgets[i] += omega
            add(exact.budget_penalty, exact.budgets[i], gradient)


@vector_kernel
def ask_ahead(rows: Rows, at: IntArray, t: int, batch: int) -> None:
    """Ask the memory for the rows of batch t + 1, and where those of batch t + 2 are.

    Random rows of a large table come from far away; while batch t is worked on they arrive.
    """
    for k in range(t * batch + batch, min(t * batch + 2 * batch, at.size)):
        for place in range(rows.heads[at[k]], rows.heads[at[k] + 1], NUMBERS_PER_LINE):
            prefetch(rows.numbers, place)
    for k in range(t * batch + 2 * batch, min(t * batch + 3 * batch, at.size)):
        prefetch(rows.heads, at[k])


@vector_kernel
def sampled_part(
    first: int,
    pair_at: IntArray,
    state_at: IntArray,
    pairs: Rows,
    flow: Rows,
    omega: float,
    theta: FloatArray,
    inner: FloatArray,
    gradient: FloatArray,
) -> None:
    """gradient += the estimate from the batch that begins at `first`; what is active is counted."""
    batch = inner.shape[1]
    share = 1.0 / batch
    for k in range(batch):
        inner[0, k] = row_dot(pairs, pair_at[first + k], theta)
    for k in range(batch):
        inner[1, k] = row_dot(flow, state_at[first + k], theta)
    for k in range(batch):
        figures = pairs.heads[pair_at[first + k]]
        pairs.numbers[figures + SEEN] += omega
        if inner[0, k] < pairs.numbers[figures + THRESHOLD]:
            pairs.numbers[figures + ACTIVE] += omega
            weight = pairs.numbers[figures + IMPORTANCE]
            row_add(pairs, pair_at[first + k], -share * weight, gradient)
    for k in range(batch):
        figures = flow.heads[state_at[first + k]]
        sign = np.sign(inner[1, k] - flow.numbers[figures + THRESHOLD])
        flow.numbers[figures + SEEN] += omega
        flow.numbers[figures + ACTIVE] += omega * sign
        weight = flow.numbers[figures + IMPORTANCE]
        row_add(flow, state_at[first + k], share * weight * sign, gradient)


@vector_kernel
def project(theta: FloatArray, radius: float, nonnegative: bool) -> None:
    """Nearest point of the ball, or of its nonnegative part."""
    if nonnegative:
        for j in range(theta.size):
            theta[j] = max(theta[j], 0.0)
    length = norm(theta)
    if length > radius:
        factor = radius / length
        for j in range(theta.size):
            theta[j] *= factor


@vector_kernel
def move(motion: Motion, step: int, it: Iterate, gradient: FloatArray) -> None:
    """theta after step number `step` (from 1), before the projection."""
    theta = it.theta
    if motion.rule == COORDINATE_ADAPTIVE:
        for j in range(theta.size):
            it.squares[j] += gradient[j] * gradient[j]
        for j in range(theta.size):
            theta[j] -= motion.rate * gradient[j] / np.sqrt(max(it.squares[j], SMALLEST))
        return
    if motion.rule == DUAL_AVERAGING:
        size = motion.rate / np.sqrt(step + 1.0)
        for j in range(theta.size):
            theta[j] = -size * it.gradient_sum[j]
        return
    size = motion.rate
    if motion.rule == INVERSE_ROOT:
        size = motion.rate / np.sqrt(float(step))
    elif motion.rule == NORM_ADAPTIVE:
        total = it.totals[SQUARED_NORM]
        size = motion.rate / np.sqrt(total) if total > 0.0 else 0.0
    add(-size, gradient, theta)


@vector_kernel
def account(omega: float, it: Iterate, gradient: FloatArray) -> None:
    """Sums for the average, the realised regret and the adaptive rules."""
    add(omega, it.theta, it.weighted_theta)
    add(omega, gradient, it.weighted_gradient)
    add(1.0, gradient, it.gradient_sum)
    it.totals[WEIGHT] += omega
    it.totals[SQUARED_WEIGHT] += omega * omega
    it.totals[REGRET] += omega * dot(gradient, it.theta)
    it.totals[SQUARED_NORM] += dot(gradient, gradient)


@vector_kernel
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
    gradient = np.empty_like(it.theta)
    z, weights = np.empty_like(exact.target), np.empty_like(exact.target)
    inner = np.empty((2, motion.batch))
    for t in range(pair_at.size // motion.batch):
        ask_ahead(pairs, pair_at, t, motion.batch)
        ask_ahead(flow, state_at, t, motion.batch)
        step = done + t + 1
        omega = float(step) ** motion.power
        exact_part(exact, it.theta, z, weights, gradient)
        budget_part(exact, omega, it, gradient)
        for i in range(weights.size):
            it.weighted_costs[i] += omega * weights[i]
        first = t * motion.batch
        sampled_part(first, pair_at, state_at, pairs, flow, omega, it.theta, inner, gradient)
        account(omega, it, gradient)
        move(motion, step, it, gradient)
        project(it.theta, motion.radius, motion.nonnegative)
