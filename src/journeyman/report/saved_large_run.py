"""A run in a large world read back: its figures, and what is told of a problem without its code."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from journeyman.arrays import FloatArray
from journeyman.certificate import Certificate
from journeyman.certificate.lower_bounds import LowerBounds
from journeyman.costs import CostBasis, CostClass, registry
from journeyman.demonstrations import Demonstrations, ExpertExpectation
from journeyman.report.saved_claims import combinations_of, number, premises_of
from journeyman.storage import load_arrays, take
from journeyman.world.levels import Level

COST_CLASSES = {kind.__name__: kind.name for kind in registry.COST_CLASSES.values()}
VERSION = 1


def saved_class(kind: str, arrays: Mapping[str, NDArray[Any]]) -> CostClass:
    """The cost class of a saved problem."""
    scale = {"scale": arrays["scale"]} if "scale" in arrays else {}
    return registry.cost_class_from({"name": COST_CLASSES[kind], **scale})


@dataclass(frozen=True)
class SavedWorld:
    """Sizes of a world that is told of by reference."""

    num_states: int
    num_actions: int
    discount: float


@dataclass(frozen=True, eq=False)
class SavedProblem:
    """What a report says of a problem; its world and costs are code, which is not run."""

    basis: CostBasis
    cost_class: CostClass
    expectation: ExpertExpectation
    demonstrations: Demonstrations | None
    world: SavedWorld | None
    discount: float
    level: Level
    records = None
    has_known_cost = False

    @property
    def has_states(self) -> bool:
        return self.world is not None

    @property
    def target(self) -> FloatArray:
        return self.expectation.values

    @property
    def effective_horizon(self) -> float:
        return 1.0 / (1.0 - self.discount)

    @property
    def gap_scale(self) -> float:
        return 2 * self.cost_class.pointwise_bound(self.basis.matrix) * self.effective_horizon


def large_certificate(place: Path, facts: dict[str, Any]) -> Certificate:
    """The claims of `certificate.json`; the policy is not there, for it is code."""
    problem, least = _problem(place, facts["inputs"]), number(facts["lower_bound"])
    return Certificate(
        problem=cast(Any, problem),
        policy=cast(Any, None),
        failure_probability=facts["failure_probability"],
        combinations=combinations_of(facts),
        trivial_bound=number(facts["trivial_bound"]),
        premises=premises_of(facts),
        lower_bounds=LowerBounds(least, least, least, math.inf),
        expectations=np.full(len(problem.basis.names), np.nan),
    )


def _problem(place: Path, files: dict[str, str]) -> SavedProblem:
    path = place / "problem.npz"
    told, arrays = load_arrays(path, "large problem", VERSION)
    if told["declared"]:
        expectation = ExpertExpectation(take(path, arrays, "target"))
    else:
        _, records = load_arrays(place / "totals.npz", "totals", VERSION)
        expectation = ExpertExpectation.from_totals(records["totals"], records["unrecorded"])
    discount = float(told["discount"])
    sizes = (told["num_states"], told["num_actions"])
    recorded = "demonstrations.npz" in files
    return SavedProblem(
        CostBasis(take(path, arrays, "extremes"), told["names"]),
        saved_class(told["cost_class"], arrays),
        expectation,
        Demonstrations.load(place / "demonstrations.npz") if recorded else None,
        None if None in sizes else SavedWorld(*sizes, discount),
        discount,
        Level.SAMPLED if None in sizes else Level.STEPPED,
    )
