"""Standard errors of maximum likelihood: intervals of 95 % hold the true weights that often."""

import numpy as np
import pytest

import journeyman as jm

REPLICATIONS = 300
NORMAL = 1.959964


def engine():
    return jm.gallery.engine_replacement(30, discount=0.99, weights=(60.0, 4.0)), (60.0, 4.0)


def town():
    weights = (0.8, 0.5, 0.7, 0.6)
    made = jm.gallery.road_network(40, discount=1, weights=weights, steps_at_most=1e3)
    return made, weights


def episodes():
    world, basis, _ = jm.gallery.engine_replacement(12, discount=0.9)
    short, weights = world.with_horizon(20), (150.0, 3.0)
    expert = jm.policy.soft_plan(short, basis.on(world) @ weights).policy
    return (short, basis, expert), weights


@pytest.mark.slow
@pytest.mark.parametrize("made", [engine, town, episodes])
def test_intervals_hold_the_true_weights(made):
    (world, basis, expert), true = made()
    solver, held, z = jm.solvers.MaximumLikelihood(starts=1), [], []
    for seed in range(REPLICATIONS):
        demos = jm.record(world, expert, trajectories=80, horizon=60, seed=seed)
        found = solver.estimate([(world, basis, demos)])
        assert found.status is jm.Status.CONVERGED
        score = (found.weights - true) / found.standard_errors
        held.append(np.abs(score) <= NORMAL)
        z.append(score)
    share = np.mean(held, axis=0)
    assert (share >= 0.90).all(), share
    assert (share <= 0.98).all(), share
    assert (np.abs(np.mean(z, axis=0)) < 0.5).all()
