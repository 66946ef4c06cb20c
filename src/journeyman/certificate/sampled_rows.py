"""Kinds A and B from sampled rows: a certificate for coefficients without a pass over all pairs.

With u = base + Phi theta, v- and v+ the negative and positive part of v, E = B - discount P,

    V1 = sum over pairs of u-            = mean of u-(s)/q1(s)                   s ~ q1
    V2 = sum over states of |E' u - nu|  = mean of |D_y theta - t_y|/q2(y)       y ~ q2
    r+ = sum over states of |nu - E' u+| = mean of |p_y - E_y' (u+ - base+)|/q3(y)   y ~ q3

where nu = initial, D = E' Phi, t = nu - E' base, p = nu - E' base+, with

    A (sampled)   expectations Psi' u,   error N h (2 V1 + V2)              (Lemma 2)
    B (sampled)   expectations Psi' u,   error N V1 + N h r+

from upper bounds on V1, V2, r+ (Hoeffding or empirical Bernstein, whichever is smaller, each with
its part of delta); B because gap_W(Psi' u+ - x) <= gap_W(Psi' u - x) + N V1.

*In an explicit world* each law is proportional to an *envelope*, row by row at least what is
summed; then every sample lies between 0 and the envelope's total, and rows of probability zero add
nothing:

| sum | envelope                                          | total without a base measure      |
|-----|---------------------------------------------------|-----------------------------------|
| V1  | [|Phi_s| |theta| - base_s]+                       | C_1 |theta|                       |
| V2  | |D_y| |theta| + |t_y|                             | C_2 |theta| + 1                   |
| r+  | ((B + discount P)' (|Phi_s| |theta|))_y + |p_y|   | (1 + discount) C_1 |theta| + 1    |

in 2-norms, C_1 = sum |Phi_s|, C_2 = sum |D_y|. For Phi >= 0 only the negative coefficients count in
V1, only the positive ones in r+ (the longer of both with a base measure). *Why*, with a base
measure: u- = [-Phi_s theta - base_s]+, and |u+ - base+| <= |Phi_s theta|. A base measure that is an
occupancy measure has t = p = 0. Without one t = p = initial, which must be in the law: the law q2
of the subgradients, proportional to |D_y| alone, misses states that have only initial mass, and
its mean is below V2. Psi' u is exact. *Cost*: only Psi' Phi and the envelopes (which know theta by
its length only) need all rows, and so does the check that u defines the policy.

*In a stepped world* q1 and q2 are the laws of `DrawnFeatures`, and q = (q2 + initial)/2 takes the
place of q2 in V2; there is no base measure and no r+, and the expectations are sampled as well:

    psi_i' u = sum over j of theta_j <phi_j, psi_i>       where it is known exactly
             + mean of psi_i(s) u_i(s)/q1(s)              s ~ q1, u_i of the other columns

Features are nonnegative, so u(s)/q1(s) lies within C_1 max(-theta)+ below and C_1 max(theta)+ above
zero, and the samples of V2 are at most 2 C_2 max|theta| + 2. What is exact has no error and takes
no part of delta; the sums that are sampled share it evenly, then their costs, both signs, and both
radii. Whether the rows are what they claim to be is tested (`row_premises`). *Cost*: nothing
depends on the number of states.

*Guarantee*: with probability 1 - delta all kinds hold together. Rows must be *fresh*: independent
of theta. Problem and policy decide which rows are drawn (`draw_seeds`); nothing a solver has drawn
is used. Coefficients that were chosen because of these rows are not covered: the best of J needs
delta/J for each.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    SparseMatrix,
    assign,
    first_index,
    real_array,
    require_whole,
)
from journeyman.certificate.betting import CONCENTRATIONS, log_mean, log_rising
from journeyman.certificate.concentration import empirical_bernstein_radius, hoeffding_radius
from journeyman.certificate.evaluation import defines, largest_cost, rounding
from journeyman.certificate.expert_estimates import coordinatewise
from journeyman.certificate.premises import LEVEL, judged
from journeyman.certificate.rollouts import floats, fresh_stream, walk_rounding
from journeyman.certificate.terms import (
    PolicyEvaluation,
    Premise,
    PremiseStatus,
    Statistics,
    Term,
    above,
    declared,
    failed,
)
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidCosts, InvalidProblem, InvalidWorld
from journeyman.execution import Executor, Serial
from journeyman.features.base import DrawnFeatures, Features
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.function_policy import FeaturePolicy
from journeyman.problem import Apprenticeship, draw_seeds
from journeyman.problem.draw_seeds import ignored_seed
from journeyman.problem.reduced import Reduced, row_norms
from journeyman.world.large_world import LargeWorld, Predecessors, successor_laws
from journeyman.world.laws import draw_columns
from journeyman.world.levels import Level

# Whether drawn rows are what they claim to be: rows of the world, drawn by the declared law.
#
# Kind A in a large world rests on four answers of code: `predecessors`, the law of the features'
# draws, the masses of their columns, and the initial law. A wrong one makes a false bound, so
#
# *Steps* are followed there and back. From a drawn pair (x, a) a successor y is drawn, and must
# list (x, a) among its predecessors with the probability of that step: a missing pair is met as
# often as its mass is missing from the flow. Of a drawn state y one listed predecessor is taken,
# and must lead to y. Recorded steps are looked up as well. One contradiction refutes the premise.
#
# *Draws* are bet against. Under their law, with n draws,
#
#     pairs, states    each seen again as often as q1 and q2 say (rows(kappa) of `betting`), and any
#                      of those already seen as often as the sum of their laws says
#     columns          phi_j/(d h q1) lies in [0, 1] and has mean 1/d: phi_j has mass h
#     starts           initial/(2 q) lies in [0, 1] and has mean 1/2: initial has mass 1
#
# For z in [0, 1] of mean m, exp(l sum z)/(1 - m + m e^l)^n has a mean of at most one for every l.
# The mean of all wealths reaches 1/level with probability `level` at most.
#
# *Not seen*: errors in rows that are rarely drawn, and a density that is wrong where no row is
# drawn twice. That is declared.

FOLLOWED = 1 << 12
"""Rows of a task whose steps are followed."""
MOST_STEPS = 1 << 16
"""Recorded steps that are looked up: the first ones."""
MOST_BETS = 1 << 14
"""Draws whose repetitions are counted: the first ones."""
TILTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""l, with both signs."""
LEAST = 1e-12
"""In the place of probabilities that a law with a mass above one makes negative."""
RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""By how much the probabilities of a step forwards and backwards may differ."""
AGREE = "successors and predecessors agree"
DRAWN = "draws of features follow their law"
TAKEN = "features and predecessors are what they declare"


@dataclass(frozen=True)
class Steps:
    """How many steps were followed, and the first contradiction among them."""

    count: int
    contradiction: str | None

    @classmethod
    def joined(cls, parts: "list[Steps]") -> "Steps":
        words = [part.contradiction for part in parts if part.contradiction is not None]
        return cls(sum(part.count for part in parts), words[0] if words else None)


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """What is known of draws, task by task."""

    count: int
    num_flow: int
    """States that were drawn by q2."""
    columns: FloatArray
    """sum of phi_j/(d h q1) over the pairs that were drawn, column by column."""
    starts: float
    """sum of initial/(2 q) over the states that were drawn."""
    pairs: tuple[IntArray, FloatArray]
    """Which pairs are the same, and q1."""
    states: tuple[IntArray, FloatArray]
    """States drawn by q2, and q2."""


def followed(
    world: LargeWorld,
    pairs: tuple[IntArray, IntArray],
    states: IntArray,
    rng: np.random.Generator,
) -> Steps:
    """There and back from drawn pairs, back and there from drawn states."""
    x, a = (part[:FOLLOWED] for part in pairs)
    laws = successor_laws(world, x, a)
    chosen = draw_columns(laws.probabilities, rng.random(x.size))
    reached = laws.states[np.arange(x.size), chosen]
    chances = _probability(laws.states, laws.probabilities, reached)
    words = _not_listed(world, x, a, reached, chances)
    y, lots = states[:FOLLOWED], rng.random(min(states.size, FOLLOWED))
    return Steps(x.size + y.size, words or _not_leading(world, y, lots))


def looked_up(world: LargeWorld, demos: Demonstrations | None) -> Steps:
    """Recorded steps among the predecessors of where they led."""
    if demos is None:
        return Steps(0, None)
    x, a, y = (part[:MOST_STEPS] for part in (demos.step_states, demos.actions, demos.next_states))
    keys = np.unique(np.column_stack([x, a, y]), axis=0)
    x, a, y = (np.ascontiguousarray(part) for part in keys.T)
    laws = successor_laws(world, x, a)
    chances = _probability(laws.states, laws.probabilities, y)
    possible = chances > 0  # another premise speaks of the others
    x, a, y, chances = x[possible], a[possible], y[possible], chances[possible]
    return Steps(x.size, _not_listed(world, x, a, y, chances))


def draws_of(
    rows: SparseMatrix,
    pairs: tuple[IntArray, IntArray],
    law: FloatArray,
    flow: tuple[IntArray, FloatArray],
    starts: FloatArray,
) -> CheckedRows:
    """Of one task: rows of Phi with their q1, states drawn by q2 with it, initial/q of all."""
    part = slice(0, MOST_BETS)
    _, same = np.unique(np.column_stack(pairs)[part], axis=0, return_inverse=True)
    shares = np.asarray((1.0 / np.asarray(rows.sum(axis=1)).ravel()) @ rows)
    return CheckedRows(
        law.size, flow[0].size, shares, float(starts.sum()) / 2,
        (np.ravel(same), law[part]), (flow[0][part], flow[1][part]),
    )  # fmt: skip


def require_drawable(law: FloatArray, pairs: tuple[IntArray, IntArray]) -> None:
    """Refuse pairs that were drawn where all columns are zero."""
    if (law <= 0).any():
        at = int(np.argmax(law <= 0))
        raise InvalidCosts(
            f"the features draw state {pairs[0][at]}, action {pairs[1][at]}, where all of them are "
            "0",
            "Let draw() follow the columns that rows() gives",
        )


def require_drawable_states(law: FloatArray, states: IntArray) -> None:
    """Refuse states that were drawn and have neither initial nor flow mass."""
    sound = law > 0
    if not sound.all():
        at = int(np.argmin(sound))
        raise InvalidWorld(
            f"state {states[at]} was drawn, and has probability {law[at]} by initial_probability, "
            "features and predecessors",
            "Let predecessors list every pair that leads to a state, and initial_probability be "
            "the law of draw_initial; jm.testing.check_world probes a world",
        )


def row_premises(steps: Steps, parts: list[CheckedRows], level: float) -> tuple[Premise, ...]:
    """What was followed, what was bet against, and what is left to be declared."""
    if steps.contradiction is None:
        detail = f"{steps.count} steps were followed there and back"
        agree = Premise(AGREE, PremiseStatus.TESTED, detail, 0.0)
    else:
        agree = failed(AGREE, steps.contradiction, 0.0)
    words, log_value = draw_evidence(parts)
    drawn = judged(DRAWN, f"{sum(one.count for one in parts)} rows", log_value, words, level)
    taken = declared(
        TAKEN,
        "predecessors are taken to be complete, columns to have mass 1/(1 - discount), draws to "
        "follow their law also where no row was drawn twice",
    )
    return agree, drawn, taken


def draw_evidence(parts: list[CheckedRows]) -> tuple[str, float]:
    """What is most out of line, and log E against the laws of all draws."""
    count = sum(one.count for one in parts)
    columns, starts = sum(one.columns for one in parts), sum(one.starts for one in parts)
    assert isinstance(columns, np.ndarray)
    by_column = [_tilted(float(total), count, 1 / columns.size) for total in columns]
    worst = int(np.argmax(by_column))
    found = {
        "pairs are drawn again too often": _repeated(*parts[0].pairs),
        "states are drawn again too often": _repeated(*parts[0].states),
        f"column {worst} has a share of {columns[worst] / count:.4g} in the draws, "
        f"{1 / columns.size:.4g} is its mass": log_mean(by_column),
        f"the initial law has a mass of {2 * starts / count:.4g} in the draws, it should be 1":
            _tilted(starts, count, 0.5),
    }  # fmt: skip
    return max(found, key=found.__getitem__), log_mean(list(found.values()))


def _tilted(total: float, count: int, mean: float) -> float:
    """Log wealth against the mean of numbers between 0 and 1 with the given sum."""
    tilts = np.array([sign * tilt for tilt in TILTS for sign in (-1, 1)])
    return log_mean((tilts * total - count * np.log1p(mean * np.expm1(tilts))).tolist())


def _repeated(which: IntArray, law: FloatArray) -> float:
    """Log wealth of bets on what comes again: on each by itself, and on all that was seen."""
    if not which.size:
        return 0.0
    _, first, counts = np.unique(which, return_index=True, return_counts=True)
    whole = np.array([float(which.size)])
    wealths = [
        float(log_rising(kappa * law[first], counts.astype(float)).sum())
        - float(log_rising(np.float64(kappa), whole)[0])
        for kappa in CONCENTRATIONS
    ]
    is_new = np.zeros(which.size, dtype=bool)
    is_new[first] = True
    covered = np.cumsum(np.where(is_new, law, 0.0)) - np.where(is_new, law, 0.0)
    every = [
        tilt * (which.size - first.size)
        - float(np.log(np.maximum(1 + covered * math.expm1(tilt), LEAST)).sum())
        for size in TILTS
        for tilt in (-size, size)
    ]
    return log_mean([log_mean(wealths), log_mean(every)])


def _not_listed(
    world: LargeWorld, x: IntArray, a: IntArray, y: IntArray, chances: FloatArray
) -> str | None:
    """The first step that the predecessors of its end do not know, or not with its probability."""
    listed, of = _listed(world, y)
    hit = (listed.states == x[of]) & (listed.actions == a[of])
    given = np.bincount(of[hit], listed.probabilities[hit], minlength=y.size)
    wrong = ~(np.abs(given - chances) <= ABSOLUTE + RELATIVE * chances)
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    contrary = f"give it {given[at]:.6g}" if given[at] else "do not list it"
    return (
        f"state {x[at]}, action {a[at]} leads to state {y[at]} with probability "
        f"{chances[at]:.6g}, and the predecessors of state {y[at]} {contrary}"
    )


def _not_leading(world: LargeWorld, y: IntArray, lots: FloatArray) -> str | None:
    """The first state of which a predecessor, taken by lot, does not lead there as it is listed."""
    listed, _ = _listed(world, y)
    counts = np.diff(listed.offsets)
    some = counts > 0
    place = (listed.offsets[:-1] + np.floor(lots * counts).astype(np.int64))[some]
    x, a, y = listed.states[place], listed.actions[place], y[some]
    laws = successor_laws(world, x, a)
    chances = _probability(laws.states, laws.probabilities, y)
    listed_chance = listed.probabilities[place]
    wrong = ~(np.abs(listed_chance - chances) <= ABSOLUTE + RELATIVE * chances)
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    return (
        f"predecessors of state {y[at]} list state {x[at]}, action {a[at]} with probability "
        f"{listed_chance[at]:.6g}, and its successors give {chances[at]:.6g}"
    )


def _listed(world: LargeWorld, states: IntArray) -> tuple[Predecessors, IntArray]:
    """Predecessors of all states, and whose each is."""
    parts: Any = (np.asarray(part) for part in world.predecessors(states))
    answer = Predecessors(*parts)
    sizes = {part.shape for part in answer[1:]}
    if answer.offsets.shape != (states.size + 1,) or sizes != {(int(answer.offsets[-1]),)}:
        raise InvalidWorld(
            f"predecessors of {states.size} states have offsets of shape {answer.offsets.shape} "
            f"and parts of shapes {sorted(sizes)}",
            "Let the predecessors of the k-th state be offsets[k]:offsets[k + 1]",
        )
    outside = (answer.states < 0) | (answer.states >= world.num_states)
    outside |= (answer.actions < 0) | (answer.actions >= world.num_actions)
    of = np.repeat(np.arange(states.size), np.diff(answer.offsets))
    if outside.any():
        at = int(np.argmax(outside))
        raise InvalidWorld(
            f"predecessors of state {states[of[at]]} list state {answer.states[at]}, action "
            f"{answer.actions[at]}, which the world lacks",
            "Number states and actions from 0",
        )
    return answer, of


def _probability(states: IntArray, laws: FloatArray, reached: IntArray) -> FloatArray:
    """Of reaching a given state, row by row."""
    return np.asarray(((states == reached[:, np.newaxis]) * laws).sum(axis=1))


STREAM, DRAW_STREAM = 0x726F7773, 0x6C726F77
"""Which of a seed's streams rows are drawn from, in an explicit world and in a stepped one."""
SLACK = 1e-9
"""Relative, on norms and ranges: more than products of rows can lose to rounding."""
ROWS_OF_A_TASK = 1 << 14
SUPPORT = "support of q: every row that counts can be drawn"


