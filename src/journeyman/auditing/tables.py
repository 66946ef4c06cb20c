"""Arrays of an input, checked one by one before anything is computed from them."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from journeyman.auditing.reading import Arrays, Refused

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

LAW_TOLERANCE = 1e-8
"""By which probabilities may miss a sum of one."""


def reals(arrays: Arrays, name: str, ndim: int, size: int | None = None) -> Floats:
    """A finite array of doubles with the given number of axes and entries on the first."""
    found = arrays[name].astype(np.float64)
    if found.ndim != ndim or (size is not None and found.shape[0] != size):
        raise Refused(f"{name} has shape {found.shape}")
    if not np.isfinite(found).all():
        raise Refused(f"{name} is not finite")
    return found


def wholes(arrays: Arrays, name: str) -> Ints:
    """A list of whole numbers."""
    if arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1:
        raise Refused(f"{name} is not a list of whole numbers")
    return arrays[name].astype(np.int64)


def words(header: dict[str, Any], name: str) -> list[str]:
    """A list of words from a header."""
    found = header.get(name)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise Refused(f"{name} is not a list of words")
    return found


def sparse_rows(arrays: Arrays, prefix: str, shape: tuple[int, int]) -> Any:
    """A CSR matrix with sorted columns; its structure is checked before compiled code sees it."""
    indices, ends = wholes(arrays, f"{prefix}indices"), wholes(arrays, f"{prefix}indptr")
    data = reals(arrays, f"{prefix}data", 1)
    sound = ends.size == shape[0] + 1 and ends[0] == 0 and ends[-1] == data.size == indices.size
    if not sound or (np.diff(ends) < 0).any() or ((indices < 0) | (indices >= shape[1])).any():
        raise Refused("a sparse matrix has no sound structure")
    row = np.arange(shape[0]).repeat(np.diff(ends))
    if ((np.diff(indices) <= 0) & (np.diff(row) == 0)).any():
        raise Refused("a sparse matrix gives an entry twice or out of order")
    return sparse.csr_array((data, indices, ends), shape=shape)


def require_law(what: str, law: Floats, starts: Ints) -> None:
    """Whether every stretch of `law` from one of `starts` to the next is a probability law."""
    if (law < 0).any() or (np.abs(np.add.reduceat(law, starts) - 1) > LAW_TOLERANCE).any():
        raise Refused(f"{what} is not a probability law")
