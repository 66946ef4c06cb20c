"""Laws that are estimates: what a world knows about their errors.

A world may carry, per pair, a declared bound on the 1-norm distance of its law from the true one,
or the number of transitions the law was estimated from, or both (the smaller distance counts); the
same for the initial law. Certificates turn counts into distances, which are much smaller when it is
known which next states are possible (`support`).

*Guarantee* of distances from counts: they hold when the states, and the support if given, were
known before anything was recorded, and when the next states of a pair are independent draws of one
law. How the recorded actions were chosen, and when recording stopped, does not matter. The laws
have to be the frequencies of those draws themselves, so laws times counts are whole numbers;
smoothed laws have another distance, which can only be declared. A support that was read off the
record is none: the distance of a pair that led to one state by chance would be 0. Pairs may share
laws (`shared_laws`): then their counts and support are those of their group.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    SparseMatrix,
    compressed_rows,
    first_index,
    integer_array,
    real_array,
    real_matrix,
    require_in_range,
)
from journeyman.errors import InvalidWorld, SupportWarning
from journeyman.world.laws import ROW_SUM_TOLERANCE
from journeyman.world.pairs import LARGEST_NUMBER, MOST_NAMED, Pairs
from journeyman.world.shared_laws import SharedLaws

if TYPE_CHECKING:
    from journeyman.world.world import World


FURTHEST = 2.0
"""No two laws are further apart in the 1-norm."""
ARRAYS = ("transition_error", "transition_counts", "observed_actions")
FACTS = ("initial_error", "initial_count")
SHARED = ("groups", "targets", "tallies")
WHOLE = 1e-6
"""Frequency times count may be off a whole number by this, and by `ROW_SUM_TOLERANCE` times it."""


def checked(
    transition: SparseMatrix,
    pairs: Pairs,
    *,
    initial: FloatArray,
    transition_error: ArrayLike | None,
    initial_error: float | None,
    transition_counts: ArrayLike | None,
    initial_count: int | None,
    support: Any,
    shared: SharedLaws | None,
) -> dict[str, Any]:
    """The same facts as a world stores them, or what is wrong with them."""
    errors = None if transition_error is None else _errors(transition_error, pairs)
    known = np.zeros(len(pairs), dtype=bool) if errors is None else errors < FURTHEST
    facts: dict[str, Any] = {
        "transition_error": errors,
        "initial_error": None if initial_error is None else _initial_error(initial_error),
        "transition_counts": (
            None if transition_counts is None else _counts(transition_counts, pairs, known)
        ),
        "initial_count": None if initial_count is None else _initial_count(initial_count),
        "support": None if support is None else _support(support, transition, pairs),
        "shared": shared,
    }
    _refuse_other_laws(transition, pairs, facts["transition_counts"], errors)
    if facts["initial_count"] is not None and facts["initial_error"] != 0:
        _refuse_other_starts(initial, facts["initial_count"])
    if shared is not None:
        shared.require_fit(
            transition, pairs, counts=facts["transition_counts"], errors=errors,
            support=facts["support"],
        )  # fmt: skip
    return facts


def warn_of_observed_support(world: "World") -> None:
    """A support that says no more than the record does was probably taken from it."""
    if world.support is None or world.transition_counts is None:
        return
    equal, sure = observed_support(world)
    if not equal and not sure.any():
        return
    found = []
    if equal:
        found.append("equals the observed pattern: every next state it allows was recorded")
    if sure.any():
        first = world.describe_pair(int(np.argmax(sure)))
        found.append(
            f"allows one next state, the observed one, in {int(sure.sum())} recorded pairs (the "
            f"first is {first}), whose laws are thereby taken as exact"
        )
    warnings.warn(
        f"the support {'; it '.join(found)}. If it was taken from the record, distances from "
        "counts are too small and certificates may be false: leave support out. If it was known "
        "before anything was recorded all is well: ignore journeyman.errors.SupportWarning",
        SupportWarning,
        stacklevel=_levels_to_the_caller(),
    )


def _levels_to_the_caller() -> int:
    """How far up the code is that made the world: a warning is shown with its line."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("journeyman."):
        level, frame = level + 1, frame.f_back
    return level - 1


