"""Worlds with a horizon against a twin that goes through episodes step by step."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.errors import InvalidCosts, InvalidPolicy, InvalidProblem, InvalidWorld
from journeyman.policy import occupancy
from journeyman.policy.planning import attainable_ranges, soft_plan
from naive import horizon as naive

WORLDS = 200
CLOSE = 1e-9


class Drawn:
    """A random world, its arrays, a horizon and costs."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        states = int(rng.integers(1, 7))
        per_state = rng.integers(1, 4, size=states)
        if seed % 2:
            per_state[:] = per_state[0]
        self.offsets = np.concatenate([[0], np.cumsum(per_state)])
        laws = rng.dirichlet(np.full(states, 0.5), size=self.offsets[-1])
        laws[laws < 0.05] = 0.0
        self.P = laws / laws.sum(axis=1, keepdims=True)
        self.initial = rng.dirichlet(np.ones(states))
        self.base = jm.World(self.P, self.initial, 0.9, choice_offsets=self.offsets)
        self.P, self.initial = self.base.transition.toarray(), self.base.initial
        self.steps = int(rng.integers(1, 9))
        self.discount = 1.0 if seed % 3 else float(rng.uniform(0.3, 1.0))
        self.world = self.base.with_horizon(self.steps, self.discount)
        self.Psi = rng.uniform(-1, 1, size=(self.offsets[-1], int(rng.integers(1, 4))))
        self.basis = jm.CostBasis(self.Psi)
        self.rng = rng

    @property
    def time(self):
        return sum(self.discount**t for t in range(self.steps))

    def policy(self):
        weights = self.rng.exponential(size=self.offsets[-1])
        return jm.Policy(
            weights / np.repeat(np.add.reduceat(weights, self.offsets[:-1]), np.diff(self.offsets)),
            self.base.pairs,
        )

    def totals(self, policy):
        laws = [policy.at_step(t).per_pair for t in range(self.steps)]
        parts = (self.P, self.offsets, self.initial, laws, self.Psi, self.discount)
        return naive.totals_of(*parts)

    def backward(self, costs, temperature=0.0):
        parts = (self.P, self.offsets, costs, self.steps, self.discount, temperature)
        return naive.backward_values(*parts)


@pytest.mark.parametrize("first", range(0, WORLDS, 50))
def test_values_and_occupancies_are_those_of_backward_and_forward_passes(first):
    for seed in range(first, first + 50):
        drawn = Drawn(seed)
        cost, layers = drawn.Psi[:, 0], drawn.world.layers
        found = layers.per_time(jm.plan(drawn.world, cost).values)
        assert found == pytest.approx(drawn.backward(cost), abs=CLOSE)
        soft = layers.per_time(soft_plan(drawn.world, cost, temperature=0.3).values)
        assert soft == pytest.approx(drawn.backward(cost, 0.3), abs=CLOSE)
        best = jm.plan(drawn.world, cost).policy
        least = float(drawn.initial @ drawn.backward(cost)[0])
        assert drawn.totals(best)[0] == pytest.approx(least, abs=CLOSE)
        for policy in (drawn.policy(), best):
            visits = occupancy(drawn.world, policy)
            expected = drawn.totals(policy)
            assert visits.expectations(drawn.basis) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("first", range(0, WORLDS, 50))
def test_optima_and_certificates_are_those_of_episodes(first):
    for seed in range(first, first + 50):
        drawn = Drawn(seed)
        target = drawn.totals(drawn.policy()) + 0.1 * drawn.rng.normal(size=drawn.Psi.shape[1])
        problem = jm.Apprenticeship(drawn.world, drawn.basis, jm.ExpertExpectation(target))
        answer = jm.solve(problem, jm.LinearProgram(tolerance=1e-10))
        parts = (drawn.P, drawn.offsets, drawn.initial, drawn.Psi, drawn.discount, drawn.steps)
        least = naive.least_l1_gap(*parts, target)
        assert answer.value == pytest.approx(least, abs=CLOSE)
        assert answer.lower_bound == pytest.approx(least, abs=CLOSE)
        certificate = jm.certify(problem, answer)
        own = np.abs(drawn.totals(answer.policy) - target).sum()
        assert certificate.bound == pytest.approx(own, abs=CLOSE)
        ends = np.array([
            [sign * drawn.initial @ drawn.backward(sign * cost)[0] for sign in (1, -1)]
            for cost in drawn.Psi.T
        ])  # fmt: skip
        furthest = np.abs(ends - target[:, np.newaxis]).max(axis=1).sum()
        assert certificate.trivial_bound <= furthest + CLOSE
        ranges = attainable_ranges(drawn.world, problem.basis)
        assert np.column_stack([ranges.lowest, ranges.highest]) == pytest.approx(ends, abs=1e-6)


def test_radii_have_the_range_of_an_episode_and_not_that_of_the_reduced_world():
    world = jm.World([[1.0], [1.0]], [1.0], 0.9, choice_offsets=[0, 2]).with_horizon(10, 1.0)
    demos = jm.Demonstrations.from_arrays([[0] * 11] * 3, [[0, 1] * 5] * 3)
    problem = jm.Apprenticeship(world, jm.CostBasis([[0.0], [1.0]]), demos, jm.Simplex())
    certificate = jm.certify(problem, jm.Policy.uniform(world), failure_probability=0.1)
    named = {one.estimate: one for one in certificate.combinations}
    union = next(way for name, way in named.items() if "betting" not in name)
    sampling = next(term for term in union.terms if term.name == "sampling")
    assert sampling.value == pytest.approx(10 * np.sqrt(np.log(1 / 0.005) / 6))
    assert certificate.trivial_bound == pytest.approx(10)
    assert problem.gap_scale == pytest.approx(20)
    assert certificate.normalised_bound == pytest.approx(certificate.bound / 10)


