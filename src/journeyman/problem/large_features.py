"""Features of a world too large to enumerate: what a simulator can give of Phi.

    q1(s) = sum_j phi_j(s) / (d h)                                    pairs
    q2(y) = sum_j ((B + discount P)' phi_j)(y) / ((1 + discount) d h)   states

where every column phi_j is a nonnegative measure of mass h = 1/(1 - discount) and d is their
number. Both laws can be drawn from and evaluated where they were drawn, and the row norms over them
are at most C_1 = d h and C_2 = (1 + discount) d h: nothing grows with the number of states.

Cost of a flow row: the rows of its state's own pairs and of the pairs that lead there.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.costs.functions import CostFunctions
from journeyman.world.large_world import LargeWorld, effective_horizon_of, sampled_step


class FlowRows(NamedTuple):
    """Rows of D = (B - discount P)' Phi with the probabilities q2 of their states."""

    rows: SparseMatrix
    law: FloatArray


class LargeFeatures(ABC):
    """Nonnegative columns of mass 1/(1 - discount) over the pairs of `world`."""

    world: LargeWorld
    num_features: int

    @abstractmethod
    def rows(self, states: IntArray, actions: IntArray) -> SparseMatrix:
        """Rows of Phi at given pairs, as CSR."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
        """Pairs from q1: a column, each as likely, and a pair from the column."""

    @property
    def pair_ratio(self) -> float:
        """No row of Phi is longer than this times its q1."""
        return self.num_features * effective_horizon_of(self.world)

    @property
    def flow_ratio(self) -> float:
        """No row of D is longer than this times its q2."""
        return (1 + self.world.discount) * self.pair_ratio

    def pair_law(self, rows: SparseMatrix) -> FloatArray:
        """q1 at the pairs whose rows are given."""
        return np.asarray(rows.sum(axis=1)).ravel() / self.pair_ratio

    def exact_matching(self, costs: CostFunctions) -> FloatArray:
        """<phi_j, psi_i> (costs x features) where it is known without sampling, NaN elsewhere."""
        return np.full((costs.num_costs, self.num_features), np.nan)

    def require_tables(  # noqa: B027
        self, costs: CostFunctions, states: IntArray, values: FloatArray
    ) -> None:
        """Refuse what `exact_matching` rests on where it contradicts `values`, the costs there.

        Features with an `exact_matching` of their own say here how to check it.
        """

    def draw_flow(self, rng: np.random.Generator, count: int) -> IntArray:
        """States from q2: of a pair from q1 its own state, or the next one."""
        states, actions = self.draw(rng, count)
        moves = rng.random(count) >= 1 / (1 + self.world.discount)
        following = sampled_step(self.world, rng, states, actions)
        return np.where(moves, following, states)

    def flow(self, states: IntArray) -> FlowRows:
        """Rows of D at given states."""
        world, count = self.world, states.size
        own = self.rows(*every_action(states, world.num_actions))
        entering = world.predecessors(states)
        before = self.rows(entering.states, entering.actions)
        here = sparse.csr_array(
            (np.ones(own.shape[0]), np.arange(own.shape[0]),
             np.arange(count + 1) * world.num_actions),
            shape=(count, own.shape[0]),
        )  # fmt: skip
        from_before = sparse.csr_array(
            (world.discount * entering.probabilities, np.arange(before.shape[0]), entering.offsets),
            shape=(count, before.shape[0]),
        )
        mass = here @ own.sum(axis=1) + from_before @ before.sum(axis=1)
        return FlowRows(
            sparse.csr_array(here @ own - from_before @ before), np.asarray(mass) / self.flow_ratio
        )


def every_action(states: IntArray, num_actions: int) -> tuple[IntArray, IntArray]:
    """All pairs of given states, state by state."""
    return np.repeat(states, num_actions), np.tile(np.arange(num_actions), states.size)
