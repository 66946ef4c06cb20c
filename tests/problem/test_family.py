"""Several worlds that share a cost: expectations add up, whatever solves one world solves all."""

import re

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.problem import Family
from journeyman.testing.random_worlds import Shape, random_policy, random_world

SHARES = [0.2, 0.5, 0.3]


def member(seed, shape=Shape.DENSE, trajectories=20, **more):
    world = random_world(seed, shape, num_states=4 + seed % 3, num_actions=2, discount=0.8)
    world = jm.World(
        world.transition, world.initial, 0.8, choice_offsets=world.pairs.offsets, **more
    )
    rng = np.random.default_rng(seed)
    basis = jm.CostBasis(rng.uniform(-1, 1, (world.num_pairs, 3)), names=["a", "b", "c"])
    expert = random_policy(world, seed)
    demos = jm.record(world, expert, trajectories=trajectories, horizon=30, seed=seed)
    return (world, basis, demos), expert


def family(weights=SHARES, **more):
    return Family([member(seed, **more)[0] for seed in range(3)], weights)


def trips(weights=(0.5, 0.5), discount=0.95, **more):
    towns = [
        jm.gallery.road_network(40, destination=k, discount=discount, **more) for k in range(2)
    ]
    demos = [jm.record(one.world, one.expert, trajectories=40, horizon=200, seed=k)
             for k, one in enumerate(towns)]  # fmt: skip
    members = [(one.world, one.basis, demo) for one, demo in zip(towns, demos, strict=True)]
    return Family(members, weights), towns


@pytest.mark.parametrize("build", [family, lambda: trips([0.3, 0.7])[0]])
def test_expectations_add_up(build):
    one = build()
    policy = random_policy(one.world, 7)
    parts = zip(one.members, one.policies(policy), strict=True)
    wanted = sum(
        share * jm.occupancy(world, own).expectations(basis)
        for share, ((world, basis, _), own) in zip(one.weights, parts, strict=True)
    )
    found = jm.occupancy(one.world, policy).expectations(one.basis)
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_every_step_of_every_member_is_in_the_family():
    one, towns = trips()
    assert one.world.sink == one.world.num_states - 1 == 80
    assert np.flatnonzero(one.world.absorbing).tolist() == [80]
    assert one.demonstrations.terminated.all()
    assert one.demonstrations.num_steps == sum(demo.num_steps for _, _, demo in one.members)
    one.demonstrations.pairs_in(one.world)
    for town, (world, _, _) in zip(towns, one.members, strict=True):
        assert world is town.world


def test_the_family_has_the_optimum_of_its_members_together():
    """With exact targets the gap is zero: every member can copy its own expert."""
    made = [member(seed) for seed in range(3)]
    one = Family([parts for parts, _ in made], SHARES)
    target = sum(
        share * jm.occupancy(world, expert).expectations(basis)
        for share, ((world, basis, _), expert) in zip(SHARES, made, strict=True)
    )
    problem = jm.Apprenticeship(one.world, one.basis, jm.ExpertExpectation(target))
    answer = jm.solve(problem, jm.LinearProgram())
    assert abs(answer.value) < 1e-7
    known = jm.Forward(one.world, one.basis.matrix @ [1.0, -0.5, 0.25])
    apart = sum(
        share * float(world.initial @ jm.plan(world, basis.matrix @ [1.0, -0.5, 0.25]).values)
        for share, (world, basis, _) in zip(SHARES, one.members, strict=True)
    )
    assert jm.solve(known).value == pytest.approx(apart, abs=1e-7)


def test_maximum_entropy_finds_one_cost_for_all_members():
    one, _ = trips()
    answer = jm.solve(one.problem(), jm.solvers.MaximumEntropy())
    for (world, basis, _), own in zip(one.members, one.policies(answer.policy), strict=True):
        wanted = jm.policy.soft_plan(world, basis.matrix @ answer.recovered).policy
        states = np.arange(world.num_states - 1)
        np.testing.assert_allclose(
            own.probabilities(states), wanted.probabilities(states), atol=1e-5
        )


@pytest.mark.parametrize("weights", [(0.5, 0.5), None])
def test_certificates_of_a_family_pass_the_audit(tmp_path, weights):
    one, _ = trips(weights)
    apprentice = jm.learn(one.world, one.basis, one.demonstrations)
    assert apprentice.certificate.valid
    assert one.world.is_estimated == (weights is None)
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()


def test_the_order_of_episodes_does_not_depend_on_what_they_show():
    one = family()
    others = [(w, b, jm.record(w, random_policy(w, 9), trajectories=20, horizon=30, seed=5))
              for w, b, _ in one.members]  # fmt: skip
    place = [world.num_states for world, _, _ in one.members]
    edges = np.cumsum(place)
    first, second = (
        np.searchsorted(edges, each.demonstrations.first_states, side="right")
        for each in (one, Family(others, SHARES))
    )
    assert np.array_equal(first, second)
    assert (np.diff(first) != 0).sum() > 20


