"""A run in an explicit world: every claim from the inputs and the evidence beside them.

For weights w of the class, prices xi >= 0 and any values V, every policy that keeps the budgets has

    gap >= <initial, V> + min over pairs (Psi w + D xi + discount P V - B V)/(1 - discount)
           - <w, target> - <xi, b>

That is the bound on the data, in the world as given. In an estimated world the others replace
<initial, V> and P V by the least means of V within the distances of the model's laws; they hold in
the true world. The same with w = +- one cost proves the ends of its attainable range, and so the
trivial bound; costs without potentials have h times their extremes for a range.

A certificate subtracts what rounding can have hidden, so a stated number lies a little below. A
point with entries so large that rounding matters proves less here too: otherwise a false bound
could hide behind it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from journeyman.checker.archives import Floats, Ints, archive, dense, reals
from journeyman.checker.chain import EPSILON, balls
from journeyman.checker.consistency import (
    NAME,
    Consistent,
    laws_part,
    parts_of_name,
    read_directions,
    scaled,
)
from journeyman.checker.costs import KNOWN
from journeyman.checker.draws import Sample, Way, samples_of, stated_ways
from journeyman.checker.expert import (
    BETTING,
    SHAPED,
    Estimate,
    Potential,
    check_target,
    cut,
    intervals,
    order_of,
    parts_of,
    plain_estimates,
    recorded,
    shaped_estimate,
    trained_potential,
)
from journeyman.checker.findings import AGREEMENT, DerivedTerm, Findings, Refused, number
from journeyman.checker.inputs import (
    Distances,
    Evidence,
    Potentials,
    Problem,
    Records,
    StoredWorld,
    read_evidence,
    read_policy,
    read_problem,
    read_records,
    read_trace,
    read_world,
)
from journeyman.checker.policy import (
    DRAWN,
    ROLLOUTS,
    ROWS,
    WORST,
    Evaluated,
    Evaluation,
    StoredFeatures,
    read_features,
)

Range: TypeAlias = tuple[float, float]
ALWAYS = ("evidence.npz", "policy.npz", "problem.npz", "world.npz")
SOMETIMES = ("demonstrations.npz", "features.npz", "nonlinear.npz", "recovered.npz",
             "regret.npz", "trace.npz")  # fmt: skip
LOWER_BOUNDS = ("on_data", "without_budgets", "true", "expert_radius")
BUDGET_PARTS = ["failure_probability", "is_kept", "limit", "name", "spent", "terms"]
FAILED = "failed"
WEAK = 0.5
"""Of the trivial bound: a bound above it is weak."""
STEPS_ROUNDING = 1e-9
"""Relative, of the expected steps of a policy."""
ROUNDING_STEPS = 256
"""Operations per step of the horizon: a possible gap below their rounding is none."""
SUMMANDS = 64
"""Other operations behind an end of an interval."""
EXACT = 1e-6
"""Of the flow: more than an exact evaluation leaves."""
ROUGH = 1e-5
"""Of the largest gap: a solver on its way evaluates only as exactly as it has to."""


@dataclass(frozen=True, eq=False)
class ExplicitRun:
    """All inputs, the evidence, what the certificate states, and its failure probability."""

    world: StoredWorld
    problem: Problem
    evaluated: Evaluated
    evidence: Evidence
    records: Records | None
    features: StoredFeatures | None
    trace: Floats | None
    ways: list[Way]
    failure_probability: float
    left_out: list[str]
    """Estimates for which there was no time, by their names."""
    same_numpy: bool
    """Whether the run names the version of numpy that is used now; seeds may mean other numbers
    under another one."""

    @property
    def sampling(self) -> str | None:
        """What the evaluation drew."""
        drawn = {DRAWN[way.kind] for way in self.ways if way.kind in DRAWN}
        if len(drawn) > 1:
            raise Refused("a certificate rests on rollouts and on sampled rows")
        return next(iter(drawn), None)

    @cached_property
    def samples(self) -> list[Sample]:
        return samples_of(self.ways, DRAWN)

    @cached_property
    def distances(self) -> Distances | None:
        """Of the true laws from the model's; None in an exact world."""
        world = self.world
        return world.knowledge.distances(world.rows, world.initial, self.failure_probability)

    @property
    def parts(self) -> tuple[float, float]:
        """Of the failure probability, for the expert and for the evaluation."""
        expert, evaluation = self._shares
        return expert - laws_part(self.problem) * expert, evaluation

    @property
    def _shares(self) -> tuple[float, float]:
        """Of the failure probability, for all that is known of the expert, and the evaluation."""
        left = self.failure_probability - (0.0 if self.distances is None else self.distances.part)
        if self.sampling is None:
            return left, 0.0
        return (left / 2, left / 2) if self.problem.estimated else (0.0, left)

    @cached_property
    def consistent(self) -> Consistent | None:
        """What is consistent with an expert that was declared deterministic or stationary."""
        found = self.evidence.directions
        if found is None:
            return None
        part = laws_part(self.problem) * self._shares[0]
        return Consistent.of(self.world, self.problem, self.records, found, part, self.size)

    @cached_property
    def size(self) -> float:
        """What absolute errors of gaps are measured by."""
        return self.problem.costs.size(self.world.horizon)

    @cached_property
    def rounding(self) -> Floats:
        """What rounding can make of an expectation of every cost, or an end of its interval: sums
        over pairs, and over the steps and episodes of a record, in any order and made twice."""
        world, records = self.world, self.records
        summands = world.num_pairs + world.branches + SUMMANDS
        if records is not None:
            summands += int(records.lengths.max()) + len(records)
        return np.asarray(2 * EPSILON * summands * self.problem.costs.norms * world.horizon)

    @cached_property
    def estimates(self) -> list[Estimate]:
        if not self.problem.estimated:
            return [Estimate(str(self.problem.expectation["kind"]), self.problem.target, ())]
        if self.records is None:
            raise Refused("the expert's expectations were estimated from nothing")
        first, second, _ = self._estimate_parts
        time, records = cut(self.world, self.records)
        found = plain_estimates(
            self.problem.step_costs, time,
            *recorded(self.world, self.problem.matrix, records), (first, second),
            {way.estimate for way in self.ways}, order_of(records),
            centred=self.evidence.centred,
            lengths=None if self.world.base is None else records.lengths,
        )  # fmt: skip
        found = [one for one in found if one.name not in self.left_out]
        return found if self.shaped is None else [*found, self.shaped]

    @cached_property
    def shaped(self) -> Estimate | None:
        if self.records is None:
            return None
        part = self._estimate_parts[2]
        if part <= 0 or SHAPED in self.left_out:
            return None
        return shaped_estimate(self.world, self.problem, self.records, self.trained, part)

    @cached_property
    def trained(self) -> Potential | None:
        """Of the training episodes; it is needed for the target and the shaped estimate only."""
        if self.records is None:
            return None
        return trained_potential(self.world, self.problem, self.records)

    @property
    def _estimate_parts(self) -> tuple[float, float, float]:
        """Of the failure probability, for every estimate of the expert."""
        count = 0 if self.records is None else len(self.records)
        world = self.world
        known = not (world.knowledge.is_estimate or world.has_goal)
        averages = world.base is not None
        first, second, third = parts_of(count, shapeable=known, averages=averages)
        return self.parts[0] * first, self.parts[0] * second, self.parts[0] * third


