"""Stochastic primal-dual steps on the surrogate loss: one dual variable for each row.

    min over |theta|_2 <= rho  max over y in Y   constant + <slope, theta> + <y, A theta - b>

is the surrogate of `problem/surrogate.py`, each of its terms written as the largest value of a
linear function:

    row of A                    b          y in
    Phi_s   (a pair)            floor_s    [-lambda_1, 0]
    D_x     (a state)           nu_x       [-lambda_2, lambda_2]
    C_j     (a budget)          limit_j    [0, lambda_3]
    M'G     (the cost class)    M'target   a box, a ball or a simplex of v, W = {centre + M v}

with slope = G'centre, constant = -<centre, target>. Rows of pairs and states are dealt to blocks
once, at random; budgets and costs are one block more. An epoch takes all blocks in a random order,
a step one of them, I:

    theta <- the point of the ball that is nearest to theta - T (slope + zbar) in |.|_{1/T}
    y_I   <- the point of Y_I that is nearest to y_I + S_I (A_I theta - b_I)
    z     <- z + A_I'dy,     zbar <- z + A_I'dy/p                   dy: the change of y_I

where z = A'y, p is one over the number of blocks, and S and T are diagonal,

    S_i = 0.99/(omega |A_i|_1),        T_j = 0.99 omega p / max over blocks I of |A_{I,j}|_1,

|A_i|_1 the sum of the sizes in row i and |A_{I,j}|_1 that in column j of block I. Rows are measured
in units of the root of the width of Y_i. At some epochs the averages since the last such look are
judged; when their loss and bound are five times closer than at the last restart, the run goes on
from them. omega says how far theta moves against y. It follows the two parts of what is left,

    loss(theta) - K(theta, y)     and     K(theta, y) - bound(y),         K the function above:

it falls while the first is larger, and rises while the second is.

Step sizes. Every block has |S_I^(1/2) A_I T^(1/2)|_2^2 <= 0.99^2 p: for all v and x, by the
inequality of Cauchy and Schwarz over the entries of A_I,

    sum_ij v_i (S_i T_j)^(1/2) A_ij x_j
        <= (sum_ij S_i |A_ij| v_i^2)^(1/2) (sum_ij T_j |A_ij| x_j^2)^(1/2)
        <= (0.99/omega)^(1/2) |v|_2  (0.99 omega p)^(1/2) |x|_2.

This is what the method needs. Let blocks be drawn independently with probability p, and add up what
the two nearest points fulfil, towards a saddle point (theta*, y*). In expectation the energy
|theta - theta*|^2_{1/T}/2 + |y - y*|^2_{1/S}/(2p) falls in every step, up to a sum that telescopes,
by at least

    |dx|^2_{1/T}/2 + |dy|^2_{1/S}/(2p) + <A_I dx, dy>/p

with dx the move of theta and dy the change of y in block I the step before (zbar is z with dy/p
ahead, which leaves this product alone). It is not negative when |S_I^(1/2) A_I T^(1/2)|_2^2 <= p,
because then |<A_I dx, dy>|/p <= |dx|_{1/T} |dy|_{1/S}/p^(1/2). The averages converge like 1/steps
(reference). Random orders, which are taken because they need half as many epochs, are not covered
by that argument; nothing that is reported rests on it.

Guarantee. For any y in Y, however it was found, and every theta in the ball

    L(theta) >= constant - <b, y> + <slope + A'y, theta>
             >= constant - <b, y> - rho |slope + A'y|_2,

the first since L(theta) is the largest value over Y, the second by Cauchy and Schwarz. So a lower
bound costs one product A'y. The best coefficients and the best y of all looks are returned, their
loss and bound recomputed from the data. CONVERGED means that these differ by at most `accuracy`, by
default the larger of 5 % of the loss and 0.25 % of 2N/(1 - discount). With exact penalties the loss
bounds the policy's gap.

The ball is by default that of `ball_around` in `solution.py`, as for `ReducedProgram`: at every
look it is fitted to the best coefficients, and the bound to the ball. So no ball keeps them from
the least loss there is; where there is none, the answer is UNBOUNDED.

Where rows cannot be listed, in a world of callables, `num_rows` pairs and states are drawn once, as
in `sampled_program`. The program of these rows is then solved to `accuracy`, and the loss of the
answer is estimated on others.

Cost. An epoch makes two passes over the entries of A, and some over theta for each block; blocks
have at least twice as many entries as there are features. So it is linear in the entries, without
any factorisation. A look is one more pass; looks are made at epochs that grow by a constant factor.
The rows are held once more, with some ten numbers for each. The number of epochs hardly depends on
that of the rows; it is some hundred to some thousand. Where d x d factors are affordable
`ReducedProgram` is quicker in most families, and exact.

Reference: Chambolle, Ehrhardt, Richtarik, Schoenlieb, "Stochastic primal-dual hybrid gradient
algorithm with arbitrary sampling and imaging applications", 2018. Diagonal steps: Pock, Chambolle,
2011. Restarts: Applegate et al., "Practical large-scale linear programming using primal-dual hybrid
gradient", 2021; their rule for omega, the ratio of the distances moved, was tried and lost.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix
from journeyman.costs.cost_class import BALL, BOX, HULL
from journeyman.errors import InvalidCosts, InvalidFile
from journeyman.features.base import DrawnFeatures, Features
from journeyman.problem import Apprenticeship
from journeyman.problem.drawn import DrawnReduced, reduced_of
from journeyman.problem.reduced import DrawnRows, ExactPenalty, Penalty
from journeyman.problem.surrogate import ReducedWitness, Surrogate
from journeyman.solvers.answer import Answer, Details, Work
from journeyman.solvers.reduced import plain_saddle
from journeyman.solvers.reduced.descent import Optimisation, TracePoint, identity_of
from journeyman.solvers.reduced.plain_saddle import PlainRows, Point, Program
from journeyman.solvers.reduced.reduced_program import slope_at_infinity
from journeyman.solvers.reduced.rows import table_of
from journeyman.solvers.reduced.sampled_program import draw, fresh_rows
from journeyman.solvers.reduced.solution import (
    ReducedSolution,
    ball_around,
    policy_solution,
    wanted_accuracy,
)
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_kind,
    require_not_negative,
    require_positive,
    require_time_limit,
)
from journeyman.storage import PathLike, load_arrays, save_arrays, take
from journeyman.world.levels import Level

SAFETY = 0.99
"""Of the largest steps that are allowed."""
BLOCK_WIDTHS, BLOCK_ROWS = 2, 64
"""A block has at least as many entries as so many theta, and about so many rows."""
FIRST_LOOK, GROWTH = 8, 1.3
"""Epochs before the first look, and the factor from each to the next."""
LARGEST_BALL = 1e6
"""In radii to begin with: what is not found in such a ball is not looked for further out."""
RESTART = 0.2
"""Averages are gone on from when their bounds are closer than before by this factor."""
TURN, MOST_TURN = 0.25, 2.0
"""The power of the ratio of both parts by which omega follows them, and its limit in one look."""
ORDERS = 16
"""Epochs whose orders are drawn together."""
CHUNK = 2e7
"""Products of numbers between two looks at the clock, about: some hundredths of a second."""
DEALING, ORDERING = 1, 2
"""Streams of the seed: blocks of rows, and orders of blocks."""
KIND, SCHEMA_VERSION = "primal-dual-state", 2
TRACE_FIELDS = ("step", "seconds", "loss", "matching", "negativity", "flow", "bound")
NUMBERS = ("omega", "restarted_gap", "best_loss", "best_bound", "best_level", "best_rest", "radius")


@dataclass(frozen=True, eq=False)
class StochasticPrimalDual:
    """The least surrogate loss over combinations of `features`, with a proof.

    Args:
        features: Phi; `DrawnFeatures` in a world of callables.
        penalty: of the surrogate; exact by default.
        radius: of the ball of coefficients; by default one that holds mixtures of the columns, and
            grows until the best coefficients lie in its inner half, so that it never binds.
        epochs: at most so many passes over the rows.
        accuracy: proven optimisation error at which to stop; None is the default of the module,
            0 runs all epochs.
        time_limit: seconds.
        seed: of blocks, orders and drawn rows.
        num_rows: pairs and states that are drawn where rows cannot be listed.
        fresh_rows: further ones to estimate the loss on there, at least 2.
        checkpoint: a file to write the state to at every look, and to continue from.
        checkpoint_every: seconds after which it is written between looks, too.

    >>> from journeyman.solvers import solve
    >>> from journeyman.testing import random_problem
    >>> problem = random_problem(0)
    >>> features = Features([[1.0, 0.0], [0.0, 1.0]] * (problem.world.num_pairs // 2))
    >>> found = solve(problem, StochasticPrimalDual(features)).reduced
    >>> 0 <= found.optimisation_error <= max(0.05 * found.loss, 0.0025 * problem.gap_scale)
    True
    """

    takes_averages: ClassVar[bool] = True
    features: Features | DrawnFeatures
    penalty: Penalty = field(default_factory=ExactPenalty)
    radius: float | None = None
    epochs: int = 100_000
    accuracy: float | None = None
    time_limit: float | None = None
    seed: int = 0
    num_rows: int = 20_000
    fresh_rows: int = 20_000
    checkpoint: PathLike | None = None
    checkpoint_every: float | None = None

    def __post_init__(self) -> None:
        require_kind(
            "features", self.features, Features | DrawnFeatures, "Give jm.features.Features(matrix)"
        )
        remedy = "Give ExactPenalty() or SinglePenalty(value)"
        require_kind("penalty", self.penalty, Penalty, remedy)
        for name, least in (("epochs", 1), ("seed", 0), ("num_rows", 1), ("fresh_rows", 2)):
            require_count(name, getattr(self, name), least=least)
        for name in ("radius", "checkpoint_every"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))
        if self.accuracy is not None:
            require_not_negative("accuracy", self.accuracy)
        require_time_limit(self.time_limit)

    @property
    def needs(self) -> Level:
        """Arrays for features that are a matrix, callables for features of a large world."""
        return self.features.needs

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        surrogate = Surrogate(reduced_of(problem, self.features, int(self.seed)), self.penalty)
        run = _Run(self, surrogate, watch)
        built = time.perf_counter()
        answer = run.answer(run.go_on())
        return replace(
            answer, build_seconds=built - started, solve_seconds=time.perf_counter() - built
        )

    def settings(self) -> str:
        """What decides the steps, in words; when to stop is not part of it."""
        ignored = {
            "features", "epochs", "accuracy", "time_limit", "seed", "fresh_rows", "checkpoint",
            "checkpoint_every",
        }  # fmt: skip
        words = [
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name not in ignored
        ]
        return ", ".join([type(self).__name__, *words])


class Saddle:
    """The saddle point problem of a surrogate, over all rows or drawn ones."""

    def __init__(self, surrogate: Surrogate, radius: float, seed: int, num_rows: int) -> None:
        reduced, penalties = surrogate.reduced, surrogate.penalties
        self.surrogate = surrogate
        shown: DrawnRows | Any = reduced
        pair_weights: Any = 1.0
        state_weights: Any = 1.0
        self.missing = 0.0
        """What the loss of drawn rows lacks to be exact at theta = 0."""
        if isinstance(reduced, DrawnReduced):
            selected = draw(surrogate, num_rows, np.random.default_rng(seed))
            shown = selected.rows
            pair_weights, state_weights = selected.pair_weights, selected.state_weights
        self.num_pairs, self.num_states = shown.floor.size, shown.flow_target.size
        width = np.concatenate(
            [
                penalties.pairs * pair_weights * np.ones(self.num_pairs),
                penalties.flow * state_weights * np.ones(self.num_states),
            ]
        )
        self.root, target = np.sqrt(width), np.append(shown.floor, shown.flow_target)
        if isinstance(reduced, DrawnReduced):
            V1, V2 = reduced.penalised_at_zero
            drawn = np.maximum(shown.floor, 0.0), np.abs(shown.flow_target)
            self.missing = float(
                penalties.pairs * V1 + penalties.flow * V2 - width @ np.concatenate(drawn)
            )
        self.order = np.random.default_rng([DEALING, seed]).permutation(width.size)
        self.program = self._program(shown.pair_rows, shown.flow_rows, target, radius)

    def _program(
        self, pair_rows: Matrix, flow_rows: Matrix, target: FloatArray, radius: float
    ) -> Program:
        reduced, penalties = self.surrogate.reduced, self.surrogate.penalties
        is_sparse = sparse.issparse(pair_rows)
        stack = sparse.vstack if is_sparse else np.vstack
        A = stack([pair_rows, flow_rows])
        A = sparse.csr_array(A)[self.order] if is_sparse else A[self.order]
        root = self.root[self.order]
        A = sparse.csr_array(sparse.diags_array(root) @ A) if is_sparse else root[:, None] * A
        self.targets = root * target[self.order]
        self.loops: ModuleType = plain_saddle
        if A.shape[0] * A.shape[1] <= plain_saddle.PLAIN_NUMBERS:
            rows: Any = PlainRows(A.toarray() if is_sparse else A, self.targets)
        else:
            from journeyman.solvers.reduced import saddle_kernels

            self.loops = saddle_kernels
            rows = table_of(A, self.targets, 1.0, np.ones(root.size))
        entries = np.diff(A.indptr) if is_sparse else np.full(root.size, A.shape[1])
        self.num_entries = int(entries.sum()) + root.size
        starts = _starts(entries, A.shape[1])
        form = reduced.problem.cost_class.kernel_form(reduced.matching_target.size)
        self.centre = form.centre if form.code in (BOX, BALL) else np.zeros(form.centre.size)
        self.generators = form.points if form.code == HULL else np.diag(form.scale)
        G, aim = reduced.matching, reduced.matching_target
        small = np.vstack([penalties.budgets * reduced.budget_rows, self.generators @ G])
        limits = np.append(penalties.budgets * reduced.budget_limits, self.generators @ aim)
        budgets = reduced.budget_limits.size
        sizes = np.abs(small).sum(axis=1)
        if form.code != BOX:  # one step for all costs, so that the nearest point is known
            sizes[budgets:] = sizes[budgets:].max(initial=0.0)
        columns = np.abs(small).sum(axis=0)
        self.loops.largest_columns(rows, starts, columns)
        return Program(
            rows=rows,
            starts=starts,
            low=-root,
            high=np.where(self.order < self.num_pairs, 0.0, root),
            dual_steps=_inverse(np.asarray(abs(A).sum(axis=1)).ravel(), SAFETY),
            small=np.ascontiguousarray(small),
            small_target=limits,
            small_steps=_inverse(sizes, SAFETY),
            num_budgets=budgets,
            kind=form.code,
            primal_steps=_inverse(columns, SAFETY / starts.size),
            slope=np.asarray(G.T @ self.centre),
            constant=float(-self.centre @ aim) + self.missing,
            radius=radius,
        )

    @property
    def step_products(self) -> float:
        """About how many numbers a step multiplies."""
        program = self.program
        return float(self.num_entries * 2 / program.num_blocks + 4 * program.slope.size)

    def start(self) -> Point:
        """Nothing, and the middle of the cost class."""
        width, count = self.program.slope.size, self.program.low.size
        small, budgets = np.zeros(self.program.small_target.size), self.program.num_budgets
        if self.program.kind not in (BOX, BALL):
            small[budgets:] = 1 / (small.size - budgets)
        sums = np.zeros(width), np.zeros(count), np.zeros(small.size)
        z = np.asarray(self.program.small.T @ small)
        return Point(np.zeros(width), np.zeros(count), small, z, np.zeros(width), *sums)

    @property
    def first_omega(self) -> float:
        """Such that theta and y need about as many steps to cross their sets."""
        program = self.program
        moving = program.primal_steps > 0
        if not moving.any():
            return 1.0
        across = program.radius**2 * float(np.mean(1 / program.primal_steps[moving]))
        half, can = (program.high - program.low) / 2, program.dual_steps > 0
        up = float((half[can] ** 2 / program.dual_steps[can]).sum())
        found = math.sqrt(across / moving.sum() / up) if up > 0 else 1.0
        return found if 0 < found < math.inf else 1.0

    def judged(self, theta: FloatArray, y: FloatArray, small: FloatArray) -> "Judged":
        """Loss and bound of a point, and the value between them."""
        program = self.program
        errors = np.empty(y.size)
        self.loops.row_errors(program.rows, theta, errors)
        others = program.small @ theta - program.small_target
        level = program.constant + program.slope @ theta
        parts = np.maximum(program.low * errors, program.high * errors)
        is_pair = self.order < self.num_pairs
        matching = program.constant - self.missing + program.slope @ theta
        matching += _support(program.kind, others[program.num_budgets :])
        spent = float(np.maximum(others[: program.num_budgets], 0.0).sum())
        pairs, flow = float(parts[is_pair].sum()), float(parts[~is_pair].sum())
        z = self.pulled(y, small)
        constant = program.constant - y @ self.targets - small @ program.small_target
        rest = float(np.linalg.norm(program.slope + z))
        return Judged(
            loss=float(matching + pairs + flow + spent + self.missing),
            bound=float(constant - program.radius * rest),
            level=float(constant),
            rest=rest,
            middle=float(level + y @ errors + small @ others),
            parts=(float(matching), pairs, flow),
            z=z,
        )

    def pulled(self, y: FloatArray, small: FloatArray) -> FloatArray:
        """A'y of all blocks."""
        z = np.asarray(self.program.small.T @ small)
        self.loops.add_rows(self.program.rows, y, z)
        return z

    def witness(self, y: FloatArray, small: FloatArray) -> ReducedWitness:
        """The dual point as `reduced_lower_bound` takes it, in shares of the penalties."""
        shares, budgets = np.empty(y.size), self.program.num_budgets
        shares[self.order] = y / np.where(self.program.low < 0, -self.program.low, 1.0)
        weights = self.centre + self.generators.T @ small[budgets:]
        pairs = self.num_pairs
        return ReducedWitness(weights, shares[pairs:], -shares[:pairs], small[:budgets])


class Judged(NamedTuple):
    """What is known of theta and y; `level` and `rest` are what the bound is made of."""

    loss: float
    bound: float
    level: float
    rest: float
    middle: float
    parts: tuple[float, float, float]
    """Of the loss: matching, and what pairs and states cost."""
    z: FloatArray


def _starts(entries: IntArray, width: int) -> IntArray:
    """Where blocks begin, and where the last one ends."""
    ends = np.cumsum(entries + 1)
    size = max(BLOCK_WIDTHS * width, BLOCK_ROWS * ends[-1] / entries.size)
    count = max(1, int(ends[-1] // size))
    inner = np.searchsorted(ends, np.arange(1, count) * ends[-1] / count)
    return np.unique(np.concatenate([[0], inner, [entries.size]])).astype(np.int64)


def _inverse(sizes: FloatArray, factor: float) -> FloatArray:
    """factor/size, zero where there is nothing."""
    return np.divide(factor, sizes, out=np.zeros(sizes.size), where=sizes > 1e-290)


def _support(kind: int, errors: FloatArray) -> float:
    if kind == BOX:
        return float(np.abs(errors).sum())
    return float(np.linalg.norm(errors) if kind == BALL else errors.max())


class _Run:
    """One run: the loop with its limits, looks, restarts and checkpoints."""

    def __init__(self, solver: StochasticPrimalDual, surrogate: Surrogate, watch: Watch) -> None:
        self.solver, self.surrogate, self.watch = solver, surrogate, watch
        reduced, seed = surrogate.reduced, int(solver.seed)
        width = np.zeros(surrogate.num_features)
        radius = ball_around(width, reduced) if solver.radius is None else float(solver.radius)
        self.saddle = Saddle(surrogate, radius, seed, int(solver.num_rows))
        if not self.program.primal_steps.any():
            raise InvalidCosts("every feature is zero", "Give columns with mass")
        self.at = self.saddle.start()
        self.best = Point(*(part.copy() for part in self.at))
        """Of which theta, y and small count: the coefficients and the dual point that are best."""
        self.step, self.looked = 0, 0
        self.omega, self.restarted_gap = self.saddle.first_omega, math.inf
        self.best_loss, self.best_bound = math.inf, -math.inf
        self.best_level, self.best_rest = -math.inf, 0.0
        self.trace: list[tuple[float, ...]] = []
        self._keep(self.saddle.judged(self.at.theta, self.at.y, self.at.small), self.at)
        self.stride = max(1, int(CHUNK // self.saddle.step_products))
        self.saved, self._round, self._orders = watch.elapsed, -1, np.zeros(0, np.int64)
        if solver.checkpoint is not None:
            self.identity = identity_of(surrogate, solver.settings(), seed)
            if Path(solver.checkpoint).exists():
                self._restore(solver.checkpoint)

    def go_on(self) -> Status:
        """Take steps until one of the limits."""
        blocks = self.program.num_blocks
        last = int(self.solver.epochs) * blocks
        if self.step == self.looked and self._is_accurate:
            return Status.CONVERGED
        while True:
            if self._owes_look:
                if not self._is_finite:
                    return Status.NOT_FINITE
                self._look()
                if self._falls_without_end:
                    return Status.UNBOUNDED
                if self._is_accurate:
                    return Status.CONVERGED
            if self.step >= last:
                return self._stopped(Status.STEP_LIMIT)
            goal = min(_look_after(self.step // blocks) * blocks, last)
            while self.step < goal:
                self._take(min(self.stride, goal - self.step))
                if self.watch.report(self.step, self.best_loss, self.best_bound):
                    return self._stopped(self.watch.stop_status)
                self._save(self.solver.checkpoint_every)

    @property
    def _owes_look(self) -> bool:
        """Whether a look is due at this step: a run may have been stopped at the very step."""
        epoch, rest = divmod(self.step, self.program.num_blocks)
        return self.step > self.looked and not rest and _look_after(epoch - 1) == epoch

    def _take(self, count: int) -> None:
        """`count` steps, in orders that depend on their numbers alone."""
        per_round, goal = ORDERS * self.program.num_blocks, self.step + count
        while self.step < goal:
            number, place = divmod(self.step, per_round)
            if number != self._round:
                rng = np.random.default_rng([ORDERING, int(self.solver.seed), number])
                blocks = np.tile(np.arange(self.program.num_blocks), (ORDERS, 1))
                self._round, self._orders = number, rng.permuted(blocks, axis=1).ravel()
            order = self._orders[place : place + goal - self.step]
            self.saddle.loops.advance(order, self.program, self.omega, self.at)
            self.step += order.size

    def _look(self) -> None:
        """Judge the averages since the last look; go on from them when they are much better."""
        at, average = self.at, self._average
        theta, y, small = average[:3]
        found = self.saddle.judged(theta, y, small)
        self._keep(found, average)
        if self.solver.radius is None:
            self._fit()
        self.trace.append(
            (self.step, self.watch.elapsed, self.best_loss, *self._parts, self.best_bound)
        )
        primal, dual = found.loss - found.middle, found.middle - found.bound
        if primal > 0 and dual > 0:
            turn = (dual / primal) ** TURN
            self.omega *= min(max(turn, 1 / MOST_TURN), MOST_TURN)
        if found.loss - found.bound <= RESTART * self.restarted_gap:
            self.restarted_gap = found.loss - found.bound
            at.theta[:], at.y[:], at.small[:] = theta, y, small
            at.z[:], at.dz[:] = found.z, 0.0
        for total in (at.theta_sum, at.y_sum, at.small_sum):
            total[:] = 0.0
        self.looked = self.step
        self._save()

    @property
    def _average(self) -> Point:
        """Since the last look. Within an epoch some rows have been summed once less: these are
        nearer to zero than their average, where they may be; costs then have their last point."""
        at, (epochs, rest) = self.at, divmod(self.step - self.looked, self.program.num_blocks)
        small = at.small_sum / epochs if not rest else at.small
        theta = at.theta_sum / (self.step - self.looked)
        return at._replace(theta=theta, y=at.y_sum / (epochs + (rest > 0)), small=small)

    @property
    def _is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in self.at)

    def _keep(self, found: Judged, point: Point) -> None:
        """Keep what is better than before."""
        penalties = self.surrogate.penalties
        if found.loss < self.best_loss:
            self.best_loss = found.loss
            self.best.theta[:] = point.theta
            matching, pairs, flow = found.parts
            self._parts = matching, pairs / (penalties.pairs or 1), flow / (penalties.flow or 1)
        if found.bound > self.best_bound:
            self.best_bound = found.bound
            self.best_level, self.best_rest = found.level, found.rest
            self.best.y[:], self.best.small[:] = point.y, point.small

    def _fit(self) -> None:
        """Fit the ball to the best coefficients, and the bound to the ball."""
        reduced = self.surrogate.reduced
        most = LARGEST_BALL * reduced.heavy_radius
        self.radius = min(ball_around(self.best.theta, reduced), most)
        self.best_bound = self.best_level - self.radius * self.best_rest

    @property
    def _falls_without_end(self) -> bool:
        """Whether coefficients that have left the mixtures show a direction of endless descent."""
        reduced, theta = self.surrogate.reduced, self.best.theta
        if self.solver.radius is not None or reduced.problem.cost_class.contains_zero:
            return False
        if self.radius <= reduced.heavy_radius or isinstance(reduced, DrawnReduced):
            return False
        return slope_at_infinity(self.surrogate, theta) < 0

    @property
    def program(self) -> Program:
        return self.saddle.program

    @property
    def radius(self) -> float:
        """Of the ball, as it is now."""
        return self.saddle.program.radius

    @radius.setter
    def radius(self, radius: float) -> None:
        self.saddle.program = self.saddle.program._replace(radius=radius)

    @property
    def _is_accurate(self) -> bool:
        """Whether the error is proven to be small, by numbers that were recomputed."""
        if self.best_loss - self.best_bound > self._wanted(self.best_loss) * (1 + 1e-9):
            return False
        if isinstance(self.surrogate.reduced, DrawnReduced):
            return self.best_loss - self.best_bound <= self._wanted(self.best_loss)
        found = self._found
        return found.optimisation_error <= self._wanted(found.loss)

    def _wanted(self, loss: float) -> float:
        return wanted_accuracy(self.solver.accuracy, loss, self.surrogate.reduced.problem)

    @property
    def _found(self) -> ReducedSolution:
        """The best coefficients and the best dual point, recomputed from the data."""
        witness = self.saddle.witness(self.best.y, self.best.small)
        return ReducedSolution.of(self.surrogate, self.best.theta, witness, radius=self.radius)

    def _stopped(self, status: Status) -> Status:
        """Where no look was due, what a run that goes on from the saved state does not see."""
        self._save()
        if not self._is_finite:
            return Status.NOT_FINITE
        if self.step > self.looked:
            for point in (self.at, self._average):
                self._keep(self.saddle.judged(*point[:3]), point)
            if self.solver.radius is None:
                self._fit()
        return status

    def answer(self, status: Status) -> Answer:
        """The policy of the best coefficients, with everything that is known about them."""
        surrogate, problem = self.surrogate, self.surrogate.reduced.problem
        if isinstance(surrogate.reduced, DrawnReduced):
            rng = np.random.default_rng(int(self.solver.seed))
            fresh = fresh_rows(surrogate, int(self.solver.fresh_rows), rng)
            found = ReducedSolution.estimated(surrogate, self.best.theta, fresh, self.radius)
        else:
            found = self._found
        rows = [dict(zip(TRACE_FIELDS, row, strict=True)) for row in self.trace]
        optimisation = Optimisation(
            self.step,
            tuple(TracePoint(int(row.pop("step")), **row) for row in rows),
            realised_regret=self.best_loss - self.best_bound,
            noise=0.0,
            failure_probability=0.0,
            gap_scale=problem.gap_scale,
        )
        work = Work(iterations=self.step)
        return Answer(
            problem, status, "stochastic primal-dual", policy_solution(found),
            Details(reduced=found, optimisation=optimisation, work=work),
        )  # fmt: skip

    def _save(self, every: float | None = 0.0) -> None:
        """Write the state, if `every` seconds have passed since it was; None is never."""
        path = self.solver.checkpoint
        if path is None or every is None or self.watch.elapsed < self.saved + every:
            return
        arrays = {f"best_{name}": getattr(self.best, name) for name in ("theta", "y", "small")}
        trace = np.array(self.trace, dtype=float).reshape(-1, len(TRACE_FIELDS))
        numbers = np.array([getattr(self, name) for name in NUMBERS])
        save_arrays(
            path, KIND, SCHEMA_VERSION,
            {**self.at._asdict(), **arrays, "trace": trace, "numbers": numbers},
            step=self.step, looked=self.looked, parts=list(self._parts), identity=self.identity,
        )  # fmt: skip
        self.saved = self.watch.elapsed

    def _restore(self, path: PathLike) -> None:
        """Continue from a checkpoint of the same run."""
        facts, arrays = load_arrays(path, KIND, SCHEMA_VERSION)
        if facts.get("identity") != self.identity:
            raise InvalidFile(
                f"{path} is the checkpoint of another run: world, costs, expert, features, seed or "
                "settings differ",
                "Give another path, or remove the file to start anew",
            )
        self._fill(path, arrays)
        self.step, self.looked = int(facts["step"]), int(facts["looked"])
        self._parts = tuple(facts["parts"])
        self.trace = [tuple(row) for row in take(path, arrays, "trace").tolist()]

    def _fill(self, path: PathLike, arrays: Mapping[str, FloatArray]) -> None:
        for name, target in self.at._asdict().items():
            target[...] = take(path, arrays, name)
        for name in ("theta", "y", "small"):
            getattr(self.best, name)[...] = take(path, arrays, f"best_{name}")
        for name, number in zip(NUMBERS, take(path, arrays, "numbers").tolist(), strict=True):
            setattr(self, name, number)


def _look_after(epoch: int) -> int:
    """The first epoch after `epoch` at whose end there is a look: the same for a run in pieces."""
    goal = FIRST_LOOK
    while goal <= epoch:
        goal = max(goal + 1, int(goal * GROWTH))
    return goal
