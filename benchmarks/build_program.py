"""Time and memory of building the exact linear program, beside CVXPY's compilation.

Both start from the same world, cost basis and target, and end with the arrays a solver takes. Each
measurement runs in a process of its own: memory is the peak resident size above what the imports
take (so it includes the instance itself), time the best of several builds. CVXPY is given sparse
constants and no parameters, and the fastest of its canonicalisation backends counts.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import journeyman as jm
from benchmarks.instances import GRAMMAR, example_of

BACKENDS = ("CPP", "SCIPY", "COO")
REPEATS = 7
TIME_TARGET = 0.1
MEMORY_FACTOR, MEMORY_ALLOWANCE = 3, 20e6
FROZEN = "grid:64:8:0.99"
CHOSEN_LATER = "garnet:4000:32:0.9"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "instances", nargs="*", default=[FROZEN, CHOSEN_LATER],
        help=GRAMMAR,
    )  # fmt: skip
    parser.add_argument("--measure", nargs=2, metavar=("WHO", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        who, path = options.measure
        print(json.dumps(_measure(who, Path(path))))
        return
    print("Building the exact linear program (infinity ball; seed 0; one thread)")
    for instance in options.instances:
        _report(instance)


def _report(instance: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _make_instance(instance, Path(folder))
        ours = _run("journeyman", folder)
        peers = {backend: _run(backend, folder) for backend in BACKENDS}
    matrix = ours["matrix_bytes"]
    best = min(peers, key=lambda backend: float(peers[backend]["seconds"]))
    allowed = MEMORY_FACTOR * matrix + MEMORY_ALLOWANCE
    print(
        f"\n{instance}: {ours['rows']} rows, {ours['columns']} columns, {ours['entries']} entries"
    )
    print(f"constraint matrix {matrix / 1e6:.2f} MB; allowed peak {allowed / 1e6:.1f} MB")
    print(f"{'':22}{'seconds':>10}{'peak MB':>10}")
    print(f"{'journeyman':22}{ours['seconds']:>10.4f}{ours['peak'] / 1e6:>10.1f}")
    print(f"{'  handing to HiGHS':22}{ours['pass_seconds']:>10.4f}{ours['engine'] / 1e6:>10.1f}")
    for backend, peer in peers.items():
        print(f"{'CVXPY, ' + backend:22}{peer['seconds']:>10.4f}{peer['peak'] / 1e6:>10.1f}")
    ratio = peers[best]["seconds"] / ours["seconds"]
    met = ours["seconds"] <= max(TIME_TARGET, peers[best]["seconds"] / 5)
    print(f"time: {ratio:.0f} times faster than CVXPY ({best}); target {_word(met)}")
    share = ours["peak"] / allowed
    print(f"memory: {share:.0%} of what is allowed; target {_word(share <= 1)}")


def _word(met: bool) -> str:
    return "met" if met else "MISSED"


def _make_instance(instance: str, folder: Path) -> None:
    world, basis, expert = example_of(instance)
    demos = jm.record(world, expert, trajectories=100, horizon=200, seed=0)
    target = jm.ExpertExpectation.from_demonstrations(demos, basis, world).values
    world.save(folder / "world.npz")
    dense = basis.matrix if isinstance(basis.matrix, np.ndarray) else basis.matrix.toarray()
    np.savez(folder / "costs.npz", matrix=dense, target=target)


def _run(who: str, folder: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.build_program", "--measure", who, folder]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    numbers: dict[str, Any] = json.loads(shown.stdout)
    return numbers


def _measure(who: str, folder: Path) -> dict[str, Any]:
    """Numbers of one builder in this fresh process."""
    return _measure_ours(folder) if who == "journeyman" else _measure_cvxpy(who, folder)


def _load_problem(folder: Path) -> jm.Apprenticeship:
    from scipy import sparse

    world = jm.World.load(folder / "world.npz")
    costs = np.load(folder / "costs.npz")
    matrix = costs["matrix"]
    sparse_enough = np.count_nonzero(matrix) < 0.3 * matrix.size
    basis = jm.CostBasis(sparse.csr_array(matrix) if sparse_enough else matrix)
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(costs["target"]))


def _measure_ours(folder: Path) -> dict[str, Any]:
    import highspy  # noqa: F401

    from journeyman.solvers.exact.engines import Engine, HighsModel
    from journeyman.solvers.exact.occupancy_program import exact_program

    baseline = _reset_peak()
    problem = _load_problem(folder)
    model = exact_program(problem)
    peak = _peak() - baseline
    before = _reset_peak()
    started = time.perf_counter()
    handed_over = HighsModel(model, Engine.SIMPLEX, threads=1)
    pass_seconds = time.perf_counter() - started
    engine = _peak() - before
    del handed_over
    matrix = model.columns
    return {
        "rows": matrix.shape[1],
        "columns": matrix.shape[0],
        "entries": matrix.nnz,
        "matrix_bytes": matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes,
        "peak": peak,
        "engine": engine,
        "pass_seconds": pass_seconds,
        "seconds": _best_seconds(lambda: exact_program(problem)),
    }


def _measure_cvxpy(backend: str, folder: Path) -> dict[str, Any]:
    import cvxpy as cp

    baseline = _reset_peak()
    problem = _load_problem(folder)
    world = problem.world
    E_transposed = world.flow.matrix().T.tocsr()
    Psi_transposed = problem.cost_matrix.T
    if not isinstance(Psi_transposed, np.ndarray):
        Psi_transposed = Psi_transposed.tocsr()

    def compile_program() -> object:
        mu = cp.Variable(world.num_pairs, nonneg=True)
        objective = cp.norm1(Psi_transposed @ mu - problem.target)
        program = cp.Problem(cp.Minimize(objective), [E_transposed @ mu == world.initial])
        return program.get_problem_data(cp.HIGHS, canon_backend=backend)

    data = compile_program()
    peak = _peak() - baseline
    del data
    return {"peak": peak, "seconds": _best_seconds(compile_program)}


def _best_seconds(build: Callable[[], object]) -> float:
    best = np.inf
    for _ in range(REPEATS):
        started = time.perf_counter()
        build()
        best = min(best, time.perf_counter() - started)
    return float(best)


def _reset_peak() -> int:
    """Forget the peak so far (Linux) and return the present resident size in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{field} is not reported by this system")


if __name__ == "__main__":
    main(sys.argv[1:])
