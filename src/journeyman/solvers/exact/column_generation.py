"""Column generation: the exact program over as few policies as it takes, with bounds on both sides.

    minimise   gap_W(sum_{b,k} theta_bk m_bk - target)
    over       theta >= 0,  sum_k theta_bk = 1 for every b,  budgets

where m_bk are the expectations of policy k started in block b of the initial law. This is the exact
program once enough policies are there: an optimal basis mixes few. Policies are generated one by
one, each of them (nearly) optimal for the cost that the master problem finds hardest at present.

Guarantee. After every call the mixture at hand is an occupancy measure, hence a stationary policy
(Proposition 1), and its gap bounds the optimum from above; the values of the last policies bound it
from below by weak duality, inexact or not. Both are recomputed from the data for the answer, so the
solve can be stopped at any moment. OPTIMAL means that they differ by at most `tolerance` and that
budgets are kept as exactly. Budgets are broken at a price in the master; INFEASIBLE is said only
with prices that prove it.

For `Simplex` the optimum is usually a whole face, so a second stage (`second_stage`) takes from
among the policies whose gap is within `tolerance` of the least the one of least total cost.
OPTIMAL then also means that no policy of least gap has a total surplus that is larger by more than
`tolerance` per cost; `Answer.log` has the numbers. A second stage that is stopped leaves the best
policy so far, with a gap that is within `tolerance`.

Cost. Per call a plan from the values at hand, one solve for all costs and one master problem
with a few hundred rows; 5 to 40 calls. Beyond half a million states there is one start row, one
solve from the starts in place of one for every cost, and more calls. Time and memory grow little
faster than the world.

Reference: Dantzig and Wolfe, "Decomposition principle for linear programs", 1960.
"""

from dataclasses import dataclass

from journeyman.solvers.exact.column_search import ColumnSearch
from journeyman.solvers.exact.searched_program import SearchedProgram
from journeyman.solvers.exact.second_stage import second_stage_by_columns


@dataclass(frozen=True)
class ColumnGeneration(SearchedProgram):
    """Solve the exact program by generated policies; made for large and narrow worlds.

    Args:
        tolerance: asked-for difference of value and lower bound, in units of the objective (for an
            `Apprenticeship` those of the gap); by default 1e-6 of 2N/(1 - discount).
        time_limit: seconds.
        max_calls: generated policies before the solve stops.
        memory_limit: bytes that columns, tables and factors may take before the solve stops.
    """

    @staticmethod
    def _searching() -> type[ColumnSearch]:
        return ColumnSearch

    _second_stage = staticmethod(second_stage_by_columns)
