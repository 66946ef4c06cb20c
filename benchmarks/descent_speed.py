"""Steps per second of SGD-AL's kernels beside the same updates in NumPy, one thread.

1. Infinity ball, scalar step, dense d = 64, 64 costs: the incremental kernel, drawing included,
   against a NumPy loop over precomputed tables, and against a bare gather of the same rows (they
   are copied, and nothing is computed); beside it what adding them up takes, without a copy.
2. The default rule (per-coordinate steps, batch 32) for every cost class against NumPy with BLAS.
3. Cost per step against the number of states, sparse rows.

CPU seconds; compilation excluded; the best of three runs.

With `--proofs` instead: whole runs with `--limit` seconds of the clock and no accuracy to stop at,
grids with default rules and as many features as are named. For each the steps, the clock at the
end, the share of the CPU time that went into dual points and their bounds, what was proven in the
end, and the steps a CPU second of the paper's form (constant step, batch 1, plain average).
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

import journeyman as jm
from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import vector_kernel
from journeyman.features import Features
from journeyman.progress import quiet
from journeyman.solvers.reduced.rows import HEADER, IMPORTANCE, THRESHOLD, Rows, RowTables
from journeyman.solvers.reduced.solution import ReducedSolution
from journeyman.solvers.reduced.stochastic_subgradient import _Run
from journeyman.solvers.running import Watch


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=32, help="side of the grid of 1 and 2")
    parser.add_argument("--growth-sizes", type=int, nargs="*", default=[32, 100, 316])
    parser.add_argument("--proofs", type=int, nargs="*", default=[], metavar="FEATURES")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of such a run")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if options.proofs:
        _proofs(options.size, options.proofs, options.limit)
        return
    print("Steps of SGD-AL per second")
    _incremental(options.size)
    _defaults(options.size)
    _growth(options.growth_sizes)


def _problem(size: int, macro_cells: int, cost_class: jm.costs.CostClass) -> jm.Apprenticeship:
    world, basis, expert = jm.gallery.grid(size, macro_cells=macro_cells)
    demos = jm.record(world, expert, trajectories=100, horizon=150, seed=0)
    return jm.Apprenticeship(world, basis, demos, cost_class)


def _features(problem: jm.Apprenticeship, cells: int, *, dense: bool) -> Features:
    assert problem.demonstrations is not None
    found = jm.features.partition(problem.world, problem.demonstrations, num_cells=cells)
    return Features(found.matrix.toarray()) if dense else found


def _run_of(problem: jm.Apprenticeship, solver: jm.StochasticSubgradient) -> _Run:
    assert isinstance(solver.features, Features)
    surrogate = jm.problem.Surrogate(
        jm.problem.Reduced(problem, solver.features), solver.penalty, solver.sampling
    )
    return _Run(solver, surrogate, Watch("benchmark", quiet))


def _tables(run: _Run) -> RowTables:
    assert isinstance(run.state.source, RowTables)
    return run.state.source


def _incremental(size: int) -> None:
    problem = _problem(size, 8, jm.InfinityBall())
    features = _features(problem, 16, dense=True)
    solver = jm.StochasticSubgradient(
        features, step_rule=jm.solvers.Constant(), batch=1, average_power=0.0, steps=300_000
    )
    runs = [_run_of(problem, solver) for _ in range(4)]
    run = _run_of(problem, solver)
    kernel = 300_000 / _best_cpu(lambda: runs.pop().descent.take(300_000))
    numpy_loop = 5000 / _best_cpu(lambda: _numpy_steps(run, 5000))
    source = _tables(run)
    positions = source.positions(source.rng, 300_000)
    pairs, flow = (run.surrogate.reduced.pair_rows, run.surrogate.reduced.flow_rows)
    out = np.zeros((2, features.num_features))
    gather = 300_000 / _best_cpu(lambda: _gather(pairs, flow, *positions, out))
    read = 300_000 / _best_cpu(lambda: _read(pairs, flow, *positions))
    print(
        f"\ninfinity ball, scalar step, d = {features.num_features}, 64 costs, {size} x {size} grid"
    )
    print(f"  incremental kernel  {kernel / 1e6:8.3f} M/s")
    print(f"  NumPy with tables   {numpy_loop / 1e6:8.3f} M/s   ratio {kernel / numpy_loop:.0f}x "
          f"(target 25x {_word(kernel >= 25 * numpy_loop)})")  # fmt: skip
    print(f"  bare row gather     {gather / 1e6:8.3f} M/s   share {kernel / gather:.0%} "
          f"(target 25 % {_word(kernel >= 0.25 * gather)})")  # fmt: skip
    print(f"  rows only added up  {read / 1e6:8.3f} M/s   share {kernel / read:.0%}")


def _defaults(size: int) -> None:
    print(
        f"\ndefault rule, batch 32, {size} x {size} grid, thousand steps a second "
        "(NumPy: dense tables)"
    )
    heads = ("d", "costs", "sparse", "dense", "NumPy", "sparse", "dense")
    print(f"{'':16}" + "".join(f"{head:>8}" for head in heads))
    for cost_class in (jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()):
        for cells, macro_cells in ((16, 4), (16, 8), (64, 4), (64, 8)):
            problem = _problem(size, macro_cells, cost_class)
            rates = {}
            for dense in (False, True):
                features = _features(problem, cells, dense=dense)
                run = _run_of(problem, jm.StochasticSubgradient(features))
                run.descent.take(10)
                rates[dense] = 3000 / _best_cpu(lambda run=run: run.descent.take(3000))  # type: ignore[misc]
            peer = 1000 / _best_cpu(lambda run=run: _numpy_steps(run, 1000))  # type: ignore[misc]
            numbers = [rates[False] / 1e3, rates[True] / 1e3, peer / 1e3]
            ratios = [rates[False] / peer, rates[True] / peer]
            print(f"{type(cost_class).__name__:16}{features.num_features:>8}{macro_cells**2:>8}"
                  + "".join(f"{number:>8.1f}" for number in numbers)
                  + "".join(f"{ratio:>7.1f}x" for ratio in ratios))  # fmt: skip


def _growth(sizes: Sequence[int]) -> None:
    print("\ncost per step against states (default rule, sparse rows, 64 cells)")
    first = None
    for size in sizes:
        problem = _problem(size, 4, jm.InfinityBall())
        run = _run_of(problem, jm.StochasticSubgradient(_features(problem, 64, dense=False)))
        run.descent.take(10)
        cost = _best_cpu(lambda run=run: run.descent.take(20_000)) / 20_000  # type: ignore[misc]
        first = first or cost
        print(f"  {size * size:>7} states {cost * 1e6:8.2f} us   {cost / first:.2f}x")


def _proofs(size: int, counts: Sequence[int], limit: float) -> None:
    print(f"SGD-AL on a {size} x {size} grid, 16 costs, a limit of {limit:g} s")
    heads = ("features", "steps", "clock", "CPU", "proofs", "proven", "paper's form")
    print("".join(f"{head:>13}" for head in heads))
    problem = _problem(size, 4, jm.InfinityBall())
    for count in (16, *counts):
        features = _features(problem, count // 4, dense=False)
        plain = jm.StochasticSubgradient(
            features, step_rule=jm.solvers.Constant(), batch=1, average_power=0.0, steps=10**9
        )
        runs = [_run_of(problem, plain) for _ in range(4)]
        rate = 30_000 / _best_cpu(lambda runs=runs: runs.pop().descent.take(30_000))  # type: ignore[misc]
        solver = jm.StochasticSubgradient(features, steps=10**9, accuracy=0)
        seconds = 1.0 if count == 16 else limit  # the first compiles
        started, cpu = time.perf_counter(), time.process_time()
        with Watch("benchmark", quiet, seconds) as watch:
            reduced = jm.problem.Reduced(problem, features)
            run = _Run(solver, jm.problem.Surrogate(reduced, solver.penalty), watch)
            proof = TimedProof(run)
            run.descend()
        started, cpu = time.perf_counter() - started, time.process_time() - cpu
        assert run.found is not None
        if count != 16:
            numbers = (
                f"{features.num_features:>13,}{run.state.step:>13,}{started:>13.2f}{cpu:>13.2f}"
            )
            print(f"{numbers}{proof.seconds / cpu:>13.1%}{run.found.optimisation_error:>13.3g}"
                  f"{rate:>11,.0f}/s", flush=True)  # fmt: skip


class TimedProof:
    """Adds up the CPU seconds that a run spends on its dual points."""

    def __init__(self, run: _Run) -> None:
        self.seconds, self.evaluation = 0.0, run._evaluation
        run._evaluation = self  # type: ignore[method-assign]

    def __call__(self, stop: Callable[[], bool], rounds: int) -> ReducedSolution:
        started = time.process_time()
        found = self.evaluation(stop, rounds)
        self.seconds += time.process_time() - started
        return found


def _numpy_steps(run: _Run, steps: int) -> None:
    """The same update, vectorised over the batch, with tables precomputed."""
    source, exact, motion = _tables(run), run.descent.steps.exact, run.motion
    size = run.state.iterate.theta.size
    Phi, floor, pair_weight = _dense_table(source.pairs)
    D, target, flow_weight = _dense_table(source.flow)
    G, theta, squares = exact.matching, np.zeros(size), np.zeros(size)
    average, regret = np.zeros(size), np.zeros(())
    pair_at, state_at = source.positions(source.rng, steps * motion.batch)
    cost_class = run.surrogate.reduced.problem.cost_class
    for t in range(steps):
        rows = slice(t * motion.batch, (t + 1) * motion.batch)
        s, y = pair_at[rows], state_at[rows]
        weights = cost_class.worst_case(G @ theta - exact.target)
        active = (Phi[s] @ theta < floor[s]) * pair_weight[s]
        signs = np.sign(D[y] @ theta - target[y]) * flow_weight[y]
        gradient = G.T @ weights + (signs @ D[y] - active @ Phi[s]) / motion.batch
        regret = regret + gradient @ theta
        average += theta
        if motion.batch > 1:
            squares += gradient * gradient
            theta = theta - motion.rate * gradient / np.sqrt(np.maximum(squares, 1e-300))
        else:
            theta = theta - motion.rate * gradient
        norm = np.sqrt(theta @ theta)
        if norm > motion.radius:
            theta *= motion.radius / norm


def _dense_table(rows: Rows) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The rows, what they are compared to, and their importance weights."""
    records = rows.numbers.reshape(rows.heads.size - 1, -1)
    return tuple(records[:, part].copy() for part in (slice(HEADER, None), THRESHOLD, IMPORTANCE))  # type: ignore[return-value]


@vector_kernel
def _gather(
    pairs: FloatArray, flow: FloatArray, pair_at: IntArray, state_at: IntArray, out: FloatArray
) -> None:
    """Copy the drawn rows, two a step, and nothing else."""
    for k in range(pair_at.size):
        for j in range(pairs.shape[1]):
            out[0, j] = pairs[pair_at[k], j]
        for j in range(pairs.shape[1]):
            out[1, j] = flow[state_at[k], j]


@vector_kernel
def _read(pairs: FloatArray, flow: FloatArray, pair_at: IntArray, state_at: IntArray) -> float:
    """Add up the drawn rows: what reading them costs, at the least."""
    total = 0.0
    for k in range(pair_at.size):
        for j in range(pairs.shape[1]):
            total += pairs[pair_at[k], j] + flow[state_at[k], j]
    return total


def _best_cpu(work: Callable[[], object]) -> float:
    work()
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return float(best)


def _word(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main(sys.argv[1:])
