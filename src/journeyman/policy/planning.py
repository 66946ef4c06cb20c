"""Planning: an optimal policy for a known cost, with a proven error.

    minimise over policies   E sum_t discount^t c(x_t, a_t)                                 (plan)
    minimise over policies   E sum_t discount^t ( c(x_t, a_t) + temperature log pi(a_t | x_t) )
                                                                                       (soft_plan)

`plan` is modified policy iteration: act greedily on the values at hand, evaluate that policy, not
exactly, and begin again. How well is decided by the two spans that are known then, of TV - V and of
what the evaluation left of its residual. Where the first is much larger, the policy still turns,
and an evaluation is worth no more than the Bellman step before it: some sweeps. Where it is not,
the policy hardly turns, and every further evaluation gets four times the effort of the one before,
BiCGSTAB among it (`policy.steps`), until the tolerance is met. After many iterations all
evaluations are exact, and it is policy iteration, which ends.

`soft_plan` trades cost against entropy: -log pi is the surprise of an action, and a policy is paid
for staying random. The soft values solve the soft Bellman equation V = TV with

    TV(x) = -temperature log sum_a exp( -Q(x, a)/temperature ),      Q = c + discount P V
    pi(a | x) = exp( (V(x) - Q(x, a))/temperature )

and the policy is unique; at temperature zero it is that of `plan`. The method is Newton's on
V = TV, which is soft policy iteration: evaluate the policy at hand, its entropy included, then take
the soft-greedy policy of its values. One step is one linear system (`PolicySystems`), and
convergence is quadratic once the policy hardly changes, at whatever discount. Systems are solved
roughly while much is still to be gained.

Guarantee. Either operator T is monotone and T(V + k) = TV + discount k, so any V and its (soft-)
greedy policy pi satisfy in every state

    V + min(TV - V)/(1 - discount)  <=  V*  <=  V_pi  <=  V + max(TV - V)/(1 - discount)

so pi is optimal within span(TV - V)/(1 - discount), plus what rounding can have hidden of TV - V.
Iteration stops when this is below `tolerance`, or when float64 cannot improve the policy any more;
`Plan.error` is what was proven either way. Cost of an iteration: one pass over all transitions, and
about as long for an evaluation while the policy turns.

*With discount 1* the total until an end is minimised over proper policies. Value
iteration can stop at a fixed point that no proper policy attains: where a cycle costs nothing, TV =
V has many solutions. Policy iteration from a proper policy, in which an action gives way to a
better one only, stays with proper policies unless a cycle costs less than nothing: an improved
policy pi' has c + K V <= V at its pairs, so a class of states that it never leaves has a mean cost
of at most 0, and of 0 only if no action there was changed. A negative cycle is refused with its
states, for going round once more is always better. The guarantee is that of V against policies
which expect at most M = `effective_horizon` steps from any state,

    V + M min(0, min(TV - V))  <=  V_M*,        |V - V_pi| <= max|c_pi + K_pi V - V| max w_pi

with w_pi the expected times of pi, which are proven (`proven_time`). `soft_plan` counts entropy
until the end. Its policies take every action and so come to an end; from the second step on values
fall, either to the soft values or without end: where steps cost little, the entropy of going round
is worth more than it costs, no policy is soft-optimal, and that is refused.

Reference: Puterman, Markov Decision Processes, sections 6.4 and 6.6; Bertsekas and Tsitsiklis, "An
analysis of stochastic shortest path problems", Mathematics of Operations Research, 1991; Ziebart,
Bagnell and Dey, "Modeling interaction via the principle of maximum causal entropy", ICML 2010.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import BoolArray, FloatArray, IntArray, dense, read_only, require_between
from journeyman.costs import CostBasis
from journeyman.errors import InvalidCosts, InvalidPolicy
from journeyman.policy.policy_evaluation import (
    Chains,
    DiscountedSystem,
    PolicySystems,
    expected_times,
    occupancy,
)
from journeyman.policy.steps import MISSED, MOST_EFFORT
from journeyman.policy.table import Policy, log_softmax
from journeyman.progress import out_of_time
from journeyman.world import World
from journeyman.world.goals import leading_to, named, nearing, never_left
from journeyman.world.layers import flattened
from journeyman.world.levels import require_discounted

RELATIVE_TOLERANCE = 1e-11
"""Default tolerance, relative to the largest conceivable value max|c|/(1 - discount)."""
MAX_ITERATIONS, LEAST_ITERATIONS = 1000, 2
"""Of a plan, also where its time is over."""
SHARE = 0.1
"""Evaluations leave this share of the residual: more is lost when the policy turns."""
FAR = 100.0
"""Horizons from which they leave less of it: values are wrong by up to horizon times residual."""
STABLE = 2.0
"""Times what an evaluation has left: where greedy finds no more than that, the policy hardly turns,
and more is to be had from a better evaluation."""
CLOSE_ENOUGH = 0.5
"""Of the tolerance: what the last evaluation is asked for."""
PATIENCE = 25
"""Iterations after which an evaluation is worth twice as much: in the end all are exact, and policy
iteration comes to an end."""
ROUNDED, STRIKES = 20.0, 5
"""Residuals below so many times what rounding can hide, and not half of the best before, may occur
so often: float64 is then held responsible."""
IDLE = 20
"""Steps of `soft_plan` without a better error: the same."""
EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Plan:
    """A policy, values within `error`/2 of optimal, and how far off the policy can be.

    `plan` makes deterministic ones; those of `soft_plan` are random, and in their values and error
    the policy's entropy counts as a saving.
    """

    policy: Policy
    values: FloatArray
    error: float
    """In every state the policy costs at most this much more than an optimal one."""
    iterations: int


def plan(
    world: World,
    cost: ArrayLike,
    *,
    tolerance: float | None = None,
    warm_start: Plan | None = None,
) -> Plan:
    """An optimal policy of `world` for a cost per pair, per state, or (states x actions).

    With discount 1 the plan is as exact as float64 allows, whatever the tolerance.

    >>> world = World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    >>> found = plan(world, [1.0, 1.5, 0.0])
    >>> found.policy.probabilities([0]).tolist(), found.values.round(9).tolist()
    ([[0.0, 1.0]], [1.5, 0.0])
    """
    costs = flattened(world, "cost", cost, InvalidCosts)
    if world.has_goal:
        return _plan_to_end(world, costs, warm_start)
    if tolerance is None:
        tolerance = RELATIVE_TOLERANCE * float(np.abs(costs).max()) * world.effective_horizon
    chains, h = Chains(world), world.effective_horizon
    values = np.zeros(world.num_states) if warm_start is None else warm_start.values
    if chains.leads_forward:
        values = backward_values(world, costs)
    hidden = _Hidden(world, costs)
    found = best = _look(chains, costs, values, hidden)
    evaluations = _Evaluations(chains)
    iteration, iterations, strikes, left = 0, 0, 0, 0.0
    while best.error(world) > tolerance and iteration < MAX_ITERATIONS and strikes < STRIKES:
        if best.span <= best.rounding or (iteration >= LEAST_ITERATIONS and out_of_time()):
            break
        iteration += 1
        allowed = max(CLOSE_ENOUGH * tolerance / h, best.rounding, found.rounding)
        wanted, effort = evaluations.next(found.span, left, allowed)
        values, left = chains.values(found.choice, costs, found.best, wanted, effort)
        found = _look(chains, costs, values, hidden)
        if found.span + found.rounding < best.span + best.rounding:
            strikes = strikes if found.span > best.span / 2 else 0
            best, iterations = found, iteration
        strikes += found.span <= ROUNDED * found.rounding
    return best.plan(world, iterations)


class _Evaluations:
    """How exact the evaluations of a plan should be, and how much effort each of them is worth."""

    def __init__(self, chains: Chains) -> None:
        self._least = self._effort = chains.least_effort
        self._share = SHARE * min(1.0, FAR / chains.world.effective_horizon)
        self._wanted, self._count = 0.0, 0

    def next(self, span: float, left: float, allowed: float) -> tuple[float, int]:
        """The wanted residual and the effort, for the spans of TV - V and of what the evaluation
        before it has left."""
        self._count += 1
        floor = min(self._least << min(self._count // PATIENCE, 32), MOST_EFFORT)
        reached, self._wanted = left <= MISSED * self._wanted, max(allowed, self._share * span)
        if span > STABLE * left:
            self._effort = floor
        else:
            self._effort = max(floor, min(4 * self._effort, MOST_EFFORT))
            self._wanted = allowed if reached else self._wanted
        if floor == MOST_EFFORT:
            self._wanted = allowed
        return self._wanted, self._effort


class _Look(NamedTuple):
    """Values V and TV, the greedy choice, the extremes of TV - V and what rounding can hide."""

    values: FloatArray
    best: FloatArray
    choice: IntArray
    low: float
    high: float
    rounding: float

    @property
    def span(self) -> float:
        return self.high - self.low

    def error(self, world: World) -> float:
        """What is proven of the greedy policy."""
        return (self.span + 2 * self.rounding) * world.effective_horizon

    def plan(self, world: World, iterations: int) -> Plan:
        """The greedy policy and the values, which are moved to the middle of what is proven."""
        middle = self.values + (self.low + self.high) / 2 * world.effective_horizon
        policy = _deterministic(world, self.choice)
        return Plan(policy, read_only(middle), self.error(world), iterations)


def _look(chains: Chains, costs: FloatArray, values: FloatArray, hidden: "_Hidden") -> _Look:
    best, choice = chains.greedy(costs, values)
    change = best - values
    return _Look(values, best, choice, float(change.min()), float(change.max()), hidden(values))


class _Hidden:
    """What rounding can have hidden of TV - V, for one cost."""

    def __init__(self, world: World, costs: FloatArray) -> None:
        self.terms = int(np.diff(world.transition.indptr).max()) + 4
        self.largest = largest_of(costs)

    def __call__(self, values: FloatArray) -> float:
        return EPSILON * self.terms * (self.largest + 2 * largest_of(values))


def largest_of(values: FloatArray) -> float:
    """max |v|."""
    return float(max(values.max(), -values.min()))


CLEARLY = 1e-9
"""Of the values: a cycle that saves less may cost nothing."""


def require_free_ends(world: World, costs: FloatArray, what: str = "cost") -> None:
    """With discount 1, refuse costs (pairs, or pairs x costs) that an end would have."""
    if not world.has_goal:
        return
    ended = world.absorbing[world.pairs.states]
    wrong = ended & (np.abs(costs).reshape(world.num_pairs, -1).max(axis=1, initial=0.0) > 0)
    if wrong.any():
        pair = int(np.argmax(wrong))
        raise InvalidCosts(
            f"{what} is not zero in {world.describe_pair(pair)}, an end: with discount 1 it would "
            "be paid for ever",
            "Give costs of zero in absorbing states; put what an end costs on the steps into it",
        )


def _plan_to_end(world: World, costs: FloatArray, warm_start: Plan | None) -> Plan:
    """Policy iteration over proper policies."""
    require_free_ends(world, costs)
    values, choice, everywhere = np.zeros(world.num_states), None, np.ones(world.num_states, bool)
    if warm_start is not None:
        greedy = _greedy(world, _bellman(world, costs, warm_start.values)[0])
        if leading_to(world.continuation[greedy], world.absorbing).all():
            values, choice = warm_start.values, greedy
    if choice is None:
        choice = nearing(world)
    iterations, hidden = 0, _Hidden(world, costs)
    while iterations < MAX_ITERATIONS:
        iterations += 1
        system = DiscountedSystem(world.continuation[choice], 1.0)
        values = system.solve(costs[choice], guess=values).x
        backup, change = _bellman(world, costs, values)
        rounding = hidden(values)
        improved = _greedy(world, backup, keep=choice, margin=2 * rounding)
        endless = ~leading_to(world.continuation[improved], world.absorbing)
        if endless.any():
            rounds = never_left(world.continuation[improved]) & endless
            clear = CLEARLY * (np.abs(values).max() + np.abs(costs).max())
            if change[rounds].min() < -clear:
                raise NegativeCycle(world, rounds)
        improved = np.where(endless, choice, improved)
        if np.array_equal(improved, choice):
            break
        choice = improved
    _, longest = expected_times(world, system, everywhere)
    wrong = float(np.abs(backup[choice] - values).max()) + rounding
    missed = max(0.0, rounding - float(change.min())) * world.effective_horizon
    error = missed + 2 * wrong * longest
    return Plan(_deterministic(world, choice), read_only(values), error, iterations)


class NegativeCycle(InvalidCosts):
    """Going round in some states costs less than nothing: with discount 1 nothing is optimal."""

    def __init__(self, world: World, states: BoolArray) -> None:
        super().__init__(
            f"with discount 1 this cost has no least total: between {named(states)} there is a "
            "cycle that costs less than nothing, and a policy can go round as often as it likes",
            "Solve Forward(world, cost), whose policies expect at most M steps, or give the world "
            "a discount below 1",
        )


PRICES = 40
"""Of a step, that are tried before the best of them is taken."""
SHARPNESS = 1e-9
"""Of the bound: what another price is not tried for."""


def potential(
    world: World,
    costs: FloatArray,
    *,
    warm_start: Plan | None = None,
    tolerance: float | None = None,
) -> FloatArray:
    """Values V that prove, by `problem.bounds`, how little any policy's total can be.

    The optimal ones; with discount 1 those of the cost c + k per step, where k >= 0 is the price at
    which the least total of policies that expect at most M steps is attained:

        <mu, c> = <mu, c + k> - k |mu|  >=  <initial, V_{c+k}> - k M

    piecewise linear and concave in k, with slope (steps of the plan at k) - M. It is maximised by
    the intersection of tangents, or by bisection while a cycle still pays.
    """
    if not world.has_goal:
        return plan(world, costs, tolerance=tolerance, warm_start=warm_start).values
    step = (~world.absorbing[world.pairs.states]).astype(float)
    low = _priced(world, costs, step, 0.0, warm_start)
    if low is not None and low.slope <= 0:
        return low.plan.values
    price = float(np.abs(costs).max()) or 1.0
    high = _priced(world, costs, step, price)
    for _ in range(PRICES):
        if high is not None and high.slope <= 0:
            break
        low, price = high or low, 2 * price
        high = _priced(world, costs, step, price)
    if high is None:
        return read_only(np.zeros(world.num_states))
    best, bottom = high, 0.0
    for _ in range(PRICES):
        price = (bottom + high.price) / 2
        most = high.value + high.slope * (bottom - high.price)
        if low is not None:
            meeting = high.value - low.value + low.slope * low.price - high.slope * high.price
            price = meeting / (low.slope - high.slope)
            most = low.value + low.slope * (price - low.price)
        if most - best.value <= SHARPNESS * (1 + abs(best.value)):
            break
        found = _priced(world, costs, step, price, high.plan)
        if found is None:
            bottom = price
            continue
        best = max(best, found, key=lambda one: one.value)
        low, high = (found, high) if found.slope > 0 else (low, found)
    return best.plan.values


class _Priced(NamedTuple):
    """The bound at a price of a step, and by how much the plan exceeds M steps."""

    price: float
    value: float
    slope: float
    plan: Plan


def _priced(
    world: World,
    costs: FloatArray,
    step: FloatArray,
    price: float,
    warm_start: Plan | None = None,
) -> _Priced | None:
    """None where a cycle still pays."""
    try:
        found = _plan_to_end(world, costs + price * step, warm_start)
    except NegativeCycle:
        return None
    most, taken = world.effective_horizon, occupancy(world, found.policy).measure @ step
    value = float(world.initial @ found.values) - price * most
    return _Priced(price, value, float(taken) - most, found)


def backward_values(world: World, costs: FloatArray) -> FloatArray:
    """The optimal values where every step leads forward: one pass from the last state on."""
    from journeyman.policy.system_kernels import backward_plan

    values, matrix = np.empty(world.num_states), world.transition
    backward_plan(
        matrix.data, matrix.indices, matrix.indptr, world.pairs.offsets, costs, world.discount,
        values,
    )  # fmt: skip
    return values


@dataclass(frozen=True, eq=False)
class Improvement:
    """A deterministic policy as the pair it takes in each state, values, and what is not proven.

    With `loss` = max(V - TV), which may be negative, no policy costs less than
    V - loss/(1 - discount) from any state.
    """

    choice: IntArray
    values: FloatArray
    loss: float
    spread: float
    """max(TV - V) - min(TV - V): that bound is sharp to spread/(1 - discount)."""


def improve(
    chains: Chains, cost: FloatArray, values: FloatArray, *, allowed: float, most: int
) -> Improvement:
    """At most `most` iterations of `plan` from given values, for a cost per pair.

    It ends early when the spread is at most `allowed`. Made for callers that need many plans for
    costs that change little by little and that can pay for the loss, as every bound of
    `problem.duality` can; `plan` is for everybody else.
    """
    require_discounted(chains.world, "improve")
    if chains.leads_forward:
        values = backward_values(chains.world, cost)
    best, choice = chains.greedy(cost, values)
    change, left, evaluations = best - values, 0.0, _Evaluations(chains)
    for _ in range(most):
        span = float(change.max() - change.min())
        if span <= allowed or out_of_time():
            break
        wanted, effort = evaluations.next(span, left, CLOSE_ENOUGH * allowed)
        values, left = chains.values(choice, cost, best, wanted, effort)
        best, choice = chains.greedy(cost, values)
        change = best - values
    loss = -float(change.min())
    return Improvement(choice, values, loss, float(change.max()) + loss)


def _bellman(world: World, costs: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Action values c + discount P V per pair, and TV - V per state."""
    backup = costs + world.discount * (world.continuation @ values)
    return backup, world.pairs.smallest(backup) - values


