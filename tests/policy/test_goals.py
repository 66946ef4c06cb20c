"""Discount 1: totals until an absorbing state is reached."""

import numpy as np
import pytest
from scipy.optimize import linprog

import journeyman as jm
from journeyman.policy.planning import attainable_ranges, potential
from journeyman.policy.policy_evaluation import value_functions
from journeyman.problem.bounds import least_cost_bound
from naive.consensus_protocol import consensus
from naive.episodes_to_goals import (
    as_world,
    deterministic_laws,
    is_proper,
    random_goal_world,
    times,
    visits,
)

TRAP = [[0.99, 0.01], [1, 0], [0, 1], [0, 1]]
"""State 0: leave with probability 1 %, or go round; state 1 is the goal."""


@pytest.fixture
def cycle():
    return jm.World(TRAP, [1, 0], 1, sink=1, steps_at_most=1000)


class TestDoor:
    def test_asks_for_a_goal(self):
        with pytest.raises(jm.errors.InvalidWorld, match="no goal is given"):
            jm.World(TRAP, [1, 0], 1)

    def test_names_states_without_a_way_to_an_end(self):
        P = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
        with pytest.raises(jm.errors.InvalidWorld, match="no end can be reached from states 0, 1"):
            jm.World(P, [1, 0, 0, 0], 1, sink=3)

    def test_asks_for_a_bound_where_a_policy_can_go_round(self):
        with pytest.raises(jm.errors.InvalidWorld, match="from state 0 a policy can avoid"):
            jm.World(TRAP, [1, 0], 1, sink=1)

    @pytest.mark.parametrize("steps", [0, -1, np.inf, np.nan, "many", [3]])
    def test_refuses_a_bound_that_is_none(self, steps):
        with pytest.raises(jm.errors.InvalidWorld, match="steps_at_most"):
            jm.World(TRAP, [1, 0], 1, sink=1, steps_at_most=steps)

    def test_refuses_a_bound_on_steps_with_a_discount(self):
        with pytest.raises(jm.errors.InvalidWorld, match=r"with discount 0\.9"):
            jm.World(TRAP, [1, 0], 0.9, sink=1, steps_at_most=5)

    def test_refuses_costs_at_the_goal(self, cycle):
        with pytest.raises(jm.errors.InvalidCosts, match="state 1, action 0, an end"):
            jm.plan(cycle, [0, 0, 1, 0])
        with pytest.raises(jm.errors.InvalidCosts, match="an end"):
            jm.Apprenticeship(cycle, jm.CostBasis([0, 0, 1.0, 0]), jm.ExpertExpectation([1.0]))

    def test_refuses_a_bound_that_no_policy_keeps(self):
        short = jm.World(TRAP, [1, 0], 1, sink=1, steps_at_most=50)
        with pytest.raises(jm.errors.InvalidProblem, match="every policy expects 100 steps"):
            jm.Forward(short, [1.0, 1, 0, 0])

    def test_survives_a_file(self, cycle, tmp_path):
        cycle.save(tmp_path / "world.npz")
        again = jm.World.load(tmp_path / "world.npz")
        assert (again.discount, again.effective_horizon, again.sink) == (1.0, 1000.0, 1)


