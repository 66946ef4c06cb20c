"""Plans and evaluations in a world whose transitions no process holds as a whole.

The states are cut into blocks of consecutive numbers. A worker makes the rows of its blocks from
the world's callables (`world.large_world`) and keeps them; what travels are vectors over states:

    greedy      (T V)(x) = min_a c(x, a) + discount sum_y P(y | x, a) V(y),   and its argument
    product     sum_y P(y | x, pi(x)) X(y, .)                    by the rows of the states x
    arrivals    sum_{x: pi(x) = a} P(y | x, a) d(x)              by the predecessors of the states y

In one *round* every block is given the whole vector and returns its own part. Sums run along rows,
which belong to one block, and everything else is done where the rounds are ordered, so that no bit
depends on the number of workers. A worker that is lost loses its blocks: whoever takes its place is
asked, has nothing, and makes them again, to the same digest. A world that gives other rows when it
is asked again is refused.

A *cost* is named by its weights here: entry i multiplies the i-th basis cost, budgets last.

*Cost* of a round: 8 bytes per state and column to every worker, and as many back in total.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix, dense, normaliser
from journeyman.costs import CostFunctions
from journeyman.errors import InvalidWorld, TaskFailed
from journeyman.execution import LOSSES, KeepingExecutor, ranges_of
from journeyman.solvers.running import Watch
from journeyman.world import Pairs
from journeyman.world.large_world import LargeWorld, successor_laws
from journeyman.world.laws import probability_vector

CHUNK = 1 << 16
"""Pairs whose successors are asked for at a time."""
EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class RowMaker:
    """What a worker needs to make the rows of any block."""

    world: LargeWorld
    costs: tuple[CostFunctions, ...]
    """The basis, then one for each budget."""


class Summary(NamedTuple):
    """What is known of a block where rounds are ordered."""

    digest: bytes
    initial: FloatArray
    lowest: FloatArray
    highest: FloatArray
    """Of each cost."""
    start_costs: FloatArray
    """Of actions taken at random in the first state."""
    branches: int
    held_bytes: int


class Block:
    """The rows of the states first..last-1, and the chain that a policy makes of them."""

    def __init__(self, maker: RowMaker, first: int, last: int) -> None:
        self.maker, self.first, self.last = maker, first, last
        self.size, self.num_actions = last - first, maker.world.num_actions
        self.transition, self.costs = _rows(maker, first, last)
        self.key = 0
        self.chain: Any = None

    def cost(self, weights: FloatArray) -> FloatArray:
        """(pairs, or pairs x columns) of weights (costs, or costs x columns)."""
        if sparse.issparse(self.costs):
            return np.asarray(self.costs @ weights)
        total = np.zeros((self.transition.shape[0], *weights.shape[1:]))
        for column, weight in zip(self.costs, weights, strict=True):
            if np.any(weight):
                total += np.multiply.outer(column, weight) if weights.ndim > 1 else column * weight
        return total

    def summary(self) -> Summary:
        law = self._initial()
        parts = (self.transition.data, self.transition.indices, self.transition.indptr, law)
        stored: tuple[Any, ...]
        if sparse.issparse(self.costs):
            stored = (self.costs.data, self.costs.indices, self.costs.indptr)
            low, high = (self.costs.min(axis=0).toarray(), self.costs.max(axis=0).toarray())
        else:
            stored = (self.costs,)
            low, high = self.costs.min(axis=1), self.costs.max(axis=1)
        digest = hashlib.blake2b(digest_size=16)
        for part in (*parts, *stored):
            digest.update(np.ascontiguousarray(part).data)
        weight = np.repeat(law / self.num_actions, self.num_actions)
        costs = self.costs.T if sparse.issparse(self.costs) else self.costs
        return Summary(
            digest.digest(), law, low.ravel(), high.ravel(), np.asarray(costs @ weight),
            int(np.diff(self.transition.indptr).max()),
            sum(part.nbytes for part in (*parts[:3], *stored)),
        )  # fmt: skip

    def _initial(self) -> FloatArray:
        states = np.arange(self.first, self.last)
        law = np.asarray(self.maker.world.initial_probability(states), dtype=np.float64)
        if law.shape != states.shape or not (law >= 0).all():
            raise InvalidWorld(
                f"initial_probability of the states {self.first}..{self.last - 1} has shape "
                f"{law.shape}" + " and entries that are negative or NaN" * (law.size > 0),
                "Return one probability of at least 0 for each state",
            )
        return law


def _rows(maker: RowMaker, first: int, last: int) -> tuple[SparseMatrix, Any]:
    """Transitions (pairs x states) and costs: (costs x pairs), or sparse (pairs x costs) where
    that takes less memory."""
    world = maker.world
    count, kind = world.num_actions, np.int32 if world.num_states < 2**31 else np.int64
    laws, costs = [], []
    for start, stop in ranges_of(last - first, max(1, CHUNK // count)):
        states = np.repeat(np.arange(first + start, first + stop), count)
        actions = np.tile(np.arange(count), stop - start)
        following = successor_laws(world, states, actions)
        used = following.probabilities > 0
        entries = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        rows = sparse.csr_array(
            (following.probabilities[used], following.states[used].astype(kind), entries),
            shape=(states.size, world.num_states),
        )
        rows.sum_duplicates()
        sizes = np.diff(rows.indptr)
        rows.data /= np.repeat(normaliser(np.asarray(rows.sum(axis=1)).ravel(), sizes), sizes)
        laws.append(rows)
        found = np.hstack([one.at(states, actions) for one in maker.costs])
        thin = 3 * np.count_nonzero(found) < 2 * found.size
        costs.append(sparse.csr_array(found) if thin else found)
    rows = sparse.vstack(laws, format="csr")
    if rows.nnz < 2**31:  # stacking makes wide indices of narrow ones
        indices, ends = rows.indices.astype(kind, copy=False), rows.indptr.astype(kind)
        rows = sparse.csr_array((rows.data, indices, ends), shape=rows.shape)
    if all(sparse.issparse(part) for part in costs):
        return rows, sparse.vstack(costs, format="csr")
    full = [dense(part) for part in costs]
    return rows, np.ascontiguousarray(np.vstack(full).T)


# What workers do in a round; each takes a block and what all blocks are given.


class Chain:
    """The rows of a policy's chain in a block: products, and what the block can solve by itself."""

    matrix: SparseMatrix
    inner: SparseMatrix
    """Between states of the block."""

    def times(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ x)

    def settled(self, right: FloatArray, discount: float) -> FloatArray:
        """About (I - discount inner)^-1 right, by a fixed number of sweeps: linear in `right`."""
        from journeyman.solvers.exact.block_kernels import settle

        inner, x = self.inner, np.empty_like(right)
        settle(inner.data, inner.indices, inner.indptr, discount, right, INNER_SWEEPS, x)
        return x


