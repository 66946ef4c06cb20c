"""Every solver keeps the promises of solvers, and none is left out here or on the command line."""

import inspect

import pytest

import journeyman as jm
from journeyman import solvers
from journeyman.runs.description import ASKING, CLASSICS, METHODS
from journeyman.solvers import (
    AdversarialImitation,
    DAgger,
    ImitationReinforce,
    ImitationTrustRegion,
    MaximumMarginPlanning,
    OccupancyMirrorDescent,
    PriorMirrorDescent,
    SampledProgram,
)
from journeyman.testing import check_solver

DEMONSTRATED = 20


def take_the_first(states):
    """An expert who can be asked."""
    return 0 * states


def over_cells(method, **settings):
    """A solver with features of the problem that it is given."""

    def made(problem):
        world = problem.world
        return method(jm.features.partition(world, num_cells=min(4, world.num_states)), **settings)

    return made


CASES = [
    (jm.LinearProgram, [{}]),
    (jm.ColumnGeneration, [{}]),
    (solvers.BandedProgram, [{}]),
    (solvers.SmoothedProgram, [{}]),
    (solvers.Projection, [{"accuracy": 0.02}]),
    (solvers.MaxMargin, [{"accuracy": 0.02}]),
    (solvers.MultiplicativeWeights, [{"accuracy": 0.1}]),
    (solvers.SampledInverseProgram, [{"max_iterations": 20}]),
    (solvers.MaximumEntropy, [{}]),
    (solvers.ConstrainedInverse, [{"tolerance": 1e-4}]),
    (solvers.ConsistentCosts, [{"max_iterations": 60}]),
    (OccupancyMirrorDescent, [{"max_iterations": 600}]),
    (PriorMirrorDescent, [{"max_iterations": 600}]),
    (solvers.ProximalPointImitation, [{"max_iterations": 2, "inner_iterations": 30}]),
    (ImitationReinforce, [{"max_iterations": 8}, {"rollouts": 5, "max_iterations": 4}]),
    (ImitationTrustRegion, [{"max_iterations": 8}, {"rollouts": 5, "max_iterations": 4}]),
    (DAgger, [{"expert": take_the_first, "max_iterations": 2, "trajectories": 2, "horizon": 4}]),
]
"""Solvers with the settings that they are tried with."""
FROM_DEMONSTRATIONS = [
    (solvers.BehaviourCloning, [{}]),
    (solvers.OfflineProximalImitation, [{"inner_iterations": 30}]),
    (solvers.InverseProgram, [{"penalty": 0.01}]),
    (
        MaximumMarginPlanning,
        [
            {"regulariser": 1.0, "corrective": one, "accuracy": 1e-2, "max_iterations": 40}
            for one in (False, True)
        ],
    ),
    (solvers.PolicyMatching, [{"max_iterations": 20, "accuracy": 1e-5}]),
    (solvers.MaximumLikelihood, [{}]),
    (solvers.GaussianProcessCosts, [{"max_iterations": 3}]),
    (solvers.FeatureConstruction, [{"max_iterations": 3}]),
    (
        AdversarialImitation,
        [
            {"max_iterations": 5},
            {"tabular_discriminator": True, "entropy": 0.1, "max_iterations": 5},
            {"rollouts": 5, "max_iterations": 4},
        ],
    ),
]
WITHOUT_A_CLASS = (solvers.GaussianProcessCosts, solvers.FeatureConstruction, DAgger)
"""What they do does not depend on the class, and one of them is enough."""
OVER_FEATURES = {
    jm.ReducedProgram: {},
    jm.StochasticSubgradient: {"steps": 500},
    solvers.StochasticPrimalDual: {},
    SampledProgram: {"num_rows": 200, "seed": 0},
}
OTHER_ANSWERS = {
    solvers.PolicyMixture: "a mixture of policies, and estimates from rollouts",
    solvers.CrossFittedClone: "for records alone: a policy for every fold, without a value",
    solvers.ShardedColumns: "for functions on state ids: a policy by values, without a witness",
    solvers.RationalProgram: "OPTIMAL is about the regret, where the premise is not refuted",
}
"""Answers that say something else than `check_solver` asks for; they have tests of their own."""


def exported():
    """All names of `jm.solvers` that are solvers."""
    for name in solvers.__all__:
        found = getattr(solvers, name)
        if inspect.isclass(found) and hasattr(found, "run") and found is not solvers.Solver:
            yield found


def test_no_solver_is_left_out():
    checked = {kind for kind, _ in (*CASES, *FROM_DEMONSTRATIONS)} | OVER_FEATURES.keys()
    assert not checked & OTHER_ANSWERS.keys()
    assert checked | OTHER_ANSWERS.keys() == set(exported())


@pytest.mark.parametrize(
    ("kind", "settings", "trajectories"),
    [
        pytest.param(kind, settings, count, id=f"{kind.__name__} {number}")
        for cases, count in ((CASES, 0), (FROM_DEMONSTRATIONS, DEMONSTRATED))
        for kind, several in cases
        for number, settings in enumerate(several)
    ],
)
def test_a_solver_keeps_the_promises(kind, settings, trajectories):
    classes = (jm.InfinityBall,) if kind in WITHOUT_A_CLASS else ()
    check_solver(kind(**settings), classes=classes, trajectories=trajectories, seeds=1)


@pytest.mark.parametrize("kind", OVER_FEATURES, ids=lambda kind: kind.__name__)
def test_a_solver_over_features_keeps_them(kind):
    check_solver(over_cells(kind, **OVER_FEATURES[kind]), seeds=1)


NAMED = {
    "linear-program": jm.LinearProgram,
    "banded-program": solvers.BandedProgram,
    "column-generation": jm.ColumnGeneration,
    "smoothed-program": solvers.SmoothedProgram,
    "reduced-program": jm.ReducedProgram,
    "primal-dual": solvers.StochasticPrimalDual,
    "sgd-al": jm.StochasticSubgradient,
}
WITHOUT_A_NAME = {
    solvers.CrossFittedClone: "what `journeyman clone` takes for records alone",
    solvers.RationalProgram: "what --expert-is with a premise about a cost takes",
    SampledProgram: "for drawn rows of worlds that are no file",
    solvers.ShardedColumns: "for worlds of functions on state ids, which are no file",
    solvers.PolicyMixture: "has a command of its own, `mixture`",
}


def test_every_solver_has_a_name_on_the_command_line():
    named = NAMED | {name: getattr(solvers, one) for name, one in (CLASSICS | ASKING).items()}
    assert named.keys() == {*METHODS, *ASKING}
    assert set(named.values()) | WITHOUT_A_NAME.keys() == set(exported())
