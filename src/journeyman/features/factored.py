"""Features of a factored world too large to enumerate: tents over its factors times heuristics.

    phi_{j,h}(x, a) = s_j base(x) K_j(x) h(a | x),      K_j(x) = prod_i hat_{i,j_i}(x_i)

where hat_{i,k} is the tent over the k-th knot of factor i, base(x) = prod_i b_i(x_i) a product of
smoothed visits to the factors, h a policy known everywhere (a single action, a heuristic, a cloned
policy) and s_j the scale that makes every column's mass 1/(1 - discount). The apprentice is then a
mixture of heuristics whose shares depend on the state.

Tents and base are products, so masses are products of short sums, a column is drawn from factor by
factor, and expected costs that depend on one factor only are exact. Nothing has the length of the
state space.

Cost: a state has at most 2^(factors with several knots) entries per heuristic.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix, assign
from journeyman.costs.functions import CostFunctions
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidCosts
from journeyman.features.base import DrawnFeatures, FlowRows
from journeyman.features.cells import hat_functions
from journeyman.features.partition import require_share, smoothed, with_flat_share
from journeyman.features.tensor import (
    EvenKnots,
    GivenKnots,
    Knots,
    QuantileKnots,
    knot_counts,
)
from journeyman.policy.acting import StatePolicy
from journeyman.policy.function_policy import (
    FunctionPolicy,
    RulePolicy,
    chosen_share,
    drawn_actions,
)
from journeyman.world.large_world import LargeWorld, Predecessors, effective_horizon_of
from journeyman.world.mixed_radix import MixedRadix

if TYPE_CHECKING:
    from journeyman.features.factored_kernels import Tables


@dataclass(frozen=True, eq=False)
class FactorAxis:
    """One factor: its tents (values x knots) and its share of the base measure."""

    tents: FloatArray
    base: FloatArray

    @property
    def num_knots(self) -> int:
        return int(self.tents.shape[1])

    @cached_property
    def lower(self) -> IntArray:
        """The first knot whose tent covers each value."""
        return np.asarray(np.argmax(self.tents != 0, axis=1))

    @cached_property
    def neighbours(self) -> FloatArray:
        """(values x 2): the tents over each value, of its first knot and of the one after."""
        padded = np.pad(self.tents, ((0, 0), (0, 1)))
        rows = np.arange(len(padded))
        return np.column_stack([padded[rows, self.lower], padded[rows, self.lower + 1]])

    @cached_property
    def columns(self) -> FloatArray:
        """base times tents: (values x knots)."""
        return self.base[:, np.newaxis] * self.tents

    @cached_property
    def masses(self) -> FloatArray:
        return np.asarray(self.columns.sum(axis=0))

    @cached_property
    def cumulative(self) -> FloatArray:
        """Distribution functions of the columns, (knots x values)."""
        sums = np.cumsum(self.columns, axis=0) / self.masses
        last = self.columns.shape[0] - 1 - np.argmax(self.columns[::-1] > 0, axis=0)
        sums[np.arange(sums.shape[0])[:, np.newaxis] >= last] = 1.0
        return np.ascontiguousarray(sums.T)


def require_masses(axes: Sequence[FactorAxis]) -> None:
    """Refuse a tent under which the base vanishes."""
    for factor, axis in enumerate(axes):
        if not (axis.masses > 0).all():
            raise InvalidCosts(
                f"the tent at knot {int(np.argmin(axis.masses))} of factor {factor} has no mass",
                "Leave the knot out, or give a positive flat_share",
            )


FLAT_SHARE = 0.05
"""Of the base, factor by factor, spread evenly."""
BASE_KNOTS = 12
"""Tents per factor that smooth the visits behind the base."""
BLOCK, CLONING_BLOCK = 1 << 10, 1 << 12
"""States whose predecessors are held at a time, and states whose cells are."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FactoredFeatures(DrawnFeatures):
    """Tents over the factors of a state times heuristics; made by `features.factored`."""

    world: LargeWorld
    radix: MixedRadix
    axes: tuple[FactorAxis, ...]
    heuristics: tuple[StatePolicy, ...]
    num_features: int

    def __init__(
        self,
        world: LargeWorld,
        radix: MixedRadix,
        axes: Sequence[FactorAxis],
        heuristics: Sequence[StatePolicy],
    ) -> None:
        require_masses(axes)
        cells = int(np.prod([axis.num_knots for axis in axes]))
        assign(
            self, world=world, radix=radix, axes=tuple(axes), heuristics=tuple(heuristics),
            num_features=cells * len(heuristics),
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """Knots per factor."""
        return tuple(axis.num_knots for axis in self.axes)

    @cached_property
    def scales(self) -> FloatArray:
        """s_j of every cell."""
        masses = reduce(np.multiply.outer, [axis.masses for axis in self.axes]).ravel()
        return np.asarray(effective_horizon_of(self.world) / masses)

    def cells(self, states: IntArray) -> tuple[IntArray, FloatArray]:
        """s_j base(x) K_j(x): for every state the cells around it, (states x neighbours)."""
        from journeyman.features.factored_kernels import around

        return around(self.radix.digits(states), self._tables)

    def rows(self, states: IntArray, actions: IntArray) -> SparseMatrix:
        from journeyman.features.factored_kernels import blended_rows

        shares = np.column_stack([chosen_share(one, states, actions) for one in self.heuristics])
        return blended_rows(self.radix.digits(states), self._tables, shares, self.num_features)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
        from journeyman.features.factored_kernels import drawn_values

        cells = np.unravel_index(rng.integers(self.scales.size, size=count), self.shape)
        uniforms = rng.random((len(self.axes) + 1, count))
        digits = [
            drawn_values(axis.cumulative, knot, uniform)
            for axis, knot, uniform in zip(self.axes, cells, uniforms[:-1], strict=True)
        ]
        states = self.radix.states(np.column_stack(digits))
        chosen = rng.integers(len(self.heuristics), size=count)
        actions = np.empty(count, dtype=np.int64)
        for number, heuristic in enumerate(self.heuristics):
            own = chosen == number
            actions[own] = drawn_actions(heuristic, states[own], uniforms[-1, own])
        return states, actions

    def flow(self, states: IntArray) -> FlowRows:
        """As for any features, but pairs that share their state share its cells."""
        parts = [
            self._flow(states[first : first + BLOCK])
            for first in range(0, max(states.size, 1), BLOCK)
        ]
        rows = sparse.vstack([part.rows for part in parts], format="csr")
        return FlowRows(rows, np.concatenate([part.law for part in parts]))

    def _flow(self, states: IntArray) -> FlowRows:
        from journeyman.features.factored_kernels import flow_rows

        entering = self.world.predecessors(states)
        first, runs = _runs(entering.offsets, entering.states)
        before, ends = entering.states[first], np.append(first, entering.states.size)
        moved = np.column_stack([_moved(one, before, entering, ends) for one in self.heuristics])
        rows, mass = flow_rows(
            self.radix.digits(states), self.radix.digits(before), self._tables, moved, runs,
            self.world.discount, self.num_features,
        )  # fmt: skip
        return FlowRows(rows, mass / self.flow_ratio)

    def exact_matching(self, costs: CostFunctions) -> FloatArray:
        """Costs of one factor, c(x) = values[x_factor], are products of short sums."""
        known = super().exact_matching(costs)
        for cost, (factor, values) in costs.by_factor.items():
            known[cost] = self._matching_of_factor(factor, values)
        return known

    def require_tables(self, costs: CostFunctions, states: IntArray, values: FloatArray) -> None:
        costs.require_tables(self.radix.digits(states), states, values)

    def _matching_of_factor(self, factor: int, values: FloatArray) -> FloatArray:
        parts = [axis.masses for axis in self.axes]
        parts[factor] = self.axes[factor].columns.T @ values
        totals = reduce(np.multiply.outer, parts).ravel() * self.scales
        return np.repeat(totals, len(self.heuristics))

    @cached_property
    def _tables(self) -> "Tables":
        from journeyman.features.factored_kernels import Tables

        knots = np.array(self.shape)
        return Tables(
            factors=np.flatnonzero(knots > 1),
            offsets=np.cumsum([0] + [axis.base.size for axis in self.axes]),
            knots=knots,
            lower=np.concatenate([axis.lower for axis in self.axes]),
            tents=np.vstack([axis.neighbours for axis in self.axes]),
            base=np.concatenate([axis.base for axis in self.axes]),
            scales=self.scales,
        )

    def __repr__(self) -> str:
        knots = " x ".join(str(number) for number in self.shape)
        return (
            f"FactoredFeatures({self.num_features} columns: {knots} knots, "
            f"{len(self.heuristics)} heuristics)"
        )


def factored(
    world: LargeWorld,
    radix: MixedRadix,
    walks: Demonstrations,
    heuristics: Sequence[StatePolicy],
    num_knots: int | Sequence[int] = 3,
    *,
    knots: Knots | None = None,
    flat_share: float = FLAT_SHARE,
) -> FactoredFeatures:
    """Tents at the quantiles of discounted visits, times heuristics.

    Args:
        radix: how a state is put together from its factors.
        walks: where the tents and the base measure are: the expert's demonstrations, or better,
            since they can be many, simulated walks of a policy like the expert's (`cloned`).
        heuristics: policies to blend; `single_actions(world)` for the actions themselves.
        num_knots: at most so many per factor, one number for all or one for each; with one knot a
            factor plays no part in the blending.
        knots: `QuantileKnots()` by default.
        flat_share: share of the base that every value of a factor has alike.
    """
    require_share("flat_share", flat_share)
    if not heuristics:
        raise InvalidCosts("there are no heuristics to blend", "Give at least one policy")
    counts = knot_counts(num_knots, radix.num_factors)
    rules = _rules(QuantileKnots() if knots is None else knots, radix.num_factors)
    digits = radix.digits(walks.step_states)
    weights = world.discount ** walks.step_times.astype(float)
    axes = []
    for factor, size in enumerate(radix.sizes.tolist()):
        visits = np.bincount(digits[:, factor], weights, size).astype(float)
        values = np.arange(size, dtype=float)
        tents = _tents(rules[factor], values, visits, int(counts[factor]))
        rule = QuantileKnots() if isinstance(knots, GivenKnots) else rules[factor]
        finer = _tents(rule, values, visits, max(int(counts[factor]), BASE_KNOTS))
        base = with_flat_share(smoothed(finer, visits), flat_share)
        axes.append(FactorAxis(tents.toarray(), base))
    return FactoredFeatures(world, radix, axes, heuristics)


def marginals(
    world: LargeWorld, radix: MixedRadix, walks: Demonstrations, heuristic: StatePolicy
) -> tuple[FactoredFeatures, ...]:
    """For every factor a tent at each of its values, times one heuristic.

    Joined to coarse tents over all factors they give the measure its shape along each factor.
    """
    return tuple(
        factored(
            world, radix, walks, [heuristic],
            [size if other == factor else 1 for other in range(radix.num_factors)],
            knots=EvenKnots(),
        )
        for factor, size in enumerate(radix.sizes.tolist())
    )  # fmt: skip


def _rules(knots: Knots, num_factors: int) -> list[Knots]:
    """The rule of every factor by itself."""
    if not isinstance(knots, GivenKnots):
        return [knots] * num_factors
    if len(knots.knots) != num_factors:
        raise InvalidCosts(
            f"knots for {len(knots.knots)} factors, but states have {num_factors}",
            "Give one list of knots per factor",
        )
    return [GivenKnots([places]) for places in knots.knots]


def _tents(rule: Knots, values: FloatArray, visits: FloatArray, count: int) -> SparseMatrix:
    (places,) = rule.over(values[:, np.newaxis], visits, np.array([count]))
    return hat_functions(values, places)


def single_actions(world: LargeWorld) -> tuple[StatePolicy, ...]:
    """One policy per action, which takes it everywhere."""
    return tuple(
        RulePolicy(_Always(action), world.num_actions) for action in range(world.num_actions)
    )


@dataclass(frozen=True)
class _Always:
    """The rule that takes one action in every state."""

    action: int

    def __call__(self, states: IntArray) -> IntArray:
        return np.full(states.size, self.action)


def _moved(
    heuristic: StatePolicy, before: IntArray, entering: Predecessors, ends: IntArray
) -> FloatArray:
    """sum_a P(y | x, a) h(a | x) for every stretch of pairs with one state x in `before`."""
    from journeyman.features.factored_kernels import moved_by_rule, moved_mass

    if isinstance(heuristic, RulePolicy):
        chosen = heuristic.actions(before)
        return moved_by_rule(chosen, entering.actions, entering.probabilities, ends)
    laws = np.asarray(heuristic.probabilities(before))
    return moved_mass(laws, entering.actions, entering.probabilities, ends)


def _runs(offsets: IntArray, states: IntArray) -> tuple[IntArray, IntArray]:
    """Where stretches of one predecessor state begin, and the stretches of every queried state."""
    begins = np.ones(states.size, dtype=bool)
    begins[1:] = states[1:] != states[:-1]
    begins[offsets[:-1][offsets[:-1] < states.size]] = True
    first = np.flatnonzero(begins)
    return first, np.searchsorted(first, offsets)


@dataclass(frozen=True, eq=False)
class CellLaws:
    """A law over actions per cell, blended by the tents around a state."""

    cells: FactoredFeatures
    laws: FloatArray

    def __call__(self, states: IntArray) -> FloatArray:
        from journeyman.features.factored_kernels import blended_laws

        found = np.empty((states.size, self.laws.shape[1]))
        for part, around, shares in _memberships(self.cells, states):
            found[part] = blended_laws(around, shares, self.laws)
        return found


def cloned(
    world: LargeWorld,
    radix: MixedRadix,
    demos: Demonstrations,
    num_knots: int = 5,
    *,
    smoothing: float = 0.5,
) -> FunctionPolicy:
    """Behaviour cloning between visited states: the demonstrated actions by soft cells.

        pi(a | x) = sum_j K_j(x) p_j(a),    p_j(a) ~ sum over recorded steps of K_j(x_t) 1{a_t = a}

    where K_j are the tents of `factored`, and `smoothing` visits are spread evenly. A state nobody
    has visited is answered by its surroundings, which in a large world is nearly every state.
    """
    if not (np.isfinite(smoothing) and smoothing > 0):
        raise InvalidCosts(f"smoothing = {smoothing}", "Give a positive number")
    cells = factored(world, radix, demos, single_actions(world)[:1], num_knots)
    counts = np.full((cells.scales.size, world.num_actions), smoothing / world.num_actions)
    for part, around, shares in _memberships(cells, demos.step_states):
        np.add.at(counts, (around, demos.actions[part, np.newaxis]), shares)
    laws = counts / counts.sum(axis=1, keepdims=True)
    return FunctionPolicy(CellLaws(cells, laws), world.num_actions)


def _memberships(
    cells: FactoredFeatures, states: IntArray
) -> Iterator[tuple[slice, IntArray, FloatArray]]:
    """Block by block: the cells around every state and K_j there, which sum to one."""
    for first in range(0, states.size, CLONING_BLOCK):
        part = slice(first, first + CLONING_BLOCK)
        around, weights = cells.cells(states[part])
        weights = weights / cells.scales[around]
        yield part, around, weights / weights.sum(axis=1, keepdims=True)
