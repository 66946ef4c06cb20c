"""Hostile files: no crash, nothing executed, nothing read elsewhere, little memory."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from adapters import hostile_demonstrations as hostile

MOST_MEMORY = 500_000_000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The corpus, read in a process of its own: (root, fates, lines of its report)."""
    root = tmp_path_factory.mktemp("hostile")
    fates = hostile.make_corpus(root)
    (root / "corpus.json").write_text(json.dumps(fates))
    command = [sys.executable, hostile.__file__, str(root)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr[-2000:]
    return root, fates, [json.loads(line) for line in shown.stdout.splitlines()]


def test_every_file_meets_its_fate(corpus):
    root, fates, report = corpus
    assert len(fates) > 80
    found = {path: outcome for path, outcome, _, _ in report}
    wrong = {
        str(Path(path).relative_to(root)): (found.get(path), message)
        for path, _, message, _ in report
        if found.get(path) != fates[path]
    }
    assert not wrong
    assert set(found) == set(fates)


def test_nothing_is_executed_and_nothing_is_read_elsewhere(corpus):
    root, _, report = corpus
    assert not (root / "executed").exists()
    assert not [line for line in report if str(hostile.SECRET) in line[2]]


def test_little_memory_is_taken(corpus):
    peaks = {path: peak for path, _, _, peak in corpus[2]}
    assert max(peaks.values()) < MOST_MEMORY, max(peaks, key=peaks.get)


def test_every_refusal_says_what_to_do(corpus):
    for path, outcome, message, _ in corpus[2]:
        if outcome == hostile.REFUSED:
            assert len(message) < 800, path
            assert "Traceback" not in message
            assert message.endswith(".")


def test_the_commands_do_run_where_files_are_trusted(tmp_path):
    pickle.loads(pickle.dumps(hostile.Command(tmp_path)))
    assert (tmp_path / "executed").exists()
