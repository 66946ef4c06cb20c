"""TOML as text: values that the standard library can read but not write."""

import json
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from journeyman.errors import InvalidFile

LARGEST = 1 << 20
"""Bytes of a description; more is some other file."""
DEEPEST = 20
"""Tables within tables: a description has two, and Python cannot even show a thousand."""


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        if path.stat().st_size > LARGEST:
            raise InvalidFile(f"{path} has {path.stat().st_size} bytes", "Give a short TOML file")
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except IsADirectoryError as fault:
        raise InvalidFile(f"{path} is a directory", "Give a TOML file") from fault
    except (ValueError, RecursionError) as fault:  # endless figures are a plain ValueError
        raise InvalidFile(
            f"{path} is not TOML ({fault})", 'Write lines such as: world = "world.npz"'
        ) from fault
    if _is_deeper(tables, DEEPEST):
        raise InvalidFile(f"{path} has tables within tables, {DEEPEST} deep", "Give a flat file")
    return tables


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether there is anything below so many levels of tables and lists."""
    if not isinstance(value, Mapping | list):
        return False
    parts = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(_is_deeper(part, levels - 1) for part in parts)


def toml_value(text: str) -> Any:
    """A value as TOML writes it; words that are none are text without quotes.

    >>> toml_value("3"), toml_value("true"), toml_value("sgd-al"), toml_value("[1, 2]")
    (3, True, 'sgd-al', [1, 2])
    """
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    is_value = list(found) == ["value"] and not _is_deeper(found, DEEPEST)
    return found["value"] if is_value else text


def toml_text(tables: Mapping[str, Any]) -> str:
    """Plain values first, then tables, then lists of tables.

    >>> toml_text({"seed": 0, "solver": {"name": "auto"}, "budgets": [{"at_most": 2.0}]})
    'seed = 0\\n\\n[solver]\\nname = "auto"\\n\\n[[budgets]]\\nat_most = 2.0\\n'
    """
    plain = {name: value for name, value in tables.items() if not _has_tables(value)}
    blocks = [_lines(plain)] if plain else []
    for name, value in tables.items():
        if isinstance(value, Mapping):
            blocks.append(f"[{_key(name)}]\n{_lines(value)}")
        elif _has_tables(value):
            blocks += [f"[[{_key(name)}]]\n{_lines(table)}" for table in value]
    return "\n".join(blocks)


def _has_tables(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value)
    )


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in table.items())


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    raise TypeError(f"TOML has no {type(value).__name__}")
