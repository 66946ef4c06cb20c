"""`journeyman mixture`: from recorded observations and a simulator to a grown mixture of policies,
with its certificate."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import journeyman as jm
from journeyman.cli.clone_command import is_one_file
from journeyman.cli.exit_codes import LIMIT, SIGNALLED
from journeyman.cli.options import (
    AsJson,
    CostClassName,
    DemonstrationsFormat,
    DemonstrationsSource,
    Gap,
    Probability,
    Quiet,
    Seed,
    TruncatedAt,
    parsed_options,
)
from journeyman.cli.output import (
    aligned,
    certificate_text,
    notifier,
    notify,
    progress,
    require_level,
    show,
)
from journeyman.errors import InvalidFile, InvalidPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from journeyman.demonstrations import Demonstrations

LEAST_SQUARES, NO_PLANNER = "least-squares", "none"
CLONE, UNIFORM, PLANNED = "clone of the demonstrations", "random actions", "planned in round"
DRAWING = f"{CLONE}, actions drawn"
UNSEEN = 0.01
"""Of the discounted time: what the default horizon leaves behind its end."""
NEVER = -1e3
"""Of a logit: its action has probability 0."""


def _a_time_limit(value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter("give seconds above 0")
    return value


def mixture(
    run: Annotated[Path, typer.Argument(help="The run directory to create.")],
    environment: Annotated[
        str, typer.Option(help="The id of an environment of Gymnasium, or module:Id-v0.")
    ],
    costs: Annotated[
        str,
        typer.Option(
            help="module:function, which returns StepCosts or, with --names, is the function of "
            "steps; time; observations:2.4,3,0.2,3 (sizes of the numbers, in these units)."
        ),
    ],
    demonstrations: DemonstrationsSource,
    discount: Annotated[float, typer.Option(help="By which later costs count less.")],
    held_out: Annotated[
        str | None,
        typer.Option(help="Further records to certify with, instead of --demonstrations."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", help="Of the environment, for example max_episode_steps=300."
        ),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            help="Some actions of an environment with continuous ones, '-1 0 1', with commas in an "
            "action of several numbers. Records have their numbers 0, 1, ..."
        ),
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Of the costs, separated by commas, if they have none.")
    ] = None,
    cost_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="With --names: least and greatest cost of a step."),
    ] = None,
    after_end: Annotated[
        float | None,
        typer.Option(help="What every step costs after an episode has terminated; 0."),
    ] = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            help="A further policy to begin with: a run of clone or mixture, or module:function "
            "that returns one."
        ),
    ] = None,
    planner: Annotated[
        str, typer.Option(help="least-squares; none to mix the given policies only.")
    ] = LEAST_SQUARES,
    rounds: Annotated[int, typer.Option(help="At most; one candidate each.", min=2)] = 12,
    plan_steps: Annotated[
        int, typer.Option(help="Steps of the simulator that a plan may take.", min=1)
    ] = 20_000,
    rollouts: Annotated[int, typer.Option(help="Episodes of each candidate.", min=2)] = 100,
    certified_rollouts: Annotated[
        int, typer.Option(help="Fresh episodes of the mixture, for the certificate.", min=2)
    ] = 400,
    horizon: Annotated[
        int | None,
        typer.Option(
            help="Steps after which an episode is cut off; by default 1 % of the discounted time "
            "is left then.",
            min=1,
        ),
    ] = None,
    noise: Annotated[
        float,
        typer.Option(
            help="Times the sampling error of the records within which the mixture keeps to the "
            "given policies; 0 for the least value.",
            min=0,
        ),
    ] = 1.0,
    cost_class: CostClassName = "infinity-ball",
    demonstrations_format: DemonstrationsFormat = None,
    truncated_at: TruncatedAt = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Seconds after which no new round begins; the certificate comes after it.",
            callback=_a_time_limit,
        ),
    ] = None,
    failure_probability: Probability = 0.05,
    gap: Gap = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from observations and a simulator, and certify.

    A clone of the records and policies planned for the currently worst cost are mixed so that they
    match the expert in every cost. Observations may be continuous. Exit 4 when nothing is
    certified, 5 when the time limit was reached; the result is saved all the same.
    """
    if planner not in (LEAST_SQUARES, NO_PLANNER):
        raise typer.BadParameter(
            f"{planner!r} is not {LEAST_SQUARES} or {NO_PLANNER}", param_hint="--planner"
        )
    if not 0 < failure_probability < 1:
        raise typer.BadParameter(
            "give a number between 0 and 1, for example 0.05", param_hint="--failure-probability"
        )
    steps = horizon or _horizon(discount)
    given = _Given(
        partial(
            _simulator, environment.removeprefix("gym:"), costs, discount, actions=actions,
            names=names, cost_range=cost_range, after_end=after_end, options=parsed_options(option),
        ),
        demonstrations, held_out, costs, cost_class, candidate or [],
        partial(
            jm.read_demonstrations, format=demonstrations_format, truncated_at=truncated_at
        ),
    )  # fmt: skip
    search = {
        "rollouts": rollouts, "horizon": steps, "seed": seed, "noise": noise,
        "time_limit": time_limit,
    }  # fmt: skip
    if planner == LEAST_SQUARES:
        search |= {"budget": plan_steps, "rounds": rounds}
    evaluation = jm.Rollouts(certified_rollouts, steps)
    learning = _Learning(run, given, search, evaluation, failure_probability, overwrite)
    result = learning.go(as_json, quiet)
    limited = result["status"] == jm.solvers.Status.TIME_LIMIT.name
    if limited:
        notify("The time limit ended the search: the mixture is the best one at hand.")
    require_level(result, gap)
    if limited:
        raise typer.Exit(LIMIT)
    notifier(quiet)(f"Everything is in {run}; next: journeyman audit {run} --trust-code")


