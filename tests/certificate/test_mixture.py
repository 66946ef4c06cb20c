"""Certificates of mixtures: parts of delta sum to it, terms by hand, the same rollouts again."""

import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.certificate.rollouts import MixtureEvaluation, mean_of_walks
from journeyman.demonstrations.simulation import WorldSimulator
from journeyman.policy import FunctionPolicy
from journeyman.policy.acting import Actor
from journeyman.problem.mixture_rollouts import share_of_round
from mixtures import CLASSES, expectations, random_policies, small_world
from seeding import drawn_from

DELTA = 0.1
every_class = pytest.mark.parametrize("name", CLASSES)


def example(name="simplex", seed=0, demonstrations=None):
    """A problem, four candidates and the true gap of a mixture of them."""
    world, costs, basis = small_world(seed)
    members = random_policies(world, 4, seed=seed)
    (expert,) = random_policies(world, 1, seed=99 + seed)
    (truth,) = expectations(world, basis, [expert])
    stated = jm.ExpertExpectation(truth)
    if demonstrations is not None:
        stated = jm.record(world, expert, trajectories=demonstrations, horizon=30, seed=seed)
    problem = jm.Apprenticeship(world, costs, stated, CLASSES[name])
    exact = expectations(world, basis, members)
    return problem, members, lambda weights: problem.cost_class.gap(weights @ exact - truth)


def solved(problem, members, **options):
    settings = {"rollouts": 200, "horizon": 30, "seed": 0, **options}
    return jm.solve(problem, jm.PolicyMixture(members, **settings))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(0, 5))
def test_the_parts_of_all_candidates_sum_to_one_or_less(sizes, unused):
    planned = len(sizes) + unused
    rollouts = jm.problem.MixtureRollouts(10, 10, rounds=tuple(sizes), most_rounds=planned)
    parts = rollouts.parts(sum(sizes))
    assert len(parts) == sum(sizes)
    rest = sum(share_of_round(r, planned) for r in range(len(sizes) + 1, planned + 1))
    assert sum(parts) + rest == 1
    assert all(part > 0 for part in parts)
    assert rollouts.parts(1) == parts[:1]


def test_the_parts_are_those_of_the_formula():
    rollouts = jm.problem.MixtureRollouts(10, 10, rounds=(3, 2, 1), most_rounds=9)
    assert rollouts.parts(6) == [Fraction(1, 6)] * 3 + [Fraction(1, 12)] * 2 + [Fraction(1, 12)]
    last = jm.problem.MixtureRollouts(10, 10, rounds=(3, 2, 1)).parts(6)
    assert last[-1] == Fraction(1, 3)
    assert sum(last) == 1
    assert jm.problem.MixtureRollouts(10, 10).parts(5) == [Fraction(1, 5)] * 5


def test_the_terms_by_hand():
    problem, members, _ = example("simplex", demonstrations=50)
    answer = solved(problem, members[:3])
    with drawn_from(0):
        certificate = jm.certify(problem, answer, DELTA)
    h, m, costs = 5.0, 200, 3
    part = DELTA / 2 / 3
    hoeffding = h * math.sqrt(math.log(costs / (0.8 * part)) / (2 * m))
    log = math.log(2 * 2 * costs / (0.2 * part))
    tail = 0.8**30 * h
    blur = 0.5 * tail * math.sqrt(m / (m - 1))
    radii = []
    for spread in answer.candidates.spreads:
        worst = float((spread + blur).max())
        bernstein = math.sqrt(2 * worst**2 * log / m) + 7 * h * log / (3 * (m - 1))
        radii.append(min(hoeffding, bernstein))
    terms = {term.name: term.value for term in certificate.terms}
    assert terms["rollout sampling"] == pytest.approx(answer.mixture.weights @ radii, rel=1e-12)
    assert terms["rollout truncation"] == pytest.approx(0.5 * tail, rel=1e-12)
    assert terms["gap to the estimate"] == pytest.approx(
        max(
            answer.mixture.weights @ answer.candidates.expectations
            - (own_mean(problem) + 0.5 * tail)
        ),
        abs=1e-12,
    )
    assert certificate.best.kind == "E (mixture)"
    assert certificate.bound == pytest.approx(sum(terms.values()), rel=1e-12)


