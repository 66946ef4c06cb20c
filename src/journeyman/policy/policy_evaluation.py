"""What a policy does and what it costs: its occupancy measure, values and advantages.

The occupancy measure is the discounted number of visits to every pair,

    mu(x, a) = sum_t discount^t Prob[x_t = x, a_t = a],      sum mu = 1/(1 - discount)

found from nu = (I - discount P_pi')^{-1} initial and mu(x, a) = nu(x) pi(a | x). Every expected
cost is linear in it: E sum_t discount^t c(x_t, a_t) = <mu, c>. Values are what the future costs
from each state on, action values what it costs to take an action once and then to follow the
policy, advantages how much more that is, for every cost psi_i of a basis:

    V_i = (I - discount P_pi)^{-1} c_i,      c_i(x) = sum_a pi(a | x) psi_i(x, a)
    Q_i(x, a) = psi_i(x, a) + discount sum_y P(y | x, a) V_i(y)
    A_i(x, a) = Q_i(x, a) - V_i(x)

All are linear in the cost: under c_w = Psi w they are V w, Q w and A w, and the policy is optimal
for c_w in every state exactly if A w >= 0 in every pair.

*Linear systems.* All of it takes systems

    (I - discount M) x = b      or      (I - discount M') x = b

where M is the (states x states) transition matrix of a policy. A small system is factorised (sparse
LU); a larger one is solved by BiCGSTAB, which needs far less memory and time unless the discount is
very near one, and falls back on the factorisation when BiCGSTAB breaks down or stalls. Corrections
are repeated until the residual no longer improves, so the answer is as exact as float64 allows, and
what is left of the residual is reported because bounds rest on it.

In a *narrow* world, one whose states can be numbered so that every step stays nearby (grids,
queues, roads), the factor of a policy is thin and cheap, and every right-hand side after the first
costs next to nothing; in any other world it fills up, and BiCGSTAB needs few steps because such
worlds mix fast. Where steps lead *forward*, to states with higher numbers (`World.with_horizon`
makes such worlds), the system is triangular: values take one pass backward and visits one forward.

*With discount 1* costs are added up until an end is reached (`world.goals`): P has no rows at ends,
values are zero there, the occupancy counts expected visits. A policy that may never come to an end
is refused with the states where that happens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    SparseMatrix,
    dense,
    norms,
    read_only,
)
from journeyman.costs import CostBasis
from journeyman.errors import InvalidCosts, InvalidPolicy
from journeyman.policy import plain_steps
from journeyman.policy.plain_steps import PlainSystem
from journeyman.policy.steps import (
    BLOCK_ITERATIONS,
    LONG,
    MISSED,
    MOST_EFFORT,
    MOST_SWEEPS,
    Steps,
    hurried,
    in_pieces,
    is_small,
    least_effort,
)
from journeyman.policy.table import Policy
from journeyman.world import World
from journeyman.world.goals import leading_to, named, proven_time, reachable
from journeyman.world.layers import flattened


@dataclass(frozen=True, eq=False)
class Occupancy:
    """The occupancy measure of a policy, as exactly as it could be computed.

    `residual` is |initial - (B - discount P)' measure|_1, recomputed from `measure`: the true
    occupancy is within `residual * horizon` of `measure` in the 1-norm (not counting ends).
    """

    world: World
    measure: FloatArray
    residual: float
    method: str
    horizon: float
    """1/(1 - discount); with discount 1 no fewer than the steps that the policy expects from
    any state it gets to, proven. The residual counts so many times."""

    @property
    def steps(self) -> float:
        """The mass off the ends of a world of discount 1: the expected number of steps."""
        mass = self.of_states
        return float(mass[~self.world.absorbing].sum() if self.world.has_goal else mass.sum())

    @property
    def of_states(self) -> FloatArray:
        """The mass of each state."""
        return self.world.pairs.total(self.measure)

    def expectations(self, basis: CostBasis) -> FloatArray:
        """Psi' measure: the expected discounted total of every basis cost."""
        by_state = basis.matrix.shape[0] == self.world.num_states != self.world.num_pairs
        if by_state and self.world.reduction is None:
            return np.asarray(basis.matrix.T @ self.of_states)
        return np.asarray(basis.on(self.world).T @ self.measure)