class Chosen(Chain):
    """The chain of a policy that takes one action in each state."""

    def __init__(self, block: Block, actions: IntArray) -> None:
        own = actions[block.first : block.last].astype(np.int64)
        self._rows = np.arange(block.size) * block.num_actions + own
        self.matrix = block.transition[self._rows]
        self.inner = self.matrix[:, block.first : block.last]

    def average(self, per_pair: FloatArray) -> FloatArray:
        return np.asarray(per_pair[self._rows])


class Averaged(Chain):
    """The chain of a random policy. Its rows are averaged product by product: a matrix of its own
    would be as large as the transitions."""

    def __init__(self, block: Block, law: FloatArray) -> None:
        count = block.num_actions
        self._law = law[block.first * count : block.last * count].reshape(-1, count, 1).copy()
        self._transition = block.transition
        pairs = np.arange(block.size * count)
        ends = np.arange(block.size + 1) * count
        law_rows = sparse.csr_array((self._law.ravel(), pairs, ends))
        self.inner = law_rows @ block.transition[:, block.first : block.last]

    def times(self, x: FloatArray) -> FloatArray:
        return self.average(np.asarray(self._transition @ x))

    def average(self, per_pair: FloatArray) -> FloatArray:
        apart = per_pair.reshape(*self._law.shape[:2], -1)
        total = self._law[:, 0] * apart[:, 0]
        for action in range(1, self._law.shape[1]):
            total += self._law[:, action] * apart[:, action]
        return np.asarray(total.reshape(-1, *per_pair.shape[1:]))


