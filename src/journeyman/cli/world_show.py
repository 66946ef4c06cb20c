"""`journeyman world show`: what a world is like, in a few lines."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import journeyman as jm
from journeyman.cli.options import AsJson, WorldOption, parsed_options


def show_world(
    source: Annotated[str, typer.Argument(help="A file, gym:ID, seals:ID, icu-sepsis, gallery:…")],
    option: WorldOption = None,
    as_json: AsJson = False,
) -> None:
    """Say how large a world is and what is known about it."""
    from journeyman.cli.output import show
    from journeyman.runs.inputs import world_from

    world = world_from(source, parsed_options(option))
    show(facts_of(world), text_of(world), as_json=as_json)


def facts_of(world: jm.World) -> dict[str, Any]:
    """A world in figures."""
    counts = world.transition_counts
    return {
        "states": world.num_states,
        "pairs": world.num_pairs,
        "most_actions": int(world.pairs.max_actions),
        "action_numbers": _action_numbers(world),
        "transitions": int(world.transition.nnz),
        "discount": world.discount,
        "absorbing_states": int(world.absorbing.sum()),
        "sink": world.sink,
        "starts": int((world.initial > 0).sum()),
        "estimated": world.is_estimated,
        "observed_transitions": None if counts is None else int(counts.sum()),
        "fewest_observations": None if counts is None else int(counts.min()),
        "normalisation_error": world.normalisation_error,
        "state_names": list(world.state_names or ())[:5],
        "action_names": list(world.action_names or ()),
    }


def _action_numbers(world: jm.World) -> list[int]:
    """The numbers of all actions, where states do not have 0, 1, 2, ... of them."""
    if world.pairs.numbers is None:
        return []
    return sorted({int(number) for number in world.pairs.numbers})


def text_of(world: jm.World) -> str:
    """The same for people; what does not apply is left out."""
    from journeyman.cli.output import aligned

    facts = facts_of(world)
    rows = {name.replace("_", " "): value for name, value in facts.items()}
    rows["effective horizon"] = f"{world.effective_horizon:g} steps"
    return aligned({name: value for name, value in rows.items() if value not in (None, [])})