def observed_support(world: "World") -> tuple[bool, Any]:
    """Whether the support of `world` is the pattern of its record, and pairs with error 0 by it.

    Only pairs count whose distance comes from counts of their own: where laws are shared, few
    outcomes are declared, and all of them are soon observed.
    """
    counted = np.zeros(world.num_pairs, dtype=bool)
    if world.support is None or world.transition_counts is None or world.shared is not None:
        return False, counted
    counted = world.transition_counts > 0
    if world.transition_error is not None:
        counted &= world.transition_error > 0
    possible, seen = np.diff(world.support.indptr), np.diff(world.transition.indptr)
    equal = bool(counted.any() and (possible[counted] == seen[counted]).all())
    return equal, counted & (possible == 1)


def stored(facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `checked` returned as arrays and plain facts for a file."""
    arrays = {name: facts[name] for name in ARRAYS if facts[name] is not None}
    if facts["support"] is not None:
        arrays["support_indices"] = facts["support"].indices
        arrays["support_indptr"] = facts["support"].indptr
    if facts["shared"] is not None:
        arrays |= {f"shared_{name}": getattr(facts["shared"], name) for name in SHARED}
    return arrays, {name: facts[name] for name in FACTS}


def restored(
    arrays: Mapping[str, Any], facts: Mapping[str, Any], num_states: int
) -> dict[str, Any]:
    """The inverse of `stored`; files of worlds that are not estimated hold none of it."""
    support = None
    if "support_indices" in arrays and "support_indptr" in arrays:
        indices, indptr = arrays["support_indices"], arrays["support_indptr"]
        try:
            pattern = (np.ones(indices.size), indices, indptr)
            support = sparse.csr_array(pattern, shape=(indptr.size - 1, num_states))
        except (TypeError, ValueError) as fault:
            raise InvalidWorld(
                f"support is not a sound sparse matrix: {fault}", "Write the file again"
            ) from fault
    given = {name: arrays.get(name) for name in ARRAYS}
    tables = [arrays[f"shared_{name}"] for name in SHARED if f"shared_{name}" in arrays]
    shared = SharedLaws(*tables) if len(tables) == len(SHARED) else None
    known = {"support": support, "shared": shared}
    return given | {name: facts.get(name) for name in FACTS} | known


def _errors(values: ArrayLike, pairs: Pairs) -> FloatArray:
    errors = pairs.flattened("transition_error", _for_each(values, pairs), InvalidWorld)
    outside = (errors < 0) | (errors > FURTHEST)
    if outside.any():
        pair = int(np.argmax(outside))
        raise InvalidWorld(
            f"transition_error is {errors[pair]} for {pairs.pair_in_words(pair)}",
            "A distance of two laws in the 1-norm lies between 0 and 2",
        )
    return errors


def _initial_error(value: Any) -> float:
    error = float(real_array("initial_error", [value], ndim=1, refusal=InvalidWorld)[0])
    if not 0 <= error <= FURTHEST:
        raise InvalidWorld(
            f"initial_error = {error}", "A distance of two laws in the 1-norm lies between 0 and 2"
        )
    return error


def _counts(values: ArrayLike, pairs: Pairs, known: Any) -> IntArray:
    per_pair = pairs.flattened("transition_counts", _for_each(values, pairs), InvalidWorld)
    counts = integer_array("transition_counts", per_pair, refusal=InvalidWorld)
    missing = (counts < 0) | ((counts < 1) & ~known)
    if missing.any():
        pair = int(np.argmax(missing))
        raise InvalidWorld(
            f"transition_counts is {counts[pair]} for {pairs.pair_in_words(pair)}",
            "Leave out actions that were never observed, or declare a transition_error below 2 "
            "for laws that are known otherwise",
        )
    return counts


def _refuse_other_laws(
    transition: SparseMatrix, pairs: Pairs, counts: IntArray | None, errors: FloatArray | None
) -> None:
    """Laws that are not the frequencies of so many draws have another distance from the truth."""
    if counts is None:
        return
    per_entry = np.repeat(counts, np.diff(transition.indptr)).astype(float)
    wrong = _not_whole(transition.data, per_entry)
    if errors is not None:
        wrong &= np.repeat(errors > 0, np.diff(transition.indptr))
    if wrong.any():
        entry = int(np.argmax(wrong))
        pair = int(np.searchsorted(transition.indptr, entry, side="right")) - 1
        raise InvalidWorld(
            f"transition_counts is {counts[pair]} for {pairs.pair_in_words(pair)}, but its "
            f"probability {transition.data[entry]:.6g} of state {transition.indices[entry]} is no "
            f"frequency of {counts[pair]} draws: that would be {transition.data[entry]:.6g} * "
            f"{counts[pair]} = {transition.data[entry] * per_entry[entry]:.6g} of them",
            "Give the frequencies themselves (World.from_transitions makes them of a record). For "
            "laws that were smoothed, by pseudo-counts or otherwise, or made in another way, give "
            "transition_error=, how far they are from the true ones, in place of counts",
        )


def _refuse_other_starts(initial: FloatArray, count: int) -> None:
    wrong = _not_whole(initial, np.full(initial.size, float(count)))
    if wrong.any():
        state = int(np.argmax(wrong))
        raise InvalidWorld(
            f"initial_count is {count}, but initial[{state}] = {initial[state]:.6g} is no "
            f"frequency of {count} starts: that would be {initial[state] * count:.6g} of them",
            "Give the frequencies of the observed starts themselves; for a law made in another way "
            "give initial_error= in place of the count",
        )


def _not_whole(frequencies: FloatArray, counts: FloatArray) -> Any:
    """Whether frequency times count is further from a whole number than rounding explains."""
    drawn = frequencies * counts
    return np.abs(drawn - np.round(drawn)) > WHOLE + ROW_SUM_TOLERANCE * counts


def _initial_count(value: Any) -> int:
    count = int(integer_array("initial_count", [value], refusal=InvalidWorld)[0])
    if count < 1:
        raise InvalidWorld(
            f"initial_count = {count}", "Give the number of observed starts, or None if it is known"
        )
    return count


def _support(matrix: Any, transition: SparseMatrix, pairs: Pairs) -> SparseMatrix:
    """The pattern of `matrix` per pair, in which every step of `transition` must be possible."""
    given = pairs.per_pair("support", real_matrix("support", matrix, InvalidWorld), InvalidWorld)
    rows = sparse.csr_array(given, copy=True)
    if rows.shape != transition.shape:
        raise InvalidWorld(
            f"support has {rows.shape[1]} columns, the world {transition.shape[1]} states",
            "Give one column per next state",
        )
    rows.eliminate_zeros()
    rows.data[:] = 1.0
    beyond = (transition - transition.multiply(rows)).tocoo()
    wrong = np.flatnonzero(beyond.data)
    if wrong.size:
        pair, state = int(beyond.coords[0][wrong[0]]), int(beyond.coords[1][wrong[0]])
        raise InvalidWorld(
            f"{pairs.pair_in_words(pair)} leads to state {state}, which its support excludes",
            "Mark every next state that is possible",
        )
    return compressed_rows("support", rows, InvalidWorld)


def _for_each(values: ArrayLike, pairs: Pairs) -> Any:
    """A single number stands for every pair."""
    return np.full(len(pairs), values) if np.ndim(values) == 0 else values


@dataclass(frozen=True)
class RecordWording:
    """How errors name a record and what repairs it: arguments in Python, options on the command
    line."""

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
    name: Callable[[int], str] = str
    """What a state is called."""


PYTHON = RecordWording(
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
    times: IntArray | None = None,
    shared: SharedLaws | None = None,
    wording: RecordWording = PYTHON,
) -> dict[str, Any]:
    """Arguments of `World` from recorded transitions; `World.from_transitions` describes them.

        transition(y | x, a) = (times that y followed (x, a)) / (times that (x, a) was recorded)

    Actions that were never observed in a state are not offered there; the others keep their
    numbers. A state without an observed action is refused, unless it is given as absorbing: then it
    has one action, which stays, and its law is known. A number that occurs nowhere can be dropped:
    no state is numbered anew, it becomes a state that nothing leads to and nothing leaves. A step
    may stand for several: `times`. With `shared` laws all pairs of a group that was observed are
    offered.
    """
    here = integer_array("states", states, refusal=InvalidWorld)
    taken = integer_array("actions", actions, refusal=InvalidWorld, size=here.size)
    after = integer_array("next_states", next_states, refusal=InvalidWorld, size=here.size)
    ends = integer_array("absorbing", absorbing, refusal=InvalidWorld)
    law, starts = _initial_law(initial, initial_states)
    ids = {"states": here, "next_states": after, "absorbing": ends, "initial_states": starts}
    if shared is not None and num_states is None:
        num_states = shared.num_states
    size = _number_of_states(num_states, law, ids)
    _check_steps(here, taken, after, ends, wording)
    often = np.ones_like(here) if times is None else times
    offers, reached = (here, taken), after
    if shared is not None:
        if support is not None or size != shared.num_states:
            raise InvalidWorld(
                f"shared describes {shared.num_states} states and where they lead, and the world "
                f"has {size} states" + (" and a support of its own" if support is not None else ""),
                "Let shared describe all states, also those where episodes end; leave support out",
            )
        shared = shared.recorded(here, taken, after, often, ends, wording.step)
        known = np.isin(here, ends)
        x, a = np.nonzero(shared.is_observed)
        offers, reached = (np.append(x, here[known]), np.append(a, taken[known])), shared.reached
    seen = _Seen(size, offers[0], reached, ends, starts, law)
    if drop_unseen:
        nowhere = seen.nowhere
        if shared is not None:
            nowhere = nowhere[(shared.groups[nowhere] < 0).all(axis=1)]
        ends = np.union1d(ends, nowhere)
    if shared is None:
        seen.require_actions(ends, drop_unseen, wording)
    else:
        seen.require_laws(shared, ends, wording)
    width, resting = int(offers[1].max(initial=0)) + 1, int(taken.min())
    width = max(width, resting + 1)
    offered = np.union1d(
        offers[0] * width + offers[1], np.setdiff1d(ends, offers[0]) * width + resting
    )
    homes, numbers = offered // width, offered % width
    facts = {
        "initial": np.bincount(starts, minlength=size) / starts.size if law is None else law,
        "choice_offsets": np.searchsorted(homes, np.arange(size + 1)),
        "transition_error": np.where(np.isin(homes, ends), 0.0, FURTHEST) if ends.size else None,
        "initial_count": starts.size if law is None else None,
        "observed_actions": numbers,
    }
    if shared is not None:
        kept = here[known], taken[known], often[known]
        return facts | _shared_facts(shared, homes, numbers, kept)
    rows = np.searchsorted(offered, here * width + taken)
    transition, counts = _frequencies(rows, after, often, homes, size)
    return facts | {
        "transition": transition,
        "transition_counts": counts,
        "support": None if support is None else _support_of(support, offered, width, size),
    }


def _shared_facts(
    shared: SharedLaws,
    homes: IntArray,
    numbers: IntArray,
    known: tuple[IntArray, IntArray, IntArray],
) -> dict[str, Any]:
    """Laws, counts and support of pairs that share laws; the others stay where they are."""
    inside = numbers < shared.groups.shape[1]
    label = np.where(inside, shared.groups[homes, np.where(inside, numbers, 0)], -1)
    resting = np.flatnonzero(label < 0)
    member = np.flatnonzero(label >= 0)
    shape = (homes.size, shared.num_states)
    stays = sparse.csr_array((np.ones(resting.size), (resting, homes[resting])), shape=shape)

    def spread(weights: Any) -> SparseMatrix:
        rows = shared.laws(homes[member], numbers[member], weights).tocoo()
        rows.eliminate_zeros()
        places = (member[rows.coords[0]], rows.coords[1])
        return (sparse.csr_array((rows.data, places), shape=shape) + stays).tocsr()

    totals = shared.group_tallies.sum(axis=1)
    states, actions, often = known
    width = 1 + int(max(numbers.max(), actions.max(initial=0)))
    rows = np.searchsorted(homes * width + numbers, states * width + actions)
    counts = np.bincount(rows, often, minlength=homes.size).astype(np.int64)
    counts[member] = totals[label[member]]
    frequencies = shared.group_tallies / np.maximum(totals, 1)[:, np.newaxis]
    return {
        "transition": spread(frequencies),
        "transition_counts": counts,
        "support": spread(np.ones_like(frequencies)),
        "shared": shared,
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
    here: IntArray, taken: IntArray, after: IntArray, ends: IntArray, wording: RecordWording
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
            f"state {wording.name(here[where])} is given as absorbing, but {wording.step(where)} "
            f"leads from it to state {wording.name(after[where])}",
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

    def require_actions(self, ends: IntArray, dropped: bool, wording: RecordWording) -> None:
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
                f"{_listed(unleft, wording)} {_was(unleft)} reached ({wording.step(step)} leads to "
                f"{wording.name(int(unleft[0]))}) and never left"
            )
            remedies.append(
                "record what the actions do there, or, where episodes end and nothing follows, "
                f"declare it with {wording.absorbing(unleft.tolist())}"
            )
        if starting.size:
            found.append(f"{_listed(starting, wording)} {_occur(starting)} as a first state only")
            remedies.append(
                f"change {wording.initial} so that no episode starts where nothing was recorded"
            )
        if nowhere.size:
            found.append(f"{_listed(nowhere, wording)} {_occur(nowhere)} {wording.nowhere}")
            remedies.append(
                f"if there are no such states, give {wording.drop}: they keep their numbers, "
                "nothing leads to them, and no state is numbered anew"
            )
        text = "; ".join(remedies)
        raise InvalidWorld(
            f"no step was recorded from {int(lacking.sum())} of {self.left.size} states: "
            + "; ".join(found),
            text[0].upper() + text[1:],
        )

    def require_laws(self, shared: SharedLaws, ends: IntArray, wording: RecordWording) -> None:
        """Refuse states without a law where laws are shared."""
        lacking = ~self.left
        lacking[ends] = False
        if not lacking.any():
            return
        state = int(np.argmax(lacking))
        groups = np.unique(shared.groups[state])
        groups = groups[groups >= 0]
        if not groups.size:
            raise InvalidWorld(
                f"{_listed(np.flatnonzero(lacking), wording)} cannot be left: state "
                f"{wording.name(state)} has no group",
                "Give its actions groups; or, where episodes end and nothing follows, declare it "
                f"with {wording.absorbing([state])}; if there is no such state, and nothing leads "
                f"there, give {wording.drop}",
            )
        raise InvalidWorld(
            f"of group {groups[0]} no step was recorded in a pair whose next state shows the "
            f"outcome, and state {state} has no other law",
            "Record steps of that group, or let it share the law of another",
        )


def _listed(states: IntArray, wording: RecordWording) -> str:
    """The states, or the first of them and how many there are."""
    shown = ", ".join(wording.name(int(state)) for state in states[:MOST_NAMED])
    if states.size == 1:
        return f"state {shown}"
    more = f", ... ({states.size} in all)" if states.size > MOST_NAMED else ""
    return f"states {shown}{more}"


def _was(states: IntArray) -> str:
    return "was" if states.size == 1 else "were"


def _occur(states: IntArray) -> str:
    return "occurs" if states.size == 1 else "occur"


def _frequencies(
    rows: IntArray, after: IntArray, times: IntArray, homes: IntArray, num_states: int
) -> tuple[SparseMatrix, IntArray]:
    """The empirical law of every offered pair, and how often the pair was recorded.

    A pair without a record belongs to an absorbing state, and stays there.
    """
    counts = np.bincount(rows, times, minlength=homes.size).astype(np.int64)
    resting = np.flatnonzero(counts == 0)
    where = (np.concatenate([rows, resting]), np.concatenate([after, homes[resting]]))
    shape = (homes.size, num_states)
    weights = np.append(times, np.ones_like(resting)).astype(float)
    law = sparse.coo_array((weights, where), shape=shape).tocsr()
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
