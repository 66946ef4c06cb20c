"""A run in a world of callables, without its code and with it.

    without code   hashes and digest; ranges and extreme costs; lengths of the record; the expert's
                   estimates from the totals of its episodes; radii, truncation and rounding from
                   the statistics of walks and rows; shares of the failure probability; sums
    with code      sources as they were; sizes, names and ranges; totals of the episodes; possible
                   starts and steps; every statistic, from its seed (`coded_draws`)

Costs lie in Q = { psi : lowest <= psi <= highest, sum_i |psi_i| <= largest }; the stored `extremes`
are rows that are to be as large as any of them. Without code members of Q are made up, and none may
be larger than the stored rows. The evaluations are

    walks      radius of their mean, and the time behind their ends
    mixture    both of every candidate, weighed with theta
    rows       2 N h V1 + N h V2 + radius of Psi' u, from means and ranges of the rows

Reading a reference to code executes nothing and imports nothing. `Code.made` does both, and is
asked only when a directory is given, that is with `trust_code=True`.
"""

import importlib
import importlib.util
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.checker.archives import (
    Arrays,
    Floats,
    archive,
    canonical,
    json_object,
    reals,
    sha256,
    words,
)
from journeyman.checker.chain import EPSILON
from journeyman.checker.costs import (
    EUCLIDEAN,
    INFINITY,
    POLYTOPE,
    BallCosts,
    Costs,
    read_class,
    smaller_radii,
)
from journeyman.checker.draws import (
    Sample,
    Way,
    real_bytes,
    samples_of,
    seed_of,
    settle,
    stated_ways,
    whole_bytes,
)
from journeyman.checker.expert import (
    TRUNCATION,
    Estimate,
    order_of_totals,
    parts_of,
    plain_estimates,
)
from journeyman.checker.explicit import (
    FAILED,
    check_bound,
    check_conclusion,
    check_list,
    check_way,
    named,
    rounding_of,
)
from journeyman.checker.findings import (
    AGREEMENT,
    DerivedTerm,
    Findings,
    Refused,
    number,
)
from journeyman.checker.inputs import Observations, Records, read_episodes, read_observations
from journeyman.checker.policy import Evaluation
from journeyman.checker.premise_claims import (
    AGREE,
    CANDIDATES,
    COPIED,
    DECLARED,
    DRAWN,
    EXACT_LAWS,
    FRESH_ROLLOUTS,
    FRESH_ROWS,
    GIVEN,
    INDEPENDENT,
    LEVEL,
    LITTLE_CHANCE,
    NUMBER,
    ODD_BLOCK,
    POSSIBLE_STARTS,
    POSSIBLE_STEPS,
    RANGES,
    SEPARATE,
    SIMULATOR,
    STARTS,
    STEPS,
    TABLES,
    TAKEN,
    TESTED,
    Copies,
    check_copies,
    check_outcome,
    check_test,
    check_texts,
    copies_of,
    episode_texts,
    filled,
    printed_log,
)

KIND, VERSION = "journeyman code", 2
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
NAME = re.compile(rf"{MODULE.pattern}:{MODULE.pattern}")
DIGEST = re.compile(r"[0-9a-f]{64}")
REFERENCE_PARTS = {"kind", "version", "calls", "parts", "sources"}
DEMONSTRATIONS = "demonstrations.npz"


@dataclass(frozen=True)
class Code:
    """Calls in their order, where the parts of a run are found in their results, and the SHA-256 of
    the source file of every module (None of one without a file)."""

    calls: list[dict[str, Any]]
    parts: dict[str, dict[str, Any]]
    sources: dict[str, str | None]

    def __str__(self) -> str:
        """The calls as one would write them."""
        shown = (", ".join(f"{k}={_shown(v)}" for k, v in _sorted(call)) for call in self.calls)
        both = zip(self.calls, shown, strict=True)
        return ", ".join(f"{call['function']}({given})" for call, given in both)

    def check_sources(self, findings: Findings) -> None:
        """Whether all source files are what they were; this imports packages, and no more."""
        for module, stated in self.sources.items():
            if stated is None:
                findings.leave_open(f"the source of {module}, which has no file to be compared")
                continue
            found = importlib.util.find_spec(module)
            if not findings.check(
                found is not None,
                f"the module {module} is not found here: its folder has to be on the path, or the "
                "current one",
            ):
                continue
            path, now = Path((found and found.origin) or ""), None
            if path.suffix == ".py" and path.is_file():
                now = sha256(path.read_bytes())
            findings.check(
                now == stated,
                f"the source of {module} has changed: its SHA-256 is {now}, and was {stated} when "
                "the run was saved",
            )

    def made(self, directory: Path) -> dict[str, Any]:
        """Call everything, in order; this executes the code of the run."""
        results: list[Any] = []
        for call in self.calls:
            name = call["function"]
            try:
                given = {key: _given_values(one, results, directory) for key, one in _sorted(call)}
                results.append(function(name)(**given))
            except Exception as fault:
                words = fault or type(fault).__name__
                raise Refused(f"{name} cannot be called as it was stated ({words})") from fault
        return {name: _found(place, results) for name, place in self.parts.items()}


