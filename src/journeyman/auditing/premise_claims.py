"""Claims about premises: names, levels and verdicts; of the texts, the figures they rest on."""

import math
import re
from typing import Any

from journeyman.auditing import protocol
from journeyman.auditing.agreement import largest_excess, unobserved
from journeyman.auditing.copies import Copies, copies_in
from journeyman.auditing.inputs import Records
from journeyman.auditing.ledger import Ledger
from journeyman.auditing.premises import log_evidence_of_starts, log_evidence_of_steps
from journeyman.auditing.reading import number
from journeyman.auditing.run import Run
from journeyman.auditing.sampled_rows import is_supported
from journeyman.auditing.stored import ROLLOUTS, samples_of

DECLARED, TESTED, FAILED = "declared", "tested, not refuted", "failed"
GIVEN = "the declared expectations are those of the expert"
INDEPENDENT = "independent trajectories"
COPIED = "no episode was copied"
EXACT_LAWS = "the laws of the world are exact"
NEAR_LAWS = "the true laws are as near as the model says"
KNOWN_SUPPORT = "the support was known before recording"
STARTS, STEPS = "start states follow the initial law", "steps follow the transition law"
MODEL = "the expert acts in the world the model describes"
AGREES = "demonstrations agree with the estimated laws"
FRESH_ROLLOUTS = "fresh rollouts are independent of the policy"
FRESH_ROWS = "fresh rows are independent of the coefficients"
SUPPORT = "support of q: every row that counts can be drawn"
ALARM = "a policy of this world can have made the demonstrations"
DECLARATIONS = (
    GIVEN, INDEPENDENT, MODEL, FRESH_ROLLOUTS, FRESH_ROWS, EXACT_LAWS, NEAR_LAWS, KNOWN_SUPPORT,
)  # fmt: skip
UNDECIDED = 1e-6
"""Of the logarithm of an e-value, or of a distance: so close to the threshold rounding decides."""
PRINTED = 0.01
"""Relative error of a figure in a text."""


def check_premises(ledger: Ledger, facts: dict[str, Any], run: Run) -> None:
    """That the list is complete, and each of its entries."""
    stored = facts["premises"]
    names = [one["name"] for one in stored]
    if not ledger.equal("the list of premises", names, _names(run)):
        return
    told = dict(zip(names, stored, strict=True))
    for name in DECLARATIONS:
        if name in told:
            _check(ledger, told[name], DECLARED, None)
    if run.records is not None:
        _check_record(ledger, told, run, run.records)
    if KNOWN_SUPPORT in told:
        _check_support(ledger, told[KNOWN_SUPPORT]["detail"], run)
    if MODEL in told:
        begins = " and ".join(_untested(run)) + " cannot be tested exactly"
        said = told[MODEL]["detail"].startswith(begins)
        ledger.check(said, "the premise about the model speaks of other laws")
    _check_draws(ledger, told, run)
    if ALARM in told:
        verdict = FAILED if facts["alarm"] else TESTED
        _check(ledger, told[ALARM], verdict, run.failure_probability)
        radius = f"{number(facts['lower_bounds']['expert_radius']):.4g}"
        said = radius in told[ALARM]["detail"]
        ledger.check(said, "the premise about the alarm tells of another radius")


def _check_record(ledger: Ledger, told: dict[str, Any], run: Run, records: Records) -> None:
    """What is said about the demonstrations, as far as there is such a premise."""
    if INDEPENDENT in told:
        said = f"the {len(records)} episodes" in told[INDEPENDENT]["detail"]
        ledger.check(said, "the premise of independence speaks of another number of episodes")
    if COPIED in told:
        check_copies(ledger, told[COPIED], copies_in(run.world, records))
    if STARTS in told:
        evidence = log_evidence_of_starts(run.world, records)
        check_test(ledger, told[STARTS], evidence, len(records))
    if STEPS in told:
        evidence = log_evidence_of_steps(run.world, records)
        check_test(ledger, told[STEPS], evidence, _steps(records))
    if AGREES in told:
        _check_agreement(ledger, told[AGREES], run, records)


def _names(run: Run) -> list[str]:
    """Which premises the run rests on, in their order."""
    known, found = run.world.knowledge, []
    if run.estimated:
        found = [INDEPENDENT, COPIED, *[STARTS] * known.of_starts, *[STEPS] * known.of_steps]
        found += [MODEL, AGREES] * known.is_estimate
    elif run.question.expectation.get("kind") == "declared":
        found = [GIVEN]
    if not run.estimated:
        found.append(NEAR_LAWS if known.is_estimate else EXACT_LAWS)
    if known.support is not None:
        found.append(KNOWN_SUPPORT)
    if run.sampling is not None:
        found += [FRESH_ROLLOUTS] if run.sampling == ROLLOUTS else [FRESH_ROWS, SUPPORT]
    return [*found, *[ALARM] * run.estimated]


