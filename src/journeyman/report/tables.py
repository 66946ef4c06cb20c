"""Tables: a caption, headings with their scope, figures aligned on the decimal point."""

from collections.abc import Sequence

from journeyman.report.figures import column, exactly
from journeyman.report.markup import Content, Element, tag

Cell = Content


def table(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[Cell]], *, words: int = 1
) -> Element:
    """Rows whose first cell is their heading; columns behind the first `words` hold figures.

    The table stands in a region of its own that can be scrolled, should a screen be too narrow.
    """
    kinds = ["" if index < words else "figure" for index in range(len(headings))]
    head = tag("tr", *(
        tag("th", text, scope="col", cls=kind)
        for text, kind in zip(headings, kinds, strict=True)
    ))  # fmt: skip
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(
            tag("td", cell, cls=kind) for cell, kind in zip(row[1:], kinds[1:], strict=True)
        ))
        for row in rows
    ]  # fmt: skip
    return tag(
        "div", tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body)),
        cls="table",
    )  # fmt: skip


def figures(values: Sequence[float], like: Sequence[float] = ()) -> list[Element]:
    """One cell for each value, aligned, each with its exact value; `like` as in `column`."""
    shown = column(values, like)
    return [exactly(value, text) for value, text in zip(values, shown, strict=True)]


def above(figure: Content, note: Content) -> Element:
    """A figure with another one, smaller, below it."""
    return tag("span", figure, None if note is None else tag("small", note), cls="told")


def facts(caption: str, pairs: Sequence[tuple[str, Cell]]) -> Element:
    """A table of two columns: what, and how much."""
    rows = [
        tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in pairs
    ]  # fmt: skip
    return tag(
        "div", tag("table", tag("caption", caption), tag("tbody", *rows), cls="facts"), cls="table"
    )
