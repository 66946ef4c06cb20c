"""The steps of SGD-AL in an explicit world: what they are made of, and the loop that suits them.

Everything here follows from the surrogate and the `Motion`; a `SubgradientState` is what the steps
change.
"""

import numpy as np

from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.incremental_kernel import Images, advance_incrementally
from journeyman.solvers.row_source import RowSource
from journeyman.solvers.subgradient_codes import (
    CONSTANT,
    INFINITY_BALL,
    INVERSE_ROOT,
    class_code,
)
from journeyman.solvers.subgradient_kernel import Exact, Motion, advance
from journeyman.solvers.subgradient_state import SubgradientState


class SubgradientSteps:
    """Takes steps on the states of one surrogate."""

    def __init__(self, surrogate: Surrogate, source: RowSource, motion: Motion) -> None:
        self.motion = motion
        reduced = surrogate.reduced
        self.exact = Exact(
            class_code(reduced.problem.cost_class),
            np.array(reduced.matching, order="C"),
            np.array(reduced.matching_target),
            np.array(reduced.problem.cost_class.scaling(reduced.matching_target.size)),
            np.array(reduced.budget_rows, order="C"),
            np.array(reduced.budget_limits),
            float(surrogate.penalties.budgets),
        )
        self.images = _images(surrogate) if self._is_incremental(source) else None

    def _is_incremental(self, source: RowSource) -> bool:
        """Whether the form without the O(num_costs d) term applies."""
        plain = self.motion.batch == 1 and not self.motion.nonnegative
        scalar = self.motion.rule in (CONSTANT, INVERSE_ROOT)
        unbudgeted = self.exact.limits.size == 0
        matched = self.exact.kind == INFINITY_BALL
        return plain and scalar and unbudgeted and source.is_dense and matched

    def take(self, state: SubgradientState, count: int) -> None:
        """`count` steps, on rows drawn by the state's own stream."""
        drawn = state.source.draw(state.rng, count * self.motion.batch)
        tables = state.source.pairs, state.source.flow
        if self.images is None:
            advance(state.step, *drawn, *tables, self.exact, self.motion, state.iterate)
        else:
            advance_incrementally(
                state.step, *drawn, *tables, self.exact, self.motion, self.images, state.iterate,
                state.matched,
            )  # fmt: skip
        state.step += count


def _images(surrogate: Surrogate) -> Images:
    """What the rows of Phi and D, and G itself, look like under G."""
    reduced = surrogate.reduced
    G = reduced.matching
    return Images(
        np.array(reduced.pair_rows @ G.T, order="C"),
        np.array(reduced.flow_rows @ G.T, order="C"),
        np.array(G @ G.T, order="C"),
    )
