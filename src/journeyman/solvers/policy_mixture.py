"""Mixtures of given policies: for whoever has a simulator and nothing else.

    minimise over theta in the simplex   gap_W(sum_k theta_k m^_k - e^)

where m^_k are the mean discounted costs of rollouts of candidate k and e^ those of the expert: the
reduced program over the candidates' occupancies, in which every theta is a policy, "draw one
candidate at the start, follow it". Candidates are heuristics, cloned policies, networks: anything
that chooses actions.

With `planner` or `best_response` the mixture grows in rounds, by column generation: the program
above has prices w, the weights of the cost that is worst for the mixture so far, and a new
candidate lowers its value only if it costs less than the mixture under c_w. The planner
(`LeastSquaresPlanner`, `adapters.StableBaselinesPlanner`, or any function) is asked for a policy
that is good for c_w; it is rolled out and becomes a candidate, good or not. A planner that has
`guided_by(policy)` begins with the candidate that costs least under c_w. With exact plans the value
falls towards the least gap of all policies; with learned ones as far as the planner can.

The search ends after `rounds`, with the time, when the value is zero for a class that allows no
less, or when `patience` rounds in a row have each lowered it by less than a part `improvement`.

*Few demonstrations*: e^ is wrong by about s = mean of gap_W(e* - e^), e* the mean of as many
episodes drawn from the recorded ones with replacement, and a value far below s follows their luck.
A mixture that grew therefore keeps as much of the given candidates (a clone, say, which knows the
actions and not just the totals) as leaves it within `noise` times s, and a search that is there
ends. CONVERGED is such a mixture; with `noise=0`, and for classes in which it can be better than
its expert (`Simplex`), the value is the least one, and OPTIMAL.

*Guarantee*: the value is that of these rollouts and demonstrations, and no mixture of the
candidates has a smaller one than `lower_bound`. `jm.certify(problem, answer)` bounds the true gap,
from fresh rollouts: candidates of round r are made in view of the rounds before, and have 1/(r (r +
1)) of the failure probability together (`problem.mixture_rollouts`).

*Cost*: `rollouts` episodes of each candidate, and what the planner takes; the program itself takes
milliseconds.

Reference: Abbeel, Ng, "Apprenticeship learning via inverse reinforcement learning", 2004, mixes
policies of a known world; Syed, Schapire, "A game-theoretic approach to apprenticeship learning",
2007, is the class `Simplex`. Column generation: Dantzig, Wolfe, "Decomposition principle for linear
programs", 1960; with a learner as its oracle: McMahan, Gordon, Blum, "Planning in the presence of
cost functions controlled by an adversary", 2003.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, assign, read_only
from journeyman.costs import CostClass
from journeyman.costs.cost_class import WeightSet
from journeyman.demonstrations import MonteCarlo
from journeyman.demonstrations.simulation import EpisodeTotals
from journeyman.errors import InvalidSolver
from journeyman.execution import Executor
from journeyman.policy.acting import AnyPolicy, require_policy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.problem.cone_program import Cone, ConeModel
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.progress import quiet
from journeyman.solvers.answer import Answer, CandidateRollouts, Details, SampledSolution
from journeyman.solvers.exact.engines import run_cone
from journeyman.solvers.running import Status, Watch, require_count, require_not_negative
from journeyman.world.levels import Level

BestResponse: TypeAlias = Callable[[FloatArray, int], AnyPolicy]
"""Called with the weights of a cost and the number of the round, from 2; returns a policy."""
Planner: TypeAlias = Callable[[FloatArray, Any, int, int], AnyPolicy]
"""Called with the weights of a cost, the simulator, a budget of its steps and a seed; returns a
policy that is good for that cost."""
PLANNING = 0x706C616E
"""Which of a seed's streams the seeds of planners come from."""
RESAMPLING, RESAMPLES = 0x626F6F74, 200
"""Which of a seed's streams episodes are drawn again from, and how often."""
TOLERANCE = 1e-7
"""Relative to 2N/(1 - discount): how far value and lower bound of an optimum may be apart."""


