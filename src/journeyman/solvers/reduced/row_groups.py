"""Rows in groups: a reduced program with far fewer rows, refined where sums hide something.

For a partition of the pairs and one of the states into groups g let

    L_g(theta) = gap_W(G theta - target) + lambda_3 sum_j [C_j theta - b_j]+
                 + lambda_1 sum_g [sum over s in g of (Phi_s theta - floor_s)]-
                 + lambda_2 sum_g |sum over y in g of (D_y theta - nu_y)|

be the surrogate in which the rows of a group are added up. Since [.]- and |.| are subadditive

    L_g(theta) <= L(theta),    with equality where no group has members of both signs at theta.

The dual of L_g is that of L with one variable for all rows of a group, so its dual points are dual
points of L, and every bound that they prove holds for L. A round minimises L_g, evaluates L at the
minimiser theta in one pass over all rows, and splits groups by the sign of their members at theta;
then L_g(theta) = L(theta) in the next round, but for groups that were left since together they hide
at most a small share of what is unknown.

Guarantee. None is needed: loss and bound are recomputed from all rows. Rounds end, because a round
either closes the gap or splits a group, and groups of one row cannot be split. In practice some ten
rounds are enough for a gap of 1e-8, and the groups are then some ten times as many as there are
features, however many rows there are: near the least loss all but about d rows are far enough from
zero to keep their sign.

The first groups have rows with the same columns, in runs of neighbours; their sums are hardly
longer than the rows themselves. Where most rows have columns of their own, sums fill up and nothing
is saved; `pays` compares the work. The loss of groups is bounded from below for classes with the
zero cost only, for which gap_W >= 0; others use all rows.

Cost. A round is a program of as many rows as there are groups, and a pass over all rows.

Reference: Portnoy and Koenker, "The Gaussian hare and the Laplacian tortoise", Statistical Science
12, 1997, section 5, who guess the signs of most rows of a quantile regression and add these up;
here no guess has to be right. Aggregation with bounds: Zipkin, "Bounds for aggregating variables in
linear programs", Operations Research 28, 1980.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix
from journeyman.problem.reduced import DrawnRows, Penalties, Reduced
from journeyman.problem.surrogate import ReducedWitness, Surrogate
from journeyman.solvers.reduced.box_dual import BoxDual, SelectedRows, box_dual

GROUPS_A_FEATURE = 8
"""Runs of neighbours are so long that there are at least about so many groups for each feature."""
SHARE = 0.02
"""Of what is unknown, that all groups which are not split may hide."""
ROW, PRODUCT, FACTOR = 1e-7, 8e-9, 5e-11
"""Seconds of an iteration of the interior point, about: for a row, a product of two entries of a
sparse row, and each of the d^3/3 operations of the factor."""
GROWN, ROUNDS = 2.5, 10
"""By how much groups grow on the way, and how often their program is solved."""


@dataclass(frozen=True, eq=False)
class RowGroups:
    """The group of every pair and of every state."""

    pairs: IntArray
    states: IntArray

    @classmethod
    def of(cls, reduced: Reduced) -> "RowGroups":
        """Runs of neighbours with the same columns."""
        rows = reduced.floor.size + reduced.flow_target.size
        most = max(1, rows // (GROUPS_A_FEATURE * reduced.num_features))
        return cls(_runs(reduced.pair_rows, most), _runs(reduced.flow_rows, most))

    @property
    def counts(self) -> tuple[int, int]:
        """Groups of pairs, and of states."""
        return int(self.pairs.max()) + 1, int(self.states.max()) + 1

    def rows(self, reduced: Reduced) -> SelectedRows:
        """The sums; a group takes the place of the row of its number."""
        pairs, states = self.counts
        each_pair, each_state = np.ones(pairs), np.ones(states)
        rows = DrawnRows(
            _summed(self.pairs, pairs) @ reduced.pair_rows,
            _totals(self.pairs, reduced.floor, pairs), each_pair,
            _summed(self.states, states) @ reduced.flow_rows,
            _totals(self.states, reduced.flow_target, states), each_state,
        )  # fmt: skip
        return SelectedRows(rows, each_pair, each_state, np.arange(pairs), np.arange(states))

    def box(self, reduced: Reduced, penalties: Penalties) -> BoxDual:
        """The program of the groups."""
        return box_dual(reduced, penalties, self.rows(reduced))

    def witness(self, box: BoxDual, v: FloatArray, penalties: Penalties) -> ReducedWitness:
        """The dual point of all rows: every member has the variable of its group."""
        found = box.witness(v, penalties)
        return ReducedWitness(
            found.cost_weights, found.flow_signs[self.states], found.negative_pairs[self.pairs],
            found.broken_budgets,
        )  # fmt: skip

    def split(self, surrogate: Surrogate, theta: FloatArray, unknown: float) -> "RowGroups":
        """Groups of one sign at theta, but for some that hide little of what is `unknown`."""
        reduced, penalties = surrogate.reduced, surrogate.penalties
        above = reduced.pair_rows @ theta - reduced.floor
        error = reduced.flow_rows @ theta - reduced.flow_target
        hidden = SHARE * unknown
        return RowGroups(
            _split(self.pairs, above, penalties.pairs, hidden),
            _split(self.states, error, 2 * penalties.flow, hidden),
        )

    def pays(self, reduced: Reduced) -> bool:
        """Whether rounds on groups take less time than a program of all rows."""
        selected = self.rows(reduced).rows
        groups = seconds(selected.pair_rows, selected.flow_rows)
        return ROUNDS * GROWN * groups < seconds(reduced.pair_rows, reduced.flow_rows)


def groups_that_pay(surrogate: Surrogate) -> RowGroups | None:
    """Groups, where all rows take longer."""
    reduced = surrogate.reduced
    if not (reduced.problem.cost_class.contains_zero and reduced.features.is_sparse):
        return None
    if seconds(reduced.pair_rows, reduced.flow_rows) < ROUNDS * _factor(reduced.num_features):
        return None
    groups = RowGroups.of(reduced)
    return groups if groups.pays(reduced) else None


def seconds(*rows: Matrix) -> float:
    """About how long an iteration with sparse rows takes."""
    total = _factor(rows[0].shape[1])
    for part in rows:
        lengths = np.diff(sparse.csr_array(part).indptr).astype(float)
        total += ROW * lengths.size + PRODUCT * float(lengths @ lengths)
    return total


def _factor(width: int) -> float:
    return FACTOR * width**3 / 3


def _runs(rows: Matrix, most: int) -> IntArray:
    """Groups of at most `most` rows with the same columns, neighbours before others."""
    table = sparse.csr_array(rows)
    names = np.random.default_rng(0).integers(1, 2**62, table.shape[1]).astype(np.uint64)
    totals = np.zeros(table.nnz + 1, dtype=np.uint64)
    np.cumsum(names[table.indices], out=totals[1:])  # overflow wraps around, and is undone below
    same = np.unique(totals[table.indptr[1:]] - totals[table.indptr[:-1]], return_inverse=True)[1]
    order = np.argsort(same, kind="stable")
    kinds = same[order]
    starts = np.flatnonzero(np.diff(kinds, prepend=-1))
    place = np.arange(kinds.size) - np.repeat(starts, np.diff(np.append(starts, kinds.size)))
    is_first = place % most == 0
    found = np.empty(kinds.size, dtype=np.int64)
    found[order] = np.cumsum(is_first) - 1
    return found


def _summed(groups: IntArray, count: int) -> sparse.csr_array:
    """Adds up the rows of each group."""
    ones, size = np.ones(groups.size), groups.size
    return sparse.csr_array((ones, (groups, np.arange(size))), shape=(count, size))


def _totals(groups: IntArray, values: FloatArray, count: int) -> FloatArray:
    return np.asarray(np.bincount(groups, values, count), dtype=float)


def _split(groups: IntArray, values: FloatArray, price: float, hidden: float) -> IntArray:
    """Each group into its members below zero and the others, cheapest left as they are."""
    count = int(groups.max()) + 1
    below = values < 0
    under = -_totals(groups[below], values[below], count)
    over = _totals(groups[~below], values[~below], count)
    costs = price * np.minimum(under, over)
    order = np.argsort(costs, kind="stable")
    cut = np.zeros(count, dtype=bool)
    cut[order] = np.cumsum(costs[order]) > hidden
    found = np.where(cut[groups] & below, groups + count, groups)
    kept = np.zeros(2 * count, dtype=bool)
    kept[found] = True
    return np.asarray((np.cumsum(kept) - 1)[found])
