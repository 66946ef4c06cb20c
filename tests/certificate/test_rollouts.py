"""Kind E: unbiased by enumeration of all paths, right as often as it says, reproducible."""

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from frequencies import frequencies
from journeyman.certificate.concentration import hoeffding_radius
from journeyman.certificate.expert_estimates import PlainMean, expert_estimates
from journeyman.certificate.rollouts import STREAM, Rollouts, fresh_stream, resting_costs
from journeyman.certificate.terms import total
from journeyman.demonstrations import Demonstrations
from journeyman.problem.draw_seeds import explicit_seed
from journeyman.testing import random_problem
from journeyman.testing.random_worlds import Shape, random_policy, random_world
from journeyman.testing.strategies import problems, seeds
from seeding import drawn_from

DELTA = 0.1
RUNS = 300
MOST_FAILURES = 30 + 3 * math.sqrt(RUNS * DELTA * (1 - DELTA))
"""Of 300 runs at 0.1, with three standard deviations."""


def declared(world, basis, cost_class=None, values=None):
    expert = jm.ExpertExpectation(np.zeros(basis.num_costs) if values is None else values)
    return jm.Apprenticeship(world, basis, expert, cost_class)


def noisy_problem(cost_class=None):
    """A coin decides about everything: the totals of one rollout have a large spread."""
    world = jm.World(np.eye(2), [0.5, 0.5], 0.8)
    return declared(world, jm.CostBasis([[1.0, -1.0], [-1.0, 1.0]]), cost_class)


def paths(world, policy, horizon):
    """Every path of `horizon` steps, or shorter if absorbed, with its probability."""
    found = []

    def walk(states, actions, probability):
        here = states[-1]
        if len(actions) == horizon or (actions and world.absorbing[here]):
            found.append((states, actions, probability))
            return
        first = world.pairs.offsets[here]
        for action, following in product(
            range(world.pairs.actions_per_state[here]), range(world.num_states)
        ):
            step = policy.per_pair[first + action] * world.transition[first + action, following]
            if step > 0:
                walk([*states, following], [*actions, action], probability * step)

    for start in np.flatnonzero(world.initial):
        walk([int(start)], [], float(world.initial[start]))
    return found


@pytest.mark.parametrize("shape", [Shape.ABSORBING, Shape.SPARSE, Shape.RAGGED])
@pytest.mark.parametrize("seed", range(4))
def test_the_means_are_unbiased_up_to_the_truncation_term(shape, seed):
    world = random_world(seed, shape, num_states=3, num_actions=2, discount=0.5)
    policy = random_policy(world, seed)
    rng = np.random.default_rng(seed)
    basis = jm.CostBasis(rng.uniform(1, 2, (world.num_pairs, 2)))
    problem = declared(world, basis)
    every = paths(world, policy, 4)
    records = Demonstrations.from_arrays(
        [states for states, _, _ in every],
        [actions for _, actions, _ in every],
        [world.absorbing[states[-1]] for states, _, _ in every],
    )
    costs = resting_costs(problem, policy)
    mean = PlainMean.with_costs(problem, records, costs, "rollouts")
    weights = np.array([probability for _, _, probability in every])
    assert weights.sum() == pytest.approx(1)
    expected = weights @ (mean.totals + mean.missing[:, np.newaxis] * basis.centre)
    exact = jm.occupancy(world, policy).expectations(basis)
    missing = float(weights @ mean.missing)
    halves = (basis.highest - basis.lowest) / 2
    assert (np.abs(expected - exact) <= halves * missing + 1e-12).all()
    assert missing <= 0.5**4 * 2 + 1e-12


@given(problems(max_budgets=0), seeds, st.booleans())
def test_resting_costs_change_no_expectation_and_no_range(problem, seed, as_sparse):
    if as_sparse:
        basis = jm.CostBasis(sparse.csr_array(problem.cost_matrix))
        problem = declared(problem.world, basis, problem.cost_class)
    policy, world = random_policy(problem.world, seed), problem.world
    costs = resting_costs(problem, policy)
    assert sparse.issparse(costs) == as_sparse
    visits = jm.occupancy(world, policy).measure
    size = 1e-12 * world.effective_horizon
    assert costs.T @ visits == pytest.approx(problem.cost_matrix.T @ visits, rel=0, abs=size)
    dense = costs.toarray() if as_sparse else costs
    assert (dense <= problem.basis.highest + 1e-14).all()
    assert (dense >= problem.basis.lowest - 1e-14).all()


