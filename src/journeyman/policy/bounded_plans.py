"""Least totals over policies whose action probabilities are known within bounds.

    minimise   <mu_pi, c>   over policies   lowest(x, a) <= pi(a | x) <= highest(x, a)

where the bounds leave every state a law of actions: the sum of the lowest is at most one, that of
the highest at least one. Nothing known is [0, 1]; an action known for sure is [1, 1] beside [0, 0].

The optimality operator fills greedily: every action gets its lowest probability, and what is left
of one goes to the actions with the least c + discount P V, each up to its highest,

    (T V)(x) = min { sum_a pi(a) (c + discount P V)(x, a) : lowest <= pi <= highest, sum pi = 1 }

*Guarantee*. For any V, and mu the occupancy measure of a policy within the bounds,

    <mu, c> = <initial, V> + sum_x mu(x) ( sum_a pi(a | x) (c + discount P V)(x, a) - V(x) )
           >= <initial, V> + h min over x of (T V - V)(x)                    h = 1/(1 - discount)

because mu has mass h: so any V proves a bound, however it was found. What rounding can have hidden
is subtracted. Policy iteration makes it sharp to `PRECISION` of h times the span of the cost.

*Cost*: one plan per cost, some tens of sparse systems in the states each.
"""

import numpy as np

from journeyman.arrays import FloatArray, Matrix, dense, read_only
from journeyman.policy.policy_evaluation import DiscountedSystem, averaging
from journeyman.world import World
from journeyman.world.levels import require_discounted

PRECISION = 1e-6
"""Of h times the span of the cost: how far below the least total a bound may be."""
MOST_STEPS = 100
"""Of policy iteration; a bound that is not precise by then is still one."""
SHARE = 0.01
"""Evaluations leave this share of the residual: more is lost when the policy turns."""
EPSILON = float(np.finfo(float).eps)


def least_totals(
    world: World, costs: Matrix, lowest: FloatArray, highest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For every column of `costs` (pairs x costs) what no policy with probabilities between the
    bounds per pair totals less than, and the V that prove it: (costs) and (costs x states).

    >>> world = World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    >>> costs = np.array([[1.0, -1.0], [0.25, -0.25], [0.0, 0.0]])
    >>> least, _ = least_totals(world, costs, np.array([0.5, 0, 1]), np.array([0.75, 1, 1]))
    >>> least.round(4).tolist()
    [0.8333, -1.3]
    """
    require_discounted(world, "a plan between bounds")
    columns = (dense(costs[:, [k]]).ravel() for k in range(costs.shape[1]))
    found = [_least(world, cost, lowest, highest) for cost in columns]
    proofs = np.array([values for values, _ in found]).reshape(-1, world.num_states)
    return read_only(np.array([total for _, total in found])), read_only(proofs)


def _least(
    world: World, cost: FloatArray, lowest: FloatArray, highest: FloatArray
) -> tuple[FloatArray, float]:
    """V, and what it proves that no policy within the bounds totals less than."""
    allowed = PRECISION * float(cost.max() - cost.min())
    middle = world.effective_horizon * float(cost.max() + cost.min()) / 2
    values = np.full(world.num_states, middle)
    proven, total = values, -np.inf
    for _ in range(MOST_STEPS):
        best, law = _filled(world, cost, lowest, highest, values)
        change = best - values
        found = float(world.initial @ values) + world.effective_horizon * float(change.min())
        if found - _rounding(world, cost, values) > total:
            proven, total = values, found - _rounding(world, cost, values)
        if change.max() - change.min() <= allowed:
            break
        mean = averaging(world, law)
        system = DiscountedSystem(mean @ world.transition, world.discount, forward=world.is_forward)
        values = system.solve(np.asarray(mean @ cost), guess=best, reduction=SHARE).x
    return proven, total


def _filled(
    world: World, cost: FloatArray, lowest: FloatArray, highest: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """T V per state, and the probabilities per pair that attain it."""
    from journeyman.policy.system_kernels import filling_step

    best, law = np.empty(world.num_states), np.empty(world.num_pairs)
    ahead = cost + world.discount * (world.transition @ values)
    filling_step(world.pairs.offsets, ahead, lowest, highest, best, law)
    return best, law


def _rounding(world: World, cost: FloatArray, values: FloatArray) -> float:
    """What float64 can have hidden of T V - V, and of the sum over starts."""
    branches, size = int(np.diff(world.transition.indptr).max()), float(np.abs(values).max())
    steps = (branches + 2 * world.pairs.max_actions + 6) * (float(np.abs(cost).max()) + 2 * size)
    return EPSILON * (steps * world.effective_horizon + (world.num_states + 4) * size)
