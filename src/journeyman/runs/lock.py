"""One process at a time in a run directory.

The system holds the lock for as long as the process lives, so what a killed process leaves is no
obstacle. The file says whose it is; it stays where it is, because removing it would let two
processes hold locks on two files of the same name.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from journeyman.errors import JourneymanError

LOCK = ".lock"
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""A link in its place would have us write elsewhere."""


class DirectoryInUse(JourneymanError):
    """Another process works in the run directory."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, or raise `DirectoryInUse` with the other's number."""
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
    try:
        if not _take(handle):
            owner = os.read(handle, 32).decode("ascii", "replace").strip()
            raise DirectoryInUse(
                f"{directory} is in use by process {owner or 'unknown'}. Wait until it has ended, "
                "or give another directory."
            )
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    """Whether the lock is ours now; where the system has no such locks it always is."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
