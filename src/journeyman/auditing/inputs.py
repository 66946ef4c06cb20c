"""The inputs of a run as plain arrays, each checked in the auditor's own way.

Whatever breaks a rule of its kind is `Refused`: then there is nothing from which figures could be
derived. Laws are used as they are stored, to the last bit.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from journeyman.auditing.costs import Costs
from journeyman.auditing.knowledge import EXACT, Knowledge, read_knowledge
from journeyman.auditing.reading import Arrays, Refused, archive
from journeyman.auditing.tables import (
    Bools,
    Floats,
    Ints,
    reals,
    require_law,
    sparse_rows,
    wholes,
    words,
)

NUMBERED = 2
"""Version of policies and demonstrations that number actions otherwise than 0, 1, 2, ..."""


@dataclass(frozen=True, eq=False)
class World:
    """Transition rows of the pairs, the first pair of every state, and the law of the start."""

    rows: Any
    first: Ints
    initial: Floats
    discount: float
    knowledge: Knowledge = EXACT

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
        marks = np.zeros(self.num_pairs, dtype=np.int64)
        np.add.at(marks, self.first[1:-1], 1)
        return np.cumsum(marks)

    @cached_property
    def rests(self) -> Bools:
        """States that every action keeps with certainty; a law that was only observed is none."""
        known = self.knowledge
        targets = (self.rows if known.support is None else known.support).tocoo()
        elsewhere = targets.coords[1] != self.state_of[targets.coords[0]]
        left = np.zeros(self.num_states, dtype=bool)
        left[self.state_of[targets.coords[0][elsewhere]]] = True
        if not known.of_steps and known.support is None:
            left[self.state_of[~known.surely_exact(self.num_pairs)]] = True
        return ~left

    def per_pair(self, rows: Any) -> Any:
        """Rows per pair, repeated over a state's actions where they were given per state."""
        if rows.shape[0] == self.num_pairs:
            return rows
        if rows.shape[0] != self.num_states:
            raise Refused(f"{rows.shape[0]} rows fit neither the pairs nor the states")
        return rows[self.state_of]

    def figure_per_pair(self, given: Floats) -> Floats:
        """One number per pair from a vector or from a (states x action numbers) table."""
        widest = 1 + int(self.numbers.max())
        if given.ndim == 2 and given.shape == (self.num_states, widest):
            return np.asarray(given[self.state_of, self.numbers])
        if given.ndim != 1:
            raise Refused(f"a cost has shape {given.shape}")
        return np.asarray(self.per_pair(given))

    @cached_property
    def numbers(self) -> Ints:
        """The number of every pair's action: as the file tells, or else from 0 in every state."""
        if self.knowledge.actions is not None:
            return self.knowledge.actions
        return np.asarray(np.arange(self.num_pairs) - self.first[self.state_of])

    def require_numbers(self, arrays: Arrays, version: int) -> None:
        """Whether a file with the offsets of this world's actions numbers them as it does."""
        told = wholes(arrays, "action_numbers") if "action_numbers" in arrays else None
        if (told is not None) != (version == NUMBERED):
            raise Refused("its version and what it says about action numbers do not agree")
        if told is None:
            told = np.asarray(np.arange(self.num_pairs) - self.first[self.state_of])
        if not np.array_equal(told, self.numbers):
            raise Refused("it numbers actions otherwise than the world")

    def pairs_of(self, states: Ints, actions: Ints) -> Ints:
        """The pairs of actions by their numbers."""
        most = 1 + int(max(self.numbers.max(), actions.max(initial=0)))
        offered, wanted = self.state_of * most + self.numbers, states * most + actions
        found = np.minimum(np.searchsorted(offered, wanted), offered.size - 1)
        if (actions < 0).any() or (offered[found] != wanted).any():
            raise Refused("it takes an action that the world lacks")
        return found

    def outflow(self, measure: Floats) -> Floats:
        """(B - discount P)' measure."""
        leaving = np.bincount(self.state_of, measure, minlength=self.num_states)
        entries = measure.repeat(np.diff(self.rows.indptr)) * self.rows.data
        entering = np.bincount(self.rows.indices, entries, minlength=self.num_states)
        return np.asarray(leaving - self.discount * entering)


