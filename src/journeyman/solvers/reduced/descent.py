"""Descents of SGD-AL: what the next step needs, the steps, replicas, and what a run proves.

A state can be written to a checkpoint and read back, that of a single descent and those of its
replicas; a run continued from there takes the very same steps. The checkpoint carries a digest of
what the run depends on and is refused elsewhere. Code is not part of the digest: of a stepped world
and its features it holds what they answered for the rows that estimate the loss.

Replicas are independent descents on one loss, averaged:

    theta_hat = (1/K) sum_k theta_hat_k,        replica k draws rows from a seed of its own

All that a descent keeps of its steps are sums: of omega_t theta_t, omega_t g_t, <g_t, theta_t>, and
of what was active when a row was seen. Added up over the replicas they are sums over K T steps, and
average, dual point and bounds are read off them as for one descent.

*Guarantee*: the loss is convex, so L(theta_hat) <= (1/K) sum_k L(theta_hat_k), in every run. The
dual point is repaired whatever it was made from. The realised-regret bound holds for the sums: one
replica after the other, the errors of the sampled subgradients are still a martingale. What K
replicas of T steps average out is noise, by sqrt(K); their regret stays that of T steps, so one
descent of K T steps has the better bound. Replicas are for workers that would otherwise be idle.

*Cost*: of a round, K T steps on the executor, and for each replica the tables of rows anew.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs.cost_class import BOX
from journeyman.errors import InvalidFile
from journeyman.execution import Executor, Serial, sum_in_order
from journeyman.problem.drawn import FRESH, DrawnReduced
from journeyman.problem.surrogate import ReducedWitness, Surrogate
from journeyman.solvers.reduced import plain_descent
from journeyman.solvers.reduced.plain_descent import Exact, Images, Iterate, Matched, Motion
from journeyman.solvers.reduced.rows import (
    ALL,
    Drawn,
    DrawnBlocks,
    Rows,
    RowSource,
    RowTables,
    source_of,
)
from journeyman.solvers.reduced.step_rules import (
    CONSTANT,
    INVERSE_ROOT,
    REGRET,
    SQUARED_WEIGHT,
    WEIGHT,
)
from journeyman.storage import PathLike, digest, load_arrays, save_arrays, take

KIND, SCHEMA_VERSION = "subgradient-state", 3
TRACE_FIELDS = ("step", "seconds", "loss", "matching", "negativity", "flow", "bound", "error")
ROUND = 1 << 16
"""Steps of replicas between two looks at the clock, at most; workers build their tables once a
round."""
IDENTIFYING_ROWS = 64
"""Rows of a stepped world whose content identifies a run."""

Packed: TypeAlias = tuple[dict[str, FloatArray], dict[str, Any]]
"""The arrays and the other facts of a state."""


@dataclass(eq=False)
class SubgradientState:
    """Iterate, rows to learn from, and number of steps: all that the next step needs."""

    iterate: Iterate
    matched: Matched
    source: RowSource
    step: int = 0

    @classmethod
    def fresh(cls, surrogate: Surrogate, source: RowSource) -> "SubgradientState":
        """theta_1 = 0, as in the paper."""
        size, count = surrogate.num_features, surrogate.reduced.matching_target.size
        budgets = surrogate.reduced.budget_limits.size
        sizes = {"totals": 4, "weighted_costs": count, "weighted_budgets": budgets}
        iterate = Iterate(**{name: np.zeros(sizes.get(name, size)) for name in Iterate._fields})
        sizes = {"slope": size}
        matched = Matched(**{name: np.zeros(sizes.get(name, count)) for name in Matched._fields})
        return cls(iterate, matched, source)

    @property
    def average(self) -> FloatArray:
        """The weighted average of the iterates."""
        total = self.iterate.totals[WEIGHT]
        return np.asarray(self.iterate.weighted_theta / (total if total > 0 else 1.0))

    @property
    def witness(self) -> ReducedWitness:
        """The average of what was active: of the cost weights, and of each row when it was seen."""
        assert isinstance(self.source, RowTables)
        total = max(self.iterate.totals[WEIGHT], np.finfo(float).tiny)
        return ReducedWitness(
            self.iterate.weighted_costs / total,
            _share_active(self.source.flow),
            _share_active(self.source.pairs),
            self.iterate.weighted_budgets / total,
        )

    @property
    def is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in self.iterate)

    @property
    def packed(self) -> Packed:
        """To be stored, or sent to a worker."""
        arrays, facts = self.source.state
        return {**self._moving, **arrays}, {**facts, "step": self.step}

    def unpack(self, arrays: Mapping[str, FloatArray], facts: Mapping[str, Any]) -> None:
        """Go on from a `packed` state, which is left as it is."""
        for name, target in self._moving.items():
            target[...] = arrays[name]
        self.source.put_back(arrays, facts)
        self.step = int(facts["step"])

    @property
    def _moving(self) -> dict[str, FloatArray]:
        matched = {f"matched_{name}": part for name, part in self.matched._asdict().items()}
        return {**self.iterate._asdict(), **matched}


def _share_active(rows: Rows) -> FloatArray:
    seen, active = rows.counts[:, 0], rows.counts[:, 1]
    return np.divide(active, seen, out=np.zeros_like(seen), where=seen > 0)


class SubgradientSteps:
    """Takes steps on the states of one surrogate, by the loop that suits them."""

    def __init__(self, surrogate: Surrogate, source: RowSource, motion: Motion) -> None:
        self.motion = motion
        reduced = surrogate.reduced
        form = reduced.problem.cost_class.kernel_form(reduced.matching_target.size)
        self.exact = Exact(
            form.code,
            np.array(reduced.matching, order="C"),
            np.array(reduced.matching_target),
            np.array(form.scale),
            np.array(form.centre),
            np.array(form.points, order="C"),
            np.array(reduced.budget_rows, order="C"),
            np.array(reduced.budget_limits),
            float(surrogate.penalties.budgets),
        )
        self.images = _images(surrogate) if self._is_incremental(source) else None
        narrow = self.images is None and surrogate.num_features <= plain_descent.PLAIN_FEATURES
        self.plain_steps = plain_descent.PLAIN_STEPS if narrow else 0

    def _is_incremental(self, source: RowSource) -> bool:
        """Whether the form without the O(num_costs d) term applies."""
        plain = self.motion.batch == 1 and not self.motion.nonnegative
        scalar = self.motion.rule in (CONSTANT, INVERSE_ROOT)
        unbudgeted = self.exact.limits.size == 0
        matched = self.exact.kind == BOX and not self.exact.centre.any()
        return plain and scalar and unbudgeted and source.is_dense and matched

    def take(self, state: SubgradientState, count: int) -> None:
        """`count` steps, on rows of the state's own source."""
        for pair_at, state_at, pairs, flow in state.source.draw(state.step, count):
            plain = min(max(self.plain_steps - state.step, 0) * self.motion.batch, pair_at.size)
            for part in (slice(plain), slice(plain, None)):
                if pair_at[part].size:
                    self._advance(state, (pair_at[part], state_at[part], pairs, flow))
                    state.step += pair_at[part].size // self.motion.batch

    def _advance(self, state: SubgradientState, drawn: Drawn) -> None:
        if state.step < self.plain_steps:
            plain_descent.advance(state.step, *drawn, self.exact, self.motion, state.iterate)
            return
        from journeyman.solvers.reduced import kernels

        if self.images is None:
            kernels.advance(state.step, *drawn, self.exact, self.motion, state.iterate)
        else:
            kernels.advance_incrementally(
                state.step, *drawn, self.exact, self.motion, self.images, state.iterate,
                state.matched,
            )  # fmt: skip


