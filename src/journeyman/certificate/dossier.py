"""A run on disk: what a certificate was made from, and every figure it claims.

    world.npz            the world
    demonstrations.npz   what the expert did, unless its expectations were declared
    policy.npz           the policy
    problem.npz          cost basis, cost class, budgets, target
    witness.npz          dual points behind the lower bounds; the measure that defines the policy;
                         potentials behind the attainable ranges, where the trivial bound needs them
    features.npz         features, coefficients and base measure, where rows of them were sampled
    trace.npz            seconds, lower and upper bound after every call of a solver that has both
    recovered.npz        the weights of the cost that the method inferred, where it infers one
    certificate.json     every term of every combination, premises, budgets, bounds, intervals, and
                         the SHA-256 of the files above

`jm.audit` derives the figures again from the other files. Every file is written atomically and
`certificate.json` last: without it a directory is not a run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix
from journeyman.certificate import evaluation
from journeyman.certificate.certificate import Certificate
from journeyman.certificate.claims import gap_claims, number, term_claim
from journeyman.certificate.evaluation import defines
from journeyman.certificate.intervals import BudgetCertificate, Interval
from journeyman.certificate.presentation import plain
from journeyman.certificate.run_directory import KIND, canonical, digest_of, finish, prepared
from journeyman.certificate.sampled_rows import SampledRows
from journeyman.demonstrations import Blend, Demonstrations, MonteCarlo, StoppedShaping
from journeyman.errors import InvalidInput, InvalidProblem
from journeyman.problem import Apprenticeship
from journeyman.storage import PathLike, save_arrays

__all__ = ["canonical", "certificate_facts", "digest_of", "save_run"]

VERSION = 4
"""Of the schema; also of the rules by which the figures are to be derived again."""
INPUT_VERSION = 1
"""Of the files that are written here."""
CSR = ("data", "indices", "indptr")


def save_run(
    certificate: Certificate,
    directory: PathLike,
    *,
    seeds: Mapping[str, int | None],
    evaluation: SampledRows | None = None,
    bounds_trace: FloatArray | None = None,
    recovered: FloatArray | None = None,
) -> None:
    """Write a certificate and all it rests on into `directory`.

    The directory is made if need be. An earlier run in it is replaced; anything else in it is a
    reason to refuse. A certificate from sampled rows needs the `evaluation` they came from: its
    features and coefficients are inputs too. `bounds_trace` and `recovered` are the answer's.
    """
    _require_rows(certificate, evaluation)
    place = prepared(directory)
    written = _write_inputs(certificate, place)
    if evaluation is not None:
        _save_features(evaluation, place / "features.npz")
        written.append("features.npz")
    if bounds_trace is not None:
        save_arrays(place / "trace.npz", "trace", INPUT_VERSION, {"bounds": bounds_trace})
        written.append("trace.npz")
    if recovered is not None and np.isfinite(recovered).all():
        save_arrays(place / "recovered.npz", "recovered", INPUT_VERSION, {"weights": recovered})
        written.append("recovered.npz")
    facts = certificate_facts(certificate) | {"seeds": dict(seeds)}
    finish(place, facts, written)


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """Everything a certificate claims, ready for JSON."""
    bounds = certificate.lower_bounds
    return gap_claims(certificate, certificate.failure_probability) | {
        "kind": KIND,
        "version": VERSION,
        "alarm": certificate.alarm,
        "gap_on_data": plain(certificate.gap_on_data),
        "expectations": [number(value) for value in certificate.expectations],
        "lower_bounds": {name: number(value) for name, value in vars(bounds).items()},
        "budgets": [_budget(budget) for budget in certificate.budgets],
        "expert_intervals": [_interval(one) for one in certificate.expert_intervals],
        "apprentice_intervals": [_interval(one) for one in certificate.apprentice_intervals],
    }


def _budget(budget: BudgetCertificate) -> dict[str, Any]:
    return {
        "name": budget.name, "spent": number(budget.spent), "limit": budget.limit,
        "is_kept": budget.is_kept, "failure_probability": budget.failure_probability,
        "terms": [term_claim(term) for term in budget.terms],
    }  # fmt: skip


def _interval(interval: Interval) -> dict[str, Any]:
    return {"name": interval.name, "low": number(interval.low), "high": number(interval.high)}


def _require_rows(certificate: Certificate, evaluation: SampledRows | None) -> None:
    """Whether the rows that a certificate rests on, if any, can be those of the evaluation."""
    samples = [one for way in certificate.combinations for one in way.statistics]
    needed = {one.count for one in samples if one.horizon is None}
    given = set() if evaluation is None else {evaluation.rows}
    if needed != given or not (evaluation is None or _defines(evaluation, certificate)):
        wrong = "rests on sampled rows" if needed else "does not rest on sampled rows"
        raise InvalidProblem(
            f"the certificate {wrong}, and evaluation is "
            + ("not given" if evaluation is None else "that of another certificate"),
            "Give evaluation= exactly what certify was given, if that was SampledRows",
        )


def _defines(evaluation: SampledRows, certificate: Certificate) -> bool:
    """Whether features and coefficients make the policy that was certified."""
    problem = certificate.problem
    if evaluation.features is None or evaluation.coefficients is None:
        return False
    try:
        measure = evaluation.features.on(problem.world).measure(evaluation.coefficients)
    except InvalidInput:
        return False
    return defines(measure, certificate.policy, problem)


def _write_inputs(certificate: Certificate, place: Path) -> list[str]:
    problem = certificate.problem
    problem.world.save(place / "world.npz")
    certificate.policy.save(place / "policy.npz")
    _save_problem(problem, place / "problem.npz")
    _save_witness(certificate, place / "witness.npz")
    written = ["world.npz", "policy.npz", "problem.npz", "witness.npz"]
    demos = _demonstrations(problem)
    if demos is not None:
        demos.save(place / "demonstrations.npz")
        written.append("demonstrations.npz")
    return written


def _demonstrations(problem: Apprenticeship) -> Demonstrations | None:
    return problem.demonstrations if problem.expert is not None else None


def _save_problem(problem: Apprenticeship, path: Path) -> None:
    arrays = {"target": problem.target, "limits": problem.limits}
    arrays |= _matrix("basis", problem.basis.matrix)
    arrays |= {name: np.asarray(given) for name, given in problem.cost_class.parameters().items()}
    arrays |= {f"budget_{j}": budget.cost for j, budget in enumerate(problem.constraints)}
    save_arrays(
        path, "problem", INPUT_VERSION, arrays,
        names=problem.basis.names,
        rewards=problem.basis.rewards,
        cost_class=type(problem.cost_class).__name__,
        budgets=[budget.name for budget in problem.constraints],
        expectation=_expectation(problem),
    )  # fmt: skip


def _expectation(problem: Apprenticeship) -> dict[str, Any]:
    """Where the target comes from."""
    if problem.expert is None:
        return {"kind": "known cost"}
    if problem.expectation.is_declared:
        return {"kind": "declared"}
    method = problem.expectation.method
    if isinstance(method, MonteCarlo):
        if not method.completed:
            return {"kind": "plain mean"}
        return {"kind": "completed mean", "smoothing": method.smoothing}
    if isinstance(method, StoppedShaping):
        return {"kind": "stopped shaping"}
    assert method is not None
    kind = "blend" if isinstance(method, Blend) else "control variate"
    return {"kind": kind, "num_folds": method.num_folds, "smoothing": method.smoothing}


def _save_witness(certificate: Certificate, path: Path) -> None:
    """Every dual point as a row, the best on the data first."""
    problem = certificate.problem
    points, num_budgets = certificate.witnesses, len(problem.constraints)
    arrays = {
        "cost_weights": np.array([point.cost_weights for point in points]),
        "values": np.array([point.values for point in points]),
        "budget_prices": np.array([_prices(point.budget_prices, num_budgets) for point in points]),
    }
    if certificate.measure is not None:
        arrays["measure"] = certificate.measure
        positive = np.maximum(certificate.measure, 0.0)
        arrays["measure_scale"] = np.array(evaluation.best_scale(problem, positive))
    if certificate.ranges is not None:
        arrays["range_costs"] = np.array(certificate.ranges.costs, dtype=np.int64)
        arrays["low_values"] = certificate.ranges.low_values
        arrays["high_values"] = certificate.ranges.high_values
    save_arrays(path, "witness", INPUT_VERSION, arrays)


def _save_features(evaluation: SampledRows, path: Path) -> None:
    assert evaluation.features is not None
    assert evaluation.coefficients is not None
    arrays = {"coefficients": evaluation.coefficients}
    arrays |= _matrix("matrix", evaluation.features.matrix)
    if evaluation.features.base is not None:
        arrays["base"] = evaluation.features.base
    save_arrays(path, "features", INPUT_VERSION, arrays)


def _matrix(name: str, matrix: Matrix) -> dict[str, Any]:
    """A matrix under its name, a sparse one in three parts."""
    if sparse.issparse(matrix):
        return {f"{name}_{part}": getattr(matrix, part) for part in CSR}
    return {name: matrix}


def _prices(prices: FloatArray, num_budgets: int) -> FloatArray:
    return prices if prices.size else np.zeros(num_budgets)
