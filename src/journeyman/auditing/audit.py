"""`audit`: does a saved certificate follow from its saved inputs?

Every figure is derived a second time from the files of `apprentice.save`, by code that shares
nothing with the code that made it: this room imports no other one. Compared are

    files       names, SHA-256 of every input, digest and form of the certificate
    inputs      laws, ranges, steps that are possible, a target that the demonstrations give
    gap         every term of every combination, their sums, lower bounds, the alarm
    limits      the largest possible gap, from the potentials that prove attainable ranges; whether
                the bound is weak or vacuous against it
    the rest    premises, budgets, intervals, expectations, and the conclusion from all of it; that
                the trace of a solver, if there is one, contradicts nothing

Figures agree to 1e-9 of their size, or of the size of what they were computed from. A term that
only guards against rounding must be large enough. No stored bound may be below the exact gap with
the errors of the expert's estimate.

In an estimated world the distances of the true laws are derived from what is declared and counted,
and what the worst of them cost is searched for anew: a stored figure may exceed it by 1e-6 of its
size and not fall short. Rollouts and sampled rows are derived from their statistics. The statistics
are compared with exact expectations and with fresh draws, up to radii that an honest run exceeds
with probability 1e-6, and with draws from the seed, which is a digest of world and policy. Where
these give other statistics and the run names another version of numpy, the audit is not complete.

A run in a large world names its code by reference. Nothing of that is imported or called unless
whoever audits says `trust_code=True`; without it everything is compared that needs no code, and
`Audit.not_derived` says what was not (`large_audit`).

*Not audited*: who wrote the files. Somebody who makes up demonstrations or counts gets a sound
certificate of them.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from journeyman.auditing import other_claims, protocol
from journeyman.auditing.costs import KNOWN
from journeyman.auditing.gap_claims import check_gap
from journeyman.auditing.large_audit import LARGE, audit_large
from journeyman.auditing.ledger import Ledger
from journeyman.auditing.outer_bounds import rounding_of
from journeyman.auditing.premise_claims import check_premises
from journeyman.auditing.reading import (
    CERTIFICATE,
    canonical,
    contents,
    json_object,
    sha256,
    whole_file,
)
from journeyman.auditing.run import ALWAYS, SOMETIMES, Run, read_run
from journeyman.auditing.schema import Schema
from journeyman.errors import AuditFailed, InvalidFile

EXPLICIT = Schema(
    protocol.KIND, protocol.VERSION, ALWAYS, SOMETIMES,
    {"alarm", "apprentice_intervals", "budgets", "expectations", "expert_intervals", "gap_on_data",
     "lower_bounds"},
)  # fmt: skip
EVERY_FILE = {CERTIFICATE, *EXPLICIT.inputs, *LARGE.inputs}
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
    """Derive every figure of a saved run again and compare.

    Damaged, missing, forged or foreign files are findings; only a directory that does not exist is
    an error. `trust_code=True` calls the functions that a run in a large world names: that of a
    stranger can do anything.

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
    ledger, open_claims = Ledger(), list[str]()
    ledger.attempt("the run", partial(_audit, ledger, open_claims, place, trust_code is True))
    left = (*ledger.open, *open_claims)
    return Audit(not ledger.findings, tuple(ledger.findings), ledger.checked, left)


def _audit(ledger: Ledger, open_claims: list[str], place: Path, trust_code: bool) -> None:
    paths = contents(place)
    if not ledger.check(CERTIFICATE in paths, f"there is no {CERTIFICATE}: no run was finished"):
        return
    files: dict[str, bytes] = {}
    for name in EVERY_FILE & set(paths):
        data = ledger.attempt(name, partial(whole_file, paths[name]))
        if data is not None:
            files[name] = data
    certificate = files.pop(CERTIFICATE, b"")
    facts = ledger.attempt(CERTIFICATE, partial(json_object, certificate))
    if facts is None:
        return
    schema = LARGE if facts.get("kind") == protocol.LARGE_KIND else EXPLICIT
    if not _is_sound(ledger, schema, facts, certificate):
        return
    for name in sorted(set(paths) - {CERTIFICATE, *schema.inputs}):
        ledger.check(False, f"{name} does not belong to a run")
    files = {name: data for name, data in files.items() if name in schema.inputs}
    _check_files(ledger, schema, facts, files)
    if schema is LARGE:
        open_claims += audit_large(ledger, facts, files, place if trust_code else None)
        return
    run = ledger.attempt("the inputs", lambda: read_run(files, facts))
    if run is not None:
        _check_claims(ledger, facts, run)


