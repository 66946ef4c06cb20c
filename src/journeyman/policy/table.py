"""Stationary policies as tables: for each state a law, a probability for each of its actions.

A table comes from probabilities, from logits (`softmax`) or from a measure (`extract`).
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Seed,
    assign,
    first_index,
    generator,
    integer_array,
    normaliser,
    read_only,
    real_array,
    require_in_range,
    require_whole,
)
from journeyman.errors import InvalidPolicy
from journeyman.lazy import InNotebooks
from journeyman.policy.acting import Predicting
from journeyman.storage import PathLike, load_arrays, save_arrays, take
from journeyman.tables import is_csv, is_frame, to_frame
from journeyman.world import Pairs, World

FIRST_VERSION, NUMBERED_VERSION, SCHEMA_VERSION = 1, 2, 3
"""Where states number their actions otherwise than from 0, version 2 is written: readers of the
first would return positions for actions. Policies that depend on time need version 3."""
LARGEST_TABLE = 1 << 28
"""Entries of the largest table of laws."""
SUM_TOLERANCE, SINGLE_TOLERANCE = 1e-8, 1e-5
"""How far probabilities may sum from 1, in double and in single precision; then they are
normalised."""


def sum_tolerance(given: object) -> float:
    """Single precision is what networks return."""
    kind = getattr(given, "dtype", None)
    return SINGLE_TOLERANCE if str(kind).removeprefix("torch.") == "float32" else SUM_TOLERANCE


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Policy(InNotebooks, Predicting):
    """A law over actions in every state.

    Args:
        probabilities: (states x actions) array, or one entry per pair with `choice_offsets`.
        choice_offsets: for one entry per pair: `world.pairs`, which also has the numbers of the
            actions, or offsets as in `World` where every state numbers its actions from 0.

    Actions go by the numbers they have in the world, in `predict`, `sample` and files, and as the
    columns of `probabilities`. A (states x actions) array fits a world that does not offer every
    action in every state when it gives the others no probability.

    >>> policy = Policy([[0.25, 0.75], [1.0, 0.0]])
    >>> policy.probabilities([1, 0]).tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """

    per_pair: FloatArray
    pairs: Pairs

    def __init__(
        self, probabilities: ArrayLike, choice_offsets: ArrayLike | Pairs | None = None
    ) -> None:
        if choice_offsets is None:
            table = real_array("probabilities", probabilities, ndim=2, refusal=InvalidPolicy)
            if 0 in table.shape:
                raise InvalidPolicy(
                    f"probabilities is empty (shape {table.shape})",
                    "Give one row per state and one column per action",
                )
            pairs = Pairs.rectangular(*table.shape)
            flat = table.ravel()
        else:
            pairs = Pairs.of(choice_offsets)
            flat = real_array(
                "probabilities", probabilities, ndim=1, size=len(pairs), refusal=InvalidPolicy
            )
        tolerance = sum_tolerance(probabilities)
        assign(self, per_pair=_law(flat, pairs, tolerance), pairs=pairs)

    @classmethod
    def uniform(cls, world: World) -> Self:
        """Every action of a state equally likely."""
        return cls(world.pairs.uniform, world.pairs)

    @property
    def num_states(self) -> int:
        return self.pairs.num_states

    @cached_property
    def _table(self) -> FloatArray:
        """Laws by position."""
        return self.pairs.packed(self.per_pair)

    @cached_property
    def _cumulative(self) -> FloatArray:
        """Running sums per state, 1 from its last possible action on (so none beyond is drawn)."""
        sums = np.cumsum(self._table, axis=1)
        last = self._table.shape[1] - 1 - np.argmax(self._table[:, ::-1] > 0, axis=1)
        sums[np.arange(sums.shape[1]) >= last[:, np.newaxis]] = 1.0
        return sums

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws; the k-th column is action number k.

        An action that a state lacks has probability zero.
        """
        asked = self._checked(states)
        rows, pairs = np.asarray(self._table[asked]), self.pairs
        if pairs.numbers is None:
            return rows
        if asked.size * pairs.width > LARGEST_TABLE:
            raise InvalidPolicy(
                f"the laws of {asked.size} states have a column for each of {pairs.width} action "
                "numbers, which is too much for one table",
                "Ask for fewer states at a time, or use sample(states, seed)",
            )
        laws = np.zeros((asked.size, pairs.width))
        inside = np.arange(rows.shape[1]) < pairs.actions_per_state[asked][:, np.newaxis]
        row, position = np.nonzero(inside)
        laws[row, pairs.numbers[pairs.offsets[asked][row] + position]] = rows[inside]
        return laws

    def sample(self, states: ArrayLike, seed: Seed) -> IntArray:
        """One action for each state."""
        rows = self._cumulative[self._checked(states)]
        draws = generator(seed).random(len(rows))
        return self._numbers(states, (rows <= draws[:, np.newaxis]).sum(axis=1))

    def likeliest(self, states: ArrayLike) -> IntArray:
        """The action of greatest probability in each state, the first of several."""
        return self._numbers(states, np.argmax(self._table[self._checked(states)], axis=1))

    def _numbers(self, states: ArrayLike, positions: IntArray) -> IntArray:
        """The numbers of the actions that stand at given positions."""
        if self.pairs.numbers is None:
            return np.asarray(positions)
        return np.asarray(self.pairs.numbers[self.pairs.offsets[np.asarray(states)] + positions])

    def mixed_with(self, other: "Policy", share: float) -> "Policy":
        """In each state follow `other` with probability `share`."""
        if other.pairs != self.pairs:
            raise InvalidPolicy("the policies have different actions", "Mix policies of one world")
        if not 0 <= share <= 1:
            raise InvalidPolicy(f"share = {share}", "Give a share between 0 and 1")
        mixture = (1 - share) * self.per_pair + share * other.per_pair
        return Policy(mixture, self.pairs)

    def on(self, world: World) -> FloatArray:
        """Probabilities per pair of `world`; refused when the policy belongs to another world.

        A policy of a world without a horizon acts in the same way at every step of one with it, and
        one of the base world of averages as it does there.
        """
        if self.pairs == world.pairs:
            return self.per_pair
        if world.averages is not None and self.num_states == world.averages.num_states:
            ending = world.pairs.uniform[world.pairs.offsets[world.averages.end] :]
            return np.append(self.on(world.averages.base), ending)
        layers = world.layers
        if layers is not None and self.num_states == layers.num_states:
            ending = world.pairs.uniform[world.pairs.offsets[layers.end] :]
            return np.append(np.tile(self.on(layers.base), layers.horizon), ending)
        if self.num_states == world.num_states:
            wide = self.pairs.width >= world.pairs.width and world.observed_actions is not None
            if self._lacks_numbers_of(world):
                return self._in_order_of(world)
            if wide or not self.pairs.is_complete:
                return self._by_number(world)
        steps = self.pairs.horizon
        if steps is not None and layers is None:
            raise InvalidPolicy(
                f"the policy depends on time: it is for episodes of {steps} steps, and the world "
                "has no horizon",
                f"Give the world this horizon: world.with_horizon({steps})",
            )
        raise InvalidPolicy(
            f"the policy is for {self.num_states} states and {len(self.pairs)} pairs, the "
            f"world has {world.num_states} and {world.num_pairs} (or other action sets)",
            "Use a policy made for this world",
        )

    def fitted(self, world: World) -> "Policy":
        """The same policy with the pairs of `world`, and so with its action numbers."""
        return self if self.pairs == world.pairs else Policy(self.on(world), world.pairs)

    def _lacks_numbers_of(self, world: World) -> bool:
        """Whether it was made from the offsets of `world`, which lack action numbers."""
        return (
            self.pairs.numbers is None
            and not self.pairs.is_complete
            and np.array_equal(self.pairs.offsets, world.pairs.offsets)
        )

    def _in_order_of(self, world: World) -> FloatArray:
        pairs = world.pairs
        state = int(pairs.states[np.argmax(pairs.actions != pairs.positions)])
        warnings.warn(
            "the policy was made from offsets, which lack the numbers of the world's actions "
            f"(state {state} has {pairs.actions_in_words(state)}): it is taken in the order of the "
            "world's pairs, but its own predict numbers the actions of a state from 0; make it "
            "with jm.Policy(probabilities, world.pairs)",
            stacklevel=3,
        )
        return self.per_pair

    def _by_number(self, world: World) -> FloatArray:
        """The same actions in `world`, which has to offer all that are taken.

        Only where a state is never left, and has one action for that, any action is that one.
        """
        own, pairs = self.pairs, world.pairs
        resting = world.absorbing & (pairs.actions_per_state == 1)
        offered = pairs.offers(own.states, own.actions)
        lost = ~offered & ~resting[own.states] & (self.per_pair > 0)
        if lost.any():
            pair = int(np.argmax(lost))
            state = int(own.states[pair])
            raise InvalidPolicy(
                world.with_names(
                    f"the policy takes action {own.actions[pair]} in state {state} with "
                    f"probability {self.per_pair[pair]:g}, but the world has only "
                    f"{pairs.actions_in_words(state)} there"
                ),
                "Use a policy made for this world, or give probability to actions that it offers "
                "only",
            )
        kept = np.zeros(len(pairs))
        kept[pairs.index(own.states[offered], own.actions[offered])] = self.per_pair[offered]
        kept[resting[pairs.states]] = 1.0
        return _law(kept, pairs)

    def save(self, path: PathLike, world: World | None = None) -> None:
        """Write the policy to one file, atomically and without pickle: as a table for people and
        spreadsheets for `*.csv`, with the names that `world` has; otherwise in the native format.
        """
        if is_csv(path):
            from journeyman.policy.listing import Listing

            Listing.of(_needed(world, path), self).save(path)
            return
        arrays = {"probabilities": self.per_pair, "choice_offsets": self.pairs.offsets}
        version, facts = FIRST_VERSION, {}
        if self.pairs.numbers is not None:
            arrays["action_numbers"], version = self.pairs.numbers, NUMBERED_VERSION
        if self.pairs.horizon is not None:
            facts, version = {"horizon": self.pairs.horizon}, SCHEMA_VERSION
        save_arrays(path, "policy", version, arrays, **facts)

    def to_rows(self, world: World | None = None) -> list[dict[str, Any]]:
        """One row for every action that is taken in a state, with its probability; with `world`
        also visits, and names where it has them: the rows of the CSV file that `save` writes."""
        if world is not None:
            from journeyman.policy.listing import Listing

            return Listing.of(world, self).to_rows()
        taken = np.flatnonzero(self.per_pair)
        columns = (self.pairs.states[taken], self.pairs.actions[taken], self.per_pair[taken])
        keys = ("state", "action", "probability")
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [dict(zip(keys, row, strict=True)) for row in rows]

    def to_frame(self, world: World | None = None) -> Any:
        """`to_rows` as a pandas DataFrame (extra `frames`)."""
        return to_frame(self.to_rows(world))

    @classmethod
    def load(cls, path: PathLike, world: World | None = None) -> Self:
        """Read a policy written by `save`; everything is checked again.

        A table (`*.csv`, or a data frame) with the columns state, action and probability, and t
        where it depends on time, is read as a policy of `world` (`policy.listing`).
        """
        if is_csv(path) or is_frame(path):
            from journeyman.policy.listing import read_policy

            found = read_policy(path, _needed(world, path))
            return cls(found.per_pair, found.pairs)
        facts, arrays = load_arrays(path, "policy", SCHEMA_VERSION)
        pairs = Pairs(take(path, arrays, "choice_offsets"), arrays.get("action_numbers"))
        if facts.get("horizon") is not None:
            steps = require_whole("horizon", facts["horizon"], 1, InvalidPolicy)
            if (pairs.num_states - 1) % steps:
                raise InvalidPolicy(
                    f"{pairs.num_states} states are no {steps} layers and an end", "Save it again"
                )
            assign(pairs, horizon=steps)
        return cls(take(path, arrays, "probabilities"), pairs)

    @property
    def horizon(self) -> int | None:
        """Steps of an episode where the policy depends on time; None where it does not."""
        return self.pairs.horizon

    def at_step(self, t: int) -> "Policy":
        """What it does at step `t` of an episode: a policy of the world without the horizon."""
        if self.pairs.horizon is None:
            return self
        step, steps = require_whole("t", t, 0, InvalidPolicy), self.pairs.horizon
        if step >= steps:
            raise InvalidPolicy(f"t = {step}, and episodes have {steps} steps", "Count from 0")
        count = (self.num_states - 1) // steps
        offsets = self.pairs.offsets[step * count : (step + 1) * count + 1]
        own = slice(int(offsets[0]), int(offsets[-1]))
        numbers = None if self.pairs.numbers is None else self.pairs.numbers[own]
        return Policy(self.per_pair[own], Pairs(offsets - offsets[0], numbers))

    def predict(
        self,
        observation: ArrayLike,
        state: Any = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """As in `Predicting`. A policy with a horizon observes states of the world without it, and
        `state` is the step t at which they are observed, of all episodes or of each; it returns
        the next one. Without it, and where `episode_start` says so, episodes are at their start.

        >>> world = World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2]).with_horizon(2)
        >>> policy = Policy([1, 0, 0, 1, 1, 0], world.pairs)
        >>> policy.predict(0, 1)[0], policy.predict([0])
        (np.int64(1), (array([0]), 1))
        """
        steps = self.pairs.horizon
        if steps is None:
            return super().predict(observation, state, episode_start, deterministic)
        count = (self.num_states - 1) // steps
        observed = np.asarray(observation)
        states = integer_array("observation", observed.ravel(), refusal=InvalidPolicy)
        require_in_range("observation", states, count, InvalidPolicy)
        time = np.asarray(0 if state is None else state)
        if episode_start is not None and np.any(episode_start):
            time = np.where(np.asarray(episode_start, dtype=bool), 0, time)
        if time.dtype.kind not in "iu" or (time < 0).any() or (time >= steps).any():
            raise InvalidPolicy(
                f"it is step {time.tolist()!r} of an episode of {steps} steps",
                f"Give as state= the step, from 0 to {steps - 1}, and episode_start=True where an "
                "episode starts",
            )
        places = states.reshape(observed.shape) + time * count
        actions, _ = super().predict(places, None, None, deterministic)
        return actions, (time + 1)[()] if time.ndim else int(time) + 1

    def _checked(self, states: ArrayLike) -> IntArray:
        ids = integer_array("states", states, refusal=InvalidPolicy)
        require_in_range("states", ids, self.num_states, InvalidPolicy)
        return ids

    def __repr__(self) -> str:
        steps = self.pairs.horizon
        if steps is not None:
            return f"Policy({(self.num_states - 1) // steps} states, {steps} steps)"
        return f"Policy({self.num_states} states, {len(self.pairs)} pairs)"


def _needed(world: World | None, source: Any) -> World:
    """A table names states and actions, and only the world says which ones there are."""
    if world is None:
        what = source if is_csv(source) else "the data frame"
        raise InvalidPolicy(
            f"{what} is a table of states and actions, and it is not said of which world",
            "Give the world too: policy.save(path, world), jm.Policy.load(path, world)",
        )
    return world


def _law(probabilities: FloatArray, pairs: Pairs, tolerance: float = SUM_TOLERANCE) -> FloatArray:
    """Probabilities whose sum over each state's actions is one; a small error is repaired."""
    if (probabilities < 0).any():
        pair = int(first_index(probabilities < 0))  # type: ignore[arg-type]
        raise InvalidPolicy(
            f"probability {probabilities[pair]} in {pairs.pair_in_words(pair)} is negative",
            "Probabilities are at least 0",
        )
    sums = pairs.total(probabilities)
    wrong = np.abs(sums - 1.0) > tolerance
    if wrong.any():
        state = first_index(wrong)
        raise InvalidPolicy(
            f"the probabilities of state {state} sum to {float(sums[state])!r}",
            f"They must sum to 1 within {tolerance:.0e} in every state".replace("e-0", "e-"),
        )
    return read_only(probabilities / pairs.spread(normaliser(sums, pairs.actions_per_state)))


def softmax(pairs: Pairs, logits: FloatArray) -> FloatArray:
    """pi(a | x) = exp(z(x, a)) / sum_b exp(z(x, b)) for logits z, one number per pair.

    The largest logit of each state is subtracted first, so any finite logits will do: what is too
    small to be seen beside it becomes 0, and nothing overflows.

    >>> softmax(Pairs([0, 2, 3]), np.array([1e300, 1e300, -7.0])).tolist()
    [0.5, 0.5, 1.0]
    """
    shares = np.exp(_below_largest(pairs, logits))
    return np.asarray(shares / pairs.spread(pairs.total(shares)))


def log_softmax(pairs: Pairs, logits: FloatArray) -> FloatArray:
    """The logarithm of `softmax`, exact where the probability itself is too small for a float."""
    below = _below_largest(pairs, logits)
    return np.asarray(below - pairs.spread(np.log(pairs.total(np.exp(below)))))


def _below_largest(pairs: Pairs, logits: FloatArray) -> FloatArray:
    """The logits less the largest of their state; -inf when they are further apart than floats."""
    with np.errstate(over="ignore"):
        return np.asarray(logits + pairs.spread(pairs.smallest(-logits)))


def extract(world: World, measure: ArrayLike) -> Policy:
    """The policy of a vector u over the pairs of `world`.

        pi_u(a | x) = u+(x, a) / sum_b u+(x, b),      uniform where u(x, .) <= 0

    where u+ is the positive part. For an occupancy measure this inverts the map from policies to
    measures (Proposition 1); for any other u Lemma 2 bounds how far the policy's occupancy is from
    u.

    >>> world = World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> extract(world, [3.0, -1.0]).probabilities([0]).tolist()
    [[1.0, 0.0]]
    """
    u = real_array("measure", measure, ndim=1, size=world.num_pairs, refusal=InvalidPolicy)
    positive = np.maximum(u, 0.0)
    peak = -world.pairs.smallest(-positive)  # dividing by it first keeps tiny measures exact
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = positive / world.pairs.spread(peak)
        probabilities = scaled / world.pairs.spread(world.pairs.total(scaled))
    unreached = world.pairs.spread(peak) == 0
    return Policy(np.where(unreached, world.pairs.uniform, probabilities), world.pairs)
