"""Bounds over a family whose members are drawn: false in no more runs than stated."""

import numpy as np
import pytest
from scipy.stats import binomtest

import journeyman as jm
from journeyman.problem import Family
from journeyman.testing.random_worlds import Shape, random_policy, random_world

pytestmark = pytest.mark.slow
SHARES, RUNS, EPISODES, DELTA, SURE = np.array([0.15, 0.6, 0.25]), 150, 40, 0.3, 1e-4


@pytest.mark.parametrize("known", [True, False])
def test_bounds_hold_where_members_are_drawn(known):
    rng, missed, unsure = np.random.default_rng(3), 0, 0
    worlds = [random_world(k, Shape.DENSE, num_states=4, num_actions=2, discount=0.7)
              for k in range(3)]  # fmt: skip
    bases = [jm.CostBasis(rng.uniform(-1, 1, (8, 2))) for _ in worlds]
    experts = [random_policy(world, 9 + k) for k, world in enumerate(worlds)]
    values = [jm.occupancy(*both).expectations(basis)
              for *both, basis in zip(worlds, experts, bases, strict=True)]  # fmt: skip
    for run in range(RUNS):
        drawn = rng.multinomial(EPISODES, SHARES)
        some = np.flatnonzero(drawn)
        demos = {k: jm.record(worlds[k], experts[k], trajectories=int(drawn[k]), horizon=60,
                              seed=1000 * run + int(k)) for k in some}  # fmt: skip
        if some.size < 3:
            unsure += 1
            continue
        one = Family(
            [(worlds[k], bases[k], demos[k]) for k in some], SHARES if known else None
        )  # fmt: skip
        apprentice = jm.learn(one.world, one.basis, one.demonstrations, failure_probability=DELTA)
        own = one.policies(apprentice.policy)
        surplus = sum(
            share * (jm.occupancy(worlds[k], own[k]).expectations(bases[k]) - values[k])
            for k, share in enumerate(SHARES)
        )
        gap = apprentice.certificate.problem.cost_class.gap(surplus)
        missed += apprentice.certificate.bound < gap - 1e-9
    assert unsure < RUNS / 10
    assert binomtest(missed, RUNS, DELTA, alternative="greater").pvalue > SURE
