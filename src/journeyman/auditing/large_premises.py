"""Claims about premises in a large world; what starts and steps are possible only code can say."""

import math
import re
from dataclasses import dataclass
from typing import Any

from journeyman.auditing import protocol
from journeyman.auditing.copies import Copies, copies_of, walked_keys
from journeyman.auditing.draws import settle
from journeyman.auditing.large_run import MIXTURE, ROWS, LargeRun
from journeyman.auditing.ledger import Ledger
from journeyman.auditing.premise_claims import (
    COPIED,
    DECLARED,
    EXACT_LAWS,
    FAILED,
    FRESH_ROLLOUTS,
    FRESH_ROWS,
    GIVEN,
    INDEPENDENT,
    TESTED,
    check_copies,
    check_test,
)
from journeyman.auditing.premise_claims import STARTS as LIKELY_STARTS
from journeyman.auditing.premise_claims import STEPS as LIKELY_STEPS
from journeyman.auditing.reading import Refused

RANGES = "costs lie in their declared range"
STARTS, STEPS = "start states are possible", "steps are possible"
SIMULATOR = "the simulator is the world the expert acted in"
CANDIDATES = "rollouts are independent of the candidates"
TABLES = "costs of one factor are those of their tables"
AGREE, DRAWN = "successors and predecessors agree", "draws of features follow their law"
TAKEN = "features and predecessors are what they declare"
SEPARATE = "rollouts are independent of one another"
DIGEST = "a digest of problem and policy"


@dataclass(frozen=True)
class Tested:
    """What code says: whether all recorded starts and steps can happen (None where the world does
    not say, or there are none), log e-values against their laws, and whether costs have tables."""

    starts: bool | None = None
    steps: bool | None = None
    log_starts: float | None = None
    log_steps: float | None = None
    tables: bool = False
    followed: int | None = None
    """Steps there and back, where rows were drawn; whether all agree."""
    agree: bool = True
    log_draws: float | None = None
    copies: Copies | None = None
    separate: float | None = None
    """p-value of the test that walks are independent of one another."""


def check_large_premises(
    ledger: Ledger, facts: dict[str, Any], run: LargeRun, found: Tested | None
) -> None:
    """That the list is complete, and each entry; verdicts of tests only where they were `found`."""
    stored = facts["premises"]
    names = [one["name"] for one in stored]
    tables = [TABLES] * (run.kind == ROWS and TABLES in names)
    told = dict(zip(names, stored, strict=True))
    rows = [AGREE, DRAWN, TAKEN] if run.kind == ROWS else [SEPARATE]
    if not ledger.equal("the list of premises", names, [*_names(run, told), *tables, *rows]):
        return
    if found is not None and run.kind == ROWS:
        ledger.equal("the premise about tables", bool(tables), found.tables)
    tested = {STARTS, STEPS, LIKELY_STARTS, LIKELY_STEPS, AGREE, DRAWN, SEPARATE}
    tested |= {COPIED} if run.walked else set()
    for name in set(names) - tested:
        outline = (told[name]["verdict"], told[name]["level"])
        ledger.equal(f"the premise that {name}", outline, (DECLARED, None))
    if run.episodes is not None:
        said = f"the {len(run.episodes.totals)} episodes" in told[INDEPENDENT]["detail"]
        ledger.check(said, "the premise of independence speaks of another number of episodes")
    ledger.check(
        re.match(_draws(run), told[_drawing(run)]["detail"]) is not None,
        "the premise about draws tells of another number or seed",
    )
    if COPIED in told:
        _check_copied(ledger, run, told[COPIED], found)
    if run.walked is not None and STARTS in told:
        _check_tests(ledger, run, told, found)
    if run.kind == ROWS:
        _check_rows(ledger, run, told, found)
    else:
        _check_separate(ledger, run, told[SEPARATE], found)


def _check_separate(
    ledger: Ledger, run: LargeRun, stored: dict[str, Any], found: Tested | None
) -> None:
    """A test by batches of walks: its level, its p-value, and what follows from it."""
    level, attempt = protocol.PREMISE_LEVEL, Ledger()
    ledger.equal(f"the level of the test that {SEPARATE}", stored["level"], level)
    said = re.match(
        rf"p-value (\S+) from {protocol.BATCHES} batches of {protocol.BATCH_WALKS} walks"
        + (rf" of each of {len(run.drawn)} candidates" if len(run.drawn) > 1 else "")
        + rf", refuted up to {level:g}",
        stored["detail"],
    )
    if not ledger.check(said is not None, f"the test that {SEPARATE} tells of no p-value"):
        return
    assert said is not None
    value = float(said[1])
    if found is not None and found.separate is not None:
        close = abs(value - found.separate) <= 0.01 * found.separate
        attempt.check(close, f"the p-value that {SEPARATE} is {value!r}, not {found.separate!r}")
        value = found.separate
    verdict = FAILED if value <= level else TESTED
    attempt.equal(f"the verdict that {SEPARATE}", stored["verdict"], verdict)
    settle(ledger, attempt, same_numpy=run.same_numpy)


