"""The compiled loop of SGD-AL: consumes blocks of drawn rows, knows nothing of where they are from.

    g_t = G'w* + lambda_3 C'1{over budget}
          + (1/b) sum_k weight_k sign(D_k theta - nu_k) D_k
          - (1/b) sum_k weight_k 1{Phi_k theta < floor_k} Phi_k
    theta_{t+1} = project(move(theta_t, g_t)),      totals of omega_t theta_t and omega_t g_t

where k runs over the b states and b pairs drawn for step t, weight_k is their importance weight and
omega_t = t^power the weight of step t in the average. What each row contributed is counted, which
makes a dual point. Cost per step: O(num_costs d) for the matching term plus the entries of 2b rows.
"""

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import (
    add,
    dot,
    inner_kernel,
    kernel,
    norm,
    prefetch,
    sparse_add,
    sparse_dot,
    vector_kernel,
)
from journeyman.costs.cost_class import BALL, BOX, LARGEST
from journeyman.solvers.reduced.plain_descent import (
    SMALLEST,
    Exact,
    Images,
    Iterate,
    Matched,
    Motion,
)
from journeyman.solvers.reduced.rows import (
    ACTIVE,
    HEADER,
    IMPORTANCE,
    SEEN,
    THRESHOLD,
    Rows,
    alias_tables,
)
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

NUMBERS_PER_LINE = 8
"""Numbers that come from memory together."""
compiled_alias_tables = kernel(alias_tables)


@vector_kernel
def row_dot(rows: Rows, k: int, theta: FloatArray) -> float:
    """<row k, theta>."""
    start, stop = rows.heads[k] + HEADER, rows.heads[k + 1]
    if not rows.is_sparse:
        return dot(rows.numbers[start:stop], theta)
    middle = start + (stop - start) // 3 * 2
    return sparse_dot(rows.numbers[start:middle], rows.integers[2 * middle : 2 * stop], theta)


@vector_kernel
def row_add(rows: Rows, k: int, factor: float, into: FloatArray) -> None:
    """into += factor * row k."""
    start, stop = rows.heads[k] + HEADER, rows.heads[k + 1]
    if not rows.is_sparse:
        add(factor, rows.numbers[start:stop], into)
    else:
        middle = start + (stop - start) // 3 * 2
        sparse_add(factor, rows.numbers[start:middle], rows.integers[2 * middle : 2 * stop], into)


@inner_kernel
def best_point(points: FloatArray, z: FloatArray) -> int:
    """The point with the largest product."""
    best, most = 0, -np.inf
    for k in range(points.shape[0]):
        value = dot(points[k], z)
        if value > most:
            best, most = k, value
    return best


@inner_kernel
def worst_case(exact: Exact, z: FloatArray, weights: FloatArray) -> None:
    """Cost weights that attain the support function at z, by the form of the class."""
    scale, centre = exact.scale, exact.centre
    if exact.kind == BOX:
        for i in range(z.size):
            weights[i] = centre[i] + scale[i] * np.sign(z[i])
    elif exact.kind == BALL:
        for i in range(z.size):
            weights[i] = scale[i] * z[i]
        length = norm(weights)
        for i in range(z.size):
            share = weights[i] / length if length > 0 else 0.0
            weights[i] = centre[i] + scale[i] * share
    elif exact.kind == LARGEST:
        best = 0
        for i in range(z.size):
            weights[i] = 0.0
            if scale[i] * z[i] > scale[best] * z[best]:
                best = i
        weights[best] = scale[best]
    else:
        chosen = best_point(exact.points, z)
        for i in range(z.size):  # the compiler takes seconds for an assignment to a slice
            weights[i] = exact.points[chosen, i]


@inner_kernel
def exact_part(
    exact: Exact, theta: FloatArray, z: FloatArray, weights: FloatArray, gradient: FloatArray
) -> None:
    """gradient = G'w*, in full; w* is left in `weights`."""
    for i in range(z.size):
        z[i] = dot(exact.matching[i], theta) - exact.target[i]
    worst_case(exact, z, weights)
    for j in range(gradient.size):
        gradient[j] = 0.0
    for i in range(z.size):
        if weights[i] != 0.0:
            add(weights[i], exact.matching[i], gradient)