def _greedy(
    world: World, backup: FloatArray, keep: IntArray | None = None, margin: float = 0.0
) -> IntArray:
    """The best pair of each state; `keep`'s pair where nothing is better by more than `margin`."""
    best = world.pairs.smallest(backup)
    candidates = np.where(backup == world.pairs.spread(best), np.arange(world.num_pairs), np.inf)
    choice = world.pairs.smallest(candidates).astype(np.int64)
    if keep is None:
        return choice
    return np.where(backup[keep] <= best + margin, keep, choice)


def _deterministic(world: World, choice: IntArray) -> Policy:
    probabilities = np.zeros(world.num_pairs)
    probabilities[choice] = 1.0
    return Policy(probabilities, world.pairs)


SOFT_ROUGH, SOFT_FINE = 1e-2, 1e-10
"""Of `soft_plan`: shares of their residual up to which systems are solved, less as it falls."""


def soft_plan(
    world: World,
    cost: ArrayLike,
    *,
    temperature: float = 1.0,
    tolerance: float | None = None,
    warm_start: Plan | None = None,
    systems: PolicySystems | None = None,
) -> Plan:
    """The soft-optimal policy for a cost per pair, per state, or (states x actions).

    `warm_start` is a plan for a similar cost; `systems` spares those who plan often in one world a
    look at its structure every time.

    >>> world = World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> found = soft_plan(world, [0.0, np.log(3)])
    >>> found.policy.probabilities([0]).round(9).tolist(), found.values.round(9).tolist()
    ([[0.75, 0.25]], [-0.575364145])
    """
    costs = flattened(world, "cost", cost, InvalidCosts)
    require_between(
        "temperature", temperature, 0, np.inf, InvalidCosts,
        "Give a positive temperature; jm.plan is for temperature zero",
    )  # fmt: skip
    if world.has_goal:
        return _soft_plan_to_end(world, costs, float(temperature), warm_start, systems)
    operator = _SoftBellman(world, costs, float(temperature))
    if tolerance is None:
        tolerance = RELATIVE_TOLERANCE * operator.size * world.effective_horizon
    values = np.zeros(world.num_states) if warm_start is None else warm_start.values
    values = operator.backward_values() if world.is_forward else values
    found = operator.at(values)
    best, plan, accuracy, idle = found, found.plan(world, 0), SOFT_ROUGH, 0
    systems = PolicySystems(world) if systems is None else systems
    for iteration in range(1, MAX_ITERATIONS + 1):
        if plan.error <= tolerance or best.span <= 2 * best.rounding or idle >= IDLE:
            break
        system = systems.of(found.policy)
        values = values + system.solve(found.change, reduction=accuracy).x
        previous, found = found.span, operator.at(values)
        accuracy = max(SOFT_FINE, min(SOFT_ROUGH, (found.span / previous) ** 2))
        idle += 1
        if found.span + found.rounding < best.span + best.rounding:
            best, plan, idle = found, found.plan(world, iteration), 0
    return plan


