"""Generative adversarial imitation learning (GAIL): be indistinguishable from the expert.

    minimise over theta   max over D   <mu_theta, log D> + <mu_E, log(1 - D)> - entropy H(theta)

where mu_E is the empirical occupancy of the demonstrations and H the discounted causal entropy.
Without a limit on D the maximum is (up to constants) the Jensen-Shannon divergence between the two
measures. One iteration fits the discriminator and takes one trust-region step for the cost
log D + entropy log pi.

*Where.* D is log-linear in the cost basis and a constant by default, log-linear in
`discriminator_features`, or `tabular_discriminator`: one logit per pair. Policies are tabular or
log-linear in `features`; visits are exact or, with `rollouts`, drawn.

*What differs from the paper.* The discriminator is fitted to its optimum in every iteration (the
paper takes one step of Adam), so that in the exact mode the objective is one smooth function which
every step lowers. Discounts are kept in the training objective.

*Guarantee.* The paper promises the minimum of a divergence, not of a gap. In the tabular family
with exact visits the objective is convex in the occupancy measure; CONVERGED means that ten
iterations in a row gained less than `accuracy` per unit of mass. What that means for the gap, the
answer's bounds say; with few demonstrations a tabular discriminator asks for the pairs that were
seen, a log-linear one for the expectations of its features.

*Cost.* Two sparse solves and a few Newton steps per iteration.

Reference: Ho, Ermon, "Generative adversarial imitation learning", NIPS 2016.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix
from journeyman.demonstrations import Demonstrations
from journeyman.features import Features
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import (
    answer_of,
    require_demonstrations,
    require_suitable,
)
from journeyman.solvers.classics.policy_family import PolicyFamily, TrustRegion
from journeyman.solvers.classics.policy_visits import VisitOptions
from journeyman.solvers.running import (
    Advance,
    Watch,
    iterate,
    require_count,
    require_not_negative,
    require_positive,
    require_time_limit,
)
from journeyman.world import World

STALLED = 10
"""So many iterations without a gain that counts end an exact run."""


@dataclass(frozen=True, eq=False)
class AdversarialImitation:
    """GAIL of Ho and Ermon (2016), with a discriminator that is fitted exactly.

    Args:
        tabular_discriminator: one logit per pair instead of features.
        discriminator_features: by default the cost basis and a constant.
        features: of log-linear policies; None searches all policies.
        entropy: weight of the policy's discounted causal entropy.
        ridge: penalty on the discriminator's parameters, per unit of mass.
        rollouts: walks drawn per iteration; None computes visits exactly.
        horizon: longest walk; by default 1 % of the discounted time is left out.
        radius: largest mean divergence of a step.
        accuracy: gain of the objective, per unit of mass, that still counts.
        max_iterations: steps before the run ends.
        time_limit: seconds.
        seed: of the walks.
    """

    tabular_discriminator: bool = False
    discriminator_features: Features | None = None
    features: Features | None = None
    entropy: float = 0.0
    ridge: float = 1e-3
    rollouts: int | None = None
    horizon: int | None = None
    radius: float = 0.1
    accuracy: float = 1e-7
    max_iterations: int = 200
    time_limit: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        VisitOptions(self.rollouts, self.horizon, self.seed)
        for name in ("ridge", "radius", "accuracy"):
            require_positive(name, getattr(self, name))
        require_not_negative("entropy", self.entropy)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, "AdversarialImitation")
        demos = require_demonstrations(problem, "AdversarialImitation")
        game = _Game(problem, demonstrated_measure(demos, problem.world), self)
        status, iterations = iterate(game.advance, watch, self.max_iterations)
        kind = "tabular" if self.tabular_discriminator else "log-linear"
        return answer_of(
            problem, Policy(game.law, problem.world.pairs), status,
            engine=f"GAIL, {kind} discriminator, {game.family!r}",
            work=Work(iterations=iterations, environment_steps=game.evaluator.steps),
            recovered=game.recovered, seconds=watch.elapsed,
        )  # fmt: skip


class _Game:
    """The iterations: a discriminator, then a step of the policy."""

    def __init__(
        self, problem: Apprenticeship, expert: FloatArray, options: AdversarialImitation
    ) -> None:
        self.problem, self.expert, self.options = problem, expert, options
        self.family = PolicyFamily(problem.world, options.features)
        visits = VisitOptions(options.rollouts, options.horizon, options.seed)
        self.evaluator = visits.evaluator(problem)
        self.adversary = Discriminator(_columns(problem, options), options.ridge)
        self.theta = np.zeros(self.family.num_parameters)
        self.law = self.family.law(self.theta)
        self.region = TrustRegion(self.family, options.radius, is_smooth=options.rollouts is None)
        self.idle = 0
        self.fitted: Discrimination | None = None

    @property
    def recovered(self) -> FloatArray | None:
        """The discriminator's weights of the basis costs, when it has them."""
        own = self.options.tabular_discriminator or self.options.discriminator_features is not None
        if own or self.fitted is None:
            return None
        return self.fitted.parameters[:-1] / _units(self.problem)

    def advance(self) -> Advance:
        exact = self.options.rollouts is None
        visits = self.evaluator.visits(self.law)
        fitted = self.fitted = self.adversary.fit(visits.measure, self.expert)
        cost = fitted.cost + self.options.entropy * self.family.log_law(self.theta)
        value = fitted.value + self._entropy_cost(visits.measure, self.law)
        signal = visits.signal(cost)

        def surrogate(law: FloatArray) -> float:
            if not exact:
                ratio = np.divide(law, self.law, out=np.ones_like(law), where=self.law > 0)
                return value + float(signal @ (ratio - 1.0))
            measure = self.evaluator.visits(law).measure
            return self.adversary.fit(measure, self.expert).value + self._entropy_cost(measure, law)

        step = self.region.step(self.theta, self.law, visits.measure, value, signal, surrogate)
        self.theta, self.law = step.theta, step.law
        horizon = self.problem.world.effective_horizon
        small = exact and value - step.value <= self.options.accuracy * horizon
        self.idle = self.idle + 1 if small else 0
        return Advance(value / horizon, None, self.idle >= STALLED)

    def _entropy_cost(self, measure: FloatArray, law: FloatArray) -> float:
        if not self.options.entropy:
            return 0.0
        logs = np.log(law, out=np.zeros_like(law), where=law > 0)
        return self.options.entropy * float(measure @ logs)


