"""Options that several commands share, written once."""

import math
from collections.abc import Sequence
from typing import Annotated

import typer


def _a_number(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter("give a finite number, in units of cost")
    return value


def _a_premise(value: str | None) -> str | None:
    if value is not None and not value.strip(" ,"):
        raise typer.BadParameter("it names no premise; write for example rational:0.01")
    return value


_WORLD = typer.Option(
    help="A file (NPZ, UMB, CSV or Parquet of laws or of steps) or gym:ID, seals:ID, icu-sepsis, "
    "gallery:NAME."
)
_COSTS = typer.Option(
    help="A file of cost features, the name of a built-in set, or module:function."
)
_DEMONSTRATIONS = typer.Option(help="A file or directory: NPZ, CSV, Parquet, Minari, imitation.")


def complete_cost_class(incomplete: str) -> list[str]:
    """Names for the shell."""
    from journeyman.costs.registry import COST_CLASSES

    return [name for name in COST_CLASSES if name.startswith(incomplete)]


def complete_solver(incomplete: str) -> list[str]:
    """Names for the shell."""
    from journeyman.runs.description import SOLVERS

    return [name for name in SOLVERS if name.startswith(incomplete)]


_COST_CLASS = typer.Option(
    autocompletion=complete_cost_class,
    help="infinity-ball (match every cost), euclidean-ball, l1-ball, simplex (be no worse in any "
    "cost), or a .json file with the numbers of a prior-ball or polytope.",
)
WorldSource = Annotated[str, _WORLD]
CostsSource = Annotated[str, _COSTS]
DemonstrationsSource = Annotated[str, _DEMONSTRATIONS]
CostClassName = Annotated[str, _COST_CLASS]
OptionalWorld = Annotated[str | None, _WORLD]
OptionalCosts = Annotated[str | None, _COSTS]
OptionalDemonstrations = Annotated[str | None, _DEMONSTRATIONS]
OptionalCostClass = Annotated[str | None, _COST_CLASS]
"""The same where the description of a run or an example may give it instead."""
WorldArgument = Annotated[
    str, typer.Argument(help="A file, gym:ID, seals:ID, icu-sepsis, gallery:NAME.")
]
WorldOption = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="Of the source of the world, for example discount=0.95."),
]
DemonstrationsFormat = Annotated[
    str | None,
    typer.Option(help="npz, csv, parquet, minari or imitation, if the file name does not show it."),
]
TruncatedAt = Annotated[
    int | None,
    typer.Option(help="Time limit that ended episodes of so many steps, however marked.", min=1),
]
TerminalState = Annotated[
    str | None,
    typer.Option(help="Where terminated episodes end, by number or name, not their last state."),
]
Horizon = Annotated[
    int | None,
    typer.Option(help="Every episode ends after so many steps, whatever happens.", min=1),
]
StepDiscount = Annotated[
    float | None,
    typer.Option(help="With --horizon: a step at time t counts this^t; 1 if all count the same."),
]
AverageCost = Annotated[
    bool,
    typer.Option("--average-cost", help="Averages a step in the long run count, not totals."),
]
Rewards = Annotated[
    bool | None,
    typer.Option("--rewards/--no-rewards", help="Whether the features are rewards, or costs."),
]
Budgets = Annotated[
    list[str] | None, typer.Option("--budget", help="'cost <= limit', in discounted units.")
]
Probability = Annotated[
    float, typer.Option(help="Probability with which the certificate may fail to hold.")
]
Gap = Annotated[
    float | None,
    typer.Option(
        help="Exit with 4 unless the certificate shows a gap of at most this.", callback=_a_number
    ),
]
Regret = Annotated[
    float | None,
    typer.Option(
        help="Exit with 4 unless the certificate shows a regret under the expert's own cost of at "
        "most this.",
        callback=_a_number,
    ),
]
ExpertIs = Annotated[
    str | None,
    typer.Option(
        help="What is declared about the expert: rational:R (a recorded action costs on average at "
        "most R more than the best one), nearly-optimal:R, soft-rational:T, deterministic, "
        "stationary; several separated by commas.",
        callback=_a_premise,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of everything that is drawn.", min=0)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]


def parsed_options(given: Sequence[str] | None) -> dict[str, str]:
    """key=value options as a mapping."""
    parts = [one.partition("=") for one in given or ()]
    for key, sign, _ in parts:
        if not sign or not key:
            raise typer.BadParameter(f"{key!r} is not of the form key=value", param_hint="--option")
    return {key.strip(): value.strip() for key, _, value in parts}