@dataclass(frozen=True, eq=False, init=False)
class SampledRows:
    """Evaluate the policy of u = base + Phi theta from rows drawn at random.

    Args:
        features: Phi, and the base measure if there is one. In a stepped world they are those of
            the `FeaturePolicy` that is certified, and left out here.
        coefficients: theta; its measure must define the policy that is certified. Left out with
            the features.
        rows: how many are drawn for each of V1, V2 and r+.
        seed: has no influence any more, and is going to be removed: world and policy decide which
            rows are drawn.

    >>> SampledRows(Features([[1.0], [2.0]]), [0.5], rows=1000).coefficients.tolist()
    [0.5]
    """

    needs: ClassVar[Level] = Level.STEPPED

    features: Features | None
    coefficients: FloatArray | None
    rows: int

    def __init__(
        self,
        features: Features | None = None,
        coefficients: ArrayLike | None = None,
        rows: int | None = None,
        seed: int | None = None,
    ) -> None:
        ignored_seed(seed, "SampledRows")
        count = require_whole("rows", rows, 2, InvalidProblem)
        theta = None
        if features is not None or coefficients is not None:
            if not isinstance(features, Features):
                raise InvalidProblem(
                    f"features is a {type(features).__name__}", "Give jm.features.Features(matrix)"
                )
            theta = real_array(
                "coefficients", coefficients, ndim=1, size=features.num_features,
                refusal=InvalidProblem,
            )  # fmt: skip
        assign(self, features=features, coefficients=theta, rows=count)

    def evaluate(
        self,
        problem: Apprenticeship,
        policy: AnyPolicy,
        failure_probability: float,
        executor: Executor | None = None,
    ) -> tuple[PolicyEvaluation, ...]:
        """Kinds A (sampled) and, in an explicit world, B (sampled); both hold together."""
        if problem.level is Level.EXPLICIT:
            return self._by_envelopes(problem, policy, failure_probability)
        if not isinstance(policy, FeaturePolicy) or not isinstance(policy.features, DrawnFeatures):
            raise InvalidProblem(
                f"a {type(policy).__name__} has no features to draw rows from",
                "Give evaluation=jm.Rollouts(...)",
            )
        if policy.features.world is not problem.world:
            raise InvalidProblem(
                "the policy has features of another world, whose rows prove nothing here",
                "Make the features for problem.world itself, or give evaluation=jm.Rollouts(...)",
            )
        if self.features is not None:
            raise InvalidProblem(
                "rows of features by callables are those of the policy itself",
                "Give SampledRows(rows=...) without features and coefficients",
            )
        return (_by_draws(problem, policy, self.rows, failure_probability, executor),)

    def _by_envelopes(
        self, problem: Apprenticeship, policy: Any, failure_probability: float
    ) -> tuple[PolicyEvaluation, ...]:
        features, theta = self.features, self.coefficients
        if features is None or theta is None:
            raise InvalidProblem(
                "there are no features to take rows of",
                "Give SampledRows(features, coefficients, rows=...)",
            )
        if not defines(features.on(problem.world).measure(theta), policy, problem):
            raise InvalidProblem(
                "the policy is not the one that features and coefficients define",
                "Certify jm.policy.extract(world, features.measure(coefficients))",
            )
        reduced = Reduced(problem, features)
        sums = row_sums(reduced, theta)
        share = failure_probability / max(1, sum(one.width > 0 for one in sums))
        seed = draw_seeds.explicit_seed(problem.world, policy)
        rng = fresh_stream(seed, STREAM)
        found = tuple(one.statistics(self.rows, rng, seed, share) for one in sums)
        V1, V2, r_plus = (upper_bound(one) for one in found)
        N, h, source = largest_cost(problem), problem.effective_horizon, f"{self.rows} rows"
        base, expectations = features.base, reduced.matching @ theta
        mass = float(np.linalg.norm(theta)) * float(row_norms(features.matrix).sum())
        if base is not None:
            expectations = expectations + problem.cost_matrix.T @ base
            mass += float(np.abs(base).sum())
        hidden = rounding(problem, mass, features.num_features)
        ways = {
            "A (sampled)": (
                Term("negativity", above(2 * N * h * V1), "2 N h V1", source),
                Term("flow violation", above(N * h * V2), "N h V2", source),
            ),
            "B (sampled)": (
                Term("negativity", above(N * V1), "N V1", source),
                Term("flow residual", above(N * h * r_plus), "N h r+", source),
            ),
        }
        premises = (_fresh(self.rows, seed), support_premise(sums))
        return tuple(
            PolicyEvaluation(
                kind, np.asarray(expectations), (*terms, hidden), failure_probability, found,
                premises,
            )
            for kind, terms in ways.items()
        )  # fmt: skip


