"""A run read back from its directory, so that it can be reported on.

The numbers are those of `certificate.json`. Its digest and those of the other files are compared
first; whether they follow from the files, only `jm.audit` says.
"""

import datetime
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, assign
from journeyman.certificate import Certificate
from journeyman.certificate.agreement import read_agreement, read_problem
from journeyman.certificate.code_references import DEMONSTRATIONS
from journeyman.certificate.evaluation import BudgetCertificate, Interval
from journeyman.certificate.expert_estimates import expert_estimates, stopped_shaping
from journeyman.certificate.lower_bounds import LowerBounds
from journeyman.certificate.regret import Regret
from journeyman.certificate.saving import (
    CERTIFICATE,
    CODE,
    CSR,
    INPUT_VERSION,
    KIND,
    NONLINEAR,
    VERSION,
)
from journeyman.certificate.terms import Combination, Premise, PremiseStatus, Statistics, Term
from journeyman.costs import CostBasis, CostClass
from journeyman.costs.cost_class import Totals
from journeyman.costs.registry import cost_class_from
from journeyman.demonstrations import (
    Blend,
    ControlVariate,
    Demonstrations,
    ExpertExpectation,
    MonteCarlo,
    SplitBlend,
)
from journeyman.errors import InvalidFile, InvalidInput, InvalidPolicy
from journeyman.policy import Policy, extract
from journeyman.problem import Apprenticeship, Budget, Forward, Witness
from journeyman.problem.bounds import ProvenRanges
from journeyman.problem.expert_premises import premise_from
from journeyman.problem.rational import Member, RationalPrices
from journeyman.report.report_data import ReportData, SavedRun
from journeyman.solvers import NonlinearCost
from journeyman.storage import Arrays, PathLike, load_arrays, read_json, take
from journeyman.world import World
from journeyman.world.levels import Level

LONGEST_TEXT = 256 << 20
NOT_KEPT: Mapping[str, str] = MappingProxyType({})
"""Nothing is known about how the answer was found."""
REMEDY = "Give a directory written by apprentice.save; jm.audit says more about it"


def read_run(directory: PathLike, found: Mapping[str, str] = NOT_KEPT) -> ReportData:
    """The certificate of a saved run with everything a report says about it."""
    place = Path(directory)
    facts = _facts(place / CERTIFICATE)
    _compare(place, facts)
    try:
        return _report_data(place, facts, found)
    except InvalidInput:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
        raise InvalidFile(f"{place} is not a whole run: {fault!r}", REMEDY) from fault


def read_policy(directory: PathLike) -> tuple[World, Policy, Demonstrations | None]:
    """The policy of a saved run, the world in which it acts, and the records of the expert."""
    place = Path(directory)
    facts = _facts(place / CERTIFICATE)
    _compare(place, facts)
    if "policy.npz" not in facts["inputs"] or "world.npz" not in facts["inputs"]:
        raise InvalidPolicy(
            f"{place} holds no policy in a world of arrays, whose states could be listed: there "
            "are records only, or code",
            "Ask it for its actions in Python: jm.certificate.load_policy(directory)",
        )
    recorded = DEMONSTRATIONS in facts["inputs"]
    demos = Demonstrations.load(place / DEMONSTRATIONS) if recorded else None
    return World.load(place / "world.npz"), Policy.load(place / "policy.npz"), demos


def _facts(path: Path) -> dict[str, Any]:
    """What `certificate.json` says, if its digest is right."""
    if not path.exists():
        raise InvalidFile(f"{path.parent} holds no {CERTIFICATE}", REMEDY)
    facts = read_json(path, LONGEST_TEXT, REMEDY)
    if facts.get("kind") != KIND:
        raise InvalidFile(f"{path} is not the certificate of a run", REMEDY)
    if facts.get("version") != VERSION:
        raise InvalidFile(
            f"{path} was saved in version {facts.get('version')!r} of the schema, and only version "
            f"{VERSION} can be read",
            "Certify and save again",
        )
    stated = facts.pop("digest", None)
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    if stated != hashlib.sha256(text.encode()).hexdigest():
        raise InvalidFile(f"{path} was changed after it was written", REMEDY)
    return facts


