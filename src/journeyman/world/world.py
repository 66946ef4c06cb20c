"""The world: a finite Markov decision process without a cost function.

    x_0 ~ initial,   x_{t+1} ~ transition[(x_t, a_t), :],   discount in (0, 1)

where the rows of `transition` are the state-action pairs in state-major order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    assign,
    freeze_rows,
    read_only,
)
from journeyman.errors import InvalidWorld
from journeyman.storage import PathLike, load_arrays, save_arrays, take
from journeyman.world import arrays_in, estimation, gymnasium_table, labels, laws, recorded
from journeyman.world.explicit_steps import ExplicitSteps
from journeyman.world.flow import Flow
from journeyman.world.pairs import Pairs

EXACT, SCHEMA_VERSION = 1, 2
"""Exact worlds are written as version 1; its readers would take estimated ones for exact."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class World(ExplicitSteps):
    """An explicit world. It has the members of a `LargeWorld`, answered from its arrays.

    Args:
        transition: (pairs x states) matrix, dense or sparse, one row per pair, state-major.
        initial: law of the first state.
        discount: gamma, strictly between 0 and 1.
        choice_offsets: pairs of state x are `choice_offsets[x]:choice_offsets[x+1]`; by default
            every state has the same number of actions.
        coordinates: (states x dimensions) geometry, for pictures and features.
        state_names, action_names: for people; the k-th name is that of state k, or of the action
            with number k (also of one that was never observed).
        sink: the absorbing state that stands for "the episode has ended", if there is one.
        transition_error: declared, for all pairs or per pair: at most this far, in the 1-norm, is
            the law of the pair from the true one. Without it and without counts laws are exact.
        initial_error: the same for the initial law.
        transition_counts: of how many observed transitions each pair's law is the frequency; laws
            that are no frequencies of so many are refused.
        initial_count: of how many observed starts `initial` is the frequency.
        support: (pairs x states or states x states) matrix, nonzero where a next state is possible,
            when that was known before anything was recorded. One that equals the observed pattern
            raises a `SupportWarning`: read off the record it makes bounds false.
        observed_actions: the number of each pair's action, where states do not have the actions
            0, 1, 2, ... of `choice_offsets`: the numbers under which they were recorded. Policies,
            demonstrations, files and reports speak these numbers.

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
    """Largest |row sum - 1| of the given transition matrix; it was mended, being below 1e-8."""
    transition_error: FloatArray | None
    initial_error: float | None
    transition_counts: IntArray | None
    initial_count: int | None
    support: SparseMatrix | None
    observed_actions: IntArray | None

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
        observed_actions: ArrayLike | None = None,
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
            discount=laws.discount(discount),
            pairs=pairs,
            coordinates=labels.checked_coordinates(coordinates, num_states),
            state_names=labels.checked_names("state_names", state_names, num_states),
            action_names=labels.checked_names(
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
            ),
            observed_actions=pairs.actions if numbered else None,
        )
        estimation.warn_of_observed_support(self)
        if sink is not None and not (sink in range(num_states) and self.absorbing[int(sink)]):
            raise InvalidWorld(
                f"sink = {sink!r} is not an absorbing state",
                "Give a state whose every action stays there with probability 1",
            )

    @property
    def num_states(self) -> int:
        return int(self.transition.shape[1])

    @property
    def num_pairs(self) -> int:
        return int(self.transition.shape[0])

    @property
    def effective_horizon(self) -> float:
        """1/(1 - discount): the mass of every occupancy measure."""
        return 1.0 / (1.0 - self.discount)

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
        return Flow(self.transition, self.pairs, self.initial, self.discount)

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

    def describe_pair(self, pair: int) -> str:
        """A pair in words, for messages."""
        return self.pairs.pair_in_words(pair)

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
        return cls(arrays_in.state_major(transition, layout), initial, discount, **more)

    @classmethod
    def from_gymnasium(
        cls, source: Any, discount: float, *, initial: ArrayLike | None = None, **more: Any
    ) -> Self:
        """From an environment with a `P` table, or from such a table itself.

        `P[s][a] = [(probability, next_state, reward, done), ...]`. `done` belongs to a transition,
        not to a state, so one absorbing state is added behind the table's own (`world.sink`): every
        branch with `done` leads there. Time limits of wrappers are not part of the table.
        """
        table = gymnasium_table.read(source, initial)
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

        >>> world = World.from_transitions([0, 0, 0], [2, 2, 5], [0, 1, 1], 0.9,
        ...                                initial_states=[0, 0], absorbing=[1])
        >>> world.transition.toarray().tolist(), world.observed_actions.tolist()
        ([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]], [2, 5, 2])
        """
        ends = np.atleast_1d(absorbing)
        arguments = recorded.empirical(
            states,
            actions,
            next_states,
            initial=initial,
            initial_states=initial_states,
            num_states=num_states,
            support=support,
            absorbing=ends if sink is None else np.append(ends, sink),
            drop_unseen=drop_unseen,
        )
        return cls(**arguments, discount=discount, sink=sink, **more)

    def save(self, path: PathLike) -> None:
        """Write the world to one file, atomically and without pickle."""
        matrix = self.transition
        arrays = {
            "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr,
            "initial": self.initial, "choice_offsets": self.pairs.offsets,
        }  # fmt: skip
        if self.coordinates is not None:
            arrays["coordinates"] = self.coordinates
        estimates, facts = estimation.stored(vars(self))
        save_arrays(
            path, "world", SCHEMA_VERSION if self.is_estimated else EXACT, arrays | estimates,
            discount=self.discount, sink=self.sink,
            state_names=self.state_names, action_names=self.action_names, **facts,
        )  # fmt: skip

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a world written by `save`; everything is checked again."""
        facts, arrays = load_arrays(path, "world", SCHEMA_VERSION)
        data, indices, indptr = (take(path, arrays, name) for name in ("data", "indices", "indptr"))
        initial = take(path, arrays, "initial")
        return cls(
            arrays_in.untrusted_rows((data, indices, indptr), num_states=initial.size),
            initial,
            facts.get("discount", 0.0),
            choice_offsets=take(path, arrays, "choice_offsets"),
            coordinates=arrays.get("coordinates"),
            state_names=facts.get("state_names"),
            action_names=facts.get("action_names"),
            sink=facts.get("sink"),
            **estimation.restored(arrays, facts, num_states=initial.size),
        )

    def __repr__(self) -> str:
        return (
            f"World({self.num_states} states, {self.num_pairs} pairs, "
            f"{self.transition.nnz} transitions, discount {self.discount}"
            f"{', estimated' * self.is_estimated})"
        )
