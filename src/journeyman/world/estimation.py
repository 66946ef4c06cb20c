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
record is none: the distance of a pair that led to one state by chance would be 0.
"""

import inspect
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    SparseMatrix,
    compressed_rows,
    integer_array,
    real_array,
    real_matrix,
)
from journeyman.errors import InvalidWorld, SupportWarning
from journeyman.world.laws import ROW_SUM_TOLERANCE
from journeyman.world.pairs import Pairs

if TYPE_CHECKING:
    from journeyman.world.world import World

FURTHEST = 2.0
"""No two laws are further apart in the 1-norm."""
ARRAYS = ("transition_error", "transition_counts", "observed_actions")
FACTS = ("initial_error", "initial_count")
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
    }
    _refuse_other_laws(transition, pairs, facts["transition_counts"], errors)
    if facts["initial_count"] is not None and facts["initial_error"] != 0:
        _refuse_other_starts(initial, facts["initial_count"])
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

    Only pairs count whose distance comes from counts.
    """
    counted = np.zeros(world.num_pairs, dtype=bool)
    if world.support is None or world.transition_counts is None:
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
    return given | {name: facts.get(name) for name in FACTS} | {"support": support}


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
    """A single figure stands for every pair."""
    return np.full(len(pairs), values) if np.ndim(values) == 0 else values
