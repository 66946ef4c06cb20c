"""The second stage of `Simplex` by column generation, beside the linear program's."""

import signal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.solvers.answer import Solution, total_surplus
from journeyman.solvers.exact import column_search, dual_set
from journeyman.solvers.exact.column_search import DualPoint
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.exact.second_stage import surplus_bound
from journeyman.testing.random_worlds import Shape, random_policy, random_problem
from journeyman.testing.strategies import discounts, seeds

BAD_EXPERT = (5.25, 4.15, 5.0)


def tolerance_of(problem):
    return 1e-6 * problem.gap_scale


def agree(answer, reference):
    """Gap and surplus are at least as good as those of the linear program, and proven."""
    problem = answer.problem
    allowed, count = tolerance_of(problem), problem.basis.num_costs
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value - answer.lower_bound <= allowed
    assert abs(answer.value - reference.value) <= 1.1 * allowed
    assert answer.total_surplus >= reference.total_surplus - 1.1 * count * allowed
    limits = allowed / problem.cost_unit * problem.budget_units
    assert (answer.overspending <= limits).all()


@st.composite
def one_sided_problems(draw, min_costs=1):
    num_costs = draw(st.integers(min_costs, 4))
    rng = np.random.default_rng(draw(seeds))
    scale = rng.uniform(0.1, 3.0, num_costs) if draw(st.booleans()) else None
    return random_problem(
        draw(seeds),
        jm.Simplex(scale),
        shape=draw(st.sampled_from(Shape)),
        num_states=draw(st.integers(1, 8)),
        num_costs=num_costs,
        num_budgets=draw(st.integers(0, 2)),
        discount=draw(discounts),
    )


@settings(max_examples=30)
@given(one_sided_problems())
def test_gap_and_surplus_agree_with_the_linear_program(problem):
    agree(jm.solve(problem, jm.ColumnGeneration()), jm.solve(problem, jm.LinearProgram()))


@settings(max_examples=10)
@given(seeds, st.integers(0, 1))
def test_they_agree_when_policies_take_over_at_the_exits_of_a_core(seed, num_budgets):
    drawn = random_problem(seed, num_states=12, num_budgets=num_budgets)
    world = jm.World(
        drawn.world.transition, np.eye(12)[0], 0.9, choice_offsets=drawn.world.pairs.offsets
    )
    spending = jm.occupancy(world, jm.Policy.uniform(world)).measure
    budgets = [jm.Budget(b.cost, float(spending @ b.on(world))) for b in drawn.constraints]
    expert = jm.ExpertExpectation(drawn.target)
    problem = jm.Apprenticeship(world, drawn.basis, expert, jm.Simplex(), budgets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_search, "CORE", 4)
        answer = jm.solve(problem, jm.ColumnGeneration())
    assert "core and exits" in answer.engine
    agree(answer, jm.solve(problem, jm.LinearProgram()))


@settings(max_examples=100)
@given(one_sided_problems(), seeds, st.sampled_from([0.0, 1.0, 100.0]), st.booleans())
def test_no_policy_surpasses_the_bound_whatever_the_dual_point(problem, seed, size, sharp):
    """Prices and values need not be optimal, nor even sensible."""
    rng = np.random.default_rng(seed)
    count, world, task = problem.basis.num_costs, problem.world, UnitProgram.of(problem)
    dual = rng.exponential(size=count + len(problem.constraints)) * size
    dual[:count] += rng.choice([0.0, 1 / count])
    values, policy = rng.normal(size=world.num_states), random_policy(world, rng)
    if sharp:
        eta = np.maximum(dual, np.append(np.full(count, 1 / count), dual[count:]))
        values = jm.plan(world, task.costs @ eta).values
        policy = jm.plan(world, problem.cost_of(problem.cost_class.scaling(count))).policy
    witness = jm.problem.Witness(np.ones(count), np.zeros(world.num_states))
    solution = Solution.of(problem, policy, witness)
    assume((solution.overspending <= 0).all())
    bound = surplus_bound(problem, task, solution.value, DualPoint(-np.inf, dual, values))
    assert total_surplus(problem, solution.occupancy.measure) <= bound + 1e-9 * problem.gap_scale


@pytest.mark.parametrize("price", [0.0, 0.3, 20.0])
def test_the_bound_is_attained_where_the_priced_cost_is_the_worst(price):
    """A policy that is best for the priced costs has the largest surplus at its own gap."""
    drawn = random_problem(3, num_states=8)
    target = drawn.target - np.array([drawn.gap_scale, 0.0, 0.0])
    problem = jm.Apprenticeship(
        drawn.world, drawn.basis, jm.ExpertExpectation(target), jm.Simplex((1.0, 0.5, 2.0))
    )
    task, dual = UnitProgram.of(problem), np.full(3, 1 / 3) + price * np.eye(3)[0]
    best = jm.plan(problem.world, task.costs @ dual)
    solution = Solution.of(problem, best.policy, task.witness(dual, best.values))
    bound = surplus_bound(problem, task, solution.value, DualPoint(0.0, dual, best.values))
    surplus = total_surplus(problem, solution.occupancy.measure)
    assert bound == pytest.approx(surplus, abs=1e-8 * problem.gap_scale, rel=0)


def test_the_bad_driver_is_surpassed_as_far_as_by_the_linear_program():
    world, basis, _ = jm.gallery.driving()
    expert = jm.ExpertExpectation.from_rewards(BAD_EXPERT)
    problem = jm.Apprenticeship(world, basis, expert, jm.Simplex())
    answer = jm.solve(problem, jm.ColumnGeneration())
    agree(answer, jm.solve(problem, jm.LinearProgram()))
    rewards = basis.as_given(answer.occupancy.expectations(basis))
    assert rewards == pytest.approx([9.75, 4.76, 5.0], abs=0.01)


