"""The Euclidean ball inside an interior point: a second-order cone and its scaling.

    s = (1, u) and z = (t, y) in K = { k : k_0 >= |k_1|_2 },    s o z = mu (1, 0)

where u is a point of the unit ball, z the multiplier of its cone, k_1 all entries but the first,
and s o z = (<s, z>, s_0 z_1 + z_0 s_1). The scaling of Nesterov and Todd is the matrix W with
W^2 z = s, with J = diag(1, -1, .., -1)

    W^2 = beta^2 (2 w w' - J),   beta^4 = det s/det z,   det k = k_0^2 - |k_1|^2,   det w = 1

in which a Newton step that changes s o z by rho satisfies dz + W^-2 ds = W^-1 (W z \\ rho). The
first entry of s stays 1, so du = H y and dz = W^-1 (..) - (-2 w_0 <w_1, y>/n, y) for a pressure y,
with H = beta^2 (I - 2 w_1 w_1'/n) and n = 1 + 2 |w_1|^2. Beside the linear equations it costs some
products of vectors of the ball's dimension. A ball without dimensions is one that is not there.

Reference: Nesterov and Todd, "Self-scaled barriers and interior-point methods for convex
programming", Mathematics of Operations Research 22, 1997; Vandenberghe, "The CVXOPT linear and
quadratic cone program solvers", 2010.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray

LEAST_SHARE = 1e-15
"""Points closer to the boundary than this share of their first entry are taken to be that close."""


@dataclass(frozen=True, eq=False)
class ConeStep:
    """A change of s and z."""

    s: FloatArray
    z: FloatArray

    def plus(self, other: "ConeStep") -> "ConeStep":
        return ConeStep(self.s + other.s, self.z + other.z)


@dataclass(frozen=True, eq=False)
class ConePoint:
    """s = (1, u) and its multiplier z, both inside the cone."""

    s: FloatArray
    z: FloatArray

    @property
    def is_there(self) -> bool:
        return self.s.size > 1

    @property
    def product(self) -> float:
        """<s, z>, which is mu on the central path."""
        return float(self.s @ self.z) if self.is_there else 0.0

    @property
    def inverse(self) -> FloatArray:
        """The k with s o k = (1, 0)."""
        return _flipped(self.s) / _root_det(self.s) ** 2

    def reach(self, step: ConeStep) -> tuple[float, float]:
        """How far s and z may follow a step inside the cone."""
        if not self.is_there:
            return np.inf, np.inf
        return _reach(self.s, step.s), _reach(self.z, step.z)

    def moved(self, step: ConeStep, along: float, across: float) -> "ConePoint":
        if not self.is_there:
            return self
        return ConePoint(self.s + along * step.s, self.z + across * step.z)


def centre(prices: FloatArray, mu: float) -> ConePoint:
    """The middle of the ball, with a multiplier that ends in `prices`."""
    s = np.zeros(prices.size + 1)
    s[0] = 1.0
    return ConePoint(s, np.append(np.linalg.norm(prices) + mu, prices))


class Scaling:
    """The scaling W at a point inside the cone."""

    def __init__(self, at: ConePoint) -> None:
        self.at = at
        if not at.is_there:
            return
        sizes = _root_det(at.s), _root_det(at.z)
        s, z = at.s / sizes[0], at.z / sizes[1]
        half = np.sqrt((1 + max(1.0, float(s @ z))) / 2)
        self.beta = np.sqrt(sizes[0] / sizes[1])
        self.w = (s + _flipped(z)) / (2 * half)
        tail = ((half + z[0]) * s[1:] + (half + s[0]) * z[1:]) / (s[0] + z[0] + 2 * half)
        self.middle = np.sqrt(sizes[0] * sizes[1]) * np.append(half, tail)
        self.length = 1 + 2 * float(self.w[1:] @ self.w[1:])

    def softened(self, rows: FloatArray, power: float = 1.0) -> FloatArray:
        """H rows, or another power of H."""
        w = self.w[1:]
        norm = float(np.linalg.norm(w)) or 1.0
        along = (w / norm) @ rows
        across = rows - np.multiply.outer(w / norm, along)
        part = np.multiply.outer(w / norm, along * self.length**-power)
        return np.asarray(self.beta ** (2 * power) * (across + part))

    def step(self, change: FloatArray, pressure: FloatArray) -> ConeStep:
        """The step under a pressure on u that answers `change`, the right side for z."""
        if not self.at.is_there:
            return ConeStep(change, change)
        first = -2 * self.w[0] * float(self.w[1:] @ pressure) / self.length
        return ConeStep(
            np.append(0.0, self.softened(pressure)), change - np.append(first, pressure)
        )

    def second_order(self, step: ConeStep) -> FloatArray:
        """W^-1 (W z \\ (W^-1 ds o W dz)): what a step of this kind misses."""
        if not self.at.is_there:
            return self.at.z
        s, z, middle = self._shrunk(step.s), self._grown(step.z), self.middle
        missed = np.append(s @ z, s[0] * z[1:] + z[0] * s[1:])
        first = (middle[0] * missed[0] - middle[1:] @ missed[1:]) / _root_det(middle) ** 2
        quotient = np.append(first, (missed[1:] - first * middle[1:]) / middle[0])
        return self._shrunk(quotient)

    def _grown(self, k: FloatArray) -> FloatArray:
        """W k."""
        axis = self._axis
        return np.asarray(self.beta * (2 * axis * (axis @ k) - _flipped(k)))

    def _shrunk(self, k: FloatArray) -> FloatArray:
        """W^-1 k."""
        axis = _flipped(self._axis)
        return np.asarray((2 * axis * (axis @ k) - _flipped(k)) / self.beta)

    @property
    def _axis(self) -> FloatArray:
        raised = self.w.copy()
        raised[0] += 1
        return np.asarray(raised / np.sqrt(2 * raised[0]))


def orthant_reach(distance: FloatArray, change: FloatArray) -> float:
    """How far `distance` can follow `change` until an entry is zero."""
    steepest = float((change / distance).min(initial=0.0))
    return -1 / steepest if steepest < 0 else np.inf


def _flipped(k: FloatArray) -> FloatArray:
    """J k."""
    flipped = -k
    flipped[0] = k[0]
    return flipped


def _root_det(k: FloatArray) -> float:
    """sqrt(k_0^2 - |k_1|^2)."""
    norm = float(np.linalg.norm(k[1:]))
    inside = max(float(k[0]) - norm, LEAST_SHARE * abs(float(k[0])), np.finfo(float).tiny)
    return float(np.sqrt(inside * (k[0] + norm)))


def _reach(k: FloatArray, change: FloatArray) -> float:
    """How far k can follow `change` inside the cone."""
    size = _root_det(k)
    k = k / size
    slope = float(_flipped(k) @ change)
    rest = change[1:] - (slope + change[0]) / (k[0] + 1) * k[1:]
    steepest = float(np.linalg.norm(rest)) - slope
    return size / steepest if steepest > 0 else np.inf