def _compare(place: Path, facts: dict[str, Any]) -> None:
    """Refuse files other than those that the certificate names."""
    for name, stated in facts.get("inputs", {}).items():
        path = place / name
        if Path(name).name != name or not path.is_file():
            raise InvalidFile(f"{path} is missing", REMEDY)
        if hashlib.sha256(path.read_bytes()).hexdigest() != stated:
            raise InvalidFile(f"{path} was changed after the run was saved", REMEDY)


def _report_data(place: Path, facts: dict[str, Any], found: Mapping[str, str]) -> ReportData:
    def optional(kind: str, name: str, *, needed: bool = True) -> FloatArray | None:
        path = place / f"{kind}.npz"
        if path.name not in facts["inputs"]:
            return None
        arrays = load_arrays(path, kind, INPUT_VERSION)[1]
        return take(path, arrays, name) if needed or name in arrays else None

    trace, recovered = optional("trace", "bounds"), optional("recovered", "weights")
    errors = optional("recovered", "standard_errors", needed=False)
    software = {str(name): str(text) for name, text in facts["software"].items()}
    name = place.resolve().name
    written = (place / CERTIFICATE).stat().st_mtime
    saved = datetime.datetime.fromtimestamp(written, datetime.UTC).date()
    kinds = {"explicit": _certificate, "recorded": _recorded_certificate}
    certificate = kinds.get(facts["world"], _coded_certificate)(place, facts)
    learned = None
    if NONLINEAR in facts["inputs"]:
        arrays = load_arrays(place / NONLINEAR, "nonlinear", INPUT_VERSION)[1]
        learned = NonlinearCost.of_arrays(certificate.problem.basis.names, arrays)
    run = SavedRun(
        name, facts["inputs"], software, trace, recovered, found, errors, learned, saved
    )  # fmt: skip
    return ReportData(certificate, None, facts["seeds"], run)


def _certificate(place: Path, facts: dict[str, Any]) -> Certificate:
    path = place / "evidence.npz"
    _, duals = load_arrays(path, "evidence", INPUT_VERSION)
    parts = (take(path, duals, name) for name in ("cost_weights", "values", "budget_prices"))
    problem = _problem(place, DEMONSTRATIONS in facts["inputs"])
    return Certificate(
        **_claims(facts),
        problem=problem,
        policy=Policy.load(place / "policy.npz"),
        gap_on_data=number(facts["gap_on_data"]),
        budgets=tuple(
            BudgetCertificate(
                one["name"],
                number(one["spent"]),
                one["limit"],
                _terms(one),
                one["failure_probability"],
            )
            for one in facts["budgets"]
        ),
        expert_intervals=_intervals(facts["expert_intervals"]),
        apprentice_intervals=_intervals(facts["apprentice_intervals"]),
        expectations=np.array([number(value) for value in facts["expectations"]]),
        witnesses=tuple(Witness(*rows) for rows in zip(*parts, strict=True)),
        measure=duals.get("measure"),
        least_possible=number(facts["least_possible"]),
        left_out=tuple(facts["left_out"]),
        ranges=_ranges(duals),
        regret=_regret(place, problem.world, facts["regret"]),
    )


def _ranges(found: Arrays) -> ProvenRanges | None:
    """Costs whose attainable ranges the trivial bound rests on; their ends were not kept."""
    if "range_costs" not in found:
        return None
    unknown = np.full(found["range_costs"].size, np.nan)
    costs = tuple(int(cost) for cost in found["range_costs"])
    return ProvenRanges(costs, unknown, unknown, found["low_values"], found["high_values"])


def _claims(facts: dict[str, Any]) -> dict[str, Any]:
    """What is claimed about policies in worlds of every level."""
    bounds = {name: number(value) for name, value in facts["lower_bounds"].items()}
    return {
        "failure_probability": facts["failure_probability"],
        "combinations": _combinations(facts), "premises": _premises(facts),
        "trivial_bound": number(facts["trivial_bound"]), "lower_bounds": LowerBounds(**bounds),
    }  # fmt: skip


