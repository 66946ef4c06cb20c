"""Mixtures of candidates: the small program, rollouts that depend on the seed only, rounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.solvers.policy_mixture import best_weights
from mixtures import (
    CLASSES,
    OnlySteps,
    expectations,
    naive_optimum,
    random_policies,
    small_world,
)

every_class = pytest.mark.parametrize("name", CLASSES)


def setting(name="simplex", count=4, seed=0):
    """A problem with a known expert, exact expectations of the candidates, and both."""
    world, costs, basis = small_world(seed)
    members = random_policies(world, count, seed=seed)
    (target,) = expectations(world, basis, random_policies(world, 1, seed=99 + seed))
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation(target), CLASSES[name])
    return problem, members, expectations(world, basis, members)


def mixture(members, **options):
    return jm.PolicyMixture(members, **{"rollouts": 300, "horizon": 30, "seed": 0, **options})


@every_class
@given(st.integers(0, 10**6), st.integers(1, 7))
def test_the_small_program_is_solved_with_a_proof(name, seed, count):
    rng = np.random.default_rng(seed)
    matrix, target = rng.normal(size=(count, 3)) * 10.0 ** rng.integers(-3, 4), rng.normal(size=3)
    found = best_weights(matrix, target, CLASSES[name])
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    assert found.value == CLASSES[name].gap(found.weights @ matrix - target)
    assert found.lower_bound <= found.value + 1e-9 * (1 + abs(found.value))
    size = CLASSES[name].gap(np.abs(matrix).max(axis=0) + np.abs(target))
    assert found.value - found.lower_bound <= 1e-7 * size
    assert CLASSES[name].admit(found.cost_weights) == pytest.approx(found.cost_weights, abs=1e-9)


@every_class
@pytest.mark.parametrize("seed", range(4))
def test_the_small_program_agrees_with_a_modelling_language(name, seed):
    rng = np.random.default_rng(seed)
    matrix, target = rng.normal(size=(3 + seed, 3)), rng.normal(size=3)
    found = best_weights(matrix, target, CLASSES[name])
    assert found.value == pytest.approx(naive_optimum(matrix, target, CLASSES[name]), abs=1e-6)


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_an_expert_among_the_candidates_is_matched(name):
    matrix = np.random.default_rng(0).normal(size=(4, 3))
    found = best_weights(matrix, matrix[2], CLASSES[name])
    assert found.value == pytest.approx(0, abs=1e-9)
    assert found.weights[2] == pytest.approx(1, abs=1e-6)


def test_among_equally_good_mixtures_the_cheapest_is_taken():
    matrix = np.array([[0.0, 3.0, 3.0], [0.0, 1.0, 2.0], [0.0, 2.0, 1.5]])
    found = best_weights(matrix, np.array([0.0, 5.0, 5.0]), jm.Simplex())
    assert found.value == 0
    assert found.weights.tolist() == [0, 1, 0]


@every_class
def test_figures_are_those_of_the_candidates(name):
    problem, members, exact = setting(name)
    answer = jm.solve(problem, mixture(members, rollouts=2000))
    assert answer.status is jm.Status.OPTIMAL
    error = answer.candidates.spreads / np.sqrt(2000)
    assert (np.abs(answer.candidates.expectations - exact) <= 4.5 * error + 0.01).all()
    assert answer.value == pytest.approx(
        problem.cost_class.gap(
            answer.mixture.weights @ answer.candidates.expectations - problem.target
        ),
        abs=1e-12,
    )
    assert answer.lower_bound <= answer.value + 1e-9
    truth = naive_optimum(exact, problem.target, problem.cost_class)
    slack = problem.cost_class.gap(np.full(3, 5 * error.max() + 0.01))
    assert abs(answer.value - truth) <= slack


def test_a_seed_decides_everything():
    problem, members, _ = setting()
    first, second = (jm.solve(problem, mixture(members)) for _ in range(2))
    other = jm.solve(problem, mixture(members), seed=1)
    assert (first.candidates.expectations == second.candidates.expectations).all()
    assert (first.candidates.expectations != other.candidates.expectations).any()
    prefix = jm.solve(problem, mixture(members[:2]))
    assert (prefix.candidates.expectations == first.candidates.expectations[:2]).all()


def test_candidates_have_streams_of_their_own():
    problem, members, _ = setting()
    answer = jm.solve(problem, mixture([members[0], members[0]]))
    assert (answer.candidates.expectations[0] != answer.candidates.expectations[1]).any()


def test_processes_give_the_same_bits():
    problem, members, _ = setting()
    settings = {"rollouts": 1100, "horizon": 3}
    alone = jm.solve(problem, mixture(members, **settings))
    with jm.Processes(2) as executor:
        together = jm.solve(problem, mixture(members, **settings, executor=executor))
        certificates = [
            jm.certify(problem, alone),
            jm.certify(problem, together, executor=executor),
        ]
    assert (alone.candidates.expectations == together.candidates.expectations).all()
    assert (alone.mixture.weights == together.mixture.weights).all()
    assert certificates[0].bound == certificates[1].bound


@every_class
def test_best_responses_lower_the_value(name):
    world, costs, basis = small_world(3)
    expert = jm.plan(world, basis.matrix @ [0.5, 0.3, 0.2]).policy
    (target,) = expectations(world, basis, [expert])
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation(target), CLASSES[name])
    asked = []

    def plan_against(weights, number):
        asked.append((weights, number))
        return jm.plan(world, basis.matrix @ weights).policy

    solver = mixture([jm.Policy.uniform(world)], rollouts=800, best_response=plan_against, rounds=5)
    answer = jm.solve(problem, solver)
    values = answer.candidates.trace[:, 2]
    assert (np.diff(values) <= 1e-9).all()
    assert [number for _, number in asked] == list(range(2, len(values) + 1))
    assert all((problem.cost_class.admit(w) == pytest.approx(w)) for w, _ in asked)

    def true_gap(mixed):
        exact = expectations(world, basis, mixed.candidates)
        return problem.cost_class.gap(mixed.weights @ exact - target)

    alone = true_gap(jm.policy.MixturePolicy([jm.Policy.uniform(world)], [1.0]))
    assert true_gap(answer.policy) < 0.4 * alone
    assert answer.rollouts.rounds == (1,) * len(values)
    assert answer.rollouts.most_rounds == 5


def test_a_planner_is_given_simulator_budget_and_seeds_of_its_own():
    world, costs, basis = small_world(3)
    (target,) = expectations(world, basis, [jm.plan(world, basis.matrix @ [0.5, 0.3, 0.2]).policy])
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation(target))
    asked = []

    def planner(weights, simulator, budget, seed):
        asked.append((tuple(weights), budget, seed))
        assert simulator.totals(lambda x, rng: x * 0, 2, 3, np.random.default_rng(0)).mean.size == 3
        return jm.plan(world, basis.matrix @ weights).policy

    settings = {"planner": planner, "rounds": 6, "budget": 77, "improvement": 0.0}
    answer = jm.solve(problem, mixture([jm.Policy.uniform(world)], **settings))
    rounds = len(answer.candidates.trace)
    assert [budget for _, budget, _ in asked] == [77] * (rounds - 1)
    assert len({seed for *_, seed in asked}) == rounds - 1
    first, asked[:] = list(asked), []
    jm.solve(problem, mixture([jm.Policy.uniform(world)], **settings))
    assert asked == first
    jm.solve(problem, mixture([jm.Policy.uniform(world)], **settings | {"seed": 1}))
    assert {seed for *_, seed in asked[rounds - 1 :]}.isdisjoint({seed for *_, seed in first})


def test_a_planner_is_shown_the_candidate_that_costs_least():
    world, costs, basis = small_world(3)
    (target,) = expectations(world, basis, [jm.plan(world, basis.matrix @ [0.5, 0.3, 0.2]).policy])
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation(target))
    shown, asked = [], []

    class Planner:
        def guided_by(self, policy):
            shown.append(policy)
            return self

        def __call__(self, weights, simulator, budget, seed):
            asked.append(weights)
            return jm.plan(world, basis.matrix @ weights).policy

    solver = mixture(random_policies(world, 3), planner=Planner(), rounds=5, improvement=0.0)
    answer = jm.solve(problem, solver)
    assert len(shown) == len(asked) > 1
    for number, (policy, weights) in enumerate(zip(shown, asked, strict=True)):
        known = answer.candidates.expectations[: 3 + number]
        assert policy is answer.mixture.candidates[int(np.argmin(known @ weights))]


@pytest.mark.parametrize("patience", [1, 3])
def test_a_planner_that_finds_nothing_ends_the_search(patience):
    problem, members, _ = setting()
    solver = mixture(
        members, planner=lambda *asked: members[0], rounds=20, patience=patience, improvement=0.2
    )
    answer = jm.solve(problem, solver)
    assert len(answer.candidates.trace) == 1 + patience
    assert answer.rollouts.most_rounds == 20
    assert jm.certify(problem, answer).valid


def test_least_squares_plans_replace_exact_ones():
    world, costs, basis = small_world(3)
    (target,) = expectations(world, basis, [jm.plan(world, basis.matrix @ [0.5, 0.3, 0.2]).policy])
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation(target), jm.Simplex())
    learned = jm.solvers.LeastSquaresPlanner(horizon=30)
    exact = lambda weights, *asked: jm.plan(world, basis.matrix @ weights).policy  # noqa: E731
    values = [
        jm.solve(problem, mixture([jm.Policy.uniform(world)], planner=one, rounds=5, budget=4_000))
        for one in (learned, exact)
    ]
    first = values[0].candidates.trace[0, 2]
    assert values[0].value <= values[1].value + 0.1 * (first - values[1].value)


def test_rounds_end_when_nothing_is_left_to_gain():
    problem, members, _ = setting("l1")
    world = problem.world
    matched = jm.ExpertExpectation(jm.solve(problem, mixture(members)).candidates.expectations[1])
    exact = jm.Apprenticeship(world, problem.costs, matched, jm.InfinityBall())
    solver = mixture(members, best_response=lambda weights, number: members[0], rounds=9)
    answer = jm.solve(exact, solver)
    assert len(answer.candidates.trace) == 1
    assert answer.value <= 1e-7 * exact.gap_scale


@every_class
@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
def test_few_records_keep_a_mixture_near_what_was_given(name, noise):
    problem, members, _ = setting(name)
    world, _, basis = small_world(0)
    records = jm.demonstrations.record_totals(
        problem.simulator, members[0], trajectories=8, horizon=40, seed=0
    )
    totals = records.totals
    few = jm.Apprenticeship(problem.simulator, None, records, CLASSES[name])
    respond = lambda weights, number: jm.plan(world, basis.matrix @ weights).policy  # noqa: E731
    given_ones = [members[1], members[2]]
    grown = jm.solve(few, mixture(given_ones, best_response=respond, rounds=6, noise=noise))
    least = jm.solve(few, mixture(given_ones, best_response=respond, rounds=6, noise=0))
    kept, of_least = (float(one.mixture.weights[:2].sum()) for one in (grown, least))
    rng = np.random.default_rng(1)
    drawn = rng.integers(8, size=(2000, 8))
    errors = totals[drawn].mean(axis=1) - totals.mean(axis=0)
    error = float(np.mean([CLASSES[name].gap(one) for one in errors]))
    first = grown.candidates.trace[0, 2]
    if noise and CLASSES[name].contains_zero and first <= 0.9 * noise * error:
        assert grown.value == first  # nothing is asked for
        assert kept == pytest.approx(1)
        assert len(grown.candidates.trace) == 1
    elif noise and CLASSES[name].contains_zero:
        assert grown.status is jm.Status.CONVERGED
        assert kept > of_least + 0.01
        assert grown.value == pytest.approx(noise * error, rel=0.1)
        assert grown.lower_bound <= grown.value
    else:
        assert grown.status is jm.Status.OPTIMAL
        assert kept == of_least
    assert jm.certify(few, grown).valid


def test_a_time_limit_leaves_what_was_done():
    problem, members, _ = setting()
    answer = jm.solve(problem, mixture(members), time_limit=1e-9)
    assert answer.status is jm.Status.TIME_LIMIT
    assert answer.mixture.weights.tolist() == [1.0]
    assert answer.rollouts.rounds == (4,)
    assert jm.certify(problem, answer).valid


class LikeSB3:
    """A policy with nothing but `predict`, and no stream that could be set."""

    def __init__(self, table):
        self.table = np.asarray(table)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert not deterministic
        return self.table[observation], None


def test_whatever_chooses_actions_can_be_a_candidate():
    problem, _, _ = setting()
    ways = [
        jm.Policy(np.eye(3)[[0, 1, 2, 0, 1, 2]]),
        LikeSB3([0, 1, 2, 0, 1, 2]),
        lambda states, rng: states % 3,
        jm.FunctionPolicy(lambda x: np.eye(3)[x % 3], 3),
        jm.policy.MixturePolicy([LikeSB3([0, 1, 2, 0, 1, 2])], [1.0]),
    ]
    found = jm.solve(problem, mixture(ways, rollouts=2000)).candidates.expectations
    spread = np.ptp(found, axis=0)
    assert (spread <= 0.2).all()
    assert np.unique(found[:, 0]).size == len(ways)


def test_a_world_of_steps_alone_is_enough():
    problem, members, _ = setting()
    world = OnlySteps(problem.world)
    demos = jm.record(world, members[0], trajectories=40, horizon=50, seed=5)
    sampled = jm.Apprenticeship(world, problem.costs, demos, jm.Simplex())
    answer = jm.solve(sampled, mixture(members))
    certificate = jm.certify(sampled, answer)
    assert certificate.valid
    assert certificate.best.kind == "E (mixture)"


def test_descents_refuse_a_world_of_steps_alone():
    network = jm.gallery.queues(4, buffers=[2, 2, 2, 2])
    features = jm.features.factored(
        network.world,
        network.radix,
        jm.record(network.world, network.longer, trajectories=20, horizon=20, seed=0),
        [network.longer, network.lbfs],
    )
    problem = jm.Apprenticeship(
        OnlySteps(network.world), network.costs, jm.ExpertExpectation(np.zeros(5))
    )
    for solver in (jm.StochasticSubgradient(features), jm.solvers.SampledProgram(features, seed=0)):
        with pytest.raises(jm.errors.InvalidProblem, match="in a OnlySteps has the level SAMPLED"):
            jm.solve(problem, solver)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"rollouts": 1}, "rollouts = 1"),
        ({"horizon": 0}, "horizon = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"rounds": 3}, "rounds = 3 without a best response"),
        ({"best_response": lambda weights, number: None}, "rounds = 1 and a best response"),
        ({"planner": lambda *asked: None}, "rounds = 1 and a best response or planner"),
        ({"planner": print, "best_response": print, "rounds": 2}, "a planner and a best response"),
        ({"planner": 3, "rounds": 2}, "planner is a int"),
        ({"patience": 0}, "patience = 0"),
        ({"improvement": 2}, "improvement = 2"),
        ({"budget": 0}, "budget = 0"),
    ],
)
def test_wrong_settings_are_refused(options, complaint):
    with pytest.raises(jm.errors.InvalidSolver, match=complaint):
        mixture([jm.Policy([[1.0]])], **options)


def test_what_is_no_candidate_is_refused():
    with pytest.raises(jm.errors.InvalidSolver, match="no candidate"):
        mixture([])
    with pytest.raises(jm.errors.InvalidPolicy, match="a float cannot choose actions"):
        mixture([0.5])
    problem, members, _ = setting()
    solver = mixture(members, best_response=lambda weights, number: None, rounds=2)
    with pytest.raises(jm.errors.InvalidPolicy, match="a NoneType cannot choose actions"):
        jm.solve(problem, solver)


def test_costs_as_a_matrix_or_as_functions_are_one_problem():
    problem, members, _ = setting()
    _, _, basis = small_world(0)
    explicit = jm.Apprenticeship(problem.world, basis, problem.expert, problem.cost_class)
    stepped, found = (jm.solve(one, mixture(members)) for one in (problem, explicit))
    assert found.policy.weights == pytest.approx(stepped.policy.weights, abs=1e-12)
    assert found.value == pytest.approx(stepped.value, rel=1e-2)  # tails at mid-range
    declared, seen = (jm.certify(one, stepped, 0.1) for one in (problem, explicit))
    assert 0.9 * declared.bound < seen.bound <= declared.bound  # a matrix shows its own ranges
