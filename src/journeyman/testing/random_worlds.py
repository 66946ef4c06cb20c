"""Random worlds and problems that visit the corners: periodic, absorbing, ragged, unreachable."""

from enum import Enum

import numpy as np

from journeyman.arrays import FloatArray, IntArray, Seed, generator
from journeyman.costs import CostBasis, CostClass, InfinityBall, Polytope, PriorBall
from journeyman.demonstrations import Demonstrations, ExpertExpectation
from journeyman.demonstrations.recording import record
from journeyman.policy import Policy, extract, occupancy
from journeyman.problem import Apprenticeship, Budget
from journeyman.world import World


class Shape(Enum):
    """The structure of a random world."""

    DENSE = "every state can follow every pair"
    SPARSE = "two possible successors per pair"
    PERIODIC = "deterministic steps around a cycle"
    ABSORBING = "the last state is never left"
    SINGLE_ACTION = "nothing to decide"
    RAGGED = "states differ in their number of actions"
    UNREACHABLE = "half of the states are never entered"


def random_world(
    seed: Seed,
    shape: Shape = Shape.RAGGED,
    *,
    num_states: int = 5,
    num_actions: int = 3,
    discount: float = 0.9,
) -> World:
    """A world of the given shape, the same for the same seed."""
    rng = generator(seed)
    actions = np.full(num_states, 1 if shape is Shape.SINGLE_ACTION else num_actions)
    if shape is Shape.RAGGED:
        actions = rng.integers(1, num_actions + 1, num_states)
    offsets = np.concatenate([[0], np.cumsum(actions)])
    states = np.repeat(np.arange(num_states, dtype=np.int64), actions)
    transition = _rows(rng, shape, states, num_states)
    initial = rng.dirichlet(np.ones(num_states))
    if shape is Shape.UNREACHABLE:
        initial[(num_states + 1) // 2 :] = 0.0
        initial /= initial.sum()
    return World(transition, initial, discount, choice_offsets=offsets)


def random_policy(world: World, seed: Seed) -> Policy:
    """A policy with some actions never taken."""
    rng = generator(seed)
    measure = rng.exponential(size=world.num_pairs) * (rng.random(world.num_pairs) < 0.7)
    return extract(world, measure)


def random_cost_class(kind: type[CostClass], seed: Seed, num_costs: int = 3) -> CostClass:
    """A member of a family of classes; of those without numbers of their own the only one."""
    rng = generator(seed)
    if kind is Polytope:
        return random_polytope(rng, num_costs)
    if kind is PriorBall:
        return PriorBall(rng.normal(size=num_costs), 0.4)
    return kind()


def random_polytope(rng: np.random.Generator, num_costs: int) -> Polytope:
    """Weights between bounds, in a halfspace that cuts them, and on a plane now and then."""
    low = rng.uniform(-1.0, 0.5, num_costs)
    high, each = low + rng.uniform(0.1, 2.0, num_costs), np.eye(num_costs)
    inside, cut = rng.uniform(low, high), rng.normal(size=(1, num_costs))
    rows, limits = [each, -each, cut], [high, -low, cut @ inside + 0.05]
    if num_costs > 1 and rng.random() < 0.3:
        plane = rng.normal(size=(1, num_costs))
        rows, limits = [*rows, plane, -plane], [*limits, plane @ inside, -plane @ inside]
    return Polytope(np.vstack(rows), np.concatenate(limits))


def random_problem(
    seed: Seed,
    cost_class: CostClass | None = None,
    *,
    shape: Shape = Shape.RAGGED,
    num_states: int = 6,
    num_costs: int = 3,
    num_budgets: int = 0,
    discount: float = 0.9,
    trajectories: int = 0,
) -> Apprenticeship:
    """A problem whose target is mostly out of reach and whose budgets are possible but bind.

    With `trajectories` the expert is given by as many demonstrations instead.
    """
    rng = generator(seed)
    world = random_world(rng, shape, num_states=num_states, discount=discount)
    basis = CostBasis(rng.uniform(-1, 1, (world.num_pairs, num_costs)))
    policy = random_policy(world, rng)
    noise = rng.normal(size=num_costs) * 0.1 * world.effective_horizon
    keeper = occupancy(world, random_policy(world, rng)).measure
    budgets = []
    for j in range(num_budgets):
        cost = rng.uniform(-1, 1, world.num_pairs)
        spare = 0.01 * world.effective_horizon
        budgets.append(Budget(cost, float(keeper @ cost) + spare, name=f"budget {j}"))
    chosen = InfinityBall() if cost_class is None else cost_class
    expert: Demonstrations | ExpertExpectation
    if trajectories:
        expert = record(world, policy, trajectories=trajectories, horizon=20, seed=rng)
    else:
        expert = ExpertExpectation(occupancy(world, policy).expectations(basis) + noise)
    return Apprenticeship(world, basis, expert, chosen, budgets)


def _rows(rng: np.random.Generator, shape: Shape, states: IntArray, num_states: int) -> FloatArray:
    num_pairs = states.size
    if shape is Shape.PERIODIC:
        return np.asarray(np.eye(num_states)[(states + 1) % num_states])
    rows = rng.dirichlet(np.ones(num_states), num_pairs)
    if shape is Shape.SPARSE:
        kept = np.argsort(rng.random(rows.shape), axis=1) < 2
        rows = np.where(kept, rows, 0.0)
        rows /= rows.sum(axis=1, keepdims=True)
    if shape is Shape.ABSORBING:
        rows[states == num_states - 1] = np.eye(num_states)[-1]
    if shape is Shape.UNREACHABLE:
        rows[:, (num_states + 1) // 2 :] = 0.0
        rows /= rows.sum(axis=1, keepdims=True)
    return rows
