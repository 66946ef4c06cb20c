"""Planning: an optimal policy for a known cost, with a proven error.

    minimise over policies   E sum_t discount^t c(x_t, a_t)

Policy iteration: evaluate the policy at hand (`DiscountedSystem`), then act greedily on its values.
Evaluations are rough while the policy still changes and as exact as float64 allows at the end.

Guarantee. With T the Bellman operator, any V and its greedy policy pi satisfy in every state

    V + min(TV - V)/(1 - discount)  <=  V*  <=  V_pi  <=  V + max(TV - V)/(1 - discount)

so pi is optimal within span(TV - V)/(1 - discount), plus what rounding can have hidden of TV - V.
Iteration stops when this is below `tolerance`, or when float64 cannot improve the policy any more;
`Plan.error` is what was proven either way. Cost: one sparse solve and one pass over the transitions
per iteration.

Reference: Puterman, Markov Decision Processes, sections 6.4 and 6.6.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, IntArray, read_only
from journeyman.errors import InvalidCosts
from journeyman.policy.linear_systems import Chains, DiscountedSystem
from journeyman.policy.table import Policy
from journeyman.world import World

RELATIVE_TOLERANCE = 1e-11
"""Default tolerance, relative to the largest conceivable value max|c|/(1 - discount)."""
MAX_ITERATIONS = 1000
ROUGH, FINE = 1e-3, 1e-8
"""Evaluations reduce their residual by ROUGH, by its powers once the policy no longer changes."""
KEEPING = 1e-4
"""An action is kept unless another is better by this share of the error (per step)."""
SHARE = 0.1
"""Evaluations of `improve` leave this share of the residual: more is lost when the policy turns."""
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

    >>> world = World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    >>> found = plan(world, [1.0, 1.5, 0.0])
    >>> found.policy.probabilities([0]).tolist(), found.values.round(9).tolist()
    ([[0.0, 1.0]], [1.5, 0.0])
    """
    costs = world.pairs.flattened("cost", cost, InvalidCosts)
    if tolerance is None:
        tolerance = RELATIVE_TOLERANCE * float(np.abs(costs).max()) * world.effective_horizon
    values = np.zeros(world.num_states) if warm_start is None else warm_start.values
    backup, change = _bellman(world, costs, values)
    best = _plan(world, costs, backup, values, change, 0)
    choice, accuracy = _greedy(world, backup), ROUGH
    for iteration in range(1, MAX_ITERATIONS + 1):
        if best.error <= tolerance:
            break
        system = DiscountedSystem(world.transition[choice], world.discount)
        values = system.solve(costs[choice], guess=values, reduction=accuracy).x
        backup, change = _bellman(world, costs, values)
        found = _plan(world, costs, backup, values, change, iteration)
        if found.error < best.error:
            best = found
        margin = KEEPING * min(best.error, tolerance) * (1 - world.discount)
        improved = _greedy(world, backup, keep=choice, margin=margin)
        if np.array_equal(improved, choice):
            if accuracy == 0.0:
                break
            accuracy = accuracy * ROUGH if accuracy > FINE else 0.0
        choice = improved
    return best


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
    """At most `most` rough steps of policy iteration from given values, for a cost per pair.

    It ends early when the spread is at most `allowed`. Made for callers that need many plans for
    costs that change little by little and that can pay for the loss, as every bound of
    `problem.duality` can; `plan` is for everybody else.
    """
    best, choice = chains.greedy(cost, values)
    change = best - values
    for _ in range(most):
        if change.max() - change.min() <= allowed:
            break
        values = chains.values(choice, cost[choice], best, SHARE)
        best, choice = chains.greedy(cost, values)
        change = best - values
    loss = -float(change.min())
    return Improvement(choice, values, loss, float(change.max()) + loss)


def _bellman(world: World, costs: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Action values c + discount P V per pair, and TV - V per state."""
    backup = costs + world.discount * (world.transition @ values)
    return backup, world.pairs.smallest(backup) - values


def _plan(
    world: World,
    costs: FloatArray,
    backup: FloatArray,
    values: FloatArray,
    change: FloatArray,
    iterations: int,
) -> Plan:
    """The greedy policy of `values`, which are moved to the middle of what is proven of V*."""
    branches = int(np.diff(world.transition.indptr).max())
    size = float(np.abs(costs).max() + 2 * np.abs(values).max())
    rounding = EPSILON * (branches + 4) * size
    low, high = change.min() - rounding, change.max() + rounding
    middle = values + (low + high) / 2 * world.effective_horizon
    error = float(high - low) * world.effective_horizon
    policy = _deterministic(world, _greedy(world, backup))
    return Plan(policy, read_only(middle), error, iterations)


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
