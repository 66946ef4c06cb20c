"""What the bound is made of: every term starts where the one before it ends."""

from itertools import accumulate, pairwise

from journeyman.certificate import Certificate, LargeCertificate
from journeyman.certificate.gap_bound import Combination
from journeyman.certificate.legend import legend_in_words
from journeyman.certificate.terms import Term
from journeyman.report.drawing import Across, axis, label, picture
from journeyman.report.figures import MINUS, column, figure, share
from journeyman.report.markup import Element, name_of, shortened, tag
from journeyman.report.sections import Place, beside
from journeyman.report.subject import Subject
from journeyman.report.tables import figures, table

ROW, BAR, TEXT = 46, 14, 14
"""Pixels of a row, of its bar, and from the top of a row to the foot of its text."""
LONGEST = 34
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
        beside(_waterfall(best, place), _table(best, horizon)),
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
        rows += _row(scale, index, term.name, f"{sign}{shown[index]}", (start, end), kind)
        turn = scale.at(end)
        top = ROW * index + TEXT + 6 + BAR
        rows.append(tag("line", x1=turn, x2=turn, y1=f"{top}", y2=f"{top + ROW - BAR}",
                        cls="link"))  # fmt: skip
    last = len(best.terms)
    rows += _row(scale, last, "sum", shown[last], (0.0, best.bound), "total")
    told = ", then ".join(f"{term.name} {figure(term.value)}" for term in best.terms)
    return picture(
        place.name("waterfall"), "Waterfall of the terms of the bound",
        f"Bars one after the other: {told}; together {figure(best.bound)}.",
        bottom + 24, *axis(scale, last + 1, ROW, TEXT + 2), *rows,
    )  # fmt: skip


def _row(
    scale: Across, index: int, name: str, value: str, ends: tuple[float, float], kind: str
) -> list[Element]:
    """Name and figure above a bar; its end is marked, however short it is."""
    top, (low, high) = ROW * index, sorted(ends)
    y, height = f"{top + TEXT + 6}", f"{BAR}"
    x = scale.at(ends[1])
    strong = " strong" if kind == "total" else ""
    return [
        label(shortened(name, LONGEST), "0%", top + TEXT, cls=f"start over{strong}"),
        label(value, "100%", top + TEXT, cls=f"end over{strong}"),
        tag("rect", x=scale.at(low), y=y, width=scale.width(low, high), height=height,
            cls=f"bar {kind}"),
        tag("line", x1=x, x2=x, y1=y, y2=f"{top + TEXT + 6 + BAR}", cls=f"tip {kind}"),
    ]  # fmt: skip


def _table(best: Combination, horizon: float) -> Element:
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
