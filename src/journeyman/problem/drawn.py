"""The reduced problem where rows can only be drawn: features by callables in a stepped world.

    L(theta) = gap_W(G theta - target) + lambda_1 V1 + lambda_2 V2
               + lambda_3 sum_j [C_j theta - limit_j]+

G = Psi' Phi and C are exact where features and costs allow it, entry by entry, otherwise means over
drawn pairs; V1 and V2 are means over drawn rows. Every block of rows is a function of the features
and of its number in a stream of the seed, whoever draws it and when: descents consume blocks one
after the other, the sampled program keeps one, and an executor may draw many at once without
changing a bit.

Coefficients are fitted to the pairs behind `matching`, errors included, so a loss is estimated with
a G from other pairs. Its error at theta is seen from blocks that are independent of each other:
with s_i the standard error of (G theta)_i, the error of gap_W has root mean square at most

    sum_i scale_i s_i  (infinity ball),      sqrt(sum_i (scale_i s_i)^2)  (the other classes),

because |gap_W(z + e) - gap_W(z)| <= max_w |<w, e>|.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign
from journeyman.costs import CostFunctions
from journeyman.errors import InvalidSolver
from journeyman.features.base import DrawnFeatures, Features
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.problem.reduced import DrawnRows, Reduced, RowSampling, SamplingLaws
from journeyman.world.levels import Level, require_level

LEARNING, FRESH, MATCHING, REPLICA = 1, 2, 3, 4
"""Streams of a seed: rows to learn from, rows to estimate the loss on, pairs for Psi' Phi, and rows
that replicas learn from."""
MATCHING_BLOCKS, MATCHING_BLOCK = 32, 1 << 14
"""Pairs behind G where it is not exact."""
FRESH_BLOCKS = 16
"""As many blocks of other pairs judge the coefficients."""


def block_stream(seed: int, *block: int) -> np.random.Generator:
    """The generator of one block, named by its stream and number, independent of all others."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=block))


def draw_rows(features: DrawnFeatures, count: int, rng: np.random.Generator) -> DrawnRows:
    """`count` rows of Phi and as many of D."""
    pair_rows = features.rows(*features.draw(rng, count))
    states = features.draw_flow(rng, count)
    flow = features.flow(states)
    initial = np.asarray(features.world.initial_probability(states), dtype=float)
    law = features.pair_law(pair_rows)
    return DrawnRows(pair_rows, np.zeros(count), law, flow.rows, initial, flow.law)


