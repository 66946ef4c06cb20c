"""What every request has to pass, and what every response carries.

The server listens on the loopback interface only. That is not enough: any page in the browser can
send requests there. So the Host header has to name this server (a name of somebody else's that
resolves to 127.0.0.1 does not), calls carry a token that only the page's own address holds, and
what changes anything comes from this origin, as JSON, in a body of bounded size.
"""

import secrets
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "x-studio-token"
LARGEST_BODY = 256 << 10
"""Bytes; the largest drawing has less than a tenth of it."""
API = "/api/"
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


TOO_LONG = "The request is too long."


class TooLong(Exception):
    """A body is longer than allowed."""


class Guard:
    """Around the application: refuses what is not the page's own."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        guarded = _guarded(send)
        if refusal is not None:
            await refused(*refusal)(scope, receive, guarded)
            return
        await self.app(scope, _bounded(receive), guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason, if a request is not to be answered."""
        headers = Headers(scope=scope)
        if headers.getlist("host")[1:] or headers.get("host", "").lower() not in self.hosts:
            return 421, "This server answers requests to 127.0.0.1 only."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "There is no such method here."
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "The request comes from another page."
        if not scope["path"].startswith(API):
            return (405, "Pages are only read.") if scope["method"] == "POST" else None
        given = headers.get(TOKEN_HEADER, "")
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return 401, "The token is missing or wrong: open the address that the command printed."
        return self._of_change(scope, headers) if scope["method"] == "POST" else None

    def _of_change(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if headers.get("origin", "") not in {f"http://{host}" for host in self.hosts}:
            return 403, "The request comes from another page."
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return 415, "Send JSON."
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > LARGEST_BODY:
            return 413, TOO_LONG
        return None


def refused(status: int, words: str) -> JSONResponse:
    """An error as the page reads it."""
    return JSONResponse({"error": words}, status)


def _bounded(receive: Receive) -> Receive:
    """A body that ends with an error when it gets too long, whatever its header says."""
    count = 0

    async def bounded() -> Message:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b""))
        if count > LARGEST_BODY:
            raise TooLong
        return message

    return bounded


def _guarded(send: Send) -> Send:
    """Every response with the headers above."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message.get("headers", [])}
            more: list[Any] = [
                (name.encode(), value.encode())
                for name, value in HEADERS.items()
                if name.encode() not in own
            ]
            message["headers"] = [*message.get("headers", []), *more]
        await send(message)

    return guarded
