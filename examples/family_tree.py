"""Draw the family tree of methods: when, from what, and what each assumes.

    python -m examples.family_tree docs/images/family-tree.svg

A column is a decade's part, a row a line of thought, a box a method with its year, what it asks of
the world or the expert, and the class that has it here. Arrows say from whom an idea was taken. The
picture follows light and dark, has a title and a description, and no script.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

COLUMNS = (1989, 2005, 2008, 2010, 2016, 2021, 2025)
"""First years of the columns."""
WIDTH, GAP, HEIGHT, ROW, TOP = 200, 26, 66, 84, 86
LEFT = 128
ROWS = (
    "clone, ask", "infer a cost", "nonlinear costs", "match features", "play a game",
    "occupancies", "policy gradients",
)  # fmt: skip


class Method(NamedTuple):
    """A box."""

    name: str
    year: int
    authors: str
    assumes: str
    here: str
    """Its class."""
    row: int
    sources: tuple[str, ...] = ()


METHODS = (
    Method("Behaviour cloning", 1989, "Pomerleau and others", "records that cover enough",
           "BehaviourCloning", 0),
    Method("DAgger", 2011, "Ross, Gordon, Bagnell", "expert who answers", "DAgger", 0,
           ("Behaviour cloning",)),
    Method("IRL by programs", 2000, "Ng, Russell", "optimal expert, laws", "InverseProgram", 1),
    Method("Margin planning", 2006, "Ratliff et al.", "expert's steps, planner",
           "MaximumMarginPlanning", 1, ("Projection",)),
    Method("Policy matching", 2007, "Neu, Szepesvari", "expert's policy, planner",
           "PolicyMatching", 1, ("Projection",)),
    Method("Maximum entropy", 2008, "Ziebart et al.", "linear cost, soft plans", "MaximumEntropy",
           1, ("Projection",)),
    Method("Inverse constraints", 2023, "Schlaginhaufen, Kamgarpour", "known budgets, soft plans",
           "ConstrainedInverse", 1, ("Maximum entropy",)),
    Method("FIRL", 2010, "Levine et al.", "trees of features, planner", "FeatureConstruction", 2),
    Method("GPIRL", 2011, "Levine et al.", "kernels, soft plans", "GaussianProcessCosts", 2,
           ("FIRL", "Maximum entropy")),
    Method("Projection", 2004, "Abbeel, Ng", "linear cost, planner", "Projection", 3,
           ("IRL by programs",)),
    Method("Motion planning", 2008, "Abbeel et al.", "linear cost, planner of paths", "Projection",
           3, ("Projection",)),
    Method("MWAL", 2007, "Syed, Schapire", "signs of weights, planner",
           "MultiplicativeWeights", 4, ("Projection",)),
    Method("LPAL", 2008, "Syed, Bowling, Schapire", "laws; one linear program", "LinearProgram", 5,
           ("MWAL",)),
    Method("Large programs", 2014, "Abbasi-Yadkori et al.", "known cost, rows, features",
           "StochasticSubgradient (Forward)", 5),
    Method("SGD-AL", 2021, "Kamoutsi, Banjac, Lygeros", "rows of laws, features",
           "StochasticSubgradient", 5, ("LPAL", "Large programs")),
    Method("Primal-dual", 2021, "Kamoutsi, Banjac, Lygeros", "next states of pairs",
           "OccupancyMirrorDescent", 5, ("SGD-AL",)),
    Method("Proximal points", 2022, "Viano et al.", "laws at pairs, or records",
           "ProximalPointImitation", 5, ("Primal-dual",)),
    Method("Prior beliefs", 2025, "Junca, Leiva", "a prior of the cost", "PriorMirrorDescent", 5,
           ("Primal-dual",)),
    Method("IM-REINFORCE, -TRPO", 2016, "Ho, Gupta, Ermon", "rollouts, policy's form",
           "ImitationReinforce", 6, ("LPAL",)),
    Method("GAIL", 2016, "Ho, Ermon", "rollouts, discriminator", "AdversarialImitation", 6,
           ("IM-REINFORCE, -TRPO",)),
)  # fmt: skip

STYLE = """
text{font:11px system-ui,sans-serif;fill:#1c1c1a}.title{font-size:15px;font-weight:600}
.name{font-weight:600;font-size:12px}.quiet{fill:#5c5b57}.back{fill:#fcfcfb}
.box{fill:#eef4f8;stroke:#0072b2}
.arrow{fill:none;stroke:#5c5b57}.row{stroke:#e3e2dd}
@media (prefers-color-scheme:dark){text{fill:#f2f1ec}.quiet{fill:#b4b3ad}.back{fill:#1b1b1a}
.box{fill:#14283a;stroke:#56b4e9}.arrow{stroke:#b4b3ad}.row{stroke:#3a3a37}}
"""


def column_of(year: int) -> int:
    """The column that a year belongs to."""
    return max(k for k, first in enumerate(COLUMNS) if first <= year)


def places() -> dict[str, tuple[int, int]]:
    """Where the boxes stand: those of one column and row one below the other."""
    taken: dict[tuple[int, int], int] = {}
    depth = [
        max(
            [1]
            + [
                sum(m.row == row and column_of(m.year) == k for m in METHODS)
                for k in range(len(COLUMNS))
            ]
        )
        for row in range(len(ROWS))
    ]
    found = {}
    for method in METHODS:
        cell = (method.row, column_of(method.year))
        below = taken.get(cell, 0)
        taken[cell] = below + 1
        x = LEFT + cell[1] * (WIDTH + GAP)
        found[method.name] = (x, TOP + ROW * (sum(depth[: method.row]) + below))
    return found


def tree() -> str:
    """The picture as SVG."""
    where = places()
    width = LEFT + len(COLUMNS) * (WIDTH + GAP)
    height = max(y for _, y in where.values()) + ROW + 30
    svg = ET.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", role="img",
        attrib={"aria-labelledby": "title description"},
    )  # fmt: skip
    add(svg, "title", "Family tree of apprenticeship learning", id="title")
    lines = [f"{m.name} ({m.authors} {m.year}), assumes: {m.assumes}" for m in METHODS]
    add(svg, "desc", "; ".join(lines), id="description")
    add(svg, "style", STYLE)
    marker = add(add(svg, "defs"), "marker", id="tip", viewBox="0 0 6 6", refX="6", refY="3",
                 markerWidth="7", markerHeight="7", orient="auto")  # fmt: skip
    add(marker, "path", d="M0,0L6,3L0,6z", fill="#8a8a86")
    add(svg, "rect", **{"class": "back"}, width=str(width), height=str(height))
    add(svg, "text", "Methods of apprenticeship learning, and what each assumes", x="16", y="28",
        **{"class": "title"})  # fmt: skip
    words = "what it assumes, then its class in this library; arrows: from whom an idea was taken"
    add(svg, "text", words, x="16", y="48", **{"class": "quiet"})
    for k, first in enumerate(COLUMNS):
        last = COLUMNS[k + 1] - 1 if k + 1 < len(COLUMNS) else None
        years = f"from {first}" if last is None else f"{first} to {last}"
        years = f"until {last}" if k == 0 else years
        add(svg, "text", years, x=str(LEFT + k * (WIDTH + GAP)), y="74", **{"class": "quiet"})
    for row, name in enumerate(ROWS):
        mine = [where[m.name][1] for m in METHODS if m.row == row]
        add(svg, "text", name, x="10", y=str(min(mine) + 36), **{"class": "quiet"})
    for method in METHODS:
        for source in method.sources:
            (x, y), (goal, level) = where[source], where[method.name]
            between = any(x < other < goal and y == at for other, at in where.values())
            arrow(svg, (x, y), (goal, level), straight=y == level and not between)
    for method in METHODS:
        box(svg, method, *where[method.name])
    ET.indent(svg)
    return ET.tostring(svg, encoding="unicode") + "\n"


def arrow(svg: ET.Element, start: tuple[int, int], end: tuple[int, int], *, straight: bool) -> None:
    """From the right side of one box to the left side of another; within a column around the left
    side, and past other columns between two rows."""
    y, level = start[1] + HEIGHT // 2, end[1] + HEIGHT // 2
    x, goal = start[0] + WIDTH, end[0]
    if start[0] == end[0]:
        x, near = start[0], start[0] - GAP + 8
        path = f"M{x},{y}C{near},{y} {near},{level} {goal},{level}"
    elif goal - x == GAP or straight:
        path = f"M{x},{y}C{x + 20},{y} {goal - 22},{level} {goal},{level}"
    else:
        down = 6 if level > y else -6
        lane, out, back = end[1] - (ROW - HEIGHT) // 2, x + GAP // 2 + down, goal - GAP // 2
        path = f"M{x},{y}H{out}V{lane}H{back}V{level}H{goal}"
    add(svg, "path", d=path, **{"class": "arrow", "marker-end": "url(#tip)"})


def box(svg: ET.Element, method: Method, x: int, y: int) -> None:
    """Four lines in a frame."""
    add(svg, "rect", x=str(x), y=str(y), width=str(WIDTH), height=str(HEIGHT), rx="5",
        **{"class": "box"})  # fmt: skip
    lines = (f"{method.name}, {method.year}", method.authors, method.assumes, method.here)
    for k, line in enumerate(lines):
        add(svg, "text", line, x=str(x + 8), y=str(y + 16 + 15 * k),
            **{"class": "name" if k == 0 else "quiet" if k < 3 else ""})  # fmt: skip


def add(parent: ET.Element, tag: str, text: str = "", **attributes: str) -> ET.Element:
    """A child with its text."""
    child = ET.SubElement(parent, tag, {name: value for name, value in attributes.items() if value})
    child.text = text or None
    return child


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = sys.argv[1:] if arguments is None else arguments
    if len(chosen) != 1:
        raise SystemExit("usage: python -m examples.family_tree FILE.svg")
    Path(chosen[0]).write_text(tree(), encoding="utf-8")


if __name__ == "__main__":
    main()
