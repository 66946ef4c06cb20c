"""Ng and Russell's program against the same program in CVXPY, and what its cost says."""

import cvxpy as cp
import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.classics.inverse_program import margin_of
from journeyman.solvers.exact.engines import Result
from journeyman.testing import Shape, random_world
from journeyman.testing.random_worlds import random_policy

EXAMPLES = {
    "grid": lambda: jm.gallery.grid(5, macro_cells=3, randomness=0, seed=4),
    "grid with walls": lambda: jm.gallery.grid(
        5, macro_cells=2, walls=[(1, 1), (2, 3)], stay=True, randomness=0
    ),
    "garnet": lambda: jm.gallery.garnet(20, randomness=0, seed=1),
    "garnet, many costs": lambda: jm.gallery.garnet(12, 3, 2, num_costs=20, randomness=0, seed=2),
}


def problem_of(example, **parts):
    world, basis, expert = example
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    return jm.Apprenticeship(world, basis, target, **parts)


def dense_advantages(world, basis, expert):
    """Q - V of every basis cost under the expert, written out with dense matrices."""
    P, Psi = world.transition.toarray(), np.asarray(dense(basis.on(world)))
    pi = np.zeros((world.num_states, world.num_pairs))
    pi[world.pairs.states, np.arange(world.num_pairs)] = expert.per_pair
    V = np.linalg.solve(np.eye(world.num_states) - world.discount * pi @ P, pi @ Psi)
    return Psi + world.discount * P @ V - V[world.pairs.states]


def dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def strict_optimum(world, basis, expert, penalty, scale):
    """The paper's program for a deterministic expert, state by state."""
    A, w = dense_advantages(world, basis, expert), cp.Variable(basis.num_costs)
    margins = []
    for state in range(world.num_states):
        pairs = range(world.pairs.offsets[state], world.pairs.offsets[state + 1])
        others = [pair for pair in pairs if expert.per_pair[pair] == 0]
        if others:
            margins.append(cp.min(A[others] @ w))
    value = cp.sum(cp.hstack(margins)) - penalty * cp.norm1(w / scale)
    program = cp.Problem(cp.Maximize(value), [A @ w >= 0, cp.abs(w) <= scale])
    return program.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_deterministic_expert_is_optimal_for_the_recovered_cost(name):
    example = EXAMPLES[name]()
    problem = problem_of(example)
    answer = jm.solve(problem, jm.solvers.InverseProgram(example.expert))
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert answer.log.startswith("optimal: ")
    margin = margin_of(problem, example.expert, answer.recovered)
    assert margin.total > 0.1
    assert margin.violation < 1e-6
    cost = problem.cost_of(answer.recovered)
    paid = jm.expected_cost(problem.world, example.expert, cost)
    best = jm.expected_cost(problem.world, answer.policy, cost)
    assert paid == pytest.approx(best, abs=1e-6)
    assert paid < jm.expected_cost(problem.world, jm.Policy.uniform(problem.world), cost) - 0.1
    assert answer.work.forward_solves == 1


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("penalty", [0.0, 0.05])
def test_the_sum_of_margins_is_the_largest(name, penalty):
    example = EXAMPLES[name]()
    scale = np.linspace(0.5, 2.0, example.basis.num_costs)
    problem = problem_of(example, cost_class=jm.InfinityBall(scale))
    answer = jm.solve(problem, jm.solvers.InverseProgram(example.expert, penalty=penalty))
    w = answer.recovered
    assert (np.abs(w) <= scale).all()
    reached = margin_of(problem, example.expert, w).total - penalty * np.abs(w / scale).sum()
    assert reached == pytest.approx(strict_optimum(*example, penalty, scale), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("shape", "seed"), [(Shape.RAGGED, 1), (Shape.DENSE, 4)])