def _images(surrogate: Surrogate) -> Images:
    """What the rows of Phi and D, and G itself, look like under G."""
    reduced = surrogate.reduced
    G = reduced.matching
    return Images(
        np.array(reduced.pair_rows @ G.T, order="C"),
        np.array(reduced.flow_rows @ G.T, order="C"),
        np.array(G @ G.T, order="C"),
    )


class Descent:
    """One descent, or replicas whose sums `state` holds; and the trace of both."""

    def __init__(
        self,
        surrogate: Surrogate,
        motion: Motion,
        seed: int,
        replicas: int = 1,
        executor: Executor | None = None,
    ) -> None:
        self.surrogate, self.motion, self.seed = surrogate, motion, seed
        self.executor = Serial() if executor is None else executor
        source = source_of(surrogate, motion.batch, seed, None, executor)
        self.state = SubgradientState.fresh(surrogate, source)
        self.steps = SubgradientSteps(surrogate, source, motion)
        self.replicas: list[Packed | None] = [None] * (replicas if replicas > 1 else 0)
        self.trace: list[tuple[float, ...]] = []

    @property
    def stride(self) -> int:
        """How many steps are best taken at a time."""
        if not self.replicas:
            return self.state.source.stride(self.state.step)
        return ALL if isinstance(self.state.source, DrawnBlocks) else ROUND

    def take(self, count: int) -> None:
        """`count` steps, of every replica."""
        if not self.replicas:
            self.steps.take(self.state, count)
            return
        shared = self.surrogate, self.motion, self.seed, count
        tasks = list(enumerate(self.replicas))
        self._pool(self.executor.map(_advanced, tasks, shared=shared))

    def _pool(self, replicas: list[Packed]) -> None:
        """The sums of all replicas, in the order of the replicas."""
        self.replicas = list(replicas)
        state, source = self.state, self.state.source
        parts = [arrays for arrays, _ in replicas]
        for name, target in state.iterate._asdict().items():
            target[...] = sum_in_order(part[name] for part in parts)
        if isinstance(source, RowTables):
            source.pairs.recount(sum_in_order(part["pairs"] for part in parts))
            source.flow.recount(sum_in_order(part["flow"] for part in parts))
        state.step = replicas[0][1]["step"]

    def save(self, path: PathLike, identity: str) -> None:
        """Write a checkpoint, atomically."""
        arrays, facts = self.state.packed
        if self.replicas:
            kept = [one for one in self.replicas if one is not None]
            arrays = {
                f"{k}_{name}": part for k, one in enumerate(kept) for name, part in one[0].items()
            }
            facts = {"step": self.state.step, "replicas": [facts for _, facts in kept]}
        trace = np.array(self.trace, dtype=float).reshape(-1, len(TRACE_FIELDS))
        save_arrays(
            path, KIND, SCHEMA_VERSION, {**arrays, "trace": trace},
            **facts, identity=identity,
        )  # fmt: skip

    def restore(self, path: PathLike, identity: str) -> None:
        """Continue from a checkpoint of the same run."""
        facts, arrays = load_arrays(path, KIND, SCHEMA_VERSION)
        if facts.get("identity") != identity:
            raise InvalidFile(
                f"{path} is the checkpoint of another run: world, costs, expert, features, seed or "
                "settings differ",
                "Give another path, or remove the file to start anew",
            )
        trace = take(path, arrays, "trace")
        names = self.state.packed[0]
        if self.replicas:
            self._pool(
                [
                    ({name: take(path, arrays, f"{k}_{name}") for name in names}, part)
                    for k, part in enumerate(facts["replicas"])
                ]
            )
        else:
            self.state.unpack({name: take(path, arrays, name) for name in names}, facts)
        self.trace = [tuple(row) for row in trace.tolist()]


