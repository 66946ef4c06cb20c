"""The sampled program: the reduced program on n rows drawn by importance.

    minimise over theta   gap_W(G theta - target) + lambda_3 sum_j [C_j theta - b_j]+
                          + lambda_1/n sum_i [Phi_s theta - floor_s]-/q1(s),     s = s_1 .. s_n ~ q1
                          + lambda_2/n sum_i |D_y theta - nu_y|/q2(y),           y = y_1 .. y_n ~ q2

Pairs and states drawn more than once become one row with the sum of their weights. The same rows,
consumed one by one instead of kept, are those of SGD-AL.

Guarantee. For every fixed theta the sampled loss is unbiased; its minimum is optimistic, so the
answer also has the loss of the coefficients on `fresh_rows` further rows: `reduced.sampled_loss`
with its standard error `reduced.sampled_error`, which is how well the sample stands for all rows.
What is averaged there is the difference to theta = 0, whose penalties are known,

    [Phi_s theta - floor_s]- - [-floor_s]-,      |D_y theta - nu_y| - |nu_y|,

so a term is at most its row norm times |theta|_2, and rows that are zero need not be drawn. Loss
and lower bound of `answer.reduced` are those of all rows, where these can be listed.

How many rows are enough? By default n grows, n_1 = 2,000 or 4 rows a feature, n_{k+1} = 4 n_k, each
time with rows drawn anew. On those of stage k + 1, which theta_k has not seen,

    excess = L_{k+1}(theta_k) - min L_{k+1},     E excess >= L(theta_k) - min L,

where L_k is the sampled loss: the first term is unbiased, the minimum optimistic. It is never
negative, and noise that both terms share cancels. CONVERGED means that it is at most `accuracy`, by
default the larger of 5 % of the loss and 0.25 % of 2N/(1 - discount); the answer is theta_{k+1},
which has seen four times as many rows. With `num_rows` given there is one stage, and CONVERGED
means that its program is solved to `tolerance`.

Flow on average. The second penalty is the largest lambda_2 <y, D theta - nu> over |y| <= 1. With
`averaged_flow` it is asked for y = F b, |b| <= 1, only, where F_k(x) is the share of column k in
the mass of state x (features on both sides):

    L_F(theta) = ... + lambda_2 |F'(D theta - nu)|_1  <=  L(theta),

with F'D and F'nu estimated from the same rows. For Phi theta >= 0 and a cost c let V_c be the value
function of the policy of theta. Its action values average to V_c under the policy, so
<mu - u, c> = <nu - D theta, V_c>, and therefore

    gap(policy) <= L_F(theta) + V2(theta) max over c in the class of
                                          min over |b| <= lambda_2 of |V_c - F b|_oo.

So what smooth features can never match, the flow state by state, is not paid for where values are
smooth as well, and the policy is free to match the costs. L_F itself bounds no gap, and the other
term cannot be computed: certify such a policy by `Rollouts`. `reduced.averaged_loss` is L_F on
fresh rows, `reduced.loss` still L. The estimate of L_F is too large on average (|.|_1 is convex),
so an excess says less than above.

Cost. As `ReducedProgram` with at most 2n rows, however many pairs there are; all stages together
cost a third more than the last.

Reference: Shapiro, Dentcheva and Ruszczynski, "Lectures on stochastic programming", 2009, chapter 5
(sample average approximation). Excess: Mak, Morton, Wood, "Monte Carlo bounding techniques for
determining solution quality in stochastic programs", 1999.
"""

import time
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.errors import InvalidSolver
from journeyman.features.base import DrawnFeatures, Features
from journeyman.problem import Apprenticeship
from journeyman.problem.drawn import FRESH, LEARNING, DrawnReduced, reduced_of
from journeyman.problem.reduced import DrawnRows, ExactPenalty, Penalty, RowNorms, RowSampling
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.answer import Answer, Details, Work
from journeyman.solvers.exact.engines import Engine
from journeyman.solvers.reduced.box_dual import BoxDual, BoxPoint, SelectedRows, box_dual
from journeyman.solvers.reduced.reduced_program import check_limits, reduced_solution, solve_box
from journeyman.solvers.reduced.solution import (
    ReducedSolution,
    policy_solution,
    wanted_accuracy,
)
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_kind,
    require_not_negative,
)
from journeyman.world.levels import Level

FIRST_ROWS, ROWS_A_FEATURE, ROWS_GROWTH, MOST_ROWS = 2_000, 4, 4, 200_000
"""Of the first stage, at least, and for each feature; the factor from each stage to the next; and
how many there may be at most."""