def read_run(files: dict[str, bytes], facts: dict[str, Any]) -> ExplicitRun:
    """The inputs among `files`; the first that cannot be used is `Refused`, with its name."""
    world = named(files, "world.npz", read_world)
    problem = named(files, "problem.npz", lambda data: read_problem(data, world))
    policy = named(files, "policy.npz", lambda data: read_policy(data, world))
    evidence = named(files, "evidence.npz", lambda data: _evidence(data, world, problem))
    records = features = trace = None
    if "demonstrations.npz" in files:
        records = named(files, "demonstrations.npz", lambda data: read_records(data, world))
    if "features.npz" in files:
        features = named(files, "features.npz", lambda data: read_features(data, world))
    if "trace.npz" in files:
        trace = named(files, "trace.npz", read_trace)
    if "recovered.npz" in files:
        named(files, "recovered.npz", lambda data: read_recovered(data, problem))
    if "nonlinear.npz" in files:
        named(files, "nonlinear.npz", lambda data: read_nonlinear(data, world))
    run = ExplicitRun(
        world, problem, Evaluated(world, problem, policy, evidence.visits), evidence, records,
        features, trace, stated_ways(facts), facts["failure_probability"],
        facts["left_out"], facts["software"]["numpy"] == np.__version__,
    )  # fmt: skip
    if not set(run.left_out) <= {BETTING, SHAPED} or (run.left_out and records is None):
        raise Refused(f"the estimates {run.left_out} cannot be left out")
    if bool(run.samples) != (run.sampling is not None):
        raise Refused("a certificate rests on draws that it does not state")
    if (features is None) == (run.sampling == ROWS):
        raise Refused("sampled rows and the file features.npz do not come together")
    if run.sampling is not None and evidence.measure is not None:
        raise Refused("a certificate rests on draws and on a measure")
    return run


