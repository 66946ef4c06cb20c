"""A word for the content of problems and solvers, the same in every process and on every machine.

Frozen values are walked field by field, arrays enter by their bytes and functions by their source,
so that editing one makes another word. Pickles would not do: equal values can have unequal ones.
What cannot be told from others by its content is refused; it could be mistaken for something else
after a restart.
"""

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.digest import digest
from journeyman.errors import InvalidInput

PLAIN = (type(None), str, bool, int, float, np.ndarray)
"""What `digest` takes as it is."""
NO_MATTER = ("executor", "time_limit")
"""Fields that decide where and how long work is done; the limit in force is counted apart."""


def fingerprint(value: Any, name: str) -> str:
    """The word of a value; `name` says whose it is when it has none.

    >>> fingerprint((1, 2.0, "three"), "example") == fingerprint([1, 2.0, "three"], "example")
    True
    """
    return digest(_parts(value, name))


def _parts(value: Any, name: str) -> Any:
    """Nested lists of what `digest` knows."""
    if isinstance(value, Enum | PurePath):
        return [_kind(value), str(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PLAIN) or sparse.issparse(value):
        return value
    if isinstance(value, tuple | list | Mapping):
        return _members(value, name)
    if is_dataclass(value) and not isinstance(value, type):
        return [_kind(value), *_fields(value, name)]
    return _code(value, name)


def _members(value: Any, name: str) -> list[Any]:
    if isinstance(value, Mapping):
        return [[str(key), _parts(value[key], name)] for key in sorted(value, key=str)]
    return [_parts(one, name) for one in value]


def _fields(value: Any, name: str) -> list[Any]:
    return [
        [one.name, _parts(getattr(value, one.name), f"{name}.{one.name}")]
        for one in fields(value)
        if one.name not in NO_MATTER
    ]


def _code(value: Any, name: str) -> list[Any]:
    """A function by its source, a method with what it belongs to, a partial with its arguments."""
    if isinstance(value, partial):
        return [
            "partial",
            *(_parts(part, name) for part in (value.func, value.args, value.keywords)),
        ]
    if isinstance(value, MethodType):
        return [value.__name__, _parts(value.__self__, name)]
    plain = isinstance(value, FunctionType) and value.__closure__ is None
    if plain or isinstance(value, type):
        try:
            return [f"{value.__module__}.{value.__qualname__}", inspect.getsource(value)]
        except (OSError, TypeError):
            pass
    raise InvalidInput(
        f"{name} holds {value!r}, which could not be recognised after a restart",
        "Build it of dataclasses, arrays and functions of a module without variables of their "
        "surroundings, or leave the directory out",
    )


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
