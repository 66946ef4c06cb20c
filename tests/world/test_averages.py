"""Average costs: totals of the reduction are long-run averages, by programs of their own."""

import numpy as np
import pytest
from scipy.optimize import linprog

import journeyman as jm
from journeyman.errors import InvalidDemonstrations, InvalidProblem, InvalidWorld
from journeyman.world.averages import restored, split

TIGHT = 1e-7


KINDS = ("shared", "sparse", "periodic", "transient", "absorbing", "nearly apart")


def unichain_world(seed, *, ragged=False):
    """Every policy has one recurrent class, whatever the kind; state 0 is in it, or is shared."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 14))
    counts = rng.integers(1, 4, size=size) if ragged else np.full(size, rng.integers(2, 4))
    states, kind = np.repeat(np.arange(size), counts), KINDS[seed % len(KINDS)]
    rows = rng.dirichlet(np.full(size, rng.choice([0.1, 0.5, 2.0])), size=states.size)
    if kind == "shared":
        rows = 0.9 * rows + 0.1 * rng.dirichlet(np.ones(size))
    if kind == "sparse":
        rows[rows < 0.3] = 0.0
        rows[:, 0] += 0.05
    if kind == "periodic":  # up by one or two states, and back to the first
        rows = np.eye(size)[np.minimum(states + 1, size - 1)]
        rows += rng.uniform(size=(states.size, 1)) * np.eye(size)[np.minimum(states + 2, size - 1)]
        rows[states == size - 1] = np.eye(size)[0]
    if kind == "transient":  # of no return
        rows[states <= size // 2, size // 2 + 1 :] = 0.0
        rows[:, 0] += 0.05
    if kind == "absorbing":
        rows[:, 0] += 0.05
        rows[states == 0] = np.eye(size)[0]
    if kind == "nearly apart":
        far = (states < size // 2)[:, np.newaxis] != (np.arange(size) < size // 2)
        rows = np.where(far, 0.0, rows + 0.01)
        rows[:, 0] += np.where(states < size // 2, 0.0, 1e-4)
        rows[:, -1] += np.where(states < size // 2, 1e-4, 0.0)
    rows /= rows.sum(axis=1, keepdims=True)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    start = rng.dirichlet(np.ones(size))
    return jm.World(rows, start, 0.9, choice_offsets=offsets), rng


def naive_average(world, policy, rows):
    """Of the columns of `rows`, from the stationary distribution, by a dense system."""
    law = policy.on(world)
    chain = np.zeros((world.num_states, world.num_states))
    for pair, state in enumerate(world.pairs.states):
        chain[state] += law[pair] * world.transition[[pair]].toarray()[0]
    system = np.vstack([chain.T - np.eye(world.num_states), np.ones(world.num_states)])
    right = np.append(np.zeros(world.num_states), 1.0)
    stationary = np.linalg.lstsq(system, right, rcond=None)[0]
    return (law * stationary[world.pairs.states]) @ rows


def flow_rows(world):
    """(B - P)' p = 0 and sum p = 1."""
    spread = np.eye(world.num_states)[world.pairs.states]
    balance = (spread - world.transition.toarray()).T
    return np.vstack([balance, np.ones(world.num_pairs)]), np.append(
        np.zeros(world.num_states), 1.0
    )


