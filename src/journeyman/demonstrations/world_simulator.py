"""A world with costs as a simulator: all it takes is that walks can be drawn."""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs.functions import CostFunctions
from journeyman.demonstrations.episode_totals import EpisodeTotals
from journeyman.demonstrations.simulation import walk_totals
from journeyman.policy.acting import Actor, AnyPolicy
from journeyman.world.large_world import AnyWorld, effective_horizon_of


@dataclass(frozen=True, eq=False)
class WorldSimulator:
    """Walks of exactly `horizon` steps; policies are shown state ids."""

    world: AnyWorld
    costs: CostFunctions

    @property
    def names(self) -> tuple[str, ...]:
        return self.costs.names

    @property
    def lowest(self) -> FloatArray:
        return self.costs.lowest

    @property
    def highest(self) -> FloatArray:
        return self.costs.highest

    @property
    def discount(self) -> float:
        return self.world.discount

    @property
    def observation_axes(self) -> int:
        return 0

    def totals(
        self, policy: AnyPolicy, trajectories: int, horizon: int, rng: np.random.Generator
    ) -> EpisodeTotals:
        """Totals of walks, all of which are cut off after `horizon` steps."""
        actor = Actor(policy, rng)
        totals = walk_totals(self.world, actor, self.costs, trajectories, horizon, rng)
        return EpisodeTotals(totals, self.discount**horizon * effective_horizon_of(self.world))
