"""How long fuzzers of readers try: a few examples in `make test`, many more in `make fuzz`.

    JOURNEYMAN_FUZZ_SECONDS=600      every fuzzer goes on for so long
    JOURNEYMAN_FUZZ_EXAMPLES=20000   every fuzzer tries so many examples

Either makes the examples others every time. Without them a fuzzer tries the few that it asks for,
the same ones always.
"""

import functools
import os
import sys
import time

import pytest
from hypothesis import settings

EXAMPLES = int(os.environ.get("JOURNEYMAN_FUZZ_EXAMPLES", "0"))
SECONDS = float(os.environ.get("JOURNEYMAN_FUZZ_SECONDS", "0"))
BATCH = 200
"""Examples between looks at the clock."""


def tried(examples):
    """A decorator for fuzzers, over Hypothesis' `given`: how many examples, or for how long."""

    def decorate(fuzzer):
        if not (SECONDS or EXAMPLES):
            return pytest.mark.fuzz(settings(max_examples=examples)(fuzzer))
        return pytest.mark.fuzz(_going_on(fuzzer))

    return decorate


def _going_on(fuzzer):
    """The fuzzer with other examples again and again, telling how many they were."""
    count, tried_one = [0], fuzzer.hypothesis.inner_test

    @functools.wraps(tried_one)
    def counted(*given, **named):
        count[0] += 1
        tried_one(*given, **named)

    fuzzer.hypothesis.inner_test = counted
    batch = BATCH if SECONDS else EXAMPLES
    once = settings(max_examples=batch, derandomize=False, print_blob=True)(fuzzer)

    @functools.wraps(once)
    def again(*given, **named):
        start = time.monotonic()
        once(*given, **named)
        while time.monotonic() - start < SECONDS:
            once(*given, **named)
        seconds = time.monotonic() - start
        sys.stdout.write(f"{fuzzer.__name__}: {count[0]} examples in {seconds:.0f} s\n")

    return again
