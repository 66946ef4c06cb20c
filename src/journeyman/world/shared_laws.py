"""Laws that several pairs share: wear grows the same way in every state, demand does not look at
the stock.

    x_{t+1} = target(x_t, a_t, o),      o ~ q_g,      g = group(x_t, a_t)

where an outcome o has one law for all pairs of a group, and the table of targets says where each
outcome leads from each pair. Groups, outcomes and targets are declared, before anything is
recorded; the laws q_g are estimated from the steps of all pairs of a group together, and every pair
of the group has the law that follows from it, recorded or not:

    P(y | x, a) = sum of q_g(o) over the outcomes o with target(x, a, o) = y

Only a pair whose outcomes lead to different states shows which of them has occurred. At the ends of
a range, where increments are cut off, several lead to the same state: steps from there are checked,
and not counted, for a pair has to be counted whatever its outcome was or not at all.

*Guarantee*: what was counted of a group are independent draws of q_g, however the pairs were chosen
and whenever recording stopped. A divergence KL(frequencies, q_g) <= info bounds that of every pair
of the group, because KL(f(p), f(q)) <= KL(p, q) for every map f of outcomes: the error of a pair is
that of its group, with the group's count, and the union is over groups.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    assign,
    first_true,
    integer_array,
    plain_array,
    read_only,
)
from journeyman.errors import InvalidWorld
from journeyman.world.mixed_radix import MixedRadix
from journeyman.world.pairs import Pairs

NONE = -1
"""Group of an action that a state does not have; target of an outcome that a group does not have.
"""
SAME_LAW = 1e-9
"""Relative: rounding of a law that follows from its group's."""

