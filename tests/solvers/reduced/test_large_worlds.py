"""Solvers that see a world through callables only: the same answers, and nothing as long as it."""

import os
import signal
import tracemalloc

import numpy as np
import pytest

import journeyman as jm
from journeyman.features.base import every_action
from journeyman.problem import drawn
from journeyman.problem.drawn import DrawnReduced
from journeyman.problem.surrogate import Surrogate

NETWORK = jm.gallery.queues(4, buffers=(5, 4, 4, 5), discount=0.9)
EXPLICIT, BASIS = NETWORK.explicit()
DEMOS = jm.record(NETWORK.world, NETWORK.longer, trajectories=40, horizon=60, seed=0)
TARGET = jm.Apprenticeship(NETWORK.world, NETWORK.costs, DEMOS).target


@pytest.fixture(autouse=True)
def _fewer_pairs(monkeypatch):
    """Behind the expected overflow of the columns."""
    monkeypatch.setattr(drawn, "MATCHING_BLOCKS", 4)
    monkeypatch.setattr(drawn, "FRESH_BLOCKS", 4)


def features_of(world, knots=2):
    heuristics = [NETWORK.longer, NETWORK.uniform]
    return jm.features.factored(world, NETWORK.radix, DEMOS, heuristics, knots)


def problem_of(world):
    return jm.Apprenticeship(world, NETWORK.costs, jm.ExpertExpectation(TARGET))


LARGE, FEATURES = problem_of(NETWORK.world), features_of(NETWORK.world)


def solvers_for(features):
    return {
        "SGD-AL": jm.StochasticSubgradient(features, steps=500, seed=3),
        "sampled": jm.solvers.SampledProgram(features, num_rows=1000, seed=3),
    }


@pytest.fixture(scope="module")
def surrogate():
    """The same surrogate, from arrays."""
    everything = every_action(np.arange(EXPLICIT.num_states), EXPLICIT.num_actions)
    problem = jm.Apprenticeship(EXPLICIT, BASIS, jm.ExpertExpectation(TARGET))
    columns = jm.features.Features(FEATURES.rows(*everything).toarray())
    return jm.problem.Surrogate(
        jm.problem.Reduced(problem, columns), jm.ExactPenalty(), jm.solvers.RowNorms()
    )


@pytest.mark.parametrize("kind", ["SGD-AL", "sampled"])
def test_a_world_by_callables_gives_the_answer_of_its_arrays(kind):
    by_callables = jm.solve(LARGE, solvers_for(FEATURES)[kind])
    twin = features_of(EXPLICIT)
    by_arrays = jm.solve(problem_of(EXPLICIT), solvers_for(twin)[kind])
    tolerance = 1e-12 if kind == "SGD-AL" else 1e-6
    np.testing.assert_allclose(
        by_callables.reduced.coefficients, by_arrays.reduced.coefficients, rtol=0, atol=tolerance
    )
    assert by_callables.reduced.loss == pytest.approx(by_arrays.reduced.loss, abs=1e3 * tolerance)


@pytest.mark.parametrize("kind", ["SGD-AL", "sampled"])
def test_the_estimated_loss_is_the_exact_one_within_its_error(kind, surrogate):
    answer = jm.solve(LARGE, solvers_for(FEATURES)[kind])
    theta = answer.reduced.coefficients
    penalties = surrogate.value(theta) - surrogate.matching_error(theta)
    assert 0 < answer.reduced.sampled_error < 0.05 * penalties
    assert (
        abs(answer.reduced.loss - answer.reduced.matching_error - penalties)
        < 5 * answer.reduced.sampled_error
    )
    assert answer.reduced.matching_error == pytest.approx(surrogate.matching_error(theta), abs=0.02)
    assert answer.policy.probabilities([0]).sum() == pytest.approx(1)


def test_the_surrogate_of_callables_is_that_of_arrays(surrogate):
    ours, theirs = Surrogate(DrawnReduced(LARGE, FEATURES, seed=0)), surrogate.reduced
    assert ours.penalties == surrogate.penalties
    np.testing.assert_allclose(ours.reduced.matching[:4], theirs.matching[:4], rtol=1e-12)
    np.testing.assert_allclose(ours.reduced.matching[4], theirs.matching[4], rtol=0.1)