def _evidence(data: bytes, world: StoredWorld, problem: Problem) -> Evidence:
    header, arrays = archive(data, "evidence", 1)
    found = read_evidence(data, world, problem)
    return replace(found, directions=read_directions(header, arrays, world, problem))


def read_recovered(data: bytes, problem: Problem) -> Floats:
    """The weights of a cost that a method inferred: one for every cost; nothing rests on them, nor
    on their standard errors, which are infinite where a weight is not identified."""
    arrays = archive(data, "recovered", 1)[1]
    if "standard_errors" in arrays:
        errors = np.asarray(arrays["standard_errors"])
        if errors.shape != problem.target.shape or not (errors >= 0).all():
            raise Refused("standard_errors are not one number from 0 for every cost")
    return reals(arrays, "weights", 1, problem.target.size)


def read_nonlinear(data: bytes, world: StoredWorld) -> None:
    """A cost that is a function of the features: numbers, one of them for every pair. Nothing rests
    on them: claims are about the costs of the declared class."""
    arrays = archive(data, "nonlinear", 1)[1]
    reals(arrays, "per_pair", 1, world.num_pairs)
    for name, array in arrays.items():
        if array.dtype.kind not in "if" or not np.isfinite(array).all():
            raise Refused(f"{name} is not finite")


def named(files: dict[str, bytes], name: str, read: Callable[[bytes], Any]) -> Any:
    try:
        return read(files[name])
    except Refused as fault:
        raise Refused(f"{name}: {fault}") from fault
    except KeyError as fault:
        raise Refused(f"{name}: it lacks {fault}") from fault
    except Exception as fault:  # zipfile, zlib, numpy and json have many ways to say "damaged"
        raise Refused(f"{name}: it cannot be read ({fault or type(fault).__name__})") from fault


def check_run(findings: Findings, facts: dict[str, Any], run: ExplicitRun) -> None:
    """Everything but the premises."""

    def check_target_of() -> None:
        check_target(findings, run.world, run.problem, run.records, run.shaped, lambda: run.trained)
        vars(run).pop("trained", None)

    world, costs = run.world, run.problem.step_costs
    stages: dict[str, Callable[[], None]] = {
        "the target": check_target_of,
        "the draws": lambda: _check_samples(findings, run),
        "the gap": lambda: _check_gap(findings, run),
        "the lower bounds": lambda: _check_lower_bounds(findings, facts, run),
        "the policy": lambda: _check_policy(findings, facts, run),
        "the expert's intervals": lambda: _check_intervals(
            findings, "expert", facts["expert_intervals"], run,
            run.rounding,
            *intervals(run.world, run.problem, run.records, run.failure_probability),
        ),
        "the budgets": lambda: _check_budgets(findings, facts, run),
        "the trace": lambda: _check_trace(findings, facts, run),
        "the limits": lambda: _check_limits(findings, facts, run),
        "the conclusion": lambda: check_conclusion(
            findings, facts,
            rounding_of(world.horizon, costs.plain * world.total_time, world.num_states),
            known_cost=costs.name == KNOWN,
        ),
    }  # fmt: skip
    for name, stage in stages.items():
        findings.attempt(name, stage)
    findings.equal("what only a world of callables has", facts["evaluation"], None)


# The gap


