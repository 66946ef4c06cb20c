"""The apprenticeship problem: do at least as well as the expert for every cost of a class.

    minimise over policies   max { <mu_pi, c_w> - <mu_E, c_w> : w in W }
    subject to               <mu_pi, d_j> <= b_j    for every budget j

By Lemma 1 the inner maximum is the support function of W, so with mu an occupancy measure this is

    minimise   gap_W(Psi' mu - target)

where the target holds the expert's expectations, estimated from demonstrations: program (5) of the
paper, or (3) when they are exact. `Forward` is the same problem with one known cost and target 0.

One class serves every kind of world. How much can be asked of a problem is its `level`
(`world.levels`): arrays over all pairs in an explicit world, callables in a stepped one, episodes
of a simulator. Below that level `basis` holds the extreme rows of the costs' declared ranges,
so that every bound on a cost of the class is the same formula everywhere.

Making a problem checks that its parts fit together, the demonstrated steps included, and computes
nothing else: estimates are made when they are first asked for, and kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    assign,
    dense,
    plain_array,
    read_only,
    real_array,
    require_between,
    require_in_range,
)
from journeyman.costs import (
    CostBasis,
    CostClass,
    CostFunctions,
    InfinityBall,
    KnownCost,
    Simplex,
)
from journeyman.costs.cost_class import Totals
from journeyman.costs.functions import StepCosts
from journeyman.demonstrations import Blend, Demonstrations, ExpertExpectation, MonteCarlo
from journeyman.demonstrations.simulation import EpisodeTotals, Simulator, WorldSimulator
from journeyman.demonstrations.stepped_control_variate import blended_totals, discounted_totals
from journeyman.errors import InvalidCosts, InvalidDemonstrations, InvalidProblem
from journeyman.policy import Occupancy, Plan, Policy, occupancy
from journeyman.policy.planning import attainable_ranges, plan, require_free_ends
from journeyman.problem.bounds import TrivialBound, with_ranges, without_plans
from journeyman.problem.expert_premises import ExpertPremise, premises_of
from journeyman.progress import OutOfTime, keeping, out_of_time, whatever_it_takes
from journeyman.world import Pairs, Records, World
from journeyman.world.large_world import AnyWorld, require_sampled_world
from journeyman.world.laws import discount as checked_discount
from journeyman.world.layers import flattened
from journeyman.world.levels import (
    Level,
    level_of,
    require_discounted,
    require_level,
    require_totals,
)


@dataclass(frozen=True, eq=False, init=False)
class Budget:
    """An upper limit on the expected discounted total of a known cost.

    Args:
        cost: d, per pair, per state, or as a (states x actions) table with a column for every
            action number; entries of actions that a state lacks are left out. In a world too
            large for that, `CostFunctions` with one cost.
        at_most: b, in discounted units: a limit of r per step is r / (1 - discount); in a world
            with a horizon, for a whole episode; in one of average costs, a step.
        name: for people.

    >>> Budget(cost=[0.0, 1.0], at_most=2.5, name="wear").at_most
    2.5
    """

    cost: FloatArray
    """Where the budget has a function, the ends of its range."""
    at_most: float
    name: str
    function: CostFunctions | None

    def __init__(
        self, cost: ArrayLike | CostFunctions, at_most: float, name: str = "budget"
    ) -> None:
        what, function = f"cost of budget {name!r}", None
        if isinstance(cost, CostFunctions):
            function, cost = cost, [cost.lowest[0], cost.highest[0]]
            if function.num_costs != 1:
                raise InvalidCosts(
                    f"the {what} is a function of {function.num_costs} costs",
                    "Give CostFunctions with one cost, and several budgets for several",
                )
        axes = 2 if plain_array(what, cost, InvalidCosts).ndim == 2 else 1
        values = real_array(what, cost, ndim=axes, refusal=InvalidCosts)
        if not values.size:
            raise InvalidCosts(f"the {what} is empty", "Give one entry per pair")
        limit = require_between(
            f"at_most of budget {name!r}", at_most, -np.inf, np.inf, InvalidCosts,
            "Give a finite number, and leave out a budget without a limit",
        )  # fmt: skip
        assign(self, cost=values, at_most=limit, name=name, function=function)

    @property
    def size(self) -> float:
        """max |d|."""
        return float(np.abs(self.cost).max())

    @property
    def span(self) -> float:
        """max d - min d."""
        return float(self.cost.max() - self.cost.min())

    def fitted(self, world: World) -> "Budget":
        """The same budget without entries of pairs that `world` does not offer."""
        shapes = ((world.num_pairs,), (world.num_states,))
        fits = self.cost.shape in shapes or (world.pairs.is_complete and world.reduction is None)
        if self.function is None and fits:
            return self
        return Budget(self.on(world), self.at_most, self.name)

    def on(self, world: World) -> FloatArray:
        """The cost with one entry per pair of `world`."""
        if self.function is not None:
            return self.function.at(world.pairs.states, world.pairs.actions)[:, 0]
        return flattened(world, f"cost of budget {self.name!r}", self.cost, InvalidCosts)


Costs: TypeAlias = CostBasis | CostFunctions | StepCosts | Simulator | Records
Expert: TypeAlias = Demonstrations | EpisodeTotals | ExpertExpectation

SIMULATOR = ("names", "lowest", "highest", "discount", "observation_axes", "totals")
"""What a simulator has."""
ORDER = (
    "Give Apprenticeship(world, costs, expert): a World, a CostBasis, then Demonstrations or an "
    "ExpertExpectation"
)
READERS = (
    ". From files and data frames jm.read_world, jm.read_costs and jm.read_demonstrations make them"
)
TARGET_SHARE = 0.7
"""Of the time there is, that a target leaves to what it is for."""
SLACK = 1e-9
"""Relative to the largest total: more than sums can lose to rounding."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Apprenticeship:
    """Imitate an expert under every cost that the basis costs can express.

    Args:
        world: where both act: a `World`, a `LargeWorld` or a world that can only be sampled, a
            simulator such as `GymnasiumSimulator`, or `Records`, of which nothing else is known.
        costs: those that may matter: a `CostBasis` in a `World`, `CostFunctions` in a world of
            callables (or in a `World`, which is then treated as one); None for a simulator, which
            has its own, and for `Records`.
        expert: `Demonstrations`; an `ExpertExpectation` (declared, or estimated in a way of your
            choice); for a simulator `EpisodeTotals`, or for `GymnasiumSimulator` demonstrations
            that hold observations.
        cost_class: which weights are possible; `InfinityBall()` by default.
        constraints: budgets that the apprentice must keep (the expert may have broken them, unless
            it is declared to be good for a cost of its own); in a world of callables their costs
            are `CostFunctions`.
        expert_is: what is declared about the expert, one premise or several
            (`problem.expert_premises`); nothing by default.
    """

    world: World
    """Typed as the explicit one. What it really has depends on `level`."""
    costs: Costs
    cost_class: CostClass
    constraints: tuple[Budget, ...]
    expert: Expert | None
    """None where the cost is known."""
    expert_is: tuple[ExpertPremise, ...]
    """What is declared about the expert."""
    observed: Demonstrations | None = None
    """Episodes of observations that `expert` has the totals of, where there is only a simulator."""

    def __init__(
        self,
        world: AnyWorld | Simulator | Records,
        costs: Costs | None,
        expert: Expert,
        cost_class: CostClass | None = None,
        constraints: Iterable[Budget] | Budget = (),
        expert_is: Iterable[ExpertPremise] | ExpertPremise = (),
    ) -> None:
        fitted = _fitted_costs(world, costs)
        expert = _in_layers(world, fitted, expert)
        if isinstance(expert, Demonstrations) and hasattr(world, "expert_totals"):
            assign(self, observed=expert)
            expert = world.expert_totals(expert)
        _require_expert(world, fitted, expert)
        chosen = InfinityBall() if cost_class is None else cost_class
        if isinstance(world, Records):
            if cost_class is not None:
                raise InvalidProblem(
                    f"cost_class is {cost_class!r}, and records alone know a range of costs only",
                    "Leave it out: the bound holds for every cost in the range",
                )
            chosen = Simplex()
        self._assemble(world, fitted, expert, chosen, constraints)
        if expert_is:
            require_discounted(world, "a premise about the expert (expert_is)")
            require_totals(world, "a premise about the expert (expert_is)")
        assign(self, expert_is=premises_of(self, expert_is))

    def _assemble(
        self,
        world: Any,
        costs: Costs,
        expert: Expert | None,
        cost_class: CostClass,
        constraints: Iterable[Budget] | Budget,
    ) -> None:
        if not isinstance(cost_class, CostClass):
            raise InvalidProblem(
                f"cost_class is {cost_class!r}", "Give a value, for example Simplex()"
            )
        cost_class.scaling(len(costs.names))
        assign(self, world=world, costs=costs, cost_class=cost_class, expert=expert)
        assign(self, constraints=self._budgets(constraints), expert_is=())
        if getattr(world, "has_goal", False):
            self._require_goal()

    def _require_goal(self) -> None:
        """What discount 1 asks for."""
        if self.level is not Level.EXPLICIT:
            require_discounted(self.world, "a problem with costs that are functions")
        require_free_ends(self.world, abs(self.cost_matrix).sum(axis=1), "a cost")
        for budget in self.constraints:
            require_free_ends(self.world, budget.on(self.world), f"the budget {budget.name!r}")
        least = float(self.world.initial @ self.fastest.values)
        if least > self.world.effective_horizon * (1 + 1e-9):
            raise InvalidProblem(
                f"steps_at_most = {self.world.effective_horizon:g}, but every policy expects "
                f"{least:.6g} steps or more until the end",
                "Give the world a larger steps_at_most",
            )

    def _budgets(self, constraints: Iterable[Budget] | Budget) -> tuple[Budget, ...]:
        budgets = (constraints,) if isinstance(constraints, Budget) else tuple(constraints)
        for budget in budgets:
            if not isinstance(budget, Budget):
                raise InvalidProblem(
                    f"constraints holds a {type(budget).__name__}",
                    "Give jm.Budget(cost=..., at_most=...)",
                )
            if self.level is Level.EXPLICIT:
                budget.on(self.world)
                continue
            require_level(self, Level.STEPPED, f"the budget {budget.name!r}")
            if budget.function is None:
                raise InvalidProblem(
                    f"the cost of budget {budget.name!r} is an array, and the costs are functions",
                    "Give jm.Budget(cost=jm.CostFunctions(...), at_most=...)",
                )
        explicit = self.level is Level.EXPLICIT
        return tuple(one.fitted(self.world) if explicit else one for one in budgets)

    @cached_property
    def fastest(self) -> Plan:
        """With discount 1: the way to an end in the fewest expected steps, from every state."""
        return plan(self.world, ~self.world.absorbing[self.world.pairs.states] * 1.0)

    @property
    def num_costs(self) -> int:
        return len(self.costs.names)

    @property
    def level(self) -> Level:
        """How much can be asked of this problem: that of the world, if the costs allow it."""
        allowed = Level.EXPLICIT if isinstance(self.costs, CostBasis) else Level.STEPPED
        return min(level_of(self.world), allowed)

    @property
    def has_states(self) -> bool:
        """Whether the world has numbered states; a simulator shows observations only, and of
        records nothing else is known."""
        return not (hasattr(self.world, "totals") or isinstance(self.world, Records))

    @property
    def has_known_cost(self) -> bool:
        """Whether this is a `Forward` problem: no expert, and the gap is the cost itself."""
        return self.cost_class.is_known

    @property
    def effective_horizon(self) -> float:
        """1/(1 - discount), the mass of every occupancy measure; with discount 1 the bound M on
        expected further steps (`World.effective_horizon`)."""
        if getattr(self.world, "has_goal", False):
            return self.world.effective_horizon
        return 1.0 / (1.0 - self.world.discount)

    @property
    def total_time(self) -> float:
        """Discounted time of all that counts: 1/(1 - discount), or that of an episode where the
        world has a horizon. A number per step is one divided by this."""
        return self.totals.horizon

    @cached_property
    def totals(self) -> Totals:
        """What bounded costs say about the totals of a trajectory: the costs of a step, and the
        discounted time of all steps."""
        made = getattr(self.world, "reduction", None)
        if made is None or self.level is not Level.EXPLICIT:
            return Totals(self.basis, self.effective_horizon)
        steps = CostBasis(made.per_step(self.cost_matrix), names=self.basis.names)
        return Totals(steps, made.total_time)

    # The expert.

    @property
    def demonstrations(self) -> Demonstrations | None:
        """What the expert was seen to do, where that is at hand step by step."""
        if isinstance(self.expert, ExpertExpectation):
            return self.expert.demonstrations
        return self.expert if isinstance(self.expert, Demonstrations) else None

    @property
    def records(self) -> EpisodeTotals | None:
        """Totals of the expert's episodes, where nothing else of them is at hand."""
        return self.expert if isinstance(self.expert, EpisodeTotals) else None

    @cached_property
    def expectation(self) -> ExpertExpectation:
        """Expected discounted costs of the expert, estimated in the default way unless given.

        In an explicit world by `Blend`; in one of callables likewise, with fitted values behind
        records that are cut off (`large_control_variate`); in a simulator by plain means. Zero,
        declared, where the cost is known. It takes the time it takes (`in_time` does not).
        """
        with whatever_it_takes():
            return self._estimated()

    def _estimated(self) -> ExpertExpectation:
        expert = self.expert
        if self.level is Level.RECORDED:
            raise InvalidProblem(
                "records alone say nothing about the expert's expected costs",
                "Certify a policy: jm.certify(problem, policy)",
            )
        if expert is None:
            return ExpertExpectation(np.zeros(self.num_costs))
        if isinstance(expert, ExpertExpectation):
            return expert
        if isinstance(expert, EpisodeTotals):
            return ExpertExpectation.from_totals(expert.totals, expert.unrecorded, MonteCarlo())
        if isinstance(self.costs, CostBasis):
            return ExpertExpectation.from_demonstrations(
                expert, self.costs, self.world, clipped=self.cost_class.bears_clipping
            )
        costs, world = self.cost_functions, self.world
        unrecorded = np.asarray(world.discount**expert.lengths * self.effective_horizon)
        plain = discounted_totals(expert, costs, world.discount)
        totals = blended_totals(expert, plain, costs, world)
        return ExpertExpectation.from_totals(totals, unrecorded, Blend(num_folds=2), expert)

    def in_time(self) -> "Apprenticeship":
        """This problem, its default target estimated; or the same problem with the plain mean of
        the records for a target, where the deadline leaves no time for a better one."""
        given = not isinstance(self.expert, Demonstrations) or self.level is not Level.EXPLICIT
        if given or "expectation" in vars(self):
            return self
        try:
            with keeping(TARGET_SHARE):
                vars(self)["expectation"] = self._estimated()
        except OutOfTime:
            return self.with_plain_target()
        return self

    def with_plain_target(self) -> "Apprenticeship":
        """The same problem with the plain mean of the records for a target."""
        assert isinstance(self.expert, Demonstrations)
        plain = ExpertExpectation.from_demonstrations(
            self.expert, self.basis, self.world, method=MonteCarlo()
        )
        return Apprenticeship(
            self.world, self.costs, plain, self.cost_class, self.constraints, self.expert_is
        )

    @property
    def target(self) -> FloatArray:
        """What expectations are compared with: the expert's, or zero."""
        return self.expectation.values

    @property
    def exact_target(self) -> FloatArray | None:
        """The target where it is taken as exact; None where it was estimated."""
        if self.level is Level.RECORDED:
            return None
        return self.target if self.expectation.is_declared else None

    # The costs.

    @cached_property
    def basis(self) -> CostBasis:
        """Psi; below the explicit level rows as large as any row of costs can be."""
        if isinstance(self.costs, CostBasis):
            return self.costs
        costs, largest = self.costs, np.inf
        if isinstance(costs, CostFunctions) and self.has_states:
            largest = costs.largest_passed
        rows = self.cost_class.extreme_rows(costs.lowest, costs.highest, largest)
        return CostBasis(rows, names=costs.names)

    @cached_property
    def cost_matrix(self) -> Matrix:
        """Psi with one row per pair; below the explicit level the rows of `basis`."""
        explicit = self.level is Level.EXPLICIT
        return self.basis.on(self.world) if explicit else self.basis.matrix

    @cached_property
    def cost_functions(self) -> CostFunctions:
        """The costs of given pairs by a function, in every world that has states."""
        if isinstance(self.costs, CostFunctions):
            return self.costs
        require_level(self, Level.EXPLICIT, "a function of states and actions for the costs")
        basis, matrix = self.basis, self.cost_matrix
        return CostFunctions(
            partial(_rows_of, matrix, self.world.pairs), basis.names,
            lowest=basis.lowest, highest=basis.highest,
        )  # fmt: skip

    @property
    def simulator(self) -> Simulator:
        """Episodes in this world, with these costs."""
        require_level(self, Level.SAMPLED, "a simulator")
        if not self.has_states:
            return cast(Simulator, self.world)
        _refuse_estimated(self.world)
        require_discounted(self.world, "a simulator of the world")
        require_totals(self.world, "a simulator of the world")
        return WorldSimulator(self.world, self.cost_functions)

    @cached_property
    def budget_matrix(self) -> FloatArray:
        """The budgets' costs as columns (pairs x budgets)."""
        require_level(self, Level.EXPLICIT, "a matrix of budgets")
        columns = [budget.on(self.world) for budget in self.constraints]
        return np.column_stack(columns) if columns else np.zeros((self.world.num_pairs, 0))

    @property
    def limits(self) -> FloatArray:
        """The right-hand sides b_j."""
        return np.array([budget.at_most for budget in self.constraints], dtype=float)

    # Scales, and what bounded costs and plans say about every policy.

    @cached_property
    def gap_scale(self) -> float:
        """2 N/(1 - discount): what tolerances of solvers are relative to; N times the time of an
        episode in a world with a horizon. It needs no plan, so it is often far above the largest
        gap that there is, the `trivial_bound`."""
        totals = self.totals
        return 2 * self.cost_class.pointwise_bound(totals.basis.matrix) * totals.horizon

    @cached_property
    def cost_unit(self) -> float:
        """N, the largest cost of the class in any pair, or 1 when all costs are zero: engines are
        given numbers in this unit."""
        return self.cost_class.pointwise_bound(self.basis.matrix) or 1.0

    @cached_property
    def budget_units(self) -> FloatArray:
        """max |d_j| of every budget, 1 where that is zero."""
        return np.array([budget.size or 1.0 for budget in self.constraints], dtype=float)

    @property
    def trivial_bound(self) -> float:
        """No policy has a larger gap; a bound that reaches it is vacuous (`problem.bounds`).

        In an explicit world it rests on the attainable ranges of the costs and takes up to two
        plans per cost, once. Elsewhere, and in an estimated world, it is what bounded costs alone
        imply; a certificate, which knows with what probability the model may be how wrong, may have
        a smaller one.
        """
        return self.trivial.value

    @property
    def trivial(self) -> TrivialBound:
        """The trivial bound with what proves it; one that was cut short is not kept."""
        known: TrivialBound | None = vars(self).get("_known_trivial")
        if known is None:
            known = self._trivial(self.exact_target, known_cost=self.has_known_cost)
            if not out_of_time():
                assign(self, _known_trivial=known)
        return known

    @cached_property
    def largest_excess(self) -> float:
        """By how much the gaps of two policies, to whatever target, differ at most: what guarantees
        about the best policy are compared with."""
        return self._trivial(None, known_cost=False).value

    def _trivial(self, target: FloatArray | None, *, known_cost: bool) -> TrivialBound:
        if self.level is Level.EXPLICIT and not self.world.is_estimated:
            ranges = attainable_ranges(self.world, self.basis)
            if ranges.planned:
                return with_ranges(self, target, ranges, known_cost=known_cost)
        return without_plans(self, target, known_cost=known_cost)

    # Exact evaluation, in an explicit world.

    def cost_of(self, weights: FloatArray) -> FloatArray:
        """c_w = Psi w per pair."""
        return np.asarray(self.cost_matrix @ weights)

    def difference(self, measure: FloatArray) -> FloatArray:
        """Psi' measure - target."""
        return np.asarray(self.cost_matrix.T @ measure - self.target)

    def gap(self, policy: Policy | Occupancy) -> float:
        """The objective at a policy (or its occupancy), by exact evaluation."""
        require_level(self, Level.EXPLICIT, "exact evaluation")
        visits = policy if isinstance(policy, Occupancy) else occupancy(self.world, policy)
        return self.cost_class.gap(self.difference(visits.measure))

    def overspending(self, measure: FloatArray) -> FloatArray:
        """<mu, d_j> - b_j for every budget; positive means broken."""
        return np.asarray(self.budget_matrix.T @ measure - self.limits)

    def __repr__(self) -> str:
        parts = [repr(self.world), f"{self.num_costs} costs", repr(self.cost_class)]
        parts += [repr(self.expert)] * isinstance(self.expert, Demonstrations | EpisodeTotals)
        parts += [f"{len(self.constraints)} budgets"] * bool(self.constraints)
        parts += [repr(premise) for premise in self.expert_is]
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Forward(Apprenticeship):
    """Minimise a known cost: per pair, per state, (states x actions), or a one-column basis.

        minimise over policies   E sum_t discount^t c(x_t, a_t)   subject to the budgets

    Without budgets `jm.plan` is faster. With them an optimal policy may have to randomise.
    """

    def __init__(
        self, world: World, cost: Any, constraints: Iterable[Budget] | Budget = ()
    ) -> None:
        basis = cost if isinstance(cost, CostBasis) else CostBasis(cost)
        rows, columns = basis.matrix.shape
        pairs = world.pairs if world.reduction is None else world.reduction.base.pairs
        wide = columns >= pairs.width if not pairs.is_complete else False
        is_table = rows == pairs.num_states and (wide or columns == pairs.width)
        if columns > 1 and is_table and not sparse.issparse(basis.matrix):
            basis = CostBasis(flattened(world, "cost", basis.matrix, InvalidCosts))
        if basis.num_costs != 1:
            raise InvalidProblem(
                f"a forward problem has one cost, not {basis.num_costs}",
                "Combine the columns with known weights first",
            )
        self._assemble(world, _fitted_costs(world, basis), None, KnownCost(), constraints)


