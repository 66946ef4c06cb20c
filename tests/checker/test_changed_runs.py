"""Whatever is changed in a saved run, the audit finds it.

Careless changes leave the hashes as they are. Careful ones bring hashes and digest up to date, so
that only numbers derived a second time can show it.
"""

import copy
import json
import re
import shutil
import struct
import zipfile

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
    failed,
    numbers_in,
    rehash,
    write_facts,
)
from fuzzing import tried
from journeyman.certificate.saving import canonical, save_run
from journeyman.testing.random_worlds import random_policy

FILES = [
    "certificate.json", "demonstrations.npz", "evidence.npz", "policy.npz", "problem.npz",
    "world.npz",
]  # fmt: skip
INPUTS = FILES[1:]
every_file = pytest.mark.parametrize("name", FILES)


def demonstrated(seed, discount=0.9, count=60):
    world, _, expert = jm.gallery.grid(4)
    world = jm.World(world.transition, np.arange(1, 17) / 136, discount)
    basis = jm.CostBasis(np.random.default_rng(0).uniform(-1, 1, (world.num_pairs, 3)))
    return world, basis, jm.record(world, expert, trajectories=count, horizon=30, seed=seed)


def a_run(place, *, seed=0, count=60, discount=0.9, kind=jm.InfinityBall):
    """A budget that keeps the apprentice from the expert, truncated records, and a measure that
    defines the policy."""
    world, basis, demos = demonstrated(seed, discount, count)
    cost = np.linspace(0, 1, world.num_pairs)
    spent = jm.expected_cost(world, jm.clone(demos, world), cost)
    budget = jm.Budget(cost, 0.5 * spent, name="wear")
    problem = jm.Apprenticeship(world, basis, demos, kind(), budget)
    answer = jm.solve(problem)
    measure = answer.occupancy.measure * np.where(np.arange(world.num_pairs) % 2, 1.0, 1.01)
    policy = jm.policy.extract(world, measure)
    certificate = jm.certify(problem, policy, witness=answer.witness, measure=measure)
    save_run(certificate, place, seeds={"solver": seed})
    return certificate


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    place = tmp_path_factory.mktemp("honest") / "run"
    certificate = a_run(place)
    assert certificate.lower_bound > 0.05
    assert {way.kind for way in certificate.combinations} == {"A", "B", "B'", "C", "D"}
    assert sorted(path.name for path in place.iterdir()) == FILES
    assert jm.audit(place).require().passed
    return place