def test_cheaper_action_is_taken_where_the_gap_does_not_see_it():
    """Actions 0 and 1 share the least gap; action 2 would be cheapest, at a larger gap."""
    answer = jm.solve(three_actions(), jm.ColumnGeneration())
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(-0.5, abs=1e-5)
    assert answer.total_surplus == pytest.approx(3.0, abs=1e-4)
    assert answer.policy.probabilities([0])[0] == pytest.approx([0.0, 1.0, 0.0], abs=1e-5)


def test_the_tolerance_bounds_gap_and_surplus_together():
    problem = uneven_grid()
    best = jm.solve(problem, jm.LinearProgram())
    for tolerance in (0.5, 0.01):
        answer = jm.solve(problem, jm.ColumnGeneration(tolerance=tolerance))
        assert answer.status is jm.Status.OPTIMAL
        assert answer.value - answer.lower_bound <= tolerance
        missing = best.total_surplus - answer.total_surplus
        assert missing <= tolerance * problem.basis.num_costs
        assert "no policy has more than" in answer.log


def test_costs_that_add_up_to_a_constant_need_no_second_search():
    world, basis, expert = jm.gallery.grid(12, macro_cells=3)
    target = jm.occupancy(world, expert).expectations(basis)
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(target), jm.Simplex())
    answer = jm.solve(problem, jm.ColumnGeneration())
    assert answer.status is jm.Status.OPTIMAL
    assert "then 0 calls for the surplus" in answer.engine


def test_prices_of_the_level_are_raised_when_it_stays_broken(monkeypatch):
    monkeypatch.setattr(dual_set, "LEVEL_PRICE_LIMIT", 0.6)
    problem = three_actions()
    agree(jm.solve(problem, jm.ColumnGeneration()), jm.solve(problem, jm.LinearProgram()))


def test_a_broken_level_costs_surplus_and_not_the_gap(monkeypatch):
    """Too low a price ends far above the level, with action 2: only a little of it is taken."""
    monkeypatch.setattr(dual_set, "LEVEL_PRICE_LIMIT", 0.6)
    monkeypatch.setattr(column_search, "RAISES", 0)
    answer = jm.solve(three_actions(), jm.ColumnGeneration(tolerance=0.01))
    assert answer.status is jm.Status.INACCURATE
    assert answer.lower_bound <= -0.5
    assert answer.value == pytest.approx(-0.5 + 0.009, abs=1e-6)
    assert answer.policy.probabilities([0])[0, 2] == pytest.approx(0.009, abs=1e-6)


def test_steps_that_run_out_leave_the_first_stage():
    problem = uneven_grid()
    first = len(jm.solve(problem, jm.ColumnGeneration()).bounds_trace)
    answer = jm.solve(problem, jm.ColumnGeneration(max_calls=first))
    assert answer.status is jm.Status.STEP_LIMIT
    assert "then 0 calls for the surplus" in answer.engine
    assert answer.value - answer.lower_bound <= tolerance_of(problem)
    assert answer.value == pytest.approx(problem.gap(answer.policy))


def test_an_interrupt_in_the_second_stage_leaves_a_policy_of_least_gap():
    problem, second = uneven_grid(), []

    def observer(event):
        if "level" in event.task and not second:
            second.append(event)
            signal.raise_signal(signal.SIGINT)

    full = jm.solve(problem, jm.ColumnGeneration())
    answer = jm.solve(problem, jm.ColumnGeneration(), observer=observer)
    assert len(second) == 1
    assert answer.status is jm.Status.INTERRUPTED
    assert "then 1 calls for the surplus" in answer.engine
    assert answer.value - answer.lower_bound <= tolerance_of(problem)
    assert answer.total_surplus <= full.total_surplus + 16 * tolerance_of(problem)


def test_a_first_stage_out_of_time_has_no_second():
    answer = jm.solve(uneven_grid(), jm.ColumnGeneration(time_limit=1e-9))
    assert answer.status is jm.Status.TIME_LIMIT
    assert "surplus" not in answer.engine


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("num_budgets", [0, 1])
def test_worlds_that_are_all_core_are_solved_close_to_a_discount_of_one(seed, num_budgets):
    """Their masters are ill-conditioned: the flow of the core is nearly singular."""
    problem = random_problem(
        seed,
        jm.Simplex(),
        shape=Shape.UNREACHABLE,
        num_states=8,
        num_costs=4,
        num_budgets=num_budgets,
        discount=0.9999,
    )
    agree(jm.solve(problem, jm.ColumnGeneration()), jm.solve(problem, jm.LinearProgram()))


def three_actions():
    world = jm.World([[1.0], [1.0], [1.0]], [1.0], 0.5)
    basis = jm.CostBasis([[0.5, 1.0], [0.5, 0.0], [1.0, -1.0]])
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation([1.5, 2.5]), jm.Simplex())


def uneven_grid():
    """Costs of unequal scale, so that policies of the same gap differ in their surplus."""
    world, basis, expert = jm.gallery.grid(16, macro_cells=4, discount=0.9)
    rng = np.random.default_rng(1)
    target = jm.occupancy(world, expert).expectations(basis) + rng.normal(size=16) * 0.1
    scale = rng.uniform(0.3, 3.0, 16)
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(target), jm.Simplex(scale))
