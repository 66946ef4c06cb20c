"""`journeyman certify`: a certificate for any policy, wherever it comes from."""

from pathlib import Path
from typing import Annotated

import typer

import journeyman as jm
from journeyman.cli.options import (
    AsJson,
    Budgets,
    CostClass,
    Costs,
    Demonstrations,
    Gap,
    Probability,
    Rewards,
    TerminalState,
    TruncatedAt,
    World,
    WorldOption,
    parsed_options,
)


def certify(
    policy: Annotated[Path, typer.Argument(help="A policy file, or a run directory.")],
    world: World,
    costs: Costs,
    demonstrations: Demonstrations,
    truncated_at: TruncatedAt = None,
    terminal_state: TerminalState = None,
    option: WorldOption = None,
    cost_class: CostClass = "infinity-ball",
    rewards: Rewards = None,
    budget: Budgets = None,
    failure_probability: Probability = 0.05,
    gap: Gap = None,
    save: Annotated[Path | None, typer.Option(help="A new directory for the evidence.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say how far a policy can fall short of the expert, and why.

    Exit 4 when nothing is certified, or a budget is not shown to be kept.
    """
    from journeyman.cli.output import certificate_text, require_level, show
    from journeyman.runs.description import BudgetDescription, RunDescription, parsed_budget
    from journeyman.runs.directory import evidence_in
    from journeyman.runs.inputs import Inputs
    from journeyman.runs.learning import certificate_result

    description = RunDescription(
        world=world,
        costs=costs,
        demonstrations=demonstrations,
        truncated_at=truncated_at,
        terminal_state=terminal_state,
        cost_class=cost_class,
        rewards=rewards,
        failure_probability=failure_probability,
        world_options=parsed_options(option),
        budgets=tuple(BudgetDescription(**parsed_budget(one)) for one in budget or ()),
    )
    problem = Inputs.of(description).problem()
    given = jm.Policy.load(evidence_in(policy) / "policy.npz" if policy.is_dir() else policy)
    certificate = jm.certify(problem, given, failure_probability)
    if save is not None:
        certificate.save(save)
    result = certificate_result(certificate)
    show(result, certificate_text(result), as_json=as_json)
    require_level(result, gap)