def _check_samples(findings: Findings, run: ExplicitRun) -> None:
    """Whether what was drawn came from its seed, and has its part of the probability."""
    if run.sampling is None:
        return
    samples, part = run.samples, run.parts[1]
    findings.equal("the seed of the draws", samples[0].seed, run.evaluated.seed)
    if run.sampling == ROLLOUTS:
        if len(samples) != 1:
            raise Refused("rollouts are one sample")
        what = "the failure probability of the rollouts"
        findings.close(what, samples[0].failure_probability, part)
        run.evaluated.check_rollouts(findings, samples[0], same_numpy=run.same_numpy)
    elif run.features is not None:
        run.evaluated.check_rows(findings, run.features, samples, part, same_numpy=run.same_numpy)


def evaluations(run: ExplicitRun) -> list[Evaluation]:
    """Every evaluation that the evidence allows, in the model."""
    if run.sampling == ROLLOUTS:
        stated = [way.terms[1].get("formula") for way in run.ways if way.kind == "E"]
        centred = run.evidence.centred
        return [run.evaluated.by_rollouts(run.samples[0], stated[0], centred=centred)]
    if run.features is not None:
        return run.evaluated.by_rows(run.features, run.samples)
    found = [run.evaluated.exact]
    return found if run.evidence.measure is None else [
        *found, *run.evaluated.by_measure(run.evidence)
    ]  # fmt: skip


def _check_gap(findings: Findings, run: ExplicitRun) -> None:
    """Every stated combination, term by term."""
    found = {one.kind: one for one in evaluations(run)}
    ends: list[tuple[Floats, Floats]] = []
    if run.distances is not None:
        model = run.evaluated.model_term(run.distances)
        found = {
            kind: Evaluation(kind, one.expectations, (*one.terms, model), one.size)
            for kind, one in found.items()
        }
        found[WORST] = Evaluation(WORST, run.evaluated.expectations, ())
        ends = run.evaluated.worst_ends(run.distances)
    known = run.problem.costs.name == KNOWN
    by_name = {one.name: one for one in run.estimates}
    ways = [way for way in run.ways if not way.estimate.startswith(NAME)]
    _check_consistent(findings, run, found, by_name)
    for way in ways:
        if check_way(findings, way, found, by_name):
            evaluation, estimate = found[way.kind], by_name[way.estimate]
            terms = evaluation.terms
            if way.kind == WORST and run.distances is not None:
                terms = (run.evaluated.worst_term(ends, estimate.values, run.distances),)
            gap = run.problem.costs.gap(evaluation.expectations - estimate.values)
            check_bound(findings, way, gap, terms, estimate, run.size + evaluation.size, known)
    check_list(findings, ways, found, by_name)


def _check_consistent(
    findings: Findings, run: ExplicitRun, found: dict[str, Evaluation],
    estimates: dict[str, Estimate],
) -> None:  # fmt: skip
    """One combination of every evaluation with what is consistent, where that is known."""
    ways = [way for way in run.ways if way.estimate.startswith(NAME)]
    wanted = [] if run.consistent is None else sorted(found)
    findings.equal("the combinations by consistency", sorted(way.kind for way in ways), wanted)
    bounds = [way.bound for way in run.ways]
    findings.check(bounds == sorted(bounds), "the combinations are not in order of their bounds")
    for way in ways:
        parts = parts_of_name(way.estimate, estimates)
        findings.check(parts is not None, f"{way.title} rests on an unknown estimate")
        if parts is None or run.consistent is None or way.kind not in found:
            continue
        estimate, share = parts
        evaluation = found[way.kind]
        gap = run.consistent.term(way.estimate, evaluation.expectations, estimate, share)
        kept = () if estimate is None else scaled(estimate.terms, share)
        part = Estimate(way.estimate, run.problem.target, kept)
        check_bound(findings, way, gap, evaluation.terms, part, run.size + evaluation.size)


def check_way(
    findings: Findings, way: Way, evaluations: Any, estimates: dict[str, Estimate]
) -> bool:
    """Whether there is such an evaluation, and such an estimate."""
    known = findings.check(way.estimate in estimates, f"{way.title} rests on an unknown estimate")
    follows = way.kind in evaluations
    return findings.check(follows, f"{way.title} does not follow from the inputs") and known


