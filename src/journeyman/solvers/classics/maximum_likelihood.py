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
with a right-hand side per cost; J takes one more system. In a world with a horizon layers have
temperatures of their own (`soft_scales`): there A is in units of its layer's, n is divided by it in
E' n, and y multiplied.

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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    dense,
    read_only,
    real_array,
)
from journeyman.costs import CostBasis
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidProblem, InvalidSolver
from journeyman.execution import one_blas_thread
from journeyman.policy import Plan, Policy
from journeyman.policy.planning import (
    CLOSE,
    NoSoftPolicy,
    require_free_ends,
    soft_change,
    soft_plan,
    soft_scales,
)
from journeyman.policy.policy_evaluation import (
    DiscountedSystem,
    PolicySystems,
    averaging,
    factorise,
)
from journeyman.policy.table import log_softmax
from journeyman.problem import Apprenticeship, Family
from journeyman.problem.family import require_members
from journeyman.progress import Observer
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
    starts: int = 2
    start: tuple[float, ...] | None = None
    max_iterations: int = 200
    seed: int = 0
    time_limit: float | None = None
    reaches_goals: ClassVar[bool] = True
    """It works with discount 1 (`solvers.solve`)."""

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
        search = _Search(self, [Member(problem.world, problem.basis, demos)], watch)
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

    def estimate(
        self,
        members: Family | Iterable[tuple[World, CostBasis, Demonstrations]],
        *,
        observer: Observer | None = None,
    ) -> LikelihoodEstimate:
        """One cost for several worlds, each with its costs (of the same names) and records.

        Trips to different destinations, patients of different groups: L is the sum over members.
        Where every step is certain and the discount is 1 (a road network), members that differ in
        their destination only share one factorisation. The answer has no policy and no bounds; for
        these solve `Family(members).problem()`, or one member's problem.
        """
        parts = members.members if isinstance(members, Family) else members
        given = tuple(parts)
        require_members(given)
        watch = Watch(type(self).__name__, observer or (lambda event: None), self.time_limit)
        with one_blas_thread(), watch:
            search = _Search(self, [Member(*one) for one in given], watch)
            return search.estimate(search.run())


class Member(NamedTuple):
    """One of several worlds that share a cost."""

    world: World
    basis: CostBasis
    demonstrations: Demonstrations


SATURATED = 1e-7
"""Directions whose information has fallen below this share of its first value have no estimate."""
SAME = 1e-12
"""Of the information of costs of size one: combinations below it are not identified."""
NOISE = 1e-11
"""Relative error of values, and so what rounding may show as information."""
LONGEST = 4.0
"""A step changes no recorded decision's log-odds by more than this (to first order)."""
BESIDE = 0.5
"""Standard errors: a start that has come so near to a known maximum, and whose next step leads so
near to it, is not followed to the end."""
NEARER = (1.0, 0.3, 0.1)
"""Drawn starts without a soft-optimal policy are tried again, so much nearer to the first one."""
SUFFICIENT, SHORTER, SHORTEST = 1e-4, 0.4, 1e-9
ROUNDING = 1e-13
"""Of log-likelihoods, relative to the number of decisions."""
SAME_MAXIMUM = 1e-6
"""Log-likelihoods that differ by less belong to one maximum."""


class _Soft(NamedTuple):
    """The soft-optimal policy of a cost in one world."""

    values: FloatArray
    log_law: FloatArray
    system: "_System | None"
    """None once derivatives have been taken: of hundreds of members they need much memory."""


class _System(Protocol):
    """I - discount P_pi of a soft-optimal policy, for several right-hand sides (states x k)."""

    def solve(self, right: FloatArray, *, transposed: bool = False) -> FloatArray: ...


class _Factored:
    """By the package's own solver, column by column."""

    def __init__(self, system: DiscountedSystem) -> None:
        self.system = system

    def solve(self, right: FloatArray, *, transposed: bool = False) -> FloatArray:
        columns = [self.system.solve(one, transposed=transposed).x for one in right.T]
        return np.column_stack(columns)


