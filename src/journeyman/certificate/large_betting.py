"""Bets against the laws of a world too large to enumerate, as in `betting`; exact as well.

*Starts*. rows(kappa) needs the initial probability of starts that were seen, no others. In a
diffuse law no start is seen twice; there the blocks of `betting` would need the mass of regions,
which nobody knows. So n starts are compared with M states drawn from the law: all are sorted by a
figure (the state's number, or its initial probability; ties by lot), and the M + 1 gaps between
the drawn ones are put into blocks of m_b neighbouring gaps. If starts follow the law, all orders
are equally likely, and the blocks into which starts fall are Polya's urn:

    P(block b | the past) = (m_b + starts in b so far)/(M + 1 + starts so far)
    q(block b | the past) = (kappa m_b/(M + 1) + starts in b so far)/(kappa + starts so far)

The wealth of q against P is a quotient of two Dirichlet-multinomial likelihoods.

*Steps*. The laws of the pairs that were visited are asked for, and bet against as in `betting`.

*Guarantee*: each wealth has mean one under a true premise, for every number of samples, so a mean
of them reaches 1/level with probability `level` at most. The states drawn for comparison have a
stream of their own.

*Reference*: Vovk, Nouretdinov, Gammerman, "Testing exchangeability on-line", ICML (2003).
"""

import math
from typing import Protocol

import numpy as np
from scipy import sparse, special

from journeyman.arrays import FloatArray, IntArray
from journeyman.certificate.betting import (
    CONCENTRATIONS,
    START_BLOCKS,
    WRONG_SHARES,
    Tally,
    bets_on_counts,
    bets_on_temper,
)
from journeyman.world.large_world import LargeWorld, successor_laws

COMPARED = 1 << 13
"""M: states drawn from the initial law to compare starts with."""
MOST_STEPS = 1 << 16
"""Steps that are bet on: the first ones of the record."""
STREAM = 0x6C737472
"""Which stream the compared states are drawn from."""


class InitialLaw(Protocol):
    """What is asked about starts."""

    def draw_initial(self, rng: np.random.Generator, count: int) -> IntArray: ...

    def initial_probability(self, states: IntArray) -> FloatArray: ...


def start_evidence(world: InitialLaw, starts: IntArray) -> tuple[str, float]:
    """What is most out of line in words, and log E; every start must be possible."""
    found = [(_seen_starts(world, starts, kappa), "single states") for kappa in CONCENTRATIONS]
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(STREAM,)))
    drawn = np.asarray(world.draw_initial(rng, COMPARED))
    regions = []
    for figure, by in ((_number, "number"), (world.initial_probability, "initial probability")):
        order = gaps(np.asarray(figure(drawn)), np.asarray(figure(starts)), rng)
        for num_blocks in START_BLOCKS:
            sizes, counts = block_counts(order, COMPARED, num_blocks)
            words = f"{num_blocks} blocks by {by}; {_most_out_of_line(sizes, counts)}"
            regions += [(urn_wealth(sizes, counts, kappa), words) for kappa in CONCENTRATIONS]
    _, words = max(found + regions)
    means = [_log_mean([wealth for wealth, _ in family]) for family in (found, regions)]
    return words, _log_mean(means)


def step_evidence(
    world: LargeWorld, states: IntArray, actions: IntArray, following: IntArray
) -> tuple[str, float]:
    """What is most out of line in words, and log E; every step must be possible."""
    pairs, rows = np.unique(np.column_stack([states, actions]), axis=0, return_inverse=True)
    laws = successor_laws(
        world, np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    )
    reached, places = np.unique(laws.states, return_inverse=True)
    shape, width = (len(pairs), reached.size), laws.states.shape[1]
    matrix = sparse.csr_array(
        (np.ravel(laws.probabilities), (np.repeat(np.arange(len(pairs)), width), places.ravel())),
        shape=shape,
    )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    tally = Tally.of(matrix, rows.ravel(), np.searchsorted(reached, following))
    counts = [bet for kappa in CONCENTRATIONS for bet in bets_on_counts(tally, kappa, WRONG_SHARES)]
    tempers = bets_on_temper(tally)
    strongest = max(counts + tempers, key=lambda bet: bet.log_wealth)
    row, outcome, frequencies = strongest.most_out_of_line()
    state, action = (int(part) for part in pairs[row])
    words = f"{strongest.tendency}most out of line is state {state}, action {action} to state "
    families = [[bet.log_wealth for bet in family] for family in (counts, tempers)]
    return (
        f"{words}{reached[outcome]}: {frequencies}",
        _log_mean([_log_mean(family) for family in families]),
    )


def gaps(drawn: FloatArray, starts: FloatArray, rng: np.random.Generator) -> IntArray:
    """How many of `drawn` lie before each start, ties broken by lot.

    >>> gaps(np.array([5, 1, 3]), np.array([4, 0, 9]), np.random.default_rng(0)).tolist()
    [2, 0, 3]
    """
    figures, lots = np.concatenate([drawn, starts]), rng.random(drawn.size + starts.size)
    order = np.lexsort((lots, figures))
    before = np.empty(order.size, dtype=np.int64)
    before[order] = np.cumsum(order < drawn.size)
    return before[drawn.size :]


def block_counts(order: IntArray, num_drawn: int, num_blocks: int) -> tuple[FloatArray, FloatArray]:
    """m_b, and the starts in each block of gaps."""
    block = np.arange(num_drawn + 1) * num_blocks // (num_drawn + 1)
    sizes, counts = np.bincount(block), np.bincount(block[order], minlength=num_blocks)
    return sizes.astype(float), counts.astype(float)


def urn_wealth(sizes: FloatArray, counts: FloatArray, concentration: float) -> float:
    """Log wealth of q against P."""
    imagined = concentration * sizes / sizes.sum()
    return _log_likelihood(imagined, counts) - _log_likelihood(sizes, counts)


def _log_likelihood(imagined: FloatArray, counts: FloatArray) -> float:
    """Of a sequence with these counts from a Dirichlet-multinomial."""
    whole, number = imagined.sum(), counts.sum()
    blocks = special.gammaln(imagined + counts) - special.gammaln(imagined)
    return float(blocks.sum() - special.gammaln(whole + number) + special.gammaln(whole))


def _seen_starts(world: InitialLaw, starts: IntArray, concentration: float) -> float:
    """Log wealth of rows(concentration): only starts that were seen enter."""
    seen, counts = np.unique(starts, return_counts=True)
    law = concentration * np.asarray(world.initial_probability(seen), dtype=float)
    rising = special.gammaln(law + counts) - special.gammaln(law + 1)
    cells = rising - (counts - 1) * np.log(law)
    whole = special.gammaln(concentration + starts.size) - special.gammaln(concentration + 1)
    return float(cells.sum() - whole + (starts.size - 1) * math.log(concentration))


def _number(states: IntArray) -> IntArray:
    return states


def _most_out_of_line(sizes: FloatArray, counts: FloatArray) -> str:
    expected = counts.sum() * sizes / sizes.sum()
    worst = int(np.argmax(np.abs(counts - expected) / np.sqrt(expected)))
    return (
        f"most out of line is block {worst}, with {int(counts[worst])} of {int(counts.sum())} "
        f"starts, {expected[worst]:.3g} expected"
    )


def _log_mean(logs: list[float]) -> float:
    return float(special.logsumexp(logs) - math.log(len(logs)))