def check_bound(
    findings: Findings, way: Way, gap: float | DerivedTerm, terms: tuple[DerivedTerm, ...],
    estimate: Estimate, size: float, known_cost: bool = False,
) -> list[float]:  # fmt: skip
    """The terms of a combination, and their sum; the stated values are returned."""
    name = "expected cost" if known_cost else "gap to the estimate"
    if not isinstance(gap, DerivedTerm):
        gap = DerivedTerm(name, "gap_W(expectations - values)", gap, estimate.name)
    values = findings.terms(way.title, way.terms, (gap, *terms, *estimate.terms), size)
    findings.total(way.title, way.bound, values)
    return values


def check_list(
    findings: Findings, ways: list[Way], kinds: Any, estimates: dict[str, Estimate]
) -> None:
    """Every evaluation with every estimate, once, the smallest bound first."""
    wanted = sorted((kind, name) for kind in kinds for name in estimates)
    stated = sorted((way.kind, way.estimate) for way in ways)
    findings.equal("the list of combinations", stated, wanted)
    bounds = [way.bound for way in ways]
    findings.check(bounds == sorted(bounds), "the combinations are not in order of their bounds")


# Lower bounds and limits


@dataclass(frozen=True, eq=False)
class Least:
    """Least totals: by the laws of the world, or by all laws within the distances."""

    run: ExplicitRun
    distances: Distances | None

    def total(self, cost: Floats, values: Floats) -> float:
        """What no policy totals less of `cost` than, by the potential `values`."""
        world = self.run.world
        if world.has_goal:
            return self._until_end(cost, np.where(world.rests, 0.0, values))
        start, ahead = float(world.initial @ values), np.asarray(world.rows @ values)
        if self.distances is not None:
            steps, starts = balls(world, self.distances)
            start, ahead = float(starts.least(values)[0]), steps.least(values)
        slack = cost + world.discount * ahead - values[world.state_of]
        return start + float(slack.min()) * world.horizon

    def _until_end(self, cost: Floats, values: Floats) -> float:
        """With discount 1: the mass in states that can be reached is between 0 and M."""
        world = self.run.world
        slack = cost + world.kept @ values - values[world.state_of]
        least = float(slack[world.reached()[world.state_of]].min())
        return float(world.initial @ values) + min(0.0, least) * world.horizon

    def rounding(self, size: float) -> float:
        """Of the search for least means, for values of the given size."""
        if self.distances is None:
            return 0.0
        world = self.run.world
        steps = (6 * world.branches + 24) * world.horizon + 4 * world.num_states + 12
        return 2 * EPSILON * steps * size


@dataclass(frozen=True, eq=False)
class Proof:
    """What one dual point proves, what rounding can do to it, and what it can do besides where
    least means were sought."""

    weights: Floats
    value: float
    rounding: float
    searching: float

    def range(self, size: float, moved: float = 0.0) -> Range:
        """Between what is left when rounding is subtracted twice, and not at all."""
        high = self.value - (self.rounding / 2 if self.rounding > AGREEMENT * size else 0.0)
        return self.value - 2 * (self.rounding + self.searching) + moved, high + moved


def _proofs(run: ExplicitRun, distances: Distances | None, *, priced: bool) -> list[Proof]:
    """Of every dual point, with the budgets at their prices or without."""
    problem, world, least = run.problem, run.world, Least(run, distances)
    h, found = world.horizon, []
    points = (run.evidence.weights, run.evidence.prices, run.evidence.values)
    for proposed, prices, values in zip(*points, strict=True):
        weights = problem.costs.member(proposed)
        cost = np.asarray(problem.matrix @ weights)
        constant, constants = (float(weights @ problem.target) for _ in range(2))
        constants = float(np.abs(weights) @ np.abs(problem.target))
        sizes = float(np.abs(weights) @ problem.costs.norms)
        for price, budget in zip(np.maximum(prices, 0.0) * priced, problem.budgets, strict=True):
            cost = cost + price * budget.cost
            constant += price * budget.limit
            constants += price * abs(budget.limit)
            sizes += price * float(np.abs(budget.given).max())
        largest, size = float(np.abs(cost).max()), float(np.abs(values).max())
        steps = (world.branches + 4) * (largest + 2 * size) * h + (world.num_states + 2) * size
        terms = weights.size + prices.size + 2
        rounding = EPSILON * (steps + terms * (constants + sizes * h))
        value = least.total(cost, values) - constant
        found.append(Proof(weights, value, rounding, least.rounding(size)))
    return found


