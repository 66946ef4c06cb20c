"""One thread for the products of NumPy and SciPy, because the number of threads changes bits.

OpenBLAS splits a long product among its threads and adds the parts, so that `x @ y` depends on
the number of cores. Work that has to come out the same everywhere runs with one thread: processes
are started with `ONE_THREAD` in their environment, and `one_blas_thread` holds back the libraries
that this process has loaded or is about to load.

Only the OpenBLAS that comes inside the wheels of NumPy and SciPy can be held back from within; for
any other library set `OMP_NUM_THREADS=1` before Python starts.
"""

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

ONE_THREAD: Mapping[str, str] = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
"""Environment of a process whose arithmetic uses one thread; it is read when libraries load."""


@contextmanager
def environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment, for processes that start meanwhile, and put them back."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the BLAS of this process to one thread while the block runs."""
    libraries = _libraries()
    before = [count() for count, _ in libraries]
    try:
        for _, limit in libraries:
            limit(1)
        yield
    finally:
        for (_, limit), threads in zip(libraries, before, strict=True):
            limit(threads)


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], Any]]]:
    """Reader and setter of the number of threads, per library.

    SciPy's is loaded for the purpose when SciPy has not loaded it yet: a later import finds it in
    place, already held back.
    """
    import numpy as np

    site = Path(np.__file__).parents[1]
    found = []
    for pattern in ("*.libs/*openblas*", "numpy/.dylibs/*openblas*", "scipy/.dylibs/*openblas*"):
        for path in sorted(site.glob(pattern)):
            library = ctypes.CDLL(str(path))
            for ending in ("64_", ""):
                names = [f"scipy_openblas_{verb}_num_threads{ending}" for verb in ("get", "set")]
                if all(hasattr(library, name) for name in names):
                    found.append((getattr(library, names[0]), getattr(library, names[1])))
    return found