def _fitted_costs(world: Any, costs: Any) -> Costs:
    """The costs as the problem keeps them, or what is wrong with world and costs."""
    if hasattr(world, "totals"):
        return _own_costs(world, costs)
    if isinstance(world, Records):
        if costs is not None:
            raise InvalidProblem(
                f"costs is a {type(costs).__name__}, and records alone know a range of costs only",
                "Give Apprenticeship(jm.world.Records(...), None, demonstrations)",
            )
        return world
    if not hasattr(world, "discount"):
        raise InvalidProblem(f"world is a {type(world).__name__}", ORDER + READERS)
    if isinstance(world, World) and not isinstance(costs, CostFunctions):
        if not isinstance(costs, CostBasis):
            raise InvalidProblem(f"costs is a {type(costs).__name__}", ORDER + READERS)
        fitted = costs.fitted(world)
        fitted.on(world)
        return fitted
    if getattr(world, "reduction", None) is not None:
        kind = "a horizon" if world.layers is not None else "average costs"
        raise InvalidProblem(
            f"the costs are functions, and the world has {kind}",
            f"Give the costs of the world without {kind} as a jm.CostBasis",
        )
    require_sampled_world(world)
    _refuse_estimated(world)
    if not isinstance(costs, CostFunctions):
        raise InvalidProblem(
            f"costs is a {type(costs).__name__}, and the world is no list of pairs",
            "Give jm.CostFunctions(function, names, lowest=..., highest=...)",
        )
    return costs


