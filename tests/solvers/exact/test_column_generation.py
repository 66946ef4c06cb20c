"""Column generation against the linear program, and its bounds at every moment."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.policy import policy_evaluation as chains
from journeyman.solvers.exact import column_search
from journeyman.solvers.exact.dual_set import KnownWeights, UnitProgram
from journeyman.solvers.solve import default_solver
from journeyman.testing.random_worlds import Shape, random_problem, random_world
from journeyman.testing.strategies import problems, seeds

choice_of_engine = import_module("journeyman.solvers.solve")  # the package shows the function

CLASSES = (jm.InfinityBall, jm.EuclideanBall, jm.Simplex)


def agree(problem, answer, reference):
    """Value and bounds fit those of the linear program to the certified gap."""
    unit = problem.gap_scale or 1.0
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value - answer.lower_bound <= 1e-6 * unit
    assert answer.value >= reference.lower_bound - 1e-6 * unit
    assert answer.lower_bound <= reference.value + 1e-9 * unit
    allowed = 1e-6 * 2 * problem.budget_units * problem.world.effective_horizon
    assert (answer.overspending <= allowed).all()


@settings(max_examples=100)
@given(problems())
def test_it_agrees_with_the_linear_program(problem):
    agree(problem, jm.solve(problem, jm.ColumnGeneration()), jm.solve(problem, jm.LinearProgram()))


@pytest.fixture
def long_solves():
    """Every world is one of many states, in which solves take long: the whole start is one row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_search, "LONG", 0)
        patch.setattr(chains, "DIRECT_LIMIT", 0)
        patch.setattr(chains, "FACTOR_LIMIT", 0)
        yield


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems())
def test_it_agrees_by_whole_starts(long_solves, problem):
    answer = jm.solve(problem, jm.ColumnGeneration())
    agree(problem, answer, jm.solve(problem, jm.LinearProgram()))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems(), st.integers(1, 6))
def test_whole_starts_that_end_early(long_solves, problem, calls):
    """Kept visits make the policy whose value the search has promised."""
    answer = jm.solve(problem, jm.ColumnGeneration(max_calls=calls))
    unit = problem.gap_scale or 1.0
    assert answer.value >= answer.lower_bound - 1e-12 * unit
    lower, upper = answer.bounds_trace[-1, 1:]
    assert answer.lower_bound >= lower - 1e-9 * unit
    if not problem.constraints:
        assert answer.value <= upper + 1e-5 * unit


@settings(max_examples=60)
@given(
    seeds, st.sampled_from(CLASSES), st.sampled_from(Shape), st.integers(0, 2), st.integers(1, 3),
    st.sampled_from([4, 12]),
)  # fmt: skip
def test_it_agrees_when_few_states_are_starts(seed, cost_class, shape, num_budgets, starts, core):
    """The core-and-exit form: a core that is smaller than the world, or all of it."""
    problem = random_problem(
        seed, cost_class(), shape=shape, num_states=12, num_budgets=num_budgets
    )
    initial = np.zeros(12)
    initial[:starts] = 1 / starts
    world = jm.World(
        problem.world.transition, initial, problem.world.discount,
        choice_offsets=problem.world.pairs.offsets,
    )  # fmt: skip
    spending = jm.occupancy(world, jm.Policy.uniform(world)).measure
    budgets = [
        jm.Budget(b.cost, float(spending @ b.on(world)), b.name) for b in problem.constraints
    ]
    moved = jm.Apprenticeship(
        world, problem.basis, jm.ExpertExpectation(problem.target), cost_class(), budgets
    )
    reference = jm.solve(moved, jm.LinearProgram())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_search, "CORE", core)
        answer = jm.solve(moved, jm.ColumnGeneration(), time_limit=600)
    assert "core and exits" in answer.engine
    agree(moved, answer, reference)


@settings(max_examples=40)
@given(seeds, st.sampled_from(Shape), st.integers(0, 3))
def test_it_agrees_when_blocks_join_many_states(seed, shape, num_budgets):
    problem = random_problem(seed, shape=shape, num_states=30, num_budgets=num_budgets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_search, "BLOCKS", 3)
        patch.setattr(column_search, "FEW_STARTS", 0)
        answer = jm.solve(problem, jm.ColumnGeneration())
    assert "start blocks" in answer.engine
    agree(problem, answer, jm.solve(problem, jm.LinearProgram()))


@settings(max_examples=30)
@given(seeds, st.sampled_from(CLASSES), st.sampled_from(Shape))
def test_it_agrees_when_columns_come_from_visits(seed, cost_class, shape):
    """Worlds too large for factors: few blocks, and iterative solves for each."""
    problem = random_problem(seed, cost_class(), shape=shape, num_states=30, num_costs=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_search, "FEWER_BLOCKS", 3)
        patch.setattr(column_search, "FEW_STARTS", 0)
        patch.setattr(chains.Chains, "direct", False)
        answer = jm.solve(problem, jm.ColumnGeneration())
    assert "start blocks, BiCGSTAB" in answer.engine
    agree(problem, answer, jm.solve(problem, jm.LinearProgram()))


