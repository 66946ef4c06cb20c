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
from scipy import sparse

from journeyman.checker.findings import Refused

Arrays: TypeAlias = dict[str, NDArray[Any]]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

LARGEST_FILE, LARGEST_TEXT = 4 << 30, 256 << 20
DENSEST = 1100
"""Honest data cannot be compressed further by the format of a ZIP."""
MOST_UNPACKED, CREDIBLE = 300_000_000, 64
"""Bytes that an input may unpack to: so many, or so many times its own size."""
LAW_STEPS = 8
"""Roundings per entry by which probabilities may miss a sum of one: saved laws are normalised, and
a mass that is missing or too much would multiply every potential."""


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
    return json.dumps(facts, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"


def archive(data: bytes, kind: str, *versions: int) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of an input of the given kind, in one of the given versions."""
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        members = opened.infolist()
        if len({member.filename for member in members}) < len(members):
            raise Refused("two of its members have the same name")
        for member in members:
            if member.file_size > DENSEST * (member.compress_size + 1):
                raise Refused(f"{member.filename} would unpack to {member.file_size} bytes")
        unpacked = sum(member.file_size for member in members)
        if unpacked > max(MOST_UNPACKED, CREDIBLE * len(data)):
            raise Refused(f"it would unpack to {unpacked} bytes")
        header = json_object(opened.read("header.json"))
        others = [member for member in members if member.filename != "header.json"]
        arrays = dict(_array(opened, member) for member in others)
    if header.get("kind") != kind:
        raise Refused(f"it holds {header.get('kind')!r} and not {kind!r}")
    if type(header.get("version")) is not int or header["version"] not in versions:
        raise Refused(f"version {header.get('version')!r} of a {kind} cannot be audited")
    return header, arrays


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refused("its JSON gives a name twice")
    return dict(pairs)


def _no_constant(word: str) -> float:
    raise Refused(f"its JSON holds {word}")


def _array(opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, NDArray[Any]]:
    """An array whose header promises exactly the bytes that follow it."""
    if not member.filename.endswith(".npy"):
        raise Refused(f"{member.filename} is not an array")
    data = opened.read(member)
    stream = io.BytesIO(data)
    major, _ = npy.read_magic(stream)
    reader = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, by_columns, dtype = reader(stream)
    size = dtype.itemsize
    for axis in shape:
        size *= max(axis, 0)
    if dtype.kind not in "biuf" or min(shape, default=0) < 0 or size != len(data) - stream.tell():
        raise Refused(f"{member.filename} does not hold the array that its header announces")
    flat = np.frombuffer(data, dtype, offset=stream.tell()) if size else np.empty(0, dtype)
    order: Any = "F" if by_columns else "C"
    return member.filename.removesuffix(".npy"), flat.reshape(shape, order=order)


def reals(arrays: Arrays, name: str, ndim: int, size: int | None = None) -> Floats:
    """A finite array of doubles with the given number of axes and entries on the first; it cannot
    be written to."""
    found = arrays[name].astype(np.float64, copy=False)
    if found.ndim != ndim or (size is not None and found.shape[0] != size):
        raise Refused(f"{name} has shape {found.shape}")
    if not np.isfinite(found).all():
        raise Refused(f"{name} is not finite")
    return found


def wholes(arrays: Arrays, name: str) -> Ints:
    """A list of whole numbers."""
    if arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1:
        raise Refused(f"{name} is not a list of whole numbers")
    return arrays[name].astype(np.int64, copy=False)


def words(header: dict[str, Any], name: str) -> list[str]:
    """A list of words from a header."""
    found = header.get(name)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise Refused(f"{name} is not a list of words")
    return found


def sparse_rows(arrays: Arrays, prefix: str, shape: tuple[int, int]) -> Any:
    """A CSR matrix with sorted columns; its structure is checked before compiled code sees it."""
    indices, ends = arrays[f"{prefix}indices"], wholes(arrays, f"{prefix}indptr")
    if indices.dtype.kind not in "iu" or indices.ndim != 1:
        raise Refused(f"{prefix}indices is not a list of whole numbers")
    data = reals(arrays, f"{prefix}data", 1)
    sound = ends.size == shape[0] + 1 and ends[0] == 0 and ends[-1] == data.size == indices.size
    if not sound or (ends[1:] < ends[:-1]).any():
        raise Refused("a sparse matrix has no sound structure")
    if indices.size and (indices.min() < 0 or indices.max() >= shape[1]):
        raise Refused("a sparse matrix has no sound structure")
    falls, begun = indices[1:] <= indices[:-1], ends[1:-1]
    falls[begun[(begun > 0) & (begun < indices.size)] - 1] = False  # from row to row they may
    if falls.any():
        raise Refused("a sparse matrix gives an entry twice or out of order")
    return sparse.csr_array((data, indices, ends), shape=shape)


def require_law(what: str, law: Floats, starts: Ints) -> None:
    """Whether every stretch of `law` from one of `starts` to the next is a probability law."""
    entries = np.diff(np.append(starts, law.size)) + 1
    missed = np.abs(np.add.reduceat(law, starts) - 1)
    if (law < 0).any() or (missed > LAW_STEPS * np.finfo(float).eps * entries).any():
        raise Refused(f"{what} is not a probability law")


def dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
