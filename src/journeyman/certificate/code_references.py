"""Code by reference: the name of a function and its arguments, in the place of what it makes.

A world of callables cannot be written down, and is never pickled. What can be kept is how it was
made: `module:function` and arguments that are JSON, things other references have made, or the
demonstrations. Whoever trusts the code makes the same again.

    calls    [{function, arguments}], each after those whose results it takes
    parts    name -> {call, path}: the world is, for example, `.world` of what call 0 returned
    sources  module -> SHA-256 of its source file

An argument is {value: JSON}, {call, path}, {list: arguments} or {file: demonstrations.npz}. Parts
are recognised by identity, in what the references made and up to three steps inside of it. Sources
are those of the modules that the references name, of those in which what they made is defined, and
of the modules these use in turn. *Not detected*: changes in the standard library, in installed
packages and in journeyman itself, of which only versions are kept, and modules imported later.
"""

import hashlib
import importlib
import importlib.util
import json
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from journeyman.arrays import assign
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidInput, InvalidProblem

FORM = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
"""module:function, both perhaps with dots."""
OWN = "journeyman"
INSTALLED = tuple(
    Path(sysconfig.get_paths()[name]).resolve() for name in ("stdlib", "platstdlib", "purelib")
)
DEPTH = 3
DEMONSTRATIONS = "demonstrations.npz"
PLAIN = (str, int, float, type(None))
"""Of these, equal ones may be one and the same."""
Place = dict[str, Any]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Reference:
    """A call that makes a world, costs, features or policies, by its name.

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
    """The function that a reference names, or how to correct the name."""
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


def source_digests(named: Iterable[str], things: Iterable[Any]) -> dict[str, str | None]:
    """By module, of those in `named`, of those behind `things` and of all they use; None without a
    file."""
    digests: dict[str, str | None] = {name: source_digest(name) for name in named}
    waiting = [*digests, *(name for thing in things for name in _homes(thing))]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in seen or module is None:
            continue
        seen.add(name)
        if _is_foreign(module):
            continue
        digests[name] = source_digest(name)
        waiting += [home for inner in list(vars(module).values()) for home in _homes(inner)]
    return dict(sorted(digests.items()))


def source_digest(name: str) -> str | None:
    """Of the source file of a module, None when it has none."""
    path = _file_of(name)
    return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _file_of(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    path = Path(spec.origin)
    return path if path.is_file() else None


def _homes(thing: Any) -> list[str]:
    """Modules that something is, is defined in, or is an instance of something from."""
    if isinstance(thing, ModuleType):
        return [thing.__name__]
    found = [getattr(thing, "__module__", None), type(thing).__module__]
    return [name for name in found if isinstance(name, str)]


def _is_foreign(module: ModuleType) -> bool:
    """Of the standard library, installed, of journeyman itself, or without a file."""
    if module.__name__.partition(".")[0] in (OWN, "__main__"):
        return True
    file = getattr(module, "__file__", None)
    if file is None or not str(file).endswith(".py"):
        return True
    path = Path(file).resolve()
    return any(path.is_relative_to(place) for place in INSTALLED)


class CodeIndex:
    """Calls in their order, and the parts of a run among their results."""

    def __init__(
        self, code: Reference | Sequence[Reference], demonstrations: Demonstrations | None
    ) -> None:
        self.calls: list[dict[str, Any]] = []
        self.parts: dict[str, Place] = {}
        self._demonstrations = demonstrations
        self._numbers: dict[int, int] = {}
        self._places: dict[int, tuple[Any, Place]] = {}
        given = [code] if isinstance(code, Reference) else list(code)
        for reference in given:
            if not isinstance(reference, Reference):
                raise InvalidProblem(
                    f"code holds a {type(reference).__name__}",
                    "Give code=jm.certificate.Reference('module:function', ...), or a list of them",
                )
        self._waiting = given
        self._call_waiting()

    def add(self, name: str, value: Any) -> None:
        """Note where a part is found; refused when no reference has made it."""
        place = self._place_of(value)
        if place is None:
            made = ", ".join(call["function"] for call in self.calls) or "none"
            raise InvalidProblem(
                f"the {name}, {value!r}, is code that no reference has made (references: {made})",
                "Write a function that returns it, make it with "
                "reference = jm.certificate.Reference("
                "'module:function', ...), use reference.made, and give code=reference",
            )
        self.parts[name] = place

    @property
    def sources(self) -> dict[str, str | None]:
        """Digests of the modules behind all calls and what they made."""
        functions = [call["function"] for call in self.calls]
        named = {function.partition(":")[0] for function in functions}
        homes = {getattr(located(function), "__module__", None) for function in functions}
        named |= {home for home in homes if isinstance(home, str)}
        return source_digests(named, [thing for thing, _ in self._places.values()])

    def holds(self, value: Any) -> bool:
        """Whether some reference has made it."""
        return self._place_of(value) is not None

    def _place_of(self, value: Any) -> Place | None:
        found = self._places.get(id(value))
        return None if found is None else found[1]

    def _call_waiting(self) -> None:
        while self._waiting:
            self._call(self._waiting.pop(0))

    def _call(self, reference: Reference) -> int:
        """The number of a call, noted with everything inside of what it made."""
        if id(reference) in self._numbers:
            return self._numbers[id(reference)]
        for value in reference.arguments.values():
            if isinstance(value, Reference):
                self._call(value)
        arguments = {
            name: self._argument(reference, name, value)
            for name, value in reference.arguments.items()
        }
        number = self._numbers[id(reference)] = len(self.calls)
        self.calls.append({"function": reference.function, "arguments": arguments})
        for path, thing in _inside(reference.made):
            place = {"call": number, "path": path}
            known = self._places.get(id(thing))
            if known is None or not path:
                self._places[id(thing)] = (thing, place)
        return number

    def _argument(self, reference: Reference, name: str, value: Any) -> Place:
        if isinstance(value, Reference):
            return {"call": self._call(value), "path": []}
        if value is self._demonstrations and value is not None:
            return {"file": DEMONSTRATIONS}
        place = self._place_of(value)
        if place is not None:
            return place
        try:
            return {"value": as_json(value)}
        except (TypeError, ValueError):
            if isinstance(value, list | tuple):
                return {"list": [self._argument(reference, name, one) for one in value]}
        self._call_waiting()
        place = self._place_of(value)
        if place is None:
            raise InvalidInput(
                f"{name} of {reference.function} is a {type(value).__name__}, which JSON does not "
                "know and no reference has made",
                "Give numbers, words and lists, the demonstrations of the problem, or what a "
                "reference in code has made",
            )
        return place


def _inside(made: Any) -> Iterator[tuple[list[str | int], Any]]:
    """Everything that can be reached, the outermost first."""
    level: list[tuple[list[str | int], Any]] = [([], made)]
    for _ in range(DEPTH + 1):
        yield from level
        level = [
            ([*path, step], inner)
            for path, thing in level
            for step, inner in _members(thing)
            if not isinstance(inner, PLAIN)
        ]


def _members(thing: Any) -> list[tuple[str | int, Any]]:
    if isinstance(thing, Mapping):
        return [(key, inner) for key, inner in thing.items() if isinstance(key, str)]
    if isinstance(thing, list | tuple):
        return list(enumerate(thing))
    if isinstance(thing, type | ModuleType) or not hasattr(thing, "__dict__"):
        return []
    return [(name, inner) for name, inner in vars(thing).items() if not name.startswith("_")]
