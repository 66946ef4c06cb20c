"""Certificates in estimated worlds: honest ones pass, whatever is known; changed ones do not."""

import copy
import math
import re
import shutil

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

import journeyman as jm
from checker.forging import at as inside
from checker.forging import (
    change_arrays,
    change_facts,
    drop,
    edit,
    facts_of,
    failed,
    numbers_in,
    rehash,
    summed_up,
    write_facts,
)
from frequencies import frequencies, start_frequencies
from journeyman.certificate.model_error import Evidence, LawBall
from journeyman.certificate.saving import save_run
from journeyman.checker.chain import NearbyLaws, worst_total
from journeyman.checker.inputs import (
    Bets,
    Distances,
    Knowledge,
    StoredWorld,
    bets_on,
    divergence,
    pinsker,
)
from journeyman.testing.random_worlds import Shape, random_policy, random_world
from journeyman.testing.strategies import cost_classes, policies, seeds, worlds

pytestmark = pytest.mark.filterwarnings("ignore::journeyman.errors.SupportWarning")
QUICK = [Phase.generate]
CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]
every_class = pytest.mark.parametrize("kind", CLASSES)


def truth(num_states=4):
    """Its last state is never left."""
    return random_world(3, Shape.ABSORBING, num_states=num_states, num_actions=2, discount=0.8)


def recorded_steps(world, count, seed=0):
    """`count` transitions of every pair."""
    rng = np.random.default_rng(seed)
    pairs = np.repeat(np.arange(world.num_pairs), count)
    rows = world.transition.toarray()
    following = [rng.choice(world.num_states, p=rows[pair]) for pair in pairs]
    actions = pairs - world.pairs.offsets[world.pairs.states[pairs]]
    return world.pairs.states[pairs], actions, np.array(following)


def recorded(world, **known):
    """A twin of `world` from 400 transitions of every pair."""
    return jm.World.from_transitions(*recorded_steps(world, 400), 0.8, **known)


def with_laws(world, **known):
    """The laws of `world`, or the nearest frequencies of as many draws as are `known`."""
    laws, starts = world.transition, world.initial
    if "transition_counts" in known:
        laws = frequencies(laws, known["transition_counts"])
    if "initial_count" in known:
        starts = start_frequencies(starts, known["initial_count"])
    return jm.World(laws, starts, world.discount, choice_offsets=world.pairs.offsets, **known)


KNOWN = {
    "counts": lambda true: recorded(true, initial=true.initial),
    "counts, absorbing": lambda true: recorded(true, initial=true.initial, absorbing=[3]),
    "counts, support": lambda true: recorded(
        true, initial=true.initial, support=true.transition
    ),
    "counts and starts": lambda true: recorded(
        true, initial_states=np.arange(200) % 4, support=true.transition, absorbing=[3]
    ),
    "starts": lambda true: with_laws(true, initial_count=500),
    "declared": lambda true: with_laws(
        true, transition_error=np.linspace(0, 0.2, true.num_pairs)
    ),
    "declared starts": lambda true: with_laws(true, initial_error=0.05, transition_error=0.0),
    "declared, support": lambda true: with_laws(
        true, transition_error=0.1, support=true.transition
    ),
    "declared and counted": lambda true: with_laws(
        true, transition_error=0.05, transition_counts=300, initial_count=50, initial_error=0.3,
        support=true.transition,
    ),
}  # fmt: skip


def basis_of(world, seed=1):
    return jm.CostBasis(np.random.default_rng(seed).uniform(-1, 1, (world.num_pairs, 2)))


def demonstrations(true, model, count=60, horizon=25):
    """Of an expert in the true world; the model may not know where episodes end."""
    found = jm.record(true, random_policy(true, 5), trajectories=count, horizon=horizon, seed=2)
    ended = model.absorbing[found.last_states]
    return jm.Demonstrations(found.states, found.actions, found.offsets, ended)


def budgets(world):
    cost = np.linspace(0, 1, world.num_pairs)
    return [
        jm.Budget(cost, 0.9 * world.effective_horizon, name="wear"),
        jm.Budget(np.linspace(-1, 1, world.num_states), 3.0, name="place"),
    ]


