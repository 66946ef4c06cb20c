"""Time to a proven error of 5 %: SGD-AL, StochasticPrimalDual, ReducedProgram and HiGHS' PDLP.

All minimise the same surrogate loss over the same features, and are asked for

    loss - lower bound <= max(5 % of the loss, 0.25 % of 2N/(1 - discount))

proven: the loss and the bound of every row are recomputed from the data. `ReducedProgram` solves to
its own tolerance, which is far closer, since it has no use for less; PDLP solves the same box
program to relative tolerances of 1e-3, and 1e-5 where that proves too little.

Families: slippery grids with macro-cell costs, garnets (random worlds), and the network of four
queues with its explicit laws. Features are `jm.features.partition` with as many cells as make about
the wanted number of features, four entries a row; in the family "bumps" Gaussian bumps times visits
on the same grids, stored densely; in queues the rows of `jm.features.factored`. The seeds of
the instances are named in the table. CPU seconds of one thread; features, the target and
compilation not included. A solver that has not proven it after --limit CPU seconds is shown as >
with the error that it has proven by then; PDLP, which cannot be asked for CPU seconds, has four
times as many of the clock. That no other engine of HiGHS ran is read from its counts of iterations.
"""

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

import journeyman as jm
from journeyman.arrays import FloatArray
from journeyman.features.base import every_action
from journeyman.progress import Event
from journeyman.solvers.exact.occupancy_program import LinearModel
from journeyman.solvers.reduced.box_dual import box_dual
from journeyman.solvers.reduced.solution import ReducedSolution, wanted_accuracy

SOLVERS = ("ReducedProgram", "StochasticPrimalDual", "SGD-AL", "PDLP")


class Instance(NamedTuple):
    """A problem with features, and words for it."""

    name: str
    problem: jm.Apprenticeship
    features: jm.features.Features


class Limit:
    """An observer that presses Ctrl-C after some CPU seconds."""

    def __init__(self, seconds: float) -> None:
        self.end = time.process_time() + seconds

    def __call__(self, event: Event) -> None:
        if time.process_time() > self.end:
            self.end = np.inf
            signal.raise_signal(signal.SIGINT)


class Outcome(NamedTuple):
    """What a solver has needed, and what it has proven."""

    seconds: float
    loss: float
    error: float
    proven: bool

    def __str__(self) -> str:
        if self.proven:
            return f"{self.seconds:.2f} s"
        return f"> {self.seconds:.0f} s ({self.error:.3g})"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--families", nargs="*", default=["grid", "garnet", "queue"],
        choices=["grid", "bumps", "garnet", "queue"],
    )  # fmt: skip
    parser.add_argument("--features", type=int, nargs="*", default=[64, 256, 1024])
    parser.add_argument("--sizes", type=int, nargs="*", default=[16, 24, 32], help="of grids")
    parser.add_argument("--states", type=int, nargs="*", default=[400, 1500], help="of garnets")
    parser.add_argument("--seeds", type=int, nargs="*", default=[11, 12])
    parser.add_argument("--solvers", nargs="*", default=list(SOLVERS), choices=SOLVERS)
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds of a solver")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    print("CPU seconds to a proven error of max(5 % of the loss, 0.25 % of 2N/(1 - discount))\n")
    head = ("instance", "pairs", "d", "least loss", "wanted", *options.solvers)
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    _compile(options.solvers)
    times: dict[str, list[Outcome]] = {name: [] for name in options.solvers}
    for instance in _instances(options):
        instance.problem.target  # noqa: B018  computed once for all
        found = {name: _outcome(name, instance, options.limit) for name in options.solvers}
        for name, outcome in found.items():
            times[name].append(outcome)
        least = min(outcome.loss for outcome in found.values())
        wanted = wanted_accuracy(None, least, instance.problem)
        cells = (
            instance.name, f"{instance.problem.world.num_pairs:,}",
            f"{instance.features.num_features:,}", f"{least:.4g}", f"{wanted:.3g}",
            *map(str, found.values()),
        )  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)
    print("\nproven within the limit, and median seconds (a limit counts as itself):")
    for name, all_of in times.items():
        seconds = float(np.median([outcome.seconds for outcome in all_of]))
        proven = sum(outcome.proven for outcome in all_of)
        print(f"  {name:22}{proven:>3} of {len(all_of)}   {seconds:.2f} s")


