"""Testing a law by betting against it: exact for every number of draws.

A bet multiplies a wealth of one by q(x)/P(x) at every draw x, where q is a law that is fixed before
the draw:

    rows(kappa)         q = (count of x so far + kappa P(x)) / (visits so far + kappa), pair by pair
    rows(kappa, share)  the product over pairs of 1 - share + share * (wealth of the pair's own bet)
    temper(beta)        q = P^beta / sum_y P(y)^beta, for all pairs together
    blocks(n, kappa)    rows(kappa) for first states, sorted into n blocks of states

The *e-value* E is a mean of their wealths. Shares are for worlds wrong in few pairs, beta is for
worlds with more or less chance than P in all of them, blocks are for starts in another region. The
wealth of rows(kappa) depends on counts only: with c(x) draws of x among n,

    log wealth = sum_x r(kappa P(x), c(x)) - r(kappa, n),     r(a, c) = sum_{i<c} log(1 + i/a)
                                         = lgamma(a + c) - lgamma(a + 1) - (c - 1) log a

*Guarantee*: exact for every number of samples and for experts that depend on all of the past,
earlier episodes included. Given the past and the action, x_{t+1} has law P(. | x_t, a_t), so
q(x)/P(x) has mean sum_x q(x) = 1 and wealth is a nonnegative martingale, also in a record that
stops when its past says so. Ville: P(E >= 1/level) <= level under a true premise.

*Cost*: sorting the steps; then, per bet, a pass over the distinct (pair, next state) that were seen
and the rows of P behind them.

*Reference*: Ville (1939); Shafer, "Testing by betting", JRSS A 184 (2021); Ramdas, Grunwald, Vovk,
Shafer, "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38 (2023).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse, special

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.demonstrations import Demonstrations
from journeyman.world import World

CONCENTRATIONS = (1.0, 10.0, 100.0, 1e3, 1e4)
"""kappa: how many imagined draws from P stand against the counts."""
WRONG_SHARES = (1.0, 1e-2, 1e-4)
"""Which share of the pairs is supposed to be wrong."""
TEMPERS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0)
"""beta: below one for worlds with more chance than P, above one for those with less."""
START_BLOCKS = (4, 32, 256)
"""Numbers of blocks, of about equal initial probability and consecutive ids."""


@dataclass(frozen=True, eq=False)
class Tally:
    """How often some of the `laws`, the rows of a matrix, led where.

    Only cells (row, outcome) that were seen are kept; `positions[k]` is the place of cell k's row
    in `rows`, the distinct rows that were drawn from.
    """

    laws: SparseMatrix
    rows: IntArray
    positions: IntArray
    outcomes: IntArray
    counts: FloatArray
    probabilities: FloatArray

    @classmethod
    def of(cls, laws: SparseMatrix, drawn_rows: IntArray, drawn: IntArray) -> Self:
        cells, counts = np.unique(drawn_rows * laws.shape[1] + drawn, return_counts=True)
        cell_rows, outcomes = np.divmod(cells, laws.shape[1])
        rows, positions = np.unique(cell_rows, return_inverse=True)
        probabilities = np.asarray(laws[cell_rows, outcomes]).ravel()
        return cls(laws, rows, positions, outcomes, counts.astype(float), probabilities)

    @cached_property
    def draws(self) -> FloatArray:
        """How often each of `rows` was drawn from."""
        return self.per_row(self.counts)

    def per_row(self, values: FloatArray) -> FloatArray:
        """Totals over the cells of each row."""
        return np.bincount(self.positions, values, minlength=self.rows.size).astype(float)

    def against_counts(self, concentration: float) -> FloatArray:
        """Log wealth of rows(concentration), row by row."""
        cells = _log_rising(concentration * self.probabilities, self.counts)
        return self.per_row(cells) - _log_rising(np.float64(concentration), self.draws)

    def against_temper(self, exponent: float) -> FloatArray:
        """Log wealth of temper(exponent), row by row."""
        laws = self.laws[self.rows]
        totals = np.add.reduceat(laws.data**exponent, laws.indptr[:-1])
        cells = self.per_row(self.counts * np.log(self.probabilities))
        return np.asarray((exponent - 1) * cells - self.draws * np.log(totals))


def _log_rising(start: FloatArray | np.float64, count: FloatArray) -> FloatArray:
    """r(a, c) of the module's docstring, zero for c = 1 to the last bit."""
    distance = special.gammaln(start + count) - special.gammaln(start + 1)
    return np.asarray(distance - (count - 1) * np.log(start))


