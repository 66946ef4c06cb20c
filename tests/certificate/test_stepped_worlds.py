"""Certificates in large worlds: what they say is true, and made of what they say it is made of."""

import pickle

import numpy as np
import pytest

import journeyman as jm
from journeyman.features.base import every_action
from seeding import drawn_from

NETWORK = jm.gallery.queues(4, buffers=(5, 4, 4, 5), discount=0.9)
EXPLICIT, BASIS = NETWORK.explicit()
DEMOS = jm.record(NETWORK.world, NETWORK.longer, trajectories=15, horizon=60, seed=0)
FEATURES = jm.features.factored(
    NETWORK.world, NETWORK.radix, DEMOS, [NETWORK.longer, NETWORK.uniform], 2
)
THETA = np.random.default_rng(0).dirichlet(np.ones(FEATURES.num_features))
STATES = np.arange(EXPLICIT.num_states)
PAIRS = every_action(STATES, 4)
EXPERT = jm.Policy(NETWORK.longer.probabilities(STATES))
TRUTH = jm.Apprenticeship(EXPLICIT, BASIS, jm.ExpertExpectation(
    BASIS.matrix.T @ jm.occupancy(EXPLICIT, EXPERT).measure
))  # fmt: skip
ROLLOUTS = jm.Rollouts(trajectories=100, horizon=50)
ROWS = jm.SampledRows(rows=500)


def problem_of(demos=DEMOS, cost_class=None):
    return jm.Apprenticeship(NETWORK.world, NETWORK.costs, demos, cost_class)


def tabulated(policy):
    return jm.Policy(policy.probabilities(STATES))


def test_a_sum_that_lies_is_met():
    """Costs beyond the declared sum would make every bound too small."""
    costs = jm.CostFunctions(
        NETWORK.costs.function, NETWORK.costs.names, lowest=0, highest=1, largest=1
    )
    declared = jm.ExpertExpectation(TRUTH.target)
    problem = jm.Apprenticeship(NETWORK.world, costs, declared)
    policy = jm.policy.FeaturePolicy(FEATURES, THETA)
    for evaluation in (ROWS, ROLLOUTS):
        with pytest.raises(jm.errors.InvalidCosts, match="declared is at most 1"):
            jm.certify(problem, policy, evaluation=evaluation)


def test_more_rows_come_down_to_lemma_2():
    """Without sampling errors the bound is gap_W(Psi' u - x) + N h (2 V1 + V2)."""
    policy = jm.policy.FeaturePolicy(FEATURES, THETA)
    problem = problem_of(jm.ExpertExpectation(TRUTH.target))
    u = FEATURES.rows(*PAIRS) @ THETA
    flow = u.reshape(-1, 4).sum(axis=1) - 0.9 * (EXPLICIT.transition.T @ u)
    limit = np.abs(BASIS.matrix.T @ u - TRUTH.target).sum()
    limit += 5 * 10 * np.abs(flow - EXPLICIT.initial).sum()
    bounds = [
        jm.certify(problem, policy, evaluation=jm.SampledRows(rows=rows)).best.bound
        for rows in (1000, 60_000)
    ]
    assert limit < bounds[1] < bounds[0]
    assert bounds[1] < 1.2 * limit
    assert TRUTH.gap(tabulated(policy)) <= limit


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["walks", "rows"])
@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.Simplex()], ids=["ball", "simplex"])
def test_the_bound_covers_the_gap(kind, cost_class):
    policy = jm.policy.FeaturePolicy(FEATURES, THETA)
    truth = jm.Apprenticeship(EXPLICIT, BASIS, jm.ExpertExpectation(TRUTH.target), cost_class)
    gap = truth.gap(tabulated(policy))
    missed = 0
    for seed in range(60):
        demos = jm.record(NETWORK.world, NETWORK.longer, trajectories=15, horizon=20, seed=seed)
        if kind == "walks":
            evaluation = jm.Rollouts(trajectories=15, horizon=20)
        else:
            evaluation = jm.SampledRows(rows=100)
        with drawn_from(seed):
            certificate = jm.certify(
                problem_of(demos, cost_class), policy, 0.2, evaluation=evaluation
            )
        missed += certificate.best.bound < gap
        assert certificate.trivial_bound >= gap
    assert missed <= 20  # a binomial with 60 trials at 0.2 exceeds that once in 200


def test_estimated_laws_are_refused():
    """Walks and rows are drawn from the model, and nothing bounds how far that is from the world:
    here action 0 costs 6 in truth, 1 in the model, and the expert 1 in both."""
    laws = np.repeat(np.eye(3), 2, axis=0)
    laws[:2] = [0, 0.9, 0.1]
    model = jm.World(laws, [1, 0, 0], 0.9, transition_error=[1.0, 0, 0, 0, 0, 0])
    costs = jm.CostFunctions(lambda x, a: (x == 2)[:, None], ["bad"], lowest=0, highest=1)
    for expert in (jm.ExpertExpectation([0.9]), forged([0, 1])):
        with pytest.raises(jm.errors.InvalidProblem, match="are estimates") as refusal:
            jm.Apprenticeship(model, costs, expert)
        assert "jm.CostBasis" in str(refusal.value)


