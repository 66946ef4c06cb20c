"""What a solver returns for a world too large to enumerate."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from journeyman.arrays import FloatArray, read_only
from journeyman.features.base import LargeFeatures
from journeyman.policy.function_policy import FeaturePolicy
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.solvers.reduced.solution import ReducedSolution
from journeyman.solvers.status import Status

if TYPE_CHECKING:
    from journeyman.solvers.reduced.descent import Optimisation


@dataclass(frozen=True, eq=False)
class LargeAnswer:
    """The outcome of `jm.solve` in a world too large to enumerate.

    `loss` is an estimate from rows the coefficients have not seen; with exact penalties the loss
    bounds the policy's gap on the data. `jm.certify` proves what it can from rows of its own.
    """

    problem: Apprenticeship
    status: Status
    engine: str
    reduced: ReducedSolution
    """The coefficients and their loss."""
    optimisation: "Optimisation | None" = None
    """For descents: the trace, and the bound in probability on the error."""
    build_seconds: float = 0.0
    solve_seconds: float = 0.0

    @property
    def features(self) -> LargeFeatures:
        features = self.reduced.surrogate.reduced.features
        assert isinstance(features, LargeFeatures)
        return features

    @property
    def coefficients(self) -> FloatArray:
        return self.reduced.coefficients

    @property
    def loss(self) -> float:
        return self.reduced.loss

    @property
    def loss_error(self) -> float:
        """The standard error of `loss`."""
        assert self.reduced.sampled_error is not None
        return self.reduced.sampled_error

    @property
    def matching_error(self) -> float:
        """gap_W(G theta - target): the loss without penalties."""
        return self.reduced.matching_error

    @property
    def steps(self) -> int:
        return 0 if self.optimisation is None else self.optimisation.steps

    @property
    def trace(self) -> FloatArray | None:
        """For descents: step, seconds, loss and its standard error, row by row."""
        if self.optimisation is None:
            return None
        points = self.optimisation.trace
        rows = [(one.step, one.seconds, one.loss, one.error) for one in points]
        return read_only(np.array(rows, dtype=float).reshape(-1, 4))

    @property
    def policy(self) -> FeaturePolicy:
        return FeaturePolicy(self.features, self.coefficients)

    @property
    def advice(self) -> str:
        """What to change where the loss, less its error, is not below the trivial bound."""
        return self.reduced.advice

    def __repr__(self) -> str:
        return (
            f"LargeAnswer({self.status.name}: loss {self.loss:.6g} +- {self.loss_error:.2g}, "
            f"{np.count_nonzero(self.coefficients)} of {self.coefficients.size} coefficients; "
            f"{self.engine}, build {self.build_seconds:.2g} s, solve {self.solve_seconds:.2g} s)"
            + (f"\n{self.advice}" if self.advice else "")
        )
