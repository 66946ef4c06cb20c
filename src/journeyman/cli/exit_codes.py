"""How a command can end, for scripts.

    0    done
    1    an internal error of journeyman
    2    the command is not understood, or the description of a run
    3    world, costs, demonstrations, policy or another file are not usable
    4    what was asked for is not certified: a premise of it failed, the level is not reached, a
         budget is not shown to be kept or no policy keeps it, or the audit failed
    5    the machine sets a limit: memory, disk, time, permissions, a package, a directory in use
    6    the records contradict what was declared about the expert
    130  interrupted (Ctrl-C), after a checkpoint
    143  terminated (SIGTERM), after a checkpoint

Every error ends in one paragraph on standard error.
"""

import errno
import math
import re
from collections.abc import Callable
from typing import NamedTuple

from journeyman.errors import (
    AuditFailed,
    InvalidInput,
    JourneymanError,
    NoSolution,
    NotCertified,
    TooLarge,
)

FAULT, USAGE, BAD_DATA, NOT_CERTIFIED, LIMIT, CONTRADICTED = 1, 2, 3, 4, 5, 6
SIGNALLED = 128
"""Plus the number of the signal, as shells do."""
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
CLOSED = {errno.EACCES, errno.EPERM, errno.EROFS}
BROAD = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}


class DeclarationRefuted(NotCertified):
    """The records contradict what was declared about the expert."""


class Ending(NamedTuple):
    """An exit code, and what is printed on standard error."""

    code: int
    message: str


def ending_of(fault: BaseException) -> Ending | None:
    """How a fault ends a command; None for an internal error."""
    if isinstance(fault, JourneymanError):
        code = _code(fault)
        return Ending(code, str(fault) if code == USAGE else in_options(str(fault)))
    if isinstance(fault, MemoryError):
        detail = f" ({fault})" if str(fault) else ""
        return Ending(
            LIMIT,
            f"The memory does not suffice{detail}. Use a smaller world or a solver over features "
            "(--solver sgd-al), or a machine with more memory.",
        )
    if isinstance(fault, OSError):
        return _of_system(fault)
    return None


def _code(fault: JourneymanError) -> int:
    from journeyman.runs.description import InvalidSettings

    if isinstance(fault, InvalidSettings):
        return USAGE
    if isinstance(fault, TooLarge):
        return LIMIT
    if isinstance(fault, InvalidInput):
        return BAD_DATA
    if isinstance(fault, DeclarationRefuted):
        return CONTRADICTED
    if isinstance(fault, NotCertified | AuditFailed | NoSolution):
        return NOT_CERTIFIED
    return LIMIT


def _of_system(fault: OSError) -> Ending | None:
    place = f" ({fault.filename})" if fault.filename else ""
    if fault.errno in FULL:
        return Ending(
            LIMIT,
            f"There is no space left to write{place}: {fault.strerror}. Free some, or give a "
            "directory elsewhere; a run is continued with --resume.",
        )
    if fault.errno in CLOSED:
        return Ending(
            LIMIT,
            f"Not permitted{place}: {fault.strerror}. Give a place that you may read and write.",
        )
    if isinstance(fault, FileNotFoundError | IsADirectoryError | NotADirectoryError):
        return Ending(BAD_DATA, f"{fault.strerror}{place}. Check the path.")
    if fault.errno in BROAD:
        return Ending(LIMIT, f"The system refuses{place}: {fault.strerror}. Try again later.")
    return None


def _gigabytes(found: re.Match[str]) -> str:
    return f"--option memory_gb={math.ceil(int(found[1]) / 1e8) / 10:g}"


def _option(found: re.Match[str]) -> str:
    return f"--{found[1].replace('_', '-')} "


SPELLINGS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"(?<!option )\btruncated_at ?= ?(\d+)", r"--truncated-at \1"),
    (r"\bterminal_state=world\.sink", "--terminal-state with the number of the absorbing state"),
    (r"\bterminal_state ?= ?(\d+)", r"--terminal-state \1"),
    (r"\bterminal_state=", "--terminal-state"),
    (r"\bmemory_limit=(\d+)", _gigabytes),
    (r"(?<!--option )\bmemory_gb=", "--option memory_gb="),
    (r"(?<!--option )\b(sink|steps_at_most)=", r"--option \1="),
    (r"written in with format=:", "written in with --format:"),
    (r"with format=:", "with --demonstrations-format:"),
    (r"\bLinearProgram\(\)", "--solver linear-program"),
    (r"\bColumnGeneration\(\)", "--solver column-generation"),
    (r"\b(checkpoint_every|failure_probability|time_limit) = ", _option),
    (
        r"; answer\.relaxation has the smallest increase.*?jm\.ExactPenalty\(\)",
        "; raise the limit of a --budget",
    ),
    (r"; jm\.read_demonstrations\(path, world=world\) does so", ""),
    (
        r"Give Demonstrations\(\.\.\., probabilities=\.\.\.\), or leave use_probabilities out",
        "Give a file with the column expert_probability, or leave --use-probabilities out",
    ),
    (r"\buse_probabilities is set", "--use-probabilities is given"),
    (r"\b(cost_range|discount) = ", _option),
    (r"\bworld\.with_horizon\((\d+)\)", r"--horizon \1"),
    (r"(?<!option )\bhorizon=(\d+)", r"--horizon \1"),
)
"""How the library names an argument, and the option instead."""


def in_options(words: str) -> str:
    """A message of the library, which names arguments, with the options of the command line.

    >>> in_options("If so, give truncated_at=200.")
    'If so, give --truncated-at 200.'
    """
    for found, option in SPELLINGS:
        words = re.sub(found, option, words)
    return words
