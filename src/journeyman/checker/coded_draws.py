"""What the code of a run says when it is made again: sizes, totals, possible steps, and all draws.

World, costs, features and policy are asked, for they are what the run is about; walks, laws of rows
and tests are made here. Every shard has a stream of its own, named by the number of its first draw.
The seed is a digest of problem and policy, and the same statistics must come from it, to 1e-9.
Where they do not and the run names another numpy, or where there would be too many steps, walks
from other seeds must look alike, and the audit is not complete.

    q1(s) = sum_j phi_j(s)/(d h)                                        pairs
    q2(y) = sum_j ((B + discount P)' phi_j)(y)/((1 + discount) d h)     states

are the laws of rows; u = Phi theta, and D theta = (B - discount P)' u at a state: its own pairs
less what comes from the pairs before it. Steps of drawn rows are followed there and back:

    from a drawn pair      a successor by lot, which has to list the pair with its probability
    from a drawn state     a listed predecessor by lot, which has to lead there with its probability
    from a recorded step   its end has to list its pair
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.checker.archives import Floats, Ints
from journeyman.checker.coded import (
    BATCH_WALKS,
    BATCHES,
    MIXTURE,
    ROWS,
    TESTED_STEPS,
    CodedRun,
    Question,
    Tested,
    function,
)
from journeyman.checker.draws import (
    LEVEL,
    OTHER_SEED,
    TOO_MANY,
    Moments,
    Sample,
    check_alike,
    generator,
    settle,
)
from journeyman.checker.expert import discounted, spread
from journeyman.checker.findings import AGREEMENT, Findings, Refused
from journeyman.checker.inputs import Observations, Records
from journeyman.checker.premise_claims import (
    CONCENTRATIONS,
    START_BLOCKS,
    Draws,
    copies_of,
    log_chances,
    log_mean,
    rank,
    steps_evidence,
)

Totals = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
Cost = Callable[[Ints, Ints], Floats]
STREAMS = {"walks": 0x6C77616C, "rows": 0x6C726F77, "mixture": 0x6D697874, "batches": 0x73657061}
WALK_SHARD, ROW_SHARD = 1 << 10, 1 << 14
"""Walks and rows that are drawn from one stream."""
COMPARED_STARTS, STARTS_STREAM = 1 << 13, 0x6C737472
"""States that recorded starts are compared with, and the stream of seed 0 they come from."""
FOLLOWED, DRAWS_BET_ON = 1 << 12, 1 << 14
"""Rows of a shard whose steps are followed there and back; draws of the first shard whose
repetitions are counted."""
TILTS = [sign * tilt for tilt in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0) for sign in (-1.0, 1.0)]
LEAST = 1e-12
"""Factor of a bet."""
BATCH_STEPS, ORDERS, ENOUGH = 64, 9_999, 10
"""Of the test that walks are independent: steps; random orders that are tried, and how many of them
that reach the statistic are enough."""
MOST_STEPS = 1 << 26
"""Walked again; beyond it fewer walks are drawn, from other seeds."""
BLOCK, STATES = 1 << 16, 1 << 10
"""Steps of the record, and states whose predecessors are held, at a time."""
SLACK = 1e-9
RELATIVE, ABSOLUTE = 1e-9, 1e-12


def check_code(findings: Findings, run: CodedRun, place: Path) -> Tested:
    """Compare everything the code says with what is stated."""
    question, parts = run.question, run.code.made(place)
    findings.equal("the seed of the draws", run.evaluation["seed"], run.seed(parts))
    policy = function("journeyman.certificate:load_policy")(place, trust_code=True)
    if question.sizes is None:
        simulator = parts["simulator"]
        _check_costs(findings, question, simulator)
        findings.equal("the discount", question.discount, float(simulator.discount))
        most = math.fsum(np.maximum(np.abs(question.lowest), np.abs(question.highest)))
        findings.close("the largest sum of costs", question.largest, most)
        if run.observed is not None:
            _check_observed(findings, run, run.observed, simulator)
        walks = lambda one, steps: _simulated(simulator, one, steps)  # noqa: E731
        return Tested(separate=_check_walks(findings, run, policy, walks))
    world, costs = parts["world"], parts["costs"]
    sizes = (int(world.num_states), int(world.num_actions))
    findings.equal("the numbers of states and actions", question.sizes, sizes)
    findings.equal("the discount", question.discount, float(world.discount))
    _check_costs(findings, question, costs)
    findings.close("the largest sum of costs", question.largest, float(costs.largest))
    cost = _cost_function(costs, question)
    tested = Tested() if run.records is None else _check_record(findings, run, world, cost)
    if run.kind != ROWS:
        walks = lambda one, steps: _walked(world, cost, one, steps)  # noqa: E731
        return replace(tested, separate=_check_walks(findings, run, policy, walks))
    known = np.asarray(policy.features.exact_matching(costs))
    rows = Rows(question, world, cost, policy.features, run.numbers("coefficients"), known)
    examined = _check_rows(findings, run, rows)
    count, contradiction = _record_agrees(world, run.records)
    wrong = next((one.wrong for one in examined if one.wrong), contradiction)
    findings.check(not wrong, f"the code of the world contradicts itself: {wrong}")
    exactly = (~np.isnan(known)).any(axis=1)
    tables = tuple(name for name, one in zip(question.names, exactly, strict=True) if one)
    return replace(
        tested, exact=rows.exact, tables=tables, agree=not wrong,
        followed=sum(one.followed for one in examined) + count, log_draws=_draws_evidence(examined),
    )  # fmt: skip


def _check_costs(findings: Findings, question: Question, costs: Any) -> None:
    findings.equal("the names of the costs", question.names, list(costs.names))
    for word, stated, own in (
        ("least", question.lowest, costs.lowest), ("greatest", question.highest, costs.highest),
    ):  # fmt: skip
        same = np.array_equal(stated, np.asarray(own, dtype=np.float64))
        findings.check(same, f"the {word} costs are {stated.tolist()}, the code says {own!r}")


def _cost_function(costs: Any, question: Question) -> Cost:
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


# The record


def _check_record(findings: Findings, run: CodedRun, world: Any, cost: Cost) -> Tested:
    """Totals of the demonstrations; whether starts and steps are possible, and likely."""
    records = run.records
    assert records is not None
    tells = hasattr(world, "successors")
    paid, chances = (
        np.zeros((records.state.size, len(run.question.names))),
        np.ones(records.state.size),
    )
    for first in range(0, records.state.size, BLOCK):
        at = slice(first, first + BLOCK)
        paid[at] = cost(records.state[at], records.action[at])
        if tells:
            chances[at] = _chance(
                world, records.state[at], records.action[at], records.next_state[at]
            )
    _check_totals(findings, run, discounted(records, run.question.discount, paid))
    begun = np.asarray(world.initial_probability(records.starts), dtype=float)
    starts, steps = bool((begun > 0).all()), bool((chances > 0).all())
    likely = log_chances(records, begun, chances if tells else None)
    return Tested(
        starts=starts, steps=steps if tells else None,
        log_starts=_starts_evidence(world, records.starts, begun) if starts else None,
        log_steps=_steps_evidence(world, records) if steps and tells else None,
        copies=copies_of(records, likely),
    )  # fmt: skip


def _check_totals(findings: Findings, run: CodedRun, totals: Floats) -> None:
    """What the demonstrations cost by the code, and as it is stated."""
    stated = run.totals
    assert stated is not None
    slack = AGREEMENT * run.question.costs.norms * run.question.horizon
    for i, name in enumerate(run.question.names):
        off = np.abs(totals[:, i] - stated[:, i])
        worst = int(off.argmax())
        findings.check(
            off[worst] <= slack[i],
            f"episode {worst} costs {float(stated[worst, i])!r} of {name!r}, the code gives "
            f"{float(totals[worst, i])!r}",
        )


def _check_observed(findings: Findings, run: CodedRun, seen: Observations, simulator: Any) -> None:
    """Totals of demonstrations in a simulator: costs of all steps at once, discounted, and those
    behind an end as declared. Rewards are no part of demonstrations."""
    costs, steps, question = simulator.costs, seen.steps, run.question
    done = (
        seen.actions if simulator.actions is None else np.asarray(simulator.actions)[seen.actions]
    )
    ends = np.zeros(seen.actions.size, dtype=bool)
    ends[seen.offsets[1:] - 1] = seen.terminated
    paid, low, high = np.full(ends.size, np.nan), question.lowest, question.highest
    values = np.asarray(
        costs.function(seen.states[steps], done, seen.states[steps + 1], paid, ends), dtype=float
    )
    slack = 1e-9 * np.maximum(np.abs(low), np.abs(high))
    if values.shape != (ends.size, low.size):
        raise Refused(f"the cost function returns shape {values.shape}")
    if not ((values >= low - slack) & (values <= high + slack)).all():
        raise Refused("a cost of a demonstration lies outside its declared range")
    time = np.arange(ends.size) - seen.offsets[:-1].repeat(seen.lengths)
    weighted = question.discount ** time[:, np.newaxis] * np.minimum(np.maximum(values, low), high)
    behind = np.where(seen.terminated, question.discount**seen.lengths * question.horizon, 0.0)
    after_end = np.asarray(costs.after_end, dtype=float)
    totals = np.add.reduceat(weighted, seen.offsets[:-1]) + np.outer(behind, after_end)
    _check_totals(findings, run, totals)


def _steps_evidence(world: Any, records: Records) -> float:
    """log E against the laws of the visited pairs."""
    first = slice(0, TESTED_STEPS)
    keys, row = np.unique(
        np.stack([records.state[first], records.action[first]]), axis=1, return_inverse=True
    )
    ids, laws = _successors(world, *np.ascontiguousarray(keys))
    reached = np.unique(ids)
    places = np.arange(len(ids)).repeat(ids.shape[1]), np.searchsorted(reached, ids.ravel())
    shape = (len(ids), reached.size)
    matrix = sparse.coo_array((laws.ravel(), places), shape=shape).tocsr()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    after = np.searchsorted(reached, records.next_state[first])
    return steps_evidence(Draws.of(matrix, np.ravel(row), after))


def _starts_evidence(world: Any, starts: Ints, law: Floats) -> float:
    """log E against the initial law, bet on as single states and in blocks: among M states drawn
    from the law, sorted by number or by probability with ties by lot, the k-th start falls into a
    block of m_b gaps with probability (m_b + starts there so far)/(M + k), and the bet holds
    (kappa m_b/(M + 1) + starts there so far)/(kappa + k - 1)."""
    past, count = np.arange(starts.size), COMPARED_STARTS
    single = [
        math.fsum(np.log1p(rank(starts) / (kappa * law)) - np.log1p(past / kappa))
        for kappa in CONCENTRATIONS
    ]
    rng, in_blocks = generator(0, STARTS_STREAM), []
    drawn = np.asarray(world.draw_initial(rng, count))
    for order_by in (lambda states: states, world.initial_probability):
        lots = rng.random(count + starts.size)
        keys = np.concatenate([np.asarray(order_by(drawn)), np.asarray(order_by(starts))])
        order = np.lexsort((lots, keys))
        place = np.argsort(order, kind="stable")
        before = np.cumsum(order < count)[place][count:]
        for number in START_BLOCKS:
            label = np.arange(count + 1) * number // (count + 1)
            sizes = np.bincount(label).astype(float)[label[before]]
            seen = rank(label[before])
            urn = (sizes + seen) / (count + 1 + past)
            for kappa in CONCENTRATIONS:
                held = (kappa * sizes / (count + 1) + seen) / (kappa + past)
                in_blocks.append(math.fsum(np.log(held) - np.log(urn)))
    return log_mean([log_mean(single), log_mean(in_blocks)])


# Walks


class Actor:
    """Whatever can choose actions, asked for a batch of walks."""

    def __init__(self, policy: Any, rng: np.random.Generator) -> None:
        self._rng, self._state, self._started = rng, None, False
        by_predict = hasattr(policy, "predict") and not hasattr(policy, "sample")
        self._policy = policy.seeded(rng) if by_predict and hasattr(policy, "seeded") else policy

    def __call__(self, states: Any) -> Any:
        if hasattr(self._policy, "sample"):
            return np.asarray(self._policy.sample(states, self._rng))
        if not hasattr(self._policy, "predict"):
            return np.asarray(self._policy(states, self._rng))
        starting = np.full(len(states), not self._started)
        self._started = True
        actions, self._state = self._policy.predict(
            states, state=self._state, episode_start=starting, deterministic=False
        )
        return np.asarray(actions)


def _walked(world: Any, cost: Cost, policy: Any, horizon: int) -> Totals:
    """Discounted totals of walks that take their steps together."""

    def draw(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
        actor, here = Actor(policy, rng), np.asarray(world.draw_initial(rng, count))
        totals, weight = np.zeros(1), 1.0
        for _ in range(horizon):
            actions = actor(here)
            totals = totals + weight * cost(here, actions)
            weight *= world.discount
            here = _stepped(world, rng, here, actions)
        missing = world.discount**horizon / (1 - world.discount)
        return totals, np.full(count, missing)

    return draw


def _stepped(world: Any, rng: np.random.Generator, states: Ints, actions: Ints) -> Ints:
    """Next states; successors in the order of their ids, numbers used up weight by weight."""
    if hasattr(world, "step"):
        return np.asarray(world.step(rng, states, actions))
    ids, laws = _successors(world, states, actions)
    order = np.argsort(ids, axis=1, kind="stable")
    rows = np.arange(len(ids))[:, np.newaxis]
    ids, laws, left = ids[rows, order], laws[rows, order], rng.random(len(ids))
    found, last = np.full(len(ids), -1), np.zeros(len(ids), dtype=np.int64)
    for column in range(laws.shape[1]):
        weight = laws[:, column]
        last = np.where(weight > 0, column, last)
        left = left - weight
        found = np.where((found < 0) & (left < 0) & (weight > 0), column, found)
    return np.asarray(ids[np.arange(len(ids)), np.where(found < 0, last, found)])


def _simulated(simulator: Any, policy: Any, horizon: int) -> Totals:
    def draw(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
        found = simulator.totals(policy, count, horizon, rng)
        return np.asarray(found.totals), np.asarray(found.unrecorded)

    return draw


def _shards(
    seed: int, stream: tuple[int, ...], count: int, size: int
) -> Iterator[tuple[np.random.Generator, int]]:
    """A generator and a number of draws for every shard."""
    for first in range(0, count, size):
        yield generator(seed, *stream, first), min(size, count - first)


def _check_walks(
    findings: Findings, run: CodedRun, policy: Any, walks: Callable[[Any, int], Totals]
) -> float:
    """Every sample of walks, drawn again or beside others; the p-value of their independence."""
    question, stated = run.question, run.evaluation
    horizon, count, seed = stated["horizon"], stated["trajectories"], stated["seed"]
    again = len(run.samples) * count * horizon <= MOST_STEPS
    fewer = max(2, min(count, MOST_STEPS // horizon // len(run.samples)))
    if not again:
        findings.leave_open(TOO_MANY)
    named: list[tuple[Any, tuple[int, ...]]] = [(policy, (STREAMS["walks"],))]
    if run.kind == MIXTURE:
        places = [run.places()[k][:2] for k in run.drawn]
        keys = [(STREAMS["mixture"], *place) for place in places]
        named = list(zip(_candidates(policy), keys, strict=True))

    def drawn(one: Any, key: tuple[int, ...], seed: int, number: int) -> tuple[Floats, Floats]:
        parts = [walks(one, horizon)(*shard) for shard in _shards(seed, key, number, WALK_SHARD)]
        return np.vstack([part for part, _ in parts]), np.concatenate([part for _, part in parts])

    for sample, (one, key) in zip(run.samples, named, strict=True):
        same = False
        if again:
            attempt = Findings()
            _check_same(attempt, question, sample, *drawn(one, key, seed, count))
            same = settle(findings, attempt, same_numpy=run.same_numpy)
        if not same:
            _check_alike(findings, question, sample, *drawn(one, key, seed ^ OTHER_SEED, fewer))
    steps = min(horizon, BATCH_STEPS)
    found = [_p_value(walks(one, steps), seed, number) for number, (one, _) in enumerate(named)]
    return min(1.0, min(found) * len(found))


def _candidates(policy: Any) -> list[Any]:
    """Those that can be drawn."""
    both = zip(policy.candidates, policy.weights, strict=True)
    return [one for one, weight in both if weight > 0]


def _check_same(
    findings: Findings, question: Question, sample: Sample, totals: Floats, missing: Floats
) -> None:
    """Whether the draws of the stored seed give the stated statistics."""
    costs, sizes = question.costs, question.costs.norms * question.horizon
    variances = spread(costs, totals, missing) ** 2
    what = f"the unrecorded time of {sample.name} that their seed gives"
    findings.close(what, sample.unrecorded, math.fsum(missing) / len(missing))
    for k, name in enumerate(question.names):
        size, where = float(sizes[k]), f"of {name!r} in {sample.name} that their seed gives"
        mean = float(totals[:, k].mean())
        findings.close(f"the mean {where}", float(sample.means[k]), mean, size)
        variance = float(variances[k])
        findings.close(f"the variance {where}", float(sample.variances[k]), variance, size**2)


def _check_alike(
    findings: Findings, question: Question, sample: Sample, totals: Floats, missing: Floats
) -> None:
    """Whether draws of another seed look like the stated statistics."""
    costs, h = question.costs, question.horizon
    blur = costs.ranges / 2 * math.sqrt(math.fsum(missing**2) / (len(missing) - 1))
    deviations = np.maximum(np.sqrt(sample.variances) - blur, 0.0)
    means = sample.means + costs.centre * sample.unrecorded
    stated = Moments(sample.count, means, deviations**2)
    fresh = Moments.of(totals + np.outer(missing, costs.centre))
    check_alike(findings, question.names, stated, fresh, costs.ranges * h, costs.norms * h)


def _p_value(draw: Totals, seed: int, number: int) -> float:
    """Whether walks of one batch are independent of one another: the sum of squares of batch sums,
    with totals at mean 0 and variance 1, against the same for random orders of all walks."""
    streams = [generator(seed, STREAMS["batches"], number, batch) for batch in range(BATCHES + 1)]
    totals = np.concatenate([draw(rng, BATCH_WALKS)[0] for rng in streams[:-1]])
    deviations = np.sqrt(((totals - totals.mean(axis=0)) ** 2).mean(axis=0))
    varies = deviations > AGREEMENT * np.maximum(np.abs(totals).max(axis=0), 1e-300)
    if not varies.any():
        return 1.0
    scores = (totals[:, varies] - totals[:, varies].mean(axis=0)) / deviations[varies]

    def squares(ordered: Floats) -> float:
        sums = ordered.reshape(BATCHES, BATCH_WALKS, -1).sum(axis=1)
        return float((sums**2).sum())

    stored, hits = squares(scores), 0
    for order in range(1, ORDERS + 1):
        other = squares(scores[streams[-1].permutation(len(scores))])
        hits += other >= stored * (1 - AGREEMENT)
        if hits == ENOUGH:
            return hits / order
    return (hits + 1) / (ORDERS + 1)


# Rows


@dataclass(frozen=True, eq=False)
class Examined:
    """One shard: how many steps were followed, the first that contradicts itself, sums of draws,
    and the draws themselves with their probabilities."""

    followed: int
    wrong: str
    count: int
    shares: Floats
    starts: float
    pairs: list[tuple[Any, float]]
    states: list[tuple[Any, float]]


@dataclass(frozen=True, eq=False)
class Rows:
    """A world with features, and the coefficients of a policy over them."""

    question: Question
    world: Any
    cost: Cost
    features: Any
    theta: Floats
    known: Floats
    """<phi_j, psi_i> where it is exact, NaN elsewhere: (costs x features)."""

    def __post_init__(self) -> None:
        shape = (len(self.question.names), self.theta.size)
        if self.known.shape != shape or self.features.num_features != self.theta.size:
            raise Refused("the features are not those of the coefficients")

    @property
    def exact(self) -> Floats:
        """The part of Psi' u that is not sampled."""
        return np.asarray(np.where(np.isnan(self.known), 0.0, self.known) @ self.theta)

    @property
    def ratio(self) -> float:
        """No row of Phi is longer than this times its q1."""
        return self.theta.size * self.question.horizon

    @property
    def _sampled(self) -> Floats:
        return np.where(np.isnan(self.known), self.theta, 0.0)

    def ranges(self) -> list[Floats]:
        """Of the samples: psi times what is sampled of u/q1, V1 and V2."""
        reach = [
            self.ratio * np.maximum(sign * self._sampled, 0.0).max(axis=1) for sign in (-1.0, 1.0)
        ]
        ends = self.question.costs.ends
        corners = np.array([end * far for end in ends for far in (-reach[0], reach[1])])
        flow = 2 * (1 + self.question.discount) * self.ratio * np.abs(self.theta).max() + 2
        negative = self.ratio * max(0.0, float(-self.theta.min()))
        widths = [np.ptp(corners, axis=0), np.array([negative]), np.array([flow])]
        return [one * (1 + SLACK) for one in widths]

    def drawn(self, seed: int, count: int) -> tuple[list[Moments], Moments, list[Examined]]:
        """Moments of the three sums from their seed; of Psi' u when all of it is sampled; what the
        rows are found to be."""
        shards = _shards(seed, (STREAMS["rows"],), count, ROW_SHARD)
        *sums, examined = zip(*(self._shard(*shard) for shard in shards), strict=True)
        moments = [Moments.of(np.concatenate(one).reshape(count, -1)) for one in sums]
        return moments[:3], moments[3], list(examined)

    def _shard(
        self, rng: np.random.Generator, count: int
    ) -> tuple[Floats, Floats, Floats, Floats, Examined]:
        pairs = self.features.draw(rng, count)
        rows = self.features.rows(*pairs)
        law = np.asarray(rows.sum(axis=1)).ravel() / self.ratio
        density, costs = np.asarray(rows @ self.theta) / law, self.cost(*pairs)
        expected = costs * np.asarray(rows @ self._sampled.T) / law[:, np.newaxis]
        starts = rng.random(count) < 0.5
        first = self.world.draw_initial(rng, count)
        states = np.where(starts, first, self.features.draw_flow(rng, count))
        blocks = [self._violation(states[at : at + STATES]) for at in range(0, count, STATES)]
        violated, flow, initial = (np.concatenate(part) for part in zip(*blocks, strict=True))
        steps, wrong = _steps_agree(self.world, pairs, states, rng)
        bet_on, flowing = slice(0, DRAWS_BET_ON), ~starts
        again = zip(np.asarray(pairs[0]).tolist(), np.asarray(pairs[1]).tolist(), strict=True)
        examined = Examined(
            steps, wrong, count, np.asarray((1 / (law * self.ratio)) @ rows),
            math.fsum(initial / (flow + initial)),
            list(zip(again, law.tolist(), strict=True))[bet_on],
            list(zip(states[flowing].tolist(), flow[flowing].tolist(), strict=True))[bet_on],
        )  # fmt: skip
        whole = costs * density[:, np.newaxis]
        return expected, np.maximum(-density, 0.0), violated, whole, examined

    def _violation(self, states: Ints) -> tuple[Floats, Floats, Floats]:
        """|D_y theta - initial_y|/q(y), q2 and the initial law."""
        leaving, mass = np.zeros(states.size), np.zeros(states.size)
        for action in range(self.world.num_actions):
            rows = self.features.rows(states, np.full(states.size, action))
            leaving += rows @ self.theta
            mass += np.asarray(rows.sum(axis=1)).ravel()
        offsets, before, actions, chances = self.world.predecessors(states)
        where = np.arange(states.size).repeat(np.diff(offsets))
        rows, weight = self.features.rows(before, actions), self.question.discount * chances
        entering = np.bincount(where, weight * (rows @ self.theta), minlength=states.size)
        sums = np.asarray(rows.sum(axis=1)).ravel()
        mass += np.bincount(where, weight * sums, minlength=states.size)
        initial = np.asarray(self.world.initial_probability(states))
        law = mass / ((1 + self.question.discount) * self.ratio)
        off = np.abs(leaving - entering - initial)
        return np.asarray(off / ((law + initial) / 2)), law, initial


