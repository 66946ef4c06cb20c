"""A game that samples can play: occupancies against costs and values, by optimistic averages.

    min over p in the simplex   max over w in W, |u_i| <= beta
        <mu, c_w> - <w, target> + <initial - (B - discount P)' mu, V> - strength h |w - prior|^2/2

    mu = Phi p,   c_w = Psi w,   V = F u,   h = 1/(1 - discount)

where the columns of Phi are nonnegative measures over pairs of mass h and those of F functions of
states. With all pairs and all states as columns (the default), beta = N h for the largest cost N of
the class, and strength 0 this is the exact program: for a measure mu >= 0 of mass h the policy of
mu has

    gap(pi_mu) <= gap_W(Psi' mu - target) + N h |initial - (B - discount P)' mu|_1 = max over w, u,

and a measure of mass h that is an occupancy pays nothing for flow. `OccupancyMirrorDescent` plays
it, `PriorMirrorDescent` with a prior.

*One sweep* draws from every column a pair (x, a) and a next state y, and nothing else is known of
the world; with p_j, w, V those of the players before the sweep,

    for p:   g_j = h (c_w(x_j, a_j) + discount V(y_j) - V(x_j))
    for w:   z = h sum_j p_j psi(x_j, a_j) - target - strength h (w - prior)
    for u:   r = initial' F - h sum_j p_j (F(x_j) - discount F(y_j))

are unbiased. Each player follows the leader with a regulariser and a guess: it takes the point that
is best against all its gradients so far and the last one once more, less tau times

    p:  log d + sum p log p;    u:  sum u^2/2;    w:  |.|^2/2 in units of the class (boxes, balls),
                                                      the entropy of points (simplices, hulls)

p takes the temperature tau = S/log d (S its losses below), u and w tau = sqrt(A/D), where D is the
largest regulariser and A adds up squares of what gradients and guesses differ by, from M^2 on, the
largest such square (per coordinate of u). What is returned are the averages of all points.

*Guarantee.* Let x_t minimise <G_{t-1} + m_t, x> + tau_t r(x), r >= 0 and tau_t not falling, and let
y_t minimise the same with g_t for the guess m_t. Then for every x

    sum <g_t, x_t - x>  <=  tau_T r(x) + sum s_t,
    s_t = <g_t - m_t, x_t - y_t> - tau_t B(y_t, x_t)

with B the Bregman distance of r: Phi_t = min <G_t, .> + tau_t r is at least Phi_{t-1} + <g_t, x_t>
- s_t, by the optimality of x_t, and Phi_0 >= 0. For the entropy s_t is at most the mix loss
<x_t, e> + tau log sum x_t exp(-e/tau), e = g_t - m_t, whose sum is S, so p regrets at most 2 S; for
squares s_t <= e^2/(2 tau), so u and w regret at most 2 sqrt(D A) each. Noise costs as much again as
players of the noise alone would regret (Nemirovski, Juditsky, Lan, Shapiro 2009) and one Azuma
bound: with probability 1 - delta the averages of T sweeps are a saddle point to within

    (1/T) [2 S + 2 sum sqrt(D A)] + (1/sqrt(T)) (sqrt(2) + 4 sqrt(log(1/delta))) sum sqrt(D) M

(`Game.regret`, `Game.noise`; M bounds what two gradients of a player can differ by, and S, A are at
most what M says: S <= M sqrt(T D) + 2 M, A <= (T + 1) M^2). In an explicit world nothing
rests on it: the loss and the lower bound of the averages are recomputed from the laws.

Cost. A sweep costs columns x (costs + entries of F), whatever the number of states.

Reference: Rakhlin, Sridharan, "Online learning with predictable sequences", 2013; de Rooij et al.,
"Follow the leader if you can, hedge if you must", 2014.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix, dense
from journeyman.compiled import kernel
from journeyman.costs import CostClass
from journeyman.costs.cost_class import BALL, BOX, HULL, LARGEST, KernelForm
from journeyman.errors import InvalidSolver
from journeyman.features.base import Features
from journeyman.problem import Apprenticeship
from journeyman.solvers.exact.dual_set import DualSet
from journeyman.solvers.exact.weight_step import weight_step

FAILURE_PROBABILITY = 0.05
LEAST = 1e-12
"""In place of sizes that are zero, in units of the largest."""


class Board(NamedTuple):
    """What the sweeps read."""

    starts: IntArray
    """Of the columns of Phi, in `pairs` and `shares`."""
    pairs: IntArray
    shares: FloatArray
    """Cumulative within a column, up to 1."""
    states: IntArray
    """Of every pair."""
    rows: IntArray
    """Of the laws of pairs, in `following` and `chances`."""
    following: IntArray
    chances: FloatArray
    costs: FloatArray
    """(pairs x costs)."""
    value_rows: IntArray
    """Of F, a row for every state, in `value_columns` and `value_numbers`."""
    value_columns: IntArray
    value_numbers: FloatArray
    start_values: FloatArray
    """initial' F."""
    target: FloatArray
    prior: FloatArray


