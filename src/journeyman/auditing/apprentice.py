"""The apprentice's side once more: what the policy visits, costs and spends.

The occupancy measure mu is solved for anew. Its residual r = initial - (B - discount P)' mu bounds
the auditor's own error by N h |r|_1, and what is left of rounding by `rounding`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.auditing.chain import Chain, column
from journeyman.auditing.inputs import Budget, Points, Question, World
from journeyman.auditing.ledger import Figure
from journeyman.auditing.reading import Refused
from journeyman.auditing.tables import Floats

EPSILON = 2.0**-52
MEASURE = "the measure"
SAME_POLICY = 1e-11
ROUNDING = "2 eps (pairs + branches + 8) (1 + |u|_1) N h"


@dataclass(frozen=True, eq=False)
class WorstEnds:
    """The greatest expectations lie between `top` and `above`, the least between `below` and
    `bottom` (those of a ball only)."""

    top: Floats
    above: Floats
    bottom: Floats | None
    below: Floats | None
    source: str


@dataclass(frozen=True, eq=False)
class Way:
    """Expectations of the apprentice by one kind of evaluation, and the figures of their error."""

    kind: str
    expectations: Floats
    figures: tuple[Figure, ...]
    uncertain: Floats | None = None
    """By how much more a certificate may state as expectations; to both sides of a ball."""
    floor: float = 0.0
    """What the expectations were computed from, where that is larger than any gap."""
    worst: WorstEnds | None = None
    """Under all laws within the error of the model, where that is counted cost by cost."""


@dataclass(frozen=True, eq=False)
class Apprentice:
    """A policy in its world."""

    world: World
    question: Question
    policy: Floats

    @cached_property
    def visits(self) -> Floats:
        return Chain(self.world, self.policy).visits()

    @cached_property
    def expectations(self) -> Floats:
        return self.expected(self.visits)

    @cached_property
    def own_error(self) -> float:
        """By how much the auditor's gap can be off."""
        residual = np.abs(self.world.initial - self.world.outflow(self.visits)).sum()
        size = self.question.costs.plain * self.world.horizon
        return float(residual) * size + self.rounding(self.visits).low

    def expected(self, measure: Floats) -> Floats:
        matrix = self.question.matrix
        return np.array([column(matrix, i) @ measure for i in range(matrix.shape[1])])

    def gap(self, values: Floats) -> float:
        """To the given expectations of an expert."""
        return self.question.costs.gap(self.expectations - values)

    def rounding(self, measure: Floats) -> Figure:
        return self._rounding(measure, self.question.costs.plain, ROUNDING)

    def rounding_of_mass(self, mass: float, summands: int) -> Figure:
        """Of a measure of the given mass, each entry of which has so many more summands."""
        return self._rounded(mass, summands, self.question.costs.plain, ROUNDING)

    def _rounding(self, measure: Floats, size: float, formula: str) -> Figure:
        return self._rounded(math.fsum(np.abs(measure)), 0, size, formula)

    def _rounded(self, mass: float, summands: int, size: float, formula: str) -> Figure:
        terms = self.world.num_pairs + self.world.branches + summands + 8
        value = 2 * EPSILON * terms * (1 + mass) * size * self.world.horizon
        return Figure.exactly("rounding", formula, value, "double precision")

    def ways(self, points: Points) -> dict[str, Way]:
        """Every kind of evaluation that the inputs allow."""
        formula = "N h |initial - (B - discount P)' mu|_1"
        guard = Figure.at_least("evaluation", formula, 0.0, "residual")
        found = [Way("D", self.expectations, (guard, self.rounding(self.visits)))]
        if points.measure is not None:
            self.require_defined(points.measure)
            found += self._by_measure(points.measure, points.measure_scale)
        return {way.kind: way for way in found}

    def _by_measure(self, u: Floats, scale: float) -> list[Way]:
        costs, h = self.question.costs, self.world.horizon
        size, positive = costs.plain * h, np.maximum(u, 0.0)
        missing = self.world.initial - self.world.outflow(u)
        lemma = size * (2 * math.fsum(positive - u) + math.fsum(np.abs(missing)))
        first = Figure.exactly("Lemma 2", "N h (2 V1 + V2)", lemma, MEASURE)
        r = self.world.initial - self.world.outflow(positive)
        about = costs.about_centre * h * math.fsum(np.abs(r))
        centred = Figure.exactly("flow residual", "N(Psi - 1 c') h |r|_1", about, MEASURE)
        moved = self.expected(positive) + costs.centre * (h * math.fsum(r))
        return [
            Way("A", self.expected(u), (first, self.rounding(u))),
            self._positive_part("B", positive, "N h |r|_1"),
            self._positive_part("B'", scale * positive, "N h |initial - a (B - discount P)' u+|_1"),
            Way("C", moved, (centred, self.rounding(positive))),
        ]

    def _positive_part(self, kind: str, positive: Floats, formula: str) -> Way:
        r = self.world.initial - self.world.outflow(positive)
        error = self.question.costs.plain * self.world.horizon * math.fsum(np.abs(r))
        left = Figure.exactly("flow residual", formula, error, MEASURE)
        return Way(kind, self.expected(positive), (left, self.rounding(positive)))

    def require_defined(self, u: Floats) -> None:
        """Whether the measure says what the policy does, state by state."""
        world, positive = self.world, np.maximum(u, 0.0)
        peak = np.maximum.reduceat(positive, world.first[:-1])[world.state_of]
        share = np.where(peak > 0, positive, 1.0) / np.where(peak > 0, peak, 1.0)
        law = share / np.add.reduceat(share, world.first[:-1])[world.state_of]
        if (np.abs(law - self.policy) > SAME_POLICY).any():
            raise Refused("the measure defines another policy")

    def spending(self, budget: Budget) -> tuple[Figure, ...]:
        """What the policy spends of a budget, and what that may be off by: by nothing where it
        never chooses a pair that costs anything."""
        if budget.cost.min() >= 0 and not self.policy[budget.cost > 0].any():
            why = "the policy avoids every pair with d > 0"
            return (Figure.exactly("spent", "<mu, d>", 0.0, why),)
        spent = Figure.exactly("spent", "<mu, d>", float(budget.cost @ self.visits), "evaluation")
        guard = Figure.at_least("evaluation", "h (max d |r+|_1 - min d |r-|_1)", 0.0, "residual")
        size = float(np.abs(budget.given).max())
        formula = "2 eps (pairs + branches + 8) (1 + |mu|_1) max|d| h"
        return spent, guard, self._rounding(self.visits, size, formula)
