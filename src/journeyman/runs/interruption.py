"""Ctrl-C and SIGTERM: the stride is finished, the state saved, and the run can be continued.

While a solver runs, its `Watch` turns the first Ctrl-C into a request to stop. SIGTERM is made to
look like Ctrl-C, so it ends a stride alike. Outside a solver both end the work at once: every file
is written atomically, nothing can be left half done.
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

    def heed(self) -> None:
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
        request.was_made = True
        if callable(previous):
            previous(number, frame)

    signal.signal(signal.SIGINT, notice if callable(previous) else previous)
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
        if not callable(signal.getsignal(signal.SIGINT)):  # ignored, as in background jobs
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    is_main = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGTERM, terminate) if is_main else None
    try:
        yield
    except (KeyboardInterrupt, Stop) as stop:
        raise Interrupted(received) from stop
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)
