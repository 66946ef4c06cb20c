"""Attainable ranges: what the expected discounted total of a cost can be, over all policies.

    lowest_k  <=  <mu_pi, psi_k>  <=  highest_k                       for every policy pi

In episodic worlds they are far narrower than max|psi|/(1 - discount): most discounted time is spent
behind the end, where nothing can be chosen any more. They decide what a bound is compared with.

Guarantee. For any V, with h = 1/(1 - discount), no policy totals less than
<initial, V> + h min(T V - V) (Puterman, section 6.3), so every figure here is an outer bound, rough
plan or not; rounding is subtracted. The policies found attain it within `PRECISION` of h times the
cost's span.

Cost: two plans per cost by `improve`, about 0.01 s per cost on a 64 x 64 grid. Above `WORK_LIMIT`
(transitions times costs) the ranges are h times the extreme costs, which need no plan; `planned`
says which.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, read_only
from journeyman.costs import CostBasis
from journeyman.policy.chains import Chains
from journeyman.policy.planning import EPSILON, improve
from journeyman.world import World

PRECISION = 1e-7
"""Of h times the span of the cost: how far outside a range may be."""
MOST_STEPS = 100
"""Of policy iteration; a range that is not precise by then is still a range."""
WORK_LIMIT = 100_000_000
"""Stored transitions times costs beyond which no plans are made (about half a minute)."""


@dataclass(frozen=True, eq=False)
class AttainableRanges:
    """No policy of the world has an expectation outside [lowest, highest]."""

    lowest: FloatArray
    highest: FloatArray
    planned: bool
    """False where the world is too large: the ranges are then those of the costs themselves."""
    low_values: FloatArray | None
    """(states x costs): the V that prove `lowest`; None without plans."""
    high_values: FloatArray | None
    """The same for minus the costs, which prove -`highest`."""

    def clip(self, values: FloatArray) -> FloatArray:
        """The nearest point of the box."""
        return np.clip(values, self.lowest, self.highest)


_KNOWN: "WeakKeyDictionary[World, WeakKeyDictionary[CostBasis, AttainableRanges]]"
_KNOWN = WeakKeyDictionary()
"""Ranges are asked for by targets, certificates and solvers of the same world and basis."""


def attainable_ranges(world: World, basis: CostBasis) -> AttainableRanges:
    """The ranges of all costs of `basis` in `world`; they are computed once.

    >>> world = World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    >>> ranges = attainable_ranges(world, CostBasis([1.0, 0.25, 0.0]))
    >>> ranges.lowest.round(6).tolist(), ranges.highest.round(6).tolist()
    ([0.25], [2.0])
    """
    known = _KNOWN.setdefault(world, WeakKeyDictionary())
    if basis not in known:
        known[basis] = _ranges(world, basis)
    return known[basis]


def _ranges(world: World, basis: CostBasis) -> AttainableRanges:
    horizon = world.effective_horizon
    rounding = 4 * EPSILON * basis.norms * horizon
    widest = (basis.lowest * horizon - rounding, basis.highest * horizon + rounding)
    if world.transition.nnz * basis.num_costs > WORK_LIMIT:
        return AttainableRanges(read_only(widest[0]), read_only(widest[1]), False, None, None)
    matrix, chains = basis.on(world), Chains(world)
    low_values = np.zeros((world.num_states, basis.num_costs))
    high_values = np.zeros_like(low_values)
    lowest, highest = (side.copy() for side in widest)
    for k in range(basis.num_costs):
        column = matrix[:, [k]]
        cost = np.asarray(column.toarray() if sparse.issparse(column) else column).ravel().copy()
        low, low_values[:, k] = _least(chains, cost)
        high, high_values[:, k] = _least(chains, -cost)
        lowest[k], highest[k] = max(lowest[k], low), min(highest[k], -high)
    proofs = read_only(low_values), read_only(high_values)
    return AttainableRanges(read_only(lowest), read_only(highest), True, *proofs)


def _least(chains: Chains, cost: FloatArray) -> tuple[float, FloatArray]:
    """What no policy totals less than, and the V that proves it."""
    world = chains.world
    span = float(cost.max() - cost.min())
    found = improve(
        chains, cost, np.zeros(world.num_states), allowed=PRECISION * span, most=MOST_STEPS
    )
    total = float(world.initial @ found.values) - world.effective_horizon * found.loss
    return total - _rounding(world, cost, found.values), found.values


def _rounding(world: World, cost: FloatArray, values: FloatArray) -> float:
    """What float64 can have hidden of the Bellman residual, and of the sum over starts."""
    branches = int(np.diff(world.transition.indptr).max())
    size = float(np.abs(cost).max() + 2 * np.abs(values).max())
    residual = (branches + 4) * size * world.effective_horizon
    return EPSILON * (residual + (world.num_states + 4) * float(np.abs(values).max()))
