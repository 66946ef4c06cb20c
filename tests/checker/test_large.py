"""Runs in large worlds: honest ones pass, forged ones do not, and no code is called unasked."""

import copy
import json
import re
import shutil
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from checker.forging import (
    at,
    change_arrays,
    change_facts,
    damage_file,
    drop,
    edit,
    facts_of,
    numbers_in,
    rehash,
    write_facts,
)
from class_examples import NAMES as EXAMPLES
from class_examples import example
from fuzzing import tried
from journeyman.certificate import sampled_rows
from journeyman.certificate.saving import canonical
from journeyman.checker.coded import Question, check_extremes
from journeyman.checker.costs import BallCosts
from journeyman.checker.findings import Findings
from journeyman.demonstrations import simulation
from journeyman.errors import AuditFailed, InvalidFile, InvalidInput, InvalidProblem
from journeyman.problem.draw_seeds import large_seed
from journeyman.world import Pairs
from mixtures import CLASSES
from seeding import drawn_from

ROLLOUTS = jm.Rollouts(trajectories=60, horizon=20)
FILES = [
    "certificate.json", "code.json", "demonstrations.npz", "policy.npz", "problem.npz",
    "totals.npz",
]  # fmt: skip


def network(discount=0.8):
    """Queues, features over them, and a problem with demonstrations."""
    queues = jm.certificate.Reference(
        "journeyman.gallery:queues", queues=4, buffers=[3, 2, 2, 3], discount=discount
    )
    made = queues.made
    demos = jm.record(made.world, made.longer, trajectories=25, horizon=20, seed=0)
    features = jm.certificate.Reference(
        "journeyman:features.factored", world=made.world, radix=made.world.radix, walks=demos,
        heuristics=[made.longer, made.uniform], num_knots=2,
    )  # fmt: skip
    return queues, features, jm.Apprenticeship(made.world, made.costs, demos)


@pytest.fixture(scope="module")
def learned():
    queues, features, problem = network()
    answer = jm.solve(problem, jm.StochasticSubgradient(features.made, steps=100, seed=1))
    return problem, answer, [queues, features]


@pytest.fixture(scope="module")
def saved(learned, tmp_path_factory):
    """SGD-AL in a network of queues, certified by walks."""
    problem, answer, code = learned
    place = tmp_path_factory.mktemp("large") / "run"
    jm.certify(problem, answer, evaluation=ROLLOUTS).save(place, code=code, seed=1)
    assert sorted(path.name for path in place.iterdir()) == FILES
    return place


