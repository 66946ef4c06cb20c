"""Every term of a certificate is needed: without it the statement fails on an instance that is
tight, and with it the statement holds there.

Failure probabilities are exact: they are sums over the binomial law of what was recorded.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import journeyman as jm
from journeyman.certificate import expert_estimates as expert_module
from journeyman.certificate.betting_means import upper_mean
from journeyman.certificate.concentration import (
    empirical_bernstein_radius,
    hoeffding_radius,
    radii,
)
from journeyman.certificate.evaluation import exact_evaluation
from journeyman.certificate.expert_estimates import (
    PlainMean,
    expert_estimates,
    shaped_estimate,
)
from journeyman.certificate.requirements import as_printed
from journeyman.certificate.terms import total
from journeyman.demonstrations.expectation import Shaping
from journeyman.features.base import Features
from journeyman.problem.reduced import Reduced
from journeyman.problem.surrogate import Surrogate

CLASSES = {"l1": jm.InfinityBall(), "l2": jm.EuclideanBall(), "simplex": jm.Simplex()}
DELTA = 0.05
TINY = 1e-9


def without(terms, *names):
    """The total of the terms whose name is not among `names`."""
    return total(tuple(term for term in terms if term.name not in names))


def fork():
    """One decision, made at once and for ever: +1 a step or -1 a step."""
    world = jm.World([[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]], [1, 0, 0], 0.9,
                     choice_offsets=[0, 2, 3, 4])  # fmt: skip
    return world, jm.CostBasis([1.0, -1.0, 1.0, -1.0])


def choices(num_first, count):
    """`num_first` of `count` experts chose +1."""
    first = np.arange(count) < num_first
    states = np.column_stack([np.zeros(count, int), np.where(first, 1, 2)]).ravel()
    return jm.Demonstrations(states, 1 - first, np.arange(count + 1), np.ones(count))


def coin():
    """Nothing to decide: +1 for ever or -1 for ever, by a fair coin at the start."""
    return jm.World(np.eye(2), [0.5, 0.5], 0.9), jm.CostBasis([1.0, -1.0])


def starts(num_first, count):
    first = np.repeat([0, 1], [num_first, count - num_first])
    return jm.Demonstrations(np.repeat(first, 2), np.zeros(count), np.arange(count + 1),
                             np.ones(count))  # fmt: skip


def plain(world, basis, demos, cost_class):
    """The problem whose target is the plain mean."""
    expert = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    return jm.Apprenticeship(world, basis, expert, cost_class)


COUNT = 60


@cache
def certificates_of_the_fork(name):
    """One for each number of experts that chose +1, of the policy the data speak for too well."""
    world, basis = fork()
    found = []
    for k in range(COUNT + 1):
        up = name == "simplex" or 2 * k >= COUNT
        policy = jm.Policy([1.0 * up, 1.0 * (not up), 1.0, 1.0], world.pairs.offsets)
        problem = plain(world, basis, choices(k, COUNT), CLASSES[name])
        found.append(jm.certify(problem, policy, DELTA))
    return found


def failure(bounds, true_gap, chance=0.5):
    """Probability with which the bound after k heads is below the true gap."""
    law = binom(len(bounds) - 1, chance).pmf(np.arange(len(bounds)))
    return float(law[np.array(bounds) < true_gap - TINY].sum())


@pytest.mark.parametrize("name", CLASSES)
def test_the_sampling_term_is_needed(name):
    """The expert is a fair coin, e = 0; a policy with +-h has a gap of h."""
    certificates = certificates_of_the_fork(name)
    with_term = [min(way.bound for way in one.combinations) for one in certificates]
    dropped = [
        min(without(way.terms, "sampling") for way in one.combinations) for one in certificates
    ]
    assert failure(with_term, 10.0) <= DELTA < 0.4 < failure(dropped, 10.0)


@pytest.mark.parametrize("name", CLASSES)
def test_half_of_the_sampling_term_is_not_enough(name):
    bounds = {"whole": [], "half": []}
    for one in certificates_of_the_fork(name):
        way = next(way for way in one.combinations if "betting" in way.estimate)
        sampling = next(term.value for term in way.terms if term.name == "sampling")
        bounds["whole"].append(way.bound)
        bounds["half"].append(way.bound - sampling / 2)
    assert failure(bounds["whole"], 10.0) <= DELTA < failure(bounds["half"], 10.0)


def tail(radius, count, sides):
    """P(mean of `count` fair coins +-1 is further than `radius` from 0), on one or two sides."""
    heads = np.arange(count + 1)
    error = 2 * heads / count - 1
    law = binom(count, 0.5).pmf(heads)
    return float(law[(np.abs(error) if sides == 2 else error) > radius].sum())


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("count", [25, 200, 3000])
def test_half_of_a_data_independent_radius_is_not_enough(name, count):
    world, basis = coin()
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0]), CLASSES[name])
    for two_sided in (False, True):
        sides = 1 if name == "simplex" and not two_sided else 2
        for rate in radii(problem, DELTA, two_sided=two_sided):
            radius = rate.at(count) / world.effective_horizon
            assert tail(radius, count, sides) <= DELTA < tail(radius / 2, count, sides), rate.name


def test_half_of_a_radius_that_follows_the_spread_is_not_enough():
    """Coins 0 or 1, with count large enough that the term in 1/count plays no part."""
    count, heads = 40_000, np.arange(40_001)
    law, mean = binom(count, 0.5).pmf(heads), heads / count
    variance = mean * (1 - mean) * count / (count - 1)
    radius = np.array([empirical_bernstein_radius(v, 1.0, count, DELTA) for v in variance])
    assert law[mean - radius > 0.5].sum() <= DELTA < law[mean - radius / 2 > 0.5].sum()


def test_half_of_a_bound_by_bets_is_not_enough():
    """Rare events that none of 350 samples showed are as likely as 1 - delta^(1/350)."""
    count, chance = 350, 0.9 * (1 - DELTA ** (1 / 350))
    seen = np.arange(20)
    rng, law = np.random.default_rng(0), binom(count, chance).pmf(seen)
    samples = [rng.permutation(np.arange(count) < k).astype(float) for k in seen]
    upper = np.array([upper_mean(one, 1.0, DELTA) for one in samples])
    assert law[upper < chance].sum() <= DELTA < law[upper / 2 < chance].sum()
    assert law[seen / count < chance].sum() > 0.3


def test_the_printed_number_of_demonstrations_is_not_enough():
    world, basis = coin()
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0]))
    surrogate = Surrogate(Reduced(problem, Features(np.full((2, 1), 5.0))))
    accuracy, h = 0.5, world.effective_horizon
    printed = as_printed(surrogate, 1.0, accuracy, DELTA)
    needed = min(rate.smallest(accuracy / 4) for rate in radii(problem, DELTA / 2))
    allowed = accuracy / (4 * h)
    assert tail(allowed, needed, 2) <= DELTA / 2
    assert tail(allowed, printed.num_trajectories, 2) > 0.3
    assert tail(allowed, printed.num_trajectories_in_proof, 2) > 0.4


@pytest.mark.parametrize("count", [1, 2, 3])
def test_two_sides_need_twice_the_failure_probability(count):
    """One coin is tight: it is off by one radius for certain, on either side with 1/2."""
    world, basis = coin()
    delta = {1: 0.62, 2: 0.8, 3: 0.85}[count]
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0]), jm.Simplex())
    (one,), (two,) = (radii(problem, delta, two_sided=both) for both in (False, True))
    h = world.effective_horizon
    assert tail(one.at(count) / h, count, 1) <= delta
    assert tail(two.at(count) / h, count, 2) <= delta
    ball = radii(jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0])), delta)
    assert all(tail(rate.at(count) / h, count, 2) <= delta for rate in ball)
    if count == 1:
        assert tail(one.at(count) / h, count, 2) == 1.0 > delta
        assert hoeffding_radius(2.0, count, delta) == pytest.approx(one.at(count) / h)


def on_or_off():
    """One state; a step costs 1 or nothing."""
    return jm.World([[1.0], [1.0]], [1.0], 0.9), jm.CostBasis([1.0, 0.0])


def steady(action, length, count):
    return jm.Demonstrations(
        np.zeros(count * (length + 1)), np.full(count * length, action),
        np.arange(count + 1) * length,
    )  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("length", [1, 5, 10])
@pytest.mark.parametrize("count", [400, 4000])
def test_the_truncation_term_is_needed(name, length, count):
    """The expert never pays and the policy always does; all that is in doubt are the tails."""
    world, basis = on_or_off()
    problem = plain(world, basis, steady(1, length, count), CLASSES[name])
    certificate = jm.certify(problem, jm.Policy([[1.0, 0.0]]), DELTA)
    for way in certificate.combinations:
        assert way.bound >= 10.0
    if length == 1:
        ways = [way for way in certificate.combinations if way.estimate != "control variate"]
        assert min(without(way.terms, "truncation") for way in ways) < 10.0 - 1.0


def test_the_truncation_term_of_a_shaped_estimate_is_needed():
    """An expert who changes its mind when the record ends: the potential is wrong about the tail.

    Nothing is random, so the statement must hold, and without the term it fails, for certain.
    """
    world, basis = on_or_off()
    length, count = 6, 2000
    problem = plain(world, basis, steady(0, length, count), jm.InfinityBall())
    true = 10.0 * (1 - 0.9**length)
    estimate = shaped_estimate(problem, DELTA)
    error = abs(estimate.values[0] - true)
    assert error <= total(estimate.terms) < 1.02 * error
    assert without(estimate.terms, "truncation") < 0.6 * error


def leave_or_rest(chance):
    """State 0 leads to a state that costs 1 with `chance`, otherwise to one that costs nothing."""
    rows = [[0, chance, 1 - chance], [0, 1, 0], [0, 0, 1]]
    return jm.World(rows, [1, 0, 0], 0.9), jm.CostBasis([0.0, 1.0, 0.0])


def cut_off_in_trouble(num_bad, count):
    """Records that stop when it becomes expensive, and go to their known end when it does not."""
    bad = np.arange(count) < num_bad
    states = np.column_stack([np.zeros(count, int), np.where(bad, 1, 2)]).ravel()
    return jm.Demonstrations(states, np.zeros(count), np.arange(count + 1), ~bad)


CUT, CHANCE, APART = 20_000, 0.05, 12


@cache
def problems_cut_off_in_trouble():
    """Problems by their number of bad records, around the expected one; the true expectation."""
    world, basis = leave_or_rest(CHANCE)
    middle, steps = round(CUT * CHANCE), math.ceil(5.5 * math.sqrt(CUT * CHANCE) / APART)
    numbers = [middle + APART * step for step in range(-steps, steps + 1)]
    records = {k: cut_off_in_trouble(k, CUT) for k in numbers}
    problems = {k: plain(world, basis, demos, jm.InfinityBall()) for k, demos in records.items()}
    return problems, 0.9 * CHANCE / 0.1


def chance_of(numbers):
    """Probability that the number of bad records is nearest to one of `numbers`."""
    law = binom(CUT, CHANCE)
    return sum(float(law.cdf(k + APART // 2) - law.cdf(k - APART // 2)) for k in numbers)


SEVERAL = [
    pytest.param(0.01, marks=pytest.mark.slow),
    0.05,
    pytest.param(0.3, marks=pytest.mark.slow),
]
"""Failure probabilities: one for every change, the others with the statistical tests."""


@pytest.mark.parametrize(
    ("delta", "orders"),
    [(0.05, 2), *(pytest.param(delta, 5, marks=pytest.mark.slow) for delta in (0.01, 0.05, 0.3))],
)
def test_tails_that_differ_in_length_belong_to_the_bets(delta, orders, monkeypatch):
    """However the records were cut off, bets fail no more often than they say, over all orders."""
    problems, true = problems_cut_off_in_trouble()
    failed = []
    for k, problem in problems.items():
        for seed in range(orders):
            chosen = np.random.default_rng([k, seed]).permutation(CUT)
            monkeypatch.setattr(expert_module, "reading_order", lambda _, chosen=chosen: chosen)
            one = PlainMean.of(problem).betting(delta)
            failed += [k] * int(abs(one.values[0] - true) > total(one.terms) + TINY)
    assert chance_of(failed) / orders <= delta


@pytest.mark.parametrize("delta", SEVERAL)
def test_tails_that_differ_in_length_belong_to_the_radius(delta):
    """However the records were cut off, each other estimate fails no more often than it says."""
    problems, true = problems_cut_off_in_trouble()
    failed = {}
    for k, problem in problems.items():
        for one in expert_estimates(problem, delta):
            if one.name == "plain mean, betting":
                continue
            allowed, wrong = failed.setdefault(one.name, (one.failure_probability, []))
            if abs(one.values[0] - true) > total(one.terms) + TINY:
                wrong.append(k)
    for name, (allowed, wrong) in failed.items():
        assert chance_of(wrong) <= allowed, name


@pytest.mark.parametrize("delta", [0.001, 0.01, 0.05])
def test_the_spread_of_tails_is_not_that_of_their_error_alone(delta):
    """Recorded totals are all 0 above; half the range over the tail's time is too little spread."""
    count, chance, h = 400_000, 0.05, 10.0
    bad = np.arange(18_900, 21_100)
    missing, law = 0.9 * h * bad / count, binom(count, chance).pmf(bad)
    squares = (0.9 * h) ** 2 * bad / (count - 1)
    complete = squares - missing**2 * count / (count - 1)
    blur, mid_range = 0.5 * np.sqrt(squares), 0.5 * np.sqrt(np.maximum(complete, 0))

    def fails(spread):
        radius = np.array([empirical_bernstein_radius(s**2, h, count, delta / 2) for s in spread])
        return float(law[0.9 * h * chance > missing + radius].sum())

    assert fails(mid_range + blur) <= delta / 2
    assert fails(blur) > delta


