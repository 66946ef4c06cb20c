"""`journeyman` on the command line. Results go to standard output, progress to standard error."""

from typing import Annotated

import typer

import journeyman
from journeyman.cli.clone_command import clone
from journeyman.cli.compare_command import compare
from journeyman.cli.demo import demo, doctor
from journeyman.cli.help_pages import Application
from journeyman.cli.learn import learn, requirements
from journeyman.cli.mixture_command import mixture
from journeyman.cli.new_command import new
from journeyman.cli.output import TRACEBACK, Commands
from journeyman.cli.policy_commands import export_policy, show_policy
from journeyman.cli.run_commands import audit, certify, report, transfer
from journeyman.cli.studio_command import studio
from journeyman.cli.world_commands import check_world, import_world, record, show_world

app = Application(
    name="journeyman",
    cls=Commands,
    help="Apprenticeship learning with guarantees: from demonstrations to a policy and a "
    "certificate of how far it can fall short of the expert, for every cost your features express.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
world = Application(
    name="world", help="Worlds: import, check, show.", no_args_is_help=True,
    rich_markup_mode=None,
)  # fmt: skip
policy = Application(
    name="policy", help="Policies: show, export.", no_args_is_help=True, rich_markup_mode=None,
)  # fmt: skip


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"journeyman {journeyman.__version__}")
        raise typer.Exit


@app.callback()
def journeyman_command(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version of journeyman and exit.",
        ),
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where an error comes from.")
    ] = False,
) -> None:
    """Options that stand before the command."""
    context.obj = {TRACEBACK: traceback}


app.command()(demo)
app.command()(new)
app.add_typer(world)
world.command("import")(import_world)
world.command("check")(check_world)
world.command("show")(show_world)
app.add_typer(policy)
policy.command("show")(show_policy)
policy.command("export")(export_policy)
for command in (
    record,
    learn,
    clone,
    mixture,
    compare,
    certify,
    audit,
    report,
    transfer,
    requirements,
    studio,
    doctor,
):
    app.command()(command)


def main() -> None:
    """Entry point of the `journeyman` script."""
    app()
