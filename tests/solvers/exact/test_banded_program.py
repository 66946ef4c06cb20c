"""The banded interior point against the linear program, and its parts against dense algebra."""

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from class_examples import NAMES, example
from journeyman.solvers import BandedProgram
from journeyman.solvers.exact import band, banded_search
from journeyman.solvers.exact.band import BandEquations, band_order
from journeyman.solvers.exact.banded_search import BandedSearch
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.running import Watch


def ring(num_states=90, *, jump=2, sink=False, seed=0):
    """A walk around a ring in scattered numbers; with a sink that every state falls into."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(num_states)
    count = num_states + sink
    transition = np.zeros((3 * count, count))
    for state in range(num_states):
        for action in range(3):
            row = transition[3 * label[state] + action]
            ways = (state + rng.integers(-jump, jump + 1, size=3)) % num_states
            np.add.at(row, label[ways], rng.dirichlet(np.ones(3)) * (0.95 if sink else 1.0))
            if sink:
                row[-1] += 0.05
    if sink:
        transition[-3:, -1] = 1.0
    return transition


def narrow_problem(cost_class=None, *, num_costs=5, seed=0, budget=None, start=None, **shape):
    """A ring with dense costs, and expectations that no policy has."""
    rng = np.random.default_rng(seed)
    transition = ring(seed=seed, **shape)
    pairs, states = transition.shape
    initial = np.full(states, 1 / states) if start is None else np.eye(states)[start]
    world = jm.World(transition, initial, 0.95)
    basis = jm.CostBasis(rng.uniform(-1, 1, (pairs, num_costs)))
    expert = jm.plan(world, basis.on(world) @ rng.uniform(-1, 1, num_costs)).policy
    seen = jm.occupancy(world, expert).expectations(basis)
    limits = []
    if budget is not None:
        spent = rng.uniform(0, 1, pairs)
        least = jm.expected_cost(world, jm.plan(world, spent).policy, spent)
        limits = [jm.Budget(cost=spent, at_most=budget * least, name="spending")]
    return jm.Apprenticeship(
        world, basis, jm.ExpertExpectation(1.1 * seen), cost_class or jm.InfinityBall(),
        constraints=limits,
    )  # fmt: skip


CLASSES = [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex(), *(example(n, 5) for n in NAMES)]


@pytest.mark.parametrize("cost_class", CLASSES, ids=lambda c: c.name)
def test_every_class_is_solved_as_exactly_as_a_linear_program(cost_class):
    problem = narrow_problem(cost_class)
    answer = jm.solve(problem, BandedProgram())
    reference = jm.solve(problem, jm.LinearProgram())
    assert answer.status is jm.Status.OPTIMAL
    assert "column" not in answer.engine
    assert answer.value - answer.lower_bound <= 1e-6 * problem.gap_scale
    assert answer.lower_bound <= reference.value + 1e-9 * problem.gap_scale
    assert reference.lower_bound <= answer.value + 1e-9 * problem.gap_scale


@pytest.mark.parametrize("costs", ["dense", "sparse"])
@pytest.mark.parametrize("shape", [{}, {"sink": True}, {"start": 3}, {"num_states": 5}])
def test_worlds_of_several_shapes(shape, costs):
    problem = narrow_problem(**shape)
    if costs == "sparse":
        pairs = problem.world.num_pairs
        cells = sparse.csr_array(
            (np.ones(pairs), (np.arange(pairs), np.arange(pairs) * 4 // pairs))
        )
        basis = jm.CostBasis(cells)
        target = np.random.default_rng(0).uniform(0, 10, 4)
        problem = jm.Apprenticeship(problem.world, basis, jm.ExpertExpectation(target))
    answer = jm.solve(problem, BandedProgram(tolerance=1e-7 * problem.gap_scale))
    reference = jm.solve(problem, jm.LinearProgram())
    assert answer.status is jm.Status.OPTIMAL
    assert "column" not in answer.engine
    assert answer.value == pytest.approx(reference.value, abs=3e-7 * problem.gap_scale)


def test_states_that_no_policy_gets_to_are_left_out_and_bounded():
    """Two worlds side by side, of which one is never started in, and a state with one action."""
    inner, outer = ring(20), ring(12, seed=1)
    transition = sparse.block_array([[inner, None], [None, outer]]).tolil()
    transition[transition.shape[0] - 1, 0] = transition[transition.shape[0] - 1].sum()
    transition = sparse.csr_array(transition.tocsr())
    transition = sparse.diags_array(1 / np.asarray(transition.sum(axis=1)).ravel()) @ transition
    initial = np.zeros(32)
    initial[:20] = 1 / 20
    rng = np.random.default_rng(2)
    costs = jm.CostBasis(rng.uniform(-3, 3, (96, 3)))
    problem = jm.Apprenticeship(
        jm.World(transition, initial, 0.99), costs, jm.ExpertExpectation(rng.uniform(-50, 50, 3))
    )
    answer = jm.solve(problem, BandedProgram())
    reference = jm.solve(problem, jm.LinearProgram())
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(reference.value, abs=2e-6 * problem.gap_scale)


@pytest.mark.parametrize("factor", [1.0001, 1.5])
def test_budgets_are_kept(factor):
    problem = narrow_problem(budget=factor)
    answer = jm.solve(problem, BandedProgram())
    reference = jm.solve(problem, jm.LinearProgram())
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(reference.value, abs=3e-6 * problem.gap_scale)
    assert answer.overspending[0] <= 1e-6 * 2 * problem.world.effective_horizon


def test_impossible_budgets_are_proven():
    answer = jm.solve(narrow_problem(budget=0.9), BandedProgram())
    assert answer.status is jm.Status.INFEASIBLE
    assert answer.relaxation.increase[0] > 0


def test_surplus_is_that_of_the_linear_program():
    problem = narrow_problem(jm.Simplex())
    answer = jm.solve(problem, BandedProgram())
    reference = jm.solve(problem, jm.LinearProgram())
    one, other = (float(np.sum(problem.target - a.occupancy.expectations(problem.basis)))
                  for a in (answer, reference))  # fmt: skip
    assert answer.status is jm.Status.OPTIMAL
    assert "surplus" in answer.engine
    assert one == pytest.approx(other, abs=1e-3)


def test_bounds_hold_after_every_step():
    problem, events = narrow_problem(), []
    least = jm.solve(problem, jm.LinearProgram())
    for steps in (1, 2, 4, 7):
        solver = BandedProgram(max_calls=steps)
        answer = jm.solve(problem, solver, observer=events.append)
        assert answer.status is jm.Status.STEP_LIMIT
        assert answer.lower_bound <= least.value + 1e-9
        assert least.lower_bound <= answer.value + 1e-9
    lower, upper = answer.bounds_trace.T[1:]
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) <= 0).all()
    assert (lower <= least.value + 1e-9).all()
    assert (upper >= least.lower_bound - 1e-9).all()
    assert len(events) >= 14


def test_a_memory_limit_ends_with_bounds():
    answer = jm.solve(narrow_problem(), BandedProgram(memory_limit=1e3))
    assert answer.status is jm.Status.MEMORY_LIMIT
    assert answer.lower_bound <= answer.value


def test_columns_take_over_where_the_factor_fails(monkeypatch):
    def fail(*_):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(banded_search._Newton, "advanced", fail)
    answer = jm.solve(narrow_problem(), BandedProgram())
    assert answer.status is jm.Status.OPTIMAL
    assert answer.engine.startswith("interior point")
    assert "then column generation" in answer.engine


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_equations_are_those_of_dense_algebra(seed, kind, monkeypatch):
    """With a hub, in several pieces: factor, border, both forms of the curvature."""
    monkeypatch.setattr(band, "PIECE", 7)
    monkeypatch.setattr(band, "ROWS", 10)
    monkeypatch.setattr(band, "CHUNK_BYTES", 500)
    problem = narrow_problem(num_states=60, sink=True, seed=seed)
    world, rng = problem.world, np.random.default_rng(seed)
    costs = rng.normal(size=(world.num_pairs, 4))
    if kind == "sparse":
        costs = sparse.csr_array(costs * (rng.uniform(size=costs.shape) < 0.05))
    order = band_order(world)
    assert order.num_hubs == 1
    assert order.width < 30
    equations = BandEquations(world, costs, order)
    weights = rng.uniform(0.1, 10, world.num_pairs)
    E = world.flow.matrix().toarray()[:, equations.states]
    C = costs.toarray() if kind == "sparse" else costs
    K, M = E.T @ (weights[:, None] * E), E.T @ (weights[:, None] * C)
    factor, right = equations.factor(weights), rng.normal(size=61)
    assert factor.solve(right) == pytest.approx(np.linalg.solve(K, right), rel=1e-8)
    assert equations.border(weights) == pytest.approx(M)
    columns = factor.forward(equations.border(weights), equations.reached)
    S = C.T @ (weights[:, None] * C) - M.T @ np.linalg.solve(K, M)
    assert equations.remainder(weights, columns) == pytest.approx(S, rel=1e-8, abs=1e-8)
    assert factor.forward_vector(right) @ factor.forward_vector(right) == pytest.approx(
        right @ np.linalg.solve(K, right)
    )
    table = factor.backward(columns)
    assert table == pytest.approx(np.linalg.solve(K, M), rel=1e-7, abs=1e-10)
    assert equations.curvature(weights, table) == pytest.approx(S, rel=1e-8, abs=1e-8)


def test_the_order_is_that_of_the_ring():
    """Neighbours within two places on either side of a cut, and two rows of them in a pair."""
    world = jm.World(ring(300, jump=2), np.full(300, 1 / 300), 0.9)
    assert band_order(world).width <= 24
    plain = jm.gallery.grid(16).world
    assert band_order(plain).width == 32


def test_a_step_solves_newtons_equations():
    problem = narrow_problem()
    search = BandedSearch(UnitProgram.of(problem), 1e-9, Watch("test", lambda _: None))
    for _ in range(4):
        search.call()
    at, equations = search.point, search.equations
    newton = banded_search._Newton(search, equations, at)
    step = newton._step(-at.measure * at.slack, at.weights.emptied(), repair=True)
    turned = newton._turned(step.weights.v)
    assert step.slack == pytest.approx(equations.costs @ turned - equations.E @ step.values)
    both = at.measure * step.slack + at.slack * step.measure
    assert both == pytest.approx(-at.measure * at.slack, abs=1e-12)
    assert equations.E_transposed @ step.measure == pytest.approx(newton.lost, abs=1e-10)
    slope = search._missed(equations, at.measure + step.measure)
    weights, change = at.weights, step.weights
    answered = weights.high + change.high - weights.low - change.low
    assert answered == pytest.approx(slope, abs=1e-8)