@pytest.mark.parametrize("delta", SEVERAL[1:])
def test_tails_that_differ_in_length_belong_to_the_intervals(delta):
    problems, true = problems_cut_off_in_trouble()
    wrong = []
    for k, problem in problems.items():
        (interval,) = jm.certify(problem, jm.Policy([[1.0]] * 3), delta).expert_intervals
        if not interval.low - TINY <= true <= interval.high + TINY:
            wrong.append(k)
    assert chance_of(wrong) <= delta


def test_the_lower_bound_and_the_alarm_need_the_radius():
    """No policy can do anything about the coin: the optimum is 0 whatever was recorded."""
    world, basis = coin()
    true, on_data, alarms, misses = [], [], [], []
    for k in range(COUNT + 1):
        problem = plain(world, basis, starts(k, COUNT), jm.InfinityBall())
        one = jm.certify(problem, jm.Policy.uniform(world), DELTA)
        true.append(-one.true_lower_bound)
        on_data.append(-one.lower_bound)
        alarms.append(-1.0 if one.alarm else 1.0)
        (interval,) = one.expert_intervals
        misses.append(1.0 if interval.low <= 0 <= interval.high else -1.0)
    assert failure(true, 0.0) <= DELTA < 0.8 < failure(on_data, 0.0)
    assert failure(alarms, 0.0) <= DELTA
    assert failure(misses, 0.0) <= DELTA
    assert min(alarms) == -1.0