@settings(max_examples=40)
@given(seeds, st.sampled_from(Shape), st.integers(0, 2))
def test_it_solves_forward_problems(seed, shape, num_budgets):
    rng = np.random.default_rng(seed)
    world = random_world(rng, shape, num_states=9)
    keeper = jm.occupancy(world, jm.Policy.uniform(world)).measure
    costs = rng.uniform(-1, 1, (num_budgets + 1, world.num_pairs))
    budgets = [jm.Budget(cost, float(keeper @ cost)) for cost in costs[1:]]
    problem = jm.Forward(world, costs[0], budgets)
    answer = jm.solve(problem, jm.ColumnGeneration())
    agree(problem, answer, jm.solve(problem, jm.LinearProgram()))
    if not budgets:
        planned = jm.plan(world, costs[0])
        assert answer.value == pytest.approx(world.initial @ planned.values, abs=1e-4)


@pytest.mark.parametrize("cost_class", CLASSES)
def test_bounds_never_cross_and_only_improve(cost_class):
    problem = grid_problem(cost_class())
    exact = jm.solve(problem, jm.LinearProgram())
    trace = jm.solve(problem, jm.ColumnGeneration()).bounds_trace
    rounding = 1e-9 * problem.gap_scale
    assert len(trace) > 3
    assert (np.diff(trace[:, 0]) >= 0).all()
    assert (np.diff(trace[:, 1]) >= 0).all()
    assert (np.diff(trace[:, 2]) <= 0).all()
    assert (trace[:, 1] <= exact.value + rounding).all()
    assert (trace[:, 2] >= exact.lower_bound - rounding).all()


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
def test_every_call_leaves_a_policy_and_valid_bounds(calls):
    problem = grid_problem(jm.InfinityBall())
    exact = jm.solve(problem, jm.LinearProgram())
    answer = jm.solve(problem, jm.ColumnGeneration(max_calls=calls, tolerance=1e-6))
    assert answer.status is jm.Status.STEP_LIMIT
    assert len(answer.bounds_trace) == calls
    assert answer.lower_bound <= exact.value + 1e-9 * problem.gap_scale
    assert answer.value >= exact.lower_bound - 1e-9 * problem.gap_scale
    assert answer.value == pytest.approx(answer.bounds_trace[-1, 2], rel=1e-4)


def test_a_time_limit_leaves_a_policy():
    problem = grid_problem(jm.InfinityBall())
    answer = jm.solve(problem, jm.ColumnGeneration(time_limit=1e-9))
    assert answer.status is jm.Status.TIME_LIMIT
    assert answer.value == pytest.approx(problem.gap(answer.policy))
    assert answer.lower_bound <= answer.value


def test_it_reports_its_upper_bound_and_can_be_stopped_from_outside():
    problem, seen = grid_problem(jm.InfinityBall()), []

    def observer(event):
        seen.append(event)
        if len(seen) == 3:
            import signal

            signal.raise_signal(signal.SIGINT)

    answer = jm.solve(problem, jm.ColumnGeneration(), observer=observer)
    assert answer.status is jm.Status.INTERRUPTED
    assert [event.iteration for event in seen] == [1, 2, 3]
    assert seen[-1].objective == pytest.approx(answer.bounds_trace[-1, 2])


def test_the_tolerance_is_in_units_of_the_gap():
    problem = grid_problem(jm.InfinityBall())
    rough = jm.solve(problem, jm.ColumnGeneration(tolerance=2.0))
    fine = jm.solve(problem, jm.ColumnGeneration(tolerance=0.005))
    assert rough.status is fine.status is jm.Status.OPTIMAL
    assert fine.value - fine.lower_bound <= 0.005
    assert rough.value - rough.lower_bound <= 2.0
    assert len(rough.bounds_trace) < len(fine.bounds_trace)


@pytest.mark.parametrize("num_states", [5, 40])
def test_impossible_budgets_are_proven_impossible(num_states):
    world = random_world(3, Shape.DENSE, num_states=num_states)
    rng = np.random.default_rng(0)
    cost = rng.uniform(0, 1, world.num_pairs)
    least = float(world.initial @ jm.plan(world, cost).values)
    basis = jm.CostBasis(rng.uniform(-1, 1, (world.num_pairs, 2)))
    budgets = [jm.Budget(cost, least - 0.01, "tight"), jm.Budget(-cost, 0.0, "loose")]
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0, 0.0]), constraints=budgets)
    answer = jm.solve(problem, jm.ColumnGeneration())
    reference = jm.solve(problem, jm.LinearProgram()).relaxation
    assert answer.status is jm.Status.INFEASIBLE
    assert answer.solution is None
    assert jm.problem.infeasibility_margin(problem, answer.relaxation.prices) > 0
    assert answer.relaxation.names == ("tight", "loose")
    assert answer.relaxation.increase == pytest.approx(reference.increase, abs=1e-4)
    assert answer.relaxation.least == pytest.approx(reference.least, abs=1e-4)


