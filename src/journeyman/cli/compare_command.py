"""`journeyman compare`: methods side by side on the same problem, in a study that can be resumed.

What they are compared on are files as of a run, or an example with its expert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import journeyman as jm
from journeyman.cli.exit_codes import SIGNALLED
from journeyman.cli.options import (
    AsJson,
    Budgets,
    DemonstrationsFormat,
    OptionalCostClass,
    OptionalCosts,
    OptionalDemonstrations,
    OptionalWorld,
    Probability,
    Quiet,
    Rewards,
    TerminalState,
    TruncatedAt,
    WorldOption,
    parsed_options,
)
from journeyman.cli.output import notifier, notify, progress, show
from journeyman.errors import InvalidFile, NoSolution

ALL = "all"
EXAMPLE = "Instead of files, an embedded world with an expert: grid:16, garnet:100, driving."
FOR_FILES = (
    "world", "costs", "demonstrations", "demonstrations_format", "truncated_at", "terminal_state",
    "rewards", "budget", "expert",
)  # fmt: skip
"""Options that an example contradicts."""
TRAJECTORIES, HORIZON = 1000, 150
"""Of the demonstrations of an example, recorded anew for every seed."""
EXAMPLES = {"grid": "size", "garnet": "num_states", "driving": ""}
"""Examples with an expert, and what the number behind the colon is."""
RESUME = "Continue the study in --out: with the same options only what is missing is done."


def compare(
    solvers: Annotated[
        str, typer.Option(help="Methods, separated by commas, or all; a wrong name lists them.")
    ] = ALL,
    example: Annotated[str | None, typer.Option(help=EXAMPLE)] = None,
    world: OptionalWorld = None,
    option: WorldOption = None,
    costs: OptionalCosts = None,
    demonstrations: OptionalDemonstrations = None,
    demonstrations_format: DemonstrationsFormat = None,
    truncated_at: TruncatedAt = None,
    terminal_state: TerminalState = None,
    cost_class: OptionalCostClass = None,
    rewards: Rewards = None,
    budget: Budgets = None,
    expert: Annotated[
        Path | None,
        typer.Option(help="The true expert, if known: a policy file or a run directory."),
    ] = None,
    trajectories: Annotated[
        int | None,
        typer.Option(help="Demonstrations of an example, for each seed; 1000.", min=1),
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Steps of each; 150.", min=1)] = None,
    seeds: Annotated[int, typer.Option(help="How many: 0, 1, …", min=1)] = 1,
    cells: Annotated[
        int,
        typer.Option(
            help="Cells of the features of reduced-program, primal-dual and sgd-al.", min=1
        ),
    ] = 64,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for each solve.")] = None,
    failure_probability: Probability = 0.05,
    jobs: Annotated[int, typer.Option(help="Processes that solve at the same time.", min=1)] = 1,
    out: Annotated[
        Path | None, typer.Option(help="A directory for trials, report.html and trials.csv.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help=RESUME)] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page here.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write all trials here, one a line.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods: true gap, certificate, time and work.

    Every trial is a method with a seed. One that cannot be used is a row with the reason; exit 4
    when no method has an answer. In an example every seed has demonstrations of its own.
    """
    given = {
        "world": world, "costs": costs, "demonstrations": demonstrations,
        "cost_class": cost_class, "rewards": rewards, "world_options": parsed_options(option),
        "demonstrations_format": demonstrations_format, "truncated_at": truncated_at,
        "terminal_state": terminal_state,
    }  # fmt: skip
    recorded = {"trajectories": trajectories, "horizon": horizon}
    _refuse_limits(time_limit, failure_probability, resume=resume, out=out)
    _refuse_contradictions(example, given | {"budget": budget, "expert": expert}, recorded)
    for path in (report, csv):
        _refuse_place(path)

    def study(executor: Any) -> Any:
        inputs = (
            files_of(given, budget, expert)
            if example is None
            else example_of(example, given, trajectories or TRAJECTORIES, horizon or HORIZON)
        )
        return _compared(
            inputs, solvers, cells, seeds=range(seeds), directory=out, executor=executor,
            time_limit=time_limit, failure_probability=failure_probability,
        )  # fmt: skip

    found = _executed(study, out, resume, quiet, jobs)
    _write(found, out, report, csv)
    _show(found, out, as_json=as_json, quiet=quiet)


def _refuse_contradictions(
    example: str | None, given: dict[str, Any], recorded: dict[str, int | None]
) -> None:
    """Files and an example exclude each other, and so do the options of either."""
    if example is None and given["world"] is None:
        raise typer.BadParameter(
            "no world given; give --example grid:8, or --world, --costs and --demonstrations"
        )
    if example is None:
        for name, value in recorded.items():
            if value is not None:
                raise typer.BadParameter(
                    "it is for --example; of a file all demonstrations are taken",
                    param_hint=f"--{name}",
                )
        return
    for name in FOR_FILES:
        if given[name] is not None:
            option = name.replace("_", "-")
            raise typer.BadParameter(f"it contradicts --{option}", param_hint="--example")


def _refuse_limits(
    time_limit: float | None, probability: float, *, resume: bool, out: Path | None
) -> None:
    if resume and out is None:
        raise typer.BadParameter("it needs --out", param_hint="--resume")
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise typer.BadParameter("give seconds above 0", param_hint="--time-limit")
    if not 0 < probability < 1:
        raise typer.BadParameter(
            "give a number between 0 and 1, for example 0.05", param_hint="--failure-probability"
        )


