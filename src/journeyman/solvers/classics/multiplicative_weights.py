"""MWAL: multiplicative weights play the costs against a planner, and every plan is kept.

    p_1 = uniform over the k costs
    m_t = expectations of a plan for the cost sum_i p_t,i scale_i psi_i
    p_{t+1, i}  ~  p_t,i exp(eta z_t,i/R),      z_t,i = scale_i (m_t,i - e_i)

where e are the expert's expectations and R is the width of an interval that has all z_t,i:

    from  min_i scale_i (min psi_i/(1 - discount) - e_i)
    to    max_i scale_i (max psi_i/(1 - discount) - e_i).

The answer is the mixture that draws each of the T plans with probability 1/T: the theorem
is about this mixture, not about the last plan or the one nearest to the expert.

Guarantee. With eta = sqrt(8 ln k/T), and plans optimal to within a/10, the mixture's gap for
`Simplex` is within a of the least one after

    T = ceil(R^2 ln k/(2 (0.9 a)^2))     iterations, at least one.

Proof. By Hoeffding's lemma the weights lose little to the best fixed cost:

    max_i (1/T) sum_t z_t,i  <=  (1/T) sum_t <p_t, z_t> + R (ln k/(eta T) + eta/8),

and the last term is R sqrt(ln k/(2 T)) <= 0.9 a. On the left stands the mixture's gap; and
<p_t, z_t> is within a/10 of the least value that any policy has under the weights p_t, which is a
lower bound on the least gap.

Syed and Schapire have features in [-1, 1], hence R <= 4/(1 - discount) for any expert, and
T = O(ln k/(a (1 - discount))^2); their step, exp(eta) = 1 + sqrt(2 ln k/T), comes with the regret
R (sqrt(2 ln k/T) + ln k/T) of Freund and Schapire 1997, more than twice the above, so that at
least four times as many iterations are needed. Here R is the range that the costs really have.

Every iteration also proves a lower bound by weak duality. CONVERGED means that it is within a of
the mixture's gap: by the proof after T iterations at the latest, where the loop ends in any case
(STEP_LIMIT if a is so small that float64 cannot plan to within a/10). With `stop_early` it ends as
soon as that is so; the log says when.

Cost. Per iteration one plan that starts from the last one's values, and one linear solve unless the
policy was seen before. The number of iterations grows with 1/a^2, and in practice so it does.

Reference: Syed, Schapire, "A game-theoretic approach to apprenticeship learning", 2007.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs import Simplex
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import answer_of, require_suitable
from journeyman.solvers.classics.generated_policies import (
    GeneratedPolicies,
    in_class,
    squared_count,
)
from journeyman.solvers.running import (
    Advance,
    Watch,
    iterate,
    require_count,
    require_kind,
    require_positive,
    require_time_limit,
)

PLANNING_SHARE = 0.1
"""Of the accuracy that planning may use up."""


@dataclass(frozen=True)
class MultiplicativeWeights:
    """Be at least as good as the expert in every cost, or better, by MWAL.

    `answer.mixture` is the mixture that the theorem is about, `answer.policy` the stationary policy
    with the same occupancy.

    Args:
        accuracy: asked-for difference of the mixture's gap for `Simplex` and the least one,
            relative to 2N/(1 - discount) of that class. It decides the number
            of iterations (`iterations_needed`).
        stop_early: end when the bounds prove the accuracy before the theorem does.
        time_limit: seconds.
        max_iterations: generated policies before the solve stops, whatever the theorem asks for.
    """

    accuracy: float = 0.01
    stop_early: bool = True
    time_limit: float | None = None
    max_iterations: int = 1_000_000

    def __post_init__(self) -> None:
        require_positive("accuracy", self.accuracy, below=1.0)
        require_kind("stop_early", self.stop_early, bool, "Give True or False")
        require_time_limit(self.time_limit)
        require_count("max_iterations", self.max_iterations)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, "MultiplicativeWeights")
        needed = self.iterations_needed(problem)
        own = in_class(problem, Simplex)
        game = _Game(own, self.accuracy, needed, self.stop_early)
        status, iterations = iterate(game.advance, watch, min(self.max_iterations, needed))
        policy, mixture = game.generated.mixture(game.counts)
        at_home = type(problem.cost_class) is type(own.cost_class)
        return answer_of(
            problem, policy, status, engine="multiplicative weights", mixture=mixture,
            work=Work(iterations=iterations, forward_solves=iterations),
            weights=game.generated.hardest if at_home else None,
            seconds=watch.elapsed,
            log=f"{iterations} iterations, of {needed} that the theorem asks for; "
            f"{len(game.generated)} different policies",
        )  # fmt: skip

    def iterations_needed(self, problem: Apprenticeship) -> int:
        """The theorem's T."""
        own = in_class(problem, Simplex)
        regret = (1 - PLANNING_SHARE) * self.accuracy * _unit(own)
        root = np.sqrt(np.log(own.basis.num_costs) / 2) * _range(own) / regret
        return max(1, squared_count(root))


class _Game:
    """The weights, what the planner has answered, and how often."""

    def __init__(
        self, problem: Apprenticeship, accuracy: float, needed: int, stop_early: bool
    ) -> None:
        num_costs = problem.basis.num_costs
        self.problem, self.needed, self.stop_early = problem, needed, stop_early
        self.accuracy = accuracy * _unit(problem)
        self.generated = GeneratedPolicies(problem)
        self.iterations = 0
        self.counts = np.zeros(0)
        """How often each policy was the plan."""
        self.total = np.zeros(num_costs)
        """The sum of z_t, cost by cost."""
        self.scale = problem.cost_class.scaling(num_costs)
        self.rate = np.sqrt(8 * np.log(num_costs) / needed) / (_range(problem) or 1.0)

    def advance(self) -> Advance:
        """Plan for the weights at hand and let the planner's losses change them."""
        weights = self.scale * _law(self.rate * self.total)
        newest = self.generated.answer(weights, PLANNING_SHARE * self.accuracy)
        if newest == self.counts.size:
            self.counts = np.append(self.counts, 0.0)
        self.counts[newest] += 1
        self.iterations += 1
        difference = self.generated.expectations[newest] - self.problem.target
        self.total += self.scale * difference
        gap, proven = float(self.total.max()) / self.iterations, self.generated.lower_bound
        over = self.stop_early or self.iterations >= self.needed
        return Advance(gap, proven, converged=over and gap - proven <= self.accuracy)


def _unit(problem: Apprenticeship) -> float:
    """What the accuracy is relative to."""
    return problem.gap_scale or 1.0


def _range(problem: Apprenticeship) -> float:
    """R: how far apart the scaled differences to the expert can lie, over costs and policies."""
    basis, scale = problem.basis, problem.cost_class.scaling(problem.basis.num_costs)
    ends = [
        scale * (end * problem.effective_horizon - problem.target)
        for end in (basis.lowest, basis.highest)
    ]
    return float(ends[1].max() - ends[0].min())


def _law(logarithms: FloatArray) -> FloatArray:
    """Probabilities proportional to the exponentials."""
    powers = np.exp(logarithms - logarithms.max())
    return np.asarray(powers / powers.sum())