def _check_rows(findings: Findings, run: CodedRun, rows: Rows) -> list[Examined]:
    """Ranges, statistics from the stored seed, and what is exact beside what is sampled."""
    count, seed, attempt = run.evaluation["rows"], run.evaluation["seed"], Findings()
    drawn, whole, examined = rows.drawn(seed, count)
    names = [
        [f"{name} of {sample.name}" for name in run.question.names][: sample.means.size]
        for sample in run.samples
    ]
    every = list(zip(run.samples, drawn, rows.ranges(), names, strict=True))
    for sample, own, widths, called in every:
        for k, (name, size) in enumerate(zip(called, widths.tolist(), strict=True)):
            findings.close(f"the range of {name}", float(sample.ranges[k]), size, size)
            what = f"the mean of {name} that its seed gives"
            attempt.close(what, float(sample.means[k]), float(own.means[k]), size)
            what = f"the variance of {name} that its seed gives"
            attempt.close(what, float(sample.variances[k]), float(own.variances[k]), size**2)
    if not settle(findings, attempt, same_numpy=run.same_numpy):
        drawn, whole, examined = rows.drawn(seed ^ OTHER_SEED, count)
        for (sample, _, widths, called), own in zip(every, drawn, strict=True):
            stated = Moments(sample.count, sample.means, sample.variances)
            check_alike(findings, called, stated, own, widths, widths)
    first = run.samples[0]
    sizes = run.question.costs.norms * rows.ratio * np.abs(rows.theta).max()
    stated = Moments(first.count, rows.exact + first.means, first.variances)
    reach = whole.radius(2 * sizes, LEVEL / sizes.size)
    reach = reach + stated.radius(first.ranges, LEVEL / sizes.size) + AGREEMENT * sizes
    for k, name in enumerate(run.question.names):
        findings.check(
            abs(stated.means[k] - whole.means[k]) <= reach[k],
            f"Psi' u of {name!r} is {stated.means[k]!r}, sampling gives {whole.means[k]!r}",
        )
    return examined