def _instances(options: argparse.Namespace) -> Iterator[Instance]:
    for seed in options.seeds:
        for count in options.features:
            for family in options.families:
                if family == "queue":
                    yield _queue(count, seed)
                elif family == "garnet":
                    many = [states for states in options.states if count <= 4 * states]
                    yield from (_garnet(states, count, seed) for states in many)
                else:
                    made = {"grid": _grid, "bumps": _bumps}[family]
                    many = [size for size in options.sizes if count <= 4 * size * size]
                    yield from (made(size, count, seed) for size in many)


def _grid(size: int, count: int, seed: int) -> Instance:
    world, basis, expert = jm.gallery.grid(size, macro_cells=4, seed=seed)
    demos = jm.record(world, expert, trajectories=200, horizon=150, seed=seed)
    features = jm.features.partition(world, demos, num_cells=count // 4)
    name = f"grid {size} x {size}, seed {seed}"
    return Instance(name, jm.Apprenticeship(world, basis, demos), features)


def _bumps(size: int, count: int, seed: int) -> Instance:
    """K_j(x) base(x) for each action: bumps K_j of 0.6 cells, base the visits smoothed by them."""
    world, basis, expert = jm.gallery.grid(size, macro_cells=4, seed=seed)
    demos = jm.record(world, expert, trajectories=200, horizon=150, seed=seed)
    cells = max(2, round(math.sqrt(count / 4)))
    places = np.arange(size)
    centres = (np.arange(cells) + 0.5) * size / cells - 0.5
    along = np.exp(-(((places[:, None] - centres) / (0.6 * size / cells)) ** 2) / 2)
    bumps = np.array(np.kron(along, along), dtype=float)
    bumps /= bumps.sum(axis=1, keepdims=True)
    visits = np.bincount(demos.states, minlength=world.num_states).astype(float)
    base = bumps @ (bumps.T @ visits / bumps.sum(axis=0))
    base = 0.9 * base / base.sum() + 0.1 / base.size
    matrix = np.kron(bumps * base[:, None], np.eye(4))
    features = jm.features.Features(matrix).normalised(world)
    name = f"bumps {size} x {size}, seed {seed}"
    return Instance(name, jm.Apprenticeship(world, basis, demos), features)


def _garnet(states: int, count: int, seed: int) -> Instance:
    world, basis, expert = jm.gallery.garnet(states, num_costs=16, seed=seed)
    demos = jm.record(world, expert, trajectories=200, horizon=150, seed=seed)
    actions = world.num_pairs // world.num_states
    features = jm.features.partition(world, demos, num_cells=count // actions)
    problem = jm.Apprenticeship(world, basis, demos)
    return Instance(f"garnet {states}, seed {seed}", problem, features)


def _queue(count: int, seed: int) -> Instance:
    network = jm.gallery.queues(4, buffers=(7, 5, 5, 7), discount=0.95)
    world, basis = network.explicit()
    demos = jm.record(network.world, network.longer, trajectories=200, horizon=150, seed=seed)
    target = jm.Apprenticeship(network.world, network.costs, demos).expectation.values
    actions = jm.features.single_actions(network.world)
    heuristics = [network.longer, network.uniform, *actions]
    knots = max(2, round((count / len(heuristics)) ** 0.25))
    made = jm.features.factored(network.world, network.radix, demos, heuristics, knots)
    everywhere = every_action(np.arange(world.num_states), world.num_actions)
    features = jm.features.Features(made.rows(*everywhere).tocsr())
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(target))
    return Instance(f"queues, {knots} knots, seed {seed}", problem, features)


def _compile(solvers: Sequence[str]) -> None:
    for name in solvers:
        _outcome(name, _grid(6, 16, 0), 5.0)


def _outcome(name: str, instance: Instance, limit: float) -> Outcome:
    run: Callable[[Instance, float], ReducedSolution] = {
        "ReducedProgram": _reduced_program, "StochasticPrimalDual": _primal_dual,
        "SGD-AL": _subgradient, "PDLP": _pdlp,
    }[name]  # fmt: skip
    started = time.process_time()
    found = run(instance, limit)
    seconds = time.process_time() - started
    error = found.optimisation_error
    proven = error <= wanted_accuracy(None, found.loss, instance.problem)
    return Outcome(seconds, found.loss, error, proven)


def _solved(instance: Instance, solver: jm.solvers.Solver, limit: float) -> ReducedSolution:
    found = jm.solve(instance.problem, solver, observer=Limit(limit)).reduced
    assert found is not None
    return found


def _reduced_program(instance: Instance, limit: float) -> ReducedSolution:
    return _solved(instance, jm.ReducedProgram(instance.features), limit)


def _primal_dual(instance: Instance, limit: float) -> ReducedSolution:
    solver = jm.solvers.StochasticPrimalDual(instance.features, epochs=10**9)
    return _solved(instance, solver, limit)


def _subgradient(instance: Instance, limit: float) -> ReducedSolution:
    solver = jm.StochasticSubgradient(instance.features, steps=10**9)
    return _solved(instance, solver, limit)


def _pdlp(instance: Instance, limit: float) -> ReducedSolution:
    """The primal-dual method of HiGHS on the box program of `ReducedProgram`."""
    reduced = jm.problem.Reduced(instance.problem, instance.features)
    surrogate = jm.problem.Surrogate(reduced, jm.ExactPenalty())
    box, radius = box_dual(reduced, surrogate.penalties), reduced.mixture_radius
    started = time.perf_counter()
    for tolerance in (1e-3, 1e-5):
        left = 4 * limit - time.perf_counter() + started
        v, x = _run_pdlp(box.linear_model(), tolerance, left)
        theta = box.coefficients(x)
        theta = theta * min(1.0, radius / max(float(np.linalg.norm(theta)), 1e-300))
        witness = box.witness(v, surrogate.penalties)
        solution = ReducedSolution.of(surrogate, theta, witness, radius=radius)
        if solution.optimisation_error <= wanted_accuracy(None, solution.loss, instance.problem):
            break
    return solution


def _run_pdlp(
    model: LinearModel, tolerance: float, seconds: float
) -> tuple[FloatArray, FloatArray]:
    """Columns, and the multipliers of the equations."""
    import highspy

    highs, matrix = highspy.Highs(), model.columns
    tolerances = ("pdlp_optimality", "primal_feasibility", "dual_feasibility")
    options = {f"{name}_tolerance": tolerance for name in tolerances}
    words = {"output_flag": False, "threads": 1, "solver": "pdlp", "time_limit": max(seconds, 1)}
    for name, value in {**options, **words}.items():
        highs.setOptionValue(name, value)
    highs.passModel(
        *matrix.shape, matrix.nnz, int(highspy.MatrixFormat.kColwise),
        int(highspy.ObjSense.kMinimize), 0.0, model.cost, model.lower, model.upper,
        model.row_lower, model.row_upper, matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32), matrix.data, np.zeros(matrix.shape[0], dtype=np.int32),
    )  # fmt: skip
    highs.run()
    found, info = highs.getSolution(), highs.getInfo()
    if info.simplex_iteration_count or info.ipm_iteration_count:
        raise RuntimeError("HiGHS was asked for PDLP and ran another engine")
    return np.array(found.col_value), np.array(found.row_dual)


if __name__ == "__main__":
    main(sys.argv[1:])