def _is_sound(ledger: Ledger, schema: Schema, facts: dict[str, Any], data: bytes) -> bool:
    """Whether a certificate can be read by the rules of this version."""
    ledger.equal("the kind of file", facts.get("kind"), schema.kind)
    version = facts.get("version")
    if not ledger.check(
        type(version) is int and version == schema.version,
        f"version {version!r} of the schema cannot be audited, only {schema.version}, because "
        "figures are derived by other rules: certify and save again",
    ):
        return False
    lacking, strange = sorted(schema.keys - set(facts)), sorted(set(facts) - schema.keys)
    ledger.check(not strange, f"{CERTIFICATE} holds the unknown parts {strange}")
    if not ledger.check(not lacking, f"{CERTIFICATE} lacks the parts {lacking}"):
        return False
    signed = {name: value for name, value in facts.items() if name != "digest"}
    ledger.equal("the digest of the certificate", facts["digest"], sha256(canonical(signed)))
    ledger.check(canonical(facts) == data, f"{CERTIFICATE} is not in canonical form")
    versions = facts["software"]
    known = isinstance(versions, dict) and sorted(versions) == SOFTWARE
    ledger.check(
        known and all(isinstance(word, str) for word in versions.values()),
        "the versions of the software are not told",
    )
    seeds = facts["seeds"]
    ledger.check(isinstance(seeds, dict) and "solver" in seeds, "the seeds are not told")
    delta = facts["failure_probability"]
    return ledger.check(
        isinstance(delta, float) and 0 < delta < 1, f"the failure probability is {delta!r}"
    )


def _check_files(
    ledger: Ledger, schema: Schema, facts: dict[str, Any], files: dict[str, bytes]
) -> None:
    """Every input there, none beside them, each as it was when it was certified."""
    hashes = dict(facts["inputs"])
    for name in sorted({*schema.always, *hashes} - set(files)):
        ledger.check(False, f"{name} is missing")
    for name in sorted(set(files) - set(hashes)):
        ledger.check(False, f"{name} was not certified")
    for name in sorted(set(hashes) - set(schema.inputs)):
        ledger.check(False, f"{name} is no input of a run")
    for name in sorted(set(hashes) & set(files)):
        same = sha256(files[name]) == hashes[name]
        ledger.check(same, f"{name} is not the file that was certified: its SHA-256 differs")


def _check_claims(ledger: Ledger, facts: dict[str, Any], run: Run) -> None:
    stages: dict[str, Callable[[], None]] = {
        "the target": lambda: other_claims.check_target(ledger, run),
        "the gap": lambda: check_gap(ledger, facts, run),
        "the apprentice": lambda: other_claims.check_apprentice(ledger, facts, run),
        "the expert's intervals": lambda: other_claims.check_expert_intervals(ledger, facts, run),
        "the budgets": lambda: other_claims.check_budgets(ledger, facts, run),
        "the premises": lambda: check_premises(ledger, facts, run),
        "the trace": lambda: other_claims.check_trace(ledger, facts, run),
        "the limits": lambda: other_claims.check_limits(ledger, facts, run),
        "the conclusion": lambda: other_claims.check_conclusion(
            ledger,
            facts,
            rounding_of(run.world.horizon, run.question.costs.plain, run.world.num_states),
            known_cost=run.question.costs.kind == KNOWN,
        ),
    }
    for name, stage in stages.items():
        ledger.attempt(name, stage)
