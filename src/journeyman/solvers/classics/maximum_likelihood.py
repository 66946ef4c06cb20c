"""Maximum likelihood: the cost under which the recorded decisions are most likely.

    maximise over w   L(w) = sum over recorded steps of log pi_w(a_t | x_t)

*where* pi_w is the soft-optimal policy of the cost Psi w at temperature 1 (`soft_plan`): the expert
is taken for somebody who minimises expected cost, to which every decision adds a random part that
only the expert sees (extreme-value distributed, drawn anew every time). Econometrics calls this
dynamic discrete choice and the method the nested fixed point (NFXP); in networks with a destination
it is the recursive logit model. Decisions count alike, given the states they were taken in: nothing
is asked about how states follow each other, nor about what lies behind the end of a record.

Derivatives are exact. With A(x, a) the advantages Q - V of all costs under pi_w (hard values, no
entropy in them; one row for every pair), n the counts of recorded pairs, N those of states,
E = B - discount P, E_pi = I - discount P_pi, and Cov(x) = sum_a pi_w(a | x) A(x, a) A(x, a)',

    gradient of L      -sum n(x, a) A(x, a)
    information J      sum_x y(x) Cov(x)      minus the second derivative;  E_pi' y = E' n
    Fisher's F         sum_x N(x) Cov(x)      its mean, given the states

This follows from V = -log sum_a exp(-Q), whose second derivative is E_pi[Q''] - Cov, so that
V'' = -E_pi^{-1} Cov, and L'' = <E' n, V''>. One evaluation takes a soft plan and one linear system
with a right-hand side per cost; J takes one more system.

*Method.* Newton's with J where it is positive definite and Fisher scoring elsewhere, shortened
until L rises; from several starts, because L need not be concave. Combinations of costs that change
no decision in any recorded state (F is singular there, as for a constant cost in a world without
end) are not identified: they are reported, and the weights have no part of them.

*Guarantee.* CONVERGED: by the quadratic model the weights are within `tolerance` standard errors of
a local maximum of L (J is positive definite), and none of the starts has found a better one.
UNBOUNDED: L rises without end along some combination, as for experts who never err under some cost;
weights are then only a direction. Standard errors are roots of the diagonal of J^{-1}: right for
large samples if the expert is soft-optimal for a cost of this basis and the world's laws are exact
(laws that were estimated before are taken as they are). Nothing of this enters a certificate: the
policy is evaluated and certified like that of every method. The estimate is not restricted to the
problem's cost class: the weights have the scale of the expert's randomness, while a class says what
the apprentice is to be protected against.

*Cost.* Per evaluation some 2 to 10 sparse systems for the soft plan and one per cost; a dense table
of pairs x costs.

*Reference.* Rust, "Optimal replacement of GMC bus engines", 1987; Fosgerau, Frejinger and
Karlström, "A link based network route choice model with unrestricted choice set", 2013.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from journeyman.arrays import FloatArray, IntArray, dense, read_only, real_array
from journeyman.costs import CostBasis
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidProblem, InvalidSolver
from journeyman.policy import Plan, Policy
from journeyman.policy.planning import soft_plan
from journeyman.policy.policy_evaluation import DiscountedSystem, PolicySystems
from journeyman.policy.table import log_softmax
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, LikelihoodEstimate, Work
from journeyman.solvers.classics.answering import (
    answer_of,
    require_demonstrations,
    require_suitable,
)
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_positive,
    require_time_limit,
)
from journeyman.world import World


@dataclass(frozen=True)
class MaximumLikelihood:
    """The cost weights under which the recorded decisions are most likely, with standard errors.

    Args:
        tolerance: how far from the maximum the weights may be, in standard errors.
        starts: the first one is `start`, or zero; the others are drawn.
        start: weights to begin with.
        max_iterations: Newton steps from each start.
        seed: of the drawn starts.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world = jm.World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> demos = jm.Demonstrations([0] * 9, [0, 1, 1, 0, 1, 1, 1, 1], [0, 8])
    >>> problem = jm.Apprenticeship(world, jm.CostBasis([[1.0], [0.0]]), demos)
    >>> found = jm.solve(problem, MaximumLikelihood()).likelihood
    >>> found.weights.round(4).tolist(), found.standard_errors.round(4).tolist()
    ([1.0986], [0.8165])
    >>> round(found.log_likelihood, 4)
    -4.4987
    """

    tolerance: float = 1e-6
    starts: int = 3
    start: tuple[float, ...] | None = None
    max_iterations: int = 200
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_positive("tolerance", self.tolerance, below=1)
        require_count("starts", self.starts)
        require_count("max_iterations", self.max_iterations)
        require_count("seed", self.seed, least=0)
        require_time_limit(self.time_limit)
        if self.start is not None:
            given = real_array("start", self.start, ndim=1, refusal=InvalidSolver)
            object.__setattr__(self, "start", tuple(given.tolist()))

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, type(self).__name__)
        demos = require_demonstrations(problem, type(self).__name__)
        search = _Search(self, [(problem.world, problem.basis, demos)], watch)
        found = search.run()
        estimate = search.estimate(found)
        return answer_of(
            problem,
            found.point.policies[0],
            found.status,
            engine="Newton's method, Fisher scoring",
            work=Work(iterations=search.iterations, forward_solves=search.sample.plans),
            recovered=found.point.weights,
            likelihood=estimate,
            seconds=watch.elapsed,
            log=search.words(found, estimate),
        )


SATURATED = 1e-7
"""Directions whose information has fallen below this share of its first value have no estimate."""
SAME = 1e-12
"""Of the information of costs of size one: combinations below it are not identified."""
NOISE = 1e-11
"""Relative error of values, and so what rounding may show as information."""
LONGEST = 4.0
"""A step changes no recorded decision's log-odds by more than this (to first order)."""
SUFFICIENT, SHORTER, SHORTEST = 1e-4, 0.4, 1e-9
ROUNDING = 1e-13
"""Of log-likelihoods, relative to the number of decisions."""
SAME_MAXIMUM = 1e-6
"""Log-likelihoods that differ by less belong to one maximum."""


