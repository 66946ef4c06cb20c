"""Laws from recorded transitions.

    transition(y | x, a) = (times that y followed (x, a)) / (times that (x, a) was recorded)

Actions that were never observed in a state are not offered there; the others keep their numbers. A
state without an observed action is refused, unless it is given as absorbing: then it has one
action, which stays, and its law is known. A number that occurs nowhere can be dropped: no state is
numbered anew, it becomes a state that nothing leads to and nothing leaves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from journeyman.world.pairs import LARGEST_NUMBER, MOST_NAMED


@dataclass(frozen=True)
class Door:
    """How a record is spoken of where it came in."""

    step: Callable[[int], str]
    """Where a step is found."""
    absorbing: Callable[[Sequence[int]], str]
    """What declares states absorbing that were reached and never left; all of them are listed when
    there are few."""
    drop: str
    """What drops numbers that occur nowhere."""
    initial: str
    """What gives the law of the first state."""
    nowhere: str = "nowhere"
    """Where numbers occur that can be dropped."""


PYTHON = Door(
    step=lambda k: f"step {k}",
    absorbing=lambda states: (
        f"absorbing={list(states)}"
        if len(states) <= MOST_NAMED
        else "absorbing=np.setdiff1d(next_states, states)"
    ),
    drop="drop_unseen=True",
    initial="initial or initial_states",
)


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
    drop_unseen: bool = False,
    door: Door = PYTHON,
) -> dict[str, Any]:
    """Arguments of `World` from recorded transitions; `World.from_transitions` describes them."""
    here = integer_array("states", states, refusal=InvalidWorld)
    taken = integer_array("actions", actions, refusal=InvalidWorld, size=here.size)
    after = integer_array("next_states", next_states, refusal=InvalidWorld, size=here.size)
    ends = integer_array("absorbing", absorbing, refusal=InvalidWorld)
    law, starts = _initial_law(initial, initial_states)
    ids = {"states": here, "next_states": after, "absorbing": ends, "initial_states": starts}
    size = _number_of_states(num_states, law, ids)
    _check_steps(here, taken, after, ends, door)
    seen = _Seen(size, here, after, ends, starts, law)
    if drop_unseen:
        ends = np.union1d(ends, seen.nowhere)
    seen.require_actions(ends, drop_unseen, door)
    width, resting = int(taken.max()) + 1, int(taken.min())
    recorded = here * width + taken
    offered = np.union1d(recorded, np.setdiff1d(ends, here) * width + resting)
    homes = offered // width
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


def _check_steps(
    here: IntArray, taken: IntArray, after: IntArray, ends: IntArray, door: Door
) -> None:
    if not here.size:
        raise InvalidWorld("there is no transition", "Give one entry per recorded step")
    wrong = (taken < 0) | (taken >= LARGEST_NUMBER)
    if wrong.any():
        where = first_index(wrong)
        raise InvalidWorld(
            f"actions[{where}] = {taken[where]}",
            f"Number the actions with whole numbers from 0, below {LARGEST_NUMBER}",
        )
    leaving = np.isin(here, ends) & (here != after)
    if leaving.any():
        where = int(np.argmax(leaving))
        raise InvalidWorld(
            f"state {here[where]} is given as absorbing, but {door.step(where)} leads from it to "
            f"state {after[where]}",
            "Leave it out of absorbing, or leave out what was recorded after an episode's end",
        )


class _Seen:
    """Which states a record left, reached, and never named."""

    def __init__(
        self,
        size: int,
        here: IntArray,
        after: IntArray,
        ends: IntArray,
        starts: IntArray,
        law: FloatArray | None,
    ) -> None:
        self.left, self.reached, self.starting = (np.zeros(size, dtype=bool) for _ in range(3))
        self.left[here] = True
        self.reached[after] = True
        self.starting[starts] = True
        if law is not None and law.size == size:
            self.starting |= law > 0
        self._after = after
        named = self.left | self.reached | self.starting
        named[ends] = True
        self.nowhere = np.flatnonzero(~named)

    def require_actions(self, ends: IntArray, dropped: bool, door: Door) -> None:
        """Refuse states without an action, all of them by name, with what can be done."""
        lacking = ~self.left
        lacking[ends] = False
        if not lacking.any():
            return
        unleft = np.flatnonzero(lacking & self.reached)
        starting = np.flatnonzero(lacking & ~self.reached & self.starting)
        nowhere = np.flatnonzero(lacking & ~self.reached & ~self.starting)
        found, remedies = [], []
        if unleft.size:
            step = int(np.argmax(self._after == unleft[0]))
            found.append(
                f"{_listed(unleft)} {_was(unleft)} reached ({door.step(step)} leads to "
                f"{unleft[0]}) and never left"
            )
            remedies.append(
                "record what the actions do there, or, where episodes end and nothing follows, "
                f"declare it with {door.absorbing(unleft.tolist())}"
            )
        if starting.size:
            found.append(f"{_listed(starting)} {_occur(starting)} as a first state only")
            remedies.append(
                f"change {door.initial} so that no episode starts where nothing was recorded"
            )
        if nowhere.size:
            found.append(f"{_listed(nowhere)} {_occur(nowhere)} {door.nowhere}")
            remedies.append(
                f"if there are no such states, give {door.drop}: they keep their numbers, nothing "
                "leads to them, and no state is numbered anew"
            )
        text = "; ".join(remedies)
        raise InvalidWorld(
            f"no step was recorded from {int(lacking.sum())} of {self.left.size} states: "
            + "; ".join(found),
            text[0].upper() + text[1:],
        )


def _listed(states: IntArray) -> str:
    """The states, or the first of them and how many there are."""
    shown = ", ".join(str(state) for state in states[:MOST_NAMED])
    if states.size == 1:
        return f"state {shown}"
    more = f", ... ({states.size} in all)" if states.size > MOST_NAMED else ""
    return f"states {shown}{more}"


def _was(states: IntArray) -> str:
    return "was" if states.size == 1 else "were"


def _occur(states: IntArray) -> str:
    return "occurs" if states.size == 1 else "occur"


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
