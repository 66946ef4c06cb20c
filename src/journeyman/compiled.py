"""The one place that touches numba.

A kernel takes arrays and numbers only, is compiled on its first call and cached on disk.
Modules that hold kernels import this one at their top; nobody imports *those* modules before a
kernel is needed, so that `import journeyman` does not pay for the compiler. While one is compiled,
the progress line says so, and observers get the stage.

Arithmetic in a kernel follows IEEE 754 as NumPy's does: a division by zero is an infinity or not a
number and never an exception, so whoever calls a kernel judges what comes back (a residual, or
whether it is finite).
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.extending import intrinsic

from journeyman.arrays import FloatArray, IntArray
from journeyman.progress import say

Function = TypeVar("Function", bound=Callable[..., Any])

REORDERED = {"reassoc", "contract", "nsz"}
"""Liberties with the order of sums that vector units need; NaN and infinity keep their meaning."""


def kernel(function: Function) -> Function:
    """Compile `function` in nopython mode; without a writable cache it is compiled per process."""
    return _compile(function)


def vector_kernel(function: Function) -> Function:
    """The same, with sums in the order that suits the machine: equal on one machine only."""
    return _compile(function, fastmath=REORDERED)


def inner_kernel(function: Function) -> Function:
    """A vector kernel that kernels alone call, not Python: it is compiled in less time."""
    return _compile(function, fastmath=REORDERED, no_cpython_wrapper=True)


def _compile(function: Function, **options: Any) -> Function:
    options |= {"error_model": "numpy", "nogil": True}  # threads may run kernels side by side
    options["no_cfunc_wrapper"] = True  # nobody calls a kernel from C
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # numba found no directory it may write its cache to
        return cast(Function, numba.njit(**options)(function))


class _Announcement(event.Listener):  # type: ignore[misc]
    """Says that a kernel of this package is being compiled, and not read from the disk."""

    def on_start(self, started: event.Event) -> None:
        function = started.data["dispatcher"].py_func
        if (function.__module__ or "").startswith(f"{__package__}."):
            say(f"compiling {function.__name__} (kept on disk for later runs where possible)")

    def on_end(self, ended: event.Event) -> None:
        """Nothing to say: the next stage replaces the line."""


event.register("numba:compile", _Announcement())


@intrinsic  # type: ignore[untyped-decorator]
def _compiled_prefetch(_: Any, array: Any, position: Any) -> Any:
    """Ask the memory for `array[position]`, one dimension, ahead of its use; it changes nothing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type, position_type = signature.args
        values = context.make_array(array_type)(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], position_type, types.intp)
        address = cgutils.get_item_pointer(context, builder, array_type, values, [place])
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        call = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer] + [number] * 3)
        )
        read, keep, data = (ir.Constant(number, code) for code in (0, 3, 1))
        builder.call(call, [builder.bitcast(address, pointer), read, keep, data])
        return context.get_dummy_value()

    return types.none(array, position), generate


def prefetch(array: Any, position: int) -> None:
    """The same without the compiler, for NUMBA_DISABLE_JIT=1: nothing."""


if not numba.config.DISABLE_JIT:
    prefetch = _compiled_prefetch


LARGEST_POWER = 1000
"""Of two, in `unit_of`: beyond it the inverse of a unit would not be a number."""


@vector_kernel
def dot(a: FloatArray, b: FloatArray) -> float:
    """<a, b>."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@vector_kernel
def add(factor: float, a: FloatArray, into: FloatArray) -> None:
    """into += factor * a."""
    for j in range(a.size):
        into[j] += factor * a[j]


@vector_kernel
def sparse_dot(data: FloatArray, indices: IntArray, b: FloatArray) -> float:
    """<a, b> for a sparse vector a."""
    total = 0.0
    for k in range(data.size):
        total += data[k] * b[indices[k]]
    return total


@vector_kernel
def sparse_add(factor: float, data: FloatArray, indices: IntArray, into: FloatArray) -> None:
    """into += factor * a for a sparse vector a."""
    for k in range(data.size):
        into[indices[k]] += factor * data[k]


@kernel
def unit_of(size: float) -> float:
    """A power of two near a size that is not negative; 1 where there is none.

    Whatever is divided by it keeps its digits, and its squares neither vanish nor overflow.
    """
    if not (size > 0.0 and size < math.inf):
        return 1.0
    _, power = math.frexp(size)
    return math.ldexp(1.0, min(max(power, -LARGEST_POWER), LARGEST_POWER))


@kernel
def largest(a: FloatArray) -> float:
    """max |a_j|; not a number where one of them is not."""
    most = 0.0
    for j in range(a.size):
        size = abs(a[j])
        if not size <= most:
            most = size
    return most


@vector_kernel
def norm(a: FloatArray) -> float:
    """|a|_2, of any size that float64 can hold."""
    square = dot(a, a)
    if 1e-290 < square < 1e290:
        return math.sqrt(square)
    unit = unit_of(largest(a))
    total = 0.0
    for j in range(a.size):
        total += (a[j] / unit) ** 2
    return unit * math.sqrt(total)


@kernel
def digits_of(states: IntArray, sizes: IntArray) -> IntArray:
    """The digits of ids in a mixed radix, (states x factors)."""
    digits = np.empty((states.size, sizes.size), np.int64)
    for k in range(states.size):
        rest = np.uint64(states[k])
        for factor in range(sizes.size - 1, 0, -1):
            size = np.uint64(sizes[factor])
            quotient = rest // size
            digits[k, factor] = rest - quotient * size
            rest = quotient
        digits[k, 0] = rest
    return digits


@kernel
def states_of(digits: IntArray, sizes: IntArray) -> IntArray:
    """The ids of rows of such digits, -1 where a digit is outside its size."""
    states = np.zeros(digits.shape[0], np.int64)
    for k in range(digits.shape[0]):
        for factor in range(sizes.size):
            digit = digits[k, factor]
            if digit < 0 or digit >= sizes[factor]:
                states[k] = -1
                break
            states[k] = states[k] * sizes[factor] + digit
    return states
