"""What a world can do decides what can be asked of a problem, and one place refuses."""

from functools import partial
from importlib import import_module

import numpy as np
import pytest

import journeyman as jm
from journeyman.demonstrations.simulation import WorldSimulator
from journeyman.world.levels import Level, level_of, require_level

default_choice = import_module("journeyman.solvers.solve")  # the package shows the function

NETWORK = jm.gallery.queues(4, buffers=(2, 2, 2, 2), discount=0.8)
DEMOS = jm.record(NETWORK.world, NETWORK.longer, trajectories=30, horizon=20, seed=0)
GRID = jm.gallery.grid(4)


class Sampled:
    """The network, with steps in place of laws."""

    num_states, num_actions = NETWORK.world.num_states, NETWORK.world.num_actions
    discount = NETWORK.world.discount
    draw_initial = staticmethod(NETWORK.world.draw_initial)
    initial_probability = staticmethod(NETWORK.world.initial_probability)

    def step(self, rng, states, actions):
        law = NETWORK.world.successors(states, actions)
        return law.states[np.arange(len(states)), law.probabilities.argmax(axis=1)]


class Recorded:
    discount = 0.9


def stepped(expert=DEMOS):
    return jm.Apprenticeship(NETWORK.world, NETWORK.costs, expert)


def simulated():
    simulator = WorldSimulator(NETWORK.world, NETWORK.costs)
    totals = jm.demonstrations.record_totals(
        simulator, NETWORK.longer, trajectories=30, horizon=20, seed=0
    )
    return jm.Apprenticeship(simulator, None, totals)


def explicit():
    demos = jm.record(GRID.world, GRID.expert, trajectories=30, horizon=20, seed=0)
    return jm.Apprenticeship(GRID.world, GRID.basis, demos)


def test_levels_include_those_before():
    assert Level.RECORDED < Level.SAMPLED < Level.STEPPED < Level.EXPLICIT
    worlds = Recorded(), Sampled(), NETWORK.world, GRID.world
    assert [level_of(world) for world in worlds] == list(Level)


def test_costs_that_are_functions_have_no_matrix():
    assert explicit().level is Level.EXPLICIT
    functions = explicit().cost_functions
    again = jm.Apprenticeship(GRID.world, functions, explicit().expert)
    assert again.level is Level.STEPPED
    assert simulated().level is Level.SAMPLED


@pytest.mark.parametrize("needed", list(Level))
@pytest.mark.parametrize("problem", [simulated, stepped, explicit])
def test_one_place_refuses(problem, needed):
    asked = partial(require_level, problem(), needed, "a test")
    if problem().level >= needed:
        asked()
        return
    with pytest.raises(
        jm.errors.InvalidProblem, match=f"a test needs the level {needed.name}"
    ) as found:
        asked()
    assert f"has the level {problem().level.name}" in str(found.value)
    assert "PolicyMixture" in str(found.value)


@pytest.mark.parametrize("problem", [simulated, stepped])
def test_what_needs_arrays_is_refused_below(problem):
    given = problem()
    for ask in (
        partial(jm.solve, given),
        partial(jm.solve, given, jm.LinearProgram()),
        partial(jm.solve, given, jm.solvers.BehaviourCloning()),
        partial(jm.certify, given, NETWORK.longer),
        partial(given.gap, NETWORK.longer),
        lambda: given.budget_matrix,
    ):
        with pytest.raises(jm.errors.InvalidProblem, match="needs the level EXPLICIT"):
            ask()


def test_a_simulator_has_costs_of_its_own():
    simulator = WorldSimulator(NETWORK.world, NETWORK.costs)
    totals = jm.EpisodeTotals(np.zeros((3, 5)), unrecorded=5.0)
    assert jm.Apprenticeship(simulator, NETWORK.costs, totals).costs is NETWORK.costs
    with pytest.raises(jm.errors.InvalidProblem, match="costs of its own"):
        jm.Apprenticeship(simulator, GRID.basis, totals)
    with pytest.raises(jm.errors.InvalidProblem, match="the expert is a Demonstrations"):
        jm.Apprenticeship(simulator, None, DEMOS)


def test_costs_and_world_have_to_fit():
    with pytest.raises(jm.errors.InvalidProblem, match="no list of pairs"):
        jm.Apprenticeship(NETWORK.world, GRID.basis, DEMOS)
    with pytest.raises(jm.errors.InvalidProblem, match="world is a CostBasis"):
        jm.Apprenticeship(GRID.basis, GRID.world, DEMOS)
    with pytest.raises(jm.errors.InvalidDemonstrations, match="states"):
        stepped(jm.Demonstrations([0, 10**6], [0], [0, 1]))


def test_learning_works_at_every_level():
    rollouts = jm.Rollouts(trajectories=200, horizon=20)
    mixture = jm.PolicyMixture([NETWORK.longer, NETWORK.lbfs], rollouts=50, horizon=20, seed=0)
    found = jm.learn(NETWORK.world, NETWORK.costs, DEMOS, solver=mixture, evaluation=rollouts)
    assert found.certificate.bound > 0
    assert found.answer.reason == ""
    with pytest.raises(
        jm.errors.InvalidProblem, match="the default solver, an exact program, needs"
    ):
        jm.learn(NETWORK.world, NETWORK.costs, DEMOS, evaluation=rollouts)


def test_solve_and_learn_choose_by_one_rule(monkeypatch):
    problem = explicit()
    alone, learned = jm.solve(problem), jm.learn(GRID.world, GRID.basis, problem.expert).answer
    assert alone.reason == learned.reason == f"a small world of {GRID.world.num_pairs} pairs"
    for name in ("SMALL", "NARROW", "BANDED"):
        monkeypatch.setattr(default_choice, name, 10)
    alone, learned = jm.solve(problem), jm.learn(GRID.world, GRID.basis, problem.expert).answer
    assert alone.reason == learned.reason
    assert "large world" in alone.reason
    exact = jm.Apprenticeship(GRID.world, GRID.basis, jm.ExpertExpectation(problem.target))
    assert isinstance(default_choice.default_solver(exact).solver, jm.ColumnGeneration)
