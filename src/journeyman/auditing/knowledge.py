"""What a world file says about the errors of its laws, and the distances that follow.

    err(s) = sqrt(2 log((2^S - 2) K n (n + 1)/delta)/n)      at most 2, and at most what is declared

bounds the 1-norm distance of a law on S states from the frequencies of its n observations, for K
laws and every n at once (Weissman and others, 2003). S counts the possible next states where they
are known, all states otherwise; K the pairs, or the states times A (A + 1) where only what was
observed under A action numbers is offered.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from journeyman.auditing import protocol
from journeyman.auditing.reading import Arrays, Refused
from journeyman.auditing.tables import Bools, Floats, Ints, reals, sparse_rows, wholes

FURTHEST = 2.0
"""No two laws are further apart in the 1-norm."""


@dataclass(frozen=True, eq=False)
class Distances:
    """How far the true laws are from the model's at most, and the probability that was spent."""

    transition: Floats
    initial: float
    spent: float

    @property
    def source(self) -> str:
        return "transition counts" if self.spent > 0 else "declared errors of the model"


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Declared errors, counts, possible next states and recorded action numbers, where given."""

    error: Floats | None = None
    initial_error: float | None = None
    counts: Ints | None = None
    starts: int | None = None
    support: Any = None
    actions: Ints | None = None

    @property
    def of_steps(self) -> bool:
        """Whether the transition law is exact."""
        return self.error is None and self.counts is None

    @property
    def of_starts(self) -> bool:
        """Whether the initial law is exact."""
        return self.initial_error is None and self.starts is None

    @property
    def is_estimate(self) -> bool:
        return not (self.of_steps and self.of_starts)

    def surely_exact(self, num_pairs: int) -> Bools:
        """Pairs whose law is declared to be exact."""
        if self.error is None:
            return np.zeros(num_pairs, dtype=bool)
        return np.asarray(self.error <= 0)

    def possible(self, rows: Any) -> Any:
        """A matrix that is positive where a step is possible; None where that is not known."""
        if self.support is not None:
            return self.support
        return rows if self.of_steps else None

    def distances(self, rows: Any, delta: float) -> Distances | None:
        """The distances, with their part of `delta`; None in an exact world."""
        if not self.is_estimate:
            return None
        num_pairs, num_states = rows.shape
        part = protocol.MODEL_PART * delta
        both = self.counts is not None and self.starts is not None
        starts_part = part * (protocol.STARTS_PART if both else 1.0)
        steps_part = part * ((1 - protocol.STARTS_PART) if both else 1.0)
        transition = np.full(num_pairs, 0.0 if self.counts is None else FURTHEST)
        if self.error is not None:
            transition = self.error
        if self.counts is not None:
            sizes = self.successors(num_pairs, num_states)
            laws = self.num_laws(num_pairs, num_states)
            observed = [
                weissman(int(n), int(size), laws, steps_part)
                for n, size in zip(self.counts, sizes, strict=True)
            ]
            transition = np.minimum(transition, observed)
        initial = 0.0 if self.starts is None else FURTHEST
        if self.initial_error is not None:
            initial = self.initial_error
        if self.starts is not None:
            initial = min(initial, weissman(self.starts, num_states, 1, starts_part))
        counted = self.counts is not None or self.starts is not None
        return Distances(transition, initial, part if counted else 0.0)

    def observed_support(self, rows: Any) -> tuple[bool, int]:
        """Whether the support of all laws that were counted is where they were seen to lead, and
        how many of them it makes exact."""
        if self.support is None or self.counts is None:
            return False, 0
        counted = (self.counts > 0) & ~self.surely_exact(rows.shape[0])
        possible = np.diff(self.support.indptr)[counted]
        seen = np.diff(rows.indptr)[counted]
        return bool(possible.size and (possible == seen).all()), int((possible == 1).sum())

    def successors(self, num_pairs: int, num_states: int) -> Ints:
        """How many next states each pair may have."""
        if self.support is None:
            return np.full(num_pairs, num_states)
        return np.asarray(np.diff(self.support.indptr))

    def num_laws(self, num_pairs: int, num_states: int) -> int:
        """K: the laws that might have been observed."""
        if self.actions is None:
            return num_pairs
        most = 1 + int(self.actions.max())
        return num_states * most * (most + 1)


EXACT = Knowledge()


def weissman(count: int, size: int, laws: int, delta: float) -> float:
    """The distance of one law on `size` states from `count` observations of it."""
    if size < 2:
        return 0.0
    if count < 1:
        return FURTHEST
    log = (
        _log_subsets(size)
        + math.log(laws)
        + math.log(count)
        + math.log(count + 1)
        - math.log(delta)
    )
    return min(FURTHEST, math.sqrt(2 * log / count))


@lru_cache
def _log_subsets(size: int) -> float:
    """log(2^size - 2): the subsets of the states that tell two laws apart."""
    return math.log(2**size - 2) if size <= 1000 else size * math.log(2)


def read_knowledge(
    header: dict[str, Any], arrays: Arrays, rows: Any, first: Ints, initial: Floats
) -> Knowledge:
    """From a world file; one of version 1 is exact, one of version 2 is not."""
    num_pairs = rows.shape[0]
    known = Knowledge(
        error=_distances(arrays, num_pairs),
        initial_error=_initial_error(header.get("initial_error")),
        counts=_counts(arrays, num_pairs),
        starts=_starts(header.get("initial_count")),
        support=_support(arrays, rows),
        actions=_actions(arrays, first),
    )
    if known.counts is not None:
        sure = np.zeros(num_pairs, bool) if known.error is None else known.error < FURTHEST
        if ((known.counts < 1) & ~sure).any():
            raise Refused("a law was estimated from nothing")
        counted = np.where(known.surely_exact(num_pairs), 0, known.counts)
        if not _are_counts(rows.data, counted.repeat(np.diff(rows.indptr))):
            raise Refused("a law is no frequency of as many observations as it is said to have")
    counted_starts = known.starts if known.initial_error != 0 else None
    if not _are_counts(initial, np.full(initial.size, counted_starts or 0)):
        raise Refused("the initial law is no frequency of so many starts")
    if known.is_estimate != (header["version"] == 2):
        raise Refused("its version and what it says about the errors of its laws do not agree")
    return known


def _are_counts(laws: Floats, counts: Ints) -> bool:
    """Whether the laws times the counts are whole numbers, up to rounding."""
    times = laws * counts
    off = np.minimum(times % 1.0, 1.0 - times % 1.0)
    return bool((off <= 1e-6 + 1e-8 * counts).all())


def _distances(arrays: Arrays, num_pairs: int) -> Floats | None:
    if "transition_error" not in arrays:
        return None
    found = reals(arrays, "transition_error", 1, num_pairs)
    if ((found < 0) | (found > FURTHEST)).any():
        raise Refused("transition_error is no distance of two laws")
    return found


def _initial_error(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= FURTHEST:
        raise Refused(f"initial_error = {value!r} is no distance of two laws")
    return float(value)


def _counts(arrays: Arrays, num_pairs: int) -> Ints | None:
    if "transition_counts" not in arrays:
        return None
    found = wholes(arrays, "transition_counts")
    if found.size != num_pairs or (found < 0).any():
        raise Refused("transition_counts does not count the observations of every pair")
    return found


def _starts(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise Refused(f"initial_count = {value!r} is no number of observed starts")
    return value


def _support(arrays: Arrays, rows: Any) -> Any:
    """Ones where a step is possible, if that is known; every law must keep to it."""
    if not {"support_indices", "support_indptr"} & set(arrays):
        return None
    ones = np.ones(arrays["support_indices"].size)
    found = sparse_rows(arrays | {"support_data": ones}, "support_", rows.shape)
    beyond = (rows - rows.multiply(found)).tocsr()
    if np.abs(beyond.data).any():
        raise Refused("a law leads where its support excludes")
    return found


def _actions(arrays: Arrays, first: Ints) -> Ints | None:
    if "observed_actions" not in arrays:
        return None
    found = wholes(arrays, "observed_actions")
    if found.size != first[-1] or (found < 0).any():
        raise Refused("observed_actions does not number the actions of every pair")
    inside = np.ones(found.size, dtype=bool)
    inside[first[:-1]] = False
    if (np.diff(found, prepend=0)[inside] <= 0).any():
        raise Refused("observed_actions does not increase within a state")
    return found