def _fresh(rows: int, seed: int) -> Premise:
    return declared(
        "fresh rows are independent of the coefficients",
        f"{rows} rows for each sum from seed {seed}, a digest of problem and policy; the "
        "coefficients are taken not to have been chosen because of them",
    )


@dataclass(frozen=True, eq=False)
class RowSum:
    """A sum over rows of something nonnegative, as the mean of value/law under a law."""

    name: str
    law: FloatArray
    width: float
    """No sample value/law is larger."""
    values: Callable[[IntArray], FloatArray]
    """What is summed, for any rows."""

    @classmethod
    def under(
        cls, name: str, envelope: FloatArray, values: Callable[[IntArray], FloatArray]
    ) -> "RowSum":
        """The law proportional to an envelope of the values; uniform where that is zero."""
        whole = float(envelope.sum())
        law = envelope / whole if whole > 0 else np.full(envelope.size, 1 / envelope.size)
        return cls(name, law, (1 + SLACK) * whole, values)

    def samples(self, rows: IntArray) -> FloatArray:
        """value/law of every row in `rows`; each distinct one is computed once."""
        distinct, places = np.unique(rows, return_inverse=True)
        return np.asarray((self.values(distinct) / self.law[distinct])[places])

    def statistics(
        self, count: int, rng: np.random.Generator, seed: int, failure_probability: float
    ) -> Statistics:
        """Of `count` samples."""
        samples = self.samples(rng.choice(self.law.size, size=count, p=self.law))
        return Statistics(
            self.name, seed, count, means=(float(samples.mean()),),
            variances=(float(samples.var(ddof=1)),), ranges=(self.width,),
            failure_probability=failure_probability,
        )  # fmt: skip

    def never_drawn(self) -> int | None:
        """The first row of probability zero that has a value, None if there is none."""
        zero = np.flatnonzero((self.law <= 0) | (self.width <= 0))
        missed = self.values(zero) != 0
        return int(zero[first_index(missed)]) if missed.any() else None


