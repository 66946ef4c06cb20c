"""The world: a finite Markov decision process without a cost function.

    x_0 ~ initial,   x_{t+1} ~ transition[(x_t, a_t), :],   discount in (0, 1)

where the rows of `transition` are the state-action pairs in state-major order. Discount 1 is for
worlds with a goal, an absorbing state that ends an episode (`world.goals`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    assign,
    freeze_rows,
    integer_array,
    read_only,
    real_array,
    require_in_range,
)
from journeyman.errors import InvalidFile, InvalidWorld
from journeyman.lazy import InNotebooks
from journeyman.storage import PathLike, load_arrays, save_arrays, take
from journeyman.tables import FRAME, is_csv, is_frame, with_names
from journeyman.world import averages as long_run
from journeyman.world import conversions, estimation, goals, laws
from journeyman.world import layers as horizons
from journeyman.world.large_world import LargeWorld, Predecessors, Successors
from journeyman.world.laws import draw_outcomes, running_sums
from journeyman.world.pairs import Pairs
from journeyman.world.shared_laws import SharedLaws


@dataclass(frozen=True, eq=False)
class Flow:
    """The Bellman flow: the operator E = B - discount P, its transpose, and single columns.

        F = { mu >= 0 : (B - discount P)' mu = initial }

    where B spreads a state's value over its pairs and P is the transition matrix, in worlds of
    discount 1 with empty rows at ends (`World.continuation`). Proposition 1 of the paper: F is
    exactly the set of occupancy measures of stationary policies; with discount 1 that of proper
    ones, and circulations.
    """

    transition: SparseMatrix
    pairs: Pairs
    initial: FloatArray
    discount: float

    def apply(self, measure: FloatArray) -> FloatArray:
        """E' measure: what leaves each state minus the discounted mass that enters it."""
        incoming = self.transition.T @ measure
        return np.asarray(self.pairs.total(measure) - self.discount * incoming)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """E values = B values - discount P values, per pair."""
        return np.asarray(self.pairs.spread(values) - self.discount * (self.transition @ values))

    def residual(self, measure: FloatArray) -> FloatArray:
        """initial - E' measure; its 1-norm bounds the distance to an occupancy (Lemma 2)."""
        return np.asarray(self.initial - self.apply(measure))

    def column(self, state: int) -> tuple[IntArray, FloatArray]:
        """Pairs and entries of column `state` of E (entries that cancel are kept)."""
        own = np.arange(self.pairs.offsets[state], self.pairs.offsets[state + 1])
        lower, upper = self._columns.indptr[state : state + 2]
        entering = self._columns.indices[lower:upper]
        rows = np.union1d(own, entering)
        entries = np.zeros(rows.size)
        entries[np.searchsorted(rows, own)] = 1.0
        entries[np.searchsorted(rows, entering)] -= self.discount * self._columns.data[lower:upper]
        return rows, entries

    @cached_property
    def _columns(self) -> SparseMatrix:
        return self.transition.tocsc()

    def matrix(self) -> SparseMatrix:
        """E as a new CSR matrix (pairs x states)."""
        num_pairs, index = len(self.pairs), self.transition.indices.dtype
        states, starts = self.pairs.states.astype(index), np.arange(num_pairs + 1, dtype=index)
        ones = (np.ones(num_pairs), states, starts)
        spreading = sparse.csr_array(ones, shape=self.transition.shape)
        return freeze_rows((spreading - self.discount * self.transition).tocsr())


EXACT, ESTIMATED, SCHEMA_VERSION = 1, 2, 3
"""Exact worlds are written as version 1; its readers would take estimated ones for exact. Worlds
with a horizon or of averages need version 3: earlier readers would take them for their base
world."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class World(InNotebooks):
    """An explicit world. It has the members of a `LargeWorld`, answered from its arrays.

    Args:
        transition: (pairs x states) matrix, dense or sparse, one row per pair, state-major.
        initial: law of the first state.
        discount: gamma, strictly between 0 and 1; or 1 in a world with a goal (`sink`), which must
            be within reach of every state. Episodes are then over in any absorbing state, and
            costs, zero there, are added up until one is reached.
        choice_offsets: pairs of state x are `choice_offsets[x]:choice_offsets[x+1]`; by default
            every state has the same number of actions.
        coordinates: (states x dimensions) geometry, for pictures and features.
        state_names, action_names: for people; the k-th name is that of state k, or of the action
            with number k (also of one that was never observed).
        sink: the absorbing state that stands for "the episode has ended", if there is one; with
            discount 1 the goal.
        steps_at_most: M, with discount 1: declared that the expert, wherever it has got to, expects
            at most M further steps; policies that expect more from the start are not considered.
            Without it M is the longest expected time of any policy, if every policy comes to an
            end.
        transition_error: declared, for all pairs or per pair: at most this far, in the 1-norm, is
            the law of the pair from the true one. Without it and without counts laws are exact.
        initial_error: the same for the initial law.
        transition_counts: of how many observed transitions each pair's law is the frequency; laws
            that are no frequencies of so many are refused.
        initial_count: of how many observed starts `initial` is the frequency.
        support: (pairs x states or states x states) matrix, nonzero where a next state is possible,
            when that was known before anything was recorded. One that equals the observed pattern
            raises a `SupportWarning`: read off the record it makes bounds false.
        shared: which pairs share a law, with what was counted; `from_transitions` makes it.
        observed_actions: the number of each pair's action, where states do not have the actions
            0, 1, 2, ... of `choice_offsets`: the numbers under which they were recorded. Policies,
            demonstrations, files and reports use these numbers.

    >>> world = World(transition=[[0, 1], [1, 0], [0, 1]], initial=[1, 0], discount=0.9,
    ...               choice_offsets=[0, 2, 3])
    >>> world.num_states, world.num_pairs, world.absorbing.tolist()
    (2, 3, [False, True])
    """

    transition: SparseMatrix
    initial: FloatArray
    discount: float
    pairs: Pairs
    coordinates: FloatArray | None
    state_names: tuple[str, ...] | None
    action_names: tuple[str, ...] | None
    sink: int | None
    normalisation_error: float
    """Largest |row sum - 1| of the given matrix, below 1e-8; its rows were normalised."""
    transition_error: FloatArray | None
    initial_error: float | None
    transition_counts: IntArray | None
    initial_count: int | None
    support: SparseMatrix | None
    shared: SharedLaws | None
    observed_actions: IntArray | None
    steps_at_most: float | None
    layers: horizons.Layers | None
    """Of a world with a horizon: what it was made of; None in all others."""
    averages: long_run.Averages | None
    """Of a world of average costs: what it was made of; None in all others."""

    def __init__(
        self,
        transition: Any,
        initial: ArrayLike,
        discount: float,
        *,
        choice_offsets: ArrayLike | Pairs | None = None,
        coordinates: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        sink: int | None = None,
        transition_error: ArrayLike | None = None,
        initial_error: float | None = None,
        transition_counts: ArrayLike | None = None,
        initial_count: int | None = None,
        support: Any = None,
        shared: SharedLaws | None = None,
        observed_actions: ArrayLike | None = None,
        steps_at_most: float | None = None,
    ) -> None:
        rows = laws.transition_matrix(transition)
        num_states = rows.shape[1]
        pairs = laws.pairs_of(rows, choice_offsets, observed_actions)
        numbered = observed_actions is not None or pairs.numbers is not None
        normalised, correction = laws.row_stochastic(rows, pairs)
        starts = laws.probability_vector("initial", initial, num_states)
        assign(
            self,
            transition=freeze_rows(normalised),
            initial=starts,
            discount=laws.discount(discount, at_most_one=True),
            pairs=pairs,
            coordinates=_coordinates(coordinates, num_states),
            state_names=_names("state_names", state_names, num_states),
            action_names=_names(
                "action_names", action_names, pairs.width, or_more=observed_actions is not None
            ),
            sink=int(sink) if isinstance(sink, np.integer) else sink,
            normalisation_error=correction,
            **estimation.checked(
                normalised,
                pairs,
                initial=starts,
                transition_error=transition_error,
                initial_error=initial_error,
                transition_counts=transition_counts,
                initial_count=initial_count,
                support=support,
                shared=shared,
            ),
            observed_actions=pairs.actions if numbered else None,
            steps_at_most=goals.number_of_steps(steps_at_most),
            layers=None,
            averages=None,
        )
        estimation.warn_of_observed_support(self)
        if sink is not None and not (sink in range(num_states) and self.absorbing[int(sink)]):
            raise InvalidWorld(
                f"sink = {sink!r} is not an absorbing state",
                "Give a state whose every action stays there with probability 1",
            )
        if self.has_goal:
            goals.require_goal(self)
        elif steps_at_most is not None:
            raise InvalidWorld(
                f"steps_at_most = {steps_at_most!r} with discount {self.discount}",
                "Leave it out, or give discount=1 and the goal by sink=...",
            )

    @property
    def num_states(self) -> int:
        return int(self.transition.shape[1])

    @property
    def num_pairs(self) -> int:
        return int(self.transition.shape[0])

    @cached_property
    def effective_horizon(self) -> float:
        """1/(1 - discount), the mass of every occupancy measure. With discount 1 the bound M on
        the expected further steps of the expert from wherever it is, declared or that of all
        policies: the mass off the ends is at most M."""
        if not self.has_goal:
            return 1.0 / (1.0 - self.discount)
        if self.steps_at_most is not None:
            return self.steps_at_most
        return float(self._longest_times.max())

    @cached_property
    def _longest_times(self) -> FloatArray:
        """What proves M where it is not declared."""
        return goals.longest_times(self)

    @property
    def has_goal(self) -> bool:
        """Whether costs are added up undiscounted until an absorbing state is reached."""
        return self.discount == 1.0

    @cached_property
    def continuation(self) -> SparseMatrix:
        """The transition matrix as far as anything follows: with discount 1 the rows at ends, where
        nothing counts any more, are empty."""
        if not self.has_goal:
            return self.transition
        matrix, ended = self.transition, self.absorbing[self.pairs.states]
        sizes = np.diff(matrix.indptr)
        kept = np.repeat(~ended, sizes)
        index = matrix.indptr.dtype
        indptr = np.concatenate([[0], np.cumsum(np.where(ended, 0, sizes))]).astype(index)
        parts = (matrix.data[kept], matrix.indices[kept], indptr)
        return freeze_rows(sparse.csr_array(parts, shape=matrix.shape))

    @cached_property
    def reachable(self) -> BoolArray:
        """The states that some policy gets to."""
        chain = goals.steps_of(self.transition, self.pairs)
        return read_only(goals.reachable(chain, self.initial > 0))

    def with_horizon(self, steps: int, discount: float | None = None) -> Self:
        """The same world with episodes that end after so many steps, whatever happens in them.

        Its states are (x, t), the end is its `sink`, and its `layers` say how it was made
        (`world.layers`). Problems, plans, budgets and demonstrations take costs, records and
        policies of this world there as they are.

        Args:
            steps: H, of every episode.
            discount: g, with which a step at time t counts g^t; 1 where all count the same. By
                default that of this world.

        >>> world = World([[0, 1], [1, 0]], [1, 0], 0.9).with_horizon(3, discount=1.0)
        >>> world
        World(2 states, 2 pairs, 2 transitions, 3 steps)
        >>> world.num_states, world.sink, world.layers.states_at([1, 1], [0, 2]).tolist()
        (7, 6, [1, 5])
        """
        return cast(Self, horizons.layered(self, steps, discount))

    def with_average_cost(self, restart: ArrayLike | None = None) -> Self:
        """The same world with costs that are averages a step in the long run.

        Its discount is that of a reduction (`world.averages`): expected totals there are averages
        here, wherever episodes start. Problems, plans, budgets and demonstrations take costs,
        records and policies of this world there as they are; budgets limit averages.

        Args:
            restart: a state (its number or name) that every policy keeps visiting, or a law that
                every step follows with some probability, whatever was done; by default one with
                short times between visits is looked for. Where there is none the world is refused.

        >>> world = World([[0, 1], [0.5, 0.5], [1, 0]], [1, 0], 0.9, choice_offsets=[0, 2, 3])
        >>> world.with_average_cost()
        World(2 states, 3 pairs, 4 transitions, average cost)
        """
        return cast(Self, long_run.averaged(self, restart))

    @property
    def reduction(self) -> horizons.Layers | long_run.Averages | None:
        """What the world was made of, where totals here stand for something else there."""
        return self.layers if self.averages is None else self.averages

    @property
    def of_records(self) -> "World":
        """The world whose steps demonstrations show: this one, or the base of one of averages."""
        return self if self.averages is None else self.averages.base

    @cached_property
    def is_forward(self) -> bool:
        """Whether every step leads to a state with a higher number, or stays, and is discounted."""
        indices, indptr, states = self.transition.indices, self.transition.indptr, self.pairs.states
        if self.has_goal or (indices[indptr[:-1]] < states).any():
            return False
        return bool((indices >= np.repeat(states, np.diff(indptr))).all())

    @property
    def is_estimated(self) -> bool:
        """Whether a law of this world may differ from the true one."""
        known = (self.transition_error, self.initial_error, self.transition_counts)
        return self.initial_count is not None or any(part is not None for part in known)

    @property
    def known_support(self) -> bool:
        """Whether it is known which next states are possible."""
        return self.support is not None

    @cached_property
    def flow(self) -> Flow:
        """The Bellman flow operator (B - discount P)'."""
        return Flow(self.continuation, self.pairs, self.initial, self.discount)

    @cached_property
    def absorbing(self) -> BoolArray:
        """States that no action leaves; in an estimated world, states of which that is certain."""
        matrix = self.transition if self.support is None else self.support
        certain = np.diff(matrix.indptr) == 1
        if self.transition_error is not None and self.support is None:
            certain &= self.transition_error == 0
        elif self.transition_counts is not None and self.support is None:
            certain &= False
        stays = certain & (matrix.indices[matrix.indptr[:-1]] == self.pairs.states)
        return read_only(np.asarray(np.logical_and.reduceat(stays, self.pairs.offsets[:-1])))

    @property
    def num_actions(self) -> int:
        """The number of actions, refused when states differ in their actions."""
        if not self.pairs.is_rectangular:
            least, most = int(self.pairs.actions_per_state.min()), self.pairs.max_actions
            raise InvalidWorld(
                f"the states of this world have {least} to {most} actions, not one number of them",
                "Use pairs.actions_per_state; where every state must have the same actions, "
                "repeat one of a state that has fewer",
            )
        if self.pairs.numbers is not None:
            odd = int(np.argmax(self.pairs.numbers != self.pairs.positions))
            state = int(self.pairs.states[odd])
            raise InvalidWorld(
                f"state {state} has {self.pairs.actions_in_words(state)}, not the actions "
                f"0..{self.pairs.max_actions - 1} that every state of such a world must have",
                "Use pairs.actions; where every state must have the actions from 0 on, give the "
                "world with World(...) and those numbers",
            )
        return self.pairs.max_actions

    def draw_initial(self, rng: np.random.Generator, count: int) -> IntArray:
        """First states; one uniform number is spent on each."""
        return draw_outcomes(self._initial_sums, rng.random(count))

    def initial_probability(self, states: ArrayLike) -> FloatArray:
        """The initial law at given states."""
        return np.asarray(self.initial[self._checked(states)])

    def successors(self, states: ArrayLike, actions: ArrayLike) -> Successors:
        """Laws of the next state, padded to the largest branching among the given pairs."""
        asked = integer_array("states", states, refusal=InvalidWorld)
        rows, matrix = self.pairs.index(asked, actions, InvalidWorld), self.transition
        first = matrix.indptr[rows].astype(np.int64)
        branches = matrix.indptr[rows + 1] - first
        column = np.arange(int(branches.max(initial=1)))
        used = column < branches[:, np.newaxis]
        place = np.where(used, first[:, np.newaxis] + column, first[:, np.newaxis])
        reached = matrix.indices[place].astype(np.int64)
        return Successors(reached, np.where(used, matrix.data[place], 0.0))

    def predecessors(self, states: ArrayLike) -> Predecessors:
        """The pairs that lead to given states, in the order of pairs."""
        asked, columns = self._checked(states), self._entering
        first = columns.indptr[asked].astype(np.int64)
        counts = columns.indptr[asked + 1] - first
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        place = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], counts)
        rows = columns.indices[place]
        return Predecessors(
            offsets, self.pairs.states[rows], self.pairs.actions[rows], columns.data[place]
        )

    @cached_property
    def _entering(self) -> SparseMatrix:
        """The transition matrix by columns: the rows of each are in order."""
        return self.transition.tocsc()

    @cached_property
    def _initial_sums(self) -> FloatArray:
        return running_sums(self.initial)

    def _checked(self, states: ArrayLike) -> IntArray:
        ids = integer_array("states", states, refusal=InvalidWorld)
        require_in_range("states", ids, self.pairs.num_states, InvalidWorld)
        return ids

    def describe_pair(self, pair: int) -> str:
        """A pair in words, for messages."""
        return self.with_names(self.pairs.pair_in_words(pair))

    def with_names(self, text: str) -> str:
        """The same text, with its name behind every number of a state or an action."""
        return with_names(text, self.state_names, self.action_names)

    @classmethod
    def from_arrays(
        cls,
        transition: Any,
        initial: ArrayLike,
        discount: float,
        *,
        layout: str = "sax",
        **more: Any,
    ) -> Self:
        """From a dense array or a list of matrices with axes in the order of `layout`.

        `layout` is a permutation of "sax": s the state, a the action, x the next state. QuantEcon
        and seals use "sax", pymdptoolbox "asx" (there also as a list of sparse matrices).

        >>> asx = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
        >>> World.from_arrays(asx, [1, 0], 0.9, layout="asx").transition.toarray().tolist()
        [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
        """
        return cls(conversions.state_major(transition, layout), initial, discount, **more)

    @classmethod
    def from_gymnasium(
        cls, source: Any, discount: float, *, initial: ArrayLike | None = None, **more: Any
    ) -> Self:
        """From an environment with a `P` table, or from such a table itself.

        `P[s][a] = [(probability, next_state, reward, done), ...]`. `done` belongs to a transition,
        not to a state, so one absorbing state is added behind the table's own (`world.sink`): every
        branch with `done` leads there. Time limits of wrappers are not part of the table.
        """
        table = conversions.read(source, initial)
        return cls(table.transition, table.initial, discount, sink=table.num_states - 1, **more)

    @classmethod
    def from_transitions(
        cls,
        states: ArrayLike,
        actions: ArrayLike,
        next_states: ArrayLike,
        discount: float,
        *,
        initial: ArrayLike | None = None,
        initial_states: ArrayLike | None = None,
        num_states: int | None = None,
        support: Any = None,
        absorbing: ArrayLike = (),
        sink: int | None = None,
        drop_unseen: bool = False,
        shared: SharedLaws | None = None,
        **more: Any,
    ) -> Self:
        """From recorded steps: in `states[k]`, `actions[k]` led to `next_states[k]`.

        Actions never observed in a state are not offered there; the others keep the numbers under
        which they were recorded, in demonstrations, policies, files and reports.

        Args:
            initial: the law of the first state if it is known; otherwise
            initial_states: the observed first states, one per episode.
            num_states: by default as many as `initial` has, or as were seen. Certificates hold
                when there are no more.
            support: possible next states, if they were known before anything was recorded (the
                observed ones are none): (states x states), or (states * actions x states) by
                recorded action numbers.
            absorbing: states known never to be left, such as those where episodes end; `sink` is
                one of them. Where `done` belongs to a step and not to a state, send such steps to
                a state of their own: `next_states[done] = sink`. An absorbing state of which
                nothing was recorded has one action, the smallest number in the record.
            drop_unseen: numbers that occur nowhere are no states. They keep their place, so that
                nothing is numbered anew, as states that nothing leads to and nothing leaves.
            shared: pairs that share a law of outcomes (`jm.world.SharedLaws`): they are estimated
                together, and certificates pay for the error of one law for each group. Pairs that
                were never recorded have the law of their group.

        >>> world = World.from_transitions([0, 0, 0], [2, 2, 5], [0, 1, 1], 0.9,
        ...                                initial_states=[0, 0], absorbing=[1])
        >>> world.transition.toarray().tolist(), world.observed_actions.tolist()
        ([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]], [2, 5, 2])
        """
        ends = np.atleast_1d(absorbing)
        arguments = estimation.empirical(
            states,
            actions,
            next_states,
            initial=initial,
            initial_states=initial_states,
            num_states=num_states,
            support=support,
            absorbing=ends if sink is None else np.append(ends, sink),
            drop_unseen=drop_unseen,
            shared=shared,
        )
        return cls(**arguments, discount=discount, sink=sink, **more)

    def save(self, path: PathLike) -> None:
        """Write the world to one file, atomically and without pickle."""
        base = self if self.reduction is None else self.reduction.base
        base._save(path, self.layers, self.averages)

    def _save(
        self,
        path: PathLike,
        horizon: "horizons.Layers | None" = None,
        averages: "long_run.Averages | None" = None,
    ) -> None:
        matrix = self.transition
        arrays = {
            "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr,
            "initial": self.initial, "choice_offsets": self.pairs.offsets,
        }  # fmt: skip
        if self.coordinates is not None:
            arrays["coordinates"] = self.coordinates
        if self.has_goal and self.steps_at_most is None:
            arrays["longest_times"] = self._longest_times
        estimates, facts = estimation.stored(vars(self))
        version = ESTIMATED if self.is_estimated else EXACT
        if horizon is not None:
            version = SCHEMA_VERSION
            facts |= {"horizon": horizon.horizon, "step_discount": horizon.discount}
        if averages is not None:
            version = SCHEMA_VERSION
            arrays |= {"restart": averages.restart, "restart_times": averages.times}
        save_arrays(
            path, "world", version, arrays | estimates,
            discount=self.discount, sink=self.sink,
            state_names=self.state_names, action_names=self.action_names,
            **({"steps_at_most": self.steps_at_most} if self.has_goal else {}), **facts,
        )  # fmt: skip

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a world written by `save`; everything is checked again. `jm.read_world` reads tables
        and other files."""
        if is_csv(path) or is_frame(path):
            raise InvalidFile(
                f"{FRAME if is_frame(path) else path} is a table, not what World.save wrote",
                'Read it with jm.read_world(table, options={"discount": "0.95"})',
            )
        facts, arrays = load_arrays(path, "world", SCHEMA_VERSION)
        data, indices, indptr = (take(path, arrays, name) for name in ("data", "indices", "indptr"))
        initial = take(path, arrays, "initial")
        world = cls(
            conversions.untrusted_rows((data, indices, indptr), num_states=initial.size),
            initial,
            facts.get("discount", 0.0),
            choice_offsets=take(path, arrays, "choice_offsets"),
            coordinates=arrays.get("coordinates"),
            state_names=facts.get("state_names"),
            action_names=facts.get("action_names"),
            sink=facts.get("sink"),
            steps_at_most=facts.get("steps_at_most"),
            **estimation.restored(arrays, facts, num_states=initial.size),
        )
        if "restart" in arrays:
            times = take(path, arrays, "restart_times")
            return cast(Self, long_run.restored(world, arrays["restart"], times))
        if facts.get("horizon") is None:
            return world
        return world.with_horizon(facts["horizon"], facts.get("step_discount"))

    def __repr__(self) -> str:
        if self.layers is not None:
            base, g = self.layers.base, self.layers.discount
            counted = "" if g == 1 else f" with discount {g}"
            parts = repr(base).rsplit(", discount", 1)[0]
            return (
                f"{parts}, {self.layers.horizon} steps{counted}{', estimated' * base.is_estimated})"
            )
        if self.averages is not None:
            return f"{repr(self.averages.base).rsplit(', discount', 1)[0]}, average cost)"
        return (
            f"World({self.num_states} states, {self.num_pairs} pairs, "
            f"{self.transition.nnz} transitions, discount {self.discount}"
            f"{', estimated' * self.is_estimated})"
        )


def _coordinates(values: ArrayLike | None, num_states: int) -> FloatArray | None:
    if values is None:
        return None
    return real_array("coordinates", values, ndim=2, size=num_states, refusal=InvalidWorld)


def _names(
    what: str, names: Sequence[str] | None, count: int, *, or_more: bool = False
) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) < count or (len(names) > count and not or_more):
        raise InvalidWorld(f"{what} has {len(names)} names, expected {count}", "Name each once")
    return tuple(str(name) for name in names)


BLOCK = 1 << 16
"""States whose successors are asked for at a time."""
MOST_PAIRS = 20_000_000
"""With five branches each, transition matrices beyond this have more than a gigabyte."""


def enumerate_world(world: LargeWorld, **more: Any) -> World:
    """The same world with a transition matrix; `more` is what else `World` takes.

    Cost: every pair once. Peak memory is about four times that of the matrix.
    """
    require_few_pairs(world)
    initial = np.concatenate([world.initial_probability(states) for states in _blocks(world)])
    return World(transition_matrix_of(world), initial, world.discount, **more)


def require_few_pairs(world: LargeWorld) -> None:
    """Refuse to list a world that is too large for it."""
    num_pairs = world.num_states * world.num_actions
    if num_pairs > MOST_PAIRS:
        raise InvalidWorld(
            f"the world has {num_pairs:.3g} state-action pairs, too many to list",
            f"Take a smaller one (up to {MOST_PAIRS:.0e} pairs), or work with its callables",
        )


def transition_matrix_of(world: LargeWorld) -> SparseMatrix:
    """(pairs x states), state-major."""
    actions = np.arange(world.num_actions)
    data, reached, counts = [], [], []
    for states in _blocks(world):
        following = world.successors(np.repeat(states, actions.size), np.tile(actions, states.size))
        used = following.probabilities > 0
        data.append(following.probabilities[used])
        reached.append(following.states[used].astype(_index(world.num_states)))
        counts.append(used.sum(axis=1))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    starts = starts.astype(_index(int(starts[-1])))
    return sparse.csr_array(
        (np.concatenate(data), np.concatenate(reached), starts),
        shape=(world.num_states * world.num_actions, world.num_states),
    )


def _index(largest: int) -> type[np.integer[Any]]:
    """32 bits where they suffice."""
    return cast(type[np.integer[Any]], sparse.get_index_dtype(maxval=largest))


def _blocks(world: LargeWorld) -> list[IntArray]:
    ends = [*range(0, world.num_states, BLOCK), world.num_states]
    return [np.arange(first, last) for first, last in pairwise(ends)]
