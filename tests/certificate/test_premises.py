"""Premises: the e-values are exact, honest under the truth, and find what is wrong."""

import math
import tracemalloc
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.certificate.betting import (
    CONCENTRATIONS,
    START_BLOCKS,
    TEMPERS,
    WRONG_SHARES,
    start_evidence,
    step_evidence,
)
from journeyman.certificate.premises import expert_premises
from journeyman.certificate.terms import Premise, PremiseStatus, declared, failed, refuted
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.strategies import seeds, worlds
from journeyman.world.levels import Level

COPIED = "no episode was copied"
STARTS, STEPS = "start states follow the initial law", "steps follow the transition law"


def premises_of(world, demos, level=1e-3):
    problem = jm.Apprenticeship(world, jm.CostBasis(np.eye(world.num_states)), demos)
    return {premise.name: premise for premise in expert_premises(problem, level)}


def log_step_evidence(world, demos):
    return step_evidence(world, demos)[1]


def log_start_evidence(world, demos):
    return start_evidence(world, demos)[1]


def naive_wealths(draws):
    """One bet after the other on (row, outcome, its law): wealth of counts by kappa and row, and
    of tempered laws by beta."""
    counts, visits = defaultdict(int), defaultdict(int)
    of_rows = {kappa: defaultdict(lambda: 1.0) for kappa in CONCENTRATIONS}
    tempered = dict.fromkeys(TEMPERS, 1.0)
    for row, outcome, law in draws:
        true = law[outcome]
        for kappa, wealth in of_rows.items():
            predicted = (counts[row, outcome] + kappa * true) / (visits[row] + kappa)
            wealth[row] *= predicted / true
        for beta in TEMPERS:
            total = sum(probability**beta for probability in law if probability > 0)
            tempered[beta] *= true**beta / total / true
        counts[row, outcome] += 1
        visits[row] += 1
    return of_rows, tempered


def naive_log_step_evidence(world, demos):
    transition = world.transition.toarray()
    draws = []
    for j in range(len(demos)):
        states, actions = (part.tolist() for part in demos.episode(j))
        for state, action, following in zip(states, actions, states[1:], strict=False):
            pair = int(world.pairs.offsets[state]) + action
            draws.append((pair, following, transition[pair].tolist()))
    of_rows, tempered = naive_wealths(draws)
    wealths = [
        math.prod(1 - share + share * wealth for wealth in of_rows[kappa].values())
        for kappa in CONCENTRATIONS
        for share in WRONG_SHARES
    ]
    return math.log((np.mean(wealths) + np.mean(list(tempered.values()))) / 2)


def naive_log_start_evidence(world, demos):
    initial = world.initial.tolist()
    starts = [int(demos.episode(j)[0][0]) for j in range(len(demos))]
    of_states, tempered = naive_wealths([(0, start, initial) for start in starts])
    wealths = [wealth[0] for wealth in of_states.values()]
    for number in START_BLOCKS:
        blocks = [
            math.floor(number * (sum(initial[:x]) + initial[x] / 2)) for x in range(len(initial))
        ]
        law = [sum(p for p, at in zip(initial, blocks, strict=True) if at == b)
               for b in range(number + 1)]  # fmt: skip
        of_blocks, _ = naive_wealths([(0, blocks[start], law) for start in starts])
        wealths += [wealth[0] for wealth in of_blocks.values()]
    return math.log((np.mean(wealths) + np.mean(list(tempered.values()))) / 2)


@given(worlds(), seeds, st.integers(1, 12), st.integers(1, 25))
def test_the_closed_form_equals_bets_made_one_after_the_other(world, seed, episodes, horizon):
    expert = random_policy(world, seed)
    demos = jm.record(world, expert, trajectories=episodes, horizon=horizon, seed=seed)
    naive = naive_log_step_evidence(world, demos), naive_log_start_evidence(world, demos)
    assert log_step_evidence(world, demos) == pytest.approx(naive[0], abs=1e-9)
    assert log_start_evidence(world, demos) == pytest.approx(naive[1], abs=1e-9)


