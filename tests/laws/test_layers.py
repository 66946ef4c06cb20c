"""Imports go down only, every module has a room, and optional packages stay at the top."""

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "journeyman"

FOUNDATIONS = ["lazy", "errors", "arrays", "progress", "compiled", "storage", "tables", "execution"]
FLOORS = [
    *FOUNDATIONS,
    "world",
    "costs",
    "policy",
    "demonstrations",
    "features",
    "problem",
    "solvers",
]
MAY_IMPORT = {room: set(FLOORS[: level + 1]) for level, room in enumerate(FLOORS)} | {
    "certificate": {*FLOORS[: FLOORS.index("problem") + 1], "certificate"},
    "checker": {"errors", "checker"},
    "apprentice": {*FLOORS, "certificate", "apprentice"},
    "gallery": {*FLOORS[: FLOORS.index("problem") + 1], "gallery"},
    "report": {*FLOORS, "certificate", "apprentice", "gallery", "report"},
    "testing": {*FLOORS, "gallery", "testing"},
    "adapters": {*FLOORS, "certificate", "apprentice", "gallery", "report", "adapters"},
    "runs": {*FLOORS, "certificate", "apprentice", "adapters", "runs"},
    "studies": {*FLOORS, "certificate", "apprentice", "report", "runs", "studies"},
    "plot": {*FLOORS, "certificate", "report", "studies", "plot"},
    "studio": {
        *FLOORS,
        "certificate",
        "apprentice",
        "gallery",
        "report",
        "adapters",
        "runs",
        "studio",
    },
    "cli": {
        *FLOORS,
        "gallery",
        "report",
        "adapters",
        "runs",
        "studies",
        "studio",
        "cli",
        "journeyman",
    },
    "journeyman": {"lazy"},
    "__main__": {"cli"},
}
COMPILER = {"numba", "llvmlite"}
CORE_PACKAGES = {
    "numpy", "scipy", "highspy", "clarabel", "typer", "rich", "jinja2", "markupsafe", "tomli_w",
    "filelock", *COMPILER,
}  # fmt: skip
EXTRAS = {
    "testing": {"hypothesis"},
    "adapters": {"gymnasium", "h5py", "minari", "pyarrow", "ray"},
    "plot": {"matplotlib"},
    "tables": {"pandas"},
    "studio": {"starlette"},
    "cli": {"uvicorn"},
}

modules = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def room_of(module: Path) -> str:
    first = module.parts[0]
    return "journeyman" if first.startswith("__init__") else first.removesuffix(".py")


def imported_modules(module: Path) -> set[str]:
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names}
                if node.module == "journeyman"
                else {node.module}
            )
    return found


@pytest.mark.parametrize("module", modules, ids=str)
def test_a_module_imports_its_own_floor_and_below_only(module):
    room = room_of(module)
    assert room in MAY_IMPORT, f"{module} has no room: place it in this test and ARCHITECTURE.md"
    used = {
        name.split(".")[1] if "." in name else "journeyman"
        for name in imported_modules(module)
        if name.split(".")[0] == "journeyman"
    }
    assert used <= MAY_IMPORT[room], f"{module} imports upwards: {used - MAY_IMPORT[room]}"


@pytest.mark.parametrize("module", modules, ids=str)
def test_only_declared_packages_are_imported(module):
    outside = {name.split(".")[0] for name in imported_modules(module)}
    outside -= sys.stdlib_module_names | {"journeyman", "__future__"}
    allowed = CORE_PACKAGES | EXTRAS.get(room_of(module), set())
    assert outside <= allowed, f"{module} imports {outside - allowed}"


def test_one_module_touches_the_compiler():
    touching = [module for module in modules if imported_modules(module) & COMPILER]
    assert touching == [Path("compiled.py")]


def test_the_walk_sees_every_room():
    assert {room_of(module) for module in modules} == set(MAY_IMPORT)
