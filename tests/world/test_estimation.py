"""Worlds that are estimates: what they declare, and worlds from recorded transitions."""

import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.world.estimation import observed_support

ROWS = [[0.5, 0.5], [0.0, 1.0], [0.25, 0.75]]
OFFSETS = [0, 2, 3]
unworried = pytest.mark.filterwarnings("ignore::journeyman.errors.SupportWarning")
LOG = {"states": [0, 0, 0, 1], "actions": [2, 2, 0, 1], "next_states": [0, 1, 1, 1]}


def estimated(**facts):
    return jm.World(ROWS, [1, 0], 0.9, choice_offsets=OFFSETS, **facts)


def recorded(discount=0.9, **changes):
    arguments = {**LOG, "initial": [1, 0], **changes}
    return jm.World.from_transitions(discount=discount, **arguments)


def counted(states, actions, next_states):
    """The naive twin: exact frequencies of a dictionary."""
    pairs = Counter(zip(states, actions, strict=True))
    steps = Counter(zip(states, actions, next_states, strict=True))
    return pairs, {step: Fraction(times, pairs[step[:2]]) for step, times in steps.items()}


steps = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=60
)


@given(steps)
def test_laws_are_the_frequencies_of_what_was_recorded(log):
    log = [*log, *((x, 1, (x + 1) % 5) for x in range(5))]
    states, actions, next_states = map(list, zip(*log, strict=True))
    world = jm.World.from_transitions(states, actions, next_states, 0.9, initial_states=[0, 0, 3])
    pairs, law = counted(states, actions, next_states)
    assert world.num_states == 5
    assert list(zip(world.pairs.states, world.observed_actions, strict=True)) == sorted(pairs)
    assert world.transition_counts.tolist() == [pairs[pair] for pair in sorted(pairs)]
    dense = world.transition.toarray()
    for pair, (state, action) in enumerate(sorted(pairs)):
        for target in range(5):
            exact = float(law.get((state, action, target), 0))
            assert dense[pair, target] == pytest.approx(exact, rel=1e-15)
    assert world.initial.tolist() == [2 / 3, 0, 0, 1 / 3, 0]
    assert world.initial_count == 3
    assert world.is_estimated
    assert world.pairs.actions[world.pairs.index(states, actions)].tolist() == actions


def test_actions_never_observed_are_not_offered():
    world = recorded()
    assert world.pairs.offsets.tolist() == [0, 2, 3]
    assert world.observed_actions.tolist() == [0, 2, 1]
    assert world.transition.toarray().tolist() == [[0, 1], [0.5, 0.5], [0, 1]]
    assert world.transition_counts.tolist() == [1, 2, 1]
    assert world.initial_count is None
    assert world.pairs.actions.tolist() == [0, 2, 1]
    assert world.pairs.index([0, 1, 0], [2, 1, 0]).tolist() == [1, 2, 0]
    assert world.describe_pair(1) == "state 0, action 2"


def test_more_records_converge_to_the_true_world():
    truth = jm.World(ROWS, [1, 0], 0.9, choice_offsets=OFFSETS)
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 3, 60_000)
    after = (rng.random(pairs.size) < truth.transition.toarray()[pairs, 1]).astype(int)
    world = jm.World.from_transitions(
        truth.pairs.states[pairs], truth.pairs.actions[pairs], after, 0.9, initial=[1, 0]
    )
    assert abs(world.transition - truth.transition).max() < 0.02
    assert world.pairs == truth.pairs


def test_where_episodes_end_is_given_as_absorbing():
    world = jm.World.from_transitions([0, 0], [3, 3], [0, 1], 0.9, initial=[1, 0], absorbing=[1])
    assert world.absorbing.tolist() == [False, True]
    assert world.observed_actions.tolist() == [3, 3]
    assert world.transition_counts.tolist() == [2, 0]
    assert world.transition_error.tolist() == [2, 0]
    assert world.sink is None


def test_the_sink_is_absorbing_and_observed_steps_within_it_are_kept():
    log = {"states": [0, 2, 2], "actions": [0, 1, 1], "next_states": [2, 2, 2]}
    world = jm.World.from_transitions(**log, discount=0.9, initial=[1, 0, 0], absorbing=[1], sink=2)
    assert world.sink == 2
    assert world.transition_counts.tolist() == [1, 0, 2]
    assert world.transition_error.tolist() == [2, 0, 0]
    assert world.observed_actions.tolist() == [0, 0, 1]


def test_an_observed_self_loop_is_no_proof_of_an_absorbing_state():
    world = recorded()
    assert world.transition.toarray()[-1].tolist() == [0, 1]
    assert world.absorbing.tolist() == [False, False]
    assert world.transition_error is None


