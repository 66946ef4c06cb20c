"""A run on disk: what a certificate claims, and the evidence that it follows from.

    certificate.json     every claim: terms of all combinations, premises, budgets, bounds,
                         intervals, and the SHA-256 of the files below
    problem.npz          costs, cost class, budgets, target
    policy.npz           the policy: numbers (a table, a network, coefficients, weights), with which
                         code may have to make the rest
    demonstrations.npz   what the expert did, unless its expectations were declared

In an explicit world also

    world.npz            the world
    evidence.npz         dual points behind the lower bounds; how often the policy visits each
                         state; the measure that defines the policy; potentials behind the
                         attainable ranges, where the trivial bound needs them; directions and
                         values of what is consistent with a deterministic or stationary expert
    features.npz         features, coefficients and base measure, where rows of them were sampled
    trace.npz            seconds, lower and upper bound after every call of a solver that has both
    recovered.npz        the weights of the cost that the method inferred, where it infers one, and
                         their standard errors, where it knows them
    nonlinear.npz        the inferred cost of a method whose cost is a function of the features: the
                         function, its value at every pair, and how far it is from combinations
    regret.npz           prices that prove the regret under the expert's own cost, where a premise
                         about it is declared

and in a world of callables, which cannot be written down,

    code.json            which functions made the world, its costs, features and policies, with
                         which arguments, and the SHA-256 of their source files
    totals.npz           what every demonstration cost

and where nothing but records is known what `agreement` says.

`save_run` writes all of it, atomically and `certificate.json` last: without it a directory is not a
run. `journeyman.report.saved_run` reads it back; `jm.audit` checks it with code of its own.
"""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import scipy
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign, real_array
from journeyman.certificate import evaluation as evaluations
from journeyman.certificate.agreement import (
    AGREEMENT,
    load_recorded_policy,
    write_recorded,
)
from journeyman.certificate.certificate import Certificate
from journeyman.certificate.code_references import (
    DEMONSTRATIONS,
    CodeIndex,
    Reference,
    located,
    source_digest,
)
from journeyman.certificate.expert_estimates import expert_totals
from journeyman.certificate.regret import Regret
from journeyman.certificate.sampled_rows import SampledRows
from journeyman.demonstrations import (
    Blend,
    ControlVariate,
    Demonstrations,
    MonteCarlo,
    SplitBlend,
    StoppedShaping,
)
from journeyman.errors import InvalidFile, InvalidInput, InvalidProblem
from journeyman.policy import Policy, occupancy
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.function_policy import FeaturePolicy, SoftFeaturePolicy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem import Apprenticeship
from journeyman.problem.expert_premises import described
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.problem.policy_forms import form_of, policy_of, require_words
from journeyman.storage import Arrays, PathLike, load_arrays, save_arrays, take, write_atomically
from journeyman.world import Pairs

KIND, VERSION = "journeyman certificate", 9
"""Of the schema; also of the rules by which the checker derives numbers."""
INPUT_VERSION = 1
"""Of the files beside the certificate that are written here."""
CERTIFICATE, UNFINISHED = "certificate.json", "unfinished"
WORLD, POLICY, PROBLEM, EVIDENCE = "world.npz", "policy.npz", "problem.npz", "evidence.npz"
CODE, TOTALS, FEATURES = "code.json", "totals.npz", "features.npz"
TRACE, RECOVERED, REGRET = "trace.npz", "recovered.npz", "regret.npz"
NONLINEAR = "nonlinear.npz"
INPUTS = (
    WORLD, DEMONSTRATIONS, POLICY, PROBLEM, EVIDENCE, FEATURES, TRACE, RECOVERED, NONLINEAR,
    REGRET, TOTALS, CODE, AGREEMENT,
)  # fmt: skip
CODED_POLICY, CODED_PROBLEM = "policy by reference", "problem of callables"
CODE_KIND, CODE_VERSION = "journeyman code", 2
CLAIMS = (
    "failure_probability", "bound", "valid", "vacuous", "weak", "least_possible", "trivial_bound",
    "combinations", "premises", "alarm", "gap_on_data", "lower_bounds", "budgets",
    "expert_intervals", "apprentice_intervals", "left_out", "regret",
)  # fmt: skip
"""Of `Certificate.to_dict`: what is written, and checked."""
CSR = ("data", "indices", "indptr")
TABLE = ("probabilities", "offsets")
OVER_FEATURES = {"features": FeaturePolicy, "soft features": SoftFeaturePolicy}


