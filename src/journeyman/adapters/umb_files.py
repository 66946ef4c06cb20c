"""Worlds from UMB files, the exchange format of probabilistic model checkers (PRISM, Storm).

    index.json                  what kind of model it is, and how many states, choices, branches
    state-to-choices.bin        offsets: the choices of state x are state[x]:state[x+1]
    choice-to-branches.bin      offsets: the branches of a choice
    branch-to-target.bin        next states
    branch-to-probability.bin   probabilities
    state-is-initial.bin        one bit per state

Offsets and targets are 64-bit, little-endian. The choices of a state become its actions, in their
order. Rewards and labels, if there are any, are read by `read_umb_costs`.

*Reference*: specification of the unified Markov binary format, version 1 (2026).
"""

import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from journeyman.adapters.source_options import (
    GOAL,
    MEMORY_LIMIT,
    Options,
    discount_of,
    goal_of,
    initial_law,
    memory_limit,
    refuse_unknown,
    require_memory,
    world_bytes,
)
from journeyman.arrays import FloatArray, IntArray, first_true
from journeyman.errors import InvalidCosts, InvalidFile
from journeyman.world import World

CHUNK = 1 << 18
GZIP, XZ = b"\x1f\x8b\x08", b"\xfd7zXZ\0"
"""How packed files begin."""
XZ_MEMORY = 128 << 20
"""Bytes that unpacking xz may take; the strongest usual setting needs 65 MB."""


class Tape:
    """The bytes of a file, unpacked and read forwards only. One that unpacks to more than `limit`
    bytes is refused on the way."""

    def __init__(self, path: str, stream: BinaryIO, limit: int) -> None:
        self.path, self.limit, self._passed = path, limit, 0
        self._read = _reader(stream)

    def take(self, size: int, *, at_end_too: bool = False) -> bytes:
        """The next bytes, all of them; at the very end none, if that is allowed."""
        parts, missing = [], size
        while missing:
            part = self._some(missing)
            if not part and at_end_too and missing == size:
                return b""
            parts.append(self._not_the_end(part))
            missing -= len(part)
        return b"".join(parts)

    def skip(self, size: int) -> None:
        while size:
            size -= len(self._not_the_end(self._some(size)))

    def finish(self) -> None:
        """Pass the rest, at whose end packed files say whether they are whole."""
        while self._some(CHUNK):
            pass

    def _some(self, size: int) -> bytes:
        part = self._read(min(size, CHUNK))
        self._passed += len(part)
        if self._passed > self.limit:
            raise InvalidFile(
                f"{self.path} unpacks to more than {self.limit / 1e9:.2g} GB",
                "Do not open files of doubtful origin; if it is what you expect, raise memory_gb",
            )
        return part

    def _not_the_end(self, part: bytes) -> bytes:
        if not part:
            raise EOFError("it ends early")
        return part


def _reader(stream: BinaryIO) -> Callable[[int], bytes]:
    magic = stream.read(len(XZ))
    stream.seek(0)
    if magic.startswith(GZIP):
        return gzip.GzipFile(fileobj=stream).read
    return _Xz(stream).read if magic == XZ else stream.read


class _Xz:
    """xz with a limit on its memory, which the file class of the standard library lacks."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._inner = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end of the packed stream."""
        while not self._inner.eof:
            packed = self._stream.read(CHUNK) if self._inner.needs_input else b""
            if self._inner.needs_input and not packed:
                raise EOFError("it ends early")
            data = self._inner.decompress(packed, size)
            if data:
                return data
        return b""


RECORD = 512
PAX_LIMIT = 1 << 16
"""Bytes of an extended header; names are all that is read from it."""
FILE, DIRECTORY, EXTENDED, LONG_NAME, EVERY = b"0\0", b"5", b"x", b"L", b"g"


@dataclass(frozen=True)
class Member:
    """A file in the archive."""

    name: str
    size: int


def read_members(
    path: str, wanted: Callable[[Member], bool], unpacked_limit: int
) -> Mapping[str, bytes]:
    """The contents of the members that `wanted` accepts, having seen names and sizes.

    A UMB file is a tar archive, plain or packed with gzip or xz. Nothing is written to disk. Links,
    devices and names that lead out of the archive are refused, and what is not wanted is skipped in
    blocks. The `tarfile` of the standard library reads extended headers of any size into memory,
    and follows sparse files; this reader of plain headers cannot be talked into either.
    """
    held: dict[str, bytes] = {}
    try:
        with Path(path).open("rb") as stream:
            tape = Tape(path, stream, unpacked_limit)
            for member in _headers(tape):
                if member.name in held:
                    _refuse(path, f"{member.name} occurs twice")
                if wanted(member):
                    held[member.name] = tape.take(member.size)
                    tape.skip(-member.size % RECORD)
                else:
                    tape.skip(member.size + -member.size % RECORD)
            tape.finish()
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as fault:
        raise InvalidFile(f"{path} is damaged: {fault}", "Write it again") from fault
    return held


