"""Worlds estimated from logs of steps: one row per step, or per kind of step with its count.

    state,action,next_state[,count][,terminated]
    state,action,next_state,episode[,t][,terminated]

The world keeps its counts, so that certificates account for what it may get wrong. Where episodes
start is read from `episode` (its first row, or the one with t = 0), or given as `initial`. A step
marked `terminated` leads to an added absorbing state, the sink, because the same state may be
entered with and without an end.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.adapters.formats.memory_limit import require_memory
from journeyman.adapters.world_files.log_tables import LARGEST_ID, Columns
from journeyman.adapters.world_files.source_options import (
    Options,
    discount_of,
    initial_law,
    refuse_unknown,
    whole_number,
    whole_numbers,
)
from journeyman.arrays import IntArray
from journeyman.errors import InvalidFile
from journeyman.world import World, recorded

REQUIRED = ("state", "action", "next_state")
OPTIONAL = ("count", "episode", "t", "terminated")
OPTIONS = ("discount", "initial", "num_states", "absorbing")
MOST_STEPS = 1 << 53
"""Counts beyond this are not exact as floating-point numbers."""
PER_ROW, PER_STATE = 200, 100
"""Bytes that a row of the log, and a state, take while frequencies are computed."""


def logged_world(path: str, columns: Columns, options: Options, limit: int) -> World:
    """The world whose laws are the frequencies in the log."""
    refuse_unknown(path, options, OPTIONS)
    discount = discount_of(path, options)
    rows = _counted(path, columns)
    size = _number_of_states(rows, options)
    require_memory(path, PER_ROW * rows["state"].size + PER_STATE * size, limit)
    given = _starts(path, rows, options, size)
    following, sink = rows["next_state"], None
    ends = whole_numbers("absorbing", options.get("absorbing", ""))
    if rows.get("terminated", np.zeros(1)).any():
        sink, size = size, size + 1
        following = np.where(rows["terminated"] != 0, sink, following)
        ends.append(sink)
        if given["initial"] is not None:
            given["initial"] = np.append(given["initial"], 0.0)
    steps = (rows["state"], rows["action"], following)
    arguments = recorded.empirical(
        *steps, **given, num_states=size, support=None, absorbing=np.array(ends, dtype=np.int64)
    )
    return World(
        **arguments | _frequencies(arguments, steps, rows["count"]), discount=discount, sink=sink
    )


def _counted(path: str, columns: Columns) -> dict[str, IntArray]:
    """Rows that were seen, with how often; a row without a count was seen once."""
    if not columns["state"].size:
        raise InvalidFile(f"{path} holds no step", "Give one row per step")
    for name in REQUIRED:
        wrong = (columns[name] < 0) | (columns[name] >= LARGEST_ID)
        if wrong.any():
            row = int(np.argmax(wrong))
            large = "" if columns[name][row] < 0 else ", which is too large"
            raise InvalidFile(
                f"{path}: row {row} has {name} {columns[name][row]}{large}", "Number ids from 0"
            )
    if {"count", "episode"} <= set(columns):
        raise InvalidFile(
            f"{path} has the columns count and episode",
            "Give one row per step, with its episode, or one per kind of step, with its count",
        )
    if "count" not in columns:
        _require_chains(path, columns)
        return {**columns, "count": np.ones_like(columns["state"])}
    counts = columns["count"]
    wrong = (counts < 0) | (counts > MOST_STEPS)
    if wrong.any() or not 0 < counts.sum(dtype=float) <= MOST_STEPS:
        row = int(np.argmax(wrong))
        raise InvalidFile(
            f"{path}: row {row} has count {counts[row]}, all counts sum to {counts.sum():.3g}",
            f"Give whole numbers from 0 that sum to something between 1 and {MOST_STEPS:.0e}",
        )
    return {name: part[counts > 0] for name, part in columns.items()}


def _number_of_states(rows: Columns, options: Options) -> int:
    if "num_states" in options:
        return whole_number("num_states", options["num_states"])
    return 1 + max(int(rows[name].max()) for name in ("state", "next_state"))


def _frequencies(
    arguments: Mapping[str, Any], steps: tuple[IntArray, ...], counts: IntArray
) -> dict[str, Any]:
    """Laws and counts in which a row weighs as much as it was often; `arguments` have one each."""
    pattern, offsets = arguments["transition"], arguments["choice_offsets"]
    homes, names = (
        np.repeat(np.arange(offsets.size - 1), np.diff(offsets)),
        arguments["observed_actions"],
    )
    here, taken, after = steps
    width = 1 + int(max(names.max(), taken.max()))
    pairs = np.searchsorted(homes * width + names, here * width + taken)
    totals = np.bincount(pairs, counts, minlength=homes.size)
    resting = np.flatnonzero(totals == 0)
    where = (np.append(pairs, resting), np.append(after, homes[resting]))
    weights = np.append(counts, np.ones_like(resting)).astype(float)
    laws = sparse.coo_array((weights, where), shape=pattern.shape).tocsr()
    laws.data /= np.repeat(np.maximum(totals, 1), np.diff(laws.indptr))
    return {"transition": laws, "transition_counts": totals.astype(np.int64)}


def _first_rows(path: str, columns: Columns) -> IntArray:
    """The rows with which episodes start."""
    if "t" in columns:
        starts = np.flatnonzero(columns["t"] == 0)
        lost = np.setdiff1d(columns["episode"], columns["episode"][starts])
        if lost.size:
            raise InvalidFile(
                f"{path}: episode {lost[0]} has no row with t = 0",
                "Count t from 0, or leave t out and keep rows in order",
            )
        return starts
    _, first = np.unique(columns["episode"], return_index=True)
    return np.asarray(first)


def _starts(path: str, rows: Columns, options: Options, size: int) -> dict[str, Any]:
    """A known law, or the observed first states."""
    if "initial" in options or "episode" not in rows:
        law = initial_law(path, options, size, np.ones(size))
        return {"initial": law, "initial_states": None}
    return {"initial": None, "initial_states": rows["state"][_first_rows(path, rows)]}


def _require_chains(path: str, columns: Columns) -> None:
    """Within an episode every step starts where the one before it led."""
    if not {"episode", "t"} <= set(columns):
        return
    order = np.lexsort([columns["t"], columns["episode"]])
    episode, t, state, following = (
        columns[name][order] for name in ("episode", "t", "state", "next_state")
    )
    joined = (np.diff(episode) == 0) & (np.diff(t) == 1)
    torn = joined & (following[:-1] != state[1:])
    twice = (np.diff(episode) == 0) & (np.diff(t) == 0)
    if torn.any() or twice.any():
        step = int(np.argmax(torn | twice))
        where = f"{path}: episode {episode[step]}, t = {t[step]}"
        went = f"leads to state {following[step]}, the next step is from {state[step + 1]}"
        raise InvalidFile(
            f"{where} {'occurs twice' if twice[step] else went}",
            "Give every step its own row; next_state is the state of the next row",
        )
