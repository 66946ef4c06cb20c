"""The studio as a process of its own, by requests as its page sends them and as others might."""

import io
import json
import zipfile

import pytest

import journeyman as jm
from studio.studio_process import GRID, StudioProcess


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    process = StudioProcess(tmp_path_factory.mktemp("studio"))
    yield process
    process.close()


def begun(studio):
    return studio.post("sessions", {"world": GRID})["name"]


def test_from_a_drawn_world_to_an_audited_run(studio, tmp_path):
    name = begun(studio)
    for _ in range(2):
        studio.demonstrate(name, [1, 1, 1, 2, 2, 2] * 4)
    state = studio.certified(name)
    gap, regret = state["view"]["gap"], state["view"]["regret"]
    assert gap["bound"] <= gap["possible"]
    assert regret["bound"] < gap["possible"]
    assert len(state["episodes"]) == 2
    with zipfile.ZipFile(io.BytesIO(studio.file(name, "run.zip"))) as packed:
        assert not any(one.startswith(("/", "..")) for one in packed.namelist())
        packed.extractall(tmp_path)
    (certificate,) = tmp_path.rglob("certificate.json")
    assert jm.audit(certificate.parent).passed
    demos = tmp_path / "demos.npz"
    demos.write_bytes(studio.file(name, "demonstrations.npz"))
    assert len(jm.Demonstrations.load(demos)) == 2
    assert b"<html" in studio.file(name, "report.html")


def test_undone_and_taken_again_an_action_leads_to_the_same_state(studio):
    name = begun(studio)
    first = studio.demonstrate(name, [1, 2, 1], keep=False)
    at = {"attempt": first["attempt"], "step": first["steps"]}
    back = studio.post(f"sessions/{name}/undo", at)
    assert back["steps"] == first["steps"] - 1
    again = studio.post(
        f"sessions/{name}/step",
        {"attempt": back["attempt"], "step": back["steps"], "action": 1},
    )
    assert again["state"] == first["state"]


def test_a_key_that_comes_twice_is_one_step(studio):
    name = begun(studio)
    position = studio.get(f"sessions/{name}")["position"]
    step = {"attempt": position["attempt"], "step": 0, "action": 1}
    studio.post(f"sessions/{name}/step", step)
    status, _, _ = studio.request("POST", f"/api/sessions/{name}/step", step)
    assert status == 409
    assert studio.get(f"sessions/{name}")["position"]["steps"] == 1


def test_a_killed_server_loses_no_episode_and_no_step(tmp_path):
    process = StudioProcess(tmp_path)
    name = begun(process)
    process.demonstrate(name, [1, 2] * 10)
    position = process.demonstrate(name, [2, 1, 2], keep=False)
    process.kill()
    again = StudioProcess(tmp_path)
    try:
        state = again.get(f"sessions/{name}")
        assert len(state["episodes"]) == 1
        assert state["position"]["steps"] == position["steps"]
        assert state["position"]["state"] == position["state"]
    finally:
        again.close()


def test_dropped_episodes_are_gone_from_what_is_certified(studio):
    name = begun(studio)
    for _ in range(2):
        studio.demonstrate(name, [2, 1] * 10)
    number = studio.get(f"sessions/{name}")["episodes"][0]["number"]
    studio.post(f"sessions/{name}/drop", {"episode": number})
    state = studio.certified(name)
    assert [one["number"] for one in state["episodes"]] == [number + 1]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"headers": {"host": "evil.example"}}, 421),
        ({"leave_out": ("x-studio-token",)}, 401),
        ({"headers": {"x-studio-token": "wrong"}}, 401),
        ({"headers": {"origin": "http://evil.example"}}, 403),
        ({"leave_out": ("origin",)}, 403),
        ({"headers": {"content-type": "text/plain"}}, 415),
        ({"headers": {"sec-fetch-site": "cross-site"}}, 403),
        ({"raw": b"x" * (1 << 20)}, 413),
        ({"raw": b"{"}, 400),
        ({"raw": b"[1]"}, 400),
    ],
)
def test_what_is_not_the_pages_own_is_refused(studio, changes, status):
    found, headers, content = studio.request("POST", "/api/sessions", {"world": GRID}, **changes)
    assert found == status
    assert "error" in json.loads(content)
    assert "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    ["/../secret", "/%2e%2e/%2e%2e/etc/passwd", "/api/sessions/..%2f..", "/api/sessions/none",
     "/static/../server.py", "/server.py"],
)  # fmt: skip
def test_no_file_outside_is_served(studio, path):
    status, _, content = studio.request("GET", path)
    assert status in (400, 404)
    assert b"root:" not in content


@pytest.mark.parametrize(
    "world",
    [None, [], {}, {"kind": "grid"}, {"kind": "grid", **GRID, "cells": ["1" * 1000] * 1000},
     {**GRID, "discount": 2}, {**GRID, "slip": "much"}, {"kind": "file", "world": "../x.npz"},
     {"kind": "file", "world": "/etc/passwd"}, {"kind": "gymnasium", "environment": "os:system"}],
)  # fmt: skip
def test_worlds_that_cannot_be_are_refused_in_words(studio, world):
    status, _, content = studio.request("POST", "/api/sessions", {"world": world})
    assert status in (400, 413)
    assert len(json.loads(content)["error"]) > 10


def test_of_a_thousand_sessions_most_are_refused_and_the_studio_goes_on(tmp_path):
    process = StudioProcess(tmp_path)
    try:
        found = [process.request("POST", "/api/sessions", {"world": GRID}) for _ in range(1000)]
        statuses = {status for status, _, _ in found}
        assert statuses == {200, 429}
        last = [json.loads(content)["name"] for status, _, content in found if status == 200][-1]
        assert process.demonstrate(last, [1, 2] * 10)["episodes"]
    finally:
        process.close()