def test_more_rows_come_closer_to_the_exact_program(surrogate):
    problem, columns = surrogate.reduced.problem, surrogate.reduced.features
    least = jm.solve(problem, jm.ReducedProgram(columns)).reduced.loss
    excess = [
        surrogate.value(
            jm.solve(
                LARGE, jm.solvers.SampledProgram(FEATURES, num_rows=rows, seed=0)
            ).reduced.coefficients
        )
        - least
        for rows in (200, 20_000)
    ]
    assert -1e-6 <= excess[1] < 0.1 * excess[0]
    assert excess[1] < 0.01 * least


def trace_of(answer):
    """Step, loss and its standard error, row by row."""
    return np.array([(one.step, one.loss, one.error) for one in answer.optimisation.trace])


def test_descent_comes_close_to_the_exact_program(surrogate):
    problem, columns = surrogate.reduced.problem, surrogate.reduced.features
    least = jm.solve(problem, jm.ReducedProgram(columns)).reduced.loss
    answer = jm.solve(LARGE, jm.StochasticSubgradient(FEATURES, steps=8000, seed=0))
    assert answer.status is jm.Status.STEP_LIMIT
    assert answer.optimisation.steps == 8000
    assert least - 1e-6 <= surrogate.value(answer.reduced.coefficients) < 1.02 * least
    steps, losses, errors = trace_of(answer).T
    assert (np.diff(steps) > 0).all()
    assert losses[-1] == answer.reduced.loss
    assert (errors > 0).all()


@pytest.mark.parametrize("kind", ["SGD-AL", "sampled"])
def test_a_seed_decides_everything(kind):
    first, again = (jm.solve(LARGE, solvers_for(FEATURES)[kind]) for _ in range(2))
    other = jm.solve(LARGE, solvers_for(FEATURES)[kind], seed=4)
    assert first.reduced.coefficients.tobytes() == again.reduced.coefficients.tobytes()
    assert (first.reduced.loss, first.reduced.sampled_error) == (
        again.reduced.loss,
        again.reduced.sampled_error,
    )
    assert not np.array_equal(first.reduced.coefficients, other.reduced.coefficients)


def test_executors_do_not_change_a_bit():
    plain = jm.StochasticSubgradient(FEATURES, steps=2100, seed=1)
    serial = jm.solve(LARGE, plain)
    with jm.Processes(2) as executor:
        spread = jm.solve(
            LARGE, jm.StochasticSubgradient(FEATURES, steps=2100, seed=1, executor=executor)
        )
    assert serial.reduced.coefficients.tobytes() == spread.reduced.coefficients.tobytes()
    assert trace_of(serial).tobytes() == trace_of(spread).tobytes()


def test_steps_that_do_not_fill_a_block_are_all_taken():
    for batch, steps in ((1, 100), (32, 513), (20_000, 2)):
        solver = jm.StochasticSubgradient(FEATURES, steps=steps, batch=batch, seed=0)
        assert jm.solve(LARGE, solver).optimisation.steps == steps


def test_limits_end_with_a_status_and_a_policy():
    def press(event):
        os.kill(os.getpid(), signal.SIGINT)

    endless = jm.StochasticSubgradient(FEATURES, steps=10**9, seed=0)
    late = jm.solve(LARGE, endless, time_limit=0.01)
    stopped = jm.solve(LARGE, endless, observer=press)
    assert late.status is jm.Status.TIME_LIMIT
    assert stopped.status is jm.Status.INTERRUPTED
    for answer in (late, stopped):
        assert 0 < answer.optimisation.steps < 10**6
        assert np.isfinite(answer.reduced.loss)
        assert answer.policy.probabilities([5]).sum() == pytest.approx(1)


class Sampled:
    """The network as something that can only be run."""

    num_states, num_actions, discount = 900, 4, 0.9

    def draw_initial(self, rng, count):
        return NETWORK.world.draw_initial(rng, count)

    def initial_probability(self, states):
        return NETWORK.world.initial_probability(states)

    def step(self, rng, states, actions):
        return states


