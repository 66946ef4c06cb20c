"""The smoothed program: Newton's method on the weights, with policies that answer softly.

    maximise over y in Y   g_t(y) = min over occupancies mu of <mu, c_y> - t H(mu) - <y, target>

where H(mu) = -sum mu(x, a) log pi(a | x) is the entropy of mu's policy pi. For t = 0 this is the
dual of the exact program, concave but with a kink for every policy; a temperature t > 0 makes it
smooth, and its dimension is the number of costs. `smooth_search` follows the maximum as t falls.

Where column generation learns of one policy a call, this learns how all states answer to weights
nearby: with dense costs in worlds that mix fast a dozen calls replace hundreds.

Guarantee. As for `ColumnGeneration`: after every call a policy and its gap, and a lower bound by
weak duality; both are recomputed from the data for the answer.

Cost. Per call one solve for all costs, a few rough ones for soft plans, and some products of
(pairs x costs)' (pairs x costs). Memory: a table (states x costs).

Reference: Neu, Jonsson and Gomez, "A unified view of entropy-regularized Markov decision
processes", 2017; Nesterov, "Smooth minimization of non-smooth functions", 2005.
"""

from dataclasses import dataclass, fields, replace

from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Solution
from journeyman.solvers.exact.column_generation import ColumnGeneration
from journeyman.solvers.exact.searched_program import SearchedProgram
from journeyman.solvers.exact.second_stage import second_stage_by_tilts
from journeyman.solvers.exact.smooth_search import SmoothSearch
from journeyman.solvers.running import Status, Watch


@dataclass(frozen=True)
class SmoothedProgram(SearchedProgram):
    """Solve the exact program by smoothing; made for worlds that mix fast, with up to some
    hundreds of costs.

    Args:
        tolerance: asked-for difference of value and lower bound, in units of the objective (for an
            `Apprenticeship` those of the gap); by default 1e-6 of 2N/(1 - discount).
        time_limit: seconds.
        max_calls: calls before the solve stops.
        memory_limit: bytes that the table of values may take before the solve stops.
    """

    @staticmethod
    def _searching() -> type[SmoothSearch]:
        return SmoothSearch

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`. Where Newton's method finds no way
        on, in worlds that mix slowly, columns are generated instead."""
        return or_by_columns(self, problem, super().run(problem, watch), watch)

    _second_stage = staticmethod(second_stage_by_tilts)


def or_by_columns(
    solver: SearchedProgram, problem: Apprenticeship, answer: Answer, watch: Watch
) -> Answer:
    """The answer of a solver, or that of `ColumnGeneration` with the same settings if it is not
    exact."""
    if answer.status is not Status.INACCURATE or watch.must_stop:
        return answer
    settings = {field.name: getattr(solver, field.name) for field in fields(solver)}
    other = ColumnGeneration(**settings).run(problem, watch)
    if other.status is not Status.OPTIMAL:
        other = replace(other, solution=better(answer.solution, other.solution))
    return replace(other, engine=f"{answer.engine}, then {other.engine}")


def better(one: object, other: object) -> Solution | None:
    """The better policy of both, with the better proof; nothing where nothing is possible."""
    if not (isinstance(one, Solution) and isinstance(other, Solution)):
        return None
    best = min(one, other, key=lambda s: (max(s.overspending.max(initial=0.0), 0.0), s.value))
    proof = max(one, other, key=lambda s: s.lower_bound)
    return replace(best, witness=proof.witness, lower_bound=proof.lower_bound)
