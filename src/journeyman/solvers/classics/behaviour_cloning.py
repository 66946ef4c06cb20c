"""Behaviour cloning: repeat the expert's decisions, state by state, whatever they lead to.

    maximise over policies   sum_{x,a} (count(x, a) + smoothing) log pi(a | x)

where count(x, a) says how often the demonstrations take action a in state x. Over all policies the
solution is the smoothed frequency of `jm.clone`, uniform in states that were never visited. Over
features it is the log-linear policy

    pi(a | x) proportional to exp(<phi(x, a), theta>)

of maximum likelihood with a ridge (`decision_likelihood`), where smoothing adds to the visited
states only: what was seen there speaks about the others through their features.

Guarantee. Let d_E be the discounted law of the expert's states, of mass one, and

    eps = E_{x ~ d_E} |pi(. | x) - pi_E(. | x)|_1 / 2

for a deterministic expert the probability of doing anything else in the states that it visits.
Then for every cost with |c| <= N, and so for the gap to the true expert over the whole class,

    |<mu_pi, c> - <mu_E, c>|  <=  min( 2 N/(1 - discount),  2 N eps/(1 - discount)^2 )

because the difference is sum_x mu_E(x) sum_a (pi - pi_E)(a | x) Q_pi(x, a), and the values Q_pi of
one state differ by at most 2 N/(1 - discount). Errors cascade: one power of the horizon counts the
occasions for a mistake, the other how long each is paid for, in states that the expert never
showed. It is no weakness of the proof: where one mistake costs 1 in every step ever after, the gap
is eps/((1 - discount)(1 - discount + discount eps)), with 2 N replaced by the range of the cost.
The expert has to be a stationary policy; nothing else is assumed. eps itself is not known. Maximum
likelihood aims at it through eps^2 <= KL/2 (Pinsker), KL the expert's mean surprise about pi beyond
its own entropy, but counts every recorded step alike where d_E discounts it. The papers have a
finite horizon T, costs in [0, 1] and a deterministic expert: T^2 eps.

Cost. Counting is one pass over the demonstrations. With features every iteration of L-BFGS-B is
about one product with the rows of the visited states and one with their transpose; the exact slope
proves how much is left to gain, and CONVERGED means that it is at most `tolerance`.

References: Pomerleau, "Efficient training of artificial neural networks for autonomous navigation",
Neural Computation 1991; Ross and Bagnell, "Efficient reductions for imitation learning", AISTATS
2010, Theorem 2.1; Syed and Schapire, "A reduction from apprenticeship learning to classification",
NIPS 2010.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix, assign, dense
from journeyman.demonstrations import Demonstrations, clone
from journeyman.demonstrations.cross_fitting import Fit, cross_fit
from journeyman.errors import InvalidDemonstrations, InvalidProblem, InvalidSolver
from journeyman.features.base import DrawnFeatures, Features
from journeyman.policy import Policy
from journeyman.policy.table import log_softmax, softmax
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Details, SampledSolution, Work
from journeyman.solvers.classics.answering import (
    answer_of,
    require_demonstrations,
    require_suitable,
)
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_not_negative,
    require_positive,
    require_time_limit,
)
from journeyman.world import Pairs, World
from journeyman.world.levels import Level


@dataclass(frozen=True, eq=False)
class DecisionLikelihood:
    """The loss over the states that were visited; nothing here is longer than their pairs.

        loss(theta) = -sum_{x,a} weight(x, a) log pi_theta(a | x)  +  ridge/2 |theta|^2
        pi_theta(a | x) proportional to exp(<phi(x, a), theta>)

    where weight(x, a) is proportional to count(x, a) + smoothing in the states where a decision was
    seen, zero elsewhere, and sums to one: the loss is in nats per decision. Every column of phi is
    brought to unit size first, so that one ridge suits all.

    The loss is strongly convex, so |slope|^2/(2 ridge) bounds what is left to gain at any theta. At
    its minimum the features that were seen are those the policy expects in the same states:

        E_seen phi - E_theta phi = ridge theta
    """

    pairs: Pairs
    matrix: Matrix
    weights: FloatArray
    ridge: float

    @classmethod
    def of(
        cls, pairs: Pairs, matrix: Matrix, seen: IntArray, smoothing: float, ridge: float
    ) -> "DecisionLikelihood":
        """From columns of unit size over all pairs, and the pair of every decision seen."""
        counts = np.bincount(seen, minlength=len(pairs)).astype(np.float64)
        visited = pairs.total(counts) > 0
        rows = np.flatnonzero(visited[pairs.states])
        offsets = np.concatenate([[0], np.cumsum(pairs.actions_per_state[visited])])
        weights = counts[rows] + smoothing
        return cls(Pairs(offsets), matrix[rows], weights / weights.sum(), ridge)

    def value_and_slope(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """The loss at theta and its gradient."""
        logs = log_softmax(self.pairs, np.asarray(self.matrix @ theta))
        value = -float(self.weights @ logs) + 0.5 * self.ridge * float(theta @ theta)
        expected = self.pairs.spread(self.pairs.total(self.weights)) * np.exp(logs)
        slope = self.matrix.T @ (expected - self.weights) + self.ridge * theta
        return value, np.asarray(slope)

    def error(self, slope: FloatArray) -> float:
        """How far the loss is at most above its minimum, at a theta with this slope."""
        return float(slope @ slope) / (2 * self.ridge)


def unit_columns(matrix: Matrix) -> Matrix:
    """The columns, each divided by its largest absolute entry; columns of zeros stay."""
    largest = dense(abs(matrix).max(axis=0)).ravel()
    divisors = np.where(largest > 0, largest, 1.0)
    if sparse.issparse(matrix):
        return sparse.csr_array(matrix @ sparse.diags_array(1.0 / divisors))
    return np.asarray(matrix / divisors)


MEMORY = 20
"""Pairs of steps and slopes from which L-BFGS-B infers the curvature."""


@dataclass(frozen=True, eq=False)
class Cloned:
    """A policy that repeats decisions, and how the search for it ended."""

    policy: Policy
    status: Status
    iterations: int
    loss: float
    """Nats per decision; with features including the ridge."""


@dataclass(frozen=True)
class BehaviourCloning:
    """Clone the expert from the problem's demonstrations.

    Args:
        smoothing: added to the count of every action in visited states.
        features: phi, one row per state-action pair: a matrix, dense or sparse, or
            `jm.features.Features` without a base measure. None: the frequencies themselves, every
            state on its own.
        ridge: price of |theta|^2/2 in nats per decision, for columns of unit size.
        tolerance: asked-for error of the loss with features, in nats per decision.
        max_iterations: of L-BFGS-B.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    >>> demos = jm.record(world, expert, trajectories=20, horizon=50, seed=0)
    >>> answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.BehaviourCloning())
    >>> answer.status.name, bool(answer.value < 0.2 * answer.problem.gap_scale)
    ('CONVERGED', True)
    """

    reaches_goals: ClassVar[bool] = True
    takes_averages: ClassVar[bool] = True
    smoothing: float = 0.1
    features: Any = None
    ridge: float = 1e-6
    tolerance: float = 1e-8
    max_iterations: int = 1000
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_not_negative("smoothing", self.smoothing)
        require_positive("ridge", self.ridge)
        require_positive("tolerance", self.tolerance)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)
        if self.features is not None:
            assign(self, features=_checked(self.features))

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, "BehaviourCloning")
        demos = require_demonstrations(problem, "BehaviourCloning")
        cloned = self.fit(problem.world, demos, watch)
        columns = "counts" if self.features is None else f"{self.features.num_features} features"
        return answer_of(
            problem,
            cloned.policy,
            cloned.status,
            engine=f"BehaviourCloning, {columns}",
            work=Work(iterations=cloned.iterations),
            seconds=watch.elapsed,
            log=f"{cloned.loss:.6g} nats per decision after {cloned.iterations} iterations",
        )

    def fit(self, world: World, decisions: Demonstrations, watch: Watch) -> Cloned:
        """The policy that explains `decisions` best; where they led plays no part."""
        seen = world.pairs.index(decisions.step_states, decisions.actions, InvalidDemonstrations)
        if self.features is not None:
            return self._fit_features(world, seen, watch)
        policy = clone(labelled(world, decisions), smoothing=self.smoothing)
        loss = -float(np.log(policy.per_pair[seen]).mean())
        watch.report(1, loss)
        return Cloned(policy, Status.CONVERGED, 1, loss)

    def _fit_features(self, world: World, seen: IntArray, watch: Watch) -> Cloned:
        matrix = unit_columns(self.features.on(world).matrix)
        loss = DecisionLikelihood.of(world.pairs, matrix, seen, self.smoothing, self.ridge)
        theta, iterations = self._descend(loss, watch)
        value, slope = loss.value_and_slope(theta)
        policy = Policy(softmax(world.pairs, np.asarray(matrix @ theta)), world.pairs)
        status = self._status(loss.error(slope), iterations, watch)
        return Cloned(policy, status, iterations, value)

    def _descend(self, loss: DecisionLikelihood, watch: Watch) -> tuple[FloatArray, int]:
        """L-BFGS-B until the slope proves the tolerance, or something else ends the run."""
        from scipy.optimize import minimize

        start = np.zeros(loss.matrix.shape[1])
        iterations = 0

        def follow(intermediate_result: Any) -> None:
            nonlocal iterations
            iterations += 1
            if watch.report(iterations, float(intermediate_result.fun)):
                raise StopIteration

        steepest = float(np.sqrt(2 * self.ridge * self.tolerance / start.size))
        found = minimize(
            loss.value_and_slope, start, jac=True, method="L-BFGS-B", callback=follow,
            options={
                "maxiter": self.max_iterations, "maxfun": 20 * self.max_iterations,
                "maxcor": MEMORY, "gtol": steepest, "ftol": 0.0,
            },
        )  # fmt: skip
        return np.asarray(found.x, dtype=float), iterations

    def _status(self, error: float, iterations: int, watch: Watch) -> Status:
        if error <= self.tolerance:
            return Status.CONVERGED
        if watch.must_stop:
            return watch.stop_status
        return Status.STEP_LIMIT if iterations >= self.max_iterations else Status.INACCURATE


def labelled(world: World, decisions: Demonstrations) -> Demonstrations:
    """The same decisions, with the action sets of `world`."""
    return Demonstrations(
        decisions.states, decisions.actions, decisions.offsets, decisions.terminated,
        choice_offsets=world.pairs,
    )  # fmt: skip


def _checked(features: Any) -> Features:
    """Features as columns over pairs."""
    if isinstance(features, DrawnFeatures):
        raise InvalidSolver(
            f"{features!r} are features of a large world", "Give jm.features.Features(matrix)"
        )
    columns = features if isinstance(features, Features) else Features(features)
    if columns.base is not None:
        raise InvalidSolver(
            "the features have a base measure, which no log-linear policy has",
            "Give the columns alone: jm.features.Features(features.matrix)",
        )
    return columns


@dataclass(frozen=True)
class CrossFittedClone:
    """`demonstrations.cross_fit` as a solver for records alone: clones of the expert, cross-fitted,
    so that the same records can certify them.

        pi_k fitted to all episodes outside fold k;   the answer draws k where an episode starts

    *Guarantee*: none by itself; `certify` compares every episode with the policy that never saw it
    (`certificate.agreement`). *Cost*: one fit for each fold.

    Args:
        fit: from demonstrations to a policy with action probabilities; by default a table for ids
            and a small network for observations.
        folds: into how many parts the episodes are dealt, from 2.
        seed: deals them.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=40, horizon=60, seed=0)
    >>> apprentice = jm.learn(jm.world.Records(0.9, cost_range=(0, 1)), None, demos)
    >>> apprentice.policy
    CrossFitted(2 folds of Demonstrations(40 episodes, 2400 steps, 0 terminated))
    """

    fit: Fit | None = None
    folds: int = 2
    seed: int = 0
    time_limit: float | None = None
    needs: ClassVar[Level] = Level.RECORDED

    def __post_init__(self) -> None:
        require_count("folds", self.folds, least=2)
        require_count("seed", self.seed, least=0)
        require_time_limit(self.time_limit)
        if not (self.fit is None or callable(self.fit)):
            raise InvalidSolver(
                f"fit is a {type(self.fit).__name__}",
                "Give a function from demonstrations to a policy",
            )

    def run(self, problem: Apprenticeship, watch: Watch, /) -> Answer:
        """Fit every fold; a fit is not interrupted."""
        if problem.level is not Level.RECORDED:
            raise InvalidProblem(
                "CrossFittedClone is for worlds of which nothing is known but records",
                "Give jm.world.Records(...) as the world; in other worlds jm.solve(problem) does "
                "better, and jm.solvers.BehaviourCloning() clones",
            )
        assert problem.demonstrations is not None
        policy = cross_fit(problem.demonstrations, self.fit, folds=self.folds, seed=self.seed)
        engine = f"cross-fitting of {self.folds} folds"
        return Answer(
            problem, Status.CONVERGED, engine, SampledSolution(policy), Details(mixture=policy)
        )
