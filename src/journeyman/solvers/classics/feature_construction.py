"""Feature construction for inverse reinforcement learning (FIRL): a cost that is a regression tree.

A cost is a function of a pair's component features z (the columns of the problem's `CostBasis`):
constant on the leaves of a tree that tests one feature at a node. Leaves are conjunctions of
tests, the features that the method constructs. Two steps alternate.

*Optimisation.* With a tree at hand, whose leaves have the mean costs m, every different row z_r of
features has a cost f_r of its own:

    minimise over f, m   sum_r p_r (f_r - m_leaf(r))^2  +  SMALL sum_r p_r m_leaf(r)^2
                         + penalty sum_x sum_b q(x, b) max(0, 1 - A(x, b))

where p_r is the share of pairs with this row, and A(x, b) = Q(x, b) - V(x) is what action b costs
more than the expert's action in a recorded state x: the one recorded there most often, against
which b has q(x, b) fewer decisions, as a share of all. Q and V are those of the policy that takes
the expert's actions where they are recorded, and elsewhere those that are optimal for the tree at
hand (uniform ones at first). They are linear in f, so that this is a sparse convex quadratic
program: costs near the span of the tree, under which recorded actions are better than others by a
margin of 1 where that can be. It is solved for every one of `penalties`: a large one follows the
record to the letter, a small one forgives. (The paper bounds V by inequalities and has no margin;
the bounds leave V free in states without a record.)

*Fitting.* A regression tree of f over the features, with weights p_r, is grown leaf by leaf where
its squared error falls most. How deep is decided by the record: of all trees on the way the one is
taken that minimises

    -log P(D | tree)  +  (leaves / 2) log(number of decisions)

with the likelihood of soft-optimal choices under its costs, at the best of a few scales (the
Bayesian information criterion; the paper stops where a split no longer helps to reproduce the
record). The same number compares trees of different rounds. With it the method also learns from
experts who err.

*Guarantee.* CONVERGED: the last tree had been found before; the alternation need not come to the
best one. The policy is optimal for the tree's cost. Nothing of this enters a certificate: the
policy is evaluated and certified like that of every method, for the costs of the declared class.
These are combinations of the features: of a tree's cost the certificate covers what lies in the
class and no more, and `answer.nonlinear.outside` says how much is no combination.

*Cost.* Per round and penalty a sparse quadratic program in rows + states + rivals of recorded
actions, and a few soft plans for each of up to `leaves` trees.

*Reference.* Levine, Popovic and Koltun, "Feature construction for inverse reinforcement learning",
NIPS 2010; Breiman, Friedman, Olshen and Stone, *Classification and regression trees*, 1984. The
tree is our own: scikit-learn is no dependency, and its trees cannot be had one leaf after another.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, IntArray, read_only
from journeyman.policy import plan
from journeyman.policy.policy_evaluation import averaging
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import (
    answer_of,
    require_demonstrations,
    require_suitable,
)
from journeyman.solvers.classics.gaussian_process_costs import require_plain
from journeyman.solvers.classics.maximum_likelihood import Decisions
from journeyman.solvers.nonlinear_cost import FeatureRows, NonlinearCost, RegressionTree
from journeyman.solvers.running import (
    Advance,
    Watch,
    iterate,
    require_count,
    require_kind,
    require_positive,
    require_time_limit,
)

SMALL = 1e-3
"""Of a squared mean: which of equal fits is taken, and the level of costs, which is free."""
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Ranges of a tree's costs that its likelihood is computed at, in temperatures: from the best one
of the tree before, as long as it rises."""
PATIENCE = 6
"""Leaves without a better score, after which a tree is not grown further."""
FLAT = 1e-12
"""Of the sum of squares: what a further split has to take off the error."""


