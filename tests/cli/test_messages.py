"""Messages are in the language of the command line: options and files, and no Python."""

import re

import numpy as np
import pytest
from typer.main import get_command

from journeyman.cli.help_pages import VALUES
from journeyman.cli.main import app

LAWS = """state,action,next_state,probability
ok,run,ok,0.9
ok,run,worn,0.1
worn,run,worn,0.7
worn,run,broken,0.3
worn,replace,ok,1
broken,replace,ok,1
"""
COSTS = """state,action,lost output,work
ok,run,0,0
worn,run,0.2,0
worn,replace,1,0.5
broken,replace,1,1
"""
STEPS = "episode,t,state,action,next_state\n1,0,ok,run,worn\n1,1,worn,replace,ok\n"
PYTHON = re.compile(
    r"\bjm\.|\bNone\b|\bTrue\b|Traceback|internal error|Errno"
    r"|\b[A-Za-z_]+\(\)|\(\.\.\.|=\.\.\.\)|\w\(\w+="  # calls
    r"|(?<!--option )(?<!--set )(?<!-o )\b[a-z_]+=(?!value)"  # arguments by name
    r"|\b[A-Z][a-z]+[A-Z][a-z]\w+"  # classes
)
"""What a message of the command line may not hold."""
FILES = {
    "laws.csv": LAWS,
    "costs.csv": COSTS,
    "demos.csv": STEPS,
    "wron.csv": STEPS.replace("1,1,worn", "1,1,wron"),
    "swap.csv": STEPS.replace("replace", "swap"),
    "brkn.csv": COSTS.replace("broken", "brkn"),
    "few.csv": COSTS.replace("worn,run,0.2,0\n", ""),
    "twice.csv": COSTS + "broken,replace,1,1\n",
    "sum.csv": LAWS.replace("0.3", "0.2"),
    "end.csv": LAWS.replace("broken,replace,ok,1\n", ""),
    "start.csv": "episode,t,state,action,next_state\n0,1,0,0,0\n",
    "gaps.csv": "episode,t,state,action,next_state\n0,0,0,0,1\n0,3,1,0,0\n",
    "left.csv": "state,action,next_state\n0,0,1\n",
    "seen.csv": "state,action,next_state\n0,0,0\n5,0,0\n",
    "big.csv": "state,action,next_state\n0,0,0\n5000000,0,0\n",
    "nameless.json": "{}",
    "radius.json": '{"name": "prior-ball", "prior": [1, 1], "radius": -0.1}',
    "prior.json": '{"name": "prior-ball", "prior": [1]}',
    "text.json": "nope",
    "policy.csv": "state,action,probability\nok,run,1\n",
    "steps.toml": "[solver]\nsteps = 'many'\n",
    "budget.toml": "[[budgets]]\ncost = 'work'\n",
}
LEARN = "learn run --world laws.csv --costs costs.csv --demonstrations demos.csv"
WITH = f"{LEARN} -o discount=0.9 -o initial=ok"
SHOW = "-o discount=0.9 -o initial=0"
TO = "w.npz --discount 0.9"
CLONE = "clone run --demonstrations"
REFUSED = [
    f"{LEARN}", f"{LEARN} -o discount=0.9", f"{LEARN} -o initial=ok -o discount=much",
    f"{WITH} -o size=3", f"{WITH} -o discount", f"{WITH} --demonstrations wron.csv",
    f"{WITH} --demonstrations swap.csv", f"{WITH} --costs brkn.csv", f"{WITH} --costs few.csv",
    f"{WITH} --costs twice.csv", f"{WITH} --costs demos.csv", f"{WITH} --costs coordinates",
    f"{WITH} --costs macro-cells:4", f"{WITH} --costs json:nope", f"{WITH} --costs nothing",
    f"{WITH} --demonstrations laws.csv", f"{WITH} --world demos.csv", f"{WITH} --world gone.csv",
    f"{WITH} --horizon 5 --average-cost", f"{WITH} --step-discount 0.5", f"{WITH} --horizon x",
    f"{WITH} --horizon 5 --step-discount 2", f"{WITH} --horizon 100000000",
    f"{WITH} --average-cost --solver projection", f"{WITH} --average-cost --solver max-margin",
    f"{WITH} --average-cost --expert-is nearly-optimal:0.1", f"{WITH} --expert-is rational",
    f"{WITH} --expert-is rational:much", f"{WITH} --expert-is rational:-1",
    f"{WITH} --expert-is rationl:1", f"{WITH} --expert-is soft-rational:1,deterministic",
    f"{WITH} --expert-is soft-rational:1,nearly-optimal:1", f"{WITH} --expert-is soft-rational:0",
    f"{WITH} --expert-is rational:1,rational:2",
    f"{WITH} --regret 1", f"{WITH} --gap 0.001", f"{WITH} --failure-probability 2",
    f"{WITH} --budget work<3", f"{WITH} --budget wrk<=3", f"{WITH} --budget work<=-3",
    f"{WITH} --cost-class simplx", f"{WITH} --cost-class nameless.json",
    f"{WITH} --cost-class radius.json", f"{WITH} --cost-class prior.json",
    f"{WITH} --cost-class text.json", f"{WITH} --cost-class gone.json",
    f"{WITH} --solver maximum-entropy --budget work<=9", f"{WITH} --solver gail",
    f"{WITH} --solver maximum-likelihood --budget work<=9", f"{WITH} --checkpoint-every 5",
    f"{WITH} --set solver.stps=3", f"{WITH} --set solver.steps=many", f"{WITH} --set seed",
    f"{WITH} --time-limit 0", f"{WITH} --terminal-state 5", f"{WITH} --terminal-state 99",
    f"{WITH} --config steps.toml", f"{WITH} --config budget.toml", f"{WITH} --config gone.toml",
    f"{WITH} --truncated-at 1", f"{WITH} --resume --overwrite", f"{WITH} --seed -1",
    f"world import laws.csv {TO}", "world import laws.csv w.npz --initial ok",
    f"world import laws.csv {TO} --initial okay", "world import laws.csv w.txt",
    f"world import laws.csv {TO} --initial ok --absorbing gone",
    "world import laws.csv w.npz --discount 1 --initial ok",
    "world import laws.csv w.npz --discount 2 --initial ok",
    f"world import laws.csv {TO} --initial ok --drop-unseen",
    f"world import sum.csv {TO} --initial ok", f"world import end.csv {TO} --initial ok",
    f"world import start.csv {TO}", f"world import gaps.csv {TO}",
    f"world import left.csv {TO} --initial 0", f"world import seen.csv {TO} --initial 0",
    f"world import big.csv {TO} --initial 0", f"world show cube.npz {SHOW}",
    f"world show cube.npz {SHOW} -o layout=xyz", f"world show rows.npz {SHOW}",
    f"world show odd.npz {SHOW} -o layout=action-rows", f"world show none.npz {SHOW}",
    f"world show rows.npz {SHOW} -o layout=rows -o memory_gb=x", "world show gallery:grid -o sze=4",
    "world show gallery:grid -o size=four", "world show gallery:grid -o size=-4",
    "world show gallery:queues",
    "certify policy.csv --world laws.csv", "certify gone.npz" + WITH.removeprefix("learn run"),
    f"{CLONE} demos.csv --discount 0.9 --cost-range 1 0",
    f"{CLONE} demos.csv --discount 1.9 --cost-range 0 1",
    f"{CLONE} start.csv --discount 0.9 --cost-range 0 1", f"{CLONE} demos.csv --discount 0.9",
    f"{CLONE} left.csv --discount 0.9 --cost-range 0 1", "compare", "compare --example grit",
    "compare --example grid:x", "compare --example grid:4 --world laws.csv",
    "compare --example grid:4 --solvers nope", "compare --example grid:4 --seeds 0",
    "requirements --world laws.csv --costs costs.csv --accuracy 1",
    "requirements --world gallery:grid --costs gallery:grid --accuracy -1",
    "requirements --world gallery:grid --costs gallery:grid --accuracy x",
    "record gallery:grid x.xlsx", "record gallery:grid x --format excel", "report gone",
    "record gallery:grid x.csv --expert gone.npz", "audit gone", "audit laws.csv", "demo --size 1",
    "demo --case gird", "demo --case icu-sepsis --size 4", "studio laws.csv", "studio --port 99999",
    "transfer gone --world laws.csv --costs costs.csv", "new laws.csv", "new .", "policy show gone",
    "policy show laws.csv", "policy export gone x.csv", "policy show", "policy shw",
    f"certify policy.csv{WITH.removeprefix('learn run')}",
    f"certify laws.csv{WITH.removeprefix('learn run')}",
]  # fmt: skip


