"""The studio as a process of its own, by requests as its page sends them and as others might."""

import io
import json
import os
import shutil
import signal
import socket
import sys
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

import journeyman as jm
from journeyman.cli.main import app
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
    table = tmp_path / "policy.csv"
    table.write_bytes(studio.file(name, "policy.csv"))
    world = jm.World.load(next(tmp_path.rglob("world.npz")))
    kept = jm.Policy.load(next(tmp_path.rglob("policy.npz")))
    assert np.array_equal(jm.Policy.load(table, world).on(world), kept.on(world))


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


def test_a_killed_worker_is_replaced_and_what_was_asked_is_found(studio):
    name = begun(studio)
    studio.demonstrate(name, [1, 2] * 10)
    for worker in studio.workers():
        os.kill(worker, signal.SIGKILL)
    state = studio.certified(name)
    assert state["current"]
    assert not state["problem"]


def test_what_cannot_be_written_did_not_happen(tmp_path):
    """Files cannot grow beyond a size, as on a full disk: steps are refused, none is lost."""
    process = StudioProcess(tmp_path, largest_file=6_000)
    world = GRID | {"most_steps": 1000, "cells": ["111", "111", "111"]}
    name, error = process.post("sessions", {"world": world})["name"], None
    for step in range(1000):
        at = {"attempt": 1, "step": step, "action": 1}
        status, _, content = process.request("POST", f"/api/sessions/{name}/step", at)
        if status != 200:
            error = json.loads(content)["error"]
            break
    assert status == 507
    assert "attempt.jsonl could not be written" in error
    assert "start the studio in a directory" in error
    assert process.get(f"sessions/{name}")["position"]["steps"] == step
    process.kill()
    again = StudioProcess(tmp_path)
    try:
        assert again.get(f"sessions/{name}")["position"]["steps"] == step
    finally:
        again.close()


def test_two_servers_do_not_write_to_one_session(studio):
    name = begun(studio)
    studio.demonstrate(name, [1, 2], keep=False)
    directory = studio.directory
    other = StudioProcess(directory)
    try:
        status, _, content = other.request("GET", f"/api/sessions/{name}")
        assert status == 400
        assert f"in use by process {studio.process.pid}" in json.loads(content)["error"]
        assert other.post("sessions", {"world": GRID})["name"] != name
    finally:
        other.close()


def test_a_session_opened_again_has_the_certificate_of_its_run(tmp_path):
    process = StudioProcess(tmp_path)
    name = begun(process)
    process.demonstrate(name, [1, 1, 2, 2] * 5)
    before = process.certified(name)["view"]
    process.close()
    again = StudioProcess(tmp_path)
    try:
        after = again.certified(name)["view"]
        assert "as saved" in after["solver"]
        for part in ("gap", "regret", "policy", "visits", "key", "next_start"):
            assert after[part] == before[part], part
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
        ({"headers": {"origin": "null"}}, 403),
        ({"raw": b"x" * (1 << 20)}, 413),
        ({"raw": b"[" * 100_000}, 400),
        (
            {"raw": b"80000\r\n" + b"x" * (1 << 19), "headers": {"transfer-encoding": "chunked"}},
            413,
        ),
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


HOSTILE = {
    "not JSON": "{",
    "another kind": {"kind": "run"},
    "nested": '{"kind": ' + "[" * 100_000,
    "no episodes": {"episodes": None},
    "an episode of another world": {"episodes": [{"states": [9999, 1], "actions": [0]}]},
    "a word for a number": {"seed": "1; rm -rf /"},
    "an attempt nowhere": {"attempt": {"number": 1, "start": -1, "chosen": False}},
    "settings that are none": {"settings": {"premise": "trust me"}},
    "points that are none": {"points": {"a": {"share": 1e999, "bound": 0, "valid": True}}},
    "a method that is none": {"method": {"solver": {"name": "os.system"}}},
    "endless episodes": {"most_steps": 10**12},
}


@pytest.fixture(scope="module")
def kept_session(studio):
    name = begun(studio)
    studio.demonstrate(name, [1, 2] * 10)
    studio.certified(name)
    return studio.directory / name


