"""What an engine proposes: a measure and a dual point, to be judged by the data.

A proposal for a linear cost class may come from any engine (with a second stage for `Simplex`),
one for the Euclidean ball from Clarabel.
"""

from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs import Simplex
from journeyman.problem import Program, Witness, lower_bound, telling_witness
from journeyman.solvers.cone import run_dual
from journeyman.solvers.engine import Effort, Engine, Result, run_engine
from journeyman.solvers.occupancy_program import LinearModel, dual_point, matching_rows
from journeyman.solvers.second_stage import surpass
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

NEXT_TO_NOTHING = 1e-6
"""A proposed bound below this share of 2N/(1 - discount) may be worse than none."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """The last iterate of an engine. Only `status` INFEASIBLE and limits are its own word."""

    status: Status
    measure: FloatArray
    weights: FloatArray
    values: FloatArray
    prices: FloatArray
    engine: str
    log: str
    surplus_bound: float | None = None
    """For `Simplex`: no policy of the same gap has a larger total surplus."""

    def witness(self, problem: Program) -> Witness:
        """The dual point as it is, or the origin where that proves more.

        For a class that contains the zero cost the origin proves that no gap is negative.
        """
        if not np.isfinite(self.values).all():
            return telling_witness(problem, self.weights, self.prices)
        witness = Witness(self.weights, self.values, self.prices)
        if problem.cost_class.contains_zero and self._proves_nothing(problem, witness):
            nothing = (np.zeros_like(part) for part in (self.weights, self.values, self.prices))
            return Witness(*nothing)
        return witness

    def _proves_nothing(self, problem: Program, witness: Witness) -> bool:
        gains = problem.world.initial @ self.values - self.weights @ problem.target
        gains -= self.prices @ problem.limits
        if gains > NEXT_TO_NOTHING * problem.gap_scale:
            return False  # the bound is not much smaller
        return lower_bound(problem, witness) <= 0


def propose_linear(
    problem: Program, model: LinearModel, engine: Engine, effort: Effort, watch: Watch
) -> Proposal:
    """The optimum of a linear program; for `Simplex` the one that surpasses most."""
    first = _proposal(problem, run_engine(model, engine, effort, watch))
    if not isinstance(problem.cost_class, Simplex) or first.status is not Status.OPTIMAL:
        return first
    second = surpass(problem, model, first.measure, engine, effort, watch)
    label = f"{first.engine}, then {second.engine}" if second.engine else first.engine
    best = replace(first, status=second.status, engine=label, log=first.log + second.log)
    if second.status is not Status.OPTIMAL:
        return best
    return replace(best, measure=second.measure, surplus_bound=second.surplus_bound)


def propose_euclidean(
    problem: Program, model: LinearModel, effort: Effort, watch: Watch
) -> Proposal:
    """The optimum for the Euclidean ball by Clarabel, over `matched_program`."""
    return _proposal(problem, run_dual(model, effort, watch, matching_rows(problem)))


def _proposal(problem: Program, found: Result) -> Proposal:
    measure, dual = found.columns[: problem.world.num_pairs], dual_point(problem, found.row_duals)
    return Proposal(found.status, measure, *dual, found.engine, found.log)
