"""Grown mixtures in a simulator: their numbers are saved, and no careful change of them passes."""

import contextlib
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from checker.forging import (
    change_arrays,
    change_facts,
    damage_file,
    edit,
    facts_of,
    numbers_in,
    rehash,
    write_facts,
)
from checker.pole import balance
from fuzzing import tried
from journeyman.errors import InvalidFile, JourneymanError

pytest.importorskip("gymnasium")
HORIZON = 30


def cart():
    costs = jm.certificate.Reference("checker.pole:costs")
    return jm.certificate.Reference(
        "journeyman:GymnasiumSimulator", environment="CartPole-v1", costs=costs, discount=0.9
    )


def grown(simulator, demos, weights=(0.2, 0.5, 0.3, 0.0)):
    """A clone, policies planned by quadratic and by radial features, and one without weight."""
    clone = jm.demonstrations.clone_observations(demos, hidden=4, passes=2)
    planned = [
        jm.solvers.LeastSquaresPlanner(HORIZON, features=[maker])([1.0, seed], simulator, 600, seed)
        for seed, maker in enumerate((jm.solvers.quadratic, jm.solvers.Radial(5)))
    ]
    return jm.policy.MixturePolicy([clone, *planned, clone], weights, observation_axes=1)


@pytest.fixture(scope="module")
def problem_and_code():
    code = cart()
    demos = code.made.record(balance, trajectories=12, horizon=HORIZON, seed=0)
    return jm.Apprenticeship(code.made, None, demos), code


ROUNDS = jm.problem.MixtureRollouts(20, HORIZON, rounds=(1, 1, 1, 1), most_rounds=5)


@pytest.fixture(scope="module")
def saved(problem_and_code, tmp_path_factory):
    problem, code = problem_and_code
    policy = grown(problem.simulator, problem.observed)
    place = tmp_path_factory.mktemp("grown") / "run"
    certificate = jm.certify(problem, policy, evaluation=ROUNDS)
    certificate.save(place, code=code, evaluation=ROUNDS, seed=0)
    return place