def rare_trouble():
    """Action 1 costs 1 for ever, action 0 nothing; the expert takes it once in a while."""
    world = jm.World([[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]], [1, 0, 0], 0.9,
                     choice_offsets=[0, 2, 3, 4])  # fmt: skip
    return world, jm.CostBasis([0.0, 1.0, 0.0, 1.0])


@pytest.mark.parametrize("name", ["l1", "l2"])
@pytest.mark.parametrize("chance", [0.002, 0.004, 0.006])
def test_stops_that_training_did_not_show_cannot_be_forgotten(name, chance, monkeypatch):
    """The training records show no trouble, so the others that do are stopped at once."""
    world, basis = rare_trouble()
    trains, applied = np.arange(100), np.arange(100, 500)
    monkeypatch.setattr(expert_module, "split", lambda demos, world: (trains, applied))
    frame = expert_module._Frame
    ranges, ball = frame._ranges, frame._in_ball
    errors, whole, forgotten = [], [], []
    for k in range(30):
        trouble = np.zeros(500, int)
        trouble[np.random.default_rng(k).choice(applied, k, replace=False)] = 1
        states = np.column_stack([np.zeros(500, int), 1 + trouble]).ravel()
        demos = jm.Demonstrations(states, trouble, np.arange(501), np.ones(500))
        problem = plain(world, basis, demos, CLASSES[name])
        estimate = shaped_estimate(problem, DELTA)
        assert estimate.terms[0].source.endswith(f"{k} were stopped")
        errors.append(abs(estimate.values[0] - chance * 10.0))
        whole.append(total(estimate.terms))
        with monkeypatch.context() as patch:
            patch.setattr(
                frame,
                "_ranges",
                lambda self, d: (ranges(self, d)[0], *np.outer([-TINY, TINY], np.ones(len(d)))),
            )
            patch.setattr(frame, "_in_ball", lambda *given: ball(*given)._replace(radius=TINY))
            forgotten.append(total(shaped_estimate(problem, DELTA).terms))
    law = binom(applied.size, chance).pmf(np.arange(30))

    def fails(allowed):
        return float(law[np.array(errors) > np.array(allowed)].sum())

    assert fails(whole) + 1 - law.sum() <= DELTA
    assert fails(forgotten) > DELTA


