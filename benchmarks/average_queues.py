"""Average cost: SGD-AL over features in four queues, beside LONGER and LBFS, by long rollouts.

The network of Abbasi-Yadkori, Bartlett and Malek (2014) with buffers of 9, 6, 6 and 9 (4,900
states), servers that do not idle, and the number of jobs as the cost of a step. Features, as in
that paper, are stationary distributions of rules of thumb and parts of them: the four fixed
priorities, each cut into 16 regions by tents over the lengths. One of the priorities is LBFS. The
floor is the least average of all policies, and averages are those of rollouts and, beside them,
exact ones.
"""

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.arrays import FloatArray

BUFFERS = (9, 6, 6, 9)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=2_000_000, help="of SGD-AL")
    parser.add_argument("--walks", type=int, default=40)
    parser.add_argument("--length", type=int, default=20_000, help="of each walk")
    parser.add_argument("--buffers", type=int, nargs=4, default=BUFFERS)
    options = parser.parse_args(arguments)
    print(describe_machine())
    network = jm.gallery.queues(4, buffers=options.buffers)
    base, _ = network.explicit(idling=False)
    world = base.with_average_cost()
    assert base.coordinates is not None
    assert world.averages is not None
    jobs = base.coordinates.sum(axis=1)
    problem = jm.Forward(world, jobs)
    rules = [fixed_priority(base, action) for action in range(network.world.num_actions)]
    features = pieces(world, rules)
    floor = jm.plan(world, jobs)
    least = float(world.initial @ floor.values)
    print(f"{base}, restart within {world.averages.longest:.0f} expected steps, {features}")
    print(f"least average of all policies {least:.4f}\n")
    print(f"{'policy':24}{'exact':>10}{'rollouts':>10}{'+-':>8}{'CPU s':>8}")
    everywhere = np.arange(base.num_states)
    for name, rule in (("LONGER", network.longer), ("LBFS", network.lbfs)):
        policy = jm.Policy(rule.probabilities(everywhere))
        _row(name, world, policy, jobs, options.walks, options.length, 0.0)
    for seed in options.seeds:
        started = time.process_time()
        sgd = jm.StochasticSubgradient(features, steps=options.steps)
        answer = jm.solve(problem, sgd, seed=seed)
        seconds = time.process_time() - started
        walks = options.walks
        _row(f"SGD-AL, seed {seed}", world, answer.policy, jobs, walks, options.length, seconds)
    started = time.process_time()
    reduced = jm.solve(problem, jm.ReducedProgram(features))
    seconds = time.process_time() - started
    _row("reduced program", world, reduced.policy, jobs, options.walks, options.length, seconds)


def fixed_priority(base: jm.World, action: int) -> jm.Policy:
    """The same action in every state: without idling, a fixed priority of queues."""
    table = np.zeros((base.num_states, base.num_actions))
    table[:, action] = 1.0
    return jm.Policy(table)


def pieces(world: jm.World, rules: Sequence[jm.Policy]) -> jm.features.Features:
    """Occupancies of the rules, whole and cut by tents with two knots a queue; and the end."""
    averages = world.averages
    assert averages is not None
    assert averages.base.coordinates is not None
    lengths = averages.base.coordinates
    full = lengths / lengths.max(axis=0)
    tents = np.ones((len(lengths), 1))
    for queue in range(lengths.shape[1]):
        both = np.column_stack([1 - full[:, queue], full[:, queue]])
        tents = (tents[:, :, np.newaxis] * both[:, np.newaxis, :]).reshape(len(lengths), -1)
    states = averages.base.pairs.states
    columns = []
    for rule in rules:
        visits = jm.occupancy(world, rule).measure
        columns.append(visits)
        for tent in tents.T:
            piece = visits.copy()
            piece[: states.size] *= tent[states]
            piece[states.size :] = 0.0
            columns.append(piece)
    ending = np.zeros(world.num_pairs)
    ending[states.size :] = 1.0
    matrix = np.column_stack([*columns, ending])
    matrix = matrix[:, matrix.sum(axis=0) > 0]
    return jm.features.Features(matrix / matrix.sum(axis=0) * world.effective_horizon)


def _row(
    name: str,
    world: jm.World,
    policy: jm.Policy,
    cost: FloatArray,
    walks: int,
    length: int,
    seconds: float,
) -> None:
    basis = jm.CostBasis(cost[:, np.newaxis])
    exact = float(jm.occupancy(world, policy).expectations(basis)[0])
    demos = jm.record(world, policy, trajectories=walks, horizon=length, seed=0)
    means = np.add.reduceat(cost[demos.step_states], demos.offsets[:-1]) / demos.lengths
    error = means.std(ddof=1) / np.sqrt(walks)
    print(f"{name:24}{exact:>10.4f}{means.mean():>10.4f}{error:>8.4f}{seconds:>8.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
