"""Least-squares policy iteration: its equations, its policies where the best is known, its seed."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.demonstrations.simulation import Steps, WorldSimulator
from journeyman.policy.acting import Actor
from journeyman.solvers.least_squares_planner import _Equations, by_state
from mixtures import small_world

LeastSquaresPlanner = jm.solvers.LeastSquaresPlanner


class Counting:
    """A simulator that counts the steps it was asked for."""

    def __init__(self, simulator):
        self.simulator, self.asked = simulator, 0

    def __getattr__(self, name):
        return getattr(self.simulator, name)

    def steps(self, *arguments):
        found = self.simulator.steps(*arguments)
        self.asked += len(found)
        return found


@pytest.mark.parametrize("seed", range(4))
def test_in_a_small_world_it_plans(seed):
    world, costs, basis = small_world(seed)
    weights = np.random.default_rng(seed).normal(size=len(costs.names))
    planner = LeastSquaresPlanner(horizon=30)
    policy = planner(weights, WorldSimulator(world, costs), 6_000, seed)
    table = jm.Policy(policy.probabilities(np.arange(world.num_states)))
    cost = basis.matrix @ weights
    best, found = jm.plan(world, cost), jm.expected_cost(world, table, cost)
    worst = -jm.expected_cost(world, jm.plan(world, -cost).policy, -cost)
    least = jm.expected_cost(world, best.policy, cost)
    assert found <= least + 0.05 * (worst - least)


@pytest.mark.parametrize("seed", range(3))
def test_a_guide_is_improved_not_only_watched(seed):
    """One step from any policy makes none that is worse than it; one from a random policy would."""
    world, costs, basis = small_world(seed)
    weights = np.random.default_rng(seed).normal(size=len(costs.names))
    cost = basis.matrix @ weights
    best = jm.plan(world, cost).policy
    least = jm.expected_cost(world, best, cost)
    worst = -jm.expected_cost(world, jm.plan(world, -cost).policy, -cost)
    planner = LeastSquaresPlanner(horizon=30, improvements=1).guided_by(jm.Policy.uniform(world))
    policy = planner.guided_by(best)(weights, WorldSimulator(world, costs), 3_000, seed)
    table = jm.Policy(policy.probabilities(np.arange(world.num_states)))
    assert jm.expected_cost(world, table, cost) <= least + 0.02 * (worst - least)


def test_guides_are_named_once():
    world, _, _ = small_world(0)
    one, other = jm.Policy.uniform(world), jm.Policy.uniform(world)
    planner = LeastSquaresPlanner(horizon=5, guides=[one])
    assert planner.guided_by(one) is planner
    assert planner.guided_by(other).guides == (one, other)
    assert planner.guides == (one,)


def random_steps(rng, count, states, actions, costs=1):
    episodes = np.sort(rng.choice(np.arange(1, count), 5, replace=False))
    return Steps(
        rng.integers(states, size=count), rng.integers(actions, size=count),
        rng.integers(states, size=count), rng.normal(size=(count, costs)),
        rng.random(count) < 0.1, np.concatenate([[0], episodes, [count]]),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_the_equations_are_those_of_the_docstring(seed):
    rng = np.random.default_rng(seed)
    steps, table = random_steps(rng, 60, 4, 3), rng.normal(size=(4, 5))
    planner = LeastSquaresPlanner(horizon=1, ridge=1e-3)

    class Facts:
        action_numbers, discount = np.arange(3), 0.9

    following, costs = rng.integers(3, size=60), steps.costs[:, 0]
    found = _Equations(steps, lambda o: table[o].copy(), costs, Facts, planner).solve(following)

    def pair(state, action):
        row = np.zeros((3, 5))
        row[action] = table[state]
        return row.ravel()

    matrix, right = 1e-3 * 60 * np.eye(15), np.zeros(15)
    for k in range(60):
        now = pair(steps.observations[k], steps.actions[k])
        later = 0 if steps.terminated[k] else pair(steps.following[k], following[k])
        matrix += np.outer(now, now - 0.9 * later)
        right += now * costs[k]
    assert found == pytest.approx(np.linalg.solve(matrix, right).reshape(3, 5).T, abs=1e-8)


def test_the_seed_decides_and_the_budget_is_kept():
    world, costs, _ = small_world(1)
    simulator = Counting(WorldSimulator(world, costs))
    planner = LeastSquaresPlanner(horizon=20, trials=5)
    weights = np.ones(len(costs.names))
    first = planner(weights, simulator, 3_000, 0).coefficients
    assert 3_000 <= simulator.asked <= 3_000 + 2 * 5 * 20 + 300
    again, other = (planner(weights, simulator, 3_000, seed).coefficients for seed in (0, 1))
    assert (first == again).all()
    assert first.shape != other.shape or (first != other).any()


def test_what_costs_after_an_end_counts():
    """A fall at once or a walk of three steps: which is better depends on what follows the end."""

    class Ledge:
        names, lowest, highest = ("cost",), np.zeros(1), np.ones(1)
        discount, observation_axes, action_numbers = 0.9, 1, np.arange(2)

        def __init__(self, after_end):
            self.costs = jm.costs.StepCosts(
                lambda o, a, after, r, end: np.full((len(r), 1), 0.5), ["cost"], lowest=0,
                highest=1, after_end=after_end,
            )  # fmt: skip

        def steps(self, policy, trajectories, horizon, rng):
            arrays, lengths = [], []
            for _ in range(trajectories):
                place, over, count = 0.0, False, 0
                while not over and count < horizon:
                    action = int(Actor(policy, rng).sample(np.array([[place]]))[0])
                    over = action == 1
                    arrays.append(([place], action, [place], [0.5], over))
                    count += 1
                lengths.append(count)
            seen, done, after, costs, ends = (np.array(one) for one in zip(*arrays, strict=True))
            return Steps(seen, done, after, costs, ends, np.concatenate([[0], np.cumsum(lengths)]))

        def totals(self, policy, trajectories, horizon, rng):
            raise NotImplementedError

    for after_end, wanted in ((0.0, 1), (1.0, 0)):
        planner = LeastSquaresPlanner(horizon=10, trials=4)
        policy = planner([1.0], Ledge(after_end), 400, 0)
        assert policy.likeliest(np.zeros((1, 1))).tolist() == [wanted]


@pytest.mark.parametrize("maker", [jm.solvers.quadratic, jm.solvers.Radial(7)])
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 2)])
def test_features_are_finite_for_whatever_was_observed(maker, shape):
    rng = np.random.default_rng(0)
    for seen in (
        rng.normal(size=(40, *shape)),
        np.zeros((40, *shape)),
        1e6 + np.zeros((1, *shape)),
    ):
        features = maker(seen, np.random.default_rng(0))
        found = features(rng.normal(size=(5, *shape)) * 1e3)
        assert np.isfinite(found).all()
        assert features(seen[:0]).shape == (0, found.shape[1])
        assert found.shape[1] <= max(8, 1 + 4 + 10)


def test_radial_features_are_one_at_their_centres():
    seen = np.random.default_rng(0).normal(size=(50, 2))
    features = jm.solvers.Radial(6)(seen, np.random.default_rng(1))
    at = features.mean + features.scale * features.centres
    assert np.diag(features(at)[:, :-1]) == pytest.approx(np.ones(6))
    states = by_state(np.array([3, 0, 3]), None)
    assert states(np.array([3, 1, 0, 9])).tolist() == [[0, 1], [0, 0], [1, 0], [0, 0]]
    with pytest.raises(jm.errors.InvalidSolver, match="2001 states were observed"):
        by_state(np.arange(2001), None)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"horizon": 0}, "horizon = 0"),
        ({"horizon": 5, "trials": 0}, "trials = 0"),
        ({"horizon": 5, "ridge": 0.0}, "ridge = 0"),
        ({"horizon": 5, "features": []}, "features = "),
        ({"horizon": 5, "features": [3]}, "features = "),
    ],
)
def test_wrong_settings_are_refused(options, complaint):
    with pytest.raises(jm.errors.InvalidSolver, match=complaint):
        LeastSquaresPlanner(**options)


def test_what_cannot_be_planned_in_is_refused():
    world, costs, _ = small_world(0)
    planner = LeastSquaresPlanner(horizon=5)
    with pytest.raises(jm.errors.InvalidCosts, match="cost_weights"):
        planner([1.0], WorldSimulator(world, costs), 100, 0)
    with pytest.raises(jm.errors.InvalidPolicy, match="cannot choose actions"):
        LeastSquaresPlanner(horizon=5, guides=[0.5])

    class Totals:
        names = ("one",)

    with pytest.raises(jm.errors.InvalidSolver, match="has no steps"):
        planner([1.0], Totals(), 100, 0)
