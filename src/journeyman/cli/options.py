"""Options that several commands share, written once."""

from collections.abc import Sequence
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]
Seed = Annotated[int, typer.Option(help="Seed of everything that is drawn.", min=0)]
World = Annotated[
    str,
    typer.Option(
        help="A file (NPZ, UMB, CSV or Parquet of transitions) or gym:ID, seals:ID, icu-sepsis, "
        "gallery:NAME."
    ),
]
WorldOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", help="Setting of the source as key=value, such as discount=0.95."
    ),
]
Costs = Annotated[
    str, typer.Option(help="A file of cost features, the name of a built-in set, module:function.")
]
Demonstrations = Annotated[
    str, typer.Option(help="A file or directory: NPZ, CSV, Parquet, Minari, imitation.")
]
TruncatedAt = Annotated[
    int | None,
    typer.Option(help="Time limit that ended episodes of so many steps, however marked.", min=1),
]
TerminalState = Annotated[
    int | None,
    typer.Option(help="Where terminated episodes end, instead of their last state.", min=0),
]
CostClass = Annotated[
    str, typer.Option(help="infinity-ball (match every cost), euclidean-ball, simplex (surpass).")
]
AnyWorld = Annotated[str | None, typer.Option(help="A file, gym:ID, gallery:NAME, …")]
AnyCosts = Annotated[str | None, typer.Option(help="A file, a name, module:function.")]
AnyDemonstrations = Annotated[str | None, typer.Option(help="A file or directory.")]
AnyClass = Annotated[str | None, typer.Option(help="infinity-ball, euclidean-ball or simplex.")]
"""The same where a description or an example may say it instead."""
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
    typer.Option(help="Exit with 4 unless the certificate shows a gap of at most this."),
]


def parsed_options(given: Sequence[str] | None) -> dict[str, str]:
    """key=value settings as a mapping."""
    parts = [one.partition("=") for one in given or ()]
    for key, sign, _ in parts:
        if not sign or not key:
            raise typer.BadParameter(f"{key!r} is not of the form key=value", param_hint="--option")
    return {key.strip(): value.strip() for key, _, value in parts}