def row_sums(reduced: Reduced, coefficients: FloatArray) -> tuple[RowSum, RowSum, RowSum]:
    """V1, V2 and r+ of the module's docstring."""
    down, up = _reach(reduced.features, coefficients)
    norms = (1 + SLACK) * row_norms(reduced.pair_rows)
    sizes = row_norms(reduced.flow_rows) * float(np.linalg.norm(coefficients))
    change = up if reduced.features.base is None else max(down, up)
    world, lacking = reduced.problem.world, _lacking(reduced)
    moved = world.pairs.total(norms) + world.discount * (world.transition.T @ norms)
    return (
        RowSum.under(
            "V1", np.maximum(down * norms + reduced.floor, 0.0), _negativity(reduced, coefficients)
        ),
        RowSum.under(
            "V2", sizes + np.abs(reduced.flow_target), _flow_violation(reduced, coefficients)
        ),
        RowSum.under(
            "r+", change * moved + np.abs(lacking), _flow_residual(reduced, coefficients, lacking)
        ),
    )


def upper_bound(statistics: Statistics, *, signs: int = 1) -> float:
    """Of a mean of samples between zero and their range."""
    (mean,), (width,) = statistics.means, statistics.ranges
    return min(width, mean + float(_radii(statistics, signs=signs)[0]))


