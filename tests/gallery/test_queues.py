import pickle
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.gallery.queue_network import EIGHT_QUEUES, FOUR_QUEUES, QueueNetwork, QueuePlan
from journeyman.testing import check_world
from journeyman.world.world import enumerate_world
from naive import queue_events as naive

SMALL = jm.gallery.queues(buffers=(3, 2, 2, 3))
EIGHT = jm.gallery.queues(8)


@st.composite
def plans(draw):
    """Networks of one to four small queues; rates often sum to exactly one."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 4))
    order = rng.permutation(count).tolist()
    routes = [None] * count
    for place, queue in enumerate(order):
        if place + 1 < count and rng.random() < 0.7:
            routes[queue] = order[rng.integers(place + 1, count)]
    cuts = sorted(rng.choice(count, size=rng.integers(0, count), replace=False).tolist())
    groups = np.split(rng.permutation(count), cuts)
    servers = tuple(tuple(group.tolist()) for group in groups if group.size)
    arrivals = rng.random(count) * (rng.random(count) < 0.6)
    services = rng.random(count) + 0.1
    total = arrivals.sum() + sum(services[list(server)].max() for server in servers)
    total *= 1 if draw(st.booleans()) else 1.5
    return QueuePlan(
        buffers=tuple(rng.integers(1, 4, count).tolist()),
        arrivals=tuple((arrivals / total).tolist()),
        services=tuple((services / total).tolist()),
        routes=tuple(routes),
        servers=servers,
    )


def every_pair(world):
    states = np.repeat(np.arange(world.num_states), world.num_actions)
    return states, np.tile(np.arange(world.num_actions), world.num_states)


def every_length(plan):
    return list(product(*(range(room + 1) for room in plan.buffers)))


def naive_matrix(plan, num_actions):
    lengths = every_length(plan)
    matrix = np.zeros((len(lengths) * num_actions, len(lengths)))
    for state, here in enumerate(lengths):
        for action in range(num_actions):
            for after, rate in naive.law(plan, here, action).items():
                matrix[state * num_actions + action, naive.number(plan, after)] = rate
    return matrix


@given(plans())
@settings(max_examples=40)
def test_steps_are_the_events_of_the_naive_twin(plan):
    world = QueueNetwork(plan, 0.9)
    matrix = naive_matrix(plan, world.num_actions)
    states, actions = every_pair(world)
    reached, law = world.successors(states, actions)
    assert reached.shape == (states.size, 1 + np.count_nonzero(plan.arrivals) + len(plan.servers))
    assert (law >= 0).all()
    np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    found = np.zeros_like(matrix)
    np.add.at(found, (np.arange(states.size)[:, np.newaxis], reached), law)
    np.testing.assert_allclose(found, matrix, rtol=0, atol=1e-15)


@given(plans())
@settings(max_examples=40)
def test_every_successor_is_named_once(plan):
    world = QueueNetwork(plan, 0.9)
    reached, law = world.successors(*every_pair(world))
    for row, used in zip(reached, law > 0, strict=True):
        assert len(set(row[used])) == used.sum()


@given(plans(), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_predecessors_are_those_of_the_explicit_world(plan, seed):
    world = QueueNetwork(plan, 0.9)
    explicit = enumerate_world(world)
    asked = np.random.default_rng(seed).integers(world.num_states, size=2 * world.num_states)
    for mine, known in zip(world.predecessors(asked), explicit.predecessors(asked), strict=True):
        assert mine.dtype == known.dtype
        np.testing.assert_allclose(mine, known, rtol=0, atol=1e-15)


@given(plans(), st.floats(0.1, 1.0))
@settings(max_examples=20)
def test_the_start_is_a_product_of_laws(plan, ratio):
    world = QueueNetwork(plan, 0.9, jm.gallery.SmoothStart(ratio))
    weights = [
        np.prod([ratio**length / sum(ratio**k for k in range(room + 1))
                 for room, length in zip(plan.buffers, lengths, strict=True)])
        for lengths in every_length(plan)
    ]  # fmt: skip
    law = world.initial_probability(np.arange(world.num_states))
    np.testing.assert_allclose(law, weights, rtol=1e-12)
    np.testing.assert_allclose(enumerate_world(world).initial, weights, rtol=1e-12)


@given(plans())
@settings(max_examples=20)
def test_any_network_passes_the_check_of_worlds(plan):
    check_world(QueueNetwork(plan, 0.9), probes=150)


@given(plans())
@settings(max_examples=30)
def test_costs_are_lengths_and_overflow(plan):
    network = jm.gallery.queues(plan)
    states, actions = every_pair(network.world)
    values = network.costs.at(states, actions)
    lengths = np.repeat(every_length(plan), network.world.num_actions, axis=0)
    np.testing.assert_allclose(values[:, :-1], lengths / plan.buffers, rtol=1e-15)
    lost = [
        naive.overflow(plan, here, action)
        for here, action in zip(lengths.tolist(), actions, strict=True)
    ]
    np.testing.assert_allclose(network.world.overflow(states, actions), lost, rtol=0, atol=1e-15)
    if max(lost) > 0:
        np.testing.assert_allclose(values[:, -1], np.array(lost) / max(lost), atol=1e-14)
    else:
        assert not values[:, -1].any()
    for cost, (factor, table) in network.costs.by_factor.items():
        np.testing.assert_array_equal(table[lengths[:, factor]], values[:, cost])


@given(plans())
@settings(max_examples=30)
def test_heuristics_do_what_they_say(plan):
    network = jm.gallery.queues(plan)
    states = np.arange(network.world.num_states)
    for policy, rule in ((network.longer, naive.longer), (network.lbfs, naive.last_buffer_first)):
        laws = policy.probabilities(states)
        assert set(laws.ravel()) <= {0.0, 1.0}
        chosen = plan.serving[laws.argmax(axis=1)].tolist()
        assert chosen == [rule(plan, lengths) for lengths in every_length(plan)]
    np.testing.assert_allclose(network.uniform.probabilities(states), 1 / network.world.num_actions)


def test_ties_and_empty_queues_of_the_four_queue_heuristics():
    """Server 1 works on queue 1 or 4, server 2 on queue 2 or 3."""
    actions = {(1, 2): 0, (1, 3): 1, (4, 2): 2, (4, 3): 3}

    def chosen(policy, *lengths):
        return int(policy.sample(SMALL.radix.states([lengths]), seed=0)[0])

    assert chosen(SMALL.longer, 1, 2, 2, 1) == actions[1, 2]
    assert chosen(SMALL.longer, 1, 1, 2, 3) == actions[4, 3]
    assert chosen(SMALL.lbfs, 3, 1, 2, 1) == actions[4, 2]
    assert chosen(SMALL.lbfs, 3, 0, 2, 0) == actions[1, 3]
    assert chosen(SMALL.lbfs, 0, 0, 0, 0) == actions[4, 2]


def test_the_published_sizes_and_loads():
    four = jm.gallery.queues().world
    assert (four.num_states, four.num_actions) == (1_028_196, 4)
    assert four.plan is FOUR_QUEUES
    np.testing.assert_allclose(FOUR_QUEUES.loads, 0.08 / 0.12 + 0.08 / 0.28)
    assert (EIGHT.world.num_states, EIGHT.world.num_actions) == (10**16, 18)
    np.testing.assert_allclose(EIGHT_QUEUES.loads, [0.845, 0.845, 0.833], atol=5e-4)
    assert FOUR_QUEUES.most_overflow == pytest.approx(0.16 + 0.12 + 0.28)


def test_a_step_of_the_four_queues_by_hand():
    world = jm.gallery.queues().world
    here = world.radix.states([[38, 25, 3, 0]])
    following = world.successors(here, [1])
    lengths = world.radix.digits(following.states[0])
    assert dict(zip(map(tuple, lengths.tolist()), following.probabilities[0], strict=True)) == {
        (38, 25, 4, 0): pytest.approx(0.08),
        (37, 25, 3, 0): pytest.approx(0.12),
        (38, 25, 2, 1): pytest.approx(0.28),
        (38, 25, 3, 0): pytest.approx(0.52),
    }
    assert world.overflow(here, [1]) == pytest.approx([0.08 + 0.12])


def test_explicit_arrays_are_the_callables_written_out():
    world, basis = SMALL.explicit()
    states, actions = every_pair(SMALL.world)
    assert world.num_states == SMALL.world.num_states == 144
    assert world.discount == SMALL.world.discount
    for mine, known in zip(
        SMALL.world.predecessors(np.arange(144)), world.predecessors(np.arange(144)), strict=True
    ):
        np.testing.assert_allclose(mine, known, rtol=1e-13)
    np.testing.assert_array_equal(world.coordinates, SMALL.radix.digits(np.arange(144)))
    np.testing.assert_array_equal(basis.on(world), SMALL.costs.at(states, actions))
    assert basis.names == SMALL.costs.names == (
        "queue 1", "queue 2", "queue 3", "queue 4", "overflow",
    )  # fmt: skip
    assert basis.highest.tolist() == SMALL.costs.highest.tolist() == [1.0] * 5
    assert SMALL.costs.largest == np.abs(basis.matrix).sum(axis=1).max() == 5.0


def test_walks_of_the_callables_cost_what_the_explicit_world_says():
    """A walk of the large world by the occupancy measure of the explicit one."""
    world, basis = SMALL.explicit()
    policy = jm.Policy(SMALL.longer.probabilities(np.arange(world.num_states)))
    expected = jm.occupancy(world, policy).expectations(basis)
    rng, walks = np.random.default_rng(0), 1500
    here, totals = SMALL.world.draw_initial(rng, walks), np.zeros((walks, 5))
    for time in range(200):
        actions = SMALL.longer.sample(here, rng)
        totals += 0.95**time * SMALL.costs.at(here, actions)
        here = jm.world.large_world.sampled_step(SMALL.world, rng, here, actions)
    error = 5 * totals.std(axis=0) / np.sqrt(walks)
    assert (np.abs(totals.mean(axis=0) - expected) <= error).all()


@pytest.mark.parametrize("start", [jm.gallery.SmoothStart(), jm.gallery.EmptyStart()], ids=repr)
@pytest.mark.parametrize("queues", [4, 8])
def test_the_networks_pass_the_check_of_worlds(queues, start):
    check_world(jm.gallery.queues(queues, initial=start).world, probes=400, seed=1)


@pytest.mark.parametrize("idle", [1e-4, 0.0])
def test_rare_idling_is_kept_and_rounding_is_not(idle):
    """0.7 + 0.2 + 0.1 is 1 - 1e-16 in floating point."""
    plan = QueuePlan((2, 2), (0.7 - idle, 0.0), (0.2, 0.1), (None, None), ((0,), (1,)))
    world = QueueNetwork(plan, 0.9)
    here = world.radix.states([[1, 1]])
    assert world.successors(here, [0]).probabilities[0, -1] == pytest.approx(idle, rel=1e-9, abs=0)
    entering = world.predecessors(here)
    stays = entering.probabilities[entering.states == here]
    np.testing.assert_allclose(stays, [idle] if idle else [], rtol=1e-9)


def test_an_empty_start_is_a_point_mass():
    world = jm.gallery.queues(8, initial=jm.gallery.EmptyStart()).world
    assert world.draw_initial(np.random.default_rng(0), 3).tolist() == [0, 0, 0]
    assert world.initial_probability([0, 1, 10**15]).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("queues", [4, 8])
def test_nothing_has_the_length_of_the_state_space(queues):
    network = jm.gallery.queues(queues)
    rng = np.random.default_rng(0)
    tracemalloc.start()
    states = network.world.draw_initial(rng, 50)
    actions = network.longer.sample(states, rng)
    network.world.successors(states, actions)
    network.world.predecessors(states)
    network.world.initial_probability(states)
    network.costs.at(states, actions)
    network.lbfs.probabilities(states)
    network.uniform.probabilities(states)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < network.world.num_states


def test_networks_travel_to_other_processes():
    again = pickle.loads(pickle.dumps(EIGHT))
    states = EIGHT.world.draw_initial(np.random.default_rng(3), 20)
    actions = EIGHT.longer.sample(states, 0)
    np.testing.assert_array_equal(again.longer.sample(states, 0), actions)
    np.testing.assert_array_equal(again.costs.at(states, actions), EIGHT.costs.at(states, actions))
    for mine, theirs in zip(
        again.world.predecessors(states), EIGHT.world.predecessors(states), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


PLAN = {
    "buffers": (3, 2),
    "arrivals": (0.2, 0.0),
    "services": (0.4, 0.3),
    "routes": (1, None),
    "servers": ((0,), (1,)),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"buffers": (3, 0)}, r"buffers\[1\] = 0"),
        ({"buffers": (3, 2, 2)}, "arrivals has 2 entries for 3 buffers"),
        ({"arrivals": (-0.1, 0.0)}, "queue 0 has arrivals -0.1"),
        ({"arrivals": (float("nan"), 0.0)}, "queue 0 has arrivals nan"),
        ({"services": (0.4, 0.0)}, "queue 1 has .* services 0.0"),
        ({"services": (0.5, 0.4)}, "sum to 1.1"),
        ({"routes": (2, None)}, r"routes\[0\] = 2 is no queue"),
        ({"routes": (1, 0)}, "in a circle"),
        ({"servers": ((0, 1), (1,))}, "do not share the queues"),
        ({"servers": ((0,),)}, "do not share the queues"),
    ],
)
def test_an_impossible_plan_is_refused(changes, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        QueuePlan(**(PLAN | changes))


class Lopsided:
    """A start whose laws do not sum to one."""

    def law(self, buffer):
        return np.full(buffer + 1, 0.5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: jm.gallery.queues(5), "queues = 5"),
        (lambda: jm.gallery.queues(buffers=(1, 2)), "arrivals has 4 entries for 2 buffers"),
        (lambda: jm.gallery.queues(8, buffers=(999,) * 8), "more than int64 can count"),
        (lambda: jm.gallery.queues(discount=1), "discount"),
        (lambda: jm.gallery.queues(initial=Lopsided()), "the start of queue 0 sums to"),
        (lambda: jm.gallery.SmoothStart(0.0), "ratio = 0.0"),
        (EIGHT.explicit, "1.8e.17 state-action pairs, too many to list"),
        (lambda: EIGHT.world.successors([10**16], [0]), "is outside 0"),
        (lambda: EIGHT.world.successors([0], [18]), r"actions\[0\] = 18 is outside 0..17"),
        (lambda: EIGHT.world.successors([0, 1], [0]), "actions has 1 entries, expected 2"),
        (lambda: EIGHT.world.predecessors([-1]), r"states\[0\] = -1"),
    ],
)
def test_wrong_requests_are_refused(wrong, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        wrong()
