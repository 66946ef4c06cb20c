"""A classifier that tells the apprentice's pairs from the expert's: the adversary of GAIL.

    maximise   <p, log D> + <q, log(1 - D)>,      D = 1/(1 + exp(-l))

where p and q are occupancy measures of the apprentice and the expert and l the logits per pair:
free within [-LARGEST_LOGIT, LARGEST_LOGIT] (tabular, l = log(p/q) cut off), or Phi phi with a
penalty mass ridge |phi|^2/2 (log-linear). D is the probability of being the apprentice's.

*Guarantee.* The maximum is a convex function of p whose gradient is log D (Danskin), so improving
the policy for the cost log D lowers it. Cost: tabular one pass; log-linear a few steps of Newton's
method from the last solution, each with one Gram matrix of the features.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix

LARGEST_LOGIT = 10.0
"""Of a tabular discriminator: pairs that only one of the two ever visits stay finite."""
NEWTON_STEPS, HALVINGS = 30, 30
ACCURACY = 1e-12
"""Newton's method ends when a step promises less than this, per unit of mass."""


@dataclass(frozen=True, eq=False)
class Discrimination:
    """What the best discriminator says: the objective, its logits, and its parameters."""

    value: float
    logits: FloatArray
    parameters: FloatArray

    @property
    def cost(self) -> FloatArray:
        """log D per pair, which the apprentice minimises."""
        return -np.logaddexp(0.0, -self.logits)


class Discriminator:
    """Fits discriminators one after the other; `features` None is the tabular one."""

    def __init__(self, features: Matrix | None, ridge: float) -> None:
        self._features, self._ridge = features, ridge
        size = 0 if features is None else int(features.shape[1])
        self._last = np.zeros(size)

    def fit(self, apprentice: FloatArray, expert: FloatArray) -> Discrimination:
        """The best discriminator for two measures over pairs."""
        if self._features is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                apart = np.log(apprentice) - np.log(expert)
            logits = np.clip(np.nan_to_num(apart), -LARGEST_LOGIT, LARGEST_LOGIT)
            return Discrimination(_value(logits, apprentice, expert), logits, self._last)
        penalty = self._ridge * float(expert.sum())
        self._last = _newton(self._features, apprentice, expert, penalty, self._last)
        logits = np.asarray(self._features @ self._last)
        value = _value(logits, apprentice, expert) - penalty / 2 * float(self._last @ self._last)
        return Discrimination(value, logits, self._last)


def _value(logits: FloatArray, apprentice: FloatArray, expert: FloatArray) -> float:
    ours, theirs = np.logaddexp(0.0, -logits), np.logaddexp(0.0, logits)
    return -float(apprentice @ ours + expert @ theirs)


def _newton(
    features: Matrix, apprentice: FloatArray, expert: FloatArray, penalty: float, start: FloatArray
) -> FloatArray:
    """Maximise from `start`; halved steps never go down."""
    found, logits = start, np.asarray(features @ start)
    value = _value(logits, apprentice, expert) - penalty / 2 * float(found @ found)
    for _ in range(NEWTON_STEPS):
        share = 1.0 / (1.0 + np.exp(-np.clip(logits, -500, 500)))
        gradient = features.T @ (apprentice * (1 - share) - expert * share) - penalty * found
        weights = (apprentice + expert) * share * (1 - share)
        step = _solved(_gram(features, weights) + penalty * np.eye(found.size), gradient)
        promised = float(gradient @ step)
        if promised <= ACCURACY * float(expert.sum()):
            break
        length = 1.0
        for _ in range(HALVINGS):
            trial = found + length * step
            trial_logits = np.asarray(features @ trial)
            reached = _value(trial_logits, apprentice, expert)
            reached -= penalty / 2 * float(trial @ trial)
            if reached >= value + 0.1 * length * promised:
                found, logits, value = trial, trial_logits, reached
                break
            length /= 2
        else:
            break
    return found


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The solution, or the least one where a ridge is too small to be seen beside the features."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)


def _gram(features: Matrix, weights: FloatArray) -> FloatArray:
    """Phi' diag(weights) Phi, dense."""
    if sparse.issparse(features):
        return np.asarray((features.T @ (sparse.diags_array(weights) @ features)).toarray())
    return np.asarray(features.T @ (weights[:, np.newaxis] * features))
