"""A recovered cost goes where a copied policy cannot: into a world that has changed.

    python examples/transfer_of_costs.py [--size 10] [--demonstrations 200]

At home a wall divides the grid, with a passage at the bottom; away the passage is at the top and
the floor is more slippery. The expert acts at home, optimally for a cost that nobody knows: a goal
in one corner of the grid, more or less rough ground elsewhere. Methods that infer a cost learn it
at home and plan with it away; their policies, and those of methods that infer none, are also copied
cell by cell. All are judged under the true cost, by the share of what uniformly random actions lose
against the optimum: 0 is optimal, 1 is as bad as acting at random.
"""

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np

import journeyman as jm

MACRO_CELLS, HORIZON, SEED = 5, 100, 0
METHODS: dict[str, jm.solvers.Solver | None] = {
    "behaviour cloning": None,
    "exact program": jm.LinearProgram(),
    "inverse program": jm.solvers.InverseProgram(),
    "sampled inverse program": jm.solvers.SampledInverseProgram(),
    "maximum margin planning": jm.solvers.MaximumMarginPlanning(1e-3),
    "policy matching": jm.solvers.PolicyMatching(),
    "maximum entropy": jm.solvers.MaximumEntropy(),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10, help="cells along a side of the grid")
    parser.add_argument("--demonstrations", type=int, default=200)
    options = parser.parse_args(arguments)
    home, basis = grid(options.size, passage_at_top=False, slip=0.1)
    away, away_basis = grid(options.size, passage_at_top=True, slip=0.3)
    hidden = hidden_weights()
    expert = jm.plan(home, basis.on(home) @ hidden).policy
    demos = jm.record(home, expert, trajectories=options.demonstrations, horizon=HORIZON, seed=SEED)
    problem = jm.Apprenticeship(home, basis, demos)
    at_home, elsewhere = (
        Loss(world, psi.on(world) @ hidden) for world, psi in ((home, basis), (away, away_basis))
    )
    rows = [f"{'':<26}{'at home':>10}{'copied':>10}{'planned anew':>14}"]
    for name, solver in METHODS.items():
        policy, weights = learn(problem, solver)
        anew = "-"
        if weights is not None:
            anew = f"{elsewhere.of(jm.plan(away, away_basis.on(away) @ weights).policy):.3f}"
        copied = copy(policy, home, away)
        rows.append(f"{name:<26}{at_home.of(policy):>10.3f}{elsewhere.of(copied):>10.3f}{anew:>14}")
    sys.stdout.write("\n".join(rows) + "\n")


def grid(size: int, *, passage_at_top: bool, slip: float) -> tuple[jm.World, jm.CostBasis]:
    """A grid with a wall through the middle that leaves two cells free at one end."""
    rows = range(2, size) if passage_at_top else range(size - 2)
    walls = [(row, size // 2) for row in rows]
    world, basis, _ = jm.gallery.grid(size, macro_cells=MACRO_CELLS, slip=slip, walls=walls)
    return world, basis


def hidden_weights() -> np.ndarray:
    """Rough ground costs up to 0.5 a step, the goal in the upper right saves 1."""
    weights = np.random.default_rng(SEED).uniform(0, 0.5, MACRO_CELLS**2)
    weights[MACRO_CELLS - 1] = -1.0
    return weights


def learn(
    problem: jm.Apprenticeship, solver: jm.solvers.Solver | None
) -> tuple[jm.Policy, np.ndarray | None]:
    """A policy, and the cost behind it where the method infers one."""
    if solver is None:
        return jm.clone(problem.demonstrations, problem.world), None
    answer = jm.solve(problem, solver)
    return answer.policy, answer.recovered


def copy(policy: jm.Policy, home: jm.World, away: jm.World) -> jm.Policy:
    """The same law in every cell that both worlds have, the uniform one in the others."""
    known = {tuple(cell): state for state, cell in enumerate(home.coordinates)}
    table = np.full((away.num_states, away.num_actions), 1 / away.num_actions)
    for state, cell in enumerate(away.coordinates):
        if tuple(cell) in known:
            table[state] = policy.probabilities([known[tuple(cell)]])[0]
    return jm.Policy(table)


class Loss:
    """What policies lose against the optimum under one cost, as a share of what chance loses."""

    def __init__(self, world: jm.World, cost: np.ndarray) -> None:
        self.world, self.cost = world, cost
        self.least = jm.expected_cost(world, jm.plan(world, cost).policy, cost)
        self.chance = jm.expected_cost(world, jm.Policy.uniform(world), cost)

    def of(self, policy: jm.Policy) -> float:
        paid = jm.expected_cost(self.world, policy, self.cost)
        return (paid - self.least) / (self.chance - self.least)


if __name__ == "__main__":
    main()
