"""Policies cloned from records alone, so that every episode tests a policy that never saw it.

    episodes 1..n are dealt into K folds;   pi_k = fit(all episodes outside fold k)
    the policy: draw k with probability (size of fold k)/n where an episode starts, follow pi_k

`certify` compares every episode with the pi_k of its own fold. What is certified is that mixture,
never a policy fitted to all episodes: nothing here was held out from such a one.

With K folds the failure probability is divided by K, and every fold is a test of its own: two folds
have the tightest bound, more folds leave more episodes to fit to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    FloatArray,
    IntArray,
    assign,
    generator,
    plain_array,
    read_only,
    real_array,
    require_whole,
)
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.demonstrations.expectation import clone_visited_states
from journeyman.errors import InvalidDemonstrations, InvalidPolicy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.policy.observation_policy import NetworkPolicy, ObservationPolicy, forward, softmax

Fit: TypeAlias = Callable[[Demonstrations], Any]
"""From demonstrations to a policy with action probabilities (`policy.observation_policy`)."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CrossFitted(MixturePolicy):
    """The mixture of the policies of all folds, and which episodes each of them never saw."""

    demonstrations: Demonstrations
    folds: IntArray
    """Of every episode: the policy that was fitted without it."""

    def __init__(
        self, policies: list[Any], demonstrations: Demonstrations, folds: IntArray
    ) -> None:
        axes = demonstrations.states.ndim - 1
        weights = np.bincount(folds, minlength=len(policies)) / len(demonstrations)
        members = [ObservationPolicy(policy, axes) for policy in policies]
        super().__init__(members, weights, axes)
        assign(self, demonstrations=demonstrations, folds=read_only(folds.copy()))

    def __repr__(self) -> str:
        return f"CrossFitted({len(self.candidates)} folds of {self.demonstrations!r})"


def cross_fit(
    demonstrations: Demonstrations, fit: Fit | None = None, *, folds: int = 2, seed: int = 0
) -> CrossFitted:
    """A policy from records alone, ready to be certified on the same records.

    Args:
        demonstrations: all of them.
        fit: called with some of the demonstrations, returns a policy: anything that has action
            probabilities. By default action frequencies of visited states for ids, and
            `clone_observations` for observations. It must not look at other episodes.
        folds: K, from 2.
        seed: deals the episodes.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=40, horizon=60, seed=0)
    >>> policy = cross_fit(demos)
    >>> problem = jm.Apprenticeship(jm.world.Records(0.9, cost_range=(0, 1)), None, demos)
    >>> jm.certify(problem, policy).valid
    True
    """
    refusal = InvalidDemonstrations
    if not isinstance(demonstrations, Demonstrations):
        raise refusal(
            f"demonstrations is a {type(demonstrations).__name__}",
            "Give Demonstrations, such as jm.read_demonstrations(path)",
        )
    count = len(demonstrations)
    number = require_whole("folds", folds, 2, refusal)
    if number > count:
        raise refusal(f"{number} folds of {count} episodes", "Give fewer folds, or more episodes")
    dealt = generator(seed).permutation(np.arange(count) % number)
    chosen = default_fit(demonstrations) if fit is None else fit
    policies = [
        _fitted(chosen, demonstrations.subset(np.flatnonzero(dealt != k))) for k in range(number)
    ]
    return CrossFitted(policies, demonstrations, dealt)


def default_fit(demonstrations: Demonstrations) -> Fit:
    """A table for ids, a network for observations."""
    return clone_visited_states if demonstrations.has_ids else clone_observations


def _fitted(fit: Fit, part: Demonstrations) -> Any:
    policy = fit(part)
    if policy is None:
        raise InvalidPolicy("fit returned nothing", "Return the policy that was fitted")
    return policy


RATE, DECAYS, BATCH = 5e-3, (0.9, 0.999), 64
"""Of Adam, Kingma and Ba (2015)."""
PASSES, UPDATES, MOST_PASSES = 20, 5000, 300
"""Over the records by default: fewer updates leave a network of few records with boundaries between
actions that are still too flat; more passes than the most learn the noise of an expert who draws.
"""


