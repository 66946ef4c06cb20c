"""Whatever pyarrow says of a file it cannot read, in the words of this house."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from journeyman.errors import InvalidFile, JourneymanError


@contextmanager
def told_as_damaged(path: Path, kind: str) -> Iterator[None]:
    """Around the reading of `path`; pyarrow has many ways to say that a file is damaged."""
    try:
        yield
    except JourneymanError:
        raise
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except Exception as fault:
        raise InvalidFile(
            f"{path} is not a whole {kind} file: {str(fault)[:200]}", "Write it again"
        ) from fault
