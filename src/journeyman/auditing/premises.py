"""The tests of the premises once more, bet after bet.

The certificate computes the wealth of a bet from counts and gamma functions; here every draw is
bet on in its turn. Before its k-th draw of a law the bet rows(kappa) holds
q(x) = (draws of x so far + kappa P(x))/(k - 1 + kappa), and its wealth is multiplied by q(x)/P(x).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from journeyman.auditing import protocol
from journeyman.auditing.inputs import Records, World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from the rows of a matrix of laws, in the order in which they happened."""

    laws: Any
    row: Ints
    outcome: Ints
    probability: Floats

    @classmethod
    def of(cls, laws: Any, row: Ints, outcome: Ints) -> "Draws":
        return cls(laws, row, outcome, np.asarray(laws[row, outcome]).ravel())

    def on_counts(self, kappa: float) -> Floats:
        """Log wealth of rows(kappa), for every row that was drawn from."""
        before = rank(self.row)
        seen = rank(self.row * self.laws.shape[1] + self.outcome)
        gain = np.log1p(seen / (kappa * self.probability)) - np.log1p(before / kappa)
        _, place = np.unique(self.row, return_inverse=True)
        return np.bincount(place, gain).astype(float)

    def on_temper(self, beta: float) -> float:
        """Log wealth of a bet on P^beta, made a law."""
        law_of = np.arange(self.laws.shape[0]).repeat(np.diff(self.laws.indptr))
        totals = np.bincount(law_of, self.laws.data**beta)
        gain = (beta - 1) * np.log(self.probability) - np.log(totals[self.row])
        return math.fsum(gain)


def rank(labels: Ints) -> Ints:
    """How often each entry's label occurred before it."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    fresh = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    ranks = np.arange(labels.size) - fresh.repeat(np.diff(np.append(fresh, labels.size)))
    found = np.empty_like(ranks)
    found[order] = ranks
    return found


def log_evidence_of_steps(world: World, records: Records) -> float:
    """log E against the transition law."""
    return log_evidence_of(Draws.of(world.rows, records.pair, records.next_state))


def log_evidence_of(draws: Draws) -> float:
    """log E against the laws of many rows."""
    on_rows = []
    for kappa in protocol.CONCENTRATIONS:
        wealth = draws.on_counts(kappa)
        for share in protocol.WRONG_SHARES:
            mixed = wealth if share == 1 else _mixed(wealth, share)
            on_rows.append(math.fsum(mixed))
    return log_mean([log_mean(on_rows), log_mean([draws.on_temper(b) for b in protocol.TEMPERS])])


def log_evidence_of_starts(world: World, records: Records) -> float:
    """log E against the initial law; infinite when a start was impossible."""
    if (world.initial[records.starts] <= 0).any():
        return math.inf
    labels = [np.arange(world.num_states)]
    labels += [_blocks(world.initial, number) for number in protocol.START_BLOCKS]
    every = [_start_draws(world, label, records.starts) for label in labels]
    on_counts = [
        math.fsum(draws.on_counts(kappa)) for draws in every for kappa in protocol.CONCENTRATIONS
    ]
    return log_mean(
        [log_mean(on_counts), log_mean([every[0].on_temper(b) for b in protocol.TEMPERS])]
    )


def _start_draws(world: World, label: Ints, starts: Ints) -> Draws:
    law = sparse.csr_array(np.bincount(label, world.initial)[np.newaxis])
    return Draws.of(law, np.zeros_like(starts), label[starts])


def _blocks(initial: Floats, number: int) -> Ints:
    """A number for every state: blocks of consecutive states of about equal probability."""
    middle = np.cumsum(initial) - initial / 2
    return np.unique(np.floor(middle * number), return_inverse=True)[1].astype(np.int64)


def _mixed(log_wealth: Floats, share: float) -> Floats:
    """log(1 - share + share wealth)."""
    return np.asarray(np.logaddexp(math.log1p(-share), math.log(share) + log_wealth))


def log_mean(logs: list[float]) -> float:
    """The log of the mean of numbers whose logs are given."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(one - top) for one in logs) / len(logs))