@dataclass(frozen=True, eq=False)
class PolicyMixture:
    """The best mixture of candidate policies, by rollouts.

    Args:
        candidates: policies with `sample` or `predict`, or functions of (observations, generator).
        rollouts: episodes of each candidate.
        horizon: steps after which an episode is cut off.
        seed: of the rollouts.
        best_response: `best_response(cost_weights, round)` returns one more candidate.
        rounds: at most; the first one is for the given candidates.
        time_limit: seconds. It is looked at after every candidate, one of which is always done.
        planner: `planner(cost_weights, simulator, budget, seed)` returns one more candidate; in
            place of `best_response`.
        budget: steps of the simulator that the planner may take in every round.
        improvement: the part of the value by which a round has to lower it.
        patience: rounds in a row that may fail to; the next seed may do better.
        noise: times the sampling error of the expert's `EpisodeTotals` within which a mixture that
            grew keeps to the given candidates; an expert of another form has none.
        executor: rolls out; the answer does not depend on it.
    """

    needs: ClassVar[Level] = Level.SAMPLED

    candidates: Sequence[AnyPolicy]
    rollouts: int
    horizon: int
    seed: int
    best_response: BestResponse | None = None
    rounds: int = 1
    time_limit: float | None = None
    executor: Executor | None = None
    planner: Planner | None = None
    budget: int = 50_000
    improvement: float = 0.01
    patience: int = 3
    noise: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("rollouts", 2), ("horizon", 1), ("seed", 0), ("rounds", 1)):
            require_count(name, getattr(self, name), least=least)
        for name in ("budget", "patience"):
            require_count(name, getattr(self, name))
        require_not_negative("improvement", self.improvement, at_most=1)
        require_not_negative("noise", self.noise)
        assign(self, candidates=tuple(require_policy(one) for one in self.candidates))
        if not self.candidates:
            raise InvalidSolver("there is no candidate", "Give at least one policy")
        if self.planner is not None and self.best_response is not None:
            raise InvalidSolver("there are a planner and a best response", "Give one of them")
        if self.planner is not None and not callable(self.planner):
            raise InvalidSolver(
                f"planner is a {type(self.planner).__name__}",
                "Give a function of (cost_weights, simulator, budget, seed), for example "
                "jm.solvers.LeastSquaresPlanner(horizon=200)",
            )
        if self.grows != (self.rounds > 1):
            raise InvalidSolver(
                f"rounds = {self.rounds} {'and a' if self.grows else 'without a'} "
                "best response or planner",
                "Give both planner (or best_response) and rounds from 2 on, or neither",
            )

    @property
    def grows(self) -> bool:
        """Whether something can be asked for more candidates."""
        return self.planner is not None or self.best_response is not None

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Roll out, solve the small program, and ask for best responses."""
        search = _Search(self, problem)
        stopped = search.add(self.candidates, watch)
        while not stopped and search.wants_more:
            stopped = search.respond(watch)
        return search.answer(watch if stopped else None)


HALVINGS = 30
"""Of the share of the given candidates, until it is known."""
HELD, WORTHWHILE = 1e-9, 1e-6
"""By how much, in units of the program, the second stage may give way, and must gain."""


@dataclass(frozen=True, eq=False)
class MixtureWeights:
    """Weights, their value, and the cost weights that prove how good they are."""

    weights: FloatArray
    value: float
    lower_bound: float
    cost_weights: FloatArray
    """The adversary's: no mixture costs less than `lower_bound` under these."""
    engine: str


