"""Step rules of projected stochastic subgradient descent.

| rule                 | theta_{t+1} before the projection                          |
|----------------------|------------------------------------------------------------|
| `Constant`           | theta_t - rho/(K sqrt T) g_t               (the paper)     |
| `InverseRoot`        | theta_t - sqrt(2) rho/(K sqrt t) g_t                       |
| `NormAdaptive`       | theta_t - sqrt(2) rho/sqrt(sum_s |g_s|^2) g_t              |
| `CoordinateAdaptive` | theta_t[j] - rate/sqrt(sum_s g_s[j]^2) g_t[j]  (default)   |
| `DualAveraging`      | -rho/(K sqrt(2 (t+1))) sum_s g_s                           |

where K bounds |g_t|, rho is the radius and T the number of steps. The realised regret bounds the
optimisation error of all of them. `CoordinateAdaptive` is by far the best in practice: coefficients
of a mixture are about rho/d each, so a coordinate starts with steps of twice that size.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from journeyman.errors import InvalidSolver

CONSTANT, INVERSE_ROOT, NORM_ADAPTIVE, COORDINATE_ADAPTIVE, DUAL_AVERAGING = range(5)
"""Numbers that stand for step rules inside compiled code."""
WEIGHT, SQUARED_WEIGHT, REGRET, SQUARED_NORM = range(4)
"""Positions in `totals`: sums of w_t, w_t^2, w_t <g_t, theta_t> and |g_t|^2."""


class Steepness(Protocol):
    """What a rule may ask of a surrogate."""

    @property
    def num_features(self) -> int: ...

    @property
    def subgradient_bound(self) -> float: ...


class StepRule(ABC):
    """How far to go; `rate`, where given, replaces the value of the table."""

    code: int
    rate: float | None

    def rate_for(self, surrogate: Steepness, radius: float, steps: int) -> float:
        """The rate in force."""
        if self.rate is not None:
            if not (np.isfinite(self.rate) and self.rate > 0):
                raise InvalidSolver(f"rate = {self.rate}", "Give a positive rate, or None")
            return self.rate
        return self._default_rate(surrogate, radius, steps)

    @abstractmethod
    def _default_rate(self, surrogate: Steepness, radius: float, steps: int) -> float: ...


@dataclass(frozen=True)
class Constant(StepRule):
    """One step size throughout."""

    rate: float | None = None
    code = CONSTANT

    def _default_rate(self, surrogate: Steepness, radius: float, steps: int) -> float:
        return float(radius / (surrogate.subgradient_bound * np.sqrt(steps)))


@dataclass(frozen=True)
class InverseRoot(StepRule):
    """Steps that shrink like 1/sqrt(t)."""

    rate: float | None = None
    code = INVERSE_ROOT

    def _default_rate(self, surrogate: Steepness, radius: float, steps: int) -> float:
        return float(np.sqrt(2) * radius / surrogate.subgradient_bound)


@dataclass(frozen=True)
class NormAdaptive(StepRule):
    """AdaGrad with one scale for all coordinates; needs no constant."""

    rate: float | None = None
    code = NORM_ADAPTIVE

    def _default_rate(self, surrogate: Steepness, radius: float, steps: int) -> float:
        return float(np.sqrt(2) * radius)


@dataclass(frozen=True)
class CoordinateAdaptive(StepRule):
    """AdaGrad with a scale per coordinate."""

    rate: float | None = None
    code = COORDINATE_ADAPTIVE

    def _default_rate(self, surrogate: Steepness, radius: float, steps: int) -> float:
        return 2 * radius / surrogate.num_features


@dataclass(frozen=True)
class DualAveraging(StepRule):
    """Steps from the origin along the sum of all subgradients."""

    rate: float | None = None
    code = DUAL_AVERAGING

    def _default_rate(self, surrogate: Steepness, radius: float, steps: int) -> float:
        return float(radius / (np.sqrt(2) * surrogate.subgradient_bound))
