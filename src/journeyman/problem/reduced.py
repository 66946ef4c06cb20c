"""The reduced problem: program (6) of the paper, over combinations of features.

    minimise   gap_W(G theta - target)      G = Psi' Phi
    subject to D theta = initial            D = (B - discount P)' Phi,  one row per state
               Phi theta >= 0               one row per pair
               C theta <= limits            C = one row Phi' d_j per budget

With a base measure, u = base + Phi theta, the right-hand sides move: target - Psi' base,
initial - (B - discount P)' base, -base, limits - <base, d_j>.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    Matrix,
    assign,
    dense,
    first_index,
    read_only,
)
from journeyman.errors import InvalidSolver
from journeyman.features.base import Features
from journeyman.policy import occupancy, plan
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.world.laws import probability_vector
from journeyman.world.levels import Level, require_level


class DrawnRows(NamedTuple):
    """Pairs from q1 and states from q2: rows, what they are compared to, and probabilities."""

    pair_rows: Matrix
    floor: FloatArray
    pair_law: FloatArray
    flow_rows: Matrix
    flow_target: FloatArray
    flow_law: FloatArray


@dataclass(frozen=True, eq=False, init=False)
class Reduced:
    """The matrices of the reduced problem, sparse where the features are."""

    problem: Apprenticeship
    features: Features

    def __init__(self, problem: Apprenticeship, features: Features) -> None:
        require_level(problem, Level.EXPLICIT, "a problem over a matrix of features")
        assign(self, problem=problem, features=features.on(problem.world))

    @property
    def num_features(self) -> int:
        return self.features.num_features

    def laws(self, rule: "RowSampling") -> "SamplingLaws":
        """Laws of the rows, by a rule."""
        return rule.laws(self)

    @property
    def mixture_radius(self) -> float:
        """A ball of coefficients that holds every mixture of the columns."""
        return self.features.mixture_radius(self.problem.world)

    @cached_property
    def heavy_radius(self) -> float:
        """The same for columns that are not `LIGHT`er than the heaviest one: others would make the
        ball so long that it loses digits."""
        masses = self.features.masses
        heavy = masses[masses > LIGHT * masses.max()]
        found = self.problem.effective_horizon / float(heavy.min()) if heavy.size else 1.0
        return found if 0 < found < np.inf else 1.0

    @property
    def penalised_at_zero(self) -> tuple[float, float]:
        """V1 and V2 where all coefficients are zero."""
        return float(np.maximum(self.floor, 0.0).sum()), float(np.abs(self.flow_target).sum())

    def expected(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """G theta and C theta."""
        return self.matching @ coefficients, self.budget_rows @ coefficients

    def deviation(self, coefficients: FloatArray, budget_penalty: float) -> float:
        """The error of what `expected` adds to a loss: none, it is exact."""
        return 0.0

    @property
    def pair_rows(self) -> Matrix:
        """Phi: one row per pair."""
        return self.features.matrix

    @cached_property
    def floor(self) -> FloatArray:
        """-base: what Phi theta must not go below."""
        base = self.features.base
        return np.zeros(self.features.num_pairs) if base is None else -base

    @cached_property
    def flow_rows(self) -> Matrix:
        """D: one row per state."""
        world, Phi = self.problem.world, self.features.matrix
        if not self.features.is_sparse:
            return world.flow.apply(Phi)
        return sparse.csr_array(world.flow.matrix().T @ Phi)

    @cached_property
    def flow_target(self) -> FloatArray:
        """initial, less the flow of the base measure."""
        world, base = self.problem.world, self.features.base
        return world.initial if base is None else world.flow.residual(base)

    @cached_property
    def matching(self) -> FloatArray:
        """G: one row per cost."""
        return dense(self.features.matrix.T @ self.problem.cost_matrix).T

    @cached_property
    def matching_target(self) -> FloatArray:
        base = self.features.base
        return self.problem.target if base is None else -self.problem.difference(base)

    @cached_property
    def budget_rows(self) -> FloatArray:
        """C: one row per budget."""
        return dense(self.features.matrix.T @ self.problem.budget_matrix).T

    @cached_property
    def budget_limits(self) -> FloatArray:
        base = self.features.base
        return self.problem.limits if base is None else -self.problem.overspending(base)


SLACK_ROUNDS = 60
LIGHT = 1e-3
"""Share of the heaviest column's mass up to which a column is light."""


