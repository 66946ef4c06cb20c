"""Hypothesis profile: reproducible, without deadlines (machines are shared). Signals as usual.

Linear algebra takes one thread: tests run in several processes already, and threads that wait for
each other on busy cores doubled the time of many of them.

Shells ignore SIGINT in their background jobs, and children inherit that; tests of Ctrl-C would then
fail for a reason that has nothing to do with the code. So it is listened for here, which gives
child processes the default as well.
"""

import os
import signal
import threading

from hypothesis import HealthCheck, settings

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # read when NumPy is loaded
    os.environ.setdefault(name, "1")

settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)