def _refuse_place(path: Path | None) -> None:
    """What cannot be written in the end is refused before hours are spent on it."""
    if path is None:
        return
    if path.is_dir():
        raise InvalidFile(f"{path} is a directory", "Give the name of a file")
    if not path.parent.is_dir():
        raise InvalidFile(f"{path.parent} is not a directory", "Create it before, or name another")


def _compared(inputs: Any, solvers: str, cells: int, **limits: Any) -> Any:
    """The study itself."""
    from journeyman.runs.solver_choice import compared_solver
    from journeyman.studies import compare as compare_methods

    names = _names(solvers, can_ask=inputs.expert is not None)
    if not names:
        raise typer.BadParameter("no method given; a wrong name lists them", param_hint="--solvers")
    methods = {name: compared_solver(name, cells=cells, expert=inputs.expert) for name in names}
    return compare_methods(
        inputs.problem, methods, expert=inputs.expert, truth=inputs.truth, **limits
    )


def _names(solvers: str, *, can_ask: bool) -> Sequence[str]:
    """What was asked for; all means those that can be used."""
    from journeyman.runs.description import ASKING, METHODS

    if solvers == ALL:
        return (*METHODS, *(ASKING if can_ask else ()))
    return [name.strip() for name in solvers.split(",") if name.strip()]


def _executed(study: Any, out: Path | None, resume: bool, quiet: bool, jobs: int) -> Any:
    """Run the study on an executor; Ctrl-C and SIGTERM leave what is done."""
    from journeyman.runs.interruption import Interrupted, stopping_gently

    try:
        with stopping_gently(), progress(quiet) as observer:
            from journeyman.execution import Processes, Serial
            from journeyman.studies.compare import counting

            _refuse_earlier(out, resume)
            counted = counting(observer)
            alone = jobs == 1
            return study(Serial(observer=counted) if alone else Processes(jobs, observer=counted))
    except Interrupted as stop:
        kept = "" if out is None else " Go on with the same command and --resume."
        notify(f"Interrupted.{kept}")
        raise typer.Exit(SIGNALLED + stop.signal_number) from None


def _refuse_earlier(out: Path | None, resume: bool) -> None:
    from journeyman.studies.directory import StudyDirectory

    if out is not None and StudyDirectory(out).was_begun and not resume:
        raise InvalidFile(
            f"{out} holds a study",
            "Give --resume to continue it, or another directory",
        )


def _write(found: Any, out: Path | None, report: Path | None, csv: Path | None) -> None:
    from journeyman.studies.directory import PAGE, TABLE

    for path in (report, None if out is None else out / PAGE):
        if path is not None:
            found.report(path)
    for path in (csv, None if out is None else out / TABLE):
        if path is not None:
            found.csv(path)


def _show(found: Any, out: Path | None, *, as_json: bool, quiet: bool) -> None:
    facts = {"trials": [trial.facts() for trial in found.trials], "table": found.table()}
    show(facts | {"out": None if out is None else str(out)}, found.table(), as_json=as_json)
    if not any(trial.has_policy for trial in found.trials):
        raise NoSolution("No method has an answer; the table has the reasons.")
    if out is not None:
        notifier(quiet)(f"Everything is in {out}; open {out / 'report.html'} in a browser.")


@dataclass(frozen=True, eq=False)
class Compared:
    """A problem, or a function from a seed to one, and the true expert if there is one."""

    problem: Any
    expert: jm.Policy | None = None
    truth: jm.ExpertExpectation | None = None


def example_of(source: str, inputs: Mapping[str, Any], trajectories: int, horizon: int) -> Compared:
    """An example by name and size: every seed has demonstrations of its own.

    `driving` has published expectations instead of an expert who could be recorded.
    """
    from journeyman.adapters.source_options import arguments_for
    from journeyman.runs.description import InvalidSettings, cost_class_of

    name, _, size = source.partition(":")
    if name not in EXAMPLES or (size and not EXAMPLES[name]):
        known = ", ".join(f"{one}:N" if word else one for one, word in EXAMPLES.items())
        raise InvalidSettings(f"there is no example {source!r}", f"Give one of {known}")
    function = getattr(jm.gallery, name)
    given = inputs["world_options"] | ({EXAMPLES[name]: size} if size else {})
    world, basis, expert = function(**arguments_for(source, function, given))
    named = inputs["cost_class"]
    chosen = None if named is None else cost_class_of(named)
    if isinstance(expert, jm.ExpertExpectation):
        return Compared(jm.Apprenticeship(world, basis, expert, chosen), truth=expert)

    def problem(seed: int) -> jm.Apprenticeship:
        demos = jm.record(world, expert, trajectories=trajectories, horizon=horizon, seed=seed)
        return jm.Apprenticeship(world, basis, demos, chosen)

    return Compared(problem, expert=expert)


def files_of(given: Mapping[str, Any], budgets: list[str] | None, expert: Path | None) -> Compared:
    """The problem that a run with these files would have."""
    from journeyman.runs.description import RunDescription, overlaid, parsed_budget
    from journeyman.runs.run_inputs import Inputs, policy_from

    table: dict[str, Any] = {"budgets": [parsed_budget(one) for one in budgets or ()]}
    problem = Inputs.of(RunDescription.of(overlaid(table, given))).problem()
    return Compared(problem, expert=None if expert is None else policy_from(expert, problem.world))