@dataclass(frozen=True)
class _Given:
    """Where simulator, records and candidates come from."""

    simulator: Callable[[], Any]
    demonstrations: str
    held_out: str | None
    costs: str
    cost_class: str
    candidates: list[str]
    read: Callable[[str], Demonstrations]

    def require_others(self) -> None:
        """Refuse records to certify with that are those that are learned from."""
        if self.held_out is not None and is_one_file(self.demonstrations, self.held_out):
            raise InvalidFile(
                f"{self.held_out} holds the records that are learned from",
                "Give other records to --held-out, or leave it out",
            )

    def records(self, source: str, simulator: Any) -> Demonstrations:
        """The demonstrations of a file."""
        try:
            return self.read(source)
        except InvalidFile as fault:
            if simulator.actions is None or "whole number" not in fault.what:
                raise
            raise InvalidFile(
                fault.what,
                "With --actions records hold the numbers 0, 1, ... of the listed actions; in "
                "Python simulator.nearest_actions(actions) finds them",
            ) from fault


@dataclass(frozen=True)
class _Learning:
    """One call of the command."""

    run: Path
    given: _Given
    search: dict[str, Any]
    evaluation: jm.Rollouts
    failure_probability: float
    overwrite: bool

    def go(self, as_json: bool, quiet: bool) -> dict[str, Any]:
        """Learn, certify, save, and show the result; an interrupted search is saved as well."""
        from journeyman.adapters.cost_sources import modules_here
        from journeyman.runs.interruption import Interrupted, Stop, stopping_gently
        from journeyman.runs.run_directory import RunDirectory

        place, result = RunDirectory(self.run), dict[str, Any]()
        place.require_free(resume=False, overwrite=self.overwrite)
        self.given.require_others()
        try:
            with stopping_gently(), modules_here(), progress(quiet) as observer:
                result, save = self._learned(observer)
                with place.opened(resume=False, overwrite=self.overwrite):
                    place.end(save, result)
                if result["status"] == jm.solvers.Status.INTERRUPTED.name:
                    raise Stop
        except Interrupted as stop:
            ended = place.has_ended and bool(result)
            if ended:
                show({"run": str(self.run), **result}, _text(result), as_json=as_json)
            kept = f"The best mixture at hand is in {self.run}." if ended else "Nothing was saved."
            notify(f"Interrupted. {kept}")
            raise typer.Exit(SIGNALLED + stop.signal_number) from None
        show({"run": str(self.run), **result}, _text(result), as_json=as_json)
        return result

    def _learned(self, observer: Any) -> tuple[dict[str, Any], Callable[..., None]]:
        """The result, and what saves it."""
        from journeyman.runs.learning import certificate_result

        given, seed = self.given, self.search["seed"]
        made = given.simulator()
        simulator = made.made
        shown = given.records(given.demonstrations, simulator)
        fresh = shown if given.held_out is None else given.records(given.held_out, simulator)
        problem, certified = (
            _problem(simulator, one, given.costs, given.cost_class) for one in (shown, fresh)
        )
        code, further = _further(given.candidates)
        policies = {**_clones(shown, seed), UNIFORM: _uniform(simulator), **further}
        way: Any = None
        if "budget" in self.search:
            guides = [policy for name, policy in policies.items() if name != UNIFORM]
            way = jm.solvers.LeastSquaresPlanner(self.search["horizon"], guides=guides)
        solver = jm.PolicyMixture(list(policies.values()), planner=way, **self.search)
        answer = jm.solve(problem, solver, observer=observer)
        certificate = jm.certify(
            certified, answer, self.failure_probability, observer=observer,
            evaluation=self.evaluation,
        )  # fmt: skip
        result = certificate_result(certificate) | {
            "status": answer.status.name, "message": answer.status.message,
            "engine": answer.engine, "seed": seed, **_candidates(answer, list(policies)),
        }  # fmt: skip
        return result, partial(certificate.save, code=[made, *code], seed=seed)


def _simulator(
    environment: str,
    costs: str,
    discount: float,
    *,
    actions: str | None,
    names: str | None,
    cost_range: tuple[float, float] | None,
    after_end: float | None,
    options: dict[str, str],
) -> Any:
    """A reference to the simulator, refused where its actions have no numbers."""
    from journeyman.adapters.simulator_sources import Declared, simulator_by_reference

    called = None if names is None else [name.strip() for name in names.split(",")]
    made = simulator_by_reference(
        environment, costs, discount, actions=None if actions is None else _listed(actions),
        options=options, declared=Declared(called, cost_range, after_end),
    )  # fmt: skip
    _ = made.made.action_numbers
    return made