def _in_layers(world: Any, costs: Costs, expert: Any) -> Any:
    """The expert's records as those of a world with a horizon, where the world has one.

    Records that came to rest go on resting at the cost of their state. Where that depends on what
    is done there they are taken as cut off: nothing is known of the rest.
    """
    layers = getattr(world, "layers", None)
    records = expert.demonstrations if isinstance(expert, ExpertExpectation) else expert
    if layers is None or not isinstance(costs, CostBasis) or records is None:
        return expert
    if isinstance(expert, ExpertExpectation):
        if records.on(world) is not records:
            raise InvalidProblem(
                "these expectations were estimated in a world without the horizon",
                "Give the Demonstrations, or estimate them in this world: "
                "jm.ExpertExpectation.from_demonstrations(demos, basis, world)",
            )
        return expert
    if not isinstance(expert, Demonstrations) or not expert.has_ids or expert.on(world) is expert:
        return expert
    rows = costs.on(world)
    apart = abs(rows - rows[world.pairs.offsets[world.pairs.states]]).max(axis=1)
    alike = world.pairs.smallest(-np.ravel(dense(apart)))[: layers.end] == 0
    rests = alike.reshape(layers.horizon, -1).all(axis=0)[expert.last_states]
    return expert.ended_as(expert.terminated & rests, expert.last_states).on(world)


