"""What the code of a run says when it is made again: sizes, totals, possible steps, and all draws.

The seed is a digest of problem and policy, and the same statistics must come from it, to 1e-9.
Where they do not and the run names another numpy, or where there would be too many steps, walks
from other seeds must look alike, and the audit is not complete.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from journeyman.auditing import protocol
from journeyman.auditing.copies import copies_of, walked_chances, walked_keys
from journeyman.auditing.draws import LEVEL, TOO_MANY, Moments, check_alike, settle
from journeyman.auditing.large_draws import CostFunction, all_walks, policy_of, walk_totals
from journeyman.auditing.large_evidence import log_evidence_of_starts, log_evidence_of_steps
from journeyman.auditing.large_inputs import LargeQuestion
from journeyman.auditing.large_premises import Tested
from journeyman.auditing.large_rows import Rows
from journeyman.auditing.large_run import MIXTURE, ROWS, LargeRun
from journeyman.auditing.ledger import AGREEMENT, Ledger
from journeyman.auditing.reading import Refused
from journeyman.auditing.row_checks import Examined, log_evidence, record_agrees
from journeyman.auditing.seeds import large_seed
from journeyman.auditing.separate import p_value
from journeyman.auditing.stored import Sample
from journeyman.auditing.tables import Floats, Ints

MOST_STEPS = 1 << 26
"""Walked again; beyond it fewer walks are drawn, from other seeds."""
OTHER_SEED = 0x61756469
BLOCK = 1 << 16
Totals = Callable[[Any, int], Callable[[np.random.Generator, int], tuple[Floats, Floats]]]


@dataclass(frozen=True, eq=False)
class Found:
    """What only code can say."""

    exact: Floats | None
    """The part of Psi' u that is not sampled."""
    tested: Tested


def check_code(ledger: Ledger, run: LargeRun, parts: dict[str, Any]) -> Found:
    """Compare everything the code says with what is stored."""
    question = run.question
    seed = large_seed(question, run.form, parts)
    ledger.equal("the seed of the draws", run.evaluation["seed"], seed)
    if question.sizes is None:
        simulator = parts["simulator"]
        _check_costs(ledger, question, simulator)
        ledger.equal("the discount", question.discount, float(simulator.discount))
        separate = _check_walks(ledger, run, parts, _simulated(simulator))
        return Found(None, Tested(separate=separate))
    world, costs = parts["world"], parts["costs"]
    sizes = (int(world.num_states), int(world.num_actions))
    ledger.equal("the numbers of states and actions", question.sizes, sizes)
    ledger.equal("the discount", question.discount, float(world.discount))
    _check_costs(ledger, question, costs)
    ledger.close("the largest sum of costs", question.largest, float(costs.largest), 0.0)
    cost = _cost_function(costs, question)
    tested = _check_record(ledger, run, world, cost)
    if run.kind == ROWS:
        features = parts["features of the policy"]
        theta = run.form.figures("coefficients", "policy")
        known = np.asarray(features.exact_matching(costs))
        rows = Rows(question, world, cost, features, theta, known)
        examined = _check_rows(ledger, run, rows)
        recorded, contradiction = record_agrees(world, run.walked)
        found = [one.contradiction for one in examined if one.contradiction] + [contradiction]
        ledger.check(not found[0], f"the code of the world contradicts itself: {found[0]}")
        tested = replace(
            tested, tables=bool((~np.isnan(known)).any()),
            followed=sum(one.followed for one in examined) + recorded,
            agree=not found[0],
            log_draws=log_evidence(examined),
        )  # fmt: skip
        return Found(rows.exact, tested)
    separate = _check_walks(ledger, run, parts, _walked(world, cost, question))
    return Found(None, replace(tested, separate=separate))


def _check_costs(ledger: Ledger, question: LargeQuestion, costs: Any) -> None:
    ledger.equal("the names of the costs", question.names, list(costs.names))
    for word, stored, own in (
        ("least", question.lowest, costs.lowest), ("greatest", question.highest, costs.highest),
    ):  # fmt: skip
        same = np.array_equal(stored, np.asarray(own, dtype=np.float64))
        ledger.check(same, f"the {word} costs are {stored.tolist()}, the code says {own!r}")


def _cost_function(costs: Any, question: LargeQuestion) -> CostFunction:
    """The function itself, its values checked against the ranges."""
    low, high = question.lowest, question.highest
    slack = 1e-9 * np.maximum(np.abs(low), np.abs(high))

    def cost(states: Ints, actions: Ints) -> Floats:
        values = np.asarray(costs.function(states, actions), dtype=np.float64)
        if values.shape != (len(states), low.size):
            raise Refused(f"the cost function returns shape {values.shape}")
        if not ((values >= low - slack) & (values <= high + slack)).all():
            raise Refused("a cost lies outside its declared range")
        if (np.abs(values).sum(axis=1) > question.largest * (1 + 1e-9) + 1e-300).any():
            raise Refused("the costs of a pair have a larger sum than was declared")
        return np.minimum(np.maximum(values, low), high)

    return cost


