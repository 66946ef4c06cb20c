"""Rational experts: bounds on the regret under the expert's own cost, against the truth."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.policy import extract, occupancy
from journeyman.problem.rational import (
    Average,
    RationalPrices,
    RationalSet,
    cost_ranges,
    soft_limit,
)
from journeyman.testing.random_worlds import random_policy
from rational_worlds import acted, grid, instance, optimum

MANY = 26
"""Instances of a quick run: two of every cost class. `tests/slow` has hundreds."""


def averages_of(one):
    """Exact expectations of an optimal policy, for an expert declared optimal as a whole."""
    problem = one.problem
    best = extract(problem.world, (one.advantages <= 1e-13).astype(float))
    return (Average(np.asarray(occupancy(problem.world, best).expectations(problem.basis)), 0.0),)


def policies_of(one, given, seed):
    world = one.problem.world
    measure = given.solved(None)[2]
    yield extract(world, np.maximum(measure, 0.0))
    yield jm.Policy.uniform(world)
    yield random_policy(world, seed)
    yield jm.clone(one.problem.demonstrations, world)


def checked(seed):
    """Whether the premise was refuted; fails where a bound is not one."""
    one = instance(seed)
    given = RationalSet.of(one.problem, averages_of(one))
    scale = one.problem.gap_scale
    for policy in policies_of(one, given, seed):
        visits = occupancy(one.problem.world, policy)
        found = given.best_prices(np.asarray(visits.expectations(one.problem.basis)))
        assert one.regret(policy) <= found.value + 1e-9 * scale, (one.kind, one.problem)
    indifferent = one.regret(jm.Policy.uniform(one.problem.world)) < 1e-9 * scale
    return given.is_refuted and not indifferent


@pytest.mark.parametrize("seed", range(MANY))
def test_no_policy_loses_more_than_its_bound(seed):
    assert not checked(seed)


@pytest.mark.parametrize("seed", range(6))
def test_any_prices_prove_a_bound(seed):
    one, rng = instance(seed, "mistakes"), np.random.default_rng(seed)
    given = RationalSet.of(one.problem)
    world, size = one.problem.world, given.pairs.size
    for scale in (0.0, 0.1, 10.0):
        prices = RationalPrices(
            scale * rng.normal(size=size), float(scale * rng.normal()), np.zeros(0),
            scale * rng.normal(size=world.num_pairs),
        )  # fmt: skip
        for number in range(3):
            policy = random_policy(world, number)
            expectations = np.asarray(occupancy(world, policy).expectations(one.problem.basis))
            bound = given.bound(expectations, prices).value
            assert one.regret(policy) <= bound + 1e-12 * one.problem.gap_scale


def test_the_bound_is_the_maximum_over_the_set():
    """By a linear program over K written out densely, with another engine."""
    from scipy.optimize import linprog

    one = instance(3, "mistakes")
    problem = jm.Apprenticeship(
        one.problem.world, one.problem.basis, one.problem.demonstrations, jm.InfinityBall(),
        expert_is=jm.Rational(regret_per_step=0.1),
    )  # fmt: skip
    given, world = RationalSet.of(problem), problem.world
    flow, costs = world.flow.matrix().toarray(), problem.cost_matrix
    steps = problem.demonstrations.pairs_in(world)
    advantage = np.hstack([costs, -flow])
    rows = np.vstack([-advantage, advantage[steps].sum(axis=0)])
    limits = np.append(np.zeros(world.num_pairs), 0.1 * steps.size)
    low = given.value_range[0]
    bounds = [(-1, 1)] * problem.num_costs + [(one, None) for one in low]
    objective = np.append(-given.uniform, world.initial)
    found = linprog(objective, rows, limits, bounds=bounds, method="highs")
    assert given.uniform_bound.value == pytest.approx(-found.fun, rel=1e-6)


def test_values_of_every_cost_lie_in_the_range():
    for seed in range(13):
        one, rng = instance(seed), np.random.default_rng(seed)
        low, high = RationalSet.of(one.problem).value_range
        for _ in range(5):
            weights = one.problem.cost_class.worst_case(rng.normal(size=one.problem.num_costs))
            values, _ = optimum(one.problem.world, one.problem.cost_of(weights))
            assert (low <= values + 1e-12).all()
            assert (values <= high + 1e-12).all()


def contradictory(noise, count, cost_class=None, seed=1):
    """An expert who is optimal but for a share of random actions, declared optimal."""
    rng = np.random.default_rng(seed)
    world, basis = grid(9, 8, rng)
    weights = rng.dirichlet(np.ones(basis.num_costs))
    best = jm.plan(world, basis.on(world) @ weights).policy.on(world)
    noisy = (1 - noise) * best + noise * world.pairs.uniform
    demos = jm.record(
        world, extract(world, noisy), trajectories=count, horizon=100, seed=rng
    )  # fmt: skip
    return jm.Apprenticeship(
        world, basis, demos, cost_class, expert_is=jm.Rational(regret_per_step=0)
    )


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.Simplex()], ids=repr)
@pytest.mark.parametrize(("noise", "count"), [(0.05, 9), (0.05, 50), (1.0, 9)])
def test_records_that_contradict_each_other_are_found(noise, count, cost_class):
    assert RationalSet.of(contradictory(noise, count, cost_class)).is_refuted
    assert not RationalSet.of(contradictory(0.0, count, cost_class)).is_refuted


def test_a_contradiction_cannot_be_made_smaller():
    given = RationalSet.of(contradictory(0.05, 9))
    found = given.contradiction(400)
    assert 0 < found.size < given.pairs.size
    assert given.restricted(found).is_refuted
    for position in found:
        assert not given.restricted(found[found != position]).is_refuted


def test_where_nothing_can_be_chosen_nothing_is_refuted():
    world = jm.World(np.array([[0.5, 0.5], [0.1, 0.9]]), [1, 0], 0.9)
    demos = jm.Demonstrations([0, 1, 1], [0, 0], [0, 2])
    problem = jm.Apprenticeship(
        world, jm.CostBasis([[1.0], [0.0]]), demos, expert_is=jm.Rational(regret_per_step=0)
    )
    assert not RationalSet.of(problem).is_refuted


def test_the_limit_of_a_soft_rational_expert_holds_for_all_its_steps():
    """Every drawn action lies within the limit more often than promised."""
    outside, runs = 0, 60
    for seed in range(runs):
        one = instance(seed, "soft")
        steps = one.problem.demonstrations.pairs_in(one.problem.world)
        soft = one.problem.expert_is[0]
        limit = soft_limit(one.problem, soft, steps.size, 0.2)
        outside += bool((one.advantages[steps] > limit).any())
    assert outside <= 0.2 * runs


def known(count, cost_class, seed=3):
    rng = np.random.default_rng(seed)
    world, basis = grid(7, 4, rng)
    weights = cost_class.admit(rng.dirichlet(np.ones(4)))
    values, advantages = optimum(world, basis.on(world) @ weights)
    demos = acted(world, advantages, "optimal", rng, count, 60)
    problem = jm.Apprenticeship(
        world, basis, demos, cost_class, expert_is=jm.Rational(regret_per_step=0)
    )
    lost = weights @ RationalSet.of(problem).uniform - world.initial @ values
    return problem, weights, lost


@pytest.mark.parametrize("cost_class", [jm.Simplex(), jm.EuclideanBall()], ids=repr)
def test_what_is_known_about_the_cost_holds_of_the_true_one_and_narrows(cost_class):
    """Among costs under which acting at random loses half of the most possible, the true one."""
    widths = []
    for count in (3, 30):
        problem, weights, lost = known(count, cost_class)
        most = RationalSet.of(problem).uniform_bound.value
        found = cost_ranges(problem)
        if lost >= most / 2:
            for one, weight in zip(found, weights / lost, strict=True):
                assert one.low - 1e-5 <= weight <= one.high + 1e-5
        widths.append(sum(one.high - one.low for one in found))
    assert widths[1] < widths[0]


def test_ratios_to_a_cost_whose_sign_is_known():
    problem, weights, lost = known(30, jm.Simplex())
    signs = {one.name: one.sign for one in cost_ranges(problem)}
    base = next((name for name, sign in signs.items() if sign), None)
    assert base is not None
    ratios = {one.name: one for one in cost_ranges(problem, relative_to=base)}
    assert ratios[base].low == pytest.approx(1.0, abs=1e-6)
    at = problem.basis.names.index(base)
    if lost >= RationalSet.of(problem).uniform_bound.value / 2:
        for name, weight in zip(problem.basis.names, weights / weights[at], strict=True):
            assert ratios[name].low - 1e-5 <= weight <= ratios[name].high + 1e-5
    with pytest.raises(jm.errors.InvalidProblem, match="no cost 'warmth'"):
        cost_ranges(problem, relative_to="warmth")


def test_nothing_is_known_about_a_cost_that_cannot_be():
    with pytest.raises(jm.errors.InvalidProblem, match="contradict"):
        cost_ranges(contradictory(0.5, 20))


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.Simplex()], ids=repr)
@pytest.mark.parametrize("discount", [0.99, 0.999, 0.9999])
def test_contradictions_are_found_over_long_horizons(discount, cost_class):
    """What rounding may hide grows with the horizon; it hides no contradiction."""
    rng = np.random.default_rng(0)
    world, basis = grid(8, 5, rng, discount)
    advantages = optimum(world, basis.on(world) @ rng.dirichlet(np.ones(5)))[1]
    for kind, refuted in (("mistakes", True), ("optimal", False)):
        demos = acted(world, advantages, kind, rng, 20, 150)
        problem = jm.Apprenticeship(
            world, basis, demos, cost_class, expert_is=jm.Rational(regret_per_step=0)
        )
        assert RationalSet.of(problem).is_refuted == refuted
