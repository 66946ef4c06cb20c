"""The exact program on one process and on several: bits, memory, seconds and bytes that travel.

Worlds are made by callables, block by block: a *grid* (steps slip to either side, a cost for each
quarter) and a *garnet* (every action leads to 4 states all over the world, 4 dense costs). Every
row is a run in processes of its own, and but for `serial` no process has all transitions. `same
bits` compares value, bound and policy with the first row.

*own* and *worker* are the largest resident sets of the process that orders the rounds and of the
largest worker (`ru_maxrss`: the interpreter and its libraries are in both, and vectors that workers
map), *rows* what the largest worker holds of transitions and costs. `--calls` bounds the generated
policies, so that rows of large worlds end; bounds hold whenever it is.

    python -m benchmarks.sharded_program --states 1000000 --calls 6
"""

import argparse
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import journeyman as jm
from journeyman.arrays import FloatArray, IntArray
from journeyman.solvers.exact import state_blocks
from journeyman.world.large_world import Predecessors, Successors

ACTIONS, BRANCHES = 4, 4
MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
SLIP = 0.1
"""To either side."""


ERROR = 0.05
"""Of the expert's expectations, so that no policy has all of them and the least gap is not zero."""


class BlockGrid:
    """A square of cells; a step leads where it is meant to, or slips to either side."""

    num_actions = ACTIONS

    def __init__(self, size: int, discount: float) -> None:
        self.size, self.num_states, self.discount = size, size * size, discount

    def draw_initial(self, rng: np.random.Generator, count: int) -> IntArray:
        return rng.integers(0, self.num_states, count)

    def initial_probability(self, states: IntArray) -> FloatArray:
        return np.full(len(states), 1 / self.num_states)

    def successors(self, states: IntArray, actions: IntArray) -> Successors:
        turned = (np.asarray(actions)[:, np.newaxis] + np.array([0, 1, 3])) % 4
        reached = self._moved(np.asarray(states)[:, np.newaxis], turned)[0]
        return Successors(reached, np.tile([1 - 2 * SLIP, SLIP, SLIP], (len(states), 1)))

    def predecessors(self, states: IntArray) -> Predecessors:
        own = np.asarray(states)[:, np.newaxis, np.newaxis]
        actions, moves = np.arange(4)[:, np.newaxis], np.arange(4)
        law = np.array([1 - 2 * SLIP, SLIP, 0.0, SLIP])[(moves - actions) % 4]
        origins, inside = self._moved(own, (moves + 2) % 4 + 0 * actions)
        _, free = self._moved(own, moves + 0 * actions)
        stays = (law * ~free).sum(axis=2, keepdims=True)
        origins = np.concatenate([origins, own + 0 * stays.astype(int)], axis=2)
        laws = np.concatenate([law * inside, stays], axis=2)
        taken = np.broadcast_to(actions, laws.shape)
        used = laws > 0
        counts = used.sum(axis=(1, 2))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return Predecessors(offsets, origins[used], taken[used], laws[used])

    def _moved(self, states: IntArray, moves: IntArray) -> tuple[IntArray, Any]:
        """Where moves lead, and whether they lead anywhere."""
        row, column = np.divmod(states, self.size)
        down, right = row + MOVES[moves, 0], column + MOVES[moves, 1]
        free = (down >= 0) & (down < self.size) & (right >= 0) & (right < self.size)
        return np.where(free, down * self.size + right, states + 0 * down), free


