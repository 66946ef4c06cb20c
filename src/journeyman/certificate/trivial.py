"""The trivial bound of a certificate: that of its problem, or of what is known of the true world.

In an exact world it is `problem.trivial_bound`. In an estimated one the attainable ranges of the
model are widened by the model's error, on the event on which the bound itself rests: for any V no
policy over the offered actions totals in the true world less than

    least(initial, V) + h min over pairs (c + discount least(row, V) - B V)

where least(row, V) >= <row, V> - err/2 (max V - min V) is the least mean of V over the laws within
the distance. V is sought by policy iteration of a player who also chooses the law of every pair;
whatever it finds is a bound.

A certificate whose premises failed has the plain bound 2 N h: ranges of a world that is wrong prove
nothing. That the expert is a policy over the offered actions is one of the premises.
"""

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, read_only
from journeyman.certificate.l1_ball import L1Ball
from journeyman.certificate.model_error import ModelError
from journeyman.costs import CostBasis, KnownCost
from journeyman.policy.attainable import PRECISION, WORK_LIMIT, widest_ranges
from journeyman.policy.linear_systems import DiscountedSystem
from journeyman.problem import Program
from journeyman.problem.trivial import TrivialBound, with_ranges, without_plans
from journeyman.world import World

EPSILON = float(np.finfo(float).eps)
MOST_STEPS = 30
"""Of policy iteration; it seldom takes ten."""
SEARCH = 8
"""A step of it sorts the transitions: so many times the work of a plan in an exact world."""


def trivial_bound(problem: Program, error: ModelError | None, *, valid: bool) -> TrivialBound:
    """No policy has a larger gap, on the event on which the certificate holds."""
    known_cost = isinstance(problem.cost_class, KnownCost)
    plain = without_plans(problem, problem.exact_target, known_cost=known_cost)
    if not valid:
        return plain
    if error is None:
        return problem.trivial
    if problem.world.transition.nnz * problem.basis.num_costs * SEARCH > WORK_LIMIT:
        return plain
    ranges = WidenedRanges(problem.world, problem.basis, error)
    return with_ranges(problem, problem.exact_target, ranges, known_cost=known_cost)


class WidenedRanges:
    """No policy over the offered actions has an expectation outside of [lowest, highest] in any
    world whose laws are within the distances of the model's."""

    def __init__(self, world: World, basis: CostBasis, error: ModelError) -> None:
        self.world = world
        self.widest = widest_ranges(world, basis)
        self._matrix = basis.on(world)
        self._ball = L1Ball(world.transition, error.transition, world.support)
        initial = sparse.csr_array(world.initial[np.newaxis])
        self._starts = L1Ball(initial, np.array([error.initial]))
        self._found: dict[int, tuple[float, float, FloatArray, FloatArray]] = {}

    def of(self, cost: int) -> tuple[float, float]:
        return self._plans(cost)[:2]

    def potentials(self, cost: int) -> tuple[FloatArray, FloatArray]:
        return self._plans(cost)[2:]

    def _plans(self, k: int) -> tuple[float, float, FloatArray, FloatArray]:
        if k not in self._found:
            column = self._matrix[:, [k]]
            dense = column.toarray() if sparse.issparse(column) else column
            cost = np.asarray(dense).ravel().copy()
            low, low_values = self._least(cost)
            high, high_values = self._least(-cost)
            ends = max(low, self.widest[0][k]), min(-high, self.widest[1][k])
            proofs = read_only(low_values), read_only(high_values)
            self._found[k] = float(ends[0]), float(ends[1]), *proofs
        return self._found[k]

    def _least(self, cost: FloatArray) -> tuple[float, FloatArray]:
        """What no policy totals less than under any of the laws, and the V that proves it."""
        world, h = self.world, self.world.effective_horizon
        allowed = PRECISION * float(cost.max() - cost.min())
        values = np.full(world.num_states, h * float(cost.max() + cost.min()) / 2)
        best, proof = -np.inf, values
        for _ in range(MOST_STEPS):
            backup = cost + world.discount * self._ball.lowest(values)
            ahead = world.pairs.smallest(backup)
            change = ahead - values
            total = float(self._starts.lowest(values)[0]) + h * float(change.min())
            total -= self._rounding(cost, values)
            if total > best:
                best, proof = total, values
            if change.max() - change.min() <= allowed:
                break
            choice = self._greedy(backup, ahead)
            support = None if world.support is None else world.support[choice]
            ball = L1Ball(world.transition[choice], self._ball.error[choice], support)
            system = DiscountedSystem(ball.worst_rows(-values), world.discount)
            values = system.solve(cost[choice], guess=ahead).x
        return best, proof

    def _greedy(self, backup: FloatArray, best: FloatArray) -> FloatArray:
        """The first pair of every state that attains the best."""
        world = self.world
        first = np.where(backup == world.pairs.spread(best), np.arange(world.num_pairs), np.inf)
        return np.asarray(world.pairs.smallest(first).astype(np.int64))

    def _rounding(self, cost: FloatArray, values: FloatArray) -> float:
        """What float64 can have hidden beyond what the least means allow for themselves."""
        size = float(np.abs(cost).max() + 2 * np.abs(values).max())
        steps = 8 * size * self.world.effective_horizon
        return EPSILON * (steps + (self.world.num_states + 4) * float(np.abs(values).max()))