def test_absorbed_rollouts_are_exact_to_their_endless_end():
    world = jm.World([[0, 1], [0, 1]], [1, 0], 0.9)
    problem = declared(world, jm.CostBasis([[1.0], [0.5]]))
    (found,) = Rollouts(10, horizon=3).evaluate(problem, jm.Policy([[1.0], [1.0]]), 0.05)
    assert found.expectations == pytest.approx([1 + 0.9 * 5], rel=1e-14)
    assert {term.name: term.value for term in found.terms}["rollout truncation"] == 0.0
    assert found.statistics[0].variances == (0.0,)


@pytest.mark.parametrize(
    "cost_class", [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex(), jm.InfinityBall([3, 0.1])]
)
def test_the_bound_fails_no_more_often_than_it_says(cost_class):
    problem = noisy_problem(cost_class)
    policy = jm.Policy([[1.0], [1.0]])
    truth = problem.gap(policy)
    failures = without_radius = 0
    for seed in range(RUNS):
        with drawn_from(seed):
            (found,) = Rollouts(15, horizon=40).evaluate(problem, policy, DELTA)
        measured = problem.cost_class.gap(found.expectations - problem.target)
        failures += truth > measured + total(found.terms)
        error = jm.occupancy(problem.world, policy).expectations(problem.basis) - found.expectations
        without_radius += problem.cost_class.gap(error) > 0.25 * found.terms[0].value
    assert failures <= MOST_FAILURES
    assert without_radius > MOST_FAILURES, "a quarter of the radius would be enough: no power"


@pytest.mark.parametrize("discount", [0.5, 0.9])
def test_the_whole_certificate_covers_the_true_gap(discount):
    """Both sides estimated: the expert from demonstrations, the apprentice from rollouts."""
    world = random_world(3, Shape.SPARSE, num_states=4, num_actions=2, discount=discount)
    basis = jm.CostBasis(np.random.default_rng(0).uniform(0, 1, (world.num_pairs, 2)))
    expert, apprentice = random_policy(world, 1), random_policy(world, 2)
    truth = declared(
        world, basis, jm.Simplex(), jm.occupancy(world, expert).expectations(basis)
    ).gap(apprentice)
    failures = 0
    for seed in range(RUNS):
        demos = jm.record(world, expert, trajectories=15, horizon=12, seed=seed)
        problem = jm.Apprenticeship(world, basis, demos, jm.Simplex())
        with drawn_from(seed):
            (found,) = Rollouts(15, horizon=12).evaluate(problem, apprentice, DELTA / 2)
        bounds = [
            problem.cost_class.gap(found.expectations - estimate.values)
            + total((*found.terms, *estimate.terms))
            for estimate in expert_estimates(problem, DELTA / 2)
        ]
        failures += truth > min(bounds)
    assert failures <= MOST_FAILURES


def test_a_known_cost_has_the_radius_of_one_cost():
    world = jm.World(np.eye(2), [0.5, 0.5], 0.8)
    problem = jm.Forward(world, [0.0, 1.0])
    policy = jm.Policy([[1.0], [1.0]])
    certificate = jm.certify(problem, policy, DELTA, evaluation=Rollouts(50, 40))
    (radius,) = [term.value for term in certificate.terms if term.name == "rollout sampling"]
    assert radius == pytest.approx(hoeffding_radius(5.0, 50, 0.8 * DELTA), rel=1e-12)
    assert certificate.bound >= problem.gap(policy) == pytest.approx(2.5)


def test_a_small_spread_is_rewarded():
    world = jm.World([[0, 1], [0, 1]], [1, 0], 0.9)
    problem = declared(world, jm.CostBasis([[1.0], [0.0]]))
    policy = jm.Policy([[1.0], [1.0]])
    (found,) = Rollouts(4000, horizon=3).evaluate(problem, policy, 0.05)
    log = math.log(2 / (0.2 * 0.05 / 2))
    assert found.terms[0].value == pytest.approx(7 * 10 * log / (3 * 3999), rel=1e-12)


