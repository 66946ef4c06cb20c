"""`journeyman requirements`: what an accuracy asks for, before anything is recorded."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import journeyman as jm
from journeyman.cli.options import (
    AsJson,
    CostClass,
    Costs,
    Probability,
    Rewards,
    World,
    WorldOption,
    parsed_options,
)


def requirements(
    world: World,
    costs: Costs,
    accuracy: Annotated[float, typer.Option(help="By how much the policy may be worse.")],
    option: WorldOption = None,
    cost_class: CostClass = "infinity-ball",
    rewards: Rewards = None,
    failure_probability: Probability = 0.05,
    cells: Annotated[int, typer.Option(help="Cells of the features of SGD-AL.", min=1)] = 64,
    as_json: AsJson = False,
) -> None:
    """Say how many demonstrations and steps an accuracy needs.

    Steps are those of SGD-AL; the length of demonstrations is told as well.
    """
    from journeyman.cli.output import show
    from journeyman.runs.description import wrong_setting
    from journeyman.runs.inputs import CLASSES, costs_from, world_from

    if cost_class not in CLASSES:
        raise wrong_setting("cost_class", cost_class, f"Give one of {', '.join(CLASSES)}")
    options = parsed_options(option)
    there = world_from(world, options)
    basis = costs_from(costs, there, options if costs == world else {}, rewards=rewards)
    nobody = jm.ExpertExpectation([0.0] * basis.num_costs)
    problem = jm.Apprenticeship(there, basis, nobody, CLASSES[cost_class]())
    features = jm.features.partition(there, num_cells=cells)
    needs = jm.requirements(
        problem, features, accuracy=accuracy, failure_probability=failure_probability
    )
    fewest: int | None = None
    words = "complete demonstrations at most; what is observed usually allows for less."
    try:
        fewest = jm.demonstrations_needed(problem, accuracy, failure_probability)
        words = f"{fewest} {words}"
    except jm.InvalidProblem as refusal:
        words = f"no number of demonstrations is enough. {refusal}"
    text = f"{needs.table()}\n\nA certificate of one policy, from the exact program: {words}"
    show(_facts(needs) | {"certificate_trajectories": fewest}, text, as_json=as_json)


def _facts(needs: jm.Requirements) -> dict[str, Any]:
    return {
        "accuracy": needs.accuracy,
        "failure_probability": needs.failure_probability,
        "num_trajectories": needs.num_trajectories,
        "recorded_length": needs.recorded_length,
        "steps": needs.steps,
        "learning_rate": needs.learning_rate,
        "model": needs.model,
        "excess": needs.excess,
        "trivial_bound": needs.trivial_bound,
        "vacuous": needs.vacuous,
    }
