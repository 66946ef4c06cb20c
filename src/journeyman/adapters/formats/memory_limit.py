"""How much memory a foreign file may take, estimated before any is asked for."""

from collections.abc import Mapping

from journeyman.errors import InvalidInput, TooLarge

MEMORY_LIMIT = 500_000_000
"""Bytes a source may take unless its reader was told otherwise (`memory_gb`)."""
PER_TRANSITION, PER_PAIR, PER_STATE = 44, 60, 80
"""Bytes that building a world takes at its peak, beyond what its source holds; measured."""


def memory_limit(options: Mapping[str, str]) -> int:
    """Bytes allowed by the option `memory_gb`, or `MEMORY_LIMIT`."""
    text = options.get("memory_gb")
    if text is None:
        return MEMORY_LIMIT
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit < 1e6:
        raise InvalidInput(
            f"memory_gb = {text} is not a number of gigabytes", "Give for example memory_gb=4"
        )
    return int(limit * 1e9)


def require_memory(what: str, estimate: float, limit: int) -> None:
    """Refuse what would take more than `limit` bytes, with the estimate."""
    if estimate > limit:
        raise TooLarge(
            f"{what} would take about {estimate / 1e9:.2g} GB, {limit / 1e9:.2g} GB are allowed",
            f"If it is what you expect, give memory_gb={estimate / 1e9 * 1.2:.2g}",
        )


def world_bytes(num_states: int, num_pairs: int, num_transitions: int) -> int:
    """What a world of this size takes while it is built."""
    return PER_TRANSITION * num_transitions + PER_PAIR * num_pairs + PER_STATE * num_states
