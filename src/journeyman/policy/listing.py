"""Policies as tables by state: what people read, and the CSV file that every reader takes.

    state,action,probability,visits
    pump-ok,run,1.0,0.78
    pump-worn,replace,0.9,0.2
    pump-worn,run,0.1,0.2

A row for every action that is ever taken; an action without a row has probability 0. Numbers are
written in full, so that reading gives the same policy to the last bit. States and actions go by
their names where these say which one is meant, otherwise by their numbers, with a column
`state_name` for people. A policy that depends on time has the step in a column t, from 0 on.

*Visits* are the share of the time that the policy spends in a state: of the discounted time, of the
expected steps until the goal with discount 1, of the (discounted) time of an episode in a world
with a horizon, of all steps in the long run in one of average costs. They are no part of the policy
and are not read. The end of an episode, where nothing is decided, has no row in a listing.

Beside the policy stands what an expert was seen to do, where that was counted: how often it took
which action in a state. That is no part of files either.
"""

import csv
import io
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, TextIO

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.errors import InvalidFile, InvalidPolicy
from journeyman.policy.policy_evaluation import occupancy
from journeyman.policy.table import SUM_TOLERANCE, Policy
from journeyman.storage import PathLike, write_atomically
from journeyman.tables import (
    WHOLE,
    Ids,
    Table,
    WorldNames,
    csv_table,
    frame_table,
    is_frame,
    is_number,
)
from journeyman.world import World
from journeyman.world.layers import layered_pairs

COLUMNS = ("t", "state", "action", "probability")
NEEDED = COLUMNS[1:]
REMEDY = (
    "Give a row state,action,probability for every action that is taken, as journeyman policy "
    "export writes them"
)


