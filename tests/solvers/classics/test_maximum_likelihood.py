"""Maximum likelihood: derivatives, an independent nested fixed point, what is not identified."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.policy.policy_evaluation import factorise
from journeyman.solvers.classics import maximum_likelihood
from journeyman.solvers.classics.maximum_likelihood import Decisions, _Sample
from journeyman.testing import Shape, random_world
from naive.horizon import backward_values
from naive.likelihood import estimate, log_laws, log_likelihood, soft_values

ENDED = (jm.Status.CONVERGED, jm.Status.OPTIMAL)


def simulated(seed, *, shape=Shape.DENSE, num_costs=3, discount=0.9, trajectories=40, horizon=25):
    """A problem whose expert is soft-optimal for known weights."""
    rng = np.random.default_rng(seed)
    world = random_world(rng, shape, num_states=6, discount=discount)
    basis = jm.CostBasis(rng.uniform(-1, 1, (world.num_pairs, num_costs)))
    true = rng.normal(size=num_costs)
    expert = jm.policy.soft_plan(world, basis.on(world) @ true).policy
    demos = jm.record(world, expert, trajectories=trajectories, horizon=horizon, seed=seed)
    return jm.Apprenticeship(world, basis, demos), true


def dense_of(problem):
    world = problem.world
    shape = (world.num_states, world.num_actions)
    counts = np.bincount(problem.demonstrations.pairs_in(world), minlength=world.num_pairs)
    return (
        world.transition.toarray().reshape(*shape, -1), problem.cost_matrix.reshape(*shape, -1),
        world.discount, counts.reshape(shape),
    )  # fmt: skip


def sample_of(problem):
    return _Sample([Decisions(problem.world, problem.basis, problem.demonstrations)])


@pytest.mark.parametrize("shape", [Shape.DENSE, Shape.RAGGED, Shape.ABSORBING, Shape.PERIODIC])
@pytest.mark.parametrize("size", [0.3, 3.0])
def test_derivatives_are_those_of_finite_differences(shape, size):
    problem, _ = simulated(1, shape=shape)
    sample = sample_of(problem)
    rng = np.random.default_rng(0)
    point = sample.at(size * rng.normal(size=3))
    for direction in rng.normal(size=(3, 3)):
        ahead, behind = (sample.at(point.weights + s * 1e-4 * direction) for s in (1, -1))
        slope = (ahead.value - behind.value) / 2e-4
        assert slope == pytest.approx(point.gradient @ direction, rel=1e-5, abs=1e-4)
        turn = (behind.gradient - ahead.gradient) / 2e-4
        product = point.observed @ direction
        np.testing.assert_allclose(product, turn, rtol=1e-4, atol=1e-5 * np.abs(turn).max() + 1e-4)


def test_fishers_information_is_the_observed_one_for_expected_counts():
    problem, _ = simulated(2)
    sample = sample_of(problem)
    member, weights = sample.members[0], np.array([1.0, -0.5, 0.3])
    law = np.exp(sample.at(weights).soft[0].log_law)
    member.counts = problem.world.pairs.spread(member.visits) * law
    member.taken = np.flatnonzero(member.counts)
    member.flow = problem.world.flow.apply(member.counts)
    point = sample.at(weights)
    np.testing.assert_allclose(point.observed, point.fisher, rtol=1e-9)
    np.testing.assert_allclose(point.gradient, 0, atol=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_estimates_are_those_of_an_independent_nested_fixed_point(seed):
    discount = (0.5, 0.9, 0.99, 0.9999)[seed % 4]
    problem, _ = simulated(seed, discount=discount, num_costs=2 + seed % 2)
    answer = jm.solve(problem, jm.solvers.MaximumLikelihood())
    assert answer.status in ENDED
    found = answer.likelihood
    weights, value = estimate(*dense_of(problem))
    assert found.log_likelihood == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(answer.recovered, weights, rtol=0, atol=1e-4)
    assert log_likelihood(answer.recovered, *dense_of(problem)) == pytest.approx(
        found.log_likelihood, abs=1e-7
    )


def test_a_constant_cost_and_equal_costs_are_not_identified():
    problem, _ = simulated(3, num_costs=2)
    psi = problem.cost_matrix
    basis = jm.CostBasis(
        np.column_stack([psi, psi[:, 0] + 2 * psi[:, 1], np.ones(len(psi))]),
        names=["a", "b", "both", "constant"],
    )
    more = jm.Apprenticeship(problem.world, basis, problem.demonstrations)
    answer = jm.solve(more, jm.solvers.MaximumLikelihood())
    plain = jm.solve(problem, jm.solvers.MaximumLikelihood())
    found = answer.likelihood
    assert answer.status in ENDED
    assert found.log_likelihood == pytest.approx(plain.likelihood.log_likelihood, abs=1e-7)
    assert found.num_identified == 2
    assert len(found.remarks) == 2
    assert any(one.endswith(": constant") for one in found.remarks)
    assert any("both" in one and " a" in one and " b" in one for one in found.remarks)
    assert np.isinf(found.standard_errors).all()
    assert answer.recovered[3] == pytest.approx(0, abs=1e-9)
    along = np.array([1.0, 2.0, -1.0, 0.0])
    assert answer.recovered @ along == pytest.approx(0, abs=1e-6)


def test_weights_that_do_not_take_part_keep_their_errors():
    problem, _ = simulated(3, num_costs=2)
    basis = jm.CostBasis(np.column_stack([problem.cost_matrix, np.ones(problem.world.num_pairs)]))
    more = jm.Apprenticeship(problem.world, basis, problem.demonstrations)
    found = jm.solve(more, jm.solvers.MaximumLikelihood()).likelihood
    plain = jm.solve(problem, jm.solvers.MaximumLikelihood()).likelihood
    np.testing.assert_allclose(found.standard_errors[:2], plain.standard_errors, rtol=1e-6)
    np.testing.assert_allclose(found.t_values[:2], plain.t_values, rtol=1e-5)
    assert found.standard_errors[2] == np.inf
    assert found.t_values[2] == 0
    assert "0.0000" not in found.table()


def test_experts_who_never_err_have_no_finite_weights():
    world, basis, _ = jm.gallery.grid(4, macro_cells=2)
    weights = np.array([1.0, 0.4, 0.7, 0.0])
    expert = jm.plan(world, basis.on(world) @ weights).policy
    demos = jm.record(world, expert, trajectories=20, horizon=30, seed=0)
    answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.MaximumLikelihood())
    sure = jm.World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    always = jm.Demonstrations([0] * 6, [1] * 5, [0, 5])
    problem = jm.Apprenticeship(sure, jm.CostBasis([[1.0], [0.0]]), always)
    certain = jm.solve(problem, jm.solvers.MaximumLikelihood())
    assert certain.status is jm.Status.UNBOUNDED
    assert certain.recovered[0] > 5
    assert "rises along it for ever" in certain.log
    assert certain.likelihood.standard_errors.tolist() == [np.inf]
    assert answer.status in (*ENDED, jm.Status.UNBOUNDED)


def test_nothing_to_decide_is_nothing_to_estimate():
    problem, _ = simulated(4, shape=Shape.SINGLE_ACTION)
    answer = jm.solve(problem, jm.solvers.MaximumLikelihood())
    assert answer.recovered.tolist() == [0, 0, 0]
    assert answer.likelihood.log_likelihood == 0
    assert answer.likelihood.num_identified == 0


def test_a_likelihood_ratio_needs_the_same_decisions_and_a_part_of_the_basis():
    problem, _ = simulated(5)
    part = jm.Apprenticeship(
        problem.world, jm.CostBasis(problem.cost_matrix[:, :1] + 0.5), problem.demonstrations
    )
    other, _ = simulated(6)
    solver = jm.solvers.MaximumLikelihood()
    larger, restricted, foreign = (jm.solve(one, solver) for one in (problem, part, other))
    test = jm.solvers.likelihood_ratio(larger, restricted)
    gain = larger.likelihood.log_likelihood - restricted.likelihood.log_likelihood
    assert test.statistic == pytest.approx(2 * gain)
    assert test.degrees_of_freedom == 2
    assert test.p_value == pytest.approx(np.exp(-test.statistic / 2))
    with pytest.raises(jm.errors.InvalidProblem, match="no combination"):
        jm.solvers.likelihood_ratio(restricted, larger)
    with pytest.raises(jm.errors.InvalidProblem, match="different decisions"):
        jm.solvers.likelihood_ratio(larger, foreign)
    with pytest.raises(jm.errors.InvalidProblem, match="nothing to test"):
        jm.solvers.likelihood_ratio(larger, larger)
    with pytest.raises(jm.errors.InvalidProblem, match="no likelihood"):
        jm.solvers.likelihood_ratio(larger, jm.solve(problem, jm.LinearProgram()))


def test_all_decisions_count_alike_where_maximum_entropy_discounts_them():
    """On complete records weighted by discount^t both find the same cost: one-step episodes."""
    world = jm.World(
        [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 0.0], 0.9, choice_offsets=[0, 2, 3], sink=1
    )
    basis = jm.CostBasis([[1.0], [0.0], [0.0]])
    demos = jm.Demonstrations(
        [0, 1] * 8, [0, 1, 1, 0, 1, 1, 1, 1], np.arange(9), terminated=[True] * 8
    )
    problem = jm.Apprenticeship(world, basis, demos)
    by_entropy = jm.solve(problem, jm.solvers.MaximumEntropy(tolerance=1e-9)).recovered
    by_likelihood = jm.solve(problem, jm.solvers.MaximumLikelihood()).recovered
    np.testing.assert_allclose(by_entropy, by_likelihood, atol=1e-5)
    assert by_likelihood[0] == pytest.approx(np.log(3), abs=1e-6)


@pytest.mark.parametrize(
    "wrong", [{"tolerance": 0}, {"starts": 0}, {"max_iterations": 0}, {"start": (np.nan,)}]
)
def test_hyperparameters_are_checked(wrong):
    with pytest.raises(jm.errors.InvalidSolver):
        jm.solvers.MaximumLikelihood(**wrong)


def test_a_start_has_one_weight_per_cost():
    problem, _ = simulated(1)
    with pytest.raises(jm.errors.InvalidSolver, match="start has 1 weights"):
        jm.solve(problem, jm.solvers.MaximumLikelihood(start=(1.0,)))


def padded(world, basis, demos):
    """Dense arrays with the same number of actions everywhere."""
    pairs = world.pairs
    shape = (world.num_states, pairs.max_actions)
    laws, costs = np.zeros((*shape, world.num_states)), np.zeros((*shape, basis.num_costs))
    offered, counts = np.zeros(shape, dtype=bool), np.zeros(shape)
    where = (pairs.states, pairs.positions)
    laws[where] = world.continuation.toarray()
    costs[where] = basis.on(world)
    offered[where] = True
    np.add.at(counts, tuple(part[demos.pairs_in(world)] for part in where), 1.0)
    return laws, costs, offered, counts


def naive_log_likelihood(weights, members):
    total = 0.0
    for world, basis, demos in members:
        laws, costs, offered, counts = padded(world, basis, demos)
        cost = np.where(offered, costs @ weights, np.inf)
        taken = counts > 0
        total += counts[taken] @ log_laws(laws, cost, world.discount)[taken]
    return total


def to_goal(seed, *, num_states=7):
    """A random world of discount 1, from whose every pair the goal may be reached at once."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(num_states), 3 * num_states)
    rows[-3:] = np.eye(num_states)[-1]
    rows = np.delete(rows, [-2, -1], axis=0)
    offsets = np.append(np.arange(0, 3 * num_states, 3), len(rows))
    initial = np.append(np.full(num_states - 1, 1 / (num_states - 1)), 0.0)
    world = jm.World(rows, initial, 1.0, choice_offsets=offsets, sink=num_states - 1)
    psi = rng.uniform(0.2, 1, (world.num_pairs, 2))
    psi[-1] = 0.0
    return world, jm.CostBasis(psi)


