"""SGD-AL (Algorithm 1 of the paper): stochastic subgradient descent on the surrogate loss.

    theta_1 = 0
    for t = 1..T:   draw pairs ~ q1 and states ~ q2, form the unbiased subgradient g_t at theta_t
                    theta_{t+1} = project(theta_t - step_t g_t)   onto |theta|_2 <= radius
    return the policy of u = Phi theta_hat,   theta_hat = average of theta_1..theta_T

where L is the surrogate of `problem/surrogate.py`, g_t its sampled subgradient (`RowNorms` sampling
by default) and the average is weighted by t^average_power (0 is the paper's uniform one).

Guarantee. With exact penalties the loss bounds the policy's gap, gap(pi) <= L(theta_hat), whatever
the run did. How far L(theta_hat) is from the least loss is proven by a dual point: what was active
while each row was seen, averaged with the same weights and repaired (`dual_repair`). Beside it
stands the realised-regret bound in probability. CONVERGED means that the proven error is at most
`accuracy`, by default the larger of 5 % of the loss and 0.25 % of 2N/(1 - discount). Where rows can
only be drawn, the same steps are taken on blocks of drawn rows; the loss is estimated on others,
only the bound in probability is left, and a run ends by its steps or its time.

Cost. A step costs O(num_costs d) plus the entries of 2 `batch` rows, whatever the number of states;
for the infinity ball with dense rows, batch 1 and a scalar step O(num_costs + d).
An evaluation is a pass over all rows; they are made at steps that grow by a constant factor. The
repair of the dual point takes O(d^3) a round, so it is left out of evaluations until the steps
since the last one have cost many times as much (`PROOF_SHARE`), and at the end of a run it has as
many rounds as the steps have paid for. What it costs is counted and not timed, so that a run in
many pieces proves at the same steps as a run in one. A time limit includes the last proof.

Reference: Kamoutsi, Banjac, Lygeros 2021, Algorithm 1; with theta_1 = 0 and the constants of the
errata. Per-coordinate steps: Duchi, Hazan, Singer 2011.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from scipy import sparse

from journeyman.execution import Executor
from journeyman.features.base import DrawnFeatures, Features
from journeyman.problem import Apprenticeship
from journeyman.problem.drawn import FRESH, DrawnReduced, reduced_of
from journeyman.problem.reduced import DrawnRows, ExactPenalty, Penalty, RowNorms, RowSampling
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.answer import Answer, Details, Work
from journeyman.solvers.reduced.descent import Descent, engine_of, identity_of, optimisation_of
from journeyman.solvers.reduced.dual_repair import ALL_ROUNDS, DualRepair
from journeyman.solvers.reduced.plain_descent import Motion
from journeyman.solvers.reduced.rows import DrawnBlocks
from journeyman.solvers.reduced.solution import (
    ReducedSolution,
    policy_solution,
    wanted_accuracy,
)
from journeyman.solvers.reduced.step_rules import CoordinateAdaptive, StepRule
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_kind,
    require_not_negative,
    require_positive,
    require_time_limit,
)
from journeyman.storage import PathLike
from journeyman.world.levels import Level

FIRST_EVALUATION, GROWTH = 2000, 1.25
"""Steps before the first evaluation, and the factor from each to the next."""
FIRST_BLOCKS, BLOCK_GROWTH, FRESH_ROWS = 4, 1.4, 1 << 15
"""The same in blocks of drawn rows, and the rows that the loss is then estimated on."""
PROOF_SHARE = 0.1
"""Time for the repair of dual points, as a share of the time for steps."""
FREE_PROOF = 0.1
"""Seconds that the repair at the end of a run may take whatever the share."""
STEP_OVERHEAD, DRAW_SECONDS, PRODUCT_SECONDS = 5e-7, 3e-8, 2e-10
"""About how long a step, a drawn row and a product of numbers take on an ordinary core."""
LAST_PROOF = 0.1
"""Share of the time so far that the proof may take of a run which a limit stops, or Ctrl-C."""
FAILURE_PROBABILITY = 0.05


@dataclass(frozen=True, eq=False)
class StochasticSubgradient:
    """SGD-AL with the given features; good without tuning.

    Args:
        features: Phi; `DrawnFeatures` in a world of callables (there `sampling` and `accuracy` are
            of no use: rows are drawn from the features, the loss is estimated).
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
            worth is explained in `descent`.
    """

    takes_averages: ClassVar[bool] = True
    features: Features | DrawnFeatures
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
        require_kind(
            "features", self.features, Features | DrawnFeatures, "Give jm.features.Features(matrix)"
        )
        for name, least in (("batch", 1), ("steps", 1), ("seed", 0), ("replicas", 1)):
            require_count(name, getattr(self, name), least=least)
        for name in ("radius", "checkpoint_every"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))
        require_not_negative("average_power", self.average_power)
        if self.accuracy is not None:
            require_not_negative("accuracy", self.accuracy)
        require_time_limit(self.time_limit)

    @property
    def needs(self) -> Level:
        """Arrays for features that are a matrix, callables for features of a large world."""
        return self.features.needs

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        reduced = reduced_of(problem, self.features, int(self.seed))
        run = _Run(self, Surrogate(reduced, self.penalty, self.sampling), watch)
        built = time.perf_counter()
        answer = run.answer(run.descend())
        return replace(
            answer, build_seconds=built - started, solve_seconds=time.perf_counter() - built
        )

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
        words.append(f"steps={self.steps}" if rule_needs_steps else "")
        return ", ".join([*words, f"replicas={self.replicas}"] if self.replicas > 1 else words)


class _Run:
    """One descent: the loop with its limits, evaluations and checkpoints."""

    def __init__(self, solver: StochasticSubgradient, surrogate: Surrogate, watch: Watch) -> None:
        self.solver, self.surrogate, self.watch = solver, surrogate, watch
        reduced = surrogate.reduced
        self.radius = float(reduced.mixture_radius if solver.radius is None else solver.radius)
        rate = solver.step_rule.rate_for(surrogate, self.radius, solver.steps)
        self.motion = Motion(
            int(solver.batch), solver.step_rule.code, float(rate), self.radius,
            bool(solver.nonnegative), float(solver.average_power),
        )  # fmt: skip
        seed, replicas = int(solver.seed), int(solver.replicas)
        self.descent = Descent(surrogate, self.motion, seed, replicas, solver.executor)
        self.state, self.saved = self.descent.state, watch.elapsed
        if solver.checkpoint is not None:
            self.identity = identity_of(surrogate, solver.settings(), seed)
            if Path(solver.checkpoint).exists():
                self.descent.restore(solver.checkpoint, self.identity)
        self.found: ReducedSolution | None = None
        if isinstance(reduced, DrawnReduced):
            assert isinstance(self.state.source, DrawnBlocks)
            self.repair, self.between_proofs = None, 0
            self.schedule = Schedule(FIRST_BLOCKS, BLOCK_GROWTH, self.state.source.steps_per_block)
        else:
            self.repair = DualRepair(surrogate, self.radius)
            self.step_seconds = seconds_of_step(surrogate, self.motion)
            self.between_proofs = steps_between_proofs(self.repair, self.step_seconds)
            self.schedule = Schedule()
            self.found = self._evaluate()

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
            if not self._advance(min(self.schedule.after(state.step), solver.steps)):
                return self._stopped()

    def _advance(self, goal: int) -> bool:
        """Steps up to `goal`; False when it was time to stop."""
        while self.state.step < goal:
            self.descent.take(min(self.descent.stride, goal - self.state.step))
            found = self.found
            bounds = () if found is None else (found.loss, found.loss_lower_bound)
            if self.watch.report(self.state.step, *bounds) or self._owes_last_proof:
                return False
            self._save(self.solver.checkpoint_every)
        return True

    @property
    def _owes_last_proof(self) -> bool:
        """Whether what is left of the time is needed for a last repair of the dual point."""
        if self.repair is None:
            return False
        wanted = min(LAST_PROOF * self.watch.elapsed, ALL_ROUNDS * self.repair.round_seconds)
        return self.watch.remaining < wanted

    @property
    def _owes_evaluation(self) -> bool:
        """Whether the loss is to be evaluated here and was not: a run may have been stopped at the
        very step, or in the middle of its proof."""
        step = self.state.step
        meant = step == self.solver.steps or (step > 0 and self.schedule.after(step - 1) == step)
        return meant and not self._continues_from_evaluation

    @property
    def _continues_from_evaluation(self) -> bool:
        """Whether the state was saved where its loss had just been evaluated."""
        trace = self.descent.trace
        return bool(trace) and trace[-1][0] == self.state.step

    @property
    def _is_accurate(self) -> bool:
        """Whether the error is proven to be small; estimates prove nothing."""
        found = self.found
        if found is None or self.repair is None:
            return False
        problem = self.surrogate.reduced.problem
        return found.optimisation_error <= wanted_accuracy(
            self.solver.accuracy, found.loss, problem
        )

    def _stopped(self) -> Status:
        if not self.state.is_finite:
            return Status.NOT_FINITE
        self._save()
        before, enough = self.found, self.watch.elapsed * (1 + LAST_PROOF)
        round_seconds = 0.0 if self.repair is None else self.repair.round_seconds

        def stop() -> bool:
            left = min(enough - self.watch.elapsed, self.watch.remaining)
            return left < round_seconds or self.watch.insisted

        found = self._evaluation(stop, ALL_ROUNDS)
        if before is not None and self.repair is not None:
            again = ReducedSolution.of(
                self.surrogate, found.coefficients, before.witness, radius=self.radius
            )
            found = max(found, again, key=lambda solution: solution.loss_lower_bound)
        self.found = found
        return self.watch.stop_status

    def _evaluate(self) -> ReducedSolution:
        """The loss of the average, with a proof at the steps that are meant for one."""
        return self._evaluation(lambda: self.watch.must_stop, self._rounds_here)

    @property
    def _rounds_here(self) -> int:
        """Of a repair at this step."""
        if self.repair is None:
            return 0
        step, proven = self.state.step, last_proof(self.state.step, self.between_proofs)
        if step > 0 and step == proven:
            return ALL_ROUNDS
        if step < self.solver.steps:
            return 0
        earned = max(FREE_PROOF, PROOF_SHARE * self.step_seconds * (step - proven))
        return int(min(ALL_ROUNDS, earned / max(self.repair.round_seconds, 1e-9)))

    def _evaluation(self, stop: Callable[[], bool], rounds: int) -> ReducedSolution:
        average = self.state.average
        if self.repair is None:
            return ReducedSolution.estimated(self.surrogate, average, self._fresh, self.radius)
        witness, _ = self.repair.sharpened(self.state.witness, stop, rounds)
        return ReducedSolution.of(self.surrogate, average, witness, radius=self.radius)

    @cached_property
    def _fresh(self) -> DrawnRows:
        """Rows that no step has seen, the same ones for every estimate."""
        assert isinstance(self.surrogate.reduced, DrawnReduced)
        return self.surrogate.reduced.drawn(FRESH_ROWS, FRESH, 0)

    def _evaluate_and_keep(self) -> bool:
        """Evaluate and enter it into the trace; False when a limit may have cut the proof short,
        which the trace must not show: a run that goes on from here proves it anew."""
        found, surrogate = self._evaluate(), self.surrogate
        if self._rounds_here and self.watch.must_stop:
            return False
        self.found = found
        theta = found.coefficients
        if self.repair is None:
            negativity, flow = surrogate.estimated_violations(theta, self._fresh)
        else:
            negativity, flow = surrogate.negativity(theta), surrogate.flow_violation(theta)
        self.descent.trace.append(
            (
                self.state.step, self.watch.elapsed, found.loss, found.matching_error, negativity,
                flow, found.loss_lower_bound, found.sampled_error or 0.0,
            )
        )  # fmt: skip
        self._save()
        return True

    def _save(self, every: float | None = 0.0) -> None:
        """Write the state, if `every` seconds have passed since it was; None is never."""
        path = self.solver.checkpoint
        if path is not None and every is not None and self.watch.elapsed >= self.saved + every:
            self.descent.save(path, self.identity)
            self.saved = self.watch.elapsed

    def answer(self, status: Status) -> Answer:
        """The policy of the average, with everything that is known about it."""
        found, problem = self.found, self.surrogate.reduced.problem
        if found is None:
            found = self._evaluation(lambda: True, 0)
        looked = self.repair is not None and self.solver.accuracy != 0
        optimisation = optimisation_of(
            self.descent, self.radius, FAILURE_PROBABILITY,
            looks=max(len(self.descent.trace), 1) if looked else 0,
        )  # fmt: skip
        work = Work(iterations=self.state.step)
        return Answer(
            problem, status, engine_of(self.solver.replicas), policy_solution(found),
            Details(reduced=found, optimisation=optimisation, work=work),
        )  # fmt: skip


@dataclass(frozen=True)
class Schedule:
    """The steps at which a run evaluates its loss: the same for a run in one piece and in many."""

    first: int = FIRST_EVALUATION
    growth: float = GROWTH
    unit: int = 1

    def after(self, step: int) -> int:
        """The first evaluation step after `step`."""
        goal = self.first
        while goal * self.unit <= step:
            goal = max(goal + 1, int(goal * self.growth))
        return goal * self.unit


def last_proof(step: int, between: int) -> int:
    """The last evaluation step up to `step` at which the dual point is repaired, or 0: each is at
    least `between` steps after the one before, the same for a run in one piece and in many."""
    schedule = Schedule()
    proven, here = 0, schedule.after(0)
    while here <= step:
        if here - proven >= between:
            proven = here
        here = schedule.after(here)
    return proven


def steps_between_proofs(repair: DualRepair, step_seconds: float) -> int:
    """After how many steps a repair has cost `PROOF_SHARE` of them."""
    return math.ceil(ALL_ROUNDS * repair.round_seconds / (PROOF_SHARE * step_seconds))


def seconds_of_step(surrogate: Surrogate, motion: Motion) -> float:
    """About how long a step takes: the same on every machine."""
    reduced = surrogate.reduced
    width = reduced.num_features
    entries = sum(
        rows.nnz / rows.shape[0] if sparse.issparse(rows) else width
        for rows in (reduced.pair_rows, reduced.flow_rows)
    )
    products = 2 * width * (reduced.matching_target.size + 4) + 2 * motion.batch * entries
    return STEP_OVERHEAD + 2 * DRAW_SECONDS * motion.batch + PRODUCT_SECONDS * products
