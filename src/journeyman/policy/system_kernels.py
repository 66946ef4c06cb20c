"""Compiled loops of policy evaluation: Bellman steps, BiCGSTAB and triangular solves.

A = I - discount P is a `CompiledSystem`, the arrays of the CSR matrix P and the discount. Its
indices are unsigned: compiled code then need not ask whether they count from the end, which halves
the time of a product. Blocks of right-hand sides are stored row by row, so that the innermost loop
runs over them.

BiCGSTAB (van der Vorst 1992) works on the residual in units of its own size, powers of two, so
that right-hand sides of any size are the same to it. It breaks down when the residual becomes
orthogonal to its shadow, the first residual: a start in few states does that as soon as the mass
has left them. It then begins again with the present residual as shadow; where even that breaks down
it leaves `x` as it is. Nobody believes it: its callers compute the residual and fall back on a
factorisation.
"""

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.compiled import dot, kernel, largest, norm, unit_of, vector_kernel
from journeyman.policy.policy_evaluation import CompiledSystem

ONE = np.uint64(1)
TINY = 1e-30
"""A denominator below this share of what it is made of is a breakdown."""


@kernel
def greedy_step(
    system: CompiledSystem,
    offsets: IntArray,
    cost: FloatArray,
    values: FloatArray,
    best: FloatArray,
    choice: IntArray,
) -> None:
    """best = T values, the least of cost + discount P values, and the pair that attains it; P has a
    row for each pair."""
    data, indices, indptr, discount = system
    entry = indptr[0]
    for state in range(best.size):
        least, chosen = np.inf, offsets[state]
        for pair in range(offsets[state], offsets[state + 1]):
            total, end = 0.0, indptr[pair + 1]
            while entry < end:
                total += data[entry] * values[indices[entry]]
                entry += ONE
            total = cost[pair] + discount * total
            if total < least:
                least, chosen = total, pair
        best[state] = least
        choice[state] = chosen


@kernel
def choose_rows(system: CompiledSystem, choice: IntArray) -> CompiledSystem:
    """The rows of the chosen pairs, one for each state."""
    data, indices, indptr, discount = system
    ends = np.empty(choice.size + 1, np.uint64)
    ends[0] = 0
    for state in range(choice.size):
        pair = choice[state]
        ends[state + 1] = ends[state] + indptr[pair + 1] - indptr[pair]
    chosen = np.empty(ends[choice.size], np.float64)
    columns = np.empty(ends[choice.size], indices.dtype)
    for state in range(choice.size):
        entry = indptr[choice[state]]
        for place in range(ends[state], ends[state + 1]):
            chosen[place] = data[entry]
            columns[place] = indices[entry]
            entry += ONE
    return CompiledSystem(chosen, columns, ends, discount)


@kernel
def sweep(system: CompiledSystem, right: FloatArray, x: FloatArray, out: FloatArray) -> float:
    """out = right + discount P x, and the span of out - x, the residual of x."""
    data, indices, indptr, discount = system
    low, high = np.inf, -np.inf
    entry = indptr[0]
    for i in range(x.size):
        total, end = 0.0, indptr[i + 1]
        while entry < end:
            total += data[entry] * x[indices[entry]]
            entry += ONE
        out[i] = right[i] + discount * total
        change = out[i] - x[i]
        low, high = min(low, change), max(high, change)
    return high - low


@kernel
def filling_step(
    offsets: IntArray,
    ahead: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    best: FloatArray,
    law: FloatArray,
) -> None:
    """The least mean of `ahead` over laws of each state's actions between two bounds, and the law:
    lowest probabilities first, the rest to the least entries, each up to its highest."""
    for state in range(best.size):
        left, total = 1.0, 0.0
        for pair in range(offsets[state], offsets[state + 1]):
            law[pair] = lowest[pair]
            left -= lowest[pair]
        while left > 0.0:
            chosen = -1
            for pair in range(offsets[state], offsets[state + 1]):
                if law[pair] < highest[pair] and (chosen < 0 or ahead[pair] < ahead[chosen]):
                    chosen = pair
            if chosen < 0:
                break
            room = highest[chosen] - law[chosen]
            if room >= left:
                law[chosen] += left
                left = 0.0
            else:
                law[chosen] = highest[chosen]
                left -= room
        for pair in range(offsets[state], offsets[state + 1]):
            total += law[pair] * ahead[pair]
        best[state] = total


