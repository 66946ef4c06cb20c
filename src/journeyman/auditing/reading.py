"""Files of a run, read without trust: nothing is executed, nothing unpacks beyond its promise.

An input is a ZIP of `.npy` arrays and a `header.json`. Everything here takes bytes that were read
once, so that what is hashed is what is used.
"""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

Arrays: TypeAlias = dict[str, NDArray[Any]]

CERTIFICATE = "certificate.json"
LARGEST_FILE = 4 << 30
LARGEST_TEXT = 256 << 20
DENSEST = 1100
"""Honest data cannot be compressed further by the format of a ZIP."""
MOST_UNPACKED, CREDIBLE = 300_000_000, 64
"""Bytes that an input may unpack to: so many, or so many times its own size."""
WORDS = {"inf": float("inf"), "-inf": float("-inf")}


class Refused(ValueError):
    """Something that a run cannot hold; its words become a finding."""


def contents(directory: Path) -> dict[str, Path]:
    """Everything that lies in a directory, by name."""
    return {path.name: path for path in sorted(directory.iterdir())}


def whole_file(path: Path) -> bytes:
    """The bytes of a regular file of bearable size."""
    if path.is_symlink() or not path.is_file():
        raise Refused("it is not a regular file")
    if path.stat().st_size > LARGEST_FILE:
        raise Refused(f"it has {path.stat().st_size} bytes")
    return path.read_bytes()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def json_object(data: bytes) -> dict[str, Any]:
    """A JSON object; a name that is given twice is refused."""
    if len(data) > LARGEST_TEXT:
        raise Refused(f"its text has {len(data)} bytes")
    found = json.loads(data, object_pairs_hook=_once, parse_constant=_no_constant)
    if not isinstance(found, dict):
        raise Refused("it is not a JSON object")
    return found


def canonical(facts: dict[str, Any]) -> bytes:
    """The form in which a certificate is written and digested."""
    text = json.dumps(facts, indent=1, sort_keys=True, allow_nan=False)
    return text.encode() + b"\n"


def number(value: Any) -> float:
    """A number, or one of the words for infinity."""
    if isinstance(value, str) and value in WORDS:
        return WORDS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(f"{value!r} stands where a number belongs")
    return float(value)


def archive(data: bytes, kind: str, *versions: int) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of an input of the given kind, in one of the given versions."""
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        members = opened.infolist()
        names = [member.filename for member in members]
        if len(set(names)) < len(names):
            raise Refused("two of its members have the same name")
        for member in members:
            _refuse_bomb(member)
        unpacked = sum(member.file_size for member in members)
        if unpacked > max(MOST_UNPACKED, CREDIBLE * len(data)):
            raise Refused(f"it would unpack to {unpacked} bytes")
        header = json_object(opened.read("header.json"))
        others = [member for member in members if member.filename != "header.json"]
        arrays = dict(_array(opened, member) for member in others)
    if header.get("kind") != kind:
        raise Refused(f"it holds {header.get('kind')!r} and not {kind!r}")
    version = header.get("version")
    if type(version) is not int or version not in versions:
        raise Refused(f"version {header.get('version')!r} of a {kind} cannot be audited")
    return header, arrays


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refused("its JSON gives a name twice")
    return dict(pairs)


def _no_constant(word: str) -> float:
    raise Refused(f"its JSON holds {word}")


def _refuse_bomb(member: zipfile.ZipInfo) -> None:
    if member.file_size > DENSEST * (member.compress_size + 1):
        raise Refused(f"{member.filename} would unpack to {member.file_size} bytes")


def _array(opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, NDArray[Any]]:
    """An array whose header promises exactly the bytes that follow it."""
    if not member.filename.endswith(".npy"):
        raise Refused(f"{member.filename} is not an array")
    stream = io.BytesIO(opened.read(member))
    major, _ = npy.read_magic(stream)
    reader = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, _, dtype = reader(stream)
    size = dtype.itemsize
    for axis in shape:
        size *= max(axis, 0)
    if dtype.kind not in "biuf" or size != len(stream.getbuffer()) - stream.tell():
        raise Refused(f"{member.filename} does not hold the array that its header announces")
    stream.seek(0)
    return member.filename.removesuffix(".npy"), np.load(stream, allow_pickle=False)
