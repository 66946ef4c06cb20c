"""Costs from a UMB file: its rewards, then its labels, one feature each.

    annotations/rewards/NAME/states/values.bin     a number per state; choices and branches alike
    annotations/aps/NAME/states/values.bin         a bit per state: where the label holds

What a state has counts for each of its choices; what branches have is averaged with their
probabilities; what applies to several is added up. An annotation without values is 0, as the format
says. Model checkers leave open whether a reward is good: it is taken for a cost, and turned by
`rewards:` in front of the name.

*Reference*: specification of the unified Markov binary format, version 1 (2026).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.adapters.formats.memory_limit import MEMORY_LIMIT, require_memory
from journeyman.adapters.world_files.umb_archive import Member, read_members
from journeyman.adapters.world_files.umb_worlds import (
    BRANCHES,
    CHOICES,
    PROBABILITIES,
    UNPACKED,
    Counts,
    counts_of,
    is_rational,
    numbers_in,
    of_sizes,
    offsets_in,
    probabilities_in,
    read_index,
)
from journeyman.arrays import FloatArray
from journeyman.errors import InvalidCosts, InvalidFile
from journeyman.world import World

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
    """One row per state-action pair of `world`, and the names of rewards and labels."""
    index = read_index(path, MEMORY_LIMIT)
    counts = counts_of(path, index)
    annotations = _annotations(path, index)
    sizes = {name: size for one in annotations for name, size in one.sizes(counts).items()}
    sizes |= {name: counts.sizes()[name] for name in (CHOICES, BRANCHES, PROBABILITIES)}
    need = 2 * sum(sizes.values()) + 16 * counts.choices * len(annotations) + 24 * counts.branches
    require_memory(path, need, MEMORY_LIMIT)
    parts = _parts(path, annotations, sizes)
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
        told = index.get("annotations", {})
        found = [
            _annotation(path, kind, key, facts)
            for kind in KINDS
            for key, facts in told.get(kind, {}).items()
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


def _parts(
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
