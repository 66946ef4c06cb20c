"""Certificates of average costs: over many seeded runs each statement fails at most delta of the
time, for stationary experts, records of many lengths, and starts far from the stationary law."""

import sys
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest

import journeyman as jm
from journeyman.certificate.expert_estimates import expert_estimates
from journeyman.certificate.terms import total

pytestmark = pytest.mark.slow
RUNS = 300
DELTAS = (0.05, 0.3)
SURE = 1e-4
"""Probability with which a test of a true statement may fail by chance."""
KINDS = {"l1": jm.InfinityBall, "l2": jm.EuclideanBall, "simplex": jm.Simplex}
UNTRUE = "bound without the error of the estimate"
"""Counted to show that the runs can tell a true statement from a false one."""
STATEMENTS = ("bound", "all policies", "intervals", "valid")


def drawn(run):
    """World, basis, exact expectations of a stationary expert, and a record of it."""
    rng = np.random.default_rng(run)
    size, count = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    rows = rng.dirichlet(np.full(size, rng.choice([0.05, 0.5, 2.0])), size=size * count)
    rows = 0.9 * rows + 0.05 * np.eye(size)[0] + 0.05 * np.eye(size)[1]
    world = jm.World(rows, np.eye(size)[int(rng.integers(size))], 0.9).with_average_cost()
    low = float(rng.choice([-1.0, 0.0]))
    basis = jm.CostBasis(rng.uniform(low, 1.0, size=(size * count, 3)))
    expert = jm.Policy(rng.dirichlet(np.ones(count), size=size))
    truth = jm.occupancy(world, expert).expectations(basis)
    records = int(rng.choice([1, 2, 5, 40, 300]))
    length = int(rng.choice([3, 30, 1000, 20_000] if records < 5 else [3, 30, 300]))
    demos = jm.record(world, expert, trajectories=records, horizon=length, seed=run)
    return world, basis, truth, demos


def failures(run, kind, delta):
    """Which statements of a certificate are wrong, and its share of the trivial bound."""
    world, basis, truth, demos = drawn(run)
    problem = jm.Apprenticeship(world, basis, demos, KINDS[kind]())
    exact = jm.Apprenticeship(world, basis, jm.ExpertExpectation(truth), KINDS[kind]())
    rng = np.random.default_rng(run)
    size, count = world.averages.num_states, world.averages.base.num_actions
    candidates = [jm.Policy(rng.dirichlet(np.ones(count), size=size)) for _ in range(4)]
    candidates += [jm.clone(demos, world), jm.Policy.uniform(world)]
    favour = [exact.gap(one) - problem.gap(one) for one in candidates]
    policy = candidates[int(np.argmax(favour))]
    gap, tiny = exact.gap(policy), 1e-9 * problem.gap_scale
    certificate = jm.certify(problem, policy, delta)
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
        UNTRUE: on_data < gap - tiny,
    }
    return Counter(name for name, is_wrong in wrong.items() if is_wrong), certificate.share


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("kind", KINDS)
def test_statements_fail_at_most_delta_of_the_time(kind, delta):
    found: Counter[str] = Counter()
    informative = 0
    for run in range(RUNS):
        wrong, share = failures(run, kind, delta)
        found += wrong
        informative += share < 0.5
    sys.stderr.write(f"\n{kind}, delta {delta}: {dict(found)}, {informative} say something\n")
    for name in STATEMENTS:
        allowed = 3e-3 if name == "valid" else delta
        assert binomtest(found[name], RUNS, allowed, alternative="greater").pvalue > SURE, name
    assert found[UNTRUE] > 0.3 * RUNS
    assert informative > 0.1 * RUNS
