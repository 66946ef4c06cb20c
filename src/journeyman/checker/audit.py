"""`audit`: do the claims of a saved run follow from its evidence?

A run is a directory: `certificate.json` with every claim, and the files of inputs and evidence that
it names with their SHA-256. This package shares no code with what wrote them. Compared are

    files       names, SHA-256 of every file, digest and form of the certificate
    inputs      laws, ranges, steps that are possible, a target that the demonstrations give
    claims      every term of every combination, their sums, lower bounds, the alarm, the largest
                possible gap, premises, budgets, intervals, expectations, and the conclusion from
                all of it; that the trace of a solver, if there is one, contradicts nothing

Numbers agree to 1e-9 of their size, or of the size of what they were computed from. Expectations of
the policy rest on stored visits, whose residual is part of the bound. In an estimated world the
worst laws are searched for: a stated number may exceed what they cost by 1e-6 of its size and not
fall short. Samples are drawn again from their seed, which is a digest of world and policy, and
compared with exact expectations and fresh draws, up to radii that an honest run exceeds with
probability 1e-6. Where the seed gives other statistics and the run names another version of numpy,
the audit is not complete.

A run in a world of callables names its code by reference. Nothing of that is imported or called
unless whoever audits says `trust_code=True`; without it everything is compared that needs no code,
and `Audit.not_derived` says what was not (`coded`).

A run of which nothing but records is known says how likely the policy takes the recorded actions;
that is derived from policies that were saved as numbers, and of others `not_derived`.

*Not audited*: who wrote the files. Somebody who makes up demonstrations or counts gets a sound
certificate of them.
"""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.checker import coded, explicit, recorded
from journeyman.checker.archives import canonical, json_object, sha256, whole_file
from journeyman.checker.findings import Findings
from journeyman.checker.premise_claims import check_premises
from journeyman.checker.regret import check_regret
from journeyman.errors import AuditFailed, InvalidFile

KIND, VERSION = "journeyman certificate", 9
"""Whoever changes a rule by which numbers are derived changes the version too."""
CERTIFICATE = "certificate.json"
CLAIMS = {
    "alarm", "apprentice_intervals", "bound", "budgets", "combinations", "digest", "evaluation",
    "expectations", "expert_intervals", "failure_probability", "gap_on_data", "inputs", "kind",
    "least_possible", "left_out", "lower_bounds", "premises", "regret", "seeds", "software",
    "trivial_bound", "vacuous", "valid", "version", "weak", "world",
}  # fmt: skip
SOFTWARE = ["journeyman", "numpy", "scipy"]


@dataclass(frozen=True)
class Audit:
    """The outcome of an audit."""

    passed: bool
    findings: tuple[str, ...]
    checked: int
    """How many things were compared."""
    not_derived: tuple[str, ...] = ()
    """What was not: it needs code that was not trusted, or draws that cannot be made again."""

    @property
    def complete(self) -> bool:
        """Whether every claim was derived again."""
        return not self.not_derived

    def require(self) -> "Audit":
        """This audit, or `AuditFailed` when there are findings or it is not complete.

        Whoever is content with what can be derived without code reads `passed` and `not_derived`.
        """
        if not (self.passed and self.complete):
            raise AuditFailed(str(self))
        return self

    def __str__(self) -> str:
        head = f"The audit failed: {len(self.findings)} findings in {self.checked} comparisons."
        if self.passed:
            far = "" if self.complete else " as far as it goes, and is not complete"
            head = f"The audit passed{far}: {self.checked} comparisons, no finding."
        rest = ["Not derived again:"] * bool(self.not_derived)
        lines = [*self.findings, *rest, *self.not_derived]
        listed = (line if line in rest else f"- {line}" for line in lines)
        return "\n".join([head, *listed])


def audit(directory: str | os.PathLike[str], *, trust_code: bool = False) -> Audit:
    """Check that every claim of a saved run follows from its evidence.

    Damaged, missing, forged or foreign files are findings; only a directory that does not exist is
    an error. `trust_code=True` calls the functions that a run in a world of callables names: that
    of a stranger can do anything.

    >>> import tempfile
    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=100, horizon=50, seed=0)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     jm.learn(world, basis, demos).save(place)
    ...     audit(place).passed
    True
    """
    place = Path(directory)
    if not place.is_dir():
        raise InvalidFile(f"{place} is not a directory", "Give one that apprentice.save has made")
    findings = Findings()
    findings.attempt("the run", partial(_audit, findings, place, trust_code is True))
    return Audit(
        not findings.findings, tuple(findings.findings), findings.checked, tuple(findings.open)
    )