class _Search:
    """The candidates so far, what their rollouts cost, and the best weights for them."""

    def __init__(self, settings: PolicyMixture, problem: Apprenticeship) -> None:
        self.settings, self.problem = settings, problem
        self.candidates: list[AnyPolicy] = []
        self.records: list[EpisodeTotals] = []
        self.sizes: list[int] = []
        self.trace: list[tuple[float, float, float, float]] = []
        self.found: MixtureWeights | None = None
        self.failures = 0
        """Rounds in a row that have hardly lowered the value."""
        self.rollout_seconds, self.solve_seconds = 0.0, 0.0
        self.target = problem.target
        method = problem.expectation.method
        if isinstance(method, MonteCarlo) and not method.completed:
            self.target = self.target + problem.expectation.truncation_mass * problem.basis.centre
        self.noise = self._sampling_error() if settings.grows and settings.noise else -math.inf

    def _sampling_error(self) -> float:
        """`noise` times the mean gap between the recorded episodes and as many drawn from them
        again; without records, and for a class in which an apprentice can be better than its
        expert, nothing is within it."""
        records = self.problem.records
        if records is None or not self.problem.cost_class.contains_zero:
            return -math.inf
        rng = np.random.default_rng(
            np.random.SeedSequence(self.settings.seed, spawn_key=(RESAMPLING,))
        )
        totals = records.totals + np.outer(records.unrecorded, self.problem.basis.centre)
        mean, even = totals.mean(axis=0), np.full(len(totals), 1 / len(totals))
        gaps = [
            self.problem.cost_class.gap(
                rng.multinomial(len(totals), even) @ totals / len(totals) - mean
            )
            for _ in range(RESAMPLES)
        ]
        return self.settings.noise * float(np.mean(gaps))

    @property
    def wants_more(self) -> bool:
        """Whether a round is left that could lower the value."""
        assert self.found is not None
        perfect = self.problem.cost_class.contains_zero and self.found.value <= self.tolerance
        impatient = self.failures >= self.settings.patience
        known = self.found.value <= self.noise  # as well as the records know the expert
        return len(self.sizes) < self.settings.rounds and not (perfect or impatient or known)

    @property
    def tolerance(self) -> float:
        return TOLERANCE * self.problem.gap_scale

    @property
    def rollouts(self) -> MixtureRollouts:
        settings = self.settings
        return MixtureRollouts(
            settings.rollouts, settings.horizon, rounds=tuple(self.sizes),
            most_rounds=settings.rounds,
        )  # fmt: skip

    def respond(self, watch: Watch) -> bool:
        """A round of one more candidate; True: stop."""
        assert self.found is not None
        settings, before, number = self.settings, self.found.value, len(self.sizes) + 1
        asked = read_only(self.found.cost_weights.copy())
        started = time.perf_counter()
        if settings.planner is not None:
            seeds = np.random.SeedSequence(settings.seed, spawn_key=(PLANNING, number))
            seed = int(seeds.generate_state(1)[0]) >> 1
            planner = self._guided(settings.planner, asked)
            made = planner(asked, self.problem.simulator, settings.budget, seed)
        else:
            assert settings.best_response is not None
            made = settings.best_response(asked, number)
        self.solve_seconds += time.perf_counter() - started
        stopped = self.add([made], watch)
        gained = before - self.found.value
        self.failures = 0 if gained > settings.improvement * abs(before) else self.failures + 1
        return stopped

    def _guided(self, planner: Any, weights: FloatArray) -> Planner:
        """The planner, shown the candidate that costs least if it can use one."""
        if not hasattr(planner, "guided_by"):
            return cast(Planner, planner)
        cheapest = int(np.argmin(self.expectations @ weights))
        return cast(Planner, planner.guided_by(self.candidates[cheapest]))

    def add(self, candidates: Sequence[AnyPolicy], watch: Watch) -> bool:
        """A round: roll out candidate after candidate, then find the weights; True: stop."""
        self.sizes.append(len(candidates))
        stopped = False
        for candidate in candidates:
            started = time.perf_counter()
            self.candidates.append(require_policy(candidate))
            self.records += self.rollouts.totals(
                self.problem.simulator, self.candidates, self.settings.seed,
                [len(self.candidates) - 1], self.settings.executor,
            )  # fmt: skip
            self.rollout_seconds += time.perf_counter() - started
            stopped = watch.report(len(self.candidates), None if self.found is None else self.value)
            if stopped:
                break
        started = time.perf_counter()
        self.found = best_weights(self.expectations, self.target, self.problem.cost_class)
        self.solve_seconds += time.perf_counter() - started
        self.trace.append(
            (len(self.sizes), len(self.candidates), self.found.value, self.found.lower_bound)
        )
        return stopped

    @property
    def value(self) -> float:
        assert self.found is not None
        return self.found.value

    @property
    def expectations(self) -> FloatArray:
        """(candidates x costs), unrecorded tails at mid-range."""
        centre = self.problem.basis.centre
        means = [one.mean + float(one.unrecorded.mean()) * centre for one in self.records]
        return np.array(means)

    def answer(self, stopped: Watch | None) -> Answer:
        found, problem = self.found, self.problem
        assert found is not None
        kept = self._kept(found)
        value = problem.cost_class.gap(kept @ self.expectations - self.target)
        status = Status.OPTIMAL
        if found.value - found.lower_bound > self.tolerance:
            status = Status.INACCURATE
        elif value - found.lower_bound > self.tolerance:
            status = Status.CONVERGED
        if stopped is not None:
            status = stopped.stop_status
        axes = problem.simulator.observation_axes
        policy = MixturePolicy(self.candidates, kept, axes)
        weights = read_only(found.cost_weights.copy())
        seen = CandidateRollouts(
            read_only(self.expectations),
            read_only(np.array([one.totals.std(axis=0, ddof=1) for one in self.records])),
            self.rollouts, read_only(np.array(self.trace)),
        )  # fmt: skip
        return Answer(
            problem, status, found.engine,
            SampledSolution(policy, value, found.lower_bound, weights),
            Details(mixture=policy, candidates=seen), build_seconds=self.rollout_seconds,
            solve_seconds=self.solve_seconds,
        )  # fmt: skip

    def _kept(self, found: MixtureWeights) -> FloatArray:
        """As much of the best weights of the given candidates as leaves the value, which is convex
        between both, within the noise."""
        given = self.sizes[0]
        if len(self.candidates) <= given or found.value >= self.noise:
            return found.weights
        expectations, gap = self.expectations, self.problem.cost_class.gap
        own = best_weights(expectations[:given], self.target, self.problem.cost_class).weights
        own = np.append(own, np.zeros(len(self.candidates) - given))
        share, too_much = 0.0, 1.0 + 2.0**-HALVINGS
        for _ in range(HALVINGS + 1):
            middle = (share + too_much) / 2
            mixed = middle * own + (1 - middle) * found.weights
            if middle <= 1 and gap(mixed @ expectations - self.target) <= self.noise:
                share = middle
            else:
                too_much = middle
        return _in_simplex(share * own + (1 - share) * found.weights)