@dataclass(frozen=True, eq=False, init=False)
class DrawnReduced(Reduced):
    """Matching and budgets of the reduced problem; its rows can be drawn, not listed.

    Args:
        problem: in a world with successors and predecessors.
        features: `DrawnFeatures` for that world.
        seed: decides the pairs behind G and the rows of every block.
    """

    features: DrawnFeatures  # type: ignore[assignment]
    seed: int

    def __init__(self, problem: Apprenticeship, features: DrawnFeatures, seed: int) -> None:
        require_level(problem, Level.STEPPED, "a problem over drawn rows")
        ours, theirs = (
            (world.num_states, world.num_actions, world.discount)
            for world in (problem.world, features.world)
        )
        if ours != theirs:
            raise InvalidSolver(
                f"the features are for {theirs[0]} states, the world has {ours[0]} (or other "
                "actions, or another discount)",
                "Make the features for this world",
            )
        assign(self, problem=problem, features=features, seed=seed)

    def laws(self, rule: RowSampling) -> SamplingLaws:
        """The features' own laws, whatever the rule; their ratios do not grow with the world."""
        nowhere = np.zeros(0)
        return SamplingLaws(nowhere, nowhere, self.features.pair_ratio, self.features.flow_ratio)

    @property
    def mixture_radius(self) -> float:
        """Columns have mass 1/(1 - discount), so the ball of radius 1 holds all their mixtures."""
        return 1.0

    @property
    def heavy_radius(self) -> float:
        return 1.0

    @property
    def pair_rows(self) -> Matrix:
        self._not_listed()

    @property
    def floor(self) -> FloatArray:
        self._not_listed()

    @property
    def flow_rows(self) -> Matrix:
        self._not_listed()

    @property
    def flow_target(self) -> FloatArray:
        self._not_listed()

    def _not_listed(self) -> NoReturn:
        raise InvalidSolver(
            f"the rows of {self.features!r} can be drawn, not listed",
            "Use SampledProgram or StochasticSubgradient, and an estimate of the loss",
        )

    @property
    def penalised_at_zero(self) -> tuple[float, float]:
        return 0.0, 1.0

    def drawn(self, count: int, *block: int) -> DrawnRows:
        """A block of rows, by its stream and number."""
        return draw_rows(self.features, count, block_stream(self.seed, *block))

    def averaged(self, count: int, *block: int) -> DrawnRows:
        """A block whose flow is asked for on average: one row F_k'D and one target F_k'nu for each
        column's shares F_k of states, estimated from `count` rows; each weighs 1/count times its
        "probability", so that it counts once."""
        rng, features = block_stream(self.seed, *block), self.features
        pair_rows = features.rows(*features.draw(rng, count))
        states = features.draw_flow(rng, count)
        flow, initial = features.flow(states), features.world.initial_probability(states)
        weighed = features.shares(states).T @ sparse.diags_array(1 / (count * flow.law))
        rows = sparse.csr_array(weighed @ flow.rows)
        target = np.asarray(weighed @ np.asarray(initial, dtype=float))
        law, once = features.pair_law(pair_rows), np.full(target.size, 1 / count)
        return DrawnRows(pair_rows, np.zeros(count), law, rows, target, once)

    @property
    def matching(self) -> FloatArray:
        """G: one row per cost."""
        return self._learnt[: self.problem.num_costs]

    @property
    def matching_target(self) -> FloatArray:
        return self.problem.target

    @property
    def budget_rows(self) -> FloatArray:
        """C: one row per budget."""
        return self._learnt[self.problem.num_costs :]

    @property
    def budget_limits(self) -> FloatArray:
        return self.problem.limits

    def expected(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """G theta and C theta, from pairs that `matching` has not seen."""
        found = (self.fresh @ coefficients).mean(axis=0)
        count = self.problem.num_costs
        return found[:count], found[count:]

    def deviation(self, coefficients: FloatArray, budget_penalty: float) -> float:
        """The root mean square of the error of what `expected` adds to a loss, at most."""
        blocks = self.fresh @ coefficients
        if blocks.shape[0] < 2:
            return 0.0
        errors = blocks.std(axis=0, ddof=1) / np.sqrt(blocks.shape[0])
        count = self.problem.num_costs
        matching = self.problem.cost_class.deviation(errors[:count])
        return matching + budget_penalty * float(errors[count:].sum())

    @cached_property
    def known(self) -> FloatArray:
        """What is exact of G, then of C, NaN elsewhere."""
        return np.vstack([self.features.exact_matching(costs) for costs in self._functions])

    @cached_property
    def _learnt(self) -> FloatArray:
        """G, then C."""
        missing = np.isnan(self.known)
        if not missing.any():
            return self.known
        total = sum(self._sampled(block) for block in range(MATCHING_BLOCKS))
        return np.where(missing, total / MATCHING_BLOCKS, self.known)

    @cached_property
    def fresh(self) -> FloatArray:
        """G, then C, from pairs that `matching` has not seen: (blocks x rows x features)."""
        missing = np.isnan(self.known)
        if not missing.any():
            return self.known[np.newaxis]
        blocks = range(MATCHING_BLOCKS, MATCHING_BLOCKS + FRESH_BLOCKS)
        return np.where(missing, [self._sampled(block) for block in blocks], self.known)

    @property
    def _functions(self) -> list[CostFunctions]:
        budgets = [budget.function for budget in self.problem.constraints]
        return [self.problem.cost_functions, *(one for one in budgets if one is not None)]

    def _sampled(self, block: int) -> FloatArray:
        """mean of psi(s) Phi_s / q1(s) over pairs s ~ q1."""
        features = self.features
        states, actions = features.draw(block_stream(self.seed, MATCHING, block), MATCHING_BLOCK)
        rows, parts = features.rows(states, actions), []
        for costs in self._functions:
            parts.append(costs.at(states, actions))
            features.require_tables(costs, states, parts[-1])
        weighed = np.hstack(parts) / features.pair_law(rows)[:, np.newaxis]
        return np.asarray((rows.T @ weighed).T / MATCHING_BLOCK)


def reduced_of(problem: Apprenticeship, features: Features | DrawnFeatures, seed: int) -> Reduced:
    """The reduced problem: all rows of features that hold a matrix, drawn rows of the others."""
    if isinstance(features, Features):
        return Reduced(problem, features)
    if problem.level is Level.EXPLICIT:
        raise InvalidSolver(
            f"{features!r} are features of a large world",
            "Give the costs of the problem as jm.CostFunctions(...), or "
            "jm.features.Features(matrix)",
        )
    return DrawnReduced(problem, features, seed)
