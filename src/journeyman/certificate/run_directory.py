"""The directory of a saved run: made ready, filled, and closed with `certificate.json`.

An earlier run is replaced; anything else is a reason to refuse. Every file is written atomically,
and the certificate last, with the SHA-256 of the others: without it a directory is not a run.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from journeyman.errors import InvalidFile
from journeyman.storage import PathLike, write_atomically

KIND, LARGE_KIND = "journeyman certificate", "journeyman certificate of a large world"
CERTIFICATE, UNFINISHED = "certificate.json", "unfinished"
INPUTS = (
    "world.npz", "demonstrations.npz", "policy.npz", "problem.npz", "witness.npz", "features.npz",
    "trace.npz", "recovered.npz", "totals.npz", "code.json",
)  # fmt: skip
"""Of runs of either kind."""


def canonical(facts: Mapping[str, Any]) -> bytes:
    """The one way to write facts as JSON; floats come back to the last bit."""
    return (json.dumps(facts, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def digest_of(facts: Mapping[str, Any]) -> str:
    """SHA-256 of facts in canonical form."""
    return hashlib.sha256(canonical(facts)).hexdigest()


def prepared(directory: PathLike) -> Path:
    """An empty directory with the mark of an unfinished save."""
    place = Path(directory)
    if place.exists() and not place.is_dir():
        raise InvalidFile(f"{place} is a file", "Give a directory")
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()) and not _is_run(place):
        raise InvalidFile(
            f"{place} holds other files and no saved run", "Give a new or an empty directory"
        )
    known = {CERTIFICATE, UNFINISHED, *INPUTS}
    foreign = sorted(
        path.name for path in place.iterdir() if path.name not in known and path.name[0] != "."
    )
    if foreign:
        raise InvalidFile(
            f"{place} holds {foreign[0]!r} beside a saved run, and the audit would refuse it",
            "Move it elsewhere, or give a new directory",
        )
    write(place / UNFINISHED, b"This run was not saved to its end.\n")
    for name in (CERTIFICATE, *INPUTS):
        (place / name).unlink(missing_ok=True)
        for left_over in place.glob(f".{name}.*"):
            left_over.unlink()
    return place


def finish(place: Path, facts: Mapping[str, Any], written: Iterable[str]) -> None:
    """Write the certificate: facts, the SHA-256 of all inputs, and a digest of both."""
    hashes = {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in written}
    signed = dict(facts) | {"inputs": hashes}
    write(place / CERTIFICATE, canonical(signed | {"digest": digest_of(signed)}))
    (place / UNFINISHED).unlink()


def write(path: Path, content: bytes) -> None:
    """A small file, atomically."""

    def put(stream: BinaryIO) -> None:
        stream.write(content)

    write_atomically(path, put)


def _is_run(place: Path) -> bool:
    """Whether `place` holds a run, or what an interrupted save left."""
    if (place / UNFINISHED).exists():
        return True
    try:
        facts = json.loads((place / CERTIFICATE).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict) and facts.get("kind") in (KIND, LARGE_KIND)
