"""A run from its description to its result, begun or continued."""

import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from journeyman.apprentice import Apprentice, learn
from journeyman.certificate import Certificate
from journeyman.certificate.consistency import DETERMINISTIC
from journeyman.certificate.presentation import regret_share
from journeyman.certificate.saving import certificate_facts
from journeyman.certificate.terms import PremiseStatus
from journeyman.errors import InvalidFile, InvalidInput, InvalidSolver, NoSolution
from journeyman.problem import Apprenticeship
from journeyman.progress import Event, Observer
from journeyman.runs.description import RunDescription
from journeyman.runs.interruption import Stop
from journeyman.runs.run_directory import Metrics, RunDirectory
from journeyman.runs.run_inputs import Inputs, reduced_by, world_digest, world_from
from journeyman.runs.solver_choice import chosen_solver
from journeyman.solvers import Answer, Solver, Status
from journeyman.solvers.running import Watch
from journeyman.solvers.solve import Choice
from journeyman.storage import load_arrays, write_atomically

if TYPE_CHECKING:
    from journeyman.solvers import StochasticSubgradient
    from journeyman.solvers.reduced.stochastic_primal_dual import StochasticPrimalDual

SHOWN = (
    "alarm", "bound", "budgets", "expectations", "failure_probability", "gap_on_data",
    "least_possible", "lower_bounds", "premises", "regret", "trivial_bound", "vacuous", "valid",
    "weak",
)  # fmt: skip
MORE_CELLS = (
    "Give more cells to the features (--set solver.cells=n); --solver reduced-program finds the "
    "least loss that they allow"
)
LIMITS = (Status.TIME_LIMIT.name, Status.MEMORY_LIMIT.name)
"""Outcomes that more time or memory would improve."""


def learn_in(
    place: RunDirectory,
    description: RunDescription,
    *,
    observer: Observer,
    report: Callable[[str], None],
    checkpoint_every: float | None = None,
) -> dict[str, Any]:
    """Learn as described, in an opened directory; the result as it is stored there.

    A solver that keeps its states does so every `checkpoint_every` seconds. A new run that is
    refused or has no solution leaves nothing: the corrected command finds the directory as it was.
    """
    began = time.monotonic()
    inputs = _inputs(place, description)
    if inputs.basis.note:
        report(inputs.basis.note)
    made_from = {"journeyman": metadata.version("journeyman"), **inputs.digests()}
    is_new = not place.was_begun
    goes_on = place.begin(description, made_from)
    if place.has_ended and not goes_on:
        result = place.result()
        if result.get("status") not in LIMITS:
            report(f"the run in {place.path} has ended before; this is its result")
            return result
    try:
        apprentice = _learned(
            place, description, inputs, _Ways(observer, report, checkpoint_every, began), goes_on
        )
    except (InvalidInput, NoSolution):
        if is_new:
            place.clear()
        raise
    result = result_of(apprentice)
    place.end(apprentice.save, result)
    return result


class _Ways(NamedTuple):
    """Who receives progress and remarks, and how often states are kept."""

    observer: Observer
    report: Callable[[str], None]
    checkpoint_every: float | None
    began: float
    """When the time of the run began."""


LEAST_SECONDS = 1e-3
"""For a run whose time is over when its inputs have been read: it still gets a policy."""


def _learned(
    place: RunDirectory, description: RunDescription, inputs: Inputs, ways: _Ways, goes_on: bool
) -> Apprentice:
    problem = inputs.problem()
    chosen = chosen_solver(description.solver, problem, description.seed)
    solver = ResumableSolver(chosen, place.checkpoints, ways.report, ways.checkpoint_every)
    if goes_on:
        solver.forget_later_solves()
    with Metrics(place.metrics, ways.observer) as metrics:

        def watching(event: Event, /) -> None:
            metrics(event)
            solver.keep()

        limit = solver.limit_of_all(description.solver.time_limit, ways.began)
        return learn(
            inputs.world,
            inputs.basis,
            inputs.demonstrations,
            cost_class=inputs.cost_class,
            constraints=inputs.budgets,
            expert_is=inputs.expert_is,
            solver=solver,
            failure_probability=description.failure_probability,
            keep_budgets=description.keep_budgets,
            seed=description.seed,
            time_limit=limit,
            observer=watching,
        )


def _inputs(place: RunDirectory, description: RunDescription) -> Inputs:
    """All inputs; where they do not fit, another world than at the beginning is named first."""
    try:
        return Inputs.of(description)
    except InvalidInput:
        if place.was_begun and description.world:
            world = world_from(description.world, description.world_options)
            there = reduced_by(description, world)
            place.require_same({"world": world_digest(there)})
        raise


