"""Cloning in a large world is cloning, restricted to what was visited."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.policy.acting import Actor


class Large:
    """An explicit world that does not let on that it is one."""

    def __init__(self, world):
        for name in ("num_states", "num_actions", "discount", "draw_initial",
                     "initial_probability", "successors", "predecessors"):  # fmt: skip
            setattr(self, name, getattr(world, name))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 3.0])
def test_laws_are_those_of_the_table(smoothing):
    world, _, expert = jm.gallery.grid(5)
    demos = jm.record(world, expert, trajectories=6, horizon=4, seed=0)
    table = jm.clone(demos, world, smoothing=smoothing)
    cloned = jm.clone(demos, Large(world), smoothing=smoothing)
    everywhere = np.arange(world.num_states)
    assert cloned.probabilities(everywhere) == pytest.approx(
        table.probabilities(everywhere), abs=1e-15
    )
    visited = np.unique(demos.step_states)
    assert 0 < visited.size < world.num_states
    assert cloned.states.tolist() == visited.tolist()


def test_nothing_has_the_length_of_the_state_space():
    network = jm.gallery.queues(8)
    demos = jm.record(network.world, network.longer, trajectories=20, horizon=30, seed=0)
    cloned = jm.clone(demos, network.world)
    assert cloned.laws.shape[0] <= 20 * 30 + 1
    here = demos.step_states[:50]
    likeliest = cloned.probabilities(here).argmax(axis=1)
    assert (likeliest == demos.actions[:50]).mean() > 0.9
    unseen = cloned.probabilities([network.world.num_states - 1])
    assert unseen == pytest.approx(1 / network.world.num_actions)


def test_actions_are_drawn_from_the_laws():
    network = jm.gallery.queues(4)
    demos = jm.record(network.world, network.uniform, trajectories=1, horizon=1, seed=0)
    cloned = jm.clone(demos, network.world, smoothing=1.0)
    state, action = demos.step_states[0], demos.actions[0]
    drawn = cloned.sample(np.full(10_000, state), seed=0)
    share = (drawn == action).mean()
    assert abs(share - 2 / 5) < 4 * np.sqrt(0.24 / 10_000)
    again = cloned.seeded(0).predict(np.full(10_000, state))[0]
    assert (again == drawn).all()
    with pytest.warns(UserWarning, match="stochastic policy"):
        assert cloned.predict(state, deterministic=True)[0] == action
    assert (Actor(cloned, 0).sample(np.full(10_000, state)) == drawn).all()


def test_records_of_another_world_are_refused():
    network = jm.gallery.queues(4)
    demos = jm.Demonstrations.from_arrays([[0, network.world.num_states, 0]], [[0, 1]])
    with pytest.raises(jm.errors.InvalidDemonstrations, match="outside 0"):
        jm.clone(demos, network.world)
    demos = jm.Demonstrations.from_arrays([[0, 1, 0]], [[0, 4]])
    with pytest.raises(jm.errors.InvalidDemonstrations, match=r"actions\[1\] = 4 is outside"):
        jm.clone(demos, network.world)
