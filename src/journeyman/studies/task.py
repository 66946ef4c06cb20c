"""A trial before it is made: everything that it depends on, and how it is done on a worker."""

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

from journeyman.arrays import FloatArray
from journeyman.certificate import Certificate, certify
from journeyman.errors import JourneymanError, MissingExtra, TaskFailed
from journeyman.problem import Apprenticeship
from journeyman.progress import quiet
from journeyman.runs.interruption import Stop, noticing
from journeyman.solvers import Answer, solve
from journeyman.storage import digest
from journeyman.studies.trial import COUNTS, RAISED, REFUSED, Trial

WARM_UP = 0.5
"""Seconds, at most, for a method that is run only for its code to be loaded."""
_warm: set[type] = set()
"""Methods that have run in this process; what they answered depends on nothing here."""
MENDABLE = (MissingExtra, TaskFailed)
"""Errors of the house that say nothing about method and problem: a package can be installed."""
SCHEMA = 1
"""Of the figures of a trial; another one makes other names."""


@dataclass(frozen=True, eq=False)
class Task:
    """A solver with its seed on a problem, how the outcome is judged, and the words for it all.

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
        stop: `Stop` says so, an exception that travels from workers like any other.
        """
        blank = Trial(*self.names, status="")
        started = time.perf_counter()
        try:
            with noticing() as request:
                self._warm_up()
                request.heed()
                started = time.perf_counter()
                answer = solve(
                    self.problem, self.solver, time_limit=self.time_limit, observer=quiet
                )
                seconds = self.preparing + time.perf_counter() - started
                request.heed()
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
        with suppress(Exception):  # what is wrong with the method, the trial itself will tell
            solve(self.problem, self.solver, time_limit=WARM_UP, observer=quiet)

    def _judged(self, measured: Trial, answer: Answer) -> Trial:
        """With what exact evaluation and the certificate say about the policy."""
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
    if isinstance(fault, JourneymanError) and not isinstance(fault, MENDABLE):
        return replace(blank, status=REFUSED, message=str(fault))
    return replace(blank, status=RAISED, message=f"{type(fault).__name__}: {fault}")


def _outcome(answer: Answer) -> dict[str, Any]:
    told = "" if answer.solution is not None else f"{answer.status.message}; {answer.status.remedy}"
    return {"status": answer.status.name, "engine": answer.engine, "message": told}


def _work(answer: Answer) -> dict[str, Any]:
    """Counts of the method itself; nothing is known of engines that do not count."""
    work = answer.work
    return {} if work is None else {name: int(getattr(work, name)) for name in COUNTS}


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
