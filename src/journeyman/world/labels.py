"""What people see of a world: coordinates and names, checked."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, real_array
from journeyman.errors import InvalidWorld


def checked_coordinates(values: ArrayLike | None, num_states: int) -> FloatArray | None:
    if values is None:
        return None
    return real_array("coordinates", values, ndim=2, size=num_states, refusal=InvalidWorld)


def checked_names(
    what: str, names: Sequence[str] | None, count: int, *, or_more: bool = False
) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) < count or (len(names) > count and not or_more):
        raise InvalidWorld(f"{what} has {len(names)} names, expected {count}", "Name each once")
    return tuple(str(name) for name in names)
