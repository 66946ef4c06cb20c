"""Certificates in large worlds: what they say is true, and made of what they say it is made of."""

import pickle

import numpy as np
import pytest

import journeyman as jm
from journeyman.certificate import large_evaluation
from journeyman.certificate.concentration import empirical_bernstein_radius, hoeffding_radius
from journeyman.problem.large_features import LargeFeatures, every_action

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
EXPERT = jm.Policy(NETWORK.longer.probabilities(STATES))
TRUTH = jm.Apprenticeship(EXPLICIT, BASIS, jm.ExpertExpectation(
    BASIS.matrix.T @ jm.occupancy(EXPLICIT, EXPERT).measure
))  # fmt: skip
ROLLOUTS = jm.Rollouts(trajectories=100, horizon=50, seed=0)
ROWS = jm.LargeRows(rows=500, seed=0)


def problem_of(demos=DEMOS, cost_class=None):
    return jm.LargeApprenticeship(NETWORK.world, NETWORK.costs, demos, cost_class)


def tabulated(policy):
    return jm.Policy(policy.probabilities(STATES))


class Enumerated(LargeFeatures):
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
        self.initial_probability = world.initial_probability

    def draw_initial(self, rng, count):
        return np.tile(STATES, 4)


class Seen:
    """As much of a problem as the rows of a certificate look at."""

    costs, world = NETWORK.costs, AtOnce(NETWORK.world)


@pytest.mark.parametrize("theta", [THETA, SIGNED, np.zeros_like(THETA)], ids=["+", "+-", "0"])
def test_the_samples_are_unbiased_and_within_their_ranges(theta):
    task = (0, 0, EXPLICIT.num_pairs)
    expected, negative, violated = large_evaluation._rows(task, (Seen, Enumerated(FEATURES), theta))
    matrix = FEATURES.rows(*PAIRS).toarray()
    u = matrix @ theta
    pair_law = matrix.sum(axis=1) / matrix.sum()
    flow = u.reshape(-1, 4).sum(axis=1) - 0.9 * (EXPLICIT.transition.T @ u)
    state_law = (FEATURES.flow(STATES).law + EXPLICIT.initial) / 2
    np.testing.assert_allclose(pair_law @ expected, BASIS.matrix.T @ u, rtol=0, atol=1e-12)
    assert pair_law @ negative == pytest.approx(np.maximum(-u, 0).sum(), abs=1e-12)
    V2 = np.abs(flow - EXPLICIT.initial).sum()
    assert state_law @ violated[: STATES.size] == pytest.approx(V2, abs=1e-12)
    C1, C2 = FEATURES.pair_ratio, FEATURES.flow_ratio
    assert pytest.approx((10 * FEATURES.num_features, 19 * FEATURES.num_features)) == (C1, C2)
    assert negative.max() <= C1 * max(-theta.min(), 0) * (1 + 1e-12)
    assert violated.max() <= (2 * C2 * np.abs(theta).max() + 2) * (1 + 1e-12)
    assert np.ptp(expected, axis=0).max() <= 2 * C1 * np.ptp(np.append(theta, 0)) * (1 + 1e-12)


def test_kind_a_is_the_arithmetic_of_lemma_2():
    policy, delta = jm.FeaturePolicy(FEATURES, SIGNED), 0.1
    problem = problem_of(jm.ExpertExpectation(TRUTH.target))
    certificate = jm.certify(problem, policy, delta, evaluation=ROWS)
    task = (0, 0, 500)
    expected, negative, violated = large_evaluation._rows(task, (problem, FEATURES, SIGNED))

    def radius(samples, width, share):
        variance = samples.var(ddof=1)
        return min(
            hoeffding_radius(width, 500, share),
            empirical_bernstein_radius(variance, width, 500, share),
        )

    C1, C2, share = FEATURES.pair_ratio, FEATURES.flow_ratio, delta / 12
    most = C1 * -SIGNED.min(), 2 * C2 * np.abs(SIGNED).max() + 2
    V1 = min(negative.mean() + radius(negative, most[0], share), most[0])
    V2 = min(violated.mean() + radius(violated, most[1], share), most[1])
    width = 2 * C1 * np.ptp(np.append(SIGNED, 0))
    errors = sum(radius(column, width, share / 5) for column in expected.T)
    gap = np.abs(expected.mean(axis=0) - TRUTH.target).sum()
    wanted = {
        "gap to the estimate": gap, "negativity": 2 * 5 * 10 * V1, "flow violation": 5 * 10 * V2,
        "expectations": errors,
    }  # fmt: skip
    found = {term.name: term.value for term in certificate.best.terms}
    assert 0 < found.pop("rounding") < 1e-6
    assert found == pytest.approx(wanted, rel=1e-6)
    assert certificate.best.bound == pytest.approx(sum(wanted.values()), rel=1e-6)
    assert certificate.best.kind == "A (sampled)"


