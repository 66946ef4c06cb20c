"""Reports as files and for notebooks: the doors of this room."""

import os
from collections.abc import Mapping
from typing import BinaryIO

from journeyman.report.page import TITLE, fragment, page
from journeyman.report.saved_run import NOT_KEPT, subject_of_run
from journeyman.report.subject import AnyAnswer, Reportable, Subject
from journeyman.storage import PathLike, write_atomically


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
