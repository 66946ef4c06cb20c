"""Code by reference: which functions a run names, and what they make when they are trusted.

Reading a reference executes nothing and imports nothing. `Code.made` does both, and is asked only
when whoever audits has said that the code is trusted.
"""

import importlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journeyman.auditing.ledger import Ledger
from journeyman.auditing.reading import Refused, canonical, json_object, sha256

KIND, VERSION = "journeyman code", 2
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
DIGEST = re.compile(r"[0-9a-f]{64}")
PARTS = {"kind", "version", "calls", "parts", "sources"}
DEMONSTRATIONS = "demonstrations.npz"
LOADER = "journeyman:Demonstrations.load"
"""What turns the recorded file into what functions expect."""


@dataclass(frozen=True)
class Code:
    """Calls in their order, and where the parts of a run are found in their results."""

    calls: list[dict[str, Any]]
    parts: dict[str, dict[str, Any]]
    sources: dict[str, str | None]
    """SHA-256 of the source file of every module, None of one without a file."""

    @property
    def told(self) -> str:
        """The calls as one would write them."""
        return ", ".join(
            f"{call['function']}({', '.join(f'{k}={_told(v)}' for k, v in _sorted(call))})"
            for call in self.calls
        )

    def check_sources(self, ledger: Ledger) -> None:
        """Whether all source files are what they were; this imports packages, and no more."""
        for module, told in self.sources.items():
            if told is None:
                ledger.leave_open(f"the source of {module}, which has no file to be compared")
                continue
            now = _sha256_of(module)
            ledger.check(
                now == told,
                f"the source of {module} has changed: its SHA-256 is {now}, and was {told} when "
                "the run was saved",
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
    if set(facts) != PARTS or not isinstance(facts["calls"], list):
        raise Refused("it has other parts than calls, parts and sources")
    for number, call in enumerate(facts["calls"]):
        if set(call) != {"function", "arguments"} or not NAME.fullmatch(str(call["function"])):
            raise Refused(f"call {number} names no function of a module")
        for told in call["arguments"].values():
            _require_argument(told, number)
    for place in facts["parts"].values():
        _require_place(place, len(facts["calls"]))
    _require_sources(facts["sources"], facts["calls"])
    return Code(facts["calls"], facts["parts"], facts["sources"])


def _require_sources(sources: Any, calls: list[dict[str, Any]]) -> None:
    """Digests of modules, those of all calls among them."""
    if not isinstance(sources, dict):
        raise Refused("it tells of no sources")
    for module, told in sources.items():
        if not MODULE.fullmatch(module) or not (told is None or DIGEST.fullmatch(str(told))):
            raise Refused(f"the source of {module!r} has no digest")
    for call in calls:
        if call["function"].split(":")[0] not in sources:
            raise Refused(f"the source of {call['function']} is not stored")


def _sha256_of(module: str) -> str | None:
    """Of the source file that a name leads to."""
    found = importlib.util.find_spec(module)
    path = Path((found and found.origin) or "")
    if path.suffix != ".py" or not path.is_file():
        return None
    return sha256(path.read_bytes())


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
