"""Expected costs from demonstrations in a world of callables, with most of the noise taken out.

    M = <initial, V> + sum_{t<T} discount^t (psi_t + discount (P V)(x_t, a_t) - V(x_t))

has the expectation of sum_{t<T} discount^t psi_t + discount^T V(x_T) whatever V is, as long as V
was not made from the trajectory itself: the luck of starts and steps gives way to its known mean.
V is quadratic in the costs of a state, averaged over its actions, and fitted by least squares to
what the trajectories of the other half went on to cost, with V itself behind records that are cut
off; <initial, V> is a mean over many starts.

The default target blends M with the completed plain total, cost by cost, as `Blend` does in an
explicit world. Where a world can only be sampled, it is the completed plain total. There are no
attainable ranges here: values are kept within h times the declared ranges of the costs.

Cost: a vectorised call of `successors` for every recorded step.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.costs.functions import CostFunctions
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.demonstrations.expectation import coefficients
from journeyman.world.large_world import (
    AnyWorld,
    LargeWorld,
    effective_horizon_of,
    successor_laws,
)

STARTS = 1 << 17
"""Start states behind <initial, V>."""
STREAM = 0x73746172
BLOCK = 1 << 15
"""Steps worked on at a time."""
COST_BLOCK = 1 << 18
"""Steps whose costs are evaluated at a time."""
RIDGE = 1e-6
"""Relative, of the least squares."""
TAIL = 0.05
"""A step takes part in the fit when its record goes on for all but this share of the horizon."""


def discounted_totals(demos: Demonstrations, costs: CostFunctions, discount: float) -> FloatArray:
    """sum_t discount^t psi(x_t, a_t) of every episode: (episodes x costs)."""
    totals = np.zeros((len(demos), costs.num_costs))
    times, states = demos.step_times, demos.step_states
    episodes = np.repeat(np.arange(len(demos)), demos.lengths)
    for first in range(0, states.size, COST_BLOCK):
        part = slice(first, first + COST_BLOCK)
        values = costs.at(states[part], demos.actions[part])
        weighed = discount ** times[part].astype(float)[:, np.newaxis] * values
        np.add.at(totals, episodes[part], weighed)
    return totals


@dataclass(frozen=True, eq=False)
class QuadraticValues:
    """V(x) = level + (1, p, p p')(x) coefficients, p the costs of x averaged over actions.

    Values are cut to `horizon` times the ranges of the costs: no tail costs more or less.
    """

    costs: CostFunctions
    num_actions: int
    coefficients: FloatArray
    level: FloatArray | float = 0.0
    horizon: float = np.inf

    def at(self, states: IntArray) -> FloatArray:
        """(states x costs)."""
        values = self.level + quadratic(self.costs, self.num_actions, states) @ self.coefficients
        if not np.isfinite(self.horizon):
            return np.asarray(values)
        return np.clip(values, self.costs.lowest * self.horizon, self.costs.highest * self.horizon)


def quadratic(costs: CostFunctions, num_actions: int, states: IntArray) -> FloatArray:
    """(states x features): one, the mean costs of every state, and their products."""
    found = [costs.at(states, np.full(states.size, action)) for action in range(num_actions)]
    mean = np.mean(found, axis=0)
    left, right = np.triu_indices(costs.num_costs)
    return np.column_stack([np.ones(states.size), mean, mean[:, left] * mean[:, right]])


def blended_totals(
    demos: Demonstrations, plain: FloatArray, costs: CostFunctions, world: AnyWorld
) -> FloatArray:
    """Completed plain totals less as much of the world's noise as pays, (episodes x costs)."""
    completed = plain + _tails(demos, costs, world, fitted(demos, costs, world))
    if len(demos) < 2 or not hasattr(world, "successors"):
        return completed
    noise = np.empty_like(plain)
    for half, values, shaped in halves(demos, costs, cast(LargeWorld, world)):
        noise[half] = plain[half] + _tails(demos.subset(half), costs, world, values) - shaped
    nothing = np.zeros(plain.shape[1])
    beta = coefficients(completed, noise, np.arange(len(demos)) % 2, nothing)
    return np.asarray(completed - beta * noise)


def halves(
    demos: Demonstrations, costs: CostFunctions, world: LargeWorld
) -> Iterator[tuple[IntArray, QuadraticValues, FloatArray]]:
    """Episodes of each half, the values from the other one, and M."""
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(STREAM,)))
    starts = np.asarray(world.draw_initial(rng, STARTS))
    halves = np.arange(len(demos)) % 2
    for half in (0, 1):
        values = fitted(demos.subset(np.flatnonzero(halves != half)), costs, world)
        mine = np.flatnonzero(halves == half)
        part = demos.subset(mine)
        stood = world.discount ** part.lengths[:, np.newaxis] * values.at(part.last_states)
        known = _tails(part, costs, world, values) - stood
        shaped = _totals(part, costs, world, values) + known
        yield mine, values, shaped + values.at(starts).mean(axis=0)