def support_premise(sums: tuple[RowSum, ...]) -> Premise:
    """Whether no row of probability zero adds to its sum."""
    missed = [(one.name, row) for one in sums if (row := one.never_drawn()) is not None]
    if missed:
        name, row = missed[0]
        return failed(SUPPORT, f"row {row} counts in {name} but is never drawn", 0.0)
    detail = "no row of probability zero adds to V1, V2 or r+"
    return Premise(SUPPORT, PremiseStatus.TESTED, detail, 0.0)


def _reach(features: Features, coefficients: FloatArray) -> tuple[float, float]:
    """How far -Phi_s theta and Phi_s theta can be, per unit of |Phi_s|."""
    if features.matrix.min() >= 0:
        parts = np.maximum(-coefficients, 0.0), np.maximum(coefficients, 0.0)
        return float(np.linalg.norm(parts[0])), float(np.linalg.norm(parts[1]))
    length = float(np.linalg.norm(coefficients))
    return length, length


def _lacking(reduced: Reduced) -> FloatArray:
    """p = initial - E' base+."""
    world, base = reduced.problem.world, reduced.features.base
    return world.initial if base is None else world.flow.residual(np.maximum(base, 0.0))


def _negativity(reduced: Reduced, theta: FloatArray) -> Callable[[IntArray], FloatArray]:
    return lambda pairs: np.maximum(
        reduced.floor[pairs] - _product(reduced.pair_rows, pairs, theta), 0.0
    )


