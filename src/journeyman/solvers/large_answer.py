"""What a solver returns for a world too large to enumerate."""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.features.base import LargeFeatures
from journeyman.policy.feature_policy import FeaturePolicy
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.solvers.reduced.solution import hopeless
from journeyman.solvers.status import Status

ERRORS = 3.0
"""Standard errors that an estimated loss may be off by."""
OTHER_FEATURES = (
    "Take other features: jm.features.cloned and jm.features.factored with more knots where the "
    "expert goes; jm.SampledProgram(features) finds about the least loss that features allow"
)


@dataclass(frozen=True, eq=False)
class LargeAnswer:
    """The outcome of `jm.solve` for a `Apprenticeship`.

    `loss` is an estimate from rows the coefficients have not seen; with exact penalties the loss
    bounds the policy's gap on the data. `jm.certify` proves what it can from rows of its own.
    """

    problem: Apprenticeship
    status: Status
    engine: str
    features: LargeFeatures
    coefficients: FloatArray
    loss: float
    loss_error: float
    """The standard error of `loss`."""
    matching_error: float
    """gap_W(G theta - target): the loss without penalties."""
    steps: int = 0
    trace: FloatArray | None = None
    """For descents: step, seconds, loss and its standard error, row by row."""
    build_seconds: float = 0.0
    solve_seconds: float = 0.0

    @property
    def policy(self) -> FeaturePolicy:
        return FeaturePolicy(self.features, self.coefficients)

    @property
    def advice(self) -> str:
        """What to change where the loss, less its error, is not below the trivial bound."""
        fault = hopeless(self.loss - ERRORS * self.loss_error, 0.0, self.problem.trivial_bound)
        return f"{fault}. {OTHER_FEATURES}" if fault else ""

    def __repr__(self) -> str:
        return (
            f"LargeAnswer({self.status.name}: loss {self.loss:.6g} +- {self.loss_error:.2g}, "
            f"{np.count_nonzero(self.coefficients)} of {self.coefficients.size} coefficients; "
            f"{self.engine}, build {self.build_seconds:.2g} s, solve {self.solve_seconds:.2g} s)"
            + (f"\n{self.advice}" if self.advice else "")
        )