def test_the_closed_form_holds_for_records_of_another_world():
    """Where wealth is far from one, and pairs are visited often."""
    world, other = (jm.gallery.garnet(6, 2, 6, seed=seed) for seed in (0, 1))
    demos = jm.record(other.world, other.expert, trajectories=10, horizon=20, seed=0)
    naive = naive_log_step_evidence(world.world, demos)
    assert naive > 50
    assert log_step_evidence(world.world, demos) == pytest.approx(naive, rel=1e-12)


TINY = jm.World(
    [[0.5, 0.3, 0.2], [0.0, 0.1, 0.9], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5], [0.0, 0.6, 0.4]],
    [0.7, 0.2, 0.1],
    0.9,
    choice_offsets=[0, 2, 3, 5],
)


def moody_action(past, state):
    """An action that depends on all episodes so far."""
    mood = sum(sum(states) + len(states) for states in past)
    return mood % int(TINY.pairs.actions_per_state[state])


def all_continuations(past):
    """(probability, record) of one more episode; it stops after one to three steps, as its states
    say. A record is a list of episodes, an episode a list of states."""
    unfinished = [(TINY.initial[x], [x]) for x in range(3) if TINY.initial[x] > 0]
    while unfinished:
        probability, states = unfinished.pop()
        if len(states) > 1 and (len(states) == 4 or states[-1] == 0):
            yield probability, [*past, states]
            continue
        pair = TINY.pairs.offsets[states[-1]] + moody_action([*past, states], states[-1])
        law = TINY.transition[[pair]].toarray().ravel()
        unfinished += [(probability * law[y], [*states, y]) for y in range(3) if law[y] > 0]


def as_demonstrations(record):
    actions = [
        [moody_action([*record[:j], states[: t + 1]], states[t]) for t in range(len(states) - 1)]
        for j, states in enumerate(record)
    ]
    return jm.Demonstrations.from_arrays(record, actions)


@pytest.fixture(scope="module")
def every_record():
    """(probability, demonstrations) of all that can happen in two episodes."""
    return [
        (first * second, as_demonstrations(record))
        for first, past in all_continuations([])
        for second, record in all_continuations(past)
    ]


def test_the_e_values_have_mean_one_over_everything_that_can_happen(every_record):
    probabilities = np.array([probability for probability, _ in every_record])
    starts = np.exp([log_start_evidence(TINY, demos) for _, demos in every_record])
    steps = np.exp([log_step_evidence(TINY, demos) for _, demos in every_record])
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    for e_value in (starts, steps, starts * steps):
        assert probabilities @ e_value == pytest.approx(1, abs=1e-12)
        assert e_value.min() < 0.97
        assert e_value.max() > 1.5


def test_the_mean_exceeds_one_when_the_law_is_another(every_record):
    transition = TINY.transition.toarray()
    transition[0] = [0.05, 0.05, 0.9]
    wrong = jm.World(transition, [0.1, 0.2, 0.7], 0.9, choice_offsets=TINY.pairs.offsets)
    for evidence in (log_start_evidence, log_step_evidence):
        mean = sum(chance * math.exp(evidence(wrong, demos)) for chance, demos in every_record)
        assert mean > 1.1


def test_false_alarms_are_as_rare_as_the_level_says():
    runs, level = 300, 0.05
    world, basis, expert = jm.gallery.grid(5, seed=3)
    alarms = {COPIED: 0, STARTS: 0, STEPS: 0}
    for seed in range(runs):
        demos = jm.record(world, expert, trajectories=10, horizon=15, seed=seed)
        for premise in refuted(expert_premises(jm.Apprenticeship(world, basis, demos), level)):
            alarms[premise.name] += 1
    allowed = level * runs + 4 * math.sqrt(runs * level * (1 - level))
    assert max(alarms.values()) <= allowed


