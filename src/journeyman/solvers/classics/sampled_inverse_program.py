"""Ng and Russell's method for trajectories: costs under which the expert beats rivals found so far.

    maximise over w      sum_k p(<w, m_k> - <w, target>),      |w_i| <= scale_i

where m_k are the expected discounted basis costs of rival policies, target those of the expert, and
p(m) = m for m >= 0 and 2 m below: rivals should cost more, and those that cost less count twice.
Rivals are generated: the first acts uniformly at random, each of the others is optimal for the
weights that the program found before. A rival that comes back counts once more, which drives the
weights to where it costs more than the expert. Nothing is asked of the expert but its expectations,
so demonstrations, even of an expert with memory, or declared expectations will do. Rivals are
evaluated exactly, where the paper evaluates them by simulation.

Guarantee. The paper ends when one is satisfied with w; here the loop ends with CONVERGED

    as `explained`   when the expert costs at most `accuracy` N/(1 - discount) more than an optimal
                     policy under c_w, proven by a plan (N is the largest cost of the class), or
    as `exhausted`   when under all weights the rivals together no longer cost more than the expert,
                     violations counted twice, or
    as `degenerate`  when that is so from the beginning: `recovered` is zero, the policy uniform.

`recovered` are the weights under which the expert was closest to optimal, `answer.log` says how
close: that much is proven whenever the loop ends, and no more, as in the paper. An expert that no
cost of the span makes optimal, such as a noisy one, is exhausted rather than explained. How many
rivals it takes to explain one is not bounded; `InverseProgram`, which knows the expert's policy,
needs one program for that. Expectations that no policy has, as estimates are, can be explained with
less than no excess.

Cost. One plan, one evaluation and one linear program with as many rows as rivals per iteration.

Reference: Ng and Russell, "Algorithms for inverse reinforcement learning", ICML 2000, section 5.
"""

import time
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.policy import Plan, Policy, occupancy, plan
from journeyman.problem import Apprenticeship, Program, least_cost_bound
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import answer_of, require_apprenticeship
from journeyman.solvers.classics.margin_program import Rivals, penalised, widest_margins
from journeyman.solvers.hyperparameters import require_count, require_positive, require_time_limit
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Advance, Watch, iterate

SAME = 1e-9
"""Expectations that differ by at most this share of 2N/(1 - discount) are those of one rival."""


@dataclass(frozen=True)
class SampledInverseProgram:
    """Find costs from the expert's expectations alone, then act optimally for them.

    Args:
        accuracy: how far from optimal an explained expert may be, per step and in units of the
            class's largest cost.
        max_iterations: generated rivals.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2, randomness=0)
    >>> target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    >>> answer = jm.solve(jm.Apprenticeship(world, basis, target), jm.SampledInverseProgram())
    >>> answer.log.split(":")[0]
    'explained'
    """

    accuracy: float = 1e-6
    max_iterations: int = 100
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_positive("accuracy", self.accuracy)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    def run(self, problem: Program, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        task = require_apprenticeship(problem, "SampledInverseProgram")
        search = _Search(task, self.accuracy, watch)
        status, iterations = iterate(search.advance, watch, self.max_iterations)
        return answer_of(
            task, search.policy, search.failure or status,
            engine="inverse program over rivals, HiGHS",
            recovered=search.weights,
            work=Work(iterations=iterations, forward_solves=search.plans),
            seconds=time.perf_counter() - started,
            log=f"{search.verdict}: the expert costs at most {search.excess:.6g} more than optimal "
            f"for the recovered cost; {len(search.rivals)} rivals",
        )  # fmt: skip


class _Search:
    """Rivals so far, and the weights under which the expert was closest to optimal."""

    def __init__(self, problem: Apprenticeship, accuracy: float, watch: Watch) -> None:
        self._problem, self._watch = problem, watch
        self._unit = problem.gap_scale or 1.0
        self._allowed = accuracy * self._unit / 2
        self._last: Plan | None = None
        self.policy = Policy.uniform(problem.world)
        self.weights = np.zeros(problem.basis.num_costs)
        self.excess, self.verdict, self.plans = 0.0, "stopped", 0
        self.failure: Status | None = None
        """How the engine ended that found no weights."""
        self.rivals = [self._expectations(self.policy)]

    def _expectations(self, policy: Policy) -> FloatArray:
        return occupancy(self._problem.world, policy).expectations(self._problem.basis)

    def advance(self) -> Advance:
        """Weights for the rivals at hand, and the rival that is best for these."""
        weights, gained = self._program()
        if self.failure is not None:
            return Advance(self.excess, converged=True)
        if gained <= SAME * self._unit:
            if not self._watch.must_stop:
                self.verdict = "degenerate" if not self.weights.any() else "exhausted"
            return Advance(self.excess, converged=self.verdict != "stopped")
        world, cost = self._problem.world, self._problem.cost_of(weights)
        self._last = plan(world, cost, warm_start=self._last)
        self.plans += 1
        bound = least_cost_bound(world, cost, self._last.values)
        excess = float(weights @ self._problem.target) - bound
        if excess < self.excess or not self.weights.any():
            self.weights, self.excess, self.policy = weights, excess, self._last.policy
        if excess <= self._allowed:
            self.verdict = "explained"
        else:
            self.rivals.append(self._expectations(self._last.policy))
        return Advance(self.excess, converged=self.verdict != "stopped")

    def _program(self) -> tuple[FloatArray, float]:
        """Weights, and what the rivals cost more under them, violations counted twice."""
        rows = np.array(self.rivals) - self._problem.target
        count, costs = rows.shape
        rivals = Rivals(rows, np.arange(count), count, np.zeros((0, costs)))
        scale = self._problem.cost_class.scaling(costs)
        with self._watch.aside("weights for the rivals so far"):
            weights, result = widest_margins(rivals, scale, 0.0, self._watch, strict=False)
        if result.status is not Status.OPTIMAL and not self._watch.must_stop:
            self.failure = result.status
        return weights, penalised(rivals.margins(weights))