def result_of(apprentice: Apprentice) -> dict[str, Any]:
    """The outcome of a run: numbers of certificate and solver, and what they mean in words."""
    answer, found = apprentice.answer, certificate_result(apprentice.certificate)
    if answer.reduced is not None and answer.reduced.fault:
        found["advice"] = f"{answer.reduced.fault}. {MORE_CELLS}\n{found['advice']}"
    return found | {
        "status": answer.status.name,
        "message": answer.status.message,
        "engine": answer.engine,
        "reason": answer.reason,
        "target": None if apprentice.target is None else apprentice.target.reason,
        "cost_weights": _cost_weights(apprentice),
        "likelihood": _likelihood(apprentice),
        "nonlinear_cost": _nonlinear(apprentice),
        "seed": apprentice.seed,
    }


def _cost_weights(apprentice: Apprentice) -> list[dict[str, Any]] | None:
    """Names and weights of the method's own cost, in its own scale; None where it has none."""
    weights = apprentice.answer.recovered
    if weights is None or not np.isfinite(weights).all():
        return None
    names, estimate = apprentice.problem.basis.names, apprentice.answer.likelihood
    listed: list[dict[str, Any]] = [
        {"name": name, "weight": float(weight)} for name, weight in zip(names, weights, strict=True)
    ]
    if estimate is not None:
        known = zip(listed, estimate.standard_errors, estimate.t_values, strict=True)
        for one, error, t in known:
            found = np.isfinite(error)
            one |= {
                "standard_error": float(error) if found else None,
                "t_value": float(t) if found else None,
            }
    return listed


def _nonlinear(apprentice: Apprentice) -> dict[str, Any] | None:
    """How much of a cost that is a function of the features is covered, in words."""
    found = apprentice.answer.nonlinear
    return None if found is None else {"outside": found.outside, "remark": found.remark}


def _likelihood(apprentice: Apprentice) -> dict[str, Any] | None:
    """What maximum likelihood has found beside the weights."""
    found = apprentice.answer.likelihood
    if found is None:
        return None
    return {
        "log_likelihood": found.log_likelihood,
        "uniform_log_likelihood": found.uniform_log_likelihood,
        "num_decisions": found.num_decisions,
        "remarks": list(found.remarks),
    }


def certificate_result(certificate: Certificate) -> dict[str, Any]:
    """What a certificate says, ready for JSON and for people."""
    facts = certificate_facts(certificate)
    _name_steps(facts["regret"], certificate.problem.world)
    return {name: facts[name] for name in SHOWN} | {
        "share": certificate.share,
        "regret_share": None if certificate.regret is None else regret_share(certificate),
        "summary": certificate.summary(),
        "table": certificate.table(formulas=False),
        "advice": certificate.advice(),
    }


def _name_steps(claim: dict[str, Any] | None, world: Any) -> None:
    """Steps that contradict a premise, with the names of their states and actions."""
    states, actions = (getattr(world, f"{kind}_names", None) for kind in ("state", "action"))
    if claim is None or not (states and actions):
        return

    def named(found: re.Match[str]) -> str:
        return f"(state {states[int(found[1])]!r}, action {actions[int(found[2])]!r})"

    for one in claim["premises"]:
        one["detail"] = re.sub(r"\(state (\d+), action (\d+)\)", named, one["detail"])


def refuted_declarations(result: Mapping[str, Any]) -> list[str]:
    """What was declared about the expert and is contradicted by the records, with the steps."""
    own = [one for one in result["premises"] if one["name"] == DETERMINISTIC]
    known = {one["name"] for one in result["premises"]}
    own += [
        one for one in (result.get("regret") or {}).get("premises", ()) if one["name"] not in known
    ]
    return [
        f"{one['name']}: {one['detail']}"
        for one in own
        if one["status"] == PremiseStatus.FAILED.value
    ]


