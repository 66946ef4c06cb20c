"""Remedies in the language of the command line: options, where the library names arguments.

The library does not know who calls it. What it says about an argument that the command line has as
an option is said here with the option's name.
"""

import re

SPELLINGS = (
    (r"\btruncated_at ?= ?(\d+)", r"--truncated-at \1"),
    (r"\bterminal_state=world\.sink", "--terminal-state with the number of the absorbing state"),
    (r"\bterminal_state ?= ?(\d+)", r"--terminal-state \1"),
    (r"\bterminal_state=", "--terminal-state"),
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
