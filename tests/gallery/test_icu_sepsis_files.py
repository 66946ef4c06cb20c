"""The files of icu-sepsis are read without its code, and refused when they are not as known."""

import io
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import journeyman as jm

PACKAGE = Path(find_spec("icu_sepsis").submodule_search_locations[0])
DYNAMICS, ACTIONS = "dynamics.npz", "admissible_actions.txt"
HIDE = """
import sys
from importlib.machinery import PathFinder

class Elsewhere(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "icu_sepsis" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Elsewhere
"""


def run(script):
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return shown.stdout.strip()


@pytest.fixture
def assets(tmp_path, monkeypatch):
    """The data of a copy of the package that is found first."""
    copy = tmp_path / "icu_sepsis"
    shutil.copytree(PACKAGE / "envs" / "assets", copy / "envs" / "assets")
    (copy / "__init__.py").write_text("raise RuntimeError('this code must not run')\n")
    monkeypatch.syspath_prepend(tmp_path)
    return copy / "envs" / "assets"


def replace_array(path, name, array):
    """Add a newer version of one array, in the way zip files have."""
    stored = io.BytesIO()
    np.lib.format.write_array(stored, array, allow_pickle=True)
    replace_member(path, name, stored.getvalue())


def replace_member(path, name, data):
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        archive.writestr(f"{name}.npy", data)


def refused(match):
    return pytest.raises(jm.errors.InvalidFile, match=match)


def test_a_copy_serves_as_well_and_its_code_is_not_run(assets):
    assert jm.gallery.icu_sepsis().world.num_pairs == 2241


def test_neither_the_package_nor_what_it_imports_is_loaded():
    foreign = "{'icu_sepsis', 'gym', 'gymnasium', 'matplotlib', 'pandas', 'sklearn'}"
    script = "import sys, journeyman as jm; print(jm.gallery.icu_sepsis().world.num_states, "
    assert run(f"{script} {foreign} & set(sys.modules))") == "716 set()"


def test_a_missing_package_is_named_with_its_remedy():
    script = "import journeyman as jm\ntry:\n    jm.gallery.icu_sepsis()\n"
    message = run(f"{HIDE}{script}except jm.errors.MissingExtra as missing:\n    print(missing)\n")
    assert message == "icu-sepsis is not installed: pip install 'journeyman[icu]'"


def test_a_module_of_the_same_name_is_not_taken_for_the_package(tmp_path, monkeypatch):
    (tmp_path / "icu_sepsis.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(tmp_path)
    with refused("icu_sepsis.py stands before the package"):
        jm.gallery.icu_sepsis()


@pytest.mark.parametrize("version", ["1.0.2", "3.0"])
def test_other_versions_are_refused(assets, version):
    facts = assets.parents[2] / f"icu_sepsis-{version}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: icu-sepsis\nVersion: {version}")
    with refused(f"icu-sepsis {version} is installed"):
        jm.gallery.icu_sepsis()


@pytest.mark.parametrize("name", [DYNAMICS, ACTIONS])
def test_a_missing_file_is_named(assets, name):
    (assets / name).unlink()
    with refused(f"lacks its file .*{name}.*pip install --force-reinstall"):
        jm.gallery.icu_sepsis()


@pytest.mark.parametrize("length", [0, 100, 1_000_000, -1])
def test_a_truncated_file_is_refused(assets, length):
    whole = (assets / DYNAMICS).read_bytes()
    (assets / DYNAMICS).write_bytes(whole[:length])
    with refused("damaged files"):
        jm.gallery.icu_sepsis()


@pytest.mark.parametrize("position", [1_000, 900_000, 1_400_000])
def test_a_flipped_byte_is_noticed(assets, position):
    data = bytearray((assets / DYNAMICS).read_bytes())
    data[position] ^= 255
    (assets / DYNAMICS).write_bytes(data)
    with refused("icu-sepsis"):
        jm.gallery.icu_sepsis()


def test_a_missing_array_is_refused(assets):
    (assets / DYNAMICS).unlink()
    np.savez(assets / DYNAMICS, d_0=np.ones(716), sofa_scores=np.ones(716))
    with refused("damaged.*expert_policy"):
        jm.gallery.icu_sepsis()


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("tx_mat", np.zeros((750, 25, 750), np.int8), r"tx_mat .* \(750, 25, 750\) of int8"),
        ("d_0", np.zeros(717), r"d_0 .* array \(717,\) .* known is \(716,\)"),
        ("d_0", np.zeros(716, np.float32), "of float32, known"),
        ("d_0", np.full(716, None), "d_0 .* of object"),
        ("sofa_scores", np.zeros((716, 1)), r"sofa_scores .* \(716, 1\)"),
        ("expert_policy", np.zeros((716, 25), order="F"), "in Fortran order"),
    ],
)
def test_arrays_of_another_shape_or_type_are_refused(assets, name, array, message):
    replace_array(assets / DYNAMICS, name, array)
    with refused(message):
        jm.gallery.icu_sepsis()


def test_an_array_that_holds_less_than_it_announces_is_refused(assets):
    header = io.BytesIO()
    facts = {"descr": "<f8", "fortran_order": False, "shape": (716, 25, 716)}
    np.lib.format.write_array_header_1_0(header, facts)
    replace_member(assets / DYNAMICS, "tx_mat", header.getvalue() + bytes(800))
    with refused("tx_mat of icu-sepsis does not hold what it announces"):
        jm.gallery.icu_sepsis()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ((0, 0), "state 0 has an inadmissible action whose law is not the mean"),
        ((713, slice(None)), "state 713 does not end as known"),
    ],
)
def test_laws_without_the_known_structure_are_refused(assets, where, message):
    """Inadmissible actions have mean laws, and stays end in known states."""
    with np.load(assets / DYNAMICS, allow_pickle=False) as arrays:
        laws = arrays["tx_mat"]
    laws[where] = np.eye(716)[where[0]]
    replace_array(assets / DYNAMICS, "tx_mat", laws)
    with refused(message):
        jm.gallery.icu_sepsis()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n5 10 15 20 \n", "\n5 10 15 25 \n"),
        ("\n5 10 15 20 \n", "\n5 10 15 15 \n"),
        ("\n5 10 15 20 \n", "\n5 10 15 \n"),
        ("\n5 10 15 20 \n", "\n\n"),
        ("\n5 10 15 20 \n", "\n5 10 15 twenty \n"),
        ("\n5 10 15 20 \n", "\n"),
        ("4 1 ", "1 4 "),
    ],
)
def test_a_damaged_list_of_actions_is_refused(assets, old, new):
    path = assets / ACTIONS
    path.write_text(path.read_text().replace(old, new, 1))
    with refused("icu-sepsis"):
        jm.gallery.icu_sepsis()
