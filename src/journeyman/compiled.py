"""The one place that touches numba.

A kernel takes arrays and numbers only, is compiled on its first call and cached on disk.
Modules that hold kernels import this one at their top; nobody imports *those* modules before a
kernel is needed, so that `import journeyman` does not pay for the compiler.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

REORDERED = {"reassoc", "contract", "nsz"}
"""Liberties with the order of sums that vector units need; NaN and infinity keep their meaning."""


def kernel(function: Function) -> Function:
    """Compile `function` in nopython mode; without a writable cache it is compiled per process."""
    return _compile(function)


def vector_kernel(function: Function) -> Function:
    """The same, with sums in the order that suits the machine: equal on one machine only."""
    return _compile(function, fastmath=REORDERED)


def _compile(function: Function, **options: Any) -> Function:
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # numba found no directory it may write its cache to
        return cast(Function, numba.njit(**options)(function))
