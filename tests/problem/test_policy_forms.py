"""Policies that are numbers: they come back bit by bit, and every number is digested."""

import copy
import json

import numpy as np
import pytest

import journeyman as jm
from journeyman.demonstrations.expectation import ClonedPolicy, clone_visited_states
from journeyman.errors import InvalidPolicy
from journeyman.policy.linear_values import (
    LinearValuePolicy,
    QuadraticFeatures,
    RadialFeatures,
    StateFeatures,
)
from journeyman.problem.draw_seeds import large_seed
from journeyman.problem.policy_forms import form_of, policy_of
from journeyman.storage import load_arrays, save_arrays


class Asked:
    """As much of a problem as a seed is made of."""

    class simulator:  # noqa: N801
        discount, lowest, highest = 0.9, np.zeros(1), np.ones(1)


def cloned(greedy):
    rng = np.random.default_rng(0)
    states = [rng.normal(size=(9, 2)) for _ in range(6)]
    actions = [(one[:-1, 0] > 0).astype(int) for one in states]
    demos = jm.Demonstrations.from_arrays(states, actions, [False] * 6)
    return jm.demonstrations.clone_observations(demos, hidden=5, passes=2, greedy=greedy)


def counted():
    demos = jm.Demonstrations.from_arrays([[0, 3, 0, 5], [3, 3]], [[1, 0, 1], [2]], [True, False])
    return clone_visited_states(demos)


def policies():
    rng = np.random.default_rng(1)
    mean, scale = rng.normal(size=2), rng.random(2) + 0.1
    features = (QuadraticFeatures(mean, scale), RadialFeatures(mean, scale, rng.normal(size=(4, 2)),
                                                               0.3))  # fmt: skip
    return {
        "visited states": counted(), "network": cloned(True), "drawing network": cloned(False),
        "wrapped": jm.policy.ObservationPolicy(cloned(False)),
        "quadratic": LinearValuePolicy(features[0], rng.normal(size=(6, 3)), 0, 1),
        "radial": LinearValuePolicy(features[1], rng.normal(size=(5, 3)), 1, 1),
        "states": LinearValuePolicy(StateFeatures(np.array([0, 3])), rng.normal(size=(2, 3)), 0, 0),
    }  # fmt: skip


NAMES = tuple(policies())


def seen_by(policy):
    rng = np.random.default_rng(2)
    return rng.integers(6, size=200) if policy.observation_axes == 0 else rng.normal(size=(200, 2))


