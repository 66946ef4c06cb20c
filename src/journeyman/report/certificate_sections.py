"""The result: one sentence, the bound in large figures, and what to compare it with."""

import re
from itertools import accumulate, pairwise

import numpy as np

from journeyman.certificate import Certificate, LargeCertificate
from journeyman.certificate.certificate import percent
from journeyman.certificate.intervals import BudgetCertificate
from journeyman.certificate.presentation import figures_beside, legend_in_words
from journeyman.certificate.terms import Combination, Premise, Term, Verdict
from journeyman.report.drawing import (
    Across,
    Content,
    Element,
    axis,
    label,
    name_of,
    picture,
    shortened,
    tag,
)
from journeyman.report.elements import Place, above, badge, beside, figures, legend, table
from journeyman.report.line_chart import SUPERSCRIPTS
from journeyman.report.numbers import MINUS, column, exactly, figure, share
from journeyman.report.report_data import Subject

PREMISES = " Premises: "
"""Where the sentence on the bound ends and that on its grounds begins."""
ROUNDING = 1e-10
"""Of 2 N/(1 - discount), as in the sentence."""
WORDS = {
    "vacuous": "vacuous: no more than holds for every policy",
    "weak": "weak: above half of what is possible at all",
}
SHORT = 7
"""Characters of a figure that is set as large as can be."""
POWER = re.compile(r"(?<=\d)e([+-]\d+)\b")
HYPHEN = re.compile(r"(?<=\s)-(?=\d)")
"""Powers of ten and signs as they stand in the sentence."""


def result(subject: Subject, place: Place) -> Element:
    """The first section of every report."""
    words = HYPHEN.sub(MINUS, POWER.sub(_raised, subject.certificate.summary()))
    claim, _, grounds = words.partition(PREMISES)
    return place.section(
        "result", "Result",
        tag("p", claim, cls="lead"),
        tag("p", f"Premises: {grounds}", cls="note") if grounds else None,
        tag("div", _headline(subject), _figures(subject), cls="headline"),
    )  # fmt: skip


def _headline(subject: Subject) -> Element:
    """The bound, its verdict, and how much of the trivial bound it is."""
    certificate = subject.certificate
    part = certificate.share
    told = f"{percent(part)} of {_scale(subject)}"
    long = len(figure(certificate.bound)) > SHORT
    than = "more than the expert, at most" if subject.has_expert else "expected cost, at most"
    if subject.has_expert and certificate.bound < 0:
        than += ": it surpasses the expert"
    return tag(
        "div",
        tag("p", exactly(certificate.bound), cls="big long" if long else "big"),
        tag("p", f"cost units {than}"),
        tag("p", *_verdict(subject)),
        tag("div", tag("div", style=f"width:{100 * min(max(part, 0.0), 1.0):.4g}%"), cls="meter",
            aria_hidden="true"),
        tag("p", told, cls="note"),
        cls="bound",
    )  # fmt: skip


def _scale(subject: Subject) -> str:
    """What the meter measures."""
    certificate = subject.certificate
    most = figure(certificate.trivial_bound)
    if certificate.known_cost:
        least = figure(certificate.least_possible)
        return f"the way from the least possible cost {least} to the largest {most}"
    return f"the trivial bound {most}, the largest possible gap"


def _verdict(subject: Subject) -> list[Content]:
    certificate = subject.certificate
    if not certificate.valid:
        return [badge("bad", "not valid: a premise failed")]
    found: list[Content] = [
        badge("warn", WORDS[certificate.strength])
        if certificate.strength
        else badge("good", "certified")
    ]
    explicit = subject.explicit
    if explicit is not None and explicit.alarm:
        found += [" ", badge("bad", "alarm: the data refute the model")]
    if explicit is not None and not all(budget.is_kept for budget in explicit.budgets):
        found += [" ", badge("bad", "a budget is not shown to be kept")]
    return found


def _figures(subject: Subject) -> Element:
    """What else is known, each figure with its meaning."""
    certificate, explicit = subject.certificate, subject.explicit
    discount = 1 - 1 / subject.horizon
    entries: list[tuple[str, float, str]] = [
        ("per step", certificate.normalised_bound, f"the bound times 1 − {discount:.6g}"),
        ("failure probability", certificate.failure_probability, "of the bound, at most"),
    ]
    if explicit is not None:
        entries += figures_beside(explicit)
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name),
                tag("dd", exactly(value, _shown(value, certificate.problem.gap_scale)),
                    tag("span", words, cls="note")))
            for name, value, words in entries
        ),
        cls="figures",
    )  # fmt: skip


