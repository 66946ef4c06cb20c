"""Certificates: golden numbers, true for any policy, and honest about what was not shown."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.certificate.concentration import radii
from journeyman.certificate.expert_estimates import (
    INDEPENDENT_SHARE,
    PLAIN_UP_TO,
    PlainMean,
    shares,
)
from journeyman.testing import Shape, random_world
from journeyman.testing.random_worlds import random_policy, random_problem
from journeyman.testing.strategies import measures, policies, problems
from naive.occupancy import occupancy as naive_occupancy

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
DATA, CONCENTRATION = GOLDEN["data"], GOLDEN["concentration"]
CLASSES = {"l1": jm.InfinityBall(), "l2": jm.EuclideanBall(), "simplex": jm.Simplex()}
POINTS = ["theta_A", "theta_B", "theta_C"]


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def golden_problem(name, target=None, constraints=()):
    world = jm.World(DATA["P"], DATA["nu0"], DATA["gamma"])
    expert = jm.ExpertExpectation(DATA["e_hat"] if target is None else target)
    return jm.Apprenticeship(world, jm.CostBasis(DATA["Psi"]), expert, CLASSES[name], constraints)


def golden_measure(point):
    return np.array(DATA["Phi"]) @ GOLDEN[point]["theta"]


def bounds_of(certificate):
    return {way.kind: way.bound for way in certificate.combinations}


def term(way, name):
    return sum(one.value for one in way.terms if one.name == name)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", CLASSES)
def test_golden_bounds_of_every_kind(point, name):
    problem, u = golden_problem(name), golden_measure(point)
    found = bounds_of(jm.certify(problem, jm.policy.extract(problem.world, u), measure=u))
    assert found["A"] == close(GOLDEN[point]["certA"][name])
    assert found["B"] == close(GOLDEN[point]["certB"][name])
    assert found["D"] == close(GOLDEN[point]["gap_hat"][name])
    assert found["C"] == close(GOLDEN[point]["certB"][name]), "the golden basis is centred"
    assert set(found) == {"A", "B", "B'", "C", "D"}


@pytest.mark.parametrize("point", POINTS)
def test_golden_centred_bound(point, monkeypatch):
    """The centre of the golden numbers is not mid-range, so it is put in its place."""
    golden, problem = GOLDEN[point]["certC_centred_l1"], golden_problem("l1")
    u = golden_measure(point)
    monkeypatch.setattr(jm.CostBasis, "centre", property(lambda _: np.array(golden["c"])))
    found = bounds_of(jm.certify(problem, jm.policy.extract(problem.world, u), measure=u))
    assert found["C"] == close(golden["value"])


@pytest.mark.parametrize("name", CLASSES)
def test_a_constant_added_to_a_cost_changes_nothing_but_kinds_that_do_not_centre(name):
    shift, u = np.array([3.0, -2.0]), golden_measure("theta_A")
    problem = golden_problem(name)
    moved = jm.Apprenticeship(
        problem.world, jm.CostBasis(np.array(DATA["Psi"]) + shift),
        jm.ExpertExpectation(DATA["e_hat"] + 5 * shift), CLASSES[name],
    )  # fmt: skip
    policy = jm.policy.extract(problem.world, u)
    before, after = (jm.certify(one, policy, measure=u) for one in (problem, moved))
    assert bounds_of(after)["C"] == close(bounds_of(before)["C"])
    assert bounds_of(after)["D"] == close(bounds_of(before)["D"])
    assert bounds_of(after)["B"] > bounds_of(before)["B"] + 1
    assert after.trivial_bound == close(before.trivial_bound)


@pytest.mark.parametrize("point", POINTS)
def test_golden_spending(point):
    golden, u = GOLDEN[point]["safety"], golden_measure(point)
    budget = jm.Budget(DATA["d_safe"], DATA["b_safe"], name="safe")
    problem = golden_problem("l1", constraints=budget)
    policy = jm.policy.extract(problem.world, u)
    (kept,) = jm.certify(problem, policy).budgets
    assert kept.spent == close(golden["value"])
    assert kept.spent >= golden["value"]
    assert kept.is_kept == (golden["value"] < DATA["b_safe"])
    assert kept.slack == pytest.approx(0.0, abs=1e-11)


def test_golden_lower_bounds():
    golden, problem = GOLDEN["dual"], golden_problem("l1")
    given_point = jm.problem.Witness(golden["w"], golden["V"])
    anything = jm.certify(problem, jm.Policy.uniform(problem.world), witness=given_point)
    assert anything.lower_bound == 0.0
    tight = GOLDEN["dual_tight"]
    problem = golden_problem("l1", tight["e_hat"])
    policy = jm.Policy.uniform(problem.world)
    helped = jm.certify(problem, policy, witness=jm.problem.Witness(tight["w"], tight["V"]))
    alone = jm.certify(problem, policy)
    assert helped.lower_bound == close(tight["LB"])
    assert 0 <= alone.lower_bound <= helped.lower_bound + 1e-9
    assert helped.bound == close(alone.bound)
    solved = jm.certify(problem, jm.solve(problem))
    assert solved.lower_bound == close(tight["LP_value"])
    assert solved.gap_on_data == close(tight["LP_value"])


@pytest.mark.parametrize(
    ("name", "key"), [("l1", "l1_signs"), ("l2", "l2"), ("simplex", "simplex_one_sided")]
)
def test_golden_radii(name, key):
    world = jm.World(DATA["P"], DATA["nu0"], DATA["gamma"])
    expert = jm.Policy(DATA["pi_expert"])
    demos = jm.record(world, expert, trajectories=CONCENTRATION["m"], horizon=120, seed=0)
    problem = jm.Apprenticeship(world, jm.CostBasis(DATA["Psi"]), demos, CLASSES[name])
    found = PlainMean.with_costs(problem, demos, problem.cost_matrix, "demonstrations").independent(
        CONCENTRATION["delta"]
    )
    assert term(found, "sampling") == close(CONCENTRATION[f"stat_{key}"])


@pytest.mark.parametrize("shaped", [True, False])
def test_the_parts_of_the_failure_probability_sum_to_one_and_change_slowly(shaped):
    """No more demonstrations make a radius larger, whatever the other parts."""
    before = [math.inf] * 3
    for count in (1, 2, 19, 20, 21, 22, *range(25, 499, 7), 499, 500, 501, 10_000, 10**6):
        parts = shares(count, shaped=shaped)
        assert sum(parts) == pytest.approx(1.0)
        assert min(parts) >= 0
        assert parts[2] > 0 or not shaped or count <= PLAIN_UP_TO
        logs = [math.log(1 / (0.3 * part)) for part in parts[:2]]
        radii_now = [math.sqrt(logs[0] / count), math.sqrt(logs[1] / count), logs[1] / count]
        assert all(now < last for now, last in zip(radii_now, before, strict=True))
        before = radii_now


@given(problems(max_budgets=0), st.data())
def test_every_bound_holds_for_declared_expectations(problem, data):
    measure = data.draw(measures(problem.world))
    policy = jm.policy.extract(problem.world, measure)
    certificate = jm.certify(problem, policy, measure=measure)
    guard = 1e-9 * (problem.gap_scale + np.abs(problem.target).sum())
    true = problem.gap(policy)
    found = bounds_of(certificate)
    assert min(found.values()) >= true
    assert found["D"] <= true + guard
    assert found["D"] <= found["B'"] + guard <= found["B"] + 2 * guard <= found["A"] + 3 * guard
    assert certificate.lower_bound <= true
    assert certificate.true_lower_bound <= true
    assert not certificate.alarm
    assert certificate.valid


@given(problems(max_budgets=0), st.data())
def test_bounds_hold_for_a_slow_evaluation_too(problem, data):
    if problem.world.discount > 0.96:
        return
    policy = data.draw(policies(problem.world))
    measure = np.array(naive_occupancy(problem.world, policy))
    true = problem.cost_class.gap(problem.difference(measure))
    certificate = jm.certify(problem, policy)
    tiny = 1e-11 * (1 + problem.gap_scale)
    assert certificate.best.bound >= true - tiny
    assert certificate.gap_on_data == pytest.approx(true, abs=tiny)
    for interval, value in zip(
        certificate.apprentice_intervals, problem.cost_matrix.T @ measure, strict=True
    ):
        assert interval.low - tiny <= value <= interval.high + tiny


@given(problems(max_budgets=0))
def test_the_bounds_of_an_exact_solution_meet(problem):
    certificate = jm.certify(problem, jm.solve(problem))
    assert certificate.optimality_gap <= 1e-7 * (problem.gap_scale or 1.0)
    assert certificate.lower_bound <= certificate.gap_on_data


@given(problems(max_budgets=2), st.data())
def test_budget_certificates_bound_the_true_spending(problem, data):
    policy = data.draw(policies(problem.world))
    certificate = jm.certify(problem, policy)
    spent = jm.occupancy(problem.world, policy).measure @ problem.budget_matrix
    assert len(certificate.budgets) == len(problem.constraints)
    for one, budget, value in zip(certificate.budgets, problem.constraints, spent, strict=True):
        assert one.name == budget.name
        assert (
            value
            <= one.spent
            <= value + 1e-9 * (1 + budget.size) * (problem.world.effective_horizon**2)
        )
        assert one.is_kept == (one.spent <= budget.at_most)


@given(problems(max_budgets=2), st.data())
def test_no_policy_within_the_budgets_is_below_the_lower_bound(problem, data):
    """The witness of any policy bounds the gap of any other that keeps the budgets."""
    mine, other = data.draw(policies(problem.world)), data.draw(policies(problem.world))
    certificate = jm.certify(problem, mine)
    visits = jm.occupancy(problem.world, other)
    assert certificate.lower_bounds.without_budgets <= problem.gap(visits)
    if (problem.overspending(visits.measure) <= 0).all():
        assert certificate.lower_bound <= problem.gap(visits)


@pytest.fixture(scope="module")
def grid():
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=1000, horizon=150, seed=0)
    return jm.Apprenticeship(world, basis, demos), expert


@pytest.mark.parametrize("name", CLASSES)
def test_a_policy_from_nowhere_is_certified(grid, name):
    (given_problem, expert), seed = grid, 5
    world, basis = given_problem.world, given_problem.basis
    problem = jm.Apprenticeship(world, basis, given_problem.demonstrations, CLASSES[name])
    truth = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    exact = jm.Apprenticeship(world, basis, truth, CLASSES[name])
    clone = jm.clone(problem.demonstrations, world)
    for policy in (clone, jm.Policy.uniform(world), random_policy(world, seed)):
        certificate = jm.certify(problem, policy)
        assert certificate.valid
        assert exact.gap(policy) <= certificate.bound <= certificate.trivial_bound
        assert certificate.gap_on_data == close(problem.gap(policy))
        assert certificate.bound == certificate.best.bound or certificate.vacuous
    assert jm.certify(problem, clone).bound < jm.certify(problem, jm.Policy.uniform(world)).bound


def test_combinations_are_sums_of_their_terms_the_best_first(grid):
    problem, expert = grid
    certificate = jm.certify(problem, expert, measure=jm.occupancy(problem.world, expert).measure)
    bounds = [way.bound for way in certificate.combinations]
    assert bounds == sorted(bounds)
    assert certificate.terms == certificate.best.terms
    estimates = {way.estimate for way in certificate.combinations}
    assert "control variate" in estimates
    assert "plain mean, betting" in estimates
    assert len(estimates) == 3
    for way in certificate.combinations:
        assert way.bound == pytest.approx(sum(one.value for one in way.terms))
        assert term(way, "sampling") > 0
    assert certificate.normalised_bound == pytest.approx(0.05 * certificate.bound)


def test_the_control_variate_needs_enough_demonstrations(grid):
    problem, expert = grid
    for count in (PLAIN_UP_TO, PLAIN_UP_TO + 1):
        few = problem.demonstrations.subset(np.arange(count))
        small = jm.certify(jm.Apprenticeship(problem.world, problem.basis, few), expert)
        names = {way.estimate for way in small.combinations}
        assert ("control variate" in names) == (count > PLAIN_UP_TO)


def test_smaller_failure_probabilities_cost_more(grid):
    problem, expert = grid
    bounds = [jm.certify(problem, expert, delta).bound for delta in (0.3, 0.05, 1e-6)]
    assert bounds[0] < bounds[1] < bounds[2]


def test_the_target_does_not_decide_what_is_certified(grid):
    """Whatever way the target was estimated, the bound on the true gap is the same."""
    problem, expert = grid
    demos = problem.demonstrations
    found = [
        jm.certify(
            jm.Apprenticeship(
                problem.world, problem.basis,
                jm.ExpertExpectation.from_demonstrations(
                    demos, problem.basis, problem.world, method=method
                ),
            ), expert,
        )
        for method in (
            jm.demonstrations.MonteCarlo(), jm.demonstrations.ControlVariate(),
            jm.demonstrations.ControlVariate(5),
        )
    ]  # fmt: skip
    assert len({one.bound for one in found}) == 1
    assert len({one.gap_on_data for one in found}) == 3


def test_a_measure_of_another_policy_is_not_used():
    problem = random_problem(3)
    policy, other = (random_policy(problem.world, seed) for seed in (1, 2))
    measure = jm.occupancy(problem.world, other).measure
    with pytest.raises(jm.errors.InvalidProblem, match="the measure does not define this policy"):
        jm.certify(problem, policy, measure=measure)


def test_an_answer_with_coefficients_brings_its_measure():
    problem = random_problem(4, num_states=8)
    columns = np.random.default_rng(0).exponential(size=(problem.world.num_pairs, 3))
    answer = jm.solve(problem, jm.ReducedProgram(jm.features.Features(columns)))
    certificate = jm.certify(problem, answer)
    assert set(bounds_of(certificate)) == {"A", "B", "B'", "C", "D"}
    assert certificate.best.kind == "D"


def test_require_returns_the_certificate_or_names_the_largest_terms(grid):
    problem, expert = grid
    certificate = jm.certify(problem, expert)
    assert certificate.require(gap=certificate.bound) is certificate
    largest = max(certificate.terms, key=lambda one: one.value)
    with pytest.raises(jm.NotCertified, match=r"a gap of 0\.001 was required") as caught:
        certificate.require(gap=0.001)
    assert f"{largest.name} {largest.value:.4g}" in str(caught.value)
    assert f"{certificate.bound:.6g}" in str(caught.value)
    with pytest.raises(jm.NotCertified):
        certificate.require(gap=np.nextafter(certificate.bound, 0))


def test_require_names_budgets_that_may_be_broken():
    problem = golden_problem("l1", constraints=[jm.Budget(DATA["d_safe"], 0.5, name="wear")])
    certificate = jm.certify(problem, jm.Policy.uniform(problem.world))
    assert not certificate.budgets[0].is_kept
    with pytest.raises(jm.NotCertified, match="the budget 'wear' may be spent up to"):
        certificate.require(gap=100.0)


def tilted(world):
    """Another world with the same possible steps and another law."""
    rows = world.transition.toarray()
    weight = 1.0 + 9.0 * (np.arange(world.num_states) % 2)
    moved = rows * weight
    return jm.World(moved / moved.sum(axis=1, keepdims=True), world.initial, world.discount,
                    choice_offsets=world.pairs.offsets)  # fmt: skip


@pytest.fixture(scope="module")
def foreign():
    """Demonstrations of a world with the same support: odd states are much more likely there."""
    world = random_world(7, Shape.DENSE, num_states=6, num_actions=2)
    basis = jm.CostBasis(np.eye(6))
    other = tilted(world)
    demos = jm.record(other, jm.Policy.uniform(other), trajectories=3000, horizon=100, seed=0)
    return jm.Apprenticeship(world, basis, demos)


@pytest.mark.parametrize(
    "method",
    [
        jm.demonstrations.MonteCarlo(),
        jm.demonstrations.MonteCarlo(completed=True),
        jm.demonstrations.ControlVariate(),
        None,
    ],
    ids=repr,
)
def test_the_alarm_fires_for_demonstrations_of_another_world(foreign, method):
    """Whatever the target, also one that was moved to what policies of this world attain."""
    expert = jm.ExpertExpectation.from_demonstrations(
        foreign.demonstrations, foreign.basis, foreign.world, method=method
    )
    problem = jm.Apprenticeship(foreign.world, foreign.basis, expert)
    certificate = jm.certify(problem, jm.solve(problem))
    assert certificate.alarm
    last = certificate.premises[-1]
    assert last.status is jm.certificate.PremiseStatus.FAILED
    assert f"{certificate.lower_bounds.without_budgets:.4g}" in last.detail
    assert f"{certificate.lower_bounds.expert_radius:.4g}" in last.detail


def test_after_a_failed_premise_only_the_trivial_bound_holds(foreign):
    certificate = jm.certify(foreign, jm.solve(foreign))
    assert not certificate.valid
    assert certificate.bound == certificate.trivial_bound > certificate.best.bound
    assert certificate.vacuous
    with pytest.raises(jm.NotCertified, match="a premise has failed"):
        certificate.require(gap=2 * certificate.trivial_bound)
    assert "NOT VALID" in repr(certificate)
    assert "premise failed" in certificate.summary()
    assert "FAILED" in certificate.table()


def test_sound_demonstrations_raise_no_alarm(grid):
    problem, expert = grid
    certificate = jm.certify(problem, expert)
    assert certificate.valid
    assert not certificate.alarm
    statuses = [one.status for one in certificate.premises]
    assert statuses[0] is jm.certificate.PremiseStatus.DECLARED
    assert set(statuses[1:]) == {jm.certificate.PremiseStatus.TESTED}


@pytest.mark.parametrize("name", CLASSES)
def test_declared_expectations_have_no_statistical_term_and_no_alarm(name):
    """Even where no policy can have them: declared means believed."""
    declared = [-4.0, -4.0] if name == "simplex" else [1.5, 3.5]
    problem = golden_problem(name, declared)
    certificate = jm.certify(problem, jm.solve(problem))
    assert {way.estimate for way in certificate.combinations} == {"declared"}
    names = {one.name for way in certificate.combinations for one in way.terms}
    assert names == {"gap to the estimate", "evaluation", "rounding"}
    assert certificate.best.bound == close(certificate.gap_on_data)
    assert certificate.lower_bound > 0.5
    assert not certificate.alarm
    assert certificate.valid
    assert [one.status for one in certificate.premises] == [
        jm.certificate.PremiseStatus.DECLARED
    ] * 2
    assert certificate.premises[1].name == "the laws of the world are exact"
    assert [one.low for one in certificate.expert_intervals] == declared
    assert [one.high for one in certificate.expert_intervals] == declared


@pytest.mark.parametrize("name", CLASSES)
def test_declared_expectations_beyond_all_costs_are_not_capped(name):
    """What was declared is believed, so the bound is one on the gap to it, however large."""
    problem = golden_problem(name, [-50.0, -60.0])
    certificate = jm.certify(problem, jm.Policy.uniform(problem.world))
    assert certificate.bound >= certificate.gap_on_data > 40
    assert certificate.lower_bound <= certificate.bound


@given(problems(max_budgets=0), st.data())
def test_forward_problems_are_certified(problem, data):
    """The gap is then the cost itself, whatever its sign and wherever its range lies."""
    cost = np.asarray(problem.cost_matrix[:, 0]) + data.draw(st.sampled_from([-2.0, 0.0, 3.0]))
    forward = jm.Forward(problem.world, cost)
    policy = data.draw(policies(problem.world))
    certificate = jm.certify(forward, policy)
    value = jm.expected_cost(problem.world, policy, cost)
    assert certificate.bound >= value
    assert certificate.bound == pytest.approx(value, rel=1e-9, abs=1e-9 * forward.gap_scale)
    assert not certificate.alarm
    best = jm.plan(problem.world, cost)
    least = jm.expected_cost(problem.world, best.policy, cost)
    assert certificate.lower_bound <= least
    solved = jm.certify(forward, best.policy)
    assert solved.optimality_gap <= 1e-7 * forward.gap_scale


def numbers_before(text, word):
    return [int(found.replace(",", "")) for found in re.findall(rf"([\d,]+) {word}", text)]


@pytest.mark.parametrize("count", [100, 1000])
def test_advice_in_numbers(grid, count):
    problem, _ = grid
    part = problem.demonstrations.subset(np.arange(count))
    smaller = jm.Apprenticeship(problem.world, problem.basis, part)
    certificate = jm.certify(smaller, jm.solve(smaller))
    text = certificate.advice()
    assert f"The bound {certificate.bound:.4g} is made of" in text
    (about,) = numbers_before(text.replace("About ", ""), "demonstrations")
    assert about > count
    kept = certificate.bound - term(certificate.best, "sampling")
    fallen = term(certificate.best, "sampling") * np.sqrt(count / about)
    assert 0.9 * certificate.bound / 2 <= kept + fallen <= certificate.bound / 2 + 1e-9


@pytest.mark.parametrize("randomness", [0.0, 0.3])
@pytest.mark.parametrize("count", [100, 1000])
def test_advice_promises_whatever_the_spread_no_more_than_is_true(randomness, count):
    """With the promised number, the radius that looks at no data halves the whole bound."""
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=count, horizon=250, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    uniform, clone = jm.Policy.uniform(world), jm.clone(demos, world)
    mixed = (1 - randomness) * clone.per_pair + randomness * uniform.per_pair
    certificate = jm.certify(problem, jm.Policy(mixed, world.pairs.offsets))
    others = sum(one.value for one in certificate.terms if one.name != "sampling")
    allowed, delta = certificate.bound / 2 - others, certificate.failure_probability
    promised = numbers_before(certificate.advice(), "do so")
    if allowed <= 0:
        assert promised == []
        return
    parts = [share * delta for share in (1.0, INDEPENDENT_SHARE)]
    least, most = (
        min(rate.smallest(allowed) for rate in radii(problem, share, two_sided=False))
        for share in parts
    )
    assert all(least <= number <= 1.05 * most for number in promised)


def test_advice_about_short_records_poor_policies_and_failed_premises(grid, foreign):
    problem, expert = grid
    world, basis = problem.world, problem.basis
    short = jm.record(world, expert, trajectories=3000, horizon=40, seed=1)
    cut_off = jm.certify(jm.Apprenticeship(world, basis, short), expert)
    (length,) = numbers_before(cut_off.advice(), "steps make")
    assert length > 40
    assert (
        world.discount**length * 20 <= 0.05 * cut_off.bound <= world.discount ** (length - 1) * 20
    )
    assert "A better policy is not excluded" in jm.certify(
        problem, jm.Policy.uniform(world)
    ).advice()  # fmt: skip
    assert "A premise has failed" in jm.certify(foreign, jm.solve(foreign)).advice()


def test_words_and_table_say_the_same_figures(grid):
    problem, expert = grid
    certificate = jm.certify(problem, expert)
    assert f"{certificate.bound:.4g} more than the expert" in certificate.summary()
    table = certificate.table()
    for one in certificate.terms:
        assert one.name in table
        assert f"{one.value:.6g}" in table
    assert all(premise.name in table for premise in certificate.premises)


def test_learn_keeps_budgets_when_asked():
    """The exact program spends all it may; rounding then leaves the limit in doubt."""
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    truth = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    dear = int(np.argmax(truth.values))
    cost = np.asarray(basis.on(world).toarray()[:, dear])
    budget = jm.Budget(cost, 0.7 * float(truth.values[dear]), name="cell")
    careless = jm.learn(world, basis, truth, constraints=budget)
    careful = jm.learn(world, basis, truth, constraints=budget, keep_budgets=True)
    assert careful.certificate.budgets[0].is_kept
    assert careful.certificate.budgets[0].limit == budget.at_most
    assert careful.problem.constraints == (budget,)
    assert careful.certificate.gap_on_data == pytest.approx(
        careless.certificate.gap_on_data, abs=1e-5
    )
    careful.certificate.require(gap=careful.certificate.bound)


def test_learn_keeps_budgets_that_share_a_name():
    """`Budget` has a default name, so two budgets may well have the same."""
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    truth = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    dear = int(np.argmax(truth.values))
    tight = jm.Budget(basis.on(world).toarray()[:, dear], 0.7 * float(truth.values[dear]))
    loose = jm.Budget(np.ones(world.num_pairs), 25.0)
    for budgets in ([tight, loose], [loose, tight]):
        found = jm.learn(world, basis, truth, constraints=budgets, keep_budgets=True)
        assert all(one.is_kept for one in found.certificate.budgets)


def test_learn_puts_the_parts_together(grid):
    problem, _ = grid
    apprentice = jm.learn(
        problem.world, problem.basis, problem.demonstrations, cost_class=jm.Simplex(),
        failure_probability=0.2,
    )  # fmt: skip
    again = jm.certify(apprentice.problem, apprentice.answer, 0.2)
    assert apprentice.certificate.bound == again.bound
    assert apprentice.certificate.failure_probability == 0.2
    assert apprentice.policy is apprentice.answer.policy
    assert apprentice.summary().startswith(apprentice.certificate.summary())
    assert apprentice.summary().endswith(f"Target: {apprentice.target.reason}.")
    assert apprentice.certificate.optimality_gap <= 1e-6


@dataclass
class HasAPolicy:
    policy: jm.Policy


def test_anything_with_a_policy_is_certified():
    problem = random_problem(0)
    policy = random_policy(problem.world, 1)
    assert jm.certify(problem, HasAPolicy(policy)).bound == jm.certify(problem, policy).bound


def test_what_has_no_policy_is_refused():
    problem = random_problem(0)
    for thing in (None, 3, HasAPolicy("best")):
        with pytest.raises(jm.errors.InvalidProblem, match="there is no policy in a"):
            jm.certify(problem, thing)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2, np.nan])
def test_failure_probabilities_lie_between_zero_and_one(delta):
    problem = random_problem(0)
    with pytest.raises(jm.errors.InvalidProblem, match="failure_probability"):
        jm.certify(problem, jm.Policy.uniform(problem.world), delta)


def test_parts_that_do_not_fit_are_refused():
    problem = random_problem(0)
    policy, elsewhere = jm.Policy.uniform(problem.world), random_world(1, Shape.DENSE, num_states=9)
    with pytest.raises(jm.errors.InvalidPolicy):
        jm.certify(problem, jm.Policy.uniform(elsewhere))
    with pytest.raises(jm.errors.InvalidProblem):
        jm.certify(
            problem, policy, witness=jm.problem.Witness([1.0], np.zeros(problem.world.num_states))
        )
    with pytest.raises(jm.errors.InvalidInput):
        jm.certify(problem, policy, measure=np.ones(problem.world.num_pairs + 1))


def test_one_demonstration_says_next_to_nothing():
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=1, horizon=50, seed=0)
    certificate = jm.certify(jm.Apprenticeship(world, basis, demos), expert)
    assert certificate.valid
    assert 0.9 * certificate.trivial_bound < certificate.bound <= certificate.trivial_bound
    assert certificate.advice()


def test_an_answer_over_features_shows_what_the_best_coefficients_could_reach():
    world, basis, expert = jm.gallery.grid(6, macro_cells=2)
    demos = jm.record(world, expert, trajectories=100, horizon=100, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    answer = jm.solve(problem, jm.ReducedProgram(jm.features.partition(world, demos, num_cells=9)))
    bounds = jm.certify(problem, answer).reduced
    assert bounds.loss == answer.reduced.loss
    assert bounds.lower_bound == answer.reduced.loss_lower_bound <= bounds.loss
    assert jm.certify(problem, answer.policy).reduced is None


def test_a_budget_of_zero_can_be_kept(tmp_path):
    """An action that is never taken costs nothing, and no rounding can make it cost something."""
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=50, horizon=60, seed=0)
    never = jm.Budget(cost=1.0 * (world.pairs.actions == 2), at_most=0.0, name="never south")
    table = jm.Policy.uniform(world).probabilities(range(16)) * np.array([1, 1, 0, 1])
    problem = jm.Apprenticeship(world, basis, demos, constraints=never)
    (budget,) = jm.certify(problem, jm.Policy(table * 4 / 3)).budgets
    assert budget.is_kept
    assert budget.spent == 0
    apprentice = jm.learn(world, basis, demos, constraints=never)
    assert apprentice.certificate.budgets[0].is_kept
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