@kernel
def put(values: FloatArray, out: FloatArray) -> None:
    """out = values; an assignment to a slice would take the compiler as long as all the rest."""
    for i in range(values.size):
        out[i] = values[i]


@kernel
def multiply(system: CompiledSystem, x: FloatArray, out: FloatArray) -> None:
    """out = A x."""
    data, indices, indptr, discount = system
    entry = indptr[0]
    for i in range(x.size):
        total, end = 0.0, indptr[i + 1]
        while entry < end:
            total += data[entry] * x[indices[entry]]
            entry += ONE
        out[i] = x[i] - discount * total


@vector_kernel
def residual_norm(system: CompiledSystem, right: FloatArray, x: FloatArray) -> float:
    """|right - A x|_2."""
    r = np.empty(x.size)
    multiply(system, x, r)
    for i in range(x.size):
        r[i] -= right[i]
    return norm(r)


@vector_kernel
def bicgstab(
    system: CompiledSystem, right: FloatArray, x: FloatArray, wanted: float, most: int
) -> int:
    """Improve `x` in place until |right - A x|_2 <= wanted; at most `most` iterations."""
    size = x.size
    r, v, p, t = np.empty(size), np.zeros(size), np.zeros(size), np.empty(size)
    multiply(system, x, r)
    unit = subtracted_in_units(right, r)
    goal = wanted / unit
    shadow, shadow_square = np.empty(size), dot(r, r)
    put(r, shadow)
    rho, alpha, omega, begun = 1.0, 1.0, 1.0, False
    for iteration in range(most):
        rho_next, square = dot(shadow, r), dot(r, r)
        if not (goal * goal < square < np.inf):
            return iteration
        beta = rho_next / rho * (alpha / omega)
        if not begun or is_broken(rho_next, shadow_square, square, beta):
            put(r, shadow)
            shadow_square, rho_next, beta, begun = square, square, 0.0, True
        rho = rho_next
        for i in range(size):
            p[i] = r[i] + beta * (p[i] - omega * v[i])
        multiply(system, p, v)
        alpha = rho / dot(shadow, v)
        if not abs(alpha) < 1.0 / TINY:
            if beta == 0.0:
                return iteration
            begun = False
            continue
        for i in range(size):
            r[i] -= alpha * v[i]
        multiply(system, r, t)
        square = dot(t, t)
        omega = dot(t, r) / square if square > 0.0 else 0.0
        for i in range(size):
            x[i] += unit * (alpha * p[i] + omega * r[i])
            r[i] -= omega * t[i]
    return most


@vector_kernel
def subtracted_in_units(right: FloatArray, r: FloatArray) -> float:
    """r = (right - r)/unit, and that unit."""
    for i in range(r.size):
        r[i] = right[i] - r[i]
    unit = unit_of(largest(r))
    for i in range(r.size):
        r[i] /= unit
    return unit


@kernel
def is_broken(rho: float, shadow_square: float, square: float, beta: float) -> bool:
    """Whether <shadow, r> is nothing but rounding, or the last omega was zero."""
    orthogonal = not abs(rho) > TINY * np.sqrt(shadow_square) * np.sqrt(square)
    return orthogonal or not np.isfinite(beta)


