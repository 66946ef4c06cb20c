"""The exact program: programs (3) and (5) of the paper, solved over all occupancy measures.

    minimise   gap_W(Psi' mu - target)
    over       mu >= 0,  (B - discount P)' mu = initial,  <mu, d_j> <= b_j

where W is the cost class: a linear program for the infinity ball and the simplex (the latter is
the LPAL program of Syed, Bowling and Schapire 2008), a second-order cone program for the Euclidean
ball. The policy is read off the optimal measure (Proposition 1). For the simplex the optimum is
usually a whole face, so a second stage holds the gap to 1e-9 of the trivial bound and minimises the
sum of the scaled costs: among the policies of least gap, one that surpasses the expert most.

Guarantee. The value returned is the gap of the returned policy by exact evaluation; the lower bound
follows from the returned witness by weak duality. OPTIMAL means that they differ by at most
`tolerance` times the trivial bound 2N/(1 - discount), and that budgets are kept as exactly.

Cost. One row per state, cost and budget; one column per pair. Seconds up to some 10^4 states, after
which memory and time of any general engine grow steeply.

Reference: Kamoutsi, Banjac, Lygeros, "Stochastic convex optimization for provably efficient
apprenticeship learning", 2021.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray, require_between
from journeyman.costs import EuclideanBall, Simplex
from journeyman.errors import InvalidSolver
from journeyman.policy import Policy, extract
from journeyman.problem import Program, Witness, lower_bound, sharpest_witness
from journeyman.solvers.answer import Answer, Solution
from journeyman.solvers.cone import ConeResult, conic_form, euclidean_program, run_cone
from journeyman.solvers.highs import SMALL_PROGRAM, Engine, HighsModel, Result, engines_for
from journeyman.solvers.occupancy_program import (
    LinearModel,
    exact_program,
    second_stage_program,
    weights_from_duals,
)
from journeyman.solvers.relaxation import relax
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

SECOND_STAGE_SLACK = 1e-9
UNFINISHED = (Status.TIME_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True)
class LinearProgram:
    """Solve the exact program with a general engine.

    Args:
        engine: of HiGHS; by default the simplex method for small programs and HiPO beyond, with a
            second engine behind it. The Euclidean ball always uses Clarabel.
        threads: for the engine.
        time_limit: seconds for building and solving.
        tolerance: asked-for difference of value and lower bound, relative to the trivial bound.
    """

    engine: Engine | None = None
    threads: int = 1
    time_limit: float | None = None
    tolerance: float = 1e-7

    def __post_init__(self) -> None:
        if not isinstance(self.engine, Engine | None):
            raise InvalidSolver(f"engine = {self.engine!r}", "Give a jm.Engine, or None")
        if self.threads < 1:
            raise InvalidSolver(f"threads = {self.threads}", "Use at least one thread")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InvalidSolver(f"time_limit = {self.time_limit}", "Give seconds above 0, or None")
        require_between("tolerance", self.tolerance, 0, 1, InvalidSolver, "Use for example 1e-7")

    def run(self, problem: Program, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        if isinstance(problem.cost_class, EuclideanBall):
            return self._conic(problem, watch)
        started = time.perf_counter()
        model = exact_program(problem)
        build_seconds = time.perf_counter() - started
        answer = None
        for engine in engines_for(problem.world.num_pairs, self.engine):
            answer = self._linear(problem, model, engine, watch)
            if answer.status not in (Status.INACCURATE, Status.FAILED) or watch.must_stop:
                break
        assert answer is not None
        elapsed = time.perf_counter() - started
        return replace(answer, build_seconds=build_seconds, solve_seconds=elapsed - build_seconds)

    def _linear(self, problem: Program, model: LinearModel, engine: Engine, watch: Watch) -> Answer:
        found = HighsModel(model, engine, self.threads).run(watch)
        if found.status is Status.INFEASIBLE:
            return self._infeasible(problem, found.engine, watch, found.log)
        duals = found.row_duals
        matching = slice(problem.world.num_states, duals.size - len(problem.constraints))
        scale = problem.cost_class.scaling(problem.basis.num_costs)
        weights = weights_from_duals(problem.cost_class, duals[matching], scale)
        prices = -duals[matching.stop :]
        if isinstance(problem.cost_class, Simplex) and found.status is Status.OPTIMAL:
            found = self._second_stage(problem, model, found, watch)
        measure = found.columns[: problem.world.num_pairs]
        return self._answer(
            problem, found.status, found.engine, measure, weights, prices, found.log
        )

    def _second_stage(
        self, problem: Program, model: LinearModel, first: Result, watch: Watch
    ) -> Result:
        """Among the measures of least gap, one of least total scaled cost.

        The slice that is left is thin. The simplex method and Clarabel work there; the
        interior-point engines of HiGHS make no headway.
        """
        slack = SECOND_STAGE_SLACK * problem.trivial_bound
        sliced = second_stage_program(problem, model, float(first.columns[-1]) + slack)
        second: Result | ConeResult
        if problem.world.num_pairs <= SMALL_PROGRAM:
            second = HighsModel(sliced, Engine.SIMPLEX, self.threads).run(watch)
        else:
            second = run_cone(conic_form(sliced), watch, self.threads)
        if second.status is Status.OPTIMAL:
            engine = f"{first.engine}, then {second.engine}"
            return replace(first, columns=second.columns, engine=engine)
        unfinished = second.status if second.status in UNFINISHED else Status.INACCURATE
        return replace(first, status=unfinished)

    def _conic(self, problem: Program, watch: Watch) -> Answer:
        started = time.perf_counter()
        model = euclidean_program(problem)
        built = time.perf_counter()
        found = run_cone(model, watch, self.threads)
        if found.status is Status.INFEASIBLE:
            answer = self._infeasible(problem, found.engine, watch)
        else:
            scale = problem.cost_class.scaling(problem.basis.num_costs)
            weights = -scale * found.row_duals[-scale.size :]
            prices = found.row_duals[model.num_equations :][: len(problem.constraints)]
            answer = self._answer(
                problem, found.status, found.engine, found.columns[:-1], weights, prices
            )
        return replace(
            answer, build_seconds=built - started, solve_seconds=time.perf_counter() - built
        )

    def _infeasible(self, problem: Program, engine: str, watch: Watch, log: str = "") -> Answer:
        """Confirm the engine's verdict by the least increase of the budgets that is possible."""
        chosen = engines_for(problem.world.num_pairs, self.engine)[0]
        relaxation = relax(problem, chosen, self.threads, watch)
        if relaxation is not None and relaxation.is_negligible(problem):
            witness = _witness(problem, np.zeros(problem.basis.num_costs), np.zeros(0))
            solution = Solution.of(problem, relaxation.policy, witness)
            return Answer(problem, Status.INACCURATE, engine, solution, relaxation, log=log)
        return Answer(problem, Status.INFEASIBLE, engine, None, relaxation, log=log)

    def _answer(
        self,
        problem: Program,
        status: Status,
        engine: str,
        measure: FloatArray,
        weights: FloatArray,
        prices: FloatArray,
        log: str = "",
    ) -> Answer:
        """Re-derive value and bound from the data, and let them decide about the status."""
        witness = _witness(problem, weights, prices)
        if status in UNFINISHED:
            solution = _best_at_hand(problem, measure, witness)
        else:
            solution = Solution.of(problem, extract(problem.world, measure), witness)
            status = Status.OPTIMAL if self._is_optimal(problem, solution) else Status.INACCURATE
        surplus = None
        if isinstance(problem.cost_class, Simplex):
            scale = problem.cost_class.scaling(problem.basis.num_costs)
            surplus = -float(scale @ problem.difference(solution.occupancy.measure))
        return Answer(problem, status, engine, solution, total_surplus=surplus, log=log)

    def _is_optimal(self, problem: Program, solution: Solution) -> bool:
        unit = problem.world.effective_horizon
        allowance = self.tolerance * problem.trivial_bound
        sizes = np.array([np.abs(budget.cost).max() for budget in problem.constraints])
        kept = bool((solution.overspending <= self.tolerance * 2 * sizes * unit).all())
        return kept and solution.value - solution.lower_bound <= allowance


def _witness(problem: Program, weights: FloatArray, prices: FloatArray) -> Witness:
    """The engine's dual point with values solved anew; the origin where that proves more."""
    origin = Witness(
        np.zeros(problem.basis.num_costs),
        np.zeros(problem.world.num_states),
        np.zeros(len(problem.constraints)),
    )
    if not (np.isfinite(weights).all() and np.isfinite(prices).all()):
        weights, prices = origin.cost_weights, origin.budget_prices
    witness = sharpest_witness(problem, weights, prices)
    if problem.cost_class.contains_zero and lower_bound(problem, witness) <= 0:
        return origin
    return witness


def _best_at_hand(problem: Program, measure: FloatArray, witness: Witness) -> Solution:
    """The policy of an unfinished measure, or the uniform one where that is better."""
    candidates = [Policy.uniform(problem.world)]
    if measure.size == problem.world.num_pairs and np.isfinite(measure).all():
        candidates.append(extract(problem.world, measure))
    solutions = [Solution.of(problem, policy, witness) for policy in candidates]
    return min(solutions, key=lambda s: (max(s.overspending.max(initial=0.0), 0.0), s.value))
