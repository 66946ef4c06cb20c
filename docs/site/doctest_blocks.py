"""Docstrings for the reference: examples with `>>>` become blocks of code.

The docstrings are Markdown but for their doctests, which Markdown would take for quotations.
"""

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^|(?<=\n))>>> .*(?:\n(?!\s*\n).+)*")
"""From a prompt at the margin to the next empty line."""


class DoctestBlocks(griffe.Extension):
    """Fences the doctests of every docstring, once."""

    def on_object(self, *, obj: griffe.Object, **settings: Any) -> None:
        """Griffe shows every object when it has been read."""
        if obj.docstring is not None and "```" not in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """The same text with a fence around each of its doctests."""
    return DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", docstring)
