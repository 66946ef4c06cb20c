"""Whether a world is what an environment does: wrong ones are found, right ones are left alone."""

from functools import cache

import gymnasium
import numpy as np
import pytest

import journeyman as jm
from journeyman.adapters.world_check import ObservedSteps, check_transitions, observe
from journeyman.adapters.world_sources import read_world

NAMES = ["FrozenLake-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "Taxi-v4"]
DISCOUNT = {"discount": "0.9"}


@cache
def lake():
    return read_world("gym:FrozenLake-v1", options=DISCOUNT)


def without_done(environment):
    table = environment.unwrapped.P
    ignoring = {
        state: {
            action: [(p, target, reward, False) for p, target, reward, _ in branches]
            for action, branches in actions.items()
        }
        for state, actions in table.items()
    }
    law = np.asarray(environment.unwrapped.initial_state_distrib)
    return jm.World.from_gymnasium(ignoring, 0.9, initial=law)


def perturbed(world, pair, amount):
    """Mass moved from the first to the last next state of a pair."""
    matrix = world.transition.copy()
    data = matrix.data.copy()
    data[matrix.indptr[pair]] -= amount
    data[matrix.indptr[pair + 1] - 1] += amount
    matrix.data = data
    return jm.World(matrix, world.initial, 0.9, sink=world.sink, choice_offsets=world.pairs.offsets)


@pytest.mark.parametrize("name", NAMES)
def test_the_world_of_an_environment_is_left_alone(name):
    world = read_world(f"gym:{name}", options=DISCOUNT)
    check = check_transitions(world, gymnasium.make(name), steps=4000)
    assert check.agrees
    assert (check.num_steps, check.num_pairs) == (4000, world.num_pairs)
    assert check.pairs_seen > 0.5 * world.num_pairs or name == "Taxi-v4"
    assert "no contradiction found" in str(check)


@pytest.mark.parametrize(("name", "steps"), [("FrozenLake-v1", 500), ("CliffWalking-v1", 8000)])
def test_a_world_that_ignores_done_is_found_out(name, steps):
    environment = gymnasium.make(name)
    world = without_done(environment)
    check = check_transitions(world, environment, steps=steps)
    assert check.refuted
    assert "is impossible" in check.finding
    assert f"led to state {world.sink}, the end of the episode" in check.finding


def test_the_first_impossible_step_is_named():
    seen = ObservedSteps(*(np.array(x) for x in ([0, 0, 4], [0, 1, 0], [0, 4, 9], [0])))
    check = check_transitions(lake(), seen)
    assert check.refuted
    assert check.finding == "step 2 is impossible: state 4, action 0 led to state 9"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0], [4], [0], []), "step 0 is impossible: the world has no state 0, action 4"),
        (([0], [-1], [0], []), "the world has no state 0, action -1"),
        (([0, 0, 0], [0, 0, 9], [0, 9, 0], []), "step 1 is impossible: state 0, action 0 led to"),
        (([99], [0], [0], []), "step 0 is impossible: the world has no state 99, action 0"),
        (([0], [0], [99], []), "led to state 99"),
        (([0], [0], [-1], []), "led to the end of the episode"),
        (([0], [0], [0], [3]), "episode 0 starts in state 3, of initial probability 0"),
    ],
)
def test_steps_of_another_world_are_named(columns, message):
    seen = ObservedSteps(*(np.array(part, dtype=np.int64) for part in columns))
    check = check_transitions(lake(), seen)
    assert check.refuted
    assert message in check.finding


def test_nothing_seen_shows_nothing():
    nothing = np.zeros(0, dtype=np.int64)
    with pytest.raises(jm.errors.InvalidWorld, match="no step was observed"):
        check_transitions(lake(), ObservedSteps(nothing, nothing, nothing, nothing))


def test_a_perturbed_probability_is_found_where_it_is():
    wrong = perturbed(lake(), 1, 0.2)
    check = check_transitions(wrong, lake(), steps=20_000)
    assert check.refuted
    assert "most out of line is state 0, action 1" in check.finding
    assert "WRONG" in str(check)