def read_code(data: bytes) -> Code:
    """What is stated of code, without touching it."""
    facts = json_object(data)
    if facts.get("kind") != KIND or facts.get("version") != VERSION or canonical(facts) != data:
        raise Refused("it is no list of references, or not in canonical form")
    if set(facts) != REFERENCE_PARTS or not isinstance(facts["calls"], list):
        raise Refused("it has other parts than calls, parts and sources")
    calls, sources = facts["calls"], facts["sources"]
    for place, call in enumerate(calls):
        if set(call) != {"function", "arguments"} or not NAME.fullmatch(str(call["function"])):
            raise Refused(f"call {place} names no function of a module")
        for stated in call["arguments"].values():
            _require_argument(stated, place)
    for part in facts["parts"].values():
        _require_place(part, len(calls))
    _require_sources(sources, calls)
    return Code(calls, facts["parts"], sources)


def _require_sources(sources: dict[str, Any], calls: list[dict[str, Any]]) -> None:
    """Digests of modules, those of all calls among them."""
    for module, stated in sources.items():
        if not MODULE.fullmatch(module) or not (stated is None or DIGEST.fullmatch(str(stated))):
            raise Refused(f"the source of {module!r} has no digest")
    for call in calls:
        if call["function"].split(":")[0] not in sources:
            raise Refused(f"the source of {call['function']} is not stored")


