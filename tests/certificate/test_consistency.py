"""Deterministic and stationary experts: the bound holds, is attained, and premises are refuted."""

import math

import numpy as np
import pytest

import journeyman as jm
from class_examples import example
from journeyman.certificate.consistency import (
    DETERMINISTIC,
    NAME,
    STATIONARY,
    action_bounds,
    consistency,
    contradiction,
    known_actions,
    num_intervals,
)
from journeyman.certificate.terms import PremiseStatus
from journeyman.testing.random_worlds import random_policy

PAPER = {"infinity": jm.InfinityBall, "euclidean": jm.EuclideanBall, "simplex": jm.Simplex}
CLASSES = [*PAPER, "scaled-l1", "prior-infinity", "prior-euclidean", "box", "ratios"]


def made(name, num_costs, seed=0):
    return PAPER[name]() if name in PAPER else example(name, num_costs, seed)


def ragged(seed, num_costs=3):
    """A random world with one to four actions a state, costs and a deterministic expert."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(1, 5, size=int(rng.integers(3, 12)))
    offsets = np.concatenate([[0], np.cumsum(actions)])
    law = rng.dirichlet(np.full(actions.size, 0.3), size=offsets[-1])
    world = jm.World(law, rng.dirichlet(np.ones(actions.size)), rng.choice([0.5, 0.9, 0.99]),
                     choice_offsets=offsets)  # fmt: skip
    basis = jm.CostBasis(rng.uniform(-1, 1, (offsets[-1], num_costs)))
    chosen = np.concatenate([np.eye(count)[rng.integers(count)] for count in actions])
    return world, basis, jm.Policy(chosen, world.pairs)


def true_gap(problem, policy, expert):
    visits = [jm.policy.occupancy(problem.world, one) for one in (policy, expert)]
    ours, theirs = (one.expectations(problem.basis) for one in visits)
    return problem.cost_class.gap(ours - theirs)


def by_consistency(certificate):
    return min(way.bound for way in certificate.combinations if way.estimate.startswith(NAME))


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("seed", range(12))
def test_the_bound_holds_for_deterministic_experts(name, seed):
    world, basis, expert = ragged(seed)
    demos = jm.record(world, expert, trajectories=1 + seed % 4, horizon=1 + seed, seed=seed)
    problem = jm.Apprenticeship(
        world, basis, demos, made(name, 3, seed), expert_is=jm.Deterministic()
    )
    for policy in (jm.clone(demos, world), random_policy(world, seed), expert):
        certificate = jm.certify(problem, policy)
        gap = true_gap(problem, policy, expert)
        assert by_consistency(certificate) >= gap
        assert certificate.valid


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("seed", range(6))
def test_the_bound_holds_for_stationary_experts(name, seed):
    """It may fail with probability .01: never here, in 48 runs."""
    world, basis, _ = ragged(seed)
    expert = random_policy(world, seed + 100)
    demos = jm.record(world, expert, trajectories=30, horizon=40, seed=seed)
    problem = jm.Apprenticeship(world, basis, demos, made(name, 3, seed), expert_is=jm.Stationary())
    for policy in (jm.clone(demos, world), random_policy(world, seed)):
        certificate = jm.certify(problem, policy, 0.01)
        assert by_consistency(certificate) >= true_gap(problem, policy, expert)


@pytest.mark.parametrize("name", CLASSES)
def test_the_bound_is_attained_by_a_consistent_expert(name):
    """One state was never visited. Of the experts that may act there in any way one has the gap."""
    world, basis, expert = ragged(3, num_costs=1 if name.endswith("euclidean") else 3)
    unseen = int(np.flatnonzero(world.pairs.actions_per_state > 2)[0])
    law = expert.on(world).copy()
    pairs = np.flatnonzero((law > 0) & (world.pairs.states != unseen))
    nowhere = np.zeros(pairs.size, dtype=np.int64)
    states = np.column_stack([world.pairs.states[pairs], nowhere]).ravel()
    for at, pair in enumerate(pairs):
        states[2 * at + 1] = world.transition[[pair]].indices[0]
    demos = jm.Demonstrations(states, world.pairs.actions[pairs], np.arange(pairs.size + 1))
    cost_class = made(name, basis.num_costs, 1)
    problem = jm.Apprenticeship(world, basis, demos, cost_class, expert_is=jm.Deterministic())
    policy = random_policy(world, 8)
    found = consistency(problem, 0.0)
    visits = jm.policy.occupancy(world, policy).expectations(basis)
    bound = found.largest_gap(cost_class, visits, visits, 0.0)
    gaps = []
    for pair in np.flatnonzero(world.pairs.states == unseen):
        law[world.pairs.states == unseen] = 0.0
        law[pair] = 1.0
        gaps.append(true_gap(problem, policy, jm.Policy(law, world.pairs)))
    assert max(gaps) <= bound <= max(gaps) + 1e-4 * problem.gap_scale
    assert found.is_hull != name.endswith("euclidean")


def test_every_state_seen_leaves_no_doubt():
    world, basis, _ = jm.gallery.grid(4)
    expert = jm.plan(world, basis.on(world) @ np.linspace(-1, 1, 16)).policy
    demos = jm.record(world, expert, trajectories=400, horizon=40, seed=0)
    problem = jm.Apprenticeship(world, basis, demos, expert_is=jm.Deterministic())
    certificate = jm.certify(problem, expert)
    assert certificate.best.estimate == NAME
    assert certificate.bound <= 1e-4 * problem.gap_scale
    plain = jm.certify(jm.Apprenticeship(world, basis, demos), expert)
    assert plain.bound > 100 * certificate.bound


def test_two_actions_in_one_state_refute_a_deterministic_expert():
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.Demonstrations([5, 6, 5, 1, 0, 4], [1, 3, 0, 2], [0, 3, 4])
    found = contradiction(world, demos)
    assert (found.state, found.first, found.second) == (5, (0, 0, 1), (0, 2, 0))
    problem = jm.Apprenticeship(world, basis, demos, expert_is=[jm.Deterministic()])
    certificate = jm.certify(problem, expert)
    (row,) = [one for one in certificate.premises if one.name == DETERMINISTIC]
    assert row.status is PremiseStatus.FAILED
    assert "in state 5 step 0 of episode 0 takes action 1 and step 2 of episode 0" in row.detail
    assert not certificate.valid
    assert certificate.bound == certificate.trivial_bound
    assert certificate.consistency is None


def test_what_is_known_of_the_premise_is_said():
    world, basis, expert = jm.gallery.grid(4)
    once = jm.Demonstrations([5, 6, 7], [1, 1], [0, 2])
    twice = jm.Demonstrations([5, 6, 5, 6], [1, 3, 1], [0, 3])
    cases = ((once, PremiseStatus.DECLARED), (twice, PremiseStatus.TESTED))
    for demos, status in cases:
        problem = jm.Apprenticeship(world, basis, demos, expert_is=jm.Deterministic())
        rows = {one.name: one for one in jm.certify(problem, expert).premises}
        assert rows[DETERMINISTIC].status is status
    problem = jm.Apprenticeship(world, basis, twice, expert_is=jm.Stationary())
    rows = {one.name: one for one in jm.certify(problem, expert).premises}
    assert rows[STATIONARY].status is PremiseStatus.DECLARED
    assert "2 of 16 states were visited" in rows[STATIONARY].detail


def test_a_declaration_never_costs_much():
    """Deterministic takes no probability; Stationary a fifth of it."""
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=50, horizon=40, seed=0)
    plain = jm.certify(jm.Apprenticeship(world, basis, demos), expert).bound
    laws = jm.certify(jm.Apprenticeship(world, basis, demos, expert_is=jm.Stationary()), expert)
    assert laws.bound <= 1.05 * plain


def test_intervals_hold_what_was_seen_and_nothing_is_known_elsewhere():
    world, _, _ = ragged(5)
    demos = jm.record(world, random_policy(world, 1), trajectories=5, horizon=20, seed=0)
    lowest, highest = action_bounds(world, demos, 0.05)
    taken = np.bincount(demos.pairs_in(world), minlength=world.num_pairs)
    visits = world.pairs.spread(world.pairs.total(taken.astype(float)))
    seen = visits > 0
    assert (lowest[seen] <= taken[seen] / visits[seen] + 1e-12).all()
    assert (highest[seen] >= taken[seen] / visits[seen] - 1e-12).all()
    alone = world.pairs.spread(world.pairs.actions_per_state.astype(float)) == 1
    assert (lowest[~seen & ~alone] == 0).all()
    assert (highest[~seen & ~alone] == 1).all()
    assert (lowest[alone] == 1).all()
    low, high = known_actions(world, demos)
    assert ((low == 0) | (low == 1)).all()
    assert (high[~seen] == 1).all()


def wealth(k, n, p):
    """Bets one after the other, by the rule of Krichevsky and Trofimov, k successes first."""
    value, seen = 1.0, [0, 0]
    for outcome in [1] * k + [0] * (n - k):
        q = (seen[outcome] + 0.5) / (sum(seen) + 1)
        value *= q / (p if outcome else 1 - p)
        seen[outcome] += 1
    return value


@pytest.mark.parametrize(("k", "n"), [(0, 1), (0, 40), (3, 40), (20, 40), (40, 40)])
def test_the_ends_of_an_interval_are_where_the_bet_pays(k, n):
    """The constants: d over both intervals of the two states, wealth 1/d at the ends."""
    world = jm.World(np.ones((4, 2)) / 2, [0.5, 0.5], 0.9)
    actions = np.array([0] * k + [1] * (n - k))
    demos = jm.Demonstrations(np.zeros(n + 1, int), actions, [0, n])
    assert num_intervals(world) == 2
    lowest, highest = action_bounds(world, demos, 0.1)
    for end in (lowest[0], highest[0]):
        if 0 < end < 1:
            assert wealth(k, n, end) == pytest.approx(2 / 0.1, rel=1e-6)
    assert lowest[0] == pytest.approx(1 - highest[1], abs=1e-12)
    assert (lowest[0] == 0) == (k == 0 or wealth(k, n, 1e-12) < 20)


def chain(count):
    """State j goes on or stops for good; the law of its actions is up to the expert."""
    states = np.arange(count)
    rows = np.repeat(states, 2)
    after = np.column_stack([np.minimum(states + 1, count), np.full(count, count)]).ravel()
    rows = np.concatenate([np.arange(rows.size), [rows.size]])
    law = sparse_law(rows, np.concatenate([after, [count]]), count + 1)
    offsets = np.concatenate([2 * np.arange(count + 1), [2 * count + 1]])
    return jm.World(law, np.eye(1, count + 1)[0], 0.9, choice_offsets=offsets)


def sparse_law(rows, columns, count):
    from scipy import sparse

    return sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(rows.size, count))


def test_the_part_of_a_state_does_not_depend_on_which_were_visited():
    """A walk that ends with the first rare action: in state j of probability delta/(2j), which the
    interval of one visit excludes if delta was divided among the j states visited. Divided among
    all states it covers."""
    count, delta, runs = 10_000, 0.1, 150
    world, rng = chain(count), np.random.default_rng(0)
    rare = delta / (2 * np.arange(1, count + 1))
    false = among_visited = 0
    for _ in range(runs):
        stops = np.flatnonzero(rng.random(count) < rare)
        length = int(stops[0]) + 1 if stops.size else count
        actions = np.zeros(length, dtype=np.int64)
        states = np.arange(length + 1)
        if stops.size:
            actions[-1], states[-1] = 1, count
        demos = jm.Demonstrations(states, actions, [0, length], [True])
        _, highest = action_bounds(world, demos, delta)
        lowest_of_rare = 1 - highest[:-1:2]
        false += bool((lowest_of_rare > rare + 1e-15).any())
        among_visited += bool(stops.size and 0.5 / rare[length - 1] >= length / delta)
    assert among_visited / runs > 0.2
    assert false / runs <= delta


def test_an_estimate_is_combined_for_every_part_of_it():
    """Linear in the part: between the two bounds, and no larger than the better one at its end."""
    world, basis, expert = ragged(2)
    demos = jm.record(world, expert, trajectories=2, horizon=3, seed=0)
    problem = jm.Apprenticeship(world, basis, demos, expert_is=jm.Deterministic())
    found = consistency(problem, 0.0)
    z = jm.policy.occupancy(world, random_policy(world, 0)).expectations(basis)
    values = problem.target
    alone = found.largest_gap(problem.cost_class, z, values, 0.0)
    other = found.largest_gap(problem.cost_class, z, values, 1.0)
    assert other == pytest.approx(problem.cost_class.gap(z - values))
    for share in (0.25, 0.5, 0.75):
        mixed = found.largest_gap(problem.cost_class, z, values, share)
        assert mixed <= (1 - share) * alone + share * other + 1e-9
    assert math.isfinite(alone)


@pytest.mark.parametrize("name", [*PAPER, "scaled-l1"])
def test_learning_aims_at_the_middle_of_what_is_consistent(name):
    world, basis, _ = jm.gallery.grid(5, macro_cells=2)
    expert = jm.plan(world, basis.on(world) @ np.linspace(-1, 1, 4)).policy
    demos = jm.record(world, expert, trajectories=3, horizon=20, seed=1)
    cost_class = made(name, 4)
    apprentice = jm.learn(world, basis, demos, cost_class=cost_class, expert_is=jm.Deterministic())
    certificate = apprentice.certificate
    plain = jm.learn(world, basis, demos, cost_class=cost_class)
    usual = jm.certify(apprentice.problem, plain.policy)
    assert certificate.bound <= usual.bound + 1e-9
    assert certificate.bound < 0.8 * plain.certificate.bound
    assert certificate.bound >= true_gap(apprentice.problem, apprentice.policy, expert)
    found = certificate.consistency
    middle = found.centre()
    best = found.largest_gap(cost_class, middle, middle, 0.0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = middle + rng.normal(size=middle.size)
        assert (
            not found.is_hull
            or (found.weights @ other - found.least).max() >= best - 1e-6
            or (found.weights @ other < found.least - 1e-9).any()
        )


def test_of_two_policies_no_drawn_bound_is_kept_for_being_smaller():
    world, basis, _ = jm.gallery.grid(5, macro_cells=2)
    expert = jm.plan(world, basis.on(world) @ np.linspace(-1, 1, 4)).policy
    demos = jm.record(world, expert, trajectories=3, horizon=20, seed=1)
    settings = {"evaluation": jm.Rollouts(50, 60), "seed": 0}
    plain = jm.learn(world, basis, demos, **settings)
    declared = jm.learn(world, basis, demos, expert_is=jm.Deterministic(), **settings)
    assert (declared.policy.on(world) == plain.policy.on(world)).all()
    assert declared.certificate.bound < plain.certificate.bound


def test_advice_about_what_is_consistent_does_not_call_more_demonstrations_useless():
    world, basis, expert = ragged(2)
    demos = jm.record(world, expert, trajectories=2, horizon=3, seed=0)
    problem = jm.Apprenticeship(world, basis, demos, expert_is=jm.Deterministic())
    certificate = jm.certify(problem, random_policy(world, 0))
    assert certificate.best.estimate == "consistency"
    advice = certificate.advice()
    assert "visit further states" in advice
    assert "do not halve" not in advice


def test_many_points_in_a_large_world_are_replaced_by_single_costs(monkeypatch):
    """The box is never smaller than the hull, and a class with few points keeps them."""
    world, basis, expert = ragged(4)
    demos = jm.record(world, expert, trajectories=2, horizon=5, seed=0)
    z = jm.policy.occupancy(world, random_policy(world, 0)).expectations(basis)
    bounds = []
    for most in (10**9, 0):
        monkeypatch.setattr("journeyman.certificate.consistency.MOST_ENTRIES", most)
        problem = jm.Apprenticeship(world, basis, demos, expert_is=jm.Deterministic())
        found = consistency(problem, 0.0)
        assert found.is_hull == bool(most)
        bounds.append(found.largest_gap(problem.cost_class, z, z, 0.0))
        one_sided = jm.Apprenticeship(
            world, basis, demos, jm.Simplex(), expert_is=jm.Deterministic()
        )
        assert consistency(one_sided, 0.0).is_hull
    assert bounds[0] <= bounds[1] + 1e-9