@pytest.fixture
def run(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


def failed(place, *words, trust_code=False):
    outcome = jm.audit(place, trust_code=trust_code)
    assert not outcome.passed
    for word in words:
        assert word in str(outcome), str(outcome)


def test_an_honest_run_passes_without_code_and_with_it(saved):
    without, trusting = jm.audit(saved), jm.audit(saved, trust_code=True)
    assert without.passed
    assert "what the episodes cost" in without.not_derived
    assert "the seed of the draws" not in without.not_derived
    assert trusting.require().complete


def test_single_rollouts_of_the_mixture_pass(problem_and_code, tmp_path):
    problem, code = problem_and_code
    mixture = grown(problem.simulator, problem.observed)
    for policy in (mixture, *mixture.candidates[:2], jm.demonstrations.cross_fit(problem.observed)):
        certificate = jm.certify(problem, policy, evaluation=jm.Rollouts(20, HORIZON))
        certificate.save(tmp_path / "run", code=code)
        assert jm.audit(tmp_path / "run", trust_code=True).require().complete


def test_what_a_solver_has_grown_is_saved(problem_and_code, tmp_path):
    problem, code = problem_and_code
    clone = jm.demonstrations.clone_observations(problem.observed, hidden=4, passes=1)
    planner = jm.solvers.LeastSquaresPlanner(HORIZON)
    solver = jm.PolicyMixture(
        [clone], 20, HORIZON, seed=0, planner=planner, rounds=4, budget=400, noise=0
    )
    answer = jm.solve(problem, solver)
    assert (answer.mixture.weights > 0).sum() > 1
    certificate = jm.certify(problem, answer)
    certificate.save(tmp_path / "run", code=code, evaluation=answer.rollouts, seed=0)
    assert jm.audit(tmp_path / "run", trust_code=True).require().complete
    again = jm.certificate.load_policy(tmp_path / "run")
    used = [answer.mixture.candidates[k] for k in np.flatnonzero(answer.mixture.weights)]
    seen = np.random.default_rng(0).normal(size=(50, 4))
    for one, other in zip(again.candidates, used, strict=True):
        assert one.sample(seen, 0).tolist() == other.sample(seen, 0).tolist()
    fresh = jm.certify(problem, again, evaluation=jm.Rollouts(20, HORIZON))
    before = jm.certify(problem, answer.mixture, evaluation=jm.Rollouts(20, HORIZON))
    assert repr(fresh) == repr(before)


def test_states_with_numbers_and_listed_actions_pass(tmp_path):
    lake = jm.certificate.Reference(
        "journeyman:GymnasiumSimulator", environment="FrozenLake-v1",
        costs=jm.certificate.Reference("checker.pole:haste"), discount=0.9,
    )  # fmt: skip
    car = jm.certificate.Reference(
        "journeyman:GymnasiumSimulator", environment="MountainCarContinuous-v0",
        costs=jm.certificate.Reference("checker.pole:effort"), discount=0.9,
        actions=[[-1.0], [0.5], [1.0]],
    )  # fmt: skip
    for code in (lake, car):
        simulator = code.made
        numbers = simulator.action_numbers

        def rule(seen, rng, numbers=numbers):
            return rng.choice(numbers, size=len(seen))

        demos = simulator.record(rule, trajectories=12, horizon=HORIZON, seed=0)
        problem = jm.Apprenticeship(simulator, None, demos)
        planner = jm.solvers.LeastSquaresPlanner(HORIZON)
        weights = np.ones(len(simulator.names))
        fit = jm.demonstrations.cross_fit(demos)
        planned = [planner(weights, simulator, 300, 0), fit]
        mixture = jm.policy.MixturePolicy(planned, [0.5, 0.5], simulator.observation_axes)
        certificate = jm.certify(problem, mixture, evaluation=jm.Rollouts(20, HORIZON))
        certificate.save(tmp_path / "run", code=code)
        assert jm.audit(tmp_path / "run", trust_code=True).require().complete


def test_a_mixture_that_grew_in_a_world_of_callables_passes(tmp_path):
    code = jm.certificate.Reference("checker.large_code:small", seed=1)
    world, costs, members = (code.made[part] for part in ("world", "costs", "members"))
    demos = jm.record(code.made["stepped"], members[3], trajectories=30, horizon=15, seed=0)
    problem = jm.Apprenticeship(world, costs, demos)
    planner = jm.solvers.LeastSquaresPlanner(15)
    solver = jm.PolicyMixture(
        [members[0]], 50, 15, seed=4, planner=planner, rounds=3, budget=2_000, noise=0
    )
    answer = jm.solve(problem, solver)
    assert answer.mixture.weights[1:].sum() > 0
    certificate = jm.certify(problem, answer)
    certificate.save(tmp_path / "run", code=code, evaluation=answer.rollouts)
    assert jm.audit(tmp_path / "run", trust_code=True).require().complete


def test_a_policy_of_numbers_is_read_without_code(saved, problem_and_code):
    policy = jm.certificate.load_policy(saved)
    assert policy.weights.tolist() == [0.2, 0.5, 0.3]
    assert [type(one).__name__ for one in policy.candidates] == [
        "NetworkPolicy", "LinearValuePolicy", "LinearValuePolicy",
    ]  # fmt: skip


def times(name, factor, entry=-1):
    """Another entry, of those that are not zero."""

    def change(header, arrays):
        array = arrays[name].copy()
        array.flat[np.flatnonzero(array)[entry]] *= factor
        arrays[name] = array

    return change


@pytest.mark.parametrize(
    "name",
    [
        "coefficients of the candidate 1 of the policy", "mean of the candidate 1 of the policy",
        "centres of the candidate 2 of the policy", "width of the candidate 2 of the policy",
        "weights_3 of the candidate 0 of the policy", "scale of the candidate 0 of the policy",
        "weights of the policy",
    ],
)  # fmt: skip
def test_changed_numbers_of_the_policy_are_found_without_code(run, name):
    change_arrays(run / "policy.npz", times(name, 1 + 1e-12))
    failed(run, "policy.npz is not the file that was certified")
    rehash(run)
    failed(run, "the seed of the draws")


def stated_seed(place, seed):
    """A careful forger names the seed that follows from the changed numbers."""
    facts = facts_of(place)
    facts["evaluation"]["seed"] = seed
    for way in facts["combinations"]:
        for sample in way["statistics"]:
            sample["seed"] = seed
    for one in facts["premises"]:
        one["detail"] = one["detail"].replace(f"seed {facts_of(place)['evaluation']['seed']}",
                                              f"seed {seed}")  # fmt: skip
    write_facts(place, facts)


def test_another_policy_with_a_seed_that_fits_is_found_with_code(run, problem_and_code):
    problem, _ = problem_and_code
    change_arrays(
        run / "policy.npz", times("coefficients of the candidate 1 of the policy", -1.0, 0)
    )
    rehash(run)
    from journeyman.problem.draw_seeds import large_seed

    stated_seed(run, large_seed(problem, jm.certificate.load_policy(run)))
    assert jm.audit(run).passed
    failed(run, "that their seed gives", trust_code=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda header, arrays: header["policy"]["candidates"][0].update(greedy=False), "the seed"),
        (
            lambda header, arrays: header["policy"]["candidates"][1].update(first_action=1),
            "the seed",
        ),
        (lambda header, arrays: header["policy"]["candidates"][1].update(form="other"), ""),
        (
            lambda header, arrays: arrays.update(
                {"mean of the candidate 0 of the policy": np.array([np.nan] * 4)}
            ),
            "mean of a policy is not finite",
        ),
        (
            lambda header, arrays: arrays.pop("coefficients of the candidate 1 of the policy"),
            "the seed",
        ),
    ],
)
def test_changed_words_and_missing_arrays_are_found(run, change, words):
    change_arrays(run / "policy.npz", change)
    rehash(run)
    failed(run, words)


