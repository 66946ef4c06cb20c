"""Bounds from records alone hold as often as they say: 400 worlds for every kind of expert.

The worlds and their exact values are those of the benchmark. The worst gap leaves slack behind the
coupling; the bound of E Z leaves none, so it shows whether the failure probability is kept.
"""

import numpy as np
import pytest
from benchmarks.agreement import EXPERTS, RecordedWorld, trial
from scipy.stats import binomtest

from journeyman.certificate.agreement import agreement
from journeyman.certificate.betting_means import upper_mean
from journeyman.demonstrations.expectation import clone_visited_states
from journeyman.world import Records

pytestmark = pytest.mark.slow
RUNS, SURE = 400, 1e-4


@pytest.mark.parametrize("ending", [False, True])
@pytest.mark.parametrize("kind", EXPERTS)
def test_bounds_hold(kind, ending):
    delta = 0.05
    found = [trial(kind, run, ending=ending, episodes=60, delta=delta) for run in range(RUNS)]
    assert all(one.gap_holds for one in found)
    missed = sum(not one.mean_holds for one in found)
    assert binomtest(missed, RUNS, delta, alternative="greater").pvalue > SURE


def test_one_policy_and_many_held_out_sets():
    """One fold, so that the whole failure probability is spent on one mean; and a bound without its
    sampling term, which these runs have to tell apart."""
    delta, missed, untrue = 0.3, 0, 0
    rng = np.random.default_rng(3)
    world = RecordedWorld.drawn("deterministic", rng, ending=True)
    policy = clone_visited_states(world.record(4, rng))
    exact, h = world.disagreement(policy), 1 / (1 - world.discount)
    records = Records(world.discount, (0, 1))
    for _ in range(RUNS):
        z = agreement(world.record(30, rng), policy, records).disagreement
        missed += upper_mean(z, h, delta) < exact
        untrue += z.mean() < exact
    assert binomtest(missed, RUNS, delta, alternative="greater").pvalue > SURE
    assert untrue > delta * RUNS
