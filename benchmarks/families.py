"""The exact program in families of worlds that nobody tunes by hand, beside general engines.

Every family is made from a seed, a size and a half: the development half is for those who change
the code, the held-back half has other seeds, discounts and numbers of costs and is run at the end.
Everybody has one thread; time is CPU seconds from problem to answer, with packages and compiled
code loaded. Each run of a peer is a process of its own. Peers are CVXPY with its default engine
(Clarabel) and HiPO of HiGHS, with a limit of CPU seconds; one that fails or runs into it counts
with the limit.
Peers of `Simplex` are asked for the least gap only, not for the surplus. Rows are printed with the
worst ratio first.

    python -m benchmarks.families --sizes 1024 4096 --families garnet grid
    python -m benchmarks.families --half held-back --draw 3

Who has seen a held-back half takes a draw that nobody has seen.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.solvers import BandedProgram, SmoothedProgram

SIZES = (1024, 4096, 16384)
HALVES = ("development", "held-back")
PEERS = ("CVXPY", "HIPO")
OURS = "journeyman"
LIMIT = 120.0
OWN_LIMIT = 600.0
SMALL = 576
"""States of the world that loads what is needed, iterative solvers among it."""
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS")
Array = np.ndarray[Any, Any]
Numbers = dict[str, Any]


class Draft:
    """What families draw from: a generator, a size, which half is made, and which draw of it.

    The held-back half can be drawn again and again: draw 0 has fixed discounts and numbers of
    costs, draw k > 0 has random ones from around those of both halves, the same at every size.
    """

    def __init__(self, name: str, size: int, half: str, draw: int = 0, costs: int = 0) -> None:
        self.size, self.held_back, self.draw = size, half == "held-back", draw
        self._costs = costs
        letters, again = [ord(letter) for letter in name], [draw] if draw else []
        self.rng = np.random.default_rng([*letters, size, int(self.held_back), *again])
        self._parameters = np.random.default_rng([*letters, draw])

    def pick(self, development: Any, held_back: Any) -> Any:
        return held_back if self.held_back else development

    def discount(self, development: float, held_back: float) -> float:
        """A draw: 1 - discount between half the smaller and twice the larger of both, but the
        discount from .9 to .9999."""
        ends = [1 - development, 1 - held_back]
        drawn = 1 - self._between(max(min(ends) / 2, 1e-4), min(2 * max(ends), 0.1))
        return round(drawn, 6) if self.draw else float(self.pick(development, held_back))

    def count(self, development: int, held_back: int, most: int = sys.maxsize) -> int:
        """A draw: between two thirds of the smaller and one and a half times the larger."""
        ends = [development, held_back]
        drawn = max(2, round(self._between(min(ends) / 1.5, 1.5 * max(ends))))
        return min(drawn, most) if self.draw else int(self.pick(*ends))

    def costs(self, development: int, held_back: int) -> int:
        """How many dense costs: as many as were asked for, if any were."""
        return self._costs or self.count(development, held_back)

    def share(self, development: float, held_back: float) -> float:
        """A draw: as far beyond either as they are apart."""
        apart = abs(development - held_back)
        least, most = min(development, held_back) - apart, max(development, held_back) + apart
        drawn = float(self._parameters.uniform(least, most))
        return drawn if self.draw else float(self.pick(development, held_back))

    def seed(self, development: int, held_back: int) -> int:
        return 1000 * self.draw + int(self.pick(development, held_back))

    def _between(self, least: float, most: float) -> float:
        """Any size between them is equally likely."""
        return float(np.exp(self._parameters.uniform(np.log(least), np.log(most))))


# Worlds: transitions with one row per pair, all states with the same actions


def lattice(draft: Draft, *, slip: float = 0.3, around: bool = False) -> tuple[Any, int]:
    """A square of cells, four moves that slip to a random one, with walls or around a torus."""
    side = int(np.sqrt(draft.size))
    row, column = np.divmod(np.arange(side * side), side)
    goals = []
    for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        new_row, new_column = row + down, column + right
        if around:
            new_row, new_column = new_row % side, new_column % side
        else:
            new_row, new_column = (np.clip(new, 0, side - 1) for new in (new_row, new_column))
        goals.append(new_row * side + new_column)
    ways = np.stack(goals, axis=1)
    law = np.full((4, 4), slip / 4) + (1 - slip) * np.eye(4)
    return rows_of(np.repeat(ways, 4, axis=0), np.tile(law, (side * side, 1)), side * side), side


def rows_of(targets: Array, law: Array, states: int) -> Any:
    """A sparse matrix of laws over targets, duplicates added."""
    count, width = targets.shape
    pairs = np.repeat(np.arange(count), width)
    matrix = sparse.coo_array((law.ravel(), (pairs, targets.ravel())), shape=(count, states))
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    return matrix


def random_laws(draft: Draft, *, actions: int, branches: int) -> Any:
    """A garnet: every pair goes to so many random states."""
    count = draft.size * actions
    targets = draft.rng.integers(draft.size, size=(count, branches))
    return rows_of(targets, draft.rng.dirichlet(np.ones(branches), count), draft.size)


def layered_laws(draft: Draft, *, layers: int) -> Any:
    """Layers in a circle: from each a random choice of states of the next."""
    width = draft.size // layers
    here = np.repeat(np.arange(draft.size), 3)
    following = (here // width + 1) % layers
    targets = following[:, None] * width + draft.rng.integers(width, size=(here.size, 4))
    return rows_of(targets, draft.rng.dirichlet(np.ones(4), here.size), draft.size)


def queue_laws(draft: Draft, *, arrivals: float) -> tuple[Any, int]:
    """Two queues and one server that serves the first, the second, or rests."""
    side = int(np.sqrt(draft.size))
    first, second = np.divmod(np.arange(side * side), side)
    targets, laws = [], []
    for serves in (0, 1, 2):
        ways = [
            (np.minimum(first + 1, side - 1), second), (first, np.minimum(second + 1, side - 1)),
            (np.maximum(first - (serves == 0), 0), np.maximum(second - (serves == 1), 0)),
        ]  # fmt: skip
        targets.append(np.stack([one * side + two for one, two in ways], axis=1))
        laws.append(np.tile([arrivals / 2, arrivals / 2, 1 - arrivals], (side * side, 1)))
    order = np.arange(3 * side * side).reshape(3, -1).T.ravel()
    return rows_of(np.vstack(targets)[order], np.vstack(laws)[order], side * side), side


def replacement_laws(draft: Draft) -> tuple[Any, int]:
    """Two machines that wear: keep both, or replace one of them."""
    side = int(np.sqrt(draft.size))
    first, second = np.divmod(np.arange(side * side), side)
    targets, laws = [], []
    for action in (0, 1, 2):
        one = np.zeros_like(first) if action == 1 else first
        two = np.zeros_like(second) if action == 2 else second
        steps = [(0, 0), (1, 0), (0, 1), (2, 1), (1, 2)]
        ends = [np.minimum(one + a, side - 1) * side + np.minimum(two + b, side - 1)
                for a, b in steps]  # fmt: skip
        targets.append(np.stack(ends, axis=1))
        laws.append(np.tile([0.3, 0.2, 0.2, 0.15, 0.15], (side * side, 1)))
    order = np.arange(3 * side * side).reshape(3, -1).T.ravel()
    return rows_of(np.vstack(targets)[order], np.vstack(laws)[order], side * side), side


# Costs


def one_hot(side: int, cells: int) -> Any:
    """One cost per macro cell of a square."""
    row, column = np.divmod(np.arange(side * side), side)
    cell = (row * cells // side) * cells + column * cells // side
    return sparse.csr_array((np.ones(cell.size), (np.arange(cell.size), cell)))


def smooth(draft: Draft, side: int, count: int) -> Array:
    """Waves over a square."""
    row, column = (part / side for part in np.divmod(np.arange(side * side), side))
    waves = draft.rng.integers(1, 5, size=(count, 2))
    phases = draft.rng.uniform(0, 2 * np.pi, count)
    return np.cos(2 * np.pi * (np.outer(row, waves[:, 0]) + np.outer(column, waves[:, 1])) + phases)


def dense_costs(draft: Draft, pairs: int, count: int) -> Array:
    """Independent numbers in every pair."""
    return draft.rng.uniform(-1, 1, (pairs, count))


# Experts


def problem_of(
    draft: Draft,
    transition: Any,
    costs: Any,
    discount: float,
    *,
    initial: Array | None = None,
    noise: float = 0.0,
    episodes: int = 0,
    cost_class: jm.costs.CostClass | None = None,
    budget: bool = False,
) -> jm.Apprenticeship:
    """The optimal expert of a drawn cost; its expectations exactly, with noise (mostly no policy
    has them then), or as the mean of episodes."""
    states = transition.shape[1]
    initial = np.full(states, 1 / states) if initial is None else initial
    world = jm.World(transition, initial, discount)
    basis = jm.CostBasis(costs)
    weights = draft.rng.uniform(-1, 1, basis.num_costs)
    policy = jm.plan(world, basis.on(world) @ weights, tolerance=1e-6).policy
    if episodes:
        horizon = int(np.ceil(np.log(1e-3) / np.log(discount)))
        demos = jm.record(world, policy, trajectories=episodes, horizon=horizon, seed=1)
        expert = jm.ExpertExpectation.from_demonstrations(
            demos, basis, world, method=jm.demonstrations.MonteCarlo()
        )
    else:
        seen = jm.occupancy(world, policy).expectations(basis)
        expert = jm.ExpertExpectation(seen * (1 + noise * draft.rng.standard_normal(seen.size)))
    constraints = []
    if budget:
        spent = draft.rng.uniform(0, 1, world.num_pairs)
        least = jm.expected_cost(world, jm.plan(world, spent, tolerance=1e-6).policy, spent)
        limit = least + 0.3 * (0.5 * world.effective_horizon - least)
        constraints = [jm.Budget(cost=spent, at_most=limit, name="spending")]
    return jm.Apprenticeship(
        world, basis, expert, cost_class or jm.InfinityBall(), constraints=constraints
    )


def single(states: int, at: int) -> Array:
    start = np.zeros(states)
    start[at] = 1.0
    return start


def mixed(draft: Draft, states: int) -> Array:
    """Half of the mass on five states, the rest everywhere."""
    start = np.full(states, 0.5 / states)
    start[draft.rng.integers(states, size=5)] += 0.1
    return np.asarray(start / start.sum())


# Families


def grid(draft: Draft) -> jm.Apprenticeship:
    transition, side = lattice(draft)
    costs = one_hot(side, draft.count(8, 6, side))
    return problem_of(draft, transition, costs, draft.discount(0.99, 0.98), episodes=100)


def grid_perturbed(draft: Draft) -> jm.Apprenticeship:
    transition, side = lattice(draft)
    costs = one_hot(side, draft.count(4, 5, side))
    return problem_of(draft, transition, costs, draft.discount(0.95, 0.97), noise=0.1)


def grid_many_costs(draft: Draft) -> jm.Apprenticeship:
    transition, side = lattice(draft)
    costs = one_hot(side, draft.count(16, 22, side))
    return problem_of(draft, transition, costs, draft.discount(0.95, 0.9), episodes=100)


def grid_far_sighted(draft: Draft) -> jm.Apprenticeship:
    transition, side = lattice(draft)
    costs = one_hot(side, draft.count(4, 3, side))
    return problem_of(draft, transition, costs, draft.discount(0.9999, 0.9995), noise=0.05)


def grid_euclidean(draft: Draft) -> jm.Apprenticeship:
    transition, side = lattice(draft)
    costs = smooth(draft, side, draft.count(128, 96))
    return problem_of(
        draft,
        transition,
        costs,
        draft.discount(0.9, 0.95),
        noise=0.1,
        cost_class=jm.EuclideanBall(),
    )


def walls(draft: Draft) -> jm.Apprenticeship:
    side = int(np.sqrt(draft.size))
    blocked = [(row, column) for column in (side // 3, 2 * side // 3) for row in range(side)
               if abs(row - side // 2) > side // 16]  # fmt: skip
    example = jm.gallery.grid(
        side, macro_cells=draft.count(6, 5), discount=draft.discount(0.99, 0.995), walls=blocked,
        initial=[side // 2, side // 2], seed=draft.seed(0, 1),
    )  # fmt: skip
    world, basis, expert = example
    seen = jm.occupancy(world, expert).expectations(basis)
    noise = 0.05 * np.abs(seen).mean() * draft.rng.standard_normal(seen.size)
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(seen + noise))


def torus(draft: Draft) -> jm.Apprenticeship:
    transition, side = lattice(draft, around=True)
    costs = smooth(draft, side, draft.count(12, 20))
    start = mixed(draft, side * side)
    return problem_of(
        draft, transition, costs, draft.discount(0.97, 0.99), initial=start, noise=0.1
    )


def torus_budget(draft: Draft) -> jm.Apprenticeship:
    transition, side = lattice(draft, around=True)
    costs = smooth(draft, side, draft.count(6, 10))
    return problem_of(draft, transition, costs, draft.discount(0.98, 0.96), noise=0.05, budget=True)


def layered(draft: Draft) -> jm.Apprenticeship:
    transition = layered_laws(draft, layers=16)
    costs = dense_costs(draft, transition.shape[0], draft.costs(8, 12))
    return problem_of(draft, transition, costs, draft.discount(0.95, 0.9), noise=0.05)


def garnet_sparse(draft: Draft) -> jm.Apprenticeship:
    transition = random_laws(draft, actions=3, branches=2)
    cost = draft.rng.integers(draft.count(8, 16), size=transition.shape[0])
    costs = sparse.csr_array((np.ones(cost.size), (np.arange(cost.size), cost)))
    return problem_of(draft, transition, costs, draft.discount(0.9, 0.95), episodes=100)


def garnet_dense(draft: Draft) -> jm.Apprenticeship:
    transition = random_laws(draft, actions=4, branches=5)
    costs = dense_costs(draft, transition.shape[0], draft.costs(16, 12))
    return problem_of(draft, transition, costs, draft.discount(0.99, 0.98), noise=0.05)


def garnet_many_costs(draft: Draft) -> jm.Apprenticeship:
    transition = random_laws(draft, actions=4, branches=5)
    costs = dense_costs(draft, transition.shape[0], draft.costs(64, 96))
    return problem_of(draft, transition, costs, draft.discount(0.95, 0.96), noise=0.05)


def garnet_most_costs(draft: Draft) -> jm.Apprenticeship:
    transition = random_laws(draft, actions=3, branches=4)
    costs = dense_costs(draft, transition.shape[0], draft.costs(512, 400))
    return problem_of(draft, transition, costs, draft.discount(0.9, 0.93), noise=0.05)


def garnet_single(draft: Draft) -> jm.Apprenticeship:
    transition = random_laws(draft, actions=4, branches=draft.count(10, 8))
    costs = dense_costs(draft, transition.shape[0], draft.costs(8, 10))
    start = single(draft.size, 0)
    return problem_of(
        draft, transition, costs, draft.discount(0.95, 0.97), initial=start, noise=0.1
    )


def garnet_euclidean(draft: Draft) -> jm.Apprenticeship:
    transition = random_laws(draft, actions=4, branches=5)
    costs = dense_costs(draft, transition.shape[0], draft.costs(16, 24))
    return problem_of(
        draft,
        transition,
        costs,
        draft.discount(0.95, 0.97),
        noise=0.1,
        cost_class=jm.EuclideanBall(),
    )


def garnet_simplex(draft: Draft) -> jm.Apprenticeship:
    transition = random_laws(draft, actions=4, branches=5)
    costs = dense_costs(draft, transition.shape[0], draft.costs(16, 10))
    return problem_of(
        draft, transition, costs, draft.discount(0.95, 0.9), noise=0.05, cost_class=jm.Simplex()
    )


def garnet_budget(draft: Draft) -> jm.Apprenticeship:
    transition = random_laws(draft, actions=4, branches=5)
    costs = dense_costs(draft, transition.shape[0], draft.costs(8, 16))
    return problem_of(draft, transition, costs, draft.discount(0.95, 0.98), noise=0.05, budget=True)


def queue(draft: Draft) -> jm.Apprenticeship:
    transition, side = queue_laws(draft, arrivals=draft.share(0.4, 0.45))
    costs = smooth(draft, side, draft.count(8, 6))
    return problem_of(draft, transition, costs, draft.discount(0.99, 0.98), noise=0.1)


def replacement(draft: Draft) -> jm.Apprenticeship:
    transition, side = replacement_laws(draft)
    wear = np.repeat(np.sum(np.divmod(np.arange(side * side), side), axis=0) / (2 * side), 3)
    action = np.tile(np.arange(3), side * side)
    costs = np.column_stack([wear, wear**2, action == 1, action == 2]).astype(float)
    return problem_of(draft, transition, costs, draft.discount(0.99, 0.95), episodes=100)


def roads(draft: Draft) -> jm.Apprenticeship:
    example = jm.gallery.road_network(
        draft.size, discount=draft.discount(0.99, 0.98), seed=draft.seed(0, 1)
    )
    world, basis, expert = example
    seen = jm.occupancy(world, expert).expectations(basis)
    noise = 1 + 0.05 * draft.rng.standard_normal(seen.size)
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(seen * noise))


def grid_simplex(draft: Draft) -> jm.Apprenticeship:
    transition, side = lattice(draft)
    costs = smooth(draft, side, draft.count(12, 8))
    return problem_of(
        draft, transition, costs, draft.discount(0.95, 0.97), noise=0.1, cost_class=jm.Simplex()
    )


def icu(draft: Draft) -> jm.Apprenticeship:
    example = jm.gallery.icu_sepsis(discount=draft.discount(0.99, 0.97))
    world, basis, expert = example
    demos = jm.record(world, expert, trajectories=300, horizon=100, seed=draft.seed(0, 1))
    return jm.Apprenticeship(
        world, basis,
        jm.ExpertExpectation.from_demonstrations(
            demos, basis, world, method=jm.demonstrations.MonteCarlo()
        ),
    )  # fmt: skip


FAMILIES: dict[str, Callable[[Draft], jm.Apprenticeship]] = {
    make.__name__: make
    for make in (
        grid, grid_perturbed, grid_many_costs, grid_far_sighted, grid_simplex, grid_euclidean,
        walls, torus, torus_budget, layered, garnet_sparse, garnet_dense, garnet_many_costs,
        garnet_most_costs, garnet_single, garnet_euclidean, garnet_simplex, garnet_budget, queue,
        replacement, roads, icu,
    )
}  # fmt: skip


# Measuring


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="numbers of states")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), help="(or how they begin)")
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--draw", type=int, default=0, help="of the held-back half, 0 is fixed")
    parser.add_argument("--costs", type=int, default=0, help="this many dense costs")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS)
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds for a peer")
    parser.add_argument("--own-limit", type=float, default=OWN_LIMIT, help="seconds for journeyman")
    parser.add_argument("--keep", type=Path, help="file of finished runs of peers")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.draw and options.half != "held-back":
        parser.error("--draw is for --half held-back")
    if options.measure:
        (name,), (size,) = options.families, options.sizes
        draft = Draft(name, size, options.half, options.draw, options.costs)
        print(json.dumps(measure(options.measure, name, draft, options.limit)))
        return
    print(describe_machine())
    asked = set(options.families)
    begun = tuple(asked - set(FAMILIES))
    names = [name for name in FAMILIES if name in asked or (begun and name.startswith(begun))]
    rows = []
    for name in names:
        for size in options.sizes[:1] if name == "icu" else options.sizes:
            rows.append(row_of(name, size, options))
            print(line_of(rows[-1]), file=sys.stderr, flush=True)
    print(
        f"{'family':18}{'states':>8}{'costs':>6}{'discount':>9}{'ours':>8}{'CVXPY':>8}{'HIPO':>8}"
        f"{'ratio':>8}{'error':>10}{'differs':>10}  ours"
    )
    for row in sorted(rows, key=lambda row: float(row["ratio"])):
        print(line_of(row))
    for least, most in ((0, 4095), (4096, 16383), (16384, np.inf)):
        ratios = [row["ratio"] for row in rows if least <= row["size"] <= most]
        if ratios:
            print(f"from {least} states: median ratio {statistics.median(ratios):.1f}, "
                  f"least {min(ratios):.2f}, {len(ratios)} rows")  # fmt: skip
    print_growth(rows)


def print_growth(rows: Sequence[Numbers]) -> None:
    """Exponents p of seconds = c states^p, from the smallest to the largest size of each family."""
    for name in dict.fromkeys(row["name"] for row in rows):
        runs = [row["runs"][OURS] for row in rows if row["name"] == name]
        ended = sorted((run["states"], run["seconds"]) for run in runs if "seconds" in run)
        if len(ended) > 1:
            (few, short), (most, long) = ended[0], ended[-1]
            exponent = np.log(long / short) / np.log(most / few)
            print(f"{name}: seconds grow like states^{exponent:.2f} from {few} to {most}")


def row_of(name: str, size: int, options: argparse.Namespace) -> Numbers:
    """Everybody's run of one instance."""
    draft = Draft(name, size, options.half, options.draw, options.costs)
    own = measure(OURS, name, draft, options.own_limit)
    runs = {OURS: own} | {who: run_of(who, name, size, options) for who in options.peers}
    seconds = {who: min(run.get("seconds", np.inf), options.limit) for who, run in runs.items()} | {
        OURS: own.get("seconds", np.nan)
    }
    best = min((seconds[who] for who in options.peers), default=np.nan)
    ended = own.get("outcome", "").startswith("OPTIMAL")
    differences = [
        abs(run["value"] - own["value"]) / own["scale"]
        for who, run in runs.items()
        if who != OURS and run.get("value") is not None and own.get("value") is not None
    ]
    return {
        "name": name, "size": own["states"] if name == "icu" else size,
        "seconds": seconds, "runs": runs,
        "ratio": best / (own["seconds"] if ended else options.own_limit), "limit": options.limit,
        "differs": max(differences, default=np.nan),
    }  # fmt: skip


