"""Lower bounds once more, from the dual points that were saved.

For weights w of the class, prices xi >= 0 and any values V, every policy that keeps the budgets has

    gap >= <initial, V> + min over pairs (Psi w + D xi + discount P V - B V)/(1 - discount)
           - <w, target> - <xi, b>

That is the bound on the data, in the world as given. In an estimated world the others replace
<initial, V> and P V by the least means of V within the distances of the model's laws; they hold in
the true world.

A certificate subtracts what rounding can have hidden, so a stored figure lies a little below. A
point with figures so large that rounding matters proves less here too: otherwise a forger could
hide a false bound behind it.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import sparse

from journeyman.auditing.apprentice import EPSILON
from journeyman.auditing.expert import Estimate
from journeyman.auditing.inputs import Points, Question, World
from journeyman.auditing.knowledge import Distances
from journeyman.auditing.ledger import AGREEMENT, least_total
from journeyman.auditing.tables import Floats
from journeyman.auditing.worst_laws import Ball

Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Bounds:
    """Where the figures of a certificate lie when its dual points prove the best they can."""

    on_data: Range
    without_budgets: Range
    true: Range
    expert_radius: Range


@dataclass(frozen=True, eq=False)
class Proof:
    """What one dual point proves, and what rounding can do to it."""

    weights: Floats
    value: float
    rounding: float
    searching: float = 0.0
    """What rounding can do besides where least means were sought."""

    def range(self, floor: float, moved: float = 0.0) -> Range:
        """Between what is left when rounding is subtracted twice, and not at all."""
        matters = self.rounding > AGREEMENT * floor
        high = self.value - (self.rounding / 2 if matters else 0.0)
        return self.value - 2 * (self.rounding + self.searching) + moved, high + moved


def bounds(
    world: World,
    question: Question,
    points: Points,
    estimates: list[Estimate],
    floor: float,
    distances: Distances | None,
) -> Bounds:
    """Everything that the points prove."""
    least = Least(world, distances)
    nothing = np.zeros(len(question.budgets))
    dual = list(zip(points.weights, points.prices, points.values, strict=True))
    proofs = [_proof(least, question, w, np.maximum(xi, 0.0), V) for w, xi, V in dual]
    given = Least(world, None)
    in_model = [_proof(given, question, w, np.maximum(xi, 0.0), V) for w, xi, V in dual]
    unpriced = [_proof(least, question, w, nothing, V) for w, _, V in dual]
    moved = [_moved(question, proof, one, floor) for proof in proofs for one in estimates]
    declared = question.expectation.get("kind") in ("declared", "known cost")
    declared_error = float("inf") if declared else 0.0
    attempts = [
        (
            _best([proof.range(floor, _gain(question, proof, one)) for proof in unpriced]),
            least_total(one.figures) + declared_error,
        )
        for one in estimates
    ]
    most = max(free[1] - error for free, error in attempts)
    likely = [one for one in attempts if one[0][1] - one[1] >= most - AGREEMENT * floor or declared]
    return Bounds(
        on_data=_best([proof.range(floor) for proof in in_model]),
        without_budgets=(min(free[0] for free, _ in likely), max(free[1] for free, _ in likely)),
        true=_best(moved),
        expert_radius=(min(error for _, error in likely), max(error for _, error in likely)),
    )


def _best(ranges: list[Range]) -> Range:
    return max(low for low, _ in ranges), max(high for _, high in ranges)


def _moved(question: Question, proof: Proof, estimate: Estimate, floor: float) -> Range:
    """A bound that is moved from the target to an estimate of the expert, less the error of the
    estimate. A proof by the cost zero does not speak of the expert, and stays as it is."""
    if not proof.weights.any():
        return proof.range(floor)
    return proof.range(floor, _gain(question, proof, estimate) - least_total(estimate.figures))


def _gain(question: Question, proof: Proof, estimate: Estimate) -> float:
    """By how much a bound grows when the estimate takes the place of the target."""
    return float(proof.weights @ (question.target - estimate.values))


@dataclass(frozen=True, eq=False)
class Least:
    """Least means of values: those of the laws, or of all laws within the distances."""

    world: World
    distances: Distances | None

    def starts(self, values: Floats) -> float:
        if self.distances is None:
            return float(self.world.initial @ values)
        law = sparse.csr_array(self.world.initial[np.newaxis])
        return -float(Ball(law, np.array([self.distances.initial])).greatest(-values)[0])

    def steps(self, values: Floats) -> Floats:
        if self.distances is None:
            return np.asarray(self.world.rows @ values)
        support = self.world.knowledge.support
        return -Ball(self.world.rows, self.distances.transition, support).greatest(-values)

    def rounding(self, size: float) -> float:
        """Of the search, for values of the given size."""
        if self.distances is None:
            return 0.0
        world = self.world
        steps = (6 * world.branches + 24) * world.horizon + 4 * world.num_states + 12
        return 2 * EPSILON * steps * size


def _proof(
    least: Least, question: Question, proposed: Floats, prices: Floats, values: Floats
) -> Proof:
    world = least.world
    weights, h = question.costs.member(proposed), world.horizon
    cost = np.asarray(question.matrix @ weights)
    paid = 0.0
    constants = float(np.abs(weights) @ np.abs(question.target))
    sizes = float(np.abs(weights) @ question.costs.norms)
    for price, budget in zip(prices.tolist(), question.budgets, strict=True):
        cost = cost + price * budget.cost
        paid += price * budget.limit
        constants += price * abs(budget.limit)
        sizes += price * float(np.abs(budget.given).max())
    slack = cost + world.discount * least.steps(values) - values[world.state_of]
    target = float(weights @ question.target)
    value = least.starts(values) + float(slack.min()) * h - target - paid
    largest, size = float(np.abs(cost).max()), float(np.abs(values).max())
    steps = (world.branches + 4) * (largest + 2 * size) * h + (world.num_states + 2) * size
    terms = weights.size + prices.size + 2
    rounding = EPSILON * (steps + terms * (constants + sizes * h))
    return Proof(weights, value, rounding, least.rounding(size))