def audited(certificate, place, **more):
    save_run(certificate, place, seeds={"solver": 0}, **more)
    return jm.audit(place).require()


# Honest runs


@every_class
@pytest.mark.parametrize("what", KNOWN)
def test_honest_runs_pass(kind, what, tmp_path):
    true = truth()
    world = KNOWN[what](true)
    problem = jm.Apprenticeship(
        world, basis_of(world), demonstrations(true, world), kind([0.5, 2.0]), budgets(world)
    )
    certificate = jm.certify(problem, jm.solve(problem))
    assert "D, worst laws" in {way.kind for way in certificate.combinations}
    assert audited(certificate, tmp_path).checked > 100


@every_class
def test_measures_rollouts_and_declared_experts_pass(kind, tmp_path):
    true = truth()
    world = KNOWN["counts and starts"](true)
    expert = jm.ExpertExpectation([0.3, -0.2])
    problem = jm.Apprenticeship(world, basis_of(world), expert, kind(), budgets(world))
    measure = np.random.default_rng(0).normal(size=world.num_pairs)
    certificate = jm.certify(problem, jm.policy.extract(world, measure), measure=measure)
    assert {way.kind for way in certificate.combinations} >= {"A", "B", "B'", "C", "D"}
    assert audited(certificate, tmp_path).passed
    drawn = jm.certify(problem, random_policy(world, 1), evaluation=jm.Rollouts(200, 30))
    assert {way.kind for way in drawn.combinations} == {"E", "D, worst laws"}
    assert audited(drawn, tmp_path).passed


def test_many_demonstrations_are_not_shaped_by_laws_that_are_estimates(tmp_path):
    true = truth()
    world = KNOWN["counts, support"](true)
    demos = demonstrations(true, world, count=520, horizon=4)
    basis = basis_of(world)
    for method in (None, jm.demonstrations.ControlVariate()):
        expert = jm.ExpertExpectation.from_demonstrations(demos, basis, world, method=method)
        problem = jm.Apprenticeship(world, basis, expert)
        certificate = jm.certify(problem, jm.clone(demos, world))
        assert len(certificate.combinations) == 4
        assert audited(certificate, tmp_path).passed


def test_a_forward_problem_and_sparse_costs_pass(tmp_path):
    world = KNOWN["counts"](truth())
    cost = np.linspace(0, 1, world.num_pairs)
    problem = jm.Forward(world, cost, budgets(world))
    assert audited(jm.certify(problem, random_policy(world, 0)), tmp_path).passed
    table = sparse.csr_array(np.where(np.arange(world.num_states)[:, None] % 2, 0.0, [1.0, -2.0]))
    sparse_problem = jm.Apprenticeship(world, jm.CostBasis(table), jm.ExpertExpectation([1.0, 0.0]))
    assert audited(jm.certify(sparse_problem, random_policy(world, 0)), tmp_path).passed


def test_an_expert_who_steps_where_the_model_saw_nobody_step_passes(tmp_path):
    """Without a support nothing is impossible."""
    world = jm.World([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]], [1, 0, 0], 0.8, transition_counts=8)
    demos = jm.Demonstrations([0, 2, 1] * 5, [0, 0] * 5, np.arange(0, 11, 2))
    problem = jm.Apprenticeship(world, jm.CostBasis([0.0, 1.0, 0.5]), demos)
    assert audited(jm.certify(problem, jm.Policy([[1.0]] * 3)), tmp_path).passed


def test_actions_in_the_numbers_of_the_record_pass(tmp_path):
    """Action 1 was never seen in state 0, and action 2 keeps its number."""
    model = jm.World.from_transitions(
        [0, 0, 0, 1, 1], [0, 2, 2, 0, 1], [1, 0, 1, 0, 1], 0.8, initial=[1, 0]
    )
    assert model.observed_actions.tolist() == [0, 2, 0, 1]
    basis, policy = jm.CostBasis([0.0, 1.0, 0.5, 0.2]), random_policy(model, 0)
    recorded_numbers = jm.Demonstrations([0, 1, 0] * 9, [2, 0] * 9, np.arange(0, 19, 2))
    own_numbers = jm.record(model, policy, trajectories=9, horizon=5, seed=0)
    for demos in (recorded_numbers, own_numbers):
        problem = jm.Apprenticeship(model, basis, demos)
        assert audited(jm.certify(problem, policy), tmp_path).passed
    save_run(
        jm.certify(jm.Apprenticeship(model, basis, recorded_numbers), policy),
        tmp_path, seeds={"solver": 0},
    )  # fmt: skip
    change_arrays(tmp_path / "demonstrations.npz", lambda _, arrays: arrays["actions"].fill(1))
    rehash(tmp_path)
    failed(tmp_path, "an action that the world lacks")


