"""The worst law in a ball, and robust evaluation, against linear programs and brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

import journeyman as jm
from journeyman.certificate.model_error import Evidence, LawBall, ModelError, worst_total
from journeyman.testing.random_worlds import random_policy, random_world
from journeyman.testing.strategies import seeds, worlds


def highest_by_linear_program(row, error, values, possible):
    """max <p, values> over laws p with |p - row|_1 <= error, p = 0 where not possible."""
    size = row.size
    cost = np.concatenate([-values, np.zeros(size)])
    apart = np.block([[np.eye(size), -np.eye(size)], [-np.eye(size), -np.eye(size)]])
    within = np.concatenate([np.zeros(size), np.ones(size)])
    found = linprog(
        cost,
        A_ub=np.vstack([apart, within]),
        b_ub=np.concatenate([row, -row, [error]]),
        A_eq=[np.concatenate([np.ones(size), np.zeros(size)])],
        b_eq=[1.0],
        bounds=[(0, 1 if allowed else 0) for allowed in possible] + [(0, None)] * size,
    )
    return -found.fun


@st.composite
def balls(draw):
    """Sparse rows, errors from 0 to 2, values with ties, with and without a support."""
    rng = np.random.default_rng(draw(seeds))
    num_rows, num_states = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    stored = rng.random((num_rows, num_states)) < 0.6
    stored[:, rng.integers(num_states)] = True
    rows = np.where(stored, rng.exponential(size=stored.shape), 0.0)
    rows /= rows.sum(axis=1, keepdims=True)
    error = rng.choice([0.0, 0.1, 0.5, 1.0, 1.9, 2.0, rng.uniform(0, 2)], num_rows)
    values = rng.choice([rng.normal(size=num_states), rng.integers(-1, 2, num_states) * 1.0])
    possible = stored | (rng.random(stored.shape) < 0.5)
    known = draw(st.booleans())
    support = sparse.csr_array(possible.astype(float)) if known else None
    ball = LawBall(sparse.csr_array(rows), error, support)
    return ball, values, possible if known else np.ones_like(possible)


@given(balls())
def test_the_worst_law_is_that_of_the_linear_program(drawn):
    ball, values, possible = drawn
    highest, worst = ball.highest(values), ball.worst_rows(values).toarray()
    rows = ball.rows.toarray()
    for k in range(rows.shape[0]):
        exact = highest_by_linear_program(rows[k], ball.error[k], values, possible[k])
        assert highest[k] == pytest.approx(exact, abs=1e-8)
        assert worst[k] @ values == pytest.approx(highest[k], abs=1e-12)
    assert (worst @ values <= highest).all()
    assert (worst >= 0).all()
    np.testing.assert_allclose(worst.sum(axis=1), 1, atol=1e-12)
    assert (np.abs(worst - rows).sum(axis=1) <= ball.error + 1e-12).all()
    assert (worst[~possible] == 0).all()


@given(seeds)
def test_the_worst_law_within_a_divergence_is_that_of_the_convex_program(seed):
    """max <p, V> with KL(row, p) <= info: the bound is attained by a law of the ball, and no random
    law of the ball has more."""
    rng = np.random.default_rng(seed)
    size, stored = int(rng.integers(2, 7)), int(rng.integers(1, 7))
    row = np.zeros(size)
    places = rng.permutation(size)[: min(stored, size)]
    row[places] = rng.dirichlet(np.full(places.size, rng.choice([0.3, 1.0, 5.0])))
    row = np.where(row < 1e-6, 0.0, row) / row[row >= 1e-6].sum()
    values = rng.normal(size=size) * rng.choice([1e-3, 1.0, 1e4]) + rng.choice([0.0, 1e3])
    info = float(rng.choice([1e-6, 1e-3, 0.01, 0.1, 1.0, 5.0]))
    possible = (row > 0) | (rng.random(size) < 0.5)
    ball = LawBall(
        sparse.csr_array(row[np.newaxis]), np.array([2.0]),
        sparse.csr_array(possible[np.newaxis] * 1.0), Evidence.divergence(np.array([info])),
    )  # fmt: skip
    highest = float(ball.highest(values)[0])
    worst = ball.worst_rows(values).toarray()[0]
    span, seen = float(np.ptp(values)) + 1e-9, row > 0
    assert worst.sum() == pytest.approx(1.0, abs=1e-9)
    assert (worst[~possible] == 0).all()
    reached = np.maximum(worst[seen], 1e-12)
    assert row[seen] @ np.log(row[seen] / reached) <= info * (1 + 1e-4) + 1e-9
    assert worst @ values == pytest.approx(highest, abs=1e-6 * span + 1e-12 * abs(highest))
    others = row + rng.dirichlet(np.ones(size), 500) * rng.choice([1, 0.1, 0.01], (500, 1))
    others = np.where(possible, others, 0.0)
    others /= others.sum(axis=1, keepdims=True)
    diverged = (row[seen] * np.log(row[seen] / others[:, seen])).sum(axis=1)
    assert (others[diverged <= info] @ values <= highest + 1e-12 * np.abs(values).max()).all()


@given(seeds)
def test_the_worst_law_among_those_that_counts_allow_is_attained_and_not_exceeded(seed):
    rng = np.random.default_rng(seed)
    size, n = int(rng.integers(2, 7)), int(rng.choice([40, 500, 10**4, 10**6]))
    tally = rng.multinomial(n, rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0]))))
    rows, seen = sparse.csr_array(tally[np.newaxis] / n), tally > 0
    values = rng.normal(size=size) * rng.choice([1e-3, 1.0, 1e4]) + rng.choice([0.0, 1e3])
    _, evidence = Evidence.of(sparse.csr_array(tally[np.newaxis] * 1.0), [size], 10, 0.05)
    ball = LawBall(rows, np.array([2.0]), None, evidence)
    highest = float(ball.highest(values)[0])
    worst, span = ball.worst_rows(values).toarray()[0], float(np.ptp(values))
    assert worst.sum() == pytest.approx(1.0, abs=1e-9)
    assert worst @ values == pytest.approx(highest, abs=1e-5 * span + 1e-11 * abs(highest))
    assert evidence.at(rows, np.maximum(worst[seen], 1e-12))[0] <= evidence.allowed * (1 + 1e-3)
    aims = rng.dirichlet(np.full(size, 0.5), 300)
    others = worst + rng.choice([1, 0.1, 0.01, 1e-3], (300, 1)) * (aims - worst)
    for other in others:
        if evidence.at(rows, np.maximum(other[seen], 1e-300))[0] <= evidence.allowed:
            assert other @ values <= highest + 1e-12 * np.abs(values).max()


@given(balls())
def test_the_least_mean_mirrors_the_highest_and_keeps_the_simple_bound(drawn):
    ball, values, _ = drawn
    mean, half_span = ball.rows @ values, (values.max() - values.min()) / 2
    lowest = ball.lowest(values)
    np.testing.assert_allclose(lowest, -ball.highest(-values), rtol=0, atol=0)
    assert (lowest >= mean - ball.error * half_span - 1e-12).all()
    assert (lowest <= mean).all()


def test_rounding_over_very_many_rows_cannot_lower_the_bound():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), 200_000)
    ball = LawBall(sparse.csr_array(rows), np.full(len(rows), 0.3))
    values = np.array([0.0, 1.0, 5.0])
    moved = np.minimum(rows[:, 0], 0.15)
    exact = rows @ values + 5 * moved + 4 * np.minimum(rows[:, 1], 0.15 - moved)
    highest = ball.highest(values)
    assert (highest >= exact).all()
    np.testing.assert_allclose(highest, exact, atol=1e-9)


def within(world, errors, initial_error, rng, *, possible=None):
    """A world whose laws are within the distances of `world`'s, often as far as they may be."""
    rows = world.transition.toarray()
    allowed = np.ones_like(rows) if possible is None else possible
    other = rng.exponential(size=rows.shape) * (rng.random(rows.shape) < 0.5) * allowed
    first = np.argmax(rng.random(rows.shape) * allowed, axis=1)
    other[np.arange(len(rows)), first] += 1.0
    other /= other.sum(axis=1, keepdims=True)
    start = np.eye(world.num_states)[rng.integers(world.num_states)]
    pieces = []
    for law, aim, error in [
        *zip(rows, other, errors, strict=True), (world.initial, start, initial_error),
    ]:  # fmt: skip
        apart = np.abs(aim - law).sum()
        step = min(1.0, error / apart) if apart > 0 else 0.0
        pieces.append(law + step * rng.choice([1.0, 1.0, rng.random()]) * (aim - law))
    return jm.World(
        np.array(pieces[:-1]), pieces[-1], world.discount, choice_offsets=world.pairs.offsets
    )