def members_of(seed, count=3):
    found = []
    for place in range(count):
        world, basis = to_goal(100 * seed + place)
        expert = jm.policy.soft_plan(world, basis.on(world) @ [2.0, 3.0]).policy
        demos = jm.record(world, expert, trajectories=60, horizon=200, seed=place)
        found.append((world, basis, demos))
    return found


def roads(destinations, *, trips=150, links=60):
    found = []
    for destination in destinations:
        example = jm.gallery.road_network(
            links,
            destination=destination,
            discount=1,
            weights=(0.8, 0.5, 0.7, 0.6),
            steps_at_most=1e3,
        )
        world, basis, expert = example
        demos = jm.record(world, expert, trajectories=trips, horizon=1000, seed=destination)
        found.append((world, basis, demos))
    return found


@pytest.mark.parametrize("made", [members_of, lambda seed: roads([3 * seed, 3 * seed + 1])])
@pytest.mark.parametrize("seed", [0, 1])
def test_goals_at_discount_one_alone_and_in_families(made, seed):
    members = made(seed)
    found = jm.solvers.MaximumLikelihood().estimate(members)
    assert found.status is jm.Status.CONVERGED
    weights = found.weights
    assert naive_log_likelihood(weights, members) == pytest.approx(found.log_likelihood, abs=1e-7)
    for direction in np.eye(weights.size):
        ahead, behind = (
            naive_log_likelihood(weights + s * 1e-3 * direction, members) for s in (1, -1)
        )
        assert ahead < found.log_likelihood
        assert behind < found.log_likelihood
        slope = (ahead - behind) / 2e-3
        assert abs(slope) * found.standard_errors.max() < 1e-2
    curvature = [
        [
            sum(
                s * r * naive_log_likelihood(weights + 1e-3 * (s * one + r * other), members)
                for s in (1, -1)
                for r in (1, -1)
            )
            / -4e-6
            for one in np.eye(weights.size)
        ]
        for other in np.eye(weights.size)
    ]
    errors = np.sqrt(np.diag(np.linalg.inv(curvature)))
    np.testing.assert_allclose(found.standard_errors, errors, rtol=1e-2)


