"""`journeyman world check`: is a world sound, and does it predict what an environment does?"""

from typing import Annotated, Any

import typer

from journeyman.cli.options import AsJson, Seed, WorldOption, parsed_options


def check_world(
    source: Annotated[str, typer.Argument(help="A file, gym:ID, seals:ID, icu-sepsis, gallery:…")],
    env: Annotated[
        str | None, typer.Option(help="A Gymnasium environment to simulate and compare with.")
    ] = None,
    env_arg: Annotated[
        list[str] | None, typer.Option(help="Argument of the environment as key=value.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps to simulate.", min=1)] = 20_000,
    option: WorldOption = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Check a world; with --env, also against a simulator.

    Reading refuses laws that do not sum to one, wrong ids, a discount outside (0, 1) and the like.
    """
    from journeyman.adapters.world_files.world_check import check_transitions
    from journeyman.cli.exit_codes import BAD_DATA
    from journeyman.cli.output import show
    from journeyman.cli.world_show import facts_of, text_of
    from journeyman.runs.inputs import world_from

    world = world_from(source, parsed_options(option))
    facts: dict[str, Any] = {"sound": True, **facts_of(world)}
    if env is None:
        show(facts, f"The world is sound.\n{text_of(world)}", as_json=as_json)
        return
    found = check_transitions(
        world, _environment(env, parsed_options(env_arg)), steps=steps, seed=seed
    )
    show(
        facts | {"sound": not found.refuted, "environment": env, **vars(found)},
        str(found),
        as_json=as_json,
    )
    if found.refuted:
        raise typer.Exit(BAD_DATA)


def _environment(name: str, options: dict[str, str]) -> Any:
    from journeyman.adapters.world_files.gymnasium_worlds import PREFIX, make_environment

    return make_environment(name.removeprefix(PREFIX), options)