def best_weights(
    expectations: FloatArray, target: FloatArray, cost_class: CostClass
) -> MixtureWeights:
    """The best weights for candidates with the given expectations, (candidates x costs).

        minimise over theta >= 0, sum theta = 1    gap_W(M theta - e)
          = maximise over w in W                   min_k <w, m_k - e>

    where the columns m_k of M are the expectations: the reduced program with occupancies of
    policies as features, in which nothing is ever negative and flow is kept (V1 = V2 = 0). A linear
    program for `InfinityBall` and `Simplex`; for `EuclideanBall` the point of a polytope closest to
    the origin, which is a nonnegative least-squares problem (Lawson, Hanson, 1974):

        min |A theta|^2 + (sum theta - 1)^2 over theta >= 0  has a multiple of the best weights as
        solution, because theta = t phi costs t^2 |A phi|^2 + (t - 1)^2.

    For `Simplex` the optimum is often a face; among its points the least mean cost is taken, as in
    the second stage of the exact program. `lower_bound` is the right-hand side at weights that lie
    in W, so no mixture of these candidates is better on these numbers, whatever the engine did.
    """
    scale = cost_class.scaling(target.size)
    differences = (expectations - target) * scale
    unit = float(np.abs(differences).max()) or 1.0
    A = np.ascontiguousarray((differences / unit).T)
    chosen = cost_class.weight_set(target.size)
    if cost_class.has_surplus or not chosen.size:
        theta, dual, engine = _cheapest(A)
    elif chosen.is_centred and chosen.axes is not None:
        theta, dual, engine = _nearest(A)
    elif chosen.is_centred and chosen.is_box:
        theta, dual, engine = _matching(A)
    else:
        theta, dual, engine = _against_the_worst(A.T, chosen.in_units(scale))
    weights = _in_simplex(theta)
    value = cost_class.gap(weights @ expectations - target)
    duals = [cost_class.worst_case(weights @ expectations - target)]
    if dual is not None:
        duals.append(cost_class.admit(scale * dual))
    if cost_class.contains_zero:
        duals.append(np.zeros(target.size))
    proven = [float(((expectations - target) @ w).min()) for w in duals]
    best = int(np.argmax(proven))
    return MixtureWeights(weights, value, proven[best], duals[best], engine)


_Found = tuple[FloatArray, FloatArray | None, str]
"""Weights, weights of the adversary in units of the class, and who found them."""
SIMPLEX_METHOD = "HiGHS simplex"


