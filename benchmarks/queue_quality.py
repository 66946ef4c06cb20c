"""How good SGD-AL is where its true gap can still be computed: four queues, 1,028,196 states.

The expert is optimal for a hidden cost (weights drawn by the seed). SGD-AL sees the network as
callables and 100 demonstrations of 400 steps; its policy and the alternatives are then evaluated
exactly in the explicit world. Features: tents with two knots a factor times LONGER, LBFS and a
policy cloned by cells, joined to tents at every value of each factor; knots and base lie where
20,000 simulated walks of the cloned policy go.
"""

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.policy import StatePolicy

DEMONSTRATIONS, HORIZON, WALKS, WALK_LENGTH = 100, 400, 20_000, 90
ROLLOUTS = 4000
CLASSES = {"simplex": jm.Simplex(), "ball": jm.InfinityBall()}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--classes", nargs="*", default=list(CLASSES), choices=list(CLASSES))
    parser.add_argument("--steps", type=int, default=8000)
    options = parser.parse_args(arguments)
    print(describe_machine())
    network = jm.gallery.queues(4)
    world, basis = network.explicit()
    for seed in options.seeds:
        weights = np.random.default_rng(seed).dirichlet(np.ones(basis.num_costs))
        expert = jm.plan(world, np.asarray(basis.on(world) @ weights), tolerance=1e-6).policy
        for name in options.classes:
            _report(network, world, basis, expert, name, seed, options.steps)


def _report(
    network: jm.gallery.Queues,
    world: jm.World,
    basis: jm.CostBasis,
    expert: jm.Policy,
    name: str,
    seed: int,
    steps: int,
) -> None:
    truth = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    exact = jm.Apprenticeship(world, basis, truth, CLASSES[name])
    demos = jm.record(
        network.world, expert, trajectories=DEMONSTRATIONS, horizon=HORIZON, seed=seed
    )
    problem = jm.Apprenticeship(network.world, network.costs, demos, CLASSES[name])
    started = time.process_time()
    features, cloned = features_for(network, demos, seed)
    answer = jm.solve(problem, jm.StochasticSubgradient(features, steps=steps, seed=seed))
    seconds = time.process_time() - started
    rollouts = jm.Rollouts(trajectories=ROLLOUTS, horizon=200)
    certificate = jm.certify(problem, answer, evaluation=rollouts)
    policies: dict[str, StatePolicy] = {
        "SGD-AL": answer.policy, "uniform": network.uniform, "LONGER": network.longer,
        "LBFS": network.lbfs, "behaviour cloning": jm.clone(demos, world),
        "cloned by cells": cloned,
    }  # fmt: skip
    gaps = {who: exact.gap(_table(policy, world)) for who, policy in policies.items()}
    print(f"\nseed {seed}, {name}: {features.num_features} features, {seconds:.0f} CPU s")
    print(f"  error of the target {CLASSES[name].gap(problem.target - truth.values):.3f}")
    for who, gap in gaps.items():
        print(f"  {who:20}{gap:>8.3f}")
    holds = "holds" if gaps["SGD-AL"] <= certificate.bound else "IS BROKEN"
    print(f"  certificate {certificate.bound:.2f} of {certificate.trivial_bound:.0f}: {holds}")
    rivals = [gap for who, gap in gaps.items() if who not in ("SGD-AL", "cloned by cells")]
    print(f"  target {'met' if gaps['SGD-AL'] < min(rivals) else 'MISSED'}", flush=True)


def features_for(
    network: jm.gallery.Queues, demos: jm.Demonstrations, seed: int
) -> tuple[jm.features.DrawnFeatures, jm.FunctionPolicy]:
    """The features of the module's docstring, and the cloned policy among them."""
    world, radix = network.world, network.radix
    cloned = jm.features.cloned(world, radix, demos)
    walks = jm.record(world, cloned, trajectories=WALKS, horizon=WALK_LENGTH, seed=seed)
    heuristics: list[jm.policy.StatePolicy] = [network.longer, network.lbfs, cloned]
    blend = jm.features.factored(world, radix, walks, heuristics, num_knots=2)
    fine = jm.features.marginals(world, radix, walks, cloned)
    return jm.features.JoinedFeatures(blend, *fine), cloned


def _table(policy: StatePolicy, world: jm.World) -> jm.Policy:
    """A policy asked in every state."""
    if isinstance(policy, jm.Policy):
        return policy
    parts = np.array_split(np.arange(world.num_states), 20)
    return jm.Policy(np.vstack([policy.probabilities(part) for part in parts]))


if __name__ == "__main__":
    main(sys.argv[1:])