@dataclass(frozen=True)
class FeatureConstruction:
    """A cost that is a regression tree over the features, and an optimal policy for it.

    Args:
        penalties: of recorded actions that are no better than others, against the fit of the tree;
            all are tried in every round.
        leaves: of a tree, at most.
        max_iterations: rounds of optimisation and fitting.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert, cost = jm.gallery.objectworld(8, seed=3)
    >>> demos = jm.record(world, expert, trajectories=16, horizon=8, seed=0)
    >>> answer = jm.solve(jm.Apprenticeship(world, basis, demos), FeatureConstruction())
    >>> answer.nonlinear.per_pair.shape, answer.recovered is None
    ((320,), True)
    """

    penalties: tuple[float, ...] = (1000.0, 30.0)
    leaves: int = 24
    max_iterations: int = 10
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_kind("penalties", self.penalties, tuple, "Give a tuple of positive numbers")
        for one in self.penalties:
            require_positive("penalties", one)
        require_count("the number of penalties", len(self.penalties))
        require_count("leaves", self.leaves)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        name = type(self).__name__
        require_suitable(problem, name)
        require_plain(problem, name)
        demos = require_demonstrations(problem, name)
        decisions = Decisions(problem.world, problem.basis, demos)
        rounds = _Rounds(self, decisions, FeatureRows.of(problem.world, problem.basis))
        status, iterations = iterate(rounds.advance, watch, self.max_iterations)
        best = rounds.best
        learned = NonlinearCost.of(problem, rounds.table, best.tree)
        words = (
            f"{best.tree.num_leaves} leaves, log-likelihood {best.log_likelihood:.6f} of "
            f"{int(decisions.counts.sum())} decisions; {learned.remark}"
        )
        return answer_of(
            problem, plan(problem.world, learned.per_pair).policy, status, engine=_engine(),
            work=Work(iterations=iterations, forward_solves=rounds.plans + 1), nonlinear=learned,
            seconds=watch.elapsed, log=words,
        )  # fmt: skip


def _engine() -> str:
    import clarabel

    return f"regression trees, Clarabel {clarabel.__version__}"


class Fitted(NamedTuple):
    """A tree, what the record says of it, and what its size costs."""

    tree: RegressionTree
    log_likelihood: float
    score: float


def score(found: Fitted) -> float:
    """The less the better."""
    return found.score


class _Rounds:
    """Optimisation and fitting in turns; keeps the best tree."""

    def __init__(
        self, solver: FeatureConstruction, decisions: Decisions, table: FeatureRows
    ) -> None:
        self.solver, self.decisions, self.table = solver, decisions, table
        self.plans = 0
        self.record = Record.of(decisions)
        world, size = decisions.world, len(table.rows)
        self.leaf = np.zeros(size, dtype=np.int64)
        """The leaf of every row in the tree at hand."""
        self.elsewhere = world.pairs.uniform
        self.known: set[bytes] = set()
        self.place = SCALES.index(1.0)
        self.near: dict[int, Any] = {}
        """Soft plans of the last tree at each scale, from which the next ones start."""
        self.best = self._judged(single_leaf())

    def advance(self) -> Advance:
        world = self.decisions.world
        recorded = self.record.states[world.pairs.states]
        law = np.where(recorded, self.record.law, self.elsewhere)
        found = min((self._fitted(law, one) for one in self.solver.penalties), key=score)
        self.best = min(self.best, found, key=score)
        leaf = found.tree.leaf_of(self.table.rows)
        self.leaf = np.unique(leaf, return_inverse=True)[1]
        mark = leaf.tobytes() + found.tree.value.tobytes()
        repeated = mark in self.known
        self.known.add(mark)
        self.elsewhere = plan(world, self._of_pairs(found.tree)).policy.per_pair
        self.plans += 1
        return Advance(self.best.score, converged=repeated)

    def _fitted(self, law: FloatArray, penalty: float) -> "Fitted":
        """The best tree for the costs of one optimisation step."""
        costs = consistent_costs(self.decisions, self.record, self.table, self.leaf, law, penalty)
        best, idle = None, 0
        for tree in grown(self.table, costs, self.solver.leaves):
            found = self._judged(tree)
            idle = 0 if best is None or found.score < best.score else idle + 1
            best = found if best is None else min(best, found, key=score)
            if idle > PATIENCE:
                break
        assert best is not None
        return best

    def _of_pairs(self, tree: RegressionTree) -> FloatArray:
        return tree(self.table.rows)[self.table.of_pairs]

    def _judged(self, tree: RegressionTree) -> Fitted:
        """The tree with its costs in units of the expert's temperature, and its score."""
        costs = self._of_pairs(tree)
        width, known = float(np.ptp(costs)), dict[int, float]()
        unit = costs / width if width > 0 else np.zeros_like(costs)

        def at(place: int) -> float:
            if not 0 <= place < len(SCALES):
                return -np.inf
            if place not in known:
                soft = self.decisions.soft(unit * SCALES[place], self.near.get(place))
                assert soft is not None  # the discount is below 1
                self.near[place] = soft._replace(system=None)
                self.plans += 1
                known[place] = self.decisions.log_likelihood(soft)
            return known[place]

        place = self.place if width > 0 else 0
        while width > 0:
            better = max((place - 1, place + 1), key=at)
            if at(better) <= at(place):
                break
            place = better
        self.place = place if width > 0 else self.place
        likelihood = at(place)
        size = np.log(max(self.decisions.counts.sum(), 1.0)) / 2
        factor = SCALES[place] / width if width > 0 else 0.0
        value = tree.num_leaves * float(size) - likelihood
        return Fitted(scaled(tree, factor), likelihood, value)


