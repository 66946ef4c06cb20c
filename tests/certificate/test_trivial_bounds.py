"""The trivial bound of certificates: in estimated worlds, after failed premises, and its words."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.certificate.model_error import (
    WidenedRanges,
    transition_radii,
    true_world_trivial_bound,
)
from journeyman.certificate.presentation import percent
from journeyman.policy.planning import attainable_ranges, widest_ranges
from journeyman.problem.bounds import plain_bound

pytestmark = pytest.mark.filterwarnings("ignore::journeyman.errors.SupportWarning")

CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]


def lake(seed, *, states=6, discount=0.95):
    """A world that ends: every step may lead to a state that rests and costs nothing."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(states, 0.5), size=2 * states)
    law[:, -1] += rng.uniform(0.3, 1.0, 2 * states)
    law /= law.sum(axis=1, keepdims=True)
    law[-2:] = np.eye(states)[-1]
    world = jm.World(law, np.eye(states)[0], discount)
    costs = rng.uniform(0, 1, (2 * states, 2))
    costs[-2:] = 0.0
    return rng, world, jm.CostBasis(costs)


def counted(rng, world, count, **more):
    law = world.transition.toarray()
    drawn = np.array([rng.multinomial(count, row / row.sum()) for row in law]) / count
    return jm.World(
        drawn, world.initial, world.discount, transition_counts=count,
        support=world.transition, **more,
    )  # fmt: skip


def extremes(world, basis, rng):
    """Policies at the ends of the ranges, and some between."""
    found = [jm.plan(world, sign * cost).policy for cost in basis.matrix.T for sign in (1, -1)]
    laws = rng.dirichlet(np.ones(2), size=(4, world.num_states))
    return [*found, *(jm.Policy(law) for law in laws)]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("count", [20, 2000, 200_000])
@pytest.mark.parametrize("seed", range(5))
def test_in_an_estimated_world_no_true_gap_is_larger(kind, count, seed):
    rng, true, basis = lake(seed)
    model = counted(rng, true, count)
    policies = extremes(true, basis, rng)
    totals = [jm.occupancy(true, policy).expectations(basis) for policy in policies]
    demos = jm.record(true, policies[0], trajectories=40, horizon=60, seed=seed)
    problem = jm.Apprenticeship(model, basis, demos, kind())
    certificate = jm.certify(problem, policies[1])
    assert certificate.valid
    largest = max(problem.cost_class.gap(one - two) for one in totals for two in totals)
    exact = jm.Apprenticeship(true, basis, demos, kind()).trivial_bound
    assert largest <= exact <= certificate.trivial_bound
    assert certificate.trivial_bound <= problem.trivial_bound == plain_bound(problem, None)
    if count == 200_000:
        assert certificate.trivial_bound <= 1.25 * exact


@pytest.mark.parametrize("seed", range(10))
def test_widened_ranges_hold_in_every_world_within_the_declared_errors(seed):
    rng, world, basis = lake(seed)
    law = world.transition.toarray()
    model = jm.World(
        law, world.initial, world.discount, transition_error=0.2, initial_error=0.1
    )  # fmt: skip
    error = transition_radii(model, 0.05)
    ranges = WidenedRanges(model, basis, error)
    inner = attainable_ranges(world, basis)
    for k in range(2):
        low, high = ranges.of(k)
        assert low <= inner.of(k)[0] <= inner.of(k)[1] <= high
        assert widest_ranges(world, basis)[0][k] <= low <= high <= widest_ranges(world, basis)[1][k]
    for _ in range(20):
        other = law.copy()
        for row in other:
            taken = int(rng.choice(np.flatnonzero(row > 0)))
            moved = min(0.1, row[taken])
            row[taken] -= moved
            row[rng.integers(row.size)] += moved
        starts = 0.95 * world.initial + 0.05 * np.eye(6)[rng.integers(6)]
        nearby = attainable_ranges(jm.World(other, starts, world.discount), basis)
        for k in range(2):
            low, high = ranges.of(k)
            assert low <= nearby.lowest[k] + 1e-6
            assert nearby.highest[k] - 1e-6 <= high


def test_exact_laws_that_are_called_estimates_have_the_ranges_of_the_world():
    _, world, basis = lake(3)
    model = jm.World(
        world.transition, world.initial, world.discount, transition_error=0.0, initial_error=0.0
    )
    ranges = WidenedRanges(model, basis, transition_radii(model, 0.05))
    inner = attainable_ranges(world, basis)
    for k in range(2):
        assert ranges.of(k) == pytest.approx(inner.of(k), abs=1e-5)


def test_after_a_failed_premise_only_bounded_costs_count():
    rng, world, basis = lake(1)
    policy = extremes(world, basis, rng)[0]
    demos = jm.record(world, policy, trajectories=300, horizon=40, seed=0)
    moved = jm.World(world.transition, np.eye(6)[3], world.discount)
    for there in (moved, counted(rng, moved, 500)):
        problem = jm.Apprenticeship(there, basis, demos)
        certificate = jm.certify(problem, policy)
        assert not certificate.valid
        assert certificate.bound == certificate.trivial_bound == plain_bound(problem, None)
        assert certificate.ranges is None
        assert certificate.vacuous
        assert certificate.weak
    assert true_world_trivial_bound(problem, None, valid=False).value == plain_bound(problem, None)


@pytest.mark.parametrize("share", [0.1, 0.49, 0.51, 0.9])
def test_a_bound_above_half_of_the_trivial_one_is_weak(share):
    """A declared target at one end of the range: the bound is the distance from it."""
    world = jm.World(np.eye(1).repeat(2, axis=0), [1.0], 0.9)
    problem = jm.Apprenticeship(world, jm.CostBasis([[0.0], [1.0]]), jm.ExpertExpectation([0.0]))
    certificate = jm.certify(problem, jm.Policy([[1 - share, share]]))
    assert certificate.trivial_bound == pytest.approx(10)
    assert certificate.share == pytest.approx(share)
    assert certificate.weak is (share > 0.5)
    assert not certificate.vacuous
    words = certificate.summary()
    assert f"which is {percent(certificate.share)} of the largest possible gap, 10" in words
    for text in (words, certificate.table(), repr(certificate)):
        assert ("weak" in text) is certificate.weak
    page = jm.report.as_html(certificate)
    assert ("badge good" in page.partition("What the bound is made of")[0]) is not certificate.weak
    assert ("weak: above half" in page) is certificate.weak


def test_a_bound_below_zero_has_no_share():
    world = jm.World(np.eye(1).repeat(2, axis=0), [1.0], 0.9)
    expert = jm.ExpertExpectation([5.0])
    problem = jm.Apprenticeship(world, jm.CostBasis([[0.0], [1.0]]), expert, jm.Simplex())
    certificate = jm.certify(problem, jm.Policy([[1.0, 0.0]]))
    assert certificate.bound < 0
    assert (certificate.share, certificate.weak) == (0.0, False)
    assert "at least 5 less than the expert" in certificate.summary()
    assert "to be compared with the largest possible gap, 5" in certificate.summary()


def test_percentages_are_not_rounded_to_nothing_or_to_everything():
    assert [percent(one) for one in (0.0, 1e-6, 0.41, 0.9999, 1.0)] == [
        "0 %", "< 0.1 %", "41 %", "> 99.9 %", "100 %",
    ]  # fmt: skip
