"""Maximum margin planning: costs under which the expert beats every policy by the policy's loss.

    minimise over w   F(w) = H regulariser/2 |N w/scale|^2
                             + max over policies mu of ( <loss, mu> - <w, Psi' mu - target> )

where loss(x, a) in [0, 1] is how unlike the expert a step is, H = 1/(1 - discount) and N is the
largest |psi_i scale_i|, so that `regulariser` has no unit. The maximum is how far the expert is
from beating everybody under c_w = Psi w by the margin <loss, mu> (the structured hinge loss); it is
found by one plan for the cost Psi w - loss. Here loss(x, a) = 1 - pi_E(a | x), and 1 in states
where the expert was never seen; the paper's loss is this one for deterministic experts. The paper
has several worlds with one demonstration each; here there is one world with many.

F is strongly convex. Its dual is over mixtures of the planned policies: in units v = N w/scale,
f_k = scale (Psi' mu_k - target)/(N H), l_k = <loss, mu_k>/H, and with theta in the simplex,

    F*/H = max over theta   sum_k theta_k l_k - |sum_k theta_k f_k|^2/(2 regulariser)

with v = sum_k theta_k f_k/regulariser, so every theta proves a lower bound on F*. With
`nonnegative` the weights are at least zero, as in the paper, whose planners need that (and as
wherever driving round must not be worth it); v and the dual then have the positive part of
sum_k theta_k f_k in its place, which is as smooth.

Guarantee. The paper's subgradient step v - a_t g_t with a_t = 2/(regulariser (t + 1)), which is its
step r/t with the r that strong convexity asks for, moves theta to (1 - a) theta + a e_t with
a = 2/(t + 1): it is the Frank-Wolfe method on the dual. Hence after t + 1 plans the best F seen and
the best bound are within

    (27/4) D^2 / (regulariser (t + 2))     times H

of each other (Jaggi 2013, theorem 2), where D <= 2 max over pairs of |scale psi|_2/N is the largest
distance between expectations, those of the expert among them, in units of N H. The paper states
convergence without this constant. With `corrective` theta is the best mixture of all plans so far
(the bundle method, a quadratic program with as many variables as plans): the same bound holds and
the end comes much sooner. The loop stops when F is proven within `accuracy` H of its least value,
so CONVERGED means that, whatever the engine did.

The answer's policy is optimal for the recovered cost. It is not the mixture theta, and nothing is
promised for its gap: among the policies that are optimal for one cost some may be far from the
expert. `answer.log` says how far the expert is from optimal for the recovered cost.

Cost. One plan and one evaluation per iteration; with `corrective` also a small quadratic program.

Reference: Ratliff, Bagnell and Zinkevich, "Maximum margin planning", ICML 2006; Jaggi, "Revisiting
Frank-Wolfe: projection-free sparse convex optimization", ICML 2013; Teo, Vishwanathan, Smola and
Le, "Bundle methods for regularized risk minimization", 2010.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray
from journeyman.policy import Plan, Policy, occupancy, plan
from journeyman.problem import Apprenticeship, least_cost_bound
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import (
    ExpertPolicy,
    answer_of,
    expert_policy,
    require_expert_policy,
    require_suitable,
)
from journeyman.solvers.running import (
    Advance,
    Watch,
    iterate,
    require_count,
    require_positive,
    require_time_limit,
)

ENGINE_TOLERANCE = 1e-12
"""Asked of the quadratic program's engine; what its mixture proves is computed, not believed."""


@dataclass(frozen=True)
class MaximumMarginPlanning:
    """Find costs that separate the expert from all other policies, then act optimally for them.

    Args:
        regulariser: of the weights, without unit; less of it fits the expert more closely.
        expert: the expert's policy, for the loss; by default cloned from the demonstrations.
        corrective: use the best mixture of all plans instead of the paper's step.
        nonnegative: only costs whose weights are at least zero.
        accuracy: asked-for difference between the objective and its least value, per step.
        max_iterations: plans before the solve stops.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2, randomness=0)
    >>> demos = jm.record(world, expert, trajectories=50, horizon=60, seed=0)
    >>> problem = jm.Apprenticeship(world, basis, demos)
    >>> answer = jm.solve(problem, jm.solvers.MaximumMarginPlanning())
    >>> answer.status.name, answer.recovered.size
    ('CONVERGED', 4)
    """

    regulariser: float = 0.01
    expert: Policy | None = None
    corrective: bool = True
    nonnegative: bool = False
    accuracy: float = 1e-6
    max_iterations: int = 1000
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_positive("regulariser", self.regulariser)
        require_expert_policy(self.expert)
        require_positive("accuracy", self.accuracy)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, "MaximumMarginPlanning")
        known = expert_policy(problem, self.expert, "MaximumMarginPlanning")
        margin = MarginObjective(
            problem, loss_of(known), float(self.regulariser), bool(self.nonnegative)
        )
        search = _Search(margin, self)
        status, iterations = iterate(search.advance, watch, self.max_iterations)
        weights = margin.weights(search.best)
        found = plan(problem.world, problem.cost_of(weights))
        best = least_cost_bound(problem.world, problem.cost_of(weights), found.values)
        log = (
            f"the objective is {search.upper * margin.horizon:.9g} and at least "
            f"{search.lower * margin.horizon:.9g}; the expert costs at most "
            f"{float(weights @ problem.target) - best:.6g} more than optimal for the recovered "
            f"cost; {known.source}"
        )
        return answer_of(
            problem, found.policy, status, engine=self._engine(), recovered=weights,
            work=Work(iterations=iterations, forward_solves=iterations + 1),
            seconds=watch.elapsed, log=log,
        )  # fmt: skip

    def _engine(self) -> str:
        step = "best mixtures by Clarabel" if self.corrective else "subgradient steps"
        return f"maximum margin planning, {step}"