class Decisions:
    """One world with its costs and the decisions recorded in it."""

    def __init__(self, world: World, basis: CostBasis, demos: Demonstrations) -> None:
        self.world = world
        self.costs = np.asarray(dense(basis.on(world)), dtype=float)
        require_free_ends(world, self.costs, "a cost")
        temperatures = soft_scales(world)
        self.temperatures = np.where(temperatures > 0, temperatures, 1.0)
        taken = demos.on(world).pairs_in(world)
        taken = taken[~self._resting[world.pairs.states[taken]]]
        self.counts = np.bincount(taken, minlength=world.num_pairs).astype(float)
        self.visits = world.pairs.total(self.counts)
        self.flow = world.flow.apply(self.counts / world.pairs.spread(self.temperatures))
        self.taken = np.flatnonzero(self.counts)

    @property
    def _resting(self) -> BoolArray:
        """States in which an episode is over: what is recorded there is no decision."""
        world, layers = self.world, self.world.layers
        if layers is None:
            return world.absorbing if world.has_goal else np.zeros(world.num_states, dtype=bool)
        first = self.costs[world.pairs.offsets[world.pairs.states]]
        alike = world.pairs.smallest(-np.abs(self.costs - first).max(axis=1)) == 0
        over = np.append(np.tile(layers.base.absorbing, layers.horizon), True)
        return np.asarray(alike & over)

    @cached_property
    def systems(self) -> PolicySystems:
        return PolicySystems(self.world)

    def soft(self, cost: FloatArray, near: _Soft | None) -> _Soft | None:
        """The soft-optimal policy; None where going round for ever is worth it."""
        world = self.world
        start = None if near is None else Plan(Policy.uniform(world), near.values, 0.0, 0)
        try:
            plan = soft_plan(world, cost, warm_start=start, systems=self.systems)
        except NoSoftPolicy:
            return None
        spread = world.pairs.spread(self.temperatures)
        law = log_softmax(world.pairs, -self.backup(cost, plan.values) / spread)
        return _Soft(plan.values, law, _Factored(self.systems.of(plan.policy)))

    def backup(self, cost: FloatArray, values: FloatArray) -> FloatArray:
        """Q = c + discount P V, of one cost or of several."""
        return np.asarray(cost + self.world.discount * (self.world.continuation @ values))

    def log_likelihood(self, soft: _Soft) -> float:
        return float(self.counts[self.taken] @ soft.log_law[self.taken])

    def slope(self, soft: _Soft) -> FloatArray:
        """The gradient of L in the cost of every pair: what the policy does from the recorded
        states on less what was recorded, pi(a | x) s(x) - n(x, a), with E_pi' s = E' n."""
        assert soft.system is not None
        shadow = soft.system.solve(self.flow[:, np.newaxis], transposed=True)[:, 0]
        spread = self.world.pairs.spread
        return np.exp(soft.log_law) * spread(shadow) - self.counts / spread(self.temperatures)

    def derivatives(self, soft: _Soft) -> "_Derivatives":
        """All of them at once: the table of advantages is large and is not kept."""
        pairs, law = self.world.pairs, np.exp(soft.log_law)
        mean = averaging(self.world, law)
        assert soft.system is not None
        values = soft.system.solve(mean @ self.costs)
        backup = self.backup(self.costs, values)
        centred = backup - pairs.spread(mean @ backup)
        centred /= pairs.spread(self.temperatures)[:, np.newaxis]
        shadow = soft.system.solve(self.flow[:, np.newaxis], transposed=True)[:, 0]
        shadow = shadow * self.temperatures
        seen = law * pairs.spread(self.visits)
        used = np.flatnonzero(seen)
        return _Derivatives(
            -(self.counts[self.taken] @ centred[self.taken]),
            centred[used].T @ (seen[used, np.newaxis] * centred[used]),
            centred.T @ ((law * pairs.spread(shadow))[:, np.newaxis] * centred),
            np.abs(values).max(axis=0) + np.abs(self.costs).max(axis=0),
            centred[self.taken],
        )


