"""Kind A from drawn rows: samples, ranges, radii and shares of delta, each by its formula."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.certificate import sampled_rows
from journeyman.features.base import DrawnFeatures, every_action
from seeding import drawn_from

NETWORK = jm.gallery.queues(4, buffers=(5, 4, 4, 5), discount=0.9)
EXPLICIT, BASIS = NETWORK.explicit()
DEMOS = jm.record(NETWORK.world, NETWORK.longer, trajectories=15, horizon=60, seed=0)
FEATURES = jm.features.factored(
    NETWORK.world, NETWORK.radix, DEMOS, [NETWORK.longer, NETWORK.uniform], 2
)
THETA = np.random.default_rng(0).dirichlet(np.ones(FEATURES.num_features))
SIGNED = THETA - 0.3 * np.roll(THETA, 1)
STATES = np.arange(EXPLICIT.num_states)
PAIRS = every_action(STATES, 4)
TARGET = (
    BASIS.matrix.T @ jm.occupancy(EXPLICIT, jm.Policy(NETWORK.longer.probabilities(STATES))).measure
)
ROWS = jm.SampledRows(rows=500)


def problem_of(costs=NETWORK.costs):
    return jm.Apprenticeship(NETWORK.world, costs, jm.ExpertExpectation(TARGET))


class Enumerated(DrawnFeatures):
    """Features that "draw" every pair once, and every state four times."""

    def __init__(self, features):
        self.features, self.num_features = features, features.num_features
        self.world = AtOnce(features.world)

    def rows(self, states, actions):
        return self.features.rows(states, actions)

    def draw(self, rng, count):
        return PAIRS

    def draw_flow(self, rng, count):
        return np.tile(STATES, 4)

    def flow(self, states):
        return self.features.flow(states)


class AtOnce:
    """The network, with every state four times as first state."""

    def __init__(self, world):
        self.discount, self.num_actions = world.discount, world.num_actions
        self.initial_probability, self.num_states = world.initial_probability, world.num_states
        self.successors, self.predecessors = world.successors, world.predecessors

    def draw_initial(self, rng, count):
        return np.tile(STATES, 4)


class Seen:
    """As much of a problem as the rows of a certificate look at."""

    cost_functions, world = NETWORK.costs, AtOnce(NETWORK.world)


KNOWN = FEATURES.exact_matching(NETWORK.costs)
PARTLY = np.where(np.arange(FEATURES.num_features) % 3 == 0, np.nan, KNOWN)
UNTOLD = jm.CostFunctions(NETWORK.costs.function, NETWORK.costs.names, lowest=0, highest=1)
"""The same costs, and nothing said about what they depend on."""


@pytest.mark.parametrize("theta", [THETA, SIGNED, np.zeros_like(THETA)], ids=["+", "+-", "0"])
@pytest.mark.parametrize("known", [KNOWN, PARTLY, np.nan * KNOWN], ids=["4 of 5", "part", "none"])
def test_the_samples_are_unbiased_and_within_their_ranges(theta, known):
    task, features = (0, 0, EXPLICIT.num_pairs), Enumerated(FEATURES)
    expected, negative, violated, *_ = sampled_rows._rows(task, (Seen, features, theta, known))
    matrix = FEATURES.rows(*PAIRS).toarray()
    u = matrix @ theta
    pair_law = matrix.sum(axis=1) / matrix.sum()
    flow = u.reshape(-1, 4).sum(axis=1) - 0.9 * (EXPLICIT.transition.T @ u)
    state_law = (FEATURES.flow(STATES).law + EXPLICIT.initial) / 2
    exactly = np.nan_to_num(known) @ theta
    np.testing.assert_allclose(
        exactly + pair_law @ expected, BASIS.matrix.T @ u, rtol=0, atol=1e-12
    )
    assert pair_law @ negative == pytest.approx(np.maximum(-u, 0).sum(), abs=1e-12)
    V2 = np.abs(flow - EXPLICIT.initial).sum()
    assert state_law @ violated[: STATES.size] == pytest.approx(V2, abs=1e-12)
    C1, C2 = FEATURES.pair_ratio, FEATURES.flow_ratio
    assert pytest.approx((10 * FEATURES.num_features, 19 * FEATURES.num_features)) == (C1, C2)
    widths = sampled_rows._ranges(problem_of(), FEATURES, theta, known)
    sampled = np.where(np.isnan(known), theta, 0)
    wanted = C1 * np.ptp(np.column_stack([sampled, np.zeros(5)]), axis=1)  # costs are in [0, 1]
    np.testing.assert_allclose(widths[0], wanted, rtol=1e-8)
    assert widths[1] == pytest.approx(C1 * max(-theta.min(), 0), rel=1e-8)
    assert widths[2] == pytest.approx(2 * C2 * np.abs(theta).max() + 2, rel=1e-8)
    assert (np.ptp(np.vstack([expected, np.zeros(5)]), axis=0) <= widths[0]).all()
    assert negative.max() <= widths[1]
    assert violated.max() <= widths[2]


@pytest.mark.parametrize(
    ("lowest", "highest", "width"), [(0, 1, 7), (-1, 1, 10), (-3, -1, 21), (1, 2, 14), (-2, 1, 15)]
)
def test_the_range_of_a_product_is_that_of_its_corners(lowest, highest, width):
    """With u/q1 between -2 and 5."""
    costs = jm.CostFunctions(UNTOLD.function, UNTOLD.names, lowest=lowest, highest=highest)
    problem = problem_of(costs)
    theta = np.zeros(FEATURES.num_features)
    theta[:2] = np.array([-2, 5]) / FEATURES.pair_ratio
    expected, _, _ = sampled_rows._ranges(problem, FEATURES, theta, np.nan * KNOWN)
    np.testing.assert_allclose(expected, width, rtol=1e-8)


def radius(samples, width, share):
    """The smaller of Hoeffding's and the empirical Bernstein radius, written out."""
    log, count = np.log(2 / share), samples.size
    bernstein = np.sqrt(2 * samples.var(ddof=1) * log / count) + 7 * width * log / 3 / (count - 1)
    return min(width * np.sqrt(np.log(1 / share) / 2 / count), bernstein)


