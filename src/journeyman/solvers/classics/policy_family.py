"""Families of policies by parameters, and the products that policy gradients are made of.

    pi_theta(a | x) = exp(z(x, a)) / sum_b exp(z(x, b))
    tabular:    z = theta                       one parameter per pair
    log-linear: z = base + Phi theta            one parameter per column of the features

With the score s(x, a) = grad log pi_theta(a | x) = phi(x, a) - sum_b pi(b | x) phi(x, b), every
method needs three maps only, none of which forms a matrix over parameters:

    scores' u          = Phi'(u - pi B B'u)                 a gradient, from one number per pair
    scores v           = Phi v - B B'(pi Phi v)             how log pi changes along v
    Fisher v           = Phi'(m pi (scores v))              where m is the mass of a pair's state

Columns are brought to largest entry one, so that steps mean the same whatever the features' units.
Cost: one or two products with the features each; in the tabular family passes over the pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign, dense
from journeyman.errors import InvalidSolver
from journeyman.features import Features
from journeyman.policy.table import log_softmax, softmax
from journeyman.world import Pairs, World

LEAST_LOGIT = -30.0
"""Of the tabular family, below the largest of the state: nothing becomes so rare (1e-13) that a
gradient could not bring it back."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class PolicyFamily:
    """Tabular policies of a world, or log-linear ones with the given features.

    A base measure of the features is a fixed part of the logits.

    >>> family = PolicyFamily(World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2]))
    >>> family.num_parameters, family.law(np.array([0.0, 0.0])).tolist()
    (2, [0.5, 0.5])
    """

    pairs: Pairs
    matrix: Matrix | None
    base: FloatArray | None

    def __init__(self, world: World, features: Features | None = None) -> None:
        if features is None:
            assign(self, pairs=world.pairs, matrix=None, base=None)
            return
        columns = features.on(world).matrix
        largest = dense(abs(columns).max(axis=0)).ravel()
        if not largest.any():
            raise InvalidSolver("every policy feature is zero", "Give features that differ")
        units = 1.0 / np.where(largest > 0, largest, 1.0)
        scaled = (
            (columns @ sparse.diags_array(units)).tocsr()
            if sparse.issparse(columns)
            else columns * units
        )
        assign(self, pairs=world.pairs, matrix=scaled, base=features.base)

    @property
    def num_parameters(self) -> int:
        return len(self.pairs) if self.matrix is None else int(self.matrix.shape[1])

    @property
    def is_tabular(self) -> bool:
        return self.matrix is None

    def restrained(self, theta: FloatArray) -> FloatArray:
        """Parameters of nearly the same law: in the tabular family no logit is too far below."""
        if self.matrix is not None:
            return theta
        below = theta + self.pairs.spread(self.pairs.smallest(-theta))
        return np.maximum(below, LEAST_LOGIT)

    def law(self, theta: FloatArray) -> FloatArray:
        """The probability of every pair in its state."""
        return softmax(self.pairs, self._logits(theta))

    def log_law(self, theta: FloatArray) -> FloatArray:
        """The logarithm of `law`."""
        return log_softmax(self.pairs, self._logits(theta))

    def scores_times(self, law: FloatArray, direction: FloatArray) -> FloatArray:
        """How log pi of every pair changes along a direction of parameters."""
        change = direction if self.matrix is None else np.asarray(self.matrix @ direction)
        return np.asarray(change - self.pairs.spread(self.pairs.total(law * change)))

    def gradient(self, law: FloatArray, signal: FloatArray) -> FloatArray:
        """sum over pairs of signal(x, a) grad log pi(a | x)."""
        centred = signal - law * self.pairs.spread(self.pairs.total(signal))
        return centred if self.matrix is None else np.asarray(self.matrix.T @ centred)

    def fisher_times(self, law: FloatArray, mass: FloatArray, direction: FloatArray) -> FloatArray:
        """sum_x mass(x) sum_a pi(a | x) score score' direction."""
        weighted = self.pairs.spread(mass) * law * self.scores_times(law, direction)
        return weighted if self.matrix is None else np.asarray(self.matrix.T @ weighted)

    def fisher_scale(self, law: FloatArray, mass: FloatArray) -> FloatArray:
        """A diagonal above the Fisher matrix' own: sum over pairs of mass pi phi^2.

        In the tabular family the Fisher matrix divided by it is a projection, so a conjugate
        gradient method with this preconditioner ends after one step.
        """
        weights = self.pairs.spread(mass) * law
        if self.matrix is None:
            return np.asarray(weights)
        is_sparse = sparse.issparse(self.matrix)
        squares = self.matrix.multiply(self.matrix) if is_sparse else self.matrix**2
        return np.asarray(squares.T @ weights)

    def _logits(self, theta: FloatArray) -> FloatArray:
        combined = theta if self.matrix is None else np.asarray(self.matrix @ theta)
        return combined if self.base is None else combined + self.base

    def __repr__(self) -> str:
        kind = "tabular" if self.is_tabular else "log-linear"
        return f"PolicyFamily({kind}, {self.num_parameters} parameters)"


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
class StartPoint:
    """Where a step starts: parameters, the law they give, and the visits to states, of mass one."""

    theta: FloatArray
    law: FloatArray
    mass: FloatArray


