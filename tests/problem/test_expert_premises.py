"""Premises about the expert: what can be declared of which problem."""

import numpy as np
import pytest

import journeyman as jm

WORLD, BASIS, EXPERT = jm.gallery.grid(4)
DEMOS = jm.record(WORLD, EXPERT, trajectories=3, horizon=10, seed=0)
EVERY = (
    jm.Rational(regret_per_step=0.01), jm.NearlyOptimal(regret=0.5), jm.Deterministic(),
    jm.Stationary(),
)  # fmt: skip


def test_nothing_is_declared_by_default():
    assert jm.Apprenticeship(WORLD, BASIS, DEMOS).expert_is == ()


@pytest.mark.parametrize("premise", [*EVERY, jm.SoftRational(temperature=0.1)], ids=repr)
def test_one_premise_or_a_list_of_them(premise):
    assert jm.Apprenticeship(WORLD, BASIS, DEMOS, expert_is=premise).expert_is == (premise,)
    problem = jm.Apprenticeship(WORLD, BASIS, DEMOS, expert_is=[premise])
    assert problem.expert_is == (premise,)
    assert repr(premise) in repr(problem)


def test_premises_can_be_combined_and_learn_keeps_them():
    apprentice = jm.learn(WORLD, BASIS, DEMOS, expert_is=EVERY)
    assert apprentice.problem.expert_is == EVERY


@pytest.mark.parametrize("amount", [-0.1, np.nan, np.inf, "much", None])
def test_amounts_are_finite_and_not_negative(amount):
    for declare in (
        lambda: jm.Rational(regret_per_step=amount),
        lambda: jm.NearlyOptimal(regret=amount),
        lambda: jm.SoftRational(temperature=amount),
    ):
        with pytest.raises(jm.errors.InvalidProblem, match="Give a"):
            declare()


def test_an_amount_has_no_default():
    for kind in (jm.Rational, jm.NearlyOptimal, jm.SoftRational):
        with pytest.raises(TypeError, match="required keyword-only argument"):
            kind()
    assert jm.Rational(regret_per_step=0).regret_per_step == 0.0
    with pytest.raises(jm.errors.InvalidProblem, match="limit"):
        jm.SoftRational(temperature=0)


@pytest.mark.parametrize("given", ["rational", None, 3, jm.Rational, [jm.Rational], ["soft"]])
def test_other_things_are_no_premises(given):
    with pytest.raises(jm.errors.InvalidProblem, match="expert_is"):
        jm.Apprenticeship(WORLD, BASIS, DEMOS, expert_is=given)


def test_what_cannot_go_together():
    twice = [jm.Rational(regret_per_step=0), jm.Rational(regret_per_step=1)]
    with pytest.raises(jm.errors.InvalidProblem, match="declared twice"):
        jm.Apprenticeship(WORLD, BASIS, DEMOS, expert_is=twice)
    with pytest.raises(jm.errors.InvalidProblem, match="draws its actions"):
        jm.Apprenticeship(
            WORLD, BASIS, DEMOS, expert_is=[jm.SoftRational(temperature=1), jm.Deterministic()]
        )


def test_estimated_worlds_and_missing_demonstrations_are_refused_and_budgets_are_not():
    rational = jm.Rational(regret_per_step=0)
    budget = jm.Budget(cost=np.ones(WORLD.num_pairs), at_most=100.0)
    for premise in (rational, jm.NearlyOptimal(regret=1), jm.Deterministic()):
        jm.Apprenticeship(WORLD, BASIS, DEMOS, constraints=budget, expert_is=premise)
    expectation = jm.ExpertExpectation(np.zeros(BASIS.num_costs))
    with pytest.raises(jm.errors.InvalidProblem, match="holds no demonstrations"):
        jm.Apprenticeship(WORLD, BASIS, expectation, expert_is=rational)
    jm.Apprenticeship(WORLD, BASIS, expectation, expert_is=jm.NearlyOptimal(regret=0))
    errors = np.full(WORLD.num_pairs, 0.1)
    estimated = jm.World(WORLD.transition, WORLD.initial, WORLD.discount, transition_error=errors)
    with pytest.raises(jm.errors.InvalidProblem, match="estimates"):
        jm.Apprenticeship(estimated, BASIS, DEMOS, expert_is=rational)


def test_more_steps_than_could_be_recorded_are_refused():
    for most in (30, 31):
        soft = jm.SoftRational(temperature=0.1, most_steps=most)
        assert jm.Apprenticeship(WORLD, BASIS, DEMOS, expert_is=soft).expert_is == (soft,)
    short = jm.SoftRational(temperature=0.1, most_steps=29)
    with pytest.raises(jm.errors.InvalidProblem, match="30 steps are recorded"):
        jm.Apprenticeship(WORLD, BASIS, DEMOS, expert_is=short)


def test_a_world_without_arrays_is_refused():
    costs = jm.Apprenticeship(WORLD, BASIS, DEMOS).cost_functions
    with pytest.raises(jm.errors.InvalidProblem, match="needs the level EXPLICIT"):
        jm.Apprenticeship(WORLD, costs, DEMOS, expert_is=jm.Deterministic())