@dataclass(frozen=True)
class Choice:
    """What a policy does in one state, the likeliest action first."""

    state: int
    name: str
    """Of the state: its name, or its number."""
    t: int | None
    """The step, where the policy depends on time."""
    visits: float | None
    actions: tuple[str, ...]
    """Of positive probability."""
    probabilities: tuple[float, ...]
    seen: tuple[tuple[str, int], ...] = ()
    """How often an expert was seen to take which action here, the most frequent first."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        step = {} if self.t is None else {"t": self.t}
        law = [
            {"action": name, "probability": share}
            for name, share in zip(self.actions, self.probabilities, strict=True)
        ]
        return {
            "state": self.state, "name": self.name, **step, "action": self.actions[0],
            "probability": self.probabilities[0], "visits": self.visits, "actions": law,
            "expert": [{"action": name, "count": count} for name, count in self.seen],
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Listing:
    """A policy in a world, state by state.

    In a world with a horizon or of average costs the states are those of the world it was made of.
    A policy that does the same at every step of an episode has one row per state there.
    """

    world: World
    """The one that the policy acts in, without layers and added states."""
    steps: int | None
    """Of an episode, where the policy depends on time."""
    law: FloatArray
    """(steps x) pairs of `world`."""
    visits: FloatArray | None
    """(steps x) states; None for a policy that never comes to an end, with discount 1."""
    whole: str
    """What visits are shares of."""
    state_names: tuple[str, ...] | None
    seen: IntArray | None = None
    """(steps x) pairs: how often the expert was seen to take them."""

    @classmethod
    def of(
        cls,
        world: World,
        policy: Policy,
        *,
        state_names: Sequence[str] | None = None,
        seen: IntArray | None = None,
    ) -> "Listing":
        """`state_names` are for people, in place of those of the world. A policy for episodes of so
        many steps is listed as one of the world with that horizon. `seen` counts how often an
        expert took every pair (`Demonstrations.counts_in`)."""
        if policy.horizon is not None and world.layers is None:
            world = world.with_horizon(policy.horizon)
        made = world.reduction
        base = world if made is None else made.base
        steps = None if world.layers is None else world.layers.horizon
        law = policy.on(world)[: (steps or 1) * base.num_pairs].reshape(-1, base.num_pairs)
        try:
            visits = visits_of(world, policy)
        except InvalidPolicy:
            visits = None
        seen = None if seen is None else seen[: law.size]
        if steps is not None and (law == law[0]).all():
            steps, law = None, law[:1]
            visits = None if visits is None else visits.reshape(-1, base.num_states).sum(axis=0)
            seen = None if seen is None else seen.reshape(-1, base.num_pairs).sum(axis=0)
        names = base.state_names if state_names is None else tuple(state_names)
        return cls(base, steps, law.ravel(), visits, _whole(world), names, seen)

    @property
    def num_rows(self) -> int:
        """States, at every step where the policy depends on time; ends are not counted."""
        return int(np.count_nonzero(self._decides))

    @cached_property
    def _decides(self) -> BoolArray:
        """Places, step by step, in which something is decided."""
        states = ~(self.world.absorbing & (self.world.pairs.actions_per_state == 1))
        if self.world.sink is not None:
            states[self.world.sink] = False
        if self.world.has_goal:
            states &= ~self.world.absorbing
        return np.tile(states, self.steps or 1)

    def most_visited(self, limit: int | None = None) -> list[Choice]:
        """The first rows, the most visited first; by number where visits are equal or unknown."""
        places = np.flatnonzero(self._decides)
        if self.visits is not None:
            places = places[np.argsort(-self.visits[places], kind="stable")]
        return [self.choice(int(place)) for place in places[:limit]]

    def in_state(self, state: int) -> list[Choice]:
        """What is done in one state, at every step where that depends on time."""
        count = self.world.num_states
        return [self.choice(t * count + state) for t in range(self.steps or 1)]

    def choice(self, place: int) -> Choice:
        """One row; places count states, step by step."""
        pairs, count = self.world.pairs, self.world.num_states
        t, state = divmod(place, count)
        first, behind = int(pairs.offsets[state]), int(pairs.offsets[state + 1])
        law = self.law[t * len(pairs) + first : t * len(pairs) + behind]
        order = [k for k in np.argsort(-law, kind="stable").tolist() if law[k] > 0]
        counts = () if self.seen is None else self.seen[t * len(pairs) + first :][: behind - first]
        often = [k for k in np.argsort(-np.asarray(counts), kind="stable").tolist() if counts[k]]
        return Choice(
            state, self.state_name(state), None if self.steps is None else t,
            None if self.visits is None else float(self.visits[place]),
            tuple(self.action_name(int(pairs.actions[first + k])) for k in order),
            tuple(float(law[k]) for k in order),
            tuple((self.action_name(int(pairs.actions[first + k])), int(counts[k])) for k in often),
        )  # fmt: skip

    def state_name(self, state: int) -> str:
        """For people: the name, or the number with the place where there is one."""
        if self.state_names is not None:
            return self.state_names[state]
        places = self.world.coordinates
        if places is None:
            return str(state)
        return f"{state} ({', '.join(f'{part:.6g}' for part in places[state])})"

    def action_name(self, action: int) -> str:
        names = self.world.action_names
        return str(action) if names is None else names[action]

    @property
    def decisions_seen(self) -> int:
        """How many of the expert's decisions were recorded, where there was a choice."""
        return 0 if self.seen is None else int(self.seen[self._chosen].sum())

    @property
    def agreement(self) -> float | None:
        """The mean probability with which the policy does what the expert was seen to do, over all
        of its recorded decisions; None where none was recorded."""
        if self.seen is None or not self.decisions_seen:
            return None
        common = self.law[self._chosen] @ self.seen[self._chosen]
        return float(common / self.decisions_seen)

    @cached_property
    def _chosen(self) -> BoolArray:
        """Pairs, step by step, of states that have other pairs too."""
        pairs = self.world.pairs
        choice = self._decides.reshape(-1, self.world.num_states) & (pairs.actions_per_state > 1)
        return np.asarray(choice[:, pairs.states].ravel())

    @property
    def unlisted(self) -> float:
        """The share of the time that is spent where nothing is decided."""
        if self.visits is None:
            return 0.0
        return float(self.visits[~self._decides].sum())

    def save(self, path: PathLike) -> None:
        """Write the CSV file, atomically."""

        def write(stream: BinaryIO) -> None:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            self.write(text)
            text.flush()
            text.detach()

        write_atomically(path, write)

    def write(self, stream: TextIO) -> None:
        """The CSV file as text."""
        rows = csv.DictWriter(stream, self._columns, lineterminator="\n")
        rows.writeheader()
        rows.writerows(self._rows())

    def to_rows(self) -> list[dict[str, Any]]:
        """The rows of the CSV file."""
        return list(self._rows())

    @cached_property
    def _by_name(self) -> bool:
        own = self.world.state_names
        return self.state_names == own and _identify(own)

    @cached_property
    def _columns(self) -> list[str]:
        return (
            ["t"] * (self.steps is not None) + ["state", "action", "probability"]
            + ["visits"] * (self.visits is not None)
            + ["state_name"] * (self.state_names is not None and not self._by_name)
        )  # fmt: skip

    def _rows(self) -> Iterator[dict[str, Any]]:
        count, pairs = self.world.num_states, self.world.pairs
        states: Any = self.world.state_names if self._by_name else range(count)
        actions: Any = self.world.action_names
        actions = actions if _identify(actions) else range(pairs.width)
        for pair in np.flatnonzero(self.law).tolist():
            t, own_pair = divmod(pair, len(pairs))
            state = int(pairs.states[own_pair])
            row = {
                "t": t, "state": states[state], "action": actions[int(pairs.actions[own_pair])],
                "probability": float(self.law[pair]),
            }  # fmt: skip
            if self.visits is not None:
                row["visits"] = float(self.visits[t * count + state])
            if self.state_names is not None:
                row["state_name"] = str(self.state_names[state])
            yield {name: row[name] for name in self._columns}