def _draws_evidence(parts: list[Examined]) -> float:
    """log E against the laws of all draws: on what comes again, on the shares of the columns (mean
    1/d), on half the density of starts (mean 1/2)."""
    count = sum(part.count for part in parts)
    columns = np.atleast_1d(np.asarray(sum(part.shares for part in parts)))

    def tilted(total: float, mean: float) -> float:
        return log_mean([
            tilt * total - count * math.log(1 - mean + mean * math.exp(tilt)) for tilt in TILTS
        ])  # fmt: skip

    return log_mean([
        _repeated(parts[0].pairs), _repeated(parts[0].states),
        log_mean([tilted(float(one), 1 / columns.size) for one in columns]),
        tilted(math.fsum(part.starts for part in parts), 0.5),
    ])  # fmt: skip


def _repeated(draws: list[tuple[Any, float]]) -> float:
    """Draw after draw, with what was seen before it: each by itself, and all that was seen."""
    if not draws:
        return 0.0
    seen: Counter[Any] = Counter()
    covered, single, every = 0.0, dict.fromkeys(CONCENTRATIONS, 0.0), dict.fromkeys(TILTS, 0.0)
    for number, (what, law) in enumerate(draws):
        for kappa in single:
            single[kappa] += math.log1p(seen[what] / (kappa * law)) - math.log1p(number / kappa)
        for tilt in every:
            mean = max(1 + covered * math.expm1(tilt), LEAST)
            every[tilt] += tilt * (seen[what] > 0) - math.log(mean)
        covered += 0.0 if seen[what] else law
        seen[what] += 1
    return log_mean([log_mean(list(single.values())), log_mean(list(every.values()))])