def _own_costs(simulator: Any, costs: Any) -> Costs:
    """The costs that a simulator has, which no others can replace."""
    missing = [name for name in SIMULATOR if not hasattr(simulator, name)]
    if missing:
        raise InvalidProblem(
            f"{type(simulator).__name__} has no {', '.join(missing)}, so it is no simulator",
            f"A simulator has {', '.join(SIMULATOR)}: add what is missing, or give for example "
            "jm.GymnasiumSimulator(...)",
        )
    checked_discount(simulator.discount)
    _refuse_estimated(getattr(simulator, "world", None))
    own = getattr(simulator, "costs", None)
    if costs is not None and costs is not own:
        raise InvalidProblem(
            f"costs is a {type(costs).__name__}, and a simulator has costs of its own",
            "Give Apprenticeship(simulator, None, expert)",
        )
    return cast(Costs, simulator if own is None else own)


def _refuse_estimated(world: Any) -> None:
    if getattr(world, "is_estimated", False):
        raise InvalidProblem(
            "the laws of this world are estimates, and no bound by rollouts or drawn rows has a "
            "term for their error",
            "Give the costs as a jm.CostBasis and evaluate policies exactly: such certificates "
            "have one",
        )


def _require_expert(world: Any, costs: Costs, expert: Any) -> None:
    """Refuse what is no expert, or not one of this world and these costs."""
    if isinstance(world, Records):
        _require_records(world, expert)
        return
    simulated = hasattr(world, "totals")
    shown = EpisodeTotals if simulated else Demonstrations
    if not isinstance(expert, shown | ExpertExpectation):
        raise InvalidProblem(
            f"the expert is a {type(expert).__name__}",
            "Give EpisodeTotals (jm.demonstrations.record_totals turns a policy into them) or an "
            "ExpertExpectation"
            if simulated
            else "Give Demonstrations (jm.record turns a policy into them) or an ExpertExpectation",
        )
    num_costs = count = len(costs.names)
    if isinstance(expert, ExpertExpectation):
        if isinstance(costs, CostBasis):
            _refuse_turned_sign(costs, expert, world)
        elif not expert.is_declared and (simulated or expert.demonstrations is None):
            raise InvalidProblem(
                "these expectations were estimated, and their episodes are not here",
                f"Give the {shown.__name__} they were estimated from, or "
                "jm.ExpertExpectation(values) if they are exact",
            )
        count = expert.values.size
    elif isinstance(expert, EpisodeTotals):
        count = expert.totals.shape[1]
    elif isinstance(costs, CostBasis):
        expert.pairs_in(world)
    else:
        expert.require_ids("a world of callables")
        require_in_range("states", expert.states, world.num_states, InvalidDemonstrations)
        require_in_range("actions", expert.actions, world.num_actions, InvalidDemonstrations)
    if count != num_costs:
        raise InvalidProblem(
            f"the expert has {count} expectations, there are {num_costs} costs",
            "Give one expectation per cost",
        )
    if isinstance(expert, EpisodeTotals):
        require_possible(expert, world)


