"""Gymnasium as a simulator: totals as computed exactly from the tables, no fake step, no bias."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import journeyman as jm

DISCOUNT = 0.9
TABLES = {
    "frozen lake": ("FrozenLake-v1", {}, 0, 1),
    "slippery cliff": ("CliffWalkingSlippery-v1", {}, -100, 0),
    "taxi": ("Taxi-v4", {}, -10, 20),
}


def haste_and_reward(lowest, highest):
    """Steps until the end, and the reward as a cost in [0, 1]."""

    def function(observations, actions, following, rewards, terminated):
        return np.column_stack([np.ones(len(rewards)), (highest - rewards) / (highest - lowest)])

    return jm.costs.StepCosts(function, ["haste", "loss"], lowest=0, highest=1)


def exact(environment, policy, lowest, highest):
    """The same expectations from the environment's table."""
    world = jm.World.from_gymnasium(environment, DISCOUNT)
    running = 1.0 * (world.pairs.states != world.sink)
    loss = (highest - jm.expected_rewards(environment)) / (highest - lowest) * running
    return np.array([jm.expected_cost(world, policy, cost) for cost in (running, loss)])


@pytest.mark.parametrize("name", TABLES)
def test_totals_are_those_of_the_table(name):
    identifier, options, lowest, highest = TABLES[name]
    environment = gymnasium.make(identifier, **options)
    world = jm.World.from_gymnasium(environment, DISCOUNT)
    good = jm.plan(world, -jm.expected_rewards(environment)).policy
    policy = good.mixed_with(jm.Policy.uniform(world), 0.3)
    simulator = jm.GymnasiumSimulator(
        partial(gymnasium.make, identifier, max_episode_steps=60, **options),
        haste_and_reward(lowest, highest), DISCOUNT,
    )  # fmt: skip
    record = simulator.totals(policy, 250, 60, np.random.default_rng(0))
    truth = exact(environment, policy, lowest, highest)
    error = record.totals.std(axis=0, ddof=1) / np.sqrt(len(record))
    assert (error > 0).all()
    assert (np.abs(record.mean - truth) <= 4 * error + record.unrecorded.mean()).all()
    assert (record.unrecorded == 0).any()


def along_the_cliff(observations, rng):
    """Up, eleven times right, down: thirteen steps to the goal."""
    column, bottom = observations % 12, observations // 12 == 3
    return np.where(bottom, 0, np.where(column == 11, 2, 1))


def rows(num_envs, mode):
    makers = [partial(gymnasium.make, "CliffWalking-v1")] * num_envs
    return SyncVectorEnv(makers, autoreset_mode=mode)


@pytest.mark.parametrize(
    "environment",
    [
        "CliffWalking-v1",
        partial(gymnasium.make, "CliffWalking-v1"),
        partial(rows, 4, AutoresetMode.NEXT_STEP),
        partial(rows, 4, AutoresetMode.DISABLED),
    ],
    ids=["id", "maker", "next step", "disabled"],
)
@pytest.mark.parametrize("after_end", [0.0, 1.0])
def test_an_episode_is_counted_once_and_to_its_end(environment, after_end):
    costs = jm.costs.StepCosts(
        lambda o, a, after, r, end: np.column_stack([-r, end, after == 47]),
        ["steps", "ends", "goal"], lowest=0, highest=1, after_end=[after_end, 0, 0],
    )  # fmt: skip
    simulator = jm.GymnasiumSimulator(environment, costs, DISCOUNT, num_envs=3)
    record = simulator.totals(along_the_cliff, 10, 60, np.random.default_rng(0))
    steps = (1 - DISCOUNT**13) / (1 - DISCOUNT) + after_end * DISCOUNT**13 / (1 - DISCOUNT)
    assert record.totals.shape == (10, 3)
    assert record.totals == pytest.approx(np.tile([steps, DISCOUNT**12, DISCOUNT**12], (10, 1)))
    assert (record.unrecorded == 0).all()


