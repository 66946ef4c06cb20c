import numpy as np
import pytest

import journeyman as jm
from journeyman.testing import Shape, random_world
from naive import recording as naive

CHAIN = jm.World([[0, 1, 0], [0, 0, 1], [0, 0, 1]], [0.5, 0, 0.5], 0.9)
CYCLE = jm.World([[0, 1], [0, 1], [1, 0], [1, 0]], [1, 0], 0.9)


def lists(demos):
    return [tuple(part.tolist() for part in demos.episode(j)) for j in range(len(demos))]


@pytest.mark.parametrize("shape", Shape)
def test_a_policy_is_recorded_as_by_the_naive_twin(shape):
    world = random_world(1, shape)
    policy = jm.Policy.uniform(world)
    demos = jm.record(world, policy, trajectories=20, horizon=15, seed=2)
    assert lists(demos) == naive.walk(world, policy, 20, 15, np.random.default_rng(2))


@pytest.mark.parametrize("shape", Shape)
def test_whatever_is_recorded_is_possible(shape):
    world = random_world(1, shape)
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=20, horizon=15, seed=2)
    assert demos.pairs_in(world).size == demos.num_steps
    assert demos.pairs == world.pairs


def by_policy(world):
    return jm.Policy.uniform(world)


def by_history(world):
    return lambda states, actions, rng: rng.integers(world.pairs.actions_per_state[states[-1]])


experts = pytest.mark.parametrize("expert", [by_policy, by_history])


@experts
def test_arrival_in_an_absorbing_state_terminates(expert):
    demos = jm.record(CHAIN, expert(CHAIN), trajectories=40, horizon=10, seed=0)
    assert demos.terminated.all()
    assert set(map(str, lists(demos))) == {"([0, 1, 2], [0, 0])", "([2, 2], [0])"}


@experts
def test_an_absorbing_start_gives_one_step(expert):
    world = jm.World([[1.0]], [1.0], 0.9)
    demos = jm.record(world, expert(world), trajectories=2, horizon=10, seed=0)
    assert lists(demos) == [([0, 0], [0])] * 2
    assert demos.terminated.all()


@experts
def test_the_horizon_truncates(expert):
    demos = jm.record(CYCLE, expert(CYCLE), trajectories=3, horizon=7, seed=0)
    assert demos.lengths.tolist() == [7, 7, 7]
    assert demos.truncated.all()


@experts
def test_arrival_at_the_horizon_itself_terminates(expert):
    start = jm.World(CHAIN.transition, [1, 0, 0], 0.9)
    demos = jm.record(start, expert(start), trajectories=2, horizon=2, seed=0)
    assert demos.lengths.tolist() == [2, 2]
    assert demos.terminated.all()


@experts
def test_the_seed_decides_the_record(expert):
    world = random_world(3, Shape.DENSE)
    first, again, other = (
        lists(jm.record(world, expert(world), trajectories=5, horizon=9, seed=seed))
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_an_expert_sees_the_whole_history():
    seen = []

    def alternating(states, actions, rng):
        seen.append((states.tolist(), actions.tolist()))
        return len(actions) % 2

    demos = jm.record(CYCLE, alternating, trajectories=2, horizon=4, seed=0)
    assert lists(demos) == [([0, 1, 0, 1, 0], [0, 1, 0, 1])] * 2
    one = [([0, 1, 0, 1, 0][: t + 1], [0, 1, 0, 1][:t]) for t in range(4)]
    assert seen == one + one


def test_a_history_expert_meets_the_laws_of_the_world():
    world = random_world(5, Shape.DENSE, num_states=3)
    demos = jm.record(world, lambda *_: 0, trajectories=2000, horizon=5, seed=1)
    for state in range(3):
        targets = demos.next_states[demos.step_states == state]
        law = world.transition.toarray()[world.pairs.offsets[state]]
        frequencies = np.bincount(targets, minlength=3) / targets.size
        sigma = np.sqrt(law * (1 - law) / targets.size)
        assert (np.abs(frequencies - law) <= 5 * sigma).all()


@pytest.mark.parametrize("action", [2, -1])
def test_an_action_the_state_lacks_is_refused(action):
    with pytest.raises(jm.errors.InvalidDemonstrations, match=f"chose action {action} in state 0"):
        jm.record(CYCLE, lambda *_: action, trajectories=1, horizon=1, seed=0)


@pytest.mark.parametrize("wrong", [{"trajectories": 0}, {"horizon": 0}])
def test_there_must_be_something_to_record(wrong):
    numbers = {"trajectories": 1, "horizon": 1, **wrong}
    with pytest.raises(jm.errors.InvalidDemonstrations, match=f"{next(iter(wrong))} = 0"):
        jm.record(CYCLE, jm.Policy.uniform(CYCLE), seed=0, **numbers)
