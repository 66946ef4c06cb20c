"""`ReducedProgram` beside HiGHS: the same loss, dense and sparse features, and ever more rows.

Both minimise the surrogate loss of a grid with exact penalties (infinity ball, 200 demonstrations,
seed 0 by default) from the arrays of the reduced problem. HiGHS is given its simplex method, IPX
and HiPO, all in primal form (coefficients and residuals as columns) and in box-dual form (one row
per feature); the fastest of the six counts. Once one of them has finished, the others are stopped
when they have taken a good deal longer. Times are CPU seconds of one thread, compiled code warm;
loss and relative gap are recomputed from the data (the dual forms of HiGHS lose digits because it
drops entries below 1e-9; the primal forms are measured without a bound).

    python -m benchmarks.reduced_program [dense] [sparse] [rows] [--seed 0] [--chart rows.svg]
"""

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from examples.line_chart import Axis, Panel, Series, line_chart
from scipy import sparse

import journeyman as jm
from journeyman.features.base import Features
from journeyman.features.partition import partition
from journeyman.problem.reduced import Reduced
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.exact.engines import HighsModel
from journeyman.solvers.exact.occupancy_program import INFINITY, LinearModel
from journeyman.solvers.reduced.box_dual import BoxDual, BoxPoint, box_dual, run_highs
from journeyman.solvers.reduced.interior_point import run_interior_point
from journeyman.solvers.reduced.solution import ReducedSolution
from journeyman.solvers.running import Watch

TOLERANCE = 1e-8
FIRST_LIMIT, LEAST_LIMIT = 100.0, 5.0
PATIENCE = 1.5
REPEATS = 5
DENSE_FEATURES = 80
DENSE_TARGET, SPARSE_TARGET = 10.0, 1.0
ROW_SIZES = (32, 64, 128, 181, 256)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help="dense, sparse, rows; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dense-size", type=int, default=64, help="side of the dense instance")
    parser.add_argument("--sparse-sizes", type=int, nargs="*", default=[16, 32, 64])
    parser.add_argument("--chart", type=Path, help="draw time against rows to this SVG file")
    options = parser.parse_args(arguments)
    parts = options.parts or ["dense", "sparse", "rows"]
    _interior(_surrogate(8, dense=False))  # compiles
    if "dense" in parts:
        _compare(options.dense_size, dense=True, target=DENSE_TARGET, seed=options.seed)
    if "sparse" in parts:
        for size in options.sparse_sizes:
            _compare(size, dense=False, target=SPARSE_TARGET, seed=options.seed)
    if "rows" in parts:
        times = _rows(options.seed)
        if options.chart:
            options.chart.write_text(_chart(times))


@dataclass(frozen=True)
class Run:
    """One solve: CPU and wall-clock seconds and what came of it."""

    name: str
    cpu: float
    wall: float
    found: BoxPoint

    @property
    def finished(self) -> bool:
        return self.found.status is jm.Status.OPTIMAL


def _compare(size: int, *, dense: bool, target: float, seed: int) -> None:
    """One instance: ours, then every engine and form of HiGHS."""
    surrogate = _surrogate(size, dense=dense, seed=seed)
    kind = "dense Gaussian" if dense else "default partition"
    print(f"\n{size} x {size} grid, {kind} features, seed {seed}: {_shape(surrogate)}")
    _header()
    repeats = 1 if dense else REPEATS
    ours = _fastest([_interior(surrogate) for _ in range(repeats)])
    _row(ours, surrogate)
    best: Run | None = None
    for form in ("box dual", "primal"):
        for engine in (jm.solvers.Engine.HIPO, jm.solvers.Engine.SIMPLEX, jm.solvers.Engine.IPX):
            limit = FIRST_LIMIT if best is None else max(PATIENCE * best.wall, LEAST_LIMIT)
            peer = _fastest([_highs(surrogate, engine, form, limit) for _ in range(repeats)])
            _row(peer, surrogate)
            if peer.finished and (best is None or peer.cpu < best.cpu):
                best = peer
    ratio = INFINITY if best is None else best.cpu / ours.cpu
    met = "met" if ratio >= target else "MISSED"
    print(f"{ratio:.1f} times as fast as the best of HiGHS; target {target:.0f}: {met}")


def _rows(seed: int) -> list[tuple[int, float]]:
    """CPU seconds against the number of rows, dense features."""
    print(f"\nTime against rows, {DENSE_FEATURES} dense Gaussian features, seed {seed}")
    _header()
    times = []
    for size in ROW_SIZES:
        surrogate = _surrogate(size, dense=True, seed=seed)
        run = _interior(surrogate, f"{size} x {size}: {_num_rows(surrogate)} rows")
        _row(run, surrogate)
        print(f"{'':26}{1e6 * run.cpu / _num_rows(surrogate):>9.1f} microseconds per row")
        times.append((_num_rows(surrogate), run.cpu))
    return times


def _chart(times: Sequence[tuple[int, float]]) -> str:
    rows, seconds = zip(*times, strict=True)
    linear = [seconds[-1] * count / rows[-1] for count in rows]
    panel = Panel(
        "ReducedProgram to a relative gap of 1e-8, one thread",
        Axis("rows", log=True),
        Axis("CPU seconds", log=True),
        [Series("measured", rows, seconds), Series("linear in the rows", rows, linear)],
    )
    says = f"From {rows[0]} to {rows[-1]} rows: {seconds[0]:.2f} to {seconds[-1]:.1f} seconds."
    return line_chart(f"Time against rows, {DENSE_FEATURES} dense features", says, [panel])


