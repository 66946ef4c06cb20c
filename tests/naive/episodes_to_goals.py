"""Dense worlds with goals, and what their totals are by linear algebra that shares no code."""

from itertools import product

import numpy as np

import journeyman as jm


def random_goal_world(seed, states=6, actions=2, *, loops=0.0, branches=3):
    """A goal behind the states; `loops` is the share of actions that can go round for ever."""
    rng = np.random.default_rng(seed)
    P = np.zeros((states + 1, actions, states + 1))
    for x, a in product(range(states), range(actions)):
        to = rng.choice(states, size=branches, replace=False)
        P[x, a, to] = rng.dirichlet(np.ones(branches))
        if a == 0 or rng.random() >= loops:
            P[x, a] *= 1 - (leave := rng.uniform(0.05, 0.5))
            P[x, a, states] += leave
    P[states, :, states] = 1
    initial = np.append(rng.dirichlet(np.ones(states)), 0.0)
    return P, initial


def as_world(P, initial, **more):
    """The last state is the goal."""
    return jm.World.from_arrays(P, initial, 1, sink=P.shape[0] - 1, **more)


def visits(P, initial, law):
    """Expected visits per pair, zero at the goal, which is the last state."""
    n = P.shape[0] - 1
    chain = np.einsum("xay,xa->xy", P, law)[:n, :n]
    states = np.linalg.solve(np.eye(n) - chain.T, initial[:n])
    return np.append(states[:, np.newaxis] * law[:n], np.zeros((1, law.shape[1])), axis=0)


def times(P, law):
    n = P.shape[0] - 1
    chain = np.einsum("xay,xa->xy", P, law)[:n, :n]
    return np.linalg.solve(np.eye(n) - chain, np.ones(n))


def deterministic_laws(P):
    """All deterministic policies of a small world."""
    states, actions = P.shape[:2]
    for choice in product(range(actions), repeat=states - 1):
        yield np.eye(actions)[[*choice, 0]]


def is_proper(P, law):
    """Whether every state leads to the goal, by powers of the pattern."""
    chain = np.einsum("xay,xa->xy", P, law) > 0
    reach = np.linalg.matrix_power(chain.astype(float) + np.eye(len(chain)), len(chain))
    return bool((reach[:, -1] > 0).all())