def scaled(tree: RegressionTree, factor: float) -> RegressionTree:
    return RegressionTree(
        tree.feature, tree.threshold, tree.left, tree.right, read_only(tree.value * factor)
    )


@dataclass(frozen=True, eq=False)
class Record:
    """The expert's actions in recorded states, and the actions that they are better than."""

    states: BoolArray
    """Which states have a recorded decision."""
    law: FloatArray
    """Per pair: the action taken most often, or several in equal shares; 0 elsewhere."""
    rivals: IntArray
    """Pairs of recorded states that were taken less often."""
    weights: FloatArray
    """By how many decisions less, as a share of all."""

    @classmethod
    def of(cls, decisions: Decisions) -> "Record":
        pairs, counts = decisions.world.pairs, decisions.counts
        most = -pairs.smallest(-counts)
        modes = (counts == pairs.spread(most)) & (counts > 0)
        share = np.maximum(pairs.total(modes.astype(float)), 1.0)
        fewer = pairs.spread(most) - counts
        rivals = np.flatnonzero(fewer > 0)
        total = max(float(counts.sum()), 1.0)
        return cls(most > 0, modes / pairs.spread(share), rivals, fewer[rivals] / total)


def consistent_costs(
    decisions: Decisions,
    record: Record,
    table: FeatureRows,
    leaf: IntArray,
    law: FloatArray,
    penalty: float,
) -> FloatArray:
    """The optimisation step: a cost for every row of features.

    With V and the shortfalls t among the variables (f, m, V, t) everything is sparse:

        V = M_law (f + discount P V),   V(x) - Q(x, b) - t(x, b) <= -1,   t >= 0
    """
    import clarabel

    world, rivals = decisions.world, record.rivals
    if not rivals.size:
        return np.zeros(len(table.rows))
    rows, leaves, states, pairs = (
        len(table.rows),
        int(leaf.max()) + 1,
        world.num_states,
        world.pairs,
    )
    share = table.counts / table.counts.sum()
    of_row = _indicators(table.of_pairs, rows)
    of_leaf = _indicators(leaf, leaves)
    onwards = world.discount * world.continuation
    mean, steps = averaging(world, law), _indicators(pairs.states, states) - onwards
    slack = sparse.eye_array(rivals.size)
    matrix = sparse.block_array(
        [
            [mean @ of_row, sparse.csr_array((states, leaves)), -(mean @ steps), None],
            [-of_row[rivals], None, steps[rivals], -slack],
            [None, None, None, -slack],
        ],
        format="csc",
    )
    right = np.repeat([0.0, -1.0, 0.0], [states, rivals.size, rivals.size])
    apart = sparse.diags_array(share)
    between = apart @ of_leaf
    level = sparse.diags_array((1 + SMALL) * (of_leaf.T @ share))
    free = states + rivals.size
    squares = sparse.block_diag(
        [
            2 * sparse.block_array([[apart, -between], [-between.T, level]]),
            sparse.csr_array((free, free)),
        ]
    )
    linear = np.concatenate([np.zeros(rows + leaves + states), penalty * record.weights])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    cones = [clarabel.ZeroConeT(states), clarabel.NonnegativeConeT(2 * rivals.size)]
    solver: Any = clarabel.DefaultSolver(
        sparse.triu(squares, format="csc"), linear, matrix, right, cones, settings
    )
    found = np.array(solver.solve().x)[:rows]
    return found if np.isfinite(found).all() else np.zeros(rows)