def test_violations_of_a_random_expert_count_twice(shape, seed):
    world = random_world(seed, shape, num_states=8)
    expert = random_policy(world, seed + 10).mixed_with(jm.Policy.uniform(world), 0.2)
    basis = jm.CostBasis(np.random.default_rng(seed).uniform(-1, 1, (world.num_pairs, 6)))
    answer = jm.solve(problem_of((world, basis, expert)), jm.solvers.InverseProgram(expert))
    A = dense_advantages(world, basis, expert)
    favourite = np.maximum.reduceat(expert.per_pair, world.pairs.offsets[:-1])
    rows = A[expert.per_pair < world.pairs.spread(favourite)]
    twice, less = most_counted(rows, 2.0), most_counted(rows, 1.5)
    found = rows @ answer.recovered
    assert counted(found, 2.0) == pytest.approx(counted(twice, 2.0), rel=1e-6)
    assert counted(twice, 2.0) > counted(less, 2.0) + 0.1  # another factor has other weights
    assert answer.log.startswith("violated: ")


def most_counted(rows, factor):
    """What the rivals cost more when negative margins count `factor` times."""
    w = cp.Variable(rows.shape[1])
    value = cp.sum(cp.minimum(rows @ w, factor * rows @ w))
    cp.Problem(cp.Maximize(value), [cp.abs(w) <= 1]).solve(solver=cp.CLARABEL)
    return rows @ w.value


def counted(margins, factor):
    return np.minimum(margins, factor * margins).sum()


def test_margins_are_those_of_the_cheapest_rivals():
    world, basis, expert = EXAMPLES["garnet"]()
    w = np.random.default_rng(1).uniform(-1, 1, basis.num_costs)
    aside = dense_advantages(world, basis, expert) @ w
    table = np.where(expert.per_pair > 0, np.inf, aside).reshape(world.num_states, -1)
    margin = margin_of(problem_of((world, basis, expert)), expert, w)
    assert margin.total == pytest.approx(table.min(axis=1).sum())
    assert margin.least == pytest.approx(table.min())
    assert margin.violation == pytest.approx(-aside.min())


def test_a_world_without_consequences_is_degenerate():
    """Whatever is done, the same happens: no cost per state separates expert and rivals."""
    rng = np.random.default_rng(0)
    world = jm.World(np.repeat(rng.dirichlet(np.ones(4), 4), 3, axis=0), [0.25] * 4, 0.9)
    basis = jm.CostBasis(np.eye(4))
    expert = jm.Policy(np.eye(3)[[0, 2, 1, 1]])
    problem = problem_of((world, basis, expert))
    answer = jm.solve(problem, jm.solvers.InverseProgram(expert))
    assert answer.log.startswith("degenerate: ")
    assert not answer.recovered.any()
    assert np.array_equal(answer.policy.per_pair, expert.per_pair)


def test_without_rivals_there_is_nothing_to_explain():
    world = random_world(0, Shape.SINGLE_ACTION)
    basis = jm.CostBasis(np.eye(world.num_states))
    expert = jm.Policy.uniform(world)
    answer = jm.solve(problem_of((world, basis, expert)), jm.solvers.InverseProgram(expert))
    assert answer.log.startswith("degenerate: ")
    assert margin_of(answer.problem, expert, np.ones(world.num_states)).least == np.inf


def test_a_cost_per_state_is_found_in_the_identity():
    world, _, expert = jm.gallery.grid(4, randomness=0, seed=3)
    problem = problem_of((world, jm.CostBasis(np.eye(world.num_states)), expert))
    answer = jm.solve(problem, jm.solvers.InverseProgram(expert, penalty=1.0))
    plain = jm.solve(problem, jm.solvers.InverseProgram(expert))
    assert answer.log.startswith("optimal: ")
    assert np.abs(answer.recovered).sum() < np.abs(plain.recovered).sum() - 1


def test_too_large_a_penalty_is_called_by_its_name():
    example = EXAMPLES["garnet"]()
    answer = jm.solve(problem_of(example), jm.solvers.InverseProgram(example.expert, penalty=1e3))
    assert answer.log.startswith("degenerate, because no margin is worth the penalty")
    assert not answer.recovered.any()


