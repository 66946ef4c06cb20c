"""The chart is well-formed, shows what it is given, and refuses what it cannot draw."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest
from examples.line_chart import Axis, HorizontalLine, Panel, Series, line_chart
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import InvalidInput
from journeyman.report.numbers import linear_ticks, log_ticks, tick_label

SVG = "{http://www.w3.org/2000/svg}"
FALLING = Series("falling", [100, 1000, 10_000], [40.0, 4.0, 0.4])
STEADY = Series("steady", [100, 1000, 10_000], [5.0, 5.0, 5.0])


def panel(*series, levels=(), x_log=True, y_log=True):
    return Panel("panel", Axis("steps", log=x_log), Axis("loss", log=y_log), series, levels)


def parsed(*panels, title="a chart", description="what it shows"):
    return ET.fromstring(line_chart(title, description, panels))


def drawn(root, kind):
    return [one for one in root.iter(f"{SVG}path") if one.get("class", "").split()[0] == kind]


def words(root):
    return [text.text for text in root.iter(f"{SVG}text")]


def points_of(path):
    return np.array([pair.split(",") for pair in path.get("d")[1:].split("L")], dtype=float)


def test_two_panels_share_one_legend():
    root = parsed(panel(FALLING, STEADY), panel(STEADY, levels=[HorizontalLine("best", 1.0)]))
    shown = words(root)
    assert [shown.count(name) for name in ("falling", "steady", "best")] == [1, 1, 1]
    styles = [line.get("class") for line in drawn(root, "line")]
    assert styles == ["line c0", "line c1", "line c1", "line c0", "line c1"]
    assert len(drawn(root, "level")) == 2  # one in its panel, one in the legend


def test_a_screen_reader_finds_title_and_description():
    root = parsed(panel(FALLING))
    ids = {child.get("id"): child.text for child in root}
    assert root.get("role") == "img"
    assert [ids[name] for name in root.get("aria-labelledby").split()] == [
        "a chart", "what it shows",
    ]  # fmt: skip


def test_light_and_dark_have_colours_of_their_own():
    light, dark = parsed(panel(FALLING)).find(f"{SVG}style").text.split("@media")
    assert "prefers-color-scheme:dark" in dark
    assert light.count(" .c0{stroke:") == dark.count(" .c0{stroke:") == 1


def test_equal_ratios_have_equal_distances_on_logarithmic_axes():
    points = points_of(drawn(parsed(panel(FALLING)), "line")[0])
    steps = np.diff(points, axis=0)
    assert steps[0] == pytest.approx(steps[1], abs=0.02)
    assert (steps[:, 0] > 0).all()
    assert (steps[:, 1] > 0).all()  # down, in pixels


def test_the_same_values_bend_on_a_linear_axis():
    points = points_of(drawn(parsed(panel(FALLING, y_log=False)), "line")[0])
    first, second = np.diff(points[:, 1])
    assert first == pytest.approx(10 * second, rel=0.01)


def test_a_level_lies_on_the_points_of_its_height():
    root = parsed(panel(STEADY, FALLING, levels=[HorizontalLine("best", 5.0)]))
    height = points_of(drawn(root, "line")[0])[0, 1]
    assert f",{height:g}H" in drawn(root, "level")[0].get("d")


@given(st.text(), st.text(), st.text(min_size=1))
def test_any_text_is_escaped(title, description, name):
    root = ET.fromstring(line_chart(title, description, [panel(Series(name, [1], [1]))]))
    assert not list(root.iter(f"{SVG}script"))
    assert len(words(root)) == len(words(parsed(panel(Series("plain", [1], [1])))))


def test_markup_in_a_name_stays_text():
    hostile = '</text><script>alert("1 & 2")</script>'
    assert hostile in words(parsed(panel(Series(hostile, [1], [1]))))


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=8), st.booleans())
def test_any_finite_values_stay_inside_the_chart(values, log):
    heights = np.abs(values) + 1e-100 if log else values
    series = Series("any", range(len(values)), heights)
    root = ET.fromstring(line_chart("", "", [panel(series, x_log=False, y_log=log)]))
    points = points_of(drawn(root, "line")[0])
    size = [float(root.get(side)) for side in ("width", "height")]
    assert (points > 0).all()
    assert (points < size).all()


@given(st.floats(-1000, 1000), st.floats(1e-3, 1e9))
def test_linear_ticks_are_even_and_inside(low, width):
    ticks = np.array(linear_ticks(low, low + width))
    assert 2 <= ticks.size <= 8
    assert ((ticks >= low - 1e-6 * width) & (ticks <= low + width + 1e-6 * width)).all()
    assert np.diff(ticks) == pytest.approx(ticks[1] - ticks[0], rel=1e-5)
    assert len({tick_label(tick) for tick in ticks}) == ticks.size


@given(st.floats(-50, 50), st.floats(0.01, 100))
def test_logarithmic_ticks_rise_inside(low, width):
    ticks = np.log10(log_ticks(low, low + width))
    assert 1 <= ticks.size <= 8
    assert (np.diff(ticks) > 0).all()
    assert ((ticks >= low - 1e-9) & (ticks <= low + width + 1e-9)).all()


def test_labels_are_short():
    assert [tick_label(value) for value in (100.0, 1e6, 2e-5)] == ["100", "10⁶", "2·10⁻⁵"]


def test_equal_values_give_equal_text():
    assert line_chart("t", "d", [panel(FALLING)]) == line_chart("t", "d", [panel(FALLING)])
    assert line_chart("t", "d", [panel(FALLING)]) != line_chart("t", "d", [panel(STEADY)])


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: Series("s", [], []), "'s' has no points"),
        (lambda: Series("s", [1, 2], [1.0, np.nan]), "y of 's' is not finite at 1"),
        (lambda: Series("s", [1, np.inf], [1.0, 2.0]), "x of 's' is not finite at 1"),
        (lambda: Series("s", [1, 2], [1.0]), "1 entries, expected 2"),
        (lambda: HorizontalLine("l", np.nan), "y of 'l' is not finite"),
        (panel, "no series"),
        (lambda: panel(STEADY, STEADY), "called 'steady'"),
        (lambda: line_chart("t", "d", []), "no panel"),
        (lambda: parsed(panel(Series("s", [0, 1], [1, 1]))), "0 has no place.*'steps'"),
        (
            lambda: parsed(panel(STEADY, levels=[HorizontalLine("l", -1.0)])),
            "-1 has no place.*'loss'",
        ),
        (lambda: parsed(panel(*(Series(f"s{i}", [1], [1]) for i in range(7)))), "distinguish"),
    ],
)
def test_what_cannot_be_drawn_is_refused(build, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        build()


def test_panels_stand_in_rows_of_so_many():
    root = ET.fromstring(line_chart("rows", "", [panel(FALLING)] * 3, columns=2))
    places = [group.get("transform") for group in root.findall(f"{SVG}g")[:3]]
    assert places == ["translate(0,0)", "translate(420,0)", "translate(0,344)"]
    assert root.get("viewBox").split()[2] == "840"
