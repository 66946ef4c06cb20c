"""The members of a `LargeWorld`, answered from the arrays of an explicit world."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    FloatArray,
    IntArray,
    SparseMatrix,
    integer_array,
    require_in_range,
)
from journeyman.errors import InvalidWorld
from journeyman.world.large_world import Predecessors, Successors
from journeyman.world.pairs import Pairs
from journeyman.world.row_draws import draw_outcomes, running_sums


class ExplicitSteps:
    """Steps forwards and backwards and the start, for a class that has the arrays."""

    transition: SparseMatrix
    initial: FloatArray
    pairs: Pairs

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