def test_states_that_no_demonstration_visits_ask_for_nothing():
    world, basis, expert = jm.gallery.grid(5, macro_cells=2, initial=(0, 0), randomness=0, seed=1)
    demos = jm.record(world, expert, trajectories=3, horizon=8, seed=0)
    visited = np.unique(demos.step_states).size
    assert visited < world.num_states
    answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.InverseProgram())
    assert f"cloned from 3 demonstrations, which visit {visited} of 25 states" in answer.log
    assert answer.log.startswith("optimal: ")
    whole = margin_of(answer.problem, jm.clone(demos, world, smoothing=0), answer.recovered)
    assert whole.violation > 1e-3  # the clone wanders at random where nothing was seen


def test_a_program_that_was_stopped_claims_nothing():
    example = jm.gallery.grid(10, macro_cells=5, randomness=0)
    answer = jm.solve(
        problem_of(example), jm.solvers.InverseProgram(example.expert), time_limit=1e-9
    )
    assert answer.status is jm.Status.TIME_LIMIT
    assert answer.log.startswith("stopped: ")


def test_what_cannot_be_used_is_refused():
    example = EXAMPLES["garnet"]()
    problem = problem_of(example)
    with pytest.raises(jm.errors.InvalidProblem, match="InverseProgram needs demonstrations"):
        jm.solve(problem, jm.solvers.InverseProgram())
    with pytest.raises(jm.errors.InvalidSolver, match="expert is a list"):
        jm.solvers.InverseProgram([0.5, 0.5])
    with pytest.raises(jm.errors.InvalidPolicy, match="the policy is for 2 states"):
        jm.solve(problem, jm.solvers.InverseProgram(jm.Policy([[1.0], [1.0]])))
    with pytest.raises(jm.errors.InvalidSolver, match="penalty = -1"):
        jm.solvers.InverseProgram(penalty=-1)


def test_a_clone_is_optimal_only_as_far_as_states_were_seen():
    """Beyond the door, where nobody went, half of the clone's actions are bad ones."""
    world = jm.World([[1, 0], [0, 1], [0, 1], [0, 1]], [1, 0], 0.9, choice_offsets=[0, 2, 4])
    demos = jm.Demonstrations([0] * 6, [0] * 5, [0, 5])
    problem = jm.Apprenticeship(world, jm.CostBasis([0.0, 1.0, -3.0, 3.0]), demos)
    answer = jm.solve(problem, jm.solvers.InverseProgram())
    assert answer.log.startswith("optimal")
    cost, clone = problem.cost_of(answer.recovered), jm.clone(demos, world, smoothing=0)
    loyal = jm.Policy(np.r_[0.0, 1.0, clone.per_pair[2:]], world.pairs.offsets)
    paid = [jm.expected_cost(world, one, cost) for one in (answer.policy, clone, loyal)]
    assert paid[0] < paid[1] < paid[2]


def test_an_engine_that_gives_up_is_no_proof_that_nothing_explains_the_expert(monkeypatch):
    def give_up(model, engine, watch, threads):
        nothing = np.full(model.cost.size, np.nan), np.full(model.row_lower.size, np.nan)
        return Result(jm.Status.FAILED, *nothing, "an engine", "")

    monkeypatch.setattr("journeyman.solvers.classics.inverse_program.run_highs", give_up)
    example = EXAMPLES["grid"]()
    for solver in (jm.solvers.InverseProgram(example[2]), jm.solvers.SampledInverseProgram()):
        answer = jm.solve(problem_of(example), solver)
        assert answer.status is jm.Status.FAILED
        assert answer.log.startswith("stopped")


@pytest.mark.parametrize(("penalty", "count"), [(0.0, 2), (1e-6, 3), (1e3, 3)])
def test_every_program_is_counted(penalty, count):
    world, basis, expert = EXAMPLES["garnet"]()
    noisy = expert.mixed_with(jm.Policy.uniform(world), 0.3)
    for policy, programs in ((expert, 1), (noisy, count)):
        if policy is noisy or penalty < 1:
            solver = jm.solvers.InverseProgram(policy, penalty=penalty)
            answer = jm.solve(problem_of((world, basis, policy)), solver)
            assert answer.work.iterations == programs, answer.log
