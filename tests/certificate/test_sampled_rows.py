"""Sampled rows: unbiased and within their ranges row by row, by enumeration; then coverage."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.certificate import sampled_rows
from journeyman.certificate.concentration import empirical_bernstein_radius, hoeffding_radius
from journeyman.certificate.sampled_rows import (
    SampledRows,
    row_sums,
    support_premise,
    upper_bound,
)
from journeyman.certificate.terms import Statistics, total
from journeyman.problem.reduced import Reduced, RowNorms
from journeyman.testing import random_problem
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.strategies import problems, seeds
from seeding import drawn_from

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
DATA, CONCENTRATION = GOLDEN["data"], GOLDEN["concentration"]
DELTA = 0.1
RUNS = 300
MOST_FAILURES = 30 + 3 * math.sqrt(RUNS * DELTA * (1 - DELTA))
"""Of 300 runs at 0.1, with three standard deviations."""


@st.composite
def combinations(draw):
    """A problem, features (signed or not, with rows of zeros, affine or not) and coefficients."""
    problem = draw(problems(max_budgets=0))
    rng = np.random.default_rng(draw(seeds))
    world, num_features = problem.world, draw(st.integers(1, 4))
    matrix = rng.normal(size=(world.num_pairs, num_features))
    if draw(st.booleans()):
        matrix = np.abs(matrix)
    matrix *= rng.random((world.num_pairs, 1)) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    theta = rng.normal(size=num_features) * draw(st.sampled_from([0.0, 1e-6, 1.0, 100.0]))
    if draw(st.booleans()):
        theta = draw(st.sampled_from([1, -1])) * np.abs(theta)
    base = {
        "none": None,
        "occupancy": jm.occupancy(world, random_policy(world, rng)).measure,
        "signed": rng.normal(size=world.num_pairs) * (rng.random(world.num_pairs) < 0.5),
    }[draw(st.sampled_from(["none", "occupancy", "signed"]))]
    columns = sparse.csr_array(matrix) if draw(st.booleans()) else matrix
    return problem, jm.features.Features(columns, base), theta


def naive_sums(world, measure):
    """V1, V2 and r+ by the definitions, entry by entry."""
    transition = world.transition.toarray()

    def outflow(vector, state):
        leaving = sum(vector[s] for s in np.flatnonzero(world.pairs.states == state))
        entering = sum(vector[s] * transition[s, state] for s in range(world.num_pairs))
        return leaving - world.discount * entering

    positive = [max(entry, 0.0) for entry in measure]
    states = range(world.num_states)
    return (
        math.fsum(max(-entry, 0.0) for entry in measure),
        math.fsum(abs(outflow(measure, y) - world.initial[y]) for y in states),
        math.fsum(abs(world.initial[y] - outflow(positive, y)) for y in states),
    )


def enumerated(one):
    """The expectation of a sample, by summing over its law."""
    rows = np.flatnonzero(one.law > 0)
    return math.fsum(one.law[rows] * one.samples(rows))


def sizes(features, theta):
    base = 0.0 if features.base is None else np.abs(features.base).sum()
    return 1 + base + np.abs(features.matrix).sum() * np.abs(theta).sum()


@given(combinations())
def test_samples_are_unbiased(case):
    problem, features, theta = case
    truth = naive_sums(problem.world, features.measure(theta))
    for one, value in zip(row_sums(Reduced(problem, features), theta), truth, strict=True):
        assert one.law.sum() == pytest.approx(1)
        error = 1e-12 * sizes(features, theta)
        assert enumerated(one) == pytest.approx(value, rel=1e-9, abs=error), one.name


@given(combinations())
def test_every_sample_lies_within_its_range(case):
    problem, features, theta = case
    sums = row_sums(Reduced(problem, features), theta)
    for one in sums:
        samples = one.samples(np.flatnonzero(one.law > 0))
        assert (samples >= 0).all()
        assert (samples <= one.width).all(), one.name
        assert one.never_drawn() is None
    assert support_premise(sums).status is jm.certificate.PremiseStatus.TESTED


@given(combinations())
def test_both_kinds_bound_the_gap_of_the_policy(case):
    """With the sums themselves in the place of their upper bounds."""
    problem, features, theta = case
    measure = features.measure(theta)
    V1, V2, r_plus = naive_sums(problem.world, measure)
    N = problem.cost_class.pointwise_bound(problem.cost_matrix)
    h = problem.world.effective_horizon
    measured = problem.cost_class.gap(problem.difference(measure))
    gap = problem.gap(jm.policy.extract(problem.world, measure))
    slack = 1e-9 * (1 + abs(measured) + abs(gap) + N * h * (1 + V1 + V2))
    assert gap <= measured + N * h * (2 * V1 + V2) + slack
    assert gap <= measured + N * V1 + N * h * r_plus + slack


@given(combinations())
def test_ranges_are_those_of_the_theory(case):
    problem, features, theta = case
    reduced = Reduced(problem, features)
    laws, length = RowNorms().laws(reduced), np.linalg.norm(theta)
    base = np.zeros(features.num_pairs) if features.base is None else features.base
    flow, discount = problem.world.flow, problem.world.discount
    widths = (
        laws.pair_ratio * length + np.maximum(-base, 0).sum(),
        laws.flow_ratio * length + np.abs(flow.residual(base)).sum(),
        (1 + discount) * laws.pair_ratio * length
        + np.abs(flow.residual(np.maximum(base, 0))).sum(),
    )
    for one, width in zip(row_sums(reduced, theta), widths, strict=True):
        assert one.width <= width * (1 + 1e-8)
    if features.base is None:
        assert widths[1] == pytest.approx(laws.flow_ratio * length + 1)


def golden_case(name):
    world = jm.World(DATA["P"], DATA["nu0"], DATA["gamma"])
    expert = jm.ExpertExpectation(DATA["e_hat"])
    problem = jm.Apprenticeship(world, jm.CostBasis(DATA["Psi"]), expert)
    features, theta = jm.features.Features(DATA["Phi"]), np.array(GOLDEN[name]["theta"])
    return problem, features, theta, row_sums(Reduced(problem, features), theta)


@pytest.mark.parametrize("name", ["theta_A", "theta_B", "theta_C"])
def test_golden_sums_and_ranges(name):
    _, _, theta, sums = golden_case(name)
    facts = GOLDEN[name]
    expected = (facts["V1"], facts["V2"], facts["r_plus"])
    for one, value in zip(sums, expected, strict=True):
        assert enumerated(one) == pytest.approx(value, rel=1e-9, abs=1e-12)
    C1, C2 = GOLDEN["C"]["C1_opt"], GOLDEN["C"]["C2_opt"]
    negative, positive = (np.linalg.norm(np.maximum(sign * theta, 0)) for sign in (-1, 1))
    reach = (1 + DATA["gamma"]) * C1 * positive
    widths = (C1 * negative, C2 * np.linalg.norm(theta) + 1, reach + 1)
    assert [one.width for one in sums] == pytest.approx(widths, rel=1e-8)


def test_golden_upper_bounds():
    width, delta = CONCENTRATION["R"], CONCENTRATION["delta"]
    mean, variance = CONCENTRATION["mean"], CONCENTRATION["var_unbiased"]
    count = len(CONCENTRATION["x"])
    assert np.var(CONCENTRATION["x"], ddof=1) == pytest.approx(variance, abs=1e-12)
    hoeffding = mean + hoeffding_radius(width, count, delta)
    bernstein = mean + empirical_bernstein_radius(variance, width, count, delta)
    assert hoeffding == pytest.approx(CONCENTRATION["hoeffding_ucb"], abs=1e-9)
    assert bernstein == pytest.approx(CONCENTRATION["empirical_bernstein_ucb"], abs=1e-9)
    kept = Statistics("x", 0, count, (mean,), (variance,), (width,), 2 * delta)
    assert upper_bound(kept) == pytest.approx(CONCENTRATION["hoeffding_ucb"], abs=1e-9)
    assert upper_bound(replace(kept, failure_probability=1e-9)) == width
    steady = replace(kept, count=10**6, variances=(0.0,))
    log = math.log(2 / delta)
    assert upper_bound(steady) == pytest.approx(mean + 7 * log / (3 * (10**6 - 1)), abs=1e-9)


def pitfall():
    """The features flow through the first state only, half of the initial mass is in the second."""
    world = jm.World(np.eye(2), [0.5, 0.5], 0.5)
    problem = jm.Apprenticeship(world, jm.CostBasis([[0.0], [1.0]]), jm.ExpertExpectation([0.0]))
    return problem, jm.features.Features([[2.0], [0.0]]), np.array([0.5])


def with_subgradient_law(reduced, theta):
    """A mutant: V2 from the law of the sampled subgradients instead of the envelope's."""
    first, flow, last = row_sums(reduced, theta)
    return first, replace(flow, law=RowNorms().laws(reduced).state_sampling), last


