"""Certificates of the regret under the expert's own cost: words, requirements, saving, advice."""

import json

import numpy as np
import pytest

import journeyman as jm
from journeyman.errors import InvalidInput, NotCertified
from problem.test_budget_prices import contradictory
from rational_worlds import acted, grid, instance, optimum


def nine_by_nine(count=9, kind="optimal", seed=5, cost_class=None, premise=None):
    rng = np.random.default_rng(seed)
    world, basis = grid(9, 8, rng)
    chosen = jm.Simplex() if cost_class is None else cost_class
    weights = chosen.admit(rng.dirichlet(np.ones(8)))
    values, advantages = optimum(world, basis.on(world) @ weights)
    demos = acted(world, advantages, kind, rng, count, 100)
    premise = jm.Rational(regret_per_step=0) if premise is None else premise
    apprentice = jm.learn(world, basis, demos, cost_class=cost_class, expert_is=premise)
    regret = weights @ apprentice.certificate.expectations - world.initial @ values
    return apprentice, regret


def test_learn_takes_the_minimax_policy_and_certifies_its_regret():
    apprentice, regret = nine_by_nine()
    certificate, answer = apprentice.certificate, apprentice.answer
    assert answer.status is jm.Status.OPTIMAL
    assert "premise" in answer.reason
    assert regret <= certificate.regret_bound < 0.1 * certificate.regret.trivial_bound
    assert answer.regret.lower_bound <= certificate.regret_bound
    assert answer.regret.bound == pytest.approx(certificate.regret_bound, rel=1e-4, abs=1e-6)
    assert certificate.regret_bound < certificate.regret.uniform
    assert certificate.regret.failure_probability == 0
    assert "regret <= " in repr(certificate)


def test_without_a_premise_about_a_cost_nothing_is_said_about_one():
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=5, horizon=20, seed=0)
    certificate = jm.learn(world, basis, demos).certificate
    assert certificate.regret is None
    assert certificate.regret_bound is None
    assert certificate.to_dict()["regret"] is None
    assert "own cost" not in certificate.summary() + certificate.table()
    with pytest.raises(NotCertified, match="nothing is declared"):
        certificate.require(regret=1.0)


def test_either_bound_can_be_required():
    certificate = nine_by_nine()[0].certificate
    bound = certificate.regret_bound
    assert certificate.require(regret=1.01 * bound) is certificate
    assert certificate.require(gap=certificate.bound, regret=bound) is certificate
    with pytest.raises(NotCertified, match="regret under the expert's own cost"):
        certificate.require(regret=0.9 * bound)
    with pytest.raises(NotCertified, match="a gap of"):
        certificate.require(0.5 * certificate.bound, regret=bound)
    with pytest.raises(InvalidInput, match="nothing is required"):
        certificate.require()


def test_words_say_which_bound_is_which():
    certificate = nine_by_nine()[0].certificate
    for text in (certificate.summary(), certificate.table(), certificate._repr_html_()):
        assert "own cost" in text
    assert "than the best policy" in certificate.summary()
    assert "every recorded action is optimal" in certificate.summary()
    assert json.loads(certificate.to_json())["regret"]["bound"] == certificate.regret_bound


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.Simplex()], ids=repr)
def test_a_refuted_premise_certifies_nothing_about_the_cost(cost_class):
    apprentice, _ = nine_by_nine(9, "mistakes", cost_class=cost_class)
    certificate = apprentice.certificate
    regret = certificate.regret
    assert not regret.valid
    assert certificate.valid, "the other bound does not rest on it"
    assert regret.bound == regret.trivial_bound
    assert regret.next_start() is None
    for shown in (certificate.table(), jm.report.as_html(apprentice)):
        assert "worst cost" not in shown, "what does not hold is not added up"
    with pytest.raises(NotCertified, match="recorded steps suffice to show it"):
        certificate.require(regret=regret.trivial_bound)
    assert "Nothing is certified about the expert's own cost" in certificate.summary()
    assert "NOT VALID" in certificate.table()
    demos = apprentice.problem.demonstrations
    assert all(0 <= step < demos.lengths[episode] for episode, step in regret.contradiction)
    assert apprentice.answer.regret is None, "a game over nothing was not played"