@dataclass(frozen=True)
class SampledProgram:
    """Minimise the surrogate loss as it shows on sampled rows.

    Args:
        features: the columns to combine; `DrawnFeatures` in a world of callables (there
            `sampling` is of no use: rows are drawn from the features).
        seed: of the draws; the same seed gives the same answer.
        num_rows: pairs drawn, and states drawn; None is as many as `accuracy` takes.
        accuracy: the excess that is small enough; None is the default of the module.
        fresh_rows: further pairs and states to estimate the loss on, at least 2.
        penalty: `ExactPenalty()` or `SinglePenalty(x)`.
        sampling: the laws q1 and q2; row norms are optimal.
        engine, threads, time_limit, tolerance: as in `ReducedProgram`.
        averaged_flow: ask for flow on average over the columns' shares of states, not state by
            state; for `DrawnFeatures`.

    >>> from journeyman.solvers import solve
    >>> from journeyman.testing import random_problem
    >>> problem = random_problem(0)
    >>> features = Features([[1.0, 0.0], [0.0, 1.0]] * (problem.world.num_pairs // 2))
    >>> found = solve(problem, SampledProgram(features, seed=1, num_rows=50)).reduced
    >>> abs(found.sampled_loss - found.loss) < 4 * found.sampled_error
    True
    """

    features: Features | DrawnFeatures
    seed: int = field(kw_only=True)
    num_rows: int | None = None
    accuracy: float | None = None
    fresh_rows: int = 10_000
    penalty: Penalty = field(default_factory=ExactPenalty)
    sampling: RowSampling = field(default_factory=RowNorms)
    engine: Engine | None = None
    threads: int = 1
    time_limit: float | None = None
    tolerance: float = 1e-8
    averaged_flow: bool = False

    def __post_init__(self) -> None:
        if self.averaged_flow and not isinstance(self.features, DrawnFeatures):
            raise InvalidSolver(
                f"averaged_flow = True with {self.features!r}, whose flow is known in every state",
                "Give DrawnFeatures such as jm.features.factored(...), or leave it out",
            )
        remedy = "Give ExactPenalty() or SinglePenalty(value)"
        require_kind("penalty", self.penalty, Penalty, remedy)
        require_kind(
            "features", self.features, Features | DrawnFeatures, "Give jm.features.Features(matrix)"
        )
        require_kind("sampling", self.sampling, RowSampling, "Give for example RowNorms()")
        if self.num_rows is not None:
            require_count("num_rows", self.num_rows)
        if self.accuracy is not None:
            require_not_negative("accuracy", self.accuracy)
        require_count("fresh_rows", self.fresh_rows, least=2)
        require_count("seed", self.seed, least=0)
        check_limits(self.engine, self.threads, self.time_limit, self.tolerance)

    @property
    def needs(self) -> Level:
        """Arrays for features that are a matrix, callables for features of a large world."""
        return self.features.needs

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        reduced = reduced_of(problem, self.features, int(self.seed))
        surrogate = Surrogate(reduced, self.penalty, self.sampling)
        rng = np.random.default_rng(self.seed)
        found = self._solve(surrogate, rng, watch)
        box, point = found.box, found.point
        if isinstance(reduced, DrawnReduced):
            theta, fresh = box.coefficients(point.x), fresh_rows(surrogate, self.fresh_rows, rng)
            solution = ReducedSolution.estimated(surrogate, theta, fresh, box.radius(point.x))
            if self.averaged_flow:
                rows = draw(surrogate, self.fresh_rows, rng, stream=FRESH, averaged_flow=True)
                averaged = sampled_loss(surrogate, rows, theta)
                solution = replace(solution, averaged_loss=averaged)
        else:
            solution = reduced_solution(surrogate, box, point)
            fresh = fresh_rows(surrogate, self.fresh_rows, rng)
            mean, error = surrogate.estimate(solution.coefficients, fresh)
            solution = replace(solution, sampled_loss=mean, sampled_error=error)
        solution = replace(solution, sampled_excess=found.excess)
        return Answer(
            problem, found.status, point.engine, policy_solution(solution),
            Details(reduced=solution, work=Work(iterations=found.stages)),
            build_seconds=found.built - started, solve_seconds=time.perf_counter() - found.built,
            log=point.log,
        )  # fmt: skip

    def _solve(self, surrogate: Surrogate, rng: np.random.Generator, watch: Watch) -> "_Found":
        """Stage after stage, up to the one that shows the stage before to have been accurate."""
        num_rows = self.num_rows or max(FIRST_ROWS, ROWS_A_FEATURE * surrogate.num_features)
        before, excess, stage, built = None, None, 0, 0.0
        while True:
            rows = draw(surrogate, num_rows, rng, stage, averaged_flow=self.averaged_flow)
            box, stage = sampled_box(surrogate, rows), stage + 1
            built = built or time.perf_counter()
            point = solve_box(box, watch, self.engine, self.threads, self.tolerance)
            status = Status.CONVERGED if point.status is Status.OPTIMAL else point.status
            if before is not None:
                level = sampled_loss(surrogate, rows, box.coefficients(before.x))
                least = sampled_loss(surrogate, rows, box.coefficients(point.x))
                if status is not Status.CONVERGED and level < least:  # cut short
                    point, least = before, level
                excess = level - least
            if self.num_rows or status is not Status.CONVERGED:
                break
            problem = surrogate.reduced.problem
            if excess is not None and excess <= wanted_accuracy(self.accuracy, least, problem):
                break
            if num_rows * ROWS_GROWTH > MOST_ROWS:
                status = Status.STEP_LIMIT
                break
            before, num_rows = point, num_rows * ROWS_GROWTH
        return _Found(box, point, status, excess, stage, built)