def _units(problem: Apprenticeship) -> FloatArray:
    """The largest entry of each basis cost, 1 where that is zero."""
    return np.where(problem.basis.norms > 0, problem.basis.norms, 1.0)


def _columns(problem: Apprenticeship, options: AdversarialImitation) -> Matrix | None:
    """The discriminator's features, one row per pair."""
    if options.tabular_discriminator:
        return None
    if options.discriminator_features is not None:
        return options.discriminator_features.on(problem.world).matrix
    basis, units = problem.cost_matrix, _units(problem)
    ones = np.ones((problem.world.num_pairs, 1))
    if sparse.issparse(basis):
        scaled = basis @ sparse.diags_array(1.0 / units)
        return sparse.hstack([scaled, sparse.csr_array(ones)], format="csr")
    return np.hstack([basis / units, ones])


def demonstrated_measure(demos: Demonstrations, world: World) -> FloatArray:
    """The empirical occupancy measure per pair of `world`.

        mu^_E(x, a) = c mean over episodes of sum_t discount^t 1{x_t = x, a_t = a}

    with c such that the mass is 1/(1 - discount). A terminated episode rests in its last state for
    ever; what the expert does there is not recorded and does not matter, so all actions of that
    state share the mass. What is missing of truncated episodes is spread over everything that was
    seen.

    >>> world = World([[0, 1], [0, 1]], [1, 0], 0.5)
    >>> demonstrated_measure(Demonstrations([0, 1], [0], [0, 1], [True]), world).tolist()
    [1.0, 1.0]
    """
    weights = world.discount ** demos.step_times.astype(float)
    seen = np.bincount(demos.pairs_in(world), weights, minlength=world.num_pairs)
    rest = world.discount ** demos.lengths.astype(float) * world.effective_horizon
    kept = np.where(demos.terminated, rest, 0.0)
    resting = np.asarray(np.bincount(demos.last_states, kept, world.num_states), dtype=float)
    measure = seen + world.pairs.spread(resting) * world.pairs.uniform
    return np.asarray(measure * (world.effective_horizon / measure.sum()))


