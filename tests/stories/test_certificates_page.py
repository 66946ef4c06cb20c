"""The page about certificates: its code runs and shows what the text says."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "certificates.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def shown_by(snippet, capsys):
    exec(compile(snippet, "certificates.md", "exec"), {})
    return capsys.readouterr().out


def test_the_first_snippet_certifies_two_policies(capsys):
    shown = shown_by(SNIPPETS[0], capsys)
    assert "upper bound on the gap" in shown
    assert "With probability 0.95 the policy costs at most" in shown
    assert "Certificate(gap <= " in shown


def test_the_second_snippet_saves_audits_and_tampers(capsys):
    assert len(SNIPPETS) == 2
    shown = shown_by(SNIPPETS[1], capsys).splitlines()
    assert "passed" in shown[0]
    assert shown[-1] == "False"
