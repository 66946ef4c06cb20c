"""SGD-AL in a world too large to enumerate: the same steps, on rows drawn block by block.

The compiled loop is that of explicit worlds; only the tables are new for every block. Blocks are
numbered and have seeds of their own, so a run depends on its seed alone, not on the executor that
draws the blocks nor on how many it draws at once. Of several replicas (see `replicas`) each draws
its own blocks and takes its steps on a worker; nothing but its iterate travels.

The loss cannot be evaluated here, only estimated on fresh rows; a run therefore ends by its steps
or its time.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray, read_only
from journeyman.errors import InvalidSolver
from journeyman.execution import Executor, Serial
from journeyman.features.base import LargeFeatures
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.problem.reduced import Penalty
from journeyman.solvers.large_answer import LargeAnswer
from journeyman.solvers.reduced.descent import engine_of, pooled
from journeyman.solvers.reduced.kernels import Exact, Iterate, Motion, advance
from journeyman.solvers.reduced.large_surrogate import LargeSurrogate
from journeyman.solvers.reduced.rows import (
    FRESH,
    LEARNING,
    DrawnRows,
    Rows,
    block_stream,
    draw_rows,
    table_of,
)
from journeyman.solvers.reduced.step_rules import WEIGHT, StepRule
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

BLOCK_ROWS = 1 << 14
"""Rows of a block, a multiple of the batch."""
FRESH_ROWS = 1 << 15
FIRST_EVALUATION, GROWTH = 4, 1.4
"""Blocks before the first estimate of the loss, and the factor from each to the next."""
REPLICA = 4
"""The stream of a seed, beside those of `drawn_rows`, that replicas learn from."""
RADIUS = 1.0
"""Columns have mass 1/(1 - discount), so the ball of radius 1 holds all their mixtures."""


@dataclass(frozen=True, eq=False)
class LargeDescent:
    """The settings of a run; `StochasticSubgradient` makes it."""

    features: LargeFeatures
    penalty: Penalty
    step_rule: StepRule
    batch: int
    average_power: float
    radius: float | None
    nonnegative: bool
    steps: int
    seed: int
    executor: Executor | None = None
    replicas: int = 1

    def run(self, problem: Apprenticeship, watch: Watch) -> LargeAnswer:
        """Descend until a limit."""
        started = time.perf_counter()
        require_same_world(problem, self.features)
        surrogate = LargeSurrogate(problem, self.features, self.penalty, self.seed)
        state = _State(self, surrogate)
        built = time.perf_counter()
        executor = Serial() if self.executor is None else self.executor
        status = _descend(state, watch, executor)
        loss, error = state.estimate()
        return LargeAnswer(
            problem, status, engine_of(self.replicas), self.features, read_only(state.average),
            loss, error, surrogate.matching_error(state.average), state.step,
            read_only(np.array(state.trace).reshape(-1, 4)), built - started,
            time.perf_counter() - built,
        )  # fmt: skip

    @property
    def steps_per_block(self) -> int:
        return max(1, BLOCK_ROWS // self.batch)

    @property
    def rows_per_block(self) -> int:
        return self.steps_per_block * self.batch


class _State:
    """Iterate (of several replicas their sums), number of steps and trace of one run."""

    def __init__(self, descent: LargeDescent, surrogate: LargeSurrogate) -> None:
        self.descent, self.surrogate = descent, surrogate
        problem, size = surrogate.problem, surrogate.num_features
        count = problem.num_costs
        radius = RADIUS if descent.radius is None else descent.radius
        rate = descent.step_rule.rate_for(surrogate, radius, descent.steps)
        form = problem.cost_class.kernel_form(count)
        self.exact = Exact(
            form.code, np.array(surrogate.matching, order="C"), np.array(problem.target),
            np.array(form.scale), np.array(form.centre), np.array(form.points, order="C"),
            np.zeros((0, size)), np.zeros(0), 0.0,
        )  # fmt: skip
        self.motion = Motion(
            int(descent.batch), descent.step_rule.code, float(rate), float(radius),
            bool(descent.nonnegative), float(descent.average_power),
        )  # fmt: skip
        self.iterate = Iterate(
            np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size),
            np.zeros(4), np.zeros(count), np.zeros(0),
        )  # fmt: skip
        self.replicas = [self.iterate] * descent.replicas
        self.step, self.blocks = 0, 0
        self.trace: list[tuple[float, float, float, float]] = []
        self._fresh: DrawnRows | None = None

    @property
    def average(self) -> FloatArray:
        """The weighted average of the iterates."""
        total = self.iterate.totals[WEIGHT]
        return np.asarray(self.iterate.weighted_theta / (total if total > 0 else 1.0))

    def take(self, rows: DrawnRows) -> None:
        """The steps of one block."""
        descent, penalties = self.descent, self.surrogate.penalties
        left = descent.steps - self.step
        count = min(descent.steps_per_block, left) * descent.batch
        places = np.arange(count)
        advance(
            self.step, places, places, _pairs(rows, penalties.pairs), _flow(rows, penalties.flow),
            self.exact, self.motion, self.iterate,
        )  # fmt: skip
        self.step += count // descent.batch
        self.blocks += 1

    def estimate(self) -> tuple[float, float]:
        """The loss of the average on rows that no step has seen, the same ones every time."""
        if self._fresh is None:
            rng = block_stream(self.descent.seed, FRESH, 0)
            self._fresh = draw_rows(self.descent.features, FRESH_ROWS, rng)
        return self.surrogate.estimate(self._fresh, self.average)


def _descend(state: _State, watch: Watch, executor: Executor) -> Status:
    descent, goal = state.descent, FIRST_EVALUATION
    while state.step < descent.steps:
        needed = -(-(descent.steps - state.step) // descent.steps_per_block)
        ahead = min(max(goal - state.blocks, 1), needed)
        if descent.replicas == 1:
            _draw_and_take(state, ahead, executor)
        else:
            _take_replicas(state, ahead, executor)
        if not np.isfinite(state.iterate.theta).all():
            return Status.NOT_FINITE
        loss, error = state.estimate()
        state.trace.append((float(state.step), watch.elapsed, loss, error))
        if watch.report(state.step, loss):
            return watch.verdict
        goal = max(goal + 1, int(goal * GROWTH))
    return Status.STEP_LIMIT


def _draw_and_take(state: _State, count: int, executor: Executor) -> None:
    """Steps on `count` blocks that the executor draws."""
    descent = state.descent
    tasks = [(descent.seed, state.blocks + k, descent.rows_per_block) for k in range(count)]
    for rows in executor.map(_block, tasks, shared=descent.features):
        state.take(rows)


def _take_replicas(state: _State, count: int, executor: Executor) -> None:
    """`count` blocks of every replica, drawn and learned from on the executor."""
    descent = replace(state.descent, executor=None)
    shared = descent, state.surrogate, state.step, state.blocks, count
    found = executor.map(_advanced, list(enumerate(state.replicas)), shared=shared)
    state.replicas = [iterate for iterate, _ in found]
    state.iterate, state.step = pooled(state.replicas), found[0][1]
    state.blocks += count


def _advanced(
    task: tuple[int, Iterate], shared: tuple[LargeDescent, LargeSurrogate, int, int, int]
) -> tuple[Iterate, int]:
    """A replica and its number of steps, some blocks later."""
    (number, iterate), (descent, surrogate, step, first, count) = task, shared
    state = _State(descent, surrogate)
    state.iterate, state.step = Iterate(*(part.copy() for part in iterate)), step
    for block in range(first, first + count):
        stream = np.random.SeedSequence(descent.seed, spawn_key=(REPLICA, number, block))
        rng = np.random.default_rng(stream)
        state.take(draw_rows(descent.features, descent.rows_per_block, rng))
    return state.iterate, state.step


def _block(task: tuple[int, int, int], features: LargeFeatures) -> DrawnRows:
    """One numbered block of rows."""
    seed, block, count = task
    return draw_rows(features, count, block_stream(seed, LEARNING, block))


def _pairs(rows: DrawnRows, penalty: float) -> Rows:
    return table_of(rows.pair_rows, np.zeros(rows.pair_law.size), penalty, rows.pair_law)


def _flow(rows: DrawnRows, penalty: float) -> Rows:
    return table_of(rows.flow_rows, rows.initial, penalty, rows.flow_law)


def require_same_world(problem: Apprenticeship, features: LargeFeatures) -> None:
    """Refuse features of another world, and a world whose rows cannot be drawn."""
    if not hasattr(problem.world, "predecessors"):
        raise InvalidSolver(
            f"a {type(problem.world).__name__} can only be sampled, and rows of features need "
            "successors and predecessors",
            "Give the world both, or use PolicyMixture, which needs rollouts only",
        )
    same = (features.world.num_states, features.world.num_actions, features.world.discount) == (
        problem.world.num_states, problem.world.num_actions, problem.world.discount
    )  # fmt: skip
    if not same:
        raise InvalidSolver(
            f"the features are for {features.world.num_states} states, the world has "
            f"{problem.world.num_states} (or other actions, or another discount)",
            "Make the features for this world",
        )