def _check_lower_bounds(findings: Findings, facts: dict[str, Any], run: ExplicitRun) -> None:
    stated = {name: number(value) for name, value in facts["lower_bounds"].items()}
    if not findings.equal("the list of lower bounds", sorted(stated), sorted(LOWER_BOUNDS)):
        return
    size, target, estimates = run.size, run.problem.target, run.estimates
    used = {way.estimate for way in run.ways}
    estimates = [one for one in estimates if one.name in used] or estimates

    def best(proofs: list[Proof], moved: Callable[[Proof], float]) -> Range:
        ranges = [proof.range(size, moved(proof)) for proof in proofs]
        return max(low for low, _ in ranges), max(high for _, high in ranges)

    def gain(proof: Proof, estimate: Estimate) -> float:
        """By how much a bound grows when the estimate takes the place of the target; a proof by
        the cost zero does not speak of the expert."""
        return float(proof.weights @ (target - estimate.values)) if proof.weights.any() else 0.0

    in_model = _proofs(run, None, priced=True)
    proofs = in_model if run.distances is None else _proofs(run, run.distances, priced=True)
    free = _proofs(run, run.distances, priced=False) if run.problem.budgets else proofs
    true = [
        best(proofs, lambda one, e=e: gain(one, e) - e.error * bool(one.weights.any()))  # type: ignore[misc]
        for e in estimates
    ]
    derived = {
        "on_data": best(in_model, lambda one: 0.0),
        "true": (max(low for low, _ in true), max(high for _, high in true)),
    }
    errors = [e.error if run.problem.estimated else math.inf for e in estimates]
    attempts = [
        (best(free, lambda one, e=e: gain(one, e)), error)  # type: ignore[misc]
        for e, error in zip(estimates, errors, strict=True)
    ]
    surpluses = [bound[1] - error for bound, error in attempts]
    most = max(surpluses)
    likely = [
        one
        for one, surplus in zip(attempts, surpluses, strict=True)
        if surplus >= most - AGREEMENT * size
    ]
    derived["without_budgets"] = (min(one[0][0] for one in likely), max(o[0][1] for o in likely))
    derived["expert_radius"] = (min(one[1] for one in likely), max(one[1] for one in likely))
    for name, (low, high) in derived.items():
        findings.within(f"the lower bound {name!r}", stated[name], low, high, size)
    if all(one["is_kept"] for one in facts["budgets"]):
        gap, terms = number(facts["gap_on_data"]), run.evaluated.exact.terms
        findings.check(
            stated["on_data"] <= gap + math.fsum(term.value for term in terms),
            f"no gap is below {stated['on_data']!r} on the data, and the policy has {gap!r}",
        )
    is_alarm = stated["without_budgets"] > stated["expert_radius"]
    findings.equal("the alarm", facts["alarm"], is_alarm)


def _check_limits(findings: Findings, facts: dict[str, Any], run: ExplicitRun) -> None:
    """The largest gap that is possible at all, and what the share of a bound is measured from."""
    costs, h, target = run.problem.step_costs, run.world.total_time, run.problem.exact_target
    valid = FAILED not in [one["status"] for one in facts["premises"]]
    plain, ranges = costs.trivial(h, target), run.evidence.ranges
    known = costs.name == KNOWN
    one_sided = not costs.contains_zero
    least = -costs.trivial(h, target, -1.0) if known or one_sided else 0.0
    found = [(plain, least)]
    if valid and ranges is not None:
        found = []
        rounding = [_range_rounding(run, ranges.costs, ends) for ends in (ranges.low, ranges.high)]
        matters = max(end.max(initial=0.0) for end in rounding) > AGREEMENT * run.size
        for share in (0.5 if matters else 0.0, 2.0):
            low, high = _box(run, ranges, *(share * end for end in rounding))
            if target is None:
                differences = (low - high, high - low)
            else:
                differences = (low - target, high - target)
            least = costs.least_gap(*differences) if one_sided else 0.0
            found.append((min(plain, costs.largest_gap(*differences)), least))
    for what, name, k in (
        ("the trivial bound", "trivial_bound", 0), ("the least possible", "least_possible", 1),
    ):  # fmt: skip
        ends = [one[k] for one in found]
        findings.within(what, number(facts[name]), min(ends), max(ends), run.size)
    findings.check(valid or ranges is None, "a failed premise and potentials do not go together")


