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
