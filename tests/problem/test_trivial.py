"""The trivial bound: the largest gap there is, whichever class and however the expert is known."""

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.policy import planning as attainable
from journeyman.problem import bounds

CLASSES = {
    "l1": lambda n: jm.InfinityBall(np.linspace(0.5, 2.0, n)),
    "l2": lambda n: jm.EuclideanBall(np.linspace(0.5, 2.0, n)),
    "simplex": lambda n: jm.Simplex(np.linspace(0.5, 2.0, n)),
}


def episodic(seed, *, num_costs=3, discount=0.97):
    """Some states with choices, then an end that rests for ever and costs nothing."""
    rng = np.random.default_rng(seed)
    states = int(rng.integers(4, 9))
    offsets = np.r_[0, np.cumsum(rng.integers(1, 4, states - 1))]
    offsets = np.r_[offsets, offsets[-1] + 1]
    law = rng.dirichlet(np.full(states, 0.4), size=offsets[-1])
    law[:, -1] += rng.uniform(0.2, 1.0, offsets[-1])
    law /= law.sum(axis=1, keepdims=True)
    law[-1] = np.eye(states)[-1]
    world = jm.World(law, rng.dirichlet(np.ones(states)), discount, choice_offsets=offsets)
    costs = rng.uniform(-1, 1, (offsets[-1], num_costs))
    costs[-1] = 0.0
    return rng, world, jm.CostBasis(costs)


def drawn_policy(rng, world):
    law = np.concatenate([rng.dirichlet(np.ones(n)) for n in world.pairs.actions_per_state])
    return jm.Policy(law, world.pairs.offsets)


def exact_box(world, basis):
    ends = []
    for sign in (1, -1):
        column = [
            jm.expected_cost(world, jm.plan(world, sign * cost).policy, cost)
            for cost in basis.matrix.T
        ]
        ends.append(np.array(column))
    return ends


def sigma(name, scale, low, high):
    """The largest gap over a box, class by class."""
    wide = np.maximum(np.abs(low), np.abs(high))
    if name == "l1":
        return float((scale * wide).sum())
    return float(np.linalg.norm(scale * wide)) if name == "l2" else float((scale * high).max())


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("seed", range(12))
def test_of_demonstrations_it_is_the_largest_gap_over_the_box(name, seed):
    rng, world, basis = episodic(seed)
    demos = jm.record(world, drawn_policy(rng, world), trajectories=30, horizon=60, seed=seed)
    problem = jm.Apprenticeship(world, basis, demos, CLASSES[name](3))
    low, high = exact_box(world, basis)
    boxed = sigma(name, problem.cost_class.scale, low - high, high - low)
    expected = min(boxed, bounds.plain_bound(problem, None))
    assert problem.trivial_bound == pytest.approx(expected, rel=1e-4)
    assert problem.trivial_bound >= expected * (1 - 1e-12)
    certificate = jm.certify(problem, drawn_policy(rng, world))
    if certificate.valid:
        assert certificate.trivial_bound == problem.trivial_bound
    for _ in range(10):
        one, other = (
            jm.occupancy(world, drawn_policy(rng, world)).expectations(basis) for _ in range(2)
        )
        assert problem.cost_class.gap(one - other) <= problem.trivial_bound


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("seed", range(12))
def test_of_a_declared_target_it_is_the_largest_gap_to_that(name, seed):
    rng, world, basis = episodic(seed)
    target = rng.normal(size=3)
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(target), CLASSES[name](3))
    low, high = exact_box(world, basis)
    boxed = sigma(name, problem.cost_class.scale, low - target, high - target)
    expected = min(boxed, bounds.plain_bound(problem, target))
    assert problem.trivial_bound == pytest.approx(expected, rel=1e-4)
    for cost in [*basis.matrix.T, *-basis.matrix.T]:
        worst = jm.plan(world, cost).policy
        assert problem.gap(worst) <= problem.trivial_bound
        assert jm.certify(problem, worst).trivial_bound == problem.trivial_bound


@pytest.mark.parametrize("seed", range(8))
def test_of_a_known_cost_it_is_the_largest_cost_and_the_share_is_of_the_way_there(seed):
    rng, world, basis = episodic(seed, num_costs=1)
    forward = jm.Forward(world, basis)
    (low,), (high,) = exact_box(world, basis)
    assert forward.trivial_bound == pytest.approx(high, rel=1e-4, abs=1e-6)
    assert forward.trivial_bound >= high
    best, worst = (jm.plan(world, sign * basis.matrix[:, 0]).policy for sign in (1, -1))
    assert jm.certify(forward, best).share <= 1e-4
    assert not jm.certify(forward, best).weak
    assert jm.certify(forward, worst).share >= 1 - 1e-4
    assert jm.certify(forward, worst).weak
    certificate = jm.certify(forward, drawn_policy(rng, world))
    share = (certificate.bound - low) / (high - low)
    assert certificate.share == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("discount", [0.9, 0.9999])
@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_can_be_chosen_no_bound_is_vacuous_and_every_share_is_zero(
    name, discount, seed
):
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(6), size=6)
    world = jm.World(law, rng.dirichlet(np.ones(6)), discount)
    basis = jm.CostBasis(rng.uniform(0, 1, (6, 3)))
    policy = jm.Policy(np.ones((6, 1)))
    demos = jm.record(world, policy, trajectories=5, horizon=20, seed=seed)
    for expert in (demos, jm.ExpertExpectation(jm.occupancy(world, policy).expectations(basis))):
        problem = jm.Apprenticeship(world, basis, expert, CLASSES[name](3))
        assert 0 <= problem.trivial_bound <= 1e-9 * problem.gap_scale * world.effective_horizon
        certificate = jm.certify(problem, policy)
        if certificate.valid:
            assert (certificate.share, certificate.vacuous, certificate.weak) == (0.0, False, False)
            assert "all policies are alike" in certificate.summary()


