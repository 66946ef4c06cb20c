"""Ctrl-C and SIGTERM: the stride is finished, the state saved, and the run can be continued.

While a solver runs, its `Watch` turns the first Ctrl-C into a request to stop. SIGTERM goes to
whoever listens for Ctrl-C, so it ends a stride alike. Outside a solver both end the work at once:
every file is written atomically, nothing can be left half done. A shell ignores SIGINT in its
background jobs so that Ctrl-C reaches the job in the foreground only; there it stays ignored, and
SIGTERM stops a run.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):
    """The person or the system asked to stop; `signal_number` says how."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


class Stop(Exception):
    """A solver came back early because it was asked to."""


class Request:
    """Whether Ctrl-C was pressed."""

    was_made = False

    def stop_if_made(self) -> None:
        """Stop if it was."""
        if self.was_made:
            raise Stop


@contextmanager
def noticing() -> Iterator[Request]:
    """Remember a Ctrl-C that a solver takes for itself, which may then end regularly all the same.

    Outside a solver it raises `KeyboardInterrupt` as ever.
    """
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    previous = signal.getsignal(signal.SIGINT)

    def notice(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and previous is signal.SIG_IGN:
            return
        request.was_made = True
        if not callable(previous):
            raise KeyboardInterrupt
        previous(number, frame)

    signal.signal(signal.SIGINT, notice)
    try:
        yield request
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def stopping_gently() -> Iterator[None]:
    """Within it, Ctrl-C, SIGTERM and `Stop` end as `Interrupted`."""
    received = signal.SIGINT

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received = signal.SIGTERM
        listener = signal.getsignal(signal.SIGINT)
        if not callable(listener):  # SIGINT is ignored, as in background jobs
            raise KeyboardInterrupt
        listener(number, frame)

    is_main = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGTERM, terminate) if is_main else None
    try:
        yield
    except (KeyboardInterrupt, Stop) as stop:
        raise Interrupted(received) from stop
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)
