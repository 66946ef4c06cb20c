"""Episodes in the HDF5 file of a Minari data set.

    episode_0/observations (T + 1), actions, terminations, truncations (T each)

A data set of HDF5 may announce 10^12 values in a kilobyte, lie in another file (external or virtual
storage, links), or need a filter that is loaded from elsewhere. Only plain vectors of whole numbers
that lie in the file itself are read, after their shape was looked at; what is compressed is first
unpacked here, up to the size it should have.
"""

import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.arrays import IntArray
from journeyman.errors import InvalidFile, JourneymanError, MissingExtra

CHUNK_LIMIT = 16 << 20
"""Bytes of a chunk, which is always read as a whole."""
DEFLATE, KNOWN_FILTERS = 1, {1, 2, 3}
"""Numbers of the filters that are part of HDF5: deflate, shuffle and checksums."""
CHECKSUM_BYTES = 4


@contextmanager
def open_episodes(path: Path) -> Iterator["EpisodeFile"]:
    """The file; whatever h5py finds damaged becomes `InvalidFile`."""
    try:
        import h5py
    except ImportError:
        raise MissingExtra("h5py", "minari") from None
    try:
        with h5py.File(path, "r") as file:
            yield EpisodeFile(path, file)
    except JourneymanError:
        raise
    except Exception as fault:  # HDF5 has many ways to say "damaged"
        raise InvalidFile(
            f"{path} is not a whole HDF5 file: {str(fault)[:200]}", "Copy the data set again"
        ) from fault


class EpisodeFile:
    """Vectors of an open file, looked at before they are read."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self._file = path, file

    def size(self, episode: int, name: str) -> int:
        """The length of a vector, found to be sound."""
        vector = self._vector(episode, name)
        return int(vector.shape[0])

    def read(self, episode: int, name: str) -> IntArray:
        """A vector whose size has been allowed."""
        vector = self._vector(episode, name)
        self._refuse_bombs(vector)
        values = vector[...]
        if values.dtype == np.uint64 and values.size and values.max() >= 2**63:
            raise self._refused(f"episode_{episode}/{name} holds {values.max()}, which is no id")
        return np.asarray(values, dtype=np.int64)

    def _vector(self, episode: int, name: str) -> Any:
        import h5py

        group = self._own(self._file, f"episode_{episode}")
        if not isinstance(group, h5py.Group):
            raise self._refused(f"episode_{episode} is not a group")
        vector = self._own(group, name)
        what = f"episode_{episode}/{name}"
        if not isinstance(vector, h5py.Dataset):
            raise self._refused(f"{what} is not an array", "Record numbers as observations")
        if vector.ndim != 1 or vector.dtype.kind not in "iub" or vector.dtype.hasobject:
            raise self._refused(
                f"{what} has shape {vector.shape} and type {str(vector.dtype)[:40]}",
                "Record an environment whose observations and actions are Discrete",
            )
        self._require_own_storage(what, vector)
        return vector

    def _own(self, group: Any, name: str) -> Any:
        """A member of the file itself, not of another one that a link leads to."""
        import h5py

        if name not in group.keys():  # noqa: SIM118 - `in group` follows links
            raise self._refused(f"{group.name} has no {name}")
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise self._refused(f"{name} is a link")
        return group[name]

    def _require_own_storage(self, what: str, vector: Any) -> None:
        import h5py

        plan = vector.id.get_create_plist()
        virtual = plan.get_layout() == h5py.h5d.VIRTUAL
        if virtual or plan.get_external_count():
            raise self._refused(f"{what} lies in another file")
        filters = {plan.get_filter(place)[0] for place in range(plan.get_nfilters())}
        if filters - KNOWN_FILTERS:
            raise self._refused(f"{what} needs the filter {max(filters - KNOWN_FILTERS)}")
        if vector.chunks and math.prod(vector.chunks) * vector.dtype.itemsize > CHUNK_LIMIT:
            raise self._refused(f"{what} comes in chunks of {vector.chunks[0]} values")

    def _refuse_bombs(self, vector: Any) -> None:
        """Unpack each compressed chunk as far as it should go; HDF5 itself sees no limit."""
        plan = vector.id.get_create_plist()
        filters = [plan.get_filter(place)[0] for place in range(plan.get_nfilters())]
        if DEFLATE not in filters:
            return
        expected = math.prod(vector.chunks) * vector.dtype.itemsize + CHECKSUM_BYTES * len(filters)
        for number in range(vector.id.get_num_chunks()):
            chunk = vector.id.get_chunk_info(number)
            if chunk.size > 2 * expected + 1024:
                raise self._refused(f"a chunk of {vector.name} has {chunk.size} bytes")
            _, packed = vector.id.read_direct_chunk(chunk.chunk_offset)
            rest = zlib.decompressobj()
            unpacked = rest.decompress(packed, expected + 1)
            if chunk.filter_mask == 0 and (len(unpacked) > expected or rest.unconsumed_tail):
                raise self._refused(f"a chunk of {vector.name} unpacks to more than it should")

    def _refused(self, what: str, remedy: str = "Copy the data set again") -> InvalidFile:
        return InvalidFile(f"{self.path}: {what}", remedy)
