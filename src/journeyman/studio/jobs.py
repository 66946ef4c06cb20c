"""The server's side of worker processes: jobs are sent, events and results come back.

One process renews certificates and does what takes a moment, another one solves by a method of
one's choice, so that a long solve stands in nobody's way. A process that was lost fails the jobs it
had, and is replaced when the next job comes.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from journeyman.errors import JourneymanError

LONGEST_LINE = 64 << 20
Listener = Callable[[dict[str, Any]], None]


class JobFailed(JourneymanError):
    """A job ended with an error; the message is for the page."""


class WorkerProcess:
    """A process that is started when it is first needed."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: dict[int, tuple[asyncio.Future[dict[str, Any]], Listener]] = {}
        self._last = 0
        self._starting = asyncio.Lock()

    async def send(
        self, job: dict[str, Any], listener: Listener = lambda event: None
    ) -> tuple[int, "asyncio.Future[dict[str, Any]]"]:
        """Its number, and the result it will have; events of it go to `listener` meanwhile."""
        process = await self._running()
        self._last += 1
        number = self._last
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future, listener
        self._write(process, {"id": number, **job})
        return number, future

    async def call(
        self, job: dict[str, Any], listener: Listener = lambda event: None
    ) -> dict[str, Any]:
        """The result of a job, or `JobFailed`."""
        _, future = await self.send(job, listener)
        return await future

    def stop(self, number: int) -> None:
        """Ask a job to stop: it ends with what it has."""
        if self._process is not None and number in self._waiting:
            self._write(self._process, {"stop": number})

    async def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._reader is not None:
            await asyncio.wait([self._reader])

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-P", "-m", "journeyman.studio.worker",
                    stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                    limit=LONGEST_LINE, start_new_session=True,
                )  # fmt: skip
                self._reader = asyncio.create_task(self._read(self._process))
            return self._process

    @staticmethod
    def _write(process: asyncio.subprocess.Process, line: dict[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(line).encode() + b"\n")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        with suppress(ValueError, OSError):
            async for line in process.stdout:
                self._take(json.loads(line))
        code = await process.wait()
        lost, self._waiting = self._waiting, {}
        for future, _ in lost.values():
            if not future.done():
                future.set_exception(
                    JobFailed(
                        f"The process that learns has ended (code {code}); it starts again with "
                        "the next demonstration or setting. Nothing that was recorded is lost."
                    )
                )

    def _take(self, message: dict[str, Any]) -> None:
        number = message["id"]
        if number not in self._waiting:
            return
        future, listener = self._waiting[number]
        if "event" in message:
            listener(message["event"])
            return
        del self._waiting[number]
        if future.done():
            return
        if "error" in message:
            future.set_exception(JobFailed(message["error"]))
        else:
            future.set_result(message["result"])
