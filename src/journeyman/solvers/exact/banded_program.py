"""The banded program: the exact program in a narrow world, by an interior point of its own.

    maximise    <initial, V> - <target, y>      over y in Y,  B V - discount P V <= C y

the dual of the exact program, where Y are the weights and prices (`dual_set`). In a world whose
states can be numbered so that every step stays nearby, Newton's equations for V are a band, costs
and budgets a border of it (`band`, `banded_search`). Any class of costs is solved in the same way,
and so is the second stage of `Simplex`, from a point of the first.

Guarantee. As for `ColumnGeneration`: after every call a policy and a lower bound, recomputed from
the data for the answer; OPTIMAL means that they differ by at most `tolerance`.

Cost. 10 to 30 steps, each with one factor of n b^2 operations for n states and a band of b
subdiagonals (in a square of cells two rows), and 2 n b k + n k^2 for k costs. Memory: n (b + k).

Reference: Mehrotra, "On the implementation of a primal-dual interior point method", 1992.
"""

from dataclasses import dataclass

from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer
from journeyman.solvers.exact.banded_search import BandedSearch
from journeyman.solvers.exact.searched_program import SearchedProgram
from journeyman.solvers.exact.second_stage import second_stage_by_tilts
from journeyman.solvers.exact.smoothed_program import or_by_columns
from journeyman.solvers.running import Watch


@dataclass(frozen=True)
class BandedProgram(SearchedProgram):
    """Solve the exact program by an interior point; made for narrow worlds of up to some 10^5
    states, with up to a thousand costs.

    Args:
        tolerance: asked-for difference of value and lower bound, in units of the objective (for an
            `Apprenticeship` those of the gap); by default 1e-6 of 2N/(1 - discount).
        time_limit: seconds.
        max_calls: steps before the solve stops.
        memory_limit: bytes that the factor may take before the solve stops.
    """

    @staticmethod
    def _searching() -> type[BandedSearch]:
        return BandedSearch

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`. Where digits do not suffice, columns
        are generated instead."""
        return or_by_columns(self, problem, super().run(problem, watch), watch)

    _second_stage = staticmethod(second_stage_by_tilts)
