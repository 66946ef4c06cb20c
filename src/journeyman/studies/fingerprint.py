"""A word for the content of problems and solvers, the same in every process and on every machine.

Frozen values are walked field by field and arrays enter by their bytes. Functions, and classes that
are not of this library, enter by module, name and source, so that editing one makes another word; a
function also by its place in the source, since two lambdas may share a line, by its defaults and by
the variables of its module that it names. Pickles would not do: equal values can have unequal ones.
What cannot be distinguished by its content is refused; it could be mistaken for something else
after a restart.

*Not detected*: changes in functions of other modules that a function calls, and in installed
packages, which only have versions.
"""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.errors import InvalidInput
from journeyman.storage import digest

PLAIN = (type(None), str, bool, int, float, np.ndarray)
"""What `digest` takes as it is."""
VERSIONED = frozenset({"journeyman", *sys.stdlib_module_names})
"""Packages whose classes are known by the versions of this library and of Python."""
NO_MATTER = ("executor", "time_limit", "note")
"""Fields that decide where and how long work is done, the limit in force being counted apart, and
what is only said."""


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
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        value = value.tolist()
    if isinstance(value, PLAIN) or sparse.issparse(value):
        return value
    if isinstance(value, tuple | list | Mapping):
        return _members(value, name)
    if is_dataclass(value) and not isinstance(value, type):
        return [_kind(value), *_sources(type(value), name), *_fields(value, name)]
    return _code(value, name)


def _members(value: Any, name: str) -> list[Any]:
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (str(key), type(key).__name__))
        return ["mapping", *([_parts(key, name), _parts(value[key], name)] for key in keys)]
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
    if isinstance(value, FunctionType) and value.__closure__ is None:
        return [_source(value, name), *_function(value, name)]
    if isinstance(value, type):
        return [f"{value.__module__}.{value.__qualname__}", _source(value, name)]
    raise _unknown(value, name)


def _function(value: FunctionType, name: str, users: tuple[FunctionType, ...] = ()) -> list[Any]:
    """What the source of a function does not say: where in it the function is, defaults, and the
    variables of its module that it names."""
    around = [
        [outer, _around(value.__globals__[outer], f"{name}, {outer}", (*users, value))]
        for outer in sorted(_names(value.__code__) & value.__globals__.keys())
    ]
    defaults = [value.__defaults__, value.__kwdefaults__]
    return [_place(value.__code__), _parts(defaults, name), around]


def _names(code: CodeType) -> set[str]:
    """Names that a function uses, and those of functions within."""
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


def _place(code: CodeType) -> list[int]:
    """First and last column of what a function does; lambdas may share a line."""
    places = [(first, last) for _, _, first, last in code.co_positions() if first and last]
    return [min((one for one, _ in places), default=0), max((one for _, one in places), default=0)]


def _around(value: Any, name: str, users: tuple[FunctionType, ...]) -> Any:
    """Something that functions use: data by content, code of their own module by source."""
    if isinstance(value, ModuleType):
        return value.__name__
    value = inspect.unwrap(value) if hasattr(value, "__wrapped__") else value
    if not isinstance(value, type | FunctionType | BuiltinFunctionType | np.ufunc):
        return _parts(value, name)
    module = getattr(value, "__module__", "")
    if module != users[-1].__module__ or value in users:
        return f"{module}.{value.__name__}"
    inner = _function(value, name, users) if isinstance(value, FunctionType) else []
    return [_source(value, name), *inner]


def _sources(kind: type, name: str) -> list[str]:
    """Of a class and those it is made of, as far as they are not versioned with this library."""
    return [
        _source(one, name)
        for one in kind.__mro__
        if one.__module__.partition(".")[0] not in VERSIONED
    ]


def _source(value: Any, name: str) -> str:
    try:
        return f"{value.__module__}.{value.__qualname__}: {inspect.getsource(value)}"
    except (OSError, TypeError):
        raise _unknown(value, name) from None


def _unknown(value: Any, name: str) -> InvalidInput:
    return InvalidInput(
        f"{name} holds {value!r}, which could not be recognised after a restart",
        "Build it of dataclasses, arrays and functions of a module without variables of their "
        "surroundings, or leave the directory out",
    )


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
