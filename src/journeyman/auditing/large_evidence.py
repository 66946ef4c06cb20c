"""Bets against the laws of a large world once more, draw after draw.

Steps are bet on as everywhere (`premises`), with the laws of the visited pairs only. Starts are bet
on as single states, and in blocks: among M states drawn from the initial law, sorted by number or
by probability with ties by lot, the k-th start falls into a block of m_b gaps with probability
(m_b + starts there so far)/(M + k), and the bet holds (kappa m_b/(M + 1) + starts there so far)
/(kappa + k - 1).
"""

import math
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.auditing import protocol
from journeyman.auditing.large_inputs import Walked
from journeyman.auditing.premises import Draws, log_evidence_of, log_mean, rank
from journeyman.auditing.tables import Floats, Ints


def log_evidence_of_steps(world: Any, record: Walked) -> float:
    """log E against the transition law."""
    first = slice(0, protocol.TESTED_STEPS)
    states, actions, after = record.states[first], record.actions[first], record.following[first]
    keys, row = np.unique(np.stack([states, actions]), axis=1, return_inverse=True)
    ids, laws = (np.asarray(part) for part in world.successors(*np.ascontiguousarray(keys)))
    reached = np.unique(ids)
    places = np.arange(len(ids)).repeat(ids.shape[1]), np.searchsorted(reached, ids.ravel())
    shape = (len(ids), reached.size)
    matrix = sparse.coo_array((laws.ravel(), places), shape=shape).tocsr()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return log_evidence_of(Draws.of(matrix, np.ravel(row), np.searchsorted(reached, after)))


def log_evidence_of_starts(world: Any, starts: Ints) -> float:
    """log E against the initial law."""
    single = [_on_states(world, starts, kappa) for kappa in protocol.CONCENTRATIONS]
    sequence = np.random.SeedSequence(0, spawn_key=(protocol.STARTS_STREAM,))
    rng, count = np.random.default_rng(sequence), protocol.COMPARED_STARTS
    drawn = np.asarray(world.draw_initial(rng, count))
    in_blocks = []
    for figure in (lambda states: states, world.initial_probability):
        lots = rng.random(count + starts.size)
        before = _drawn_before(np.asarray(figure(drawn)), np.asarray(figure(starts)), lots)
        for number in protocol.START_BLOCKS:
            label = np.arange(count + 1) * number // (count + 1)
            sizes = np.bincount(label).astype(float)
            in_blocks += [
                _on_blocks(sizes, label[before], kappa) for kappa in protocol.CONCENTRATIONS
            ]
    return log_mean([log_mean(single), log_mean(in_blocks)])


def _on_states(world: Any, starts: Ints, kappa: float) -> float:
    law = np.asarray(world.initial_probability(starts), dtype=float)
    gain = np.log1p(rank(starts) / (kappa * law)) - np.log1p(np.arange(starts.size) / kappa)
    return math.fsum(gain)


def _on_blocks(sizes: Floats, block: Ints, kappa: float) -> float:
    """Log wealth against an urn, start by start."""
    seen, past, all_of_them = rank(block), np.arange(block.size), sizes.sum()
    urn = (sizes[block] + seen) / (all_of_them + past)
    held = (kappa * sizes[block] / all_of_them + seen) / (kappa + past)
    return math.fsum(np.log(held) - np.log(urn))


def _drawn_before(drawn: Any, starts: Any, lots: Floats) -> Ints:
    """How many of the drawn lie before each start."""
    figures = np.concatenate([drawn, starts])
    order = np.lexsort((lots, figures))
    is_drawn = np.zeros(order.size, dtype=np.int64)
    is_drawn[: drawn.size] = 1
    place = np.argsort(order, kind="stable")
    return np.cumsum(is_drawn[order])[place][drawn.size :]
