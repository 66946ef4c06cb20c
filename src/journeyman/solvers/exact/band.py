"""Normal equations of a narrow world: E' diag(weights) E as a band with a few hubs beside it.

With E = B - discount P, two states share an entry when they occur in the same row of E: a pair, and
what follows it. Numbered along a narrow world such states are nearby, so that the matrix is a band,
and so is its Cholesky factor. States that very many others lead to (a sink, a place where one
begins again) would widen it; these *hubs* come last:

    K = ( band  arms )  =  L L',        L = ( L_band          0     )
        ( arms' corner )                    ( arms' L_band'^-1 L_hubs )

*Cost*, with n states, a bandwidth b and k columns on the right: n b^2 for the factor (LAPACK's
`dpbtrf`), 2 n b k for L^-1 of a block, in dense pieces. Reference: Golub and Van Loan, "Matrix
Computations", 4.3.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, blas, lapack

from journeyman.arrays import BoolArray, FloatArray, IntArray, Matrix, SparseMatrix, dense
from journeyman.world import World
from journeyman.world.goals import steps_of

RIDGE = 1e-14
"""Added to the diagonal, relative to it."""
PIECE = 64
"""Columns of the factor that are made dense at a time."""
ROWS = 512
"""Rows of them whose products are added up at a time."""
CHUNK_BYTES = 2**24
OFTEN = 8.0
"""A hub has so many times more neighbours than states have on average."""
MOST_HUBS = 64


@dataclass(frozen=True, eq=False)
class BandOrder:
    """An order of the states that take part, hubs last."""

    place: IntArray
    """The number of each state in it, -1 for states that no policy gets to: they stay out."""
    size: int
    """How many states are in the band."""
    width: int
    """The number of subdiagonals."""
    num_hubs: int

    @property
    def num_states(self) -> int:
        return self.size + self.num_hubs

    @property
    def operations(self) -> float:
        """Of a factor."""
        inner, hubs = float(self.width), float(self.num_hubs)
        own = self.size * inner**2 - 2 / 3 * inner**3
        return own + self.size * hubs * (2 * inner + hubs)

    def held_bytes(self, columns: int) -> int:
        """Of factor and columns."""
        return 8 * self.size * (self.width + 1 + self.num_hubs + columns)


def band_order(world: World) -> BandOrder:
    """The order of fewest operations: with and without hubs, as given or by reverse Cuthill-McKee
    (of the graph in which a state is joined to those that can follow it)."""
    steps = steps_of(world.continuation, world.pairs)
    graph = sparse.csr_array(
        (np.ones(steps.nnz, dtype=np.int8), steps.indices, steps.indptr), shape=steps.shape
    )
    graph = (graph + graph.T).tocsr()
    degree = np.diff(graph.indptr)
    nobody = np.zeros(world.num_states, dtype=bool)
    often = world.reachable & (degree > OFTEN * float(degree[world.reachable].mean()))
    choices = [nobody, often] if 0 < np.count_nonzero(often) <= MOST_HUBS else [nobody]
    found = [order for hubs in choices for order in _orders(world, graph, hubs)]
    return min(found, key=lambda order: order.operations)


def _orders(world: World, graph: SparseMatrix, hubs: BoolArray) -> list[BandOrder]:
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    rest = np.flatnonzero(world.reachable & ~hubs)
    inner = graph if rest.size == world.num_states else graph[rest][:, rest]
    near = reverse_cuthill_mckee(sparse.csr_array(inner), symmetric_mode=True)
    return [_order(world, order, np.flatnonzero(hubs)) for order in (rest, rest[near])]


def _order(world: World, banded: IntArray, hubs: IntArray) -> BandOrder:
    place = np.full(world.num_states, -1)
    place[banded] = np.arange(banded.size)
    place[hubs] = banded.size + np.arange(hubs.size)
    matrix, own = world.continuation, place[world.pairs.states]
    placed = place[matrix.indices]
    counted = (placed >= 0) & (placed < banded.size)
    starts = matrix.indptr[:-1]
    low = np.minimum.reduceat(np.where(counted, placed, banded.size), starts)
    high = np.maximum.reduceat(np.where(counted, placed, -1), starts)
    alone = (own < 0) | (own >= banded.size)
    low = np.minimum(low, np.where(alone, banded.size, own))
    high = np.maximum(high, np.where(alone, -1, own))
    spread = np.where(own >= 0, high - low, 0)
    return BandOrder(place, banded.size, max(0, int(spread.max(initial=0))), hubs.size)


class BandEquations:
    """E of the pairs that take part, their costs, and room for the factor."""

    def __init__(self, world: World, costs: Matrix, order: BandOrder) -> None:
        self.order = order
        flow = world.flow.matrix()
        self.pairs = np.flatnonzero(order.place[world.pairs.states] >= 0)
        if self.pairs.size < world.num_pairs:
            flow, costs = flow[self.pairs], costs[self.pairs]
        self.states = np.flatnonzero(order.place >= 0)
        self.states = self.states[np.argsort(order.place[self.states])]
        indices = order.place[flow.indices]
        self.E: SparseMatrix = sparse.csr_array(
            (flow.data, indices.astype(flow.indices.dtype), flow.indptr),
            shape=(flow.shape[0], order.num_states),
        )
        self.E_transposed: SparseMatrix = self.E.T.tocsr()
        is_sparse = sparse.issparse(costs)
        self.costs: Matrix = sparse.csr_array(costs) if is_sparse else np.ascontiguousarray(costs)
        transposed = self.costs.T
        self.costs_transposed = sparse.csr_array(transposed) if is_sparse else transposed
        self.reached = self._reached()
        self._band = np.empty((order.size, order.width + 1))

    @property
    def held_bytes(self) -> int:
        return self.order.held_bytes(self.costs.shape[1])

    def _reached(self) -> IntArray:
        """For each cost the first row of the band that it, or a later cost, has to do with."""
        costs: Any = self.costs
        count = costs.shape[1]
        if not sparse.issparse(costs):
            return np.zeros(count, dtype=np.int64)
        first = np.minimum.reduceat(self.E.indices, self.E.indptr[:-1])
        begins = np.full(count, self.order.num_states)
        owners = np.repeat(np.arange(first.size), np.diff(costs.indptr))
        np.minimum.at(begins, costs.indices, first[owners])
        return np.minimum.accumulate(begins[::-1])[::-1]

    def factor(self, weights: FloatArray) -> "BandFactor":
        """Of E' diag(weights) E, in the place of the last one."""
        from journeyman.solvers.exact.band_kernels import weigh

        order, E = self.order, self.E
        arms = np.empty((order.size, order.num_hubs))
        corner = np.empty((order.num_hubs, order.num_hubs))
        weigh(E.data, E.indices, E.indptr, weights, self._band, arms, corner)
        return BandFactor(self._band, arms, corner)

    def border(self, weights: FloatArray) -> FloatArray:
        """E' diag(weights) costs."""
        from journeyman.solvers.exact.band_kernels import weigh_dense, weigh_sparse

        E: Any = self.E
        costs: Any = self.costs
        border = np.empty((self.order.num_states, costs.shape[1]))
        if sparse.issparse(costs):
            weigh_sparse(
                E.data, E.indices, E.indptr, weights, costs.data, costs.indices, costs.indptr,
                border,
            )  # fmt: skip
        else:
            weigh_dense(E.data, E.indices, E.indptr, weights, costs, border)
        return border

    def remainder(self, weights: FloatArray, columns: FloatArray) -> FloatArray:
        """costs' diag(weights) costs - columns' columns, where these are L^-1 of the border."""
        if sparse.issparse(self.costs):
            weighted = sparse.diags_array(weights) @ self.costs
            left = dense(self.costs_transposed @ weighted)
        else:
            rows = np.sqrt(weights)[:, np.newaxis] * self.costs
            left = rows.T @ rows
        for first in range(0, columns.shape[0], ROWS):
            count = int(np.searchsorted(self.reached, first + ROWS))
            some = columns[first : first + ROWS, :count]
            left[:count, :count] -= some.T @ some
        return np.asarray(left)

    def curvature(self, weights: FloatArray, table: FloatArray) -> FloatArray:
        """(costs - E table)' diag(weights) (costs - E table), some rows at a time.

        At the table K^-1 E' diag(weights) costs it is the gram less what the values take up,
        without the cancellation that is in this difference.
        """
        from journeyman.solvers.exact.band_kernels import subtract_and_weigh

        count = self.costs.shape[1]
        E: Any = self.E
        roots, curvature = np.sqrt(weights), np.zeros((count, count))
        length = max(1, CHUNK_BYTES // (8 * count))
        for first in range(0, weights.size, length):
            some = slice(first, first + length)
            left = np.array(dense(self.costs[some]))
            subtract_and_weigh(E.data, E.indices, E.indptr, first, roots, table, left)
            curvature += left.T @ left
        return curvature


class BandFactor:
    """L, for vectors and blocks of them; raises `LinAlgError` where there is none."""

    def __init__(self, band: FloatArray, arms: FloatArray, corner: FloatArray) -> None:
        band[:, 0] *= 1 + RIDGE
        factor, failed = lapack.dpbtrf(band.T, lower=1, overwrite_ab=1)
        if failed:
            raise LinAlgError("the normal equations are not positive definite")
        self.band, self.size = factor, band.shape[0]
        self.arms, self.hubs = arms, corner
        if corner.size:
            self._forward_block(arms, np.zeros(arms.shape[1], dtype=np.int64))
            corner = corner - arms.T @ arms
            corner[np.diag_indices_from(corner)] *= 1 + RIDGE
            self.hubs = np.asfortranarray(np.linalg.cholesky(corner))

    def solve(self, right: FloatArray) -> FloatArray:
        """K^-1 right for a vector."""
        return self.backward_vector(self.forward_vector(right))

    def forward_vector(self, right: FloatArray) -> FloatArray:
        """L^-1 right."""
        top, bottom = self._substituted(right[: self.size], "N"), right[self.size :]
        if not bottom.size:
            return top
        bottom = blas.dtrsv(self.hubs, bottom - self.arms.T @ top, lower=1)
        return np.concatenate([top, bottom])

    def backward_vector(self, right: FloatArray) -> FloatArray:
        """L'^-1 right."""
        top, bottom = right[: self.size], right[self.size :]
        if not bottom.size:
            return self._substituted(top, "T")
        bottom = blas.dtrsv(self.hubs, bottom, lower=1, trans=1)
        return np.concatenate([self._substituted(top - self.arms @ bottom, "T"), bottom])

    def forward(self, block: FloatArray, reached: IntArray) -> FloatArray:
        """L^-1 block, in its place; the columns from k on are zero before row `reached[k]`."""
        top, bottom = block[: self.size], block[self.size :]
        self._forward_block(top, reached)
        if bottom.size:
            bottom[:] = _solved(self.hubs, bottom - self.arms.T @ top, transposed=False)
        return block

    def backward(self, block: FloatArray) -> FloatArray:
        """L'^-1 block, in its place."""
        top, bottom = block[: self.size], block[self.size :]
        if bottom.size:
            bottom[:] = _solved(self.hubs, bottom, transposed=True)
            top -= self.arms @ bottom
        self._backward_block(top)
        return block

    def _substituted(self, right: FloatArray, trans: str) -> FloatArray:
        found, _ = lapack.dtbtrs(self.band, right, uplo="L", trans=trans)
        return np.asarray(found).ravel()

    def _piece(self, first: int) -> tuple[FloatArray, FloatArray, int]:
        """Columns of L from `first` on: their triangle, what is below it, and where that begins.

        Column by column LAPACK would read the factor once for each right-hand side; dense pieces
        read it once for all of them."""
        from journeyman.solvers.exact.band_kernels import columns_of

        count = min(PIECE, self.size - first)
        beyond = min(self.band.shape[0] - 1, self.size - first - count)
        piece = np.empty((count, count + beyond))
        columns_of(self.band.T, first, piece)
        return np.asfortranarray(piece[:, :count].T), piece[:, count:], first + count

    def _forward_block(self, block: FloatArray, reached: IntArray) -> None:
        for first in range(0, self.size, PIECE):
            triangle, below, after = self._piece(first)
            count = int(np.searchsorted(reached, after))
            here = block[first:after, :count]
            here[:] = _solved(triangle, here, transposed=False)
            block[after : after + below.shape[1], :count] -= below.T @ here

    def _backward_block(self, block: FloatArray) -> None:
        for first in range((self.size - 1) // PIECE * PIECE, -1, -PIECE):
            triangle, below, after = self._piece(first)
            here = block[first:after]
            here -= below @ block[after : after + below.shape[1]]
            here[:] = _solved(triangle, here, transposed=True)


def _solved(lower: FloatArray, right: FloatArray, *, transposed: bool) -> FloatArray:
    """lower^-1 right, or lower'^-1 right, for a block with its rows together."""
    trans = 0 if transposed else 1  # the block's transpose is what BLAS sees
    return np.asarray(blas.dtrsm(1.0, lower, right.T, side=1, lower=1, trans_a=trans).T)
