"""Equal content has equal words, and every change another one."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
import study_methods
from journeyman.errors import InvalidInput
from journeyman.studies.compare import fingerprint

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@dataclass(frozen=True)
class Pair:
    left: object
    right: object = None


@dataclass(frozen=True)
class Twin:
    left: object
    right: object = None


@dataclass(frozen=True)
class Listed(Sequence):
    parts: tuple

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, place):
        return self.parts[place]


TABLE = np.array([0, 1])


def asked(states):
    return TABLE[states]


@cache
def looked_up(state):
    return asked(state) if state >= 0 else asked_through(-state)


def asked_through(states):
    return [looked_up(state) for state in states]


def fresh(states):
    return np.zeros(len(states), dtype=int)


def word(value):
    return fingerprint(value, "value")


@given(PLAIN, PLAIN)
def test_words_differ_exactly_when_values_do(one, other):
    same = repr(one) == repr(other)
    assert (word(Pair(one)) == word(Pair(other))) == same or one == other
    assert word(Pair(one, other)) == word(Pair(one, other))
    assert word(Pair(one)) != word(Twin(one))


def test_order_and_place_count():
    assert word(Pair(1, 2)) != word(Pair(2, 1))
    assert word(Pair("ab", "c")) != word(Pair("a", "bc"))
    assert word(Pair(1)) != word(Pair(1.0))
    assert word(Pair(np.float64(1.5))) == word(Pair(1.5))
    assert word(Pair(Path("a"))) != word(Pair("a"))
    assert word(Pair(jm.solvers.Engine.CLARABEL)) != word(
        Pair(next(e for e in jm.solvers.Engine if e is not jm.solvers.Engine.CLARABEL))
    )


def test_problems_are_known_by_their_content():
    one, same, other = (study_methods.drawn(seed) for seed in (0, 0, 1))
    assert word(one) == word(same) != word(other)
    world, basis, _ = study_methods.grid()
    for cost_class in (jm.Simplex(), jm.EuclideanBall(), jm.InfinityBall([1.0, 2.0, 1.0, 1.0])):
        assert word(jm.Apprenticeship(world, basis, one.demonstrations, cost_class)) != word(one)


def test_solvers_are_known_by_their_options_and_not_by_their_limits():
    assert word(jm.LinearProgram()) == word(jm.LinearProgram(time_limit=3.0))
    assert word(jm.LinearProgram()) != word(jm.LinearProgram(tolerance=1e-3))
    features = [jm.features.partition(study_methods.grid()[0], num_cells=n) for n in (4, 4, 9)]
    words = [word(jm.StochasticSubgradient(one)) for one in features]
    assert words[0] == words[1] != words[2]
    assert word(jm.StochasticSubgradient(features[0], executor=jm.Serial())) == words[0]


def test_functions_are_known_by_their_source():
    assert word(study_methods.drawn) == word(study_methods.drawn)
    assert word(study_methods.drawn) != word(study_methods.declared)
    assert word(partial(study_methods.drawn, 1)) != word(partial(study_methods.drawn, 2))
    policy, other = jm.Policy.uniform(study_methods.grid()[0]), study_methods.grid()[2]
    assert word(policy.sample) != word(other.sample)
    assert word(policy.sample) != word(policy.predict)


def test_functions_of_one_line_are_shown_apart():
    up, down = (lambda i: i + 1), (lambda i: i - 1)
    half, third = (lambda i: i in {"a", "b"}), (lambda i: i in {"a", "c"})
    assert len({word(one) for one in (up, down, half, third)}) == 4


def test_a_function_is_known_by_its_defaults():
    def raised(power):
        def share(iteration, *, base=0.5, power=power):
            return base ** (power * iteration)

        return share

    assert word(raised(1)) == word(raised(1)) != word(raised(2))


def test_a_function_is_known_by_what_it_uses_of_its_module(monkeypatch):
    before = {name: word(globals()[name]) for name in ("asked", "asked_through", "fresh")}
    assert before == {name: word(globals()[name]) for name in before}
    monkeypatch.setitem(globals(), "TABLE", np.array([1, 0]))
    assert word(asked) != before["asked"]
    assert word(asked_through) != before["asked_through"]
    assert word(fresh) == before["fresh"]
    monkeypatch.setitem(globals(), "TABLE", object())
    with pytest.raises(InvalidInput, match=r"value, TABLE holds"):
        word(asked)


def test_a_class_from_elsewhere_is_known_by_its_source(monkeypatch):
    before = word(Pair(1)), word(jm.LinearProgram())
    monkeypatch.setattr(inspect, "getsource", lambda kind: "class Pair: 'edited'")
    assert word(Pair(1)) != before[0]
    assert word(jm.LinearProgram()) == before[1]


def test_a_base_of_the_standard_library_needs_no_source():
    assert word(Listed((1, 2))) == word(Listed((1, 2))) != word(Listed((1, 3)))


def test_keys_and_members_keep_their_kind():
    assert word({1: 2}) != word({"1": 2})
    assert word({"a": 1}) != word([["a", 1]])
    assert word(np.array([1, "a"], dtype=object)) == word([1, "a"]) != word([2, "a"])


def test_what_depends_on_its_surroundings_is_refused_by_name():
    surroundings = object()
    for value in (surroundings, lambda: surroundings):
        with pytest.raises(InvalidInput, match=r"solver\.left holds"):
            fingerprint(Pair(value), "solver")
