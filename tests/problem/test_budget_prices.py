"""Rational experts within budgets: bounds on the regret to the best policy that keeps them, against
linear programs over occupancy measures."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import journeyman as jm
from budgeted_worlds import best_within, instance
from journeyman.policy import extract, occupancy
from journeyman.problem.rational import Average, RationalPrices, RationalSet, cost_ranges
from journeyman.testing.random_worlds import random_policy
from rational_worlds import grid

MANY = 20
"""Instances of a quick run; `tests/slow` has hundreds."""


def set_of(one):
    """K with the expert's exact expectations, for an expert declared optimal as a whole."""
    exact = np.asarray(one.problem.cost_matrix.T @ one.measure)
    return RationalSet.of(one.problem, (Average(exact, 0.0),))


def policies_of(one, given, seed):
    world = one.problem.world
    yield extract(world, np.maximum(given.solved(None)[2], 0.0))
    yield jm.Policy.uniform(world)
    yield random_policy(world, seed)
    yield jm.clone(one.problem.demonstrations, world)
    yield one.expert


def bounds_of(given, policies):
    for policy in policies:
        visits = occupancy(given.problem.world, policy)
        yield policy, given.best_prices(np.asarray(visits.expectations(given.problem.basis)))


def checked(seed):
    """Whether the premise was refuted; fails where a bound is not one."""
    one = instance(seed)
    given, scale = set_of(one), one.problem.gap_scale
    for policy, found in bounds_of(given, policies_of(one, given, seed)):
        assert one.regret(policy) <= found.value + 1e-8 * scale, (one.kind, one.problem)
    indifferent = one.regret(given.random_policy) < 1e-9 * scale
    return given.is_refuted and not indifferent


@pytest.mark.parametrize("seed", range(MANY))
def test_no_policy_loses_more_than_its_bound_to_the_best_within_the_budgets(seed):
    assert not checked(seed)


@pytest.mark.parametrize("seed", range(4))
def test_any_prices_prove_a_bound(seed):
    one, rng = instance(seed, "mistakes"), np.random.default_rng(seed)
    given, world = RationalSet.of(one.problem), one.problem.world
    for scale in (0.0, 0.1, 10.0):
        prices = RationalPrices(
            scale * rng.normal(size=given.pairs.size), float(scale * rng.normal()), np.zeros(0),
            scale * rng.normal(size=world.num_pairs), float(scale * rng.normal()),
        )  # fmt: skip
        for number in range(3):
            policy = random_policy(world, number)
            expectations = np.asarray(occupancy(world, policy).expectations(one.problem.basis))
            found = given.bound(expectations, prices)
            assert one.regret(policy) <= found.value + 1e-12 * one.problem.gap_scale
            again = given.bound(expectations, found.prices)
            assert again.value == found.value


@pytest.mark.parametrize("seed", range(4))
def test_no_price_of_a_budget_makes_a_bound_larger(seed):
    """Values at the ends that they have at a price, whatever it is: from the definition."""
    one, rng = instance(seed, "mistakes"), np.random.default_rng(seed)
    given, world, problem = RationalSet.of(one.problem), one.problem.world, one.problem
    (low, high), (least, most) = given.value_range, given.budget_range
    for scale in (0.01, 0.3, 10.0):
        proposed = RationalPrices(
            scale * rng.random(given.pairs.size), 0.0, np.zeros(0),
            scale * rng.random(world.num_pairs), 0.3,
        )  # fmt: skip
        found = given.bound(given.uniform, proposed)
        point, y = found.prices, -found.prices.of_pairs
        y[given.pairs] += point.of_steps
        share = 1 - point.of_floor
        flow = share * world.initial - world.flow.apply(y)
        for budget in range(len(problem.constraints)):
            price = 1e3 * np.eye(len(problem.constraints))[budget]
            values = np.where(flow > 0, low + price @ least, high + price @ most)
            paid = share * problem.limits - problem.budget_matrix.T @ y
            assert paid @ price - flow @ values <= found.unseen + 1e-9 * problem.gap_scale