@pytest.mark.parametrize("seed", range(8))
class TestAgainstAllPolicies:
    def test_longest_time(self, seed):
        P, initial = random_goal_world(seed)
        longest = max(times(P, law).max() for law in deterministic_laws(P))
        assert as_world(P, initial).effective_horizon == pytest.approx(longest, rel=1e-9)
        assert as_world(P, initial).effective_horizon >= longest * (1 - 1e-15)

    def test_a_bound_is_asked_for_exactly_where_a_policy_never_ends(self, seed):
        P, initial = random_goal_world(seed, states=4, loops=0.25, branches=2)
        if all(is_proper(P, law) for law in deterministic_laws(P)):
            assert as_world(P, initial).effective_horizon > 0
        else:
            with pytest.raises(jm.errors.InvalidWorld, match="steps_at_most"):
                as_world(P, initial)

    def test_plan(self, seed):
        P, initial = random_goal_world(seed, loops=0.6)
        cost = np.random.default_rng(seed).uniform(0.0, 1.0, P.shape[:2])
        cost[-1] = 0
        proper = [law for law in deterministic_laws(P) if is_proper(P, law)]
        best = min(float((visits(P, initial, law) * cost).sum()) for law in proper)
        world = as_world(P, initial, steps_at_most=1e3)
        found = jm.plan(world, cost)
        assert initial @ found.values == pytest.approx(best, rel=1e-9)
        assert jm.expected_cost(world, found.policy, cost) == pytest.approx(best, rel=1e-9)
        assert found.error < 1e-8

    def test_occupancy_and_values(self, seed):
        P, initial = random_goal_world(seed, loops=0.6)
        law = np.random.default_rng(seed).dirichlet(np.ones(2), size=P.shape[0])
        world = as_world(P, initial, steps_at_most=1e3)
        found = jm.occupancy(world, jm.Policy(law))
        expected = visits(P, initial, law).ravel()
        assert found.measure[:-2] == pytest.approx(expected[:-2], rel=1e-9)
        assert found.measure[-2:].sum() == pytest.approx(1)
        assert found.horizon == pytest.approx(times(P, law).max(), rel=1e-9)
        steps = np.ones((*P.shape[:2], 1)).reshape(-1, 1)
        steps[-2:] = 0
        values = value_functions(world, jm.Policy(law), steps).ravel()
        assert values[:-1] == pytest.approx(times(P, law), rel=1e-9)

    def test_lower_bounds_hold_and_are_attained(self, seed):
        """Over policies of at most M steps; the least total is a line between two policies."""
        P, initial = random_goal_world(seed, loops=0.9)
        cost = np.random.default_rng(seed).uniform(-1.0, 1.0, P.shape[:2])
        cost[-1] = 0
        laws = [law for law in deterministic_laws(P) if is_proper(P, law)]
        points = [visits(P, initial, law) for law in laws]
        M = float(np.median([point.sum() for point in points]))
        world = as_world(P, initial, steps_at_most=M)
        V = potential(world, cost.ravel())
        bound = least_cost_bound(world, cost.ravel(), V)
        allowed = [float((one * cost).sum()) for one in points if one.sum() <= M]
        assert bound <= min(allowed) + 1e-9
        n, k = P.shape[0] - 1, P.shape[1]
        flow = np.repeat(np.eye(n), k, axis=0) - P[:n, :, :n].reshape(n * k, n)
        truth = linprog(
            cost[:n].ravel(), A_eq=flow.T, b_eq=initial[:n], A_ub=np.ones((1, n * k)), b_ub=[M]
        )
        assert bound == pytest.approx(truth.fun, rel=1e-7, abs=1e-7)


def test_a_zero_cost_cycle_and_a_negative_total(cycle):
    """Value iteration from zero stays at zero: going round costs nothing."""
    found = jm.plan(cycle, [-1, 0, 0, 0])
    assert found.values == pytest.approx([-100, 0], abs=1e-8)
    assert found.policy.probabilities([0]).tolist() == [[1.0, 0.0]]
    assert found.error < 1e-6


def test_a_zero_cost_cycle_is_not_taken_for_an_end(cycle):
    """Going round for ever would be free, and is no proper policy."""
    assert jm.plan(cycle, [1, 0, 0, 0]).values == pytest.approx([100, 0], abs=1e-8)


def test_a_negative_cycle_is_refused(cycle):
    with pytest.raises(jm.errors.InvalidCosts, match="between state 0 there is a cycle"):
        jm.plan(cycle, [0, -1, 0, 0])


def test_ranges_respect_the_bound_on_steps(cycle):
    """1000 steps, 100 of which it takes to leave: at most 900 rounds."""
    ranges = attainable_ranges(cycle, jm.CostBasis([0.0, 1, 0, 0]))
    assert ranges.lowest == pytest.approx([0], abs=1e-6)
    assert ranges.highest == pytest.approx([900], abs=1e-3)