def _regret(place: Path, world: World, facts: dict[str, Any] | None) -> Regret | None:
    """What was claimed about the regret, with the prices that prove it."""
    if facts is None:
        return None
    path = place / "regret.npz"
    _, arrays = load_arrays(path, "regret", INPUT_VERSION)

    def prices(prefix: str) -> RationalPrices:
        steps, total, averages, pairs = (
            take(path, arrays, f"{prefix}{name}")
            for name in ("steps", "total", "averages", "pairs")
        )
        floor = take(path, arrays, f"{prefix}floor") if "budget_low" in arrays else 0.0
        return RationalPrices(steps, float(total), averages, pairs, float(floor))

    example, budget_range, tested_with = None, None, None
    if "weights" in arrays:
        example = Member(take(path, arrays, "weights"), take(path, arrays, "values"))
    if "budget_low" in arrays:
        budget_range = (take(path, arrays, "budget_low"), take(path, arrays, "budget_high"))
        tested_with = extract(world, take(path, arrays, "uniform_law"))
        if example is not None:
            example = replace(example, prices=take(path, arrays, "prices"))
    return Regret(
        _terms(facts), _terms({"terms": facts["uniform_terms"]}), number(facts["trivial_bound"]),
        _premises(facts), facts["failure_probability"], prices(""), prices("uniform_"),
        (take(path, arrays, "low"), take(path, arrays, "high")), example,
        tuple((int(episode), int(step)) for episode, step in facts["contradiction"]),
        None, budget_range, tested_with,
    )  # fmt: skip


def _problem(place: Path, recorded: bool) -> Apprenticeship:
    path = place / "problem.npz"
    facts, arrays = load_arrays(path, "problem", INPUT_VERSION)
    world = World.load(place / "world.npz")
    basis = CostBasis(_matrix(arrays, world), facts["names"])
    assign(basis, rewards=bool(facts["rewards"]))
    limits = take(path, arrays, "limits")
    budgets = [
        Budget(take(path, arrays, f"budget_{j}"), float(limits[j]), name)
        for j, name in enumerate(facts["budgets"])
    ]
    stated = facts["expectation"]
    if stated["kind"] == "known cost":
        return Forward(world, basis, budgets)
    expectation = ExpertExpectation(take(path, arrays, "target"))
    chosen = cost_class_from(facts["cost_class"])
    if recorded:
        demos = Demonstrations.load(place / DEMONSTRATIONS)
        way = _method(stated)
        expectation = ExpertExpectation.from_demonstrations(
            demos, basis, world, method=way, clipped=chosen.bears_clipping
        )
    if stated["kind"] == "stopped shaping":
        plain = Apprenticeship(world, basis, expectation, chosen)
        shaped = stopped_shaping(plain, expert_estimates(plain, 0.5))
        expectation = expectation if shaped is None else shaped
    premises = [premise_from(one) for one in facts["expert_is"]]
    return Apprenticeship(world, basis, expectation, chosen, budgets, premises)


def _method(stated: dict[str, Any]) -> MonteCarlo | ControlVariate | Blend | SplitBlend:
    if stated["kind"] == "split blend":
        return SplitBlend(smoothing=stated["smoothing"])
    if stated["kind"] in ("control variate", "blend"):
        way = Blend if stated["kind"] == "blend" else ControlVariate
        return way(num_folds=stated["num_folds"], smoothing=stated["smoothing"])
    if stated["kind"] == "completed mean":
        return MonteCarlo(completed=True, smoothing=stated["smoothing"])
    return MonteCarlo()


def _matrix(arrays: Arrays, world: World) -> Any:
    """The cost basis, dense or in three parts."""
    if "basis" in arrays:
        return arrays["basis"]
    data, indices, indptr = (arrays[f"basis_{part}"] for part in CSR)
    if indptr.size - 1 not in (world.num_states, world.num_pairs):
        raise ValueError(f"the basis has {indptr.size - 1} rows")
    columns = int(indices.max()) + 1
    return sparse.csr_array((data, indices, indptr), shape=(indptr.size - 1, columns))


def number(value: Any) -> float:
    """JSON has no infinity: it is written as a word."""
    found = float(value)
    if math.isnan(found):
        raise ValueError(f"{value!r} is no number")
    return found


def _terms(facts: dict[str, Any]) -> tuple[Term, ...]:
    return tuple(
        Term(one["name"], number(one["value"]), one["formula"], one["source"])
        for one in facts["terms"]
    )


def _combinations(facts: dict[str, Any]) -> tuple[Combination, ...]:
    return tuple(
        Combination(
            one["kind"], one["estimate"], _terms(one), number(one["bound"]),
            tuple(_statistics(sample) for sample in one["statistics"]),
        )
        for one in facts["combinations"]
    )  # fmt: skip


