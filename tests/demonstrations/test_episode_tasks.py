"""Totals of demonstrations by tasks of episodes: the bits of the whole, whoever adds them up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
import task_work as work
from journeyman.demonstrations import expectation
from journeyman.demonstrations.expectation import by_tasks, recorded_totals
from journeyman.testing.strategies import policies, seeds, worlds

WORLD, BASIS, EXPERT = jm.gallery.grid(size=5, macro_cells=5)
DEMOS = jm.record(WORLD, EXPERT, trajectories=60, horizon=40, seed=0)
THIN = jm.CostBasis(sparse.csr_array(BASIS.matrix))
METHODS = [jm.demonstrations.MonteCarlo(), jm.demonstrations.ControlVariate()]


@pytest.fixture(scope="module")
def pools():
    with jm.Processes(1) as one, jm.Processes(2) as two:
        yield one, two


@pytest.fixture
def small_tasks(monkeypatch):
    """Eight tasks, or as many for every fold."""
    monkeypatch.setattr(expectation, "EPISODES_PER_TASK", 8)


def bits(expectation):
    figures = expectation.values, expectation.spread, np.float64(expectation.truncation_mass)
    return [figure.tobytes() for figure in figures]


def of(demos, basis, method, executor=None):
    return jm.ExpertExpectation.from_demonstrations(
        demos, basis, WORLD, method=method, executor=executor
    )


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("basis", [BASIS, THIN], ids=["dense", "sparse"])
def test_executors_do_not_change_a_bit(small_tasks, pools, basis, method):
    expected = bits(of(DEMOS, basis, method))
    for executor in (jm.Serial(), *pools):
        assert bits(of(DEMOS, basis, method, executor)) == expected


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_work_goes_to_the_executor_task_by_task(small_tasks, method):
    seen = []
    of(DEMOS, BASIS, method, jm.Serial(observer=seen.append))
    assert len(seen) == 8  # 60 episodes, or twice 30


@given(st.data(), seeds, st.integers(1, 30))
def test_tasks_of_any_size_have_the_bits_of_the_whole(data, seed, size):
    world = data.draw(worlds())
    policy = data.draw(policies(world))
    demos = jm.record(world, policy, trajectories=25, horizon=9, seed=seed)
    matrix = np.random.default_rng(seed).normal(size=(world.num_pairs, 3))
    whole = recorded_totals(demos, matrix, world)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expectation, "EPISODES_PER_TASK", size)
        parts = by_tasks(recorded_totals, demos, matrix, world)
    assert parts.tobytes() == whole.tobytes()


def test_a_task_lost_with_its_worker_is_added_up_again(small_tasks, pools, tmp_path):
    executor = work.Losing(pools[1], tmp_path / "killed")
    found = of(DEMOS, BASIS, jm.demonstrations.MonteCarlo(), executor)
    assert (tmp_path / "killed").exists()
    assert bits(found) == bits(of(DEMOS, BASIS, jm.demonstrations.MonteCarlo()))


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_an_impossible_step_is_named_by_its_episode_among_all(small_tasks, pools, method):
    states = DEMOS.states.copy()
    states[41 * 41 + 5] = (states[41 * 41 + 5] + 12) % WORLD.num_states
    bad = jm.Demonstrations(states, DEMOS.actions, DEMOS.offsets)
    for executor in (None, pools[1]):
        with pytest.raises(jm.errors.InvalidDemonstrations, match="episode 41, step 4") as caught:
            of(bad, BASIS, method, executor)
        assert caught.value.__context__ is None


def test_other_refusals_are_passed_on():
    few = DEMOS.subset(np.arange(1))
    with pytest.raises(jm.errors.InvalidDemonstrations, match="cannot be cut into 2 folds"):
        of(few, BASIS, jm.demonstrations.ControlVariate())


def test_an_expectation_of_tasks_states_a_problem(small_tasks, pools):
    found = of(DEMOS, BASIS, None, pools[1])
    problem = jm.Apprenticeship(WORLD, BASIS, found)
    assert problem.demonstrations is DEMOS
    assert problem.target.tobytes() == jm.Apprenticeship(WORLD, BASIS, DEMOS).target.tobytes()
