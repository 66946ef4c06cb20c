"""Colours that can be told from what they stand on, in both schemes."""

import pytest

from journeyman.report.page import DARK, LIGHT, sheet

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
    assert set(LIGHT) == set(DARK)
    text = sheet(":root")
    light, dark, paper = (text.split("@media")[index] for index in (0, 1, 2))
    assert "prefers-color-scheme:dark" in dark
    assert paper.lstrip().startswith("print")
    for name in LIGHT:
        assert f"--{name}:{LIGHT[name]};" in light
        assert f"--{name}:{DARK[name]};" in dark
        assert f"--{name}:{LIGHT[name]};" in paper


def test_every_variable_that_is_used_has_a_value():
    import re

    used = set(re.findall(r"var\(--([a-z]+)\)", sheet(":root")))
    assert used == set(LIGHT)


def test_nothing_is_fetched():
    assert "url(" not in sheet(":root")
    assert "@import" not in sheet(":root")
