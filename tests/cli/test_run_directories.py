"""Run directories: locks, states that are kept, runs that are not mixed up."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import journeyman as jm
from journeyman.errors import InvalidFile
from journeyman.progress import Event, quiet
from journeyman.runs.description import RunDescription
from journeyman.runs.interruption import Interrupted, stopping_gently
from journeyman.runs.learning import Checkpoints, step_of
from journeyman.runs.run_directory import DirectoryInUse, Metrics, RunDirectory, evidence_in, locked
from journeyman.storage import save_arrays

MADE_FROM = {"journeyman": "0.1.0", "world": "abc", "costs": "def"}


def write_state(path, step):
    save_arrays(path, "subgradient-state", 2, {}, step=step)


def test_a_lock_is_held_once_and_given_back(tmp_path):
    refused = pytest.raises(DirectoryInUse, match="in use by process")
    with locked(tmp_path), refused, locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path):
    script = (
        "import os, sys, pathlib\nfrom journeyman.runs.run_directory import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n    os.kill(os.getpid(), 9)"
    )
    dead = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert dead.returncode == -9
    assert (tmp_path / ".lock").read_text().strip().isdigit()
    with locked(tmp_path):
        pass


def test_three_states_are_kept_and_the_newest_whole_one_is_taken(tmp_path):
    states = Checkpoints(tmp_path / "solve-1")
    for step in (10, 20, 30, 40):
        write_state(states.latest, step)
        states.keep()
        states.keep()
    assert [step_of(path) for path in states.numbered()] == [40, 30, 20]
    assert states.repair() == 40
    for damaged, expected in ((states.latest, 40), (states.numbered()[0], 30)):
        damaged.unlink()
        damaged.write_bytes(b"PK")
        states.latest.unlink(missing_ok=True)
        assert states.repair() == expected
        assert step_of(states.latest) == expected
    for path in [states.latest, *states.numbered()]:
        path.unlink()
        path.write_bytes(b"")
    assert states.repair() is None
    assert not states.latest.exists()


def test_a_run_goes_on_as_itself_only(tmp_path):
    place = RunDirectory(tmp_path / "run")
    asked = RunDescription(world="w", costs="c", demonstrations="d", seed=4)
    with place.opened(resume=False, overwrite=False):
        place.begin(asked, MADE_FROM)
    with place.opened(resume=True, overwrite=False):
        place.begin(RunDescription(world="moved/w", seed=4), MADE_FROM)
        with pytest.raises(InvalidFile, match="another world"):
            place.begin(asked, MADE_FROM | {"world": "xyz"})
        with pytest.raises(InvalidFile, match=r"another journeyman: the version was 0\.1\.0"):
            place.begin(asked, MADE_FROM | {"journeyman": "0.2.0"})
        with pytest.raises(InvalidFile, match="seed = 4, and 0"):
            place.begin(RunDescription(world="w"), MADE_FROM)


def test_when_to_stop_may_change_and_how_to_go_may_not(tmp_path):
    place = RunDirectory(tmp_path)
    place.begin(RunDescription.of({"solver": {"name": "sgd-al", "cells": 4}}), MADE_FROM)
    longer = {"name": "sgd-al", "cells": 4, "steps": 7, "time_limit": 9.0, "accuracy": 0.1}
    place.begin(RunDescription.of({"solver": longer}), MADE_FROM)
    assert RunDescription.of(place.stored()).solver.steps == 7
    for name, value in (("cells", 5), ("batch", 2), ("name", "auto"), ("tolerance", 0.1)):
        with pytest.raises(InvalidFile, match=rf"solver\.{name}"):
            place.begin(RunDescription.of({"solver": longer | {name: value}}), MADE_FROM)


def test_the_evidence_is_moved_into_place_whole(tmp_path):
    place = RunDirectory(tmp_path)
    place.report.write_text("of the earlier result")

    def save(directory):
        assert not place.certified.exists() or (place.certified / "certificate.json").exists()
        directory.mkdir()
        (directory / "certificate.json").write_text("{}")

    for bound in (1.0, 2.0):
        place.end(save, {"bound": bound})
        assert place.result() == {"bound": bound}
    assert evidence_in(tmp_path) == place.certified
    assert evidence_in(place.certified) == place.certified
    assert sorted(path.name for path in tmp_path.iterdir()) == ["certified", "result.json"]


def test_what_a_killed_save_left_is_no_obstacle(tmp_path):
    place = RunDirectory(tmp_path)
    (tmp_path / ".run.toml.x7").touch()
    (tmp_path / ".certified").mkdir()
    (tmp_path / ".certified" / "unfinished").touch()
    with place.opened(resume=True, overwrite=False):
        place.end(lambda directory: directory.mkdir(), {})
    with place.opened(resume=False, overwrite=True):
        assert not place.has_ended
        assert not place.certified.exists()


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000])
def test_a_result_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InvalidFile, match="--overwrite"):
        RunDirectory(tmp_path).result()


def test_links_in_a_run_directory_are_not_followed(tmp_path):
    outside, run = tmp_path / "mine.txt", tmp_path / "run"
    outside.write_text("mine")
    run.mkdir()
    for name in (".lock", "metrics.jsonl", "certified"):
        (run / name).symlink_to(outside)
        refused = pytest.raises(InvalidFile, match="belongs to no run")
        with refused, RunDirectory(run).opened(resume=True, overwrite=True):
            pass
        (run / name).unlink()
    (run / ".lock").symlink_to(outside)
    with pytest.raises(OSError, match="lock"), locked(run):
        pass
    assert outside.read_text() == "mine"


@pytest.mark.parametrize(
    ("number", "on_interrupt"),
    [
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_IGN),
    ],
)
def test_both_signals_end_what_is_no_solver_at_once(number, on_interrupt):
    earlier = signal.signal(signal.SIGINT, on_interrupt)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(Interrupted) as stop, stopping_gently():
            signal.raise_signal(number)
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert stop.value.signal_number == number
    assert signal.getsignal(signal.SIGTERM) == before


def test_metrics_are_whole_lines_also_after_a_kill(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"iteration": 1}\n{"itera')
    seen = []
    with Metrics(path, seen.append, interval=0.0) as metrics:
        for iteration in (2, 3):
            metrics(Event("t", 0.1, iteration, 2.0))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2, 3]
    assert len(seen) == 2
    with Metrics(path, quiet, interval=60.0) as metrics:
        for iteration in range(5):
            metrics(Event("t", 0.1, iteration))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["iteration"] for row in rows[3:]] == [0, 4]


def test_a_horizon_is_part_of_the_description_and_of_the_run(call, files, tmp_path):
    run = tmp_path / "run"
    sources = [f"--{name}={files / file}" for name, file in (
        ("world", "world.npz"), ("costs", "costs.csv"), ("demonstrations", "demos.csv"),
    )]  # fmt: skip
    shown = call("learn", run, *sources, "--horizon", "8", "--step-discount", "1", "--json")
    assert shown.code == 0
    assert json.loads(shown.out)["trivial_bound"] <= 16.0 + 1e-9
    assert call("audit", run).code == 0
    assert call("report", run).code == 0
    assert "episodes of 8 steps" in (run / "report.html").read_text(encoding="utf-8")
    alone = call("learn", tmp_path / "other", *sources, "--step-discount", "1")
    assert alone.code == 2
    assert "horizon" in alone.words


def test_average_costs_are_learned_certified_and_audited(call, tmp_path):
    rng = np.random.default_rng(0)
    world = jm.World(rng.dirichlet(np.ones(4), size=8), np.full(4, 0.25), 0.9)
    world.save(tmp_path / "world.npz")
    (tmp_path / "costs.csv").write_text("energy,delay\n0,1\n1,0\n0,0\n1,1\n")
    expert = jm.Policy(rng.dirichlet(np.ones(2), size=4))
    demos = jm.record(world, expert, trajectories=3, horizon=4000, seed=0)
    demos.save(tmp_path / "demos.csv")
    sources = [f"--{one}={tmp_path / name}" for one, name in (
        ("world", "world.npz"), ("costs", "costs.csv"), ("demonstrations", "demos.csv"),
    )]  # fmt: skip
    run = tmp_path / "run"
    shown = call("learn", run, *sources, "--average-cost", "--json")
    assert shown.code == 0, shown.err
    averaged = world.with_average_cost()
    basis = jm.CostBasis([[0, 1], [1, 0], [0, 0], [1, 1]])
    assert json.loads(shown.out)["bound"] == pytest.approx(
        jm.learn(averaged, basis, demos).certificate.bound
    )
    assert call("audit", run).code == 0
    assert call("report", run).code == 0
    certified = call("certify", run, *sources, "--average-cost", "--json")
    assert json.loads(certified.out)["bound"] == json.loads(shown.out)["bound"]
    both = call("learn", tmp_path / "other", *sources, "--average-cost", "--horizon", 5)
    assert both.code == 2
    assert "horizon" in both.words
