"""Primal-dual successors beside SGD-AL: at equal numbers of draws, and at equal CPU seconds.

Every method searches all policies: features are all pairs, and for the occupancy game all states
are functions of values. What is printed is the gap of the policy, evaluated exactly, less the least
gap there is (the exact program), in percent of 2N/(1 - discount), and below it the CPU seconds that
were used; medians of the seeds, which draw samples, not instances.

A draw of SGD-AL is a row: of a pair, or of a state with all the laws that lead there. A draw of the
occupancy game is one next state of one pair, so it learns less from each. `StochasticPrimalDual`
reads all rows in every epoch, each of them counted as a draw. Proximal points draw nothing where
laws are arrays and have seconds only; asked by callables a draw is a step of a walk. A method looks
at the clock now and then: the seconds that it has used are printed. Compilation is not counted.

    grid       8 x 8, slip 0.3, discount 0.95, 16 costs, 100 demonstrations
    garnet     60 states, discount 0.95, 8 costs, 100 demonstrations
    shop       16 x 16, Poisson demand 10, discount 0.9, 3 costs; the expert is known exactly
    windy      10 x 10, wind 0.2, discount 0.7, 100 costs; exact
    asked      the grid, asked state by state: what methods do in worlds of callables

At last the bounds that a run of proximal points to 0.1 % prints, beside what is proven by a plan.

With --prices: what `PriorMirrorDescent` recovers in the shop from the prior 14, 4, 2, for an expert
who is optimal for 15, 3, 0.5 and for one with 15, 5, 8, and in the windy grid, where every cell is
a cost, from a prior that knows nothing and from one that knows the goals; beside the optimum by
CVXPY, which is not needed otherwise.
"""

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from examples.line_chart import Axis, HorizontalLine, Panel, Series, line_chart
from scipy import sparse

import journeyman as jm
from benchmarks.machine import describe_machine
from benchmarks.stochastic_solvers import Limit
from journeyman.arrays import FloatArray, IntArray, dense
from journeyman.execution import one_blas_thread

DRAWS = (10_000, 100_000, 1_000_000)
SECONDS = (0.1, 0.3, 1.0)
LIMITS: dict[str, tuple[float, ...]] = {"draws": DRAWS, "seconds": SECONDS}
ENDLESS = 10**12
BATCH, STEPS, PER_SECOND = 32, 10, 20_000
"""Rows of a step of SGD-AL; proximal steps, and their pairs for a second, where pairs are drawn."""
LEAST_DRAWN = 1e-3
"""Percent: what is nearer to the optimum is drawn on its line."""
PRIOR = (14.0, 4.0, 2.0)
TRUTH = (15.0, 3.0, 0.5)
OTHER = (15.0, 5.0, 8.0)
"""Prices of the expert with a taste of his own."""