@pytest.mark.parametrize(("horizon", "limit"), [(5, 50), (50, 5)])
def test_a_cut_off_episode_leaves_its_tail(horizon, limit):
    costs = jm.costs.StepCosts(
        lambda o, a, after, r, end: -r[:, None], ["steps"], lowest=0, highest=1
    )
    maker = partial(gymnasium.make, "CliffWalking-v1", max_episode_steps=limit)
    record = jm.GymnasiumSimulator(maker, costs, DISCOUNT).totals(
        along_the_cliff, 3, horizon, np.random.default_rng(0)
    )
    assert record.totals == pytest.approx((1 - DISCOUNT**5) / (1 - DISCOUNT))
    assert record.unrecorded == pytest.approx(DISCOUNT**5 / (1 - DISCOUNT))


def test_a_row_that_hides_the_last_observation_is_refused():
    costs = jm.costs.StepCosts(
        lambda o, a, after, r, end: -r[:, None], ["steps"], lowest=0, highest=1
    )
    with pytest.raises(jm.errors.InvalidWorld, match="mode SAME_STEP"):
        jm.GymnasiumSimulator(partial(rows, 2, AutoresetMode.SAME_STEP), costs, DISCOUNT)


def balance_costs():
    """How far the pole leans, how far off the cart is; a fall is the worst of both for good."""

    def function(observations, actions, following, rewards, terminated):
        angle = np.minimum(np.abs(following[:, 2]) / 0.21, 1)
        place = np.minimum(np.abs(following[:, 0]) / 2.4, 1)
        return np.column_stack([angle, place])

    return jm.costs.StepCosts(function, ["lean", "off centre"], lowest=0, highest=1, after_end=1)


def towards_the_lean(observations, rng):
    return (observations[:, 2] > 0).astype(int)


def with_the_swing(observations, rng):
    return (observations[:, 2] + 0.3 * observations[:, 3] > 0).astype(int)


def at_random(observations, rng):
    return rng.integers(2, size=len(observations))


CART = {
    "single": "CartPole-v1",
    "vector": partial(
        gymnasium.make_vec, "CartPole-v1", num_envs=20, vectorization_mode="vector_entry_point"
    ),
}


@pytest.mark.parametrize("kind", CART)
def test_a_mixture_for_an_environment_without_a_table(kind):
    simulator = jm.GymnasiumSimulator(CART[kind], balance_costs(), 0.8)
    assert simulator.observation_axes == 1
    expert = jm.demonstrations.record_totals(
        simulator, with_the_swing, trajectories=60, horizon=30, seed=0
    )
    problem = jm.Apprenticeship(simulator, None, expert, jm.Simplex())
    candidates = [at_random, towards_the_lean, with_the_swing]
    answer = jm.solve(problem, jm.PolicyMixture(candidates, rollouts=60, horizon=30, seed=1))
    assert answer.status is jm.Status.OPTIMAL
    assert answer.mixture.weights[2] > 0.5
    certificate = jm.certify(problem, answer)
    assert certificate.valid
    assert certificate.best.kind == "E (mixture)"
    assert certificate.bound < certificate.trivial_bound
    names = [premise.name for premise in certificate.premises]
    assert "the simulator is the world the expert acted in" in names
    observation, _ = gymnasium.make("CartPole-v1").reset(seed=0)
    action, _ = answer.policy.predict(observation)
    assert action in (0, 1)


def test_figures_depend_on_the_seed_only():
    simulator = jm.GymnasiumSimulator("CartPole-v1", balance_costs(), 0.8, num_envs=8)
    first, again, other = (
        simulator.totals(at_random, 20, 30, np.random.default_rng(seed)).totals
        for seed in (0, 0, 1)
    )
    assert (first == again).all()
    assert (first != other).any()
    assert np.unique(first[:, 0]).size == 20


def test_a_learner_is_paid_what_the_mixture_saves():
    simulator = jm.GymnasiumSimulator("CartPole-v1", balance_costs(), 0.8, num_envs=1)
    weights = np.array([0.7, 0.3])
    environment = simulator.training(weights)
    rng = np.random.default_rng(3)
    expected = simulator.totals(lambda o, _: np.ones(len(o), int), 1, 200, rng)
    seed = int(np.random.default_rng(3).integers(1 << 31, size=1)[0])
    environment.reset(seed=seed)
    paid, t, done = 0.0, 0, False
    while not done:
        _, reward, done, truncated, _ = environment.step(1)
        assert not truncated
        paid += 0.8**t * reward
        t += 1
    assert expected.unrecorded[0] == 0
    assert paid == pytest.approx(-float(weights @ expected.totals[0]), rel=1e-12)


