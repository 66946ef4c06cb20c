"""One session of the studio: a world, what was demonstrated in it, and what is known since.

A session is a directory, from its first step on:

    session.json      world by title and board, settings, every recorded episode, the last view
    attempt.jsonl     the steps of the episode under way, one line each, written as they happen
    world.npz         the world
    costs.npz         the costs that may matter
    certified/        policy, certificate and evidence, as `apprentice.save` writes them

`session.json` is replaced in one step whenever an episode is finished or anything else changes, and
a step is written before it is answered: a server that is killed loses nothing.

*Chance.* What a step leads to is drawn from a number that belongs to the attempt and to the time of
the step. Undone and taken again, the same action leads to the same state: nobody can undo until
the floor is kind. A restarted attempt has new numbers.
"""

import json
import re
import secrets
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
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
from journeyman.studio.worlds import STEPS, Stage, action_names
from journeyman.world import World

KIND, VERSION = "journeyman studio session", 1
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
LONGEST_NAME = 60
MANY_NAMES = 5_000
PREMISES = ("rational", "deterministic", "none")
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
    """One step: what was intended and what happened."""

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
    points: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Bounds by what they rest on, for the curve."""
    method: dict[str, Any] | None = None
    """Of a long solve that can be continued."""
    version: int = 0
    used: float = field(default_factory=time.monotonic)
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
        session._new_attempt()
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
            raise Refused("the episode has ended", "Keep it (Enter), undo a step or restart")
        pairs, state = self.world.pairs, self.attempt.state
        offered = self.offered(state)
        if isinstance(action, bool) or not isinstance(action, int) or action not in offered:
            raise Refused(
                f"action {action!r} is not offered in state {state}",
                f"Take one of {', '.join(map(str, offered))}",
            )
        pair = int(pairs.offsets[state]) + offered.index(action)
        rows = self.world.transition
        inner = slice(int(rows.indptr[pair]), int(rows.indptr[pair + 1]))
        targets, law = rows.indices[inner], rows.data[inner]
        chance = np.random.default_rng([self.seed, self.attempt.number, len(self.attempt.steps)])
        at = int(np.searchsorted(np.cumsum(law), chance.random(), side="right"))
        reached = int(targets[min(at, targets.size - 1)])
        shown = self._end_shown(pair, reached, chance.random())
        intended = self._intended(state, action, targets, law)
        happened = reached if self.stage.board["kind"] != "grid" else self._cell(reached, shown)
        slipped = targets.size > 1 and intended is not None and intended != happened
        taken = Step(action, reached, shown, bool(slipped), intended)
        if not self.written:
            self.save()
        self._append({"attempt": self.attempt.number, **asdict(taken)})
        self.attempt.steps.append(taken)
        self._changed()
        return taken

    def undo(self) -> None:
        """Take the last step back; taken again it leads to the same place."""
        if not self.attempt.steps:
            raise Refused("there is no step to undo", "Take a step first")
        self._append({"attempt": self.attempt.number, "undo": True})
        self.attempt.steps.pop()
        self.attempt.undone += 1
        self._changed()

    def restart(self, start: Any = None) -> None:
        """Forget the episode under way; begin where chance says, or in a chosen state."""
        if start is not None:
            sound = isinstance(start, int) and not isinstance(start, bool)
            if not sound or not 0 <= start < self.world.num_states:
                raise Refused(f"there is no state {start!r}", "Choose a state of the world")
            if self.world.absorbing[start]:
                raise Refused(f"episodes end in state {start}", "Choose another state")
        self._new_attempt(start)
        self._changed()
        if self.written:
            self.save()

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
        self.episodes.append(kept)
        self.next_number += 1
        self._new_attempt()
        self._changed()
        self.save()
        return kept

    def drop(self, number: Any) -> None:
        """Leave a recorded episode out."""
        if number not in [one.number for one in self.episodes]:
            raise Refused(f"there is no episode {number!r}", "Drop one of the list")
        self.episodes = [one for one in self.episodes if one.number != number]
        if not self.episodes:
            self.view = None
        self._changed()
        self.save()

    def declare(self, settings: Settings) -> None:
        """Other settings."""
        self.settings = settings
        self._changed()
        if self.written:
            self.save()

    def offered(self, state: int) -> list[int]:
        """The numbers of the actions of a state."""
        pairs = self.world.pairs
        inner = slice(int(pairs.offsets[state]), int(pairs.offsets[state + 1]))
        return [int(number) for number in pairs.actions[inner]]

    def _new_attempt(self, start: int | None = None) -> None:
        number = self.attempt.number + 1
        if start is None:
            chance = np.random.default_rng([self.seed, number, START]).random()
            sums = np.cumsum(self.world.initial)
            drawn = int(np.searchsorted(sums, chance * sums[-1], side="right"))
            self.attempt = Attempt(number, min(drawn, self.world.num_states - 1))
        else:
            self.attempt = Attempt(number, start, chosen=True)

    def _cell(self, state: int, shown: int | None) -> int:
        return int(self.stage.board["place"][state]) if shown is None else shown

    def _end_shown(self, pair: int, reached: int, chance: float) -> int | None:
        """The cell in which an episode ended that the world has no state for."""
        branches = self.stage.board.get("ends", {}).get(str(pair))
        if reached != self.world.sink or not branches:
            return None
        law = np.cumsum([weight for _, weight in branches])
        at = int(np.searchsorted(law, chance * law[-1], side="right"))
        return int(branches[min(at, len(branches) - 1)][0])

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
        self.remember(view["key"], point)
        self._changed()
        self.save()

    def remember(self, key: str, point: dict[str, Any]) -> None:
        self.points[key] = point
        for old in list(self.points)[: max(0, len(self.points) - MOST_POINTS)]:
            del self.points[old]

    # What the page is told

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
                "start": self.state_name(one.states[0]),
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
            "curve": self.curve(), "resumable": self.method, "saved": self.written,
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
            "kind": KIND, "version": VERSION, "name": self.name, "title": self.stage.title,
            "board": self.stage.board, "most_steps": self.stage.most_steps,
            "settings": asdict(self.settings), "seed": self.seed, "next_number": self.next_number,
            "episodes": [asdict(one) for one in self.episodes],
            "attempt": {"number": attempt.number, "start": attempt.start, "chosen": attempt.chosen},
            "view": self.view, "points": self.points, "method": self.method,
        }  # fmt: skip
        write_text(self.directory / SESSION, json.dumps(content, allow_nan=False))
        if not attempt.steps:  # lines of earlier attempts are of no use any more
            (self.directory / ATTEMPT).unlink(missing_ok=True)
        self.written = True

    @classmethod
    def load(cls, directory: Path) -> "Session":
        """A session as it was left, the episode under way included."""
        remedy = "Open another session; this one was damaged, or written by another version"
        path = directory / SESSION
        content = read_json(path, LARGEST, remedy)
        if content.get("kind") != KIND or content.get("version") != VERSION:
            raise InvalidFile(f"{path} is not a session of this studio", remedy)
        try:
            world = World.load(directory / WORLD)
            basis = load_basis(directory / COSTS)
            basis.on(world)
            stage = Stage(
                str(content["title"]), world, basis, dict(content["board"]),
                int(content["most_steps"]),
            )  # fmt: skip
            session = cls(
                directory.name, directory, stage, Settings.of(content["settings"]),
                [_episode(one) for one in content["episodes"]],
                Attempt(**content["attempt"]), int(content["seed"]), int(content["next_number"]),
                content["view"], dict(content["points"]), content["method"], written=True,
            )  # fmt: skip
            session._read_attempt()
            if session.episodes:
                session.demonstrations().pairs_in(world)
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as fault:
            raise InvalidFile(f"{path} is not a whole session ({fault!r})", remedy) from fault
        return session

    def _append(self, line: dict[str, Any]) -> None:
        path = self.directory / ATTEMPT
        with naming(path), path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def _read_attempt(self) -> None:
        """The steps that were written since the session was; a last line cut short is left out."""
        path = self.directory / ATTEMPT
        if not path.exists() or path.stat().st_size > LARGEST:
            return
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
                if line.pop("attempt") != self.attempt.number:
                    continue
                if line.get("undo"):
                    self.attempt.steps.pop()
                    self.attempt.undone += 1
                else:
                    taken = Step(**line)
                    self.offered(taken.state)
                    self.attempt.steps.append(taken)
            except (ValueError, TypeError, KeyError, IndexError, AttributeError):
                break

    def _changed(self) -> None:
        self.version += 1
        self.used = time.monotonic()


def _episode(given: dict[str, Any]) -> Episode:
    made = Episode(**given)
    return replace(made, states=tuple(made.states), actions=tuple(made.actions))


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