def _advanced(
    task: tuple[int, Packed | None], shared: tuple[Surrogate, Motion, int, int]
) -> Packed:
    """A replica some steps later; what it was is left as it is."""
    (number, packed), (surrogate, motion, seed, count) = task, shared
    source = source_of(surrogate, motion.batch, seed, number, None)
    state = SubgradientState.fresh(surrogate, source)
    if packed is not None:
        state.unpack(*packed)
    steps, goal = SubgradientSteps(surrogate, source, motion), state.step + count
    while state.step < goal:
        steps.take(state, min(source.stride(state.step), goal - state.step))
    return state.packed


def identity_of(surrogate: Surrogate, settings: str, seed: int) -> str:
    """A digest of everything that decides which steps a run takes."""
    reduced, problem = surrogate.reduced, surrogate.reduced.problem
    if isinstance(reduced, DrawnReduced):
        rows = reduced.drawn(IDENTIFYING_ROWS, FRESH, 0)
        content: tuple[Any, ...] = (
            problem.world.num_states, problem.world.num_actions, problem.world.discount,
            repr(problem.cost_class), reduced.matching, reduced.matching_target,
            reduced.budget_rows, reduced.budget_limits, *rows,
        )  # fmt: skip
    else:
        world = problem.world
        content = (
            world.transition, world.initial, world.discount, problem.cost_matrix,
            reduced.matching_target, reduced.budget_rows, reduced.budget_limits,
            reduced.pair_rows, reduced.floor,
        )  # fmt: skip
    return digest(*content, json.dumps(settings), seed)