def _check_record(ledger: Ledger, run: LargeRun, world: Any, cost: CostFunction) -> Tested:
    """Totals of the demonstrations; whether starts and steps are possible."""
    record, episodes = run.walked, run.episodes
    if record is None or episodes is None:
        return Tested()
    count, discount = record.lengths.size, run.question.discount
    totals, untold = np.zeros_like(episodes.totals), not hasattr(world, "successors")
    chances = np.ones(record.states.size)
    for first in range(0, record.states.size, BLOCK):
        part = slice(first, first + BLOCK)
        paid = cost(record.states[part], record.actions[part])
        weight = discount ** record.time[part].astype(float)
        for i in range(paid.shape[1]):
            totals[:, i] += np.bincount(record.episode[part], weight * paid[:, i], count)
        if not untold:
            chances[part] = _chances(world, record.states[part], record.actions[part],
                                     record.following[part])  # fmt: skip
    slack = AGREEMENT * run.question.costs.norms * run.question.horizon
    for i, name in enumerate(run.question.names):
        off = np.abs(totals[:, i] - episodes.totals[:, i])
        worst = int(off.argmax())
        ledger.check(
            off[worst] <= slack[i],
            f"episode {worst} costs {float(episodes.totals[worst, i])!r} of {name!r}, the code "
            f"gives {float(totals[worst, i])!r}",
        )
    begun = np.asarray(world.initial_probability(record.starts))
    starts, possible = bool((begun > 0).all()), bool((chances > 0).all())
    episode_chances = walked_chances(begun, None if untold else chances, record.episode)
    keys = walked_keys(record.states, record.actions, record.following, record.lengths)
    return Tested(
        starts, None if untold else possible,
        log_evidence_of_starts(world, record.starts) if starts else None,
        log_evidence_of_steps(world, record) if possible and not untold else None,
        copies=copies_of(keys, episode_chances),
    )  # fmt: skip


def _chances(world: Any, states: Ints, actions: Ints, following: Ints) -> Floats:
    """The probability of every step."""
    ids, laws = (np.asarray(part) for part in world.successors(states, actions))
    return np.asarray(((ids == following[:, np.newaxis]) * laws).sum(axis=1))


