"""The bound by agreement against brute force, policies of all forms, and what is refused."""

import itertools

import numpy as np
import pytest
from tests.naive.agreement_worlds import TinyWorld

import journeyman as jm
from journeyman.certificate.agreement import agreement, disagreements, episodes_that_halve
from journeyman.certificate.betting_means import upper_mean
from journeyman.errors import InvalidDemonstrations, InvalidPolicy, InvalidProblem
from journeyman.policy.observation_policy import ObservationPolicy


def recorded(rng, num_episodes=200, error=0.02, discount=0.9, length=30, dims=3, terminated=0.5):
    """Episodes of an expert who looks at the sign of the first number, and a clone that errs."""
    states, actions = [], []
    for _ in range(num_episodes):
        seen = rng.normal(size=(int(rng.integers(length // 2, length)) + 1, dims))
        states.append(seen)
        actions.append((seen[:-1, 0] > 0).astype(int))
    ends = rng.random(num_episodes) < terminated
    demos = jm.Demonstrations.from_arrays(states, actions, ends)

    def clone(seen):
        laws = np.full((len(seen), 2), error)
        laws[np.arange(len(seen)), (seen[:, 0] > 0).astype(int)] = 1 - error
        return laws

    return jm.Apprenticeship(jm.world.Records(discount, (0, 1)), None, demos), clone


@pytest.mark.parametrize("seed", range(60))
def test_bound_is_above_the_exact_gap(seed):
    tiny = TinyWorld.drawn(seed)
    assert tiny.gap <= tiny.bound() + 1e-12
    assert tiny.gap <= tiny.bound(logged=True) + 1e-12
    assert tiny.bound(logged=True) <= tiny.bound() + 1e-12


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("logged", [False, True])
def test_the_mean_over_all_episodes_is_what_is_enumerated(seed, logged):
    tiny = TinyWorld.drawn(seed)
    states, actions, ended, chances, probabilities = zip(*tiny.episodes(), strict=True)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in actions])])
    demos = jm.Demonstrations(
        np.concatenate(states), np.concatenate(actions), offsets, ended,
        probabilities=np.concatenate(chances),
    )  # fmt: skip
    records = jm.world.Records(tiny.discount, (0, 1), use_probabilities=logged)
    assert sum(probabilities) == pytest.approx(1)
    z = agreement(demos, jm.Policy(tiny.policy), records).disagreement
    assert tiny.spread * z @ np.array(probabilities) == pytest.approx(tiny.bound(logged=logged))


def test_what_may_not_be_left_out():
    # The expert ends at once, the policy goes on for ever at cost 1: without the time after the
    # end the bound would be 1, and the gap is 1/(1 - discount).
    tiny = TinyWorld.missed_end(0.9)
    assert tiny.gap == pytest.approx(9.0)
    assert tiny.bound(after_ends=False) == pytest.approx(1.0)
    assert tiny.bound() == pytest.approx(10.0)
    # A record that was cut off before the difference.
    late = TinyWorld.late_difference(0.9, recorded=1)
    assert late.gap == pytest.approx(9.0)
    assert late.bound(after_cuts=False) == 0.0
    assert late.bound() == pytest.approx(9.0)
    # Costs between 1 and 2: an early end saves up to 2 a step, not 1.
    early = TinyWorld.early_end(0.9)
    assert early.gap == pytest.approx(9 * 2.0)
    assert jm.world.Records(0.9, (-2, -1)).spread == 2.0
    # Probabilities averaged over what only the expert sees.
    hidden = TinyWorld.hidden_information(0.5)
    assert hidden.gap > 0.4
    assert hidden.bound(marginal=True) == pytest.approx(0.0)
    assert hidden.gap <= hidden.bound(logged=True)


