"""One session of the studio: a world, what was demonstrated in it, and what is known since.

A session is a directory, from its first step on:

    session.json      the choice of the world, settings, every recorded episode, the curve
    attempt.jsonl     the actions of the episode under way, one line each, written as they happen
    world.npz         the world
    costs.npz         the costs that may matter
    certified/        policy, certificate and evidence, as `apprentice.save` writes them

`session.json` is replaced in one step whenever an episode is finished or anything else changes, and
a step is written before it is answered: a server that is killed loses nothing. What cannot be
written did not happen: the session stays as it was. Nothing certified is read from `session.json`;
it comes from the run in `certified/`, or is found anew.

*Chance.* What a step leads to is drawn by a generator whose seed belongs to the attempt and to the
time of the step. Undone and taken again, the same action leads to the same state: nobody can undo
until the outcome pleases them. A restarted attempt has new numbers.
"""

import errno
import json
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import assign
from journeyman.costs import CostBasis
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidFile, InvalidInput
from journeyman.storage import (
    digest,
    load_arrays,
    naming,
    read_json,
    save_arrays,
    take,
    write_text,
)
from journeyman.studio.worlds import MOST_STEPS, STEPS, Stage, action_names, restored
from journeyman.world import World

KIND, VERSION = "journeyman studio session", 2
SESSION, ATTEMPT, WORLD, COSTS, CERTIFIED = (
    "session.json", "attempt.jsonl", "world.npz", "costs.npz", "certified",
)  # fmt: skip
REPORT, CHECKPOINTS, NOTE = "report.html", "checkpoints", "studio-note.txt"
LARGEST = 64 << 20
MOST_EPISODES, MOST_RECORDED = 2_000, 200_000
"""Episodes and steps of one session."""
MOST_POINTS, CURVE = 600, 16
"""Points of curves that are kept, and drawn."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
PREMISES = ("rational", "deterministic", "none")
SOLVERS = ("linear-program", "column-generation", "sgd-al")
COST_CLASSES = ("infinity-ball", "euclidean-ball", "l1-ball", "simplex")
START = 1 << 31
"""The time of the draw of a start, apart from those of steps."""


class Conflict(Exception):
    """What was asked for does not fit the present state: another tab was there first."""


class Refused(InvalidInput):
    """The session cannot do that now."""


@dataclass(frozen=True)
class Settings:
    """What is declared about the expert, and what is asked of the certificate."""

    premise: str = "rational"
    regret_per_step: float = 0.01
    cost_class: str = "infinity-ball"
    failure_probability: float = 0.05

    @classmethod
    def of(cls, given: Any) -> "Settings":
        """Checked, from plain values."""
        if not isinstance(given, dict) or set(given) - set(cls.__dataclass_fields__):
            raise Refused("the settings are not understood", "Send the settings of the page")
        made = cls(**given)
        if made.premise not in PREMISES or made.cost_class not in COST_CLASSES:
            raise Refused(
                f"there is no premise {made.premise!r} with the class {made.cost_class!r}",
                f"Take one of {', '.join(PREMISES)} and of {', '.join(COST_CLASSES)}",
            )
        for name, low, high in (("regret_per_step", 0, 1e6), ("failure_probability", 1e-9, 0.5)):
            value = getattr(made, name)
            sound = isinstance(value, int | float) and not isinstance(value, bool)
            if not sound or not low <= value <= high:
                raise Refused(f"{name} is {value!r}", f"Give a number from {low:g} to {high:g}")
        return made


@dataclass(frozen=True)
class Step:
    """One step: what was intended, and what happened."""

    action: int
    state: int
    """Where it led."""
    shown: int | None = None
    """The cell to draw, where the state has none because the episode is over."""
    slipped: bool = False
    intended: int | None = None
    """The cell, or the state, that was likeliest or aimed at."""


@dataclass(frozen=True)
class Episode:
    """A recorded demonstration."""

    number: int
    """Its name for people: counted from 1, never given twice."""
    states: tuple[int, ...]
    actions: tuple[int, ...]
    terminated: bool
    chosen: bool = False
    """Whether its start was chosen instead of drawn."""
    slips: int = 0
    undone: int = 0
    limit: bool = False
    """Whether the time limit cut it off."""


@dataclass
class Attempt:
    """The episode under way."""

    number: int
    start: int
    chosen: bool = False
    steps: list[Step] = field(default_factory=list)
    undone: int = 0

    @property
    def state(self) -> int:
        return self.steps[-1].state if self.steps else self.start


@dataclass
class Session:
    """The state of one session, in memory and on disk."""

    name: str
    directory: Path
    """Of the session; it may not exist yet."""
    stage: Stage
    settings: Settings = field(default_factory=Settings)
    episodes: list[Episode] = field(default_factory=list)
    attempt: Attempt = field(default_factory=lambda: Attempt(0, 0))
    seed: int = 0
    next_number: int = 1
    view: dict[str, Any] | None = None
    """What is certified, as the page shows it."""
    saved_key: str | None = None
    """The key of what lies in `certified/`."""
    points: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Bounds by what they rest on, for the curve."""
    method: dict[str, Any] | None = None
    """Of a long solve that can be continued."""
    version: int = 0
    written: bool = False

    @classmethod
    def begin(cls, directory: Path, stage: Stage, settings: Settings | None = None) -> "Session":
        """A new session below `directory`; nothing is written yet."""
        name = f"studio-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        session = cls(
            name, directory / name, stage, settings or Settings(), seed=secrets.randbits(48)
        )
        if session.world.is_estimated and settings is None:
            session.settings = Settings(premise="none")
        session.attempt = session._new_attempt()
        return session

    @property
    def world(self) -> World:
        return self.stage.world

    # Demonstrating

    def require_at(self, attempt: Any, step: Any) -> None:
        """Refuse what was meant for another moment."""
        if (attempt, step) != (self.attempt.number, len(self.attempt.steps)):
            raise Conflict

    @property
    def ended(self) -> str | None:
        """How the episode under way has ended: terminated, limit or not at all."""
        if self.attempt.steps and self.world.absorbing[self.attempt.state]:
            return "terminated"
        return "limit" if len(self.attempt.steps) >= self.stage.most_steps else None

    def step(self, action: Any) -> Step:
        """Take an action; chance decides where it leads."""
        if self.ended is not None:
            raise Refused("the episode has ended", "Finish it (Enter), undo a step or restart")
        taken = self._outcome(action)
        if not self.written:
            self.save()
        self._append({"attempt": self.attempt.number, "action": action})
        self.attempt.steps.append(taken)
        self.version += 1
        return taken

    def undo(self) -> None:
        """Take the last step back; taken again it leads to the same place."""
        if not self.attempt.steps:
            raise Refused("there is no step to undo", "Take a step first")
        self._append({"attempt": self.attempt.number, "undo": True})
        self.attempt.steps.pop()
        self.attempt.undone += 1
        self.version += 1

    def restart(self, start: Any = None) -> None:
        """Discard the episode under way; begin where chance says, or in a chosen state."""
        if start is not None:
            sound = isinstance(start, int) and not isinstance(start, bool)
            if not sound or not 0 <= start < self.world.num_states:
                raise Refused(f"there is no state {start!r}", "Choose a state of the world")
            if self.world.absorbing[start]:
                raise Refused(f"episodes end in state {start}", "Choose another state")
        with self._written():
            self.attempt = self._new_attempt(start)

    def finish(self) -> Episode:
        """Keep the episode under way as a demonstration."""
        attempt = self.attempt
        if not attempt.steps:
            raise Refused("the episode has no step", "Take a step first")
        recorded = sum(len(one.actions) for one in self.episodes)
        if len(self.episodes) >= MOST_EPISODES or recorded + len(attempt.steps) > MOST_RECORDED:
            raise Refused("the session is full", "Begin another one; journeyman learn takes more")
        kept = Episode(
            self.next_number,
            (attempt.start, *(one.state for one in attempt.steps)),
            tuple(one.action for one in attempt.steps),
            self.ended == "terminated", attempt.chosen,
            sum(one.slipped for one in attempt.steps), attempt.undone, self.ended == "limit",
        )  # fmt: skip
        with self._written():
            self.episodes = [*self.episodes, kept]
            self.next_number += 1
            self.attempt = self._new_attempt()
        return kept

    def drop(self, number: Any) -> None:
        """Leave a recorded episode out."""
        if number not in [one.number for one in self.episodes]:
            raise Refused(f"there is no episode {number!r}", "Drop one of the list")
        with self._written():
            self.episodes = [one for one in self.episodes if one.number != number]
            if not self.episodes:
                self.view = None

    def declare(self, settings: Settings) -> None:
        """Other settings."""
        if self.world.is_estimated and settings.premise != "none":
            raise Refused(
                "premises about the expert need known laws; those of this world are estimated",
                "Declare nothing",
            )
        with self._written():
            self.settings = settings

    @contextmanager
    def _written(self) -> Iterator[None]:
        """A change that is in the files as well, or nowhere."""
        names = ("settings", "episodes", "attempt", "next_number", "view")
        before = {name: getattr(self, name) for name in names}
        try:
            yield
            if self.written:
                self.save()
        except BaseException:
            vars(self).update(before)
            raise
        self.version += 1

    def offered(self, state: int) -> list[int]:
        """The numbers of the actions of a state."""
        pairs = self.world.pairs
        inner = slice(int(pairs.offsets[state]), int(pairs.offsets[state + 1]))
        return [int(number) for number in pairs.actions[inner]]

    def _new_attempt(self, start: int | None = None) -> Attempt:
        number = self.attempt.number + 1
        if start is not None:
            return Attempt(number, start, chosen=True)
        chance = np.random.default_rng([self.seed, number, START])
        return Attempt(number, int(chance.choice(self.world.num_states, p=self.world.initial)))

    def _outcome(self, action: Any) -> Step:
        """Where an action leads at this moment; always the same for the same moment."""
        state, offered = self.attempt.state, self.offered(self.attempt.state)
        if isinstance(action, bool) or not isinstance(action, int) or action not in offered:
            raise Refused(
                f"action {action!r} is not offered in state {state}",
                f"Take one of {', '.join(map(str, offered))}",
            )
        pair = int(self.world.pairs.offsets[state]) + offered.index(action)
        rows = self.world.transition
        inner = slice(int(rows.indptr[pair]), int(rows.indptr[pair + 1]))
        targets, law = rows.indices[inner], rows.data[inner]
        chance = np.random.default_rng([self.seed, self.attempt.number, len(self.attempt.steps)])
        reached = int(chance.choice(targets, p=law / law.sum()))
        shown = self._end_shown(pair, reached, chance)
        intended = self._intended(state, action, targets, law)
        happened = reached if self.stage.board["kind"] != "grid" else self._cell(reached, shown)
        slipped = targets.size > 1 and intended is not None and intended != happened
        return Step(action, reached, shown, bool(slipped), intended)

    def _cell(self, state: int, shown: int | None) -> int:
        return int(self.stage.board["place"][state]) if shown is None else shown

    def _end_shown(self, pair: int, reached: int, chance: np.random.Generator) -> int | None:
        """The cell in which an episode ended that the world has no state for."""
        branches = self.stage.board.get("ends", {}).get(str(pair))
        if reached != self.world.sink or not branches:
            return None
        cells, law = np.array(branches).T
        return int(chance.choice(cells, p=law / law.sum()))

    def _intended(self, state: int, action: int, targets: Any, law: Any) -> int | None:
        """What the action aims at: on a grid the next cell in its direction, else the likeliest
        state, if one is likelier than all others together."""
        board = self.stage.board
        move = STEPS.get(board["actions"][action]["name"].lower())
        if board["kind"] == "grid" and move is not None and board["place"][state] >= 0:
            row, column = divmod(board["place"][state], board["columns"])
            row, column = row + move[0], column + move[1]
            inner = 0 <= row < board["rows"] and 0 <= column < board["columns"]
            cell = row * board["columns"] + column
            free = inner and board["cells"][cell] >= 0
            return int(cell if free else board["place"][state])
        best = int(np.argmax(law))
        if law[best] <= 0.5:
            return None
        likely = int(targets[best])
        return int(board["place"][likely]) if board["kind"] == "grid" else likely

    # What the certificate rests on

    def counted(self, upto: int | None = None) -> list[Episode]:
        """The episodes that the premise can use, the first `upto` recorded ones.

        Statistics about the expert need starts that were drawn; what is declared about single
        steps holds wherever they begin.
        """
        kept = self.episodes[:upto]
        if self.settings.premise == "rational":
            return kept
        return [one for one in kept if not one.chosen]

    def key(self, upto: int | None = None) -> str:
        """What a certificate of the first `upto` episodes rests on, as one word."""
        numbers = [one.number for one in self.counted(upto)]
        return digest(json.dumps(asdict(self.settings), sort_keys=True), numbers)[:16]

    def demonstrations(self, episodes: Sequence[Episode] | None = None) -> Demonstrations:
        """Recorded episodes as the library has them."""
        chosen = self.episodes if episodes is None else episodes
        lengths = [len(one.actions) for one in chosen]
        return Demonstrations(
            [state for one in chosen for state in one.states],
            [action for one in chosen for action in one.actions],
            np.concatenate([[0], np.cumsum(lengths)]).astype(int),
            [one.terminated for one in chosen],
            choice_offsets=self.world.pairs,
        )

    def curve(self) -> list[dict[str, Any]]:
        """Known points of the bound against the number of demonstrations."""
        found = [(upto, self.points.get(self.key(upto))) for upto in self.curve_sizes()]
        return [{"episodes": upto, **point} for upto, point in found if point is not None]

    def curve_sizes(self) -> list[int]:
        """Numbers of demonstrations at which the curve is drawn."""
        count = len(self.episodes)
        if not count:
            return []
        return sorted({round(float(one)) for one in np.linspace(1, count, min(count, CURVE))})

    def missing_points(self) -> list[int]:
        """Of those the ones that are not known yet, the largest first."""
        return [
            upto for upto in reversed(self.curve_sizes())
            if self.counted(upto) and self.key(upto) not in self.points
        ]  # fmt: skip

    def certified(self, view: dict[str, Any], point: dict[str, Any]) -> None:
        """Keep what a worker has found."""
        self.view = view
        self.version += 1
        self.remember(view["key"], point)

    def remember(self, key: str, point: dict[str, Any]) -> None:
        self.points[key] = point
        for old in list(self.points)[: max(0, len(self.points) - MOST_POINTS)]:
            del self.points[old]

    # What the page shows

    def position(self) -> dict[str, Any]:
        """The episode under way."""
        attempt, state = self.attempt, self.attempt.state
        last = attempt.steps[-1] if attempt.steps else None
        return {
            "version": self.version, "attempt": attempt.number, "steps": len(attempt.steps),
            "start": attempt.start, "chosen": attempt.chosen, "state": state,
            "name": self.state_name(state), "offered": self.offered(state), "ended": self.ended,
            "last": None if last is None else asdict(last),
            "trail": self._trail(), "undone": attempt.undone,
        }  # fmt: skip

    def _trail(self) -> list[int]:
        """The last cells or states, the newest last."""
        states = [self.attempt.start, *(one.state for one in self.attempt.steps[-40:])]
        if self.stage.board["kind"] != "grid":
            return states[-12:]
        shown = [None, *(one.shown for one in self.attempt.steps[-40:])]
        return [self._cell(state, cell) for state, cell in zip(states, shown, strict=True)]

    def state_name(self, state: int) -> str:
        names = self.world.state_names
        if names is not None:
            return names[state]
        board = self.stage.board
        if board["kind"] == "grid" and board["place"][state] >= 0:
            row, column = divmod(int(board["place"][state]), board["columns"])
            return f"row {row + 1}, column {column + 1}"
        return "the end" if state == self.world.sink else f"state {state}"

    def listed(self) -> list[dict[str, Any]]:
        """The recorded episodes for the list on the page."""
        return [
            {
                "number": one.number, "steps": len(one.actions), "terminated": one.terminated,
                "limit": one.limit, "chosen": one.chosen, "slips": one.slips, "undone": one.undone,
                "start": one.states[0], "start_name": self.state_name(one.states[0]),
                "counted": self.settings.premise == "rational" or not one.chosen,
            }
            for one in self.episodes
        ]  # fmt: skip

    def state(self) -> dict[str, Any]:
        """All that the page shows."""
        world, stage = self.world, self.stage
        return {
            "name": self.name, "title": stage.title, "version": self.version,
            "world": {
                "states": world.num_states, "pairs": world.num_pairs, "discount": world.discount,
                "costs": list(stage.basis.names), "most_steps": stage.most_steps,
                "estimated": world.is_estimated,
            },
            "board": stage.board, "actions": action_names(world), "settings": asdict(self.settings),
            "position": self.position(), "episodes": self.listed(), "view": self.view,
            "current": self.view is not None and self.view["key"] == self.key(),
            "curve": self.curve(), "method": self.method, "saved": self.written,
            "next_number": self.next_number,
        }  # fmt: skip

    # Files

    def save(self) -> None:
        """Write all of it, in one step."""
        if not self.written:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.world.save(self.directory / WORLD)
            save_basis(self.stage.basis, self.directory / COSTS)
        attempt = self.attempt
        content = {
            "kind": KIND, "version": VERSION, "title": self.stage.title,
            "choice": self.stage.choice, "most_steps": self.stage.most_steps,
            "settings": asdict(self.settings), "seed": self.seed, "next_number": self.next_number,
            "episodes": [asdict(one) for one in self.episodes],
            "attempt": {"number": attempt.number, "start": attempt.start, "chosen": attempt.chosen},
            "points": self.points, "method": self.method,
        }  # fmt: skip
        write_text(self.directory / SESSION, json.dumps(content, allow_nan=False))
        if not attempt.steps:  # lines of earlier attempts are of no use any more
            (self.directory / ATTEMPT).unlink(missing_ok=True)
        self.written = True

    @classmethod
    def load(cls, directory: Path) -> "Session":
        """A session as it was left, the episode under way included; nothing in it is believed."""
        remedy = "Open another session; this one was damaged, or written by another version"
        path = directory / SESSION
        content = read_json(path, LARGEST, remedy)
        if content.get("kind") != KIND or content.get("version") != VERSION:
            raise InvalidFile(f"{path.name} is not a session of this studio", remedy)
        try:
            world, basis = World.load(directory / WORLD), load_basis(directory / COSTS)
            basis.on(world)
            most_steps = whole(content["most_steps"], 1, MOST_STEPS)
            title = str(content["title"])[:200]
            session = cls(
                directory.name, directory,
                restored(content["choice"], title, world, basis, most_steps),
                Settings.of(content["settings"]),
                [_episode(one) for one in content["episodes"]], _attempt(content["attempt"], world),
                whole(content["seed"], 0, 1 << 60), whole(content["next_number"], 1, 1 << 60),
                points={str(key): _point(one) for key, one in content["points"].items()},
                method=_method(content["method"], directory), written=True,
            )  # fmt: skip
            if session.episodes:
                session.demonstrations().pairs_in(world)
        except InvalidInput as fault:
            raise InvalidFile(f"{directory.name} cannot be opened: {fault.what}", remedy) from fault
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as fault:
            raise InvalidFile(f"{path.name} is not a whole session ({fault!r})", remedy) from fault
        session._read_attempt()
        return session

    def _append(self, line: dict[str, Any]) -> None:
        """One more line, or none of it."""
        path = self.directory / ATTEMPT
        with naming(path), path.open("ab", buffering=0) as stream:
            size = stream.tell()
            content = json.dumps(line).encode() + b"\n"
            try:
                if stream.write(content) < len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                stream.truncate(size)
                raise

    def _read_attempt(self) -> None:
        """Take the steps again that were written; a last line cut short is left out."""
        path = self.directory / ATTEMPT
        if not path.exists() or path.stat().st_size > LARGEST:
            return
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
                if line["attempt"] != self.attempt.number:
                    continue
                if "undo" in line:
                    self.attempt.steps.pop()
                    self.attempt.undone += 1
                elif self.ended is None:
                    self.attempt.steps.append(self._outcome(line["action"]))
            except (ValueError, TypeError, KeyError, IndexError, RecursionError, Refused):
                break


