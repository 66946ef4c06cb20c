"""What `journeyman compare` compares on: files as of a run, or an example with its expert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import journeyman as jm
from journeyman.runs.description import InvalidSettings, wrong_setting

EXAMPLES = {"grid": "size", "garnet": "num_states", "driving": ""}
"""Examples with an expert, and what the number behind the colon is."""


@dataclass(frozen=True)
class Recording:
    """How much of an example's expert is recorded, anew for every seed."""

    trajectories: int
    horizon: int


@dataclass(frozen=True, eq=False)
class Compared:
    """A problem, or a function from a seed to one, and the true expert if there is one."""

    problem: Any
    expert: jm.Policy | None = None
    truth: jm.ExpertExpectation | None = None


def example_of(
    source: str, options: Mapping[str, str], cost_class: str | None, recording: Recording
) -> Compared:
    """An example by name and size: every seed has demonstrations of its own.

    `driving` has published expectations instead of an expert who could be recorded.
    """
    from journeyman.adapters.world_files.source_options import arguments_for

    name, _, size = source.partition(":")
    if name not in EXAMPLES or (size and not EXAMPLES[name]):
        known = ", ".join(f"{one}:N" if word else one for one, word in EXAMPLES.items())
        raise InvalidSettings(f"there is no example {source!r}", f"Give one of {known}")
    function = getattr(jm.gallery, name)
    given = {**options, **({EXAMPLES[name]: size} if size else {})}
    world, basis, expert = function(**arguments_for(source, function, given))
    chosen = cost_class_of(cost_class)
    if isinstance(expert, jm.ExpertExpectation):
        return Compared(jm.Apprenticeship(world, basis, expert, chosen), truth=expert)

    def problem(seed: int) -> jm.Apprenticeship:
        demos = jm.record(
            world, expert, trajectories=recording.trajectories, horizon=recording.horizon, seed=seed
        )
        return jm.Apprenticeship(world, basis, demos, chosen)

    return Compared(problem, expert=expert)


def cost_class_of(name: str | None) -> jm.CostClass | None:
    """The class of a name; None leaves it to the problem."""
    from journeyman.runs.inputs import CLASSES

    if name is None:
        return None
    if name not in CLASSES:
        raise wrong_setting("cost_class", name, f"Give one of {', '.join(CLASSES)}")
    return CLASSES[name]()


def files_of(given: Mapping[str, Any], budgets: list[str] | None, expert: Path | None) -> Compared:
    """The problem that a run with these files would have."""
    from journeyman.runs.description import RunDescription, overlaid, parsed_budget
    from journeyman.runs.inputs import Inputs, policy_from

    table: dict[str, Any] = {"budgets": [parsed_budget(one) for one in budgets or ()]}
    problem = Inputs.of(RunDescription.of(overlaid(table, given))).problem()
    return Compared(problem, expert=None if expert is None else policy_from(expert, problem.world))
