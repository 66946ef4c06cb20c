"""Commands on worlds: `journeyman world show`, `world check` (is it sound, and does it predict what
an environment does?), `world import` (any source, written as one native file), and `journeyman
record` (demonstrations of a policy, simulated).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import journeyman as jm
from journeyman.cli.exit_codes import BAD_DATA
from journeyman.cli.options import AsJson, Seed, WorldArgument, WorldOption, parsed_options
from journeyman.cli.output import aligned, show
from journeyman.errors import InvalidPolicy

if TYPE_CHECKING:
    from journeyman.world import World

STEPS = 150
"""Of an episode, where nobody says how many."""


def show_world(
    source: WorldArgument,
    option: WorldOption = None,
    as_json: AsJson = False,
) -> None:
    """Show how large a world is and what is known about it."""
    from journeyman.runs.run_inputs import world_from

    world = world_from(source, parsed_options(option))
    show(facts_of(world), text_of(world), as_json=as_json)


def facts_of(world: jm.World) -> dict[str, Any]:
    """A world in numbers."""
    counts, shared = world.transition_counts, world.shared
    if shared is not None:
        counts = shared.group_tallies.sum(axis=1)
    return {
        "states": world.num_states,
        "pairs": world.num_pairs,
        "most_actions": int(world.pairs.max_actions),
        "action_numbers": _action_numbers(world),
        "transitions": int(world.transition.nnz),
        "discount": world.discount,
        "steps_at_most": world.steps_at_most,
        "absorbing_states": int(world.absorbing.sum()),
        "sink": world.sink,
        "starts": int((world.initial > 0).sum()),
        "estimated": world.is_estimated,
        "observed_transitions": None if counts is None else int(counts.sum()),
        "fewest_observations": None if counts is None else int(counts.min()),
        "shared_laws": None if shared is None else shared.num_groups,
        "normalisation_error": world.normalisation_error,
        "state_names": list(world.state_names or ())[:5],
        "action_names": list(world.action_names or ()),
    }


def _action_numbers(world: jm.World) -> list[int]:
    """The numbers of all actions, where states do not have 0, 1, 2, ... of them."""
    if world.pairs.numbers is None:
        return []
    return sorted({int(number) for number in world.pairs.numbers})


def text_of(world: jm.World) -> str:
    """The same for people; what does not apply is left out."""

    facts = facts_of(world)
    rows = {name.replace("_", " "): value for name, value in facts.items()}
    rows["effective horizon"] = f"{world.effective_horizon:g} steps"
    return aligned({name: value for name, value in rows.items() if value not in (None, [])})


def check_world(
    source: WorldArgument,
    env: Annotated[
        str | None, typer.Option(help="A Gymnasium environment to simulate and compare with.")
    ] = None,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(help="Argument of the environment, for example map_name=8x8."),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps to simulate.", min=1)] = 20_000,
    option: WorldOption = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Check a world; with --env, also against a simulator.

    Reading refuses laws that do not sum to one, wrong ids, discount 1 without a goal and the like.
    """
    from journeyman.adapters.world_check import check_transitions
    from journeyman.runs.run_inputs import world_from

    world = world_from(source, parsed_options(option))
    facts: dict[str, Any] = {"sound": True, **facts_of(world)}
    if env is None:
        show(facts, f"The world is sound.\n{text_of(world)}", as_json=as_json)
        return
    found = check_transitions(
        world, _environment(env, parsed_options(env_arg)), steps=steps, seed=seed
    )
    show(
        facts | {"sound": not found.refuted, "environment": env, **vars(found)},
        str(found),
        as_json=as_json,
    )
    if found.refuted:
        raise typer.Exit(BAD_DATA)


def _environment(name: str, options: dict[str, str]) -> Any:
    from journeyman.adapters.world_sources import GYMNASIUM, make_environment

    return make_environment(name.removeprefix(GYMNASIUM), options)


