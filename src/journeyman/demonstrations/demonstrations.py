"""What an expert did: trajectories x_0, a_0, x_1, a_1, ..., x_T as flat arrays.

Episode j has T_j >= 1 actions and T_j + 1 states; the last state is where its record ends. How it
ends matters and is kept: a *terminated* episode has come to rest in an absorbing state, so its
endless tail is known exactly; a *truncated* one was merely not recorded any further.

States are ids, or observations: rows of numbers, images. What is known of observations is what
`world.records` says; every world with numbered states asks for ids.
"""

import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    assign,
    first_index,
    integer_array,
    plain_array,
    read_only,
    real_array,
    require_finite,
    require_shape,
    require_whole,
)
from journeyman.demonstrations import files
from journeyman.demonstrations.files import Origin, Source
from journeyman.errors import InvalidDemonstrations, InvalidFile
from journeyman.lazy import InNotebooks
from journeyman.storage import PathLike, load_arrays, save_arrays, take
from journeyman.tables import FRAME, WorldNames, is_csv, is_frame, to_frame
from journeyman.world import Pairs, World

FIRST_VERSION, NUMBERED_VERSION, SCHEMA_VERSION = 1, 2, 3
"""Where states number their actions otherwise than from 0, version 2 is written: readers of the
first take actions of such a world for positions. Observations and probabilities need version 3."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Demonstrations(InNotebooks):
    """Trajectories as flat arrays.

    Args:
        states: all episodes' states one after the other, T_j + 1 for episode j: ids, or an array
            with further axes that holds an observation in every row.
        actions: all episodes' actions, T_j for episode j, by the numbers they have in the world.
        offsets: episode j's actions are `offsets[j]:offsets[j+1]`.
        terminated: for each episode whether it ended in an absorbing state; the others were
            truncated.
        choice_offsets: the action sets of the world when they are known: `world.pairs`, or offsets
            as in `World` where every state numbers its actions from 0.
        probabilities: of every action, how likely the expert took it given all that it acted on,
            where that was logged.

    >>> demos = Demonstrations([0, 1, 1, 0, 0], [0, 1, 0], offsets=[0, 2, 3], terminated=[0, 1])
    >>> len(demos), demos.lengths.tolist(), demos.episode(1)[0].tolist()
    (2, [2, 1], [0, 0])
    """

    states: IntArray
    actions: IntArray
    offsets: IntArray
    terminated: BoolArray
    pairs: Pairs | None
    probabilities: FloatArray | None

    def __init__(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        offsets: ArrayLike,
        terminated: ArrayLike | None = None,
        *,
        choice_offsets: ArrayLike | Pairs | None = None,
        probabilities: ArrayLike | None = None,
    ) -> None:
        refusal = InvalidDemonstrations
        episode_offsets = integer_array("offsets", offsets, refusal=refusal)
        if episode_offsets.size < 2 or episode_offsets[0] != 0:
            raise refusal(
                "offsets do not start at 0 and end behind the last action",
                "Give one more offset than episodes",
            )
        lengths = np.diff(episode_offsets)
        if (lengths < 1).any():
            raise refusal(
                f"episode {first_index(lengths < 1)} has no action",
                "Leave out episodes without a step",
            )
        num_episodes, num_steps = lengths.size, int(episode_offsets[-1])
        ended = flags(terminated, num_episodes)
        assign(
            self,
            states=_visited("states", states, num_steps + num_episodes),
            actions=integer_array("actions", actions, size=num_steps, refusal=refusal),
            offsets=episode_offsets,
            terminated=ended,
            pairs=None if choice_offsets is None else Pairs.of(choice_offsets),
            probabilities=_logged(probabilities, num_steps),
        )

    @classmethod
    def from_arrays(
        cls,
        states: Sequence[ArrayLike],
        actions: Sequence[ArrayLike],
        terminated: ArrayLike | None = None,
        *,
        truncated_at: int | None = None,
        terminal_state: int | None = None,
        probabilities: Sequence[ArrayLike] | None = None,
    ) -> Self:
        """From one array of states (or observations) and one of actions per episode.

        `truncated_at` and `terminal_state` are as in `with_ends`: give `world.sink` as the terminal
        state for records of a Gymnasium environment, whose table has no state for "the episode is
        over".
        """
        if not (hasattr(states, "__len__") and hasattr(actions, "__len__")):
            raise InvalidDemonstrations(
                f"states is a {type(states).__name__}, actions a {type(actions).__name__}",
                "Give a list with one array per episode for both",
            )
        if len(states) != len(actions) or not len(states):
            raise InvalidDemonstrations(
                f"{len(states)} arrays of states and {len(actions)} of actions",
                "Give both for each episode",
            )
        refusal = InvalidDemonstrations
        visited = [_visited(f"states of episode {j}", part) for j, part in enumerate(states)]
        _require_alike(visited)
        taken = [
            integer_array(f"actions of episode {j}", part, refusal=refusal)
            for j, part in enumerate(actions)
        ]
        for episode, (some, chosen) in enumerate(zip(visited, taken, strict=True)):
            if len(some) != chosen.size + 1:
                raise InvalidDemonstrations(
                    f"episode {episode} has {len(some)} states and {chosen.size} actions",
                    "Give one state more than actions: the state where the record ends",
                )
        offsets = np.concatenate([[0], np.cumsum([chosen.size for chosen in taken])])
        logged = None if probabilities is None else np.concatenate([*map(np.ravel, probabilities)])
        demos = cls(
            np.concatenate(visited), np.concatenate(taken), offsets, terminated,
            probabilities=logged,
        )  # fmt: skip
        ended = demos.with_ends(truncated_at=truncated_at, terminal_state=terminal_state)
        if truncated_at is None:
            warn_of_limit(demos, "the arrays", stacklevel=2)
        return ended

    def with_ends(
        self, *, truncated_at: int | None = None, terminal_state: int | None = None
    ) -> Self:
        """The same steps, with their ends read in another way.

        Args:
            truncated_at: episodes of this length were ended by a time limit: they are truncated,
                whatever they were marked. None may be longer.
            terminal_state: where the (other) terminated episodes end, instead of their last state.

        >>> demos = Demonstrations([0, 1, 1, 0, 0], [0, 1, 0], [0, 2, 3], terminated=[1, 1])
        >>> ended = demos.with_ends(truncated_at=2, terminal_state=7)
        >>> ended.terminated.tolist(), ended.last_states.tolist()
        ([False, True], [1, 7])
        """
        over = self.terminated
        if truncated_at is not None:
            over = over & ~at_limit(self, truncated_at)
        last = self.last_states.copy()
        if terminal_state is not None:
            self.require_ids("terminal_state, the id of a state,")
            last[over] = whole("terminal_state", terminal_state)
        return self.ended_as(over, last)

    def ended_as(self, terminated: BoolArray, last_states: IntArray) -> Self:
        """The same steps with other flags and last states."""
        states = self.states.copy()
        states[self.offsets[1:] + np.arange(len(self))] = last_states
        ended = type(self)(
            states, self.actions, self.offsets, terminated, choice_offsets=self.pairs,
            probabilities=self.probabilities,
        )  # fmt: skip
        return ended._coming_from(self.origin)

    def read_from(self, source: Source) -> Self:
        """The same demonstrations, known to be those of a file: errors will name its lines."""
        return self._coming_from(Origin.of(source, len(self)))

    @property
    def origin(self) -> Origin | None:
        """Where the episodes were read, where that is known; no part of what they say."""
        return vars(self).get("_origin")

    def where(self, episode: int, step: int | None = None) -> str:
        """The words for an episode or a step, with the place in its file where it is known."""
        words = f"episode {episode}" if step is None else f"episode {episode}, step {step}"
        if self.origin is None:
            return words
        at = int(self.lengths[episode]) if step is None else step
        return f"{self.origin.where(episode, at)}{words}"

    def _coming_from(self, origin: Origin | None) -> Self:
        if origin is not None:
            assign(self, _origin=origin)
        return self

    @classmethod
    def concatenate(cls, parts: Sequence["Demonstrations"]) -> Self:
        """The episodes of several experts, or several recordings, as one set."""
        if isinstance(parts, Demonstrations) or not all(
            isinstance(part, Demonstrations) for part in parts
        ):
            raise InvalidDemonstrations(
                "the parts are not all Demonstrations", "Give a list of them"
            )
        if not parts:
            raise InvalidDemonstrations("there is nothing to concatenate", "Give at least one part")
        lengths = np.concatenate([part.lengths for part in parts])
        _require_alike([part.states for part in parts])
        logged = [part.probabilities for part in parts if part.probabilities is not None]
        first = parts[0].pairs
        shared = first is not None and all(part.pairs == first for part in parts)
        joined = cls(
            np.concatenate([part.states for part in parts]),
            np.concatenate([part.actions for part in parts]),
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([part.terminated for part in parts]),
            choice_offsets=first if shared else None,
            probabilities=np.concatenate(logged) if len(logged) == len(parts) else None,
        )
        return joined._coming_from(Origin.joined([(part.origin, len(part)) for part in parts]))

    def subset(self, episodes: IntArray) -> Self:
        """The given episodes, in the given order."""
        try:
            chosen = np.arange(len(self))[episodes]
        except IndexError as fault:
            raise InvalidDemonstrations(
                f"there is no such choice among {len(self)} episodes: {fault}",
                f"Give numbers from 0 to {len(self) - 1}, or a flag for each",
            ) from None
        if not chosen.size:
            raise InvalidDemonstrations("no episode is chosen", "Choose at least one")
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        starts = np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        steps = np.arange(offsets[-1]) + starts
        visits = np.repeat(self.offsets[chosen] + chosen - offsets[:-1], lengths + 1)
        visits += np.arange(visits.size) - np.repeat(np.arange(chosen.size), lengths + 1)
        part = type(self)(
            self.states[visits], self.actions[steps], offsets, self.terminated[chosen],
            choice_offsets=self.pairs,
            probabilities=None if self.probabilities is None else self.probabilities[steps],
        )  # fmt: skip
        if "_possible" in vars(self):
            checked_in, pairs = vars(self)["_possible"]
            assign(part, _possible=(checked_in, read_only(pairs[steps])))
        return part._coming_from(None if self.origin is None else self.origin.subset(chosen))

    def until(self, most: int) -> Self:
        """The first `most` steps of every episode; longer ones are not terminated then."""
        if (self.lengths <= most).all():
            return self
        lengths = np.minimum(self.lengths, most)
        kept = self.step_times < most
        visited = np.repeat(self.offsets[:-1] + np.arange(len(self)), lengths + 1)
        starts = np.concatenate([[0], np.cumsum(lengths + 1)])[:-1]
        visited += np.arange(visited.size) - np.repeat(starts, lengths + 1)
        return type(self)(
            self.states[visited], self.actions[kept], np.concatenate([[0], np.cumsum(lengths)]),
            self.terminated & (self.lengths <= most), choice_offsets=self.pairs,
            probabilities=None if self.probabilities is None else self.probabilities[kept],
        )  # fmt: skip

    def __len__(self) -> int:
        return self.offsets.size - 1

    @property
    def has_ids(self) -> bool:
        """Whether states are ids; otherwise they are observations, one in every row."""
        return self.states.ndim == 1

    def require_ids(self, by_whom: str) -> None:
        """Refuse observations where states have to be numbered."""
        if not self.has_ids:
            raise InvalidDemonstrations(
                f"{by_whom} needs ids of states, and these demonstrations hold observations of "
                f"shape {self.states.shape[1:]}",
                "Number the states and record the numbers; of observations alone "
                "jm.world.Records(...) makes a problem",
            )

    @property
    def truncated(self) -> BoolArray:
        return ~self.terminated

    @property
    def num_steps(self) -> int:
        return self.actions.size

    @cached_property
    def lengths(self) -> IntArray:
        """Recorded steps T_j of each episode."""
        return read_only(np.diff(self.offsets))

    @cached_property
    def step_times(self) -> IntArray:
        """The time t of every step."""
        return read_only(np.arange(self.num_steps) - np.repeat(self.offsets[:-1], self.lengths))

    @cached_property
    def step_episodes(self) -> IntArray:
        """The episode of every step."""
        return read_only(np.repeat(np.arange(len(self)), self.lengths))

    @property
    def step_states(self) -> IntArray:
        """The state in which every step's action was taken."""
        return np.asarray(self.states[np.arange(self.num_steps) + self.step_episodes])

    @property
    def next_states(self) -> IntArray:
        """The state every step led to."""
        return np.asarray(self.states[np.arange(self.num_steps) + self.step_episodes + 1])

    @property
    def first_states(self) -> IntArray:
        """The state where each episode starts."""
        return np.asarray(self.states[self.offsets[:-1] + np.arange(len(self))])

    @property
    def last_states(self) -> IntArray:
        """The state where each episode's record ends."""
        return np.asarray(self.states[self.offsets[1:] + np.arange(len(self))])

    def episode(self, j: int) -> tuple[IntArray, IntArray]:
        """States and actions of episode `j`."""
        start, stop = int(self.offsets[j]), int(self.offsets[j + 1])
        return self.states[start + j : stop + j + 1], self.actions[start:stop]

    def on(self, world: World) -> "Demonstrations":
        """The same records in `world`; they are others only where it has a horizon.

        There the state at step t is (x, t), and an episode ends after the horizon: steps behind it
        are left out. An episode that came to rest before goes on resting, with the first action
        of its last state. One that was cut off before stays cut off.

        >>> world = World([[0, 1], [0, 1]], [1, 0], 0.9).with_horizon(3)
        >>> Demonstrations([0, 1], [0], [0, 1], terminated=[True]).on(world).states.tolist()
        [0, 3, 5, 6]
        """
        layers = world.layers
        if world.averages is not None and self.terminated.any():
            raise InvalidDemonstrations(
                f"{self.where(int(np.argmax(self.terminated)))} is marked as terminated, and a "
                "world of average costs has no end",
                "Mark episodes as cut off: their records end, their lives do not",
            )
        if layers is None:
            return self
        self.require_ids("a world with a horizon")
        if self._is_in_layers(layers.num_states):
            return self
        self.pairs_in(layers.base)
        ended, most = self.terminated, layers.horizon
        lengths = np.minimum(np.where(ended, most, self.lengths), most)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        episodes = np.repeat(np.arange(len(self)), lengths)
        time = np.arange(offsets[-1]) - offsets[:-1][episodes]
        recorded = time < self.lengths[episodes]
        step = np.where(recorded, self.offsets[episodes] + time, 0)
        first = layers.base.pairs.offsets[self.last_states]
        resting = layers.base.pairs.actions[first][episodes]
        visits = np.repeat(np.arange(len(self)), lengths + 1)
        when = np.arange(visits.size) - (offsets[:-1] + np.arange(len(self)))[visits]
        at = np.minimum(self.offsets[visits] + visits + when, self.offsets[visits + 1] + visits)
        found = Demonstrations(
            layers.states_at(self.states[at], when),
            np.where(recorded, self.actions[step], resting),
            offsets,
            lengths == most,
            choice_offsets=world.pairs,
            probabilities=None
            if self.probabilities is None
            else np.where(recorded, self.probabilities[step], 1.0),
        )
        return found._coming_from(self.origin)

    def _is_in_layers(self, num_states: int) -> bool:
        """Whether they were recorded in layers of so many states: all first steps lead into the
        second one, which a world without layers does not have."""
        return bool((self.next_states[self.offsets[:-1]] >= num_states).all())

    def pairs_in(self, world: World) -> IntArray:
        """The pair of `world` behind every step; every step is checked to be possible there (or in
        the world that one of averages was made of), once for the world that was asked for last."""
        self.require_ids("a world")
        checked_in, pairs = vars(self).get("_possible", (None, None))
        if checked_in is None or checked_in() is not world:
            pairs = read_only(possible_pairs(self, world.of_records))
            assign(self, _possible=(weakref.ref(world), pairs))
        return np.asarray(pairs)

    def counts_in(self, world: World) -> IntArray:
        """How often every pair was taken: in every layer where `world` has a horizon, in the world
        that it was made of where its costs are averages."""
        return np.bincount(self.on(world).pairs_in(world), minlength=world.of_records.num_pairs)

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name != "_possible"}

    def save(self, path: PathLike) -> None:
        """Write to a file: comma-separated text for `*.csv`, otherwise the native format."""
        if is_csv(path):
            files.write_csv(
                path, self.states, self.actions, self.offsets, self.terminated, self.probabilities
            )
            return
        states = _smallest_integers(self.states) if self.has_ids else self.states
        arrays: dict[str, Any] = {
            "states": states, "actions": _smallest_integers(self.actions),
            "offsets": self.offsets, "terminated": self.terminated,
        }  # fmt: skip
        version = FIRST_VERSION
        if self.pairs is not None:
            arrays["choice_offsets"] = self.pairs.offsets
            if self.pairs.numbers is not None:
                arrays["action_numbers"], version = self.pairs.numbers, NUMBERED_VERSION
        if self.probabilities is not None:
            arrays["probabilities"] = self.probabilities
        if self.probabilities is not None or not self.has_ids:
            version = SCHEMA_VERSION
        save_arrays(path, "demonstrations", version, arrays)

    def to_columns(self, world: World | None = None) -> dict[str, Any]:
        """One entry for every step, as in files of steps: episode, t, state (or state_0, state_1,
        ... of observations), action, next_state, terminated; by the names that `world` has."""
        ends = np.zeros(self.num_steps, dtype=bool)
        ends[self.offsets[1:] - 1] = self.terminated
        found: dict[str, Any] = {"episode": self.step_episodes, "t": self.step_times}
        found |= _axes("state", self.step_states) | {"action": self.actions}
        found |= _axes("next_state", self.next_states) | {"terminated": ends}
        if self.probabilities is not None:
            found["expert_probability"] = self.probabilities
        if world is not None:
            self.pairs_in(world if world.reduction is None else world.reduction.base)
            names = WorldNames.of(world)
            states, actions = names.states.names, names.actions.names
            for name, known in (("state", states), ("next_state", states), ("action", actions)):
                if known is not None:
                    found[name] = np.array(known, dtype=object)[found[name]]
        return found

    def to_rows(self, world: World | None = None) -> list[dict[str, Any]]:
        """One row for every step; with the names of states and actions that `world` has."""
        columns = self.to_columns(world)
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def to_frame(self, world: World | None = None) -> Any:
        """`to_rows` as a pandas DataFrame (extra `frames`), for `jm.read_demonstrations` too."""
        return to_frame(self.to_columns(world))

    @classmethod
    def load(
        cls,
        path: PathLike,
        *,
        truncated_at: int | None = None,
        terminal_state: int | None = None,
        memory_limit: int | None = None,
    ) -> Self:
        """Read what `save` wrote, or any CSV with episode,t,state,action,terminated.

        `truncated_at` and `terminal_state` are as in `with_ends`. A packed file may unpack to
        `memory_limit` bytes, by default to what its own size makes credible.
        """
        if is_frame(path):
            raise InvalidFile(
                f"{FRAME} is not a file", "Read it with jm.read_demonstrations(frame, world=world)"
            )
        demos = cls._load(path, memory_limit)
        ended = demos.with_ends(truncated_at=truncated_at, terminal_state=terminal_state)
        if truncated_at is None and is_csv(path):
            warn_of_limit(demos, path, stacklevel=2)
        return ended

    @classmethod
    def _load(cls, path: PathLike, memory_limit: int | None) -> Self:
        if is_csv(path):
            *parts, logged, source = files.read_csv(path)
            return cls(*parts, probabilities=logged).read_from(source)
        files.refuse_foreign(path)
        _, arrays = load_arrays(path, "demonstrations", SCHEMA_VERSION, memory_limit=memory_limit)
        columns = ("states", "actions", "offsets", "terminated")
        parts = [take(path, arrays, name) for name in columns]
        offsets = arrays.get("choice_offsets")
        pairs = None if offsets is None else Pairs(offsets, arrays.get("action_numbers"))
        demos = cls(*parts, choice_offsets=pairs, probabilities=arrays.get("probabilities"))
        return demos.read_from(Source(path, files.recorded_step))

    def __repr__(self) -> str:
        return (
            f"Demonstrations({len(self)} episodes, {self.num_steps} steps, "
            f"{int(self.terminated.sum())} terminated)"
        )


