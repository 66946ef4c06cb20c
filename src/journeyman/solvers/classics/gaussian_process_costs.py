"""Gaussian process inverse reinforcement learning (GPIRL): a nonlinear cost, by its likelihood.

    maximise over u, beta, lambda   log P(D | c) + log N(u; 0, K_uu) + log p(beta, lambda)
    where                           c(z) = k_u(z)' K_uu^{-1} u

*where* a cost is a function of a pair's features z (the columns of the problem's `CostBasis`, in
units of their ranges), u are its values at m *inducing points*, and between them it follows a
Gaussian process with the kernel, one relevance lambda_k to a feature,

    k(z, z') = beta exp( -1/2 sum_k lambda_k (z_k - z'_k)^2 - s 1{z != z'} sum_k lambda_k )

Here s is the variance of an error that features are taken to have: it keeps K_uu away from singular
matrices where relevances are small. c(z) is the mean of the process given u (the deterministic
training conditional). At the inducing points themselves the error counts too, so that c is one
continuous function of features, which the paper's is not. P(D | c) is the likelihood of recorded
actions under soft-optimal choices at temperature 1, as in `MaximumLikelihood`, and the prior

    log p(beta, lambda) = -1/2 tr(K_uu^{-2}) - sum_k log(1 + lambda_k)

takes most features to be irrelevant, and keeps values at the inducing points from being the same
one.

Derivatives are exact. With g the gradient of the likelihood in the costs of the rows (what the
policy does from the recorded states on less what was recorded, `Decisions.slope`), K_r the
kernel between rows and inducing points, a = K_uu^{-1} u and w = K_uu^{-1} K_r' g,

    gradient in u      w - a
    in a parameter p   <g a', dK_r/dp> + <G, dK_uu/dp>  (log lambda_k: - lambda_k/(1 + lambda_k))
    with               G = a a'/2 - w a' - K_uu^{-1}/2 + K_uu^{-3}

*Method.* L-BFGS over u, log beta and log lambda together, from several starts; the best one is
taken. Inducing points are the features of the states in the record, and then of others, drawn up to
`inducing` of them.

*Guarantee.* CONVERGED: the gradient is within `tolerance`, but for what points beyond the limits of
beta and lambda; the program is not concave, and a better stationary point may exist. Nothing of
this enters a certificate: the policy, which is soft-optimal for c, is evaluated and certified like
that of every method, for the costs of the declared class. These are combinations of the features:
of a nonlinear cost the certificate covers what lies in the class and no more, and
`answer.nonlinear.outside` says how much is no combination.

*Cost.* Per evaluation a soft plan, one system with the transposed matrix, m^3 and
(different rows of features) x m x (features) operations.

*Reference.* Levine, Popovic and Koltun, "Nonlinear inverse reinforcement learning with Gaussian
processes", NIPS 2011. Its warped kernel is left out.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from journeyman.arrays import FloatArray, IntArray, read_only
from journeyman.errors import InvalidProblem
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import (
    answer_of,
    require_demonstrations,
    require_suitable,
)
from journeyman.solvers.classics.maximum_likelihood import Decisions
from journeyman.solvers.nonlinear_cost import (
    FeatureRows,
    KernelExpansion,
    NonlinearCost,
    squared_distances,
)
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_positive,
    require_time_limit,
)

LEAST, MOST = -12.0, 12.0
"""Logarithms of beta and lambda stay between them."""
FLAT = 1e-14
"""Of the objective: L-BFGS gives up where a step wins less, whatever the gradient is."""
FIRST_DISTANCE = 1.0
"""The mean of sum_k lambda_k (z_k - z'_k)^2 over inducing points, at the first start."""


@dataclass(frozen=True)
class GaussianProcessCosts:
    """A cost that is a nonlinear function of the features, and a soft-optimal policy for it.

    Args:
        inducing: points at which the function is free, at most.
        noise: the variance s of an error of features, as a share of their squared ranges.
        tolerance: the largest entry of the gradient at which the search ends.
        starts: of the search; the first one is fixed, the others are drawn.
        max_iterations: of L-BFGS from each start.
        seed: of the drawn starts and inducing points.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert, cost = jm.gallery.objectworld(8, seed=3)
    >>> demos = jm.record(world, expert, trajectories=16, horizon=8, seed=0)
    >>> answer = jm.solve(jm.Apprenticeship(world, basis, demos), GaussianProcessCosts())
    >>> answer.nonlinear.per_pair.shape, answer.recovered is None
    ((320,), True)
    """

    inducing: int = 128
    noise: float = 0.005
    tolerance: float = 1e-3
    starts: int = 1
    max_iterations: int = 500
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_count("inducing", self.inducing)
        require_positive("noise", self.noise)
        require_positive("tolerance", self.tolerance)
        require_count("starts", self.starts)
        require_count("max_iterations", self.max_iterations)
        require_count("seed", self.seed, least=0)
        require_time_limit(self.time_limit)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        name = type(self).__name__
        require_suitable(problem, name)
        require_plain(problem, name)
        demos = require_demonstrations(problem, name)
        decisions = Decisions(problem.world, problem.basis, demos)
        table = FeatureRows.of(problem.world, problem.basis)
        rng = np.random.default_rng(self.seed)
        posterior = Posterior.of(decisions, table, self.inducing, self.noise, rng)
        search = _Search(self, posterior, watch)
        point, status = search.run(rng)
        found = posterior.at(point)
        learned = NonlinearCost.of(problem, table, posterior.function(point))
        words = (
            f"log-likelihood {found.log_likelihood:.6f} of {int(decisions.counts.sum())} "
            f"decisions, {posterior.num_inducing} inducing points; {learned.remark}"
        )
        return answer_of(
            problem, found.policy, status, engine="L-BFGS",
            work=Work(iterations=search.iterations, forward_solves=posterior.plans),
            nonlinear=learned, seconds=watch.elapsed, log=words,
        )  # fmt: skip


def require_plain(problem: Apprenticeship, method: str) -> None:
    """Features are those of the world's own pairs: in a world with a horizon they are multiplied by
    what a layer counts, and a function of them would be another one in every layer."""
    if problem.world.layers is not None:
        raise InvalidProblem(
            f"{method} has no costs for a world with a horizon",
            "Give the world without the horizon, world.layers.base, and its costs",
        )


class Found(NamedTuple):
    """The objective and what it was computed from, at a point."""

    objective: float
    """Minus the logarithm of the posterior density, up to a constant."""
    gradient: FloatArray
    log_likelihood: float
    policy: Policy


class _Kernel(NamedTuple):
    """beta e^{-s sum lambda} exp(-distances/2) between inducing points, and with all rows."""

    inner: FloatArray
    outer: FloatArray
    matrix: FloatArray
    """K_uu."""
    fading: float
    """e^{-s sum lambda}."""


@dataclass(eq=False)
class Posterior:
    """The logarithm of the posterior density, negated, over z = (u, log beta, log lambda)."""

    decisions: Decisions
    table: FeatureRows
    rows: FloatArray
    """In units of the features' ranges."""
    scale: FloatArray
    places: IntArray
    """Which rows are inducing points."""
    noise: float
    plans: int = 0
    near: Any = None
    """The soft plan of the last point, from which the next one starts."""

    @classmethod
    def of(
        cls,
        decisions: Decisions,
        table: FeatureRows,
        inducing: int,
        noise: float,
        rng: np.random.Generator,
    ) -> "Posterior":
        width = table.rows.max(axis=0) - table.rows.min(axis=0)
        scale = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0)
        scale[~np.isfinite(scale)] = 0.0
        rows = (table.rows - table.rows.min(axis=0)) * scale
        visited = np.unique(table.of_pairs[(decisions.visits > 0)[decisions.world.pairs.states]])
        others = np.setdiff1d(np.arange(len(rows)), visited)
        chosen = np.concatenate([rng.permutation(visited), rng.permutation(others)])
        return cls(decisions, table, rows, scale, np.sort(chosen[:inducing]), noise)

    @property
    def num_inducing(self) -> int:
        return self.places.size

    @property
    def inducing(self) -> FloatArray:
        return self.rows[self.places]

    def start(self, rng: np.random.Generator | None) -> FloatArray:
        """u = 0, beta = 1 and relevances of one size, or sizes drawn around it."""
        varying = max(int(np.count_nonzero(self.scale)), 1)
        unit = np.ones(self.rows.shape[1])
        far = squared_distances(self.inducing, self.inducing)
        first = FIRST_DISTANCE / max(float(far.mean()), FIRST_DISTANCE / varying)
        logs = np.log(first * unit)
        if rng is not None:
            logs = logs + rng.normal(size=logs.size)
        return np.concatenate([np.zeros(self.num_inducing), [0.0], logs])

    def parts(self, point: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """u, beta, lambda."""
        count = self.num_inducing
        return point[:count], float(np.exp(point[count])), np.exp(point[count + 1 :])

    def kernel(self, beta: float, relevances: FloatArray) -> _Kernel:
        weighted = self.rows * np.sqrt(relevances)
        chosen = weighted[self.places]
        fading = float(np.exp(-self.noise * relevances[self.scale > 0].sum()))
        inner = np.exp(-squared_distances(chosen, chosen) / 2)
        np.fill_diagonal(inner, 1.0)
        outer = np.exp(-squared_distances(weighted, chosen) / 2)
        matrix = beta * (fading * inner + (1 - fading) * np.eye(len(inner)))
        return _Kernel(beta * fading * inner, beta * fading * outer, matrix, fading)

    def function(self, point: FloatArray) -> KernelExpansion:
        """c as a function of features."""
        u, beta, relevances = self.parts(point)
        kernel = self.kernel(beta, relevances)
        weights = cho_solve(cho_factor(kernel.matrix), u) * beta * kernel.fading
        return KernelExpansion(
            read_only(self.table.rows[self.places]), read_only(relevances), read_only(self.scale),
            read_only(weights),
        )  # fmt: skip

    def at(self, point: FloatArray) -> Found:
        """The objective and its gradient."""
        u, beta, relevances = self.parts(point)
        kernel = self.kernel(beta, relevances)
        factor = cho_factor(kernel.matrix)
        inverse = cho_solve(factor, np.eye(u.size))
        inverse = (inverse + inverse.T) / 2
        a = inverse @ u
        soft = self.decisions.soft((kernel.outer @ a)[self.table.of_pairs], self.near)
        assert soft is not None  # the discount is below 1
        self.near = soft._replace(system=None)
        self.plans += 1
        likelihood = self.decisions.log_likelihood(soft)
        g = self.table.total(self.decisions.slope(soft))
        square = inverse @ inverse
        half_log_determinant = float(np.log(np.diag(factor[0])).sum())
        prior = -(u @ a) / 2 - half_log_determinant - float(np.trace(square)) / 2
        prior -= float(np.log1p(relevances).sum())
        w = inverse @ (kernel.outer.T @ g)
        inner = np.outer(a / 2 - w, a) - inverse / 2 + square @ inverse
        inner = (inner + inner.T) / 2
        slopes = self._relevance_slopes(kernel, inner, np.outer(g, a))
        slopes = relevances * (slopes - 1 / (1 + relevances))
        beta_slope = float((inner * kernel.matrix).sum() + g @ kernel.outer @ a)
        gradient = np.concatenate([w - a, [beta_slope], slopes])
        policy = Policy(np.exp(soft.log_law), self.decisions.world.pairs)
        return Found(-(likelihood + prior), -gradient, likelihood, policy)

    def _relevance_slopes(
        self, kernel: _Kernel, inner: FloatArray, outer: FloatArray
    ) -> FloatArray:
        """sum over entries of G and of g a' times the derivatives of the kernel in lambda."""
        near, wide = inner * kernel.inner, outer * kernel.outer
        apart = float(near.sum() - np.trace(near) + wide.sum())
        slopes = -_weighted_squares(near, self.inducing, self.inducing) / 2
        slopes -= _weighted_squares(wide, self.rows, self.inducing) / 2
        return slopes - self.noise * apart * (self.scale > 0)


def _weighted_squares(weights: FloatArray, one: FloatArray, other: FloatArray) -> FloatArray:
    """sum_ij W_ij (x_ik - y_jk)^2, feature by feature."""
    mixed = np.einsum("ik,ik->k", one, weights @ other)
    return np.asarray(weights.sum(axis=1) @ one**2 + weights.sum(axis=0) @ other**2 - 2 * mixed)


class _Search:
    """L-BFGS from several starts, under a watch."""

    def __init__(self, solver: GaussianProcessCosts, posterior: Posterior, watch: Watch) -> None:
        self.solver, self.posterior, self.watch = solver, posterior, watch
        self.iterations = 0

    def run(self, rng: np.random.Generator) -> tuple[FloatArray, Status]:
        best, least, status = self.posterior.start(None), np.inf, Status.STEP_LIMIT
        for index in range(self.solver.starts):
            start = self.posterior.start(rng if index else None)
            point, value, outcome = self._descend(start)
            if value < least:
                best, least, status = point, value, outcome
            if self.watch.must_stop:
                return best, self.watch.stop_status
        return best, status

    def _descend(self, start: FloatArray) -> tuple[FloatArray, float, Status]:
        def reported(intermediate_result: object) -> None:
            self.iterations += 1
            value = float(intermediate_result.fun)  # type: ignore[attr-defined]
            if self.watch.report(self.iterations, value):
                raise StopIteration

        count, size = self.posterior.num_inducing, start.size
        limits = [(None, None)] * count + [(LEAST, MOST)] * (size - count)

        def objective(point: FloatArray) -> tuple[float, FloatArray]:
            found = self.posterior.at(point)
            return found.objective, found.gradient

        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=limits, callback=reported,
            options={"maxiter": self.solver.max_iterations, "gtol": self.solver.tolerance,
                     "ftol": FLAT, "maxcor": 20},
        )  # fmt: skip
        ends = np.array(limits, dtype=float)  # None is not a number
        step = np.fmin(np.fmax(found.x - found.jac, ends[:, 0]), ends[:, 1]) - found.x
        status = Status.INACCURATE
        if np.abs(step).max() <= self.solver.tolerance:
            status = Status.CONVERGED
        elif found.status == 1:
            status = Status.STEP_LIMIT
        return np.asarray(found.x), float(found.fun), status
