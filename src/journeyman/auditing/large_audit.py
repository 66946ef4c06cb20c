"""The audit of a run in a large world, without its code and with it.

    without code   hashes and digest; ranges and extreme costs; lengths of the record; the expert's
                   estimates from the totals of its episodes; radii, truncation and rounding from
                   the statistics of walks and rows; shares of the failure probability; sums
    with code      sources as they were; sizes, names and ranges; totals of the episodes; possible
                   starts and steps; every statistic, from its seed

The code is imported and called only when a directory is given, that is with `trust_code=True`.
"""

from pathlib import Path
from typing import Any

import numpy as np

from journeyman.auditing import protocol
from journeyman.auditing.large_claims import check_large_gap
from journeyman.auditing.large_code import Found, check_code
from journeyman.auditing.large_inputs import check_extremes
from journeyman.auditing.large_premises import check_large_premises
from journeyman.auditing.large_run import ALWAYS, ROWS, SOMETIMES, LargeRun, read_large_run
from journeyman.auditing.ledger import AGREEMENT, Ledger
from journeyman.auditing.other_claims import check_conclusion
from journeyman.auditing.outer_bounds import rounding_of
from journeyman.auditing.schema import Schema
from journeyman.auditing.seeds import large_seed

LARGE = Schema(
    protocol.LARGE_KIND, protocol.LARGE_VERSION, ALWAYS, SOMETIMES, {"evaluation", "lower_bound"}
)


def audit_large(
    ledger: Ledger, facts: dict[str, Any], files: dict[str, bytes], place: Path | None
) -> list[str]:
    """All comparisons; what was not derived again is returned."""
    run = ledger.attempt("the inputs", lambda: read_large_run(files, facts))
    if run is None:
        return ["everything but the files themselves"]
    found: Found | None = None
    if place is not None and not ledger.findings:
        ledger.attempt("the sources", lambda: run.code.check_sources(ledger))
    if place is not None and not ledger.findings:
        found = ledger.attempt("the code", lambda: check_code(ledger, run, run.code.made(place)))
    exact, tested = (None, None) if found is None else (found.exact, found.tested)
    stages = {
        "the extreme costs": lambda: check_extremes(ledger, run.question),
        "the record": lambda: _check_lengths(ledger, run),
        "the gap": lambda: check_large_gap(ledger, facts, run, exact),
        "the premises": lambda: check_large_premises(ledger, facts, run, tested),
        "the conclusion": lambda: check_conclusion(
            ledger, facts, rounding_of(run.question.horizon, run.question.costs.plain, 0)
        ),
    }
    for name, stage in stages.items():
        ledger.attempt(name, stage)
    return _not_derived(run, found, trusted=place is not None)


def _check_lengths(ledger: Ledger, run: LargeRun) -> None:
    """The time behind every episode follows from its length."""
    if run.walked is None or run.episodes is None:
        return
    lengths, missing = run.walked.lengths, run.episodes.missing
    if ledger.equal("the number of episodes", missing.size, lengths.size):
        derived = run.question.discount ** lengths.astype(float) * run.question.horizon
        ledger.check(
            (np.abs(missing - derived) <= AGREEMENT * derived).all(),
            "the unrecorded time of an episode is not that of its length",
        )


def _not_derived(run: LargeRun, found: Found | None, *, trusted: bool) -> list[str]:
    if found is not None:
        return []
    drawn = "rows" if run.kind == ROWS else "rollouts"
    what = [
        "sizes, costs and ranges of the world",
        f"means and variances of the {drawn}",
    ]
    if large_seed(run.question, run.form, None) is None:
        what.append("the seed of the draws")
    if run.kind == ROWS:
        what.append("the gap to the estimate")
    if run.walked is not None:
        what += ["what the episodes cost", "whether their starts and steps are possible"]
    why = "was not called; trust_code=True would call it"
    if trusted:
        why = "failed, or was not called because of other findings"
    return [*what, f"(the code {why}: {run.code.told})"]