@given(problems(max_budgets=0), seeds, st.integers(1, 30))
def test_the_expert_and_the_rollouts_share_delta(problem, seed, horizon):
    policy = random_policy(problem.world, seed)
    demos = jm.record(problem.world, policy, trajectories=5, horizon=horizon, seed=seed)
    estimated = jm.Apprenticeship(problem.world, problem.basis, demos, problem.cost_class)
    rollouts = Rollouts(7, horizon)
    for one, share in ((problem, DELTA), (estimated, DELTA / 2)):
        best = jm.certify(one, policy, DELTA, evaluation=rollouts).best
        assert best.kind == "E"
        assert [part.failure_probability for part in best.statistics] == [share]
        expected = {estimate.name: estimate for estimate in expert_estimates(one, share)}
        assert best.terms[-2:] == expected[best.estimate].terms[-2:] or one is problem


def test_statistics_are_enough_to_compute_the_radius_again():
    problem = random_problem(5, jm.InfinityBall(), discount=0.9)
    policy = random_policy(problem.world, 0)
    (found,) = Rollouts(np.int64(3000), horizon=60).evaluate(problem, policy, 0.05)
    (kept,) = found.statistics
    assert (kept.count, kept.horizon) == (3000, 60)
    assert kept.seed == explicit_seed(problem.world, policy)
    log = math.log(2 * 2 * problem.basis.num_costs / (0.2 * kept.failure_probability))
    radii = [
        math.sqrt(2 * variance * log / kept.count) + 7 * width * log / (3 * (kept.count - 1))
        for variance, width in zip(kept.variances, kept.ranges, strict=True)
    ]
    assert found.terms[0].value == pytest.approx(sum(radii), rel=1e-12)
    assert json.dumps(vars(kept)), "plain numbers, ready for a file"
    assert kept.unrecorded == pytest.approx(0.9**60 * 10, rel=1e-9)
    moved = np.array(kept.means) + problem.basis.centre * kept.unrecorded
    plain = np.allclose(found.expectations, kept.means, rtol=0, atol=1e-12)
    assert plain or found.expectations == pytest.approx(moved, rel=1e-12)


@given(seeds, st.integers(1, 6))
def test_spread_and_truncation_cover_the_complete_totals(seed, horizon):
    """Costs far from zero, records some of which are cut off: the tails matter for the spread."""
    rng = np.random.default_rng(seed)
    world = random_world(seed, Shape.ABSORBING, num_states=3, num_actions=2, discount=0.9)
    costs = np.repeat(rng.uniform(5, 5.2, (world.num_states, 1)), 2, axis=0)
    problem = declared(world, jm.CostBasis(costs))
    policy = random_policy(world, seed)
    stream = np.random.default_rng(seed)
    whole = jm.record(world, policy, trajectories=12, horizon=400, seed=stream)
    complete = PlainMean.with_costs(problem, whole, problem.cost_matrix, "demonstrations")
    states, actions, ended = [], [], []
    for j in range(len(whole)):
        visited, taken = whole.episode(j)
        steps = min(horizon, taken.size)
        states.append(visited[: steps + 1])
        actions.append(taken[:steps])
        ended.append(bool(whole.terminated[j]) and steps == taken.size)
    records = Demonstrations.from_arrays(states, actions, ended)
    cut = PlainMean.with_costs(problem, records, problem.cost_matrix, "demonstrations")
    assert (complete.totals.std(axis=0, ddof=1) <= cut.spread + 1e-9).all()
    distance = problem.cost_class.gap(complete.totals.mean(axis=0) - cut.values)
    assert distance <= cut.truncation.value + 1e-9