def layered():
    """Two decisions and then rest: every trajectory has two steps and a known end."""
    rows = [
        [0, 0.5, 0.5, 0], [0, 0.9, 0.1, 0],
        [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1],
    ]  # fmt: skip
    world = jm.World(rows, [1, 0, 0, 0], 0.9, choice_offsets=[0, 2, 4, 6, 7])
    return world, np.array([[0.2], [0.5], [1.0], [-1.0], [1.0], [-1.0], [0.0]])


def layered_trajectories():
    """(states, actions, probability): an expert that prefers what it did before."""
    for first in (0, 1):
        for middle, chance in zip((1, 2), ((0.5, 0.5), (0.9, 0.1))[first], strict=True):
            for second in (0, 1):
                repeat = 0.8 if second == first else 0.2
                yield [0, middle, 3], [first, second], (0.9, 0.1)[first] * chance * repeat


def test_cross_fitting_cannot_be_skipped():
    """By enumeration: shaped by the other trajectory the mean is the truth, by itself it is not."""
    world, costs = layered()
    episodes = list(layered_trajectories())
    law = np.array([probability for _, _, probability in episodes])
    records = jm.Demonstrations.from_arrays(
        [states for states, _, _ in episodes], [actions for _, actions, _ in episodes],
        np.ones(len(episodes)),
    )  # fmt: skip
    assert law.sum() == pytest.approx(1.0)
    true = float(law @ jm.demonstrations.MonteCarlo().totals(records, costs, world)[:, 0])
    other, itself = 0.0, 0.0
    for j in range(len(episodes)):
        alone = records.subset(np.array([j]))
        shaping = Shaping.learned(alone, costs, world, 0.1)
        other += law[j] * float(law @ shaping.totals(records, costs, world)[:, 0])
        itself += law[j] * float(shaping.totals(alone, costs, world)[0, 0])
    assert other == pytest.approx(true, abs=1e-13)
    assert abs(itself - true) > 0.1