STRANGE = (None, 1, 1.5, True, "mixture", [], {}, [{}], {"form": "other"}, {"form": []})


@pytest.mark.parametrize("word", STRANGE, ids=repr)
def test_policies_in_place_of_which_something_else_stands_are_refused(run, word):
    for where in ("policy", "candidates", "observation_axes", 1):

        def change(header, arrays, where=where):
            form = header["policy"]
            into = {"policy": header, 1: form["candidates"]}.get(where, form)
            into[where] = word

        place = shutil.copytree(run, run.parent / "changed", dirs_exist_ok=True)
        change_arrays(place / "policy.npz", change)
        rehash(place)
        if where != "observation_axes":  # of which nothing is claimed
            failed(place)
        if (where, word) != ("observation_axes", 1) or word is True:
            with pytest.raises(JourneymanError):
                jm.certificate.load_policy(place)


@pytest.mark.parametrize("weights", [0.5, [1.0], np.ones((4, 4)), [np.nan] * 4])
def test_weights_that_are_not_those_of_the_candidates_are_refused(run, weights):
    change_arrays(
        run / "policy.npz",
        lambda header, arrays: arrays.update({"weights of the policy": np.array(weights)}),
    )
    rehash(run)
    failed(run)
    with pytest.raises(JourneymanError):
        jm.certificate.load_policy(run)


def test_changed_totals_are_found(run):
    change_arrays(run / "totals.npz", times("totals", 0.9, 0))
    rehash(run)
    failed(run, "gap to the estimate")


def test_totals_with_all_that_follows_from_them_are_found_with_code(problem_and_code, tmp_path):
    """An expert that is made to seem worse, in a certificate of its own that is sound."""
    problem, code = problem_and_code
    forged = jm.Apprenticeship(problem.simulator, None, problem.observed)
    totals = problem.records.totals.copy()
    totals[3] *= 1.01
    object.__setattr__(forged, "expert", jm.EpisodeTotals(totals, problem.records.unrecorded))
    policy = grown(problem.simulator, problem.observed)
    certificate = jm.certify(forged, policy, evaluation=jm.Rollouts(20, HORIZON))
    certificate.save(tmp_path / "run", code=code)
    assert jm.audit(tmp_path / "run").passed
    failed(tmp_path / "run", "episode 3 costs", trust_code=True)