def test_numbers_of_one_record_are_those_of_the_definition():
    discount = 0.8
    demos = jm.Demonstrations([0, 1, 2, 0, 1], [0, 1, 1], [0, 2, 3], [True, False])
    chances = np.array([0.5, 0.4, 0.9])
    h = 1 / (1 - discount)
    terminated = 0.5 + discount * 0.8 + discount**2 * h * 0.8
    cut = 0.1 + discount * h
    assert disagreements(demos, chances, discount) == pytest.approx([terminated, cut])
    table = jm.Policy([[0.5, 0.5], [0.1, 0.9]])
    found = agreement(demos, table, jm.world.Records(discount, (0, 1)))
    assert found.probabilities.tolist() == [[0.5, 0.9, 0.5]]
    assert found.per_step == pytest.approx(1 - (0.5 + 0.9 + 0.5) / 3)


def test_certificate_adds_up_and_names_its_premises():
    problem, clone = recorded(np.random.default_rng(0))
    certificate = jm.certify(problem, clone, 0.1)
    z = certificate.agreement.disagreement
    assert certificate.trivial_bound == pytest.approx(10)
    assert certificate.best.bound == pytest.approx(upper_mean(z, 10.0, 0.1))
    assert sum(term.value for term in certificate.terms) == pytest.approx(certificate.bound)
    assert certificate.valid
    assert not certificate.is_exact
    assert certificate.lower_bound == 0
    assert [one.name for one in certificate.premises][:2] == [
        "the policy is independent of the held-out episodes", "independent episodes",
    ]  # fmt: skip
    assert certificate.premises[0].status.name == "DECLARED"
    assert "in the declared range" in certificate.summary()
    assert "a policy that differs less often" in certificate.advice()
    assert "S: width of the declared range" in certificate.table()
    assert certificate.to_dict()["share"] == certificate.share
    assert "<section" in certificate._repr_html_() or "<div" in certificate._repr_html_()


def test_range_scales_the_bound():
    problem, clone = recorded(np.random.default_rng(0))
    wide = jm.Apprenticeship(jm.world.Records(0.9, (-3, 1)), None, problem.demonstrations)
    shares = [jm.certify(one, clone).share for one in (problem, wide)]
    assert shares[0] == pytest.approx(shares[1])
    assert jm.certify(wide, clone).bound == pytest.approx(4 * jm.certify(problem, clone).bound)


def test_a_great_number_of_episodes_is_extrapolated(monkeypatch):
    problem, clone = recorded(np.random.default_rng(1), 40, error=0.001, terminated=1.0)
    certificate = jm.certify(problem, clone)
    needed = episodes_that_halve(certificate)
    monkeypatch.setattr("journeyman.certificate.agreement.MOST_REPEATED", 50)
    assert needed / 3 < episodes_that_halve(certificate) < 3 * needed


