"""Colours that can be distinguished from what they stand on, in both schemes."""

import re
from pathlib import Path

import pytest

from journeyman import report, studies
from journeyman.report.policy_section import MOST_ACTIONS
from journeyman.report.rendering import style_sheet

SHEET = style_sheet(":root")
DARK_SCREEN = "@media screen and (prefers-color-scheme:dark){:root{"


def colours_behind(start):
    """The variables that are set in the first rule that begins so."""
    rule = SHEET.partition(start)[2].partition("}")[0]
    return dict(re.findall(r"--([a-z]+): ?(#[0-9a-f]{6});", rule))


LIGHT, DARK = colours_behind(":root{"), colours_behind(DARK_SCREEN)
SCHEMES = {"light": LIGHT, "dark": DARK}
TEXT = ("ink", "quiet", "good", "warn", "bad", "expert")
MARKS = ("expert", "apprentice", "doubt", "total", "visits")


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("ground", ["page", "panel"])
def test_text_can_be_read(scheme, name, ground):
    colours = SCHEMES[scheme]
    assert contrast(colours[name], colours[ground]) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", MARKS)
def test_marks_can_be_seen(scheme, name):
    colours = SCHEMES[scheme]
    assert contrast(colours[name], colours["page"]) >= 3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_arrows_can_be_seen_in_the_darkest_shade(scheme):
    colours = SCHEMES[scheme]
    assert contrast(colours["ink"], colours["visits"]) >= 3


def test_both_schemes_name_the_same_colours_and_paper_is_light():
    """Dark colours are set for screens, and nowhere else."""
    assert SHEET.startswith(":root{")
    assert len(LIGHT) == 14
    assert set(LIGHT) == set(DARK)
    assert SHEET.count(":root") == SHEET.count("prefers-color-scheme") + 1 == 2


def test_every_variable_that_is_used_has_a_value():
    assert set(re.findall(r"var\(--([a-z]+)\)", SHEET)) == set(LIGHT)


def test_every_class_that_is_styled_is_used_somewhere():
    """In a template, or in the code of a drawing."""
    place = Path(report.__file__).parent
    files = [*place.glob("*.py"), *(place / "templates").rglob("*.html")]
    files.append(Path(studies.__file__).parent / "study_page.py")
    words = set(re.findall(r"[\w-]+", " ".join(path.read_text(encoding="utf-8") for path in files)))
    styled = set(re.findall(r"\.([a-z][\w-]*)(?=[^{}]*{)", SHEET))
    numbered = {f"{kind}{level}" for kind in "vs" for level in range(1, 9)}
    numbered |= {f"a{place}" for place in range(MOST_ACTIONS)}
    assert styled - numbered <= words


def test_in_a_notebook_the_colours_belong_to_the_cell():
    assert ":root" not in style_sheet(".jm")
    assert style_sheet(".jm").count(".jm{--page") == 2


def test_nothing_is_fetched():
    assert "url(" not in SHEET
    assert "@import" not in SHEET
