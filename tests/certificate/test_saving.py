"""Saved runs: complete, exact to the last bit, and never half a run taken for a whole one."""

import json

import numpy as np
import pytest

import journeyman as jm
from journeyman.certificate import saving
from journeyman.certificate.saving import certificate_facts, save_run
from journeyman.errors import InvalidFile

FILES = ["certificate.json", "evidence.npz", "policy.npz", "problem.npz", "world.npz"]


@pytest.fixture(scope="module")
def apprentice():
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=30, horizon=40, seed=1)
    return jm.learn(world, basis, demos, seed=7)


def declared(apprentice):
    problem = apprentice.problem
    expectation = jm.ExpertExpectation(problem.target)
    return jm.learn(problem.world, problem.basis, expectation)


def names_in(place):
    return sorted(path.name for path in place.iterdir())


def test_a_run_holds_everything_and_comes_back_to_the_last_bit(apprentice, tmp_path):
    apprentice.save(tmp_path / "deep" / "run")
    place, certificate = tmp_path / "deep" / "run", apprentice.certificate
    assert names_in(place) == sorted([*FILES, "demonstrations.npz"])
    facts = json.loads((place / "certificate.json").read_bytes())
    assert facts["bound"] == certificate.bound
    assert facts["seeds"] == {"solver": 7}
    assert facts["software"]["numpy"] == np.__version__
    stored = [term["value"] for way in facts["combinations"] for term in way["terms"]]
    assert stored == [term.value for way in certificate.combinations for term in way.terms]
    assert facts["expectations"] == certificate.expectations.tolist()
    policy, world = jm.Policy.load(place / "policy.npz"), jm.World.load(place / "world.npz")
    assert np.array_equal(policy.per_pair, apprentice.policy.per_pair)
    assert world.discount == apprentice.problem.world.discount
    demos = jm.Demonstrations.load(place / "demonstrations.npz")
    assert np.array_equal(demos.states, apprentice.problem.demonstrations.states)


def test_the_best_witness_comes_first(apprentice):
    certificate = apprentice.certificate
    numbers = [jm.problem.lower_bound(certificate.problem, one) for one in certificate.witnesses]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == certificate.lower_bound
    assert certificate.witness is certificate.witnesses[0]


def test_infinity_is_a_word():
    """Nothing is known of the error of expectations that were declared."""
    world, basis, expert = jm.gallery.grid(4)
    problem = jm.Apprenticeship(
        world, basis, jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    )
    facts = certificate_facts(jm.certify(problem, expert))
    assert facts["lower_bounds"]["expert_radius"] == "inf"
    json.dumps(facts, allow_nan=False)


def test_a_run_may_be_replaced_by_another(apprentice, tmp_path):
    apprentice.save(tmp_path)
    declared(apprentice).save(tmp_path)
    assert names_in(tmp_path) == FILES
    assert jm.audit(tmp_path).passed
    apprentice.save(tmp_path)
    assert jm.audit(tmp_path).passed


def test_nothing_else_is_overwritten(apprentice, tmp_path):
    apprentice.problem.world.save(tmp_path / "world.npz")
    before = (tmp_path / "world.npz").read_bytes()
    with pytest.raises(InvalidFile, match="holds other files"):
        apprentice.save(tmp_path)
    (tmp_path / "certificate.json").write_text('{"kind": "mine"}')
    with pytest.raises(InvalidFile, match="holds other files"):
        apprentice.save(tmp_path)
    assert (tmp_path / "world.npz").read_bytes() == before
    with pytest.raises(InvalidFile, match="is a file"):
        apprentice.save(tmp_path / "world.npz")


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("step", ["_save_problem", "_save_evidence", "_finish"])
def test_an_interrupted_save_is_no_run_and_can_be_repeated(
    apprentice, tmp_path, monkeypatch, step, again
):
    if again:
        apprentice.save(tmp_path)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(saving, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            apprentice.save(tmp_path)
    assert not (tmp_path / "certificate.json").exists()
    assert "no run was finished" in str(jm.audit(tmp_path))
    (tmp_path / ".world.npz.abc").write_bytes(b"left behind")
    apprentice.save(tmp_path)
    assert jm.audit(tmp_path).passed


def test_a_certificate_of_any_policy_can_be_saved(apprentice, tmp_path):
    certificate = jm.certify(apprentice.problem, jm.Policy.uniform(apprentice.problem.world))
    save_run(certificate, tmp_path, seeds={"solver": None})
    assert jm.audit(tmp_path).passed


def test_features_of_sampled_rows_are_kept_and_go_with_their_run(apprentice, tmp_path):
    problem = apprentice.problem
    features = jm.features.Features(
        np.eye(problem.world.num_pairs)[:, :3], problem.world.num_pairs * [0.1]
    )
    rows = jm.SampledRows(features, [0.5, 1.0, -0.2], rows=40)
    policy = jm.policy.extract(problem.world, features.measure(rows.coefficients))
    certificate = jm.certify(problem, policy, evaluation=rows)
    save_run(certificate, tmp_path, seeds={"solver": None}, evaluation=rows)
    with np.load(tmp_path / "features.npz") as stored:
        assert np.array_equal(stored["matrix"], features.matrix)
        assert np.array_equal(stored["base"], features.base)
        assert stored["coefficients"].tolist() == [0.5, 1.0, -0.2]
    facts = json.loads((tmp_path / "certificate.json").read_bytes())
    assert [one["name"] for one in facts["combinations"][0]["statistics"]] == ["V1", "V2", "r+"]
    assert jm.audit(tmp_path).require().passed
    apprentice.save(tmp_path)
    assert "features.npz" not in names_in(tmp_path)
    assert jm.audit(tmp_path).passed


def test_a_run_with_a_foreign_file_is_not_overwritten(apprentice, tmp_path):
    certificate = apprentice.certificate
    certificate.save(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidFile, match=r"holds 'notes\.txt' beside a saved run"):
        certificate.save(tmp_path)
    assert (tmp_path / "certificate.json").exists()