def test_advised_number_of_episodes_halves_the_bound():
    problem, clone = recorded(np.random.default_rng(1), 40, error=0.001, terminated=1.0)
    certificate = jm.certify(problem, clone)
    needed = episodes_that_halve(certificate)
    assert f"About {needed:,} held-out episodes like these" in certificate.advice()
    factor = needed // 40
    demos = problem.demonstrations
    more = jm.Demonstrations.concatenate([demos] * factor)
    halved = jm.certify(jm.Apprenticeship(problem.world, None, more), clone)
    assert halved.bound <= certificate.bound / 2
    less = jm.Demonstrations.concatenate([demos] * (factor - max(1, factor // 4)))
    assert jm.certify(jm.Apprenticeship(problem.world, None, less), clone).bound > (
        certificate.bound / 2
    )


class Forest:
    """In the form of scikit-learn, with actions that are not numbered from 0."""

    classes_ = np.array([1, 4])

    def predict(self, seen):
        return self.classes_[(seen[:, 0] > 0).astype(int)]

    def predict_proba(self, seen):
        up = np.where(seen[:, 0] > 0, 0.75, 0.25)
        return np.column_stack([1 - up, up]).astype(np.float32)


class Greedy:
    """In the form of Stable-Baselines3's DQN."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert deterministic
        return (observation[:, 0] > 0).astype(int), None


class Plain:
    """In the form of d3rlpy."""

    def predict(self, x):
        return (x[:, 0] > 0).astype(np.int64)


class Tensor:
    def __init__(self, array):
        self.array, self.ndim = array, array.ndim

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.array


class Actor:
    """In the form of Stable-Baselines3's actors, behind an algorithm."""

    def obs_to_tensor(self, seen):
        return seen, True

    def get_distribution(self, seen):
        up = np.where(seen[:, 0] > 0, 0.75, 0.25)
        law = type("Categorical", (), {"probs": Tensor(np.column_stack([1 - up, up]))})
        return type("Distribution", (), {"distribution": law})


class Algorithm:
    policy = Actor()


@pytest.mark.parametrize(
    ("policy", "actions", "chances"),
    [
        (Forest(), [4, 1, 0], [0.75, 0.75, 0.0]),
        (Greedy(), [1, 1, 0], [1, 0, 0]),
        (Plain(), [1, 0, 1], [1, 1, 1]),
        (Algorithm(), [1, 0, 0], [0.75, 0.75, 0.25]),
        (Actor(), [1, 0, 7], [0.75, 0.75, 0.0]),
        (lambda x: np.tile([0.25, 0.75], (len(x), 1)), [0, 1, 2], [0.25, 0.75, 0.0]),
        (lambda x: (x[:, 0] > 0).astype(float), [1, 1, 0], [1, 0, 0]),
    ],
)
def test_policies_of_other_packages(policy, actions, chances):
    seen = np.array([[0.5, 1.0], [-0.5, 0.0], [0.2, 0.3]])
    asked = ObservationPolicy(policy)
    assert asked.of_actions(seen, np.array(actions)).tolist() == chances
    laws = np.pad(asked.probabilities(seen), ((0, 0), (0, 9)))
    assert laws[np.arange(3), actions].tolist() == chances
    assert laws.sum(axis=1).tolist() == [1, 1, 1]
    drawn = np.array([asked.sample(seen, seed) for seed in range(400)])
    for k, (action, chance) in enumerate(zip(actions, chances, strict=True)):
        assert (drawn[:, k] == action).mean() == pytest.approx(chance, abs=0.1)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (lambda x: np.full((len(x), 2), 0.4), "as probabilities"),
        (lambda x: x[:, 0], "Actions must be whole numbers"),
        (lambda x: np.full(len(x), -1), "Actions must be whole numbers from 0"),
        (lambda x: np.ones((len(x) + 1, 2)) / 2, "returns shape"),
        (3, "says nothing about actions"),
        (lambda x, rng: rng.integers(2, size=len(x)), "with observations alone"),
        (Forest, "is a class"),
    ],
)
def test_policies_that_are_none(policy, words):
    problem, _ = recorded(np.random.default_rng(0), 5)
    with pytest.raises(InvalidPolicy, match=words):
        jm.certify(problem, policy)


def test_cross_fitted_policies_meet_episodes_they_never_saw():
    problem, _ = recorded(np.random.default_rng(2), 60, terminated=1.0)
    demos, seen = problem.demonstrations, []

    def fit(part):
        seen.append(part)
        coin, rule = (lambda x: np.full((len(x), 2), 0.5)), (lambda x: (x[:, 0] > 0) * 1)
        return coin if len(seen) == 1 else rule

    policy = jm.demonstrations.cross_fit(demos, fit, folds=3)
    assert [len(part) for part in seen] == [40, 40, 40]
    for k, part in enumerate(seen):
        mine = demos.subset(np.flatnonzero(policy.folds == k))
        firsts = {tuple(row) for row in part.first_states}
        assert not firsts & {tuple(row) for row in mine.first_states}
    certificate = jm.certify(problem, policy)
    assert certificate.premises[0].status.name == "TESTED"
    parts = certificate.agreement.fold_parts()
    assert certificate.bound == pytest.approx(
        sum(share * upper_mean(z, 10.0, 0.05 / 3) for share, z in parts)
    )
    first, carried = policy.predict(np.full((50, 3), 2.0))
    again, _ = policy.predict(np.full((50, 3), 2.0), carried, [False] * 50)
    follows = carried[0] > 0
    assert 20 < follows.sum() < 46
    assert (first[follows] == 1).all()
    assert (again[follows] == 1).all()
    assert 0 in again[~follows]


def test_episodes_that_were_fitted_to_are_refused():
    problem, _ = recorded(np.random.default_rng(2), 30)
    demos = problem.demonstrations
    policy = jm.demonstrations.cross_fit(demos, lambda part: Plain())
    for some in (np.arange(10), np.arange(30)[::-1]):
        other = jm.Apprenticeship(problem.world, None, demos.subset(some))
        with pytest.raises(InvalidProblem, match="fitted to"):
            jm.certify(other, policy)
    fresh, _ = recorded(np.random.default_rng(3), 30)
    assert jm.certify(fresh, policy).premises[0].status.name == "DECLARED"


def test_equal_episodes_of_a_small_world_are_no_sign_of_fitting():
    rng = np.random.default_rng(0)

    def some(count, places):
        starts = rng.integers(0, places, (count, 6))
        return jm.Demonstrations.from_arrays(
            [[*row, 9] for row in starts], [row % 2 for row in starts], [True] * count,
            truncated_at=7,
        )  # fmt: skip

    def certified(fitted_to, held_out):
        policy = jm.demonstrations.cross_fit(fitted_to)
        problem = jm.Apprenticeship(jm.world.Records(0.9, (0, 1)), None, held_out)
        return jm.certify(problem, policy)

    few, many = some(60, 1), some(60, 50)
    assert certified(few, some(20, 1)).valid
    assert certified(many, some(20, 50)).valid
    with pytest.raises(InvalidProblem, match="fitted to"):
        certified(many, many.subset(np.arange(20)))
    half = jm.Demonstrations.concatenate([many.subset(np.arange(10)), some(10, 50)])
    with pytest.raises(InvalidProblem, match="fitted to"):
        certified(many, half)


def test_mixtures_are_weighted_means():
    problem, clone = recorded(np.random.default_rng(4), 50)
    never = ObservationPolicy(lambda x: (x[:, 0] <= 0).astype(int), 1)
    mixture = jm.policy.MixturePolicy([ObservationPolicy(clone, 1), never], [0.75, 0.25], 1)
    z = jm.certify(problem, mixture).agreement.disagreement
    alone = jm.certify(problem, clone).agreement.disagreement
    assert z == pytest.approx(0.75 * alone + 0.25 * 10)


def test_logged_probabilities():
    rng = np.random.default_rng(5)
    states = [rng.normal(size=(20 + k % 9, 2)) for k in range(100)]
    actions = [rng.integers(0, 2, len(part) - 1) for part in states]
    logged = [np.full(len(part) - 1, 0.5) for part in states]
    demos = jm.Demonstrations.from_arrays(states, actions, [True] * 100, probabilities=logged)

    def coin(x):
        return np.tile([0.5, 0.5], (len(x), 1))

    plain, used = (
        jm.certify(
            jm.Apprenticeship(jm.world.Records(0.9, (0, 1), use_probabilities=use), None, demos),
            coin,
        )
        for use in (False, True)
    )
    assert plain.vacuous or plain.share > 0.8
    assert used.share < 0.1
    assert "logged probabilities are conditional" in used.premises[-1].name
    assert not any("logged" in one.name for one in plain.premises)


def test_learning_from_records_alone(tmp_path):
    problem, _ = recorded(np.random.default_rng(8), 60, length=20, terminated=1.0)
    demos, world = problem.demonstrations, problem.world
    apprentice = jm.learn(world, None, demos, seed=3)
    assert apprentice.answer.reason.startswith("records alone")
    same = jm.certify(problem, jm.demonstrations.cross_fit(demos, seed=3))
    assert apprentice.certificate.bound == same.bound
    apprentice.save(tmp_path / "run")
    assert jm.audit(tmp_path / "run").require().passed
    apprentice.report(tmp_path / "report.html")
    assert "cross-fitting of 2 folds" in (tmp_path / "report.html").read_text()
    own = jm.solve(problem, jm.solvers.CrossFittedClone(lambda part: Plain(), folds=3))
    assert jm.certify(problem, own).agreement.per_step == 0
    explicit, basis, expert = jm.gallery.grid(4)
    records = jm.record(explicit, expert, trajectories=5, horizon=9, seed=0)
    with pytest.raises(InvalidProblem, match="nothing is known but records"):
        jm.solve(jm.Apprenticeship(explicit, basis, records), jm.solvers.CrossFittedClone())
    for wrong in ({"folds": 1}, {"fit": 3}, {"time_limit": -1.0}):
        with pytest.raises(jm.errors.InvalidSolver):
            jm.solvers.CrossFittedClone(**wrong)


def test_what_records_cannot_do():
    problem, clone = recorded(np.random.default_rng(0), 5)
    demos, world = problem.demonstrations, problem.world
    with pytest.raises(InvalidProblem, match="needs the level"):
        jm.solve(problem, jm.LinearProgram())
    with pytest.raises(InvalidProblem, match="nothing is known but records"):
        jm.certify(problem, clone, evaluation=jm.Rollouts(10, 10))
    with pytest.raises(InvalidProblem, match="hold no probabilities"):
        jm.Apprenticeship(jm.world.Records(0.9, (0, 1), use_probabilities=True), None, demos)
    with pytest.raises(InvalidProblem, match="range of costs only"):
        jm.Apprenticeship(world, jm.CostBasis([[1.0]]), demos)
    with pytest.raises(InvalidProblem, match="range of costs only"):
        jm.Apprenticeship(world, None, demos, jm.Simplex())
    budget = jm.Budget(cost=[1.0], at_most=1.0)
    with pytest.raises(InvalidProblem, match="needs the level"):
        jm.Apprenticeship(world, None, demos, constraints=[budget])
    with pytest.raises(InvalidProblem, match="the expert is a"):
        jm.Apprenticeship(world, None, jm.ExpertExpectation([1.0]))
    explicit, basis, _ = jm.gallery.grid(4)
    with pytest.raises(InvalidDemonstrations, match="hold observations"):
        jm.Apprenticeship(explicit, basis, demos)
    with pytest.raises(InvalidDemonstrations, match="hold observations"):
        demos.with_ends(terminal_state=3)
    for wrong in ((1, 0), 3, (0, np.inf), ("a", 1), (0, 0)):
        with pytest.raises(jm.errors.InvalidCosts):
            jm.world.Records(0.9, wrong)
    with pytest.raises(InvalidDemonstrations, match="probabilities"):
        jm.Demonstrations([0, 1], [0], [0, 1], probabilities=[0.0])
    with pytest.raises(InvalidDemonstrations, match="shape"):
        jm.Demonstrations.from_arrays([np.zeros((2, 3)), np.zeros((2, 2))], [[0], [0]])


def test_network_clone_learns_a_rule():
    problem, _ = recorded(np.random.default_rng(6), 60, length=20)
    fresh, _ = recorded(np.random.default_rng(7), 60, length=20)
    network = jm.demonstrations.clone_observations(problem.demonstrations, passes=30, seed=1)
    assert jm.certify(fresh, network).agreement.per_step < 0.03
    again = jm.demonstrations.clone_observations(problem.demonstrations, passes=30, seed=1)
    for one, other in itertools.zip_longest(network.layers, again.layers):
        assert np.array_equal(one, other)
    action, _ = network.predict(np.array([2.0, 0.0, 0.0]))
    assert action == 1
    assert network.predict(np.array([[[2.0, 0, 0]], [[-2.0, 0, 0]]]))[0].tolist() == [[1], [0]]
    same = [network.drawing.seeded(4).predict(problem.demonstrations.states)[0] for _ in range(2)]
    assert np.array_equal(*same)