def _audit(findings: Findings, place: Path, trust_code: bool) -> None:
    paths = {path.name: path for path in sorted(place.iterdir())}
    if not findings.check(CERTIFICATE in paths, f"there is no {CERTIFICATE}: no run was finished"):
        return
    certificate = findings.attempt(CERTIFICATE, partial(whole_file, paths[CERTIFICATE])) or b""
    facts = findings.attempt(CERTIFICATE, partial(json_object, certificate))
    if facts is None or not _is_sound(findings, facts, certificate):
        return
    kinds: dict[Any, Any] = {"explicit": explicit, "recorded": recorded}
    kind = kinds.get(facts["world"], coded)
    files = _files(findings, facts, paths, kind.ALWAYS, kind.SOMETIMES)
    run = findings.attempt("the inputs", partial(kind.read_run, files, facts))
    if kind is not explicit:
        findings.equal("the estimates that were left out", facts["left_out"], [])
        findings.check(facts["regret"] is None, "a regret is stated where nothing proves one")
    if kind is coded:
        if run is None:
            findings.leave_open("everything but the files themselves")
        else:
            coded.check_run(findings, facts, run, place if trust_code else None)
    elif run is not None and kind is recorded:
        recorded.check_run(findings, facts, run)
    elif run is not None:
        # forged numbers may be so large that what follows from them is none
        with np.errstate(over="raise", invalid="raise"):
            explicit.check_run(findings, facts, run)
            findings.attempt("the premises", partial(check_premises, findings, facts, run))
            evidence = files.get("regret.npz")
            findings.attempt("the regret", partial(check_regret, findings, facts, run, evidence))


def _is_sound(findings: Findings, facts: dict[str, Any], data: bytes) -> bool:
    """Whether a certificate can be read by the rules of this version."""
    findings.equal("the kind of file", facts.get("kind"), KIND)
    version = facts.get("version")
    if not findings.check(
        type(version) is int and version == VERSION,
        f"version {version!r} of the schema cannot be audited, only {VERSION}, because numbers are "
        "derived by other rules: certify and save again",
    ):
        return False
    lacking, strange = sorted(CLAIMS - set(facts)), sorted(set(facts) - CLAIMS)
    findings.check(not strange, f"{CERTIFICATE} holds the unknown parts {strange}")
    if not findings.check(not lacking, f"{CERTIFICATE} lacks the parts {lacking}"):
        return False
    signed = {name: value for name, value in facts.items() if name != "digest"}
    findings.equal("the digest of the certificate", facts["digest"], sha256(canonical(signed)))
    findings.check(canonical(facts) == data, f"{CERTIFICATE} is not in canonical form")
    versions, seeds, delta = (facts[part] for part in ("software", "seeds", "failure_probability"))
    known = isinstance(versions, dict) and sorted(versions) == SOFTWARE
    findings.check(
        known and all(isinstance(word, str) for word in versions.values()),
        "the versions of the software are not stated",
    )
    findings.check(
        isinstance(seeds, dict) and set(seeds) == {"solver"}
        and (seeds["solver"] is None or type(seeds["solver"]) is int),
        "the seed of the solver is not stated, or something beside it",
    )  # fmt: skip
    return findings.check(
        isinstance(delta, float) and 0 < delta < 1, f"the failure probability is {delta!r}"
    )


def _files(
    findings: Findings, facts: dict[str, Any], paths: dict[str, Path], always: tuple[str, ...],
    sometimes: tuple[str, ...],
) -> dict[str, bytes]:  # fmt: skip
    """Every input there, none beside them, each as it was when it was certified."""
    hashes, inputs = dict(facts["inputs"]), {*always, *sometimes}
    for name in sorted(set(paths) - {CERTIFICATE, *inputs}):
        findings.check(False, f"{name} does not belong to a run")
    files = {}
    for name in sorted(inputs & set(paths)):
        data = findings.attempt(name, partial(whole_file, paths[name]))
        if data is not None:
            files[name] = data
    for name in sorted({*always, *hashes} - set(files)):
        findings.check(False, f"{name} is missing")
    for name in sorted(set(files) - set(hashes)):
        findings.check(False, f"{name} was not certified")
    for name in sorted(set(hashes) - inputs):
        findings.check(False, f"{name} is no input of a run")
    for name in sorted(set(hashes) & set(files)):
        same = sha256(files[name]) == hashes[name]
        findings.check(same, f"{name} is not the file that was certified: its SHA-256 differs")
    return files