@given(worlds(), seeds, st.booleans())
def test_no_world_within_the_distances_costs_more_than_robust_evaluation_says(world, seed, known):
    rng = np.random.default_rng(seed)
    policy, cost = random_policy(world, rng), rng.uniform(-1, 1, world.num_pairs)
    errors = rng.uniform(0, 0.5, world.num_pairs) * (rng.random(world.num_pairs) < 0.8)
    possible = None
    if known:
        possible = (
            (world.transition.toarray() > 0) | (rng.random(world.transition.shape) < 0.3)
        ) * 1
        world = jm.World(
            world.transition, world.initial, world.discount,
            choice_offsets=world.pairs.offsets, support=possible,
        )  # fmt: skip
    bound = worst_total(world, policy, cost, ModelError(errors, 0.1, 0.0))
    for _ in range(10):
        truth = within(world, errors, 0.1, rng, possible=possible)
        assert jm.expected_cost(truth, policy, cost) <= bound + 1e-12 * world.effective_horizon


def worst_by_value_iteration(world, policy, cost, errors, initial_error, sweeps):
    """The naive twin: repeated backups with one linear program per pair."""
    values, rows = np.zeros(world.num_states), world.transition.toarray()
    possible = np.ones(world.num_states, dtype=bool)
    for _ in range(sweeps):
        highest = [
            highest_by_linear_program(row, error, values, possible)
            for row, error in zip(rows, errors, strict=True)
        ]
        values = world.pairs.total(policy.per_pair * (cost + world.discount * np.array(highest)))
    return highest_by_linear_program(world.initial, initial_error, values, possible)


