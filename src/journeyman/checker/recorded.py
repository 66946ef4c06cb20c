"""A run of which nothing but records is known.

    Z_j = sum_t g^t (1 - p_0 ... p_t) + tail,   tail = g^T h if episode j was cut off after T steps,
                                                       g^T h (1 - p_0 ... p_{T-1}) if it terminated

with p_t how likely the policy takes the recorded action (or min(1, p_t/logged probability)), mixed
with the weights of the policies that the episode's fold is compared with. The bound is the width of
the declared range times the mean over folds of upper bounds of E Z, each the greatest mean that a
gambler cannot refute at the fold's part of the failure probability.

Probabilities are derived from policies that are numbers: tables, laws of visited states, networks,
values that are linear in features.
Those of policies that were not saved are taken as they are, and that is said.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.checker.archives import Arrays, Bools, Floats, Ints, archive, reals, wholes
from journeyman.checker.betting import upper_mean
from journeyman.checker.draws import Way, stated_ways
from journeyman.checker.explicit import check_conclusion, named, rounding_of
from journeyman.checker.findings import DerivedTerm, Findings, Refused, number
from journeyman.checker.inputs import read_observations

ALWAYS = ("agreement.npz", "demonstrations.npz", "policy.npz", "problem.npz")
SOMETIMES = ()
KIND, ESTIMATE = "agreement", "held-out episodes"
LAYERS = ("weights_1", "bias_1", "weights_2", "bias_2", "weights_3", "bias_3")
CLOSE = 1e-9
"""Of probabilities and values that are computed a second time."""
EQUAL, ROUNDING = 1e-10, 1e-12
"""Values linear in features: those that differ by less than `EQUAL` of the largest are equal for
the policy; and by how much of their summands they are taken to be rounded."""
REACH = 5.0
"""Units of spread at which quadratic features stop to grow."""
DECLARED, TESTED = "declared", "tested, not refuted"


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """All inputs."""

    discount: float
    low: float
    high: float
    use_logged: bool
    states: NDArray[Any]
    """Of every step."""
    actions: Ints
    offsets: Ints
    terminated: Bools
    logged: Floats | None
    visited: NDArray[Any]
    """All states, those at the ends of records too."""
    chances: Floats
    weights: Floats
    folds: Ints
    forms: list[dict[str, Any]]
    arrays: Arrays
    ways: list[Way]
    failure_probability: float

    @property
    def horizon(self) -> float:
        return 1 / (1 - self.discount)

    @property
    def count(self) -> int:
        return self.terminated.size


def read_run(files: dict[str, bytes], facts: dict[str, Any]) -> RecordedRun:
    """The inputs among `files`; the first that cannot be used is `Refused`, with its name."""
    discount, low, high, use_logged = named(files, "problem.npz", _read_problem)
    seen = named(files, "demonstrations.npz", read_observations)
    if use_logged and seen.logged is None:
        raise Refused("demonstrations.npz: it has no logged probabilities, and they count")
    chances, weights, folds = named(
        files, "agreement.npz", partial(_read_agreement, offsets=seen.offsets)
    )
    forms, arrays = named(files, "policy.npz", partial(_read_policies, count=weights.shape[1]))
    return RecordedRun(
        discount, low, high, use_logged, seen.states[seen.steps], seen.actions, seen.offsets,
        seen.terminated, seen.logged, seen.states, chances, weights, folds, forms, arrays,
        stated_ways(facts), facts["failure_probability"],
    )  # fmt: skip


def _read_problem(data: bytes) -> tuple[float, float, float, bool]:
    header, arrays = archive(data, "problem of records", 1)
    discount, use = header.get("discount"), header.get("use_probabilities")
    low, high = reals(arrays, "cost_range", 1, 2).tolist()
    if not isinstance(discount, float) or not 0 < discount < 1 or not isinstance(use, bool):
        raise Refused(f"its discount is {discount!r}, logged probabilities {use!r}")
    if not low <= 0 <= high:
        raise Refused("zero, the cost after an end, lies outside its range of costs")
    return discount, low, high, use


def _read_agreement(data: bytes, offsets: Ints) -> tuple[Floats, Floats, Ints]:
    _, arrays = archive(data, "agreement", 1)
    chances, weights = reals(arrays, "probabilities", 2), reals(arrays, "weights", 2)
    folds = wholes(arrays, "folds")
    if weights.shape[1] != len(chances) or chances.shape[1] != offsets[-1]:
        raise Refused("it has not one probability for every policy and step")
    if folds.size != offsets.size - 1 or sorted(set(folds.tolist())) != list(range(len(weights))):
        raise Refused("its folds are not those of the episodes")
    if (weights < 0).any() or (np.abs(weights.sum(axis=1) - 1) > 1e-8).any():
        raise Refused("weights of policies are no law")
    if (chances < 0).any() or (chances > 1 + 1e-12).any():
        raise Refused("a probability is not between 0 and 1")
    return chances, weights, folds


def _read_policies(data: bytes, count: int) -> tuple[list[dict[str, Any]], Arrays]:
    header, arrays = archive(data, "policies beside records", 1)
    forms = header.get("policies")
    if not isinstance(forms, list) or len(forms) != count:
        raise Refused(f"it does not hold {count} policies")
    reals(arrays, "weights", 1, count)
    return forms, arrays


def check_run(findings: Findings, facts: dict[str, Any], run: RecordedRun) -> None:
    """All comparisons."""
    largest = max(-run.low, run.high)
    stages: dict[str, Callable[[], None]] = {
        "the policies": lambda: _check_policies(findings, run),
        "the bound": lambda: _check_bound(findings, run),
        "the limits": lambda: _check_limits(findings, facts, run),
        "the premises": lambda: _check_premises(findings, facts, run),
        "the conclusion": lambda: check_conclusion(
            findings, facts, rounding_of(run.horizon, largest * run.horizon, 0)
        ),
    }
    for name, stage in stages.items():
        findings.attempt(name, stage)


# Policies


def _check_policies(findings: Findings, run: RecordedRun) -> None:
    weights = reals(run.arrays, "weights", 1)
    derived = run.weights[run.folds].mean(axis=0)
    findings.check(
        np.abs(weights - derived).max() <= 1e-9, "the weights of the policies are not those tested"
    )
    episodes = np.repeat(np.arange(run.count), np.diff(run.offsets))
    for k, form in enumerate(run.forms):
        asked = run.weights[run.folds[episodes], k] > 0
        kind = form.get("form")
        if kind == "not saved":
            findings.leave_open(f"the probabilities of policy {k}, a {form.get('kind')}")
            continue
        laws = _LAWS.get(str(kind))
        if not findings.check(laws is not None, f"policy {k} has the unknown form {kind!r}"):
            continue
        assert laws is not None
        low, high = laws(run, k, form, asked)
        stated = run.chances[k, asked]
        undecided = int(np.count_nonzero((low < high) & (stated > low)))
        if undecided:
            findings.leave_open(
                f"which action policy {k} takes in {undecided} steps, where the values of several "
                "are equal up to rounding"
            )
        wrong = ~((stated >= low - CLOSE) & (stated <= high + CLOSE))
        findings.check(
            not wrong.any(),
            f"policy {k} does not take the action of step "
            f"{int(np.flatnonzero(asked)[np.argmax(wrong)]) if wrong.any() else 0} with the "
            "probability that is stated",
        )


def _of_columns(laws: Floats, actions: Ints) -> Floats:
    """The columns of actions; an action without one is never taken."""
    known = (actions >= 0) & (actions < laws.shape[1])
    return np.where(known, laws[np.arange(len(laws)), np.where(known, actions, 0)], 0.0)


def _require_laws(laws: Floats) -> Floats:
    if (laws < 0).any() or (np.abs(laws.sum(axis=1) - 1) > 1e-8).any():
        raise Refused("a policy holds what is no law")
    return laws


def _visited(run: RecordedRun, k: int, form: Any, asked: Bools) -> tuple[Floats, Floats]:
    states, laws = wholes(run.arrays, f"{k}_states"), reals(run.arrays, f"{k}_laws", 2)
    if len(laws) != states.size + 1 or (np.diff(states) <= 0).any():
        raise Refused(f"policy {k} has not one law for every state it knows, and one for others")
    rows = {int(state): row for row, state in enumerate(states)}
    place = [rows.get(int(state), states.size) for state in run.states[asked]]
    found = _of_columns(_require_laws(laws)[place], run.actions[asked])
    return found, found


def _table(run: RecordedRun, k: int, form: Any, asked: Bools) -> tuple[Floats, Floats]:
    law, first = reals(run.arrays, f"{k}_law", 1), wholes(run.arrays, f"{k}_offsets")
    numbers = run.arrays.get(f"{k}_numbers")
    if first[0] != 0 or first[-1] != law.size or (np.diff(first) < 1).any():
        raise Refused(f"policy {k} is no table")
    state_of = np.repeat(np.arange(first.size - 1), np.diff(first))
    if (law < 0).any() or (np.abs(np.bincount(state_of, law) - 1) > 1e-8).any():
        raise Refused(f"policy {k} holds what is no law")
    if numbers is None:
        numbers = np.arange(law.size) - first[state_of]
    rows = {(int(s), int(a)): float(p) for s, a, p in zip(state_of, numbers, law, strict=True)}
    steps = zip(run.states[asked].tolist(), run.actions[asked].tolist(), strict=True)
    found = np.array([rows.get(step, 0.0) for step in steps])
    return found, found


def _network(run: RecordedRun, k: int, form: Any, asked: Bools) -> tuple[Floats, Floats]:
    seen = run.states[asked].astype(np.float64)
    rows = seen.reshape(len(seen), -1)
    mean, scale = (reals(run.arrays, f"{k}_{name}", 1) for name in ("mean", "scale"))
    layers = [reals(run.arrays, f"{k}_{name}", 2 - place % 2) for place, name in enumerate(LAYERS)]
    values = (rows - mean) / scale
    for place in (0, 2, 4):
        values = np.einsum("ij,jk->ik", values, layers[place]) + layers[place + 1]
        values = np.tanh(values) if place < 4 else values
    _require_finite(values, k)
    greedy = form.get("greedy")
    if not isinstance(greedy, bool):
        raise Refused(f"policy {k} does not say whether it takes its likeliest action")
    if greedy:
        near = CLOSE * np.abs(values).max(axis=1, keepdims=True)
        several = (values >= values.max(axis=1, keepdims=True) - near).sum(axis=1) > 1
        return _of_greatest(values, near, several, run.actions[asked])
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    found = _of_columns(powers / powers.sum(axis=1, keepdims=True), run.actions[asked])
    return found, found


def _require_finite(values: Floats, k: int) -> None:
    if not np.isfinite(values).all():
        raise Refused(f"policy {k} has values that are not finite")


def _of_greatest(
    values: Floats, near: Floats, undecided: Bools, actions: Ints
) -> tuple[Floats, Floats]:
    """Least and greatest probability of actions, where the first is taken whose value is near the
    greatest; where it is undecided which one that is, any of those near it may be."""
    known = (actions >= 0) & (actions < values.shape[1])
    close = values >= values.max(axis=1, keepdims=True) - near
    one_of_them = known & close[np.arange(len(values)), np.where(known, actions, 0)]
    chosen = np.where(undecided, one_of_them, known & (close.argmax(axis=1) == actions))
    return np.where(chosen & ~undecided, 1.0, 0.0), np.where(chosen, 1.0, 0.0)


def _linear(run: RecordedRun, k: int, form: Any, asked: Bools) -> tuple[Floats, Floats]:
    features = _features(run, k, form, run.states[asked])
    coefficients = reals(run.arrays, f"{k}_coefficients", 2, features.shape[1])
    first = form.get("first_action")
    if type(first) is not int:
        raise Refused(f"policy {k} does not number its actions")
    values = -np.einsum("ij,jk->ik", features, coefficients)
    summands = np.einsum("ij,jk->ik", np.abs(features), np.abs(coefficients))
    _require_finite(summands, k)
    near = EQUAL * np.abs(values).max(axis=1, keepdims=True)
    off = ROUNDING * summands.max(axis=1, keepdims=True)
    behind = values.max(axis=1, keepdims=True) - values
    certain, possible = behind <= near - off, behind <= near + off
    alone = possible.sum(axis=1) == 1
    decided = (off <= near)[:, 0] & (certain.argmax(axis=1) == possible.argmax(axis=1))
    undecided = ~(alone | decided)
    return _of_greatest(values, near + off, undecided, run.actions[asked] - first)


def _features(run: RecordedRun, k: int, form: Any, states: NDArray[Any]) -> Floats:
    kind = form.get("features")
    if kind == "states":
        known = wholes(run.arrays, f"{k}_states")
        return np.asarray(states[:, np.newaxis] == known, dtype=np.float64)
    rows = states.astype(np.float64).reshape(len(states), -1)
    mean, scale = (reals(run.arrays, f"{k}_{name}", 1) for name in ("mean", "scale"))
    z = (rows - mean) / scale
    one = np.ones((len(z), 1))
    if kind == "quadratic":
        z = np.minimum(np.maximum(z, -REACH), REACH)
        products = [z[:, [i]] * z[:, i:] for i in range(z.shape[1])]
        return np.hstack([one, z, *products])
    if kind != "radial":
        raise Refused(f"policy {k} has features of the kind {kind!r}")
    centres, width = reals(run.arrays, f"{k}_centres", 2), float(reals(run.arrays, f"{k}_width", 0))
    squares = ((z[:, np.newaxis] - centres) ** 2).sum(axis=2)
    return np.hstack([np.exp(-squares / (2 * width**2)), one])


_LAWS: dict[str, Callable[..., tuple[Floats, Floats]]] = {
    "visited states": _visited, "table": _table, "network": _network, "linear values": _linear,
}  # fmt: skip


# The bound


def _disagreement(run: RecordedRun) -> tuple[Floats, Floats]:
    """Z of every episode, and its part behind a record that was cut off."""
    g, h = run.discount, run.horizon
    found, cut = np.zeros(run.count), np.zeros(run.count)
    for j in range(run.count):
        start, stop = int(run.offsets[j]), int(run.offsets[j + 1])
        tail = g ** (stop - start) * h
        cut[j] = 0.0 if run.terminated[j] else tail
        for k, weight in enumerate(run.weights[run.folds[j]]):
            if weight == 0:
                continue
            left, time, total = 1.0, 1.0, []
            for step in range(start, stop):
                chance = float(run.chances[k, step])
                if run.use_logged and run.logged is not None:
                    chance = min(1.0, chance / float(run.logged[step]))
                left *= chance
                total.append(time * (1 - left))
                time *= g
            total.append((1 - left) * tail if run.terminated[j] else tail)
            found[j] += weight * min(math.fsum(total), h)
    return np.minimum(found, h), cut


def _check_bound(findings: Findings, run: RecordedRun) -> None:
    found, cut = _disagreement(run)
    h, width = run.horizon, run.high - run.low
    number_of_folds = len(run.weights)
    upper = math.fsum(
        float((run.folds == k).mean())
        * upper_mean(found[run.folds == k], h, run.failure_probability / number_of_folds)
        for k in range(number_of_folds)
    )
    mean, behind = float(found.mean()), float(np.minimum(cut, found).mean())
    source = f"{run.count} held-out episodes"
    terms = [
        DerivedTerm("disagreement", "S mean(Z - cut)", width * (mean - behind), source),
        DerivedTerm("truncation", "S mean(cut)", width * behind, "recorded lengths"),
        DerivedTerm("sampling", "S (U - mean(Z))", width * max(upper - mean, 0.0), source),
    ]
    names = [(way.kind, way.estimate) for way in run.ways]
    if not findings.check(names == [(KIND, ESTIMATE)], f"the combinations are {names}"):
        return
    (way,) = run.ways
    findings.check(way.statistics == [], "the combination names samples, and nothing was drawn")
    values = findings.terms(way.title, way.terms, terms, width * h)
    findings.total(way.title, way.bound, values)


def _check_limits(findings: Findings, facts: dict[str, Any], run: RecordedRun) -> None:
    """What no gap exceeds; that the zero cost is in the range; and what is absent."""
    trivial = (run.high - run.low) * run.horizon
    findings.close("the trivial bound", number(facts["trivial_bound"]), trivial, trivial)
    findings.check(
        number(facts["trivial_bound"]) >= trivial, "the trivial bound is below what costs allow"
    )
    findings.equal("the least possible gap", facts["least_possible"], 0.0)
    bounds = {"on_data": 0.0, "without_budgets": 0.0, "true": 0.0, "expert_radius": "inf"}
    findings.equal("the lower bounds", facts["lower_bounds"], bounds)
    for name in ("budgets", "expert_intervals", "apprentice_intervals"):
        findings.equal(name, facts[name], [])
    for name in ("evaluation", "expectations", "gap_on_data"):
        findings.equal(name, facts[name], None)
    findings.equal("the alarm", facts["alarm"], False)


def _check_premises(findings: Findings, facts: dict[str, Any], run: RecordedRun) -> None:
    count, repeats = run.count, run.count - len(set(_contents(run)))
    ended = int(run.terminated.sum())
    crossed = len(run.weights) > 1
    first = (
        f"cross-fitted: each of the {count} episodes meets a policy that was fitted to the "
        "others; that fitting looked at nothing else is declared"
        if crossed
        else f"none of the {count} episodes was used to fit, to tune or to choose the policy"
    )
    wanted = [
        ("the policy is independent of the held-out episodes", first),
        (
            "independent episodes",
            f"the {count} episodes are taken to be independent runs of one expert, from the starts "
            f"that the policy will meet, none left out for what it shows; {repeats} of them equal "
            "an earlier one",
        ),
        (
            "the record shows what the expert did",
            "the recorded actions are all that the expert does to the world, and the recorded "
            "states are what the policy will act on",
        ),
        (
            "costs lie in their declared range",
            f"every cost of a step lies between {run.low:g} and {run.high:g}, and is 0 after an "
            f"end; the discount is {run.discount:g}",
        ),
        (
            "terminated episodes have ended",
            f"{ended} of {count} episodes are marked terminated: nothing follows and nothing costs "
            "after them, for any policy that did the same; the others count as cut off",
        ),
    ]
    if run.use_logged:
        wanted.append(
            (
                "logged probabilities are conditional on all that the expert acted on",
                "an average over what the record does not hold breaks it",
            )
        )
    stated = facts["premises"]
    findings.equal("the premises", [one["name"] for one in stated], [name for name, _ in wanted])
    for place, (one, (name, detail)) in enumerate(zip(stated, wanted, strict=False)):
        tested = crossed and place == 0
        findings.equal(f"what is said of {name!r}", one["detail"], detail)
        findings.equal(f"the outcome of {name!r}", one["status"], TESTED if tested else DECLARED)
        findings.equal(f"the level of {name!r}", one["level"], 0.0 if tested else None)
        findings.equal(f"the parts of {name!r}", sorted(one), ["detail", "level", "name", "status"])


def _contents(run: RecordedRun) -> list[bytes]:
    """States and actions of every episode."""
    found = []
    for j in range(run.count):
        start, stop = int(run.offsets[j]), int(run.offsets[j + 1])
        seen = np.ascontiguousarray(run.visited[start + j : stop + j + 1], dtype=np.float64)
        found.append(seen.tobytes() + run.actions[start:stop].tobytes())
    return found
