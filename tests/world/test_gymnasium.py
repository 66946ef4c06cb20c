from bisect import bisect
from functools import cache

import gymnasium
import numpy as np
import pytest

import journeyman as jm

DISCOUNT = 0.95
HORIZON = 180
ENVIRONMENTS = {
    "frozen lake": ("FrozenLake-v1", {}),
    "dry lake": ("FrozenLake-v1", {"is_slippery": False}),
    "large lake": ("FrozenLake-v1", {"map_name": "8x8"}),
    "large dry lake": ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": False}),
    "cliff": ("CliffWalking-v1", {}),
    "slippery cliff": ("CliffWalkingSlippery-v1", {}),
    "taxi": ("Taxi-v4", {}),
}
every = pytest.mark.parametrize("name", ENVIRONMENTS)


def make(name):
    identifier, options = ENVIRONMENTS[name]
    return gymnasium.make(identifier, **options).unwrapped


@cache
def world_and_policy(name):
    """The world and a fixed random policy that gets somewhere: mostly the optimal one."""
    environment = make(name)
    world = jm.World.from_gymnasium(environment, DISCOUNT)
    law = np.random.default_rng(0).dirichlet(np.ones(world.pairs.max_actions), world.num_states)
    best = jm.plan(world, -jm.expected_rewards(environment)).policy
    return world, best.mixed_with(jm.Policy(law), 0.3)


@cache
def episodes_of_the_real_environment(name, count=1000):
    """(states, actions, rewards, terminated) of each episode."""
    environment, (world, policy) = make(name), world_and_policy(name)
    sums = policy.probabilities(np.arange(world.num_states)).cumsum(axis=1)[:, :-1].tolist()
    rng = np.random.default_rng(1)
    environment.reset(seed=2)
    return [one_episode(environment, sums, rng) for _ in range(count)]


def one_episode(environment, sums, rng):
    state, _ = environment.reset()
    states, actions, rewards, terminated = [int(state)], [], [], False
    while not terminated and len(actions) < HORIZON:
        actions.append(bisect(sums[states[-1]], rng.random()))
        state, reward, terminated, _, _ = environment.step(actions[-1])
        states.append(int(state))
        rewards.append(float(reward))
    return states, actions, rewards, terminated


def returns(name):
    return np.array(
        [
            np.dot(DISCOUNT ** np.arange(len(rewards)), rewards)
            for _, _, rewards, _ in episodes_of_the_real_environment(name)
        ]
    )


def standard_errors_from_simulation(name, value):
    simulated = returns(name)
    assert simulated.std() > 0
    return abs(value - simulated.mean()) / (simulated.std(ddof=1) / np.sqrt(simulated.size))


def without_done(environment):
    """The table with its ends of episodes forgotten."""
    return {
        state: {
            action: [(p, target, reward, False) for p, target, reward, _ in branches]
            for action, branches in actions.items()
        }
        for state, actions in environment.P.items()
    }


@every
def test_the_exact_value_is_that_of_the_real_environment(name):
    world, policy = world_and_policy(name)
    value = jm.expected_cost(world, policy, jm.expected_rewards(make(name)))
    assert standard_errors_from_simulation(name, value) < 4


@pytest.mark.parametrize("name", ["cliff", "taxi"])
def test_a_world_that_ignores_done_is_found_out(name):
    environment, (_, policy) = make(name), world_and_policy(name)
    table = without_done(environment)
    wrong = jm.World.from_gymnasium(
        table, DISCOUNT, initial=np.asarray(environment.initial_state_distrib)
    )
    value = jm.expected_cost(wrong, policy, jm.expected_rewards(table))
    assert standard_errors_from_simulation(name, value) > 4


@every
def test_the_sink_is_an_added_absorbing_state_without_reward(name):
    environment, (world, _) = make(name), world_and_policy(name)
    assert world.num_states == environment.observation_space.n + 1
    assert world.pairs == jm.world.Pairs.rectangular(world.num_states, environment.action_space.n)
    assert world.sink == world.num_states - 1
    assert world.absorbing[world.sink]
    assert world.initial[world.sink] == 0
    assert (jm.expected_rewards(environment)[world.pairs.states == world.sink] == 0).all()