@unworried
@pytest.mark.parametrize(
    "support",
    [
        [[1, 1], [0, 3]],
        sparse.csr_array([[1, 1], [0, 1]]),
        [[0, 1], [1, 0], [1, 1], [9, 9], [0, 1], [0, 0]],
    ],
    ids=["per state", "sparse", "per state and action"],
)
def test_the_support_follows_the_pairs(support):
    world = recorded(support=support)
    assert world.known_support
    expected = [[0, 1], [1, 1], [0, 1]] if np.shape(support)[0] == 6 else [[1, 1], [1, 1], [0, 1]]
    assert world.support.toarray().tolist() == expected


@unworried
def test_a_support_may_speak_of_more_actions_than_were_recorded():
    support = np.zeros((2, 5, 2))
    support[0, [0, 2]], support[1, 1] = [0, 1], [1, 1]
    support[0, 2, 0] = 1
    world = recorded(support=support.reshape(10, 2))
    assert world.support.toarray().tolist() == [[0, 1], [1, 1], [1, 1]]


def test_unobserved_states_of_the_support_are_kept():
    world = estimated(support=np.ones((3, 2)), transition_counts=8)
    assert np.diff(world.support.indptr).tolist() == [2, 2, 2]


def test_one_figure_stands_for_every_pair():
    world = estimated(transition_error=0.1, transition_counts=8, initial_error=0.2, initial_count=4)
    assert world.transition_error.tolist() == [0.1] * 3
    assert world.transition_counts.tolist() == [8] * 3
    assert (world.initial_error, world.initial_count) == (0.2, 4)
    assert estimated(transition_error=[0.1, 0.2]).transition_error.tolist() == [0.1, 0.1, 0.2]
    table = estimated(transition_counts=[[2, 3], [4, 9]])
    assert table.transition_counts.tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    "facts",
    [{"transition_error": 0.0}, {"initial_error": 0.1}, {"transition_counts": 4},
     {"initial_count": 3}],
)  # fmt: skip
def test_any_doubt_makes_a_world_an_estimate(facts):
    assert estimated(**facts).is_estimated
    assert not estimated().is_estimated
    assert not estimated(support=np.ones((2, 2))).is_estimated
    assert "estimated" in repr(estimated(**facts))
    assert "estimated" not in repr(estimated())


FACTS = {
    "transition_error": [0.1, 2.0, 0.0],
    "transition_counts": [4, 5, 0],
    "initial_error": 0.25,
    "initial_count": 9,
    "support": [[1, 1], [1, 1], [1, 1]],
    "observed_actions": [1, 3, 0],
}


def same(left, right):
    if left is None or right is None or np.isscalar(left):
        return left == right
    return np.array_equal(
        *(part.toarray() if sparse.issparse(part) else part for part in (left, right))
    )


ALONE = [{name: FACTS[name]} for name in FACTS if name != "transition_counts"]


@pytest.mark.parametrize("kept", [FACTS, {}, *ALONE], ids=lambda kept: "+".join(kept) or "none")
def test_an_estimated_world_comes_back_whole(tmp_path, kept):
    world = estimated(**kept)
    world.save(tmp_path / "world.npz")
    again = jm.World.load(tmp_path / "world.npz")
    for name in FACTS:
        assert same(getattr(again, name), getattr(world, name)), name
        assert (getattr(again, name) is None) == (name not in kept)


def test_the_arrays_of_an_estimate_cannot_be_changed():
    world = estimated(**FACTS)
    for name in ("transition_error", "transition_counts", "observed_actions"):
        assert not getattr(world, name).flags.writeable
    assert not world.support.data.flags.writeable


def test_a_support_that_equals_the_observed_pattern_is_warned_of():
    """Read off the record it would make the law of a pair that led to one state exact."""
    log = {"states": [0, 0, 1, 1], "actions": [0, 0, 0, 0], "next_states": [1, 1, 0, 1]}
    pattern = [[0, 1], [1, 1]]
    with pytest.warns(jm.errors.SupportWarning, match="equals the observed pattern") as caught:
        world = recorded(**log, support=pattern)
    words = str(caught[0].message)
    assert caught[0].filename == __file__
    assert "one next state, the observed one, in 1 recorded pairs" in words
    assert "the first is state 0, action 0" in words
    assert "leave support out" in words
    equal, sure = observed_support(world)
    assert (equal, sure.tolist()) == (True, [True, False])


def test_one_pair_that_is_exact_by_its_support_is_enough_for_a_warning():
    log = {"states": [0, 0, 1, 1], "actions": [0, 0, 0, 0], "next_states": [1, 1, 1, 1]}
    with pytest.warns(jm.errors.SupportWarning, match=r"^the support allows one next state"):
        world = recorded(**log, support=[[0, 1], [1, 1]])
    assert not observed_support(world)[0]


