"""A nested fixed point written down naively: dense laws, value iteration, SciPy's optimiser on
differences of the likelihood."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp


def soft_values(laws, cost, discount):
    """V = -log sum_a exp(-(c + discount P V)) for laws (states x actions x states), by iteration
    of Newton's method on dense matrices. An infinite cost leaves out an action; with discount 1
    laws lead nowhere from ends, which have a single action without a cost."""
    num_states = laws.shape[0]
    values = np.zeros(num_states) if discount < 1 else np.full(num_states, 50.0)
    for _ in range(200):
        backup = cost + discount * laws @ values
        new = -logsumexp(-backup, axis=1)
        law = np.exp(new[:, None] - backup)
        chain = np.einsum("sa,sax->sx", law, laws)
        step = np.linalg.solve(np.eye(num_states) - discount * chain, new - values)
        values = values + step
        if np.abs(step).max() < 1e-12 * (1 + np.abs(values).max()):
            break
    return values


def log_laws(laws, cost, discount):
    backup = cost + discount * laws @ soft_values(laws, cost, discount)
    return -backup - logsumexp(-backup, axis=1, keepdims=True)


def log_likelihood(weights, laws, costs, discount, counts):
    """`costs` (states x actions x costs), `counts` (states x actions)."""
    return float((counts * log_laws(laws, costs @ weights, discount)).sum())


def estimate(laws, costs, discount, counts):
    """Weights and log-likelihood, by BFGS and the differences of the likelihood."""
    total = counts.sum()

    def objective(weights):
        return -log_likelihood(weights, laws, costs, discount, counts) / total

    weights = np.zeros(costs.shape[-1])
    for _ in range(2):
        weights = minimize(
            objective, weights, method="BFGS", jac="3-point", options={"gtol": 1e-9}
        ).x
    return weights, -total * objective(weights)