def _require_records(world: Records, expert: Any) -> None:
    """Demonstrations, with logged probabilities where these are to be used."""
    if not isinstance(expert, Demonstrations):
        raise InvalidProblem(
            f"the expert is a {type(expert).__name__}",
            "Give the Demonstrations: of this world nothing but records is known",
        )
    if world.use_probabilities and expert.probabilities is None:
        raise InvalidProblem(
            "use_probabilities is set, and these demonstrations hold no probabilities",
            "Give Demonstrations(..., probabilities=...), or leave use_probabilities out",
        )


def _refuse_turned_sign(basis: CostBasis, expert: ExpertExpectation, world: World) -> None:
    """Declared expectations of rewards that only make sense with the other sign."""
    if not basis.rewards or expert.values.size != basis.num_costs or world.reduction is not None:
        return
    slack = 1e-9 * basis.norms
    low, high = (basis.lowest - slack, basis.highest + slack)
    given = expert.values / world.effective_horizon
    impossible = (given < low) | (given > high)
    if impossible.any() and ((-given >= low) & (-given <= high)).all():
        name = basis.names[int(np.argmax(impossible))]
        raise InvalidProblem(
            f"the basis holds rewards, and the declared expectation of {name!r} has the sign of "
            "a reward where a cost is expected",
            "Declare it with ExpertExpectation.from_rewards(...)",
        )


