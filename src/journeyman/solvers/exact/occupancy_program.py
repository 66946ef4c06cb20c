"""Linear programs over occupancy measures, as arrays.

Columns are the state-action pairs, then the auxiliary variables of the cost class. Rows are the
flow constraints, then the matching rows of the cost class, then the budgets:

    (B - discount P)' mu = initial                              one row per state
    a box    (psi_i' mu - target_i)/m_i = p_i - q_i             min  sum_i half_i m_i (p_i + q_i)/N
    a hull   scale_i (psi_i' mu - target_i)/N <= t              min  t
    a ball   scale_i (psi_i' mu - target_i)/N = 0               with prices of norm at most 1
    others   (psi_i' mu - target_i)/m_i = z_i, and the rows of `WeightSet` over z
    sum of mu off the ends <= M                                 with discount 1 only
    <mu, d_j>/|d_j| <= b_j/|d_j|                                one row per budget

where m_i = max|psi_i| and N is the largest cost of the class: engines know absolute tolerances
only, so whatever unit a user chose, they are given numbers of size one. `dual_point` undoes it. The
centre of a class is a cost of the pairs, <mu, Psi centre>/N.

With discount 1 measures may hold circulations, which no policy enters (`world.goals`): M bounds
them, and states that cannot be reached have no mass. A policy that is read off a measure takes the
shortest way out of states with next to no mass and of those that it would never leave
(`policy_of`).

A pair's column holds its row of B - discount P, of Psi and of the budget costs, so the matrix is
stacked row by row from CSR parts without a transposition.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix
from journeyman.costs.cost_class import WeightSet
from journeyman.policy import Policy, extract, occupancy
from journeyman.policy.policy_evaluation import transition_under
from journeyman.problem import Apprenticeship
from journeyman.world.goals import leading_to

INFINITY = float("inf")


@dataclass(frozen=True, eq=False)
class LinearModel:
    """minimise <cost, x> with lower <= x <= upper and row_lower <= A x <= row_upper.

    `columns` is A transposed: row j of it is column j of A.
    """

    columns: SparseMatrix
    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray


@dataclass(frozen=True, eq=False)
class Matching:
    """How a cost class enters: rows over the pairs, and auxiliary columns with their costs."""

    pair_rows: SparseMatrix
    pair_cost: FloatArray
    auxiliary: SparseMatrix
    auxiliary_cost: FloatArray
    auxiliary_lower: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray


def exact_program(problem: Apprenticeship) -> LinearModel:
    """The exact program of a problem.

    For a ball it asks the measures to match the target in every scaled cost. Seldom there is one;
    with prices of norm at most 1 (`normed_rows`) it is the exact program (`engines.dual_form`).
    """
    return _assemble(problem, _matching(problem, _weight_set(problem)))


def normed_rows(problem: Apprenticeship) -> slice | None:
    """The rows whose prices share a ball, if the cost class is one."""
    return None if _weight_set(problem).axes is None else matching_rows(problem)


def second_stage_program(problem: Apprenticeship, model: LinearModel, gap: float) -> LinearModel:
    """With a surplus: least sum of scaled costs among the measures with at most the given gap."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    num_pairs, limits = problem.world.num_pairs, model.row_upper.copy()
    limits[matching_rows(problem)] += gap / problem.cost_unit
    return replace(
        model,
        columns=model.columns[:num_pairs],
        cost=problem.cost_of(scale) / problem.cost_unit,
        lower=model.lower[:num_pairs],
        upper=model.upper[:num_pairs],
        row_upper=limits,
    )


