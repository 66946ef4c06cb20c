"""`jm.solve(problem)` beside CVXPY's default (Clarabel) in worlds up to 64 x 64 cells.

Time is CPU seconds of one thread, packages and compiled code loaded: journeyman's from the problem
to policy, evaluation and both bounds; CVXPY's for building the program in its best form (sparse
matrices; norm1, norm2 or max) and solving it, canonicalisation included, without an evaluation.
Each of the two has a process of its own per instance and expert; short solves are repeated and the
fastest counts, then the median over the experts. Objectives are the gap of the extracted policy by
exact evaluation times (1 - discount), and "allowed" is what jm.solve may miss of the optimum in the
same unit. For `Simplex` journeyman also finds the largest surplus; "both" is CVXPY made to do that
too, by a second program that holds the gap. Ratios are CVXPY's seconds over journeyman's.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import journeyman as jm
from benchmarks.exact_program import problem_of
from benchmarks.machine import describe_machine

INSTANCES = (
    "grid:16:4:0.9", "grid:16:8:0.99", "grid:24:4:0.95", "grid:32:8:0.99", "grid:48:8:0.95",
    "grid:64:4:0.9", "grid:64:8:0.95", "grid:64:8:0.99", "grid:64:8:0.999",
    "start:16:4:0.99", "start:32:8:0.99", "start:48:4:0.999", "start:64:8:0.95", "start:64:8:0.99",
    "garnet:100:8:0.99", "garnet:200:8:0.95", "garnet:300:8:0.9", "garnet:1000:8:0.99",
)  # fmt: skip
CLASSES: dict[str, jm.costs.CostClass] = {
    "InfinityBall": jm.InfinityBall(),
    "EuclideanBall": jm.EuclideanBall(),
    "Simplex": jm.Simplex(),
}
OURS, THEIRS = "journeyman", "CVXPY"
ENOUGH_SECONDS, MOST_REPEATS = 0.3, 7
SLACK = 1e-9
Numbers = dict[str, Any]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*", default=INSTANCES, help="KIND:SIZE:COSTS:DISCOUNT")
    parser.add_argument("--experts", type=int, default=3)
    parser.add_argument("--classes", nargs="*", default=list(CLASSES), choices=list(CLASSES))
    parser.add_argument("--measure", nargs=2, metavar=("WHO", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        who, seed = options.measure
        print(json.dumps(_measure(who, options.instances[0], int(seed), options.classes)))
        return
    print(f"Small worlds, medians of {options.experts} experts")
    print(
        f"{'':33}{'jm.solve':>9}{'CVXPY':>9}{'ratio':>7}{'both':>9}{'ratio':>7}"
        f"{'our gap':>12}{'their gap':>12}{'allowed':>9}  engine"
    )
    fair: list[tuple[float, str]] = []
    single: list[tuple[float, str]] = []
    for instance in options.instances:
        runs = {
            who: [_run(who, instance, seed, options.classes) for seed in range(options.experts)]
            for who in (OURS, THEIRS)
        }
        for name in options.classes:
            ratios, line = _row(instance, name, runs)
            print(line, flush=True)
            for ratio, kept in zip(ratios, (single, fair), strict=True):
                kept.append((ratio, f"{instance} {name}"))
    print(_worst("like with like, both stages of Simplex", fair))
    print(_worst("CVXPY's first stage alone against both of ours", single))


def _worst(words: str, ratios: list[tuple[float, str]]) -> str:
    lowest, where = min(ratios)
    slower = sum(ratio < 1 for ratio, _ in ratios)
    return f"worst ratio, {words}: {lowest:.2f} ({where}); below 1 in {slower} of {len(ratios)}"


def _row(
    instance: str, name: str, runs: dict[str, list[Numbers]]
) -> tuple[tuple[float, float], str]:
    """The ratios to CVXPY's first stage and to all of its stages, and a line of the table."""
    own, peer = ([run[name] for run in runs[who]] for who in (OURS, THEIRS))

    def middle(numbers: list[Numbers], key: str) -> float:
        return float(statistics.median(run[key] for run in numbers))

    seconds, theirs = middle(own, "seconds"), middle(peer, "seconds")
    single = fair = theirs / seconds
    both = ["", ""]
    if name == "Simplex":
        twice = middle(peer, "both")
        fair = twice / seconds
        both = [f"{twice:.4f}", f"{fair:.2f}"]
    engines = sorted({run["engine"] for run in own})
    return (single, fair), (
        f"{instance:18} {name:13} {seconds:>9.4f}{theirs:>9.4f}{single:>7.2f}"
        f"{both[0]:>9}{both[1]:>7}"
        f"{middle(own, 'gap'):>12.8f}{middle(peer, 'gap'):>12.8f}{middle(own, 'allowed'):>9.0e}"
        f"  {' | '.join(engines)}"
    )


