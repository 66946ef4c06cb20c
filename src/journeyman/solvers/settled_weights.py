"""Weights of the infinity ball that are known before the search.

    |<mu, c_i> - target_i|  =  <mu, c_i> - target_i     where  target_i <= min c_i/(1 - discount)

A cost that the expert incurs as little as any policy can has weight one in the hardest cost, one
that he incurs as much as any can has weight minus one; places that he never visits are the usual
case. The master problem cannot know this before some column has been there, and would send one
policy after the other to find out.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import BoolArray, FloatArray
from journeyman.solvers.dual_set import Task

CRUMB = 0.1
"""Share of the tolerance that all of these costs together may miss their extreme by."""


@dataclass(frozen=True, eq=False)
class SettledWeights:
    """Which coordinates of a dual point are fixed at an end of their interval."""

    high: BoolArray
    low: BoolArray

    @classmethod
    def of(cls, task: Task, tolerance: float) -> "SettledWeights":
        """The coordinates whose sign is known, for a box; none for other dual sets."""
        count = task.duals.num_costs
        is_cost = np.arange(task.target.size) < count
        if task.duals.is_ball or task.duals.is_simplex or not count:
            return cls(np.zeros_like(is_cost), np.zeros_like(is_cost))
        crumb, horizon = CRUMB * tolerance / count, task.world.effective_horizon
        least, most = (horizon * end for end in _range(task))
        high = is_cost & (task.target - least <= crumb)
        return cls(high, is_cost & ~high & (most - task.target <= crumb))

    def applied(self, dual: FloatArray, task: Task) -> FloatArray:
        """The same dual point with these coordinates at their ends."""
        ends = np.where(self.high, task.duals.upper, task.duals.lower)
        return np.where(self.high | self.low, ends, dual)


def _range(task: Task) -> tuple[FloatArray, FloatArray]:
    """The least and the largest entry of each cost."""
    least, most = task.costs.min(axis=0), task.costs.max(axis=0)
    dense = (end.toarray() if hasattr(end, "toarray") else end for end in (least, most))
    low, high = (np.asarray(end, dtype=float).ravel() for end in dense)
    return low, high
