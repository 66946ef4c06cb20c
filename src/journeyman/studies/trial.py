"""One solver on one problem with one seed: how it is run on a worker, and what is kept of it."""

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from importlib import metadata
from typing import Any, Self

from journeyman.arrays import FloatArray
from journeyman.certificate import Certificate, certify
from journeyman.errors import JourneymanError, MissingExtra, TaskFailed
from journeyman.problem import Apprenticeship
from journeyman.progress import quiet
from journeyman.runs.description import InvalidSettings, value_of_type
from journeyman.runs.interruption import Stop, noticing
from journeyman.solvers import Answer, solve
from journeyman.storage import digest

REFUSED, RAISED = "REFUSED", "RAISED"
"""States of trials without an answer: the method refused, or something went wrong in it."""
COUNTS = ("iterations", "forward_solves", "environment_steps", "expert_queries")
"""What methods spend, by the names of the fields."""


@dataclass(frozen=True)
class Trial:
    """What became of a trial. A number that is not known is None."""

    problem: str
    solver: str
    seed: int | None
    """None where nothing depends on one: neither the problem, nor the method."""
    status: str
    """The name of a `Status`; REFUSED when the method cannot be used on such a problem, RAISED
    when it ended in another exception."""
    message: str = ""
    """Why there is no answer."""
    engine: str = ""
    true_gap: float | None = None
    """The policy's gap to the true expert, where that one is known."""
    gap_on_data: float | None = None
    """The policy's gap to the estimate of the expert that the method was given."""
    lower_bound: float | None = None
    """No policy has a smaller gap on the data; proven by what the method found."""
    certified_bound: float | None = None
    """What `jm.certify` shows of the policy with the given probability."""
    valid: bool | None = None
    """Whether no premise of the certificate has failed."""
    vacuous: bool | None = None
    """Whether the certificate shows no more than holds for every policy."""
    weak: bool | None = None
    """Whether its bound is above half of the trivial bound; every vacuous one is."""
    budgets_kept: bool | None = None
    """Whether the certificate shows that all budgets are kept; None without budgets."""
    trivial_bound: float | None = None
    """No gap can be larger."""
    seconds: float = 0.0
    """Of solving, features included where they are made for the method; not of certifying."""
    iterations: int | None = None
    forward_solves: int | None = None
    """Known costs for which an optimal policy was planned."""
    environment_steps: int | None = None
    """Transitions that were drawn from the world."""
    expert_queries: int | None = None
    """States in which the expert was asked, beyond the demonstrations."""

    @property
    def has_policy(self) -> bool:
        return self.gap_on_data is not None

    @property
    def is_final(self) -> bool:
        """Whether a second attempt would end alike. What was no refusal may have been a full
        memory or a fault that is repaired by then."""
        return self.status != RAISED

    def facts(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        """From stored fields; ValueError when they are not those of a trial."""
        wanted = {one.name: str(one.type) for one in fields(cls)}
        if not isinstance(facts, Mapping) or set(facts) != set(wanted):
            raise ValueError("these are not the fields of a trial")
        missing = {name for name in wanted if facts[name] is None and "None" in wanted[name]}
        try:
            found: dict[str, Any] = {
                name: None if name in missing else value_of_type(wanted[name], value, name)
                for name, value in facts.items()
            }
        except InvalidSettings as fault:
            raise ValueError(str(fault)) from fault
        return cls(**found)


WARM_UP = 0.5
"""Seconds, at most, for a method that is run only for its code to be loaded."""
_warm: set[type] = set()
"""Methods that have run in this process; what they answered depends on nothing here."""
REPAIRABLE = (MissingExtra, TaskFailed)
"""Errors of this package that are not about method and problem: a package can be installed."""
SCHEMA = 1
"""Of the fields of a trial; another one makes other names."""


@dataclass(frozen=True, eq=False)
class PlannedTrial:
    """A solver with its seed on a problem, how the outcome is judged, and the names of it all.

    `truth` are the expectations of the true expert, if they are known; `preparing` are the seconds
    that it took to make the solver for the problem.
    """

    names: tuple[str, str, int | None]
    problem: Apprenticeship
    solver: Any
    truth: FloatArray | None
    time_limit: float | None
    failure_probability: float
    preparing: float = 0.0

    def named(self, trial: Trial) -> Trial:
        """A stored outcome under the names of this study."""
        problem, solver, seed = self.names
        return replace(trial, problem=problem, solver=solver, seed=seed)

    def key(self, problem_word: str, solver_word: str) -> str:
        """The word of all that decides the outcome; names are not part of it."""
        limit = self.solver.time_limit if self.time_limit is None else self.time_limit
        truth = () if self.truth is None else self.truth
        return digest(
            SCHEMA, metadata.version("journeyman"), problem_word, solver_word, truth,
            None if limit is None else float(limit), float(self.failure_probability),
        )  # fmt: skip

    def trial(self) -> Trial:
        """Solve, evaluate, certify. Whatever the method does wrong is its own row, not the end.

        A solver that was interrupted comes back with a policy, but it was the study that was to
        stop: hence `Stop`, an exception that travels from workers like any other.
        """
        blank = Trial(*self.names, status="")
        started = time.perf_counter()
        try:
            with noticing() as request:
                self._warm_up()
                request.stop_if_made()
                started = time.perf_counter()
                answer = solve(
                    self.problem, self.solver, time_limit=self.time_limit, observer=quiet
                )
                seconds = self.preparing + time.perf_counter() - started
                request.stop_if_made()
            measured = replace(blank, seconds=seconds, **_outcome(answer), **_work(answer))
            return measured if answer.solution is None else self._judged(measured, answer)
        except Stop:
            raise
        except Exception as fault:
            return failed(replace(blank, seconds=time.perf_counter() - started), fault)

    def _warm_up(self) -> None:
        """Run the method briefly when it is the first of its kind in this process.

        Importing engines and loading compiled code takes seconds, which would be counted against
        whichever trial happens to come first on a worker.
        """
        if type(self.solver) in _warm:
            return
        _warm.add(type(self.solver))
        with suppress(Exception):  # what is wrong with the method, the trial itself will show
            solve(self.problem, self.solver, time_limit=WARM_UP, observer=quiet)

    def _judged(self, measured: Trial, answer: Answer) -> Trial:
        """With what exact evaluation and the certificate show about the policy."""
        problem, true_gap = self.problem, None
        if self.truth is not None:
            reached = answer.occupancy.expectations(problem.basis)
            true_gap = problem.cost_class.gap(reached - self.truth)
        certificate: Certificate = certify(problem, answer, self.failure_probability)
        kept = [budget.is_kept for budget in certificate.budgets]
        return replace(
            measured,
            true_gap=_finite(true_gap),
            gap_on_data=_finite(answer.value),
            lower_bound=_finite(answer.lower_bound),
            certified_bound=_finite(certificate.bound),
            valid=bool(certificate.valid),
            vacuous=bool(certificate.vacuous),
            weak=bool(certificate.weak),
            budgets_kept=all(kept) if kept else None,
            trivial_bound=_finite(certificate.trivial_bound),
        )


def failed(blank: Trial, fault: Exception) -> Trial:
    """The row of a trial without an answer."""
    if isinstance(fault, JourneymanError) and not isinstance(fault, REPAIRABLE):
        return replace(blank, status=REFUSED, message=str(fault))
    return replace(blank, status=RAISED, message=f"{type(fault).__name__}: {fault}")


def _outcome(answer: Answer) -> dict[str, Any]:
    reason = (
        "" if answer.solution is not None else f"{answer.status.message}; {answer.status.remedy}"
    )
    return {"status": answer.status.name, "engine": answer.engine, "message": reason}


def _work(answer: Answer) -> dict[str, Any]:
    """Counts of the method itself; nothing is known of engines that do not count."""
    work = answer.work
    return {} if work is None else {name: int(getattr(work, name)) for name in COUNTS}


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