def line_of(row: Numbers) -> str:
    own, seconds = row["runs"][OURS], row["seconds"]
    peers = ""
    for who in PEERS:
        ended = "seconds" in row["runs"].get(who, {})
        peers += f"{seconds[who]:>8.2f}" if ended else f"{'-':>8}"
    ended = any("seconds" in row["runs"].get(who, {}) for who in PEERS)
    certain = "" if ended or np.isnan(row["ratio"]) else ">"
    return (
        f"{row['name']:18}{own.get('states', row['size']):>8}{own.get('costs', 0):>6}"
        f"{own.get('discount', 0):>9}{own.get('seconds', np.nan):>8.2f}{peers}"
        f"{certain + format(row['ratio'], '.2f'):>8}{own.get('error', np.nan):>10.1e}"
        f"{row['differs']:>10.1e}  {own.get('outcome', 'none')}"
    )


def run_of(who: str, name: str, size: int, options: argparse.Namespace) -> Numbers:
    """A peer's in a fresh process, or from the file of finished runs."""
    key = [who, name, size, options.half, options.limit]
    key += [options.draw, options.costs] if options.draw or options.costs else []
    if options.keep is not None and options.keep.exists():
        for line in options.keep.read_text().splitlines():
            known, numbers = json.loads(line)
            if known == key:
                return dict(numbers)
    command = [
        sys.executable, "-m", "benchmarks.families", "--families", name, "--sizes", str(size),
        "--half", options.half, "--limit", str(options.limit),
        "--draw", str(options.draw), "--costs", str(options.costs), "--measure", who,
    ]  # fmt: skip
    environment = os.environ | dict.fromkeys(THREADS, "1")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 0:
        numbers = dict(json.loads(done.stdout))
    elif done.returncode < 0:
        numbers = {"outcome": "none within the limit"}
    else:
        raise RuntimeError(f"{who} on {name} {size}: {done.stderr}")
    if options.keep is not None:
        with options.keep.open("a") as file:
            file.write(json.dumps([key, numbers]) + "\n")
    return numbers