def engine_of(replicas: int) -> str:
    """How an answer names its solver."""
    return "SGD-AL" if replicas == 1 else f"SGD-AL, {replicas} replicas"


@dataclass(frozen=True)
class TracePoint:
    """A moment of a run: the average so far and what is proven of the least loss."""

    step: int
    seconds: float
    loss: float
    matching: float
    negativity: float
    flow: float
    bound: float
    error: float = 0.0
    """The standard error of the loss where it is an estimate."""


@dataclass(frozen=True)
class Optimisation:
    """The trace of a run and the bound in probability on its optimisation error.

    For any step rule (expert data fixed, weights w_t fixed in advance), with probability at least
    1 - delta

        L(average) - min L <= [sum_t w_t <g_t, theta_t> + rho |sum_t w_t g_t|_2
                               + 2 rho sigma sqrt(2 log(1/delta) sum_t w_t^2)] / sum_t w_t

    the realised regret plus the noise of the estimates. A run that may end at any of its
    evaluations, because it is accurate enough there, pays for having looked: at the j-th one
    delta/(j (j + 1)) takes the place of delta. The clock and Ctrl-C are taken to know nothing of
    the draws. It often exceeds 2N/(1 - discount) and is then vacuous.

    In a stepped world L is the loss with the matrices G and C that the steps use; where these are
    means over drawn pairs, their own error is not part of the bound.

    `StochasticPrimalDual` proves its error instead: the failure probability is 0, the "regret" what
    is proven (in a stepped world, of the loss on the drawn rows).
    """

    steps: int
    trace: tuple[TracePoint, ...]
    realised_regret: float
    noise: float
    failure_probability: float
    gap_scale: float

    @property
    def regret_bound(self) -> float:
        return self.realised_regret + self.noise

    @property
    def is_vacuous(self) -> bool:
        return self.regret_bound >= self.gap_scale

    def __str__(self) -> str:
        strength = ", vacuous" if self.is_vacuous else ""
        if not self.failure_probability:
            return f"{self.steps} steps; the error is at most {self.regret_bound:.4g}{strength}"
        return (
            f"{self.steps} steps; in probability {1 - self.failure_probability:g} the error is at "
            f"most {self.regret_bound:.4g} (realised regret {self.realised_regret:.4g}, noise "
            f"{self.noise:.4g}{strength})"
        )


def optimisation_of(
    descent: Descent, radius: float, failure_probability: float, looks: int = 0
) -> Optimisation:
    """Of a run that could have ended at `looks` evaluations."""
    state, surrogate, batch = descent.state, descent.surrogate, descent.motion.batch
    totals = state.iterate.totals
    weight = max(float(totals[WEIGHT]), np.finfo(float).tiny)
    regret = totals[REGRET] + radius * np.linalg.norm(state.iterate.weighted_gradient)
    share = failure_probability / (looks * (looks + 1) if looks else 1)
    spread = np.sqrt(2 * np.log(1 / share) * totals[SQUARED_WEIGHT])
    noise = 2 * radius * surrogate.noise_bound(batch, batch) * spread
    rows = [dict(zip(TRACE_FIELDS, row, strict=True)) for row in descent.trace]
    return Optimisation(
        state.step,
        tuple(TracePoint(int(row.pop("step")), **row) for row in rows),
        float(regret / weight),
        float(noise / weight),
        failure_probability,
        surrogate.reduced.problem.gap_scale,
    )
