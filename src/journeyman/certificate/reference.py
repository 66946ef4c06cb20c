"""Code by reference: the name of a function and its arguments, in the place of what it makes.

A world of callables cannot be written down, and is never pickled. What can be kept is how it was
made: `module:function` and arguments that are JSON, things other references have made, or the
demonstrations. Whoever trusts the code makes the same again.
"""

import importlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from journeyman.arrays import assign
from journeyman.errors import InvalidInput

FORM = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
"""module:function, both perhaps with dots."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Reference:
    """A call that makes a world, costs, features or policies, told by name.

    Args:
        function: `package.module:function`, which can be imported wherever the run is audited.
        arguments: numbers, words, lists and dicts of them; other references, what they have made,
            or parts of it; the demonstrations of the problem.

    Build the problem from what was `made`: saving finds it again in the references it is given.

    >>> network = Reference("journeyman.gallery:queues", queues=4, buffers=[3, 2, 2, 3])
    >>> network
    Reference('journeyman.gallery:queues', queues=4, buffers=[3, 2, 2, 3])
    >>> network.made.world.num_states
    144
    """

    function: str
    arguments: Mapping[str, Any]

    def __init__(self, function: str, /, **arguments: Any) -> None:
        if not (isinstance(function, str) and FORM.fullmatch(function)):
            raise InvalidInput(
                f"{function!r} is no reference to code",
                "Give 'package.module:function', for example 'journeyman.gallery:queues'",
            )
        if function.startswith("__main__:"):
            raise InvalidInput(
                f"{function!r} means another script whenever it is read",
                "Put the function into a module that can be imported, and name that",
            )
        assign(self, function=function, arguments=dict(arguments))

    @cached_property
    def made(self) -> Any:
        """What the function returns; it is called once."""
        given = {name: _given(value) for name, value in self.arguments.items()}
        return located(self.function)(**given)

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self.arguments.items())
        return f"Reference({self.function!r}{shown})"


def located(function: str) -> Any:
    """The function that a reference names, or how to mend the name."""
    module, name = function.split(":")
    try:
        found: Any = importlib.import_module(module)
    except ImportError as fault:
        raise InvalidInput(
            f"the module of {function!r} cannot be imported ({fault})",
            "Correct the name, install the package, or put its folder on the path",
        ) from fault
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InvalidInput(
            f"{module} has no function {name!r}",
            "Name a function or class at the top level of the module",
        )
    return found


def as_json(value: Any) -> Any:
    """A value as it comes back from JSON; a TypeError or ValueError when it cannot be written."""
    back = json.loads(json.dumps(value, allow_nan=False))
    if isinstance(value, dict) and set(back) != set(value):
        raise TypeError("the keys of a dict are not words")
    return back


def _given(value: Any) -> Any:
    """An argument as the function gets it, here and when it is made again."""
    if isinstance(value, Reference):
        return value.made
    if isinstance(value, list | tuple):
        return [_given(one) for one in value]
    try:
        return as_json(value)
    except (TypeError, ValueError):
        return value