def test_more_rows_come_down_to_lemma_2():
    """Without sampling errors the bound is gap_W(Psi' u - x) + N h (2 V1 + V2)."""
    policy = jm.FeaturePolicy(FEATURES, THETA)
    problem = problem_of(jm.ExpertExpectation(TRUTH.target))
    u = FEATURES.rows(*PAIRS) @ THETA
    flow = u.reshape(-1, 4).sum(axis=1) - 0.9 * (EXPLICIT.transition.T @ u)
    limit = np.abs(BASIS.matrix.T @ u - TRUTH.target).sum()
    limit += 5 * 10 * np.abs(flow - EXPLICIT.initial).sum()
    bounds = [
        jm.certify(problem, policy, evaluation=jm.LargeRows(rows=rows, seed=1)).best.bound
        for rows in (1000, 60_000)
    ]
    assert limit < bounds[1] < bounds[0]
    assert bounds[1] < 1.2 * limit
    assert TRUTH.gap(tabulated(policy)) <= limit


@pytest.mark.parametrize("kind", ["walks", "rows"])
@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.Simplex()], ids=["ball", "simplex"])
def test_the_bound_covers_the_gap(kind, cost_class):
    policy = jm.FeaturePolicy(FEATURES, THETA)
    truth = jm.Apprenticeship(EXPLICIT, BASIS, jm.ExpertExpectation(TRUTH.target), cost_class)
    gap = truth.gap(tabulated(policy))
    missed = 0
    for seed in range(60):
        demos = jm.record(NETWORK.world, NETWORK.longer, trajectories=15, horizon=20, seed=seed)
        if kind == "walks":
            evaluation = jm.Rollouts(trajectories=15, horizon=20, seed=seed)
        else:
            evaluation = jm.LargeRows(rows=100, seed=seed)
        certificate = jm.certify(problem_of(demos, cost_class), policy, 0.2, evaluation=evaluation)
        missed += certificate.best.bound < gap
        assert certificate.trivial_bound >= gap
    assert missed <= 20  # a binomial with 60 trials at 0.2 exceeds that once in 200


def test_what_a_certificate_says_of_itself():
    certificate = jm.certify(problem_of(), NETWORK.longer, 0.1, evaluation=ROLLOUTS)
    assert certificate.valid
    assert certificate.bound < certificate.trivial_bound
    assert certificate.normalised_bound == pytest.approx(certificate.bound / 10)
    assert certificate.lower_bound == 0
    assert certificate.require(certificate.bound) is certificate
    with pytest.raises(jm.NotCertified, match="Largest terms"):
        certificate.require(certificate.bound * 0.99)
    shown = certificate.table()
    assert all(term.name in shown for term in certificate.terms)
    assert all(premise.name in shown for premise in certificate.premises)
    assert certificate.summary().startswith("With probability 0.9 the policy costs at most")
    assert max(certificate.terms, key=lambda term: term.value).name in certificate.advice()
    assert sum(term.value for term in certificate.terms) == pytest.approx(certificate.best.bound)
    names = {premise.name for premise in certificate.premises}
    assert {"independent trajectories", "start states are possible", "steps are possible"} <= names