@dataclass(frozen=True)
class Penalties:
    """What violated constraints cost: the multipliers lambda_1, lambda_2 and lambda_3 of

        L(theta) = gap(theta) + pairs V1(theta) + flow V2(theta) + budgets overspending(theta)

    where V1 is the total negativity and V2 the flow violation of u_theta.
    """

    pairs: float
    flow: float
    budgets: float


class Penalty(ABC):
    """A rule that sets the penalties of a problem."""

    @abstractmethod
    def of(self, problem: Apprenticeship) -> Penalties:
        """The multipliers for `problem`."""


@dataclass(frozen=True)
class ExactPenalty(Penalty):
    """Penalties at which the loss itself bounds the policy's gap: gap(pi_theta) <= L(theta).

        lambda_1 = 2 N'/(1 - discount),  lambda_2 = N'/(1 - discount),  N' = N + lambda_3 sum |d_j|

    where N bounds the costs of the class. With budgets lambda_3 = (2N/(1 - discount))/slack, where
    `slack` > 0 is by how much some policy stays within all the budgets at once; it is looked for
    when it is not given.
    """

    slack: float | None = None

    def of(self, problem: Apprenticeship) -> Penalties:
        horizon = problem.effective_horizon
        size = problem.cost_class.pointwise_bound(problem.basis.matrix)
        overspending, sizes = 0.0, 0.0
        if problem.constraints:
            slack = common_slack(problem) if self.slack is None else self.slack
            if not slack > 0:
                raise InvalidSolver(
                    "no policy was found that stays strictly within all the budgets",
                    "Give ExactPenalty(slack=...), or loosen the budgets",
                )
            overspending = 2 * size * horizon / slack
            sizes = sum(budget.size for budget in problem.constraints)
        total = size + overspending * sizes
        return Penalties(2 * total * horizon, total * horizon, overspending)


@dataclass(frozen=True)
class SinglePenalty(Penalty):
    """One multiplier for everything, as in the paper (there 1/accuracy).

    Below the exact penalties the loss does not bound the policy's gap, and for `Simplex` and
    known costs it may be unbounded below.
    """

    value: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.value) and self.value > 0):
            raise InvalidSolver(f"penalty = {self.value}", "Give a positive number")

    def of(self, problem: Apprenticeship) -> Penalties:
        return Penalties(self.value, self.value, self.value)


def common_slack(problem: Apprenticeship) -> float:
    """By how much `within_all_budgets` stays within every budget."""
    return float(-problem.overspending(within_all_budgets(problem)).max())


def within_all_budgets(problem: Apprenticeship) -> FloatArray:
    """A measure that stays well within every budget, by multiplicative weights over budgets.

    Each round plans against the budgets that are worst off. The best of the plans' occupancies and
    of their averages, which are occupancies too; not the best there is.
    """
    if problem.level is not Level.EXPLICIT:
        raise InvalidSolver(
            "in a world too large to enumerate no policy can be looked for that stays strictly "
            "within all the budgets",
            "Give ExactPenalty(slack=...): by how much some policy stays within them",
        )
    world, D = problem.world, problem.budget_matrix
    scale = problem.budget_units * world.effective_horizon
    weights = np.ones(len(problem.constraints))
    total, found, best, warm = np.zeros(world.num_pairs), np.zeros(0), -np.inf, None
    for count in range(1, SLACK_ROUNDS + 1):
        warm = plan(world, D @ (weights / scale), warm_start=warm)
        measure = occupancy(world, warm.policy).measure
        total += measure
        spare = -problem.overspending(total / count)
        for one in (total / count, measure):
            least = float(-problem.overspending(one).max())
            if least > best:
                found, best = one, least
        urgent = -spare / scale * np.sqrt(count) * 4
        weights = np.exp(urgent - urgent.max())
        weights /= weights.sum()
        if len(weights) == 1:
            break
    return found


