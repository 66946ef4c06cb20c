"""`journeyman demo`: the main job on an embedded example, as a page of text; and `journeyman
doctor`: what is installed, which engines run, and whether it all works here.
"""

from __future__ import annotations

import platform
from enum import Enum
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from time import perf_counter
from typing import Annotated, Any

import typer

import journeyman as jm
from journeyman.cli.exit_codes import LIMIT
from journeyman.cli.options import AsJson
from journeyman.cli.output import WIDTH, aligned, show

WIDEST_MAP = 40
"""Cells along each side up to which the policy is drawn."""
GRID_SIZE, GRID_TRAJECTORIES, GRID_HORIZON = 16, 2000, 150


class Case(Enum):
    """Worlds with an expert that the demo can show."""

    GRID = "grid"
    ICU_SEPSIS = "icu-sepsis"


def demo(
    case: Annotated[
        Case, typer.Option(help="grid, or icu-sepsis: clinicians, and not for clinical use.")
    ] = Case.GRID,
    size: Annotated[
        int | None, typer.Option(help="Cells along each side of the grid; 16.", min=4)
    ] = None,
    trajectories: Annotated[
        int | None,
        typer.Option(help="Demonstrations: 2000 in the grid, 50000 in icu-sepsis.", min=1),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Steps of each in the grid; 150.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the expert and of the recording.", min=0)] = 0,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Record an expert, learn and certify, on an embedded example."""

    if case is Case.ICU_SEPSIS:
        from journeyman.cli.sepsis_case import run_case

        _refuse_options_of_the_grid({"--size": size, "--horizon": horizon})
        result, text = run_case(trajectories, seed, report)
    else:
        sizes = (size or GRID_SIZE, trajectories or GRID_TRAJECTORIES, horizon or GRID_HORIZON)
        result, text = run_demo(*sizes, seed, report)
    show(result, text, as_json=as_json)


def _refuse_options_of_the_grid(given: dict[str, int | None]) -> None:
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(
                "it is an option of the grid; patients are as they are, and stays have their own "
                "ends. Leave it out, or choose --case grid",
                param_hint=option,
            )


def run_demo(
    size: int, trajectories: int, horizon: int, seed: int, report: Path | None = None
) -> tuple[dict[str, Any], str]:
    """What `journeyman demo` prints, for machines and for people."""
    from journeyman.runs.learning import result_of

    world, basis, expert = jm.gallery.grid(size, seed=seed)
    demos = jm.record(world, expert, trajectories=trajectories, horizon=horizon, seed=seed)
    apprentice = jm.learn(world, basis, demos)
    if report is not None:
        apprentice.report(report)
    sizes = {"size": size, "trajectories": trajectories, "horizon": horizon}
    result = {"case": Case.GRID.value, **sizes, **result_of(apprentice)}
    result |= {"seed": seed, "report": None if report is None else str(report)}
    return result, _text(apprentice, expert, demos, size, report)


def _text(
    apprentice: jm.Apprentice, expert: jm.Policy, demos: jm.Demonstrations, size: int,
    report: Path | None,
) -> str:  # fmt: skip
    problem, answer, world = apprentice.problem, apprentice.answer, apprentice.problem.world
    from journeyman.report.text import result_in_short

    words = [line for one in result_in_short(apprentice.certificate) for line in wrap(one, WIDTH)]
    return "\n".join(
        [
            f"A {size} x {size} grid with slippery floor: {world.num_states} states, "
            f"{world.num_pairs} state-action pairs, discount {world.discount}.",
            *wrap(
                f"An expert follows a cost that nobody else knows: {len(demos):,} demonstrations, "
                f"{demos.num_steps:,} steps. Asked: a policy that costs about as much as the "
                f"expert, whichever of the {problem.num_costs} regions of the grid are expensive.",
                WIDTH,
            ),
            "",
            "Result",
            "",
            *words,
            "",
            *_gaps(problem, answer, expert, demos),
            *(_map(world, answer.policy) if size <= WIDEST_MAP else ()),
            "",
            "Time that is spent in each region, discounted (the costs that may matter)",
            "",
            jm.report.comparison(problem, answer),
            "",
            "The certificate",
            "",
            apprentice.certificate.table(formulas=False),
            "",
            "What would help",
            "",
            apprentice.certificate.advice(),
            "",
            f"Solver status: {answer.status.name} ({answer.engine}, build "
            f"{answer.build_seconds:.3f} s, solve {answer.solve_seconds:.3f} s)",
            *(
                [f"The report, with pictures and formulas, to be opened in a browser: {report}"]
                if report
                else []
            ),
        ]
    )


def _gaps(
    problem: jm.Apprenticeship, answer: jm.Answer, expert: jm.Policy, demos: jm.Demonstrations
) -> list[str]:
    """Gaps to the true expert, who is known in an example, and why cloning may have a smaller
    one."""
    world, basis = problem.world, problem.basis
    truth = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    exact = jm.Apprenticeship(world, basis, truth)
    noise = exact.cost_class.gap(problem.target - exact.target)
    cloned, uniform = jm.clone(demos, world), jm.Policy.uniform(world)
    own, copied = exact.gap(answer.occupancy), exact.gap(cloned)
    why = (
        "Cloning copies the expert state by state. It comes closer here because this expert is one "
        "fixed policy and was seen in every state that matters. The apprentice matches the "
        f"recorded totals, their sampling error of {noise:.4f} included, and needs no fixed expert."
    )
    return [
        "In truth, which is known in an example only, the policy costs more than the expert by",
        f"  {own:>8.4f}   the apprentice",
        f"  {copied:>8.4f}   behaviour cloning",
        f"  {exact.gap(uniform):>8.4f}   uniform actions",
        *(wrap(why, WIDTH) if copied < own else ()),
    ]


def _map(world: jm.World, policy: jm.Policy) -> list[str]:
    heading = "The apprentice's policy (likeliest direction; · where none stands out)"
    return ["", heading, "", jm.report.policy_map(world, policy)]


PACKAGES = ("numpy", "scipy", "numba", "highspy", "highspy-extras", "clarabel", "typer", "rich")
OPTIONAL = ("gymnasium", "seals", "icu-sepsis", "minari", "pyarrow", "ray", "hypothesis")


def doctor(as_json: AsJson = False) -> None:
    """Show versions and engines, and try everything out.

    A few seconds of recording, learning, saving and auditing.
    """

    result: dict[str, Any] = {
        "journeyman": jm.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "extras": {name: _version(name) for name in OPTIONAL},
        "engines": _engines(),
        "self_test": _self_test(),
    }
    rows: dict[str, object] = {}
    for name, value in result.items():
        rows |= (
            {f"{name}: {key}": "missing" if one is None else one for key, one in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
    sound = result["self_test"]["outcome"] == "passed" and "works" in result["engines"].values()
    rows["result"] = "all is well" if sound else "something is wrong: see above"
    show(result | {"sound": sound}, aligned(rows), as_json=as_json)
    if not sound:
        raise typer.Exit(LIMIT)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _engines() -> dict[str, str]:
    """Every engine of the linear program, tried on a problem of a few states."""
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    problem = jm.Apprenticeship(
        world, basis, jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    )
    return {engine.value: _tried(problem, engine) for engine in jm.solvers.Engine}


def _tried(problem: jm.Apprenticeship, engine: jm.solvers.Engine) -> str:
    try:
        answer = jm.solve(problem, jm.LinearProgram(engine=engine))
    except Exception as fault:  # whatever a broken installation raises is the finding
        return f"fails: {fault}"
    return "works" if answer.status is jm.Status.OPTIMAL else f"fails: {answer.status.name}"


def _self_test() -> dict[str, Any]:
    """The whole way, on a small grid: record, learn, save, audit."""
    started = perf_counter()
    try:
        world, basis, expert = jm.gallery.grid(4, macro_cells=2)
        demos = jm.record(world, expert, trajectories=50, horizon=40, seed=0)
        with TemporaryDirectory() as place:
            jm.learn(world, basis, demos).save(Path(place) / "run")
            outcome = "passed" if jm.audit(Path(place) / "run").passed else "the audit failed"
    except Exception as fault:  # whatever a broken installation raises is the finding
        outcome = f"failed: {type(fault).__name__}: {fault}"
    return {"outcome": outcome, "seconds": round(perf_counter() - started, 2)}