def occupancy(world: World, policy: Policy) -> Occupancy:
    """The occupancy measure of `policy` in `world`.

    >>> world = World([[0, 1], [1, 0]], [1, 0], 0.5)
    >>> occupancy(world, Policy([[1.0], [1.0]])).measure.round(12).tolist()
    [1.333333333333, 0.666666666667]
    """
    known = _VISITS.get(policy)
    if known is not None and known[0]() is world:
        return Occupancy(world, *known[1:])
    found = _visits_until_end(world, policy) if world.has_goal else _visits(world, policy)
    parts = (found.measure, found.residual, found.method, found.horizon)
    _VISITS[policy] = (ref(world), *parts)
    return found


_VISITS: "WeakKeyDictionary[Policy, Any]" = WeakKeyDictionary()
"""What policies were last found to do, and in which world: solvers, certificates, saved runs and
reports ask for it. Nothing here keeps a world or a policy."""


def _visits(world: World, policy: Policy) -> Occupancy:
    system = chain_of(world, policy)
    guess = world.initial * world.effective_horizon
    visits = system.solve(world.initial, transposed=True, guess=guess)
    measure = world.pairs.spread(np.maximum(visits.x, 0.0)) * policy.on(world)
    residual = float(np.abs(world.flow.residual(measure)).sum())
    return Occupancy(world, read_only(measure), residual, visits.method, world.effective_horizon)


def _visits_until_end(world: World, policy: Policy) -> Occupancy:
    """The same with discount 1; states that the policy does not get to do not matter.

    Their rows are left empty, so that the system is regular for a policy that is proper where it
    gets to. The residual r is zero outside: the distance of the measure to the occupancy, counted
    off the ends, is at most |r|_1 times the longest expected time from a state inside.
    """
    chain = transition_under(world, policy)
    inside = reachable(chain, world.initial > 0)
    require_proper(world, chain, inside)
    own = sparse.csr_array(sparse.diags_array(inside.astype(float)) @ chain)
    system = DiscountedSystem(own, 1.0)
    found = system.solve(world.initial, transposed=True)
    visits = np.where(inside, np.maximum(found.x, 0.0), 0.0)
    measure = world.pairs.spread(visits) * policy.on(world)
    residual = float(np.abs(world.flow.residual(measure)).sum())
    horizon = expected_times(world, system, inside)[1]
    return Occupancy(world, read_only(measure), residual, found.method, horizon)


def require_proper(world: World, chain: SparseMatrix, inside: BoolArray) -> None:
    """Refuse a policy that never comes to an end from some of the states marked `inside`."""
    endless = inside & ~leading_to(chain, world.absorbing)
    if endless.any():
        raise InvalidPolicy(
            f"the policy never reaches an end from {named(endless)}, and nothing is discounted",
            "Give these states an action that leads on, or give the world a discount below 1",
        )


def expected_times(
    world: World, system: "DiscountedSystem", inside: BoolArray
) -> tuple[FloatArray, float]:
    """Expected steps until the end from every state, and what they are proven not to exceed."""
    counted = inside & ~world.absorbing
    times = np.maximum(system.solve(counted.astype(float)).x, 0.0)
    bound = proven_time(system.transition, times, times, counted)
    if not np.isfinite(bound):
        raise InvalidPolicy(
            f"the policy needs so many steps (about {times.max():.3g}) that float64 proves nothing",
            "Let it take actions that lead to an end sooner",
        )
    return times, bound


def expected_cost(world: World, policy: Policy, cost: ArrayLike) -> float:
    """Expected discounted total of a cost (per pair, per state, or states x actions)."""
    per_pair = flattened(world, "cost", cost, InvalidCosts)
    return float(occupancy(world, policy).measure @ per_pair)


def value_functions(world: World, policy: Policy, costs: Matrix) -> FloatArray:
    """(states x costs): the expected discounted total of every cost (pairs x costs).

    >>> world = World([[0, 1], [1, 0]], [1, 0], 0.5)
    >>> value_functions(world, Policy([[1.0], [1.0]]), np.eye(2)).round(12).tolist()
    [[1.333333333333, 0.666666666667], [0.666666666667, 1.333333333333]]
    """
    return read_only(np.column_stack(list(value_columns(world, policy, costs))))