def test_the_law_of_the_subgradients_would_underestimate_the_flow_violation():
    problem, features, theta = pitfall()
    reduced = Reduced(problem, features)
    right, wrong = row_sums(reduced, theta)[1], with_subgradient_law(reduced, theta)[1]
    assert enumerated(right) == pytest.approx(0.5)
    assert enumerated(wrong) == 0.0
    rng = np.random.default_rng(0)
    estimate = wrong.statistics(10**6, rng, 0, 0.05)
    assert upper_bound(estimate) < 0.5, "its upper bound does not hold"
    premise = support_premise(with_subgradient_law(reduced, theta))
    assert premise.status is jm.certificate.PremiseStatus.FAILED
    assert "row 1 counts in V2 but is never drawn" in premise.detail


def test_a_law_without_support_certifies_nothing(monkeypatch):
    problem, features, theta = pitfall()
    policy = jm.policy.extract(problem.world, features.measure(theta))
    evaluation = SampledRows(features, theta, rows=10**5)
    sound = jm.certify(problem, policy, evaluation=evaluation)
    assert sound.valid
    assert sound.bound >= problem.gap(policy)
    monkeypatch.setattr(sampled_rows, "row_sums", with_subgradient_law)
    unsound = jm.certify(problem, policy, evaluation=evaluation)
    assert not unsound.valid
    assert unsound.best.bound < problem.gap(policy), "the mutant is caught for nothing"
    assert unsound.bound == unsound.trivial_bound


