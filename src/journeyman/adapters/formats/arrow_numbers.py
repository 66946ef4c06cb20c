"""Arrow columns as vectors of whole numbers; empty cells are told apart."""

from pathlib import Path
from typing import Any

import numpy as np

from journeyman.arrays import BoolArray, IntArray
from journeyman.errors import InvalidFile

LARGEST_WHOLE = 2.0**53
"""Floats below it are exact."""


def whole_numbers(path: Path, name: str, column: Any) -> tuple[IntArray, BoolArray]:
    """(values, empty): the column as int64, with 0 in empty cells."""
    import pyarrow

    kind = pyarrow.types
    number = kind.is_integer(column.type) or kind.is_floating(column.type)
    if not (number or kind.is_boolean(column.type)):
        raise InvalidFile(
            f"{path}: {name} holds {str(column.type)[:80]}, expected whole numbers",
            "Number states and actions from 0, and write the numbers",
        )
    empty = column.is_null(nan_is_null=kind.is_floating(column.type))
    empty = empty.to_numpy(zero_copy_only=False)
    values = column.fill_null(pyarrow.scalar(False).cast(column.type)).to_numpy(
        zero_copy_only=False
    )
    if kind.is_floating(column.type):
        values = np.where(empty, 0, values).astype(np.float64)
        if not (np.abs(values) < LARGEST_WHOLE).all() or (values != np.floor(values)).any():
            raise InvalidFile(
                f"{path}: {name} holds numbers that are not whole",
                "Number states and actions from 0",
            )
    if column.type == pyarrow.uint64() and values.size and values.max() >= 2**63:
        raise InvalidFile(f"{path}: {name} is {values.max()}, which is no id", "Number from 0")
    return values.astype(np.int64), empty


def filled(path: Path, name: str, column: Any) -> IntArray:
    """A column without empty cells."""
    values, empty = whole_numbers(path, name, column)
    if empty.any():
        raise InvalidFile(f"{path}: {name} has an empty cell", "Fill it in")
    return values