@inner_kernel
def budget_part(exact: Exact, omega: float, it: Iterate, gradient: FloatArray) -> None:
    """gradient += lambda_3 C'1{over budget}."""
    for i in range(exact.limits.size):
        if dot(exact.budgets[i], it.theta) > exact.limits[i]:
            it.weighted_budgets[i] += omega
            add(exact.budget_penalty, exact.budgets[i], gradient)


@inner_kernel
def ask_ahead(rows: Rows, at: IntArray, t: int, batch: int) -> None:
    """Ask the memory for the rows of batch t + 1, and where those of batch t + 2 are.

    Random rows of a large table come from far away; while batch t is worked on they arrive.
    """
    for k in range(t * batch + batch, min(t * batch + 2 * batch, at.size)):
        for place in range(rows.heads[at[k]], rows.heads[at[k] + 1], NUMBERS_PER_LINE):
            prefetch(rows.numbers, place)
    for k in range(t * batch + 2 * batch, min(t * batch + 3 * batch, at.size)):
        prefetch(rows.heads, at[k])


@inner_kernel
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
        head = pairs.heads[pair_at[first + k]]
        pairs.numbers[head + SEEN] += omega
        if inner[0, k] < pairs.numbers[head + THRESHOLD]:
            pairs.numbers[head + ACTIVE] += omega
            weight = pairs.numbers[head + IMPORTANCE]
            row_add(pairs, pair_at[first + k], -share * weight, gradient)
    for k in range(batch):
        head = flow.heads[state_at[first + k]]
        sign = np.sign(inner[1, k] - flow.numbers[head + THRESHOLD])
        flow.numbers[head + SEEN] += omega
        flow.numbers[head + ACTIVE] += omega * sign
        weight = flow.numbers[head + IMPORTANCE]
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


@inner_kernel
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


@inner_kernel
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


REFRESH = 4096
"""Steps after which z is computed anew."""
AHEAD = 4
"""Steps ahead for which rows are asked from the memory."""


@inner_kernel
def refresh(exact: Exact, theta: FloatArray, matched: Matched) -> None:
    """Everything about z anew from theta."""
    for j in range(matched.slope.size):
        matched.slope[j] = 0.0
    for i in range(exact.target.size):
        matched.z[i] = dot(exact.matching[i], theta) - exact.target[i]
        matched.signs[i] = exact.scale[i] * np.sign(matched.z[i])
        add(matched.signs[i], exact.matching[i], matched.slope)
    for i in range(exact.target.size):
        matched.image[i] = dot(exact.matching[i], matched.slope)


@inner_kernel
def flip(exact: Exact, images: Images, matched: Matched, it: Iterate) -> None:
    """Follow the signs of z, and book the time each cost has had its sign."""
    now = it.totals[WEIGHT]
    for i in range(exact.target.size):
        sign = exact.scale[i] * np.sign(matched.z[i])
        if sign != matched.signs[i]:
            it.weighted_costs[i] += matched.signs[i] * (now - matched.since[i])
            matched.since[i] = now
            change = sign - matched.signs[i]
            matched.signs[i] = sign
            add(change, exact.matching[i], matched.slope)
            add(change, images.costs[i], matched.image)


@inner_kernel
def settle(matched: Matched, it: Iterate) -> None:
    """Book the time up to now."""
    for i in range(matched.signs.size):
        it.weighted_costs[i] += matched.signs[i] * (it.totals[WEIGHT] - matched.since[i])
        matched.since[i] = it.totals[WEIGHT]


@inner_kernel
def shrink(exact: Exact, it: Iterate, matched: Matched, factor: float) -> None:
    """Back onto the ball: theta and z move together."""
    for j in range(it.theta.size):
        it.theta[j] *= factor
    for i in range(exact.target.size):
        matched.z[i] = factor * (matched.z[i] + exact.target[i]) - exact.target[i]


@inner_kernel
def follow(rate: float, factor: float, image: FloatArray, matched: Matched) -> int:
    """Move z with theta; how many of its signs may have changed."""
    turned = 0
    for i in range(matched.z.size):
        z = matched.z[i] - rate * (matched.image[i] + factor * image[i])
        matched.z[i] = z
        turned += 1 if z * matched.signs[i] <= 0.0 else 0
    return turned