def test_no_refusal_is_in_the_language_of_python(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for name, shape in {"cube": (2, 2, 2), "rows": (4, 2), "odd": (3, 2)}.items():
        np.savez(tmp_path / f"{name}.npz", P=np.full(shape, 0.5))
    np.savez(tmp_path / "none.npz", Q=np.ones(3))
    wrong = {}
    for command in REFUSED:
        shown = call(*(word.replace("<=", " <= ") for word in command.split()))
        found = PYTHON.search(shown.words)
        if shown.code not in (2, 3, 4, 5) or "Error: " not in shown.words or found:
            wrong[command] = (shown.code, found and found[0], shown.words)
    assert not wrong


@pytest.mark.parametrize(
    "words",
    [
        "Give jm.Policy(p).", "expected None", "Use LinearProgram().", "Give evaluation=x.",
        "grid(size=4) is", "Give World(...)", "the class InfinityBall", "[Errno 2]",
    ],
)  # fmt: skip
def test_python_would_be_found(words):
    assert PYTHON.search(words)


def commands():
    group = get_command(app)
    for name, one in group.commands.items():
        yield from getattr(one, "commands", {name: one}).values()


def test_every_value_has_a_short_word_in_the_help():
    for command in commands():
        for one in command.params:
            if not getattr(one, "is_flag", False):
                assert one.metavar, (command.name, one.name)
                assert len(one.metavar) < 13
    used = {one.name for command in commands() for one in command.params}
    assert set(VALUES) <= used


def test_help_has_what_is_required_first_and_no_types_of_python(call):
    shown = call("certify", "--help").out
    assert "certify POLICY --world SOURCE --costs SOURCE" in shown
    assert (
        shown.index("Required options:")
        < shown.index("--costs SOURCE  ")
        < (shown.index("\nOptions:"))
    )
    for command in ("learn", "clone", "compare", "certify", "record", "demo"):
        shown = call(command, "--help").out
        assert not re.search(r"<|\brequired\]|\[x>=|TEXT|INTEGER|FLOAT", shown.replace("<=", ""))
