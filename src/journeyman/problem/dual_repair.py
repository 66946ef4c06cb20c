"""Sharper lower bounds on the surrogate: a nearly right dual point, moved until its slope vanishes.

`reduced_lower_bound` charges radius |slope|_2, where the slope is what the dual point leaves of the
gradient. A dual point gathered along a run has a small slope, but not a vanishing one. With v =
(y, z) and A their rows, weighted by the penalties, each round takes the affine step

    v <- v + step * S A (A' S A)^{-1} (-slope),      S = (distance of v to its bounds)^2

which cancels the slope to first order while entries near their bounds hardly move, and shortens it
so that v stays inside. It is the dual affine scaling step of linear programming. Whatever comes out
is a valid dual point; the better bound of before and after is kept.

Cost: one d x d system per round, and the products A' S A.
"""

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray
from journeyman.problem.reduced_duality import ReducedWitness, reduced_lower_bound
from journeyman.problem.small_systems import solve_definite
from journeyman.problem.surrogate import Surrogate

MARGINS = (1e-6, 1e-5, 1e-4)
"""How far inside their bounds the entries start, as a share of the way to the middle."""
MAX_ROUNDS = 12
CAUTION = 0.9
"""Share of the way to the nearest bound that a shortened step goes."""
WORK_LIMIT = 2e9
"""Products of row entries per round beyond which the point is left as it is."""


def sharpened(
    surrogate: Surrogate, witness: ReducedWitness, radius: float
) -> tuple[ReducedWitness, float]:
    """The best dual point near `witness` that was found, and its lower bound."""
    best, bound = witness, reduced_lower_bound(surrogate, witness, radius)
    rows = _penalised_rows(surrogate)
    if float((np.diff(rows.indptr).astype(float) ** 2).sum()) > WORK_LIMIT:
        return best, bound
    for margin in MARGINS:
        moved = _without_slope(surrogate, rows, witness, margin)
        found = reduced_lower_bound(surrogate, moved, radius)
        if found > bound:
            best, bound = moved, found
    return best, bound


def _penalised_rows(surrogate: Surrogate) -> sparse.csr_array:
    reduced, penalties = surrogate.reduced, surrogate.penalties
    return sparse.vstack(
        [
            penalties.flow * sparse.csr_array(reduced.flow_rows),
            -penalties.pairs * sparse.csr_array(reduced.pair_rows),
        ],
        format="csr",
    )


def _without_slope(
    surrogate: Surrogate, rows: sparse.csr_array, witness: ReducedWitness, margin: float
) -> ReducedWitness:
    reduced = surrogate.reduced
    num_states = witness.flow_signs.size
    low = np.concatenate([-np.ones(num_states), np.zeros(witness.negative_pairs.size)])
    v = np.concatenate([witness.flow_signs, witness.negative_pairs])
    v = np.clip(v, low, 1.0)
    v += margin * ((low + 1.0) / 2 - v)
    weights = reduced.problem.cost_class.admit(witness.cost_weights)
    fixed = reduced.matching.T @ weights
    if witness.broken_budgets.size:
        fixed = fixed + surrogate.penalties.budgets * (
            reduced.budget_rows.T @ np.clip(witness.broken_budgets, 0.0, 1.0)
        )
    for _ in range(MAX_ROUNDS):
        step, length = _affine_step(rows, fixed + rows.T @ v, v, low)
        v = v + length * step
        if length == 1.0:
            break
    return ReducedWitness(weights, v[:num_states], v[num_states:], witness.broken_budgets)


def _affine_step(
    rows: sparse.csr_array, slope: FloatArray, v: FloatArray, low: FloatArray
) -> tuple[FloatArray, float]:
    """A step that cancels the slope, and how much of it stays inside the bounds."""
    room = np.minimum(v - low, 1.0 - v) ** 2
    gram = (rows.T @ (sparse.diags_array(room) @ rows)).toarray()
    gram[np.diag_indices_from(gram)] += 1e-13 * gram.trace() / len(gram) + np.finfo(float).tiny
    step = -room * (rows @ solve_definite(gram, slope))
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = np.where(step > 0, (1.0 - v) / step, np.where(step < 0, (low - v) / step, np.inf))
    return step, min(1.0, CAUTION * float(ways.min()))