@inner_kernel
def step_along(
    omega: float, rate: float, factor: float, row: FloatArray, matched: Matched, it: Iterate
) -> tuple[float, float]:
    """theta -= rate g with g = slope + factor row, all sums updated in one pass over theta.

    Returns <g, theta> before the step and |theta|^2 after it.
    """
    slope, theta = matched.slope, it.theta
    averaged, summed = it.weighted_theta, it.weighted_gradient
    regret, norm = 0.0, 0.0
    for j in range(theta.size):
        here, gradient = theta[j], slope[j] + factor * row[j]
        regret += gradient * here
        averaged[j] += omega * here
        summed[j] += omega * gradient
        there = here - rate * gradient
        theta[j] = there
        norm += there * there
    return regret, norm


@inner_kernel
def combine(p: float, a: FloatArray, q: float, b: FloatArray, into: FloatArray) -> None:
    """into = p a + q b."""
    for j in range(into.size):
        into[j] = p * a[j] + q * b[j]


@inner_kernel
def ask_for(rows: Rows, k: int, images: FloatArray) -> None:
    """Ask the memory for row k and its image, which a later step needs."""
    for place in range(rows.heads[k], rows.heads[k + 1], NUMBERS_PER_LINE):
        prefetch(rows.numbers, place)
    for place in range(0, images.shape[1], NUMBERS_PER_LINE):
        prefetch(images[k], place)


@vector_kernel
def advance_incrementally(
    done: int,
    pair_at: IntArray,
    state_at: IntArray,
    pairs: Rows,
    flow: Rows,
    exact: Exact,
    motion: Motion,
    images: Images,
    it: Iterate,
    matched: Matched,
) -> None:
    """The same loop for the infinity ball with scalar steps, without the O(num_costs d) term.

    z = G theta - target changes by the drawn rows' images under G, which are tabulated, and the
    summed signed rows G's only when a sign of z flips:

        z <- z - step (G G's + flow_y (G D_y) - pair_s (G Phi_s)),     flips update G's and G G's

    so a step costs O(d + num_costs). It needs dense rows, one pair and one state per step, no
    budgets, and a step size known before the subgradient. Rounding that gathers in z is cleared
    every `REFRESH` steps, counted from the start of the run and not of a block.
    """
    theta = it.theta
    row, image = np.empty_like(theta), np.empty_like(matched.z)
    for t in range(pair_at.size):
        if t + AHEAD < pair_at.size:
            ask_for(pairs, pair_at[t + AHEAD], images.pairs)
            ask_for(flow, state_at[t + AHEAD], images.flow)
        step = done + t + 1
        if (step - 1) % REFRESH == 0:
            settle(matched, it)
            refresh(exact, theta, matched)
        omega = float(step) ** motion.power if motion.power != 0.0 else 1.0
        rate = motion.rate / np.sqrt(float(step)) if motion.rule == INVERSE_ROOT else motion.rate
        s, y = pair_at[t], state_at[t]
        of_pair, of_state = pairs.heads[s], flow.heads[y]
        pair_row = pairs.numbers[of_pair + HEADER : pairs.heads[s + 1]]
        flow_row = flow.numbers[of_state + HEADER : flow.heads[y + 1]]
        negative = dot(pair_row, theta) < pairs.numbers[of_pair + THRESHOLD]
        sign = np.sign(dot(flow_row, theta) - flow.numbers[of_state + THRESHOLD])
        by_pair = -pairs.numbers[of_pair + IMPORTANCE] if negative else 0.0
        by_flow = flow.numbers[of_state + IMPORTANCE] * sign
        pairs.numbers[of_pair + SEEN] += omega
        pairs.numbers[of_pair + ACTIVE] += omega if negative else 0.0
        flow.numbers[of_state + SEEN] += omega
        flow.numbers[of_state + ACTIVE] += omega * sign
        if negative:
            combine(by_flow, flow_row, by_pair, pair_row, row)
            combine(by_flow, images.flow[y], by_pair, images.pairs[s], image)
            regret, norm = step_along(omega, rate, 1.0, row, matched, it)
            turned = follow(rate, 1.0, image, matched)
        else:
            regret, norm = step_along(omega, rate, by_flow, flow_row, matched, it)
            turned = follow(rate, by_flow, images.flow[y], matched)
        it.totals[WEIGHT] += omega
        it.totals[SQUARED_WEIGHT] += omega * omega
        it.totals[REGRET] += omega * regret
        if norm > motion.radius * motion.radius:
            shrink(exact, it, matched, motion.radius / np.sqrt(norm))
            turned = 1
        if turned > 0:
            flip(exact, images, matched, it)
    settle(matched, it)
