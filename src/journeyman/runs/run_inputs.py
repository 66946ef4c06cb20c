"""The inputs of a run, read from wherever its description says, and what they are known by."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.costs import CostBasis, CostClass
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidCosts, InvalidInput, InvalidPolicy
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship, Budget
from journeyman.problem.expert_premises import ExpertPremise
from journeyman.runs.description import (
    BudgetDescription,
    RunDescription,
    cost_class_of,
    premises_in,
)
from journeyman.storage import digest
from journeyman.tables import is_csv
from journeyman.world import World

POLICY = "policy.npz"
REWARDING = ("reward", "return", "utility")
"""What a feature is not called when lower is better."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """A world, costs, demonstrations and budgets that fit together."""

    world: World
    basis: CostBasis
    demonstrations: Demonstrations
    cost_class: CostClass
    budgets: tuple[Budget, ...]
    expert_is: tuple[ExpertPremise, ...] = ()

    @classmethod
    def of(cls, description: RunDescription) -> "Inputs":
        """Read everything; what does not fit is refused with its source."""
        description.require_sources()
        world = world_from(description.world, description.world_options)
        same = description.costs == description.world
        options = description.cost_options or (description.world_options if same else {})
        basis = costs_from(description.costs, world, options, rewards=description.rewards)
        demos = demonstrations_from(description, world)
        budgets = tuple(_budget(one, basis, world) for one in description.budgets)
        return cls(
            reduced_by(description, world), basis, demos,
            cost_class_of(description.cost_class), budgets,
            tuple(premises_in(description.expert_is)),
        )  # fmt: skip

    def problem(self) -> Apprenticeship:
        """The apprenticeship that they state."""
        return Apprenticeship(
            self.world, self.basis, self.demonstrations, self.cost_class, self.budgets,
            self.expert_is,
        )  # fmt: skip

    def digests(self) -> dict[str, str]:
        """A word for each part: the same content, the same word."""
        world, basis, demos = self.world, self.basis, self.demonstrations
        return {
            "world": world_digest(world),
            "costs": digest(basis.matrix, list(basis.names), basis.rewards),
            "demonstrations": digest(demos.states, demos.actions, demos.offsets, demos.terminated),
            "cost class": digest(json.dumps(self.cost_class.describe())),
            "budgets": digest([(one.cost, one.at_most, one.name) for one in self.budgets]),
            "premises": digest([repr(one) for one in self.expert_is]),
        }


def reduced_by(description: RunDescription, world: World) -> World:
    """The world of the problem: with a horizon or average costs where the description has them.
    Costs, budgets and demonstrations are read, and given to the problem, as those of the world
    without."""
    if description.average_cost:
        return world.with_average_cost()
    if description.horizon is None:
        return world
    return world.with_horizon(description.horizon, description.step_discount)


def world_digest(world: World) -> str:
    """A word for the world's content."""
    counts = () if world.transition_counts is None else (world.transition_counts,)
    numbers = () if world.pairs.numbers is None else (world.pairs.numbers,)
    parts = (world.transition, world.initial, world.discount, world.pairs.offsets, counts)
    shared = world.shared
    laws = () if shared is None else (shared.groups, shared.targets, shared.tallies)
    return digest(*parts, *numbers, *laws)


def code_named_in(description: RunDescription) -> str | None:
    """The first source whose reading imports a module by name; a file may not ask for that."""
    from journeyman.adapters.cost_sources import runs_code

    for source in (description.costs, *(one.cost for one in description.budgets)):
        if runs_code(source):
            return source
    is_environment = description.world.startswith("gym:")
    return description.world if is_environment and description.world.count(":") > 1 else None


def world_from(source: str, options: Mapping[str, str]) -> World:
    """The world that a source names, with settings of the source."""
    from journeyman.adapters.world_sources import read_world

    return read_world(source, options=options)