def test_many_states_without_a_choice_are_alike_too():
    """Totals over a hundred thousand starts round more than plans do."""
    rng, states = np.random.default_rng(0), 100_000
    law = sparse.csr_array(
        (np.ones(states), rng.integers(states, size=states), np.arange(states + 1)),
        shape=(states, states),
    )
    world = jm.World(law, np.full(states, 1 / states), 0.9)
    basis = jm.CostBasis(rng.uniform(0, 1, (states, 1)))
    policy = jm.Policy(np.ones(states), world.pairs.offsets)
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([5.0]))
    truth = jm.ExpertExpectation(jm.occupancy(world, policy).expectations(basis))
    certificate = jm.certify(jm.Apprenticeship(world, basis, truth), policy)
    assert problem.trivial_bound == pytest.approx(abs(truth.values[0] - 5.0), abs=1e-6)
    assert (certificate.share, certificate.vacuous, certificate.weak) == (0.0, False, False)


def test_zero_costs_have_no_gap_at_all():
    world = jm.World(np.eye(2), [1, 0], 0.9)
    problem = jm.Apprenticeship(world, jm.CostBasis([[0.0], [0.0]]), jm.ExpertExpectation([0.0]))
    certificate = jm.certify(problem, jm.Policy(np.ones((2, 1))))
    assert (problem.trivial_bound, problem.gap_scale) == (0.0, 0.0)
    assert (certificate.share, certificate.vacuous) == (0.0, False)


def test_the_worst_policy_of_a_slippery_lake_is_vacuous():
    """One rare prize at the end of an episode: 2 N/(1 - discount) is forty times too large."""
    size, discount = 4, 0.95
    holes, goal = {5, 7, 11, 12}, 15
    law = np.zeros((16, 4, 16))
    for cell in range(16):
        if cell in holes or cell == goal:
            law[cell, :, cell] = 1.0
            continue
        row, column = divmod(cell, size)
        moves = [(0, -1), (1, 0), (0, 1), (-1, 0)]
        for action in range(4):
            for slip in (-1, 0, 1):
                down, right = moves[(action + slip) % 4]
                there = (
                    min(max(row + down, 0), 3) * size + min(max(column + right, 0), 3)
                )  # fmt: skip
                law[cell, action, there] += 1 / 3
    world = jm.World(law.reshape(64, 16), np.eye(16)[0], discount)
    prize = law[:, :, goal].copy()
    prize[goal] = 0.0
    best, worst = (jm.plan(world, sign * prize.ravel()).policy for sign in (-1, 1))
    basis = jm.CostBasis.from_rewards(prize.reshape(64, 1), names=["prize"])
    demos = jm.record(world, best, trajectories=300, horizon=200, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    certificate = jm.certify(problem, worst)
    most = jm.expected_cost(world, best, prize.ravel())
    assert certificate.valid
    assert certificate.trivial_bound == pytest.approx(most, rel=1e-3)
    assert certificate.trivial_bound < problem.gap_scale / 30
    assert certificate.vacuous
    assert "100 % of the largest possible gap, 0.1805" in certificate.summary()


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_plans_that_cannot_matter_are_left_out_and_change_nothing(name, declared, seed):
    rng, world, basis = episodic(seed, num_costs=6)
    basis = jm.CostBasis(basis.matrix * 10.0 ** np.linspace(0, -3, 6))
    expert = (
        jm.ExpertExpectation(rng.normal(size=6))
        if declared
        else jm.record(world, drawn_policy(rng, world), trajectories=5, horizon=20, seed=0)
    )
    problem = jm.Apprenticeship(world, basis, expert, CLASSES[name](6))
    lazy = problem.trivial_bound
    target = problem.exact_target
    ranges = attainable.attainable_ranges(world, basis)
    box = bounds._Box(problem, target, ranges)
    for cost in range(6):
        box.plan(cost)
    everything = min(box.largest(decided=True), bounds.plain_bound(problem, target))
    assert lazy == pytest.approx(everything, rel=1e-12)


def test_a_wide_class_needs_few_plans(monkeypatch):
    """The sum over the costs soon exceeds what bounded costs alone say."""
    world, basis, expert = jm.gallery.grid(8)
    demos = jm.record(world, expert, trajectories=5, horizon=20, seed=0)
    calls = []
    improve = attainable.improve
    monkeypatch.setattr(
        attainable, "improve", lambda *args, **more: calls.append(1) or improve(*args, **more)
    )
    plain = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    problem = jm.Apprenticeship(world, basis, plain)
    assert problem.trivial_bound == pytest.approx(problem.gap_scale)
    assert problem.trivial.ranges is None
    assert 0 < len(calls) <= basis.num_costs
    assert basis.num_costs == 16


def test_solvers_measure_their_tolerances_without_plans(monkeypatch):
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=5, horizon=20, seed=0)

    def planned(*_args, **_more):
        raise AssertionError("a plan was made")

    problem = jm.Apprenticeship(world, basis, demos)
    assert problem.target.size == basis.num_costs
    monkeypatch.setattr(attainable, "improve", planned)
    for solver in (jm.LinearProgram(), jm.ColumnGeneration()):
        assert jm.solve(problem, solver).status.name == "OPTIMAL"


def test_without_plans_bounded_costs_are_all_that_is_known(monkeypatch):
    _, world, basis = episodic(1)
    monkeypatch.setattr(attainable, "WORK_LIMIT", 0)
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(np.zeros(3)))
    assert problem.trivial.ranges is None
    assert problem.trivial_bound == bounds.plain_bound(problem, problem.target)