@pytest.mark.parametrize(
    "seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 100))]
)
def test_exact_programs_agree_with_one_over_stationary_distributions(seed):
    world, rng = unichain_world(seed, ragged=seed % 2 == 1)
    averaged = world.with_average_cost()
    cost = rng.normal(size=world.num_pairs)
    matrix, right = flow_rows(world)
    best = linprog(cost, A_eq=matrix, b_eq=right, method="highs").fun
    planned = jm.plan(averaged, cost)
    assert float(averaged.initial @ planned.values) == pytest.approx(best, abs=TIGHT)
    answer = jm.solve(jm.Forward(averaged, cost))
    assert answer.value == pytest.approx(best, abs=TIGHT)
    assert answer.lower_bound <= best + 1e-9  # as exactly as HiGHS balances flows
    basis = jm.CostBasis(rng.uniform(-1, 1, size=(world.num_pairs, 3)))
    target, ball = rng.uniform(-0.5, 0.5, size=3), seed % 3 > 0
    ends = [(jm.LinearProgram(), jm.ColumnGeneration(tolerance=1e-8)), (jm.LinearProgram(),)]
    for budgets, solvers in zip((None, between(world, rng)), ends, strict=True):
        given = () if budgets is None else (jm.Budget(*budgets, "wear"),)
        kind = jm.InfinityBall() if ball else jm.Simplex()
        problem = jm.Apprenticeship(averaged, basis, jm.ExpertExpectation(target), kind, given)
        known = least_gap(world, basis.matrix, target, budgets, ball=ball)
        for solver in solvers:
            found = jm.solve(problem, solver)
            assert found.value == pytest.approx(known, abs=TIGHT)
            assert found.lower_bound <= known + 1e-9


def between(world, rng):
    """A cost, and a limit of its average that most policies exceed."""
    cost = rng.uniform(size=world.num_pairs)
    matrix, right = flow_rows(world)
    low, high = (sign * linprog(sign * cost, A_eq=matrix, b_eq=right).fun for sign in (1, -1))
    return cost, low + 0.3 * (high - low) + 1e-6


def least_gap(world, rows, target, budget, *, ball):
    """Over stationary distributions p: sum |rows' p - target|, or the largest entry of it."""
    matrix, right = flow_rows(world)
    count = rows.shape[1]
    slack = np.eye(count) if ball else np.ones((count, 1))
    above = [np.hstack([rows.T, -slack]), *([np.hstack([-rows.T, -slack])] if ball else [])]
    limits = [target, *([-target] if ball else [])]
    if budget is not None:
        above.append(np.append(budget[0], np.zeros(slack.shape[1]))[np.newaxis])
        limits.append([budget[1]])
    return linprog(
        np.append(np.zeros(world.num_pairs), np.ones(slack.shape[1])),
        A_ub=np.vstack(above),
        b_ub=np.concatenate(limits),
        A_eq=np.hstack([matrix, np.zeros((len(matrix), slack.shape[1]))]),
        b_eq=right,
        bounds=[(0, None)] * world.num_pairs + [(None, None)] * slack.shape[1],
    ).fun


@pytest.mark.parametrize("seed", range(0, 24, 4))
def test_the_reduced_program_over_all_pairs_agrees_too(seed):
    world, rng = unichain_world(seed)
    averaged = world.with_average_cost()
    basis = jm.CostBasis(rng.uniform(-1, 1, size=(world.num_pairs, 3)))
    target = rng.uniform(-0.5, 0.5, size=3)
    problem = jm.Apprenticeship(averaged, basis, jm.ExpertExpectation(target))
    every = jm.features.Features(np.eye(averaged.num_pairs) * averaged.effective_horizon)
    found = jm.solve(problem, jm.ReducedProgram(every))
    known = least_gap(world, basis.matrix, target, None, ball=True)
    assert found.value == pytest.approx(known, abs=1e-6)
    assert found.lower_bound <= known + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_every_policy_has_its_averages_and_relative_values(seed):
    world, rng = unichain_world(1000 + seed)
    averaged = world.with_average_cost()
    made = averaged.averages
    rows = rng.normal(size=(world.num_pairs, 4))
    policy = jm.Policy(rng.dirichlet(np.ones(world.num_actions), size=world.num_states))
    visits = jm.occupancy(averaged, policy)
    truth = naive_average(world, policy, rows)
    np.testing.assert_allclose(visits.expectations(jm.CostBasis(rows)), truth, atol=1e-9)
    stationary = made.stationary(visits.measure)
    np.testing.assert_allclose(stationary @ rows, truth, atol=1e-9)
    assert stationary.sum() == pytest.approx(1.0)
    planned = jm.plan(averaged, rows[:, 0])
    average, relative = made.relative_values(planned.values)
    bellman = world.pairs.smallest(rows[:, 0] + world.transition @ relative)
    np.testing.assert_allclose(bellman, average + relative, atol=1e-9)
    assert made.restart @ relative == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_times_bound_every_policy_and_relative_values_differ_by_memory(seed):
    world, rng = unichain_world(2000 + seed)
    made = world.with_average_cost().averages
    kept, _ = split(world.transition, made.restart)
    assert (world.pairs.spread(made.times) - kept @ made.times >= 1 - 1e-12).all()
    cost = rng.uniform(0, 1, size=world.num_pairs)
    policy = jm.Policy(rng.dirichlet(np.ones(world.num_actions), size=world.num_states))
    law = policy.on(world)
    chain = np.array([
        law[world.pairs.states == state] @ world.transition[world.pairs.states == state].toarray()
        for state in range(world.num_states)
    ])  # fmt: skip
    own = np.add.reduceat(law * cost, world.pairs.offsets[:-1])
    average = naive_average(world, policy, cost)
    system = np.vstack([np.eye(len(chain)) - chain, np.ones(len(chain))])
    relative = np.linalg.lstsq(system, np.append(own - average, 0.0), rcond=None)[0]
    assert np.ptp(relative) <= made.memory * np.ptp(cost) + 1e-9