def _visited(name: str, given: ArrayLike, size: int | None = None) -> IntArray:
    """Ids, or observations as they are; typed as ids."""
    refusal = InvalidDemonstrations
    array = plain_array(name, given, refusal)
    if array.ndim < 2:
        return integer_array(name, array, size=size, refusal=refusal)
    require_shape(name, array.shape, ndim=array.ndim, size=size, refusal=refusal)
    if not array[:1].size and array.shape[0]:
        raise refusal(f"{name} has observations of shape {array.shape[1:]}", "Give some numbers")
    require_finite(name, array, refusal)
    return read_only(array.copy())


def _require_alike(parts: Sequence[IntArray]) -> None:
    """Refuse episodes whose observations have different shapes."""
    for place, part in enumerate(parts):
        if part.shape[1:] != parts[0].shape[1:]:
            raise InvalidDemonstrations(
                f"observations of part {place} have shape {part.shape[1:]}, those of part 0 "
                f"{parts[0].shape[1:]}",
                "Record observations of one shape (an empty one stands for ids)",
            )


def _logged(given: ArrayLike | None, num_steps: int) -> FloatArray | None:
    """The probability with which the expert took every recorded action."""
    if given is None:
        return None
    name = "probabilities"
    found = real_array(name, given, ndim=1, size=num_steps, refusal=InvalidDemonstrations)
    wrong = (found <= 0) | (found > 1)
    if wrong.any():
        step = first_index(wrong)
        raise InvalidDemonstrations(
            f"probabilities[{step}] = {found[step]}",
            "Give the probability, above 0 and at most 1, with which the expert took each action",
        )
    return found