def test_a_support_that_says_more_than_the_record_is_not_warned_of():
    """Warnings are errors here. What is declared otherwise needs no support."""
    log = {"states": [0, 0, 1], "actions": [0, 0, 0], "next_states": [1, 1, 1]}
    world = recorded(**log, support=[[1, 1], [0, 1]], absorbing=[1])
    assert not observed_support(world)[0]
    assert not observed_support(world)[1].any()
    estimated(support=[[1, 1], [1, 1]], transition_error=0.1)
    assert not recorded(**log, absorbing=[1]).known_support


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 200))
def test_frequencies_are_counts_of_their_laws_and_smoothed_ones_are_not(draws, more):
    seen = np.bincount(draws, minlength=4)
    rows = np.tile(seen / seen.sum(), (4, 1))
    world = jm.World(rows, seen / seen.sum(), 0.9, transition_counts=len(draws),
                     initial_count=len(draws))  # fmt: skip
    assert world.transition_counts.tolist() == [len(draws)] * 4
    jm.World(np.round(rows, 12), [1, 0, 0, 0], 0.9, transition_counts=len(draws))
    smoothed = np.tile((seen + 0.37) / (seen.sum() + 4 * 0.37), (4, 1))
    with pytest.raises(
        jm.errors.InvalidWorld, match=r"state 0, action 0, but its probability"
    ) as refusal:
        jm.World(smoothed, [1, 0, 0, 0], 0.9, transition_counts=len(draws))
    assert "transition_error=" in refusal.value.remedy
    jm.World(smoothed, [1, 0, 0, 0], 0.9, transition_error=0.5)
    known = {"transition_error": 0.0, "transition_counts": len(draws)}
    jm.World(smoothed, [1, 0, 0, 0], 0.9, **known)


def test_many_draws_are_frequencies_in_spite_of_rounding():
    rng = np.random.default_rng(0)
    for count in (3, 7, 10**5 + 3, 10**9 + 7):
        seen = rng.multinomial(count, rng.dirichlet(np.ones(6)), size=6)
        laws = seen / count
        for given_laws in (laws, laws / laws.sum(axis=1, keepdims=True), np.round(laws, 10)):
            if np.abs(given_laws.sum(axis=1) - 1).max() < 1e-8:
                jm.World(given_laws, np.ones(6) / 6, 0.9, transition_counts=count)