@dataclass(frozen=True, eq=False)
class SamplingLaws:
    """Laws q1 over pairs and q2 over states, and the ratios they lead to:

        C_1 = max over pairs of |Phi_s|_2/q1(s),      C_2 = max over states of |D_y|_2/q2(y)

    A row that is zero need not be drawn. Laws proportional to the row norms are optimal: they make
    C_1 the sum of the norms, and no law has a smaller one.
    """

    pair_sampling: FloatArray
    state_sampling: FloatArray
    pair_ratio: float
    flow_ratio: float

    @classmethod
    def of(cls, reduced: Reduced, pairs: FloatArray, states: FloatArray) -> "SamplingLaws":
        """Laws proportional to given weights, checked to reach every row that matters."""
        laws = [_law(weights) for weights in (pairs, states)]
        ratios = [
            _ratio(row_norms(rows), law, name)
            for rows, law, name in (
                (reduced.pair_rows, laws[0], "pair"),
                (reduced.flow_rows, laws[1], "state"),
            )
        ]
        return cls(laws[0], laws[1], ratios[0], ratios[1])


class RowSampling(ABC):
    """A rule that sets the sampling laws of a reduced problem."""

    @abstractmethod
    def laws(self, reduced: Reduced) -> SamplingLaws:
        """q1 and q2."""


@dataclass(frozen=True)
class RowNorms(RowSampling):
    """Proportional to the 2-norms of the rows: optimal."""

    def laws(self, reduced: Reduced) -> SamplingLaws:
        pairs, states = row_norms(reduced.pair_rows), row_norms(reduced.flow_rows)
        return SamplingLaws.of(reduced, pairs, states)


@dataclass(frozen=True)
class FeatureMass(RowSampling):
    """Proportional to the features' mass, which a simulator can draw from:

    q1 ~ sum_j |phi_j|,   q2 ~ sum_j (B + discount P)' |phi_j|: pick a column by its mass, a pair by
    the column, then its state with probability 1/(1 + discount), else its successor.
    """

    def laws(self, reduced: Reduced) -> SamplingLaws:
        world = reduced.problem.world
        mass = np.asarray(abs(reduced.pair_rows).sum(axis=1)).ravel()
        states = world.pairs.total(mass) + world.discount * (world.transition.T @ mass)
        return SamplingLaws.of(reduced, mass, states)


@dataclass(frozen=True)
class UniformRows(RowSampling):
    """Every row equally likely."""

    def laws(self, reduced: Reduced) -> SamplingLaws:
        world = reduced.problem.world
        return SamplingLaws.of(reduced, np.ones(world.num_pairs), np.ones(world.num_states))


@dataclass(frozen=True, eq=False, init=False)
class GivenRows(RowSampling):
    """Laws of your own over pairs and states."""

    pair_sampling: ArrayLike
    state_sampling: ArrayLike

    def __init__(self, pair_sampling: ArrayLike, state_sampling: ArrayLike) -> None:
        assign(self, pair_sampling=pair_sampling, state_sampling=state_sampling)

    def laws(self, reduced: Reduced) -> SamplingLaws:
        world = reduced.problem.world
        pairs = probability_vector("pair_sampling", self.pair_sampling, world.num_pairs)
        states = probability_vector("state_sampling", self.state_sampling, world.num_states)
        return SamplingLaws.of(reduced, pairs, states)


def row_norms(matrix: Matrix) -> FloatArray:
    """The 2-norm of every row."""
    if sparse.issparse(matrix):
        return np.asarray(np.sqrt((matrix * matrix).sum(axis=1))).ravel()
    return np.asarray(np.linalg.norm(matrix, axis=1))


def _law(weights: FloatArray) -> FloatArray:
    """The law proportional to weights; uniform when every row is zero and none matters."""
    total = weights.sum()
    return read_only(weights / total if total > 0 else np.full(weights.size, 1 / weights.size))


def _ratio(norms: FloatArray, law: FloatArray, name: str) -> float:
    needed = norms > 0
    missed = needed & (law <= 0)
    if missed.any():
        raise InvalidSolver(
            f"the {name} sampling never draws {name} {first_index(missed)}, whose row is not zero",
            "Give every row that is not zero a positive probability",
        )
    return float((norms[needed] / law[needed]).max(initial=0.0))
