"""Cells: soft groups of neighbouring states, and how much each state belongs to each of them.

    K (states x cells),   K >= 0,   every row sums to 1

where the cells come from geometry. With coordinates they form a lattice of about `num_cells` boxes
whose sides follow the extents. Without, the states are placed by diffusion distance: the walk that
takes uniform actions is symmetrised to S = D^(-1/2) (P + P')/2 D^(-1/2), with D its row sums, and
state x sits at

    D_xx^(-1/2) v_k(x)/(1 - discount l_k)      for the leading eigenpairs (l_k, v_k) of S,

so that two states are close when the walks that start there spend their discounted time alike;
the cells are then clusters (k-means from a farthest-first start). Nothing is drawn at random.

Cost: O(states x dimensions x neighbours) for a lattice; a Lanczos run and k-means without one.
Reference: Coifman and Lafon, *Diffusion maps*, 2006.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from operator import index

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix, real_array, require_between
from journeyman.errors import InvalidCosts, InvalidWorld
from journeyman.policy import Policy
from journeyman.policy.policy_evaluation import transition_under
from journeyman.world import World

DIMENSIONS = 8
"""Eigenvectors that place the states of a world without coordinates."""
ROUNDS_OF_CLUSTERING = 50
LEAST_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class Cells:
    """States and the centres of their cells, in units of one cell's width."""

    positions: FloatArray
    centres: FloatArray
    lattice: tuple[int, ...] | None
    """Boxes per dimension, centred at 0.5, 1.5, ...; None for clusters."""


class Membership(ABC):
    """How much a state belongs to the cells around it."""

    @abstractmethod
    def over(self, cells: Cells) -> SparseMatrix:
        """K (states x cells), rows summing to 1, every cell with some state in it."""


@dataclass(frozen=True)
class HardCells(Membership):
    """Every state belongs to one cell: a single non-zero a row, but policies jump at borders."""

    def over(self, cells: Cells) -> SparseMatrix:
        return without_empty_columns(_one_hot(_nearest(cells), len(cells.centres)))


@dataclass(frozen=True)
class Hats(Membership):
    """Tents: linear interpolation between the centres, at most 2^dimensions non-zeros a row.

    Between clusters, where there is no lattice, the tents of a state reach to the distance of its
    (`neighbours` + 1)-th nearest centre, which leaves at most `neighbours` non-zeros.
    """

    neighbours: int = 3

    def __post_init__(self) -> None:
        require_count("neighbours", self.neighbours)

    def over(self, cells: Cells) -> SparseMatrix:
        if cells.lattice is None:
            return self._between_clusters(cells)
        inner = cells.positions - 0.5
        axes = [
            hat_functions(inner[:, axis], np.arange(count, dtype=float))
            for axis, count in enumerate(cells.lattice)
        ]
        return without_empty_columns(reduce(row_products, axes))

    def _between_clusters(self, cells: Cells) -> SparseMatrix:
        from scipy.spatial import cKDTree

        count = min(self.neighbours + 1, len(cells.centres))
        near, centre = cKDTree(cells.centres).query(cells.positions, k=np.arange(1, count + 1))
        foot = np.maximum(near[:, -1:], np.finfo(float).tiny)
        heights = np.maximum(1.0 - near / foot, 0.0)
        heights[heights.sum(axis=1) == 0, 0] = 1.0
        states = np.repeat(np.arange(len(near)), count)
        tents = sparse.coo_array(
            (heights.ravel(), (states, centre.ravel())), shape=(len(near), len(cells.centres))
        )
        return without_empty_columns(_rows_to_one(tents.tocsr()))