@vector_kernel
def multiply_block(system: CompiledSystem, x: FloatArray, out: FloatArray) -> None:
    """out = A x for a block of vectors."""
    data, indices, indptr, discount = system
    size, count = x.shape
    for i in range(size):
        for k in range(count):
            out[i, k] = x[i, k]
        for entry in range(indptr[i], indptr[i + 1]):
            weight, column = discount * data[entry], indices[entry]
            for k in range(count):
                out[i, k] -= weight * x[column, k]


@vector_kernel
def look_ahead(system: CompiledSystem, now: FloatArray, x: FloatArray, out: FloatArray) -> None:
    """out = now + discount P x for a block of vectors."""
    data, indices, indptr, discount = system
    size, count = x.shape
    for i in range(size):
        for k in range(count):
            out[i, k] = now[i, k]
        for entry in range(indptr[i], indptr[i + 1]):
            weight, column = discount * data[entry], indices[entry]
            for k in range(count):
                out[i, k] += weight * x[column, k]


@vector_kernel
def residual_block(
    system: CompiledSystem, right: FloatArray, x: FloatArray, out: FloatArray
) -> None:
    """out = right - A x for a block of right-hand sides."""
    multiply_block(system, x, out)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i, k] = right[i, k] - out[i, k]


@vector_kernel
def inner_products(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
    """out[k] = <left[:, k], right[:, k]>."""
    size, count = left.shape
    for k in range(count):
        out[k] = 0.0
    for i in range(size):
        for k in range(count):
            out[k] += left[i, k] * right[i, k]


@vector_kernel
def bicgstab_block(
    system: CompiledSystem, right: FloatArray, x: FloatArray, wanted: FloatArray, most: int
) -> int:
    """`bicgstab` for every column of `right`; a column that is done or broken down rests."""
    size, count = x.shape
    r, t = np.empty((size, count)), np.empty((size, count))
    v, p = np.zeros((size, count)), np.zeros((size, count))
    residual_block(system, right, x, r)
    unit = column_units(r)
    r /= unit
    goal = wanted / unit
    rho, alpha, omega, beta = np.ones(count), np.ones(count), np.ones(count), np.zeros(count)
    rho_next, square, shadow_square = np.empty(count), np.empty(count), np.empty(count)
    first, second = np.empty(count), np.empty(count)
    shadow = np.empty((size, count))
    put(r.ravel(), shadow.ravel())
    inner_products(r, r, square)
    put(square, rho_next)
    put(square, shadow_square)
    resting, begun = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for iteration in range(most):
        if rested(goal, square, resting):
            return iteration
        for k in range(count):
            beta[k] = 0.0 if resting[k] else rho_next[k] / rho[k] * (alpha[k] / omega[k])
            begun[k] &= not is_broken(rho_next[k], shadow_square[k], square[k], beta[k])
            if not (resting[k] or begun[k]):
                put(r[:, k], shadow[:, k])
                shadow_square[k], rho_next[k], beta[k], begun[k] = square[k], square[k], 0.0, True
        put(rho_next, rho)
        directions(r, beta, omega, v, p)
        multiply_block(system, p, v)
        inner_products(shadow, v, first)
        first_lengths(rho, first, beta, alpha, resting, begun)
        for i in range(size):
            for k in range(count):
                r[i, k] -= alpha[k] * v[i, k]
        multiply_block(system, r, t)
        inner_products(t, r, first)
        inner_products(t, t, second)
        second_lengths(first, second, omega, begun, resting)
        for k in range(count):
            first[k], second[k] = unit[k] * alpha[k], unit[k] * omega[k]
        for i in range(size):
            for k in range(count):
                x[i, k] += first[k] * p[i, k] + second[k] * r[i, k]
                r[i, k] -= omega[k] * t[i, k]
        inner_products(shadow, r, rho_next)
        inner_products(r, r, square)
    return most


@kernel
def rested(goal: FloatArray, square: FloatArray, resting: BoolArray) -> bool:
    """Whether all columns rest, for these have got where they should, or nowhere."""
    every = True
    for k in range(goal.size):
        resting[k] |= not (goal[k] * goal[k] < square[k] < np.inf)
        every &= resting[k]
    return every


@vector_kernel
def directions(
    r: FloatArray, beta: FloatArray, omega: FloatArray, v: FloatArray, p: FloatArray
) -> None:
    """p = r + beta (p - omega v), column by column."""
    for i in range(r.shape[0]):
        for k in range(r.shape[1]):
            p[i, k] = r[i, k] + beta[k] * (p[i, k] - omega[k] * v[i, k])


@kernel
def first_lengths(
    rho: FloatArray,
    shadow_v: FloatArray,
    beta: FloatArray,
    alpha: FloatArray,
    resting: BoolArray,
    begun: BoolArray,
) -> None:
    """alpha = rho/<shadow, v>; where that breaks down the column begins again, or rests."""
    for k in range(rho.size):
        alpha[k] = 0.0 if resting[k] else rho[k] / shadow_v[k]
        if not abs(alpha[k]) < 1.0 / TINY:
            resting[k] |= beta[k] == 0.0
            alpha[k], begun[k] = 0.0, False


@kernel
def second_lengths(
    along: FloatArray,
    square: FloatArray,
    omega: FloatArray,
    begun: BoolArray,
    resting: BoolArray,
) -> None:
    """omega = <t, r>/<t, t>, zero where there is nothing to do."""
    for k in range(along.size):
        working = begun[k] and not resting[k]
        omega[k] = along[k] / square[k] if working and square[k] > 0.0 else 0.0


@kernel
def column_units(block: FloatArray) -> FloatArray:
    """`unit_of` the largest entry of each column."""
    units = np.zeros(block.shape[1])
    for i in range(block.shape[0]):
        for k in range(block.shape[1]):
            units[k] = max(units[k], abs(block[i, k]))
    for k in range(units.size):
        units[k] = unit_of(units[k])
    return units


@vector_kernel
def forward_substitution(
    data: FloatArray, indices: IntArray, indptr: IntArray, x: FloatArray
) -> None:
    """x = L^{-1} x for a block, L unit lower triangular by columns."""
    size, count = x.shape
    for j in range(size):
        for entry in range(indptr[j], indptr[j + 1]):
            i, weight = indices[entry], data[entry]
            if i > j:
                for k in range(count):
                    x[i, k] -= weight * x[j, k]


@vector_kernel
def backward_substitution(
    data: FloatArray, indices: IntArray, indptr: IntArray, diagonal: FloatArray, x: FloatArray
) -> None:
    """x = U^{-1} x for a block, U upper triangular by columns."""
    size, count = x.shape
    for j in range(size - 1, -1, -1):
        scale = 1.0 / diagonal[j]
        for k in range(count):
            x[j, k] *= scale
        for entry in range(indptr[j], indptr[j + 1]):
            i, weight = indices[entry], data[entry]
            if i < j:
                for k in range(count):
                    x[i, k] -= weight * x[j, k]


# Worlds whose steps lead forward: A is upper triangular, so one pass solves it exactly


@kernel
def backward_values(system: CompiledSystem, x: FloatArray) -> None:
    """x = A^{-1} x for a block, A upper triangular by rows: values, from the last state on."""
    data, indices, indptr, discount = system
    size, count = x.shape
    for step in range(size):
        i = size - 1 - step
        left = 1.0
        for entry in range(indptr[i], indptr[i + 1]):
            j, weight = indices[entry], discount * data[entry]
            if j == i:
                left -= weight
            else:
                for k in range(count):
                    x[i, k] += weight * x[j, k]
        for k in range(count):
            x[i, k] /= left


@kernel
def forward_visits(system: CompiledSystem, x: FloatArray) -> None:
    """x = A'^{-1} x for a block, A upper triangular by rows: visits, from the first state on."""
    data, indices, indptr, discount = system
    size, count = x.shape
    for i in range(size):
        left = 1.0
        for entry in range(indptr[i], indptr[i + 1]):
            if indices[entry] == i:
                left -= discount * data[entry]
        for k in range(count):
            x[i, k] /= left
        for entry in range(indptr[i], indptr[i + 1]):
            j, weight = indices[entry], discount * data[entry]
            if j != i:
                for k in range(count):
                    x[j, k] += weight * x[i, k]


@kernel
def backward_plan(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    offsets: IntArray,
    cost: FloatArray,
    discount: float,
    values: FloatArray,
) -> None:
    """Optimal values, from the last state on; an action that stays is taken until it leaves."""
    for step in range(values.size):
        state = values.size - 1 - step
        least = np.inf
        for pair in range(offsets[state], offsets[state + 1]):
            total, left = cost[pair], 1.0
            for entry in range(indptr[pair], indptr[pair + 1]):
                if indices[entry] == state:
                    left -= discount * data[entry]
                else:
                    total += discount * data[entry] * values[indices[entry]]
            least = min(least, total / left)
        values[state] = least


@kernel
def backward_soft_plan(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    offsets: IntArray,
    cost: FloatArray,
    discount: float,
    temperatures: FloatArray,
    values: FloatArray,
) -> None:
    """Soft-optimal values, from the last state on, exact where all actions of a state stay with
    the same probability; where the temperature is zero, optimal ones."""
    for step in range(values.size):
        state = values.size - 1 - step
        first, last, heat = offsets[state], offsets[state + 1], temperatures[state]
        ahead = np.empty(last - first)
        least, left = np.inf, 1.0
        for pair in range(first, last):
            total, stays = cost[pair], 0.0
            for entry in range(indptr[pair], indptr[pair + 1]):
                if indices[entry] == state:
                    stays += data[entry]
                else:
                    total += discount * data[entry] * values[indices[entry]]
            ahead[pair - first] = total
            least, left = min(least, total), min(left, 1.0 - discount * stays)
        if heat > 0.0:
            shares = 0.0
            for k in range(ahead.size):
                shares += np.exp((least - ahead[k]) / heat)
            least -= heat * np.log(shares)
        values[state] = least / left


@kernel
def soft_step(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    offsets: IntArray,
    cost: FloatArray,
    discount: float,
    temperature: float,
    values: FloatArray,
    law: FloatArray,
    soft: FloatArray,
    least: FloatArray,
    mean: FloatArray,
) -> None:
    """Of cost + discount P values in each state: the soft-greedy law at a temperature, the soft
    minimum, the minimum, and the mean under the law."""
    for state in range(soft.size):
        best = np.inf
        for pair in range(offsets[state], offsets[state + 1]):
            total = 0.0
            for entry in range(indptr[pair], indptr[pair + 1]):
                total += data[entry] * values[indices[entry]]
            law[pair] = cost[pair] + discount * total
            best = min(best, law[pair])
        shares, above = 0.0, 0.0
        for pair in range(offsets[state], offsets[state + 1]):
            beyond = law[pair] - best
            law[pair] = np.exp(-beyond / temperature)
            shares += law[pair]
            above += law[pair] * beyond
        for pair in range(offsets[state], offsets[state + 1]):
            law[pair] /= shares
        soft[state] = best - temperature * np.log(shares)
        least[state] = best
        mean[state] = best + above / shares


@vector_kernel
def centre_rows(
    rows: FloatArray, ends: IntArray, law: FloatArray, weights: FloatArray, out: FloatArray
) -> None:
    """out = weights * (rows - their mean under the law), group by group."""
    count = rows.shape[1]
    mean = np.empty(count)
    for group in range(ends.size - 1):
        for k in range(count):
            mean[k] = 0.0
        for i in range(ends[group], ends[group + 1]):
            for k in range(count):
                mean[k] += law[i] * rows[i, k]
        for i in range(ends[group], ends[group + 1]):
            for k in range(count):
                out[i, k] = weights[i] * (rows[i, k] - mean[k])