class Dictionary(gymnasium.Env):
    """Observations that are no arrays."""

    observation_space = gymnasium.spaces.Dict({"x": gymnasium.spaces.Discrete(2)})
    action_space = gymnasium.spaces.Discrete(2)


@pytest.mark.parametrize(
    ("environment", "options", "complaint"),
    [
        (Dictionary, {}, "FlattenObservation"),
        (42, {}, "the environment is a int"),
        ("CartPole-v1", {"num_envs": 0}, "num_envs = 0"),
        ("CartPole-v1", {"num_envs": True}, "num_envs = True"),
        ("CartPole-v1", {"discount": 1.0}, "discount"),
        ("CartPole-v1", {"costs": None}, "costs is a NoneType"),
    ],
)
def test_what_is_no_simulator_is_refused(environment, options, complaint):
    with pytest.raises(jm.errors.InvalidInput, match=complaint):
        jm.GymnasiumSimulator(
            **{"environment": environment, "costs": balance_costs(), "discount": 0.9, **options}
        )


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda o, a, after, r, end: 2 * r[:, None], "'c' is 2.0 when"),
        (lambda o, a, after, r, end: r, "shape"),
    ],
)
def test_costs_are_checked_in_every_step(function, complaint):
    costs = jm.costs.StepCosts(function, ["c"], lowest=0, highest=1)
    simulator = jm.GymnasiumSimulator("CartPole-v1", costs, 0.9)
    with pytest.raises(jm.errors.InvalidCosts, match=complaint):
        simulator.totals(at_random, 2, 5, np.random.default_rng(0))


@pytest.mark.parametrize("action", [0.5, np.nan, -1, 2])
def test_what_is_no_number_of_an_action_is_refused(action):
    simulator = jm.GymnasiumSimulator("CartPole-v1", balance_costs(), 0.9)
    with pytest.raises(jm.errors.InvalidPolicy, match="takes action"):
        simulator.totals(
            lambda seen, rng: np.full(len(seen), action), 2, 5, np.random.default_rng(0)
        )


@pytest.mark.parametrize("ask", ["totals", "steps"])
def test_no_episodes_are_refused(ask):
    simulator = jm.GymnasiumSimulator("CartPole-v1", balance_costs(), 0.9)
    with pytest.raises(jm.errors.InvalidDemonstrations, match="trajectories = 0"):
        getattr(simulator, ask)(
            lambda seen, rng: np.zeros(len(seen), int), 0, 5, np.random.default_rng(0)
        )


