"""Features by callables are a matrix nobody has written down: here it is, and they agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.features import EvenKnots, GivenKnots
from journeyman.features.base import DrawnFeatures, every_action
from journeyman.gallery.queue_network import QueuePlan

NETWORK = jm.gallery.queues(4, buffers=(5, 4, 4, 5), discount=0.9)
EXPLICIT, BASIS = NETWORK.explicit()
WALKS = jm.record(NETWORK.world, NETWORK.longer, trajectories=40, horizon=40, seed=0)
HEURISTICS = (NETWORK.longer, NETWORK.lbfs, NETWORK.uniform)
STATES = np.arange(EXPLICIT.num_states)
KINDS = ("tents", "one knot each", "one heuristic", "actions", "given knots", "joined")


def features_of(kind, world=NETWORK.world):
    """Feature sets of different make, all over the same world."""
    radix = NETWORK.radix
    if kind == "tents":
        return jm.features.factored(world, radix, WALKS, HEURISTICS, (3, 2, 1, 4))
    if kind == "one knot each":
        return jm.features.factored(world, radix, WALKS, HEURISTICS, 1)
    if kind == "one heuristic":
        return jm.features.factored(world, radix, WALKS, [NETWORK.lbfs], (2, 2, 3, 3))
    if kind == "actions":
        alone = jm.features.single_actions(world)
        return jm.features.factored(world, radix, WALKS, alone, 2, knots=EvenKnots())
    if kind == "given knots":
        knots = GivenKnots([[0, 2, 5], [4], [0, 1, 2, 3, 4], [1.5, 3.5]])
        return jm.features.factored(world, radix, WALKS, HEURISTICS, 9, knots=knots)
    return jm.features.JoinedFeatures(
        jm.features.factored(world, radix, WALKS, HEURISTICS, 2),
        *jm.features.marginals(world, radix, WALKS, NETWORK.uniform),
    )


def matrix_of(features):
    return features.rows(*every_action(STATES, features.world.num_actions)).toarray()


def naive_flow(world, matrix):
    """(B - discount P)' Phi from the arrays of an explicit world."""
    owners = sparse.csr_array(
        (np.ones(world.num_pairs), (np.arange(world.num_pairs), world.pairs.states)),
        shape=(world.num_pairs, world.num_states),
    )
    return owners.T @ matrix - world.discount * (world.transition.T @ matrix)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world", [NETWORK.world, EXPLICIT], ids=["callables", "explicit"])
