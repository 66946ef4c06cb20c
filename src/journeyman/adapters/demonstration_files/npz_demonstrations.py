"""Demonstrations in the native format, looked at before they are unpacked.

A native file is a ZIP of arrays. What its directory and the headers of its arrays announce is
compared with what is allowed; then `Demonstrations.load` reads it, with the checks of `storage`.
"""

import math
import zipfile
from pathlib import Path
from typing import Any

from numpy.lib import format as npy

from journeyman.adapters.demonstration_files.demonstration_reading import Allowance
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidFile
from journeyman.storage import refuse_long_directory

BYTES_PER_ITEM = 24
"""What an id takes beside its stored form: as int64, and temporaries of the checks."""


def read(path: Path, allowance: Allowance) -> Demonstrations:
    """The demonstrations in a file that `Demonstrations.save` wrote."""
    try:
        refuse_long_directory(path)
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
            allowance.require(2 * sum(one.file_size for one in members))
            allowance.require(sum(_needed(archive, one) for one in members))
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except InvalidFile:
        raise
    except Exception as fault:  # zipfile, zlib and lzma have many ways to say "damaged"
        raise InvalidFile(
            f"{path} is not a whole journeyman file: {fault}", "Write it again from its source"
        ) from fault
    return Demonstrations.load(path, memory_limit=allowance.limit)


def write(demonstrations: Demonstrations, path: Path) -> None:
    """Write the native format."""
    demonstrations.save(path)


def _needed(archive: zipfile.ZipFile, one: zipfile.ZipInfo) -> int:
    with archive.open(one) as stream:
        stream_of_bytes: Any = stream
        if npy.read_magic(stream_of_bytes)[0] != 1:  # headers of others may have gigabytes
            raise ValueError(f"{one.filename} has a header of an unusual length")
        shape, _, dtype = npy.read_array_header_1_0(stream_of_bytes)
    return math.prod(shape) * (2 * dtype.itemsize + BYTES_PER_ITEM)
