"""Average cost a step in the long run, as the discounted total of another world.

    lim (1/T) E sum_{t < T} c(x_t, a_t)

does not depend on the start where every policy restarts: where the laws split as

    P(y | x, a) = s(x, a) nu(y) + K(y | x, a),           s >= 0,  K >= 0

so that with probability s the next state is drawn from the restart law nu, whatever came before,
and no policy can avoid restarts for ever. A state l that all policies keep visiting is such a law:
nu is l, s(x, a) = P(l | x, a). So is anything that every law has in common (Doeblin's condition).
Then a w >= 1 exists with

    w - K w >= 1         at every pair: from x no policy expects more than w(x) steps to a restart

and with W = max w, nu~ = nu w/<nu, w> the world with

    discount    d = 1 - 1/W  (1/2 where that is less)
    start       nu~
    laws        K(y | x, a) w(y)/(d w(x))  to y,
                (w - 1 - K w)(x, a)/(d w(x))  to a state drawn from nu~,
                the rest to an end, which costs nothing
    costs       c(x, a)/w(x)

has discounted totals that *are* those averages, policy by policy: its occupancy measures are
m(x, a) = w(x) p(x, a), p the stationary distribution of pairs. So every solver, bound and
certificate for discounted worlds applies, and nothing is approximated.

*Why*. Let m be the occupancy from nu~ under a policy, p = m/w off the end. For every y

    m(y) = w(y) (p' K)(y) + nu~(y) (1 + r),      r = sum p (w - 1 - K w)

hence p = p' K + nu (1 + r)/<nu, w>. Weighted by w this sums to <p, w> = <p, K w> + 1 + r, while
r = <p, w> - <p, 1> - <p, K w>, so <p, 1> = 1. The sum of p over states is then 1 = <p, K 1> +
(1 + r)/<nu, w>, hence (1 + r)/<nu, w> = <p, s> and p = p' (K + s nu) = p' P: p is stationary. No
policy has two stationary distributions, for none avoids restarts.

*Relative values*. If v are the values of a policy there and g = <nu~, v>, then h = w (v - g) solves
h + g = c + P h: g is the average, h the relative values with <nu, h> = 0.

*Records*. Relative values of any policy have |h(x) - h(y)| <= (max c - min c) D, with D = W, since
h(x) = E sum until the restart of (c - g); and with D = 1/(1 - tau), tau the largest distance
|P(. | s) - P(. | s')|_1/2 of two laws, since P shrinks differences by tau. For an expert that acts
by a stationary policy the mean over T recorded steps has an expectation that is off by
E(h(x_0) - h(x_T))/T, so by at most (max c - min c) D/T, wherever they started.

*What is checked*: that no policy avoids restarts, by a search of the graph, and w - K w >= 1, pair
by pair, in an audit again. A world in which every policy has one recurrent class need not have
such a law (whether it is one is hard to decide: Tsitsiklis 2007); it is refused.

Reference: Akian, Gaubert 2013; Feinberg, Huang 2017 (reductions with a state); Nummelin 1978 (the
splitting).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    Matrix,
    SparseMatrix,
    assign,
    integer_array,
    read_only,
    real_array,
    require_in_range,
)
from journeyman.errors import InvalidWorld
from journeyman.world import laws
from journeyman.world.goals import EPSILON, longest_times_of, named, staying
from journeyman.world.pairs import Pairs

if TYPE_CHECKING:
    from journeyman.world.world import World

CANDIDATES = {200: 16, 20_000: 4}
"""Up to how many states how many candidates are compared; one beyond."""
MOST_TRIED = 2000
"""States that are looked at for candidates."""
MOST_COMPARED = 1 << 29
"""Entries that are compared for the distances of all laws."""
WARM_UP = 200
"""Steps of the uniform policy that order the candidates."""
LEAST_COMMON = 1e-6
"""What laws must have in common for a restart law that is no single state."""


@dataclass(frozen=True, eq=False)
class Averages:
    """How a world of averages came from its base world."""

    base: "World"
    restart: FloatArray
    """nu, per state of the base world."""
    times: FloatArray
    """w, per state of the base world."""

    @property
    def num_states(self) -> int:
        return self.base.num_states

    @property
    def end(self) -> int:
        """The added state."""
        return self.num_states

    @property
    def longest(self) -> float:
        """W: from nowhere does a policy expect more steps to a restart."""
        return float(self.times.max())

    @cached_property
    def memory(self) -> float:
        """D: relative values differ by at most so many times the range of a cost."""
        rows = self.base.transition
        if rows.shape[0] ** 2 * rows.shape[1] > MOST_COMPARED:
            return self.longest
        apart = largest_distance(rows)
        return min(self.longest, 1.0 / (1.0 - apart) if apart < 1.0 else np.inf)

    total_time = 1.0
    """Averages are those of one step."""

    def is_base_shaped(self, shape: tuple[int, ...]) -> bool:
        """Whether rows are those of the base world: its pairs, states, or states times actions, and
        not one for every pair here."""
        pairs = self.base.pairs
        rows = (len(pairs), pairs.num_states, pairs.num_states * pairs.width)
        every = len(pairs) + (pairs.width if pairs.is_complete else 1)
        return bool(shape) and shape[0] in rows and shape[0] != every

    def lifted(self, rows: Any, pairs: Pairs) -> Any:
        """Costs per pair of the base world as costs of the world of averages, whose pairs these
        are; zero at the end."""
        scale, ending = 1.0 / self.pair_times, len(pairs) - rows.shape[0]
        if sparse.issparse(rows):
            empty = sparse.csr_array((ending, rows.shape[1]))
            scaled = sparse.diags_array(scale) @ rows
            return sparse.csr_array(sparse.vstack([scaled, empty], format="csr"))
        scaled = scale.reshape(-1, *(1,) * (rows.ndim - 1)) * rows
        return np.concatenate([scaled, np.zeros((ending, *rows.shape[1:]))])

    def per_step(self, rows: Matrix) -> Matrix:
        """Costs per pair in the world of averages as those of a step, the end left out."""
        count = len(self.base.pairs)
        if sparse.issparse(rows):
            return sparse.csr_array(sparse.diags_array(self.pair_times) @ rows[:count])
        return np.asarray(rows[:count] * self.pair_times[:, np.newaxis])

    @cached_property
    def pair_times(self) -> FloatArray:
        """w at the state of every pair of the base world."""
        return read_only(self.base.pairs.spread(self.times))

    def policy(self, policy: Any) -> Any:
        """A policy of the base world: one of the world of averages without what it does at the
        end."""
        if policy.num_states == self.num_states:
            return policy
        return type(policy)(policy.per_pair[: len(self.base.pairs)], self.base.pairs)

    def stationary(self, measure: FloatArray) -> FloatArray:
        """The stationary distribution of the base world's pairs behind an occupancy measure."""
        return np.asarray(measure[: len(self.base.pairs)] / self.pair_times)

    def relative_values(self, values: FloatArray) -> tuple[float, FloatArray]:
        """The average g and relative values h, with g + h = c + P h, behind values of a policy."""
        own, weights = values[: self.num_states], self.restart * self.times
        average = float(weights @ own / weights.sum())
        return average, np.asarray(self.times * (own - average))


