"""One step of a trust-region method: along the natural gradient, not far, and downhill.

    direction     F d = gradient,      F = E_x sum_a pi score score', the Fisher matrix
    not far       E_x KL(pi_old(. | x) || pi_new(. | x)) <= radius
    downhill      surrogate(new) <= surrogate(old) - SLOPE step <gradient, d>

where E_x weights states by how often the policy visits them. The system is solved by conjugate
gradients on products with F, preconditioned by its diagonal (in the tabular family the first
iteration solves it: the natural gradient there is the advantage itself). The first step tried is
the longest one that the quadratic model of the divergence allows, or twice the last one that was
good if that is shorter; halving finds one that fulfils both conditions.

Steps that follow each other on one smooth objective may be made conjugate (Polak and Ribiere): the
direction is the natural gradient plus a share of the direction before, which takes the zigzag out
of narrow valleys. Give the `heading` of the step before for that.

Guarantee. An accepted step has both properties by measurement, not by model; when no step has,
the parameters stay where they are. Cost: products with F, and an evaluation of the surrogate per
step tried.

Reference: Schulman, Levine, Abbeel, Jordan, Moritz, "Trust region policy optimization", 2015.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.solvers.classics.policy_family import PolicyFamily

ITERATIONS = 20
"""Of conjugate gradients."""
ACCURACY = 1e-10
"""Squared residual, in the norm of the preconditioner, at which they end."""
DAMPING = 1e-6
"""Share of its diagonal that is added to the Fisher matrix, which is singular."""
SLOPE = 0.3
"""Share of the promised decrease that a step has to keep."""
TRIALS, GROWTH = 25, 2.0
"""At most so many lengths are tried, each shorter than the one before by this factor."""
STEEP = 0.1
"""A conjugate direction has to go down by this share of what the natural gradient does."""


@dataclass(frozen=True, eq=False)
class Footing:
    """Where a step starts: parameters, the law they give, and the visits to states, of mass one."""

    theta: FloatArray
    law: FloatArray
    mass: FloatArray


@dataclass(frozen=True, eq=False)
class Heading:
    """Where a step went: its gradient, the direction, and how steep the natural gradient was."""

    gradient: FloatArray
    direction: FloatArray
    slope: float


@dataclass(frozen=True, eq=False)
class Step:
    """Where it ends. `length` is zero when nothing was good, and then nothing has changed."""

    theta: FloatArray
    law: FloatArray
    length: float
    divergence: float
    value: float
    """The surrogate there."""
    heading: Heading


def trust_region_step(
    family: PolicyFamily,
    start: Footing,
    value: float,
    gradient: FloatArray,
    surrogate: Callable[[FloatArray], float],
    *,
    radius: float,
    longest: float = np.inf,
    heading: Heading | None = None,
) -> Step:
    """Minimise `surrogate`, a function of the law with the given value and gradient at `start`.

    `longest` bounds the first step that is tried.
    """
    natural = natural_gradient(family, start, gradient)
    chosen = _conjugate(natural, gradient, heading)
    slope = float(gradient @ chosen.direction)
    curvature = float(
        chosen.direction @ family.fisher_times(start.law, start.mass, chosen.direction)
    )
    if not (slope > 0 and curvature > 0 and np.isfinite(slope / curvature)):
        return Step(start.theta, start.law, 0.0, 0.0, value, chosen)
    length = min(longest, float(np.sqrt(2 * radius / curvature)))
    before = family.log_law(start.theta)
    for _ in range(TRIALS):
        theta = family.restrained(start.theta - length * chosen.direction)
        far = divergence(family, start, before, family.log_law(theta))
        if far <= radius:
            law = family.law(theta)
            found = surrogate(law)
            if found <= value - SLOPE * length * slope:
                return Step(theta, law, length, far, found, chosen)
        length /= GROWTH
    return Step(start.theta, start.law, 0.0, 0.0, value, chosen)


def _conjugate(natural: FloatArray, gradient: FloatArray, before: Heading | None) -> Heading:
    """The natural gradient, made conjugate to the direction before if that is still downhill."""
    slope = float(gradient @ natural)
    if before is None or not before.slope > 0:
        return Heading(gradient, natural, slope)
    share = max(0.0, float(natural @ (gradient - before.gradient)) / before.slope)
    direction = natural + share * before.direction
    downhill = float(gradient @ direction) > STEEP * slope
    return Heading(gradient, direction if downhill else natural, slope)


def natural_gradient(family: PolicyFamily, start: Footing, gradient: FloatArray) -> FloatArray:
    """The solution d of (F + DAMPING diagonal) d = gradient, as far as few iterations bring it."""
    scale = family.fisher_scale(start.law, start.mass)
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    solution = np.zeros_like(gradient)
    residual = np.where(scale > 0, gradient, 0.0)
    leaning = inverse * residual
    direction, size = leaning, float(residual @ leaning)
    goal = ACCURACY * size
    for _ in range(ITERATIONS):
        if size <= goal:
            break
        product = family.fisher_times(start.law, start.mass, direction)
        product += DAMPING * scale * direction
        along = float(direction @ product)
        if not along > 0:
            break
        solution = solution + size / along * direction
        residual = residual - size / along * product
        leaning = inverse * residual
        size, before = float(residual @ leaning), size
        direction = leaning + size / before * direction
    return solution


def divergence(
    family: PolicyFamily, start: Footing, before: FloatArray, after: FloatArray
) -> float:
    """E_x KL(old || new), from logarithms of both laws."""
    with np.errstate(invalid="ignore"):
        terms = np.where(start.law > 0, start.law * (before - after), 0.0)
    return max(float(start.mass @ family.pairs.total(terms)), 0.0)
