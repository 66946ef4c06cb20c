"""Episodes of H steps without any reduction: step by step, with dense arrays and loops."""

from itertools import pairwise

import numpy as np
from scipy.optimize import linprog


def backward_values(P, offsets, costs, steps, discount, temperature=0.0):
    """(steps x states): what is still to come from every step on; soft where it is warm."""
    values, found = np.zeros(P.shape[1]), []
    for _ in range(steps):
        ahead = costs + discount * P @ values
        rows = [ahead[first:last] for first, last in pairwise(offsets)]
        if temperature:
            values = np.array([
                row.min() - temperature * np.log(np.exp((row.min() - row) / temperature).sum())
                for row in rows
            ])  # fmt: skip
        else:
            values = np.array([row.min() for row in rows])
        found.append(values)
    return np.array(found[::-1])


def totals_of(P, offsets, initial, laws, Psi, discount):
    """Expected totals of every cost under one law per pair for each step."""
    states = np.repeat(np.arange(P.shape[1]), np.diff(offsets))
    here, found = initial.copy(), np.zeros(Psi.shape[1])
    for t, law in enumerate(laws):
        measure = here[states] * law
        found += discount**t * (Psi.T @ measure)
        here = P.T @ measure
    return found


def least_l1_gap(P, offsets, initial, Psi, discount, steps, target):
    """min |Psi' mu - target|_1 over flows with a variable for every step and pair."""
    pairs, states = P.shape
    owner = np.zeros((states, pairs))
    owner[np.repeat(np.arange(states), np.diff(offsets)), np.arange(pairs)] = 1.0
    count, rows, right = pairs * steps, [], []
    num_costs = Psi.shape[1]
    for t in range(steps):
        block = np.zeros((states, count + num_costs))
        block[:, t * pairs : (t + 1) * pairs] = owner
        if t:
            block[:, (t - 1) * pairs : t * pairs] = -P.T
        rows.append(block)
        right.append(initial if t == 0 else np.zeros(states))
    weighted = np.hstack([discount**t * Psi.T for t in range(steps)])
    above = np.hstack([weighted, -np.eye(num_costs)])
    below = np.hstack([-weighted, -np.eye(num_costs)])
    answer = linprog(
        np.concatenate([np.zeros(count), np.ones(num_costs)]),
        A_ub=np.vstack([above, below]), b_ub=np.concatenate([target, -target]),
        A_eq=np.vstack(rows), b_eq=np.concatenate(right), method="highs",
    )  # fmt: skip
    return answer.fun
