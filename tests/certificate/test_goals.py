"""Problems with discount 1: the exact program, certificates and audits."""

import numpy as np
import pytest
from scipy.optimize import linprog

import journeyman as jm
from checker.forging import rehash
from journeyman.certificate.expert_estimates import PlainMean, cut_length, expert_estimates
from journeyman.certificate.terms import total
from naive.episodes_to_goals import as_world, is_proper, random_goal_world, times, visits

STATES, ACTIONS, COSTS = 6, 3, 2
CLASSES = [jm.InfinityBall(), jm.Simplex(), jm.EuclideanBall()]


class Setting:
    """A random world with loops, costs, and an expert whose expectations are known."""

    def __init__(self, seed, spare=1.3):
        rng = np.random.default_rng(seed)
        self.P, self.initial = random_goal_world(seed, STATES, ACTIONS, loops=0.7)
        self.law = rng.dirichlet(np.ones(ACTIONS), size=STATES + 1)
        assert is_proper(self.P, self.law)
        self.steps = spare * float(times(self.P, self.law).max())
        self.world = as_world(self.P, self.initial, steps_at_most=self.steps)
        costs = rng.uniform(-1, 1, (STATES + 1, ACTIONS, COSTS))
        costs[-1] = 0
        self.costs = costs.reshape(-1, COSTS)
        self.basis = jm.CostBasis(self.costs)
        self.truth = self.expectations(self.law)

    def expectations(self, law):
        return self.costs.T @ visits(self.P, self.initial, law).ravel()

    def of(self, policy):
        return self.expectations(policy.on(self.world).reshape(-1, ACTIONS))

    def record(self, seed, count=30, horizon=1000):
        return jm.record(
            self.world, jm.Policy(self.law), trajectories=count, horizon=horizon, seed=seed
        )


@pytest.mark.parametrize("seed", range(6))
class TestExactProgram:
    def test_agrees_with_an_independent_program(self, seed):
        place = Setting(seed)
        target = place.truth * 3 + 1
        problem = jm.Apprenticeship(place.world, place.basis, jm.ExpertExpectation(target))
        answer = jm.solve(problem)
        pairs = STATES * ACTIONS
        flow = np.repeat(np.eye(STATES), ACTIONS, axis=0)
        flow -= place.P[:STATES, :, :STATES].reshape(pairs, STATES)
        eye, none = np.eye(COSTS), np.zeros((STATES, 2 * COSTS))
        found = linprog(
            np.append(np.zeros(pairs), np.ones(2 * COSTS)),
            A_eq=np.vstack([
                np.hstack([flow.T, none]), np.hstack([place.costs[:pairs].T, -eye, eye])
            ]),
            b_eq=np.append(place.initial[:STATES], target),
            A_ub=np.append(np.ones(pairs), np.zeros(2 * COSTS))[np.newaxis],
            b_ub=[place.steps],
        )  # fmt: skip
        assert answer.lower_bound == pytest.approx(found.fun, abs=1e-5)
        assert answer.value == pytest.approx(found.fun, abs=1e-5)
        assert answer.occupancy.steps <= place.steps * (1 + 1e-12)
        exact = np.abs(place.of(answer.policy) - target).sum()
        assert answer.value == pytest.approx(exact, abs=1e-9)

    @pytest.mark.parametrize("cost_class", CLASSES, ids=lambda one: type(one).__name__)
    def test_the_expert_can_be_matched(self, seed, cost_class):
        place = Setting(seed)
        expert = jm.ExpertExpectation(place.truth)
        answer = jm.solve(jm.Apprenticeship(place.world, place.basis, expert, cost_class))
        assert answer.status is jm.solvers.Status.OPTIMAL
        assert answer.value <= 1e-6

    def test_budgets(self, seed):
        place = Setting(seed)
        wanted = 0.95 * visits(place.P, place.initial, place.law).sum()
        steps = jm.Budget(np.append(np.ones(STATES), 0.0), at_most=wanted, name="steps")
        expert = jm.ExpertExpectation(place.truth)
        problem = jm.Apprenticeship(place.world, place.basis, expert, constraints=[steps])
        answer = jm.solve(problem)
        certificate = jm.certify(problem, answer)
        assert answer.occupancy.steps <= wanted * (1 + 1e-6)
        assert certificate.budgets[0].spent >= answer.occupancy.steps


