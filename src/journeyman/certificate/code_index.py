"""Which calls made the code that a certificate rests on, and where in their results it is found.

    calls    [{function, arguments}], each after those whose results it takes
    parts    name -> {call, path}: the world is, for example, `.world` of what call 0 returned
    sources  module -> SHA-256 of its source file (`code_sources`)

An argument is {value: JSON}, {call, path}, {list: arguments} or {file: demonstrations.npz}. Things
are recognised by identity, in what the references made and up to three steps inside of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from journeyman.certificate.code_sources import source_digests
from journeyman.certificate.reference import Reference, as_json, located
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidInput, InvalidProblem

DEPTH = 3
DEMONSTRATIONS = "demonstrations.npz"
PLAIN = (str, int, float, type(None))
"""Of these, equal ones may be one and the same."""
Place = dict[str, Any]


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
                    "Give code=jm.Reference('module:function', ...), or a list of them",
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
                "Write a function that returns it, make it with reference = jm.Reference("
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
