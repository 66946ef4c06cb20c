"""The same loop for the infinity ball with scalar steps, without the O(num_costs d) matching term.

z = G theta - target changes by the drawn rows' images under G, which are tabulated, and the summed
signed rows G's only when a sign of z flips:

    z <- z - step (G G's + flow_y (G D_y) - pair_s (G Phi_s)),      flips update G's and G G's

so a step costs O(d + num_costs). It needs dense rows, one pair and one state per step, no budgets,
and a step size known before the subgradient. Rounding that gathers in z is cleared every `REFRESH`
steps, counted from the start of the run and not of a block.
"""

from typing import NamedTuple

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import add, dot, prefetch, vector_kernel
from journeyman.solvers.row_source import ACTIVE, FIGURES, IMPORTANCE, SEEN, THRESHOLD, Rows
from journeyman.solvers.subgradient_codes import (
    INVERSE_ROOT,
    REGRET,
    SQUARED_WEIGHT,
    WEIGHT,
)
from journeyman.solvers.subgradient_kernel import NUMBERS_PER_LINE, Exact, Iterate, Motion

REFRESH = 4096
AHEAD = 4
"""Steps ahead for which rows are asked from the memory."""


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


@vector_kernel
def refresh(exact: Exact, theta: FloatArray, matched: Matched) -> None:
    """Everything about z anew from theta."""
    matched.slope[:] = 0.0
    for i in range(exact.target.size):
        matched.z[i] = dot(exact.matching[i], theta) - exact.target[i]
        matched.signs[i] = exact.scale[i] * np.sign(matched.z[i])
        add(matched.signs[i], exact.matching[i], matched.slope)
    for i in range(exact.target.size):
        matched.image[i] = dot(exact.matching[i], matched.slope)


@vector_kernel
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


@vector_kernel
def settle(matched: Matched, it: Iterate) -> None:
    """Book the time up to now."""
    for i in range(matched.signs.size):
        it.weighted_costs[i] += matched.signs[i] * (it.totals[WEIGHT] - matched.since[i])
        matched.since[i] = it.totals[WEIGHT]


@vector_kernel
def shrink(exact: Exact, it: Iterate, matched: Matched, factor: float) -> None:
    """Back onto the ball: theta and z move together."""
    for j in range(it.theta.size):
        it.theta[j] *= factor
    for i in range(exact.target.size):
        matched.z[i] = factor * (matched.z[i] + exact.target[i]) - exact.target[i]


@vector_kernel
def follow(rate: float, factor: float, image: FloatArray, matched: Matched) -> int:
    """Move z with theta; how many of its signs may have changed."""
    turned = 0
    for i in range(matched.z.size):
        z = matched.z[i] - rate * (matched.image[i] + factor * image[i])
        matched.z[i] = z
        turned += 1 if z * matched.signs[i] <= 0.0 else 0
    return turned


@vector_kernel
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


@vector_kernel
def combine(p: float, a: FloatArray, q: float, b: FloatArray, into: FloatArray) -> None:
    """into = p a + q b."""
    for j in range(into.size):
        into[j] = p * a[j] + q * b[j]


@vector_kernel
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
    """Consume the drawn rows, one pair and one state per step, after `done` steps."""
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
        pair_row = pairs.numbers[of_pair + FIGURES : pairs.heads[s + 1]]
        flow_row = flow.numbers[of_state + FIGURES : flow.heads[y + 1]]
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
