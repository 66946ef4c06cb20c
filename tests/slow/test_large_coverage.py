"""Psi' u, V1 and V2 from drawn rows, many times over, against their values by enumeration.

Beside each count stands that of means without their radii, or with a standard error in their place,
which has to fail too often: the runs can tell a true statement from a false one.
"""

import sys

import numpy as np
import pytest
from scipy.stats import binom

import journeyman as jm
from journeyman.certificate.sampled_rows import _radii
from journeyman.features.base import every_action
from seeding import drawn_from

pytestmark = pytest.mark.slow

RUNS, DELTA = 300, 0.1
NETWORK = jm.gallery.queues(4, buffers=(3, 2, 2, 3), discount=0.8)
EXPLICIT, BASIS = NETWORK.explicit()
WALKS = jm.record(NETWORK.world, NETWORK.longer, trajectories=20, horizon=30, seed=0)
FEATURES = jm.features.factored(
    NETWORK.world, NETWORK.radix, WALKS, [NETWORK.longer, NETWORK.uniform], 2
)
STATES = np.arange(EXPLICIT.num_states)
PAIRS = every_action(STATES, NETWORK.world.num_actions)
CLASSES = {"l1": jm.InfinityBall(), "l2": jm.EuclideanBall(), "simplex": jm.Simplex()}


def costs_of(told):
    costs = NETWORK.costs
    return costs if told else jm.CostFunctions(costs.function, costs.names, lowest=0, highest=1)


def coefficients(seed):
    """Of both signs, and of both signs none."""
    theta = np.random.default_rng(seed).dirichlet(np.ones(FEATURES.num_features))
    return theta - (seed % 2) * 0.5 * np.roll(theta, 1)


def judge(what, name, failures, untrue):
    sys.stdout.write(
        f"{what:<20}{name:<16} fails in {failures / RUNS:.4f} of {RUNS} runs, {DELTA} is allowed; "
        f"without radii {untrue / RUNS:.4f}\n"
    )
    assert failures <= binom(RUNS, DELTA).ppf(0.999) < untrue


@pytest.mark.parametrize("told", [True, False], ids=["exact but one", "all sampled"])
@pytest.mark.parametrize("name", CLASSES)
def test_every_sum_lies_within_its_radius(name, told):
    expert = jm.ExpertExpectation(np.zeros(BASIS.num_costs))
    problem = jm.Apprenticeship(NETWORK.world, costs_of(told), expert, CLASSES[name])
    N, h = problem.cost_class.pointwise_bound(BASIS.matrix), problem.effective_horizon
    failures = np.zeros(2, dtype=int)
    for seed in range(RUNS):
        theta = coefficients(seed)
        u = FEATURES.rows(*PAIRS) @ theta
        flow = u.reshape(EXPLICIT.num_states, -1).sum(axis=1)
        flow -= EXPLICIT.discount * (EXPLICIT.transition.T @ u)
        V1, V2 = np.maximum(-u, 0).sum(), np.abs(flow - EXPLICIT.initial).sum()
        drawn = jm.SampledRows(rows=60)
        with drawn_from(seed):
            (found,) = drawn.evaluate(problem, jm.policy.FeaturePolicy(FEATURES, theta), DELTA)
        terms = {term.name: term.value for term in found.terms}
        off = np.abs(found.expectations - BASIS.matrix.T @ u)
        missed = problem.cost_class.gap(off) > terms["expectations"] + terms["rounding"]
        missed |= 2 * N * h * V1 > terms["negativity"] + terms["rounding"]
        missed |= N * h * V2 > terms["flow violation"] + terms["rounding"]
        means = {one.name: one.means for one in found.statistics}
        bare = means["V2"][0] < V2
        failures += np.array([missed, bare])
    judge("rows" if told else "rows, all sampled", name, *failures)


def test_sampled_expectations_cost_by_cost():
    """One standard error in the place of a radius is too little for a third of all means."""
    expert = jm.ExpertExpectation(np.zeros(BASIS.num_costs))
    problem = jm.Apprenticeship(NETWORK.world, costs_of(False), expert)
    failures, theta = np.zeros(2, dtype=int), coefficients(0)
    exact = BASIS.matrix.T @ (FEATURES.rows(*PAIRS) @ theta)
    for seed in range(RUNS):
        drawn = jm.SampledRows(rows=60)
        with drawn_from(seed):
            (found,) = drawn.evaluate(problem, jm.policy.FeaturePolicy(FEATURES, theta), DELTA)
        sums, off = found.statistics[0], np.abs(found.expectations - exact)
        deviation = np.sqrt(np.array(sums.variances) / sums.count)
        failures += np.array([(off > _radii(sums)).any(), (off > deviation).any()])
    judge("expectations", "cost by cost", *failures)
