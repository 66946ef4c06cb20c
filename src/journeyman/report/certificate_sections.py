"""What a certificate shows, section by section: the result, the terms of the bound, budgets,
premises, advice, and the cost that the method has inferred. Their HTML is in templates/sections.
"""

import re
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from journeyman.certificate.certificate import Certificate
from journeyman.certificate.consistency import NAME
from journeyman.certificate.evaluation import BudgetCertificate
from journeyman.certificate.presentation import (
    COST,
    GAP,
    MEANINGS,
    averages_of,
    brief,
    has_goal,
    large_and_negligible,
    layers_of,
    names_in_words,
    numbers_beside,
    percent,
    premises_of_the_regret,
    regret_in_words,
    regret_share,
    regret_strength,
    symbols_of,
    with_names,
)
from journeyman.certificate.terms import Combination, Premise, PremiseStatus, Term, total
from journeyman.problem import cost_ranges
from journeyman.problem.expert_premises import ABOUT_A_COST
from journeyman.report.drawing import Across, Element, axis, label, picture, shortened, tag
from journeyman.report.numbers import (
    MINUS,
    SUPERSCRIPTS,
    column,
    exact,
    exact_column,
    number,
    share,
)
from journeyman.report.rendering import Section
from journeyman.report.report_data import ReportData

ROUNDING = 1e-10
"""Of 2 N/(1 - discount), as in the sentence."""
STRENGTHS = {
    "vacuous": "vacuous: no more than holds for every policy",
    "weak": "weak: above half of what is possible at all",
}
POWER = re.compile(r"(?<=\d)e([+-]\d+)\b")
HYPHEN = re.compile(r"(?<=\s)-(?=\d)")
"""Powers of ten and signs as they stand in the sentence."""
ROW, BAR, TEXT = 46, 14, 14
"""Pixels of a row, of its bar, and from the top of a row to the foot of its text."""
QUICK = 20_000
"""Pairs times costs up to which the weights that records leave open are searched for."""
LONGEST_TERM, LONGEST_NAME = 34, 30
REST = "the rest"
"""The row of the terms that are too small to be seen."""
MOST_WAYS, MOST_WEIGHTS = 8, 64
"""Ways to bound the gap, and costs by the size of their weights, in the tables."""
BADGES = {
    PremiseStatus.TESTED: "good",
    PremiseStatus.DECLARED: "plain",
    PremiseStatus.FAILED: "bad",
}


def result(data: ReportData, prefix: str) -> Section:
    """The bound in one sentence and in large digits, what it assumes, and what to compare it
    with."""
    certificate = data.certificate
    meaning = "cost units of expected cost, at most"
    if not certificate.known_cost:
        better = ": it does better than the expert" if certificate.bound < 0 else ""
        meaning = f"cost units more than the expert, at most{better}"
    own = premises_of_the_regret(certificate)
    content = {
        "claim": _written(brief(certificate)), "others": _other_numbers(data),
        "boxes": [
            {
                "bound": exact(certificate.bound), "meaning": meaning, "badges": _badges(data),
                "range": f"{percent(certificate.share)} of {_range(data)}",
                "width": _width(certificate.share),
            },
            *_regret_box(certificate),
        ],
        "assumptions": _assumptions(certificate.premises),
        "own": _assumptions(own),
    }  # fmt: skip
    return Section("result", "Result", content)


def _regret_box(certificate: Certificate) -> list[dict[str, Any]]:
    """The regret under the expert's own cost, beside the gap; nothing where none is claimed."""
    regret = certificate.regret
    if regret is None:
        return []
    strength, share = regret_strength(certificate), regret_share(certificate)
    badge = ("warn", STRENGTHS[strength]) if strength else ("good", "certified")
    return [
        {
            "bound": exact(regret.bound), "width": _width(share),
            "meaning": "cost units more than the best policy, at most, under the cost that the "
            "expert itself minimises",
            "badges": [badge if regret.valid else ("bad", "not valid: a premise failed")],
            "range": f"{percent(share)} of the largest possible",
        }
    ]  # fmt: skip


def _width(share: float) -> str:
    """Of a meter, in per cent."""
    return f"{100 * min(max(share, 0.0), 1.0):.4g}"