def small_cases():
    rng = np.random.default_rng(0)
    for seed, based in ((0, False), (1, True), (2, False)):
        problem = random_problem(seed, jm.Simplex(), num_states=3, discount=0.5)
        visits = jm.occupancy(problem.world, random_policy(problem.world, seed)).measure
        columns = np.abs(rng.normal(size=(problem.world.num_pairs, 2)))
        columns *= problem.world.effective_horizon / columns.sum(axis=0)
        features = jm.features.Features(columns, visits if based else None)
        yield problem, features, np.array([0.7, -0.1]) if based else np.array([0.8, 0.2])


@pytest.mark.parametrize("case", list(small_cases()), ids=["mixture", "affine", "another world"])
def test_bounds_fail_no_more_often_than_they_say(case):
    problem, features, theta = case
    policy = jm.policy.extract(problem.world, features.measure(theta))
    truth = problem.gap(policy)
    exact = naive_sums(problem.world, features.measure(theta))
    failures = of_sums = below_mean = 0
    for seed in range(RUNS):
        with drawn_from(seed):
            found = SampledRows(features, theta, rows=40).evaluate(problem, policy, DELTA)
        bounds = [
            problem.cost_class.gap(one.expectations - problem.target) + total(one.terms)
            for one in found
        ]
        failures += truth > min(bounds)
        for one in found:
            exactly = problem.cost_matrix.T @ features.measure(theta)
            assert one.expectations == pytest.approx(exactly, rel=1e-12, abs=1e-12)
        kept = found[0].statistics
        of_sums += any(upper_bound(one) < sum_ for one, sum_ in zip(kept, exact, strict=True))
        below_mean += kept[1].means[0] < exact[1]
    assert failures <= MOST_FAILURES
    assert of_sums <= MOST_FAILURES
    assert below_mean > MOST_FAILURES, "the mean itself would be enough: no power"


def test_many_rows_come_close_to_the_exact_kinds():
    problem, features, theta, _ = golden_case("theta_A")
    policy = jm.policy.extract(problem.world, features.measure(theta))
    N, h = 1.75, 5.0
    facts = GOLDEN["theta_A"]
    found = {
        one.kind: one
        for one in SampledRows(features, theta, rows=10**6).evaluate(problem, policy, 0.05)
    }
    exact = {
        "A (sampled)": N * h * (2 * facts["V1"] + facts["V2"]),
        "B (sampled)": N * facts["V1"] + N * h * facts["r_plus"],
    }
    expectations = np.array(DATA["Psi"]).T @ features.measure(theta)
    for kind, error in exact.items():
        assert error <= total(found[kind].terms) <= error * 1.03
        assert found[kind].expectations == pytest.approx(expectations, rel=1e-12)