@dataclass(frozen=True, eq=False)
class Bet:
    """One way to bet against the laws: the log of its wealth, and of each row's own."""

    tally: Tally
    log_wealth: float
    log_wealth_per_row: FloatArray
    tendency: str = ""
    """What all rows have in common if the bet is won, in words."""

    def most_out_of_line(self) -> tuple[int, int, str]:
        """The row that wins most, and its outcome with most |count - expected|/sqrt(expected)."""
        tally, place = self.tally, int(np.argmax(self.log_wealth_per_row))
        row = int(tally.rows[place])
        law = tally.laws[[row]]
        mine = tally.positions == place
        counts = np.zeros(law.nnz)
        counts[np.searchsorted(law.indices, tally.outcomes[mine])] = tally.counts[mine]
        expected = tally.draws[place] * law.data
        worst = int(np.argmax(np.abs(counts - expected) / np.sqrt(expected)))
        seen, draws = int(counts[worst]), int(tally.draws[place])
        frequencies = f"frequency {seen / draws:.3g}, expected {law.data[worst]:.3g}"
        return row, int(law.indices[worst]), f"{seen} of {draws} draws, {frequencies}"


def step_evidence(world: World, demos: Demonstrations) -> tuple[Bet, float]:
    """The strongest bet against the transition law, and log E of all."""
    tally = Tally.of(world.transition, demos.pairs_in(world), demos.next_states)
    rows = [bet for kappa in CONCENTRATIONS for bet in bets_on_counts(tally, kappa, WRONG_SHARES)]
    return _together(rows, bets_on_temper(tally))


def start_evidence(world: World, demos: Demonstrations) -> tuple[Bet, float]:
    """The strongest bet against the initial law, and log E of all; every start must be possible."""
    blocks = [_blocks(world.initial, number) for number in START_BLOCKS]
    tallies = [
        _start_tally(world.initial, block, demos.first_states)
        for block in (np.arange(world.num_states), *blocks)
    ]
    choices = [(tally, kappa) for tally in tallies for kappa in CONCENTRATIONS]
    counts = [bet for choice in choices for bet in bets_on_counts(*choice, shares=(1.0,))]
    return _together(counts, bets_on_temper(tallies[0]))


def _start_tally(initial: FloatArray, block: IntArray, starts: IntArray) -> Tally:
    law = sparse.csr_array(np.bincount(block, initial, minlength=initial.size)[np.newaxis])
    return Tally.of(law, np.zeros_like(starts), block[starts])


def _blocks(initial: FloatArray, num_blocks: int) -> IntArray:
    """The first state of the block in which each state lies."""
    centres = np.cumsum(initial) - initial / 2
    labels = np.floor(centres * num_blocks)
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[place])


def bets_on_counts(tally: Tally, concentration: float, shares: Iterable[float]) -> list[Bet]:
    per_row = tally.against_counts(concentration)
    bets = []
    for share in shares:
        kept = per_row + math.log(share)
        mixed = kept if share == 1 else np.logaddexp(math.log1p(-share), kept)
        bets.append(Bet(tally, float(mixed.sum()), per_row))
    return bets


def bets_on_temper(tally: Tally) -> list[Bet]:
    bets = []
    for exponent in TEMPERS:
        per_row = tally.against_temper(exponent)
        tendency = f"unlikely states come too {'rarely' if exponent > 1 else 'often'}; "
        bets.append(Bet(tally, float(per_row.sum()), per_row, tendency))
    return bets


def _together(*families: list[Bet]) -> tuple[Bet, float]:
    """The strongest bet, and the log of the mean wealth when each family is given as much."""
    means = [
        special.logsumexp([bet.log_wealth for bet in family]) - math.log(len(family))
        for family in families
    ]
    strongest = max((bet for family in families for bet in family), key=lambda bet: bet.log_wealth)
    return strongest, float(special.logsumexp(means) - math.log(len(families)))
