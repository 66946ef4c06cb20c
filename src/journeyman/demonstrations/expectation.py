"""The expert's side of the problem: the expected discounted total of every basis cost.

    e_i = E sum_t discount^t psi_i(x_t, a_t),       estimated by the mean over trajectories

A terminated episode whose absorbing state costs the same under each of its actions has a known
tail, psi(x_T) discount^T/(1 - discount), which is added exactly. Any other tail is left out;
`truncation_mass` says how much discounted time that concerns.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, Matrix, read_only, real_array
from journeyman.costs import CostBasis
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.errors import InvalidDemonstrations
from journeyman.frozen import assign
from journeyman.world import World


@dataclass(frozen=True, eq=False, init=False)
class ExpertExpectation:
    """Expected discounted costs of the expert.

    Given directly, `ExpertExpectation(values)`, they are declared exact. From demonstrations they
    carry what a guarantee needs to know about them.
    """

    values: FloatArray
    num_trajectories: int | None
    """None when the values were declared."""
    spread: FloatArray
    """Standard deviation over trajectories, per cost."""
    truncation_mass: float
    """Mean discounted time without a record: |error of the mean| <= max|psi| truncation_mass."""

    def __init__(self, values: ArrayLike) -> None:
        checked = real_array("expectations", values, ndim=1, refusal=InvalidDemonstrations)
        zero = read_only(np.zeros(checked.size))
        assign(self, values=checked, num_trajectories=None, spread=zero, truncation_mass=0.0)

    @classmethod
    def from_rewards(cls, values: ArrayLike) -> Self:
        """Declared expectations of reward features, for a basis made by `from_rewards`."""
        given = real_array("expectations", values, ndim=1, refusal=InvalidDemonstrations)
        return cls(-given)

    @classmethod
    def from_demonstrations(cls, demos: Demonstrations, basis: CostBasis, world: World) -> Self:
        """Discounted means over the trajectories of `demos`, checked against `world`."""
        matrix = basis.on(world)
        totals = _recorded_totals(demos, matrix, world)
        known = demos.terminated & _settled(demos, matrix, world)
        tail = world.discount**demos.lengths * world.effective_horizon
        resting = matrix[world.pairs.offsets[demos.last_states]]
        resting = resting.toarray() if sparse.issparse(resting) else resting
        totals = totals + np.where(known, tail, 0.0)[:, np.newaxis] * resting
        expectation = cls(totals.mean(axis=0))
        spread = totals.std(axis=0, ddof=1) if len(demos) > 1 else np.full(basis.num_costs, np.inf)
        assign(
            expectation,
            num_trajectories=len(demos),
            spread=read_only(spread),
            truncation_mass=float(np.where(known, 0.0, tail).mean()),
        )
        return expectation

    @property
    def is_declared(self) -> bool:
        return self.num_trajectories is None


def _recorded_totals(demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
    """sum_t discount^t psi(x_t, a_t) of every episode: (episodes x costs)."""
    weights = world.discount ** demos.step_times.astype(float)
    visits = sparse.csr_array(
        (weights, demos.pairs_in(world), demos.offsets), shape=(len(demos), world.num_pairs)
    )
    totals = visits @ matrix
    return np.asarray(totals.toarray() if sparse.issparse(totals) else totals)


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
