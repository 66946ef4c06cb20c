"""Cost classes by name: on the command line, in run descriptions and in saved runs."""

import json
from collections.abc import Mapping
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
    parameters = dict(description)
    name = parameters.pop("name", None)
    if name not in COST_CLASSES:
        raise InvalidCosts(
            f"there is no cost class {name!r}", f"Give one of {', '.join(COST_CLASSES)}"
        )
    try:
        return COST_CLASSES[name](**parameters)
    except TypeError as fault:
        raise InvalidCosts(
            f"the cost class {name!r} cannot be made of {', '.join(parameters) or 'nothing'}",
            f"{fault}".removeprefix(f"{COST_CLASSES[name].__name__}.").capitalize(),
        ) from fault


def named_cost_class(name: str) -> CostClass:
    """The class of that name, or the one described in a JSON file."""
    if name in COST_CLASSES:
        return cost_class_from({"name": name})
    path = Path(name)
    if path.suffix.lower() != ".json":
        raise InvalidCosts(
            f"there is no cost class {name!r}",
            f"Give one of {', '.join(COST_CLASSES)}, or a .json file with its name and numbers",
        )
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise InvalidCosts(f"{path}: {fault}", "Give a JSON file with a cost class") from fault
    if not isinstance(description, dict):
        raise InvalidCosts(
            f"{path} holds a {type(description).__name__}",
            'Give an object such as {"name": "simplex", "scale": [1, 2]}',
        )
    try:
        return cost_class_from(description)
    except InvalidCosts as fault:
        raise InvalidCosts(f"{path}: {fault.what}", fault.remedy) from fault