def test_mistakes_that_are_declared_are_allowed_for():
    premise = jm.Rational(regret_per_step=0.3)
    apprentice, regret = nine_by_nine(9, "mistakes", premise=premise)
    assert apprentice.certificate.regret.valid
    assert regret <= apprentice.certificate.regret_bound


def test_an_expert_who_is_nearly_optimal_is_known_by_statistics():
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=2000, horizon=150, seed=0)
    premise = jm.NearlyOptimal(regret=0.1)
    certificate = jm.learn(world, basis, demos, expert_is=premise).certificate
    assert certificate.regret.failure_probability == 0.05
    names = [term.name for term in certificate.regret.terms]
    assert "sampling" in names
    assert certificate.regret_bound <= certificate.bound + 0.1 + 1e-6
    exact = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    known = jm.learn(world, basis, exact, expert_is=premise).certificate
    assert known.regret.failure_probability == 0
    assert known.regret_bound == pytest.approx(0.1, abs=1e-6)


def test_the_advice_names_the_start_that_adds_most():
    certificate = nine_by_nine(5)[0].certificate
    start = certificate.regret.next_start()
    assert f"from state {start}," in certificate.advice()
    assert certificate.regret.next_start(among=[3, 4]) in (3, 4)


def test_advised_demonstrations_halve_the_bound_sooner_than_random_ones():
    """The loop that the advice is for: a demonstration from where it says, again and again."""
    needed = {"advised": [], "random": []}
    for seed in range(3):
        for way, counts in needed.items():
            counts.append(demonstrations_to_half(seed, way))
    assert sum(needed["advised"]) < 0.7 * sum(needed["random"]), needed


def demonstrations_to_half(seed, way, most=40):
    rng = np.random.default_rng([seed, 7])
    world, basis = grid(7, 6, rng)
    best = jm.plan(world, basis.on(world) @ rng.dirichlet(np.ones(6))).policy
    demos = jm.record(world, best, trajectories=5, horizon=60, seed=seed)
    first = None
    for count in range(most):
        problem = jm.Apprenticeship(
            world, basis, demos, jm.Simplex(), expert_is=jm.Rational(regret_per_step=0)
        )
        regret = jm.certify(problem, jm.solve(problem)).regret
        first = regret.bound if first is None else first
        if regret.bound <= first / 2:
            return count
        start = regret.next_start() if way == "advised" else int(rng.integers(world.num_states))
        there = jm.World(world.transition, np.eye(world.num_states)[start], world.discount)
        more = jm.record(there, best, trajectories=1, horizon=60, seed=rng)
        demos = jm.Demonstrations.concatenate([demos, more])
    return most


@pytest.mark.parametrize("seed", range(0, 26, 5))
def test_certified_regrets_hold(seed):
    one = instance(seed)
    problem = one.problem
    apprentice = jm.learn(
        problem.world, problem.basis, problem.demonstrations, cost_class=problem.cost_class,
        expert_is=problem.expert_is,
    )  # fmt: skip
    assert one.regret(apprentice.policy) <= apprentice.certificate.regret_bound + 1e-9


def test_one_demonstration_of_a_nearly_optimal_expert_gives_a_number_that_is_derived_again(
    tmp_path,
):
    """The radius from the sample variance is infinite there: such an estimate has no price."""
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=1, horizon=20, seed=0)
    apprentice = jm.learn(world, basis, demos, expert_is=jm.NearlyOptimal(regret=0.1))
    regret = apprentice.certificate.regret
    assert 0 < regret.bound <= regret.trivial_bound
    assert 0 < regret.uniform <= regret.trivial_bound
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()


def test_a_policy_that_is_not_evaluated_exactly_has_no_regret_and_says_why():
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=5, horizon=20, seed=0)
    premise = jm.Rational(regret_per_step=0.1)
    problem = jm.Apprenticeship(world, basis, demos, expert_is=premise)
    mixture = jm.PolicyMixture([expert, jm.Policy.uniform(world)], 20, 20, 0)
    certificate = jm.certify(problem, jm.solve(problem, mixture))
    assert certificate.regret_bound is None
    with pytest.raises(NotCertified, match="not evaluated exactly"):
        certificate.require(regret=100)


def test_a_time_limit_leaves_a_policy_and_a_bound_that_holds():
    problem = nine_by_nine()[0].problem
    answer = jm.solve(problem, jm.solvers.RationalProgram(), time_limit=1e-6)
    assert answer.status is jm.Status.TIME_LIMIT
    regret = jm.certify(problem, answer).regret
    assert regret.bound <= regret.trivial_bound
    assert answer.regret.bound <= 1.001 * regret.trivial_bound


