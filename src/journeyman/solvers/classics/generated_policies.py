"""Policies generated one by one, each (nearly) optimal for a cost that a method finds hardest.

    given weights w of the class:   pi ~ argmin <mu_pi, Psi w>,    m = Psi' mu_pi

Abbeel and Ng, Syed and Schapire and column generation all live on such answers of a planner; they
differ in which weights come next and in how the policies are mixed. Each answer is worth two
things: a policy with its expectations m, and a lower bound on the gap of *every* policy, from the
planner's values by weak duality. Planning is rough: it ends when its error is below what the caller
allows, and the bound pays for what is left.

A policy that comes twice is kept once. What is kept of each is the pair taken and the visits paid
in every state, two numbers a state; laws over pairs are made only for the mixture that is returned.
Cost of a call: a plan that starts from the last values, and for a new policy two linear solves for
its visits, the second a short one.
"""

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.costs.cost_class import ScaledClass
from journeyman.policy import Policy, extract
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.policy.planning import improve
from journeyman.policy.policy_evaluation import Chains
from journeyman.problem import Apprenticeship, Witness, lower_bound
from journeyman.storage import digest

MOST_STEPS = 200
"""Of policy iteration for one policy: what float64 cannot improve any more is taken as it is."""
FIRST_SOLVE, SECOND_SOLVE = 1e-8, 1e-5
"""Residuals of the visits relative to the right-hand side, which together make 1e-13."""
FIRST_ROWS = 16
"""Rows reserved for expectations at first; doubled when they are full."""
COUNTABLE = 1e18
"""Theorems that ask for more policies than this count as asking for this many."""


class GeneratedPolicies:
    """What a planner has answered so far on one problem; the problem's class is the method's."""

    def __init__(self, problem: Apprenticeship) -> None:
        self.problem = problem
        self.lower_bound = 0.0 if problem.cost_class.contains_zero else -np.inf
        """The best proven so far, for the gap of every policy."""
        self.hardest: FloatArray | None = None
        """The weights that proved it, if it took any."""
        self._rows = np.zeros((FIRST_ROWS, problem.basis.num_costs))
        self._chains = Chains(problem.world)
        self._values = np.zeros(problem.world.num_states)
        self._numbers: dict[str, int] = {}
        self._choices: list[IntArray] = []
        self._visits: list[FloatArray] = []

    def __len__(self) -> int:
        return len(self._choices)

    @property
    def expectations(self) -> FloatArray:
        """Of each policy, one row."""
        return self._rows[: len(self)]

    def answer(self, weights: FloatArray, planning_error: float) -> int:
        """Plan for the cost of `weights`; the number of the policy, which may be an old one."""
        cost = self.problem.cost_of(weights)
        allowed = planning_error / self.problem.effective_horizon
        found = improve(self._chains, cost, self._values, allowed=allowed, most=MOST_STEPS)
        self._values = found.values
        proven = lower_bound(self.problem, Witness(weights, found.values))
        if proven > self.lower_bound:
            self.lower_bound, self.hardest = proven, weights
        key = digest(found.choice)
        if key not in self._numbers:
            self._numbers[key] = len(self)
            self._evaluate(found.choice)
        return self._numbers[key]

    def mixture(self, shares: FloatArray) -> tuple[Policy, MixturePolicy]:
        """The stationary policy with the occupancy of a mixture (Proposition 1), and the mixture.

        Shares that are not positive count as zero.
        """
        used, world = np.flatnonzero(shares > 0).tolist(), self.problem.world
        weights = shares[used] / shares[used].sum()
        measure = np.zeros(world.num_pairs)
        for k, weight in zip(used, weights, strict=True):
            measure += weight * self.measure(k)
        return extract(world, measure), MixturePolicy([self._policy(k) for k in used], weights)

    def measure(self, number: int) -> FloatArray:
        """The occupancy of one policy."""
        measure = np.zeros(self.problem.world.num_pairs)
        measure[self._choices[number]] = self._visits[number]
        return measure

    def _policy(self, number: int) -> Policy:
        probabilities = np.zeros(self.problem.world.num_pairs)
        probabilities[self._choices[number]] = 1.0
        return Policy(probabilities, self.problem.world.pairs)

    def _evaluate(self, choice: IntArray) -> None:
        self._choices.append(choice)
        self._visits.append(np.maximum(self._solve(choice), 0.0))
        if len(self) > len(self._rows):
            self._rows = np.vstack([self._rows, np.zeros_like(self._rows)])
        self._rows[len(self) - 1] = self.problem.cost_matrix.T @ self.measure(len(self) - 1)

    def _solve(self, choice: IntArray) -> FloatArray:
        """Visits to every state: one solve, and one for what it has left."""
        world = self.problem.world
        visits = self._chains.visits(choice, world.initial, FIRST_SOLVE)
        arriving = world.transition[choice].T @ visits
        left = world.initial + world.discount * arriving - visits
        return visits + self._chains.visits(choice, left, SECOND_SOLVE)


def squared_count(root: float, more: float = 0.0) -> int:
    """root^2 + more, rounded up: how many policies a theorem asks for.

    >>> squared_count(1.5, 0.5), squared_count(1e200)
    (3, 1000000000000000000)
    """
    square = min(float(root), COUNTABLE) ** 2
    return int(min(np.ceil(square + more), COUNTABLE))


def in_class(problem: Apprenticeship, kind: type[ScaledClass]) -> Apprenticeship:
    """The same problem in a method's own cost class, with the trust it states in costs."""
    own = kind(problem.cost_class.scaling(problem.basis.num_costs))
    return Apprenticeship(problem.world, problem.basis, problem.expectation, own)