def flags(terminated: ArrayLike | None, num_episodes: int) -> BoolArray:
    """For each episode whether it terminated."""
    given = np.zeros(num_episodes, dtype=bool) if terminated is None else np.asarray(terminated)
    remedy = "Say for each episode whether it terminated, with True or False"
    if given.shape != (num_episodes,):
        raise InvalidDemonstrations(
            f"terminated has shape {given.shape}, expected ({num_episodes},)", remedy
        )
    strange = ~np.isin(given, (False, True))
    if strange.any():
        where = first_index(strange)
        raise InvalidDemonstrations(f"terminated[{where}] = {given[where]!r}", remedy)
    return read_only(given.astype(bool))


def _smallest_integers(ids: IntArray) -> IntArray:
    return ids.astype(np.min_scalar_type(int(ids.max()))) if ids.min() >= 0 else ids


NEVER = "has probability 0"


def _axes(name: str, states: IntArray) -> dict[str, Any]:
    """Ids, or a column for each number of an observation."""
    if states.ndim == 1:
        return {name: states}
    rows = states.reshape(len(states), -1).astype(np.float64)
    return {f"{name}_{k}": rows[:, k] for k in range(rows.shape[1])}


def possible_pairs(demos: "Demonstrations", world: World) -> IntArray:
    """The pair of `world` behind every step, or an error that names the first impossible one.

    In an estimated world whose support is not known a step may lead where none was seen to lead.
    """
    _refuse_positions(demos, world)
    offered = world.pairs.offers(demos.step_states, demos.actions)
    if not offered.all():
        _name_unknown_pair(demos, world, int(np.argmin(offered)))
    pairs = world.pairs.index(demos.step_states, demos.actions, InvalidDemonstrations)
    outside = (demos.last_states < 0) | (demos.last_states >= world.num_states)
    if outside.any():
        episode = int(np.argmax(outside))
        raise InvalidDemonstrations(
            f"{demos.where(episode)} ends in state {demos.last_states[episode]}, outside "
            f"0..{world.num_states - 1}",
            "Use the world's state ids",
        )
    steps_known = world.transition_error is None and world.transition_counts is None
    if steps_known or world.known_support:
        _refuse_impossible(demos, world, pairs)
    _refuse_unfinished(demos, world)
    return pairs


