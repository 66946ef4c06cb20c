"""With discount 1: over many seeded runs every statement fails at most delta of the time.

Experts expect exactly M steps from their worst state, episodes are cut off early or late, and
whether a run fails is decided by expectations that share no code with the library.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

import journeyman as jm
from journeyman.certificate.expert_estimates import expert_estimates
from journeyman.certificate.terms import total
from naive.episodes_to_goals import as_world, is_proper, random_goal_world, times, visits

pytestmark = pytest.mark.slow
RUNS, DELTA, SURE = 300, 0.2, 1e-4
CLASSES = [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()]


def outcome(run):
    """Which statements of one run are wrong, and whether the bound without its radius is."""
    rng = np.random.default_rng(run)
    states, actions = int(rng.integers(1, 5)), 2
    P, initial = random_goal_world(run, states, actions, loops=0.7, branches=min(states, 3))
    law = rng.dirichlet(np.full(actions, 0.4), size=states + 1)
    if not is_proper(P, law):
        law = np.full((states + 1, actions), 0.5)
    longest = float(times(P, law).max())
    world = as_world(P, initial, steps_at_most=longest * (1 + 1e-9))
    costs = rng.uniform(-1, 1, (states + 1, actions, 2))
    costs[-1] = 0
    costs = costs.reshape(-1, 2)
    truth = costs.T @ visits(P, initial, law).ravel()
    horizon = 1 + int(rng.integers(0, 2) * 1000 + rng.integers(0, 2 * longest + 1))
    count = int(rng.integers(2, 60))
    demos = jm.record(world, jm.Policy(law), trajectories=count, horizon=horizon, seed=run)
    cost_class = CLASSES[run % 3]
    problem = jm.Apprenticeship(world, jm.CostBasis(costs), demos, cost_class)
    answer = jm.solve(problem)
    certificate = jm.certify(problem, answer, DELTA)
    own = costs.T @ visits(P, initial, answer.policy.on(world).reshape(-1, actions)).ravel()
    gap, tiny = cost_class.gap(own - truth), 1e-7 * problem.gap_scale
    estimates = expert_estimates(problem, DELTA)
    ends = zip(certificate.expert_intervals, truth, strict=True)
    return {
        "bound": gap > certificate.bound + tiny,
        "all policies": any(
            cost_class.gap(one.values - truth) > total(one.terms) + tiny for one in estimates
        ),
        "lower bound": certificate.true_lower_bound > gap + tiny,
        "intervals": any(not one.low - tiny <= e <= one.high + tiny for one, e in ends),
        "without radius": gap > certificate.gap_on_data + tiny,
    }


def test_statements_hold():
    found = [outcome(run) for run in range(RUNS)]
    for name in ("bound", "all policies", "lower bound", "intervals"):
        wrong = sum(one[name] for one in found)
        assert binomtest(wrong, RUNS, DELTA, alternative="greater").pvalue > SURE, (name, wrong)
    assert sum(one["without radius"] for one in found) > RUNS / 3
