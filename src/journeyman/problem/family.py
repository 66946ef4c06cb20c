"""One cost in several worlds: trips to different destinations, patients of different groups.

Members are worlds with the same discount and the same costs, each with demonstrations of its own.
The family is one world with the members side by side, whose first step draws a member:

    initial = (p_1 nu0_1, ..., p_K nu0_K),      P = diag(P_1, ..., P_K)

    gap(pi_1, ..., pi_K) = sup over costs c of the class of
                           sum_k p_k (expected total of c for pi_k - for the expert, in member k)

An occupancy measure of it is one of each member, times its share: expectations add up, and members
are coupled by the cost alone. So every solver, certificate and the checker apply to `problem()` as
they are; maximum entropy finds one cost for all members.

*What certificates of `problem()` rest on*: that episodes are independent draws of the family, so
that the member of each was drawn too, by the shares p: trips of travellers who were drawn from all
travellers. Where the shares are not given, the law of the starts is taken from the record, as an
estimate that has its own error. Episodes are put into an order that does not depend on what they
show, because bets need equal means given the past. That the starts follow the shares is tested;
that numbers were not fixed beforehand cannot be.

*Numbers fixed by design*, 50 trips to each of five destinations, are no draws of the family. Then
certify every member by itself, with `failure_probability/K` each: all bounds b_k hold together, and

    gap(pi_1, ..., pi_K) <= sum_k p_k b_k      for any shares p.

*Cost*: that of one world with as many pairs as all members together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, assign, dense, read_only
from journeyman.costs import CostBasis, CostClass
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidProblem, InvalidWorld
from journeyman.policy import Policy
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.world import World
from journeyman.world.laws import probability_vector
from journeyman.world.levels import require_totals

ORDER = 0
"""Seed of the order of episodes, the same for all families."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Family:
    """Worlds that share costs, with demonstrations of each.

    Args:
        members: (world, basis, demonstrations) for each; exact worlds of one discount, bases with
            the same names.
        weights: the shares p of the members, known beforehand; without them the family's starts
            are those of the record, an estimate.

    Where all members have a `sink` that costs nothing, the family has one for all of them.

    >>> import journeyman as jm
    >>> towns = [jm.gallery.road_network(40, destination=k) for k in range(2)]
    >>> trips = [jm.record(*t[::2], trajectories=30, horizon=200, seed=0) for t in towns]
    >>> family = Family([(t.world, t.basis, d) for t, d in zip(towns, trips)], weights=[0.5, 0.5])
    >>> family.world.num_states, len(family.demonstrations)
    (81, 60)
    >>> answer = jm.solve(family.problem())
    >>> [policy.num_states for policy in family.policies(answer.policy)]
    [41, 41]
    """

    members: tuple[tuple[World, CostBasis, Demonstrations], ...]
    weights: FloatArray | None

    def __init__(
        self,
        members: Iterable[tuple[World, CostBasis, Demonstrations]],
        weights: ArrayLike | None = None,
    ) -> None:
        given = tuple(members)
        _check_members(given)
        shares = None
        if weights is not None:
            shares = read_only(probability_vector("weights", weights, len(given)))
            if not (shares > 0).all():
                raise InvalidProblem(
                    f"weights[{int(np.argmin(shares))}] is zero", "Leave out members without weight"
                )
        assign(self, members=given, weights=shares)

    def __len__(self) -> int:
        return len(self.members)

    def problem(self, cost_class: CostClass | None = None) -> Apprenticeship:
        """The problem of all members at once."""
        return Apprenticeship(self.world, self.basis, self.demonstrations, cost_class)

    def policies(self, policy: Policy) -> tuple[Policy, ...]:
        """What a policy of the family is in each member."""
        law = policy.on(self.world)
        found = []
        for k, (world, _, _) in enumerate(self.members):
            own = np.array(world.pairs.uniform)
            own[self._kept[k]] = law[self._pairs_of(k)]
            found.append(Policy(own, world.pairs))
        return tuple(found)

    @cached_property
    def world(self) -> World:
        """All members side by side."""
        first = self.members[0][0]
        rows = [
            _moved(one.transition[self._kept[k]], self._places[k], self._num_states)
            for k, (one, _, _) in enumerate(self.members)
        ]
        numbers = [one.pairs.actions[self._kept[k]] for k, (one, _, _) in enumerate(self.members)]
        sizes = [
            np.bincount(
                self._places[k][one.pairs.states[self._kept[k]]], minlength=self._num_states
            )
            for k, (one, _, _) in enumerate(self.members)
        ]
        sink = None
        if self._merged:
            sink = self._num_states - 1
            rows.append(sparse.csr_array(([1.0], ([0], [sink])), shape=(1, self._num_states)))
            numbers.append(np.zeros(1, dtype=np.int64))
            sizes.append(np.bincount([sink], minlength=self._num_states))
        times = [one.steps_at_most for one, _, _ in self.members]
        known = self.weights is not None
        numbered = any(one.pairs.numbers is not None for one, _, _ in self.members)
        return World(
            sparse.vstack(rows).tocsr(),
            self._initial(),
            first.discount,
            choice_offsets=np.concatenate([[0], np.cumsum(np.sum(sizes, axis=0))]),
            sink=sink,
            steps_at_most=None if None in times else max(time for time in times if time),
            initial_count=None if known else len(self.demonstrations),
            observed_actions=np.concatenate(numbers) if numbered else None,
        )

    @cached_property
    def basis(self) -> CostBasis:
        """The costs of all pairs of the family."""
        parts = [
            sparse.csr_array(basis.on(world))[self._kept[k]]
            for k, (world, basis, _) in enumerate(self.members)
        ]
        first = self.members[0][1]
        if self._merged:
            parts.append(sparse.csr_array((1, first.num_costs)))
        stacked: Any = sparse.vstack(parts).tocsr()
        if not all(sparse.issparse(basis.matrix) for _, basis, _ in self.members):
            stacked = stacked.toarray()
        if first.rewards:
            return CostBasis.from_rewards(-stacked, first.names)
        return CostBasis(stacked, first.names)

    @cached_property
    def demonstrations(self) -> Demonstrations:
        """The episodes of all members, in an order that does not depend on what they show."""
        episodes = [
            (self._places[k][states], actions, ended)
            for k, (_, _, demos) in enumerate(self.members)
            for (states, actions), ended in zip(_episodes(demos), demos.terminated, strict=True)
        ]
        order = np.random.default_rng(ORDER).permutation(len(episodes))
        states, actions, ended = zip(*(episodes[j] for j in order), strict=True)
        offsets = np.concatenate([[0], np.cumsum([part.size for part in actions])])
        return Demonstrations(
            np.concatenate(states), np.concatenate(actions), offsets, np.array(ended)
        )

    @cached_property
    def _merged(self) -> bool:
        """Whether all members end in one free sink."""
        for world, basis, _ in self.members:
            if world.sink is None:
                return False
            own = basis.on(world)[
                world.pairs.offsets[world.sink] : world.pairs.offsets[world.sink + 1]
            ]
            if np.any(dense(own)):
                return False
        return True

    @cached_property
    def _kept(self) -> list[IntArray]:
        """The pairs of each member that the family has; those of merged sinks are one."""
        return [
            np.flatnonzero(world.pairs.states != (world.sink if self._merged else -1))
            for world, _, _ in self.members
        ]

    @cached_property
    def _places(self) -> list[IntArray]:
        """The family's number of every state of each member."""
        found, first = [], 0
        for world, _, _ in self.members:
            own = np.arange(world.num_states) + first
            if self._merged:
                own[int(world.sink or 0) + 1 :] -= 1
                own[world.sink] = self._num_states - 1
            found.append(own)
            first += world.num_states - self._merged
        return found

    @cached_property
    def _num_states(self) -> int:
        return sum(world.num_states - self._merged for world, _, _ in self.members) + self._merged

    def _pairs_of(self, member: int) -> slice:
        before = sum(kept.size for kept in self._kept[:member])
        return slice(before, before + self._kept[member].size)

    def _initial(self) -> FloatArray:
        law = np.zeros(self._num_states)
        if self.weights is None:
            starts = self.demonstrations.first_states
            return np.bincount(starts, minlength=self._num_states) / starts.size
        for k, (world, _, _) in enumerate(self.members):
            law[self._places[k]] += self.weights[k] * world.initial
        return law

    def __repr__(self) -> str:
        return f"Family({len(self)} members, {len(self.demonstrations)} episodes)"


