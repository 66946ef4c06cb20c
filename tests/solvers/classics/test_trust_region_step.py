"""One trust-region step: the direction solves its system, and both conditions hold."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.classics.policy_family import (
    Direction,
    PolicyFamily,
    StartPoint,
    divergence,
    natural_gradient,
    trust_region_step,
)
from journeyman.solvers.classics.policy_visits import ExactEvaluator
from journeyman.testing import Shape, random_problem

WEIGHTS = np.array([1.0, -0.3, 0.5])


def start_of(problem, family, seed=0):
    """A start point, the value of a fixed cost there, its gradient and the exact surrogate."""
    evaluator = ExactEvaluator(problem)
    theta = np.random.default_rng(seed).normal(size=family.num_parameters)
    cost = problem.cost_of(WEIGHTS)
    visits = evaluator.visits(family.law(theta))
    mass = problem.world.pairs.total(visits.measure)
    gradient = family.gradient(visits.law, visits.signal(cost))
    start = StartPoint(theta, visits.law, mass / mass.sum())
    return (
        start,
        float(visits.measure @ cost),
        gradient,
        lambda law: float(evaluator.visits(law).measure @ cost),
    )


def families(problem):
    columns = np.random.default_rng(5).normal(size=(problem.world.num_pairs, 3))
    return [PolicyFamily(problem.world), PolicyFamily(problem.world, jm.features.Features(columns))]


@pytest.mark.parametrize("shape", [Shape.RAGGED, Shape.DENSE, Shape.UNREACHABLE])
def test_the_direction_solves_the_fisher_system(shape):
    problem = random_problem(0, shape=shape)
    for family in families(problem):
        start, _, gradient, _ = start_of(problem, family)
        found = natural_gradient(family, start, gradient)
        product = family.fisher_times(start.law, start.mass, found)
        assert np.allclose(product, gradient, atol=1e-4 * np.abs(gradient).max())


def test_the_natural_gradient_of_a_table_is_the_advantage():
    problem = random_problem(0, shape=Shape.DENSE)
    family = PolicyFamily(problem.world)
    start, _, gradient, _ = start_of(problem, family)
    visits = ExactEvaluator(problem).visits(start.law)
    advantages = visits.advantages(problem.cost_of(WEIGHTS)) * visits.measure.sum()
    found = natural_gradient(family, start, gradient)
    centred = found - problem.world.pairs.spread(problem.world.pairs.total(start.law * found))
    assert np.allclose(centred, advantages, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("radius", [1e-4, 0.01, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_step_stays_within_the_radius_and_improves(seed, radius):
    problem = random_problem(seed)
    for family in families(problem):
        start, value, gradient, surrogate = start_of(problem, family, seed)
        step = trust_region_step(family, start, value, gradient, surrogate, radius=radius)
        laws = np.log(start.law), np.log(family.law(step.theta))
        assert step.length > 0
        assert 0 < step.divergence <= radius
        assert step.divergence == pytest.approx(divergence(family, start, *laws))
        assert step.value == pytest.approx(surrogate(step.law))
        assert step.value < value


def test_longer_radii_allow_longer_steps():
    problem = random_problem(0)
    family = PolicyFamily(problem.world)
    start, value, gradient, surrogate = start_of(problem, family)
    steps = [
        trust_region_step(family, start, value, gradient, surrogate, radius=radius)
        for radius in (1e-4, 1e-2)
    ]
    assert 0.1e-4 < steps[0].divergence < steps[1].divergence
    assert steps[1].value < steps[0].value


def test_nothing_changes_when_nothing_is_better():
    problem = random_problem(0)
    family = PolicyFamily(problem.world)
    start, value, gradient, _ = start_of(problem, family)
    step = trust_region_step(family, start, value, gradient, lambda law: value, radius=0.1)
    assert step.length == 0
    assert step.theta is start.theta
    still = trust_region_step(family, start, value, 0 * gradient, lambda law: value, radius=0.1)
    assert still.length == 0


def test_a_direction_uphill_is_not_followed():
    problem = random_problem(0)
    family = PolicyFamily(problem.world)
    start, value, gradient, surrogate = start_of(problem, family)
    misleading = Direction(-gradient, -1e6 * gradient, 1e-9)
    step = trust_region_step(
        family, start, value, gradient, surrogate, radius=0.1, before=misleading
    )
    assert step.length > 0
    assert step.value < value
