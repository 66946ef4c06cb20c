"""Public names of a package, listed once in the stub beside it and loaded when first used.

    __getattr__, __dir__, __all__ = public_names(__name__, __file__)

in an `__init__.py` makes every `from module import name as name` of `__init__.pyi` an attribute of
the package, so that importing a package loads nothing heavy and type checkers see all of it. (The
package `lazy_loader` does the same for relative imports; this one reads absolute ones.)
"""

import ast
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any


def public_names(
    package: str, file: str, also: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package from its stub; `also` are names that the
    package defines itself."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}
    names = sorted([*also, *homes])

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(_unknown(package, name, names))
        home = homes[name]
        is_module = home == package
        value = import_module(f"{home}.{name}") if is_module else getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: names, names


def _unknown(package: str, name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"module {package!r} has no attribute {name!r}{hint}"
