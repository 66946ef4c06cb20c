"""Rows that are never seen twice: SGD-AL, the sampled program and primal-dual steps on drawn rows.

The network of four queues (1,028,196 states) or eight (about 10^16) by callables, 100
demonstrations of LBFS or LONGER, features of `benchmarks.queue_quality` or
`benchmarks.large_worlds`. All minimise the same surrogate loss; what they end with is estimated on
the same fresh pairs and states, which none of them has seen. First at equal numbers of rows, then
with as many as `SampledProgram` takes by itself, and SGD-AL for as many CPU seconds as that took.
Seconds contain the estimation of Psi' Phi, which all share.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence

import numpy as np

import journeyman as jm
from benchmarks.large_worlds import features_of
from benchmarks.machine import describe_machine
from benchmarks.queue_quality import features_for
from benchmarks.stochastic_solvers import Limit
from journeyman.problem.drawn import FRESH, DrawnReduced
from journeyman.problem.reduced import DrawnRows, ExactPenalty
from journeyman.problem.surrogate import Surrogate

JUDGED, BATCH = 150_000, 32


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=4, choices=[4, 8])
    parser.add_argument("--seeds", type=int, nargs="*", default=[2])
    parser.add_argument("--rows", type=int, nargs="*", default=[5000, 20_000])
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    print(describe_machine())
    for seed in options.seeds:
        _report(options.queues, seed, options.rows)


def _report(queues: int, seed: int, counts: Sequence[int]) -> None:
    network = jm.gallery.queues(queues)
    expert = network.lbfs if queues == 4 else network.longer
    demos = jm.record(network.world, expert, trajectories=100, horizon=300, seed=seed)
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    made = features_for(network, demos, seed)[0] if queues == 4 else features_of(network)
    reduced = DrawnReduced(problem, made, 10**6 + seed)
    surrogate, fresh = Surrogate(reduced, ExactPenalty()), reduced.drawn(JUDGED, FRESH, 1)
    print(f"\n{queues} queues, seed {seed}, {made.num_features} features, gaps are at most "
          f"{problem.trivial_bound:.0f}")  # fmt: skip
    print("| solver | rows | CPU seconds | loss | what it says itself |\n|---|---|---|---|---|")
    few: list[jm.solvers.Solver] = [
        jm.solvers.SampledProgram(made, seed=seed, num_rows=300, fresh_rows=300),
        jm.solvers.StochasticPrimalDual(made, num_rows=300, fresh_rows=300, epochs=20),
        jm.StochasticSubgradient(made, steps=20),
    ]
    for solver in few:  # compiles
        jm.solve(problem, solver, seed=seed)
    for count in counts:
        sampled = jm.solvers.SampledProgram(made, seed=seed, num_rows=count)
        _row(problem, sampled, surrogate, fresh, seed)
        steps = jm.StochasticSubgradient(made, steps=count // BATCH)
        _row(problem, steps, surrogate, fresh, seed)
    kept = jm.solvers.StochasticPrimalDual(made, num_rows=counts[0])
    _row(problem, kept, surrogate, fresh, seed)
    seconds = _row(problem, jm.solvers.SampledProgram(made, seed=seed), surrogate, fresh, seed)
    longer = jm.StochasticSubgradient(made, steps=10**9)
    _row(problem, longer, surrogate, fresh, seed, seconds)


def _row(
    problem: jm.Apprenticeship,
    solver: jm.solvers.Solver,
    surrogate: Surrogate,
    fresh: DrawnRows,
    seed: int,
    limit: float = np.inf,
) -> float:
    started = time.process_time()
    answer = jm.solve(problem, solver, seed=seed, observer=Limit(limit))
    seconds, found = time.process_time() - started, answer.reduced
    assert found is not None
    loss, error = surrogate.estimate(found.coefficients, fresh)
    rows, work = getattr(solver, "num_rows", None), answer.work
    if rows is None and work is not None:
        grown = isinstance(solver, jm.solvers.SampledProgram)
        rows = f"{work.iterations} stages" if grown else work.iterations * BATCH
    excess, name = found.sampled_excess, type(solver).__name__
    said = "" if excess is None else f"error about {excess:.2g}"
    print(f"| {name} | {rows} | {seconds:.1f} | {loss:.2f} +- {error:.2f} | {said} |",
          flush=True)  # fmt: skip
    return seconds


if __name__ == "__main__":
    main(sys.argv[1:])
