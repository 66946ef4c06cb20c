"""Probability laws: wrong ones are refused, nearly right ones normalised; and draws from them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    SparseMatrix,
    compressed_rows,
    first_index,
    normaliser,
    plain_array,
    read_only,
    real_array,
    require_between,
    require_finite,
)
from journeyman.errors import InvalidWorld
from journeyman.world.pairs import Pairs

ROW_SUM_TOLERANCE = 1e-8
"""A larger error would change occupancies visibly (by 1/(1-discount) times as much)."""


def transition_matrix(matrix: Any) -> SparseMatrix:
    """A canonical CSR copy of a (pairs x states) matrix, finite and without stored zeros."""
    if not sparse.issparse(matrix):
        matrix = plain_array("transition", matrix, InvalidWorld)
        if matrix.ndim == 3:
            raise InvalidWorld(
                "transition has three axes, expected one row per (state, action)",
                "Use World.from_arrays(transition, initial, discount, layout='sax')",
            )
        matrix = sparse.csr_array(real_array("transition", matrix, ndim=2, refusal=InvalidWorld))
    rows = compressed_rows("transition", matrix, InvalidWorld)
    require_finite("transition (stored entries)", rows.data, InvalidWorld)
    if rows.shape[0] == 0 or rows.shape[1] == 0:
        raise InvalidWorld(f"transition is empty (shape {rows.shape})", "Give at least one state")
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    return rows


def pairs_of(
    transition: SparseMatrix,
    choice_offsets: ArrayLike | Pairs | None,
    action_numbers: ArrayLike | None = None,
) -> Pairs:
    """The pairs behind the rows of `transition`."""
    pairs = _unnumbered_pairs(transition, choice_offsets)
    if action_numbers is None:
        return pairs
    return Pairs(pairs.offsets, action_numbers)


def _unnumbered_pairs(transition: SparseMatrix, choice_offsets: ArrayLike | Pairs | None) -> Pairs:
    num_pairs, num_states = transition.shape
    if choice_offsets is None:
        if num_pairs % num_states:
            raise InvalidWorld(
                f"transition has {num_pairs} rows, no multiple of its {num_states} columns",
                "Give one row per (state, action), or choice_offsets when states differ in actions",
            )
        return Pairs.rectangular(num_states, num_pairs // num_states)
    pairs = Pairs.of(choice_offsets)
    if pairs.num_states != num_states or len(pairs) != num_pairs:
        raise InvalidWorld(
            f"choice_offsets describe {pairs.num_states} states and {len(pairs)} pairs, "
            f"transition has {num_states} columns and {num_pairs} rows",
            "Give num_states + 1 offsets that end at the number of rows",
        )
    return pairs


def row_stochastic(transition: SparseMatrix, pairs: Pairs) -> tuple[SparseMatrix, float]:
    """`transition` with rows that sum to one, and the largest correction that took."""
    wrong = (transition.data < 0) | (transition.data > 1 + ROW_SUM_TOLERANCE)
    if wrong.any():
        entry = first_index(wrong)
        pair = int(np.searchsorted(transition.indptr, entry, side="right")) - 1
        raise InvalidWorld(
            f"transition has probability {transition.data[entry]} from "
            f"{pairs.pair_in_words(pair)} to state {transition.indices[entry]}",
            "Probabilities lie between 0 and 1",
        )
    sums = np.asarray(transition.sum(axis=1)).ravel()
    error = np.abs(sums - 1.0)
    if (error > ROW_SUM_TOLERANCE).any():
        pair = int(first_index(error > ROW_SUM_TOLERANCE))  # type: ignore[arg-type]
        raise InvalidWorld(
            f"transition row {pair} ({pairs.pair_in_words(pair)}) sums to {float(sums[pair])!r}",
            "Rows must sum to 1 within 1e-8; send missing mass to an absorbing state",
        )
    entries = np.diff(transition.indptr)
    divisors, data = normaliser(sums, entries), transition.data
    if (divisors != 1.0).any():
        data = data / np.repeat(divisors, entries)
    parts = (data, transition.indices, transition.indptr)
    return sparse.csr_array(parts, shape=transition.shape), float(error.max())


def discount(value: float, *, at_most_one: bool = False) -> float:
    """A discount below 1; 1 itself where totals end by themselves."""
    if at_most_one and isinstance(value, int | float | np.number) and value == 1:
        return 1.0
    return require_between(
        "discount", value, 0, 1, InvalidWorld,
        "Without discounting there is no finite occupancy; use for example 0.99",
    )  # fmt: skip


def probability_vector(name: str, values: ArrayLike, size: int) -> FloatArray:
    """A law over `size` outcomes; one whose sum is within 1e-8 of 1 is normalised."""
    law = real_array(name, values, ndim=1, size=size, refusal=InvalidWorld)
    if (law < 0).any():
        where = first_index(law < 0)
        raise InvalidWorld(
            f"{name}[{where}] = {law[where]} is negative", "Probabilities are at least 0"
        )
    if abs(law.sum() - 1.0) > ROW_SUM_TOLERANCE:
        raise InvalidWorld(f"{name} sums to {float(law.sum())!r}", "It must sum to 1 within 1e-8")
    return read_only(law / normaliser(law.sum(), law.size))


def running_sums(law: FloatArray) -> FloatArray:
    """For `draw_outcomes`: 1 from the last possible outcome on, so that none beyond is drawn."""
    sums = np.cumsum(law)
    sums[int(np.flatnonzero(law)[-1]) :] = 1.0
    return read_only(sums)


def draw_outcomes(sums: FloatArray, uniforms: FloatArray) -> IntArray:
    """The outcome at which the running sum exceeds each uniform number.

    >>> draw_outcomes(running_sums(np.array([0.0, 0.5, 0.5])), np.array([0.0, 0.5])).tolist()
    [1, 2]
    """
    return np.asarray(np.searchsorted(sums, uniforms, side="right"), dtype=np.int64)


def draw_columns(laws: FloatArray, uniforms: FloatArray) -> IntArray:
    """The column at which the running sum of each row exceeds its uniform number.

    Rows sum to one up to rounding; a column of probability zero is never drawn.

    >>> draw_columns(np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]), np.array([0.5, 0.999])).tolist()
    [2, 1]
    """
    sums = np.cumsum(laws, axis=1)
    last = laws.shape[1] - 1 - np.argmax(laws[:, ::-1] > 0, axis=1)
    drawn = (sums <= uniforms[:, np.newaxis]).sum(axis=1)
    return np.asarray(np.minimum(drawn, last))