@dataclass(frozen=True)
class Bumps(Membership):
    """Gaussian bumps at the centres of the cells that hold a state, lowered until they end in 0.

    Args:
        width: standard deviation in cells.
        reach: how many widths away a bump ends, which keeps K sparse; below 30.
    """

    width: float = 0.6
    reach: float = 3.0

    def __post_init__(self) -> None:
        require_positive("width", self.width)
        require_between("reach", self.reach, 0.0, 30.0, InvalidCosts, "Give 2 to 4")

    def over(self, cells: Cells) -> SparseMatrix:
        from scipy.spatial import cKDTree

        own, home = np.unique(_nearest(cells), return_inverse=True)
        centres, states = cells.centres[own], np.arange(len(home))
        farthest = self.reach * self.width
        near = cKDTree(cells.positions).sparse_distance_matrix(
            cKDTree(centres), farthest, output_type="ndarray"
        )
        near = near[near["j"] != home[near["i"]]]
        to_home = np.linalg.norm(cells.positions - centres[home], axis=1)
        distance = np.append(near["v"], np.minimum(to_home, farthest))
        foot = np.exp(-0.5 * self.reach**2)
        heights = np.exp(-0.5 * (distance / self.width) ** 2) - foot
        heights[near.size :] += LEAST_SHARE * foot  # of its own cell, however far away the centre
        at = (np.append(near["i"], states), np.append(near["j"], home))
        bumps = sparse.coo_array((heights, at), shape=(len(home), len(own)))
        return _rows_to_one(bumps.tocsr())


def cells_of(
    world: World, num_cells: int, coordinates: ArrayLike | None = None, dimensions: int = DIMENSIONS
) -> Cells:
    """About `num_cells` cells: a lattice over `coordinates` (the world's own by default), or
    clusters by diffusion distance in so many `dimensions` where the world has none."""
    count = require_count("num_cells", num_cells)
    given = world.coordinates if coordinates is None else coordinates
    if given is None:
        return _clusters(diffusion_coordinates(world, dimensions), count)
    places = real_array("coordinates", given, ndim=2, size=world.num_states, refusal=InvalidWorld)
    return _lattice(places, count)


def diffusion_coordinates(world: World, dimensions: int = DIMENSIONS) -> FloatArray:
    """(states x dimensions) positions in which Euclidean distance is discounted diffusion distance.

    >>> world = World([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [1, 0, 0], 0.9)
    >>> diffusion_coordinates(world, 2).shape
    (3, 2)
    """
    require_count("dimensions", dimensions)
    walk = transition_under(world, Policy.uniform(world))
    mutual = sparse.csr_array((walk + walk.T) / 2)
    degrees = np.asarray(mutual.sum(axis=1)).ravel()
    scale = sparse.diags_array(1.0 / np.sqrt(degrees))
    values, vectors = _leading(scale @ mutual @ scale, min(dimensions + 1, world.num_states))
    places = vectors / np.sqrt(degrees)[:, np.newaxis] / (1.0 - world.discount * values)
    return np.asarray(places[:, 1:] if places.shape[1] > 1 else places)


def hat_functions(values: FloatArray, knots: FloatArray) -> SparseMatrix:
    """(values x knots) weights of linear interpolation between ascending knots, flat beyond."""
    if knots.size == 1:
        return sparse.csr_array(np.ones((values.size, 1)))
    inside = np.clip(values, knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, knots.size - 2)
    share = (inside - knots[left]) / (knots[left + 1] - knots[left])
    columns = np.column_stack([left, left + 1]).ravel()
    weights = np.column_stack([1.0 - share, share]).ravel()
    ends = np.arange(0, 2 * values.size + 1, 2)
    hats = sparse.csr_array((weights, columns, ends), shape=(values.size, knots.size))
    hats.eliminate_zeros()
    return hats


def row_products(left: SparseMatrix, right: SparseMatrix) -> SparseMatrix:
    """Row by row, every entry of `left` times every entry of `right`, in lexicographic order."""
    rows = np.repeat(np.arange(left.shape[0]), np.diff(left.indptr))
    copies = np.diff(right.indptr)[rows]
    first = np.repeat(np.arange(left.nnz), copies)
    within = np.arange(first.size) - np.repeat(np.cumsum(copies) - copies, copies)
    second = right.indptr[rows[first]] + within
    width = right.shape[1]
    columns = left.indices[first].astype(np.int64) * width + right.indices[second]
    ends = np.append(0, np.cumsum(np.diff(left.indptr) * np.diff(right.indptr)))
    return sparse.csr_array(
        (left.data[first] * right.data[second], columns, ends),
        shape=(left.shape[0], left.shape[1] * width),
    )


