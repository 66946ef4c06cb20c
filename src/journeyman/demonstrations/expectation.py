"""What the expert costs: the expected discounted total of every basis cost.

    e_i = E sum_t discount^t psi_i(x_t, a_t)

estimated by the mean over trajectories of their plain totals (`MonteCarlo`), of totals with most of
the world's noise taken out (`ControlVariate`), or of the blend of both that varies least (`Blend`,
the default). Known tails of terminated episodes are added exactly. Behind records that are cut off
`Blend` and `ControlVariate` put the values of a cloned policy, in estimated worlds too, and
`MonteCarlo()` nothing; `truncation_mass` is how much discounted time is without a record.

No policy has an expectation outside the attainable ranges of the world, so completed means are
moved to the nearest point of their box, which is closer to the truth whatever the truth is.

*The control variate.* For any potential V (states x costs) that does not depend on a trajectory,
its shaped total

    M = <initial, V> + sum_{t<T} discount^t (psi(x_t, a_t) + discount (P V)(x_t, a_t) - V(x_t))

has the same expectation as its plain total, up to the tail: V(x_0) and each V(x_{t+1}) were
replaced by their known conditional means, so only noise of the world was taken out,

    E M = E [ sum_{t<T} discount^t psi_t + discount^T V(x_T) ]

for every expert, history-dependent ones included. A known tail replaces V(x_T) exactly; behind a
truncated record V(x_T) stands for the tail. If V is the expert's own value, all that is left is
the randomness of its actions: a deterministic expert is then known without error.

V is the value of a policy cloned from *other* trajectories (cross-fitting): one cloned from the
same trajectories would make M depend on V, and its mean biased.

*The blend.* How much of the noise is worth taking out is itself estimated: where the
clones know little, as about starts that no other trajectory had, V is noise of its own. With

    Z = sum_{t<T} discount^t psi_t + (known tail, or discount^T U(x_T))         a completed total
    D = V(x_0) - <initial, V> + sum_{t<T} discount^{t+1} (V(x_{t+1}) - (P V)(x_t, a_t))

where U is the value of a policy cloned from all trajectories, the mean of D is zero and

    T = Z - beta D,        beta = cov(Z, D)/(var D + m B) cut to [0, 1], cost by cost,

has the least variance; beta = 0 is the plain mean, completed, and beta = 1 the control variate.
In an estimated world D has the mean of the model's error, whose variance B the counts of the
model give (declared distances bound it): a poor model takes no part. beta is cross-fitted like V.

*Reference*: potential-based shaping, Ng, Harada and Russell (1999); Henderson and Glynn (2002) on
martingale control variates; Lavenberg and Welch (1981) on fitted coefficients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, cast, overload
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    assign,
    dense,
    integer_array,
    read_only,
    real_array,
    require_in_range,
)
from journeyman.costs import CostBasis
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.demonstrations.reading_order import split
from journeyman.errors import InvalidDemonstrations, InvalidPolicy
from journeyman.execution import Executor, Serial, ranges_of
from journeyman.policy import Policy
from journeyman.policy.acting import Predicting, StatePolicy
from journeyman.policy.planning import attainable_ranges
from journeyman.policy.policy_evaluation import (
    averaging,
    compiled_system,
    transition_under,
    value_columns,
)
from journeyman.progress import beginning, working
from journeyman.world import World
from journeyman.world.large_world import AnyWorld, require_sampled_world
from journeyman.world.laws import ROW_SUM_TOLERANCE
from journeyman.world.layers import time_left

EXACT_WORK = 20_000_000
"""Stored transitions times costs up to which potentials are values as exact as float64 allows."""
SWEEP_WORK = 12_000_000_000
"""The same, times the steps that potentials of larger worlds look ahead."""
HORIZONS, FEWEST_SWEEPS = 2.0, 8
"""They look so many times 1/(1 - discount) ahead if that is not too much work, and never less than
so many steps."""


def sweeps_in(world: World, num_costs: int) -> int | None:
    """How many steps a potential looks ahead; None where it looks ahead for ever.

    Size and discount of the world decide and no clock, since an audit has to find the same numbers.
    """
    work = int(world.transition.nnz) * num_costs
    if work <= EXACT_WORK or world.has_goal or world.layers is not None:
        return None
    wanted = round(HORIZONS * world.effective_horizon)
    return max(FEWEST_SWEEPS, min(wanted, SWEEP_WORK // work))


SETTLED = 0.01
"""A cost looks no further than the fewest steps when the last of them has changed its values by no
more than this share of what the first one did: the world mixes fast."""
TOGETHER = 8
"""Costs whose values are computed in one pass."""
LEARNING = "values of a cloned policy, for the expert's expected costs"


def policy_values(world: World, policy: Policy, matrix: Matrix) -> FloatArray:
    """What a policy costs from every state on, for every cost: (states x costs).

    In large worlds what it costs for `sweeps_in` steps, or `FEWEST_SWEEPS` if more would hardly
    change it, and from there on in every state alike what states cost on average, as potentials and
    behind records that are cut off. Any function of the state is a potential: what takes the noise
    of k steps out leaves discount^k of it. Gives up with `OutOfTime` after a step.
    """
    sweeps = sweeps_in(world, matrix.shape[1])
    working(LEARNING)
    if sweeps is None:
        columns, count, since = [], matrix.shape[1], beginning()
        for column in value_columns(world, policy, matrix):
            columns.append(column)
            working(LEARNING, len(columns), count, since=since)
        return read_only(np.column_stack(columns))
    from journeyman.policy.system_kernels import look_ahead

    system = compiled_system(transition_under(world, policy), world.discount)
    immediate = averaging(world, policy.on(world)) @ matrix
    found, since = np.empty((world.num_states, matrix.shape[1])), beginning()
    passes = sweeps * len(range(0, found.shape[1], TOGETHER))
    for first in range(0, found.shape[1], TOGETHER):
        part = slice(first, first + TOGETHER)
        now = np.ascontiguousarray(dense(immediate[:, part]))
        values = np.tile(now.mean(axis=0) * world.effective_horizon, (world.num_states, 1))
        ahead = np.empty_like(values)
        for sweep in range(sweeps):
            working(LEARNING, first // TOGETHER * sweeps + sweep, passes, since=since)
            look_ahead(system, now, values, ahead)
            values, ahead = ahead, values
            if sweep == 0:
                changed = _spans_of_change(values, ahead)
            if sweep == FEWEST_SWEEPS - 1:
                settled = _spans_of_change(values, ahead) <= SETTLED * changed
                found[:, part][:, settled] = values[:, settled]
                if settled.all():
                    break
        found[:, part][:, ~settled] = values[:, ~settled]
    return read_only(found)


def _spans_of_change(after: FloatArray, before: FloatArray) -> FloatArray:
    """max - min of after - before, column by column; some rows at a time."""
    low, high = np.full(after.shape[1], np.inf), np.full(after.shape[1], -np.inf)
    for first in range(0, len(after), ROWS):
        change = after[first : first + ROWS] - before[first : first + ROWS]
        low, high = np.minimum(low, change.min(axis=0)), np.maximum(high, change.max(axis=0))
    return np.asarray(high - low)


ROWS = 1 << 14
"""That are compared at a time."""


@dataclass(frozen=True, eq=False)
class Shaping:
    """A potential, and costs shaped by it. Nothing here looks at the trajectories it is used on."""

    potential: FloatArray
    """V, (states x costs)."""
    baseline: FloatArray
    """<initial, V>."""

    @classmethod
    def by(cls, potential: FloatArray, world: World) -> "Shaping":
        """With a given V."""
        return cls(potential, read_only(world.initial @ potential))

    @classmethod
    def learned(
        cls,
        demos: Demonstrations,
        matrix: Matrix,
        world: World,
        smoothing: float,
    ) -> "Shaping":
        """The values of a policy cloned from `demos` as potential."""
        policy = clone(demos, world, smoothing=smoothing)
        return cls.by(policy_values(world, policy, matrix), world)

    def costs(self, pairs: IntArray, matrix: Matrix, world: World) -> FloatArray:
        """psi + discount P V - V at given pairs."""
        ahead = world.discount * (world.transition[pairs] @ self.potential)
        return np.asarray(dense(matrix[pairs]) + ahead - self.potential[world.pairs.states[pairs]])

    def totals(self, demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
        """M of every episode, known tails put in the place of the potential's."""
        visited, place = np.unique(demos.pairs_in(world), return_inverse=True)
        recorded = _totals_at(demos, place, self.costs(visited, matrix, world), world)
        return np.asarray(self.baseline + recorded + self.tails(demos, matrix, world))

    def completed(self, demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
        """Plain totals with the potential behind records that are cut off."""
        return completed_totals(demos, matrix, world, self.potential)

    def tails(self, demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
        """What a known tail is worth beyond the potential that stood for it; zero elsewhere."""
        tails = Tails.of(demos, matrix, world)
        weight = np.where(tails.known, world.discount**demos.lengths, 0.0)[:, np.newaxis]
        return np.asarray(tails.known_totals - weight * self.potential[demos.last_states])


@dataclass(frozen=True)
class ControlVariate:
    """Cross-fitted shaped totals: each fold is shaped by a policy cloned from the other folds.

    Args:
        num_folds: episode j belongs to fold j modulo this number.
        smoothing: of the cloned policies, as in `clone`.
    """

    num_folds: int = 2
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        _require_folds(self.num_folds)

    def totals(
        self,
        demos: Demonstrations,
        matrix: Matrix,
        world: World,
        *,
        executor: Executor | None = None,
    ) -> FloatArray:
        """One shaped total per episode: (episodes x costs)."""
        if len(demos) < self.num_folds:
            raise InvalidDemonstrations(
                f"{len(demos)} trajectories cannot be cut into {self.num_folds} folds",
                "Give more, or use method=MonteCarlo()",
            )
        found = np.empty((len(demos), matrix.shape[1]))
        for fold in range(self.num_folds):
            mine = np.arange(len(demos)) % self.num_folds == fold
            shaping, own = _cross_fitted(demos, mine, matrix, world, self.smoothing)
            found[mine] = by_tasks(shaping.totals, own, matrix, world, executor)
        return found


@dataclass(frozen=True)
class MonteCarlo:
    """Plain discounted totals.

    Args:
        completed: put the values of a policy cloned from all trajectories behind records that are
            cut off. By default they are not: such a total is that of an expert whose life ends
            with its record, and needs no transition law.
        smoothing: of the cloned policy, as in `clone`.
    """

    completed: bool = False
    smoothing: float = 0.1

    def totals(
        self,
        demos: Demonstrations,
        matrix: Matrix,
        world: World,
        *,
        executor: Executor | None = None,
    ) -> FloatArray:
        """One total per episode, known tails included: (episodes x costs)."""
        plain = by_tasks(_plain_totals, demos, matrix, world, executor)
        if not self.completed or not Tails.of(demos, matrix, world).unknown_mass.any():
            return plain
        return plain + _unknown_tails(demos, matrix, world, _values(demos, matrix, world, self))


@dataclass(frozen=True)
class Blend:
    """The default: completed plain totals, less as much of the world's noise as pays.

    Args:
        num_folds: episode j belongs to fold j modulo this number, or modulo the number of
            episodes if that is smaller.
        smoothing: of the cloned policies, as in `clone`.

    *Guarantee*: none is needed, certificates hold for whatever a policy was learned from. The mean
    lies between those of `MonteCarlo(completed=True)` and `ControlVariate`, cost by cost, and
    `ExpertExpectation` moves it into the range that policies of the world can attain.

    *Cost*: the values of num_folds + 1 cloned policies, and the attainable ranges.
    """

    num_folds: int = 5
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        _require_folds(self.num_folds)

    def totals(
        self,
        demos: Demonstrations,
        matrix: Matrix,
        world: World,
        *,
        executor: Executor | None = None,
    ) -> FloatArray:
        """One blended total per episode: (episodes x costs)."""
        way = MonteCarlo(completed=True, smoothing=self.smoothing)
        plain = way.totals(demos, matrix, world, executor=executor)
        if len(demos) < 2:
            return plain
        num_folds = min(self.num_folds, len(demos))
        fold = np.arange(len(demos)) % num_folds
        noise, unsure = np.empty_like(plain), np.zeros(plain.shape[1])
        for j in range(num_folds):
            shaping, mine = _cross_fitted(demos, fold == j, matrix, world, self.smoothing)
            shaped = by_tasks(shaping.totals, mine, matrix, world, executor)
            noise[fold == j] = by_tasks(shaping.completed, mine, matrix, world, executor) - shaped
            unsure += model_variance(mine, world, shaping.potential) * len(mine) / len(demos)
            del shaping  # two potentials would be held at a time
        return plain - coefficients(plain, noise, fold, len(demos) * unsure) * noise


@dataclass(frozen=True)
class SplitBlend:
    """The default in large worlds: `Blend` with one potential, which a certificate needs as well.

    V is learned from some episodes only, those that train the shaped estimate of certificates
    (`reading_order`), and stands behind all records that are cut off. With Z and D as in `Blend`,

        A = the mean of Z - beta D over the other episodes       B = the mean of Z over those

    and the estimate is (1 - w) A + w B, w = var A/(var A + var B), cost by cost, where both
    variances are those among the other episodes. Totals are Z - beta D and Z, moved and stretched
    so that their mean is the estimate and their spread gives its error.

    *Guarantee*: none is needed, as for `Blend`. *Cost*: the values of one cloned policy.

    Args:
        smoothing: of the cloned policy, as in `clone`.
    """

    smoothing: float = 0.1

    def totals(
        self,
        demos: Demonstrations,
        matrix: Matrix,
        world: World,
        *,
        executor: Executor | None = None,
        shaping: Shaping | None = None,
    ) -> FloatArray:
        """One total per episode: (episodes x costs). `shaping` is that of the training episodes,
        where it is at hand."""
        training, others = split(demos, world)
        if min(training.size, others.size) < 2:
            way = MonteCarlo(completed=True, smoothing=self.smoothing)
            return way.totals(demos, matrix, world, executor=executor)
        if shaping is None:
            shaping = Shaping.learned(demos.subset(training), matrix, world, self.smoothing)
        plain, mine = by_tasks(shaping.completed, demos, matrix, world, executor), others
        applied = demos.subset(mine)
        noise = plain[mine] - by_tasks(shaping.totals, applied, matrix, world, executor)
        unsure = len(mine) * model_variance(applied, world, shaping.potential)
        beta = coefficients(plain[mine], noise, np.arange(len(mine)) % 2, unsure)
        own, rest, count = plain[mine] - beta * noise, plain[training], len(demos)
        least = (LEAST_SPREAD * np.abs(plain).max(axis=0)) ** 2
        first = (own.var(axis=0, ddof=1) + least) / len(own)
        second = (plain[mine].var(axis=0, ddof=1) + least) / len(rest)
        share = np.full(len(least), len(rest) / count)
        np.divide(first, first + second, out=share, where=second > 0)
        means = own.mean(axis=0), rest.mean(axis=0)
        middle = (1 - share) * means[0] + share * means[1]
        found = np.empty_like(plain)
        found[mine] = middle + (1 - share) * count / len(own) * (own - means[0])
        found[training] = middle + share * count / len(rest) * (rest - means[1])
        return found


LEAST_SPREAD = 1e-5
"""Of the largest total: spreads below it decide no weights, since rounding may be all of them."""


_TRAINED: WeakKeyDictionary[Demonstrations, tuple[Any, ...]] = WeakKeyDictionary()
"""The potential that a target has learned from training episodes, until a certificate takes it."""


def training_shaping(
    demos: Demonstrations, basis: CostBasis, matrix: Matrix, world: World, smoothing: float
) -> Shaping | None:
    """By the training episodes of `demos`, kept for `take_training_shaping`; None where these are
    too few."""
    training, others = split(demos, world)
    if min(training.size, others.size) < 2:
        return None
    found = Shaping.learned(demos.subset(training), matrix, world, smoothing)
    _TRAINED[demos] = ref(world), ref(basis), smoothing, found
    return found


def take_training_shaping(
    demos: Demonstrations, basis: CostBasis, matrix: Matrix, world: World, smoothing: float = 0.1
) -> Shaping:
    """The same, as it was learned before or anew; it is not kept any longer."""
    known = _TRAINED.pop(demos, None)
    if known is not None and known[0]() is world and known[1]() is basis and known[2] == smoothing:
        return cast(Shaping, known[3])
    training, _ = split(demos, world)
    return Shaping.learned(demos.subset(training), matrix, world, smoothing)


@dataclass(frozen=True)
class StoppedShaping:
    """Marks expectations that are the shaped estimate of a certificate; `jm.learn` may choose it.

    Its totals depend on the cost class, so it cannot be asked for here.
    """


def _require_folds(count: int) -> None:
    if not (isinstance(count, int) and count >= 2):
        raise InvalidDemonstrations(f"num_folds = {count!r}", "Give 2 or more")


def _cross_fitted(
    demos: Demonstrations, mine: BoolArray, matrix: Matrix, world: World, smoothing: float
) -> tuple[Shaping, Demonstrations]:
    """The episodes of a fold, and a potential that was learned from all the others."""
    others = demos.subset(np.flatnonzero(~mine))
    return Shaping.learned(others, matrix, world, smoothing), demos.subset(np.flatnonzero(mine))


Method: TypeAlias = MonteCarlo | ControlVariate | Blend | SplitBlend | StoppedShaping


def usual_method(world: World, num_costs: int) -> "MonteCarlo | Blend | SplitBlend":
    """The default: every fold takes the values of a policy, of which large worlds have one."""
    if world.averages is not None:
        return MonteCarlo()
    return Blend() if sweeps_in(world, num_costs) is None else SplitBlend()


def coefficients(
    plain: FloatArray, noise: FloatArray, fold: IntArray, unsure: FloatArray
) -> FloatArray:
    """beta of every episode and cost, from the episodes of the other folds."""
    found = np.zeros_like(plain)
    for j in range(int(fold.max()) + 1):
        others = fold != j
        if np.count_nonzero(others) < 2:
            continue
        Z, D = (part[others] - part[others].mean(axis=0) for part in (plain, noise))
        count = Z.shape[0] - 1
        shared, own = (Z * D).sum(axis=0) / count, (D * D).sum(axis=0) / count + unsure
        beta = np.divide(shared, own, out=np.zeros_like(own), where=own > 0)
        found[~others] = np.clip(beta, 0.0, 1.0)
    return found


def model_variance(demos: Demonstrations, world: World, potential: FloatArray) -> FloatArray:
    """Of the mean of D because the laws are estimates, cost by cost; zero where they are known.

    The mean of n next values has the variance var V/n, and laws at a declared distance err move it
    by no more than err/2 times the span of V.
    """
    if not world.is_estimated:
        return np.zeros(potential.shape[1])
    weights = world.discount ** (1.0 + demos.step_times)
    visits = np.bincount(demos.pairs_in(world), weights, world.num_pairs) / len(demos)
    spans = (potential.max(axis=0) - potential.min(axis=0)) / 2
    found = np.zeros(potential.shape[1])
    if world.transition_counts is not None:
        squares = world.transition @ potential**2 - (world.transition @ potential) ** 2
        share = visits**2 / np.maximum(world.transition_counts, 1)
        found += share @ np.maximum(squares, 0.0)
    elif world.transition_error is not None:
        found += (visits @ world.transition_error * spans) ** 2
    if world.initial_count is not None:
        squares = world.initial @ potential**2 - (world.initial @ potential) ** 2
        found += np.maximum(squares, 0.0) / world.initial_count
    elif world.initial_error is not None:
        found += (world.initial_error * spans) ** 2
    return found


def completed_totals(
    demos: Demonstrations, matrix: Matrix, world: World, potential: FloatArray
) -> FloatArray:
    """Plain totals, with `potential` in the last state behind records that are cut off."""
    plain = _plain_totals(demos, matrix, world)
    return plain + _unknown_tails(demos, matrix, world, potential)


def _unknown_tails(
    demos: Demonstrations, matrix: Matrix, world: World, potential: FloatArray
) -> FloatArray:
    tails = Tails.of(demos, matrix, world)
    unknown = np.where(tails.known, 0.0, tails.mass) / world.effective_horizon
    return np.asarray(unknown[:, np.newaxis] * potential[demos.last_states])


def _values(demos: Demonstrations, matrix: Matrix, world: World, method: MonteCarlo) -> FloatArray:
    return policy_values(world, clone(demos, world, smoothing=method.smoothing), matrix)


def _plain_totals(demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
    recorded = recorded_totals(demos, matrix, world)
    return np.asarray(recorded + Tails.of(demos, matrix, world).known_totals)


def recorded_totals(demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
    """sum_t discount^t psi(x_t, a_t) of every episode, in a world of averages the mean of its
    steps: (episodes x costs)."""
    return _totals_at(demos, demos.pairs_in(world), matrix, world)


def _totals_at(demos: Demonstrations, rows: IntArray, matrix: Matrix, world: World) -> FloatArray:
    """The same, where the cost of every recorded step is in a given row."""
    weights = world.discount ** demos.step_times.astype(float)
    if world.averages is not None:
        weights = world.averages.times[demos.step_states] / np.repeat(demos.lengths, demos.lengths)
    visits = sparse.csr_array((weights, rows, demos.offsets), shape=(len(demos), matrix.shape[0]))
    return dense(visits @ matrix)


@dataclass(frozen=True, eq=False)
class Tails:
    """What comes after the record of each episode.

    A terminated episode whose absorbing state costs the same under each of its actions has a known
    tail, psi(x_T) discount^T/(1 - discount). Nothing is known about any other tail. In a world of
    averages 2 D/T stands for the time without a record: the expected mean of T steps is off by at
    most half of a cost's range times it (`world.averages`).
    """

    known: BoolArray
    """Whether the tail is known exactly."""
    mass: FloatArray
    """Its discounted time, discount^T/(1 - discount)."""
    left: FloatArray
    """The same as an episode counts it, where the world has a horizon."""
    resting: FloatArray
    """Cost per step of the last state, (episodes x costs); the tail's where it is known."""

    @classmethod
    def of(cls, demos: Demonstrations, matrix: Matrix, world: World) -> "Tails":
        resting = matrix[world.pairs.offsets[demos.last_states]]
        if world.averages is not None:
            missing = np.asarray(2.0 * world.averages.memory / demos.lengths)
            return cls(np.zeros(len(demos), dtype=bool), missing, missing, dense(resting))
        return cls(
            demos.terminated & _costs_alike(demos, matrix, world),
            np.asarray(world.discount**demos.lengths * world.effective_horizon),
            time_left(world, demos.lengths),
            dense(resting),
        )

    @property
    def known_totals(self) -> FloatArray:
        """The known tails, zero elsewhere: (episodes x costs)."""
        return np.asarray(np.where(self.known, self.mass, 0.0)[:, np.newaxis] * self.resting)

    @property
    def unknown_mass(self) -> FloatArray:
        """Discounted time without a record, per episode, as an episode counts it."""
        return np.where(self.known, 0.0, self.left)

    @property
    def unrecorded(self) -> FloatArray:
        """The same by the discount of the world, also where it has layers."""
        return np.where(self.known, 0.0, self.mass)


def _costs_alike(demos: Demonstrations, matrix: Matrix, world: World) -> BoolArray:
    """Episodes whose last state costs the same under each of its actions."""
    alike = np.ones(world.num_states, dtype=bool)
    ends = np.unique(demos.last_states[demos.terminated])
    if ends.size:
        counts = world.pairs.actions_per_state[ends]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        first = np.repeat(world.pairs.offsets[ends], counts)
        pairs = first + np.arange(counts.sum()) - np.repeat(starts, counts)
        difference = matrix[pairs] - matrix[first]
        largest = abs(difference).max(axis=1)
        moved = dense(largest)
        alike[ends] = np.maximum.reduceat(np.ravel(moved), starts) == 0
    return np.asarray(alike[demos.last_states])


EPISODES_PER_TASK = 1 << 10
"""Episodes of one task."""

EpisodeValues: TypeAlias = Callable[[Demonstrations, Matrix, World], FloatArray]
"""Demonstrations, costs per pair and a world to one row per episode."""
_Shared: TypeAlias = tuple[EpisodeValues, Demonstrations, Matrix, World]


def by_tasks(
    values_of: EpisodeValues,
    demos: Demonstrations,
    matrix: Matrix,
    world: World,
    executor: Executor | None = None,
) -> FloatArray:
    """`values_of(demos, matrix, world)`, a row per episode, from tasks of episodes.

    A row depends on nothing but its episode, so tasks are computed anywhere and put together in
    their order. Their size is a constant, so no bit depends on the executor or its workers.
    """
    run = Serial() if executor is None else executor
    shared = values_of, demos, matrix, world
    return np.concatenate(run.map(_task, ranges_of(len(demos), EPISODES_PER_TASK), shared=shared))


def _task(span: tuple[int, int], shared: _Shared) -> FloatArray:
    values_of, demos, matrix, world = shared
    part = demos if span == (0, len(demos)) else demos.subset(np.arange(*span))
    return values_of(part, matrix, world)


@dataclass(frozen=True, eq=False, init=False)
class ExpertExpectation:
    """Expected discounted costs of the expert.

    Given directly, `ExpertExpectation(values)`, they are declared exact. From demonstrations they
    carry what a guarantee needs to know about them.
    """

    values: FloatArray
    num_trajectories: int | None
    """None when the values were declared."""
    spread: FloatArray
    """Standard deviation over trajectories, per cost."""
    truncation_mass: float
    """Mean discounted time without a record: |error of the mean| <= max|psi| truncation_mass."""
    method: Method | None
    demonstrations: Demonstrations | None
    """What the values were estimated from."""

    def __init__(self, values: ArrayLike) -> None:
        checked = real_array("expectations", values, ndim=1, refusal=InvalidDemonstrations)
        zero = read_only(np.zeros(checked.size))
        assign(self, values=checked, num_trajectories=None, spread=zero, truncation_mass=0.0)
        assign(self, method=None, demonstrations=None)

    @classmethod
    def from_rewards(cls, values: ArrayLike) -> Self:
        """Declared expectations of reward features, for a basis made by `from_rewards`."""
        given = real_array("expectations", values, ndim=1, refusal=InvalidDemonstrations)
        return cls(-given)

    @classmethod
    def from_demonstrations(
        cls,
        demos: Demonstrations,
        basis: CostBasis,
        world: World,
        *,
        method: MonteCarlo | ControlVariate | Blend | SplitBlend | None = None,
        executor: Executor | None = None,
        clipped: bool = True,
    ) -> Self:
        """Discounted means over the trajectories of `demos`, checked against `world`.

        `method` is `Blend()` by default, in large worlds `SplitBlend()`, the mean of steps with
        average costs. `executor` adds up
        tasks of trajectories; no bit depends on it. Where tails were completed, values outside of
        what policies attain are `clipped` to it, unless the cost class does not bear that
        (`CostClass.bears_clipping`) or the discount is 1.
        """
        usual = usual_method(world, basis.num_costs)
        chosen = usual if method is None else method
        if world.averages is not None and chosen != MonteCarlo():
            raise InvalidDemonstrations(
                f"method is {method!r}, and the world has average costs",
                "Leave it out: the mean of the recorded steps is taken",
            )
        if not isinstance(chosen, MonteCarlo | ControlVariate | Blend | SplitBlend):
            raise InvalidDemonstrations(
                f"method is {method!r}", "Give Blend(), ControlVariate() or MonteCarlo()"
            )
        matrix, demos = basis.on(world), demos.on(world)
        demos.pairs_in(world)
        if isinstance(chosen, SplitBlend):
            kept = training_shaping(demos, basis, matrix, world, chosen.smoothing)
            totals = chosen.totals(demos, matrix, world, executor=executor, shaping=kept)
        else:
            totals = chosen.totals(demos, matrix, world, executor=executor)
        unrecorded = Tails.of(demos, matrix, world).unknown_mass
        found = cls.from_totals(totals, unrecorded, chosen, demos)
        completed = isinstance(chosen, MonteCarlo) and chosen.completed
        blended = isinstance(chosen, Blend | SplitBlend)
        moved = clipped and not world.has_goal and (completed or blended)
        return found.attainable(basis, world) if moved else found

    @classmethod
    def from_totals(
        cls,
        totals: FloatArray,
        unrecorded: FloatArray,
        method: Method | None = None,
        demos: Demonstrations | None = None,
    ) -> Self:
        """The mean of discounted totals (trajectories x costs) with `unrecorded` time behind."""
        expectation = cls(totals.mean(axis=0))
        count, num_costs = totals.shape
        spread = totals.std(axis=0, ddof=1) if count > 1 else np.full(num_costs, np.inf)
        assign(
            expectation,
            num_trajectories=count,
            spread=read_only(spread),
            truncation_mass=float(unrecorded.mean()),
            method=method,
            demonstrations=demos,
        )
        return expectation

    def attainable(self, basis: CostBasis, world: World) -> Self:
        """The same with values outside their attainable ranges moved to the nearest end."""
        moved = attainable_ranges(world, basis).clip(self.values)
        other = type(self)(moved)
        assign(
            other,
            num_trajectories=self.num_trajectories,
            spread=self.spread,
            truncation_mass=self.truncation_mass,
            method=self.method,
            demonstrations=self.demonstrations,
        )
        return other

    @property
    def is_declared(self) -> bool:
        return self.num_trajectories is None


@overload
def clone(
    demos: Demonstrations, world: World | None = None, *, smoothing: float = 0.1
) -> Policy: ...


@overload
def clone(demos: Demonstrations, world: AnyWorld, *, smoothing: float = 0.1) -> StatePolicy: ...


def clone(
    demos: Demonstrations, world: World | AnyWorld | None = None, *, smoothing: float = 0.1
) -> StatePolicy:
    """Smoothed action frequencies.

        pi(a | x) = (count(x, a) + smoothing) / sum_b (count(x, b) + smoothing)

    A state that was never visited gets the uniform law. Cloning looks at single decisions only:
    small errors lead to states the expert never showed (the cascading errors that the exact
    program avoids by matching whole occupancies). With `world`, every step is checked against it;
    recorded demonstrations know their action sets and can be cloned without. In a `LargeWorld`
    laws are kept for visited states only, and of every step nothing but its ids is checked.
    """
    _require_smoothing(smoothing)
    demos.require_ids("clone (clone_observations does without)")
    if world is not None and not isinstance(world, World):
        return clone_visited(demos, world, smoothing)
    demos = demos if world is None else demos.on(world)
    pairs = demos.pairs if world is None else world.pairs
    if pairs is None:
        raise InvalidDemonstrations(
            "these demonstrations do not say how many states and actions there are",
            "Give the world: clone(demos, world)",
        )
    visited = (
        pairs.index(demos.step_states, demos.actions, InvalidDemonstrations)
        if world is None
        else demos.pairs_in(world)
    )
    counts = np.bincount(visited, minlength=len(pairs)).astype(np.float64) + smoothing
    totals = pairs.spread(pairs.total(counts))
    probabilities = np.divide(counts, totals, out=pairs.uniform.copy(), where=totals > 0)
    return Policy(probabilities, pairs)


@dataclass(frozen=True, eq=False, repr=False)
class ClonedPolicy(Predicting):
    """Laws in the states that were demonstrated, the uniform law in all others."""

    states: IntArray
    """In order, each once."""
    laws: FloatArray
    """One row per demonstrated state, and the uniform law in the last."""

    def __post_init__(self) -> None:
        states = integer_array("states", self.states, refusal=InvalidPolicy)
        laws = real_array("laws", self.laws, ndim=2, size=states.size + 1, refusal=InvalidPolicy)
        if not states.size or (np.diff(states) <= 0).any():
            raise InvalidPolicy("states are not in increasing order", "Give each once, in order")
        off = np.abs(laws.sum(axis=1) - 1)
        if (laws < 0).any() or (off > ROW_SUM_TOLERANCE).any():
            raise InvalidPolicy("a row of laws is no law", "Give probabilities that sum to 1")
        assign(self, states=states, laws=laws)

    @property
    def num_actions(self) -> int:
        return int(self.laws.shape[1])

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws."""
        asked = integer_array("states", states, refusal=InvalidPolicy)
        place = np.searchsorted(self.states, asked)
        known = self.states[np.minimum(place, self.states.size - 1)] == asked
        return np.asarray(self.laws[np.where(known, place, self.states.size)])

    def __repr__(self) -> str:
        return f"ClonedPolicy({self.states.size} visited states, {self.num_actions} actions)"


def clone_visited(demos: Demonstrations, world: AnyWorld, smoothing: float) -> ClonedPolicy:
    """Smoothed action frequencies, state by state; ids are checked against the world."""
    require_sampled_world(world)
    count, steps, actions = world.num_actions, demos.step_states, demos.actions
    require_in_range("states", steps, world.num_states, InvalidDemonstrations)
    require_in_range("actions", actions, count, InvalidDemonstrations)
    if not steps.size:
        raise InvalidDemonstrations("there is no step to clone", "Record at least one")
    return _frequencies(demos, count, smoothing)


def clone_visited_states(demos: Demonstrations, smoothing: float = 0.1) -> ClonedPolicy:
    """The same without a world: of actions that were never recorded nothing is known."""
    _require_smoothing(smoothing)
    demos.require_ids("a table of states")
    return _frequencies(demos, int(demos.actions.max()) + 1, smoothing)


def _frequencies(demos: Demonstrations, num_actions: int, smoothing: float) -> ClonedPolicy:
    states, rows = np.unique(demos.step_states, return_inverse=True)
    counts = np.full((states.size + 1, num_actions), float(smoothing))
    np.add.at(counts, (rows, demos.actions), 1.0)
    counts[-1] = 1.0
    laws = counts / counts.sum(axis=1, keepdims=True)
    return ClonedPolicy(read_only(states), read_only(laws))


def _require_smoothing(smoothing: float) -> None:
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InvalidDemonstrations(f"smoothing = {smoothing}", "Give a finite number from 0")
