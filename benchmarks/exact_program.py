"""The exact program certified at scale: column generation beside general engines.

Each run is a process of its own with one thread. Time is CPU seconds from problem to policy
(journeyman's includes the evaluation of the policy and the bounds; building the world and the
expert's expectations counts for nobody; packages and compiled code are loaded). Memory is the peak
resident size above that of the loaded instance. The objective is the gap of the extracted policy by
exact evaluation times (1 - discount); "certified" is value minus lower bound in the same unit.
Experts are estimated from 100 trajectories. Numbers are medians over the same experts for
everybody; a run that does not end within its limit of CPU seconds counts as the slowest, and a row
ends as soon as it has decided the median. `--keep FILE` writes every run down and continues where
an interrupted table ended.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import journeyman as jm
from benchmarks.build_program import _peak, _reset_peak
from benchmarks.machine import describe_machine

GRAMMAR = (
    "KIND:SIZE:COSTS:DISCOUNT:ACCURACY with KIND grid (SIZE x SIZE, COSTS x COSTS macro cells), "
    "start (the same with walls and one start state), garnet (SIZE states) or icu (ICU-Sepsis; "
    "SIZE and COSTS are as they are)"
)
INSTANCES = (
    "grid:64:8:0.99:1e-5",
    "grid:128:8:0.99:1e-5",
    "grid:128:8:0.9:1e-5",
    "grid:256:8:0.99:1e-4",
    "start:64:8:0.99:1e-4",
    "start:128:8:0.99:1e-4",
    "garnet:10000:8:0.99:1e-4",
    "garnet:100000:8:0.99:1e-4",
    "icu:716:4:0.99:1e-4",
)
LIMIT = 100.0
"""CPU seconds for a peer."""
PEERS = ("HIPO", "CLARABEL", "IPX")
OURS = "journeyman"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS")
OWN_PATIENCE = 1000.0
Numbers = dict[str, Any]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*", default=INSTANCES, help=GRAMMAR)
    parser.add_argument("--experts", type=int, default=5)
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds for a peer")
    parser.add_argument("--keep", type=Path, help="file of finished runs")
    parser.add_argument("--measure", nargs=2, metavar=("WHO", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        who, seed = options.measure
        print(json.dumps(_measure(who, options.instances[0], int(seed), options.limit)))
        return
    print(describe_machine())
    print(f"The exact program, {options.experts} experts")
    print(
        f"{'':12}{'CPU s':>8}{'times':>8}{'peak MB':>9}{'objective':>12}{'certified':>11}  outcome"
    )
    for instance in options.instances:
        print(instance)
        own = Row(OURS, instance, OWN_PATIENCE, options.keep).measured(options.experts)
        print(own.line(None), flush=True)
        for peer in options.peers:
            row = Row(peer, instance, options.limit, options.keep).measured(options.experts)
            print(row.line(own.seconds), flush=True)


class Row:
    """The runs of one engine on one instance."""

    def __init__(self, who: str, instance: str, limit: float, keep: Path | None) -> None:
        self.who, self.instance, self.limit, self.keep = who, instance, limit, keep
        self.runs: list[Numbers] = []
        self.experts = 0

    def measured(self, experts: int) -> "Row":
        """Run expert by expert until the median is known."""
        self.experts = experts
        for seed in range(experts):
            if 2 * len(self._unfinished()) > experts:
                break
            self.runs.append(self._kept(seed) or self._run(seed))
        return self

    @property
    def seconds(self) -> float:
        """The median, infinite when half of the runs did not end."""
        return self._median("seconds")

    def line(self, own_seconds: float | None) -> str:
        if self.seconds == np.inf:
            least = "" if own_seconds is None else f"> {self.limit / own_seconds:.0f}"
            return f"  {self.who:10}{'-':>8}{least:>8}{'-':>9}{'-':>12}{'-':>11}  {self._outcome()}"
        times = "" if own_seconds is None else f"{self.seconds / own_seconds:.1f}"
        return (
            f"  {self.who:10}{self.seconds:>8.2f}{times:>8}{self._median('peak') / 1e6:>9.0f}"
            f"{self._median('objective'):>12.7f}{self._median('certified'):>11.1e}"
            f"  {self._outcome()}"
        )

    def _median(self, name: str) -> float:
        ended = [run[name] for run in self.runs if run["objective"] is not None]
        missing = [np.inf] * (self.experts - len(ended)) if name == "seconds" else []
        return float(statistics.median(ended + missing))

    def _unfinished(self) -> list[Numbers]:
        return [run for run in self.runs if run["objective"] is None]

    def _outcome(self) -> str:
        words = self.runs[0]["outcome"]
        unfinished = len(self._unfinished())
        return f"{words} ({unfinished} of {len(self.runs)} did not end)" if unfinished else words

    def _kept(self, seed: int) -> Numbers | None:
        if self.keep is None or not self.keep.exists():
            return None
        for line in self.keep.read_text().splitlines():
            key, numbers = json.loads(line)
            if key == [self.who, self.instance, seed]:
                return dict(numbers)
        return None

    def _run(self, seed: int) -> Numbers:
        numbers = _in_fresh_process(self.who, self.instance, seed, self.limit)
        if self.keep is not None:
            with self.keep.open("a") as file:
                file.write(json.dumps([[self.who, self.instance, seed], numbers]) + "\n")
        return numbers


def _in_fresh_process(who: str, instance: str, seed: int, limit: float) -> Numbers:
    command = [
        sys.executable, "-m", "benchmarks.exact_program", instance, "--limit", str(limit),
        "--measure", who, str(seed),
    ]  # fmt: skip
    environment = os.environ | dict.fromkeys(THREADS, "1")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 0:
        numbers: Numbers = json.loads(done.stdout)
        return numbers
    if done.returncode > 0:
        raise RuntimeError(f"{who} on {instance}: {done.stderr}")
    return {"objective": None, "outcome": f"none in {limit:.0f} s"}


def problem_of(instance: str, seed: int) -> tuple[jm.Apprenticeship, float]:
    """The problem that a word stands for with the expert of a seed, and the wanted accuracy."""
    kind, size, costs, discount, accuracy = instance.split(":")
    number, gamma = int(size), float(discount)
    example: jm.gallery.Example
    if kind == "garnet":
        example = jm.gallery.garnet(number, num_costs=int(costs), discount=gamma, seed=seed)
    elif kind == "start":
        example = jm.gallery.grid(
            number, macro_cells=int(costs), discount=gamma, seed=seed, walls=_walls(number),
            initial=[number // 2, number // 2],
        )  # fmt: skip
    elif kind == "icu":
        example = jm.gallery.icu_sepsis(discount=gamma)
    else:
        example = jm.gallery.grid(number, macro_cells=int(costs), discount=gamma, seed=seed)
    world, basis, expert = example
    horizon = int(np.ceil(np.log(1e-3) / np.log(gamma)))
    demos = jm.record(world, expert, trajectories=100, horizon=horizon, seed=seed)
    expectation = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    return jm.Apprenticeship(world, basis, expectation), float(accuracy)


def _walls(size: int) -> list[tuple[int, int]]:
    """Two upright walls with a door in the middle and one lying wall with doors at its ends."""
    upright = [
        (row, column)
        for column in (size // 4, 3 * size // 4)
        for row in range(size)
        if abs(row - size // 2) > size // 16
    ]
    lying = [(size // 4, column) for column in range(size // 8, size - size // 8)]
    return sorted(set(upright + lying))


def _measure(who: str, instance: str, seed: int, limit: float) -> dict[str, Any]:
    """Numbers of one run in this fresh process."""
    problem, accuracy = problem_of(instance, seed)
    tolerance = accuracy * problem.world.effective_horizon
    unit = 1 - problem.world.discount
    tiny, _ = problem_of("grid:8:2:0.9:1e-3", 0)
    if who == "CLARABEL":
        import cvxpy  # noqa: F401
    else:
        _solve(tiny, who, tolerance)
        garnet, _ = problem_of("garnet:500:2:0.9:1e-3", 0)
        _solve(garnet, who, tolerance)
    before = _reset_peak()
    started = time.process_time()
    _limit_cpu(limit)
    if who == "CLARABEL":
        value, bound, outcome = _cvxpy(problem)
    else:
        answer = _solve(problem, who, tolerance)
        value, bound = answer.value, answer.lower_bound
        outcome = f"{answer.status.name}, {answer.engine}"
    seconds = time.process_time() - started
    if value is None:
        return {"objective": None, "outcome": outcome}
    return {
        "seconds": seconds,
        "peak": _peak() - before,
        "objective": value * unit,
        "certified": float("nan") if bound is None else (value - bound) * unit,
        "outcome": outcome,
    }


def _limit_cpu(seconds: float) -> None:
    """End this process then; engines know limits of wall time only, and not all heed them."""
    end = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (end, end + 5))


def _solve(problem: jm.Apprenticeship, who: str, tolerance: float) -> jm.Answer:
    if who == OURS:
        return jm.solve(problem, jm.ColumnGeneration(tolerance=tolerance))
    return jm.solve(problem, jm.LinearProgram(engine=jm.solvers.Engine[who]))


def _cvxpy(problem: jm.Apprenticeship) -> tuple[float | None, None, str]:
    """CVXPY with its default engine, the extracted policy evaluated exactly."""
    import cvxpy as cp

    world = problem.world
    mu = cp.Variable(world.num_pairs, nonneg=True)
    objective = cp.norm1(problem.cost_matrix.T @ mu - problem.target)
    flow = world.flow.matrix().T.tocsr() @ mu == world.initial
    program = cp.Problem(cp.Minimize(objective), [flow])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it warns of shows in the status and the value
        try:
            program.solve(solver="CLARABEL", max_threads=1)
        except cp.SolverError as fault:
            return None, None, str(fault).split(".")[0]
    if mu.value is None:
        return None, None, str(program.status)
    return problem.gap(jm.policy.extract(world, mu.value)), None, f"CVXPY, {program.status}"


if __name__ == "__main__":
    main(sys.argv[1:])