def _refuse_positions(demos: "Demonstrations", world: World) -> None:
    """Files of 0.1.0 may hold where an action stands among those of its state."""
    known, own = demos.pairs, world.pairs
    if known is None or own.numbers is None or known.numbers is not None:
        return
    if np.array_equal(known.offsets, own.offsets):
        state = int(own.states[np.argmax(own.actions != own.positions)])
        raise InvalidDemonstrations(
            "the demonstrations say that they number the actions of every state from 0, and the "
            f"world does not (state {state} has {own.actions_in_words(state)})",
            "If they were recorded with journeyman 0.1.0, record them again; if their actions have "
            "the world's numbers, give choice_offsets=world.pairs, or leave it out",
        )


def _name_unknown_pair(demos: "Demonstrations", world: World, step: int) -> None:
    state, action = int(demos.step_states[step]), int(demos.actions[step])
    if world.observed_actions is not None and 0 <= state < world.num_states:
        offered = f"the world does not offer it there ({world.pairs.actions_in_words(state)})"
        if not world.is_estimated:
            raise InvalidDemonstrations(
                f"{_where(demos, step)}: "
                + world.with_names(f"action {action} was taken in state {state}, and {offered}"),
                "Give the world a law of the action there, or check the step",
            )
        raise InvalidDemonstrations(
            f"{_where(demos, step)}: "
            + world.with_names(
                f"action {action} was never recorded in state {state}, so {offered}"
            ),
            "Record what the action does there (without such episodes it is another expert)",
        )
    raise InvalidDemonstrations(
        f"{_where(demos, step)}: "
        + world.with_names(f"state {state}, action {action} is not a pair of the world")
        + f" ({world!r})",
        "Use the world's state ids, and action numbers from 0 within each state"
        if world.pairs.numbers is None
        else "Use the world's state ids and action numbers",
    )