class _Derivatives(NamedTuple):
    """Of L, in one world; of several the sums."""

    gradient: FloatArray
    fisher: FloatArray
    observed: FloatArray
    sizes: FloatArray
    """How large the values of each cost are."""
    taken: FloatArray
    """Advantages of the recorded pairs."""


class _Network:
    """Members with discount 1 whose every step is certain: routes to several destinations.

    There exp(-V) = z is linear: z = M z off the ends, z = 1 at them, with M(x, y) the sum of
    exp(-c(x, a)) over the actions that lead from x to y, and I - P_pi = diag(1/z) (I - M) diag(z).
    Soft values exist exactly if the spectral radius of M is below 1 (I - M is an M-matrix), which a
    positive solution z proves: M z <= z, and strictly after as many steps as an end is away.
    Members that differ in few states (their destinations) share the factor of the first one: I -
    M_k is that of the first member with a few rows replaced, whose inverse follows by the formula
    of Woodbury; what leads to an end of all members stands on the right-hand side. The residual of
    V = TV decides, and corrections by the same factor are repeated until it no longer falls.
    """

    def __init__(self, members: Sequence[Decisions]) -> None:
        self.members = members
        common = np.logical_and.reduce([one.world.absorbing for one in members])
        self.rows = [_Rows(one, common) for one in members]
        self.differing = [one.differing(self.rows[0]) for one in self.rows]

    def soft(self, weights: FloatArray, near: Sequence[_Soft] | None) -> list[_Soft] | None:
        shared: tuple[Any, SparseMatrix] | None = None
        found = []
        for place, member in enumerate(self.members):
            cost, states = member.costs @ weights, self.differing[place]
            with np.errstate(over="ignore"):
                matrix, right = self.rows[place].system(cost)
            if not (np.isfinite(matrix.data).all() and np.isfinite(right).all()):
                return None
            one: _Soft | _Missing = _Missing.POSITIVE
            if shared is not None and states is not None:
                one = network_soft(member, cost, right, shared[0], _Update(*shared, matrix, states))
            if isinstance(one, _Missing):
                try:
                    own = factorise(sparse.eye_array(matrix.shape[0], format="csr") - matrix)
                except RuntimeError:  # exactly singular
                    return None
                shared = shared or (own, matrix)
                one = network_soft(member, cost, right, own, None)
            if one is _Missing.DIGITS:
                one = member.soft(cost, None if near is None else near[place]) or one
            if isinstance(one, _Missing):
                return None
            found.append(one)
        return found


class _Rows:
    """Where the steps of a deterministic world lead; ends lead nowhere."""

    def __init__(self, member: Decisions, common: BoolArray) -> None:
        world = member.world
        kept = world.continuation
        going = np.flatnonzero(np.diff(kept.indptr))
        sources, targets = world.pairs.states[going], kept.indices
        last = common[targets]
        self.shape = (world.num_states, world.num_states)
        self.ends = world.absorbing.astype(float)
        self.inner, self.sources, self.targets = going[~last], sources[~last], targets[~last]
        self.final, self.before = going[last], sources[last]
        draws = np.random.default_rng(0).normal(size=(3, member.costs.shape[1]))
        mixed = (np.cos(member.costs[self.inner] @ draws[0]) + np.cos(self.targets * 0.7 + 0.1),
                 member.costs[self.inner] @ draws[1])  # fmt: skip
        self.marks = np.array([np.bincount(self.sources, one, world.num_states) for one in mixed])

    def system(self, cost: FloatArray) -> tuple[SparseMatrix, FloatArray]:
        """M without the ends of all members, and what z is on the right-hand side."""
        parts = (np.exp(-cost[self.inner]), (self.sources, self.targets))
        right = np.bincount(self.before, np.exp(-cost[self.final]), self.shape[0])
        return sparse.csr_array(sparse.coo_array(parts, shape=self.shape)), right + self.ends

    def differing(self, other: "_Rows") -> IntArray | None:
        """The states whose steps seem to differ; None where they are many. Those that are missed
        show in the residual."""
        if self.shape != other.shape:
            return None
        states = np.flatnonzero((self.marks != other.marks).any(axis=0))
        return states if states.size <= MOST_DIFFERING else None


