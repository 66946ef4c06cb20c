"""What every worker has to know, packed once: a function, and the values all shards share.

Objects travel the way `multiprocessing` sends them, and their arrays apart from them: the arrays,
however deep inside, are written as plain bytes to one temporary file that all workers of a machine
map into memory. It is read from disk at most once, held once, and nobody can write to it.
"""

import io
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from journeyman.errors import InvalidInput

Work: TypeAlias = tuple[Callable[[Any, Any], Any], Any]
"""A function and what it shares."""
ALIGNMENT = 64
"""Arrays start at multiples of this many bytes, as vector units like them."""
OUT_OF_BAND = 5
"""The first pickle protocol that can hand out arrays instead of copying them."""


@dataclass(frozen=True)
class Briefing:
    """A function and what it shares; the bytes of its arrays stand at `spans` of a file."""

    packed: bytes
    spans: tuple[tuple[int, int], ...]
    path: Path | None
    """None when there is not a byte in it."""

    def open(self) -> Work:
        """The function and the shared value, arrays read-only and mapped."""
        mapped = self._map()
        views = [mapped[start:stop] for start, stop in self.spans]
        function, shared = ForkingPickler.loads(self.packed, buffers=views)
        return function, shared

    def _map(self) -> memoryview:
        if self.path is None:
            return memoryview(b"")
        with self.path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


@contextmanager
def briefing(function: Callable[[Any, Any], Any], shared: Any) -> Iterator[Briefing]:
    """Pack a function and what it shares; the file goes away with the block."""
    pack(function, "function")
    arrays: list[Any] = []
    packed = _pack((function, shared), "shared", arrays)
    with TemporaryDirectory(prefix="journeyman-", ignore_cleanup_errors=True) as directory:
        path = Path(directory) / "arrays"
        spans = _write(path, [array.raw() for array in arrays])
        yield Briefing(packed, spans, path if path.stat().st_size else None)


def pack(value: Any, name: str) -> bytes:
    """The bytes a value travels as; what cannot travel is refused by name."""
    return _pack(value, name, None)


def _pack(value: Any, name: str, arrays: list[Any] | None) -> bytes:
    stream = io.BytesIO()
    collect = None if arrays is None else arrays.append
    try:
        ForkingPickler(stream, OUT_OF_BAND, True, collect).dump(value)
    except Exception as fault:
        raise InvalidInput(
            f"{name} cannot be sent to another process: {fault}",
            "Functions have to stand at the top level of a module that can be imported, and values "
            "to be plain ones, arrays or objects of such classes",
        ) from fault
    return stream.getvalue()


def _write(path: Path, arrays: Sequence[memoryview]) -> tuple[tuple[int, int], ...]:
    spans = []
    with path.open("wb") as file:
        for array in arrays:
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            start = file.tell()
            file.write(array)
            spans.append((start, file.tell()))
    return tuple(spans)