def _fastest(runs: Sequence[Run]) -> Run:
    return min(runs, key=lambda run: (not run.finished, run.cpu))


def _interior(surrogate: Surrogate, name: str = "journeyman") -> Run:
    cpu, wall = time.process_time(), time.perf_counter()
    box = box_dual(surrogate.reduced, surrogate.penalties)
    found = run_interior_point(box, _watch(), TOLERANCE)
    return Run(name, time.process_time() - cpu, time.perf_counter() - wall, found)


def _highs(surrogate: Surrogate, engine: jm.solvers.Engine, form: str, limit: float) -> Run:
    """One engine of HiGHS in one form."""
    cpu, wall = time.process_time(), time.perf_counter()
    box = box_dual(surrogate.reduced, surrogate.penalties)
    if form == "box dual":
        found = run_highs(box, engine, 1, _watch(limit))
    else:
        result = HighsModel(_primal(box), engine, 1).run(_watch(limit))
        x = result.columns[: box.slope.size]
        found = BoxPoint(result.status, x, np.zeros(0), result.engine)
    name = f"HiGHS {engine.name}, {form}"
    return Run(name, time.process_time() - cpu, time.perf_counter() - wall, found)


def _primal(box: BoxDual) -> LinearModel:
    """min sum upper r+ - lower r-  with  A theta - r+ + r- = b,  r+ and r- at least 0.

    A residual whose box ends at zero costs nothing on that side, and becomes an inequality.
    """
    A, size = box.stacked(), box.num_rows
    above, below = np.flatnonzero(box.upper > 0), np.flatnonzero(box.lower < 0)
    one = np.ones(size)
    parts = [
        sparse.csr_array(A.T),
        sparse.csr_array((-one[above], above, np.arange(above.size + 1)), (above.size, size)),
        sparse.csr_array((one[below], below, np.arange(below.size + 1)), (below.size, size)),
    ]
    count, residuals = box.slope.size, above.size + below.size
    return LinearModel(
        columns=sparse.vstack(parts, format="csr"),
        cost=np.concatenate([box.slope, box.upper[above], -box.lower[below]]),
        lower=np.concatenate([np.full(count, -INFINITY), np.zeros(residuals)]),
        upper=np.full(count + residuals, INFINITY),
        row_lower=np.where(box.lower < 0, box.target, -INFINITY),
        row_upper=np.where(box.upper > 0, box.target, INFINITY),
    )


def _surrogate(size: int, *, dense: bool, seed: int = 0) -> Surrogate:
    world, basis, expert = jm.gallery.grid(size, macro_cells=4, seed=seed)
    assert isinstance(expert, jm.Policy)
    demos = jm.record(world, expert, trajectories=200, horizon=150, seed=seed)
    problem = jm.Apprenticeship(world, basis, demos)
    features = (
        gaussian_features(world, seed=seed) if dense else partition(world, demos, num_cells=64)
    )
    return Surrogate(Reduced(problem, features))


def gaussian_features(world: jm.World, count: int = DENSE_FEATURES, seed: int = 0) -> Features:
    """Gaussians with random centres and widths, times random laws over the actions."""
    assert world.coordinates is not None
    rng = np.random.default_rng(seed)
    places = world.coordinates / (world.coordinates.max() + 1)
    centres, widths = rng.uniform(0, 1, (count, 2)), rng.uniform(0.08, 0.25, count)
    squares = ((places[:, np.newaxis, :] - centres) ** 2).sum(axis=2)
    actions = rng.dirichlet(np.ones(4), count).T
    columns = np.exp(-squares / (2 * widths**2))
    return Features(columns[world.pairs.states] * actions[world.pairs.actions]).normalised(world)


def _watch(limit: float | None = None) -> Watch:
    return Watch("benchmark", lambda event: None, limit)


def _num_rows(surrogate: Surrogate) -> int:
    return box_dual(surrogate.reduced, surrogate.penalties).num_rows


def _shape(surrogate: Surrogate) -> str:
    return f"{_num_rows(surrogate)} rows, {surrogate.reduced.num_features} features"


def _header() -> None:
    print(f"{'':26}{'CPU s':>9}{'iterations':>12}{'loss':>15}{'relative gap':>14}  outcome")


def _row(run: Run, surrogate: Surrogate) -> None:
    box, found = box_dual(surrogate.reduced, surrogate.penalties), run.found
    loss = gap = "-"
    if run.finished:
        theta = box.coefficients(found.x)
        loss = f"{surrogate.value(theta):.9g}"
        if found.v.size:
            witness = box.witness(found.v, surrogate.penalties)
            gap = f"{ReducedSolution.of(surrogate, theta, witness).relative_gap:.1e}"
    count = str(found.iterations or "")
    numbers = f"{run.cpu:>9.3f}{count:>12}{loss:>15}{gap:>14}"
    print(f"{run.name:26}{numbers}  {found.status.name}", flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
