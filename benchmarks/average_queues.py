"""Average cost: SGD-AL over features in four queues, beside LONGER and LBFS, by long rollouts.

The network of Abbasi-Yadkori, Bartlett and Malek (2014) with buffers of 9, 6, 6 and 9 (4,900
states), servers that do not idle, and the number of jobs as the cost of a step. Features, as in
that paper, are stationary distributions of rules of thumb, in four sets:

    priorities   the four fixed priorities of queues, of which LBFS is one
    weighted     forty rules that serve the largest of lengths times weights, drawn by a seed
    heuristics   nothing but LONGER, LBFS and random actions
    pieces       the priorities, whole and each cut into 16 regions by tents over the lengths

The floor is the least average of all policies. Averages are those of rollouts and, beside them,
exact ones; the loss is what SGD-AL and the reduced program minimise, an upper bound on the value.
Of a known cost no mixture of stationary distributions is better than the best of them, which is a
row of its own: what SGD-AL can show there is that it finds it. Whole stationary distributions have
one row of flow, so that nothing is drawn and seeds agree; pieces have all.

`--apprenticeship` learns from records of the best policy instead, without its cost: lengths of the
four queues as shares of their buffers, one of which counts (Simplex). Mixtures are needed there.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.arrays import FloatArray, dense

BUFFERS = (9, 6, 6, 9)


RULES = ("priorities", "weighted", "heuristics", "pieces")
SERVED = np.array([[0, 1], [0, 2], [3, 1], [3, 2]])
"""Queues that the two servers work on, by action."""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=1_000_000, help="of SGD-AL")
    parser.add_argument("--walks", type=int, default=40)
    parser.add_argument("--length", type=int, default=20_000, help="of each walk")
    parser.add_argument("--buffers", type=int, nargs=4, default=BUFFERS)
    parser.add_argument("--rules", nargs="*", choices=RULES, default=RULES, help="in features")
    parser.add_argument("--num-rules", type=int, default=40, help="of the set 'weighted'")
    parser.add_argument("--rule-seed", type=int, default=0)
    parser.add_argument("--apprenticeship", action="store_true")
    options = parser.parse_args(arguments)
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    print(f"{describe_machine()}; threads of BLAS: {threads}")
    network = jm.gallery.queues(4, buffers=options.buffers)
    base, lengths = network.explicit(idling=False)
    world = base.with_average_cost()
    assert base.coordinates is not None
    assert world.averages is not None
    jobs = base.coordinates.sum(axis=1)
    floor = jm.plan(world, jobs)
    print(f"{base}, restart within {world.averages.longest:.0f} expected steps")
    walks = Walks(world, options.walks, options.length)
    everywhere = np.arange(base.num_states)
    peers = {
        "LONGER": jm.Policy(network.longer.probabilities(everywhere)),
        "LBFS": jm.Policy(network.lbfs.probabilities(everywhere)),
        "random actions": jm.Policy.uniform(base),
    }
    fixed = [fixed_priority(base, action) for action in range(base.num_actions)]
    rules = {
        "priorities": fixed,
        "weighted": weighted(base, options.num_rules, options.rule_seed),
        "heuristics": list(peers.values()),
        "pieces": fixed,
    }
    problem: jm.Apprenticeship = jm.Forward(world, jobs)
    if options.apprenticeship:
        parts = jm.CostBasis(np.asarray(lengths.matrix)[:, :4], names=lengths.names[:4])
        records = jm.record(world, floor.policy, trajectories=20, horizon=20_000, seed=0)
        problem = jm.Apprenticeship(world, parts, records, jm.Simplex())
        print(f"records {records}, memory {world.averages.memory:.0f} steps")
    print(f"least average of all policies {float(world.initial @ floor.values):.4f}\n")
    print(f"{'policy':38}{'exact':>9}{'rollouts':>9}{'+-':>8}{'gap':>9}{'loss':>9}{'CPU s':>7}")
    for name, policy in {**peers, "the best": floor.policy}.items():
        walks.row(name, problem, jobs, policy)
    for kind in options.rules:
        features = jm.features.occupancies(world, rules[kind])
        if kind == "pieces":
            features = pieces(world, features)
        best = min(rules[kind], key=problem.gap)
        walks.row(f"best of {len(rules[kind])} rules, {kind}", problem, jobs, best)
        for seed in options.seeds:
            sgd = jm.StochasticSubgradient(
                features, steps=options.steps, nonnegative=True, accuracy=0.0
            )
            walks.solved(f"SGD-AL, {kind}, seed {seed}", problem, jobs, sgd, seed)
        reduced = jm.ReducedProgram(features)
        walks.solved(f"reduced program, {kind}", problem, jobs, reduced, None)
    if options.apprenticeship:
        walks.solved("exact program", problem, jobs, jm.LinearProgram(), None)


@dataclass(frozen=True)
class Walks:
    """Rows of the table, with rollouts of so many walks of a length."""

    world: jm.World
    count: int
    length: int

    def solved(
        self, name: str, problem: jm.Apprenticeship, jobs: FloatArray, solver: Any, seed: int | None
    ) -> None:
        started = time.process_time()
        answer = jm.solve(problem, solver, seed=seed)
        seconds = time.process_time() - started
        loss = "" if answer.reduced is None else f"{answer.reduced.loss:.4f}"
        self.row(name, problem, jobs, answer.policy, loss, f"{seconds:.1f}")

    def row(
        self,
        name: str,
        problem: jm.Apprenticeship,
        jobs: FloatArray,
        policy: jm.Policy,
        loss: str = "",
        seconds: str = "",
    ) -> None:
        """The gap is that to the records; of a known cost the value itself."""
        visits = jm.occupancy(self.world, policy)
        exact = float(visits.expectations(jm.CostBasis(jobs[:, np.newaxis]))[0])
        demos = jm.record(self.world, policy, trajectories=self.count, horizon=self.length, seed=0)
        means = np.add.reduceat(jobs[demos.step_states], demos.offsets[:-1]) / demos.lengths
        error = means.std(ddof=1) / np.sqrt(self.count)
        gap = problem.gap(policy)
        numbers = f"{exact:>9.4f}{means.mean():>9.4f}{error:>8.4f}{gap:>9.4f}"
        print(f"{name:38}{numbers}{loss:>9}{seconds:>7}", flush=True)


def fixed_priority(base: jm.World, action: int) -> jm.Policy:
    """The same action in every state: without idling, a fixed priority of queues."""
    table = np.zeros((base.num_states, base.num_actions))
    table[:, action] = 1.0
    return jm.Policy(table)


def weighted(base: jm.World, count: int, seed: int) -> list[jm.Policy]:
    """Rules that serve where the sum of weighted lengths is largest, empty queues last."""
    assert base.coordinates is not None
    lengths, rng = base.coordinates, np.random.default_rng(seed)
    found = []
    for weights in rng.dirichlet(np.ones(lengths.shape[1]), size=count):
        worth = np.where(lengths > 0, lengths * weights, -1.0)[:, SERVED].sum(axis=2)
        table = np.zeros((base.num_states, base.num_actions))
        table[np.arange(base.num_states), worth.argmax(axis=1)] = 1.0
        found.append(jm.Policy(table))
    return found


def pieces(world: jm.World, whole: jm.features.Features) -> jm.features.Features:
    """Occupancies, whole and cut by tents with two knots a queue; and the end."""
    averages = world.averages
    assert averages is not None
    assert averages.base.coordinates is not None
    lengths, states = averages.base.coordinates, averages.base.pairs.states
    full = lengths / lengths.max(axis=0)
    tents = np.ones((len(lengths), 1))
    for queue in full.T:
        both = np.column_stack([1 - queue, queue])
        tents = (tents[:, :, np.newaxis] * both[:, np.newaxis, :]).reshape(len(lengths), -1)
    matrix = dense(whole.matrix)
    cut = matrix[: states.size, :, np.newaxis] * tents[states][:, np.newaxis, :]
    columns = np.zeros((len(matrix), cut[0].size + 1))
    columns[: states.size, :-1] = cut.reshape(states.size, -1)
    columns[states.size :, -1] = 1.0
    every = np.column_stack([matrix, columns[:, columns.sum(axis=0) > 0]])
    return jm.features.Features(every / every.sum(axis=0) * world.effective_horizon)


if __name__ == "__main__":
    main(sys.argv[1:])