@pytest.mark.parametrize("seed", range(4))
def test_robust_evaluation_is_the_limit_of_robust_value_iteration(seed):
    world = random_world(seed, num_states=4, discount=0.5)
    rng = np.random.default_rng(seed)
    policy, cost = random_policy(world, rng), rng.uniform(-1, 1, world.num_pairs)
    errors = rng.uniform(0, 1, world.num_pairs)
    slow = worst_by_value_iteration(world, policy, cost, errors, 0.3, sweeps=40)
    assert worst_total(world, policy, cost, ModelError(errors, 0.3, 0.0)) == pytest.approx(
        slow, abs=1e-8
    )


@given(worlds(), seeds)
def test_without_errors_robust_evaluation_is_evaluation(world, seed):
    rng = np.random.default_rng(seed)
    policy, cost = random_policy(world, rng), rng.uniform(-1, 1, world.num_pairs)
    bound = worst_total(world, policy, cost, ModelError(np.zeros(world.num_pairs), 0.0, 0.0))
    exact = jm.expected_cost(world, policy, cost)
    assert exact - 1e-12 * world.effective_horizon <= bound
    assert bound <= exact + 1e-9 * world.effective_horizon


@given(worlds(), seeds)
def test_balls_of_all_laws_leave_only_the_first_step_to_the_model(world, seed):
    rng = np.random.default_rng(seed)
    policy, cost = random_policy(world, rng), rng.uniform(-1, 1, world.num_pairs)
    bound = worst_total(world, policy, cost, ModelError(np.full(world.num_pairs, 2.0), 2.0, 0.0))
    running = world.pairs.total(policy.per_pair * cost)
    assert bound == pytest.approx(running.max() * world.effective_horizon, rel=1e-9, abs=1e-9)
