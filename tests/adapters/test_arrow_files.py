"""Parquet and Arrow files are read by a process that may die of them, and nobody else does."""

import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import journeyman as jm
from journeyman.adapters import arrow_files
from journeyman.adapters.arrow_files import open_arrow

LIMIT = 50_000_000


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.parquet"
    numbers = np.arange(200_000)
    names = pa.array([f"episode {k % 7}" for k in range(numbers.size)])
    pq.write_table(pa.table({"number": numbers, "name": names}), path)
    return path


def read(path, **more):
    with open_arrow(path, "Parquet", memory=LIMIT, texts=["name"], **more) as file:
        batches = list(file.batches(["number", "name"]))
        parts = [np.concatenate([b.filled(name) for b in batches]) for name in ("number", "name")]
        return file, *parts


def worker_id():
    return arrow_files._Worker.current.process.pid


def test_columns_arrive_in_batches_and_texts_as_numbers(table):
    file, numbers, names = read(table)
    assert (file.names, file.num_rows) == (["number", "name"], 200_000)
    np.testing.assert_array_equal(numbers, np.arange(200_000))
    assert file.texts == [f"episode {k}" for k in range(7)]
    np.testing.assert_array_equal(names, np.arange(200_000) % 7)


def test_one_process_reads_many_files(table):
    read(table)
    first = worker_id()
    read(table)
    assert worker_id() == first


def test_a_process_that_was_killed_is_started_again(table):
    read(table)
    os.kill(worker_id(), signal.SIGKILL)
    arrow_files._Worker.current.process.wait()
    assert read(table)[0].num_rows == 200_000


def test_a_process_that_dies_over_a_file_is_an_error_of_the_file(table):
    dies = pytest.raises(
        jm.errors.InvalidFile, match=r"table.parquet is not a whole Parquet .* SIGKILL"
    )
    with open_arrow(table, "Parquet", memory=LIMIT) as file:
        os.kill(worker_id(), signal.SIGKILL)
        arrow_files._Worker.current.process.wait()
        with dies:
            list(file.batches(["number"]))
    assert read(table)[0].num_rows == 200_000


def test_a_reader_that_stops_half_way_disturbs_nobody(table):
    with open_arrow(table, "Parquet", memory=LIMIT) as file:
        next(file.batches(["number"]))
    assert read(table)[0].num_rows == 200_000


def test_what_unpacks_to_more_than_is_allowed_is_refused(tmp_path):
    """One name, repeated: some kilobytes that are 260 megabytes of text."""
    path, rows = tmp_path / "names.parquet", 1 << 16
    names = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["x" * 4000])
    columns = {name: np.zeros(rows, np.int64) for name in ("t", "state", "action", "next_state")}
    pq.write_table(pa.table({"episode": names, **columns}), path, store_schema=False)
    assert path.stat().st_size < 100_000
    with pytest.raises(jm.errors.InvalidFile, match="unpacks to more memory than it is allowed"):
        jm.read_demonstrations(path, memory_limit=20_000_000)


def test_columns_in_other_files_are_refused(tmp_path):
    """A footer of its own, which names the file that has the columns."""
    footers, path = [], tmp_path / "footer.parquet"
    columns = {name: [0] for name in ("episode", "t", "state", "action", "next_state")}
    pq.write_table(pa.table(columns), tmp_path / "columns.parquet", metadata_collector=footers)
    footers[0].set_file_path("columns.parquet")
    footers[0].write_metadata_file(path)
    with pytest.raises(jm.errors.InvalidFile, match="episode lies in another file"):
        jm.read_demonstrations(path)


def test_long_texts_are_refused(tmp_path):
    path = tmp_path / "names.parquet"
    columns = {name: [0] for name in ("t", "state", "action", "next_state")}
    pq.write_table(pa.table({"episode": ["x" * 10_001], **columns}), path)
    with pytest.raises(jm.errors.InvalidFile, match="episode holds a text of 10001 characters"):
        jm.read_demonstrations(path)


def test_the_process_ends_with_its_parent(table):
    script = (
        "import sys, journeyman as jm; from journeyman.adapters import arrow_files\n"
        "from pathlib import Path\n"
        "with arrow_files.open_arrow(Path(sys.argv[1]), 'Parquet', memory=10**8) as file:\n"
        "    list(file.batches(['number']))\n"
        "print(arrow_files._Worker.current.process.pid)"
    )
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, table],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(shown.stdout), 0)
