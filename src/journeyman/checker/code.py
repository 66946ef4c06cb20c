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

from journeyman.checker.archives import canonical, json_object, sha256
from journeyman.checker.findings import Findings, Refused

KIND, VERSION = "journeyman code", 2
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
NAME = re.compile(rf"{MODULE.pattern}:{MODULE.pattern}")
DIGEST = re.compile(r"[0-9a-f]{64}")
PARTS = {"kind", "version", "calls", "parts", "sources"}
DEMONSTRATIONS = "demonstrations.npz"


@dataclass(frozen=True)
class Code:
    """Calls in their order, where the parts of a run are found in their results, and the SHA-256 of
    the source file of every module (None of one without a file)."""

    calls: list[dict[str, Any]]
    parts: dict[str, dict[str, Any]]
    sources: dict[str, str | None]

    def __str__(self) -> str:
        """The calls as one would write them."""
        shown = (", ".join(f"{k}={_shown(v)}" for k, v in _sorted(call)) for call in self.calls)
        both = zip(self.calls, shown, strict=True)
        return ", ".join(f"{call['function']}({given})" for call, given in both)

    def check_sources(self, findings: Findings) -> None:
        """Whether all source files are what they were; this imports packages, and no more."""
        for module, stated in self.sources.items():
            if stated is None:
                findings.leave_open(f"the source of {module}, which has no file to be compared")
                continue
            found = importlib.util.find_spec(module)
            path, now = Path((found and found.origin) or ""), None
            if path.suffix == ".py" and path.is_file():
                now = sha256(path.read_bytes())
            findings.check(
                now == stated,
                f"the source of {module} has changed: its SHA-256 is {now}, and was {stated} when "
                "the run was saved",
            )

    def made(self, directory: Path) -> dict[str, Any]:
        """Call everything, in order; this executes the code of the run."""
        results: list[Any] = []
        for call in self.calls:
            name = call["function"]
            try:
                given = {key: _given(one, results, directory) for key, one in _sorted(call)}
                results.append(function(name)(**given))
            except Exception as fault:
                words = fault or type(fault).__name__
                raise Refused(f"{name} cannot be called as it was stated ({words})") from fault
        return {name: _found(place, results) for name, place in self.parts.items()}


def read_code(data: bytes) -> Code:
    """What is stated of code, without touching it."""
    facts = json_object(data)
    if facts.get("kind") != KIND or facts.get("version") != VERSION or canonical(facts) != data:
        raise Refused("it is no list of references, or not in canonical form")
    if set(facts) != PARTS or not isinstance(facts["calls"], list):
        raise Refused("it has other parts than calls, parts and sources")
    calls, sources = facts["calls"], facts["sources"]
    for number, call in enumerate(calls):
        if set(call) != {"function", "arguments"} or not NAME.fullmatch(str(call["function"])):
            raise Refused(f"call {number} names no function of a module")
        for stated in call["arguments"].values():
            _require_argument(stated, number)
    for place in facts["parts"].values():
        _require_place(place, len(calls))
    _require_sources(sources, calls)
    return Code(calls, facts["parts"], sources)


def _require_sources(sources: dict[str, Any], calls: list[dict[str, Any]]) -> None:
    """Digests of modules, those of all calls among them."""
    for module, stated in sources.items():
        if not MODULE.fullmatch(module) or not (stated is None or DIGEST.fullmatch(str(stated))):
            raise Refused(f"the source of {module!r} has no digest")
    for call in calls:
        if call["function"].split(":")[0] not in sources:
            raise Refused(f"the source of {call['function']} is not stored")


def function(name: str) -> Any:
    """What `module:name` means here; the module is imported."""
    module, path = name.split(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _sorted(call: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(call["arguments"].items())


def _shown(argument: dict[str, Any]) -> str:
    if "value" in argument:
        return repr(argument["value"])
    if "list" in argument:
        return f"[{', '.join(_shown(one) for one in argument['list'])}]"
    if "file" in argument:
        return str(argument["file"])
    return f"call {argument['call']}" + "".join(f".{step}" for step in argument["path"])


def _require_argument(stated: Any, number: int) -> None:
    if not isinstance(stated, dict) or not stated:
        raise Refused(f"an argument of call {number} is no argument")
    if set(stated) == {"list"} and isinstance(stated["list"], list):
        for one in stated["list"]:
            _require_argument(one, number)
    elif set(stated) == {"file"}:
        if stated["file"] != DEMONSTRATIONS:
            raise Refused(f"an argument of call {number} is the file {stated['file']!r}")
    elif set(stated) != {"value"}:
        _require_place(stated, number)


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


def _given(stated: dict[str, Any], results: list[Any], directory: Path) -> Any:
    if "value" in stated:
        return stated["value"]
    if "list" in stated:
        return [_given(one, results, directory) for one in stated["list"]]
    if "file" in stated:
        return function("journeyman:Demonstrations.load")(directory / DEMONSTRATIONS)
    return _found(stated, results)


def _found(place: dict[str, Any], results: list[Any]) -> Any:
    thing = results[place["call"]]
    for step in place["path"]:
        by_key = isinstance(step, int) or isinstance(thing, dict)
        thing = thing[step] if by_key else getattr(thing, step)
    return thing
