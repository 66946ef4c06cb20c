"""The apprenticeship problem in a world too large to enumerate.

    minimise over policies   max { <mu_pi, c_w> - <mu_E, c_w> : w in W }

as in `Apprenticeship`, where world and costs are callables on state ids. What guarantees need to
know of the costs is their declared range: `basis` holds the extreme rows of it, so that every bound
on a cost of the class is the same formula as in an explicit world.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray, Matrix, assign
from journeyman.costs import CostBasis, CostClass, InfinityBall
from journeyman.costs.functions import CostFunctions
from journeyman.demonstrations import Blend, Demonstrations, ExpertExpectation
from journeyman.demonstrations.large_control_variate import blended_totals
from journeyman.demonstrations.simulation import WorldSimulator
from journeyman.errors import InvalidProblem
from journeyman.problem.trivial import plain_bound
from journeyman.world.large_world import (
    AnyWorld,
    effective_horizon_of,
    require_sampled_world,
)

BLOCK = 1 << 18
"""Steps whose costs are evaluated at a time."""


@dataclass(frozen=True, eq=False, init=False)
class LargeApprenticeship:
    """Imitate an expert under every cost of a class, in a `LargeWorld`.

    Args:
        world: a `LargeWorld`; an explicit `World` is one, unless its laws are estimates. A world
            that can only be sampled is enough for `PolicyMixture` and certificates by rollouts.
        costs: the costs that may matter, as `CostFunctions`.
        expert: demonstrations, or expectations. Fitted values complete the totals of records that
            are cut off; where the world has `successors` as much of its noise is taken out as pays
            (`large_control_variate`).
        cost_class: which weights are possible; `InfinityBall()` by default.
    """

    world: AnyWorld
    costs: CostFunctions
    cost_class: CostClass
    expectation: ExpertExpectation
    demonstrations: Demonstrations | None

    def __init__(
        self,
        world: AnyWorld,
        costs: CostFunctions,
        expert: Demonstrations | ExpertExpectation,
        cost_class: CostClass | None = None,
    ) -> None:
        require_sampled_world(world)
        if getattr(world, "is_estimated", False):
            raise InvalidProblem(
                "the laws of this world are estimates, and no bound by rollouts or drawn rows has "
                "a term for their error",
                "State the problem as a jm.Apprenticeship, whose certificates have one",
            )
        if not isinstance(costs, CostFunctions):
            raise InvalidProblem(
                f"costs is a {type(costs).__name__}",
                "Give jm.CostFunctions(function, names, lowest=..., highest=...)",
            )
        expectation = _expectation(world, costs, expert)
        if expectation.values.size != costs.num_costs:
            raise InvalidProblem(
                f"the expert has {expectation.values.size} expectations, there are "
                f"{costs.num_costs} costs",
                "Give one expectation per cost",
            )
        chosen = InfinityBall() if cost_class is None else cost_class
        if not isinstance(chosen, CostClass):
            raise InvalidProblem(f"cost_class is {chosen!r}", "Give a value, for example Simplex()")
        chosen.scaling(costs.num_costs)
        assign(
            self, world=world, costs=costs, cost_class=chosen, expectation=expectation,
            demonstrations=expectation.demonstrations,
        )  # fmt: skip

    @property
    def target(self) -> FloatArray:
        return self.expectation.values

    @cached_property
    def basis(self) -> CostBasis:
        """The extreme rows of the declared ranges, given the largest sum that was declared."""
        scale = self.cost_class.scaling(self.costs.num_costs)
        return CostBasis(self.costs.extreme_rows(scale), names=self.costs.names)

    @property
    def cost_matrix(self) -> Matrix:
        """Rows between which every row of costs lies."""
        return self.basis.matrix

    @property
    def simulator(self) -> WorldSimulator:
        """Walks in the world, with these costs."""
        return WorldSimulator(self.world, self.costs)

    @property
    def effective_horizon(self) -> float:
        return effective_horizon_of(self.world)

    @property
    def gap_scale(self) -> float:
        """2 N/(1 - discount): what tolerances of solvers are relative to."""
        return 2 * self.cost_class.pointwise_bound(self.cost_matrix) * self.effective_horizon

    @property
    def trivial_bound(self) -> float:
        """No policy has a larger gap, because costs are bounded: no plans can be made here."""
        return plain_bound(self, self.target if self.expectation.is_declared else None)


def extreme_rows(names: tuple[str, ...], low: FloatArray, high: FloatArray) -> CostBasis:
    """Rows between which every row of costs lies: the lowest, the highest, the largest."""
    largest = np.where(np.abs(low) > np.abs(high), low, high)
    return CostBasis(np.vstack([low, high, largest]), names=names)


def discounted_totals(demos: Demonstrations, costs: CostFunctions, discount: float) -> FloatArray:
    """sum_t discount^t psi(x_t, a_t) of every episode: (episodes x costs)."""
    totals = np.zeros((len(demos), costs.num_costs))
    times, states = demos.step_times, demos.step_states
    episodes = np.repeat(np.arange(len(demos)), demos.lengths)
    for first in range(0, states.size, BLOCK):
        part = slice(first, first + BLOCK)
        figures = costs.at(states[part], demos.actions[part])
        weighed = discount ** times[part].astype(float)[:, np.newaxis] * figures
        np.add.at(totals, episodes[part], weighed)
    return totals


def _expectation(
    world: AnyWorld, costs: CostFunctions, expert: Demonstrations | ExpertExpectation
) -> ExpertExpectation:
    if isinstance(expert, ExpertExpectation):
        if not expert.is_declared and expert.demonstrations is None:
            raise InvalidProblem(
                "these expectations were estimated, and their demonstrations are not here",
                "Give the Demonstrations, or jm.ExpertExpectation(values) if they are exact",
            )
        return expert
    if not isinstance(expert, Demonstrations):
        raise InvalidProblem(
            f"the expert is a {type(expert).__name__}",
            "Give Demonstrations (jm.record turns a policy into them) or an ExpertExpectation",
        )
    unrecorded = np.asarray(world.discount**expert.lengths * effective_horizon_of(world))
    plain = discounted_totals(expert, costs, world.discount)
    totals = blended_totals(expert, plain, costs, world)
    return ExpertExpectation.from_totals(totals, unrecorded, Blend(num_folds=2), expert)
