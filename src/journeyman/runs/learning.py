"""A run from its description to its result, begun or continued."""

from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from journeyman.apprentice import Apprentice, learn
from journeyman.certificate import Certificate
from journeyman.certificate.dossier import certificate_facts
from journeyman.errors import InvalidInput, NoSolution
from journeyman.progress import Event, Observer
from journeyman.runs.description import RunDescription
from journeyman.runs.directory import RunDirectory
from journeyman.runs.inputs import Inputs, world_digest, world_from
from journeyman.runs.metrics import Metrics
from journeyman.runs.solver_choice import chosen_solver
from journeyman.runs.steady_solver import SteadySolver
from journeyman.solvers import Status

SHOWN = (
    "alarm", "bound", "budgets", "expectations", "failure_probability", "gap_on_data",
    "least_possible", "lower_bounds", "premises", "trivial_bound", "vacuous", "valid", "weak",
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
    tell: Callable[[str], None],
    checkpoint_every: float | None = None,
) -> dict[str, Any]:
    """Learn as described, in an opened directory; the result as it is stored there.

    A solver that keeps its states does so every `checkpoint_every` seconds. A new run that is
    refused or has no solution leaves nothing: the corrected command finds the directory as it was.
    """
    inputs = _inputs(place, description)
    if inputs.basis.note:
        tell(inputs.basis.note)
    made_from = {"journeyman": metadata.version("journeyman"), **inputs.digests()}
    is_new = not place.was_begun
    goes_on = place.begin(description, made_from)
    if place.has_ended and not goes_on:
        result = place.result()
        if result.get("status") not in LIMITS:
            tell(f"the run in {place.path} has ended before; this is its result")
            return result
    try:
        apprentice = _learned(
            place, description, inputs, _Ways(observer, tell, checkpoint_every), goes_on
        )
    except (InvalidInput, NoSolution):
        if is_new:
            place.clear()
        raise
    result = result_of(apprentice)
    place.end(apprentice.save, result)
    return result


class _Ways(NamedTuple):
    """Who is told what, and how often states are kept."""

    observer: Observer
    tell: Callable[[str], None]
    checkpoint_every: float | None


def _learned(
    place: RunDirectory, description: RunDescription, inputs: Inputs, ways: _Ways, goes_on: bool
) -> Apprentice:
    problem = inputs.problem()
    chosen = chosen_solver(description.solver, problem, description.seed)
    solver = SteadySolver(chosen, place.checkpoints, ways.tell, ways.checkpoint_every)
    if goes_on:
        solver.forget_later_solves()
    with Metrics(place.metrics, ways.observer) as metrics:

        def watching(event: Event, /) -> None:
            metrics(event)
            solver.keep()

        return learn(
            inputs.world,
            inputs.basis,
            problem.expectation,
            cost_class=inputs.cost_class,
            constraints=inputs.budgets,
            solver=solver,
            failure_probability=description.failure_probability,
            keep_budgets=description.keep_budgets,
            seed=description.seed,
            observer=watching,
        )


def _inputs(place: RunDirectory, description: RunDescription) -> Inputs:
    """All inputs; where they do not fit, another world than at the beginning is named first."""
    try:
        return Inputs.of(description)
    except InvalidInput:
        if place.was_begun and description.world:
            world = world_from(description.world, description.world_options)
            place.require_same({"world": world_digest(world)})
        raise


def result_of(apprentice: Apprentice) -> dict[str, Any]:
    """The outcome of a run: figures of certificate and solver, and what to say about them."""
    answer, found = apprentice.answer, certificate_result(apprentice.certificate)
    if answer.reduced is not None and answer.reduced.fault:
        found["advice"] = f"{answer.reduced.fault}. {MORE_CELLS}\n{found['advice']}"
    return found | {
        "status": answer.status.name,
        "message": answer.status.message,
        "engine": answer.engine,
        "cost_weights": _cost_weights(apprentice),
        "seed": apprentice.seed,
    }


def _cost_weights(apprentice: Apprentice) -> list[dict[str, Any]] | None:
    """Names and weights of the method's own cost, in its own scale; None where it has none."""
    weights = apprentice.answer.recovered
    if weights is None or not np.isfinite(weights).all():
        return None
    names = apprentice.problem.basis.names
    return [
        {"name": name, "weight": float(weight)} for name, weight in zip(names, weights, strict=True)
    ]


def certificate_result(certificate: Certificate) -> dict[str, Any]:
    """What a certificate says, ready for JSON and for people."""
    facts = certificate_facts(certificate)
    return {name: facts[name] for name in SHOWN} | {
        "share": certificate.share,
        "summary": certificate.summary(),
        "table": certificate.table(),
        "advice": certificate.advice(),
    }