def _horizon(discount: float) -> int:
    """Steps until a hundredth of the discounted time is left."""
    return math.ceil(math.log(UNSEEN) / math.log(discount)) if 0 < discount < 1 else 1


def _listed(text: str) -> list[list[float]]:
    """Actions separated by blanks, the numbers of each by commas."""
    try:
        found = [[float(part) for part in one.split(",")] for one in re.split(r"[\s;]+", text)]
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no list of actions; write '-1 0 1', or '-1,0 1,0' for actions of two "
            "numbers",
            param_hint="--actions",
        ) from None
    return found


def _problem(simulator: Any, demos: Demonstrations, costs: str, cost_class: str) -> Any:
    """What the records cost is computed here for the first time."""
    from journeyman.adapters.cost_sources import named_in
    from journeyman.runs.description import cost_class_of

    numbers = simulator.action_numbers
    wrong = demos.actions[(demos.actions < numbers[0]) | (demos.actions > numbers[-1])]
    if wrong.size:
        what = "the environment" if simulator.actions is None else "the list of --actions"
        raise InvalidFile(
            f"the demonstrations take action {wrong[0]}, and {what} has {numbers[0]} to "
            f"{numbers[-1]}",
            "Record actions by these numbers",
        )
    chosen = cost_class_of(cost_class)
    with named_in(costs):
        return jm.Apprenticeship(simulator, None, demos, chosen)


def _clones(demos: Demonstrations, seed: int) -> dict[str, Any]:
    """By their names."""
    from journeyman.demonstrations.expectation import clone_visited_states

    if demos.has_ids:
        return {CLONE: clone_visited_states(demos)}
    network = jm.demonstrations.clone_observations(demos, seed=seed)
    return {CLONE: network, DRAWING: network.drawing}


def _uniform(simulator: Any) -> Any:
    """Every action alike, as numbers."""
    import numpy as np

    from journeyman.demonstrations.expectation import ClonedPolicy

    last, first = int(simulator.action_numbers[-1]), int(simulator.action_numbers[0])
    logits = np.where(np.arange(last + 1) < first, NEVER, 0.0)
    size = math.prod(simulator.observation_shape)
    if simulator.observation_axes == 0:
        law = np.exp(logits) / np.exp(logits).sum()
        return ClonedPolicy(np.zeros(1, np.int64), np.stack([law] * 2))
    layers = (np.zeros((size, 1)), [0.0], np.zeros((1, 1)), [0.0], np.zeros((1, last + 1)), logits)
    return jm.policy.NetworkPolicy(
        layers, np.zeros(size), np.ones(size), greedy=False,
        observation_axes=simulator.observation_axes,
    )  # fmt: skip


def _further(sources: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """References to code, and policies by the names they were given by."""
    from journeyman.adapters.cost_sources import found_in_module, named_in, runs_code
    from journeyman.policy.acting import require_policy
    from journeyman.runs.run_directory import evidence_in

    references, policies = [], {}
    for source in sources:
        if Path(source).is_dir():
            policies[source] = jm.certificate.load_policy(evidence_in(Path(source)))
            continue
        if not runs_code(source):
            raise InvalidPolicy(
                f"{source!r} is no candidate", "Give the directory of a run, or module:function"
            )
        with named_in(source):
            found_in_module(source)
            reference = jm.certificate.Reference(source)
            policies[source] = require_policy(reference.made)
        references.append(reference)
    return references, policies


def _candidates(answer: Any, given: list[str]) -> dict[str, Any]:
    """What the mixture is made of, and how it came about."""
    seen = answer.candidates
    count = len(answer.mixture.candidates)
    names = [*given, *(f"{PLANNED} {number}" for number in range(2, 2 + count - len(given)))]
    listed = [
        {"candidate": name, "weight": float(weight), "expected": [float(one) for one in row]}
        for name, weight, row in zip(
            names[:count], answer.mixture.weights, seen.expectations, strict=True
        )
    ]
    trace = [
        {"round": int(row[0]), "candidates": int(row[1]), "value": row[2], "lower_bound": row[3]}
        for row in seen.trace.tolist()
    ]
    return {"candidates": listed, "rounds": trace}


def _text(result: dict[str, Any]) -> str:
    """The certificate, and the mixture that it is about."""
    weights = {one["candidate"]: f"{one['weight']:.4f}" for one in result["candidates"]}
    used = {name: weight for name, weight in weights.items() if float(weight) > 0}
    value = result["rounds"][-1]["value"]
    rest = len(weights) - len(used)
    words = f"Mixture after {len(result['rounds'])} rounds, at value {value:.6g} on its rollouts"
    more = f"\n({rest} more candidates have no weight)" if rest else ""
    return f"{certificate_text(result)}\n\n{words}:\n{aligned(used)}{more}"