class _Soft(NamedTuple):
    """The soft-optimal policy of a cost in one world."""

    plan: Plan
    log_law: FloatArray
    system: DiscountedSystem


class _Member:
    """One world with its costs and the decisions recorded in it."""

    def __init__(self, world: World, basis: CostBasis, demos: Demonstrations) -> None:
        self.world = world
        self.costs = np.asarray(dense(basis.on(world)), dtype=float)
        self.counts = np.bincount(demos.pairs_in(world), minlength=world.num_pairs).astype(float)
        self.visits = world.pairs.total(self.counts)
        self.systems = PolicySystems(world)

    def soft(self, weights: FloatArray, near: _Soft | None) -> _Soft:
        world, cost = self.world, self.costs @ weights
        start = None if near is None else near.plan
        plan = soft_plan(world, cost, warm_start=start, systems=self.systems)
        backup = cost + world.discount * (world.transition @ plan.values)
        return _Soft(plan, log_softmax(world.pairs, -backup), self.systems.of(plan.policy))

    def log_likelihood(self, soft: _Soft) -> float:
        taken = self.counts > 0
        return float(self.counts[taken] @ soft.log_law[taken])

    def advantages(self, soft: _Soft) -> tuple[FloatArray, FloatArray]:
        """A (pairs x costs), and the size of the values behind it."""
        world, law = self.world, np.exp(soft.log_law)[:, np.newaxis]
        right = world.pairs.total(law * self.costs)
        values = np.column_stack([soft.system.solve(one).x for one in right.T])
        backup = self.costs + world.discount * (world.transition @ values)
        centred = backup - world.pairs.spread(world.pairs.total(law * backup))
        return centred, np.abs(values).max(axis=0) + np.abs(self.costs).max(axis=0)

    def information(self, soft: _Soft, advantages: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Fisher's, and the observed one."""
        world, law = self.world, np.exp(soft.log_law)
        flow = world.flow.apply(self.counts)
        shadow = soft.system.solve(flow, transposed=True, guess=self.visits).x
        spread = world.pairs.spread
        return (
            advantages.T @ ((law * spread(self.visits))[:, np.newaxis] * advantages),
            advantages.T @ ((law * spread(shadow))[:, np.newaxis] * advantages),
        )


class _Sample:
    """L over all members; counts the soft plans it makes."""

    def __init__(self, members: Sequence[_Member]) -> None:
        self.members = members
        self.num_decisions = int(sum(one.counts.sum() for one in members))
        self.num_costs = members[0].costs.shape[1]
        self.plans = 0

    def at(self, weights: FloatArray, near: "_Point | None" = None) -> "_Point":
        self.plans += len(self.members)
        known = [None] * len(self.members) if near is None else near.soft
        found = [one.soft(weights, soft) for one, soft in zip(self.members, known, strict=True)]
        return _Point(self, weights, found)

    @property
    def uniform(self) -> float:
        """The log-likelihood of actions taken at random."""
        parts = (one.counts @ np.log(one.world.pairs.uniform) for one in self.members)
        return float(sum(parts))


@dataclass(frozen=True, eq=False)
class _Point:
    """L and its derivatives at some weights."""

    sample: _Sample
    weights: FloatArray
    soft: Sequence[_Soft]

    @cached_property
    def value(self) -> float:
        pairs = zip(self.sample.members, self.soft, strict=True)
        return float(sum(one.log_likelihood(soft) for one, soft in pairs))

    @property
    def policies(self) -> list[Policy]:
        return [one.plan.policy for one in self.soft]

    @cached_property
    def _advantages(self) -> list[tuple[FloatArray, FloatArray]]:
        return [
            one.advantages(soft) for one, soft in zip(self.sample.members, self.soft, strict=True)
        ]

    @cached_property
    def gradient(self) -> FloatArray:
        parts = zip(self.sample.members, self._advantages, strict=True)
        return np.asarray(-np.sum([one.counts @ table for one, (table, _) in parts], axis=0))

    @cached_property
    def _informations(self) -> tuple[FloatArray, FloatArray]:
        parts = [
            one.information(soft, table)
            for one, soft, (table, _) in zip(
                self.sample.members, self.soft, self._advantages, strict=True
            )
        ]
        return np.sum([one for one, _ in parts], axis=0), np.sum([one for _, one in parts], axis=0)

    @property
    def fisher(self) -> FloatArray:
        return self._informations[0]

    @property
    def observed(self) -> FloatArray:
        return self._informations[1]

    @cached_property
    def sizes(self) -> FloatArray:
        """How large the values of each cost are."""
        return np.asarray(np.max([size for _, size in self._advantages], axis=0))

    @cached_property
    def directions(self) -> "_Directions":
        return _Directions.of(self.fisher, self.sizes, self.sample.num_decisions)

    @cached_property
    def is_concave(self) -> bool:
        """Whether L is, here and in what is identified."""
        return is_positive(self.directions.reduced(self.observed))

    @cached_property
    def step(self) -> tuple[FloatArray, float]:
        """The Newton step, and how far the maximum seems to be in standard errors."""
        found = self.directions
        if not found.identified.size:
            return np.zeros_like(self.weights), 0.0
        slope = found.reduced_vector(self.gradient)
        curvature = found.reduced(self.observed)
        if not self.is_concave:
            curvature = found.reduced(self.fisher)
        move = np.asarray(np.linalg.solve(curvature, slope), dtype=float)
        return found.expanded(move), max(float(slope @ move), 0.0) ** 0.5

    def change(self, step: FloatArray) -> float:
        """The largest change of a recorded decision's log-odds along a step, to first order."""
        parts = zip(self.sample.members, self._advantages, strict=True)
        return max(
            float(np.abs(table[one.counts > 0] @ step).max(initial=0.0))
            for one, (table, _) in parts
        )


def is_positive(matrix: FloatArray) -> bool:
    """Whether a matrix is positive definite, beyond rounding."""
    if not matrix.size:
        return True
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    return bool(values[0] > 1e-10 * max(abs(values[-1]), 1e-300))


@dataclass(frozen=True, eq=False)
class _Directions:
    """Which combinations of weights the recorded decisions depend on, by Fisher's information.

    In units `scale` in which every cost that matters has information one per decision, `identified`
    spans them; `null` spans the others, in the basis's own units.
    """

    scale: FloatArray
    identified: FloatArray
    null: FloatArray

    @classmethod
    def of(cls, fisher: FloatArray, sizes: FloatArray, count: int) -> "_Directions":
        per_decision = np.sqrt(np.maximum(np.diag(fisher), 0.0) / max(count, 1))
        noise = NOISE * np.maximum(sizes, 1e-300)
        matters = per_decision > noise
        scale = np.where(matters, per_decision, 1.0)
        scaled = fisher / max(count, 1) / np.outer(scale, scale)
        scaled[~matters] = 0.0
        scaled[:, ~matters] = 0.0
        values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
        unseen = SAME + float(np.sum((noise / scale)[matters])) ** 2
        identified = vectors[:, values > unseen]
        null = vectors[:, values <= unseen] / scale[:, np.newaxis]
        return cls(scale, identified, orthonormal(null))

    def reduced(self, matrix: FloatArray) -> FloatArray:
        part = self.identified / self.scale[:, np.newaxis]
        found: FloatArray = part.T @ matrix @ part
        return (found + found.T) / 2

    def reduced_vector(self, vector: FloatArray) -> FloatArray:
        return np.asarray(self.identified.T @ (vector / self.scale))

    def expanded(self, vector: FloatArray) -> FloatArray:
        return np.asarray((self.identified @ vector) / self.scale)


def orthonormal(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.qr(vectors)[0]) if vectors.shape[1] else vectors


@dataclass(frozen=True, eq=False)
class _Found:
    """What a start has led to."""

    point: _Point
    status: Status


@dataclass
class _Search:
    """Newton's method from several starts, under a watch."""

    solver: MaximumLikelihood
    given: Sequence[tuple[World, CostBasis, Demonstrations]]
    watch: Watch
    iterations: int = 0
    agreeing: int = 0
    tried: int = 0
    sample: _Sample = field(init=False)

    def __post_init__(self) -> None:
        self.sample = _Sample([_Member(*one) for one in self.given])
        given, count = self.solver.start, self.sample.num_costs
        if given is not None and len(given) != count:
            raise InvalidSolver(
                f"start has {len(given)} weights, and there are {count} costs", "Give one per cost"
            )
        start = np.zeros(count) if given is None else np.asarray(given)
        self.first = self.sample.at(start)

    def run(self) -> _Found:
        found = [self._climb(self.first)]
        rng = np.random.default_rng(self.solver.seed)
        spread = self.first.directions
        for _ in range(self.solver.starts - 1):
            if self.watch.must_stop or not spread.identified.size:
                break
            drawn = spread.expanded(rng.normal(size=(spread.identified.shape[1],)))
            found.append(self._climb(self.sample.at(self.first.weights + drawn, self.first)))
        best = max(found, key=lambda one: one.point.value)
        self.tried = len(found)
        near = [abs(one.point.value - best.point.value) <= SAME_MAXIMUM for one in found]
        self.agreeing = sum(near)
        return self._settled(best)

    def _climb(self, point: _Point) -> _Found:
        """Newton steps until the maximum is near, or a limit."""
        for _ in range(self.solver.max_iterations):
            self.iterations += 1
            step, distance = point.step
            if not np.isfinite(point.value):
                return _Found(point, Status.NOT_FINITE)
            must_stop = self.watch.report(self.iterations, -point.value)
            if distance <= self.solver.tolerance:
                return _Found(point, Status.CONVERGED if point.is_concave else Status.INACCURATE)
            if must_stop:
                return _Found(point, self.watch.stop_status)
            there = self._ahead(point, step)
            if there is None:
                return _Found(point, Status.INACCURATE)
            point = there
        return _Found(point, Status.STEP_LIMIT)

    def _ahead(self, point: _Point, step: FloatArray) -> _Point | None:
        """The point a step on, shortened until L rises; None where float64 sees no better one."""
        change, slope = point.change(step), float(point.gradient @ step)
        length = min(1.0, LONGEST / change) if change > 0 else 1.0
        unseen = ROUNDING * (self.sample.num_decisions + abs(point.value))
        while length >= SHORTEST:
            there = self.sample.at(point.weights + length * step, point)
            if there.value >= point.value + SUFFICIENT * length * slope - unseen:
                return there
            length *= SHORTER
        return None

    def _settled(self, found: _Found) -> _Found:
        """The same maximum without a part of what is not identified; whether it is one at all."""
        point, null = found.point, self._never_identified(found.point)
        plain = self.sample.at(point.weights - null @ (null.T @ point.weights), point)
        if abs(plain.value - point.value) <= SAME_MAXIMUM:
            found = _Found(plain, found.status)
        ended = found.status in (Status.CONVERGED, Status.INACCURATE)
        if ended and self._saturated(found.point).shape[1]:
            return _Found(found.point, Status.UNBOUNDED)
        return found

    def _never_identified(self, point: _Point) -> FloatArray:
        """Combinations, one a column, without information at the first point and at this one."""
        sizes = np.maximum(self.first.sizes, point.sizes)
        both = _Directions.of(
            self.first.fisher + point.fisher, sizes, 2 * self.sample.num_decisions
        )
        return both.null

    def _saturated(self, point: _Point) -> FloatArray:
        """Combinations, one a column, whose information has vanished since the first point."""
        start = self.first.directions
        if not start.identified.size:
            return np.zeros((self.sample.num_costs, 0))
        root = np.linalg.cholesky(start.reduced(self.first.fisher))
        ratio = np.linalg.solve(root, np.linalg.solve(root, start.reduced(point.fisher)).T)
        values, vectors = np.linalg.eigh((ratio + ratio.T) / 2)
        weak = np.linalg.solve(root.T, vectors[:, values <= SATURATED])
        return np.asarray(start.identified @ weak / start.scale[:, np.newaxis])

    def estimate(self, found: _Found) -> LikelihoodEstimate:
        point, directions = found.point, found.point.directions
        covariance = np.zeros((self.sample.num_costs, self.sample.num_costs))
        if directions.identified.size:
            matrix = directions.reduced(point.observed)
            if not point.is_concave:
                matrix = directions.reduced(point.fisher)
            part = directions.identified / directions.scale[:, np.newaxis]
            covariance = part @ np.linalg.inv(matrix) @ part.T
        return LikelihoodEstimate(
            names=self.given[0][1].names,
            weights=read_only(np.array(point.weights)),
            log_likelihood=point.value,
            uniform_log_likelihood=self.sample.uniform,
            num_decisions=self.sample.num_decisions,
            covariance=read_only(covariance),
            not_identified=read_only(self._never_identified(point).T.copy()),
            unbounded=read_only(self._saturated(point).T.copy()),
        )

    def words(self, found: _Found, estimate: LikelihoodEstimate) -> str:
        """What was reached, for the log."""
        reached = (
            f"log-likelihood {estimate.log_likelihood:.6f} of {estimate.num_decisions} decisions; "
            f"{self.agreeing} of {self.tried} starts came to it"
        )
        return "; ".join([reached, *estimate.remarks])


@dataclass(frozen=True)
class LikelihoodRatio:
    """A test of a restricted cost basis against a larger one that contains it.

    If the restricted basis expresses the expert's cost, `statistic` follows, in large samples, the
    chi-squared distribution with `degrees_of_freedom`: `p_value` is the probability of more.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float


def likelihood_ratio(larger: Answer, restricted: Answer) -> LikelihoodRatio:
    """Whether the costs that `larger` has beyond `restricted` explain the decisions better.

    Both are answers of `MaximumLikelihood` on the same decisions in the same world; every cost of
    the restricted basis must be a combination of those of the larger one, up to a constant.
    """
    one, other = _estimate_of(larger), _estimate_of(restricted)
    counts = [_counted(answer.problem) for answer in (larger, restricted)]
    if not np.array_equal(counts[0], counts[1]):
        raise InvalidProblem(
            "the two answers are about different decisions",
            "Estimate both from the same demonstrations in the same world",
        )
    _require_nested(larger.problem, restricted.problem)
    more = one.num_identified - other.num_identified
    if more < 1:
        raise InvalidProblem(
            f"the larger basis identifies {one.num_identified} combinations of costs, the "
            f"restricted one {other.num_identified}: there is nothing to test",
            "Add a cost that the decisions depend on",
        )
    statistic = max(2 * (one.log_likelihood - other.log_likelihood), 0.0)
    from scipy.special import chdtrc

    return LikelihoodRatio(statistic, more, float(chdtrc(more, statistic)))


def _estimate_of(answer: Answer) -> LikelihoodEstimate:
    if answer.likelihood is None:
        raise InvalidProblem(
            f"an answer of {answer.engine} has no likelihood",
            "Give answers of jm.solvers.MaximumLikelihood()",
        )
    if answer.status is not Status.OPTIMAL and answer.status is not Status.CONVERGED:
        raise InvalidProblem(
            f"an estimate has not converged: {answer.status.name}", answer.status.remedy
        )
    return answer.likelihood


def _counted(problem: Apprenticeship) -> IntArray:
    demos = require_demonstrations(problem, "a likelihood ratio")
    return np.bincount(demos.pairs_in(problem.world), minlength=problem.world.num_pairs)


def _require_nested(larger: Apprenticeship, restricted: Apprenticeship) -> None:
    inside = np.asarray(dense(restricted.cost_matrix), dtype=float)
    outside = np.asarray(dense(larger.cost_matrix), dtype=float)
    outside = np.column_stack([outside, np.ones(len(outside))])
    outside = outside / np.maximum(np.abs(outside).max(axis=0), 1e-300)
    found = np.linalg.lstsq(outside, inside, rcond=None)[0]
    missed = np.abs(outside @ found - inside).max(axis=0)
    wrong = missed > 1e-8 * np.maximum(np.abs(inside).max(axis=0), 1e-300)
    if wrong.any():
        name = restricted.basis.names[int(np.argmax(wrong))]
        raise InvalidProblem(
            f"cost {name!r} of the restricted basis is no combination of the larger basis's costs",
            "A likelihood ratio compares a basis with a part of it; compare others by "
            "log_likelihood less num_identified (Akaike)",
        )
