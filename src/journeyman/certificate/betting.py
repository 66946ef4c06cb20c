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
and the rows of P behind them. `start_evidence_of_draws` and `step_evidence_of_laws` are the same in
a world that is not a list of states; `repetitions` bets on episodes that were copied.

*Reference*: Ville (1939); Shafer, "Testing by betting", JRSS A 184 (2021); Ramdas, Grunwald, Vovk,
Shafer, "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38 (2023).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from scipy import sparse, special

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.demonstrations import Demonstrations
from journeyman.world import World
from journeyman.world.large_world import LargeWorld, successor_laws

CONCENTRATIONS = (1.0, 10.0, 100.0, 1e3, 1e4)
"""kappa: how many imagined draws from P stand against the counts."""
WRONG_SHARES = (1.0, 1e-2, 1e-4)
"""Which share of the pairs is supposed to be wrong."""
TEMPERS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0)
"""beta: below one for worlds with more chance than P, above one for those with less."""
START_BLOCKS = (4, 32, 256)
"""Numbers of blocks, of about equal initial probability and consecutive ids."""
COMPARED = 1 << 13
"""M: states drawn from the initial law to compare starts with."""
MOST_STEPS = 1 << 16
"""Steps that are bet on: the first ones of the record."""
STREAM = 0x6C737472
"""Which stream the compared states are drawn from."""
SCALES = tuple(10.0**power for power in range(13))
"""kappa: about the square of the number of episodes in which a few copies are sought."""


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
        cells = log_rising(concentration * self.probabilities, self.counts)
        return self.per_row(cells) - log_rising(np.float64(concentration), self.draws)

    def against_temper(self, exponent: float) -> FloatArray:
        """Log wealth of temper(exponent), row by row."""
        laws = self.laws[self.rows]
        totals = np.add.reduceat(laws.data**exponent, laws.indptr[:-1])
        cells = self.per_row(self.counts * np.log(self.probabilities))
        return np.asarray((exponent - 1) * cells - self.draws * np.log(totals))


def log_rising(start: FloatArray | np.float64, count: FloatArray) -> FloatArray:
    """r(a, c) of the module's docstring, zero for c = 1 to the last bit."""
    distance = special.gammaln(start + count) - special.gammaln(start + 1)
    return np.asarray(distance - (count - 1) * np.log(start))


def log_mean(logs: list[float]) -> float:
    return float(special.logsumexp(logs) - math.log(len(logs)))


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
    return _against(Tally.of(world.transition, demos.pairs_in(world), demos.next_states))


def _against(tally: Tally) -> tuple[Bet, float]:
    """The strongest bet on steps, and log E of all."""
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
    means = [log_mean([bet.log_wealth for bet in family]) for family in families]
    strongest = max((bet for family in families for bet in family), key=lambda bet: bet.log_wealth)
    return strongest, log_mean(means)


class InitialLaw(Protocol):
    """What bets on starts need."""

    def draw_initial(self, rng: np.random.Generator, count: int) -> IntArray: ...

    def initial_probability(self, states: IntArray) -> FloatArray: ...


def start_evidence_of_draws(world: InitialLaw, starts: IntArray) -> tuple[str, float]:
    """What is most out of line in words, and log E; every start must be possible.

    rows(kappa) needs the initial probability of starts that were seen, no others. In a
    diffuse law no start is seen twice; there the blocks of `betting` would need the mass of
    regions, which nobody knows. So n starts are compared with M states drawn from the law: all are
    sorted by a number (the state's number, or its initial probability; ties by lot), and the M + 1
    gaps between the drawn ones are put into blocks of m_b neighbouring gaps. If starts follow the
    law, all orders are equally likely, and the blocks into which starts fall are Polya's urn:

        P(block b | the past) = (m_b + starts in b so far)/(M + 1 + starts so far)
        q(block b | the past) = (kappa m_b/(M + 1) + starts in b so far)/(kappa + starts so far)

    The wealth of q against P is a quotient of two Dirichlet-multinomial likelihoods.

    *Guarantee*: each wealth has mean one under a true premise, for every number of samples, so a
    mean of them reaches 1/level with probability `level` at most. The states drawn for comparison
    have a stream of their own.

    *Reference*: Vovk, Nouretdinov, Gammerman, "Testing exchangeability on-line", ICML (2003).
    """
    found = [(_seen_starts(world, starts, kappa), "single states") for kappa in CONCENTRATIONS]
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(STREAM,)))
    drawn = np.asarray(world.draw_initial(rng, COMPARED))
    regions = []
    for measured, by in (
        (np.asarray, "number"),
        (world.initial_probability, "initial probability"),
    ):
        order = gaps(np.asarray(measured(drawn)), np.asarray(measured(starts)), rng)
        for num_blocks in START_BLOCKS:
            sizes, counts = block_counts(order, COMPARED, num_blocks)
            words = f"{num_blocks} blocks by {by}; {_block_out_of_line(sizes, counts)}"
            regions += [(urn_wealth(sizes, counts, kappa), words) for kappa in CONCENTRATIONS]
    _, words = max(found + regions)
    means = [log_mean([wealth for wealth, _ in family]) for family in (found, regions)]
    return words, log_mean(means)


