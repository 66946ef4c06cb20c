"""journeyman: apprenticeship learning with guarantees.

    world (+ costs) -> demonstrations -> problem -> solver -> policy -> certificate

The public names, their modules and their types stand in `__init__.pyi`, once, and those of the
packages one level down (`journeyman.solvers`, `journeyman.policy`, ...) in theirs.
"""

from typing import Any

from journeyman.lazy import moved, public_names

__version__ = "0.1.0"
_load, __dir__, __all__ = public_names(__name__, __file__, also=["__version__"])


def __getattr__(name: str) -> Any:
    try:
        return _load(name)
    except AttributeError:
        found = moved(name)
        if found is None:
            raise
        return found
