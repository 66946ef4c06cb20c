"""Frozen values whose constructor accepts more than it stores.

A class decorated with `@dataclass(frozen=True, init=False)` writes its own `__init__`, checks what
it is given and stores the result with `assign`; afterwards nothing can change it.
"""

from typing import Any


def assign(value: object, **fields: Any) -> None:
    """Set the fields of a frozen dataclass from within its constructor."""
    for name, content in fields.items():
        object.__setattr__(value, name, content)
