"""Runs of which nothing but records is known: honest ones pass, every changed number is found."""

import copy
import shutil

import numpy as np
import pytest

import journeyman as jm
from checker.forging import at, change_arrays, facts_of, failed, numbers_in, rehash, write_facts
from journeyman.certificate.betting_means import upper_mean
from journeyman.checker.betting import upper_mean as second_upper_mean
from journeyman.policy.linear_values import LinearValuePolicy, QuadraticFeatures
from journeyman.report.saved_run import read_run
from journeyman.solvers.least_squares_planner import by_state


def episodes(seed, *, ids=False, num_episodes=30, logged=False):
    """Of an expert who looks at the sign of the first number, or at the parity of the state."""
    rng = np.random.default_rng(seed)
    states, actions = [], []
    for _ in range(num_episodes):
        length = int(rng.integers(3, 15))
        seen = rng.integers(0, 6, length + 1) if ids else rng.normal(size=(length + 1, 2))
        states.append(seen)
        actions.append(seen[:-1] % 2 if ids else (seen[:-1, 0] > 0).astype(int))
    ended = rng.random(num_episodes) < 0.6
    chances = [np.full(len(part), 0.99) for part in actions] if logged else None
    return jm.Demonstrations.from_arrays(states, actions, ended, probabilities=chances)


def table(x):
    laws = np.full((len(x), 2), 0.03)
    laws[np.arange(len(x)), (x[:, 0] > 0).astype(int)] = 0.97
    return laws


def network(part):
    return jm.demonstrations.clone_observations(part, hidden=8, passes=5, greedy=False)


def certified(kind):
    ids, logged = kind in ("visited", "table", "states"), kind == "logged"
    demos = episodes(1, ids=ids, logged=logged)
    records = jm.world.Records(0.9, (-1, 0.5), use_probabilities=logged)
    problem = jm.Apprenticeship(records, None, demos)
    if kind == "visited":
        return jm.certify(problem, jm.demonstrations.cross_fit(demos, folds=3))
    if kind == "table":
        return jm.certify(problem, jm.Policy([[0.9, 0.1], [0.2, 0.8]] * 3))
    if kind in LINEAR:
        rng = np.random.default_rng(7)
        features = LINEAR[kind](demos.step_states, rng)
        values = rng.normal(size=(features.count, 2))
        return jm.certify(problem, LinearValuePolicy(features, values, 0, 0 if ids else 1))
    if kind in ("network", "greedy"):
        fit = network if kind == "network" else None
        return jm.certify(problem, jm.demonstrations.cross_fit(demos, fit))
    if kind == "mixture":
        some = [network(episodes(seed)) for seed in (5, 6)]
        return jm.certify(problem, jm.policy.MixturePolicy(some, [0.25, 0.75], 1))
    return jm.certify(problem, table)


