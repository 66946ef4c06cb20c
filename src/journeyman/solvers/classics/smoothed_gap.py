"""The gap with its corners rounded off, so that the worst cost does not jump.

    smoothed(z) = max { <w, z> - t r(w) : w in W }

| class           | r(w), w in units of the scale | weights               | at most off by  |
|-----------------|-------------------------------|-----------------------|-----------------|
| `Simplex`       | sum_i w_i log w_i             | softmax(z/t)          | t log n, above  |
| `InfinityBall`  | |w|^2 / 2                     | z/t, cut off at +-1   | t n/2, below    |
| `EuclideanBall` | |w|^2 / 2                     | z/max(|z|, t)         | t/2, below      |

where t > 0 is the temperature and n the number of costs. The weights lie in W, so they are a dual
point like any other, and they are the gradient of `smoothed`. As t falls to zero they become the
worst case itself, on which the subgradient method of the literature rests.
"""

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs import CostClass, EuclideanBall, InfinityBall, Simplex


def smoothed_gap(
    cost_class: CostClass, difference: FloatArray, temperature: float
) -> tuple[float, FloatArray]:
    """The smoothed gap and the weights that attain it.

    >>> value, weights = smoothed_gap(Simplex(), np.array([0.0, 0.0]), 1.0)
    >>> round(value, 6), weights.tolist()
    (0.693147, [0.5, 0.5])
    """
    scale = cost_class.scaling(difference.size)
    z = scale * difference
    if isinstance(cost_class, Simplex):
        largest = float(z.max())
        shares = np.exp((z - largest) / temperature)
        total = float(shares.sum())
        return largest + temperature * float(np.log(total)), scale * (shares / total)
    if isinstance(cost_class, InfinityBall):
        weights = np.clip(z / temperature, -1.0, 1.0)
    elif isinstance(cost_class, EuclideanBall):
        weights = z / max(float(np.linalg.norm(z)), temperature)
    else:
        return cost_class.gap(difference), cost_class.worst_case(difference)
    value = float(weights @ z) - temperature / 2 * float(weights @ weights)
    return value, np.asarray(scale * weights)


def smoothing_error(cost_class: CostClass, num_costs: int) -> float:
    """How far the smoothed gap can be from the gap, per unit of temperature."""
    if isinstance(cost_class, Simplex):
        return max(float(np.log(num_costs)), 0.1)
    return num_costs / 2 if isinstance(cost_class, InfinityBall) else 0.5