def _moved(rows: Any, places: IntArray, num_states: int) -> Any:
    """The same laws over the states of the family."""
    parts = (rows.data, places[rows.indices], rows.indptr)
    return sparse.csr_array(parts, shape=(rows.shape[0], num_states))


def _episodes(demos: Demonstrations) -> list[tuple[IntArray, IntArray]]:
    return [demos.episode(j)[:2] for j in range(len(demos))]


def require_members(given: Sequence[Any]) -> None:
    """Refuse anything but (world, basis, demonstrations) with costs of the same names."""
    if not given:
        raise InvalidProblem("there are no members", "Give (world, basis, demonstrations), ...")
    for place, one in enumerate(given):
        kinds = (World, CostBasis, Demonstrations)
        if not isinstance(one, tuple) or len(one) != 3 or not all(map(isinstance, one, kinds)):
            raise InvalidProblem(
                f"member {place} is no (World, CostBasis, Demonstrations)", "Give all three of each"
            )
        basis, first = one[1], given[0][1]
        if basis.names != first.names or basis.rewards != first.rewards:
            raise InvalidProblem(
                f"member {place} has the costs {', '.join(basis.names)}, the first one "
                f"{', '.join(first.names)}",
                "Give every member the same costs, by the same names",
            )


def _check_members(given: Sequence[Any]) -> None:
    """What members side by side ask for besides."""
    require_members(given)
    for place, (world, _, demos) in enumerate(given):
        if world.discount != given[0][0].discount:
            raise InvalidWorld(
                f"member {place} has discount {world.discount}, the first one "
                f"{given[0][0].discount}",
                "Give all members the same discount",
            )
        require_totals(world, f"a family with member {place}")
        if world.layers is not None:
            raise InvalidWorld(
                f"member {place} has a horizon",
                "Make the family of the worlds without it, and give that one a horizon: "
                "Apprenticeship(family.world.with_horizon(H), family.basis, family.demonstrations)",
            )
        if world.is_estimated:
            raise InvalidWorld(
                f"member {place} has estimated laws",
                "Certify such members one by one, with failure_probability/K each",
            )
        demos.pairs_in(world)
