"""A' diag(weights) A of a box program, and the repair of its dual points by weighted least squares.

The matrices and their factors are those of `problem/row_gram`, block by block.
"""

from dataclasses import replace

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.problem.row_gram import Solve, add_gram, factored_gram, stored_rows
from journeyman.solvers.box_dual import BoxDual

REPAIRS = 4
"""Affine steps towards the equations of a dual point that misses them."""
LEAST_ROOM = 1e-7
"""Share of its box that a row may move in such a step wherever it is."""


def factored(box: BoxDual, weights: FloatArray) -> Solve:
    """Solver of A' diag(weights) A x = right, damped where the matrix is singular."""
    return factored_gram(gram_of(box, weights))


def repaired(box: BoxDual, v: FloatArray, radius: float) -> FloatArray:
    """The dual point that proves most after some weighted least squares towards A'v = -slope.

    Rows move as far as they have room to the ends of their boxes, or of the ball, and what has
    left V is moved back.
    """
    best, held, sharing = v, stored(box), slice(box.num_boxed, None)
    width = np.concatenate([(box.upper - box.lower)[: box.num_boxed], 2 * box.ball_scale])
    for _ in range(REPAIRS):
        inside = box.admitted(v)
        room = np.minimum(inside - box.lower, box.upper - inside)
        room[sharing] = box.ball_scale * (1 - np.linalg.norm(inside[sharing] / box.ball_scale))
        weights = (np.maximum(room, 0.0) + LEAST_ROOM * width) ** 2
        change = factored(held, weights)(-box.slope - box.adjoint(inside))
        v = inside + weights * held.apply(change)
        if not np.isfinite(v).all():
            break
        if box.lower_bound(v, radius) > box.lower_bound(best, radius):
            best = v
    return best


def gram_of(box: BoxDual, weights: FloatArray) -> FloatArray:
    """A' diag(weights) A, of which only the lower triangle counts."""
    total, start = np.zeros((box.slope.size, box.slope.size)), 0
    for block in box.blocks:
        size, width = block.shape
        add_gram(block, weights[start : start + size], total[:width, :width])
        start += size
    return total


def stored(box: BoxDual) -> BoxDual:
    """The same program, each block stored the way its Gram matrix is quickest."""
    pairs, states, small = (stored_rows(block) for block in box.blocks)
    return replace(box, blocks=(pairs, states, np.asarray(small)))
