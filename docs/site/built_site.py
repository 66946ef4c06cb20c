"""What must be true of the built documentation: every public name is there, nothing is fetched."""

import logging
import re
from pathlib import Path
from typing import Any

import journeyman

log = logging.getLogger("mkdocs.hooks.built_site")
FETCHING = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon))[^>]*\bhref=["']?(?:https?:)?//[^>]*>""",
    re.IGNORECASE,
)
"""Tags that make a browser ask another host for something. Links a reader may follow are fine."""
IMPORTING = re.compile(r"""@import\s+(?:url\()?["']?(?:https?:)?//|url\(["']?(?:https?:)?//""")
"""The same within a style sheet."""


def on_post_build(config: Any) -> None:
    """Complaints are warnings, which --strict makes errors."""
    site = Path(config.site_dir)
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    for path, text in pages.items():
        for tag in FETCHING.findall(text):
            log.warning("%s fetches from elsewhere: %s", path.relative_to(site), tag)
    for path in site.rglob("*.css"):
        if IMPORTING.search(path.read_text(encoding="utf-8")):
            log.warning("%s fetches from elsewhere", path.relative_to(site))
    reference = "".join(text for path, text in pages.items() if path.parent.name == "reference")
    anchors = set(re.findall(r'id="(journeyman\.[\w.]+)"', reference))
    for name in journeyman.__all__:
        if f"journeyman.{name}" not in anchors and not _has_a_page(site, name):
            log.warning("journeyman.%s is not in the reference", name)


def _has_a_page(site: Path, name: str) -> bool:
    """Packages among the public names, and the version, which the index of names states."""
    shared = {"studies": "learning"}
    page = f"{shared.get(name, name)}.html"
    return name == "__version__" or (site / "reference" / page).exists()