def _walked(world: Any, cost: CostFunction, question: LargeQuestion) -> Totals:
    def of(policy: Any, horizon: int) -> Callable[..., tuple[Floats, Floats]]:
        missing = question.discount**horizon * question.horizon

        def draw(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
            totals = walk_totals(world, cost, policy, count, horizon, rng)
            return totals, np.full(count, missing)

        return draw

    return of


def _simulated(simulator: Any) -> Totals:
    def of(policy: Any, horizon: int) -> Callable[..., tuple[Floats, Floats]]:
        def draw(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
            found = simulator.totals(policy, count, horizon, rng)
            return np.asarray(found.totals), np.asarray(found.unrecorded)

        return draw

    return of


def _check_walks(ledger: Ledger, run: LargeRun, parts: dict[str, Any], totals: Totals) -> float:
    """Every sample of walks, drawn again or beside others; the p-value of their independence."""
    told = run.evaluation
    horizon, count, seed = told["horizon"], told["trajectories"], told["seed"]
    again = len(run.samples) * count * horizon <= MOST_STEPS
    fewer = max(2, min(count, MOST_STEPS // horizon // len(run.samples)))
    if not again:
        ledger.leave_open(TOO_MANY)
    named: list[tuple[str, tuple[int, ...]]]
    if run.kind == MIXTURE:
        places, stream = run.places(), protocol.LARGE_STREAMS["mixture"]
        named = [(f"candidate {k} of the policy", (stream, *places[k])) for k in run.drawn]
    else:
        named = [("policy", (protocol.LARGE_STREAMS["walks"],))]
    for sample, (name, key) in zip(run.samples, named, strict=True):
        policy = policy_of(run.form, name, parts, run.question)
        attempt = Ledger()
        if again:
            drawn = all_walks(totals(policy, horizon), seed, key, count)
            _check_same(attempt, run.question, sample, *drawn)
            settle(ledger, attempt, same_numpy=run.same_numpy)
        if attempt.findings or not again:
            policy = policy_of(run.form, name, parts, run.question)
            drawn = all_walks(totals(policy, horizon), seed ^ OTHER_SEED, key, fewer)
            _check_alike(ledger, run.question, sample, *drawn)
    steps = min(horizon, protocol.BATCH_STEPS)
    found = [
        p_value(totals(policy_of(run.form, name, parts, run.question), steps), seed, number)
        for number, (name, _) in enumerate(named)
    ]
    return min(1.0, min(found) * len(found))


def _check_same(
    ledger: Ledger, question: LargeQuestion, sample: Sample, totals: Floats, missing: Floats
) -> None:
    """Whether the draws of the stored seed give the stored statistics."""
    costs, sizes = question.costs, question.costs.norms * question.horizon
    own = Moments.of(totals + np.outer(missing, costs.centre))
    blur = costs.ranges / 2 * math.sqrt(math.fsum(missing**2) / (len(missing) - 1))
    variances = (np.sqrt(own.variances) + blur) ** 2
    what = f"the unrecorded time of {sample.name} that their seed gives"
    ledger.close(what, sample.unrecorded, math.fsum(missing) / len(missing), 0.0)
    for k, name in enumerate(question.names):
        size, words = float(sizes[k]), f"of {name!r} in {sample.name} that their seed gives"
        mean = float(totals[:, k].mean())
        ledger.close(f"the mean {words}", float(sample.means[k]), mean, size)
        variance = float(variances[k])
        ledger.close(f"the variance {words}", float(sample.variances[k]), variance, size**2)


def _check_alike(
    ledger: Ledger, question: LargeQuestion, sample: Sample, totals: Floats, missing: Floats
) -> None:
    """Whether draws of another seed look like the stored statistics."""
    costs = question.costs
    blur = costs.ranges / 2 * math.sqrt(math.fsum(missing**2) / (len(missing) - 1))
    spread = np.maximum(np.sqrt(sample.variances) - blur, 0.0)
    means = sample.means + costs.centre * sample.unrecorded
    stored = Moments(sample.count, means, spread**2)
    fresh = Moments.of(totals + np.outer(missing, costs.centre))
    widths, sizes = costs.ranges * question.horizon, costs.norms * question.horizon
    check_alike(ledger, question.names, stored, fresh, widths, sizes)


def _check_rows(ledger: Ledger, run: LargeRun, rows: Rows) -> list[Examined]:
    """Ranges, statistics from the stored seed, and what is exact beside what is sampled."""
    count, seed, attempt = run.evaluation["rows"], run.evaluation["seed"], Ledger()
    drawn, whole, examined = rows.drawn(seed, count)
    for sample, own, name, size, k in _figures(run, rows, drawn):
        ledger.close(f"the range of {name}", float(sample.ranges[k]), size, size)
        what = f"the mean of {name} that its seed gives"
        attempt.close(what, float(sample.means[k]), float(own.means[k]), size)
        what = f"the variance of {name} that its seed gives"
        attempt.close(what, float(sample.variances[k]), float(own.variances[k]), size**2)
    settle(ledger, attempt, same_numpy=run.same_numpy)
    if attempt.findings:
        drawn, whole, examined = rows.drawn(seed ^ OTHER_SEED, count)
        for sample, own, widths in zip(run.samples, drawn, rows.ranges(), strict=True):
            stored = Moments(sample.count, sample.means, sample.variances)
            check_alike(ledger, _names(run, sample), stored, own, widths, widths)
    _check_exact(ledger, run, rows, Moments.of(whole))
    return examined


def _figures(
    run: LargeRun, rows: Rows, drawn: list[Moments]
) -> Iterator[tuple[Sample, Moments, str, float, int]]:
    """Every mean of every sum: its sample, what was drawn now, its name, its range, its place."""
    for sample, own, widths in zip(run.samples, drawn, rows.ranges(), strict=True):
        for k, name in enumerate(_names(run, sample)):
            yield sample, own, name, float(widths[k]), k


def _names(run: LargeRun, sample: Sample) -> list[str]:
    return [f"{name} of {sample.name}" for name in run.question.names][: sample.means.size]


def _check_exact(ledger: Ledger, run: LargeRun, rows: Rows, sampled: Moments) -> None:
    """Whether Psi' u with its exact part can have the mean that sampling all of it has."""
    sizes = run.question.costs.norms * rows.ratio * np.abs(rows.theta).max()
    reach = sampled.radius(2 * sizes, LEVEL / sizes.size)
    told = rows.exact + run.samples[0].means
    reach = reach + Moments(
        run.samples[0].count, told, run.samples[0].variances
    ).radius(run.samples[0].ranges, LEVEL / sizes.size)  # fmt: skip
    for k, name in enumerate(run.question.names):
        ledger.check(
            abs(told[k] - sampled.means[k]) <= reach[k] + AGREEMENT * sizes[k],
            f"Psi' u of {name!r} is {told[k]!r}, sampling gives {sampled.means[k]!r}",
        )
