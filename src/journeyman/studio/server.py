"""The server of the studio: routes, live sessions, renewal of certificates, events for the page.

A request is answered from memory. After whatever changes what is recorded or declared, the
certificate is renewed by a worker process; a stream of events notifies every tab of it, and of what
other tabs do.
"""

import asyncio
import json
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from journeyman.errors import InvalidFile, JourneymanError
from journeyman.runs.run_directory import locked
from journeyman.storage import digest
from journeyman.studio import library
from journeyman.studio.jobs import JobFailed, WorkerLost, WorkerProcess
from journeyman.studio.security import TOO_LONG, Guard, TooLong, refused
from journeyman.studio.session import (
    CERTIFIED,
    NAME,
    REPORT,
    SESSION,
    Conflict,
    Refused,
    Session,
    Settings,
    adopt,
    continues,
    solver_of,
)
from journeyman.studio.worlds import TOY_TEXT, build, inside

STATIC = Path(__file__).parent / "static"
MOST_LIVE = 16
"""Sessions in memory; the longest unused one is left to its files when another one comes."""
MOST_BEGUN, PERIOD = 60, 60.0
"""New sessions within so many seconds."""
MOST_KEPT = 500
"""Sessions in the directory."""
MOST_LISTENERS = 12
HEARTBEAT = 15.0
MOST_LOST = 2
"""Workers that may be lost in one renewal before it is given up."""
PATIENCE = 60.0
"""Seconds that a download waits for a certificate that is being renewed."""
ASIDE = ".solved"
DOWNLOADS = {
    "demonstrations.csv": "text/csv", "demonstrations.npz": "application/octet-stream",
    "policy.csv": "text/csv", "policy.npz": "application/octet-stream",
    "certificate.json": "application/json", "run.zip": "application/zip",
    "report.html": "text/html",
}  # fmt: skip
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript",
         ".svg": "image/svg+xml"}  # fmt: skip


ORDER = count()
"""Of states as they were made: the page leaves out one that arrives after a later one."""


@dataclass
class Live:
    """A session in memory, the tabs that show it and the work that is done for it."""

    session: Session
    listeners: set["asyncio.Queue[dict[str, Any]]"] = field(default_factory=set)
    renewal: "asyncio.Task[None] | None" = None
    job: int | None = None
    """Of the certificate that is being renewed."""
    paused: str | None = None
    """The key of a renewal that was stopped by hand."""
    is_opened: bool = False
    """Whether it comes from files, so that its run there may be the one of what is recorded."""
    solve: int | None = None
    """Of a long solve."""
    solving: "asyncio.Task[None] | None" = None
    problem: str = ""
    """Why the last renewal failed."""
    lock: ExitStack = field(default_factory=ExitStack)
    is_locked: bool = False

    def notify(self, message: dict[str, Any]) -> None:
        """Send a message to every tab."""
        for one in self.listeners:
            if one.qsize() < 1000:
                one.put_nowait(message)

    def state(self) -> dict[str, Any]:
        """All that the page shows."""
        session = self.session
        return session.state() | {
            "order": next(ORDER), "renewing": self.renewal is not None,
            "solving": self.solve is not None, "paused": self.paused == session.key(),
            "problem": self.problem,
        }  # fmt: skip

    def changed(self) -> None:
        """Send the state to every tab, without the board, which they have."""
        self.notify({"state": {name: one for name, one in self.state().items() if name != "board"}})

    def hold(self) -> None:
        """Keep other servers away from the files, as soon as there are any."""
        if self.session.written and not self.is_locked:
            self.lock.enter_context(locked(self.session.directory))
            self.is_locked = True