def function(name: str) -> Any:
    """What `module:name` means here; the module is imported."""
    module, path = name.split(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _sorted(call: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(call["arguments"].items())


def _shown(argument: dict[str, Any]) -> str:
    if "value" in argument:
        return repr(argument["value"])
    if "list" in argument:
        return f"[{', '.join(_shown(one) for one in argument['list'])}]"
    if "file" in argument:
        return str(argument["file"])
    return f"call {argument['call']}" + "".join(f".{step}" for step in argument["path"])


def _require_argument(stated: Any, number: int) -> None:
    if not isinstance(stated, dict) or not stated:
        raise Refused(f"an argument of call {number} is no argument")
    if set(stated) == {"list"} and isinstance(stated["list"], list):
        for one in stated["list"]:
            _require_argument(one, number)
    elif set(stated) == {"file"}:
        if stated["file"] != DEMONSTRATIONS:
            raise Refused(f"an argument of call {number} is the file {stated['file']!r}")
    elif set(stated) != {"value"}:
        _require_place(stated, number)


def _require_place(place: Any, count: int) -> None:
    """Of the result of one of the first `count` calls."""
    sound = isinstance(place, dict) and set(place) == {"call", "path"}
    if not sound or type(place["call"]) is not int or not 0 <= place["call"] < count:
        raise Refused("a part is not found in the result of an earlier call")
    steps = place["path"]
    if not isinstance(steps, list) or not all(type(step) in (int, str) for step in steps):
        raise Refused("the way to a part is no list of names and numbers")
    if any(isinstance(step, str) and step.startswith("_") for step in steps):
        raise Refused("the way to a part leads through what is not public")


def _given_values(stated: dict[str, Any], results: list[Any], directory: Path) -> Any:
    if "value" in stated:
        return stated["value"]
    if "list" in stated:
        return [_given_values(one, results, directory) for one in stated["list"]]
    if "file" in stated:
        return function("journeyman:Demonstrations.load")(directory / DEMONSTRATIONS)
    return _found(stated, results)


def _found(place: dict[str, Any], results: list[Any]) -> Any:
    thing = results[place["call"]]
    for step in place["path"]:
        by_key = isinstance(step, int) or isinstance(thing, dict)
        thing = thing[step] if by_key else getattr(thing, step)
    return thing


ALWAYS = ("code.json", "policy.npz", "problem.npz")
SOMETIMES = ("demonstrations.npz", "totals.npz")
WALKS, MIXTURE, ROWS = "rollouts", "mixture", "rows"
KINDS = {"E": WALKS, "E (mixture)": MIXTURE, "A (sampled)": ROWS}
PARTS = {
    WALKS: {"kind", "trajectories", "horizon", "seed"},
    MIXTURE: {"kind", "trajectories", "horizon", "seed", "rounds", "most_rounds"},
    ROWS: {"kind", "rows", "seed"},
}
LOWER_BOUNDS = ("on_data", "without_budgets", "true")
SUMS = ["Psi' u", "V1", "V2"]
PROBES = 100
"""Members of Q, made by filling costs in random orders."""
TESTED_STEPS = 1 << 16
"""Steps that are bet on: the first of the record."""
BATCHES, BATCH_WALKS = 16, 8
"""Of the test that walks are independent of one another."""
OWN = "journeyman."
POLICIES = {
    "FeaturePolicy": "features", "SoftFeaturePolicy": "soft features", "Policy": "table",
    "MixturePolicy": "mixture",
}  # fmt: skip
OVER_FEATURES = ("features", "soft features")
NUMBERS = ("visited states", "network", "linear values", "observations")
"""Forms of policies that are numbers, all of which are digested."""


@dataclass(frozen=True, eq=False)
class Question:
    """Cost class, ranges, discount, and what was declared of the expert."""

    names: list[str]
    costs: Costs
    lowest: Floats
    highest: Floats
    largest: float
    discount: float
    target: Floats | None
    """None when the expert is known from its record only."""
    sizes: tuple[int, int] | None
    """States and actions; None where there is only a simulator."""
    centred: bool
    """Whether unrecorded tails count as mid-range, or as nothing."""

    @property
    def horizon(self) -> float:
        return 1 / (1 - self.discount)


@dataclass(frozen=True, eq=False)
class CodedRun:
    """All inputs, what the certificate states, and how the policy was evaluated."""

    question: Question
    totals: Floats | None
    """What every demonstration cost, and the time without a record behind it."""
    missing: Floats
    records: Records | None
    observed: Observations | None
    """Demonstrations in a simulator."""
    form: dict[str, Any]
    arrays: Arrays
    code: Code
    ways: list[Way]
    evaluation: dict[str, Any]
    failure_probability: float
    same_numpy: bool

    @property
    def kind(self) -> str:
        """What was drawn."""
        return str(self.evaluation["kind"])

    @cached_property
    def samples(self) -> list[Sample]:
        return samples_of(self.ways, [kind for kind, drawn in KINDS.items() if drawn == self.kind])

    def numbers(self, what: str, name: str = "policy") -> Floats:
        """Numbers of the policy, or of one of its candidates."""
        return reals(self.arrays, f"{what} of the {name}", 1)

    @property
    def weights(self) -> Floats:
        weights = self.numbers("weights")
        if (weights < 0).any() or abs(weights.sum() - 1) > 1e-8:
            raise Refused("the weights of the candidates are no law")
        return weights

    @property
    def drawn(self) -> list[int]:
        """Numbers of the candidates that were rolled out; of a single policy, none."""
        return np.flatnonzero(self.weights).tolist() if self.kind == MIXTURE else []

    def places(self) -> list[tuple[int, int, Fraction]]:
        """Of every candidate: round, from 1, number within it, and part of the evaluation's failure
        probability, which is 1/(r (r + 1)) for all of round r, 1/R in the last of R."""
        count = self.weights.size
        sizes = self.evaluation["rounds"] or [count]
        most = self.evaluation["most_rounds"] or len(sizes)
        if sum(sizes) < count:
            raise Refused("the rounds have fewer candidates than the mixture")
        places = [
            (r, k, Fraction(1, r if r == most else r * (r + 1)) / size)
            for r, size in enumerate(sizes, 1)
            for k in range(size)
        ]
        return places[:count]

    def seed(self, parts: dict[str, Any] | None) -> int | None:
        """A digest of discount, ranges and policy; None where the policy is code that was not
        made."""
        content = list(_policy_bytes(self, self.form, "policy", parts))
        ends = (np.array([self.question.discount]), self.question.lowest, self.question.highest)
        if any(one is None for one in content):
            return None
        return seed_of(b"large\n", *map(real_bytes, ends), *(one or b"" for one in content))


def _policy_bytes(
    run: CodedRun, form: dict[str, Any], name: str, parts: dict[str, Any] | None
) -> Iterator[bytes | None]:
    kind = form["form"]
    if kind == "reference":
        yield from [None] if parts is None else _made_bytes(parts[name])
    elif kind in OVER_FEATURES:
        yield kind.encode() + b"\n" + real_bytes(run.numbers("coefficients", name))
    elif kind == "table":
        offsets = run.arrays[f"offsets of the {name}"]
        law = real_bytes(run.numbers("probabilities", name))
        yield b"table\n" + law + whole_bytes(offsets)
    elif kind in NUMBERS:
        yield from _number_bytes(form, _own_arrays(run.arrays, name))
    elif kind == "mixture":
        weights = run.numbers("weights", name)
        yield b"mixture\n" + real_bytes(weights[weights != 0])
        for k in np.flatnonzero(weights):
            member = form["candidates"][k]
            yield from _policy_bytes(run, member, f"candidate {k} of the {name}", parts)


def _own_arrays(arrays: Arrays, name: str) -> Arrays:
    """Arrays of one policy: those of its candidates have longer names."""
    ending = f" of the {name}"
    parts = {key.removesuffix(ending): one for key, one in arrays.items() if key.endswith(ending)}
    return {part: one for part, one in parts.items() if " of the " not in part}


def _number_bytes(words: dict[str, Any], arrays: Arrays) -> Iterator[bytes]:
    """The words as JSON; of every array its name, its shape and its entries."""
    yield json.dumps(words, sort_keys=True).encode() + b"\n"
    for part, array in sorted(arrays.items()):
        if not np.isfinite(array).all():
            raise Refused(f"{part} of a policy is not finite")
        entries = whole_bytes(array) if array.dtype.kind in "iu" else real_bytes(array)
        yield part.encode() + b"\n" + whole_bytes(array.shape) + entries


def _made_bytes(policy: Any) -> Iterator[bytes]:
    """A policy as code made it."""
    kinds = [one.__name__ for one in type(policy).__mro__ if one.__module__.startswith(OWN)]
    kind = next((POLICIES[one] for one in kinds if one in POLICIES), "code")
    if kind in OVER_FEATURES:
        yield kind.encode() + b"\n" + real_bytes(policy.coefficients)
    elif kind == "table":
        yield b"table\n" + real_bytes(policy.per_pair) + whole_bytes(policy.pairs.offsets)
    elif kind == "mixture":
        weights = np.asarray(policy.weights)
        yield b"mixture\n" + real_bytes(weights[weights != 0])
        for k in np.flatnonzero(weights):
            yield from _made_bytes(policy.candidates[k])
    else:
        found = function("journeyman.problem.policy_forms:form_of")(policy)
        yield from [b"code\n"] if found is None else _number_bytes(found.words, found.arrays)


def read_run(files: dict[str, bytes], facts: dict[str, Any]) -> CodedRun:
    """The inputs among `files`; the first that cannot be used is `Refused`, with its name."""
    question = named(files, "problem.npz", read_question)
    form, arrays = named(files, "policy.npz", _read_form)
    code = named(files, "code.json", read_code)
    totals = records = observed = None
    missing = np.zeros(0)
    if "totals.npz" in files:
        totals, missing = named(files, "totals.npz", lambda data: _read_totals(data, question))
    if "demonstrations.npz" in files and question.sizes is None:
        observed = named(files, "demonstrations.npz", read_observations)
    elif "demonstrations.npz" in files:
        records = named(files, "demonstrations.npz", lambda data: _read_records(data, question))
    if observed is not None and totals is None:
        raise Refused("demonstrations do not belong to this problem")
    if (question.target is None) != (totals is not None):
        raise Refused("totals of demonstrations and the kind of target do not go together")
    if totals is not None and (question.sizes is None) != (records is None):
        raise Refused("demonstrations and the kind of problem do not go together")
    run = CodedRun(
        question, totals, missing, records, observed, form, arrays, code, stated_ways(facts),
        _read_evaluation(facts["evaluation"]), facts["failure_probability"],
        facts["software"]["numpy"] == np.__version__,
    )  # fmt: skip
    if not run.samples:
        raise Refused("the combinations do not rest on the evaluation that is stated")
    return run


def read_question(data: bytes) -> Question:
    header, arrays = archive(data, "problem of callables", 1)
    names, discount = words(header, "names"), header.get("discount")
    if not isinstance(discount, float) or not 0 < discount < 1:
        raise Refused(f"its discount is {discount!r}")
    low, high = (reals(arrays, name, 1, len(names)) for name in ("lowest", "highest"))
    extremes = reals(arrays, "extremes", 2)
    if not names or extremes.shape[1] != len(names) or (low > high).any():
        raise Refused("ranges or extreme rows of the costs are not sound")
    if ("target" in arrays) != header.get("declared") or type(header.get("centred")) is not bool:
        raise Refused("it does not say whether the expert's expectations were declared")
    target = reals(arrays, "target", 1, len(names)) if "target" in arrays else None
    sizes = (header.get("num_states"), header.get("num_actions"))
    vertices = reals(arrays, "vertices", 2) if "vertices" in arrays else None
    if sizes != (None, None) and not all(type(one) is int and one > 0 for one in sizes):
        raise Refused(f"the world has sizes {sizes}")
    return Question(
        names, read_class(header["cost_class"], extremes, vertices), low, high,
        float(reals(arrays, "largest", 0)), discount, target,
        None if sizes == (None, None) else (int(sizes[0] or 0), int(sizes[1] or 0)),
        header["centred"],
    )  # fmt: skip


def _read_form(data: bytes) -> tuple[dict[str, Any], Arrays]:
    header, arrays = archive(data, "policy by reference", 1)
    form = header.get("policy")
    if not isinstance(form, dict) or "form" not in form:
        raise Refused("it names no policy")
    return form, arrays


def _read_totals(data: bytes, question: Question) -> tuple[Floats, Floats]:
    _, arrays = archive(data, "totals", 1)
    totals, missing = reals(arrays, "totals", 2), reals(arrays, "unrecorded", 1)
    if not missing.size or totals.shape != (missing.size, len(question.names)):
        raise Refused("it has not one total of every cost for every episode")
    if (missing < 0).any() or (missing > question.horizon * (1 + AGREEMENT)).any():
        raise Refused("an episode has more time behind it than there is")
    low, high = (question.costs.ends[0] - 1e-9, question.costs.ends[1] + 1e-9)
    time = (question.horizon - missing)[:, np.newaxis]
    slack = AGREEMENT * question.costs.norms * question.horizon
    if (totals < low * time - slack).any() or (totals > high * time + slack).any():
        raise Refused("an episode costs more or less than the ranges allow")
    return totals, missing


def _read_records(data: bytes, question: Question) -> Records:
    records, _, _ = read_episodes(data)
    most = question.sizes
    assert most is not None
    visited = max(records.state.max(), records.next_state.max())
    if visited >= most[0] or records.action.max() >= most[1]:
        raise Refused("it visits a state or takes an action that the world lacks")
    return records


def _read_evaluation(stated: Any) -> dict[str, Any]:
    kind = stated.get("kind") if isinstance(stated, dict) else None
    if kind not in PARTS or set(stated) != PARTS[kind]:
        raise Refused(f"an evaluation of the kind {kind!r} cannot be audited")
    counts = [stated[name] for name in PARTS[kind] - {"kind", "rounds", "most_rounds"}]
    rounds, most = stated.get("rounds") or [], stated.get("most_rounds")
    whole = all(type(one) is int and one >= 0 for one in (*counts, *rounds, most or 1))
    if not whole or any(size < 1 for size in rounds) or (most or len(rounds)) < len(rounds):
        raise Refused("a count or a seed of the evaluation is no whole number, or too small")
    return dict(stated)


# What only code can say


@dataclass(frozen=True)
class Tested:
    """Whether all recorded starts and steps can happen (None where the world does not say, or there
    are none), log e-values against their laws, and what was found about draws."""

    exact: Floats | None = None
    """The part of Psi' u that is not sampled."""
    starts: bool | None = None
    steps: bool | None = None
    log_starts: float | None = None
    log_steps: float | None = None
    copies: Copies | None = None
    tables: tuple[str, ...] = ()
    """Costs whose <phi_j, psi_i> are exact, at least in part."""
    followed: int | None = None
    """Steps there and back, where rows were drawn."""
    agree: bool = True
    log_draws: float | None = None
    separate: float | None = None
    """p-value of the test that walks are independent of one another."""


def check_run(findings: Findings, facts: dict[str, Any], run: CodedRun, place: Path | None) -> None:
    """All comparisons, with the code of the run where a directory is given."""
    tested: Tested | None = None
    if place is not None and not findings.findings:
        findings.attempt("the sources", lambda: run.code.check_sources(findings))
    if place is not None and not findings.findings:
        from journeyman.checker.coded_draws import check_code

        tested = findings.attempt("the code", lambda: check_code(findings, run, place))
    costs, h = run.question.costs, run.question.horizon
    stages: dict[str, Callable[[], None]] = {
        "the extreme costs": lambda: check_extremes(findings, run.question),
        "the record": lambda: _check_lengths(findings, run),
        "the statistics": lambda: _check_statistics(findings, run),
        "the gap": lambda: _check_gap(findings, run, tested),
        "the limits": lambda: _check_limits(findings, facts, run.question),
        "the premises": lambda: _check_premises(findings, facts, run, tested),
        "the conclusion": lambda: check_conclusion(
            findings, facts, rounding_of(h, costs.plain * h, 0)
        ),
    }
    for name, stage in stages.items():
        findings.attempt(name, stage)
    if tested is None:
        for what in _not_derived(run, trusted=place is not None):
            findings.leave_open(what)


def _not_derived(run: CodedRun, *, trusted: bool) -> Iterator[str]:
    yield "sizes, costs and ranges of the world"
    yield f"means and variances of the {'rows' if run.kind == ROWS else 'rollouts'}"
    if run.seed(None) is None:
        yield "the seed of the draws"
    if run.kind == ROWS:
        yield "the gap to the estimate"
    if run.records is not None or run.observed is not None:
        yield "what the episodes cost"
    if run.records is not None:
        yield "whether their starts and steps are possible"
    why = "was not called, for nothing said that it is trusted"
    if trusted:
        why = "failed, or was not called because of other findings"
    yield f"(the code {why}: {run.code})"


def check_extremes(findings: Findings, question: Question) -> None:
    """Whether the stored extreme rows are at least as large as what lies in the ranges."""
    low, high, costs = question.lowest, question.highest, question.costs
    members = _members(question)
    tiny = 1e-9 * costs.norms
    findings.check(
        (costs.ends[0] >= low - 1e-9 * np.abs(low)).all()
        and (costs.ends[1] <= high + 1e-9 * np.abs(high)).all(),
        "extreme rows of the costs lie outside their declared ranges",
    )
    findings.check(
        (members.min(axis=0) >= costs.ends[0] - tiny).all()
        and (members.max(axis=0) <= costs.ends[1] + tiny).all(),
        "costs in their declared ranges can lie outside the extreme rows",
    )
    measures = [costs.row_sizes]
    if costs.name != POLYTOPE:  # whose extreme rows are those of its vertices
        balls = (BallCosts(name, costs.scale, costs.matrix) for name in (INFINITY, EUCLIDEAN))
        measures += [ball.row_sizes for ball in balls]
    for measure in measures:
        for about in (np.zeros(low.size), costs.centre):
            sizes = [measure(rows - about).max() for rows in (members, costs.matrix)]
            findings.check(
                sizes[0] <= sizes[1] * (1 + 1e-9), "costs in their ranges can be larger than stated"
            )


def _members(question: Question) -> Floats:
    """Rows of Q: from the least costs on, one cost after the other is moved to an end of its range
    as far as the largest sum allows."""
    low, high, rng = question.lowest, question.highest, np.random.default_rng(0)
    rows = np.tile(np.minimum(np.maximum(low, 0.0), high), (PROBES + 2 * low.size, 1))
    for number_, row in enumerate(rows):
        left, order = question.largest - np.abs(row).sum(), rng.permutation(low.size)
        ends = np.where(rng.random(low.size) < 0.5, low, high)
        if number_ % 2:
            ends = np.where(np.abs(low) > np.abs(high), low, high)
        for i in order:
            step = min(abs(ends[i]) - abs(row[i]), max(left, 0.0))
            if step > 0:
                row[i] += np.sign(ends[i] if row[i] == 0 else row[i]) * step
                left -= step
    return rows


def _check_lengths(findings: Findings, run: CodedRun) -> None:
    """The time behind every episode follows from its length; none does behind one that terminated
    in a simulator."""
    record = run.records or run.observed
    if record is None or run.totals is None:
        return
    lengths = record.lengths
    if findings.equal("the number of episodes", run.missing.size, lengths.size):
        derived = run.question.discount ** lengths.astype(float) * run.question.horizon
        if run.observed is not None:
            derived = np.where(run.observed.terminated, 0.0, derived)
        findings.check(
            (np.abs(run.missing - derived) <= AGREEMENT * derived).all(),
            "the unrecorded time of an episode is not that of its length",
        )


# The gap


def _shares(run: CodedRun) -> tuple[float, float]:
    """Of the failure probability, for the expert and for the evaluation."""
    delta = run.failure_probability
    return (0.0, delta) if run.totals is None else (delta / 2, delta / 2)


def _check_statistics(findings: Findings, run: CodedRun) -> None:
    """Counts, seeds, ranges, shares of the failure probability; numbers a sample can have."""
    stated, share = run.evaluation, _shares(run)[1]
    wanted = {WALKS: ["rollouts"], ROWS: SUMS}.get(
        run.kind, [f"rollouts of candidate {k}" for k in run.drawn]
    )
    names = [one.name for one in run.samples]
    if not findings.equal("the list of samples", names, wanted):
        raise Refused("the samples are not those of the evaluation")
    seed = run.seed(None)
    if seed is not None:
        findings.equal("the seed of the draws", stated["seed"], seed)
    if run.kind == MIXTURE:
        places = run.places()
        shares = [float(places[k][2]) * share for k in run.drawn]
    else:
        varying = [bool((one.ranges > 0).any()) for one in run.samples]
        shares = [share / sum(varying) if varies else 0.0 for varies in varying]
    count = stated["rows"] if run.kind == ROWS else stated["trajectories"]
    for one, part in zip(run.samples, shares, strict=True):
        both = ((one.count, one.seed, one.horizon), (count, stated["seed"], stated.get("horizon")))
        findings.equal(f"count, seed and horizon of {one.name!r}", *both)
        what = f"the failure probability of {one.name!r}"
        findings.close(what, one.failure_probability, part)
        if run.kind == ROWS:
            most = one.ranges**2 / 4 * one.count / (one.count - 1) * (1 + 1e-9)
            small = (one.variances <= most).all() and one.unrecorded == 0
            findings.check(
                small and (np.abs(one.means) <= one.ranges * (1 + 1e-9)).all(),
                f"means and variances of {one.name!r} are larger than their ranges allow",
            )
        else:
            _check_walk_statistics(findings, run.question, one)


def _check_walk_statistics(findings: Findings, question: Question, one: Sample) -> None:
    costs, h = question.costs, question.horizon
    widths, sizes = costs.ranges * h, costs.norms * h
    if one.means.size != len(question.names):
        raise Refused("the rollouts have not one mean for every cost")
    for k, name in enumerate(question.names):
        what = f"the range of {name!r} in {one.name}"
        findings.close(what, float(one.ranges[k]), float(widths[k]), float(sizes[k]))
    if question.sizes is not None:
        cut = question.discount ** (one.horizon or 1) * h
        findings.close(f"the unrecorded time of {one.name}", one.unrecorded, cut)
    findings.check(0 <= one.unrecorded <= h, f"{one.name} leave {one.unrecorded!r} of time")
    time, slack = h - one.unrecorded, AGREEMENT * sizes
    low, high = costs.ends[0] * time - slack, costs.ends[1] * time + slack
    inside = (one.means >= low) & (one.means <= high)
    findings.check(inside.all(), f"the means of {one.name} lie outside their ranges")
    most = (widths / 2 * math.sqrt(one.count / (one.count - 1)) + costs.ranges * h) ** 2
    findings.check(
        (one.variances <= most + slack).all(), f"the variances of {one.name} are too large"
    )


def _check_gap(findings: Findings, run: CodedRun, tested: Tested | None) -> None:
    question = run.question
    exact = None if tested is None else tested.exact
    evaluation = _by_rows(run, exact) if run.kind == ROWS else _by_walks(run)
    estimates = {one.name: one for one in _estimates(run)}
    size = question.costs.size(question.horizon) + evaluation.size
    for way in run.ways:
        if not check_way(findings, way, {evaluation.kind}, estimates):
            continue
        estimate = estimates[way.estimate]
        gap: float | DerivedTerm = question.costs.gap(evaluation.expectations - estimate.values)
        if run.kind == ROWS and exact is None:
            least = 0.0 if question.costs.contains_zero else -math.inf
            formula = "gap_W(expectations - values)"
            gap = DerivedTerm("gap to the estimate", formula, least, estimate.name, math.inf)
        values = check_bound(findings, way, gap, evaluation.terms, estimate, size)
        for value, term in zip(values[1:], evaluation.terms, strict=False):
            if term.name == "rounding":
                findings.close(f"the rounding in {way.title}", value, term.value)
    check_list(findings, run.ways, {evaluation.kind}, estimates)


def _estimates(run: CodedRun) -> list[Estimate]:
    question = run.question
    if question.target is not None or run.totals is None:
        return [Estimate("declared", np.asarray(question.target), ())]
    share, count = _shares(run)[0], len(run.totals)
    first, second, _ = parts_of(count, shapeable=False)
    return plain_estimates(
        question.costs, question.horizon, run.totals, run.missing, (share * first, share * second),
        {way.estimate for way in run.ways}, order_of_totals(run.totals, run.missing),
        centred=question.centred,
    )  # fmt: skip


def _by_walks(run: CodedRun) -> Evaluation:
    """Kind E, of one policy or of every candidate weighed with theta."""
    question, samples = run.question, run.samples
    costs, h, horizon = question.costs, question.horizon, run.evaluation["horizon"]
    theta = run.weights[run.drawn] if run.kind == MIXTURE else np.ones(1)
    stated = run.ways[0].terms[1].get("formula") if run.kind == WALKS else None
    radii = [one.radius(costs, h, stated) for one in samples]
    formula, source, cut = radii[0][1], radii[0][2], TRUNCATION
    cut_source, summands = "recorded lengths", horizon
    if run.kind == MIXTURE:
        formulas = {formula for _, formula, _ in radii}
        formula = "sum_k theta_k s_k" if len(formulas) > 1 else f"sum_k theta_k ({formula})"
        count = run.evaluation["trajectories"]
        source = f"{theta.size} of {run.weights.size} candidates, {count} rollouts each"
        cut, cut_source = f"sum_k theta_k ({TRUNCATION})", source
        summands = horizon + theta.size
    missing = np.array([one.unrecorded for one in samples])
    moved = np.outer(missing, costs.centre) if question.centred else 0.0
    radius = math.fsum(theta * np.array([radius for radius, _, _ in radii]))
    lost = math.fsum(theta * costs.of_tails(centred=question.centred) * missing)
    terms = (
        DerivedTerm("rollout sampling", formula, radius, source),
        DerivedTerm("rollout truncation", cut, lost, cut_source),
        _rounding(question, summands, 1.0),
    )
    values = theta @ (np.array([one.means for one in samples]) + moved)
    return Evaluation("E (mixture)" if run.kind == MIXTURE else "E", values, terms)


def _by_rows(run: CodedRun, exact: Floats | None) -> Evaluation:
    """Kind A; `exact` is the part of Psi' u that is not sampled, None when not known."""
    question, theta = run.question, run.numbers("coefficients")
    expected, *violations = run.samples
    V1, V2 = (
        min(float(one.ranges[0]), float(one.means[0] + row_radii(one)[0])) for one in violations
    )
    size, mass = question.costs.plain * question.horizon, max(1.0, 3 * math.fsum(abs(theta)))
    source, radii = f"{expected.count} rows", row_radii(expected)
    off = question.costs.largest_gap(-radii, radii)
    terms = (
        DerivedTerm("negativity", "2 N h V1", 2 * size * V1, source),
        DerivedTerm("flow violation", "N h V2", size * V2, source),
        DerivedTerm("expectations", "radius of Psi' u", off, source),
        _rounding(question, theta.size + expected.count, mass),
    )
    means = expected.means if exact is None else expected.means + exact
    return Evaluation("A (sampled)", means, terms, size * mass)


def row_radii(sample: Sample) -> Floats:
    """Of every mean that varies: the smaller of two radii, to both sides."""
    varying = sample.ranges > 0
    delta = sample.failure_probability / (4 * max(1, int(varying.sum())))
    if not varying.any():
        return np.zeros(varying.size)
    radii = smaller_radii(sample.variances, sample.ranges, sample.count, delta)
    return np.where(varying, radii, 0.0)


def _rounding(question: Question, summands: int, mass: float) -> DerivedTerm:
    """What double precision can have hidden."""
    h, formula = question.horizon, "2 eps (summands + costs + 32) (1 + h) N h"
    value = 2 * EPSILON * (summands + len(question.names) + 32) * (1 + h)
    formula = formula if mass == 1 else f"{formula} max(1, 3 |theta|_1)"
    return DerivedTerm(
        "rounding", formula, value * question.costs.plain * h * mass, "double precision"
    )


def _check_limits(findings: Findings, facts: dict[str, Any], question: Question) -> None:
    """Trivial bound and lower bound; what is not claimed in such a world."""
    costs, h, target = question.costs, question.horizon, question.target
    size, trivial = costs.size(h), costs.trivial(h, target)
    findings.close("the trivial bound", number(facts["trivial_bound"]), trivial, size)
    lower = 0.0 if costs.contains_zero else -costs.trivial(h, target, -1.0)
    findings.close("the least possible", number(facts["least_possible"]), lower, size)
    bounds = {name: number(value) for name, value in facts["lower_bounds"].items()}
    findings.equal("the radius of the expert", bounds.pop("expert_radius", None), math.inf)
    findings.equal("the list of lower bounds", sorted(bounds), sorted(LOWER_BOUNDS))
    for name, stated in bounds.items():
        findings.close(f"the lower bound {name!r}", stated, lower, size)
    rest = ("gap_on_data", "expectations", "alarm", "budgets", "expert_intervals")
    empty = [facts[name] for name in (*rest, "apprentice_intervals")]
    findings.equal("what only an explicit world has", empty, [None, None, False, [], [], []])


# Premises


def _check_premises(
    findings: Findings, facts: dict[str, Any], run: CodedRun, tested: Tested | None
) -> None:
    """That the list is complete, and each entry; outcomes of tests only where they were found."""
    names = [one["name"] for one in facts["premises"]]
    stated = dict(zip(names, facts["premises"], strict=True))
    tables = [TABLES] * (run.kind == ROWS and TABLES in names)
    rows = [AGREE, DRAWN, TAKEN] if run.kind == ROWS else [SEPARATE]
    if not findings.equal("the list of premises", names, [*_names(run, stated), *tables, *rows]):
        return
    if tested is not None and run.kind == ROWS:
        findings.equal("the premise about tables", bool(tables), bool(tested.tables))
    check_texts(findings, facts["premises"], _given(run, stated, tested))
    tests = {POSSIBLE_STARTS, POSSIBLE_STEPS, STARTS, STEPS, AGREE, DRAWN, SEPARATE}
    for name in set(names) - tests - ({COPIED} if run.records is not None else set()):
        check_outcome(findings, stated[name], DECLARED, None)
    if COPIED in stated:
        _check_copied(findings, run, stated[COPIED], tested)
    if run.records is not None and POSSIBLE_STARTS in stated:
        _check_record(findings, run, run.records, stated, tested)
    if run.kind == ROWS:
        _check_rows(findings, run, stated, tested)
    else:
        _check_separate(findings, run, stated[SEPARATE], tested)


def _names(run: CodedRun, stated: dict[str, Any]) -> list[str]:
    """Which premises there have to be; laws are bet against where all is possible."""
    simulated = run.question.sizes is None
    found = [RANGES, GIVEN, SIMULATOR if simulated else EXACT_LAWS]
    if run.totals is not None and simulated:
        found = [RANGES, INDEPENDENT, COPIED, SIMULATOR]
    elif run.totals is not None:
        bets = ((POSSIBLE_STARTS, STARTS), (POSSIBLE_STEPS, STEPS))
        possible = [law for name, law in bets if stated.get(name, {}).get("status") == TESTED]
        found = [RANGES, INDEPENDENT, COPIED, POSSIBLE_STARTS, POSSIBLE_STEPS, *possible]
    return [*found, _drawing(run)]


def _drawing(run: CodedRun) -> str:
    """The premise about draws."""
    return {MIXTURE: CANDIDATES, ROWS: FRESH_ROWS}.get(run.kind, FRESH_ROLLOUTS)


def _given(run: CodedRun, stated: dict[str, Any], tested: Tested | None) -> dict[str, Any]:
    """What the texts of a run say of it; of what only code knows, any number."""
    drawn = run.evaluation
    several = f" of each of {len(run.drawn)} candidates" if len(run.drawn) > 1 else ""
    some = "|".join(map(re.escape, run.question.names))
    found: dict[str, Any] = {
        "draws": drawn.get("rows", drawn.get("trajectories")), "seed": drawn["seed"],
        "each": several, "tables": re.compile(f"(?:{some})(?:, (?:{some}))*"),
    }  # fmt: skip
    if run.kind == MIXTURE:
        found["rounds"] = ", ".join(map(str, drawn["rounds"] or [run.weights.size]))
    if tested is not None:
        found["tables"] = ", ".join(tested.tables)
        found |= {} if tested.followed is None else {"followed": tested.followed}
    if run.records is not None:
        sampled = stated.get(POSSIBLE_STEPS, {}).get("status") == DECLARED
        cause = "the world can only be sampled" if sampled else LITTLE_CHANCE
        found |= episode_texts(run.records, cause)
        found["sample of steps"] = f"{min(run.records.state.size, TESTED_STEPS)} steps"
        found["odd start"] = re.compile(f"(?:single states|{filled(ODD_BLOCK)})")
    elif run.totals is not None:
        repeats = len(run.totals) - len({row.tobytes() for row in run.totals + 0.0})
        found |= {
            "episodes": len(run.totals), "repeats": repeats, "ended": "",
            "cause": "totals do not show it", "equal": "have the totals of another",
        }  # fmt: skip
    return found


def _check_copied(
    findings: Findings, run: CodedRun, stated: dict[str, Any], tested: Tested | None
) -> None:
    """Equal episodes can be counted without code; how likely they are it has to say."""
    if run.records is None:
        return
    copies = None if tested is None else tested.copies
    if copies is None:
        copies = copies_of(run.records, None)
        if (stated["status"], stated["level"]) != (DECLARED, None):
            check_test(findings, stated, printed_log(stated), copies.episodes)
    check_copies(findings, stated, copies)


def _check_record(
    findings: Findings, run: CodedRun, records: Records, stated: dict[str, Any],
    tested: Tested | None,
) -> None:  # fmt: skip
    """Possible starts and steps, and bets against their laws."""
    starts, steps = len(records), records.state.size
    found = tested or Tested()
    for name, holds in ((POSSIBLE_STARTS, found.starts), (POSSIBLE_STEPS, found.steps)):
        one = stated[name]
        both = (one["status"], one["level"])
        sound = both in ((TESTED, 0.0), (FAILED, 0.0), (DECLARED, None))
        findings.check(sound, f"the premise that {name} has the status and level {both!r}")
        if tested is not None:
            outcome = DECLARED if holds is None else TESTED if holds else FAILED
            findings.equal(f"the status that {name}", one["status"], outcome)
    for name, count, log_value in (
        (STARTS, starts, found.log_starts), (STEPS, min(steps, TESTED_STEPS), found.log_steps),
    ):  # fmt: skip
        if name in stated:
            _check_bet(findings, run, stated[name], log_value, count, exactly=name == STEPS)


def _check_bet(
    findings: Findings, run: CodedRun, stated: dict[str, Any], log_value: float | None, count: int,
    *, exactly: bool = False,
) -> None:  # fmt: skip
    """A test by an e-value: as the code gives it or, without code, as it is stated."""
    attempt = Findings()
    value = printed_log(stated) if log_value is None else log_value
    check_test(attempt, stated, value, count)
    settle(findings, attempt, same_numpy=run.same_numpy or exactly)


def _check_rows(
    findings: Findings, run: CodedRun, stated: dict[str, Any], tested: Tested | None
) -> None:
    """Steps there and back, and bets against the laws of draws."""
    agree, found = stated[AGREE], tested or Tested()
    both = (agree["status"], agree["level"])
    findings.check(both in ((TESTED, 0.0), (FAILED, 0.0)), f"the premise that {AGREE} is no test")
    if found.followed is not None:
        outcome = TESTED if found.agree else FAILED
        findings.equal(f"the status that {AGREE}", agree["status"], outcome)
    _check_bet(findings, run, stated[DRAWN], found.log_draws, run.evaluation["rows"])


def _check_separate(
    findings: Findings, run: CodedRun, stated: dict[str, Any], tested: Tested | None
) -> None:
    """A test by batches of walks: its level, its p-value, and what follows from it."""
    attempt = Findings()
    findings.equal(f"the level of the test that {SEPARATE}", stated["level"], LEVEL)
    says = re.match(f"p-value ({NUMBER}) from ", stated["detail"])
    if says is None:
        findings.check(False, f"the test that {SEPARATE} names no p-value")
        return
    value = float(says[1])
    if tested is not None and tested.separate is not None:
        close = abs(value - tested.separate) <= 0.01 * tested.separate
        attempt.check(close, f"the p-value that {SEPARATE} is {value!r}, not {tested.separate!r}")
        value = tested.separate
    outcome = FAILED if value <= LEVEL else TESTED
    attempt.equal(f"the status that {SEPARATE}", stated["status"], outcome)
    settle(findings, attempt, same_numpy=run.same_numpy)
