"""Parking: the lattice drives like a car, costs are those of its ways, styles differ."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

import journeyman as jm
from journeyman.errors import InvalidWorld
from journeyman.gallery.parking_lot import (
    DIRECTIONS,
    DISCS,
    HEADINGS,
    METRES,
    NAMES,
    RADIUS,
    STYLES,
    WIDE,
    _way,
)

SMALL = {"width": 36, "aisles": 1, "starts": 12}


@pytest.fixture(scope="module")
def lot():
    return jm.gallery.parking(**SMALL, seed=1)


def column(example, name):
    return np.asarray(example.basis.on(example.world))[:, NAMES.index(name)]


def test_a_seed_draws_the_lot_and_the_style_the_driver(lot):
    same, other = (jm.gallery.parking("sloppy", **SMALL, seed=seed) for seed in (1, 2))
    assert (same.world.transition != lot.world.transition).nnz == 0
    assert np.array_equal(same.world.initial, lot.world.initial)
    assert np.array_equal(same.basis.matrix, lot.basis.matrix)
    assert not np.array_equal(same.expert.per_pair, lot.expert.per_pair)
    assert other.basis.names == lot.basis.names == NAMES
    assert not np.array_equal(other.lot.cars, lot.lot.cars)


def test_every_step_is_certain_and_every_state_leads_to_the_space(lot):
    world = lot.world
    assert world.transition.nnz == world.num_pairs
    assert (world.transition.data == 1).all()
    assert np.count_nonzero(world.initial) == 12
    assert world.absorbing.nonzero()[0].tolist() == [world.sink]
    assert not np.asarray(lot.basis.on(world))[-1].any()
    backwards = _graph(world, np.ones(world.num_pairs)).T.tocsr()
    assert np.isfinite(dijkstra(backwards, indices=world.sink, unweighted=True)).all()


def _graph(world, lengths):
    """The lattice as a weighted graph."""
    states, following = world.pairs.states, world.transition.indices
    off = states != world.sink
    return sparse.csr_array(
        (lengths[off], (states[off], following[off])), shape=(world.num_states, world.num_states)
    )


def test_plans_are_shortest_paths():
    """Dijkstra's algorithm on the graph, at discount 1: metres driven and one for a switch."""
    weights = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    world, basis, expert, _ = jm.gallery.parking(
        weights, **SMALL, seed=3, discount=1, steps_at_most=400
    )
    lengths = np.asarray(basis.on(world)) @ weights
    backwards = _graph(world, lengths).T.tocsr()
    shortest = dijkstra(backwards, indices=world.sink)
    assert jm.plan(world, lengths).values == pytest.approx(shortest, abs=1e-9)
    paid = jm.expected_cost(world, expert, lengths)
    assert paid == pytest.approx(world.initial @ shortest)


