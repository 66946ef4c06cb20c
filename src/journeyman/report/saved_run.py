"""A run read back from its directory, so that it can be reported on.

The figures are those of `certificate.json`. Its digest and those of the other files are compared
first; whether the figures follow from the files, only `jm.audit` says.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import assign
from journeyman.certificate import Certificate
from journeyman.certificate.expert import expert_estimates, stopped_shaping
from journeyman.certificate.intervals import BudgetCertificate, Interval
from journeyman.certificate.lower_bounds import LowerBounds
from journeyman.costs import CostBasis
from journeyman.demonstrations import (
    Blend,
    ControlVariate,
    Demonstrations,
    ExpertExpectation,
    MonteCarlo,
)
from journeyman.errors import InvalidFile, InvalidInput
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship, Budget, Forward, Witness
from journeyman.report.report_data import ReportData, SavedRun
from journeyman.report.saved_claims import combinations_of, number, premises_of, terms_of
from journeyman.report.saved_large_run import large_certificate, saved_class
from journeyman.storage import Arrays, PathLike, load_arrays, take
from journeyman.world import World

KIND, LARGE_KIND = "journeyman certificate", "journeyman certificate of a large world"
CERTIFICATE = "certificate.json"
INPUT_VERSION = 1
CSR = ("data", "indices", "indptr")
LONGEST_TEXT = 256 << 20
NOT_KEPT: Mapping[str, str] = MappingProxyType({})
"""Nothing is known about how the answer was found."""
REMEDY = "Give a directory written by apprentice.save; jm.audit says more about it"


def subject_of_run(directory: PathLike, found: Mapping[str, str] = NOT_KEPT) -> ReportData:
    """The certificate of a saved run with everything a report says about it."""
    place = Path(directory)
    facts = _facts(place / CERTIFICATE)
    _compare(place, facts)
    try:
        return _subject(place, facts, found)
    except InvalidInput:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
        raise InvalidFile(f"{place} is not a whole run: {fault!r}", REMEDY) from fault


def _facts(path: Path) -> dict[str, Any]:
    """What `certificate.json` says, if its digest is right."""
    try:
        if path.stat().st_size > LONGEST_TEXT:
            raise InvalidFile(f"{path} has {path.stat().st_size} bytes", REMEDY)
        facts = json.loads(path.read_bytes())
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path.parent} holds no {CERTIFICATE}", REMEDY) from fault
    except (OSError, ValueError, RecursionError) as fault:
        raise InvalidFile(f"{path} cannot be read: {fault}", REMEDY) from fault
    if not isinstance(facts, dict) or facts.get("kind") not in (KIND, LARGE_KIND):
        raise InvalidFile(f"{path} is not the certificate of a run", REMEDY)
    told = facts.pop("digest", None)
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    if told != hashlib.sha256(text.encode()).hexdigest():
        raise InvalidFile(f"{path} was changed after it was written", REMEDY)
    return facts


def _compare(place: Path, facts: dict[str, Any]) -> None:
    """Refuse files other than those that the certificate names."""
    for name, told in facts.get("inputs", {}).items():
        path = place / name
        if Path(name).name != name or not path.is_file():
            raise InvalidFile(f"{path} is missing", REMEDY)
        if hashlib.sha256(path.read_bytes()).hexdigest() != told:
            raise InvalidFile(f"{path} was changed after the run was saved", REMEDY)


def _subject(place: Path, facts: dict[str, Any], found: Mapping[str, str]) -> ReportData:
    trace = None
    if "trace.npz" in facts["inputs"]:
        _, arrays = load_arrays(place / "trace.npz", "trace", INPUT_VERSION)
        trace = take(place / "trace.npz", arrays, "bounds")
    recovered = None
    if "recovered.npz" in facts["inputs"]:
        _, arrays = load_arrays(place / "recovered.npz", "recovered", INPUT_VERSION)
        recovered = take(place / "recovered.npz", arrays, "weights")
    software = {str(name): str(text) for name, text in facts["software"].items()}
    name = place.resolve().name
    run = SavedRun(name, facts["inputs"], software, trace, recovered, found)
    large = facts["kind"] == LARGE_KIND
    certificate = large_certificate(place, facts) if large else _certificate(place, facts)
    return ReportData(certificate, None, facts["seeds"], run)


def _certificate(place: Path, facts: dict[str, Any]) -> Certificate:
    path = place / "witness.npz"
    _, duals = load_arrays(path, "witness", INPUT_VERSION)
    parts = (take(path, duals, name) for name in ("cost_weights", "values", "budget_prices"))
    return Certificate(
        problem=_problem(place, "demonstrations.npz" in facts["inputs"]),
        policy=Policy.load(place / "policy.npz"),
        failure_probability=facts["failure_probability"],
        combinations=combinations_of(facts),
        trivial_bound=number(facts["trivial_bound"]),
        gap_on_data=number(facts["gap_on_data"]),
        lower_bounds=LowerBounds(
            **{name: number(value) for name, value in facts["lower_bounds"].items()}
        ),
        premises=premises_of(facts),
        budgets=tuple(
            BudgetCertificate(
                one["name"],
                number(one["spent"]),
                one["limit"],
                terms_of(one),
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
    )


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
    told = facts["expectation"]
    if told["kind"] == "known cost":
        return Forward(world, basis, budgets)
    expectation = ExpertExpectation(take(path, arrays, "target"))
    chosen = saved_class(facts["cost_class"], arrays)
    if recorded:
        demos = Demonstrations.load(place / "demonstrations.npz")
        way = _method(told)
        expectation = ExpertExpectation.from_demonstrations(
            demos, basis, world, method=way, clipped=chosen.bears_clipping
        )
    if told["kind"] == "stopped shaping":
        plain = Apprenticeship(world, basis, expectation, chosen)
        shaped = stopped_shaping(plain, expert_estimates(plain, 0.5))
        expectation = expectation if shaped is None else shaped
    return Apprenticeship(world, basis, expectation, chosen, budgets)


def _method(told: dict[str, Any]) -> MonteCarlo | ControlVariate | Blend:
    if told["kind"] in ("control variate", "blend"):
        way = Blend if told["kind"] == "blend" else ControlVariate
        return way(num_folds=told["num_folds"], smoothing=told["smoothing"])
    if told["kind"] == "completed mean":
        return MonteCarlo(completed=True, smoothing=told["smoothing"])
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


def _intervals(facts: list[dict[str, Any]]) -> tuple[Interval, ...]:
    return tuple(Interval(one["name"], number(one["low"]), number(one["high"])) for one in facts)
