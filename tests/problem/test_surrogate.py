"""The surrogate loss: exact values, true subgradients, unbiased estimates, and what it bounds."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.features import Features
from journeyman.problem.reduced import (
    ExactPenalty,
    FeatureMass,
    GivenRows,
    Reduced,
    RowNorms,
    SinglePenalty,
    UniformRows,
    common_slack,
)
from journeyman.problem.surrogate import (
    ReducedWitness,
    Surrogate,
    reduced_lower_bound,
)
from journeyman.testing.strategies import problems, seeds

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
DATA = GOLDEN["data"]
CLASSES = {"l1": jm.InfinityBall(), "l2": jm.EuclideanBall(), "simplex": jm.Simplex()}
POINTS = ["theta_A", "theta_B", "theta_C"]


def close(value):
    return pytest.approx(value, rel=1e-10, abs=1e-10)


def golden_surrogate(name="l1", penalty=None, sampling=None):
    world = jm.World(DATA["P"], DATA["nu0"], DATA["gamma"])
    expert = jm.ExpertExpectation(DATA["e_hat"])
    problem = jm.Apprenticeship(world, jm.CostBasis(DATA["Psi"]), expert, CLASSES[name])
    return Surrogate(Reduced(problem, Features(DATA["Phi"])), penalty, sampling)


def drawn_surrogate(problem, rng, penalty=None, sampling=None):
    """Signed features, sometimes sparse, sometimes with a base measure."""
    count = int(rng.integers(1, 5))
    columns = rng.normal(size=(problem.world.num_pairs, count)) * (rng.random(count) + 0.1)
    columns[rng.random(columns.shape) < 0.3] = 0.0
    base = rng.normal(size=problem.world.num_pairs) if rng.random() < 0.5 else None
    return Surrogate(Reduced(problem, Features(columns, base)), penalty, sampling)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("point", POINTS)
def test_golden_losses_and_subgradients(name, point):
    golden, theta = GOLDEN[point], GOLDEN[point]["theta"]
    single, exact = golden_surrogate(name, SinglePenalty(2.0)), golden_surrogate(name)
    assert single.value(theta) == close(golden["L_single_lambda"][name])
    assert single.subgradient(theta) == close(golden["subgrad_single_lambda"][name])
    assert exact.value(theta) == close(golden["certA"][name])
    assert single.negativity(theta) == close(golden["V1"])
    assert single.flow_violation(theta) == close(golden["V2"])
    assert single.matching_error(theta) == close(golden["F_theta"][name])


@pytest.mark.parametrize(
    ("rule", "key"), [(RowNorms(), "opt"), (FeatureMass(), "sum"), (UniformRows(), "uniform")]
)
def test_golden_sampling_ratios(rule, key):
    laws = golden_surrogate(sampling=rule).laws
    assert laws.pair_ratio == close(GOLDEN["C"][f"C1_{key}"])
    assert laws.flow_ratio == close(GOLDEN["C"][f"C2_{key}"])


def test_golden_constants():
    single, exact = golden_surrogate(penalty=SinglePenalty(2.0)), golden_surrogate()
    assert single.subgradient_bound == close(GOLDEN["K"]["K_tight_single_lambda_optq"])
    assert exact.subgradient_bound == close(GOLDEN["K"]["K_tight_exact_penalty_optq"])
    assert exact.noise_bound() == close(GOLDEN["K"]["sigma_exact_penalty_optq"])
    assert exact.noise_bound(4, 4) == close(GOLDEN["K"]["sigma_exact_penalty_optq"] / 2)


def test_golden_reduced_bound():
    golden = GOLDEN["dual_reduced"]
    witness = ReducedWitness(golden["w"], golden["y"], golden["z"])
    surrogate = golden_surrogate(penalty=SinglePenalty(2.0))
    assert reduced_lower_bound(surrogate, witness, golden["rho"]) == close(golden["LB"])


@given(problems(), seeds, st.sampled_from([RowNorms(), FeatureMass(), UniformRows()]))
def test_the_sampled_subgradient_is_unbiased_by_enumeration(problem, seed, sampling):
    rng = np.random.default_rng(seed)
    surrogate = drawn_surrogate(problem, rng, SinglePenalty(1.5), sampling)
    theta, laws = rng.normal(size=surrogate.reduced.num_features), surrogate.laws
    mean, longest = np.zeros(theta.size), 0.0
    for pair in np.flatnonzero(laws.pair_sampling):
        for state in np.flatnonzero(laws.state_sampling):
            estimate = surrogate.sampled_subgradient(theta, pair, state)
            mean += laws.pair_sampling[pair] * laws.state_sampling[state] * estimate
            longest = max(longest, float(np.linalg.norm(estimate)))
    full = surrogate.subgradient(theta)
    assert mean == pytest.approx(full, rel=1e-9, abs=1e-9 * (1 + np.abs(full).max()))
    assert longest <= surrogate.subgradient_bound * (1 + 1e-12)


@given(problems(), seeds)
def test_the_subgradient_inequality_holds_at_kinks_too(problem, seed):
    rng = np.random.default_rng(seed)
    surrogate = drawn_surrogate(problem, rng, SinglePenalty(2.0))
    size = surrogate.reduced.num_features
    for theta in (np.zeros(size), rng.normal(size=size), np.round(rng.normal(size=size))):
        slope, value = surrogate.subgradient(theta), surrogate.value(theta)
        for other in rng.normal(size=(5, size)):
            gained = surrogate.value(other) - value
            scale = abs(value) + abs(gained) + 1.0
            assert gained >= slope @ (other - theta) - 1e-9 * scale


@given(problems(max_budgets=0), seeds)
def test_at_exact_penalties_the_loss_bounds_the_gap_of_the_policy(problem, seed):
    rng = np.random.default_rng(seed)
    surrogate = drawn_surrogate(problem, rng)
    for theta in rng.normal(size=(4, surrogate.reduced.num_features)):
        policy = jm.policy.extract(problem.world, surrogate.reduced.features.measure(theta))
        assert problem.gap(policy) <= surrogate.value(theta) + 1e-9 * problem.gap_scale


@given(problems(max_budgets=2), seeds)
def test_with_budgets_it_bounds_gap_and_overspending(problem, seed):
    rng = np.random.default_rng(seed)
    surrogate = drawn_surrogate(problem, rng, ExactPenalty(slack=0.5))
    for theta in rng.normal(size=(4, surrogate.reduced.num_features)):
        policy = jm.policy.extract(problem.world, surrogate.reduced.features.measure(theta))
        visits = jm.occupancy(problem.world, policy)
        over = np.maximum(problem.overspending(visits.measure), 0.0).sum()
        total = problem.gap(visits) + surrogate.penalties.budgets * over
        assert total <= surrogate.value(theta) * (1 + 1e-9) + 1e-9 * problem.gap_scale


def natural_witness(surrogate, theta):
    """The dual point that is active at theta; averages over iterates converge to an optimal one."""
    reduced = surrogate.reduced
    return ReducedWitness(
        reduced.problem.cost_class.worst_case(reduced.matching @ theta - reduced.matching_target),
        np.sign(reduced.flow_rows @ theta - reduced.flow_target),
        (reduced.pair_rows @ theta < reduced.floor).astype(float),
        (reduced.budget_rows @ theta > reduced.budget_limits).astype(float),
    )


@given(problems(), seeds)
def test_no_coefficients_in_the_ball_are_below_the_bound_of_any_dual_point(problem, seed):
    rng = np.random.default_rng(seed)
    surrogate = drawn_surrogate(problem, rng, SinglePenalty(2.0))
    size, radius = surrogate.reduced.num_features, 1.5
    arbitrary = ReducedWitness(
        rng.normal(size=problem.basis.num_costs) * 2,
        rng.normal(size=problem.world.num_states) * 2,
        rng.normal(size=problem.world.num_pairs) * 2,
        rng.normal(size=len(problem.constraints)),
    )
    natural = natural_witness(surrogate, rng.normal(size=size))
    for direction in rng.normal(size=(5, size)):
        theta = direction * min(1.0, radius / np.linalg.norm(direction))
        value = surrogate.value(theta)
        for witness in (arbitrary, natural):
            assert reduced_lower_bound(surrogate, witness, radius) <= value + 1e-9 * (
                1 + abs(value)
            )


@given(problems(max_budgets=0), seeds)
def test_no_law_undercuts_the_row_norms(problem, seed):
    rng = np.random.default_rng(seed)
    best = drawn_surrogate(problem, np.random.default_rng(seed)).laws
    given_laws = GivenRows(
        rng.dirichlet(np.ones(problem.world.num_pairs)),
        rng.dirichlet(np.ones(problem.world.num_states)),
    )
    other = drawn_surrogate(problem, np.random.default_rng(seed), sampling=given_laws).laws
    assert best.pair_ratio <= other.pair_ratio * (1 + 1e-12)
    assert best.flow_ratio <= other.flow_ratio * (1 + 1e-12)


def test_a_law_that_misses_a_row_is_refused():
    with pytest.raises(jm.errors.InvalidSolver, match="never draws pair 0"):
        golden_surrogate(sampling=GivenRows([0, 0.2, 0.2, 0.2, 0.2, 0.2], [1 / 3] * 3))


def test_the_slack_is_attained_by_a_policy():
    problem = jm.testing.random_problem(4, num_budgets=2)
    slack = common_slack(problem)
    assert slack > 0
    tightened = [
        jm.Budget(b.cost, b.at_most - slack * (1 - 1e-9), b.name) for b in problem.constraints
    ]
    kept = jm.Apprenticeship(
        problem.world, problem.basis, problem.expectation, constraints=tightened
    )
    assert jm.solve(kept).status is jm.Status.OPTIMAL


def test_a_plan_alone_may_stay_within_budgets_that_averages_exceed():
    """Only the first action keeps both, with little room: averages take long to get there."""
    world = jm.World([[1.0]] * 3, [1.0], 0.01, choice_offsets=[0, 3])
    first = jm.Budget(cost=[0.45, 0.08, -0.45], at_most=0.465, name="first")
    second = jm.Budget(cost=[-0.68, 0.94, 0.03], at_most=-0.677, name="second")
    target = jm.ExpertExpectation([0.0])
    basis = jm.CostBasis([[0.0], [0.5], [1.0]])
    problem = jm.Apprenticeship(world, basis, target, constraints=[first, second])
    room = min(0.465 - 0.45 / 0.99, 0.68 / 0.99 - 0.677)
    assert common_slack(problem) == pytest.approx(room)


def test_impossible_budgets_have_no_exact_penalty():
    problem = jm.testing.random_problem(4)
    budget = jm.Budget(np.ones(problem.world.num_pairs), 0.0)
    broken = jm.Apprenticeship(problem.world, problem.basis, problem.expectation, None, [budget])
    with pytest.raises(jm.errors.InvalidSolver, match="strictly within all the budgets"):
        ExactPenalty().of(broken)
