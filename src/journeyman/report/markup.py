"""HTML as a tree: whatever a name contains is escaped when the tree is written.

    tag("p", "at most ", strong("3.1"), cls="lead")    ->    <p class="lead">at most ...

Text reaches a page through `tag` only. Characters that XML cannot hold are replaced. Names given by
users stand in elements of their own, so that neither markup nor writing from right to left reaches
its neighbours.

>>> written(tag("p", "1 < 2", tag("br"), "& more", id="x"))
'<p id="x">1 &lt; 2<br>&amp; more</p>'
"""

import re
from typing import TypeAlias
from xml.etree import ElementTree as ET

Element: TypeAlias = ET.Element
Content: TypeAlias = "str | Element | None"

UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped, or that browsers complain about."""
STRONG_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of everything behind them."""
ELLIPSIS = "…"


def tag(name: str, /, *content: Content, cls: str = "", **attributes: str) -> Element:
    """An element; underscores in attribute names stand for hyphens, None is left out."""
    element = ET.Element(name, {"class": cls} if cls else {})
    for key, value in attributes.items():
        element.set(key.replace("_", "-"), printable(value))
    for part in content:
        add(element, part)
    return element


def add(element: Element, part: Content) -> None:
    """Append text or an element behind what is there."""
    if part is None:
        return
    if isinstance(part, str):
        text = printable(part)
        if len(element):
            element[-1].tail = (element[-1].tail or "") + text
        else:
            element.text = (element.text or "") + text
    else:
        element.append(part)


def printable(text: str) -> str:
    """The text with a mark in place of every character that no page can hold, and without those
    that turn its direction."""
    return UNPRINTABLE.sub("\ufffd", STRONG_TURNS.sub("", text))


def name_of(name: str) -> Element:
    """A name given by a user: set apart from the direction of the text around it."""
    return tag("bdi", name)


def shortened(name: str, longest: int) -> str:
    """A name for a place where it cannot be broken into lines.

    >>> shortened("a very long name", 8)
    'a very …'
    """
    plain = " ".join(name.split())
    return plain if len(plain) <= longest else plain[: longest - 1] + ELLIPSIS


def written(element: Element) -> str:
    """The text of an element, as HTML."""
    return ET.tostring(element, encoding="unicode", method="html")
