"""Primal-dual successors beside SGD-AL: at equal numbers of draws, and at equal CPU seconds.

Every method searches all policies: features are all pairs, and for the occupancy game all states
are functions of values. What is printed is the gap of the policy, evaluated exactly, less the least
gap there is (the exact program), in percent of 2N/(1 - discount); the median of the seeds, which
draw samples, not instances.

A draw of SGD-AL is a row: of a pair, or of a state with all the laws that lead there. A draw of the
occupancy game is one next state of one pair, so it learns less from each. `StochasticPrimalDual`
reads all rows in every epoch, each of them counted as a draw. Proximal points draw nothing and have
seconds only. Compilation is not counted.

    grid       8 x 8, slip 0.3, discount 0.95, 16 costs, 100 demonstrations
    garnet     60 states, discount 0.95, 8 costs, 100 demonstrations
    shop       16 x 16, Poisson demand 10, discount 0.9, 3 costs; the expert is known exactly
    windy      10 x 10, wind 0.2, discount 0.7, 100 costs; exact

With --prices: what `PriorMirrorDescent` recovers in the shop from the prior 14, 4, 2, for an expert
who is optimal for 15, 3, 0.5 and for one with 15, 5, 8; beside the optimum by CVXPY, which is not
needed otherwise.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import journeyman as jm
from benchmarks.machine import describe_machine
from benchmarks.stochastic_solvers import Limit
from journeyman.arrays import FloatArray

DRAWS = (100_000, 1_000_000)
SECONDS = (0.3, 1.0)
BATCH = 32
PRIOR = (14.0, 4.0, 2.0)
TRUTH = (15.0, 3.0, 0.5)
OTHER = (15.0, 5.0, 8.0)
"""Prices of the expert with a taste of his own."""


class Instance(NamedTuple):
    name: str
    problem: jm.Apprenticeship
    least: float
    """The least gap, proven."""


def instances() -> list[Instance]:
    """The four problems with their optimum."""
    made: list[tuple[str, Any, Any]] = [
        ("grid", jm.gallery.grid(8), None),
        ("garnet", jm.gallery.garnet(60), None),
        ("shop", jm.gallery.shop(), jm.InfinityBall([20.0, 10.0, 10.0])),
        ("windy", jm.gallery.windy_grid(), None),
    ]
    found = []
    for name, (world, basis, expert), cost_class in made:
        known: Any = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
        if name in ("grid", "garnet"):
            known = jm.record(world, expert, trajectories=100, horizon=100, seed=0)
        problem = jm.Apprenticeship(world, basis, known, cost_class)
        found.append(Instance(name, problem, jm.solve(problem, jm.LinearProgram()).value))
    return found


def all_pairs(problem: jm.Apprenticeship) -> jm.features.Features:
    count, h = problem.world.num_pairs, problem.effective_horizon
    return jm.features.Features(sparse.csr_array(sparse.eye_array(count) * h))


def by_draws(problem: jm.Apprenticeship, draws: int, seed: int) -> dict[str, Any]:
    """The methods with as many draws."""
    features, world = all_pairs(problem), problem.world
    rows = world.num_pairs + world.num_states
    return {
        "SGD-AL": jm.StochasticSubgradient(
            features, batch=BATCH, steps=max(1, draws // (2 * BATCH)), accuracy=0.0, seed=seed
        ),
        "StochasticPrimalDual": jm.solvers.StochasticPrimalDual(
            features, epochs=max(1, draws // rows), accuracy=0.0, seed=seed
        ),
        "OccupancyMirrorDescent": jm.solvers.OccupancyMirrorDescent(
            accuracy=1e-9, max_iterations=max(1, draws // world.num_pairs), seed=seed
        ),
    }


def by_seconds(problem: jm.Apprenticeship, seed: int) -> dict[str, Any]:
    """The methods without a limit of their own."""
    endless = by_draws(problem, 10**12, seed)
    endless["ProximalPointImitation"] = jm.solvers.ProximalPointImitation(
        accuracy=1e-9, max_iterations=10**6
    )
    return endless


def above_least(instance: Instance, answer: jm.Answer) -> float:
    """In percent of 2N/(1 - discount)."""
    return 100 * (answer.value - instance.least) / instance.problem.gap_scale


def row(instance: Instance, what: str, run: Callable[[int], dict[str, float]], seeds: int) -> None:
    """One line: a number for every method."""
    each = [run(seed) for seed in range(seeds)]
    medians = {name: float(np.median([one[name] for one in each])) for name in each[0]}
    cells = "  ".join(f"{name} {number:8.3f}" for name, number in medians.items())
    print(f"{instance.name:7} {what:>12}  {cells}", flush=True)


def compare(instance: Instance, seeds: int) -> None:
    """Both tables of an instance."""
    problem = instance.problem
    for solver in by_draws(problem, 1, 0).values():
        jm.solve(problem, solver, observer=_silent)
    for draws in DRAWS:
        seconds: dict[str, float] = {}

        def one(
            seed: int, draws: int = draws, spent: dict[str, float] = seconds
        ) -> dict[str, float]:
            found = {}
            for name, solver in by_draws(problem, draws, seed).items():
                began = time.process_time()
                answer = jm.solve(problem, solver, observer=_silent)
                spent[name] = time.process_time() - began
                found[name] = above_least(instance, answer)
            return found

        row(instance, f"{draws:.0e} draws", one, seeds)
        print(" " * 21 + "  ".join(f"{name} {taken:7.2f}s" for name, taken in seconds.items()))
    for limit in SECONDS:

        def timed(seed: int, limit: float = limit) -> dict[str, float]:
            return {
                name: above_least(instance, jm.solve(problem, solver, observer=Limit(limit)))
                for name, solver in by_seconds(problem, seed).items()
            }

        row(instance, f"{limit} s", timed, seeds)


def _silent(event: object) -> None:
    """No line of progress."""


def exact_prices(problem: jm.Apprenticeship, strength: float) -> FloatArray:
    """The optimum of the program with a prior, by CVXPY."""
    import cvxpy as cp

    world, h = problem.world, problem.effective_horizon
    w, V = cp.Variable(problem.num_costs), cp.Variable(world.num_states)
    flow = world.flow.matrix()
    costs = problem.cost_matrix @ w - flow @ V
    pull = strength * h / 2 * cp.sum_squares(w - np.array(PRIOR))
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
            exact = exact_prices(problem, strength)
            words = [
                f"{_words(found)}, {_apart(found, prices)}" for found in (answer.recovered, exact)
            ]
            known = answer.log.split("; ")[-1]
            print(
                f"strength {strength:4}: {words[0]}; exact {words[1]}; {seconds:.1f} s; {known}",
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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="names of instances")
    parser.add_argument("--prices", action="store_true", help="prices in the shop instead")
    asked = parser.parse_args(arguments)
    print(describe_machine())
    if asked.prices:
        recovered_prices()
        return
    for instance in instances():
        if not asked.only or instance.name in asked.only:
            print(f"\n{instance.name}: {instance.problem.world}, least gap "
                  f"{100 * instance.least / instance.problem.gap_scale:.3f} %")  # fmt: skip
            compare(instance, asked.seeds)


if __name__ == "__main__":
    main()
