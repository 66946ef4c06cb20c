"""Partition features: one measure per cell of states and action, shaped by a base measure.

    phi_{j,a}(x, a') = base(x) K_j(x) 1{a = a'}          scaled to mass 1/(1 - discount)
    phi_{j,h}(x, a') = base(x) K_j(x) h(a' | x)          with heuristic policies h for actions

where K (states x cells) has rows that sum to 1 (`cells.py`). A combination theta_{j,a} of them has
the policy pi(a | x) ~ sum_j K_j(x) theta_{j,a}: what to do is decided cell by cell and blended in
between, while the base gives how often each state is visited.

Guarantee: let pi be a policy of the form pi(a | x) = sum_j K_j(x) p_j(a). With its own state visits
as base its occupancy is a combination of the features, with coefficients from 0 that sum to 1. So
program (6) is feasible, and the least surrogate loss within radius 1 is at most gap(pi) whatever
the penalties. `ClonedVisits`, the default, does this for the blend that explains the demonstrated
actions best; `SmoothedVisits` needs counts alone, and smooth cells such as `Bumps()`.

Cost: O(pairs x cells that overlap), and for `ClonedVisits` as much again per round and one policy
evaluation.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix, assign, first_index, real_array
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidCosts, InvalidDemonstrations
from journeyman.features.base import Features
from journeyman.features.cells import (
    DIMENSIONS,
    Hats,
    Membership,
    cells_of,
    require_count,
    require_positive,
    row_products,
    without_empty_columns,
)
from journeyman.policy import Policy, extract, occupancy
from journeyman.world import World

NEGLIGIBLE = 1e-100
"""Base measure, relative to its largest value, below which a state counts as never visited."""


@dataclass(frozen=True, eq=False)
class ColumnBlend:
    """What a base measure may look at.

    `membership` is K, the product of one or more `axes`, `choices` (pairs x choices) the
    probabilities h(a | x) of what can be blended.
    """

    world: World
    demos: Demonstrations | None
    axes: tuple[SparseMatrix, ...]
    choices: SparseMatrix

    @cached_property
    def membership(self) -> SparseMatrix:
        """K (states x cells), without cells that have no state."""
        return without_empty_columns(reduce(row_products, self.axes))

    @cached_property
    def columns(self) -> SparseMatrix:
        """(pairs x cells * choices) products K_j(x) h(a | x)."""
        return row_products(self.membership[self.world.pairs.states], self.choices)

    def demonstrated(self, discounted: bool) -> FloatArray:
        """Demonstrated visits per pair; refused without demonstrations."""
        if self.demos is None:
            raise InvalidDemonstrations(
                "this base measure needs demonstrations", "Give demos, or choose base=Flat()"
            )
        return visits_of(self.world, self.demos, self.world.discount if discounted else 1.0)


class BaseMeasure(ABC):
    """A rule for base(x); its scale does not matter."""

    @abstractmethod
    def over(self, blend: ColumnBlend) -> FloatArray:
        """One non-negative number per state."""


@dataclass(frozen=True)
class Flat(BaseMeasure):
    """Every state alike."""

    def over(self, blend: ColumnBlend) -> FloatArray:
        return np.ones(blend.world.num_states)


@dataclass(frozen=True, eq=False, init=False)
class GivenBase(BaseMeasure):
    """A measure over states, such as the visits of a known policy: `occupancy(...).of_states`."""

    measure: FloatArray

    def __init__(self, measure: ArrayLike) -> None:
        values = real_array("base measure", measure, ndim=1, refusal=InvalidCosts)
        if (values < 0).any() or not (values > 0).any():
            where = first_index(values < 0) if (values < 0).any() else 0
            raise InvalidCosts(
                f"base measure[{where}] = {values[where]}",
                "Give numbers from 0, not all of them 0",
            )
        assign(self, measure=values)

    def over(self, blend: ColumnBlend) -> FloatArray:
        name, size = "base measure", blend.world.num_states
        return real_array(name, self.measure, ndim=1, size=size, refusal=InvalidCosts)


@dataclass(frozen=True)
class SmoothedVisits(BaseMeasure):
    """Demonstrated visits, smoothed over cells: K (K' visits / K' 1), with a share of flat measure.

    Args:
        flat_share: share of the mass that is spread evenly, for states near no demonstration.
        discounted: weigh a visit at time t by discount^t, at the price of more noise.
    """

    flat_share: float = 0.1
    discounted: bool = False

    def __post_init__(self) -> None:
        require_share("flat_share", self.flat_share)

    def over(self, blend: ColumnBlend) -> FloatArray:
        visits = blend.world.pairs.total(blend.demonstrated(self.discounted))
        return with_flat_share(smoothed(blend.membership, visits), self.flat_share)


@dataclass(frozen=True)
class ClonedVisits(BaseMeasure):
    """The state visits of the blend pi(a | x) ~ sum_j K_j(x) p_j(a) that fits the demonstrations.

        p_j(a) ~ smoothing/choices + sum_x count(x, a) K_j(x) p_j(a)/pi(a | x)

    repeated `rounds` times from even shares: expectation maximisation of the likelihood of the
    demonstrated actions. The world's own dynamics then determine where pi goes, which is less noisy
    than counting and keeps the flow constraints: without `flat_share` the occupancy of pi is a
    combination of the features.

    Args:
        rounds: of expectation maximisation; the first is cloning by cell.
        smoothing: imagined visits to every cell, spread evenly over the choices.
        flat_share: share of the mass that is spread evenly over the states.
        discounted: weigh a visit at time t by discount^t.
    """

    rounds: int = 20
    smoothing: float = 1.0
    flat_share: float = 0.0
    discounted: bool = False

    def __post_init__(self) -> None:
        require_count("rounds", self.rounds)
        require_positive("smoothing", self.smoothing)
        require_share("flat_share", self.flat_share)

    def over(self, blend: ColumnBlend) -> FloatArray:
        world = blend.world
        weights = blend.columns @ self.shares(blend).ravel()
        visits = occupancy(world, extract(world, weights)).of_states
        # A state that lacks actions has weights that sum to less than one.
        return with_flat_share(visits / world.pairs.total(weights), self.flat_share)

    def shares(self, blend: ColumnBlend) -> FloatArray:
        """p: (cells x choices), the law over choices in each cell."""
        columns, counts = blend.columns, blend.demonstrated(self.discounted)
        seen = np.flatnonzero(counts)
        columns, counts = columns[seen], counts[seen]
        num_cells, num_choices = blend.membership.shape[1], blend.choices.shape[1]
        shares = np.full((num_cells, num_choices), 1.0 / num_choices)
        prior = self.smoothing / num_choices
        for _ in range(self.rounds):
            likelihood = columns @ shares.ravel()
            ratio = np.divide(counts, likelihood, out=np.zeros_like(counts), where=likelihood > 0)
            shares = shares * (columns.T @ ratio).reshape(shares.shape) + prior
            shares /= shares.sum(axis=1, keepdims=True)
        return shares


def partition(
    world: World,
    demos: Demonstrations | None = None,
    num_cells: int = 64,
    *,
    membership: Membership | None = None,
    base: BaseMeasure | None = None,
    heuristics: Sequence[Policy] | None = None,
    coordinates: ArrayLike | None = None,
    dimensions: int = DIMENSIONS,
) -> Features:
    """Features for about `num_cells` cells times actions (or heuristics), sparse.

    Args:
        demos: the expert's demonstrations, for the base measure.
        num_cells: how many cells at most; their shape follows the coordinates.
        membership: `Hats()` by default, `Bumps(...)` or `HardCells()`.
        base: `ClonedVisits()` by default with demonstrations, `Flat()` without.
        heuristics: policies to blend instead of single actions.
        coordinates: (states x dimensions) geometry instead of the world's own; a world without any
            is laid out by diffusion distance.
        dimensions: of that layout.

    >>> from journeyman.gallery import grid
    >>> partition(grid(8).world, num_cells=4)
    Features(16 sparse columns over 256 pairs)
    """
    cells = cells_of(world, num_cells, coordinates, dimensions)
    chosen = Hats() if membership is None else membership
    if not isinstance(chosen, Membership):
        raise InvalidCosts(f"membership is {chosen!r}", "Give a value, for example Hats()")
    demos = None if demos is None else demos.on(world)
    return blended(world, demos, [chosen.over(cells)], base=base, heuristics=heuristics)


def blended(
    world: World,
    demos: Demonstrations | None,
    axes: Sequence[SparseMatrix],
    *,
    base: BaseMeasure | None = None,
    heuristics: Sequence[Policy] | None = None,
) -> Features:
    """The features of K = the row-wise product of `axes`: what every builder ends with."""
    blend = ColumnBlend(world, demos, tuple(axes), choices_of(world, heuristics))
    rule = base if base is not None else Flat() if demos is None else ClonedVisits()
    if not isinstance(rule, BaseMeasure):
        raise InvalidCosts(f"base is {rule!r}", "Give a value, for example ClonedVisits()")
    measure = rule.over(blend)
    weights = np.where(measure >= NEGLIGIBLE * measure.max(), measure, 0.0)
    columns = sparse.diags_array(world.pairs.spread(weights)) @ blend.columns
    return Features(columns).normalised(world)


def choices_of(world: World, heuristics: Sequence[Policy] | None) -> SparseMatrix:
    """(pairs x choices): one column per action, or per heuristic its probabilities."""
    if heuristics is None:
        known, actions = np.unique(world.pairs.actions, return_inverse=True)
        ends, shape = np.arange(world.num_pairs + 1), (world.num_pairs, known.size)
        return sparse.csr_array((np.ones(world.num_pairs), actions, ends), shape=shape)
    if not heuristics:
        raise InvalidCosts("there are no heuristics", "Give policies, or None for single actions")
    return sparse.csr_array(np.column_stack([policy.on(world) for policy in heuristics]))


def visits_of(world: World, demos: Demonstrations, discount: float) -> FloatArray:
    """sum over the demonstrated steps of discount^t at their pairs."""
    weights = discount ** demos.step_times.astype(float)
    counts = np.bincount(demos.pairs_in(world), weights, minlength=world.num_pairs)
    return np.asarray(counts, dtype=np.float64)


def smoothed(membership: SparseMatrix, visits: FloatArray) -> FloatArray:
    """K (K' visits / K' 1): visits per state, averaged over cells and back."""
    sizes = np.maximum(membership.sum(axis=0), np.finfo(float).tiny)
    return np.asarray(membership @ ((membership.T @ visits) / sizes))


def with_flat_share(measure: FloatArray, share: float) -> FloatArray:
    """A measure scaled to mass one and mixed with the flat one."""
    return np.asarray((1.0 - share) * measure / measure.sum() + share / measure.size)


def require_share(name: str, share: float) -> None:
    """Refuse what is not between 0 and 1."""
    if not (isinstance(share, int | float) and 0 <= share <= 1):
        raise InvalidCosts(f"{name} = {share!r}", "Give a share between 0 and 1")
