"""Laws from recorded transitions.

    transition(y | x, a) = (times that y followed (x, a)) / (times that (x, a) was recorded)

Actions that were never observed in a state are not offered there. States without an observed action
are refused, unless they are given as absorbing: then they have one action, which stays, and their
law is known.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    SparseMatrix,
    first_index,
    integer_array,
    real_array,
    real_matrix,
    require_in_range,
)
from journeyman.errors import InvalidWorld
from journeyman.world.estimation import FURTHEST


def empirical(
    states: ArrayLike,
    actions: ArrayLike,
    next_states: ArrayLike,
    *,
    initial: ArrayLike | None,
    initial_states: ArrayLike | None,
    num_states: int | None,
    support: Any,
    absorbing: ArrayLike,
) -> dict[str, Any]:
    """Arguments of `World` from recorded transitions; `World.from_transitions` describes them."""
    here = integer_array("states", states, refusal=InvalidWorld)
    taken = integer_array("actions", actions, refusal=InvalidWorld, size=here.size)
    after = integer_array("next_states", next_states, refusal=InvalidWorld, size=here.size)
    ends = integer_array("absorbing", absorbing, refusal=InvalidWorld)
    law, starts = _initial_law(initial, initial_states)
    ids = {"states": here, "next_states": after, "absorbing": ends, "initial_states": starts}
    size = _number_of_states(num_states, law, ids)
    _check_steps(here, taken, after, ends)
    width = int(taken.max()) + 1
    recorded = here * width + taken
    offered = np.union1d(recorded, np.setdiff1d(ends, here) * width)
    homes = offered // width
    _refuse_states_without_action(homes, after, size)
    transition, counts = _frequencies(np.searchsorted(offered, recorded), after, homes, size)
    return {
        "transition": transition,
        "initial": np.bincount(starts, minlength=size) / starts.size if law is None else law,
        "choice_offsets": np.searchsorted(homes, np.arange(size + 1)),
        "transition_counts": counts,
        "transition_error": np.where(np.isin(homes, ends), 0.0, FURTHEST) if ends.size else None,
        "initial_count": starts.size if law is None else None,
        "support": None if support is None else _support_of(support, offered, width, size),
        "observed_actions": offered % width,
    }


def _initial_law(
    initial: ArrayLike | None, initial_states: ArrayLike | None
) -> tuple[FloatArray | None, IntArray]:
    """The known law, or None and the observed starts."""
    if (initial is None) == (initial_states is None):
        raise InvalidWorld(
            f"initial and initial_states are {'both' if initial is not None else 'not'} given",
            "Give initial=, a known law, or initial_states=, the first state of every episode",
        )
    if initial is not None:
        law = real_array("initial", initial, ndim=1, refusal=InvalidWorld)
        return law, np.zeros(0, dtype=np.int64)
    starts = integer_array("initial_states", initial_states, refusal=InvalidWorld)
    if not starts.size:
        raise InvalidWorld("initial_states is empty", "Give at least one observed start")
    return None, starts


def _number_of_states(
    given: int | None, law: FloatArray | None, ids: Mapping[str, IntArray]
) -> int:
    """As given, or the length of the initial law, or one more than the largest id."""
    if given is not None and not (isinstance(given, int | np.integer) and given >= 1):
        raise InvalidWorld(f"num_states = {given!r}", "Give a whole number from 1")
    seen = max(int(part.max(initial=0)) for part in ids.values()) + 1
    size = int(given) if given is not None else seen if law is None else law.size
    for name, part in ids.items():
        require_in_range(name, part, size, InvalidWorld)
    return size


def _check_steps(here: IntArray, taken: IntArray, after: IntArray, ends: IntArray) -> None:
    if not here.size:
        raise InvalidWorld("there is no transition", "Give one entry per recorded step")
    if (taken < 0).any():
        where = first_index(taken < 0)
        raise InvalidWorld(f"actions[{where}] = {taken[where]}", "Number the actions from 0")
    leaving = np.isin(here, ends) & (here != after)
    if leaving.any():
        where = first_index(leaving)
        raise InvalidWorld(
            f"state {here[where]} is given as absorbing, but step {where} leads from it to state "
            f"{after[where]}",
            "Leave it out of absorbing, or leave out what was recorded after an episode's end",
        )


def _refuse_states_without_action(homes: IntArray, after: IntArray, num_states: int) -> None:
    lacking = np.bincount(homes, minlength=num_states) == 0
    if not lacking.any():
        return
    state = int(np.argmax(lacking))
    arrivals = np.flatnonzero(after == state)
    found = f"next_states[{arrivals[0]}] leads there" if arrivals.size else "nothing leads there"
    others = int(lacking.sum()) - 1
    raise InvalidWorld(
        f"no transition was recorded from state {state} ({found})"
        + (f", nor from {others} other state{'s' * (others > 1)}" if others else ""),
        f"Record what its actions do; if episodes end there, give absorbing=[{state}], or show it "
        "as a step from the state to itself; a state that does not exist must have no number",
    )


def _frequencies(
    rows: IntArray, after: IntArray, homes: IntArray, num_states: int
) -> tuple[SparseMatrix, IntArray]:
    """The empirical law of every offered pair, and how often the pair was recorded.

    A pair without a record belongs to an absorbing state, and stays there.
    """
    counts = np.bincount(rows, minlength=homes.size)
    resting = np.flatnonzero(counts == 0)
    where = (np.concatenate([rows, resting]), np.concatenate([after, homes[resting]]))
    shape = (homes.size, num_states)
    law = sparse.coo_array((np.ones(where[0].size), where), shape=shape).tocsr()
    law.data /= np.repeat(np.maximum(counts, 1), np.diff(law.indptr))
    return law, counts


def _support_of(support: Any, offered: IntArray, width: int, num_states: int) -> SparseMatrix:
    """The rows of the offered pairs from rows per state, or per state and recorded action."""
    pattern = sparse.csr_array(real_matrix("support", support, InvalidWorld))
    rows, columns = pattern.shape
    actions = rows // num_states
    fits = columns == num_states and rows == actions * num_states and actions >= 1
    if not fits or 1 < actions < width:
        raise InvalidWorld(
            f"support has shape {pattern.shape}, with {num_states} states and {width} actions",
            "Give one row per state, or one per state and action (state-major, every state with "
            "the same actions), and one column per next state",
        )
    homes, taken = offered // width, offered % width
    return pattern[homes if actions == 1 else homes * actions + taken]