@pytest.fixture(scope="module")
def saved_with_numbers(tmp_path_factory):
    """State 0 has actions 3 and 7, state 1 has 2 and 3."""
    place = tmp_path_factory.mktemp("numbered") / "run"
    model = jm.World.from_transitions(
        [0, 0, 0, 1, 1] * 9, [3, 7, 7, 2, 3] * 9, [1, 0, 1, 0, 1] * 9, 0.8, initial=[1, 0]
    )
    policy = random_policy(model, 0)
    demos = jm.record(model, policy, trajectories=9, horizon=5, seed=0)
    table = np.arange(16.0).reshape(2, 8)
    budget = jm.Budget(cost=table, at_most=40.0, name="doses")
    problem = jm.Apprenticeship(
        model, jm.CostBasis(np.repeat([0.0, 1.0], 8)), demos, constraints=budget
    )
    assert problem.budget_matrix[:, 0].tolist() == [3, 7, 10, 11]
    assert audited(jm.certify(problem, policy), place).passed
    return place


def without_numbers(header, arrays):
    del arrays["action_numbers"]


def without_numbers_as_in_version_1(header, arrays):
    del arrays["action_numbers"]
    header["version"] = 1


def with_other_numbers(header, arrays):
    arrays["action_numbers"] = np.array([3, 6, 2, 3])


def with_numbers_in_version_1(header, arrays):
    header["version"] = 1


@pytest.mark.parametrize("file", ["policy.npz", "demonstrations.npz"])
@pytest.mark.parametrize(
    "change",
    [
        without_numbers,
        without_numbers_as_in_version_1,
        with_other_numbers,
        with_numbers_in_version_1,
    ],
    ids=lambda change: change.__name__,
)
def test_a_careful_change_of_action_numbers(saved_with_numbers, tmp_path, file, change):
    run = shutil.copytree(saved_with_numbers, tmp_path / "run")
    change_arrays(run / file, change)
    rehash(run)
    failed(run, "numbers")


def test_a_careful_change_of_the_numbers_of_the_world(saved_with_numbers, tmp_path):
    run = shutil.copytree(saved_with_numbers, tmp_path / "run")
    change_arrays(run / "world.npz", lambda _, arrays: arrays["observed_actions"].__setitem__(1, 6))
    rehash(run)
    failed(run, "numbers actions otherwise than the world")


@settings(max_examples=30, phases=QUICK)
@given(worlds(), st.data())
def test_random_worlds_pass(tmp_path_factory, world, data):
    """Every shape, class and discount; errors, counts and supports of any size."""
    rng, num_costs = np.random.default_rng(data.draw(seeds)), data.draw(st.integers(1, 3))
    known = {
        "transition_error": rng.uniform(0, 2, world.num_pairs) * rng.integers(0, 2),
        "initial_error": float(rng.uniform(0, 1)),
        "transition_counts": rng.integers(1, 10 ** int(rng.integers(1, 7)), world.num_pairs),
        "initial_count": int(rng.integers(1, 1000)),
        "support": world.transition,
    }
    chosen = data.draw(st.sets(st.sampled_from(sorted(known)), min_size=1))
    model = with_laws(world, **{name: known[name] for name in chosen})
    basis = jm.CostBasis(rng.normal(size=(world.num_pairs, num_costs)))
    kind = data.draw(cost_classes(num_costs))
    if data.draw(st.booleans()):
        expert = jm.ExpertExpectation(rng.normal(size=num_costs))
    else:
        made = jm.record(world, data.draw(policies(world)), trajectories=25, horizon=6, seed=1)
        ended = model.absorbing[made.last_states]
        expert = jm.Demonstrations(made.states, made.actions, made.offsets, ended)
    problem = jm.Apprenticeship(model, basis, expert, kind, budgets(model))
    certificate = jm.certify(problem, data.draw(policies(model)), 0.1)
    assert audited(certificate, tmp_path_factory.mktemp("run")).passed


