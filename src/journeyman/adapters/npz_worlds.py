"""Worlds from NPZ files: our own, and arrays in the layouts of other packages.

    (S, A, S), (A, S, S)         layout=sax, layout=asx: dense, s state, a action, x next state
    (S*A, S), (A*S, S)           layout=rows, layout=action-rows: one row per pair, or per action
                                 and then state; dense, or sparse as data, indices, indptr
    data, indices, indptr,       rows of states with different numbers of actions
      choice_offsets

Arrays are found by their usual names. A shape that fits two layouts is refused until `layout` says
which; nothing is guessed, for a wrong guess is a wrong world without an error.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from journeyman.adapters.npz_arrays import NpzArrays, open_npz
from journeyman.adapters.source_options import (
    GOAL,
    Options,
    discount_of,
    goal_of,
    initial_law,
    memory_limit,
    refuse_unknown,
    require_memory,
    world_bytes,
)
from journeyman.arrays import FloatArray, SparseMatrix, assign, compressed_rows
from journeyman.errors import InvalidFile, InvalidWorld, JourneymanError
from journeyman.world import World
from journeyman.world.conversions import untrusted_rows
from journeyman.world.laws import ROW_SUM_TOLERANCE

OPTIONS = ("discount", "initial", "layout", *GOAL)
TRANSITION = ("transition", "transitions", "transition_matrix", "transition_probabilities", "P")
INITIAL = ("initial", "initial_state_dist", "initial_state_distrib", "initial_distribution")
DISCOUNT = ("discount", "gamma")
ROWS, ACTION_ROWS = "rows", "action-rows"
SPARSE = ("data", "indices", "indptr")
TRIPLE = 24
"""Bytes of a transition while its array is searched for nonzeros."""


def read_npz_world(path: str, options: Options) -> World:
    """The world in an NPZ file."""
    with open_npz(path, memory_limit(options)) as arrays:
        if arrays.is_native:
            return _native(path, arrays, options)
        refuse_unknown(path, options, OPTIONS)
        rows, layout = _rows(arrays, options.get("layout"))
        offsets = arrays.read("choice_offsets") if "choice_offsets" in arrays.members else None
        _refuse_rows_of_unknown_order(path, rows, layout, offsets)
        repaired, error = repaired_rows(
            _state_major(rows) if layout == ACTION_ROWS else rows, _kept_as(arrays)
        )
        world = World(
            repaired,
            _initial(arrays, options, rows.shape[1]),
            _discount(arrays, options),
            choice_offsets=offsets,
            **goal_of(options),
        )
        return remembering(world, error)


def _native(path: str, arrays: NpzArrays, options: Options) -> World:
    """A file of `World.save`, which knows its own discount and initial law."""
    refuse_unknown(path, options, ())
    held = sum(arrays.announced(name).num_bytes for name in arrays.members)
    require_memory(path, 4 * held, arrays.limit)
    try:
        return World.load(path)
    except JourneymanError:
        raise
    except Exception as fault:
        raise InvalidFile(f"{path} is not a world: {fault}", "Save it again") from fault


def _rows(arrays: NpzArrays, layout: str | None) -> tuple[SparseMatrix, str | None]:
    """(pairs x states) rows and the layout they were in; None when nobody said it."""
    if set(SPARSE) <= arrays.members:
        if layout not in (None, ROWS, ACTION_ROWS):
            raise InvalidWorld(
                f"{arrays.path} holds sparse rows, which are not in layout {layout!r}",
                f"Give layout={ROWS} or layout={ACTION_ROWS}",
            )
        return _sparse_rows(arrays), layout
    name = _found(arrays, TRANSITION)
    if name is None:
        raise InvalidFile(
            f"{arrays.path} holds no transition law, only {sorted(arrays.members)}",
            f"Name the array {TRANSITION[0]!r}, or give CSR rows as {', '.join(SPARSE)}",
        )
    found = arrays.announced(name)
    given = found.shape[::-1] if found.reversed_axes else found.shape
    if len(given) == 2 and layout in (None, ROWS, ACTION_ROWS):
        axes = "px"
    elif len(given) == 3:
        axes = layout = _three_axes(arrays, name, given, layout)
    else:
        raise InvalidWorld(
            f"{arrays.path}: {name} has shape {given}, which is not layout {layout!r}"
            if layout
            else f"{arrays.path}: {name} has shape {given}",
            "Give three axes (layout=sax or asx) or rows of pairs (layout=rows or action-rows)",
        )
    return _searched(arrays, name, axes[::-1] if found.reversed_axes else axes), layout


def _kept_as(arrays: NpzArrays) -> Any:
    """The kind of number in which the laws were kept."""
    name = SPARSE[0] if set(SPARSE) <= arrays.members else _found(arrays, TRANSITION)
    return arrays.announced(str(name)).dtype


def _three_axes(arrays: NpzArrays, name: str, shape: tuple[int, ...], layout: str | None) -> str:
    """The layout of a dense array, by its shape if that leaves one."""
    if layout is None:
        possible = [some for some, fits in _fits(shape).items() if fits]
        if len(possible) != 1:
            how = "fits layouts sax and asx" if possible else "fits neither layout sax nor asx"
            raise InvalidWorld(
                f"{arrays.path}: {name} has shape {shape}, which {how}",
                "Say what its axes are, s state, a action, x next state: layout=sax or layout=asx",
            )
        return possible[0]
    if sorted(layout) != sorted("sax"):
        raise InvalidWorld(
            f"layout = {layout!r}, but {name} has shape {shape}",
            "Give a permutation of sax: s state, a action, x next state",
        )
    if shape[layout.index("s")] != shape[layout.index("x")]:
        raise InvalidWorld(
            f"{arrays.path}: {name} has shape {shape}, with layout {layout!r} states and next "
            "states differ in number",
            "Check the order of the letters in layout",
        )
    return layout


def _fits(shape: tuple[int, ...]) -> dict[str, bool]:
    return {"sax": shape[0] == shape[2], "asx": shape[1] == shape[2]}


def _searched(arrays: NpzArrays, name: str, axes: str) -> SparseMatrix:
    """The nonzeros of a dense array, block by block: it is never in memory as a whole."""
    found = arrays.announced(name)
    if found.dtype.kind not in "biuf":
        raise InvalidFile(f"{arrays.path}: {name} holds {found.dtype}", "Give plain numbers")
    sizes = dict(zip(axes, found.shape, strict=True))
    num_actions = sizes.get("a", 1)
    num_pairs, num_states = sizes.get("p", sizes.get("s", 0) * num_actions), sizes["x"]
    parts: list[tuple[Any, ...]] = []
    total = 0
    for first, block in arrays.blocks(name):
        if axes.endswith("x"):
            _require_laws(arrays, name, first, block)
        where = np.nonzero(block)
        at = dict(zip(axes, (where[0] + first, *where[1:]), strict=True))
        pairs = at["p"] if "p" in at else at["s"] * num_actions + at["a"]
        parts.append((block[where].astype(np.float64), pairs, at["x"]))
        total += pairs.size
        need = TRIPLE * total + world_bytes(num_states, num_pairs, total)
        require_memory(f"{arrays.path}: {name}", need, arrays.limit)
    if not parts:
        raise InvalidWorld(f"{arrays.path}: {name} is empty", "Give at least one state")
    values, pairs, targets = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sparse.coo_array((values, (pairs, targets)), shape=(num_pairs, num_states)).tocsr()


def _require_laws(arrays: NpzArrays, name: str, first: int, block: NDArray[Any]) -> None:
    """Stop at the first block with a row that is no law, before the rest is unpacked."""
    allowed = allowed_error(block.dtype, np.count_nonzero(block, axis=-1))
    off = np.abs(block.sum(axis=-1, dtype=np.float64) - 1.0) > allowed
    if off.any():
        where = np.unravel_index(int(np.argmax(off)), off.shape)
        place = ", ".join(str(int(k) + first * (not axis)) for axis, k in enumerate(where))
        raise InvalidWorld(
            f"{arrays.path}: {name}[{place}] sums to {float(block[where].sum(dtype=float))!r}",
            f"Rows must sum to 1 within {float(allowed[where]):.0e}; send missing mass to an "
            "absorbing state",
        )


def _sparse_rows(arrays: NpzArrays) -> SparseMatrix:
    """CSR rows, also those of `scipy.sparse.save_npz`, whose own reader would believe them."""
    path, sizes = arrays.path, {name: arrays.announced(name).size for name in SPARSE}
    if "format" in arrays.members and arrays.read("format").tobytes().strip(b"\0") != b"csr":
        raise InvalidFile(f"{path} is not in CSR format", "Save matrix.tocsr()")
    num_states = _num_columns(arrays)
    num_pairs = sizes["indptr"] - 1
    for name in SPARSE[1:]:
        if arrays.announced(name).dtype.kind not in "iu":
            raise InvalidFile(f"{path}: {name} holds fractions", "Give whole numbers")
    if sizes["data"] != sizes["indices"] or sizes["data"] > num_pairs * num_states:
        raise InvalidFile(
            f"{path} has {sizes['data']} probabilities and {sizes['indices']} next states for "
            f"{num_pairs} rows of {num_states} states",
            "Write the file again with scipy.sparse.save_npz or np.savez",
        )
    need = 32 * sizes["data"] + world_bytes(num_states, num_pairs, sizes["data"])
    require_memory(str(path), need, arrays.limit)
    data, indices, indptr = (arrays.read(name) for name in SPARSE)
    return untrusted_rows((data, indices, indptr), num_states)


def _num_columns(arrays: NpzArrays) -> int:
    if "shape" in arrays.members:
        shape = arrays.read("shape")
        if shape.shape == (2,) and shape.dtype.kind in "iu" and shape[1] >= 1:
            return int(shape[1])
    name = _found(arrays, INITIAL)
    if name is None:
        raise InvalidFile(
            f"{arrays.path} does not say how many states there are",
            "Add shape=[rows, states], or the array initial",
        )
    return arrays.announced(name).size


def _refuse_rows_of_unknown_order(
    path: str, rows: SparseMatrix, layout: str | None, offsets: Any
) -> None:
    """Rows of several actions come in two orders, which have the same shape."""
    num_pairs, num_states = rows.shape
    if offsets is not None and layout in (None, ROWS):
        return
    if layout is None and num_pairs != num_states:
        raise InvalidWorld(
            f"{path} has {num_pairs} rows of {num_states} states, in an order it does not say",
            "Give layout=rows if the actions of a state stand together, layout=action-rows if the "
            "states of an action do",
        )
    if layout == ACTION_ROWS and (offsets is not None or num_pairs % num_states):
        raise InvalidWorld(
            f"{path} has {num_pairs} rows for {num_states} states"
            f"{' and choice_offsets' * (offsets is not None)}, which is not layout={ACTION_ROWS}",
            f"Give every state the same actions, or choice_offsets and layout={ROWS}",
        )


def _state_major(rows: SparseMatrix) -> SparseMatrix:
    num_pairs, num_states = rows.shape
    sound = compressed_rows("transition", rows, InvalidWorld)
    return sound[np.arange(num_pairs).reshape(-1, num_states).T.ravel()]


def _initial(arrays: NpzArrays, options: Options, num_states: int) -> FloatArray:
    name = _found(arrays, INITIAL)
    if name is None or "initial" in options:
        return initial_law(str(arrays.path), options, num_states, np.ones(num_states))
    return repaired_law(arrays.read(name))


def _discount(arrays: NpzArrays, options: Options) -> float:
    name = _found(arrays, DISCOUNT)
    if name is None or "discount" in options:
        return discount_of(str(arrays.path), options)
    found = arrays.announced(name)
    if found.size != 1 or found.dtype.kind not in "iuf":
        raise InvalidFile(f"{arrays.path}: {name} has shape {found.shape}", "Give one number")
    return float(arrays.read(name).ravel()[0])


def _found(arrays: NpzArrays, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in arrays.members), None)


EPSILON = float(np.finfo(np.float32).eps)
MOST_ROUNDINGS = 16
"""Beyond so many, errors cancel: a law is never allowed to be further off than 2e-6."""


def allowed_error(dtype: Any, entries: Any) -> Any:
    """How far from 1 a law of so many entries other than 0 may add up, kept as `dtype`."""
    if not _is_single(dtype):
        return np.full(np.shape(entries), ROW_SUM_TOLERANCE)
    return EPSILON * np.minimum(np.asarray(entries) + 1, MOST_ROUNDINGS)


def repaired_rows(rows: SparseMatrix, dtype: Any) -> tuple[SparseMatrix, float]:
    """Rows kept as `dtype`, those that single precision explains divided by their sums, and how far
    off the furthest of them was. Their structure need not be sound.

    The n entries of a law in single precision, and the sum they were divided by, are rounded, so
    that the law adds up to 1 within (n + 1) eps, eps = 2^-23; in long laws errors cancel. What lies
    further off is not rounding, and is refused like everywhere else. How much was repaired is the
    world's `normalisation_error`.
    """
    if not _is_single(dtype):
        return rows, 0.0
    sound = compressed_rows("transition", rows, InvalidWorld)
    sums, entries = np.asarray(sound.sum(axis=1)).ravel(), np.diff(sound.indptr)
    error = np.abs(sums - 1.0)
    explained = error <= allowed_error(dtype, entries)
    data = sound.data / np.repeat(np.where(explained, sums, 1.0), entries)
    matrix = sparse.csr_array((data, sound.indices, sound.indptr), shape=sound.shape)
    return matrix, float(np.max(error[explained], initial=0.0))


def repaired_law(law: ArrayLike) -> FloatArray:
    """An initial law, divided by its sum if single precision explains what that is off."""
    given = np.asarray(law)
    if not _is_single(given.dtype):
        return given
    exact = given.astype(np.float64)
    explained = abs(exact.sum() - 1.0) <= allowed_error(given.dtype, np.count_nonzero(given))
    return exact / exact.sum() if explained else exact


def _is_single(dtype: Any) -> bool:
    kind = np.dtype(dtype)
    return bool(kind.kind == "f" and kind.itemsize == 4)


def remembering(world: World, error: float) -> World:
    """The world, whose laws had been off by `error` before they were given to it."""
    assign(world, normalisation_error=max(world.normalisation_error, error))
    return world


def was_single(world: World) -> bool:
    """Whether more was repaired than double precision needs."""
    return world.normalisation_error > ROW_SUM_TOLERANCE