class Rules(NamedTuple):
    """Numbers of the game, and the class as compiled loops take it."""

    horizon: float
    discount: float
    limit: float
    """beta."""
    strength: float
    """Of the prior, times h."""
    weight_size: float
    """D of w."""
    code: int
    scale: FloatArray
    centre: FloatArray
    points: FloatArray


class Point(NamedTuple):
    """Where the players are, and what they remember."""

    shares: FloatArray
    weights: FloatArray
    values: FloatArray
    share_sum: FloatArray
    weight_sum: FloatArray
    value_sum: FloatArray
    share_gradient: FloatArray
    weight_gradient: FloatArray
    value_gradient: FloatArray
    share_total: FloatArray
    weight_total: FloatArray
    value_total: FloatArray
    lost: FloatArray
    """S of p and A of w."""
    value_squares: FloatArray
    """A of u, coordinate by coordinate."""


@kernel
def drawn(cumulative: FloatArray, start: int, stop: int, uniform: float) -> int:
    """Where a uniform number falls; never where nothing is added."""
    low, high = start, stop - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > uniform:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def sweep(
    board: Board, rules: Rules, point: Point, rng: np.random.Generator,
    g: FloatArray, z: FloatArray, r: FloatArray, values: FloatArray,
) -> None:  # fmt: skip
    """The gradients of all players from a pair and a next state for every column."""
    num_costs = z.size
    for x in range(values.size):
        total = 0.0
        for k in range(board.value_rows[x], board.value_rows[x + 1]):
            total += board.value_numbers[k] * point.values[board.value_columns[k]]
        values[x] = total
    for i in range(num_costs):
        z[i] = -board.target[i] - rules.strength * (point.weights[i] - board.prior[i])
    r[:] = board.start_values
    for j in range(g.size):
        at = board.starts[j]
        if board.starts[j + 1] - at > 1:
            at = drawn(board.shares, at, board.starts[j + 1], rng.random())
        pair = board.pairs[at]
        at = board.rows[pair]
        if board.rows[pair + 1] - at > 1:
            at = drawn(board.chances, at, board.rows[pair + 1], rng.random())
        here, there = board.states[pair], board.following[at]
        mass, cost = rules.horizon * point.shares[j], 0.0
        for i in range(num_costs):
            cost += board.costs[pair, i] * point.weights[i]
            z[i] += mass * board.costs[pair, i]
        g[j] = rules.horizon * (cost + rules.discount * values[there] - values[here])
        for k in range(board.value_rows[here], board.value_rows[here + 1]):
            r[board.value_columns[k]] -= mass * board.value_numbers[k]
        for k in range(board.value_rows[there], board.value_rows[there + 1]):
            r[board.value_columns[k]] += rules.discount * mass * board.value_numbers[k]


@kernel
def move_shares(g: FloatArray, point: Point) -> None:
    """The entropic step of p."""
    p, before, total = point.shares, point.share_gradient, point.share_total
    size = math.log(p.size) if p.size > 1 else 1.0
    temperature, mean, least = point.lost[0] / size, 0.0, math.inf
    for j in range(p.size):
        if p[j] > 0.0:
            change = g[j] - before[j]
            mean += p[j] * change
            least = min(least, change)
    loss = mean - least
    if temperature > 0.0:
        mixed = 0.0
        for j in range(p.size):
            mixed += p[j] * math.exp(min(0.0, -(g[j] - before[j] - least) / temperature))
        loss += temperature * math.log(mixed)
    point.lost[0] += max(0.0, loss)
    temperature, best = point.lost[0] / size, math.inf
    for j in range(p.size):
        total[j] += g[j]
        best = min(best, total[j] + g[j])
    sums = 0.0
    for j in range(p.size):
        above = total[j] + g[j] - best
        if temperature > 0.0:
            p[j] = math.exp(-above / temperature)
        else:
            p[j] = 0.0 if above > 0.0 else 1.0
        sums += p[j]
    for j in range(p.size):
        p[j] /= sums


