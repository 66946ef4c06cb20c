"""Does the size of a world cost anything? SGD-AL on a million states and on 10^16.

Both networks have the same number of features, entries per row and heuristics: tents with three
knots over the first four queues, none over the others. Every number is that of a process of its
own. *rows* counts pairs and states alike, by processor time of the descent; *peak* is the resident
memory of the process, the interpreter and all packages included. The second table makes the same
rows by one call for many states, and by a call for each.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.features import FactoredFeatures
from journeyman.problem.drawn import draw_rows

NETWORKS = (4, 8)
BATCH, MANY, ALONE = 32, 1 << 14, 1000
"""Rows per step; rows made at once, and one by one."""
Numbers = dict[str, float]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--measure", type=int, choices=NETWORKS, help=argparse.SUPPRESS)
    parser.add_argument("--buffer", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(measured(options.measure, options.steps, options.buffer)))
        return
    print(describe_machine())
    print(f"SGD-AL, {options.steps} steps of {BATCH} pairs and {BATCH} states\n")
    print(f"{'queues':>6}{'states':>10}{'actions':>9}{'features':>10}{'pairs before':>14}"
          f"{'states before':>15}{'rows / CPU s':>14}{'peak MB':>9}")  # fmt: skip
    rows = [in_fresh_process(queues, options.steps) for queues in NETWORKS]
    for row in rows:
        print(
            f"{row['queues']:>6.0f}{row['states']:>10.2g}{row['actions']:>9.0f}"
            f"{row['features']:>10.0f}{row['pairs']:>14.1f}{row['before']:>15.1f}"
            f"{row['rate']:>14.0f}{row['peak']:>9.0f}"
        )
    print(f"a row of the larger costs {rows[0]['rate'] / rows[1]['rate']:.2f} times as much\n")
    print(f"{'queues':>6}{'at once':>14}{'one by one':>14}{'times':>8}   rows / CPU s")
    for row in rows:
        times = row["at once"] / row["alone"]
        print(f"{row['queues']:>6.0f}{row['at once']:>14.0f}{row['alone']:>14.0f}{times:>8.0f}")


def in_fresh_process(queues: int, steps: int, buffer: int | None = None) -> Numbers:
    """Numbers of a network, all its buffers as large as given."""
    command = [
        sys.executable, "-m", "benchmarks.large_worlds", "--measure", str(queues), "--steps",
        str(steps), *(["--buffer", str(buffer)] if buffer else []),
    ]  # fmt: skip
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    numbers: Numbers = json.loads(done.stdout)
    return numbers


def measured(queues: int, steps: int, buffer: int | None) -> Numbers:
    """Numbers of this process."""
    network = jm.gallery.queues(queues, buffers=[buffer] * queues if buffer else None)
    features = features_of(network)
    # lengths only: their expectations are exact, so that nothing but steps is timed
    problem = jm.Apprenticeship(network.world, lengths_of(network), target_of(network))
    jm.solve(problem, jm.StochasticSubgradient(features, steps=10, batch=BATCH, seed=1))
    started = time.process_time()
    jm.solve(problem, jm.StochasticSubgradient(features, steps=steps, batch=BATCH, seed=0))
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    states = features.draw_flow(np.random.default_rng(0), 4096)
    entering = network.world.predecessors(states)
    stretches = sum(
        np.unique(entering.states[first:last]).size
        for first, last in zip(entering.offsets[:-1], entering.offsets[1:], strict=True)
    )
    return {
        "queues": queues, "states": float(network.world.num_states),
        "actions": network.world.num_actions, "features": features.num_features,
        "pairs": entering.states.size / states.size, "before": stretches / states.size,
        "rate": 2 * BATCH * steps / seconds, "peak": peak,
        "at once": rate_of_rows(features, MANY, 1), "alone": rate_of_rows(features, 1, ALONE),
    }  # fmt: skip


def features_of(network: jm.gallery.Queues) -> FactoredFeatures:
    walks = jm.record(network.world, network.longer, trajectories=50, horizon=200, seed=0)
    knots = [3 if queue < 4 else 1 for queue in range(network.radix.num_factors)]
    heuristics: list[jm.policy.StatePolicy] = [network.longer, network.lbfs, network.uniform]
    return jm.features.factored(network.world, network.radix, walks, heuristics, knots)


def lengths_of(network: jm.gallery.Queues) -> jm.CostFunctions:
    """The first four lengths."""
    costs = network.costs
    return jm.CostFunctions(
        lambda states, actions: costs.at(states, actions)[:, :4], costs.names[:4],
        lowest=0, highest=1, by_factor={k: costs.by_factor[k] for k in range(4)},
    )  # fmt: skip


def target_of(network: jm.gallery.Queues) -> jm.ExpertExpectation:
    demos = jm.record(network.world, network.longer, trajectories=10, horizon=200, seed=1)
    problem = jm.Apprenticeship(network.world, lengths_of(network), demos)
    return jm.ExpertExpectation(problem.target)


def rate_of_rows(features: FactoredFeatures, count: int, calls: int) -> float:
    """Rows of Phi and of D per CPU second."""
    rng = np.random.default_rng(0)
    draw_rows(features, count, rng)
    started = time.process_time()
    for _ in range(calls):
        draw_rows(features, count, rng)
    return 2 * count * calls / (time.process_time() - started)


if __name__ == "__main__":
    main(sys.argv[1:])