Rule = Callable[[IntArray, IntArray], ArrayLike]
TargetRule = Callable[[IntArray, IntArray, IntArray], ArrayLike]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class SharedLaws:
    """Which pairs share a law of outcomes, and where outcomes lead.

    Args:
        groups: (states x actions) numbers of groups; -1 where a state does not have the action.
        targets: (states x actions x outcomes) next states; -1 for outcomes that a group does not
            have.
        tallies: (states x actions x outcomes) how often each outcome was recorded, as
            `World.from_transitions` counts them.

    >>> wear = SharedLaws.increments(5, [0, 1], num_actions=2, resets={1: 0})
    >>> wear
    SharedLaws(1 group, 5 states, 2 actions, 2 outcomes)
    >>> wear.targets[:, 0].tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4], [4, 4]]
    >>> wear.tells[:, 0].tolist()
    [True, True, True, True, False]
    """

    groups: IntArray
    targets: IntArray
    tallies: IntArray | None

    def __init__(
        self, groups: ArrayLike, targets: ArrayLike, tallies: ArrayLike | None = None
    ) -> None:
        labels, places = _table("groups", groups, 2), _table("targets", targets, 3)
        counts = None if tallies is None else _table("tallies", tallies, 3)
        if places.shape[:2] != labels.shape or not labels.size or not places.shape[2]:
            raise InvalidWorld(
                f"groups have shape {labels.shape}, targets {places.shape}",
                "Give one group for every state and action, and for each of them where every "
                "outcome leads",
            )
        _check_groups(labels)
        _check_targets(labels, places)
        if counts is not None:
            _check_tallies(places, counts)
        assign(self, groups=labels, targets=places, tallies=counts)
        if counts is not None and counts[~self.tells].any():
            raise InvalidWorld(
                "tallies count outcomes where several lead to the same state",
                "Count only in pairs whose next state shows the outcome",
            )

    @classmethod
    def by_rule(
        cls,
        num_states: int,
        num_actions: int,
        num_outcomes: int,
        target: TargetRule,
        group: Rule | None = None,
    ) -> Self:
        """From functions of arrays: `target(states, actions, outcomes)` returns next states,
        `group(states, actions)` groups; without it all pairs share one law.

        >>> demand = SharedLaws.by_rule(4, 3, 3, lambda x, a, d: np.maximum(x + a - d, 0) % 4)
        >>> demand.targets[2, 1].tolist()
        [3, 2, 1]
        """
        sizes = _whole(num_states=num_states, num_actions=num_actions, num_outcomes=num_outcomes)
        x, a, o = (one.ravel() for one in np.indices(sizes))
        places = _answers("target", target(x, a, o), sizes)
        labels = np.zeros(sizes[:2], dtype=np.int64)
        if group is not None:
            x, a = (one.ravel() for one in np.indices(sizes[:2]))
            labels = _answers("group", group(x, a), sizes[:2])
        return cls(labels, np.where(labels[..., np.newaxis] < 0, NONE, places))

    @classmethod
    def increments(
        cls,
        shape: int | Sequence[int],
        steps: ArrayLike,
        *,
        num_actions: int = 1,
        resets: Mapping[int, int] | None = None,
        per_action: bool = False,
        axis: int = 0,
    ) -> Self:
        """A coordinate of the state moves by one of `steps`, and stays within its range.

        Args:
            shape: number of values of every coordinate (one number: there is one coordinate); a
                state is their combination, the last coordinate counting fastest.
            steps: the increments that are possible, known before anything was recorded.
            num_actions: actions of every state.
            resets: actions that first set the coordinate to a value: {1: 0} for a replacement by
                action 1, after which wear grows as always.
            per_action: every action has a law of its own; otherwise all pairs share one.
            axis: the coordinate that moves; the others stay.
        """
        radix = MixedRadix([shape] if isinstance(shape, int | np.integer) else list(shape))
        moves = integer_array("steps", steps, refusal=InvalidWorld)
        if not moves.size or np.unique(moves).size < moves.size:
            raise InvalidWorld(
                f"steps = {moves.tolist()[:20]}", "Give every possible increment once"
            )
        if axis not in range(radix.sizes.size):
            raise InvalidWorld(
                f"axis = {axis!r}", f"Give a coordinate from 0 to {radix.sizes.size - 1}"
            )
        size, stride = int(radix.sizes[axis]), int(radix.strides[axis])
        base = np.full(max(num_actions, 1), NONE)
        for action, value in (resets or {}).items():
            if action not in range(num_actions) or value not in range(size):
                raise InvalidWorld(
                    f"resets = {{{action}: {value}}}",
                    f"Name an action below {num_actions} and a value below {size}",
                )
            base[action] = value

        def target(x: IntArray, a: IntArray, o: IntArray) -> IntArray:
            here = x // stride % size
            moved = np.clip(np.where(base[a] < 0, here, base[a]) + moves[o], 0, size - 1)
            return x + (moved - here) * stride

        return cls.by_rule(
            radix.num_states,
            num_actions,
            moves.size,
            target,
            (lambda x, a: a) if per_action else None,
        )

    @property
    def num_states(self) -> int:
        return int(self.groups.shape[0])

    @property
    def num_groups(self) -> int:
        """Laws that might have been observed."""
        return int(self.groups.max(initial=NONE)) + 1

    @property
    def num_declared(self) -> int:
        """Pairs that have a group."""
        return int((self.groups >= 0).sum())

    @cached_property
    def outcomes(self) -> IntArray:
        """How many outcomes each group has."""
        return read_only(self._first_of_group.sum(axis=1))

    @cached_property
    def tells(self) -> BoolArray:
        """(states x actions): whether the next state shows which outcome has occurred."""
        known = np.sort(self.targets, axis=2)
        repeated = ((np.diff(known, axis=2) == 0) & (known[..., 1:] >= 0)).any(axis=2)
        return read_only((self.groups >= 0) & ~repeated)

    @cached_property
    def group_tallies(self) -> IntArray:
        """(groups x outcomes): how often each outcome was recorded in a group."""
        found = np.zeros((self.num_groups, self.targets.shape[2]), dtype=np.int64)
        if self.tallies is not None:
            member = self.groups >= 0
            np.add.at(found, self.groups[member], self.tallies[member])
        return read_only(found)

    @cached_property
    def is_observed(self) -> BoolArray:
        """(states x actions): whether the group of a pair was counted."""
        counted = np.append(self.group_tallies.sum(axis=1) > 0, False)
        return read_only(counted[self.groups])

    @property
    def reached(self) -> IntArray:
        """Where the pairs of observed groups can lead."""
        places = self.targets[self.is_observed]
        return np.unique(places[places >= 0])

    def of(self, pairs: Pairs) -> IntArray:
        """The group of every pair of a world; -1 where it has none."""
        return np.asarray(self.groups[pairs.states, pairs.actions])

    def laws(self, states: IntArray, actions: IntArray, weights: ArrayLike) -> SparseMatrix:
        """What (groups x outcomes) `weights` become in the given pairs, which have groups."""
        places, label = self.targets[states, actions], self.groups[states, actions]
        row, outcome = np.nonzero(places >= 0)
        entries = np.asarray(weights, dtype=float)[label[row], outcome]
        shape = (label.size, self.num_states)
        return sparse.coo_array((entries, (row, places[row, outcome])), shape=shape).tocsr()

    def recorded(
        self,
        states: IntArray,
        actions: IntArray,
        next_states: IntArray,
        times: IntArray,
        ends: IntArray,
        where: Callable[[int], str],
    ) -> "SharedLaws":
        """With the outcomes of recorded steps, each `times` seen; states in `ends` have no group
        because their laws are known."""
        labels = self.groups.copy()
        labels[ends] = NONE
        used = np.unique(labels[labels >= 0])
        labels = np.where(labels < 0, NONE, np.searchsorted(used, labels))
        places = np.where(labels[..., np.newaxis] < 0, NONE, self.targets)
        self._require_declared(states, actions, ends, where)
        kept = ~np.isin(states, ends)
        x, a, y = states[kept], actions[kept], next_states[kept]
        hit = places[x, a] == y[:, np.newaxis]
        if (at := first_true(~hit.any(axis=1))) is not None:
            step, possible = int(np.flatnonzero(kept)[at]), places[x[at], a[at]]
            allowed = ", ".join(str(one) for one in np.unique(possible[possible >= 0])[:20])
            raise InvalidWorld(
                f"{where(step)} leads from state {x[at]} by action {a[at]} to state {y[at]}, where "
                f"no outcome leads from there (they lead to {allowed})",
                "Declare every outcome that is possible, and where it leads",
            )
        counts = np.zeros(places.shape, dtype=np.int64)
        shown = self.tells[x, a]
        np.add.at(
            counts, (x[shown], a[shown], np.argmax(hit[shown], axis=1)), times[kept][shown]
        )  # fmt: skip
        return SharedLaws(labels, places, counts)

    def in_layers(self, horizon: int) -> "SharedLaws | None":
        """The same groups in every layer of a world with a horizon, whose last layer leads to the
        end with certainty; None where no other layer is left."""
        count, moving = self.num_states, horizon - 1
        if moving < 1:
            return None

        def layered(table: IntArray, fill: int, shift: int, times: int) -> IntArray:
            whole = np.full((horizon * count + 1, *table.shape[1:]), fill, dtype=np.int64)
            for t in range(times):
                part = np.where(table < 0, NONE, table + (t + 1) * shift)
                whole[t * count : (t + 1) * count] = part
            return whole

        counted = self.tallies if self.tallies is not None else np.zeros_like(self.targets)
        return SharedLaws(
            layered(self.groups, NONE, 0, moving), layered(self.targets, NONE, count, moving),
            layered(counted, 0, 0, 1),
        )  # fmt: skip

    def _require_declared(
        self, states: IntArray, actions: IntArray, ends: IntArray, where: Callable[[int], str]
    ) -> None:
        num_states, num_actions = self.groups.shape
        outside = (states >= num_states) | (actions >= num_actions)
        inside = np.where(outside, 0, states), np.where(outside, 0, actions)
        unknown = outside | (self.groups[inside] < 0)
        if (step := first_true(unknown & ~np.isin(states, ends))) is not None:
            raise InvalidWorld(
                f"{where(step)} takes action {actions[step]} in state {states[step]}, which has no "
                f"group among the {num_states} states and {num_actions} actions declared",
                "Give every recorded pair a group, one of its own if it shares its law with none",
            )

    def require_fit(
        self,
        transition: SparseMatrix,
        pairs: Pairs,
        *,
        counts: IntArray | None,
        errors: FloatArray | None,
        support: SparseMatrix | None,
    ) -> None:
        """Refuse a world whose laws, counts and support do not follow from those of the groups."""
        num_states, num_actions = self.groups.shape
        if num_states != transition.shape[1] or pairs.width > num_actions:
            raise InvalidWorld(
                f"shared describes {num_states} states and {num_actions} actions, the world has "
                f"{transition.shape[1]} states and action numbers up to {pairs.width - 1}",
                "Use World.from_transitions(..., shared=...), which fits them together",
            )
        member = np.flatnonzero(self.of(pairs) >= 0)
        lone = np.ones(len(pairs), dtype=bool) if errors is None else errors > 0
        lone[member] = False
        rows = self.laws(pairs.states[member], pairs.actions[member], self.group_tallies)
        totals = np.asarray(rows.sum(axis=1)).ravel()
        fits = counts is not None and np.array_equal(counts[member], totals)
        apart = abs(rows - sparse.diags_array(totals) @ transition[member])
        fits = fits and bool((apart.data <= SAME_LAW * max(1.0, totals.max(initial=0.0))).all())
        image = self.laws(
            pairs.states[member], pairs.actions[member], np.ones_like(self.group_tallies)
        )
        image.data[:] = 1.0
        fits = fits and support is not None and (image - support[member]).count_nonzero() == 0
        if lone.any() or not fits:
            raise InvalidWorld(
                "the laws, counts or support of this world are not those that follow from the "
                "laws its pairs share",
                "Use World.from_transitions(..., shared=...), which computes them",
            )

    @cached_property
    def _first_of_group(self) -> BoolArray:
        """(groups x outcomes): which outcomes a group has."""
        labels = self.groups.ravel()
        _, first = np.unique(labels, return_index=True)
        places = self.targets.reshape(labels.size, -1)[first]
        return np.asarray(places[labels[first] >= 0] >= 0)

    def __repr__(self) -> str:
        states, actions = self.groups.shape
        plural = "" if self.num_groups == 1 else "s"
        return (
            f"SharedLaws({self.num_groups} group{plural}, {states} states, {actions} actions, "
            f"{self.targets.shape[2]} outcomes)"
        )