def _flow_violation(reduced: Reduced, theta: FloatArray) -> Callable[[IntArray], FloatArray]:
    return lambda states: np.abs(
        _product(reduced.flow_rows, states, theta) - reduced.flow_target[states]
    )


def _flow_residual(
    reduced: Reduced, theta: FloatArray, lacking: FloatArray
) -> Callable[[IntArray], FloatArray]:
    """|p - E' (u+ - base+)|, where u+ - base+ is taken without cancellation."""
    columns = sparse.csr_array(reduced.problem.world.flow.matrix().T)

    def values(states: IntArray) -> FloatArray:
        chosen = columns[states]
        pairs = np.unique(chosen.indices)
        floor, change = reduced.floor[pairs], _product(reduced.pair_rows, pairs, theta)
        moved = np.zeros(columns.shape[1])
        moved[pairs] = np.where(
            floor <= 0, np.maximum(change, floor), np.maximum(change - floor, 0.0)
        )
        return np.asarray(np.abs(lacking[states] - chosen @ moved))

    return values


def _product(matrix: Matrix, rows: IntArray, theta: FloatArray) -> FloatArray:
    return np.asarray(matrix[rows] @ theta)


def _by_draws(
    problem: Apprenticeship,
    policy: FeaturePolicy,
    count: int,
    failure_probability: float,
    executor: Executor | None = None,
) -> PolicyEvaluation:
    """Kind A: the delta is shared by what is sampled of V1, V2 and the expectations."""
    features, theta = policy.features, policy.coefficients
    assert isinstance(features, DrawnFeatures)
    known = features.exact_matching(problem.cost_functions)
    size, seed = ROWS_OF_A_TASK, draw_seeds.large_seed(problem, policy)
    tasks = [(seed, first, min(size, count - first)) for first in range(0, count, size)]
    run = Serial() if executor is None else executor
    parts = run.map(_rows, tasks, shared=(problem, features, theta, known))
    samples = [np.concatenate(part) for part in zip(*(one[:3] for one in parts), strict=True)]
    steps = [*(one[3] for one in parts), looked_up(features.world, problem.demonstrations)]
    premises = (
        *_row_premises(problem, count, seed, known),
        *row_premises(Steps.joined(steps), [one[4] for one in parts], LEVEL),
    )
    sums = _statistics(samples, _ranges(problem, features, theta, known), seed, failure_probability)
    V1, V2 = (upper_bound(one, signs=2) for one in sums[1:])
    N, h = problem.cost_class.pointwise_bound(problem.cost_matrix), problem.effective_horizon
    error, source = coordinatewise(problem.cost_class, _radii(sums[0])), f"{count} rows"
    mass = max(1.0, 3 * float(np.abs(theta).sum()))
    terms = (
        Term("negativity", above(2 * N * h * V1), "2 N h V1", source),
        Term("flow violation", above(N * h * V2), "N h V2", source),
        Term("expectations", above(error), "radius of Psi' u", source),
        walk_rounding(problem, features.num_features + count, mass),
    )
    expectations = np.nan_to_num(known) @ theta + np.array(sums[0].means)
    return PolicyEvaluation(
        "A (sampled)", expectations, terms, failure_probability, sums, premises,
    )  # fmt: skip