class Quarters:
    """One cost for each quarter of a grid."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, states: IntArray, actions: IntArray) -> FloatArray:
        row, column = np.divmod(np.asarray(states), self.size)
        quarter = 2 * (2 * row // self.size) + 2 * column // self.size
        return np.asarray(np.eye(4)[quarter])


class BlockGarnet:
    """Every action leads to four states all over the world, by laws drawn from a hash."""

    num_actions = ACTIONS

    def __init__(self, num_states: int, discount: float) -> None:
        self.num_states, self.discount = num_states, discount
        rng = np.random.default_rng(0)
        factors: list[int] = []
        while len(factors) < ACTIONS:
            factor = int(rng.integers(2, num_states))
            if np.gcd(factor, num_states) == 1:
                factors.append(factor)
        self.factors = np.array(factors)
        self.inverses = np.array([pow(factor, -1, num_states) for factor in factors])
        self.shifts = np.array([
            rng.choice(num_states, BRANCHES, replace=False) if num_states < 10**6
            else rng.integers(0, num_states, BRANCHES) for _ in range(ACTIONS)
        ])  # fmt: skip

    def draw_initial(self, rng: np.random.Generator, count: int) -> IntArray:
        return rng.integers(0, self.num_states, count)

    def initial_probability(self, states: IntArray) -> FloatArray:
        return np.full(len(states), 1 / self.num_states)

    def successors(self, states: IntArray, actions: IntArray) -> Successors:
        own, taken = np.asarray(states)[:, np.newaxis], np.asarray(actions)
        reached = (own * self.factors[taken, np.newaxis] + self.shifts[taken]) % self.num_states
        return Successors(reached, self._laws(np.asarray(states), taken))

    def predecessors(self, states: IntArray) -> Predecessors:
        own, taken = np.asarray(states), np.arange(ACTIONS)[:, np.newaxis]
        shifted = (own[:, np.newaxis, np.newaxis] - self.shifts) % self.num_states
        origins = shifted * self.inverses[:, np.newaxis] % self.num_states
        actions = np.broadcast_to(taken, origins.shape)
        branch = np.broadcast_to(np.arange(BRANCHES), origins.shape).ravel()
        laws = self._laws(origins.ravel(), actions.ravel())[np.arange(origins.size), branch]
        offsets = np.arange(own.size + 1) * ACTIONS * BRANCHES
        return Predecessors(offsets, origins.ravel(), actions.ravel(), laws)

    def _laws(self, states: IntArray, actions: IntArray) -> FloatArray:
        draws = hashed(states, actions, BRANCHES) + 0.05
        return np.asarray(draws / draws.sum(axis=1, keepdims=True))


def hashed(states: IntArray, actions: IntArray, count: int) -> FloatArray:
    """Numbers in [0, 1) that look random, `count` for each pair."""
    keys = (states * ACTIONS + actions).astype(np.uint64)[:, np.newaxis]
    mixed: Any = keys * np.uint64(2 * count + 1) + np.arange(count, dtype=np.uint64)
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(factor)
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


def dense_costs(states: IntArray, actions: IntArray) -> FloatArray:
    return hashed(np.asarray(states) + 10**6, np.asarray(actions), 4)


class Clockwise:
    """What the expert does: mostly one action, chosen by the part of the world."""

    def __init__(self, num_states: int) -> None:
        self.num_states = num_states

    def sample(self, states: IntArray, seed: Any) -> IntArray:
        rng = np.random.default_rng(seed)
        meant = 4 * np.asarray(states) // self.num_states
        return np.where(rng.random(len(states)) < 0.8, meant, rng.integers(0, 4, len(states)))


def problem_of(name: str, num_states: int, discount: float) -> jm.Apprenticeship:
    """With an expert whose expectations are declared: means of 400 episodes, with errors."""
    world: Any
    if name == "grid":
        size = round(num_states**0.5)
        world, names = BlockGrid(size, discount), [f"quarter {k}" for k in range(4)]
        costs = jm.CostFunctions(Quarters(size), names, lowest=0, highest=1, largest=1)
    else:
        world, names = BlockGarnet(num_states, discount), [f"cost {k}" for k in range(4)]
        costs = jm.CostFunctions(dense_costs, names, lowest=0, highest=1)
    horizon = int(np.ceil(np.log(1e-3) / np.log(discount)))
    expert: Any = Clockwise(world.num_states)
    rng = np.random.default_rng(0)
    states, total = world.draw_initial(rng, 400), np.zeros((400, costs.num_costs))
    for step in range(horizon):
        actions = expert.sample(states, rng)
        total += discount**step * costs.at(states, actions)
        laws = world.successors(states, actions)
        place = (laws.probabilities.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1)
        states = laws.states[np.arange(400), np.minimum(place, laws.states.shape[1] - 1)]
    estimates = total.mean(axis=0) * (1 + ERROR * rng.choice([-1, 1], costs.num_costs))
    return jm.Apprenticeship(world, costs, jm.ExpertExpectation(estimates))


def usage(_: int, __: Any) -> tuple[int, int, float]:
    """Bytes that blocks hold on this worker, its largest resident set, and its CPU seconds."""
    held = sum(block.summary().held_bytes for block in state_blocks.HELD.values())
    found = resource.getrusage(resource.RUSAGE_SELF)
    return held, found.ru_maxrss * 1024, found.ru_utime + found.ru_stime


class Measured:
    """A solver that looks at its workers before they forget their blocks."""

    def __init__(self, solver: Any, executor: Any, count: int) -> None:
        self.solver, self.executor, self.count = solver, executor, count
        self.time_limit, self.needs = None, solver.needs
        self.found: list[tuple[int, int, float]] = []

    def run(self, problem: jm.Apprenticeship, watch: Any) -> Any:
        released = state_blocks.StateBlocks.release

        def release(blocks: state_blocks.StateBlocks) -> None:
            numbers = range(self.count)
            self.found = self.executor.map_on(numbers, usage, numbers)
            released(blocks)

        setattr(state_blocks.StateBlocks, "release", release)  # noqa: B010
        return self.solver.run(problem, watch)


def one(options: argparse.Namespace) -> dict[str, Any]:
    problem = problem_of(options.world, options.states, options.discount)
    count = 1 if options.executor == "serial" else options.workers
    executor: Any = jm.Serial()
    if options.executor == "processes":
        executor = jm.Processes(count)
    elif options.executor == "ray":
        executor = jm.Ray(num_workers=count, object_store_memory=options.object_store)
    with executor:
        solver = jm.solvers.ShardedColumns(
            executor, max_calls=options.calls, num_blocks=options.blocks,
            tolerance=options.tolerance * problem.gap_scale,
        )  # fmt: skip
        measured = Measured(solver, executor, count)
        started, cpu = time.perf_counter(), time.process_time()
        answer: Any = jm.solve(problem, measured)
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    rows, peaks, seconds = zip(*measured.found, strict=True)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    bits = hashlib.sha256(answer.policy.per_pair.tobytes())
    bits.update(f"{answer.value.hex()} {answer.lower_bound.hex()}".encode())
    unit = problem.trivial_bound
    return {
        "status": answer.status.name, "value": answer.value / unit,
        "lower": answer.lower_bound / unit, "calls": len(answer.bounds_trace),
        "rows": max(rows), "own": own, "worker": max(peaks) if count > 1 else 0,
        "wall": wall, "cpu": cpu + (sum(seconds) if count > 1 else 0.0), "log": answer.log,
        "bits": bits.hexdigest()[:12], "build": answer.build_seconds,
    }  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--states", type=int, default=1_000_000)
    parser.add_argument("--discount", type=float, default=0.95)
    parser.add_argument("--calls", type=int, default=6)
    parser.add_argument("--tolerance", type=float, default=1e-5, help="of 2N/(1 - discount)")
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--world", choices=["grid", "garnet", "both"], default="both")
    parser.add_argument("--executor", choices=["serial", "processes", "ray", "all"], default="all")
    parser.add_argument("--object-store", type=int, default=None, help="bytes, for Ray")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:  # in a process of its own
        print(json.dumps(one(options)))
        return
    print(
        f"{options.states:,} states, discount {options.discount}, at most {options.calls} calls, "
        f"{options.blocks} blocks; Python {platform.python_version()}, {os.cpu_count()} cores"
    )
    print("world   executor    calls  wall s   CPU s  rows MB  own MB  worker MB  gap/trivial")
    worlds = ["grid", "garnet"] if options.world == "both" else [options.world]
    for world in worlds:
        first = ""
        for executor in executors(options.executor):
            command = [sys.executable, "-m", "benchmarks.sharded_program", *arguments, "--one"]
            command += ["--world", world, "--executor", executor]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode:
                raise SystemExit(made.stderr)
            row = json.loads(made.stdout.splitlines()[-1])
            first = first or row["bits"]
            same = "same bits" if row["bits"] == first else "OTHER BITS"
            print(
                f"{world:7} {executor:10} {row['calls']:>6} {row['wall']:>7.1f} {row['cpu']:>7.1f} "
                f"{row['rows'] / 2**20:>8.0f} {row['own'] / 2**20:>7.0f} "
                f"{row['worker'] / 2**20:>10.0f}  {row['lower']:.6f}..{row['value']:.6f} "
                f"{row['status']}, {same}\n        {row['log']}"
            )


def executors(chosen: str) -> list[str]:
    if chosen != "all":
        return [chosen]
    try:
        import ray  # noqa: F401
    except ImportError:
        print("Ray is not installed: its rows are left out")
        return ["serial", "processes"]
    return ["serial", "processes", "ray"]


if __name__ == "__main__":
    main(sys.argv[1:])