def _steps_agree(
    world: Any, pairs: tuple[Ints, Ints], states: Ints, rng: np.random.Generator
) -> tuple[int, str]:
    """Forwards and back from pairs, backwards and there from states; what contradicts itself."""
    x, a = (np.asarray(part)[:FOLLOWED] for part in pairs)
    ids, laws = _successors(world, x, a)
    sums, numbers = np.cumsum(laws, axis=1), rng.random(x.size)[:, np.newaxis]
    last = laws.shape[1] - 1 - np.argmax(laws[:, ::-1] > 0, axis=1)
    reached = ids[np.arange(x.size), np.minimum((sums <= numbers).sum(axis=1), last)]
    y = np.asarray(states)[:FOLLOWED]
    lots = rng.random(y.size)
    there = _lists(world, x, a, reached)
    offsets, before, actions, chances = (np.asarray(part) for part in world.predecessors(y))
    has = np.flatnonzero(np.diff(offsets))
    place = offsets[has] + (lots[has] * np.diff(offsets)[has]).astype(np.int64)
    true = _chance(world, before[place], actions[place], y[has])
    back = _contradiction(before[place], actions[place], y[has], true, chances[place])
    return x.size + y.size, there or back


def _record_agrees(world: Any, records: Records | None) -> tuple[int, str]:
    """Recorded steps, each once, that can happen; what contradicts itself."""
    if records is None:
        return 0, ""
    columns = (records.state, records.action, records.next_state)
    x, a, y = np.unique(np.stack([one[:TESTED_STEPS] for one in columns]), axis=1)
    possible = _chance(world, x, a, y) > 0
    return int(possible.sum()), _lists(world, x[possible], a[possible], y[possible])


