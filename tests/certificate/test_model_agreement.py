"""Demonstrations in an estimated world: what its record has never seen, and what it refutes."""

import numpy as np
import pytest
from scipy.special import betaln, xlogy

import journeyman as jm
from journeyman.certificate.model_error import (
    agreement,
    enough_transitions,
    num_unobserved,
    radii_at,
    robust_ranges,
    transitions_needed,
)
from journeyman.certificate.saving import save_run
from journeyman.testing.random_worlds import Shape, random_policy, random_world

AGREES = "demonstrations agree with the estimated laws"


@pytest.fixture(scope="module")
def grid():
    return jm.gallery.grid(3, macro_cells=3, seed=0)


def observed(world, count, seed=0, **known):
    """A twin of `world` from `count` transitions of every pair."""
    rng = np.random.default_rng(seed)
    pairs = np.repeat(np.arange(world.num_pairs), count)
    limits = np.cumsum(world.transition.toarray(), axis=1)[pairs]
    following = (rng.random(pairs.size)[:, np.newaxis] > limits[:, :-1]).sum(axis=1)
    known = known or {"initial": world.initial}
    return jm.World.from_transitions(
        world.pairs.states[pairs], world.pairs.actions[pairs], following, world.discount, **known
    )


def permuted(world, demos):
    """The same walks by other names of states, as a wrong table of names makes them."""
    names = np.random.default_rng(3).permutation(world.num_states)
    return jm.Demonstrations(names[demos.states], demos.actions, demos.offsets)


def recorded(world, expert, count=100, seed=5):
    found = jm.record(world, expert, trajectories=count, horizon=40, seed=seed)
    return jm.Demonstrations(found.states, found.actions, found.offsets)


def certified(model, basis, demos, kind=jm.InfinityBall):
    problem = jm.Apprenticeship(model, basis, demos, kind())
    return jm.certify(problem, jm.solve(problem))


def test_steps_that_the_record_never_saw_refute_and_are_counted(grid, tmp_path):
    true, basis, expert = grid
    model = observed(true, 500)
    start_anywhere = observed(true, 500, initial=np.full(9, 1 / 9))
    demos = permuted(true, recorded(true, expert))
    for world in (model, start_anywhere):
        share = num_unobserved(world, demos) / demos.num_steps
        assert share > 0.3
    certificate = certified(start_anywhere, basis, demos)
    premise = {one.name: one for one in certificate.premises}[AGREES]
    assert premise.status is jm.certificate.premises.PremiseStatus.FAILED
    assert premise.detail.startswith(
        f"{round(share * 4000)} of 4000 steps ({share:.0%}) were never"
    )
    assert not certificate.valid
    said = (
        f"{100 * share:.0f} % of the demonstrated steps were never seen in the record of the model"
    )
    assert said in certificate.summary()
    save_run(certificate, tmp_path, seeds={"solver": 0})
    assert jm.audit(tmp_path).require().passed


def test_demonstrations_of_the_true_world_are_not_refuted(grid):
    """At a level of a half; the bounds of both sides are far from tight."""
    true, basis, expert = grid
    starts = jm.record(true, expert, trajectories=300, horizon=1, seed=9).first_states
    for seed in range(10):
        model = observed(true, 50, seed, initial_states=starts)
        demos = recorded(true, expert, 50, seed + 100)
        assert not agreement(model, demos, 0.5).is_refuted
    certificate = certified(observed(true, 500), basis, recorded(true, expert))
    assert certificate.valid
    assert "were never seen" not in certificate.summary()