class Contrary:
    """A policy made of another one, whose actions it avoids."""

    def __init__(self, policy):
        self.policy = policy


class Sampled(Contrary):
    def sample(self, states, seed):
        return 1 - self.policy.sample(states, seed)


class Predicted(Contrary):
    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return 1 - self.policy.actions(observation), state


class Called(Contrary):
    def __call__(self, states, rng):
        return 1 - self.policy.actions(states)


@pytest.mark.parametrize("kind", [Sampled, Predicted, Called])
def test_a_policy_made_of_another_is_certified_itself(kind):
    """Action 1 costs one step of two, action 0 nothing: the gaps are 5 and 0."""
    world = jm.World(np.full((4, 2), 0.5), [0.5, 0.5], 0.9)
    costs = jm.CostFunctions(lambda x, a: (x * a)[:, None], ["bad"], lowest=0, highest=1)
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation([0.0]), jm.Simplex())
    inner = jm.policy.RulePolicy(np.zeros_like, 2)
    outer = kind(inner)
    bounds = [jm.certify(problem, one, evaluation=ROLLOUTS).bound for one in (inner, outer)]
    assert bounds[0] < 5 < bounds[1]


def one_hot(states, actions):
    return np.eye(3)[states]


@pytest.mark.parametrize("kind", [jm.InfinityBall, jm.EuclideanBall, jm.Simplex])
@pytest.mark.parametrize("largest", [1, None])
@pytest.mark.parametrize("target", [[0, 0, 0], [9, 9, 9], [0, 10, 0], [4, 3, 3]], ids=str)
def test_the_trivial_bounds_hold_for_every_policy(kind, largest, target):
    """Three states, one for each cost; every division of the time among them is possible."""
    world = jm.World(np.tile(np.eye(3), (3, 1)), np.full(3, 1 / 3), 0.9)
    costs = jm.CostFunctions(one_hot, ["a", "b", "c"], lowest=0, highest=1, largest=largest)
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation(target), kind())
    certificate = jm.certify(problem, jm.Policy(np.eye(3)), evaluation=ROLLOUTS)
    gaps = [problem.cost_class.gap(corner - np.array(target)) for corner in 10 * np.eye(3)]
    even = problem.cost_class.gap(np.full(3, 10 / 3) - np.array(target))
    assert certificate.lower_bound <= min(*gaps, even) <= max(gaps) <= certificate.trivial_bound


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
        problem = jm.Apprenticeship(empty.world, empty.costs, forged(states))
        certificate = jm.certify(problem, empty.longer, evaluation=ROLLOUTS)
        (failed,) = [
            one for one in certificate.premises if one.status is jm.certificate.PremiseStatus.FAILED
        ]
        assert name in failed.name
        assert words in failed.detail
        assert not certificate.valid
        assert certificate.bound == certificate.trivial_bound
        assert certificate.summary().startswith("Nothing is certified")
        with pytest.raises(jm.NotCertified, match=failed.name):
            certificate.require(certificate.trivial_bound)


def test_declared_expectations_have_no_error_and_all_of_delta_goes_to_the_policy():
    policy = jm.policy.FeaturePolicy(FEATURES, THETA)
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
    with pytest.raises(jm.errors.InvalidProblem, match="their episodes are not here"):
        problem_of(loose)
    kept = jm.ExpertExpectation.from_demonstrations(DEMOS, BASIS, EXPLICIT)
    problem = problem_of(kept)
    assert problem.demonstrations is DEMOS
    names = {t.name for t in jm.certify(problem, NETWORK.longer, evaluation=ROLLOUTS).terms}
    assert names >= {"rollout sampling", "sampling"}


def test_what_cannot_be_evaluated_is_refused():
    with pytest.raises(jm.errors.InvalidProblem, match="needs the level EXPLICIT"):
        jm.certify(problem_of(), NETWORK.longer)
    with pytest.raises(jm.errors.InvalidProblem, match="no features to draw rows from"):
        jm.certify(problem_of(), NETWORK.longer, evaluation=ROWS)
    twin = jm.gallery.queues(4, buffers=(5, 4, 4, 5), discount=0.9)
    foreign = jm.features.factored(twin.world, twin.radix, DEMOS, [twin.longer], 2)
    policy = jm.policy.FeaturePolicy(foreign, np.ones(foreign.num_features))
    with pytest.raises(jm.errors.InvalidProblem, match="features of another world"):
        jm.certify(problem_of(), policy, evaluation=ROWS)


class Backwards:
    """An executor that works on copies, from the last task to the first."""

    def map(self, function, tasks, *, shared=None):
        results = [function(task, pickle.loads(pickle.dumps(shared))) for task in tasks[::-1]]
        return results[::-1]


def test_executors_do_not_change_a_bit():
    policy, rows = jm.policy.FeaturePolicy(FEATURES, THETA), jm.SampledRows(rows=40_000)
    serial = jm.certify(problem_of(), policy, evaluation=rows)
    other = jm.certify(problem_of(), policy, evaluation=rows, executor=Backwards())
    assert [term.value for term in serial.terms] == [term.value for term in other.terms]
