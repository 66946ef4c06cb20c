"""Estimates of the expert where bounds that look at the data are most easily wrong.

Events as rare as 1.5 in all records, which many records do not show at all, and numbers of records
around those at which the parts of the failure probability change. Counted is how often any of the
estimates is further from the truth than it says, in either direction.
"""

import pytest
from scipy.stats import binomtest

import journeyman as jm
from journeyman.certificate.expert_estimates import expert_estimates
from journeyman.certificate.terms import total

pytestmark = pytest.mark.slow
SURE = 1e-4
"""Probability with which a test of a true statement may fail by chance."""
CLASSES = {"l1": jm.InfinityBall(), "l2": jm.EuclideanBall(), "simplex": jm.Simplex(),
           "polytope": jm.costs.Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0])}  # fmt: skip


def slipping(chance):
    """The world leads to a costly rest with `chance`: shaping takes that out."""
    rows = [[0, chance, 1 - chance], [0, 1, 0], [0, 0, 1]]
    costs = [[0.0, 0.3], [1.0, 0.0], [0.0, -0.2]]
    return jm.World(rows, [1, 0, 0], 0.9), costs, jm.Policy([[1.0]] * 3)


def choosing(chance):
    """The expert takes the costly action with `chance`: nothing takes that out."""
    world = jm.World([[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 1]], [1, 0, 0], 0.9,
                     choice_offsets=[0, 2, 3, 4])  # fmt: skip
    costs = [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, -0.2]]
    return world, costs, jm.Policy([1 - chance, chance, 1.0, 1.0], world.pairs.offsets)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("made", [slipping, choosing])
@pytest.mark.parametrize("count", [8, 21, 60])
def test_rare_events(name, made, count):
    cost_class, runs = CLASSES[name], 300
    world, costs, expert = made(1.5 / count)
    basis = jm.CostBasis(costs)
    truth = jm.occupancy(world, expert).expectations(basis)
    for delta in (0.05, 0.3):
        wrong, back = 0, 0
        for run in range(runs):
            demos = jm.record(world, expert, trajectories=count, horizon=60, seed=run)
            problem = jm.Apprenticeship(world, basis, demos, cost_class)
            found = expert_estimates(problem, delta)
            tiny = 1e-9 * problem.gap_scale
            wrong += any(
                cost_class.gap(one.values - truth) > total(one.terms) + tiny for one in found
            )
            back += any(
                cost_class.gap(truth - one.values)
                > (total(one.terms) if one.reverse is None else one.reverse) + tiny
                for one in found
            )
        for failed in (wrong, back):
            assert binomtest(failed, runs, delta, "greater").pvalue > SURE, (delta, failed)