@pytest.mark.parametrize("kind", ["SGD-AL", "sampled"])
def test_what_cannot_be_solved_is_refused(kind):
    other = jm.gallery.queues(4, buffers=(5, 4, 4, 4), discount=0.9)
    foreign = jm.features.factored(
        other.world, other.radix, jm.record(other.world, other.longer, trajectories=2, horizon=3,
                                            seed=0), [other.longer], 2,
    )  # fmt: skip
    with pytest.raises(jm.errors.InvalidSolver, match="the features are for 750 states"):
        jm.solve(LARGE, solvers_for(foreign)[kind])
    sampled = jm.Apprenticeship(Sampled(), NETWORK.costs, jm.ExpertExpectation(TARGET))
    with pytest.raises(jm.errors.InvalidProblem, match="has the level SAMPLED"):
        jm.solve(sampled, solvers_for(FEATURES)[kind])
    arrays = jm.Apprenticeship(EXPLICIT, BASIS, jm.ExpertExpectation(TARGET))
    with pytest.raises(jm.errors.InvalidSolver, match="features of a large world"):
        jm.solve(arrays, solvers_for(FEATURES)[kind])
    with pytest.raises(jm.errors.InvalidProblem, match="needs the level EXPLICIT"):
        jm.solve(LARGE, solvers_for(jm.features.Features(np.ones((3600, 1))))[kind])


def pipeline(network, monkeypatch):
    """From demonstrations to a certificate; the peak of what was allocated for it, in bytes."""
    monkeypatch.setattr(drawn, "MATCHING_BLOCKS", 1)
    monkeypatch.setattr(drawn, "FRESH_BLOCKS", 2)
    monkeypatch.setattr(drawn, "MATCHING_BLOCK", 1 << 11)
    monkeypatch.setattr("journeyman.demonstrations.stepped_control_variate.STARTS", 1 << 10)
    monkeypatch.setattr("journeyman.solvers.reduced.rows.BLOCK_ROWS", 1 << 11)
    monkeypatch.setattr("journeyman.solvers.reduced.stochastic_subgradient.FRESH_ROWS", 1 << 11)
    tracemalloc.start()
    try:
        world, radix = network.world, network.radix
        demos = jm.record(world, network.longer, trajectories=20, horizon=30, seed=0)
        cloned = jm.features.cloned(world, radix, demos, 2)
        walks = jm.record(world, cloned, trajectories=20, horizon=30, seed=1)
        knots = [2, 2, 2, 2, *[1] * (radix.num_factors - 4)]
        features = jm.features.factored(world, radix, walks, [cloned, network.uniform], knots)
        problem = jm.Apprenticeship(world, network.costs, demos)
        answer = jm.solve(problem, jm.StochasticSubgradient(features, steps=64, seed=0))
        actions, _ = answer.policy.seeded(0).predict(demos.step_states[:100])
        for evaluation in (
            jm.Rollouts(trajectories=50, horizon=20), jm.SampledRows(rows=500),
        ):  # fmt: skip
            assert jm.certify(problem, answer, evaluation=evaluation).valid
        return actions, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_ten_to_the_sixteen_states_take_no_more_room_than_their_rows(monkeypatch):
    network = jm.gallery.queues(8)
    actions, peak = pipeline(network, monkeypatch)
    assert network.world.num_states == 10**16
    assert actions.shape == (100,)
    assert peak < 100e6


def test_nothing_grows_with_the_number_of_states(monkeypatch):
    """One byte for each state of the larger world would be 15 MB more than in the smaller."""
    small, large = jm.gallery.queues(4), jm.gallery.queues(4, buffers=(77, 51, 51, 77))
    pipeline(small, monkeypatch)  # imports and kernels
    peaks = [pipeline(network, monkeypatch)[1] for network in (small, large)]
    more = large.world.num_states - small.world.num_states
    assert more > 15e6
    assert peaks[1] - peaks[0] < more / 4
