"""Statistical truths over many seeded runs: `make slow`."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.testing import Shape, random_world
from journeyman.testing.random_worlds import random_policy

pytestmark = pytest.mark.slow
RUNS = 4000


@pytest.mark.parametrize("shape", list(Shape), ids=lambda shape: shape.name)
def test_expectations_from_demonstrations_are_unbiased_up_to_the_truncated_mass(shape):
    world = random_world(11, shape, discount=0.9)
    expert = random_policy(world, 12)
    basis = jm.CostBasis(np.random.default_rng(13).uniform(-1, 1, (world.num_states, 3)))
    true = jm.occupancy(world, expert).expectations(basis)
    demos = jm.record(world, expert, trajectories=RUNS, horizon=60, seed=14)
    found = jm.ExpertExpectation.from_demonstrations(demos, basis, world)
    allowed = 4.5 * found.spread / np.sqrt(RUNS) + basis.norms * found.truncation_mass + 1e-12
    assert (np.abs(found.values - true) <= allowed).all()


def test_the_stated_spread_is_the_spread_of_the_mean():
    world, basis, expert = jm.gallery.garnet(30, num_costs=3, seed=1)
    means, spreads = [], []
    for seed in range(400):
        demos = jm.record(world, expert, trajectories=50, horizon=120, seed=seed)
        found = jm.ExpertExpectation.from_demonstrations(demos, basis, world)
        means.append(found.values)
        spreads.append(found.spread)
    predicted = np.sqrt(np.mean(np.square(spreads), axis=0) / 50)
    assert np.std(means, axis=0, ddof=1) == pytest.approx(predicted, rel=0.12)


def test_history_dependent_and_stationary_recording_agree_in_law():
    world = random_world(5, Shape.DENSE, discount=0.8)
    policy = random_policy(world, 6)
    basis = jm.CostBasis(np.random.default_rng(7).uniform(-1, 1, (world.num_pairs, 2)))

    def expert(states, actions, rng):
        return int(policy.sample(states[-1:], rng)[0])

    settings = {"trajectories": 2000, "horizon": 40}
    found = [
        jm.ExpertExpectation.from_demonstrations(
            jm.record(world, kind, seed=8, **settings), basis, world
        )
        for kind in (policy, expert)
    ]
    error = np.sqrt(sum(part.spread**2 for part in found) / settings["trajectories"])
    assert (np.abs(found[0].values - found[1].values) <= 4.5 * error).all()


def test_the_gap_to_the_expert_shrinks_like_the_root_of_the_demonstrations():
    world, basis, expert = jm.gallery.grid(8, macro_cells=2)
    truth = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    exact = jm.Apprenticeship(world, basis, truth)
    medians = []
    for trajectories in (50, 800):
        gaps = []
        for seed in range(25):
            demos = jm.record(world, expert, trajectories=trajectories, horizon=200, seed=seed)
            answer = jm.solve(jm.Apprenticeship(world, basis, demos))
            gaps.append(exact.gap(answer.occupancy))
        medians.append(np.median(gaps))
    assert 2.5 <= medians[0] / medians[1] <= 6.5
