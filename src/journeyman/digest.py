"""SHA-256 of values: the same content, the same word, on every machine."""

import hashlib
from typing import Any

import numpy as np
from scipy import sparse


def digest(*parts: Any) -> str:
    """A word for numbers, text, arrays and sparse matrices, in this order."""
    state = hashlib.sha256()
    for part in parts:
        _feed(state, part)
    return state.hexdigest()


def _feed(state: Any, part: Any) -> None:
    if sparse.issparse(part):
        rows = part.tocsr()
        for piece in (rows.shape, rows.data, rows.indices, rows.indptr):
            _feed(state, piece)
        return
    if isinstance(part, np.ndarray):
        if part.dtype.kind in "iu":
            part = part.astype(np.int64)
        state.update(f"{part.dtype.str}{part.shape}".encode())
        state.update(np.ascontiguousarray(part).tobytes())
        return
    if isinstance(part, tuple | list):
        state.update(f"({len(part)}".encode())
        for piece in part:
            _feed(state, piece)
        return
    if not isinstance(part, str | int | float | bool | None):
        raise TypeError(f"cannot digest a {type(part).__name__}")
    state.update(f"{type(part).__name__}:{part!r};".encode())
