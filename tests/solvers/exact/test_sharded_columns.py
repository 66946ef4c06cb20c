"""Column generation over blocks of states: the answers of the explicit program, the same bits for
every executor, true bounds whatever happens on the way, and refusals of worlds that are none."""

import os
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import block_worlds as worlds
import journeyman as jm
from journeyman.policy import expected_cost
from journeyman.solvers.exact.sharded_columns import interval
from journeyman.solvers.exact.state_blocks import HELD, BlockedWorld, RowMaker, StateBlocks
from journeyman.solvers.running import Status, Watch

CLASSES = [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()]
SHARDED = jm.solvers.ShardedColumns


def bits(answer):
    numbers = (answer.value, answer.lower_bound, answer.solution.expectations.tobytes())
    return (*numbers, answer.policy.per_pair.tobytes(), answer.status, len(answer.bounds_trace))


def require_true(answer, explicit):
    """Bounds against the exact evaluation of the policy, and an exact solve of the program."""
    best = jm.solve(explicit, jm.solvers.ColumnGeneration())
    slack = 1e-12 * explicit.gap_scale
    assert explicit.gap(answer.policy) <= answer.value + slack
    assert answer.lower_bound <= best.value + slack
    return best


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("cost_class", CLASSES, ids=lambda one: one.name)
def test_it_finds_what_column_generation_finds_in_the_explicit_world(cost_class, thin):
    blocked, explicit = worlds.twins(worlds.Scattered(), cost_class, thin=thin)
    answer = jm.solve(blocked, SHARDED(num_blocks=7))
    best = require_true(answer, explicit)
    tolerance = 1e-6 * explicit.gap_scale
    assert answer.status is Status.OPTIMAL
    assert answer.value - answer.lower_bound <= tolerance
    assert answer.value == pytest.approx(best.value, abs=2 * tolerance)
    assert answer.value - explicit.gap(answer.policy) <= 0.1 * tolerance
    assert blocked.gap_scale == pytest.approx(explicit.gap_scale, rel=0.6)


@settings(max_examples=15, deadline=None)
@given(
    size=st.integers(1, 30), actions=st.integers(1, 4), blocks=st.integers(1, 40),
    discount=st.sampled_from([0.3, 0.9, 0.99]), seed=st.integers(0, 10**6),
    cost_class=st.sampled_from(CLASSES),
)  # fmt: skip
def test_bounds_are_true_in_every_world(size, actions, blocks, discount, seed, cost_class):
    world = worlds.Scattered(size, actions, 3, discount, seed)
    blocked, explicit = worlds.twins(world, cost_class, num_costs=3, seed=seed)
    answer = jm.solve(blocked, SHARDED(num_blocks=blocks))
    best = require_true(answer, explicit)
    assert answer.status is Status.OPTIMAL
    assert answer.value == pytest.approx(best.value, abs=4e-6 * explicit.gap_scale)


def test_explicit_worlds_and_one_start_will_do():
    world, basis, expert = jm.gallery.grid(8)
    demos = jm.record(world, expert, trajectories=10, horizon=40, seed=0)
    for start in (world.initial, np.eye(world.num_states)[17]):
        moved = jm.World(world.transition, start, world.discount)
        problem = jm.Apprenticeship(moved, basis, demos)
        answer = jm.solve(problem, SHARDED(num_blocks=3))
        require_true(answer, problem)
        assert answer.status is Status.OPTIMAL
        assert "3 blocks of states" in answer.engine
        assert "rounds" in answer.log


@pytest.fixture(scope="module")
def calm():
    return bits(jm.solve(worlds.twins(worlds.Scattered())[0], SHARDED(num_blocks=6)))


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2, 3])
def test_the_number_of_processes_changes_no_bit(workers, calm):
    blocked, _ = worlds.twins(worlds.Scattered())
    answer = jm.solve(blocked, SHARDED(jm.Processes(workers), num_blocks=6))
    assert bits(answer) == calm


