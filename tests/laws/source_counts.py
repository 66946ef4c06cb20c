"""Counts of the source tree: how much there is to read, and how it hangs together.

    make counts               the table; `python tests/laws/source_counts.py -v` names them

| count | what it is |
|---|---|
| modules, lines | files below src/journeyman ending in .py, and their lines |
| single importers | modules that exactly one other module imports |
| public names | names of `journeyman.*` listed in `__init__.pyi` |
| cost class branches | places outside `costs/` that ask for a concrete cost class |
| modules of learn | modules whose functions one `learn` in an explicit world enters |
"""

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "journeyman"

LEARN = """
import sys
import journeyman as jm
from journeyman import gallery
world, basis, expert = gallery.grid(4)
demos = jm.record(world, expert, trajectories=20, horizon=50, seed=0)
jm.learn(world, basis, demos)
entered = set()
def note(frame, event, _):
    if event == "call":
        name = frame.f_globals.get("__name__", "")
        if name.startswith("journeyman"):
            entered.add(name)
sys.setprofile(note)
jm.learn(world, basis, demos)
sys.setprofile(None)
print(len(entered))
print("\\n".join(sorted(entered)))
"""


def module_names() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ["journeyman", *path.relative_to(SOURCE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def importers(modules: dict[str, Path]) -> dict[str, set[str]]:
    """Who imports each module, wherever in the file the import stands, a package's `__init__`
    included."""
    users: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in modules:
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    users[submodule if submodule in modules else node.module].add(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in modules:
                        users[alias.name].add(name)
    return users


def single_importers() -> list[tuple[str, str]]:
    """Modules with one importer, and that importer."""
    found = importers(module_names())
    return [(name, *users) for name, users in sorted(found.items()) if len(users) == 1]


def public_homes() -> dict[str, str]:
    """The module behind every public name."""
    stub = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def cost_classes() -> set[str]:
    """The names of all concrete cost classes."""
    found = {"CostClass"}
    trees = [
        ast.parse(path.read_text(encoding="utf-8")) for path in (SOURCE / "costs").glob("*.py")
    ]
    for _ in range(3):
        for tree in trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    bases = {ast.unparse(base) for base in node.bases}
                    if bases & found:
                        found.add(node.name)
    return found - {"CostClass"}


def cost_class_branches() -> list[str]:
    """Places outside `costs/` that ask which class of costs a problem has."""
    classes = cost_classes()
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] == "costs":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            asked = ""
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "isinstance",
                "issubclass",
            ):
                asked = ast.unparse(node.args[1])
            elif isinstance(node, ast.MatchClass):
                asked = ast.unparse(node.cls)
            elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
                asked = ast.unparse(node)
            words = {word.split(".")[-1] for word in asked.replace("|", " ").replace(",", " ")
                     .replace("(", " ").replace(")", " ").split()}  # fmt: skip
            if words & classes:
                found.append(f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}")
    return found


def modules_of_learn() -> list[str]:
    """Modules whose functions one `learn` enters."""
    out = subprocess.run(
        [sys.executable, "-c", LEARN], capture_output=True, text=True, check=True
    ).stdout
    return out.split()[1:]


def main() -> None:
    paths = list(SOURCE.rglob("*.py"))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
    single, branches = single_importers(), cost_class_branches()
    rows = {
        "modules": len(paths),
        "source lines": lines,
        "modules with a single importer": len(single),
        "public names": len(public_homes()),
        "branches on concrete cost classes outside costs/": len(branches),
        "modules entered by learn": len(modules_of_learn()),
    }
    report = [f"{name:<52}{value:>8,}" for name, value in rows.items()]
    if "-v" in sys.argv:
        report += [f"{name} <- {user}" for name, user in single]
        report += [*branches, *modules_of_learn()]
    sys.stdout.write("\n".join(report) + "\n")


if __name__ == "__main__":
    main()