def clone_observations(
    demos: Demonstrations,
    *,
    hidden: int = 64,
    passes: int | None = None,
    greedy: bool = True,
    seed: int = 0,
) -> NetworkPolicy:
    """A small network fitted to the recorded actions by maximum likelihood.

        maximise   sum over recorded steps of log pi(a_t | x_t)

    by Adam with a falling learning rate. With `greedy` it takes its likeliest action, which agrees
    with an expert most often, whatever the expert draws. `drawing` of the result is the same
    network with actions drawn from pi, which does not get stuck where its likeliest action is
    wrong.

    Args:
        demos: observations, with numbered actions (`listed_actions` for continuous ones).
        hidden: units in each of the two layers.
        passes: over the records; by default 20, and more of few records, until there are 5,000
            updates or 300 passes.
        greedy: take the likeliest action.
        seed: of the first weights and the order of the steps.

    *Cost*: passes x steps x (hidden^2 + hidden numbers); a second for 1,000 to 15,000 steps.
    """
    require_whole("hidden", hidden, 1, InvalidDemonstrations)
    if passes is not None:
        require_whole("passes", passes, 1, InvalidDemonstrations)
    rng, states = generator(seed), demos.step_states
    rows = states.reshape(len(states), -1).astype(np.float64)
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    rows, actions = (rows - mean) / scale, demos.actions
    if actions.min() < 0:
        raise InvalidDemonstrations("an action is below 0", "Number actions from 0")
    widths = [rows.shape[1], hidden, hidden, int(actions.max()) + 1]
    layers: list[FloatArray] = []
    for before, after in pairwise(widths):
        layers += [rng.normal(0, 1 / np.sqrt(before), (before, after)), np.zeros(after)]
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in layers]
    batches = max(1, -(-len(rows) // BATCH))
    if passes is None:
        passes = min(max(PASSES, -(-UPDATES // batches)), MOST_PASSES)
    steps = passes * batches
    for step in range(steps):
        if step % batches == 0:
            order = rng.permutation(len(rows))
        chosen = order[(step % batches) * BATCH :][:BATCH]
        slopes = _slopes(tuple(layers), rows[chosen], actions[chosen])
        rate = RATE * (1 - step / steps)
        for place, slope in enumerate(slopes):
            first, second = moments[place]
            first += (1 - DECAYS[0]) * (slope - first)
            second += (1 - DECAYS[1]) * (slope**2 - second)
            sizes = np.sqrt(second / (1 - DECAYS[1] ** (step + 1))) + 1e-8
            layers[place] -= rate * first / (1 - DECAYS[0] ** (step + 1)) / sizes
    return NetworkPolicy(
        tuple(layers), mean, scale, greedy=greedy, observation_axes=states.ndim - 1
    )


def _slopes(
    layers: tuple[FloatArray, ...], rows: FloatArray, actions: IntArray
) -> list[FloatArray]:
    """The gradient of the mean negative log-likelihood, layer by layer."""
    first, second, logits = forward(layers, rows)
    error = softmax(logits)
    error[np.arange(len(rows)), actions] -= 1.0
    error /= len(rows)
    to_second = (error @ layers[4].T) * (1 - second**2)
    to_first = (to_second @ layers[2].T) * (1 - first**2)
    return [
        rows.T @ to_first, to_first.sum(axis=0), first.T @ to_second, to_second.sum(axis=0),
        second.T @ error, error.sum(axis=0),
    ]  # fmt: skip


ROUNDS = 100
"""Of Lloyd's method at most."""


def listed_actions(actions: ArrayLike, number: int = 5) -> FloatArray:
    """A list of continuous actions that recorded ones are close to, for
    `GymnasiumSimulator(..., actions=...)`.

        minimise over lists of `number` actions   sum over recorded a of min_k |a - list_k|^2

    approximately, by Lloyd's method, each coordinate in units of its range. It begins with recorded
    actions that lie far apart. Every listed action is a mean of recorded ones, so it lies within
    bounds that those keep. Fewer different actions are all listed.

    Args:
        actions: recorded ones, (steps, ...), such as those of all episodes joined.
        number: of actions to list at most.

    Reference: Lloyd, "Least squares quantization in PCM", 1982.

    >>> listed_actions([[-1.0], [-0.9], [0.1], [0.9], [0.9], [0.9]], 2).round(2).tolist()
    [[-0.95], [0.7]]
    """
    refusal = InvalidDemonstrations
    given = plain_array("actions", actions, refusal)
    wanted = require_whole("number", number, 1, refusal)
    if given.ndim < 1 or not given.size:
        raise refusal("there are no actions", "Give the recorded actions, one row for each step")
    rows = real_array("actions", given.reshape(len(given), -1), ndim=2, refusal=refusal)
    width = np.ptp(rows, axis=0)
    units = rows / np.where(width > 0, width, 1.0)
    chosen = [int(np.argmax(((units - units.mean(axis=0)) ** 2).sum(axis=1)))]
    apart = ((units - units[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < wanted and apart.max() > 0:
        chosen.append(int(np.argmax(apart)))
        apart = np.minimum(apart, ((units - units[chosen[-1]]) ** 2).sum(axis=1))
    found = units[chosen]
    nearest = np.zeros(0, dtype=np.int64)
    for _ in range(ROUNDS):
        before = nearest
        squares = ((units[:, np.newaxis] - found) ** 2).sum(axis=2)
        nearest = squares.argmin(axis=1)
        if np.array_equal(nearest, before):
            break
        for k in np.unique(nearest):
            found[k] = units[nearest == k].mean(axis=0)
    means = [rows[nearest == k].mean(axis=0) for k in np.unique(nearest)]
    listed = np.clip(means, rows.min(axis=0), rows.max(axis=0))  # means are rounded
    return np.asarray(listed[np.lexsort(listed.T[::-1])].reshape(-1, *given.shape[1:]))