@dataclass(frozen=True, eq=False)
class Direction:
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
    direction: Direction


def trust_region_step(
    family: PolicyFamily,
    start: StartPoint,
    value: float,
    gradient: FloatArray,
    surrogate: Callable[[FloatArray], float],
    *,
    radius: float,
    longest: float = np.inf,
    before: Direction | None = None,
) -> Step:
    """Minimise `surrogate`, a function of the law with the given value and gradient at `start`.

    `longest` bounds the first step that is tried.

        direction     F d = gradient,      F = E_x sum_a pi score score', the Fisher matrix
        not far       E_x KL(pi_old(. | x) || pi_new(. | x)) <= radius
        downhill      surrogate(new) <= surrogate(old) - SLOPE step <gradient, d>

    where E_x weights states by how often the policy visits them. The system is solved by conjugate
    gradients on products with F, preconditioned by its diagonal (in the tabular family the first
    iteration solves it: the natural gradient there is the advantage itself). The first step tried
    is the longest one that the quadratic model of the divergence allows, or twice the last one that
    was good if that is shorter; halving finds one that fulfils both conditions.

    Steps that follow each other on one smooth objective may be made conjugate (Polak and Ribiere):
    the direction is the natural gradient plus a share of the direction before, which takes the
    zigzag out of narrow valleys. Give the `direction` of the step before for that.

    Guarantee. An accepted step has both properties by measurement, not by model; when no step has,
    the parameters stay where they are. Cost: products with F, and an evaluation of the surrogate
    per step tried.

    Reference: Schulman, Levine, Abbeel, Jordan, Moritz, "Trust region policy optimization", 2015.
    """
    natural = natural_gradient(family, start, gradient)
    chosen = _conjugate(natural, gradient, before)
    slope = float(gradient @ chosen.direction)
    curvature = float(
        chosen.direction @ family.fisher_times(start.law, start.mass, chosen.direction)
    )
    if not (slope > 0 and curvature > 0 and np.isfinite(slope / curvature)):
        return Step(start.theta, start.law, 0.0, 0.0, value, chosen)
    length = min(longest, float(np.sqrt(2 * radius / curvature)))
    log_law = family.log_law(start.theta)
    for _ in range(TRIALS):
        theta = family.restrained(start.theta - length * chosen.direction)
        far = divergence(family, start, log_law, family.log_law(theta))
        if far <= radius:
            law = family.law(theta)
            found = surrogate(law)
            if found <= value - SLOPE * length * slope:
                return Step(theta, law, length, far, found, chosen)
        length /= GROWTH
    return Step(start.theta, start.law, 0.0, 0.0, value, chosen)


class TrustRegion:
    """Steps of one run; on a smooth objective each is led by the one before: twice its length is
    tried first, and directions are conjugate."""

    def __init__(self, family: PolicyFamily, radius: float, *, is_smooth: bool) -> None:
        self._family, self._radius, self._is_smooth = family, radius, is_smooth
        self._longest = np.inf
        self._before: Direction | None = None

    def step(
        self,
        theta: FloatArray,
        law: FloatArray,
        measure: FloatArray,
        value: float,
        signal: FloatArray,
        surrogate: Callable[[FloatArray], float],
    ) -> Step:
        """From parameters with this law and these visits to pairs, by the signal of `visits`."""
        mass = self._family.pairs.total(measure)
        step = trust_region_step(
            self._family, StartPoint(theta, law, mass / mass.sum()), value,
            self._family.gradient(law, signal), surrogate,
            radius=self._radius, longest=self._longest, before=self._before,
        )  # fmt: skip
        leads = self._is_smooth and step.length > 0
        self._longest = GROWTH * step.length if leads else np.inf
        self._before = step.direction if leads else None
        return step


def _conjugate(natural: FloatArray, gradient: FloatArray, before: Direction | None) -> Direction:
    """The natural gradient, made conjugate to the direction before if that is still downhill."""
    slope = float(gradient @ natural)
    if before is None or not before.slope > 0:
        return Direction(gradient, natural, slope)
    share = max(0.0, float(natural @ (gradient - before.gradient)) / before.slope)
    direction = natural + share * before.direction
    downhill = float(gradient @ direction) > STEEP * slope
    return Direction(gradient, direction if downhill else natural, slope)


def natural_gradient(family: PolicyFamily, start: StartPoint, gradient: FloatArray) -> FloatArray:
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
    family: PolicyFamily, start: StartPoint, before: FloatArray, after: FloatArray
) -> float:
    """E_x KL(old || new), from logarithms of both laws."""
    with np.errstate(invalid="ignore"):
        terms = np.where(start.law > 0, start.law * (before - after), 0.0)
    return max(float(start.mass @ family.pairs.total(terms)), 0.0)