def _whole(world: World) -> str:
    if world.averages is not None:
        return "all steps in the long run"
    if world.layers is not None:
        return f"the {'discounted ' * (world.layers.discount < 1)}time of an episode"
    return "the expected steps until the end" if world.has_goal else "the discounted time"


def _identify(names: Sequence[str] | None) -> bool:
    """Whether names can stand in place of numbers: each is read as itself, and as no other."""
    if names is None:
        return False
    plain = all(
        name and name == name.strip() and name.isprintable() and not is_number(name)
        for name in names
    )
    return plain and len(set(names)) == len(names)


def visits_of(world: World, policy: Policy) -> FloatArray:
    """The share of the time that `policy` spends in every state: of the base world in one of
    average costs, and of every layer one after the other in a world with a horizon."""
    found = occupancy(world, policy)
    if world.averages is not None:
        stationary = world.averages.stationary(found.measure)
        return world.averages.base.pairs.total(stationary)
    if world.layers is not None:
        own = found.of_states * world.layers.state_factors
        return np.asarray(own[: world.layers.end] / world.layers.total_time)
    counted = np.where(world.has_goal & world.absorbing, 0.0, found.of_states)
    return np.asarray(counted / found.steps)


def read_policy(source: Any, world: World) -> Policy:
    """The policy in a CSV file or a data frame, as a policy of `world`.

    With a column t it depends on time: on that of the world's horizon, or in a world without one
    for as many steps as there are. Without it, it acts in the same way at every step. States that
    offer one action, and the end of episodes, need no row. The first wrong row is named.
    """
    table = frame_table(source) if is_frame(source) else csv_table(source)
    table = table.knowing(COLUMNS)
    missing = [name for name in NEEDED if name not in table.header]
    if missing:
        raise InvalidFile(
            f"{table.name} has no column {missing[0]!r} (its columns are "
            f"{', '.join(name[:40] for name in table.header[:8])})",
            REMEDY,
        )
    for name in COLUMNS:
        if table.header.count(name) > 1:
            raise InvalidFile(f"{table.name} has two columns {name!r}", "Leave one out")
    made = world.reduction
    rows = _Rows(table, world if made is None else made.base)
    if not rows.timed:
        return rows.policy(1).fitted(world)
    return rows.policy(rows.num_steps if world.layers is None else world.layers.horizon)


