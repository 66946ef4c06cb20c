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