def save_run(
    certificate: Certificate,
    directory: PathLike,
    *,
    seeds: Mapping[str, int | None],
    evaluation: SampledRows | MixtureRollouts | None = None,
    code: Reference | Sequence[Reference] = (),
    bounds_trace: FloatArray | None = None,
    recovered: FloatArray | None = None,
    recovered_errors: FloatArray | None = None,
    nonlinear: Mapping[str, Any] | None = None,
) -> None:
    """Write a certificate and all it rests on into `directory`.

    The directory is made if need be. An earlier run in it is replaced; anything else in it is a
    reason to refuse. A certificate from sampled rows, or from rollouts of a mixture in rounds,
    needs the `evaluation` they came from; in a world of callables `code` names what made it, and
    nothing is written if that cannot be found there. `bounds_trace`, `recovered` and
    its standard errors are the answer's, as are the arrays of a `nonlinear` cost.
    """
    claims = certificate_facts(certificate, evaluation) | {"seeds": dict(seeds)}
    if certificate.agreement is not None:
        place = _prepared(directory)
        written = write_recorded(certificate, place)
    elif certificate.is_exact:
        place, written = _write_explicit(certificate, directory, evaluation)
    else:
        place, written = _write_coded(certificate, directory, code)
    if bounds_trace is not None:
        save_arrays(place / TRACE, "trace", INPUT_VERSION, {"bounds": bounds_trace})
        written.append(TRACE)
    if recovered is not None and np.isfinite(recovered).all():
        parts = {"weights": recovered}
        if recovered_errors is not None:
            parts["standard_errors"] = recovered_errors
        save_arrays(place / RECOVERED, "recovered", INPUT_VERSION, parts)
        written.append(RECOVERED)
    if nonlinear is not None:
        save_arrays(place / NONLINEAR, "nonlinear", INPUT_VERSION, dict(nonlinear))
        written.append(NONLINEAR)
    _finish(place, claims, written)


# Claims