def own_mean(problem):
    """Plain means of the demonstrations, step by step."""
    demos, total = problem.demonstrations, np.zeros(3)
    for x, a, t in zip(demos.step_states, demos.actions, demos.step_times, strict=True):
        total += 0.8**t * problem.costs.function.table[x, a]
    return total / len(demos)


@every_class
def test_from_the_seed_of_a_solver_come_its_own_rollouts(name):
    problem, members, _ = example(name)
    answer = solved(problem, members)
    with drawn_from(0):
        (evaluation,) = MixtureEvaluation(answer.rollouts).evaluate(problem, answer.policy, DELTA)
    assert evaluation.expectations == pytest.approx(
        answer.mixture.weights @ answer.candidates.expectations, abs=2e-2
    )
    assert len(evaluation.statistics) == np.count_nonzero(answer.mixture.weights)
    used = np.flatnonzero(answer.mixture.weights)
    tail = 0.8**30 * 5 * 0.5
    for k, statistics in zip(used, evaluation.statistics, strict=True):
        assert statistics.name == f"rollouts of candidate {k}"
        assert np.array(statistics.means) + tail == pytest.approx(
            answer.candidates.expectations[k], abs=1e-12
        )
        assert statistics.failure_probability == DELTA / 4


def test_a_forged_answer_is_of_no_use():
    """Nothing but policy and counts is taken from an answer."""
    problem, members, _ = example()
    answer = solved(problem, members)
    honest = jm.certify(problem, answer)
    seen = replace(answer.candidates, expectations=0 * answer.candidates.expectations)
    forged = replace(
        answer,
        solution=replace(answer.solution, value=-9.0, lower_bound=-9.0),
        details=replace(answer.details, candidates=seen),
    )
    assert jm.certify(problem, forged).bound == honest.bound


@every_class
def test_the_bound_holds(name):
    short = 0
    for seed in range(4):
        problem, members, true_gap = example(name, seed)
        answer = solved(problem, members, seed=seed, rollouts=50)
        short += jm.certify(problem, answer, DELTA).best.bound < true_gap(answer.mixture.weights)
    assert short <= 1


def test_an_estimated_expert_has_half_of_delta():
    known, members, _ = example()
    shown, _, _ = example(demonstrations=40)
    parts = [
        jm.certify(problem, solved(problem, members), DELTA).best.statistics[0].failure_probability
        for problem in (known, shown)
    ]
    assert parts == [DELTA / 4, DELTA / 8]


def test_later_rounds_have_less_of_delta():
    problem, members, _ = example("l1")
    extra = iter(members[2:])
    answer = solved(
        problem, members[:2], best_response=lambda weights, number: next(extra), rounds=3
    )
    mixture = jm.policy.MixturePolicy(answer.policy.candidates, np.full(4, 0.25))
    found = jm.certify(problem, mixture, DELTA, evaluation=answer.rollouts)
    parts = [one.failure_probability for one in found.best.statistics]
    assert parts == pytest.approx([DELTA / 4, DELTA / 4, DELTA / 6, DELTA / 3], rel=1e-15)


def test_fresh_rollouts_serve_as_well():
    problem, members, true_gap = example()
    answer = solved(problem, members)
    same = jm.certify(problem, answer)
    fresh = jm.certify(problem, answer, evaluation=jm.problem.MixtureRollouts(400, 30))
    whole = jm.certify(problem, answer, evaluation=jm.Rollouts(400, 30))
    assert same.best.kind == fresh.best.kind == "E (mixture)"
    assert whole.best.kind == "E"
    truth = true_gap(answer.mixture.weights)
    assert len({one.bound for one in (same, fresh, whole)}) == 3
    assert all(one.valid and one.bound >= truth for one in (same, fresh, whole))


def test_a_candidate_of_little_weight_adds_little():
    problem, members, _ = example()
    rollouts = jm.problem.MixtureRollouts(100, 30)
    radii = []
    for weights in ([1.0, 0.0], [0.5, 0.5], [0.0, 1.0]):
        mixture = jm.policy.MixturePolicy(members[:2], weights)
        terms = jm.certify(problem, mixture, evaluation=rollouts).terms
        radii.append({term.name: term.value for term in terms}["rollout sampling"])
    assert radii[1] == pytest.approx((radii[0] + radii[2]) / 2, rel=1e-12)