def measure(who: str, name: str, draft: Draft, limit: float) -> Numbers:
    """One run in this process; a peer that needs more than its limit is ended by the system."""
    problem = FAMILIES[name](draft)
    problem.target, problem.gap_scale  # noqa: B018, whoever solves needs them
    small = FAMILIES[name](Draft(name, SMALL, HALVES[draft.held_back], draft.draw))
    if who == "CVXPY":
        import cvxpy  # noqa: F401
    elif who == OURS:
        searches = (jm.ColumnGeneration, SmoothedProgram, BandedProgram)
        for solver in (None, *(kind(max_calls=2) for kind in searches)):
            jm.solve(small, solver)
    else:
        solve_by_hipo(small)
    started = time.process_time()
    if who != OURS:
        end = int(started + limit) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (end, end + 5))
    solve = {OURS: solve_by_ours, "CVXPY": solve_by_cvxpy, "HIPO": solve_by_hipo}[who]
    numbers = solve(problem, limit)
    if numbers.get("value") is not None:
        numbers["seconds"] = time.process_time() - started
    return numbers | {
        "states": problem.world.num_states, "costs": problem.basis.num_costs,
        "discount": problem.world.discount, "scale": problem.gap_scale,
    }  # fmt: skip


def solve_by_ours(problem: jm.Apprenticeship, limit: float) -> Numbers:
    answer = jm.solve(problem, time_limit=limit)
    error = (answer.value - answer.lower_bound) / problem.gap_scale
    return {
        "value": answer.value, "error": error, "outcome": f"{answer.status.name}, {answer.engine}",
    }  # fmt: skip


