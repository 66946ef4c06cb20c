"""Goals at discount 1: which states lead to an end, and how long the way can be.

A world with discount 1 has ends, the absorbing states, where an episode is over and nothing costs
any more. A policy is *proper* when it reaches an end with probability 1 from wherever it gets to;
in a finite world its expected number of steps is then finite. With K the transition matrix whose
rows at ends are empty, I - K_pi is regular exactly for policies that are proper in every state, and

    F = { mu >= 0 : (B - K)' mu = initial }

holds the expected visits of proper policies; the mass of a measure is the expected number of steps,
and one for the end. F also holds circulations, which no policy from `initial` enters: hence the
bound M on the expected steps in every program, and states that cannot be reached are left out.

*Longest times*. Where no policy can avoid the ends for ever, the expected number of steps has a
largest value over all policies, also those that remember: the least solution of

    w(x) = 1 + max over a of (K w)(x, a),           w = 0 at ends

Policy iteration finds it. What is returned holds whatever it found: w >= 0 with w - K w >= theta
and theta > 0 at every pair implies that no policy needs more than w(x)/theta steps from x.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    read_only,
    require_between,
)
from journeyman.errors import InvalidWorld
from journeyman.world.pairs import Pairs

if TYPE_CHECKING:
    from journeyman.world.world import World

MOST_NAMED = 10
"""States that a message lists."""
MOST_ITERATIONS = 1000
EPSILON = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)


def named(states: BoolArray, names: Sequence[str] | None = None) -> str:
    """The marked states in words, for messages: their names where they have any."""
    ids = np.flatnonzero(states)
    shown = ", ".join(str(k) if names is None else names[k] for k in ids[:MOST_NAMED])
    more = f", ... ({ids.size} in all)" if ids.size > MOST_NAMED else ""
    return f"state{'s' * (ids.size > 1)} {shown}{more}" if ids.size else ""


def reachable(chain: SparseMatrix, starts: BoolArray) -> BoolArray:
    """The states that a (states x states) chain can get to from marked ones, these included."""
    from scipy.sparse.csgraph import breadth_first_order

    count, index = starts.size, chain.indices.dtype
    first = np.flatnonzero(starts).astype(index)
    graph = sparse.csr_array(
        (
            np.ones(chain.nnz + first.size),
            np.concatenate([chain.indices, first]),
            np.append(chain.indptr, chain.nnz + first.size),
        ),
        shape=(count + 1, count + 1),
    )
    order = breadth_first_order(graph, count, return_predecessors=False)
    found = np.zeros(count + 1, dtype=bool)
    found[order] = True
    return found[:count]


def steps_of(transition: SparseMatrix, pairs: Pairs) -> SparseMatrix:
    """(states x states): nonzero where some action can lead from one to the other."""
    counts = np.add.reduceat(np.diff(transition.indptr), pairs.offsets[:-1])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array(
        (transition.data, transition.indices, indptr), shape=(pairs.num_states, pairs.num_states)
    )


def leading_to(chain: SparseMatrix, ends: BoolArray) -> BoolArray:
    """The states from which a chain can get to marked ones, these included."""
    return reachable(sparse.csr_array(chain.T), ends)


def never_left(chain: SparseMatrix) -> BoolArray:
    """The states of classes that a chain does not leave once it is there."""
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(chain, directed=True, connection="strong")
    steps, left = chain.tocoo(), np.zeros(count, dtype=bool)
    leaving = label[steps.coords[0]] != label[steps.coords[1]]
    left[label[steps.coords[0][leaving]]] = True
    return np.asarray(~left[label])


def avoiding(world: "World") -> BoolArray:
    """The states from which some policy never reaches an end."""
    return staying(world.transition, world.pairs, ~world.absorbing[world.pairs.states])


def staying(
    transition: SparseMatrix,
    pairs: Pairs,
    usable: BoolArray,
    entering: SparseMatrix | None = None,
) -> BoolArray:
    """The largest set of states that a policy need not leave with `usable` pairs alone.

    `entering` is the transition matrix by columns, where it is at hand.
    """
    columns_of = transition.tocsc() if entering is None else entering
    usable = usable.copy()
    left = np.add.reduceat(usable.astype(np.int64), pairs.offsets[:-1])
    inside, frontier = left > 0, np.flatnonzero(left == 0)
    while frontier.size:
        columns = columns_of[:, frontier].indices
        lost = np.unique(columns[usable[columns]])
        usable[lost] = False
        np.subtract.at(left, pairs.states[lost], 1)
        touched = np.unique(pairs.states[lost])
        frontier = touched[inside[touched] & (left[touched] == 0)]
        inside[frontier] = False
    return np.asarray(inside)


def nearing(world: "World") -> IntArray:
    """The pair of each state that leads to an end in the fewest possible steps: a proper policy."""
    from scipy.sparse.csgraph import shortest_path

    chain = steps_of(world.continuation, world.pairs)
    ends, count = np.flatnonzero(world.absorbing), world.num_states
    back = sparse.csr_array(chain.T)
    graph = sparse.csr_array(
        (
            np.ones(back.nnz + ends.size),
            np.concatenate([back.indices, ends]),
            np.append(back.indptr, back.nnz + ends.size),
        ),
        shape=(count + 1, count + 1),
    )
    distance = shortest_path(graph, unweighted=True, indices=[count])[0][:count]
    matrix = world.transition
    nearest = np.minimum.reduceat(distance[matrix.indices], matrix.indptr[:-1])
    best = world.pairs.smallest(nearest)
    first = np.where(nearest == world.pairs.spread(best), np.arange(world.num_pairs), np.inf)
    return world.pairs.smallest(first).astype(np.int64)


def number_of_steps(value: float | None) -> float | None:
    """M as it was declared, if it was."""
    if value is None:
        return None
    remedy = "Give a positive number of steps that the expert never expects to exceed"
    return require_between("steps_at_most", value, 0.0, np.inf, InvalidWorld, remedy)


def require_goal(world: "World") -> None:
    """Refuse a world of discount 1 in which an episode need not, or cannot, come to an end."""
    if world.sink is None:
        raise InvalidWorld(
            f"discount = 1 and no goal is given; absorbing is {named(world.absorbing) or 'none'}",
            "Name an absorbing state by sink=..., or give a discount below 1, for example 0.99",
        )
    able = leading_to(steps_of(world.transition, world.pairs), world.absorbing)
    if not able.all():
        raise InvalidWorld(
            f"discount = 1, but no end can be reached from {named(~able)}",
            "Lead them to an absorbing state, take them out, or give a discount below 1",
        )
    if world.steps_at_most is None:
        endless = avoiding(world)
        if endless.any():
            raise InvalidWorld(
                f"discount = 1, and from {named(endless)} a policy can avoid the ends for ever",
                "Give steps_at_most=M: the expert never expects more than M further steps",
            )


def longest_times(world: "World") -> FloatArray:
    """w >= 0 with w - K w >= 1 off the ends: no policy expects more than w(x) steps from x. Refused
    where that is not proven."""
    return longest_times_of(
        world.continuation, world.pairs, nearing(world), ~world.absorbing,
        "Give steps_at_most=M: the expert never expects more than M further steps",
    )  # fmt: skip


def longest_times_of(
    kept: SparseMatrix, pairs: Pairs, choice: IntArray, moving: BoolArray, remedy: str
) -> FloatArray:
    """The same for any K whose rows are `pairs`, and states where steps are counted; `choice` is a
    pair of every state that comes to an end."""
    from scipy.sparse.linalg import splu

    num_states = moving.size
    identity = sparse.eye_array(num_states, format="csr")
    times, one = np.zeros(num_states), moving.astype(float)
    for _ in range(MOST_ITERATIONS):
        system = splu(
            (identity - kept[choice]).tocsc(), permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0, options={"SymmetricMode": True},
        )  # fmt: skip
        times = np.maximum(system.solve(one), 0.0)
        ahead = kept @ times
        most = -pairs.smallest(-ahead)
        better = most > ahead[choice] + 1e-12 * (1.0 + most)
        if not better.any():
            break
        first = np.where(ahead == pairs.spread(most), np.arange(len(pairs)), np.inf)
        choice = np.where(better, pairs.smallest(first).astype(np.int64), choice)
    bound = proven_time(kept, pairs.spread(times), times, moving[pairs.states])
    if not np.isfinite(bound):
        raise InvalidWorld(
            f"some policy needs so many steps (about {times.max():.3g}) that float64 proves "
            "no bound on them",
            remedy,
        )
    return read_only(times * (bound / max(float(times.max()), TINY)))


def proven_time(
    kept: SparseMatrix, own: FloatArray, times: FloatArray, counted: BoolArray
) -> float:
    """max w/theta, where w - K w >= theta > 0 at all `counted` rows; infinite without such a theta.

    `own` is w at the state of each row of K, `times` is w per state.
    """
    if not counted.any():
        return 0.0
    branches = int(np.diff(kept.indptr).max(initial=0))
    largest = float(times.max())
    theta = float((own - kept @ times)[counted].min()) - EPSILON * (branches + 4) * (1 + largest)
    return largest / theta * (1 + 4 * EPSILON) if theta > 0 and np.isfinite(largest) else np.inf
