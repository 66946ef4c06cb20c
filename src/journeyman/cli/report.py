"""`journeyman report`: a run as one HTML page."""

from pathlib import Path
from typing import Annotated, Any

import typer

from journeyman.cli.options import AsJson


def report(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    output: Annotated[
        Path | None, typer.Option("--output", help="The HTML file; RUN/report.html by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a self-contained HTML page about a run.

    There is nothing to install for it, and nothing is fetched.
    """
    from journeyman.cli.output import show
    from journeyman.report import write_report
    from journeyman.runs.directory import RunDirectory, evidence_in

    evidence = evidence_in(run)
    place = RunDirectory(run)
    beside = run.resolve().with_suffix(".html")
    path = output or (place.report if place.was_begun else beside)
    clinical = place.was_begun and "icu" in str(place.stored().get("world", ""))
    note = "Not for clinical use." if clinical else ""
    write_report(evidence, path, note=note, found=_found(place))
    show({"run": str(run), "report": str(path)}, str(path), as_json=as_json)


def _found(place: Any) -> dict[str, str]:
    """Solver, status and time, which stand in a run directory beside the evidence."""
    from journeyman.report.figures import seconds
    from journeyman.runs.metrics import last_elapsed

    if not place.has_ended:
        return {}
    result = place.result()
    told = {
        "solver": str(result.get("engine")),
        "status": f"{result.get('status')}: {result.get('message')}",
    }
    elapsed = last_elapsed(place.metrics)
    return told if elapsed is None else told | {"solving": seconds(elapsed)}