@kernel
def move_values(r: FloatArray, limit: float, point: Point) -> None:
    """The quadratic step of u, coordinate by coordinate."""
    u, total, squares = point.values, point.value_total, point.value_squares
    for i in range(u.size):
        squares[i] += (r[i] - point.value_gradient[i]) ** 2
        total[i] += r[i]
        step = limit / math.sqrt(2.0 * squares[i])
        u[i] = min(limit, max(-limit, step * (total[i] + r[i])))


@kernel
def weight_change(rules: Rules, change: FloatArray) -> float:
    """The size of a difference of gradients in the norm that belongs to the regulariser of w."""
    if rules.code == HULL:
        products = rules.points @ change
        return float((products.max() - products.min()) / 2)
    scaled = rules.scale * change
    if rules.code == LARGEST:
        return float((scaled.max() - scaled.min()) / 2)
    return math.sqrt((scaled * scaled).sum())


@kernel
def best_weights(rules: Rules, total: FloatArray, temperature: float, w: FloatArray) -> None:
    """The point of the class with the largest <w, total> - temperature r(w)."""
    if rules.code in (BOX, BALL):
        scaled = rules.scale * total
        unit = temperature
        if rules.code == BALL:
            unit = max(temperature, math.sqrt((scaled * scaled).sum()))
        for i in range(w.size):
            w[i] = rules.centre[i] + rules.scale[i] * min(1.0, max(-1.0, scaled[i] / unit))
        return
    scores = rules.points @ total if rules.code == HULL else rules.scale * total
    powers = np.exp((scores - scores.max()) / temperature)
    powers /= powers.sum()
    if rules.code == HULL:
        w[:] = powers @ rules.points
    else:
        w[:] = rules.centre + rules.scale * powers


@kernel
def move_weights(z: FloatArray, rules: Rules, point: Point) -> None:
    """The step of w."""
    point.lost[1] += weight_change(rules, z - point.weight_gradient) ** 2
    point.weight_total[:] += z
    temperature = math.sqrt(point.lost[1] / rules.weight_size)
    best_weights(rules, point.weight_total + z, temperature, point.weights)


@kernel
def settle(g: FloatArray, z: FloatArray, r: FloatArray, rules: Rules, point: Point) -> None:
    """Count the points into the averages, then let every player move and remember."""
    point.share_sum[:] += point.shares
    point.weight_sum[:] += point.weights
    point.value_sum[:] += point.values
    move_shares(g, point)
    move_values(r, rules.limit, point)
    move_weights(z, rules, point)
    point.share_gradient[:] = g
    point.weight_gradient[:] = z
    point.value_gradient[:] = r


@kernel
def advance(board: Board, rules: Rules, point: Point, rng: np.random.Generator, count: int) -> None:
    """`count` sweeps."""
    g, z = np.empty_like(point.shares), np.empty_like(point.weights)
    r, values = np.empty_like(point.values), np.empty(board.value_rows.size - 1)
    for _ in range(count):
        sweep(board, rules, point, rng, g, z, r, values)
        settle(g, z, r, rules, point)


def size_of_weights(form: KernelForm) -> float:
    """The largest regulariser D of w."""
    if form.code == BOX:
        return form.scale.size / 2
    if form.code == BALL:
        return 0.5
    return max(math.log(len(form.points) if form.code == HULL else form.scale.size), LEAST)


def nearest_weights(cost_class: CostClass, weights: FloatArray) -> FloatArray:
    """The member of a class with the smallest Euclidean distance.

    >>> from journeyman.costs import Simplex
    >>> nearest_weights(Simplex(), np.array([0.8, 0.6])).round(6).tolist()
    [0.6, 0.4]
    """
    duals = DualSet.of(cost_class, weights.size, 0, 1.0)
    units, start = cost_class.scaling(weights.size), duals.middle()
    gradient = units * (weights - units * duals.weights(start))
    reach = float(np.abs(gradient).sum()) * float((duals.upper - duals.lower).max())
    found = weight_step(duals, start, gradient, np.diag(units**2), LEAST * (reach + LEAST))
    return np.asarray(cost_class.admit(units * duals.weights(found)))