@pytest.mark.parametrize(
    ("member", "when"),
    [
        pytest.param("successors", 4, marks=pytest.mark.slow),
        ("predecessors", 3),
        ("successors", 9),
    ],
)
def test_a_killed_worker_loses_nothing_and_changes_no_bit(member, when, tmp_path, calm):
    """While blocks are made, in the middle of the solve, and when they are made anew."""
    dying = worlds.Dying(tmp_path, member, when)
    blocked, _ = worlds.twins(dying)
    with jm.Processes(2) as executor:
        answer = jm.solve(blocked, SHARDED(executor, num_blocks=6))
    assert bits(answer) == calm
    assert len(list(tmp_path.iterdir())) > when


def test_workers_forget_their_blocks_in_the_end():
    blocked, _ = worlds.twins(worlds.Scattered())
    jm.solve(blocked, SHARDED())
    assert not HELD
    with pytest.raises(jm.errors.InvalidWorld):
        jm.solve(worlds.twins(worlds.Scattered(bug="sums"))[0], SHARDED())
    assert not HELD


BUGS = {
    "sums": "successors of state 40, action 0 have probabilities .* sum to 0.9",
    "shapes": "states of shape .* probabilities of shape",
    "outside": "leads to state 1?[0-9]{2}, outside 0..59",
    "initial shape": "initial_probability of the states 0..9 has shape",
    "initial sum": "initial_probability sums to",
    "forgetful": "rows of the states 10..19 are not the same",
}


@pytest.fixture(scope="module")
def processes():
    """Workers that outlive what they refuse."""
    with jm.Processes(2) as executor:
        yield executor


@pytest.mark.parametrize("bug", BUGS)
def test_worlds_that_are_none_are_refused(bug):
    blocked, _ = worlds.twins(worlds.Scattered(bug=bug))
    with pytest.raises(jm.errors.InvalidWorld, match=BUGS[bug]):
        jm.solve(blocked, SHARDED(jm.Serial(), num_blocks=6))


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug != "forgetful"])
def test_processes_refuse_them_too(bug, processes):
    """All but one that counts its calls, which it can do in one process only."""
    blocked, _ = worlds.twins(worlds.Scattered(bug=bug))
    with pytest.raises(jm.errors.InvalidWorld, match=BUGS[bug]):
        jm.solve(blocked, SHARDED(processes, num_blocks=6))


def test_wrong_predecessors_cost_quality_and_no_truth():
    blocked, explicit = worlds.twins(worlds.Scattered(bug="predecessors"))
    answer = jm.solve(blocked, SHARDED(num_blocks=6))
    require_true(answer, explicit)
    assert answer.status is Status.INACCURATE


def test_budgets_are_kept():
    blocked, explicit = worlds.twins(worlds.Scattered(seed=3), budgets=[0.35, 0.45], seed=3)
    answer = jm.solve(blocked, SHARDED(num_blocks=4))
    best = jm.solve(explicit, jm.solvers.ColumnGeneration())
    assert answer.status is best.status is Status.OPTIMAL
    assert answer.value == pytest.approx(best.value, abs=4e-6 * explicit.gap_scale)
    spent = [expected_cost(explicit.world, answer.policy, one.cost) for one in explicit.constraints]
    assert (np.array(spent) - explicit.limits <= answer.overspending + 1e-12).all()
    assert (answer.overspending <= 1e-5).all()
    assert best.value > jm.solve(worlds.twins(worlds.Scattered(seed=3), seed=3)[1]).value + 1e-3


def test_budgets_that_exclude_each_other_are_proven_to():
    blocked, explicit = worlds.twins(worlds.Scattered(), budgets=[0.05])
    answer = jm.solve(blocked, SHARDED(num_blocks=4))
    best = jm.solve(explicit, jm.solvers.ColumnGeneration())
    assert answer.status is best.status is Status.INFEASIBLE
    np.testing.assert_allclose(answer.relaxation.increase, best.relaxation.increase, rtol=1e-3)
    with pytest.raises(jm.errors.NoSolution, match="exclude each other"):
        _ = answer.policy