def _tails(
    demos: Demonstrations, costs: CostFunctions, world: AnyWorld, values: QuadraticValues
) -> FloatArray:
    """What follows each record: the known tail, or the values of its last state."""
    known, resting = _resting(demos, costs, world)
    worth = np.where(known[:, np.newaxis], resting, values.at(demos.last_states))
    return np.asarray(world.discount ** demos.lengths[:, np.newaxis] * worth)


def _resting(
    demos: Demonstrations, costs: CostFunctions, world: AnyWorld
) -> tuple[BoolArray, FloatArray]:
    """Terminated episodes whose last state costs the same under all actions, and its total."""
    ends = demos.last_states
    each = [costs.at(ends, np.full(ends.size, action)) for action in range(world.num_actions)]
    same = np.all([(one == each[0]).all(axis=1) for one in each], axis=0)
    return demos.terminated & same, each[0] * effective_horizon_of(world)


def fitted(demos: Demonstrations, costs: CostFunctions, world: AnyWorld) -> QuadraticValues:
    """Least squares on what was paid from each state to the end of its record and V behind it.

        sum_t f_t (V_t - paid_t - discount^(T-t) V_T) + r w = 0,       V = level + f' w

    where f are the features of a state, the level is the mean cost of a step times the horizon, and
    the ridge r falls with the square of steps per feature: few records give little but the level.
    Steps whose record goes on for long enough take part, if there are any; otherwise those with at
    least half of the longest rest.
    """
    states, actions = demos.step_states, demos.actions
    now = costs.at(states, actions)
    paid = _paid_from(demos, now, world.discount)
    left = np.repeat(demos.lengths, demos.lengths) - demos.step_times
    enough = world.discount**left <= TAIL
    used = np.flatnonzero(enough if enough.any() else 2 * left >= left.max())
    known, resting = _resting(demos, costs, world)
    ends = quadratic(costs, world.num_actions, demos.last_states)
    ends[known] = 0.0
    horizon = effective_horizon_of(world)
    level = now.mean(axis=0) * horizon
    behind = np.where(known[:, np.newaxis], resting, level)
    size = ends.shape[1]
    gram, right = np.zeros((size, size)), np.zeros((size, costs.num_costs))
    system = np.zeros((size, size))
    for first in range(0, used.size, BLOCK):
        part = used[first : first + BLOCK]
        design = quadratic(costs, world.num_actions, states[part])
        episodes = demos.step_episodes[part]
        ahead = world.discount ** left[part][:, np.newaxis]
        gram += design.T @ design
        system -= design.T @ (ahead * ends[episodes])
        right += design.T @ (paid[part] + ahead * behind[episodes] - level)
    strength = RIDGE + (size / used.size) ** 2
    system += gram
    system[np.diag_indices_from(system)] += strength * np.diag(gram) + RIDGE * np.trace(gram) / size
    fit = np.linalg.lstsq(system, right, rcond=None)[0]
    weights = np.asarray(fit, dtype=float)
    return QuadraticValues(costs, world.num_actions, weights, level, horizon)


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
