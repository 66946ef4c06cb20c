"""Ng and Russell's linear program: a cost under which the expert's policy is optimal, by a margin.

    maximise over w      sum_x min over rivals a of A_w(x, a) - penalty sum_i |w_i|/scale_i
    subject to           A_w(x, a) >= 0 in every pair,   |w_i| <= scale_i

where A_w(x, a) = Q_w(x, a) - sum_b pi_E(b | x) Q_w(x, b) is what a step aside from the expert costs
more under c_w = Psi w (linear in w: `action_values`), and the *rivals* of a state are the actions
that the expert takes less often than its favourite there. This is the paper's program (section 3
when the basis is the identity, 4 otherwise), restated for costs, for ragged action sets and for a
policy that may be random.

The expert is the policy `expert`, or else cloned from the demonstrations; states that they never
visit then ask for nothing, but the clone's uniform law there does enter the action values.

Guarantee. If the log says `optimal`, no policy costs less than the expert under c_w from any state
by more than violation/(1 - discount), where `margin_of` recomputes margins and violation; in every
state whose margin is positive no rival is as good. Of a clone this is true only against policies
that act in unseen states as the clone does: one that does better there may beat it. An expert that
is optimal for some cost of the span is always recognised if its margins add up to more than
rounding (1e-7 of the largest advantage). Zero weights satisfy every constraint, so a program
without a positive margin says nothing: then violations are allowed at twice their size,

    maximise over w      sum over rivals (x, a) of p(A_w(x, a)) - penalty sum_i |w_i|/scale_i

with p(m) = m for m >= 0 and 2 m below as in section 5 of the paper, every rival counting for itself
because beside a random expert some action is always better, and the log says `violated`. If even so
no margin is gained, the log says `degenerate`, `recovered` is zero and the answer's policy is the
expert itself: under no cost at all any policy is optimal. Margins can be zero in single states; an
optimal policy for c_w may then differ there from the expert's, and its gap for the problem's class
is what `answer.value` says.

Cost. One linear solve per cost, one linear program with (pairs x costs) figures or two, one plan.

Reference: Ng and Russell, "Algorithms for inverse reinforcement learning", ICML 2000.
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import BoolArray, FloatArray
from journeyman.policy import Policy, plan
from journeyman.policy.policy_evaluation import advantages
from journeyman.problem import Apprenticeship, Program
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import answer_of, require_apprenticeship
from journeyman.solvers.classics.expert_policy import expert_policy, require_expert_policy
from journeyman.solvers.classics.margin_program import Rivals, penalised, widest_margins
from journeyman.solvers.exact.engines import Result
from journeyman.solvers.hyperparameters import require_not_negative, require_time_limit
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

TOLERANCE = 1e-7
"""Margins and violations up to this share of the largest advantage count as zero."""
ROUNDING = 1e-11
"""So do those below this share of max|psi|/(1 - discount), where only rounding is left."""


@dataclass(frozen=True)
class Margin:
    """How an expert stands against single steps aside, under one cost."""

    total: float
    """Sum over states of what the cheapest rival costs more than the expert."""
    least: float
    """The same in the state where it is smallest; infinite when no state has a rival."""
    violation: float
    """The most that one step aside gains; at 0 the expert is optimal."""

    def __str__(self) -> str:
        return (
            f"sum of margins {self.total:.6g}, least margin {self.least:.6g}, "
            f"largest violation {self.violation:.3g}"
        )


@dataclass(frozen=True)
class InverseProgram:
    """Find a cost that explains the expert's policy, then act optimally for it.

    Args:
        expert: the expert's policy; by default cloned from the demonstrations.
        penalty: weight of sum_i |w_i|/scale_i against the sum of margins; more gives simpler costs.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2, randomness=0)
    >>> demos = jm.record(world, expert, trajectories=20, horizon=40, seed=0)
    >>> answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.InverseProgram(expert))
    >>> answer.log.split(":")[0], bool(np.abs(answer.recovered).max() == 1.0)
    ('optimal', True)
    """

    expert: Policy | None = None
    penalty: float = 0.0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_expert_policy(self.expert)
        require_not_negative("penalty", self.penalty)
        require_time_limit(self.time_limit)

    def run(self, problem: Program, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        task = require_apprenticeship(problem, "InverseProgram")
        known = expert_policy(task, self.expert, "InverseProgram")
        table = advantages(task.world, known.policy, task.cost_matrix)
        explained = self._explain(task, rivals_of(known.policy, table, known.seen), table, watch)
        weights, verdict, result, programs = explained
        margin = _margin(known.policy, table @ weights, known.seen)
        best = plan(task.world, task.cost_of(weights)).policy if weights.any() else known.policy
        status = Status.CONVERGED if result.status is Status.OPTIMAL else result.status
        return answer_of(
            task, best, status, engine=result.engine, recovered=weights,
            work=Work(iterations=programs, forward_solves=int(weights.any())),
            seconds=time.perf_counter() - started, log=f"{verdict}: {margin}; {known.source}",
        )  # fmt: skip

    def _explain(
        self, problem: Apprenticeship, rivals: Rivals, table: FloatArray, watch: Watch
    ) -> tuple[FloatArray, str, Result, int]:
        """Weights, what they are, the engine's result, and the number of programs."""
        scale = problem.cost_class.scaling(problem.basis.num_costs)
        noise = _noise(problem, table, scale)
        weights, result = widest_margins(rivals, scale, self.penalty, watch, strict=True)
        if rivals.margins(weights).sum() > noise and rivals.violation(weights) <= noise:
            return weights, "optimal", result, 1
        if watch.must_stop or result.status is not Status.OPTIMAL:
            return weights, "stopped", result, 1
        nothing, programs = np.zeros_like(weights), 2
        if self.penalty > 0:
            weights, _ = widest_margins(rivals, scale, 0.0, watch, strict=True)
            if rivals.margins(weights).sum() > noise and rivals.violation(weights) <= noise:
                words = "degenerate, because no margin is worth the penalty"
                return nothing, words, result, programs
            programs += 1
        each = rivals.each()
        weights, result = widest_margins(each, scale, self.penalty, watch, strict=False)
        done = result.status is Status.OPTIMAL and not watch.must_stop
        if penalised(each.margins(weights)) > noise:
            return weights, "violated" if done else "stopped", result, programs
        return nothing, "degenerate" if done else "stopped", result, programs


