"""Which target `learn` takes, and that more demonstrations do not cost anything."""

import numpy as np
import pytest

import journeyman as jm
from frequencies import frequencies
from journeyman.certificate.expert_estimates import choose_target, expert_estimates, name_of
from journeyman.certificate.terms import total

CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]


def recorded(count, seed=0, horizon=150, size=6):
    world, basis, expert = jm.gallery.grid(size)
    return world, basis, jm.record(world, expert, trajectories=count, horizon=horizon, seed=seed)


def least_errors(world, basis, demos):
    problem = jm.Apprenticeship(world, basis, demos)
    return min(total(one.terms) for one in expert_estimates(problem, 0.05)) / problem.trivial_bound


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("count", [40, 150, pytest.param(600, marks=pytest.mark.slow)])
def test_no_other_target_has_a_bound_that_is_much_smaller(kind, count):
    world, basis, demos = recorded(count)
    apprentice = jm.learn(world, basis, demos, cost_class=kind())
    choice = apprentice.target
    promised = choice.promised[name_of(choice.expectation)]
    assert apprentice.certificate.best.bound <= 1.001 * promised
    for method in (
        jm.demonstrations.MonteCarlo(),
        jm.demonstrations.ControlVariate(),
        jm.demonstrations.Blend(),
    ):
        expert = jm.ExpertExpectation.from_demonstrations(demos, basis, world, method=method)
        other = jm.learn(world, basis, expert, cost_class=kind())
        assert other.target is None, "you chose"
        assert apprentice.certificate.best.bound <= 1.055 * other.certificate.best.bound
        if method == jm.demonstrations.Blend():
            assert apprentice.certificate.best.bound <= 1.001 * other.certificate.best.bound


def test_a_few_dozen_demonstrations_are_used_as_the_certificate_can():
    """The blend is nearer to the truth, but the certificate cannot know."""
    world, basis, demos = recorded(60)
    apprentice = jm.learn(world, basis, demos)
    assert apprentice.problem.expectation.method == jm.demonstrations.MonteCarlo(completed=True)
    blend = jm.learn(world, basis, jm.Apprenticeship(world, basis, demos).expectation)
    assert apprentice.certificate.bound < 0.95 * blend.certificate.bound
    assert "the completed plain mean" in apprentice.summary()
    assert "% larger" in apprentice.target.reason


def test_the_report_names_the_target(tmp_path):
    world, basis, demos = recorded(60, size=4)
    apprentice = jm.learn(world, basis, demos)
    apprentice.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"estimated by {apprentice.problem.expectation.method!r}" in page


def test_where_nothing_much_can_be_certified_the_least_variance_decides():
    world, basis, demos = recorded(5)
    apprentice = jm.learn(world, basis, demos)
    assert apprentice.problem.expectation.method == jm.demonstrations.Blend()
    assert "no target promises" in apprentice.target.reason
    assert min(apprentice.target.promised.values()) > apprentice.problem.trivial_bound / 2


def test_in_an_estimated_world_the_model_term_is_part_of_the_promise():
    world, basis, demos = recorded(200)
    count = np.full(world.num_pairs, 20)
    known = jm.World(world.transition, world.initial, world.discount)
    drawn = frequencies(world.transition, count)
    unsure = jm.World(drawn, world.initial, world.discount, transition_counts=count)
    for one, is_weak in ((known, False), (unsure, True)):
        choice = choose_target(jm.Apprenticeship(one, basis, demos), 0.05)
        assert ("no target promises" in choice.reason) is is_weak


def test_cut_off_records_are_never_aimed_at_as_they_are():
    """With tails in the middle of their range the bound would be smaller, and the policy wrong."""
    world, basis, demos = recorded(400, horizon=25)
    target = jm.learn(world, basis, demos).problem.target
    blend = jm.Apprenticeship(world, basis, demos).target
    plain = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    missing = plain.truncation_mass
    assert missing > 5
    assert np.abs(target - blend).sum() < 0.3 * np.abs(target - plain.values).sum()


def test_a_wrong_failure_probability_is_refused_as_before():
    world, basis, demos = recorded(30)
    with pytest.raises(jm.errors.InvalidProblem, match="failure_probability"):
        jm.learn(world, basis, demos, failure_probability=2.0)


def coin(count, seed):
    """One action decides everything: nothing but the plain mean can know it."""
    rows = [[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    world = jm.World(rows, [1, 0, 0], 0.9)
    expert = jm.Policy([[0.05, 0.95], [1, 0], [1, 0]])
    demos = jm.record(world, expert, trajectories=count, horizon=3, seed=seed)
    return world, jm.CostBasis([0.0, 0, 1, 1, 0, 0]), demos


def restless(count, seed):
    rng = np.random.default_rng(5)
    world = jm.World(rng.dirichlet(np.full(6, 0.3), size=12), np.full(6, 1 / 6), 0.9)
    basis = jm.CostBasis(rng.uniform(-1, 1, (12, 3)))
    expert = jm.Policy(rng.dirichlet(np.ones(2), size=6))
    return world, basis, jm.record(world, expert, trajectories=count, horizon=80, seed=seed)


def short(count, seed):
    world, basis, demos = restless(count, seed)
    expert = jm.clone(demos, world)
    return world, basis, jm.record(world, expert, trajectories=count, horizon=8, seed=seed)


COUNTS = (5, 19, 20, 21, 30, 48, 80, 140, 250, 499, 500, 501)


@pytest.mark.parametrize("family", [coin, restless, short])
def test_more_demonstrations_never_cost_more_than_a_little(family):
    """In the mean over seeds, give or take the error of that mean."""
    found = np.array(
        [[least_errors(*family(count, seed)) for seed in range(10)] for count in COUNTS]
    )
    means, errors = found.mean(axis=1), found.std(axis=1, ddof=1) / np.sqrt(found.shape[1])
    for few in range(len(COUNTS)):
        for many in range(few + 1, len(COUNTS)):
            noise = 4 * np.hypot(errors[few], errors[many])
            assert means[many] <= 1.02 * means[few] + noise, (COUNTS[few], COUNTS[many])
    around = slice(COUNTS.index(499), COUNTS.index(501) + 1)
    assert means[around].max() <= 1.05 * means[around].min() + 4 * errors[around].max()


def test_the_shaped_estimate_is_used_from_where_it_wins():
    world, basis, expert = jm.gallery.grid(6)
    demos = jm.record(world, expert, trajectories=400, horizon=150, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    errors = {one.name.split(",")[0]: total(one.terms) for one in expert_estimates(problem, 0.05)}
    assert errors["control variate"] < 0.8 * errors["plain mean"]
