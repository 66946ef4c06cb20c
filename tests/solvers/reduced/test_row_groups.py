"""Rows in groups: sums of rows bound the loss from below, and rounds end at the least loss."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.problem import Reduced
from journeyman.problem.surrogate import Surrogate, reduced_lower_bound
from journeyman.solvers.reduced import row_groups
from journeyman.solvers.reduced.row_groups import RowGroups, groups_that_pay


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are taken in worlds of any size."""
    monkeypatch.setattr(row_groups, "ROUNDS", 0)


def grid_problem(
    size: int = 20,
    cost_class: jm.costs.CostClass | None = None,
    at_most: float | None = None,
    seed: int = 0,
) -> tuple[jm.Apprenticeship, jm.features.Features]:
    world, basis, expert = jm.gallery.grid(size, macro_cells=2, seed=seed)
    demos = jm.record(world, expert, trajectories=50, horizon=80, seed=seed)
    budgets = []
    if at_most is not None:
        budgets = [jm.Budget(cost=np.arange(world.num_pairs) % 4 == 0, at_most=at_most, name="up")]
    problem = jm.Apprenticeship(world, basis, demos, cost_class, constraints=budgets)
    return problem, jm.features.partition(world, demos, num_cells=9)


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_rows_bound_the_loss_from_below(seed: int) -> None:
    problem, features = grid_problem(12, seed=seed)
    surrogate, rng = Surrogate(Reduced(problem, features)), np.random.default_rng(seed)
    reduced = surrogate.reduced
    groups = RowGroups.of(reduced)
    box = groups.box(reduced, surrogate.penalties)
    assert box.num_rows < reduced.floor.size + reduced.flow_target.size
    for _ in range(10):
        theta = rng.normal(size=features.num_features)
        assert box.loss(theta) <= surrogate.value(theta) * (1 + 1e-12)


def test_groups_of_one_sign_have_the_loss_of_all_rows() -> None:
    problem, features = grid_problem(12)
    surrogate = Surrogate(Reduced(problem, features))
    theta = np.random.default_rng(1).normal(size=features.num_features)
    groups = RowGroups.of(surrogate.reduced)
    box = groups.box(surrogate.reduced, surrogate.penalties)
    hidden = surrogate.value(theta) - box.loss(theta)
    assert hidden > 0.001 * surrogate.value(theta)
    split = groups.split(surrogate, theta, 0.0)
    box = split.box(surrogate.reduced, surrogate.penalties)
    assert box.loss(theta) == pytest.approx(surrogate.value(theta), rel=1e-12)
    partly = groups.split(surrogate, theta, hidden)
    box = partly.box(surrogate.reduced, surrogate.penalties)
    left = surrogate.value(theta) - box.loss(theta)
    assert 0 < left <= 2 * row_groups.SHARE * hidden
    assert sum(groups.counts) < sum(partly.counts) < sum(split.counts)


def test_dual_points_of_groups_are_dual_points_of_all_rows() -> None:
    problem, features = grid_problem(12)
    surrogate = Surrogate(Reduced(problem, features))
    groups, rng = RowGroups.of(surrogate.reduced), np.random.default_rng(2)
    box = groups.box(surrogate.reduced, surrogate.penalties)
    v = rng.uniform(box.lower, box.upper)
    witness = groups.witness(box, v, surrogate.penalties)
    same = box.lower_bound(v, 1.5)
    assert reduced_lower_bound(surrogate, witness, 1.5) == pytest.approx(same, rel=1e-9)


@pytest.mark.parametrize(
    "cost_class", [jm.InfinityBall(), jm.EuclideanBall(), jm.L1Ball()], ids=repr
)
@pytest.mark.parametrize("at_most", [None, 4.0])
def test_rounds_end_at_the_least_loss(
    cost_class: jm.costs.CostClass, at_most: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, features = grid_problem(20, cost_class, at_most)
    whole = jm.solve(problem, jm.ReducedProgram(features))
    assert "groups" not in whole.engine
    monkeypatch.setattr(row_groups, "ROUNDS", 0)
    found = jm.solve(problem, jm.ReducedProgram(features))
    assert "groups" in found.engine
    assert found.status.name == whole.status.name == "CONVERGED"
    assert found.reduced is not None
    assert whole.reduced is not None
    assert found.reduced.relative_gap <= 1e-8
    unit = found.reduced.unit
    assert found.reduced.loss == pytest.approx(whole.reduced.loss, abs=2e-8 * unit)
    assert found.reduced.loss_lower_bound <= whole.reduced.loss


@pytest.mark.usefixtures("always")
def test_a_rough_tolerance_takes_fewer_rounds() -> None:
    problem, features = grid_problem()
    rough = jm.solve(problem, jm.ReducedProgram(features, tolerance=0.05)).reduced
    close = jm.solve(problem, jm.ReducedProgram(features)).reduced
    assert rough is not None
    assert close is not None
    assert close.relative_gap <= 1e-8 < rough.relative_gap <= 0.05
    assert rough.loss_lower_bound <= close.loss


@pytest.mark.usefixtures("always")
def test_a_limit_ends_with_bounds_that_hold() -> None:
    problem, features = grid_problem()
    least = jm.solve(problem, jm.ReducedProgram(features)).reduced
    stopped = jm.solve(problem, jm.ReducedProgram(features), time_limit=1e-6)
    assert stopped.status.name == "TIME_LIMIT"
    assert least is not None
    assert stopped.reduced is not None
    assert stopped.reduced.loss_lower_bound <= least.loss <= stopped.reduced.loss


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    "problem",
    [
        grid_problem(12, jm.Simplex())[0],
        jm.Forward(jm.gallery.grid(12).world, np.arange(576) / 576),
    ],
    ids=["simplex", "known cost"],
)
def test_losses_that_sums_may_not_bound_are_left_to_all_rows(problem: jm.Apprenticeship) -> None:
    features = grid_problem(12)[1]
    assert groups_that_pay(Surrogate(Reduced(problem, features))) is None
    answer = jm.solve(problem, jm.ReducedProgram(features))
    assert "groups" not in answer.engine


def test_small_programs_and_rows_without_likeness_are_solved_whole() -> None:
    problem, features = grid_problem()
    assert groups_that_pay(Surrogate(Reduced(problem, features))) is None
    rng = np.random.default_rng(0)
    mixed = features.matrix.toarray() * rng.random((features.num_pairs, 1))
    dense = jm.features.Features(mixed)
    assert groups_that_pay(Surrogate(Reduced(problem, dense))) is None