def test_budgets_that_bind_hard_are_kept():
    """The price of the budget exceeds its first limit, which has to be raised."""
    world = jm.World(
        [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 0.0], 0.5, choice_offsets=[0, 2, 3]
    )
    basis = jm.CostBasis([[0.0], [1.0], [1.0]])
    budget = jm.Budget([1.0, 0.999, 0.999], at_most=1.9985)
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0]), constraints=budget)
    answer = jm.solve(problem, jm.ColumnGeneration())
    reference = jm.solve(problem, jm.LinearProgram())
    agree(problem, answer, reference)
    assert answer.witness.budget_prices[0] > column_search_price_limit()


def column_search_price_limit():
    from journeyman.solvers.exact.dual_set import PRICE_LIMIT

    return PRICE_LIMIT


@pytest.mark.parametrize(
    "hyperparameters",
    [
        {"tolerance": 0.0}, {"tolerance": -1.0}, {"tolerance": "small"}, {"time_limit": 0.0},
        {"time_limit": -1.0}, {"max_calls": 0}, {"max_calls": 2.5},
    ],
    ids=str,
)  # fmt: skip
def test_bad_hyperparameters_are_refused(hyperparameters):
    with pytest.raises(jm.errors.InvalidSolver):
        jm.ColumnGeneration(**hyperparameters)


def test_the_default_solver_depends_on_size_and_structure(monkeypatch):
    problem = grid_problem(jm.InfinityBall())
    assert isinstance(default_solver(problem)[0], jm.LinearProgram)
    monkeypatch.setattr(choice_of_engine, "SMALL", 10)
    assert isinstance(default_solver(problem)[0], jm.solvers.BandedProgram)
    monkeypatch.setattr(choice_of_engine, "BANDED", 10.0)
    assert isinstance(default_solver(problem)[0], jm.ColumnGeneration)
    answer = jm.solve(problem)
    assert answer.engine.startswith("column generation")
    assert answer.reason == "a large world, 576 pairs"


def test_worlds_with_entangled_states_are_not_narrow(monkeypatch):
    world, basis, _ = jm.gallery.garnet(200)
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(np.zeros(8)))
    monkeypatch.setattr(choice_of_engine, "SMALL", 10)
    assert isinstance(default_solver(problem)[0], jm.solvers.SmoothedProgram)


def grid_problem(cost_class):
    world, basis, expert = jm.gallery.grid(12, macro_cells=3)
    target = jm.occupancy(world, expert).expectations(basis)
    noise = np.random.default_rng(1).normal(size=target.size) * 0.3
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(target + noise), cost_class)


def test_a_memory_limit_ends_with_valid_bounds():
    world, basis, expert = jm.gallery.grid(24, macro_cells=4, discount=0.97, seed=0)
    demos = jm.record(world, expert, trajectories=50, horizon=100, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    stopped = jm.solve(problem, jm.ColumnGeneration(memory_limit=1e5))
    exact = jm.solve(problem, jm.ColumnGeneration(memory_limit=1e9))
    assert stopped.status is jm.Status.MEMORY_LIMIT
    assert exact.status is jm.Status.OPTIMAL
    assert stopped.lower_bound <= exact.value <= stopped.value
    with pytest.raises(jm.errors.InvalidSolver, match="memory_limit"):
        jm.ColumnGeneration(memory_limit=0)


def test_settled_weights_change_nothing_but_the_way():
    """A cost the expert never incurs has weight one; the optimum is that of the linear program."""
    world, basis, expert = jm.gallery.grid(12, macro_cells=4, discount=0.95, initial=[0, 0])
    demos = jm.record(world, expert, trajectories=5, horizon=20, seed=0)
    target = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    problem = jm.Apprenticeship(world, basis, target)
    task = UnitProgram.of(problem)
    settled = KnownWeights.of(task, 1e-6)
    assert settled.high.sum() == (target.values == 0).sum() > 0
    columns = jm.solve(problem, jm.ColumnGeneration())
    assert columns.status is jm.Status.OPTIMAL
    assert columns.value == pytest.approx(jm.solve(problem, jm.LinearProgram()).value, abs=1e-4)


def test_a_far_sighted_grid_takes_few_calls():
    world, basis, expert = jm.gallery.grid(32, macro_cells=3, discount=0.9997)
    seen = jm.occupancy(world, expert).expectations(basis)
    noise = 1 + 0.05 * np.random.default_rng(0).standard_normal(seen.size)
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(seen * noise))
    answer = jm.solve(problem, jm.ColumnGeneration(max_calls=20))
    assert answer.status is jm.Status.OPTIMAL
