"""Experts with one law of actions for every state: which expectations agree with what was recorded.

A stationary expert draws its action in state x from one law pi_E(. | x), whatever happened before;
a deterministic one has a single action there. What was recorded bounds these laws,

    lowest(x, a) <= pi_E(a | x) <= highest(x, a)

*Deterministic*: [1, 1] for the recorded action and [0, 0] for the others where x was visited,
[0, 1] elsewhere. No probability is spent, and neither independence nor the initial law of the
demonstrations is used. Two actions recorded in one state refute the premise.

*Stationary*: the actions at successive visits to x are independent draws from pi_E(. | x), however
many visits there are. For an action taken k times in n visits, and p its probability,

    M_n(p) = B(k + 1/2, n - k + 1/2) / ( B(1/2, 1/2) p^k (1 - p)^(n - k) )

is the wealth of a bet against p (its likelihood ratio to the mixture of all Bernoulli laws by
Beta(1/2, 1/2)): a martingale of mean one, so that M_n(p) < 1/d for all n at once with probability
1 - d (Ville). The p that satisfy it are an interval, which holds k/n. d is the failure probability
divided by the number of intervals in *all* states, visited or not: one for each action, one for
both of two, none for a single one. (Divided among visited states only it would be spent on the
states where something rare happened, and be false.)

So the expert is one of the policies between the bounds, and for every weights w

    <w, e> >= least_w = min { <mu_pi, Psi w> : lowest <= pi <= highest }

by one plan each (`least_totals`), with values V that prove it. Where W is the hull of few
points, those are the w, and otherwise plus and minus every single cost, whose least totals are the
ends of a box [low, high] around e:

    gap_W(z - e) <= max over points w of <w, z> - least_w
    gap_W(z - e) <= max of gap_W over [z - high, z - low]

for the expectations z of any policy. An estimate with gap_W(x - e) <= gap_W(x - v) + r for every x
is combined with it: for every t in [0, 1]

    <w, z - e> <= (1 - t) (<w, z> - least_w) + t (<w, z - v> + r)

so both bounds hold with least_w replaced by (1 - t) least_w + t <w, v>, or low and high by
(1 - t) low + t v and (1 - t) high + t v, and t r added. The best of some t is taken: the inequality
holds for all of them at once.

*Reference*: for M_n Robbins, "Statistical methods related to the law of the iterated logarithm"
(1970); Krichevsky and Trofimov (1981) for the mixture.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from journeyman.arrays import FloatArray, IntArray, Matrix, dense, read_only
from journeyman.certificate.terms import (
    Combination,
    ExpertEstimate,
    PolicyEvaluation,
    Premise,
    PremiseStatus,
    Term,
    declared,
    failed,
    total,
)
from journeyman.costs import CostClass
from journeyman.demonstrations import Demonstrations
from journeyman.policy.policy_evaluation import DiscountedSystem, averaging
from journeyman.problem import Apprenticeship
from journeyman.problem.expert_premises import Deterministic, Stationary
from journeyman.world import World
from journeyman.world.levels import require_discounted

MOST_POINTS = 256
"""Of a cost class, up to which there is a plan for each of them."""
MOST_ENTRIES = 200_000
"""Points times states, up to which there is a plan for each point of a class with more of them than
plus and minus every cost (half a minute or less)."""
SHARES = (0.0, 0.25, 0.5, 0.75)
"""The t that are tried."""
STATIONARY_SHARE = 0.2
"""Of the expert's failure probability, for the laws of a stationary expert."""
BISECTIONS = 60
DETERMINISTIC = "the expert has one action for every state"
STATIONARY = "the expert has one law of actions for every state"
NAME = "consistency"
EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Consistency:
    """Where the expectations of an expert can lie who is consistent with the record."""

    weights: FloatArray
    """(directions x costs): all extreme points of the class, or plus and minus every cost."""
    least: FloatArray
    """No consistent policy totals less of the cost of each direction."""
    values: FloatArray
    """(directions x states): what proves it."""
    is_hull: bool
    """Whether the directions are the extreme points of the class."""
    failure_probability: float

    @property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """(low, high) of every cost, where the directions are plus and minus every cost."""
        count = self.weights.shape[1]
        return self.least[:count], -self.least[count:]

    def largest_gap(
        self, cost_class: CostClass, expectations: FloatArray, values: FloatArray, share: float
    ) -> float:
        """No gap of a policy with these expectations is larger, up to `share` times the error of an
        estimate with these values."""
        if self.is_hull:
            least = (1 - share) * self.least + share * (self.weights @ values)
            return float((self.weights @ expectations - least).max())
        low, high = ((1 - share) * end + share * values for end in self.box)
        return cost_class.largest_gap(expectations - high, expectations - low)

    def centre(self) -> FloatArray | None:
        """Consistent expectations whose largest gap is least: what to aim at. None where the
        program that finds them fails; nothing rests on it."""
        if not self.is_hull:
            low, high = self.box
            return (low + high) / 2
        from scipy.optimize import linprog

        count, num_costs = self.weights.shape
        rows = np.block([
            [self.weights, -np.ones((count, 1))], [-self.weights, np.zeros((count, 1))]
        ])  # fmt: skip
        worst = np.append(np.zeros(num_costs), 1.0)
        limits = np.concatenate([self.least, -self.least])
        found = linprog(worst, rows, limits, bounds=(None, None))
        return np.asarray(found.x[:-1]) if found.status == 0 else None