def test_families_have_likelihood_ratios():
    members = roads([0, 1])
    part = [
        (world, jm.CostBasis(np.asarray(basis.matrix)[:, :3], names=basis.names[:3]), demos)
        for world, basis, demos in members
    ]
    answers, estimates = [], []
    for given in (members, part):
        family = jm.problem.Family(given)
        answers.append(jm.solve(family.problem(), jm.solvers.MaximumLikelihood()))
        estimates.append(jm.solvers.MaximumLikelihood().estimate(family))
    found = jm.solvers.likelihood_ratio(*answers)
    gained = estimates[0].log_likelihood - estimates[1].log_likelihood
    assert found.statistic == pytest.approx(2 * gained, abs=1e-6)
    assert found.degrees_of_freedom == 1


def test_a_shared_factor_changes_nothing(monkeypatch):
    members = roads([0, 1, 2])
    shared = jm.solvers.MaximumLikelihood().estimate(members)
    monkeypatch.setattr(maximum_likelihood, "MOST_DIFFERING", -1)
    alone = jm.solvers.MaximumLikelihood().estimate(members)
    missing = maximum_likelihood._Missing.DIGITS
    monkeypatch.setattr(maximum_likelihood, "network_soft", lambda *_: missing)
    planned = jm.solvers.MaximumLikelihood().estimate(members)
    for other in (alone, planned):
        assert other.log_likelihood == pytest.approx(shared.log_likelihood, abs=1e-8)
        np.testing.assert_allclose(other.weights, shared.weights, rtol=1e-6)
        np.testing.assert_allclose(other.standard_errors, shared.standard_errors, rtol=1e-6)