def reloaded(policy, place):
    form = form_of(policy)
    save_arrays(place / "policy.npz", "policy", 1, form.arrays, words=form.words)
    header, arrays = load_arrays(place / "policy.npz", "policy", 1)
    return policy_of(header["words"], lambda name: arrays[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_comes_back_bit_by_bit(name, tmp_path):
    policy = policies()[name]
    again = reloaded(policy, tmp_path)
    seen = seen_by(policy)
    assert type(again) is type(policy)
    assert repr(again) == repr(policy)
    assert again.observation_axes == policy.observation_axes
    assert again.probabilities(seen).tobytes() == policy.probabilities(seen).tobytes()
    assert again.sample(seen, 3).tolist() == policy.sample(seen, 3).tolist()
    assert large_seed(Asked, again) == large_seed(Asked, policy)


@pytest.mark.parametrize("name", NAMES)
def test_every_word_and_every_number_is_digested(name):
    policy = policies()[name]
    form, seeds = form_of(policy), {large_seed(Asked, policy)}
    changes = 0
    for part, array in form.arrays.items():
        other = copy.deepcopy(form)
        changed = np.array(array, dtype=float if array.dtype.kind == "f" else array.dtype)
        changed.flat[changed.size - 1] *= 1 + 1e-15 if array.dtype.kind == "f" else 2
        if (changed == array).all():
            changed.flat[changed.size - 1] += 1e-15
        other.arrays[part] = changed
        changes += 1
        seeds.add(large_seed(Asked, Twin(other)))
    words = json.loads(json.dumps(form.words))
    for word in ("greedy", "first_action", "observation_axes"):
        if word in words:
            changes += 1
            other = copy.deepcopy(form)
            other.words[word] = int(words[word]) + 1
            seeds.add(large_seed(Asked, Twin(other)))
    assert len(seeds) == changes + 1


class Twin:
    """Stands for a policy of a given form."""

    def __init__(self, form):
        self.form = form


@pytest.fixture(autouse=True)
def twins_have_forms(monkeypatch):
    from journeyman.problem import draw_seeds

    monkeypatch.setattr(
        draw_seeds, "form_of", lambda one: one.form if isinstance(one, Twin) else form_of(one)
    )


def test_what_is_not_numbers_has_no_form():
    class Own(jm.policy.NetworkPolicy):
        """It may do anything."""

    network = cloned(True)
    own = Own(network.layers, network.mean, network.scale)
    by_hand = LinearValuePolicy(lambda seen: seen, np.ones((2, 2)), 0, 1)
    other = jm.policy.ObservationPolicy(network, observations=np.zeros((3, 2)))
    named = jm.policy.ObservationPolicy(network, action_names=["left", "right"])
    rule = jm.policy.ObservationPolicy(lambda seen: np.zeros(len(seen), dtype=int))
    for policy in (own, by_hand, other, named, rule, lambda seen, rng: seen, None):
        assert form_of(policy) is None
    assert policy_of({"form": "unheard of"}, {}.get) is None


@pytest.mark.parametrize("name", NAMES)
def test_words_that_lack_something_are_refused(name):
    form = form_of(policies()[name])
    for word in set(form.words) - {"form"}:
        less = {key: value for key, value in form.words.items() if key != word}
        with pytest.raises(InvalidPolicy, match="is not whole"):
            policy_of(less, lambda part: form.arrays[part])
    with pytest.raises(InvalidPolicy, match="is not whole"):
        policy_of(form.words, {}.__getitem__)


WRONG = [np.array(1.0), np.zeros(0), np.zeros((2, 2, 2)), np.array(["a", "b"]),
         np.array([np.nan] * 4), np.array([1j])]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: f"{one.dtype}{one.shape}")
def test_arrays_that_are_not_those_of_a_policy_are_refused(name, wrong):
    form = form_of(policies()[name])
    for part in form.arrays:
        if form.arrays[part].shape == wrong.shape and wrong.dtype.kind == "f":
            continue
        with pytest.raises(InvalidPolicy):
            policy_of(form.words, (form.arrays | {part: wrong}).__getitem__)


@pytest.mark.parametrize("word", [None, "x", [], {}, 1.5, float("inf")])
@pytest.mark.parametrize("name", NAMES)
def test_words_of_another_kind_are_refused(name, word):
    form = form_of(policies()[name])
    for key in set(form.words) - {"form"}:
        with pytest.raises(InvalidPolicy):
            policy_of(form.words | {key: word}, form.arrays.__getitem__)


@pytest.mark.parametrize("name", ["network", "wrapped", "quadratic", "radial"])
def test_scales_are_above_zero(name):
    form = form_of(policies()[name])
    with pytest.raises(InvalidPolicy, match="a scale is not above 0"):
        policy_of(form.words, (form.arrays | {"scale": np.array([1.0, 0.0])}).__getitem__)


def test_laws_of_visited_states_are_laws():
    for states, laws in (
        ([1, 0], np.full((3, 2), 0.5)), ([0, 1], np.full((2, 2), 0.5)), ([0], np.ones((2, 2))),
        ([0], [[1.5, -0.5]] * 2), ([], np.full((1, 2), 0.5)),
    ):  # fmt: skip
        with pytest.raises(InvalidPolicy):
            ClonedPolicy(states, laws)
