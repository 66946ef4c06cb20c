"""Compiled loops of policy evaluation: Bellman steps, BiCGSTAB and triangular solves.

A = I - discount P is given by the arrays of the CSR matrix P. Its indices are unsigned: compiled
code then need not ask whether they count from the end, which halves the time of a product. Blocks
of right-hand sides are stored row by row, so that the innermost loop runs over them.
"""

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.compiled import kernel, vector_kernel
from journeyman.vector_kernels import dot

ONE = np.uint64(1)
TINY = 1e-290
"""A denominator below this is a breakdown."""


@kernel
def greedy_step(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    offsets: IntArray,
    cost: FloatArray,
    discount: float,
    values: FloatArray,
    best: FloatArray,
    choice: IntArray,
) -> None:
    """best = T values, the least of cost + discount P values, and the pair that attains it."""
    for state in range(best.size):
        least, chosen = np.inf, offsets[state]
        for pair in range(offsets[state], offsets[state + 1]):
            total = 0.0
            for entry in range(indptr[pair], indptr[pair + 1]):
                total += data[entry] * values[indices[entry]]
            total = cost[pair] + discount * total
            if total < least:
                least, chosen = total, pair
        best[state] = least
        choice[state] = chosen


@kernel
def multiply(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    discount: float,
    x: FloatArray,
    out: FloatArray,
) -> None:
    """out = A x."""
    entry = indptr[0]
    for i in range(x.size):
        total, end = 0.0, indptr[i + 1]
        while entry < end:
            total += data[entry] * x[indices[entry]]
            entry += ONE
        out[i] = x[i] - discount * total


@vector_kernel
def residual_norm(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    discount: float,
    right: FloatArray,
    x: FloatArray,
) -> float:
    """|right - A x|_2."""
    r = np.empty(x.size)
    multiply(data, indices, indptr, discount, x, r)
    for i in range(x.size):
        r[i] -= right[i]
    return float(np.sqrt(dot(r, r)))


@vector_kernel
def bicgstab(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    discount: float,
    right: FloatArray,
    x: FloatArray,
    wanted: float,
    most: int,
) -> int:
    """Improve `x` in place until |right - A x|_2 <= wanted; at most `most` iterations."""
    size = x.size
    r, v, p, t = np.empty(size), np.zeros(size), np.zeros(size), np.empty(size)
    multiply(data, indices, indptr, discount, x, r)
    for i in range(size):
        r[i] = right[i] - r[i]
    shadow = r.copy()
    rho, alpha, omega = 1.0, 1.0, 1.0
    for iteration in range(most):
        rho_next = dot(shadow, r)
        if dot(r, r) <= wanted * wanted or min(abs(rho_next), abs(omega)) < TINY:
            return iteration
        beta = rho_next / rho * alpha / omega
        rho = rho_next
        for i in range(size):
            p[i] = r[i] + beta * (p[i] - omega * v[i])
        multiply(data, indices, indptr, discount, p, v)
        shadow_v = dot(shadow, v)
        if abs(shadow_v) < TINY:
            return iteration
        alpha = rho / shadow_v
        for i in range(size):
            r[i] -= alpha * v[i]
        multiply(data, indices, indptr, discount, r, t)
        square = dot(t, t)
        omega = dot(t, r) / square if square > TINY else 0.0
        for i in range(size):
            x[i] += alpha * p[i] + omega * r[i]
            r[i] -= omega * t[i]
    return most


@vector_kernel
def multiply_block(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    discount: float,
    x: FloatArray,
    out: FloatArray,
) -> None:
    """out = A x for a block of vectors."""
    size, count = x.shape
    for i in range(size):
        for k in range(count):
            out[i, k] = x[i, k]
        for entry in range(indptr[i], indptr[i + 1]):
            weight, column = discount * data[entry], indices[entry]
            for k in range(count):
                out[i, k] -= weight * x[column, k]


@vector_kernel
def residual_block(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    discount: float,
    right: FloatArray,
    x: FloatArray,
    out: FloatArray,
) -> None:
    """out = right - A x for a block of right-hand sides."""
    multiply_block(data, indices, indptr, discount, x, out)
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


@kernel
def quotient(above: FloatArray, below: FloatArray, excluded: BoolArray) -> FloatArray:
    """above / below, zero where excluded."""
    result = np.zeros(above.size)
    for k in range(above.size):
        if not excluded[k]:
            result[k] = above[k] / below[k]
    return result


@vector_kernel
def bicgstab_block(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    discount: float,
    right: FloatArray,
    x: FloatArray,
    wanted: FloatArray,
    most: int,
) -> int:
    """`bicgstab` for every column of `right`; a column that is done or broken down rests."""
    size, count = x.shape
    r, t = np.empty((size, count)), np.empty((size, count))
    v, p = np.zeros((size, count)), np.zeros((size, count))
    residual_block(data, indices, indptr, discount, right, x, r)
    shadow = r.copy()
    rho, alpha, omega, beta = np.ones(count), np.ones(count), np.ones(count), np.zeros(count)
    rho_next, square, first, second = (
        np.empty(count), np.empty(count), np.empty(count), np.empty(count),
    )  # fmt: skip
    inner_products(shadow, r, rho_next)
    square[:] = rho_next
    resting = np.zeros(count, np.bool_)
    for iteration in range(most):
        resting |= (square <= wanted * wanted) | (
            np.minimum(np.abs(rho_next), np.abs(omega)) < TINY
        )
        if resting.all():
            return iteration
        beta[:] = quotient(rho_next * alpha, rho * omega, resting)
        rho[:] = rho_next
        for i in range(size):
            for k in range(count):
                p[i, k] = r[i, k] + beta[k] * (p[i, k] - omega[k] * v[i, k])
        multiply_block(data, indices, indptr, discount, p, v)
        inner_products(shadow, v, first)
        resting |= np.abs(first) < TINY
        alpha[:] = quotient(rho, first, resting)
        for i in range(size):
            for k in range(count):
                r[i, k] -= alpha[k] * v[i, k]
        multiply_block(data, indices, indptr, discount, r, t)
        inner_products(t, r, first)
        inner_products(t, t, second)
        omega[:] = quotient(first, second, resting | (second < TINY))
        for i in range(size):
            for k in range(count):
                x[i, k] += alpha[k] * p[i, k] + omega[k] * r[i, k]
                r[i, k] -= omega[k] * t[i, k]
        inner_products(shadow, r, rho_next)
        inner_products(r, r, square)
    return most


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
