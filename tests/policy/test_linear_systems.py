"""Fast evaluation of deterministic policies against dense solves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.policy import policy_evaluation as chains_module
from journeyman.policy import steps
from journeyman.policy.planning import improve
from journeyman.policy.policy_evaluation import Chains, is_narrow
from journeyman.policy.steps import MOST_EFFORT
from journeyman.testing.random_worlds import Shape, random_world
from journeyman.testing.strategies import seeds, worlds


@pytest.fixture(scope="module", params=["dense", "plain", "compiled"], autouse=True)
def size(request):
    """Worlds count as that small, or not."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "dense":
            patch.setattr(steps, "DENSE_STATES", 0)
        if request.param == "compiled":
            patch.setattr(steps, "PLAIN_STATES", 0)
        yield


def some_choice(world, seed):
    rng = np.random.default_rng(seed)
    actions = rng.integers(0, world.pairs.actions_per_state)
    return world.pairs.offsets[:-1] + actions


def dense_system(world, choice):
    return np.eye(world.num_states) - world.discount * world.transition[choice].toarray()


@pytest.mark.parametrize("direct", [True, False])
@settings(max_examples=40)
@given(worlds(), seeds)
def test_tables_and_visits_solve_their_systems(direct, world, seed):
    chains, choice = Chains(world), some_choice(world, seed)
    chains.direct = direct
    rng = np.random.default_rng(seed)
    costs = rng.normal(size=(world.num_pairs, 3))
    starts = rng.random((world.num_states, 2))
    system = dense_system(world, choice)
    table = np.hstack([block for _, block in chains.tables(choice, costs, 1e-12)])
    scale = world.effective_horizon
    assert table == pytest.approx(np.linalg.solve(system, costs[choice]), abs=1e-8 * scale)
    for block in (starts, starts[:, 0]):
        exact = np.linalg.solve(system.T, block)
        assert chains.visits(choice, block, 1e-12) == pytest.approx(exact, abs=1e-8 * scale)


def test_blocks_of_columns_are_joined_in_order(monkeypatch):
    world = random_world(0, Shape.SPARSE, num_states=30)
    costs = np.random.default_rng(0).normal(size=(world.num_pairs, 5))
    choice = some_choice(world, 0)
    monkeypatch.setattr(chains_module, "BLOCK_BYTES", 8 * 30 * 2)
    parts = list(Chains(world).tables(choice, costs, 1e-12))
    assert [part for part, _ in parts] == [slice(0, 2), slice(2, 4), slice(4, 5)]
    exact = np.linalg.solve(dense_system(world, choice), costs[choice])
    assert np.hstack([table for _, table in parts]) == pytest.approx(exact, abs=1e-8)


def test_a_broken_krylov_solve_is_repaired(monkeypatch):
    """A cycle needs as many steps as it has states; after one step the solve has failed."""
    world = random_world(0, Shape.PERIODIC, num_states=50, discount=0.99)
    choice, chains = some_choice(world, 0), Chains(world)
    chains.direct = False
    costs = np.random.default_rng(0).normal(size=(world.num_pairs, 2))
    monkeypatch.setattr(chains_module, "KRYLOV_ITERATIONS", 1)
    ((_, table),) = chains.tables(choice, costs, 1e-10)
    exact = np.linalg.solve(dense_system(world, choice), costs[choice])
    assert table == pytest.approx(exact, abs=1e-6)
    single, _ = chains.values(choice, costs[:, 0], np.zeros(50), 1e-8, MOST_EFFORT)
    assert single == pytest.approx(exact[:, 0], abs=1e-4)


@pytest.mark.parametrize("factored", [True, False])
def test_values_reduce_the_residual_as_asked(factored):
    world, _, _ = jm.gallery.grid(25, discount=0.99)
    chains, choice = Chains(world), some_choice(world, 1)
    cost = np.random.default_rng(2).normal(size=world.num_pairs)
    if factored:
        nearby = choice.copy()
        nearby[:5] = world.pairs.offsets[:5]
        list(chains.tables(nearby, cost[:, None], 1e-10))
    system, guess = dense_system(world, choice), np.zeros(world.num_states)
    wanted = 1e-3 * np.ptp(cost[choice])
    values, left = chains.values(choice, cost, guess, wanted, MOST_EFFORT)
    assert np.ptp(cost[choice] - system @ values) <= left + 1e-9
    assert left <= 10 * wanted


@settings(max_examples=60)
@given(worlds(), seeds, st.integers(0, 8))
def test_an_improvement_proves_its_loss(world, seed, steps):
    chains = Chains(world)
    rng = np.random.default_rng(seed)
    cost = rng.normal(size=world.num_pairs)
    start = rng.normal(size=world.num_states) * world.effective_horizon
    found = improve(chains, cost, start, allowed=0.0, most=steps)
    optimal = jm.plan(world, cost).values
    rounding = 1e-8 * world.effective_horizon
    loss = found.loss * world.effective_horizon
    assert (optimal >= found.values - loss - rounding).all()
    greedy = cost + world.discount * (world.transition @ found.values)
    assert greedy[found.choice] == pytest.approx(world.pairs.smallest(greedy))


def test_an_improvement_with_many_steps_is_a_plan():
    world, basis, _ = jm.gallery.grid(12, discount=0.95)
    cost = basis.on(world) @ np.random.default_rng(0).normal(size=basis.num_costs)
    found = improve(Chains(world), cost, np.zeros(world.num_states), allowed=1e-9, most=100)
    assert found.spread <= 1e-9
    proven = found.values - found.loss * world.effective_horizon
    assert proven == pytest.approx(jm.plan(world, cost).values, abs=1e-6)


def test_grids_are_narrow_and_garnets_are_not():
    assert is_narrow(jm.gallery.grid(20)[0])
    assert not is_narrow(jm.gallery.garnet(400)[0])


def test_a_sink_does_not_make_a_world_wide():
    """Every state of a line may end the episode."""
    size = 300
    table = np.zeros((size + 1, size + 1))
    table[np.arange(size), (np.arange(size) + 1) % size] = 0.9
    table[:size, size] = 0.1
    table[size, size] = 1.0
    world = jm.World(table, np.full(size + 1, 1 / (size + 1)), 0.9)
    assert is_narrow(world)
