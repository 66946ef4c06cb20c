"""Cascading errors: what one mistake costs an apprentice who never saw what comes after it.

    python examples/cascading_errors.py [--longest 64] [--decisions 10240] [--seeds 5]

A road of 40 places, each with its own right turn, and a ditch beside it. Whoever turns wrong lands
at the edge of the ditch; the right step there leads back to the road, every wrong step to its
bottom, from where ten right steps lead out. The expert makes no mistake, so no demonstration shows
the ditch. Time in the ditch is the cost.

Both apprentices get as many decisions of the expert, whatever the horizon 1/(1 - discount): cloning
from demonstrations, DAgger by asking wherever it drives itself. The table has their gaps, exactly
evaluated and averaged over seeds, the errors that make them, the bounds that follow from these, and
the power of the horizon with which the gaps grow.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np

import journeyman as jm

PLACES, DEPTH = 40, 10
SHORTEST = 4
ROUNDS = 10
"""Of rollouts that DAgger makes, the last one among them, which only tests."""


def road(horizon: float) -> tuple[jm.World, jm.CostBasis, jm.Policy]:
    """Places 0..39, then the ditch from its edge to its bottom; two actions, one of them right."""
    edge, bottom = PLACES, PLACES + DEPTH - 1
    num_states = PLACES + DEPTH
    right = np.arange(num_states) * 7 % 3 % 2
    transition = np.zeros((num_states, 2, num_states))
    for state in range(num_states):
        wrong = 1 - right[state]
        if state <= edge:  # the next place is anywhere on the road
            transition[state, right[state], :PLACES] = 1 / PLACES
        else:
            transition[state, right[state], state - 1] = 1
        transition[state, wrong, edge if state < edge else bottom] = 1
    initial = np.where(np.arange(num_states) < PLACES, 1 / PLACES, 0)
    world = jm.World(transition.reshape(-1, num_states), initial, 1 - 1 / horizon)
    in_ditch = world.pairs.states >= PLACES
    return world, jm.CostBasis(in_ditch.astype(float)), jm.Policy(np.eye(2)[right])


@dataclass(frozen=True)
class Row:
    """Means over seeds."""

    horizon: float
    error: float
    """How often cloning errs in the expert's states."""
    cloning: float
    dagger_error: float
    """How often DAgger's policy errs in its own states."""
    dagger: float


def trial(horizon: float, decisions: int, seed: int) -> Row:
    """Cloning and DAgger with the same number of the expert's decisions."""
    world, basis, expert = road(horizon)
    steps = int(4 * horizon)
    trajectories = max(1, decisions // (steps * ROUNDS))
    demos = jm.record(world, expert, trajectories=trajectories * ROUNDS, horizon=steps, seed=seed)
    shown = jm.Apprenticeship(world, basis, demos, jm.Simplex())
    cloned = jm.solve(shown, jm.solvers.BehaviourCloning())
    known = jm.ExpertExpectation([0.0])
    solver = jm.solvers.DAgger(
        expert, max_iterations=ROUNDS - 1, trajectories=trajectories, horizon=steps, seed=seed
    )
    asked = jm.solve(jm.Apprenticeship(world, basis, known, jm.Simplex()), solver)
    here = jm.occupancy(world, expert).of_states
    there = asked.occupancy.of_states
    return Row(
        horizon, error(world, expert, cloned.policy, here), cloned.value,
        error(world, expert, asked.policy, there), asked.value,
    )  # fmt: skip


def error(world: jm.World, expert: jm.Policy, policy: jm.Policy, visits: np.ndarray) -> float:
    """The probability of another action than the expert's, in states by their visits."""
    wrong = world.pairs.total(np.abs(policy.per_pair - expert.per_pair)) / 2
    return float(visits @ wrong) / world.effective_horizon


def power(rows: Sequence[Row], name: str) -> float:
    """Slope of a number against the horizon, both as logarithms."""
    numbers = np.log([[row.horizon, getattr(row, name)] for row in rows])
    return float(np.polyfit(numbers[:, 0], numbers[:, 1], 1)[0])


def bounds(row: Row) -> tuple[float, float]:
    """error x horizon^2, and error x horizon x what a mistake costs before the expert is back."""
    discount = 1 - 1 / row.horizon
    climb = discount * (1 - discount**DEPTH) / (1 - discount)
    of_cloning, of_dagger = row.error * row.horizon**2, climb * row.dagger_error * row.horizon
    return min(row.horizon, of_cloning), min(row.horizon, of_dagger)


def table(rows: Sequence[Row]) -> str:
    heading = f"{'horizon':>8}" + 2 * f"{'error':>11}{'gap':>9}{'bound':>9}"
    lines = [f"{'':>8}{'cloning':>20}{'DAgger':>29}", heading]
    for row in rows:
        of_cloning, of_dagger = bounds(row)
        lines.append(
            f"{row.horizon:>8g}{row.error:>11.5f}{row.cloning:>9.4f}{of_cloning:>9.4f}"
            f"{row.dagger_error:>11.5f}{row.dagger:>9.4f}{of_dagger:>9.4f}"
        )
    growth = [power(rows, name) for name in ("cloning", "dagger")]
    return "\n".join(
        [*lines, f"gaps grow like horizon^{growth[0]:.2f} and horizon^{growth[1]:.2f}"]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longest", type=int, default=64, help="horizon, a power of two from 8")
    parser.add_argument("--decisions", type=int, default=10240, help="of the expert, for each")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    rows, horizon = [], SHORTEST
    while horizon <= options.longest:
        trials = [trial(horizon, options.decisions, seed) for seed in range(options.seeds)]
        numbers = [[getattr(one, name) for name in Row.__annotations__] for one in trials]
        rows.append(Row(*np.mean(numbers, axis=0)))
        horizon *= 2
    sys.stdout.write(f"{table(rows)}\n")


if __name__ == "__main__":
    main()
