"""Remedies in the language of the command line: options, where the library names arguments.

The library does not know who calls it. What it says about an argument that the command line has as
an option is said here with the option's name.
"""

import math
import re
from collections.abc import Callable


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
)
"""What the library says, and what is said instead."""


def in_options(words: str) -> str:
    """The same words, with options for arguments.

    >>> in_options("If so, give truncated_at=200.")
    'If so, give --truncated-at 200.'
    """
    for found, said in SPELLINGS:
        words = re.sub(found, said, words)
    return words
