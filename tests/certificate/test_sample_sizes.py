"""Radii, their inverses, and that they hold where a printed sample size does not."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.certificate.concentration import Rate, radii, recorded_length, truncation
from journeyman.certificate.requirements import attainable, demonstrations_needed, optimisation_rate
from journeyman.costs.cost_class import ScaledClass
from journeyman.features.base import Features
from journeyman.problem.reduced import Reduced
from journeyman.problem.surrogate import Surrogate
from journeyman.testing.strategies import problems

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
DATA, CONCENTRATION = GOLDEN["data"], GOLDEN["concentration"]
CLASSES = {"l1": jm.InfinityBall(), "l2": jm.EuclideanBall(), "simplex": jm.Simplex()}
VARIANTS = [("l1", "union"), ("l1", "signs"), ("l2", "McDiarmid"), ("simplex", "two-sided")]
KEYS = ["l1_union", "l1_signs", "l2", "simplex"]

probabilities = st.floats(1e-9, 0.4)


def close(value):
    return pytest.approx(value, rel=1e-10)


def golden_problem(name):
    world = jm.World(DATA["P"], DATA["nu0"], DATA["gamma"])
    expert = jm.ExpertExpectation(DATA["e_hat"])
    return jm.Apprenticeship(world, jm.CostBasis(DATA["Psi"]), expert, CLASSES[name])


def two_states(discount, costs, cost_class=None, expert=None):
    """Both states absorb, the first is drawn by a fair coin: a trajectory is one coin flip."""
    world = jm.World(np.eye(2), [0.5, 0.5], discount)
    basis = jm.CostBasis(costs)
    expert = jm.ExpertExpectation(np.zeros(basis.num_costs)) if expert is None else expert
    return jm.Apprenticeship(world, basis, expert, cost_class)


def by_name(rates, name):
    return next(rate for rate in rates if rate.name == name)


@pytest.mark.parametrize(("variant", "key"), list(zip(VARIANTS, KEYS, strict=True)))
def test_golden_sample_sizes(variant, key):
    rate = by_name(radii(golden_problem(variant[0]), DATA["delta"] / 2), variant[1])
    assert rate.smallest(DATA["eps"] / 4) == GOLDEN["m"][f"correct_{key}"]


@pytest.mark.parametrize(
    ("variant", "key"),
    list(zip([*VARIANTS[:3], ("simplex", "one-sided")], [*KEYS[:3], "simplex_one_sided"],
             strict=True)),
)  # fmt: skip
def test_golden_radii(variant, key):
    rates = radii(golden_problem(variant[0]), CONCENTRATION["delta"], two_sided=False)
    assert by_name(rates, variant[1]).at(CONCENTRATION["m"]) == close(CONCENTRATION[f"stat_{key}"])


def test_the_mcdiarmid_radius_of_the_infinity_ball_by_hand():
    rate = by_name(radii(golden_problem("l1"), 0.05), "McDiarmid")
    by_hand = math.sqrt(2) * 1.25 * 5 + 2 * 1.75 * 5 * math.sqrt(math.log(20) / 2)
    assert rate.at(100) == close(by_hand / 10)


def test_golden_truncation():
    problem = golden_problem("l1")
    assert recorded_length(problem, 1e-3) == GOLDEN["m"]["H_for_bias_1e_3_l1"]
    assert truncation(problem, CONCENTRATION["trunc_H"]) == close(CONCENTRATION["trunc_bias_l1"])


def test_golden_optimisation_error():
    surrogate = Surrogate(Reduced(golden_problem("l1"), Features(DATA["Phi"])))
    rate = optimisation_rate(surrogate, DATA["rho"], CONCENTRATION["delta"])
    golden = CONCENTRATION["azuma_bound_exact_penalty_optq"]
    assert rate.at(CONCENTRATION["azuma_T"]) == close(golden)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_the_inverse_of_a_rate_is_the_least_count(scale, target):
    rate = Rate("any", scale, "")
    count = rate.smallest(target)
    assert rate.at(count) <= target
    assert count == 1 or rate.at(count - 1) > target


def test_a_target_out_of_reach_is_an_error():
    with pytest.raises(jm.errors.InvalidProblem, match="no finite number"):
        Rate("any", 1.0, "").smallest(1e-200)


@given(problems(max_budgets=0), probabilities)
def test_radii_shrink_with_demonstrations_and_with_tolerance(problem, delta):
    for strict, loose in zip(radii(problem, delta), radii(problem, 2 * delta), strict=True):
        assert loose.at(50) < strict.at(50) or strict.scale == 0
        assert strict.at(51) < strict.at(50) or strict.scale == 0


@given(problems(max_budgets=0), st.floats(1e-6, 1.0))
def test_recorded_length_is_the_least(problem, share):
    target = share * problem.gap_scale
    length = recorded_length(problem, target)
    assert truncation(problem, length) <= target
    assert length == 1 or truncation(problem, length - 1) > target


@given(problems(max_budgets=0), probabilities)
def test_one_side_is_cheaper_than_two(problem, delta):
    one, two = radii(problem, delta, two_sided=False), radii(problem, delta)
    assert all(left.scale <= right.scale for left, right in zip(one, two, strict=True))


@given(problems(max_budgets=0), probabilities)
def test_a_scale_of_the_class_is_a_scale_of_the_costs(problem, delta):
    assume(isinstance(problem.cost_class, ScaledClass))
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    scaled = jm.CostBasis(problem.basis.matrix * scale)
    expert = jm.ExpertExpectation(problem.target * scale)
    same = jm.Apprenticeship(problem.world, scaled, expert, type(problem.cost_class)())
    assert [rate.scale for rate in radii(problem, delta)] == close(
        [rate.scale for rate in radii(same, delta)]
    )


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()])
def test_a_constant_added_to_a_cost_changes_no_radius(cost_class):
    low = radii(two_states(0.9, [0.0, 1.0], cost_class), 0.05)
    middle = radii(two_states(0.9, [-0.5, 0.5], cost_class), 0.05)
    assert [rate.scale for rate in low] == close([rate.scale for rate in middle])


def test_sparse_costs_give_the_same_radii():
    costs = np.array([[1.0, 0.0], [0.0, 0.5]])
    dense, light = (two_states(0.9, form) for form in (costs, sparse.csr_array(costs)))
    assert radii(dense, 0.05) == radii(light, 0.05)


def test_a_known_cost_needs_no_demonstrations():
    forward = jm.Forward(jm.World(np.eye(2), [0.5, 0.5], 0.9), [1.0, -1.0])
    assert radii(forward, 0.05) == ()
    assert demonstrations_needed(forward, 0.1, 0.05) == 0


def coin_failure(m, discount, accuracy):
    """P(|estimate - truth| > accuracy) for costs +-1 of `two_states`, from the binomial law."""
    heads = np.arange(m + 1)
    log_choose = np.cumsum(np.log(np.maximum(m - heads[:-1], 1)) - np.log(heads[1:]))
    law = np.exp(np.concatenate([[0.0], log_choose]) - m * math.log(2))
    error = np.abs(2 * heads / m - 1) / (1 - discount)
    return float(law[error > accuracy].sum())


@pytest.mark.parametrize("delta", [0.3, 0.05, 0.001])
@pytest.mark.parametrize("m", [1, 7, 40, 1000])
@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()])
def test_every_radius_covers_a_coin(cost_class, m, delta):
    problem = two_states(0.9, [1.0, -1.0], cost_class)
    for rate in radii(problem, delta):
        assert coin_failure(m, 0.9, rate.at(m)) <= delta


def recorded(horizon, trajectories=20):
    world = jm.World([[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0], 0.9)
    demos = jm.record(
        world, jm.Policy([[1.0], [1.0]]), trajectories=trajectories, horizon=horizon, seed=0
    )
    return jm.Apprenticeship(world, jm.CostBasis([1.0, -1.0]), demos)


def test_demonstrations_needed_is_the_least_number():
    problem, accuracy = recorded(horizon=60), 0.5
    needed = demonstrations_needed(problem, accuracy, 0.05)
    best = min(radii(problem, 0.05, two_sided=False), key=lambda rate: rate.scale)
    lost = truncation(problem)
    assert lost == close(10 * 0.9**60)
    assert best.at(needed) + lost <= accuracy < best.at(needed - 1) + lost


def test_short_records_ask_for_longer_ones():
    problem, accuracy = recorded(horizon=10), 0.5
    with pytest.raises(jm.errors.InvalidDemonstrations, match="Record 36 steps or more") as refusal:
        demonstrations_needed(problem, accuracy, 0.05)
    assert "leave 3.49" in str(refusal.value)
    assert truncation(problem, 36) <= accuracy / 2 < truncation(problem, 35)


def test_the_demonstrations_at_hand_count():
    problem = recorded(horizon=30)
    reached = attainable(problem, Features(np.eye(2)), steps=10, failure_probability=0.1)
    expected = min(rate.at(20) for rate in radii(problem, 0.05))
    assert reached.statistical == close(2 * expected)
    assert reached.truncation == close(2 * truncation(problem, 30))


@pytest.mark.parametrize(
    ("accuracy", "delta"), [(0.0, 0.05), (-1, 0.05), (math.inf, 0.05), (0.1, 0.0), (0.1, 1.0)]
)
def test_senseless_demands_are_refused(accuracy, delta):
    with pytest.raises(jm.errors.InvalidProblem):
        demonstrations_needed(golden_problem("l1"), accuracy, delta)