def _successors(world: Any, x: Ints, a: Ints) -> tuple[Ints, Floats]:
    ids, laws = (np.asarray(part) for part in world.successors(x, a))
    return ids, laws


def _chance(world: Any, x: Ints, a: Ints, y: Ints) -> Floats:
    """P(y | x, a), row by row."""
    ids, laws = _successors(world, x, a)
    return np.asarray(np.where(ids == y[:, np.newaxis], laws, 0.0).sum(axis=1))


def _lists(world: Any, x: Ints, a: Ints, y: Ints) -> str:
    """Where a y does not list (x, a) with the probability of the step."""
    offsets, before, actions, chances = (np.asarray(part) for part in world.predecessors(y))
    row = np.arange(y.size).repeat(np.diff(offsets))
    listed = np.where((before == x[row]) & (actions == a[row]), chances, 0.0)
    said = np.asarray(np.bincount(row, listed, minlength=y.size), dtype=float)
    return _contradiction(x, a, y, _chance(world, x, a, y), said)


def _contradiction(x: Ints, a: Ints, y: Ints, true: Floats, said: Floats) -> str:
    wrong = np.flatnonzero(~(np.abs(said - true) <= ABSOLUTE + RELATIVE * true))
    if not wrong.size:
        return ""
    k = int(wrong[0])
    return (
        f"state {x[k]}, action {a[k]} leads to state {y[k]} with probability {float(true[k])!r} by "
        f"successors and {float(said[k])!r} by predecessors"
    )
