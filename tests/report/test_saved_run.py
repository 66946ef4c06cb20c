"""A saved run can be reported on, with the same numbers, and only as it was saved."""

import json
import re
import shutil
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from checker.forging import facts_of, rehash, write_facts
from fuzzing import tried
from journeyman.errors import InvalidFile
from journeyman.report.page import page
from journeyman.report.report_data import ReportData
from journeyman.report.saved_run import read_run


@pytest.fixture(scope="module")
def apprentice():
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=40, horizon=60, seed=0)
    wear = jm.Budget(cost=np.arange(world.num_pairs) % 2, at_most=12.0, name="<wear>")
    chosen = jm.EuclideanBall(scale=[1.0, 2.0, 0.5, 1.0])
    return jm.learn(
        world, basis, demos, cost_class=chosen, constraints=[wear], solver=jm.ColumnGeneration()
    )


@pytest.fixture
def run(apprentice, tmp_path):
    apprentice.save(tmp_path / "run")
    return tmp_path / "run"


def section(html, name):
    return re.search(f'<section id="{name}".*?</section>', html, re.DOTALL).group()


def test_the_sections_are_those_of_the_apprentice(apprentice, run):
    live, read = page(ReportData.of(apprentice)), jm.report.report_of_run(run)
    for name in ("result", "terms", "costs", "maps", "budgets", "remedies", "premises"):
        assert section(read, name) == section(live, name)
    assert "trace-title" in section(read, "convergence")


def test_the_files_and_their_digests_are_listed(run):
    html = section(jm.report.report_of_run(run), "reproduction")
    facts = json.loads((run / "certificate.json").read_text())
    assert facts["inputs"]
    for name, word in facts["inputs"].items():
        assert name in html
        assert word in html
    assert "jm.audit('run')" in html.replace("&#39;", "'")


def test_the_same_run_gives_the_same_bytes(run, tmp_path):
    for name in ("first.html", "second.html"):
        jm.report.write_report(run, tmp_path / name)
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "second.html").read_bytes()


def test_declared_expectations_of_rewards_come_back(tmp_path):
    world, basis, expert = jm.gallery.driving()
    learned = jm.learn(world, basis, expert, cost_class=jm.Simplex())
    learned.save(tmp_path / "run")
    live, read = page(ReportData.of(learned)), jm.report.report_of_run(tmp_path / "run")
    assert section(read, "costs") == section(live, "costs")
    assert section(read, "result") == section(live, "result")


def test_a_known_cost_comes_back(tmp_path):
    world, _, _ = jm.gallery.grid(3, macro_cells=1)
    problem = jm.Forward(world, np.arange(world.num_pairs) % 3 / 3.0)
    certificate = jm.certify(problem, jm.solve(problem))
    certificate.save(tmp_path / "run")
    html = jm.report.report_of_run(tmp_path / "run")
    assert section(html, "result") == section(page(ReportData.of(certificate)), "result")


def test_rollouts_come_back(tmp_path, apprentice):
    drawn = jm.Rollouts(trajectories=50, horizon=60)
    certificate = jm.certify(apprentice.problem, apprentice.policy, evaluation=drawn)
    certificate.save(tmp_path / "run")
    read = read_run(tmp_path / "run").certificate
    assert read.best.statistics == certificate.best.statistics
    assert read.summary() == certificate.summary()


@pytest.mark.parametrize("name", ["world.npz", "policy.npz", "problem.npz"])
def test_a_changed_file_is_refused(run, name):
    path = run / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InvalidFile, match=f"{name} was changed"):
        jm.report.report_of_run(run)


def test_a_changed_certificate_is_refused(run):
    path = run / "certificate.json"
    facts = json.loads(path.read_text())
    facts["trivial_bound"] = 1.0
    path.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    with pytest.raises(InvalidFile, match="was changed"):
        jm.report.report_of_run(run)


def test_a_run_of_an_earlier_schema_is_refused_with_a_remedy(run):
    write_facts(run, facts_of(run) | {"version": 4})
    with pytest.raises(InvalidFile, match=r"version 4 of the schema.*Certify and save again"):
        jm.report.report_of_run(run)


def test_what_is_no_run_is_refused(run, tmp_path):
    with pytest.raises(InvalidFile, match=r"holds no certificate\.json"):
        jm.report.report_of_run(tmp_path)
    (run / "policy.npz").unlink()
    with pytest.raises(InvalidFile, match="missing"):
        jm.report.report_of_run(run)
    for text, complaint in (
        ('{"kind": "other"}', "not the certificate"),
        ("[1]", "cannot be read as JSON: it holds no object"),
        ("{", "cannot be read as JSON"),
    ):
        (run / "certificate.json").write_text(text)
        with pytest.raises(InvalidFile, match=complaint):
            jm.report.report_of_run(run)


def test_a_run_in_a_large_world_comes_back_without_running_its_code(tmp_path):
    code = jm.certificate.Reference("journeyman:gallery.queues", queues=4, buffers=[3, 3, 3, 3])
    network = code.made
    demos = jm.record(network.world, network.longer, trajectories=40, horizon=40, seed=0)
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    drawn = jm.Rollouts(trajectories=100, horizon=40)
    certificate = jm.certify(problem, network.lbfs, evaluation=drawn)
    certificate.save(tmp_path / "run", code=code)
    live, read = page(ReportData.of(certificate)), jm.report.report_of_run(tmp_path / "run")
    for name in ("result", "terms", "remedies", "premises"):
        assert section(read, name) == section(live, name)
    assert "256 states" in read
    assert "trust_code=True" in read


@pytest.fixture(scope="module")
def saved(apprentice, tmp_path_factory):
    apprentice.save(tmp_path_factory.mktemp("saved") / "run")
    return tmp_path_factory.getbasetemp() / "saved0" / "run"


@tried(40)
@given(data=st.data())
def test_no_damage_does_more_than_a_refusal(saved, tmp_path_factory, data):
    """With digests that fit the damage: it is reported on, or refused in our words."""
    place = tmp_path_factory.getbasetemp() / "damaged-saved"
    shutil.copytree(saved, place, dirs_exist_ok=True)
    claims = place / "certificate.json"
    path = data.draw(st.one_of(st.just(claims), st.sampled_from(sorted(place.iterdir()))))
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(whole))
    with suppress(Exception):  # of what is no JSON any more, or names other files
        rehash(place)
    try:
        assert "</html>" in jm.report.report_of_run(place)
    except jm.errors.InvalidInput:
        return