def margin_of(problem: Apprenticeship, expert: Policy, weights: ArrayLike) -> Margin:
    """How a policy stands against single steps aside under c_w, recomputed from the data."""
    cost = problem.cost_of(np.asarray(weights, dtype=float))[:, np.newaxis]
    aside = advantages(problem.world, expert, cost)[:, 0]
    return _margin(expert, aside, np.ones(problem.world.num_states, dtype=bool))


def rivals_of(expert: Policy, table: FloatArray, seen: BoolArray) -> Rivals:
    """The steps aside that must not pay, and those among them that make up a state's margin."""
    is_rival, known = _rival_pairs(expert, seen), seen[expert.pairs.states]
    states, group = np.unique(expert.pairs.states[is_rival], return_inverse=True)
    taken = known & ~is_rival & (expert.per_pair < 1.0)
    return Rivals(table[is_rival], group, states.size, table[taken])


def _rival_pairs(expert: Policy, seen: BoolArray) -> BoolArray:
    """Actions that are taken less often than the favourite of their state."""
    favourite = expert.pairs.spread(-expert.pairs.smallest(-expert.per_pair))
    return np.asarray(seen[expert.pairs.states] & (expert.per_pair < favourite))


def _margin(expert: Policy, aside: FloatArray, seen: BoolArray) -> Margin:
    is_rival = _rival_pairs(expert, seen)
    least = expert.pairs.smallest(np.where(is_rival, aside, np.inf))
    counted = least[np.isfinite(least)]
    worst = float(aside[seen[expert.pairs.states]].min(initial=0.0))
    return Margin(float(counted.sum()), float(counted.min(initial=np.inf)), max(0.0, -worst))


def _noise(problem: Apprenticeship, table: FloatArray, scale: FloatArray) -> float:
    """Sums of margins up to this say nothing."""
    largest = float(np.abs(table * scale).max())
    size = float((problem.basis.norms * scale).max()) * problem.effective_horizon
    return max(TOLERANCE * largest, ROUNDING * size * problem.world.num_states)
