"""Copies of episodes: the e-value is honest whatever the expert does, and copies are found."""

import itertools
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.certificate.betting import SCALES, log_evidence, ranks, repetitions
from journeyman.certificate.premises import expert_premises
from journeyman.certificate.terms import PremiseStatus
from journeyman.checker import inputs, premise_claims
from journeyman.gallery.queue_network import EmptyStart, SmoothStart
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.strategies import seeds, worlds

COPIED = "no episode was copied"
TINY = jm.World(
    [[0.5, 0.5, 0.0], [0.1, 0.0, 0.9], [1.0, 0.0, 0.0], [0.25, 0.0, 0.75]],
    [0.75, 0.25, 0.0],
    0.9,
    choice_offsets=[0, 2, 3, 4],
)


def premise_of(world, demos, level=1e-3):
    problem = jm.Apprenticeship(world, jm.CostBasis(np.eye(world.num_states)), demos)
    return {one.name: one for one in expert_premises(problem, level)}[COPIED]


def log_value(world, record):
    """log E of episodes [(states, actions), ...]."""
    states, actions = zip(*record, strict=True)
    demos = jm.Demonstrations.from_arrays(states, actions)
    return repetitions(demos, np.array([log_chance(world, *one) for one in record])).log_value


def log_chance(world, states, actions):
    rows = world.transition.toarray()
    steps = zip(states, actions, states[1:], strict=False)
    found = [rows[world.pairs.offsets[x] + a, y] for x, a, y in steps]
    return math.log(world.initial[states[0]] * math.prod(found))


def episodes(act, stop, past):
    """(probability, episode) of all that can follow `past`: `act` gives the law of the action,
    `stop` the probability to stop, both by everything before."""
    rows = TINY.transition.toarray()
    unfinished = [(TINY.initial[x], [x], []) for x in range(3) if TINY.initial[x] > 0]
    while unfinished:
        chance, states, actions = unfinished.pop()
        ended = stop(past, states, actions) if actions else 0.0
        if ended > 0:
            yield chance * ended, (states, actions)
        for a, share in enumerate(act(past, states)):
            law = rows[TINY.pairs.offsets[states[-1]] + a]
            unfinished += [
                (chance * (1 - ended) * share * law[y], [*states, y], [*actions, a])
                for y in range(3)
                if chance * (1 - ended) * share * law[y] > 0
            ]


def certain(past, states):
    return [1.0]


def torn(past, states):
    return [0.3, 0.7] if states[-1] == 0 else [1.0]


def repeating(past, states):
    """Does in its second episode what it did in the first, as far as it can."""
    if states[-1] != 0:
        return [1.0]
    before = past[0][1] if past else [1, 1]
    chosen = before[min(len(states) - 1, len(before) - 1)]
    return [1.0 - chosen, float(chosen)]


def after_two(past, states, actions):
    return float(len(actions) == 2)


def by_state_and_luck(past, states, actions):
    return 1.0 if len(actions) == 3 else 0.6 if states[-1] == 0 else 0.2 * len(past)


@pytest.mark.parametrize("stop", [after_two, by_state_and_luck])
@pytest.mark.parametrize("act", [certain, torn, repeating])
def test_the_mean_is_at_most_one_over_everything_that_can_happen(act, stop):
    """Exactly one where nothing but the world decides, or an expert who does the same again; below
    it where luck of the expert or of the end must repeat itself too."""
    total = mean = largest = 0.0
    for first, one in episodes(act, stop, []):
        for second, two in episodes(act, stop, [one]):
            value = math.exp(log_value(TINY, [one, two]))
            total, mean = total + first * second, mean + first * second * value
            largest = max(largest, value)
    assert total == pytest.approx(1, abs=1e-12)
    assert mean <= 1 + 1e-12
    assert largest > 2
    if stop is after_two and act is not torn:
        assert mean == pytest.approx(1, abs=1e-12)
    else:
        assert mean < 0.999


def test_the_mean_over_three_episodes_is_one():
    possible = list(episodes(certain, after_two, []))
    mean = 0.0
    for chosen in itertools.product(possible, repeat=3):
        value = math.exp(log_value(TINY, [one for _, one in chosen]))
        mean += math.prod(chance for chance, _ in chosen) * value
    assert mean == pytest.approx(1, abs=1e-12)