@every
def test_demonstrations_of_the_real_environment_are_possible_in_the_world(name):
    world, _ = world_and_policy(name)
    states, actions, _, ended = zip(*episodes_of_the_real_environment(name), strict=True)
    assert any(ended)
    demos = jm.Demonstrations.from_arrays(states, actions, ended, terminal_state=world.sink)
    assert demos.pairs_in(world).size == sum(len(part) for part in actions)
    with pytest.raises(jm.errors.InvalidDemonstrations, match=r"probability 0|not absorbing"):
        jm.Demonstrations.from_arrays(states, actions, ended).pairs_in(world)


def test_the_expectation_of_taxi_rides_is_their_mean_return():
    world, _ = world_and_policy("taxi")
    states, actions, _, ended = zip(*episodes_of_the_real_environment("taxi"), strict=True)
    demos = jm.Demonstrations.from_arrays(states, actions, ended, terminal_state=world.sink)
    basis = jm.CostBasis.from_rewards(jm.expected_rewards(make("taxi")))
    expectation = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    assert basis.as_given(expectation.values)[0] == pytest.approx(returns("taxi").mean())


def test_a_wrapper_is_looked_through():
    wrapped = gymnasium.make("FrozenLake-v1")
    assert wrapped is not wrapped.unwrapped
    assert jm.World.from_gymnasium(wrapped, DISCOUNT).num_states == 17


def test_an_environment_without_a_table_is_refused():
    with pytest.raises(jm.errors.InvalidWorld, match="BlackjackEnv has no transition table P"):
        jm.World.from_gymnasium(gymnasium.make("Blackjack-v1"), DISCOUNT)


def test_a_fickle_passenger_is_refused():
    fickle = gymnasium.make("Taxi-v4", fickle_passenger=True)
    with pytest.raises(jm.errors.InvalidWorld, match="fickle_passenger=True"):
        jm.World.from_gymnasium(fickle, DISCOUNT)
    with pytest.raises(jm.errors.InvalidWorld, match="fickle_passenger=True"):
        jm.expected_rewards(fickle)


WALK = {
    0: {0: [(0.25, 0, 0, False), (0.75, 1, 4, False)], 1: [(1, np.int64(1), 0, False)]},
    1: {0: [(0.5, 0, 2, False), (0.5, 0, -4, True)], 1: [(0.5, 1, 6, True), (0.5, 1, 0, True)]},
}


def shifted(table, by):
    return {
        state + by: {
            action: [(p, target + by, reward, done) for p, target, reward, done in branches]
            for action, branches in actions.items()
        }
        for state, actions in table.items()
    }


@pytest.mark.parametrize("start", [0, 1, 5])
def test_state_numbers_may_start_anywhere(start):
    table = shifted(WALK, start)
    world = jm.World.from_gymnasium(table, 0.9, initial=[1, 0])
    assert world.transition.toarray().tolist() == [
        [0.25, 0.75, 0],
        [0, 1, 0],
        [0.5, 0, 0.5],
        [0, 0, 1],
        [0, 0, 1],
        [0, 0, 1],
    ]
    assert world.initial.tolist() == [1, 0, 0]
    assert jm.expected_rewards(table).tolist() == [3, 0, -1, 3, 0, 0]


def test_nested_lists_serve_as_well_as_dicts():
    lists = [[WALK[state][action] for action in range(2)] for state in range(2)]
    world = jm.World.from_gymnasium(lists, 0.9, initial=[1, 0])
    assert world.transition.toarray()[2].tolist() == [0.5, 0, 0.5]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "no transition table"),
        ({0: WALK[0], 2: WALK[1]}, "lacks state 1"),
        ({0: WALK[0], 1: {0: WALK[1][0]}}, "state 1 of table P has 1 actions, state 0 has 2"),
        ({0: {0: [(1, 0, 0)]}}, r"P\[0\]\[0\] holds"),
        ({0: {0: [(1, 3, 0, False)]}}, "leads to state 3"),
        ({0: {0: [(0.5, 0, 0, False)]}}, "state 0, action 0"),
        ({0: {}}, "state 0"),
        ({0: {0: []}}, "state 0"),
        ({0: {1: [(1, 0, 0, False)]}}, "action 0"),
    ],
)
def test_a_table_that_describes_no_world_is_refused(table, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        jm.World.from_gymnasium(table, 0.9, initial=np.ones(1))


def test_a_bare_table_needs_an_initial_law():
    with pytest.raises(jm.errors.InvalidWorld, match="initial_state_distrib"):
        jm.World.from_gymnasium(WALK, 0.9)