def test_premises_say_what_the_mixture_rests_on():
    problem, members, _ = example(demonstrations=30)
    certificate = jm.certify(problem, solved(problem, members))
    names = [premise.name for premise in certificate.premises]
    assert "rollouts are independent of the candidates" in names
    assert "independent trajectories" in names
    assert "E (mixture)" in certificate.table()


def test_evaluations_that_do_not_fit_are_refused():
    problem, members, _ = example()
    rollouts = jm.problem.MixtureRollouts(100, 30, rounds=(1,))
    mixture = jm.policy.MixturePolicy(members[:2], [0.5, 0.5])
    with pytest.raises(jm.errors.InvalidProblem, match="2 candidates, and the rounds"):
        jm.certify(problem, mixture, evaluation=rollouts)
    with pytest.raises(jm.errors.InvalidProblem, match="a Policy has no candidates"):
        jm.certify(problem, members[0], evaluation=rollouts)
    with pytest.raises(jm.errors.InvalidProblem, match="needs the level EXPLICIT"):
        jm.certify(problem, mixture)
    with pytest.raises(jm.errors.InvalidProblem, match="has no features"):
        jm.certify(problem, mixture, evaluation=jm.SampledRows(rows=10))


@pytest.mark.parametrize(
    "settings",
    [
        {"trajectories": 1}, {"horizon": 0}, {"rounds": (0,)}, {"most_rounds": 2},
        {"rounds": (1, 1), "most_rounds": 1}, {"trajectories": True},
    ],
)  # fmt: skip
def test_wrong_counts_are_refused(settings):
    with pytest.raises(jm.errors.InvalidProblem):
        jm.problem.MixtureRollouts(**{"trajectories": 10, "horizon": 10, **settings})


def test_any_policy_is_certified_by_rollouts_in_a_simulator():
    world, costs, _ = small_world()
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation(np.zeros(3)), jm.Simplex())
    simulated = jm.Apprenticeship(
        problem.simulator, None, jm.ExpertExpectation(np.zeros(3)), jm.Simplex()
    )
    rule = FunctionPolicy(lambda x: np.eye(3)[x % 3], 3)
    bounds = [
        jm.certify(one, rule, evaluation=jm.Rollouts(50, 20)).bound for one in (problem, simulated)
    ]
    assert bounds[0] == bounds[1]


class Lasting:
    """Episodes that last, and cost one, as many steps as a die shows, and nothing afterwards."""

    names, discount, observation_axes = ("steps",), 0.5, 0

    def __init__(self, lowest):
        self.lowest, self.highest = np.array([lowest]), np.ones(1)

    def totals(self, policy, trajectories, horizon, rng):
        lengths = rng.integers(1, 7, size=(trajectories, 1))
        return jm.EpisodeTotals(2 - 2 * 0.5**lengths, unrecorded=0)


def test_totals_outside_the_declared_range_are_refused():
    """With a range that steps behind the end do not have radii would be zero, and bounds false."""
    records = Lasting(0.0).totals(None, 9, 9, np.random.default_rng(0))
    rule, expert = (lambda x, rng: np.zeros(len(x))), jm.ExpertExpectation([1.0])
    with pytest.raises(
        jm.errors.InvalidProblem, match="'steps'; by the declared range it lies between"
    ):
        jm.Apprenticeship(Lasting(1.0), None, records)
    beyond = jm.EpisodeTotals(records.totals + 1, records.unrecorded)
    with pytest.raises(jm.errors.InvalidProblem, match="episode 0 has a total of"):
        jm.Apprenticeship(Lasting(0.0), None, beyond)
    jm.Apprenticeship(Lasting(0.0), None, records)
    evaluations = jm.Rollouts(9, 9), jm.problem.MixtureRollouts(9, 9)
    policies = rule, jm.policy.MixturePolicy([rule], [1.0])
    for policy, evaluation in zip(policies, evaluations, strict=True):
        wide, narrow = (jm.Apprenticeship(Lasting(low), None, expert) for low in (0.0, 1.0))
        jm.certify(wide, policy, evaluation=evaluation)
        with pytest.raises(jm.errors.InvalidProblem, match=r"between 2\.0 and 2\.0"):
            jm.certify(narrow, policy, evaluation=evaluation)