@pytest.fixture
def run(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


def both(place):
    """Audits without code and with it, the latter complete."""
    without, trusting = jm.audit(place), jm.audit(place, trust_code=True)
    assert not without.complete
    return without, trusting


def honest(certificate, place, **options):
    certificate.save(place, **options)
    without, trusting = both(place)
    assert without.passed
    assert trusting.require().complete
    assert trusting.checked > without.checked
    return trusting


def failed(place, *words, trust_code=True):
    outcome = jm.audit(place, trust_code=trust_code)
    assert not outcome.passed
    for word in words:
        assert word in str(outcome), str(outcome)
    return outcome


# Honest runs


def test_a_run_of_sgd_al_passes(saved):
    without, trusting = both(saved)
    assert without.passed
    assert trusting.require().complete
    words = str(without)
    assert "passed as far as it goes" in words
    assert "Not derived again:" in words
    assert "means and variances of the rollouts" in words
    assert "journeyman.gallery:queues(buffers=[3, 2, 2, 3], discount=0.8, queues=4)" in words
    assert "Not derived" not in str(trusting)


def test_rows_pass(learned, tmp_path):
    problem, answer, code = learned
    rows = jm.SampledRows(rows=500)
    honest(jm.certify(problem, answer, evaluation=rows), tmp_path / "run", code=code)
    assert "the gap to the estimate" in str(jm.audit(tmp_path / "run"))


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("declared", [False, True])
def test_mixtures_pass(name, declared, tmp_path):
    code = jm.certificate.Reference("checker.large_code:small", seed=1)
    world, costs, members = (code.made[part] for part in ("world", "costs", "members"))
    expert = jm.record(code.made["stepped"], members[3], trajectories=30, horizon=15, seed=0)
    if declared:
        expert = jm.ExpertExpectation([1.0, 0.3, 2.0])
    problem = jm.Apprenticeship(world, costs, expert, CLASSES[name])
    solver = jm.PolicyMixture(members[:3], rollouts=50, horizon=15, seed=4)
    answer = jm.solve(problem, solver)
    certificate = jm.certify(problem, answer)
    honest(certificate, tmp_path / "run", code=code, evaluation=answer.rollouts)


def test_worlds_that_can_only_be_sampled_and_rounds_pass(tmp_path):
    code = jm.certificate.Reference("checker.large_code:small", seed=2)
    made = code.made
    demos = jm.record(made["stepped"], made["members"][0], trajectories=30, horizon=15, seed=0)
    problem = jm.Apprenticeship(made["stepped"], made["costs"], demos)
    mixture = jm.policy.MixturePolicy(made["members"], [0.2, 0.0, 0.5, 0.3])
    rounds = jm.problem.MixtureRollouts(50, 15, rounds=(2, 1, 1), most_rounds=5)
    certificate = jm.certify(problem, mixture, evaluation=rounds)
    honest(certificate, tmp_path / "run", code=code, evaluation=rounds)
    with pytest.raises(InvalidProblem, match=r"answer\.rollouts"):
        certificate.save(tmp_path / "run", code=code)
    walks = jm.certify(problem, mixture, evaluation=ROLLOUTS)
    honest(walks, tmp_path / "run", code=code)


@pytest.mark.parametrize("declared", [False, True])
def test_simulators_pass(declared, tmp_path):
    code = jm.certificate.Reference("checker.large_code:simulated", chance=0.25)
    simulator, rules = code.made.simulator, code.made.rules
    expert = jm.demonstrations.record_totals(
        simulator, rules[0], trajectories=30, horizon=10, seed=0
    )
    if declared:
        expert = jm.ExpertExpectation([2.0, 4.0])
    problem = jm.Apprenticeship(simulator, None, expert)
    mixture = jm.policy.MixturePolicy(rules, [0.5, 0.25, 0.25])
    for evaluation in (ROLLOUTS, jm.problem.MixtureRollouts(40, 10)):
        honest(jm.certify(problem, mixture, evaluation=evaluation), tmp_path / "run", code=code)


def test_policies_from_tables_and_from_code_pass(tmp_path):
    code = jm.certificate.Reference("checker.large_code:small")
    world, costs, members = (code.made[part] for part in ("world", "costs", "members"))
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation([1.0, 1.0, 1.0]))
    uniform = jm.Policy.uniform(world)
    mixture = jm.policy.MixturePolicy([uniform, members[0]], [0.5, 0.5])
    for policy in (members[2], uniform, mixture, one_action_each(world)):
        certificate = jm.certify(problem, policy, evaluation=ROLLOUTS)
        honest(certificate, tmp_path / "run", code=code)
        again = jm.certificate.load_policy(tmp_path / "run", trust_code=True)
        assert repr(jm.certify(problem, again, evaluation=ROLLOUTS)) == repr(certificate)


def one_action_each(world):
    """A table of the one action that a state takes, by its number."""
    states = np.arange(world.num_states)
    pairs = Pairs(np.arange(world.num_states + 1), states % world.num_actions)
    return jm.Policy(np.ones(world.num_states), pairs)


def test_other_action_numbers_are_found(tmp_path):
    code, place = jm.certificate.Reference("checker.large_code:small"), tmp_path / "run"
    world, costs = code.made["world"], code.made["costs"]
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation([1.0, 1.0, 1.0]))
    jm.certify(problem, one_action_each(world), evaluation=ROLLOUTS).save(place, code=code)
    name = "action numbers of the policy"
    for change in (
        lambda _, arrays: arrays[name].fill(0),
        lambda _, arrays: arrays[name].fill(world.num_actions),
        lambda _, arrays: arrays.pop(name),
    ):
        changed = shutil.copytree(place, tmp_path / "changed", dirs_exist_ok=True)
        change_arrays(changed / "policy.npz", change)
        rehash(changed)
        failed(changed, trust_code=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_cost_class_passes(name, tmp_path):
    code = jm.certificate.Reference("checker.large_code:small", seed=1)
    world, costs, members = (code.made[part] for part in ("world", "costs", "members"))
    demos = jm.record(code.made["stepped"], members[3], trajectories=30, horizon=15, seed=0)
    problem = jm.Apprenticeship(world, costs, demos, example(name, 3))
    honest(jm.certify(problem, members[0], evaluation=ROLLOUTS), tmp_path / "run", code=code)


@pytest.mark.parametrize("kind", [jm.InfinityBall, jm.EuclideanBall, jm.Simplex])
def test_costs_that_exclude_each_other_pass(kind, tmp_path):
    code = jm.certificate.Reference("checker.large_code:crowded", share=0.25)
    made = code.made
    demos = jm.record(made.world, made.expert, trajectories=22, horizon=20, seed=1)
    problem = jm.Apprenticeship(made.world, made.costs, demos, kind([1.0, 0.5, 2.0]))
    honest(jm.certify(problem, made.expert, evaluation=ROLLOUTS), tmp_path / "run", code=code)


def test_a_policy_comes_back_as_it_was(learned, saved):
    _, answer, _ = learned
    policy = jm.certificate.load_policy(saved, trust_code=True)
    states = np.arange(40)
    assert np.array_equal(policy.probabilities(states), answer.policy.probabilities(states))
    with pytest.raises(InvalidFile, match=r"calling journeyman\.gallery:queues.*trust_code=True"):
        jm.certificate.load_policy(saved)
    with pytest.raises(InvalidFile, match="does not name code"):
        jm.certificate.load_policy(saved.parent, trust_code=True)


def test_saving_twice_replaces_and_kinds_do_not_mix(run, learned):
    problem, answer, code = learned
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=20, horizon=20, seed=0)
    jm.learn(world, basis, demos).save(run)
    assert jm.audit(run).require().complete
    honest(jm.certify(problem, answer, evaluation=ROLLOUTS), run, code=code)


