"""`journeyman world import`: any source of worlds, written as one native file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from journeyman.cli.options import AsJson, WorldOption, parsed_options

if TYPE_CHECKING:
    from journeyman.world import World


def import_world(
    source: Annotated[str, typer.Argument(help="A file, gym:ID, seals:ID, icu-sepsis, gallery:…")],
    target: Annotated[Path, typer.Argument(help="The NPZ file to write.")],
    option: WorldOption = None,
    discount: Annotated[
        float | None, typer.Option(help="Between 0 and 1; the same as --option discount=….")
    ] = None,
    initial: Annotated[
        str | None,
        typer.Option(help="The first state's number, or uniform; like --option initial=…."),
    ] = None,
    absorbing: Annotated[
        str | None,
        typer.Option(help="States of a log that are never left, as 5,7, or unleft for all such."),
    ] = None,
    drop_unseen: Annotated[
        bool,
        typer.Option("--drop-unseen", help="Numbers that occur nowhere in a log are no states."),
    ] = False,
    truncated_at: Annotated[
        int | None,
        typer.Option(
            min=1, help="Steps of a log's time limit, if ends there are marked terminated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read a world from any source, and write it as one file."""
    from journeyman.cli.output import show
    from journeyman.cli.world_show import facts_of, text_of
    from journeyman.runs.inputs import world_from

    options = parsed_options(option)
    if discount is not None:
        options["discount"] = repr(discount)
    if initial is not None:
        options["initial"] = initial
    if absorbing is not None:
        options["absorbing"] = absorbing
    if drop_unseen:
        options["drop_unseen"] = "yes"
    if truncated_at is not None:
        options["truncated_at"] = str(truncated_at)
    if target.suffix != ".npz":
        raise typer.BadParameter(f"{target} does not end in .npz", param_hint="TARGET")
    world = world_from(source, options)
    world.save(target)
    show(
        {"file": str(target), **facts_of(world)},
        f"{target}\n{text_of(world)}{_note(world)}",
        as_json=as_json,
    )


def _note(world: World) -> str:
    from journeyman.adapters.world_files.single_precision import was_single

    if not was_single(world):
        return ""
    return (
        f"\nNote: the laws were kept in single precision and added up to 1 within "
        f"{world.normalisation_error:.0e} only; they were divided by their sums."
    )