def test_records_that_look_alike_may_have_tails_that_differ():
    """After one free step half of the walks rest for nothing, half cost 1 per step for ever."""
    rows = [[0, 0.5, 0.5, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    world = jm.World(rows, [1, 0, 0, 0], 0.9)
    problem = declared(world, jm.CostBasis([[0.0], [0.0], [1.0], [1.0]]))
    records = Demonstrations.from_arrays([[0, 1], [0, 2]] * 10, [[0]] * 20, [True, False] * 10)
    mean = PlainMean.with_costs(problem, records, problem.cost_matrix, "demonstrations")
    complete = np.array([0.0, 9.0] * 10)
    assert mean.totals.std() == 0.0
    assert mean.spread[0] >= complete.std(ddof=1)


def test_a_seed_means_one_evaluation_and_another_than_elsewhere():
    problem, policy = noisy_problem(), jm.Policy([[1.0], [1.0]])
    found = []
    for seed in (4, 4, 5):
        with drawn_from(seed):
            found += Rollouts(30, horizon=20).evaluate(problem, policy, 0.05)
    first, again, other = found
    assert first.expectations.tolist() == again.expectations.tolist()
    assert first.terms == again.terms
    assert first.statistics == again.statistics
    assert first.statistics[0].means != other.statistics[0].means
    demos = jm.record(problem.world, policy, trajectories=30, horizon=20, seed=4)
    elsewhere = PlainMean.with_costs(
        problem, demos, problem.cost_matrix, "demonstrations"
    ).totals.mean(axis=0)
    assert not np.allclose(first.statistics[0].means, elsewhere)
    assert fresh_stream(4, STREAM).random() != np.random.default_rng(4).random()
    assert fresh_stream(4, STREAM).random() != fresh_stream(4, STREAM + 1).random()


def test_what_does_not_come_from_rollouts_is_exact():
    problem = random_problem(8, num_budgets=1)
    policy = random_policy(problem.world, 0)
    exact = jm.certify(problem, policy)
    sampled = jm.certify(problem, policy, evaluation=Rollouts(20, 30))
    assert sampled.gap_on_data == exact.gap_on_data
    assert sampled.budgets == exact.budgets
    assert sampled.apprentice_intervals == exact.apprentice_intervals
    assert {way.kind for way in sampled.combinations} == {"E"}
    assert not exact.best.statistics
    assert "fresh rollouts are independent of the policy" in {
        premise.name
        for premise in sampled.premises
        if premise.status is jm.certificate.PremiseStatus.DECLARED
    }


def test_an_estimated_world_adds_its_error_to_the_rollouts():
    exact = random_problem(1, jm.InfinityBall(), shape=Shape.DENSE, discount=0.5)
    world = jm.World(
        frequencies(exact.world.transition, 10**9), exact.world.initial, 0.5,
        transition_counts=10**9,
        choice_offsets=exact.world.pairs.offsets,
    )  # fmt: skip
    problem = declared(world, exact.basis)
    policy = random_policy(world, 0)
    certificate = jm.certify(problem, policy, DELTA, evaluation=Rollouts(50, 30))
    (way,) = [way for way in certificate.combinations if way.kind == "E"]
    assert "model" in {term.name for term in way.terms}
    (kept,) = way.statistics
    assert 0 < kept.failure_probability < DELTA
    assert certificate.premises[-1].name == "fresh rollouts are independent of the policy"


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 10), "trajectories = 0. Give a whole number from 2"),
        ((1, 10), "trajectories = 1. Give a whole number from 2"),
        ((5, 0), "horizon = 0. Give a whole number from 1"),
        ((5, 2.5), "horizon = 2.5"),
        ((None, 2), "trajectories = None"),
    ],
)
def test_refusals_name_what_is_wrong(numbers, message):
    with pytest.raises(jm.errors.InvalidProblem, match=message):
        Rollouts(*numbers)


def test_certify_refuses_what_is_no_evaluation():
    problem, policy = noisy_problem(), jm.Policy([[1.0], [1.0]])
    with pytest.raises(jm.errors.InvalidProblem, match="evaluation is 'rollouts'"):
        jm.certify(problem, policy, evaluation="rollouts")
    with pytest.raises(jm.errors.InvalidProblem, match="both measure and evaluation are given"):
        jm.certify(problem, policy, measure=np.ones(2), evaluation=Rollouts(5, 5))