def test_gamblers_ruin():
    """From i of n with fair steps: i (n - i) expected steps; both ends are ends."""
    n = 30
    P = np.zeros((n + 1, n + 1))
    P[0, 0] = P[n, n] = 1
    for i in range(1, n):
        P[i, i - 1] = P[i, i + 1] = 0.5
    world = jm.World(P, np.eye(n + 1)[7], 1, sink=0)
    cost = np.append(np.insert(np.ones(n - 1), 0, 0.0), 0.0)
    i = np.arange(n + 1)
    assert jm.plan(world, cost).values == pytest.approx(i * (n - i), abs=1e-9)
    assert world.effective_horizon == pytest.approx(225, rel=1e-12)
    assert jm.expected_cost(world, jm.Policy.uniform(world), cost) == pytest.approx(7 * 23)


def test_an_improper_policy_is_refused_with_its_states(cycle):
    with pytest.raises(jm.errors.InvalidPolicy, match="never reaches an end from state 0"):
        jm.occupancy(cycle, jm.Policy([[0.0, 1.0], [1.0, 0.0]]))


def test_states_a_policy_does_not_get_to_may_be_endless():
    P = [[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
    world = jm.World(P, [1, 0, 0], 1, sink=2, steps_at_most=10)
    found = jm.occupancy(world, jm.Policy([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))
    assert found.measure.tolist() == [1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("solver", [jm.ColumnGeneration(), jm.solvers.MaximumEntropy()])
def test_what_is_not_proven_with_discount_1_is_refused(cycle, solver):
    problem = jm.Apprenticeship(cycle, jm.CostBasis([1.0, 0, 0, 0]), jm.ExpertExpectation([9.0]))
    with pytest.raises(jm.errors.InvalidProblem, match="discount below 1"):
        jm.solve(problem, solver)


@pytest.mark.parametrize(
    ("processes", "constant", "least", "most"), [(2, 2, 48, 75), (2, 4, 192, 243)]
)
def test_randomised_consensus(processes, constant, least, most):
    """Published expected steps under the best and the worst scheduler."""
    world, cost = consensus(processes, constant)
    assert world.initial @ jm.plan(world, cost).values == pytest.approx(least, abs=1e-6)
    assert world.initial @ jm.plan(world, -cost).values == pytest.approx(-most, abs=1e-6)


@pytest.mark.slow
def test_the_published_size_of_randomised_consensus():
    world, cost = consensus(4, 4)
    assert world.num_states == 43_136
    assert world.initial @ jm.plan(world, cost).values == pytest.approx(768, abs=1e-6)
    assert world.initial @ jm.plan(world, -cost).values == pytest.approx(-1083, abs=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_solved_or_refused_as_an_independent_program_says(seed):
    """Cycles of every sign, and exits that are taken once in up to a million steps."""
    rng = np.random.default_rng(seed)
    states, actions = int(rng.integers(2, 8)), 3
    branches = int(rng.integers(1, min(states, 3) + 1))
    P, initial = random_goal_world(seed, states, actions, loops=0.8, branches=branches)
    exits = np.argwhere(P[:states, :, states] > 0) if seed % 3 == 0 else []
    for x, a in exits:
        leave = 10.0 ** rng.uniform(-6, -1)
        P[x, a, :states] *= (1 - leave) / P[x, a, :states].sum()
        P[x, a, states] = leave
    cost = rng.choice([-1.0, 0, 0, 0, 1, 2, 0.5], size=(states + 1, actions))
    cost = np.abs(cost) if seed % 2 else cost
    cost[-1] = 0
    world = as_world(P, initial, steps_at_most=1e9)
    flow = np.repeat(np.eye(states), actions, axis=0)
    flow -= P[:states, :, :states].reshape(states * actions, states)
    everywhere = np.full(states, 1 / states)
    truth = linprog(cost[:states].ravel(), A_eq=flow.T, b_eq=everywhere, method="highs-ds")
    if truth.status == 3:
        with pytest.raises(jm.errors.InvalidCosts, match="costs less than nothing"):
            jm.plan(world, cost)
    else:
        assert jm.plan(world, cost).values[:-1].mean() == pytest.approx(truth.fun, rel=1e-6)
