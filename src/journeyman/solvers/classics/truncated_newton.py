"""Truncated Newton steps on the dual of entropy maximisation with a ridge.

    f_ridge(u) = f(u) + ridge/2 |u|^2        (f of `entropy_dual`, convex)

The step solves (H + ridge) s = -grad f_ridge by conjugate gradients, roughly while the gradient is
large; it is shortened until f_ridge falls as much as a convex function should (Armijo). Where f is
known to fewer digits than a step changes it, the gradient decides instead.

Reference: Dembo and Steihaug, "Truncated-Newton algorithms for large-scale unconstrained
optimization", 1983.
"""

from collections.abc import Callable

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.solvers.classics.entropy_dual import DualPoint

SUFFICIENT = 1e-4
"""Share of the promised decrease that a step must bring."""
SHORTER = 0.25
SHORTEST = 1e-6
ROUGH = 0.1
"""Conjugate gradients leave at most this share of the gradient."""
EPSILON = float(np.finfo(float).eps)


def ridged_value(point: DualPoint, ridge: float) -> float:
    """f_ridge."""
    return point.value + ridge / 2 * float(point.u @ point.u)


def ridged_gradient(point: DualPoint, ridge: float) -> FloatArray:
    """grad f_ridge = ridge u - (m(u) - t)."""
    return np.asarray(ridge * point.u - point.mismatch)


def newton_step(
    point: DualPoint, ridge: float, in_haste: Callable[[], bool] = lambda: False
) -> DualPoint | None:
    """The point one step on, or None where float64 sees no better one.

    `in_haste` is asked after every product; if so, the direction at hand is taken.
    """
    gradient = ridged_gradient(point, ridge)
    size = float(np.linalg.norm(gradient))
    step = conjugate_gradients(
        lambda v: point.curvature(v) + ridge * v, -gradient, min(ROUGH, size**0.5), in_haste
    )
    value, slope = ridged_value(point, ridge), float(gradient @ step)
    unseen = 4 * (point.dual.rate * point.plan.error + EPSILON * abs(value))
    length = 1.0
    while length >= SHORTEST:
        there = point.dual.at(point.u + length * step, near=point)
        gained = value - ridged_value(there, ridge)
        if gained >= max(-SUFFICIENT * length * slope, unseen):
            return there
        if abs(gained) <= unseen and np.linalg.norm(ridged_gradient(there, ridge)) < size:
            return there
        length *= SHORTER
    return None


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    accuracy: float,
    in_haste: Callable[[], bool] = lambda: False,
) -> FloatArray:
    """x with |right - product(x)| <= accuracy |right|, or what 2n + 10 products have made of it."""
    x = np.zeros_like(right)
    residual, direction = right.copy(), right.copy()
    left = float(residual @ residual)
    wanted = accuracy**2 * left
    for done in range(2 * right.size + 10):
        if left <= wanted or (done and in_haste()):
            break
        image = product(direction)
        length = left / float(direction @ image)
        x += length * direction
        residual -= length * image
        before, left = left, float(residual @ residual)
        direction = residual + left / before * direction
    return x
