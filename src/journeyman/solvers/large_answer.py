"""What a solver returns for a world too large to enumerate."""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.policy.feature_policy import FeaturePolicy
from journeyman.problem.large_apprenticeship import LargeApprenticeship
from journeyman.problem.large_features import LargeFeatures
from journeyman.solvers.status import Status


@dataclass(frozen=True, eq=False)
class LargeAnswer:
    """The outcome of `jm.solve` for a `LargeApprenticeship`.

    `loss` is an estimate from rows the coefficients have not seen; with exact penalties the loss
    bounds the policy's gap on the data. `jm.certify` proves what it can from rows of its own.
    """

    problem: LargeApprenticeship
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

    def __repr__(self) -> str:
        return (
            f"LargeAnswer({self.status.name}: loss {self.loss:.6g} +- {self.loss_error:.2g}, "
            f"{np.count_nonzero(self.coefficients)} of {self.coefficients.size} coefficients; "
            f"{self.engine}, build {self.build_seconds:.2g} s, solve {self.solve_seconds:.2g} s)"
        )