def _refuse_impossible(demos: "Demonstrations", world: World, pairs: IntArray) -> None:
    laws = world.transition if world.support is None else world.support
    probability = np.asarray(laws[pairs, demos.next_states]).ravel()
    if (probability <= 0).any():
        step = int(np.argmax(probability <= 0))
        ending = world.sink is not None and world.transition[pairs[step], world.sink] > 0
        declared = world.support is not None
        if ending:
            remedy = (
                "This step ends the episode: mark it terminated and give terminal_state=world.sink"
                "; jm.read_demonstrations(path, world=world) does so"
            )
        elif declared:
            remedy = (
                "If the step is possible the support is wrong: allow it there, or leave the "
                "support out. Otherwise "
                "check that demonstrations and world number states and actions alike"
            )
        else:
            remedy = "Check that demonstrations and world number states and actions alike"
        raise InvalidDemonstrations(
            f"{_where(demos, step)}: "
            + world.with_names(
                f"the step from state {demos.step_states[step]} by action {demos.actions[step]} to "
                f"state {demos.next_states[step]} "
            )
            + ("contradicts the declared support, which excludes it" if declared else NEVER),
            remedy,
        )


def _refuse_unfinished(demos: "Demonstrations", world: World) -> None:
    unfinished = demos.terminated & ~world.absorbing[demos.last_states]
    if not unfinished.any():
        return
    episode, longest = int(np.argmax(unfinished)), int(demos.lengths.max())
    alike = int((demos.lengths[unfinished] == longest).sum())
    remedy = "Mark it truncated if it has been stopped"
    if alike and longest > 1:
        which = (
            "It has"
            if unfinished.sum() == 1
            else f"{alike} of {unfinished.sum()} such episodes have"
        )
        remedy = (
            f"{which} {longest} steps, and no episode has more: if that is a time limit, give "
            f"truncated_at={longest}, and ends there are read as truncated"
        )
    end = (
        "name the absorbing state with terminal_state="
        if world.sink is None
        else f"give terminal_state={world.sink}, the end that was added for terminated episodes"
    )
    raise InvalidDemonstrations(
        f"{demos.where(episode)} is marked terminated but ends in "
        + world.with_names(f"state {demos.last_states[episode]}, which is not absorbing"),
        f"{remedy}; if it has terminated, {end}",
    )


