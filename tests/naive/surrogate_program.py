"""The surrogate loss and program (6) in CVXPY, written from the world and the features alone.

minimise   gap_W(Psi' u - target) + lambda_1 |u-|_1 + lambda_2 |(B - discount P)' u - initial|_1
           + lambda_3 sum_j [<u, d_j> - b_j]+          over u = base + Phi theta
"""

import cvxpy as cp
import numpy as np

from naive.exact_program import CLARABEL, gap


def least_loss(problem, features, penalties):
    """The minimum of the loss over all coefficients."""
    measure = measure_of(features)
    loss = gap(problem, measure) + penalties.pairs * cp.sum(cp.neg(measure))
    loss += penalties.flow * cp.norm1(flow_error(problem, measure))
    for budget in problem.constraints:
        loss += penalties.budgets * cp.pos(budget.cost @ measure - budget.at_most)
    return optimum(cp.Problem(cp.Minimize(loss)))


def least_hard_gap(problem, features):
    """The least gap of a combination that is an occupancy measure within the budgets, or None."""
    measure = measure_of(features)
    rules = [measure >= 0, flow_error(problem, measure) == 0]
    rules += [budget.cost @ measure <= budget.at_most for budget in problem.constraints]
    return optimum(cp.Problem(cp.Minimize(gap(problem, measure)), rules))


def measure_of(features):
    columns = (
        features.matrix if isinstance(features.matrix, np.ndarray) else features.matrix.toarray()
    )
    combined = columns @ cp.Variable(columns.shape[1])
    return combined if features.base is None else features.base + combined


def flow_error(problem, measure):
    world = problem.world
    leaving = np.eye(world.num_states)[world.pairs.states]
    entering = world.discount * world.transition.toarray()
    return (leaving - entering).T @ measure - world.initial


def optimum(program):
    program.solve(**CLARABEL)
    if program.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        return None
    assert program.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return float(program.value)
