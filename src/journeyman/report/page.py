"""The document: everything in one file, without script, link or font from elsewhere."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO, TypeAlias

from journeyman.report.certificate_sections import (
    budgets,
    premises,
    recovered,
    remedies,
    result,
    terms,
)
from journeyman.report.convergence import convergence
from journeyman.report.cost_comparison import costs
from journeyman.report.drawing import Element, tag, written
from journeyman.report.elements import Place
from journeyman.report.grid_maps import maps
from journeyman.report.numbers import figure
from journeyman.report.report_data import AnyAnswer, Reportable, Subject
from journeyman.report.reproduction import reproduction
from journeyman.report.saved_run import NOT_KEPT, subject_of_run
from journeyman.storage import PathLike, digest, write_atomically

Section: TypeAlias = Callable[[Subject, Place], Element | None]

WHOLE: tuple[Section, ...] = (
    result, terms, costs, recovered, maps, budgets, convergence, remedies, premises, reproduction,
)  # fmt: skip
BRIEF: tuple[Section, ...] = (result, terms, costs, recovered, maps, budgets)
"""Sections of a page, and of a cell in a notebook."""
SHORT = {
    "result": "Result", "terms": "Terms", "costs": "Costs", "recovered": "Weights", "maps": "Maps",
    "budgets": "Budgets", "convergence": "Solver", "remedies": "Advice", "premises": "Premises",
    "reproduction": "Reproduction",
}  # fmt: skip
"""Words for the links at the top."""
TITLE = "What is certified about this policy"
CELL = (
    ".jm-cell{padding:1.2rem 1.2rem 1.5rem;border-radius:8px}.jm-cell section{padding-top:1.6rem}"
    ".jm-cell section:first-of-type{padding-top:0}.jm-cell section>h3{margin-top:0}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""A browser may load nothing and run nothing, whatever a name might have smuggled in."""


def page(subject: Subject, title: str = TITLE, note: str = "") -> str:
    """A whole HTML document."""
    found = sections(subject, WHOLE, Place())
    version = str(subject.software["journeyman"])
    return document(title, _header(subject, title, note), _contents(found), found, version)


