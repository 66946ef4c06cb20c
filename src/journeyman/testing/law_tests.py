"""Whether draws follow the law they are said to follow, by exact tests that hardly ever err.

A sound world is refused with probability `LEVEL` per test at most: binomial tails for outcomes that
were chosen before the draws that are counted, Markov's inequality for laws that are too thin to
show an outcome twice.
"""

import math

import numpy as np
from scipy import special

from journeyman.arrays import FloatArray, IntArray
from journeyman.errors import InvalidWorld
from journeyman.testing import world_questions as ask
from journeyman.world.large_world import AnyWorld

LEVEL = 1e-6
"""Probability that one of the tests refuses a sound law."""
MOST_OUTCOMES = 20
"""How many of the most frequent outcomes are counted."""
MASS_TOLERANCE = 1e-9
ONE_LAW = "Let draw_initial and initial_probability speak of one law, which sums to 1"


def check_initial_law(world: AnyWorld, probes: int, seeds: list[int]) -> None:
    """Draws and probabilities of the first state describe one law."""
    for count in (0, 1):
        ask.initial_probability(world, ask.draw_initial(world, seeds[0], count))
    first, second = (ask.draw_initial(world, seed, probes) for seed in seeds[:2])
    if not np.array_equal(first, ask.draw_initial(world, seeds[0], probes)):
        raise InvalidWorld(
            "draw_initial gives other states for the same seed",
            "Draw from the generator it is given, and from nothing else",
        )
    states, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    law = ask.initial_probability(world, states)
    if not law.all():
        state = states[int(np.argmin(law))]
        raise InvalidWorld(
            f"state {state} was drawn as first state, its initial_probability is 0", ONE_LAW
        )
    if law.sum() > 1 + MASS_TOLERANCE:
        raise InvalidWorld(
            f"initial_probability of {states.size} states sums to {law.sum()}, more than 1", ONE_LAW
        )
    if np.array_equal(first, second) and np.log(law[places[:probes]]).sum() < math.log(LEVEL):
        raise InvalidWorld(
            "draw_initial gives the same states for different seeds",
            "Draw from the generator it is given",
        )
    _check_thin_law(world, law[places], seeds[2])
    _check_frequencies(states, law, places[:probes], places[probes:])


def _check_frequencies(
    states: IntArray, law: FloatArray, first: IntArray, second: IntArray
) -> None:
    """States that were frequent among the first draws are as frequent as said among the second."""
    counts = np.bincount(first, minlength=states.size)
    chosen = np.argsort(-counts, kind="stable")[: min(MOST_OUTCOMES, np.count_nonzero(counts))]
    hits = np.bincount(second, minlength=states.size)[chosen]
    found = surprise(hits, law[chosen], second.size)
    if found is not None:
        raise InvalidWorld(
            f"state {states[chosen[found]]} was drawn {hits[found]} times of {second.size} as "
            f"first state, its initial_probability is {law[chosen[found]]:.6g}",
            ONE_LAW,
        )


def surprise(hits: IntArray, law: FloatArray, draws: int) -> int | None:
    """The outcome whose number of hits is the least likely, if it is too unlikely to believe."""
    expected = np.minimum(law, 1.0)
    below = special.bdtr(hits, draws, expected)
    above = special.bdtrc(hits - 1.0, draws, expected)
    tails = 2 * np.minimum(below, above) * hits.size
    return int(np.argmin(tails)) if (tails < LEVEL).any() else None


def _check_thin_law(world: AnyWorld, of_draws: FloatArray, seed: int) -> None:
    """E[1/(N p(x))] <= 1 over draws x ~ p, and E[N p(x)] <= 1 over uniform states x of N."""
    size = float(world.num_states)
    anywhere = np.random.default_rng(seed).integers(world.num_states, size=of_draws.size)
    of_any = ask.initial_probability(world, anywhere)
    too_small = (1 / (size * of_draws)).mean() * LEVEL > 1
    if too_small or (size * of_any).mean() * LEVEL > 1:
        raise InvalidWorld(
            f"initial_probability is too {'small' if too_small else 'large'} to sum to 1 over "
            f"{world.num_states} states",
            ONE_LAW,
        )