class Judged(NamedTuple):
    """What the laws say about averages: the value of the game lies between both ends."""

    upper: float
    """The most that w and u can make of p."""
    lower: float
    """The least that p can make of w and u."""


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of the weights, and how strongly it pulls (times h |w - prior|^2/2)."""

    weights: FloatArray
    strength: float


@dataclass(frozen=True, eq=False)
class Game:
    """The game of a problem in an explicit world.

    `values` is F, a row for every state; None has a column for every state.
    """

    problem: Apprenticeship
    features: Features
    values: Matrix | None
    limit: float
    prior: Prior | None

    @cached_property
    def measures(self) -> sparse.csc_array:
        """Phi."""
        return sparse.csc_array(self.features.matrix)

    @property
    def functions(self) -> Matrix:
        """F."""
        count = self.problem.world.num_states
        return sparse.eye_array(count, format="csr") if self.values is None else self.values

    @cached_property
    def board(self) -> Board:
        problem, world = self.problem, self.problem.world
        functions = sparse.csr_array(self.functions)
        laws, prior = world.transition, self.prior
        return Board(
            *_cumulative(self.measures.indptr, self.measures.indices, self.measures.data),
            world.pairs.states.astype(np.int64),
            *_cumulative(laws.indptr, laws.indices, laws.data),
            np.array(dense(problem.cost_matrix), dtype=float, order="C"),
            functions.indptr.astype(np.int64), functions.indices.astype(np.int64),
            functions.data.astype(float),
            np.asarray(functions.T @ world.initial, dtype=float),
            np.array(problem.target, dtype=float),
            np.zeros(problem.num_costs) if prior is None else np.array(prior.weights, dtype=float),
        )  # fmt: skip

    @cached_property
    def rules(self) -> Rules:
        problem = self.problem
        return rules_of(problem, self.limit, self.strength)

    @property
    def strength(self) -> float:
        """Of the prior, times h."""
        return 0.0 if self.prior is None else self.prior.strength * self.problem.effective_horizon

    def start(self) -> Point:
        """Even shares, the middle of the class, and no values."""
        _, of_weights, of_values = self.largest_changes
        return starting_point(
            self.features.num_features, self.problem.num_costs, self.board.start_values.size,
            self.rules, of_weights, of_values,
        )  # fmt: skip

    @cached_property
    def largest_changes(self) -> tuple[float, float, float]:
        """M of p, w and one coordinate of u."""
        problem, h = self.problem, self.problem.effective_horizon
        reach = float(abs(self.functions).sum(axis=1).max()) * self.limit
        size = problem.cost_class.pointwise_bound(problem.basis.matrix)
        shares = 2 * h * (size + (1 + problem.world.discount) * reach)
        largest = float(abs(self.functions).max())
        values = (1 + problem.world.discount) * h * largest * (1 if self.values is None else 2)
        return shares, largest_change_of_weights(self.problem, self.rules, h), values

    def regret(self, point: Point, sweeps: int) -> float:
        """(2 S + 2 sum sqrt(D A))/T."""
        squares = self.limit * float(np.sqrt(2 * point.value_squares).sum())
        own = 2 * float(point.lost[0]) + squares
        return (own + 2 * math.sqrt(self.rules.weight_size * point.lost[1])) / sweeps

    def noise(self, sweeps: int, failure_probability: float = FAILURE_PROBABILITY) -> float:
        """What the draws add at most, but for the failure probability."""
        factor = math.sqrt(2) + 4 * math.sqrt(math.log(1 / failure_probability))
        return factor * self.total_size / math.sqrt(sweeps)

    @cached_property
    def total_size(self) -> float:
        """sum sqrt(D) M over the players; u as one player in the 2-norm."""
        shares, weights, values = self.largest_changes
        rows = sparse.csr_array(self.functions)
        h, discount = self.problem.effective_horizon, self.problem.world.discount
        norm = float(np.sqrt(rows.multiply(rows).sum(axis=1).max()))
        of_values = min(2 * (1 + discount) * h * norm, values * math.sqrt(rows.shape[1]))
        count = self.features.num_features
        return (
            math.sqrt(math.log(count)) * shares
            + math.sqrt(self.rules.weight_size) * weights
            + self.limit * math.sqrt(rows.shape[1] / 2) * of_values
        )

    def judged(self, p: FloatArray, w: FloatArray, u: FloatArray) -> Judged:
        """Both ends from the laws."""
        problem, world = self.problem, self.problem.world
        measure = np.asarray(self.measures @ p)
        values = np.asarray(self.functions @ u)
        pull = self.strength / 2
        pulled = 0.0 if self.prior is None else pull * float(((w - self.prior.weights) ** 2).sum())
        reduced = problem.cost_of(w) - world.flow.adjoint(values)
        lower = float((self.measures.T @ reduced).min() + world.initial @ values)
        lower -= float(w @ problem.target) + pulled
        residual = np.asarray(self.functions.T @ world.flow.residual(measure))
        upper = self.hardest(problem.difference(measure))[0]
        return Judged(upper + self.limit * float(np.abs(residual).sum()), lower)

    def hardest(self, difference: FloatArray) -> tuple[float, FloatArray]:
        """max over W of <w, z> less the pull of the prior, and the weights."""
        cost_class = self.problem.cost_class
        if self.prior is None:
            return cost_class.gap(difference), cost_class.worst_case(difference)
        return hardest_near(cost_class, self.prior.weights, self.strength, difference)


def hardest_near(
    cost_class: CostClass, prior: FloatArray, modulus: float, difference: FloatArray
) -> tuple[float, FloatArray]:
    """max over W of <w, z> - modulus |w - prior|^2/2, and the weights."""
    weights = nearest_weights(cost_class, prior + difference / modulus)
    distance = float(((weights - prior) ** 2).sum())
    return float(weights @ difference) - modulus / 2 * distance, weights


def rules_of(problem: Apprenticeship, limit: float, strength: float) -> Rules:
    """The numbers of a game."""
    form = problem.cost_class.kernel_form(problem.num_costs)
    code, scale, centre, points = form
    return Rules(
        float(problem.effective_horizon), float(problem.world.discount), float(limit),
        float(strength), size_of_weights(form), int(code), np.array(scale, dtype=float),
        np.array(centre, dtype=float), np.array(points, dtype=float, order="C"),
    )  # fmt: skip


def largest_change_of_weights(problem: Apprenticeship, rules: Rules, mass: float) -> float:
    """M of w, for occupancies of some mass."""
    return change_of_weights(problem, rules, mass * (problem.basis.highest - problem.basis.lowest))


def change_of_weights(problem: Apprenticeship, rules: Rules, spread: FloatArray) -> float:
    """M of w where expectations differ by at most `spread`; the prior's pull included."""
    scale = problem.cost_class.scaling(problem.num_costs)
    spread = spread + 2 * rules.strength * scale
    if rules.code == HULL:
        return float((np.abs(rules.points) @ spread).max())
    return float(np.linalg.norm(rules.scale * spread))


