"""Public names of a package, listed once in the stub beside it and loaded when first used.

    __getattr__, __dir__, __all__ = public_names(__name__, __file__)

in an `__init__.py` makes every `from module import name as name` of `__init__.pyi` an attribute of
the package, so that importing a package loads nothing heavy and type checkers see all of it. (The
package `lazy_loader` does the same for relative imports; this one reads absolute ones.)

What notebooks show as HTML (`InNotebooks`) is made by a package above, which is imported when a
notebook asks.

Names of `journeyman` as they were in 0.1 are found by `moved`. Most of what stood at the top is now
one level down, in the package it belongs to: it is found there, with a `DeprecationWarning` that
says where. What has become something else is not guessed at: the error says what to write instead.
Both end with the next release.
"""

import ast
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar


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


class InNotebooks:
    """A value that notebooks show as the HTML which `as_html` of a module makes of it."""

    _shown_by: ClassVar[str] = "journeyman.report"

    def _repr_html_(self) -> str:
        return str(import_module(self._shown_by).as_html(self))


PACKAGES = (
    "errors", "execution", "costs", "world", "policy", "demonstrations", "features", "problem",
    "solvers", "certificate", "checker", "adapters", "studies",
)  # fmt: skip
INSTEAD = {
    "LargeAnswer": "jm.Answer",
    "LargeApprenticeship": "jm.Apprenticeship(world, costs, expert), for every kind of world",
    "LargeCertificate": "jm.Certificate",
    "LargeFeatures": "jm.features.DrawnFeatures",
    "LargeRows": "jm.SampledRows(rows=...)",
    "MixtureAnswer": "jm.Answer",
    "Program": "jm.Apprenticeship",
    "ShardFailed": "jm.errors.TaskFailed",
    "SimulatedApprenticeship": "jm.Apprenticeship(simulator, None, expert)",
    "SoftPlan": "jm.policy.Plan",
    "Verdict": "jm.certificate.PremiseStatus",
    "shards_of": "jm.execution.ranges_of",
    "sharpest_witness": "jm.problem.witness_from_plan",
    "telling_witness": "jm.problem.best_witness",
}


def moved(name: str) -> Any:
    """What was once `journeyman.name`, with a warning that says where it is now."""
    if name in INSTEAD:
        raise AttributeError(f"journeyman.{name} is gone: use {INSTEAD[name]}")
    for package in PACKAGES if not name.startswith("_") else ():
        found = getattr(import_module(f"journeyman.{package}"), name, None)
        if str(getattr(found, "__module__", "")).startswith("journeyman."):
            warnings.warn(
                f"journeyman.{name} is journeyman.{package}.{name} now",
                DeprecationWarning,
                stacklevel=3,
            )
            return found
    return None
