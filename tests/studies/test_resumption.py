"""A study in a directory does what is missing and nothing else, whatever ended it before."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import journeyman as jm
import study_methods
from journeyman.errors import InvalidFile, InvalidInput
from journeyman.runs.run_directory import DirectoryInUse, locked

HERE = Path(__file__).parents[1]
SCRIPT = """
import sys
from pathlib import Path
import journeyman as jm
import study_methods

if __name__ == "__main__":
    slow = study_methods.Noted(Path(sys.argv[2]), pause=float(sys.argv[3]))
    jm.compare(study_methods.drawn, {"slow": slow}, range(6), executor=jm.Processes(2),
               directory=sys.argv[1])
"""


def solved(file):
    """Seeds in the order in which the noted method ran."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def untimed(found):
    return [replace(trial, seconds=0.0) for trial in found.trials]


@pytest.fixture
def study(tmp_path):
    """A study of a method that notes when it runs."""
    file = tmp_path / "notes"

    def run(seeds=range(3), **settings):
        place = {"directory": tmp_path / "study", "expert": study_methods.grid()[2]}
        method = study_methods.Noted(file, **settings.pop("method", {}))
        names = {settings.pop("name", "noted"): method}
        return jm.compare(study_methods.drawn, names, seeds, **(place | settings))

    run.notes, run.place = file, tmp_path / "study"
    return run


def test_a_repeated_study_solves_nothing_again(study):
    first = study()
    assert solved(study.notes) == [0, 1, 2]
    second = study()
    assert solved(study.notes) == [0, 1, 2]
    assert first == second, "numbers come back from the files bit by bit, seconds included"
    study(seeds=(1, 7))
    assert solved(study.notes) == [0, 1, 2, 7]


def test_names_do_not_decide_and_options_do(study):
    renamed = [one.solver for one in (study(), study(name="other"))[1].trials]
    assert renamed == ["other"] * 3
    assert len(solved(study.notes)) == 3
    for change in (
        {"method": {"tolerance": 1e-6}}, {"failure_probability": 0.1}, {"time_limit": 50.0},
        {"expert": None},
    ):  # fmt: skip
        before = len(solved(study.notes))
        study(**change)
        assert len(solved(study.notes)) == before + 3, change


def test_other_demonstrations_are_another_trial(study, monkeypatch):
    study()
    original = study_methods.drawn
    monkeypatch.setattr(study_methods, "drawn", lambda seed: original(seed, trajectories=31))
    study()
    assert len(solved(study.notes)) == 6


def test_a_damaged_file_is_made_again(study):
    whole = study()
    files = sorted((study.place / "trials").iterdir())
    assert len(files) == 3
    files[0].write_text(files[0].read_text()[:40])
    files[1].write_text("[" * 100_000)
    stored = json.loads(files[2].read_text())
    files[2].write_text(json.dumps(stored | {"true_gap": "nothing"}))
    assert untimed(study()) == untimed(whole)
    assert len(solved(study.notes)) == 6


def test_what_was_no_refusal_is_tried_again(tmp_path):
    repaired = tmp_path / "repaired"
    methods = {"broken": study_methods.Broken(repaired), "lp": jm.LinearProgram()}
    problem, place = study_methods.declared(), tmp_path / "study"
    first = jm.compare(problem, methods, directory=place)
    assert [one.status for one in first.trials] == ["RAISED", "OPTIMAL"]
    repaired.touch()
    second = jm.compare(problem, methods, directory=place)
    assert [one.status for one in second.trials] == ["OPTIMAL", "OPTIMAL"]


@pytest.mark.parametrize("too_late", [False, True])
def test_ctrl_c_ends_the_study_and_keeps_what_is_done(tmp_path, too_late):
    methods = {
        "noted": study_methods.Noted(tmp_path / "notes"),
        "stop": study_methods.Interrupting(1, too_late=too_late),
    }
    with pytest.raises(KeyboardInterrupt):
        jm.compare(study_methods.drawn, methods, range(3), directory=tmp_path / "study")
    assert len(list((tmp_path / "study" / "trials").iterdir())) == 4  # three, and seed 0 of stop
    assert solved(tmp_path / "notes") == [0, 1, 2]


def test_a_killed_study_goes_on_where_it_was(tmp_path):
    script, place, notes = (tmp_path / name for name in ("script.py", "study", "notes"))
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(place), str(notes)]
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    child = subprocess.Popen([*command, "0.5"], env=environment)
    try:
        while not list(place.glob("trials/*.json")):
            assert child.poll() is None
            time.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert child.returncode == -signal.SIGKILL
    kept = {path: path.read_bytes() for path in place.glob("trials/*.json")}
    assert 1 <= len(kept) < 6
    slow = study_methods.Noted(notes, pause=0.5)
    found = jm.compare(study_methods.drawn, {"slow": slow}, range(6), directory=place)
    assert {path: path.read_bytes() for path in kept} == kept
    quick = study_methods.Noted(notes)
    assert untimed(found) == untimed(jm.compare(study_methods.drawn, {"slow": quick}, range(6)))


class FarAway:
    """An executor whose workers do not see the directory."""

    def map(self, function, tasks, *, shared=None):
        return [function(task, shared._replace(directory="/nowhere")) for task in tasks]


def test_trials_of_workers_elsewhere_are_kept_at_the_end(study):
    first = study(executor=FarAway())
    assert study() == first
    assert len(solved(study.notes)) == 3


def test_one_process_at_a_time(study):
    study()
    with locked(study.place), pytest.raises(DirectoryInUse):
        study()


def test_a_directory_of_something_else_is_refused(study, tmp_path):
    study.place.mkdir()
    (study.place / "thesis.tex").write_text("precious")
    with pytest.raises(InvalidFile, match=r"thesis\.tex"):
        study()
    with pytest.raises(InvalidFile, match="is a file"):
        study(directory=study.place / "thesis.tex")


def test_what_has_no_lasting_name_is_refused_only_where_one_is_needed(tmp_path):
    bound = tmp_path / "notes"

    class Local:
        time_limit = None

        def run(self, problem, watch):
            bound.touch()
            return jm.LinearProgram().run(problem, watch)

    problem = study_methods.declared()
    assert jm.compare(problem, {"local": Local()}).trials[0].status == "OPTIMAL"
    with pytest.raises(InvalidInput, match="the solver 'local'"):
        jm.compare(problem, {"local": Local()}, directory=tmp_path / "study")


def test_methods_that_differ_in_a_function_only_are_two_trials(tmp_path):
    problem, expert = study_methods.drawn(0, trajectories=1), study_methods.grid()[2]
    never, always = (lambda iteration: 0.0), (lambda iteration: 1.0)
    methods = {
        name: jm.solvers.DAgger(expert, max_iterations=1, trajectories=2, horizon=9, mixing=mixing)
        for name, mixing in (("never", never), ("always", always))
    }
    kept = jm.compare(problem, methods, directory=tmp_path / "study")
    assert len(list((tmp_path / "study" / "trials").iterdir())) == 2
    assert untimed(kept) == untimed(jm.compare(problem, methods))
    assert len({trial.gap_on_data for trial in kept.trials}) == 2