def _statistics(facts: dict[str, Any]) -> Statistics:
    """Lists as tuples, numbers as numbers."""
    plain: dict[str, Any] = {
        name: tuple(map(number, value)) if isinstance(value, list) else value
        for name, value in facts.items()
    }
    return Statistics(**plain)


def _premises(facts: dict[str, Any]) -> tuple[Premise, ...]:
    return tuple(
        Premise(one["name"], PremiseStatus(one["status"]), one["detail"], one["level"])
        for one in facts["premises"]
    )


def _intervals(facts: list[dict[str, Any]]) -> tuple[Interval, ...]:
    return tuple(Interval(one["name"], number(one["low"]), number(one["high"])) for one in facts)


@dataclass(frozen=True)
class SavedWorld:
    """Sizes of a world that is named by reference."""

    num_states: int
    num_actions: int
    discount: float


@dataclass(frozen=True)
class SavedSimulator:
    """What is known of a simulator that is named by reference."""

    discount: float


@dataclass(frozen=True, eq=False)
class SavedProblem:
    """What a report says of a problem; its world and costs are code, which is not run."""

    basis: CostBasis
    cost_class: CostClass
    expectation: ExpertExpectation
    demonstrations: Demonstrations | None
    world: SavedWorld | SavedSimulator
    discount: float
    level: Level
    made_by: str
    """The functions that are called to make it again."""
    records = None
    has_known_cost = False

    @property
    def target(self) -> FloatArray:
        return self.expectation.values

    @property
    def has_states(self) -> bool:
        return isinstance(self.world, SavedWorld)

    @property
    def effective_horizon(self) -> float:
        return 1.0 / (1.0 - self.discount)

    @property
    def total_time(self) -> float:
        return self.effective_horizon

    @property
    def totals(self) -> Totals:
        return Totals(self.basis, self.effective_horizon)

    @property
    def gap_scale(self) -> float:
        return 2 * self.cost_class.pointwise_bound(self.basis.matrix) * self.effective_horizon


def _recorded_certificate(place: Path, facts: dict[str, Any]) -> Certificate:
    """The claims of `certificate.json`, with the evidence; the policy may be another package's."""
    problem = read_problem(place)
    bounds = {name: number(value) for name, value in facts["lower_bounds"].items()}
    return Certificate(
        problem=problem,
        policy=cast(Any, None),
        failure_probability=facts["failure_probability"],
        combinations=_combinations(facts),
        trivial_bound=number(facts["trivial_bound"]),
        premises=_premises(facts),
        lower_bounds=LowerBounds(**bounds),
        expectations=np.zeros(0),
        agreement=read_agreement(place, problem),
    )


def _coded_certificate(place: Path, facts: dict[str, Any]) -> Certificate:
    """The claims of `certificate.json`; the policy is not there, for it is code."""
    problem = _coded_problem(place, facts["inputs"])
    return Certificate(
        **_claims(facts),
        problem=cast(Any, problem),
        policy=cast(Any, None),
        expectations=np.full(len(problem.basis.names), np.nan),
    )


def _coded_problem(place: Path, files: dict[str, str]) -> SavedProblem:
    path = place / "problem.npz"
    stated, arrays = load_arrays(path, "problem of callables", INPUT_VERSION)
    if stated["declared"]:
        expectation = ExpertExpectation(take(path, arrays, "target"))
    else:
        _, records = load_arrays(place / "totals.npz", "totals", INPUT_VERSION)
        expectation = ExpertExpectation.from_totals(records["totals"], records["unrecorded"])
    discount = float(stated["discount"])
    sizes = (stated["num_states"], stated["num_actions"])
    recorded = DEMONSTRATIONS in files
    return SavedProblem(
        CostBasis(take(path, arrays, "extremes"), stated["names"]),
        cost_class_from(stated["cost_class"]),
        expectation,
        Demonstrations.load(place / DEMONSTRATIONS) if recorded else None,
        SavedSimulator(discount) if None in sizes else SavedWorld(*sizes, discount),
        discount,
        Level.SAMPLED if None in sizes else Level.STEPPED,
        ", ".join(
            call["function"] for call in read_json(place / CODE, LONGEST_TEXT, REMEDY)["calls"]
        ),
    )
