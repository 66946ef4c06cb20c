"""`jm.plan` beside QuantEcon's `DiscreteDP` and pymdptoolbox, at equal proven accuracy.

`make bench-planning` builds the peers' environment and runs this. Instances are the documented
examples of the peers (the finite optimal growth model, optimal growth on a grid, replacement of
cars and mine management of QuantEcon's lectures and notebooks; forest, small and rand of
pymdptoolbox) and the worlds of `benchmarks.families` with one drawn cost each.

Everybody gets the same tolerance, a share of span(c)/(1 - discount): QuantEcon and pymdptoolbox as
the epsilon of their guarantee, with modified policy iteration (their documented choice for large
models, QuantEcon's default k = 20) and with policy iteration or value iteration. Time is CPU
seconds of one call, the least of up to five, one thread, compiled before, models built before; each
run is a process of its own. journeyman gets a new `World` for every call, so that what a world
remembers of its structure counts.

*error* is what the returned policy and values prove, the same formula for everybody: with
d = max(c_pi + discount P_pi V - V) and l = min(TV - V), the policy is within
(d - l)/(1 - discount) of optimal in every state; it is printed as a share of the tolerance.
*ratio* is the quickest peer whose error is at most 1.1 times the tolerance, over journeyman (above
1: journeyman is quicker). A peer that is stopped by its limit of CPU seconds, runs out of memory or
misses the tolerance does not count; if all do, the ratio is printed with > against the limit.

    python -m benchmarks.planning --sizes 1024 4096 --families grid garnet --tolerances 1e-8
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import journeyman as jm
from benchmarks.families import FAMILIES, HALVES, THREADS, Draft
from benchmarks.machine import describe_machine
from benchmarks.planning_peer import METHODS, least_seconds

SIZES = (1024, 4096, 16384, 65536)
TOLERANCES = (1e-4, 1e-8)
PEER = Path(".venv/planning/bin/python")
LIMIT, LOADING = 60.0, 6
"""CPU seconds for a run, and for loading packages and compiled code."""
OURS = "journeyman"
MISSED = 1.1
"""Times the tolerance: an error beyond it is not the accuracy that was asked for."""
Arrays = dict[str, Any]
Numbers = dict[str, Any]


# Documented examples


def growth_small() -> Arrays:
    """The finite optimal growth model: stock up to 15, consume or store, shocks up to 10."""
    shocks, most = 10, 5
    laws, cost, sizes = [], [], []
    for stock in range(shocks + most + 1):
        stores = range(min(stock, most) + 1)
        sizes.append(len(stores))
        for stored in stores:
            row = np.zeros(shocks + most + 1)
            row[stored : stored + shocks + 1] = 1 / (shocks + 1)
            laws.append(row)
            cost.append(-((stock - stored) ** 0.5))
    return instance_of(sparse.csr_array(np.array(laws)), cost, 0.9, sizes)


def growth(points: int) -> Arrays:
    """Optimal growth with f(k) = k^0.65 and log utility on a grid, deterministic."""
    grid = np.linspace(1e-6, 2.0, points)
    consumed = grid[:, None] ** 0.65 - grid[None, :]
    state, following = np.nonzero(consumed > 0)
    laws = sparse.csr_array(
        (np.ones(state.size), following, np.arange(state.size + 1)), shape=(state.size, points)
    )
    sizes = np.bincount(state, minlength=points)
    return instance_of(laws, -np.log(consumed[state, following]), 0.95, sizes)


def cars(points: int) -> Arrays:
    """Rust's (1996) replacement of a car whose mileage grows by exponential steps."""
    rate, upkeep, price, discount = 0.5, 200.0, 1e5, 1 / (1 + 0.05)
    most = 100.0
    width = most / points
    steps = np.exp(-rate * width * np.arange(points)) * (1 - np.exp(-rate * width))
    rows = np.array([np.concatenate([np.zeros(i), steps[: points - i]]) for i in range(points)])
    rows[:, -1] += 1 - rows.sum(axis=1)
    rows[rows < 1e-12] = 0.0
    rows /= rows.sum(axis=1, keepdims=True)
    mileage = width * np.arange(points)
    laws = np.stack([rows, np.tile(rows[0], (points, 1))], axis=1).reshape(2 * points, points)
    cost = np.stack([upkeep * mileage, np.full(points, price + 0.0)], axis=1).ravel()
    return instance_of(sparse.csr_array(laws), cost, discount, np.full(points, 2))


