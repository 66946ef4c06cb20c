"""The guarantees that rest on samples other than demonstrations, run many times over.

Beside each count stands that of the bound without its error terms, which has to fail too often: the
runs can tell a true statement from a false one.
"""

import sys
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import journeyman as jm
from seeding import drawn_from

pytestmark = pytest.mark.slow

RUNS, DELTA = 400, 0.1
CLASSES = {"l1": jm.InfinityBall(), "l2": jm.EuclideanBall(), "simplex": jm.Simplex()}
every_class = pytest.mark.parametrize("name", CLASSES)


@cache
def setting(seed, name):
    """A small world, an expert who is known exactly, and a policy that is not the expert's."""
    world, basis, expert = jm.gallery.garnet(6, seed=seed, discount=0.8)
    exact = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    problem = jm.Apprenticeship(world, basis, exact, CLASSES[name])
    return problem, expert.mixed_with(jm.Policy.uniform(world), 0.5)


def judge(what, name, failures, untrue=RUNS):
    sys.stdout.write(
        f"{what:<26}{name:<8} fails in {failures / RUNS:.4f} of {RUNS} runs, {DELTA} is allowed; "
        f"without error terms {untrue / RUNS:.4f}\n"
    )
    most = binom(RUNS, DELTA).ppf(0.999)
    assert failures <= most < untrue


def falls_short(certificate, truth):
    """Whether bound, and bound without its error terms, are below the truth."""
    bare = min(way.terms[0].value for way in certificate.combinations)
    return np.array([certificate.best.bound < truth, bare < truth])


@every_class
def test_rollouts(name):
    failures = np.zeros(2, dtype=int)
    for seed in range(RUNS):
        problem, policy = setting(seed % 20, name)
        rollouts = jm.Rollouts(trajectories=40, horizon=40)
        with drawn_from(seed):
            certificate = jm.certify(problem, policy, DELTA, evaluation=rollouts)
        failures += falls_short(certificate, problem.gap(policy))
    judge("rollouts", name, *failures)


@every_class
def test_sampled_rows(name):
    failures = np.zeros(2, dtype=int)
    for seed in range(RUNS):
        problem, policy = setting(seed % 20, name)
        columns = np.column_stack([
            jm.occupancy(problem.world, one).measure
            for one in (policy, jm.Policy.uniform(problem.world))
        ])  # fmt: skip
        features = jm.features.Features(
            columns + 0.05 * np.random.default_rng(seed).normal(size=columns.shape)
        )
        theta = np.array([0.7, 0.3])
        chosen = jm.policy.extract(problem.world, features.measure(theta))
        rows = jm.SampledRows(features, theta, rows=200)
        certificate = jm.certify(problem, chosen, DELTA, evaluation=rows)
        failures += falls_short(certificate, problem.gap(chosen))
    judge("sampled rows", name, *failures)


@every_class
@pytest.mark.filterwarnings("ignore::journeyman.errors.SupportWarning")
def test_model_error(name):
    """The model is made from counted transitions; the figures are to hold in the true world."""
    gaps, budgets, least = np.zeros(2, dtype=int), np.zeros(2, dtype=int), 0
    for seed in range(RUNS):
        truth, policy = setting(seed % 20, name)
        world, rng = truth.world, np.random.default_rng(seed)
        count = int(rng.choice([20, 200, 2000]))
        pairs = np.repeat(np.arange(world.num_pairs), count)
        uniforms = rng.random(pairs.size)
        after = (np.cumsum(world.transition.toarray(), axis=1)[pairs] < uniforms[:, None]).sum(
            axis=1
        )
        model = jm.World.from_transitions(
            world.pairs.states[pairs], world.pairs.actions[pairs],
            np.minimum(after, world.num_states - 1), world.discount, initial=world.initial,
            support=world.transition,
        )  # fmt: skip
        budget = jm.Budget(cost=np.arange(world.num_states, dtype=float), at_most=0.0, name="d")
        problem = jm.Apprenticeship(
            model, truth.basis, truth.expectation, truth.cost_class, constraints=budget
        )
        certificate = jm.certify(problem, policy, DELTA)
        visits = jm.occupancy(world, policy).measure
        best = jm.solve(truth).value if name == "simplex" else 0.0
        free = jm.certify(jm.Apprenticeship(model, truth.basis, truth.expectation,
                                            truth.cost_class), policy, DELTA)  # fmt: skip
        (known,) = certificate.budgets
        spent = visits @ budget.on(world)
        gaps += falls_short(certificate, truth.gap(policy))
        budgets += np.array([known.spent < spent, known.terms[0].value < spent])
        least += free.lower_bound > best + 1e-9
    judge("model error, gap", name, *gaps)
    judge("model error, budget", name, *budgets)
    judge("model error, lower bound", name, least)
