"""Every block of Python in README.md and docs/ runs, and shows what its page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import journeyman as jm
import pages

CHAINS = pages.chains()
ALL = [
    (path.name, number) for path in pages.FILES for number in range(len(pages.blocks(path.name)))
]


@pytest.fixture
def _elsewhere(tmp_path, monkeypatch):
    """A directory of its own, with the examples at hand; paths and settings are put back."""
    (tmp_path / "examples").symlink_to(pages.ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize(("page", "numbers"), CHAINS, ids=[f"{p}-{n[0]}" for p, n in CHAINS])
def test_the_code_of_a_page_runs(page, numbers, capsys):
    names = {}
    for number in numbers:
        block = pages.blocks(page)[number]
        if "__main__" in block:
            shown = run_as_script(block)
        else:
            exec(compile(block, f"{page}, block {number}", "exec"), names)
            shown = capsys.readouterr().out
        EXPECTED.get((page, number), something)(shown)


def run_as_script(block):
    """What starts processes has to be a file: every worker imports it."""
    Path("script.py").write_text(block, encoding="utf-8")
    command = [sys.executable, "script.py"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_no_block_is_left_out():
    run_here = {(page, number) for page, numbers in CHAINS for number in numbers}
    for page, number in set(ALL) - run_here:
        package = pages.needed_by(pages.blocks(page)[number])
        folder = pages.ROOT / pages.RUN_ELSEWHERE[package]
        stories = [path.read_text(encoding="utf-8") for path in folder.glob("test_*.py")]
        called = f'pages.blocks("{page}")[{number}]'
        assert any(called in story for story in stories), f"{folder.name} lacks {called}"


def test_every_expectation_has_its_block():
    assert set(EXPECTED) <= set(ALL)


def test_whatever_is_python_is_fenced_as_python():
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages.FILES)
    fences = re.findall(r"^( *)```(\w*) *(.*)$", text, re.MULTILINE)
    assert {word for _, word, _ in fences} <= {"", "python", "sh", "text", "toml", "csv", "json"}
    assert not [fence for fence in fences if fence[1] == "python" and (fence[0] or fence[2])]


@pytest.mark.parametrize("path", pages.FILES, ids=[path.name for path in pages.FILES])
def test_a_page_names_what_exists(path):
    text = path.read_text(encoding="utf-8")
    for file in re.findall(r"`((?:tests|examples|benchmarks)/[\w/]+\.py)`", text):
        assert (pages.ROOT / file).exists(), file
    for name in re.findall(r"`jm\.([A-Za-z_][\w.]*)", text):
        thing = jm
        for part in name.strip(".").split("."):
            thing = getattr(thing, part)


def something(shown):
    assert shown.strip()


def nothing_false(shown):
    assert shown.strip()
    assert "False" not in shown


def an_answer(shown):
    assert any(word in shown for word in ("OPTIMAL", "CONVERGED", "With probability"))


def two_certificates(shown):
    assert "upper bound on the gap" in shown
    assert "With probability 0.95 the policy costs at most" in shown
    assert "Certificate(gap <= " in shown


def a_share_and_its_word(shown):
    share, word = shown.splitlines()
    assert re.fullmatch(r"\d+% of the largest possible gap [\d.]+", share)
    assert word == "worth something"


def a_passed_audit_and_one_that_fails(shown):
    lines = shown.splitlines()
    assert "passed" in lines[0]
    assert lines[-1] == "False"


def what_was_asked_for(shown):
    lines = shown.splitlines()
    assert lines[0].startswith("OPTIMAL")
    assert lines[1].startswith("OPTIMAL gap ")
    assert lines[2] == "certified: True"


def progress_and_a_stop(shown):
    """Four lines of the form that the page shows."""
    page = (pages.ROOT / "docs" / "exact-program.md").read_text(encoding="utf-8")
    *progress, end = shown.splitlines()
    form = re.sub(r"\d[\d.]*", "#", re.search(r"```text\n(.*)\n```", page)[1])
    assert [re.sub(r"\d[\d.]*(e-\d+)?", "#", line) for line in progress] == [form] * 4
    assert end == "STEP_LIMIT True"


def the_trace_of_an_audited_run(shown):
    passed, *reached = shown.splitlines()
    assert "passed" in passed
    calls = [int(re.search(r"after (\d+) calls", line)[1]) for line in reached]
    assert len(calls) == 3
    assert calls == sorted(calls)
    assert calls[-1] > 1


def a_world_that_keeps_its_promises(shown):
    assert shown == "every successor has its predecessor\n"


def a_certificate_that_says_something(shown):
    assert shown.startswith("STEP_LIMIT")
    assert "With probability 0.95 the policy costs at most" in shown
    assert "vacuous" not in shown


def a_certified_mixture(shown):
    policy, summary = shown.splitlines()
    assert policy.startswith("MixturePolicy(2 candidates")
    assert summary.startswith("With probability 0.95")
    assert "vacuous" not in summary


def a_state_passed_on(shown):
    assert re.fullmatch(r"drawn: \[[01 ]+\] actions of the last step: \[[01 ]+\]", shown.strip())


def the_experts_term_as_the_largest(shown):
    *terms, share = shown.splitlines()
    values = {line[:24].strip(): float(line[25:37]) for line in terms}
    assert max(values, key=values.get) == "sampling"
    assert int(share.split("%")[0]) < 30


def values_that_fall_round_by_round(shown):
    values = [float(line.split("value ")[1]) for line in shown.splitlines()]
    assert len(values) == 6
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0] / 3


def a_mixture_that_grew(shown):
    rounds = shown.strip().splitlines()
    values = [float(line.split("value ")[1]) for line in rounds if line.startswith("round")]
    assert len(values) in (1, 2, 3)
    assert values == sorted(values, reverse=True)
    assert "certified" in shown or "bound" in shown


def totals_and_what_they_lack(shown):
    assert shown.strip().endswith("lacking [0.  4.3]")


def listed_forces_and_a_close_clone(shown):
    forces, costs = (re.findall(r"-?\d+\.\d*", line) for line in shown.splitlines())
    assert [float(one) > 0 for one in forces] == [False, False, True, True]
    expert, clone = np.array(costs, dtype=float).reshape(2, 2)
    assert clone == pytest.approx(expert, rel=0.05)


def the_same_number_twice(shown):
    values = [line.split()[-1] for line in shown.splitlines()]
    assert len(values) == 2
    assert values[0] == values[1]


def lines(*expected):
    """The first lines, as they are."""

    def shows(shown):
        assert shown.splitlines()[: len(expected)] == list(expected)

    return shows


def a_limit_in_disguise(shown):
    refused, flags = shown.splitlines()
    assert "limited.csv, line 4: episode 0 is marked terminated but ends in state 1" in refused
    assert "truncated_at=3" in refused
    assert flags == "[False  True  True]"


def two_faults_by_their_place(shown):
    typo, jump = shown.splitlines()
    assert "action may be 'actoin'" in typo
    assert "line 3: state is 2, but the step before led to 1" in jump


def the_first_impossible_step(shown):
    assert "walk.csv, line 4: episode 1, step 0: the step from state 0" in shown


def a_limit_and_its_lifting(shown):
    refused, read = shown.splitlines()
    assert "would take about 6 MB" in refused
    assert read == "Demonstrations(1 episodes, 50000 steps, 0 terminated)"


EXPECTED = {
    (page, number): an_answer
    for page in ("README.md", "tour.md")
    for number in range(len(pages.blocks(page)))
} | {
    ("README.md", 0): lines(
        "certified: 100% of the largest gap, 7% of the largest regret",
        "in truth: 0.1% of the largest regret",
    ),
    ("certificates.md", 0): two_certificates,
    ("certificates.md", 1): a_share_and_its_word,
    ("certificates.md", 2): a_passed_audit_and_one_that_fails,
    ("demonstration-files.md", 0): lines(
        "Demonstrations(2 episodes, 4 steps, 1 terminated)", "[2 2] [ True False]"
    ),
    ("demonstration-files.md", 1): a_limit_in_disguise,
    ("demonstration-files.md", 2): lines(
        "episode,t,state,action,terminated", "0,0,0,0,", "0,1,1,0,", "0,2,2,,1"
    ),
    ("demonstration-files.md", 3): two_faults_by_their_place,
    ("demonstration-files.md", 4): the_first_impossible_step,
    ("demonstration-files.md", 5): lines(
        "Demonstrations(2 episodes, 4 steps, 1 terminated)", "[False  True]"
    ),
    ("continuous-worlds.md", 0): a_mixture_that_grew,
    ("continuous-worlds.md", 1): totals_and_what_they_lack,
    ("continuous-worlds.md", 3): listed_forces_and_a_close_clone,
    ("demonstration-files.md", 6): a_limit_and_its_lifting,
    ("exact-program.md", 0): what_was_asked_for,
    ("exact-program.md", 1): progress_and_a_stop,
    ("exact-program.md", 2): the_trace_of_an_audited_run,
    ("large-worlds.md", 0): a_world_that_keeps_its_promises,
    ("large-worlds.md", 1): a_certificate_that_says_something,
    ("policy-mixtures.md", 0): a_certified_mixture,
    ("policy-mixtures.md", 1): a_state_passed_on,
    ("policy-mixtures.md", 2): the_experts_term_as_the_largest,
    ("policy-mixtures.md", 3): values_that_fall_round_by_round,
    ("scaling-out.md", 0): the_same_number_twice,
    ("sgd-al.md", 0): nothing_false,
    ("sgd-al.md", 1): nothing_false,
    ("sgd-al.md", 2): nothing_false,
}
"""What a block shows; by default something."""
