"""Attainable ranges: what the expected discounted total of a cost can be, over all policies.

    lowest_k  <=  <mu_pi, psi_k>  <=  highest_k                       for every policy pi

In episodic worlds they are far narrower than max|psi|/(1 - discount): most discounted time is spent
behind the end, where nothing can be chosen any more. They decide what a bound is compared with.

Guarantee. For any V, with h = 1/(1 - discount), no policy totals less than
<initial, V> + h min(T V - V) (Puterman, section 6.3), so every number here is an outer bound, rough
plan or not; rounding is subtracted. The policies found attain it within `PRECISION` of h times the
cost's span, and within `RELATIVE` of the range where float64 allows it: a range of one step in a
world of a million is still distinguished from none.

Cost: two plans per cost by `improve`, about 0.01 s per cost on a 64 x 64 grid, made for a cost when
it is first asked for. Above `WORK_LIMIT` (transitions times costs) the ranges are h times the
extreme costs, which need no plan; `planned` says which.
"""

from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from journeyman.arrays import FloatArray, dense, read_only
from journeyman.costs import CostBasis
from journeyman.policy.linear_systems import Chains
from journeyman.policy.planning import EPSILON, Improvement, improve
from journeyman.world import World

PRECISION = 1e-7
"""Of h times the span of the cost: how far outside a range may be."""
RELATIVE = 1e-5
"""Of the range itself: the same, for ranges that are narrow."""
MOST_STEPS = 100
"""Of policy iteration; a range that is not precise by then is still a range."""
REFINEMENTS = 3
"""A range that turns out to be narrower still is sought more precisely again."""
WORK_LIMIT = 20_000_000
"""Stored transitions times costs beyond which no plans are made (some seconds, 100 MB)."""


class AttainableRanges:
    """No policy of the world has an expectation outside [lowest, highest]."""

    def __init__(self, world: World, basis: CostBasis, found: "_Found | None" = None) -> None:
        self.widest = widest_ranges(world, basis)
        """(lowest, highest) as the costs alone bound them: h times their extremes."""
        self.planned = world.transition.nnz * basis.num_costs <= WORK_LIMIT
        """False where the world is too large: the ranges are then the widest."""
        self._matrix = basis.on(world)
        self._chains = Chains(world)
        self._found: _Found = {} if found is None else found

    def of(self, cost: int) -> tuple[float, float]:
        """The range of one cost."""
        if not self.planned:
            return float(self.widest[0][cost]), float(self.widest[1][cost])
        return self._plans(cost)[:2]

    def potentials(self, cost: int) -> tuple[FloatArray, FloatArray]:
        """The V that prove the lower end, and those that prove minus the upper end for minus the
        cost; nothing but zeros without plans."""
        if not self.planned:
            zero = read_only(np.zeros(self._chains.world.num_states))
            return zero, zero
        return self._plans(cost)[2:]

    @property
    def lowest(self) -> FloatArray:
        """The lower end of every cost's range."""
        return self._ends(0)

    @property
    def highest(self) -> FloatArray:
        """The upper end of every cost's range."""
        return self._ends(1)

    def clip(self, values: FloatArray) -> FloatArray:
        """The nearest point of the box."""
        return np.clip(values, self.lowest, self.highest)

    def _ends(self, end: int) -> FloatArray:
        count = self.widest[end].size
        return read_only(np.array([self.of(k)[end] for k in range(count)]))

    def _plans(self, k: int) -> tuple[float, float, FloatArray, FloatArray]:
        if k not in self._found:
            column = dense(self._matrix[:, [k]]).ravel().copy()
            low, high, *proofs = _range(self._chains, column)
            low, high = max(low, self.widest[0][k]), min(high, self.widest[1][k])
            self._found[k] = float(low), float(high), read_only(proofs[0]), read_only(proofs[1])
        return self._found[k]


_Found: TypeAlias = dict[int, tuple[float, float, FloatArray, FloatArray]]
_KNOWN: "WeakKeyDictionary[World, WeakKeyDictionary[CostBasis, _Found]]" = WeakKeyDictionary()
"""Ranges are asked for by targets, certificates and solvers of the same world and basis. What is
kept here refers to neither, so that both can go."""


def attainable_ranges(world: World, basis: CostBasis) -> AttainableRanges:
    """The ranges of the costs of `basis` in `world`; each is computed once, when it is needed.

    >>> world = World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    >>> ranges = attainable_ranges(world, CostBasis([1.0, 0.25, 0.0]))
    >>> ranges.lowest.round(6).tolist(), ranges.highest.round(6).tolist()
    ([0.25], [2.0])
    """
    known = _KNOWN.setdefault(world, WeakKeyDictionary())
    return AttainableRanges(world, basis, known.setdefault(basis, {}))


def widest_ranges(world: World, basis: CostBasis) -> tuple[FloatArray, FloatArray]:
    """h times the extreme costs, rounded outwards: they hold in every world with such costs."""
    horizon = world.effective_horizon
    rounding = 4 * EPSILON * basis.norms * horizon
    return (
        read_only(basis.lowest * horizon - rounding),
        read_only(basis.highest * horizon + rounding),
    )


def _range(chains: Chains, cost: FloatArray) -> tuple[float, float, FloatArray, FloatArray]:
    """(lowest, highest) and the V that prove them."""
    world, h = chains.world, chains.world.effective_horizon
    allowed = PRECISION * float(cost.max() - cost.min())
    middle = np.full(world.num_states, h * float(cost.max() + cost.min()) / 2)
    ends = [improve(chains, sign * cost, sign * middle, allowed=allowed, most=MOST_STEPS)
             for sign in (1, -1)]  # fmt: skip
    for _ in range(REFINEMENTS):
        low, high = (_total(world, cost, end) for end in ends)
        wanted = RELATIVE * max(-high - low, 0.0) / h
        floor = max(_rounding(world, cost, end.values) for end in ends) / h
        if max(end.spread for end in ends) <= max(wanted, floor):
            break
        ends = [
            improve(chains, sign * cost, end.values, allowed=max(wanted / 2, floor / 2),
                    most=MOST_STEPS)
            for sign, end in zip((1, -1), ends, strict=True)
        ]  # fmt: skip
    low, high = (_total(world, cost, end) for end in ends)
    return low, -high, ends[0].values, ends[1].values


def _total(world: World, cost: FloatArray, found: Improvement) -> float:
    """What no policy totals less than."""
    total = float(world.initial @ found.values) - world.effective_horizon * found.loss
    return total - _rounding(world, cost, found.values)


def _rounding(world: World, cost: FloatArray, values: FloatArray) -> float:
    """What float64 can have hidden of the Bellman residual, and of the sum over starts."""
    branches = int(np.diff(world.transition.indptr).max())
    size = float(np.abs(cost).max() + 2 * np.abs(values).max())
    residual = (branches + 4) * size * world.effective_horizon
    return EPSILON * (residual + (world.num_states + 4) * float(np.abs(values).max()))
