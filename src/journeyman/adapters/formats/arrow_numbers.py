"""Arrow columns as vectors of whole numbers; empty cells are told apart."""

from pathlib import Path
from typing import Any

import numpy as np

from journeyman.arrays import BoolArray, IntArray
from journeyman.errors import InvalidFile

LARGEST_WHOLE = 2.0**53
"""Floats below it are exact."""


def whole_numbers(
    path: Path, name: str, column: Any, first_row: int | None = None
) -> tuple[IntArray, BoolArray]:
    """(values, empty): the column as int64, with 0 in empty cells.

    What is wrong is named by its row, if that of the first cell is given.
    """
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
        wrong = ~(np.abs(values) < LARGEST_WHOLE) | (values != np.floor(values))
        if wrong.any():
            raise InvalidFile(
                f"{place(path, wrong, first_row)}: {name} is {values[wrong][0]}, expected a whole "
                "number",
                "Number states and actions from 0",
            )
    if column.type == pyarrow.uint64() and values.size and values.max() >= 2**63:
        raise InvalidFile(f"{path}: {name} is {values.max()}, which is no id", "Number from 0")
    return values.astype(np.int64), empty


def filled(path: Path, name: str, column: Any, first_row: int | None = None) -> IntArray:
    """A column without empty cells."""
    values, empty = whole_numbers(path, name, column, first_row)
    if empty.any():
        raise InvalidFile(f"{place(path, empty, first_row)}: {name} is empty", "Fill it in")
    return values


def place(path: Path, wrong: BoolArray, first_row: int | None) -> str:
    """The file and, if the row of the first cell is known, that of the first wrong one."""
    return f"{path}" if first_row is None else f"{path}, row {first_row + int(np.argmax(wrong))}"
