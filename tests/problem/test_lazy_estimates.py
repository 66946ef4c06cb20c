"""Making a problem checks the demonstrated steps once and computes nothing else."""

import copy
import pickle

import numpy as np
import pytest

import journeyman as jm
from journeyman.demonstrations import demonstrations, expectation
from journeyman.policy import planning as attainable

WORLD, BASIS, EXPERT = jm.gallery.grid(4)


def recorded():
    return jm.record(WORLD, EXPERT, trajectories=30, horizon=20, seed=0)


@pytest.fixture
def counted(monkeypatch):
    """Counts checks of steps, values of cloned policies and plans."""
    counts = {"checks": 0, "values": 0, "plans": 0}

    def counting(module, name, what):
        original = getattr(module, name)

        def call(*given, **more):
            counts[what] += 1
            return original(*given, **more)

        monkeypatch.setattr(module, name, call)

    counting(demonstrations, "possible_pairs", "checks")
    counting(expectation, "value_columns", "values")
    counting(attainable, "improve", "plans")
    return counts


def test_making_a_problem_solves_nothing(counted):
    problem = jm.Apprenticeship(WORLD, BASIS, recorded())
    assert counted == {"checks": 1, "values": 0, "plans": 0}
    first = problem.target
    assert counted["checks"] == 1
    assert counted["values"] > 0
    found = dict(counted)
    assert problem.target is first
    assert counted == found


def test_learning_checks_the_steps_once(counted):
    jm.learn(WORLD, BASIS, recorded())
    assert counted["checks"] == 1


def test_impossible_steps_are_refused_when_the_problem_is_made():
    demos = jm.Demonstrations([0, 15], [0], [0, 1])
    with pytest.raises(jm.errors.InvalidDemonstrations, match="episode 0, step 0"):
        jm.Apprenticeship(WORLD, BASIS, demos)


def test_another_world_is_checked_anew(counted):
    demos, other = recorded(), jm.gallery.grid(4).world
    pairs = demos.pairs_in(WORLD)
    assert demos.pairs_in(WORLD) is pairs
    assert demos.pairs_in(other).tolist() == pairs.tolist()
    assert counted["checks"] == 2


def test_subsets_and_copies_keep_what_they_say(counted):
    demos = recorded()
    pairs, chosen = demos.pairs_in(WORLD), np.array([7, 2])
    part = demos.subset(chosen)
    assert part.pairs_in(WORLD).tolist() == [
        pair for j in chosen for pair in pairs[demos.offsets[j] : demos.offsets[j + 1]]
    ]
    assert counted["checks"] == 1
    for again in (pickle.loads(pickle.dumps(demos)), copy.deepcopy(demos)):
        assert again.pairs_in(WORLD).tolist() == pairs.tolist()
    assert counted["checks"] == 3
