"""The server's side of worker processes: jobs are sent, events and results come back.

One process renews certificates and does what takes a moment, another one solves by a method of
one's choice, so that a long solve delays nothing else. A process that was lost fails the jobs it
had, and is replaced when the next job comes.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from journeyman.errors import JourneymanError

LONGEST_LINE = 64 << 20
Listener = Callable[[dict[str, Any]], None]


class JobFailed(JourneymanError):
    """A job ended with an error; the message is for the page."""


class WorkerLost(JobFailed):
    """The process ended before the job did."""


class _Process:
    """One process, and the jobs that it has."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.waiting: dict[int, tuple[asyncio.Future[dict[str, Any]], Listener]] = {}
        self.reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> "_Process":
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "journeyman.studio.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE, start_new_session=True,
            )
        )  # fmt: skip

    def write(self, line: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line).encode() + b"\n")

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await asyncio.wait([self.reader])

    async def _read(self) -> None:
        """Results until the process ends, or writes what is no result."""
        assert self.process.stdout is not None
        try:
            async for line in self.process.stdout:
                self._receive(json.loads(line))
        except ValueError:
            self.process.kill()
        code = await self.process.wait()
        for future, _ in self.waiting.values():
            if not future.done():
                future.set_exception(
                    WorkerLost(
                        f"The process that learns has ended (code {code}). Nothing that was "
                        "recorded is lost; it starts again with the next episode or setting."
                    )
                )

    def _receive(self, message: dict[str, Any]) -> None:
        number = message["id"]
        future, listener = self.waiting[number]
        if "event" in message:
            listener(message["event"])
            return
        del self.waiting[number]
        if future.done():
            return
        if "error" in message:
            future.set_exception(JobFailed(message["error"]))
        else:
            future.set_result(message["result"])


class WorkerProcess:
    """A process that is started when it is first needed, and again when it was lost."""

    def __init__(self) -> None:
        self._current: _Process | None = None
        self._last = 0
        self._starting = asyncio.Lock()

    async def send(
        self, job: dict[str, Any], listener: Listener = lambda event: None
    ) -> tuple[int, "asyncio.Future[dict[str, Any]]"]:
        """The number of the job, and its future result; its events go to `listener`."""
        async with self._starting:
            if self._current is None or self._current.reader.done():
                self._current = await _Process.start()
            current = self._current
        self._last += 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        current.waiting[self._last] = future, listener
        current.write({"id": self._last, **job})
        return self._last, future

    async def call(self, job: dict[str, Any]) -> dict[str, Any]:
        """The result of a job, or `JobFailed`."""
        _, future = await self.send(job)
        return await future

    def stop(self, number: int) -> None:
        """Ask a job to stop: it ends with what it has."""
        if self._current is not None and number in self._current.waiting:
            self._current.write({"stop": number})

    async def close(self) -> None:
        """End the process."""
        if self._current is not None:
            await self._current.end()