def _headers(tape: Tape) -> Iterator[Member]:
    """Files in the order of the archive; whoever takes one moves the tape behind it."""
    long_name = None
    while True:
        block = tape.take(RECORD, at_end_too=True)
        if not block.strip(b"\0"):
            return
        kind, size = block[156:157], _size(tape, block)
        if kind in (EXTENDED, LONG_NAME, EVERY):
            if size > PAX_LIMIT:
                _refuse(tape.path, f"an extended header has {size} bytes")
            extended = tape.take(size)
            tape.skip(-size % RECORD)
            if kind != EVERY:
                long_name = _long_name(tape, kind, extended)
            continue
        name = _name(block) if long_name is None else long_name
        long_name = None
        _require_inside(tape, name)
        if kind not in FILE and kind != DIRECTORY:
            _refuse(tape.path, f"{name} is neither a file nor a directory (type {kind!r})")
        if kind == DIRECTORY:
            tape.skip(size + -size % RECORD)
        else:
            yield Member(str(PurePosixPath(name)), size)


def _size(tape: Tape, block: bytes) -> int:
    """The size in a header whose checksum is right."""
    blanked = block[:148] + b" " * 8 + block[156:]
    try:
        claimed, size = (int(block[a:b].strip(b" \0") or b"0", 8) for a, b in _NUMBERS)
    except ValueError:
        _refuse(tape.path, "a header holds no octal numbers")
    if block[257:262] != b"ustar" or claimed != sum(blanked) or size < 0:
        _refuse(tape.path, "a header is damaged, or this is not a tar file")
    return size


_NUMBERS = ((148, 156), (124, 136))
"""Where the checksum and the size stand."""


def _name(block: bytes) -> str:
    name, prefix = (part.partition(b"\0")[0] for part in (block[:100], block[345:500]))
    posix = block[257:263] == b"ustar\0"
    whole = prefix + b"/" + name if posix and prefix else name
    return whole.decode("utf-8", errors="replace")


def _long_name(tape: Tape, kind: bytes, extended: bytes) -> str | None:
    """The name for the next member; other records say nothing that matters here."""
    if kind == LONG_NAME:
        return extended.partition(b"\0")[0].decode("utf-8", errors="replace")
    name = None
    while extended:
        length, _, _ = extended.partition(b" ")
        if not length.isdigit() or not len(length) + 1 < int(length) <= len(extended):
            _refuse(tape.path, "an extended header is damaged")
        key, _, value = extended[len(length) + 1 : int(length) - 1].partition(b"=")
        if key == b"path":
            name = value.decode("utf-8", errors="replace")
        elif key == b"size" or key.startswith(b"GNU.sparse"):
            _refuse(tape.path, f"an extended header sets {key.decode()}")
        extended = extended[int(length) :]
    return name


def _require_inside(tape: Tape, name: str) -> None:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\\" in name or "\0" in name:
        _refuse(tape.path, f"the name {name!r} leads out of the archive")


def _refuse(path: str, what: str) -> NoReturn:
    raise InvalidFile(f"{path}: {what}", "Do not open files of doubtful origin")


OPTIONS = ("discount", "initial", *GOAL)
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
        **goal_of(options),
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
        raise InvalidFile(
            f"{path}: {INDEX} counts {sizes} states, choices, branches", "Write it again"
        )
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
    if (where := first_true(targets >= counts.states)) is not None:
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


KINDS = ("rewards", "aps")
"""Annotations that become costs, in this order."""
PLACES = ("states", "choices", "branches")
MOST = 1000
"""Annotations; more are some other file."""
NAME = "values.bin"
DRAWN = "distribution-mapping.bin"
"""A member of annotations whose values are drawn at random."""