def value_columns(world: World, policy: Policy, costs: Matrix) -> Iterator[FloatArray]:
    """The same, one cost after the other."""
    chain = transition_under(world, policy)
    if world.has_goal:
        require_proper(world, chain, np.ones(world.num_states, dtype=bool))
    system = DiscountedSystem(chain, world.discount, forward=world.is_forward)
    immediate = dense(averaging(world, policy.on(world)) @ costs)
    for column in immediate.T:
        yield system.solve(np.ascontiguousarray(column)).x


def action_values(world: World, policy: Policy, costs: Matrix) -> tuple[FloatArray, FloatArray]:
    """Q (pairs x costs) and V (states x costs)."""
    values = value_functions(world, policy, costs)
    return np.asarray(dense(costs) + world.discount * (world.continuation @ values)), values


def advantages(world: World, policy: Policy, costs: Matrix) -> FloatArray:
    """A (pairs x costs): what a step aside costs more than the policy; negative: it pays.

    >>> world = World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> advantages(world, Policy([[1.0, 0.0]]), np.array([[1.0], [3.0]])).tolist()
    [[0.0], [2.0]]
    """
    Q, V = action_values(world, policy, costs)
    return np.asarray(Q - world.pairs.spread(V))


DIRECT_LIMIT = 400
"""Up to this many states a factorisation is fastest whatever the structure."""
KRYLOV_TOLERANCE = 1e-10
KRYLOV_ITERATIONS = 400
TARGET, LARGE_TARGET = 1e-13, 1e-10
"""Wanted |residual|_1 relative to |b|_1, and where there are many unknowns (`LONG`): other digits
take half as long again, and all bounds count what is left."""
MAX_CORRECTIONS = 6
WORTHWHILE = 0.1
"""A correction that leaves more than this share of the residual is not worth repeating."""
ROUNDED = 8 * float(np.finfo(float).eps)
"""Of the solution: residuals that rounding leaves, which factors would leave as well."""


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """`x`, the 1-norm of its residual, and how it was found."""

    x: FloatArray
    residual: float
    method: str


class CompiledSystem(NamedTuple):
    """A = I - discount P for the compiled loops: the arrays of the CSR matrix P."""

    data: FloatArray
    indices: Any
    """Unsigned, as are the offsets."""
    indptr: Any
    discount: float


class DiscountedSystem:
    """Solves for several right-hand sides with one policy; a factorisation is made at most once,
    and none where the steps lead `forward` (`World.is_forward`)."""

    def __init__(self, transition: SparseMatrix, discount: float, *, forward: bool = False) -> None:
        identity = sparse.eye_array(transition.shape[0], format="csr")
        self.matrix = (identity - discount * transition).tocsr()
        self.transition = transition
        self.discount = discount
        self.forward = forward
        self._factor: Any = None

    def solve(
        self,
        b: FloatArray,
        *,
        transposed: bool = False,
        guess: FloatArray | None = None,
        reduction: float = 0.0,
    ) -> LinearSolution:
        """The solution for `b` (a vector), of the transposed system on request.

        As exact as float64 allows, unless a `reduction` of the guess's residual suffices.
        """
        matrix = self.matrix.T if transposed else self.matrix
        x = np.zeros_like(b) if guess is None else guess
        residual = b - matrix @ x
        left = float(np.abs(residual).sum())
        target = TARGET if self.forward or b.size <= LONG else LARGE_TARGET
        wanted = max(target * float(np.abs(b).sum()), reduction * left)
        small = self.matrix.shape[0] <= DIRECT_LIMIT
        direct = self.forward or small or self._factor is not None
        for _ in range(MAX_CORRECTIONS):
            if left <= wanted:
                break
            step = (
                self._factorised(residual, transposed)
                if direct
                else self._krylov(residual, transposed, max(KRYLOV_TOLERANCE, reduction / 10))
            )
            corrected = b - matrix @ (x + step)
            remaining = float(np.abs(corrected).sum())
            if remaining < left:
                progress, x, residual, left = remaining / left, x + step, corrected, remaining
            else:
                progress = 1.0
            if progress > WORTHWHILE and left > wanted:
                if direct or left <= ROUNDED * float(np.abs(x).sum()):
                    break
                direct = True
        how = "substitution" if self.forward else "LU" if direct else "BiCGSTAB"
        return LinearSolution(x, left, how)

    def _krylov(self, b: FloatArray, transposed: bool, tolerance: float) -> FloatArray:
        """What BiCGSTAB makes of `b`; its caller judges by the residual, not by its word."""
        x, wanted = np.zeros_like(b), tolerance * float(norms(b))
        if is_small(self.transition):
            matrix = self.transition.T if transposed else self.transition
            small = PlainSystem(matrix, self.discount)
            plain_steps.bicgstab(small, b, x, wanted, KRYLOV_ITERATIONS)
        else:
            from journeyman.policy.system_kernels import bicgstab

            system = self._columns if transposed else self._rows
            bicgstab(system, np.array(b), x, wanted, KRYLOV_ITERATIONS)
        return np.where(np.isfinite(x), x, 0.0)

    @cached_property
    def _rows(self) -> CompiledSystem:
        return compiled_system(sparse.csr_array(self.transition), self.discount)

    @cached_property
    def _columns(self) -> CompiledSystem:
        return compiled_system(sparse.csr_array(self.transition.T), self.discount)

    def _factorised(self, b: FloatArray, transposed: bool) -> FloatArray:
        if self.forward and not is_small(self.transition):
            return substituted(self._rows, b, transposed=transposed)
        if self._factor is None:
            self._factor = factorise(self.matrix)
        return np.asarray(self._factor.solve(b, trans="T" if transposed else "N"))

    def factorise(self) -> None:
        """Now, and so for every right-hand side to come."""
        if self._factor is None and not self.forward:
            self._factor = factorise(self.matrix)


