from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import splu

import journeyman as jm
from journeyman.policy import policy_evaluation as discounted_system
from journeyman.testing import random_world
from journeyman.testing.strategies import policies, worlds
from naive import occupancy as naive


def by_dense_solve(world, policy):
    averaging = np.zeros((world.num_states, world.num_pairs))
    averaging[world.pairs.states, np.arange(world.num_pairs)] = policy.per_pair
    chain = averaging @ world.transition.toarray()
    visits = np.linalg.solve(np.eye(world.num_states) - world.discount * chain.T, world.initial)
    return visits @ averaging


def distance(found, expected):
    return np.abs(found.measure - expected).sum() / found.world.effective_horizon


def large_worlds():
    grid = jm.gallery.grid(40)
    garnet = jm.gallery.garnet(1000, 3, 4, num_costs=2)
    return {"grid": (grid.world, grid.expert), "garnet": (garnet.world, garnet.expert)}


LARGE = large_worlds()
large = pytest.mark.parametrize("name", LARGE)


@cache
def reference(name):
    return by_dense_solve(*LARGE[name])


@settings(max_examples=40)
@given(st.data())
def test_the_measure_is_the_sum_of_the_power_series(data):
    world = data.draw(worlds().filter(lambda drawn: drawn.discount <= 0.95))
    policy = data.draw(policies(world))
    assert distance(jm.occupancy(world, policy), naive.occupancy(world, policy)) < 1e-12


@given(st.data())
def test_the_measure_solves_the_linear_system_at_every_discount(data):
    world = data.draw(worlds())
    policy = data.draw(policies(world))
    assert distance(jm.occupancy(world, policy), by_dense_solve(world, policy)) < 1e-11


@given(st.data())
def test_the_residual_is_what_is_left_of_the_flow_equations(data):
    world = data.draw(worlds())
    found = jm.occupancy(world, data.draw(policies(world)))
    flow = -world.discount * world.transition.toarray()
    flow[np.arange(world.num_pairs), world.pairs.states] += 1
    left = np.abs(world.initial - flow.T @ found.measure).sum()
    assert found.residual == pytest.approx(left, abs=1e-15 * world.effective_horizon)
    assert found.residual <= 1e-12 * world.effective_horizon
    assert (found.measure >= 0).all()
    assert found.measure.sum() == pytest.approx(world.effective_horizon, rel=1e-9)


def test_the_residual_does_not_rest_on_what_the_solver_claims(monkeypatch):
    def careless(system, b, **options):
        return discounted_system.LinearSolution(np.ones_like(b), 0.0, "LU")

    monkeypatch.setattr(discounted_system.DiscountedSystem, "solve", careless)
    world = jm.World([[0, 1], [1, 0]], [1, 0], 0.9)
    found = jm.occupancy(world, jm.Policy.uniform(world))
    assert found.residual == pytest.approx(0.9 + 0.1)


@large
def test_large_worlds_are_solved_iteratively(name):
    found = jm.occupancy(*LARGE[name])
    assert found.method == "BiCGSTAB"
    assert found.residual < 1e-11
    assert distance(found, reference(name)) < 1e-11


@large
@pytest.mark.parametrize("nonsense", [0.0, 1e3, np.nan, np.inf])
@pytest.mark.parametrize("claim", [0, 400])
def test_a_factorisation_takes_over_when_the_iteration_fails(monkeypatch, name, nonsense, claim):
    def broken(system, right, x, wanted, most):
        x[:] = nonsense
        return claim

    for loops in ("system_kernels", "plain_steps"):
        monkeypatch.setattr(f"journeyman.policy.{loops}.bicgstab", broken)
    world, policy = LARGE[name]
    found = jm.occupancy(world, jm.Policy(policy.on(world), world.pairs))  # not asked for before
    assert found.method == "LU"
    assert found.residual < 1e-11
    assert distance(found, reference(name)) < 1e-11


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", ["small", "grid"])
def test_one_factorisation_serves_several_right_hand_sides(monkeypatch, name, transposed):
    world = random_world(0) if name == "small" else LARGE["grid"][0]
    factorisations = []

    def counting(*arguments, **options):
        factorisations.append(arguments)
        return splu(*arguments, **options)

    monkeypatch.setattr("scipy.sparse.linalg.splu", counting)
    monkeypatch.setattr(discounted_system, "DIRECT_LIMIT", world.num_states)
    chain = world.transition[world.pairs.offsets[:-1]]
    system = discounted_system.DiscountedSystem(chain, world.discount)
    dense = np.eye(world.num_states) - world.discount * chain.toarray()
    rng = np.random.default_rng(1)
    for _ in range(2):
        b = rng.normal(size=world.num_states)
        solution = system.solve(b, transposed=transposed)
        expected = np.linalg.solve(dense.T if transposed else dense, b)
        np.testing.assert_allclose(solution.x, expected, rtol=0, atol=1e-10)
        assert solution.residual <= 1e-11 * np.abs(b).sum()
    assert len(factorisations) == 1


def test_what_rounding_leaves_is_no_reason_to_factorise():
    """At .999 the residual of a thousand visits cannot be as small as asked for; in a world that is
    not narrow factors would take minutes."""
    rng, size = np.random.default_rng(0), 1500
    rows = np.repeat(np.arange(2 * size), 5)
    laws = sparse.csr_array(
        (rng.dirichlet(np.ones(5), 2 * size).ravel(), (rows, rng.integers(0, size, rows.size))),
        shape=(2 * size, size),
    )
    world = jm.World(laws, np.full(size, 1 / size), 0.9999)
    visits = jm.occupancy(world, jm.Policy.uniform(world))
    assert visits.method == "BiCGSTAB"
    assert visits.residual <= 1e-14 * world.effective_horizon


def test_expected_costs_are_linear_in_the_measure():
    world = random_world(4)
    policy = jm.Policy.uniform(world)
    found = jm.occupancy(world, policy)
    rng = np.random.default_rng(2)
    per_pair, per_state = rng.normal(size=world.num_pairs), rng.normal(size=world.num_states)
    assert jm.expected_cost(world, policy, per_pair) == pytest.approx(found.measure @ per_pair)
    assert jm.expected_cost(world, policy, per_state) == pytest.approx(found.of_states @ per_state)
    basis = jm.CostBasis(np.column_stack([per_pair, 2 * per_pair]))
    np.testing.assert_allclose(
        found.expectations(basis), found.measure @ per_pair * np.array([1, 2])
    )


def test_a_cost_of_another_world_is_refused():
    world = random_world(4)
    with pytest.raises(jm.errors.InvalidCosts, match="cost has 99 rows"):
        jm.expected_cost(world, jm.Policy.uniform(world), np.ones(99))