def mine(stock: int) -> Arrays:
    """Mine management (Miranda and Fackler): extract x of a stock s at a cost x^2/(1 + s)."""
    left = np.arange(stock + 1)
    sizes = left + 1
    state = np.repeat(left, sizes)
    taken = np.arange(state.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    laws = sparse.csr_array(
        (np.ones(state.size), state - taken, np.arange(state.size + 1)),
        shape=(state.size, stock + 1),
    )
    return instance_of(laws, taken**2 / (1 + state) - taken, 0.9, sizes)


def forest(states: int) -> Arrays:
    """A forest that grows, burns with probability 0.1, and may be cut."""
    laws, cost = sparse.lil_array((2 * states, states)), np.zeros(2 * states)
    for age in range(states):
        laws[2 * age, 0] = 0.1
        laws[2 * age, min(age + 1, states - 1)] += 0.9
        laws[2 * age + 1, 0] = 1.0
    cost[2 * states - 2] = -4.0
    cost[3::2] = -1.0
    cost[2 * states - 1] = -2.0
    return instance_of(laws.tocsr(), cost, 0.9, np.full(states, 2))


def small() -> Arrays:
    laws = sparse.csr_array([[0.5, 0.5], [0.0, 1.0], [0.8, 0.2], [0.1, 0.9]])
    return instance_of(laws, [-5.0, -10.0, 1.0, -2.0], 0.9, [2, 2])


def rand(states: int) -> Arrays:
    """Ten actions, rows of up to a third of the states, as the sparse form draws them."""
    rng, laws = np.random.default_rng(0), []
    for _ in range(10 * states):
        row = np.zeros(states)
        places = rng.integers(states, size=rng.integers(1, max(2, states // 3)))
        row[places] = rng.random(places.size)
        laws.append(sparse.csr_array((row / row.sum())[None, :]))
    cost = rng.uniform(-1, 1, 10 * states)
    return instance_of(sparse.vstack(laws).tocsr(), cost, 0.9, np.full(states, 10))


EXAMPLES: dict[str, Callable[[], Arrays]] = {
    "growth-16": growth_small,
    "growth-500": lambda: growth(500),
    "growth-1500": lambda: growth(1500),
    "cars-100": lambda: cars(100),
    "cars-1000": lambda: cars(1000),
    "mine-100": lambda: mine(100),
    "mine-1000": lambda: mine(1000),
    "forest-3": lambda: forest(3),
    "forest-1000": lambda: forest(1000),
    "forest-10000": lambda: forest(10000),
    "small-2": small,
    "rand-500": lambda: rand(500),
}


def instance_of(laws: Any, cost: Any, discount: float, sizes: Any) -> Arrays:
    laws = sparse.csr_array(laws)
    laws.sum_duplicates()
    return {
        "data": laws.data, "indices": laws.indices, "indptr": laws.indptr,
        "offsets": np.concatenate([[0], np.cumsum(sizes)]), "cost": np.asarray(cost, dtype=float),
        "discount": np.array(discount),
    }  # fmt: skip


def family(name: str, size: int, half: str) -> Arrays:
    """The world of a family and a drawn cost of its class."""
    problem = FAMILIES[name](Draft(name, size, half))
    world = problem.world
    weights = np.random.default_rng(size).uniform(-1, 1, problem.basis.num_costs)
    cost = problem.basis.on(world) @ weights
    return instance_of(world.transition, cost, world.discount, world.pairs.actions_per_state)


# Measuring


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="of families")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), help="(or how they begin)")
    parser.add_argument("--examples", nargs="*", default=list(EXAMPLES), help="(or how they begin)")
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--tolerances", nargs="*", type=float, default=TOLERANCES)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds for a run")
    parser.add_argument("--peer", type=Path, default=PEER, help="Python with the peers")
    parser.add_argument("--keep", type=Path, help="directory of instances and of peers' results")
    parser.add_argument("--own", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.own:
        own(*options.own)
        return
    print(describe_machine())
    rows: list[Numbers] = []
    with tempfile.TemporaryDirectory() as temporary:
        place = options.keep or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        for name, file in instances(options, place):
            for tolerance in options.tolerances:
                rows.append(row_of(name, file, tolerance, options))
                print(line_of(rows[-1], options), file=sys.stderr, flush=True)
    names = "".join(f"{method:>10}" for method in options.methods)
    print(f"{'instance':24}{'discount':>9}{'within':>8}{'ours':>10}{names}{'ratio':>8}  error")
    for row in sorted(rows, key=lambda row: float(row["ratio"])):
        print(line_of(row, options))


def instances(options: argparse.Namespace, place: Path) -> Iterator[tuple[str, Path]]:
    for name, make in EXAMPLES.items():
        if any(name.startswith(one) for one in options.examples):
            yield name, stored(place / f"{name}.npz", make)
    for name in FAMILIES:
        if any(name.startswith(one) for one in options.families):
            for size in options.sizes[:1] if name == "icu" else options.sizes:
                file = place / f"{name}-{size}-{options.half}.npz"
                yield f"{name}-{size}", stored(file, lambda: family(name, size, options.half))  # noqa: B023


def stored(file: Path, make: Callable[[], Arrays]) -> Path:
    if not file.exists():
        np.savez(file, **make())
    return file


def row_of(name: str, file: Path, tolerance: float, options: argparse.Namespace) -> Numbers:
    """Everybody's run of one instance."""
    with np.load(file) as given:
        instance = dict(given)
    cost, discount = instance["cost"], float(instance["discount"])
    allowed = tolerance * max(np.ptp(cost), 1e-300) / (1 - discount)
    problem = file.with_suffix(f".{tolerance:g}.npz")
    np.savez(problem, **instance, tolerance=allowed)
    rectangular = np.ptp(np.diff(instance["offsets"])) == 0
    runs: dict[str, Numbers] = {}
    for who in (OURS, *options.methods):
        if who.startswith("mdp") and not rectangular:
            runs[who] = {"outcome": "states differ in their actions"}
            continue
        result = file.with_suffix(f".{tolerance:g}.{who}.npz")
        if who == OURS or not result.exists():
            result.unlink(missing_ok=True)
            run(who, problem, result, options)
        runs[who] = judged(instance, allowed, result)
    peers = [
        runs[who]["seconds"] for who in options.methods if runs[who].get("error", np.inf) <= MISSED
    ]
    return {
        "name": name, "discount": discount, "tolerance": tolerance, "runs": runs,
        "certain": bool(peers),
        "ratio": min(peers, default=options.limit) / runs[OURS].get("seconds", options.limit),
    }  # fmt: skip


def run(who: str, problem: Path, result: Path, options: argparse.Namespace) -> None:
    command = [sys.executable, "-m", "benchmarks.planning", "--own"]
    if who != OURS:
        command = [str(options.peer), "-m", "benchmarks.planning_peer", "--method", who]
    end = int(options.limit) + LOADING

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (end, end + 5))

    environment = os.environ | dict.fromkeys((*THREADS, "NUMBA_NUM_THREADS"), "1")
    done = subprocess.run(
        [*command, str(problem), str(result)], capture_output=True, text=True, check=False,
        env=environment, preexec_fn=limit,
    )  # fmt: skip
    if done.returncode > 0 and (who == OURS or "MemoryError" not in done.stderr):
        raise RuntimeError(f"{who} on {problem}: {done.stderr}")
    if done.returncode:
        np.savez(result, seconds=np.inf)