# The auditor's own search


@settings(max_examples=40, phases=QUICK)
@given(seeds, st.booleans())
def test_the_greatest_mean_is_the_optimum_of_its_linear_program(seed, supported):
    rng = np.random.default_rng(seed)
    law, values = rng.dirichlet(np.full(5, 0.5)) * (np.arange(5) < 4), rng.normal(size=5)
    law = law / law.sum()
    distance, possible = float(rng.uniform(0, 2.2)), (law > 0) | (rng.random(5) < 0.3)
    support = sparse.csr_array(possible[np.newaxis].astype(float)) if supported else None
    ball = NearbyLaws(sparse.csr_array(law[np.newaxis]), np.array([distance]), support)
    eye, ones = np.eye(5), np.ones(5)
    sides = np.block([[eye, -eye], [-eye, -eye], [np.zeros(5), ones]])
    ends = [(0, None if not supported or one else 0) for one in possible] + [(0, None)] * 5
    best = linprog(
        np.concatenate([-values, np.zeros(5)]), A_ub=sides,
        b_ub=np.concatenate([law, -law, [distance]]),
        A_eq=np.concatenate([ones, np.zeros(5)])[np.newaxis], b_eq=[1.0], bounds=ends,
    )  # fmt: skip
    assert ball.greatest(values)[0] == pytest.approx(-best.fun, abs=1e-9)


@settings(max_examples=25, phases=QUICK)
@given(worlds(), st.data())
def test_the_worst_total_is_attained_and_a_fixed_point(world, data):
    """Value iteration, the slow obvious way."""
    rng = np.random.default_rng(data.draw(seeds))
    world = jm.World(
        world.transition, world.initial, min(world.discount, 0.9),
        choice_offsets=world.pairs.offsets,
    )  # fmt: skip
    policy, cost = data.draw(policies(world)).per_pair, rng.normal(size=world.num_pairs)
    distances = Distances(rng.uniform(0, 1, world.num_pairs), float(rng.uniform(0, 1)), 0.0)
    plain = StoredWorld(
        world.transition, world.pairs.offsets, world.initial, world.discount, Knowledge()
    )
    low, high = worst_total(plain, policy, cost, distances)
    values, ball = np.zeros(world.num_states), NearbyLaws(world.transition, distances.transition)
    for _ in range(250):
        ahead = cost + world.discount * ball.greatest(values)
        values = np.add.reduceat(policy * ahead, world.pairs.offsets[:-1])
    start = NearbyLaws(sparse.csr_array(world.initial[np.newaxis]), np.array([distances.initial]))
    exact = float(start.greatest(values)[0])
    size = 1e-9 * world.effective_horizon
    assert low == pytest.approx(exact, abs=size)
    assert high >= exact - size


def test_a_divergence_by_hand():
    """Two states, seen 3 and 1 times: 1/2 each, in either mixture: Q = (1/2 3/2 5/2 1/2)/4!."""
    bet = 0.5 * 1.5 * 2.5 * 0.5 / 24
    likelihood = (3 / 4) ** 3 * (1 / 4)
    expected = math.log(7 / 0.01 * likelihood / bet) / 4
    assert divergence([3.0, 1.0], 2, 7, 0.01) == pytest.approx(expected, rel=1e-12)
    assert divergence([4.0], 1, 7, 0.01) == 0
    assert divergence([], 3, 7, 0.01) == math.inf
    assert pinsker(np.array([0.0, 0.02, 9.0, math.inf])).tolist() == [0.0, 0.2, 2.0, 2.0]


