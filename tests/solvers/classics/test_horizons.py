"""Soft-optimal experts of episodes: against a twin that goes through them step by step."""

import numpy as np
import pytest

import journeyman as jm
from naive.horizon import backward_values

STEPS = 6


@pytest.fixture(scope="module")
def example():
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=200, horizon=STEPS, seed=3)
    return world, basis, expert, demos


def soft_laws(world, cost, discount):
    """(steps x pairs): the soft-optimal laws at temperature 1 of every step."""
    P, offsets = world.transition.toarray(), world.pairs.offsets
    values = backward_values(P, offsets, cost, STEPS, discount, temperature=1.0)
    later = np.vstack([values[1:], np.zeros(world.num_states)])
    return np.array([
        np.exp(now[world.pairs.states] - cost - discount * P @ then)
        for now, then in zip(values, later, strict=True)
    ])  # fmt: skip


@pytest.mark.parametrize("discount", [1.0, 0.95, 0.5])
def test_maximum_entropy_is_that_of_an_episode(example, discount):
    world, basis, expert, _ = example
    there = world.with_horizon(STEPS, discount)
    target = jm.ExpertExpectation(jm.occupancy(there, expert).expectations(basis))
    answer = jm.solve(jm.Apprenticeship(there, basis, target), jm.solvers.MaximumEntropy())
    laws = soft_laws(world, np.asarray(basis.on(world) @ answer.recovered), discount)
    found = [answer.policy.at_step(t).per_pair for t in range(STEPS)]
    assert np.array(found) == pytest.approx(laws, abs=1e-9)
    assert answer.log.startswith("matched")


@pytest.mark.parametrize("discount", [1.0, 0.5])
def test_maximum_likelihood_is_that_of_an_episode(example, discount):
    world, basis, _, demos = example
    problem = jm.Apprenticeship(world.with_horizon(STEPS, discount), basis, demos)
    answer = jm.solve(problem, jm.solvers.MaximumLikelihood(starts=1))
    pairs = demos.pairs_in(world)

    def log_likelihood(weights):
        laws = soft_laws(world, np.asarray(basis.on(world) @ weights), discount)
        return float(np.log(laws[demos.step_times, pairs]).sum())

    most = log_likelihood(answer.recovered)
    assert answer.likelihood.log_likelihood == pytest.approx(most, abs=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(5):
        aside = answer.recovered + 0.05 * rng.normal(size=basis.num_costs)
        assert log_likelihood(aside) < most
