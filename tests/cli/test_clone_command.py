"""`journeyman clone`: files of records in, a policy and a certificate out."""

import json

import numpy as np
import pytest

import journeyman as jm


def observed(seed, count=60):
    rng = np.random.default_rng(seed)
    states = [rng.normal(size=(int(rng.integers(5, 20)), 2)) for _ in range(count)]
    actions = [(part[:-1, 0] > 0).astype(int) for part in states]
    return jm.Demonstrations.from_arrays(states, actions, [True] * count)


@pytest.fixture
def record(tmp_path):
    observed(0).save(tmp_path / "demos.csv")
    observed(1).save(tmp_path / "more.csv")
    return tmp_path


RANGE = ("--discount", 0.8, "--cost-range", 0, 1)


def test_from_a_file_of_observations_to_an_audited_run(call, record):
    shown = call("clone", record / "run", "--demonstrations", record / "demos.csv", *RANGE)
    assert shown.code == 0, shown.err
    assert "under every cost in the declared range" in " ".join(shown.out.split())
    assert "journeyman audit" in " ".join(shown.err.split())
    audited = call("audit", record / "run", "--json")
    assert audited.code == 0
    assert json.loads(audited.out)["complete"]
    assert call("report", record / "run").code == 0
    assert {one.name for one in (record / "run").iterdir()} == {
        ".lock", "certified", "report.html", "result.json",
    }  # fmt: skip
    assert not (record / "run.html").exists()
    assert jm.audit(record / "run" / "certified").passed


def test_held_out_records(call, record):
    shown = call(
        "clone", record / "run", "--demonstrations", record / "demos.csv", "--held-out",
        record / "more.csv", *RANGE, "--json",
    )  # fmt: skip
    result = json.loads(shown.out)
    assert result["premises"][0]["status"] == "declared"
    assert 0 < result["share"] < 0.5
    refused = call(
        "clone", record / "other", "--demonstrations", record / "demos.csv", *RANGE, "--gap", 1e-3
    )
    assert refused.code == 4
    assert "held-out episodes" in refused.words


def test_minari_alone(call, tmp_path):
    pytest.importorskip("minari")
    jm.write_demonstrations(observed(0), tmp_path / "signs-v0", format="minari")
    shown = call("clone", tmp_path / "run", "--demonstrations", tmp_path / "signs-v0", *RANGE)
    assert shown.code == 0, shown.err


def test_mistakes(call, record):
    wrong = call(
        "clone", record / "run", "--demonstrations", record / "demos.csv", *RANGE,
        "--use-probabilities",
    )  # fmt: skip
    assert wrong.code == 3
    assert "Give a file with the column expert_probability" in wrong.words
    wrong = call(
        "clone", record / "run", "--demonstrations", record / "demos.csv", "--discount", 2,
        "--cost-range", 0, 1,
    )  # fmt: skip
    assert wrong.code == 3
    assert "--discount 2" in wrong.words


def test_records_that_the_policy_was_fitted_to_are_not_held_out(call, record):
    (record / "copy.csv").write_bytes((record / "demos.csv").read_bytes())
    for other in ("demos.csv", "copy.csv"):
        shown = call(
            "clone", record / "run", "--demonstrations", record / "demos.csv",
            "--held-out", record / other, *RANGE,
        )  # fmt: skip
        assert shown.code == 3
        assert "holds the records that the policy is fitted to" in shown.words
        assert not (record / "run").exists()


def test_an_earlier_run_is_replaced_only_when_that_is_said(call, record):
    first = ("clone", record / "run", "--demonstrations", record / "demos.csv", *RANGE)
    assert call(*first).code == 0
    before = (record / "run" / "certified" / "certificate.json").read_bytes()
    again = ("clone", record / "run", "--demonstrations", record / "more.csv", *RANGE)
    refused = call(*again)
    assert (refused.code, "holds a run that has ended. Say --overwrite" in refused.words) == (
        3,
        True,
    )
    assert (record / "run" / "certified" / "certificate.json").read_bytes() == before
    assert call(*again, "--overwrite").code == 0
    assert call("audit", record / "run").code == 0
    (record / "mine").mkdir()
    (record / "mine" / "thesis.txt").write_text("")
    foreign = call("clone", record / "mine", *first[2:], "--overwrite")
    assert (foreign.code, "'thesis.txt', which belongs to no run" in foreign.words) == (3, True)