def _where(demos: "Demonstrations", step: int) -> str:
    return demos.where(int(demos.step_episodes[step]), int(demos.step_times[step]))


FEWEST = 5
"""Episodes of one length from which on it is suspicious by itself."""


KNOWN_TAILS = "as terminated episodes their tails are taken for known"
"""What follows for demonstrations from a mark that is wrong."""


class Episodes(Protocol):
    """What is asked of records whose ends are examined: of every episode, and of every step."""

    @property
    def lengths(self) -> IntArray: ...
    @property
    def terminated(self) -> BoolArray: ...
    @property
    def last_states(self) -> IntArray: ...
    @property
    def step_states(self) -> IntArray: ...
    @property
    def next_states(self) -> IntArray: ...


def at_limit(demos: "Demonstrations", truncated_at: Any) -> BoolArray:
    """The episodes that a time limit of so many steps has ended; longer ones contradict it."""
    limit = whole("truncated_at", truncated_at, least=1)
    longer = np.flatnonzero(demos.lengths > limit)
    if longer.size:
        episode = int(longer[0])
        raise InvalidDemonstrations(
            f"{demos.where(episode)} has {demos.lengths[episode]} steps, more than "
            f"truncated_at = {limit}",
            "Give the number of steps at which the time limit ends every episode",
        )
    return np.asarray(demos.lengths == limit)