def naive_evidence(labels, log_chances):
    """Every pair, and every factor, as they are written down."""
    number = len(labels)
    chance = np.exp(log_chances)
    equal = [
        1 / chance[i] if labels[i] == labels[j] else 0.0
        for i, j in itertools.combinations(range(number), 2)
    ]
    products = [
        math.prod((kappa + labels[:j].count(labels[j]) / chance[j]) / (kappa + j)
                  for j in range(number))
        for kappa in SCALES
    ]  # fmt: skip
    return (np.mean(equal) + np.mean(products)) / 2


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), seeds)
def test_both_sides_equal_what_is_written_down(labels, seed):
    chances = np.log(np.random.default_rng(seed).uniform(0.05, 1, 5))[labels]
    naive = math.log(naive_evidence(labels, chances))
    earlier = ranks(np.array(labels))
    assert earlier.tolist() == [labels[:j].count(labels[j]) for j in range(len(labels))]
    assert log_evidence(earlier, chances) == pytest.approx(naive, abs=1e-9)
    again = premise_claims.copies_evidence(labels, chances.tolist())
    assert again == pytest.approx(naive, abs=1e-9)
    backwards = log_evidence(ranks(np.array(labels[::-1])), chances[::-1])
    assert backwards == pytest.approx(naive, abs=1e-9)


def test_improbable_episodes_stay_finite():
    found = log_evidence(np.array([0, 1, 0]), np.full(3, -2000.0))
    assert found == pytest.approx(2000 + math.log(1 / 6), abs=1)
    assert log_evidence(np.array([0]), np.array([-3.0])) == 0


@given(worlds(), seeds, st.integers(1, 20), st.integers(1, 9))
def test_the_audit_finds_the_same_in_any_world(world, seed, count, horizon):
    demos = jm.record(
        world, random_policy(world, seed), trajectories=count, horizon=horizon, seed=seed
    )
    rows = world.transition.toarray()
    steps = np.log(rows[demos.pairs_in(world), demos.next_states])
    chances = np.log(world.initial[demos.first_states])
    chances = chances + np.add.reduceat(steps, demos.offsets[:-1])
    found = repetitions(demos, chances)
    with tempfile.TemporaryDirectory() as place:
        demos.save(Path(place) / "demonstrations.npz")
        records, _, _ = inputs.read_episodes((Path(place) / "demonstrations.npz").read_bytes())
    again = premise_claims.copies_of(records, chances)
    assert (again.episodes, again.repeats) == (found.num_episodes, found.num_repeats)
    assert again.log_value == pytest.approx(found.log_value, abs=1e-8)
    assert again.log_twice == pytest.approx(found.log_twice, abs=1e-8)


@pytest.fixture(scope="module")
def grid():
    return jm.gallery.grid(6, seed=1)


def recorded(grid, count=60, horizon=30, seed=0):
    return jm.record(grid.world, grid.expert, trajectories=count, horizon=horizon, seed=seed)


def test_a_record_that_was_copied_is_refuted_and_the_bound_gone(grid):
    once = recorded(grid)
    twice = jm.Demonstrations.concatenate([once, once])
    found = premise_of(grid.world, twice)
    assert found.status is PremiseStatus.FAILED
    assert "60 of which equal an earlier one" in found.detail
    assert "are equal, which has probability" in found.detail
    certificate = jm.certify(jm.Apprenticeship(grid.world, grid.basis, twice), grid.expert)
    assert not certificate.valid
    assert certificate.bound == certificate.trivial_bound
    assert COPIED in certificate.summary()
    with pytest.raises(jm.NotCertified, match="no episode was copied"):
        certificate.require(gap=1e9)


def test_one_copy_in_a_large_record_is_found(grid):
    demos = recorded(grid, count=500)
    assert premise_of(grid.world, demos).status is PremiseStatus.TESTED
    one = jm.Demonstrations.concatenate([demos, demos.subset(np.array([17]))])
    found = premise_of(grid.world, one)
    assert found.status is PremiseStatus.FAILED
    assert "episodes 17 and 500 are equal" in found.detail


def test_a_few_copies_in_a_very_large_record_are_found():
    """1.25 equal pairs are to be expected among 50,000 episodes of probability 1e-9; 60 are not,
    though the mean over pairs alone would let them pass."""
    count, copies, chance = 50_000, 60, 1e-9
    earlier = np.zeros(count, dtype=np.int64)
    earlier[-copies:] = 1
    pairs = copies / chance / (count * (count - 1) / 2)
    assert pairs < 1000
    assert log_evidence(earlier, np.full(count, math.log(chance))) > math.log(1000)


def test_short_episodes_that_were_copied_are_found_by_their_number():
    """No pair of them is improbable: a few equal ones are to be expected, sixty are not."""
    world = jm.World(np.full((40, 40), 1 / 40), np.full(40, 1 / 40), 0.9)
    policy = jm.Policy.uniform(world)
    demos = jm.record(world, policy, trajectories=60, horizon=1, seed=0)
    assert premise_of(world, demos).status is PremiseStatus.TESTED
    twice = jm.Demonstrations.concatenate([demos, demos])
    assert premise_of(world, twice).status is PremiseStatus.FAILED


