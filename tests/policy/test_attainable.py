"""Attainable ranges: outer bounds that policies attain."""

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.policy import attainable
from journeyman.policy.attainable import attainable_ranges


def random_case(seed):
    rng = np.random.default_rng(seed)
    states, discount = int(rng.integers(2, 12)), float(rng.choice([0.5, 0.9, 0.99, 0.9999]))
    offsets = np.r_[0, np.cumsum(rng.integers(1, 4, states))]
    law = rng.dirichlet(np.full(states, 0.3), size=offsets[-1])
    world = jm.World(law, rng.dirichlet(np.ones(states)), discount, choice_offsets=offsets)
    costs = rng.uniform(-1, 1, (offsets[-1], 3)) * 10.0 ** rng.integers(-6, 6)
    return rng, world, jm.CostBasis(costs)


@pytest.mark.parametrize("seed", range(40))
def test_plans_attain_the_ranges_and_no_policy_is_outside(seed):
    rng, world, basis = random_case(seed)
    ranges = attainable_ranges(world, basis)
    unit = basis.norms * world.effective_horizon
    for k in range(basis.num_costs):
        for sign, end in ((1, ranges.lowest), (-1, ranges.highest)):
            best = jm.plan(world, sign * basis.matrix[:, k]).policy
            reached = jm.expected_cost(world, best, basis.matrix[:, k])
            assert abs(reached - end[k]) <= 1e-6 * unit[k]
            assert sign * reached >= sign * end[k] - 1e-14 * unit[k]
    for _ in range(5):
        laws = np.concatenate([rng.dirichlet(np.ones(n)) for n in world.pairs.actions_per_state])
        policy = jm.Policy(laws, world.pairs.offsets)
        for k in range(basis.num_costs):
            cost = jm.expected_cost(world, policy, basis.matrix[:, k])
            assert ranges.lowest[k] - 1e-12 * unit[k] <= cost <= ranges.highest[k] + 1e-12 * unit[k]


def test_the_end_of_an_episode_leaves_little_to_choose():
    """Two steps at most, then a free absorbing state: ranges are of one step, not of h."""
    world = jm.World(
        [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]], [1, 0, 0], 0.99, choice_offsets=[0, 2, 3, 4]
    )
    ranges = attainable_ranges(world, jm.CostBasis([[1.0], [1.0], [1.0], [0.0]]))
    assert ranges.lowest == pytest.approx([1.0], abs=1e-5)
    assert ranges.highest == pytest.approx([1.99], abs=1e-5)


def test_sparse_costs_and_worlds_beyond_the_limit(monkeypatch):
    _, world, basis = random_case(3)
    dense = attainable_ranges(world, basis)
    twin = attainable_ranges(world, jm.CostBasis(sparse.csr_array(basis.matrix)))
    assert np.array_equal(dense.lowest, twin.lowest)
    monkeypatch.setattr(attainable, "WORK_LIMIT", 0)
    wide = attainable_ranges(world, jm.CostBasis(basis.matrix))
    assert not wide.planned
    assert (wide.lowest <= dense.lowest).all()
    assert (wide.highest >= dense.highest).all()
    assert attainable_ranges(world, basis) is dense
