"""Help of the commands: what a command needs comes first, and a value is named by one short word.

    Usage: journeyman certify POLICY --world SOURCE --costs SOURCE --demonstrations SOURCE [OPTIONS]

Typer's own help has the types of Python (`<list[str]>`) and marks each argument `[required]`.
"""

import re
from textwrap import wrap
from typing import Any

import typer
from typer.core import TyperCommand

WORDS = {
    "SOURCE": "source world costs demonstrations held_out candidate",
    "FILE": "config csv output report target",
    "DIR": "directory out save",
    "RUN": "run",
    "POLICY": "policy expert",
    "KEY=VALUE": "option set_ env_arg",
    "NAME": "case env environment example solver planner cost_class demonstrations_format "
    "named_format",
    "NAMES": "solvers names",
    "ACTIONS": "actions",
    "STATE": "initial state terminal_state",
    "STATES": "absorbing",
    "PREMISES": "expert_is",
    "LIMIT": "budget",
    "LOW HIGH": "cost_range",
    "SECONDS": "checkpoint_every time_limit",
    "N": "cells certified_rollouts folds horizon jobs limit plan_steps port rollouts rounds seed "
    "seeds size steps trajectories truncated_at",
    "NUMBER": "accuracy after_end discount failure_probability gap noise regret step_discount "
    "temperature",
    "GIGABYTES": "memory_gb",
}
"""What stands for a value, and the parameters it stands for."""
VALUES = {name: word for word, names in WORDS.items() for name in names.split()}


class Command(TyperCommand):
    """A command with the help described above."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for one in self.params:
            one.metavar = one.metavar or VALUES.get(one.name or "")

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """The line, broken between words and never within an option."""
        start = f"Usage: {ctx.command_path} "
        words = " ".join(self.collect_usage_pieces(ctx))
        lines = wrap(
            words, formatter.width - len(start), break_on_hyphens=False, break_long_words=False
        )
        formatter.write(start + f"\n{' ' * len(start)}".join(lines) + "\n")

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments, required options, and that there are others."""
        given = [one for one in self.params if _is_argument(one)]
        arguments = [_word(one) if one.required else f"[{_word(one)}]" for one in given]
        needed = [f"{one.opts[0]} {_word(one)}" for one in self.params if _is_needed(one)]
        return [*arguments, *needed, "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Three lists: arguments, required options, the others."""
        params = self.get_params(ctx)
        lists = {
            "Arguments": [one for one in params if _is_argument(one)],
            "Required options": [one for one in params if _is_needed(one)],
            "Options": [one for one in params if not (_is_argument(one) or _is_needed(one))],
        }
        for title, listed in lists.items():
            if listed:
                with formatter.section(title):
                    formatter.write_dl([_row(one, ctx) for one in listed])


class Application(typer.Typer):
    """A group whose commands have this help."""

    def command(self, *arguments: Any, **named: Any) -> Any:
        return super().command(*arguments, cls=Command, **named)


def _is_argument(one: Any) -> bool:
    return bool(one.param_type_name == "argument")


def _is_needed(one: Any) -> bool:
    return bool(one.required) and not _is_argument(one)


def _word(one: Any) -> str:
    return str(one.metavar or one.name.upper())


def _row(one: Any, ctx: Any) -> tuple[str, str]:
    """A parameter and what it is for; of what Typer adds only the default is kept."""
    _, words = one.get_help_record(ctx)
    main, _, added = words.partition("  [")
    default = re.search(r"default: [^;\]]+", added)
    words = f"{main}  [{default[0]}]" if default else main
    if _is_argument(one):
        return _word(one), words
    flags = " / ".join([", ".join(part) for part in (one.opts, one.secondary_opts) if part])
    return (flags if one.is_flag else f"{flags} {_word(one)}"), words
