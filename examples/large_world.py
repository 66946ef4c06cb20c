"""Your own large world: shelves of several products, from a file you could have written.

    python examples/large_world.py [--products 6] [--room 40] [--demonstrations 200] [--steps 4000]

A shop keeps every product on a shelf with limited room and orders one product at a time, or none.
In a step at most one thing happens: a customer takes a piece of product i (if there is one), or the
piece that was ordered arrives (if there is room). Six products with room for 40 pieces have 4.8
billion states. The shopkeeper orders what has run lowest; the apprentice learns it from records and
is certified by rollouts.
"""

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np

import journeyman as jm

HORIZON = 80
"""Steps of a record and of a rollout: beyond lies 0.02 % of the discounted time."""


class Shelves:
    """Action i < products orders product i, the last action orders nothing."""

    def __init__(self, products: int = 6, room: int = 40, discount: float = 0.9) -> None:
        self.radix, self.room = jm.world.MixedRadix([room + 1] * products), room
        self.num_states, self.num_actions = self.radix.num_states, products + 1
        self.discount = discount
        weights = np.arange(1, products + 1)
        self.asked = 0.5 * weights / weights.sum()  # customers, product by product
        self.arriving = 0.45  # an order

    def draw_initial(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return rng.integers(self.num_states, size=count)

    def initial_probability(self, states: np.ndarray) -> np.ndarray:
        return np.full(len(states), 1 / self.num_states)

    def successors(self, states: np.ndarray, actions: np.ndarray) -> jm.world.Successors:
        stock, strides = self.radix.digits(states), self.radix.strides
        sold, arrived = self._events(stock, actions)
        ordered = np.append(strides, 0)[actions]
        reached = np.column_stack([states[:, None] - (stock > 0) * strides,
                                   states + (arrived > 0) * ordered, states])  # fmt: skip
        moves = np.column_stack([sold, arrived])
        return jm.world.Successors(reached, np.column_stack([moves, 1 - moves.sum(axis=1)]))

    def predecessors(self, states: np.ndarray) -> jm.world.Predecessors:
        """One column for every event and action that can have led here."""
        stock, strides = self.radix.digits(states), self.radix.strides
        products, count = len(strides), len(states)
        every = np.arange(self.num_actions)
        columns = []  # (states before, actions, probabilities)
        for i in range(products):
            sale = np.where(stock[:, i] < self.room, self.asked[i], 0.0)
            columns += [(states + strides[i], action, sale) for action in every]
            arrival = np.where(stock[:, i] > 0, self.arriving, 0.0)
            columns.append((states - strides[i], i, arrival))
        for action in every:
            sold, arrived = self._events(stock, np.full(count, action))
            columns.append((states, action, 1 - sold.sum(axis=1) - arrived))
        before, chance = (np.column_stack([column[k] for column in columns]) for k in (0, 2))
        row, column = np.nonzero(chance > 0)
        offsets = np.searchsorted(row, np.arange(count + 1))
        actions = np.array([column[1] for column in columns])
        return jm.world.Predecessors(
            offsets, before[row, column], actions[column], chance[row, column]
        )

    def _events(self, stock: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of a sale of each product, and of the arrival of the order."""
        full = np.column_stack([stock == self.room, np.ones(len(stock), dtype=bool)])
        arrived = np.where(full[np.arange(len(stock)), actions], 0.0, self.arriving)
        return np.where(stock > 0, self.asked, 0.0), arrived


class Lowest:
    """Order what has run lowest, beside what is asked for it; nothing when all shelves are fuller
    than `enough`."""

    def __init__(self, world: Shelves, enough: float = 0.7) -> None:
        self.world, self.enough = world, enough

    def __call__(self, states: np.ndarray) -> np.ndarray:
        stock = self.world.radix.digits(states)
        lowest = np.argmin(stock / self.world.asked, axis=1)
        filled = (stock > self.enough * self.world.room).all(axis=1)
        chosen = np.where(filled, self.world.num_actions - 1, lowest)
        return np.eye(self.world.num_actions)[chosen]


class Costs:
    """Stock of every product as a share of the room, and lost customers as a share of all."""

    def __init__(self, world: Shelves) -> None:
        self.world = world

    def __call__(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        stock = self.world.radix.digits(states)
        lost = (stock == 0) @ self.world.asked / self.world.asked.sum()
        return np.column_stack([stock / self.world.room, lost])


def costs_of(world: Shelves) -> jm.CostFunctions:
    shares = np.arange(world.room + 1) / world.room
    products = range(world.radix.num_factors)
    return jm.CostFunctions(
        Costs(world), [*(f"stock {i + 1}" for i in products), "lost"], lowest=0, highest=1,
        by_factor={i: (i, shares) for i in products},
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--products", type=int, default=6)
    parser.add_argument("--room", type=int, default=40, help="pieces on a shelf")
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--steps", type=int, default=4000, help="of the descent")
    parser.add_argument("--rollouts", type=int, default=4000, help="for the certificate")
    options = parser.parse_args(arguments)
    world = Shelves(options.products, options.room)
    jm.testing.check_world(world)
    expert = jm.FunctionPolicy(Lowest(world), world.num_actions)
    demos = jm.record(world, expert, trajectories=options.demonstrations, horizon=HORIZON, seed=0)
    cloned = jm.features.cloned(world, world.radix, demos, num_knots=3)
    walks = jm.record(world, cloned, trajectories=2000, horizon=HORIZON, seed=1)
    heuristics = [cloned, jm.features.single_actions(world)[-1]]
    features = jm.features.factored(world, world.radix, walks, heuristics, num_knots=2)
    problem = jm.Apprenticeship(world, costs_of(world), demos)
    answer = jm.solve(problem, jm.StochasticSubgradient(features, steps=options.steps, seed=2))
    rollouts = jm.Rollouts(trajectories=options.rollouts, horizon=HORIZON)
    lines = [f"{world.num_states:.3g} states; {features}", str(answer)]
    for name, policy in {"apprentice": answer.policy, "cloned": cloned, "expert": expert}.items():
        certificate = jm.certify(problem, policy, evaluation=rollouts)
        share = certificate.bound / certificate.trivial_bound
        lines.append(f"{name:<12}gap <= {certificate.bound:.3f}, {share:.1%} of the trivial bound")
    lines += ["", jm.certify(problem, answer, evaluation=rollouts).table()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
