"""Worlds from UMB files, the exchange format of probabilistic model checkers (PRISM, Storm).

    index.json                  what kind of model it is, and how many states, choices, branches
    state-to-choices.bin        offsets: the choices of state x are state[x]:state[x+1]
    choice-to-branches.bin      offsets: the branches of a choice
    branch-to-target.bin        next states
    branch-to-probability.bin   probabilities
    state-is-initial.bin        one bit per state

Offsets and targets are 64-bit, little-endian. The choices of a state become its actions, in their
order. Rewards and labels, if there are any, come in through the door of costs (`umb_costs`).

*Reference*: specification of the unified Markov binary format, version 1 (2026).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from journeyman.adapters.formats.memory_limit import memory_limit, require_memory, world_bytes
from journeyman.adapters.world_files.source_options import (
    Options,
    discount_of,
    initial_law,
    refuse_unknown,
)
from journeyman.adapters.world_files.umb_archive import Member, read_members
from journeyman.arrays import FloatArray, IntArray
from journeyman.errors import InvalidFile
from journeyman.world import World

OPTIONS = ("discount", "initial")
INDEX, INITIAL = "index.json", "state-is-initial.bin"
CHOICES, BRANCHES = "state-to-choices.bin", "choice-to-branches.bin"
TARGETS, PROBABILITIES = "branch-to-target.bin", "branch-to-probability.bin"
INDEX_LIMIT = 16 << 20
UNPACKED = 4
"""A file may unpack to this many times the memory it is allowed: most of it is skipped."""
LARGEST_COUNT = 1 << 60
VERSION = 1


@dataclass(frozen=True)
class Counts:
    """What the index says about the model."""

    states: int
    choices: int
    branches: int
    rational: bool

    def sizes(self) -> dict[str, int]:
        """Bytes of every member that is read."""
        return {
            CHOICES: 8 * (self.states + 1),
            BRANCHES: 8 * (self.choices + 1),
            TARGETS: 8 * self.branches,
            PROBABILITIES: (16 if self.rational else 8) * self.branches,
            INITIAL: 8 * -(-self.states // 64),
        }


def read_umb_world(path: str, options: Options) -> World:
    """The Markov decision process in a UMB file."""
    refuse_unknown(path, options, OPTIONS)
    limit = memory_limit(options)
    counts = counts_of(path, read_index(path, limit))
    need = 2 * sum(counts.sizes().values())
    need += world_bytes(counts.states, counts.choices, counts.branches)
    require_memory(path, need, limit)
    parts = _parts(path, counts, limit)
    offsets = offsets_in(path, parts, CHOICES, counts.states, counts.choices)
    rows = offsets_in(path, parts, BRANCHES, counts.choices, counts.branches)
    transition = (probabilities_in(path, parts, counts), _targets(path, parts, counts), rows)
    return World(
        sparse.csr_array(transition, shape=(counts.choices, counts.states)),
        _initial(path, parts, counts, options),
        discount_of(path, options),
        choice_offsets=offsets,
    )


def read_index(path: str, limit: int) -> Any:
    """What `index.json` says, whatever it is."""

    def is_index(member: Member) -> bool:
        if member.name == INDEX and member.size > INDEX_LIMIT:
            raise InvalidFile(f"{path}: {INDEX} has {member.size} bytes", "Write it again")
        return member.name == INDEX

    found = read_members(path, is_index, UNPACKED * limit)
    if INDEX not in found:
        raise InvalidFile(f"{path} is not a UMB file: it lacks {INDEX}", "Give a .umb file")
    try:
        return json.loads(found[INDEX])
    except (ValueError, RecursionError) as fault:
        raise _no_model(path, fault) from fault


def _no_model(path: str, fault: Exception) -> InvalidFile:
    return InvalidFile(
        f"{path}: {INDEX} does not describe a model with probabilities ({fault!r})",
        "Export a Markov decision process",
    )


def counts_of(path: str, index: Any) -> Counts:
    """The counts of a Markov decision process (or chain) without observations."""
    try:
        version, model = index["format-version"], index["transition-system"]
        kind = (model["time"], model["#players"], model.get("#observations", 0))
        probability = model["branch-probability-type"]
        states, choices, branches = (
            model[f"#{what}"] for what in ("states", "choices", "branches")
        )
    except (KeyError, TypeError, AttributeError) as fault:
        raise _no_model(path, fault) from fault
    if version != VERSION:
        raise InvalidFile(f"{path} has format version {version!r}", f"Only {VERSION} is known")
    if kind not in (("discrete", 1, 0), ("discrete", 0, 0)):
        raise InvalidFile(
            "{}: a model in {} time with {} players and {} observations".format(path, *kind),
            "Export a Markov decision process: discrete time, one player, no observations",
        )
    sizes = (states, choices, branches)
    if not all(type(size) is int and 1 <= size <= LARGEST_COUNT for size in sizes):
        raise InvalidFile(f"{path}: {INDEX} counts {sizes} states, choices, branches", "Mend it")
    return Counts(*sizes, rational=is_rational(path, "probabilities", probability))


def is_rational(path: str, what: str, kind: Any) -> bool:
    """Whether numbers are fractions of 64-bit integers; otherwise they are doubles."""
    name, size = (kind.get("type"), kind.get("size")) if isinstance(kind, dict) else (kind, None)
    known = {"double": (None, 64), "rational": (None, 128)}
    if not isinstance(name, str) or size not in known.get(name, ()):
        raise InvalidFile(
            f"{path} has {what} of type {name!r} (size {size})",
            "Export doubles, or rationals of 128 bits",
        )
    return name == "rational"


def _parts(path: str, counts: Counts, limit: int) -> Mapping[str, bytes]:
    """The binary members of a model."""
    return read_members(path, of_sizes(path, counts.sizes()), UNPACKED * limit)


def of_sizes(path: str, sizes: Mapping[str, int]) -> Callable[[Member], bool]:
    """Accepts members by name, of exactly the sizes that follow from the index."""

    def fits(member: Member) -> bool:
        if member.name in sizes and member.size != sizes[member.name]:
            raise InvalidFile(
                f"{path}: {member.name} has {member.size} bytes, expected {sizes[member.name]}",
                "The index and the arrays disagree: write the file again",
            )
        return member.name in sizes

    return fits


def offsets_in(
    path: str, parts: Mapping[str, bytes], name: str, sources: int, targets: int
) -> IntArray:
    """Offsets from 0 to `targets` that do not decrease; without a member, one target for each."""
    if name not in parts:
        if sources != targets:
            raise InvalidFile(
                f"{path} lacks {name}", f"{sources} do not go into {targets} in order"
            )
        return np.arange(sources + 1)
    offsets = np.frombuffer(parts[name], dtype="<u8")
    wrong = (offsets[1:] < offsets[:-1]) | (offsets[1:] > targets)
    if offsets[0] != 0 or offsets[-1] != targets or wrong.any():
        where = int(np.argmax(wrong)) + 1 if wrong.any() else 0 if offsets[0] else sources
        raise InvalidFile(
            f"{path}: {name}[{where}] = {offsets[where]}",
            f"Offsets start at 0, never decrease, and end at {targets}",
        )
    return offsets.astype(np.int64)


def _targets(path: str, parts: Mapping[str, bytes], counts: Counts) -> IntArray:
    targets = np.frombuffer(_held(path, parts, TARGETS), dtype="<u8")
    outside = targets >= counts.states
    if outside.any():
        where = int(np.argmax(outside))
        raise InvalidFile(
            f"{path}: {TARGETS}[{where}] = {targets[where]} is outside 0..{counts.states - 1}",
            "Lead every branch to a state",
        )
    return targets.astype(np.int64)


def probabilities_in(path: str, parts: Mapping[str, bytes], counts: Counts) -> FloatArray:
    return numbers_in(path, PROBABILITIES, _held(path, parts, PROBABILITIES), counts.rational)


def numbers_in(path: str, name: str, data: bytes, rational: bool) -> FloatArray:
    """Doubles, or fractions divided."""
    if not rational:
        return np.frombuffer(data, dtype="<f8").astype(np.float64)
    words: NDArray[Any] = np.frombuffer(data, dtype=[("above", "<i8"), ("below", "<u8")])
    if not words["below"].all():
        where = int(np.argmin(words["below"]))
        raise InvalidFile(f"{path}: {name}[{where}] divides by 0", "Write it again")
    return np.asarray(words["above"].astype(float) / words["below"].astype(float))


def _initial(path: str, parts: Mapping[str, bytes], counts: Counts, options: Options) -> FloatArray:
    """The initial state; between several, or without one, the user has to choose."""
    bits = np.unpackbits(np.frombuffer(parts.get(INITIAL, b""), np.uint8), bitorder="little")
    marked = bits[: counts.states].astype(float)
    if bits[counts.states :].any():
        raise InvalidFile(f"{path}: {INITIAL} marks states beyond the last", "Write it again")
    if "initial" not in options and marked.sum() == 1:
        return marked
    several = f"{path} (with {int(marked.sum())} initial states)"
    return initial_law(several, options, counts.states, marked if marked.any() else marked + 1)


def _held(path: str, parts: Mapping[str, bytes], name: str) -> bytes:
    if name not in parts:
        raise InvalidFile(f"{path} lacks {name}", "Export the model with its transitions")
    return parts[name]