def test_sound_demonstrations_are_not_refuted():
    world, _, expert = jm.gallery.grid(8, seed=0)
    found = premises_of(world, jm.record(world, expert, trajectories=50, horizon=60, seed=0))
    assert [premise.status for premise in found.values()] == [
        PremiseStatus.DECLARED,
        PremiseStatus.TESTED,
        PremiseStatus.TESTED,
        PremiseStatus.TESTED,
    ]
    assert [premise.level for premise in found.values()] == [None, 1e-3, 1e-3, 1e-3]
    assert "e-value" in found[STEPS].detail
    assert refuted(found.values()) == ()


@pytest.mark.parametrize(
    ("slip", "words"), [(0.5, "unlikely states come too often"), (0.1, "come too rarely")]
)
def test_another_slip_is_refuted_from_few_steps(slip, words):
    world, _, expert = jm.gallery.grid(16, slip=0.3, seed=0)
    actual, _, _ = jm.gallery.grid(16, slip=slip, seed=0)
    found = premises_of(world, jm.record(actual, expert, trajectories=10, horizon=60, seed=0))
    assert found[STEPS].status is PremiseStatus.FAILED
    assert found[STARTS].status is PremiseStatus.TESTED
    assert words in found[STEPS].detail


def test_evidence_too_large_for_a_float_is_reported():
    world, _, expert = jm.gallery.grid(8, slip=0.3, seed=0)
    actual, _, _ = jm.gallery.grid(8, slip=0.9, seed=0)
    found = premises_of(world, jm.record(actual, expert, trajectories=100, horizon=60, seed=0))
    assert found[STEPS].status is PremiseStatus.FAILED
    assert "e-value 10^" in found[STEPS].detail


def test_the_status_turns_where_the_e_value_is_one_over_the_level():
    world, _, expert = jm.gallery.grid(16, slip=0.3, seed=0)
    actual, _, _ = jm.gallery.grid(16, slip=0.5, seed=0)
    demos = jm.record(actual, expert, trajectories=5, horizon=30, seed=0)
    turn = math.exp(-log_step_evidence(world, demos))
    assert turn < 0.5
    assert premises_of(world, demos, level=turn * 1.001)[STEPS].status is PremiseStatus.FAILED
    assert premises_of(world, demos, level=turn * 0.999)[STEPS].status is PremiseStatus.TESTED


def test_swapped_actions_are_refuted():
    world, _, expert = jm.gallery.grid(16, seed=0)
    demos = jm.record(world, expert, trajectories=5, horizon=20, seed=0)
    swapped = jm.Demonstrations(demos.states, (demos.actions + 2) % 4, demos.offsets)
    assert premises_of(world, demos)[STEPS].status is PremiseStatus.TESTED
    assert premises_of(world, swapped)[STEPS].status is PremiseStatus.FAILED


def test_one_wrong_pair_among_many_is_refuted_and_named():
    world, _, _ = jm.gallery.grid(4, macro_cells=2, seed=0)
    transition = world.transition.toarray()
    row = 4 * 5 + 1
    transition[row] = transition[row] / 2 + transition[row + 1] / 2
    actual = jm.World(transition, world.initial, world.discount)
    everywhere = jm.Policy.uniform(world)
    demos = jm.record(actual, everywhere, trajectories=100, horizon=100, seed=0)
    premise = premises_of(world, demos)[STEPS]
    assert premise.status is PremiseStatus.FAILED
    assert "state 5, action 1 to state" in premise.detail
    assert "frequency" in premise.detail
    assert "expected" in premise.detail