def check_copies(ledger: Ledger, stored: dict[str, Any], found: Copies) -> None:
    """Tested where the record, repeated as a whole, would be refuted; otherwise declared."""
    threshold, episodes = -math.log(protocol.PREMISE_LEVEL), found.episodes
    declared = stored["verdict"] == DECLARED
    sample = f"from {episodes} episodes, {found.repeats} of which equal an earlier one,"
    if declared:
        sample = f": {found.repeats} of {episodes} episodes equal an earlier one,"
    ledger.check(
        sample in stored["detail"], f"the premise that {COPIED} does not tell of {sample!r}"
    )
    if found.log_value is None or found.log_twice is None:
        return
    largest = max(found.log_value, found.log_twice)
    if abs(largest - threshold) <= UNDECIDED:
        return
    if largest > threshold:
        check_test(ledger, stored, found.log_value, episodes)
        return
    _check(ledger, stored, DECLARED, None)
    told = re.search(r" an e-value of (10\^)?(\S+)$", stored["detail"])
    agrees = told is not None and _tells(told[1], float(told[2]), found.log_twice)
    ledger.check(agrees, f"the premise that {COPIED} tells of another e-value")


def _check_support(ledger: Ledger, detail: str, run: Run) -> None:
    """Whether the support is the pattern of the record, and how many laws are exact by it."""
    equal, sure = run.world.knowledge.observed_support(run.world.rows)
    words = "the support equals the observed pattern"
    ledger.equal(f"that {words}", words in detail, equal)
    told = re.search(r"; (\d+) recorded pairs have one possible next state, and error 0", detail)
    ledger.equal("the laws that are exact by their support", int(told[1]) if told else 0, sure)


def _untested(run: Run) -> list[str]:
    known = run.world.knowledge
    return ["starts"] * (not known.of_starts) + ["steps"] * (not known.of_steps)


def _check_agreement(ledger: Ledger, stored: dict[str, Any], run: Run, records: Records) -> None:
    """The test refutes its premise when a distance exceeds what is allowed."""
    name, detail = stored["name"], stored["detail"]
    excess = largest_excess(run.world, records, protocol.PREMISE_LEVEL)
    ledger.equal(f"the level of the test that {name}", stored["level"], protocol.PREMISE_LEVEL)
    if abs(excess) > UNDECIDED:
        verdict = FAILED if excess > 0 else TESTED
        ledger.equal(f"the verdict that {name}", stored["verdict"], verdict)
    told = re.search(r"draws at distance (\S+), (\S+) is allowed$", detail)
    sizes = (float(told[1]), float(told[2])) if told else (math.nan, math.nan)
    close = abs(sizes[0] - sizes[1] - excess) <= PRINTED * sum(sizes) + UNDECIDED
    ledger.check(close, f"the test that {name} tells of other distances: {excess!r} is the excess")
    if run.world.knowledge.counts is None:
        return
    count, total = unobserved(run.world, records), _steps(records)
    begins = f"{count} of {total} steps ({count / max(total, 1):.0%}) were never seen"
    ledger.check(detail.startswith(begins), f"the test that {name} does not begin: {begins}")


def _check_draws(ledger: Ledger, told: dict[str, Any], run: Run) -> None:
    """Numbers and seeds in the premises about draws, and whether every row can be drawn."""
    if run.sampling is None:
        return
    sample = samples_of(run.claimed)[0]
    drawn = (told.get(FRESH_ROLLOUTS) or told[FRESH_ROWS])["detail"]
    said = re.match(
        r"(\d+) (rollouts|rows for each sum) from seed (\d+), a digest of world and policy;", drawn
    )
    ledger.check(
        said is not None and (int(said[1]), int(said[3])) == (sample.count, sample.seed),
        "the premise about fresh draws tells of another number or seed",
    )
    if run.features is not None:
        verdict = TESTED if is_supported(run.world, run.features) else FAILED
        _check(ledger, told[SUPPORT], verdict, 0.0)


def _check(ledger: Ledger, stored: dict[str, Any], verdict: str, level: float | None) -> None:
    outline = (stored["verdict"], stored["level"])
    ledger.equal(f"the premise that {stored['name']}", outline, (verdict, level))


def _steps(records: Records) -> int:
    return records.pair.size


def check_test(ledger: Ledger, stored: dict[str, Any], log_value: float, count: int) -> None:
    """A test refutes its premise from an e-value of 1/level on."""
    name, threshold = stored["name"], -math.log(protocol.PREMISE_LEVEL)
    ledger.equal(f"the level of the test that {name}", stored["level"], protocol.PREMISE_LEVEL)
    if abs(log_value - threshold) > UNDECIDED:
        verdict = FAILED if log_value > threshold else TESTED
        ledger.equal(f"the verdict that {name}", stored["verdict"], verdict)
    if log_value == math.inf:
        impossible = "of initial probability 0" in stored["detail"]
        ledger.check(impossible, f"that {name} fails for another reason than is told")
        return
    told = re.match(r"e-value (10\^)?(\S+) from (\d+) ", stored["detail"])
    if not ledger.check(told is not None, f"the test that {name} tells of no e-value"):
        return
    assert told is not None
    agrees = _tells(told[1], float(told[2]), log_value)
    ledger.check(agrees, f"the test that {name} tells of another e-value than exp({log_value!r})")
    ledger.equal(f"the sample of the test that {name}", int(told[3]), count)


def _tells(power: str | None, figure: float, log_value: float) -> bool:
    """Whether a printed figure, or power of ten, is the number whose logarithm is given."""
    if power:
        return abs(figure - log_value / math.log(10)) <= 1
    value = math.exp(min(log_value, 700.0))
    return abs(figure - value) <= PRINTED * value