def arriving(world, basis, goal):
    """The roads with a link that is the destination itself: nothing leads out of it."""
    here, there = world.pairs.states, world.transition.indices
    kept = (here != goal) & (there != world.sink)
    kept[np.flatnonzero(here == goal)[0]] = True
    rows = world.transition.toarray()[kept][:, : world.sink]
    psi = basis.on(world)[kept].copy()
    rows[here[kept] == goal], psi[here[kept] == goal] = np.eye(world.sink)[goal], 0.0
    sizes = np.bincount(here[kept], minlength=world.sink + 1)[: world.sink]
    stay = here[kept] < world.sink
    initial = np.full(world.sink, 1 / world.sink)
    made = jm.World(
        rows[stay], initial, 1.0, choice_offsets=np.concatenate([[0], np.cumsum(sizes)]),
        sink=goal, steps_at_most=1e3,
    )  # fmt: skip
    return made, jm.CostBasis(psi[stay], basis.names)


def test_destinations_that_are_links_share_a_factor_by_few_rows(monkeypatch):
    base, basis, _ = jm.gallery.road_network(60, discount=1, steps_at_most=1e3)
    members = []
    for goal in (5, 20, 41):
        world, psi = arriving(base, basis, goal)
        expert = jm.policy.soft_plan(world, psi.on(world) @ [0.8, 0.5, 0.7, 0.6]).policy
        demos = jm.record(world, expert, trajectories=150, horizon=1000, seed=goal)
        members.append((world, psi, demos))
    factored = []
    monkeypatch.setattr(
        maximum_likelihood, "factorise", lambda matrix: factored.append(1) or factorise(matrix)
    )
    found = jm.solvers.MaximumLikelihood(starts=1).estimate(members)
    assert found.status is jm.Status.CONVERGED
    shared = len(factored)
    value = naive_log_likelihood(found.weights, members)
    assert value == pytest.approx(found.log_likelihood, abs=1e-7)
    monkeypatch.setattr(maximum_likelihood, "MOST_DIFFERING", -1)
    alone = jm.solvers.MaximumLikelihood(starts=1).estimate(members)
    assert len(factored) - shared > 2 * shared
    np.testing.assert_allclose(alone.weights, found.weights, rtol=1e-6)