class _Rows:
    """The rows of a table; the first wrong one is named."""

    def __init__(self, table: Table, base: World) -> None:
        self.table, self.base = table, base
        names = WorldNames.of(base)
        self.timed = "t" in table.header
        self.ids = {
            "state": Ids(table, "state", names.states, REMEDY),
            "action": Ids(table, "action", names.actions, REMEDY),
        }
        self.at = {name: table.header.index(name) for name in COLUMNS if name in table.header}
        numbers, law = array("q"), array("d")
        for number, cells in table.rows:
            *whole, probability = self._read(number, cells)
            numbers.extend(whole)
            law.append(probability)
        if not law:
            raise InvalidFile(f"{table.name} holds no row", REMEDY)
        self.lines, self.times, self.states, self.actions = np.array(numbers).reshape(-1, 4).T
        self.probabilities = np.array(law)
        self._require_offered()
        self._require_once()

    @property
    def num_steps(self) -> int:
        return int(self.times.max()) + 1

    def _read(self, number: int, cells: list[str]) -> tuple[int, int, int, int, float]:
        where = self.table.at(number)
        if len(cells) != len(self.table.header):
            raise InvalidFile(
                f"{where} has {len(cells)} entries, the first line names {len(self.table.header)}",
                "Give every row as many entries; a name with a comma stands in quotes",
            )
        return (
            number,
            self._step(cells, where) if self.timed else 0,
            self._which("state", cells, number),
            self._which("action", cells, number),
            self._probability(cells, where),
        )

    def _which(self, name: str, cells: list[str], line: int) -> int:
        """The number of a state or an action, written as a number or a name."""
        number = self.ids[name].number(cells[self.at[name]].strip(), line, name)
        if name == "state" and not 0 <= number < self.base.num_states:
            raise InvalidFile(
                f"{self.table.at(line)}: state is {number}, and the world has the states "
                f"0..{self.base.num_states - 1}",
                "Use a policy made for this world",
            )
        return number

    def _step(self, cells: list[str], where: str) -> int:
        text = cells[self.at["t"]].strip()
        if not WHOLE.fullmatch(text) or text.startswith("-"):
            raise InvalidFile(
                f"{where}: t is {text[:40]!r}, expected the step of an episode",
                "Count steps from 0; without a column t the policy is the same at every step",
            )
        return int(text.partition(".")[0])

    def _probability(self, cells: list[str], where: str) -> float:
        text = cells[self.at["probability"]].strip()
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not 0 <= value <= 1 + SUM_TOLERANCE:
            raise InvalidFile(
                f"{where}: probability is {text[:40]!r}",
                "Write a number between 0 and 1, with a decimal point"
                + (", not per cent" if value > 1 or text.endswith("%") else ""),
            )
        return value

    def _require_offered(self) -> None:
        offered = self.base.pairs.offers(self.states, self.actions)
        if not offered.all():
            row = int(np.argmin(offered))
            state, names = int(self.states[row]), self.base.action_names
            action = int(self.actions[row])
            shown = repr(names[action][:40]) if names and 0 <= action < len(names) else action
            raise InvalidFile(
                f"{self.table.at(self.lines[row])}: state {self._shown(state)} has no action "
                f"{shown}; it has {self._actions(state)}",
                "Give actions that the state offers; one that is never taken needs no row",
            )

    def _require_once(self) -> None:
        """Refuse the second of two rows about one thing; afterwards `keys` are pairs, by step."""
        pairs = self.base.pairs.index(self.states, self.actions)
        both = np.column_stack([self.times, pairs])
        _, first, which = np.unique(both, axis=0, return_index=True, return_inverse=True)
        again = first[which.ravel()] < np.arange(len(both))
        if again.any():
            row = int(np.argmax(again))
            raise InvalidFile(
                f"{self.table.at(self.lines[row])} gives the same state and action"
                f"{' at the same step' * self.timed} as {self.table.unit} "
                f"{self.lines[first[which.ravel()[row]]]}",
                "Give each once",
            )
        self.pairs = pairs

    def policy(self, steps: int) -> Policy:
        """The policy of the base world or, with a column t, of so many layers of it."""
        pairs, count = self.base.pairs, self.base.num_states
        self._require_steps(steps)
        law, given = np.zeros(steps * len(pairs)), np.zeros(steps * count, dtype=bool)
        law[self.times * len(pairs) + self.pairs] = self.probabilities
        given[self.times * count + self.states] = True
        self._fill(law, given, steps)
        self._require_sums(law, steps)
        if not self.timed:
            return Policy(law, pairs)
        layered = layered_pairs(pairs, steps)
        return Policy(np.append(law, layered.uniform[len(law) :]), layered)

    def _require_steps(self, steps: int) -> None:
        if self.num_steps > steps:
            row = int(np.argmax(self.times >= steps))
            raise InvalidFile(
                f"{self.table.at(self.lines[row])}: t is {self.times[row]}, and episodes have "
                f"{steps} steps",
                f"Give the steps 0..{steps - 1}, or another horizon",
            )
        found = np.unique(self.times)
        if found.size < steps:
            lacking = int(np.argmin(np.append(found, -1) == np.arange(found.size + 1)))
            raise InvalidFile(
                f"{self.table.name} has no row for step {lacking}, of {steps:,} steps",
                "Give every step from 0 on",
            )

    def _fill(self, law: FloatArray, given: BoolArray, steps: int) -> None:
        """Where nothing can be chosen, or nothing follows from it, no row is needed."""
        base, pairs = self.base, self.base.pairs
        free = pairs.actions_per_state == 1
        if base.sink is not None:
            free[base.sink] = True
        lacking = ~given & ~np.tile(free, steps)
        if lacking.any():
            t, state = divmod(int(np.argmax(lacking)), base.num_states)
            when = f" at step {t}" if self.timed else ""
            others = int(lacking.sum()) - 1
            more = f" (nor for {others:,} others)" if others else ""
            raise InvalidFile(
                f"{self.table.name} has no row for state {self._shown(state)}{when}{more}",
                "Give rows for every state with more than one action",
            )
        filled = np.repeat(~given, np.tile(pairs.actions_per_state, steps))
        law[filled] = np.tile(pairs.uniform, steps)[filled]

    def _require_sums(self, law: FloatArray, steps: int) -> None:
        count, pairs = self.base.num_states, self.base.pairs
        sums = pairs.total(law.reshape(steps, -1).T).T.ravel()
        wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
        if wrong.any():
            t, state = divmod(int(np.argmax(wrong)), count)
            own = self.lines[(self.times == t) & (self.states == state)]
            when = f" at step {t}" if self.timed else ""
            others = f" ({self.table.unit}s {_listed(own.tolist())})" if own.size > 1 else ""
            raise InvalidFile(
                f"{self.table.at(own[0])}: the probabilities of state {self._shown(state)}{when}"
                f"{others} add up to {float(sums[t * count + state]):.10g}",
                "They must add up to 1; an action without a row has probability 0",
            )

    def _shown(self, state: int) -> str:
        names = self.base.state_names
        return str(state) if names is None else repr(names[state][:40])

    def _actions(self, state: int) -> str:
        pairs, names = self.base.pairs, self.base.action_names
        if names is None:
            return pairs.actions_in_words(state)
        own = pairs.actions[int(pairs.offsets[state]) : int(pairs.offsets[state + 1])]
        return ", ".join(repr(names[int(one)][:40]) for one in own[:8]) + ", ..." * (own.size > 8)


def _listed(lines: Sequence[int]) -> str:
    shown = ", ".join(str(line) for line in lines[:4])
    return f"{shown} and {len(lines) - 4} more" if len(lines) > 4 else shown