def _box(
    run: ExplicitRun, ranges: Potentials, below: Floats, above: Floats
) -> tuple[Floats, Floats]:
    """Attainable ranges of all costs, with the given rounding of both ends allowed for."""
    least = Least(run, run.distances)
    low, high = (end * run.world.horizon for end in run.problem.costs.ends)
    for place, k in enumerate(ranges.costs.tolist()):
        cost = dense(run.problem.matrix[:, [k]]).ravel()
        low[k] = max(low[k], least.total(cost, ranges.low[place]) - below[place])
        high[k] = min(high[k], -least.total(-cost, ranges.high[place]) + above[place])
    return low, high


def _range_rounding(run: ExplicitRun, costs: Ints, potentials: Floats) -> Floats:
    """What double precision can hide of one end of the range of each cost."""
    world, least = run.world, Least(run, run.distances)
    sizes = np.abs(potentials).max(axis=1, initial=0.0)
    largest = run.problem.costs.norms[costs]
    steps = (world.branches + 4) * (largest + 2 * sizes) * world.horizon
    own = EPSILON * (steps + (world.num_states + 4) * sizes)
    return np.array([one + least.rounding(size) for one, size in zip(own, sizes, strict=True)])


# The rest


def _check_policy(findings: Findings, facts: dict[str, Any], run: ExplicitRun) -> None:
    """Expectations, gap on the data, and the intervals of the policy."""
    costs, own, h = run.problem.costs, run.evaluated.expectations, run.world.horizon
    sizes, stated = run.rounding, [number(value) for value in facts["expectations"]]
    if findings.equal("the number of expectations", len(stated), own.size):
        for name, value, derived, size in zip(run.problem.names, stated, own, sizes, strict=True):
            findings.near(f"the expectation of {name!r}", value, float(derived), float(size))
    if run.world.has_goal:
        steps = math.fsum(run.evaluated.state_visits[~run.world.rests])
        findings.check(
            steps <= h * (1 + STEPS_ROUNDING),
            f"the policy expects {steps!r} steps, more than {h!r}",
        )
    missed = run.evaluated.missed
    findings.check(
        missed <= EXACT, f"the visits of the policy leave {missed!r} of its flow unexplained"
    )
    gap = run.evaluated.gap(run.problem.target)
    sizes = run.rounding + 4 * EPSILON * own.size * np.abs(run.problem.target)
    tiny = 2 * float(costs.scale @ sizes)
    findings.near("the gap on the data", number(facts["gap_on_data"]), gap, tiny)
    error = math.fsum(term.value for term in run.evaluated.exact.terms)
    reach = costs.norms / costs.plain * error if costs.plain > 0 else np.zeros(own.size)
    if run.distances is not None:
        reach = reach + costs.ranges / 2 * run.evaluated.distance(run.distances)
    least, most = (end * run.world.total_time for end in run.problem.step_costs.ends)
    ends = [np.clip(own + sign * reach, least, most) for sign in (-1, 1)]
    hidden = run.rounding + run.evaluated.rounding(h) * costs.norms / (costs.plain or 1.0)
    if run.distances is not None:
        hidden = hidden + run.distances.rounding * reach
    _check_intervals(findings, "apprentice", facts["apprentice_intervals"], run, hidden, *ends)


