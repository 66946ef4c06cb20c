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
from journeyman.compiled import vector_kernel
from journeyman.solvers.row_source import Rows
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
    start, stop = rows.starts[k], rows.starts[k + 1]
    total = 0.0
    if rows.indices.size == 0:
        for j in range(theta.size):
            total += rows.data[start + j] * theta[j]
    else:
        for at in range(start, stop):
            total += rows.data[at] * theta[rows.indices[at]]
    return total


@vector_kernel
def row_add(rows: Rows, k: int, factor: float, into: FloatArray) -> None:
    """into += factor * row k."""
    start, stop = rows.starts[k], rows.starts[k + 1]
    if rows.indices.size == 0:
        for j in range(into.size):
            into[j] += factor * rows.data[start + j]
    else:
        for at in range(start, stop):
            into[rows.indices[at]] += factor * rows.data[at]


@vector_kernel
def worst_case(kind: int, z: FloatArray, scale: FloatArray, weights: FloatArray) -> None:
    """Cost weights that attain the support function at z."""
    if kind == INFINITY_BALL:
        for i in range(z.size):
            weights[i] = scale[i] * np.sign(z[i])
    elif kind == EUCLIDEAN_BALL:
        norm = 0.0
        for i in range(z.size):
            norm += (scale[i] * z[i]) ** 2
        norm = np.sqrt(norm)
        for i in range(z.size):
            weights[i] = scale[i] ** 2 * z[i] / norm if norm > 0 else 0.0
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
        total = 0.0
        for j in range(theta.size):
            total += exact.matching[i, j] * theta[j]
        z[i] = total - exact.target[i]
    worst_case(exact.kind, z, exact.scale, weights)
    gradient[:] = 0.0
    for i in range(z.size):
        factor = weights[i]
        if factor != 0.0:
            for j in range(theta.size):
                gradient[j] += factor * exact.matching[i, j]


@vector_kernel
def budget_part(exact: Exact, omega: float, it: Iterate, gradient: FloatArray) -> None:
    """gradient += lambda_3 C'1{over budget}."""
    for i in range(exact.limits.size):
        total = 0.0
        for j in range(gradient.size):
            total += exact.budgets[i, j] * it.theta[j]
        if total > exact.limits[i]:
            it.weighted_budgets[i] += omega
            for j in range(gradient.size):
                gradient[j] += exact.budget_penalty * exact.budgets[i, j]


@vector_kernel
def sampled_part(
    first: int,
    batch: int,
    pair_at: IntArray,
    state_at: IntArray,
    pairs: Rows,
    flow: Rows,
    omega: float,
    theta: FloatArray,
    gradient: FloatArray,
) -> None:
    """gradient += the estimate from rows `first` to `first + batch`; what is active is counted."""
    share = 1.0 / batch
    for k in range(first, first + batch):
        s, y = pair_at[k], state_at[k]
        pairs.seen[s] += omega
        if row_dot(pairs, s, theta) < pairs.threshold[s]:
            pairs.active[s] += omega
            row_add(pairs, s, -share * pairs.weight[s], gradient)
        sign = np.sign(row_dot(flow, y, theta) - flow.threshold[y])
        flow.seen[y] += omega
        if sign != 0.0:
            flow.active[y] += omega * sign
            row_add(flow, y, share * flow.weight[y] * sign, gradient)


@vector_kernel
def project(theta: FloatArray, radius: float, nonnegative: bool) -> None:
    """Nearest point of the ball, or of its nonnegative part."""
    square = 0.0
    for j in range(theta.size):
        if nonnegative and theta[j] < 0.0:
            theta[j] = 0.0
        square += theta[j] * theta[j]
    if square > radius * radius:
        factor = radius / np.sqrt(square)
        for j in range(theta.size):
            theta[j] *= factor


@vector_kernel
def move(motion: Motion, step: int, it: Iterate, gradient: FloatArray) -> None:
    """theta after step number `step` (from 1), before the projection."""
    theta = it.theta
    if motion.rule == COORDINATE_ADAPTIVE:
        for j in range(theta.size):
            it.squares[j] += gradient[j] * gradient[j]
            if it.squares[j] > 0.0:
                theta[j] -= motion.rate * gradient[j] / np.sqrt(it.squares[j])
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
    for j in range(theta.size):
        theta[j] -= size * gradient[j]


@vector_kernel
def account(omega: float, it: Iterate, gradient: FloatArray) -> None:
    """Sums for the average, the realised regret and the adaptive rules."""
    square, inner = 0.0, 0.0
    for j in range(gradient.size):
        square += gradient[j] * gradient[j]
        inner += gradient[j] * it.theta[j]
        it.weighted_theta[j] += omega * it.theta[j]
        it.weighted_gradient[j] += omega * gradient[j]
        it.gradient_sum[j] += gradient[j]
    it.totals[WEIGHT] += omega
    it.totals[SQUARED_WEIGHT] += omega * omega
    it.totals[REGRET] += omega * inner
    it.totals[SQUARED_NORM] += square


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
    for t in range(pair_at.size // motion.batch):
        step = done + t + 1
        omega = float(step) ** motion.power
        exact_part(exact, it.theta, z, weights, gradient)
        budget_part(exact, omega, it, gradient)
        for i in range(weights.size):
            it.weighted_costs[i] += omega * weights[i]
        sampled_part(
            t * motion.batch, motion.batch, pair_at, state_at, pairs, flow, omega, it.theta,
            gradient,
        )  # fmt: skip
        account(omega, it, gradient)
        move(motion, step, it, gradient)
        project(it.theta, motion.radius, motion.nonnegative)