@dataclass(frozen=True, eq=False)
class Records:
    """Demonstrations as one row per step, and the last state of every episode."""

    episode: Ints
    time: Ints
    pair: Ints
    next_state: Ints
    starts: Ints
    ends: Ints
    lengths: Ints
    terminated: Bools

    def __len__(self) -> int:
        return self.lengths.size

    def only(self, chosen: Bools) -> "Records":
        """Some of the episodes, in their order."""
        steps = chosen[self.episode]
        number = np.cumsum(chosen) - 1
        return Records(
            number[self.episode[steps]], self.time[steps], self.pair[steps],
            self.next_state[steps], self.starts[chosen], self.ends[chosen],
            self.lengths[chosen], self.terminated[chosen],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Budget:
    """A limit on a known cost, as it was given and per pair."""

    name: str
    given: Floats
    cost: Floats
    limit: float


@dataclass(frozen=True, eq=False)
class Question:
    """Cost class, target and budgets."""

    costs: Costs
    matrix: Any
    """The basis with one row per pair."""
    names: list[str]
    target: Floats
    budgets: tuple[Budget, ...]
    expectation: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Ranged:
    """Potentials that prove the attainable range of some costs: one row for each."""

    costs: Ints
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Points:
    """Dual points, one per row, and the measure that defines the policy."""

    weights: Floats
    values: Floats
    prices: Floats
    measure: Floats | None
    measure_scale: float
    ranged: Ranged | None = None


def read_world(data: bytes) -> World:
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
    known = read_knowledge(header, arrays, rows, first, initial)
    return World(rows, first, initial, discount, known)


def read_policy(data: bytes, world: World) -> Floats:
    """Probabilities per pair."""
    header, arrays = archive(data, "policy", 1, NUMBERED)
    if not np.array_equal(wholes(arrays, "choice_offsets"), world.first):
        raise Refused("it is a policy of another world")
    world.require_numbers(arrays, header["version"])
    law = reals(arrays, "probabilities", 1, world.num_pairs)
    require_law("the law of a state's actions", law, world.first[:-1])
    return law


def read_records(data: bytes, world: World) -> Records:
    header, arrays = archive(data, "demonstrations", 1, NUMBERED)
    states, actions, offsets = (wholes(arrays, name) for name in ("states", "actions", "offsets"))
    terminated = np.asarray(arrays["terminated"], dtype=bool)
    lengths = np.diff(offsets)
    count = lengths.size
    if not count or offsets[0] != 0 or (lengths < 1).any() or terminated.shape != (count,):
        raise Refused("its offsets do not describe episodes")
    if actions.size != offsets[-1] or states.size != offsets[-1] + count:
        raise Refused("it has not one state more than actions in every episode")
    if ((states < 0) | (states >= world.num_states)).any():
        raise Refused("it visits a state that the world lacks")
    episode = np.arange(count).repeat(lengths)
    at = np.arange(actions.size) + episode
    if "choice_offsets" in arrays and np.array_equal(arrays["choice_offsets"], world.first):
        world.require_numbers(arrays, header["version"])
    pair = world.pairs_of(states[at], actions)
    ends = states[offsets[1:] + np.arange(count)]
    possible = world.knowledge.possible(world.rows)
    if possible is not None and (np.asarray(possible[pair, states[at + 1]]).ravel() <= 0).any():
        raise Refused("it takes a step of probability 0")
    if (terminated & ~world.rests[ends]).any():
        raise Refused("an episode terminates in a state that does not rest")
    time = np.arange(actions.size) - offsets[:-1].repeat(lengths)
    starts = states[offsets[:-1] + np.arange(count)]
    return Records(episode, time, pair, states[at + 1], starts, ends, lengths, terminated)


def read_question(data: bytes, world: World) -> Question:
    header, arrays = archive(data, "problem", 1)
    names, budget_names = words(header, "names"), words(header, "budgets")
    if "basis" in arrays:
        matrix: Any = reals(arrays, "basis", 2)
    else:
        shape = (arrays["basis_indptr"].size - 1, len(names))
        matrix = sparse_rows(arrays, "basis_", shape)
    if 0 in matrix.shape or len(names) != matrix.shape[1]:
        raise Refused(f"it names {len(names)} costs of a basis of shape {matrix.shape}")
    scale = reals(arrays, "scale", 1, len(names)) if "scale" in arrays else np.ones(len(names))
    if (scale <= 0).any():
        raise Refused("a scale is not positive")
    limits = reals(arrays, "limits", 1, len(budget_names))
    given = [arrays[f"budget_{j}"].astype(float) for j in range(len(budget_names))]
    if not all(one.size and np.isfinite(one).all() for one in given):
        raise Refused("the cost of a budget is not finite")
    budgets = (
        Budget(name, one, world.figure_per_pair(one), float(limit))
        for name, one, limit in zip(budget_names, given, limits, strict=True)
    )
    expectation = header.get("expectation")
    if not isinstance(expectation, dict):
        raise Refused("it does not say where its target comes from")
    return Question(
        Costs(str(header.get("cost_class")), scale, matrix), world.per_pair(matrix), names,
        reals(arrays, "target", 1, len(names)), tuple(budgets), expectation,
    )  # fmt: skip


def read_points(data: bytes, world: World, question: Question) -> Points:
    _, arrays = archive(data, "witness", 1)
    weights = reals(arrays, "cost_weights", 2)
    count = weights.shape[0]
    values, prices = reals(arrays, "values", 2, count), reals(arrays, "budget_prices", 2, count)
    sizes = (weights.shape[1], values.shape[1], prices.shape[1])
    if not count or sizes != (len(question.names), world.num_states, len(question.budgets)):
        raise Refused("it holds no dual points of this problem")
    ranged = _ranged(arrays, world, question)
    if "measure" not in arrays:
        return Points(weights, values, prices, None, 1.0, ranged)
    scale = float(reals(arrays, "measure_scale", 0))
    if scale < 0:
        raise Refused(f"the measure is scaled by {scale}")
    measure = reals(arrays, "measure", 1, world.num_pairs)
    return Points(weights, values, prices, measure, scale, ranged)


def _ranged(arrays: Arrays, world: World, question: Question) -> Ranged | None:
    """The potentials of attainable ranges, where the trivial bound rests on some."""
    if "range_costs" not in arrays:
        return None
    costs = wholes(arrays, "range_costs")
    low, high = (reals(arrays, name, 2, costs.size) for name in ("low_values", "high_values"))
    if ((costs < 0) | (costs >= len(question.names))).any() or (np.diff(costs) <= 0).any():
        raise Refused("its potentials are not those of costs of this problem")
    if costs.size and (low.shape[1], high.shape[1]) != (world.num_states, world.num_states):
        raise Refused("its potentials do not have a value for every state")
    return Ranged(costs, low, high)


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


def read_recovered(data: bytes, question: Question) -> Floats:
    """The weights of a cost that a method inferred: one for every cost; nothing rests on them."""
    _, arrays = archive(data, "recovered", 1)
    return reals(arrays, "weights", 1, question.target.size)