def _check_intervals(
    findings: Findings, whose: str, stated: list[dict[str, Any]], run: ExplicitRun,
    rounding: Floats, low: Floats, high: Floats,
) -> None:  # fmt: skip
    """Residuals are differences of large numbers: `rounding` includes what that hides of them."""
    names = [one["name"] for one in stated]
    parts = {part for one in stated for part in one} | {"name", "low", "high"}
    findings.equal(f"the parts of the {whose}'s intervals", len(parts), 3)
    if not findings.equal(f"the names of the {whose}'s intervals", names, run.problem.names):
        return
    for k, one in enumerate(stated):
        what, hidden = f"the {whose}'s interval of {one['name']!r}", float(rounding[k])
        findings.near(f"the lower end of {what}", number(one["low"]), float(low[k]), hidden)
        findings.near(f"the upper end of {what}", number(one["high"]), float(high[k]), hidden)


def _check_budgets(findings: Findings, facts: dict[str, Any], run: ExplicitRun) -> None:
    budgets = run.problem.budgets
    names = [one["name"] for one in facts["budgets"]]
    parts = [sorted(one) for one in facts["budgets"]]
    findings.equal("the parts of budgets", parts, [BUDGET_PARTS] * len(parts))
    if not findings.equal("the names of the budgets", names, [one.name for one in budgets]):
        return
    for stated, budget in zip(facts["budgets"], budgets, strict=True):
        what, used = f"budget {budget.name!r}", number(stated["spent"])
        size = float(np.abs(budget.given).max()) * run.world.horizon
        terms = run.evaluated.budget_terms(budget, run.distances)
        part = 0.0 if run.distances is None or len(terms) == 1 else run.distances.part
        findings.equal(f"the failure probability of {what}", stated["failure_probability"], part)
        values = findings.terms(what, stated["terms"], terms, size)
        findings.total(what, used, values)
        findings.equal(f"the limit of {what}", stated["limit"], budget.limit)
        findings.equal(f"whether {what} is kept", stated["is_kept"], used <= budget.limit)


def _check_trace(findings: Findings, facts: dict[str, Any], run: ExplicitRun) -> None:
    """When the solver had which bounds is not derived, but the optimum lies between them.

    Budgets are an exception: a solver may work with lower limits, and break them by a little.
    """
    if run.trace is None or run.problem.budgets:
        return
    gap = run.evaluated.gap(run.problem.target)
    proven = number(facts["lower_bounds"]["on_data"])
    low = float(run.trace[:, 1].max(initial=-math.inf))
    high = float(run.trace[:, 2].min(initial=math.inf))
    findings.check(
        low <= gap + ROUGH * run.size,
        f"the trace says that no gap is below {low!r}, the policy has {gap!r}",
    )
    findings.check(
        high >= proven - ROUGH * run.size,
        f"the trace has a policy with the gap {high!r}, no gap is below {proven!r}",
    )


def check_conclusion(
    findings: Findings, facts: dict[str, Any], rounding: float, *, known_cost: bool = False
) -> None:
    """What the certificate concludes from its own numbers; a possible gap below `rounding` is
    none. Nothing is weak where the largest and the least possible gap differ by `rounding` only;
    the gap of a known cost is measured from the least, others from zero."""
    outcomes = [one["status"] for one in facts["premises"]]
    bad = [one for one in outcomes if one not in ("declared", "tested, not refuted", FAILED)]
    findings.check(not bad, f"the outcomes {bad} of premises are unknown")
    valid, trivial = FAILED not in outcomes, number(facts["trivial_bound"])
    best = min(number(one["bound"]) for one in facts["combinations"])
    findings.equal("the validity", facts["valid"], valid)
    bound = min(best, trivial) if valid else trivial
    findings.equal("the bound", number(facts["bound"]), bound)
    least, bound = number(facts["least_possible"]), number(facts["bound"])
    matters, zero = abs(trivial - least) > rounding, least if known_cost else 0.0
    vacuous, possible = matters and bound >= trivial, trivial - zero
    weak = vacuous or (matters and possible > 0 and (bound - zero) / possible > WEAK)
    findings.equal("the word on vacuity", facts["vacuous"], vacuous)
    findings.equal("the word on weakness", facts["weak"], weak)


def rounding_of(horizon: float, largest_total: float, num_states: int) -> float:
    """Of a possible gap; `num_states` where plans were made in all of them."""
    return (ROUNDING_STEPS * horizon + num_states) * EPSILON * 2 * largest_total
