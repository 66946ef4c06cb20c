"""Classic methods answer problems of every cost class, and the bounds of their answers hold."""

import pytest

import journeyman as jm
from class_examples import NAMES, example
from journeyman import solvers
from journeyman.testing import random_problem

METHODS = [
    solvers.BehaviourCloning(), solvers.Projection(accuracy=0.01), solvers.MaxMargin(accuracy=0.01),
    solvers.MultiplicativeWeights(accuracy=0.1), solvers.InverseProgram(),
    solvers.SampledInverseProgram(max_iterations=5), solvers.MaximumEntropy(max_iterations=20),
    solvers.MaximumMarginPlanning(accuracy=1e-3), solvers.PolicyMatching(max_iterations=5),
    solvers.ConsistentCosts(max_iterations=20),
    solvers.ImitationReinforce(max_iterations=5), solvers.ImitationTrustRegion(max_iterations=5),
    solvers.AdversarialImitation(max_iterations=5),
    solvers.OccupancyMirrorDescent(max_iterations=500),
    solvers.PriorMirrorDescent(max_iterations=500),
    solvers.ProximalPointImitation(max_iterations=2, inner_iterations=50),
    solvers.OfflineProximalImitation(inner_iterations=50),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_method_answers_every_class(name):
    problem = random_problem(3, example(name, 3), trajectories=20)
    exact = jm.solve(problem)
    for method in METHODS:
        answer = jm.solve(problem, method)
        slack = 1e-6 * problem.gap_scale
        assert answer.lower_bound <= exact.value + slack, method
        assert answer.value >= exact.lower_bound - slack, method
        assert answer.value == pytest.approx(problem.gap(answer.policy), abs=slack), method


@pytest.mark.parametrize("name", NAMES)
def test_trust_regions_reach_the_least_gap_of_every_class(name):
    problem = random_problem(3, example(name, 3), trajectories=20)
    answer = jm.solve(problem, solvers.ImitationTrustRegion(accuracy=1e-4))
    assert answer.value - answer.lower_bound <= 1e-4 * problem.gap_scale
