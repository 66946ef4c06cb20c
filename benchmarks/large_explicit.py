"""Everything around a solve in one large explicit world, stage by stage, beside planning it.

A grid of 1,208 x 1,208 cells (1.46 million states, 5.8 million pairs), a garnet of that size, or
four queues, generated from a seed. Every stage runs in one process, one after the other, and says
seconds on the clock, seconds of the processor, and the highest memory while it ran, beyond the
interpreter's own and in units of the transition matrix (the arrays of CSR). Limits are printed
beside what was taken; with `--processor` they are processor seconds, for machines that are shared.

    python -m benchmarks.large_explicit grid --states 200000
    python -m benchmarks.large_explicit grid garnet queues --limit 60
"""

import argparse
import math
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.gallery.example import Example
from journeyman.progress import Deadline, within

Made = TypeVar("Made")
STATES = 1_460_000
PLANS = 3
"""So many times as long as a plan may all stages take together that are no solve."""
MEMORY = 3.0
"""And so many times the transition matrix may be held at the highest."""
OVER = 1.15


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", default=["grid"], help="grid, garnet, queues")
    parser.add_argument("--states", type=int, default=STATES)
    parser.add_argument("--limit", type=float, default=60.0, help="time_limit of solve and learn")
    parser.add_argument("--costs", type=int, default=16)
    parser.add_argument("--discount", type=float, default=0.95)
    parser.add_argument("--trajectories", type=int, default=200)
    parser.add_argument("--horizon", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--skip", nargs="*", default=[], help="solve, learn: leave out what takes the limit"
    )
    parser.add_argument("--processor", action="store_true", help="limits in processor seconds")
    parser.add_argument("--keep", type=Path, help="where worlds are kept, to be used again")
    options = parser.parse_args(arguments)
    print(describe_machine())
    for kind in options.worlds:
        measured(kind, options)


def example(kind: str, options: Any) -> Example:
    """The world of this kind, from the seed."""
    if kind == "grid":
        size, cells = round(math.sqrt(options.states)), round(math.sqrt(options.costs))
        return jm.gallery.grid(
            size, macro_cells=cells, discount=options.discount, seed=options.seed
        )
    if kind == "garnet":
        return jm.gallery.garnet(
            options.states, 4, 5, num_costs=options.costs, discount=options.discount,
            seed=options.seed,
        )  # fmt: skip
    buffer = round(options.states**0.25) - 1
    network = jm.gallery.queues(4, buffers=[buffer] * 4, discount=options.discount)
    world, basis = network.explicit()
    weights = np.random.default_rng(options.seed).random(basis.num_costs)
    best = jm.plan(world, np.asarray(basis.on(world) @ weights)).policy
    return Example(world, basis, best.mixed_with(jm.Policy.uniform(world), 0.3))


@dataclass
class Stages:
    """What was measured so far."""

    unit: int
    """Bytes of the transition matrix."""
    base: float
    """Held before it was read, by the interpreter and what it has imported."""
    processor: bool
    """Whether limits count seconds of the processor."""
    rows: dict[str, tuple[float, float, float]] = field(default_factory=dict)

    def run(self, name: str, work: Callable[[], Made], limit: float | None = None) -> Made:
        """The outcome of a stage, whose numbers are printed."""
        forget_peak()
        clock, processor = time.perf_counter(), time.process_time()
        with within(Deadline(clock=time.process_time)) if self.processor else nullcontext():
            made = work()
        seconds = time.perf_counter() - clock
        cpu, peak = time.process_time() - processor, peak_bytes() - self.base
        self.rows[name] = seconds, cpu, peak
        held = f"{peak / 1e6:>9.0f}{peak / self.unit:>10.1f}"
        taken = cpu if self.processor else seconds
        asked = "" if limit is None else f"   limit {limit:g} s: {taken / limit:.0%}"
        print(f"{name:<14}{seconds:>9.1f}{cpu:>9.1f}{held}{asked}", flush=True)
        return made

    def cpu(self, *names: str) -> float:
        return sum(self.rows[name][1] for name in names)


def forget_peak() -> None:
    """Memory at its highest is counted from here on (Linux)."""
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5", encoding="ascii")


