"""`journeyman clone`: a policy and its certificate from a file of records, and nothing else."""

import filecmp
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import journeyman as jm
from journeyman.cli.options import (
    AsJson,
    DemonstrationsFormat,
    DemonstrationsSource,
    Gap,
    Probability,
    Quiet,
    Seed,
    TruncatedAt,
)
from journeyman.cli.output import certificate_text, notifier, require_level, show


def clone(
    run: Annotated[Path, typer.Argument(help="The run directory to create.")],
    demonstrations: DemonstrationsSource,
    discount: Annotated[float, typer.Option(help="By which later costs count less.")],
    cost_range: Annotated[
        tuple[float, float],
        typer.Option(help="Least and greatest cost of a step; after an end it is 0."),
    ],
    held_out: Annotated[
        str | None,
        typer.Option(
            help="Other records to certify with. Without them the policy is cross-fitted: every "
            "episode tests a policy that was fitted to the others."
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Of the cross-fitting.", min=2)] = 2,
    use_probabilities: Annotated[
        bool,
        typer.Option(
            "--use-probabilities",
            help="Use the column expert_probability, which must be conditional on all that the "
            "expert acted on.",
        ),
    ] = False,
    demonstrations_format: DemonstrationsFormat = None,
    truncated_at: TruncatedAt = None,
    failure_probability: Probability = 0.05,
    gap: Gap = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Clone an expert from records alone, and certify.

    No world, simulator or costs are needed: states may be ids or observations, costs any in the
    declared range. Exit 4 when nothing is certified.
    """
    from journeyman.demonstrations.cross_fitting import cross_fit, default_fit
    from journeyman.errors import InvalidFile
    from journeyman.runs.learning import certificate_result
    from journeyman.runs.run_directory import RunDirectory

    place = RunDirectory(run)
    place.require_free(resume=False, overwrite=overwrite)
    if held_out is not None and is_one_file(demonstrations, held_out):
        raise InvalidFile(
            f"{held_out} holds the records that the policy is fitted to; they prove nothing",
            "Give other records to --held-out, or leave it out: the policy is then cross-fitted",
        )
    world = jm.world.Records(discount, cost_range, use_probabilities=use_probabilities)
    records = [
        jm.read_demonstrations(source, format=demonstrations_format, truncated_at=truncated_at)
        for source in ([demonstrations] if held_out is None else [demonstrations, held_out])
    ]
    problem = jm.Apprenticeship(world, None, records[-1])
    if held_out is None:
        policy = cross_fit(records[0], folds=folds, seed=seed)
    else:
        policy = default_fit(records[0])(records[0])
    certificate = jm.certify(problem, policy, failure_probability)
    result = certificate_result(certificate)
    with place.opened(resume=False, overwrite=overwrite):
        place.end(partial(certificate.save, seed=seed), result)
    show({"run": str(run), **result}, certificate_text(result), as_json=as_json)
    require_level(result, gap)
    notifier(quiet)(f"Everything is in {run}; next: journeyman audit {run}")


def is_one_file(one: str, other: str) -> bool:
    """Whether two sources are the same file or directory, or copies of one file."""
    first, second = Path(one), Path(other)
    if not (first.exists() and second.exists()):
        return one == other
    both_files = first.is_file() and second.is_file()
    return first.samefile(second) or (both_files and filecmp.cmp(first, second, shallow=False))