def test_a_single_wrong_pair_needs_the_small_shares():
    """All pairs together lose more on the sound ones than the wrong one wins."""
    world, _, _ = jm.gallery.garnet(100, 2, 10, seed=0)
    rng = np.random.default_rng(0)
    pairs = np.repeat(np.arange(200), 10)
    transition = world.transition.toarray()
    following = np.array([rng.choice(100, p=transition[pair]) for pair in pairs])
    support = np.flatnonzero(transition[0])
    following[:10] = support[np.argsort(transition[0, support])[3]]
    steps = np.column_stack([pairs // 2, following])
    demos = jm.Demonstrations(steps.ravel(), pairs % 2, np.arange(pairs.size + 1))
    strongest, log_value = step_evidence(world, demos)
    all_together = max(strongest.tally.against_counts(kappa).sum() for kappa in CONCENTRATIONS)
    assert all_together < log_value
    assert log_value > math.log(1000)
    assert strongest.most_out_of_line()[0] == 0


def test_starts_in_another_region_are_refuted():
    world, _, expert = jm.gallery.grid(16, seed=0)
    upper_half = np.repeat([1 / 128, 0], 128)
    actual, _, _ = jm.gallery.grid(16, seed=0, initial=upper_half)
    found = premises_of(world, jm.record(actual, expert, trajectories=40, horizon=20, seed=0))
    assert found[STARTS].status is PremiseStatus.FAILED
    assert found[STEPS].status is PremiseStatus.TESTED
    assert "most out of line is a start in states " in found[STARTS].detail


def test_a_favourite_start_is_refuted_and_named():
    world, _, expert = jm.gallery.grid(16, seed=0)
    law = np.full(256, 0.7 / 256)
    law[77] += 0.3
    actual, _, _ = jm.gallery.grid(16, seed=0, initial=law)
    premise = premises_of(world, jm.record(actual, expert, trajectories=60, horizon=5, seed=0))
    assert premise[STARTS].status is PremiseStatus.FAILED
    assert "most out of line is a start in state 77: " in premise[STARTS].detail


def test_an_impossible_start_fails_outright_with_episode_and_state():
    world = jm.World(np.full((3, 3), 1 / 3), [0.5, 0.5, 0.0], 0.9)
    demos = jm.Demonstrations([0, 1, 1, 2, 2, 0], [0, 0, 0], [0, 1, 2, 3])
    found = premises_of(world, demos)
    assert found[STARTS].status is PremiseStatus.FAILED
    assert "episode 2 starts in state 2" in found[STARTS].detail
    assert found[STEPS].status is PremiseStatus.TESTED


def test_states_that_cannot_start_do_not_disturb_the_others():
    world = jm.World(np.full((4, 4), 1 / 4), [0.0, 0.5, 0.0, 0.5], 0.9)
    demos = jm.Demonstrations([1, 0] * 40, [0] * 40, range(41))
    premise = premises_of(world, demos)[STARTS]
    assert premise.status is PremiseStatus.FAILED
    assert "start in state 1: 40 of 40" in premise.detail


def test_certain_steps_say_nothing_for_or_against():
    world = jm.World(np.roll(np.eye(4), 1, axis=1), [1, 0, 0, 0], 0.9)
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=3, horizon=50, seed=0)
    assert log_step_evidence(world, demos) == pytest.approx(0, abs=1e-12)
    assert log_start_evidence(world, demos) == pytest.approx(0, abs=1e-12)


def test_tiny_probabilities_stay_finite():
    law = np.array([1e-300, 0.5, 0.5])
    world = jm.World(np.tile(law, (3, 1)), law, 0.9)
    demos = jm.Demonstrations([0, 0] * 5, [0] * 5, range(6))
    found = premises_of(world, demos)
    assert {one.name for one in refuted(found.values())} == {COPIED, STARTS, STEPS}
    assert math.isfinite(log_step_evidence(world, demos))


def test_the_order_of_the_episodes_does_not_matter():
    world, _, expert = jm.gallery.grid(4, seed=0)
    demos = jm.record(world, expert, trajectories=12, horizon=9, seed=0)
    states, actions = zip(*(demos.episode(j) for j in reversed(range(12))), strict=True)
    backwards = jm.Demonstrations.from_arrays(states, actions)
    for evidence in (log_start_evidence, log_step_evidence):
        assert evidence(world, backwards) == pytest.approx(evidence(world, demos), abs=1e-12)


def test_a_large_world_needs_memory_for_its_states_and_the_record_only():
    states = 100_000
    rng = np.random.default_rng(0)
    targets = np.sort(rng.integers(states - 3, size=(2 * states, 3)), axis=1) + np.arange(3)
    parts = (np.full(6 * states, 1 / 3), targets.ravel(), np.arange(0, 6 * states + 1, 3))
    world = jm.World(
        sparse.csr_array(parts, shape=(2 * states, states)), np.full(states, 1 / states), 0.9
    )
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=5, horizon=100, seed=0)
    tracemalloc.start()
    try:
        log_values = log_start_evidence(world, demos), log_step_evidence(world, demos)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert max(log_values) < 1
    assert peak < 300 * states