class ResumableSolver:
    """A solver that can be stopped and continued: what a run gives to `learn`.

    It keeps the states of stochastic solvers, which go on from the last one, and raises `Stop` when
    it was interrupted; other solvers start again. `learn` may solve more than once, with lowered
    budgets: every solve has its own checkpoints.
    """

    def __init__(
        self,
        choice: Choice,
        directory: Path,
        report: Callable[[str], None],
        checkpoint_every: float | None = None,
    ) -> None:
        self.solver: Solver = choice.solver
        self.reason, self.directory, self.report = choice.reason, directory, report
        self.checkpoint_every = checkpoint_every
        if checkpoint_every is not None and not keeps_states(self.solver):
            raise InvalidSolver(
                f"checkpoint_every = {checkpoint_every}, but {type(self.solver).__name__} keeps no "
                "states: when it is interrupted it starts again",
                "Leave it out, or choose the solver sgd-al or primal-dual",
            )
        self.solves = 0
        self._checkpoints: Checkpoints | None = None

    @property
    def time_limit(self) -> float | None:
        return self.solver.time_limit

    def limit_of_all(self, limit: float | None, began: float) -> float | None:
        """What is left of a limit for target, solve and certificate together. A solve that can be
        continued needs the same target then, whatever time that takes: its limit is its own."""
        if limit is None or keeps_states(self.solver):
            return None
        return max(limit - (time.monotonic() - began), LEAST_SECONDS)

    @property
    def reaches_goals(self) -> bool:
        """Whether the solver's answers hold with discount 1."""
        return getattr(self.solver, "reaches_goals", False)

    @property
    def takes_averages(self) -> bool:
        """Whether the solver's answers hold with average costs."""
        return getattr(self.solver, "takes_averages", False)

    def keep(self) -> None:
        """Look for a new state; to be called now and then while the solver runs."""
        if self._checkpoints is not None:
            self._checkpoints.keep()

    def forget_later_solves(self) -> None:
        """Drop the states of all solves but the first: they follow from an answer that may change
        when the first one stops elsewhere."""
        for place in self.directory.glob("solve-*"):
            if place.name != "solve-1":
                shutil.rmtree(place)

    def run(self, problem: Apprenticeship, watch: Watch, /) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        self.solves += 1
        watch.task = type(self.solver).__name__
        if keeps_states(self.solver):
            answer = self._continued(self.solver, problem, watch)
        else:
            answer = self.solver.run(problem, watch)
        if watch.interrupted:
            raise Stop
        return replace(answer, reason=self.reason)

    def _continued(
        self,
        solver: "StochasticSubgradient | StochasticPrimalDual",
        problem: Apprenticeship,
        watch: Watch,
    ) -> Answer:
        self._checkpoints = Checkpoints(self.directory / f"solve-{self.solves}")
        step = self._checkpoints.repair()
        resumable = replace(
            solver, checkpoint=self._checkpoints.latest, checkpoint_every=self.checkpoint_every
        )
        if step is not None:
            self.report(f"going on from step {step}")
        answer: Answer = resumable.run(problem, watch)
        self._checkpoints.keep()
        return answer


RESUMABLE = ("StochasticSubgradient", "StochasticPrimalDual")
"""By name: their modules load the compiler, which most runs do without."""


def keeps_states(solver: Solver) -> "TypeGuard[StochasticSubgradient | StochasticPrimalDual]":
    """Whether a solver writes states that it can go on from."""
    return any(kind.__name__ in RESUMABLE for kind in type(solver).__mro__)


def kinds_of_states() -> tuple[tuple[str, int], ...]:
    """Kinds and versions of the states that solvers write."""
    from journeyman.solvers.reduced import descent, stochastic_primal_dual

    return (
        (descent.KIND, descent.SCHEMA_VERSION),
        (stochastic_primal_dual.KIND, stochastic_primal_dual.SCHEMA_VERSION),
    )


KEPT = 3
"""States under numbers."""
LATEST = "latest.npz"


class Checkpoints:
    """The last three states of one solve, and which of them to go on from.

    A solver writes `latest.npz`; whenever that file is a new one it is kept under the number of its
    step as well. A file that cannot be read, for instance because the disk lost a bit, is passed
    over for the one before.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.latest = directory / LATEST
        self._seen: tuple[int, int] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    def numbered(self) -> list[Path]:
        """Kept states, the newest first."""
        return sorted(self.directory.glob("step-*.npz"), reverse=True)

    def keep(self) -> None:
        """Keep the latest state under its number, if it is a new one, and drop the oldest."""
        if not self.latest.exists():
            return
        status = self.latest.stat()
        if (status.st_ino, status.st_mtime_ns) == self._seen:
            return
        self._seen = (status.st_ino, status.st_mtime_ns)
        step = step_of(self.latest)
        if step is not None:
            _link(self.latest, self.directory / f"step-{step:012d}.npz")
        for old in self.numbered()[KEPT:]:
            old.unlink()

    def repair(self) -> int | None:
        """Make `latest` the newest state that is whole; its step, or None when there is none."""
        for path in [self.latest, *self.numbered()]:
            step = step_of(path)
            if step is not None:
                if path != self.latest:
                    _link(path, self.latest)
                return step
        self.latest.unlink(missing_ok=True)
        return None


def step_of(path: Path) -> int | None:
    """The step that a state was saved at; None when the file is missing or damaged."""
    for kind, version in kinds_of_states():
        try:
            facts, _ = load_arrays(path, kind, version)
            return int(facts["step"])
        except (InvalidFile, KeyError, TypeError, ValueError):
            continue
    return None


def _link(source: Path, target: Path) -> None:
    """The same content under a second name, without copying where the file system can."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        write_atomically(target, lambda stream: stream.write(source.read_bytes()))