MOST_DIFFERING = 16
"""States in which members may differ and still share a factor."""


class _Update:
    """The inverse of a matrix in which a few rows were replaced, from the factor of the other."""

    def __init__(
        self, factor: Any, base: SparseMatrix, matrix: SparseMatrix, states: IntArray
    ) -> None:
        self.states = states
        self.change = (base[states] - matrix[states]).toarray()
        count = base.shape[0]
        unit = np.zeros((count, states.size))
        unit[states, np.arange(states.size)] = 1.0
        self.columns = factor.solve(unit) if states.size else unit
        self.small = np.eye(states.size) + self.change @ self.columns
        self.rows = factor.solve(self.change.T.copy(), trans="T") if states.size else unit

    def corrected(self, found: FloatArray, transposed: bool) -> FloatArray:
        if not self.states.size:
            return found
        if transposed:
            small = np.eye(self.states.size) + self.rows[self.states]
            return np.asarray(found - self.rows @ np.linalg.solve(small, found[self.states]))
        return np.asarray(found - self.columns @ np.linalg.solve(self.small, self.change @ found))


class _Scaled:
    """I - P_pi = diag(1/z) (I - M) diag(z) by a factor of I - M, refined."""

    def __init__(
        self, world: World, values: FloatArray, law: FloatArray, factor: Any, update: Any
    ) -> None:
        self.z, self.factor, self.update = np.exp(-values)[:, np.newaxis], factor, update
        self.mean, self.step = averaging(world, law), world.continuation

    def solve(self, right: FloatArray, *, transposed: bool = False) -> FloatArray:
        x = self._once(right, transposed)
        left = self._residual(right, x, transposed)
        size = np.abs(left).sum()
        for _ in range(3):
            if size <= 1e-12 * np.abs(right).sum():
                break
            there = x + self._once(left, transposed)
            remaining = self._residual(right, there, transposed)
            if not np.abs(remaining).sum() < size:
                break
            x, left, size = there, remaining, np.abs(remaining).sum()
        return x

    def _residual(self, right: FloatArray, x: FloatArray, transposed: bool) -> FloatArray:
        """What P_pi, which is the mean of the steps, leaves of the right-hand side."""
        ahead = self.step.T @ (self.mean.T @ x) if transposed else self.mean @ (self.step @ x)
        return np.asarray(right - x + ahead)

    def _once(self, right: FloatArray, transposed: bool) -> FloatArray:
        z = self.z
        scaled = right / z if transposed else right * z
        found = self.factor.solve(scaled, trans="T" if transposed else "N")
        if self.update is not None:
            found = self.update.corrected(found, transposed)
        return np.asarray(found * z if transposed else found / z)


class _Missing(Enum):
    """What a network lacks for a plan by z."""

    POSITIVE = "a positive z: there is no soft-optimal policy, or the factor is of no use"
    DIGITS = "digits: z is too small for float64, and V has to be found otherwise"


def network_soft(
    member: Decisions, cost: FloatArray, right: FloatArray, factor: Any, update: _Update | None
) -> _Soft | _Missing:
    """The soft plan with V = -log z, or what is missing for it."""
    world = member.world
    z = factor.solve(right)
    if update is not None:
        z = update.corrected(z, False)
    if not (np.isfinite(z).all() and (z >= 0).all()):
        return _Missing.POSITIVE
    if not (z > SMALLEST).all():
        return _Missing.DIGITS
    values, best = np.where(world.absorbing, 0.0, -np.log(z)), np.inf
    while True:
        change, law = soft_change(world, cost, values)
        system = _Scaled(world, values, np.exp(law), factor, update)
        left, unit = float(np.abs(change).max()), 1.0 + float(np.abs(values).max())
        if left <= 1e-13 * unit:
            return _Soft(values, law, system)
        if not left < best / 2:
            return _Soft(values, law, system) if left <= CLOSE * unit else _Missing.POSITIVE
        best = left
        values = values + system.solve(change[:, np.newaxis])[:, 0]


