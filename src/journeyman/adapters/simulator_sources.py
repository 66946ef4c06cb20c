"""Simulators by name: an environment of Gymnasium with costs of what is seen in a step.

    time                       1 until an episode ends: how long it lasts
    observations:2.4,3,0.2,3   |number k of the next observation|, at most 1, in units of the k-th
                               of the numbers given; without any, of the ends of the environment's
                               space of observations
    module:function            called without arguments; returns `StepCosts`
    module:name                `StepCosts`, or with names and a range the function of steps that is
                               their first argument

Everything is made by references (`certificate.Reference`), so that a run with such a simulator can
be saved, and made again by whoever trusts its code.
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.adapters.cost_sources import found_in_module, named_in, runs_code
from journeyman.adapters.gymnasium_simulator import GymnasiumSimulator
from journeyman.adapters.source_options import whole_number
from journeyman.adapters.world_sources import make_environment
from journeyman.arrays import FloatArray
from journeyman.certificate import Reference
from journeyman.costs.functions import StepCosts
from journeyman.errors import InvalidCosts, InvalidWorld

HERE = __name__
TIME, OBSERVATIONS = "time", "observations"
LIMIT = "max_episode_steps"
FORMS = f"{TIME}, {OBSERVATIONS}:2.4,3,0.2,3 with a number for each of an observation, or "
NO_OPTIONS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Declared:
    """What is declared of costs that are functions of a step; None where nothing is."""

    names: Sequence[str] | None = None
    cost_range: tuple[float, float] | None = None
    after_end: float | None = None

    @property
    def given(self) -> dict[str, Any]:
        """By name, as JSON takes it."""
        parts = {"names": self.names, "cost_range": self.cost_range, "after_end": self.after_end}
        return {
            name: list(value) if isinstance(value, list | tuple) else value
            for name, value in parts.items()
            if value is not None
        }


def simulator_by_reference(
    environment: str,
    costs: str,
    discount: float,
    *,
    actions: Sequence[Sequence[float]] | None = None,
    options: Mapping[str, str] = NO_OPTIONS,
    declared: Declared | None = None,
) -> Reference:
    """A reference to a simulator, whose `made` it is.

    Args:
        environment: the id of a registered environment; `module:Id-v0` has that module imported.
        costs: one of the sources above.
        discount: gamma.
        actions: a list of some actions, for an environment with continuous ones.
        options: arguments of the environment, and `max_episode_steps`, its time limit.
        declared: names, range and what follows an end, where the source does not say it.
    """
    made = {"environment": environment} | ({"options": dict(options)} if options else {})
    step_costs = _costs(costs, made, declared or Declared())
    listed = {} if actions is None else {"actions": [list(one) for one in actions]}
    with named_in(costs):
        _require_step_costs(costs, step_costs.made)
    return Reference(
        f"{HERE}:simulator", **made, costs=step_costs, discount=float(discount), **listed
    )


def simulator(
    environment: str,
    costs: StepCosts,
    discount: float,
    actions: Sequence[Sequence[float]] | None = None,
    options: Mapping[str, str] = NO_OPTIONS,
) -> GymnasiumSimulator:
    """The simulator itself."""
    maker = environment_maker(environment, options)
    if actions is None:
        return GymnasiumSimulator(maker, costs, discount)
    made = maker()
    space = made.action_space
    made.close()
    shape = getattr(space, "shape", None)
    sizes = {len(one) for one in actions}
    if shape is None or sizes != {math.prod(shape)}:
        raise InvalidWorld(
            f"the listed actions have {', '.join(map(str, sorted(sizes)))} numbers, and {space} is "
            "what the environment takes",
            "List some of its actions, of as many numbers each",
        )
    listed = [np.reshape(one, shape) for one in actions]
    return GymnasiumSimulator(maker, costs, discount, actions=listed)


def environment_maker(environment: str, options: Mapping[str, str]) -> Any:
    """What makes the environment, with its options."""
    rest = {name: text for name, text in options.items() if name != LIMIT}
    settings: dict[str, Any] = {"disable_env_checker": True}
    if LIMIT in options:
        settings[LIMIT] = whole_number(LIMIT, options[LIMIT])
        if settings[LIMIT] < 1:
            raise InvalidWorld(f"{LIMIT} = {settings[LIMIT]}", "Give a whole number from 1")
    return partial(make_environment, environment, rest, **settings)


def _costs(source: str, environment: Mapping[str, Any], declared: Declared) -> Reference:
    name, _, scales = source.partition(":")
    if name == TIME and not scales:
        _refuse(source, declared, "names", "cost_range")
        return Reference(f"{HERE}:time_costs", **declared.given)
    if name == OBSERVATIONS:
        _refuse(source, declared, "cost_range")
        given = {"scales": _numbers(source, scales)} if scales else dict(environment)
        return Reference(f"{HERE}:observation_costs", **given, **declared.given)
    if not runs_code(source):
        raise InvalidCosts(
            f"{source!r} is not a source of costs of steps", f"Give {FORMS}module:function"
        )
    with named_in(source):
        found = found_in_module(source)
    if declared.names is not None or isinstance(found, StepCosts):
        if isinstance(found, StepCosts):
            _refuse(source, declared, "names", "cost_range", "after_end")
        return Reference(f"{HERE}:costs_in_module", source=source, **declared.given)
    if not callable(found):
        raise InvalidCosts(
            f"{source} is of type {type(found).__name__}",
            "Name jm.costs.StepCosts, a function that returns them, or a function of steps",
        )
    if _arguments_needed(found):
        raise InvalidCosts(
            f"{source} cannot be called without arguments",
            "If it is the function of steps itself, give --names and --cost-range; else have it "
            "return jm.costs.StepCosts without being given anything",
        )
    _refuse(
        source,
        declared,
        "cost_range",
        "after_end",
        why="are taken for jm.costs.StepCosts, "
        "which say it themselves; give --names as well if it is a function of steps",
    )
    return Reference(source)


def _require_step_costs(source: str, made: Any) -> None:
    if not isinstance(made, StepCosts):
        raise InvalidCosts(
            f"{source} returned a {type(made).__name__}",
            "Return jm.costs.StepCosts(function, names, lowest=..., highest=...); if it is the "
            "function of steps itself, give --names and --cost-range",
        )


def _arguments_needed(function: Any) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # a function without a signature, of compiled code
        return False
    return False


def _refuse(source: str, declared: Declared, *names: str, why: str = "say it themselves") -> None:
    """Refuse what is declared beside costs that it is not for."""
    for name in names:
        if getattr(declared, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InvalidCosts(f"{option} is given, and the costs {source} {why}", "Leave it out")


def _numbers(source: str, text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < one < math.inf for one in found):
        raise InvalidCosts(
            f"{source!r} does not give numbers above 0", f"Write {OBSERVATIONS}:2.4,3,0.2,3"
        )
    return found


def time_costs(after_end: float = 0.0) -> StepCosts:
    """1 for every step."""
    return StepCosts(_one, [TIME], lowest=0, highest=1, after_end=after_end)


def _one(o: Any, a: Any, after: Any, rewards: FloatArray, ended: Any) -> FloatArray:
    return np.ones((len(rewards), 1))


def observation_costs(
    environment: str | None = None,
    options: Mapping[str, str] = NO_OPTIONS,
    scales: Sequence[float] | None = None,
    names: Sequence[str] | None = None,
    after_end: float = 0.0,
) -> StepCosts:
    """The size of every number of the next observation, in units of a scale, at most 1."""
    if scales is None:
        assert environment is not None
        scales = _ends(environment, options)
    called = [f"|state_{k}|" for k in range(len(scales))] if names is None else names
    sizes = Sizes(np.asarray(scales, dtype=np.float64))
    return StepCosts(sizes, called, lowest=0, highest=1, after_end=after_end)


def _ends(environment: str, options: Mapping[str, str]) -> list[float]:
    """How large every number of an observation can be, by the environment's own words."""
    made = environment_maker(environment, options)()
    space = made.observation_space
    made.close()
    if not hasattr(space, "low"):
        raise InvalidCosts(
            f"observations are from {space}, and have no size",
            "Give costs of your own by module:function",
        )
    ends = np.maximum(np.abs(space.low), np.abs(space.high)).astype(np.float64).ravel()
    endless = np.flatnonzero(~((ends > 0) & (ends < ENDLESS)))
    if endless.size:
        raise InvalidCosts(
            f"number {endless[0]} of an observation of {environment} has no finite end",
            f"Say in which units each counts, for example {OBSERVATIONS}:2.4,3,0.2,3",
        )
    return [float(one) for one in ends]


