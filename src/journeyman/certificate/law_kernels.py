"""The compiled search for the worst laws that counts allow; `model_error` proves what it finds."""

import math

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import kernel

ENOUGH = 1e-7
"""How far the logarithm of the excess may be off: what is proved is off by its square."""
MOST_SCALES, MOST_PASSES, SETTLED = 60, 40, 1e-10


@kernel
def digamma(x: float) -> float:
    """The derivative of log Gamma, to 1e-12."""
    found = 0.0
    while x < 10:
        found -= 1 / x
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return found + math.log(x) - 0.5 / x - series


@kernel
def settle(
    mass: FloatArray, below: FloatArray, law: FloatArray, price: float, scale: float,
    n: float, c: float, a: float,
) -> float:  # fmt: skip
    """Moves `law` and the price, which is returned, to

        row/p - D(p) = (price + below)/scale        D(p) = c/n (psi(n_y + c p + a) - psi(c p + a))
        sum p = 1, or less with price = 0

    by Newton's method for 1/p and for the inverse of the sum, with c p/(n_y + c p) as slope of D.
    No p exceeds one, which bounds the price from below.
    """
    floor = 0.0
    for i in range(mass.size):
        pull = 0.0
        if c > 0:
            pull = c / n * (digamma(n * mass[i] + c + a) - digamma(c + a))
        floor = max(floor, scale * (mass[i] - pull) - below[i])
    price = max(price, floor)
    for _ in range(MOST_PASSES):
        total, fall, moved = 0.0, 0.0, 0.0
        for i in range(mass.size):
            weight, near = mass[i] / law[i], c * law[i]
            m = n * mass[i]
            pull, stiff = 0.0, 1.0
            if c > 0:
                pull = c / n * (digamma(m + near + a) - digamma(near + a))
                stiff = 1 - near / (m + near + a)
            new = weight + ((price + below[i]) / scale + pull - weight) / stiff
            new = max(new, weight / 4, mass[i])
            moved = max(moved, abs(new - weight) / new)
            law[i] = mass[i] / new
            total += law[i]
            fall += law[i] / (new * stiff * scale)
        change = max(total * (total - 1) / fall, floor - price)
        price += change
        if moved <= SETTLED and abs(change) <= SETTLED * (price + SETTLED):
            break
    return price


@kernel
def excess(mass: FloatArray, law: FloatArray, n: float, c: float, a: float) -> float:
    """KL(row, p) and what centred bets add to it."""
    found = 0.0
    for i in range(mass.size):
        found += mass[i] * math.log(mass[i] / law[i])
        if c > 0:
            m, here, there = n * mass[i], c * law[i] + a, c * mass[i] + a
            growth = math.lgamma(m + here) - math.lgamma(here)
            found += (growth - math.lgamma(m + there) + math.lgamma(there)) / n
    return found


@kernel
def tilt(
    starts: IntArray, mass: FloatArray, below: FloatArray, allowed: FloatArray,
    n: FloatArray, c: FloatArray, a: FloatArray, law: FloatArray, scales: FloatArray,
) -> None:  # fmt: skip
    """Fills `law` and `scales`, for every row, so that the excess is the one allowed.

    The logarithm of the excess falls with that of the scale, about twice as fast: secants, within
    the scales found too small and too large.
    """
    for s in range(starts.size - 1):
        row = slice(starts[s], starts[s + 1])
        q, d, p = mass[row], below[row], law[row]
        p[:] = q
        mean, square = (q * d).sum(), (q * d * d).sum()
        variance = max(square - mean * mean, allowed[s] * square, 1e-18)
        easing = 1 + (c[s] / n[s] if c[s] > 0 else 0.0)
        x = 0.5 * math.log(easing * variance / (2 * allowed[s]))
        price = max(math.exp(x) / easing - mean, 0.0)
        low, high, power, before, last = -np.inf, np.inf, -2.0, x, 0.0
        for k in range(MOST_SCALES):
            scales[s] = math.exp(x)
            price = settle(q, d, p, price, scales[s], n[s], c[s], a[s])
            found = excess(q, p, n[s], c[s], a[s])
            off = math.log(max(found, 1e-300) / allowed[s])
            if abs(off) <= ENOUGH:
                break
            if off > 0:
                low = x
            else:
                high = x
            if k > 0 and x != before:
                power = (off - last) / (x - before)
            before, last = x, off
            ahead = x - off / min(power, -0.05)
            ahead = min(max(ahead, x - 5), x + 5)
            if not low < ahead < high or k % 4 == 3:
                if np.isinf(low) or np.isinf(high):
                    ahead = x + (1.0 if off > 0 else -1.0)
                else:
                    ahead = (low + high) / 2
            if ahead == x:
                break
            x = ahead
