"""What a report is about: a certificate and, where they are known, how its policy was found and
which files it was saved in.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import TypeAlias

import numpy as np
import scipy

from journeyman.apprentice import Apprentice
from journeyman.arrays import FloatArray
from journeyman.certificate import Certificate
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidInput
from journeyman.solvers import Answer, NonlinearCost
from journeyman.world import World

Reportable: TypeAlias = Apprentice | Certificate


@dataclass(frozen=True, eq=False)
class SavedRun:
    """What is known of a run that was read from a directory."""

    name: str
    files: Mapping[str, str]
    """SHA-256 of every file, checked when it was read."""
    software: Mapping[str, str]
    bounds_trace: FloatArray | None = None
    recovered: FloatArray | None = None
    """The weights of the cost that the method inferred, where it infers one."""
    found: Mapping[str, str] = field(default_factory=dict)
    """Solver, status and time, where somebody has kept them beside the evidence."""
    recovered_errors: FloatArray | None = None
    """Standard errors of these weights, where the method knows them."""
    nonlinear: NonlinearCost | None = None
    """The cost that the method inferred as a function of the features, where it is one."""
    saved: datetime.date | None = None
    """The day on which `certificate.json` was written, as its file says."""


@dataclass(frozen=True, eq=False)
class ReportData:
    """A certificate with all that a report may show about it."""

    certificate: Certificate
    answer: Answer | None = None
    seeds: Mapping[str, int | None] = field(default_factory=dict)
    run: SavedRun | None = None

    @classmethod
    def of(cls, given: Reportable, answer: Answer | None = None) -> "ReportData":
        """From an apprentice, or from a certificate and perhaps the answer that it certifies."""
        if isinstance(given, Apprentice):
            return cls(given.certificate, given.answer, {"solver": given.seed})
        if isinstance(given, Certificate):
            return cls(given, answer)
        raise InvalidInput(
            f"there is no report on a {type(given).__name__}",
            "Give what jm.learn or jm.certify returned",
        )

    @property
    def world(self) -> World | None:
        """The world, where the policy was evaluated in it exactly."""
        return self.certificate.problem.world if self.certificate.is_exact else None

    @property
    def demonstrations(self) -> Demonstrations | None:
        return self.certificate.problem.demonstrations

    @property
    def horizon(self) -> float:
        """1/(1 - discount), or the discounted time of an episode."""
        return self.certificate.problem.total_time

    @property
    def recovered(self) -> FloatArray | None:
        """The weights of the method's own cost, where it has one."""
        if self.answer is not None:
            return self.answer.recovered
        return None if self.run is None else self.run.recovered

    @property
    def nonlinear(self) -> NonlinearCost | None:
        """The method's own cost, where it is a function of the features and no combination."""
        if self.answer is not None:
            return self.answer.nonlinear
        return None if self.run is None else self.run.nonlinear

    @property
    def recovered_errors(self) -> FloatArray | None:
        """Standard errors of these weights, where the method knows them."""
        if self.answer is not None:
            estimate = self.answer.likelihood
            return None if estimate is None else estimate.standard_errors
        return None if self.run is None else self.run.recovered_errors

    @property
    def software(self) -> dict[str, str]:
        """Versions under which the numbers were computed."""
        if self.run is not None:
            return dict(self.run.software)
        return {
            "journeyman": metadata.version("journeyman"), "numpy": np.__version__,
            "scipy": scipy.__version__,
        }  # fmt: skip