def test_the_limit_is_the_sum_of_both_radii():
    """One pair on two states: sqrt(2 info) for either side, by Gamma functions. Half of the model's
    part of the level is for bets that have no distance."""
    world = jm.World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9, transition_counts=1000)
    found = agreement(world, jm.Demonstrations([0] * 301, [0] * 300, [0, 300]), 1e-3)
    radii = []
    for n, k, part in ((1000, 500, 2.5e-4), (300, 300, 5e-4)):
        bet = betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5)
        likelihood = xlogy(k, k / n) + xlogy(n - k, 1 - k / n)
        radii.append(np.sqrt(2 * (np.log(2 / part) + likelihood - bet) / n))
    assert found.allowed == pytest.approx(sum(radii))
    assert found.distance == pytest.approx(1.0)
    assert (found.draws, found.is_refuted) == (300, True)


def test_starts_are_compared_where_the_initial_law_is_an_estimate():
    laws = [[0.5, 0.5], [0.5, 0.5]]
    demos = jm.Demonstrations([0, 0, 1, 1] * 200, [0] * 400, range(401))
    for initial, is_refuted in (([0.0, 1.0], True), ([0.5, 0.5], False)):
        world = jm.World(laws, initial, 0.9, initial_count=500)
        found = agreement(world, demos, 1e-3)
        assert (found.place, found.is_refuted) == ("the law of the starts", is_refuted)


def test_without_a_record_nothing_was_seen_or_not(grid):
    true, _, expert = grid
    world = jm.World(true.transition, true.initial, 0.9, transition_error=0.1)
    assert num_unobserved(world, recorded(true, expert)) is None


pytestmark = pytest.mark.filterwarnings("ignore::journeyman.errors.SupportWarning")


def small_estimate(count):
    """A certificate in a world whose possible steps are known, `count` times observed each."""
    true = random_world(3, Shape.DENSE, num_states=4, num_actions=2, discount=0.8)
    model = observed(true, count, initial=true.initial, support=true.transition)
    basis = jm.CostBasis(np.random.default_rng(1).uniform(-1, 1, (4, 2)))
    demos = recorded(true, random_policy(true, 5))
    return certified(model, basis, demos)


def model_term_of(certificate):
    return sum(term.value for term in certificate.terms if term.name == "model")


@pytest.mark.parametrize("count", [50, 150])
def test_the_advised_number_of_transitions_suffices_and_is_not_far_too_large(count):
    certificate = small_estimate(count)
    problem, policy = certificate.problem, certificate.policy
    world, target = problem.world, 0.1 * certificate.trivial_bound
    assert certificate.best.kind == "D, worst laws"
    assert model_term_of(certificate) > target
    visits = jm.occupancy(world, policy)
    share = target / problem.gap_scale
    needed = enough_transitions(problem, policy, visits, 0.05, share)
    assert f"{needed:,} observed transitions of every pair" in certificate.advice()
    looser = transitions_needed(problem, visits, failure_probability=0.0125, share=share)
    assert needed < 0.9 * looser
    for tried, suffices in ((needed, True), (int(needed / 1.2), False)):
        error = radii_at(world, np.full(world.num_pairs, tried), 0.0125)
        least, greatest = robust_ranges(problem, policy, error)
        assert (float((greatest - least).sum() / 2) <= target) is suffices


def test_nothing_is_advised_where_the_model_term_is_small_already():
    few, many = small_estimate(100), small_estimate(50_000)
    assert 0 < model_term_of(many) <= 0.1 * many.trivial_bound
    assert "transitions of every pair" in few.advice()
    assert "transitions of every pair" not in many.advice()


def test_intervals_keep_to_what_totals_can_be(grid, tmp_path):
    true, basis, expert = grid
    certificate = certified(observed(true, 30), basis, recorded(true, expert, 20))
    horizon = true.effective_horizon
    both = (certificate.expert_intervals, certificate.apprentice_intervals)
    for intervals in both:
        for one, low, high in zip(intervals, basis.lowest, basis.highest, strict=True):
            assert low * horizon - 1e-9 <= one.low <= one.high <= high * horizon + 1e-9
    save_run(certificate, tmp_path, seeds={"solver": 0})
    assert jm.audit(tmp_path).require().passed
