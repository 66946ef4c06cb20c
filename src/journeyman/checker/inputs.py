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
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
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

NUMBERED = 2
"""Version of policies and demonstrations that number actions otherwise than 0, 1, 2, ..."""
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
            far = self.divergences(tallies, level * (1 - CENTRED_PART))
            transition = np.minimum(transition, pinsker(far))
            bets = bets_on(tallies, self._sizes(tallies), far, self._laws(tallies), level)
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
        if self.actions is None:
            return int(tallies.shape[0])
        most = 1 + int(self.actions.max())
        return int(tallies.shape[1]) * most * (most + 1)

    def observed_support(self, rows: Any) -> tuple[bool, int]:
        """Whether the support of all laws that were counted is where they were seen to lead, and
        how many of them it makes exact."""
        if self.support is None or self.counts is None:
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

    @property
    def num_states(self) -> int:
        return self.initial.size

    @property
    def num_pairs(self) -> int:
        return int(self.first[-1])

    @property
    def horizon(self) -> float:
        """1/(1 - discount)."""
        return 1 / (1 - self.discount)

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
        targets = (self.rows if known.support is None else known.support).tocoo()
        elsewhere = targets.coords[1] != self.state_of[targets.coords[0]]
        left = np.zeros(self.num_states, dtype=bool)
        left[self.state_of[targets.coords[0][elsewhere]]] = True
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
        if (stated is not None) != (version == NUMBERED):
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
        entries = measure.repeat(np.diff(self.rows.indptr)) * self.rows.data
        entering = np.bincount(self.rows.indices, entries, minlength=self.num_states)
        given = self.initial if initial is None else initial
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
    header, arrays = archive(data, "world", 1, 2)
    initial, first = reals(arrays, "initial", 1), wholes(arrays, "choice_offsets")
    discount = header.get("discount")
    if not isinstance(discount, float) or not 0 < discount < 1:
        raise Refused(f"its discount is {discount!r}")
    if first.size != initial.size + 1 or first[0] != 0 or (np.diff(first) < 1).any():
        raise Refused("its choice offsets do not give every state an action")
    require_law("the initial law", initial, np.array([0]))
    rows = sparse_rows(arrays, "", (int(first[-1]), initial.size))
    if not np.diff(rows.indptr).all():
        raise Refused("a pair has no transition law")
    require_law("a transition law", rows.data, rows.indptr[:-1])
    known = _read_knowledge(header, arrays, rows, first)
    _check_counts(known, rows, initial)
    if known.is_estimate != (header["version"] == 2):
        raise Refused("its version and what it says about the errors of its laws do not agree")
    return StoredWorld(rows, first, initial, discount, known)


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
    return Knowledge(error, known, counts, starts, support, _actions(arrays, first))


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
    header, arrays = archive(data, "policy", 1, NUMBERED)
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


def read_records(data: bytes, world: StoredWorld) -> Records:
    """Demonstrations in an explicit world: every step is possible, every end rests."""
    records, header, arrays = read_episodes(data)
    if max(records.state.max(), records.next_state.max()) >= world.num_states:
        raise Refused("it visits a state that the world lacks")
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
    return Problem(
        read_class(header["cost_class"], matrix, vertices), world.per_pair(matrix), names,
        reals(arrays, "target", 1, len(names)), tuple(budgets), expectation,
        _declared_of_expert(header),
    )  # fmt: skip


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