def _assumptions(premises: tuple[Premise, ...]) -> list[tuple[str, str]]:
    """Premises by name, by what became of them: those that failed first. No tick stands beside
    them: premises that hold do not make a weak bound a strong one."""
    order = (PremiseStatus.FAILED, PremiseStatus.DECLARED, PremiseStatus.TESTED)
    named = {one: [found.name for found in premises if found.status is one] for one in order}
    return [(one.value, "; ".join(names)) for one, names in named.items() if names]


def _written(words: str) -> str:
    """Powers of ten and signs as they are written by hand."""
    return HYPHEN.sub(MINUS, POWER.sub(_raised, words))


def _raised(found: re.Match[str]) -> str:
    """A power of ten as it is written by hand."""
    return f"·10{str(int(found[1])).translate(SUPERSCRIPTS)}"


def _range(data: ReportData) -> str:
    """What the meter measures."""
    certificate = data.certificate
    most = number(certificate.trivial_bound)
    if certificate.known_cost:
        least = number(certificate.least_possible)
        return f"the way from the least possible cost {least} to the largest {most}"
    return f"the largest possible gap, {most}"


def _badges(data: ReportData) -> list[tuple[str, str]]:
    certificate = data.certificate
    if not certificate.valid:
        return [("bad", "not valid: a premise failed")]
    strength = certificate.strength
    found = [("warn", STRENGTHS[strength]) if strength else ("good", "certified")]
    if certificate.alarm:
        found.append(("bad", "alarm: the data refute the model"))
    if not all(budget.is_kept for budget in certificate.budgets):
        found.append(("bad", "a budget is not shown to be kept"))
    return found


def _other_numbers(data: ReportData) -> list[tuple[str, Any, str]]:
    """What else is known, each number with its name and its meaning; rounding is shown as zero."""
    certificate, discount = data.certificate, 1 - 1 / data.horizon
    per_step = f"the bound times 1 − {discount:.6g}"
    if layers_of(certificate.problem) is not None:
        per_step = f"the bound over {data.horizon:.6g}, the time of an episode"
    if has_goal(certificate.problem):
        per_step = f"the bound over {data.horizon:g}, what steps are bounded by"
    if averages_of(certificate.problem) is not None:
        per_step = "the bound itself, which is about averages a step"
    entries: list[tuple[str, float, str]] = [
        ("per step", certificate.normalised_bound, per_step),
        ("failure probability", certificate.failure_probability, "of the bound, at most"),
    ]
    if certificate.is_exact:
        entries += numbers_beside(certificate)
    least = ROUNDING * certificate.problem.gap_scale
    return [
        (name, exact(value, "≈ 0" if 0 < abs(value) < least else None), meaning)
        for name, value, meaning in entries
    ]


def terms(data: ReportData, prefix: str) -> Section:
    """What the bound is made of: every term starts where the one before it ends. Terms too small to
    be seen share a row; formulas and symbols are folded away."""
    certificate, best = data.certificate, data.certificate.best
    shown = _merged(best.terms)
    *rows, last = _term_rows(shown, best.bound, data)
    ways = certificate.combinations[:MOST_WAYS]
    content = {
        "introduction": _introduction(data),
        "waterfall": _waterfall(best, shown, f"{prefix}waterfall"),
        "rows": rows, "sum": last, "every": _term_rows(best.terms, best.bound, data)[:-1],
        "symbols": symbols_of(certificate, best.terms, [way.kind for way in ways]),
        **_other_ways(data),
    }  # fmt: skip
    return Section("terms", "What the bound is made of", content, link="Terms")


