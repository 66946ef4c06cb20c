"""What an audit costs beside what it checks: a run in a network of 10^16 states.

Certify draws its walks by the library's own code, the audit once more and in steps of its own, when
the code of the run is trusted. Seconds are those of the processor, one thread.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import journeyman as jm
from benchmarks.machine import describe_machine

KNOTS = (3, 3, 3, 3, 1, 1, 1, 1)
Made = TypeVar("Made")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trajectories", type=int, default=500, help="demonstrations and walks")
    parser.add_argument("--horizon", type=int, default=300)
    parser.add_argument("--steps", type=int, default=1000, help="of SGD-AL")
    options = parser.parse_args(arguments)
    print(describe_machine())
    queues = jm.certificate.Reference("journeyman:gallery.queues", queues=8)
    network, sizes = queues.made, (options.trajectories, options.horizon)
    demos = jm.record(
        network.world, network.longer, trajectories=sizes[0], horizon=sizes[1], seed=0
    )
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    print(
        f"{network.world.num_states:.0e} states, {len(demos)} demonstrations of {sizes[1]} steps, "
        "as many walks\n",
        flush=True,
    )
    features = jm.certificate.Reference(
        "journeyman:features.factored", world=network.world, radix=network.radix, walks=demos,
        heuristics=[network.longer, network.lbfs], num_knots=list(KNOTS),
    )  # fmt: skip
    solver = jm.StochasticSubgradient(features.made, steps=options.steps, seed=1)
    answer = timed(f"SGD-AL, {options.steps} steps", lambda: jm.solve(problem, solver))
    walks = jm.Rollouts(trajectories=sizes[0], horizon=sizes[1])
    certificate = timed("certify", lambda: jm.certify(problem, answer, evaluation=walks))
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        timed("save", lambda: certificate.save(run, code=[queues, features], seed=1))
        size = sum(path.stat().st_size for path in run.iterdir())
        timed("audit, the code not called", lambda: jm.audit(run))
        outcome = timed("audit, trust_code=True", lambda: jm.audit(run, trust_code=True).require())
    print(f"\n{size / 1e6:.1f} MB on disk, {outcome.checked} claims derived again")


def timed(name: str, work: Callable[[], Made]) -> Made:
    started = time.process_time()
    made = work()
    print(f"{name:<30}{time.process_time() - started:>9.1f} s CPU", flush=True)
    return made


if __name__ == "__main__":
    main(sys.argv[1:])
