"""Episodes are independent whoever draws them, also those of a policy with its own stream."""

import numpy as np

import journeyman as jm
from journeyman.demonstrations.simulation import EPISODES_PER_TASK, WorldSimulator, record_totals

NETWORK = jm.gallery.queues(4, buffers=(3, 2, 2, 3))


class OwnStream:
    """Draws from a generator that nobody can reach, as a network does."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return self.rng.integers(NETWORK.world.num_actions, size=np.shape(observation)), state


def test_workers_do_not_share_the_luck_of_a_policy_with_its_own_stream():
    simulator = WorldSimulator(NETWORK.world, NETWORK.costs)
    with jm.Processes(2) as executor:
        totals = record_totals(
            simulator,
            OwnStream(),
            trajectories=4 * EPISODES_PER_TASK,
            horizon=3,
            seed=0,
            executor=executor,
        ).totals
    alone = record_totals(
        simulator, OwnStream(), trajectories=4 * EPISODES_PER_TASK, horizon=3, seed=0
    ).totals
    assert np.array_equal(totals, alone)