def starting_point(
    columns: int, num_costs: int, functions: int, rules: Rules, of_weights: float, of_values: float
) -> Point:
    """Players that know nothing, and sizes of gradients that they reckon with."""
    weights = np.zeros(num_costs)
    best_weights(rules, weights.copy(), 1.0, weights)
    first = np.full(functions, max(of_values**2, LEAST))
    lost = np.array([0.0, max(of_weights**2, LEAST)])
    shares, none = np.full(columns, 1.0 / columns), np.zeros(functions)
    zeros = [np.zeros_like(part) for _ in range(3) for part in (shares, weights, none)]
    return Point._make([shares, weights, none, *zeros, lost, first])


def normalised(features: Features, problem: Apprenticeship) -> Features:
    """The same columns with mass 1/(1 - discount), if they are nonnegative measures."""
    if features.base is not None:
        raise InvalidSolver(
            "the features have a base measure, and this game is over mixtures of columns",
            "Give the base as a column: jm.features.Features(matrix)",
        )
    if not features.is_nonnegative:
        raise InvalidSolver(
            "a feature is negative somewhere, and columns are sampled here",
            "Give columns without negative entries",
        )
    return features.on(problem.world).normalised(problem.world)


def tabular(problem: Apprenticeship) -> Features:
    """A column for every pair."""
    count, h = problem.world.num_pairs, problem.effective_horizon
    return Features(sparse.csr_array(sparse.eye_array(count) * h))


def _cumulative(
    starts: IntArray, places: IntArray, numbers: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows of positive numbers as cumulative shares; what is zero is left out."""
    sums = np.add.reduceat(np.append(numbers, 0.0), starts[:-1])
    owner = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    kept = numbers > 0
    owner, places, shares = owner[kept], places[kept], numbers[kept] / sums[owner[kept]]
    ends = np.searchsorted(owner, np.arange(starts.size))
    total = np.cumsum(shares)
    before = np.concatenate([[0.0], total])[ends[:-1]]
    cumulative = np.minimum(total - before[owner], 1.0)
    cumulative[ends[1:] - 1] = 1.0
    return ends.astype(np.int64), places.astype(np.int64), cumulative