def test_the_failure_probability_is_the_threshold():
    """150 tosses have an e-value of 10^3.6."""
    fair = jm.World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9)
    unfair = jm.World([[0.75, 0.25], [0.5, 0.5]], [1, 0], 0.9)
    for level, refuted in {0.05: True, 1e-3: True, 1e-4: False}.items():
        check = check_transitions(unfair, fair, steps=150, failure_probability=level)
        assert check.refuted is refuted
        assert check.failure_probability == level


def test_another_law_of_starts_is_found():
    flat = jm.World(np.full((4, 4), 0.25), np.full(4, 0.25), 0.5)
    tilted = jm.World(np.full((4, 4), 0.25), [0.4, 0.2, 0.2, 0.2], 0.5)
    seen = observe(flat, FewSteps(tilted), 3000, seed=0)
    assert seen.first_states.size == 1500
    check = check_transitions(flat, seen)
    assert check.refuted
    assert "starts from state" in check.finding


class FromOne(gymnasium.Env):
    """Two states and two actions, numbered from 1: action 2 goes to the other state."""

    observation_space = gymnasium.spaces.Discrete(2, start=1)
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        self.state = np.int64(1)
        return self.state, {}

    def step(self, action):
        assert action in self.action_space
        self.state = self.state if action == 1 else 3 - self.state
        return self.state, 0.0, False, False, {}


def test_numbers_may_start_at_one():
    world = jm.World([[1, 0], [0, 1], [0, 1], [1, 0]], [1, 0], 0.9)
    assert check_transitions(world, FromOne(), steps=50).agrees
    other = jm.World([[0, 1], [1, 0], [0, 1], [1, 0]], [1, 0], 0.9)
    assert check_transitions(other, FromOne(), steps=50).refuted


class FewSteps:
    """A world whose episodes are cut after two steps."""

    def __init__(self, world):
        from journeyman.adapters.world_check import WorldEnvironment

        self.inner, self.unwrapped, self.steps = WorldEnvironment(world), self, 0

    def reset(self, *, seed=None):
        self.steps = 0
        return self.inner.reset(seed=seed)

    def step(self, action):
        self.steps += 1
        state, reward, terminated, _, info = self.inner.step(action)
        return state, reward, terminated, self.steps == 2, info


@pytest.mark.parametrize("estimated", [False, True])
def test_a_right_world_is_hardly_ever_refuted(estimated):
    """At most one in twenty; betting refutes far fewer."""
    rng, refuted = np.random.default_rng(0), 0
    truth = jm.World(rng.dirichlet(np.ones(4), 8), [1, 0, 0, 0], 0.9)
    for seed in range(100):
        world = truth
        if estimated:
            seen = observe(truth, FewSteps(truth), 200, seed=10_000 + seed)
            world = jm.World.from_transitions(
                seen.states, seen.actions, seen.next_states, 0.9, initial=[1, 0, 0, 0], num_states=4
            )
        refuted += check_transitions(world, truth, steps=400, seed=seed).refuted
    assert refuted <= 5


def test_an_estimated_world_is_held_to_its_own_precision():
    truth = jm.World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9)
    other = jm.World([[0.9, 0.1], [0.5, 0.5]], [1, 0], 0.9)
    seen = observe(other, FewSteps(other), 2000, seed=0)
    model = jm.World.from_transitions(
        seen.states, seen.actions, seen.next_states, 0.9, initial=[1, 0]
    )
    assert check_transitions(model, other, steps=2000, seed=1).agrees
    check = check_transitions(model, truth, steps=2000, seed=1)
    assert check.refuted
    assert "the world is an estimate" in check.finding
    assert "state 0, action 0" in check.finding


def test_an_unseen_next_state_is_no_contradiction_of_an_estimate():
    model = jm.World.from_transitions([0, 1, 2], [0, 0, 0], [1, 1, 2], 0.9, initial=[1, 0, 0])
    seen = ObservedSteps(*(np.array(x) for x in ([0], [0], [2], [0])))
    assert check_transitions(model, seen).agrees


