"""Imitation by policy gradients (IM-REINFORCE): descent along the gradient for the worst cost.

    minimise over theta   delta(theta) = max { <w, Psi' mu_theta - target> : w in W }
    gradient              sum over pairs of mu(x, a) A_w(x, a) grad log pi_theta(a | x)

where w is the worst cost of the policy at hand and A_w its advantages under that cost.

*Where.* Visits and advantages are linear solves, or with `rollouts` come from walks: discounted
costs to go, less a baseline. Policies are tabular, or log-linear in `features`.

*What differs from the paper.* Steps are those of Adam, a running mean of gradients over the root of
a running mean of their squares, of length step_size/sqrt(1 + k/20) in iteration k: gradients of
states differ by magnitudes with how often they are visited, and no single step suits all. The worst
cost is smoothed with a temperature that falls by a fixed share per iteration. The
best policy is kept; with rollouts it is chosen by a moving average of sampled expectations.

*Guarantee.* The paper promises convergence to a local minimum. In the tabular family with exact
visits CONVERGED means that the best gap is within `accuracy` (of 2N/(1 - discount)) of a proven
lower bound. The bound that a policy's own values give is weak while the policy still changes much
in some states, so now and then an optimal policy of the worst cost is planned; these are counted as
forward solves. With features it means the same, and is reached only where the family has such a
policy; with rollouts nothing is proven and all iterations are made.

*Cost.* Two sparse solves per iteration; with rollouts the walks.

Reference: Ho, Gupta, Ermon, "Model-free imitation learning with policy optimization", ICML 2016;
Kingma, Ba, "Adam: a method for stochastic optimization", 2015.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.solvers.classics.worst_case_descent import (
    Search,
    WorstCaseDescent,
    WorstCaseMethod,
)
from journeyman.solvers.hyperparameters import require_positive
from journeyman.solvers.watch import Advance

FIRST_MOMENT, SECOND_MOMENT = 0.9, 0.9
"""Memory of the means of gradients and of their squares. The second is short: softmax gradients
vanish with the probability of an action, and steps must not remember the time before."""
NEGLIGIBLE = 1e-10
"""Gradients below this share of the largest one ever seen count as zero."""
SLOWING = 20
"""Iterations over which steps become shorter by a factor of 1.4 for the first time."""
COOLING = 0.97
"""The temperature's share of itself in the iteration before."""


@dataclass(frozen=True, eq=False)
class ImitationReinforce(WorstCaseMethod):
    """IM-REINFORCE of Ho, Gupta and Ermon (2016).

    Args:
        features: of log-linear policies; None searches all policies.
        rollouts: walks drawn per iteration; None computes gradients exactly.
        horizon: longest walk; by default 1 % of the discounted time is left out.
        step_size: length of the first steps, in units of logits.
        accuracy: asked-for distance to the least gap, relative to 2N/(1 - discount).
        max_iterations: steps before the run ends.
        time_limit: seconds.
        seed: of the walks.
    """

    engine: ClassVar[str] = "IM-REINFORCE"

    step_size: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("step_size", self.step_size)

    def search(self, descent: WorstCaseDescent) -> Search:
        """Steps of Adam from where `descent` is."""
        return _Search(descent, self.step_size)


class _Search:
    """The iterations, with Adam's running means."""

    def __init__(self, descent: WorstCaseDescent, step_size: float) -> None:
        self.descent, self.step_size = descent, step_size
        self.iteration, self.largest = 0, 0.0
        self.first = np.zeros_like(descent.theta)
        self.second = np.zeros_like(descent.theta)

    def conclude(self) -> None:
        """The last policy was judged when it was moved to."""

    def advance(self) -> Advance:
        descent = self.descent
        if self.iteration:
            theta = descent.family.restrained(descent.theta - self._next())
            descent.move(theta, descent.family.law(theta))
            descent.heat(COOLING * descent.temperature)
        self.iteration += 1
        objective = descent.judge()
        _, weights = descent.smoothed(descent.visits.difference)
        signal = descent.visits.signal(descent.problem.cost_of(weights))
        self._remember(descent.family.gradient(descent.law, signal))
        descent.bound_by(weights)
        return Advance(objective, descent.bound if descent.is_exact else None, descent.is_proven)

    def _remember(self, gradient: FloatArray) -> None:
        self.largest = max(self.largest, float(np.abs(gradient).max()))
        self.first = FIRST_MOMENT * self.first + (1 - FIRST_MOMENT) * gradient
        self.second = SECOND_MOMENT * self.second + (1 - SECOND_MOMENT) * gradient**2

    def _next(self) -> FloatArray:
        """The step of Adam."""
        count = self.iteration
        mean = self.first / (1 - FIRST_MOMENT**count)
        size = np.sqrt(self.second / (1 - SECOND_MOMENT**count)) + NEGLIGIBLE * self.largest
        length = self.step_size / np.sqrt(1 + count / SLOWING)
        return np.asarray(length * np.divide(mean, size, out=np.zeros_like(mean), where=size > 0))