def test_what_is_certainly_zero_costs_nothing():
    """Nonnegative features and coefficients: V1 = 0 without samples, delta for two sums."""
    problem, features, theta, _ = golden_case("theta_C")
    policy = jm.policy.extract(problem.world, features.measure(theta))
    found, _ = SampledRows(features, theta, rows=100).evaluate(problem, policy, 0.06)
    assert found.terms[0].value == pytest.approx(0.0, abs=1e-300)
    assert found.statistics[0].ranges == (0.0,)
    assert {one.failure_probability for one in found.statistics} == {0.03}


def test_an_occupancy_as_base_measure_narrows_the_ranges():
    problem = random_problem(3, discount=0.9)
    visits = jm.occupancy(problem.world, random_policy(problem.world, 0)).measure
    columns = np.random.default_rng(0).normal(size=(problem.world.num_pairs, 2))
    sums = row_sums(Reduced(problem, jm.features.Features(columns, visits)), np.full(2, 1e-3))
    plain = row_sums(Reduced(problem, jm.features.Features(columns)), np.full(2, 1e-3))
    assert sums[0].width < plain[0].width
    assert sums[1].width == pytest.approx(plain[1].width - 1, rel=1e-6)
    assert sums[2].width == pytest.approx(plain[2].width - 1, rel=1e-6)


def test_delta_is_shared_with_the_expert():
    problem, features, theta, _ = golden_case("theta_A")
    policy = jm.policy.extract(problem.world, features.measure(theta))
    demos = jm.record(problem.world, policy, trajectories=30, horizon=20, seed=0)
    estimated = jm.Apprenticeship(problem.world, problem.basis, demos)
    evaluation = SampledRows(features, theta, rows=500)
    for one, share in ((problem, 0.05), (estimated, 0.025)):
        certificate = jm.certify(one, policy, 0.05, evaluation=evaluation)
        assert {way.kind for way in certificate.combinations} == {"A (sampled)", "B (sampled)"}
        for way in certificate.combinations:
            parts = [part.failure_probability for part in way.statistics]
            assert math.fsum(parts) == pytest.approx(share)
        statuses = {premise.name: premise.status for premise in certificate.premises}
        fresh = "fresh rows are independent of the coefficients"
        assert statuses[fresh] is jm.certificate.PremiseStatus.DECLARED
        assert statuses[sampled_rows.SUPPORT] is jm.certificate.PremiseStatus.TESTED
        assert certificate.bound >= one.gap(policy) or one is estimated


def test_a_seed_means_one_evaluation():
    problem, features, theta, _ = golden_case("theta_A")
    policy = jm.policy.extract(problem.world, features.measure(theta))
    found = []
    for seed in (4, 4, 5):
        with drawn_from(seed):
            found.append(SampledRows(features, theta, rows=50).evaluate(problem, policy, 0.05)[0])
    first, again, other = found
    assert first.terms == again.terms != other.terms
    assert first.statistics == again.statistics
    assert first.statistics[0].means != other.statistics[0].means


def test_a_forward_problem_can_be_certified_by_rows():
    problem, features, theta, _ = golden_case("theta_B")
    forward = jm.Forward(problem.world, np.array(DATA["Psi"])[:, 0])
    policy = jm.policy.extract(problem.world, features.measure(theta))
    certificate = jm.certify(forward, policy, evaluation=SampledRows(features, theta, rows=10**5))
    assert certificate.best.bound >= forward.gap(policy)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(2), [1, 1], 10), "features is a ndarray. Give jm.features.Features"),
        ((jm.features.Features(np.eye(2)), [1], 10), "coefficients"),
        ((jm.features.Features(np.eye(2)), [1, np.nan], 10), "coefficients"),
        ((jm.features.Features(np.eye(2)), [1, 1], 1), "rows = 1. Give a whole number from 2"),
    ],
)
def test_refusals_name_what_is_wrong(arguments, message):
    with pytest.raises(jm.errors.InvalidProblem, match=message):
        SampledRows(*arguments)


def test_rows_of_another_policy_or_world_are_refused():
    problem, features, theta, _ = golden_case("theta_A")
    evaluation = SampledRows(features, theta, rows=10)
    with pytest.raises(
        jm.errors.InvalidProblem, match="not the one that features and coefficients"
    ):
        jm.certify(problem, jm.Policy.uniform(problem.world), evaluation=evaluation)
    elsewhere = random_problem(0)
    with pytest.raises(jm.errors.InvalidCosts, match="the features have 6 rows"):
        jm.certify(elsewhere, jm.Policy.uniform(elsewhere.world), evaluation=evaluation)
