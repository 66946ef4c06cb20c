"""Demonstrations: what an expert did, and what it is worth in expectation.

`recording` is not imported here: it brings the compiler along.
"""

from journeyman.demonstrations.cloning import clone
from journeyman.demonstrations.control_variate import (
    Blend,
    ControlVariate,
    MonteCarlo,
    StoppedShaping,
)
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.demonstrations.expectation import ExpertExpectation

__all__ = [
    "Blend",
    "ControlVariate",
    "Demonstrations",
    "ExpertExpectation",
    "MonteCarlo",
    "StoppedShaping",
    "clone",
]
