"""Certificates of episodes with a horizon: over many seeded runs each statement fails at most delta
of the time, for experts that act by time, complete records and records that are cut off."""

import sys
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest

import journeyman as jm
from journeyman.certificate.expert_estimates import expert_estimates
from journeyman.certificate.terms import total
from journeyman.testing import Shape, random_world
from journeyman.testing.random_worlds import random_policy

pytestmark = pytest.mark.slow
RUNS = 300
DELTAS = (0.05, 0.3)
SURE = 1e-4
"""Probability with which a test of a true statement may fail by chance."""
KINDS = {"l1": jm.InfinityBall, "l2": jm.EuclideanBall, "simplex": jm.Simplex}
UNTRUE = "bound without the error of the estimate"
"""Counted to show that the runs can tell a true statement from a false one."""
STATEMENTS = ("bound", "all policies", "intervals", "valid", "consistency")


def drawn(run):
    """World, basis, expert, its exact expectations, and a record of it."""
    rng = np.random.default_rng(run)
    shape = (Shape.RAGGED, Shape.DENSE, Shape.SPARSE, Shape.ABSORBING)[run % 4]
    base = random_world(run, shape, num_states=int(rng.integers(2, 8)))
    steps = int(rng.integers(1, 12))
    world = base.with_horizon(steps, discount=1.0 if run % 3 else float(rng.uniform(0.5, 1)))
    low = float(rng.choice([-1.0, 0.0]))
    basis = jm.CostBasis(rng.uniform(low, 1.0, size=(base.num_pairs, 3)))
    expert = random_policy(world, seed=run)
    truth = jm.occupancy(world, expert).expectations(basis)
    count = int(rng.choice([2, 5, 40, 300]))
    length = steps if run % 5 else max(1, steps // 2)
    demos = jm.record(world, expert, trajectories=count, horizon=length, seed=run)
    return world, basis, truth, demos


def failures(run, kind, delta):
    """Which statements of a certificate are wrong, and its share of the trivial bound."""
    world, basis, truth, demos = drawn(run)
    problem = jm.Apprenticeship(world, basis, demos, KINDS[kind]())
    exact = jm.Apprenticeship(world, basis, jm.ExpertExpectation(truth), KINDS[kind]())
    candidates = [random_policy(world, seed=1000 + k) for k in range(4)]
    candidates += [jm.clone(demos, world), jm.Policy.uniform(world)]
    favour = [exact.gap(one) - problem.gap(one) for one in candidates]
    policy = candidates[int(np.argmax(favour))]
    gap, tiny = exact.gap(policy), 1e-9 * problem.gap_scale
    certificate = jm.certify(problem, policy, delta)
    same = jm.Apprenticeship(world, basis, demos, KINDS[kind](), expert_is=jm.Stationary())
    on_data = min(way.terms[0].value for way in certificate.combinations)
    wrong = {
        "bound": certificate.bound < gap - tiny,
        "all policies": any(
            problem.cost_class.gap(one.values - truth) > total(one.terms) + tiny
            for one in expert_estimates(problem, delta)
        ),
        "intervals": any(
            not one.low - tiny <= value <= one.high + tiny
            for one, value in zip(certificate.expert_intervals, truth, strict=True)
        ),
        "valid": not certificate.valid,
        "consistency": jm.certify(same, policy, delta).bound < gap - tiny,
        UNTRUE: on_data < gap - tiny,
    }
    return wrong, certificate.share


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("delta", DELTAS)
def test_certificates_of_episodes_fail_no_more_often_than_they_say(kind, delta):
    counts, shares = Counter(), []
    for run in range(RUNS):
        wrong, share = failures(run, kind, delta)
        counts.update(what for what, failed in wrong.items() if failed)
        shares.append(share)
    rates = ", ".join(f"{what} {counts[what] / RUNS:.4f}" for what in (*STATEMENTS, UNTRUE))
    sys.stdout.write(f"\n{kind}, delta {delta}: {rates}; share {np.median(shares):.2f}\n")
    for statement in STATEMENTS:
        test = binomtest(counts[statement], RUNS, delta, "greater")
        assert test.pvalue > SURE, (statement, counts[statement])
    assert binomtest(counts[UNTRUE], RUNS, delta, "greater").pvalue <= SURE
