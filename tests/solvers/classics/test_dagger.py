"""DAgger: the expert is asked where the learner goes, as often as the schedule says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.policy.planning import plan
from journeyman.solvers.answer import Work
from journeyman.solvers.classics.dagger import disagreement, question, surprise
from journeyman.testing import Shape, random_problem, random_world
from journeyman.testing.random_worlds import random_policy
from solved_problems import optimum, solved_problem


def first_action(states):
    return np.zeros(len(states), dtype=int)


class Counting:
    """A function of states that knows how often, and where, it was asked."""

    def __init__(self, policy):
        self.actions = np.argmax(policy.probabilities(np.arange(policy.num_states)), axis=1)
        self.states = []

    def __call__(self, states):
        self.states.extend(states.tolist())
        return self.actions[states]


def problem_of(world, expert, seed=0, demos=None):
    basis = jm.CostBasis(np.random.default_rng(seed).uniform(-1, 1, (world.num_pairs, 3)))
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    return jm.Apprenticeship(world, basis, demos or target)


def deterministic_expert(world, seed=0):
    return plan(world, np.random.default_rng(seed).uniform(size=world.num_pairs)).policy


@pytest.mark.parametrize("is_shown", [False, True])
def test_the_expert_is_asked_exactly_as_often_as_the_schedule_says(is_shown):
    world = random_world(0, Shape.DENSE, num_states=20)
    expert = deterministic_expert(world)
    demos = jm.record(world, expert, trajectories=2, horizon=9, seed=0) if is_shown else None
    asked = Counting(expert)
    solver = jm.solvers.DAgger(asked, max_iterations=4, trajectories=3, horizon=7)
    answer = jm.solve(problem_of(world, expert, demos=demos), solver)
    assert len(asked.states) == (4 + 1) * 3 * 7
    assert answer.work == Work(4, 0, 105, 105)
    assert answer.status is jm.Status.STEP_LIMIT


def test_nothing_is_asked_where_an_episode_is_over():
    world = random_world(1, Shape.ABSORBING)
    expert = deterministic_expert(world)
    asked = Counting(expert)
    solver = jm.solvers.DAgger(asked, max_iterations=3, trajectories=30, horizon=200)
    answer = jm.solve(problem_of(world, expert), solver)
    rest = world.num_states - 1
    assert world.absorbing[rest]
    assert 0 < asked.states.count(rest) <= 4 * 30  # one question where an episode starts at rest
    assert answer.work.expert_queries == answer.work.environment_steps == len(asked.states)
    assert len(asked.states) < 4 * 30 * 200


@pytest.mark.parametrize("seed", range(3))
def test_a_deterministic_expert_is_recovered_where_it_was_asked(seed):
    world = random_world(seed, num_states=30)
    expert = deterministic_expert(world, seed)
    asked = Counting(expert)
    cloning = jm.solvers.BehaviourCloning(smoothing=0.0)
    solver = jm.solvers.DAgger(
        asked, max_iterations=6, trajectories=20, horizon=40, cloning=cloning
    )
    answer = jm.solve(problem_of(world, expert, seed), solver)
    assert len(set(asked.states)) == 30
    np.testing.assert_array_equal(answer.policy.per_pair, expert.per_pair)
    assert answer.value <= 1e-9


def rolled_out(world, expert, learner, share, trajectories=400, horizon=30, seed=0):
    rng = np.random.default_rng(seed)
    return question(
        world, expert, learner, share, trajectories=trajectories, horizon=horizon, rng=rng
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_rollouts_visit_what_the_mixture_visits(share):
    """Occupancies of the stationary mixture by exact evaluation, of rollouts by counting."""
    world = random_world(2, Shape.SPARSE, num_states=5, discount=0.8)
    expert, learner = random_policy(world, 1), random_policy(world, 2)
    decisions = rolled_out(world, expert, learner, share, trajectories=4000)
    weights = world.discount**decisions.step_times / len(decisions)
    visits = np.bincount(decisions.step_states, weights, minlength=world.num_states)
    exact = [jm.occupancy(world, learner.mixed_with(expert, s)).of_states for s in (0, share, 1)]
    assert np.abs(exact[2] - exact[0]).max() > 0.5
    np.testing.assert_allclose(visits, exact[1], atol=0.08)
    answers = jm.clone(decisions, smoothing=0.0).per_pair
    np.testing.assert_allclose(answers, expert.per_pair, atol=0.04)


def test_losses_are_discounted_means_over_decisions():
    world = random_world(3, num_states=5, discount=0.8)
    policy = jm.Policy.uniform(world)
    decisions = rolled_out(world, first_action, policy, 0.5, trajectories=2, horizon=3)
    likely = (1 / world.pairs.actions_per_state[decisions.step_states]).reshape(2, 3)
    weights = 0.2 * np.array([1, 0.8, 0.64])
    np.testing.assert_allclose(surprise(world, policy, decisions), -np.log(likely) @ weights)
    np.testing.assert_allclose(disagreement(world, policy, decisions), (1 - likely) @ weights)


def test_the_mixing_schedule_is_followed():
    world = random_world(4, Shape.DENSE)
    expert, shares = deterministic_expert(world), []

    def mixing(iteration):
        shares.append(iteration)
        return 0.5**iteration

    solver = jm.solvers.DAgger(expert, max_iterations=4, trajectories=2, horizon=3, mixing=mixing)
    jm.solve(problem_of(world, expert), solver)
    assert shares == [1, 2, 3, 4]


def test_where_the_expert_acts_alone_an_iterate_is_not_judged():
    world = random_world(5, Shape.DENSE)
    expert = deterministic_expert(world)
    solver = jm.solvers.DAgger(expert, max_iterations=2, trajectories=4, horizon=9)
    log = jm.solve(problem_of(world, expert), solver).log.splitlines()
    assert [("not rolled out" in line) for line in log] == [True, False, False]
    demos = jm.record(world, expert, trajectories=2, horizon=9, seed=0)
    log = jm.solve(problem_of(world, expert, demos=demos), solver).log.splitlines()
    assert [("not rolled out" in line) for line in log] == [False, False, False]


def test_the_latest_iterate_that_is_as_good_as_the_best_is_returned():
    """Within a standard error; a run of the same seed has the same log."""
    world = random_world(6, Shape.DENSE, num_states=40)
    expert, chosen = random_policy(world, 6), []
    solver = jm.solvers.DAgger(expert, max_iterations=5, trajectories=3, horizon=12)
    for seed in range(6):
        answer = jm.solve(problem_of(world, expert), solver, seed=seed)
        lines = [line.split("regret ")[1].split() for line in answer.log.splitlines()[1:]]
        regrets = [(float(line[0]), float(line[2])) for line in lines]
        least, deviation = min(regrets)
        chosen.append(max(k for k, (regret, _) in enumerate(regrets) if regret < least + deviation))
        assert answer.engine == f"DAgger, iterate {chosen[-1] + 2} of 6"
        best = [regret for regret, _ in regrets].index(least)
        assert best <= chosen[-1]
    assert len(set(chosen)) > 1  # the last is not always it


def test_regret_is_the_surprise_that_hindsight_is_spared():
    """Two rounds without a mixture, followed by hand from the same seed."""
    world = random_world(10, Shape.DENSE, num_states=8)
    expert, rng = random_policy(world, 3), np.random.default_rng(5)
    solver = jm.solvers.DAgger(
        expert, max_iterations=1, trajectories=4, horizon=6, mixing=lambda iteration: 0, seed=5
    )
    answer = jm.solve(problem_of(world, expert), solver)
    size = {"trajectories": 4, "horizon": 6, "rng": rng}
    first = question(world, expert, jm.Policy.uniform(world), 0.0, **size)
    clone = jm.clone(first)
    second = question(world, expert, clone, 0.0, **size)
    hindsight = jm.clone(jm.Demonstrations.concatenate([first, second]))
    trials = ((jm.Policy.uniform(world), first), (clone, second))
    for line, (policy, decisions) in zip(answer.log.splitlines(), trials, strict=True):
        regret = surprise(world, policy, decisions) - surprise(world, hindsight, decisions)
        assert float(line.split("regret ")[1].split()[0]) == pytest.approx(regret.mean(), rel=1e-5)


@pytest.mark.parametrize("form", ["policy", "predict", "function"])
def test_experts_of_every_form(form):
    world = random_world(7, Shape.ABSORBING, num_states=8)
    expert = deterministic_expert(world)

    class Predicts:
        def predict(self, observation, state=None, episode_start=None, deterministic=False):
            assert len(observation) == 6  # every episode, also those that have ended
            return Counting(expert)(np.asarray(observation)), state

    forms = {"policy": expert, "predict": Predicts(), "function": Counting(expert)}
    cloning = jm.solvers.BehaviourCloning(smoothing=0.0)
    solver = jm.solvers.DAgger(
        forms[form], max_iterations=8, trajectories=6, horizon=60, cloning=cloning
    )
    answer = jm.solve(problem_of(world, expert), solver)
    assert answer.work.expert_queries < 9 * 6 * 60
    asked = ~world.absorbing[world.pairs.states]
    np.testing.assert_array_equal(answer.policy.per_pair[asked], expert.per_pair[asked])


def test_features_can_do_the_cloning():
    world = random_world(8, Shape.DENSE, num_states=12)
    expert = deterministic_expert(world)
    cloning = jm.solvers.BehaviourCloning(0.0, features=np.eye(world.num_pairs), ridge=1e-7)
    solver = jm.solvers.DAgger(
        expert, max_iterations=3, trajectories=10, horizon=20, cloning=cloning
    )
    answer = jm.solve(problem_of(world, expert), solver)
    assert (answer.policy.per_pair[expert.per_pair == 1] > 0.95).all()


@given(st.integers(0, 10**6))
def test_the_gap_is_bounded_by_errors_on_the_learners_states(seed):
    """The guarantee, for any two policies and any cost."""
    world = random_world(seed, Shape.RAGGED, discount=0.8)
    expert, learner = random_policy(world, seed + 1), random_policy(world, seed + 2)
    cost = np.random.default_rng(seed).uniform(-1, 1, world.num_pairs)
    pairs, visits = world.pairs, jm.occupancy(world, learner)
    chain = np.vstack([expert.probabilities([x])[0] for x in range(world.num_states)])
    under = np.zeros((world.num_states, world.num_pairs))
    under[pairs.states, np.arange(len(pairs))] = chain[pairs.states, pairs.actions]
    system = np.eye(world.num_states) - world.discount * under @ world.transition.toarray()
    action_values = cost + world.discount * world.transition @ np.linalg.solve(system, under @ cost)
    mistake = (-pairs.smallest(-action_values) - pairs.smallest(action_values)).max()
    errors = pairs.total(np.abs(learner.per_pair - expert.per_pair)) / 2
    change = (visits.measure - jm.occupancy(world, expert).measure) @ cost
    assert change <= mistake * (visits.of_states @ errors) + 1e-9
    assert mistake <= 2 * np.abs(cost).max() * world.effective_horizon


@given(st.integers(0, 10**6), st.floats(0, 1))
def test_a_mixture_visits_almost_what_its_learner_visits(seed, share):
    """How far the states of a mixture are from those of the iterate in it."""
    world = random_world(seed, Shape.SPARSE, discount=0.9)
    expert, learner = random_policy(world, seed + 1), random_policy(world, seed + 2)
    laws = [
        jm.occupancy(world, policy).of_states / world.effective_horizon
        for policy in (learner, learner.mixed_with(expert, share))
    ]
    distance = np.abs(laws[1] - laws[0]).sum() / 2
    assert distance <= 0.9 * share / (0.1 + 0.9 * share) + 1e-9


@pytest.mark.parametrize("name", ["grid, its own expert", "garnet"])
def test_with_questions_enough_the_expert_is_matched(name):
    """Experts of the gallery are stochastic; both bounds stay on their side of the optimum."""
    problem = solved_problem(name, jm.InfinityBall())
    source = {"grid, its own expert": jm.gallery.grid(6, macro_cells=3)}
    _, _, expert = source.get(name) or jm.gallery.garnet(20, seed=0)
    answer = jm.solve(problem, jm.solvers.DAgger(expert, max_iterations=5, trajectories=100))
    slack = 1e-7 * problem.gap_scale
    assert answer.lower_bound <= optimum(name, jm.InfinityBall()) + slack
    assert answer.value <= 0.02 * problem.gap_scale


def test_mistakes_are_named():
    world = random_world(9)
    problem = problem_of(world, jm.Policy.uniform(world))
    with pytest.raises(jm.errors.InvalidPolicy, match="cannot choose actions"):
        jm.solvers.DAgger(3)
    with pytest.raises(jm.errors.InvalidSolver, match="mixing"):
        jm.solvers.DAgger(first_action, mixing=0.5)
    with pytest.raises(jm.errors.InvalidSolver, match=r"mixing\(1\) = 1.5"):
        jm.solve(problem, jm.solvers.DAgger(first_action, mixing=lambda iteration: 1.5))
    with pytest.raises(jm.errors.InvalidSolver, match="cloning"):
        jm.solvers.DAgger(first_action, cloning=0.1)
    with pytest.raises(jm.errors.InvalidPolicy, match="has actions"):
        jm.solve(problem, jm.solvers.DAgger(lambda states: np.full(len(states), 99)))
    with pytest.raises(jm.errors.InvalidPolicy, match="one action for each"):
        jm.solve(problem, jm.solvers.DAgger(lambda states: [0]))
    with pytest.raises(jm.errors.InvalidPolicy, match="made for this world"):
        jm.solve(problem, jm.solvers.DAgger(jm.Policy([[1.0]])))
    with pytest.raises(jm.errors.InvalidProblem, match="budgets"):
        jm.solve(random_problem(0, num_budgets=1), jm.solvers.DAgger(first_action))


def test_steps_that_the_discount_cannot_see_count_for_nothing():
    """Without smoothing a clone excludes actions: 0 x infinity in late steps is no number."""
    world = random_world(0, Shape.DENSE, num_states=4, discount=0.4)
    expert = jm.Policy.uniform(world)
    demos = jm.record(world, expert, trajectories=1, horizon=2, seed=0)
    cloning = jm.solvers.BehaviourCloning(smoothing=0)
    solver = jm.solvers.DAgger(
        expert, max_iterations=2, trajectories=2, horizon=900, cloning=cloning
    )
    answer = jm.solve(problem_of(world, expert, demos=demos), solver)
    assert "nan" not in answer.log
    assert answer.engine == "DAgger, iterate 3 of 3"