def _indicators(places: IntArray, count: int) -> Any:
    """A row for every place, with a 1 in its column."""
    parts = (np.ones(places.size), (np.arange(places.size), places))
    return sparse.csr_array(parts, shape=(places.size, count))


# Regression trees


class Split(NamedTuple):
    """By how much the squared error falls when rows with `feature` above `threshold` part."""

    gain: float
    feature: int
    threshold: float


def single_leaf() -> RegressionTree:
    """The tree that says nothing."""
    return _tree([[-1, 0.0, 0, 0, 0.0]])


def _tree(nodes: list[list[float]]) -> RegressionTree:
    feature, threshold, left, right, value = np.array(nodes, dtype=float).T
    places = [part.astype(np.int64) for part in (feature, left, right)]
    return RegressionTree(
        read_only(places[0]), read_only(threshold), read_only(places[1]), read_only(places[2]),
        read_only(value),
    )  # fmt: skip


def grown(table: FeatureRows, costs: FloatArray, leaves: int) -> Iterator[RegressionTree]:
    """Regression trees with 1, 2, ... leaves: each splits the leaf of the last one, in two by one
    feature, that lowers the weighted squared error most."""
    weights = table.counts
    everything = np.arange(len(costs))
    nodes: list[list[float]] = []
    open_leaves: dict[int, tuple[Split, IntArray]] = {}
    spread = costs - np.average(costs, weights=weights)
    least = FLAT * float(weights @ spread**2)

    def add(rows: IntArray) -> int:
        value = float(np.average(costs[rows], weights=weights[rows]))
        nodes.append([-1, 0.0, 0, 0, value])
        split = best_split(table.rows[rows], costs[rows], weights[rows])
        open_leaves[len(nodes) - 1] = (split, rows)
        return len(nodes) - 1

    add(everything)
    yield _tree(nodes)
    while len(open_leaves) < leaves:
        node = max(open_leaves, key=lambda place: open_leaves[place][0].gain)
        split, rows = open_leaves.pop(node)
        if split.gain <= least:
            return
        below = table.rows[rows, split.feature] <= split.threshold
        children = add(rows[below]), add(rows[~below])
        nodes[node] = [split.feature, split.threshold, *children, nodes[node][4]]
        yield _tree(nodes)


def best_split(rows: FloatArray, costs: FloatArray, weights: FloatArray) -> Split:
    """The best of all splits of one leaf; its gain is 0 where there is none."""
    if len(costs) < 2:
        return Split(0.0, -1, 0.0)
    middle = np.average(costs, weights=weights)
    order = np.argsort(rows, axis=0, kind="stable")
    sorted_rows = np.take_along_axis(rows, order, axis=0)
    mass = np.cumsum(weights[order], axis=0)
    total = np.cumsum((weights * (costs - middle))[order], axis=0)
    rest = mass[-1] - mass[:-1]
    gains = total[:-1] ** 2 / mass[:-1] + (total[-1] - total[:-1]) ** 2 / rest
    gains[sorted_rows[1:] <= sorted_rows[:-1]] = 0.0
    place, feature = divmod(int(np.argmax(gains)), rows.shape[1])
    low, high = sorted_rows[place, feature], sorted_rows[place + 1, feature]
    threshold = low + (high - low) / 2
    return Split(
        float(gains[place, feature]), feature, float(threshold if threshold < high else low)
    )