def test_declared_expectations_are_one_declared_premise():
    world, basis, _ = jm.gallery.grid(4, seed=0)
    expert = jm.ExpertExpectation(np.zeros(basis.num_costs))
    (premise,) = expert_premises(jm.Apprenticeship(world, basis, expert))
    assert premise.name == "the declared expectations are those of the expert"
    assert premise.status is PremiseStatus.DECLARED
    assert premise.level is None


UNKNOWN = "the expert acts in the world the model describes"
AGREES = "demonstrations agree with the estimated laws"


@pytest.mark.parametrize(
    ("facts", "names", "words"),
    [
        ({"transition_error": 0.1}, [STARTS, UNKNOWN], "steps cannot"),
        ({"transition_counts": [40, 40]}, [STARTS, UNKNOWN], "steps cannot"),
        ({"initial_error": 0.1}, [STEPS, UNKNOWN], "starts cannot"),
        ({"initial_count": 40}, [STEPS, UNKNOWN], "starts cannot"),
        ({"initial_error": 0.1, "transition_error": 0.1}, [UNKNOWN], "starts and steps cannot"),
    ],
)
def test_a_law_that_is_an_estimate_is_not_bet_against(facts, names, words):
    """The record contradicts both laws of the model, by less than errors may explain."""
    demos = jm.Demonstrations([0, 0] * 40, [0] * 40, range(41))
    exact = jm.World([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5], 0.9)
    contradicted = {one.name for one in refuted(premises_of(exact, demos).values())}
    assert contradicted == {COPIED, STARTS, STEPS}
    estimated = jm.World([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5], 0.9, **facts)
    found = premises_of(estimated, demos)
    assert list(found) == ["independent trajectories", COPIED, *names, AGREES]
    assert found[UNKNOWN].status is PremiseStatus.DECLARED
    assert words in found[UNKNOWN].detail
    others = [one.name for one in refuted(found.values()) if one.name not in (AGREES, COPIED)]
    assert others == names[:-1]
    assert (found[COPIED].status is PremiseStatus.FAILED) == (len(names) > 1)


def test_estimates_without_their_demonstrations_are_refused():
    unknown = SimpleNamespace(is_declared=False)
    problem = SimpleNamespace(
        world=None, expert=unknown, expectation=unknown, demonstrations=None, records=None,
        level=Level.EXPLICIT,
    )  # fmt: skip
    with pytest.raises(jm.errors.InvalidProblem, match="does not hold the demonstrations"):
        expert_premises(problem)


@pytest.mark.parametrize("level", [0, 1, -0.1, math.nan, "often"])
def test_a_level_is_a_probability(level):
    world, basis, _ = jm.gallery.grid(4, seed=0)
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(np.zeros(basis.num_costs)))
    with pytest.raises(jm.errors.InvalidProblem, match="level"):
        expert_premises(problem, level)


def test_refuted_keeps_what_failed_in_order():
    kept = Premise("c", PremiseStatus.TESTED, "", 0.1)
    some = [failed("a", "", 0.1), declared("b", ""), kept, failed("d", "")]
    assert [premise.name for premise in refuted(some)] == ["a", "d"]
