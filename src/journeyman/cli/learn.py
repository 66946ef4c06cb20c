"""`journeyman learn`: from a description to a certified policy in a run directory; and `journeyman
requirements`: what an accuracy asks for, before anything is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import journeyman as jm
from journeyman.cli.exit_codes import LIMIT, SIGNALLED
from journeyman.cli.options import (
    AsJson,
    AverageCost,
    Budgets,
    CostClassName,
    CostsSource,
    DemonstrationsFormat,
    ExpertIs,
    Gap,
    Horizon,
    OptionalCostClass,
    OptionalCosts,
    OptionalDemonstrations,
    OptionalWorld,
    Probability,
    Quiet,
    Regret,
    Rewards,
    StepDiscount,
    TerminalState,
    TruncatedAt,
    WorldOption,
    WorldSource,
    complete_solver,
    parsed_options,
)
from journeyman.cli.output import (
    certificate_text,
    notifier,
    notify,
    progress,
    require_level,
    show,
)

RESUME = "Continue an interrupted run, to the same answer."


def learn(
    run: Annotated[Path, typer.Argument(help="The run directory to create, or to resume.")],
    config: Annotated[Path | None, typer.Option(help="A TOML file that describes the run.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Overrides the TOML file, for example solver.steps=5000."),
    ] = None,
    world: OptionalWorld = None,
    option: WorldOption = None,
    costs: OptionalCosts = None,
    demonstrations: OptionalDemonstrations = None,
    demonstrations_format: DemonstrationsFormat = None,
    truncated_at: TruncatedAt = None,
    terminal_state: TerminalState = None,
    horizon: Horizon = None,
    step_discount: StepDiscount = None,
    average_cost: AverageCost = False,
    cost_class: OptionalCostClass = None,
    expert_is: ExpertIs = None,
    rewards: Rewards = None,
    budget: Budgets = None,
    solver: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_solver,
            help="auto, linear-program, banded-program, column-generation, smoothed-program, "
            "reduced-program, primal-dual, sgd-al, or a classic method such as projection.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds until the result is there; then it is saved.")
    ] = None,
    memory_gb: Annotated[
        float | None,
        typer.Option(help="Gigabytes that an exact program may take."),
    ] = None,
    failure_probability: Annotated[
        float | None, typer.Option(help="Probability with which the certificate may fail; 0.05.")
    ] = None,
    gap: Gap = None,
    regret: Regret = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of everything that is drawn; 0.", min=0)
    ] = None,
    checkpoint_every: Annotated[
        float | None, typer.Option(help="Seconds between checkpoints of sgd-al or primal-dual.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help=RESUME)] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from demonstrations, and certify.

    Needed are --world, --costs and --demonstrations, or a --config that names them. Policy,
    certificate and all they rest on go into a run directory. Exit 4 when what was asked for is not
    certified, 6 when the records contradict --expert-is; the result is saved all the same.
    """
    if resume and overwrite:
        raise typer.BadParameter("it contradicts --overwrite", param_hint="--resume")
    given = {
        "world": world, "costs": costs, "demonstrations": demonstrations, "gap": gap,
        "regret": regret, "expert_is": expert_is,
        "cost_class": cost_class, "rewards": rewards, "seed": seed,
        "demonstrations_format": demonstrations_format, "truncated_at": truncated_at,
        "terminal_state": terminal_state, "horizon": horizon, "step_discount": step_discount,
        "average_cost": average_cost or None,
        "failure_probability": failure_probability, "world_options": parsed_options(option),
        "solver": {"name": solver, "time_limit": time_limit, "memory_gb": memory_gb},
    }  # fmt: skip
    asked = _Learning(run, config, set_ or [], given, budget, resume, overwrite, checkpoint_every)
    asked.go(as_json, quiet)