def test_hyperparameters_and_problems_without_a_premise_are_refused():
    for wrong in ({"tolerance": 0}, {"slack": -1}, {"failure_probability": 1}, {"time_limit": 0}):
        with pytest.raises(jm.errors.InvalidSolver):
            jm.solvers.RationalProgram(**wrong)
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=2, horizon=20, seed=0)
    with pytest.raises(jm.errors.InvalidProblem, match="no premise of the problem"):
        jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.RationalProgram())


def test_without_slack_the_policy_is_a_minimax_one():
    problem = nine_by_nine()[0].problem
    least = jm.solve(problem, jm.solvers.RationalProgram(slack=0)).regret
    assert least.bound == pytest.approx(least.lower_bound, rel=1e-5)
    assert least.bound <= jm.solve(problem).regret.bound <= 1.011 * least.bound


def test_where_episodes_end_soon_an_optimal_expert_is_not_doubted():
    """What is left of the class is measured against what policies can lose, not 2N/(1 - discount):
    two states with a short and a long way to the end, where nothing costs anything."""
    law = np.eye(3)[[1, 2, 2, 2, 2, 2]]
    world = jm.World(law, [1, 0, 0], 0.99)
    basis = jm.CostBasis(np.eye(3)[:, :2])
    demos = jm.Demonstrations.from_arrays([[0, 2]] * 3, [[1]] * 3)
    problem = jm.Apprenticeship(
        world, basis, demos, jm.Simplex(), expert_is=jm.Rational(regret_per_step=0)
    )
    certificate = jm.certify(problem, jm.Policy.uniform(world))
    regret = certificate.regret
    assert regret.uniform < 0.05 * regret.trivial_bound
    assert regret.uniform > 0.05 * certificate.trivial_bound
    assert "suggests" not in regret.premises[0].detail


def test_each_claim_has_its_own_line():
    summary = nine_by_nine()[0].certificate.summary()
    gap, regret = summary.splitlines()
    assert gap.startswith("With probability 0.95 the policy costs")
    assert regret.startswith("Under the expert's own cost")


def corridor(**absorbing):
    """Two ways to an end that costs nothing more, of which one is cheap."""
    laws = np.zeros((3, 2, 3))
    laws[0, 0, 1] = laws[0, 1, 2] = laws[1, :, 2] = laws[2, :, 2] = 1.0
    world = jm.World(laws.reshape(6, 3), [1, 0, 0], 0.9)
    costs = np.zeros((6, 2))
    costs[:4] = [[1, 0], [0, 1], [1, 0], [1, 0]]
    return world, jm.CostBasis(costs + absorbing.get("costs", 0.0))


@pytest.mark.parametrize(("length", "expected"), [(2, False), (40, True)])
def test_steps_in_absorbing_states_are_named_where_they_count(length, expected):
    """They allow more in total for the same average."""
    world, basis = corridor()
    states = [0, 1] + [2] * (length - 1)
    demos = jm.Demonstrations.from_arrays([states], [[0] * length])
    given = jm.Rational(regret_per_step=0.01)
    found = jm.learn(world, basis, demos, cost_class=jm.Simplex(), expert_is=given).certificate
    assert ("where nothing can be chosen" in found.advice()) == expected
    if expected:
        assert "38 of 40 recorded steps" in found.advice()
        assert "allows 0.4 in total" in found.advice()
        assert "0.01 a step of the others is 0.0005 a step of all" in found.advice()


def test_absorbing_states_whose_actions_differ_in_cost_are_a_choice():
    costs = np.zeros((6, 2))
    costs[5] = [0, 1]
    world, basis = corridor(costs=costs)
    demos = jm.Demonstrations.from_arrays([[0, 1] + [2] * 39], [[0] * 40])
    given = jm.Rational(regret_per_step=0.01)
    found = jm.learn(world, basis, demos, cost_class=jm.Simplex(), expert_is=given).certificate
    assert "where nothing can be chosen" not in found.advice()