def _matching(A: FloatArray) -> _Found:
    """minimise sum_i t_i with -t <= A theta <= t."""
    costs, count = A.shape
    one = np.eye(costs)
    rows = np.block([[A, -one], [-A, -one]])
    found = _linear(np.r_[np.zeros(count), np.ones(costs)], rows, np.zeros(2 * costs), count)
    if found is None:
        return np.full(count, 1 / count), None, SIMPLEX_METHOD
    x, prices = found
    return x[:count], prices[:costs] - prices[costs:], SIMPLEX_METHOD


def _cheapest(A: FloatArray) -> _Found:
    """minimise t with A theta <= t, then the mean of A theta with that t held."""
    costs, count = A.shape
    rows = np.hstack([A, -np.ones((costs, 1))])
    found = _linear(np.r_[np.zeros(count), 1.0], rows, np.zeros(costs), count)
    if found is None:
        return np.full(count, 1 / count), None, SIMPLEX_METHOD
    x, prices = found
    theta, mean = x[:count], A.mean(axis=0)
    second = _linear(mean, A, np.full(costs, x[count] + HELD), count)
    if second is not None and mean @ second[0] < mean @ theta - WORTHWHILE:
        theta = second[0]
    return theta, prices, f"{SIMPLEX_METHOD}, two stages"


def _against_the_worst(differences: FloatArray, chosen: WeightSet) -> _Found:
    """maximise s over weights centre + C v with <weights, difference> >= s for every candidate,
    whose prices are the weights of the mixture; a ball is a cone of its own."""
    count, size = len(differences), chosen.size
    base = differences @ chosen.centre
    rows = np.column_stack([-chosen.pulled(differences.T).T, np.ones(count)])
    blocks, right = [rows], [base]
    cones = [(Cone.NONNEGATIVE, count)]
    if chosen.right.size:
        blocks.append(np.column_stack([chosen.equations, np.zeros(chosen.right.size)]))
        right.append(chosen.right)
        cones.append((Cone.ZERO, chosen.right.size))
    if chosen.axes is not None:
        blocks += [np.zeros((1, size + 1)), np.column_stack([-np.eye(size), np.zeros(size)])]
        right += [np.ones(1), np.zeros(size)]
        cones.append((Cone.SECOND_ORDER, size + 1))
    else:
        ends = np.column_stack([np.eye(size), np.zeros(size)])
        blocks += [ends, -ends]
        right += [chosen.upper, -chosen.lower]
        cones.append((Cone.NONNEGATIVE, 2 * size))
    model = ConeModel(
        sparse.csc_array(np.vstack(blocks)), np.concatenate(right),
        np.append(np.zeros(size), -1.0), tuple(cones),
    )  # fmt: skip
    found = run_cone(model, Watch("mixture", quiet), threads=1)
    if not (np.isfinite(found.columns).all() and np.isfinite(found.row_duals).all()):
        return np.full(count, 1 / count), None, found.engine
    return found.row_duals[:count], chosen.weights(found.columns[:size]), found.engine


def _linear(
    cost: FloatArray, rows: FloatArray, limits: FloatArray, count: int
) -> tuple[FloatArray, FloatArray] | None:
    """x and the prices of `rows x <= limits`, with the first `count` variables in the simplex."""
    from scipy.optimize import linprog

    free = cost.size - count
    found = linprog(
        cost, A_ub=rows, b_ub=limits, A_eq=np.r_[np.ones(count), np.zeros(free)][np.newaxis],
        b_eq=[1.0], bounds=[(0, None)] * count + [(None, None)] * free, method="highs-ds",
    )  # fmt: skip
    return (found.x, -found.ineqlin.marginals) if found.status == 0 else None


def _nearest(A: FloatArray) -> _Found:
    from scipy.optimize import nnls

    costs, count = A.shape
    rows = np.vstack([A, np.ones(count)])
    try:
        theta, _ = nnls(rows, np.r_[np.zeros(costs), 1.0])
    except RuntimeError:
        theta = np.zeros(count)
    return theta, None, "nonnegative least squares"


def _in_simplex(theta: FloatArray) -> FloatArray:
    positive = np.maximum(theta, 0.0)
    total = float(positive.sum())
    return positive / total if total > 0 else np.full(theta.size, 1 / theta.size)
