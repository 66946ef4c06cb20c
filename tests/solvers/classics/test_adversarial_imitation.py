"""GAIL: the discriminator is the best one, the objective falls, and the expert is matched."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize

import journeyman as jm
from journeyman.solvers.classics.adversarial_imitation import (
    LARGEST_LOGIT,
    Discriminator,
    demonstrated_measure,
)
from solved_problems import DEMONSTRATED, solved_problem

RNG = np.random.default_rng(0)
OURS, THEIRS = RNG.dirichlet(np.ones(12)), RNG.dirichlet(np.ones(12)) * (RNG.random(12) < 0.7)
FEATURES = RNG.normal(size=(12, 3))


def objective(logits, ours, theirs):
    return -(ours @ np.logaddexp(0, -logits) + theirs @ np.logaddexp(0, logits))


def test_a_tabular_discriminator_is_the_likelihood_ratio():
    found = Discriminator(None, 1e-3).fit(OURS, THEIRS)
    seen = THEIRS > 0
    assert np.allclose(np.exp(found.cost[seen]), (OURS / (OURS + THEIRS))[seen])
    assert (found.logits[~seen] == LARGEST_LOGIT).all()
    for other in RNG.uniform(-LARGEST_LOGIT, LARGEST_LOGIT, (50, 12)):
        assert objective(other, OURS, THEIRS) <= found.value + 1e-12


def test_a_log_linear_discriminator_is_the_maximum_another_method_finds():
    ridge = 1e-2
    found = Discriminator(FEATURES, ridge).fit(OURS, THEIRS)

    def loss(phi):
        penalty = ridge * THEIRS.sum() / 2 * phi @ phi
        return penalty - objective(FEATURES @ phi, OURS, THEIRS)

    other = optimize.minimize(loss, np.zeros(3), tol=1e-12)
    assert found.value == pytest.approx(-other.fun, abs=1e-9)
    assert np.allclose(found.parameters, other.x, atol=1e-4)


def test_log_d_is_the_gradient_of_the_objective():
    for features in (None, FEATURES):
        value = Discriminator(features, 1e-2).fit(OURS, THEIRS)
        for k in range(12):
            step = 1e-6 * np.eye(12)[k]
            ends = [
                Discriminator(features, 1e-2).fit(OURS + s, THEIRS).value for s in (step, -step)
            ]
            assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(value.cost[k], abs=1e-4)


def test_the_demonstrated_measure_is_that_of_the_expert_in_the_long_run():
    world, _, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=4000, horizon=120, seed=0)
    measure = demonstrated_measure(demos, world)
    assert measure.sum() == pytest.approx(world.effective_horizon)
    assert np.abs(measure - jm.occupancy(world, expert).measure).sum() < 0.6


@pytest.mark.parametrize("name", DEMONSTRATED)
@pytest.mark.parametrize("tabular", [False, True])
def test_the_expert_is_matched_and_the_objective_falls(name, tabular):
    problem = solved_problem(name, jm.EuclideanBall())
    events = []
    solver = jm.solvers.AdversarialImitation(tabular_discriminator=tabular, max_iterations=60)
    answer = jm.solve(problem, solver, observer=events.append)
    values = [event.objective for event in events if event.objective is not None]
    assert all(after <= before + 1e-9 for before, after in pairwise(values))
    assert values[-1] >= -np.log(4) - 1e-9
    assert answer.value < 0.5 * problem.gap(jm.Policy.uniform(problem.world))


def test_expectations_of_the_discriminators_features_are_matched():
    """With the cost basis as features and plain means, the gap itself goes to zero."""
    world, basis, expert = jm.gallery.grid(5, macro_cells=2)
    demos = jm.record(world, expert, trajectories=200, horizon=150, seed=1)
    means = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    problem = jm.Apprenticeship(world, basis, means, jm.EuclideanBall())
    answer = jm.solve(problem, jm.solvers.AdversarialImitation(ridge=1e-6))
    assert answer.value < 0.002 * problem.gap_scale
    assert answer.recovered.shape == (basis.num_costs,)


def test_sampled_runs_improve_and_count_their_steps():
    problem = solved_problem("grid, demonstrations", jm.EuclideanBall())
    solver = jm.solvers.AdversarialImitation(rollouts=100, max_iterations=40)
    gaps = [jm.solve(problem, solver, seed=seed).value for seed in range(3)]
    assert np.median(gaps) < 0.5 * problem.gap(jm.Policy.uniform(problem.world))
    short = jm.solve(
        problem, jm.solvers.AdversarialImitation(rollouts=7, horizon=9, max_iterations=3)
    )
    assert short.work.environment_steps == 3 * 7 * 9


def test_entropy_keeps_policies_random():
    problem = solved_problem("grid, demonstrations", jm.EuclideanBall())
    laws = [
        jm.solve(problem, jm.solvers.AdversarialImitation(entropy=weight, max_iterations=40)).policy
        for weight in (0.0, 1.0)
    ]
    plain, random = (-(law.per_pair * np.log(law.per_pair + 1e-300)).sum() for law in laws)
    assert random > plain


def test_demonstrations_are_needed_and_bad_figures_refused():
    with pytest.raises(jm.errors.InvalidProblem, match="needs demonstrations"):
        jm.solve(solved_problem("two cells", jm.Simplex()), jm.solvers.AdversarialImitation())
    for wrong in ({"ridge": 0.0}, {"entropy": -1.0}, {"radius": np.inf}, {"rollouts": 2.5}):
        with pytest.raises(jm.errors.InvalidSolver):
            jm.solvers.AdversarialImitation(**wrong)


def test_a_ridge_too_small_to_be_seen_beside_costs_that_repeat_each_other():
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=5, horizon=20, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    answers = [
        jm.solve(problem, jm.solvers.AdversarialImitation(ridge=ridge, max_iterations=10))
        for ridge in (1e-9, 1e-300)
    ]
    assert answers[1].value == pytest.approx(answers[0].value, rel=0.05)