LINEAR = {
    "quadratic": jm.solvers.quadratic, "radial": jm.solvers.Radial(6), "states": by_state,
}  # fmt: skip
KINDS = ("visited", "table", "network", "greedy", "mixture", *LINEAR, "plain", "logged")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The directory of each kind of run."""
    places = {}
    for kind in KINDS:
        places[kind] = tmp_path_factory.mktemp(kind) / "run"
        certified(kind).save(places[kind])
    return places


@pytest.fixture
def copied(saved, tmp_path):
    def copy_of(kind):
        return shutil.copytree(saved[kind], tmp_path / kind)

    return copy_of


@pytest.mark.parametrize("kind", KINDS)
def test_honest_runs_pass_and_are_read_back(saved, kind, tmp_path):
    outcome = jm.audit(saved[kind])
    assert outcome.passed, outcome
    own = kind not in ("plain", "logged")
    assert outcome.complete == own
    if not own:
        assert outcome.not_derived == ("the probabilities of policy 0, a function",)
    again, certificate = certified(kind), read_run(saved[kind]).certificate
    assert certificate.bound == again.bound
    assert certificate.advice() == again.advice()
    assert certificate.agreement.per_step == pytest.approx(again.agreement.per_step)
    jm.report.write_report(saved[kind], tmp_path / "report.html")
    assert "held-out" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("kind", ["visited", "network", "mixture"])
def test_saved_policies_act_as_before(saved, kind):
    certificate, policy = certified(kind), jm.certificate.load_policy(saved[kind])
    demos = certificate.problem.demonstrations
    for one, other in zip(policy.candidates, certificate.policy.candidates, strict=True):
        laws = [
            jm.policy.ObservationPolicy(each).of_actions(demos.step_states, demos.actions)
            for each in (one, other)
        ]
        assert laws[0] == pytest.approx(laws[1])
    assert policy.weights == pytest.approx(certificate.policy.weights)


@pytest.mark.parametrize("kind", LINEAR)
def test_linear_values_that_were_changed_are_found(copied, kind):
    place = copied(kind)
    change_arrays(
        place / "policy.npz",
        lambda header, arrays: arrays.update({"0_coefficients": -arrays["0_coefficients"]}),
    )
    rehash(place)
    failed(place, "does not take the action of step")
    change_arrays(
        place / "policy.npz", lambda header, arrays: header["policies"][0].update(features="own")
    )
    rehash(place)
    failed(place, "the policies")


def agreeing(kind):
    """A policy that always does what the expert does, and the array its values are made with."""
    if kind == "quadratic":
        features = QuadraticFeatures(np.zeros(2), np.ones(2))
        values = np.zeros((features.count, 2))
        values[1] = [1.0, -1.0]
        return LinearValuePolicy(features, values, 0, 1), "0_coefficients"
    layers = (np.eye(2), np.zeros(2), np.eye(2), np.zeros(2), [[-1.0, 1.0], [0.0, 0.0]], [0, 0])
    return jm.policy.NetworkPolicy(layers, np.zeros(2), np.ones(2)), "0_weights_3"


@pytest.mark.parametrize("kind", ["quadratic", "network"])
def test_values_close_to_each_other_do_not_hide_which_action_is_taken(tmp_path, kind):
    """Multiplied by -1e-12 the values decide the other way; at zero the first action is taken."""
    policy, name = agreeing(kind)
    problem = jm.Apprenticeship(jm.world.Records(0.9, (0, 1)), None, episodes(1))
    place = tmp_path / "run"
    jm.certify(problem, policy).save(place)
    assert jm.audit(place).require().complete
    change_arrays(
        place / "policy.npz",
        lambda header, arrays: arrays.update({name: -1e-12 * arrays[name]}),
    )
    rehash(place)
    failed(place, "policy 0 does not take the action of step 0")
    change_arrays(
        place / "policy.npz", lambda header, arrays: arrays.update({name: 0 * arrays[name]})
    )
    rehash(place)
    if kind == "quadratic":
        failed(place, "policy 0 does not take the action")
        return
    with pytest.raises(jm.errors.AuditFailed, match=r"which action policy 0 takes in \d+ steps"):
        jm.audit(place).require()


@pytest.mark.parametrize("kind", ["network", "greedy", "quadratic", "radial"])
def test_values_that_are_not_finite_hide_nothing(copied, kind):
    """Finite numbers so large that what follows from them is none: no probability follows."""
    place = copied(kind)

    def change(header, arrays):
        for name, array in arrays.items():
            if name.endswith(("coefficients", "weights_3")):
                arrays[name] = np.full_like(array, 1e308)
            if name.endswith(("bias_2", "mean")):
                arrays[name] = np.full_like(array, 30.0 if name.endswith("bias_2") else 0.0)

    change_arrays(place / "policy.npz", change)
    rehash(place)
    failed(place, "has values that are not finite")


@pytest.mark.parametrize("word", [1, "no", None])
def test_a_network_says_by_true_or_false_whether_it_draws(copied, word):
    place = copied("network")
    change_arrays(
        place / "policy.npz", lambda header, arrays: header["policies"][0].update(greedy=word)
    )
    rehash(place)
    failed(place, "policy 0 does not say whether it takes its likeliest action")
    with pytest.raises(jm.errors.InvalidPolicy, match="not whole"):
        jm.certificate.load_policy(place)


@pytest.mark.parametrize("word", [None, 1.5, "x", [], {}, [{}], [1], [{"form": []}]], ids=repr)
@pytest.mark.parametrize("name", ["policies", "observation_axes"])
def test_what_stands_in_place_of_policies_is_refused(copied, name, word):
    place = copied("mixture")
    change_arrays(place / "policy.npz", lambda header, arrays: header.update({name: word}))
    rehash(place)
    with pytest.raises(jm.errors.InvalidFile):
        jm.certificate.load_policy(place)


def test_a_policy_that_was_not_saved_is_named(saved):
    with pytest.raises(jm.errors.InvalidFile, match="does not hold policy 0"):
        jm.certificate.load_policy(saved["plain"])


@pytest.mark.parametrize("kind", ["visited", "logged"])
def test_every_changed_number_of_a_certificate_is_found(copied, kind):
    place = copied(kind)
    facts = facts_of(place)
    paths = numbers_in(facts)
    assert len(paths) > 10
    for path in paths:
        changed = copy.deepcopy(facts)
        where, key = at(changed, path)
        where[key] = where[key] * (1 - 1e-6) if where[key] else 1e-3
        if isinstance(at(facts, path)[0][at(facts, path)[1]], int):
            where[key] = at(facts, path)[0][at(facts, path)[1]] + 1
        write_facts(place, changed)
        failed(place)
    write_facts(place, facts)
    assert jm.audit(place).passed


WORDS = ("valid", "vacuous", "weak", "alarm")


@pytest.mark.parametrize("name", WORDS)
def test_every_changed_word_is_found(copied, name):
    place = copied("visited")
    facts = facts_of(place)
    write_facts(place, facts | {name: not facts[name]})
    failed(place)


@pytest.mark.parametrize("part", ["name", "detail", "status"])
def test_changed_premises_are_found(copied, part):
    place = copied("logged")
    facts = facts_of(place)
    for number in range(len(facts["premises"])):
        changed = copy.deepcopy(facts)
        changed["premises"][number][part] = "tested, not refuted" if part == "status" else "true"
        write_facts(place, changed)
        failed(place)
    write_facts(place, facts | {"premises": facts["premises"][:-1]})
    failed(place, "the premises")


def _scaled(name, factor, index=0):
    def change(header, arrays):
        array = arrays[name].astype(float)
        place = np.flatnonzero(array)[index]
        array.reshape(-1)[place] *= factor
        arrays[name] = array

    return change


def _set(name, value):
    def change(header, arrays):
        header[name] = value

    return change


def _flip(header, arrays):
    arrays["terminated"][0] = ~arrays["terminated"][0]


def _swap(header, arrays):
    arrays["folds"] = arrays["folds"][::-1]


CHANGES = [
    ("visited", "agreement.npz", _scaled("probabilities", 0.99)),
    ("visited", "agreement.npz", _swap),
    ("visited", "policy.npz", _scaled("0_laws", 0.9)),
    ("visited", "policy.npz", _scaled("weights", 0.9)),
    ("visited", "demonstrations.npz", _flip),
    ("visited", "problem.npz", _set("discount", 0.8)),
    ("visited", "problem.npz", _set("use_probabilities", True)),
    ("visited", "problem.npz", _scaled("cost_range", 0.5)),
    ("visited", "problem.npz", _scaled("cost_range", -0.5)),
    ("table", "policy.npz", _scaled("0_law", 0.5)),
    ("table", "agreement.npz", _scaled("probabilities", 1.01)),
    ("network", "policy.npz", _scaled("0_weights_1", 1.5)),
    ("network", "policy.npz", _scaled("0_scale", 2.0)),
    ("greedy", "agreement.npz", _scaled("probabilities", 0.5, 3)),
    ("mixture", "agreement.npz", _scaled("weights", 2.0)),
    ("mixture", "policy.npz", _scaled("1_bias_3", 3.0)),
    ("logged", "demonstrations.npz", _scaled("probabilities", 0.98)),
    ("logged", "agreement.npz", _scaled("probabilities", 0.7)),
    ("plain", "agreement.npz", _scaled("probabilities", 0.5)),
]


@pytest.mark.parametrize(("kind", "name", "change"), CHANGES)
def test_changed_evidence_is_found(copied, kind, name, change):
    place = copied(kind)
    change_arrays(place / name, change)
    failed(place, "SHA-256")
    rehash(place)
    failed(place)


def test_missing_and_foreign_files_are_found(copied):
    place = copied("visited")
    (place / "agreement.npz").rename(place / "world.npz")
    failed(place, "agreement.npz is missing", "world.npz does not belong to a run")


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_by_betting_is_derived_a_second_time(seed):
    rng = np.random.default_rng(seed)
    values = rng.beta(rng.uniform(0.05, 2), rng.uniform(0.5, 9), int(rng.integers(1, 400)))
    delta = float(rng.choice([0.3, 0.05, 0.001]))
    own = second_upper_mean(values, 1.0, delta)
    assert own == pytest.approx(upper_mean(values, 1.0, delta), abs=1e-9)