def document(
    title: str, header: Element, contents: Element, main: Iterable[Element], version: str
) -> str:
    """A page about anything, in the style of the reports."""
    head = tag(
        "head", tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · journeyman"),
        tag("style", sheet(":root") + PAGE),
    )  # fmt: skip
    body = tag(
        "body", header, contents, tag("main", *main),
        tag("footer", tag("p", f"Written by journeyman {version}.")),
        cls="jm",
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{written(tag('html', head, body, lang='en'))}\n"


def fragment(subject: Subject) -> str:
    """The main sections as an element that a notebook can show among others."""
    certificate = subject.certificate
    word = digest(certificate.bound, certificate.summary(), *certificate.best.terms[0].name)[:8]
    found = sections(subject, BRIEF, Place(f"jm-{word}-", 3))
    style = tag("style", sheet(".jm") + CELL)
    return written(tag("div", style, *found, cls="jm jm-cell"))


def sections(subject: Subject, wanted: Iterable[Section], place: Place) -> list[Element]:
    """Those for which there are data."""
    found = (section(subject, place) for section in wanted)
    return [section for section in found if section is not None]


def _header(subject: Subject, title: str, note: str) -> Element:
    problem = subject.certificate.problem
    world = subject.world or getattr(problem, "world", None)
    size = "" if world is None else f"{int(world.num_states):,} states, "
    if subject.world is not None:
        size += f"{subject.world.num_pairs:,} state-action pairs, "
    kind = "rewards" if problem.basis.rewards else "costs"
    demos = subject.demonstrations
    seen = f", {len(demos):,} demonstrations" if demos is not None else ""
    return tag(
        "header", tag("p", "journeyman report", cls="kicker"), tag("h1", title),
        tag("p", f"{size}discount {figure(1 - 1 / subject.horizon)}, "
            f"{problem.basis.num_costs:,} {kind}{seen}", cls="note"),
        tag("p", note, cls="warning") if note else None,
    )  # fmt: skip


def _contents(found: list[Element]) -> Element:
    """Links to all sections."""
    links = [
        tag("li", tag("a", SHORT[section.get("id", "")], href=f"#{section.get('id')}"))
        for section in found
    ]
    return tag("nav", tag("ul", *links), aria_label="Sections")


# Colours, type and layout of a report: light and dark, on screen and on paper.
#
# Colours are variables with one value per scheme. Text has a contrast of at least 4.5 to 1 and
# marks of at least 3 to 1 against what they stand on (tests/report/test_style.py computes them).

LIGHT = {
    "page": "#fcfcfb", "panel": "#f4f3ef", "ink": "#1c1c1a", "quiet": "#5c5b57",
    "line": "#dddcd6", "expert": "#0072b2", "apprentice": "#c04e00", "doubt": "#8a7fae",
    "total": "#44546a", "good": "#00704f", "warn": "#7d5a00", "bad": "#b3261e",
    "visits": "#3a96d0", "wall": "#b9b7ae",
}  # fmt: skip
DARK = {
    "page": "#171817", "panel": "#212221", "ink": "#f0efea", "quiet": "#b4b3ad",
    "line": "#3a3b39", "expert": "#56b4e9", "apprentice": "#f0883e", "doubt": "#9d92c7",
    "total": "#a9b8cc", "good": "#45c79b", "warn": "#e0b83b", "bad": "#ff8a80",
    "visits": "#2a86c2", "wall": "#4a4b48",
}  # fmt: skip
"""Page, boxes, text, quieter text, rules; then marks, verdicts and shades of the pictures."""

SHEET = """
.jm{background:var(--page);color:var(--ink);font:16px/1.6 system-ui,-apple-system,"Segoe UI",
"Noto Sans","DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums lining-nums;
-webkit-text-size-adjust:100%;text-size-adjust:100%;overflow-wrap:break-word}
.jm *{box-sizing:border-box}
.jm main,.jm>header,.jm>footer,.jm>nav{max-width:68rem;margin:0 auto;padding:0 1.5rem}
.jm>header{padding-top:3rem}
.jm h1,.jm h2,.jm h3,.jm h4{color:var(--ink);line-height:1.25;font-weight:650;
letter-spacing:-.011em;text-wrap:balance}
.jm h1{font-size:1.9rem;margin:.3rem 0 .5rem}
.jm h2{font-size:1.35rem;margin:0 0 .9rem}
.jm h3{font-size:1.05rem;margin:2rem 0 .5rem}
.jm h4{font-size:1rem;margin:1.5rem 0 .5rem}
.jm p,.jm ul{margin:0 0 1rem;max-width:44rem}
.jm a{color:var(--expert);text-underline-offset:.2em}
.jm a:focus-visible{outline:2px solid var(--expert);outline-offset:3px;
border-radius:3px}
.jm .kicker{color:var(--quiet);font-size:.8rem;font-weight:600;letter-spacing:.08em;
text-transform:uppercase;margin:0}
.jm .note,.jm small{color:var(--quiet);font-size:.86rem;line-height:1.45}
.jm .warning{border-left:4px solid var(--warn);background:var(--panel);padding:.7rem 1rem;
border-radius:4px}
.jm nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.3rem;list-style:none;margin:1.2rem 0 0;
padding:.7rem 0;border-block:1px solid var(--line);font-size:.9rem;max-width:none}
.jm nav a{display:inline-block;padding:.25rem 0;text-decoration:none}
.jm nav a:hover{text-decoration:underline}
.jm section{padding:2.6rem 0 0}
.jm .lead{font-size:1.2rem;line-height:1.5;max-width:50rem;text-wrap:pretty}
.jm .headline{display:grid;grid-template-columns:minmax(0,18rem) minmax(0,1fr);gap:1.5rem 2.5rem;
margin-top:1.6rem;align-items:stretch}
.jm .bound{background:var(--panel);border-radius:12px;padding:1.3rem 1.5rem}
.jm .bound p{margin:0 0 .5rem}
.jm .bound .note{margin:.5rem 0 0}
.jm .big{font-size:3rem;line-height:1.1;font-weight:650;letter-spacing:-.03em}
.jm .big.long{font-size:2rem;letter-spacing:-.02em;white-space:nowrap}
.jm .meter{height:8px;border-radius:4px;background:var(--line);overflow:hidden;margin-top:.9rem}
.jm .meter div{height:100%;min-width:3px;background:var(--total);border-radius:4px}
.jm .narrow{max-width:44rem}
.jm .terms{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));
gap:1rem 2.5rem;margin:1.6rem 0 0}
.jm .terms dt{color:var(--ink);font-weight:600}
.jm .terms dd{font-size:.86rem;font-weight:400;line-height:1.45;color:var(--quiet)}
.jm .terms code{overflow-wrap:anywhere}
.jm .figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));gap:1.2rem 2rem;
margin:0;align-content:center}
.jm dt{color:var(--quiet);font-size:.86rem}
.jm dd{margin:0;font-size:1.3rem;font-weight:600;line-height:1.35}
.jm dd .note{display:block;font-weight:400;font-size:.8rem;line-height:1.35}
.jm .badge{display:inline-block;border:1px solid currentColor;border-radius:99px;font-size:.8rem;
line-height:1.5;padding:0 .6rem;font-weight:600;white-space:nowrap}
.jm .good{color:var(--good)}.jm .warn{color:var(--warn)}.jm .bad{color:var(--bad)}
.jm .plain{color:var(--quiet)}
.jm .beside{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1.08fr);gap:1.5rem 3rem;
align-items:start}
.jm .table{overflow-x:auto;margin:0 0 1.2rem}
.jm table{border-collapse:collapse;width:100%;font-size:.88rem;line-height:1.4}
.jm caption{text-align:left;color:var(--quiet);font-size:.82rem;padding:0 0 .4rem;
text-wrap:pretty}
.jm th,.jm td{text-align:left;vertical-align:baseline;padding:.42rem .8rem .42rem 0;
border-bottom:1px solid var(--line);font-weight:400;background:none}
.jm th:last-child,.jm td:last-child{padding-right:0}
.jm thead th{color:var(--quiet);font-size:.8rem;vertical-align:bottom}
.jm tbody tr{background:none}
.jm .figure{text-align:right;white-space:nowrap}
.jm thead .figure{white-space:normal}
.jm tbody th{font-weight:500;overflow-wrap:anywhere}
.jm .facts th{width:12rem;color:var(--quiet);font-weight:400}
.jm .told small{display:block}.jm .figure small{font-size:.76rem}
.jm code,.jm pre{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.92em;color:inherit;background:none;padding:0}
.jm td code{overflow-wrap:anywhere;font-size:.82rem}
.jm small code{overflow-wrap:anywhere}
.jm pre{background:var(--panel);border-radius:8px;padding:1rem 1.2rem;margin:0;white-space:pre-wrap;
overflow-wrap:anywhere;
font-size:.86rem;line-height:1.5}
.jm .legend{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;list-style:none;padding:0;
font-size:.86rem;color:var(--quiet);max-width:none}
.jm .legend li{display:flex;gap:.5rem;align-items:baseline}
.jm .key{flex:none;display:inline-block;width:.75rem;height:.75rem;position:relative;top:.08rem}
.jm .key.expert{background:var(--expert);border-radius:50%}
.jm .key.apprentice{background:var(--apprentice);transform:rotate(45deg) scale(.85)}
.jm .key.total{background:var(--total);border-radius:2px}
.jm .key.line{height:0;width:1.5rem;top:-.22rem;border-top:3px solid var(--apprentice)}
.jm .key.dashes{height:0;width:1.5rem;top:-.22rem;border-top:2px dashed var(--ink)}
.jm .key.limit{background:var(--ink);width:3px;height:.9rem}
.jm svg{display:block;overflow:visible}
.jm svg text{font-size:13px;fill:var(--ink)}
.jm svg .quiet{fill:var(--quiet);font-size:12px}
.jm svg .bad{fill:var(--bad)}
.jm svg .strong{font-weight:650}
.jm svg .middle{text-anchor:middle}.jm svg .end{text-anchor:end}
.jm svg .over{paint-order:stroke;stroke:var(--page);stroke-width:4px;stroke-linejoin:round}
.jm svg .grid{stroke:var(--line)}.jm svg .zero{stroke:var(--quiet)}
.jm svg .link{stroke:var(--quiet);stroke-dasharray:2 3}
.jm svg .tip{stroke-width:2}.jm svg .range{stroke-width:3.5;stroke-linecap:round}
.jm svg .bar.doubt{fill:var(--doubt)}.jm svg .tip.doubt{stroke:var(--doubt)}
.jm svg .bar.apprentice,.jm svg .mark.apprentice{fill:var(--apprentice)}
.jm svg .tip.apprentice,.jm svg .range.apprentice{stroke:var(--apprentice)}
.jm svg .mark.expert{fill:var(--expert)}.jm svg .range.expert{stroke:var(--expert)}
.jm svg .bar.total{fill:var(--total)}.jm svg .tip.total{stroke:var(--total)}
.jm svg .tip.limit{stroke:var(--ink);stroke-width:3}
.jm svg .mark{stroke:var(--page);stroke-width:1.5}
.jm svg .range{opacity:.55}
.jm svg .trace{fill:none;stroke-width:2.2;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.jm svg .trace.apprentice{stroke:var(--apprentice)}
.jm svg .trace.limit{stroke:var(--ink);stroke-dasharray:6 4}
.jm .maps{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));
gap:1.5rem 3rem;margin:0 0 1rem}
.jm figure{margin:0;max-width:30rem}
.jm figure svg{width:100%;height:auto;border-radius:4px;overflow:hidden}
.jm figcaption{font-size:.9rem;font-weight:600;padding-top:.5rem}
.jm svg .wall{fill:var(--wall)}.jm svg .free{fill:var(--panel)}
.jm svg .arrow{fill:var(--ink)}
.jm .shade{background:var(--visits);border:1px solid var(--quiet)}
.jm>footer{padding-top:3rem;padding-bottom:3rem;color:var(--quiet);font-size:.86rem}
@media(max-width:820px){.jm .beside,.jm .headline{grid-template-columns:minmax(0,1fr)}
.jm{font-size:15.5px}.jm>header{padding-top:1.6rem}
.jm main,.jm>header,.jm>footer,.jm>nav{padding-left:1rem;padding-right:1rem}
.jm th,.jm td{padding-right:.5rem}.jm table{font-size:.84rem}.jm .facts th{width:7rem}
.jm h1{font-size:1.55rem}.jm .lead{font-size:1.08rem}
.jm .narrow{max-width:44rem}
.jm .terms{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));
gap:1rem 2.5rem;margin:1.6rem 0 0}
.jm .terms dt{color:var(--ink);font-weight:600}
.jm .terms dd{font-size:.86rem;font-weight:400;line-height:1.45;color:var(--quiet)}
.jm .terms code{overflow-wrap:anywhere}
.jm .figures{grid-template-columns:repeat(2,minmax(0,1fr));gap:1rem}}
@media print{.jm{font-size:10pt}.jm nav{display:none}.jm section{padding-top:1.4rem}
.jm svg,.jm tr,.jm figure,.jm .headline{break-inside:avoid}
.jm h2,.jm h3,.jm caption,.jm .legend{break-after:avoid}
.jm .bound,.jm .meter,.jm .meter div,.jm .key,.jm pre{print-color-adjust:exact;
-webkit-print-color-adjust:exact}
.jm main,.jm>header,.jm>footer{max-width:none;padding:0}}
@page{margin:16mm}
"""
PAGE = "html{color-scheme:light dark;background:var(--page)}body{margin:0}"


def sheet(scope: str) -> str:
    """All rules; variables belong to `scope`, and paper is always light."""
    shades = "".join(
        f".jm svg .v{level}{{fill:var(--visits);fill-opacity:{level / 8:g}}}"
        f".jm .s{level}{{background:color-mix(in srgb,var(--visits) {100 * level / 8:g}%,"
        "var(--panel))}"
        for level in range(1, 9)
    )
    return (
        f"{scope}{{{_variables(LIGHT)}}}"
        f"@media (prefers-color-scheme:dark){{{scope}{{{_variables(DARK)}}}}}"
        f"@media print{{{scope}{{{_variables(LIGHT)}}}}}" + (SHEET + shades).replace("\n", "")
    )


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


# Reports as files and for notebooks: the doors of this room.


def write_report(
    subject: Reportable | PathLike,
    path: PathLike,
    *,
    answer: AnyAnswer | None = None,
    title: str = TITLE,
    note: str = "",
    found: Mapping[str, str] = NOT_KEPT,
) -> None:
    """Write one self-contained HTML file: no script, no network, light and dark, for screen, print
    and screen readers.

    Args:
        subject: what `jm.learn` or `jm.certify` returned, or the directory of a saved run.
        path: of the file, which is replaced in one step.
        answer: with a certificate, what it certifies, so that the report can tell how it was
            found; an apprentice brings its own.
        title: the heading of the page.
        note: a warning below it, for example for whom the result is not meant.
        found: with a directory, how the answer was found: what it does not keep, such as solver,
            status and time, as names and words.
    """
    if isinstance(subject, str | os.PathLike):
        text = report_of_run(subject, title=title, note=note, found=found)
    else:
        text = page(Subject.of(subject, answer), title, note)

    def write(stream: BinaryIO) -> None:
        stream.write(text.encode())

    write_atomically(path, write)


def report_of_run(
    directory: PathLike, *, title: str = TITLE, note: str = "", found: Mapping[str, str] = NOT_KEPT
) -> str:
    """The page about a run saved by `Apprentice.save` or `Certificate.save`.

    Its files are compared with the digests in `certificate.json`; whether the figures follow from
    them, `jm.audit` says.
    """
    return page(subject_of_run(directory, found), title, note)


def as_html(subject: Reportable) -> str:
    """The main sections as one element, for notebooks."""
    return fragment(Subject.of(subject))
