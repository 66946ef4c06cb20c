"""The inputs of a run in an explicit world as plain arrays, each checked on its own.

Whatever breaks a rule of its kind is `Refused`: then there is nothing that numbers could be derived
from. Laws are used as they are stored, to the last bit.

A world may be an estimate. Then its file holds declared distances of the true laws, or counts:

    info(s) = (log(K/delta) + log likelihood of the frequencies - log of a mixture of laws)/n

bounds the divergence of a law on S states from the frequencies of its n observations, for K laws
and every n at once, and sqrt(2 info) their distance in the 1-norm (`divergence`, `pinsker`). S
counts the possible next states where they are known, all states otherwise; K the pairs, or the
states times A (A + 1) where only what was observed under A action numbers is offered.

That is for half of delta. The other half is for bets that begin at the law p tested: the mixture of
laws is Dirichlet's with c p(y) + 1/S, where c is one of the numbers 1, 4, ..., 4^11. So for all p

    log(2 12 K/delta) >= log of that mixture - sum_y n_y log p(y)

too (`bets_on`). Of the two the narrower one is taken.

Where pairs share laws of outcomes, info is that of the group's outcomes, K the number of groups,
and no other bets are made; what every outcome leads to then decides laws, counts and support, all
of which are derived again.

A world with a horizon is stored as the world without it, the number H of steps and their discount
g. Its states are t S + x for t < H, and the end; layers are made again here. An episode's total is
the sum over t of g^t times the cost of a step, and that of a layer's pair is (g/d)^t times it, with
d the discount of the world in layers: so totals range over H layers of costs of a step, weighted by
g^t, and not over costs in layers times 1/(1 - d).

A world of average costs is stored as the world itself, a restart law nu and times w. With
s(x, a) = min P(y | x, a)/nu(y) over the states of nu and K = P - s nu, the reduction needs
w - K w >= 1 at every pair. Its discount is 1 - 1/max w, it starts from nu~ = nu w/<nu, w>, leads
to y with K(y | x, a) w(y)/w(x), to a state drawn from nu~ with (w - 1 - K w)(x, a)/w(x), both
divided by the discount, and otherwise to an end; costs are those of a step divided by w(x). Means
of T steps have expectations that are off by at most D/T times the range of a cost, D = max w or
1/(1 - tau), tau half of the largest distance of two laws in the 1-norm.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from journeyman.checker.archives import (
    Arrays,
    Bools,
    Floats,
    Ints,
    archive,
    reals,
    require_law,
    sparse_rows,
    wholes,
    words,
)
from journeyman.checker.costs import Costs, read_class
from journeyman.checker.findings import AGREEMENT, Refused

NUMBERED, TIMED = 2, 3
"""Versions of policies and demonstrations that number actions otherwise than 0, 1, 2, ..., and of
worlds with a horizon and their policies."""
MOST_LAYERED = 20_000_000
"""Pairs of all layers."""
MOST_COMPARED = 1 << 29
"""Numbers that are compared to find how far two laws are apart."""
FURTHEST = 2.0
"""No two laws are further apart in the 1-norm."""
MODEL_PART, STARTS_PART = 0.25, 0.1
"""Of delta, for the counts of an estimated world; of that, for the starts where steps were counted
too. The rest is for expert and evaluation."""
CENTRED_PART, CENTRINGS = 0.5, 12
"""Of the part for laws, for bets that begin at the law tested; and how many numbers c share it."""
SUMMED = 128 * 2.0**-52
"""What rounding makes of sums of logarithms of Gamma functions, relative to n log n."""


@dataclass(frozen=True, eq=False)
class Distances:
    """How far the true laws are from the model's at most, and the probability that it took."""

    transition: Floats
    initial: float
    part: float
    bets: "Bets | None" = None
    """On the law of every pair, and on that of the start, where counted."""
    initial_bets: "Bets | None" = None

    @property
    def rounding(self) -> float:
        """Relative to a distance: what is left of sums of n log n is log(laws/delta) or more."""
        least = AGREEMENT
        for one in (self.bets, self.initial_bets):
            if one is not None:
                counted = (one.allowed > 0) & (one.allowed < math.inf)
                steps = np.log(one.counts[counted] + 2.0) / one.allowed[counted]
                least = max(least, SUMMED * float(steps.max(initial=0.0)))
        return least

    @property
    def source(self) -> str:
        return "transition counts" if self.part > 0 else "declared errors of the model"


@dataclass(frozen=True, eq=False)
class Groups:
    """Laws of outcomes that pairs share: the group of every pair (-1: none), where outcomes lead
    from it, how often each was counted there, and the same of all declared pairs."""

    label: Ints
    target: Ints
    declared: Ints
    """Groups of all (state, action) numbers that were declared."""
    tally: Ints
    """(declared pairs x outcomes)."""
    outcomes: Ints
    """Of every group."""

    @property
    def sums(self) -> Ints:
        """(groups x outcomes)"""
        found = np.zeros((self.outcomes.size, self.tally.shape[1]), dtype=np.int64)
        grouped = self.declared >= 0
        np.add.at(found, self.declared[grouped], self.tally[grouped])
        return found

    def rows(self, weights: Any, num_states: int) -> Any:
        """What weights of outcomes are as weights of next states; none in pairs without a group."""
        pair, outcome = np.nonzero(self.target >= 0)
        entries = np.asarray(weights, dtype=float)[self.label[pair], outcome]
        places = (pair, self.target[pair, outcome])
        return sparse.coo_array((entries, places), shape=(self.label.size, num_states)).tocsr()

    def over(self, steps: int, num_states: int, last: int) -> "Groups | None":
        """The same in every layer but the last of a world with a horizon, and none at its end."""
        if steps < 2:
            return None
        none, width = self.label.size + last, self.target.shape[1]
        moved = [
            np.where(self.target < 0, -1, self.target + (t + 1) * num_states)
            for t in range(steps - 1)
        ]
        others = np.zeros(((steps - 2) * len(self.tally), width), dtype=np.int64)
        return Groups(
            np.append(np.tile(self.label, steps - 1), np.full(none, -1)),
            np.vstack([*moved, np.full((none, width), -1)]),
            np.tile(self.declared, steps - 1), np.vstack([self.tally, others]), self.outcomes,
        )  # fmt: skip

    def divergences(self, level: float) -> Floats:
        """Of every pair; infinite where it has no group, 0 where its next state is certain."""
        count = self.outcomes.size
        both = zip(self.sums, self.outcomes.tolist(), strict=True)
        found = [divergence(row[row > 0].tolist(), size, count, level) for row, size in both]
        known = np.array([*found, math.inf])[self.label]
        ordered = np.sort(self.target, axis=1)
        further = (np.diff(ordered, axis=1) > 0) & (ordered[:, 1:] >= 0)
        places = (ordered[:, 0] >= 0) + further.sum(axis=1)
        return np.where((self.label >= 0) & (places == 1), 0.0, known)

    def evidence(self) -> float:
        """The logarithm of the e-value against one law for each group: half on a law of its own
        for every pair, half on one pair, any of them, that differs from the rest of its group. No
        more than by the likeliest laws of the groups is the record divided."""
        sums = self.sums.tolist()
        likeliest = [_likeliest(row) for row in sums]
        used = [k for k in range(len(self.tally)) if self.tally[k].any()]
        alone, single = 0.0, []
        for k in used:
            group, own = int(self.declared[k]), self.tally[k].tolist()
            rest = [whole - part for whole, part in zip(sums[group], own, strict=True)]
            size = int(self.outcomes[group])
            mine = _mixture(own, size)
            alone += mine
            single.append(mine + _mixture(rest, size) - likeliest[group])
        every = alone - math.fsum(likeliest[k] for k in {int(self.declared[k]) for k in used})
        top = max(single)
        one = top + math.log(math.fsum(math.exp(x - top) for x in single) / len(single))
        high = max(every, one)
        return high + math.log((math.exp(every - high) + math.exp(one - high)) / 2)


