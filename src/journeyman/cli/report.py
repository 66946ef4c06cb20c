"""`journeyman report`: a run as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from journeyman.cli.options import AsJson


def report(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    output: Annotated[
        Path | None, typer.Option("--output", help="The HTML file; RUN/report.html by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a self-contained HTML page about a run: nothing to install, nothing fetched."""
    from journeyman.cli.output import show
    from journeyman.report import write_report
    from journeyman.runs.directory import RunDirectory, evidence_in

    evidence = evidence_in(run)
    place = RunDirectory(run)
    beside = run.resolve().with_suffix(".html")
    path = output or (place.report if place.was_begun else beside)
    clinical = place.was_begun and "icu" in str(place.stored().get("world", ""))
    write_report(evidence, path, note="Not for clinical use." if clinical else "")
    show({"run": str(run), "report": str(path)}, str(path), as_json=as_json)