def costs_from(
    source: str, world: World, options: Mapping[str, str], *, rewards: bool | None = None
) -> CostBasis:
    """The cost features that a source names; `rewards` says that higher is better."""
    from journeyman.adapters.cost_sources import read_costs

    basis = read_costs(source, world, options=options)
    if not np.any(basis.norms):
        raise InvalidCosts(
            f"{source}: every cost is 0, under which all policies are alike",
            "Give costs that differ from state to state",
        )
    if rewards is None and not basis.rewards:
        _refuse_rewards(basis, source)
    if not rewards or basis.rewards:
        return basis
    return CostBasis.from_rewards(basis.matrix, basis.names).noted(basis.note)


def demonstrations_from(description: RunDescription, world: World) -> Demonstrations:
    """The demonstrations in a file or directory, checked step by step against the world."""
    from journeyman.adapters.demonstration_formats import read_demonstrations
    from journeyman.adapters.source_options import memory_limit

    more = {}
    if "memory_gb" in description.world_options:
        more["memory_limit"] = memory_limit(description.world_options)
    return read_demonstrations(
        Path(description.demonstrations),
        **more,
        format=description.demonstrations_format,
        world=world,
        truncated_at=description.truncated_at,
        terminal_state=description.terminal_state,
    )


def policy_from(place: Path, world: World) -> Policy:
    """The policy in a file (NPZ, or CSV with names) or a run directory, if it is one of the world.

    One of a world without a horizon acts in the same way at every step of a world with it. One that
    depends on time is taken in a world without a horizon too: for episodes of so many steps.
    """
    from journeyman.runs.run_directory import evidence_in

    path = evidence_in(place) / POLICY if place.is_dir() else place
    if place.is_dir() and not path.exists():
        raise InvalidPolicy(
            f"{place} holds no policy in a world of arrays: there are records only, or code",
            "Give a run of such a world, by learn, or a policy file",
        )
    policy = Policy.load(path, world if is_csv(path) else None)
    steps = policy.horizon
    if steps is not None and world.layers is None:
        if np.array_equal(policy.at_step(0).pairs.offsets, world.pairs.offsets):
            return policy
    elif np.array_equal(policy.pairs.offsets, world.pairs.offsets):
        return policy
    elif world.reduction is not None and policy.num_states == world.reduction.num_states:
        return policy.fitted(world)
    count = policy.num_states if steps is None else (policy.num_states - 1) // steps
    timed = "" if steps is None else f" at each of {steps} steps"
    raise InvalidPolicy(
        f"{place} holds a policy for {count} states{timed} and {policy.per_pair.size} "
        f"state-action pairs, the world has {world.num_states} and {world.num_pairs} (or other "
        "action sets)",
        "Give a policy that was made for this world",
    )


def _refuse_rewards(basis: CostBasis, source: str) -> None:
    for name in basis.names:
        if any(word in name.lower() for word in REWARDING):
            raise InvalidCosts(
                f"{source}: the feature {name!r} sounds as if more of it were better, and costs "
                "are better when they are lower",
                "Say --rewards if the features are rewards, or --no-rewards if they are costs",
            )


def _budget(asked: BudgetDescription, basis: CostBasis, world: World) -> Budget:
    """A budget on one of the costs, or on the single cost of another source."""
    name = asked.name or (asked.cost if asked.cost in basis.names else Path(asked.cost).stem)
    if asked.cost not in basis.names:
        basis = _own_source(asked.cost, basis, world)
    column = basis.names.index(asked.cost) if asked.cost in basis.names else 0
    sign = -1.0 if basis.rewards else 1.0
    cost: Any = basis.on(world)[:, [column]]
    dense = cost.toarray() if hasattr(cost, "toarray") else cost
    return Budget(cost=sign * dense[:, 0], at_most=asked.at_most, name=name)


def _own_source(source: str, basis: CostBasis, world: World) -> CostBasis:
    try:
        own = costs_from(source, world, {}, rewards=False)
    except InvalidInput as fault:
        raise InvalidCosts(
            f"the budget's cost {source!r} is none of {', '.join(basis.names)}, and no source of "
            f"costs either ({fault.what})",
            "Name one of the costs, or a file with a single column",
        ) from fault
    if own.num_costs != 1:
        raise InvalidCosts(
            f"{source} has {own.num_costs} costs, and a budget limits one",
            "Give a file with a single column",
        )
    return own