def _mixture(tally: list[int], size: int) -> float:
    """The logarithm of what Dirichlet's mixture with 1/2 for each outcome gives to a record."""
    steps = sum(tally)
    seen = math.fsum(math.lgamma(one + 0.5) - math.lgamma(0.5) for one in tally if one > 0)
    return seen + math.lgamma(size / 2) - math.lgamma(steps + size / 2)


def _likeliest(tally: list[int]) -> float:
    return math.fsum(one * math.log(one / sum(tally)) for one in tally if one > 0)


@dataclass(frozen=True, eq=False)
class Bets:
    """Of every row: all laws p with

        sum_y f(y) log(f(y)/p(y)) + (1/n) sum_y (g(y, p(y)) - g(y, f(y))) <= allowed

    where f are the frequencies of n observations, g(y, x) = log Gamma(n f(y) + c x + a) - log
    Gamma(c x + a), and n, c and a are `counts`, `centring` and `smoothing`. Where c = 0 only the
    divergence is left.
    """

    allowed: Floats
    counts: Floats
    centring: Floats
    smoothing: Floats


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Declared errors, counts, possible next states and recorded action numbers, where given."""

    error: Floats | None = None
    initial_error: float | None = None
    counts: Ints | None = None
    starts: int | None = None
    support: Any = None
    actions: Ints | None = None
    groups: Groups | None = None

    @property
    def exact_steps(self) -> bool:
        return self.error is None and self.counts is None

    @property
    def exact_starts(self) -> bool:
        return self.initial_error is None and self.starts is None

    @property
    def is_estimate(self) -> bool:
        return not (self.exact_steps and self.exact_starts)

    def surely_exact(self, num_pairs: int) -> Bools:
        """Pairs whose law is declared to be exact."""
        return np.zeros(num_pairs, bool) if self.error is None else np.asarray(self.error <= 0)

    def distances(self, rows: Any, initial_law: Floats, delta: float) -> Distances | None:
        """The distances, with their part of `delta`; None in an exact world."""
        if not self.is_estimate:
            return None
        (num_pairs, num_states), part = rows.shape, MODEL_PART * delta
        share = STARTS_PART if self.counts is not None and self.starts is not None else None
        transition = np.full(num_pairs, 0.0 if self.counts is None else FURTHEST)
        initial = 0.0 if self.starts is None else FURTHEST
        transition = transition if self.error is None else self.error
        initial = initial if self.initial_error is None else self.initial_error
        bets = first = None
        if self.counts is not None:
            level = part * (1 - (share or 0.0))
            times = sparse.diags_array(self.counts.astype(float)) @ rows
            tallies = sparse.csr_array(times)
            if self.groups is None:
                far = self.divergences(tallies, level * (1 - CENTRED_PART))
                bets = bets_on(tallies, self._sizes(tallies), far, self._laws(tallies), level)
            else:
                far = self.groups.divergences(level)
                none = np.zeros(num_pairs)
                bets = Bets(far, self.counts.astype(float), none, none + 1)
            transition = np.minimum(transition, pinsker(far))
        if self.starts is not None:
            drawn = sparse.csr_array(initial_law[np.newaxis] * self.starts)
            level = part * (share or 1.0)
            one = divergence(drawn.data.tolist(), num_states, 1, level * (1 - CENTRED_PART))
            initial = min(initial, float(pinsker(np.array([one]))[0]))
            first = bets_on(drawn, np.array([num_states]), np.array([one]), 1, level)
        counted = self.counts is not None or self.starts is not None
        return Distances(transition, initial, part if counted else 0.0, bets, first)

    def divergences(self, tallies: Any, level: float) -> Floats:
        """The largest divergence of the law of every pair from what was observed of it."""
        laws, rows = self._laws(tallies), np.split(tallies.data, tallies.indptr[1:-1])
        both = zip(rows, self._sizes(tallies).tolist(), strict=True)
        return np.array([divergence(row.tolist(), size, laws, level) for row, size in both])

    def _sizes(self, tallies: Any) -> Ints:
        """How many next states are possible."""
        if self.support is not None:
            return np.asarray(np.diff(self.support.indptr))
        return np.full(tallies.shape[0], tallies.shape[1])

    def _laws(self, tallies: Any) -> int:
        """How many laws might have been observed."""
        if self.groups is not None:
            return int((self.groups.declared >= 0).sum())
        if self.actions is None:
            return int(tallies.shape[0])
        most = 1 + int(self.actions.max())
        return int(tallies.shape[1]) * most * (most + 1)

    def observed_support(self, rows: Any) -> tuple[bool, int]:
        """Whether the support of all laws that were counted is where they were seen to lead, and
        how many of them it makes exact."""
        if self.support is None or self.counts is None or self.groups is not None:
            return False, 0
        counted = (self.counts > 0) & ~self.surely_exact(rows.shape[0])
        possible, seen = (np.diff(one.indptr)[counted] for one in (self.support, rows))
        return bool(possible.size and (possible == seen).all()), int((possible == 1).sum())


def divergence(tally: list[float], size: int, laws: int, delta: float) -> float:
    """How far, in Kullback and Leibler's divergence, a law on `size` states is at most from the
    frequencies of what was observed of it: log(laws/delta) more than what the frequencies are
    likelier by than a mixture of laws, Dirichlet's with 1/2 or with 1/size each; per observation.
    """
    count = math.fsum(tally)
    if size < 2:
        return 0.0
    if not count > 0:
        return math.inf
    lengths = []
    for a in (0.5, 1 / size):
        seen = math.fsum(math.lgamma(one + a) - math.lgamma(a) for one in tally if one > 0)
        lengths.append(math.lgamma(count + size * a) - math.lgamma(size * a) - seen)
    shortest = min(lengths)
    length = shortest - math.log(math.fsum(math.exp(shortest - one) for one in lengths) / 2)
    surprise = math.fsum(one * math.log(count / one) for one in tally if one > 0)
    return (math.log(laws / delta) + length - surprise) / count


def bets_on(tallies: Any, sizes: Ints, plain: Floats, laws: int, delta: float) -> Bets:
    """Of every row of counts the narrower of two: within the divergence `plain`, or the bet that
    begins at the law tested, whose excess over the divergence shrinks distances by 1 + c/n."""
    counts, allowed, centring = np.zeros(sizes.size), plain.copy(), np.zeros(sizes.size)
    rows = np.split(tallies.data, tallies.indptr[1:-1])
    price = math.log(laws * CENTRINGS / (CENTRED_PART * delta))
    for k, (row, size) in enumerate(zip(rows, sizes.tolist(), strict=True)):
        tally = row.tolist()
        counts[k] = n = math.fsum(tally)
        if size < 2 or not n > 0:
            continue
        power = min(max(math.floor(math.log2(n) / 2 - 1), 0), CENTRINGS - 1)
        c, a = 4.0**power, 1 / size
        bet = math.lgamma(c + 1) - math.lgamma(n + c + 1)
        for one in tally:
            if one > 0:
                begun = c * one / n + a
                bet += math.lgamma(one + begun) - math.lgamma(begun) - one * math.log(one / n)
        centred = (price - bet) / n
        if centred * (1 + c / n) < plain[k]:
            allowed[k], centring[k] = centred, c
    return Bets(allowed, counts, centring, 1 / sizes)


def pinsker(information: Floats) -> Floats:
    """The distance of two laws with this divergence, at most."""
    return np.minimum(np.sqrt(2 * information), FURTHEST)


@dataclass(frozen=True, eq=False)
class StoredWorld:
    """Transition rows of the pairs, the first pair of every state, and the law of the start."""

    rows: Any
    first: Ints
    initial: Floats
    discount: float
    knowledge: Knowledge = Knowledge()
    steps: int | None = None
    """Of an episode, in a world with a horizon."""
    step_discount: float = 1.0
    steps_at_most: float | None = None
    """With discount 1: the declared bound on expected further steps."""
    times: Floats | None = None
    """With discount 1: expected steps that no policy exceeds, where none are declared. With average
    costs: to a restart, w."""
    base: "StoredWorld | None" = None
    """With average costs: the world whose steps are averaged."""

    @cached_property
    def factors(self) -> Floats:
        """By which costs of a step are multiplied in every pair; none at the end."""
        if self.base is not None and self.times is not None:
            return np.asarray(1 / self.times[self.base.state_of])
        states = (self.num_states - 1) // (self.steps or 1)
        layer = self.state_of[self.state_of < self.num_states - 1] // states
        return np.asarray((self.step_discount / self.discount) ** layer.astype(float))

    def time_after(self, lengths: Any) -> Floats:
        """Discounted time behind so many steps: all there is, or what is left of an episode; with
        average costs twice what the mean of so many steps remembers of its start."""
        taken = np.asarray(lengths, dtype=float)
        if self.base is not None:
            return np.asarray(2 * self.memory / taken)
        if self.has_goal:
            return np.full(taken.shape, self.horizon)
        if self.steps is None:
            return np.asarray(self.discount**taken / (1 - self.discount))
        every = self.step_discount ** np.arange(self.steps, dtype=float)
        left = np.array([math.fsum(every[T:]) for T in range(self.steps + 1)])
        return np.asarray(left[np.minimum(taken, self.steps).astype(int)])

    @cached_property
    def total_time(self) -> float:
        return 1.0 if self.base is not None else float(self.time_after(0))

    @property
    def of_records(self) -> "StoredWorld":
        """Where demonstrations were recorded."""
        return self if self.base is None else self.base

    @cached_property
    def memory(self) -> float:
        """D, with average costs."""
        assert self.base is not None
        assert self.times is not None
        rows, longest = self.base.rows, float(self.times.max())
        if rows.shape[0] ** 2 * rows.shape[1] > MOST_COMPARED:
            return longest
        laws = rows.toarray()
        overlap = min(float(np.minimum(laws, law).sum(axis=1).min()) for law in laws)
        return min(longest, 1 / (overlap - 1e-12)) if overlap > 1e-12 else longest

    @property
    def num_states(self) -> int:
        return self.initial.size

    @property
    def num_pairs(self) -> int:
        return int(self.first[-1])

    @property
    def horizon(self) -> float:
        """1/(1 - discount); with discount 1 what expected further steps do not exceed."""
        if not self.has_goal:
            return 1 / (1 - self.discount)
        if self.steps_at_most is not None:
            return self.steps_at_most
        return float(self.times.max()) if self.times is not None else math.inf

    @property
    def has_goal(self) -> bool:
        """Whether nothing is discounted, and episodes end in states of rest."""
        return self.discount == 1

    @cached_property
    def kept(self) -> Any:
        """The rows as far as anything follows: with discount 1 none at states of rest."""
        if not self.has_goal:
            return self.rows
        going = (~self.rests)[self.state_of].astype(float)
        found = self.rows.copy()
        found.data = found.data * going.repeat(np.diff(found.indptr))
        found.eliminate_zeros()
        return found

    def require_times(self) -> None:
        """Whether w - K w >= 1 at every pair off the states of rest, for w >= 0."""
        if self.steps_at_most is not None:
            return
        w = self.times
        if w is None or w.size != self.num_states or (w < 0).any():
            raise Refused("with discount 1 it bounds no expected steps")
        going = ~self.rests[self.state_of]
        slack = (w[self.state_of] - self.kept @ w)[going]
        room = 8 * 2.0**-52 * (self.branches + 8) * (1 + float(w.max()))
        if (slack < 1 - room).any():
            raise Refused("the expected steps that it states are exceeded by some policy")

    def reached(self, weights: Floats | None = None) -> Bools:
        """States that a policy (pairs of positive weight; any policy without) can get to."""
        used = np.ones(self.num_pairs) if weights is None else weights
        rows = self.kept.tocoo()
        positive = used[rows.coords[0]] > 0
        ways = (self.state_of[rows.coords[0][positive]], rows.coords[1][positive])
        found, frontier = self.initial > 0, np.flatnonzero(self.initial > 0)
        order = np.argsort(ways[0], kind="stable")
        first = np.searchsorted(ways[0][order], np.arange(self.num_states + 1))
        while frontier.size:
            counts = first[frontier + 1] - first[frontier]
            starts = np.repeat(first[frontier] - np.cumsum(counts) + counts, counts)
            ahead = np.unique(ways[1][order[starts + np.arange(counts.sum())]])
            frontier = ahead[~found[ahead]]
            found[frontier] = True
        return np.asarray(found)

    @property
    def branches(self) -> int:
        """Most successors of a pair."""
        return int(np.diff(self.rows.indptr).max())

    @cached_property
    def state_of(self) -> Ints:
        """The state of every pair."""
        return np.arange(self.num_states).repeat(np.diff(self.first))

    @cached_property
    def numbers(self) -> Ints:
        """The number of every pair's action: as recorded, or else from 0 in every state."""
        if self.knowledge.actions is not None:
            return self.knowledge.actions
        return np.asarray(np.arange(self.num_pairs) - self.first[self.state_of])

    @cached_property
    def rests(self) -> Bools:
        """States that every action keeps with certainty; a law that was only observed is none."""
        known = self.knowledge
        targets = self.rows if known.support is None else known.support
        count, stays = np.diff(targets.indptr), np.ones(self.num_pairs, dtype=bool)
        stays[count > 1] = False  # no entry is given twice
        single = np.flatnonzero(count == 1)
        stays[single] = targets.indices[targets.indptr[single]] == self.state_of[single]
        left = np.zeros(self.num_states, dtype=bool)
        left[self.state_of[~stays]] = True
        if not known.exact_steps and known.support is None:
            left[self.state_of[~known.surely_exact(self.num_pairs)]] = True
        return ~left

    def per_pair(self, rows: Any) -> Any:
        """Rows per pair, repeated over a state's actions where they were given per state; of a
        (states x action numbers) table one number per pair."""
        if rows.shape[0] == self.num_pairs:
            return rows
        if rows.shape[0] != self.num_states:
            raise Refused(f"{rows.shape[0]} rows fit neither the pairs nor the states")
        return rows[self.state_of]

    def per_state(self, values: Floats) -> Floats:
        """Sums over the actions of every state."""
        return np.add.reduceat(values, self.first[:-1])

    def require_numbers(self, arrays: Arrays, version: int) -> None:
        """Whether a file with the offsets of this world's actions numbers them as it does."""
        stated = wholes(arrays, "action_numbers") if "action_numbers" in arrays else None
        if version != TIMED and (stated is not None) != (version == NUMBERED):
            raise Refused("its version and what it says about action numbers do not agree")
        if stated is None:
            stated = np.asarray(np.arange(self.num_pairs) - self.first[self.state_of])
        if not np.array_equal(stated, self.numbers):
            raise Refused("it numbers actions otherwise than the world")

    def pairs_of(self, states: Ints, actions: Ints) -> Ints:
        """The pairs of actions by their numbers."""
        most = 1 + int(max(self.numbers.max(), actions.max(initial=0)))
        offered, wanted = self.state_of * most + self.numbers, states * most + actions
        found = np.minimum(np.searchsorted(offered, wanted), offered.size - 1)
        if (actions < 0).any() or (offered[found] != wanted).any():
            raise Refused("it takes an action that the world lacks")
        return found

    def residual(self, measure: Floats, initial: Floats | float | None = None) -> Floats:
        """initial - (B - discount P)' measure."""
        given = self.initial if initial is None else initial
        entering = self.kept.T @ measure
        return np.asarray(given - self.per_state(measure) + self.discount * entering)


