"""The page: its structure, its numbers, and nothing from anywhere else."""

import datetime
import itertools
import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

import journeyman as jm
from journeyman.certificate.presentation import regret_share
from journeyman.errors import InvalidFile, InvalidInput
from journeyman.report.certificate_sections import bounds_by_premise, regret
from journeyman.report.cost_comparison import comparison_of
from journeyman.report.page import WHOLE, page
from journeyman.report.report_data import ReportData
from journeyman.report.saved_run import read_run

HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "🦊 'quotes' & \"more\"",
    "\u202eשלום עולם", "</title></style></svg>", "a name that is much longer than the others " * 4,
)  # fmt: skip
VOID = {"meta", "br", "link", "img", "input", "hr", "wbr"}


class Outline(HTMLParser):
    """Tags with their attributes in order, text by place, and whether all is closed."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.texts, self.problems = [], [], [], []

    def handle_starttag(self, name, attrs):
        self.tags.append((name, dict(attrs)))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        if not self.open or self.open.pop() != name:
            self.problems.append(name)

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    def of(self, name):
        return [attrs for tag, attrs in self.tags if tag == name]

    def words(self, name):
        return [data for places, data in self.texts if name in places]


def outline(html):
    found = Outline()
    found.feed(html)
    found.close()
    return found


@cache
def grid_apprentice():
    world, basis, expert = jm.gallery.grid(5, macro_cells=2, walls=[(1, 1)])
    demos = jm.record(world, expert, trajectories=60, horizon=60, seed=0)
    wear = jm.Budget(cost=np.arange(world.num_pairs) % 2, at_most=12.0, name="wear")
    return jm.learn(world, basis, demos, constraints=[wear], solver=jm.ColumnGeneration())


@cache
def hostile_apprentice():
    plain, basis, expert = jm.gallery.grid(3, macro_cells=2)
    world = jm.World(
        plain.transition, plain.initial, plain.discount, action_names=HOSTILE[:4],
        state_names=[HOSTILE[k % 6] for k in range(9)],
    )  # fmt: skip
    named = jm.CostBasis(basis.matrix, HOSTILE[:4])
    demos = jm.record(world, expert, trajectories=30, horizon=40, seed=0)
    budget = jm.Budget(cost=np.ones(world.num_pairs), at_most=30.0, name=HOSTILE[4])
    return jm.learn(world, named, demos, constraints=[budget])


@cache
def driving_apprentice():
    world, basis, expert = jm.gallery.driving()
    return jm.learn(world, basis, expert, cost_class=jm.Simplex())


@cache
def large():
    """A small network of queues, treated as if it were large."""
    network = jm.gallery.queues(4, buffers=(3, 3, 3, 3))
    demos = jm.record(network.world, network.longer, trajectories=40, horizon=40, seed=0)
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    rollouts = jm.Rollouts(trajectories=200, horizon=60)
    return jm.certify(problem, network.lbfs, evaluation=rollouts)


@cache
def forward():
    world, _, _ = jm.gallery.grid(3, macro_cells=1)
    problem = jm.Forward(world, np.arange(world.num_pairs) % 3 / 3.0)
    return jm.certify(problem, jm.solve(problem))


RESULTS = {
    "grid": grid_apprentice, "hostile": hostile_apprentice, "driving": driving_apprentice,
    "large": large, "forward": forward,
}  # fmt: skip


@pytest.fixture(params=RESULTS)
def result(request):
    return RESULTS[request.param]()


@pytest.fixture
def html(result):
    return page(ReportData.of(result))


def test_the_document_is_whole(html):
    found = outline(html)
    assert html.startswith("<!DOCTYPE html>")
    assert not found.problems
    assert not found.open
    assert found.of("html") == [{"lang": "en"}]
    assert found.words("title")


def test_landmarks_and_headings_are_in_order(html):
    found = outline(html)
    for landmark in ("header", "nav", "main", "footer"):
        assert len(found.of(landmark)) == 1
    ranks = [int(tag[1]) for tag, _ in found.tags if re.fullmatch("h[1-6]", tag)]
    assert ranks[0] == 1
    assert ranks.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(ranks))


def test_every_name_is_unique_and_every_reference_has_one(html):
    found = outline(html)
    names = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(names) == len(set(names))
    used = [word for _, attrs in found.tags for word in attrs.get("aria-labelledby", "").split()]
    links = [attrs["href"][1:] for attrs in found.of("a")]
    assert set(used) | set(links) <= set(names)
    assert len(links) == len(found.of("section"))


def test_every_picture_has_words_and_a_table_beside_it(html):
    found = outline(html)
    pictures = [attrs for attrs in found.of("svg") if "role" in attrs]
    assert all(attrs["role"] == "img" and attrs["aria-labelledby"] for attrs in pictures)
    assert len(found.of("desc")) == len(pictures)
    sections = re.findall("<section.*?</section>", html, re.DOTALL)
    assert all("<table" in part or 'role="img"' not in part for part in sections[1:])


def test_every_table_has_a_caption_and_scopes(html):
    found = outline(html)
    assert len(found.of("caption")) == len(found.of("table"))
    assert {attrs.get("scope") for attrs in found.of("th")} <= {"col", "row"}


def test_nothing_comes_from_elsewhere(html):
    found = outline(html)
    assert not {"script", "link", "iframe", "img", "object", "base", "form"} & {
        tag for tag, _ in found.tags
    }
    for _, attrs in found.tags:
        assert not any(name.startswith("on") for name in attrs)
        assert not {"src", "xlink:href", "data"} & set(attrs)
        assert attrs.get("href", "#").startswith("#")
    assert "url(" not in html
    assert "default-src 'none'" in html


def test_equal_results_give_equal_bytes(result):
    first, second = (page(ReportData.of(result)).encode() for _ in range(2))
    assert first == second


def test_usual_pages_are_small(html):
    assert len(html.encode()) < 120_000


def test_hostile_names_stay_text():
    html = page(ReportData.of(hostile_apprentice()), title="<b>t</b>", note="</p><script>n")
    found = outline(html)
    shown = [data for _, data in found.texts]
    assert "<b>t</b>" in shown
    assert "</p><script>n" in shown
    for name in HOSTILE[:5]:
        plain = name.replace("\u202e", "")
        assert any(plain in data for data in shown), name
    assert "\u202e" not in html


def exact_values(html):
    return {float(attrs["value"]) for attrs in outline(html).of("data")}


def test_the_numbers_are_those_of_the_certificate():
    certificate = grid_apprentice().certificate
    shown = exact_values(page(ReportData.of(grid_apprentice())))
    horizon = certificate.problem.world.effective_horizon
    wanted = [
        certificate.bound, certificate.normalised_bound, certificate.failure_probability,
        certificate.gap_on_data, certificate.lower_bound, certificate.true_lower_bound,
        *(term.value for term in certificate.terms),
        *(term.value / horizon for term in certificate.terms),
        *(way.bound for way in certificate.combinations),
        *(end for one in certificate.expert_intervals for end in (one.low, one.high)),
        *certificate.expectations, *certificate.problem.target,
        *(value for one in certificate.budgets for value in (one.spent, one.limit)),
    ]  # fmt: skip
    assert {float(value) for value in wanted} <= shown


def test_the_sentence_premises_and_advice_are_shown():
    certificate = grid_apprentice().certificate
    text = "".join(data for _, data in outline(page(ReportData.of(grid_apprentice()))).texts)
    assert f"at most {certificate.bound:.4g} more than the expert" in text
    for premise in certificate.premises:
        assert premise.name in text
        assert premise.detail in text
    for sentence in certificate.advice().split("\n"):
        assert sentence in text


def test_a_page_begins_with_date_question_result_and_assumptions():
    day = datetime.date(2026, 3, 1)
    html = page(ReportData.of(grid_apprentice()), date=day)
    places = [
        html.index(words)
        for words in (
            '<time datetime="2026-03-01">1 March 2026</time>', "<h1>",
            '<p class="question">Asked: ', '<p class="lead">', "What it assumes",
            "<strong>declared:</strong> independent",
            "<strong>tested, not refuted:</strong> no episode", '<p class="big', "<svg",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    (lead,) = re.findall('<p class="lead">(.*?)</p>', html)
    assert "more than the expert" in lead
    assert f"{grid_apprentice().certificate.share:.1%}"[:-2] in lead
    assert "Premises" not in lead
    assert "<time" not in page(ReportData.of(grid_apprentice()))


def test_formulas_and_symbols_are_folded_away_and_zeros_share_a_row():
    html = page(ReportData.of(grid_apprentice()))
    opened, folded = re.sub("<details>.*?</details>", "", html, flags=re.DOTALL), html
    for words in ("Symbols: ", "gap_W", "Other ways to bound it"):
        assert words in folded
        assert words not in opened
    terms = opened.partition('id="terms"')[2].partition("</section>")[0]
    assert "evaluation and rounding, too small to matter" in terms
    assert "<bdi>rounding</bdi>" not in terms
    assert "<bdi>sampling</bdi>" in terms


def ticks(html):
    """Of the result, before any other section."""
    return html.partition("</section>")[0].count("badge good")


def test_a_bound_above_half_of_what_is_possible_never_has_a_tick():
    world, basis, expert = jm.gallery.grid(4)
    seen = set()
    for count, premise in itertools.product(
        (2, 5, 20, 200), ((), jm.Rational(regret_per_step=0.01))
    ):
        demos = jm.record(world, expert, trajectories=count, horizon=40, seed=0)
        certificate = jm.learn(world, basis, demos, expert_is=premise).certificate
        shares = [certificate.share]
        shares += [] if certificate.regret is None else [regret_share(certificate)]
        strong = sum(share <= 0.5 for share in shares)
        assert ticks(page(ReportData.of(certificate))) == strong
        assert ticks(certificate._repr_html_()) == strong
        words = certificate.table()
        assert ("weak" in words or "vacuous" in words) == (strong < len(shares))
        seen |= {share > 0.5 for share in shares}
    assert seen == {True, False}


def test_rewards_are_shown_as_they_were_given():
    found = comparison_of(ReportData.of(driving_apprentice()))
    assert found.rewards
    assert found.expert.middle == pytest.approx([5.25, 4.15, 5.0])
    assert (found.expert.low <= found.expert.high).all()
    assert (found.apprentice.middle >= found.expert.middle - 1e-6).all()


def sections_of(html):
    return [attrs["id"] for attrs in outline(html).of("section")]


def test_sections_without_data_are_left_out():
    found = sections_of(page(ReportData.of(grid_apprentice())))
    assert len(found) == len(WHOLE) - 3
    assert not {"recovered", "nonlinear", "regret"} & set(found)
    assert not {"maps", "budgets"} & set(sections_of(page(ReportData.of(driving_apprentice()))))
    assert not {"maps", "budgets", "convergence"} & set(sections_of(page(ReportData.of(large()))))
    assert "costs" in sections_of(page(ReportData.of(large())))
    assert not {"costs", "budgets"} & set(sections_of(page(ReportData.of(forward()))))


def test_the_regret_under_the_experts_own_cost_has_a_section():
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=3, horizon=20, seed=0)
    premise = jm.Rational(regret_per_step=0.1)
    html = page(ReportData.of(jm.learn(world, basis, demos, expert_is=premise)))
    assert "regret" in sections_of(html)
    assert "recorded actions cost at most 0.1 more" in html
    assert html.count("Weights that the records leave open") >= 2


def test_a_failed_premise_is_shown_at_once():
    world = jm.World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9)
    demos = jm.Demonstrations([0, 0] * 30, [0] * 30, range(31))
    apprentice = jm.learn(world, jm.CostBasis([[0.0], [1.0]]), demos)
    assert not apprentice.certificate.valid
    html = page(ReportData.of(apprentice))
    assert "not valid: a premise failed" in html
    assert "this sum proves nothing" in html


def test_a_broken_budget_is_shown():
    apprentice = grid_apprentice()
    problem = apprentice.problem
    tight = jm.Budget(cost=problem.constraints[0].cost, at_most=0.5, name="wear")
    strict = jm.Apprenticeship(
        problem.world, problem.basis, problem.expectation, constraints=[tight]
    )
    html = page(ReportData.of(jm.certify(strict, jm.Policy.uniform(problem.world))))
    assert "a budget is not shown to be kept" in html
    assert "NOT certified" in html


def test_budgets_that_were_sampled_are_shown_with_their_probability():
    network = jm.gallery.queues(4, buffers=(3, 2, 2, 3), discount=0.9)
    demos = jm.record(network.world, network.longer, trajectories=30, horizon=40, seed=0)

    def first(states, actions):
        return network.costs.at(states, actions)[:, [0]]

    cost = jm.CostFunctions(first, ["queue"], lowest=0, highest=1)
    problem = jm.Apprenticeship(
        network.world, network.costs, demos, constraints=[jm.Budget(cost, 0.5, name="short")]
    )
    evaluation = jm.Rollouts(trajectories=100, horizon=100)
    certificate = jm.certify(problem, network.longer, evaluation=evaluation)
    html = page(ReportData.of(certificate))
    assert "budgets" in sections_of(html)
    assert f"They rest on a sample: these bounds hold together{certificate.budgets[0].chance}." in (
        html
    )
    assert "a budget is not shown to be kept" in html


def test_weights_that_a_method_inferred_are_listed():
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=30, horizon=40, seed=0)
    learned = jm.learn(world, basis, demos, solver=jm.solvers.Projection())
    weights = learned.answer.recovered
    html = page(ReportData.of(learned))
    assert "recovered" in sections_of(html)
    assert {float(value) for value in weights} <= exact_values(html)


def test_many_costs_are_cut_with_a_word_about_it():
    world, basis, expert = jm.gallery.grid(9, macro_cells=9)
    demos = jm.record(world, expert, trajectories=30, horizon=40, seed=0)
    html = page(ReportData.of(jm.certify(jm.Apprenticeship(world, basis, demos), expert)))
    assert "Drawn are the 16 of 81 with the largest differences." in html
    assert html.count("cell ") < 4 * 81


def test_writing_and_reading_back(tmp_path):
    apprentice = grid_apprentice()
    path = tmp_path / "report.html"
    day = datetime.date(2026, 3, 1)
    jm.report.write_report(apprentice, path, date=day)
    assert path.read_bytes() == page(ReportData.of(apprentice), date=day).encode()
    apprentice.report(path)
    assert "<time datetime=" in path.read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(InvalidFile, match="not a directory"):
        apprentice.report(tmp_path / "nowhere" / "report.html")


def test_something_else_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no report on a int"):
        jm.report.write_report(3, tmp_path / "report.html")


def test_notebooks_show_the_same_numbers():
    apprentice = grid_apprentice()
    for thing in (apprentice, apprentice.certificate):
        html = thing._repr_html_()
        found = outline(html)
        assert not found.problems
        assert exact_values(html) >= {apprentice.certificate.bound}
        assert not {"html", "script", "h1"} & {tag for tag, _ in found.tags}
        assert len(html) < 60_000


def test_bounds_are_drawn_by_premise():
    world, basis, _ = jm.gallery.grid(4)
    expert = jm.plan(world, basis.on(world) @ np.eye(basis.num_costs)[0]).policy
    demos = jm.record(world, expert, trajectories=20, horizon=60, seed=0)
    plain = jm.learn(world, basis, demos, cost_class=jm.Simplex())
    assert bounds_by_premise(plain.certificate) == []
    premises = [jm.Deterministic(), jm.Rational(regret_per_step=0.001)]
    known = jm.learn(world, basis, demos, cost_class=jm.Simplex(), expert_is=premises)
    certificate = known.certificate
    (_, trivial), (_, alone), laws, own = bounds_by_premise(certificate)
    assert trivial == certificate.trivial_bound
    assert alone >= certificate.bound
    assert laws == ("deterministic expert, gap to it", certificate.bound)
    assert own == ("rational expert, regret", certificate.regret_bound)
    assert "Bounds by premise" in page(ReportData.of(known))


def test_a_regret_is_shown_without_its_zeros_and_as_large_when_it_was_saved(tmp_path):
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=20, horizon=60, seed=0)
    premise = jm.Rational(regret_per_step=0.01)
    known = jm.learn(world, basis, demos, cost_class=jm.Simplex(), expert_is=premise)
    known.save(tmp_path / "run")
    saved = read_run(tmp_path / "run")
    assert regret_share(saved.certificate) == regret_share(known.certificate) < 1
    terms = regret(saved, "").content["terms"]
    assert [one["name"] for one in terms][-1] == "the rest"
    assert len(terms) < len(known.certificate.regret.terms)
    assert all(one["meaning"] for one in terms)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda world: world, "discounted and summed over all future steps"),
        (lambda world: world.with_horizon(5), "over its 5 steps"),
        (lambda world: world.with_average_cost(), "cost of a step on average"),
    ],
)
def test_totals_are_named_as_what_they_are_in_every_section(change, words):
    world, basis, _ = jm.gallery.grid(4)
    there = change(world)
    problem = jm.Apprenticeship(there, basis, jm.ExpertExpectation(np.ones(basis.num_costs)))
    shown = page(ReportData.of(jm.certify(problem, jm.Policy.uniform(there))))
    assert shown.count(words) == 2
    assert ("1 − discount" in shown) == ("future" in words)