def test_a_restart_law_is_a_state_or_what_laws_share():
    world, _ = unichain_world(7)
    for state in range(world.num_states):
        try:
            averaged = world.with_average_cost(state)
        except InvalidWorld:
            continue
        assert averaged.averages.restart[state] == 1.0
    shared = world.transition.min(axis=0).toarray().ravel()
    law = shared / shared.sum()
    assert world.with_average_cost(law).averages.longest <= 1 / shared.sum() * (1 + 1e-9)


def two_islands():
    """Two states that can be kept for ever each: the average depends on the start."""
    return jm.World(
        [[1, 0], [0.5, 0.5], [0, 1], [0.5, 0.5]], [0.5, 0.5], 0.9, choice_offsets=[0, 2, 4]
    )


def test_worlds_whose_averages_depend_on_the_start_are_refused_with_their_states():
    with pytest.raises(InvalidWorld, match="a policy can avoid state 0 for ever"):
        two_islands().with_average_cost()
    with pytest.raises(InvalidWorld, match="from state 0 a policy can avoid state 1 for ever"):
        two_islands().with_average_cost(restart=1)


def test_one_class_without_a_state_that_all_policies_visit_is_refused_by_name():
    """Every policy has one cycle, of two states or three; no state is on all of them."""
    rows = np.eye(3)[[1, 2, 0, 2, 0, 1]]
    names = ["sunny", "cloudy", "rainy"]
    world = jm.World(rows, [1, 0, 0], 0.9, state_names=names)
    everywhere = "from states sunny, cloudy, rainy a policy can avoid"
    with pytest.raises(InvalidWorld, match=f"{everywhere} state sunny for ever; no state is vis"):
        world.with_average_cost()
    with pytest.raises(InvalidWorld, match=f"{everywhere} state rainy for ever"):
        world.with_average_cost("rainy")
    with pytest.raises(InvalidWorld, match="restarts by a law over states sunny, cloudy"):
        world.with_average_cost([0.5, 0.5, 0.0])
    with pytest.raises(InvalidWorld, match="'foggy' is the name of no state"):
        world.with_average_cost("foggy")


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (jm.World([[0, 1], [0, 1]], [1, 0], 1.0, sink=1), "discount 1"),
        (jm.World([[0, 1], [1, 0]], [1, 0], 0.9).with_horizon(3), "a horizon"),
        (jm.World([[0, 1], [1, 0]], [1, 0], 0.9).with_average_cost(), "averages already"),
        (jm.World([[0, 1], [1, 0]], [1, 0], 0.9, transition_error=0.1), "estimates"),
    ],
)
def test_what_has_no_averages_is_refused(world, message):
    with pytest.raises(InvalidWorld, match=message):
        world.with_average_cost()