LARGEST_LOGIT = 10.0
"""Of a tabular discriminator: pairs that only one of the two ever visits stay finite."""
NEWTON_STEPS, HALVINGS = 30, 30
ACCURACY = 1e-12
"""Newton's method ends when a step promises less than this, per unit of mass."""


@dataclass(frozen=True, eq=False)
class Discrimination:
    """The best discriminator: the objective, its logits, and its parameters."""

    value: float
    logits: FloatArray
    parameters: FloatArray

    @property
    def cost(self) -> FloatArray:
        """log D per pair, which the apprentice minimises."""
        return -np.logaddexp(0.0, -self.logits)


class Discriminator:
    """Fits discriminators one after the other; `features` None is the tabular one.

        maximise   <p, log D> + <q, log(1 - D)>,      D = 1/(1 + exp(-l))

    where p and q are occupancy measures of the apprentice and the expert and l the logits per pair:
    free within [-LARGEST_LOGIT, LARGEST_LOGIT] (tabular, l = log(p/q) cut off), or Phi phi with a
    penalty mass ridge |phi|^2/2 (log-linear). D is the probability of being the apprentice's.

    *Guarantee.* The maximum is a convex function of p whose gradient is log D (Danskin), so
    improving the policy for the cost log D lowers it. Cost: tabular one pass; log-linear a few
    steps of Newton's method from the last solution, each with one Gram matrix of the features.
    """

    def __init__(self, features: Matrix | None, ridge: float) -> None:
        self._features, self._ridge = features, ridge
        size = 0 if features is None else int(features.shape[1])
        self._last = np.zeros(size)

    def fit(self, apprentice: FloatArray, expert: FloatArray) -> Discrimination:
        """The best discriminator for two measures over pairs."""
        if self._features is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                apart = np.log(apprentice) - np.log(expert)
            logits = np.clip(np.nan_to_num(apart), -LARGEST_LOGIT, LARGEST_LOGIT)
            return Discrimination(_value(logits, apprentice, expert), logits, self._last)
        penalty = self._ridge * float(expert.sum())
        self._last = _newton(self._features, apprentice, expert, penalty, self._last)
        logits = np.asarray(self._features @ self._last)
        value = _value(logits, apprentice, expert) - penalty / 2 * float(self._last @ self._last)
        return Discrimination(value, logits, self._last)


def _value(logits: FloatArray, apprentice: FloatArray, expert: FloatArray) -> float:
    ours, theirs = np.logaddexp(0.0, -logits), np.logaddexp(0.0, logits)
    return -float(apprentice @ ours + expert @ theirs)


def _newton(
    features: Matrix, apprentice: FloatArray, expert: FloatArray, penalty: float, start: FloatArray
) -> FloatArray:
    """Maximise from `start`; halved steps never go down."""
    found, logits = start, np.asarray(features @ start)
    value = _value(logits, apprentice, expert) - penalty / 2 * float(found @ found)
    for _ in range(NEWTON_STEPS):
        share = 1.0 / (1.0 + np.exp(-np.clip(logits, -500, 500)))
        gradient = features.T @ (apprentice * (1 - share) - expert * share) - penalty * found
        weights = (apprentice + expert) * share * (1 - share)
        step = _solved(_gram(features, weights) + penalty * np.eye(found.size), gradient)
        promised = float(gradient @ step)
        if promised <= ACCURACY * float(expert.sum()):
            break
        length = 1.0
        for _ in range(HALVINGS):
            trial = found + length * step
            trial_logits = np.asarray(features @ trial)
            reached = _value(trial_logits, apprentice, expert)
            reached -= penalty / 2 * float(trial @ trial)
            if reached >= value + 0.1 * length * promised:
                found, logits, value = trial, trial_logits, reached
                break
            length /= 2
        else:
            break
    return found


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The solution, or the least one where a ridge is too small to be seen beside the features."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)


def _gram(features: Matrix, weights: FloatArray) -> FloatArray:
    """Phi' diag(weights) Phi, dense."""
    if sparse.issparse(features):
        return np.asarray((features.T @ (sparse.diags_array(weights) @ features)).toarray())
    return np.asarray(features.T @ (weights[:, np.newaxis] * features))
