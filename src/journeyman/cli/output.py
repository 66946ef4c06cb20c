"""What a command prints: its result to standard output, as text or as one JSON object; progress,
warnings and errors to standard error. Whatever goes wrong ends in a paragraph and an exit code.
"""

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import fill, wrap
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from journeyman.progress import Observer, Terminal, quiet

WIDTH = 100
TRACEBACK = "traceback"
"""Where the global option is kept in the context."""
MOST_WEIGHTS = 20
"""Costs that are listed on the screen."""
FAILED = "failed"
"""The state of a premise that the data refute, as it is stored."""
HALF = 0.5
"""Of what holds for every policy: a larger bound is weak."""
STRENGTHS = {
    "vacuous": "is not below what holds for every policy, so it shows nothing about this one",
    "weak": "is above half of what holds for every policy, so it shows little about this one",
}


def show(result: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print a result."""
    shown = json.dumps(result, sort_keys=True, allow_nan=False, indent=1) if as_json else text
    typer.echo(shown)
    sys.stdout.flush()


def notifier(be_quiet: bool) -> Callable[[str], None]:
    """What prints a line on standard error, unless silence was asked for."""
    return (lambda words: None) if be_quiet else notify


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
    from journeyman.cli.exit_codes import in_options

    found = f"{result['status']} ({result['engine']})" if "status" in result else ""
    found += f"\nSolver chosen for {result['reason']}." if result.get("reason") else ""
    words = "\n".join(
        line for paragraph in result["summary"].splitlines() for line in wrap(paragraph, WIDTH)
    )
    weights = _weights_text(result.get("cost_weights") or [], result.get("likelihood"))
    learned = result.get("nonlinear_cost")
    remark = "" if learned is None else fill(f"Inferred cost: {learned['remark']}.", WIDTH)
    parts = [words, result["table"], found, weights, remark, in_options(result["advice"])]
    return "\n\n".join(part for part in parts if part)


def _weights_text(
    weights: Sequence[Mapping[str, Any]], likelihood: Mapping[str, Any] | None
) -> str:
    """The cost that the method has inferred, the largest weights first."""
    if not weights:
        return ""
    listed = sorted(weights, key=lambda one: -abs(one["weight"]))[:MOST_WEIGHTS]
    left = len(weights) - len(listed)
    width = max(len(one["name"]) for one in listed)
    rows = "\n".join(
        f"{one['name']:<{width}}  {one['weight']: .6g}{_error_text(one)}" for one in listed
    )
    more = f"\n({left} smaller ones are in --json and result.json)" if left else ""
    heading = "Weights of the cost that the method has inferred, in its own scale:"
    if likelihood is not None:
        heading = "Weights of the cost by maximum likelihood, with standard errors and t-values:"
        more += (
            f"\nlog-likelihood {likelihood['log_likelihood']:.6f} of "
            f"{likelihood['num_decisions']} decisions"
        )
        more += "".join(f"\n{one}" for one in likelihood["remarks"])
    return f"{heading}\n{rows}{more}"


def _error_text(weight: Mapping[str, Any]) -> str:
    """What is known of the error of a weight."""
    if "standard_error" not in weight:
        return ""
    if weight["standard_error"] is None:
        return "  (not identified)"
    return f"  +- {weight['standard_error']:.6g}  t {weight['t_value']:.2f}"


def require_level(
    result: Mapping[str, Any],
    gap: float | None = None,
    regret: float | None = None,
    advice: Callable[[], str] | None = None,
) -> None:
    """Raise `NotCertified` unless a stored certificate shows what was asked for.

    Asked for is what `gap` and `regret` say; without them that the regret is certified, where
    something is declared about the expert's own cost, else that the gap is. Of a claim that was not
    asked for a note says what is wrong with it. What the records refute of `--expert-is` raises
    `DeclarationRefuted` whatever was asked. `advice` returns what would help, instead of the
    result.
    """
    from journeyman.cli.exit_codes import DeclarationRefuted
    from journeyman.errors import NotCertified
    from journeyman.runs.learning import refuted_declarations

    contradicted = refuted_declarations(result)
    if contradicted:
        raise DeclarationRefuted(
            f"The records contradict what --expert-is declares: {'; '.join(contradicted)}."
        )
    known = result.get("regret")
    if regret is not None or (gap is None and known is not None):
        _require_regret(known, regret, result.get("regret_share"))
    failed, broken = (
        failed_premises(result),
        [one for one in result["budgets"] if not one["is_kept"]],
    )
    if failed and gap is None and known is not None:
        notify(f"Note: no gap is certified, because a premise of it failed ({failed}).")
        return
    if failed:
        raise NotCertified(f"Nothing is certified: a premise failed ({failed}).")
    if broken:
        raise NotCertified(f"The budget {broken[0]['name']!r} is not shown to be kept.")
    bound = float(result["bound"])
    if gap is None:
        strength = "vacuous" if result["vacuous"] else "weak" if result["weak"] else ""
        _note_strength("gap to the expert", strength)
    elif not bound <= gap:
        helpful = str(result["advice"]) if advice is None else advice()
        raise NotCertified(
            f"The certificate shows a gap of at most {bound:.6g}, and {gap:g} was asked for.\n"
            f"{helpful}"
        )


def failed_premises(claim: Mapping[str, Any]) -> str:
    """Names of the premises that failed; none where the claim is valid."""
    return "; ".join(one["name"] for one in claim["premises"] if one["status"] == FAILED)


def _note_strength(what: str, strength: str) -> None:
    if strength:
        notify(f"Note: the bound on the {what} is {strength}. It {STRENGTHS[strength]}.")


def _require_regret(
    known: Mapping[str, Any] | None, regret: float | None, attainable: float | None
) -> None:
    """Raise `NotCertified` unless the stored regret is valid, and small enough if it has to be.
    `attainable` is its share of what policies can lose, where more than the stored one is known."""
    from journeyman.errors import NotCertified

    if known is None:
        raise NotCertified(
            "No regret is certified: nothing is declared about the expert's own cost. Declare it "
            "where the policy is learned or certified, for example with --expert-is rational:0.01."
        )
    if not known["valid"]:
        raise NotCertified(f"No regret is certified: a premise failed ({failed_premises(known)}).")
    if regret is None:
        share = float(known["share"] if attainable is None else attainable)
        _note_strength("regret", "vacuous" if share >= 1 else "weak" if share > HALF else "")
    elif not float(known["bound"]) <= regret:
        raise NotCertified(
            f"The certificate shows a regret of at most {known['bound']:.6g} under the expert's "
            f"own cost, and {regret:g} was asked for."
        )


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
            if hasattr(fault, "exit_code"):
                _in_plain_words(fault)
                raise
            if (ctx.obj or {}).get(TRACEBACK):
                raise
            raise typer.Exit(_report(fault)) from None


def _in_plain_words(fault: Any) -> None:
    """Reword what is wrong with a command, which Typer prints."""
    from journeyman.cli.exit_codes import plain

    if isinstance(getattr(fault, "message", None), str):
        fault.message = plain(fault.message)


def _report(fault: BaseException) -> int:
    """Print what happened; the exit code."""
    from journeyman.cli.exit_codes import FAULT, SIGNALLED, ending_of

    if isinstance(fault, KeyboardInterrupt):
        notify("Interrupted.")
        return SIGNALLED + 2
    ending = ending_of(fault)
    if ending is None:
        notify(
            f"Error: internal error: {type(fault).__name__}: {fault}. "
            "journeyman --traceback, before the same command, shows where; please report it."
        )
        return FAULT
    notify(f"Error: {ending.message}")
    return ending.code


def notify(words: str) -> None:
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
    from journeyman.cli.exit_codes import in_options

    notify(f"Warning: {in_options(str(message))}")
