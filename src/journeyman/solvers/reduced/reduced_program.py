"""The reduced program: the best combination of given features, exactly.

    minimise over theta in R^d   L(theta) = gap_W(G theta - target) + lambda_1 V1(theta)
                                            + lambda_2 V2(theta) + lambda_3 sum_j [C_j theta - b_j]+

with the matrices of `Reduced`, the optimum that SGD-AL approaches; or, with `Hard()`, program (6)
of the paper itself,

    minimise gap_W(G theta - target)   subject to   Phi theta >= floor,  D theta = nu,  C theta <= b

which has no solution unless some combination of the features is an occupancy measure: smooth
features cannot match a flow exactly, so expect INFEASIBLE unless the columns are occupancies or
the base measure is one. The remedy is a penalty.

Guarantee. `answer.reduced` has the loss of the coefficients and a lower bound by weak duality, both
recomputed from the data. CONVERGED means that they differ by at most `tolerance` times
max(|loss|, 2N), where 2N is the largest cost difference of a step. The policy's own value and lower
bound are about all policies, not about the features, and usually lie apart. Below the exact
penalties and without the zero cost in the class (`Simplex`, `Forward`) the loss may have no
minimum; the answer is then UNBOUNDED, reported only with a direction along which the loss falls for
ever, and its bound holds within its radius. In double precision the loss itself is known to about
1e-16 times penalty, size of the features and coefficients: with budgets and discounts beyond 0.999
that can exceed the tolerance, and the answer is INACCURATE.

Cost. The dual has one equation per feature and one boxed variable per pair, state, budget and cost:
`interior_point` solves it in time linear in their number. Where rows are many and many of them
alike, as those of local features in large worlds, sums of rows take their place, in some ten rounds
that split what the sums hide (`row_groups`); a round is a small program and a few passes over the
rows. HiGHS (on request, for `Hard`, for some thousand features that hardly overlap, and when
accuracy is not reached) and, for the Euclidean ball, Clarabel solve the same box program. A dual
point that misses its equations is repaired before it is judged.

Reference: Kamoutsi, Banjac, Lygeros, "Stochastic convex optimization for provably efficient
apprenticeship learning", 2021.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, require_between
from journeyman.errors import InvalidSolver
from journeyman.features.base import Features
from journeyman.problem import Apprenticeship, Forward
from journeyman.problem.reduced import ExactPenalty, Penalties, Penalty, Reduced, SinglePenalty
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.answer import Answer, Details
from journeyman.solvers.exact.engines import Engine, engines_for
from journeyman.solvers.reduced.box_dual import (
    BoxDual,
    BoxPoint,
    box_dual,
    run_clarabel,
    run_highs,
    steepest_fall,
)
from journeyman.solvers.reduced.row_groups import RowGroups, groups_that_pay
from journeyman.solvers.reduced.solution import ReducedSolution, origin, policy_solution
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_kind,
    require_time_limit,
)

MANY_FEATURES, MOST_FEATURES = 3000, 6000
"""Beyond the first the dense d x d factor of the interior point is left to a sparse engine if the
Gram matrix is sparse, beyond the second in any case: it takes a second, and a gigabyte."""
FULL, FILLING_ROWS = 0.1, 2000
"""Share of entries from which a Gram matrix is not sparse, and rows that are looked at for it."""
ROUGH, INNER, CLOSEST, MOST_ROUNDS = 1e-2, 0.1, 0.5, 40
"""Tolerance of the first round on groups of rows; the share of what is unknown that later ones may
leave, but at least this share of what is asked for; and how many rounds there are at most."""
ROUNDING = 1e-12
"""Relative to the sizes of its terms, what is allowed for the rounding of a sum."""
UNFINISHED = (Status.TIME_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True)
class Hard:
    """No penalties: the constraints of program (6) hold, or the answer is INFEASIBLE."""


@dataclass(frozen=True)
class ReducedProgram:
    """Minimise the surrogate loss over the combinations of `features`.

    Args:
        features: the columns to combine.
        penalty: `ExactPenalty()`, at which the loss bounds the policy's gap, `SinglePenalty(x)` as
            in the paper, or `Hard()`.
        engine: of HiGHS; by default the interior point written for this program. With an engine
            the Euclidean ball uses Clarabel instead.
        threads: for HiGHS, Clarabel and, without a change of bits, Gram matrices of sparse rows.
        time_limit: seconds for building and solving.
        tolerance: asked-for difference of loss and lower bound, relative to max(|loss|, 2N).

    >>> from journeyman.solvers import solve
    >>> from journeyman.testing import random_problem
    >>> problem = random_problem(0)
    >>> features = Features([[1.0, 0.0], [0.0, 1.0]] * (problem.world.num_pairs // 2))
    >>> answer = solve(problem, ReducedProgram(features))
    >>> answer.status.name, answer.reduced.coefficients.size, answer.reduced.relative_gap <= 1e-8
    ('CONVERGED', 2, True)
    """

    takes_averages: ClassVar[bool] = True
    features: Features
    penalty: Penalty | Hard = field(default_factory=ExactPenalty)
    engine: Engine | None = None
    threads: int = 1
    time_limit: float | None = None
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        require_kind("features", self.features, Features, "Give jm.features.Features(matrix)")
        remedy = "Give ExactPenalty(), SinglePenalty(value) or Hard()"
        require_kind("penalty", self.penalty, Penalty | Hard, remedy)
        check_limits(self.engine, self.threads, self.time_limit, self.tolerance)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        reduced = Reduced(problem, self.features)
        if isinstance(self.penalty, Hard):
            return self._hard(reduced, watch, started)
        surrogate = Surrogate(reduced, self.penalty)
        if self.engine is None and (groups := groups_that_pay(surrogate)) is not None:
            built = time.perf_counter()
            answer = self._by_groups(surrogate, groups, watch, (started, built))
            if answer is not None:
                return answer
        box = box_dual(reduced, surrogate.penalties)
        built = time.perf_counter()
        found = solve_box(box, watch, self.engine, self.threads, self.tolerance)
        return self._answer(surrogate, box, found, watch, (started, built))

    def _by_groups(
        self, surrogate: Surrogate, groups: RowGroups, watch: Watch, times: tuple[float, float]
    ) -> Answer | None:
        """Rounds on groups of rows (`row_groups`), or nothing where they do not end."""
        reduced, penalties = surrogate.reduced, surrogate.penalties
        nothing = np.zeros(reduced.num_features)
        best = ReducedSolution.of(surrogate, nothing, origin(surrogate))
        status, engine, tolerance = Status.INACCURATE, "none", ROUGH
        for _ in range(MOST_ROUNDS):
            box = groups.box(reduced, penalties)
            point = solve_box(box, watch, None, self.threads, tolerance)
            usable, engine = _usable(box, point), f"{point.engine}, rows in groups"
            witness, theta = groups.witness(box, usable.v, penalties), box.coefficients(usable.x)
            found = ReducedSolution.of(surrogate, theta, witness)
            best = _better(best, found)
            if best.relative_gap <= self.tolerance:
                status = Status.CONVERGED
            elif watch.must_stop:
                status = watch.stop_status
            if status is not Status.INACCURATE:
                break
            before, groups = groups, groups.split(surrogate, theta, best.optimisation_error)
            if groups.counts == before.counts and tolerance <= CLOSEST * self.tolerance:
                break
            closer = INNER * best.relative_gap
            if groups.counts == before.counts:
                closer = min(closer, INNER * tolerance)
            tolerance = max(min(closer, ROUGH), CLOSEST * self.tolerance)
        if status is Status.INACCURATE:
            return None
        return Answer(
            reduced.problem, status, engine, policy_solution(best), Details(reduced=best),
            build_seconds=times[1] - times[0], solve_seconds=time.perf_counter() - times[1],
        )  # fmt: skip

    def _hard(self, reduced: Reduced, watch: Watch, started: float) -> Answer:
        """Program (6): the same box program without end in the directions of the constraints.

        Its multipliers are penalties at which the loss has the same minimum, so the answer is
        measured by that loss.
        """
        box = box_dual(reduced, Penalties(np.inf, np.inf, np.inf))
        built = time.perf_counter()
        found = BoxPoint(Status.FAILED, np.zeros(0), np.zeros(0), "none")
        for found in _general_engines(box, watch, self.engine, self.threads):
            answer = self._answer(_priced(reduced, box, found), box, found, watch, (started, built))
            if answer.status is Status.CONVERGED or found.status in UNFINISHED or watch.must_stop:
                return answer
        violation = least_violation(reduced, watch, self.engine, self.threads, self.tolerance)
        if violation.loss_lower_bound > self.tolerance:
            return Answer(
                reduced.problem, Status.INFEASIBLE, found.engine, None,
                build_seconds=built - started, solve_seconds=time.perf_counter() - built,
                log=found.log,
            )  # fmt: skip
        return self._answer(_priced(reduced, box, found), box, found, watch, (started, built))

    def _answer(
        self,
        surrogate: Surrogate,
        box: BoxDual,
        found: BoxPoint,
        watch: Watch,
        times: tuple[float, float],
    ) -> Answer:
        """Re-derive all numbers from the data, and let them decide about the status."""
        solution = reduced_solution(surrogate, box, found)
        status = found.status
        if solution.relative_gap <= self.tolerance:
            status = Status.CONVERGED
        elif status not in UNFINISHED:
            has_penalty = not isinstance(self.penalty, Hard)
            falls = has_penalty and _falls_without_end(surrogate, box, self.threads, watch)
            status = Status.UNBOUNDED if falls else Status.INACCURATE
        solve_seconds = time.perf_counter() - times[1]
        return Answer(
            surrogate.reduced.problem, status, found.engine, policy_solution(solution),
            Details(reduced=solution), build_seconds=times[1] - times[0],
            solve_seconds=solve_seconds, log=found.log,
        )  # fmt: skip


def check_limits(
    engine: Engine | None, threads: int, time_limit: float | None, tolerance: float
) -> None:
    """Refuse hyperparameters that no engine can use."""
    require_kind("engine", engine, Engine | None, "Give a jm.solvers.Engine, or None")
    require_count("threads", threads)
    require_time_limit(time_limit)
    require_between("tolerance", tolerance, 0, 1, InvalidSolver, "Use for example 1e-8")


def solve_box(
    box: BoxDual, watch: Watch, engine: Engine | None, threads: int, tolerance: float
) -> BoxPoint:
    """The first point whose loss and bound meet (OPTIMAL), or the one where they are closest."""
    from journeyman.solvers.reduced.dual_repair import repaired

    best, least, accurate = None, np.inf, False
    box = replace(box, threads=threads)
    for found in _engines(box, watch, engine, threads, tolerance):
        usable = _usable(box, found)
        loss, radius = box.loss(usable.x), box.radius(usable.x)
        gap, allowance = loss - box.lower_bound(usable.v, radius), tolerance * box.unit(loss)
        if gap > allowance and box.is_boxed and not watch.must_stop:
            usable = replace(usable, v=repaired(box, usable.v, radius))
            gap = loss - box.lower_bound(usable.v, radius)
        gap = abs(gap)  # a loss far below its own bound is rounding
        if best is None or gap < least:
            best, least, accurate = usable, gap, gap <= allowance
        if accurate or watch.must_stop:
            break
    assert best is not None
    if accurate:
        return replace(best, status=Status.OPTIMAL)
    return best if best.status in UNFINISHED else replace(best, status=Status.INACCURATE)


def reduced_solution(surrogate: Surrogate, box: BoxDual, found: BoxPoint) -> ReducedSolution:
    """Coefficients and witness of a point, or no coefficients at all where these are better."""
    usable = _usable(box, found)
    witness = box.witness(usable.v, surrogate.penalties)
    solution = ReducedSolution.of(surrogate, box.coefficients(usable.x), witness)
    if found.status in UNFINISHED:
        nothing = ReducedSolution.of(surrogate, np.zeros(box.reduced.num_features), witness)
        return min(solution, nothing, key=lambda candidate: candidate.loss)
    return solution


def _better(one: ReducedSolution, other: ReducedSolution) -> ReducedSolution:
    """The coefficients of the smaller loss with the witness of the larger bound."""
    low = one if one.loss <= other.loss else other
    high = one if one.loss_lower_bound >= other.loss_lower_bound else other
    if low is high:
        return low
    joined = ReducedSolution.of(low.surrogate, low.coefficients, high.witness)
    return joined if joined.loss_lower_bound >= low.loss_lower_bound else low


def slope_at_infinity(surrogate: Surrogate, direction: FloatArray) -> float:
    """A bound, rounding included, on the slope of the loss far out in a direction h:

        gap_W(G h) + lambda_1 sum [Phi h]- + lambda_2 |D h|_1 + lambda_3 sum [C h]+

    The loss rises at most by that slope anywhere along h, so it has no minimum when it is negative.
    """
    reduced, penalties = surrogate.reduced, surrogate.penalties
    flow, above = reduced.flow_rows @ direction, reduced.pair_rows @ direction
    over, gap = reduced.budget_rows @ direction, reduced.matching @ direction
    weights = reduced.problem.cost_class.scaling(gap.size)
    slope = reduced.problem.cost_class.gap(gap)
    slope += penalties.pairs * np.maximum(-above, 0.0).sum()
    slope += penalties.flow * np.abs(flow).sum() + penalties.budgets * np.maximum(over, 0.0).sum()
    size = np.abs(direction)
    sizes = penalties.pairs * (abs(reduced.pair_rows) @ size).sum()
    sizes += penalties.flow * (abs(reduced.flow_rows) @ size).sum()
    sizes += penalties.budgets * (abs(reduced.budget_rows) @ size).sum()
    sizes += weights @ (abs(reduced.matching) @ size)
    return float(slope + ROUNDING * sizes)


def _falls_without_end(surrogate: Surrogate, box: BoxDual, threads: int, watch: Watch) -> bool:
    """Whether a direction is found along which the loss falls for ever."""
    if surrogate.reduced.problem.cost_class.contains_zero or watch.must_stop:
        return False
    direction = box.coefficients(steepest_fall(box, threads, watch))
    return direction.size > 0 and slope_at_infinity(surrogate, direction) < 0


def least_violation(
    reduced: Reduced, watch: Watch, engine: Engine | None, threads: int, tolerance: float
) -> ReducedSolution:
    """min V1 + V2 + overspending: the surrogate of a world where nothing costs anything."""
    problem = reduced.problem
    free = Forward(problem.world, np.zeros(problem.world.num_pairs), problem.constraints)
    surrogate = Surrogate(Reduced(free, reduced.features), SinglePenalty(1.0))
    box = box_dual(surrogate.reduced, surrogate.penalties)
    return reduced_solution(surrogate, box, solve_box(box, watch, engine, threads, tolerance))


@dataclass(frozen=True)
class _Multipliers(Penalty):
    """Penalties read off a dual point."""

    penalties: Penalties

    def of(self, problem: Apprenticeship) -> Penalties:
        return self.penalties


def _priced(reduced: Reduced, box: BoxDual, found: BoxPoint) -> Surrogate:
    """The surrogate at twice the largest multipliers, and at least at 1."""
    sizes = box.largest(_usable(box, found).v)
    doubled = [max(1.0, 2 * size) for size in (sizes.pairs, sizes.flow, sizes.budgets)]
    return Surrogate(reduced, _Multipliers(Penalties(*doubled)))


def _engines(
    box: BoxDual, watch: Watch, engine: Engine | None, threads: int, tolerance: float
) -> Iterator[BoxPoint]:
    """Points of one engine after the other, as long as they are asked for."""
    if engine is None and box.is_boxed and _has_dense_factor(box):
        from journeyman.solvers.reduced.interior_point import run_interior_point

        yield run_interior_point(box, watch, tolerance)
    yield from _general_engines(box, watch, engine, threads)


def _has_dense_factor(box: BoxDual) -> bool:
    """Whether a dense factor is quicker than a sparse one, which would fill up."""
    size = box.slope.size
    if size <= MANY_FEATURES:
        return True
    return size <= MOST_FEATURES and filling(box.blocks[1]) >= FULL


def filling(rows: Matrix) -> float:
    """Share of the entries of rows'rows that are not zero, at least: from some of the rows."""
    if not sparse.issparse(rows):
        return 1.0
    some = sparse.csr_array(rows)[:: 1 + rows.shape[0] // FILLING_ROWS]
    pattern = sparse.csr_array(
        (np.ones(some.nnz, np.float32), some.indices, some.indptr), shape=some.shape
    )
    return float((pattern.T @ pattern).nnz / rows.shape[1] ** 2)


def _general_engines(
    box: BoxDual, watch: Watch, engine: Engine | None, threads: int
) -> Iterator[BoxPoint]:
    if box.ball_scale.size or engine is Engine.CLARABEL:
        for rescaled in (False, True):
            yield run_clarabel(box, threads, watch, rescaled=rescaled)
        return
    for general in engines_for(box.num_rows, engine):
        yield run_highs(box, general, threads, watch)


def _usable(box: BoxDual, found: BoxPoint) -> BoxPoint:
    """A point of the right size with finite entries, zeros where an engine left none."""

    def usable(values: FloatArray, size: int) -> FloatArray:
        kept = values.size == size and bool(np.isfinite(values).all())
        return values if kept else np.zeros(size)

    return replace(found, x=usable(found.x, box.slope.size), v=usable(found.v, box.num_rows))
