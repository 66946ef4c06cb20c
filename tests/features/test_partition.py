"""Partition features: cells that cover the states, bases that say how often they are visited."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import nnls

import journeyman as jm
from journeyman.errors import InvalidCosts, InvalidDemonstrations, InvalidWorld
from journeyman.features.cells import (
    Bumps,
    HardCells,
    Hats,
    cells_of,
    diffusion_coordinates,
    hat_functions,
    row_products,
)
from journeyman.features.partition import (
    ClonedVisits,
    ColumnBlend,
    Flat,
    GivenBase,
    SmoothedVisits,
    choices_of,
    partition,
    visits_of,
)
from journeyman.testing.random_worlds import Shape, random_policy, random_world
from journeyman.testing.strategies import seeds, worlds

MEMBERSHIPS = [HardCells(), Hats(), Hats(neighbours=1), Bumps(), Bumps(width=0.01, reach=29)]
memberships = st.sampled_from(MEMBERSHIPS)
bases = st.sampled_from([Flat(), SmoothedVisits(), ClonedVisits(), ClonedVisits(flat_share=0.2)])


def ladder(num_states=6, discount=0.9):
    """States in a row, some with three actions: back, stay, ahead."""
    rng = np.random.default_rng(0)
    actions = rng.integers(1, 4, num_states)
    offsets = np.concatenate([[0], np.cumsum(actions)])
    states = np.repeat(np.arange(num_states), actions)
    ahead = np.arange(offsets[-1]) - offsets[states] - 1
    transition = np.eye(num_states)[np.clip(states + ahead, 0, num_states - 1)]
    initial = np.full(num_states, 1 / num_states)
    places = np.arange(num_states, dtype=float)[:, np.newaxis]
    return jm.World(transition, initial, discount, choice_offsets=offsets, coordinates=places)


def recorded(world, seed=0):
    return jm.record(world, random_policy(world, seed), trajectories=5, horizon=8, seed=seed)


@given(seeds, st.integers(1, 4), st.integers(1, 30), memberships)
def test_memberships_over_a_lattice_cover_every_state(seed, dimensions, num_cells, membership):
    rng = np.random.default_rng(seed)
    world = random_world(rng, num_states=12)
    places = np.round(rng.normal(size=(12, dimensions)) * 2)
    cells = cells_of(world, num_cells, places)
    K = membership.over(cells)
    assert np.prod(cells.lattice) <= num_cells
    assert K.min() >= 0
    assert np.allclose(K.sum(axis=1), 1)
    assert (K.sum(axis=0) > 0).all()
    if isinstance(membership, Hats):
        assert np.diff(K.indptr).max() <= 2**dimensions


@given(worlds(), st.integers(1, 10), memberships)
def test_memberships_without_coordinates_cover_every_state(world, num_cells, membership):
    K = membership.over(cells_of(world, num_cells))
    assert K.shape[1] <= min(num_cells, world.num_states)
    assert K.min() >= 0
    assert np.allclose(K.sum(axis=1), 1)
    assert (K.sum(axis=0) > 0).all()
    if isinstance(membership, Hats):
        assert np.diff(K.indptr).max() <= membership.neighbours + (
            K.shape[1] <= membership.neighbours
        )


@pytest.mark.parametrize(
    ("extents", "num_cells", "expected"),
    [((16, 16), 64, (8, 8)), ((32, 8), 64, (16, 4)), ((16, 1), 4, (4, 1)), ((3, 3), 64, (3, 3))],
)
def test_a_lattice_follows_the_extents_and_never_splits_a_value(extents, num_cells, expected):
    places = np.indices(extents).reshape(2, -1).T.astype(float)
    world = jm.World(sparse.eye_array(len(places)), np.full(len(places), 1 / len(places)), 0.9)
    cells = cells_of(world, num_cells, places)
    assert cells.lattice == expected
    sizes = HardCells().over(cells).sum(axis=0)
    assert sizes.min() == sizes.max()


def test_hats_interpolate_linearly_between_centres():
    world = ladder(6)
    K = Hats().over(cells_of(world, 3)).toarray()
    centres = np.array([0.5, 2.5, 4.5])
    inner = slice(1, 5)
    assert np.allclose((K @ centres)[inner], world.coordinates[inner, 0])
    assert K[0].tolist() == [1.0, 0.0, 0.0]


def test_bumps_are_gaussian_up_to_their_foot():
    world = ladder(6)
    bumps = Bumps(width=0.5, reach=3.0)
    heights = bumps.over(cells_of(world, 6)).toarray()
    distance = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    expected = np.maximum(np.exp(-2 * distance**2) - np.exp(-4.5), 0.0)
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(heights, expected, atol=1e-4)
    assert np.array_equal(heights > 0, distance < 1.5)


def test_cells_by_diffusion_keep_rooms_apart():
    """Two cliques joined by one rare door."""
    transition = np.kron(np.eye(2), np.full((5, 5), 0.2))
    transition[4, :] = np.append(np.full(5, 0.198), [0.01, 0, 0, 0, 0])
    world = jm.World(transition, np.full(10, 0.1), 0.95)
    K = HardCells().over(cells_of(world, 2)).toarray()
    assert np.array_equal(K[:5], np.tile(K[0], (5, 1)))
    assert np.array_equal(K[5:], np.tile(1 - K[0], (5, 1)))


def test_diffusion_distance_compares_discounted_walks():
    """For a symmetric walk it is the distance between the rows of the resolvent."""
    size = 90
    ring = (np.roll(np.eye(size), 1, axis=0) + np.roll(np.eye(size), -1, axis=0)) / 2
    walk = ring * 0.5 + np.eye(size) * 0.5
    world = jm.World(walk, np.full(size, 1 / size), 0.9)
    places = diffusion_coordinates(world, size - 1)
    resolvent = np.linalg.inv(np.eye(size) - 0.9 * walk)
    for x, y in [(0, 1), (0, 7), (3, 48)]:
        expected = np.linalg.norm(resolvent[x] - resolvent[y])
        assert np.isclose(np.linalg.norm(places[x] - places[y]), expected, rtol=1e-8)
    few = diffusion_coordinates(world, 5)
    assert few.shape == (size, 5)
    assert np.array_equal(few, diffusion_coordinates(world, 5))
    assert np.allclose(np.linalg.norm(few, axis=0), np.linalg.norm(places[:, :5], axis=0))


@given(seeds)
def test_row_products_are_row_wise_kronecker_products(seed):
    rng = np.random.default_rng(seed)
    left, right = (rng.random((4, n)) * (rng.random((4, n)) < 0.5) for n in (3, 5))
    product = row_products(sparse.csr_array(left), sparse.csr_array(right))
    product.check_format(full_check=True)
    expected = np.array([np.kron(a, b) for a, b in zip(left, right, strict=True)])
    assert np.array_equal(product.toarray(), expected)


@pytest.mark.parametrize("knots", [[0.0], [0.0, 1.0], [-1.0, 0.5, 3.0]])
def test_hat_functions_are_those_of_numpy(knots):
    values = np.linspace(-2, 4, 25)
    hats = hat_functions(values, np.array(knots)).toarray()
    for k, height in enumerate(np.eye(len(knots))):
        assert np.allclose(hats[:, k], np.interp(values, knots, height))


@given(worlds(), seeds, st.integers(1, 6), memberships, bases)
def test_every_column_is_a_measure_of_occupancy_mass(world, seed, num_cells, membership, base):
    demos = recorded(world, seed)
    features = partition(world, demos, num_cells, membership=membership, base=base)
    assert features.is_sparse
    assert features.is_nonnegative
    assert np.allclose(features.masses, world.effective_horizon)
    assert features.num_features <= num_cells * world.pairs.max_actions


def test_columns_are_base_times_cell_times_action():
    world, base = ladder(), np.arange(1.0, 7.0)
    K = Hats().over(cells_of(world, 3)).toarray()
    expected = [
        base[world.pairs.states] * K[world.pairs.states, cell] * (world.pairs.actions == action)
        for cell in range(3)
        for action in range(world.pairs.max_actions)
    ]
    kept = np.array([column / column.sum() for column in expected if column.any()]).T
    features = partition(world, num_cells=3, base=GivenBase(base))
    assert np.allclose(features.matrix.toarray(), kept * world.effective_horizon)


def test_heuristics_take_the_place_of_actions():
    world = ladder()
    heuristics = [random_policy(world, seed) for seed in (1, 2)]
    features = partition(world, num_cells=3, heuristics=heuristics)
    assert features.num_features == 6
    K = Hats().over(cells_of(world, 3)).toarray()
    for column, (cell, chosen) in enumerate(np.ndindex(3, 2)):
        measure = K[world.pairs.states, cell] * heuristics[chosen].on(world)
        measure *= world.effective_horizon / measure.sum()
        assert np.allclose(features.matrix.toarray()[:, column], measure)


@given(seeds, st.sampled_from(Shape), st.integers(1, 4), memberships, st.booleans())
def test_cloned_visits_contain_an_occupancy(seed, shape, num_cells, membership, blend_policies):
    """Non-negative coefficients, summing to 1, without any violation of the flow."""
    world = random_world(seed, shape, num_states=30, discount=0.8)
    heuristics = [random_policy(world, seed), jm.Policy.uniform(world)] if blend_policies else None
    features = partition(
        world, recorded(world, seed), num_cells, membership=membership, heuristics=heuristics
    )
    flow = world.flow.apply(features.matrix.toarray())
    coefficients, violation = nnls(flow, world.initial)
    assert violation <= 1e-8
    assert np.isclose(coefficients.sum(), 1)


def test_the_promise_of_cloned_visits_is_not_idle():
    """With a flat base no combination keeps the flow."""
    world = random_world(3, num_states=7)
    features = partition(world, num_cells=3)
    assert nnls(world.flow.apply(features.matrix.toarray()), world.initial)[1] > 1e-3


def test_more_rounds_explain_the_demonstrations_better():
    example = jm.gallery.grid(8, seed=1)
    world = example.world
    demos = jm.record(world, example.expert, trajectories=20, horizon=30, seed=0)
    counts = visits_of(world, demos, 1.0)
    K = Hats().over(cells_of(world, 9))
    blend = ColumnBlend(world, demos, (K,), choices_of(world, None))

    def log_likelihood(rounds):
        shares = ClonedVisits(rounds=rounds, smoothing=1e-6).shares(blend)
        assert np.allclose(shares.sum(axis=1), 1)
        return float(counts @ np.log(blend.columns @ shares.ravel()))

    figures = [log_likelihood(rounds) for rounds in (1, 2, 5, 20)]
    assert figures == sorted(figures)
    assert figures[-1] > figures[0] + 1


@pytest.mark.parametrize("discounted", [False, True])
def test_smoothed_visits_average_over_cells(discounted):
    world = ladder()
    demos = recorded(world)
    weights = (0.9 if discounted else 1.0) ** demos.step_times
    visits = np.bincount(demos.step_states, weights, minlength=6)
    K = Hats().over(cells_of(world, 3)).toarray()
    smooth = K @ ((K.T @ visits) / K.sum(axis=0))
    expected = 0.75 * smooth / smooth.sum() + 0.25 / 6
    features = partition(
        world, demos, 3, base=SmoothedVisits(flat_share=0.25, discounted=discounted)
    )
    same = partition(world, num_cells=3, base=GivenBase(expected))
    assert np.allclose(features.matrix.toarray(), same.matrix.toarray())


def test_defaults_are_flat_without_and_cloned_with_demonstrations():
    world = ladder()
    demos = recorded(world)
    for some, base in ((None, Flat()), (demos, ClonedVisits())):
        left, right = partition(world, some, 3), partition(world, demos, 3, base=base)
        assert np.array_equal(left.matrix.toarray(), right.matrix.toarray())


def test_equal_calls_give_equal_bits():
    world, _, expert = jm.gallery.garnet(120, seed=1)
    demos = jm.record(world, expert, trajectories=5, horizon=20, seed=0)
    first, second = partition(world, demos, 10), partition(world, demos, 10)
    assert np.array_equal(first.matrix.toarray(), second.matrix.toarray())


def test_states_whose_base_vanishes_do_not_overflow():
    world = ladder()
    base = np.full(6, 1e-310)
    base[0] = 1.0
    features = partition(world, num_cells=6, membership=HardCells(), base=GivenBase(base))
    assert features.num_features == world.pairs.actions_per_state[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bumps(width=0), "width"),
        (lambda: Bumps(reach=31), "reach"),
        (lambda: Hats(neighbours=0), "neighbours"),
        (lambda: SmoothedVisits(flat_share=1.5), "flat_share"),
        (lambda: SmoothedVisits(flat_share="a"), "flat_share"),
        (lambda: ClonedVisits(rounds=0), "rounds"),
        (lambda: ClonedVisits(rounds=1.5), "rounds"),
        (lambda: ClonedVisits(smoothing=0), "smoothing"),
        (lambda: ClonedVisits(flat_share=float("nan")), "flat_share"),
        (lambda: GivenBase([1.0, -1.0]), r"base measure\[1\] = -1"),
        (lambda: GivenBase([0.0, 0.0]), "not all of them 0"),
        (lambda: partition(ladder(), base=GivenBase([1.0])), "expected 6"),
        (lambda: partition(ladder(), num_cells=0), "num_cells"),
        (lambda: partition(ladder(), dimensions=0, num_cells=2.5), "num_cells"),
        (lambda: partition(ladder(), membership=Hats), "membership is"),
        (lambda: partition(ladder(), base=Flat), "base is"),
        (lambda: partition(ladder(), heuristics=[]), "no heuristics"),
        (lambda: diffusion_coordinates(ladder(), 0), "dimensions"),
    ],
)
def test_parameters_out_of_range_are_refused(make, message):
    with pytest.raises(InvalidCosts, match=message):
        make()


def test_a_base_of_visits_needs_demonstrations():
    with pytest.raises(InvalidDemonstrations, match="needs demonstrations"):
        partition(ladder(), base=SmoothedVisits())


def test_coordinates_of_another_world_are_refused():
    with pytest.raises(InvalidWorld, match="coordinates has 3 entries"):
        partition(ladder(), coordinates=np.zeros((3, 2)))