class Blind(gymnasium.Env):
    """Its sensor fails in the second step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1), {}

    def step(self, action):
        self.time += 1
        return np.full(1, np.nan if self.time > 1 else 0.0), 1.0, False, False, {}


def test_what_learners_are_shown_is_finite():
    costs = jm.costs.StepCosts(lambda o, a, after, r, end: r[:, None], ["c"], lowest=0, highest=1)
    simulator = jm.GymnasiumSimulator(Blind, costs, 0.9, num_envs=2)
    candidates = [lambda seen, rng: np.zeros(len(seen), dtype=int)]
    problem = jm.Apprenticeship(simulator, None, jm.EpisodeTotals([[1.0]], unrecorded=1.0))
    planner = jm.solvers.LeastSquaresPlanner(horizon=5)
    mixture = jm.solvers.PolicyMixture(
        candidates, rollouts=4, horizon=5, seed=0, planner=planner, rounds=2, budget=40
    )
    with pytest.raises(jm.errors.InvalidWorld, match="environment shows is not finite"):
        jm.solve(problem, mixture)


def test_what_costs_after_the_end_lies_in_the_range():
    with pytest.raises(jm.errors.InvalidCosts, match="after the end of an episode"):
        jm.costs.StepCosts(lambda *_: None, ["c"], lowest=0.5, highest=1)
    with pytest.raises(jm.errors.InvalidCosts, match="function is a int"):
        jm.costs.StepCosts(3, ["c"], lowest=0.5, highest=1)


@pytest.mark.parametrize(
    ("expert", "complaint"),
    [
        (jm.ExpertExpectation([1.0]), "1 expectations, there are 2"),
        (jm.ExpertExpectation.from_totals(np.ones((3, 2)), np.zeros(3)), "were estimated"),
        (None, "the expert is a NoneType"),
    ],
)
def test_experts_that_do_not_fit_are_refused(expert, complaint):
    simulator = jm.GymnasiumSimulator("CartPole-v1", balance_costs(), 0.8)
    with pytest.raises(jm.errors.InvalidProblem, match=complaint):
        jm.Apprenticeship(simulator, None, expert)
    with pytest.raises(jm.errors.InvalidProblem, match="world is a int"):
        jm.Apprenticeship(7, None, expert)


def test_other_solvers_say_what_they_need():
    simulator = jm.GymnasiumSimulator("CartPole-v1", balance_costs(), 0.8)
    problem = jm.Apprenticeship(simulator, None, jm.EpisodeTotals([[0.0, 0.0]], unrecorded=0))
    for solver in (None, jm.LinearProgram()):
        with pytest.raises(jm.errors.InvalidProblem, match="needs the level EXPLICIT") as refusal:
            jm.solve(problem, solver)
        assert "has the level SAMPLED" in str(refusal.value)
        assert "PolicyMixture" in str(refusal.value)


@pytest.mark.parametrize(
    ("totals", "unrecorded", "complaint"),
    [
        ([[1.0]], [-1.0], r"unrecorded\[0\] = -1"),
        (np.zeros((0, 2)), 0.0, "empty"),
        ([[1.0]], [0.0, 0.0], "expected 1"),
        ([1.0], 0.0, "axes"),
    ],
)
def test_malformed_totals_are_refused(totals, unrecorded, complaint):
    with pytest.raises(jm.errors.InvalidDemonstrations, match=complaint):
        jm.EpisodeTotals(totals, unrecorded)


def quick_car(**options):
    """MountainCar with costs that look at the action."""
    costs = jm.costs.StepCosts(
        lambda o, a, after, r, end: np.column_stack(
            [np.abs(after[:, 0]) / 1.2, np.reshape(a, (len(o), -1))[:, 0] ** 2 / 4, np.ones(len(o))]
        ),
        ["place", "effort", "time"], lowest=0, highest=1,
    )  # fmt: skip
    name = "MountainCarContinuous-v0" if options else "MountainCar-v0"
    return jm.GymnasiumSimulator(name, costs, 0.9, num_envs=4, **options)


def test_steps_and_totals_are_of_the_same_episodes():
    simulator = jm.GymnasiumSimulator("CartPole-v1", balance_costs(), 0.8, num_envs=4)
    found = simulator.totals(at_random, 10, 20, np.random.default_rng(3))
    steps = simulator.steps(at_random, 10, 20, np.random.default_rng(3))
    demos = steps.demonstrations()
    assert len(demos) == 10
    assert (demos.lengths == np.diff(steps.offsets)).all()
    assert 0 < demos.terminated.sum() < 10
    again = simulator.expert_totals(demos)
    assert again.totals == pytest.approx(found.totals, rel=1e-12)
    assert again.unrecorded == pytest.approx(found.unrecorded, rel=1e-12)
    assert (demos.next_states == steps.following).all()


def test_demonstrations_of_observations_are_an_expert():
    simulator = jm.GymnasiumSimulator("CartPole-v1", balance_costs(), 0.8)
    demos = simulator.record(with_the_swing, trajectories=12, horizon=30, seed=4)
    assert len(demos) == 12
    problem = jm.Apprenticeship(simulator, None, demos)
    assert (problem.target == simulator.expert_totals(demos).mean).all()
    same = simulator.record(with_the_swing, trajectories=12, horizon=30, seed=4)
    assert (same.states == demos.states).all()
    wrong = jm.Demonstrations([0, 0], [0], [0, 1])
    with pytest.raises(jm.errors.InvalidDemonstrations, match=r"observations of shape \(\)"):
        jm.Apprenticeship(simulator, None, wrong)
    beyond = jm.Demonstrations(np.zeros((2, 4)), [2], [0, 1])
    with pytest.raises(jm.errors.InvalidPolicy, match=r"action 2, and the environment has 0\.\.1"):
        jm.Apprenticeship(simulator, None, beyond)


def test_listed_actions_are_those_of_the_environment():
    forces = [[-1.0], [0.0], [1.0]]
    listed, plain = quick_car(actions=forces), quick_car(actions=[[0.0]])
    assert listed.action_numbers.tolist() == [0, 1, 2]

    def by_number(seen, rng):
        return np.where(seen[:, 1] < 0, 0, 2)

    steps = listed.steps(by_number, 6, 25, np.random.default_rng(0))
    assert steps.costs[:, 1] == pytest.approx(0.25)
    assert (listed.nearest_actions([[0.4], [0.6], [-3.0]]) == [1, 2, 0]).all()
    done = np.array(forces)[steps.actions]
    demos = steps.demonstrations()
    totals = jm.EpisodeTotals.of_episodes(
        [demos.episode(k)[0] for k in range(6)], np.split(done, demos.offsets[1:-1]),
        demos.terminated, listed.costs, 0.9,
    )  # fmt: skip
    assert totals.totals == pytest.approx(listed.expert_totals(demos).totals)
    with pytest.raises(jm.errors.InvalidPolicy, match=r"action 1, and the environment has 0\.\.0"):
        plain.totals(lambda seen, rng: np.ones(len(seen), int), 2, 3, np.random.default_rng(0))
    with pytest.raises(jm.errors.InvalidPolicy, match="type float"):
        listed.totals(lambda seen, rng: np.full(len(seen), 0.5), 2, 3, np.random.default_rng(0))


def test_listed_actions_train_as_discrete_ones():
    environment = quick_car(actions=[[-1.0], [1.0]]).training([0.0, 1.0, 0.0])
    environment.reset(seed=0)
    assert environment.action_space.n == 2
    _, reward, *_ = environment.step(1)
    assert reward == -0.25


@pytest.mark.parametrize(
    ("actions", "complaint"),
    [
        ([], "actions is empty"),
        ([[2.0]], r"actions\[0\] = \[2.0\]"),
        ([0.5], r"actions\[0\] = 0.5"),
    ],
)
def test_actions_that_the_environment_lacks_are_refused(actions, complaint):
    with pytest.raises(jm.errors.InvalidWorld, match=complaint):
        quick_car(actions=actions)


def test_without_a_list_continuous_actions_have_no_numbers():
    costs = jm.costs.StepCosts(lambda o, a, n, r, e: r[:, None] * 0, ["none"], lowest=0, highest=1)
    simulator = jm.GymnasiumSimulator("Pendulum-v1", costs, 0.9)
    with pytest.raises(jm.errors.InvalidWorld, match="has no numbers"):
        simulator.record(
            lambda seen, rng: np.zeros((len(seen), 1)), trajectories=1, horizon=2, seed=0
        )
    with pytest.raises(jm.errors.InvalidPolicy, match="no list of actions"):
        simulator.nearest_actions([[0.0]])


def test_a_mixture_grows_by_least_squares():
    """Without a clone, a pole is held up by planning against the worst costs."""
    simulator = jm.GymnasiumSimulator("CartPole-v1", balance_costs(), 0.9, num_envs=20)
    demos = simulator.record(with_the_swing, trajectories=30, horizon=60, seed=0)
    problem = jm.Apprenticeship(simulator, None, demos, jm.Simplex())
    solver = jm.PolicyMixture(
        [at_random], rollouts=40, horizon=60, seed=0, rounds=3, budget=4_000,
        planner=jm.solvers.LeastSquaresPlanner(horizon=60, trials=5),
    )  # fmt: skip
    answer = jm.solve(problem, solver)
    trace = answer.candidates.trace
    assert trace[-1, 2] < 0.5 * trace[0, 2]
    assert jm.certify(problem, answer).valid