def tilted_program(problem: Apprenticeship, model: LinearModel, tilt: float) -> LinearModel:
    """With a surplus: the exact program with `tilt` times the sum of scaled costs on top."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    cost = model.cost.copy()
    cost[: problem.world.num_pairs] += tilt * problem.cost_of(scale) / problem.cost_unit
    return replace(model, cost=cost)


def matching_rows(problem: Apprenticeship) -> slice:
    """The rows of the cost class in `exact_program` that belong to one cost each."""
    first = problem.world.num_states
    return slice(first, first + problem.basis.num_costs)


def budget_rows(problem: Apprenticeship, num_rows: int) -> slice:
    """The rows of the budgets, the last ones."""
    return slice(num_rows - len(problem.constraints), num_rows)


NEXT_TO_NOTHING = 1e-10
"""Of M: with discount 1, states with less mass were not meant to be visited."""


TINY, ROOM = 1e-300, 1e-9
"""Against division by zero; of the share of the fastest policy, for rounding."""


def policy_of(problem: Apprenticeship, measure: FloatArray) -> Policy:
    """The policy that a measure defines; with discount 1 one that comes to an end."""
    world, found = problem.world, extract(problem.world, measure)
    if not world.has_goal:
        return found
    law, fast = found.on(world), problem.fastest.policy.on(world)
    mass = world.pairs.total(np.maximum(measure, 0.0))
    meant = mass > NEXT_TO_NOTHING * world.effective_horizon
    law = np.where(meant[world.pairs.states], law, fast)
    chain = transition_under(world, Policy(law, world.pairs))
    endless = ~leading_to(chain, world.absorbing)
    law = np.where(endless[world.pairs.states], fast, law)
    return _in_time(problem, Policy(law, world.pairs))


def _in_time(problem: Apprenticeship, policy: Policy) -> Policy:
    """The policy, or a mixture with the fastest one that expects no more than M steps."""
    world = problem.world
    visits, most = occupancy(world, policy), world.effective_horizon
    if visits.steps <= most:
        return policy
    fast = occupancy(world, problem.fastest.policy)
    share = min(1.0, (visits.steps - most) / max(visits.steps - fast.steps, TINY) + ROOM)
    return extract(world, (1 - share) * visits.measure + share * fast.measure)


def dual_point(
    problem: Apprenticeship, row_duals: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Cost weights, values and budget prices behind the row duals of the exact program."""
    unit, chosen = problem.cost_unit, _weight_set(problem)
    priced = -row_duals[matching_rows(problem)]
    prices = -row_duals[budget_rows(problem, row_duals.size)]
    if not chosen.size:
        weights = chosen.centre
    elif chosen.axes is not None:
        weights = priced * chosen.axes
    elif chosen.generators is not None and chosen.is_diagonal:
        weights = priced * chosen.generators
    else:
        weights = priced * unit / _column_units(problem)
    if chosen.size and not chosen.is_centred:
        weights = weights + chosen.centre
    values = row_duals[: problem.world.num_states] * unit
    return weights, values, prices * unit / problem.budget_units


def _weight_set(problem: Apprenticeship) -> WeightSet:
    return problem.cost_class.weight_set(problem.basis.num_costs)


def _matching(problem: Apprenticeship, chosen: WeightSet) -> Matching:
    if not chosen.size:
        found = _nothing(problem)
    elif chosen.axes is not None:
        found = _round(problem, chosen.axes)
    elif chosen.is_box:
        found = _two_sided(problem, chosen.upper)
    elif chosen.generators is not None and chosen.is_diagonal:
        found = _one_sided(problem, chosen.generators)
    else:
        found = _lifted(problem, chosen)
    if chosen.is_centred:
        return found
    return replace(found, pair_cost=problem.cost_of(chosen.centre) / problem.cost_unit)


def _round(problem: Apprenticeship, axes: FloatArray) -> Matching:
    scale = axes / problem.cost_unit
    target = scale * problem.target
    return replace(
        _nothing(problem),
        pair_rows=_scaled_costs(problem, scale),
        row_lower=target, row_upper=target,
    )  # fmt: skip


def _two_sided(problem: Apprenticeship, half: FloatArray) -> Matching:
    count, units = problem.basis.num_costs, _column_units(problem)
    prices = half * units / problem.cost_unit
    identity = sparse.eye_array(count, format="csr")
    return Matching(
        pair_rows=_scaled_costs(problem, 1 / units),
        pair_cost=np.zeros(problem.world.num_pairs),
        auxiliary=sparse.vstack([-identity, identity], format="csr"),
        auxiliary_cost=np.concatenate([prices, prices]),
        auxiliary_lower=np.zeros(2 * count),
        row_lower=problem.target / units,
        row_upper=problem.target / units,
    )


def _one_sided(problem: Apprenticeship, sizes: FloatArray) -> Matching:
    count, scale = sizes.size, sizes / problem.cost_unit
    return Matching(
        pair_rows=_scaled_costs(problem, scale),
        pair_cost=np.zeros(problem.world.num_pairs),
        auxiliary=sparse.csr_array(-np.ones((1, count))),
        auxiliary_cost=np.ones(1),
        auxiliary_lower=np.full(1, -INFINITY),
        row_lower=np.full(count, -INFINITY),
        row_upper=scale * problem.target,
    )