def certificate_facts(
    certificate: Certificate,
    evaluation: SampledRows | MixtureRollouts | None = None,
) -> dict[str, Any]:
    """Everything a certificate claims, ready for JSON."""
    facts = {
        "kind": KIND,
        "version": VERSION,
        "software": {
            "journeyman": metadata.version("journeyman"),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
    }
    known, exact = certificate.to_dict(), certificate.is_exact
    recorded = certificate.agreement is not None
    return (
        facts
        | {name: known[name] for name in CLAIMS}
        | {
            "world": "recorded" if recorded else "explicit" if exact else "of callables",
            "evaluation": None if exact or recorded else _evaluation_facts(certificate, evaluation),
            "expectations": known["expectations"] if exact else None,
        }
    )


def _evaluation_facts(certificate: Certificate, evaluation: Any) -> dict[str, Any]:
    """How the policy was evaluated: enough to draw the same again."""
    best = certificate.best
    first = best.statistics[0]
    if first.horizon is None:
        return {"kind": "rows", "rows": first.count, "seed": first.seed}
    facts = {"trajectories": first.count, "horizon": first.horizon, "seed": first.seed}
    if best.kind == "E":
        return {"kind": "rollouts", **facts}
    drawn = MixtureRollouts(first.count, first.horizon) if evaluation is None else evaluation
    if not isinstance(drawn, MixtureRollouts) or not _has_parts_of(certificate, drawn):
        raise InvalidProblem(
            "the certificate rests on rollouts of another evaluation",
            "Give evaluation= exactly what certify was given; for the answer of PolicyMixture that "
            "is answer.rollouts",
        )
    rounds = None if drawn.rounds is None else list(drawn.rounds)
    return {"kind": "mixture", **facts, "rounds": rounds, "most_rounds": drawn.most_rounds}


def _has_parts_of(certificate: Certificate, rollouts: MixtureRollouts) -> bool:
    """Whether every candidate has the part of the failure probability that its round has."""
    policy: Any = certificate.policy
    delta = certificate.failure_probability
    assert isinstance(policy, MixturePolicy)
    share = delta if certificate.problem.expectation.is_declared else delta / 2
    if rollouts.rounds is not None and sum(rollouts.rounds) < len(policy.candidates):
        return False
    parts = rollouts.parts(len(policy.candidates))
    drawn = [part for part, weight in zip(parts, policy.weights, strict=True) if weight > 0]
    wanted = (rollouts.trajectories, rollouts.horizon)
    return all(
        (one.count, one.horizon) == wanted and one.failure_probability == float(part) * share
        for part, one in zip(drawn, certificate.best.statistics, strict=True)
    )


# Explicit worlds


def _write_explicit(
    certificate: Certificate, directory: PathLike, evaluation: Any
) -> tuple[Path, list[str]]:
    _require_rows(certificate, evaluation)
    problem, place = certificate.problem, _prepared(directory)
    problem.world.save(place / WORLD)
    certificate.policy.save(place / POLICY)
    _save_problem(problem, place / PROBLEM)
    _save_evidence(certificate, place / EVIDENCE)
    written = [WORLD, POLICY, PROBLEM, EVIDENCE]
    if certificate.regret is not None:
        _save_regret(problem, certificate.regret, place / REGRET)
        written.append(REGRET)
    if problem.expert is not None and problem.demonstrations is not None:
        problem.demonstrations.save(place / DEMONSTRATIONS)
        written.append(DEMONSTRATIONS)
    if isinstance(evaluation, SampledRows):
        assert evaluation.features is not None
        assert evaluation.coefficients is not None
        arrays = {"coefficients": evaluation.coefficients}
        arrays |= _matrix("matrix", evaluation.features.matrix)
        if evaluation.features.base is not None:
            arrays["base"] = evaluation.features.base
        save_arrays(place / FEATURES, "features", INPUT_VERSION, arrays)
        written.append(FEATURES)
    return place, written


def _require_rows(certificate: Certificate, evaluation: Any) -> None:
    """Whether the rows that a certificate rests on, if any, can be those of the evaluation."""
    samples = [one for way in certificate.combinations for one in way.statistics]
    needed = {one.count for one in samples if one.horizon is None}
    given = set() if evaluation is None else {getattr(evaluation, "rows", None)}
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
    return evaluations.defines(measure, certificate.policy, problem)


def _save_problem(problem: Apprenticeship, path: Path) -> None:
    arrays = {"target": problem.target, "limits": problem.limits}
    arrays |= _matrix("basis", problem.basis.matrix) | _vertices(problem)
    arrays |= {f"budget_{j}": budget.cost for j, budget in enumerate(problem.constraints)}
    save_arrays(
        path, "problem", INPUT_VERSION, arrays,
        names=problem.basis.names,
        rewards=problem.basis.rewards,
        cost_class=problem.cost_class.describe(),
        budgets=[budget.name for budget in problem.constraints],
        expert_is=[described(premise) for premise in problem.expert_is],
        expectation=_expectation(problem),
    )  # fmt: skip


def _vertices(problem: Apprenticeship) -> dict[str, Any]:
    """Evidence of a cost class that is the hull of points."""
    found = getattr(problem.cost_class, "vertices", None)
    return {} if found is None else {"vertices": found}


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
    folds = {} if isinstance(method, SplitBlend) else {"num_folds": method.num_folds}
    return {"kind": KINDS[type(method)], **folds, "smoothing": method.smoothing}


KINDS: dict[type, str] = {
    Blend: "blend", SplitBlend: "split blend", ControlVariate: "control variate",
}  # fmt: skip
"""Ways to estimate a target that have parameters."""


def _save_evidence(certificate: Certificate, path: Path) -> None:
    """Every dual point as a row, the best on the data first; visits per state."""
    problem = certificate.problem
    world, points, num_budgets = problem.world, certificate.witnesses, len(problem.constraints)
    prices = [
        point.budget_prices if point.budget_prices.size else np.zeros(num_budgets)
        for point in points
    ]
    arrays = {
        "cost_weights": np.array([point.cost_weights for point in points]),
        "values": np.array([point.values for point in points]),
        "budget_prices": np.array(prices),
        "visits": world.pairs.total(occupancy(world, certificate.policy).measure),
    }
    if certificate.measure is not None:
        arrays["measure"] = certificate.measure
        positive = np.maximum(certificate.measure, 0.0)
        arrays["measure_scale"] = np.array(evaluations.best_scale(problem, positive))
    if certificate.ranges is not None:
        arrays["range_costs"] = np.array(certificate.ranges.costs, dtype=np.int64)
        arrays["low_values"] = certificate.ranges.low_values
        arrays["high_values"] = certificate.ranges.high_values
    header: dict[str, Any] = {"centred": _is_centred(problem)}
    if certificate.consistency is not None:
        arrays["consistent_weights"] = certificate.consistency.weights
        arrays["consistent_values"] = certificate.consistency.values
        header["consistent_hull"] = certificate.consistency.is_hull
    save_arrays(path, "evidence", INPUT_VERSION, arrays, **header)


def _save_regret(problem: Apprenticeship, regret: Regret, path: Path) -> None:
    """Prices for the policy and for the one that the premise is tested with, visits of the latter,
    ends of values, and the cost for which the premise is true. With budgets also what is known of
    their values, and the law of the policy that the premise is tested with."""
    world = problem.world
    arrays: dict[str, Any] = {"low": regret.value_range[0], "high": regret.value_range[1]}
    for prefix, prices in (("", regret.prices), ("uniform_", regret.uniform_prices)):
        arrays |= {
            f"{prefix}steps": prices.of_steps,
            f"{prefix}total": np.array(prices.of_total),
            f"{prefix}averages": prices.of_averages,
            f"{prefix}pairs": prices.of_pairs,
        }
        if problem.constraints:
            arrays[f"{prefix}floor"] = np.array(prices.of_floor)
    uniform = regret.tested_with or Policy.uniform(world)
    arrays["uniform_visits"] = world.pairs.total(occupancy(world, uniform).measure)
    if regret.budget_range is not None:
        low, high = regret.budget_range
        arrays |= {"uniform_law": uniform.on(world), "budget_low": low, "budget_high": high}
    if regret.example is not None:
        arrays |= {"weights": regret.example.weights, "values": regret.example.values}
        if problem.constraints:
            arrays["prices"] = regret.example.prices
    save_arrays(path, "regret", INPUT_VERSION, arrays)


def _is_centred(problem: Any) -> bool:
    """Whether unrecorded tails count as mid-range, which they do where that has less error."""
    basis = problem.totals.basis
    plain = problem.cost_class.pointwise_bound(basis.matrix)
    return bool(problem.cost_class.centred_bound(basis) < plain)


def _matrix(name: str, matrix: Matrix) -> dict[str, Any]:
    """A matrix under its name, a sparse one in three parts."""
    if sparse.issparse(matrix):
        return {f"{name}_{part}": getattr(matrix, part) for part in CSR}
    return {name: matrix}


# Worlds of callables


def _write_coded(
    certificate: Certificate, directory: PathLike, code: Reference | Sequence[Reference]
) -> tuple[Path, list[str]]:
    """Numbers as files, code by reference."""
    problem = certificate.problem
    demos = problem.demonstrations or problem.observed
    if problem.constraints:
        raise InvalidProblem(
            "a run with budgets that were evaluated by rollouts or drawn rows cannot be saved: a "
            "saved run has no evidence for them",
            "Save a certificate of the problem without its constraints",
        )
    index = CodeIndex(code, demos)
    if problem.has_states:
        index.add("world", problem.world)
        index.add("costs", problem.costs)
    else:
        index.add("simulator", problem.simulator)
    arrays: dict[str, Any] = {}
    form = _form(certificate.policy, "policy", index, arrays)
    place = _prepared(directory)
    save_arrays(place / POLICY, CODED_POLICY, INPUT_VERSION, arrays, policy=form)
    header, numbers = _coded_problem(certificate)
    save_arrays(place / PROBLEM, CODED_PROBLEM, INPUT_VERSION, numbers, **header)
    written = [CODE, POLICY, PROBLEM]
    records = None if problem.expectation.is_declared else expert_totals(problem)
    if records is not None:
        save_arrays(place / TOTALS, "totals", INPUT_VERSION, vars(records))
        written.append(TOTALS)
    if demos is not None:
        demos.save(place / DEMONSTRATIONS)
        written.append(DEMONSTRATIONS)
    facts = {
        "kind": CODE_KIND, "version": CODE_VERSION, "calls": index.calls, "parts": index.parts,
        "sources": index.sources,
    }  # fmt: skip
    _write(place / CODE, canonical(facts))
    return place, written


def _coded_problem(certificate: Certificate) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays."""
    problem = certificate.problem
    basis, world = problem.basis, problem.world if problem.has_states else None
    simulator, declared = problem.simulator, problem.expectation.is_declared
    most = float(np.maximum(np.abs(simulator.lowest), np.abs(simulator.highest)).sum())
    arrays = {
        "lowest": simulator.lowest, "highest": simulator.highest,
        "largest": np.array(problem.cost_functions.largest if problem.has_states else most),
        "extremes": np.asarray(basis.matrix),
    }  # fmt: skip
    arrays |= _vertices(problem)
    if declared:
        arrays["target"] = problem.target
    header = {
        "names": list(basis.names),
        "cost_class": problem.cost_class.describe(),
        "discount": float(simulator.discount),
        "declared": declared,
        "centred": _is_centred(problem),
        "num_states": None if world is None else int(world.num_states),
        "num_actions": None if world is None else int(world.num_actions),
    }
    return header, arrays


def _form(policy: Any, name: str, index: CodeIndex, arrays: dict[str, Any]) -> dict[str, Any]:
    """The form of a policy; its arrays go into `arrays`, what is code into `index` or is refused.

    features     coefficients, and features by reference; "soft features" likewise
    mixture      weights, and every candidate that has weight
    table        the probabilities of an explicit policy
    reference    nothing: the policy itself is code

    and those of policies that are numbers (`problem.policy_forms`).
    """
    found = form_of(policy)
    if found is not None:
        arrays |= {f"{part} of the {name}": array for part, array in found.arrays.items()}
        return found.words
    if index.holds(policy):
        index.add(name, policy)
        return {"form": "reference"}
    for form, kind in OVER_FEATURES.items():
        if isinstance(policy, kind):
            index.add(f"features of the {name}", policy.features)
            arrays[f"coefficients of the {name}"] = policy.coefficients
            return {"form": form}
    if isinstance(policy, MixturePolicy):
        arrays[f"weights of the {name}"] = policy.weights
        members = [
            _form(one, f"candidate {k} of the {name}", index, arrays)
            if weight > 0
            else {"form": "unused"}
            for k, (one, weight) in enumerate(zip(policy.candidates, policy.weights, strict=True))
        ]
        axes = policy.observation_axes
        return {"form": "mixture", "observation_axes": axes, "candidates": members}
    if isinstance(policy, Policy):
        arrays[f"probabilities of the {name}"] = policy.per_pair
        arrays[f"offsets of the {name}"] = policy.pairs.offsets
        if policy.pairs.numbers is not None:
            arrays[f"action numbers of the {name}"] = policy.pairs.numbers
        return {"form": "table"}
    index.add(name, policy)
    return {"form": "reference"}


def load_policy(directory: PathLike, *, trust_code: bool = False) -> AnyPolicy:
    """The policy of a saved run in a world of callables; candidates without weight are left out.

    A policy that is numbers needs no code, such as a grown mixture, or the clone of records. Of
    others the code is called: that of a stranger can do anything, so `trust_code=True` is needed.
    """
    place = Path(directory)
    if (place / AGREEMENT).exists():
        return cast(AnyPolicy, load_recorded_policy(place))
    facts = _code(place / CODE)
    header, arrays = load_arrays(place / POLICY, CODED_POLICY, INPUT_VERSION)
    stated: Any = header.get("policy")
    require_words(place / POLICY, stated)
    if not _asks_for_code(stated):
        return cast(AnyPolicy, _policy(stated, "policy", {}, arrays, place))
    if trust_code is not True:
        called = ", ".join(str(call["function"]) for call in facts["calls"])
        raise InvalidFile(
            f"the policy in {place} is made by calling {called}",
            "Give trust_code=True if you trust that code on this machine",
        )
    sources = facts["sources"]
    changed = [name for name, stated in sources.items() if stated != source_digest(name)]
    if changed:
        warnings.warn(
            f"the source of {', '.join(changed)} has changed since the run in {place} was saved: "
            "the policy that it makes now may be another one than was certified",
            UserWarning,
            stacklevel=2,
        )
    policy: AnyPolicy = _policy(stated, "policy", _made(facts, place), arrays, place)
    return policy


def _asks_for_code(stated: dict[str, Any]) -> bool:
    """Whether a form, or one inside of it, names code."""
    inner = stated["candidates"] if stated["form"] == "mixture" else ()
    return stated["form"] in ("reference", *OVER_FEATURES) or any(map(_asks_for_code, inner))


def _made(facts: dict[str, Any], place: Path) -> dict[str, Any]:
    """Call everything, in order, and find the parts of the run in the results."""
    made: list[Any] = []
    for call in facts["calls"]:
        given = {name: _argument(one, made, place) for name, one in call["arguments"].items()}
        made.append(located(call["function"])(**given))
    return {name: _found(one, made) for name, one in facts["parts"].items()}


def _code(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = dict(json.loads(path.read_bytes()))
        if facts["kind"] != CODE_KIND or facts["version"] != CODE_VERSION:
            raise ValueError(f"it holds {facts['kind']!r}")
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise InvalidFile(
            f"{path} does not name code ({fault})",
            "Give a directory that the certificate of a world of callables was saved in",
        ) from fault
    return facts


def _argument(stated: dict[str, Any], made: list[Any], place: Path) -> Any:
    if "value" in stated:
        return stated["value"]
    if "file" in stated:
        return Demonstrations.load(place / Path(stated["file"]).name)
    if "list" in stated:
        return [_argument(one, made, place) for one in stated["list"]]
    return _found(stated, made)


def _found(stated: dict[str, Any], made: list[Any]) -> Any:
    thing = made[stated["call"]]
    for step in stated["path"]:
        by_key = isinstance(step, int) or isinstance(thing, dict)
        thing = thing[step] if by_key else getattr(thing, step)
    return thing


def _policy(
    stated: dict[str, Any], name: str, parts: dict[str, Any], arrays: Arrays, place: Path
) -> Any:
    path, form = place / POLICY, stated["form"]
    if form == "reference":
        return parts[name]
    if form in OVER_FEATURES:
        coefficients = take(path, arrays, f"coefficients of the {name}")
        return OVER_FEATURES[form](parts[f"features of the {name}"], coefficients)
    if form == "table":
        law, offsets = (take(path, arrays, f"{word} of the {name}") for word in TABLE)
        return Policy(law, Pairs(offsets, arrays.get(f"action numbers of the {name}")))
    found = policy_of(stated, lambda part: take(path, arrays, f"{part} of the {name}"))
    if found is not None:
        return found
    if form != "mixture":
        raise InvalidFile(f"{path} holds a policy of the form {form!r}", "Save it again")
    weights = real_array(
        "weights", take(path, arrays, f"weights of the {name}"), ndim=1,
        size=len(stated["candidates"]), refusal=InvalidFile,
    )  # fmt: skip
    used = {
        k: _policy(one, f"candidate {k} of the {name}", parts, arrays, place)
        for k, one in enumerate(stated["candidates"])
        if one["form"] != "unused"
    }
    places = list(used)
    mixture = MixturePolicy(list(used.values()), weights[places], stated["observation_axes"])
    assign(mixture, weights=weights[places])
    return mixture


# The directory


def canonical(facts: Mapping[str, Any]) -> bytes:
    """The one way to write facts as JSON; floats come back to the last bit."""
    return (json.dumps(facts, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def digest_of(facts: Mapping[str, Any]) -> str:
    """SHA-256 of facts in canonical form."""
    return hashlib.sha256(canonical(facts)).hexdigest()


def _prepared(directory: PathLike) -> Path:
    """An empty directory with the mark of an unfinished save."""
    place = Path(directory)
    if place.exists() and not place.is_dir():
        raise InvalidFile(f"{place} is a file", "Give a directory")
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()) and not _is_run(place):
        raise InvalidFile(
            f"{place} holds other files and no saved run", "Give a new or an empty directory"
        )
    known = {CERTIFICATE, UNFINISHED, "witness.npz", *INPUTS}
    foreign = sorted(
        path.name for path in place.iterdir() if path.name not in known and path.name[0] != "."
    )
    if foreign:
        raise InvalidFile(
            f"{place} holds {foreign[0]!r} beside a saved run, and the audit would refuse it",
            "Move it elsewhere, or give a new directory",
        )
    _write(place / UNFINISHED, b"This run was not saved to its end.\n")
    for name in known - {UNFINISHED}:
        (place / name).unlink(missing_ok=True)
        for left_over in place.glob(f".{name}.*"):
            left_over.unlink()
    return place


def _finish(place: Path, facts: Mapping[str, Any], written: Iterable[str]) -> None:
    """Write the certificate: facts, the SHA-256 of all inputs, and a digest of both."""
    hashes = {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in written}
    signed = dict(facts) | {"inputs": hashes}
    _write(place / CERTIFICATE, canonical(signed | {"digest": digest_of(signed)}))
    (place / UNFINISHED).unlink()


def _write(path: Path, content: bytes) -> None:
    """A small file, atomically."""

    def put(stream: BinaryIO) -> None:
        stream.write(content)

    write_atomically(path, put)


def _is_run(place: Path) -> bool:
    """Whether `place` holds a run, or what an interrupted save left."""
    if (place / UNFINISHED).exists():
        return True
    try:
        facts = json.loads((place / CERTIFICATE).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict) and str(facts.get("kind")).startswith(KIND)