def averaged(world: "World", restart: ArrayLike | None) -> "World":
    """The world of `World.with_average_cost`."""
    _require_plain(world)
    law = _chosen(world) if restart is None else _given(world, restart)
    return rebuilt(world, law, _times(world, law))


def restored(world: "World", restart: ArrayLike, times: ArrayLike) -> "World":
    """The world with this restart law and these times, which were saved, if the laws prove them."""
    _require_plain(world)
    law = laws.probability_vector("restart", restart, world.num_states)
    own = real_array("restart_times", times, ndim=1, size=world.num_states, refusal=InvalidWorld)
    kept, _ = split(world.transition, law)
    room = 8 * EPSILON * (int(np.diff(kept.indptr).max()) + 8) * (1 + float(np.abs(own).max()))
    if (own < 1).any() or (world.pairs.spread(own) - kept @ own < 1 - room).any():
        raise InvalidWorld(
            "restart_times are exceeded: some policy expects more steps to a restart",
            "Make the world again by with_average_cost()",
        )
    return rebuilt(world, law, own)


def rebuilt(world: "World", law: FloatArray, times: FloatArray) -> "World":
    """The world of averages with this restart law and these times."""
    found = Averages(world, read_only(law), read_only(times))
    pairs, w, longest = world.pairs, times, float(times.max())
    kept, _ = split(world.transition, law)
    discount = max(1.0 - 1.0 / longest, 0.5)
    ahead = np.asarray(kept @ w)
    own = pairs.spread(w)
    slack = np.maximum(own - 1.0 - ahead, 0.0) / (discount * own)
    start = law * w / (law @ w)
    scaled = sparse.diags_array(1.0 / (discount * own)) @ kept @ sparse.diags_array(w)
    again = sparse.csr_array(slack[:, np.newaxis]) @ sparse.csr_array(start[np.newaxis])
    going = sparse.csr_array(scaled + again)
    ending = np.maximum(1.0 - np.asarray(going.sum(axis=1)).ravel(), 0.0)
    ending[ending < EXACTLY] = 0.0
    last = pairs.width if pairs.is_complete else 1
    rows = sparse.block_array(
        [
            [going, sparse.csr_array(ending[:, np.newaxis])],
            [sparse.csr_array((last, world.num_states)), sparse.csr_array(np.ones((last, 1)))],
        ],
        format="csr",
    )
    made = type(world)(
        _normalised(rows),
        np.append(start, 0.0),
        discount,
        choice_offsets=_pairs(pairs, last),
        coordinates=None
        if world.coordinates is None
        else np.vstack([world.coordinates, world.coordinates.mean(axis=0)]),
        state_names=None if world.state_names is None else [*world.state_names, "end"],
        action_names=world.action_names,
        sink=world.num_states,
        observed_actions=None if world.observed_actions is None else _pairs(pairs, last).actions,
    )
    assign(made, averages=found)
    return made


