"""`journeyman audit`: every figure of a run derived again, by code that shares none with it."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import journeyman as jm
from journeyman.cli.options import AsJson, Gap
from journeyman.errors import NotCertified


def audit(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    gap: Gap = None,
    trust_code: Annotated[
        bool,
        typer.Option("--trust-code", help="Call the functions that a run in a large world names."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Derive every figure of a run again, by other code.

    Exit 4 when one does not follow from the saved inputs, when
    nothing is certified, or when a budget is not shown to be kept.
    """
    from journeyman.cli.exit_codes import NOT_CERTIFIED
    from journeyman.cli.output import require_level, show
    from journeyman.runs.directory import evidence_in

    evidence = evidence_in(run)
    outcome = jm.audit(evidence, trust_code=trust_code)
    result = {
        "run": str(run), "passed": outcome.passed, "findings": list(outcome.findings),
        "checked": outcome.checked, "complete": outcome.complete,
        "not_derived": list(outcome.not_derived),
    }  # fmt: skip
    if not outcome.passed:
        show(result, str(outcome), as_json=as_json)
        raise typer.Exit(NOT_CERTIFIED)
    facts = json.loads((evidence / "certificate.json").read_bytes())
    show(result | {"bound": facts["bound"]}, f"{outcome}\n{_claim(facts)}", as_json=as_json)
    if gap is not None and not outcome.complete:
        raise NotCertified(
            "Not every claim was derived again, see above. What needs the code of the run is "
            "derived with --trust-code, if you trust it."
        )
    require_level(facts, gap, lambda: _advice(evidence))


def _advice(evidence: Path) -> str:
    """What would lower the bound, from the saved certificate."""
    from journeyman.report.saved_run import subject_of_run

    return subject_of_run(evidence).certificate.advice()


def _claim(facts: dict[str, Any]) -> str:
    if not facts["valid"]:
        return "The certificate says that a premise is refuted: it shows nothing."
    level = 1 - facts["failure_probability"]
    word = "vacuous" if facts["vacuous"] else "weak"
    strength = f", which is {word}" if facts["weak"] else ""
    return f"With probability {level:g} the gap is at most {float(facts['bound']):.6g}{strength}."