class EveryPair(jm.features.DrawnFeatures):
    """A column for every pair, by callables."""

    def __init__(self, world: jm.World) -> None:
        self.world, self.num_features = world, world.num_pairs
        self._table = sparse.csr_array(sparse.eye_array(world.num_pairs) / (1 - world.discount))

    def rows(self, states: IntArray, actions: IntArray) -> Any:
        places = self.world.num_actions * np.asarray(states) + np.asarray(actions)
        return sparse.csr_array(self._table[places])

    def draw(self, rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
        drawn = rng.integers(self.num_features, size=count)
        return drawn // self.world.num_actions, drawn % self.world.num_actions


class Instance(NamedTuple):
    name: str
    problem: jm.Apprenticeship
    least: float
    """The least gap, proven."""

    @property
    def question(self) -> jm.Apprenticeship:
        """The problem as it is given to the methods."""
        return asked_by_callables(self.problem) if self.name == "asked" else self.problem


def asked_by_callables(problem: jm.Apprenticeship) -> jm.Apprenticeship:
    """The same problem with costs as a function of pairs."""
    matrix, pairs, basis = dense(problem.cost_matrix), problem.world.pairs, problem.basis
    costs = jm.CostFunctions(
        lambda states, actions: matrix[pairs.index(states, actions)], basis.names,
        lowest=matrix.min(axis=0), highest=matrix.max(axis=0),
        largest=float(abs(matrix).sum(axis=1).max()),
    )  # fmt: skip
    target = jm.ExpertExpectation(problem.target)
    return jm.Apprenticeship(problem.world, costs, target, problem.cost_class)


def instances(wanted: Sequence[str] | None) -> Iterator[Instance]:
    """The problems with their optimum; all of them, or those that are wanted."""
    made: list[tuple[str, Any, Any]] = [
        ("grid", jm.gallery.grid(8), None),
        ("garnet", jm.gallery.garnet(60), None),
        ("shop", jm.gallery.shop(), jm.InfinityBall([20.0, 10.0, 10.0])),
        ("windy", jm.gallery.windy_grid(), None),
        ("asked", jm.gallery.grid(8), None),
    ]
    for name, (world, basis, expert), cost_class in made:
        if wanted and name not in wanted:
            continue
        known: Any = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
        if name in ("grid", "garnet", "asked"):
            known = jm.record(world, expert, trajectories=100, horizon=100, seed=0)
        problem = jm.Apprenticeship(world, basis, known, cost_class)
        yield Instance(name, problem, jm.solve(problem, jm.LinearProgram()).value)


def all_pairs(problem: jm.Apprenticeship) -> jm.features.Features:
    count, h = problem.world.num_pairs, problem.effective_horizon
    return jm.features.Features(sparse.csr_array(sparse.eye_array(count) * h))


def by_draws(instance: Instance, draws: int, seed: int) -> dict[str, Any]:
    """The methods with as many draws."""
    problem, world = instance.problem, instance.problem.world
    asked = instance.name == "asked"
    features: Any = EveryPair(world) if asked else all_pairs(problem)
    found: dict[str, Any] = {
        "SGD-AL": jm.StochasticSubgradient(
            features, batch=BATCH, steps=max(1, draws // (2 * BATCH)), accuracy=0.0, seed=seed
        )
    }
    if asked:
        found["OccupancyMirrorDescent"] = jm.solvers.OccupancyMirrorDescent(
            features, accuracy=1e-9, max_iterations=max(1, draws // 256), seed=seed
        )
        found["ProximalPointImitation"] = jm.solvers.ProximalPointImitation(
            features, max_iterations=STEPS, samples=max(1, draws // (STEPS + 2)), seed=seed
        )
        return found
    rows = world.num_pairs + world.num_states
    found["StochasticPrimalDual"] = jm.solvers.StochasticPrimalDual(
        features, epochs=max(1, draws // rows), accuracy=0.0, seed=seed
    )
    found["OccupancyMirrorDescent"] = jm.solvers.OccupancyMirrorDescent(
        accuracy=1e-9, max_iterations=max(1, draws // world.num_pairs), seed=seed
    )
    return found


def by_seconds(instance: Instance, seconds: float, seed: int) -> dict[str, Any]:
    """The methods without a limit of their own."""
    endless = by_draws(instance, ENDLESS, seed)
    features = EveryPair(instance.problem.world) if instance.name == "asked" else None
    endless["ProximalPointImitation"] = jm.solvers.ProximalPointImitation(
        features, accuracy=1e-9, max_iterations=10**6, samples=int(PER_SECOND * seconds), seed=seed
    )
    return endless


class Run(NamedTuple):
    """What one run came to."""

    instance: str
    limit: str
    """Of what: draws or seconds."""
    most: float
    seed: int
    method: str
    above: float
    """The gap less the least one, in percent of 2N/(1 - discount)."""
    seconds: float


def above_least(instance: Instance, answer: jm.Answer) -> float:
    """In percent of 2N/(1 - discount)."""
    problem = instance.problem
    policy: Any = answer.policy
    if not isinstance(policy, jm.Policy):
        law = policy.probabilities(np.arange(problem.world.num_states))
        policy = jm.Policy(law.ravel(), problem.world.pairs.offsets)
    return 100 * (problem.gap(policy) - instance.least) / problem.gap_scale


def compare(
    instance: Instance, seeds: int, limits: Sequence[str], known: list[Run], path: Path | None
) -> list[Run]:
    """Both tables of an instance; what is known already is not run again."""
    problem = instance.question
    for solver in by_draws(instance, 1, 0).values():
        jm.solve(problem, solver, observer=_silent)
    done = {run[:5]: run for run in known}
    for limit in limits:
        for most in LIMITS[limit]:
            for seed in range(seeds):
                by_limit = limit == "draws"
                solvers = (
                    by_draws(instance, int(most), seed)
                    if by_limit
                    else by_seconds(instance, most, seed)
                )
                for name, solver in solvers.items():
                    key = (instance.name, limit, float(most), seed, name)
                    if key not in done:
                        observer: Callable[[Any], None] = _silent if by_limit else Limit(most)
                        began = time.process_time()
                        answer = jm.solve(problem, solver, observer=observer)
                        seconds = time.process_time() - began
                        done[key] = Run(*key, above_least(instance, answer), seconds)
            show([run for key, run in done.items() if key[:3] == (instance.name, limit, most)])
            if path is not None:
                keep(path, list(done.values()))
    if instance.name != "asked":
        answer = jm.solve(problem, jm.solvers.ProximalPointImitation(), observer=_silent)
        left = (answer.value - answer.lower_bound) / problem.gap_scale
        print(f"proximal points: {answer.log}; proven by a plan {left:.3g}", flush=True)
    return list(done.values())


def medians(runs: list[Run], what: str) -> dict[str, float]:
    """Over seeds, by method."""
    methods = dict.fromkeys(run.method for run in runs)
    return {
        name: statistics.median(getattr(run, what) for run in runs if run.method == name)
        for name in methods
    }


def show(runs: list[Run]) -> None:
    """Two lines: what every method has left open, and the CPU seconds it used."""
    first = runs[0]
    most = f"{first.most:.0e} draws" if first.limit == "draws" else f"{first.most:g} s"
    gaps, seconds = medians(runs, "above"), medians(runs, "seconds")
    print(f"{first.instance:7} {most:>12}  " + "  ".join(f"{n} {g:8.3f}" for n, g in gaps.items()))
    print(" " * 22 + "  ".join(f"{n} {t:7.2f}s" for n, t in seconds.items()), flush=True)


def chart(runs: list[Run], limit: str) -> str:
    """A panel for every instance, its optimum as the floor."""
    floor = HorizontalLine(f"the exact optimum, or within {LEAST_DRAWN:g} % of it", LEAST_DRAWN)
    across = Axis("draws" if limit == "draws" else "CPU seconds used", log=True)
    panels = []
    for name in dict.fromkeys(run.instance for run in runs):
        lines = []
        mine = [run for run in runs if run.instance == name and run.limit == limit]
        for method in dict.fromkeys(run.method for run in mine):
            points = []
            for most in sorted({run.most for run in mine}):
                some = [run for run in mine if run.method == method and run.most == most]
                above = statistics.median(run.above for run in some)
                used = most if limit == "draws" else statistics.median(r.seconds for r in some)
                points.append((used, max(LEAST_DRAWN, above)))
            lines.append(Series(method, *zip(*points, strict=True)))
        panels.append(Panel(name, across, Axis("above the optimum, %", log=True), lines, [floor]))
    title = f"Gap above the exact optimum, in percent of 2N/(1 - discount), by {across.label}"
    words = "; ".join(
        f"{run.instance}, {run.most:g} {run.limit}, {run.method}: {run.above:.3f} %"
        for run in runs
        if run.limit == limit and run.seed == 0
    )
    return line_chart(title, words, panels, columns=2)


def kept(path: Path) -> list[Run]:
    """Runs of a file."""
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return [
            Run(one, limit, float(most), int(seed), method, float(above), float(seconds))
            for one, limit, most, seed, method, above, seconds in list(csv.reader(stream))[1:]
        ]


def keep(path: Path, runs: list[Run]) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(Run._fields)
        writer.writerows(runs)


def _silent(event: object) -> None:
    """No line of progress."""


def exact_prices(problem: jm.Apprenticeship, prior: FloatArray, strength: float) -> FloatArray:
    """The optimum of the program with a prior, by CVXPY."""
    import cvxpy as cp

    world, h = problem.world, problem.effective_horizon
    w, V = cp.Variable(problem.num_costs), cp.Variable(world.num_states)
    flow = world.flow.matrix()
    costs = problem.cost_matrix @ w - flow @ V
    pull = strength * h / 2 * cp.sum_squares(w - prior)
    program = cp.Problem(
        cp.Maximize(world.initial @ V - w @ problem.target - pull),
        [costs >= 0, cp.abs(w) <= problem.cost_class.scaling(problem.num_costs)],
    )
    program.solve(solver=cp.CLARABEL)
    return np.asarray(w.value)


def recovered_prices() -> None:
    """The shop with its prior, for both experts."""
    for prices in (TRUTH, OTHER):
        world, basis, expert = jm.gallery.shop(prices=prices)
        target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
        problem = jm.Apprenticeship(world, basis, target, jm.InfinityBall([20.0, 10.0, 10.0]))
        print(f"\nexpert's prices {prices}, prior {PRIOR}, {_apart(PRIOR, prices)}")
        for strength in (0.1, 1.0, 10.0):
            solver = jm.solvers.PriorMirrorDescent(
                np.array(PRIOR), strength=strength, accuracy=1e-3, max_iterations=30_000
            )
            began = time.process_time()
            answer = jm.solve(problem, solver, observer=_silent)
            seconds = time.process_time() - began
            exact = exact_prices(problem, np.array(PRIOR), strength)
            words = [
                f"{_words(found)}, {_apart(found, prices)}" for found in (answer.recovered, exact)
            ]
            known = answer.log.split("; ")[-1]
            print(
                f"strength {strength:4}: {words[0]}; exact {words[1]}; {seconds:.1f} s; {known}",
                flush=True,
            )


def recovered_cells() -> None:
    """The windy grid, whose expert is optimal for 1 on obstacles and -1 on goals."""
    world, basis, expert = jm.gallery.windy_grid()
    truth = jm.gallery.windy_costs()
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    problem = jm.Apprenticeship(world, basis, target)
    priors = {"nothing": np.zeros(truth.size), "the goals": np.minimum(truth, 0.0)}
    cost = np.asarray(basis.on(world) @ truth)
    best, chance = (
        jm.expected_cost(world, one, cost) for one in (expert, jm.Policy.uniform(world))
    )
    for name, prior in priors.items():
        print(f"\nwindy grid, the prior knows {name}: {np.linalg.norm(prior - truth):.2f} away")
        for strength in (0.1, 1.0):
            solver = jm.solvers.PriorMirrorDescent(
                prior, strength=strength, accuracy=1e-3, max_iterations=30_000
            )
            answer = jm.solve(problem, solver, observer=_silent)
            exact = exact_prices(problem, prior, strength)
            own = jm.plan(world, basis.on(world) @ answer.recovered).policy
            lost = [
                100
                * (jm.expected_cost(world, one, basis.on(world) @ truth) - best)
                / (chance - best)
                for one in (answer.policy, own)
            ]
            recovered: Any = answer.recovered
            far = [np.linalg.norm(one - truth) for one in (recovered, exact)]
            print(
                f"strength {strength:4}: {far[0]:.2f} away, exact {far[1]:.2f}; under the expert's "
                f"cost the policy loses {lost[0]:.1f} %, a plan for the recovered cost "
                f"{lost[1]:.1f} %",
                flush=True,
            )


def _words(prices: Any) -> str:
    return ", ".join(f"{price:.2f}" for price in prices)


def _apart(prices: Any, own: Any) -> str:
    """Distances to the expert's prices, and to those of the shop."""
    to_own, to_shop = (
        float(np.linalg.norm(np.array(prices) - np.array(other))) for other in (own, TRUTH)
    )
    return f"{to_own:.2f} from the expert's" + (
        "" if tuple(own) == TRUTH else f" ({to_shop:.2f} from {TRUTH})"
    )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="names of instances")
    parser.add_argument("--limits", nargs="*", choices=list(LIMITS), default=list(LIMITS))
    parser.add_argument("--prices", action="store_true", help="prices in the shop instead")
    parser.add_argument("--csv", type=Path, help="every run; what is in it is not done again")
    parser.add_argument("--charts", type=Path, help="a directory to draw into")
    asked = parser.parse_args(arguments)
    print(describe_machine())
    if asked.prices:
        recovered_prices()
        recovered_cells()
        return
    runs: list[Run] = [] if asked.csv is None else kept(asked.csv)
    with one_blas_thread():
        for instance in instances(asked.only):
            share = 100 * instance.least / instance.problem.gap_scale
            print(f"\n{instance.name}: {instance.problem.world}, least gap {share:.3f} %")
            runs = compare(instance, asked.seeds, asked.limits, runs, asked.csv)
    if asked.charts is not None:
        for limit in asked.limits:
            path = asked.charts / f"successors-{limit}.svg"
            path.write_text(chart(runs, limit), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
