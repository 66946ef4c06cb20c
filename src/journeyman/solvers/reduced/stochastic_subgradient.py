"""SGD-AL (Algorithm 1 of the paper): stochastic subgradient descent on the surrogate loss.

    theta_1 = 0
    for t = 1..T:   draw pairs ~ q1 and states ~ q2, form the unbiased subgradient g_t at theta_t
                    theta_{t+1} = project(theta_t - step_t g_t)   onto |theta|_2 <= radius
    return the policy of u = Phi theta_hat,   theta_hat = average of theta_1..theta_T

where L is the surrogate of `problem/surrogate.py`, g_t its sampled subgradient (`RowNorms` sampling
by default) and the average is weighted by t^average_power (0 is the paper's uniform one).

Guarantee. With exact penalties the loss bounds the policy's gap, gap(pi) <= L(theta_hat), whatever
the run did. How far L(theta_hat) is from the least loss is proven by a dual point: what was active
while each row was seen, averaged with the same weights and repaired (`dual_repair`). Beside
it stands the realised-regret bound in probability. CONVERGED means that the proven error is at most
`accuracy`, by default the larger of 5 % of the loss and 0.25 % of 2N/(1 - discount).

Cost. A step costs O(num_costs d) plus the entries of 2 `batch` rows, whatever the number of states;
for the infinity ball with dense rows, batch 1 and a scalar step O(num_costs + d).
An evaluation is a pass over all rows; they are made at steps that grow by a constant factor. The
repair of the dual point takes O(d^3), so it is left out of evaluations until the steps since the
last one have cost several times as much (`PROOF_SHARE`); what it would cost is counted and not
timed, so that a run in many pieces proves at the same steps as a run in one.

Reference: Kamoutsi, Banjac, Lygeros 2021, Algorithm 1; with theta_1 = 0 and the constants of the
errata. Per-coordinate steps: Duchi, Hazan, Singer 2011.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.errors import InvalidSolver
from journeyman.execution import Executor, Serial, seeds_of
from journeyman.features import Features
from journeyman.features.base import LargeFeatures, called, tabled
from journeyman.problem import Apprenticeship
from journeyman.problem.reduced import ExactPenalty, Penalty, Reduced, RowNorms, RowSampling
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.hyperparameters import (
    require_count,
    require_not_negative,
    require_positive,
    require_time_limit,
)
from journeyman.solvers.reduced.descent import (
    ROUND,
    Replicas,
    SubgradientState,
    SubgradientSteps,
    engine_of,
    exists,
    identity_of,
    optimisation_of,
)
from journeyman.solvers.reduced.dual_repair import DualRepair
from journeyman.solvers.reduced.kernels import Motion
from journeyman.solvers.reduced.large_descent import LargeDescent
from journeyman.solvers.reduced.solution import ReducedSolution, policy_solution
from journeyman.solvers.reduced.step_rules import CoordinateAdaptive, StepRule
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch
from journeyman.storage import PathLike
from journeyman.world.levels import Level

BLOCK = 2048
"""Steps between two looks at the clock."""
FIRST_EVALUATION, GROWTH = 2000, 1.25
"""Steps before the first evaluation, and the factor from each to the next."""
PROOF_SHARE = 0.25
"""Time for the repair of dual points, as a share of the time for steps."""
STEP_OVERHEAD, DRAW_SECONDS, PRODUCT_SECONDS = 5e-7, 3e-8, 2e-10
"""About how long a step, a drawn row and a product of numbers take on an ordinary core."""
OVERTIME = 0.1
"""Share of the time spent that the proof of a run may take which a limit has stopped."""
RELATIVE_ACCURACY, SCALE_ACCURACY = 0.05, 0.0025
FAILURE_PROBABILITY = 0.05


@dataclass(frozen=True, eq=False)
class StochasticSubgradient:
    """SGD-AL with the given features; good without tuning.

    Args:
        features: Phi; `LargeFeatures` for a `Apprenticeship` (there `sampling`, `accuracy` and
            `checkpoint` are of no use: rows are drawn from the features, the loss is estimated).
        penalty: of the surrogate; exact by default, `SinglePenalty(1/accuracy)` is the paper's.
        sampling: laws of the rows.
        step_rule: see `step_rules`.
        batch: pairs and states drawn per step.
        average_power: iterate t counts t^average_power times.
        radius: of the ball; by default every mixture of the columns lies in it.
        nonnegative: keep the coefficients at least zero; for nonnegative features the loss then
            has no negativity.
        steps: at most this many, in every replica.
        accuracy: proven optimisation error at which to stop; None is the default of the module,
            0 runs all steps.
        time_limit: seconds.
        seed: of the rows.
        checkpoint: a file to write the state to at every evaluation, and to continue from.
        checkpoint_every: seconds after which it is written between evaluations, too.
        executor: runs the replicas, or draws blocks of rows in a large world; the answer does not
            depend on it.
        replicas: independent descents on the executor, whose averages are averaged; what that is
            worth, `solvers/reduced/descent` says.
    """

    features: Features | LargeFeatures
    penalty: Penalty = field(default_factory=ExactPenalty)
    sampling: RowSampling = field(default_factory=RowNorms)
    step_rule: StepRule = field(default_factory=CoordinateAdaptive)
    batch: int = 32
    average_power: float = 2.0
    radius: float | None = None
    nonnegative: bool = False
    steps: int = 2_000_000
    accuracy: float | None = None
    time_limit: float | None = None
    seed: int = 0
    checkpoint: PathLike | None = None
    checkpoint_every: float | None = None
    executor: Executor | None = None
    replicas: int = 1

    def __post_init__(self) -> None:
        for name, least in (("batch", 1), ("steps", 1), ("seed", 0), ("replicas", 1)):
            require_count(name, getattr(self, name), least=least)
        for name in ("radius", "checkpoint_every"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))
        require_not_negative("average_power", self.average_power)
        if self.accuracy is not None:
            require_not_negative("accuracy", self.accuracy)
        require_time_limit(self.time_limit)
        if self.replicas > 1 and self.checkpoint is not None:
            raise InvalidSolver(
                f"checkpoint = {str(self.checkpoint)!r} with {self.replicas} replicas",
                "A checkpoint holds one descent: leave it out, or set replicas=1",
            )

    @property
    def needs(self) -> Level:
        """Arrays for features that are a matrix, callables for features of a large world."""
        return Level.EXPLICIT if isinstance(self.features, Features) else Level.STEPPED

    def run(self, problem: Apprenticeship, watch: Watch) -> Any:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        if problem.level < Level.EXPLICIT:
            return self._in_large_world().run(problem, watch)
        started = time.perf_counter()
        surrogate = Surrogate(Reduced(problem, tabled(self.features)), self.penalty, self.sampling)
        run = _Run(self, surrogate, watch)
        built = time.perf_counter()
        status = run.descend()
        answer = run.answer(status)
        return replace(
            answer, build_seconds=built - started, solve_seconds=time.perf_counter() - built
        )

    def _in_large_world(self) -> LargeDescent:
        return LargeDescent(
            called(self.features), self.penalty, self.step_rule, self.batch, self.average_power,
            self.radius, self.nonnegative, self.steps, int(self.seed), self.executor,
            int(self.replicas),
        )  # fmt: skip

    def settings(self) -> str:
        """What decides the steps, in words; when to stop is not part of it."""
        ignored = {
            "features", "steps", "accuracy", "time_limit", "seed", "checkpoint",
            "checkpoint_every", "executor", "replicas",
        }  # fmt: skip
        rule_needs_steps = type(self.step_rule).__name__ == "Constant"
        words = [
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name not in ignored
        ]
        return ", ".join([*words, f"steps={self.steps}" if rule_needs_steps else ""])


class _Run:
    """One descent: the loop with its limits, evaluations and checkpoints."""

    def __init__(self, solver: StochasticSubgradient, surrogate: Surrogate, watch: Watch) -> None:
        self.solver, self.surrogate, self.watch = solver, surrogate, watch
        self.radius = (
            surrogate.reduced.features.mixture_radius(surrogate.reduced.problem.world)
            if solver.radius is None
            else solver.radius
        )
        self.state = SubgradientState.fresh(surrogate, int(solver.seed))
        self.identity = identity_of(surrogate, solver.settings(), int(solver.seed))
        if exists(solver.checkpoint):
            assert solver.checkpoint is not None
            self.state.restore(solver.checkpoint, self.identity)
        rate = solver.step_rule.rate_for(surrogate, self.radius, solver.steps)
        self.motion = Motion(
            int(solver.batch), solver.step_rule.code, float(rate), float(self.radius),
            bool(solver.nonnegative), float(solver.average_power),
        )  # fmt: skip
        self.steps = SubgradientSteps(surrogate, self.state.source, self.motion)
        self.exact = self.steps.exact
        self.replicas = self._replicas() if solver.replicas > 1 else None
        self.repair = DualRepair(surrogate, float(self.radius))
        self.between_proofs = steps_between_proofs(self.repair, self.motion)
        self.reduced_solution, self.saved = self._evaluate(), watch.elapsed

    def _replicas(self) -> Replicas:
        solver, executor = self.solver, self.solver.executor
        seeds = seeds_of(int(solver.seed), solver.replicas)
        chosen = Serial() if executor is None else executor
        return Replicas(self.surrogate, self.motion, self.state, seeds, chosen)

    def descend(self) -> Status:
        """Take steps until one of the limits."""
        state, solver = self.state, self.solver
        if self._continues_from_evaluation and self._is_accurate:
            return Status.CONVERGED
        while True:
            if self._owes_evaluation:
                if not state.is_finite:
                    return Status.NOT_FINITE
                if not self._evaluate_and_keep():
                    return self._stopped()
                if self._is_accurate:
                    return Status.CONVERGED
            if state.step >= solver.steps:
                return Status.STEP_LIMIT
            if not self._advance(min(next_evaluation(state.step), solver.steps)):
                return self._stopped()

    def _advance(self, goal: int) -> bool:
        """Steps up to `goal`; False when it was time to stop."""
        stride = BLOCK if self.replicas is None else ROUND
        while self.state.step < goal:
            self._take(min(stride, goal - self.state.step))
            found = self.reduced_solution
            if self.watch.report(self.state.step, found.loss, found.loss_lower_bound):
                return False
            self._save(self.solver.checkpoint_every)
        return True

    @property
    def _owes_evaluation(self) -> bool:
        """Whether the loss is to be evaluated here and was not: a run may have been stopped at the
        very step, or in the middle of its proof."""
        step = self.state.step
        meant = step == self.solver.steps or (step > 0 and next_evaluation(step - 1) == step)
        return meant and not self._continues_from_evaluation

    @property
    def _continues_from_evaluation(self) -> bool:
        """Whether the state was saved where its loss had just been evaluated."""
        trace = self.state.trace
        return bool(trace) and trace[-1][0] == self.state.step

    @property
    def _is_accurate(self) -> bool:
        return self.reduced_solution.optimisation_error <= self._wanted_accuracy()

    def _take(self, count: int) -> None:
        if self.replicas is None:
            self.steps.take(self.state, count)
        else:
            self.replicas.take(count)

    def _stopped(self) -> Status:
        if not self.state.is_finite:
            return Status.NOT_FINITE
        self._save()
        before = self.reduced_solution
        enough = self.watch.elapsed * (1 + OVERTIME)
        found = self._evaluation(lambda: self.watch.elapsed > enough or self.watch.insisted)
        self.reduced_solution = max(
            found,
            ReducedSolution.of(
                self.surrogate, found.coefficients, before.witness, radius=self.radius
            ),
            key=lambda solution: solution.loss_lower_bound,
        )
        return self.watch.verdict

    def _evaluate(self) -> ReducedSolution:
        """The loss of the average, with a proof at the steps that are meant for one."""
        if self._proves_here:
            return self._evaluation(lambda: self.watch.must_stop)
        return self._evaluation(lambda: True)

    @property
    def _proves_here(self) -> bool:
        step = self.state.step
        return step >= self.solver.steps or proves_at(step, self.between_proofs)

    def _evaluation(self, stop: Callable[[], bool]) -> ReducedSolution:
        witness, _ = self.repair.sharpened(self.state.witness, stop)
        return ReducedSolution.of(self.surrogate, self.state.average, witness, radius=self.radius)

    def _evaluate_and_keep(self) -> bool:
        """Evaluate and enter it into the trace; False when a limit may have cut the proof short,
        which the trace must not show: a run that goes on from here proves it anew."""
        found, surrogate = self._evaluate(), self.surrogate
        if self._proves_here and self.watch.must_stop:
            return False
        self.reduced_solution = found
        theta = found.coefficients
        self.state.trace.append(
            (
                self.state.step, self.watch.elapsed, found.loss, surrogate.matching_error(theta),
                surrogate.negativity(theta), surrogate.flow_violation(theta),
                found.loss_lower_bound,
            )
        )  # fmt: skip
        self._save()
        return True

    def _save(self, every: float | None = 0.0) -> None:
        """Write the state, if `every` seconds have passed since it was; None is never."""
        path = self.solver.checkpoint
        if path is not None and every is not None and self.watch.elapsed >= self.saved + every:
            self.state.save(path, self.identity)
            self.saved = self.watch.elapsed

    def _wanted_accuracy(self) -> float:
        if self.solver.accuracy is not None:
            return self.solver.accuracy if self.solver.accuracy > 0 else -np.inf
        scale = self.surrogate.reduced.problem.gap_scale
        return max(RELATIVE_ACCURACY * self.reduced_solution.loss, SCALE_ACCURACY * scale)

    def answer(self, status: Status) -> Answer:
        """The policy of the average, with everything that is known about it."""
        found, problem = self.reduced_solution, self.surrogate.reduced.problem
        optimisation = optimisation_of(
            self.surrogate, self.state, self.radius, self.motion.batch, FAILURE_PROBABILITY,
            looks=0 if self.solver.accuracy == 0 else max(len(self.state.trace), 1),
        )  # fmt: skip
        return Answer(
            problem,
            status,
            engine_of(self.solver.replicas),
            policy_solution(found),
            reduced=found,
            optimisation=optimisation,
            work=Work(iterations=self.state.step),
        )


def next_evaluation(step: int) -> int:
    """The first evaluation step after `step`; the same for a run in one piece and in many."""
    goal = FIRST_EVALUATION
    while goal <= step:
        goal = max(goal + 1, int(goal * GROWTH))
    return goal


def proves_at(step: int, between: int) -> bool:
    """Whether the dual point is repaired at an evaluation step: not until `between` steps after
    the last repair; the same for a run in one piece and in many."""
    proven, here = 0, next_evaluation(0)
    while here <= step:
        if here - proven >= between:
            proven = here
        here = next_evaluation(here)
    return step > 0 and proven == step


def steps_between_proofs(repair: DualRepair, motion: Motion) -> int:
    """After how many steps a repair has cost `PROOF_SHARE` of them."""
    reduced = repair.surrogate.reduced
    width = reduced.num_features
    entries = sum(
        rows.nnz / rows.shape[0] if sparse.issparse(rows) else width
        for rows in (reduced.pair_rows, reduced.flow_rows)
    )
    products = 2 * width * (reduced.matching_target.size + 4) + 2 * motion.batch * entries
    step = STEP_OVERHEAD + 2 * DRAW_SECONDS * motion.batch + PRODUCT_SECONDS * products
    return math.ceil(repair.seconds / (PROOF_SHARE * step))