ENDLESS = 1e30
"""Environments write the largest number of single precision where there is no end."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """The function of `observation_costs`."""

    scales: FloatArray

    def __call__(
        self, o: NDArray[Any], a: NDArray[Any], after: NDArray[Any], rewards: Any, ended: Any
    ) -> FloatArray:
        rows = np.abs(after.reshape(len(after), -1).astype(np.float64))
        if rows.shape[1] != self.scales.size:
            raise InvalidCosts(
                f"observations have {rows.shape[1]} numbers, and {self.scales.size} scales are "
                "given",
                "Give a scale for each number",
            )
        return np.minimum(rows / self.scales, 1.0)


def costs_in_module(
    source: str,
    names: Sequence[str] | None = None,
    cost_range: tuple[float, float] | None = None,
    after_end: float = 0.0,
) -> StepCosts:
    """`StepCosts` that a module holds, or made of a function of steps in it."""
    found = found_in_module(source)
    if isinstance(found, StepCosts):
        return found
    if cost_range is None:
        raise InvalidCosts(
            f"no range is declared for the costs by {source}",
            "Give --cost-range LOW HIGH, between which every cost lies in every step; where they "
            "differ have a function return jm.costs.StepCosts",
        )
    low, high = cost_range
    return StepCosts(found, names or (), lowest=low, highest=high, after_end=after_end)
