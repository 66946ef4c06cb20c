"""Optional packages: not imported before they are needed, and asked for by name when missing."""

import subprocess
import sys

import pytest

import journeyman as jm

SOUND = jm.Demonstrations([0, 1], [0], [0, 1])
WITHOUT = """
import sys
for name in sys.argv[3:]:
    sys.modules[name] = None
import journeyman as jm
demos = jm.Demonstrations([0, 1], [0], [0, 1])
try:
    if sys.argv[1] == "read":
        jm.read_demonstrations(sys.argv[2])
    else:
        jm.write_demonstrations(demos, sys.argv[2], format=sys.argv[1])
except jm.errors.MissingExtra as missing:
    sys.stdout.write(str(missing))
"""


@pytest.mark.parametrize(
    ("form", "package", "extra"),
    [
        ("parquet", "pyarrow", "parquet"), ("imitation", "pyarrow", "parquet"),
        ("minari", "h5py", "minari"),
    ],
)  # fmt: skip
def test_readers_name_the_extra_they_lack(tmp_path, form, package, extra):
    path = tmp_path / ("demos.parquet" if form == "parquet" else "demos-v0")
    jm.write_demonstrations(SOUND, path, format=form)
    command = [sys.executable, "-c", WITHOUT, "read", str(path), package]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"pip install 'journeyman[{extra}]'" in shown.stdout


@pytest.mark.parametrize(
    ("form", "package", "extra"),
    [("parquet", "pyarrow", "parquet"), ("imitation", "pyarrow", "parquet"),
     ("minari", "minari", "minari")],
)  # fmt: skip
def test_writers_name_the_extra_they_lack(tmp_path, form, package, extra):
    path = tmp_path / "demos-v0"
    command = [sys.executable, "-c", WITHOUT, form, str(path), package]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"pip install 'journeyman[{extra}]'" in shown.stdout
    assert list(tmp_path.iterdir()) == []


def test_plain_files_need_none(tmp_path):
    jm.write_demonstrations(SOUND, tmp_path / "demos.csv")
    code = (
        "import sys, journeyman as jm; jm.read_demonstrations(sys.argv[1]); "
        "sys.stdout.write(str({'pyarrow', 'h5py', 'minari', 'gymnasium'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "demos.csv")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout == "set()"
