"""What a command prints: its result to standard output, as text or as one JSON object."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

import typer

from journeyman.cli.commands import WIDTH, say
from journeyman.progress import Observer, Terminal, quiet


def show(result: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print a result."""
    shown = json.dumps(result, sort_keys=True, allow_nan=False, indent=1) if as_json else text
    typer.echo(shown)
    sys.stdout.flush()


def teller(be_quiet: bool) -> Callable[[str], None]:
    """What says a line on standard error, unless silence was asked for."""
    return (lambda words: None) if be_quiet else say


@contextmanager
def progress(be_quiet: bool) -> Iterator[Observer]:
    """Progress on a terminal, silence elsewhere."""
    if be_quiet:
        yield quiet
        return
    with Terminal() as line:
        yield line


def aligned(rows: Mapping[str, object]) -> str:
    """Names and values in two columns."""
    width = max(map(len, rows), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


def certificate_text(result: Mapping[str, Any]) -> str:
    """The certificate of a result in words."""
    found = f"{result['status']} ({result['engine']})" if "status" in result else ""
    words = "\n".join(wrap(result["summary"], WIDTH))
    parts = [words, result["table"], found, result["advice"]]
    return "\n\n".join(part for part in parts if part)


def require_level(result: Mapping[str, Any], gap: float | None) -> None:
    """Raise `NotCertified` unless the stored certificate shows the gap that was asked for."""
    from journeyman.errors import NotCertified

    if gap is None:
        return
    bound = float(result["bound"])
    broken = [str(one["name"]) for one in result.get("budgets", []) if not one["is_kept"]]
    if not result["valid"]:
        raise NotCertified("The data refute a premise of the certificate: see its table.")
    if broken:
        raise NotCertified(f"The budget {broken[0]!r} is not shown to be kept.")
    if not bound <= gap:
        raise NotCertified(
            f"The certificate shows a gap of at most {bound:.6g}, and {gap:g} was asked for. "
            "What would help stands in its advice: usually more or longer demonstrations."
        )
