"""Worlds and costs of the gallery by name: `gallery:grid` with the function's arguments."""

import inspect
import math
from typing import Any

from journeyman import gallery
from journeyman.adapters.formats.memory_limit import memory_limit, require_memory, world_bytes
from journeyman.adapters.world_files.source_options import EVERYWHERE, Options, arguments_for
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery import Queues
from journeyman.world import World

PREFIX = "gallery:"
USUAL_BRANCHES = 5
"""Next states of a pair in a network of queues."""
NAMES = ("driving", "garnet", "grid", "icu_sepsis", "queues")


def read_gallery_world(source: str, options: Options) -> World:
    """The world of an example."""
    return read_gallery(source, options)[0]


def read_gallery(source: str, options: Options) -> tuple[World, CostBasis]:
    """World and costs of an example; those of queues as arrays, if they are small."""
    name = source.removeprefix(PREFIX).replace("-", "_")
    if name not in NAMES:
        raise InvalidWorld(
            f"the gallery has no {name!r}", f"It has {', '.join(PREFIX + known for known in NAMES)}"
        )
    function = getattr(gallery, name)
    given = {key: text for key, text in options.items() if key not in EVERYWHERE}
    arguments = arguments_for(source, function, given)
    limit = memory_limit(options)
    _require_room(source, function, arguments, limit)
    try:
        example: Any = function(**arguments)
    except TypeError as fault:
        raise InvalidWorld(
            f"{source} does not take {dict(given)} ({fault})", "Give arguments of its types"
        ) from fault
    if isinstance(example, Queues):
        pairs = math.prod((example.world.num_states, example.world.num_actions))
        need = world_bytes(example.world.num_states, pairs, USUAL_BRANCHES * pairs)
        require_memory(source, need, limit)
        return example.explicit()
    return example.world, example.basis


def _require_room(source: str, function: Any, arguments: dict[str, Any], limit: int) -> None:
    """Refuse a world whose sizes alone say that it is too large."""
    defaults = {name: one.default for name, one in inspect.signature(function).parameters.items()}
    sizes = defaults | arguments
    if function is gallery.grid:
        states, actions, branching = sizes["size"] ** 2, 4, 4
    elif function is gallery.garnet:
        states, actions, branching = (
            sizes[name] for name in ("num_states", "num_actions", "branching")
        )
    else:
        return
    pairs = max(states, 0) * max(actions, 0)
    require_memory(source, world_bytes(states, pairs, pairs * max(branching, 0)), limit)