@pytest.fixture
def run(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


# Careless changes


@every_file
@pytest.mark.parametrize("share", [0.0, 0.07, 0.31, 0.5, 0.83, 0.999])
@pytest.mark.parametrize("mask", [1, 128])
def test_a_flipped_bit(run, name, share, mask):
    data = bytearray((run / name).read_bytes())
    data[int(share * len(data))] ^= mask
    (run / name).write_bytes(bytes(data))
    failed(run)


@every_file
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file(run, name, share):
    data = (run / name).read_bytes()
    (run / name).write_bytes(data[: int(share * len(data))])
    failed(run)


@every_file
def test_a_missing_file(run, name):
    (run / name).unlink()
    failed(run, name)


@every_file
def test_a_directory_or_a_link_in_the_place_of_a_file(run, name, tmp_path):
    (run / name).rename(tmp_path / name)
    (run / name).mkdir()
    failed(run, name)
    (run / name).rmdir()
    (run / name).symlink_to(tmp_path / name)
    failed(run, name)


def test_an_extra_file_and_an_unfinished_save(run):
    for name in ("more.npz", ".world.npz.tmp", "unfinished"):
        (run / name).write_bytes(b"")
        failed(run, name)
        (run / name).unlink()
    (run / "sub").mkdir()
    failed(run, "sub")


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("careful", [False, True])
def test_a_file_of_another_run(run, name, careful, tmp_path):
    """With fitting hashes the numbers still show it. The other run differs in demonstrations."""
    a_run(tmp_path / "other", seed=9, discount=0.91 if name == "world.npz" else 0.9)
    shutil.copy(tmp_path / "other" / name, run / name)
    if careful:
        rehash(run)
    outcome = failed(run)
    assert ("SHA-256" in str(outcome)) != careful


# Careful changes of the certificate


def test_copies_of_episodes_cannot_be_kept_from_the_audit(tmp_path):
    """Each demonstration twice; the certificate is edited into one that would be valid."""
    world, basis, expert = jm.gallery.grid(4)
    once = jm.record(world, expert, trajectories=30, horizon=40, seed=0)
    demos = jm.Demonstrations.concatenate([once, once])
    certificate = jm.certify(jm.Apprenticeship(world, basis, demos), expert)
    certificate.save(tmp_path)
    jm.audit(tmp_path).require()
    facts = facts_of(tmp_path)
    failing = [one for one in facts["premises"] if one["status"] == "failed"]
    assert "no episode was copied" in {one["name"] for one in failing}
    for one in failing:
        one["status"] = "tested, not refuted"
        one["detail"] = re.sub("e-value [^ ]+ ", "e-value 0.01 ", one["detail"])
    facts |= {"valid": True, "vacuous": False}
    facts["bound"] = min(facts["combinations"][0]["bound"], facts["trivial_bound"])
    facts["vacuous"] = facts["bound"] >= facts["trivial_bound"]
    write_facts(tmp_path, facts)
    failed(tmp_path, "the status that no episode was copied")


@pytest.mark.parametrize("direction", [-1, 1])
def test_every_number_is_checked(run, direction):
    """Each number of the certificate, moved by a thousandth of its size or of the trivial bound."""
    honest = facts_of(run)
    paths = numbers_in(honest)
    assert len(paths) > 80
    for path in paths:
        facts = copy.deepcopy(honest)
        place, key = at(facts, path)
        size = max(abs(place[key]), honest["trivial_bound"] if "level" not in path else 0.0)
        place[key] += direction * 1e-3 * (size if path != ("failure_probability",) else 0.01)
        write_facts(run, facts)
        assert not jm.audit(run).passed, path


def test_every_number_of_a_shaped_run_is_checked(tmp_path):
    a_run(tmp_path, count=520, kind=jm.EuclideanBall)
    honest = facts_of(tmp_path)
    shaped = [
        k for k, way in enumerate(honest["combinations"]) if way["estimate"] == "control variate"
    ]
    assert shaped
    for k in range(3):
        facts = copy.deepcopy(honest)
        term = facts["combinations"][shaped[0]]["terms"][-1 - k]
        term["value"] *= 0.999
        write_facts(tmp_path, facts)
        failed(tmp_path, repr(term["name"])) if term["value"] > 1e-6 else failed(tmp_path)


def lowered_bound(facts):
    """A better bound with terms that add up to it."""
    best = facts["combinations"][0]
    term = max(best["terms"], key=lambda one: one["value"])
    term["value"] *= 0.5
    values = [one["value"] for one in best["terms"]]
    best["bound"] = float(np.nextafter(np.sum(values), np.inf))
    facts["bound"] = best["bound"]


def no_statistics(facts):
    """The sampling error left out of the best combination."""
    best = facts["combinations"][0]
    best["terms"] = [term for term in best["terms"] if term["name"] != "sampling"]


def another_kind(facts):
    facts["combinations"][0]["kind"] = "E"


CAREFUL = {
    "bound halved with its largest term": lowered_bound,
    "sampling term removed": no_statistics,
    "term removed": drop("combinations", 0, "terms", 1),
    "term renamed": edit(("combinations", 0, "terms", 1, "name"), "error"),
    "formula edited": edit(("combinations", 0, "terms", 2, "formula"), "0"),
    "source edited": edit(("combinations", 0, "terms", 2, "source"), "certain"),
    "term with more parts": edit(("combinations", 0, "terms", 0, "note"), "x"),
    "unknown kind": another_kind,
    "sampled statistics": edit(("combinations", 0, "statistics"), [{"name": "x"}]),
    "unknown estimate": edit(("combinations", 0, "estimate"), "oracle"),
    "combination removed": drop("combinations", 3),
    "combination twice": lambda facts: facts["combinations"].insert(0, facts["combinations"][0]),
    "no combinations": edit(("combinations",), []),
    "order of combinations": lambda facts: facts["combinations"].reverse(),
    "another probability": edit(("failure_probability",), 0.01),
    "probability as a word": edit(("failure_probability",), "0.05"),
    "lower bound raised": edit(("lower_bounds", "on_data"), lambda value: value + 0.1),
    "true lower bound raised": edit(("lower_bounds", "true"), lambda value: value + 0.1),
    "lower bound removed": drop("lower_bounds", "true"),
    "alarm raised": edit(("alarm",), True),
    "not valid": edit(("valid",), False),
    "valid as a number": edit(("valid",), 1),
    "vacuous": edit(("vacuous",), True),
    "weak": edit(("weak",), lambda weak: not weak),
    "least possible": edit(("least_possible",), -1.0),
    "premise removed": drop("premises", 2),
    "no premises": edit(("premises",), []),
    "declared instead of tested": edit(("premises", 3, "status"), "declared"),
    "tested instead of declared": edit(("premises", 0, "status"), "tested, not refuted"),
    "premise failed": edit(("premises", 4, "status"), "failed"),
    "unknown status": edit(("premises", 4, "status"), "proven"),
    "another level": edit(("premises", 2, "level"), 1e-9),
    "another e-value": edit(("premises", 3, "detail"), "e-value 0.5 from 1800 steps"),
    "copies not named": drop("premises", 1),
    "copies not tested": edit(
        ("premises", 1), lambda one: one | {"status": "declared", "level": None}
    ),
    "copies refuted": edit(("premises", 1, "status"), "failed"),
    "another level for copies": edit(("premises", 1, "level"), 1e-9),
    "another e-value of copies": edit(
        ("premises", 1, "detail"), lambda text: re.sub("e-value [^ ]+ ", "e-value 0.7 ", text)
    ),
    "other numbers of copies": edit(
        ("premises", 1, "detail"), lambda text: re.sub(", [0-9]+ of", ", 3 of", text)
    ),
    "another number of episodes": edit(("premises", 0, "detail"), "the 600 episodes"),
    "budget limit": edit(("budgets", 0, "limit"), 1e6),
    "budget kept": edit(("budgets", 0, "is_kept"), lambda kept: not kept),
    "budget removed": edit(("budgets",), []),
    "budget renamed": edit(("budgets", 0, "name"), "tear"),
    "interval renamed": edit(("expert_intervals", 0, "name"), "x"),
    "interval removed": drop("apprentice_intervals", 0),
    "expectation removed": drop("expectations", 0),
    "infinite bound": edit(("combinations", 0, "bound"), "-inf"),
    "not a number": edit(("gap_on_data",), "nan"),
    "another version": edit(("version",), lambda now: now + 1),
    "version as a float": edit(("version",), float),
    "another kind of file": edit(("kind",), "something"),
    "part missing": drop("trivial_bound"),
    "part added": lambda facts: facts.update(remark="all is well"),
    "software untold": edit(("software",), {}),
    "seeds untold": edit(("seeds",), {}),
    "hash edited": edit(("inputs", "policy.npz"), "0" * 64),
    "hash missing": drop("inputs", "demonstrations.npz"),
    "hash of a foreign file": lambda facts: facts["inputs"].update({"more.npz": "0" * 64}),
    "hashes as a list": edit(("inputs",), ["world.npz"]),
}  # fmt: skip


@pytest.mark.parametrize("change", CAREFUL.values(), ids=CAREFUL)
def test_a_careful_change_of_the_certificate(run, change):
    change_facts(run, change)
    outcome = failed(run)
    assert "digest" not in str(outcome)


def test_a_certificate_in_another_form(run):
    facts = facts_of(run)
    (run / "certificate.json").write_text(json.dumps(facts))
    failed(run, "canonical form")
    data = canonical(facts)
    (run / "certificate.json").write_bytes(data.replace(b"{", b'{"bound": 0.0,', 1))
    failed(run, "twice")
    (run / "certificate.json").write_text("[" * 100_000)
    failed(run)
    (run / "certificate.json").write_text('{"version": NaN}')
    failed(run)


# Careful changes of the inputs


def another_discount(header, arrays):
    header["discount"] = 0.91


def another_start(header, arrays):
    arrays["initial"] = np.roll(arrays["initial"], 1)


def a_moved_branch(header, arrays):
    first, second = arrays["indptr"][:2]
    arrays["data"][first:second] = arrays["data"][first:second][::-1]


def no_law(header, arrays):
    arrays["data"] *= 1.001


def estimated(header, arrays):
    header["version"] = 2


def a_loop(header, arrays):
    arrays["indptr"][1] = 10**6


def a_swapped_action(header, arrays):
    arrays["probabilities"][:2] = arrays["probabilities"][:2][::-1]


def a_negative_probability(header, arrays):
    arrays["probabilities"][:2] = (1.5, -0.5)


def fewer_offsets(header, arrays):
    arrays["choice_offsets"] = arrays["choice_offsets"][:-1]


def an_action_out_of_range(header, arrays):
    arrays["actions"][0] = 200


def another_action(header, arrays):
    """The opposite action of a state where both lead anywhere."""
    arrays["actions"][3] = (int(arrays["actions"][3]) + 1) % 4


def terminated_while_moving(header, arrays):
    arrays["terminated"][:] = True


def a_teleport(header, arrays):
    arrays["states"][1] = 15 - int(arrays["states"][0])


def a_shorter_record(header, arrays):
    length = int(arrays["offsets"][1])
    arrays["states"], arrays["actions"] = arrays["states"][length + 1 :], arrays["actions"][length:]
    arrays["offsets"] = arrays["offsets"][1:] - length
    arrays["terminated"] = arrays["terminated"][1:]


def a_cheaper_cost(header, arrays):
    arrays["basis"][0] *= 0.9


def another_class(header, arrays):
    header["cost_class"] = {"name": "simplex"}


def an_unknown_class(header, arrays):
    header["cost_class"] = {"name": "ball"}


def a_scale(header, arrays):
    header["cost_class"]["scale"] = [0.99] * arrays["basis"].shape[1]


def a_nearer_target(header, arrays):
    arrays["target"] = arrays["target"] * 0.99


def a_declared_target(header, arrays):
    header["expectation"] = {"kind": "declared"}


def another_method(header, arrays):
    header["expectation"] = {"kind": "plain mean"}


def other_folds(header, arrays):
    assert header["expectation"]["kind"] == "blend"
    header["expectation"]["num_folds"] -= 1


def another_smoothing(header, arrays):
    header["expectation"]["smoothing"] *= 3


def no_blend(header, arrays):
    header["expectation"]["kind"] = "control variate"


def a_completed_mean(header, arrays):
    header["expectation"] = {"kind": "completed mean", "smoothing": 0.1}


def stopped_shaping(header, arrays):
    header["expectation"] = {"kind": "stopped shaping"}


def a_target_out_of_reach(header, arrays):
    arrays["target"] = arrays["target"] + [0, 0, 40.0]


def an_unknown_method(header, arrays):
    header["expectation"] = {"kind": "oracle"}


def a_wider_budget(header, arrays):
    arrays["limits"] = arrays["limits"] + 1


def a_cheaper_budget(header, arrays):
    arrays["budget_0"] = arrays["budget_0"] / 2


def other_names(header, arrays):
    header["names"] = header["names"][::-1]


def other_values(header, arrays):
    arrays["values"] = arrays["values"] * 0.9


def other_weights(header, arrays):
    arrays["cost_weights"] = -arrays["cost_weights"]


def another_measure(header, arrays):
    arrays["measure"] = arrays["measure"][::-1]


def a_larger_measure(header, arrays):
    arrays["measure"] = arrays["measure"] * 1.001


def another_scale_of_the_measure(header, arrays):
    arrays["measure_scale"] = arrays["measure_scale"] * 0.99


def no_measure(header, arrays):
    del arrays["measure"]


def fewer_visits(header, arrays):
    arrays["visits"] = arrays["visits"] * 0.999


def visits_elsewhere(header, arrays):
    arrays["visits"] = arrays["visits"][::-1].copy()


def another_count_of_tails(header, arrays):
    header["centred"] = not header["centred"]


def not_finite(header, arrays):
    name = next(iter(arrays))
    arrays[name] = np.full(arrays[name].shape, np.nan)


def a_huge_point(header, arrays):
    """A point whose rounding could hide a false bound, if it were allowed to."""
    for name in ("cost_weights", "values", "budget_prices"):
        array = arrays[name]
        if array.ndim == 2:
            arrays[name] = np.vstack([array, np.full(array.shape[1], 1e15 * (name == "values"))])


def nothing(header, arrays):
    arrays.clear()


CHANGES = {
    "world.npz": [another_discount, another_start, a_moved_branch, no_law, estimated, a_loop],
    "policy.npz": [a_swapped_action, a_negative_probability, fewer_offsets],
    "demonstrations.npz": [
        an_action_out_of_range, another_action, terminated_while_moving, a_teleport,
        a_shorter_record,
    ],
    "problem.npz": [
        a_cheaper_cost, another_class, an_unknown_class, a_scale, a_nearer_target,
        a_declared_target, another_method, an_unknown_method, other_folds, another_smoothing,
        no_blend, a_completed_mean, stopped_shaping, a_target_out_of_reach, a_wider_budget,
        a_cheaper_budget, other_names,
    ],
    "evidence.npz": [
        other_values, other_weights, another_measure, a_larger_measure,
        another_scale_of_the_measure, no_measure, fewer_visits, visits_elsewhere,
        another_count_of_tails,
    ],
}  # fmt: skip
ALL = [(name, change) for name, some in CHANGES.items() for change in (*some, not_finite, nothing)]


@pytest.mark.parametrize(
    ("name", "change"), ALL, ids=[f"{name[:-4]}-{change.__name__}" for name, change in ALL]
)
def test_a_careful_change_of_an_input(run, name, change):
    change_arrays(run / name, change)
    rehash(run)
    outcome = failed(run)
    assert "SHA-256" not in str(outcome)
    assert "digest" not in str(outcome)


def test_a_wider_budget_everywhere_leaves_lower_bounds_that_do_not_hold(run):
    """A limit that is kept with ease, in the problem and in the certificate."""
    change_arrays(run / "problem.npz", lambda _, arrays: arrays["limits"].fill(50.0))
    facts = facts_of(run)
    facts["budgets"][0] |= {"limit": 50.0, "is_kept": True}
    write_facts(run, facts)
    rehash(run)
    failed(run, "the lower bound 'on_data'")


def test_a_false_bound_does_not_hide_behind_a_huge_point(run):
    change_arrays(run / "evidence.npz", a_huge_point)
    rehash(run)
    assert jm.audit(run).require().passed
    facts = facts_of(run)
    facts["lower_bounds"]["on_data"] += 0.01
    write_facts(run, facts)
    failed(run, "the lower bound 'on_data'")


def test_an_array_that_lies_about_its_size(run):
    with zipfile.ZipFile(run / "policy.npz") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    lying = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118)
    lying += b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }".ljust(117)
    parts["probabilities.npy"] = lying + b"\n" + b"\0" * 64
    with zipfile.ZipFile(run / "policy.npz", "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    rehash(run)
    failed(run, "policy.npz", "announces")


def test_an_archive_that_would_burst(run):
    with zipfile.ZipFile(run / "policy.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b'{"kind": "policy", "version": 1}')
        archive.writestr("probabilities.npy", b"\0" * (64 << 20))
    data = bytearray((run / "policy.npz").read_bytes())
    place = data.rindex(struct.pack("<L", 64 << 20))
    data[place : place + 4] = struct.pack("<L", 3 << 30)
    (run / "policy.npz").write_bytes(bytes(data))
    rehash(run)
    failed(run, "would unpack to")


@tried(60)
@given(st.sampled_from(FILES), st.integers(0, 2**31), st.binary(min_size=1, max_size=6))
def test_damage_of_any_kind_is_a_finding_and_never_an_error(
    saved, tmp_path_factory, name, where, damage
):
    place = tmp_path_factory.getbasetemp() / "damaged"
    if damage_file(saved, place, name, where, damage):
        assert not jm.audit(place).passed
        if name != "certificate.json":
            rehash(place)
            jm.audit(place)


def test_demonstrations_left_out_of_a_declared_run(run, tmp_path):
    """Files that do not belong to the kind of problem."""
    world, basis, demos = demonstrated(0)
    declared = jm.ExpertExpectation.from_demonstrations(demos, basis, world).values
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(declared))
    certificate = jm.certify(problem, random_policy(world, 1))
    save_run(certificate, tmp_path / "declared", seeds={"solver": None})
    assert jm.audit(tmp_path / "declared").passed
    shutil.copy(run / "demonstrations.npz", tmp_path / "declared")
    failed(tmp_path / "declared", "demonstrations.npz was not certified")
    facts = facts_of(tmp_path / "declared")
    facts["inputs"]["demonstrations.npz"] = ""
    write_facts(tmp_path / "declared", facts)
    rehash(tmp_path / "declared")
    failed(tmp_path / "declared", "do not go together")