def _lattice(places: FloatArray, num_cells: int) -> Cells:
    """Boxes by growth: again and again one more along the axis where they are longest."""
    low, extent = places.min(axis=0), np.ptp(places, axis=0)
    distinct = np.array([np.unique(column).size for column in places.T])
    counts = np.ones(places.shape[1], dtype=np.int64)
    while True:
        grown = counts.prod() // counts * (counts + 1)
        possible = (grown <= num_cells) & (counts < distinct)
        if not possible.any():
            break
        counts[np.argmax(np.where(possible, extent / counts, -1.0))] += 1
    unit = np.where(extent > 0, extent, 1.0)
    # Each of m distinct values owns 1/m of its axis, so that equal boxes hold equally many.
    positions = ((places - low) / unit * (distinct - 1) + 0.5) / distinct * counts
    shape = tuple(int(count) for count in counts)
    centres = np.indices(shape, dtype=np.float64).reshape(counts.size, -1).T + 0.5
    return Cells(positions, centres, shape)


def _clusters(places: FloatArray, num_cells: int) -> Cells:
    """k-means; its unit is the median distance from a centre to the nearest other one."""
    from scipy.spatial import cKDTree

    centres = _farthest_first(places, num_cells)
    for _ in range(ROUNDS_OF_CLUSTERING):
        _, owner = cKDTree(centres).query(places)
        sizes = np.bincount(owner, minlength=len(centres))
        sums = _one_hot(owner, len(centres)).T @ places
        moved = sums[sizes > 0] / sizes[sizes > 0, np.newaxis]
        if moved.shape == centres.shape and np.array_equal(moved, centres):
            break
        centres = moved
    unit = 1.0
    if len(centres) > 1:
        unit = float(np.median(cKDTree(centres).query(centres, k=2)[0][:, 1]))
    return Cells(places / unit, centres / unit, None)


def _farthest_first(places: FloatArray, count: int) -> FloatArray:
    """Starting centres: each the state farthest from those before it, so no two coincide."""
    chosen = [int(np.argmax(np.linalg.norm(places - places.mean(axis=0), axis=1)))]
    away = np.linalg.norm(places - places[chosen[0]], axis=1)
    while len(chosen) < count and away.max() > 0:
        chosen.append(int(np.argmax(away)))
        away = np.minimum(away, np.linalg.norm(places - places[chosen[-1]], axis=1))
    return places[chosen]


def _leading(matrix: SparseMatrix, count: int) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues, in descending order, of a symmetric matrix."""
    size = matrix.shape[0]
    if size <= max(4 * count, 64):
        values, vectors = np.linalg.eigh(matrix.toarray())
    else:
        from scipy.sparse.linalg import eigsh

        start = 1.0 + np.cos(np.arange(size))  # fixed, and orthogonal to no eigenvector in practice
        values, vectors = eigsh(matrix, k=count, which="LA", v0=start)
    order = np.argsort(-values, kind="stable")[:count]
    return values[order], vectors[:, order]


def _nearest(cells: Cells) -> IntArray:
    if cells.lattice is not None:
        box = np.minimum(np.floor(cells.positions).astype(np.int64), np.array(cells.lattice) - 1)
        return np.asarray(np.ravel_multi_index(tuple(box.T), cells.lattice))
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(cells.centres).query(cells.positions)[1])


def _one_hot(owner: IntArray, count: int) -> SparseMatrix:
    ends = np.arange(owner.size + 1)
    return sparse.csr_array((np.ones(owner.size), owner, ends), shape=(owner.size, count))


def _rows_to_one(rows: SparseMatrix) -> SparseMatrix:
    return sparse.csr_array(sparse.diags_array(1.0 / rows.sum(axis=1)) @ rows)


def without_empty_columns(rows: SparseMatrix) -> SparseMatrix:
    """The columns of a non-negative matrix that hold something."""
    return rows[:, rows.sum(axis=0) > 0]


def require_count(name: str, value: int) -> int:
    """A whole number from 1."""
    try:
        count = index(value)
    except TypeError as fault:
        raise InvalidCosts(f"{name} = {value!r}", "Give a whole number from 1") from fault
    if count < 1:
        raise InvalidCosts(f"{name} = {count}", "Give a whole number from 1")
    return count


def require_positive(name: str, value: float) -> None:
    """Refuse what is not a positive number."""
    require_between(name, value, 0.0, np.inf, InvalidCosts, "Give a positive number")
