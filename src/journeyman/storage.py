"""Files that never break: atomic writes, no pickle, sizes checked before memory is asked for.

A file is a ZIP of `.npy` arrays (readable with `numpy.load`) and a `header.json` that names the
kind of value, the version of its schema, and the arrays: the names in a ZIP file's directory have
no checksum, and an array that is not always there must not get lost unnoticed. Reading executes
nothing and allocates nothing that the file itself does not back: a lying array header or a ZIP bomb
is refused first.
"""

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from journeyman.arrays import read_only
from journeyman.errors import InvalidFile

PathLike: TypeAlias = str | os.PathLike[str]
Arrays: TypeAlias = Mapping[str, NDArray[Any]]

HEADER, ARRAY, NAMES = "header.json", ".npy", "arrays"
HEADER_LIMIT = 16 << 20
UNPACKED_LIMIT = 300_000_000
"""Bytes that a file may unpack to, however small it is."""
CREDIBLE = 64
"""A large file may unpack to so many times its size: ids and laws hardly shrink to a tenth."""
COMPRESSION_LIMIT = 1100
"""DEFLATE cannot shrink honest data by more than about 1032 to 1."""
QUICKLY = 1
"""Level of DEFLATE: laws and values hardly shrink more at higher ones, which take three times as
long."""
DIRECTORY_LIMIT = 1 << 20
"""Bytes of the directory of a ZIP file; a native one has some hundred."""
END, END_64 = b"PK\x05\x06", b"PK\x06\x07"
"""What marks the end of the directory, and its extension for files beyond four gigabytes."""
END_BYTES = 22 + (1 << 16)
LARGEST_PLAIN = 1 << 32


