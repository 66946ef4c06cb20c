"""Stochastic primal-dual learning over occupancies and values, by a generative model.

    min over p in the simplex   max over w in W, |u_i| <= beta
        <Phi p, c_w> - <w, target> + <initial - (B - discount P)' Phi p, F u>

*where* the columns of Phi are measures over pairs of mass 1/(1 - discount), those of F functions of
states, mu = Phi p the occupancy that is looked for and V = F u its values. The world is asked for
nothing but next states of given pairs: a step draws from every column a pair and a next state, and
all three players follow their sampled gradients (`occupancy_game`). The policy is that of Phi p for
the average p.

*Which columns.* By default every pair is a column and every state a function, beta = N/(1 -
discount): the exact program. With features its value is the least loss of mixtures of the columns,
with value features as far as these see the flow.

*Guarantee.* With probability 1 - delta the averages of T sweeps are a saddle point to within the
bound of `occupancy_game`, which falls like 1/sqrt(T): its constants are in the log. In an explicit
world the loss of the average and a lower bound from the average (w, u) are recomputed from the
laws from time to time; CONVERGED means that they are within `accuracy` of each other, in units of
2N/(1 - discount). The loss bounds the policy's gap where F is all states. In a stepped world the
loss is estimated on rows of its own, and a run ends by its steps or its time; the log has the
regret in hindsight and the noise, whose M come from q1: no row of Phi over q1 has a sum above d h.

*What is different here.* The paper takes plain mirror descent with fixed steps. Guesses and steps
that follow the observed losses have a bound with the same dependence on T and better constants
where gradients are quiet, and reach an accuracy with a fifth to a tenth of the samples. Here the
expert's expectations are estimated before, in the way of the problem, and not drawn step by step.

*Cost.* A sweep: one draw, one row of costs and two rows of F for each column. A look: one pass over
Phi, at sweeps that grow by a constant factor.

*Reference.* Kamoutsi, Banjac, Lygeros, "Efficient performance bounds for primal-dual reinforcement
learning from demonstrations", 2021.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix, real_matrix
from journeyman.errors import InvalidSolver
from journeyman.features.base import DrawnFeatures, Features
from journeyman.problem import Apprenticeship
from journeyman.problem.drawn import DrawnReduced, block_stream, reduced_of
from journeyman.problem.surrogate import ReducedWitness, Surrogate
from journeyman.solvers.answer import Answer, Details, Solution, Work
from journeyman.solvers.classics.answering import AGREEMENT, require_suitable
from journeyman.solvers.classics.occupancy_game import (
    FAILURE_PROBABILITY,
    Game,
    Point,
    Prior,
    Rules,
    advance,
    change_of_weights,
    largest_change_of_weights,
    normalised,
    rules_of,
    settle,
    starting_point,
    tabular,
)
from journeyman.solvers.reduced.descent import Optimisation, TracePoint
from journeyman.solvers.reduced.sampled_program import fresh_rows
from journeyman.solvers.reduced.solution import ReducedSolution, policy_solution
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_kind,
    require_positive,
    require_time_limit,
)
from journeyman.world.large_world import sampled_step
from journeyman.world.levels import Level

FIRST_LOOK, GROWTH = 200, 1.3
"""Sweeps before the first look, and the factor from each to the next."""
DRAWS = 2_000_000
"""Between two looks at the clock: about a tenth of a second."""
SWEEPS, FRESH_ROWS, STREAM = 1, 1 << 15, 11
"""Sweeps between two looks at the clock in a stepped world; rows of the last estimate; the stream
of the seed that is drawn from."""

ValueFunction = Callable[[IntArray], Any]
"""Called with n states; returns a matrix with n rows, one column for each function."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Settings:
    """Hyperparameters of the solvers of this game."""

    features: Features | DrawnFeatures | None = None
    value_features: Any = None
    accuracy: float = 0.01
    max_iterations: int = 200_000
    batch: int = 256
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        kinds = Features | DrawnFeatures | None
        require_kind("features", self.features, kinds, "Give jm.features.Features(matrix), or None")
        require_positive("accuracy", self.accuracy)
        require_count("max_iterations", self.max_iterations)
        require_count("batch", self.batch)
        require_count("seed", self.seed, least=0)
        require_time_limit(self.time_limit)
        if self.value_features is None:
            return
        if not isinstance(self.features, DrawnFeatures):
            real_matrix("value_features", self.value_features, InvalidSolver)
        elif not callable(self.value_features):
            raise InvalidSolver(
                f"value_features is a {type(self.value_features).__name__}, and the world of "
                "these features is asked state by state",
                "Give a function of states, or None",
            )

    @property
    def needs(self) -> Level:
        """Arrays, or callables for features of a large world."""
        return Level.EXPLICIT if self.features is None else self.features.needs


