"""Ways of writing the same problem differently, none of which may change its optimal value."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.testing import Shape, random_problem


def states_permuted(problem, rng):
    world = problem.world
    order = rng.permutation(world.num_states)
    origin = np.concatenate([pairs_of(world, state) for state in order])
    return carried_over(
        problem,
        rows=world.transition.toarray()[origin][:, order],
        initial=world.initial[order],
        actions=world.pairs.actions_per_state[order],
        origin=origin,
    )


def actions_permuted(problem, rng):
    world = problem.world
    shuffled = [rng.permutation(pairs_of(world, state)) for state in range(world.num_states)]
    origin = np.concatenate(shuffled)
    return carried_over(
        problem,
        rows=world.transition.toarray()[origin],
        initial=world.initial,
        actions=world.pairs.actions_per_state,
        origin=origin,
    )


def action_duplicated(problem, rng):
    world = problem.world
    pair = rng.integers(world.num_pairs)
    origin = np.insert(np.arange(world.num_pairs), pair, pair)
    actions = world.pairs.actions_per_state + (
        np.arange(world.num_states) == world.pairs.states[pair]
    )
    rows = world.transition.toarray()[origin]
    return carried_over(problem, rows, world.initial, actions, origin)


def unreachable_states_added(problem, rng):
    world = problem.world
    old_rows = np.hstack([world.transition.toarray(), np.zeros((world.num_pairs, 2))])
    new_rows = rng.dirichlet(np.ones(world.num_states + 2), size=5)
    return carried_over(
        problem,
        rows=np.vstack([old_rows, new_rows]),
        initial=np.append(world.initial, [0.0, 0.0]),
        actions=np.append(world.pairs.actions_per_state, [2, 3]),
        origin=np.append(np.arange(world.num_pairs), rng.integers(world.num_pairs, size=5)),
    )


def initial_state_split(problem, rng):
    world = problem.world
    state = int(np.argmax(world.initial))
    origin = np.append(np.arange(world.num_pairs), pairs_of(world, state))
    rows = world.transition.toarray()[origin]
    diverted = rng.random(origin.size) * rows[:, state]
    rows[:, state] -= diverted
    initial = np.append(world.initial, 0.3 * world.initial[state])
    initial[state] *= 0.7
    actions = np.append(world.pairs.actions_per_state, world.pairs.actions_per_state[state])
    return carried_over(problem, np.column_stack([rows, diverted]), initial, actions, origin)


def cost_measured_in_another_unit(problem, rng):
    unit = np.ones(problem.basis.num_costs)
    unit[rng.integers(unit.size)] = 1000.0
    return jm.Apprenticeship(
        problem.world,
        jm.CostBasis(problem.basis.matrix * unit),
        jm.ExpertExpectation(problem.target * unit),
        type(problem.cost_class)(scale=problem.cost_class.scale / unit),
        problem.constraints,
    )


REWRITINGS = [
    states_permuted,
    actions_permuted,
    action_duplicated,
    unreachable_states_added,
    initial_state_split,
    cost_measured_in_another_unit,
]


@pytest.mark.parametrize("rewritten", REWRITINGS)
@pytest.mark.parametrize("kind", [jm.InfinityBall, jm.EuclideanBall, jm.Simplex])
@pytest.mark.parametrize("shape", list(Shape), ids=lambda shape: shape.name)
@pytest.mark.parametrize("seed", [0, 1])
def test_optimal_value_does_not_depend_on_the_writing(rewritten, kind, shape, seed):
    cost_class = kind(scale=[0.5, 0.5, 1.0, 1.0, 2.0, 2.0])
    problem = random_problem(seed, cost_class, shape=shape, num_costs=6, num_budgets=1)
    other = rewritten(problem, np.random.default_rng(seed))
    allowance = 1e-7 * problem.gap_scale
    assert jm.solve(other).value == pytest.approx(jm.solve(problem).value, abs=allowance, rel=0)


def pairs_of(world, state):
    return np.arange(world.pairs.offsets[state], world.pairs.offsets[state + 1])


def carried_over(problem, rows, initial, actions, origin):
    """The problem in another world, whose pair i costs what pair origin[i] did."""
    offsets = np.append(0, np.cumsum(actions))
    return jm.Apprenticeship(
        jm.World(rows, initial, problem.world.discount, choice_offsets=offsets),
        jm.CostBasis(problem.basis.matrix[origin]),
        problem.expectation,
        problem.cost_class,
        [jm.Budget(budget.cost[origin], budget.at_most) for budget in problem.constraints],
    )
