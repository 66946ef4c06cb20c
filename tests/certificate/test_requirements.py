"""Requirements and what is attainable: golden numbers, inverses, and the guarantee itself."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from frequencies import frequencies
from journeyman.certificate.model_error import greatest_model_term, model_term, transition_radii
from journeyman.certificate.requirements import (
    attainable,
    bias,
    default_radius,
    requirements,
    shortfall,
)
from journeyman.features.base import Features
from journeyman.problem.reduced import ExactPenalty, Reduced, SinglePenalty, UniformRows
from journeyman.problem.surrogate import Surrogate
from journeyman.testing.random_worlds import Shape, random_policy, random_problem
from journeyman.testing.strategies import problems, seeds

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
DATA = GOLDEN["data"]
PHI = Features(DATA["Phi"])
DEMAND = {"accuracy": DATA["eps"], "failure_probability": DATA["delta"]}


def close(value):
    return pytest.approx(value, rel=1e-10)


@pytest.fixture
def problem():
    world = jm.World(DATA["P"], DATA["nu0"], DATA["gamma"])
    return jm.Apprenticeship(
        world, jm.CostBasis(DATA["Psi"]), jm.ExpertExpectation(DATA["e_hat"]), jm.InfinityBall()
    )


def features_of(problem, seed, num_features=3):
    rng = np.random.default_rng(seed)
    return Features(rng.exponential(size=(problem.world.num_pairs, num_features)) + 0.01)


def test_golden_figures(problem):
    needs = requirements(problem, PHI, **DEMAND)
    complete = {rate.name: count for rate, count in needs.complete_records}
    assert complete["union"] == GOLDEN["m"]["correct_l1_union"]
    assert complete["signs"] == GOLDEN["m"]["correct_l1_signs"]
    assert needs.steps == GOLDEN["T"]["corrected_exact_penalty"]
    assert needs.learning_rate == close(GOLDEN["T"]["corrected_eta"])
    assert needs.pair_ratio == close(GOLDEN["C"]["C1_opt"])
    assert needs.flow_ratio == close(GOLDEN["C"]["C2_opt"])
    assert needs.subgradient_bound == close(GOLDEN["K"]["K_tight_exact_penalty_optq"])
    assert needs.noise_bound == close(GOLDEN["K"]["sigma_exact_penalty_optq"])
    assert (needs.penalties.pairs, needs.penalties.flow) == close((17.5, 8.75))
    assert needs.radius == close(1.0)
    assert (needs.excess, needs.vacuous) == (DATA["eps"], False)


def test_other_sampling_laws_have_other_ratios(problem):
    needs = requirements(problem, PHI, **DEMAND, sampling=UniformRows())
    assert needs.pair_ratio == close(GOLDEN["C"]["C1_uniform"])
    assert needs.steps > GOLDEN["T"]["corrected_exact_penalty"]


@given(
    problems(max_budgets=0),
    seeds,
    st.floats(0.01, 3.0),
    st.floats(1e-6, 0.5),
    st.floats(0.001, 0.9),
)
@settings(max_examples=50)
def test_what_is_required_attains_the_accuracy(problem, seed, accuracy, delta, share):
    features = features_of(problem, seed)
    needs = requirements(
        problem, features, accuracy=accuracy, failure_probability=delta, truncation_share=share
    )
    assert needs.statistical + needs.truncation <= accuracy / 2 * (1 + 1e-12)
    assert needs.optimisation <= accuracy / 2

    def reached(fewer_demonstrations=0, fewer_steps=0):
        return attainable(
            problem, features, failure_probability=delta, steps=needs.steps - fewer_steps,
            num_trajectories=needs.num_trajectories - fewer_demonstrations,
            recorded_length=needs.recorded_length,
        )  # fmt: skip

    assert reached().accuracy <= accuracy * (1 + 1e-12)
    assert reached(fewer_steps=1).optimisation > accuracy / 2
    assert needs.num_trajectories == 1 or (
        reached(fewer_demonstrations=1).statistical > accuracy / 2 * (1 - share)
    )


@given(problems(max_budgets=0), seeds, st.floats(0.01, 1.0), st.floats(1e-6, 0.25))
@settings(max_examples=50)
def test_demanding_more_costs_more(problem, seed, accuracy, delta):
    features = features_of(problem, seed)

    def cost(accuracy, delta):
        needs = requirements(problem, features, accuracy=accuracy, failure_probability=delta)
        return needs.num_trajectories, needs.steps, needs.recorded_length

    base = cost(accuracy, delta)
    for m, steps, length in (cost(accuracy / 2, delta), cost(accuracy, delta / 4)):
        assert (m >= base[0], steps >= base[1], length >= base[2]) == (True, True, True)


def test_the_steps_grow_as_the_inverse_square_of_the_accuracy(problem):
    coarse, fine = (
        requirements(problem, PHI, accuracy=eps, failure_probability=0.05).steps
        for eps in (0.1, 0.001)
    )
    assert fine / coarse == pytest.approx(1e4, rel=1e-6)


@pytest.mark.parametrize(
    ("penalty", "short"), [(35.0, 0.0), (17.5, 0.0), (10.0, 0.75), (2.0, 7.75)]
)
def test_penalties_that_fall_short_leave_a_bias(problem, penalty, short):
    surrogate = Surrogate(Reduced(problem, PHI), SinglePenalty(penalty))
    needs = requirements(problem, PHI, **DEMAND, penalty=SinglePenalty(penalty))
    assert shortfall(surrogate) == close(short)
    assert needs.bias == close(2 * short * GOLDEN["K"]["Kpsi_tight_l1"])
    assert needs.vacuous == (needs.bias + 0.1 >= 17.5)


@given(problems(max_budgets=1), seeds, st.booleans(), st.floats(0.05, 1.5))
@settings(max_examples=60)
def test_the_guarantee_for_any_pair_of_points(problem, seed, exact, share):
    """With opt = L(average) - L(theta) in place of its bound, the inequality is deterministic.

    The features are signed and have rows of zeros: no positivity is used.
    """
    draw = np.random.default_rng(seed).normal(size=(problem.world.num_pairs, 3))
    features = Features(np.where(np.arange(draw.size).reshape(draw.shape) % 4 == 1, 0.0, draw))
    rule = ExactPenalty() if exact else SinglePenalty(share * problem.gap_scale)
    surrogate = Surrogate(Reduced(problem, features), rule)
    k, world, rng = shortfall(surrogate), problem.world, np.random.default_rng(seed)
    radius = default_radius(problem, features)
    points = rng.normal(size=(2, features.num_features))
    points *= radius * rng.random((2, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    theta, average = sorted(points, key=surrogate.value)
    budgets = surrogate.penalties.budgets

    def loss_of_policy(point):
        visits = jm.occupancy(world, jm.policy.extract(world, features.measure(point)))
        broken = np.maximum(problem.overspending(visits.measure), 0.0).sum()
        return problem.gap(visits) + budgets * broken

    exact_flow = problem.gap_scale / 2 + (
        budgets * sum(budget.size for budget in problem.constraints) * world.effective_horizon
    )
    slack = (
        (2 * exact_flow + (1 + k) * surrogate.penalties.pairs) * surrogate.negativity(theta)
        + (exact_flow + (1 + k) * surrogate.penalties.flow) * surrogate.flow_violation(theta)
        + (1 + k) * (surrogate.value(average) - surrogate.value(theta))
        + bias(surrogate, radius)
    )
    upper = loss_of_policy(theta) + slack
    assert loss_of_policy(average) <= upper + 1e-9 * (abs(upper) + problem.gap_scale)


def test_the_table_shows_both_and_says_which_is_printed(problem):
    needs = requirements(problem, PHI, **DEMAND)
    table = needs.table()
    for shown in ("as printed", "324,812", "81,203", "74,315,380", "1,624,056", "465,266,224"):
        assert shown in table
    assert "as printed: vacuous, excess 44.1" in table
    printed = {one.name: one for one in needs.quantities}
    assert printed["steps"].as_printed == GOLDEN["T"]["paper_fixed_point"]
    assert "Delta(T)^2" in printed["steps"].printed_formula
    assert printed["recorded_length"].as_printed is None


def test_a_known_cost_gives_the_optimisation_everything():
    forward = jm.Forward(jm.World(DATA["P"], DATA["nu0"], DATA["gamma"]), DATA["d_safe"])
    needs = requirements(forward, PHI, accuracy=0.1, failure_probability=0.05)
    assert (needs.num_trajectories, needs.recorded_length, needs.complete_records) == (0, 0, ())
    assert 0.1 - 1e-6 < needs.optimisation <= 0.1
    assert needs.printed is None
    assert "the paper has no constants" in needs.table()
    reached = attainable(forward, PHI, steps=needs.steps, failure_probability=0.05)
    assert reached.accuracy == needs.optimisation


def test_declared_expectations_leave_the_optimisation_alone(problem):
    reached = attainable(problem, PHI, steps=10_000, failure_probability=0.05)
    golden = GOLDEN["concentration"]["azuma_bound_exact_penalty_optq"]
    assert (reached.statistical, reached.truncation, reached.bias) == (0.0, 0.0, 0.0)
    assert reached.accuracy == close(golden)


def test_too_little_effort_is_called_vacuous(problem):
    few = attainable(problem, PHI, steps=100, failure_probability=0.05)
    many = attainable(problem, PHI, steps=10**8, failure_probability=0.05)
    assert (few.vacuous, many.vacuous) == (True, False)
    assert "vacuous" in few.table()
    assert "vacuous" not in many.table()
    assert requirements(problem, PHI, accuracy=18.0, failure_probability=0.05).vacuous


def test_the_default_radius_holds_every_mixture(problem):
    uneven = Features(np.array(DATA["Phi"]) * [1.0, 0.5, 0.0])
    assert default_radius(problem, uneven) == close(2.0)
    assert requirements(problem, uneven, **DEMAND).radius == close(2.0)
    assert requirements(problem, uneven, **DEMAND, radius=0.7).radius == 0.7


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"accuracy": 0.0}, jm.errors.InvalidProblem),
        ({"failure_probability": 1.0}, jm.errors.InvalidProblem),
        ({"truncation_share": 0.0}, jm.errors.InvalidProblem),
        ({"radius": -1.0}, jm.errors.InvalidSolver),
        ({"radius": math.nan}, jm.errors.InvalidSolver),
        ({"features": DATA["Phi"]}, jm.errors.InvalidProblem),
        ({"features": Features([[1.0]])}, jm.errors.InvalidCosts),
        ({"features": Features(np.zeros((6, 1)))}, jm.errors.InvalidCosts),
    ],
)
def test_senseless_demands_are_refused(problem, change, refusal):
    with pytest.raises(refusal):
        requirements(**{"problem": problem, "features": PHI, **DEMAND, **change})


@pytest.mark.parametrize(
    "change", [{"steps": 0}, {"steps": 1.5}, {"num_trajectories": 0}, {"recorded_length": -3}]
)
def test_senseless_efforts_are_refused(problem, change):
    with pytest.raises(jm.errors.InvalidProblem, match="Give a whole number from 1"):
        attainable(problem, PHI, **{"steps": 10, "failure_probability": 0.05, **change})


def test_costs_of_zero_are_refused(problem):
    nothing = jm.Apprenticeship(
        problem.world, jm.CostBasis(np.zeros(6)), jm.ExpertExpectation([0.0])
    )
    with pytest.raises(jm.errors.InvalidCosts, match="every cost is zero"):
        requirements(nothing, PHI, **DEMAND)


# Estimated worlds


def counted_twin(problem, count):
    """The problem in a world whose laws are frequencies of `count` draws each."""
    world = problem.world
    model = jm.World(
        frequencies(world.transition, count), world.initial, world.discount,
        choice_offsets=world.pairs.offsets, transition_counts=count,
    )  # fmt: skip
    return jm.Apprenticeship(model, problem.basis, problem.expectation, problem.cost_class)


def test_steps_and_demonstrations_do_not_make_a_model_exact():
    """Three transitions of every pair: whatever is done with them guarantees nothing."""
    exact = random_problem(0, jm.InfinityBall(), shape=Shape.DENSE)
    features = Features(np.ones((exact.world.num_pairs, 1)))
    few = counted_twin(exact, 3)
    asked = {"steps": 10**14, "failure_probability": 0.05, "num_trajectories": 10**12,
             "recorded_length": 10**4}  # fmt: skip
    reached = attainable(few, features, **asked)
    assert reached.vacuous
    assert reached.model >= reached.trivial_bound
    assert "model" in reached.table()
    known = attainable(exact, features, **asked)
    assert known.model == 0
    assert not known.vacuous
    assert "model" not in known.table()
    needs = requirements(few, features, accuracy=0.1, failure_probability=0.05)
    assert needs.vacuous
    assert needs.excess == 0.1 + needs.bias + needs.model
    assert needs.failure_probability == 0.05
    assert "\nmodel  " in needs.table()
    assert "\nmodel  " not in requirements(exact, features, **DEMAND).table()
    with pytest.raises(
        jm.errors.InvalidProblem, match="estimates, which alone may cost"
    ) as refusal:
        jm.certificate.demonstrations_needed(few, 0.1 * few.trivial_bound, 0.05)
    assert "record more transitions" in refusal.value.remedy


def test_many_transitions_leave_room_and_the_share_of_the_laws_is_paid_for():
    exact = random_problem(0, jm.InfinityBall(), shape=Shape.DENSE)
    accuracy = 0.2 * exact.trivial_bound
    many = counted_twin(exact, 10**9)
    needed = jm.certificate.demonstrations_needed(many, accuracy, 0.05)
    assert needed > jm.certificate.demonstrations_needed(exact, accuracy, 0.05)
    declared = jm.World(
        exact.world.transition, exact.world.initial, exact.world.discount,
        choice_offsets=exact.world.pairs.offsets, transition_error=0.0,
    )  # fmt: skip
    sure = jm.Apprenticeship(declared, exact.basis, exact.expectation, exact.cost_class)
    fewest = jm.certificate.demonstrations_needed(sure, accuracy, 0.05)
    assert fewest == jm.certificate.demonstrations_needed(exact, accuracy, 0.05)


@given(problems(), seeds, st.floats(0, 0.3), st.floats(0, 0.2))
def test_no_policy_has_a_larger_model_term(problem, seed, transition_error, initial_error):
    rng = np.random.default_rng(seed)
    errors = transition_error * rng.random(problem.world.num_pairs)
    world = jm.World(
        problem.world.transition, problem.world.initial, problem.world.discount,
        choice_offsets=problem.world.pairs.offsets, transition_error=errors,
        initial_error=initial_error,
    )  # fmt: skip
    twin = jm.Apprenticeship(world, problem.basis, problem.expectation, problem.cost_class)
    error = transition_radii(world, 0.05)
    most = greatest_model_term(twin, error)
    for _ in range(4):
        visits = jm.occupancy(world, random_policy(world, rng))
        assert model_term(twin, visits, error) <= most * (1 + 1e-9) + 1e-12
    worst = jm.plan(world, -errors).policy
    reached = model_term(twin, jm.occupancy(world, worst), error)
    assert most <= reached * (1 + 1e-5) + 1e-5 * problem.gap_scale