def test_the_residual_of_an_evaluation_is_needed():
    """All costs are 1 and a tenth of the mass is missing: h |r| is exactly what is missing."""
    world = jm.World([[0, 1], [1, 0]], [0.5, 0.5], 0.5)
    problem = jm.Apprenticeship(world, jm.CostBasis([1.0, 1.0]), jm.ExpertExpectation([0.0]))
    measure = np.array([0.9, 0.9])
    lacking = float(np.abs(world.flow.residual(measure)).sum())
    evaluation = exact_evaluation(
        problem, jm.policy.Occupancy(world, measure, lacking, "early stop", world.effective_horizon)
    )
    gap = problem.cost_class.gap(evaluation.expectations)
    assert gap + total(evaluation.terms) == pytest.approx(2.0, abs=1e-12)
    assert gap + total(evaluation.terms) >= 2.0 > gap + without(evaluation.terms, "evaluation")


def test_both_violations_of_lemma_2_are_needed():
    """The tight example of the lemma: |mu - u|_1 = 2 V1 h with no violation of the flow."""
    rows = [[1, 0], [0, 1], [1, 0]]
    world = jm.World(rows, [1, 0], 0.5, choice_offsets=[0, 1, 3])
    problem = jm.Apprenticeship(world, jm.CostBasis([1.0, -1.0, 1.0]), jm.ExpertExpectation([0.0]))
    for measure, dropped in (([1.75, 0.5, -0.25], 0.5), ([1.8, 0.0, 0.0], 0.2)):
        policy = jm.policy.extract(world, np.array(measure))
        ways = jm.certify(problem, policy, measure=np.array(measure)).combinations
        way = next(way for way in ways if way.kind == "A")
        assert 2.0 <= way.bound <= 2.0 + 1e-12
        assert way.bound - dropped < 2.0 - 0.1
        assert without(way.terms, "Lemma 2") < 2.0 - 0.1


