"""Functions that tests send to workers; they stand in a module of their own to be importable."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np


def delicate_sum(seed, shared):
    """Sums that change with every change of order: products over twenty orders of magnitude."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal(20_000) * 10.0 ** rng.integers(-10, 10, 20_000)
    return float(draws @ shared), float(draws.sum()), np.cumsum(draws)[::1000]


def wait_in_reverse(task, last):
    """The first tasks take longest."""
    time.sleep(0.02 * (last - task))
    return task


def die_once(task, folder):
    """Task 2 kills its process the first time; every attempt leaves a line behind."""
    number, seed = task
    attempts = Path(folder) / str(number)
    with attempts.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if number == 2 and len(attempts.read_text().splitlines()) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return delicate_sum(seed, np.ones(20_000))


def die_always(task, _):
    if task == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def die_in_company(task, folder):
    """Task 3 kills its process every time, after the others have begun; all leave lines behind."""
    with (Path(folder) / str(task)).open("a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(0.2 if task == 3 else 0.4)
    if task == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def leave(task, _):
    os._exit(7)


def fail_from_three(task, _):
    """Tasks 3 and 5 fail, 5 sooner than 3."""
    if task in {3, 5}:
        time.sleep(0.2 if task == 3 else 0.0)
        raise ValueError(f"no {task}")
    return task


class Awkward(Exception):
    """An exception that cannot be rebuilt from its arguments."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def fail_awkwardly(task, _):
    raise Awkward("this", "that")


def describe_shared(task, shared):
    """What a worker sees of a nested value, and whether it can write to it."""
    array, rest = shared["array"], shared["rest"]
    try:
        array[0] = 7.0
        written = True
    except ValueError:
        written = False
    return array.sum(), array.dtype.str, array.flags.f_contiguous, rest, written


class Counted:
    """A value that leaves a line behind whenever a process unpacks it."""

    def __init__(self, log):
        self.log = log
        self.array = np.arange(300_000.0)

    def __setstate__(self, state):
        self.__dict__.update(state)
        with Path(self.log).open("a") as file:
            file.write(f"{os.getpid()}\n")


def use_counted(task, shared):
    time.sleep(0.01)
    return os.getpid(), float(shared.array[task])


def environment_of(task, _):
    return {name: os.environ.get(name) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}


def return_function(task, _):
    return lambda: task


def process_id(task, _):
    return os.getpid()


def flow_into_start(task, world):
    return float(world.transition[:, [task]].sum()), world.transition.data.flags.writeable


def shape_of(task, shared):
    return shared.shape


def wait_for_the_end_of_the_node(task, shared):
    """The first task away from the head says where it is and waits for its node to be killed."""
    import ray

    _, seed = task
    node, note = ray.get_runtime_context().get_node_id(), Path(shared["note"])
    if node != shared["head"] and not note.exists():
        note.with_suffix(".new").write_text(node)
        note.with_suffix(".new").rename(note)
        time.sleep(600)
    return delicate_sum(seed, shared["weights"])


def wait_long(task, _):
    time.sleep(0.0 if task == 0 else 600.0)
    return task


def return_lock(task, _):
    return threading.Lock()


class Losing:
    """An executor that loses a worker in the middle: task 1 of its first map kills its process."""

    def __init__(self, executor, note):
        self.executor, self.note = executor, Path(note)

    def map(self, function, tasks, *, shared=None):
        work = function, shared, self.note
        return self.executor.map(die_before_the_work, list(enumerate(tasks)), shared=work)


def die_before_the_work(numbered, shared):
    (number, task), (function, shared, note) = numbered, shared
    if number == 1 and not note.exists():
        note.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return function(task, shared)


LEFT = {}
"""What tasks of `leave_and_find` have left in this process."""


def leave_and_find(task, folder):
    """The process, and what earlier tasks of this name have left in it; "die" kills it once."""
    name, order = task
    if order == "die" and not (Path(folder) / name).exists():
        (Path(folder) / name).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    found = LEFT.get(name)
    LEFT[name] = order
    return os.getpid(), found
