"""A world that does not offer every action everywhere speaks the numbers it was given, at every
interface: what is recorded, learned, predicted, certified, saved, audited and shown."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from frequencies import frequencies

seeds = st.integers(0, 10**6)


def numbered_world(seed, *, largest=9, discount=0.9, exact=True):
    """Random laws; every state offers some of the actions `lowest`..`largest`."""
    rng = np.random.default_rng(seed)
    num_states, lowest = int(rng.integers(2, 6)), int(rng.integers(0, 4))
    numbers, offsets = [], [0]
    for _ in range(num_states):
        own = rng.choice(np.arange(lowest, largest + 1), size=rng.integers(1, 4), replace=False)
        numbers += sorted(own.tolist())
        offsets.append(len(numbers))
    laws = rng.dirichlet(np.ones(num_states), size=len(numbers))
    counts = None if exact else rng.integers(50, 5000, len(numbers))
    laws = laws if exact else frequencies(laws, counts)
    return jm.World(
        laws, np.full(num_states, 1 / num_states), discount, choice_offsets=offsets,
        observed_actions=numbers, transition_counts=counts,
    )  # fmt: skip


def random_costs(world, seed, num_costs=2):
    rng = np.random.default_rng([seed, 1])
    return jm.CostBasis(rng.random((world.num_pairs, num_costs)))


def random_policy(world, seed):
    weights = np.random.default_rng([seed, 2]).random(world.num_pairs) + 0.01
    return jm.Policy(weights / world.pairs.spread(world.pairs.total(weights)), world.pairs)


def offered(world):
    """The actions of every state, by a naive twin."""
    found = {state: set() for state in range(world.num_states)}
    for state, action in zip(world.pairs.states, world.observed_actions, strict=True):
        found[int(state)].add(int(action))
    return found


def assert_own_numbers(world, policy, seed=0):
    """Whatever a policy is asked, it answers in the numbers of the world."""
    own = offered(world)
    laws = policy.probabilities(np.arange(world.num_states))
    assert laws.shape == (world.num_states, max(map(max, own.values())) + 1)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0)
    states = np.repeat(np.arange(world.num_states), 40)
    for actions in (policy.sample(states, seed), policy.seeded(seed).predict(states)[0]):
        assert all(laws[x, a] > 0 for x, a in zip(states, actions, strict=True))
    for state in range(world.num_states):
        assert set(np.flatnonzero(laws[state]).tolist()) <= own[state]
    with pytest.warns(UserWarning, match="likeliest"):
        likeliest = policy.predict(np.arange(world.num_states), deterministic=True)[0]
    np.testing.assert_array_equal(likeliest, laws.argmax(axis=1))
    with pytest.warns(UserWarning, match="likeliest"):
        assert policy.predict(0, deterministic=True)[0] == laws[0].argmax()


@pytest.mark.parametrize("kind", ["npz", "csv", "parquet"])
@settings(max_examples=5)
@given(seed=seeds, exact=st.booleans())
def test_the_round_trip_keeps_the_numbers(kind, seed, exact, tmp_path_factory):
    place = tmp_path_factory.mktemp("trip")
    world = numbered_world(seed, exact=exact)
    world.save(place / "world.npz")
    world, own = jm.World.load(place / "world.npz"), offered(world)
    expert = random_policy(world, seed)
    expert.save(place / "policy.npz")
    expert = jm.Policy.load(place / "policy.npz")
    demos = jm.record(world, expert, trajectories=20, horizon=15, seed=seed)
    assert all(a in own[int(x)] for x, a in zip(demos.step_states, demos.actions, strict=True))
    jm.write_demonstrations(demos, place / f"demos.{kind}")
    again = jm.read_demonstrations(place / f"demos.{kind}", world=world)
    np.testing.assert_array_equal(again.actions, demos.actions)
    assert_own_numbers(world, jm.clone(again, world))
    apprentice = jm.learn(world, random_costs(world, seed), again)
    assert_own_numbers(world, apprentice.policy)
    apprentice.save(place / "run")
    assert jm.audit(place / "run").passed
    saved = jm.Policy.load(place / "run" / "policy.npz")
    np.testing.assert_array_equal(saved.pairs.actions, world.observed_actions)
    states = np.arange(world.num_states)
    np.testing.assert_array_equal(
        saved.probabilities(states), apprentice.policy.probabilities(states)
    )
    apprentice.report(place / "report.html")
    assert "<html" in (place / "report.html").read_text()


def twin_of(world):
    """The same laws with actions numbered from 0 in every state."""
    return jm.World(
        world.transition, world.initial, world.discount, choice_offsets=world.pairs.offsets
    )


def told_to_twin(world, demos):
    """The same demonstrations in the numbers of the twin."""
    actions = demos.pairs_in(world) - world.pairs.offsets[demos.step_states]
    return jm.Demonstrations(demos.states, actions, demos.offsets, demos.terminated)


@settings(max_examples=25)
@given(seed=seeds)
def test_numbers_change_no_bit_of_what_is_computed(seed):
    world = numbered_world(seed)
    twin, basis = twin_of(world), random_costs(world, seed)
    expert = random_policy(world, seed)
    demos = jm.record(world, expert, trajectories=30, horizon=12, seed=seed)
    same = jm.record(twin, jm.Policy(expert.per_pair, twin.pairs), trajectories=30, horizon=12,
                     seed=seed)  # fmt: skip
    np.testing.assert_array_equal(told_to_twin(world, demos).actions, same.actions)
    ours = jm.learn(world, basis, demos)
    theirs = jm.learn(twin, basis, told_to_twin(world, demos))
    np.testing.assert_array_equal(ours.policy.per_pair, theirs.policy.per_pair)
    assert ours.certificate.bound == theirs.certificate.bound
    assert ours.certificate.lower_bound == theirs.certificate.lower_bound
    states = np.repeat(np.arange(world.num_states), 20)
    positions = theirs.policy.sample(states, seed)
    np.testing.assert_array_equal(
        ours.policy.sample(states, seed),
        world.observed_actions[world.pairs.offsets[states] + positions],
    )


SOLVERS = {
    "exact": lambda world, demos, expert: jm.LinearProgram(),
    "columns": lambda world, demos, expert: jm.ColumnGeneration(),
    "features": lambda world, demos, expert: jm.ReducedProgram(
        jm.features.partition(world, demos, num_cells=2)
    ),
    "descent": lambda world, demos, expert: jm.StochasticSubgradient(
        jm.features.partition(world, demos, num_cells=2), steps=300
    ),
    "cloning": lambda world, demos, expert: jm.solvers.BehaviourCloning(),
    "cloning by features": lambda world, demos, expert: jm.solvers.BehaviourCloning(
        features=np.eye(world.num_pairs)
    ),
    "asked expert": lambda world, demos, expert: jm.solvers.DAgger(
        expert, max_iterations=2, trajectories=5, horizon=10
    ),
    "asked function": lambda world, demos, expert: jm.solvers.DAgger(
        lambda states: [min(offered(world)[int(x)]) for x in states],
        max_iterations=2, trajectories=5, horizon=10,
    ),
    "entropy": lambda world, demos, expert: jm.solvers.MaximumEntropy(),
    "likelihood": lambda world, demos, expert: jm.solvers.MaximumLikelihood(max_iterations=30),
    "adversarial": lambda world, demos, expert: jm.solvers.AdversarialImitation(
        max_iterations=3, rollouts=10
    ),
    "matching": lambda world, demos, expert: jm.solvers.PolicyMatching(max_iterations=3),
}  # fmt: skip


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_every_method_answers_in_the_numbers_of_the_world(name, seed):
    world = numbered_world(seed)
    expert = random_policy(world, seed)
    demos = jm.record(world, expert, trajectories=25, horizon=12, seed=seed)
    problem = jm.Apprenticeship(world, random_costs(world, seed), demos)
    answer = jm.solve(problem, SOLVERS[name](world, demos, expert))
    assert_own_numbers(world, answer.policy)
    assert jm.certify(problem, answer).bound > 0
    mixture = jm.policy.MixturePolicy([answer.policy, expert], [0.5, 0.5])
    actions, _ = mixture.seeded(3).predict(np.arange(world.num_states))
    assert all(int(a) in offered(world)[x] for x, a in enumerate(actions))
    assert_own_numbers(world, answer.policy.mixed_with(expert, 0.3))


def test_an_expert_with_a_memory_sees_and_returns_the_numbers():
    world = numbered_world(4)
    own, seen = offered(world), []

    def expert(states, actions, rng):
        seen.extend(zip(states[:-1].tolist(), actions.tolist(), strict=True))
        return max(own[int(states[-1])])

    demos = jm.record(world, expert, trajectories=4, horizon=6, seed=0)
    assert seen
    assert all(a == max(own[x]) for x, a in seen)
    assert demos.actions.tolist() == [max(own[int(x)]) for x in demos.step_states]
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match="the expert chose action 77 in state"
    ):
        jm.record(world, lambda *_: 77, trajectories=1, horizon=1, seed=0)


# Tables of all actions


@settings(max_examples=25)
@given(seed=seeds)
def test_tables_of_all_actions_fit(seed):
    """A world of all actions, and the part of it that a policy and its costs may use."""
    rng = np.random.default_rng([seed, 3])
    part = numbered_world(seed)
    num_states, width = part.num_states, part.pairs.width
    laws = rng.dirichlet(np.ones(num_states), size=num_states * width)
    rows = part.pairs.states * width + part.pairs.actions
    laws[rows] = part.transition.toarray()
    whole = jm.World(laws, part.initial, part.discount)
    table = np.zeros((num_states, width))
    table[part.pairs.states, part.pairs.actions] = random_policy(part, seed).per_pair
    policy, costs = jm.Policy(table), rng.random((num_states * width, 2))
    np.testing.assert_allclose(
        jm.occupancy(part, policy).measure, jm.occupancy(whole, policy).measure[rows], atol=1e-9
    )
    budget = jm.Budget(cost=costs[:, 0].reshape(num_states, width), at_most=1e6, name="all")
    partial = random_policy(part, seed)
    np.testing.assert_array_equal(partial.on(whole), policy.on(whole))
    declared = jm.ExpertExpectation(np.asarray(costs.T @ jm.occupancy(whole, policy).measure))
    problem = jm.Apprenticeship(part, jm.CostBasis(costs), declared, constraints=[budget])
    picked = jm.Apprenticeship(
        part, jm.CostBasis(costs[rows]), declared, constraints=[jm.Budget(costs[rows, 0], 1e6)]
    )
    np.testing.assert_array_equal(problem.cost_matrix, picked.cost_matrix)
    np.testing.assert_array_equal(problem.budget_matrix, picked.budget_matrix)
    assert problem.trivial_bound == picked.trivial_bound
    found, same = jm.certify(problem, policy), jm.certify(picked, policy)
    assert (found.bound, found.valid) == (same.bound, same.valid)
    np.testing.assert_array_equal(found.policy.pairs.actions, part.observed_actions)
    forward = jm.Forward(part, costs[:, 0].reshape(num_states, width))
    least = jm.plan(part, costs[rows, 0]).values @ part.initial
    assert jm.solve(forward).value == pytest.approx(least, abs=1e-6)


def log_world(**more):
    """State 0 has actions 1 and 3, state 1 has 2, state 2 is never left."""
    return jm.World.from_transitions(
        [0, 0, 1, 1], [1, 3, 2, 2], [1, 0, 0, 2], 0.9, initial=[1, 0, 0], absorbing=[2], **more
    )


def test_a_table_may_say_anything_where_a_state_is_never_left():
    world = log_world()
    table = np.array([[0, 0.25, 0, 0.75], [0, 0, 1, 0], [0.25, 0.25, 0.25, 0.25]])
    assert jm.Policy(table).on(world).tolist() == [0.25, 0.75, 1, 1]
    more = np.column_stack([table, np.zeros(3)])
    assert jm.Policy(more).on(world).tolist() == [0.25, 0.75, 1, 1]


def test_a_table_that_takes_what_is_not_offered_is_refused():
    world = log_world()
    table = np.array([[0, 0.25, 0.5, 0.25], [0, 0, 1, 0], [0, 1, 0, 0]])
    with pytest.raises(
        jm.errors.InvalidPolicy, match=r"action 2 in state 0 with probability 0.5, but the"
    ):
        jm.Policy(table).on(world)
    with pytest.raises(jm.errors.InvalidPolicy, match="3 states and 9 pairs"):
        jm.Policy(np.full((3, 3), 1 / 3)).on(world)


def test_a_policy_of_a_part_is_refused_where_its_actions_are_lacking():
    world, other = log_world(), jm.World(np.eye(3)[[0, 1, 2] * 2], [1, 0, 0], 0.9)
    with pytest.raises(
        jm.errors.InvalidPolicy, match=r"action 3 in state 0 with probability 0\.5, but"
    ):
        jm.Policy.uniform(world).on(other)


def test_a_table_without_a_column_for_every_number_is_refused():
    """Two actions in every state, numbered from 1: a table of two columns means 0 and 1."""
    world = jm.World(
        np.eye(2)[[0, 1, 0, 1]], [1, 0], 0.9, choice_offsets=[0, 2, 4],
        observed_actions=[1, 2, 1, 2],
    )  # fmt: skip
    with pytest.raises(jm.errors.InvalidPolicy, match="other action sets"):
        jm.Policy([[0.5, 0.5], [1, 0]]).on(world)
    assert jm.Policy([[0, 0.5, 0.5], [0, 1, 0]]).on(world).tolist() == [0.5, 0.5, 1, 0]


def test_bare_offsets_are_taken_in_order_and_not_without_a_word():
    world = log_world()
    law = [0.25, 0.75, 1, 1]
    bare = jm.Policy(law, world.pairs.offsets)
    with pytest.warns(UserWarning, match=r"state 0 has actions 1, 3.*order of the world's pairs"):
        assert bare.on(world).tolist() == law
    with pytest.warns(UserWarning, match="order of the world's pairs"):
        demos = jm.record(world, bare, trajectories=9, horizon=9, seed=0)
    assert set(demos.actions.tolist()) <= {1, 2, 3}
    assert jm.Policy(law, world.pairs).predict(1)[0] == 2


def test_a_budget_that_lacks_a_column_is_refused():
    budget = jm.Budget(cost=np.ones((3, 3)), at_most=1.0)
    with pytest.raises(
        jm.errors.InvalidCosts, match="3 columns, but the world offers state 0, action 3"
    ):
        budget.on(log_world())


# Logs with actions numbered from 1


def test_a_clone_repeats_the_recorded_action():
    """In state 3 only actions 0 and 2 were recorded, and the expert takes 2."""
    rng = np.random.default_rng(0)
    steps = [
        (x, a, (x + a) % 6 if rng.random() < 0.9 else int(rng.integers(6)))
        for x in range(6)
        for a in ((0, 2) if x == 3 else (0, 1, 2))
        for _ in range(40)
    ]
    world = jm.World.from_transitions(*zip(*steps, strict=True), 0.9, initial=np.ones(6) / 6)
    demos = jm.Demonstrations.from_arrays([[3, 5, 1]] * 20, [[2, 2]] * 20)
    clone = jm.clone(demos, world, smoothing=0)
    assert [int(clone.predict(3)[0]) for _ in range(10)] == [2] * 10
    assert clone.probabilities([3]).tolist() == [[0, 0, 1]]
    assert jm.clone(demos, world).probabilities([3])[0, 1] == 0


def test_numbers_from_1_come_back_from_1():
    world = log_world()
    policy = jm.Policy.uniform(world)
    assert set(policy.sample(np.repeat([0, 1, 2], 50), 0).tolist()) == {1, 2, 3}
    assert world.describe_pair(1) == "state 0, action 3"
    assert policy.probabilities([0]).tolist() == [[0, 0.5, 0, 0.5]]
    named = log_world(action_names=["none", "check", "repair", "replace"])
    assert named.action_names[int(named.pairs.actions[1])] == "replace"
    with pytest.raises(jm.errors.InvalidWorld, match="state 0 has actions 1, 3"):
        world.pairs.index([0], [2], jm.errors.InvalidWorld)


def test_very_large_numbers_need_no_table():
    world = jm.World.from_transitions([0, 0, 1], [2**31 - 1, 5, 7], [1, 0, 0], 0.9, initial=[1, 0])
    policy = jm.Policy.uniform(world)
    assert set(policy.sample([0] * 50, 0).tolist()) == {5, 2**31 - 1}
    demos = jm.record(world, policy, trajectories=9, horizon=9, seed=0)
    assert set(demos.actions.tolist()) == {5, 7, 2**31 - 1}
    assert jm.clone(demos, world).predict(1)[0] == 7
    with pytest.raises(jm.errors.InvalidPolicy, match="too much for one table"):
        policy.probabilities([0])
    assert jm.features.partition(world, demos, num_cells=1).matrix.shape[1] == 3


def test_a_world_with_gaps_is_not_taken_for_a_world_of_callables():
    world = jm.World(
        np.eye(2)[[0, 1, 0, 1]], [1, 0], 0.9, choice_offsets=[0, 2, 4],
        observed_actions=[0, 1, 1, 2],
    )  # fmt: skip
    with pytest.raises(jm.errors.InvalidWorld, match=re.escape("state 1 has actions 1, 2")):
        _ = world.num_actions
    assert world.successors([1], [2]).states.tolist() == [[1]]
    assert world.predecessors([1]).actions.tolist() == [1, 2]


def test_what_the_first_version_recorded_is_refused(tmp_path):
    """It wrote where an action stands among those of its state."""
    world = log_world()
    old = jm.Demonstrations([0, 0, 1], [1, 0], [0, 2], choice_offsets=world.pairs.offsets)
    old.save(tmp_path / "old.npz")
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match="number the actions of every state from 0"
    ):
        jm.Demonstrations.load(tmp_path / "old.npz").pairs_in(world)


def test_a_data_set_for_others_has_the_numbers(tmp_path):
    pytest.importorskip("minari")
    world = log_world()
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=5, horizon=5, seed=0)
    jm.write_demonstrations(demos, tmp_path / "log-v0", format="minari")
    again = jm.read_demonstrations(tmp_path / "log-v0", format="minari", world=world)
    np.testing.assert_array_equal(again.actions, demos.actions)