def test_soft_plans_with_discount_one_or_a_refusal():
    world, basis = to_goal(7)
    cost = basis.on(world) @ [1.0, 1.0]
    found = jm.policy.soft_plan(world, cost)
    laws, _, offered, _ = padded(world, basis, jm.Demonstrations([0, 0], [0], [0, 1]))
    table = np.where(offered, 0.0, np.inf)
    table[world.pairs.states, world.pairs.positions] = cost
    np.testing.assert_allclose(found.values, soft_values(laws, table, 1.0), atol=1e-10)
    assert found.error < 1e-9
    with pytest.raises(jm.errors.InvalidCosts, match="entropy of going round"):
        jm.policy.soft_plan(
            jm.gallery.road_network(60, discount=1, steps_at_most=1e3).world, np.zeros(60 + 1)
        )
    warm = jm.policy.soft_plan(world, 1.1 * cost, warm_start=found)
    again = jm.policy.soft_plan(world, 1.1 * cost)
    np.testing.assert_allclose(warm.values, again.values, atol=1e-10)


def test_maximum_entropy_is_for_discounts_below_one():
    problem = jm.Apprenticeship(*members_of(1)[0])
    with pytest.raises(jm.errors.InvalidProblem, match="MaximumEntropy is for worlds"):
        jm.solve(problem, jm.solvers.MaximumEntropy())


def test_one_world_to_a_goal_is_solved_as_every_problem():
    problem = jm.Apprenticeship(*members_of(1)[0])
    answer = jm.solve(problem, jm.solvers.MaximumLikelihood())
    assert answer.status in ENDED
    assert answer.lower_bound <= answer.value
    assert answer.likelihood.weights.tolist() == answer.recovered.tolist()


def test_a_family_by_its_members_or_as_one_problem():
    family = jm.problem.Family(members_of(1))
    solver = jm.solvers.MaximumLikelihood()
    apart, together = solver.estimate(family), jm.solve(family.problem(), solver)
    assert together.status in ENDED
    assert together.likelihood.log_likelihood == pytest.approx(apart.log_likelihood, abs=1e-8)
    np.testing.assert_allclose(together.recovered, apart.weights, rtol=1e-6)