def _raised(found: re.Match[str]) -> str:
    """A power of ten as it is written by hand."""
    return f"·10{str(int(found[1])).translate(SUPERSCRIPTS)}"


def _shown(value: float, unit: float) -> str:
    """A figure, shown as zero when it is no more than rounding."""
    return "≈ 0" if 0 < abs(value) < ROUNDING * unit else figure(value)


# What the bound is made of: every term starts where the one before it ends.

ROW, BAR, TEXT = 46, 14, 14
"""Pixels of a row, of its bar, and from the top of a row to the foot of its text."""
LONGEST_TERM = 34
MOST_WAYS = 8
GAP, COST = "gap to the estimate", "expected cost"
MEANINGS = {
    GAP: "how much more the policy costs than the estimate of the expert that this bound uses",
    COST: "what the policy costs, evaluated exactly",
    "evaluation": "the policy's own costs, as exactly as the linear system was solved",
    "rounding": "what double precision can have hidden",
    "sampling": "the expert is known from a sample only",
    "outliers": "trajectories beyond what the estimate allows for",
    "truncation": "what happens after the records end",
    "model": "the world is an estimate: in the true one the policy may cost more",
    "rollout sampling": "the policy is known from rollouts only",
    "rollout truncation": "what happens after the rollouts end",
    "flow residual": "the measure behind the policy is not quite a flow",
    "flow violation": "the measure behind the policy is not quite a flow",
    "negativity": "the measure behind the policy is not quite positive",
    "expectations": "the policy's costs are known from sampled rows only",
    "Lemma 2": "the measure behind the policy is not quite one of visits",
}


def terms(subject: Subject, place: Place) -> Element:
    """The terms of the best way as picture and table, then the other ways."""
    certificate = subject.certificate
    best, horizon = certificate.best, subject.horizon
    return place.section(
        "terms", "What the bound is made of",
        tag("p", _introduction(subject)),
        beside(_waterfall(best, place), _terms_table(best, horizon)),
        tag("dl", *(_told(term) for term in best.terms), cls="terms"),
        _symbols(certificate),
        _ways(subject, place),
    )  # fmt: skip


def _introduction(subject: Subject) -> str:
    certificate = subject.certificate
    words = (
        "In cost units: expected cost, discounted and summed over all future steps. Per step: "
        "the same times 1 − discount."
    )
    if not certificate.valid:
        return f"A premise failed, so this sum proves nothing; the trivial bound holds. {words}"
    if certificate.best.bound > certificate.trivial_bound:
        return (
            f"The sum exceeds the trivial bound {figure(certificate.trivial_bound)}, which holds "
            f"in its place. {words}"
        )
    return words


def _waterfall(best: Combination, place: Place) -> Element:
    ends = list(accumulate((term.value for term in best.terms), initial=0.0))
    scale = Across.covering([*ends, best.bound], zero=True)
    bottom = ROW * (len(best.terms) + 1)
    rows: list[Element] = []
    shown = column([*(term.value for term in best.terms), best.bound])
    for index, (term, (start, end)) in enumerate(zip(best.terms, pairwise(ends), strict=True)):
        kind = "apprentice" if term.name in (GAP, COST) else "doubt"
        sign = "+" if index and shown[index][0] not in f"{MINUS}≈" and term.value else ""
        rows += _bar(scale, index, term.name, f"{sign}{shown[index]}", (start, end), kind)
        turn = scale.at(end)
        top = ROW * index + TEXT + 6 + BAR
        rows.append(tag("line", x1=turn, x2=turn, y1=f"{top}", y2=f"{top + ROW - BAR}",
                        cls="link"))  # fmt: skip
    last = len(best.terms)
    rows += _bar(scale, last, "sum", shown[last], (0.0, best.bound), "total")
    told = ", then ".join(f"{term.name} {figure(term.value)}" for term in best.terms)
    return picture(
        place.name("waterfall"), "Waterfall of the terms of the bound",
        f"Bars one after the other: {told}; together {figure(best.bound)}.",
        bottom + 24, *axis(scale, last + 1, ROW, TEXT + 2), *rows,
    )  # fmt: skip


