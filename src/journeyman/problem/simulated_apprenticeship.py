"""The apprenticeship problem when there is nothing but a simulator.

    minimise over policies   max { <w, m(policy) - e> : w in W },   m_i = E sum_t discount^t psi_i,t

as in `Apprenticeship`; but the world is not known, only episodes can be run, and what they cost is
seen step by step. Enough for mixtures of given policies (`PolicyMixture`), and for certificates by
rollouts.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from journeyman.arrays import FloatArray, Matrix, assign
from journeyman.costs import CostBasis, CostClass, InfinityBall
from journeyman.demonstrations import ExpertExpectation, MonteCarlo
from journeyman.demonstrations.simulation import EpisodeTotals, Simulator
from journeyman.errors import InvalidProblem
from journeyman.problem.cost_problem import CostProblem
from journeyman.problem.large_apprenticeship import extreme_rows
from journeyman.problem.trivial import plain_bound
from journeyman.world.laws import discount as checked_discount

MEMBERS = ("names", "lowest", "highest", "discount", "observation_axes", "totals")
SLACK = 1e-9
"""Relative to the largest total: more than sums can lose to rounding."""


class SimulatedProblem(CostProblem, Protocol):
    """A problem whose policies can be rolled out: `LargeApprenticeship` is one as well."""

    @property
    def simulator(self) -> Simulator: ...

    @property
    def expectation(self) -> ExpertExpectation: ...


@dataclass(frozen=True, eq=False, init=False)
class SimulatedApprenticeship:
    """Imitate an expert under every cost of a class, in a simulator.

    Args:
        simulator: for example a `GymnasiumSimulator`.
        expert: `EpisodeTotals` of its demonstrations (`jm.record_totals` makes them of a policy),
            or an `ExpertExpectation`, whose values are then taken as exact.
        cost_class: which weights are possible; `InfinityBall()` by default.
    """

    simulator: Simulator
    cost_class: CostClass
    expectation: ExpertExpectation
    records: EpisodeTotals | None
    """What the expectation was estimated from; None when it was declared."""

    def __init__(
        self,
        simulator: Simulator,
        expert: EpisodeTotals | ExpertExpectation,
        cost_class: CostClass | None = None,
    ) -> None:
        for name in MEMBERS:
            if not hasattr(simulator, name):
                raise InvalidProblem(
                    f"{type(simulator).__name__} has no {name}, so it is no simulator",
                    "Give for example jm.GymnasiumSimulator(...)",
                )
        checked_discount(simulator.discount)
        if getattr(getattr(simulator, "world", None), "is_estimated", False):
            raise InvalidProblem(
                "the simulator walks in a world whose laws are estimates, and no bound by rollouts "
                "has a term for their error",
                "State the problem as a jm.Apprenticeship, whose certificates have one",
            )
        expectation = _expectation(expert)
        count = len(simulator.names)
        if expectation.values.size != count:
            raise InvalidProblem(
                f"the expert has {expectation.values.size} expectations, there are {count} costs",
                "Give one expectation per cost",
            )
        chosen = InfinityBall() if cost_class is None else cost_class
        if not isinstance(chosen, CostClass):
            raise InvalidProblem(f"cost_class is {chosen!r}", "Give a value, for example Simplex()")
        chosen.scaling(count)
        if isinstance(expert, EpisodeTotals):
            require_possible(expert, simulator)
        assign(
            self, simulator=simulator, cost_class=chosen, expectation=expectation,
            records=expert if isinstance(expert, EpisodeTotals) else None,
        )  # fmt: skip

    @property
    def target(self) -> FloatArray:
        return self.expectation.values

    @cached_property
    def basis(self) -> CostBasis:
        """The extreme rows of the declared range."""
        simulator = self.simulator
        return extreme_rows(simulator.names, simulator.lowest, simulator.highest)

    @property
    def cost_matrix(self) -> Matrix:
        """Rows between which every row of costs lies."""
        return self.basis.matrix

    @property
    def effective_horizon(self) -> float:
        return 1.0 / (1.0 - self.simulator.discount)

    @property
    def gap_scale(self) -> float:
        """2 N/(1 - discount): what tolerances of solvers are relative to."""
        return 2 * self.cost_class.pointwise_bound(self.cost_matrix) * self.effective_horizon

    @property
    def trivial_bound(self) -> float:
        """No policy has a larger gap, because costs are bounded: no plans can be made here."""
        return plain_bound(self, self.target if self.expectation.is_declared else None)


def require_possible(records: EpisodeTotals, simulator: Simulator) -> None:
    """Refuse totals that the declared ranges rule out.

    lowest (h - unrecorded) <= total <= highest (h - unrecorded), whatever happened: every step
    counts, those behind the end of a complete episode too. Radii rest on these ranges.
    """
    horizon = 1.0 / (1.0 - simulator.discount)
    low, high = np.asarray(simulator.lowest), np.asarray(simulator.highest)
    time = np.maximum(horizon - records.unrecorded, 0.0)[:, np.newaxis]
    slack = SLACK * horizon * np.maximum(np.abs(low), np.abs(high))
    outside = (records.totals < time * low - slack) | (records.totals > time * high + slack)
    if outside.any():
        episode, cost = (int(part[0]) for part in np.nonzero(outside))
        least, most = (float(time[episode, 0] * end[cost]) for end in (low, high))
        raise InvalidProblem(
            f"episode {episode} has a total of {records.totals[episode, cost]} for "
            f"{simulator.names[cost]!r}; by the declared range it lies between {least} and {most}",
            "Declare the range that every step has, those behind an end included, and say by "
            "unrecorded what discounted time is missing",
        )


def _expectation(expert: Any) -> ExpertExpectation:
    if isinstance(expert, EpisodeTotals):
        return ExpertExpectation.from_totals(expert.totals, expert.unrecorded, MonteCarlo())
    if not isinstance(expert, ExpertExpectation):
        raise InvalidProblem(
            f"the expert is a {type(expert).__name__}",
            "Give EpisodeTotals (jm.record_totals turns a policy into them) or an "
            "ExpertExpectation",
        )
    if not expert.is_declared:
        raise InvalidProblem(
            "these expectations were estimated, and their episodes are not here",
            "Give the EpisodeTotals they were estimated from",
        )
    return expert
