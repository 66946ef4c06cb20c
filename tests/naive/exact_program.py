"""The exact program in CVXPY, on engines that `LinearProgram` does not use for it.

minimise   gap_W(Psi' mu - target)
over       mu >= 0,  (B - discount P)' mu = initial,  <mu, d_j> <= b_j
"""

import cvxpy as cp
import numpy as np

import journeyman as jm

CLARABEL = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
SCS = {"solver": cp.SCS, "eps_abs": 1e-10, "eps_rel": 1e-10, "max_iters": 1_000_000}

DUAL_NORMS = {"infinity": 1, "euclidean": 2, "l1": "inf"}


def optimal_value(problem):
    measure, rules = measures_within_budgets(problem)
    engine = SCS if isinstance(problem.cost_class, jm.EuclideanBall) else CLARABEL
    return solved(cp.Minimize(gap(problem, measure)), rules, engine)


def best_surplus(problem, slack):
    """The greatest total surplus of a measure whose gap is within `slack` of the least."""
    measure, rules = measures_within_budgets(problem)
    held = gap(problem, measure) <= optimal_value(problem) + slack
    surplus = -cp.sum(scaled_difference(problem, measure))
    return solved(cp.Maximize(surplus), [*rules, held], CLARABEL)


def first_surplus(problem):
    """The total surplus of whichever measure of least gap the engine meets first."""
    measure, rules = measures_within_budgets(problem)
    solved(cp.Minimize(gap(problem, measure)), rules, CLARABEL)
    return -float(scaled_difference(problem, measure).value.sum())


def least_weighted_increase(problem):
    """min sum_j t_j (1 - discount)/(max d_j - min d_j) over increases t >= 0 of the limits."""
    increase = cp.Variable(len(problem.constraints), nonneg=True)
    _, rules = measures_within_budgets(problem, increase)
    return solved(cp.Minimize(increase_weights(problem) @ increase), rules, CLARABEL)


def increase_weights(problem):
    spans = [max(budget.cost) - min(budget.cost) for budget in problem.constraints]
    return (1 - problem.world.discount) / np.array(spans)


def measures_within_budgets(problem, increase=None):
    world = problem.world
    measure = cp.Variable(world.num_pairs, nonneg=True)
    leaving = np.eye(world.num_states)[world.pairs.states]
    entering = world.discount * world.transition.toarray()
    rules = [(leaving - entering).T @ measure == world.initial]
    for j, budget in enumerate(problem.constraints):
        extra = 0.0 if increase is None else increase[j]
        rules.append(budget.cost @ measure <= budget.at_most + extra)
    return measure, rules


def difference(problem, measure):
    return problem.basis.matrix.T @ measure - problem.target


def scaled_difference(problem, measure):
    return scaled(problem.cost_class.describe(), difference(problem, measure))


def scaled(told, z):
    return cp.multiply(told["scale"], z) if "scale" in told else z


def gap(problem, measure):
    return gap_of(problem.cost_class, difference(problem, measure))


def gap_of(cost_class, z):
    """The support function of a class at an expression, from the definition of the class."""
    told = cost_class.describe()
    own = scaled(told, z)
    forms = {
        "infinity-ball": cp.norm1, "euclidean-ball": cp.norm2, "simplex": cp.max,
        "known-cost": cp.sum, "l1-ball": cp.norm_inf,
        "polytope": lambda own: cp.max(cost_class.vertices @ own),
        "prior-ball": lambda own: (
            np.array(told["prior"]) @ z + told["radius"] * cp.norm(own, DUAL_NORMS[told["norm"]])
        ),
    }  # fmt: skip
    return forms[told["name"]](own)


def solved(objective, rules, engine):
    program = cp.Problem(objective, rules)
    program.solve(**engine)
    assert program.status == cp.OPTIMAL
    return float(program.value)
