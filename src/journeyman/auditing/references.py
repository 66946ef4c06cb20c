"""Code by reference: which functions a run names, and what they make when they are trusted.

Reading a reference executes nothing and imports nothing. `Code.made` does both, and is asked only
when whoever audits has said that the code is trusted.
"""

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journeyman.auditing.reading import Refused, canonical, json_object

KIND, VERSION = "journeyman code", 1
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
DEMONSTRATIONS = "demonstrations.npz"
LOADER = "journeyman:Demonstrations.load"
"""What turns the recorded file into what functions expect."""


@dataclass(frozen=True)
class Code:
    """Calls in their order, and where the parts of a run are found in their results."""

    calls: list[dict[str, Any]]
    parts: dict[str, dict[str, Any]]

    @property
    def told(self) -> str:
        """The calls as one would write them."""
        return ", ".join(
            f"{call['function']}({', '.join(f'{k}={_told(v)}' for k, v in _sorted(call))})"
            for call in self.calls
        )

    def made(self, directory: Path) -> dict[str, Any]:
        """Call everything, in order; this executes the code of the run."""
        results: list[Any] = []
        for call in self.calls:
            name = call["function"]
            try:
                given = {key: _given(told, results, directory) for key, told in _sorted(call)}
                results.append(_function(name)(**given))
            except Exception as fault:
                words = fault or type(fault).__name__
                raise Refused(f"{name} cannot be called as it was told ({words})") from fault
        return {name: _found(place, results) for name, place in self.parts.items()}


def read_code(data: bytes) -> Code:
    """What is told of code, without touching it."""
    facts = json_object(data)
    if facts.get("kind") != KIND or facts.get("version") != VERSION or canonical(facts) != data:
        raise Refused("it is no list of references, or not in canonical form")
    if set(facts) != {"kind", "version", "calls", "parts"} or not isinstance(facts["calls"], list):
        raise Refused("it has other parts than calls and parts")
    for number, call in enumerate(facts["calls"]):
        if set(call) != {"function", "arguments"} or not NAME.fullmatch(str(call["function"])):
            raise Refused(f"call {number} names no function of a module")
        for told in call["arguments"].values():
            _require_argument(told, number)
    for place in facts["parts"].values():
        _require_place(place, len(facts["calls"]))
    return Code(facts["calls"], facts["parts"])


def _sorted(call: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(call["arguments"].items())


def _told(argument: dict[str, Any]) -> str:
    if "value" in argument:
        return repr(argument["value"])
    if "list" in argument:
        return f"[{', '.join(_told(one) for one in argument['list'])}]"
    if "file" in argument:
        return str(argument["file"])
    return f"call {argument['call']}" + "".join(f".{step}" for step in argument["path"])


def _require_argument(told: Any, number: int) -> None:
    if not isinstance(told, dict) or not told:
        raise Refused(f"an argument of call {number} is no argument")
    if set(told) == {"list"} and isinstance(told["list"], list):
        for one in told["list"]:
            _require_argument(one, number)
    elif set(told) == {"file"}:
        if told["file"] != DEMONSTRATIONS:
            raise Refused(f"an argument of call {number} is the file {told['file']!r}")
    elif set(told) != {"value"}:
        _require_place(told, number)


def _require_place(place: Any, count: int) -> None:
    """Of the result of one of the first `count` calls."""
    sound = isinstance(place, dict) and set(place) == {"call", "path"}
    if not sound or type(place["call"]) is not int or not 0 <= place["call"] < count:
        raise Refused("a part is not found in the result of an earlier call")
    steps = place["path"]
    if not isinstance(steps, list) or not all(type(step) in (int, str) for step in steps):
        raise Refused("the way to a part is no list of names and numbers")
    if any(isinstance(step, str) and step.startswith("_") for step in steps):
        raise Refused("the way to a part leads through what is not public")


def _function(name: str) -> Any:
    module, path = name.split(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _given(told: dict[str, Any], results: list[Any], directory: Path) -> Any:
    if "value" in told:
        return told["value"]
    if "list" in told:
        return [_given(one, results, directory) for one in told["list"]]
    if "file" in told:
        return _function(LOADER)(directory / DEMONSTRATIONS)
    return _found(told, results)


def _found(place: dict[str, Any], results: list[Any]) -> Any:
    thing = results[place["call"]]
    for step in place["path"]:
        thing = thing[step] if isinstance(step, int) else _member(thing, step)
    return thing


def _member(thing: Any, name: str) -> Any:
    return thing[name] if isinstance(thing, dict) else getattr(thing, name)
