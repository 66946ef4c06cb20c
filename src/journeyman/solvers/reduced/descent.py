"""The state of a run of SGD-AL: what the next step needs, and nothing else.

It can be written to a checkpoint and read back; a run continued from there takes the very same
steps. The checkpoint carries a digest of everything the run depends on and is refused elsewhere.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs.weight_set import BOX
from journeyman.errors import InvalidFile
from journeyman.execution import Executor, ranges_of, sum_in_order
from journeyman.problem.surrogate import ReducedWitness, Surrogate
from journeyman.solvers.reduced.kernels import (
    Exact,
    Images,
    Iterate,
    Matched,
    Motion,
    advance,
    advance_incrementally,
)
from journeyman.solvers.reduced.rows import Rows, RowSource
from journeyman.solvers.reduced.step_rules import (
    CONSTANT,
    INVERSE_ROOT,
    REGRET,
    SQUARED_WEIGHT,
    WEIGHT,
)
from journeyman.storage import PathLike, digest, load_arrays, save_arrays, take

SCHEMA_VERSION = 2
TRACE_FIELDS = ("step", "seconds", "loss", "matching", "negativity", "flow", "bound")


@dataclass(eq=False)
class SubgradientState:
    """Iterate, visit counts of the rows, random stream, number of steps, and the trace so far."""

    iterate: Iterate
    matched: Matched
    source: RowSource
    rng: np.random.Generator
    step: int
    trace: list[tuple[float, ...]]

    @classmethod
    def fresh(cls, surrogate: Surrogate, seed: int) -> "SubgradientState":
        """theta_1 = 0, as in the paper."""
        reduced = surrogate.reduced
        size = reduced.num_features
        iterate = Iterate(
            np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size),
            np.zeros(4), np.zeros(reduced.matching_target.size),
            np.zeros(reduced.budget_limits.size),
        )  # fmt: skip
        count = reduced.matching_target.size
        matched = Matched(
            np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(size), np.zeros(count)
        )
        rng = np.random.Generator(np.random.PCG64(seed))
        return cls(iterate, matched, RowSource.of(surrogate), rng, 0, [])

    @property
    def average(self) -> FloatArray:
        """The weighted average of the iterates."""
        total = self.iterate.totals[WEIGHT]
        return np.asarray(self.iterate.weighted_theta / (total if total > 0 else 1.0))

    @property
    def witness(self) -> ReducedWitness:
        """The average of what was active: of the cost weights, and of each row when it was seen."""
        total = max(self.iterate.totals[WEIGHT], np.finfo(float).tiny)
        flow, pairs = self.source.flow, self.source.pairs
        return ReducedWitness(
            self.iterate.weighted_costs / total,
            _share_active(flow),
            _share_active(pairs),
            self.iterate.weighted_budgets / total,
        )

    @property
    def is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in self.iterate)

    def save(self, path: PathLike, identity: str) -> None:
        """Write a checkpoint, atomically."""
        facts = {"rng": self.rng.bit_generator.state, "step": self.step, "identity": identity}
        save_arrays(path, "subgradient-state", SCHEMA_VERSION, self._arrays(), **facts)

    def restore(self, path: PathLike, identity: str) -> None:
        """Continue from a checkpoint of the same run; the state's arrays are overwritten."""
        facts, arrays = load_arrays(path, "subgradient-state", SCHEMA_VERSION)
        if facts.get("identity") != identity:
            raise InvalidFile(
                f"{path} is the checkpoint of another run: world, costs, expert, features, seed or "
                "settings differ",
                "Give another path, or remove the file to start anew",
            )
        trace = take(path, arrays, "trace")
        for name, target in self._moving_arrays().items():
            target[...] = take(path, arrays, name)
        self.source.pairs.recount(take(path, arrays, "pairs"))
        self.source.flow.recount(take(path, arrays, "flow"))
        self.trace = [tuple(row) for row in trace.tolist()]
        self.step = int(facts["step"])
        self.rng.bit_generator.state = facts["rng"]

    def _arrays(self) -> dict[str, FloatArray]:
        counts = {"pairs": self.source.pairs.counts, "flow": self.source.flow.counts}
        trace = np.array(self.trace, dtype=float).reshape(-1, len(TRACE_FIELDS))
        return {**self._moving_arrays(), **counts, "trace": trace}

    def _moving_arrays(self) -> dict[str, FloatArray]:
        matched = {f"matched_{name}": part for name, part in self.matched._asdict().items()}
        return {**self.iterate._asdict(), **matched}


