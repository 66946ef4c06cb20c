"""The best weights of a mixture, for given expectations of its candidates.

    minimise over theta >= 0, sum theta = 1    gap_W(M theta - e)
      = maximise over w in W                   min_k <w, m_k - e>

where the columns m_k of M are the candidates' expectations: the reduced program with occupancies of
policies as features, in which nothing is ever negative and flow is kept (V1 = V2 = 0). A linear
program for `InfinityBall` and `Simplex`; for `EuclideanBall` the point of a polytope closest to the
origin, which is a nonnegative least-squares problem:

    min |A theta|^2 + (sum theta - 1)^2 over theta >= 0  has a multiple of the best weights as
    solution, because theta = t phi costs t^2 |A phi|^2 + (t - 1)^2.

For `Simplex` the optimum is often a face; among its points the least mean cost is taken, as in the
second stage of the exact program.

*Guarantee*: `lower_bound` is the right-hand side at weights that lie in W, so no mixture of these
candidates is better on these figures, whatever the engine did.

Reference: Lawson, Hanson, "Solving Least Squares Problems", 1974, for the least distance.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs import CostClass, EuclideanBall, InfinityBall

HELD, WORTHWHILE = 1e-9, 1e-6
"""By how much, in units of the program, the second stage may give way, and must gain."""


@dataclass(frozen=True, eq=False)
class MixtureWeights:
    """Weights, their value, and the cost weights that prove how good they are."""

    weights: FloatArray
    value: float
    lower_bound: float
    cost_weights: FloatArray
    """The adversary's: no mixture costs less than `lower_bound` under these."""
    engine: str


def best_weights(
    expectations: FloatArray, target: FloatArray, cost_class: CostClass
) -> MixtureWeights:
    """The best weights for candidates with the given expectations, (candidates x costs)."""
    scale = cost_class.scaling(target.size)
    differences = (expectations - target) * scale
    unit = float(np.abs(differences).max()) or 1.0
    A = np.ascontiguousarray((differences / unit).T)
    if isinstance(cost_class, EuclideanBall):
        theta, dual, engine = _nearest(A)
    elif isinstance(cost_class, InfinityBall):
        theta, dual, engine = _matching(A)
    else:
        theta, dual, engine = _surpassing(A)
    weights = _in_simplex(theta)
    value = cost_class.gap(weights @ expectations - target)
    proposals = [cost_class.worst_case(weights @ expectations - target)]
    if dual is not None:
        proposals.append(cost_class.admit(scale * dual))
    if cost_class.contains_zero:
        proposals.append(np.zeros(target.size))
    proven = [float(((expectations - target) @ w).min()) for w in proposals]
    best = int(np.argmax(proven))
    return MixtureWeights(weights, value, proven[best], proposals[best], engine)


_Found = tuple[FloatArray, FloatArray | None, str]
"""Weights, weights of the adversary in units of the class, and who found them."""
SIMPLEX_METHOD = "HiGHS simplex"


def _matching(A: FloatArray) -> _Found:
    """minimise sum_i t_i with -t <= A theta <= t."""
    costs, count = A.shape
    one = np.eye(costs)
    rows = np.block([[A, -one], [-A, -one]])
    found = _linear(np.r_[np.zeros(count), np.ones(costs)], rows, np.zeros(2 * costs), count)
    if found is None:
        return np.full(count, 1 / count), None, SIMPLEX_METHOD
    x, prices = found
    return x[:count], prices[:costs] - prices[costs:], SIMPLEX_METHOD


def _surpassing(A: FloatArray) -> _Found:
    """minimise t with A theta <= t, then the mean of A theta with that t held."""
    costs, count = A.shape
    rows = np.hstack([A, -np.ones((costs, 1))])
    found = _linear(np.r_[np.zeros(count), 1.0], rows, np.zeros(costs), count)
    if found is None:
        return np.full(count, 1 / count), None, SIMPLEX_METHOD
    x, prices = found
    theta, mean = x[:count], A.mean(axis=0)
    second = _linear(mean, A, np.full(costs, x[count] + HELD), count)
    if second is not None and mean @ second[0] < mean @ theta - WORTHWHILE:
        theta = second[0]
    return theta, prices, f"{SIMPLEX_METHOD}, two stages"


def _linear(
    cost: FloatArray, rows: FloatArray, limits: FloatArray, count: int
) -> tuple[FloatArray, FloatArray] | None:
    """x and the prices of `rows x <= limits`, with the first `count` variables in the simplex."""
    from scipy.optimize import linprog

    free = cost.size - count
    found = linprog(
        cost, A_ub=rows, b_ub=limits, A_eq=np.r_[np.ones(count), np.zeros(free)][np.newaxis],
        b_eq=[1.0], bounds=[(0, None)] * count + [(None, None)] * free, method="highs-ds",
    )  # fmt: skip
    return (found.x, -found.ineqlin.marginals) if found.status == 0 else None


def _nearest(A: FloatArray) -> _Found:
    from scipy.optimize import nnls

    costs, count = A.shape
    rows = np.vstack([A, np.ones(count)])
    try:
        theta, _ = nnls(rows, np.r_[np.zeros(costs), 1.0])
    except RuntimeError:
        theta = np.zeros(count)
    return theta, None, "nonnegative least squares"


def _in_simplex(theta: FloatArray) -> FloatArray:
    positive = np.maximum(theta, 0.0)
    total = float(positive.sum())
    return positive / total if total > 0 else np.full(theta.size, 1 / theta.size)
