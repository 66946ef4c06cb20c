"""SHA-256 of the source files behind referenced code.

A reference names code that may be edited afterwards. So the digests of its source are kept: of the
modules that the references name, of those in which what they made is defined, and of the modules
these use in turn. Of the standard library, of installed packages and of journeyman itself only what
a reference names directly is digested; the rest has versions.
"""

import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

OWN = "journeyman"
INSTALLED = tuple(
    Path(sysconfig.get_paths()[name]).resolve() for name in ("stdlib", "platstdlib", "purelib")
)


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