def test_the_advice_says_when_the_bound_is_what_was_declared():
    strict = nine_by_nine(50)[0].certificate
    assert "is the regret that was declared" not in strict.advice()
    loose = nine_by_nine(50, premise=jm.Rational(regret_per_step=0.01))[0].certificate
    assert "is the regret that was declared" in loose.advice()


def test_a_share_of_what_policies_can_lose_is_named_where_it_is_known():
    world, basis = corridor()
    demos = jm.Demonstrations.from_arrays([[0, 1, 2]], [[0, 0]])
    given = jm.Rational(regret_per_step=0.01)
    found = jm.learn(world, basis, demos, cost_class=jm.Simplex(), expert_is=given).certificate
    assert found.trivial_bound < 0.5 * found.regret.trivial_bound
    share = min(found.regret.bound / found.trivial_bound, 1.0)
    assert f"{100 * share:.3g} % of what policies of this world can lose" in found.summary()


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.Simplex()], ids=repr)
@pytest.mark.parametrize("alike", [True, False])
def test_where_all_policies_are_alike_nothing_is_refuted_though_another_premise_fails(
    cost_class, alike, tmp_path
):
    """Starts of one's own choice; all actions have one law, and if `alike` one cost."""
    world = jm.World(np.full((4, 2), 0.5), [1, 0], 0.9)
    costs = np.array([[0, 1], [0, 1], [1, 0], [1, 0]], dtype=float)
    costs[1:3] += 0.0 if alike else 0.5
    rng = np.random.default_rng(0)
    states = [[1, *rng.integers(2, size=30).tolist()] for _ in range(40)]
    actions = [rng.integers(2, size=30).tolist() for _ in range(40)]
    demos = jm.Demonstrations.from_arrays(states, actions)
    given = jm.Rational(regret_per_step=0)
    found = jm.learn(world, jm.CostBasis(costs), demos, cost_class=cost_class, expert_is=given)
    assert not found.certificate.valid
    assert found.certificate.regret.valid == alike
    found.save(tmp_path)
    assert jm.audit(tmp_path).passed


@pytest.mark.parametrize("seed", [0, 4, 7])
def test_the_minimax_program_keeps_its_tolerance(seed):
    """Where the quick search of the engine falls short, the careful one is asked."""
    rng = np.random.default_rng(seed)
    world, basis = grid(5, 4, rng)
    weights = jm.Simplex().admit(rng.dirichlet(np.ones(4)))
    demos = acted(world, optimum(world, basis.on(world) @ weights)[1], "optimal", rng, 5, 50)
    strict = jm.Rational(regret_per_step=0)
    problem = jm.Apprenticeship(world, basis, demos, jm.Simplex(), expert_is=strict)
    answer = jm.solve(problem, jm.solvers.RationalProgram(slack=0))
    assert answer.status is jm.Status.OPTIMAL
    assert answer.regret.bound - answer.regret.lower_bound <= 1e-7 * problem.gap_scale


def within_budgets():
    """An expert whose use of a resource is limited; it cannot be explained without a price."""
    problem = contradictory(0.0)
    return jm.learn(
        problem.world, problem.basis, problem.demonstrations, constraints=problem.constraints,
        expert_is=problem.expert_is,
    )  # fmt: skip


def test_with_budgets_the_best_policy_that_keeps_them_is_what_is_compared_with():
    apprentice = within_budgets()
    certificate = apprentice.certificate
    assert apprentice.answer.status is jm.Status.OPTIMAL
    assert certificate.budgets[0].is_kept
    assert certificate.regret_bound < 0.5 * certificate.regret.trivial_bound
    assert "than the best policy within the budgets" in certificate.summary()
    assert "a random policy: at most" in certificate.summary()
    assert "uniform" not in certificate.summary()
    table = certificate.table()
    assert "regret to the optimum within the budgets" in table
    assert "least cost" in table
    assert "the prices of the budgets" in table
    names = [one.name for one in certificate.regret.premises]
    assert "the expert kept to these budgets in this world and to nothing else" in names


def test_a_report_with_budgets_compares_within_them(tmp_path):
    apprentice = within_budgets()
    apprentice.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    for words in ("best policy within the budgets", "random policy, for comparison",
                  "price of resource", "a policy that breaks a budget may cost less"):  # fmt: skip
        assert words in page
    plain = nine_by_nine()[0]
    plain.report(tmp_path / "plain.html")
    assert "uniform policy, for comparison" in (tmp_path / "plain.html").read_text()