def test_records_are_lifted_cut_and_completed():
    base = jm.World([[0, 1, 0], [0, 0, 1], [0, 0, 1]], [1, 0, 0], 0.9)
    world = base.with_horizon(4)
    demos = jm.Demonstrations.from_arrays([[0, 1, 2], [0, 1]], [[0, 0], [0]], [True, False])
    lifted = demos.on(world)
    assert lifted.states.tolist() == [0, 4, 8, 11, 12, 0, 4]
    assert lifted.terminated.tolist() == [True, False]
    assert lifted.on(world) is lifted
    assert demos.on(base.with_horizon(1)).states.tolist() == [0, 3, 0, 3]
    basis = jm.CostBasis([1.0, 1.0, 0.5])
    problem = jm.Apprenticeship(world, basis, demos)
    plain = jm.ExpertExpectation.from_demonstrations(
        lifted, problem.basis, world, method=jm.demonstrations.MonteCarlo()
    )
    assert plain.values[0] == pytest.approx((1 + 0.9 + 0.5 * (0.81 + 0.729) + 1) / 2)
    assert plain.truncation_mass == pytest.approx((0.9 + 0.81 + 0.729) / 2)


def test_a_record_rests_on_only_where_resting_has_one_cost():
    base = jm.World([[0, 1], [0, 1], [0, 1], [0, 1]], [1, 0], 0.9)
    demos = jm.Demonstrations([0, 1], [0], [0, 1], [True])
    world = base.with_horizon(3)
    alike = jm.Apprenticeship(world, jm.CostBasis([0.0, 0.0, 1.0, 1.0]), demos)
    apart = jm.Apprenticeship(world, jm.CostBasis([0.0, 0.0, 1.0, 0.0]), demos)
    assert alike.demonstrations.lengths.tolist() == [3]
    assert apart.demonstrations.lengths.tolist() == [1]
    assert not apart.demonstrations.terminated.any()


def test_budgets_are_limits_for_an_episode():
    base = jm.World([[1.0], [1.0]], [1.0], 0.9, choice_offsets=[0, 2])
    world = base.with_horizon(5, 1.0)
    budget = jm.Budget(cost=[0.0, 1.0], at_most=2.0)
    answer = jm.solve(jm.Forward(world, [1.0, 0.0], [budget]))
    assert answer.value == pytest.approx(3.0, abs=1e-6)


def test_policies_act_by_time():
    base = jm.World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    world = base.with_horizon(3)
    policy = jm.Policy([1, 0, 0, 1, 1, 0, 0.5, 0.5], world.pairs)
    assert [int(policy.predict(0, t)[0]) for t in range(3)] == [0, 1, 0]
    state, actions = None, []
    for step in range(6):
        action, state = policy.predict([0], state, episode_start=[step == 3])
        actions.append(int(action[0]))
    assert actions == [0, 1, 0, 0, 1, 0]
    several, times = policy.predict([0, 0], np.array([1, 2]))
    assert several.tolist() == [1, 0]
    assert times.tolist() == [2, 3]
    assert policy.at_step(1).per_pair.tolist() == [0.0, 1.0]
    with pytest.raises(InvalidPolicy, match="step 3 of an episode of 3 steps"):
        policy.predict(0, 3)
    with pytest.raises(InvalidPolicy, match="observation"):
        policy.predict(2, 0)


def test_worlds_and_policies_come_back_from_files(tmp_path):
    drawn = Drawn(5)
    drawn.world.save(tmp_path / "world.npz")
    again = jm.World.load(tmp_path / "world.npz")
    assert (again.transition != drawn.world.transition).nnz == 0
    assert again.layers.horizon == drawn.steps
    assert again.layers.discount == drawn.discount
    policy = jm.plan(drawn.world, drawn.Psi[:, 0]).policy
    policy.save(tmp_path / "policy.npz")
    loaded = jm.Policy.load(tmp_path / "policy.npz")
    assert loaded.horizon == drawn.steps
    assert np.array_equal(loaded.per_pair, policy.per_pair)


def test_what_makes_no_sense_is_refused():
    base = jm.World([[1.0], [1.0]], [1.0], 0.9, choice_offsets=[0, 2])
    world = base.with_horizon(4, 1.0)
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=3, seed=0)
    with pytest.raises(InvalidWorld, match="horizon = 0"):
        base.with_horizon(0)
    with pytest.raises(InvalidWorld, match="horizon of 4 steps already"):
        world.with_horizon(3)
    with pytest.raises(InvalidWorld, match=r"discount = 1\.5"):
        base.with_horizon(4, 1.5)
    with pytest.raises(InvalidWorld, match="too many to list"):
        base.with_horizon(10**8)
    with pytest.raises(InvalidCosts, match="at the end of an episode"):
        jm.Apprenticeship(world, jm.CostBasis(np.ones(world.num_pairs)), demos)
    basis = jm.CostBasis([0.0, 1.0])
    for premise in (jm.Rational(regret_per_step=0.1), jm.SoftRational(temperature=1.0)):
        with pytest.raises(InvalidProblem, match="NearlyOptimal"):
            jm.Apprenticeship(world, basis, demos, expert_is=premise)
    estimated = jm.ExpertExpectation.from_demonstrations(
        jm.record(base, jm.Policy.uniform(base), trajectories=3, horizon=4, seed=0), basis, base
    )
    with pytest.raises(InvalidProblem, match="without the horizon"):
        jm.Apprenticeship(world, basis, estimated)
