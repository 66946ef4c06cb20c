"""Attainable ranges: outer bounds that policies attain."""

import gc
import weakref

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.policy import planning as attainable
from journeyman.policy import steps
from journeyman.policy.planning import attainable_ranges


@pytest.fixture(scope="module", params=["dense", "plain", "compiled"], autouse=True)
def size(request):
    """Worlds count as that small, or not."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "dense":
            patch.setattr(steps, "DENSE_STATES", 0)
        if request.param == "compiled":
            patch.setattr(steps, "PLAIN_STATES", 0)
        yield


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


def test_plans_are_made_once_and_only_for_costs_that_are_asked_for(monkeypatch):
    _, world, basis = random_case(4)
    asked = []
    improve = attainable.improve

    def counted(chains, cost, *rest, **more):
        asked.append(cost.copy())
        return improve(chains, cost, *rest, **more)

    monkeypatch.setattr(attainable, "improve", counted)
    end = attainable_ranges(world, basis).of(1)
    assert asked
    assert all(np.array_equal(np.abs(cost), np.abs(basis.matrix[:, 1])) for cost in asked)
    asked.clear()
    assert attainable_ranges(world, basis).of(1) == end
    assert not asked
    assert len(attainable_ranges(world, basis).highest) == 3
    assert asked


def test_worlds_that_were_planned_in_can_go():
    _, world, basis = random_case(5)
    assert attainable_ranges(world, basis).planned
    gone = weakref.ref(world)
    del world
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("discount", [0.9, 0.9999, 0.999999])
def test_narrow_ranges_are_told_from_none_at_any_discount(discount):
    """One free step of the first state is all there is to choose; the end rests for ever."""
    law = [[0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    world = jm.World(law, [1, 0, 0], discount, choice_offsets=[0, 2, 3, 4])
    some = attainable_ranges(world, jm.CostBasis([[0.25], [0.5], [1.0], [0.0]]))
    none = attainable_ranges(world, jm.CostBasis([[0.25], [0.25], [1.0], [0.0]]))
    assert (some.highest - some.lowest)[0] == pytest.approx(0.25, rel=1e-4)
    assert 0 <= (none.highest - none.lowest)[0] <= 1e-8