def loss_of(known: ExpertPolicy) -> FloatArray:
    """How unlike the expert every pair is, in [0, 1]."""
    pairs = known.policy.pairs
    return np.where(known.seen[pairs.states], 1.0 - known.policy.per_pair, 1.0)


@dataclass(frozen=True, eq=False)
class Plane:
    """What one planned policy proves: F(v)/H >= regulariser/2 |v|^2 + loss - <v, features>."""

    features: FloatArray
    loss: float
    value: float
    """F(v)/H where it was planned, proven from above."""
    found: Plan


@dataclass(frozen=True, eq=False)
class MarginObjective:
    """The objective in units of the docstring: v and F/H."""

    problem: Apprenticeship
    loss: FloatArray
    regulariser: float
    nonnegative: bool = False

    @property
    def horizon(self) -> float:
        return self.problem.effective_horizon

    @cached_property
    def scale(self) -> FloatArray:
        return self.problem.cost_class.scaling(self.problem.basis.num_costs)

    @cached_property
    def unit(self) -> float:
        """N."""
        return float((self.scale * self.problem.basis.norms).max()) or 1.0

    def weights(self, v: FloatArray) -> FloatArray:
        """w, in the problem's own units."""
        return np.asarray(v * self.scale / self.unit)

    def plane(self, v: FloatArray, warm_start: Plan | None = None) -> Plane:
        """The policy that does best against the expert at v, and the objective there."""
        world, w = self.problem.world, self.weights(v)
        cost = self.problem.cost_of(w) - self.loss
        found = plan(world, cost, warm_start=warm_start)
        measure = occupancy(world, found.policy).measure
        difference = self.problem.difference(measure)
        hinge = float(w @ self.problem.target) - least_cost_bound(world, cost, found.values)
        return Plane(
            np.asarray(self.scale * difference / (self.unit * self.horizon)),
            float(self.loss @ measure) / self.horizon,
            self.regulariser / 2 * float(v @ v) + hinge / self.horizon,
            found,
        )

    def bound(self, features: FloatArray, loss: float) -> float:
        """The dual value of a mixture with these features and this loss."""
        v = self.answer(features)
        return loss - self.regulariser / 2 * float(v @ v)

    def answer(self, features: FloatArray) -> FloatArray:
        """v for a mixture with these features."""
        kept = np.maximum(features, 0.0) if self.nonnegative else features
        return np.asarray(kept / self.regulariser)


class _Search:
    """Planes so far, the mixture of them, the best iterate and the best bound."""

    def __init__(self, margin: MarginObjective, solver: MaximumMarginPlanning) -> None:
        self._margin, self._solver = margin, solver
        self._planes: list[Plane] = []
        self._theta = np.zeros(0)
        self._v = np.zeros(margin.scale.size)
        self.best, self.upper, self.lower = self._v, np.inf, -np.inf

    def advance(self) -> Advance:
        """One plan, one better bound, one step."""
        last = self._planes[-1].found if self._planes else None
        plane = self._margin.plane(self._v, last)
        if plane.value < self.upper:
            self.best, self.upper = self._v, plane.value
        self._planes.append(plane)
        features = np.array([one.features for one in self._planes])
        losses = np.array([one.loss for one in self._planes])
        self._theta = self._mixture(features, losses)
        mean = self._theta @ features
        self.lower = max(self.lower, self._margin.bound(mean, float(self._theta @ losses)))
        self._v = self._margin.answer(mean)
        H = self._margin.horizon
        close = self.upper - self.lower <= self._solver.accuracy
        return Advance(self.upper * H, self.lower * H, close)

    def _mixture(self, features: FloatArray, losses: FloatArray) -> FloatArray:
        step = 2.0 / (losses.size + 1)
        stepped = np.append((1 - step) * self._theta, step)
        if not self._solver.corrective:
            return stepped
        margin = self._margin
        proposed = best_mixture(features, losses, margin.regulariser, margin.nonnegative)
        values = [margin.bound(t @ features, float(t @ losses)) for t in (proposed, stepped)]
        return proposed if values[0] >= values[1] else stepped


def best_mixture(
    features: FloatArray, losses: FloatArray, regulariser: float, nonnegative: bool = False
) -> FloatArray:
    """theta in the simplex with (nearly) the largest dual value.

    It is the multiplier of: minimise regulariser/2 |v|^2 + t with t >= l_k - <v, f_k> for all k,
    and v >= 0 if `nonnegative`.
    """
    import clarabel

    count, size = features.shape
    quadratic = sparse.diags(np.r_[np.full(size, regulariser), 0.0], format="csc")
    rows = np.hstack([-features, -np.ones((count, 1))])
    if nonnegative:
        rows = np.vstack([rows, np.hstack([-np.eye(size), np.zeros((size, 1))])])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = ENGINE_TOLERANCE
    solver = clarabel.DefaultSolver(
        quadratic, np.r_[np.zeros(size), 1.0], sparse.csc_matrix(rows),
        np.r_[-losses, np.zeros(len(rows) - count)],
        [clarabel.NonnegativeConeT(len(rows))], settings,
    )  # fmt: skip
    found = np.nan_to_num(np.asarray(solver.solve().z), posinf=0.0)
    multipliers = np.maximum(found[:count], 0.0)
    total = float(multipliers.sum())
    return multipliers / total if total > 0 else np.full(count, 1.0 / count)