def part_for_laws(problem: Apprenticeship) -> float:
    """Of the expert's failure probability, what the laws of its actions take."""
    kinds = {type(one) for one in problem.expert_is}
    return STATIONARY_SHARE if Stationary in kinds and Deterministic not in kinds else 0.0


def consistency(problem: Apprenticeship, failure_probability: float) -> Consistency | None:
    """What the record says of an expert that was declared deterministic or stationary; None where
    nothing of that was declared, or the record refutes it. It is computed once for a problem."""
    known = _KNOWN.setdefault(problem, {})
    if failure_probability not in known:
        known[failure_probability] = _consistency(problem, failure_probability)
    return known[failure_probability]


_KNOWN: "WeakKeyDictionary[Apprenticeship, dict[float, Consistency | None]]" = WeakKeyDictionary()


def _consistency(problem: Apprenticeship, failure_probability: float) -> Consistency | None:
    kinds, demos = {type(one) for one in problem.expert_is}, problem.demonstrations
    if demos is None or not kinds & {Deterministic, Stationary}:
        return None
    world = problem.world
    if Deterministic in kinds:
        if contradiction(world, demos) is not None:
            return None
        spent, (lowest, highest) = 0.0, known_actions(world, demos)
    else:
        spent = failure_probability
        lowest, highest = action_bounds(world, demos, failure_probability)
    points = problem.cost_class.extreme_weights(problem.num_costs, MOST_POINTS)
    single = np.vstack([np.eye(problem.num_costs), -np.eye(problem.num_costs)])
    is_hull = points is not None and (
        len(points) <= len(single) or len(points) * world.num_states <= MOST_ENTRIES
    )
    if points is None or not is_hull:
        points = single
    least, values = least_totals(world, problem.cost_matrix @ points.T, lowest, highest)
    sizes = np.abs(points) @ problem.basis.norms
    rounding = EPSILON * (problem.num_costs + 2) * sizes * world.effective_horizon
    return Consistency(read_only(points), read_only(least - rounding), values, is_hull, spent)


def known_actions(world: World, demos: Demonstrations) -> tuple[FloatArray, FloatArray]:
    """Bounds per pair: one action where the expert was seen, anything elsewhere."""
    recorded = np.zeros(world.num_pairs)
    recorded[demos.pairs_in(world)] = 1.0
    visited = world.pairs.spread(world.pairs.total(recorded)) > 0
    return recorded, np.where(visited, recorded, 1.0)