def _row_premises(
    problem: Apprenticeship, count: int, seed: int, known: FloatArray
) -> tuple[Premise, ...]:
    fresh = _fresh(count, seed)
    exact = [problem.cost_functions.names[i] for i in np.flatnonzero(~np.isnan(known).all(axis=1))]
    if not exact:
        return (fresh,)
    tables = declared(
        "costs of one factor are those of their tables",
        f"{', '.join(exact)}: checked in {count} pairs that were drawn",
    )
    return fresh, tables


def _rows(
    task: tuple[int, int, int],
    shared: tuple[Apprenticeship, DrawnFeatures, FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray, FloatArray, Steps, CheckedRows]:
    """Samples of what is not known of Psi' u (rows x costs), of V1 and of V2; what was found when
    the rows were examined."""
    (seed, first, count), (problem, features, theta, known) = task, shared
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(DRAW_STREAM, first)))
    pairs = features.draw(rng, count)
    rows = features.rows(*pairs)
    _require_nonnegative(rows, pairs)
    law = features.pair_law(rows)
    require_drawable(law, pairs)
    costs = problem.cost_functions.at(*pairs)
    features.require_tables(problem.cost_functions, pairs[0], costs)
    expected = costs * np.asarray(rows @ _unknown(theta, known).T) / law[:, np.newaxis]
    world = problem.world
    start = rng.random(count) < 0.5
    states = np.where(start, world.draw_initial(rng, count), features.draw_flow(rng, count))
    flow, initial = features.flow(states), np.asarray(world.initial_probability(states))
    mixed = (flow.law + initial) / 2
    require_drawable_states(mixed, states)
    violated = np.abs(flow.rows @ theta - initial) / mixed
    steps = followed(features.world, pairs, states, rng)
    drawn = draws_of(rows, pairs, law, (states[~start], flow.law[~start]), initial / mixed)
    return expected, np.maximum(-(rows @ theta) / law, 0.0), np.asarray(violated), steps, drawn


