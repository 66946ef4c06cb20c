"""The guarantee itself: over many seeded runs each statement fails at most delta of the time.

Whether a run fails is decided by exact expectations of the expert. The certified policy is the one
that the record favours most over the truth: a bound holds for all policies at once or not at all.
"""

import sys
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest

import journeyman as jm
from journeyman.certificate.expert_estimates import expert_estimates
from journeyman.certificate.terms import total
from slow.coverage_runs import LAST_ACTION, PARITY, SETTINGS, Remembering, setting

pytestmark = pytest.mark.slow
RUNS = 420
WORLDS = 4
DELTAS = (0.05, 0.3)
SURE = 1e-4
"""Probability with which a test of a true statement may fail by chance."""
KINDS = {"l1": jm.InfinityBall, "l2": jm.EuclideanBall, "simplex": jm.Simplex}
UNTRUE = "bound without the error of the estimate"
"""Counted to show that the runs can tell a true statement from a false one."""
STATEMENTS = ("bound", "all policies", "lower bound", "intervals", "alarm", "valid")


def drawn_settings():
    """Names, in fixed shares, one for each run."""
    shares = {name: share for name, (_, share) in SETTINGS.items()}
    counts = {name: round(RUNS * share / sum(shares.values())) for name, share in shares.items()}
    counts["garnet"] += RUNS - sum(counts.values())
    return [(name, run) for name, count in counts.items() for run in range(count)]


def class_of(kind, num_costs, run):
    scale = np.linspace(0.5, 2.0, num_costs) if run % 3 == 0 else None
    return KINDS[kind](scale)


def problem_of(place, demos, cost_class, run):
    method = jm.demonstrations.MonteCarlo() if run % 2 else jm.demonstrations.ControlVariate()
    expert = jm.ExpertExpectation.from_demonstrations(
        demos, place.basis, place.world, method=method
    )
    return jm.Apprenticeship(place.world, place.basis, expert, cost_class)


def most_favoured(problem, exact, candidates):
    """The candidate whose gap on the data is furthest below its true gap, and its true gap."""
    visits = [jm.occupancy(problem.world, policy) for policy in candidates]
    favour = [exact.gap(one) - problem.gap(one) for one in visits]
    best = int(np.argmax(favour))
    return candidates[best], exact.gap(visits[best])


def on_the_data(way):
    """The bound of a combination without its statistical terms."""
    return sum(one.value for one in way.terms if one.name not in ("sampling", "truncation"))


def failures(certificate, true_gap, problem, place, optimum):
    """Which statements of the certificate are wrong."""
    tiny = 1e-9 * problem.gap_scale
    kind, delta = problem.cost_class, certificate.failure_probability
    estimates = expert_estimates(problem, delta)
    return {
        "bound": min(way.bound for way in certificate.combinations) < true_gap - tiny,
        "all policies": any(
            kind.gap(one.values - place.truth) > total(one.terms) + tiny for one in estimates
        ),
        "lower bound": certificate.true_lower_bound > optimum + tiny,
        "intervals": any(
            not one.low - tiny <= value <= one.high + tiny
            for one, value in zip(certificate.expert_intervals, place.truth, strict=True)
        ),
        "alarm": certificate.alarm,
        "valid": not certificate.valid,
        UNTRUE: min(on_the_data(way) for way in certificate.combinations) < true_gap - tiny,
    }


def learned(problem, run):
    """What a learner would give, when it is cheap."""
    if problem.world.num_pairs > 400 or run % 4:
        return jm.clone(problem.demonstrations, problem.world)
    return jm.solve(problem).policy


def certified_run(kind, name, run):
    """Failed statements by delta, and the certificate at the first."""
    place = setting(name, run % WORLDS)
    cost_class = class_of(kind, place.basis.num_costs, run)
    exact = place.exact(cost_class)
    optimum = jm.solve(exact).lower_bound if kind == "simplex" else 0.0
    demos = place.record(1000 * run + 7)
    problem = problem_of(place, demos, cost_class, run)
    candidates = [*place.policies, learned(problem, run)]
    policy, true_gap = most_favoured(problem, exact, candidates)
    found = {delta: jm.certify(problem, policy, delta) for delta in DELTAS}
    wrong = {
        delta: failures(one, true_gap, problem, place, optimum) for delta, one in found.items()
    }
    return wrong, found[DELTAS[0]], true_gap


def refuted(failed, allowed):
    """Whether so many failures are too many for a statement that may fail with `allowed`."""
    return binomtest(failed, RUNS, allowed, "greater").pvalue <= SURE


def show(kind, counts, runs, per_setting):
    lines = [f"\n{kind}: {runs} runs, failures at delta = " + ", ".join(map(str, DELTAS))]
    for statement in (*STATEMENTS, UNTRUE):
        figures = [f"{counts[delta][statement] / runs:.4f}" for delta in DELTAS]
        lines.append(f"  {statement:<42}" + "".join(f"{figure:>9}" for figure in figures))
    lines.append("  setting            runs  bound/true gap  bound/trivial  estimate that is best")
    for name, rows in per_setting.items():
        ratio, share = (np.median([row[j] for row in rows]) for j in (0, 1))
        used = Counter(row[2] for row in rows).most_common(1)[0][0]
        lines.append(f"  {name:<18}{len(rows):>5}{ratio:>16.2f}{share:>15.3f}  {used}")
    sys.stdout.write("\n".join(lines) + "\n")


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_fail_no_more_often_than_they_say(kind):
    counts, per_setting = {delta: Counter() for delta in DELTAS}, {}
    runs = drawn_settings()
    assert len(runs) == RUNS >= 400
    for name, run in runs:
        wrong, certificate, true_gap = certified_run(kind, name, run)
        for delta, statements in wrong.items():
            counts[delta].update(what for what, failed in statements.items() if failed)
        row = (
            certificate.bound / max(true_gap, 1e-3 * certificate.trivial_bound),
            certificate.bound / certificate.trivial_bound,
            certificate.best.estimate,
        )
        per_setting.setdefault(name, []).append(row)
    show(kind, counts, RUNS, per_setting)
    for delta in DELTAS:
        for statement in STATEMENTS:
            allowed = delta + 2e-3 if statement == "valid" else delta
            figures = (statement, delta, counts[delta][statement])
            assert not refuted(counts[delta][statement], allowed), figures
        assert refuted(counts[delta][UNTRUE], delta), counts[delta][UNTRUE]
    rows = [row for rows in per_setting.values() for row in rows]
    assert sum(row[2] == "control variate" for row in rows) >= RUNS / 10
    assert np.mean([row[1] < 0.9 for row in rows]) > 0.6


@pytest.mark.parametrize("memory", [LAST_ACTION, PARITY], ids=["last action", "parity"])
def test_an_expert_with_a_memory_is_the_same_told_either_way(memory):
    """Exact expectations, quick records and step-by-step records of one expert agree."""
    world = setting("restless", 1).world
    basis = setting("restless", 1).basis
    expert = Remembering.of(world, memory, 3)
    quick = expert.record(3000, 60, 0)
    slow = jm.record(world, expert.as_function, trajectories=600, horizon=60, seed=1)
    for demos in (quick, slow):
        found = jm.ExpertExpectation.from_demonstrations(
            demos, basis, world, method=jm.demonstrations.MonteCarlo()
        )
        error = 4.5 * found.spread / np.sqrt(len(demos)) + found.truncation_mass
        assert (np.abs(found.values - expert.expectations(basis)) <= error).all()
        assert demos.terminated.any()
