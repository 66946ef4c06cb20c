"""The first answer of a fresh installation: from `import journeyman`, with nothing compiled before.

Every case is a process of its own with one thread, once with an empty cache of compiled code and
once with what the first left there. *CPU* and *wall* are seconds from the start of the import to
the answer, the interpreter's own start not counted. *compiled* are the kernels that had to be
compiled, each with its seconds (those inside another's count for both), the slowest first.

    python -m benchmarks.first_use --cases plan learn --kernels 5
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS")
GRID = """
import journeyman as jm
world, basis, expert = jm.gallery.grid({size})
demos = jm.record(world, expert, trajectories=100, horizon=100, seed=0)
problem = jm.Apprenticeship(world, basis, demos)
"""
PLAN = """
import journeyman as jm
world, basis, _ = jm.gallery.grid({size})
jm.plan(world, basis.on(world) @ range(basis.num_costs))
"""
COMMAND = """
import sys
from journeyman.cli.main import main
for arguments in {arguments}:
    sys.argv = ["journeyman", *arguments.split()]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(arguments) from end
"""
FEATURES = GRID.format(size=8) + "features = jm.features.partition(world, demos, num_cells=16)\n"
CASES = {
    "import": "import journeyman as jm; jm.World",
    "plan": PLAN.format(size=8),
    "plan 16": PLAN.format(size=16),
    "plan 40": PLAN.format(size=40),
    "occupancy": "import journeyman as jm\nworld, _, expert = jm.gallery.grid(8)\n"
    "jm.occupancy(world, expert)",
    "solve": GRID.format(size=8) + "jm.solve(problem)",
    "solve 16": GRID.format(size=16) + "jm.solve(problem)",
    "solve 40": GRID.format(size=40) + "jm.solve(problem)",
    "solve garnet": GRID.format(size=200).replace("grid", "garnet") + "jm.solve(problem)",
    "learn": GRID.format(size=8) + "print(jm.learn(world, basis, demos).summary())",
    "learn 16": GRID.format(size=16) + "print(jm.learn(world, basis, demos).summary())",
    "certify": GRID.format(size=8) + "print(jm.certify(problem, expert).table())",
    "ReducedProgram": FEATURES + "jm.solve(problem, jm.ReducedProgram(features))",
    "SGD-AL, 1,000": FEATURES
    + "jm.solve(problem, jm.StochasticSubgradient(features, steps=1000), seed=1)",
    "SGD-AL, 8,000": FEATURES
    + "jm.solve(problem, jm.StochasticSubgradient(features, steps=8000), seed=1)",
    "SGD-AL": FEATURES + "jm.solve(problem, jm.StochasticSubgradient(features), seed=1)",
    "primal-dual": FEATURES
    + "jm.solve(problem, jm.solvers.StochasticPrimalDual(features), seed=1)",
    "learn, files": COMMAND.format(
        arguments=["new pump", "learn run --config pump/learn.toml"]
    ),
    "demo --size 8": COMMAND.format(arguments=["demo --size 8 --trajectories 200"]),
    "make demo": COMMAND.format(arguments=["demo --report r.html"]),
}  # fmt: skip
PAGES = {"README": "README.md", "tour": "docs/tour.md"}
ROOT = Path(__file__).parents[1]


def examples() -> dict[str, str]:
    """The blocks of Python on the pages that a newcomer reads first, each by itself."""
    return {
        f"{name} {number}": block.split("```")[0]
        for name, page in PAGES.items()
        for number, block in enumerate((ROOT / page).read_text().split("```python")[1:], 1)
    }


CASES |= examples()
NAMED = 4
Numbers = dict[str, Any]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--kernels", type=int, default=NAMED, help="how many to name")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        measure(options.measure)
        return
    from benchmarks.machine import describe_machine  # numpy, which a case has to load itself

    print(describe_machine())
    print(f"{'':16}{'empty cache':>16}{'filled cache':>16}")
    print(f"{'case':16}{'CPU':>8}{'wall':>8}{'CPU':>8}{'wall':>8}  compiled")
    for name in options.cases:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = run(name, Path(cache)), run(name, Path(cache))
        slowest = sorted(cold["kernels"].items(), key=lambda item: -item[1])
        kernels = ", ".join(f"{kernel} {took:.2f}" for kernel, took in slowest[: options.kernels])
        print(
            f"{name:16}{cold['cpu']:>8.2f}{cold['wall']:>8.2f}{warm['cpu']:>8.2f}"
            f"{warm['wall']:>8.2f}  {len(slowest)}{': ' if slowest else ''}{kernels}",
            flush=True,
        )


def run(name: str, cache: Path) -> Numbers:
    """A case in a fresh process."""
    settings = dict.fromkeys(THREADS, "1") | {"NUMBA_CACHE_DIR": str(cache)}
    settings["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "benchmarks.first_use", "--measure", name]
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | settings,
            cwd=place,
        )  # fmt: skip
        result = Path(place, "numbers.json")
        if not result.exists():
            raise RuntimeError(f"{name}: {done.stderr}")
        return dict(json.loads(result.read_text()))


def measure(name: str) -> None:
    """Runs a case here and writes its numbers into numbers.json."""
    code = CASES[name]
    place = Path("numbers.json").absolute()
    begun, used = time.perf_counter(), time.process_time()
    exec(compile(code, name, "exec"), {})
    numbers = {"wall": time.perf_counter() - begun, "cpu": time.process_time() - used}
    place.write_text(json.dumps(numbers | {"kernels": compiled()}))


def compiled() -> dict[str, float]:
    """Seconds for which the compiler worked on each kernel of this process."""
    if "numba" not in sys.modules:
        return {}
    from numba.core.dispatcher import Dispatcher

    found: dict[str, float] = {}
    for module in [one for name, one in sys.modules.items() if name.startswith("journeyman.")]:
        for kernel in vars(module).values():
            if isinstance(kernel, Dispatcher) and not kernel.stats.cache_hits:
                timers = [kernel.get_metadata(one)["timers"] for one in kernel.signatures]
                took = sum(one["compiler_lock"] for one in timers)
                if took:
                    function = kernel.py_func
                    found[f"{function.__module__.split('.')[-1]}.{function.__name__}"] = took
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
