"""Flow on average over the shares of the columns: what it is, and what it says of the policy."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import journeyman as jm
from journeyman.features.base import every_action
from journeyman.policy.function_policy import FeaturePolicy
from journeyman.problem.drawn import LEARNING, DrawnReduced
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.reduced.sampled_program import draw, sampled_loss

NETWORK = jm.gallery.queues(4, buffers=(4, 3, 3, 4), discount=0.9)
EXPLICIT, BASIS = NETWORK.explicit()
WALKS = jm.record(NETWORK.world, NETWORK.longer, trajectories=30, horizon=60, seed=0)
FEATURES = jm.features.factored(
    NETWORK.world, NETWORK.radix, WALKS, [NETWORK.longer, NETWORK.lbfs, NETWORK.uniform], 2
)
STATES = np.arange(EXPLICIT.num_states)
PHI = FEATURES.rows(*every_action(STATES, 4)).toarray()
SHARES = FEATURES.shares(STATES).toarray()
D = np.asarray(EXPLICIT.flow.matrix().T @ PHI)


def problem_of(cost_class: jm.costs.CostClass) -> jm.Apprenticeship:
    return jm.Apprenticeship(NETWORK.world, NETWORK.costs, WALKS, cost_class)


def misfit(values: np.ndarray, limit: float) -> float:
    """min over |b| <= limit of the largest |values - SHARES b|."""
    states, columns = SHARES.shape
    ones = np.ones((states, 1))
    found = linprog(
        np.append(np.zeros(columns), 1.0),
        A_ub=np.block([[SHARES, -ones], [-SHARES, -ones]]), b_ub=np.append(values, -values),
        bounds=[(-limit, limit)] * columns + [(0, None)],
    )  # fmt: skip
    return float(found.fun)


def test_shares_are_what_columns_have_of_a_state_and_sum_up_to_one() -> None:
    np.testing.assert_allclose(SHARES.sum(axis=1), 1.0, rtol=1e-12)
    mass = PHI.reshape(EXPLICIT.num_states, 4, -1).sum(axis=1)
    np.testing.assert_allclose(SHARES, mass / mass.sum(axis=1, keepdims=True), rtol=1e-10)


def test_rows_of_many_blocks_are_the_average_flow() -> None:
    reduced = DrawnReduced(problem_of(jm.InfinityBall()), FEATURES, 0)
    blocks = [reduced.averaged(500, LEARNING, number) for number in range(60)]
    found = np.array([block.flow_rows.toarray() for block in blocks])
    error = found.std(axis=0, ddof=1) / np.sqrt(60) + 1e-9
    assert (np.abs(found.mean(axis=0) - SHARES.T @ D) < 6 * error).all()
    targets = np.array([block.flow_target for block in blocks])
    error = targets.std(axis=0, ddof=1) / np.sqrt(60) + 1e-9
    assert (np.abs(targets.mean(axis=0) - SHARES.T @ EXPLICIT.initial) < 6 * error).all()
    np.testing.assert_allclose(blocks[0].flow_law, 1 / 500)


@pytest.mark.parametrize("seed", range(4))
def test_the_policy_is_at_most_as_bad_as_the_theorem_says(seed: int) -> None:
    """Every term by enumeration; every vertex of the class is a cost."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(FEATURES.num_features, 0.3))
    horizon, flow = EXPLICIT.effective_horizon, D @ theta - EXPLICIT.initial
    policy = jm.Policy(FeaturePolicy(FEATURES, theta).probabilities(STATES))
    psi = np.asarray(BASIS.on(EXPLICIT).toarray() if sparse.issparse(BASIS.on(EXPLICIT))
                     else BASIS.on(EXPLICIT))  # fmt: skip
    size = np.abs(psi).max()
    averaged = size * horizon * np.abs(SHARES.T @ flow).sum()
    violated = np.abs(flow).sum()
    assert averaged <= size * horizon * violated * (1 + 1e-12)
    visits = jm.occupancy(EXPLICIT, policy).measure
    chosen = policy.probabilities(STATES)
    step = sparse.csr_array(
        sparse.block_diag([chosen[[x]] for x in STATES], format="csr") @ EXPLICIT.transition
    )
    system = np.eye(STATES.size) - EXPLICIT.discount * step.toarray()
    for cost in psi.T:
        values = np.linalg.solve(system, (chosen * cost.reshape(-1, 4)).sum(axis=1))
        off = misfit(values, size * horizon)
        difference = abs((visits - PHI @ theta) @ cost)
        assert difference <= averaged + violated * off + 1e-8
        exact = abs((EXPLICIT.initial - D @ theta) @ values)
        assert difference == pytest.approx(exact, abs=1e-7)


def test_a_program_asks_for_flow_on_average_only() -> None:
    problem = problem_of(jm.Simplex())
    solver = jm.solvers.SampledProgram(FEATURES, seed=0, num_rows=2000, averaged_flow=True)
    found = jm.solve(problem, solver).reduced
    plain = jm.solve(problem, jm.solvers.SampledProgram(FEATURES, seed=0, num_rows=2000)).reduced
    assert found is not None
    assert plain is not None
    assert plain.averaged_loss is None
    assert found.averaged_loss is not None
    assert found.loss > plain.loss
    surrogate = Surrogate(DrawnReduced(problem, FEATURES, 0))
    rows = draw(surrogate, 2000, np.random.default_rng(0), averaged_flow=True)
    ours, theirs = (sampled_loss(surrogate, rows, one.coefficients) for one in (found, plain))
    assert ours <= theirs + 1e-6
    assert found.fault == ""


def test_it_needs_rows_that_are_drawn() -> None:
    features = jm.features.Features(PHI)
    with pytest.raises(jm.errors.InvalidSolver, match="averaged_flow"):
        jm.solvers.SampledProgram(features, seed=0, averaged_flow=True)