def peak_bytes() -> float:
    """The highest memory since then, the interpreter included; elsewhere since the start."""
    path = Path("/proc/self/status")
    if path.exists():
        found = next(line for line in path.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024.0 * int(found.split()[1])
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def held_bytes() -> float:
    """Memory of this process at present (Linux)."""
    path = Path("/proc/self/statm")
    pages = int(path.read_text().split()[1]) if path.exists() else 0
    return float(pages * resource.getpagesize())


AROUND = ("world", "problem", "target", "certify", "report", "save", "audit", "read again")


def measured(kind: str, options: Any) -> None:
    """One world, all its stages."""
    warm_up(kind, options)
    with tempfile.TemporaryDirectory() as temporary:
        folder = temporary if options.keep is None else options.keep
        place = Path(folder) / f"{kind}-{options.states}-{options.costs}-{options.seed}"
        if not place.is_dir():
            apart = multiprocessing.get_context("spawn")
            child = apart.Process(target=write_example, args=(kind, options, place))
            child.start()
            child.join()
        base = held_bytes()
        parts = np.load(place / "world.npz")
        matrix = sparse.csr_array(
            tuple(parts[name] for name in ("data", "indices", "indptr")), shape=parts["shape"]
        )
        initial, law, weights = (parts[name] for name in ("initial", "law", "weights"))
        given = sparse.load_npz(place / "costs.npz")
        basis = jm.CostBasis(given if kind == "grid" else given.toarray())
        del given
    unit = sum(part.nbytes for part in (matrix.data, matrix.indices, matrix.indptr))
    print(
        f"\n{kind}, seed {options.seed}: {matrix.shape[1]:,} states, {matrix.shape[0]:,} pairs, "
        f"{matrix.nnz:,} transitions ({unit / 1e6:.0f} MB), {basis.num_costs} costs, discount "
        f"{options.discount:g}; kernels are compiled\nwith policy, costs and law of the start "
        f"{(held_bytes() - base) / unit:.1f} times the matrix are held\n"
        f"{'':<14}{'seconds':>9}{'CPU':>9}{'peak MB':>9}{'matrices':>10}"
    )
    stages = Stages(unit, base, options.processor)
    held = [matrix]
    del matrix  # what was given is not held any longer than it takes
    world = stages.run("world", lambda: jm.World(held.pop(), initial, options.discount))
    expert = jm.Policy(law, world.pairs)
    demos = stages.run(
        "record",
        lambda: jm.record(
            world, expert, trajectories=options.trajectories, horizon=options.horizon,
            seed=options.seed,
        ),
    )  # fmt: skip
    stages.run("plan", lambda: jm.plan(world, np.asarray(basis.on(world) @ weights)))
    problem = stages.run("problem", lambda: jm.Apprenticeship(world, basis, demos))
    certified(stages, problem, expert, options)
    if "learn" not in options.skip:
        apprentice = stages.run(
            "learn",
            lambda: jm.learn(world, basis, demos, time_limit=options.limit),
            options.limit,
        )
        print(f"  {apprentice.answer}\n  {apprentice.summary()}")
    around, plan = stages.cpu(*AROUND), stages.cpu("plan")
    highest = max(stages.rows[name][2] for name in AROUND) / unit
    print(
        f"\naround the solve: {around:.1f} s CPU, {around / plan:.1f} plans (at most {PLANS} are "
        f"asked for); memory at most {highest:.1f} transition matrices ({MEMORY:g})"
    )


def certified(stages: Stages, problem: jm.Apprenticeship, expert: jm.Policy, options: Any) -> None:
    """From the target to a run that is audited."""
    stages.run("target", lambda: problem.target)
    limit, answer = options.limit, None
    if "solve" not in options.skip:
        answer = stages.run("solve", lambda: jm.solve(problem, time_limit=limit), limit)
        print(f"  {answer}\n  bounds: {bounds_over_time(answer)}")
    certificate = stages.run("certify", lambda: jm.certify(problem, answer or expert))
    print(f"  {certificate.summary()}")
    with tempfile.TemporaryDirectory() as folder:
        run, page = Path(folder) / "run", Path(folder) / "report.html"
        stages.run("save", lambda: certificate.save(run))
        size = sum(path.stat().st_size for path in run.iterdir())
        outcome = stages.run("audit", lambda: jm.audit(run))
        print(f"  {size / 1e6:.0f} MB on disk; {outcome}")
        stages.run("report", lambda: jm.report.write_report(certificate, page))
        print(f"  {page.stat().st_size / 1e6:.1f} MB of HTML")
        stages.run("read again", lambda: jm.World.load(run / "world.npz"))


def bounds_over_time(answer: jm.Answer) -> str:
    """Seconds, lower and upper bound after some of the calls."""
    trace = np.asarray(answer.bounds_trace)
    rows = trace[np.unique(np.linspace(0, len(trace) - 1, 12).astype(int))] if len(trace) else []
    return ", ".join(f"{at:.0f} s {low:.3g}..{high:.3g}" for at, low, high in rows) or "no call"


def write_example(kind: str, options: Any, folder: Path) -> None:
    """The world as arrays on disk: made in a process of its own, whose memory does not count."""
    world, basis, expert = example(kind, options)
    folder.mkdir(parents=True)
    rows, matrix = world.transition, basis.matrix
    weights = np.random.default_rng(options.seed + 1).dirichlet(np.ones(basis.num_costs))
    np.savez(
        folder / "world.npz", data=rows.data, indices=rows.indices, indptr=rows.indptr,
        shape=rows.shape, initial=world.initial, law=expert.on(world), weights=weights,
    )  # fmt: skip
    sparse.save_npz(folder / "costs.npz", sparse.csr_array(matrix), compressed=False)


def warm_up(kind: str, options: Any) -> None:
    """Compile and import what the stages use, in a small world of the kind."""
    small = argparse.Namespace(**{**vars(options), "states": 900, "costs": min(options.costs, 16)})
    world, basis, expert = example(kind, small)
    demos = jm.record(world, expert, trajectories=20, horizon=20, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    for solver in (jm.LinearProgram(), jm.ColumnGeneration(), jm.solvers.SmoothedProgram()):
        answer = jm.solve(problem, solver)
    certificate = jm.certify(problem, answer)
    with tempfile.TemporaryDirectory() as folder:
        certificate.save(Path(folder) / "run")
        jm.audit(Path(folder) / "run")
        jm.report.write_report(certificate, Path(folder) / "report.html")


if __name__ == "__main__":
    main(sys.argv[1:])
