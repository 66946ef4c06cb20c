"""Smoothing against the linear program, its parts against other means, and its fallback."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import journeyman as jm
from class_examples import NAMES, example
from journeyman.progress import Event
from journeyman.solvers import SmoothedProgram
from journeyman.solvers.exact import smooth_search
from journeyman.solvers.exact.dual_set import DualSet, UnitProgram
from journeyman.solvers.exact.smooth_search import Model, SmoothSearch
from journeyman.solvers.exact.smoothed_program import better
from journeyman.solvers.exact.weight_step import weight_step
from journeyman.solvers.running import Watch


def dense_garnet(cost_class=None, *, num_states=120, num_costs=6, budget=False, seed=0):
    """A random world with dense costs and expectations that no policy has."""
    rng = np.random.default_rng(seed)
    pairs = 3 * num_states
    transition = np.zeros((pairs, num_states))
    for row in transition:
        row[rng.choice(num_states, 4, replace=False)] = rng.dirichlet(np.ones(4))
    world = jm.World(transition, rng.dirichlet(np.ones(num_states)), 0.95)
    basis = jm.CostBasis(rng.uniform(-1, 1, (pairs, num_costs)))
    expert = jm.plan(world, basis.on(world) @ rng.uniform(-1, 1, num_costs)).policy
    seen = jm.occupancy(world, expert).expectations(basis)
    limits = []
    if budget:
        spent = rng.uniform(0, 1, pairs)
        least = jm.expected_cost(world, jm.plan(world, spent).policy, spent)
        limits = [jm.Budget(cost=spent, at_most=1.2 * least, name="spending")]
    expectation = jm.ExpertExpectation(seen * 1.1)
    return jm.Apprenticeship(
        world, basis, expectation, cost_class or jm.InfinityBall(), constraints=limits
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_class_is_solved_without_columns(name):
    problem = dense_garnet(example(name, 6))
    answer = jm.solve(problem, SmoothedProgram())
    reference = jm.solve(problem, jm.LinearProgram())
    assert answer.status is jm.Status.OPTIMAL
    assert "column" not in answer.engine
    assert answer.value - answer.lower_bound <= 1e-6 * problem.gap_scale
    assert answer.lower_bound <= reference.value + 1e-9 * problem.gap_scale
    assert reference.lower_bound <= answer.value + 1e-9 * problem.gap_scale


def test_budgets_are_kept_and_impossible_ones_are_proven():
    problem = dense_garnet(budget=True)
    answer = jm.solve(problem, SmoothedProgram())
    reference = jm.solve(problem, jm.LinearProgram())
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(reference.value, abs=2e-6 * problem.gap_scale)
    assert answer.overspending[0] <= 1e-6 * 2 * problem.world.effective_horizon
    budget = problem.constraints[0]
    tight = jm.Budget(cost=budget.cost, at_most=budget.at_most / 2, name="too little")
    impossible = jm.Apprenticeship(
        problem.world, problem.basis, jm.ExpertExpectation(problem.target), constraints=[tight]
    )
    assert jm.solve(impossible, SmoothedProgram()).status is jm.Status.INFEASIBLE


def test_prices_that_rise_late_need_no_columns():
    """A tight budget: the first prices are too low, which shows when all is cold."""
    problem = dense_garnet(budget=True)
    budget = problem.constraints[0]
    tight = jm.Budget(cost=budget.cost, at_most=1.0001 / 1.2 * budget.at_most)
    expert = jm.ExpertExpectation(problem.target)
    answer = jm.solve(
        jm.Apprenticeship(problem.world, problem.basis, expert, constraints=[tight]),
        SmoothedProgram(),
    )
    assert answer.status is jm.Status.OPTIMAL
    assert "column" not in answer.engine


def test_surplus_is_that_of_the_linear_program():
    problem = dense_garnet(jm.Simplex())
    answer = jm.solve(problem, SmoothedProgram(tolerance=1e-7 * problem.gap_scale))
    reference = jm.solve(problem, jm.LinearProgram())
    one, other = (float(np.sum(problem.target - a.occupancy.expectations(problem.basis)))
                  for a in (answer, reference))  # fmt: skip
    assert answer.status is jm.Status.OPTIMAL
    assert one == pytest.approx(other, abs=1e-4)


def test_bounds_hold_after_every_call():
    problem, events = dense_garnet(), []
    least = jm.solve(problem, jm.LinearProgram())
    for calls in (1, 3, 5):
        answer = jm.solve(problem, SmoothedProgram(max_calls=calls), observer=events.append)
        assert answer.status is jm.Status.STEP_LIMIT
        assert answer.lower_bound <= least.value + 1e-9
        assert least.lower_bound <= answer.value + 1e-9
    lower, upper = answer.bounds_trace.T[1:]
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) <= 0).all()
    assert all(isinstance(event, Event) for event in events)


def test_where_smoothing_stalls_columns_are_generated(monkeypatch):
    monkeypatch.setattr(SmoothSearch, "_next_point", lambda self, point: point)
    answer = jm.solve(dense_garnet(), SmoothedProgram())
    assert answer.status is jm.Status.OPTIMAL
    assert answer.engine.startswith("smoothed program")
    assert "then column generation" in answer.engine


def test_columns_that_do_not_end_leave_the_better_policy_and_the_better_bound():
    problem = dense_garnet()
    far, near = (jm.solve(problem, SmoothedProgram(max_calls=calls)).solution for calls in (1, 6))
    assert near.value < far.value
    kept = better(replace(near, lower_bound=far.lower_bound - 1, witness=far.witness), far)
    assert (kept.policy, kept.value) == (near.policy, near.value)
    assert (kept.witness, kept.lower_bound) == (far.witness, far.lower_bound)
    assert better(near, None) is None


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()])
def test_weight_steps_are_those_of_another_engine(cost_class):
    rng = np.random.default_rng(3)
    duals = DualSet.of(cost_class, 5, 2, 10.0)
    root = rng.normal(size=(4, 7))
    gradient, curvature = rng.normal(size=7), root.T @ root
    start = np.concatenate([duals.chosen.middle(), np.zeros(2)])
    found = duals.weights(weight_step(duals, start, gradient, curvature, 1e-10))
    y = cp.Variable(7)
    sets = {
        "InfinityBall": [cp.abs(y[:5]) <= 1],
        "EuclideanBall": [cp.norm2(y[:5]) <= 1],
        "Simplex": [y[:5] >= 0, cp.sum(y[:5]) == 1],
    }[type(cost_class).__name__]
    step = y - duals.weights(start)
    rise = gradient @ step - cp.sum_squares(root @ step) / 2
    cp.Problem(cp.Maximize(rise), [*sets, y[5:] >= 0, y[5:] <= 10]).solve(solver=cp.CLARABEL)
    moved = found - duals.weights(start)
    value = gradient @ moved - np.sum((root @ moved) ** 2) / 2
    assert value == pytest.approx(float(rise.value), abs=1e-6)


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.Simplex()])
@pytest.mark.parametrize("push", [1e-8, 1.0])
def test_weight_steps_end_where_the_arithmetic_does(cost_class, push):
    """At a corner, asked for more digits than there are: no warning, which would be an error."""
    duals = DualSet.of(cost_class, 2, 1, 10.0)
    start = np.concatenate([duals.chosen.middle(), np.zeros(1)])
    found = weight_step(duals, start, np.array([push, 0.0, 0.0]), np.zeros((3, 3)), 0.0)
    assert duals.weights(found)[:2] == pytest.approx([1.0, 0.0], abs=1e-12)


def test_curvature_is_that_of_the_smoothed_function(monkeypatch):
    """Against differences of the gradient; in chunks as at once."""
    monkeypatch.setattr(smooth_search, "SOFT_ACCURACY", 1e-12)
    monkeypatch.setattr(smooth_search, "SOFT_REDUCTION", 1e-10)
    monkeypatch.setattr(smooth_search, "TABLE_ACCURACY", 1e-12)
    problem = dense_garnet()
    search = SmoothSearch(UnitProgram.of(problem), 1e-9, Watch("test", lambda _: None))
    rng = np.random.default_rng(0)
    weights, heat = rng.uniform(-0.5, 0.5, 6), 0.003
    here = search._at(weights, heat, np.zeros(problem.world.num_states))
    model = search._model(here)
    curvature = model._curvature(here.law[model.pairs], heat)
    columns = []
    for direction in 1e-5 * np.eye(6):
        ends = [search._at(weights + sign * direction, heat, here.values) for sign in (1, -1)]
        columns.append((ends[1].difference - ends[0].difference) / 2e-5)
    assert curvature == pytest.approx(np.array(columns), rel=1e-3, abs=1e-4 * curvature.max())
    monkeypatch.setattr(smooth_search, "CHUNK_BYTES", 1000)
    pieces = Model(search, here, search._table)._curvature(here.law[model.pairs], heat)
    assert pieces == pytest.approx(curvature, rel=1e-5)  # in single precision


@pytest.mark.parametrize("kept", [0, 2**29], ids=["computed-again", "kept"])
def test_what_is_large_is_handled_in_pieces_and_in_single_precision(kept, monkeypatch):
    problem = dense_garnet(num_costs=8, seed=3)
    whole = jm.solve(problem, SmoothedProgram())
    monkeypatch.setattr(smooth_search, "CHUNK_BYTES", 4096)
    monkeypatch.setattr(smooth_search, "KEPT_BYTES", kept)
    pieces = jm.solve(problem, SmoothedProgram())
    assert pieces.status is jm.Status.OPTIMAL
    assert "column" not in pieces.engine
    assert pieces.value == pytest.approx(whole.value, abs=2e-6 * problem.gap_scale)


def test_curvature_is_that_of_undecided_states(monkeypatch):
    search = SmoothSearch(UnitProgram.of(dense_garnet()), 1e-9, Watch("test", print))
    search.call()
    model = search._model(search.point)
    law, temperature = model.law.copy(), search.point.temperature
    few = model.group < 20
    law[few] = np.isin(np.flatnonzero(few), model.first)
    whole = curvature_of(model, law, temperature)
    assert model._curvature(law, temperature) == pytest.approx(whole, rel=1e-9, abs=1e-12)
    monkeypatch.setattr(smooth_search, "CHUNK_BYTES", 300)
    assert model._curvature(law, temperature) == pytest.approx(whole, rel=1e-9, abs=1e-12)


def curvature_of(model, law, temperature):
    """sum_x d(x) Cov(Q(x, .))/t, state by state."""
    Q = model._computed(np.arange(law.size))
    total = np.zeros((Q.shape[1], Q.shape[1]))
    for group in range(model.first.size):
        own = model.group == group
        centred = Q[own] - law[own] @ Q[own]
        weights = model.mass[own] * law[own] / temperature
        total += centred.T @ (centred * weights[:, np.newaxis])
    return total
