"""Seeded runs in which the truth is known: worlds, experts with and without memory, records.

An expert with a memory acts in an *augmented* world whose states are (state, memory). There it is
an ordinary policy, so its expectations are exact and its records quick; the records are then told
without the memory. `as_function` is the same expert as a function of the whole past.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import sparse

import journeyman as jm
from journeyman.testing import Shape, random_world
from journeyman.testing.random_worlds import random_policy


@dataclass(frozen=True, eq=False)
class Memory:
    """What an expert remembers: `after(memory, action)` is its memory after an action."""

    size: int
    after: Callable[[np.ndarray, np.ndarray], np.ndarray]


LAST_ACTION = Memory(3, lambda memory, action: np.minimum(action, 1) + 1)
"""Nothing yet, the first action, or another one."""
PARITY = Memory(2, lambda memory, action: 1 - memory)


@dataclass(frozen=True, eq=False)
class Remembering:
    """A random policy over (state, memory) in a world."""

    world: jm.World
    memory: Memory
    augmented: jm.World
    policy: jm.Policy

    @classmethod
    def of(cls, world, memory, seed):
        pairs, size = world.pairs, memory.size
        counts = np.repeat(pairs.actions_per_state, size)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        origin = np.concatenate([
            np.tile(np.arange(pairs.offsets[x], pairs.offsets[x + 1]), size)
            for x in range(world.num_states)
        ])  # fmt: skip
        remembered = np.repeat(np.tile(np.arange(size), world.num_states), counts)
        action = origin - pairs.offsets[pairs.states[origin]]
        following = memory.after(remembered, action)
        rows = world.transition[origin].tocoo()
        columns = rows.col * size + following[rows.row]
        shape = (origin.size, world.num_states * size)
        initial = np.zeros(world.num_states * size)
        initial[::size] = world.initial
        augmented = jm.World(
            sparse.coo_array((rows.data, (rows.row, columns)), shape=shape), initial,
            world.discount, choice_offsets=offsets,
        )  # fmt: skip
        return cls(world, memory, augmented, random_policy(augmented, seed))

    def expectations(self, basis):
        pairs, size = self.world.pairs, self.memory.size
        measure = jm.occupancy(self.augmented, self.policy).measure
        origin = np.concatenate([
            np.tile(np.arange(pairs.offsets[x], pairs.offsets[x + 1]), size)
            for x in range(self.world.num_states)
        ])  # fmt: skip
        forgotten = np.bincount(origin, measure, minlength=len(pairs))
        return np.asarray(basis.on(self.world).T @ forgotten)

    def record(self, trajectories, horizon, seed):
        full = jm.record(
            self.augmented, self.policy, trajectories=trajectories, horizon=horizon, seed=seed
        )
        told = jm.Demonstrations(full.states // self.memory.size, full.actions, full.offsets)
        return ended(told, self.world, lambda states: self.world.absorbing[states])

    def as_function(self, states, actions, rng):
        memory = np.array(0)
        for action in actions:
            memory = self.memory.after(memory, np.array(action))
        here = int(states[-1]) * self.memory.size + int(memory)
        return int(self.policy.sample(np.array([here]), rng)[0])


def ended(demos, world, stops):
    """The records, each cut where `stops(states)` first holds after a step."""
    states, actions, terminated = [], [], []
    for j in range(len(demos)):
        visited, taken = demos.episode(j)
        where = np.flatnonzero(stops(visited[1:]))
        length = int(where[0]) + 1 if where.size else taken.size
        states.append(visited[: length + 1])
        actions.append(taken[:length])
        terminated.append(bool(world.absorbing[visited[length]]))
    lengths = [part.size for part in actions]
    return jm.Demonstrations(
        np.concatenate(states), np.concatenate(actions), np.concatenate([[0], np.cumsum(lengths)]),
        terminated, choice_offsets=world.pairs.offsets,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Setting:
    """A world, an expert of known expectations, and how it is recorded."""

    world: jm.World
    basis: jm.CostBasis
    truth: np.ndarray
    record: Callable[[int], jm.Demonstrations]
    policies: tuple[jm.Policy, ...]

    @classmethod
    def of(cls, world, basis, truth, record, seed):
        rng, costs = np.random.default_rng(seed), basis.on(world)
        planned = [
            jm.plan(world, np.asarray(costs @ rng.normal(size=basis.num_costs))).policy
            for _ in range(3)
        ]
        return cls(world, basis, truth, record, (jm.Policy.uniform(world), *planned))

    @classmethod
    def stationary(cls, world, basis, expert, trajectories, horizon, seed, stops=None):
        def record(run):
            demos = jm.record(
                world, expert, trajectories=trajectories, horizon=horizon, seed=run
            )  # fmt: skip
            return demos if stops is None else ended(demos, world, stops)

        return cls.of(world, basis, jm.occupancy(world, expert).expectations(basis), record, seed)

    @classmethod
    def remembering(cls, world, basis, memory, trajectories, horizon, seed):
        expert = Remembering.of(world, memory, seed)

        def record(run):
            return expert.record(trajectories, horizon, run)

        return cls.of(world, basis, expert.expectations(basis), record, seed)

    def exact(self, cost_class):
        """The problem whose target is the truth."""
        return jm.Apprenticeship(
            self.world, self.basis, jm.ExpertExpectation(self.truth), cost_class
        )


def random_basis(world, num_costs, seed):
    return jm.CostBasis(np.random.default_rng(seed).uniform(-1, 1, (world.num_pairs, num_costs)))


def resting_basis(world, num_costs, seed):
    """Per state, so that absorbing states have known tails."""
    return jm.CostBasis(np.random.default_rng(seed).uniform(0, 1, (world.num_states, num_costs)))


def fork(seed):
    """One choice between +1 and -1 for ever: the worst case of every radius."""
    rows = [[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]]
    world = jm.World(rows, [1, 0, 0], 0.9, choice_offsets=[0, 2, 3, 4])
    chance = (0.5, 0.2, 0.03)[seed % 3]
    expert = jm.Policy([chance, 1 - chance, 1, 1], world.pairs.offsets)
    return Setting.stationary(
        world, jm.CostBasis([1.0, -1.0, 1.0, -1.0]), expert, (25, 700)[seed % 2], 5, seed
    )


def small_grid(seed):
    world, basis, expert = jm.gallery.grid(4, macro_cells=2, discount=0.9, seed=seed)
    return Setting.stationary(world, basis, expert, 600, 60, seed)


def decided_grid(seed):
    """A deterministic expert."""
    world, basis, expert = jm.gallery.grid(6, macro_cells=3, randomness=0.0, seed=seed)
    return Setting.stationary(world, basis, expert, 500, 120, seed)


def short_grid(seed):
    """Records cut off early."""
    world, basis, expert = jm.gallery.grid(5, macro_cells=2, discount=0.8, seed=seed)
    return Setting.stationary(world, basis, expert, 550, 12, seed)


def garnet(seed):
    world, basis, expert = jm.gallery.garnet(12, 3, 3, num_costs=4, discount=0.9, seed=seed)
    return Setting.stationary(world, basis, expert, 60, 70, seed)


def resting(seed):
    """Every episode comes to rest before long."""
    world = random_world(seed, Shape.ABSORBING, num_states=5, discount=0.95)
    return Setting.stationary(
        world, resting_basis(world, 3, seed), random_policy(world, seed), 600, 40, seed
    )


def cut_in_trouble(seed):
    """Records that end for good when a certain state is met, without being marked as ended."""
    world = random_world(seed, Shape.SPARSE, num_states=6, discount=0.85)
    return Setting.stationary(
        world, resting_basis(world, 2, seed), random_policy(world, seed), 800, 40, seed,
        lambda states: states == 1,
    )  # fmt: skip


def stubborn(seed):
    """The next action depends on the last one."""
    world = random_world(seed, Shape.RAGGED, num_states=5, discount=0.9)
    return Setting.remembering(world, random_basis(world, 3, seed), LAST_ACTION, 600, 60, seed)


def restless(seed):
    """Another policy at even and at odd times; some episodes come to rest."""
    world = random_world(seed, Shape.ABSORBING, num_states=5, discount=0.9)
    return Setting.remembering(world, resting_basis(world, 2, seed), PARITY, 90, 25, seed)


def told_step_by_step(seed):
    """A function of the whole past, recorded one step at a time."""
    world = random_world(seed, Shape.ABSORBING, num_states=4, num_actions=2, discount=0.8)
    basis = resting_basis(world, 2, seed)
    expert = Remembering.of(world, PARITY, seed)

    def record(run):
        return jm.record(world, expert.as_function, trajectories=25, horizon=12, seed=run)

    return Setting.of(world, basis, expert.expectations(basis), record, seed)


def driving(seed):
    """Rewards, and an expert that is deterministic up to the choice of its speed."""
    world, basis, _ = jm.gallery.driving()
    cost = basis.on(world) @ np.random.default_rng(seed).dirichlet([1, 1, 1])
    chosen = jm.plan(world, np.asarray(cost)).policy.per_pair.copy()
    chosen[-3:] = 1 / 3
    expert = jm.Policy(chosen, world.pairs.offsets)
    return Setting.stationary(world, basis, expert, 60, 50, seed)


SETTINGS = {
    make.__name__: (make, share)
    for make, share in [
        (fork, 3), (small_grid, 2), (decided_grid, 1), (short_grid, 2), (garnet, 3), (resting, 2),
        (cut_in_trouble, 2), (stubborn, 2), (restless, 2), (told_step_by_step, 1), (driving, 0.4),
    ]
}  # fmt: skip
"""Every kind of setting and how often it is drawn, in parts of twenty."""


@cache
def setting(name, seed):
    return SETTINGS[name][0](seed)