SOFT_STEPS, STALLED = 100, 5
"""Newton steps with discount 1, and such without progress, before it is given up."""
CLOSE = 1e-10
"""Of the values: what the soft Bellman equation may miss where float64 gets no nearer."""


class NoSoftPolicy(InvalidCosts):
    """With discount 1, going round for ever is worth more by its entropy than it costs."""

    def __init__(self) -> None:
        super().__init__(
            "with discount 1 no policy is soft-optimal for this cost: where steps cost little, the "
            "entropy of going round for ever is worth more than it costs",
            "Give steps a higher cost, a lower temperature, or the world a discount below 1",
        )


def soft_change(
    world: World, costs: FloatArray, values: FloatArray, temperature: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """TV - V, and the logarithm of the soft-greedy policy, with discount 1: zero at ends."""
    backup = costs + world.continuation @ values
    law = log_softmax(world.pairs, -backup / temperature)
    least = world.pairs.smallest(backup) - temperature * world.pairs.smallest(-law)
    return np.where(world.absorbing, 0.0, least) - values, law


def _soft_plan_to_end(
    world: World,
    costs: FloatArray,
    temperature: float,
    warm_start: Plan | None,
    systems: PolicySystems | None,
) -> Plan:
    """Soft policy iteration until an end."""
    require_free_ends(world, costs)
    systems = PolicySystems(world) if systems is None else systems
    if warm_start is None:
        law = world.pairs.uniform
        right = world.pairs.total(law * (costs + temperature * np.log(law)))
        first = systems.of(Policy.uniform(world))
        values = first.solve(np.where(world.absorbing, 0.0, right)).x
    else:
        values = np.where(world.absorbing, 0.0, warm_start.values)
    best, idle = np.inf, 0
    for iteration in range(1, SOFT_STEPS + 1):
        change, law = soft_change(world, costs, values, temperature)
        left = float(np.abs(change).max())
        unit = temperature + float(np.abs(values).max() + np.abs(costs).max())
        if not np.isfinite(left):
            break
        policy = Policy(np.exp(law), world.pairs)
        system = systems.of(policy)
        idle = idle + 1 if left > best / 2 else 0
        if left <= 1e-14 * unit or (idle >= STALLED and best <= CLOSE * unit):
            try:
                longest = expected_times(world, system, np.ones(world.num_states, dtype=bool))[1]
            except InvalidPolicy:  # values have fallen until nothing could be seen beside them
                break
            wrong = left + _Hidden(world, costs)(values) + EPSILON * world.pairs.max_actions * unit
            error = wrong * (longest + world.effective_horizon)
            return Plan(policy, read_only(values), error, iteration)
        best = min(best, left)
        values = values + system.solve(change).x
    raise NoSoftPolicy


class _SoftBellman:
    """T for one cost and temperature.

    In a world with a horizon an action's surprise counts as its cost does: the temperature of layer
    t has the factor of its costs, and nothing is paid for choices behind the end.
    """

    def __init__(self, world: World, costs: FloatArray, temperature: float) -> None:
        self.world, self.costs = world, costs
        scales = soft_scales(world)
        self.temperature = temperature * scales
        """Of every state."""
        self.of_pairs = np.where(scales > 0, self.temperature, temperature)[world.pairs.states]
        self.largest = temperature * float(scales.max())
        self.bonus = self.largest * float(np.log(world.pairs.max_actions))
        self.size = float(np.abs(costs).max()) + self.bonus

    def backward_values(self) -> FloatArray:
        """Soft values where every step leads forward, by one pass from the last state on."""
        from journeyman.policy.system_kernels import backward_soft_plan

        values, matrix = np.empty(self.world.num_states), self.world.transition
        backward_soft_plan(
            matrix.data, matrix.indices, matrix.indptr, self.world.pairs.offsets, self.costs,
            self.world.discount, self.temperature, values,
        )  # fmt: skip
        return values

    def at(self, values: FloatArray) -> "_Step":
        """The soft-greedy policy of `values`, and TV - V."""
        world, pairs = self.world, self.world.pairs
        backup = self.costs + world.discount * (world.continuation @ values)
        surprise = -log_softmax(pairs, -backup / self.of_pairs)
        new = pairs.smallest(backup) - self.temperature * pairs.smallest(surprise)
        terms = int(np.diff(world.transition.indptr).max()) + pairs.max_actions + 8
        rounding = EPSILON * terms * (self.size + self.largest + 2 * np.abs(values).max())
        policy = Policy(np.exp(-surprise), pairs)
        return _Step(values, new - values, policy, float(rounding))


def soft_scales(world: World) -> FloatArray:
    """By which a temperature is multiplied in every state: 1, or the factor of costs in a world
    that was made of another."""
    scales = np.ones(world.num_states)
    if world.layers is not None:
        scales = world.layers.state_factors.copy()
        scales[world.layers.end] = 0.0
    if world.averages is not None:
        scales = np.append(1.0 / world.averages.times, 0.0)
    return scales


@dataclass(frozen=True, eq=False)
class _Step:
    """Values, TV - V, the soft-greedy policy, and what rounding can have done to TV - V."""

    values: FloatArray
    change: FloatArray
    policy: Policy
    rounding: float

    @property
    def span(self) -> float:
        return float(self.change.max() - self.change.min())

    def plan(self, world: World, iterations: int) -> Plan:
        """The values are moved to the middle of what is proven of V*."""
        middle = float(self.change.max() + self.change.min()) / 2
        values = self.values + middle * world.effective_horizon
        error = (self.span + 2 * self.rounding) * world.effective_horizon
        return Plan(self.policy, read_only(values), error, iterations)


PRECISION = 1e-7
"""Of h times the span of the cost: how far outside a range may be."""
RELATIVE = 1e-5
"""Of the range itself: the same, for ranges that are narrow."""
MOST_STEPS = 100
"""Of policy iteration; a range that is not precise by then is still a range."""
REFINEMENTS = 3
"""A range that turns out to be narrower still is sought more precisely again."""
WORK_LIMIT = 20_000_000
"""Stored transitions times costs beyond which no plans are made (some seconds, 100 MB)."""


class AttainableRanges:
    """No policy of the world has an expectation outside [lowest, highest].

        lowest_k  <=  <mu_pi, psi_k>  <=  highest_k                       for every policy pi

    In episodic worlds they are far narrower than max|psi|/(1 - discount): most discounted time is
    spent behind the end, where nothing can be chosen any more. They decide what a bound is compared
    with.

    Guarantee. For any V, with h = 1/(1 - discount), no policy totals less than <initial, V> + h
    min(T V - V) (Puterman, section 6.3), so every number here is an outer bound, rough plan or not;
    rounding is subtracted. The policies found attain it within `PRECISION` of h times the cost's
    span, and within `RELATIVE` of the range where float64 allows it: a range of one step in a world
    of a million is still distinguished from none.

    Cost: two plans per cost by `improve`, about 0.01 s per cost on a 64 x 64 grid, made for a cost
    when it is first asked for. Above `WORK_LIMIT` (transitions times costs) the ranges are h times
    the extreme costs, which need no plan; `planned` says which.
    """

    def __init__(self, world: World, basis: CostBasis, found: "_Found | None" = None) -> None:
        self.widest = widest_ranges(world, basis)
        """(lowest, highest) as the costs alone bound them: h times their extremes."""
        self.planned = world.transition.nnz * basis.num_costs <= WORK_LIMIT
        """False where the world is too large: the ranges are then the widest."""
        self._matrix = basis.on(world)
        self._chains = Chains(world)
        self._found: _Found = {} if found is None else found
        self._cut_short: _Found = {}
        """Ranges that hold and are kept here only, since more time finds narrower ones."""

    def of(self, cost: int) -> tuple[float, float]:
        """The range of one cost."""
        if not self.planned:
            return float(self.widest[0][cost]), float(self.widest[1][cost])
        return self._plans(cost)[:2]

    def potentials(self, cost: int) -> tuple[FloatArray, FloatArray]:
        """The V that prove the lower end, and those that prove minus the upper end for minus the
        cost; nothing but zeros without plans."""
        if not self.planned:
            zero = read_only(np.zeros(self._chains.world.num_states))
            return zero, zero
        return self._plans(cost)[2:]

    @property
    def lowest(self) -> FloatArray:
        """The lower end of every cost's range."""
        return self._ends(0)

    @property
    def highest(self) -> FloatArray:
        """The upper end of every cost's range."""
        return self._ends(1)

    def clip(self, values: FloatArray) -> FloatArray:
        """The nearest point of the box."""
        return np.clip(values, self.lowest, self.highest)

    def _ends(self, end: int) -> FloatArray:
        count = self.widest[end].size
        return read_only(np.array([self.of(k)[end] for k in range(count)]))

    def _plans(self, k: int) -> tuple[float, float, FloatArray, FloatArray]:
        if k in self._cut_short:
            return self._cut_short[k]
        if k not in self._found:
            column = dense(self._matrix[:, [k]]).ravel().copy()
            low, high, *proofs = _range(self._chains, column)
            low, high = max(low, self.widest[0][k]), min(high, self.widest[1][k])
            found = float(low), float(high), read_only(proofs[0]), read_only(proofs[1])
            (self._cut_short if out_of_time() else self._found)[k] = found
            return found
        return self._found[k]


_Found: TypeAlias = dict[int, tuple[float, float, FloatArray, FloatArray]]
_KNOWN: "WeakKeyDictionary[World, WeakKeyDictionary[CostBasis, _Found]]" = WeakKeyDictionary()
"""Ranges are asked for by targets, certificates and solvers of the same world and basis. What is
kept here refers to neither, so that both can go."""


def attainable_ranges(world: World, basis: CostBasis) -> AttainableRanges:
    """The ranges of the costs of `basis` in `world`; each is computed once, when it is needed.

    >>> world = World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    >>> ranges = attainable_ranges(world, CostBasis([1.0, 0.25, 0.0]))
    >>> ranges.lowest.round(6).tolist(), ranges.highest.round(6).tolist()
    ([0.25], [2.0])
    """
    known = _KNOWN.setdefault(world, WeakKeyDictionary())
    return AttainableRanges(world, basis, known.setdefault(basis, {}))


def widest_ranges(world: World, basis: CostBasis) -> tuple[FloatArray, FloatArray]:
    """h times the extreme costs, rounded outwards: they hold in every world with such costs."""
    horizon = world.effective_horizon
    rounding = 4 * EPSILON * basis.norms * horizon
    return (
        read_only(basis.lowest * horizon - rounding),
        read_only(basis.highest * horizon + rounding),
    )


def _range(chains: Chains, cost: FloatArray) -> tuple[float, float, FloatArray, FloatArray]:
    """(lowest, highest) and the V that prove them."""
    world, h = chains.world, chains.world.effective_horizon
    if world.has_goal:
        ends = [Improvement(np.zeros(0, dtype=np.int64), V, _loss(world, sign * cost, V), 0.0)
                for sign in (1, -1) for V in (potential(world, sign * cost),)]  # fmt: skip
        low, high = (
            _total(world, sign * cost, end) for sign, end in zip((1, -1), ends, strict=True)
        )
        return low, -high, ends[0].values, ends[1].values
    allowed = PRECISION * float(cost.max() - cost.min())
    middle = np.full(world.num_states, h * float(cost.max() + cost.min()) / 2)
    ends = [improve(chains, sign * cost, sign * middle, allowed=allowed, most=MOST_STEPS)
             for sign in (1, -1)]  # fmt: skip
    for _ in range(REFINEMENTS):
        low, high = (_total(world, cost, end) for end in ends)
        wanted = RELATIVE * max(-high - low, 0.0) / h
        floor = max(_rounding(world, cost, end.values) for end in ends) / h
        if max(end.spread for end in ends) <= max(wanted, floor):
            break
        ends = [
            improve(chains, sign * cost, end.values, allowed=max(wanted / 2, floor / 2),
                    most=MOST_STEPS)
            for sign, end in zip((1, -1), ends, strict=True)
        ]  # fmt: skip
    low, high = (_total(world, cost, end) for end in ends)
    return low, -high, ends[0].values, ends[1].values


def _loss(world: World, cost: FloatArray, values: FloatArray) -> float:
    """max(0, V - TV) over the states that can be reached."""
    change = _bellman(world, cost, values)[1]
    return max(0.0, -float(change[world.reachable].min()))


def _total(world: World, cost: FloatArray, found: Improvement) -> float:
    """What no policy totals less than."""
    total = float(world.initial @ found.values) - world.effective_horizon * found.loss
    return total - _rounding(world, cost, found.values)


def _rounding(world: World, cost: FloatArray, values: FloatArray) -> float:
    """What float64 can have hidden of the Bellman residual, and of the sum over starts."""
    branches = int(np.diff(world.transition.indptr).max())
    size = float(np.abs(cost).max() + 2 * np.abs(values).max())
    residual = (branches + 4) * size * world.effective_horizon
    return EPSILON * (residual + (world.num_states + 4) * float(np.abs(values).max()))
