"""Rows that are never seen twice: steps with snapshots, and features on both sides.

All minimise the surrogate loss over features of a large world from drawn rows,

    L(theta) = F(theta) + E[h(theta; rows)],     F exact, rows ~ q1, q2.

*Snapshots* (stochastic variance-reduced gradients; not in the library). At a snapshot t0 the mean
subgradient of a large batch S is kept, and a step goes against

    g = F'(theta) + h'_B(theta) - h'_B(t0) + h'_S(t0),      B the rows of the step.

Given S and theta, E g = L'(theta) + e with e = h'_S(t0) - E h'(t0): unbiased over S, but e is the
same in all steps until the next snapshot, and costs them up to 2 radius |e|. What is left of the
noise of B is the difference of two subgradients, and those of [.]- and |.| are weighted signs: a
row whose sign is that at t0 adds nothing, one whose sign has turned adds twice its weight. With
rows drawn in proportion to their norms the second moment of a flow row is (lambda_2 C_2)^2 without
a snapshot and 4 (lambda_2 C_2)^2 P(turned) with one, so that a snapshot pays only while fewer than
a quarter of the rows turn, and it has cost its batch.

*Features on both sides* are in the library: by a program (`SampledProgram(averaged_flow=True)`) and
by steps (`OccupancyMirrorDescent`), for whom a row is a pair with one next state.

Printed: the loss on fresh rows, its standard error, and the gap of the policy to the target, exact
on the grid, elsewhere in walks with the sum of the standard errors of its costs; for SGD-AL and
`SampledProgram`, plain steps and those with snapshots by the same NumPy code (so that seconds
compare), and features on both sides, at equal numbers of rows; at last SGD-AL for as many CPU
seconds as the row before it. Four queues have 10^6 states, eight 10^16; `shop` is
`examples/large_world.py` with 4.75 10^9; `grid` has 300 x 300 cells and is only asked for
successors and predecessors.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import journeyman as jm
from benchmarks.large_worlds import features_of
from benchmarks.machine import describe_machine
from benchmarks.queue_quality import features_for
from benchmarks.stochastic_solvers import Limit
from journeyman.arrays import FloatArray, IntArray
from journeyman.features.base import every_action
from journeyman.policy.function_policy import FeaturePolicy
from journeyman.problem.drawn import FRESH, LEARNING, DrawnReduced
from journeyman.problem.reduced import DrawnRows, ExactPenalty
from journeyman.problem.surrogate import Surrogate

JUDGED, BATCH, WALKS, LENGTH = 60_000, 32, 2000, 200
SNAPSHOT = 4
"""How many there are; each is made of as many rows as the steps after it take."""


class Instance(NamedTuple):
    """A problem by callables with features."""

    problem: jm.Apprenticeship
    features: jm.features.DrawnFeatures


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="*", default=list(MADE), choices=list(MADE))
    parser.add_argument("--seeds", type=int, nargs="*", default=[2])
    parser.add_argument("--rows", type=int, nargs="*", default=[16_384])
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    print(describe_machine())
    for name in options.worlds:
        for seed in options.seeds:
            _report(name, MADE[name](seed), seed, options.rows)


def _report(name: str, made: Instance, seed: int, counts: Sequence[int]) -> None:
    problem, features = made
    surrogate = Surrogate(DrawnReduced(problem, features, seed), ExactPenalty())
    fresh = DrawnReduced(problem, features, 10**6 + seed).drawn(JUDGED, FRESH, 1)
    surrogate.reduced.matching  # noqa: B018  estimated once for all
    print(f"\n{name}, seed {seed}: {problem.world.num_states:.3g} states, {features.num_features} "
          f"features, gaps are at most {problem.trivial_bound:.0f}")  # fmt: skip
    print("| variant | rows | CPU seconds | loss | gap | |\n|---|---|---|---|---|---|")
    for count in counts:
        _library(surrogate, fresh, jm.StochasticSubgradient(features, steps=count // BATCH), seed)
        _library(surrogate, fresh, jm.solvers.SampledProgram(features, seed=seed, num_rows=count),
                 seed)  # fmt: skip
        for variant, snapshots in (("steps, NumPy", 0), ("steps with snapshots", SNAPSHOT)):
            started = time.process_time()
            theta, said = _steps(surrogate, count, snapshots)
            seconds = time.process_time() - started
            _row(surrogate, fresh, (variant, count, seconds, said), theta)
        _library(surrogate, fresh, jm.solvers.OccupancyMirrorDescent(
            features, max_iterations=count // 256), seed)  # fmt: skip
        seconds = _library(surrogate, fresh, jm.solvers.SampledProgram(
            features, seed=seed, num_rows=count, averaged_flow=True), seed)  # fmt: skip
        longer = jm.StochasticSubgradient(features, steps=10**9)
        _library(surrogate, fresh, longer, seed, seconds)


def _library(
    surrogate: Surrogate, fresh: DrawnRows, solver: Any, seed: int, limit: float = np.inf
) -> float:
    started = time.process_time()
    answer = jm.solve(surrogate.reduced.problem, solver, seed=seed, observer=Limit(limit))
    seconds = time.process_time() - started
    found, work, said = answer.reduced, answer.work, ""
    assert found is not None
    rows = getattr(solver, "num_rows", None)
    if rows is None and work is not None:
        rows = work.environment_steps or work.iterations * BATCH
    name = type(solver).__name__
    if found.averaged_loss is not None:
        name, said = f"{name}, averaged flow", f"L_F {found.averaged_loss:.2f}"
    _row(surrogate, fresh, (name, rows or 0, seconds, said), found.coefficients)
    return seconds


def _row(
    surrogate: Surrogate, fresh: DrawnRows, words: tuple[str, int, float, str], theta: FloatArray
) -> None:
    name, rows, seconds, said = words
    loss, error = surrogate.estimate(theta, fresh)
    reduced = surrogate.reduced
    assert isinstance(reduced, DrawnReduced)
    gap, noise = _gap(reduced.problem, FeaturePolicy(reduced.features, theta))
    print(f"| {name} | {rows} | {seconds:.1f} | {loss:.2f} +- {error:.2f} | "
          f"{gap:.2f} +- {noise:.2f} | {said} |", flush=True)  # fmt: skip


def _gap(problem: jm.Apprenticeship, policy: jm.policy.StatePolicy) -> tuple[float, float]:
    """The gap of the policy to the target: exact where the world can be listed, otherwise from the
    mean totals of `WALKS` walks, with the sum of the standard errors of the costs."""
    world: Any = problem.world
    costs = problem.cost_functions
    if isinstance(world, jm.World):
        states = np.arange(world.num_states)
        measure = jm.occupancy(world, jm.Policy(policy.probabilities(states))).measure
        psi = costs.at(*every_action(states, world.num_actions))
        return problem.cost_class.gap(measure @ psi - problem.target), 0.0
    acting = jm.FunctionPolicy(policy.probabilities, world.num_actions)
    walks = jm.record(world, acting, trajectories=WALKS, horizon=LENGTH, seed=99)
    each = costs.at(walks.step_states, walks.actions)
    each = each * (world.discount ** walks.step_times.astype(float))[:, np.newaxis]
    totals = np.add.reduceat(each, np.arange(WALKS) * LENGTH)
    error = float(totals.std(axis=0).sum() / np.sqrt(WALKS))
    return problem.cost_class.gap(totals.mean(axis=0) - problem.target), error


def _steps(surrogate: Surrogate, count: int, snapshots: int) -> tuple[FloatArray, str]:
    """Per-coordinate steps on `count` pairs and states, half of them in snapshots if there are."""
    reduced, penalties = surrogate.reduced, surrogate.penalties
    assert isinstance(reduced, DrawnReduced)
    rows = reduced.drawn(count, LEARNING, 0)
    pairs, flow = rows.pair_rows.toarray(), rows.flow_rows.toarray()
    by_pair, by_flow = penalties.pairs / rows.pair_law, penalties.flow / rows.flow_law
    G, target, cost_class = reduced.matching, reduced.matching_target, reduced.problem.cost_class

    def sampled(theta: FloatArray, part: slice) -> FloatArray:
        active = (pairs[part] @ theta < 0) * by_pair[part]
        signs = np.sign(flow[part] @ theta - rows.flow_target[part]) * by_flow[part]
        size = part.stop - part.start
        return np.asarray((signs @ flow[part] - active @ pairs[part]) / size)

    theta, squares = np.zeros(reduced.num_features), np.zeros(reduced.num_features)
    rate = 2 * reduced.mixture_radius / theta.size
    average, weight, step, at, turned = np.zeros_like(theta), 0.0, 0, 0, []
    stretch = count // (2 * snapshots) if snapshots else count
    while at < count:
        old = kept = None
        if snapshots:
            old, kept = theta.copy(), sampled(theta, slice(at, at + stretch))
            at += stretch
        for first in range(at, min(at + stretch, count), BATCH):
            part = slice(first, min(first + BATCH, count))
            g = G.T @ cost_class.worst_case(G @ theta - target) + sampled(theta, part)
            if old is not None and kept is not None:
                g += kept - sampled(old, part)
                ends = [np.sign(flow[part] @ one - rows.flow_target[part]) for one in (theta, old)]
                turned.append(float(np.mean(ends[0] != ends[1])))
            step += 1
            average, weight = average + step**2 * theta, weight + step**2
            squares += g * g
            theta = theta - rate * g / np.sqrt(squares + 1e-300)
            theta *= min(1.0, reduced.mixture_radius / max(float(np.linalg.norm(theta)), 1e-300))
        at += stretch
    return average / weight, f"{np.mean(turned):.0%} turned" if turned else ""


def _queues(queues: int, seed: int) -> Instance:
    network = jm.gallery.queues(queues)
    expert = network.lbfs if queues == 4 else network.longer
    demos = jm.record(network.world, expert, trajectories=100, horizon=300, seed=seed)
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    made = features_for(network, demos, seed)[0] if queues == 4 else features_of(network)
    return Instance(problem, made)


def _shop(seed: int) -> Instance:
    sys.path.append(str(Path(__file__).parents[1] / "examples"))
    shop = import_module("large_world")
    world = shop.Shelves(products=6, room=40)
    expert = jm.FunctionPolicy(shop.Lowest(world), world.num_actions)
    demos = jm.record(world, expert, trajectories=100, horizon=200, seed=seed)
    cloned = jm.features.cloned(world, world.radix, demos, num_knots=3)
    walks = jm.record(world, cloned, trajectories=500, horizon=200, seed=seed)
    nothing = jm.features.single_actions(world)[-1]
    made = jm.features.factored(world, world.radix, walks, [cloned, nothing], num_knots=2)
    return Instance(jm.Apprenticeship(world, shop.costs_of(world), demos), made)


def _grid(seed: int, size: int = 300) -> Instance:
    world, basis, expert = jm.gallery.grid(size, macro_cells=4, seed=seed)
    table = basis.on(world)
    demos = jm.record(world, expert, trajectories=200, horizon=150, seed=seed)

    def costs(states: IntArray, actions: IntArray) -> FloatArray:
        return np.asarray(table[states * world.num_actions + actions].todense())

    functions = jm.CostFunctions(costs, [f"c{k}" for k in range(16)], lowest=0, highest=1)
    problem = jm.Apprenticeship(world, functions, demos)
    radix, actions = jm.world.MixedRadix([size, size]), jm.features.single_actions(world)
    made = jm.features.factored(world, radix, demos, actions, num_knots=8)
    return Instance(problem, made)


MADE: dict[str, Callable[[int], Instance]] = {
    "four queues": lambda seed: _queues(4, seed),
    "eight queues": lambda seed: _queues(8, seed),
    "shop": _shop,
    "grid": _grid,
}


if __name__ == "__main__":
    main(sys.argv[1:])
