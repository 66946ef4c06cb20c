"""Premises about the expert's laws of actions, and models that count the demonstrations too: bounds
fail no more often than promised, over worlds, experts, classes and records that end by chance."""

import numpy as np
import pytest

import journeyman as jm
from class_examples import example
from journeyman.testing.random_worlds import random_policy, random_world

pytestmark = pytest.mark.slow
DELTA, RUNS = 0.3, 200
CLASSES = {
    "infinity": jm.InfinityBall(), "euclidean": jm.EuclideanBall(), "simplex": jm.Simplex(),
    "prior-infinity": example("prior-infinity", 3), "box": example("box", 3),
}  # fmt: skip


def setting(seed, deterministic):
    rng = np.random.default_rng(seed)
    world = random_world(seed, num_states=6, num_actions=3, discount=float(rng.choice([0.5, 0.9])))
    basis = jm.CostBasis(rng.uniform(-1, 1, (world.num_pairs, 3)))
    if deterministic:
        expert = jm.plan(world, basis.matrix @ rng.normal(size=3)).policy
    else:
        expert = random_policy(world, seed + 1000)
    demos = jm.record(
        world, expert, trajectories=int(rng.choice([1, 5, 60])), horizon=int(rng.choice([5, 50])),
        seed=seed,
    )  # fmt: skip
    return world, basis, expert, demos


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("premise", [jm.Deterministic(), jm.Stationary()])
def test_experts_with_known_laws(name, premise):
    false = 0
    for seed in range(RUNS):
        deterministic = isinstance(premise, jm.Deterministic)
        world, basis, expert, demos = setting(seed, deterministic)
        problem = jm.Apprenticeship(world, basis, demos, CLASSES[name], expert_is=premise)
        policy = random_policy(world, seed + 5)
        found = jm.certify(problem, policy, DELTA).combinations
        bound = min(way.bound for way in found if way.estimate.startswith("consistency"))
        own, true = (jm.occupancy(world, one).expectations(basis) for one in (policy, expert))
        false += bound < problem.cost_class.gap(own - true)
    assert false <= (0 if isinstance(premise, jm.Deterministic) else DELTA * RUNS)


def test_demonstrations_counted_for_the_model():
    """Steps of the expert are counted with a log that ends when a pair looks worst; the same
    demonstrations are the expert's record, and the policy is learned from both."""
    false = 0
    for seed in range(100):
        world, basis, expert, demos = setting(seed, deterministic=False)
        rng = np.random.default_rng(seed)
        pairs = np.concatenate([
            np.repeat(np.arange(world.num_pairs), 5), rng.integers(world.num_pairs, size=3000)
        ])  # fmt: skip
        rows = np.cumsum(world.transition.toarray(), axis=1)[pairs]
        after = np.minimum((rows < rng.random((pairs.size, 1))).sum(axis=1), world.num_states - 1)
        off = np.abs(np.cumsum(after == 0) - np.cumsum(world.transition.toarray()[pairs, 0]))
        stop = 5 * world.num_pairs + int(np.argmax(off[5 * world.num_pairs :])) + 1
        pairs, after = pairs[:stop], after[:stop]
        model = jm.World.from_transitions(
            np.concatenate([world.pairs.states[pairs], demos.step_states]),
            np.concatenate([world.pairs.actions[pairs], demos.actions]),
            np.concatenate([after, demos.next_states]),
            world.discount, initial=world.initial, num_states=world.num_states,
        )  # fmt: skip
        problem = jm.Apprenticeship(model, basis, demos, jm.InfinityBall())
        policy = jm.solve(problem).policy
        certificate = jm.certify(problem, policy, DELTA)
        own, true = (jm.occupancy(world, one).expectations(basis) for one in (policy, expert))
        best = certificate.combinations[0].bound
        false += certificate.valid and best < problem.cost_class.gap(own - true)
    assert false <= DELTA * 100