def factorise(matrix: SparseMatrix) -> Any:
    """The sparse LU factors of I - discount M, in an order that suits its nearly symmetric pattern.

    Rows are strictly diagonally dominant, so elimination is stable without pivoting; pivots off the
    diagonal would spoil the order and can cost forty times the work. Supernodes are too small here
    to be worth their overhead.
    """
    from scipy.sparse.linalg import splu

    return splu(
        matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, relax=1, panel_size=1,
        options={"SymmetricMode": True},
    )  # fmt: skip


def substituted_block(factor: Any, right: FloatArray) -> FloatArray:
    """A^{-1} right for a block, by the factor of `factorise`.

    SuperLU solves column by column; a compiled loop over the block is several times faster.
    A = R' L U C' with the permutations of SuperLU.
    """
    from journeyman.policy.system_kernels import backward_substitution, forward_substitution

    lower, upper = factor.L, factor.U
    x = np.empty_like(right)
    x[factor.perm_r] = right
    forward_substitution(lower.data, lower.indices, lower.indptr, x)
    backward_substitution(upper.data, upper.indices, upper.indptr, upper.diagonal(), x)
    return np.asarray(x[factor.perm_c])


def substituted(system: CompiledSystem, b: FloatArray, *, transposed: bool) -> FloatArray:
    """A^{-1} b, or A'^{-1} b, where steps lead forward: one pass over the transitions."""
    from journeyman.policy.system_kernels import backward_values, forward_visits

    x = np.array(b, dtype=float).reshape(b.shape[0], -1)
    (forward_visits if transposed else backward_values)(system, x)
    return x.reshape(b.shape)


LARGEST_INDEX = int(np.iinfo(np.uint32).max)


def compiled_system(matrix: SparseMatrix, discount: float) -> CompiledSystem:
    """I - discount P of a CSR matrix P. Its arrays are views that cannot be written to, whether
    those of P can or not: for the compiler the two are different types."""
    indices = matrix.indices
    if indices.itemsize == 4 or matrix.shape[1] > LARGEST_INDEX:
        indices = indices.view(np.uint32 if indices.itemsize == 4 else np.uint64)
    else:
        indices = indices.astype(np.uint32)
    return locked(CompiledSystem(matrix.data, indices, matrix.indptr.astype(np.uint64), discount))


def locked(system: CompiledSystem) -> CompiledSystem:
    """The same, as views that cannot be written to."""
    views = [part.view() for part in system[:3]]
    for view in views:
        view.flags.writeable = False
    return CompiledSystem(views[0], views[1], views[2], system.discount)


