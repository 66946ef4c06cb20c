"""Maximum likelihood: derivatives, an independent nested fixed point, what is not identified."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.classics.maximum_likelihood import _Member, _Sample
from journeyman.testing import Shape, check_solver, random_world
from naive.likelihood import estimate, log_likelihood

ENDED = (jm.Status.CONVERGED, jm.Status.OPTIMAL)


def simulated(seed, *, shape=Shape.DENSE, num_costs=3, discount=0.9, trajectories=40, horizon=25):
    """A problem whose expert is soft-optimal for known weights."""
    rng = np.random.default_rng(seed)
    world = random_world(rng, shape, num_states=6, discount=discount)
    basis = jm.CostBasis(rng.uniform(-1, 1, (world.num_pairs, num_costs)))
    true = rng.normal(size=num_costs)
    expert = jm.policy.soft_plan(world, basis.on(world) @ true).policy
    demos = jm.record(world, expert, trajectories=trajectories, horizon=horizon, seed=seed)
    return jm.Apprenticeship(world, basis, demos), true


def dense_of(problem):
    world = problem.world
    shape = (world.num_states, world.num_actions)
    counts = np.bincount(problem.demonstrations.pairs_in(world), minlength=world.num_pairs)
    return (
        world.transition.toarray().reshape(*shape, -1), problem.cost_matrix.reshape(*shape, -1),
        world.discount, counts.reshape(shape),
    )  # fmt: skip


def sample_of(problem):
    return _Sample([_Member(problem.world, problem.basis, problem.demonstrations)])


@pytest.mark.parametrize("shape", [Shape.DENSE, Shape.RAGGED, Shape.ABSORBING, Shape.PERIODIC])
@pytest.mark.parametrize("size", [0.3, 3.0])
def test_derivatives_are_those_of_finite_differences(shape, size):
    problem, _ = simulated(1, shape=shape)
    sample = sample_of(problem)
    rng = np.random.default_rng(0)
    point = sample.at(size * rng.normal(size=3))
    for direction in rng.normal(size=(3, 3)):
        ahead, behind = (sample.at(point.weights + s * 1e-4 * direction) for s in (1, -1))
        slope = (ahead.value - behind.value) / 2e-4
        assert slope == pytest.approx(point.gradient @ direction, rel=1e-5, abs=1e-4)
        turn = (behind.gradient - ahead.gradient) / 2e-4
        product = point.observed @ direction
        np.testing.assert_allclose(product, turn, rtol=1e-4, atol=1e-5 * np.abs(turn).max() + 1e-4)


def test_fishers_information_is_the_observed_one_for_expected_counts():
    problem, _ = simulated(2)
    sample = sample_of(problem)
    member, weights = sample.members[0], np.array([1.0, -0.5, 0.3])
    law = np.exp(sample.at(weights).soft[0].log_law)
    member.counts = problem.world.pairs.spread(member.visits) * law
    point = sample.at(weights)
    np.testing.assert_allclose(point.observed, point.fisher, rtol=1e-9)
    np.testing.assert_allclose(point.gradient, 0, atol=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_estimates_are_those_of_an_independent_nested_fixed_point(seed):
    discount = (0.5, 0.9, 0.99, 0.9999)[seed % 4]
    problem, _ = simulated(seed, discount=discount, num_costs=2 + seed % 2)
    answer = jm.solve(problem, jm.solvers.MaximumLikelihood())
    assert answer.status in ENDED
    found = answer.likelihood
    weights, value = estimate(*dense_of(problem))
    assert found.log_likelihood == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(answer.recovered, weights, rtol=0, atol=1e-4)
    assert log_likelihood(answer.recovered, *dense_of(problem)) == pytest.approx(
        found.log_likelihood, abs=1e-7
    )


def test_a_constant_cost_and_equal_costs_are_not_identified():
    problem, _ = simulated(3, num_costs=2)
    psi = problem.cost_matrix
    basis = jm.CostBasis(
        np.column_stack([psi, psi[:, 0] + 2 * psi[:, 1], np.ones(len(psi))]),
        names=["a", "b", "both", "constant"],
    )
    more = jm.Apprenticeship(problem.world, basis, problem.demonstrations)
    answer = jm.solve(more, jm.solvers.MaximumLikelihood())
    plain = jm.solve(problem, jm.solvers.MaximumLikelihood())
    found = answer.likelihood
    assert answer.status in ENDED
    assert found.log_likelihood == pytest.approx(plain.likelihood.log_likelihood, abs=1e-7)
    assert found.num_identified == 2
    assert len(found.remarks) == 2
    assert any(one.endswith(": constant") for one in found.remarks)
    assert any("both" in one and " a" in one and " b" in one for one in found.remarks)
    assert np.isinf(found.standard_errors).all()
    assert answer.recovered[3] == pytest.approx(0, abs=1e-9)
    along = np.array([1.0, 2.0, -1.0, 0.0])
    assert answer.recovered @ along == pytest.approx(0, abs=1e-6)


def test_weights_that_do_not_take_part_keep_their_errors():
    problem, _ = simulated(3, num_costs=2)
    basis = jm.CostBasis(np.column_stack([problem.cost_matrix, np.ones(problem.world.num_pairs)]))
    more = jm.Apprenticeship(problem.world, basis, problem.demonstrations)
    found = jm.solve(more, jm.solvers.MaximumLikelihood()).likelihood
    plain = jm.solve(problem, jm.solvers.MaximumLikelihood()).likelihood
    np.testing.assert_allclose(found.standard_errors[:2], plain.standard_errors, rtol=1e-6)
    np.testing.assert_allclose(found.t_values[:2], plain.t_values, rtol=1e-5)
    assert found.standard_errors[2] == np.inf
    assert found.t_values[2] == 0
    assert "0.0000" not in found.table()


def test_experts_who_never_err_have_no_finite_weights():
    world, basis, _ = jm.gallery.grid(4, macro_cells=2)
    weights = np.array([1.0, 0.4, 0.7, 0.0])
    expert = jm.plan(world, basis.on(world) @ weights).policy
    demos = jm.record(world, expert, trajectories=20, horizon=30, seed=0)
    answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.MaximumLikelihood())
    sure = jm.World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    always = jm.Demonstrations([0] * 6, [1] * 5, [0, 5])
    problem = jm.Apprenticeship(sure, jm.CostBasis([[1.0], [0.0]]), always)
    certain = jm.solve(problem, jm.solvers.MaximumLikelihood())
    assert certain.status is jm.Status.UNBOUNDED
    assert certain.recovered[0] > 5
    assert "rises along it for ever" in certain.log
    assert certain.likelihood.standard_errors.tolist() == [np.inf]
    assert answer.status in (*ENDED, jm.Status.UNBOUNDED)


def test_nothing_to_decide_is_nothing_to_estimate():
    problem, _ = simulated(4, shape=Shape.SINGLE_ACTION)
    answer = jm.solve(problem, jm.solvers.MaximumLikelihood())
    assert answer.recovered.tolist() == [0, 0, 0]
    assert answer.likelihood.log_likelihood == 0
    assert answer.likelihood.num_identified == 0


def test_a_likelihood_ratio_needs_the_same_decisions_and_a_part_of_the_basis():
    problem, _ = simulated(5)
    part = jm.Apprenticeship(
        problem.world, jm.CostBasis(problem.cost_matrix[:, :1] + 0.5), problem.demonstrations
    )
    other, _ = simulated(6)
    solver = jm.solvers.MaximumLikelihood()
    larger, restricted, foreign = (jm.solve(one, solver) for one in (problem, part, other))
    test = jm.solvers.likelihood_ratio(larger, restricted)
    gain = larger.likelihood.log_likelihood - restricted.likelihood.log_likelihood
    assert test.statistic == pytest.approx(2 * gain)
    assert test.degrees_of_freedom == 2
    assert test.p_value == pytest.approx(np.exp(-test.statistic / 2))
    with pytest.raises(jm.errors.InvalidProblem, match="no combination"):
        jm.solvers.likelihood_ratio(restricted, larger)
    with pytest.raises(jm.errors.InvalidProblem, match="different decisions"):
        jm.solvers.likelihood_ratio(larger, foreign)
    with pytest.raises(jm.errors.InvalidProblem, match="nothing to test"):
        jm.solvers.likelihood_ratio(larger, larger)
    with pytest.raises(jm.errors.InvalidProblem, match="no likelihood"):
        jm.solvers.likelihood_ratio(larger, jm.solve(problem, jm.LinearProgram()))


def test_all_decisions_count_alike_where_maximum_entropy_discounts_them():
    """On complete records weighted by discount^t both find the same cost: one-step episodes."""
    world = jm.World(
        [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 0.0], 0.9, choice_offsets=[0, 2, 3], sink=1
    )
    basis = jm.CostBasis([[1.0], [0.0], [0.0]])
    demos = jm.Demonstrations(
        [0, 1] * 8, [0, 1, 1, 0, 1, 1, 1, 1], np.arange(9), terminated=[True] * 8
    )
    problem = jm.Apprenticeship(world, basis, demos)
    by_entropy = jm.solve(problem, jm.solvers.MaximumEntropy(tolerance=1e-9)).recovered
    by_likelihood = jm.solve(problem, jm.solvers.MaximumLikelihood()).recovered
    np.testing.assert_allclose(by_entropy, by_likelihood, atol=1e-5)
    assert by_likelihood[0] == pytest.approx(np.log(3), abs=1e-6)


@pytest.mark.parametrize(
    "wrong", [{"tolerance": 0}, {"starts": 0}, {"max_iterations": 0}, {"start": (np.nan,)}]
)
def test_hyperparameters_are_checked(wrong):
    with pytest.raises(jm.errors.InvalidSolver):
        jm.solvers.MaximumLikelihood(**wrong)


def test_a_start_has_one_weight_per_cost():
    problem, _ = simulated(1)
    with pytest.raises(jm.errors.InvalidSolver, match="start has 1 weights"):
        jm.solve(problem, jm.solvers.MaximumLikelihood(start=(1.0,)))


def test_it_keeps_what_every_solver_promises():
    check_solver(jm.solvers.MaximumLikelihood(), trajectories=20, seeds=1)