@dataclass(frozen=True, eq=False)
class OccupancyMirrorDescent(Settings):
    """Occupancies against costs and values, learned from sampled transitions.

    Args:
        features: Phi, `Features` or in a stepped world `DrawnFeatures`; every pair by default.
        value_features: F, a matrix (states x functions), or in a stepped world a function of
            states; by default every state, in a stepped world the shares that the columns of Phi
            have in a state's mass.
        accuracy: of the saddle point at which to stop, relative to 2N/(1 - discount).
        max_iterations: sweeps; each draws one transition for every column.
        batch: transitions of a sweep in a stepped world.
        seed: of all draws.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    >>> visits = jm.occupancy(world, expert).expectations(basis)
    >>> problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(visits))
    >>> answer = jm.solve(problem, OccupancyMirrorDescent(accuracy=0.05))
    >>> answer.status.name, answer.value < 0.05 * problem.gap_scale
    ('CONVERGED', True)
    """

    features: Features | DrawnFeatures | None = None
    accuracy: float = 0.02

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, type(self).__name__)
        return play(self, problem, None, watch, "optimistic mirror descent")


def play(
    solver: Settings, problem: Apprenticeship, prior: Prior | None, watch: Watch, engine: str
) -> Answer:
    """The answer of the averages."""
    if isinstance(solver.features, DrawnFeatures):
        run: _Run = _SteppedRun(solver, problem, prior, watch)
    else:
        run = _ExplicitRun(solver, problem, prior, watch)
    return replace(run.answer(run.go_on(), engine), solve_seconds=watch.elapsed)