def test_sound_records_are_refuted_as_rarely_as_the_level_says(grid):
    """Also of short episodes, many of which are equal by chance, sorted or not."""
    world = jm.World([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], 0.9)
    level, runs, alarms = 0.05, 200, 0
    for seed in range(runs):
        demos = jm.record(world, jm.Policy.uniform(world), trajectories=40, horizon=3, seed=seed)
        order = np.lexsort([demos.last_states, demos.first_states])
        alarms += premise_of(world, demos.subset(order), level).status is PremiseStatus.FAILED
    assert alarms <= level * runs


def test_where_nothing_is_left_to_chance_copies_are_declared_and_shown():
    world = jm.World(np.roll(np.eye(4), 1, axis=1), [0.5, 0.5, 0, 0], 0.9)
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=20, horizon=9, seed=0)
    for record in (demos, jm.Demonstrations.concatenate([demos] * 3)):
        found = premise_of(world, record)
        assert found.status is PremiseStatus.DECLARED
        assert found.level is None
        assert "too little to chance" in found.detail
        assert f"{len(record) - 2} of {len(record)} episodes equal an earlier one" in found.detail
    problem = jm.Apprenticeship(world, jm.CostBasis(np.eye(4)), demos)
    certificate = jm.certify(problem, jm.Policy.uniform(world))
    assert COPIED in certificate.summary()
    assert COPIED in certificate.table()


def test_laws_that_are_estimates_say_nothing_about_copies(grid):
    true = grid.world
    world = jm.World(
        true.transition, true.initial, true.discount, choice_offsets=true.pairs.offsets,
        transition_error=0.1, initial_error=0.1,
    )  # fmt: skip
    once = recorded(grid)
    found = premise_of(world, jm.Demonstrations.concatenate([once, once]))
    assert found.status is PremiseStatus.DECLARED
    assert "estimates cannot say how likely" in found.detail
    assert "60 of 120 episodes equal" in found.detail


def queues(initial=None):
    network = jm.gallery.queues(4, buffers=[3, 2, 2, 3], initial=initial)
    demos = jm.record(network.world, network.longer, trajectories=40, horizon=25, seed=0)
    return network, demos


class OnlySteps:
    """The same world, that can only be sampled."""

    def __init__(self, world):
        self.world = world
        self.num_states, self.num_actions = world.num_states, world.num_actions
        self.discount = world.discount
        self.draw_initial, self.initial_probability = world.draw_initial, world.initial_probability

    def step(self, rng, states, actions):
        from journeyman.world.large_world import sampled_step

        return sampled_step(self.world, rng, states, actions)


def large_premise(world, network, demos):
    problem = jm.Apprenticeship(world, network.costs, demos)
    certificate = jm.certify(problem, network.longer, evaluation=jm.Rollouts(40, 20))
    return certificate, {one.name: one for one in certificate.premises}[COPIED]


def test_copies_are_found_in_a_large_world():
    network, demos = queues()
    certificate, found = large_premise(network.world, network, demos)
    assert found.status is PremiseStatus.TESTED
    assert certificate.valid
    twice = jm.Demonstrations.concatenate([demos, demos])
    certificate, found = large_premise(network.world, network, twice)
    assert found.status is PremiseStatus.FAILED
    assert COPIED in certificate.summary()
    assert certificate.bound == certificate.trivial_bound


def test_a_world_that_can_only_be_sampled_declares_copies_unless_starts_tell():
    for initial, status in (
        (SmoothStart(), PremiseStatus.FAILED),
        (EmptyStart(), PremiseStatus.DECLARED),
    ):
        network, demos = queues(initial)
        twice = jm.Demonstrations.concatenate([demos, demos])
        _, found = large_premise(OnlySteps(network.world), network, twice)
        assert found.status is status
    assert "the world can only be sampled: 40 of 80 episodes equal" in found.detail


def test_totals_of_episodes_show_equal_ones_and_declare_the_rest():
    network, _ = queues()
    simulator = jm.Apprenticeship(
        network.world, network.costs, jm.ExpertExpectation(np.zeros(network.costs.num_costs))
    ).simulator
    once = jm.demonstrations.record_totals(
        simulator, network.longer, trajectories=25, horizon=30, seed=0
    )
    twice = jm.EpisodeTotals(np.vstack([once.totals] * 2), np.tile(once.unrecorded, 2))
    problem = jm.Apprenticeship(simulator, None, twice)
    certificate = jm.certify(problem, network.longer, evaluation=jm.Rollouts(40, 20))
    found = {one.name: one for one in certificate.premises}[COPIED]
    assert found.status is PremiseStatus.DECLARED
    assert "25 of 50 episodes have the totals of another" in found.detail
    assert COPIED in certificate.summary()