def action_bounds(
    world: World, demos: Demonstrations, failure_probability: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds per pair that hold for all pairs together, after however many visits."""
    taken = np.bincount(demos.pairs_in(world), minlength=world.num_pairs).astype(float)
    visits = world.pairs.spread(world.pairs.total(taken))
    count = num_intervals(world)
    if not count:
        return np.ones(world.num_pairs), np.ones(world.num_pairs)
    threshold = math.log(count / failure_probability)
    highest = _upper(taken, visits, threshold)
    lowest = 1.0 - _upper(visits - taken, visits, threshold)
    alone = world.pairs.spread(world.pairs.actions_per_state.astype(float)) == 1
    return np.where(alone, 1.0, np.maximum(lowest, 0.0)), np.where(alone, 1.0, highest)


def num_intervals(world: World) -> int:
    """Of probabilities, in all states: one for both of two actions, none for a single one."""
    actions = world.pairs.actions_per_state
    return int(actions[actions > 2].sum() + (actions == 2).sum())


def _upper(taken: FloatArray, visits: FloatArray, threshold: float) -> FloatArray:
    """The largest p with log M_n(p) <= threshold, rounded up: M_n rises from k/n on."""
    from scipy.special import betaln, xlog1py, xlogy

    mixed = betaln(taken + 0.5, visits - taken + 0.5) - betaln(0.5, 0.5)
    low, high = taken / np.maximum(visits, 1.0), np.ones(taken.size)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        wealth = mixed - xlogy(taken, middle) - xlog1py(visits - taken, -middle)
        beyond = wealth > threshold
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.asarray(np.minimum(high * (1 + 8 * EPSILON), 1.0))


class Contradiction(NamedTuple):
    """Two recorded steps in one state with different actions: (episode, step, action) each."""

    state: int
    first: tuple[int, int, int]
    second: tuple[int, int, int]
    num_states: int
    """In how many states there are such steps."""

    def __str__(self) -> str:
        (one, t, a), (other, s, b) = self.first, self.second
        return (
            f"in state {self.state} step {t} of episode {one} takes action {a} and step {s} of "
            f"episode {other} action {b}; {self.num_states} states have such steps"
        )


def contradiction(world: World, demos: Demonstrations) -> Contradiction | None:
    """The first step that takes another action than an earlier one did in the same state."""
    pairs, states = demos.pairs_in(world), demos.step_states
    first = np.full(world.num_states, pairs.size)
    np.minimum.at(first, states, np.arange(pairs.size))
    differs = np.flatnonzero(pairs != pairs[first[states]])
    if not differs.size:
        return None
    later = int(differs[0])
    return Contradiction(
        int(states[later]), _place(demos, int(first[states[later]])), _place(demos, later),
        int(np.unique(states[differs]).size),
    )  # fmt: skip


def _place(demos: Demonstrations, step: int) -> tuple[int, int, int]:
    episode = int(np.searchsorted(demos.offsets, step, side="right")) - 1
    return episode, step - int(demos.offsets[episode]), int(demos.actions[step])


def consistency_premises(problem: Apprenticeship) -> tuple[Premise, ...]:
    """What is declared of the expert's laws of actions, and what the record says of it."""
    demos, found = problem.demonstrations, []
    for one in problem.expert_is:
        if demos is None or not isinstance(one, Deterministic | Stationary):
            continue
        visits = np.bincount(demos.step_states, minlength=problem.world.num_states)
        if isinstance(one, Stationary):
            found.append(declared(STATIONARY, f"not tested; {_seen(visits)}"))
            continue
        broken, again = contradiction(problem.world, demos), int((visits > 1).sum())
        if broken is not None:
            found.append(failed(DETERMINISTIC, str(broken), 0.0))
        elif again:
            detail = f"{_seen(visits)}; {again} of them again, always with the same action"
            found.append(Premise(DETERMINISTIC, PremiseStatus.TESTED, detail, 0.0))
        else:
            detail = f"not tested, for no state was visited twice; {_seen(visits)}"
            found.append(declared(DETERMINISTIC, detail))
    return tuple(found)


def _seen(visits: IntArray) -> str:
    return f"{int((visits > 0).sum())} of {visits.size} states were visited"


def consistent_combination(
    problem: Apprenticeship,
    evaluation: PolicyEvaluation,
    estimates: tuple[ExpertEstimate, ...],
    found: Consistency,
) -> Combination:
    """The best bound by consistency, alone or with a part of one of the estimates."""
    way, best = "max over points w of <w, z> - least_w", []
    if not found.is_hull:
        way = "max of gap_W over [z - high, z - low]"
    for share in SHARES:
        for estimate in estimates if share else estimates[:1]:
            gap = found.largest_gap(
                problem.cost_class, evaluation.expectations, estimate.values, share
            )
            name = NAME if not share else f"{NAME} {1 - share:g}, {estimate.name} {share:g}"
            kept = [
                Term(one.name, share * one.value, f"{share:g} ({one.formula})", one.source)
                for one in estimate.terms * bool(share)
            ]
            data = Term("gap to what is consistent", gap, way, name)
            terms = (data, *evaluation.terms, *kept)
            best.append(
                Combination(evaluation.kind, name, terms, total(terms), evaluation.statistics)
            )
    return min(best, key=lambda one: one.bound)


# Least totals over policies whose action probabilities are known within bounds.
#
#     minimise   <mu_pi, c>   over policies   lowest(x, a) <= pi(a | x) <= highest(x, a)
#
# where the bounds leave every state a law of actions: the sum of the lowest is at most one, that of
# the highest at least one. Nothing known is [0, 1]; an action known for sure is [1, 1] beside [0,
# 0].
#
# The optimality operator fills greedily: every action gets its lowest probability, and what is left
# of one goes to the actions with the least c + discount P V, each up to its highest,
#
#     (T V)(x) = min { sum_a pi(a) (c + discount P V)(x, a) : lowest <= pi <= highest, sum pi = 1 }
#
# *Guarantee*. For any V, and mu the occupancy measure of a policy within the bounds,
#
#     <mu, c> = <initial, V> + sum_x mu(x) ( sum_a pi(a | x) (c + discount P V)(x, a) - V(x) )
#            >= <initial, V> + h min over x of (T V - V)(x)                    h = 1/(1 - discount)
#
# because mu has mass h: so any V proves a bound, however it was found. What rounding can have
# hidden is subtracted. Policy iteration makes it sharp to `PRECISION` of h times the span of the
# cost.
#
# *Cost*: one plan per cost, some tens of sparse systems in the states each.

PRECISION = 1e-6
"""Of h times the span of the cost: how far below the least total a bound may be."""
MOST_STEPS = 100
"""Of policy iteration; a bound that is not precise by then is still one."""
SHARE = 0.01
"""Evaluations leave this share of the residual: more is lost when the policy turns."""


def least_totals(
    world: World, costs: Matrix, lowest: FloatArray, highest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For every column of `costs` (pairs x costs) what no policy with probabilities between the
    bounds per pair totals less than, and the V that prove it: (costs) and (costs x states).

    >>> world = World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    >>> costs = np.array([[1.0, -1.0], [0.25, -0.25], [0.0, 0.0]])
    >>> least, _ = least_totals(world, costs, np.array([0.5, 0, 1]), np.array([0.75, 1, 1]))
    >>> least.round(4).tolist()
    [0.8333, -1.3]
    """
    require_discounted(world, "a plan between bounds")
    columns = (dense(costs[:, [k]]).ravel() for k in range(costs.shape[1]))
    found = [_least(world, cost, lowest, highest) for cost in columns]
    proofs = np.array([values for values, _ in found]).reshape(-1, world.num_states)
    return read_only(np.array([total for _, total in found])), read_only(proofs)


def _least(
    world: World, cost: FloatArray, lowest: FloatArray, highest: FloatArray
) -> tuple[FloatArray, float]:
    """V, and what it proves that no policy within the bounds totals less than."""
    allowed = PRECISION * float(cost.max() - cost.min())
    middle = world.effective_horizon * float(cost.max() + cost.min()) / 2
    values = np.full(world.num_states, middle)
    proven, total = values, -np.inf
    for _ in range(MOST_STEPS):
        best, law = _filled(world, cost, lowest, highest, values)
        change = best - values
        found = float(world.initial @ values) + world.effective_horizon * float(change.min())
        if found - _rounding(world, cost, values) > total:
            proven, total = values, found - _rounding(world, cost, values)
        if change.max() - change.min() <= allowed:
            break
        mean = averaging(world, law)
        system = DiscountedSystem(mean @ world.transition, world.discount, forward=world.is_forward)
        values = system.solve(np.asarray(mean @ cost), guess=best, reduction=SHARE).x
    return proven, total


def _filled(
    world: World, cost: FloatArray, lowest: FloatArray, highest: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """T V per state, and the probabilities per pair that attain it."""
    from journeyman.policy.system_kernels import filling_step

    best, law = np.empty(world.num_states), np.empty(world.num_pairs)
    ahead = cost + world.discount * (world.transition @ values)
    filling_step(world.pairs.offsets, ahead, lowest, highest, best, law)
    return best, law


def _rounding(world: World, cost: FloatArray, values: FloatArray) -> float:
    """What float64 can have hidden of T V - V, and of the sum over starts."""
    branches, size = int(np.diff(world.transition.indptr).max()), float(np.abs(values).max())
    steps = (branches + 2 * world.pairs.max_actions + 6) * (float(np.abs(cost).max()) + 2 * size)
    return EPSILON * (steps * world.effective_horizon + (world.num_states + 4) * size)