@pytest.mark.parametrize("cost_class", CLASSES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("seed", range(3))
class TestCertificates:
    @pytest.mark.parametrize("horizon", [3, 1000])
    def test_a_saved_run_passes_its_audit(self, seed, cost_class, horizon, tmp_path):
        place = Setting(seed)
        demos = place.record(seed, horizon=horizon)
        problem = jm.Apprenticeship(place.world, place.basis, demos, cost_class)
        certificate = jm.certify(problem, jm.solve(problem))
        assert certificate.valid
        assert certificate.bound >= cost_class.gap(place.of(certificate.policy) - place.truth)
        certificate.save(tmp_path / "run")
        assert jm.audit(tmp_path / "run").passed

    def test_a_smaller_bound_is_found_out(self, seed, cost_class, tmp_path):
        """The declared steps enter every bound: with fewer the claims no longer follow."""
        place = Setting(seed)
        demos = place.record(seed)
        problem = jm.Apprenticeship(place.world, place.basis, demos, cost_class)
        jm.certify(problem, jm.solve(problem)).save(tmp_path / "run")
        fewer = as_world(place.P, place.initial, steps_at_most=place.steps / 2)
        fewer.save(tmp_path / "run" / "world.npz")
        rehash(tmp_path / "run")
        assert not jm.audit(tmp_path / "run").passed


def test_a_proven_bound_on_steps_needs_no_premise_and_is_audited(tmp_path):
    P, initial = random_goal_world(1)
    world = as_world(P, initial)
    basis = jm.CostBasis(np.append(np.linspace(0, 1, 6), 0.0))
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=50, horizon=200, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    certificate = jm.certify(problem, jm.solve(problem))
    assert not any("more steps" in one.name for one in certificate.premises)
    certificate.save(tmp_path / "run")
    assert jm.audit(tmp_path / "run").passed


def test_times_that_prove_nothing_are_found_out(tmp_path):
    P, initial = random_goal_world(1)
    world = as_world(P, initial)
    problem = jm.Forward(world, np.append(np.ones(6), 0.0))
    jm.certify(problem, jm.solve(problem)).save(tmp_path / "run")
    forged = as_world(P, initial)
    vars(forged)["_longest_times"] = world._longest_times * 0.99
    forged.save(tmp_path / "run" / "world.npz")
    rehash(tmp_path / "run")
    found = jm.audit(tmp_path / "run")
    assert any("exceeded by some policy" in str(one) for one in found.findings)


def test_forward_totals_are_certified():
    """The cost -1 of every step until the end with probability 1 % is -100."""
    world = jm.World([[0.99, 0.01], [1, 0], [0, 1], [0, 1]], [1, 0], 1, sink=1, steps_at_most=100)
    problem = jm.Forward(world, [-1.0, 0, 0, 0])
    answer = jm.solve(problem)
    assert answer.value == pytest.approx(-100, abs=1e-4)
    assert answer.lower_bound == pytest.approx(-100, abs=1e-4)
    assert jm.certify(problem, answer).bound == pytest.approx(-100, abs=1e-4)


def test_a_slow_policy_is_not_certified():
    place = Setting(0, spare=1.0)
    taken = float(visits(place.P, place.initial, place.law).sum())
    short = as_world(place.P, place.initial, steps_at_most=taken * 0.9)
    problem = jm.Apprenticeship(short, place.basis, jm.ExpertExpectation(place.truth))
    with pytest.raises(jm.errors.InvalidProblem, match="larger steps_at_most"):
        jm.certify(problem, jm.Policy(place.law))


def test_premises_and_draws_are_refused():
    place = Setting(0)
    demos = place.record(0)
    with pytest.raises(jm.errors.InvalidProblem, match="discount below 1"):
        jm.Apprenticeship(place.world, place.basis, demos, expert_is=jm.Deterministic())
    problem = jm.Apprenticeship(place.world, place.basis, demos)
    with pytest.raises(jm.errors.InvalidProblem, match="discount below 1"):
        jm.certify(problem, jm.clone(demos, place.world), evaluation=jm.Rollouts(10, 10))


def test_records_are_cut_where_no_record_decides():
    """Longer episodes count as cut off after L steps, and lack up to M more."""
    world = jm.World([[0.5, 0.5], [0, 1]], [1, 0], 1, sink=1)
    long = jm.Demonstrations.from_arrays([[0] * 40 + [1]], [[0] * 40], terminated=[True])
    problem = jm.Apprenticeship(world, jm.CostBasis([1.0, 0.0]), long)
    mean = PlainMean.of(problem)
    most = world.effective_horizon
    assert cut_length(most, 1) == np.ceil(most)
    assert mean.totals.tolist() == [[np.ceil(most)]]
    assert mean.missing.tolist() == [most]
    assert mean.horizon == np.ceil(most) + most


def test_a_clone_is_certified():
    place = Setting(1, spare=3.0)
    demos = place.record(0, count=200)
    problem = jm.Apprenticeship(place.world, place.basis, demos)
    answer = jm.solve(problem, jm.solvers.BehaviourCloning())
    certificate = jm.certify(problem, answer)
    assert certificate.bound >= np.abs(place.of(answer.policy) - place.truth).sum()
    assert answer.value == pytest.approx(np.abs(place.of(answer.policy) - problem.target).sum())


def test_what_follows_a_record_that_was_cut_off_is_paid_for():
    """A step costs 1 and 10 are expected; records of one step miss nine of them."""
    world = jm.World([[0.9, 0.1], [0, 1]], [1, 0], 1, sink=1)
    demos = jm.Demonstrations.from_arrays([[0, 0]] * 500, [[0]] * 500, terminated=[False] * 500)
    problem = jm.Apprenticeship(world, jm.CostBasis([1.0, 0.0]), demos)
    for estimate in expert_estimates(problem, 0.05):
        terms = {one.name: one.value for one in estimate.terms}
        assert abs(estimate.values[0] - 10) <= total(estimate.terms)
        assert abs(estimate.values[0] - 10) > terms["sampling"]


def test_words_are_about_episodes_and_policies_in_time():
    place = Setting(2)
    problem = jm.Apprenticeship(place.world, place.basis, place.record(0, horizon=3))
    certificate = jm.certify(problem, jm.solve(problem))
    text = certificate.table() + certificate.summary() + certificate.advice()
    assert "per episode" in text
    assert "per step" not in text
    assert f"no policy of at most {place.steps:.6g} steps has a larger gap" in text
    assert "until episodes end" in text
    assert "Hoeffding)" not in text
    with pytest.raises(jm.errors.InvalidProblem, match="discount below 1"):
        jm.certificate.demonstrations_needed(problem, 0.1, 0.05)
