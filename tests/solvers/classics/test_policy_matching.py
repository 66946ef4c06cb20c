"""Policy matching: its gradient by finite differences, its metric, and experts it finds again."""

import re

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.classics.answering import expert_policy
from journeyman.solvers.classics.policy_matching import Mismatch
from journeyman.testing import Shape, random_problem
from solved_problems import solved_problem

MATCHED = (jm.Status.CONVERGED, jm.Status.OPTIMAL)


def smoothed_expert(world, basis, weights, sharpness=1.0):
    """The policy that policy matching makes of `weights`, by plain value iteration."""
    cost, values = basis.on(world) @ weights, np.zeros(world.num_states)
    for _ in range(2000):
        Q = cost + world.discount * (world.transition @ values)
        values = np.minimum.reduceat(Q, world.pairs.offsets[:-1])
    odds = np.exp(-sharpness * (Q - world.pairs.spread(values)))
    totals = np.add.reduceat(odds, world.pairs.offsets[:-1])
    return jm.Policy(odds / world.pairs.spread(totals), world.pairs.offsets)


def declared(world, basis, expert, cost_class=None):
    values = jm.occupancy(world, expert).expectations(basis)
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(values), cost_class)


def mismatch_of(seed, shape=Shape.RAGGED, sharpness=1.3):
    problem = random_problem(seed, shape=shape, trajectories=10)
    return Mismatch(problem, expert_policy(problem, None, "test"), sharpness)


@pytest.mark.parametrize("shape", list(Shape), ids=lambda shape: shape.name)
def test_the_gradient_is_that_of_finite_differences(shape):
    mismatch = mismatch_of(4, shape)
    rng = np.random.default_rng(0)
    for w in rng.uniform(-1, 1, (3, 3)):
        gradient = mismatch.slope(mismatch.at(w)).gradient
        step = 1e-6
        differences = [
            (mismatch.at(w + step * e).value - mismatch.at(w - step * e).value) / (2 * step)
            for e in np.eye(3)
        ]
        assert gradient == pytest.approx(differences, rel=1e-4, abs=1e-7)


def test_the_natural_gradient_is_that_of_the_policies_metric():
    mismatch, step = mismatch_of(1), 1e-6
    w = np.array([0.3, -0.5, 0.8])
    slope = mismatch.slope(mismatch.at(w))
    D = np.column_stack([
        (mismatch.at(w + step * e).law - mismatch.at(w - step * e).law) / (2 * step)
        for e in np.eye(3)
    ])  # fmt: skip
    G = D.T @ (mismatch.density[:, np.newaxis] * D)
    assert np.linalg.matrix_rank(G) == 3
    assert slope.natural == pytest.approx(-np.linalg.solve(G, slope.gradient) / 2, rel=1e-4)


def test_the_mismatch_is_the_papers():
    problem = solved_problem("garnet, demonstrations", jm.InfinityBall())
    mismatch = Mismatch(problem, expert_policy(problem, None, "test"), 0.7)
    w = np.random.default_rng(2).uniform(-1, 1, problem.basis.num_costs)
    demos, world = problem.demonstrations, problem.world
    visits = np.zeros(world.num_states)
    for state, t in zip(demos.step_states, demos.step_times, strict=True):
        visits[state] += world.discount**t
    visits /= visits.sum()
    clone = jm.clone(demos, world, smoothing=0).per_pair.reshape(world.num_states, -1)
    law = smoothed_expert(world, problem.basis, w, 0.7).per_pair.reshape(clone.shape)
    assert mismatch.at(w).value == pytest.approx(visits @ ((law - clone) ** 2).sum(axis=1))


@pytest.mark.parametrize("stay", [False, True])
def test_a_smoothed_expert_is_found_again_on_a_grid(stay):
    world, basis, _ = jm.gallery.grid(6, macro_cells=3, stay=stay)
    weights = np.random.default_rng(3).uniform(-1, 1, basis.num_costs)
    expert = smoothed_expert(world, basis, weights)
    answer = jm.solve(declared(world, basis, expert), jm.solvers.PolicyMatching(expert=expert))
    assert answer.status in MATCHED
    assert answer.policy.per_pair == pytest.approx(expert.per_pair, abs=1e-4)
    difference = answer.recovered - weights
    assert np.ptp(difference) < 1e-3  # a constant cost changes no policy
    assert answer.value < 0.05


def test_demonstrations_are_matched_better_than_they_are_cloned():
    world, basis, _ = jm.gallery.grid(6, macro_cells=2, seed=5)
    expert = smoothed_expert(world, basis, np.array([1.5, -1.0, 0.5, 0.0]))
    demos = jm.record(world, expert, trajectories=60, horizon=40, seed=1)
    answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.PolicyMatching())
    found = np.abs(answer.policy.per_pair - expert.per_pair).mean()
    cloned = np.abs(jm.clone(demos, world).per_pair - expert.per_pair).mean()
    assert found < cloned / 3
    assert "cloned from 60 demonstrations" in answer.log


def test_sharpness_and_weights_matter_as_a_product():
    world, basis, _ = jm.gallery.garnet(15, num_costs=4, seed=3)
    expert = smoothed_expert(world, basis, np.array([1.0, -2.0, 0.5, 0.3]))
    problem = declared(world, basis, expert)
    one = jm.solve(problem, jm.solvers.PolicyMatching(expert=expert))
    other = jm.solve(problem, jm.solvers.PolicyMatching(4.0, expert=expert))
    assert 4 * other.recovered == pytest.approx(one.recovered, abs=1e-4)