class _Run(ABC):
    """The loop with its looks and limits."""

    surrogate: Surrogate
    point: Point
    stride: int
    """Sweeps between two looks at the clock."""

    def __init__(self, solver: Settings, prior: Prior | None, watch: Watch) -> None:
        self.solver, self.prior, self.watch = solver, prior, watch
        self.sweeps, self.trace = 0, list[TracePoint]()
        self.found = (math.inf, -math.inf)

    def go_on(self) -> Status:
        """Sweep until one of the limits."""
        last, look = int(self.solver.max_iterations), FIRST_LOOK
        while self.sweeps < last:
            while look <= self.sweeps:
                look = max(look + 1, int(look * GROWTH))
            self.take(min(self.stride, look - self.sweeps, last - self.sweeps))
            if not all(np.isfinite(part).all() for part in self.point[:3]):
                return Status.NOT_FINITE
            if self.sweeps in (look, last):
                self.look()
            if self.sweeps >= look and self.is_accurate:
                self.watch.report(self.sweeps, *self.found)
                return Status.CONVERGED
            if self.watch.report(self.sweeps, *self.found):
                return self.watch.stop_status
        return Status.CONVERGED if self.is_accurate else Status.STEP_LIMIT

    @property
    def averages(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of p, w and u over all sweeps."""
        point = self.point
        shares = point.share_sum / point.share_sum.sum()
        return shares, point.weight_sum / self.sweeps, point.value_sum / self.sweeps

    @abstractmethod
    def take(self, count: int) -> None:
        """So many sweeps."""

    @abstractmethod
    def look(self) -> None:
        """Note what is known of the averages."""

    @property
    @abstractmethod
    def is_accurate(self) -> bool:
        """Whether the averages are proven to be near enough to a saddle point."""

    @abstractmethod
    def answer(self, status: Status, engine: str) -> Answer:
        """The policy of the averages with what is known about it."""


class _ExplicitRun(_Run):
    """In a world of arrays: compiled sweeps, and looks that prove bounds."""

    def __init__(
        self, solver: Settings, problem: Apprenticeship, prior: Prior | None, watch: Watch
    ) -> None:
        super().__init__(solver, prior, watch)
        given = solver.features
        assert not isinstance(given, DrawnFeatures)  # these have a run of their own
        features = tabular(problem) if given is None else normalised(given, problem)
        self.surrogate = Surrogate(reduced_of(problem, features, int(solver.seed)))
        values = None
        if solver.value_features is not None:
            values = _fitting(solver.value_features, problem)
        self.game = Game(problem, features, values, self.surrogate.penalties.flow, prior)
        self.point, self.rng = self.game.start(), np.random.default_rng(int(solver.seed))
        self.stride = max(1, DRAWS // features.num_features)

    def take(self, count: int) -> None:
        advance(self.game.board, self.game.rules, self.point, self.rng, count)
        self.sweeps += count

    def look(self) -> None:
        shares, weights, values = self.averages
        judged = self.game.judged(shares, weights, values)
        self.found = (min(self.found[0], judged.upper), max(self.found[1], judged.lower))
        surrogate = self.surrogate
        self.now = judged
        self.trace.append(
            TracePoint(
                self.sweeps, self.watch.elapsed, judged.upper, surrogate.matching_error(shares),
                0.0, surrogate.flow_violation(shares), judged.lower,
            )
        )  # fmt: skip

    @property
    def is_accurate(self) -> bool:
        wanted = self.solver.accuracy * self.game.problem.gap_scale
        return bool(self.trace) and self.now.upper - self.found[1] <= wanted

    def answer(self, status: Status, engine: str) -> Answer:
        game, problem = self.game, self.game.problem
        if not self.trace or self.trace[-1].step < self.sweeps:
            self.look()
        shares, weights, values = self.averages
        signs = -np.asarray(game.functions @ values) / (game.limit or 1.0)
        none = np.zeros(problem.world.num_pairs)
        witness = ReducedWitness(problem.cost_class.admit(weights), signs, none)
        reduced = ReducedSolution.of(self.surrogate, shares, witness, radius=1.0)
        solution = policy_solution(reduced)
        assert isinstance(solution, Solution)
        close = solution.value - solution.lower_bound <= AGREEMENT * problem.gap_scale
        if close and status is Status.CONVERGED:
            status = Status.OPTIMAL
        left, unit = self.now.upper - self.found[1], problem.gap_scale or 1.0
        regret, noise = game.regret(self.point, self.sweeps), game.noise(self.sweeps)
        optimisation = Optimisation(
            self.sweeps, tuple(self.trace), left, 0.0, 0.0, problem.gap_scale
        )
        return Answer(
            problem, status, engine, solution,
            Details(
                reduced=reduced, optimisation=optimisation,
                work=Work(
                    iterations=self.sweeps,
                    environment_steps=self.sweeps * game.features.num_features,
                ),
                recovered=None if self.prior is None else weights,
            ),
            log=f"after {self.sweeps} sweeps of {game.features.num_features} transitions the "
            f"averages are a saddle point to within {left / unit:.3g} of 2N/(1 - discount), "
            f"proven; before they were known, in probability {1 - FAILURE_PROBABILITY:g} to within "
            f"{(regret + noise) / unit:.3g} (realised regret {regret / unit:.3g}, noise "
            f"{noise / unit:.3g})",
        )  # fmt: skip


def _fitting(given: Any, problem: Apprenticeship) -> Matrix:
    """F with a row for every state."""
    matrix = real_matrix("value_features", given, InvalidSolver)
    if matrix.shape[0] != problem.world.num_states or not matrix.shape[1]:
        raise InvalidSolver(
            f"value_features has shape {matrix.shape}, the world {problem.world.num_states} states",
            "Give one row for every state",
        )
    return matrix


class _SteppedRun(_Run):
    """In a world of callables: blocks of drawn transitions, and an estimate of the loss.

    With n pairs s ~ q1 the gradients are means of the same products as in a sweep, each over
    Phi_s/q1(s): unbiased, since q1 is the even mixture of all columns.
    """

    def __init__(
        self, solver: Settings, problem: Apprenticeship, prior: Prior | None, watch: Watch
    ) -> None:
        super().__init__(solver, prior, watch)
        assert isinstance(solver.features, DrawnFeatures)
        self.problem, self.features = problem, solver.features
        self.reduced = reduced_of(problem, self.features, int(solver.seed))
        self.surrogate = Surrogate(self.reduced)
        self.costs, self.stride = problem.cost_functions, SWEEPS
        strength = 0.0 if prior is None else prior.strength * problem.effective_horizon
        self.rules: Rules = rules_of(problem, self.surrogate.penalties.flow, strength)
        self.functions: ValueFunction = solver.value_features or self.features.shares
        self.met = 0.0
        """What the points that were played come to against the gradients they met."""
        columns = self._values(self.draw(0)[0]).shape[1]
        self.point = starting_point(
            self.features.num_features, problem.num_costs, columns, self.rules,
            largest_change_of_weights(problem, self.rules, problem.effective_horizon),
            (1 + problem.world.discount) * problem.effective_horizon,
        )  # fmt: skip

    def draw(self, number: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Pairs, next states and first states of one sweep."""
        rng, count = block_stream(int(self.solver.seed), STREAM, number), int(self.solver.batch)
        states, actions = self.features.draw(rng, count)
        following = sampled_step(self.problem.world, rng, states, actions)
        return states, actions, following, self.problem.world.draw_initial(rng, count)

    def _values(self, states: IntArray) -> Any:
        found = self.functions(states)
        rows = found if sparse.issparse(found) else np.asarray(found, dtype=float)
        if rows.ndim != 2 or rows.shape[0] != states.size:
            raise InvalidSolver(
                f"value_features returns shape {rows.shape} for {states.size} states",
                "Return one row for each",
            )
        return rows

    def take(self, count: int) -> None:
        for _ in range(count):
            self._sweep()
            self.sweeps += 1

    def _sweep(self) -> None:
        states, actions, following, first = self.draw(self.sweeps)
        point, rules, count = self.point, self.rules, states.size
        rows = self.features.rows(states, actions)
        weighed = sparse.diags_array(1 / (count * self.features.pair_law(rows))) @ rows
        costs = self.costs.at(states, actions)
        here, there = self._values(states), self._values(following)
        ahead = rules.discount * there - here
        g = weighed.T @ (costs @ point.weights + ahead @ point.values)
        mass = weighed @ point.shares
        prior = np.zeros(point.weights.size) if self.prior is None else self.prior.weights
        z = costs.T @ mass - self.problem.target - rules.strength * (point.weights - prior)
        r = np.asarray(self._values(first).mean(axis=0)).ravel() + ahead.T @ mass
        g, z, r = (np.asarray(part).ravel() for part in (g, z, r))
        self.met += float(g @ point.shares - z @ point.weights - r @ point.values)
        settle(g, z, r, rules, point)

    @property
    def regret(self) -> float:
        """By how much the players could have done better in hindsight, a sweep: the sums of
        gradients against the best fixed points."""
        point = self.point
        gain = self.problem.cost_class.gap(point.weight_total) - float(point.share_total.min())
        gain += self.rules.limit * float(np.abs(point.value_total).sum())
        return (self.met + gain) / self.sweeps

    @property
    def noise(self) -> float:
        """What the draws add at most, but for `FAILURE_PROBABILITY`. A row of Phi over its q1 has
        sum at most d h, and so has the mass that w and u meet; a row of F has sum 1."""
        problem, d = self.problem, self.features.num_features
        most = self.features.pair_ratio
        size = problem.cost_class.pointwise_bound(problem.basis.matrix)
        reach = 1 + problem.world.discount
        shares = 2 * most * (size + reach * self.rules.limit)
        basis = problem.basis
        spread = most * (np.maximum(basis.highest, 0) - np.minimum(basis.lowest, 0))
        weights = change_of_weights(problem, self.rules, spread)
        values = 2 * (1 + reach * most)
        total = math.sqrt(math.log(max(d, 2))) * shares
        total += math.sqrt(self.rules.weight_size) * weights
        total += self.rules.limit * math.sqrt(self.point.values.size / 2) * values
        factor = math.sqrt(2) + 4 * math.sqrt(math.log(1 / FAILURE_PROBABILITY))
        return factor * total / math.sqrt(self.sweeps)

    @property
    def words(self) -> str:
        """The bound on the saddle point, where value functions are known to have rows of sum 1."""
        if self.solver.value_features is not None:
            return ""
        unit = self.problem.gap_scale or 1.0
        regret, noise = self.regret / unit, self.noise / unit
        return (
            f"; with probability {1 - FAILURE_PROBABILITY:g} the averages are a saddle point of "
            f"these features to within {regret + noise:.3g} of 2N/(1 - discount) (realised regret "
            f"{regret:.3g}, noise {noise:.3g})"
        )

    def look(self) -> None:
        """Nothing is known before the end but the sampled gradients."""

    @property
    def is_accurate(self) -> bool:
        return False

    def answer(self, status: Status, engine: str) -> Answer:
        assert isinstance(self.reduced, DrawnReduced)
        shares, weights, _ = self.averages
        rng = np.random.default_rng(int(self.solver.seed))
        rows = fresh_rows(self.surrogate, FRESH_ROWS, rng)
        reduced = ReducedSolution.estimated(self.surrogate, shares, rows, 1.0)
        work = Work(iterations=self.sweeps, environment_steps=self.sweeps * int(self.solver.batch))
        recovered = None if self.prior is None else weights
        return Answer(
            self.problem, status, engine, policy_solution(reduced),
            Details(reduced=reduced, work=work, recovered=recovered),
            log=f"after {self.sweeps} sweeps of {self.solver.batch} transitions" + self.words,
        )  # fmt: skip
