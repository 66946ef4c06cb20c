"""The bound on mixtures, run many times over, with weights chosen on the very rollouts.

Beside each count stands that of the bound without its error terms, which has to fail too often: the
runs can tell a true statement from a false one.
"""

import sys
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import journeyman as jm
from mixtures import CLASSES, expectations, random_policies, small_world

pytestmark = pytest.mark.slow

RUNS, DELTA, WORLDS, CANDIDATES = 300, 0.1, 20, 5


@cache
def setting(seed, name):
    """A small world, an expert who is known exactly, and candidates with their expectations."""
    world, costs, basis = small_world(seed, discount=0.7)
    members = random_policies(world, CANDIDATES, seed=seed)
    (target,) = expectations(world, basis, random_policies(world, 1, seed=99 + seed))
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation(target), CLASSES[name])
    return problem, members, expectations(world, basis, members)


def judge(what, name, failures, untrue):
    sys.stdout.write(
        f"{what:<20}{name:<16} fails in {failures / RUNS:.4f} of {RUNS} runs, {DELTA} is allowed; "
        f"without error terms {untrue / RUNS:.4f}\n"
    )
    assert failures <= binom(RUNS, DELTA).ppf(0.999) < untrue


@pytest.mark.parametrize("name", CLASSES)
def test_weights_chosen_on_the_rollouts(name):
    failures = np.zeros(2, dtype=int)
    for seed in range(RUNS):
        problem, members, exact = setting(seed % WORLDS, name)
        solver = jm.PolicyMixture(members, rollouts=20, horizon=15, seed=seed)
        answer = jm.solve(problem, solver)
        certificate = jm.certify(problem, answer, DELTA)
        truth = problem.cost_class.gap(answer.mixture.weights @ exact - problem.target)
        bare = min(way.terms[0].value for way in certificate.combinations)
        failures += np.array([certificate.best.bound < truth, bare < truth])
    judge("weights", name, *failures)


@pytest.mark.parametrize("name", ["l1", "simplex"])
def test_best_responses_to_the_rollouts(name):
    """Round by round, the member that is best for the worst case on the rollouts so far."""
    failures = np.zeros(2, dtype=int)
    for seed in range(RUNS):
        problem, members, exact = setting(seed % WORLDS, name)

        def respond(weights, number, members=members, exact=exact):
            return members[int(np.argmin(exact @ weights))]

        solver = jm.PolicyMixture(
            members[:1], rollouts=20, horizon=15, seed=seed, best_response=respond, rounds=4
        )
        answer = jm.solve(problem, solver)
        certificate = jm.certify(problem, answer, DELTA)
        places = [members.index(one) for one in answer.policy.candidates]
        truth = problem.cost_class.gap(answer.mixture.weights @ exact[places] - problem.target)
        bare = min(way.terms[0].value for way in certificate.combinations)
        failures += np.array([certificate.best.bound < truth, bare < truth])
    judge("best responses", name, *failures)