class _Found(NamedTuple):
    """The last stage: its program and point, how it ended, and when the first began."""

    box: BoxDual
    point: BoxPoint
    status: Status
    excess: float | None
    stages: int
    built: float


def sampled_loss(surrogate: Surrogate, selected: SelectedRows, theta: FloatArray) -> float:
    """The loss as it shows on selected rows, exact at theta = 0."""
    reduced, penalties, rows = surrogate.reduced, surrogate.penalties, selected.rows
    negative = np.maximum(rows.floor - rows.pair_rows @ theta, 0.0)
    violated = np.abs(rows.flow_rows @ theta - rows.flow_target)
    overspent = np.maximum(reduced.budget_rows @ theta - reduced.budget_limits, 0.0).sum()
    gap = reduced.problem.cost_class.gap(reduced.matching @ theta - reduced.matching_target)
    found = gap + penalties.budgets * overspent + _missing(surrogate, selected)
    found += penalties.pairs * (selected.pair_weights @ negative)
    return float(found + penalties.flow * (selected.state_weights @ violated))


def draw(
    surrogate: Surrogate,
    num_rows: int,
    rng: np.random.Generator,
    block: int = 0,
    *,
    stream: int = LEARNING,
    averaged_flow: bool = False,
) -> SelectedRows:
    """`num_rows` pairs and as many states, each with the sum of its weights 1/(n q)."""
    reduced, laws = surrogate.reduced, surrogate.laws
    if isinstance(reduced, DrawnReduced):
        drawn = reduced.averaged if averaged_flow else reduced.drawn
        rows, nowhere = drawn(num_rows, stream, block), np.zeros(0, dtype=np.int64)
        return SelectedRows(
            rows, 1 / (num_rows * rows.pair_law), 1 / (num_rows * rows.flow_law), nowhere, nowhere
        )
    pairs, pair_weights = _merged(_indices(laws.pair_sampling, num_rows, rng), laws.pair_sampling)
    states, weights = _merged(_indices(laws.state_sampling, num_rows, rng), laws.state_sampling)
    return SelectedRows(listed_rows(surrogate, pairs, states), pair_weights, weights, pairs, states)


def fresh_rows(surrogate: Surrogate, count: int, rng: np.random.Generator) -> DrawnRows:
    """Further rows, which coefficients have not seen."""
    if isinstance(surrogate.reduced, DrawnReduced):
        return surrogate.reduced.drawn(count, FRESH, 0)
    laws = surrogate.laws
    pairs = _indices(laws.pair_sampling, count, rng)
    return listed_rows(surrogate, pairs, _indices(laws.state_sampling, count, rng))


def sampled_box(surrogate: Surrogate, selected: SelectedRows) -> BoxDual:
    """The box program of the rows; its constant makes the sampled loss exact at theta = 0."""
    box = box_dual(surrogate.reduced, surrogate.penalties, selected)
    return replace(box, constant=box.constant + _missing(surrogate, selected))


def _missing(surrogate: Surrogate, selected: SelectedRows) -> float:
    """What selected rows lack of the loss at theta = 0."""
    penalties, rows = surrogate.penalties, selected.rows
    V1, V2 = surrogate.reduced.penalised_at_zero
    negative, violated = np.maximum(rows.floor, 0.0), np.abs(rows.flow_target)
    missing = penalties.pairs * (V1 - selected.pair_weights @ negative)
    return float(missing + penalties.flow * (V2 - selected.state_weights @ violated))


def listed_rows(surrogate: Surrogate, pairs: IntArray, states: IntArray) -> DrawnRows:
    """Rows at given positions among all of them."""
    reduced, laws = surrogate.reduced, surrogate.laws
    return DrawnRows(
        reduced.pair_rows[pairs], reduced.floor[pairs], laws.pair_sampling[pairs],
        reduced.flow_rows[states], reduced.flow_target[states], laws.state_sampling[states],
    )  # fmt: skip


def _indices(law: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    return np.asarray(rng.choice(law.size, size=count, p=law), dtype=np.int64)


def _merged(indices: IntArray, law: FloatArray) -> tuple[IntArray, FloatArray]:
    kept, counts = np.unique(indices, return_counts=True)
    return kept, np.asarray(counts / (indices.size * law[kept]))