def test_unrecorded_time_narrows_what_a_total_can_be():
    """Half of the time is recorded, so more than 1 is too much for costs of at most 1."""
    for total, possible in ((1.0, True), (1.0 + 1e-6, False)):
        records = jm.EpisodeTotals([[total]], unrecorded=1.0)
        if possible:
            jm.Apprenticeship(Lasting(0.0), None, records)
        else:
            with pytest.raises(jm.errors.InvalidProblem, match=r"between 0\.0 and 1\.0"):
                jm.Apprenticeship(Lasting(0.0), None, records)


def test_whether_totals_are_complete_has_to_be_said():
    """Totals of 4 steps, taken for complete ones, would lack a sixteenth of all time."""
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match=r"unrecorded is not given.*\n?.*=0 if"
    ):
        jm.EpisodeTotals([[1.0]])
    half, one = lambda x, rng: rng.integers(2, size=len(x)), jm.Rollouts(4000, 40)
    cut = jm.demonstrations.record_totals(Counting(), half, trajectories=4000, horizon=4, seed=1)
    problem = jm.Apprenticeship(Counting(), None, jm.EpisodeTotals(cut.totals, cut.unrecorded))
    found = jm.certify(problem, half, evaluation=one)
    lost = [term.value for term in found.terms if term.name == "truncation"]
    assert lost == [pytest.approx(1 * 2 / 16)]
    complete = jm.Apprenticeship(Counting(), None, jm.EpisodeTotals(cut.totals, unrecorded=0))
    assert complete.expectation.truncation_mass == 0


def test_a_simulator_that_walks_in_an_estimated_world_is_refused():
    world = jm.World.from_transitions([0, 1], [0, 0], [1, 0], 0.5, initial=[1, 0])
    costs = jm.CostFunctions(lambda x, a: x[:, np.newaxis], ["one"], lowest=0, highest=1)
    records = jm.EpisodeTotals([[1.0]], unrecorded=0)
    with pytest.raises(jm.errors.InvalidProblem, match="laws of this world are estimates"):
        jm.Apprenticeship(WorldSimulator(world, costs), None, records)


class Copying:
    """Every task has a copy of what it shares, as in a process of its own."""

    def __init__(self):
        self.tasks = 0

    def map(self, function, tasks, *, shared=None):
        self.tasks += len(tasks)
        return [function(task, pickle.loads(pickle.dumps(shared))) for task in tasks]


class Tossing:
    """Draws actions from a stream of its own, as networks do."""

    def __init__(self):
        self.stream = np.random.default_rng(0)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return self.stream.integers(3, size=len(observation)), state


class Counting:
    """A simulator whose episodes cost the actions taken in them, and that has no other luck."""

    names, discount, observation_axes = ("actions",), 0.5, 0
    lowest, highest = np.zeros(1), np.full(1, 2.0)

    def totals(self, policy, trajectories, horizon, rng):
        actor, seen = Actor(policy, rng), np.zeros(trajectories, dtype=int)
        totals = sum(0.5**t * actor.sample(seen, rng) for t in range(horizon))
        return jm.EpisodeTotals(totals[:, np.newaxis], 2 * 0.5**horizon)


def drawing_alike(observations, rng):
    return rng.integers(3, size=len(observations))


def test_policies_with_streams_of_their_own_have_no_copies():
    """Workers would repeat each other's episodes, and radii speak of independent ones."""
    problem = jm.Apprenticeship(Counting(), None, jm.ExpertExpectation([1.0]))
    policies = (
        Tossing(),
        jm.policy.MixturePolicy([drawing_alike, Tossing()], [0.5, 0.5]),
        drawing_alike,
    )
    for policy, copied in zip(policies, (0, 0, 3), strict=True):
        for rollouts in (jm.Rollouts(3072, 9), jm.problem.MixtureRollouts(3072, 9)):
            executor = Copying()
            if isinstance(rollouts, jm.Rollouts):
                totals = mean_of_walks(problem, policy, rollouts, 0, executor).totals
            else:
                (record,) = rollouts.totals(problem.simulator, [policy], 0, executor=executor)
                totals = record.totals
            assert executor.tasks == copied
            assert len({part.tobytes() for part in totals.reshape(3, 1024)}) == 3