@pytest.mark.parametrize("part", ["states", "actions", "terminated"])
def test_changed_demonstrations_are_found_with_code(run, part):
    def change(header, arrays):
        array = arrays[part].copy()
        array[0] = ~array[0] if part == "terminated" else array[0] + 1
        if part == "states":
            array[1:] = array[:1]
        arrays[part] = array

    change_arrays(run / "demonstrations.npz", change)
    rehash(run)
    if part == "actions":  # these costs do not look at them, nor does anything that is claimed
        assert jm.audit(run, trust_code=True).passed
        return
    failed(run, "episode" if part == "states" else "unrecorded time", trust_code=True)


def test_missing_demonstrations_are_found(run):
    (run / "demonstrations.npz").unlink()
    failed(run, "demonstrations.npz is missing")


def test_every_claimed_number_counts(run):
    facts = facts_of(run)
    paths = [path for path in numbers_in(facts) if path[0] != "evaluation"]
    step = max(1, len(paths) // 40)
    for path in paths[::step]:
        place = shutil.copytree(run, run.parent / "changed", dirs_exist_ok=True)
        change_facts(place, edit(path, lambda value: value * 1.5 + 0.25))
        failed(place)


def test_an_honest_run_under_another_library_of_linear_algebra_passes(run, monkeypatch):
    """Values that are added up in another order differ in their last bits, and decide alike."""
    from journeyman.policy.linear_values import LinearValuePolicy

    def backwards(self, observations):
        features = self.features(np.asarray(observations))[:, ::-1]
        return np.einsum("ij,jk->ik", features, self.coefficients[::-1])

    monkeypatch.setattr(LinearValuePolicy, "values", backwards)
    assert jm.audit(run, trust_code=True).require().complete


def test_policies_that_are_not_numbers_are_refused(problem_and_code, tmp_path):
    from journeyman.errors import InvalidProblem

    problem, code = problem_and_code
    mixture = jm.policy.MixturePolicy([balance], [1.0], 1)
    certificate = jm.certify(problem, mixture, evaluation=jm.Rollouts(20, HORIZON))
    with pytest.raises(InvalidProblem, match="candidate 0 of the policy"):
        certificate.save(tmp_path / "run", code=code)
    made = jm.certificate.Reference("checker.pole:rule")
    mixture = jm.policy.MixturePolicy([made.made, grown(problem.simulator, problem.observed)],
                                      [0.5, 0.5], 1)  # fmt: skip
    certificate = jm.certify(problem, mixture, evaluation=jm.Rollouts(20, HORIZON))
    certificate.save(tmp_path / "run", code=[code, made])
    assert jm.audit(tmp_path / "run", trust_code=True).require().complete
    with pytest.raises(InvalidFile, match="trust_code=True"):
        jm.certificate.load_policy(tmp_path / "run")


def test_numbers_that_code_has_made_are_digested_too(problem_and_code, tmp_path):
    problem, code = problem_and_code
    made = jm.certificate.Reference("checker.pole:mixture")
    certificate = jm.certify(problem, made.made, evaluation=jm.Rollouts(20, HORIZON))
    certificate.save(tmp_path / "run", code=[code, made])
    assert "the seed of the draws" in jm.audit(tmp_path / "run").not_derived
    assert jm.audit(tmp_path / "run", trust_code=True).require().complete


FILES = ("certificate.json", "code.json", "demonstrations.npz", "policy.npz", "problem.npz",
         "totals.npz")  # fmt: skip


@tried(25)
@given(st.sampled_from(FILES), st.integers(0, 2**31), st.binary(min_size=1, max_size=6))
def test_damage_of_any_kind_is_a_finding_and_never_an_error(
    saved, tmp_path_factory, name, where, damage
):
    place = tmp_path_factory.getbasetemp() / "damaged-mixture"
    if not damage_file(saved, place, name, where, damage):
        return
    assert not jm.audit(place).passed
    if name != "certificate.json":
        rehash(place)
        jm.audit(place)
        with contextlib.suppress(JourneymanError):
            jm.certificate.load_policy(place)