def test_the_bound_is_the_maximum_over_the_set():
    """By a linear program over (w, xi, V) written out densely, with another engine."""
    one = instance(5, "mistakes")
    problem = jm.Apprenticeship(
        one.problem.world, one.problem.basis, one.problem.demonstrations, jm.InfinityBall(),
        one.problem.constraints, expert_is=jm.Rational(regret_per_step=0.1),
    )  # fmt: skip
    given, world = RationalSet.of(problem), problem.world
    flow, costs = world.flow.matrix().toarray(), problem.cost_matrix
    steps = problem.demonstrations.pairs_in(world)
    advantage = np.hstack([costs, problem.budget_matrix, -flow])
    low, least = given.value_range[0], given.budget_range[0]
    count, budgets = problem.num_costs, len(problem.constraints)
    floor = np.concatenate([np.zeros(count), problem.limits, -world.initial])
    ends = np.hstack([np.zeros((world.num_states, count)), least.T, -np.eye(world.num_states)])
    rows = np.vstack([-advantage, advantage[steps].sum(axis=0), floor, ends])
    limits = np.concatenate([np.zeros(world.num_pairs), [0.1 * steps.size, -given.floor], -low])
    bounds = [(-1, 1)] * count + [(0, None)] * budgets + [(None, None)] * world.num_states
    objective = np.concatenate([-given.uniform, -problem.limits, world.initial])
    found = linprog(objective, rows, limits, bounds=bounds, method="highs")
    assert given.uniform_bound.value == pytest.approx(-found.fun, rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_the_random_policy_tries_every_action_and_keeps_the_budgets(seed):
    given = RationalSet.of(instance(seed).problem)
    assert given.random_policy.on(given.problem.world).min() > 0
    assert given.spare.min() > 0


def test_no_policy_within_the_budgets_has_a_smaller_bound():
    one = instance(8, "optimal")
    solver = jm.solvers.RationalProgram(slack=0)
    answer = jm.solve(one.problem, solver)
    assert answer.status is jm.Status.OPTIMAL
    assert answer.solution.overspending.max() < 1e-6
    promised = 1.1 * solver.tolerance * one.problem.gap_scale  # a tenth for keeping the budgets
    assert 0 <= answer.regret.bound - answer.regret.lower_bound <= promised
    given = RationalSet.of(one.problem)
    for share in (0.0, 0.3, 0.7, 1.0):
        inside = (1 - share) * given.random_visits.measure + share * one.measure
        found = given.best_prices(np.asarray(one.problem.cost_matrix.T @ inside))
        assert found.value >= answer.regret.lower_bound - 1e-7


def corner(at_most, expert_uses, class_=None, rest=0.0):
    """One state where a resource lowers the cost: use it, or no more than `rest` of it. The expert
    uses it in so many of 20 steps."""
    world = jm.World(np.ones((2, 1)), [1.0], 0.9)
    use = np.array([1.0, 0.0])
    actions = [0] * expert_uses + [1] * (20 - expert_uses)
    demos = jm.Demonstrations.from_arrays([[0] * 21], [actions])
    return jm.Apprenticeship(
        world, jm.CostBasis(np.column_stack([use, 1 - use])), demos, class_,
        jm.Budget(use + rest * (1 - use), at_most, "resource"), jm.Rational(regret_per_step=0),
    )  # fmt: skip


def test_an_expert_who_does_both_is_explained_by_a_price_only():
    """Using the resource pays exactly its price: both actions are optimal. Without the budget the
    same record leaves only a cost that does not care."""
    problem = corner(5.0, 10)
    given = RationalSet.of(problem)
    assert not given.is_refuted
    member = given.example
    assert member.prices[0] > 0
    assert member.weights[1] - member.weights[0] == pytest.approx(member.prices[0], abs=1e-6)
    (using,) = (one for one in cost_ranges(problem) if one.name == "price of resource")
    assert using.low > 0
    free = jm.Apprenticeship(
        problem.world, problem.basis, problem.demonstrations, expert_is=problem.expert_is
    )
    assert RationalSet.of(free).is_refuted


def test_a_policy_that_breaks_a_budget_can_have_less_regret_than_none():
    """Whatever the cost is, using the resource all the time is no dearer than half of the time,
    which the budget allows and which is as good as anything within it."""
    problem = corner(5.0, 10, jm.Simplex())
    given = RationalSet.of(problem)
    never, half, always = (np.array([use, 10.0 - use]) for use in (0.0, 5.0, 10.0))
    assert given.best_prices(never).value == pytest.approx(5, abs=1e-6)
    assert given.best_prices(half).value == pytest.approx(0, abs=1e-6)
    found = given.best_prices(always)
    assert found.value == pytest.approx(0, abs=1e-6)  # the cost may not care
    weights = np.array([0.2, 0.8])
    least = best_within(
        problem.world, problem.cost_of(weights), problem.budget_matrix, problem.limits
    )[0]
    assert always @ weights - least < -1 < found.value


def test_what_was_not_recorded_may_be_what_a_price_is_for():
    """The expert uses the resource half of the time, and was seen when it did not. Not to use it
    costs 5 more than that, though every recorded action was optimal."""
    problem = corner(5.5, 0, jm.Simplex(), rest=0.1)
    given, never = RationalSet.of(problem), np.array([0.0, 10.0])
    weights = np.array([0.0, 1.0])
    least = best_within(
        problem.world, problem.cost_of(weights), problem.budget_matrix, problem.limits
    )[0]
    assert never @ weights - least == pytest.approx(5)
    forged = RationalPrices(np.array([10.0]), 0.0, np.zeros(0), np.zeros(2))  # as if none had one
    assert given.bound(never, forged).value >= 5
    assert given.best_prices(never).value >= 5


def test_without_a_policy_strictly_inside_what_bounded_costs_imply_remains():
    problem = corner(0.0, 0)
    given = RationalSet.of(problem)
    assert given.spare.min() <= 0
    bound = given.best_prices(np.array([0.0, 10.0]))
    assert bound.prices.of_floor == 1
    assert bound.value >= 10
    assert not given.is_refuted
    answer = jm.solve(problem)
    assert "strictly inside" in answer.log
    assert answer.solution.overspending.max() <= 0


def test_what_limits_prices_is_needed():
    """One known cost that is negative, and a budget that does not bind: nothing is known about the
    price of it but that it cannot be below the least cost there is."""
    world = jm.World(np.ones((2, 1)), [1.0], 0.9)
    demos = jm.Demonstrations.from_arrays([[0, 0]], [[1]])
    problem = jm.Apprenticeship(
        world, jm.CostBasis(np.array([[-1.0], [-0.5]])), demos, jm.Simplex(),
        jm.Budget([1.0, 0.0], 20.0, "resource"), jm.Rational(regret_per_step=100),
    )  # fmt: skip
    given = RationalSet.of(problem)
    found = given.best_prices(np.array([-10.0]))
    assert found.value == pytest.approx(0, abs=1e-6)
    assert found.value - found.floor < -1


def contradictory(noise, seed=1):
    """An expert who is optimal within a budget but for a share of random actions."""
    rng = np.random.default_rng(seed)
    world, basis = grid(6, 6, rng)
    cost = basis.on(world) @ rng.dirichlet(np.ones(6))
    use = (rng.random((world.num_pairs, 1)) < 0.2).astype(float)
    free = best_within(world, cost, use, np.array([100.0]))[1]
    least = best_within(world, use[:, 0], use, np.array([100.0]))[0]
    limit = (use[:, 0] @ free + least) / 2
    measure = best_within(world, cost, use, np.array([limit]))[1]
    law = extract(world, np.where(measure > 1e-9, measure, 0)).on(world)
    expert = extract(world, (1 - noise) * law + noise * world.pairs.uniform)
    demos = jm.record(world, expert, trajectories=20, horizon=60, seed=rng)
    return jm.Apprenticeship(
        world, basis, demos, None, jm.Budget(use[:, 0], limit, "resource"),
        jm.Rational(regret_per_step=0),
    )  # fmt: skip


def test_records_that_contradict_each_other_are_found():
    assert RationalSet.of(contradictory(0.2)).is_refuted
    honest = RationalSet.of(contradictory(0.0))
    assert not honest.is_refuted
    assert honest.example.prices[0] > 0


def test_a_price_alone_is_no_cost_under_which_policies_differ():
    given = RationalSet.of(contradictory(0.0))
    member = given.example
    assert given.shows_a_cost(member, 1.0)
    assert not given.shows_a_cost(replace(member, weights=np.zeros(6)), 1.0)
