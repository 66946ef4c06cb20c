"""A reference world whose figures were computed in exact rational arithmetic."""

import json
from pathlib import Path

import numpy as np
import pytest

import journeyman as jm

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
DATA = GOLDEN["data"]
CLASSES = {"l1": jm.InfinityBall(), "l2": jm.EuclideanBall(), "simplex": jm.Simplex()}
POINTS = ["theta_A", "theta_B", "theta_C"]


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.fixture
def world():
    return jm.World(DATA["P"], DATA["nu0"], DATA["gamma"])


def problem_of(world, cost_class, target=None):
    expectation = jm.ExpertExpectation(DATA["e_hat"] if target is None else target)
    return jm.Apprenticeship(world, jm.CostBasis(DATA["Psi"]), expectation, cost_class)


def test_the_expert(world):
    visits = jm.occupancy(world, jm.Policy(DATA["pi_expert"]))
    assert visits.measure == close(GOLDEN["expert"]["mu_E"])
    assert visits.expectations(jm.CostBasis(DATA["Psi"])) == close(GOLDEN["expert"]["e"])
    gap = problem_of(world, jm.InfinityBall()).gap(visits)
    assert gap == close(GOLDEN["expert"]["gap_hat_l1"])


@pytest.mark.parametrize("name", CLASSES)
def test_the_largest_cost_of_each_class(name):
    assert CLASSES[name].pointwise_bound(np.array(DATA["Psi"])) == close(
        GOLDEN["norms"][f"N_{name}"]
    )


@pytest.mark.parametrize(
    ("name", "key"), [("l1", "tight_l1"), ("l2", "l2"), ("simplex", "simplex")]
)
def test_the_largest_image_of_each_class(name, key):
    image = np.array(GOLDEN["norms"]["PsiT_Phi"]).T
    assert CLASSES[name].image_bound(image) == close(GOLDEN["K"][f"Kpsi_{key}"])


def test_the_flow_of_the_features(world):
    assert world.flow.apply(np.array(DATA["Phi"])) == close(np.array(GOLDEN["norms"]["ET_Phi"]))


@pytest.mark.parametrize("point", POINTS)
def test_policies_occupancies_and_violations(world, point):
    golden = GOLDEN[point]
    u = np.array(DATA["Phi"]) @ golden["theta"]
    policy = jm.policy.extract(world, u)
    visits = jm.occupancy(world, policy)
    assert u == close(golden["u"])
    assert policy.probabilities([0, 1, 2]) == close(np.array(golden["policy"]))
    assert visits.measure == close(golden["mu"])
    assert visits.expectations(jm.CostBasis(DATA["Psi"])) == close(golden["feature_expectation"])
    assert np.maximum(-u, 0).sum() == close(golden["V1"])
    assert -world.flow.residual(u) == close(golden["flow_residual"])
    assert np.abs(world.flow.residual(u)).sum() == close(golden["V2"])
    assert world.flow.residual(np.maximum(u, 0)) == close(golden["r_plus_vector"])
    assert np.abs(visits.measure - u).sum() == close(golden["l1_dist_mu_u"])
    assert jm.expected_cost(world, policy, DATA["d_safe"]) == close(golden["safety"]["value"])


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", CLASSES)
def test_gaps_to_the_estimate_and_to_the_truth(world, point, name):
    visits = jm.occupancy(world, jm.Policy(GOLDEN[point]["policy"]))
    estimated = problem_of(world, CLASSES[name])
    true = problem_of(world, CLASSES[name], GOLDEN["expert"]["e"])
    assert estimated.gap(visits) == close(GOLDEN[point]["gap_hat"][name])
    assert true.gap(visits) == close(GOLDEN[point]["gap_true"][name])


def test_lower_bounds_from_given_witnesses(world):
    golden, problem = GOLDEN["dual"], problem_of(world, jm.InfinityBall())
    given = jm.problem.Witness(golden["w"], golden["V"])
    assert jm.problem.lower_bound(problem, given) == close(golden["LB"])
    sharp = jm.problem.witness_from_plan(problem, golden["w"], ())
    assert sharp.values == close(golden["Vstar_cw"])
    assert jm.problem.lower_bound(problem, sharp) == close(golden["LB_Vstar"])


def test_the_exact_program_and_its_tight_witness(world):
    golden = GOLDEN["dual_tight"]
    reachable = jm.solve(problem_of(world, jm.InfinityBall()))
    assert reachable.value == close(GOLDEN["lp"]["min_F_l1"])
    problem = problem_of(world, jm.InfinityBall(), golden["e_hat"])
    answer = jm.solve(problem)
    assert answer.value == close(golden["LP_value"])
    assert answer.lower_bound == close(golden["LP_value"])
    witness = jm.problem.Witness(golden["w"], golden["V"])
    assert jm.problem.lower_bound(problem, witness) == close(golden["LB"])
