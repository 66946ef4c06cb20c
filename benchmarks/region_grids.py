"""The grids of Ho, Gupta and Ermon 2016: five actions, 30 % failure, 8 x 8 regions, `Simplex`.

An action is a step in one of four directions or to stay; with probability 0.3 it is replaced by a
uniformly drawn one. Costs are the indicators of 64 square regions. The expert is optimal for hidden
weights drawn uniformly from the simplex. How well a policy does is

    (J_uniform - J)/(J_uniform - J_expert)

in the hidden cost: 0 is the uniform policy, 1 the expert. The paper does not print its discount;
it is 0.95 here.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

import journeyman as jm

DISCOUNT, FAILURE, REGIONS = 0.95, 0.3, 8
HORIZON = 100
"""Steps of a recorded trajectory: 0.6 % of the discounted time is left out."""
SAMPLE_STREAM = 7


@dataclass(frozen=True)
class RegionGrid:
    """One grid with its hidden cost and expert."""

    size: int
    seed: int

    @cached_property
    def example(self) -> jm.gallery.Example:
        return jm.gallery.grid(
            self.size, macro_cells=REGIONS, slip=FAILURE, discount=DISCOUNT, stay=True
        )

    @cached_property
    def cost(self) -> np.ndarray:
        """The hidden cost per pair."""
        weights = np.random.default_rng(self.seed).dirichlet(np.ones(REGIONS**2))
        return np.asarray(self.example.basis.on(self.example.world) @ weights)

    @cached_property
    def expert(self) -> jm.Policy:
        return jm.plan(self.example.world, self.cost).policy

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The hidden cost of the uniform policy and of the expert."""
        return self._paid(jm.Policy.uniform(self.example.world)), self._paid(self.expert)

    def performance(self, policy: jm.Policy) -> float:
        worst, best = self.ends
        return (worst - self._paid(policy)) / (worst - best)

    def truth(self) -> jm.Apprenticeship:
        """The problem with the expert's own expectations."""
        world, basis, _ = self.example
        expectations = jm.occupancy(world, self.expert).expectations(basis)
        expert = jm.ExpertExpectation(expectations)
        return jm.Apprenticeship(world, basis, expert, jm.Simplex())

    def demonstrated(self, samples: int) -> jm.Apprenticeship:
        """The problem from so many recorded steps, in trajectories of at most `HORIZON`."""
        world, basis, _ = self.example
        demos = jm.record(
            world, self.expert, trajectories=max(samples // HORIZON, 1),
            horizon=min(samples, HORIZON), seed=np.random.default_rng([SAMPLE_STREAM, self.seed]),
        )  # fmt: skip
        return jm.Apprenticeship(world, basis, demos, jm.Simplex())

    def _paid(self, policy: jm.Policy) -> float:
        return jm.expected_cost(self.example.world, policy, self.cost)
