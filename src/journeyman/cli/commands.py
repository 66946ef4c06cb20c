"""The group of commands: whatever goes wrong inside ends in a paragraph and an exit code."""

import sys
import warnings
from textwrap import fill
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

WIDTH = 100
TRACEBACK = "traceback"
"""Where the global option is kept in the context."""


class Commands(TyperGroup):
    """A group whose commands never end in a traceback, unless one is asked for."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except (Exception, KeyboardInterrupt) as fault:
            if hasattr(fault, "exit_code") or (ctx.obj or {}).get(TRACEBACK):
                raise
            raise typer.Exit(_told(fault)) from None


def _told(fault: BaseException) -> int:
    """Say what happened; the exit code."""
    from journeyman.cli.exit_codes import FAULT, SIGNALLED, ending_of

    if isinstance(fault, KeyboardInterrupt):
        say("Interrupted.")
        return SIGNALLED + 2
    ending = ending_of(fault)
    if ending is None:
        say(
            f"Error: a fault that nobody thought of: {type(fault).__name__}: {fault}. "
            "journeyman --traceback, before the same command, shows where; please report it."
        )
        return FAULT
    say(f"Error: {ending.words}")
    return ending.code


def say(words: str) -> None:
    """A paragraph on standard error; lists keep their lines."""
    wrapped = (
        fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)
        for line in words.splitlines()
    )
    typer.echo("\n".join(wrapped), err=True)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    from journeyman.cli.option_words import in_options

    say(f"Warning: {in_options(str(message))}")