def import_world(
    source: WorldArgument,
    target: Annotated[Path, typer.Argument(help="The NPZ file to write.")],
    option: WorldOption = None,
    discount: Annotated[
        float | None, typer.Option(help="By which later costs count less; between 0 and 1.")
    ] = None,
    initial: Annotated[
        str | None,
        typer.Option(
            help="Where episodes start: a state, uniform, or with a table of laws a file "
            "state,probability."
        ),
    ] = None,
    absorbing: Annotated[
        str | None,
        typer.Option(help="States of a table that are never left, as 5,7, or unleft for all such."),
    ] = None,
    drop_unseen: Annotated[
        bool,
        typer.Option("--drop-unseen", help="Leave out state numbers that do not occur in a log."),
    ] = False,
    truncated_at: Annotated[
        int | None,
        typer.Option(
            min=1, help="Steps of a log's time limit, if ends there are marked terminated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read a world from any source, and write it as one file."""
    from journeyman.runs.run_inputs import world_from

    named = {
        "discount": discount, "initial": initial, "absorbing": absorbing,
        "drop_unseen": "yes" if drop_unseen else None, "truncated_at": truncated_at,
    }  # fmt: skip
    options = parsed_options(option)
    options |= {name: str(value) for name, value in named.items() if value is not None}
    if target.suffix != ".npz":
        raise typer.BadParameter(f"{target} does not end in .npz", param_hint="FILE")
    world = world_from(source, options)
    world.save(target)
    show(
        {"file": str(target), **facts_of(world)},
        f"{target}\n{text_of(world)}{_note(world)}",
        as_json=as_json,
    )


def _note(world: World) -> str:
    from journeyman.adapters.npz_worlds import was_single

    if not was_single(world):
        return ""
    return (
        f"\nNote: the laws were kept in single precision and added up to 1 within "
        f"{world.normalisation_error:.0e} only; they were divided by their sums."
    )


def record(
    world: WorldArgument,
    target: Annotated[Path, typer.Argument(help="The file to write: .npz, .csv, .parquet.")],
    expert: Annotated[
        str,
        typer.Option(
            help="A policy file (NPZ, or CSV of policy export), a run directory, uniform, or own "
            "(of a gallery world)."
        ),
    ] = "own",
    trajectories: Annotated[int, typer.Option(help="Episodes to record.", min=1)] = 1000,
    horizon: Annotated[
        int | None,
        typer.Option(help="Steps of each episode; 150, or those of a policy with steps.", min=1),
    ] = None,
    option: WorldOption = None,
    named_format: Annotated[
        str | None,
        typer.Option("--format", help="npz, csv or parquet, if the file name does not show it."),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a policy and write what it did, to try things out."""
    from journeyman.adapters.demonstration_formats import write_demonstrations
    from journeyman.runs.run_inputs import world_from

    options = parsed_options(option)
    there = world_from(world, options)
    policy = _policy(expert, world, options, there)
    steps = horizon or policy.horizon or STEPS
    demos = jm.record(there, policy, trajectories=trajectories, horizon=steps, seed=seed)
    write_demonstrations(demos, target, format=named_format)
    facts = {"file": str(target), "episodes": len(demos), "steps": demos.num_steps, "seed": seed}
    show(facts, f"{target}: {len(demos)} episodes, {demos.num_steps} steps", as_json=as_json)


def _policy(expert: str, source: str, options: dict[str, str], world: jm.World) -> jm.Policy:
    if expert == "uniform":
        return jm.Policy.uniform(world)
    if expert == "own":
        return _own_expert(source, options, world)
    from journeyman.runs.run_inputs import policy_from

    return policy_from(Path(expert), world)


def _own_expert(source: str, options: dict[str, str], world: jm.World) -> jm.Policy:
    """The expert that an example of the gallery comes with."""
    from journeyman.adapters.world_sources import GALLERY, ICU_SEPSIS, gallery_example

    if source.startswith(GALLERY) or source == ICU_SEPSIS:
        expert = getattr(gallery_example(source, options), "expert", None)
        if isinstance(expert, jm.Policy):
            return expert
    raise InvalidPolicy(
        f"{source} comes without an expert",
        "Give --expert with a policy file, a run directory, or uniform",
    )
