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

Cost. One linear solve per cost, one linear program with (pairs x costs) entries or two, one plan.

Reference: Ng and Russell, "Algorithms for inverse reinforcement learning", ICML 2000.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.policy import Plan, Policy, occupancy, plan
from journeyman.policy.policy_evaluation import advantages
from journeyman.problem import Apprenticeship, least_cost_bound
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import (
    answer_of,
    expert_policy,
    require_expert_policy,
    require_suitable,
)
from journeyman.solvers.exact.engines import Engine, Result, run_highs
from journeyman.solvers.exact.occupancy_program import INFINITY, LinearModel
from journeyman.solvers.running import (
    Advance,
    Status,
    Watch,
    iterate,
    require_count,
    require_not_negative,
    require_positive,
    require_time_limit,
)

VIOLATION_FACTOR = 2.0
"""A negative margin counts this many times, as in the paper."""


@dataclass(frozen=True, eq=False)
class Rivals:
    """Rows (rivals x costs), the group of each, and further rows that must not be negative."""

    rows: FloatArray
    group: IntArray
    num_groups: int
    required: FloatArray

    def each(self) -> "Rivals":
        """Every rival for itself, and nothing required."""
        count = self.rows.shape[0]
        return Rivals(self.rows, np.arange(count), count, self.required[:0])

    def violation(self, weights: FloatArray) -> float:
        """The most that a rival or a required row falls below zero."""
        least = [(part @ weights).min(initial=0.0) for part in (self.rows, self.required)]
        return -float(min(least))

    def margins(self, weights: FloatArray) -> FloatArray:
        """What the cheapest rival of each group costs more than the expert."""
        least = np.full(self.num_groups, np.inf)
        np.minimum.at(least, self.group, self.rows @ weights)
        return least


def penalised(margins: FloatArray) -> float:
    """sum_g p(m_g)."""
    return float(np.where(margins >= 0, margins, VIOLATION_FACTOR * margins).sum())


def widest_margins(
    rivals: Rivals, scale: FloatArray, penalty: float, watch: Watch, *, strict: bool
) -> tuple[FloatArray, Result]:
    """Weights of the program and what the engine says; `strict` allows no violation.

    Weights are zero when the engine has none to offer.

        maximise over w      sum_g p(m_g) - penalty sum_i |w_i|/scale_i
        subject to           m_g <= <r, w>      for every row r of group g
                             0 <= <r, w>        for every row r that is required
                             |w_i| <= scale_i

    where p(m) = m for m >= 0 and 2 m below, or minus infinity below when no violation is allowed. A
    row is what a rival costs more than the expert, one number per cost; a group's margin m_g is
    that of its cheapest rival. With v = w/scale and n_g >= max(0, -m_g) this is linear: p(m_g) =
    m_g - n_g. Weights of zero are feasible, so the optimum is never negative; where it is zero, no
    cost separates the expert from its rivals.

    Cost. (rows x costs) entries, dense; two columns per cost and two per group. The simplex method
    solves it several times as fast as interior points do.

    Reference: Ng and Russell, "Algorithms for inverse reinforcement learning", ICML 2000, sections
    3-5.
    """
    if not rivals.num_groups:
        nothing = np.zeros(0)
        return np.zeros(scale.size), Result(Status.OPTIMAL, nothing, nothing, "no rivals", "")
    unit = float(np.abs(rivals.rows * scale).max()) or 1.0
    model = _model(rivals, scale / unit, penalty / unit, strict)
    result = run_highs(model, Engine.SIMPLEX, watch, threads=1)
    found = result.columns[: scale.size]
    if found.size < scale.size or not np.isfinite(found).all():
        return np.zeros(scale.size), result
    return np.asarray(scale * np.clip(found, -1.0, 1.0)), result


