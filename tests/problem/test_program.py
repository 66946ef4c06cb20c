"""Problems join world, costs, expert and budgets."""

import numpy as np
import pandas as pd
import pytest

import journeyman as jm


@pytest.fixture
def world():
    return jm.World([[0.5, 0.5], [0, 1], [1, 0], [0.2, 0.8]], [0.6, 0.4], 0.9)


def test_demonstrations_become_the_target(world):
    basis = jm.CostBasis([[1.0, 0.0], [0.0, 1.0]])
    demos = jm.Demonstrations.from_arrays([[0, 1, 0]], [[0, 0]])
    problem = jm.Apprenticeship(world, basis, demos)
    recorded = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    assert recorded.values == pytest.approx([1.0, 0.9])
    assert (problem.target > recorded.values).all(), "the record is cut off, its time goes on"
    assert problem.target.sum() == pytest.approx(10)
    assert problem.demonstrations is demos
    assert problem.expectation.num_trajectories == 1


def test_declared_expectations_are_taken_as_they_are(world):
    problem = jm.Apprenticeship(world, jm.CostBasis(np.eye(2)), jm.ExpertExpectation([3.0, 4.0]))
    assert problem.target.tolist() == [3.0, 4.0]
    assert problem.demonstrations is None
    assert problem.expectation.is_declared
    assert isinstance(problem.cost_class, jm.InfinityBall)


def test_a_basis_per_state_is_repeated_over_actions(world):
    problem = jm.Apprenticeship(world, jm.CostBasis(np.eye(2)), jm.ExpertExpectation([0.0, 0.0]))
    assert problem.cost_matrix.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]


def test_the_scale_of_gaps_counts_scales(world):
    expert = jm.ExpertExpectation([0.0, 0.0])
    basis = jm.CostBasis([[1.0, -2.0], [0.0, 1.0]])
    scaled = jm.Apprenticeship(world, basis, expert, jm.InfinityBall(scale=[1.0, 0.5]))
    assert scaled.gap_scale == pytest.approx(2 * (1 + 1) * 10)


def test_overspending_is_positive_where_a_budget_is_broken(world):
    budgets = [jm.Budget([0, 1], at_most=2.0), jm.Budget([1, 1, 0, 0], at_most=9.0, name="first")]
    problem = jm.Forward(world, [1.0, 0.0], budgets)
    measure = np.array([1.0, 2.0, 3.0, 4.0])
    assert problem.overspending(measure).tolist() == [5.0, -6.0]


def test_a_forward_problem_values_policies_by_their_cost(world):
    cost = [0.3, -1.0, 0.5, 2.0]
    policy = jm.Policy([[0.5, 0.5], [1.0, 0.0]])
    assert jm.Forward(world, cost).gap(policy) == jm.expected_cost(world, policy, cost)


def test_reward_features_turn_their_sign_once(world):
    rewards = jm.CostBasis.from_rewards(np.eye(2), names=["food", "rest"])
    problem = jm.Apprenticeship(
        world, rewards, jm.ExpertExpectation.from_rewards([4.0, 5.0]), jm.Simplex()
    )
    answer = jm.solve(problem)
    shown = jm.report.comparison(problem, answer)
    assert "reward" in shown.splitlines()[0]
    assert "4.0000" in shown
    assert problem.target.tolist() == [-4.0, -5.0]
    assert answer.value == pytest.approx(-0.5, abs=1e-6)


def test_costs_can_be_tables_of_states_and_actions(world):
    table = np.array([[0.3, -1.0], [0.5, 2.0]])
    flat = table.ravel()
    policy = jm.Policy([[0.5, 0.5], [1.0, 0.0]])
    assert jm.expected_cost(world, policy, table) == jm.expected_cost(world, policy, flat)
    assert jm.plan(world, table).values.tolist() == jm.plan(world, flat).values.tolist()
    assert jm.Forward(world, table).gap(policy) == jm.Forward(world, flat).gap(policy)
    assert jm.Budget(table, 1.0).on(world).tolist() == flat.tolist()


def test_a_table_for_ragged_action_sets_skips_what_is_not_there():
    ragged = jm.World([[0, 1], [1, 0], [0, 1]], [1, 0], 0.9, choice_offsets=[0, 2, 3])
    assert jm.Budget([[1.0, 2.0], [3.0, 99.0]], 1.0).on(ragged).tolist() == [1.0, 2.0, 3.0]


def test_one_budget_need_not_stand_in_a_list(world):
    problem = jm.Forward(world, [1.0, 0.0], constraints=jm.Budget([0, 1], 9.0))
    assert len(problem.constraints) == 1


def test_names_come_from_the_columns_of_a_data_frame():
    frame = pd.DataFrame({"speed": [0.0, 1.0], "risk": [1, 0]})
    assert jm.CostBasis(frame).names == ("speed", "risk")
