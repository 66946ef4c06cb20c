import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.testing import Shape, random_world
from journeyman.testing.strategies import policies, seeds, worlds
from naive import expectation as naive


def of(demos, basis, world):
    return jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )


def absorbing_world():
    """A walk that comes to rest in its last state, which has two actions."""
    rows = [
        [0.5, 0.3, 0.2],
        [0.2, 0.5, 0.3],
        [0.1, 0.6, 0.3],
        [0.6, 0.1, 0.3],
        [0, 0, 1],
        [0, 0, 1],
    ]
    return jm.World(rows, [0.5, 0.5, 0], 0.9)


@given(st.data(), seeds, st.booleans())
def test_means_are_those_of_a_loop_over_episodes(data, seed, per_state):
    world = data.draw(worlds())
    policy = data.draw(policies(world))
    demos = jm.record(world, policy, trajectories=4, horizon=6, seed=seed)
    rows = world.num_states if per_state else world.num_pairs
    matrix = np.random.default_rng(seed).normal(size=(rows, 2))
    per_pair = matrix[world.pairs.states] if per_state else matrix
    totals, missing = naive.totals(demos, per_pair, world)
    found = of(demos, jm.CostBasis(matrix), world)
    close = {"rtol": 1e-12, "atol": 1e-12 * world.effective_horizon}
    np.testing.assert_allclose(found.values, np.mean(totals, axis=0), **close)
    np.testing.assert_allclose(found.spread, np.std(totals, axis=0, ddof=1), **close)
    np.testing.assert_allclose(found.truncation_mass, np.mean(missing), **close)
    assert found.num_trajectories == 4
    assert not found.is_declared


def test_sparse_and_dense_bases_have_the_same_expectation():
    world = absorbing_world()
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=30, horizon=5, seed=0)
    costs = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    dense, thin = (
        of(demos, jm.CostBasis(form(costs)), world) for form in (np.array, sparse.csr_array)
    )
    np.testing.assert_allclose(thin.values, dense.values, rtol=1e-14)
    np.testing.assert_allclose(thin.spread, dense.spread, rtol=1e-14)
    assert thin.truncation_mass == dense.truncation_mass > 0


def test_a_known_tail_makes_terminated_episodes_exact():
    world = absorbing_world()
    basis = jm.CostBasis(np.array([0.2, -1.0, 0.7]))
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=500, horizon=400, seed=1)
    assert demos.terminated.all()
    found = of(demos, basis, world)
    assert found.truncation_mass == 0
    exact = jm.expected_cost(world, jm.Policy.uniform(world), basis.matrix[:, 0])
    assert abs(found.values[0] - exact) <= 4 * found.spread[0] / np.sqrt(500)


def test_a_known_tail_equals_a_record_that_goes_on():
    world = absorbing_world()
    basis = jm.CostBasis(np.array([0.2, -1.0, 0.7]))
    short = jm.Demonstrations([0, 1, 2], [0, 0], [0, 2], [True])
    rest = np.full(600, 2)
    long = jm.Demonstrations([0, 1, *rest], [0] * 601, [0, 601])
    assert of(long, basis, world).values[0] == pytest.approx(of(short, basis, world).values[0])
    assert of(long, basis, world).truncation_mass < 1e-20


@pytest.mark.parametrize("length", [1, 3])
def test_truncated_time_is_accounted_for(length):
    world = jm.World([[0, 1], [1, 0]], [1, 0], 0.9)
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=2, horizon=length, seed=0)
    found = of(demos, jm.CostBasis([1.0, 1.0]), world)
    assert found.truncation_mass == pytest.approx(0.9**length / 0.1)
    assert found.values[0] + found.truncation_mass == pytest.approx(world.effective_horizon)


def test_only_the_share_of_truncated_episodes_counts():
    world = absorbing_world()
    demos = jm.Demonstrations.from_arrays([[0, 2], [0, 1, 1]], [[0], [0, 0]], [True, False])
    found = of(demos, jm.CostBasis(np.ones(3)), world)
    assert found.truncation_mass == pytest.approx((0 + 0.9**2 / 0.1) / 2)


def test_a_resting_place_whose_cost_depends_on_the_action_counts_as_truncated():
    world = absorbing_world()
    demos = jm.Demonstrations([0, 2], [0], [0, 1], [True])
    settled, restless = np.ones(6), np.array([1.0, 1, 1, 1, 1, 2])
    assert of(demos, jm.CostBasis(settled), world).truncation_mass == 0
    found = of(demos, jm.CostBasis(restless), world)
    assert found.truncation_mass == pytest.approx(9.0)
    assert found.values.tolist() == [1.0]


def test_one_restless_cost_leaves_out_the_tails_of_all():
    world = absorbing_world()
    demos = jm.Demonstrations([0, 2], [0], [0, 1], [True])
    both = jm.CostBasis(np.column_stack([np.ones(6), [1.0, 1, 1, 1, 1, 2]]))
    assert of(demos, both, world).values.tolist() == [1.0, 1.0]


def test_several_experts_are_averaged_over_all_their_episodes():
    world = random_world(2, Shape.DENSE)
    basis = jm.CostBasis(np.random.default_rng(0).normal(size=(world.num_pairs, 2)))
    parts = [
        jm.record(world, jm.plan(world, sign * basis.matrix[:, 0]).policy,
                  trajectories=count, horizon=20, seed=count)
        for sign, count in ((1, 10), (-1, 30))
    ]  # fmt: skip
    found = of(jm.Demonstrations.concatenate(parts), basis, world)
    alone = [of(part, basis, world).values for part in parts]
    np.testing.assert_allclose(found.values, 0.25 * alone[0] + 0.75 * alone[1])
    assert found.num_trajectories == 40
    assert not np.allclose(alone[0], alone[1])


def test_a_single_trajectory_has_no_known_spread():
    world = absorbing_world()
    found = of(jm.Demonstrations([0, 2], [0], [0, 1], [True]), jm.CostBasis(np.ones(3)), world)
    assert found.spread.tolist() == [np.inf]


def test_declared_expectations_are_exact():
    declared = jm.ExpertExpectation([1.0, -2.0])
    assert declared.is_declared
    assert declared.num_trajectories is None
    assert declared.values.tolist() == [1.0, -2.0]
    assert declared.spread.tolist() == [0.0, 0.0]
    assert declared.truncation_mass == 0


def test_declared_rewards_are_turned_into_costs():
    assert jm.ExpertExpectation.from_rewards([1.0, -2.0]).values.tolist() == [-1.0, 2.0]


def test_rewards_are_expected_with_the_sign_of_costs():
    world = absorbing_world()
    demos = jm.Demonstrations([0, 2], [0], [0, 1], [True])
    reward = of(demos, jm.CostBasis.from_rewards(np.ones(3)), world)
    assert reward.values[0] == pytest.approx(-world.effective_horizon)


def test_demonstrations_of_another_world_are_refused():
    demos = jm.Demonstrations([0, 7], [0], [0, 1])
    with pytest.raises(jm.errors.InvalidDemonstrations, match="ends in state 7"):
        of(demos, jm.CostBasis(np.ones(3)), absorbing_world())
