"""What planning repeats: a Bellman step, and a rough evaluation of the policy that it finds.

    greedy      TV = min over a of c + discount P V, and the pair of each state that attains it
    evaluate    V with a small span of c_pi + discount P_pi V - V, the residual

The span, max - min, decides: adding k to V adds (discount - 1) k to all residuals, so a residual
that is the same everywhere is no error of the policy, and is removed where it is in the way.

An evaluation is given an *effort*, counted in products with the policy's matrix. With little of it
an evaluation sweeps, V = c_pi + discount P_pi V, which makes planning modified policy iteration;
with more it sweeps while every sweep takes a good part off the span (a world that mixes fast needs
nothing else), and then BiCGSTAB takes over.

Loops are compiled (`system_kernels`), except in small worlds, where NumPy's and SciPy's do the same
(`plain_steps`) and up to `DENSE_STATES` states an evaluation is a solution: the first plan in a
small world then needs no compiler, which would take seconds. The size of the world alone decides,
so bits do not depend on what was compiled before.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.policy import plain_steps
from journeyman.progress import out_of_time
from journeyman.world import World

DENSE_STATES = 128
"""Beyond, BLAS takes several threads for half of a solution, and longer on a busy machine."""
PLAIN_STATES, PLAIN_ENTRIES = 1000, 16_000
"""Of a world in which nothing is compiled."""
QUICK = 0.7
"""Sweeps go on, instead of BiCGSTAB, while they leave at most this part of the span."""
MOST_SWEEPS = 60
"""With no more effort than this an evaluation consists of sweeps."""
STEP_SWEEPS = 3
"""An iteration of BiCGSTAB takes as long as so many sweeps."""
LEAST_EFFORT, OVERHEAD = 8, 60_000
"""What an evaluation is worth at least: the transitions that greedy goes through, and as many as
could be gone through while an iteration is prepared, in sweeps over the policy's own."""
WIDE, SAFE = 8.0, 0.5
"""The span of a residual is about so many times its root mean square, by which BiCGSTAB goes; where
it was more, BiCGSTAB is asked again for what should do, and for a bit more."""
ATTEMPTS = 4
MISSED = 2.0
"""Times what was wanted: if BiCGSTAB leaves more, it is not used. Values with a residual r are off
by up to r/(1 - discount), here too high and there too low, and greedy would follow that; those of
sweeps are wrong in one direction."""
TINY = float(np.finfo(float).tiny)
MOST_EFFORT = 3000
"""An evaluation that needs more is a case for factors."""
LONG, PIECE = 1 << 19, 25
"""Unknowns from which iterative methods look at the clock, and after how many iterations."""
BLOCK_ITERATIONS = 1000
"""Of an iterative method that is not given another number."""


def is_small(matrix: SparseMatrix) -> bool:
    """Whether a transition matrix is so small that compiled code takes longer to load than it
    saves."""
    return bool(matrix.nnz <= PLAIN_ENTRIES and matrix.shape[1] <= PLAIN_STATES)


def hurried(size: int) -> bool:
    """Whether the time is over for work on so many unknowns: a little work is done all the same."""
    return size > LONG and out_of_time()


def in_pieces(solved: Callable[[int], int], size: int, most: int = BLOCK_ITERATIONS) -> int:
    """Call an iterative method, which is given how often it may iterate and returns how often it
    did; where it works on many numbers again and again, as long as there is time."""
    if size <= LONG:
        return solved(most)
    taken = 0
    while taken < most:
        piece = min(PIECE, most - taken)
        done = solved(piece)
        taken += done
        if done < piece or out_of_time():
            break
    return taken


def least_effort(world: World) -> int:
    """Sweeps that cost about as much as the rest of an iteration of policy iteration."""
    entries = world.transition.nnz
    swept = entries * world.num_states / world.num_pairs
    return LEAST_EFFORT + int((entries + OVERHEAD) / swept)


class Steps:
    """Bellman steps and evaluations of one world."""

    def __init__(self, world: World) -> None:
        self.world, self.plain = world, is_small(world.transition)
        self.dense = world.num_states <= DENSE_STATES
        self.loops: Any = plain_steps
        self.system: Any = plain_steps.PlainSystem(world.continuation, world.discount)
        if not self.plain:
            from journeyman.policy import system_kernels
            from journeyman.policy.policy_evaluation import compiled_system

            self.loops, self.system = system_kernels, compiled_system(*self.system)

    def _chosen(self, choice: IntArray) -> Any:
        """The system of a policy."""
        if self.plain:
            choose = plain_steps.full_rows if self.dense else plain_steps.choose_rows
            return choose(self.system, choice)
        from journeyman.policy.policy_evaluation import locked

        return locked(self.loops.choose_rows(self.system, choice))

    def greedy(self, cost: FloatArray, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """TV, and the first pair of each state that attains it."""
        if self.plain:
            return plain_steps.greedy_step(self.system, self.world.pairs, cost, values)
        best = np.empty(self.world.num_states)
        choice = np.empty(self.world.num_states, dtype=np.int64)
        offsets = self.world.pairs.offsets
        self.loops.greedy_step(self.system, offsets, cost, values, best, choice)
        return best, choice

    def evaluate(
        self, choice: IntArray, right: FloatArray, guess: FloatArray, wanted: float, effort: int
    ) -> tuple[FloatArray, float]:
        """Values with a residual of a span of about `wanted`, if that can be had by `effort`, and
        a bound on the span. The middle of the residual is at zero."""
        loops, h = self.loops, self.world.effective_horizon
        system = self._chosen(choice)
        following, used, quick = np.empty_like(guess), 0, True
        x = plain_steps.solved(system, right) if self.plain and self.dense else guess.copy()
        left = loops.sweep(system, right, x, following)
        while left > wanted and used < effort and (quick or effort <= MOST_SWEEPS):
            x, following = following, x
            before, left = left, loops.sweep(system, right, x, following)
            used, quick = used + 1, left <= QUICK * before
            if hurried(x.size):
                used = effort
        swept = x, following, left
        goal = wanted * np.sqrt(x.size) / WIDE
        while left > wanted and used < effort:
            most = max(1, (effort - used) // STEP_SWEEPS)
            tried, ahead = x + middle(following - x) * h, np.empty_like(x)
            solved = partial(loops.bicgstab, system, right, tried, goal)
            taken = in_pieces(solved, x.size, most)
            used += effort if hurried(x.size) else max(STEP_SWEEPS * taken, effort // ATTEMPTS)
            finite = bool(np.isfinite(tried).all())
            now = loops.sweep(system, right, tried, ahead) if finite else np.inf
            if now >= left:  # BiCGSTAB does not fall steadily, and may not converge at all
                break
            x, following, left = tried, ahead, now
            goal *= SAFE * wanted / max(left, wanted, TINY)
        if not left <= MISSED * wanted:
            x, following, left = swept
        x = following + self.world.discount * middle(following - x) * h
        return x, float(left)


def middle(values: FloatArray) -> float:
    """(min + max)/2."""
    return float(values.min() + values.max()) / 2