def test_flow_rows_are_those_of_the_matrix(kind, world):
    features = features_of(kind, world)
    order = np.random.default_rng(0).permutation(np.concatenate([STATES, STATES[:50]]))
    wanted = naive_flow(EXPLICIT, matrix_of(features))[order]
    own, generic = features.flow(order), DrawnFeatures.flow(features, order)
    np.testing.assert_allclose(own.rows.toarray(), wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(generic.rows.toarray(), wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(own.law, generic.law, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_measures_of_the_mass_of_an_occupancy(kind):
    matrix = matrix_of(features_of(kind))
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=0), 10.0, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_laws_are_the_mixtures_they_are_said_to_be(kind):
    features = features_of(kind)
    pairs = every_action(STATES, NETWORK.world.num_actions)
    rows, matrix = features.rows(*pairs), matrix_of(features)
    pair_law, flow_law = features.pair_law(rows), features.flow(STATES).law
    entering = matrix.sum(axis=1).reshape(STATES.size, -1).sum(axis=1)
    entering += 0.9 * (EXPLICIT.transition.T @ matrix.sum(axis=1))
    assert pair_law.sum() == pytest.approx(1, abs=1e-12)
    assert flow_law.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(pair_law, matrix.sum(axis=1) / matrix.sum(), rtol=1e-12)
    np.testing.assert_allclose(flow_law, entering / entering.sum(), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_no_longer_than_the_ratios_allow(kind):
    features = features_of(kind)
    matrix, flow = matrix_of(features), features.flow(STATES)
    law = matrix.sum(axis=1) / matrix.sum()
    assert (np.linalg.norm(matrix, axis=1) <= features.pair_ratio * law * (1 + 1e-12)).all()
    lengths = np.linalg.norm(flow.rows.toarray(), axis=1)
    assert (lengths <= features.flow_ratio * flow.law * (1 + 1e-12)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_the_laws(kind):
    features, rng, count = features_of(kind), np.random.default_rng(1), 200_000
    states, actions = features.draw(rng, count)
    rows = features.rows(*every_action(STATES, NETWORK.world.num_actions))
    places = states * NETWORK.world.num_actions + actions
    require_frequencies(places, features.pair_law(rows))
    require_frequencies(features.draw_flow(rng, count), features.flow(STATES).law)


def require_frequencies(drawn, law):
    """Pearson's statistic over outcomes in bins of about equal mass, six deviations at most."""
    bins = np.minimum((np.cumsum(law) * 100).astype(int), 99)
    counts, masses = np.bincount(bins[drawn], minlength=100), np.bincount(bins, law, 100)
    assert counts[masses == 0].sum() == 0
    expected = drawn.size * masses[masses > 0]
    statistic = ((counts[masses > 0] - expected) ** 2 / expected).sum()
    freedom = expected.size - 1
    assert statistic < freedom + 6 * np.sqrt(2 * freedom)
    assert not np.bincount(drawn, minlength=law.size)[law == 0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_exact_expectations_are_those_of_the_matrix(kind):
    features = features_of(kind)
    known = features.exact_matching(NETWORK.costs)
    assert np.isnan(known[4]).all()
    wanted = BASIS.matrix.T @ matrix_of(features)
    np.testing.assert_allclose(known[:4], wanted[:4], rtol=1e-12)


def test_a_state_at_knots_has_a_single_cell_and_tents_sum_to_one():
    features = features_of("given knots")
    (at_knots,) = NETWORK.radix.states([[2, 4, 3, 0]])
    around, values = features.cells(np.array([at_knots]))
    assert np.count_nonzero(values) == 1
    assert around[0][values[0] > 0].tolist() == [((1 * 1 + 0) * 5 + 3) * 2 + 0]
    around, values = features.cells(STATES)
    base = np.prod(
        [axis.base[NETWORK.radix.digits(STATES)[:, i]] for i, axis in enumerate(features.axes)],
        axis=0,
    )
    np.testing.assert_allclose((values / features.scales[around]).sum(axis=1), base, rtol=1e-12)


def test_joined_features_are_their_blocks_side_by_side():
    joined = features_of("joined")
    blocks = np.hstack([matrix_of(block) for block in joined.blocks])
    np.testing.assert_array_equal(matrix_of(joined), blocks)
    assert joined.num_features == blocks.shape[1]
    other = features_of("tents", EXPLICIT)
    with pytest.raises(jm.errors.InvalidCosts, match="different worlds"):
        jm.features.JoinedFeatures(joined, other)
    with pytest.raises(jm.errors.InvalidCosts, match="nothing to join"):
        jm.features.JoinedFeatures()


def test_what_cannot_be_features_is_refused():
    world, radix = NETWORK.world, NETWORK.radix
    with pytest.raises(jm.errors.InvalidCosts, match="no heuristics"):
        jm.features.factored(world, radix, WALKS, [])
    with pytest.raises(jm.errors.InvalidCosts, match="flat_share"):
        jm.features.factored(world, radix, WALKS, HEURISTICS, flat_share=1.5)
    with pytest.raises(jm.errors.InvalidCosts, match="knots for 2 factors"):
        jm.features.factored(world, radix, WALKS, HEURISTICS, knots=GivenKnots([[0], [1]]))
    between = GivenKnots([[0, 0.2, 0.4, 5], [0], [0], [0]])
    with pytest.raises(jm.errors.InvalidCosts, match="knot 1 of factor 0 has no mass"):
        jm.features.factored(world, radix, WALKS, HEURISTICS, knots=between)


@st.composite
def networks(draw):
    """Two or three queues in a line, buffers of 1 to 3, knots of 1 to 4."""
    count = draw(st.integers(2, 3))
    buffers = tuple(draw(st.integers(1, 3)) for _ in range(count))
    rates = [draw(st.floats(0.05, 0.2)) for _ in range(2 * count)]
    routes = (*range(1, count), None)
    servers = ((0,), tuple(range(1, count))) if draw(st.booleans()) else (tuple(range(count)),)
    plan = QueuePlan(buffers, (rates[0], *[0.0] * (count - 1)), tuple(rates[count:]), routes,
                     servers)  # fmt: skip
    return jm.gallery.queues(plan, discount=draw(st.floats(0.5, 0.95))), draw(
        st.lists(st.integers(1, 4), min_size=count, max_size=count)
    )


@settings(max_examples=30)
@given(networks(), st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.5, 1.0]))
def test_small_networks_of_any_kind(case, seed, share):
    network, knots = case
    walks = jm.record(network.world, network.uniform, trajectories=5, horizon=8, seed=seed)
    features = jm.features.factored(
        network.world, network.radix, walks, [network.longer, network.uniform], knots,
        flat_share=share,
    )  # fmt: skip
    everywhere = np.arange(network.world.num_states)
    matrix = features.rows(*every_action(everywhere, network.world.num_actions)).toarray()
    horizon = 1 / (1 - network.world.discount)
    np.testing.assert_allclose(matrix.sum(axis=0), horizon, rtol=1e-10)
    flow, generic = features.flow(everywhere), DrawnFeatures.flow(features, everywhere)
    wanted = naive_flow(network.explicit()[0], matrix)
    np.testing.assert_allclose(flow.rows.toarray(), wanted, rtol=0, atol=1e-12 * horizon)
    np.testing.assert_allclose(flow.law, generic.law, rtol=1e-10)
    assert flow.law.sum() == pytest.approx(1, abs=1e-10)


def test_cloned_laws_are_frequencies_where_a_cell_was_visited_alone():
    world, radix = NETWORK.world, NETWORK.radix
    sizes = radix.sizes.tolist()
    walks = jm.record(world, NETWORK.uniform, trajectories=400, horizon=40, seed=3)
    policy = jm.features.cloned(world, radix, walks, max(sizes), smoothing=1e-9)
    laws = policy.probabilities(STATES)
    np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-12)
    assert (laws >= 0).all()
    cells = policy.function.cells
    if cells.shape == tuple(sizes):  # a tent at every value: each state is a cell of its own
        counts = np.zeros((STATES.size, 4))
        np.add.at(counts, (walks.step_states, walks.actions), 1.0)
        seen = counts.sum(axis=1) > 0
        wanted = counts[seen] / counts[seen].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(laws[seen], wanted, atol=1e-6)
    assert cells.shape == tuple(sizes)


def test_cloned_answers_where_nobody_was_and_follows_a_constant_expert():
    world, radix = NETWORK.world, NETWORK.radix
    always = jm.features.single_actions(world)[2]
    walks = jm.record(world, always, trajectories=30, horizon=20, seed=0)
    laws = jm.features.cloned(world, radix, walks, 2).probabilities(STATES)
    assert laws.argmax(axis=1).tolist() == [2] * STATES.size
    smooth = jm.features.cloned(world, radix, walks, 2, smoothing=1e9).probabilities(STATES)
    np.testing.assert_allclose(smooth, 0.25, atol=1e-5)
    with pytest.raises(jm.errors.InvalidCosts, match="smoothing"):
        jm.features.cloned(world, radix, walks, smoothing=0.0)