# Code


@pytest.fixture
def witness(tmp_path, monkeypatch):
    """A module that leaves a file when it is imported, and another when it is called."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "witness_of_calls.py").write_text(
        "from pathlib import Path\n"
        "from checker.large_code import small\n"
        f"marks = Path({str(tmp_path)!r})\n"
        "(marks / 'imported').touch()\n"
        "def made(**arguments):\n"
        "    (marks / 'called').touch()\n"
        "    return small(**arguments)\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    code = jm.certificate.Reference("witness_of_calls:made", seed=3)
    world, costs, members = (code.made[part] for part in ("world", "costs", "members"))
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation([1.0, 1.0, 1.0]))
    jm.certify(problem, members[0], evaluation=ROLLOUTS).save(tmp_path / "run", code=code)
    forget(tmp_path)
    yield tmp_path
    sys.modules.pop("witness_of_calls", None)


def forget(place):
    sys.modules.pop("witness_of_calls", None)
    for name in ("imported", "called"):
        (place / name).unlink(missing_ok=True)


def marks(place):
    return [name for name in ("imported", "called") if (place / name).exists()]


@pytest.mark.parametrize("trust", [False, None, 0, 1, "yes"])
def test_no_code_is_touched_without_trust(witness, trust):
    assert jm.audit(witness / "run", trust_code=trust).passed
    with pytest.raises(InvalidFile):
        jm.certificate.load_policy(witness / "run", trust_code=trust)
    assert "witness_of_calls" not in sys.modules
    assert marks(witness) == []


def test_code_is_called_with_trust(witness):
    assert jm.audit(witness / "run", trust_code=True).require().complete
    assert marks(witness) == ["imported", "called"]


def test_code_is_not_called_when_files_were_changed(witness):
    """Whoever trusts a run trusts the files that were certified."""
    path = witness / "run" / "policy.npz"
    path.write_bytes(path.read_bytes() + b" ")
    outcome = failed(witness / "run", "SHA-256", "not called because of other findings")
    assert not outcome.complete
    assert marks(witness) == []


def test_a_share_of_the_probability_that_was_not_there_is_found(witness):
    """With declared expectations all else stays as it was."""
    facts = facts_of(witness / "run")
    facts["failure_probability"] = 0.01
    write_facts(witness / "run", facts)
    failed(witness / "run", "the failure probability of 'rollouts'", trust_code=False)


def recoded(place, change):
    """Other references, with hashes that fit."""
    data = (place / "code.json").read_bytes()
    (place / "code.json").write_bytes(change(data))
    assert data != change(data)
    rehash(place)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"journeyman.gallery:queues", b"journeyman.gallery:queuez", "cannot be called"),
        (b"journeyman.gallery:queues", b"no_such_module:queues", "no_such_module"),
        (b"journeyman.gallery:queues", b"journeyman gallery queues", "names no function"),
        (b'"queues": {', b'"queueing": {', "cannot be called"),
        (b'"world"\n   ]', b'"_world"\n   ]', "not public"),
        (b'"call": 0', b'"call": 7', "earlier call"),
        (b"demonstrations.npz", b"../elsewhere.npz", "elsewhere"),
        (b"journeyman code", b"other code", "no list of references"),
        (b'"parts"', b'"pieces"', "other parts"),
    ],
)
def test_wrong_references_are_findings(run, old, new, words):
    recoded(run, lambda data: data.replace(old, new))
    failed(run, words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"0.8\n", b"0.81\n", "the discount"),
        (b"      3\n     ]", b"      4\n     ]", "numbers of states"),
        (b'"longer"', b'"lbfs"', "that their seed gives"),
        (
            b'"value": 2\n',
            b'"value": 1\n',
            "the coefficients|cannot be|expected",
        ),
    ],
)
def test_another_world_is_found_with_its_code(run, old, new, words):
    recoded(run, lambda data: data.replace(old, new))
    assert jm.audit(run).passed
    outcome = failed(run)
    assert any(word in str(outcome) for word in words.split("|")), str(outcome)


def test_what_cannot_be_told_by_reference_is_refused(learned, tmp_path):
    problem, answer, code = learned
    certificate = jm.certify(problem, answer, evaluation=ROLLOUTS)
    refusal = r"the world, .* no reference has made.*jm\.certificate\.Reference"
    with pytest.raises(InvalidProblem, match=refusal):
        certificate.save(tmp_path / "run", code=[])
    with pytest.raises(InvalidProblem, match="features of the policy"):
        certificate.save(tmp_path / "run", code=code[0])
    with pytest.raises(InvalidProblem, match="code holds a function"):
        certificate.save(tmp_path / "run", code=[lambda: problem.world])
    strange = jm.certificate.Reference("checker.large_code:Always", share=np.float32(0.5))
    with pytest.raises(InvalidInput, match=r"share of checker\.large_code:Always is a float32"):
        certificate.save(tmp_path / "run", code=[*code, strange])
    own = jm.FunctionPolicy(lambda x: np.full((len(x), 4), 0.25), 4)
    with pytest.raises(InvalidProblem, match=r"the policy, FunctionPolicy\(.*code that no"):
        jm.certify(problem, own, evaluation=ROLLOUTS).save(tmp_path / "run", code=code)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["queues", "journeyman.gallery", "a:b:c", "a b:c", 7, ":f", "m:"])
def test_a_reference_has_a_form(name):
    with pytest.raises(InvalidInput, match="is no reference to code"):
        jm.certificate.Reference(name)


def test_references_that_lead_nowhere_say_how_to_mend_them():
    with pytest.raises(InvalidInput, match="another script"):
        jm.certificate.Reference("__main__:world")
    with pytest.raises(InvalidInput, match=r"cannot be imported.*on the path"):
        _ = jm.certificate.Reference("no_such_module:world").made
    with pytest.raises(InvalidInput, match="has no function 'queuez'"):
        _ = jm.certificate.Reference("journeyman.gallery:queuez").made


def test_references_may_come_in_any_order(learned, tmp_path):
    problem, answer, code = learned
    certificate = jm.certify(problem, answer, evaluation=ROLLOUTS)
    honest(certificate, tmp_path / "run", code=code[::-1])


def test_arguments_are_what_comes_back_from_json():
    given = jm.certificate.Reference(
        "builtins:dict", a=(1, 2.5), b={"c": None}, d=[jm.certificate.Reference("builtins:list")]
    )
    assert given.made == {"a": [1, 2.5], "b": {"c": None}, "d": [[]]}
    assert given.made is given.made


# Changes


def test_every_number_is_checked_without_code(run):
    honest_facts = facts_of(run)
    paths = numbers_in(honest_facts)
    assert len(paths) > 60
    for path in paths:
        facts = copy.deepcopy(honest_facts)
        place, key = at(facts, path)
        step = 1 if isinstance(place[key], int) else 1e-3 * max(abs(place[key]), 1.0)
        place[key] += step if path != ("failure_probability",) else 1e-5
        write_facts(run, facts)
        assert not jm.audit(run).passed, path


def test_a_consistent_forgery_needs_the_code(learned, tmp_path):
    """Statistics of other walks under the stored seed: everything follows, but not from there."""
    problem, answer, code = learned
    with drawn_from(4):
        certificate = jm.certify(problem, answer, evaluation=jm.Rollouts(60, 20))
    certificate.save(tmp_path / "run", code=code)
    facts, seed = facts_of(tmp_path / "run"), large_seed(problem, answer.policy)
    facts["evaluation"]["seed"] = seed
    for way in facts["combinations"]:
        way["statistics"][0]["seed"] = seed
    for premise in facts["premises"]:
        premise["detail"] = premise["detail"].replace("from seed 4,", f"from seed {seed},")
    write_facts(tmp_path / "run", facts)
    assert jm.audit(tmp_path / "run").passed
    failed(tmp_path / "run", "the mean of", "the variance of", "that their seed gives")


def test_wrong_draws_of_the_library_are_found(learned, tmp_path, monkeypatch):
    """The audit takes no draw from the code that the certificate was made by."""
    problem, answer, code = learned
    walks, rows = simulation.walk_totals, sampled_rows._rows

    def wrong_rows(*arguments):
        expected, negative, violated, *rest = rows(*arguments)
        return expected, 0.5 * negative, 0.5 * violated, *rest

    monkeypatch.setattr(simulation, "walk_totals", lambda *given: 0.9 * walks(*given))
    monkeypatch.setattr(sampled_rows, "_rows", wrong_rows)
    for drawn, words in (
        (ROLLOUTS, "that their seed gives"), (jm.SampledRows(rows=500), "that its seed gives"),
    ):  # fmt: skip
        jm.certify(problem, answer, evaluation=drawn).save(tmp_path / "run", code=code)
        assert jm.audit(tmp_path / "run").passed
        failed(tmp_path / "run", words)


def lowered(facts):
    best = facts["combinations"][0]
    largest = max(best["terms"], key=lambda term: term["value"])
    largest["value"] *= 0.9
    best["bound"] = float(np.nextafter(np.sum([term["value"] for term in best["terms"]]), np.inf))
    facts["bound"] = best["bound"]


def no_truncation(facts):
    for way in facts["combinations"]:
        way["terms"] = [term for term in way["terms"] if term["name"] != "rollout truncation"]


def no_rounding(facts):
    for way in facts["combinations"]:
        way["terms"][3]["value"] = 0.0
        way["bound"] = float(np.nextafter(np.sum([one["value"] for one in way["terms"]]), np.inf))
    facts["bound"] = facts["combinations"][0]["bound"]


CAREFUL = {
    "rounding left out": no_rounding,
    "bound lowered with its largest term": lowered,
    "truncation left out": no_truncation,
    "formula edited": edit(("combinations", 0, "terms", 1, "formula"), "0"),
    "source edited": edit(("combinations", 0, "terms", 1, "source"), "certain"),
    "combination removed": drop("combinations", 1),
    "order of combinations": lambda facts: facts["combinations"].reverse(),
    "unknown kind": edit(("combinations", 0, "kind"), "D"),
    "unknown estimate": edit(("combinations", 0, "estimate"), "oracle"),
    "no statistics": edit(("combinations", 0, "statistics"), []),
    "another evaluation": edit(("evaluation",), {"kind": "rows", "rows": 60, "seed": 3}),
    "evaluation untold": edit(("evaluation",), None),
    "another horizon": edit(("evaluation", "horizon"), 40),
    "premise removed": drop("premises", 3),
    "premise failed": edit(("premises", 3, "status"), "failed"),
    "tested instead of declared": edit(("premises", 0, "status"), "tested, not refuted"),
    "copies not named": drop("premises", 2),
    "copies refuted": edit(("premises", 2, "status"), "failed"),
    "another level for copies": edit(("premises", 2, "level"), 1e-9),
    "other numbers of copies": edit(
        ("premises", 2, "detail"), lambda text: re.sub("[0-9]+ of", "7 of", text)
    ),
    "another number of episodes": edit(("premises", 1, "detail"), "the 600 episodes"),
    "another e-value": edit(("premises", 5, "detail"), "e-value 5000 from 25 starts, refuted"),
    "not valid": edit(("valid",), False),
    "vacuous": edit(("vacuous",), True),
    "weak": edit(("weak",), lambda weak: not weak),
    "least possible": edit(("least_possible",), -1.0),
    "lower bound": edit(("lower_bounds", "on_data"), 1.0),
    "version": edit(("version",), 4),
    "kind": edit(("kind",), "certificate"),
    "part missing": drop("evaluation"),
    "part added": lambda facts: facts.update(remark="x"),
    "seeds untold": edit(("seeds",), {}),
    "hash edited": edit(("inputs", "totals.npz"), "0" * 64),
    "hash missing": drop("inputs", "code.json"),
}  # fmt: skip


@pytest.mark.parametrize("change", CAREFUL.values(), ids=CAREFUL)
def test_a_careful_change_of_the_certificate(run, change):
    change_facts(run, change)
    assert "digest" not in str(failed(run, trust_code=False))


def one_total(header, arrays):
    arrays["totals"][3, 0] *= 0.9


def shorter_time(header, arrays):
    arrays["unrecorded"] = arrays["unrecorded"] * 0.5


def fewer_episodes(header, arrays):
    arrays["totals"], arrays["unrecorded"] = arrays["totals"][1:], arrays["unrecorded"][1:]


def narrower(header, arrays):
    arrays["extremes"] = arrays["extremes"] * 0.9


def wider(header, arrays):
    arrays["highest"] = arrays["highest"] * 1.1


def larger_sums(header, arrays):
    arrays["largest"] = arrays["largest"] * 0.5


def another_discount(header, arrays):
    header["discount"] = 0.81


def another_class(header, arrays):
    header["cost_class"] = {"name": "simplex"}


def declared(header, arrays):
    header["declared"] = True


def fewer_states(header, arrays):
    header["num_states"] = 5


def no_policy(header, arrays):
    del header["policy"]


def impossible_action(header, arrays):
    arrays["actions"][0] = 99


def another_length(header, arrays):
    arrays["offsets"][1] += 1


def nothing(header, arrays):
    arrays.clear()


PLAIN_CHANGES = [
    ("totals.npz", one_total), ("totals.npz", shorter_time), ("totals.npz", fewer_episodes),
    ("totals.npz", nothing), ("problem.npz", narrower), ("problem.npz", wider),
    ("problem.npz", another_discount), ("problem.npz", another_class), ("problem.npz", declared),
    ("problem.npz", fewer_states), ("problem.npz", nothing), ("policy.npz", no_policy),
    ("demonstrations.npz", impossible_action), ("demonstrations.npz", another_length),
    ("demonstrations.npz", nothing),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"), PLAIN_CHANGES, ids=[f"{n[:-4]}-{c.__name__}" for n, c in PLAIN_CHANGES]
)
def test_a_careful_change_of_an_input_is_found_without_code(run, name, change):
    change_arrays(run / name, change)
    rehash(run)
    assert "SHA-256" not in str(failed(run, trust_code=False))


def other_coefficients(header, arrays):
    name = "coefficients of the policy"
    arrays[name] = np.roll(arrays[name], 1)


def another_action(header, arrays):
    arrays["actions"] = (arrays["actions"] + 1) % 4


def another_state(header, arrays):
    arrays["states"][5] = (int(arrays["states"][5]) + 7) % 100


def more_states(header, arrays):
    header["num_states"] += 1


CODED_CHANGES = [
    ("policy.npz", other_coefficients), ("policy.npz", nothing),
    ("demonstrations.npz", another_action), ("demonstrations.npz", another_state),
    ("problem.npz", more_states), ("problem.npz", larger_sums),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"), CODED_CHANGES, ids=[f"{n[:-4]}-{c.__name__}" for n, c in CODED_CHANGES]
)
def test_a_careful_change_of_an_input_is_found_with_code(run, name, change):
    change_arrays(run / name, change)
    rehash(run)
    words = ["the code gives"] if change is another_state else []
    assert "SHA-256" not in str(failed(run, *words))


def question_of(low, high, largest, scale, extremes):
    costs = BallCosts("euclidean-ball", scale, extremes)
    names = [str(k) for k in range(low.size)]
    return Question(names, costs, low, high, largest, 0.9, None, (10, 2), True)


@given(st.integers(1, 4), st.integers(0, 2**31), st.floats(0, 1.2))
def test_extreme_rows_are_as_large_as_costs_can_be(count, seed, share):
    """Honest ones are; a tenth less is not."""
    rng = np.random.default_rng(seed)
    low, width = rng.uniform(-1, 1, count), rng.uniform(0.1, 1, count)
    high, scale = low + width, rng.uniform(0.5, 2, count)
    least = np.abs(np.clip(0, low, high)).sum()
    most = np.maximum(np.abs(low), np.abs(high)).sum()
    largest = least + (0.1 + share) * (most - least)
    costs = jm.CostFunctions(np.add, [str(k) for k in range(count)], lowest=low, highest=high,
                             largest=largest)  # fmt: skip
    rows = jm.InfinityBall(scale).extreme_rows(low, high, costs.largest_passed)
    honest_findings, forged = Findings(), Findings()
    check_extremes(honest_findings, question_of(low, high, costs.largest, scale, rows))
    assert honest_findings.findings == []
    check_extremes(forged, question_of(low, high, costs.largest, scale, 0.9 * rows))
    assert forged.findings


def test_costs_that_can_be_large_together_are_found():
    """Every cost by itself reaches its end, two of them at once are left out."""
    low, high, scale = np.zeros(3), np.ones(3), np.ones(3)
    findings = Findings()
    check_extremes(findings, question_of(low, high, 2.0, scale, np.vstack([low, np.eye(3)])))
    assert set(findings.findings) == {"costs in their ranges can be larger than stated"}


@pytest.mark.parametrize("name", FILES)
def test_careless_changes_and_missing_files_are_found(run, name):
    data = (run / name).read_bytes()
    (run / name).write_bytes(data + b" ")
    failed(run, trust_code=False)
    (run / name).unlink()
    failed(run, name, trust_code=False)


def test_files_of_another_kind_of_run_are_found(run):
    (run / "world.npz").write_bytes(b"")
    failed(run, "world.npz does not belong")


def premise(name):
    return lambda facts: next(one for one in facts["premises"] if one["name"] == name)


OF_PREMISES = {
    "walks not tested": ("walks", lambda facts: facts["premises"].remove(
        premise("rollouts are independent of one another")(facts)
    )),
    "walks declared": ("walks", lambda facts: premise("rollouts are independent of one another")(
        facts).update(status="declared", level=None)),
    "walks without a p-value": ("walks", lambda facts: premise(
        "rollouts are independent of one another")(facts).update(detail="all is well")),
    "a p-value that refutes": ("walks", lambda facts: premise(
        "rollouts are independent of one another")(facts).update(
            detail="p-value 0.0001 from 16 batches of 8 walks, refuted up to 0.001")),
    "steps not followed": ("rows", lambda facts: facts["premises"].remove(
        premise("successors and predecessors agree")(facts))),
    "steps declared": ("rows", lambda facts: premise("successors and predecessors agree")(
        facts).update(status="declared", level=None)),
    "draws not tested": ("rows", lambda facts: facts["premises"].remove(
        premise("draws of features follow their law")(facts))),
    "draws refuted": ("rows", lambda facts: premise("draws of features follow their law")(
        facts).update(detail="e-value 1e+06 from 500 rows, refuted from 1000 on")),
    "nothing left to believe": ("rows", lambda facts: facts["premises"].remove(
        premise("features and predecessors are what they declare")(facts))),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "change"), OF_PREMISES.values(), ids=OF_PREMISES)
def test_a_careful_change_of_what_was_tested(learned, tmp_path, kind, change):
    problem, answer, code = learned
    drawn = ROLLOUTS if kind == "walks" else jm.SampledRows(rows=500)
    jm.certify(problem, answer, evaluation=drawn).save(tmp_path / "run", code=code)
    facts = facts_of(tmp_path / "run")
    change(facts)
    write_facts(tmp_path / "run", facts)
    failed(tmp_path / "run", trust_code=False)


@pytest.mark.parametrize(
    ("kind", "name", "old", "new"),
    [
        ("walks", "rollouts are independent of one another", "p-value 0.", "p-value 0.9"),
        ("rows", "successors and predecessors agree", " steps", "0 steps"),
        ("rows", "draws of features follow their law", "e-value ", "e-value 9"),
    ],
)
def test_other_numbers_of_tests_are_found_with_code(learned, tmp_path, kind, name, old, new):
    problem, answer, code = learned
    drawn = ROLLOUTS if kind == "walks" else jm.SampledRows(rows=500)
    jm.certify(problem, answer, evaluation=drawn).save(tmp_path / "run", code=code)
    facts = facts_of(tmp_path / "run")
    stated = premise(name)(facts)
    stated["detail"] = stated["detail"].replace(old, new, 1)
    write_facts(tmp_path / "run", facts)
    failed(tmp_path / "run", name)


def test_rows_with_other_statistics_are_found(learned, tmp_path):
    problem, answer, code = learned
    place = tmp_path / "run"
    jm.certify(problem, answer, evaluation=jm.SampledRows(rows=200)).save(place, code=code)
    honest_facts = facts_of(place)
    for path in numbers_in(honest_facts):
        facts = copy.deepcopy(honest_facts)
        spot, key = at(facts, path)
        spot[key] += 1 if isinstance(spot[key], int) else 1e-3 * max(abs(spot[key]), 1.0)
        write_facts(place, facts)
        needs_code = path[0] == "combinations" and "means" in path
        assert not jm.audit(place, trust_code=needs_code).passed, path


def test_weights_of_a_mixture_are_found(tmp_path):
    code = jm.certificate.Reference("checker.large_code:small", seed=1)
    made, place = code.made, tmp_path / "run"
    problem = jm.Apprenticeship(made["world"], made["costs"], jm.ExpertExpectation([1.0, 0.3, 2.0]))
    mixture = jm.policy.MixturePolicy(made["members"][:2], [0.25, 0.75])
    drawn = jm.problem.MixtureRollouts(50, 15)
    jm.certify(problem, mixture, evaluation=drawn).save(place, code=code)

    def swapped(header, arrays):
        arrays["weights of the policy"] = arrays["weights of the policy"][::-1]

    def no_law(header, arrays):
        arrays["weights of the policy"] = arrays["weights of the policy"] * 0.9

    for change in (no_law, swapped):
        change_arrays(place / "policy.npz", change)
        rehash(place)
        failed(place, trust_code=False)


def test_an_incomplete_audit_is_told_from_a_complete_one(saved):
    without, trusting = both(saved)
    assert without.not_derived
    assert trusting.not_derived == ()
    assert without.passed
    with pytest.raises(AuditFailed, match="passed as far as it goes, and is not complete"):
        without.require()
    assert trusting.require() is trusting


def test_another_numpy_weakens_no_audit_in_silence(run):
    """The same numbers come from the seed, so the version says nothing; other ones are a finding
    under the version that is named, and leave the audit incomplete under another one."""
    facts = facts_of(run)
    facts["software"]["numpy"] = "1.0"
    write_facts(run, facts)
    assert jm.audit(run, trust_code=True).require().complete
    for way in facts["combinations"]:
        way["statistics"][0]["variances"][0] *= 1.001
    for version in ("1.0", np.__version__):
        facts["software"]["numpy"] = version
        write_facts(run, facts)
        outcome = jm.audit(run, trust_code=True)
        found = [one for one in outcome.findings if "that their seed gives" in one]
        assert bool(found) == (version == np.__version__)
        assert ("another version of numpy" in str(outcome)) == (version == "1.0")
        with pytest.raises(AuditFailed):
            outcome.require()


@pytest.mark.parametrize("trust", [False, True])
def test_a_seed_of_ones_own_choice_is_found(learned, tmp_path, trust):
    """Everything else is as it would be from that seed."""
    problem, answer, code = learned
    with drawn_from(12345):
        certificate = jm.certify(problem, answer, evaluation=ROLLOUTS)
    certificate.save(tmp_path / "run", code=code)
    failed(tmp_path / "run", "the seed of the draws is 12345", trust_code=trust)


def test_a_seed_of_ones_own_choice_is_found_where_the_policy_is_code(tmp_path):
    code = jm.certificate.Reference("checker.large_code:small", seed=3)
    world, costs, members = (code.made[part] for part in ("world", "costs", "members"))
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation([1.0, 1.0, 1.0]))
    with drawn_from(7):
        certificate = jm.certify(problem, members[0], evaluation=ROLLOUTS)
    certificate.save(tmp_path / "run", code=code)
    without = jm.audit(tmp_path / "run")
    assert "the seed of the draws" in without.not_derived
    failed(tmp_path / "run", "the seed of the draws is 7")


def test_source_that_was_edited_is_found_and_not_called(witness):
    source = witness / "modules" / "witness_of_calls.py"
    source.write_text(source.read_text() + "# another line\n")
    assert jm.audit(witness / "run").passed
    failed(witness / "run", "the source of witness_of_calls has changed")
    assert marks(witness) == []
    with pytest.warns(UserWarning, match="the source of witness_of_calls has changed"):
        jm.certificate.load_policy(witness / "run", trust_code=True)


def test_source_behind_the_source_is_digested_too(witness):
    """What is made here is defined in a module that the referenced one imports."""
    sources = json.loads((witness / "run" / "code.json").read_bytes())["sources"]
    assert {"witness_of_calls", "checker.large_code", "mixtures"} <= set(sources)
    assert not any(name.startswith(("journeyman", "numpy")) for name in sources)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda facts: facts["sources"].clear(), "the source of journeyman.gallery:queues is not"),
        (lambda facts: facts.pop("sources"), "other parts"),
        (lambda facts: facts["sources"].update({"journeyman.gallery": "0" * 64}), "has changed"),
        (lambda facts: facts["sources"].update({"journeyman.gallery": "abc"}), "has no digest"),
        (lambda facts: facts["sources"].update({"journeyman.gallery": None}), "has no file"),
        (
            lambda facts: facts["sources"].update({"no_such": "0" * 64}),
            "the module no_such is not found here",
        ),
    ],
)
def test_other_digests_of_sources_are_found(run, change, words):
    facts = json.loads((run / "code.json").read_bytes())
    change(facts)
    (run / "code.json").write_bytes(canonical(facts))
    rehash(run)
    outcome = jm.audit(run, trust_code=True)
    assert words in str(outcome)
    with pytest.raises(AuditFailed):
        outcome.require()


@tried(40)
@given(st.sampled_from(FILES), st.integers(0, 2**31), st.binary(min_size=1, max_size=6))
def test_damage_of_any_kind_is_a_finding_and_never_an_error(
    saved, tmp_path_factory, name, where, damage
):
    place = tmp_path_factory.getbasetemp() / "damaged-large"
    if damage_file(saved, place, name, where, damage):
        assert not jm.audit(place).passed
        if name != "certificate.json":
            rehash(place)
            jm.audit(place)