def write_atomically(path: PathLike, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` on a temporary neighbour of `path`, then move it into place in one step.

    Killed at any moment, the old file or the new one is there, whole. Faults of the system name
    `path`, and not the neighbour.
    """
    target = Path(path)
    with naming(target):
        _write_beside(target, write)


def write_text(path: PathLike, text: str) -> None:
    """Replace a file by a text in one step."""
    write_atomically(path, lambda stream: stream.write(text.encode()))


def read_json(path: Path, limit: int, remedy: str) -> dict[str, Any]:
    """The object in a JSON file of at most `limit` bytes, or `InvalidFile`."""
    try:
        with path.open("rb") as stream:
            text = stream.read(limit + 1)
        if len(text) > limit:
            raise ValueError(f"it has more than {limit} bytes")
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError("it holds no object")
    except (OSError, ValueError, RecursionError) as fault:
        raise InvalidFile(f"{path} cannot be read as JSON: {fault}", remedy) from fault
    return content


@contextmanager
def naming(target: Path) -> Iterator[None]:
    """Faults of the system name `target`, if they name nothing, or a temporary neighbour of it."""
    try:
        yield
    except OSError as fault:
        if fault.filename is None or Path(fault.filename).name.startswith(f".{target.name}."):
            fault.filename = str(target)
        raise


def _write_beside(target: Path, write: Callable[[BinaryIO], object]) -> None:
    if not target.parent.is_dir():
        raise InvalidFile(f"{target.parent} is not a directory", "Create it before saving there")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def save_arrays(path: PathLike, kind: str, version: int, arrays: Arrays, **facts: Any) -> None:
    """Write `arrays` and the JSON-ready `facts` as one file of the given kind and version.

    Members have no time of day: equal contents make equal files.
    """
    header = json.dumps({"kind": kind, "version": version, NAMES: list(arrays), **facts})

    def write(stream: BinaryIO) -> None:
        packed = zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(stream, "w", packed, compresslevel=QUICKLY) as archive:
            with archive.open(HEADER, "w") as member:
                member.write(header.encode())
            for name, array in arrays.items():
                with archive.open(f"{name}{ARRAY}", "w", force_zip64=True) as member:
                    npy.write_array(member, np.asarray(array), allow_pickle=False)

    write_atomically(path, write)


def load_arrays(
    path: PathLike, kind: str, version: int, *, memory_limit: int | None = None
) -> tuple[dict[str, Any], Arrays]:
    """The facts and arrays of a file written by `save_arrays`, or `InvalidFile`.

    What the arrays take is within `memory_limit` bytes, or within what the size of the file makes
    credible.
    """
    try:
        refuse_long_directory(path)
        with zipfile.ZipFile(path) as archive:
            _refuse_bombs(path, archive, memory_limit)
            facts = _read_header(path, archive, kind, version)
            arrays = {
                member.filename.removesuffix(ARRAY): _read_array(path, archive, member)
                for member in archive.infolist()
                if member.filename != HEADER
            }
            _require_named(path, facts.pop(NAMES, None), arrays)
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except InvalidFile:
        raise
    except Exception as fault:  # zipfile, zlib, lzma and json have many ways to say "damaged"
        raise InvalidFile(
            f"{path} is not a whole journeyman file: {fault}", "Write it again from its source"
        ) from fault
    return facts, arrays


def _require_named(path: PathLike, names: Any, arrays: Arrays) -> None:
    """Refuse other arrays than the header names; that of older files names none."""
    if names is not None and names != list(arrays):
        raise InvalidFile(
            f"{path} should hold the arrays {names}, and holds {list(arrays)}",
            "Write it again from its source",
        )


def take(path: PathLike, arrays: Arrays, name: str) -> NDArray[Any]:
    """The array called `name`, or `InvalidFile` when the file lacks it."""
    if name not in arrays:
        raise InvalidFile(f"{path} lacks the array {name!r}", "Write it again from its source")
    return arrays[name]


def refuse_long_directory(path: PathLike) -> None:
    """Refuse a ZIP file of very many members before its directory is read."""
    size = Path(path).stat().st_size
    with Path(path).open("rb") as stream:
        stream.seek(max(0, size - END_BYTES))
        tail = stream.read()
    plain = tail[-22:-18] == END and tail[-2:] == b"\0\0"
    at = max(len(tail) - 22, 0) if plain else tail.rfind(END)
    if at < 0 or size >= LARGEST_PLAIN:
        return
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    if length > DIRECTORY_LIMIT or tail[max(at - 20, 0) : max(at - 16, 0)] == END_64:
        raise InvalidFile(
            f"{path} is a ZIP file with a directory for very many members",
            "Do not open files of doubtful origin",
        )


def _refuse_bombs(path: PathLike, archive: zipfile.ZipFile, limit: int | None) -> None:
    """Refuse what would unpack to more than is allowed, possible, or credible."""
    for member in archive.infolist():
        if member.file_size > COMPRESSION_LIMIT * max(member.compress_size, 1):
            raise InvalidFile(
                f"{path}: {member.filename} would unpack to {member.file_size} bytes",
                "Do not open files of doubtful origin",
            )
    unpacked = sum(member.file_size for member in archive.infolist())
    if limit is None:
        limit = max(UNPACKED_LIMIT, CREDIBLE * Path(path).stat().st_size)
    if unpacked > limit:
        raise InvalidFile(
            f"{path} would unpack to {unpacked} bytes, more than the {limit} that are allowed, or "
            "that its size makes credible",
            "Do not open files of doubtful origin; if it is what you expect, pack it anew without "
            "compression (zip -0)",
        )


def _read_header(
    path: PathLike, archive: zipfile.ZipFile, kind: str, version: int
) -> dict[str, Any]:
    try:
        if archive.getinfo(HEADER).file_size > HEADER_LIMIT:
            raise ValueError("its header is too long")
        facts = json.loads(archive.read(HEADER))
        found_kind, found_version = facts["kind"], int(facts["version"])
    except (KeyError, OverflowError, TypeError, ValueError) as fault:
        raise InvalidFile(
            f"{path} has no readable {HEADER} ({fault})", f"Give a {kind} file of journeyman"
        ) from fault
    if found_kind != kind:
        raise InvalidFile(f"{path} holds a {found_kind!r}", f"Give a {kind} file")
    if found_version > version:
        raise InvalidFile(
            f"{path} has schema version {found_version}, this journeyman knows up to {version}",
            "Upgrade journeyman",
        )
    return dict(facts)


def _read_array(path: PathLike, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if not member.filename.endswith(ARRAY):  # what was an array may have lost its name
        raise InvalidFile(f"{path}: {member.filename!r} is not an array", "Write it again")
    with archive.open(member) as stream:
        try:
            shape, fortran, dtype = array_header(stream)
        except ValueError as fault:
            raise InvalidFile(
                f"{path}: {member.filename} is not an array ({fault})", "Write it again"
            ) from fault
        count = int(np.prod(shape, dtype=object)) if shape else 1
        held = member.file_size - stream.tell()
        sound = dtype.itemsize > 0 and dtype.subdtype is None and min(shape, default=0) >= 0
        if dtype.hasobject or not sound or count * dtype.itemsize != held:
            raise InvalidFile(
                f"{path}: {member.filename} announces {count} items of {dtype} but holds "
                f"{held} bytes",
                "Do not open files of doubtful origin",
            )
        data = np.frombuffer(bytearray(stream.read(held)), dtype=dtype)
    return read_only(data.reshape(shape, order="F" if fortran else "C"))


def array_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and type of an array; ValueError where these cannot be read."""
    if npy.read_magic(stream) != (1, 0):  # headers of other versions may have gigabytes
        raise ValueError("the header of an array has an unusual length")
    shape, fortran, dtype = npy.read_array_header_1_0(stream)
    return tuple(shape), bool(fortran), dtype


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _sync_directory(directory: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def digest(*parts: Any) -> str:
    """SHA-256 of numbers, text, arrays and sparse matrices, in this order: the same on every
    machine."""
    state = hashlib.sha256()
    for part in parts:
        _feed(state, part)
    return state.hexdigest()


def _feed(state: Any, part: Any) -> None:
    if sparse.issparse(part):
        rows = part.tocsr()
        for piece in (rows.shape, rows.data, rows.indices, rows.indptr):
            _feed(state, piece)
        return
    if isinstance(part, np.ndarray):
        if part.dtype.kind in "iu":
            part = part.astype(np.int64)
        state.update(f"{part.dtype.str}{part.shape}".encode())
        state.update(np.ascontiguousarray(part).tobytes())
        return
    if isinstance(part, tuple | list):
        state.update(f"({len(part)}".encode())
        for piece in part:
            _feed(state, piece)
        return
    if not isinstance(part, str | int | float | bool | None):
        raise TypeError(f"cannot digest a {type(part).__name__}")
    state.update(f"{type(part).__name__}:{part!r};".encode())