class Arriving(Chain):
    """The transposed chain of a policy that takes one action in each state."""

    def __init__(self, block: Block, actions: IntArray) -> None:
        parts = []
        for start, stop in ranges_of(block.size, max(1, CHUNK // block.num_actions)):
            states = np.arange(block.first + start, block.first + stop)
            offsets, origins, taken, law = block.maker.world.predecessors(states)
            _require_predecessors(states, offsets, (origins, taken, law), actions.size)
            used = actions[origins] == taken
            ends = np.concatenate([[0], np.cumsum(used)])[offsets]
            parts.append(
                sparse.csr_array(
                    (law[used], origins[used].astype(block.transition.indices.dtype), ends),
                    shape=(states.size, actions.size),
                )
            )
        self.matrix = sparse.vstack(parts, format="csr")
        self.inner = self.matrix[:, block.first : block.last]


def _require_predecessors(
    states: IntArray, offsets: IntArray, parts: Sequence[Any], num_states: int
) -> None:
    sizes, offsets = {len(part) for part in parts}, np.asarray(offsets)
    sound = offsets.shape == (states.size + 1,) and sizes == {int(offsets[-1])}
    origins = np.asarray(parts[0])
    if sound and not ((origins >= 0) & (origins < num_states)).all():
        sound = False
    if not (sound and offsets[0] == 0 and (np.diff(offsets) >= 0).all()):
        raise InvalidWorld(
            f"predecessors of the states {states[0]}..{states[-1]} have offsets of shape "
            f"{offsets.shape} and parts of sizes {sorted(sizes)}, or states that are none",
            "Return Predecessors; jm.testing.check_world probes a world",
        )


def follow(block: Block, shared: tuple[int, type, Any]) -> bool:
    """Keep the chain of a policy for the products to come."""
    key, kind, given = shared
    block.key, block.chain = 0, None
    block.chain = kind(block, given)
    block.key = key
    return True


def product(block: Block, x: FloatArray) -> FloatArray:
    return np.asarray(block.chain.times(x))


def operate(block: Block, x: FloatArray) -> FloatArray:
    """(I - discount P) x, after the block has settled it."""
    discount = block.maker.world.discount
    change = x[block.first : block.last] - discount * block.chain.times(x)
    return np.asarray(block.chain.settled(change, discount))


def settled(block: Block, right: FloatArray) -> FloatArray:
    """The right-hand side for `operate`."""
    own = np.ascontiguousarray(right[block.first : block.last])
    return np.asarray(block.chain.settled(own, block.maker.world.discount))


def immediate(block: Block, weights: FloatArray) -> FloatArray:
    """The costs of the policy's actions."""
    return np.asarray(block.chain.average(block.cost(weights)))


def greedy(block: Block, shared: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, IntArray]:
    """T values, and the action of each state that attains it."""
    from journeyman.policy.policy_evaluation import compiled_system
    from journeyman.policy.system_kernels import greedy_step

    weights, values = shared
    best, choice = np.empty(block.size), np.empty(block.size, dtype=np.int64)
    offsets = np.arange(block.size + 1) * block.num_actions
    system = compiled_system(block.transition, block.maker.world.discount)
    greedy_step(system, offsets, block.cost(weights), values, best, choice)
    return best, (choice - offsets[:-1]).astype(np.min_scalar_type(block.num_actions - 1))


def slack(block: Block, shared: tuple[FloatArray, FloatArray]) -> tuple[float, float]:
    """min(c + discount P V - V) over the block's pairs, and max |c|."""
    weights, values = shared
    cost = block.cost(weights)
    own = np.repeat(values[block.first : block.last], block.num_actions)
    change = cost + block.maker.world.discount * (block.transition @ values) - own
    return float(change.min()), float(np.abs(cost).max())


Work: TypeAlias = Callable[[Block, Any], Any]
HELD: dict[tuple[str, int], Block] = {}
"""Blocks on this worker, by the run they belong to and their number."""


def _make(task: tuple[str, list[tuple[int, int, int]]], maker: RowMaker) -> list[Summary]:
    run, numbers = task
    made = []
    for number, first, last in numbers:
        HELD.pop((run, number), None)
        HELD[run, number] = Block(maker, first, last)
        made.append(HELD[run, number].summary())
    return made


def _attempt(task: tuple[str, list[int], int, Work], shared: Any) -> list[Any]:
    """None where this worker has not got the block, or not the policy that it is asked about."""
    run, numbers, key, work = task
    blocks = [HELD.get((run, number)) for number in numbers]
    return [
        None if block is None or (key and key != block.key) else work(block, shared)
        for block in blocks
    ]


def _release(run: str, _: Any) -> None:
    for key in [key for key in HELD if key[0] == run]:
        del HELD[key]


class Stopped(Exception):
    """The watch has stopped a run between two rounds."""


@dataclass
class Traffic:
    """What has travelled: bytes to each worker, and bytes back."""

    rounds: int = 0
    sent: int = 0
    returned: int = 0


class StateBlocks:
    """The blocks of one run, on the workers of an executor."""

    def __init__(
        self, maker: RowMaker, executor: KeepingExecutor, num_blocks: int, watch: Watch
    ) -> None:
        self.maker, self.executor, self.watch = maker, executor, watch
        size = -(-maker.world.num_states // num_blocks)
        self.ranges = ranges_of(maker.world.num_states, size)
        self.traffic = Traffic()
        self._run, self._key = secrets.token_hex(8), 0
        self._digests: dict[int, bytes] = {}
        self._following: tuple[int, type, Any] | None = None

    def make(self) -> list[Summary]:
        """Make all blocks, perhaps again: the rows have to be the same."""
        self._following = None
        return self._make(range(len(self.ranges)))

    def follow(self, kind: type, given: Any) -> None:
        """Let `kind` make a chain of `given` in every block, for the products to come."""
        before = self._following
        if before is not None and before[1] is kind and np.array_equal(before[2], given):
            return
        self._key += 1
        self._following = None
        chain = (self._key, kind, given)
        self.round(follow, chain)
        self._following = chain

    def along(self, work: Work, shared: FloatArray) -> FloatArray:
        """What `work` makes of the chain that is followed, block after block."""
        assert self._following is not None
        return np.concatenate(self.round(work, shared, self._following[0]))

    def round(self, work: Work, shared: Any, key: int = 0, *, last: bool = False) -> list[Any]:
        """`work(block, shared)` for every block, in order; the `last` one takes place even when
        the watch stops the run."""
        if self.watch.must_stop and not last:
            raise Stopped
        results: list[Any] = [None] * len(self.ranges)
        waiting = list(range(len(self.ranges)))
        for _ in range(LOSSES + 1):
            for number, result in self._asked(waiting, key, work, shared):
                results[number] = result
            waiting = [number for number in waiting if results[number] is None]
            if not waiting:
                self.traffic.rounds += 1
                self.traffic.sent += _bytes(shared)
                self.traffic.returned += sum(_bytes(result) for result in results)
                return results
            self._make(waiting)
            if key:
                self._asked(waiting, 0, follow, self._following)
        raise TaskFailed(
            f"block {waiting[0]} of states was lost with its worker again and again. If memory ran "
            "out, use more workers on more machines, or more blocks"
        )

    def release(self) -> None:
        """Let the workers forget the blocks."""
        count = self.executor.slots
        self.executor.map_on(range(count), _release, [self._run] * count)

    def _asked(
        self, numbers: Sequence[int], key: int, work: Work, shared: Any
    ) -> list[tuple[int, Any]]:
        """Blocks by number, with what their workers return."""
        groups = self._groups(numbers)
        tasks = [(self._run, group, key, work) for group in groups.values()]
        found = self.executor.map_on(list(groups), _attempt, tasks, shared=shared)
        return [
            pair
            for group, results in zip(groups.values(), found, strict=True)
            for pair in zip(group, results, strict=True)
        ]

    def _groups(self, numbers: Sequence[int]) -> dict[int, list[int]]:
        """The blocks of each worker: neighbours, so that each has a part of the world."""
        count, slots = len(self.ranges), self.executor.slots
        groups: dict[int, list[int]] = {}
        for number in numbers:
            groups.setdefault(number * slots // count, []).append(number)
        return groups

    def _make(self, numbers: Sequence[int]) -> list[Summary]:
        groups = self._groups(numbers)
        tasks = [
            (self._run, [(number, *self.ranges[number]) for number in group])
            for group in groups.values()
        ]
        found = self.executor.map_on(list(groups), _make, tasks, shared=self.maker)
        made: list[Summary] = [summary for part in found for summary in part]
        for number, summary in zip(numbers, made, strict=True):
            if self._digests.setdefault(number, summary.digest) != summary.digest:
                first, last = self.ranges[number]
                raise InvalidWorld(
                    f"the rows of the states {first}..{last - 1} are not the same when they are "
                    "asked for again",
                    "Let successors, initial_probability and costs depend on their arguments only",
                )
        return made


def _bytes(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(_bytes(part) for part in value)
    return int(getattr(value, "nbytes", 0))


class BlockedWorld:
    """What the exact program asks of a world, without its transitions."""

    is_forward = False

    def __init__(self, blocks: StateBlocks) -> None:
        started = time.monotonic()
        world, made = blocks.maker.world, blocks.make()
        self.seconds_made = time.monotonic() - started
        self.blocks, self.num_states = blocks, int(world.num_states)
        self.num_actions, self.discount = int(world.num_actions), float(world.discount)
        self.effective_horizon = 1.0 / (1.0 - self.discount)
        self.pairs = Pairs.rectangular(self.num_states, self.num_actions)
        law = np.concatenate([summary.initial for summary in made])
        self.initial = probability_vector("initial_probability", law, self.num_states)
        self.lowest = np.min([summary.lowest for summary in made], axis=0)
        self.highest = np.max([summary.highest for summary in made], axis=0)
        self.start_costs = np.sum([summary.start_costs for summary in made], axis=0)
        self.branches = max(summary.branches for summary in made)
        self.held_bytes = sum(summary.held_bytes for summary in made)

    @property
    def num_pairs(self) -> int:
        return self.num_states * self.num_actions


COLUMN_BYTES = 2**24
"""Of the columns that are solved for at a time, or one column."""
TABLE_BYTES = 2**27
"""Values of the last policy are kept as a guess for the next one's if they take no more."""
INNER_SWEEPS = 2
"""Of a block by itself, forward and backward, for every product."""
MOST_ITERATIONS, RESTARTS = 500, 3
SWEEPS = 20_000
STALLED = 50
"""Sweeps without progress."""


class BlockedChains:
    """`policy.policy_evaluation.Chains` by rounds over blocks; costs are named by their weights.

    Systems are solved by BiCGSTAB to a residual in the norm in which the discount contracts: the
    largest entry for values, the sum for visits. Where it breaks down, sweeps x <- b + discount P x
    reach any residual.
    """

    direct = leads_forward = False
    held_bytes = 0
    least_effort = 1
    """It does not matter: evaluations take what they need."""

    def __init__(self, world: BlockedWorld) -> None:
        self.world = world
        self.residuals = np.zeros((2, 0))
        """Least and largest residual of every column of the last tables."""
        self._last: dict[tuple[int, int], FloatArray] = {}

    def greedy(self, weights: FloatArray, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """T values, and the pair of each state that attains it."""
        found = self.world.blocks.round(greedy, (weights, values))
        best, actions = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return best, self.world.pairs.offsets[:-1] + actions

    def values(
        self, choice: IntArray, weights: FloatArray, guess: FloatArray, wanted: float, effort: int
    ) -> tuple[FloatArray, float]:
        """Roughly the values of one cost, and the span of their residual, at most `wanted` if
        float64 can; `effort` is whatever it takes."""
        right = self._right(Chosen, self._actions(choice), weights[:, np.newaxis])
        found, left = self._solve(right, guess[:, np.newaxis], _largest, np.array([wanted / 2]))
        return found[:, 0], float(np.ptp(left))

    def tables(
        self, choice: IntArray, weights: FloatArray, accuracy: float
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Values of all costs (costs x columns), some columns at a time. The largest residual is
        below `accuracy` times the largest cost."""
        yield from self._tables(Chosen, self._actions(choice), weights, accuracy, None)

    def tables_of_law(
        self, law: FloatArray, weights: FloatArray, goals: FloatArray
    ) -> Iterator[tuple[slice, FloatArray]]:
        """The same for a random policy, to residuals of `goals`."""
        yield from self._tables(Averaged, law, weights, 0.0, goals)

    def visits(self, choice: IntArray, start: FloatArray, accuracy: float) -> FloatArray:
        """Discounted visits to every state from a start measure."""
        self.world.blocks.follow(Arriving, self._actions(choice))
        right = start[:, np.newaxis]
        goals = accuracy * _sum(right)
        return self._solve(right, right * self.world.effective_horizon, _sum, goals)[0][:, 0]

    def _actions(self, choice: IntArray) -> IntArray:
        actions = choice - self.world.pairs.offsets[:-1]
        return np.asarray(actions.astype(np.min_scalar_type(self.world.num_actions - 1)))

    def _right(self, kind: type, given: Any, weights: FloatArray) -> FloatArray:
        self.world.blocks.follow(kind, given)
        return self.world.blocks.along(immediate, weights)

    def _tables(
        self, kind: type, given: Any, weights: FloatArray, accuracy: float, goals: Any
    ) -> Iterator[tuple[slice, FloatArray]]:
        count = weights.shape[1]
        width = max(1, COLUMN_BYTES // (8 * self.world.num_states))
        kept = 8 * self.world.num_states * count <= TABLE_BYTES
        last = self._last if any(key[0] == count for key in self._last) else {}
        self._last, ranges = {}, []
        for first, stop in ranges_of(count, width):
            part = slice(first, stop)
            right = self._right(kind, given, np.ascontiguousarray(weights[:, part]))
            guess = last.pop((count, first), None)
            guess = np.zeros_like(right) if guess is None else guess
            wanted = accuracy * _largest(right) if goals is None else goals[part]
            found, residual = self._solve(right, guess, _largest, wanted)
            ranges.append(np.stack([residual.min(axis=0), residual.max(axis=0)]))
            self.residuals = np.hstack(ranges)
            if kept:
                self._last[count, first] = found
            yield part, found

    def _solve(
        self,
        right: FloatArray,
        guess: FloatArray,
        norm: Callable[[FloatArray], FloatArray],
        goals: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """x with a small residual right - x + discount P x, column by column, and that residual."""
        discount = self.world.discount

        def times(x: FloatArray) -> FloatArray:
            return self.world.blocks.along(product, x)

        x = guess
        residual = right - x + discount * times(x)
        left = norm(residual)
        for _ in range(RESTARTS):
            if (left <= goals).all():
                return x, residual
            along = self.world.blocks.along
            step = _bicgstab(partial(along, operate), along(settled, residual), goals / 2, norm)
            trial = x + step
            after = right - trial + discount * times(trial)
            remaining = norm(after)
            better = remaining < left
            x, residual = _taken(better, trial, x), _taken(better, after, residual)
            progress = bool((remaining[left > goals] < 0.5 * left[left > goals]).any())
            left = np.where(better, remaining, left)
            if not progress:
                break
        return self._swept(times, right, x, residual, norm, goals)

    def _swept(
        self,
        times: Callable[[FloatArray], FloatArray],
        right: FloatArray,
        x: FloatArray,
        residual: FloatArray,
        norm: Callable[[FloatArray], FloatArray],
        goals: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """The rest by sweeps, as far as float64 goes."""
        best, idle = norm(residual), 0
        floor = 8 * EPSILON * norm(x)
        for _ in range(SWEEPS):
            if (best <= np.maximum(goals, floor)).all() or idle >= STALLED:
                break
            trial = x + residual
            after = right - trial + self.world.discount * times(trial)
            left = norm(after)
            better = left < best
            idle = 0 if better.any() else idle + 1
            x, residual = _taken(better, trial, x), _taken(better, after, residual)
            best = np.where(better, left, best)
        return x, residual


def _largest(columns: FloatArray) -> FloatArray:
    return np.asarray(np.abs(columns).max(axis=0))


def _sum(columns: FloatArray) -> FloatArray:
    return np.asarray(np.abs(columns).sum(axis=0))


def _taken(better: Any, trial: FloatArray, present: FloatArray) -> FloatArray:
    """The columns of the trial where they are better."""
    if better.all():
        return trial
    return np.where(better, trial, present) if better.any() else present


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Zero where the quotient is no number."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = above / below
    return np.where(np.isfinite(found), found, 0.0)


def _bicgstab(
    operate: Callable[[FloatArray], FloatArray],
    residual: FloatArray,
    goals: FloatArray,
    norm: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """About operate^-1 residual, column by column; whoever calls it looks at what is left.

    A column that has reached its goal, or has broken down, rests.
    """
    r = residual.copy()
    shadow, p, step = r.copy(), r.copy(), np.zeros_like(r)
    rho = _dot(shadow, r)
    for _ in range(MOST_ITERATIONS):
        resting = norm(r) <= goals
        if resting.all():
            break
        v = operate(p)
        alpha = np.where(resting, 0.0, _ratio(rho, _dot(shadow, v)))
        r -= alpha * v
        t = operate(r)
        omega = np.where(alpha == 0.0, 0.0, _ratio(_dot(t, r), _dot(t, t)))
        if not (alpha != 0.0).any():
            break
        step += alpha * p + omega * r
        r -= omega * t
        ahead = _dot(shadow, r)
        beta = _ratio(ahead, rho) * _ratio(alpha, omega)
        rho = ahead
        again = (np.abs(beta) > 1e8) | (beta == 0.0)
        if again.any():
            shadow = np.where(again, r, shadow)
            rho = np.where(again, _dot(r, r), rho)
            beta = np.where(again, 0.0, beta)
        p = r + beta * (p - omega * v)
    return step
