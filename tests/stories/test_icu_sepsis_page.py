"""Learning from clinicians in ICU-Sepsis: what is learned, certified, printed and documented."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import journeyman as jm
from journeyman.cli.main import app
from journeyman.cli.sepsis_case import (
    DOSE_LIMIT,
    LIMITS_OF_IT,
    WARNING,
    case_facts,
    case_text,
    learn_case,
)

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "icu_sepsis.py"
PAGE = (ROOT / "docs" / "icu-sepsis.md").read_text(encoding="utf-8")
FIGURE = re.compile(r"-?\d+(?:\.\d+)?")
HIDDEN = """
import runpy, sys
from importlib.machinery import PathFinder

class Elsewhere(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "icu_sepsis" else super().find_spec(name, path, target)

sys.meta_path[:] = [Elsewhere if finder is PathFinder else finder for finder in sys.meta_path]
"""
"""A Python without the package."""


@pytest.fixture(scope="module")
def case():
    return learn_case()


@pytest.fixture(scope="module")
def text(case):
    return case_text(case)


def exact_costs(case, policy):
    world, basis, _ = case.example
    return jm.occupancy(world, policy).measure @ np.asarray(basis.on(world))


def in_one_line(words):
    return " ".join(words.split())


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_survival_of_the_known_policies_is_the_published_one(case):
    known = (case.example.expert, case.uniform, case.best)
    found = [case.survival(policy) for policy in known]
    assert found == pytest.approx([0.7818, 0.7801, 0.8751], abs=1e-4)
    assert [f"{survival:.2f}" for survival in found] == ["0.78", "0.78", "0.88"]


def test_apprentices_survive_between_clinicians_and_optimum(case):
    clinicians, best = case.survival(case.example.expert), case.survival(case.best)
    assert case.survival(case.matching.policy) == pytest.approx(clinicians, abs=0.002)
    assert clinicians + 0.08 < case.survival(case.improving.policy) < best


def test_survival_is_the_limit_of_discounted_survival(case):
    """By other code: the occupancy measure under a discount of almost one."""
    far = jm.gallery.icu_sepsis(discount=1 - 1e-6).world
    surviving = far.transition[:, [714]].toarray().ravel() * (far.pairs.states < 713)
    for policy in (case.example.expert, case.improving.policy):
        discounted = jm.occupancy(far, policy).measure @ surviving
        assert case.survival(policy) == pytest.approx(discounted, abs=1e-4)


def test_the_apprentice_to_improve_is_no_worse_in_any_cost_within_its_certificate(case):
    learned = case.improving
    excess = exact_costs(case, learned.policy) - exact_costs(case, case.example.expert)
    assert learned.certificate.valid
    assert isinstance(learned.problem.cost_class, jm.Simplex)
    assert (excess <= learned.certificate.bound).all()
    assert learned.certificate.bound < 0
    assert case.exact_gap(learned) == pytest.approx(excess.max(), abs=1e-9)


def test_the_apprentice_to_match_is_as_near_as_its_certificate_says(case):
    learned = case.matching
    distance = abs(exact_costs(case, learned.policy) - exact_costs(case, case.example.expert)).sum()
    assert learned.certificate.valid
    assert isinstance(learned.problem.cost_class, jm.InfinityBall)
    assert distance <= learned.certificate.bound < 0.2
    assert case.exact_gap(learned) == pytest.approx(distance, abs=1e-9)


def test_the_budget_is_kept_and_the_clinicians_do_not_keep_it(case):
    vasopressors = case.example.basis.names.index("vasopressors")
    (known,) = case.improving.certificate.budgets
    assert known.limit == DOSE_LIMIT
    assert known.is_kept
    assert exact_costs(case, case.improving.policy)[vasopressors] <= known.spent <= DOSE_LIMIT
    assert exact_costs(case, case.example.expert)[vasopressors] > 2 * DOSE_LIMIT


def test_every_demonstration_runs_to_the_end_of_a_stay(case):
    assert case.demonstrations.terminated.all()
    assert set(case.demonstrations.last_states) == {713, 714}


def test_treatments_are_compared_for_the_patients_whom_clinicians_see(case):
    contrasts = case.contrasts(case.improving.policy)
    assert sum(row.time for row in contrasts) == pytest.approx(1)
    own = case.contrasts(case.example.expert)
    assert all(row.clinicians == pytest.approx(row.apprentice) for row in own)
    stay = 0.3588 * 4 / 9.217  # vasopressors of a stay in levels, by its steps
    mean = sum(row.time * row.clinicians[1] for row in contrasts)
    assert mean == pytest.approx(stay, rel=0.02)
    assert contrasts[-1].apprentice[1] < contrasts[-1].clinicians[1]


def test_common_choices_are_shares(case):
    expert, improving = case.example.expert, case.improving.policy
    assert case.same_choices(expert) == pytest.approx(1)
    assert 0 < case.same_choices(improving) < case.same_choices(case.matching.policy) < 1


def test_the_text_begins_with_the_warning_and_says_what_is_not_shown(text):
    assert in_one_line(text).startswith(WARNING)
    assert text.startswith("NOT FOR CLINICAL USE")
    for sentence in LIMITS_OF_IT:
        assert in_one_line(sentence) in in_one_line(text)
    assert max(map(len, text.splitlines())) <= 100


def test_the_text_has_the_numbers_of_the_case(case, text):
    for name, policy in (
        ("apprentice: match", case.matching),
        ("apprentice: improve", case.improving),
    ):
        assert re.search(rf"{name} +{case.survival(policy.policy):.4f} +-\n", text)
    assert re.search(r"clinicians +0\.7818 +0\.78\n", text)
    assert re.search(r"uniform actions +0\.7801 +0\.78\n", text)
    assert re.search(r"optimum +0\.8751 +0\.88\n", text)
    words = in_one_line(text)
    assert f"it costs at least {-case.improving.certificate.bound:.4f} less" in words
    assert f"its four costs are within {case.matching.certificate.bound:.4f} of" in words
    assert "vasopressors: kept." in words
    assert "independent trajectories (declared)" in words


def test_the_page_shows_what_is_printed(text):
    shown = re.search(r"```text\n(NOT FOR.*?)\n```", PAGE, re.DOTALL)[1]
    assert FIGURE.sub("#", shown).split() == FIGURE.sub("#", text).split()
    theirs, ours = ([float(one) for one in FIGURE.findall(words)] for words in (shown, text))
    assert ours == pytest.approx(theirs, abs=2e-3, rel=0.02)


def test_the_page_warns_and_is_in_the_navigation():
    assert PAGE.index("Not for clinical use") < PAGE.index("```")
    assert "icu-sepsis.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([a-z-]+\.md)\)", PAGE)
    assert targets
    assert all((ROOT / "docs" / target).exists() for target in targets)


def test_the_command_prints_the_warning_also_when_little_is_shown(tmp_path):
    arguments = ["demo", "--case", "icu-sepsis", "--trajectories", "1", "--seed", "3"]
    path = tmp_path / "case.html"
    shown = CliRunner().invoke(app, [*arguments, "--report", str(path)])
    assert shown.exit_code == 0
    assert in_one_line(shown.stdout).startswith(WARNING)
    assert "therefore vacuous" in in_one_line(shown.stdout)
    assert shown.stdout.endswith(f"{path}\n")
    assert "NOT FOR CLINICAL USE" in path.read_text(encoding="utf-8")


def test_the_example_learns_again_under_other_limits():
    shown = run(EXAMPLE, "--demonstrations", "200", "--limits", "0.02", "0.1")
    assert shown.returncode == 0, shown.stderr
    assert in_one_line(shown.stdout).startswith(WARNING)
    impossible, possible = shown.stdout.splitlines()[-2:]
    assert impossible.strip() == "0.0200   no policy gives less than 0.0280"
    limit, spent, survival, certified, exactly = map(float, possible.split())
    assert spent <= limit == 0.1
    assert 0.78 < survival < 0.8751
    assert exactly <= certified


def test_the_limits_of_the_page_are_shown_as_printed():
    heading = r"   limit     spent  survival  certified   exactly\n"
    rows = re.search(rf"```text\nThe same with.*\n{heading}(.*?)\n```", PAGE, re.DOTALL)[1]
    impossible, *possible = rows.splitlines()
    assert impossible.endswith("no policy gives less than 0.0280")
    numbers = np.array([line.split() for line in possible], dtype=float)
    assert (numbers[:, 1] <= numbers[:, 0]).all()
    assert (np.diff(numbers[:, 2]) > 0).all()
    assert (numbers[:, 4] <= numbers[:, 3]).all()


@pytest.mark.parametrize(
    ("start", "code"),
    [
        ("from journeyman.cli.main import app; app(['demo', '--case', 'icu-sepsis'])", 5),
        (f"sys.argv[1:] = []; runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')", 1),
    ],
    ids=["command", "example"],
)
def test_without_the_package_the_command_that_installs_it_is_shown(start, code):
    shown = run("-c", HIDDEN + start)
    assert shown.returncode == code
    assert "pip install 'journeyman[icu]'" in shown.stderr
    assert "Traceback" not in shown.stderr
    assert not shown.stdout


def test_the_case_is_for_machines_too(case):
    facts = json.loads(json.dumps(case_facts(case), allow_nan=False))
    assert (facts["case"], facts["warning"]) == ("icu-sepsis", WARNING)
    assert facts["survival"]["optimum"] == pytest.approx(0.8751, abs=1e-4)
    assert facts["improve"]["bound"] == pytest.approx(case.improving.certificate.bound)
    assert set(facts["costs"]["clinicians"]) == set(case.example.basis.names)
