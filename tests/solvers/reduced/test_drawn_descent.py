"""SGD-AL on drawn rows: the steps of explicit worlds, budgets, checkpoints and the regret bound."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import journeyman as jm
from journeyman.features.base import DrawnFeatures, every_action
from journeyman.problem import drawn
from journeyman.problem.drawn import LEARNING, DrawnReduced, block_stream
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.reduced import rows as row_module
from journeyman.solvers.reduced import stochastic_subgradient as module
from journeyman.solvers.reduced.descent import SubgradientSteps
from journeyman.solvers.reduced.kernels import advance
from journeyman.solvers.reduced.plain_descent import Motion
from journeyman.solvers.reduced.rows import RowTables

NETWORK = jm.gallery.queues(4, buffers=(3, 2, 2, 3), discount=0.9)
EXPLICIT, BASIS = NETWORK.explicit()
WALKS = jm.record(NETWORK.world, NETWORK.longer, trajectories=30, horizon=40, seed=0)
TARGET = jm.Apprenticeship(NETWORK.world, NETWORK.costs, WALKS).expectation.values
EXPERT = jm.ExpertExpectation(TARGET)
HEURISTICS = [NETWORK.longer, NETWORK.uniform, *jm.features.single_actions(NETWORK.world)]
FEATURES = jm.features.factored(NETWORK.world, NETWORK.radix, WALKS, HEURISTICS, 2)
STEPPED = jm.Apprenticeship(NETWORK.world, NETWORK.costs, EXPERT)
EVERYWHERE = every_action(np.arange(EXPLICIT.num_states), EXPLICIT.num_actions)
COLUMNS = jm.features.Features(FEATURES.rows(*EVERYWHERE).toarray())
LISTED = jm.Apprenticeship(EXPLICIT, BASIS, EXPERT)
SOLVER = jm.StochasticSubgradient(FEATURES, steps=900, seed=5)


@pytest.fixture(autouse=True)
def _fewer_rows(monkeypatch):
    monkeypatch.setattr(drawn, "MATCHING_BLOCK", 1 << 10)
    monkeypatch.setattr(module, "FRESH_ROWS", 1 << 11)
    monkeypatch.setattr(row_module, "BLOCK_ROWS", 1 << 12)


def same(one, other):
    runs = one.optimisation, other.optimisation
    traces = [[(point.step, point.loss, point.error) for point in run.trace] for run in runs]
    return (
        one.reduced.coefficients.tobytes() == other.reduced.coefficients.tobytes()
        and one.reduced.loss == other.reduced.loss
        and runs[0].regret_bound == runs[1].regret_bound
        and traces[0] == traces[1]
    )


def test_the_same_rows_lead_to_the_same_iterates():
    """An explicit world by its arrays, and as a stepped one: rows, weights and steps agree."""
    batch, steps = 8, 300
    motion = Motion(batch, module.CoordinateAdaptive().code, 0.02, 1.0, False, 2.0)
    stepped = Surrogate(DrawnReduced(STEPPED, FEATURES, seed=3))
    run = module.Descent(stepped, motion, seed=3)
    run.take(steps)
    explicit = Surrogate(jm.problem.Reduced(LISTED, COLUMNS), None, jm.solvers.FeatureMass())
    source = RowTables(explicit, batch, 0)
    exact = SubgradientSteps(explicit, source, motion).exact._replace(
        matching=np.array(stepped.reduced.matching, order="C")
    )
    rng = block_stream(3, LEARNING, 0)
    states, actions = FEATURES.draw(rng, 1 << 12)
    pair_at, state_at = EXPLICIT.pairs.index(states, actions), FEATURES.draw_flow(rng, 1 << 12)
    iterate = module.Descent(explicit, motion, seed=3).state.iterate
    count = steps * batch
    advance(0, pair_at[:count], state_at[:count], source.pairs, source.flow, exact, motion, iterate)
    for name, part in iterate._asdict().items():
        found = getattr(run.state.iterate, name)
        assert found == pytest.approx(part, rel=1e-8, abs=1e-10 * np.abs(part).max(initial=1.0))


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("rule", [jm.solvers.CoordinateAdaptive(), jm.solvers.InverseRoot()])
def test_a_run_in_pieces_is_the_run_in_one(tmp_path, replicas, rule):
    """Pieces end within blocks of 128 steps, and on their borders."""
    solver = replace(SOLVER, replicas=replicas, step_rule=rule)
    whole = jm.solve(STEPPED, solver)
    pieces = replace(solver, checkpoint=tmp_path / "state.npz")
    for steps in (100, 256, 257, 800):
        jm.solve(STEPPED, replace(pieces, steps=steps))
    again = jm.solve(STEPPED, pieces)
    assert whole.reduced.coefficients.tobytes() == again.reduced.coefficients.tobytes()
    assert whole.optimisation.regret_bound == again.optimisation.regret_bound
    assert whole.reduced.loss == again.reduced.loss


@pytest.mark.parametrize("replicas", [1, 3])
def test_interrupted_it_goes_on_where_it_was(tmp_path, replicas):
    solver = replace(SOLVER, replicas=replicas, steps=2000)
    resumable = replace(solver, checkpoint=tmp_path / "state.npz")

    def interrupt(event):
        if event.iteration > 600:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = jm.solve(STEPPED, resumable, observer=interrupt)
    assert stopped.status is jm.Status.INTERRUPTED
    assert 600 < stopped.optimisation.steps < 2000
    assert same(jm.solve(STEPPED, resumable), jm.solve(STEPPED, solver))


def test_executors_and_checkpoints_go_together(tmp_path):
    whole = jm.solve(STEPPED, replace(SOLVER, replicas=2))
    resumable = replace(SOLVER, replicas=2, checkpoint=tmp_path / "state.npz")
    with jm.Processes(2) as executor:
        jm.solve(STEPPED, replace(resumable, steps=512, executor=executor))
    found = jm.solve(STEPPED, resumable)
    assert found.optimisation.steps == 900
    assert np.isfinite(found.reduced.loss)
    assert whole.engine == found.engine


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    solver = replace(SOLVER, steps=200, checkpoint=tmp_path / "state.npz")
    jm.solve(STEPPED, solver)
    other = jm.features.factored(NETWORK.world, NETWORK.radix, WALKS, HEURISTICS[::-1], 2)
    changes = ({"batch": 16}, {"seed": 6}, {"replicas": 2}, {"features": other})
    for change in changes:
        with pytest.raises(jm.errors.InvalidFile, match="another run"):
            jm.solve(STEPPED, replace(solver, **change))
    dearer = jm.Apprenticeship(NETWORK.world, NETWORK.costs, jm.ExpertExpectation(TARGET + 1))
    with pytest.raises(jm.errors.InvalidFile, match="another run"):
        jm.solve(dearer, solver)


def test_the_regret_bound_is_that_of_the_sums():
    """Realised regret and noise by their formulas, from the iterates themselves."""
    solver = replace(
        SOLVER, steps=128, batch=32, average_power=1.0, step_rule=jm.solvers.InverseRoot()
    )
    answer = jm.solve(STEPPED, solver)
    found = answer.optimisation
    surrogate = answer.reduced.surrogate
    motion = Motion(32, solver.step_rule.code, solver.step_rule.rate_for(surrogate, 1.0, 128), 1.0,
                    False, 1.0)  # fmt: skip
    run, regret, total = module.Descent(surrogate, motion, 5), 0.0, 0.0
    slopes = np.zeros(FEATURES.num_features)
    for t in range(1, 129):
        here, before = run.state.iterate.theta.copy(), run.state.iterate.gradient_sum.copy()
        run.take(1)
        gradient = run.state.iterate.gradient_sum - before
        regret, slopes, total = regret + t * (gradient @ here), slopes + t * gradient, total + t
    assert found.realised_regret == pytest.approx(
        (regret + np.linalg.norm(slopes)) / total, rel=1e-6
    )
    penalties, features = surrogate.penalties, FEATURES
    sigma = np.hypot(
        penalties.pairs * features.pair_ratio, penalties.flow * features.flow_ratio
    ) / np.sqrt(32)
    squares = sum(t * t for t in range(1, 129))
    noise = 2 * sigma * np.sqrt(2 * np.log(1 / 0.05) * squares) / total
    assert found.noise == pytest.approx(noise, rel=1e-9)
    assert found.is_vacuous == (found.regret_bound >= STEPPED.gap_scale)
    assert "realised regret" in str(found)


def test_the_trace_has_estimates_and_their_errors():
    answer = jm.solve(STEPPED, SOLVER)
    point, penalties = answer.optimisation.trace[-1], answer.reduced.surrogate.penalties
    assert point.step == 900
    parts = point.matching + penalties.pairs * point.negativity + penalties.flow * point.flow
    assert point.loss == pytest.approx(parts)
    assert point.error > 0
    exact = Surrogate(jm.problem.Reduced(LISTED, COLUMNS))
    theta = answer.reduced.coefficients
    assert point.flow == pytest.approx(exact.flow_violation(theta), rel=0.3)
    assert point.bound == 0.0
    assert answer.status is jm.Status.STEP_LIMIT


# Budgets.


def spent_on(column, table=None):
    """A known cost of the network as a function: one of its own costs."""
    by_factor = {} if table is None else {0: table}
    return jm.CostFunctions(
        lambda states, actions: NETWORK.costs.at(states, actions)[:, [column]], ["spent"],
        lowest=0, highest=1, by_factor=by_factor,
    )  # fmt: skip


def expense(policy, cost):
    """<mu, d> of a policy of the network, exactly."""
    laws = policy.probabilities(np.arange(EXPLICIT.num_states))
    return float(cost @ jm.occupancy(EXPLICIT, jm.Policy(laws.ravel(), EXPLICIT.pairs)).measure)


def with_budget(at_most, column=0, table=None):
    budget = jm.Budget(cost=spent_on(column, table), at_most=at_most, name="queue")
    return jm.Apprenticeship(NETWORK.world, NETWORK.costs, EXPERT, constraints=budget)


@pytest.mark.parametrize("exact", [True, False])
def test_the_rows_of_a_budget_are_those_of_its_array(exact):
    table = NETWORK.costs.by_factor[0] if exact else None
    reduced = DrawnReduced(with_budget(5.0, table=table), FEATURES, seed=0)
    wanted = jm.problem.Reduced(LISTED, COLUMNS).matching[0]
    assert reduced.budget_rows.shape == (1, FEATURES.num_features)
    np.testing.assert_allclose(reduced.budget_rows[0], wanted, rtol=1e-12 if exact else 0.2)
    np.testing.assert_array_equal(reduced.budget_limits, [5.0])
    plain = DrawnReduced(STEPPED, FEATURES, seed=0)
    assert reduced.matching.tobytes() == plain.matching.tobytes()
    theta = np.full(FEATURES.num_features, 1 / FEATURES.num_features)
    _, spent = reduced.expected(theta)
    assert spent == pytest.approx(wanted @ theta, rel=1e-12 if exact else 0.1)
    assert (reduced.deviation(theta, 1.0) > reduced.deviation(theta, 0.0)) != exact


class Mixtures(DrawnFeatures):
    """Occupancies of policies in an explicit world that is treated as a stepped one."""

    def __init__(self, policies):
        self.world, self.num_features = EXPLICIT, len(policies)
        columns = [jm.occupancy(EXPLICIT, policy).measure for policy in policies]
        self.columns = csr_array(np.column_stack(columns))
        self.laws = [column / column.sum() for column in columns]

    def rows(self, states, actions):
        return self.columns[EXPLICIT.pairs.index(states, actions)]

    def draw(self, rng, count):
        chosen, pairs = rng.integers(self.num_features, size=count), np.empty(count, dtype=int)
        for k, law in enumerate(self.laws):
            own = chosen == k
            pairs[own] = rng.choice(law.size, size=own.sum(), p=law)
        return EXPLICIT.pairs.states[pairs], EXPLICIT.pairs.actions[pairs]


@pytest.mark.parametrize("kind", ["SGD-AL", "sampled"])
def test_a_budget_that_binds_is_kept(kind):
    """Mixtures of a dear policy, which is the expert, and of a cheap one: the budget shares."""
    cost = BASIS.on(EXPLICIT)[:, 0]
    plans = [jm.plan(EXPLICIT, sign * cost).policy for sign in (1, -1)]
    cheap, dear = (float(cost @ jm.occupancy(EXPLICIT, one).measure) for one in plans)
    limit, features = 0.5 * (cheap + dear), Mixtures([*plans, jm.Policy.uniform(EXPLICIT)])
    target = np.asarray(BASIS.on(EXPLICIT).T @ jm.occupancy(EXPLICIT, plans[1]).measure)
    penalty = jm.ExactPenalty(slack=limit - cheap)
    solver = {
        "SGD-AL": jm.StochasticSubgradient(features, penalty, steps=20_000, seed=0),
        "sampled": jm.solvers.SampledProgram(features, penalty=penalty, num_rows=4000, seed=0),
    }[kind]
    spending = []
    budget = jm.Budget(cost=spent_on(0), at_most=limit, name="queue")
    for constraints in ((), (budget,)):
        problem = jm.Apprenticeship(
            EXPLICIT, NETWORK.costs, jm.ExpertExpectation(target), constraints=constraints
        )
        answer = jm.solve(problem, solver)
        spending.append(expense(answer.policy, cost))
    assert cheap < limit < dear
    assert spending[0] == pytest.approx(dear, rel=0.02)
    assert 0.9 * limit < spending[1] <= 1.01 * limit


def test_loose_budgets_change_nothing_but_the_penalties():
    loose = with_budget(50.0, table=NETWORK.costs.by_factor[0])
    solver = replace(SOLVER, penalty=jm.solvers.SinglePenalty(30.0))
    first, second = (jm.solve(problem, solver).reduced for problem in (STEPPED, loose))
    assert first.coefficients.tobytes() == second.coefficients.tobytes()
    assert first.loss == second.loss


def test_the_thresholds_of_the_penalties_count_the_budgets():
    N, h = STEPPED.cost_class.pointwise_bound(STEPPED.basis.matrix), STEPPED.effective_horizon
    found = jm.ExactPenalty(slack=2.0).of(with_budget(3.0))
    price = 2 * N * h / 2.0
    assert found.budgets == pytest.approx(price)
    assert found.pairs == pytest.approx(2 * (N + price) * h)
    assert found.flow == pytest.approx((N + price) * h)


def test_budgets_that_cannot_be_kept_here_are_refused():
    with pytest.raises(jm.errors.InvalidSolver, match="slack"):
        jm.solve(with_budget(3.0), SOLVER)
    array = jm.Budget(cost=np.ones(EXPLICIT.num_pairs), at_most=1.0, name="array")
    with pytest.raises(jm.errors.InvalidProblem, match="'array' is an array"):
        jm.Apprenticeship(NETWORK.world, NETWORK.costs, EXPERT, constraints=[array])
    with pytest.raises(jm.errors.InvalidCosts, match="function of 5 costs"):
        jm.Budget(cost=NETWORK.costs, at_most=1.0)


def test_a_budget_by_a_function_is_that_of_its_array_in_an_explicit_world():
    by_function = jm.Budget(cost=spent_on(0), at_most=4.3)
    by_array = jm.Budget(cost=by_function.on(EXPLICIT), at_most=4.3)
    found = [
        jm.solve(jm.Apprenticeship(EXPLICIT, BASIS, EXPERT, constraints=budget)).value
        for budget in (by_function, by_array)
    ]
    assert found[0] == found[1]