def _require_nonnegative(rows: SparseMatrix, pairs: tuple[IntArray, IntArray]) -> None:
    """Refuse features to which the ranges of the samples do not apply."""
    least = rows.min(axis=1).toarray().ravel()
    if (least < 0).any():
        at = int(np.argmin(least))
        raise InvalidCosts(
            f"a feature is {least[at]} in state {pairs[0][at]}, action {pairs[1][at]}",
            "Features of large worlds are at least 0; coefficients may have either sign",
        )


def _unknown(theta: FloatArray, known: FloatArray) -> FloatArray:
    """The coefficients of the columns whose <phi_j, psi_i> is not known: (costs x features)."""
    return np.where(np.isnan(known), theta, 0.0)


def _ranges(
    problem: Apprenticeship, features: DrawnFeatures, theta: FloatArray, known: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Widths of the ranges of the samples; a product of two ranges is widest at its corners."""
    sampled = _unknown(theta, known)
    below, above_zero = (
        features.pair_ratio * np.maximum(sign * sampled, 0.0).max(axis=1) for sign in (-1, 1)
    )
    ends = problem.basis.lowest, problem.basis.highest
    corners = [end * reach for end in ends for reach in (-below, above_zero)]
    expected = np.max(corners, axis=0) - np.min(corners, axis=0)
    negative = features.pair_ratio * float(np.maximum(-theta, 0.0).max())
    violated = 2 * features.flow_ratio * float(np.abs(theta).max()) + 2
    return (
        (1 + SLACK) * expected, np.array([(1 + SLACK) * negative]),
        np.array([(1 + SLACK) * violated]),
    )  # fmt: skip


def _statistics(
    samples: list[FloatArray], ranges: tuple[FloatArray, ...], seed: int, delta: float
) -> tuple[Statistics, ...]:
    """Of Psi' u, V1 and V2; what cannot vary takes no part of delta."""
    share = delta / sum(bool((widths > 0).any()) for widths in ranges)
    return tuple(
        Statistics(
            name, seed, len(one), means=floats(np.atleast_1d(one.mean(axis=0))),
            variances=floats(np.atleast_1d(one.var(axis=0, ddof=1))), ranges=floats(widths),
            failure_probability=share if (widths > 0).any() else 0.0,
        )
        for name, one, widths in zip(("Psi' u", "V1", "V2"), samples, ranges, strict=True)
    )  # fmt: skip


def _radii(statistics: Statistics, *, signs: int = 2) -> FloatArray:
    """Of every mean that is sampled, in one direction or both: the smaller of two radii, at half of
    its part of delta each."""
    widths, count = np.array(statistics.ranges), statistics.count
    radii, sampled = np.zeros(widths.size), np.flatnonzero(widths > 0)
    share = statistics.failure_probability / (2 * signs * max(1, sampled.size))
    for i in sampled:
        radii[i] = min(
            hoeffding_radius(statistics.ranges[i], count, share),
            empirical_bernstein_radius(statistics.variances[i], statistics.ranges[i], count, share),
        )
    return radii
