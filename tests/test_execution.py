"""Executors: equal bits everywhere, nothing lost with a worker, errors that say which task."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
import task_work as work
from journeyman.execution import environment, one_blas_thread

WEIGHTS = np.random.default_rng(1).standard_normal(20_000)
SEEDS = jm.execution.seeds_of(7, 12)


@pytest.fixture(scope="module")
def pool():
    with jm.Processes(3) as executor:
        yield executor


def bits(results):
    """Results down to the last bit, with the sums of their parts in order."""
    return [
        np.asarray(part).tobytes() for result in [*results, total_of(results)] for part in result
    ]


def total_of(results):
    return [jm.execution.sum_in_order(parts) for parts in zip(*results, strict=True)]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_workers_changes_no_bit(workers):
    serial = jm.Serial().map(work.delicate_sum, SEEDS, shared=WEIGHTS)
    spread = jm.Processes(workers).map(work.delicate_sum, SEEDS, shared=WEIGHTS)
    assert bits(serial) == bits(spread)


def test_the_delicate_sum_is_delicate():
    """Otherwise the test above says nothing: another order has to give other bits."""
    serial = jm.Serial().map(work.delicate_sum, SEEDS, shared=WEIGHTS)
    forwards, backwards = total_of(serial)[2], total_of(serial[::-1])[2]
    assert (forwards != backwards).any()
    np.testing.assert_allclose(forwards, backwards)


def test_threads_of_the_caller_change_no_bit(tmp_path):
    """OpenBLAS with two threads adds a long product in another order than with one."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import journeyman as jm, task_work as work, numpy as np\n"
        "weights = np.random.default_rng(1).standard_normal(20_000)\n"
        "seeds = jm.execution.seeds_of(7, 12)\n"
        "for result in jm.Serial().map(work.delicate_sum, seeds, shared=weights):\n"
        "    print(result[0].hex())\n"
    )
    threads = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    shown = subprocess.run(
        [sys.executable, "-c", script, str(Path(work.__file__).parent)],
        env={**os.environ, **threads}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    spread = jm.Processes(2).map(work.delicate_sum, SEEDS, shared=WEIGHTS)
    assert shown.stdout.split() == [result[0].hex() for result in spread]


def test_blas_gets_its_threads_back():
    from journeyman.execution import _libraries

    libraries = _libraries()
    assert libraries, "no OpenBLAS found beside NumPy: is this NumPy from a wheel?"
    before = [count() for count, _ in libraries]
    for _, limit in libraries:
        limit(2)
    with one_blas_thread():
        assert [count() for count, _ in libraries] == [1] * len(libraries)
    assert [count() for count, _ in libraries] == [2] * len(libraries)
    for (_, limit), threads in zip(libraries, before, strict=True):
        limit(threads)


def test_workers_have_one_thread_and_the_caller_keeps_its_own(pool):
    before = dict(os.environ)
    seen = pool.map(work.environment_of, range(4))
    assert seen == [{"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}] * 4
    assert dict(os.environ) == before


def test_an_environment_is_put_back(monkeypatch):
    monkeypatch.setenv("JOURNEYMAN_OLD", "old")
    monkeypatch.delenv("JOURNEYMAN_NEW", raising=False)
    with environment({"JOURNEYMAN_OLD": "other", "JOURNEYMAN_NEW": "new"}):
        assert os.environ["JOURNEYMAN_OLD"] == "other"
        assert os.environ["JOURNEYMAN_NEW"] == "new"
    assert os.environ["JOURNEYMAN_OLD"] == "old"
    assert "JOURNEYMAN_NEW" not in os.environ


def test_results_keep_the_order_of_the_tasks(pool):
    assert pool.map(work.wait_in_reverse, range(8), shared=8) == list(range(8))


@pytest.mark.parametrize("executor", [jm.Serial(), jm.Processes(2)], ids=repr)
def test_no_tasks_no_results(executor):
    assert executor.map(work.delicate_sum, []) == []


def test_a_killed_worker_loses_nothing_and_changes_no_bit(tmp_path):
    tasks = list(enumerate(SEEDS))
    folders = [tmp_path / name for name in ("killed", "calm")]
    for folder in folders:
        folder.mkdir()
    (folders[1] / "2").write_text("0\n")  # task 2 has died there already
    with jm.Processes(2) as executor:
        killed = executor.map(work.die_once, tasks, shared=str(folders[0]))
        assert executor.map(work.wait_in_reverse, range(4), shared=4) == list(range(4))
    calm = jm.Serial().map(work.die_once, tasks, shared=str(folders[1]))
    assert bits(killed) == bits(calm)
    attempts = [len((folders[0] / str(k)).read_text().split()) for k in range(len(tasks))]
    assert attempts[2] == 2
    others = sorted(attempts[:2] + attempts[3:])
    assert others[:-1] == [1] * (len(tasks) - 2)  # what had finished is not computed again
    assert others[-1] <= 2  # what the other worker was at may be


def test_a_task_that_kills_every_worker_is_given_up_by_name(pool, monkeypatch):
    monkeypatch.setattr("journeyman.execution.LOSSES", 1)
    with pytest.raises(
        jm.errors.TaskFailed, match=r"task 1 was lost .* killed by SIGKILL.*Serial\(\)"
    ):
        pool.map(work.die_always, range(4))
    with pytest.raises(jm.errors.TaskFailed, match=r"task 0 was lost .* exit code 7"):
        pool.map(work.leave, range(1))
    assert pool.map(work.wait_in_reverse, range(4), shared=4) == list(range(4))


def test_a_task_is_given_up_only_when_it_was_alone(tmp_path, monkeypatch):
    """A pool is lost as a whole: those who worked beside the culprit are not blamed."""
    monkeypatch.setattr("journeyman.execution.LOSSES", 2)
    with pytest.raises(jm.errors.TaskFailed, match="task 3 was lost"), jm.Processes(3) as executor:
        executor.map(work.die_in_company, range(6), shared=str(tmp_path))
    attempts = [len((tmp_path / str(k)).read_text().split()) for k in range(4)]
    assert attempts[3] == 3
    assert max(attempts) == 3


def test_the_first_failing_task_is_raised_with_its_number():
    for executor in (jm.Serial(), jm.Processes(3)):
        with pytest.raises(ValueError, match="no 3") as caught:
            executor.map(work.fail_from_three, range(8))
        assert "in task 3 of 0..7" in caught.value.__notes__[0]
    assert 'raise ValueError(f"no {task}")' in caught.value.__notes__[0]


def test_an_exception_that_cannot_travel_is_reported_in_words(pool):
    with pytest.raises(jm.errors.TaskFailed, match="Awkward: this and that") as caught:
        pool.map(work.fail_awkwardly, range(2))
    assert "in task 0 of 0..1" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "error",
    [
        jm.errors.InvalidWorld("discount = 2", "0.99"),
        jm.errors.MissingExtra("ray", "ray"),
        jm.errors.TaskFailed("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_own_errors_can_travel(error):
    error.add_note("in task 3")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize("order", ["C", "F"])
def test_shared_arrays_arrive_equal_and_read_only(pool, order):
    array = np.asarray(np.random.default_rng(0).standard_normal((300, 500)), order=order)
    shared = {"array": array, "rest": ("x", np.int64(3))}
    seen = pool.map(work.describe_shared, range(6), shared=shared)
    expected = array.sum(), array.dtype.str, order == "F", ("x", 3), False
    assert seen == [expected] * 6


def test_arrays_without_entries_arrive(pool):
    assert pool.map(work.shape_of, range(2), shared=np.zeros((0, 4))) == [(0, 4)] * 2
    assert pool.map(work.shape_of, range(2), shared=np.zeros(())) == [()] * 2


def test_a_world_can_be_shared(pool):
    world, _, _ = jm.gallery.grid(size=4)
    seen = pool.map(work.flow_into_start, range(3), shared=world)
    assert seen == jm.Serial().map(work.flow_into_start, range(3), shared=world)


def test_what_is_shared_travels_once_per_worker(tmp_path):
    shared = work.Counted(str(tmp_path / "unpacked"))
    with jm.Processes(2) as executor:
        seen = executor.map(work.use_counted, range(20), shared=shared)
    assert [value for _, value in seen] == [float(k) for k in range(20)]
    workers = {pid for pid, _ in seen}
    unpacked = Counter(int(pid) for pid in (tmp_path / "unpacked").read_text().split())
    assert os.getpid() not in workers
    assert set(unpacked) >= workers
    assert set(unpacked.values()) == {1}


def test_what_is_shared_is_sent_anew_with_every_map(pool):
    values = np.zeros(1)
    first = pool.map(work.describe_shared, range(3), shared={"array": values, "rest": None})
    values[0] = 1.0
    second = pool.map(work.describe_shared, range(3), shared={"array": values, "rest": None})
    assert [result[0] for result in first + second] == [0.0] * 3 + [1.0] * 3


def test_processes_are_kept_inside_a_block_and_gone_after_it():
    with jm.Processes(1) as executor:
        first, second = (executor.map(work.process_id, range(3)) for _ in range(2))
        with pytest.raises(jm.errors.InvalidInput, match="open already"), executor:
            pass
    assert len({*first, *second}) == 1
    assert not is_running(first[0])


def test_no_file_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    jm.Processes(1).map(work.describe_shared, [0], shared={"array": WEIGHTS, "rest": None})
    with pytest.raises(jm.errors.InvalidInput):
        jm.Processes(1).map(work.describe_shared, [lambda: 0], shared={"array": WEIGHTS})
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_sent_is_refused_by_name(pool):
    with pytest.raises(
        jm.errors.InvalidInput, match=r"function cannot be sent.*top level of a module"
    ):
        pool.map(lambda task, shared: task, range(2))
    with pytest.raises(jm.errors.InvalidInput, match="shared cannot be sent"):
        pool.map(work.process_id, range(2), shared=lambda: 0)
    with pytest.raises(jm.errors.InvalidInput, match="task 1 cannot be sent"):
        pool.map(work.process_id, [0, lambda: 0])
    with pytest.raises(jm.errors.InvalidInput, match="the result cannot be sent") as caught:
        pool.map(work.return_function, range(2))
    assert "in task 0 of 0..1" in caught.value.__notes__[0]
    assert len(pool.map(work.process_id, range(4))) == 4


UNGUARDED = """
import journeyman as jm
def double(task, _): return 2 * task
jm.Processes(2).map(double, range(3))
"""
TYPED = """
import journeyman as jm
def double(task, _): return 2 * task
print(jm.Processes(2).map(double, range(3)))
"""


def test_a_script_without_a_guard_gets_advice(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    shown = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert shown.returncode == 1
    assert "TaskFailed: a worker process could not start" in shown.stderr
    assert "if __name__ == '__main__':" in shown.stderr


def test_a_function_typed_into_an_interpreter_gets_advice():
    shown = subprocess.run(
        [sys.executable, "-c", TYPED], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 1
    assert "InvalidInput: a worker process could not open what it was sent" in shown.stderr
    assert "those of an interactive session" in shown.stderr


INTERRUPTED = """
import os, signal, sys, time
import journeyman as jm
def wait(task, _):
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(600)
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job started with & ignores it
    with jm.Processes(2) as executor:
        executor.map(wait, range(4))
"""


def test_ctrl_c_ends_the_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        workers = [int(process.stdout.readline()) for _ in range(2)]
        assert all(is_running(worker) for worker in workers)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert not any(is_running(worker) for worker in workers)


def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED.replace("600", "0.2").replace("range(4)", "range(400)"))
    folder = {**os.environ, "TMPDIR": str(tmp_path)}  # nobody is left to tidy up
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=folder,
    ) as process:
        workers = {int(process.stdout.readline()) for _ in range(4)}
        process.kill()
        process.communicate(timeout=60)
    waited = time.monotonic()
    while any(is_running(worker) for worker in workers):
        assert time.monotonic() < waited + 60, "workers outlive their parent"
        time.sleep(0.05)


def is_running(process_id):
    """Whether a process is there and not only a zombie that nobody has reaped."""
    shown = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process_id)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip()[:1] not in {"", "Z"}


def test_an_observer_hears_of_every_task(pool):
    seen = []
    for executor in (jm.Serial(observer=seen.append), jm.Processes(2, observer=seen.append)):
        executor.map(work.wait_in_reverse, range(5), shared=5)
    assert [(event.task, event.iteration) for event in seen] == [
        ("tasks", k) for k in [1, 2, 3, 4, 5] * 2
    ]


def test_a_faulty_observer_costs_a_warning_only():
    def broken(event):
        raise OSError("no display")

    with pytest.warns(UserWarning, match="no display"):
        assert jm.Serial(observer=broken).map(pow, [2, 3], shared=2) == [4, 9]


@given(seed=st.integers(0, 2**63), few=st.integers(0, 5), more=st.integers(0, 5))
def test_seeds_are_those_numpy_spawns(seed, few, more):
    spawned = np.random.SeedSequence(seed).spawn(few + more)
    seeds = jm.execution.seeds_of(seed, few + more)
    assert [child.generate_state(4).tolist() for child in seeds] == [
        child.generate_state(4).tolist() for child in spawned
    ]
    first = [child.spawn_key for child in jm.execution.seeds_of(seed, few)]
    assert first == [child.spawn_key for child in seeds[:few]]


def test_seeds_of_a_task_are_new_and_the_same_each_time():
    parent = jm.execution.seeds_of(3, 2)[1]
    assert [child.spawn_key for child in jm.execution.seeds_of(parent, 2)] == [(1, 0), (1, 1)]
    assert [child.spawn_key for child in jm.execution.seeds_of(parent, 2)] == [(1, 0), (1, 1)]
    assert parent.n_children_spawned == 0


@given(total=st.integers(0, 300), size=st.integers(1, 50))
def test_ranges_cover_everything_once(total, size):
    tasks = jm.execution.ranges_of(total, size)
    assert [k for start, stop in tasks for k in range(start, stop)] == list(range(total))
    assert all(stop - start == size for start, stop in tasks[:-1])
    assert all(0 < stop - start <= size for start, stop in tasks)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_counts_are_checked(bad):
    with pytest.raises(jm.errors.InvalidInput, match=r"workers = .* at least 1"):
        jm.Processes(bad)
    with pytest.raises(jm.errors.InvalidInput, match=r"workers = .* at least 1"):
        jm.Ray(num_workers=bad)
    with pytest.raises(jm.errors.InvalidInput, match=r"size = .* at least 1"):
        jm.execution.ranges_of(3, bad)


def test_sums_round_once_per_part():
    assert jm.execution.sum_in_order([1e16, 1.0, 1.0]) == 1e16
    assert jm.execution.sum_in_order([1.0, 1.0, 1e16]) == 1e16 + 2.0
    first = np.ones(2)
    assert jm.execution.sum_in_order([first, np.ones(2)]).tolist() == [2.0, 2.0]
    assert first.tolist() == [1.0, 1.0]


def test_ray_is_asked_for_by_name_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(jm.errors.MissingExtra, match=r"pip install 'journeyman\[ray\]'"):
        jm.Ray().map(work.process_id, range(2))


def test_settings_of_ray_that_do_not_fit_are_refused():
    with pytest.raises(jm.errors.InvalidInput, match="token_file without address"):
        jm.Ray(token_file="token")
    with pytest.raises(jm.errors.InvalidInput, match="object_store_memory"):
        jm.Ray("auto", object_store_memory=10**8)


PAGE = (Path(__file__).parents[1] / "docs" / "scaling-out.md").read_text(encoding="utf-8")


def test_the_first_example_of_the_page_prints_one_number_twice(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0])
    shown = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    numbers = [line.split() for line in shown.stdout.splitlines()]
    assert [name for name, _ in numbers] == ["Serial()", "Processes(2)"]
    assert len({number for _, number in numbers}) == 1


def test_workers_that_are_named_keep_what_tasks_leave(tmp_path):
    tasks, workers = [(f"part {k}", "first") for k in range(5)], [0, 0, 1, 4, 7]
    with jm.Processes(3) as executor:
        assert executor.is_open
        assert executor.slots == 3
        first = executor.map_on(workers, work.leave_and_find, tasks, shared=str(tmp_path))
        again = executor.map_on(workers, work.leave_and_find, tasks, shared=str(tmp_path))
    places = [process for process, _ in first]
    assert places == [process for process, _ in again]
    assert places[0] == places[1] != places[2]
    assert places[2] == places[3] == places[4]
    assert [found for _, found in first] == [None] * 5
    assert [found for _, found in again] == ["first"] * 5
    assert not executor.is_open


def test_a_named_worker_that_died_has_nothing_and_the_others_everything(tmp_path):
    tasks = [(f"part {k}", "first") for k in range(4)]
    deadly = [("part 0", "die"), *tasks[1:]]
    with jm.Processes(2) as executor:
        executor.map_on(range(4), work.leave_and_find, tasks, shared=str(tmp_path))
        found = executor.map_on(range(4), work.leave_and_find, deadly, shared=str(tmp_path))
        assert [one for _, one in found][:2] == [None, "first"]
        assert found[2][0] == found[0][0] != found[1][0] == found[3][0]
        assert found[3][1] == "first"


def test_one_worker_is_named_for_each_task():
    for executor in (jm.Serial(), jm.Processes(2)):
        with pytest.raises(jm.errors.InvalidInput, match="2 workers for 3 tasks"):
            executor.map_on([0, 1], divmod, [1, 2, 3], shared=2)
        assert executor.map_on([3, 0], divmod, [5, 7], shared=2) == [(2, 1), (3, 1)]