def forged(states):
    """A single recorded step, of action 0."""
    return jm.Demonstrations(np.array(states), np.array([0]), np.array([0, 1]))


def test_impossible_records_certify_nothing():
    empty = jm.gallery.queues(
        4, buffers=(5, 4, 4, 5), discount=0.9, initial=jm.gallery.EmptyStart()
    )
    (reached,) = empty.radix.states([[1, 0, 0, 0]])
    cases = {"start states": ([reached, reached], "starts in state"), "steps": ([0, 899], "step 0")}
    for name, (states, words) in cases.items():
        problem = jm.LargeApprenticeship(empty.world, empty.costs, forged(states))
        certificate = jm.certify(problem, empty.longer, evaluation=ROLLOUTS)
        (failed,) = [one for one in certificate.premises if one.verdict is jm.Verdict.FAILED]
        assert name in failed.name
        assert words in failed.detail
        assert not certificate.valid
        assert certificate.bound == certificate.trivial_bound
        assert certificate.summary().startswith("Nothing is certified")
        with pytest.raises(jm.NotCertified, match=failed.name):
            certificate.require(certificate.trivial_bound)


def test_declared_expectations_have_no_error_and_all_of_delta_goes_to_the_policy():
    policy = jm.FeaturePolicy(FEATURES, THETA)
    exact = problem_of(jm.ExpertExpectation(TRUTH.target))
    certificate = jm.certify(exact, policy, 0.1, evaluation=ROWS)
    assert {combination.estimate for combination in certificate.combinations} == {"declared"}
    estimated = jm.certify(problem_of(), policy, 0.2, evaluation=ROWS)
    own = {term.name: term.value for term in certificate.terms}
    other = {term.name: term.value for term in estimated.terms}
    assert own["flow violation"] == other["flow violation"]  # delta, and half of twice delta
    assert set(own) < set(other)


def test_estimates_without_their_demonstrations_are_not_taken_as_exact():
    totals = np.random.default_rng(0).random((30, 5))
    loose = jm.ExpertExpectation.from_totals(totals, np.zeros(30))
    with pytest.raises(jm.InvalidProblem, match="their demonstrations are not here"):
        problem_of(loose)
    kept = jm.ExpertExpectation.from_demonstrations(DEMOS, BASIS, EXPLICIT)
    problem = problem_of(kept)
    assert problem.demonstrations is DEMOS
    names = {t.name for t in jm.certify(problem, NETWORK.longer, evaluation=ROLLOUTS).terms}
    assert names >= {"rollout sampling", "sampling"}


def test_what_cannot_be_evaluated_is_refused():
    with pytest.raises(jm.InvalidProblem, match="allows no exact one"):
        jm.certify(problem_of(), NETWORK.longer)
    with pytest.raises(jm.InvalidProblem, match="no features to draw rows from"):
        jm.certify(problem_of(), NETWORK.longer, evaluation=ROWS)
    twin = jm.gallery.queues(4, buffers=(5, 4, 4, 5), discount=0.9)
    foreign = jm.features.factored(twin.world, twin.radix, DEMOS, [twin.longer], 2)
    policy = jm.FeaturePolicy(foreign, np.ones(foreign.num_features))
    with pytest.raises(jm.InvalidProblem, match="features of another world"):
        jm.certify(problem_of(), policy, evaluation=ROWS)


class Backwards:
    """An executor that works on copies, from the last shard to the first."""

    def map(self, function, shards, *, shared=None):
        results = [function(shard, pickle.loads(pickle.dumps(shared))) for shard in shards[::-1]]
        return results[::-1]


def test_executors_do_not_change_a_bit():
    policy, rows = jm.FeaturePolicy(FEATURES, THETA), jm.LargeRows(rows=40_000, seed=2)
    serial = jm.certify(problem_of(), policy, evaluation=rows)
    other = jm.certify(problem_of(), policy, evaluation=rows, executor=Backwards())
    assert [term.value for term in serial.terms] == [term.value for term in other.terms]