def _share_active(rows: Rows) -> FloatArray:
    seen, active = rows.counts[:, 0], rows.counts[:, 1]
    return np.divide(active, seen, out=np.zeros_like(seen), where=seen > 0)


def identity_of(surrogate: Surrogate, settings: str, seed: int) -> str:
    """A digest of everything that decides which steps a run takes."""
    reduced = surrogate.reduced
    world = reduced.problem.world
    return digest(
        world.transition, world.initial, world.discount, reduced.problem.cost_matrix,
        reduced.matching_target, reduced.budget_rows, reduced.budget_limits, reduced.pair_rows,
        reduced.floor, json.dumps(settings), seed,
    )  # fmt: skip


def exists(path: PathLike | None) -> bool:
    """Whether there is a checkpoint to continue from."""
    return path is not None and Path(path).exists()


# The steps of SGD-AL in an explicit world: what they are made of, and the loop that suits them.
#
# Everything here follows from the surrogate and the `Motion`; a `SubgradientState` is what the
# steps change.


class SubgradientSteps:
    """Takes steps on the states of one surrogate."""

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

    def _is_incremental(self, source: RowSource) -> bool:
        """Whether the form without the O(num_costs d) term applies."""
        plain = self.motion.batch == 1 and not self.motion.nonnegative
        scalar = self.motion.rule in (CONSTANT, INVERSE_ROOT)
        unbudgeted = self.exact.limits.size == 0
        matched = self.exact.kind == BOX and not self.exact.centre.any()
        return plain and scalar and unbudgeted and source.is_dense and matched

    def take(self, state: SubgradientState, count: int) -> None:
        """`count` steps, on rows drawn by the state's own stream."""
        drawn = state.source.draw(state.rng, count * self.motion.batch)
        tables = state.source.pairs, state.source.flow
        if self.images is None:
            advance(state.step, *drawn, *tables, self.exact, self.motion, state.iterate)
        else:
            advance_incrementally(
                state.step, *drawn, *tables, self.exact, self.motion, self.images, state.iterate,
                state.matched,
            )  # fmt: skip
        state.step += count


def _images(surrogate: Surrogate) -> Images:
    """What the rows of Phi and D, and G itself, look like under G."""
    reduced = surrogate.reduced
    G = reduced.matching
    return Images(
        np.array(reduced.pair_rows @ G.T, order="C"),
        np.array(reduced.flow_rows @ G.T, order="C"),
        np.array(G @ G.T, order="C"),
    )


# Replicas of SGD-AL: independent descents on one loss, averaged.
#
#     theta_hat = (1/K) sum_k theta_hat_k,        replica k draws rows from a seed of its own
#
# All that a descent keeps of its steps are sums: of omega_t theta_t, omega_t g_t, <g_t, theta_t>,
# and of what was active when a row was seen. Added up over the replicas they are sums over K T
# steps, and average, dual point and bounds are read off them as for one descent.
#
# *Guarantee*: the loss is convex, so L(theta_hat) <= (1/K) sum_k L(theta_hat_k), in every run. The
# dual point is repaired whatever it was made from. The realised-regret bound holds for the sums:
# one replica after the other, the errors of the sampled subgradients are still a martingale. What K
# replicas of T steps average out is noise, by sqrt(K); their regret stays that of T steps, so one
# descent of K T steps has the better bound. Replicas are for workers that would otherwise be idle.
#
# *Cost*: of a round, K T steps on the executor, and for each replica the tables of rows anew.

ROUND = 1 << 16
"""Steps between two looks at the clock, at most; workers build their tables once a round."""
BLOCK = 2048
"""Steps whose rows are drawn at a time."""


class Replica(NamedTuple):
    """What a descent carries from one round to the next."""

    iterate: Iterate
    matched: Matched
    pair_counts: FloatArray
    flow_counts: FloatArray
    stream: Any
    """The state of its bit generator."""
    step: int

    @classmethod
    def of(cls, state: SubgradientState) -> "Replica":
        counts = state.source.pairs.counts, state.source.flow.counts
        stream = state.rng.bit_generator.state
        return cls(state.iterate, state.matched, *counts, stream, state.step)

    def resumed(self, surrogate: Surrogate) -> SubgradientState:
        """A state to take steps on; the replica itself is left as it is."""
        state = SubgradientState.fresh(surrogate, 0)
        for target, kept in zip(
            (*state.iterate, *state.matched), (*self.iterate, *self.matched), strict=True
        ):
            target[...] = kept
        state.source.pairs.recount(self.pair_counts)
        state.source.flow.recount(self.flow_counts)
        state.rng.bit_generator.state = self.stream
        state.step = self.step
        return state