def require_possible(records: EpisodeTotals, simulator: Simulator) -> None:
    """Refuse totals that the declared ranges rule out.

    lowest (h - unrecorded) <= total <= highest (h - unrecorded), whatever happened: every step
    counts, those behind the end of a complete episode too. Radii rest on these ranges.
    """
    horizon = 1.0 / (1.0 - simulator.discount)
    low, high = np.asarray(simulator.lowest), np.asarray(simulator.highest)
    time = np.maximum(horizon - records.unrecorded, 0.0)[:, np.newaxis]
    slack = SLACK * horizon * np.maximum(np.abs(low), np.abs(high))
    outside = (records.totals < time * low - slack) | (records.totals > time * high + slack)
    if outside.any():
        episode, cost = (int(part[0]) for part in np.nonzero(outside))
        least, most = (float(time[episode, 0] * end[cost]) for end in (low, high))
        raise InvalidProblem(
            f"episode {episode} has a total of {records.totals[episode, cost]} for "
            f"{simulator.names[cost]!r}; by the declared range it lies between {least} and {most}",
            "Declare the range that every step has, those behind an end included, and say by "
            "unrecorded what discounted time is missing",
        )


def _rows_of(matrix: Matrix, pairs: Pairs, states: IntArray, actions: IntArray) -> FloatArray:
    """Rows of a cost matrix at given pairs."""
    rows = matrix[pairs.index(states, actions, InvalidCosts)]
    return read_only(dense(rows))