@pytest.mark.parametrize(
    ("theta", "sums"), [(THETA, 2), (SIGNED, 3)], ids=["no negativity", "signed"]
)
@pytest.mark.parametrize("costs", [NETWORK.costs, UNTOLD], ids=["4 costs exact", "all sampled"])
def test_kind_a_is_the_arithmetic_of_lemma_2(costs, theta, sums):
    policy, delta = jm.policy.FeaturePolicy(FEATURES, theta), 0.1
    problem = problem_of(costs)
    with drawn_from(0):
        certificate = jm.certify(problem, policy, delta, evaluation=ROWS)
    nothing = np.full((5, theta.size), np.nan)
    shared = problem, FEATURES, theta, nothing
    expected, negative, violated, *_ = sampled_rows._rows((0, 0, 500), shared)
    C1, C2, share = FEATURES.pair_ratio, FEATURES.flow_ratio, delta / sums / 4
    most = C1 * max(-theta.min(), 0), 2 * C2 * np.abs(theta).max() + 2
    V1 = min(negative.mean() + radius(negative, most[0], share), most[0])
    V2 = min(violated.mean() + radius(violated, most[1], share), most[1])
    exact = 0 if costs is UNTOLD else 4
    means, sampled = expected.mean(axis=0), expected.T[exact:]
    means[:exact] = (BASIS.matrix.T @ (FEATURES.rows(*PAIRS) @ theta))[:exact]
    width = C1 * np.ptp(np.append(theta, 0))
    wanted = {
        "gap to the estimate": np.abs(means - TARGET).sum(),
        "negativity": 2 * 5 * 10 * V1, "flow violation": 5 * 10 * V2,
        "expectations": sum(radius(one, width, share / len(sampled)) for one in sampled),
    }  # fmt: skip
    found = {term.name: term.value for term in certificate.best.terms}
    eps, mass = np.finfo(float).eps, max(1, 3 * np.abs(theta).sum())
    rounding = 2 * eps * (theta.size + 500 + 5 + 32) * 11 * 5 * 10 * mass
    assert found.pop("rounding") == pytest.approx(rounding)
    assert found == pytest.approx(wanted, rel=1e-6)
    assert certificate.best.bound == pytest.approx(sum(wanted.values()), rel=1e-6)
    assert certificate.best.kind == "A (sampled)"
    spent = [one.failure_probability for one in certificate.best.statistics]
    assert sum(spent) == pytest.approx(delta)
    tables = [one for one in certificate.premises if "tables" in one.name]
    assert len(tables) == (costs is not UNTOLD)


def test_tables_that_contradict_the_costs_are_refused():
    """Exact expectations rest on the tables, so the pairs that are drawn are compared with them."""
    wrong = dict(NETWORK.costs.by_factor)
    wrong[1] = (2, wrong[1][1])
    costs = jm.CostFunctions(
        NETWORK.costs.function, NETWORK.costs.names, lowest=0, highest=1, by_factor=wrong
    )
    problem = problem_of(costs)
    joined = jm.features.JoinedFeatures(FEATURES, FEATURES)
    for features in (FEATURES, joined):
        policy = jm.policy.FeaturePolicy(features, np.full(features.num_features, 0.01))
        with pytest.raises(jm.errors.InvalidCosts, match="by_factor says"):
            jm.certify(problem, policy, evaluation=ROWS)


class Negated(DrawnFeatures):
    """Features with one column below zero, drawn from as if it were above."""

    def __init__(self, features):
        self.features, self.num_features = features, features.num_features
        self.world = features.world

    def rows(self, states, actions):
        rows = self.features.rows(states, actions).copy()
        rows.data[rows.indices == 0] *= -1
        return rows

    def draw(self, rng, count):
        return self.features.draw(rng, count)


def test_negative_features_are_refused():
    """Their samples are not within the ranges that the radii rest on."""
    policy = jm.policy.FeaturePolicy(Negated(FEATURES), THETA)
    with pytest.raises(jm.errors.InvalidCosts, match=r"a feature is -\d.* in state \d+, action \d"):
        jm.certify(problem_of(), policy, evaluation=ROWS)