def _model(rivals: Rivals, scale: FloatArray, penalty: float, strict: bool) -> LinearModel:
    """Columns: v, sizes s >= |v|, margins m, violations n; rows as in the docstring, all >= 0."""
    count, groups, num_rows = scale.size, rivals.num_groups, rivals.group.size
    of_group = sparse.csr_array(
        (np.ones(num_rows), (np.arange(num_rows), rivals.group)), shape=(num_rows, groups)
    )
    rows, required = (sparse.csr_array(part * scale) for part in (rivals.rows, rivals.required))
    cost, margin = sparse.eye_array(count), sparse.eye_array(groups)
    matrix = sparse.block_array(
        [
            [rows, None, -of_group, None],
            [required, None, None, None],
            [cost, cost, None, None],
            [-cost, cost, None, None],
            [None, None, margin, margin],
        ],
        format="csr",
    )
    sizes = (count, count, groups, groups)
    violation = 0.0 if strict else INFINITY
    return LinearModel(
        columns=matrix.T.tocsr(),
        cost=np.repeat([0.0, penalty, -1.0, VIOLATION_FACTOR - 1], sizes),
        lower=np.repeat([-1.0, 0.0, -INFINITY, 0.0], sizes),
        upper=np.repeat([1.0, 1.0, INFINITY, violation], sizes),
        row_lower=np.zeros(matrix.shape[0]),
        row_upper=np.full(matrix.shape[0], INFINITY),
    )


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
    >>> answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.InverseProgram(expert))
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

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, "InverseProgram")
        known = expert_policy(problem, self.expert, "InverseProgram")
        table = advantages(problem.world, known.policy, problem.cost_matrix)
        explained = self._explain(problem, rivals_of(known.policy, table, known.seen), table, watch)
        weights, outcome, result, programs = explained
        margin = _margin(known.policy, table @ weights, known.seen)
        best = (
            plan(problem.world, problem.cost_of(weights)).policy if weights.any() else known.policy
        )
        status = Status.CONVERGED if result.status is Status.OPTIMAL else result.status
        return answer_of(
            problem, best, status, engine=result.engine, recovered=weights,
            work=Work(iterations=programs, forward_solves=int(weights.any())),
            seconds=watch.elapsed, log=f"{outcome}: {margin}; {known.source}",
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


SAME = 1e-9
"""Expectations that differ by at most this share of 2N/(1 - discount) are those of one rival."""


@dataclass(frozen=True)
class SampledInverseProgram:
    """Find costs from the expert's expectations alone, then act optimally for them.

        maximise over w      sum_k p(<w, m_k> - <w, target>),      |w_i| <= scale_i

    where m_k are the expected discounted basis costs of rival policies, target those of the expert,
    and p(m) = m for m >= 0 and 2 m below: rivals should cost more, and those that cost less count
    twice. Rivals are generated: the first acts uniformly at random, each of the others is optimal
    for the weights that the program found before. A rival that comes back counts once more, which
    drives the weights to where it costs more than the expert. Nothing is asked of the expert but
    its expectations, so demonstrations, even of an expert with memory, or declared expectations
    will do. Rivals are evaluated exactly, where the paper evaluates them by simulation.

    Guarantee. The paper ends when one is satisfied with w; here the loop ends with CONVERGED

        as `explained`   when the expert costs at most `accuracy` N/(1 - discount) more than an
                         optimal policy under c_w, proven by a plan (N is the largest cost of the
                         class), or
        as `exhausted`   when under all weights the rivals together no longer cost more than the
                         expert, violations counted twice, or
        as `degenerate`  when that is so from the beginning: `recovered` is zero, the policy
                         uniform.

    `recovered` are the weights under which the expert was closest to optimal, `answer.log` says how
    close: that much is proven whenever the loop ends, and no more, as in the paper. An expert that
    no cost of the span makes optimal, such as a noisy one, is exhausted rather than explained. How
    many rivals it takes to explain one is not bounded; `InverseProgram`, which knows the expert's
    policy, needs one program for that. Expectations that no policy has, as estimates are, can be
    explained with less than no excess.

    Cost. One plan, one evaluation and one linear program with as many rows as rivals per iteration.

    Reference: Ng and Russell, "Algorithms for inverse reinforcement learning", ICML 2000, section
    5.

    Args:
        accuracy: how far from optimal an explained expert may be, per step and in units of the
            class's largest cost.
        max_iterations: generated rivals.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2, randomness=0)
    >>> target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    >>> problem = jm.Apprenticeship(world, basis, target)
    >>> answer = jm.solve(problem, jm.solvers.SampledInverseProgram())
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

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, "SampledInverseProgram")
        search = _RivalSearch(problem, self.accuracy, watch)
        status, iterations = iterate(search.advance, watch, self.max_iterations)
        return answer_of(
            problem, search.policy, search.failure or status,
            engine="inverse program over rivals, HiGHS",
            recovered=search.weights,
            work=Work(iterations=iterations, forward_solves=search.plans),
            seconds=watch.elapsed,
            log=f"{search.outcome}: the expert costs at most {search.excess:.6g} more than optimal "
            f"for the recovered cost; {len(search.rivals)} rivals",
        )  # fmt: skip


class _RivalSearch:
    """Rivals so far, and the weights under which the expert was closest to optimal."""

    def __init__(self, problem: Apprenticeship, accuracy: float, watch: Watch) -> None:
        self._problem, self._watch = problem, watch
        self._unit = problem.gap_scale or 1.0
        self._allowed = accuracy * self._unit / 2
        self._last: Plan | None = None
        self.policy = Policy.uniform(problem.world)
        self.weights = np.zeros(problem.basis.num_costs)
        self.excess, self.outcome, self.plans = 0.0, "stopped", 0
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
                self.outcome = "degenerate" if not self.weights.any() else "exhausted"
            return Advance(self.excess, converged=self.outcome != "stopped")
        world, cost = self._problem.world, self._problem.cost_of(weights)
        self._last = plan(world, cost, warm_start=self._last)
        self.plans += 1
        bound = least_cost_bound(world, cost, self._last.values)
        excess = float(weights @ self._problem.target) - bound
        if excess < self.excess or not self.weights.any():
            self.weights, self.excess, self.policy = weights, excess, self._last.policy
        if excess <= self._allowed:
            self.outcome = "explained"
        else:
            self.rivals.append(self._expectations(self._last.policy))
        return Advance(self.excess, converged=self.outcome != "stopped")

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
