import numpy as np
import pytest

import journeyman as jm
from journeyman.testing import random_world

WORLD = jm.World(np.full((6, 3), 1 / 3), [1, 0, 0], 0.9, choice_offsets=[0, 2, 3, 6])
SEEN = jm.Demonstrations([0, 0, 0, 0, 1, 0], [1, 1, 0, 1, 0], [0, 5])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 3.0])
def test_frequencies_are_smoothed_per_action(smoothing):
    law = jm.clone(SEEN, WORLD, smoothing=smoothing).probabilities([0])[0]
    total = 4 + 2 * smoothing
    np.testing.assert_allclose(law, [(1 + smoothing) / total, (3 + smoothing) / total, 0])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_state_never_visited_gets_the_uniform_law(smoothing):
    law = jm.clone(SEEN, WORLD, smoothing=smoothing).probabilities([2])[0]
    np.testing.assert_allclose(law, 1 / 3)


def test_without_smoothing_an_action_never_shown_is_never_taken():
    shown = jm.Demonstrations([0, 2, 2, 0], [1, 2, 2], [0, 3])
    assert jm.clone(shown, WORLD, smoothing=0).per_pair.tolist() == [0, 1, 1, 0, 0, 1]


def test_by_default_every_action_stays_possible():
    assert (jm.clone(SEEN, WORLD).per_pair > 0).all()


def test_much_data_gives_the_expert_back():
    world = random_world(0)
    expert = jm.policy.extract(world, np.random.default_rng(0).random(world.num_pairs))
    demos = jm.record(world, expert, trajectories=2000, horizon=20, seed=1)
    np.testing.assert_allclose(jm.clone(demos, world).per_pair, expert.per_pair, atol=0.03)


def test_recorded_demonstrations_know_their_action_sets():
    world = random_world(0)
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=5, horizon=20, seed=1)
    np.testing.assert_array_equal(jm.clone(demos).per_pair, jm.clone(demos, world).per_pair)


def test_demonstrations_of_unknown_origin_need_a_world():
    with pytest.raises(jm.errors.InvalidDemonstrations, match="Give the world"):
        jm.clone(SEEN)


def test_steps_that_cannot_be_are_refused():
    cycle = jm.World([[0, 1], [1, 0]], [1, 0], 0.9)
    with pytest.raises(jm.errors.InvalidDemonstrations, match="has probability 0"):
        jm.clone(jm.Demonstrations([0, 0], [0], [0, 1]), cycle)


@pytest.mark.parametrize("smoothing", [-0.1, np.nan, np.inf])
def test_smoothing_is_a_finite_number_from_zero(smoothing):
    with pytest.raises(jm.errors.InvalidDemonstrations, match="smoothing"):
        jm.clone(SEEN, WORLD, smoothing=smoothing)