REFUSED = [
    (
        lambda: jm.World(np.tile([0.6, 0.2, 0.1, 0.1], (8, 1)), [0.25] * 4, 0.9,
                         transition_counts=[3] * 8),
        "is 3 for state 0, action 0, but its probability 0.6 of state 0", "transition_error=",
    ),
    (
        lambda: estimated(transition_counts=[2, 2, 3]),
        "is 3 for state 1, action 0, but its probability 0.25 of state 0", "pseudo-counts",
    ),
    (
        lambda: jm.World(ROWS, [0.3, 0.7], 0.9, choice_offsets=OFFSETS, initial_count=9),
        r"initial\[0\] = 0.3 is no frequency of 9 starts: that would be 2.7 of", "initial_error",
    ),
    (lambda: estimated(transition_error=2.1), r"2.1 for state 0, action 0", "between 0 and 2"),
    (lambda: estimated(transition_error=[0, 0, -1]), r"-1.0 for state 1, action 0", "between 0"),
    (lambda: estimated(transition_error=[0.1] * 5), "transition_error has 5 rows", "per pair"),
    (lambda: estimated(transition_error=[np.nan] * 3), "not finite", "Replace"),
    (lambda: estimated(initial_error=3), "initial_error = 3.0", "between 0 and 2"),
    (lambda: estimated(initial_error="low"), "initial_error is not", "plain numbers"),
    (lambda: estimated(transition_counts=[1, 0, 1]), "0 for state 0, action 1", "never observed"),
    (lambda: estimated(transition_counts=[1, 1, -1], transition_error=0), "-1 for", "Leave out"),
    (lambda: estimated(transition_counts=1.5), "1.5 is not a whole number", "integer"),
    (lambda: estimated(initial_count=0), "initial_count = 0", "None if"),
    (lambda: estimated(support=[[1, 1], [1, 0]]), "state 1, action 0 leads to state 1", "Mark"),
    (lambda: estimated(support=np.ones((3, 3))), "support has 3 columns", "column"),
    (lambda: estimated(support=np.ones((5, 2))), "support has 5 rows", "per pair"),
    (lambda: estimated(observed_actions=[1, 1, 0]), r"pair 1 \(state 0\) is 1", "increasing"),
    (lambda: estimated(observed_actions=[-1, 1, 0]), r"pair 0 \(state 0\) is -1", "from 0"),
    (lambda: estimated(observed_actions=[0, 1]), "action numbers has 2 entries", "each"),
    (lambda: recorded(action_names=["a", "b"]), "action_names has 2 names, expected 3", "each"),
    (lambda: recorded(initial_states=[0]), "are both given", "a known law, or"),
    (lambda: recorded(initial=None), "are not given", "first state of every episode"),
    (lambda: recorded(initial=None, initial_states=[]), "initial_states is empty", "one"),
    (lambda: recorded(actions=[0]), "actions has 1 entries, expected 4", "each"),
    (lambda: recorded(actions=[0, 0, -1, 0]), r"actions\[2\] = -1", "from 0"),
    (lambda: recorded(states=[], actions=[], next_states=[]), "no transition", "recorded step"),
    (lambda: recorded(num_states=1), r"states\[3\] = 1 is outside", "ids"),
    (lambda: recorded(num_states=0), "num_states = 0", "from 1"),
    (lambda: recorded(next_states=[0, 1, 1, -2]), r"next_states\[3\] = -2", "ids"),
    (lambda: recorded(absorbing=[5]), r"absorbing\[0\] = 5", "ids"),
    (lambda: recorded(initial=None, initial_states=[7], num_states=2), r"initial_states\[0\]",
     "ids"),
    (lambda: recorded(absorbing=[0]), "state 0 is given as absorbing, but step 1 leads .* state 1",
     "after an episode's end"),
    (lambda: recorded(sink=0), "state 0 is given as absorbing", "Leave it out"),
    (lambda: recorded(next_states=[0, 1, 2, 1], initial=[1, 0, 0]),
     r"from 1 of 3 states: state 2 was reached \(step 2 leads to 2\) and never left",
     r"absorbing=\[2\]"),
    (lambda: recorded(initial=[1, 0, 0, 0]),
     "from 2 of 4 states: states 2, 3 occur nowhere", "drop_unseen=True"),
    (lambda: recorded(initial=[0.5, 0, 0.5]),
     "state 2 occurs as a first state only", "no episode starts where nothing was recorded"),
    (lambda: recorded(next_states=[0, 1, 30, 1], initial=None, initial_states=[0]),
     "state 30 was reached .* states 2, 3, 4, .*, 21, ... .28 in all. occur nowhere",
     r"absorbing=\[30\].*drop_unseen"),
    (lambda: recorded(support=np.ones((3, 2))), r"support has shape \(3, 2\)", "one row per state"),
    (lambda: recorded(support=np.ones((4, 2))), "2 states and 3 actions", "state and action"),
    (lambda: recorded(support=np.ones((2, 3))), r"shape \(2, 3\)", "next state"),
    (lambda: recorded(support=[[1, 1], [1, 0]]), "state 1, action 1 leads to state 1", "Mark"),
    (lambda: recorded(actions=[0, 2, 2**31, 1]), r"actions\[2\] = 2147483648", "below"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "what", "remedy"), REFUSED, ids=[case[1] for case in REFUSED])
def test_what_cannot_be_is_refused_with_the_place_and_the_remedy(wrong, what, remedy):
    with pytest.raises(jm.errors.InvalidWorld, match=what) as refusal:
        wrong()
    assert re.search(remedy, refusal.value.remedy)


def test_a_world_of_all_recorded_actions_keeps_their_names_and_numbers():
    world = jm.World.from_transitions(
        [0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1], 0.9, initial=[1, 0], action_names=["go", "stay"]
    )
    assert world.action_names == ("go", "stay")


def test_demonstrations_are_read_in_the_numbers_of_the_record():
    log = {"states": [0, 0, 1, 1], "actions": [1, 2, 0, 1], "next_states": [1, 0, 0, 1]}
    world = jm.World.from_transitions(**log, discount=0.9, initial=[1, 0])
    demos = jm.Demonstrations.from_arrays([[0, 1, 0]], [[1, 0]])
    assert world.pairs.actions[demos.pairs_in(world)].tolist() == [1, 0]
    unseen = jm.Demonstrations.from_arrays([[1, 0, 0]], [[0, 0]])
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match="step 1: action 0 was never recorded in"
    ):
        unseen.pairs_in(world)


def test_demonstrations_recorded_in_the_estimated_world_keep_its_numbers():
    log = {"states": [0, 0, 1, 1], "actions": [1, 2, 0, 1], "next_states": [1, 0, 0, 1]}
    world = jm.World.from_transitions(**log, discount=0.9, initial=[1, 0])
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=5, horizon=9, seed=0)
    assert set(demos.actions.tolist()) == {0, 1, 2}
    assert set(demos.actions[demos.step_states == 0].tolist()) == {1, 2}
    np.testing.assert_array_equal(world.pairs.actions[demos.pairs_in(world)], demos.actions)