def _check_rows(ledger: Ledger, run: LargeRun, told: dict[str, Any], found: Tested | None) -> None:
    """Steps there and back, and bets against the laws of draws."""
    agree = told[AGREE]
    outline = (agree["verdict"], agree["level"])
    ledger.check(outline in ((TESTED, 0.0), (FAILED, 0.0)), f"the premise that {AGREE} is no test")
    if found is not None and found.followed is not None:
        verdict = TESTED if found.agree else FAILED
        ledger.equal(f"the verdict that {AGREE}", agree["verdict"], verdict)
        said = agree["detail"] == f"{found.followed} steps were followed there and back"
        ledger.check(
            said or not found.agree, f"the test that {AGREE} tells of another number of steps"
        )
    attempt = Ledger()
    derived = _log_value(told[DRAWN], found and found.log_draws)
    check_test(attempt, told[DRAWN], derived, run.evaluation["rows"])
    settle(ledger, attempt, same_numpy=run.same_numpy)


def _check_copied(
    ledger: Ledger, run: LargeRun, stored: dict[str, Any], found: Tested | None
) -> None:
    """Equal episodes can be counted without code; how likely they are it has to say."""
    if run.walked is None:
        assert run.episodes is not None
        totals = run.episodes.totals
        repeats = len(totals) - len({row.tobytes() for row in totals + 0.0})
        said = f": {repeats} of {len(totals)} episodes have the totals of another"
        ledger.check(said in stored["detail"], "the premise about copies tells of other numbers")
        return
    copies = found.copies if found is not None else None
    if copies is None:
        walked = run.walked
        columns = (walked.states, walked.actions, walked.following, walked.lengths)
        copies = copies_of(walked_keys(*columns), None)
        sound = (stored["verdict"], stored["level"]) == (DECLARED, None)
        if not sound:
            check_test(ledger, stored, _log_value(stored, None), copies.episodes)
    check_copies(ledger, stored, copies)


def _check_tests(ledger: Ledger, run: LargeRun, told: dict[str, Any], found: Tested | None) -> None:
    """Possible starts and steps, and bets against their laws."""
    if run.walked is None:
        return
    starts, steps = run.walked.lengths.size, run.walked.states.size
    _check_outline(ledger, told[STARTS], f"{starts} starts")
    _check_outline(ledger, told[STEPS], f"{steps} steps")
    if found is not None:
        _check_verdict(ledger, told[STARTS], found.starts)
        _check_verdict(ledger, told[STEPS], found.steps)
    bets = (
        (LIKELY_STARTS, starts, found and found.log_starts),
        (LIKELY_STEPS, min(steps, protocol.TESTED_STEPS), found and found.log_steps),
    )
    for name, count, log_value in bets:
        if name in told:
            attempt = Ledger()
            check_test(attempt, told[name], _log_value(told[name], log_value), count)
            settle(ledger, attempt, same_numpy=run.same_numpy or name == LIKELY_STEPS)


def _log_value(stored: dict[str, Any], derived: Any) -> float:
    """Of a test, as the code gives it; without code, as it is told."""
    if derived is not None:
        return float(derived)
    said = re.match(r"e-value (10\^)?(\S+) from ", stored["detail"])
    if said is None:
        raise Refused(f"the test that {stored['name']} tells of no e-value")
    figure = float(said[2])
    return figure * math.log(10) if said[1] else math.log(figure) if figure > 0 else -math.inf


def _names(run: LargeRun, told: dict[str, Any]) -> list[str]:
    """Which premises there have to be; laws are bet against where all is possible."""
    simulated = run.question.sizes is None
    found = [RANGES, GIVEN, SIMULATOR if simulated else EXACT_LAWS]
    if run.episodes is not None and simulated:
        found = [RANGES, INDEPENDENT, COPIED, SIMULATOR]
    elif run.episodes is not None:
        bets = ((STARTS, LIKELY_STARTS), (STEPS, LIKELY_STEPS))
        possible = [law for name, law in bets if told.get(name, {}).get("verdict") == TESTED]
        found = [RANGES, INDEPENDENT, COPIED, STARTS, STEPS, *possible]
    return [*found, _drawing(run)]


def _drawing(run: LargeRun) -> str:
    """The premise about draws."""
    return {MIXTURE: CANDIDATES, ROWS: FRESH_ROWS}.get(run.kind, FRESH_ROLLOUTS)


def _draws(run: LargeRun) -> str:
    """How the premise about draws begins."""
    told = run.evaluation
    if run.kind == ROWS:
        return f"{told['rows']} rows for each sum from seed {told['seed']}, {DIGEST};"
    if run.kind != MIXTURE:
        return f"{told['trajectories']} rollouts from seed {told['seed']}, {DIGEST};"
    sizes = ", ".join(str(size) for size in told["rounds"] or [run.weights.size])
    return (
        f"{told['trajectories']} rollouts of each from seed {told['seed']}, in rounds of {sizes} "
        "candidates;"
    )


def _check_outline(ledger: Ledger, stored: dict[str, Any], sample: str) -> None:
    """What a test says can be said without its code."""
    verdict, level, detail = (stored[part] for part in ("verdict", "level", "detail"))
    sound = (verdict, level) in ((TESTED, 0.0), (FAILED, 0.0), (DECLARED, None))
    ledger.check(sound, f"the premise that {stored['name']} is {verdict!r} at level {level!r}")
    if verdict == TESTED:
        said = detail == f"{sample} have positive probability"
        ledger.check(said, f"the test that {stored['name']} tells of another number")


def _check_verdict(ledger: Ledger, stored: dict[str, Any], holds: bool | None) -> None:
    verdict = DECLARED if holds is None else TESTED if holds else FAILED
    ledger.equal(f"the verdict that {stored['name']}", stored["verdict"], verdict)