def test_a_centred_bet_by_hand():
    """Two states, seen 12 and 4 times, c = 4: on the frequencies it begins with 3.5 and 1.5."""
    tally = sparse.csr_array([[12.0, 4.0]])
    bet = math.prod(3.5 + k for k in range(12)) * math.prod(1.5 + k for k in range(4))
    bet /= math.prod(5.0 + k for k in range(16))
    expected = math.log(2 * 12 * 7 / 0.01 * (3 / 4) ** 12 * (1 / 4) ** 4 / bet) / 16
    found = bets_on(tally, np.array([2]), np.array([9.0]), 7, 0.01)
    assert found.allowed == pytest.approx([expected], rel=1e-12)
    assert [one[0] for one in (found.counts, found.centring, found.smoothing)] == [16, 4, 0.5]
    narrow = bets_on(tally, np.array([2]), np.array([expected]), 7, 0.01)
    assert (narrow.allowed[0], narrow.centring[0]) == (expected, 0.0)


@settings(max_examples=40, phases=QUICK)
@given(seeds)
def test_the_greatest_mean_that_counts_allow_is_attained_and_proved_by_both(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([50, 1000, 10**5]))
    tally = rng.multinomial(n, rng.dirichlet(np.full(5, 0.5)))[np.newaxis] * 1.0
    sizes, values = np.array([5]), rng.normal(size=5)
    own = divergence(tally[tally > 0].tolist(), 5, 9, 0.02)
    bets = bets_on(sparse.csr_array(tally), sizes, np.array([own]), 9, 0.04)
    _, evidence = Evidence.of(sparse.csr_array(tally), sizes, 9, 0.04)
    rows, far = sparse.csr_array(tally / n), np.array([2.0])
    ball = NearbyLaws(rows, far, None, bets)
    found = float(ball.greatest(values)[0])
    left, top = ball.extreme(values)
    attained = float((left @ values)[0] + (1 - left.sum()) * values[top[0]])
    assert attained == pytest.approx(found, abs=1e-7)
    claimed = LawBall(rows, far, None, evidence).highest(values)
    assert float(claimed[0]) == pytest.approx(found, abs=1e-7)


@settings(max_examples=40, phases=QUICK)
@given(seeds)
def test_the_greatest_mean_within_a_divergence_is_attained_and_never_exceeded(seed):
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(5, 0.5)) * (np.arange(5) < rng.integers(1, 6))
    values = rng.normal(size=5)
    law = np.where(law < 1e-6, 0.0, law)
    law = law / law.sum() if law.any() else np.eye(5)[0]
    info = float(rng.choice([1e-5, 1e-2, 0.3, 4.0]))
    far = np.array([2.0])
    plain = Bets(np.array([info]), *np.array([[1.0], [0.0], [1.0]]))
    ball = NearbyLaws(sparse.csr_array(law[np.newaxis]), far, None, plain)
    found = float(ball.greatest(values)[0])
    left, top = ball.extreme(values)
    worst = left.toarray()[0] + (1 - left.sum()) * np.eye(5)[top[0]]
    seen = law > 0
    assert worst @ values == pytest.approx(found, abs=1e-7)
    reached = np.maximum(worst[seen], 1e-12)
    assert law[seen] @ np.log(law[seen] / reached) <= info * (1 + 1e-5) + 1e-9
    others = law + rng.dirichlet(np.ones(5), 500) * rng.choice([1, 0.1, 0.01], (500, 1))
    others /= others.sum(axis=1, keepdims=True)
    diverged = (law[seen] * np.log(law[seen] / others[:, seen])).sum(axis=1)
    assert (others[diverged <= info] @ values <= found + 1e-12).all()