def _run(who: str, instance: str, seed: int, classes: Sequence[str]) -> Numbers:
    command = [
        sys.executable, "-m", "benchmarks.small_worlds", instance, "--classes", *classes,
        "--measure", who, str(seed),
    ]  # fmt: skip
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{who} on {instance}: {done.stderr}")
    numbers: Numbers = json.loads(done.stdout)
    return numbers


def _measure(who: str, instance: str, seed: int, classes: Sequence[str]) -> Numbers:
    """Numbers of all classes in this fresh process."""
    given, _ = problem_of(f"{instance}:1", seed)
    numbers = {}
    for name in classes:
        problem = _of_class(given, name)
        _load(who, name)
        numbers[name] = _ours(problem) if who == OURS else _theirs(problem)
    return numbers


def _of_class(given: jm.Apprenticeship, name: str) -> jm.Apprenticeship:
    return jm.Apprenticeship(given.world, given.basis, given.expectation, CLASSES[name])


def _load(who: str, name: str) -> None:
    """Whatever is loaded or compiled once is not measured."""
    for word in ("grid:8:2:0.9:1", "garnet:500:2:0.9:1"):
        problem = _of_class(problem_of(word, 0)[0], name)
        if who == OURS:
            jm.solve(problem)
            jm.solve(problem, jm.ColumnGeneration())
        else:
            _cvxpy(problem, stages=1)


def _ours(problem: jm.Apprenticeship) -> Numbers:
    answer, seconds = _timed(lambda: jm.solve(problem))
    unit = 1 - problem.world.discount
    return {
        "seconds": seconds,
        "gap": answer.value * unit,
        "allowed": 1e-7 * problem.gap_scale * unit,
        "engine": f"{answer.status.name} {answer.engine.split(';')[0]}",
    }


def _theirs(problem: jm.Apprenticeship) -> Numbers:
    measure, seconds = _timed(lambda: _cvxpy(problem, stages=1))
    numbers = {"seconds": seconds, "gap": float("nan"), "both": float("inf")}
    if measure is not None:
        gap = problem.gap(jm.policy.extract(problem.world, measure))
        numbers["gap"] = gap * (1 - problem.world.discount)
    if isinstance(problem.cost_class, jm.Simplex):
        second, seconds = _timed(lambda: _cvxpy(problem, stages=2))
        numbers["both"] = seconds if second is not None else float("inf")
    return numbers


def _cvxpy(problem: jm.Apprenticeship, stages: int) -> Any:
    """The optimal measure by CVXPY with its default engine, or None when that gives up."""
    import cvxpy as cp

    world = problem.world
    mu = cp.Variable(world.num_pairs, nonneg=True)
    difference = problem.cost_matrix.T @ mu - problem.target
    norm = {"InfinityBall": cp.norm1, "EuclideanBall": cp.norm2, "Simplex": cp.max}
    gap = norm[type(problem.cost_class).__name__](difference)
    flow = world.flow.matrix().T.tocsr() @ mu == world.initial
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it warns of shows in the gap
        try:
            first = cp.Problem(cp.Minimize(gap), [flow])
            first.solve(solver="CLARABEL")
            if stages == 2 and first.value is not None:
                held = gap <= float(first.value) + SLACK * problem.gap_scale
                cp.Problem(cp.Minimize(cp.sum(difference)), [flow, held]).solve(solver="CLARABEL")
        except cp.SolverError:
            return None
    return mu.value


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the fewest CPU seconds of several repeats, fewer of long ones."""
    times: list[float] = []
    while len(times) < MOST_REPEATS and sum(times) < ENOUGH_SECONDS:
        started = time.process_time()
        result = work()
        times.append(time.process_time() - started)
    return result, min(times)


if __name__ == "__main__":
    if "--measure" not in sys.argv:
        print(describe_machine())
    main(sys.argv[1:])