def _merged(found: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms, those too small to be seen as one."""
    large, negligible = large_and_negligible(found)
    if not negligible:
        return found
    return (*large, Term(REST, total(tuple(negligible)), names_in_words(negligible), ""))


def _term_rows(found: tuple[Term, ...], bound: float, data: ReportData) -> list[dict[str, Any]]:
    """A row for each term, and the last one for their sum."""
    values = [*(term.value for term in found), bound]
    shares = [share(value / bound) if bound > 0 else "" for value in values]
    columns = exact_column(values), exact_column(_per_step(values, data)), shares
    rows: list[dict[str, Any]] = [
        {"value": value, "per_step": step, "share": part}
        for value, step, part in zip(*columns, strict=True)
    ]
    for row, term in zip(rows, found, strict=False):
        row |= {
            "name": term.name, "formula": term.formula, "source": term.source,
            "meaning": _meaning(term),
        }  # fmt: skip
    return rows


def _meaning(term: Term) -> str:
    known = MEANINGS.get(term.name, "")
    return f"{term.formula}, too small to matter" if term.name == REST else known


def _per_step(values: list[float], data: ReportData) -> list[float]:
    return [value / data.horizon for value in values]


def _introduction(data: ReportData) -> str:
    certificate = data.certificate
    total, per_step = totals_in_words(data)
    words = f"In cost units: {total}." + (f" Per step: {per_step}." if per_step else "")
    if not certificate.valid:
        return f"A premise failed, so this sum proves nothing; the trivial bound holds. {words}"
    if certificate.best.bound > certificate.trivial_bound:
        return (
            f"The sum exceeds the trivial bound {number(certificate.trivial_bound)}, which holds "
            f"in its place. {words}"
        )
    return words


def totals_in_words(data: ReportData) -> tuple[str, str]:
    """What is added up, and what it is per step, if that is another number."""
    problem = data.certificate.problem
    layers = layers_of(problem)
    if averages_of(problem) is not None:
        return "cost of a step on average, in the long run", ""
    if has_goal(problem):
        whole = "expected cost of an episode, summed until its end"
        return whole, f"the same over {data.horizon:g}, what the expected steps are bounded by"
    if layers is not None:
        how = "summed" if layers.discount == 1 else "discounted and summed"
        time = "" if layers.discount == 1 else ", their discounted number"
        whole = f"expected cost of an episode, {how} over its {layers.horizon} steps"
        return whole, f"the same over {data.horizon:.6g}{time}"
    whole = "expected cost, discounted and summed over all future steps"
    return whole, "the same times 1 − discount"


def _other_ways(data: ReportData) -> dict[str, Any]:
    """Other ways to bound the gap, where there are several."""
    ways = data.certificate.combinations
    if len(ways) < 2:
        return {"ways": [], "ways_left_out": ""}
    listed = ways[:MOST_WAYS]
    values = [way.bound for way in listed]
    columns = exact_column(values), exact_column(_per_step(values, data))
    rows = [
        {"name": f"{way.kind}, {way.estimate}", "value": value, "per_step": step}
        for way, value, step in zip(listed, *columns, strict=True)
    ]
    left_out = f" ({len(listed)} of {len(ways)})" if len(listed) < len(ways) else ""
    return {"ways": rows, "ways_left_out": left_out}


def _waterfall(best: Combination, shown_terms: tuple[Term, ...], name: str) -> Markup:
    ends = list(accumulate((term.value for term in shown_terms), initial=0.0))
    scale = Across.covering([*ends, best.bound], zero=True)
    rows: list[Element] = []
    shown = column([*(term.value for term in shown_terms), best.bound])
    for index, (term, (start, end)) in enumerate(zip(shown_terms, pairwise(ends), strict=True)):
        kind = "apprentice" if term.name in (GAP, COST) else "doubt"
        sign = "+" if index and shown[index][0] not in f"{MINUS}≈" and term.value else ""
        rows += _bar(scale, index, term.name, f"{sign}{shown[index]}", (start, end), kind)
        turn = scale.at(end)
        top = ROW * index + TEXT + 6 + BAR
        rows.append(tag("line", x1=turn, x2=turn, y1=f"{top}", y2=f"{top + ROW - BAR}",
                        cls="link"))  # fmt: skip
    last = len(shown_terms)
    rows += _bar(scale, last, "sum", shown[last], (0.0, best.bound), "total")
    listed = ", then ".join(f"{term.name} {number(term.value)}" for term in shown_terms)
    return picture(
        name, "Waterfall of the terms of the bound",
        f"Bars one after the other: {listed}; together {number(best.bound)}.",
        ROW * (last + 1) + 24, *axis(scale, last + 1, ROW, TEXT + 2), *rows,
    )  # fmt: skip


def _bar(
    scale: Across, index: int, name: str, value: str, ends: tuple[float, float], kind: str
) -> list[Element]:
    """Name and number above a bar; its end is marked, however short it is."""
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


def budgets(data: ReportData, prefix: str) -> Section | None:
    """What the policy spends of each budget at most, and how surely; None without budgets."""
    found = data.certificate.budgets
    if not found:
        return None
    spent, limits = [one.spent for one in found], [one.limit for one in found]
    both = [*spent, *limits]
    columns = {
        "spent": exact_column(spent, both), "limit": exact_column(limits, both),
        "spent_per_step": exact_column(_per_step(spent, data)),
        "limit_per_step": exact_column(_per_step(limits, data)),
    }  # fmt: skip
    rows = [
        {"name": one.name, "kept": one.is_kept, "chance": one.chance}
        | {name: values[index] for name, values in columns.items()}
        for index, one in enumerate(found)
    ]
    exact = data.certificate.is_exact
    content = {
        "chance": next((one.chance for one in found if one.chance), ""),
        "totals": totals_in_words(data)[0],
        "reason": "The laws of the world were estimated" if exact else "They rest on a sample",
        "picture": _budgets_picture(found, f"{prefix}spending"), "rows": rows,
    }  # fmt: skip
    return Section("budgets", "Budgets", content)


def _budgets_picture(found: tuple[BudgetCertificate, ...], name: str) -> Markup:
    values = [value for one in found for value in (one.spent, one.limit)]
    scale = Across.covering(values, zero=True)
    rows: list[Element] = []
    for index, one in enumerate(found):
        top = ROW * index
        low, high = sorted((0.0, one.spent))
        y, foot, x = top + TEXT + 8, top + TEXT + 8 + BAR, scale.at(one.limit)
        words, kind = ("kept", "quiet") if one.is_kept else ("NOT certified", "bad")
        rows += [
            label(shortened(one.name, LONGEST_NAME), "0%", top + TEXT, cls="start over"),
            label(words, "100%", top + TEXT, cls=f"end over {kind}"),
            tag("rect", x=scale.at(low), y=f"{y}", width=scale.width(low, high), height=f"{BAR}",
                cls="bar total"),
            tag("line", x1=x, x2=x, y1=f"{y - 5}", y2=f"{foot + 5}", cls="tip limit"),
        ]  # fmt: skip
    listed = "; ".join(
        f"{shortened(one.name, LONGEST_NAME)}: at most {number(one.spent)} of {number(one.limit)}"
        for one in found
    )
    return picture(
        name, "Spending against limits", f"{listed}.", ROW * len(found) + 24,
        *axis(scale, len(found), ROW, TEXT + 4), *rows,
    )  # fmt: skip


def premises(data: ReportData, prefix: str) -> Section | None:
    """What the result rests on; None where nothing was supposed."""
    found = data.certificate.premises
    if not found:
        return None
    rows = [_premise_row(data.certificate, one) for one in found]
    drawn = _bounds_by_premise(data.certificate, f"{prefix}bought")
    return Section("premises", "Premises", {"rows": rows, "picture": drawn})


def bounds_by_premise(certificate: Certificate) -> list[tuple[str, float]]:
    """What is known without and with what was declared about the expert, each bound by its name;
    the trivial one first, and nothing where nothing was declared."""
    by_laws, regret = certificate.consistency is not None, certificate.regret
    if not (by_laws or regret) or not certificate.valid:
        return []
    alone = [way.bound for way in certificate.combinations if not way.estimate.startswith(NAME)]
    least = min([certificate.trivial_bound, *alone])
    found = [
        ("any policy, gap to the expert", certificate.trivial_bound),
        ("no premise, gap to the expert", least),
    ]
    declared = [type(one) for one in certificate.problem.expert_is]
    if by_laws:
        names = " and ".join(_name(one) for one in declared if one not in ABOUT_A_COST)
        found.append((f"{names} expert, gap to it", certificate.bound))
    if regret is not None and regret.valid:
        names = " and ".join(_name(one) for one in declared if one in ABOUT_A_COST)
        found.append((f"{names} expert, regret", regret.bound))
    return found


def _name(premise: type) -> str:
    """A premise in words.

    >>> from journeyman.problem.expert_premises import NearlyOptimal
    >>> _name(NearlyOptimal)
    'nearly optimal'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", " ", premise.__name__).lower()


def _bounds_by_premise(certificate: Certificate, name: str) -> Markup | None:
    found = bounds_by_premise(certificate)
    if not found:
        return None
    values = [value for _, value in found]
    scale, rows = Across.covering(values, zero=True), []
    for index, ((words, value), shown) in enumerate(zip(found, column(values), strict=True)):
        kind = "total" if index > 1 else "doubt"
        rows += _bar(scale, index, words, shown, (0.0, value), kind)
    listed = "; ".join(f"{words}: {number(value)}" for words, value in found)
    return picture(
        name, "Bounds by premise", f"{listed}.", ROW * len(found) + 24,
        *axis(scale, len(found), ROW, TEXT + 2), *rows,
    )  # fmt: skip


def regret(data: ReportData, prefix: str) -> Section | None:
    """The regret under the expert's own cost; None without a premise about it."""
    found = data.certificate.regret
    if found is None:
        return None
    terms = _merged(found.terms) if found.valid else ()  # what does not hold is not added up
    values = [*(term.value for term in terms), found.found, found.uniform]
    values.append(found.trivial_bound)
    *rows, last, uniform, trivial = [
        {"value": value, "per_step": step}
        for value, step in zip(
            exact_column(values), exact_column(_per_step(values, data)), strict=True
        )
    ]
    named = [
        {"name": term.name, "meaning": _meaning(term), **row}
        for term, row in zip(terms, rows, strict=True)
    ]
    claim = " ".join(regret_in_words(data.certificate))
    words = {
        "compared": "uniform policy", "random": "acting uniformly at random", "within": "",
        "and_prices": "", "breaking": "",
    }  # fmt: skip
    if data.certificate.problem.constraints:
        words = {
            "compared": "random policy", "random": "a random policy",
            "within": " within the budgets",
            "and_prices": " and prices of the budgets",
            "breaking": " (a policy that breaks a budget may cost less)",
        }  # fmt: skip
    return Section(
        "regret", "Under the expert's own cost",
        {
            **words, "claim": _written(claim), "terms": named, "sum": last,
            "uniform": uniform, "trivial": trivial, **_known_costs(data, f"{prefix}weights"),
            "rows": [
                _premise_row(data.certificate, one)
                for one in premises_of_the_regret(data.certificate)
            ],
        },
        link="Regret",
    )  # fmt: skip


def _known_costs(data: ReportData, name: str) -> dict[str, Any]:
    """Ranges of the weights of the expert's own cost, where finding them takes a moment only."""
    certificate = data.certificate
    problem, regret = certificate.problem, certificate.regret
    few = problem.world.num_pairs * problem.num_costs <= QUICK
    if regret is None or not regret.valid or not few:
        return {"weights": [], "picture": None}
    found = cost_ranges(problem, failure_probability=certificate.failure_probability)
    ends = [(one.low, one.high) for one in found]
    if not np.isfinite(ends).all():
        return {"weights": [], "picture": None}
    scale, rows = Across.covering([end for one in ends for end in one], zero=True), []
    for index, one in enumerate(found):
        y = ROW * index + TEXT + 8
        rows += [
            label(shortened(one.name, LONGEST_NAME), "0%", ROW * index + TEXT, cls="start over"),
            tag("rect", x=scale.at(one.low), y=f"{y}", width=scale.width(one.low, one.high),
                height=f"{BAR}", cls="bar total"),
        ]  # fmt: skip
    listed = "; ".join(f"{one.name}: {number(one.low)} to {number(one.high)}" for one in found)
    drawn = picture(
        name, "Weights that the records leave open", f"{listed}.", ROW * len(found) + 24,
        *axis(scale, len(found), ROW, TEXT + 4), *rows,
    )  # fmt: skip
    both = [end for one in ends for end in one]
    low, high = (exact_column([end[side] for end in ends], both) for side in (0, 1))
    names = [one.name for one in found]
    return {"weights": list(zip(names, low, high, strict=True)), "picture": drawn}


def _premise_row(certificate: Certificate, premise: Premise) -> tuple[str, tuple[str, str], str]:
    level = f"; level {premise.level:g}" if premise.level else ""
    badge = (BADGES[premise.status], premise.status.value)
    return premise.name, badge, f"{with_names(certificate, premise.detail)}{level}"


def remedies(data: ReportData, prefix: str) -> Section:
    """The sentences of `certificate.advice()`."""
    sentences = [line for line in data.certificate.advice().split("\n") if line]
    return Section(
        "remedies", "What would help", {"sentences": [_sentence(one) for one in sentences]},
        link="Advice",
    )  # fmt: skip


def _sentence(text: str) -> str:
    """Begins with a capital letter and ends with a full stop."""
    first = text[:1].upper() + text[1:]
    return first if first.endswith((".", "!", "?")) else f"{first}."


def recovered(data: ReportData, prefix: str) -> Section | None:
    """The cost that a method has inferred; None where the method has no cost of its own."""
    weights = data.recovered
    if weights is None or not np.isfinite(weights).all():
        return None
    basis = data.certificate.problem.basis
    kind, direction = ("reward", "sought") if basis.rewards else ("cost", "avoided")
    order = np.argsort(-np.abs(weights), kind="stable")[:MOST_WEIGHTS]
    names, errors = [basis.names[i] for i in order], data.recovered_errors
    shown, known = weights[order].tolist(), [] if errors is None else errors[order].tolist()
    columns: list[Any] = [exact_column(weights[order])]
    if known:
        ratios = [
            number(weight / error) if 0 < error < np.inf else ""
            for weight, error in zip(shown, known, strict=True)
        ]
        columns += [[number(one) if one < np.inf else "not identified" for one in known], ratios]
    content = {
        "kind": kind,
        "direction": direction,
        "all": int(weights.size),
        "known": bool(known),
        "rows": list(zip(names, zip(*columns, strict=True), strict=True)),
        "picture": _weights_picture(f"{prefix}weights", names, shown, known),
    }
    return Section("recovered", f"The {kind} that the method has inferred", content, link="Weights")


def nonlinear(data: ReportData, prefix: str) -> Section | None:
    """What is certified of a cost that is a function of the features and no combination."""
    if data.nonlinear is None:
        return None
    basis = data.certificate.problem.basis
    kind = "reward" if basis.rewards else "cost"
    sentences = [
        f"The method has inferred a cost that is a function of the {len(basis.names)} features.",
        _sentence(data.nonlinear.remark),
    ]
    content = {"sentences": sentences}
    return Section(
        "nonlinear", f"The {kind} that the method has inferred", content, link="Inferred cost"
    )


def _weights_picture(
    name: str, names: list[str], weights: list[float], errors: list[float]
) -> Markup:
    """A bar for every weight, with a line over two standard errors to either side of its end."""
    sides = [2 * one if np.isfinite(one) else 0.0 for one in errors] or [0.0] * len(weights)
    low = [one - side for one, side in zip(weights, sides, strict=True)]
    high = [one + side for one, side in zip(weights, sides, strict=True)]
    scale, rows = Across.covering([*low, *high], zero=True), []
    for index, (title, weight) in enumerate(zip(names, weights, strict=True)):
        top = ROW * index + TEXT
        left, right = min(weight, 0.0), max(weight, 0.0)
        rows += [
            label(shortened(title, LONGEST_NAME), "0%", top, cls="start over"),
            tag("rect", x=scale.at(left), y=f"{top + 8}", width=scale.width(left, right),
                height=f"{BAR}", cls="bar total"),
        ]  # fmt: skip
        if sides[index] > 0:
            middle = f"{top + 8 + BAR / 2:g}"
            ends = {"x1": scale.at(low[index]), "x2": scale.at(high[index])}
            rows.append(tag("line", **ends, y1=middle, y2=middle, cls="zero"))
    listed = "; ".join(f"{title}: {number(one)}" for title, one in zip(names, weights, strict=True))
    words = "Weights, with two standard errors to either side" if errors else "Weights"
    return picture(
        name, words, f"{listed}.", ROW * len(names) + 24,
        *axis(scale, len(names), ROW, TEXT + 4), *rows,
    )  # fmt: skip