# Changed runs


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Counts and a support, starts that were counted, budgets, a positive lower bound."""
    place = tmp_path_factory.mktemp("estimated") / "run"
    true = random_world(3, Shape.SPARSE, num_states=4, num_actions=2, discount=0.8)
    counts = 40_000 + np.arange(true.num_pairs)
    possible = true.transition.toarray() + np.eye(4)[true.pairs.states]
    model = with_laws(
        true, transition_counts=counts, initial_count=90_000, support=possible,
        transition_error=np.where(true.pairs.states == 2, 0.0, 0.5),
        observed_actions=true.pairs.actions,
    )  # fmt: skip
    expert = jm.ExpertExpectation.from_demonstrations(
        demonstrations(true, model), basis_of(model), model
    )
    problem = jm.Apprenticeship(model, basis_of(model), expert, jm.EuclideanBall(), budgets(model))
    certificate = jm.certify(problem, jm.solve(problem))
    audited(certificate, place)
    return place


@pytest.fixture
def run(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


def another_count(header, arrays):
    arrays["transition_counts"][0] *= 2


def a_count_of_nothing(header, arrays):
    arrays["transition_counts"][0] = 0
    arrays["transition_error"][0] = 2.0


def no_counts(header, arrays):
    del arrays["transition_counts"]


def more_starts(header, arrays):
    header["initial_count"] *= 2


def no_starts(header, arrays):
    header["initial_count"] = None


def a_fraction_of_a_start(header, arrays):
    header["initial_count"] = 90_000.5


def a_smaller_error(header, arrays):
    arrays["transition_error"][0] = 1e-4


def an_impossible_error(header, arrays):
    arrays["transition_error"][0] = 2.5


def a_declared_start(header, arrays):
    header["initial_error"] = 0.001


def a_word_for_an_error(header, arrays):
    header["initial_error"] = "small"


def exact_after_all(header, arrays):
    for name in ("transition_counts", "transition_error"):
        del arrays[name]
    header["initial_count"] = None


def called_exact(header, arrays):
    header["version"] = 1


def of_another_version(header, arrays):
    header["version"] = 3


def a_smaller_support(header, arrays):
    """Nowhere but where the laws lead."""
    kept, sizes = [], []
    for pair, (low, high) in enumerate(
        zip(arrays["support_indptr"][:-1], arrays["support_indptr"][1:], strict=True)
    ):
        law = arrays["indices"][arrays["indptr"][pair] : arrays["indptr"][pair + 1]]
        possible = arrays["support_indices"][low:high]
        chosen = np.intersect1d(possible, law)
        kept.append(chosen)
        sizes.append(chosen.size)
    arrays["support_indices"] = np.concatenate(kept)
    arrays["support_indptr"] = np.concatenate([[0], np.cumsum(sizes)])


def a_support_that_excludes_a_law(header, arrays):
    arrays["support_indices"] = arrays["support_indices"][1:]
    arrays["support_indptr"][1:] -= 1


def no_support(header, arrays):
    del arrays["support_indices"], arrays["support_indptr"]


def half_a_support(header, arrays):
    del arrays["support_indices"]


def no_action_numbers(header, arrays):
    del arrays["observed_actions"]


def more_action_numbers(header, arrays):
    arrays["observed_actions"] = arrays["observed_actions"] * 3


def action_numbers_out_of_order(header, arrays):
    arrays["observed_actions"] = arrays["observed_actions"][::-1]


OF_THE_WORLD = [
    another_count, a_count_of_nothing, no_counts, more_starts, no_starts, a_fraction_of_a_start,
    a_smaller_error, an_impossible_error, a_declared_start, a_word_for_an_error, exact_after_all,
    called_exact, of_another_version, a_smaller_support, a_support_that_excludes_a_law, no_support,
    half_a_support, no_action_numbers, more_action_numbers, action_numbers_out_of_order,
]  # fmt: skip


@pytest.mark.parametrize("change", OF_THE_WORLD, ids=lambda change: change.__name__)
def test_a_careful_change_of_the_world(run, change):
    change_arrays(run / "world.npz", change)
    rehash(run)
    outcome = failed(run)
    assert "SHA-256" not in str(outcome)
    assert "digest" not in str(outcome)


def terms_of(facts, kind, name):
    found = [
        term
        for way in facts["combinations"]
        if way["kind"] == kind
        for term in way["terms"]
        if term["name"] == name
    ]
    assert found
    return found


def a_smaller_model_term(facts):
    for term in terms_of(facts, "D", "model"):
        term["value"] *= 0.999
    summed_up(facts)


def narrower_ranges(facts):
    for term in terms_of(facts, "D, worst laws", "model"):
        term["value"] *= 0.999
    summed_up(facts)


def wider_ranges(facts):
    for term in terms_of(facts, "D, worst laws", "model"):
        term["value"] *= 1.01
    summed_up(facts)


def no_model_term(facts):
    for way in facts["combinations"]:
        if way["kind"] == "D":
            way["terms"] = [term for term in way["terms"] if term["name"] != "model"]
    summed_up(facts)


def another_source(facts):
    terms_of(facts, "D", "model")[0]["source"] = "declared errors of the model"


def all_for_the_expert(facts):
    """The radius of the expert as if the counts had cost nothing."""
    share = math.sqrt(math.log(1 / (0.8 * 0.05)) / math.log(1 / (0.8 * 0.0375)))
    for term in terms_of(facts, "D", "sampling") + terms_of(facts, "D, worst laws", "sampling"):
        term["value"] *= share
    summed_up(facts)


def a_smaller_model_term_of_a_budget(facts):
    budget = facts["budgets"][0]
    budget["terms"][3]["value"] *= 0.999
    exact = math.fsum(term["value"] for term in budget["terms"])
    budget["spent"] = float(np.nextafter(exact, np.inf))


def no_worst_laws(facts):
    facts["combinations"] = [way for way in facts["combinations"] if way["kind"] == "D"]
    summed_up(facts)


def a_narrower_interval(facts):
    one = facts["apprentice_intervals"][0]
    middle, half = (one["low"] + one["high"]) / 2, (one["high"] - one["low"]) / 2
    one["low"], one["high"] = middle - 0.999 * half, middle + 0.999 * half


def untested_laws_tested(facts):
    facts["premises"][2] |= {"status": "tested, not refuted", "level": 1e-3}


def another_agreement(old, new):
    """Text about the comparison with the estimated laws, changed."""

    def change(facts):
        (premise,) = (one for one in facts["premises"] if one["name"].startswith("demonstrations"))
        assert old in str(premise)
        for part in ("status", "detail"):
            premise[part] = premise[part].replace(old, new)

    return change


def the_premise(beginning, change):
    """Another premise with this name, or none."""

    def changed(facts):
        (place,) = (
            k for k, one in enumerate(facts["premises"]) if one["name"].startswith(beginning)
        )
        facts["premises"][place : place + 1] = change(facts["premises"][place])

    return changed


OF_THE_CERTIFICATE = {
    "support not named": the_premise("the support", lambda one: []),
    "support tested": the_premise(
        "the support", lambda one: [one | {"status": "tested, not refuted", "level": 1e-3}]
    ),
    "support called the observed pattern": the_premise(
        "the support",
        lambda one: [one | {"detail": f"{one['detail']}; the support equals the observed pattern"}],
    ),
    "laws exact by their support": the_premise(
        "the support",
        lambda one: [one | {"detail": f"{one['detail']}; 2 recorded pairs have one possible next "
                            "state, and error 0 by that"}],
    ),
    "copies not named": the_premise("no episode", lambda one: []),
    "copies tested": the_premise(
        "no episode", lambda one: [one | {"status": "tested, not refuted", "level": 1e-3}]
    ),
    "another e-value of copies": the_premise(
        "no episode",
        lambda one: [one | {"detail": re.sub("e-value of .*", "e-value of 77", one["detail"])}],
    ),
    "smaller model term": a_smaller_model_term,
    "narrower ranges": narrower_ranges,
    "wider ranges": wider_ranges,
    "no model term": no_model_term,
    "another source": another_source,
    "all of delta for the expert": all_for_the_expert,
    "smaller model term of a budget": a_smaller_model_term_of_a_budget,
    "no worst laws": no_worst_laws,
    "narrower interval": a_narrower_interval,
    "lower bound of the model": edit(("lower_bounds", "on_data"), lambda value: value + 1e-3),
    "true lower bound": edit(("lower_bounds", "true"), lambda value: value + 1e-3),
    "premise about the model removed": drop("premises", 2),
    "premise about the model tested": untested_laws_tested,
    "agreement refuted": another_agreement("tested, not refuted", "failed"),
    "agreement of more steps": another_agreement(" steps (", "0 steps ("),
    "agreement at another distance": another_agreement("at distance ", "at distance 1"),
    "agreement with a larger limit": another_agreement(", 0.", ", 1."),
    "agreement removed": drop("premises", 3),
    "premise about other laws": edit(("premises", 2, "detail"), "steps cannot be tested"),
    "budgets for certain": edit(("budgets", 0, "failure_probability"), 0.0),
    "statistics of nothing": edit(("combinations", 0, "statistics"), [{"name": "x"}]),
    "another probability": edit(("failure_probability",), 0.04),
}  # fmt: skip


@pytest.mark.parametrize("change", OF_THE_CERTIFICATE.values(), ids=OF_THE_CERTIFICATE)
def test_a_careful_change_of_the_certificate(run, change):
    change_facts(run, change)
    assert "digest" not in str(failed(run))


def test_a_support_from_the_record_has_to_be_called_so(tmp_path):
    """A run whose support is the observed pattern says so, and may not conceal it."""
    true = truth()
    steps = recorded_steps(true, 3)
    seen = np.zeros((true.num_pairs, true.num_states))
    seen[2 * steps[0] + steps[1], steps[2]] = 1
    model = jm.World.from_transitions(*steps, 0.8, initial=true.initial, support=seen)
    problem = jm.Forward(model, np.linspace(0, 1, model.num_pairs))
    certificate = jm.certify(problem, random_policy(model, 0))
    (premise,) = (one for one in certificate.premises if one.name.startswith("the support"))
    assert "equals the observed pattern" in premise.detail
    assert "the support was known before recording" in certificate.summary()
    assert "if it was taken from the record, the bound is too small" in certificate.summary()
    audited(certificate, tmp_path)
    plain = the_premise(
        "the support", lambda one: [one | {"detail": one["detail"].partition(";")[0]}]
    )
    change_facts(tmp_path, plain)
    failed(tmp_path, "the text of the premise that the support was known before recording")


def a_smoothed_law(header, arrays):
    low, high = arrays["indptr"][:2]
    arrays["data"][low:high] = (arrays["data"][low:high] + 0.01) / (1 + 0.01 * (high - low))


def test_counts_of_other_laws_are_refused(run):
    change_arrays(run / "world.npz", a_smoothed_law)
    rehash(run)
    failed(run, "no frequency of as many observations")


def test_every_number_is_checked(run):
    """Each number of the certificate, moved by a thousandth of its size or of the trivial bound."""
    honest = facts_of(run)
    for count, path in enumerate(numbers_in(honest)):
        facts = copy.deepcopy(honest)
        place, key = inside(facts, path)
        size = max(abs(place[key]), honest["trivial_bound"] if "level" not in path else 0.0)
        change = 1e-3 * (size if path != ("failure_probability",) else 0.01)
        place[key] += change if count % 2 else -change
        write_facts(run, facts)
        assert not jm.audit(run).passed, path


def test_the_worst_laws_of_another_policy_are_not_taken(run):
    change_arrays(run / "policy.npz", lambda _, arrays: arrays["probabilities"].__iadd__(0))
    rehash(run)
    assert jm.audit(run).passed
    change_arrays(run / "policy.npz", lambda _, arrays: arrays["probabilities"].fill(0.5))
    rehash(run)
    failed(run, "D, worst laws")


def test_a_run_from_before_demonstrations_were_held_against_the_model_is_refused(tmp_path):
    """Its list of premises is shorter, as it had to be then: no forgery, but other rules."""
    true = truth()
    world = recorded(true, initial=true.initial, absorbing=[3])
    demos = jm.record(true, jm.Policy.uniform(true), trajectories=30, horizon=20, seed=0)
    basis = jm.CostBasis(np.eye(true.num_states))
    jm.learn(world, basis, demos).save(tmp_path)
    facts = facts_of(tmp_path)
    kept = [one for one in facts["premises"] if "agree with the estimated" not in one["name"]]
    assert len(kept) == len(facts["premises"]) - 1
    write_facts(tmp_path, facts | {"premises": kept, "version": 2})
    (finding,) = jm.audit(tmp_path).findings
    assert "version 2 of the schema cannot be audited" in finding
    assert "certify and save again" in finding


def test_visits_cannot_make_the_error_of_the_model_small(run):
    """Without visits the model would hide nothing, if what they miss did not count."""
    change_arrays(run / "evidence.npz", lambda _, arrays: arrays["visits"].fill(0.0))
    rehash(run)
    failed(run, "of its flow unexplained", "'model' in the combination (D;")
