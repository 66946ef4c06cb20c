"""Imitation by trust regions (IM-TRPO): natural policy gradients against the worst cost.

    minimise over theta   delta(theta) = max { <w, Psi' mu_theta - target> : w in W }

One iteration: the policy's expectations (one occupancy), the cost that is worst for them, its
advantages (one value function), and a step along the natural gradient that stays within `radius`
in mean Kullback-Leibler divergence and lowers the surrogate (`trust_region_step`).

*Where.* Exact visits are linear solves and the surrogate is the objective itself; with `rollouts`
visits are drawn, and the surrogate is the paper's: the worst case over W of the expectations that
the walks have when they are weighted by ratios of probabilities. Policies are tabular, or
log-linear in `features`.

*What differs from the paper.* The worst cost is smoothed, with a temperature that falls as soon as
the policy is nearly optimal for the smoothed cost; the paper takes the worst cost itself, and its
descent gets caught where that jumps. In the exact mode successive directions are conjugate, the
best policy is kept, and both bounds are computed.

*Guarantee.* The paper promises a local minimum of delta. In the tabular family with exact visits
more holds: delta is convex in the occupancy measure, a stationary point of the smoothed gap is its
global minimum, and smoothing costs at most half of `accuracy`. CONVERGED means that the difference
of the best gap and a proven lower bound is at most `accuracy` of 2N/(1 - discount); now and then an
optimal policy of the worst cost is planned for that bound and counted as a forward solve. With
features CONVERGED means that, or that nothing moves any more, as in a local minimum. With rollouts
nothing is proven and all iterations are made.

*Cost.* Two sparse solves per iteration, and one more for every step that was too long; with
rollouts the walks, times the number of costs.

Reference: Ho, Gupta, Ermon, "Model-free imitation learning with policy optimization", ICML 2016.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.solvers.classics.policy_family import Step, TrustRegion
from journeyman.solvers.classics.worst_case_descent import (
    Search,
    WorstCaseDescent,
    WorstCaseMethod,
)
from journeyman.solvers.hyperparameters import require_positive
from journeyman.solvers.watch import Advance
from journeyman.world import Pairs

COOLING = 0.7
"""The temperature falls to this share of itself when greedy actions promise less than smoothing
costs, or"""
SMALL_GAIN = 0.03
"""in log-linear families when an iteration gains less than this share of that."""
SAMPLED_COOLING = 0.97
"""In every iteration, where gains are hidden in noise."""
NO_GAIN, STALLED = 1e-4, 10
"""So many iterations at the lowest temperature that gain less than this share of the accuracy end
a run in a log-linear family: nothing moves any more."""


@dataclass(frozen=True, eq=False)
class ImitationTrustRegion(WorstCaseMethod):
    """IM-TRPO of Ho, Gupta and Ermon (2016).

    Args:
        features: of log-linear policies; None searches all policies.
        rollouts: walks drawn per iteration; None computes visits exactly.
        horizon: longest walk; by default 1 % of the discounted time is left out.
        radius: largest mean divergence of a step.
        accuracy: asked-for distance to the least gap, relative to 2N/(1 - discount).
        max_iterations: steps before the run ends.
        time_limit: seconds.
        seed: of the walks.
    """

    engine: ClassVar[str] = "IM-TRPO"

    radius: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("radius", self.radius)

    def search(self, descent: WorstCaseDescent) -> Search:
        """Steps within the trust region from where `descent` is."""
        return _Search(descent, self.radius)


class _Search:
    """The iterations."""

    def __init__(self, descent: WorstCaseDescent, radius: float) -> None:
        self.descent = descent
        self.region = TrustRegion(descent.family, radius, is_smooth=descent.is_exact)
        self.idle = 0

    def conclude(self) -> None:
        """Judge the policy that the last step led to."""
        self.descent.judge()

    def advance(self) -> Advance:
        descent = self.descent
        objective = descent.judge()
        value, weights = descent.smoothed(descent.visits.difference)
        signal = descent.visits.signal(descent.problem.cost_of(weights))
        step = self._step(value, signal)
        descent.bound_by(weights)
        done = descent.is_proven or self._stalls(value - step.value)
        left = _improvable(descent.problem.world.pairs, descent.law, signal)
        descent.move(step.theta, step.law)
        self._cool(value - step.value, left)
        return Advance(objective, descent.bound if descent.is_exact else None, done)

    def _step(self, value: float, signal: FloatArray) -> Step:
        descent, visits = self.descent, self.descent.visits

        def surrogate(law: FloatArray) -> float:
            moved = visits.difference + visits.change(descent.problem.cost_matrix, law)
            return descent.smoothed(moved)[0]

        return self.region.step(
            descent.theta, descent.law, visits.measure, value, signal, surrogate
        )

    def _cool(self, gain: float, left: float) -> None:
        descent = self.descent
        if not descent.is_exact:
            descent.heat(SAMPLED_COOLING * descent.temperature)
        elif (
            left <= descent.smoothing_error
            if descent.family.is_tabular
            else gain <= SMALL_GAIN * descent.smoothing_error
        ):
            descent.heat(COOLING * descent.temperature)

    def _stalls(self, gain: float) -> bool:
        descent = self.descent
        if descent.family.is_tabular or not descent.is_exact:
            return False
        coolest = descent.temperature <= descent.coolest
        self.idle = self.idle + 1 if coolest and gain <= NO_GAIN * descent.allowed else 0
        return self.idle >= STALLED


def _improvable(pairs: Pairs, law: FloatArray, signal: FloatArray) -> float:
    """What a greedy policy would gain in the states that are visited now: E_x max_a (-A)."""
    advantages = np.divide(signal, law, out=np.zeros_like(law), where=law > 0)
    return -float(pairs.smallest(advantages).sum())
