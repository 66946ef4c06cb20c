"""Checks of every array that is given, and the types that packages exchange.

Each check returns a read-only copy of its own, so a value cannot change under its owner.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from journeyman.errors import InvalidInput

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
SparseMatrix: TypeAlias = Any
"""A `scipy.sparse.csr_array`; SciPy carries no type information."""
Matrix: TypeAlias = Any
"""A dense two-dimensional array or a `SparseMatrix`."""
Seed: TypeAlias = int | np.random.Generator

Refusal: TypeAlias = type[InvalidInput]


def generator(seed: Seed) -> np.random.Generator:
    """The random generator a seed stands for; a generator stands for itself."""
    if isinstance(seed, np.random.Generator):
        return seed
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InvalidInput(f"seed = {seed!r}", "Give a whole number from 0") from None


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def norms(array: FloatArray) -> FloatArray:
    """2-norms of the columns (or of a vector), of any size that float64 can hold.

    >>> norms(np.array([[0.0, 2e200], [2e-300, 0.0]])).tolist()
    [2e-300, 2e+200]
    """
    with np.errstate(over="ignore"):
        plain = np.asarray(np.linalg.norm(array, axis=0))
    if ((plain > 1e-140) & (plain < 1e140)).all():
        return plain
    sizes = np.abs(array).max(axis=0, initial=0.0)
    _, powers = np.frexp(np.where(np.isfinite(sizes), sizes, 1.0))
    units = np.ldexp(1.0, np.clip(powers, -1000, 1000))
    return np.asarray(np.linalg.norm(array / units, axis=0) * units)


def dense(matrix: Matrix) -> FloatArray:
    """The matrix as an ordinary array."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def first_index(mask: NDArray[np.bool_]) -> int | tuple[int, ...]:
    """Index of the first True, as a plain int for vectors and a tuple otherwise."""
    position = np.unravel_index(int(np.argmax(mask)), mask.shape)
    return int(position[0]) if mask.ndim == 1 else tuple(int(i) for i in position)


def real_array(
    name: str, values: Any, *, ndim: int, refusal: Refusal, size: int | None = None
) -> FloatArray:
    """`values` as finite float64 with `ndim` axes and, if given, `size` entries on the first."""
    array = plain_array(name, values, refusal).astype(np.float64)
    require_shape(name, array.shape, ndim=ndim, size=size, refusal=refusal)
    require_finite(name, array, refusal)
    return read_only(array)


def integer_array(name: str, values: Any, *, refusal: Refusal, size: int | None = None) -> IntArray:
    """`values` as a vector of int64; floats are accepted only when they are whole."""
    array = plain_array(name, values, refusal)
    if array.dtype.kind not in "iu" and array.size:
        as_float = real_array(name, array, ndim=1, refusal=refusal)
        fractional = (as_float != np.floor(as_float)) | (np.abs(as_float) >= 2.0**63)
        if fractional.any():
            where = first_index(fractional)
            raise refusal(
                f"{name}[{where}] = {as_float[where]} is not a whole number",
                "Give integer ids",
            )
        array = as_float
    require_shape(name, array.shape, ndim=1, size=size, refusal=refusal)
    return read_only(array.astype(np.int64))


def plain_array(name: str, values: Any, refusal: Refusal) -> NDArray[Any]:
    """`values` as an array that float64 can hold without loss of meaning."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            if array.dtype.kind == "c":
                raise TypeError("complex numbers")
            array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as fault:
        raise refusal(
            f"{name} is not an array of real numbers ({fault})", "Give plain numbers"
        ) from fault
    return array


def require_shape(
    name: str, shape: tuple[int, ...], *, ndim: int, size: int | None, refusal: Refusal
) -> None:
    if len(shape) != ndim:
        form = "a flat list of numbers" if ndim == 1 else "a table: equally long rows of numbers"
        raise refusal(
            f"{name} has {len(shape)} axes (shape {shape}), expected {ndim}", f"Give {form}"
        )
    if size is not None and shape[0] != size:
        raise refusal(f"{name} has {shape[0]} entries, expected {size}", "Give one entry for each")


def require_finite(name: str, array: FloatArray, refusal: Refusal) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        where = first_index(~finite)
        raise refusal(
            f"{name} is not finite at {where}: {array[where]}",
            "Replace or remove NaN and infinity",
        )


def require_in_range(name: str, ids: IntArray, limit: int, refusal: Refusal) -> None:
    outside = (ids < 0) | (ids >= limit)
    if outside.any():
        where = first_index(outside)
        raise refusal(
            f"{name}[{where}] = {ids[where]} is outside 0..{limit - 1}",
            "Use zero-based ids below the number of entries",
        )


def require_between(
    name: str, value: Any, low: float, high: float, refusal: Refusal, remedy: str
) -> float:
    """`value` as a float strictly between `low` and `high`."""
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise refusal(f"{name} = {value!r} is not a number", remedy)
    number = float(value)
    if not low < number < high:
        raise refusal(f"{name} = {number} is not strictly between {low} and {high}", remedy)
    return number


def require_seconds(time_limit: Any, refusal: Refusal) -> None:
    """A time limit: seconds above 0, or None."""
    if time_limit is not None:
        remedy = "Give seconds above 0, or None"
        require_between("time_limit", time_limit, 0, np.inf, refusal, remedy)


def require_whole(
    name: str, value: Any, least: int, refusal: Refusal, *, below: float = 2.0**62
) -> int:
    """`value` as a whole number from `least`, `below` what 64 bits can count."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value < below:
        raise refusal(f"{name} = {value!r}", f"Give a whole number from {least}")
    return int(value)


