"""Garnets: random worlds with a given branching factor, the usual test bed of planners.

Each pair leads to `branching` distinct states with probabilities from a uniformly cut stick. Costs
are random fields, one value in [0, 1] per state and cost.

Reference: Archibald, McKinnon, Thomas, "On the generation of Markov decision processes", 1995.
"""

import numpy as np
from scipy import sparse

from journeyman.arrays import Seed, generator
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery.example import Example, expert_of_hidden_cost
from journeyman.world import World


def garnet(
    num_states: int = 100,
    num_actions: int = 4,
    branching: int = 5,
    *,
    num_costs: int = 8,
    discount: float = 0.95,
    randomness: float = 0.3,
    seed: Seed = 0,
) -> Example:
    """A random world with uniform initial law.

    >>> world, basis, expert = garnet(20, 3, 2, num_costs=4)
    >>> world.num_pairs, world.transition.nnz
    (60, 120)
    """
    if not 1 <= branching <= num_states or num_actions < 1 or num_costs < 1:
        raise InvalidWorld(
            f"garnet({num_states}, {num_actions}, {branching}, num_costs={num_costs})",
            "Take at least one action and cost, and branching between 1 and the number of states",
        )
    rng = generator(seed)
    num_pairs = num_states * num_actions
    targets = _distinct_targets(rng, num_pairs, num_states, branching)
    cuts = np.sort(rng.random((num_pairs, branching - 1)), axis=1)
    edges = np.hstack([np.zeros((num_pairs, 1)), cuts, np.ones((num_pairs, 1))])
    parts = (np.diff(edges, axis=1).ravel(), targets.ravel(), np.arange(num_pairs + 1) * branching)
    world = World(
        sparse.csr_array(parts, shape=(num_pairs, num_states)),
        np.full(num_states, 1.0 / num_states),
        discount,
    )
    basis = CostBasis(rng.random((num_states, num_costs)))
    return Example(world, basis, expert_of_hidden_cost(world, basis, rng, randomness))


def _distinct_targets(
    rng: np.random.Generator, num_pairs: int, num_states: int, branching: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """`branching` different states per pair; rows with a repetition are drawn again."""
    if 4 * branching >= num_states:
        return np.array([rng.permutation(num_states)[:branching] for _ in range(num_pairs)])
    targets = rng.integers(num_states, size=(num_pairs, branching))
    while True:
        ordered = np.sort(targets, axis=1)
        repeated = (np.diff(ordered, axis=1) == 0).any(axis=1)
        if not repeated.any():
            return targets
        targets[repeated] = rng.integers(num_states, size=(int(repeated.sum()), branching))
