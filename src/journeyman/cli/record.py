"""`journeyman record`: demonstrations of a policy in a world, simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import journeyman as jm
from journeyman.cli.options import AsJson, Seed, WorldOption, parsed_options
from journeyman.errors import InvalidPolicy


def record(
    world: Annotated[str, typer.Argument(help="A file, gym:ID, seals:ID, icu-sepsis, gallery:…")],
    target: Annotated[Path, typer.Argument(help="The file to write: .npz, .csv, .parquet.")],
    expert: Annotated[
        str,
        typer.Option(help="A policy file, a run directory, uniform, or own (of a gallery world)."),
    ] = "own",
    trajectories: Annotated[int, typer.Option(help="How many.", min=1)] = 1000,
    horizon: Annotated[int, typer.Option(help="Steps of each.", min=1)] = 150,
    option: WorldOption = None,
    named_format: Annotated[
        str | None, typer.Option("--format", help="If the name does not say it.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a policy and write what it did, to try things out."""
    from journeyman.adapters.demonstration_files.demonstration_formats import write_demonstrations
    from journeyman.cli.output import show
    from journeyman.runs.inputs import world_from

    options = parsed_options(option)
    there = world_from(world, options)
    policy = _policy(expert, world, options, there)
    demos = jm.record(there, policy, trajectories=trajectories, horizon=horizon, seed=seed)
    write_demonstrations(demos, target, format=named_format)
    facts = {"file": str(target), "episodes": len(demos), "steps": demos.num_steps, "seed": seed}
    show(facts, f"{target}: {len(demos)} episodes, {demos.num_steps} steps", as_json=as_json)


def _policy(expert: str, source: str, options: dict[str, str], world: jm.World) -> jm.Policy:
    if expert == "uniform":
        return jm.Policy.uniform(world)
    if expert == "own":
        return _own_expert(source, options, world)
    from journeyman.runs.inputs import policy_from

    return policy_from(Path(expert), world)


def _own_expert(source: str, options: dict[str, str], world: jm.World) -> jm.Policy:
    """The expert that an example of the gallery comes with."""
    from journeyman.adapters.world_files.gallery_sources import NAMES, PREFIX
    from journeyman.adapters.world_files.source_options import EVERYWHERE, arguments_for

    name = source.removeprefix(PREFIX).replace("-", "_")
    if name in NAMES:
        function = getattr(jm.gallery, name)
        given = {key: text for key, text in options.items() if key not in EVERYWHERE}
        expert = getattr(function(**arguments_for(source, function, given)), "expert", None)
        if isinstance(expert, jm.Policy):
            return expert
    raise InvalidPolicy(
        f"{source} comes without an expert",
        "Give --expert with a policy file, a run directory, or uniform",
    )
