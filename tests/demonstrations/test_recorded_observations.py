"""Recorded episodes of observations: their totals, in a simulator's problem, and from files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm

NAMES = ["place", "effort", "moved"]


def step_costs(after_end=(1.0, 0.0, 0.5)):
    def function(o, a, after, r, end):
        done = np.asarray(a, dtype=float).reshape(len(o), -1)[:, 0]
        return np.column_stack([np.abs(after[:, 0]), done**2, np.abs(after - o)[:, 0]])

    return jm.costs.StepCosts(function, NAMES, lowest=0, highest=4, after_end=after_end)


def naive_total(seen, done, ended, costs, discount):
    total = np.zeros(3)
    for t, action in enumerate(done):
        here, there = seen[t][0], seen[t + 1][0]
        total += discount**t * np.array(
            [abs(there), float(np.ravel(action)[0]) ** 2, abs(there - here)]
        )
    if ended:
        total += discount ** len(done) / (1 - discount) * costs.after_end
    return total


@given(st.integers(0, 10**6), st.floats(0.3, 0.99), st.sampled_from(["whole", "real", "rows"]))
def test_totals_are_the_discounted_sums(seed, discount, kind):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, size=rng.integers(1, 5))
    seen = [rng.uniform(-1, 1, size=(n + 1, 2)) for n in lengths]
    done = {
        "whole": lambda n: rng.integers(2, size=n),
        "real": lambda n: rng.uniform(-1, 1, size=n),
        "rows": lambda n: rng.uniform(-1, 1, size=(n, 2)),
    }[kind]
    actions, ended = [done(n) for n in lengths], rng.random(len(lengths)) < 0.5
    costs = step_costs()
    found = jm.EpisodeTotals.of_episodes(seen, actions, ended, costs, discount)
    for k, n in enumerate(lengths):
        expected = naive_total(seen[k], actions[k], ended[k], costs, discount)
        assert found.totals[k] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        left = 0 if ended[k] else discount**n / (1 - discount)
        assert found.unrecorded[k] == pytest.approx(left, rel=1e-12)


def test_costs_of_rewards_need_rewards():
    costs = jm.costs.StepCosts(lambda o, a, n, r, e: -r[:, None], ["loss"], lowest=-1, highest=1)
    arguments = [np.zeros((3, 1))], [[0, 0]], [True], costs, 0.5
    found = jm.EpisodeTotals.of_episodes(*arguments, rewards=[[1.0, 0.5]])
    assert found.totals.tolist() == [[-1.25]]
    with pytest.raises(
        jm.errors.InvalidCosts, match=r"episode 0.*give EpisodeTotals.of_episodes\(\.\.\., rewards"
    ):
        jm.EpisodeTotals.of_episodes(*arguments)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"observations": [np.zeros((2, 1))]}, "episode 0 has observations of shape"),
        ({"actions": [[]], "observations": [np.zeros((1, 1))]}, "episode 0 has observations"),
        ({"actions": [[0, 1], [1]]}, "2 of actions"),
        ({"terminated": [True, False]}, "2 ends"),
        ({"rewards": [[1.0]]}, "rewards of shape"),
        ({"costs": "time"}, "costs is a str"),
        ({"observations": [], "actions": [], "terminated": []}, "0 arrays of observations"),
        ({"observations": [np.full((3, 1), 9.0)]}, "episode 0"),
        ({"observations": [np.full((3, 1), np.nan)]}, "episode 0"),
        ({"observations": [[[0.0], [0.0, 1.0], [0.0]]]}, "the observations of episode 0 are no"),
        ({"rewards": [["high", "low"]]}, "the rewards of episode 0 are no array"),
        ({"terminated": ["False"]}, r"terminated\[0\] = .*False"),
        ({"terminated": [np.nan]}, r"terminated\[0\] = .*nan"),
        ({"terminated": [None]}, r"terminated\[0\] = None"),
        ({"terminated": [2]}, r"terminated\[0\] = .*2"),
    ],
)
def test_what_does_not_fit_is_refused(change, complaint):
    given = {
        "observations": [np.zeros((3, 1))], "actions": [[0, 1]], "terminated": [True],
        "costs": step_costs(), "discount": 0.9,
    } | change  # fmt: skip
    with pytest.raises(jm.errors.JourneymanError, match=complaint):
        jm.EpisodeTotals.of_episodes(**given)


def along_a_wave(steps, seed=0):
    """A rule whose actions change along a wave."""
    rng = np.random.default_rng(seed)
    place, speed = rng.uniform(-1.2, 0.5, steps + 1), rng.normal(0, 0.03, steps + 1)
    seen = np.column_stack([place, speed])
    return jm.Demonstrations.from_arrays(
        [seen], [(np.sin(6 * place) > 20 * speed)[:-1].astype(int)], [True]
    )


def mistakes(network, demos):
    return (network.sample(demos.step_states, 0) != demos.actions).mean()


def test_few_records_are_passed_over_until_the_boundary_is_sharp():
    shown, fresh = along_a_wave(1_000), along_a_wave(5_000, seed=1)
    clone = jm.demonstrations.clone_observations
    assert mistakes(clone(shown), fresh) < mistakes(clone(shown, passes=20), fresh) / 3


@pytest.mark.parametrize(("steps", "passes"), [(100, 300), (2_000, 157), (16_100, 20)])
def test_passes_by_default(steps, passes):
    demos = along_a_wave(steps)
    own, same = (
        jm.demonstrations.clone_observations(demos, hidden=2, **given)
        for given in ({}, {"passes": passes})
    )
    assert all((a == b).all() for a, b in zip(own.layers, same.layers, strict=True))


def test_a_drawing_network_is_the_same_network():
    network = jm.demonstrations.clone_observations(along_a_wave(200), passes=3)
    seen = np.array([[0.1, 0.001], [-0.4, -0.002]])
    powers = np.exp(network.logits(seen))
    law = network.drawing.probabilities(seen)
    assert law == pytest.approx(powers / powers.sum(axis=1, keepdims=True))
    assert (law.argmax(axis=1) == network.sample(seen, 0)).all()


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 3))
def test_listed_actions_are_the_means_of_those_nearest_to_them(seed, number, size):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-3, 3, size=size)
    actions = scale * rng.choice([rng.normal(size=(40, size)), rng.integers(3, size=(40, size))])
    found = jm.demonstrations.listed_actions(actions, number)
    assert len(found) == min(number, len(np.unique(actions, axis=0)))
    assert (found >= actions.min(axis=0)).all()
    assert (found <= actions.max(axis=0)).all()
    width = np.maximum(np.ptp(actions, axis=0), 1e-300)
    nearest = [np.argmin((((found - one) / width) ** 2).sum(axis=1)) for one in actions]
    for k, one in enumerate(found):
        assert one == pytest.approx(actions[np.array(nearest) == k].mean(axis=0), abs=1e-12)


def test_a_list_suits_the_expert_better_than_an_even_one():
    rng = np.random.default_rng(0)
    forces = rng.choice([-1, 1], size=(500, 1)) * rng.uniform(0.5, 1, size=(500, 1))
    chosen = jm.demonstrations.listed_actions(forces.astype(np.float32), 4)
    assert chosen == pytest.approx(np.array([[-0.875], [-0.625], [0.625], [0.875]]), abs=0.03)
    one_number = jm.demonstrations.listed_actions(forces[:, 0], 4)
    assert one_number.shape == (4,)


def test_actions_that_cannot_be_listed_are_refused():
    for wrong, words in (([], "no actions"), ([[np.nan]], "actions"), (3.0, "no actions")):
        with pytest.raises(jm.errors.InvalidDemonstrations, match=words):
            jm.demonstrations.listed_actions(wrong)
    with pytest.raises(jm.errors.InvalidDemonstrations, match="number"):
        jm.demonstrations.listed_actions([[0.0]], 0)


@pytest.mark.parametrize("given", [{"passes": 0}, {"passes": -1}, {"passes": 2.5}, {"hidden": 0}])
def test_a_network_without_units_or_training_is_refused(given):
    with pytest.raises(jm.errors.InvalidDemonstrations, match="Give a whole number from 1"):
        jm.demonstrations.clone_observations(along_a_wave(10), **given)