def test_demonstrations_are_steps_too():
    world, _, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=50, horizon=40, seed=0)
    assert check_transitions(world, demos).agrees
    slippery = jm.gallery.grid(4, macro_cells=2, slip=0.9).world
    assert check_transitions(slippery, demos).refuted


@pytest.mark.parametrize("name", ["CliffWorld7x4-v0", "RiskyPath-v0", "InitShiftTrain-v0"])
def test_time_limits_of_seals_are_no_ends(name):
    world = read_world(f"seals:{name}", options=DISCOUNT)
    environment = gymnasium.make(f"seals:seals/{name}")
    check = check_transitions(world, environment, steps=2000)
    assert check.agrees
    assert check.num_starts > 100


def test_an_end_where_the_world_goes_on_is_found():
    table = gymnasium.make("CliffWalking-v1")
    matrix = without_done(table).transition[: 48 * 4, :48]
    world = jm.World(matrix, table.unwrapped.initial_state_distrib, 0.9)
    check = check_transitions(world, table, steps=8000)
    assert check.refuted
    assert "led to the end of the episode" in check.finding


def test_the_seed_decides_what_is_seen():
    one, same, other = (observe(lake(), gymnasium.make("FrozenLake-v1"), 300, s) for s in (1, 1, 2))
    assert np.array_equal(one.next_states, same.next_states)
    assert not np.array_equal(one.next_states, other.next_states)


def test_actions_are_tried_in_turn():
    seen = observe(lake(), gymnasium.make("FrozenLake-v1"), 2000, seed=0)
    counts = np.bincount(seen.actions[seen.states == 0], minlength=4)
    assert np.ptp(counts) <= 1


@pytest.mark.parametrize(
    ("environment", "more", "message"),
    [
        ("Taxi-v4", {}, "has 6 actions, the world 4"),
        ("CliffWalking-v1", {}, "starts in state 36, the world has states 0..16"),
        ("CartPole-v1", {}, "actions|not the numbers of states"),
        ("FrozenLake-v1", {"steps": 0}, "steps = 0"),
        ("FrozenLake-v1", {"failure_probability": 1}, "failure_probability"),
    ],
)
def test_what_cannot_be_compared_is_refused(environment, more, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        check_transitions(lake(), gymnasium.make(environment), **{"steps": 100} | more)


def test_observations_must_be_states():
    two = jm.World(np.full((8, 4), 0.25), np.full(4, 0.25), 0.9)
    with pytest.raises(jm.errors.InvalidWorld, match="not the numbers of states"):
        check_transitions(two, gymnasium.make("CartPole-v1"), steps=10)


def test_a_simulated_world_must_have_the_actions():
    one = jm.World(np.full((4, 4), 0.25), np.full(4, 0.25), 0.9)
    two = jm.World(np.full((8, 4), 0.25), np.full(4, 0.25), 0.9)
    with pytest.raises(jm.errors.InvalidWorld, match="has no action 1 in state"):
        check_transitions(two, one, steps=10)


def test_a_record_that_lacks_the_last_action_is_checked_against_its_environment():
    environment = gymnasium.make("FrozenLake-v1", is_slippery=False)
    true = jm.World.from_gymnasium(environment, 0.9)
    kept = np.flatnonzero(np.isin(true.pairs.actions, (1, 2)))
    part = jm.World(
        true.transition[kept], true.initial, 0.9, sink=true.sink,
        choice_offsets=2 * np.arange(true.num_states + 1),
        observed_actions=true.pairs.actions[kept],
    )  # fmt: skip
    outcome = jm.adapters.check_transitions(part, environment, steps=500, seed=0)
    assert not outcome.refuted
    assert outcome.pairs_seen > 4
    wide = jm.World(np.ones((8, 1)), [1.0], 0.9)
    with pytest.raises(jm.errors.InvalidWorld, match="has 4 actions, the world 8"):
        jm.adapters.check_transitions(wide, environment, steps=5, seed=0)