SMALLEST = 1e-280
"""Values of z below it have lost digits."""


def grouped(members: Sequence[Decisions]) -> "list[tuple[list[int], _Network | None]]":
    """Members that share a factor, together; all others alone."""
    certain = [
        place
        for place, one in enumerate(members)
        if one.world.has_goal and bool((np.diff(one.world.transition.indptr) == 1).all())
    ]
    groups: list[tuple[list[int], _Network | None]] = []
    if certain:
        groups.append((certain, _Network([members[place] for place in certain])))
    alone = set(range(len(members))) - set(certain)
    return groups + [([place], None) for place in sorted(alone)]


class _Sample:
    """L over all members; counts the soft plans it makes."""

    def __init__(self, members: Sequence[Decisions]) -> None:
        self.members = members
        self.groups = grouped(members)
        self.num_decisions = int(sum(one.counts.sum() for one in members))
        self.num_costs = members[0].costs.shape[1]
        self.plans = 0

    def at(self, weights: FloatArray, near: "_Point | None" = None) -> "_Point | None":
        """None where some member has no soft-optimal policy."""
        self.plans += len(self.members)
        found: list[_Soft] = [None] * len(self.members)  # type: ignore[list-item]
        for places, network in self.groups:
            known = None if near is None else [near.soft[place] for place in places]
            if network is not None:
                some = network.soft(weights, known)
            else:
                member = self.members[places[0]]
                one = member.soft(member.costs @ weights, None if known is None else known[0])
                some = None if one is None else [one]
            if some is None:
                return None
            for place, soft in zip(places, some, strict=True):
                found[place] = soft
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
    soft: list[_Soft]

    @cached_property
    def value(self) -> float:
        pairs = zip(self.sample.members, self.soft, strict=True)
        return float(sum(one.log_likelihood(soft) for one, soft in pairs))

    @property
    def policies(self) -> list[Policy]:
        pairs = zip(self.sample.members, self.soft, strict=True)
        return [Policy(np.exp(soft.log_law), one.world.pairs) for one, soft in pairs]

    @cached_property
    def _derivatives(self) -> _Derivatives:
        parts = []
        for place, one in enumerate(self.sample.members):
            parts.append(one.derivatives(self.soft[place]))
            self.soft[place] = self.soft[place]._replace(system=None)
        return _Derivatives(
            np.sum([one.gradient for one in parts], axis=0),
            np.sum([one.fisher for one in parts], axis=0),
            np.sum([one.observed for one in parts], axis=0),
            np.max([one.sizes for one in parts], axis=0),
            np.vstack([one.taken for one in parts]),
        )

    @property
    def gradient(self) -> FloatArray:
        return self._derivatives.gradient

    @property
    def fisher(self) -> FloatArray:
        return self._derivatives.fisher

    @property
    def observed(self) -> FloatArray:
        return self._derivatives.observed

    @property
    def sizes(self) -> FloatArray:
        return self._derivatives.sizes

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
        curvature = found.reduced(self.observed if self.is_concave else self.fisher)
        move = np.asarray(np.linalg.solve(curvature, slope), dtype=float)
        return found.expanded(move), max(float(slope @ move), 0.0) ** 0.5

    def change(self, step: FloatArray) -> float:
        """The largest change of a recorded decision's log-odds along a step, to first order."""
        return float(np.abs(self._derivatives.taken @ step).max(initial=0.0))


