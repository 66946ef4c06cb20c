"""`journeyman` on the command line. Results go to standard output, progress to standard error."""

from typing import Annotated

import typer

import journeyman

app = typer.Typer(
    name="journeyman",
    help="Apprenticeship learning with guarantees: from demonstrations to a policy and a "
    "certificate of how far it can fall short of the expert, for every cost your features express.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"journeyman {journeyman.__version__}")
        raise typer.Exit


@app.callback()
def journeyman_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Options that stand before the command."""


@app.command()
def demo(
    size: Annotated[int, typer.Option(help="Cells along each side of the grid.", min=4)] = 16,
    trajectories: Annotated[int, typer.Option(help="Demonstrations to record.", min=1)] = 2000,
    horizon: Annotated[int, typer.Option(help="Steps of each demonstration.", min=1)] = 150,
    seed: Annotated[int, typer.Option(help="Seed of the expert and of the recording.", min=0)] = 0,
) -> None:
    """Record an expert on an embedded grid world, learn from it, and certify what was learned."""
    from journeyman.cli.demo import run_demo

    typer.echo(run_demo(size, trajectories, horizon, seed))


def main() -> None:
    """Entry point of the `journeyman` script."""
    app()
