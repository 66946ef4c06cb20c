"""What the code of a function does, in words: two functions may share one line of source."""

import dis
from collections.abc import Iterator
from types import CodeType

LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
"""Instructions that take a variable of the module."""


def code_words(code: CodeType) -> list[str]:
    """Instructions, names and constants, those of functions within included.

    >>> one, other = (lambda x: x + 1), (lambda x: x - 1)
    >>> code_words(one.__code__) == code_words(other.__code__)
    False
    """
    return [
        word
        for part in _with_inner(code)
        for word in (part.co_code.hex(), repr(part.co_names), *map(_constant, part.co_consts))
    ]


def outer_names(code: CodeType) -> set[str]:
    """The variables outside of a function that it uses, builtins among them.

    >>> sorted(outer_names((lambda x: [len(y) for y in x.abs]).__code__))
    ['len']
    """
    return {
        str(step.argval)
        for part in _with_inner(code)
        for step in dis.get_instructions(part)
        if step.opname in LOADS
    }


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _constant(value: object) -> str:
    """The same in every process; the order of a set is not."""
    if isinstance(value, CodeType):
        return value.co_name
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