def is_positive(matrix: FloatArray) -> bool:
    """Whether a matrix is positive definite, beyond rounding."""
    if not matrix.size:
        return True
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    return bool(values[0] > SAME * max(abs(values[-1]), 1e-300))


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
    given: Sequence[Member]
    watch: Watch
    iterations: int = 0
    agreeing: int = 0
    tried: int = 0
    sample: _Sample = field(init=False)

    def __post_init__(self) -> None:
        self.sample = _Sample([Decisions(*one) for one in self.given])
        given, count = self.solver.start, self.sample.num_costs
        if given is not None and len(given) != count:
            raise InvalidSolver(
                f"start has {len(given)} weights, and there are {count} costs", "Give one per cost"
            )
        self.first = self._first(None if given is None else np.asarray(given))

    def _first(self, given: FloatArray | None) -> _Point:
        """The start: the given one, zero, or costs so large that every walk comes to an end."""
        count = self.sample.num_costs
        point = self.sample.at(np.zeros(count) if given is None else given)
        if point is not None:
            return point
        if given is None:
            direction = positive_direction(self.sample.members)
            scale = 1.0
            while direction is not None and scale <= 2.0**20:
                point = self.sample.at(scale * direction)
                if point is not None:
                    return point
                scale *= 2.0
        raise InvalidProblem(
            "with discount 1 no soft-optimal policy was found to start from: where steps cost "
            "little, the entropy of going round for ever is worth more than it costs",
            "Give start= weights that make every step expensive enough, or a world with a discount "
            "below 1",
        )

    def run(self) -> _Found:
        found = [self._climb(self.first)]
        rng = np.random.default_rng(self.solver.seed)
        spread = self.first.directions
        for _ in range(self.solver.starts - 1):
            if self.watch.must_stop or not spread.identified.size:
                break
            drawn = spread.expanded(rng.normal(size=(spread.identified.shape[1],)))
            for length in NEARER:
                start = self.sample.at(self.first.weights + length * drawn)
                if start is not None:
                    found.append(self._climb(start, found[0]))
                    break
        best = max(found, key=lambda one: one.point.value)
        self.tried = len(found)
        near = [abs(one.point.value - best.point.value) <= SAME_MAXIMUM for one in found]
        self.agreeing = sum(near)
        return self._settled(best)

    def _climb(self, point: _Point, known: _Found | None = None) -> _Found:
        """Newton steps until the maximum is near, or the known one, or a limit."""
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
            if known is not None and known.status is Status.CONVERGED:
                aside = point.weights + step - known.point.weights
                if max(distance, float(aside @ point.fisher @ aside) ** 0.5) <= BESIDE:
                    return known
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
            if (
                there is not None
                and there.value >= point.value + SUFFICIENT * length * slope - unseen
            ):
                return there
            length *= SHORTER
        return None

    def _settled(self, found: _Found) -> _Found:
        """The same maximum without a part of what is not identified; whether it is one at all."""
        point, null = found.point, self._never_identified(found.point)
        if null.shape[1]:
            plain = self.sample.at(point.weights - null @ (null.T @ point.weights), point)
        else:
            plain = None
        if plain is not None and abs(plain.value - point.value) <= SAME_MAXIMUM:
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
            names=self.given[0].basis.names,
            weights=read_only(np.array(point.weights)),
            status=found.status,
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


def positive_direction(members: Sequence[Decisions]) -> FloatArray | None:
    """Weights under which every step that does not lead to an end costs at least 1, if any."""
    rows = [one.costs[one.world.continuation @ (~one.world.absorbing) > 0] for one in members]
    table = np.vstack(rows)
    sizes = np.abs(table).max(axis=0)
    scaled = table / np.where(sizes > 0, sizes, 1.0)
    simple = scaled.sum(axis=1)
    if not (scaled.min() >= 0 and simple.min() > 1e-3):
        from scipy.optimize import linprog

        scaled, count = np.unique(scaled, axis=0), scaled.shape[1]
        found = linprog(
            np.append(np.zeros(count), -1.0),
            A_ub=np.column_stack([-scaled, np.ones(len(scaled))]),
            b_ub=np.zeros(len(scaled)),
            bounds=[(-1, 1)] * count + [(None, None)],
        )
        if found.status != 0 or found.x[-1] <= 1e-9:
            return None
        weights, least = found.x[:-1], float(found.x[-1])
    else:
        weights, least = np.ones(scaled.shape[1]), float(simple.min())
    return np.asarray(weights / np.where(sizes > 0, sizes, 1.0) / least)


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