def split(transition: SparseMatrix, law: FloatArray) -> tuple[SparseMatrix, FloatArray]:
    """K and s: s(x, a) = min P(y | x, a)/nu(y) over the states of nu, K = P - s nu."""
    states = np.flatnonzero(law)
    there = transition[:, states]
    share = np.asarray((there @ sparse.diags_array(1.0 / law[states])).min(axis=1).todense())
    s = np.minimum(share.ravel(), 1.0)
    if states.size == 1:
        s = np.asarray(there.todense()).ravel()
    taken = sparse.csr_array(s[:, np.newaxis]) @ sparse.csr_array(law[np.newaxis])
    kept = sparse.csr_array(transition - taken)
    kept.data[kept.data < EXACTLY] = 0.0
    kept.eliminate_zeros()
    return kept, s


def largest_distance(rows: SparseMatrix) -> float:
    """The largest |P(. | s) - P(. | s')|_1/2, rounded up."""
    table = rows.toarray()
    largest = max(float(np.abs(table[k:] - table[k]).sum(axis=1).max()) for k in range(len(table)))
    return min(1.0, largest / 2 + 1e-12)


EXACTLY = 1e-15
"""What rounding leaves of a law that is all restart."""


def _require_plain(world: "World") -> None:
    kinds = {
        "a horizon": world.layers is not None,
        "averages already": world.averages is not None,
        "discount 1": world.has_goal,
    }
    for what, found in kinds.items():
        if found:
            raise InvalidWorld(
                f"average costs are asked for in a world with {what}",
                "Give the world as it is step by step, with any discount below 1",
            )
    if world.is_estimated:
        raise InvalidWorld(
            "average costs are asked for, and the laws of this world are estimates: no bound is "
            "known on what their errors do in the long run",
            "Give known laws, or keep a discount below 1",
        )


def _given(world: "World", restart: ArrayLike) -> FloatArray:
    """A state's number or name, or a law over states."""
    if isinstance(restart, str) and restart in (world.state_names or ()):
        restart = (world.state_names or ()).index(restart)
    if isinstance(restart, str):
        raise InvalidWorld(
            f"restart = {restart!r} is the name of no state", "Give a name of world.state_names"
        )
    if np.ndim(restart) == 0:
        state = integer_array("restart", [restart], refusal=InvalidWorld)
        require_in_range("restart", state, world.num_states, InvalidWorld)
        return _at(world, int(state[0]))
    return laws.probability_vector("restart", restart, world.num_states)


