"""Walks and rows of a large world drawn once more, by the auditor's own steps.

The world, its costs and its features are asked, for they are what the run is about; how they are
asked is done anew: laws of features, mixtures, steps and totals. Every shard has a stream of its
own, named by the number of its first draw.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.auditing import protocol
from journeyman.auditing.large_inputs import Form, LargeQuestion
from journeyman.auditing.reading import Refused
from journeyman.auditing.tables import Floats, Ints

CostFunction = Callable[[Ints, Ints], Floats]


def shards(
    seed: int, stream: tuple[int, ...], count: int, size: int
) -> Iterator[tuple[np.random.Generator, int]]:
    """A generator and a number of draws for every shard."""
    for first in range(0, count, size):
        sequence = np.random.SeedSequence(seed, spawn_key=(*stream, first))
        yield np.random.default_rng(sequence), min(size, count - first)


def drawn_columns(laws: Floats, numbers: Floats) -> Ints:
    """A column of every row, by its law: numbers are used up weight by weight."""
    left, found = numbers.copy(), np.full(len(laws), -1)
    last = np.zeros(len(laws), dtype=np.int64)
    for column in range(laws.shape[1]):
        weight = laws[:, column]
        last = np.where(weight > 0, column, last)
        left = left - weight
        found = np.where((found < 0) & (left < 0) & (weight > 0), column, found)
    return np.where(found < 0, last, found)


@dataclass(frozen=True, eq=False)
class Combined:
    """What combined features say in every state: u+ over its sum, all alike where there is none."""

    features: Any
    theta: Floats
    num_actions: int

    def sample(self, states: Any, rng: np.random.Generator) -> Ints:
        x = np.asarray(states, dtype=np.int64)
        columns = [
            self.features.rows(x, np.full(x.size, a, dtype=np.int64)) @ self.theta
            for a in range(self.num_actions)
        ]
        laws = np.maximum(np.column_stack(columns), 0.0)
        sums = laws.sum(axis=1)
        laws[sums <= 0] = 1.0
        laws = laws / laws.sum(axis=1)[:, np.newaxis]
        return drawn_columns(laws, rng.random(x.size))


@dataclass(frozen=True, eq=False)
class Table:
    """Probabilities per state, the same number of actions in each."""

    laws: Floats

    def sample(self, states: Any, rng: np.random.Generator) -> Ints:
        chosen = self.laws[np.asarray(states)]
        return drawn_columns(chosen, rng.random(len(chosen)))


@dataclass(frozen=True, eq=False)
class Drawn:
    """A mixture: a candidate is drawn with the first call, and followed."""

    candidates: list[Any]
    weights: Floats
    rng: np.random.Generator | None = None

    def seeded(self, rng: np.random.Generator) -> "Drawn":
        return Drawn(self.candidates, self.weights, rng)

    def predict(self, observation: Any, state: Any = None, **_: Any) -> tuple[Any, Any]:
        assert self.rng is not None
        seen = np.asarray(observation)
        if state is None:
            laws = np.broadcast_to(self.weights, (len(seen), self.weights.size))
            who = drawn_columns(laws, self.rng.random(len(seen)))
            state = who, {k: Actor(self.candidates[k], self.rng) for k in np.unique(who)}
        who, actors = state
        parts = [(who == k, actor(seen, who == k)) for k, actor in actors.items()]
        actions = np.zeros((len(seen), *parts[0][1].shape[1:]), np.result_type(*parts[0][1:]))
        for mine, chosen in parts:
            actions[mine] = chosen
        return actions, state


class Actor:
    """Whatever can choose actions, asked for a batch of walks."""

    def __init__(self, policy: Any, rng: np.random.Generator) -> None:
        self._rng, self._state = rng, None
        by_predict = hasattr(policy, "predict") and not hasattr(policy, "sample")
        self._policy = policy.seeded(rng) if by_predict and hasattr(policy, "seeded") else policy
        self._started = False

    def __call__(self, states: Any, mine: Any = slice(None)) -> Any:
        """Actions of all walks, or of some; who carries a state of its own is shown all."""
        if hasattr(self._policy, "sample"):
            return np.asarray(self._policy.sample(states[mine], self._rng))
        if not hasattr(self._policy, "predict"):
            return np.asarray(self._policy(states[mine], self._rng))
        starting = np.full(len(states), not self._started)
        self._started = True
        actions, self._state = self._policy.predict(
            states, state=self._state, episode_start=starting, deterministic=False
        )
        return np.asarray(actions)[mine]


def policy_of(form: Form, name: str, parts: dict[str, Any], question: LargeQuestion) -> Any:
    """The policy that figures and code make together."""
    told = _told(form, name)
    if told["form"] == "reference":
        return parts[name]
    if told["form"] == "features" and question.sizes is not None:
        theta, features = form.figures("coefficients", name), parts[f"features of the {name}"]
        return Combined(features, theta, question.sizes[1])
    if told["form"] == "table" and question.sizes is not None:
        laws = _tabled(form, name, question.sizes)
        if (laws < 0).any() or (np.abs(laws.sum(axis=1) - 1) > 1e-8).any():
            raise Refused("the probabilities of the policy are no laws")
        return Table(laws)
    if told["form"] == "mixture":
        members = [
            None if one["form"] == "unused"
            else policy_of(form, f"candidate {k} of the {name}", parts, question)
            for k, one in enumerate(told["candidates"])
        ]  # fmt: skip
        return Drawn(members, form.figures("weights", name))
    raise Refused(f"a policy of the form {told['form']!r} cannot be walked")


def _tabled(form: Form, name: str, sizes: tuple[int, int]) -> Floats:
    """Probabilities per pair as (states x actions), by the numbers of the actions."""
    given, first = form.figures("probabilities", name), form.wholes("offsets", name)
    count = np.diff(first)
    if first.size != sizes[0] + 1 or first[0] != 0 or (count < 1).any() or first[-1] != given.size:
        raise Refused("the probabilities of the policy are not those of the world's states")
    state = np.arange(sizes[0]).repeat(count)
    number = np.arange(given.size) - first[state]
    if f"action numbers of the {name}" in form.arrays:
        number = form.wholes("action numbers", name)
    if number.size != given.size or (number < 0).any() or (number >= sizes[1]).any():
        raise Refused("the policy takes an action that the world lacks")
    laws = np.zeros(sizes)
    laws[state, number] = given
    return laws


def _told(form: Form, name: str) -> dict[str, Any]:
    """The form of the policy, or of one of its candidates, by its name."""
    told = form.told
    for word in reversed(name.split(" of the ")):
        told = told if word == "policy" else told["candidates"][int(word.split()[1])]
    return told


def walk_totals(
    world: Any,
    cost: CostFunction,
    policy: Any,
    count: int,
    horizon: int,
    rng: np.random.Generator,
) -> Floats:
    """Discounted totals of walks that take their steps together: (walks x costs)."""
    actor, here = Actor(policy, rng), np.asarray(world.draw_initial(rng, count))
    totals: Floats | None = None
    weight = 1.0
    for _ in range(horizon):
        actions = actor(here)
        paid = weight * cost(here, actions)
        totals = paid if totals is None else totals + paid
        weight *= world.discount
        here = stepped(world, rng, here, actions)
    assert totals is not None
    return totals


def stepped(world: Any, rng: np.random.Generator, states: Ints, actions: Ints) -> Ints:
    """Next states; successors in the order of their ids."""
    if hasattr(world, "step"):
        return np.asarray(world.step(rng, states, actions))
    ids, laws = (np.asarray(part) for part in world.successors(states, actions))
    order = np.argsort(ids, axis=1, kind="stable")
    rows = np.arange(len(ids))[:, np.newaxis]
    chosen = drawn_columns(laws[rows, order], rng.random(len(ids)))
    return np.asarray(ids[rows, order][np.arange(len(ids)), chosen])


def all_walks(
    totals: Callable[[np.random.Generator, int], tuple[Floats, Floats]],
    seed: int,
    stream: tuple[int, ...],
    count: int,
) -> tuple[Floats, Floats]:
    """Totals and unrecorded times of all shards."""
    parts = [totals(rng, part) for rng, part in shards(seed, stream, count, protocol.WALK_SHARD)]
    return np.vstack([one for one, _ in parts]), np.concatenate([one for _, one in parts])
