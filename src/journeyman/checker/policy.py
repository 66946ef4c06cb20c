"""What the policy costs in an explicit world: from the visits that are part of the evidence, from
the measure that defines it, from rollouts, or from sampled rows.

The stored visits nu are no more than a proposal. With mu = nu times the policy, the residual
r = initial - (B - discount P)' mu bounds the error of Psi' mu by N h |r|_1.

Rollouts take a step together; whoever has come to rest leaves. In a state of rest every step costs
what the policy's actions cost there on average, so the endless rest is known. A rollout that is cut
off after H steps leaves discount^H/(1 - discount) of time without a record.

Of sampled rows the check makes the pass over all rows that sampling avoids. With u = base + Phi
theta, E = B - discount P, t = initial - E' base, p = initial - E' base+,

    V1 = sum u-     V2 = sum |E' Phi theta - t|     r+ = sum |p - E' (u+ - base+)|

are drawn by laws proportional to their envelopes, in 2-norms

    [|Phi_s| |theta| - base_s]+     |(E' Phi)_y| |theta| + |t_y|
    ((B + discount P)' |Phi| |theta|)_y + |p_y|

where of theta >= 0 or <= 0 only the part counts that can have the sign, when Phi >= 0.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.checker.archives import Floats, Ints, archive, dense, reals
from journeyman.checker.chain import EPSILON, Chain, worst_ends
from journeyman.checker.costs import smaller_radii
from journeyman.checker.draws import (
    TOO_MANY,
    Moments,
    Sample,
    check_alike,
    check_expected,
    check_same,
    generator,
    real_bytes,
    seed_of,
    whole_bytes,
)
from journeyman.checker.expert import TRUNCATION
from journeyman.checker.findings import AGREEMENT, DerivedTerm, Findings, Refused
from journeyman.checker.inputs import (
    FURTHEST,
    Distances,
    Evidence,
    Problem,
    StoredBudget,
    StoredWorld,
    read_matrix,
)

WORST = "D, worst laws"
MEASURE = "the measure"
SAME_POLICY = 1e-11
ROUNDING = "2 eps (pairs + branches + 8) (1 + |u|_1) N h"
ROLLOUTS, ROWS = "rollouts", "rows"
DRAWN = {"E": ROLLOUTS, "A (sampled)": ROWS, "B (sampled)": ROWS}
"""Kinds of evaluation that rest on draws."""
STREAMS = {ROLLOUTS: 0x726F6C6C, ROWS: 0x726F7773}
CHUNK = 128
"""Steps of a rollout whose numbers are drawn at a time."""
MOST_STEPS, MOST_AGAIN = 1 << 24, 1 << 26
"""Beyond so many, fewer rollouts are drawn, and none again."""
SUMS = ["V1", "V2", "r+"]
SLACK = 1e-9
"""Relative, on the norms and ranges of sampled rows."""
HIDDEN = 1e-12
"""Relative: a row that is never drawn and counts for less does so by rounding."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Expectations of the policy by one kind of evaluation, and the terms of their error."""

    kind: str
    expectations: Floats
    terms: tuple[DerivedTerm, ...]
    size: float = 0.0
    """What the expectations were computed from, where that is larger than any gap."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A policy in its world, with its visits."""

    world: StoredWorld
    problem: Problem
    policy: Floats
    state_visits: Floats

    @cached_property
    def visits(self) -> Floats:
        return self.state_visits[self.world.state_of] * self.policy

    @cached_property
    def expectations(self) -> Floats:
        return self.expected(self.visits)

    @cached_property
    def residual(self) -> Floats:
        return self.world.residual(self.visits)

    def expected(self, measure: Floats) -> Floats:
        return np.asarray(self.problem.matrix.T @ measure)

    def gap(self, values: Floats) -> float:
        """To the given expectations of an expert."""
        return self.problem.costs.gap(self.expectations - values)

    def rounding(self, mass: float, summands: int = 0, size: float | None = None) -> float:
        """Of a measure of the given mass, each entry of which has so many more summands."""
        terms = self.world.num_pairs + self.world.branches + summands + 8
        size = self.problem.costs.plain if size is None else size
        return 2 * EPSILON * terms * (1 + mass) * size * self.horizon

    @cached_property
    def horizon(self) -> float:
        """How often a residual can count: h, with discount 1 the longest time that the policy
        expects from a state that it gets to, by w - K_pi w >= theta there."""
        world = self.world
        if not world.has_goal:
            return world.horizon
        inside = world.reached(self.policy)
        law = np.where(inside[world.state_of], self.policy, 0.0)
        counted = inside & ~world.rests
        if not counted.any():
            return 0.0
        chain = Chain(world, law)
        w = np.maximum(chain.values(counted[world.state_of].astype(float))[:, 0], 0.0)
        theta = float((chain.system @ w)[counted].min())
        theta -= EPSILON * (world.branches + 4) * (1 + float(w.max()))
        if not theta > 0:
            raise Refused("nothing bounds the steps that the policy expects")
        return float(w.max()) / theta

    @cached_property
    def exact(self) -> Evaluation:
        """Kind D."""
        formula = "N h |initial - (B - discount P)' mu|_1"
        term = DerivedTerm("evaluation", formula, self._error(self.missed), "residual")
        return self._of("D", self.expectations, self.visits, term)

    @cached_property
    def missed(self) -> float:
        """The 1-norm of the residual."""
        return size_of(self.residual)

    def _error(self, missed: float) -> float:
        return self.problem.costs.plain * self.horizon * missed

    def by_measure(self, evidence: Evidence) -> list[Evaluation]:
        """Kinds A, B, B' and C."""
        u = evidence.measure
        assert u is not None
        self.require_defined(u)
        costs, h = self.problem.costs, self.world.horizon
        positive, missing = np.maximum(u, 0.0), size_of(self.world.residual(u))
        lemma = costs.plain * h * (2 * size_of(positive - u) + missing)
        r = self.world.residual(positive)
        about = costs.about_centre * h * size_of(r)
        moved = self.expected(positive) + costs.centre * (h * math.fsum(r))
        scaled = "N h |initial - a (B - discount P)' u+|_1"
        return [
            self._of(
                "A", self.expected(u), u, DerivedTerm("Lemma 2", "N h (2 V1 + V2)", lemma, MEASURE)
            ),
            self._with_residual("B", positive, "flow residual", "N h |r|_1", MEASURE),
            self._with_residual(
                "B'", evidence.measure_scale * positive, "flow residual", scaled, MEASURE
            ),
            self._of(
                "C", moved, positive,
                DerivedTerm("flow residual", "N(Psi - 1 c') h |r|_1", about, MEASURE),
            ),
        ]  # fmt: skip

    def _with_residual(
        self, kind: str, measure: Floats, name: str, formula: str, source: str
    ) -> Evaluation:
        """The error of a measure without negative entries, by its residual."""
        error = self._error(size_of(self.world.residual(measure)))
        return self._of(
            kind, self.expected(measure), measure, DerivedTerm(name, formula, error, source)
        )

    def _of(
        self, kind: str, expectations: Floats, measure: Floats, term: DerivedTerm
    ) -> Evaluation:
        hidden = self.rounding(size_of(measure))
        return Evaluation(kind, expectations, (term, _rounding(hidden)))

    def require_defined(self, u: Floats) -> None:
        """Whether the measure says what the policy does, state by state."""
        world, positive = self.world, np.maximum(u, 0.0)
        peak = np.maximum.reduceat(positive, world.first[:-1])[world.state_of]
        share = np.where(peak > 0, positive, 1.0) / np.where(peak > 0, peak, 1.0)
        law = share / world.per_state(share)[world.state_of]
        if (np.abs(law - self.policy) > SAME_POLICY).any():
            raise Refused("the measure defines another policy")

    def budget_terms(
        self, budget: StoredBudget, distances: Distances | None
    ) -> tuple[DerivedTerm, ...]:
        """What the policy uses of a budget, and what that may be off by: by nothing where it
        never chooses a pair that costs anything."""
        if budget.cost.min() >= 0 and not self.policy[budget.cost > 0].any():
            return (
                DerivedTerm("spent", "<mu, d>", 0.0, "the policy avoids every pair with d > 0"),
            )
        used = float(budget.cost @ self.visits)
        lost, made = (math.fsum(np.maximum(sign * self.residual, 0.0)) for sign in (1, -1))
        error = max(0.0, float(budget.given.max() * lost - budget.given.min() * made))
        hidden = self.rounding(math.fsum(self.visits), 0, float(np.abs(budget.given).max()))
        formula = "2 eps (pairs + branches + 8) (1 + |mu|_1) max|d| h"
        terms = (
            DerivedTerm("spent", "<mu, d>", used, "evaluation"),
            DerivedTerm(
                "evaluation", "h (max d |r+|_1 - min d |r-|_1)", error * self.horizon,
                "residual",
            ),
            DerivedTerm("rounding", formula, hidden, "double precision"),
        )  # fmt: skip
        if distances is None:
            return terms
        simple = float(np.ptp(budget.cost)) / 2 * self.distance(distances)
        ends = worst_ends(self.world, self.policy, budget.cost[:, np.newaxis], distances)
        low, high = (min(simple, max(float(end[0]) - used, 0.0)) for end in ends)
        formula = "(max d - min d)/2 h (discount <mu, err> + err0), or the worst laws"
        return (*terms, DerivedTerm("model", formula, low, distances.source, high))

    # In an estimated world

    def distance(self, distances: Distances) -> float:
        """How far the policy's occupancy in the true world can be from that in the model."""
        missed = self.missed * self.world.horizon
        weighted = float(self.visits @ distances.transition)
        weighted += float(distances.transition.max()) * missed
        ahead = self.world.discount * weighted + distances.initial
        return min(ahead, FURTHEST) * self.world.horizon

    def model_term(self, distances: Distances) -> DerivedTerm:
        """What the model may hide from a gap."""
        value = self.problem.costs.smaller * self.distance(distances)
        return DerivedTerm("model", "N h (discount <mu, err> + err0)", value, distances.source)

    def worst_ends(self, distances: Distances) -> list[tuple[Floats, Floats]]:
        """(least, greatest) expectations under the worst laws: what they are, and as far as a claim
        may go beyond that. A one-sided class needs no least ones."""
        matrix = dense(self.problem.matrix)
        top = worst_ends(self.world, self.policy, matrix, distances)
        if self.problem.costs.only_worse:
            return [(self.expectations, end) for end in top]
        bottom = worst_ends(self.world, self.policy, -matrix, distances)
        return [(-low, high) for low, high in zip(bottom, top, strict=True)]

    def worst_term(
        self, ends: list[tuple[Floats, Floats]], values: Floats, distances: Distances
    ) -> DerivedTerm:
        """By how much the gap to `values` under the worst laws exceeds that in the model."""
        costs, gap = self.problem.costs, self.gap(values)
        low, high = (
            max(costs.largest_gap(least - values, greatest - values) - gap, 0.0)
            for least, greatest in ends
        )
        formula = "gap_W under the worst laws - gap_W in the model"
        return DerivedTerm("model", formula, low, distances.source, high)

    # From draws

    @property
    def seed(self) -> int:
        world, rows = self.world, self.world.rows
        wholes = (world.first, rows.indptr, rows.indices)
        numbers = (rows.data, world.initial, np.array([world.discount]), self.policy)
        return seed_of(b"explicit\n", *map(whole_bytes, wholes), *map(real_bytes, numbers))

    def by_rollouts(self, sample: Sample, stated: str | None, *, centred: bool) -> Evaluation:
        """Kind E from its statistics."""
        costs, h = self.problem.step_costs, self.world.horizon
        radius, formula, source = sample.radius(costs, self.world.total_time, stated)
        cut = costs.of_tails(centred=centred) * sample.unrecorded
        terms = (
            DerivedTerm("rollout sampling", formula, radius, source),
            DerivedTerm("rollout truncation", TRUNCATION, cut, "recorded lengths"),
            _rounding(self.rounding(h, sample.horizon or 0)),
        )
        moved = costs.centre * sample.unrecorded if centred else 0.0
        return Evaluation("E", sample.means + moved, terms)

    def check_rollouts(self, findings: Findings, sample: Sample, *, same_numpy: bool) -> None:
        """Whether the statistics are those of rollouts from their seed."""
        world, costs, names = self.world, self.problem.step_costs, self.problem.names
        horizon = sample.horizon
        if sample.name != ROLLOUTS or horizon is None or sample.means.size != len(names):
            raise Refused("the statistics are not those of rollouts, with one mean for every cost")
        sizes, widths = costs.norms * world.total_time, costs.ranges * world.total_time
        for k, name in enumerate(names):
            what = f"the range of {name!r} in rollouts"
            findings.close(what, float(sample.ranges[k]), float(widths[k]), float(sizes[k]))
        cut = float(world.time_after(horizon))
        unfinished = sample.unrecorded * sample.count / cut if cut > 0 else 0.0
        findings.check(
            -0.1 < unfinished < sample.count + 0.1
            and abs(unfinished - round(unfinished)) <= AGREEMENT * sample.count,
            f"rollouts of {horizon} steps cannot leave {sample.unrecorded!r} of time unrecorded",
        )
        squares = max(round(unfinished), 0) * cut**2
        blur = costs.ranges / 2 * math.sqrt(squares / (sample.count - 1))
        deviations = np.sqrt(sample.variances) - blur
        if (deviations < -AGREEMENT * sizes).any():
            raise Refused("the variances of rollouts do not allow for what was not recorded")
        means = sample.means + costs.centre * sample.unrecorded
        stated = Moments(sample.count, means, np.maximum(deviations, 0.0) ** 2)
        margins = costs.ranges / 2 * sample.unrecorded + AGREEMENT * sizes
        margins = margins + self.problem.costs.plain * world.horizon * math.fsum(
            np.abs(self.residual)
        )
        check_expected(findings, names, stated, self.expectations, widths, margins)
        fewer = max(2, min(sample.count, MOST_STEPS // horizon))
        rng = generator(sample.seed, STREAMS[ROLLOUTS], fresh=True)
        fresh, missing = self._walked(fewer, horizon, rng)
        check_alike(findings, names, stated, fresh, widths, sizes)
        doubt = cut * math.sqrt(math.log(4e9) / 2)
        findings.check(
            abs(missing - sample.unrecorded)
            <= doubt * (1 / math.sqrt(fewer) + 1 / math.sqrt(sample.count)),
            f"rollouts leave {sample.unrecorded!r} of time unrecorded, fresh ones {missing!r}",
        )
        if sample.count * horizon > MOST_AGAIN:
            findings.leave_open(TOO_MANY)
        else:
            rng = generator(sample.seed, STREAMS[ROLLOUTS])
            again, missing = self._walked(sample.count, horizon, rng)
            check_same(findings, names, stated, again, sizes, same_numpy=same_numpy)
            if same_numpy:
                what = "the time that rollouts leave unrecorded"
                findings.close(what, sample.unrecorded, missing, world.total_time)

    def _walked(self, count: int, horizon: int, rng: np.random.Generator) -> tuple[Moments, float]:
        """Moments of completed totals, and the mean time without a record."""
        totals, missing = self.walks(count, horizon, rng)
        moments = Moments.of(totals + np.outer(missing, self.problem.step_costs.centre))
        return moments, float(missing.mean())

    def walks(self, count: int, horizon: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Totals of rollouts of at most `horizon` steps, and the time without a record behind."""
        world, policy, matrix = self.world, self.policy, self.problem.matrix
        here = rng.choice(world.num_states, size=count, p=world.initial)
        rest = np.zeros((world.num_states, matrix.shape[1]))
        for state in np.flatnonzero(world.rests):
            pairs = np.arange(world.first[state], world.first[state + 1])
            rest[state] = policy[pairs] @ dense(matrix[pairs])
        totals, going = np.zeros((count, rest.shape[1])), np.arange(count)
        missing = np.zeros(count)
        for time in range(horizon):
            if time % CHUNK == 0:
                block = min(CHUNK, horizon - time)
                numbers, place = rng.random((going.size, block, 2)), np.arange(going.size)
            now, at = numbers[place, time % CHUNK], here[going]
            pair = _by_lot(policy, world.first[at], world.first[at + 1], now[:, 0])
            ends = world.rows.indptr[pair], world.rows.indptr[pair + 1]
            here[going] = world.rows.indices[_by_lot(world.rows.data, *ends, now[:, 1])]
            cost = np.where(world.rests[at, np.newaxis], rest[at], dense(matrix[pair]))
            totals[going] += world.discount**time * cost
            stopped = world.rests[here[going]]
            tail = world.discount ** (time + 1) * world.horizon
            totals[going[stopped]] += tail * rest[here[going[stopped]]]
            going, place = going[~stopped], place[~stopped]
            if not going.size:
                break
        missing[going] = world.time_after(horizon)
        return totals, missing

    def by_rows(self, features: "StoredFeatures", samples: list[Sample]) -> list[Evaluation]:
        """Kinds A and B from their statistics."""
        V1, V2, r_plus = (_upper(one) for one in samples)
        N, h, source = self.problem.costs.plain, self.world.horizon, f"{samples[0].count} rows"
        hidden = _rounding(self.rounding(features.mass, features.coefficients.size))
        expectations, size = self.expected(features.measure), 2 * N * features.mass
        first = (
            DerivedTerm("negativity", "2 N h V1", 2 * N * h * V1, source),
            DerivedTerm("flow violation", "N h V2", N * h * V2, source),
        )
        second = (
            DerivedTerm("negativity", "N V1", N * V1, source),
            DerivedTerm("flow residual", "N h r+", N * h * r_plus, source),
        )
        return [
            Evaluation("A (sampled)", expectations, (*first, hidden), size),
            Evaluation("B (sampled)", expectations, (*second, hidden), size),
        ]

    def check_rows(
        self, findings: Findings, features: "StoredFeatures", samples: list[Sample], delta: float,
        *, same_numpy: bool,
    ) -> None:  # fmt: skip
        """Whether the statistics are those of sampled rows, at `delta` for all of them together."""
        if [one.name for one in samples] != SUMS or any(one.means.size != 1 for one in samples):
            raise Refused("the statistics are not those of sampled rows")
        self.require_defined(features.measure)
        first, sums = samples[0], features.sums(self.world)
        positive = max(1, sum(one.ranges[0] > 0 for one in samples))
        size = self.world.horizon + features.mass
        for name, sample, one in zip(SUMS, samples, sums, strict=True):
            findings.equal(
                f"the draws of {name}", (sample.seed, sample.count), (first.seed, first.count)
            )
            findings.close(f"the range of {name}", float(sample.ranges[0]), one.width, size)
            what = f"the failure probability of {name}"
            findings.close(what, sample.failure_probability, delta / positive)
            findings.check(
                sample.horizon is None and sample.unrecorded == 0,
                f"the statistics of {name} speak of rollouts",
            )
        means, variances = (
            np.concatenate([getattr(one, part) for one in samples])
            for part in ("means", "variances")
        )
        stated, sizes = Moments(first.count, means, variances), np.full(len(sums), size)
        widths = np.array([one.width for one in sums])
        exact = np.array([math.fsum(one.values[one.law > 0]) for one in sums])
        check_expected(findings, SUMS, stated, exact, widths, AGREEMENT * sizes)
        fresh, again = (
            Moments.of(np.column_stack([one.drawn(first.count, rng) for one in sums]))
            for rng in (generator(first.seed, STREAMS[ROWS], fresh=new) for new in (True, False))
        )
        check_alike(findings, SUMS, stated, fresh, widths, sizes)
        check_same(findings, SUMS, stated, again, sizes, same_numpy=same_numpy)


@dataclass(frozen=True, eq=False)
class Sum:
    """What is summed, and the envelope that it is drawn by."""

    values: Floats
    envelope: Floats

    @property
    def width(self) -> float:
        return (1 + SLACK) * float(self.envelope.sum())

    @cached_property
    def law(self) -> Floats:
        whole, size = float(self.envelope.sum()), self.envelope.size
        return self.envelope / whole if whole > 0 else np.full(size, 1 / size)

    @property
    def missed(self) -> float:
        """The largest value that is never drawn."""
        never = (self.law <= 0) | (self.width <= 0)
        return float(self.values[never].max(initial=0.0))

    def drawn(self, count: int, rng: np.random.Generator) -> Floats:
        rows = rng.choice(self.law.size, size=count, p=self.law)
        return np.asarray(self.values[rows] / self.law[rows])


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """Phi, theta and the base measure."""

    matrix: Any
    coefficients: Floats
    base: Floats | None

    @cached_property
    def change(self) -> Floats:
        """Phi theta."""
        return np.asarray(self.matrix @ self.coefficients)

    @property
    def fixed(self) -> Floats:
        """The base measure, zero without one."""
        return np.zeros(self.matrix.shape[0]) if self.base is None else self.base

    @property
    def measure(self) -> Floats:
        return self.change + self.fixed

    @property
    def mass(self) -> float:
        """At least the 1-norm of the measure."""
        length = math.hypot(*self.coefficients)
        return length * math.fsum(_norms(self.matrix)) + math.fsum(np.abs(self.fixed))

    def sums(self, world: StoredWorld) -> tuple[Sum, Sum, Sum]:
        """V1, V2 and r+."""
        base, change, theta = self.fixed, self.change, self.coefficients
        norms, length = (1 + SLACK) * _norms(self.matrix), math.hypot(*theta)
        down = up = length
        entries = self.matrix.data if sparse.issparse(self.matrix) else self.matrix
        if (entries >= 0).all():
            down, up = math.hypot(*theta[theta < 0]), math.hypot(*theta[theta > 0])
        u, t = change + base, world.residual(base)
        p = world.residual(np.maximum(base, 0.0))
        stays = sparse.csr_array(
            (np.ones(world.num_pairs), world.state_of, np.arange(world.num_pairs + 1)),
            shape=world.rows.shape,
        )
        flow = (stays - world.discount * world.rows).tocsr()
        steep = _norms(flow.T @ self.matrix) * length
        near = world.per_state(norms) + world.discount * (world.rows.T @ norms)
        furthest = up if self.base is None else max(down, up)
        grown = np.where(base >= 0, np.maximum(change, -base), np.maximum(u, 0.0))
        return (
            Sum(np.maximum(-u, 0.0), np.maximum(down * norms - base, 0.0)),
            Sum(np.abs(world.residual(change, t)), steep + np.abs(t)),
            Sum(np.abs(world.residual(grown, p)), furthest * near + np.abs(p)),
        )

    def is_supported(self, world: StoredWorld) -> bool:
        """Whether no row of probability zero counts."""
        size = HIDDEN * (world.horizon + self.mass)
        return all(one.missed <= size for one in self.sums(world))


def read_features(data: bytes, world: StoredWorld) -> StoredFeatures:
    _, arrays = archive(data, "features", 1)
    theta = reals(arrays, "coefficients", 1)
    matrix = read_matrix(arrays, "matrix", theta.size)
    if not theta.size or matrix.shape != (world.num_pairs, theta.size):
        raise Refused("it has not one coefficient for every feature, or one row for every pair")
    base = reals(arrays, "base", 1, world.num_pairs) if "base" in arrays else None
    return StoredFeatures(matrix, theta, base)


def size_of(vector: Floats) -> float:
    """Its 1-norm."""
    return float(np.abs(vector).sum())


def _rounding(value: float) -> DerivedTerm:
    return DerivedTerm("rounding", ROUNDING, value, "double precision")


def _upper(sample: Sample) -> float:
    """What the mean of a sum of rows does not exceed."""
    half = sample.failure_probability / 2
    radius = smaller_radii(sample.variances, sample.ranges, sample.count, half)
    return min(float(sample.ranges[0]), float(sample.means[0] + radius[0]))


def _norms(matrix: Any) -> Floats:
    """The 2-norm of every row."""
    squares = matrix.multiply(matrix) if sparse.issparse(matrix) else np.square(matrix)
    return np.asarray(np.sqrt(np.asarray(squares.sum(axis=1)).ravel()))


def _by_lot(weights: Floats, first: Ints, stop: Ints, numbers: Floats) -> Ints:
    """A position between `first` and `stop` for every number, by the weights; never one without
    weight. The numbers are used up weight by weight."""
    found, left, open_ = first.copy(), numbers.copy(), np.arange(first.size)
    offset = 0
    while open_.size:
        position = first[open_] + offset
        inside = position < stop[open_]
        open_, position = open_[inside], position[inside]
        weight = weights[position]
        found[open_] = np.where(weight > 0, position, found[open_])
        left[open_] -= weight
        open_ = open_[(left[open_] >= 0) | (weight <= 0)]
        offset += 1
    return found