def step_evidence_of_laws(
    world: LargeWorld, states: IntArray, actions: IntArray, following: IntArray
) -> tuple[str, float]:
    """The same as `step_evidence` from the laws of the visited pairs alone: what is most out of
    line in words, and log E; every step must be possible."""
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
    strongest, log_value = _against(tally)
    row, outcome, frequencies = strongest.most_out_of_line()
    state, action = (int(part) for part in pairs[row])
    where = f"state {state}, action {action} to state {reached[outcome]}"
    return f"{strongest.tendency}most out of line is {where}: {frequencies}", log_value


def gaps(drawn: FloatArray, starts: FloatArray, rng: np.random.Generator) -> IntArray:
    """How many of `drawn` lie before each start, ties broken by lot.

    >>> gaps(np.array([5, 1, 3]), np.array([4, 0, 9]), np.random.default_rng(0)).tolist()
    [2, 0, 3]
    """
    values, lots = np.concatenate([drawn, starts]), rng.random(drawn.size + starts.size)
    order = np.lexsort((lots, values))
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
    whole = log_rising(np.float64(concentration), np.array([float(starts.size)]))
    return float(log_rising(law, counts.astype(float)).sum() - whole[0])


def _block_out_of_line(sizes: FloatArray, counts: FloatArray) -> str:
    expected = counts.sum() * sizes / sizes.sum()
    worst = int(np.argmax(np.abs(counts - expected) / np.sqrt(expected)))
    return (
        f"most out of line is block {worst}, with {int(counts[worst])} of {int(counts.sum())} "
        f"starts, {expected[worst]:.3g} expected"
    )


@dataclass(frozen=True)
class Repetitions:
    """What equal episodes of a record say."""

    log_value: float
    """log E."""
    log_twice: float
    """log E if every episode had been recorded twice."""
    num_episodes: int
    num_repeats: int
    """Episodes that equal an earlier one."""
    example: tuple[int, int, float] | None
    """Two equal episodes and log p of them: the least likely ones."""


def repetitions(demos: Demonstrations, log_chances: FloatArray) -> Repetitions:
    """The evidence of a record whose episodes have log p as given.

    Copies make a record look larger than it is: n episodes, each of them k times, have the radius
    of k n ones. Two episodes of a sound record are equal in all states and actions only by chance.
    Episode j comes after others; whatever its expert does and whenever it stops, the probability
    that it equals a given one, tau = (x_0, a_0, ..., x_T), is at most

        p(tau) = initial(x_0) prod_t P(x_{t+1} | x_t, a_t)

    for that probability is p(tau) times those of the actions and of the end, which are at most one.
    So each of these has a mean of at most one in a sound record, and so has their mean E:

        pairs         the mean over pairs of episodes of 1{they are equal}/p
        rows(kappa)   the product over episodes j = 0, 1, ... of (kappa + c_j/p_j)/(kappa + j)

    where c_j of the episodes before j equal it. The second is the bet of `betting` on whole
    episodes, with p in place of their unknown law, and depends on the numbers of equal episodes
    only, not on their order. *pairs* is for a copy or two in a large record, *rows* for many.

    *Guarantee*: exact for every number of episodes, for experts that depend on all of the past, and
    for lengths that do. Markov: P(E >= 1/level) <= level in a sound record. Laws that are not known
    count as one, which keeps the guarantee and loses strength.

    *Strength*: in a world that leaves little to chance p is near one and equal episodes are no
    evidence. Where all episodes, recorded twice, would not be refuted, nothing is tested.

    *Cost*: a pass over the record. *Reference*: as in `betting`.
    """
    labels = equal_episodes(demos)
    earlier = ranks(labels)
    repeats = np.flatnonzero(earlier)
    example = None
    if repeats.size:
        second = int(repeats[np.argmin(log_chances[repeats])])
        first = int(np.argmax(labels == labels[second]))
        example = first, second, float(log_chances[second])
    twice = ranks(np.concatenate([labels, labels]))
    return Repetitions(
        log_evidence(earlier, log_chances),
        log_evidence(twice, np.concatenate([log_chances, log_chances])),
        len(demos),
        repeats.size,
        example,
    )


def equal_episodes(demos: Demonstrations) -> IntArray:
    """A number for every episode, the same for those with the same states and actions."""
    known: dict[tuple[bytes, bytes], int] = {}
    episodes = (demos.episode(j) for j in range(len(demos)))
    return np.array([known.setdefault((x.tobytes(), a.tobytes()), len(known)) for x, a in episodes])


def ranks(labels: IntArray) -> IntArray:
    """c_j: how many entries before each one have its label.

    >>> ranks(np.array([5, 3, 5, 5, 3])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    first = np.searchsorted(ordered, ordered, side="left")
    found = np.empty(labels.size, dtype=np.int64)
    found[order] = np.arange(labels.size) - first
    return found


def log_evidence(earlier: IntArray, log_chances: FloatArray) -> float:
    """log E from c_j and log p_j; one episode is no evidence.

    >>> round(log_evidence(np.array([0, 1]), np.log([0.25, 0.25])), 3)
    0.944
    """
    count = earlier.size
    if count < 2:
        return 0.0
    with np.errstate(divide="ignore"):
        ratios = np.log(earlier) - log_chances
    pairs = special.logsumexp(ratios) - math.log(count * (count - 1) / 2)
    past = np.arange(count)
    rows = [
        float((np.logaddexp(0.0, ratios - math.log(kappa)) - np.log1p(past / kappa)).sum())
        for kappa in SCALES
    ]
    together = special.logsumexp(rows) - math.log(len(rows))
    return float(np.logaddexp(pairs, together) - math.log(2))