def _at(world: "World", state: int) -> FloatArray:
    law = np.zeros(world.num_states)
    law[state] = 1.0
    return law


def _chosen(world: "World") -> FloatArray:
    """The restart law with the shortest times, among a few states and what all laws share."""
    candidates = [_at(world, state) for state in _unavoidable(world)]
    shared = np.asarray(world.transition.min(axis=0).todense()).ravel()
    if shared.sum() > LEAST_COMMON:
        candidates.append(shared / shared.sum())
    if not candidates:
        _refuse(world, _at(world, int(np.argmax(_visits(world)))), chosen=True)
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda law: _longest(world, law))


def _longest(world: "World", law: FloatArray) -> float:
    """W of a candidate; infinite where float64 proves none."""
    try:
        return float(_times(world, law).max())
    except InvalidWorld:
        return np.inf


def _unavoidable(world: "World") -> list[int]:
    """States that no policy avoids, the likeliest under uniform actions first."""
    found: list[int] = []
    wanted = next((count for size, count in CANDIDATES.items() if world.num_states <= size), 1)
    entering = world.transition.tocsc()
    for state in np.argsort(-_visits(world), kind="stable")[:MOST_TRIED]:
        usable = np.ones(world.num_pairs, dtype=bool)
        usable[entering.indices[entering.indptr[state] : entering.indptr[state + 1]]] = False
        if not staying(world.transition, world.pairs, usable, entering).any():
            found.append(int(state))
            if len(found) == wanted:
                break
    return found


def _visits(world: "World") -> FloatArray:
    """Mean visits of a walk with uniform actions, from anywhere."""
    uniform, at = world.pairs.uniform, np.full(world.num_states, 1.0 / world.num_states)
    total, back = np.zeros(world.num_states), sparse.csr_array(world.transition.T)
    for _ in range(WARM_UP):
        at = back @ (uniform * world.pairs.spread(at))
        total += at
    return total


def _times(world: "World", law: FloatArray) -> FloatArray:
    """w with w - K w >= 1 at every pair."""
    kept, share = split(world.transition, law)
    usable = ~(share > 0)
    if staying(world.transition, world.pairs, usable).any():
        _refuse(world, law)
    everywhere: BoolArray = np.ones(world.num_states, dtype=bool)
    return longest_times_of(
        kept, world.pairs, world.pairs.offsets[:-1].copy(), everywhere,
        "Give another restart, or keep a discount below 1",
    )  # fmt: skip


def _refuse(world: "World", law: FloatArray, *, chosen: bool = False) -> NoReturn:
    """With the states where a policy can stay clear of restarts."""
    _, share = split(world.transition, law)
    names = world.state_names
    kept = named(staying(world.transition, world.pairs, ~(share > 0)), names)
    what = named(law > 0, names)
    if np.count_nonzero(law) > 1:
        what = f"restarts by a law over {what}"
    looked_at = "" if world.num_states <= MOST_TRIED else f" of the {MOST_TRIED:,} likeliest"
    why = f"; no state{looked_at} is visited by all policies" if chosen else ""
    raise InvalidWorld(
        f"averages may depend on the start: from {kept} a policy can avoid {what} for ever{why}",
        "Take out the actions that do so, give as restart a state that every policy keeps visiting "
        "if there is one, or keep a discount below 1",
    )


def _pairs(base: Pairs, last: int) -> Pairs:
    """Those of the base world, and of the end."""
    offsets = np.append(base.offsets, base.offsets[-1] + last)
    if base.numbers is None:
        return Pairs(offsets)
    return Pairs(offsets, np.append(base.numbers, np.full(last, base.numbers.min())))


def _normalised(rows: SparseMatrix) -> SparseMatrix:
    """Rows that sum to one up to the last bit."""
    rows.eliminate_zeros()
    sums = np.asarray(rows.sum(axis=1)).ravel()
    rows.data = rows.data / np.repeat(sums, np.diff(rows.indptr))
    return rows
