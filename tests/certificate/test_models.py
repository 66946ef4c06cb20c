"""Models of other packages are certified as the policy that acts, at every level of world."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import journeyman as jm

WORLD, BASIS, EXPERT = jm.gallery.grid(4)
DEMOS = jm.record(WORLD, EXPERT, trajectories=40, horizon=40, seed=0)
PROBLEM = jm.Apprenticeship(WORLD, BASIS, DEMOS)
STATES = np.arange(WORLD.num_states)
PLACES = np.column_stack([STATES % 4, STATES // 4]).astype(float)
LAWS = np.random.default_rng(0).dirichlet(np.ones(4), size=STATES.size)
ROLLOUTS = jm.Rollouts(trajectories=50, horizon=30)


def fitted(observations):
    return LogisticRegression().fit(observations[DEMOS.step_states], DEMOS.actions)


def whole_law(model, observations):
    laws = np.zeros((STATES.size, 4))
    laws[:, model.classes_] = model.predict_proba(observations)
    return jm.Policy(laws)


def test_a_classifier_of_state_numbers_is_certified_with_its_probabilities():
    model = fitted(STATES[:, np.newaxis])
    found = jm.certify(PROBLEM, model)
    whole = jm.certify(PROBLEM, whole_law(model, STATES[:, np.newaxis]))
    assert found.bound == pytest.approx(whole.bound, rel=1e-12)  # asked in other batches


@pytest.mark.parametrize("observations", [PLACES, lambda states: PLACES[states]])
def test_a_classifier_may_see_something_else_than_numbers(observations):
    model = fitted(PLACES)
    seeing = jm.policy.ObservationPolicy(model, observations=observations)
    certificate = jm.certify(PROBLEM, seeing)
    assert certificate.policy.per_pair == pytest.approx(whole_law(model, PLACES).per_pair)
    with pytest.raises(jm.errors.InvalidPolicy, match="observations=table"):
        jm.certify(PROBLEM, model)


def test_classes_may_be_the_names_of_actions_in_any_order_and_some_may_be_missing():
    seen = np.flatnonzero(DEMOS.actions != 1)
    states, numbers = DEMOS.step_states[seen, np.newaxis], DEMOS.actions[seen]
    by_number = LogisticRegression().fit(states, numbers)
    by_name = LogisticRegression().fit(states, np.array(WORLD.action_names)[numbers])
    assert by_name.classes_.tolist() == ["down", "left", "up"]  # 2, 3, 0
    tables = [jm.certify(PROBLEM, model).policy.per_pair for model in (by_number, by_name)]
    assert tables[1] == pytest.approx(tables[0], abs=1e-3)
    records = jm.Apprenticeship(jm.world.Records(0.9, (0, 1)), None, DEMOS)
    named = jm.policy.ObservationPolicy(by_name, action_names=WORLD.action_names)
    assert jm.certify(records, named).bound == pytest.approx(
        jm.certify(records, by_number).bound, abs=1e-2
    )
    with pytest.raises(jm.errors.InvalidPolicy, match=r"world has no names.*action_names"):
        jm.certify(records, by_name)
    by_name.classes_ = np.array(["down", "left", "upp"])
    with pytest.raises(jm.errors.InvalidPolicy, match="'upp', and those of the world are 'up'"):
        jm.certify(PROBLEM, by_name)


def test_an_action_that_a_simulator_lacks_is_refused():
    costs = jm.costs.StepCosts(lambda *_: np.ones((len(_[0]), 1)), ["time"], lowest=0, highest=1)
    cart = jm.GymnasiumSimulator("CartPole-v1", costs, discount=0.9)
    expert = jm.demonstrations.EpisodeTotals(np.ones((5, 1)), unrecorded=0)
    problem = jm.Apprenticeship(cart, None, expert, jm.Simplex())
    with pytest.raises(jm.errors.InvalidPolicy, match=r"takes action 2, and .* has 0\.\.1"):
        jm.certify(problem, lambda seen: np.full(len(seen), 2), evaluation=ROLLOUTS)


def test_a_row_is_needed_for_every_state():
    seeing = jm.policy.ObservationPolicy(fitted(PLACES), observations=PLACES[:-1])
    with pytest.raises(jm.errors.InvalidPolicy, match="15 rows, and state 15"):
        jm.certify(PROBLEM, seeing)


def test_a_classifier_without_probabilities_is_the_deterministic_policy_it_is():
    model = LinearSVC().fit(PLACES[DEMOS.step_states], DEMOS.actions)
    seeing = jm.policy.ObservationPolicy(model, observations=PLACES)
    greedy = jm.Policy(np.eye(4)[model.predict(PLACES)])
    assert np.array_equal(jm.certify(PROBLEM, seeing).policy.per_pair, greedy.per_pair)


@pytest.mark.parametrize(
    "model",
    [
        lambda states: LAWS[states],
        lambda states: LAWS[states].astype(np.float32),
        jm.FunctionPolicy(lambda states: LAWS[states].astype(np.float32), 4),
        jm.Policy(LAWS.astype(np.float32)),
    ],
)
def test_probabilities_in_single_precision_are_normalised(model):
    found = jm.certify(PROBLEM, model).policy
    assert found.probabilities(STATES) == pytest.approx(LAWS, abs=1e-6)
    assert found.probabilities(STATES).sum(axis=1) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda states: LAWS[states] * 1.001, "sum to 1 within 1e-5"),
        (lambda states: -LAWS[states], "at least 0"),
        (lambda states: np.full(len(states), 9), "takes action 9 in state 0"),
        (lambda states: np.random.default_rng().integers(4, size=len(states)), "asked again"),
        (lambda states, rng: states % 4, "cannot be called with observations alone"),
        (lambda states: states / 0.7, "whole numbers"),
        (lambda states: states % 4 - 1, "such as -1"),
        (lambda states: {}[len(states)], "KeyError"),
        (LogisticRegression(), "not fitted yet"),
        (LogisticRegression, "is a class"),
    ],
)
def test_what_is_no_policy_of_the_world_is_refused(model, words):
    with pytest.raises(jm.errors.InvalidPolicy, match=words):
        jm.certify(PROBLEM, model)


def test_where_an_episode_has_ended_nobody_is_asked():
    world = jm.World([[0, 1.0], [0, 1.0], [0, 1.0], [0, 1.0]], [1.0, 0.0], 0.9, sink=1)
    problem = jm.Apprenticeship(
        world, jm.CostBasis([[1.0], [0.0]]), jm.ExpertExpectation([1.0]), jm.Simplex()
    )
    asked = []

    def rule(states):
        asked.extend(states.tolist())
        return np.zeros(len(states), dtype=int)

    assert jm.certify(problem, rule).policy.probabilities([0, 1]).tolist() == [[1, 0], [0.5, 0.5]]
    assert set(asked) == {0}


def test_with_a_horizon_a_model_acts_alike_at_every_step():
    world = WORLD.with_horizon(3)
    problem = jm.Apprenticeship(world, BASIS, jm.ExpertExpectation(np.ones(BASIS.num_costs)))
    found = jm.certify(problem, lambda states: LAWS[states]).policy
    assert found.at_step(2).per_pair == pytest.approx(LAWS.ravel())


def stepped_problem():
    """The same grid, with costs by a function: it is walked in."""
    matrix = BASIS.on(WORLD).toarray()

    def costs(states, actions):
        return matrix[states * 4 + actions]

    functions = jm.CostFunctions(costs, BASIS.names, lowest=0, highest=1)
    expert = jm.ExpertExpectation(jm.occupancy(WORLD, EXPERT).expectations(BASIS))
    return jm.Apprenticeship(WORLD, functions, expert)


def test_rollouts_are_of_the_same_policy():
    problem, model = stepped_problem(), fitted(STATES[:, np.newaxis])
    one = jm.certify(problem, model, evaluation=ROLLOUTS)
    again = jm.certify(problem, model, evaluation=ROLLOUTS)
    exact = jm.occupancy(WORLD, whole_law(model, STATES[:, np.newaxis])).expectations(BASIS)
    assert one.bound == again.bound
    many = jm.Rollouts(trajectories=3000, horizon=80)
    drawn = jm.certify(problem, model, evaluation=many).expectations
    assert drawn == pytest.approx(exact, abs=0.5)


def test_rules_of_observations_are_rolled_out_with_and_without_a_generator():
    problem = stepped_problem()
    plain, drawing = lambda states: states % 4, lambda states, rng: states % 4
    table = jm.occupancy(WORLD, jm.Policy(np.eye(4)[STATES % 4])).expectations(BASIS)
    many = jm.Rollouts(trajectories=3000, horizon=80)
    for rule in (plain, drawing):
        found = jm.certify(problem, rule, evaluation=many).expectations
        assert found == pytest.approx(table, abs=0.5)


def test_records_alone_are_compared_with_the_probabilities():
    model = fitted(STATES[:, np.newaxis])
    problem = jm.Apprenticeship(jm.world.Records(0.9, (0, 1)), None, DEMOS)
    found = jm.certify(problem, model).agreement
    laws = whole_law(model, STATES[:, np.newaxis]).probabilities(DEMOS.step_states)
    expected = laws[np.arange(DEMOS.num_steps), DEMOS.actions]
    assert found.probabilities[0] == pytest.approx(expected)


def test_a_model_warns_once_and_not_once_a_step():
    times = []

    def rule(states):
        times.append(None)
        warnings.warn(f"call {len(times)}", stacklevel=1)
        return states % 4

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        jm.certify(stepped_problem(), rule, evaluation=ROLLOUTS)
    assert len(times) > 30
    assert [str(one.message) for one in shown] == ["call 1"]


def test_names_of_features_are_missed_once():
    """As scikit-learn warns, whenever a model that was fitted with names is asked without."""
    model = fitted(STATES[:, np.newaxis])
    model.feature_names_in_ = np.array(["place"], dtype=object)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        jm.certify(stepped_problem(), model, evaluation=ROLLOUTS)
    assert len([one for one in shown if "feature names" in str(one.message)]) == 1


def test_a_warning_that_is_an_error_stays_one():
    def rule(states):
        warnings.warn("so", stacklevel=1)
        return states % 4

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(jm.errors.InvalidPolicy, match="UserWarning: so"):
            jm.certify(PROBLEM, rule)
