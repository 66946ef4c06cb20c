"""Logs with gaps in their numbers, from the first file to the last command."""

import json

import numpy as np
import pytest

import journeyman as jm


@pytest.fixture
def log(tmp_path):
    """State 0 has actions 1 and 4, state 1 has 2, state 5 is reached and never left."""
    rng = np.random.default_rng(0)
    rows = [(0, 1, 1), (0, 4, 0), (0, 4, 1), (1, 2, 0), (1, 2, 5)]
    picked = [rows[k] for k in rng.integers(len(rows), size=4000)]
    path = tmp_path / "steps.csv"
    lines = ["state,action,next_state", *(",".join(map(str, row)) for row in picked)]
    path.write_text("\n".join(lines) + "\n")
    return path


def stopped_log(folder, limit=6, count=400):
    """Walks between two states, of which one in ten ends in every step; all stops are marked."""
    rng = np.random.default_rng(1)
    lines = ["episode,t,state,action,next_state,terminated"]
    for episode in range(count):
        state = 0
        for t in range(limit):
            over, after = rng.random() < 0.1, int(rng.integers(2))
            after = state if over else after
            marked = int(over or t == limit - 1)
            lines.append(f"{episode},{t},{state},0,{after},{marked}")
            if over:
                break
            state = after
    (folder / "stopped.csv").write_text("\n".join(lines) + "\n")
    return folder / "stopped.csv"


@pytest.mark.filterwarnings("always:.*time limit:UserWarning")
def test_a_time_limit_that_is_marked_as_an_end_is_named_by_its_option(call, tmp_path):
    log, target = stopped_log(tmp_path), tmp_path / "world.npz"
    shown = call("world", "import", log, target, "--discount", 0.9)
    assert shown.code == 0
    assert "--option truncated_at=6" in shown.words
    false_ends = jm.World.load(target).transition[:2, [2]].toarray()
    shown = call("world", "import", log, target, "--discount", 0.9, "--truncated-at", 6)
    assert (shown.code, "time limit" in shown.words) == (0, False)
    ends = jm.World.load(target).transition[:2, [2]].toarray()
    assert ends == pytest.approx(0.1, abs=0.03)
    assert (false_ends > ends + 0.05).all()
    shown = call("world", "import", log, target, "--discount", 0.9, "--truncated-at", 5)
    assert shown.code == 3
    assert "is step 6 of its episode, more than --truncated-at 5" in shown.words


def imported(call, log, *more):
    target = log.parent / "world.npz"
    return target, call("world", "import", log, target, "--discount", 0.9, "--initial", 0, *more)


def test_what_a_log_lacks_is_named_with_options(call, log):
    _, shown = imported(call, log)
    assert shown.code == 3
    assert "state 5 was reached" in shown.words
    assert "states 2, 3, 4 occur nowhere" in shown.words
    assert "--option absorbing=5" in shown.words
    assert "--option drop_unseen=yes" in shown.words
    assert "from_transitions" not in shown.words
    target, shown = imported(call, log, "--absorbing", "unleft", "--drop-unseen")
    assert (shown.code, jm.World.load(target).num_states) == (0, 6)


def test_the_numbers_of_a_log_go_through_every_command(call, log):
    place = log.parent
    world, shown = imported(call, log, "--absorbing", "5", "--drop-unseen")
    assert shown.code == 0
    facts = json.loads(call("world", "show", world, "--json").out)
    assert facts["action_numbers"] == [1, 2, 4]
    costs = [f"{row},{x},{a},{int(x == 1)},{a}" for row, (x, a) in enumerate(np.ndindex(6, 5))]
    (place / "costs.csv").write_text("\n".join(["id,state,action,wait,dose", *costs]) + "\n")
    demos = place / "demos.csv"
    recorded = call("record", world, demos, "--expert", "uniform", "--trajectories", 200)
    assert recorded.code == 0
    run = place / "run"
    learned = call(
        "learn", run, "--world", world, "--costs", place / "costs.csv", "--demonstrations", demos,
        "--budget", "dose <= 40",
    )  # fmt: skip
    assert learned.code in (0, 4), learned.err
    assert "the column 'id' numbers the rows" in learned.words
    assert "rows are for actions that their states do not offer" in learned.words
    assert call("audit", run).code == 0
    assert call("report", run).code == 0
    again = place / "again.csv"
    assert call("record", world, again, "--expert", run, "--trajectories", 50).code == 0
    walks = jm.Demonstrations.load(again)
    own = {0: {1, 4}, 1: {2}}
    assert all(a in own[int(x)] for x, a in zip(walks.step_states, walks.actions, strict=True))
    policy = jm.Policy.load(run / "certified" / "policy.npz")
    assert policy.predict(1)[0] == 2
    assert call("learn", place / "second", "--world", world, "--costs", place / "costs.csv",
                "--demonstrations", again).code in (0, 4)  # fmt: skip
    assert call("world", "check", world).code == 0


def test_steps_behind_shared_laws_are_counted_once(tmp_path, call):
    (tmp_path / "log.csv").write_text("state,action,next_state\n0,0,1\n1,0,1\n1,1,0\n", "utf-8")
    options = ["-o", "discount=0.9", "-o", "initial=0", "-o", "num_states=4"]
    options += ["-o", "increments=0,1", "-o", "resets=1:0"]
    facts = json.loads(call("world", "show", tmp_path / "log.csv", *options, "--json").out)
    assert facts["pairs"] == 8
    assert facts["observed_transitions"] == facts["fewest_observations"] == 3
    assert facts["shared_laws"] == 1


def test_names_go_from_tables_through_options_to_an_audited_run(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "laws.csv").write_text(
        "State,Action,Next State,Probability\nok,run,ok,0.9\nok,run,worn,0.1\nworn,run,broken,1\n"
    )
    (tmp_path / "costs.csv").write_text("State,wear\nok,0\nworn,1\nbroken,1\n")
    (tmp_path / "demos.csv").write_text(
        "Episode,Date,State,Action,Next State,Terminated\n"
        "a,2024-06-01,worn,run,worn,yes\na,2024-05-31,ok,run,worn,no\n"
    )
    named = ("--initial", "ok", "--absorbing", "broken")
    assert call("world", "import", "laws.csv", "w.npz", "--discount", "0.9", *named).code == 0
    given = ("--world", "w.npz", "--costs", "costs.csv", "--demonstrations", "demos.csv")
    shown = call("learn", "run", *given)
    assert shown.code == 3
    words = " ".join(shown.err.split())
    assert "line 2: episode 0, step 1: the step from state 2 ('worn') by action 0 ('run')" in words
    shown = call("learn", "run", *given, "--terminal-state", "brokn")
    assert "--terminal-state is 'brokn'" in shown.err
    assert "'broken'?" in shown.err
    assert call("learn", "run", *given, "--terminal-state", "broken").code == 0
    assert call("audit", "run").code == 0
