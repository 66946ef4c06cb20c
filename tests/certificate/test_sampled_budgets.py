"""Budgets below the explicit level: what is spent at most, by rollouts or drawn rows."""

import numpy as np
import pytest

import journeyman as jm

NETWORK = jm.gallery.queues(4, buffers=(3, 2, 2, 3), discount=0.9)
EXPLICIT, BASIS = NETWORK.explicit()
WALKS = jm.record(NETWORK.world, NETWORK.longer, trajectories=30, horizon=40, seed=0)
FEATURES = jm.features.factored(NETWORK.world, NETWORK.radix, WALKS, [NETWORK.longer], 2)
COST = BASIS.on(EXPLICIT)[:, 0]


def queue_length(states, actions):
    return NETWORK.costs.at(states, actions)[:, [0]]


def problem_of(*limits, demos=WALKS):
    cost = jm.CostFunctions(queue_length, ["queue"], lowest=0, highest=1)
    budgets = [jm.Budget(cost, limit, name=f"queue below {limit}") for limit in limits]
    return jm.Apprenticeship(NETWORK.world, NETWORK.costs, demos, constraints=budgets)


def spent_by(policy):
    laws = policy.probabilities(np.arange(EXPLICIT.num_states))
    return float(COST @ jm.occupancy(EXPLICIT, jm.Policy(laws.ravel(), EXPLICIT.pairs)).measure)


def test_rollouts_bound_what_is_spent():
    few, many = (
        jm.certify(
            problem_of(9.0), NETWORK.longer, evaluation=jm.Rollouts(trajectories=count, horizon=200)
        ).budgets[0]
        for count in (100, 3000)
    )
    exact = spent_by(NETWORK.longer)
    assert exact < many.spent < few.spent
    assert many.spent < 1.15 * exact
    assert many.terms[0].value == pytest.approx(exact, rel=0.05)
    assert many.spent == pytest.approx(sum(term.value for term in many.terms))
    assert many.failure_probability == pytest.approx(0.05 / 4)
    assert many.limit == 9.0


def test_drawn_rows_bound_what_is_spent():
    answer = jm.solve(
        problem_of(9.0),
        jm.StochasticSubgradient(FEATURES, jm.ExactPenalty(slack=1.0), steps=200, seed=0),
    )
    found = jm.certify(problem_of(9.0), answer, evaluation=jm.SampledRows(rows=4000)).budgets[0]
    assert found.spent > spent_by(answer.policy)
    names = [term.name for term in found.terms]
    assert names[:3] == ["spent", "negativity", "flow violation"]


def test_a_budget_that_may_be_broken_is_refused():
    exact = spent_by(NETWORK.longer)
    evaluation = jm.Rollouts(trajectories=1000, horizon=100)
    kept, broken = (
        jm.certify(problem_of(limit), NETWORK.longer, evaluation=evaluation)
        for limit in (1.5 * exact, 0.9 * exact)
    )
    assert kept.budgets[0].is_kept
    assert not broken.budgets[0].is_kept
    assert kept.require(gap=100.0) is kept
    with pytest.raises(jm.NotCertified, match="may be spent up to"):
        broken.require(gap=100.0)
    assert "budgets" in broken.table()


def test_budgets_share_the_failure_probability_with_the_gap():
    evaluation = jm.Rollouts(trajectories=500, horizon=100)
    without, with_one, with_two = (
        jm.certify(problem_of(*limits), NETWORK.longer, evaluation=evaluation)
        for limits in ((), (9.0,), (9.0, 8.0))
    )
    assert without.budgets == ()
    assert without.bound < with_one.bound
    assert with_one.bound == with_two.bound
    assert with_one.budgets[0].spent < with_two.budgets[0].spent
    assert len(with_two.budgets) == 2


def test_budgets_of_mixtures_are_evaluated_too():
    mixture = jm.policy.MixturePolicy([NETWORK.longer, NETWORK.uniform], [0.5, 0.5])
    evaluation = jm.problem.MixtureRollouts(trajectories=1000, horizon=100)
    stepped = jm.certify(problem_of(9.0), mixture, evaluation=evaluation).budgets[0]
    exact = (spent_by(NETWORK.longer) + spent_by(NETWORK.uniform)) / 2
    assert exact < stepped.spent < 1.3 * exact
    budget = jm.Budget(COST, 9.0)
    expert = jm.ExpertExpectation(np.ones(5))
    explicit = jm.Apprenticeship(EXPLICIT, BASIS, expert, constraints=budget)
    found = jm.certify(explicit, mixture, evaluation=evaluation).budgets[0]
    assert exact < found.spent < 1.3 * exact