@pytest.mark.parametrize("heading", range(HEADINGS))
@pytest.mark.parametrize("turn", [-1, 0, 1])
def test_a_way_bends_as_a_car_does(heading, turn):
    way = _way(heading, turn)
    first, last = (
        np.array(DIRECTIONS[k]) / np.linalg.norm(DIRECTIONS[k]) for k in (heading, way.heading)
    )
    angle = np.arctan2(first[0] * last[1] - first[1] * last[0], first @ last)
    assert np.sign(angle) == turn
    assert way.turned == pytest.approx(abs(angle))
    assert way.length >= np.hypot(*way.end) - 1e-12
    # samples of the rear axle: no bend is tighter than the radius, and the last one is the end
    ends = way.discs[: way.discs.shape[0] // len(DISCS)]
    assert ends[[0, -1]] == pytest.approx(np.array([[0, 0], way.end]), abs=1e-12)
    bends = np.diff(np.unwrap(np.arctan2(*way.courses.T[::-1])))
    assert (np.abs(bends) <= way.length / len(way.courses) / RADIUS + 1e-12).all()
    assert (np.sign(bends) * turn >= 0).all()


def test_reversing_drives_the_same_ways_backwards(lot):
    world, costs = lot.world, np.asarray(lot.basis.on(lot.world))
    places, after = world.coordinates, world.transition.indices
    gear, driven = places[world.pairs.states, 3], costs[:, 0] + costs[:, 1] > 0
    key = np.column_stack([places[world.pairs.states, :3], places[after, :3]]).round(6)
    forward, reverse = {}, {}
    for pair in np.flatnonzero(driven & (after != world.sink)):
        row = key[pair].tolist()
        if gear[pair] == 0:
            forward[(*row[:3], *row[3:])] = pair
        else:
            reverse[(*row[3:], *row[:3])] = pair
    shared = forward.keys() & reverse.keys()
    assert len(shared) > 0.9 * len(forward)
    there, back = (np.array([part[one] for one in shared]) for part in (forward, reverse))
    assert costs[there, 0] == pytest.approx(costs[back, 1])
    assert costs[there, 3:6] == pytest.approx(costs[back, 3:6])
    assert not costs[there, 1].any()
    assert not costs[back, 0].any()
    # where one direction of travel is against the lane, the other one is along it
    assert (np.minimum(costs[there, 6], costs[back, 6]) <= 0.5 * costs[there, 0]).all()
    actions = world.pairs.actions
    assert np.array_equal(actions[there], actions[back])


def test_no_car_stands_in_an_obstacle(lot):
    """Exact distances of the discs of every state to every rectangle."""
    x, y, heading = (np.asarray(lot.world.coordinates)[:, k] for k in range(3))
    for ahead in DISCS:
        at = np.column_stack(
            [x / METRES + ahead * np.cos(np.radians(heading)),
             y / METRES + ahead * np.sin(np.radians(heading))]
        )  # fmt: skip
        for x0, y0, x1, y1 in np.vstack([lot.lot.cars, lot.lot.walls]):
            beside = np.maximum(np.maximum(x0 - at[:, 0], at[:, 0] - x1), 0)
            above = np.maximum(np.maximum(y0 - at[:, 1], at[:, 1] - y1), 0)
            # distances are tabled at quarters of a cell
            assert np.hypot(beside, above).min() >= WIDE - 0.5**0.5 / 4


def test_in_a_lane_nothing_but_its_length_is_paid(lot):
    world, costs = lot.world, np.asarray(lot.basis.on(lot.world))
    starts = np.flatnonzero(world.initial)
    straight = [
        pair
        for state in starts
        for pair in range(*world.pairs.offsets[[state, state + 1]])
        if world.pairs.actions[pair] == 0
    ]
    assert len(straight) > 6
    paid = costs[straight]
    assert paid[:, 0] == pytest.approx(METRES)
    assert not paid[:, 1:4].any()
    assert not np.median(paid[:, 5:], axis=0).any()  # at crossings another lane is as near


def test_styles_differ_as_their_names_say():
    totals = {}
    for style in STYLES:
        lots = [jm.gallery.parking(style, **SMALL, seed=seed) for seed in (1, 2, 3)]
        totals[style] = np.mean(
            [jm.occupancy(one.world, one.expert).expectations(one.basis) for one in lots], axis=0
        )
        for one in lots:
            trips = jm.record(one.world, one.expert, trajectories=20, horizon=200, seed=0)
            assert trips.terminated.all()
    nice, sloppy, backward = (dict(zip(NAMES, totals[one], strict=True)) for one in STYLES)
    assert nice["against the lane"] < min(one["against the lane"] for one in (sloppy, backward))
    assert backward["reverse"] > max(one["reverse"] for one in (nice, sloppy))
    assert backward["forward"] < min(one["forward"] for one in (nice, sloppy))
    for style, weights in STYLES.items():  # nobody drives a style at less cost than its own driver
        paid = {other: float(np.dot(weights, totals[other])) for other in STYLES}
        assert min(paid, key=paid.get) == style


def test_drivers_err_at_a_temperature(lot):
    world, basis = lot.world, lot.basis
    cost = np.asarray(basis.on(world)) @ STYLES["nice"]
    least = jm.expected_cost(world, lot.expert, cost)
    assert least == pytest.approx(world.initial @ jm.plan(world, cost).values)
    erring = jm.gallery.parking(**SMALL, seed=1, temperature=0.5).expert
    again = jm.policy.soft_plan(world, cost, temperature=0.5).policy
    assert erring.per_pair == pytest.approx(again.per_pair)
    assert jm.expected_cost(world, erring, cost) > least


@pytest.mark.parametrize(
    ("method", "share"),
    [
        (
            lambda expert: jm.solvers.MaximumMarginPlanning(
                1e-6, expert=expert, nonnegative=True, accuracy=1e-4
            ),
            0.2,
        ),
        (lambda _: jm.solvers.ConsistentCosts(nonnegative=True), 0.02),
    ],
    ids=["margins", "centre"],
)
def test_costs_learned_in_two_lots_drive_in_another(method, share):
    """They lose less under the expert's own cost than drivers of the other styles, by far."""
    homes = [jm.gallery.parking(**{**SMALL, "starts": 60}, seed=seed) for seed in (1, 2)]
    members = [
        (
            one.world,
            one.basis,
            jm.record(one.world, one.expert, trajectories=60, horizon=400, seed=0),
        )
        for one in homes
    ]
    family = jm.problem.Family(members)
    trips, world = family.demonstrations, family.world
    totals = jm.ExpertExpectation.from_demonstrations(
        trips, family.basis, world, method=jm.demonstrations.MonteCarlo()
    )
    problem = jm.Apprenticeship(world, family.basis, totals, jm.Simplex())
    weights = jm.solve(problem, method(jm.clone(trips, world))).recovered
    assert (weights >= 0).all()
    there = jm.gallery.parking(**SMALL, seed=5)
    costs = np.asarray(there.basis.on(there.world))
    policies = [jm.plan(there.world, costs @ weights).policy]
    policies += [jm.gallery.parking(one, **SMALL, seed=5).expert for one in ("sloppy", "backward")]
    own = costs @ STYLES["nice"]
    least = jm.expected_cost(there.world, there.expert, own)
    losses = [jm.expected_cost(there.world, one, own) - least for one in policies]
    assert losses[0] < share * min(losses[1:])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"style": "polite"}, "nice, sloppy, backward"),
        ({"style": [1.0, 2.0]}, "style"),
        ({"width": 20}, "width"),
        ({"aisles": 0}, "aisles"),
        ({"starts": 10_000}, "places on lanes"),
        ({"temperature": -1.0}, "temperature"),
    ],
)
def test_what_cannot_be_built_is_refused(given, words):
    with pytest.raises(InvalidWorld, match=words):
        jm.gallery.parking(**{**SMALL, **given})
