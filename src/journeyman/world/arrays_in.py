"""Transition laws in the array layouts of other packages, brought into state-major rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import SparseMatrix, compressed_rows, plain_array
from journeyman.errors import InvalidWorld


def state_major(transition: Any, layout: str) -> Any:
    """(state, action, next state) given with its axes in any order, as (pairs x states) rows."""
    if sorted(layout) != sorted("sax"):
        raise InvalidWorld(
            f"layout = {layout!r} is not a permutation of 'sax'",
            "Name the axes of the array: s state, a action, x next state",
        )
    if isinstance(transition, Sequence) and any(sparse.issparse(part) for part in transition):
        return _interleave(transition, layout)
    array = plain_array("transition", transition, InvalidWorld)
    if array.ndim != 3:
        raise InvalidWorld(
            f"transition has {array.ndim} axes (shape {array.shape}), layout {layout!r} needs 3",
            "Give an array with one axis per letter, or use World(...) for (pairs x states) rows",
        )
    ordered = array.transpose([layout.index(axis) for axis in "sax"])
    num_states, num_actions, num_targets = ordered.shape
    if num_states != num_targets:
        raise InvalidWorld(
            f"with layout {layout!r} the array has {num_states} states but {num_targets} next "
            "states",
            "Check the order of the letters in layout",
        )
    return ordered.reshape(num_states * num_actions, num_targets)


def _interleave(matrices: Sequence[Any], layout: str) -> SparseMatrix:
    """One sparse (states x states) matrix per action."""
    if layout != "asx":
        raise InvalidWorld(
            f"a list of sparse matrices has layout 'asx', not {layout!r}",
            "Give one (states x states) matrix per action",
        )
    parts = [
        compressed_rows(
            "transition", part if sparse.issparse(part) else sparse.csr_array(part), InvalidWorld
        )
        for part in matrices
    ]
    shapes = {part.shape for part in parts}
    num_states = parts[0].shape[0]
    if shapes != {(num_states, num_states)}:
        raise InvalidWorld(
            f"the matrices of the actions have {'different ' * (len(shapes) > 1)}shapes "
            f"{sorted(shapes)}",
            "Give every action a (states x states) matrix",
        )
    stacked = sparse.vstack(parts, format="csr")
    order = np.arange(len(matrices) * num_states).reshape(len(matrices), num_states).T.ravel()
    return stacked[order]


def untrusted_rows(parts: tuple[Any, Any, Any], num_states: int) -> SparseMatrix:
    """A CSR matrix from arrays of a file. Its structure is not believed before it is checked."""
    try:
        return sparse.csr_array(parts, shape=(parts[2].size - 1, num_states))
    except (TypeError, ValueError) as fault:
        raise InvalidWorld(
            f"transition is not a sound sparse matrix: {fault}", "Write the file again"
        ) from fault