def whole(name: str, value: Any, *, least: int = 0) -> int:
    """A whole number from `least`."""
    return require_whole(name, value, least, InvalidDemonstrations)


def suspected_limit(demos: Episodes) -> tuple[int, str] | None:
    """The length at which a time limit seems to have ended episodes that are marked terminated, and
    the evidence.

    Some recorders mark an episode terminated whenever it stops, also when a time limit stopped it.
    Its tail is then taken for known, which it is not. What shows it is a length: many episodes
    marked terminated are as long as the longest, although what they end in is left again elsewhere.
    Where most episodes of that length are not marked, the recorder distinguishes limits.

    That is the greatest length, if two or more such episodes, and most of all that have it, end in
    a state that a step of the records leaves for another one; or if all of them have it and end in
    many places.
    """
    longest = int(demos.lengths.max())
    at = demos.terminated & (demos.lengths == longest)
    count, num_terminated = int(at.sum()), int(demos.terminated.sum())
    if longest < 2 or count < 2 or 2 * count <= int((demos.lengths == longest).sum()):
        return None
    which = f"{count} of {num_terminated} episodes marked terminated have {longest} steps, the most"
    ends, before, after = demos.last_states[at], demos.step_states, demos.next_states
    left_again = int(np.isin(ends, before[before != after]).sum()) if ends.ndim == 1 else 0
    if left_again >= 2:
        return longest, f"{which}, and {left_again} of these end in states that are left elsewhere"
    places = len(np.unique(ends, axis=0))
    if num_terminated == count >= FEWEST and 2 * places > count:
        return longest, f"{which}, and end in {places} different states"
    return None


def warn_of_limit(
    demos: Episodes,
    source: object,
    *,
    stacklevel: int,
    option: str = "truncated_at={}",
    otherwise: str = KNOWN_TAILS,
) -> None:
    """Warn where terminated episodes look as if a time limit had ended them.

    `option` says what declares the limit, `otherwise` what happens if nothing does.
    """
    found = suspected_limit(demos)
    if found is not None:
        limit, signs = found
        warnings.warn(
            f"{source}: {signs}, as if a time limit had ended them. If so, give "
            f"{option.format(limit)}; {otherwise}.",
            stacklevel=stacklevel + 1,
        )