def test_a_periodic_world_has_averages():
    world = jm.World([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [1, 0, 0], 0.5).with_average_cost()
    plan = jm.plan(world, [0.0, 3.0, 6.0])
    assert float(world.initial @ plan.values) == pytest.approx(3.0)


def test_worlds_and_policies_are_saved_and_read_again(tmp_path):
    world, _ = unichain_world(3, ragged=True)
    averaged = world.with_average_cost()
    averaged.save(tmp_path / "world.npz")
    again = jm.World.load(tmp_path / "world.npz")
    assert repr(again) == repr(averaged)
    np.testing.assert_array_equal(again.averages.times, averaged.averages.times)
    assert abs(again.transition - averaged.transition).max() == 0
    with pytest.raises(InvalidWorld, match="some policy expects more steps to a restart"):
        restored(world, averaged.averages.restart, 0.9 * averaged.averages.times)
    policy = jm.Policy.uniform(averaged)
    acting = averaged.averages.policy(policy)
    np.testing.assert_array_equal(acting.on(world), policy.on(averaged)[: world.num_pairs])
    np.testing.assert_array_equal(acting.on(averaged), policy.on(averaged))


def example():
    world, rng = unichain_world(12)
    averaged = world.with_average_cost()
    basis = jm.CostBasis(rng.uniform(0, 1, size=(world.num_pairs, 3)))
    expert = jm.plan(averaged, basis.matrix @ [0.5, 0.3, 0.2]).policy
    return averaged, basis, expert


def test_records_are_steps_of_the_base_world():
    world, basis, expert = example()
    demos = jm.record(world, expert, trajectories=4, horizon=5000, seed=0)
    assert demos.states.max() < world.averages.num_states
    truth = jm.occupancy(world, expert).expectations(basis)
    found = jm.ExpertExpectation.from_demonstrations(demos, basis, world)
    rows = basis.matrix[
        world.averages.base.pairs.index(demos.step_states, demos.actions, ValueError)
    ]
    means = np.add.reduceat(rows, demos.offsets[:-1]) / 5000
    np.testing.assert_allclose(found.values, means.mean(axis=0))
    assert np.abs(found.values - truth).max() < 0.05
    acting = world.averages.policy(expert)
    same = jm.record(world.averages.base, acting, trajectories=4, horizon=5000, seed=0)
    np.testing.assert_array_equal(same.states, demos.states)


def test_what_is_about_episodes_is_refused():
    world, basis, expert = example()
    demos = jm.record(world, expert, trajectories=4, horizon=50, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    for solver in (jm.solvers.MaximumEntropy(), jm.solvers.MaximumLikelihood()):
        with pytest.raises(InvalidProblem, match="average costs"):
            jm.solve(problem, solver)
    with pytest.raises(InvalidProblem, match="average costs"):
        jm.Apprenticeship(world, basis, demos, expert_is=jm.Rational(regret_per_step=0.1))
    with pytest.raises(InvalidProblem, match="average costs"):
        jm.certify(problem, expert, evaluation=jm.Rollouts(10, 10))
    with pytest.raises(InvalidDemonstrations, match="average costs"):
        jm.ExpertExpectation.from_demonstrations(
            demos, basis, world, method=jm.demonstrations.ControlVariate()
        )
    with pytest.raises(InvalidWorld, match="average costs"):
        world.with_horizon(3)


def test_stochastic_subgradients_reach_what_features_allow():
    world, basis, expert = example()
    rng = np.random.default_rng(0)
    count = world.averages.base.num_actions
    laws = rng.dirichlet(np.ones(count), size=(6, world.averages.num_states))
    policies = [jm.Policy(law) for law in laws] + [expert]
    features = jm.features.occupancies(world, policies)
    demos = jm.record(world, expert, trajectories=20, horizon=2000, seed=0)
    problem = jm.Apprenticeship(world, basis, demos, jm.Simplex())
    least = jm.solve(problem, jm.ReducedProgram(features))
    found = jm.solve(problem, jm.StochasticSubgradient(features, steps=200_000), seed=0)
    assert least.value <= found.value <= least.value + 0.02 * problem.gap_scale
    assert found.lower_bound <= least.value + 1e-9
