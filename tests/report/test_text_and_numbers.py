"""Whatever text is given, the page holds it as text."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from journeyman.report.drawing import printable, shortened, tag, written
from journeyman.report.numbers import column, exact, number, share, signed
from journeyman.report.rendering import Section, cell, document, render

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert('x')>",
    "</title></style></svg><script>",
    "&lt;b&gt; &amp; 'quotes' \"double\"",
    "🦊 emoji ünïcode",
    "שלום עולם",
    "\u202egnp.exe",
    "\x00\x1b[31m\ud800",
)


class Reader(HTMLParser):
    """All text and all tags of a page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text, self.tags = [], []

    def handle_data(self, data):
        self.text.append(data)

    def handle_starttag(self, name, attrs):
        self.tags.append(name)


def read(html):
    reader = Reader()
    reader.feed(html)
    return "".join(reader.text), reader.tags


@given(st.text())
def test_any_text_comes_back_as_text(text):
    shown, tags = read(written(tag("p", text, tag("b", text), text)))
    assert tags == ["p", "b"]
    assert shown.replace("\r", "\n") == printable(text).replace("\r", "\n") * 3


@given(st.text())
def test_any_attribute_stays_in_its_place(text):
    _, tags = read(written(tag("p", "x", title=text)))
    assert tags == ["p"]


@given(st.text(max_size=30))
def test_any_text_comes_back_as_text_from_a_template(text):
    """In a list, in a row's heading, in a cell, in a heading; the name of a section is ours."""
    section = Section("a", text, {"rows": [(text, text, text)]}, "unanswered")
    html = render(section)
    shown, tags = read(html)
    assert tags == read(render(section._replace(title="x", content={"rows": [("x",) * 3]})))[1]
    plain = printable(text).replace("\r", "\n")
    assert shown.replace("\r", "\n").count(plain) >= 4


@pytest.mark.parametrize("name", HOSTILE)
def test_titles_and_notes_stay_text(name):
    section = Section("a", name, {"sentences": [name]}, "remedies", link=name)
    whole = document(name, [section], kind="report", size=name, note=name, version=name)
    for html in (whole, cell([section], "p-")):
        assert not {"script", "img", "b"} & set(read(html)[1])
        assert "\u202e" not in html
        html.encode()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_set_apart(name):
    html = render(Section("a", "t", {"rows": [(name, name, "why")]}, "unanswered"))
    names = re.findall("<bdi>(.*?)</bdi>", html, re.DOTALL)
    assert [unescape(one) for one in names] == [printable(name)] * 2


def test_a_content_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError):
        render(Section("remedies", "t", {}))


def test_underscores_stand_for_hyphens():
    assert written(tag("p", aria_hidden="true")) == '<p aria-hidden="true"></p>'


@given(st.text(), st.integers(2, 40))
def test_a_shortened_name_fits_and_keeps_its_beginning(name, longest):
    short = shortened(name, longest)
    assert len(short) <= longest
    assert "\n" not in short


@given(st.floats(allow_nan=False))
def test_a_number_is_short_and_has_the_right_sign(value):
    text = number(value)
    assert len(text) <= 16
    assert text.startswith("−") == (value < 0)
    assert "-" not in text


@given(st.floats(-1e5, 1e5).filter(lambda value: value == 0 or abs(value) > 1e-3))
def test_a_number_is_right_to_four_digits(value):
    read_back = float(number(value).replace("−", "-").replace(",", ""))
    assert read_back == pytest.approx(value, rel=5e-4)


@given(st.lists(st.floats(-1e5, 1e5), min_size=1))
def test_a_column_has_one_number_of_decimals(values):
    plain = [text for text in column(values) if text not in ("0", "≈ 0") and "·" not in text]
    assert len({len(text.partition(".")[2]) for text in plain}) <= 1


def test_a_difference_is_as_fine_as_what_it_is_one_of():
    assert column([1e-7, 0.5], [12.0]) == ["≈ 0", "0.50"]
    assert column([1e-7]) == ["10⁻⁷"] or column([1e-7]) == ["1·10⁻⁷"]


def test_signs_and_shares():
    assert [signed(v, t) for v, t in ((1.0, "1"), (-1.0, "−1"), (0.0, "0"), (1e-9, "≈ 0"))] == [
        "+1", "−1", "0", "≈ 0",
    ]  # fmt: skip
    assert share(-0.1234) == "−12.3 %"


def test_the_exact_number_stands_beside_the_rounded_one():
    assert exact(1 / 3).__html__() == f'<data value="{1 / 3!r}">0.3333</data>'