def _bar(
    scale: Across, index: int, name: str, value: str, ends: tuple[float, float], kind: str
) -> list[Element]:
    """Name and figure above a bar; its end is marked, however short it is."""
    top, (low, high) = ROW * index, sorted(ends)
    y, height = f"{top + TEXT + 6}", f"{BAR}"
    x = scale.at(ends[1])
    strong = " strong" if kind == "total" else ""
    return [
        label(shortened(name, LONGEST_TERM), "0%", top + TEXT, cls=f"start over{strong}"),
        label(value, "100%", top + TEXT, cls=f"end over{strong}"),
        tag("rect", x=scale.at(low), y=y, width=scale.width(low, high), height=height,
            cls=f"bar {kind}"),
        tag("line", x1=x, x2=x, y1=y, y2=f"{top + TEXT + 6 + BAR}", cls=f"tip {kind}"),
    ]  # fmt: skip


def _terms_table(best: Combination, horizon: float) -> Element:
    names = [*(name_of(term.name) for term in best.terms), tag("strong", "sum")]
    values = [*(term.value for term in best.terms), best.bound]
    shares = [share(value / best.bound) if best.bound > 0 else "" for value in values]
    rows = zip(
        names, figures(values), figures([value / horizon for value in values]), shares,
        strict=True,
    )  # fmt: skip
    return table("Terms of the bound", ["term", "cost units", "per step", "share"], list(rows))


def _told(term: Term) -> Element:
    """The term, what it means, its formula and what it rests on."""
    meaning = MEANINGS.get(term.name, "")
    return tag(
        "div", tag("dt", name_of(term.name)),
        tag("dd", meaning) if meaning else None,
        tag("dd", tag("code", term.formula), f" · {term.source}"),
    )  # fmt: skip


def _symbols(certificate: Certificate | LargeCertificate) -> Element | None:
    words = legend_in_words(
        certificate.best.terms, [way.kind for way in certificate.combinations[:MOST_WAYS]]
    )
    return tag("p", f"Symbols: {words}.") if words else None


def _ways(subject: Subject, place: Place) -> Element | None:
    """Other ways to bound the gap, where there are several."""
    ways = subject.certificate.combinations
    if len(ways) < 2:
        return None
    shown, horizon = ways[:MOST_WAYS], subject.horizon
    values = [way.bound for way in shown]
    rows = zip(
        [f"{way.kind}, {way.estimate}" for way in shown], figures(values),
        figures([value / horizon for value in values]), strict=True,
    )  # fmt: skip
    left = f" ({len(shown)} of {len(ways)})" if len(shown) < len(ways) else ""
    caption = f"Ways to bound the gap{left}: evaluation of the policy, estimate of the expert"
    return tag(
        "div", place.heading("Other ways to bound it"),
        tag("p", "All of them hold together; the smallest is taken."),
        table(caption, ["way", "cost units", "per step"], list(rows)), cls="narrow",
    )  # fmt: skip


# Budgets: what the policy spends of each at most, and how surely, beside its limit.

LONGEST = 30


def budgets(subject: Subject, place: Place) -> Element | None:
    """None without budgets."""
    found = subject.explicit.budgets if subject.explicit is not None else ()
    if not found:
        return None
    return place.section(
        "budgets", "Budgets",
        tag("p", "A bound on what the policy spends, discounted and summed over all future steps, "
            "against the limit that was set. Demonstrations play no part in it.",
            _probability(found)),
        legend(("total", "spent at most"), ("limit", "limit")),
        beside(_budgets_picture(found, place), _budgets_table(found, subject.horizon)),
    )  # fmt: skip


def _probability(found: tuple[BudgetCertificate, ...]) -> str:
    """In a world whose laws were estimated no budget is kept for certain."""
    chance = next((one.chance for one in found if one.chance), "")
    if not chance:
        return ""
    return f" The laws of the world were estimated: these bounds hold together{chance}."


