"""The one place that touches numba.

A kernel takes arrays and numbers only, is compiled on its first call and cached on disk.
Modules that hold kernels import this one at their top; nobody imports *those* modules before a
kernel is needed, so that `import journeyman` does not pay for the compiler.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` in nopython mode; without a writable cache it is compiled per process."""
    try:
        return cast(Function, numba.njit(cache=True)(function))
    except RuntimeError:  # numba found no directory it may write its cache to
        return cast(Function, numba.njit(function))
