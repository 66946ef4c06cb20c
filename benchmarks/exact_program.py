"""The exact program certified at scale: column generation beside general engines.

Each run is a process of its own with one thread. Time is CPU seconds from problem to policy
(journeyman's includes the evaluation of the policy and the bounds; building the world and the
expert's expectations counts for nobody; packages and compiled code are loaded). Memory is the peak
resident size above that of the loaded instance. The objective is the gap of the extracted policy by
exact evaluation times (1 - discount); "certified" is value minus lower bound in the same unit.
Experts are estimated from 100 trajectories; medians over several of them. A peer that does not end
within the limit is shown as such.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import journeyman as jm
from benchmarks.build_program import _peak, _reset_peak

GRAMMAR = (
    "KIND:SIZE:COSTS:DISCOUNT:ACCURACY with KIND grid (SIZE x SIZE, COSTS x COSTS macro cells), "
    "start (the same with walls and one start state) or garnet"
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
)
PEERS = ("CLARABEL", "HIPO", "IPX")
LIMIT = 100.0


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*", default=INSTANCES, help=GRAMMAR)
    parser.add_argument("--experts", type=int, default=5)
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    parser.add_argument("--peer-experts", type=int, default=1, help="experts that peers are given")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a peer")
    parser.add_argument("--measure", nargs=2, metavar=("WHO", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        who, seed = options.measure
        print(json.dumps(_measure(who, options.instances[0], int(seed), options.limit)))
        return
    print(f"The exact program ({options.experts} experts, peers {options.peer_experts})")
    print(f"{'':38}{'CPU s':>8}{'peak MB':>9}{'objective':>12}{'certified':>11}  outcome")
    for instance in options.instances:
        print(instance)
        _row("journeyman", instance, options.experts, options.limit)
        for peer in options.peers:
            _row(peer, instance, options.peer_experts, options.limit)


def _row(who: str, instance: str, experts: int, limit: float) -> None:
    runs = [_run(who, instance, seed, limit) for seed in range(experts)]
    done = [run for run in runs if run["objective"] is not None]
    if not done:
        print(f"  {who:36}{'-':>8}{'-':>9}{'-':>12}{'-':>11}  {runs[0]['outcome']}")
        return
    middle = {
        name: statistics.median([run[name] for run in done])
        for name in ("seconds", "peak", "objective", "certified")
    }
    print(
        f"  {who:36}{middle['seconds']:>8.2f}{middle['peak'] / 1e6:>9.0f}"
        f"{middle['objective']:>12.7f}{middle['certified']:>11.1e}  {done[0]['outcome']}",
        flush=True,
    )


def _run(who: str, instance: str, seed: int, limit: float) -> dict[str, Any]:
    command = [
        sys.executable, "-m", "benchmarks.exact_program", instance, "--limit", str(limit),
        "--measure", who, str(seed),
    ]  # fmt: skip
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    nothing: dict[str, Any] = {"objective": None, "outcome": f"none in {limit:.0f} s"}
    try:
        shown = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment,
            timeout=3 * limit + 120,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return nothing
    figures: dict[str, Any] = json.loads(shown.stdout)
    return figures


def problem_of(instance: str, seed: int) -> tuple[jm.Apprenticeship, float]:
    """The problem that a word stands for with the expert of a seed, and the wanted accuracy."""
    kind, size, costs, discount, accuracy = instance.split(":")
    number, gamma = int(size), float(discount)
    if kind == "garnet":
        example = jm.gallery.garnet(number, num_costs=int(costs), discount=gamma, seed=seed)
    elif kind == "start":
        example = jm.gallery.grid(
            number, macro_cells=int(costs), discount=gamma, seed=seed, walls=_walls(number),
            initial=[number // 2, number // 2],
        )  # fmt: skip
    else:
        example = jm.gallery.grid(number, macro_cells=int(costs), discount=gamma, seed=seed)
    world, basis, expert = example
    horizon = int(np.ceil(np.log(1e-3) / np.log(gamma)))
    demos = jm.record(world, expert, trajectories=100, horizon=horizon, seed=seed)
    expectation = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.MonteCarlo()
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
    """Figures of one run in this fresh process."""
    problem, accuracy = problem_of(instance, seed)
    tolerance = accuracy * problem.world.effective_horizon
    unit = 1 - problem.world.discount
    tiny, _ = problem_of("grid:8:2:0.9:1e-3", 0)
    if who == "CLARABEL":
        import cvxpy  # noqa: F401
    else:
        _solve(tiny, who, tolerance, limit)
        garnet, _ = problem_of("garnet:500:2:0.9:1e-3", 0)
        _solve(garnet, who, tolerance, limit)
    before = _reset_peak()
    started = time.process_time()
    if who == "CLARABEL":
        value, bound, outcome = _cvxpy(problem, limit)
    else:
        answer = _solve(problem, who, tolerance, limit)
        value, bound = answer.value, answer.lower_bound
        outcome = f"{answer.status.name}, {answer.engine}"
    seconds = time.process_time() - started
    if value is None or outcome.startswith("TIME_LIMIT"):
        return {"objective": None, "outcome": f"none in {limit:.0f} s ({outcome})"}
    return {
        "seconds": seconds,
        "peak": _peak() - before,
        "objective": value * unit,
        "certified": float("nan") if bound is None else (value - bound) * unit,
        "outcome": outcome,
    }


def _solve(problem: jm.Apprenticeship, who: str, tolerance: float, limit: float) -> jm.Answer:
    if who == "journeyman":
        return jm.solve(problem, jm.ColumnGeneration(tolerance=tolerance, time_limit=3 * limit))
    return jm.solve(problem, jm.LinearProgram(engine=jm.Engine[who], time_limit=limit))


def _cvxpy(problem: jm.Apprenticeship, limit: float) -> tuple[float | None, None, str]:
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
            program.solve(solver="CLARABEL", time_limit=limit)
        except cp.SolverError as fault:
            return None, None, str(fault).split(".")[0]
    if mu.value is None or program.status == cp.USER_LIMIT:
        return None, None, str(program.status)
    return problem.gap(jm.extract(world, mu.value)), None, f"CVXPY, {program.status}"


if __name__ == "__main__":
    main(sys.argv[1:])