def judged(instance: Arrays, allowed: float, result: Path) -> Numbers:
    """The time of a run, and what its policy and values prove as a share of what is allowed."""
    with np.load(result) as given:
        found = dict(given)
    if "values" not in found:
        return {"outcome": "none within the limits"}
    parts = (instance["data"], instance["indices"], instance["indptr"])
    offsets, discount = instance["offsets"], float(instance["discount"])
    laws = sparse.csr_array(parts, shape=(parts[2].size - 1, offsets.size - 1))
    values = found["values"]
    backup = instance["cost"] + discount * (laws @ values)
    least = (np.minimum.reduceat(backup, offsets[:-1]) - values).min()
    most = (backup[found["choice"]] - values).max()
    error = (most - least) / (1 - discount) / allowed
    return {"seconds": float(found["seconds"]), "error": float(error)}


def line_of(row: Numbers, options: argparse.Namespace) -> str:
    runs = row["runs"]
    times = ""
    for who in (OURS, *options.methods):
        numbers = runs[who]
        missed = "!" if numbers.get("error", 0.0) > MISSED else ""
        shown = f"{1000 * numbers['seconds']:.2f}" if "seconds" in numbers else "-"
        times += f"{missed + shown:>10}"
    ratio = ("" if row["certain"] else ">") + f"{row['ratio']:.2f}"
    errors = " ".join(
        f"{runs[who]['error']:.1e}" if "error" in runs[who] else "-"
        for who in (OURS, *options.methods)
    )
    what = f"{row['name']:24}{row['discount']:>9.4g}{row['tolerance']:>8.0e}"
    return f"{what}{times}{ratio:>8}  {errors}"


def own(problem: str, result: str) -> None:
    """One instance in this process by `jm.plan`."""
    with np.load(problem) as given:
        instance = dict(given)
    warm = FAMILIES["grid"](Draft("grid", 1024, HALVES[0]))
    jm.plan(warm.world, warm.basis.on(warm.world).sum(axis=1))
    worlds = []
    parts = (instance["data"], instance["indices"], instance["indptr"])
    offsets = instance["offsets"]
    states = offsets.size - 1
    start = np.full(states, 1 / states)
    laws = sparse.csr_array(parts, shape=(parts[2].size - 1, states))
    worlds = [
        jm.World(laws, start, float(instance["discount"]), choice_offsets=offsets) for _ in range(5)
    ]

    def solve() -> tuple[Any, Any]:
        found = jm.plan(worlds.pop(), instance["cost"], tolerance=float(instance["tolerance"]))
        taken = found.policy.on(world)
        return np.flatnonzero(taken > 0), found.values

    world = worlds[0]
    seconds, choice, values = least_seconds(solve)
    np.savez(result, seconds=seconds, choice=choice, values=values)


if __name__ == "__main__":
    main(sys.argv[1:])
