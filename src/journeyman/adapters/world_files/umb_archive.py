"""The members of a UMB file: a tar archive, plain or packed with gzip or xz.

Nothing is written to disk. Links, devices and names that lead out of the archive are refused, every
size is compared with the expected one before a byte is read, and what is not asked for is skipped
in blocks. A plain reader of headers is enough for that, and cannot be talked into more.
"""

import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn

from journeyman.adapters.world_files.umb_tape import Tape
from journeyman.errors import InvalidFile

RECORD = 512
PAX_LIMIT = 1 << 16
"""Bytes of an extended header; names are all that is read from it."""
FILE, DIRECTORY, EXTENDED, LONG_NAME, EVERY = b"0\0", b"5", b"x", b"L", b"g"


@dataclass(frozen=True)
class Member:
    """A file in the archive."""

    name: str
    size: int


def read_members(
    path: str, wanted: Callable[[Member], bool], unpacked_limit: int
) -> Mapping[str, bytes]:
    """The contents of the members that `wanted` accepts, having seen names and sizes."""
    held: dict[str, bytes] = {}
    try:
        with Path(path).open("rb") as stream:
            tape = Tape(path, stream, unpacked_limit)
            for member in _headers(tape):
                if member.name in held:
                    _refuse(path, f"{member.name} occurs twice")
                if wanted(member):
                    held[member.name] = tape.take(member.size)
                    tape.skip(-member.size % RECORD)
                else:
                    tape.skip(member.size + -member.size % RECORD)
            tape.finish()
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as fault:
        raise InvalidFile(f"{path} is damaged: {fault}", "Write it again") from fault
    return held


def _headers(tape: Tape) -> Iterator[Member]:
    """Files in the order of the archive; whoever takes one moves the tape behind it."""
    long_name = None
    while True:
        block = tape.take(RECORD, at_end_too=True)
        if not block.strip(b"\0"):
            return
        kind, size = block[156:157], _size(tape, block)
        if kind in (EXTENDED, LONG_NAME, EVERY):
            if size > PAX_LIMIT:
                _refuse(tape.path, f"an extended header has {size} bytes")
            extended = tape.take(size)
            tape.skip(-size % RECORD)
            if kind != EVERY:
                long_name = _long_name(tape, kind, extended)
            continue
        name = _name(block) if long_name is None else long_name
        long_name = None
        _require_inside(tape, name)
        if kind not in FILE and kind != DIRECTORY:
            _refuse(tape.path, f"{name} is neither a file nor a directory (type {kind!r})")
        if kind == DIRECTORY:
            tape.skip(size + -size % RECORD)
        else:
            yield Member(str(PurePosixPath(name)), size)


def _size(tape: Tape, block: bytes) -> int:
    """The size in a header whose checksum is right."""
    blanked = block[:148] + b" " * 8 + block[156:]
    try:
        claimed, size = (int(block[a:b].strip(b" \0") or b"0", 8) for a, b in _NUMBERS)
    except ValueError:
        _refuse(tape.path, "a header holds no octal numbers")
    if block[257:262] != b"ustar" or claimed != sum(blanked) or size < 0:
        _refuse(tape.path, "a header is damaged, or this is not a tar file")
    return size


_NUMBERS = ((148, 156), (124, 136))
"""Where the checksum and the size stand."""


def _name(block: bytes) -> str:
    name, prefix = (part.partition(b"\0")[0] for part in (block[:100], block[345:500]))
    posix = block[257:263] == b"ustar\0"
    whole = prefix + b"/" + name if posix and prefix else name
    return whole.decode("utf-8", errors="replace")


def _long_name(tape: Tape, kind: bytes, extended: bytes) -> str | None:
    """The name for the next member; other records say nothing that matters here."""
    if kind == LONG_NAME:
        return extended.partition(b"\0")[0].decode("utf-8", errors="replace")
    name = None
    while extended:
        length, _, _ = extended.partition(b" ")
        if not length.isdigit() or not len(length) + 1 < int(length) <= len(extended):
            _refuse(tape.path, "an extended header is damaged")
        key, _, value = extended[len(length) + 1 : int(length) - 1].partition(b"=")
        if key == b"path":
            name = value.decode("utf-8", errors="replace")
        elif key == b"size" or key.startswith(b"GNU.sparse"):
            _refuse(tape.path, f"an extended header sets {key.decode()}")
        extended = extended[int(length) :]
    return name


def _require_inside(tape: Tape, name: str) -> None:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\\" in name or "\0" in name:
        _refuse(tape.path, f"the name {name!r} leads out of the archive")


def _refuse(path: str, what: str) -> NoReturn:
    raise InvalidFile(f"{path}: {what}", "Do not open files of doubtful origin")
