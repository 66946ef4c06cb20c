"""Several feature sets of one large world side by side."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix, assign
from journeyman.costs.functions import CostFunctions
from journeyman.errors import InvalidCosts
from journeyman.problem.large_features import FlowRows, LargeFeatures
from journeyman.world.large_world import LargeWorld


@dataclass(frozen=True, eq=False, init=False, repr=False)
class JoinedFeatures(LargeFeatures):
    """The columns of all blocks, in their order; made by `features.joined`."""

    world: LargeWorld
    blocks: tuple[LargeFeatures, ...]
    num_features: int

    def __init__(self, *blocks: LargeFeatures) -> None:
        if not blocks:
            raise InvalidCosts("there is nothing to join", "Give at least one feature set")
        first = blocks[0].world
        for block in blocks[1:]:
            if block.world is not first:
                raise InvalidCosts(
                    "the feature sets belong to different worlds", "Make all of them for one world"
                )
        count = sum(block.num_features for block in blocks)
        assign(self, world=first, blocks=blocks, num_features=count)

    @property
    def _shares(self) -> FloatArray:
        """The share of each block in the mixture of all columns."""
        return np.array([block.num_features for block in self.blocks]) / self.num_features

    def rows(self, states: IntArray, actions: IntArray) -> SparseMatrix:
        parts = [block.rows(states, actions) for block in self.blocks]
        return sparse.hstack(parts, format="csr")

    def draw(self, rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
        owners = rng.choice(len(self.blocks), size=count, p=self._shares)
        states, actions = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        for k, block in enumerate(self.blocks):
            own = owners == k
            states[own], actions[own] = block.draw(rng, int(own.sum()))
        return states, actions

    def flow(self, states: IntArray) -> FlowRows:
        parts = [block.flow(states) for block in self.blocks]
        law = sum(
            (share * part.law for share, part in zip(self._shares, parts, strict=True)),
            np.zeros(states.size),
        )
        return FlowRows(sparse.hstack([part.rows for part in parts], format="csr"), law)

    def exact_matching(self, costs: CostFunctions) -> FloatArray:
        return np.hstack([block.exact_matching(costs) for block in self.blocks])

    def require_tables(self, costs: CostFunctions, states: IntArray, values: FloatArray) -> None:
        for block in self.blocks:
            block.require_tables(costs, states, values)

    def __repr__(self) -> str:
        return f"JoinedFeatures({', '.join(repr(block) for block in self.blocks)})"
