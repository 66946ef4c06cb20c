"""Discounted totals of recorded trajectories, and what is known about the part not recorded.

A terminated episode whose absorbing state costs the same under each of its actions has a known
tail, psi(x_T) discount^T/(1 - discount). Nothing is known about any other tail.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, Matrix
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.world import World


def recorded_totals(demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
    """sum_t discount^t psi(x_t, a_t) of every episode: (episodes x costs)."""
    weights = world.discount ** demos.step_times.astype(float)
    visits = sparse.csr_array(
        (weights, demos.pairs_in(world), demos.offsets), shape=(len(demos), world.num_pairs)
    )
    totals = visits @ matrix
    return np.asarray(totals.toarray() if sparse.issparse(totals) else totals)


@dataclass(frozen=True, eq=False)
class Tails:
    """What comes after the record of each episode."""

    known: BoolArray
    """Whether the tail is known exactly."""
    mass: FloatArray
    """Its discounted time, discount^T/(1 - discount)."""
    resting: FloatArray
    """Cost per step of the last state, (episodes x costs); the tail's where it is known."""

    @classmethod
    def of(cls, demos: Demonstrations, matrix: Matrix, world: World) -> "Tails":
        resting = matrix[world.pairs.offsets[demos.last_states]]
        return cls(
            demos.terminated & _settled(demos, matrix, world),
            np.asarray(world.discount**demos.lengths * world.effective_horizon),
            np.asarray(resting.toarray() if sparse.issparse(resting) else resting),
        )

    @property
    def known_totals(self) -> FloatArray:
        """The known tails, zero elsewhere: (episodes x costs)."""
        return np.asarray(np.where(self.known, self.mass, 0.0)[:, np.newaxis] * self.resting)

    @property
    def unknown_mass(self) -> FloatArray:
        """Discounted time without a record, per episode."""
        return np.where(self.known, 0.0, self.mass)


def _settled(demos: Demonstrations, matrix: Matrix, world: World) -> BoolArray:
    """Episodes whose last state costs the same under each of its actions."""
    settled = np.ones(world.num_states, dtype=bool)
    ends = np.unique(demos.last_states[demos.terminated])
    if ends.size:
        counts = world.pairs.actions_per_state[ends]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        first = np.repeat(world.pairs.offsets[ends], counts)
        pairs = first + np.arange(counts.sum()) - np.repeat(starts, counts)
        difference = matrix[pairs] - matrix[first]
        largest = abs(difference).max(axis=1)
        moved = largest.toarray() if sparse.issparse(largest) else largest
        settled[ends] = np.maximum.reduceat(np.ravel(moved), starts) == 0
    return np.asarray(settled[demos.last_states])