def first_true(mask: BoolArray) -> int | None:
    """The first place where a vector of truth values holds; None where there is none."""
    return int(np.argmax(mask)) if mask.any() else None


def real_matrix(name: str, values: Any, refusal: Refusal) -> Matrix:
    """A finite matrix: sparse input stays sparse (sound CSR), everything else becomes dense."""
    if sparse.issparse(values):
        matrix = compressed_rows(name, values, refusal)
        require_finite(f"{name} (stored entries)", matrix.data, refusal)
        return matrix
    array = plain_array(name, values, refusal)
    return real_array(
        name, array[:, np.newaxis] if array.ndim == 1 else array, ndim=2, refusal=refusal
    )


def compressed_rows(name: str, matrix: Any, refusal: Refusal) -> SparseMatrix:
    """A canonical CSR copy. A hostile structure is refused before the first product touches it."""
    if matrix.ndim != 2:
        raise refusal(f"{name} has {matrix.ndim} axes, expected 2", "Reshape it")
    if matrix.dtype.kind not in "biuf":
        raise refusal(f"{name} is not a matrix of real numbers", "Give plain numbers")
    try:
        _require_sound_indices(matrix)
        rows = sparse.csr_array(matrix, dtype=np.float64, copy=True)
        rows.check_format(full_check=True)
    except (TypeError, ValueError) as fault:
        raise refusal(
            f"{name} is not a sound sparse matrix: {fault}",
            "Rebuild it from row, column and value triplets with scipy.sparse.coo_array",
        ) from fault
    rows.sum_duplicates()
    rows.sort_indices()
    return freeze_rows(narrow_indices(rows))


def narrow_indices(rows: SparseMatrix) -> SparseMatrix:
    """The same CSR matrix with 32-bit indices where they suffice."""
    index = sparse.get_index_dtype(maxval=max(rows.nnz, *rows.shape))
    parts = (
        rows.data, rows.indices.astype(index, copy=False), rows.indptr.astype(index, copy=False),
    )  # fmt: skip
    return sparse.csr_array(parts, shape=rows.shape)


def _require_sound_indices(matrix: Any) -> None:
    """Conversions between sparse formats are compiled code that trusts the indices it is given."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    if matrix.format == "coo":
        for ids, size in zip(matrix.coords, matrix.shape, strict=True):
            if ids.shape != matrix.data.shape or ((ids < 0) | (ids >= size)).any():
                raise ValueError(f"an index lies outside 0..{size - 1}")


def freeze_rows(rows: SparseMatrix) -> SparseMatrix:
    for part in (rows.data, rows.indices, rows.indptr):
        part.setflags(write=False)
    return rows


def assign(value: object, **fields: Any) -> None:
    """Set the fields of a frozen dataclass from within its constructor.

    A class decorated with `@dataclass(frozen=True, init=False)` writes its own `__init__`, checks
    what it is given and stores the result with `assign`; afterwards nothing can change it.
    """
    for name, content in fields.items():
        object.__setattr__(value, name, content)


def normaliser(sums: Any, entries: Any) -> Any:
    """What to divide a law by; exactly 1 when its sum is off by no more than rounding.

    A law of n entries that was divided by its sum adds up to 1 within (n + 1) eps, so normalising
    twice is normalising once: a value read from its own file is the same to the last bit.
    """
    return np.where(np.abs(sums - 1.0) <= (entries + 1) * np.finfo(float).eps, 1.0, sums)