def test_the_mismatch_never_grows_even_where_steps_must_be_halved():
    world, basis, _ = jm.gallery.grid(5, macro_cells=3)
    expert = smoothed_expert(world, basis, np.random.default_rng(0).uniform(-1, 1, 9))
    demos = jm.record(world, expert, trajectories=30, horizon=40, seed=0)
    trace = []
    solver = jm.solvers.PolicyMatching(max_iterations=12)
    answer = jm.solve(jm.Apprenticeship(world, basis, demos), solver, observer=trace.append)
    values = [event.objective for event in trace]
    assert len(values) == answer.work.iterations == 12
    assert answer.work.forward_solves > 20
    assert (np.diff(values) <= 0).all()
    assert values[-1] < values[0]


def test_the_mismatch_bounds_how_differently_they_act():
    world, basis, expert = jm.gallery.grid(5, macro_cells=3, seed=2)
    solver = jm.solvers.PolicyMatching(expert=expert, max_iterations=15)
    answer = jm.solve(declared(world, basis, expert), solver)
    J = float(re.search(r"to (\S+);", answer.log)[1])
    visits = jm.occupancy(world, expert).of_states * (1 - world.discount)
    apart = answer.policy.per_pair - expert.per_pair
    assert pytest.approx(visits @ world.pairs.total(apart**2), rel=1e-4) == J
    assert visits @ world.pairs.total(np.abs(apart)) <= np.sqrt(world.num_actions * J) * 1.001


def test_at_the_origin_the_expert_takes_the_place_of_the_optimal_policy():
    mismatch = mismatch_of(3)
    world, expert = mismatch.problem.world, mismatch.expert.policy
    averaging = np.zeros((world.num_states, world.num_pairs))
    averaging[world.pairs.states, np.arange(world.num_pairs)] = expert.per_pair
    P, Psi = world.transition.toarray(), mismatch.problem.cost_matrix
    V = np.linalg.solve(np.eye(len(averaging)) - world.discount * averaging @ P, averaging @ Psi)
    Q, uniform = Psi + world.discount * P @ V, world.pairs.uniform[:, np.newaxis]
    against = Q - world.pairs.spread(world.pairs.total(uniform * Q))
    moved = -1.3 * uniform * against
    wrong = mismatch.density * (world.pairs.uniform - expert.per_pair)
    slope = mismatch.slope(mismatch.at(np.zeros(3)))
    assert slope.gradient == pytest.approx(2 * moved.T @ wrong)


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_costs_may_be_parametrised_otherwise(iterations):
    """Psi M and M^-1 w: the natural gradient goes through the same policies."""
    world, basis, expert = jm.gallery.garnet(15, num_costs=4, randomness=0.5, seed=6)
    M = np.random.default_rng(1).normal(size=(4, 4)) * [1.0, 10.0, 0.1, 1.0]
    assert np.linalg.cond(M) > 10
    turned = jm.CostBasis(basis.matrix @ M)
    solver = jm.solvers.PolicyMatching(expert=expert, max_iterations=iterations)
    one, other = (jm.solve(declared(world, psi, expert), solver) for psi in (basis, turned))
    assert one.policy.per_pair == pytest.approx(other.policy.per_pair, abs=1e-5)
    assert M @ other.recovered == pytest.approx(one.recovered, rel=1e-4, abs=1e-5)


def test_costs_of_very_different_sizes_are_all_used():
    world, basis, expert = jm.gallery.garnet(15, num_costs=4, randomness=0.5, seed=6)
    sizes = np.array([1e-9, 1.0, 1e9, 1e3])
    solver = jm.solvers.PolicyMatching(expert=expert)
    one = jm.solve(declared(world, basis, expert), solver)
    other = jm.solve(declared(world, jm.CostBasis(basis.matrix * sizes), expert), solver)
    assert sizes * other.recovered == pytest.approx(one.recovered, rel=1e-4)


def test_a_cost_that_changes_nothing_is_left_alone():
    world, basis, expert = jm.gallery.garnet(12, num_costs=3, randomness=0.5, seed=2)
    constant = np.column_stack([basis.matrix, np.ones(world.num_states)])
    problem = declared(world, jm.CostBasis(constant), expert)
    answer = jm.solve(problem, jm.solvers.PolicyMatching(expert=expert))
    plain = jm.solve(declared(world, basis, expert), jm.solvers.PolicyMatching(expert=expert))
    assert abs(answer.recovered[-1]) < 1e-5
    assert answer.recovered[:-1] == pytest.approx(plain.recovered, abs=1e-3)


def test_a_deterministic_expert_is_approached():
    world, basis, expert = jm.gallery.garnet(20, randomness=0, seed=1)
    answer = jm.solve(declared(world, basis, expert), jm.solvers.PolicyMatching(expert=expert))
    assert answer.policy.per_pair == pytest.approx(expert.per_pair, abs=0.01)
    assert answer.value < 0.05


def test_extreme_weights_stay_finite():
    mismatch = mismatch_of(2)
    point = mismatch.at(np.array([1e200, -1e200, 1e200]))
    slope = mismatch.slope(point)
    assert np.isfinite(point.value)
    assert np.isfinite(slope.natural).all()


def test_what_cannot_be_used_is_refused():
    problem = solved_problem("garnet", jm.InfinityBall())
    with pytest.raises(jm.errors.InvalidProblem, match="PolicyMatching needs demonstrations"):
        jm.solve(problem, jm.solvers.PolicyMatching())
    with pytest.raises(jm.errors.InvalidSolver, match="sharpness = 0"):
        jm.solvers.PolicyMatching(0)
    with pytest.raises(jm.errors.InvalidSolver, match="expert is a str"):
        jm.solvers.PolicyMatching(expert="clone")
