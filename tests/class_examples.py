"""Cost classes beyond the paper's, for tests that run over all of them, and what they say as a set.

`membership(cost_class, w)` are CVXPY rules, written from the definition of each class.
"""

import cvxpy as cp
import numpy as np

from journeyman.costs import L1Ball, Polytope, PriorBall

NAMES = (
    "l1", "scaled-l1", "prior-infinity", "prior-euclidean", "prior-l1", "wide-prior", "box",
    "ratios", "flat",
)  # fmt: skip

NORMS = {"infinity": "inf", "euclidean": 2, "l1": 1}


def example(name, num_costs, seed=0):
    rng = np.random.default_rng([seed, num_costs])
    prior, scale = rng.normal(size=num_costs), rng.uniform(0.3, 2.0, num_costs)
    one, each = np.ones((1, num_costs)), np.eye(num_costs)
    ratio = np.zeros((1, num_costs))
    ratio[0, 0], ratio[0, -1] = -1.0, 3.0 if num_costs > 1 else -1.0
    made = {
        "l1": L1Ball,
        "scaled-l1": lambda: L1Ball(scale),
        "wide-prior": lambda: PriorBall(prior, 5.0, "euclidean"),
        # prices between 0.2 and 1, the first at least three times the last
        "box": lambda: Polytope(
            np.vstack([each, -each, ratio]),
            np.concatenate([np.ones(num_costs), np.full(num_costs, -0.2), [0.0]]),
        ),
        # a mixture, the first at least three times the last
        "ratios": lambda: Polytope(
            np.vstack([-each, one, -one, ratio]), np.r_[np.zeros(num_costs), 1.0, -1.0, 0.0]
        ),
        # the first price is known, the others are not
        "flat": lambda: Polytope(
            np.vstack([each[:1], -each[:1], each, -each]),
            np.r_[0.5, -0.5, np.ones(2 * num_costs)],
        ),
    }
    if name in made:
        return made[name]()
    return PriorBall(prior, 0.4, name.removeprefix("prior-"), scale=scale)


def membership(cost_class, w):
    """The rules that weights, a CVXPY variable, have to keep."""
    told, count = cost_class.describe(), w.shape[0]
    scale = np.array(told.get("scale", np.ones(count)))
    told |= {"prior": np.array(told.get("prior", np.zeros(count)))}
    away = cp.multiply(1 / scale, w - told["prior"])
    rules = {
        "infinity-ball": lambda: [cp.abs(w) <= scale],
        "euclidean-ball": lambda: [cp.norm2(away) <= 1],
        "simplex": lambda: [w >= 0, (1 / scale) @ w == 1],
        "l1-ball": lambda: [cp.norm1(away) <= 1],
        "prior-ball": lambda: [cp.norm(away, NORMS[told["norm"]]) <= told["radius"]],
        "polytope": lambda: [np.array(told["rows"]) @ w <= np.array(told["limits"])],
        "known-cost": lambda: [w == 1],
    }
    return rules[told["name"]]()


def largest(cost_class, z):
    """max <w, z> by CVXPY."""
    w = cp.Variable(z.size)
    program = cp.Problem(cp.Maximize(z @ w), membership(cost_class, w))
    return float(program.solve(solver=cp.CLARABEL))


def belongs(cost_class, w, slack=1e-12):
    """Whether weights lie in the class, to rounding."""
    told = cost_class.describe()
    scale = np.array(told.get("scale", np.ones(w.size)))
    away = np.abs((w - np.array(told.get("prior", np.zeros(w.size)))) / scale)
    norms = {"infinity": away.max(), "euclidean": np.linalg.norm(away), "l1": away.sum()}
    allowed = {
        "infinity-ball": lambda: norms["infinity"] <= 1 + slack,
        "euclidean-ball": lambda: norms["euclidean"] <= 1 + slack,
        "l1-ball": lambda: norms["l1"] <= 1 + slack,
        "simplex": lambda: (w / scale).min() >= -slack and abs((w / scale).sum() - 1) <= slack,
        "prior-ball": lambda: norms[told["norm"]] <= told["radius"] * (1 + slack) + slack,
        "polytope": lambda: np.all(
            np.array(told["rows"]) @ w <= np.array(told["limits"]) + 1e3 * slack
        ),
    }
    return bool(allowed[told["name"]]())
