"""What lies in the chosen directory: sessions, runs and files that worlds and costs can come from;
and what a session gives away: demonstrations, policy, certificate, run and report as files.
"""

import io
import json
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from journeyman.runs.run_directory import CERTIFICATE
from journeyman.studio.session import CERTIFIED, NOTE, REPORT, SESSION, Session
from journeyman.studio.worlds import MOST_LISTED, WORLD_SUFFIXES, listed

TITLE = re.compile(rb'"title": ("(?:[^"\\]|\\.){0,200}")')
POLICY = "policy.npz"


def contents(directory: Path) -> dict[str, Any]:
    """Sessions, newest first; other runs; files."""
    sessions, runs, files = [], [], []
    for path in listed(directory):
        name = path.relative_to(directory).as_posix()
        if path.is_dir():
            if (path / SESSION).is_file():
                sessions.append(_session(path, name))
            elif _is_run(path) and not (path.parent / SESSION).is_file():
                runs.append(name)
        elif path.suffix.lower() in WORLD_SUFFIXES and not _belongs_to_a_run(path, directory):
            files.append(name)
    sessions.sort(key=lambda one: -one["changed"])
    return {
        "directory": directory.name, "sessions": sessions[:MOST_LISTED],
        "runs": runs[:MOST_LISTED], "files": files[:MOST_LISTED],
    }  # fmt: skip


def _session(path: Path, name: str) -> dict[str, Any]:
    with (path / SESSION).open("rb") as stream:
        found = TITLE.search(stream.read(4096))
    title = json.loads(found[1]) if found else name
    return {"name": name, "title": title, "changed": (path / SESSION).stat().st_mtime}


def _is_run(path: Path) -> bool:
    own = (path / CERTIFICATE).is_file() and path.name != CERTIFIED
    return own or (path / CERTIFIED / CERTIFICATE).is_file()


def _belongs_to_a_run(path: Path, directory: Path) -> bool:
    place = path.parent
    while place != directory:
        if (place / CERTIFICATE).is_file() or (place / SESSION).is_file():
            return True
        place = place.parent
    return False


def demonstrations(session: Session, suffix: str) -> bytes:
    """All recorded episodes as CSV or in the native format."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / f"demonstrations.{suffix}"
        session.demonstrations().save(path)
        return path.read_bytes()


def policy_table(session: Session) -> bytes:
    """The policy as CSV, as `journeyman policy export` writes it."""
    from journeyman.policy import Policy
    from journeyman.policy.listing import Listing

    world = session.world
    policy = Policy.load(session.directory / CERTIFIED / POLICY)
    names = [session.state_name(state) for state in range(world.num_states)]
    text = io.StringIO()
    Listing.of(world, policy, state_names=names).write(text)
    return text.getvalue().encode()


def packed(session: Session) -> bytes:
    """The run directory as a ZIP file, which `journeyman audit` reads once it is unpacked."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((session.directory / CERTIFIED).iterdir()):
            archive.write(path, f"{session.name}/{CERTIFIED}/{path.name}")
        for name in (NOTE, REPORT):
            if (session.directory / name).exists():
                archive.write(session.directory / name, f"{session.name}/{name}")
    return stream.getvalue()
