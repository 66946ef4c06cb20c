"""The bytes of a UMB file, unpacked, read forwards only, with a limit on how many they become."""

import gzip
import lzma
from collections.abc import Callable
from typing import BinaryIO

from journeyman.errors import InvalidFile

CHUNK = 1 << 18
GZIP, XZ = b"\x1f\x8b\x08", b"\xfd7zXZ\0"
"""How packed files begin."""
XZ_MEMORY = 128 << 20
"""Bytes that unpacking xz may take; the strongest usual setting needs 65 MB."""


class Tape:
    """Bytes in order. A file that unpacks to more than `limit` bytes is refused on the way."""

    def __init__(self, path: str, stream: BinaryIO, limit: int) -> None:
        self.path, self.limit, self._passed = path, limit, 0
        self._read = _reader(stream)

    def take(self, size: int, *, at_end_too: bool = False) -> bytes:
        """The next bytes, all of them; at the very end none, if that is allowed."""
        parts, missing = [], size
        while missing:
            part = self._some(missing)
            if not part and at_end_too and missing == size:
                return b""
            parts.append(self._not_the_end(part))
            missing -= len(part)
        return b"".join(parts)

    def skip(self, size: int) -> None:
        while size:
            size -= len(self._not_the_end(self._some(size)))

    def finish(self) -> None:
        """Pass the rest, at whose end packed files say whether they are whole."""
        while self._some(CHUNK):
            pass

    def _some(self, size: int) -> bytes:
        part = self._read(min(size, CHUNK))
        self._passed += len(part)
        if self._passed > self.limit:
            raise InvalidFile(
                f"{self.path} unpacks to more than {self.limit / 1e9:.2g} GB",
                "Do not open files of doubtful origin; if it is what you expect, raise memory_gb",
            )
        return part

    def _not_the_end(self, part: bytes) -> bytes:
        if not part:
            raise EOFError("it ends early")
        return part


def _reader(stream: BinaryIO) -> Callable[[int], bytes]:
    magic = stream.read(len(XZ))
    stream.seek(0)
    if magic.startswith(GZIP):
        return gzip.GzipFile(fileobj=stream).read
    return _Xz(stream).read if magic == XZ else stream.read


class _Xz:
    """xz with a limit on its memory, which the file class of the standard library lacks."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._inner = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end of the packed stream."""
        while not self._inner.eof:
            packed = self._stream.read(CHUNK) if self._inner.needs_input else b""
            if self._inner.needs_input and not packed:
                raise EOFError("it ends early")
            data = self._inner.decompress(packed, size)
            if data:
                return data
        return b""