def test_sinks_that_cost_something_stay_apart():
    one, _ = trips()
    changed = []
    for world, basis, demos in one.members:
        matrix = np.array(basis.matrix)
        matrix[-1] = 0.5
        changed.append((world, jm.CostBasis(matrix, basis.names), demos))
    apart = Family(changed, [0.5, 0.5])
    assert apart.world.sink is None
    assert apart.world.absorbing.sum() == 2
    policy = random_policy(apart.world, 3)
    wanted = sum(
        0.5 * jm.occupancy(world, own).expectations(basis)
        for (world, basis, _), own in zip(apart.members, apart.policies(policy), strict=True)
    )
    found = jm.occupancy(apart.world, policy).expectations(apart.basis)
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_whole_trips_to_several_destinations():
    one, towns = trips(discount=1, steps_at_most=80)
    assert one.world.has_goal
    policies = one.policies(jm.solve(one.problem()).policy)
    assert [own.pairs for own in policies] == [town.world.pairs for town in towns]


def test_unknown_shares_are_those_of_the_record():
    one = family(None, trajectories=15)
    starts = one.demonstrations.first_states
    assert one.world.initial_count == 45
    np.testing.assert_allclose(
        one.world.initial, np.bincount(starts, minlength=one.world.num_states) / 45
    )


def _other_discount(world, basis, demos):
    return jm.World(world.transition, world.initial, 0.7), basis, demos


def _other_names(world, basis, demos):
    return world, jm.CostBasis(basis.matrix, names=["a", "b", "d"]), demos


def _estimated(world, basis, demos):
    return jm.World(world.transition, world.initial, 0.8, transition_error=0.1), basis, demos


def _within_a_horizon(world, basis, demos):
    return world.with_horizon(5), basis, demos


def test_a_family_may_have_a_horizon():
    one = family()
    world = one.world.with_horizon(30, discount=1)
    problem = jm.Apprenticeship(world, one.basis, one.demonstrations)
    policy = jm.Policy.uniform(world)
    parts = [
        jm.occupancy(each.with_horizon(30, discount=1), jm.Policy.uniform(
            each.with_horizon(30, discount=1))).expectations(basis)
        for each, basis, _ in one.members
    ]  # fmt: skip
    found = jm.occupancy(world, policy).expectations(problem.basis)
    np.testing.assert_allclose(found, np.array(SHARES) @ parts, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_within_a_horizon, "member 1 has a horizon"),
        (_other_discount, "member 1 has discount 0.7"),
        (_other_names, "member 1 has the costs a, b, d"),
        (_estimated, "member 1 has estimated laws"),
        (lambda world, basis, demos: (world, basis), "member 1 is no (World"),
    ],
)
def test_members_that_do_not_fit_are_refused(change, words):
    first, second = member(0)[0], member(1)[0]
    with pytest.raises(jm.errors.InvalidInput, match=re.escape(words)):
        Family([first, change(*second)])


@pytest.mark.parametrize("weights", [[0.5, 0.6, 0.1], [1, 0, 0], [0.5, 0.5]])
def test_weights_that_are_no_shares_are_refused(weights):
    with pytest.raises(jm.errors.InvalidInput, match="weights"):
        family(weights)


def test_a_family_has_members():
    with pytest.raises(jm.errors.InvalidProblem, match="no members"):
        Family([])


def test_large_members_with_one_end_take_memory_for_their_pairs_only():
    """Rings of which every state can leave for the end; a square table would need 80 GB."""
    count = 50_000
    states = np.arange(count)
    following = np.append(np.column_stack([(states + 1) % count, states * 0 + count]), count)
    rows = sparse.csr_array(
        (np.ones(following.size), following, np.arange(following.size + 1)),
        shape=(following.size, count + 1),
    )
    offsets = np.append(2 * np.arange(count + 1), 2 * count + 1)
    initial = np.append(np.full(count, 1 / count), 0.0)
    world = jm.World(rows, initial, 0.9, choice_offsets=offsets, sink=count)
    basis = jm.CostBasis(np.append(np.ones(2 * count), 0.0)[:, np.newaxis])
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=3, horizon=50, seed=0)
    joined = Family([(world, basis, demos)] * 2, [0.5, 0.5]).world
    assert joined.num_states == 2 * count + 1
    assert joined.num_pairs == 4 * count + 1
    assert joined.absorbing.nonzero()[0].tolist() == [joined.sink] == [2 * count]