class Studio:
    """All live sessions of one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.live: OrderedDict[str, Live] = OrderedDict()
        self.quick, self.long = WorkerProcess(), WorkerProcess()
        self.begun: deque[float] = deque()
        self.closing = False

    # Sessions

    async def begin(self, choice: Any) -> Live:
        """A new session in a chosen world."""
        now = time.monotonic()
        while self.begun and now - self.begun[0] > PERIOD:
            self.begun.popleft()
        if len(self.begun) >= MOST_BEGUN:
            raise TooMany(f"{MOST_BEGUN} sessions were begun within a minute", "Wait for a minute")
        kept = sum(1 for _ in self.directory.glob(f"*/{SESSION}"))
        if kept >= MOST_KEPT:
            raise TooMany(f"the directory holds {kept} sessions", "Remove some of them")
        self.begun.append(now)
        stage = await run_in_threadpool(build, choice, self.directory)
        return self._add(Session.begin(self.directory, stage))

    async def open(self, name: str) -> Live:
        """The session of that name, from memory or from its files."""
        if name in self.live:
            self.live.move_to_end(name)
            return self.live[name]
        if not NAME.fullmatch(name):
            raise InvalidFile(f"there is no session {name[:80]!r}", "Open one of the list")
        place = self.directory / name
        if place.is_symlink() or not (place / SESSION).is_file():
            raise InvalidFile(f"there is no session {name!r}", "Open one of the list")
        session = await run_in_threadpool(Session.load, place)
        if name in self.live:
            return self.live[name]
        live = self._add(session)
        live.is_opened = True
        try:
            live.hold()
        except (JourneymanError, OSError):
            del self.live[name]
            raise
        self.renew(live)
        return live

    def _add(self, session: Session) -> Live:
        while len(self.live) >= MOST_LIVE:
            idle = [one for one in self.live.values() if not one.listeners and one.solve is None]
            oldest = (idle or list(self.live.values()))[0]
            self._forget(oldest)
        live = self.live[session.name] = Live(session)
        return live

    def _forget(self, live: Live) -> None:
        """Leave a session to its files."""
        if live.renewal is not None:
            live.renewal.cancel()
        live.lock.close()
        live.notify({"evicted": True})
        del self.live[live.session.name]

    # Renewal

    def renew(self, live: Live) -> None:
        """See to it that the certificate is that of what is recorded and declared."""
        live.paused = None
        if live.renewal is None:
            live.renewal = asyncio.create_task(self._renewing(live))
        elif live.job is not None:
            self.quick.stop(live.job)

    async def _renewing(self, live: Live) -> None:
        session = live.session
        live.problem = ""
        lost = 0
        try:
            while session.counted() and not self.closing and live.paused != session.key():
                try:
                    if session.saved_key != session.key():
                        await self._certify(live)
                    elif not await self._draw_point(live):
                        break
                except WorkerLost:
                    lost += 1
                    if lost > MOST_LOST:
                        raise
        except (JobFailed, OSError) as fault:
            live.problem = str(fault)
        finally:
            live.renewal = None
            live.changed()

    async def _certify(self, live: Live) -> None:
        """Find the certificate of what is recorded; in a session just opened it may be there."""
        session, key = live.session, live.session.key()
        job = self._job(session, "certify") | {"restore": live.is_opened}
        live.is_opened = False
        result = await self._sent(live, job)
        if "stopped" in result:
            return
        session.saved_key = key
        session.save()
        if session.view is not None and session.view["key"] == key:
            session.view["ranges"] = result["ranges"]
            live.changed()

    async def _draw_point(self, live: Live) -> bool:
        """Find a missing point of the curve; False when none is missing."""
        session = live.session
        missing = session.missing_points()
        if not missing:
            return False
        result = await self._sent(live, self._job(session, "point", missing[0]))
        if "point" in result:
            session.remember(result["key"], result["point"])
            if len(missing) == 1:
                session.save()
            live.changed()
        return True

    async def _sent(self, live: Live, job: dict[str, Any]) -> dict[str, Any]:
        live.job, future = await self.quick.send(job, lambda event: self._event(live, event))
        try:
            return await future
        finally:
            live.job = None

    def _event(self, live: Live, event: dict[str, Any]) -> None:
        if "progress" in event:
            live.notify({"renewal": event["progress"]})
            return
        session, view = live.session, event["view"]
        if view["key"] == session.key():
            session.certified(view, event["point"])
            live.changed()
        else:
            session.remember(view["key"], event["point"])

    def _job(self, session: Session, kind: str, upto: int | None = None) -> dict[str, Any]:
        return {
            "kind": kind, "session": str(session.directory), "key": session.key(upto),
            "settings": asdict(session.settings),
            "episodes": [asdict(one) for one in session.counted(upto)],
        }  # fmt: skip

    async def settled(self, live: Live) -> Session:
        """The session, once the run in its directory is that of what is recorded."""
        until = time.monotonic() + PATIENCE
        session = live.session
        while session.saved_key != session.key() or not session.counted():
            if live.renewal is None or time.monotonic() > until:
                raise Refused(
                    live.problem.rstrip(".") or "nothing is certified yet",
                    "Record one more episode, or resume what was stopped",
                )
            await asyncio.sleep(0.02)
        return session

    # Long solves

    async def solve(self, live: Live, asked: Any) -> None:
        """Begin or continue a solve by a chosen method; the tabs are notified of its progress."""
        session = live.session
        if live.solve is not None:
            raise Refused("a solve is under way", "Stop it first")
        if not session.counted():
            raise Refused("there is nothing to learn from", "Record a demonstration first")
        solver = solver_of(asked)
        job = self._job(session, "solve")
        word = digest(job["key"], json.dumps(solver, sort_keys=True))[:16]
        job |= {"solver": solver, "method_key": word, "aside": ASIDE}
        found: dict[str, Any] = {}

        def listen(event: dict[str, Any]) -> None:
            if "view" in event:
                found.update(event)
            else:
                live.notify(event)

        session.method = {"solver": solver, "continues": False}
        session.save()
        live.solve, future = await self.long.send(job, listen)
        live.changed()
        live.solving = asyncio.create_task(self._solving(live, job, future, found))

    async def _solving(
        self, live: Live, job: dict[str, Any], future: "asyncio.Future[dict[str, Any]]",
        found: dict[str, Any],
    ) -> None:  # fmt: skip
        session, outcome = live.session, "The solve has ended; this is its apprentice."
        try:
            result = await future
            if "stopped" in result:
                going_on = continues(session.directory, job["solver"])
                session.method = {"solver": job["solver"], "continues": going_on}
                outcome = ""
            else:
                session.method = None
                while live.job is not None:
                    await asyncio.sleep(0.02)
                if job["key"] == session.key():
                    view = found["view"] | {"ranges": result["ranges"]}
                    adopt(session.directory / ASIDE, view["note"])
                    session.saved_key = job["key"]
                    session.certified(view, found["point"])
                else:
                    outcome = "The solve was for other episodes or settings, and is left out."
            session.save()
        except (JobFailed, OSError) as fault:
            session.method, outcome = None, str(fault)
        finally:
            live.solve = live.solving = None
            live.notify({"solved": outcome})
            live.changed()

    def stop(self, live: Live) -> None:
        """Stop a long solve, or else the renewal."""
        if live.solve is not None:
            self.long.stop(live.solve)
        elif live.job is not None:
            live.paused = live.session.key()
            self.quick.stop(live.job)

    async def close(self) -> None:
        self.closing = True
        for live in list(self.live.values()):
            live.notify({"closing": True})
            if live.renewal is not None:
                live.renewal.cancel()
        await self.quick.close()
        await self.long.close()
        for live in self.live.values():
            live.lock.close()


class TooMany(Refused):
    """A limit on sessions is reached."""


# Routes

Handler = Callable[[Studio, Request], Awaitable[Response]]


def _answering(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """The handler with its errors as responses."""

    async def answer(request: Request) -> Response:
        studio: Studio = request.app.state.studio
        try:
            return await handler(studio, request)
        except Conflict:
            return refused(409, "Another tab was there first.")
        except JourneymanError as fault:
            return refused(429 if isinstance(fault, TooMany) else 400, str(fault))
        except TooLong:
            return refused(413, TOO_LONG)
        except (ValueError, RecursionError):  # of json.loads
            return refused(400, "The request is not JSON.")
        except OSError as fault:
            what = Path(str(fault.filename or "the session")).name
            return refused(
                507,
                f"{what} could not be written or read ({fault.strerror or fault}), so nothing was "
                "changed. Free some space, or start the studio in a directory you may write to.",
            )

    return answer


async def _body(request: Request) -> dict[str, Any]:
    content = json.loads(await request.body() or b"{}")
    if not isinstance(content, dict):
        raise Refused("the request holds no object", "Send an object")
    return content


async def _live(studio: Studio, request: Request) -> Live:
    return await studio.open(request.path_params["name"])


async def _library(studio: Studio, request: Request) -> Response:
    found = await run_in_threadpool(library.contents, studio.directory)
    toys = [{"name": name, "title": one["title"]} for name, one in TOY_TEXT.items()]
    found["gymnasium"] = toys if find_spec("gymnasium") else []
    return JSONResponse(found)


async def _begin(studio: Studio, request: Request) -> Response:
    body = await _body(request)
    return JSONResponse((await studio.begin(body.get("world"))).state())


async def _import(studio: Studio, request: Request) -> Response:
    run = (await _body(request)).get("run")
    if not isinstance(run, str):
        raise Refused("no run is named", "Open one of the list")
    place = inside(studio.directory, run)
    job = {"kind": "import", "run": str(place), "directory": str(studio.directory)}
    made = await studio.quick.call(job)
    return JSONResponse((await studio.open(made["name"])).state())


async def _state(studio: Studio, request: Request) -> Response:
    return JSONResponse((await _live(studio, request)).state())


async def _step(studio: Studio, request: Request) -> Response:
    body = await _body(request)
    live = await _live(studio, request)
    live.session.require_at(body.get("attempt"), body.get("step"))
    live.session.step(body.get("action"))
    return _moved(live)


async def _undo(studio: Studio, request: Request) -> Response:
    body = await _body(request)
    live = await _live(studio, request)
    live.session.require_at(body.get("attempt"), body.get("step"))
    live.session.undo()
    return _moved(live)


async def _restart(studio: Studio, request: Request) -> Response:
    body = await _body(request)
    live = await _live(studio, request)
    live.session.restart(body.get("start"))
    return _moved(live)


def _moved(live: Live) -> Response:
    live.hold()
    position = live.session.position()
    live.notify({"position": position})
    return JSONResponse(position)


async def _finish(studio: Studio, request: Request) -> Response:
    body = await _body(request)
    live = await _live(studio, request)
    live.session.require_at(body.get("attempt"), body.get("step"))
    live.session.finish()
    return _recorded(studio, live)


async def _drop(studio: Studio, request: Request) -> Response:
    body = await _body(request)
    live = await _live(studio, request)
    live.session.drop(body.get("episode"))
    return _recorded(studio, live)


async def _settings(studio: Studio, request: Request) -> Response:
    body = await _body(request)
    live = await _live(studio, request)
    live.session.declare(Settings.of(body))
    return _recorded(studio, live)


def _recorded(studio: Studio, live: Live) -> Response:
    studio.renew(live)
    live.changed()
    return JSONResponse(live.state())


async def _solve(studio: Studio, request: Request) -> Response:
    body = await _body(request)
    live = await _live(studio, request)
    await studio.solve(live, body)
    return JSONResponse(live.state())


async def _renew(studio: Studio, request: Request) -> Response:
    live = await _live(studio, request)
    studio.renew(live)
    return JSONResponse(live.state())


async def _stop(studio: Studio, request: Request) -> Response:
    live = await _live(studio, request)
    studio.stop(live)
    return JSONResponse({})


async def _audit(studio: Studio, request: Request) -> Response:
    session = await studio.settled(await _live(studio, request))
    found = await studio.quick.call({"kind": "audit", "session": str(session.directory)})
    return JSONResponse(found)


async def _replay(studio: Studio, request: Request) -> Response:
    body = await _body(request)
    session = await studio.settled(await _live(studio, request))
    number, draw = body.get("episode"), body.get("draw", 0)
    own = next((one for one in session.episodes if one.number == number), None)
    if own is None or isinstance(draw, bool) or not isinstance(draw, int) or not 0 <= draw < 10**6:
        raise Refused("there is no such episode", "Replay one of the list")
    job = {"kind": "replay", "session": str(session.directory), "seed": [session.seed, draw],
           "start": own.states[0],
           "steps": min(session.stage.most_steps, 2 * len(own.actions) + 10)}  # fmt: skip
    return JSONResponse({
        "expert": {"states": own.states, "actions": own.actions, "terminated": own.terminated},
        "apprentice": await studio.quick.call(job),
    })  # fmt: skip


async def _download(studio: Studio, request: Request) -> Response:
    kind = request.path_params["kind"]
    if kind not in DOWNLOADS:
        return refused(404, "There is no such file.")
    live = await _live(studio, request)
    session = live.session
    if kind.startswith("demonstrations"):
        if not session.episodes:
            raise Refused("nothing is recorded", "Record a demonstration first")
        suffix = kind.rpartition(".")[2]
        content = await run_in_threadpool(library.demonstrations, session, suffix)
    else:
        content = await _made(studio, await studio.settled(live), kind)
    stem, _, suffix = kind.rpartition(".")
    headers = {"content-disposition": f'attachment; filename="{session.name}-{stem}.{suffix}"'}
    return Response(content, media_type=DOWNLOADS[kind], headers=headers)


async def _made(studio: Studio, session: Session, kind: str) -> bytes:
    """The content of a file that rests on the certificate."""
    if kind == "policy.csv":
        return await run_in_threadpool(library.policy_table, session)
    if kind in ("report.html", "run.zip") and not (session.directory / REPORT).exists():
        title = f"Studio: {session.stage.title}"
        job = {"kind": "report", "session": str(session.directory), "title": title}
        await studio.quick.call(job)
    if kind == "run.zip":
        return await run_in_threadpool(library.packed, session)
    place = session.directory if kind == REPORT else session.directory / CERTIFIED
    return (place / kind).read_bytes()


async def _events(studio: Studio, request: Request) -> Response:
    live = await _live(studio, request)
    if len(live.listeners) >= MOST_LISTENERS:
        return refused(429, "Too many tabs show this session.")
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    queue.put_nowait({"state": live.state()})
    live.listeners.add(queue)

    async def stream() -> AsyncIterator[bytes]:
        try:
            while not studio.closing:
                try:
                    message = await asyncio.wait_for(queue.get(), HEARTBEAT)
                except TimeoutError:
                    yield b": here\n\n"
                    continue
                yield b"data: " + json.dumps(message).encode() + b"\n\n"
                if "closing" in message or "evicted" in message:
                    return
        finally:
            live.listeners.discard(queue)

    return StreamingResponse(stream(), media_type="text/event-stream")


async def _page(studio: Studio, request: Request) -> Response:
    name = request.path_params.get("file", "index.html")
    if name == "favicon.ico":
        name = "favicon.svg"
    known = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
    if name not in known:
        return refused(404, "There is no such page.")
    return FileResponse(known[name], media_type=TYPES[known[name].suffix])


async def _nothing(studio: Studio, request: Request) -> Response:
    return refused(404, "There is no such page.")


def application(directory: Path, token: str, port: int) -> ASGIApp:
    """The whole application, behind its guard."""
    studio = Studio(directory)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(_warm(studio))
        yield
        warming.cancel()
        await studio.close()

    own = "/api/sessions/{name}"
    routes = [
        ("/api/library", _library, "GET"), ("/api/sessions", _begin, "POST"),
        ("/api/runs", _import, "POST"), (own, _state, "GET"),
        (f"{own}/step", _step, "POST"), (f"{own}/undo", _undo, "POST"),
        (f"{own}/restart", _restart, "POST"), (f"{own}/finish", _finish, "POST"),
        (f"{own}/drop", _drop, "POST"), (f"{own}/settings", _settings, "POST"),
        (f"{own}/solve", _solve, "POST"), (f"{own}/stop", _stop, "POST"),
        (f"{own}/renew", _renew, "POST"),
        (f"{own}/audit", _audit, "POST"), (f"{own}/replay", _replay, "POST"),
        (f"{own}/files/{{kind}}", _download, "GET"), (f"{own}/events", _events, "GET"),
        ("/", _page, "GET"), ("/{file}", _page, "GET"), ("/{rest:path}", _nothing, "GET"),
    ]  # fmt: skip
    app = Starlette(
        routes=[Route(path, _answering(handler), methods=[way]) for path, handler, way in routes],
        lifespan=lifespan,
    )
    app.state.studio = studio
    return Guard(app, token, port)


async def _warm(studio: Studio) -> None:
    with suppress(JobFailed):
        await studio.quick.call({"kind": "warm"})
