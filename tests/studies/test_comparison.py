"""What a study shows: a table, all numbers as CSV, a page that holds whatever names there are."""

import csv
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.report.drawing import Scale

HOSTILE = ("<script>alert(1)</script>", '"><img src=x>', "\u202eשלום", "</style></svg>", "n" * 200)
VOID = {"meta", "br", "wbr"}


def trial(solver, seed, gap, **numbers):
    usual = {
        "true_gap": gap, "gap_on_data": gap / 2, "lower_bound": 0.0, "certified_bound": gap + 5,
        "valid": True, "vacuous": False, "trivial_bound": 40.0, "seconds": 0.5 + seed,
        "iterations": 1000 * (seed + 1), "forward_solves": 0, "environment_steps": 0,
        "expert_queries": 0,
    }  # fmt: skip
    return jm.studies.Trial("problem", solver, seed, "OPTIMAL", **(usual | numbers))


REFUSED = jm.studies.Trial("problem", "cloning", 0, "REFUSED", "it needs demonstrations")
SMALL = jm.studies.Comparison(
    (*(trial("exact", seed, gap) for seed, gap in enumerate([0.3, 0.1, 0.2])), REFUSED)
)


class Outline(HTMLParser):
    """Open tags, names of all, words, and identifiers."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.names, self.words, self.ids = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attrs):
        self.names.append(name)
        self.ids += [value for key, value in attrs if key == "id"]
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.words.append(data)


def test_the_table_has_medians_with_their_range():
    head, exact, cloning, _, reason = SMALL.table().splitlines()
    assert head.split()[:3] == ["method", "trials", "true"]
    assert "0.2 (0.1 .. 0.3)" in exact
    assert "2,000 (1,000 .. 3,000)" in exact
    assert "queries" not in head, "what nobody counts has no column"
    assert cloning.split()[:3] == ["cloning", "1", "-"]
    assert cloning.endswith("REFUSED")
    assert reason == "cloning: it needs demonstrations"


def test_what_numbers_would_hide_is_shown():
    broken = trial("a", 0, 1.0, valid=False), trial("a", 1, 1.0, budgets_kept=False)
    table = jm.studies.Comparison(broken).table()
    assert "a premise of the certificate failed; budgets not shown to be kept" in table


def test_csv_holds_every_number_in_full(tmp_path):
    path = tmp_path / "trials.csv"
    SMALL.csv(path)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 4
    for row, found in zip(rows, SMALL.trials, strict=True):
        facts = found.facts()
        assert list(row) == list(facts)
        assert row == {name: "" if one is None else str(one) for name, one in facts.items()}


def test_stored_numbers_come_back_as_they_were():
    for one in SMALL.trials:
        assert jm.studies.Trial.of(one.facts()) == one
    facts = SMALL.trials[0].facts()
    wrong = [
        {"seed": 0.5}, {"valid": 1}, {"iterations": True}, {"true_gap": float("nan")},
        {"status": None}, {"seconds": None}, {"more": 1},
    ]  # fmt: skip
    for change in wrong:
        with pytest.raises(ValueError, match=r".+"):
            jm.studies.Trial.of(facts | change)


def test_the_page_is_whole_and_loads_nothing(tmp_path):
    SMALL.report(tmp_path / "page.html", title="Two methods")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    found = Outline(text)
    assert found.open == []
    assert not {"script", "link", "img", "iframe"} & set(found.names)
    assert "http" not in text.replace("http-equiv", "")
    assert found.names.count("title") == 1 + 2, "the page and two pictures"
    assert "Two methods" in found.words
    assert any("exact has the least true gap: 0.2 in the median" in one for one in found.words)
    assert "it needs demonstrations" in found.words
    assert len(found.ids) == len(set(found.ids))


def test_the_page_says_what_was_compared_on(tmp_path):
    world, basis, _ = jm.gallery.grid(4, macro_cells=2)
    time = jm.Budget(cost=[1.0] * world.num_pairs, at_most=30.0, name="time")
    exact = jm.ExpertExpectation([5.0] * 4)
    problems = {
        "ball": jm.Apprenticeship(world, basis, exact),
        "limit": jm.Apprenticeship(world, basis, exact, jm.Simplex(), [time]),
    }
    found = jm.compare(problems, jm.LinearProgram())
    assert found.descriptions["ball"].endswith("4 costs, class InfinityBall; expectations")
    assert found.descriptions["limit"].endswith("class Simplex; 1 budget; expectations")
    text = _page(found, tmp_path)
    assert all(f"{words}." in text for words in found.descriptions.values())


def test_a_bound_whose_premise_failed_is_not_called_certified(tmp_path):
    path = tmp_path / "page.html"
    for valid in (True, False):
        trials = trial("a", 0, 1.0), trial("a", 1, 1.0, valid=valid)
        jm.studies.Comparison(trials).report(path)
        assert ("certified to be at most 6" in path.read_text(encoding="utf-8")) == valid


def test_names_of_all_kinds_stay_names(tmp_path):
    trials = [trial(name, seed, 10.0**k) for k, name in enumerate(HOSTILE) for seed in range(2)]
    trials += [jm.studies.Trial(HOSTILE[0], HOSTILE[1], None, "RAISED", HOSTILE[3])]
    found = jm.studies.Comparison(tuple(trials))
    for text in (found._repr_html_(), _page(found, tmp_path)):
        outline = Outline(text)
        assert outline.open == []
        assert not {"script", "img"} & set(outline.names)
        assert HOSTILE[0] in outline.words


def test_a_study_without_an_answer_has_a_page_too(tmp_path):
    text = _page(jm.studies.Comparison((REFUSED,)), tmp_path)
    assert "No method has an answer." in text
    assert "<svg" not in text
    assert "REFUSED" in jm.studies.Comparison((REFUSED,)).table()


def test_methods_that_are_equally_good_are_named_together(tmp_path):
    text = _page(jm.studies.Comparison((trial("a", 0, 0.5), trial("b", 0, 0.5 + 1e-9))), tmp_path)
    assert "a and b have the least true gap" in text


def test_one_study_shows_the_same_in_a_line():
    assert repr(SMALL) == "Comparison(4 trials, 2 rows; least median true gap 0.2 by exact)"
    assert repr(jm.studies.Comparison((REFUSED,))) == "Comparison(1 trials, 1 rows)"


def _page(found, place):
    found.report(place / "page.html")
    return (place / "page.html").read_text(encoding="utf-8")


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=8))
def test_every_value_has_its_place_on_a_scale(values):
    scale = Scale(values)
    places = [scale.share(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)
    assert len(scale.ticks) >= 1