@dataclass(frozen=True, eq=False)
class Records:
    """Demonstrations as one row per step, and the last state of every episode."""

    state: Ints
    action: Ints
    next_state: Ints
    episode: Ints
    time: Ints
    starts: Ints
    ends: Ints
    lengths: Ints
    terminated: Bools
    pair: Ints
    """Empty where the world has no list of its pairs."""

    def __len__(self) -> int:
        return self.lengths.size

    def until(self, most: int) -> "Records":
        """The first steps of every episode; one that has more is not terminated then."""
        steps, long = self.time < most, self.lengths > most
        ends = self.ends.copy()
        last = np.flatnonzero((self.time == most - 1) & long[self.episode])
        ends[self.episode[last]] = self.next_state[last]
        return Records(
            self.state[steps], self.action[steps], self.next_state[steps], self.episode[steps],
            self.time[steps], self.starts, ends, np.minimum(self.lengths, most),
            self.terminated & ~long, self.pair[steps],
        )  # fmt: skip

    def only(self, chosen: Bools) -> "Records":
        """Some of the episodes, in their order."""
        steps = chosen[self.episode]
        number = np.cumsum(chosen) - 1
        return Records(
            self.state[steps], self.action[steps], self.next_state[steps],
            number[self.episode[steps]], self.time[steps], self.starts[chosen], self.ends[chosen],
            self.lengths[chosen], self.terminated[chosen], self.pair[steps],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class StoredBudget:
    """A limit on a known cost, as it was given and per pair."""

    name: str
    given: Floats
    cost: Floats
    limit: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Cost class, target and budgets."""

    costs: Costs
    step_costs: Costs
    """Over costs of single steps; the same where the world has no horizon."""
    matrix: Any
    """The basis with one row per pair."""
    names: list[str]
    target: Floats
    budgets: tuple[StoredBudget, ...]
    expectation: dict[str, Any]
    expert_is: dict[str, dict[str, Any]]
    """Parameters of what is declared about the expert, by the name of the premise."""

    @property
    def estimated(self) -> bool:
        """Whether the expert is known from demonstrations only."""
        return self.expectation.get("kind") not in ("declared", "known cost")

    @property
    def exact_target(self) -> Floats | None:
        """The target where it is taken as exact."""
        return None if self.estimated else self.target


@dataclass(frozen=True, eq=False)
class Potentials:
    """That prove the ends of the attainable ranges of some costs: one row for each."""

    costs: Ints
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the claims rest on besides the inputs.

    Dual points (weights, values and prices, one per row) for lower bounds; how often the policy
    visits every state; the measure that defines the policy and the scale of B'; potentials of
    attainable ranges; and whether unrecorded tails count as mid-range or as nothing.
    """

    weights: Floats
    values: Floats
    prices: Floats
    visits: Floats
    centred: bool
    measure: Floats | None = None
    measure_scale: float = 1.0
    ranges: Potentials | None = None
    directions: Any = None
    """Of `consistency`, where the expert was declared deterministic or stationary."""


def read_world(data: bytes) -> StoredWorld:
    header, arrays = archive(data, "world", 1, 2, TIMED)
    initial, first = reals(arrays, "initial", 1), wholes(arrays, "choice_offsets")
    discount = header.get("discount")
    if not isinstance(discount, float) or not 0 < discount <= 1:
        raise Refused(f"its discount is {discount!r}")
    steps = header.get("steps_at_most")
    if steps is not None and not (isinstance(steps, float) and 0 < steps < math.inf):
        raise Refused(f"steps_at_most = {steps!r} is no number of steps")
    if first.size != initial.size + 1 or first[0] != 0 or (np.diff(first) < 1).any():
        raise Refused("its choice offsets do not give every state an action")
    require_law("the initial law", initial, np.array([0]))
    rows = sparse_rows(arrays, "", (int(first[-1]), initial.size))
    if not np.diff(rows.indptr).all():
        raise Refused("a pair has no transition law")
    require_law("a transition law", rows.data, rows.indptr[:-1])
    known = _read_knowledge(header, arrays, rows, first)
    _check_counts(known, rows, initial)
    times = reals(arrays, "longest_times", 1) if "longest_times" in arrays else None
    world = StoredWorld(rows, first, initial, discount, known, steps_at_most=steps, times=times)
    if header["version"] == TIMED and "restart" in arrays:
        restart, w = (reals(arrays, name, 1) for name in ("restart", "restart_times"))
        return _averages(world, restart, w)
    if header["version"] == TIMED:
        return _layers(world, header.get("horizon"), header.get("step_discount"))
    if known.is_estimate != (header["version"] == 2):
        raise Refused("its version and what it says about the errors of its laws do not agree")
    if not world.has_goal:
        return world
    world.require_times()
    if known.is_estimate:
        raise Refused("with discount 1 the errors of its laws cannot be audited")
    return world


def _averages(base: StoredWorld, restart: Floats, w: Floats) -> StoredWorld:
    """The world of average costs, if no policy avoids restarts longer than it says."""
    if base.knowledge.is_estimate or base.has_goal:
        raise Refused("average costs of such a world cannot be audited")
    size = base.num_states
    if restart.size != size or w.size != size or not (w >= 1).all():
        raise Refused("it has not one restart probability and one time from 1 on for every state")
    require_law("the restart law", restart, np.array([0]))
    common = np.flatnonzero(restart)
    share = (base.rows[:, common].toarray() / restart[common]).min(axis=1)
    taken = sparse.csr_array(np.outer(share, restart[common]))
    spread = sparse.csr_array(
        (np.ones(common.size), (np.arange(common.size), common)), shape=(common.size, size)
    )
    kept = (base.rows - taken @ spread).tocsr()
    kept.data = np.maximum(kept.data, 0.0)
    own, longest = w[base.state_of], float(w.max())
    slack = own - 1 - kept @ w
    if (slack < -8 * 2.0**-52 * (base.branches + 8) * (1 + longest)).any():
        raise Refused("some policy expects more steps to a restart than it states")
    discount = max(1 - 1 / longest, 0.5)
    start = restart * w / math.fsum(restart * w)
    again = sparse.csr_array(np.maximum(slack, 0.0)[:, np.newaxis]) @ start[np.newaxis]
    going = sparse.csr_array(kept.multiply(w[np.newaxis]) + sparse.csr_array(again))
    going = sparse.csr_array(going.multiply(1 / (discount * own)[:, np.newaxis]))
    rest = np.maximum(1 - np.asarray(going.sum(axis=1)).ravel(), 0.0)
    widths = np.diff(base.first)
    counted = np.arange(base.num_pairs) - base.first[base.state_of]
    same = bool((widths == widths[0]).all()) and np.array_equal(base.numbers, counted)
    last = int(widths[0]) if same else 1
    rows = sparse.block_array(
        [[going, rest[:, np.newaxis]], [sparse.csr_array((last, size)), np.ones((last, 1))]],
        format="csr",
    )
    rows.data /= np.asarray(rows.sum(axis=1)).ravel().repeat(np.diff(rows.indptr))
    numbers = base.knowledge.actions
    if numbers is not None:
        behind = np.arange(last) if same else numbers.min()
        numbers = np.append(numbers, behind)
    return StoredWorld(
        rows, np.append(base.first, base.first[-1] + last), np.append(start, 0.0), discount,
        replace(base.knowledge, actions=numbers), times=w, base=base,
    )  # fmt: skip


def _layers(base: StoredWorld, steps: Any, discount: Any) -> StoredWorld:
    """The world with a horizon, layer by layer; whatever ends an episode is certain."""
    if type(steps) is not int or steps < 1 or steps * base.num_pairs > MOST_LAYERED:
        raise Refused(f"its horizon is {steps!r}")
    if type(discount) is not float or not 0 < discount <= 1:
        raise Refused(f"the discount of its steps is {discount!r}")
    widths, known = np.diff(base.first), base.knowledge
    counted = np.arange(base.num_pairs) - base.first[base.state_of]
    same = bool((widths == widths[0]).all()) and np.array_equal(base.numbers, counted)
    last = int(widths[0]) if same else 1
    first = np.concatenate([[0], np.cumsum(np.append(np.tile(widths, steps), last))])
    end, pairs = steps * base.num_states, base.num_pairs

    def over(rows: Any) -> Any:
        """A matrix from pairs to next states, one layer further every time."""
        found, final = rows.tocoo(), np.arange((steps - 1) * pairs, steps * pairs + last)
        layers = range(steps - 1)
        start = [found.coords[0] + t * pairs for t in layers]
        reached = [found.coords[1] + (t + 1) * base.num_states for t in layers]
        weights = np.concatenate([np.tile(found.data, steps - 1), np.ones(final.size)])
        ends = np.full(final.size, end)
        places = (np.concatenate([*start, final]), np.concatenate([*reached, ends]))
        return sparse.coo_array((weights, places), shape=(int(first[-1]), end + 1)).tocsr()

    def along(values: Any) -> Any:
        if values is None:
            return None
        return np.append(np.tile(values, steps - 1), np.zeros(pairs + last, values.dtype))

    error, numbers = known.error, known.actions
    if error is None and known.counts is not None:
        error = np.full(pairs, FURTHEST)
    if numbers is not None:
        behind = np.arange(last) if same else numbers.min()
        numbers = np.append(np.tile(numbers, steps), behind)
    knowledge = replace(
        known, error=along(error), counts=along(known.counts), actions=numbers,
        support=None if known.support is None else over(known.support),
        groups=None if known.groups is None else known.groups.over(steps, base.num_states, last),
    )  # fmt: skip
    reduced = min(discount, 1 - 1 / max(steps, 2))
    initial = np.append(base.initial, np.zeros(end + 1 - base.num_states))
    return StoredWorld(over(base.rows), first, initial, reduced, knowledge, steps, discount)


def _read_knowledge(header: dict[str, Any], arrays: Arrays, rows: Any, first: Ints) -> Knowledge:
    error = counts = support = None
    if "transition_error" in arrays:
        error = reals(arrays, "transition_error", 1, rows.shape[0])
        if ((error < 0) | (error > FURTHEST)).any():
            raise Refused("transition_error is no distance of two laws")
    far, starts = header.get("initial_error"), header.get("initial_count")
    if far is not None and not (type(far) in (int, float) and 0 <= far <= FURTHEST):
        raise Refused(f"initial_error = {far!r} is no distance of two laws")
    if starts is not None and (type(starts) is not int or starts < 1):
        raise Refused(f"initial_count = {starts!r} is no number of observed starts")
    if "transition_counts" in arrays:
        counts = wholes(arrays, "transition_counts")
        if counts.size != rows.shape[0] or (counts < 0).any():
            raise Refused("transition_counts does not count the observations of every pair")
    if {"support_indices", "support_indptr"} & set(arrays):
        ones = np.ones(arrays["support_indices"].size)
        support = sparse_rows(arrays | {"support_data": ones}, "support_", rows.shape)
        if np.abs((rows - rows.multiply(support)).tocsr().data).any():
            raise Refused("a law leads where its support excludes")
    known = None if far is None else float(far)
    numbers = _actions(arrays, first)
    found = Knowledge(error, known, counts, starts, support, numbers)
    if "shared_groups" not in arrays:
        return found
    return replace(found, groups=_groups(arrays, found, rows, first))


def _groups(arrays: Arrays, known: Knowledge, rows: Any, first: Ints) -> Groups:
    """The shared laws, and whether laws, counts and support are those that follow from them."""
    num_states = rows.shape[1]
    label = np.asarray(arrays["shared_groups"])
    target, tally = (np.asarray(arrays.get(f"shared_{one}")) for one in ("targets", "tallies"))
    if label.ndim != 2 or label.shape[0] != num_states or target.ndim != 3:
        raise Refused("its shared laws are no tables over states, actions and outcomes")
    if target.shape[:2] != label.shape or tally.shape != target.shape:
        raise Refused("its shared laws are tables of different sizes")
    if any(one.dtype.kind not in "iu" for one in (label, target, tally)):
        raise Refused("its shared laws are no tables of whole numbers")
    count = int(label.max()) + 1
    if count < 1 or not np.array_equal(np.unique(label[label >= 0]), np.arange(count)):
        raise Refused("its groups are not numbered 0, 1, 2, ...")
    if (target < -1).any() or (target >= num_states).any() or (tally < 0).any():
        raise Refused("an outcome leads to no state, or was seen less than never")
    label, target, tally = label.ravel(), *(one.reshape(label.size, -1) for one in (target, tally))
    outcomes = np.zeros(count, dtype=np.int64)
    has = np.zeros((count, target.shape[1]), dtype=bool)
    has[label[label >= 0]] = target[label >= 0] >= 0
    if (has[label] != (target >= 0))[label >= 0].any() or (target[label < 0] >= 0).any():
        raise Refused("pairs of a group have different outcomes")
    outcomes = has.sum(axis=1)
    for k in np.flatnonzero(tally.any(axis=1)):
        places = target[k][target[k] >= 0]
        if label[k] < 0 or tally[k][target[k] < 0].any() or np.unique(places).size < places.size:
            raise Refused("outcomes were counted where the next state does not show them")
    state = np.arange(num_states).repeat(np.diff(first))
    number = np.arange(int(first[-1])) - first[state] if known.actions is None else known.actions
    width = arrays["shared_groups"].shape[1]
    inside = number < width
    at = state * width + np.where(inside, number, 0)
    own = np.where(inside, label[at], -1)
    found = Groups(own, np.where((own >= 0)[:, np.newaxis], target[at], -1), label, tally, outcomes)
    _check_groups(found, known, rows)
    return found


def _check_groups(found: Groups, known: Knowledge, rows: Any) -> None:
    shares, totals = found.label >= 0, found.sums.sum(axis=1)
    if known.counts is None or known.support is None:
        raise Refused("it has shared laws without counts or support")
    if not known.surely_exact(rows.shape[0])[~shares].all():
        raise Refused("a law that is shared with none is no known one")
    if (known.counts[shares] != totals[found.label[shares]]).any():
        raise Refused("the counts of a pair are not those of its group")
    derived = found.rows(found.sums, rows.shape[1])
    apart = abs(derived - sparse.diags_array(np.where(shares, known.counts, 0.0)) @ rows)
    if (apart.data > 1e-9 * max(1, int(totals.max()))).any():
        raise Refused("a law is not the one that follows from the outcomes of its group")
    possible = found.rows(np.ones(found.sums.shape), rows.shape[1])
    possible.data[:] = 1.0
    if (possible - sparse.diags_array(shares.astype(float)) @ known.support).count_nonzero():
        raise Refused("the support of a pair is not where its outcomes lead")


def _actions(arrays: Arrays, first: Ints) -> Ints | None:
    if "observed_actions" not in arrays:
        return None
    found, inside = wholes(arrays, "observed_actions"), np.ones(first[-1], dtype=bool)
    inside[first[:-1]] = False
    if found.size != first[-1] or (found < 0).any():
        raise Refused("observed_actions does not number the actions of every pair")
    if (np.diff(found, prepend=0)[inside] <= 0).any():
        raise Refused("observed_actions does not increase within a state")
    return found


def _check_counts(known: Knowledge, rows: Any, initial: Floats) -> None:
    """Whether laws that were counted are frequencies of so many observations."""
    if known.counts is not None:
        sure = np.zeros(rows.shape[0], bool) if known.error is None else known.error < FURTHEST
        if ((known.counts < 1) & ~sure).any():
            raise Refused("a law was estimated from nothing")
        counted = np.where(known.surely_exact(rows.shape[0]), 0, known.counts)
        if not _are_counts(rows.data, counted.repeat(np.diff(rows.indptr))):
            raise Refused("a law is no frequency of as many observations as it is said to have")
    starts = known.starts if known.initial_error != 0 else None
    if not _are_counts(initial, np.full(initial.size, starts or 0)):
        raise Refused("the initial law is no frequency of so many starts")


def _are_counts(laws: Floats, counts: Ints) -> bool:
    """Whether the laws times the counts are whole numbers, up to rounding."""
    times = laws * counts
    off = np.minimum(times % 1.0, 1.0 - times % 1.0)
    return bool((off <= 1e-6 + 1e-8 * counts).all())


def read_policy(data: bytes, world: StoredWorld) -> Floats:
    """Probabilities per pair."""
    header, arrays = archive(data, "policy", 1, NUMBERED, TIMED)
    if header.get("horizon") != world.steps or (header["version"] == TIMED) != bool(world.steps):
        raise Refused("it is a policy of another horizon")
    if not np.array_equal(wholes(arrays, "choice_offsets"), world.first):
        raise Refused("it is a policy of another world")
    world.require_numbers(arrays, header["version"])
    law = reals(arrays, "probabilities", 1, world.num_pairs)
    require_law("the law of a state's actions", law, world.first[:-1])
    return law


def read_episodes(data: bytes) -> tuple[Records, dict[str, Any], Arrays]:
    """Demonstrations in any world, with header and arrays."""
    header, arrays = archive(data, "demonstrations", 1, NUMBERED)
    states, actions, offsets = (wholes(arrays, name) for name in ("states", "actions", "offsets"))
    terminated, lengths = np.asarray(arrays["terminated"], dtype=bool), np.diff(offsets)
    count = lengths.size
    if not count or offsets[0] != 0 or (lengths < 1).any() or terminated.shape != (count,):
        raise Refused("its offsets do not describe episodes")
    if actions.size != offsets[-1] or states.size != offsets[-1] + count:
        raise Refused("it has not one state more than actions in every episode")
    if (states < 0).any() or (actions < 0).any():
        raise Refused("it has a negative state or action")
    episode = np.arange(count).repeat(lengths)
    at, ordinal = np.arange(actions.size) + episode, np.arange(count)
    time = np.arange(actions.size) - offsets[:-1].repeat(lengths)
    records = Records(
        states[at], actions, states[at + 1], episode, time, states[offsets[:-1] + ordinal],
        states[offsets[1:] + ordinal], lengths, terminated, np.zeros(0, dtype=np.int64),
    )  # fmt: skip
    return records, header, arrays


@dataclass(frozen=True, eq=False)
class Observations:
    """Recorded episodes of states or observations, one more than actions in each."""

    states: NDArray[Any]
    actions: Ints
    offsets: Ints
    terminated: Bools
    logged: Floats | None
    """How likely the expert took each action, where that was logged."""

    @property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    @property
    def steps(self) -> Ints:
        """Where the state of every step stands."""
        return np.arange(self.actions.size) + np.arange(self.lengths.size).repeat(self.lengths)


def read_observations(data: bytes) -> Observations:
    """Demonstrations of which nothing is known but what was seen and done."""
    _, arrays = archive(data, "demonstrations", 1, 2, 3)
    states, actions, offsets = (
        arrays["states"], wholes(arrays, "actions"), wholes(arrays, "offsets"),
    )  # fmt: skip
    ended, lengths = arrays["terminated"], np.diff(offsets)
    if not lengths.size or offsets[0] != 0 or (lengths < 1).any() or offsets[-1] != actions.size:
        raise Refused("its offsets do not describe episodes")
    if ended.shape != lengths.shape or ended.dtype.kind != "b":
        raise Refused("it does not say of every episode whether it terminated")
    if states.ndim < 1 or len(states) != actions.size + lengths.size:
        raise Refused("it has not one state more than actions in every episode")
    if not np.isfinite(states).all() or (states.ndim == 1 and states.dtype.kind not in "iu"):
        raise Refused("its states are neither ids nor finite observations")
    logged = reals(arrays, "probabilities", 1, actions.size) if "probabilities" in arrays else None
    if logged is not None and not ((logged > 0) & (logged <= 1)).all():
        raise Refused("a logged probability is not above 0 and at most 1")
    return Observations(states, actions, offsets, ended.astype(bool), logged)


def read_records(data: bytes, world: StoredWorld) -> Records:
    """Demonstrations in an explicit world: every step is possible, every end rests."""
    records, header, arrays = read_episodes(data)
    if max(records.state.max(), records.next_state.max()) >= world.of_records.num_states:
        raise Refused("it visits a state that the world lacks")
    world = world.of_records
    if "choice_offsets" in arrays and np.array_equal(arrays["choice_offsets"], world.first):
        world.require_numbers(arrays, header["version"])
    pair, known = world.pairs_of(records.state, records.action), world.knowledge
    possible = world.rows if known.support is None and known.exact_steps else known.support
    steps = None if possible is None else np.asarray(possible[pair, records.next_state])
    if steps is not None and (steps.ravel() <= 0).any():
        raise Refused("it takes a step of probability 0")
    if (records.terminated & ~world.rests[records.ends]).any():
        raise Refused("an episode terminates in a state that does not rest")
    return replace(records, pair=pair)


def read_problem(data: bytes, world: StoredWorld) -> Problem:
    header, arrays = archive(data, "problem", 1)
    names, budget_names = words(header, "names"), words(header, "budgets")
    matrix = read_matrix(arrays, "basis", len(names))
    if 0 in matrix.shape or len(names) != matrix.shape[1]:
        raise Refused(f"it names {len(names)} costs of a basis of shape {matrix.shape}")
    limits = reals(arrays, "limits", 1, len(budget_names))
    given = [arrays[f"budget_{j}"].astype(float) for j in range(len(budget_names))]
    if not all(one.size and np.isfinite(one).all() for one in given):
        raise Refused("the cost of a budget is not finite")
    budgets = (
        StoredBudget(name, one, _budget_cost(world, one), float(limit))
        for name, one, limit in zip(budget_names, given, limits, strict=True)
    )
    vertices = reals(arrays, "vertices", 2) if "vertices" in arrays else None
    expectation = header.get("expectation")
    if not isinstance(expectation, dict):
        raise Refused("it does not say where its target comes from")
    of_class, per_pair = header["cost_class"], world.per_pair(matrix)
    costs = read_class(of_class, matrix, vertices)
    return Problem(
        costs, _step_costs(world, costs, per_pair, of_class, vertices), per_pair, names,
        reals(arrays, "target", 1, len(names)), tuple(budgets), expectation,
        _declared_of_expert(header),
    )  # fmt: skip


def _step_costs(
    world: StoredWorld, costs: Costs, matrix: Any, of_class: Any, vertices: Floats | None
) -> Costs:
    """The class over what single steps of an episode cost."""
    if world.steps is None and world.base is None:
        return costs
    count = world.factors.size
    if abs(matrix[count:]).max() > 0:
        raise Refused("it has costs behind the end of an episode")
    scale = sparse.diags_array(1 / world.factors)
    return read_class(of_class, scale @ matrix[:count], vertices)


def _declared_of_expert(header: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Name by name; whoever checks a premise knows its parameters."""
    stated = header.get("expert_is")
    if not isinstance(stated, list) or not all(isinstance(one, dict) for one in stated):
        raise Refused("it does not say what was declared about the expert")
    found = {str(one.get("name")): one for one in stated}
    if len(found) < len(stated):
        raise Refused("a premise about the expert is declared twice")
    return found


def read_matrix(arrays: Arrays, name: str, columns: int) -> Any:
    """A dense matrix under its name, or a sparse one in three parts."""
    if name in arrays:
        return reals(arrays, name, 2)
    return sparse_rows(arrays, f"{name}_", (arrays[f"{name}_indptr"].size - 1, columns))


def _budget_cost(world: StoredWorld, given: Floats) -> Floats:
    """Per pair, from a vector or from a (states x action numbers) table."""
    widest = 1 + int(world.numbers.max())
    if given.ndim == 2 and given.shape == (world.num_states, widest):
        cost = np.asarray(given[world.state_of, world.numbers])
        if np.count_nonzero(given) > np.count_nonzero(cost):
            raise Refused("a budget has a cost for an action that its state does not offer")
        return cost
    if given.ndim != 1:
        raise Refused(f"a cost has shape {given.shape}")
    return np.asarray(world.per_pair(given))


def read_evidence(data: bytes, world: StoredWorld, problem: Problem) -> Evidence:
    header, arrays = archive(data, "evidence", 1)
    weights = reals(arrays, "cost_weights", 2)
    count = weights.shape[0]
    values, prices = reals(arrays, "values", 2, count), reals(arrays, "budget_prices", 2, count)
    sizes = (weights.shape[1], values.shape[1], prices.shape[1])
    if not count or sizes != (len(problem.names), world.num_states, len(problem.budgets)):
        raise Refused("it holds no dual points of this problem")
    visits = reals(arrays, "visits", 1, world.num_states)
    if (visits < 0).any() or type(header.get("centred")) is not bool:
        raise Refused("it has negative visits, or does not say how tails are counted")
    found = Evidence(weights, values, prices, visits, header["centred"])
    if "range_costs" in arrays:
        costs = wholes(arrays, "range_costs")
        low, high = (reals(arrays, name, 2, costs.size) for name in ("low_values", "high_values"))
        if ((costs < 0) | (costs >= len(problem.names))).any() or (np.diff(costs) <= 0).any():
            raise Refused("its potentials are not those of costs of this problem")
        if costs.size and (low.shape[1], high.shape[1]) != (world.num_states, world.num_states):
            raise Refused("its potentials do not have a value for every state")
        found = replace(found, ranges=Potentials(costs, low, high))
    if "measure" in arrays:
        scale = float(reals(arrays, "measure_scale", 0))
        if scale < 0:
            raise Refused(f"the measure is scaled by {scale}")
        measure = reals(arrays, "measure", 1, world.num_pairs)
        found = replace(found, measure=measure, measure_scale=scale)
    return found


def read_trace(data: bytes) -> Floats:
    """Seconds, lower and upper bound after every call; a bound may be infinite."""
    _, arrays = archive(data, "trace", 1)
    trace = arrays["bounds"].astype(np.float64)
    if trace.ndim != 2 or trace.shape[1] != 3:
        raise Refused(f"bounds has shape {trace.shape}")
    if np.isnan(trace).any() or not np.isfinite(trace[:, 0]).all():
        raise Refused("a time or a bound is not a number")
    if (trace[1:, :2] < trace[:-1, :2]).any():
        raise Refused("a time or a lower bound falls from one call to the next")
    return trace
