"""Consistent costs: the centre of all costs under which the expert is as good as optimal.

With u = Psi' (occupancy of the uniform policy) - target, what acting at random costs more than the
expert, and V_w the least cost under c_w = Psi w, an expert *loses* under c_w

    <w, target> - V_w  =  max over policies mu of <w, target - Psi' mu>

and is consistent with it if that is at most a share s of what acting at random loses to it:

    K_s = { v :  <v, f_mu> <= s <v, f_0>  for all policies mu,   low <= v <= 1 }
    f_mu = scale (target - Psi' mu)/(N H),   f_0 = scale u/(N H)

where w = v scale/N, N is the largest |psi_i scale_i|, H = 1/(1 - discount), and low is -1, or 0
with `nonnegative`. K_s is a convex cone cut off by a box. The size of w means nothing, so any of
its points is an answer as good as others on these records; recovered is its centre of gravity: the
mean of what the expert's cost can be, if all costs of the box were equally likely before. Methods
that look for margins, or for any cost under which the expert is optimal, may end near the boundary
of K_s, where the expert only just prefers what it did. In `benchmarks/parking.py` margins are
farther off elsewhere; the worst-case cost of the exact program is as near, in twice the time.

*Cutting planes.* A plan for c_v tells whether v is in K_s, and if not, its policy is a row that v
breaks. What policies cost from each start is kept; from every start the policy that is best there
under v makes one more policy, so further rows, also for other v, need no plan. Points of the
polytope of all rows are drawn by hit and run, and rows are added that some of `CHECKED` points
break. Their mean is asked about, with a new plan each time, until it is consistent; then points
are that are drawn evenly, until `draws` of them in a row are consistent; at last the mean again. A
row through the centre of gravity of a convex body leaves at most 1 - 1/e of its volume (Gruenbaum
1960; of the mean of enough draws nearly that: Bertsimas and Vempala).

*Guarantee.* CONVERGED: the expert is proven to lose at most the share s under the recovered cost,
and `draws` points in a row of the polytope, drawn after its last row, were consistent. Were the
points independent and drawn evenly, then K_s would be at least 1 - log(1/p)/draws of the polytope's
volume, but for a probability of p. Hit and run draws evenly in the limit only, and how long it
takes is not checked: how far the recovered weights are from the centre is not proven.

*Experts who err*, or records that estimate the expert's expectations, may be consistent with no
cost: the polytope has no inside (no ball of radius `THIN` that keeps all rows). The linear program

    minimise t   subject to   <v, f_mu> <= t for all policies mu planned,   <v, f_0> = 1

then shows, to the accuracy of its engine, that the expert loses at least the share t under every
cost under which acting at random loses to it. s becomes `slack` times t, or times s where that is
more, as often as it takes. So K_s is all costs under which the expert loses at most `slack` times
the share it has to lose (or `slack` s, where K_s is only too thin). That favours costs which make
errors cheap; `MaximumLikelihood` has a model of experts who err at random in proportion to what is
at stake.

*Cost.* One plan for every row that is not put together and every point asked about, a few dozen for
a handful of costs and hundreds with hundreds of costs; for each row one linear system over the
states that its policy gets to, with as many right-hand sides as there are costs (with more than
`MOST_TABLED` numbers one right-hand side over all states, and no rows are put together); hit and
run takes (rows x costs) for every step of every chain. Where the expert is consistent with
no cost there are many rows: 1,270 after 40 plans, and 20 seconds, with 8 costs and 30 states.

Reference: Ng and Russell, "Algorithms for inverse reinforcement learning", ICML 2000, for the set;
Bertsimas and Vempala, "Solving convex programs by random walks", Journal of the ACM 51, 2004, for
centres of gravity by draws.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, dense, require_between
from journeyman.errors import InvalidSolver
from journeyman.policy import Plan, Policy, occupancy, plan
from journeyman.policy.policy_evaluation import DiscountedSystem, averaging, transition_under
from journeyman.problem import Apprenticeship, least_cost_bound
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import answer_of, require_suitable
from journeyman.solvers.running import (
    Advance,
    Status,
    Watch,
    iterate,
    require_count,
    require_positive,
    require_time_limit,
)
from journeyman.world.goals import reachable

ROUNDING = 1e-11
"""Losses of up to this share of N H count as none: nothing but rounding is left there."""
THIN = 1e-7
"""Radius of a ball, in a box of side 1 or 2, below which a polytope has no inside."""
CHAINS, STEPS, REFINED = 128, 32, 10
"""Points drawn side by side; steps of each after a new row; rounds of these for the last mean."""
FARTHEST = 1e300
CHECKED, ADDED, ROUNDS = 16, 4, 40
"""Points that rows put together are looked for at, and that are asked about before all are drawn
again; rows added at once, and how often."""
MOST_TABLED = 1 << 20
"""States of a policy times costs that are tabled."""
MOST_KEPT = 1 << 23
"""Numbers in the tables of all policies together; the oldest are forgotten."""
LARGEST = 1e6
"""Share beyond which an expert is no better than acting at random."""


@dataclass(frozen=True)
class ConsistentCosts:
    """Find the centre of the costs under which the expert is optimal, then act optimally for it.

    Args:
        regret: share of what acting at random loses that the expert may lose and count as optimal.
        nonnegative: only costs whose weights are at least zero.
        slack: where the expert is consistent with no cost, how many times the least share it loses
            it may lose; above 1.
        draws: points in a row that have to be consistent.
        max_iterations: plans before the solve stops.
        time_limit: seconds.
        seed: of the points.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2, randomness=0)
    >>> demos = jm.record(world, expert, trajectories=50, horizon=60, seed=0)
    >>> problem = jm.Apprenticeship(world, basis, demos)
    >>> answer = jm.solve(problem, jm.solvers.ConsistentCosts())
    >>> answer.status.name, answer.recovered.size
    ('CONVERGED', 4)
    """

    regret: float = 1e-6
    nonnegative: bool = False
    slack: float = 2.0
    draws: int = 10
    max_iterations: int = 1000
    time_limit: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive("regret", self.regret, below=1)
        require_between("slack", self.slack, 1, np.inf, InvalidSolver, "Give a number above 1")
        require_count("draws", self.draws)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)
        require_count("seed", self.seed, least=0)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, "ConsistentCosts")
        search = _Search(problem, self)
        status, iterations = iterate(search.advance, watch, self.max_iterations)
        if status is Status.CONVERGED and search.contradicted:
            status = Status.INACCURATE
        weights = search.weights(search.best)
        found = plan(problem.world, problem.cost_of(weights))
        return answer_of(
            problem, found.policy, status, engine="consistent costs, centre of gravity by draws",
            recovered=weights,
            work=Work(iterations=iterations, forward_solves=iterations + 1),
            seconds=watch.elapsed, log=search.described(status),
        )  # fmt: skip


class _Search:
    """The rows so far, points that keep them, and the best cost asked about, in units of v."""

    def __init__(self, problem: Apprenticeship, solver: ConsistentCosts) -> None:
        self._problem, self._solver = problem, solver
        self._scale = problem.cost_class.scaling(problem.basis.num_costs)
        self._unit = float((self._scale * problem.basis.norms).max()) or 1.0
        self._starts = np.flatnonzero(problem.world.initial > 0)
        self._law = problem.world.initial[self._starts]
        self._target = self._in_units(problem.target)
        self._tables: list[FloatArray] = []
        self.random = -self._row(Policy.uniform(problem.world))
        self.share = float(solver.regret)
        self.least_share = 0.0
        self._rows = -self.random[np.newaxis]
        self._last: Plan | None = None
        self._points = Points(self._scale.size, solver.nonnegative, int(solver.seed))
        self.contradicted = not self._points.keep(self._allowed())
        self._agreed = 0
        self._centred = False
        """Whether the last centre asked about was consistent."""
        self.best, self.lost = self._points.mean(), np.inf

    def weights(self, v: FloatArray) -> FloatArray:
        """w, in the problem's own units."""
        return np.asarray(v * self._scale / self._unit)

    def advance(self) -> Advance:
        """One plan; a new row, or one more point that is consistent."""
        last = self._agreed == self._solver.draws
        central = last or not self._centred
        v = self._point(last, central)
        lost, better = self._lost(v)
        consistent = lost <= self.share * max(float(self.random @ v), 0.0) + ROUNDING
        if central and (consistent or self._relative(v, lost) < self.lost):
            self.best, self.lost = v, self._relative(v, lost)
        if self.contradicted or (last and consistent):
            return Advance(self.lost, self.least_share, converged=True)
        if not consistent:
            self._agreed = 0
            self._restrict(self._row(better)[np.newaxis])
        elif not central:
            self._agreed += 1
        self._centred = consistent if central else self._centred
        return Advance(self.lost, self.least_share)

    def _point(self, last: bool, central: bool) -> FloatArray:
        if self._agreed and self._agreed % CHECKED == 0:
            self._points.walk()
        if last:
            return self._points.refined()
        return self._points.mean() if central else self._points.some(1)[0]

    def _relative(self, v: FloatArray, lost: float) -> float:
        """Share of what acting at random loses."""
        return max(lost, 0.0) / max(float(self.random @ v), ROUNDING)

    def _lost(self, v: FloatArray) -> tuple[float, Policy]:
        """What the expert loses under v, proven from above, and the policy that it loses to."""
        world, w = self._problem.world, self.weights(v)
        cost = self._problem.cost_of(w)
        self._last = plan(world, cost, warm_start=self._last)
        least = least_cost_bound(world, cost, self._last.values)
        lost = (float(w @ self._problem.target) - least) / self._problem.effective_horizon
        return lost, self._last.policy

    def _in_units(self, totals: FloatArray) -> FloatArray:
        return np.asarray(totals * self._scale / (self._unit * self._problem.effective_horizon))

    def _row(self, policy: Policy) -> FloatArray:
        """f of a policy; what it costs from every start is kept, if that is not too much."""
        world, costs = self._problem.world, self._problem.cost_matrix
        chain = transition_under(world, policy)
        inside = reachable(chain, world.initial > 0)
        if int(inside.sum()) * self._scale.size > MOST_TABLED:
            return self._target - self._in_units(costs.T @ occupancy(world, policy).measure)
        paid = dense((averaging(world, policy.on(world)) @ costs)[inside])
        system = DiscountedSystem(chain[inside][:, inside], world.discount)
        columns = [system.solve(np.ascontiguousarray(part)).x for part in paid.T]
        number = np.cumsum(inside) - 1
        table = self._in_units(np.column_stack(columns)[number[self._starts]])
        self._tables.append(table)
        del self._tables[: -max(1, MOST_KEPT // table.size)]
        return np.asarray(self._target - self._law @ table)

    def _put_together(self, points: FloatArray) -> FloatArray:
        """Rows that the points break, those of the farthest: from each start the best policy."""
        if not self._tables:
            return points[:0]
        tables = np.array(self._tables)
        paid = tables @ points.T
        choice = paid.argmin(axis=0)
        least = np.take_along_axis(paid, choice[np.newaxis], axis=0)[0]
        over = points @ (self._target - self.share * self.random) - self._law @ least - ROUNDING
        worst = np.argsort(-over)[:ADDED]
        each = np.arange(self._starts.size)
        return np.array(
            [self._target - self._law @ tables[choice[:, k], each] for k in worst if over[k] > 0]
        ).reshape(-1, self._scale.size)

    def _allowed(self) -> FloatArray:
        """The rows of K_s as far as they are known: <v, row> <= 0."""
        return self._rows - self.share * self.random

    def _restrict(self, rows: FloatArray) -> None:
        """Points that keep these rows, too, and those that are put together."""
        for _ in range(ROUNDS):
            self._rows = np.vstack([self._rows, rows])
            while not self._points.keep(self._allowed()):
                if self.share > LARGEST:
                    self.contradicted = True
                    return
                self._raise_share()
            rows = self._put_together(np.vstack([self._points.mean(), self._points.some(CHECKED)]))
            if not len(rows):
                return

    def _raise_share(self) -> None:
        """No cost makes the share so small."""
        low = 0.0 if self._solver.nonnegative else -np.inf
        least = least_share(self._rows, self.random, low)
        self.least_share = max(self.least_share, least)
        self.share = self._solver.slack * max(self.share, least)

    def described(self, status: Status) -> str:
        """What has been found, in words."""
        spread = self._points.spread()
        widest = int(spread.argmax())
        name, size = self._problem.basis.names[widest], float(np.abs(self.best).max()) or 1.0
        if self.contradicted:
            return "under no cost the expert is better than acting at random"
        if status is Status.CONVERGED and float(self.random @ self.best) <= ROUNDING:
            return (
                f"under {self._agreed} points in a row the expert costs what acting at random "
                "costs, and nothing costs less: it says nothing about the cost"
            )
        return (
            f"under the recovered cost the expert loses at most {self.lost:.3g} of what acting at "
            f"random loses to it, under any at least {self.least_share:.3g}; {len(self._rows)} "
            f"rows, and {self._agreed} points in a row lose at most {self.share:.3g}; least "
            f"certain is the weight of {name}: {self.best[widest] / size:.3g} +- "
            f"{spread[widest]:.2g}, relative to the largest"
        )


def least_share(rows: FloatArray, random: FloatArray, low: float) -> float:
    """The least t with <v, row> <= t for all rows, over <v, random> = 1 and v >= low."""
    from scipy.optimize import linprog

    size = random.size
    unit = float(np.abs(random).max()) or 1.0
    found = linprog(
        np.r_[np.zeros(size), 1.0],
        A_ub=np.hstack([rows / unit, -np.ones((len(rows), 1))]), b_ub=np.zeros(len(rows)),
        A_eq=np.r_[random / unit, 0.0][np.newaxis], b_eq=[1.0],
        bounds=[(low, None)] * size + [(None, None)], method="highs",
    )  # fmt: skip
    return float(found.fun) if found.status == 0 else 0.0


class Points:
    """Points of a cone {v: rows v <= 0} within a box, walking by hit and run.

    Each chain steps along a direction that is drawn from the spread of all of them, every other
    time from all directions, to an even draw of the segment that is inside.
    """

    def __init__(self, size: int, nonnegative: bool, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        low = np.full(size, 0.0 if nonnegative else -1.0)
        self._sides = np.vstack([np.eye(size), -np.eye(size)])
        self._ends = np.r_[np.ones(size), -low]
        self.places = self._rng.uniform(low, 1.0, size=(CHAINS, size))
        self._rows, self._limits = self._sides, self._ends

    def keep(self, rows: FloatArray) -> bool:
        """Whether there is an inside with these rows; then all points are there."""
        sizes = np.linalg.norm(rows, axis=1)
        some = sizes > ROUNDING
        self._rows = np.vstack([rows[some] / sizes[some, np.newaxis], self._sides])
        self._limits = np.r_[np.zeros(int(some.sum())), self._ends]
        inside = (self.places @ self._rows.T < self._limits).all(axis=1)
        kept = self.places[inside]
        if not len(kept):
            centre, radius = inner_ball(self._rows, self._limits)
            if radius < THIN:
                return False
            kept = centre[np.newaxis]
        extra = self._rng.integers(len(kept), size=CHAINS - len(kept))
        self.places = np.vstack([kept, kept[extra]])
        self.walk()
        return True

    def mean(self) -> FloatArray:
        return np.asarray(self.places.mean(axis=0))

    def spread(self) -> FloatArray:
        """Standard deviations of the points, each divided by its largest entry."""
        size = np.abs(self.places).max(axis=1, keepdims=True)
        return np.asarray((self.places / np.maximum(size, THIN)).std(axis=0))

    def some(self, count: int) -> FloatArray:
        """So many of the points."""
        return np.array(self.places[self._rng.integers(len(self.places), size=count)])

    def refined(self) -> FloatArray:
        """The mean over a longer walk."""
        means = []
        for _ in range(REFINED):
            self.walk()
            means.append(self.mean())
        return np.asarray(np.mean(means, axis=0))

    def walk(self) -> None:
        for step in range(STEPS):
            if step % 2:
                aside = self.places - self.places.mean(axis=0)
                ahead = self._rng.standard_normal((CHAINS, CHAINS)) @ aside
            else:
                ahead = self._rng.standard_normal(self.places.shape)
            size = np.linalg.norm(ahead, axis=1, keepdims=True)
            ahead = np.divide(ahead, size, out=np.zeros_like(ahead), where=size > 0)
            room = np.maximum(self._limits - self.places @ self._rows.T, 0.0)
            speed = ahead @ self._rows.T
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = room / speed
            last = np.where(speed > 0, reach, FARTHEST).min(axis=1)
            first = np.where(speed < 0, reach, -FARTHEST).max(axis=1)
            length = self._rng.uniform(first, last)
            length[(size[:, 0] == 0) | (last <= first)] = 0.0
            self.places = self.places + length[:, np.newaxis] * ahead


def inner_ball(rows: FloatArray, limits: FloatArray) -> tuple[FloatArray, float]:
    """Centre and radius of the largest ball where rows of length 1 keep their limits."""
    from scipy.optimize import linprog

    size = rows.shape[1]
    found = linprog(
        np.r_[np.zeros(size), -1.0],
        A_ub=np.hstack([rows, np.ones((len(rows), 1))]), b_ub=limits,
        bounds=[(None, None)] * (size + 1), method="highs",
    )  # fmt: skip
    if found.status != 0:
        return np.zeros(size), 0.0
    return np.asarray(found.x[:size]), float(found.x[size])