@pytest.mark.parametrize("words", HOSTILE)
def test_damaged_and_hostile_sessions_are_refused_in_words(studio, kept_session, words):
    change, name = HOSTILE[words], f"hostile-{words.replace(' ', '-')}"
    copy = studio.directory / name
    shutil.copytree(kept_session, copy)
    content = json.loads((copy / "session.json").read_text())
    text = change if isinstance(change, str) else json.dumps(content | change)
    (copy / "session.json").write_text(text)
    status, _, answer = studio.request("GET", f"/api/sessions/{name}")
    assert status == 400
    assert "Open another session" in json.loads(answer)["error"]


def test_nothing_certified_is_read_from_a_session_file(studio, kept_session):
    """Neither a view, nor a board, nor a file elsewhere that the choice of a world names."""
    copy = studio.directory / "forged"
    shutil.copytree(kept_session, copy)
    shutil.rmtree(copy / "certified")
    content = json.loads((copy / "session.json").read_text())
    content["view"] = {"regret": {"share": 0.0, "valid": True}, "key": "forged"}
    content["choice"] = {"kind": "file", "world": "../secret.npz", "costs": "time"}
    (copy / "session.json").write_text(json.dumps(content))
    view = studio.certified("forged")["view"]
    assert view["key"] != "forged"
    assert view["regret"]["bound"] > 0


def test_links_lead_nowhere(studio, kept_session, tmp_path):
    (studio.directory / "linked").symlink_to(kept_session)
    (studio.directory / "outside").symlink_to(tmp_path)
    (tmp_path / "world.npz").write_bytes(b"secret")
    listing = studio.get("library")
    assert not [one for one in listing["sessions"] if one["name"] == "linked"]
    assert studio.request("GET", "/api/sessions/linked")[0] == 400
    world = {"kind": "file", "world": "outside/world.npz", "costs": "time"}
    assert "not a file of the chosen" in studio.post("sessions", {"world": world}, 400)["error"]


def test_world_files_are_read_and_bad_ones_named(studio):
    (studio.directory / "laws.csv").write_text(
        "state,action,next_state,probability\nok,run,ok,0.9\nok,run,worn,0.1\n"
        "worn,run,worn,1\nworn,replace,ok,1\n"
    )
    (studio.directory / "bad.npz").write_bytes(b"PK not a world")
    (studio.directory / "costs.csv").write_text("state,lost\nok,0\nworn,1\n")
    options = {"discount": "0.9", "initial": "ok"}
    world = {"kind": "file", "world": "laws.csv", "costs": "costs.csv", "options": options}
    state = studio.post("sessions", {"world": world})
    assert state["position"]["name"] == "ok"
    assert set(state["actions"]) == {"run", "replace"}
    for option, words in (("discount", "Fill in the discount"), ("initial", "Fill in where")):
        less = {"options": {one: text for one, text in options.items() if one != option}}
        assert words in studio.post("sessions", {"world": world | less}, 400)["error"]
    error = studio.post("sessions", {"world": world | {"world": "bad.npz"}}, 400)["error"]
    assert "bad.npz" in error
    assert str(studio.directory) not in error


def test_the_command_names_what_is_missing(tmp_path, monkeypatch):
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = str(taken.getsockname()[1])
    found = CliRunner().invoke(app, ["studio", str(tmp_path), "--port", port])
    assert found.exit_code == 2
    assert f"port {port} cannot be used" in " ".join(found.output.split())
    taken.close()
    (tmp_path / "file").write_text("")
    found = CliRunner().invoke(app, ["studio", str(tmp_path / "file")])
    assert found.exit_code != 0
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may
    found = CliRunner().invoke(app, ["studio", str(tmp_path)])
    assert "cannot be written to" in " ".join(str(found.output).split())
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "starlette", None)
    found = CliRunner().invoke(app, ["studio", str(tmp_path)])
    assert found.exit_code != 0
    assert "studio" in str(found.output) + str(found.exception)


def test_states_have_an_order_by_which_an_overtaken_one_is_known(studio):
    name = begun(studio)
    first, second = (studio.get(f"sessions/{name}") for _ in range(2))
    assert first["order"] < second["order"] < studio.get(f"sessions/{begun(studio)}")["order"]
