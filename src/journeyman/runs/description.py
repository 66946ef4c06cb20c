"""What a run is asked to do, as a TOML file says it.

    world = "world.npz"            every source that `journeyman world import` takes
    costs = "costs.csv"
    demonstrations = "demos.csv"
    truncated_at = 200             if a time limit of 200 steps ended episodes, however marked
    terminal_state = 16            where terminated episodes end, if their records do not say it
    horizon = 50                   if every episode ends after 50 steps, whatever happens; a step
    step_discount = 1.0            at time t then counts step_discount^t, by default the world's
    average_cost = true            if averages a step in the long run count, not discounted totals
    cost_class = "infinity-ball"   or another name, or a .json file with a name and numbers
    expert_is = "rational:0.01"    what is declared about the expert, separated by commas
    failure_probability = 0.05
    seed = 0

    [world_options]                settings of the source, such as a discount; [cost_options]
    discount = 0.95                alike, by default those of the world if the source is the same

    [solver]
    name = "auto"                  or "linear-program", "banded-program", "column-generation",
    time_limit = 60.0              "smoothed-program", "reduced-program", "primal-dual", "sgd-al",
                                   or a classic method (`SOLVERS`)

    [[budgets]]                    a limit on the expected discounted total of a known cost
    cost = "wear"                  one of the costs, or a source with a single one
    at_most = 8.0

A file is named relative to the TOML file, on the command line relative to where one stands.
"""

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from journeyman.errors import InvalidCosts, InvalidFile, InvalidProblem

if TYPE_CHECKING:
    from journeyman.costs import CostClass
    from journeyman.problem.expert_premises import ExpertPremise


class InvalidSettings(InvalidProblem):
    """A run is described in words that are not understood."""


DESCRIPTION = "the description"
"""What settings belong to that were put together from several places."""
PROVENANCE = "made_from"
"""The table of a stored description that says what the inputs were; it asks for nothing."""
SOURCES = ("world", "costs", "demonstrations")
LARGEST = sys.float_info.max
"""Numbers beyond it, endless ones included, are none."""


@dataclass(frozen=True)
class SolverDescription:
    """Which solver, and its settings; the last four are for solvers over features."""

    name: str = "auto"
    time_limit: float | None = None
    """Seconds for reading, target, solve and certificate."""
    memory_gb: float | None = None
    """Gigabytes that an exact program may hold beside the problem."""
    tolerance: float | None = None
    cells: int = 64
    steps: int = 2_000_000
    accuracy: float | None = None
    batch: int = 32


@dataclass(frozen=True)
class BudgetDescription:
    """A limit on a cost: the name of one of the costs, or a source with a single one."""

    cost: str = ""
    at_most: float = 0.0
    name: str | None = None