def test_a_solve_without_time_says_what_is_known():
    blocked, explicit = worlds.twins(worlds.Scattered())
    answer = jm.solve(blocked, SHARDED(time_limit=1e-6))
    require_true(answer, explicit)
    assert answer.status is Status.TIME_LIMIT
    assert 0 <= answer.lower_bound < answer.value


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_ctrl_c_ends_with_the_best_single_policy(calls):
    blocked, explicit = worlds.twins(worlds.Scattered(), jm.EuclideanBall())

    def interrupt(event):
        if event.iteration == calls:
            os.kill(os.getpid(), signal.SIGINT)

    answer = jm.solve(blocked, SHARDED(tolerance=1e-9), observer=interrupt)
    require_true(answer, explicit)
    assert answer.status is Status.INTERRUPTED
    assert np.isin(answer.policy.per_pair, [0.0, 1.0]).all()
    assert answer.value < explicit.trivial_bound


def test_the_end_of_max_calls_is_a_mixture_with_true_bounds():
    blocked, explicit = worlds.twins(worlds.Scattered(num_states=200))
    answer = jm.solve(blocked, SHARDED(max_calls=6, tolerance=1e-9))
    require_true(answer, explicit)
    assert answer.status is Status.STEP_LIMIT
    assert not np.isin(answer.policy.per_pair, [0.0, 1.0]).all()


@pytest.mark.parametrize("seed", range(5))
def test_intervals_hold_for_any_values(seed):
    """However wrong the values are, the residuals of their equations pay for it."""
    rng = np.random.default_rng(seed)
    world = worlds.Scattered(seed=seed)
    blocked, explicit = worlds.twins(world)
    watch = Watch("test", lambda event: None)
    maker = RowMaker(world, (blocked.costs,))
    blocks = StateBlocks(maker, jm.Serial(), 4, watch)
    made = BlockedWorld(blocks)
    choice = rng.integers(0, 3, 60)
    pairs = np.arange(60) * 3 + choice
    chain, costs = explicit.world.transition[pairs], explicit.cost_matrix[pairs]
    table = rng.standard_normal((60, 5)) * rng.choice([1e-9, 1.0])
    table += np.linalg.solve(np.eye(60) - 0.9 * chain.toarray(), costs)
    residual = costs + 0.9 * (chain @ table) - table
    ends = np.stack([residual.min(axis=0), residual.max(axis=0)])
    low, high = interval(made, table, ends, np.ones(5))
    law = np.zeros(180)
    law[pairs] = 1.0
    truth = [
        expected_cost(explicit.world, jm.Policy(law.reshape(60, 3)), column)
        for column in explicit.cost_matrix.T
    ]
    assert (low <= truth).all()
    assert (truth <= high).all()
    blocks.release()


def test_what_it_cannot_use_is_refused():
    class Plain:
        def map(self, function, tasks, *, shared=None):
            return [function(task, shared) for task in tasks]

    with pytest.raises(jm.errors.InvalidSolver, match="which worker does what"):
        SHARDED(Plain())
    for wrong in ({"num_blocks": 0}, {"max_calls": 0}, {"tolerance": -1.0}, {"time_limit": 0}):
        with pytest.raises(jm.errors.InvalidSolver):
            SHARDED(**wrong)
    ragged = jm.World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    problem = jm.Apprenticeship(ragged, jm.CostBasis([1.0, 0.5, 0.0]), jm.ExpertExpectation([1.0]))
    with pytest.raises(jm.errors.InvalidWorld, match="1 to 2 actions"):
        jm.solve(problem, SHARDED())


def test_a_world_with_too_many_states_is_refused():
    world = worlds.Scattered()
    blocked, _ = worlds.twins(world)
    world.num_states = 10**12
    with pytest.raises(jm.errors.InvalidSolver, match=r"1e\+12 states"):
        jm.solve(blocked, SHARDED())
