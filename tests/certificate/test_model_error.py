"""Bounds for estimated worlds, against true worlds within the distances, and counts that are
drawn."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import xlogy
from scipy.stats import chi2, multinomial

import journeyman as jm
from frequencies import frequencies, start_frequencies
from journeyman.certificate.model_error import (
    INITIAL_SHARE,
    Evidence,
    ModelError,
    budget_terms,
    distances_of,
    information_radii,
    model_term,
    occupancy_distance,
    radii_at,
    robust_budgets,
    robust_expectations,
    robust_gap,
    robust_ranges,
    transition_radii,
    transitions_needed,
    true_world_lower_bound,
)
from journeyman.testing.random_worlds import Shape, random_policy, random_problem, random_world
from journeyman.testing.strategies import problems, seeds

EXACT = 1e-11
"""Of the trivial bound: what rounding may hide in the numbers the bounds are compared with."""


def random_errors(world, rng, largest=0.4):
    rows = rng.uniform(0, largest, world.num_pairs) * (rng.random(world.num_pairs) < 0.8)
    return ModelError(rows, float(rng.uniform(0, largest / 2)), 0.0)


def true_world(world, error, rng):
    """A world within the distances: mixtures with random laws, and mass moved to one state."""
    rows, favourite = world.transition.toarray(), rng.integers(world.num_states)
    single = rng.random() < 0.5

    def moved(law, distance):
        aim = rng.dirichlet(np.full(law.size, 0.3))
        if single:
            aim = np.eye(law.size)[favourite]
        apart = np.abs(aim - law).sum()
        return law + min(1.0, distance / apart if apart else 0.0) * (aim - law)

    steps = np.array([moved(*pair) for pair in zip(rows, error.transition, strict=True)])
    return jm.World(
        steps, moved(world.initial, error.initial), world.discount,
        choice_offsets=world.pairs.offsets,
    )  # fmt: skip


def in_world(problem, world):
    """The same costs, target and budgets in another world."""
    return jm.Apprenticeship(
        world, problem.basis, jm.ExpertExpectation(problem.target), problem.cost_class,
        problem.constraints,
    )  # fmt: skip


@given(problems(), seeds)
def test_the_true_gap_and_spending_never_exceed_those_of_the_model_plus_their_terms(problem, seed):
    rng = np.random.default_rng(seed)
    error = random_errors(problem.world, rng)
    policy = random_policy(problem.world, rng)
    visits = jm.occupancy(problem.world, policy)
    gap, spent = problem.gap(visits), problem.overspending(visits.measure)
    term, terms = model_term(problem, visits, error), budget_terms(problem, visits, error)
    distance = occupancy_distance(visits, error)
    highest, robust_spent = (
        bound(problem, policy, error) for bound in (robust_expectations, robust_budgets)
    )
    box = robust_gap(problem, robust_ranges(problem, policy, error), problem.target)
    slack, h = EXACT * problem.gap_scale, problem.world.effective_horizon
    for _ in range(12):
        truth = in_world(problem, true_world(problem.world, error, rng))
        true_visits = jm.occupancy(truth.world, policy)
        assert np.abs(true_visits.measure - visits.measure).sum() <= distance * (1 + EXACT)
        assert truth.gap(true_visits) <= min(box, gap + term) + slack
        overspending = truth.overspending(true_visits.measure)
        assert (overspending <= spent + terms + EXACT * h).all()
        assert (true_visits.expectations(problem.basis) <= highest + EXACT * h).all()
        assert (overspending <= robust_spent - problem.limits + EXACT * h).all()


@given(problems(), seeds)
def test_robust_expectations_never_exceed_the_simple_bound(problem, seed):
    rng = np.random.default_rng(seed)
    error = random_errors(problem.world, rng, largest=2.0)
    policy = random_policy(problem.world, rng)
    visits = jm.occupancy(problem.world, policy)
    distance = occupancy_distance(visits, error)
    half_span = (problem.basis.highest - problem.basis.lowest) / 2
    simple = visits.expectations(problem.basis) + half_span * distance
    highest = robust_expectations(problem, policy, error)
    assert (highest <= simple + 1e-9 * problem.world.effective_horizon).all()
    assert (highest >= visits.expectations(problem.basis) - 1e-12 * distance).all()
    if isinstance(problem.cost_class, jm.Simplex):
        robust = problem.cost_class.gap(highest - problem.target)
        assert robust <= problem.gap(visits) + model_term(problem, visits, error) + 1e-9 * (
            problem.gap_scale
        )


def test_robust_evaluation_can_be_far_below_the_simple_bound():
    problem = random_problem(3, jm.Simplex(), shape=Shape.DENSE, discount=0.95)
    policy = random_policy(problem.world, 0)
    error = ModelError(np.full(problem.world.num_pairs, 0.3), 0.0, 0.0)
    visits = jm.occupancy(problem.world, policy)
    robust = problem.cost_class.gap(robust_expectations(problem, policy, error) - problem.target)
    assert robust < problem.gap(visits) + 0.3 * model_term(problem, visits, error)


@pytest.mark.filterwarnings("ignore::journeyman.errors.SupportWarning")
@pytest.mark.parametrize(
    ("cost_class", "share"),
    [(jm.InfinityBall(), 0.3), (jm.EuclideanBall(), 0.1), (jm.Simplex(), 0.12)],
)
def test_robust_ranges_are_worth_much_where_the_support_is_known(cost_class, share):
    world, basis, expert = jm.gallery.grid(8)
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    known = jm.World(
        frequencies(world.transition, 10**4), world.initial, world.discount,
        choice_offsets=world.pairs.offsets, support=world.transition, transition_counts=10**4,
    )  # fmt: skip
    problem = jm.Apprenticeship(known, basis, target, cost_class)
    error = transition_radii(known, 0.05)
    term = model_term(problem, jm.occupancy(known, expert), error)
    ranges = robust_ranges(problem, expert, error)
    assert (ranges[0] <= target.values).all()
    assert (target.values <= ranges[1]).all()
    assert 0 < robust_gap(problem, ranges, problem.target) < share * term


def test_what_is_left_of_the_residual_is_paid_for():
    problem = random_problem(4, discount=0.95)
    world, policy = problem.world, random_policy(problem.world, 0)
    error = ModelError(np.full(world.num_pairs, 0.01), 0.0, 0.0)
    visits = jm.occupancy(world, policy)
    half = visits.measure / 2
    rough = jm.policy.Occupancy(
        world, half, float(np.abs(world.flow.residual(half)).sum()), "rough",
        world.effective_horizon,
    )  # fmt: skip
    assert occupancy_distance(rough, error) >= (1 - EXACT) * occupancy_distance(visits, error)


def test_starts_that_are_not_exact_lower_the_bound_by_what_they_may_cost():
    world = jm.World(np.eye(2), [0, 1], 0.9, initial_error=0.2)
    problem = jm.Forward(world, [0.0, 1.0])
    witness = jm.problem.witness_from_plan(problem, [1.0], ())
    error = transition_radii(world, 0.05)
    assert jm.problem.lower_bound(problem, witness) == pytest.approx(10.0)
    assert true_world_lower_bound(problem, witness, error) == pytest.approx(9.0)


def test_negative_prices_are_cut_off():
    problem = random_problem(2, num_budgets=2)
    error = random_errors(problem.world, np.random.default_rng(0))
    point = jm.problem.witness_from_plan(problem, np.ones(problem.target.size), [0.0, 0.5])
    wrong = jm.problem.Witness(point.cost_weights, point.values, [-3.0, 0.5])
    bounds = [true_world_lower_bound(problem, witness, error) for witness in (point, wrong)]
    assert bounds[0] == bounds[1]


@given(seeds, st.integers(0, 2), st.sampled_from([jm.InfinityBall(), jm.Simplex()]))
def test_no_policy_of_the_true_world_goes_below_the_bound_of_the_model(seed, budgets, cost_class):
    problem = random_problem(seed, cost_class, num_states=4, num_budgets=budgets)
    rng = np.random.default_rng(seed)
    error = random_errors(problem.world, rng)
    witness = jm.solve(problem).witness
    damaged = jm.problem.Witness(
        witness.cost_weights + rng.normal(size=witness.cost_weights.size),
        witness.values + rng.normal(size=witness.values.size),
        witness.budget_prices + rng.normal(size=witness.budget_prices.size),
    )
    bound = max(true_world_lower_bound(problem, point, error) for point in (witness, damaged))
    assert bound <= jm.problem.lower_bound(problem, witness)
    for _ in range(3):
        answer = jm.solve(in_world(problem, true_world(problem.world, error, rng)))
        if answer.solution is not None:
            assert bound <= answer.value + EXACT * problem.gap_scale


@given(problems(), seeds)
def test_the_lower_bound_is_at_least_that_of_the_printed_formula(problem, seed):
    rng = np.random.default_rng(seed)
    world, error = problem.world, random_errors(problem.world, rng, largest=2.0)
    weights = problem.cost_class.admit(rng.normal(size=problem.target.size))
    prices = rng.exponential(size=len(problem.constraints))
    witness = jm.problem.witness_from_plan(problem, weights, prices)
    cost, values = problem.cost_of(weights) + problem.budget_matrix @ prices, witness.values
    span = values.max() - values.min()
    inside = cost - world.flow.adjoint(values) - world.discount * error.transition * span / 2
    printed = (
        world.initial @ values + inside.min() * world.effective_horizon
        - weights @ problem.target - prices @ problem.limits - error.initial * span / 2
    )  # fmt: skip
    size = (problem.gap_scale + np.abs(values).max()) * world.effective_horizon
    bound = true_world_lower_bound(problem, witness, error)
    assert bound >= printed - EXACT * (1 + size + prices.sum() * world.effective_horizon)
    exact = ModelError(np.zeros(world.num_pairs), 0.0, 0.0)
    plain = jm.problem.lower_bound(problem, witness)
    same = true_world_lower_bound(problem, witness, exact)
    assert same <= plain
    assert same == pytest.approx(plain, rel=1e-12, abs=1e-12)


def leaking(error, discount):
    """Everything rests in a free state; in truth error/2 leaks into a costly one per step."""
    problem = jm.Forward(jm.World(np.eye(2), [1, 0], discount, transition_error=error), [0.0, 1.0])
    truth = jm.World([[1 - error / 2, error / 2], [0, 1]], [1, 0], discount)
    return problem, jm.Forward(truth, [0.0, 1.0])


@pytest.mark.parametrize(("error", "discount"), [(1e-6, 0.9), (1e-8, 0.99), (1e-3, 0.5)])
def test_the_model_term_is_nearly_attained(error, discount):
    problem, truth = leaking(error, discount)
    policy = jm.Policy.uniform(problem.world)
    visits = jm.occupancy(problem.world, policy)
    radii = transition_radii(problem.world, 0.05)
    term = model_term(problem, visits, radii)
    assert problem.gap(visits) == 0
    attained = truth.gap(policy)
    assert term >= attained >= 0.998 * term
    robust = robust_expectations(problem, policy, radii)[0]
    assert robust == pytest.approx(attained, rel=1e-6)
    assert robust >= attained * (1 - 1e-9)


def test_an_initial_law_that_is_wrong_is_fully_paid_for():
    world = jm.World(np.eye(2), [1, 0], 0.9, initial_error=0.2)
    problem = jm.Forward(world, [0.0, 1.0])
    policy = jm.Policy.uniform(world)
    radii = transition_radii(world, 0.05)
    truth = jm.Forward(jm.World(np.eye(2), [0.9, 0.1], 0.9), [0.0, 1.0]).gap(policy)
    assert truth == pytest.approx(1.0)
    assert model_term(problem, jm.occupancy(world, policy), radii) == pytest.approx(truth)
    assert robust_expectations(problem, policy, radii)[0] == pytest.approx(truth)


def test_the_term_of_a_hopeless_model_is_the_trivial_bound():
    problem = random_problem(1, jm.Simplex())
    visits = jm.occupancy(problem.world, jm.Policy.uniform(problem.world))
    error = ModelError(np.full(problem.world.num_pairs, 2.0), 2.0, 0.0)
    centred = np.abs(problem.basis.centred()).max()
    expected = 2 * centred * problem.world.effective_horizon
    assert model_term(problem, visits, error) == pytest.approx(expected, rel=1e-12)
    assert model_term(problem, visits, error) <= problem.gap_scale * (1 + 1e-12)


def test_costs_are_centred_where_that_is_smaller():
    world = random_world(0)
    visits = jm.occupancy(world, jm.Policy.uniform(world))
    error = ModelError(np.full(world.num_pairs, 0.01), 0.0, 0.0)
    costs = np.random.default_rng(0).uniform(0, 1, world.num_pairs)
    terms = [
        model_term(jm.Forward(world, costs + shift), visits, error) for shift in (0.0, 1e3, -1e3)
    ]
    span = (costs.max() - costs.min()) / 2
    assert terms == pytest.approx([span * occupancy_distance(visits, error)] * 3)


def test_sparse_costs_and_no_budgets():
    problem = random_problem(2, jm.Simplex())
    thin = jm.Apprenticeship(
        problem.world, jm.CostBasis(sparse.csr_array(problem.basis.matrix)),
        jm.ExpertExpectation(problem.target), problem.cost_class,
    )  # fmt: skip
    policy = random_policy(problem.world, 1)
    error = ModelError(np.full(problem.world.num_pairs, 0.2), 0.1, 0.0)
    dense = robust_expectations(problem, policy, error)
    np.testing.assert_allclose(robust_expectations(thin, policy, error), dense, rtol=1e-12)
    assert robust_budgets(thin, policy, error).shape == (0,)
    assert budget_terms(thin, jm.occupancy(thin.world, policy), error).shape == (0,)


def test_an_exact_world_costs_nothing_and_declared_distances_no_probability():
    world = random_world(0)
    exact = transition_radii(world, 0.05)
    assert not exact.transition.any()
    assert (exact.initial, exact.failure_probability) == (0.0, 0.0)
    facts = {"transition_error": 0.3, "initial_error": 0.1}
    given_errors = jm.World(
        world.transition, world.initial, 0.9, choice_offsets=world.pairs.offsets, **facts
    )
    declared = transition_radii(given_errors, 0.05)
    assert declared.transition.tolist() == [0.3] * world.num_pairs
    assert (declared.initial, declared.failure_probability) == (0.1, 0.0)


def printed_information(tally, size, laws, delta):
    """(log(K/delta) + log prod (n_y/n)^n_y - log Q)/n, Q the mean over a = 1/2 and a = 1/S."""
    n, bets = sum(tally), []
    for a in (0.5, 1 / size):
        each = sum(math.lgamma(one + a) - math.lgamma(a) for one in tally)
        bets.append(math.lgamma(size * a) - math.lgamma(n + size * a) + each)
    likelihood = sum(one * math.log(one / n) for one in tally if one)
    return (math.log(laws / delta) + likelihood - np.logaddexp(*bets) + math.log(2)) / n


def printed_radius(tally, size, laws, delta):
    return min(2.0, math.sqrt(2 * printed_information(tally, size, laws, delta)))


PLAIN = 0.5
"""Of the failure probability of laws, for divergences; bets centred at the law have the rest."""


def printed_centred(tally, size, laws, delta):
    """c, and how much is allowed: log(2 12 K/delta) less the wealth against the frequencies."""
    n = sum(tally)
    c = 4.0 ** (math.floor(math.log(n, 4)) - 1)
    bet = math.lgamma(c + 1) - math.lgamma(n + c + 1)
    for one in tally:
        shape = c * one / n + 1 / size
        bet += math.lgamma(one + shape) - math.lgamma(shape)
        bet -= one * math.log(one / n) if one else 0.0
    return c, (math.log(2 * 12 * laws / delta) - bet) / n


@pytest.mark.parametrize("law", [(0.3, 0.1, 0.6), (0.05, 0.9, 0.05)])
def test_centred_evidence_is_that_of_bets_one_after_the_other(law):
    """Before its k-th draw a bet against p holds (times of y so far + c p(y) + 1/S)/(k + c) for
    every y: its wealth reaches 2 12 K/delta where the excess of p reaches what is allowed."""
    rng, size, n = np.random.default_rng(3), 3, 500
    drawn = rng.choice(size, size=n, p=[0.3, 0.1, 0.6])
    seen, wealth, law = np.zeros(size), 0.0, np.array(law)
    c = 64.0
    for k, y in enumerate(drawn, start=1):
        wealth += math.log((seen[y] + c * law[y] + 1 / size) / (k + c) / law[y])
        seen[y] += 1
    _, found = Evidence.of(sparse.csr_array(seen[np.newaxis]), [size], 7, 0.1)
    assert found.centring.tolist() == [c]
    rows = sparse.csr_array(seen[np.newaxis] / n)
    excess, slope, _ = found.at(rows, law)
    surplus = (wealth - math.log(2 * 12 * 7 / 0.1)) / n
    assert float(excess[0] - found.allowed[0]) == pytest.approx(surplus, abs=1e-11)
    for y in range(size):
        step = np.eye(size)[y] * 1e-6
        ends = [found.at(rows, law + s * step)[0] for s in (1, -1)]
        assert slope[y] == pytest.approx(float((ends[1] - ends[0])[0] / 2e-6), rel=1e-5, abs=1e-8)


def test_the_information_is_that_of_bets_one_after_the_other():
    """Before its k-th draw the bet holds (times of y so far + a)/(k - 1 + S a) for every y."""
    drawn, size = [0, 2, 2, 0, 2, 1, 2, 2], 4
    wealth = []
    for a in (0.5, 1 / size):
        seen, value = np.zeros(size), 1.0
        for y in drawn:
            value *= (seen[y] + a) / (seen.sum() + size * a)
            seen[y] += 1
        wealth.append(value)
    tally = np.bincount(drawn, minlength=size)
    frequencies_seen = tally[tally > 0] / 8
    likelihood = float((tally[tally > 0] * np.log(frequencies_seen)).sum())
    info = (math.log(7 / 0.1) + likelihood - math.log(sum(wealth) / 2)) / 8
    found = information_radii(sparse.csr_array(tally[np.newaxis] * 1.0), [size], 7, 0.1)
    assert found[0] == pytest.approx(info, rel=1e-9)
    assert printed_information(tally.tolist(), size, 7, 0.1) == pytest.approx(info, rel=1e-9)


@pytest.mark.filterwarnings("ignore::journeyman.errors.SupportWarning")
def test_radii_are_those_of_the_formula():
    rows = [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1.0], [1 / 3, 1 / 3, 1 / 3]]
    known = [[1, 1, 1], [0, 1, 1], [0, 0, 1], [1, 1, 1]]
    counts = [100, 500, 7, 3 * 10**8]
    facts = {"choice_offsets": [0, 2, 3, 4], "transition_counts": counts}
    world = jm.World(rows, [1, 0, 0], 0.9, **facts, support=known, initial_count=1000)
    found = transition_radii(world, 0.05)
    share = (1 - INITIAL_SHARE) * 0.05 * PLAIN
    tallies = [[50, 50, 0], [0, 500, 0], [0, 0, 7], [10**8] * 3]
    sizes = [3, 2, 1, 3]
    expected = [printed_radius(*both, 4, share) for both in zip(tallies, sizes, strict=True)]
    assert found.transition[[0, 1]] == pytest.approx(expected[:2], rel=1e-9)
    assert found.transition[3] == pytest.approx(expected[3], rel=1e-5)
    assert found.transition[2] == 0.0
    starts = [1000, 0, 0]
    first = INITIAL_SHARE * 0.05
    assert found.initial == pytest.approx(printed_radius(starts, 3, 1, first * PLAIN))
    c, info = printed_centred(starts, 3, 1, first)
    assert found.initial_evidence.allowed == pytest.approx([info])
    assert found.initial_evidence.centring.tolist() == [c] == [64.0]
    assert found.failure_probability == 0.05
    unknown = jm.World(rows, [1, 0, 0], 0.9, **facts)
    found = transition_radii(unknown, 0.05)
    expected = [printed_radius(tally, 3, 4, 0.05 * PLAIN) for tally in tallies]
    assert found.transition == pytest.approx(expected, rel=1e-5)
    assert found.evidence.centring[[1, 2]].tolist() == [64.0, 0.0]
    assert found.evidence.allowed[[1, 2]] == pytest.approx(
        [printed_centred(tallies[1], 3, 4, 0.05)[1],
         printed_information(tallies[2], 3, 4, 0.05 * PLAIN)], rel=1e-9
    )  # fmt: skip
    assert found.initial == 0.0


def test_the_smaller_of_declared_and_counted_distances_holds():
    world = jm.World(
        [[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9, transition_error=[0.01, 2.0],
        transition_counts=[400, 400], initial_error=0.05, initial_count=10,
    )  # fmt: skip
    found = transition_radii(world, 0.05)
    assert found.transition[0] == 0.01
    assert 0.01 < found.transition[1] < 0.5
    assert found.initial == 0.05


def test_actions_left_out_are_paid_for_and_absorbing_states_are_free():
    world = jm.World.from_transitions(
        [0] * 500, [2] * 500, [0, 1] * 250, 0.9, initial=[1, 0], absorbing=[1]
    )
    found = transition_radii(world, 0.05)
    assert found.transition == pytest.approx([printed_radius([250, 250], 2, 24, 0.025), 0.0])


def test_very_large_supports_do_not_overflow():
    even = sparse.csr_array(np.full((1, 10**5), 100.0))
    info = information_radii(even, [10**5], 10**6, 1e-9)
    assert 0 < info[0] < 0.1
    one = sparse.csr_array(np.array([[1e15, 1e15, 0.0]]))
    assert 0 < information_radii(one, [3], 10**6, 1e-9)[0] < 1e-10
    few = sparse.csr_array(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    found = information_radii(few, [3, 3], 1, 0.05)
    assert found[0] == np.inf
    assert distances_of(found).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("law", [(0.5, 0.5), (0.2, 0.3, 0.5), (0.1, 0.2, 0.3, 0.4)])
@pytest.mark.parametrize("count", [1, 4, 15])
def test_frequencies_leave_the_ball_as_rarely_as_promised(law, count):
    """Exactly, by enumeration of all counts: at every level, not only at small ones."""
    size = len(law)
    outcomes = np.array(
        [(*head, count - sum(head)) for head in product(range(count + 1), repeat=size - 1)
         if sum(head) <= count]
    )  # fmt: skip
    chances = multinomial.pmf(outcomes, count, law)
    apart = np.abs(outcomes / count - np.array(law)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(outcomes > 0, outcomes * np.log(outcomes / count / np.array(law)), 0.0)
    tallies = sparse.csr_array(outcomes.astype(float))
    for delta in (0.9, 0.3, 0.05, 1e-3):
        info = information_radii(tallies, np.full(len(outcomes), size), 1, delta)
        assert chances[terms.sum(axis=1) / count > info].sum() <= delta
        assert chances[apart > distances_of(info)].sum() <= delta


@pytest.mark.parametrize("law", [(0.5, 0.5), (0.02, 0.98), (0.1, 0.3, 0.6)])
def test_laws_leave_what_evidence_allows_as_rarely_as_promised(law):
    """Exactly, by enumeration of all counts of 60 draws."""
    size, count = len(law), 60
    heads = product(range(count + 1), repeat=size - 1)
    outcomes = np.array([(*head, count - sum(head)) for head in heads if sum(head) <= count])
    chances = multinomial.pmf(outcomes, count, law)
    tallies = sparse.csr_array(outcomes.astype(float))
    laws = np.tile(law, (len(outcomes), 1))[outcomes > 0]
    for delta in (0.9, 0.3, 0.05, 1e-3):
        _, found = Evidence.of(tallies, np.full(len(outcomes), size), 1, delta)
        excess, _, _ = found.at(sparse.csr_array(outcomes / count), laws)
        assert chances[excess > found.allowed].sum() <= delta


def test_radii_hold_for_all_pairs_at_the_moment_of_the_worst_count():
    """Recording stops for each pair when its frequencies look worst: the union over counts."""
    rng, delta, runs, longest = np.random.default_rng(0), 0.4, 400, 300
    law, misses, fixed_misses, centred_misses = np.array([0.3, 0.3, 0.4]), 0, 0, 0
    counts = np.arange(1, longest + 1)
    quantile = chi2.ppf(1 - delta, 2) / 2
    for _ in range(runs):
        draws = rng.choice(3, size=longest, p=law)
        tallies = np.cumsum(np.eye(3)[draws], axis=0)
        seen = tallies / counts[:, np.newaxis]
        apart = xlogy(seen, seen / law).sum(axis=1)
        info = information_radii(sparse.csr_array(tallies), np.full(longest, 3), 1, delta)
        misses += bool((apart > info).any())
        bets = Evidence.of(sparse.csr_array(tallies), np.full(longest, 3), 1, delta)[1]
        excess, _, _ = bets.at(sparse.csr_array(seen), np.tile(law, (longest, 1))[seen > 0])
        centred_misses += bool((excess > bets.allowed).any())
        fixed_misses += bool((counts * apart > quantile)[30:].any())
    assert 0 < misses <= delta * runs
    assert centred_misses <= delta * runs
    assert fixed_misses > delta * runs
    assert info[-1] < 0.04


def test_centred_bets_hold_at_the_moment_of_the_worst_count():
    rng, delta, runs, longest = np.random.default_rng(1), 0.4, 200, 600
    law, misses = np.array([0.3, 0.2, 0.2, 0.15, 0.1, 0.05]), 0
    for _ in range(runs):
        tallies = np.cumsum(np.eye(6)[rng.choice(6, size=longest, p=law)], axis=0)[::5]
        seen = tallies / tallies.sum(axis=1, keepdims=True)
        bets = Evidence.of(sparse.csr_array(tallies), np.full(len(seen), 6), 1, delta)[1]
        excess, _, _ = bets.at(sparse.csr_array(seen), np.tile(law, (len(seen), 1))[seen > 0])
        misses += bool((excess > bets.allowed).any())
    assert misses <= delta * runs
    assert (bets.centring[-60:] > 0).all()


@pytest.mark.filterwarnings("ignore::journeyman.errors.SupportWarning")
@pytest.mark.parametrize("known", [False, True])
def test_true_worlds_lie_within_the_distances_of_their_records(known):
    truth = random_world(5, Shape.SPARSE, num_states=6, num_actions=2)
    rng, delta, misses = np.random.default_rng(1), 0.2, 0
    support = truth.transition if known else None
    for _ in range(40):
        pairs = rng.integers(0, truth.num_pairs, 4000)
        rows = np.cumsum(truth.transition.toarray(), axis=1)[pairs]
        after = np.minimum((rows < rng.random((4000, 1))).sum(axis=1), 5)
        starts = rng.choice(6, size=300, p=truth.initial)
        world = jm.World.from_transitions(
            truth.pairs.states[pairs], truth.pairs.actions[pairs], after, 0.9,
            initial_states=starts, support=support,
        )  # fmt: skip
        found = transition_radii(world, delta)
        apart = np.asarray(abs(world.transition - truth.transition).sum(axis=1)).ravel()
        pairs, following = world.transition.nonzero()
        law = truth.transition.toarray()[pairs, following]
        excess, _, _ = found.evidence.at(world.transition, law)
        assert world.pairs == truth.pairs
        misses += bool((apart > found.transition).any()) or (
            np.abs(world.initial - truth.initial).sum() > found.initial
        )
        misses += bool((excess > found.evidence.allowed).any())
        assert (found.transition < (0.45 if known else 0.5)).all()
    assert misses <= 40 * delta


def test_known_support_needs_fewer_transitions():
    world, basis, expert = jm.gallery.grid(8)
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    known = jm.World(
        world.transition, world.initial, world.discount,
        choice_offsets=world.pairs.offsets, support=world.transition,
    )  # fmt: skip
    needed = []
    for place in (world, known):
        problem = jm.Apprenticeship(place, basis, target)
        visits = jm.occupancy(place, expert)
        needed.append(transitions_needed(problem, visits, failure_probability=0.05))
    assert needed[1] < 0.6 * needed[0]


@given(seeds, st.sampled_from([0.01, 0.1, 0.5]), st.booleans())
def test_as_many_transitions_as_needed_suffice_and_one_less_does_not(seed, share, from_starts):
    problem = random_problem(seed, discount=0.5)
    world = problem.world
    starts = {"initial_count": 10**8} if from_starts else {}
    initial = start_frequencies(world.initial, 10**8)
    facts = {"choice_offsets": world.pairs.offsets, **starts}
    problem = in_world(problem, jm.World(world.transition, initial, 0.5, **facts))
    policy = random_policy(problem.world, seed)
    visits = jm.occupancy(problem.world, policy)
    needed = transitions_needed(problem, visits, failure_probability=0.05, share=share)
    assume(needed > 1)

    def term(count):
        radii = radii_at(problem.world, np.full(world.num_pairs, count), 0.05)
        return model_term(problem, visits, radii)

    assert term(needed) <= share * problem.gap_scale < term(needed - 1)


def test_laws_known_to_be_exact_need_no_transitions():
    world = jm.World(np.eye(2), [1, 0], 0.9, transition_error=0.0)
    problem = jm.Forward(world, [0.0, 1.0])
    visits = jm.occupancy(world, jm.Policy.uniform(world))
    assert transitions_needed(problem, visits, failure_probability=0.05) == 1


def test_starts_that_are_too_few_are_named():
    world = jm.World(np.eye(2), [1, 0], 0.9, initial_count=20)
    problem = jm.Forward(world, [0.0, 1.0])
    visits = jm.occupancy(world, jm.Policy.uniform(world))
    with pytest.raises(jm.errors.InvalidProblem, match="the initial law alone costs") as refusal:
        transitions_needed(problem, visits, failure_probability=0.05)
    assert "more starts" in refusal.value.remedy


@pytest.mark.parametrize("share", [0, 1, -1, "little"])
def test_a_share_lies_between_zero_and_one(share):
    problem = random_problem(0)
    visits = jm.occupancy(problem.world, jm.Policy.uniform(problem.world))
    with pytest.raises(jm.errors.InvalidProblem, match="share"):
        transitions_needed(problem, visits, failure_probability=0.05, share=share)


@pytest.mark.parametrize("delta", [0, 1, "small"])
def test_a_failure_probability_lies_between_zero_and_one(delta):
    problem = random_problem(0)
    visits = jm.occupancy(problem.world, jm.Policy.uniform(problem.world))
    with pytest.raises(jm.errors.InvalidProblem, match="failure_probability"):
        transition_radii(problem.world, delta)
    with pytest.raises(jm.errors.InvalidProblem, match="failure_probability"):
        transitions_needed(problem, visits, failure_probability=delta)


def test_distances_of_another_world_are_refused():
    problem = random_problem(0)
    policy = jm.Policy.uniform(problem.world)
    visits = jm.occupancy(problem.world, policy)
    foreign = ModelError(np.zeros(problem.world.num_pairs + 1), 0.0, 0.0)
    witness = jm.problem.witness_from_plan(problem, np.zeros(problem.target.size), ())
    for asked in (
        lambda: model_term(problem, visits, foreign),
        lambda: budget_terms(problem, visits, foreign),
        lambda: robust_expectations(problem, policy, foreign),
        lambda: true_world_lower_bound(problem, witness, foreign),
    ):
        with pytest.raises(jm.errors.InvalidProblem, match="the model error has") as refusal:
            asked()
        assert "transition_radii" in refusal.value.remedy
