"""Every door through which cost features come in, by the form of their name.

    costs.csv, costs.npz       a table: one row per state or per state-action pair
    model.umb                  rewards and labels of a model checker's model
    state-indicator, pair-indicator, coordinates, macro-cells:4, time
                               built-in sets
    gallery:grid, icu-sepsis   the costs of an example; options are those of its world
    gym:FrozenLake-v1          the mean reward of every pair; options are those of its world
    module:function            called with the world; returns a basis, a table, or (table, names)

Tables hold costs, lower is better; `rewards:` in front of a table, a set or a function says that
higher is. `module:function` *runs that module's code*, as typed by the user: it is the only source
that does, besides environments, and no file can ask for it.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.world_files import gymnasium_worlds
from journeyman.adapters.world_files.built_in_costs import PLAIN, built_in_costs
from journeyman.adapters.world_files.cost_tables import read_csv_costs, read_npz_costs
from journeyman.adapters.world_files.gallery_sources import PREFIX as GALLERY
from journeyman.adapters.world_files.gallery_sources import read_gallery
from journeyman.adapters.world_files.umb_costs import read_umb_costs
from journeyman.adapters.world_files.world_sources import ICU_SEPSIS, NO_OPTIONS
from journeyman.costs import CostBasis
from journeyman.errors import InvalidCosts, JourneymanError
from journeyman.storage import PathLike
from journeyman.world import World, expected_rewards

REWARDS = "rewards:"


def read_costs(
    source: PathLike, world: World, *, options: Mapping[str, str] = NO_OPTIONS
) -> CostBasis:
    """The cost features that `source` names, one row per state or pair of `world`.

    >>> from journeyman.adapters.world_files.world_sources import read_world
    >>> grid = read_world("gallery:grid", options={"size": "8"})
    >>> read_costs("macro-cells:2", grid).names
    ('cell 0,0', 'cell 0,1', 'cell 1,0', 'cell 1,1')
    """
    source = os.fspath(source)
    if source.startswith(REWARDS):
        given = read_costs(source.removeprefix(REWARDS), world, options=options)
        if given.rewards:
            raise InvalidCosts(f"{source} are rewards anyway", f"Leave {REWARDS!r} out")
        return CostBasis.from_rewards(given.matrix, given.names).noted(given.note)
    basis = _read(source, world, options)
    basis.on(world)
    return basis


def runs_code(source: str) -> bool:
    """Whether reading `source` runs code of a module the user has named."""
    module, colon, function = source.removeprefix(REWARDS).partition(":")
    names = [*module.split("."), function]
    known = f"{module}:" in (GALLERY, gymnasium_worlds.PREFIX)
    return bool(colon) and not known and all(name.isidentifier() for name in names)


def _read(source: str, world: World, options: Mapping[str, str]) -> CostBasis:
    if source.startswith(GALLERY) or source == ICU_SEPSIS:
        return _of_example(source, world, options)
    if source.startswith(gymnasium_worlds.PREFIX):
        return _of_environment(source, world, options)
    if options:
        raise InvalidCosts(f"{source} takes no options", f"Leave out {', '.join(options)}")
    found = _from_file(source, world) or built_in_costs(source, world)
    if found is not None:
        return found
    if runs_code(source):
        return _by_function(source, world)
    raise InvalidCosts(
        f"{source!r} is not a source of costs",
        f"Give a .csv, .npz or .umb file, {', '.join(PLAIN)}, macro-cells:4, gallery:NAME, "
        "gym:NAME, or module:function",
    )


def _from_file(source: str, world: World) -> CostBasis | None:
    """The costs in a file, or None when the name is not that of one."""
    suffix = Path(source.removesuffix(".gz").removesuffix(".xz")).suffix.lower()
    if suffix == ".umb":
        return CostBasis(*read_umb_costs(source, world))
    if source.lower().endswith(".csv"):
        return _from_csv(source, world)
    return _from_npz(source, world) if source.lower().endswith(".npz") else None


def _from_csv(path: str, world: World) -> CostBasis:
    table = read_csv_costs(path, world)
    try:
        return CostBasis(table.values, table.names).noted(table.note)
    except InvalidCosts as fault:
        raise InvalidCosts(f"{path}: {fault.what}", fault.remedy) from None


def _from_npz(path: str, world: World) -> CostBasis:
    """The table in a file, whose name stands before whatever is wrong with it."""
    try:
        basis = CostBasis(*read_npz_costs(path))
        basis.on(world)
    except InvalidCosts as fault:
        raise InvalidCosts(f"{path}: {fault.what}", fault.remedy) from None
    return basis


def _of_example(source: str, world: World, options: Mapping[str, str]) -> CostBasis:
    name = f"{GALLERY}icu_sepsis" if source == ICU_SEPSIS else source
    theirs, basis = read_gallery(name, options)
    same = theirs.pairs == world.pairs and theirs.transition.shape == world.transition.shape
    if not same or (theirs.transition != world.transition).nnz:
        raise InvalidCosts(
            f"the costs of {source} belong to another world ({theirs!r})",
            "Give the options with which the world was made",
        )
    return basis


def _of_environment(source: str, world: World, options: Mapping[str, str]) -> CostBasis:
    environment = gymnasium_worlds.make_environment(
        source.removeprefix(gymnasium_worlds.PREFIX), options
    )
    try:
        rewards = expected_rewards(environment)
    finally:
        environment.close()
    if rewards.size != world.num_pairs:
        raise InvalidCosts(
            f"{source} has {rewards.size} pairs, the world {world.num_pairs}",
            "Give the options with which the world was made",
        )
    return CostBasis.from_rewards(rewards, ["reward"])


def _by_function(source: str, world: World) -> CostBasis:
    """Call the function that the user has named."""
    module_name, _, name = source.partition(":")
    here, known = str(Path.cwd()), list(sys.path)
    sys.path.insert(0, here)
    try:
        function = getattr(importlib.import_module(module_name), name, None)
        if not callable(function):
            raise InvalidCosts(f"{module_name} has no function {name!r}", "Check the spelling")
        made = function(world)
    except JourneymanError:
        raise
    except ModuleNotFoundError as fault:
        raise InvalidCosts(
            f"there is no module {fault.name!r}", "Install it, or start where its file lies"
        ) from fault
    except Exception as fault:  # whatever the user's own code raises
        raise InvalidCosts(
            f"{source} failed: {type(fault).__name__}: {fault}", "Mend the function"
        ) from fault
    finally:
        sys.path[:] = known
    return _as_basis(made)


def _as_basis(made: Any) -> CostBasis:
    if isinstance(made, CostBasis):
        return made
    if isinstance(made, tuple) and len(made) == 2 and not np.isscalar(made[1]):
        return CostBasis(made[0], list(made[1]))
    return CostBasis(made)
