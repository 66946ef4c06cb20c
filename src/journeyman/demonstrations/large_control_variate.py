"""Expected costs from demonstrations in a world of callables, with most of the noise taken out.

    M = <initial, V> + sum_{t<T} discount^t (psi_t + discount (P V)(x_t, a_t) - V(x_t))

has the expectation of sum_{t<T} discount^t psi_t + discount^T V(x_T) whatever V is, as long as V
was not made from the trajectory itself: the luck of starts and steps gives way to its known mean.
V is quadratic in the costs of a state, averaged over its actions, and fitted by least squares to
what the trajectories of the other half went on to cost; <initial, V> is a mean over many starts.

Cost: a vectorised call of `successors` for every recorded step.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.costs.cost_functions import CostFunctions
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.world.large_world import LargeWorld, successor_laws

STARTS = 1 << 17
"""Start states behind <initial, V>."""
STREAM = 0x73746172
BLOCK = 1 << 15
"""Steps worked on at a time."""
RIDGE = 1e-6
"""Relative, of the least squares."""
TAIL = 0.05
"""A step takes part in the fit when its record goes on for all but this share of the horizon."""


@dataclass(frozen=True, eq=False)
class QuadraticValues:
    """V(x) = (1, p, p p')(x) coefficients, where p are the costs of x averaged over actions."""

    costs: CostFunctions
    num_actions: int
    coefficients: FloatArray

    def at(self, states: IntArray) -> FloatArray:
        """(states x costs)."""
        return quadratic(self.costs, self.num_actions, states) @ self.coefficients


def quadratic(costs: CostFunctions, num_actions: int, states: IntArray) -> FloatArray:
    """(states x features): one, the mean costs of every state, and their products."""
    figures = [costs.at(states, np.full(states.size, action)) for action in range(num_actions)]
    mean = np.mean(figures, axis=0)
    left, right = np.triu_indices(costs.num_costs)
    return np.column_stack([np.ones(states.size), mean, mean[:, left] * mean[:, right]])


def shaped_totals(demos: Demonstrations, costs: CostFunctions, world: LargeWorld) -> FloatArray:
    """M of every trajectory, (episodes x costs); each half is shaped by values of the other."""
    halves = np.arange(len(demos)) % 2
    totals = np.empty((len(demos), costs.num_costs))
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(STREAM,)))
    starts = np.asarray(world.draw_initial(rng, STARTS))
    for half in (0, 1):
        values = fitted(demos.subset(np.flatnonzero(halves != half)), costs, world)
        shaped = _totals(demos.subset(np.flatnonzero(halves == half)), costs, world, values)
        totals[halves == half] = shaped + values.at(starts).mean(axis=0)
    return totals


def fitted(demos: Demonstrations, costs: CostFunctions, world: LargeWorld) -> QuadraticValues:
    """Least squares on what was paid from each state to the end of its record."""
    states, times = demos.step_states, demos.step_times
    paid = _paid_from(demos, costs.at(states, demos.actions), world.discount)
    left = np.repeat(demos.lengths, demos.lengths) - times
    used = world.discount**left <= TAIL
    used = used if used.any() else left >= left.max()
    design = quadratic(costs, world.num_actions, states[used])
    gram = design.T @ design
    ridge = RIDGE * np.trace(gram) / gram.shape[0]
    gram[np.diag_indices_from(gram)] += ridge
    fit = np.linalg.solve(gram, design.T @ paid[used])
    return QuadraticValues(costs, world.num_actions, np.asarray(fit))


def _paid_from(demos: Demonstrations, paid: FloatArray, discount: float) -> FloatArray:
    """Discounted cost from every step to the end of its episode."""
    sums = np.empty_like(paid)
    order = np.argsort(-demos.lengths, kind="stable")
    ends = demos.offsets[1:][order]
    lengths = demos.lengths[order]
    following = np.zeros((len(demos), paid.shape[1]))
    for back in range(1, int(lengths[0]) + 1):
        count = int(np.searchsorted(-lengths, -back, side="right"))
        at = ends[:count] - back
        following[:count] = paid[at] + discount * following[:count]
        sums[at] = following[:count]
    return sums


def _totals(
    demos: Demonstrations, costs: CostFunctions, world: LargeWorld, values: QuadraticValues
) -> FloatArray:
    """sum_t discount^t (psi + discount P V - V)."""
    totals = np.zeros((len(demos), costs.num_costs))
    episodes = np.repeat(np.arange(len(demos)), demos.lengths)
    states, times = demos.step_states, demos.step_times
    for first in range(0, states.size, BLOCK):
        part = slice(first, first + BLOCK)
        here, actions = states[part], demos.actions[part]
        following = successor_laws(world, here, actions)
        possible = np.where(following.probabilities > 0, following.states, here[:, np.newaxis])
        after = values.at(possible.ravel()).reshape(*possible.shape, -1)
        onwards = np.einsum("kb,kbi->ki", following.probabilities, after)
        change = costs.at(here, actions) + world.discount * onwards - values.at(here)
        weighed = world.discount ** times[part].astype(float)[:, np.newaxis] * change
        np.add.at(totals, episodes[part], weighed)
    return totals