class Replicas:
    """Descents that go on together; `pooled` is the state with the sums of all."""

    def __init__(
        self,
        surrogate: Surrogate,
        motion: Motion,
        pooled: SubgradientState,
        seeds: Sequence[np.random.SeedSequence],
        executor: Executor,
    ) -> None:
        """`pooled` has taken no step yet."""
        self.surrogate, self.motion, self.pooled, self.executor = (
            surrogate, motion, pooled, executor,
        )  # fmt: skip
        streams = [np.random.PCG64(seed).state for seed in seeds]
        self.replicas = [Replica.of(pooled)._replace(stream=stream) for stream in streams]

    def take(self, count: int) -> None:
        """`count` steps of every replica."""
        shared = self.surrogate, self.motion, count
        self.replicas = self.executor.map(_advanced, self.replicas, shared=shared)
        sums = pooled([replica.iterate for replica in self.replicas])
        for target, total in zip(self.pooled.iterate, sums, strict=True):
            target[...] = total
        source = self.pooled.source
        source.pairs.recount(sum_in_order(replica.pair_counts for replica in self.replicas))
        source.flow.recount(sum_in_order(replica.flow_counts for replica in self.replicas))
        self.pooled.step += count


def pooled(iterates: Sequence[Iterate]) -> Iterate:
    """The sums of all replicas, in the order of the replicas."""
    return Iterate(*(sum_in_order(parts) for parts in zip(*iterates, strict=True)))


def engine_of(replicas: int) -> str:
    """How an answer names its solver."""
    return "SGD-AL" if replicas == 1 else f"SGD-AL, {replicas} replicas"


def _advanced(replica: Replica, shared: tuple[Surrogate, Motion, int]) -> Replica:
    """The replica some steps later."""
    surrogate, motion, count = shared
    state = replica.resumed(surrogate)
    steps = SubgradientSteps(surrogate, state.source, motion)
    for first, last in ranges_of(count, BLOCK):
        steps.take(state, last - first)
    return Replica.of(state)


# What a run of a stochastic method proves about its own optimisation error.
#
# Deterministic: L(average) minus the lower bound of a dual point (see `ReducedSolution`).
# In probability, for any step rule (expert data fixed, weights w_t fixed in advance): with
# probability at least 1 - delta
#
#     L(average) - min L <= [sum_t w_t <g_t, theta_t> + rho |sum_t w_t g_t|_2
#                            + 2 rho sigma sqrt(2 log(1/delta) sum_t w_t^2)] / sum_t w_t
#
# the realised regret plus the noise of the estimates. A run that may end at any of its evaluations,
# because it is accurate enough there, pays for having looked: at the j-th one delta/(j (j + 1))
# takes the place of delta. The clock and Ctrl-C are taken to know nothing of the draws. It often
# exceeds 2N/(1 - discount) and is then called vacuous.


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


@dataclass(frozen=True)
class Optimisation:
    """The trace of a run and the bound in probability on its optimisation error."""

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
        verdict = ", vacuous" if self.is_vacuous else ""
        return (
            f"{self.steps} steps; in probability {1 - self.failure_probability:g} the error is at "
            f"most {self.regret_bound:.4g} (realised regret {self.realised_regret:.4g}, noise "
            f"{self.noise:.4g}{verdict})"
        )


def optimisation_of(
    surrogate: Surrogate,
    state: SubgradientState,
    radius: float,
    batch: int,
    failure_probability: float,
    looks: int = 0,
) -> Optimisation:
    """Read the figures off the state of a run that could have ended at `looks` evaluations."""
    totals = state.iterate.totals
    weight = max(float(totals[WEIGHT]), np.finfo(float).tiny)
    regret = totals[REGRET] + radius * np.linalg.norm(state.iterate.weighted_gradient)
    share = failure_probability / (looks * (looks + 1) if looks else 1)
    spread = np.sqrt(2 * np.log(1 / share) * totals[SQUARED_WEIGHT])
    noise = 2 * radius * surrogate.noise_bound(batch, batch) * spread
    rows = [dict(zip(TRACE_FIELDS, row, strict=True)) for row in state.trace]
    return Optimisation(
        state.step,
        tuple(TracePoint(int(row.pop("step")), **row) for row in rows),
        float(regret / weight),
        float(noise / weight),
        failure_probability,
        surrogate.reduced.problem.gap_scale,
    )
