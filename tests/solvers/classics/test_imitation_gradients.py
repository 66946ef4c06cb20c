"""IM-REINFORCE and IM-TRPO reach the exact optimum, or say how far they are from it."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.answer import Work
from journeyman.solvers.classics.imitation_gradients import WorstCaseDescent
from journeyman.solvers.classics.policy_family import PolicyFamily
from journeyman.solvers.classics.policy_visits import VisitOptions
from solved_problems import DEMONSTRATED, SMALL, optimum, solved_problem

CLASSES = [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()]
REACHED = {"ImitationTrustRegion": 3e-4, "ImitationReinforce": 1e-2}
"""Distance to the least gap after 120 iterations, relative to the trivial bound."""
METHODS = [
    jm.solvers.ImitationTrustRegion(max_iterations=120),
    jm.solvers.ImitationReinforce(max_iterations=120),
]


def name_of(value):
    return value if isinstance(value, str) else type(value).__name__


@pytest.mark.parametrize("cost_class", CLASSES, ids=name_of)
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("method", METHODS, ids=name_of)
def test_the_optimum_is_reached(method, name, cost_class):
    problem = solved_problem(name, cost_class)
    answer = jm.solve(problem, method)
    distance = (answer.value - optimum(name, cost_class)) / problem.gap_scale
    assert -1e-7 <= distance <= REACHED[type(method).__name__]
    if answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL):
        assert answer.value - answer.lower_bound <= 1.001e-5 * problem.gap_scale


@pytest.mark.parametrize("method", [jm.solvers.ImitationTrustRegion, jm.solvers.ImitationReinforce])
def test_the_same_answer_in_other_units(method):
    problem = solved_problem("grid, one start", jm.Simplex())
    scale = np.full(problem.basis.num_costs, 1e4)
    other = jm.Apprenticeship(problem.world, problem.basis, problem.expectation, jm.Simplex(scale))
    given, scaled = (jm.solve(one, method(max_iterations=40)) for one in (problem, other))
    assert scaled.value == pytest.approx(1e4 * given.value, rel=1e-3)


@pytest.mark.parametrize("method", [jm.solvers.ImitationTrustRegion, jm.solvers.ImitationReinforce])
@pytest.mark.parametrize("name", DEMONSTRATED)
def test_sampled_gradients_come_close(method, name):
    """The median of three seeds, against the way from the uniform policy to the optimum."""
    problem = solved_problem(name, jm.EuclideanBall())
    uniform, least = (
        problem.gap(jm.Policy.uniform(problem.world)), optimum(name, jm.EuclideanBall())
    )  # fmt: skip
    solver = method(rollouts=100, max_iterations=60)
    answers = [jm.solve(problem, solver, seed=seed) for seed in range(3)]
    reached = np.median([(uniform - one.value) / (uniform - least) for one in answers])
    assert reached >= 0.7
    assert len({one.value for one in answers}) == 3
    for one in answers:
        assert one.status is jm.Status.STEP_LIMIT
        assert 0 < one.work.environment_steps <= 61 * 100 * 90


@pytest.mark.parametrize("method", [jm.solvers.ImitationTrustRegion, jm.solvers.ImitationReinforce])
def test_log_linear_policies_are_searched_within_their_family(method):
    world, basis, expert = jm.gallery.grid(6, macro_cells=3)
    demos = jm.record(world, expert, trajectories=100, horizon=80, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    cells = basis.matrix.toarray().argmax(axis=1)[world.pairs.states]
    features = jm.features.Features(np.eye(36)[4 * cells + world.pairs.actions])
    free = jm.solve(problem, method(max_iterations=60))
    bound = jm.solve(problem, method(features=features, max_iterations=60))
    uniform = problem.gap(jm.Policy.uniform(world))
    assert free.value < bound.value < 0.7 * uniform
    table = bound.policy.probabilities(range(world.num_states))
    assert len(np.unique(table.round(9), axis=0)) <= 9


def test_features_that_span_all_tables_reach_what_tables_reach():
    problem = solved_problem("ragged", jm.EuclideanBall())
    everything = jm.features.Features(np.eye(problem.world.num_pairs))
    answer = jm.solve(problem, jm.solvers.ImitationTrustRegion(features=everything))
    distance = answer.value - optimum("ragged", jm.EuclideanBall())
    assert distance <= 1e-4 * problem.gap_scale


@pytest.mark.parametrize("method", [jm.solvers.ImitationTrustRegion, jm.solvers.ImitationReinforce])
def test_the_best_policy_is_the_one_that_is_returned(method):
    problem = solved_problem("garnet, demonstrations", jm.InfinityBall())
    for count in (10, 20, 40, 60):
        seen = []
        answer = jm.solve(problem, method(max_iterations=count), observer=seen.append)
        assert answer.value <= min(event.objective for event in seen) + 1e-6


def test_an_exact_run_draws_nothing_and_a_plan_is_counted():
    problem = solved_problem("grid, one start", jm.Simplex())
    exact = jm.solve(problem, jm.solvers.ImitationTrustRegion(max_iterations=5))
    assert exact.work.iterations == 5
    assert exact.work.environment_steps == exact.work.forward_solves == 0
    planned = jm.solve(problem, jm.solvers.ImitationReinforce(max_iterations=60))
    assert planned.work.forward_solves == 2


@pytest.mark.parametrize("method", [jm.solvers.ImitationTrustRegion, jm.solvers.ImitationReinforce])
def test_costs_that_are_all_zero_are_solved(method):
    world = solved_problem("ragged", jm.Simplex()).world
    basis, expert = jm.CostBasis(np.zeros((world.num_pairs, 2))), jm.ExpertExpectation([0.0, 0.0])
    for cost_class in CLASSES:
        answer = jm.solve(jm.Apprenticeship(world, basis, expert, cost_class), method())
        assert answer.value == 0
        assert np.isfinite(answer.policy.per_pair).all()


@pytest.mark.parametrize("method", [jm.solvers.ImitationTrustRegion, jm.solvers.ImitationReinforce])
def test_what_cannot_be_done_is_refused(method):
    budget = jm.Budget(cost=np.ones(2), at_most=1.0, name="all")
    two_cells = solved_problem("two cells", jm.Simplex())
    limited = jm.Apprenticeship(
        two_cells.world, two_cells.basis, two_cells.expectation, constraints=budget
    )
    with pytest.raises(jm.errors.InvalidProblem, match="budgets"):
        jm.solve(limited, method())
    for wrong in ({"rollouts": 0}, {"horizon": -1}, {"accuracy": 0.0}, {"max_iterations": 0}):
        with pytest.raises(jm.errors.InvalidSolver):
            method(**wrong)


def test_what_is_proven_has_to_hold_for_the_figures_of_the_answer():
    """A descent that believes, by rough solves, in a gap that its policy does not have."""
    problem = solved_problem(SMALL[0], jm.InfinityBall())
    family, visits = PolicyFamily(problem.world), VisitOptions(None, None, 0)
    descent = WorstCaseDescent(problem, family, visits, accuracy=1e-3)
    ending = (jm.Status.CONVERGED, "IM-TRPO", Work(), 0.0)
    descent.judge()
    assert not descent.is_proven
    descent.least = 0.0
    assert descent.is_proven
    answer = descent.answer(*ending)
    assert answer.value - answer.lower_bound > descent.allowed
    assert answer.status is jm.Status.INACCURATE
    descent.allowed = 2 * answer.value
    assert descent.answer(*ending).status is jm.Status.CONVERGED
