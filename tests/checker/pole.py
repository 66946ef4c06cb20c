"""Code that saved runs in simulators name."""

import numpy as np

import journeyman as jm


def steps(observations, actions, following, rewards, terminated):
    off, lean = np.abs(following[:, 0]) / 2.4, np.abs(following[:, 2]) / 0.21
    return np.minimum(np.column_stack([off, lean]), 1)


def costs():
    return jm.costs.StepCosts(
        steps, ["off centre", "lean"], lowest=0, highest=1, after_end=[1, 0.5]
    )


def haste():
    return jm.costs.StepCosts(one, ["time"], lowest=0, highest=1)


def one(observations, actions, following, rewards, terminated):
    return np.ones((len(rewards), 1))


def effort():
    return jm.costs.StepCosts(squares, ["effort", "left"], lowest=0, highest=1)


def squares(observations, actions, following, rewards, terminated):
    return np.column_stack([actions[:, 0] ** 2, actions[:, 0] < 0])


def balance(seen, rng):
    return (seen @ [0.02, 0.06, 1.0, 0.35] > 0).astype(int)


def rule():
    return jm.policy.ObservationPolicy(lambda seen: balance(seen, None))


def mixture():
    network = jm.policy.NetworkPolicy(
        (np.eye(4), np.zeros(4), np.eye(4), np.zeros(4), np.ones((4, 2)), [0.0, 0.5]),
        np.zeros(4), np.ones(4), greedy=False,
    )  # fmt: skip
    return jm.policy.MixturePolicy([network, balance], [0.5, 0.5], 1)
