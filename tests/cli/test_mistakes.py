"""Typical mistakes: each ends in a paragraph that shows what to do, with its exit code, and without
a traceback."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import journeyman as jm
from journeyman.cli.exit_codes import ending_of
from journeyman.cli.main import app


class Place(NamedTuple):
    """Where a mistake is made: fresh files of its own, and a run that has ended."""

    here: Path
    files: Path
    finished: Path

    def write(self, name, text):
        (self.here / name).write_text(text)
        return self.here / name

    def changed(self, name, change):
        """A copy of one of the files, changed."""
        return self.write(name, change((self.files / name).read_text()))

    def learn(self, *more, **other):
        """The command that would be right, but for what is given."""
        sources = {"world": "world.npz", "costs": "costs.csv", "demonstrations": "demos.csv"}
        named = {
            key: other.get(key, self.files / value)
            for key, value in sources.items()
            if other.get(key, 1) is not None
        }
        options = [word for key, value in named.items() for word in (f"--{key}", value)]
        return ("learn", other.get("run", self.here / "run"), *options, *more)

    def copied_run(self):
        shutil.copytree(self.finished, self.here / "copy")
        return self.here / "copy"


class Mistake(NamedTuple):
    name: str
    command: Callable[[Place], tuple]
    code: int
    words: tuple[str, ...]


def arrays(place, P):
    np.savez(place.here / "arrays.npz", P=P)
    options = ("-o", "discount=0.9", "-o", "initial=0", "-o", "layout=rows")
    return ("world", "import", place.here / "arrays.npz", place.here / "w.npz", *options)


def logged(place, text, *more):
    path = place.write("log.csv", text)
    return ("world", "import", path, place.here / "w.npz", *more)


def config(place, text):
    return place.learn("--config", place.write("asked.toml", text))


def steps(place, *rows, more=()):
    """To learn from steps that are written here."""
    head = "episode,t,state,action,next_state,terminated"
    return place.learn(*more, demonstrations=place.write("steps.csv", "\n".join([head, *rows, ""])))


def unfinished_run(place):
    run = place.copied_run()
    (run / "result.json").unlink()
    shutil.rmtree(run / "certified")
    return run


def tampered_run(place):
    run = place.copied_run()
    path = run / "certified" / "certificate.json"
    path.write_text(path.read_text().replace('"valid": true', '"valid": false'))
    return run


def other_world(place):
    world, _, _ = jm.gallery.grid(4, macro_cells=2, slip=0.2)
    world.save(place.here / "other.npz")
    return place.here / "other.npz"


def larger_world(place):
    world, _, _ = jm.gallery.grid(6, macro_cells=2)
    world.save(place.here / "larger.npz")
    return place.here / "larger.npz"


def infinite_table(place):
    np.savez(place.here / "c.npz", costs=np.full((16, 2), np.inf))
    return place.here / "c.npz"


def larger_policy(place):
    world, _, _ = jm.gallery.grid(5)
    jm.Policy.uniform(world).save(place.here / "policy.npz")
    return place.here / "policy.npz"


def text_in_second_row(text):
    lines = text.splitlines()
    lines[2] = "much," + lines[2].partition(",")[2]
    return "\n".join(lines)


def elsewhere(text):
    """An expert who jumps from the first state to the last."""
    lines = text.splitlines()
    head, rows = lines[0], ["0,0,0,0,", "0,1,15,,0"]
    return "\n".join([head, *rows])


MISTAKES = [
    Mistake("unknown command", lambda p: ("lern", p.here), 2, ("No such command",)),
    Mistake("unknown option", lambda p: ("learn", p.here, "--wrld", "x"), 2, ("No such option",)),
    Mistake("no run directory", lambda p: ("learn",), 2, ("Missing argument",)),
    Mistake("text for a number", lambda p: p.learn("--seed", "one"), 2, ("--seed",)),
    Mistake("contradiction", lambda p: p.learn("--resume", "--overwrite"), 2, ("contradicts",)),
    Mistake("option without a value", lambda p: p.learn("-o", "size"), 2, ("key=value",)),
    Mistake("import to a foreign suffix",
            lambda p: ("world", "import", "gallery:grid", p.here / "w.mat"), 2, (".npz",)),
    Mistake("no world", lambda p: p.learn(world=None), 2, ("no world given", "--world")),
    Mistake("no costs", lambda p: p.learn(costs=None), 2, ("no costs given", "--costs")),
    Mistake("no demonstrations", lambda p: p.learn(demonstrations=None), 2, ("--demonstrations",)),
    Mistake("a world that is not there", lambda p: p.learn(world=p.here / "w.npz"), 3,
            ("does not exist",)),
    Mistake("a world that is text",
            lambda p: p.learn(world=p.write("w.npz", "state,action")), 3, ("w.npz",)),
    Mistake("demonstrations as a world",
            lambda p: p.learn(world=p.files / "demos.csv", run=p.here / "r"), 3, ("next_state",)),
    Mistake("an unknown kind of world", lambda p: p.learn(world="world.xlsx"), 3,
            ("not a source of worlds", ".npz")),
    Mistake("a gallery without it", lambda p: p.learn(world="gallery:grit"), 3, ("gallery:grid",)),
    Mistake("wrong column", lambda p: logged(p, "s,a,next\n0,0,1\n", "--discount", 0.9), 3,
            ("state",)),
    Mistake("no discount", lambda p: logged(p, "state,action,next_state\n0,0,0\n"), 3,
            ("discount=0.95", "--discount 0.95", "--option discount=0.95")),
    Mistake("discount 1",
            lambda p: ("world", "import", p.files / "transitions.csv", p.here / "w.npz",
                       "--discount", 1.0), 3, ("discount",)),
    Mistake("laws that do not sum to one", lambda p: arrays(p, [[0.5, 0.4], [0.0, 1.0]]), 3,
            ("sum",)),
    Mistake("a law that is not a number", lambda p: arrays(p, [[0.5, np.nan], [0.0, 1.0]]), 3,
            ("nan",)),
    Mistake("costs for another world",
            lambda p: p.learn(costs=p.write("c.csv", "a,b\n1,0\n0,1\n")), 3,
            ("c.csv has 2 rows", "line 3", "16 states and 64")),
    Mistake("text among the costs",
            lambda p: p.learn(costs=p.changed("costs.csv", text_in_second_row)), 3, ("much",)),
    Mistake("a cost that is not finite",
            lambda p: p.learn(costs=p.changed(
                "costs.csv", lambda t: t.replace("\n0,", "\nnan,", 1))), 3,
            ("costs.csv, line ", "is nan", "finite")),
    Mistake("a table of costs that is not finite",
            lambda p: p.learn(costs=infinite_table(p)), 3, ("c.npz", "finite")),
    Mistake("costs separated by semicolons",
            lambda p: p.learn(costs=p.changed("costs.csv", lambda t: t.replace(",", ";"))), 3,
            ("costs.csv", "Separate columns by commas")),
    Mistake("steps separated by semicolons",
            lambda p: logged(p, "state;action;next_state\n0;0;1\n", "--discount", 0.9), 3,
            ("log.csv", "Separate columns by commas")),
    Mistake("demonstrations separated by tabs",
            lambda p: p.learn(demonstrations=p.changed(
                "demos.csv", lambda t: t.replace(",", "\t"))), 3, ("Separate columns by commas",)),
    Mistake("steps of nobody", lambda p: logged(p, ""), 3, ("it has none",)),
    Mistake("a step from below zero",
            lambda p: logged(p, "state,action,next_state\n0,0,0\n\n-1,0,0\n"), 3,
            ("log.csv, line 4: state is -1",)),
    Mistake("a step to nowhere",
            lambda p: logged(p, "state,action,next_state\n0,0,0\n0,0,900000000000\n"), 3,
            ("log.csv, line 3: next_state is 900000000000, too large",)),
    Mistake("nobody knows where to start",
            lambda p: logged(p, "state,action,next_state\n0,0,0\n", "--discount", 0.9), 3,
            ("--initial 0", "--option initial=uniform", "episode,t")),
    Mistake("reward instead of cost",
            lambda p: p.learn(costs=p.changed("costs.csv", lambda t: t.replace("cell", "reward"))),
            3, ("lower", "--rewards")),
    Mistake("unknown costs", lambda p: p.learn(costs="the-right-ones"), 3, ("source of costs",)),
    Mistake("a module that is not there", lambda p: p.learn(costs="my_costs:of"), 3, ("my_costs",)),
    Mistake("demonstrations with a wrong column",
            lambda p: p.learn(demonstrations=p.changed(
                "demos.csv", lambda t: t.replace("action", "move", 1))), 3, ("action",)),
    Mistake("impossible transition",
            lambda p: p.learn(demonstrations=p.changed("demos.csv", elsewhere)), 3,
            ("episode 0", "state 15")),
    Mistake("a state that is not there",
            lambda p: p.learn(demonstrations=p.changed(
                "demos.csv", lambda t: t.replace("\n0,0,", "\n0,0,99", 1))), 3,
            ("demos.csv, line 2", "99", "too large", "states 0..15")),
    Mistake("a state below zero",
            lambda p: p.learn(demonstrations=p.changed(
                "demos.csv", lambda t: t.replace("\n0,0,", "\n0,0,-", 1))), 3,
            ("demos.csv, line 2: state is -",)),
    Mistake("a state of another planet",
            lambda p: p.learn(demonstrations=p.changed(
                "demos.csv", lambda t: t.replace("\n0,1,", "\n0,1,900000000000", 1))), 3,
            ("demos.csv, line 3", "too large")),
    Mistake("demonstrations as JSON",
            lambda p: p.learn(demonstrations=p.write("demos.json", "{}")), 3,
            ("ends in .npz, .csv, .parquet", "--demonstrations-format")),
    Mistake("a demonstrated step that is missing",
            lambda p: steps(p, "0,0,0,0,0,", "0,3,0,0,0,"), 3,
            ("steps.csv, line 3: t is 3, expected 1: steps 1 to 2 are missing",)),
    Mistake("a demonstrated step that is there twice",
            lambda p: steps(p, "0,0,0,0,0,", "0,1,0,0,0,", "0,1,0,0,0,"), 3,
            ("steps.csv, line 4: t is 1, expected 2: it is there twice",)),
    Mistake("demonstrations out of order",
            lambda p: steps(p, "a,0,0,0,0,", "b,0,0,0,0,", "a,1,0,0,0,"), 3,
            ("steps.csv, line 4: episode a goes on", "Sort the rows")),
    Mistake("demonstrations of nobody", lambda p: steps(p, ",0,0,0,0,"), 3,
            ("steps.csv, line 2: episode is empty",)),
    Mistake("a comma too many", lambda p: steps(p, "0,0,0,0,0,,,7"), 3,
            ("steps.csv, line 2: the row has 8 cells",)),
    Mistake("half a state", lambda p: steps(p, "0,0,0.5,0,0,"), 3,
            ("steps.csv, line 2: state is '0.5', expected a whole number",)),
    Mistake("a state that is not a number", lambda p: steps(p, "0,0,nan,0,0,"), 3,
            ("steps.csv, line 2: state is 'nan'",)),
    Mistake("perhaps terminated", lambda p: steps(p, "0,0,0,0,0,perhaps"), 3,
            ("steps.csv, line 2: terminated is 'perhaps', expected 1 or 0",)),
    Mistake("an action that the world lacks", lambda p: steps(p, "0,0,0,9,0,"), 3,
            ("steps.csv, line 2: episode 0, step 0: state 0, action 9",)),
    Mistake("terminated by a time limit",
            lambda p: steps(p, "0,0,0,0,0,", "0,1,0,0,0,1"), 3,
            ("steps.csv, line 3: episode 0 is marked terminated", "give --truncated-at 2",
             "--terminal-state")),
    Mistake("beyond the time limit",
            lambda p: steps(p, "0,0,0,0,0,", "0,1,0,0,0,", more=("--truncated-at", 1)), 3,
            ("steps.csv, line 3: episode 0 has 2 steps, more than --truncated-at 1",)),
    Mistake("no time limit at all",
            lambda p: steps(p, "0,0,0,0,0,", more=("--truncated-at", 0)), 2, ("--truncated-at",)),
    Mistake("a terminal state that is left",
            lambda p: steps(p, "0,0,0,0,0,1", more=("--terminal-state", 3)), 3,
            ("--terminal-state 3 is not an absorbing state",)),
    Mistake("no time limit in a description",
            lambda p: config(p, "truncated_at = -1\n"), 2, ("asked.toml: truncated_at = -1",)),
    Mistake("a premise with a slip of the pen in a description",
            lambda p: config(p, 'expert_is = "rationl:0.1"\n'), 2,
            ("asked.toml: expert_is = 'rationl' (--expert-is). Did you mean 'rational'?",)),
    Mistake("a probability above 1 in a description",
            lambda p: config(p, "failure_probability = 5\n"), 2,
            ("asked.toml: failure_probability = 5.0 (--failure-probability)",)),
    Mistake("a column by another name",
            lambda p: p.learn(demonstrations=p.changed(
                "demos.csv", lambda t: t.replace("state", "place", 1))), 3,
            ("demos.csv lacks the column(s) state",)),
    Mistake("a spreadsheet with another name",
            lambda p: p.learn(demonstrations=p.write("d.csv", "PK\3\4\0\0[Content_Types]\n")), 3,
            ("d.csv is not text", "Export it as CSV")),
    Mistake("a world as demonstrations",
            lambda p: p.learn(demonstrations=p.files / "world.npz"), 3,
            ("world.npz holds a 'world'",)),
    Mistake("a directory that is no data set", lambda p: p.learn(demonstrations=p.here), 3,
            ("metadata.json", "state.json")),
    Mistake("a format that nobody knows",
            lambda p: p.learn("--demonstrations-format", "excel"), 3,
            ("the format 'excel' is not known", "csv")),
    Mistake("costs that are all zero",
            lambda p: p.learn(costs=p.write("c.csv", "a\n" + "0\n" * 16)), 3,
            ("c.csv: every cost is 0",)),
    Mistake("a method with a slip of the pen", lambda p: p.learn("--solver", "liner-program"), 2,
            ("--solver", "Did you mean 'linear-program'?")),
    Mistake("budgets for a method without", lambda p: p.learn(
                "--solver", "projection", "--budget", "cell 0-0 <= 5"), 3,
            ("projection cannot keep budgets", "Use --solver linear-program")),
    Mistake("a budget that nobody keeps", lambda p: p.learn("--budget", "cell 0-0 <= -100"), 4,
            ("INFEASIBLE", "raise the limit of a --budget", "would have to give way by")),
    Mistake("no time", lambda p: p.learn("--time-limit", 0), 2, ("--time-limit", "above 0")),
    Mistake("states of a method that keeps none", lambda p: p.learn("--checkpoint-every", 5), 3,
            ("--checkpoint-every 5", "sgd-al")),
    Mistake("a policy of another world to be certified",
            lambda p: ("certify", larger_policy(p), *p.learn()[2:]), 3,
            ("policy.npz holds a policy for 25 states", "16 and 64")),
    Mistake("a gap that is no number",
            lambda p: ("certify", p.finished, *p.learn()[2:], "--gap", "nan"), 2, ("--gap",)),
    Mistake("an expert of another world", lambda p: (
                "record", p.files / "world.npz", p.here / "x.csv", "--expert", larger_policy(p)), 3,
            ("policy.npz holds a policy for 25 states",)),
    Mistake("records of an unknown format", lambda p: (
                "record", "gallery:grid", p.here / "x.txt", "--trajectories", 1), 3,
            ("x.txt has no suffix of a known format", "--format")),
    Mistake("an accuracy of nothing", lambda p: (
                "requirements", *p.learn()[2:6], "--accuracy", 0), 3, ("--accuracy 0", "above 0")),
    Mistake("a class of costs for requirements", lambda p: (
                "requirements", *p.learn()[2:6], "--accuracy", 1, "--cost-class", "ball"), 2,
            ("--cost-class", "infinity-ball")),
    Mistake("demonstrations of another world in a study", lambda p: (
                "compare", *steps(p, "0,0,0,9,0,")[2:], "--solvers", "linear-program"), 3,
            ("steps.csv, line 2: episode 0, step 0",)),
    Mistake("empty demonstrations",
            lambda p: p.learn(demonstrations=p.write("demos.csv", "")), 3, ("demos.csv",)),
    Mistake("demonstrations of an unknown format",
            lambda p: p.learn(demonstrations=p.write("demos.txt", "0 0 1")), 3, ("known",)),
    Mistake("a probability above 1", lambda p: p.learn("--failure-probability", 1.5), 2,
            ("between 0 and 1",)),
    Mistake("an unknown class", lambda p: p.learn("--cost-class", "sphere"), 2, ("simplex",)),
    Mistake("an unknown solver", lambda p: p.learn("--solver", "magic"), 2, ("sgd-al",)),
    Mistake("a negative time limit", lambda p: p.learn("--time-limit", -1), 2, ("above 0",)),
    Mistake("a budget without a limit", lambda p: p.learn("--budget", "wear"), 2, ("<=",)),
    Mistake("a budget on nothing", lambda p: p.learn("--budget", "wear <= 1"), 3,
            ("'wear'", "cell 0-0")),
    Mistake("a budget nobody can keep", lambda p: p.learn("--budget", "cell 0-0 <= 0.001"), 4,
            ("INFEASIBLE", "give way")),
    Mistake("a level that is out of reach", lambda p: p.learn("--gap", 1e-6), 4,
            ("was asked for. The bound", "About", "halve it")),
    Mistake("a config that is not there", lambda p: p.learn("--config", p.here / "no.toml"), 3,
            ("does not exist",)),
    Mistake("a config that is not TOML", lambda p: config(p, "world: w.npz\n"), 3, ("not TOML",)),
    Mistake("a misspelt setting", lambda p: config(p, "cost_clas = 'simplex'\n"), 2,
            ("Did you mean 'cost_class'?",)),
    Mistake("a setting of the wrong kind", lambda p: config(p, "seed = 'zero'\n"), 2,
            ("whole number",)),
    Mistake("a setting without a value", lambda p: p.learn("--set", "seed"), 2, ("key=value",)),
    Mistake("a setting in the wrong place", lambda p: p.learn("--set", "solver=sgd-al"), 2,
            ("solver",)),
    Mistake("code in a config", lambda p: p.learn(
                "--config", p.write("a.toml", 'costs = "os:getcwd"\n'), costs=None), 3,
            ("run code", "command line")),
    Mistake("a directory with other files",
            lambda p: p.learn(run=p.write("notes.txt", "mine").parent), 3, ("notes.txt", "empty")),
    Mistake("a file as a directory", lambda p: p.learn(run=p.write("run", "")), 3, ("is a file",)),
    Mistake("a place that cannot be", lambda p: p.learn(run=Path("/dev/null/run")), 3,
            ("Check the path",)),
    Mistake("a run that is there already", lambda p: p.learn(run=p.copied_run()), 3,
            ("--resume", "--overwrite")),
    Mistake("resume with another seed",
            lambda p: ("learn", p.copied_run(), "--resume", "--seed", 8), 3,
            ("seed = 0", "new directory")),
    Mistake("resume with another world",
            lambda p: ("learn", p.copied_run(), "--resume", "--world", other_world(p)), 3,
            ("another world",)),
    Mistake("resume with a larger world",
            lambda p: ("learn", p.copied_run(), "--resume", "--world", larger_world(p)), 3,
            ("begun with another world",)),
    Mistake("resume of nothing", lambda p: ("learn", p.here / "run", "--resume"), 3,
            ("no run was begun",)),
    Mistake("audit of nothing", lambda p: ("audit", p.here), 3, ("holds no certificate",)),
    Mistake("audit of a forged run", lambda p: ("audit", tampered_run(p)), 4, ()),
    Mistake("report on an unfinished run", lambda p: ("report", unfinished_run(p)), 3,
            ("--resume",)),
    Mistake("a policy of another world",
            lambda p: ("certify", larger_policy(p), *p.learn()[2:]), 3, ("states",)),
    Mistake("an expert that is not there",
            lambda p: ("record", p.files / "world.npz", p.here / "d.csv"), 3, ("--expert",)),
    Mistake("an accuracy of nothing",
            lambda p: ("requirements", *p.learn()[2:6], "--accuracy", 0.0), 3, ("accuracy",)),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=[one.name for one in MISTAKES])
def test_a_mistake_ends_in_words_that_help(mistake, call, files, finished, tmp_path):
    shown = call(*mistake.command(Place(tmp_path, files, finished)))
    printed = shown.err + (shown.out if mistake.name == "audit of a forged run" else "")
    assert shown.code == mistake.code, printed
    words = " ".join(printed.split())
    assert words
    assert "Traceback" not in printed
    assert "internal error" not in printed
    assert words.startswith(("Error: ", "Usage: ", "The audit failed"))
    assert "?." not in words
    for expected in mistake.words:
        assert expected in words


def test_a_missing_package_is_named_with_the_command_that_installs_it(call, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    shown = call("world", "import", "gym:FrozenLake-v1", tmp_path / "w.npz", "--discount", 0.9)
    assert shown.code == 5
    assert "pip install 'journeyman[gymnasium]'" in shown.words


def test_questions_of_gymnasium_end_as_they_do(call, tmp_path):
    pytest.importorskip("gymnasium")
    shown = call("world", "import", "gym:FrozenLak-v1", tmp_path / "w.npz", "--discount", 0.9)
    assert (shown.code, "`FrozenLake`? Give" in shown.words) == (3, True)


def test_what_nobody_thought_of_is_said_shortly(call, monkeypatch, files):
    def broken(*_, **__):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("journeyman.adapters.world_sources.read_world", broken)
    shown = call("world", "show", files / "world.npz")
    assert shown.code == 1
    assert "ZeroDivisionError: on purpose" in shown.words
    assert "--traceback" in shown.words
    with pytest.raises(ZeroDivisionError):
        CliRunner().invoke(app, ["--traceback", "world", "show", "x"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("fault", "code", "word"),
    [
        (MemoryError("Unable to allocate 7 GiB"), 5, "7 GiB"),
        (OSError(28, "No space left on device", "run/x"), 5, "run/x"),
        (PermissionError(13, "Permission denied", "run"), 5, "Not permitted"),
        (OSError(30, "Read-only file system", "run"), 5, "Not permitted"),
        (OSError(24, "Too many open files"), 5, "refuses"),
        (FileNotFoundError(2, "No such file or directory", "run"), 3, "Check the path"),
        (jm.errors.TaskFailed("lost"), 5, "lost"),
        (jm.errors.AuditFailed("no"), 4, "no"),
    ],
)
def test_faults_of_the_machine_have_words_too(fault, code, word):
    ending = ending_of(fault)
    assert ending.code == code
    assert word in ending.message


def test_a_run_without_a_solution_leaves_the_directory_for_the_corrected_command(
    call, inputs, tmp_path
):
    run = tmp_path / "run"
    assert call("learn", run, *inputs, "--budget", "cell 0-0 <= -100").code == 4
    assert call("learn", run, *inputs, "--budget", "cell 0-0 <= 100").code == 0


def test_files_of_spreadsheets_and_of_other_systems_are_read(call, inputs, files, tmp_path):
    plain = call("learn", tmp_path / "plain", *inputs, "--json").out
    text = (files / "demos.csv").read_text()
    head = '"episode", "t" ,"state","action","terminated" '
    text = text.replace("episode,t,state,action,terminated", head).replace("\n", " \r\n")
    (tmp_path / "demos.csv").write_bytes(text.encode("utf-8-sig"))
    other = [*inputs[:-1], tmp_path / "demos.csv"]
    shown = call("learn", tmp_path / "run", *other, "--json")
    assert (shown.code, shown.out.replace("/run", "/plain")) == (0, plain), shown.err


def test_a_time_limit_is_named_on_the_command_line_and_in_toml(call, inputs, tmp_path):
    (tmp_path / "steps.csv").write_text(
        "episode,t,state,action,next_state,terminated\n0,0,0,0,0,\n0,1,0,0,0,1\n"
    )
    other = [*inputs[:-1], tmp_path / "steps.csv"]
    assert call("learn", tmp_path / "refused", *other).code == 3
    assert call("learn", tmp_path / "option", *other, "--truncated-at", 2).code == 0
    (tmp_path / "asked.toml").write_text("truncated_at = 2\n")
    config = ("--config", tmp_path / "asked.toml")
    assert call("learn", tmp_path / "toml", *other, *config).code == 0
    assert call("learn", tmp_path / "toml", "--resume").code == 0
    for run in ("option", "toml"):
        kept = jm.Demonstrations.load(tmp_path / run / "certified" / "demonstrations.npz")
        assert not kept.terminated.any()
    certified = ("certify", tmp_path / "toml", *other, "--truncated-at", 2)
    assert call(*certified).code == 0
    assert call(*certified[:-2]).code == 3
    study = ("compare", *other, "--solvers", "linear-program", "--truncated-at", 2)
    assert call(*study).code == 0