@dataclass(frozen=True)
class RunDescription:
    """Everything that decides the outcome of a run, and the level that is asked of it."""

    world: str = ""
    costs: str = ""
    demonstrations: str = ""
    demonstrations_format: str | None = None
    truncated_at: int | None = None
    """The time limit that ended episodes of this length, however they are marked."""
    terminal_state: int | str | None = None
    """Where terminated episodes end, instead of their last state: its number or its name."""
    horizon: int | None = None
    """Steps of an episode, in a world where all end after as many."""
    step_discount: float | None = None
    """Of these steps; by default that of the world."""
    average_cost: bool = False
    """Whether averages a step in the long run count."""
    cost_class: str = "infinity-ball"
    expert_is: str = ""
    """Premises about the expert, such as "rational:0.01, deterministic"."""
    rewards: bool | None = None
    """Whether the features are rewards; by default costs, unless a name says otherwise."""
    failure_probability: float = 0.05
    gap: float | None = None
    """What the certificate is asked to show; nothing by default."""
    regret: float | None = None
    """What it is asked to show about the regret under the expert's own cost."""
    keep_budgets: bool = True
    seed: int = 0
    world_options: Mapping[str, str] = field(default_factory=dict)
    cost_options: Mapping[str, str] = field(default_factory=dict)
    solver: SolverDescription = field(default_factory=SolverDescription)
    budgets: tuple[BudgetDescription, ...] = ()

    def __post_init__(self) -> None:
        _require_cost_class(self.cost_class)
        premises_in(self.expert_is)
        _require_choice("solver.name", self.solver.name, SOLVERS)
        if isinstance(self.terminal_state, str) and WHOLE.fullmatch(self.terminal_state):
            object.__setattr__(self, "terminal_state", int(self.terminal_state))
        for name, least in (
            ("seed", 0),
            ("truncated_at", 1),
            ("terminal_state", 0),
            ("horizon", 1),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str) and value < least:
                raise wrong_setting(name, value, f"Give a whole number from {least}")
        if self.step_discount is not None and self.horizon is None:
            raise wrong_setting(
                "step_discount", self.step_discount, "Give a horizon, the steps that it counts"
            )
        if self.average_cost and self.horizon is not None:
            raise wrong_setting(
                "average_cost",
                self.average_cost,
                "It contradicts the horizon: leave one of them out",
            )
        if self.step_discount is not None and not 0 < self.step_discount <= 1:
            raise wrong_setting(
                "step_discount", self.step_discount, "Give a number above 0 and up to 1"
            )
        if not 0 < self.failure_probability < 1:
            raise wrong_setting(
                "failure_probability",
                self.failure_probability,
                "Give a number between 0 and 1, for example 0.05",
            )

    @classmethod
    def of(cls, table: Mapping[str, Any], where: str = DESCRIPTION) -> Self:
        """From the tables of a TOML file."""
        given = {name: value for name, value in table.items() if name != PROVENANCE}
        solver, budgets = given.pop("solver", {}), given.pop("budgets", [])
        options, more = given.pop("world_options", {}), given.pop("cost_options", {})
        if not isinstance(budgets, list):
            raise InvalidSettings(f"{where}: budgets is no list", "Write [[budgets]] as a heading")
        parts: dict[str, Any] = {
            **_checked(cls, given, where),
            "world_options": _options(options, f"{where}, world_options"),
            "cost_options": _options(more, f"{where}, cost_options"),
            "solver": SolverDescription(**_checked(SolverDescription, solver, f"{where}, solver")),
            "budgets": tuple(_budget(one, f"{where}, budgets") for one in budgets),
        }
        try:
            return cls(**parts)
        except InvalidSettings as fault:
            if where == DESCRIPTION:
                raise
            raise InvalidSettings(f"{where}: {fault.what}", fault.remedy) from None

    def table(self) -> dict[str, Any]:
        """The tables that `of` reads, all defaults written out; what is not set is left out."""
        plain = {name: value for name, value in vars(self).items() if name not in _TABLES}
        tables: dict[str, Any] = {name: dict(getattr(self, name)) for name in OPTIONS}
        tables["budgets"] = [_set(vars(one)) for one in self.budgets]
        filled = {name: table for name, table in tables.items() if table}
        return _set(plain) | {"solver": _set(vars(self.solver))} | filled

    def with_paths_from(self, folder: Path) -> Self:
        """The same with every source that is a file in `folder` named by its absolute path."""

        def placed(source: str) -> str:
            path = folder / source
            return str(path.resolve()) if path.is_file() else source

        records = folder / self.demonstrations

        return replace(
            self,
            world=placed(self.world),
            costs=placed(self.costs),
            cost_class=placed(self.cost_class),
            demonstrations=str(records.resolve())
            if self.demonstrations and records.exists()
            else self.demonstrations,
            budgets=tuple(replace(one, cost=placed(one.cost)) for one in self.budgets),
        )

    def require_sources(self) -> None:
        """Refuse a description that lacks one of its three sources."""
        for name in SOURCES:
            if not getattr(self, name):
                alone = "; journeyman clone does without one" if name == SOURCES[0] else ""
                raise InvalidSettings(
                    f"no {name} given",
                    f"Give --{name} FILE, or a line {name} = ... in the TOML{alone}",
                )


OPTIONS = ("world_options", "cost_options")
_TABLES = (*OPTIONS, "solver", "budgets")