def test_members_are_refused_by_their_place():
    members = members_of(1)
    world, basis, demos = members[1]
    solver = jm.solvers.MaximumLikelihood()
    with pytest.raises(jm.errors.InvalidProblem, match="no members"):
        solver.estimate([])
    with pytest.raises(jm.errors.InvalidProblem, match="member 1 is no \\(World"):
        solver.estimate([members[0], (basis, world, demos)])
    other = jm.CostBasis(basis.matrix, ["x", "y"])
    with pytest.raises(jm.errors.InvalidProblem, match="member 1 has the costs x, y"):
        solver.estimate([members[0], (world, other, demos)])


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_scale_of_costs_does_not_matter(factor):
    problem, _ = simulated(8)
    scales = np.array([1.0, factor, 1 / factor])
    scaled = jm.Apprenticeship(
        problem.world, jm.CostBasis(problem.cost_matrix * scales), problem.demonstrations
    )
    one, other = (jm.solve(each, jm.solvers.MaximumLikelihood()) for each in (problem, scaled))
    assert one.status in ENDED
    assert other.status in ENDED
    np.testing.assert_allclose(other.recovered * scales, one.recovered, rtol=1e-6)
    np.testing.assert_allclose(other.likelihood.t_values, one.likelihood.t_values, rtol=1e-5)


@pytest.mark.parametrize("discount", [1.0, 0.7])
@pytest.mark.parametrize("shape", [Shape.RAGGED, Shape.ABSORBING])
def test_horizons_without_any_reduction(shape, discount):
    rng = np.random.default_rng(3)
    base = random_world(rng, shape, num_states=5)
    basis = jm.CostBasis(rng.uniform(-1, 1, (base.num_pairs, 2)))
    world = base.with_horizon(6, discount=discount)
    expert = jm.policy.soft_plan(world, basis.on(world) @ [1.0, -2.0]).policy
    demos = jm.record(world, expert, trajectories=150, horizon=6, seed=0)
    answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.MaximumLikelihood())
    found = answer.likelihood
    assert answer.status in ENDED
    steps = demos.step_states // base.num_states
    at = demos.step_states % base.num_states
    taken = base.pairs.index(at, demos.actions)

    def naive(weights):
        cost = basis.on(base) @ weights
        values = backward_values(
            base.transition.toarray(), base.pairs.offsets, cost, 6, discount, temperature=1.0
        )
        later = np.vstack([values[1:], np.zeros(base.num_states)])
        ahead = cost + discount * later @ base.transition.T
        return (values[steps, at] - ahead[steps, taken]).sum()

    assert naive(found.weights) == pytest.approx(found.log_likelihood, abs=1e-8)
    eye = np.eye(2)
    for direction in eye:
        ahead, behind = (naive(found.weights + s * 1e-4 * direction) for s in (1, -1))
        assert abs(ahead - behind) / 2e-4 < 1e-3
    curvature = [
        [
            sum(
                s * r * naive(found.weights + 1e-3 * (s * one + r * other))
                for s in (1, -1)
                for r in (1, -1)
            )
            / -4e-6
            for one in eye
        ]
        for other in eye
    ]
    errors = np.sqrt(np.diag(np.linalg.inv(curvature)))
    np.testing.assert_allclose(found.standard_errors, errors, rtol=1e-3)


def test_records_that_came_to_rest_before_the_horizon_are_over():
    base = jm.World([[0, 1], [0, 1], [0, 1], [0, 1]], [1, 0], 0.9)
    basis = jm.CostBasis([[1.0], [0.0], [0.0], [0.0]])
    demos = jm.Demonstrations([0, 1] * 8, [0, 1, 1, 0, 1, 1, 1, 1], np.arange(9), [True] * 8)
    problem = jm.Apprenticeship(base.with_horizon(4), basis, demos)
    found = jm.solve(problem, jm.solvers.MaximumLikelihood()).likelihood
    assert found.num_decisions == 8
    assert found.weights[0] == pytest.approx(np.log(3), abs=1e-6)