@cache
def cycles():
    """(costs, discount, target, certificate): nothing to decide, all to be rounded."""
    rng, found = np.random.default_rng(0), []
    for _ in range(150):
        size, discount = int(rng.integers(1, 6)), float(rng.uniform(0.3, 0.999))
        costs, target = rng.uniform(-1, 1, size), float(rng.uniform(-5, 5))
        world = jm.World(np.roll(np.eye(size), 1, axis=1), np.eye(size)[0], discount)
        problem = jm.Apprenticeship(
            world, jm.CostBasis(costs), jm.ExpertExpectation([target]),
            constraints=jm.Budget(costs, 1.0),
        )  # fmt: skip
        certificate = jm.certify(problem, jm.Policy.uniform(world))
        found.append((costs.tolist(), discount, target, certificate))
    return found


def exact_value(costs, discount):
    """The expected total of steps around a cycle from state 0, in rationals."""
    factor, value = Fraction(discount), Fraction(0)
    for cost in reversed(costs):
        value = Fraction(cost) + factor * value
    return value / (1 - factor ** len(costs))


def test_the_rounding_term_is_needed():
    """In exact rationals: every bound holds, but some fail without the term."""
    gaps, budgets = 0, 0
    for costs, discount, target, certificate in cycles():
        value = exact_value(costs, discount)
        gap, (way,) = abs(value - Fraction(target)), certificate.combinations
        assert Fraction(way.bound) >= gap
        assert Fraction(certificate.lower_bounds.without_budgets) <= gap
        gaps += Fraction(without(way.terms, "rounding")) < gap
        (budget,) = certificate.budgets
        assert Fraction(budget.spent) >= value
        budgets += Fraction(without(budget.terms, "rounding")) < value
    assert min(gaps, budgets) > 0


def test_intervals_of_the_apprentice_hold_in_exact_rationals():
    for costs, discount, _, certificate in cycles():
        (interval,) = certificate.apprentice_intervals
        assert Fraction(interval.low) <= exact_value(costs, discount) <= Fraction(interval.high)


def test_a_measure_speaks_for_the_policy_it_defines_and_for_no_other():
    """Once in 10^12 steps the policy leaves for good, which costs 10^-6; the measure never does."""
    world = jm.World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.999, choice_offsets=[0, 2, 3])
    problem = jm.Apprenticeship(world, jm.CostBasis([0.0, 0.0, 1.0]), jm.ExpertExpectation([0.0]))
    policy = jm.Policy([1 - 9e-13, 9e-13, 1.0], world.pairs.offsets)
    measure = np.array([world.effective_horizon, 0.0, 0.0])
    assert jm.certify(problem, policy, measure=measure).bound >= problem.gap(policy) > 8e-7


def test_the_bias_of_short_records_is_needed_for_averages():
    """A state is kept for 100 steps on average, and all records start in the same one."""
    rows = [[0.99, 0.01], [0.01, 0.99]]
    world = jm.World(rows, [1, 0], 0.9).with_average_cost()
    basis = jm.CostBasis([[0.0], [1.0]])
    policy = jm.Policy.uniform(world)
    demos = jm.record(world, policy, trajectories=4000, horizon=40, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    truth = jm.occupancy(world, policy).expectations(basis)
    assert truth == pytest.approx([0.5])
    for way in expert_estimates(problem, DELTA):
        error = abs(float((way.values - truth)[0]))
        assert without(way.terms, "truncation") < error <= total(way.terms)


def test_steps_of_one_record_are_no_independent_ones():
    """Azuma's term holds for one record; as many independent steps would promise too much."""
    rows = [[0.999, 0.001], [0.001, 0.999]]
    world = jm.World(rows, [1, 0], 0.9).with_average_cost()
    basis, missed = jm.CostBasis([[0.0], [1.0]]), 0
    for seed in range(20):
        demos = jm.record(
            world, jm.Policy.uniform(world), trajectories=1, horizon=20_000, seed=seed
        )
        problem = jm.Apprenticeship(world, basis, demos)
        (mean,) = problem.target
        for way in expert_estimates(problem, DELTA):
            assert abs(float(way.values[0]) - 0.5) <= total(way.terms)
        missed += abs(mean - 0.5) > hoeffding_radius(1.0, 20_000, DELTA)
    assert missed > 10
