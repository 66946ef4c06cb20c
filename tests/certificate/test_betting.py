"""Bets in worlds too large to enumerate: fair under the law, and won against another one."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import binom

import journeyman as jm
from journeyman.certificate import betting

SMALL = jm.gallery.queues(4, buffers=(5, 4, 4, 5), discount=0.9)
EXPLICIT, BASIS = SMALL.explicit()
HUGE = jm.gallery.queues(8)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.sampled_from(betting.CONCENTRATIONS),
)
def test_wealth_is_the_product_of_the_bets(sizes, sequence, kappa):
    blocks = [place % len(sizes) for place in sequence]
    seen, wealth, whole = np.zeros(len(sizes)), 1.0, sum(sizes)
    for count, block in enumerate(blocks):
        bet = (kappa * sizes[block] / whole + seen[block]) / (kappa + count)
        wealth *= bet / ((sizes[block] + seen[block]) / (whole + count))
        seen[block] += 1
    found = betting.urn_wealth(np.array(sizes, dtype=float), seen, kappa)
    assert found == pytest.approx(np.log(wealth), abs=1e-9)


def test_blocks_of_gaps_are_the_urn():
    """Every order of two drawn states and three starts, each as likely: the wealth has mean one."""
    for num_blocks, kappa in product((2, 3), (1.0, 10.0)):
        total = 0.0
        for order in permutations(range(5)):
            numbers = np.array(order, dtype=float)
            places = betting.gaps(numbers[:2], numbers[2:], np.random.default_rng(0))
            sizes, counts = betting.block_counts(places, 2, num_blocks)
            assert sizes.sum() == 3
            total += np.exp(betting.urn_wealth(sizes, counts, kappa))
        assert total / 120 == pytest.approx(1, rel=1e-12)


def test_ties_are_broken_by_lot():
    rng = np.random.default_rng(0)
    same = [betting.gaps(np.ones(3), np.ones(1), rng)[0] for _ in range(4000)]
    assert np.abs(np.bincount(same, minlength=4) / 4000 - 0.25).max() < 0.03


def test_single_starts_are_bet_on_as_in_explicit_worlds():
    starts = np.random.default_rng(0).choice(900, size=60, p=EXPLICIT.initial)
    laws = jm.World(EXPLICIT.transition, EXPLICIT.initial, 0.9)
    tally = betting.Tally.of(
        sparse.csr_array(EXPLICIT.initial[np.newaxis]), np.zeros_like(starts), starts
    )
    for kappa in betting.CONCENTRATIONS:
        (wanted,) = tally.against_counts(kappa)
        found = betting._seen_starts(laws, starts, kappa)
        assert found == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("world", [SMALL.world, EXPLICIT], ids=["callables", "explicit"])
def test_steps_are_bet_on_as_in_explicit_worlds(world):
    for expert, seed in product((SMALL.longer, SMALL.uniform), range(3)):
        demos = jm.record(SMALL.world, expert, trajectories=4, horizon=30, seed=seed)
        strongest, wanted = betting.step_evidence(EXPLICIT, demos)
        words, found = betting.step_evidence_of_laws(
            world, demos.step_states, demos.actions, demos.next_states
        )
        assert found == pytest.approx(wanted, abs=1e-8)
        _, outcome, frequencies = strongest.most_out_of_line()
        assert words.endswith(f"to state {outcome}: {frequencies}")


@pytest.mark.parametrize("network", [SMALL, HUGE], ids=["small", "huge"])
def test_sound_starts_are_refused_no_more_often_than_the_level(network, monkeypatch):
    monkeypatch.setattr(betting, "COMPARED", 300)
    level, runs, refused = 0.05, 300, 0
    for run in range(runs):
        monkeypatch.setattr(betting, "STREAM", run)
        starts = network.world.draw_initial(np.random.default_rng([7, run]), 40)
        _, log_value = betting.start_evidence_of_draws(network.world, starts)
        refused += log_value >= -np.log(level)
    assert refused <= binom(runs, level).ppf(0.999)


def problem_of(network, demos):
    return jm.Apprenticeship(network.world, network.costs, demos)


def statuses(network, demos):
    rollouts = jm.Rollouts(trajectories=10, horizon=10)
    certificate = jm.certify(problem_of(network, demos), network.longer, evaluation=rollouts)
    return certificate, {one.name: one for one in certificate.premises}


@pytest.mark.parametrize("network", [SMALL, HUGE], ids=["small", "huge"])
def test_a_sound_record_is_certified(network):
    demos = jm.record(network.world, network.longer, trajectories=60, horizon=10, seed=0)
    certificate, stated = statuses(network, demos)
    assert certificate.valid
    for name in ("start states follow the initial law", "steps follow the transition law"):
        assert stated[name].status is jm.certificate.PremiseStatus.TESTED
        assert stated[name].level == 1e-3


def test_starts_in_another_region_are_refuted():
    fuller = jm.gallery.queues(8, initial=jm.gallery.SmoothStart(ratio=0.97))
    demos = jm.record(fuller.world, fuller.longer, trajectories=60, horizon=3, seed=0)
    certificate, stated = statuses(HUGE, demos)
    refuted = stated["start states follow the initial law"]
    assert refuted.status is jm.certificate.PremiseStatus.FAILED
    assert "blocks by" in refuted.detail
    assert "of 60 starts" in refuted.detail
    assert not certificate.valid
    assert certificate.bound == certificate.trivial_bound


def test_steps_of_another_world_are_refuted():
    """Half of them go where they most likely go; each by itself is possible."""
    demos = jm.record(SMALL.world, SMALL.longer, trajectories=60, horizon=40, seed=0)
    rng = np.random.default_rng(0)
    following = SMALL.world.successors(demos.step_states, demos.actions)
    likeliest = following.states[np.arange(demos.num_steps), following.probabilities.argmax(axis=1)]
    forged = np.where(rng.random(demos.num_steps) < 0.5, likeliest, demos.next_states)
    words, log_value = betting.step_evidence_of_laws(
        SMALL.world, demos.step_states, demos.actions, forged
    )
    assert log_value > np.log(1e3)
    assert "too rarely" in words
