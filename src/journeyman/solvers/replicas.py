"""Replicas of SGD-AL: independent descents on one loss, averaged.

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

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.execution import Executor, ranges_of, sum_in_order
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.incremental_kernel import Matched
from journeyman.solvers.subgradient_kernel import Iterate, Motion
from journeyman.solvers.subgradient_state import SubgradientState
from journeyman.solvers.subgradient_steps import SubgradientSteps

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
