"""Compiled linear solves on right-hand sides of any size, and where the recurrences break down."""

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.arrays import norms
from journeyman.compiled import kernel, norm, unit_of
from journeyman.policy import steps, system_kernels
from journeyman.policy.policy_evaluation import Chains, compiled_system


@pytest.fixture(scope="module", params=["plain", "compiled"], autouse=True)
def size(request):
    """Worlds count as that small, or not."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "dense":
            patch.setattr(steps, "DENSE_STATES", 0)
        if request.param == "compiled":
            patch.setattr(steps, "PLAIN_STATES", 0)
        yield


SCALES = [1e-290, 1e-200, 1e-100, 1.0, 1e100, 1e200, 1e290]
ACCURACY = 1e-10


def cycle(size, _):
    return np.eye(size)[np.r_[1:size, 0]]


def corridor(size, _):
    """The mass of a start at one end leaves it and never returns."""
    return np.eye(size)[np.minimum(np.arange(size) + 1, size - 1)]


def absorbing(size, _):
    return np.eye(size)


def random_chain(size, rng):
    return rng.dirichlet(np.full(size, 0.1), size=size)


def right_hand_sides(size, rng):
    """A point start, a start in two states, anything, zeros, and entries of sizes far apart."""
    right = np.zeros((size, 5))
    right[0, 0] = 1.0
    right[rng.integers(size, size=2), 1] = 0.5
    right[:, 2] = rng.normal(size=size)
    right[:, 4] = 10.0 ** rng.uniform(-15, 0, size)
    return right


@pytest.mark.parametrize("law", [cycle, corridor, absorbing, random_chain])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_solutions_do_not_depend_on_the_unit(law, transposed, scale):
    rng = np.random.default_rng(5)
    for size in (1, 2, 3, 7, 20):
        chain = law(size, rng)
        matrix = sparse.csr_array(chain.T if transposed else chain)
        system = compiled_system(matrix, 0.9)
        right = right_hand_sides(size, rng) * scale
        exact = np.linalg.solve(np.eye(size) - 0.9 * matrix.toarray(), right / scale)
        goals = ACCURACY * norms(right)
        block, left = np.zeros_like(right), np.empty_like(right)
        system_kernels.bicgstab_block(system, right, block, goals, 1000)
        system_kernels.residual_block(system, right, block, left)
        assert (norms(left) <= 10 * goals).all()
        assert block / scale == pytest.approx(exact, abs=1e-7)
        for k, goal in enumerate(goals):
            x, column = np.zeros(size), np.ascontiguousarray(right[:, k])
            system_kernels.bicgstab(system, column, x, goal, 1000)
            assert system_kernels.residual_norm(system, column, x) <= 10 * goal
            assert x / scale == pytest.approx(exact[:, k], abs=1e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_returned_and_not_raised(bad):
    matrix = sparse.csr_array(cycle(4, None))
    right = np.full((4, 2), bad)
    x = np.zeros((4, 2))
    steps = system_kernels.bicgstab_block(compiled_system(matrix, 0.9), right, x, np.zeros(2), 100)
    assert steps == 0
    first, single = np.ascontiguousarray(right[:, 0]), np.zeros(4)
    assert system_kernels.bicgstab(compiled_system(matrix, 0.9), first, single, 0.0, 100) == 0


@pytest.mark.parametrize("scale", SCALES)
def test_norms_of_any_size(scale):
    vector = np.array([3.0, -4.0, 0.0]) * scale
    assert norm(vector) == pytest.approx(5 * scale, rel=1e-12)
    assert norms(vector) == pytest.approx(5 * scale, rel=1e-12)
    assert 0.5 <= scale / unit_of(scale) <= 2.0


def test_norms_of_nothing():
    assert norm(np.zeros(3)) == norms(np.zeros(3)) == 0.0
    assert norms(np.zeros((0, 2))).tolist() == [0.0, 0.0]
    for odd in (np.inf, np.nan, 5e-324, 0.0):
        assert 0.0 < unit_of(odd) < np.inf
    assert np.isnan(norm(np.array([1.0, np.nan])))


def test_a_division_by_zero_in_a_kernel_raises_nothing():
    @kernel
    def quotient(a, b):
        return a / b

    assert quotient(1.0, 0.0) == np.inf
    assert np.isnan(quotient(0.0, 0.0))


def machine(ages):
    """A machine that ages under load and can be set back: mass moves away from where it starts."""
    load = np.array([[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    wear, states = (0.25, 0.45, 0.65), 3 * ages
    rows = np.zeros((states, 2, ages, 3))
    for age in range(ages):
        for level in range(3):
            here = rows[3 * age + level]
            here[0, min(age + 1, ages - 1)] += load[level] * wear[level]
            here[0, age] += load[level] * (1 - wear[level])
            here[1, max(age - 5, 0)] += load[level]
    initial = np.zeros(states)
    initial[:2] = 0.5
    return jm.World(rows.reshape(2 * states, states), initial, 0.9)


@pytest.mark.parametrize("ages", range(2, 61))
def test_a_start_in_two_states_is_no_breakdown(ages):
    """Scalar products with the start fall below 1e-170 while the residual is still large."""
    world = machine(ages)
    chains = Chains(world)
    chains.direct = False
    starts = np.column_stack([world.initial, np.eye(world.num_states)[:, :2]])
    for action in (0, 1):
        choice = world.pairs.offsets[:-1] + action
        system = np.eye(world.num_states) - 0.9 * world.transition[choice].toarray()
        exact = np.linalg.solve(system.T, starts)
        assert chains.visits(choice, starts, 1e-12) == pytest.approx(exact, abs=1e-8)
        assert chains.visits(choice, world.initial, 1e-12) == pytest.approx(exact[:, 0], abs=1e-8)


@pytest.mark.parametrize("scale", [1e-99, 1e99])
@pytest.mark.parametrize("direct", [True, False])
def test_chains_do_not_depend_on_the_unit_of_costs(scale, direct):
    world = machine(5)
    chains = Chains(world)
    chains.direct = direct
    choice = world.pairs.offsets[:-1]
    costs = np.random.default_rng(0).normal(size=(world.num_pairs, 2))
    system = np.eye(world.num_states) - 0.9 * world.transition[choice].toarray()
    exact = np.linalg.solve(system, costs[choice])
    ((_, table),) = chains.tables(choice, scale * costs, 1e-12)
    assert table / scale == pytest.approx(exact, abs=1e-8)
    start = np.zeros(world.num_states)
    cost = scale * costs[:, 0]
    values, _ = chains.values(choice, cost, start, 1e-9 * scale, steps.MOST_EFFORT)
    assert values / scale == pytest.approx(exact[:, 0], abs=1e-6)


def test_scaled_worlds_beyond_the_direct_limit():
    """`plan` solves by BiCGSTAB there."""
    world, _, _ = jm.gallery.grid(22, discount=0.95)
    cost = np.random.default_rng(1).normal(size=world.num_pairs)
    wanted = jm.plan(world, cost)
    for scale in (1e-200, 1e200):
        found = jm.plan(world, cost * scale)
        assert found.values / scale == pytest.approx(wanted.values, abs=1e-8)
        assert found.error <= 1e-9 * scale * world.effective_horizon