@dataclass(frozen=True)
class Annotation:
    """What the index says about one reward or label."""

    name: str
    folder: str
    places: tuple[str, ...]
    truth: bool
    rational: bool

    def sizes(self, counts: Counts) -> dict[str, int]:
        """Bytes of its members."""
        sizes = {}
        for place in self.places:
            number = getattr(counts, place)
            each = 8 * -(-number // 64) if self.truth else (16 if self.rational else 8) * number
            sizes[f"{self.folder}/{place}/{NAME}"] = each
        return sizes


def read_umb_costs(path: str, world: World) -> tuple[FloatArray, list[str]]:
    """One row per state-action pair of `world`, and the names: rewards first, then labels.

        annotations/rewards/NAME/states/values.bin     a number per state; also choices, branches
        annotations/aps/NAME/states/values.bin         a bit per state: where the label holds

    What a state has counts for each of its choices; what branches have is averaged with their
    probabilities; what applies to several is added up. An annotation without values is 0, as the
    format says. Model checkers leave open whether a reward is good: it is taken for a cost, and
    turned by `rewards:` in front of the name.

    *Reference*: specification of the unified Markov binary format, version 1 (2026).
    """
    index = read_index(path, MEMORY_LIMIT)
    counts = counts_of(path, index)
    annotations = _annotations(path, index)
    sizes = {name: size for one in annotations for name, size in one.sizes(counts).items()}
    sizes |= {name: counts.sizes()[name] for name in (CHOICES, BRANCHES, PROBABILITIES)}
    need = 2 * sum(sizes.values()) + 16 * counts.choices * len(annotations) + 24 * counts.branches
    require_memory(path, need, MEMORY_LIMIT)
    parts = _cost_parts(path, annotations, sizes)
    offsets = offsets_in(path, parts, CHOICES, counts.states, counts.choices)
    if not np.array_equal(offsets, world.pairs.offsets):
        raise InvalidCosts(
            f"the rewards of {path} belong to another world, with {counts.states} states and "
            f"{counts.choices} choices",
            "Give the world that was read from the same file",
        )
    columns = [_column(path, one, parts, counts, offsets) for one in annotations]
    return np.column_stack(columns), [one.name for one in annotations]


def _annotations(path: str, index: Any) -> list[Annotation]:
    try:
        annotations = index.get("annotations", {})
        found = [
            _annotation(path, kind, key, facts)
            for kind in KINDS
            for key, facts in annotations.get(kind, {}).items()
        ]
    except (AttributeError, KeyError, TypeError) as fault:
        raise InvalidFile(
            f"{path}: the annotations make no sense ({fault!r})", "Write it again"
        ) from fault
    if not 1 <= len(found) <= MOST:
        raise InvalidCosts(
            f"{path} has {len(found)} rewards and labels",
            "Export the model with some, or give the costs in a file of their own",
        )
    return found


def _annotation(path: str, kind: str, key: str, facts: Mapping[str, Any]) -> Annotation:
    places, values = tuple(facts["applies-to"]), facts["type"]
    name = facts.get("alias", key)
    if not set(places) <= set(PLACES) or len(set(places)) < len(places):
        raise InvalidFile(
            f"{path}: {name} applies to {', '.join(map(str, places))[:80]}",
            f"Export what applies to {', '.join(PLACES)}",
        )
    truth = values in ({"type": "bool"}, {"type": "bool", "size": 1})
    rational = not truth and is_rational(path, f"values of {name}", values)
    return Annotation(str(name), f"annotations/{kind}/{key}", places, truth, rational)


def _cost_parts(
    path: str, annotations: list[Annotation], sizes: Mapping[str, int]
) -> Mapping[str, bytes]:
    """The members of these sizes, unless the values of an annotation are drawn."""
    drawn = {f"{one.folder}/{place}/{DRAWN}": one.name for one in annotations for place in PLACES}
    fits = of_sizes(path, sizes)

    def wanted(member: Member) -> bool:
        if member.name in drawn:
            raise InvalidFile(
                f"{path}: the values of {drawn[member.name]} are drawn at random",
                "Export their means",
            )
        return fits(member)

    return read_members(path, wanted, UNPACKED * MEMORY_LIMIT)


def _column(
    path: str, one: Annotation, parts: Mapping[str, bytes], counts: Counts, offsets: Any
) -> FloatArray:
    """The value of every choice."""
    total = np.zeros(counts.choices)
    for place in one.places:
        member = f"{one.folder}/{place}/{NAME}"
        if member not in parts:
            continue
        values = _values(path, member, one, parts[member], getattr(counts, place))
        if place == "branches":
            shares = probabilities_in(path, parts, counts) * values
            rows = offsets_in(path, parts, BRANCHES, counts.choices, counts.branches)
            choices = np.repeat(np.arange(counts.choices), np.diff(rows))
            total += np.bincount(choices, shares, minlength=counts.choices)
        else:
            total += values if place == "choices" else np.repeat(values, np.diff(offsets))
    return total


def _values(path: str, member: str, one: Annotation, data: bytes, number: int) -> FloatArray:
    if not one.truth:
        return numbers_in(path, member, data, one.rational)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    return bits[:number].astype(float)
