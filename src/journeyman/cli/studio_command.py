"""`journeyman studio`: a local page on which to demonstrate and to read what is certified."""

from pathlib import Path
from typing import Annotated

import typer


def studio(
    directory: Annotated[
        Path,
        typer.Argument(help="Where sessions are kept, and files and runs are looked for."),
    ] = Path(),
    port: Annotated[
        int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Demonstrate by hand, on a local page, and certify.

    The address that is printed holds a token; whoever has it can use the studio. Nothing listens
    outside this computer, and no file outside the directory is read or written. Ctrl-C ends it.
    """
    import os
    import secrets
    import socket
    from importlib.util import find_spec

    from journeyman.errors import InvalidFile, MissingExtra

    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtra(package.capitalize(), "studio")
    if directory.exists() and not directory.is_dir():
        raise InvalidFile(f"{directory} is a file", "Give a directory")
    directory.mkdir(parents=True, exist_ok=True)
    if not os.access(directory, os.W_OK):
        raise InvalidFile(
            f"{directory} cannot be written to, and sessions are kept there",
            "Give another directory: journeyman studio DIRECTORY",
        )
    # Of protocol TCP by name: else asyncio leaves answers waiting 40 ms for their second packet.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as fault:
        listener.close()
        raise typer.BadParameter(
            f"port {port} cannot be used ({fault.strerror}); leave it out for a free one",
            param_hint="--port",
        ) from None
    token = secrets.token_urlsafe(32)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/#token={token}"
    _serve(listener, directory.resolve(), token, address, browser)


def _serve(listener: object, directory: Path, token: str, address: str, browser: bool) -> None:
    """Answer until Ctrl-C or SIGTERM."""
    import socket

    import uvicorn

    from journeyman.studio.server import application

    assert isinstance(listener, socket.socket)

    class Announced(uvicorn.Server):
        """Prints its address once it answers."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            typer.echo(f"journeyman studio: {address}")
            typer.echo(f"Sessions are kept in {directory}. Ctrl-C ends the studio.", err=True)
            if browser:
                import webbrowser

                webbrowser.open(address)

    app = application(directory, token, listener.getsockname()[1])
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, date_header=False,
        lifespan="on", timeout_graceful_shutdown=2, ws="none",
    )  # fmt: skip
    Announced(config).run(sockets=[listener])
