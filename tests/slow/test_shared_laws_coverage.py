"""Shared laws: over many records the error of a group's law holds with the probability stated, and
so does the bound of a policy in the true world."""

import numpy as np
import pytest
from scipy.stats import binomtest

import journeyman as jm
from journeyman.certificate.model_error import transition_radii
from journeyman.world import SharedLaws

pytestmark = pytest.mark.slow
SURE = 1e-4
BINS, RUNS, BOUNDS = 8, 800, 100
LAWS = {
    "even": [[0.35, 0.4, 0.25], [0.3, 0.3, 0.4]],
    "rare": [[0.02, 0.97, 0.01], [0.5, 0.495, 0.005]],
}


def groups():
    return SharedLaws.increments(BINS, [0, 1, 2], num_actions=2, resets={1: 0}, per_action=True)


def recorded(laws, rng, steps):
    """Of an expert who looks at wear: which pairs are recorded depends on the outcomes so far."""
    shared, x, rows = groups(), 0, []
    for _ in range(steps):
        a = int(rng.random() < 0.1 + 0.6 * x / BINS)
        y = int(shared.targets[x, a, rng.choice(3, p=laws[a])])
        rows.append((x, a, y))
        x = y
    rows += [(0, a, int(shared.targets[0, a, rng.choice(3, p=laws[a])])) for a in (0, 1)]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return jm.World.from_transitions(*columns, 0.9, initial=np.eye(BINS)[0], shared=shared)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize("steps", [12, 120])
def test_the_errors_of_all_groups_hold_together(name, delta, steps):
    laws, rng, missed, untrue = np.array(LAWS[name]), np.random.default_rng(7), 0, 0
    for _ in range(RUNS):
        world = recorded(laws, rng, steps)
        tally = world.shared.group_tallies
        shares = tally / tally.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.where(shares > 0, shares * np.log(shares / laws), 0.0).sum(axis=1)
        information = transition_radii(world, delta).evidence.allowed
        first = [int(np.argmax(world.shared.of(world.pairs) == group)) for group in (0, 1)]
        missed += bool((apart > information[first]).any())
        untrue += bool((apart > information[first] / 8).any())
    assert binomtest(missed, RUNS, delta, alternative="greater").pvalue > SURE
    assert untrue > 1.5 * delta * RUNS


@pytest.mark.parametrize("name", LAWS)
def test_bounds_hold_in_the_true_world(name):
    laws, rng, missed, delta = np.array(LAWS[name]), np.random.default_rng(8), 0, 0.3
    shared = groups()
    x, a = (part.ravel() for part in np.indices((BINS, 2)))
    true = jm.World(shared.laws(x, a, laws), np.eye(BINS)[0], 0.9)
    basis = jm.CostBasis(np.column_stack([x / BINS, a]))
    expert = jm.Policy(np.column_stack([1 - np.arange(BINS) / BINS, np.arange(BINS) / BINS]))
    exact = jm.ExpertExpectation(jm.occupancy(true, expert).expectations(basis))
    truth = jm.Apprenticeship(true, basis, exact)
    for run in range(BOUNDS):
        world = recorded(laws, rng, 60)
        demos = jm.record(true, expert, trajectories=30, horizon=60, seed=run)
        certificate = jm.learn(world, basis, demos, failure_probability=delta).certificate
        gap = truth.gap(jm.occupancy(true, certificate.policy))
        missed += certificate.bound < gap - 1e-9
    assert binomtest(missed, BOUNDS, delta, alternative="greater").pvalue > SURE