def _table(name: str, values: Any, ndim: int) -> IntArray:
    array = plain_array(name, values, InvalidWorld)
    if array.ndim != ndim:
        axes = "states x actions" + " x outcomes" * (ndim - 2)
        raise InvalidWorld(f"{name} has {array.ndim} axes", f"Give an array ({axes})")
    flat = integer_array(name, array.ravel(), refusal=InvalidWorld)
    return read_only(flat.reshape(array.shape).copy())


def _whole(**sizes: int) -> tuple[int, ...]:
    for name, size in sizes.items():
        if not isinstance(size, int | np.integer) or size < 1:
            raise InvalidWorld(f"{name} = {size!r}", "Give a whole number from 1")
    return tuple(int(size) for size in sizes.values())


def _answers(name: str, values: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    found = integer_array(
        name, np.broadcast_to(values, (int(np.prod(shape)),)), refusal=InvalidWorld
    )
    return found.reshape(shape)


def _check_groups(labels: IntArray) -> None:
    used = np.unique(labels)
    if used[0] < NONE or used[-1] < 0:
        raise InvalidWorld(
            f"groups are {used[0]} to {used[-1]}", "Number groups from 0; -1 stands for no action"
        )
    missing = np.setdiff1d(np.arange(used[-1] + 1 if used[-1] < labels.size else 0), used)
    if used[-1] >= labels.size or missing.size:
        first = missing[0] if missing.size else labels.size
        raise InvalidWorld(
            f"no pair is in group {first}, and the largest number is {used[-1]}",
            "Number groups 0, 1, 2, ..., for example with np.unique(labels, return_inverse=True)",
        )


def _check_targets(labels: IntArray, places: IntArray) -> None:
    num_states = labels.shape[0]
    wrong = (places < NONE) | (places >= num_states)
    wrong |= (labels[..., np.newaxis] < 0) & (places >= 0)
    if wrong.any():
        x, a, o = (int(one[0]) for one in np.nonzero(wrong))
        raise InvalidWorld(
            f"targets[{x}, {a}, {o}] = {places[x, a, o]}",
            f"Give a state from 0 to {num_states - 1}, or -1 where the group has no such outcome "
            "or the state no such action",
        )
    flat, has = labels.ravel(), (places >= 0).reshape(labels.size, -1)
    groups, first = np.unique(flat, return_index=True)
    other = (has != has[first[np.searchsorted(groups, flat)]]).any(axis=1)
    empty = (flat >= 0) & ~has.any(axis=1)
    if (other | empty).any():
        x, a = (int(one) for one in np.unravel_index(int(np.argmax(other | empty)), labels.shape))
        raise InvalidWorld(
            f"state {x}, action {a} has other outcomes than the rest of group {labels[x, a]}, or "
            "none",
            "All pairs of a group have the same outcomes, at least one; give those with others a "
            "group of their own",
        )


def _check_tallies(places: IntArray, counts: IntArray) -> None:
    fits = counts.shape == places.shape and not (counts < 0).any()
    if not fits or (counts[places < 0] > 0).any():
        raise InvalidWorld(
            f"tallies have shape {counts.shape}, or count what is impossible",
            "Give for every state, action and outcome how often it was recorded",
        )