@dataclass(frozen=True)
class _Learning:
    """One call of the command."""

    run: Path
    config: Path | None
    overrides: list[str]
    given: dict[str, Any]
    budgets: list[str] | None
    resume: bool
    overwrite: bool
    checkpoint_every: float | None

    def go(self, as_json: bool, quiet: bool) -> None:
        """Learn, show the result, and report what is lacking."""
        from journeyman.runs.interruption import Interrupted, stopping_gently

        inform = notifier(quiet)
        try:
            with stopping_gently(), progress(quiet) as observer:
                from journeyman.runs.learning import LIMITS, learn_in
                from journeyman.runs.run_directory import RunDirectory

                place = RunDirectory(self.run)
                with place.opened(resume=self.resume, overwrite=self.overwrite):
                    description = self._description(place)
                    result = learn_in(
                        place, description, observer=observer, report=inform,
                        checkpoint_every=self.checkpoint_every,
                    )  # fmt: skip
        except Interrupted as stop:
            self._exit_interrupted(stop.signal_number)
        show({"run": str(self.run), **result}, certificate_text(result), as_json=as_json)
        limited = result["status"] in LIMITS
        if limited:
            self._report_limit(result["message"])
        require_level(result, description.gap, description.regret)
        if limited:
            raise typer.Exit(LIMIT)
        inform(f"Everything is in {self.run}; next: journeyman audit {self.run}")

    def _description(self, place: Any) -> Any:
        """What is stored or in the TOML file, then --set, then the options."""
        from journeyman.runs.description import (
            RunDescription,
            overlaid,
            overridden,
            parsed_budget,
            read_toml,
        )

        table: dict[str, Any] = {}
        if self.config is not None:
            asked = RunDescription.of(read_toml(self.config), str(self.config))
            table = asked.with_paths_from(self.config.parent).table()
        elif self.resume and (place.was_begun or not self.given["world"]):
            table = place.stored()
        if self.budgets is not None:
            table["budgets"] = [parsed_budget(one) for one in self.budgets]
        table = overlaid(overridden(table, self.overrides), self.given)
        described = RunDescription.of(table).with_paths_from(Path.cwd())
        self._refuse_code(described)
        return described

    def _refuse_code(self, description: Any) -> None:
        """Whoever runs a module's code has to name it on the command line."""
        from journeyman.errors import InvalidFile
        from journeyman.runs.run_inputs import code_named_in

        source = code_named_in(description)
        typed = [self.given["world"], self.given["costs"], *(self.budgets or ()), *self.overrides]
        if source is not None and not any(source in words for words in typed if words):
            raise InvalidFile(
                f"the description asks to run code: {source}",
                f"If you trust it, give {source} on the command line as well",
            )

    def _exit_interrupted(self, signal_number: int) -> None:

        notify(f"Interrupted. Go on with: journeyman learn {self.run} --resume")
        raise typer.Exit(SIGNALLED + signal_number)

    def _report_limit(self, message: str) -> None:

        notify(
            f"What is shown is the best at hand: {message}. Allow more with --time-limit and go on "
            f"with: journeyman learn {self.run} --resume"
        )


def requirements(
    world: WorldSource,
    costs: CostsSource,
    accuracy: Annotated[float, typer.Option(help="By how much the policy may be worse.")],
    option: WorldOption = None,
    cost_class: CostClassName = "infinity-ball",
    rewards: Rewards = None,
    failure_probability: Probability = 0.05,
    cells: Annotated[int, typer.Option(help="Cells of the features of SGD-AL.", min=1)] = 64,
    as_json: AsJson = False,
) -> None:
    """Compute how many demonstrations and steps an accuracy needs.

    Steps are those of SGD-AL; the length of demonstrations is computed as well.
    """
    from journeyman.runs.description import cost_class_of
    from journeyman.runs.run_inputs import costs_from, world_from

    options = parsed_options(option)
    there = world_from(world, options)
    basis = costs_from(costs, there, options if costs == world else {}, rewards=rewards)
    nobody = jm.ExpertExpectation([0.0] * basis.num_costs)
    problem = jm.Apprenticeship(there, basis, nobody, cost_class_of(cost_class))
    features = jm.features.partition(there, num_cells=cells)
    needs = jm.requirements(
        problem, features, accuracy=accuracy, failure_probability=failure_probability
    )
    fewest: int | None = None
    words = "complete demonstrations at most; what is observed usually allows for less."
    try:
        fewest = jm.certificate.demonstrations_needed(problem, accuracy, failure_probability)
        words = f"{fewest} {words}"
    except jm.errors.InvalidProblem as refusal:
        words = f"no number of demonstrations is enough. {refusal}"
    text = f"A certificate of one policy, from the exact program: {words}\n\n{needs.table()}"
    show(_facts(needs) | {"certificate_trajectories": fewest}, text, as_json=as_json)


def _facts(needs: jm.certificate.Requirements) -> dict[str, Any]:
    return {
        "accuracy": needs.accuracy,
        "failure_probability": needs.failure_probability,
        "num_trajectories": needs.num_trajectories,
        "recorded_length": needs.recorded_length,
        "steps": needs.steps,
        "learning_rate": needs.learning_rate,
        "model": needs.model,
        "excess": needs.excess,
        "trivial_bound": needs.trivial_bound,
        "vacuous": needs.vacuous,
    }