def _lifted(problem: Apprenticeship, chosen: WeightSet) -> Matching:
    """z, t, p and q of `WeightSet` as auxiliary columns; a row for each cost and each v.

    A lower bound of zero leaves an inequality behind instead of a column q, a bound that is implied
    nothing at all.
    """
    count, size, units = chosen.num_costs, chosen.size, _column_units(problem)
    pulled = chosen.pulled(np.diag(units / problem.cost_unit))
    from_above = np.flatnonzero(~chosen.implied_upper)
    from_below = np.flatnonzero(~chosen.implied_lower & (chosen.lower != 0))
    one_sided = ~chosen.implied_lower & (chosen.lower == 0)
    identity = sparse.eye_array(size, format="csr")
    blocks = [
        sparse.hstack([-sparse.eye_array(count), sparse.csr_array(pulled.T)]),
        sparse.hstack([sparse.csr_array((chosen.right.size, count)), -chosen.equations]),
        sparse.hstack([sparse.csr_array((from_above.size, count)), -identity[from_above]]),
        sparse.hstack([sparse.csr_array((from_below.size, count)), identity[from_below]]),
    ]
    free, bounded = count + chosen.right.size, from_above.size + from_below.size
    return Matching(
        pair_rows=sparse.hstack([
            _scaled_costs(problem, 1 / units), sparse.csr_array((problem.world.num_pairs, size)),
        ], format="csr"),
        pair_cost=np.zeros(problem.world.num_pairs),
        auxiliary=sparse.vstack(blocks, format="csr"),
        auxiliary_cost=np.concatenate([
            np.zeros(count), chosen.right, chosen.upper[from_above], -chosen.lower[from_below],
        ]),
        auxiliary_lower=np.concatenate([np.full(free, -INFINITY), np.zeros(bounded)]),
        row_lower=np.concatenate([problem.target / units, np.where(one_sided, -INFINITY, 0.0)]),
        row_upper=np.concatenate([problem.target / units, np.zeros(size)]),
    )  # fmt: skip


def _nothing(problem: Apprenticeship) -> Matching:
    empty = np.zeros(0)
    return Matching(
        pair_rows=sparse.csr_array((problem.world.num_pairs, 0)),
        pair_cost=np.zeros(problem.world.num_pairs),
        auxiliary=sparse.csr_array((0, 0)),
        auxiliary_cost=empty,
        auxiliary_lower=empty,
        row_lower=empty,
        row_upper=empty,
    )


def _column_units(problem: Apprenticeship) -> FloatArray:
    """m_i, or 1 for a cost that is zero everywhere."""
    norms = problem.basis.norms
    return np.where(norms > 0, norms, 1.0)


def _scaled_costs(problem: Apprenticeship, scale: FloatArray) -> SparseMatrix:
    return sparse.csr_array(problem.cost_matrix) @ sparse.diags_array(scale, format="csr")


def _assemble(problem: Apprenticeship, matching: Matching) -> LinearModel:
    world, units, limits = problem.world, problem.budget_units, problem.limits
    num_auxiliary, num_budgets = matching.auxiliary_cost.size, limits.size
    beside, below = [world.flow.matrix(), matching.pair_rows], [matching.auxiliary]
    most, upper = np.zeros(0), np.full(world.num_pairs, INFINITY)
    if world.has_goal:
        most = np.array([world.effective_horizon])
        beside.append(sparse.csr_array(~world.absorbing[world.pairs.states, np.newaxis] * 1.0))
        below.append(sparse.csr_array((num_auxiliary, 1)))
        upper[~world.reachable[world.pairs.states]] = 0.0
    if num_budgets:
        beside.append(sparse.csr_array(problem.budget_matrix / units))
        below.append(sparse.csr_array((num_auxiliary, num_budgets)))
    parts = [sparse.hstack(beside, format="csr")]
    if num_auxiliary:
        no_flow = sparse.csr_array((num_auxiliary, world.num_states))
        parts.append(sparse.hstack([no_flow, *below], format="csr"))
    lower = np.concatenate([np.zeros(world.num_pairs), matching.auxiliary_lower])
    unlimited = np.full(most.size + num_budgets, -INFINITY)
    return LinearModel(
        columns=sparse.vstack(parts, format="csr") if num_auxiliary else parts[0],
        cost=np.concatenate([matching.pair_cost, matching.auxiliary_cost]),
        lower=lower,
        upper=np.concatenate([upper, np.full(num_auxiliary, INFINITY)]),
        row_lower=np.concatenate([world.initial, matching.row_lower, unlimited]),
        row_upper=np.concatenate([world.initial, matching.row_upper, most, limits / units]),
    )