def overridden(table: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """A copy of the tables with every `key=value` put in; dots in a key lead into tables.

    >>> overridden({"seed": 0}, ["seed=3", "solver.name=sgd-al"])
    {'seed': 3, 'solver': {'name': 'sgd-al'}}
    """
    result = {k: dict(v) if isinstance(v, Mapping) else v for k, v in table.items()}
    for setting in settings:
        key, sign, text = setting.partition("=")
        *tables, last = key.strip().split(".")
        if not sign or not last or len(tables) > 1:
            raise InvalidSettings(f"--set {setting!r} is not understood", "Write it as key=value")
        place: Any = result
        for name in tables:
            place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise InvalidSettings(
                f"--set {setting!r}: {tables[0]} is no table", "Leave out the dot"
            )
        place[last] = toml_value(text.strip())
    return result


def parsed_budget(words: str) -> dict[str, Any]:
    """The table of a budget that is typed as a comparison.

    >>> parsed_budget("wear <= 8")
    {'cost': 'wear', 'at_most': 8.0}
    """
    cost, sign, limit = words.rpartition("<=")
    try:
        if not sign or not cost.strip():
            raise ValueError("no limit")
        return {"cost": cost.strip(), "at_most": float(limit)}
    except ValueError as fault:
        raise InvalidSettings(
            f"the budget {words!r} is not understood", "Write it as 'cost <= number'"
        ) from fault


def overlaid(table: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with `more` put over them, entry by entry; None says nothing.

    >>> overlaid({"seed": 1, "solver": {"cells": 9}}, {"seed": None, "solver": {"name": "sgd-al"}})
    {'seed': 1, 'solver': {'cells': 9, 'name': 'sgd-al'}}
    """
    result = dict(table)
    for name, value in more.items():
        before = result.get(name, {})
        if not isinstance(value, Mapping):
            result |= _set({name: value})
        elif isinstance(before, Mapping) and _set(value):
            result[name] = {**before, **_set(value)}
    return result


def _set(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value is not None}


def _options(table: Any, where: str) -> Mapping[str, str]:
    """Options travel as text, as they do on the command line."""
    if not isinstance(table, Mapping):
        raise InvalidSettings(f"{where} is no table", "Write its name as a heading")
    return MappingProxyType(
        {
            str(name): str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in table.items()
        }
    )


def _budget(table: Any, where: str) -> BudgetDescription:
    given = _checked(BudgetDescription, table, where)
    if not {"cost", "at_most"} <= set(given):
        raise InvalidSettings(f"{where}: cost or at_most is missing", "Give every budget both")
    return BudgetDescription(**given)


def _checked(kind: type, table: Any, where: str) -> dict[str, Any]:
    """The entries of a table, each known and of the right kind."""
    if not isinstance(table, Mapping):
        raise InvalidSettings(
            f"{where} = {table!r} is no table", "Name a setting in it, such as solver.name"
        )
    types = {one.name: str(one.type) for one in fields(kind)}
    found = {}
    for name, value in table.items():
        if name not in types:
            close = get_close_matches(name, types, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"Known are {', '.join(types)}"
            raise InvalidSettings(f"{where}: there is no setting {name!r}", hint)
        found[name] = value_of_type(types[name], value, f"{where}: {name}")
    return found


def value_of_type(wanted: str, value: Any, where: str) -> Any:
    """A stored value, if it is of the type of a field."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if "str" in wanted and isinstance(value, str):
        return value
    if "bool" in wanted and isinstance(value, bool):
        return value
    if "float" in wanted and is_number and abs(value) <= LARGEST:
        return float(value)
    if "int" in wanted and isinstance(value, int) and is_number:
        return value
    kinds = {"str": "text in quotes", "bool": "true or false", "float": "a number"}
    right = next((words for kind, words in kinds.items() if kind in wanted), "a whole number")
    raise InvalidSettings(f"{where} = {value!r}", f"Give {right}")


def wrong_setting(name: str, value: object, remedy: str) -> InvalidSettings:
    """A setting that cannot be used, by its name in TOML and by its option."""
    word = "solver" if name == "solver.name" else name.rpartition(".")[2]
    option = f"--{word.replace('_', '-')}"
    return InvalidSettings(f"{name} = {value!r} ({option})", remedy)


def cost_class_of(name: str) -> "CostClass":
    """The cost class of a setting: a name, or a file with a name and numbers."""
    from journeyman.costs.registry import named_cost_class

    _require_cost_class(name)
    try:
        return named_cost_class(name)
    except InvalidCosts as fault:
        what = f"cost_class = {name!r} (--cost-class): {fault.what}"
        raise InvalidSettings(what, fault.remedy) from fault


WHOLE = re.compile("-?[0-9]{1,18}")
PREMISES = {
    "rational": ("Rational", "regret_per_step"),
    "nearly-optimal": ("NearlyOptimal", "regret"),
    "soft-rational": ("SoftRational", "temperature"),
    "deterministic": ("Deterministic", None),
    "stationary": ("Stationary", None),
}
"""Names on the command line, and the parameter that stands behind the colon."""
IN_PYTHON = {kind: name for name, (kind, _) in PREMISES.items()}
OTHER_FORM = re.compile(r"([A-Za-z-]+) *[=( ] *(?:[a-z_]+ *= *)?([^()=]+?) *\)?")
"""How people write a premise with its parameter who have not seen the colon."""


def premises_in(words: str) -> "list[ExpertPremise]":
    """The premises of a setting.

    >>> premises_in("rational:0.01, deterministic")
    [Rational(regret_per_step=0.01), Deterministic()]
    """
    from journeyman.problem import expert_premises

    found: list[ExpertPremise] = []
    for word in filter(None, (part.strip() for part in words.split(","))):
        name, _, amount = word.partition(":")
        other = OTHER_FORM.fullmatch(word)
        meant = None if other is None else IN_PYTHON.get(other[1], other[1])
        if other is not None and meant in PREMISES:
            raise wrong_setting("expert_is", word, f"Write {meant}:{other[2]}")
        _require_choice("expert_is", name, tuple(PREMISES))
        kind, parameter = PREMISES[name]
        if (parameter is None) != (not amount):
            form = f"{name}:number" if parameter else name
            raise wrong_setting("expert_is", word, f"Write {form}")
        try:
            given = {} if parameter is None else {parameter: float(amount)}
            found.append(getattr(expert_premises, kind)(**given))
        except ValueError as fault:
            remedy = getattr(fault, "remedy", f"Write {name}:number")
            raise wrong_setting("expert_is", word, remedy) from None
    return found


def _require_cost_class(name: str) -> None:
    from journeyman.costs.registry import COST_CLASSES, is_file_name

    if name not in COST_CLASSES and not is_file_name(name):
        remedy = f"Give one of {', '.join(COST_CLASSES)}, or a .json file with its numbers"
        raise wrong_setting("cost_class", name, remedy)


def _require_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        close = get_close_matches(value, choices, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise wrong_setting(name, value, f"{hint}Give one of {', '.join(choices)}")


EXACT = ("linear-program", "banded-program", "column-generation", "smoothed-program")
OVER_FEATURES = ("reduced-program", "primal-dual", "sgd-al")
"""Methods whose features are made from the demonstrations."""
CLASSICS: Mapping[str, str] = {
    "behaviour-cloning": "BehaviourCloning",
    "projection": "Projection",
    "max-margin": "MaxMargin",
    "multiplicative-weights": "MultiplicativeWeights",
    "inverse-program": "InverseProgram",
    "sampled-inverse-program": "SampledInverseProgram",
    "maximum-entropy": "MaximumEntropy",
    "consistent-costs": "ConsistentCosts",
    "constrained-inverse": "ConstrainedInverse",
    "maximum-likelihood": "MaximumLikelihood",
    "feature-construction": "FeatureConstruction",
    "gaussian-process-costs": "GaussianProcessCosts",
    "maximum-margin-planning": "MaximumMarginPlanning",
    "policy-matching": "PolicyMatching",
    "imitation-reinforce": "ImitationReinforce",
    "imitation-trust-region": "ImitationTrustRegion",
    "adversarial-imitation": "AdversarialImitation",
    "occupancy-mirror-descent": "OccupancyMirrorDescent",
    "proximal-point-imitation": "ProximalPointImitation",
    "offline-proximal-imitation": "OfflineProximalImitation",
    "prior-mirror-descent": "PriorMirrorDescent",
}
ASKING: Mapping[str, str] = {"dagger": "DAgger"}
"""Methods that ask an expert who can be asked: there is none in demonstrations."""
METHODS = (*EXACT, *OVER_FEATURES, *CLASSICS)
"""Methods that need a problem and nothing else."""
SOLVERS = ("auto", *METHODS)
"""What a run can ask for."""


LONGEST_FILE = 1 << 20
"""Bytes of a description; more is some other file."""
DEEPEST = 20
"""Tables within tables: a description has two, and Python cannot even show a thousand."""


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        if path.stat().st_size > LONGEST_FILE:
            raise InvalidFile(f"{path} has {path.stat().st_size} bytes", "Give a short TOML file")
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except IsADirectoryError as fault:
        raise InvalidFile(f"{path} is a directory", "Give a TOML file") from fault
    except (ValueError, RecursionError) as fault:  # endless digits are a plain ValueError
        raise InvalidFile(
            f"{path} is not TOML ({fault})", 'Write lines such as: world = "world.npz"'
        ) from fault
    if _is_deeper(tables, DEEPEST):
        raise InvalidFile(f"{path} has tables within tables, {DEEPEST} deep", "Give a flat file")
    return tables


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether there is anything below so many levels of tables and lists."""
    if not isinstance(value, Mapping | list):
        return False
    parts = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(_is_deeper(part, levels - 1) for part in parts)


def toml_value(text: str) -> Any:
    """A value as TOML writes it; words that are none are text without quotes.

    >>> toml_value("3"), toml_value("true"), toml_value("sgd-al"), toml_value("[1, 2]")
    (3, True, 'sgd-al', [1, 2])
    """
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    is_value = list(found) == ["value"] and not _is_deeper(found, DEEPEST)
    return found["value"] if is_value else text
