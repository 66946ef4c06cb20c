"""`journeyman doctor`: what is installed, which engines run, and whether it all works here."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import typer

import journeyman as jm
from journeyman.cli.exit_codes import LIMIT
from journeyman.cli.options import AsJson
from journeyman.cli.output import aligned, show

PACKAGES = ("numpy", "scipy", "numba", "highspy", "highspy-extras", "clarabel", "typer", "rich")
OPTIONAL = ("gymnasium", "seals", "icu-sepsis", "minari", "pyarrow", "ray", "hypothesis")


def doctor(as_json: AsJson = False) -> None:
    """Show versions and engines, and try everything out.

    A few seconds of recording, learning, saving and auditing.
    """

    result: dict[str, Any] = {
        "journeyman": jm.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "extras": {name: _version(name) for name in OPTIONAL},
        "engines": _engines(),
        "self_test": _self_test(),
    }
    rows: dict[str, object] = {}
    for name, value in result.items():
        rows |= (
            {f"{name}: {key}": "missing" if one is None else one for key, one in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
    sound = result["self_test"]["outcome"] == "passed" and "works" in result["engines"].values()
    rows["result"] = "all is well" if sound else "something is wrong: see above"
    show(result | {"sound": sound}, aligned(rows), as_json=as_json)
    if not sound:
        raise typer.Exit(LIMIT)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _engines() -> dict[str, str]:
    """Every engine of the linear program, tried on a problem of a few states."""
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    problem = jm.Apprenticeship(
        world, basis, jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    )
    return {engine.value: _tried(problem, engine) for engine in jm.solvers.Engine}


def _tried(problem: jm.Apprenticeship, engine: jm.solvers.Engine) -> str:
    try:
        answer = jm.solve(problem, jm.LinearProgram(engine=engine))
    except Exception as fault:  # whatever a broken installation raises is the finding
        return f"fails: {fault}"
    return "works" if answer.status is jm.Status.OPTIMAL else f"fails: {answer.status.name}"


def _self_test() -> dict[str, Any]:
    """The whole way, on a small grid: record, learn, save, audit."""
    started = perf_counter()
    try:
        world, basis, expert = jm.gallery.grid(4, macro_cells=2)
        demos = jm.record(world, expert, trajectories=50, horizon=40, seed=0)
        with TemporaryDirectory() as place:
            jm.learn(world, basis, demos).save(Path(place) / "run")
            outcome = "passed" if jm.audit(Path(place) / "run").passed else "the audit failed"
    except Exception as fault:  # whatever a broken installation raises is the finding
        outcome = f"failed: {type(fault).__name__}: {fault}"
    return {"outcome": outcome, "seconds": round(perf_counter() - started, 2)}
