"""Arrays of a foreign NPZ file, one block at a time and never before they are known to be sound.

What a header announces is compared with what the member holds, nothing is unpickled or written to
disk, and a large array is handed out in blocks, so that an array of zeros packed a thousandfold
costs time and not memory.
"""

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.adapters.source_options import require_memory
from journeyman.errors import InvalidFile, JourneymanError
from journeyman.storage import ARRAY, HEADER, PathLike, array_header, refuse_long_directory

BLOCK = 1 << 22
"""Bytes of a block, unless one entry of the first axis has more."""


@dataclass(frozen=True)
class Announced:
    """What the header of an array says, in C order: the axes of a Fortran array are reversed."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    reversed_axes: bool

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        return self.size * self.dtype.itemsize


class NpzArrays:
    """An open NPZ file."""

    def __init__(self, path: PathLike, archive: zipfile.ZipFile, limit: int) -> None:
        self.path, self.limit, self._archive = path, limit, archive
        names = archive.namelist()
        self.is_native = HEADER in names
        self.members = {name.removesuffix(ARRAY) for name in names if name.endswith(ARRAY)}

    def announced(self, name: str) -> Announced:
        """The header of an array, found to agree with the size of its member."""
        member = self._archive.getinfo(name + ARRAY)
        with self._archive.open(member) as stream:
            shape, fortran, dtype = array_header(stream)
            held = member.file_size - stream.tell()
        plain = dtype.kind in "biufSU" and dtype.itemsize > 0 and dtype.subdtype is None
        count = math.prod(shape)
        if not plain or min(shape, default=0) < 0 or count * dtype.itemsize != held:
            raise InvalidFile(
                f"{self.path}: {name} announces {count} items of {dtype} but holds {held} bytes",
                "Give arrays of plain numbers, and do not open files of doubtful origin",
            )
        return Announced(shape[::-1] if fortran else shape, dtype, fortran and len(shape) > 1)

    def read(self, name: str) -> NDArray[Any]:
        """A whole array, if it is small enough."""
        found = self.announced(name)
        require_memory(f"{self.path}: {name}", 2 * found.num_bytes, self.limit)
        blocks = [block for _, block in self.blocks(name)]
        whole = np.concatenate(blocks) if blocks else np.zeros(found.shape, found.dtype)
        shaped = whole.reshape(found.shape)
        return shaped.transpose() if found.reversed_axes else shaped

    def blocks(self, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
        """Consecutive entries of the first axis, each block with the number of its first."""
        found = self.announced(name)
        length = found.shape[0] if found.shape else 1
        entry = found.num_bytes // max(length, 1)
        require_memory(f"{self.path}: a part of {name}", 2 * entry, self.limit)
        step = max(1, BLOCK // max(entry, 1))
        with self._archive.open(name + ARRAY) as stream:
            array_header(stream)
            for first in range(0, length, step):
                count = min(step, length - first)
                data = stream.read(count * entry)
                if len(data) != count * entry:
                    raise InvalidFile(f"{self.path}: {name} ends early", "Write the file again")
                block = np.frombuffer(data, dtype=found.dtype)
                yield first, block.reshape(count, *found.shape[1:])


@contextmanager
def open_npz(path: PathLike, limit: int) -> Iterator[NpzArrays]:
    """The arrays of `path`; whatever zipfile and numpy find damaged becomes `InvalidFile`."""
    try:
        refuse_long_directory(path)
        with zipfile.ZipFile(path) as archive:
            yield NpzArrays(path, archive, limit)
    except JourneymanError:
        raise
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except Exception as fault:  # zipfile, zlib, lzma and numpy have many ways to say "damaged"
        raise InvalidFile(
            f"{path} is not a whole NPZ file: {fault}", "Write it again from its source"
        ) from fault
