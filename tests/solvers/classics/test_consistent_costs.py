"""The centre of consistent costs: against sets known in full, and by its own promises."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.classics.consistent_costs import Points, inner_ball, least_share
from solved_problems import DEMONSTRATED, solved_problem

CLASSES = [jm.InfinityBall(), jm.Simplex(), jm.EuclideanBall()]


def fork(*ways):
    """One state whose actions end the episode after one step, each with its own costs."""
    count = len(ways)
    world = jm.World(
        np.tile([0.0, 1.0], (count + 1, 1)), [1.0, 0.0], 0.5, choice_offsets=[0, count, count + 1]
    )
    return world, jm.CostBasis(np.vstack([np.array(ways, dtype=float), np.zeros(len(ways[0]))]))


def known(world, basis, expert, cost_class=None):
    means = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    return jm.Apprenticeship(world, basis, means, cost_class)


def choosing(world, action):
    law = np.zeros(world.num_pairs)
    law[[action, -1]] = 1.0
    return jm.Policy(law, world.pairs)


def test_the_centre_is_that_of_the_triangle_of_consistent_costs():
    """The middle way costs (1, 1) and is chosen over (3, 0) and (0, 2): w_2 <= 2 w_1, w_1 <= w_2.
    In the unit square that is the triangle of (0, 0), (1, 1) and (1/2, 1)."""
    world, basis = fork([1, 1], [3, 0], [0, 2])
    problem = known(world, basis, choosing(world, 0))
    solver = jm.solvers.ConsistentCosts(nonnegative=True)
    answer = jm.solve(problem, solver)
    v = answer.recovered * 3  # N is the largest cost
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert v == pytest.approx([1 / 2, 2 / 3], abs=0.05)
    assert answer.policy.on(world)[0] == 1.0


def test_weights_may_be_negative_unless_asked():
    """The expert takes what costs more of the only cost: it likes it."""
    world, basis = fork([1.0], [0.0])
    problem = known(world, basis, choosing(world, 0))
    answer = jm.solve(problem, jm.solvers.ConsistentCosts())
    assert -0.6 < answer.recovered[0] < -0.4
    other = jm.solve(problem, jm.solvers.ConsistentCosts(nonnegative=True))
    assert other.status is jm.Status.INACCURATE
    assert "acting at random" in other.log
    assert other.recovered[0] >= 0


@pytest.mark.parametrize("ways", [([0, 0], [0, 0]), ([1, 0.3], [1, 0.3]), ([1, 0.3],)])
def test_an_expert_without_a_choice_says_nothing(ways):
    """Every policy costs the same: no share of what acting at random loses is named."""
    world, basis = fork(*ways)
    answer = jm.solve(known(world, basis, choosing(world, 0)), jm.solvers.ConsistentCosts())
    assert answer.status is jm.Status.OPTIMAL
    assert "it says nothing about the cost" in answer.log
    assert "loses at most" not in answer.log


def test_more_draws_than_chains_are_not_the_same_points(monkeypatch):
    asked, drawn = [], Points.some

    def some(points, count):
        found = drawn(points, count)
        asked.extend(map(tuple, found[:1]) if count == 1 else [])
        return found

    monkeypatch.setattr(Points, "some", some)
    world, basis = fork([1, 1], [3, 0], [0, 2])
    answer = jm.solve(
        known(world, basis, choosing(world, 0)), jm.solvers.ConsistentCosts(draws=300)
    )
    assert "300 points in a row" in answer.log
    assert len(set(asked[-300:])) > 250


@pytest.mark.parametrize("seed", range(3))
def test_the_expert_is_optimal_for_what_is_recovered(seed):
    world, basis, expert = jm.gallery.grid(5, macro_cells=3, randomness=0, seed=seed)
    problem = known(world, basis, expert)
    answer = jm.solve(problem, jm.solvers.ConsistentCosts(1e-6, seed=seed))
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    cost = problem.cost_of(answer.recovered)
    best = jm.expected_cost(world, answer.policy, cost)
    random = jm.expected_cost(world, jm.Policy.uniform(world), cost)
    lost = jm.expected_cost(world, expert, cost) - best
    assert random - best > 0
    assert lost <= 1e-6 * (random - best - lost) + 1e-9
    assert "lose at most 1e-06" in answer.log


@pytest.mark.parametrize("share", [0.05, 0.4])
def test_an_expert_who_errs_loses_little_more_than_it_has_to(share):
    """Ways (1, 0) and (0, 1) and a worse one; the expert takes the worse one now and then. Under
    weights (a, b) it loses share (2 a + 2 b) + (1 - share) a - min(a, b)."""
    world, basis = fork([1, 0], [0, 1], [2, 2])
    law = np.array([1 - share, 0.0, share, 1.0])
    problem = known(world, basis, jm.Policy(law, world.pairs))
    solver = jm.solvers.ConsistentCosts(nonnegative=True, slack=1.5)
    answer = jm.solve(problem, solver)
    assert answer.status is jm.Status.CONVERGED

    def relative(w):
        taken = np.array([1 + share, 2 * share])
        least, random = w.min(axis=-1), w @ [1.0, 1.0]
        lost, beside = w @ taken - least, random - w @ taken
        return np.where(beside > 0, lost / np.where(beside > 0, beside, 1), np.inf)

    angles = np.linspace(0, np.pi / 2, 20_001)
    least = relative(np.column_stack([np.cos(angles), np.sin(angles)])).min()
    assert least > 0.05
    assert least - 1e-6 <= relative(answer.recovered) <= 1.5 * least + 1e-6


def test_the_least_share_is_proven_by_rows():
    rows, random = np.array([[1.0, -1.0], [-1.0, 2.0]]), np.array([1.0, 1.0])
    # with v = (a, 1 - a): t >= 2 a - 1 and t >= 2 - 3 a, which meet at a = 3/5
    assert least_share(rows, random, 0.0) == pytest.approx(1 / 5)
    assert least_share(1e3 * rows, 1e3 * random, -np.inf) == pytest.approx(1 / 5)


def test_points_are_spread_evenly():
    """A thin wedge of the unit square: the triangle (0, 0), (1, .5), (1, .49)."""
    points = Points(2, nonnegative=True, seed=0)
    assert points.keep(np.array([[-0.5, 1.0], [0.49, -1.0]]))
    assert (points.places @ [-0.5, 1.0] <= 1e-12).all()
    assert (points.places @ [0.49, -1.0] <= 1e-12).all()
    assert points.refined() == pytest.approx([2 / 3, 0.99 / 3], abs=0.02)
    assert points.places.std(axis=0)[0] == pytest.approx(np.sqrt(1 / 18), rel=0.2)
    # relative to the first weight, the second one is even between .49 and .5
    assert points.spread() == pytest.approx([0.0, 0.01 / np.sqrt(12)], rel=0.2)


def test_nothing_is_left_between_rows_that_exclude_each_other():
    points = Points(2, nonnegative=True, seed=0)
    assert not points.keep(np.array([[-1.0, 1.0], [1.0, -1.0]]))
    rows = np.vstack([np.eye(2), -np.eye(2)])
    centre, radius = inner_ball(rows, np.array([1.0, 1.0, 0.0, 0.0]))
    assert radius == pytest.approx(0.5)
    assert centre == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("name", DEMONSTRATED)
@pytest.mark.parametrize("cost_class", CLASSES, ids=lambda kind: type(kind).__name__)
def test_the_share_lost_is_what_the_log_says(name, cost_class):
    problem = solved_problem(name, cost_class)
    answer = jm.solve(problem, jm.solvers.ConsistentCosts(max_iterations=8))
    world, w = problem.world, answer.recovered
    cost = problem.cost_of(w)
    best = float(world.initial @ jm.plan(world, cost).values)
    random = jm.expected_cost(world, jm.Policy.uniform(world), cost)
    paid = float(w @ problem.target)
    says = float(answer.log.split("at most ")[1].split()[0])
    assert max(paid - best, 0.0) / (random - paid) == pytest.approx(says, rel=0.01, abs=1e-6)


def test_units_do_not_matter():
    problem = solved_problem("grid, one start", jm.InfinityBall())
    basis = jm.CostBasis(1e3 * problem.basis.matrix)
    larger = jm.Apprenticeship(problem.world, basis, problem.demonstrations, jm.InfinityBall())
    solver = jm.solvers.ConsistentCosts()
    one, other = jm.solve(problem, solver), jm.solve(larger, solver)
    assert 1e3 * other.recovered == pytest.approx(one.recovered, rel=0.2, abs=0.1)


def test_what_cannot_be_used_is_refused():
    budget = jm.Budget(cost=np.ones(3), at_most=5.0, name="time")
    world, basis = fork([1.0], [0.0])
    means = jm.ExpertExpectation([0.0])
    problem = jm.Apprenticeship(world, basis, means, constraints=budget)
    with pytest.raises(jm.errors.InvalidProblem, match="ConsistentCosts cannot keep budgets"):
        jm.solve(problem, jm.solvers.ConsistentCosts())
    with pytest.raises(jm.errors.InvalidSolver, match="regret = 0"):
        jm.solvers.ConsistentCosts(0)
    with pytest.raises(jm.errors.InvalidSolver, match="slack = 1"):
        jm.solvers.ConsistentCosts(slack=1)
