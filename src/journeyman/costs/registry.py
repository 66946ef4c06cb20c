"""Cost classes by name: on the command line, in run descriptions and in saved runs."""

import json
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from journeyman.costs.cost_class import CostClass
from journeyman.costs.euclidean_ball import EuclideanBall
from journeyman.costs.infinity_ball import InfinityBall
from journeyman.costs.l1_ball import L1Ball
from journeyman.costs.polytope import Polytope
from journeyman.costs.prior_ball import PriorBall
from journeyman.costs.simplex import Simplex
from journeyman.errors import InvalidCosts

COST_CLASSES: dict[str, type[CostClass]] = {
    kind.name: kind for kind in (InfinityBall, EuclideanBall, Simplex, L1Ball, PriorBall, Polytope)
}
"""Every class that an apprenticeship can have: a new one is a file, and a word here."""


def cost_class_from(description: Mapping[str, Any]) -> CostClass:
    """The class that `CostClass.describe` described.

    >>> cost_class_from({"name": "simplex", "scale": [1.0, 2.0]}).gap([3.0, 2.0])
    4.0
    """
    given = dict(description)
    name = given.pop("name", None)
    if name is None:
        raise InvalidCosts(
            "it does not name a cost class", f"Give a name: one of {', '.join(COST_CLASSES)}"
        )
    if name not in COST_CLASSES:
        raise InvalidCosts(
            f"there is no cost class {name!r}", f"Give one of {', '.join(COST_CLASSES)}"
        )
    accepted = signature(COST_CLASSES[name]).parameters
    needed = [key for key, one in accepted.items() if one.default is one.empty]
    unknown, missing = [key for key in given if key not in accepted], set(needed) - set(given)
    if unknown or missing:
        what = f"knows no {unknown[0]!r}" if unknown else f"needs {' and '.join(needed)}"
        raise InvalidCosts(f"the cost class {name} {what}", f"Give {_example(name, needed)}")
    return COST_CLASSES[name](**given)


def named_cost_class(name: str) -> CostClass:
    """The class of that name, or the one that a JSON file describes."""
    if name in COST_CLASSES or not is_file_name(name):
        return cost_class_from({"name": name})
    if not Path(name).exists():
        raise InvalidCosts(f"{name} does not exist", f"Give {_example('simplex', ())}")
    try:
        description = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise InvalidCosts(
            f"{name} cannot be read as JSON: {fault}", f"Give {_example('simplex', ())}"
        ) from fault
    if not isinstance(description, dict):
        raise InvalidCosts(
            f"{name} holds a {type(description).__name__}", f"Give {_example('simplex', ())}"
        )
    try:
        return cost_class_from(description)
    except InvalidCosts as fault:
        raise InvalidCosts(f"{name}: {fault.what}", fault.remedy) from fault


def is_file_name(name: str) -> bool:
    """Whether it names a file that describes a class."""
    return name.lower().endswith(".json")


def _example(name: str, needed: Sequence[str]) -> str:
    """In words, what a file holds."""
    parts = "".join(f', "{key}": ...' for key in needed)
    return f'a .json file that holds {{"name": "{name}"{parts}}}'
