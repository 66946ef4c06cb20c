"""Sharper lower bounds on the surrogate: a nearly right dual point, moved until its slope vanishes.

`reduced_lower_bound` charges radius |slope|_2, where the slope is what the dual point leaves of the
gradient. A dual point gathered along a run has a small slope, but not a vanishing one. With v =
(y, z) and A their rows, weighted by the penalties, each round takes the affine step

    v <- v + step * S A (A' S A)^{-1} (-slope),      S = (distance of v to its bounds)^2

which cancels the slope to first order while entries near their bounds hardly move, and shortens it
so that v stays inside. It is the dual affine scaling step of linear programming. Whatever comes out
is a valid dual point; the better bound of before and after is kept. Points that start further from
their bounds have more room and lose a little of the bound, so they are tried only when nearer ones
did not get rid of their slope.

Cost: the products A' S A and one d x d factorisation per round, `DualRepair.seconds` in all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix
from journeyman.problem import row_gram
from journeyman.problem.reduced_duality import ReducedWitness, reduced_lower_bound
from journeyman.problem.surrogate import Surrogate

MARGINS = (1e-6, 1e-5, 1e-4)
"""How far inside their bounds the entries start, as a share of the way to the middle."""
MAX_ROUNDS = 12
CAUTION = 0.9
"""Share of the way to the nearest bound that a shortened step goes."""
WORK_LIMIT = 2e9
"""Products of row entries per round beyond which the point is left as it is."""
MOST_FEATURES = 5000
"""Likewise: beyond this a factor takes more than ten seconds and 200 MB."""

Stop = Callable[[], bool]


@dataclass(frozen=True, eq=False)
class DualRepair:
    """Sharpens dual points of one surrogate, for coefficients within `radius`."""

    surrogate: Surrogate
    radius: float

    def sharpened(
        self, witness: ReducedWitness, stop: Stop = lambda: False
    ) -> tuple[ReducedWitness, float]:
        """The best dual point near `witness` that was found before `stop`, and its lower bound."""
        best, bound = witness, reduced_lower_bound(self.surrogate, witness, self.radius)
        if not self.is_affordable:
            return best, bound
        for margin in MARGINS:
            if stop():
                break
            moved, vanished = self._without_slope(witness, margin, stop)
            found = reduced_lower_bound(self.surrogate, moved, self.radius)
            if found > bound:
                best, bound = moved, found
            if vanished:
                break
        return best, bound

    @property
    def is_affordable(self) -> bool:
        """Whether dual points are moved at all."""
        reduced = self.surrogate.reduced
        few = reduced.num_features <= MOST_FEATURES
        return few and _products(reduced.flow_rows) + _products(reduced.pair_rows) <= WORK_LIMIT

    @property
    def seconds(self) -> float:
        """About how long a repair takes that needs all rounds of one margin."""
        if not self.is_affordable:
            return 0.0
        return MAX_ROUNDS * row_gram.seconds(self._rows)

    @cached_property
    def _rows(self) -> Matrix:
        """Rows of y and z, weighted by the penalties."""
        reduced, penalties = self.surrogate.reduced, self.surrogate.penalties
        flow = penalties.flow * sparse.csr_array(reduced.flow_rows)
        pairs = -penalties.pairs * sparse.csr_array(reduced.pair_rows)
        return row_gram.stored_rows(sparse.vstack([flow, pairs], format="csr"))

    def _without_slope(
        self, witness: ReducedWitness, margin: float, stop: Stop
    ) -> tuple[ReducedWitness, bool]:
        """A dual point whose slope vanishes to first order, or is smaller; and which of both."""
        reduced, rows = self.surrogate.reduced, self._rows
        num_states = witness.flow_signs.size
        low = np.concatenate([-np.ones(num_states), np.zeros(witness.negative_pairs.size)])
        v = np.concatenate([witness.flow_signs, witness.negative_pairs])
        v = np.clip(v, low, 1.0)
        v += margin * ((low + 1.0) / 2 - v)
        weights = reduced.problem.cost_class.admit(witness.cost_weights)
        fixed = reduced.matching.T @ weights
        if witness.broken_budgets.size:
            fixed = fixed + self.surrogate.penalties.budgets * (
                reduced.budget_rows.T @ np.clip(witness.broken_budgets, 0.0, 1.0)
            )
        length = 0.0
        for _ in range(MAX_ROUNDS):
            step, length = _affine_step(rows, fixed + rows.T @ v, v, low)
            v = v + length * step
            if length == 1.0 or stop():
                break
        parts = weights, v[:num_states], v[num_states:], witness.broken_budgets
        return ReducedWitness(*parts), length == 1.0


def _products(rows: Matrix) -> float:
    """Of the entries of every row with each other."""
    if sparse.issparse(rows):
        return float((np.diff(rows.indptr).astype(float) ** 2).sum())
    return float(rows.shape[0] * rows.shape[1] ** 2)


def _affine_step(
    rows: Matrix, slope: FloatArray, v: FloatArray, low: FloatArray
) -> tuple[FloatArray, float]:
    """A step that cancels the slope, and how much of it stays inside the bounds."""
    room = np.minimum(v - low, 1.0 - v) ** 2
    gram = np.zeros((slope.size, slope.size))
    row_gram.add_gram(rows, room, gram)
    step = -room * (rows @ row_gram.factored_gram(gram)(slope))
    if not np.isfinite(step).all():
        return np.zeros_like(v), 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ways = np.where(step > 0, (1.0 - v) / step, np.where(step < 0, (low - v) / step, np.inf))
    return step, min(1.0, CAUTION * float(ways.min()))