def whole(value: Any, low: int, high: int) -> int:
    """A whole number of a file, within limits."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{value!r} is not a whole number from {low} to {high}")
    return value


def _attempt(given: dict[str, Any], world: World) -> Attempt:
    number, start = whole(given["number"], 0, 1 << 60), given["start"]
    return Attempt(number, whole(start, 0, world.num_states - 1), bool(given["chosen"]))


def _episode(given: dict[str, Any]) -> Episode:
    most = 1 << 60
    return Episode(
        whole(given["number"], 1, most),
        tuple(whole(one, 0, most) for one in given["states"]),
        tuple(whole(one, 0, most) for one in given["actions"]),
        bool(given["terminated"]), bool(given["chosen"]), whole(given["slips"], 0, most),
        whole(given["undone"], 0, most), bool(given["limit"]),
    )  # fmt: skip


def _point(given: dict[str, Any]) -> dict[str, Any]:
    numbers = {name: float(given[name]) for name in ("share", "bound")}
    if not all(math.isfinite(one) for one in numbers.values()):
        raise ValueError(f"{given!r} is not a point")
    return {**numbers, "valid": bool(given["valid"])}


def solver_of(asked: Any) -> dict[str, Any]:
    """Name and settings of a solver from plain values."""
    given = asked if isinstance(asked, dict) else {}
    if given.get("name") not in SOLVERS or set(given) - {"name", "steps"}:
        raise Refused("the method is not offered", f"Take one of {', '.join(SOLVERS)}")
    steps = given.get("steps", 2_000_000)
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= 10**9:
        raise Refused(f"steps is {steps!r}", "Give a whole number from 1 to 1,000,000,000")
    return {"name": given["name"], **({"steps": steps} if given["name"] == "sgd-al" else {})}


def _method(given: Any, directory: Path) -> dict[str, Any] | None:
    """A solve that was stopped, or under way when the server ended."""
    if given is None:
        return None
    solver = solver_of(given["solver"])
    return {"solver": solver, "continues": continues(directory, solver)}


def continues(directory: Path, solver: dict[str, Any]) -> bool:
    """Whether a stopped solve goes on from where it was."""
    return solver["name"] == "sgd-al" and (directory / CHECKPOINTS).is_dir()


def adopt(fresh: Path, note: str) -> None:
    """Make a saved run the one of its session."""
    place = fresh.parent
    old = place / CERTIFIED
    if old.exists():
        shutil.rmtree(old)
    fresh.rename(old)
    (place / REPORT).unlink(missing_ok=True)
    if note:
        write_text(place / NOTE, note + "\n")
    else:
        (place / NOTE).unlink(missing_ok=True)


def save_basis(basis: CostBasis, path: Path) -> None:
    """Costs as arrays."""
    matrix = basis.matrix
    if sparse.issparse(matrix):
        rows = sparse.csr_array(matrix)
        arrays = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr,
                  "shape": np.array(rows.shape)}  # fmt: skip
    else:
        arrays = {"matrix": np.asarray(matrix)}
    facts = {"names": list(basis.names), "rewards": bool(basis.rewards)}
    save_arrays(path, "costs", 1, arrays, **facts)


def load_basis(path: Path) -> CostBasis:
    """What `save_basis` wrote."""
    facts, arrays = load_arrays(path, "costs", 1)
    if "matrix" in arrays:
        basis = CostBasis(arrays["matrix"], facts["names"])
    else:
        parts = tuple(take(path, arrays, name) for name in ("data", "indices", "indptr"))
        rows, columns = (int(one) for one in take(path, arrays, "shape"))
        matrix = sparse.csr_array(parts, shape=(rows, columns))
        matrix.check_format(full_check=True)
        basis = CostBasis(matrix, facts["names"])
    assign(basis, rewards=bool(facts["rewards"]))
    return basis
