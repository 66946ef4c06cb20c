import numpy as np
import pytest

import journeyman as jm


@pytest.mark.parametrize(
    ("num_states", "num_actions", "branching"), [(60, 3, 4), (5, 2, 5), (1, 1, 1), (9, 2, 1)]
)
def test_every_pair_leads_to_as_many_states_as_asked(num_states, num_actions, branching):
    world, basis, expert = jm.gallery.garnet(num_states, num_actions, branching, num_costs=3)
    assert world.pairs == jm.world.Pairs.rectangular(num_states, num_actions)
    assert (np.diff(world.transition.indptr) == branching).all()
    np.testing.assert_allclose(world.transition.sum(axis=1), 1.0)
    assert world.initial.tolist() == [1 / num_states] * num_states
    assert basis.matrix.shape == (num_states, 3)
    assert expert.pairs == world.pairs


def test_costs_are_fields_between_zero_and_one():
    basis = jm.gallery.garnet(500, 2, 3).basis
    assert basis.num_costs == 8
    assert (basis.lowest >= 0).all()
    assert (basis.lowest < 0.05).all()
    assert (basis.highest <= 1).all()
    assert (basis.highest > 0.95).all()


def test_all_states_are_reached_alike():
    world = jm.gallery.garnet(40, 5, 6).world
    entered = np.bincount(world.transition.indices, minlength=40)
    sigma = np.sqrt(1200 / 40)
    assert (np.abs(entered - 1200 / 40) <= 5 * sigma).all()


def test_probabilities_are_pieces_of_a_uniformly_cut_stick():
    pieces = jm.gallery.garnet(400, 5, 4).world.transition.data
    sigma = np.sqrt(3 / 80 / pieces.size)
    assert pieces.mean() == pytest.approx(1 / 4)
    assert np.mean(pieces**2) == pytest.approx(1 / 10, abs=5 * sigma)


def test_the_expert_mixes_an_optimal_policy_with_uniform_actions():
    expert = jm.gallery.garnet(30, 4, 3, randomness=0.4).expert
    laws = np.sort(expert.probabilities(np.arange(30)), axis=1)
    np.testing.assert_allclose(laws, [[0.1, 0.1, 0.1, 0.7]] * 30)


def test_the_seed_decides_everything():
    first, again, other = (jm.gallery.garnet(20, 3, 2, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(
        first.world.transition.toarray(), again.world.transition.toarray()
    )
    np.testing.assert_array_equal(first.basis.matrix, again.basis.matrix)
    np.testing.assert_array_equal(first.expert.per_pair, again.expert.per_pair)
    assert not np.array_equal(first.world.transition.indices, other.world.transition.indices)
    assert not np.array_equal(first.basis.matrix, other.basis.matrix)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"branching": 0}, "0, num_costs"),
        ({"num_states": 3, "branching": 4}, "garnet\\(3, 4, 4"),
        ({"num_actions": 0}, "garnet\\(100, 0"),
        ({"num_costs": 0}, "num_costs=0"),
    ],
)
def test_garnets_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        jm.gallery.garnet(**arguments)