FACTOR_LIMIT = 400_000
"""States beyond which the factor of even a narrow world takes too much memory (4 GB at 1.5 10^6),
and too long for something that no limit of time can interrupt."""
NARROW = 6.0
"""A world is narrow when its bandwidth is at most this many times the root of its states."""
BLOCK_BYTES = 2**26
"""Size of a block of right-hand sides."""
CACHED_BYTES, CACHED_COLUMNS = 2**21, 8
"""The same for BiCGSTAB, whose vectors should stay near (with 16,384 states it takes 2.4 times as
long with 256 columns at once), and the least number of columns."""


def cached_width(num_states: int) -> int:
    """How many right-hand sides BiCGSTAB is given at once."""
    return max(CACHED_COLUMNS, CACHED_BYTES // (8 * num_states))


ROWS = 1 << 20
"""Pairs that are looked at together."""
CORRECTIONS, PAYING = 12, 0.3
"""A nearby policy's factor is used up to so often, while it leaves at most this of the residual."""
SKIPPED = 4
"""Evaluations that do without it after it did not pay."""
FILL = 8.0
"""Entries of the factors of a narrow world, in units of states times their binary logarithm."""
ENTRY_BYTES = 12
"""A number and its row in a sparse factor."""
FACTOR_EFFORT = 600
"""Of an evaluation, from which on the factor of a narrow world is quicker."""
FAR = 500.0
"""The horizon from which on a factor is quicker for a single start measure, too."""
ACCEPTED = 10.0
"""A column may miss its wanted residual by this factor before it is solved again."""


class Chains:
    """Evaluates deterministic policies of one world, many costs at once; keeps the last factor.

        (I - discount P[choice]) V = costs[choice]          values, one column per cost
        (I - discount P[choice])' d = starts                visits, one column per start measure

    where `choice` holds the pair that the policy takes in each state. A narrow world (`is_narrow`)
    is factorised once per policy; one whose steps lead forward is solved by one pass. Residuals
    decide: a column that fails is solved again by `DiscountedSystem`.
    """

    def __init__(self, world: World, memory_limit: float = np.inf) -> None:
        self.world = world
        self.memory_limit = memory_limit
        """Bytes that a factor may take."""
        self._factored: tuple[IntArray, Any] | None = None
        self._skips = 0

    @property
    def held_bytes(self) -> int:
        """Of the factor that is kept."""
        return 0 if self._factored is None else ENTRY_BYTES * int(self._factored[1].nnz)

    @cached_property
    def leads_forward(self) -> bool:
        """Whether one compiled pass solves a system; small worlds are solved like any other."""
        return self.world.is_forward and not is_small(self.world.transition)

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self.world)

    @cached_property
    def least_effort(self) -> int:
        """What an evaluation is worth at least."""
        return least_effort(self.world)

    def greedy(self, cost: FloatArray, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """T values, and the pair of each state that attains it."""
        return self._steps.greedy(cost, values)

    def values(
        self, choice: IntArray, cost: FloatArray, guess: FloatArray, wanted: float, effort: int
    ) -> tuple[FloatArray, float]:
        """Roughly the values of one cost per pair, and a bound on the span of their residual,
        about `wanted` unless `effort` ends before, or rounding leaves more."""
        world, discount, right = self.world, self.world.discount, cost[choice]
        if self.leads_forward:
            system = compiled_system(world.continuation[choice], discount)
            x = substituted(system, right, transposed=False)
            return x, float(np.ptp(right + discount * (world.continuation[choice] @ x) - x))
        if self._factored is not None and self._skips == 0 and effort > MOST_SWEEPS:
            x, left = self._refined(choice, right, guess, wanted)
            if left <= wanted:
                return x, left
            self._skips, guess = SKIPPED + 1, x
        self._skips = max(self._skips - 1, 0)
        most = min(effort, FACTOR_EFFORT) if self.direct else effort
        x, left = self._steps.evaluate(choice, right, guess, wanted, most)
        missed = not left <= MISSED * wanted
        if missed and (effort >= MOST_EFFORT or not np.isfinite(left)) and not hurried(x.size):
            x = np.where(np.isfinite(x), x, guess)
            if self.direct:
                self._factor(choice)
                return self._refined(choice, right, x, wanted)
            matrix = world.continuation[choice]
            x = DiscountedSystem(matrix, discount).solve(right, guess=x).x
            left = float(np.ptp(right + discount * (matrix @ x) - x))
        return x, left

    def tables(
        self, choice: IntArray, costs: Matrix, accuracy: float
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Values of all costs (pairs x costs), a block of columns at a time.

        Residuals are below `accuracy` times the right-hand side in the 2-norm.
        """
        chosen = costs[choice]
        size = max(1, BLOCK_BYTES // (8 * self.world.num_states))
        if not (self.direct or self.leads_forward):
            size = cached_width(self.world.num_states)
        for first in range(0, costs.shape[1], size):
            part = slice(first, min(first + size, costs.shape[1]))
            right = np.ascontiguousarray(dense(chosen[:, part]))
            yield part, self._block(choice, right, accuracy)

    def visits(self, choice: IntArray, starts: FloatArray, accuracy: float) -> FloatArray:
        """Discounted visits to every state from a start measure (or a block of them)."""
        chosen = self.world.continuation[choice]
        if self.leads_forward:
            system = compiled_system(chosen, self.world.discount)
            return substituted(system, starts, transposed=True)
        transposed = chosen.T.tocsr()
        block = np.ascontiguousarray(starts.reshape(self.world.num_states, -1))
        many = block.shape[1] > 1 or self.world.effective_horizon > FAR
        if self.direct and (many or is_small(chosen)):
            found = self._factor(choice).solve(block, trans="T")
        else:
            found = self._krylov(transposed, block, accuracy)
        self._solve_failed_again(transposed, block, found, accuracy)
        return np.asarray(found.reshape(starts.shape))

    def _refined(
        self, choice: IntArray, right: FloatArray, x: FloatArray, wanted: float
    ) -> tuple[FloatArray, float]:
        """Corrections by the factor of a policy nearby, as long as they pay."""
        assert self._factored is not None
        chain = self.world.discount * self.world.continuation[choice]
        residual = right - x + chain @ x
        left = float(np.ptp(residual))
        for _ in range(CORRECTIONS):
            if left <= wanted:
                break
            corrected = x + self._factored[1].solve(residual)
            residual = right - corrected + chain @ corrected
            before, left = left, float(np.ptp(residual))
            if not left <= PAYING * before:
                left = before
                break
            x = corrected
        return x, left

    @cached_property
    def direct(self) -> bool:
        """Whether policies are factorised."""
        if self.leads_forward:
            return False
        if self.world.num_states <= DIRECT_LIMIT:
            return True
        size = self.world.num_states
        bytes_of_factor = ENTRY_BYTES * FILL * size * np.log2(size)
        fits = size <= FACTOR_LIMIT and bytes_of_factor <= self.memory_limit
        return fits and is_narrow(self.world)

    def _block(self, choice: IntArray, right: FloatArray, accuracy: float) -> FloatArray:
        matrix = self.world.continuation[choice]
        if self.leads_forward:
            return substituted(
                compiled_system(matrix, self.world.discount), right, transposed=False
            )
        if self.direct:
            factor = self._factor(choice)
            few = is_small(matrix)
            x = factor.solve(right) if few else substituted_block(factor, right)
            x = np.ascontiguousarray(x)
        else:
            x = self._krylov(matrix, right, accuracy)
        self._solve_failed_again(matrix, right, x, accuracy)
        return x

    def _is_factored(self, choice: IntArray) -> bool:
        return self._factored is not None and np.array_equal(self._factored[0], choice)

    def _factor(self, choice: IntArray) -> Any:
        if self._factored is None or not self._is_factored(choice):
            self._factored = None
            system = DiscountedSystem(self.world.continuation[choice], self.world.discount)
            self._factored = choice, factorise(system.matrix)
        return self._factored[1]

    def _krylov(self, matrix: SparseMatrix, right: FloatArray, accuracy: float) -> FloatArray:
        x, wanted = np.zeros_like(right), accuracy * norms(right)
        if is_small(matrix):
            small = PlainSystem(matrix, self.world.discount)
            for column in range(right.shape[1]):
                single = np.zeros(right.shape[0])
                goal = float(wanted[column])
                plain_steps.bicgstab(small, right[:, column], single, goal, BLOCK_ITERATIONS)
                x[:, column] = single
            return x
        from journeyman.policy.system_kernels import bicgstab, bicgstab_block

        system = compiled_system(matrix, self.world.discount)
        if right.shape[1] == 1:
            single, goal = x.ravel(), float(wanted[0])
            alone = right.flatten()
            in_pieces(lambda most: bicgstab(system, alone, single, goal, most), x.size)
            return single.reshape(right.shape)
        in_pieces(lambda most: bicgstab_block(system, right, x, wanted, most), x.size)
        return x

    def _solve_failed_again(
        self, matrix: SparseMatrix, right: FloatArray, x: FloatArray, accuracy: float
    ) -> None:
        """Solve the columns again whose residual is too large."""
        left = right - x + self.world.discount * (matrix @ x)
        allowed = max(ACCEPTED * accuracy, 1e-11) * norms(right)
        wrong = ~(norms(left) <= allowed)
        if not wrong.any() or hurried(x.size):
            return
        system = DiscountedSystem(matrix, self.world.discount)
        for column in np.flatnonzero(wrong):
            x[:, column] = system.solve(np.ascontiguousarray(right[:, column])).x


_NARROW: "WeakKeyDictionary[World, bool]" = WeakKeyDictionary()
"""Which worlds are, as far as it was asked."""


def is_narrow(world: World) -> bool:
    """Whether the states can be numbered so that every step stays within O(sqrt(states)).

    States that nothing leaves are left out: a sink that all states reach costs a factor one row.
    """
    if world not in _NARROW:
        _NARROW[world] = _steps_are_short(world) or _can_be_numbered(world)
    return _NARROW[world]


def _steps_are_short(world: World) -> bool:
    """Whether every step stays nearby in the numbering as it is."""
    matrix, wide = world.transition, NARROW * np.sqrt(world.num_states)
    for first in range(0, world.num_pairs, ROWS):
        last = min(first + ROWS, world.num_pairs)
        begin, end = matrix.indptr[first], matrix.indptr[last]
        states = world.pairs.states[first:last]
        source = np.repeat(states, np.diff(matrix.indptr[first : last + 1]))
        far = np.abs(matrix.indices[begin:end] - source) > wide
        if (far & ~world.absorbing[source]).any():
            return False
    return True


def _can_be_numbered(world: World) -> bool:
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    matrix, moving = world.transition, ~world.absorbing
    states = world.pairs.states.astype(matrix.indices.dtype)
    graph = sparse.csr_array(
        (np.ones(matrix.nnz, dtype=bool), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    joined = sparse.csr_array(
        (np.ones(world.num_pairs, dtype=bool), states, np.arange(world.num_pairs + 1)),
        shape=matrix.shape,
    )
    steps = (joined.T @ graph).tocsr()[moving][:, moving]
    order = reverse_cuthill_mckee(sparse.csr_array(steps + steps.T).astype(float))
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    pairs = steps.tocoo()
    width = int(np.abs(place[pairs.coords[0]] - place[pairs.coords[1]]).max(initial=0))
    return bool(width <= NARROW * np.sqrt(world.num_states))


class PolicySystems:
    """Systems of randomised policies of one world, factorised at once where it is narrow."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.direct = Chains(world).direct

    def of(self, policy: Policy) -> DiscountedSystem:
        """I - discount P_pi, ready for many right-hand sides."""
        system = chain_of(self.world, policy)
        if self.direct:
            system.factorise()
        return system


def transition_under(world: World, policy: Policy) -> SparseMatrix:
    """The (states x states) transition matrix of the chain that `policy` makes of `world`; with
    discount 1 its rows at ends are empty."""
    return averaging(world, policy.on(world)) @ world.continuation


def chain_of(world: World, policy: Policy) -> DiscountedSystem:
    """I - discount P_pi."""
    transition = transition_under(world, policy)
    return DiscountedSystem(transition, world.discount, forward=world.is_forward)


def averaging(world: World, law: FloatArray) -> SparseMatrix:
    """The (states x pairs) matrix that averages over a state's actions, by their probabilities."""
    return sparse.csr_array(
        (law, np.arange(world.num_pairs), world.pairs.offsets),
        shape=(world.num_states, world.num_pairs),
    )