def solve_by_hipo(problem: jm.Apprenticeship, _: float = LIMIT) -> Numbers:
    if isinstance(problem.cost_class, jm.EuclideanBall):
        return {"outcome": "not a linear program"}
    answer = jm.solve(problem, jm.LinearProgram(engine=jm.solvers.Engine.HIPO))
    if answer.status.name not in ("OPTIMAL", "INACCURATE"):
        return {"outcome": answer.status.name}
    return {"value": answer.value, "outcome": answer.engine}


def solve_by_cvxpy(problem: jm.Apprenticeship, _: float) -> Numbers:
    """CVXPY with its default engine, the extracted policy evaluated exactly."""
    import cvxpy as cp

    world = problem.world
    mu = cp.Variable(world.num_pairs, nonneg=True)
    missed = problem.cost_matrix.T @ mu - problem.target
    objective = {
        "InfinityBall": cp.norm1, "EuclideanBall": cp.norm2, "Simplex": cp.max,
    }[type(problem.cost_class).__name__](missed)  # fmt: skip
    rows = [world.flow.matrix().T.tocsr() @ mu == world.initial]
    rows += [
        problem.budget_matrix[:, j] @ mu <= problem.limits[j]
        for j in range(len(problem.constraints))
    ]
    program = cp.Problem(cp.Minimize(objective), rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it warns of shows in the status and the value
        try:
            program.solve(solver="CLARABEL", max_threads=1)
        except cp.SolverError as fault:
            return {"outcome": str(fault).split(".")[0]}
    if mu.value is None:
        return {"outcome": str(program.status)}
    value = problem.gap(jm.policy.extract(world, mu.value))
    return {"value": value, "outcome": f"CVXPY, {program.status}"}


if __name__ == "__main__":
    main(sys.argv[1:])