def _budgets_picture(found: tuple[BudgetCertificate, ...], place: Place) -> Element:
    values = [value for one in found for value in (one.spent, one.limit)]
    scale = Across.covering(values, zero=True)
    bottom, rows = ROW * len(found), []
    for index, one in enumerate(found):
        top = ROW * index
        low, high = sorted((0.0, one.spent))
        y, foot, x = top + TEXT + 8, top + TEXT + 8 + BAR, scale.at(one.limit)
        words = "kept" if one.is_kept else "NOT certified"
        rows += [
            label(shortened(one.name, LONGEST), "0%", top + TEXT, cls="start over"),
            label(words, "100%", top + TEXT, cls=f"end over {'quiet' if one.is_kept else 'bad'}"),
            tag("rect", x=scale.at(low), y=f"{y}", width=scale.width(low, high), height=f"{BAR}",
                cls="bar total"),
            tag("line", x1=x, x2=x, y1=f"{y - 5}", y2=f"{foot + 5}", cls="tip limit"),
        ]  # fmt: skip
    told = "; ".join(
        f"{shortened(one.name, LONGEST)}: at most {figure(one.spent)} of {figure(one.limit)}"
        for one in found
    )
    return picture(
        place.name("spending"), "Spending against limits", f"{told}.", bottom + 24,
        *axis(scale, len(found), ROW, TEXT + 4), *rows,
    )  # fmt: skip


def _budgets_table(found: tuple[BudgetCertificate, ...], horizon: float) -> Element:
    spent, limits = [one.spent for one in found], [one.limit for one in found]
    columns = [
        [above(*cell) for cell in zip(
            figures(values, [*spent, *limits]), figures([value / horizon for value in values]),
            strict=True,
        )]
        for values in (spent, limits)
    ]  # fmt: skip
    names = [tag("span", name_of(one.name), tag("br"), _budget_badge(one)) for one in found]
    return table(
        "Budgets in units of their costs, per step below",
        ["budget", "spent at most", "limit"], list(zip(names, *columns, strict=True)),
    )  # fmt: skip


def _budget_badge(budget: BudgetCertificate) -> Element:
    if budget.is_kept:
        return badge("good", f"kept{budget.chance}")
    return badge("bad", "not certified")


# What the result rests on, and what would make it better: premises and advice.

KINDS = {Verdict.TESTED: "good", Verdict.DECLARED: "plain", Verdict.FAILED: "bad"}


def premises(subject: Subject, place: Place) -> Element | None:
    """None where nothing was supposed."""
    found = subject.certificate.premises
    if not found:
        return None
    return place.section(
        "premises", "Premises",
        tag("p", "The bound holds if these do. A test that does not refute a premise is no proof "
            "of it; what was declared, nobody has tested."),
        table("What the guarantee rests on", ["premise and verdict", "detail"],
              [_premise_row(one) for one in found], words=2),
    )  # fmt: skip


def _premise_row(premise: Premise) -> tuple[Element, str]:
    level = f"; level {premise.level:g}" if premise.level else ""
    verdict = badge(KINDS[premise.verdict], premise.verdict.value)
    return tag("span", premise.name, tag("br"), verdict), f"{premise.detail}{level}"


def remedies(subject: Subject, place: Place) -> Element:
    """The sentences of `certificate.advice()`."""
    sentences = [line for line in subject.certificate.advice().split("\n") if line]
    return place.section(
        "remedies", "What would help", tag("ul", *(tag("li", _sentence(one)) for one in sentences))
    )


def _sentence(text: str) -> str:
    """Begins with a capital letter and ends with a full stop."""
    first = text[:1].upper() + text[1:]
    return first if first.endswith((".", "!", "?")) else f"{first}."


# The cost that a method has inferred: names and weights.

MOST_LISTED = 64
"""Costs in the table; of more, those with the largest weights."""


def recovered(subject: Subject, place: Place) -> Element | None:
    """None where the method has no cost of its own."""
    weights = subject.recovered
    if weights is None or not np.isfinite(weights).all():
        return None
    basis = subject.certificate.problem.basis
    kind, sign = ("reward", "sought") if basis.rewards else ("cost", "avoided")
    order = np.argsort(-np.abs(weights), kind="stable")[:MOST_LISTED]
    listed = [float(weights[i]) for i in order]
    cells = [exactly(value, text) for value, text in zip(listed, column(listed), strict=True)]
    rows = [(name_of(basis.names[i]), cell) for i, cell in zip(order, cells, strict=True)]
    left = "" if len(rows) == weights.size else f" Listed are {len(rows)} of {weights.size:,}."
    return place.section(
        "recovered", f"The {kind} that the method has inferred",
        tag("p", f"Weights of the method's own {kind}, inferred from the expert or most different "
            f"between expert and apprentice. Where a weight is positive the {kind} is {sign}. The "
            "scale is the method's own: signs and ratios can be compared. Nothing is certified "
            f"about them.{left}"),
        table("Weights, the largest first", [kind, "weight"], rows),
    )  # fmt: skip
