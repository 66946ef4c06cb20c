"""The compiled loop of SGD-AL: consumes blocks of drawn rows, knows nothing of where they are from.

    g_t = G'w* + lambda_3 C'1{over budget} + (1/b) sum_k flow_k sign(D_k theta - nu_k)
          - (1/b) sum_k pair_k 1{Phi_k theta < floor_k} Phi_k
    theta_{t+1} = project(theta_t - step_t * g_t),      totals of weight_t theta_t and weight_t g_t

where k runs over the b pairs and b states drawn for step t, and pair_k = lambda_1/q1, flow_k =
lambda_2/q2 are their importance weights. Rows live in tables (dense, or CSR); a block is a list of
positions in them. Cost per step: O(num_costs d) for the matching term plus the entries of 2b rows.
"""

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import kernel

INFINITY_BALL, EUCLIDEAN_BALL, SIMPLEX, KNOWN_COST = range(4)
CONSTANT, INVERSE_ROOT, NORM_ADAPTIVE, COORDINATE_ADAPTIVE, DUAL_AVERAGING = range(5)

WEIGHT, SQUARED_WEIGHT, REGRET, SQUARED_NORM = range(4)
"""Positions in `totals`: sums of w_t, w_t^2, w_t <g_t, theta_t> and |g_t|^2."""


@kernel
def row_dot(data: FloatArray, indices: IntArray, start: int, stop: int, theta: FloatArray) -> float:
    """<row, theta>; without `indices` the row is dense."""
    total = 0.0
    if indices.size == 0:
        for k in range(stop - start):
            total += data[start + k] * theta[k]
    else:
        for k in range(start, stop):
            total += data[k] * theta[indices[k]]
    return total


@kernel
def row_add(
    data: FloatArray, indices: IntArray, start: int, stop: int, weight: float, into: FloatArray
) -> None:
    """into += weight * row."""
    if indices.size == 0:
        for k in range(stop - start):
            into[k] += weight * data[start + k]
    else:
        for k in range(start, stop):
            into[indices[k]] += weight * data[k]


@kernel
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


@kernel
def exact_part(
    kind: int,
    matching: FloatArray,
    target: FloatArray,
    scale: FloatArray,
    budgets: FloatArray,
    limits: FloatArray,
    budget_penalty: float,
    theta: FloatArray,
    z: FloatArray,
    weights: FloatArray,
    gradient: FloatArray,
) -> None:
    """gradient = G'w* + lambda_3 C'1{over budget}, in full."""
    for i in range(target.size):
        total = 0.0
        for j in range(theta.size):
            total += matching[i, j] * theta[j]
        z[i] = total - target[i]
    worst_case(kind, z, scale, weights)
    gradient[:] = 0.0
    for i in range(target.size):
        if weights[i] != 0.0:
            for j in range(theta.size):
                gradient[j] += weights[i] * matching[i, j]
    for i in range(limits.size):
        total = 0.0
        for j in range(theta.size):
            total += budgets[i, j] * theta[j]
        if total > limits[i]:
            for j in range(theta.size):
                gradient[j] += budget_penalty * budgets[i, j]


@kernel
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


@kernel
def move(
    rule: int,
    rate: float,
    step: int,
    square: float,
    gradient: FloatArray,
    gradient_sum: FloatArray,
    squares: FloatArray,
    totals: FloatArray,
    theta: FloatArray,
) -> None:
    """theta after step number `step` (from 1), before the projection."""
    if rule == COORDINATE_ADAPTIVE:
        for j in range(theta.size):
            squares[j] += gradient[j] * gradient[j]
            if squares[j] > 0.0:
                theta[j] -= rate * gradient[j] / np.sqrt(squares[j])
        return
    if rule == DUAL_AVERAGING:
        size = rate / np.sqrt(step + 1.0)
        for j in range(theta.size):
            theta[j] = -size * gradient_sum[j]
        return
    size = rate
    if rule == INVERSE_ROOT:
        size = rate / np.sqrt(float(step))
    elif rule == NORM_ADAPTIVE:
        size = rate / np.sqrt(totals[SQUARED_NORM]) if totals[SQUARED_NORM] > 0.0 else 0.0
    for j in range(theta.size):
        theta[j] -= size * gradient[j]


@kernel
def advance(
    first_step: int,
    batch: int,
    pair_at: IntArray,
    state_at: IntArray,
    pair_data: FloatArray,
    pair_indices: IntArray,
    pair_starts: IntArray,
    pair_floor: FloatArray,
    pair_weight: FloatArray,
    flow_data: FloatArray,
    flow_indices: IntArray,
    flow_starts: IntArray,
    flow_target: FloatArray,
    flow_weight: FloatArray,
    kind: int,
    matching: FloatArray,
    target: FloatArray,
    scale: FloatArray,
    budgets: FloatArray,
    limits: FloatArray,
    budget_penalty: float,
    rule: int,
    rate: float,
    radius: float,
    nonnegative: bool,
    power: float,
    theta: FloatArray,
    weighted_theta: FloatArray,
    weighted_gradient: FloatArray,
    gradient_sum: FloatArray,
    squares: FloatArray,
    totals: FloatArray,
) -> None:
    """Consume the drawn rows, `batch` pairs and states per step; the state arrays are updated."""
    gradient = np.empty_like(theta)
    z, weights = np.empty_like(target), np.empty_like(target)
    share = 1.0 / batch
    for t in range(pair_at.size // batch):
        exact_part(
            kind, matching, target, scale, budgets, limits, budget_penalty, theta, z, weights,
            gradient,
        )  # fmt: skip
        for k in range(t * batch, (t + 1) * batch):
            s, y = pair_at[k], state_at[k]
            start, stop = pair_starts[s], pair_starts[s + 1]
            if row_dot(pair_data, pair_indices, start, stop, theta) < pair_floor[s]:
                row_add(pair_data, pair_indices, start, stop, -share * pair_weight[s], gradient)
            start, stop = flow_starts[y], flow_starts[y + 1]
            error = row_dot(flow_data, flow_indices, start, stop, theta) - flow_target[y]
            if error != 0.0:
                signed = share * flow_weight[y] * np.sign(error)
                row_add(flow_data, flow_indices, start, stop, signed, gradient)
        step = first_step + t + 1
        weight = float(step) ** power
        square, inner = 0.0, 0.0
        for j in range(theta.size):
            square += gradient[j] * gradient[j]
            inner += gradient[j] * theta[j]
            weighted_theta[j] += weight * theta[j]
            weighted_gradient[j] += weight * gradient[j]
            gradient_sum[j] += gradient[j]
        totals[WEIGHT] += weight
        totals[SQUARED_WEIGHT] += weight * weight
        totals[REGRET] += weight * inner
        totals[SQUARED_NORM] += square
        move(rule, rate, step, square, gradient, gradient_sum, squares, totals, theta)
        project(theta, radius, nonnegative)
