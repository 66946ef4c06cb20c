"""Budgets: what the policy spends of each at most, and how surely, beside its limit."""

from journeyman.certificate.certificate import BudgetCertificate
from journeyman.report.drawing import Across, axis, label, picture
from journeyman.report.figures import figure
from journeyman.report.markup import Element, name_of, shortened, tag
from journeyman.report.sections import Place, badge, beside, legend
from journeyman.report.subject import Subject
from journeyman.report.tables import above, figures, table

ROW, TEXT, BAR = 46, 14, 14
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
        beside(_picture(found, place), _table(found, subject.horizon)),
    )  # fmt: skip


def _probability(found: tuple[BudgetCertificate, ...]) -> str:
    """In a world whose laws were estimated no budget is kept for certain."""
    chance = next((one.chance for one in found if one.chance), "")
    if not chance:
        return ""
    return f" The laws of the world were estimated: these bounds hold together{chance}."


def _picture(found: tuple[BudgetCertificate, ...], place: Place) -> Element:
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


def _table(found: tuple[BudgetCertificate, ...], horizon: float) -> Element:
    spent, limits = [one.spent for one in found], [one.limit for one in found]
    columns = [
        [above(*cell) for cell in zip(
            figures(values, [*spent, *limits]), figures([value / horizon for value in values]),
            strict=True,
        )]
        for values in (spent, limits)
    ]  # fmt: skip
    names = [tag("span", name_of(one.name), tag("br"), _verdict(one)) for one in found]
    return table(
        "Budgets in units of their costs, per step below",
        ["budget", "spent at most", "limit"], list(zip(names, *columns, strict=True)),
    )  # fmt: skip


def _verdict(budget: BudgetCertificate) -> Element:
    if budget.is_kept:
        return badge("good", f"kept{budget.chance}")
    return badge("bad", "not certified")
