"""journeyman: apprenticeship learning with guarantees.

    world (+ costs) -> demonstrations -> problem -> solver -> policy

The public names, their rooms and their types stand in `__init__.pyi`, once. They are loaded on
first use, so that `import journeyman` is quick.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _public_names() -> dict[str, str]:
    """The module behind each `from module import name as name` of the stub beside this file."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_HOMES = _public_names()
__all__ = sorted(["__version__", *_HOMES])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(_unknown(name))
    return (
        import_module(f"{home}.{name}") if home == __name__ else getattr(import_module(home), name)
    )


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, __all__, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"module {__name__!r} has no attribute {name!r}{hint}"


def __dir__() -> list[str]:
    return list(__all__)
