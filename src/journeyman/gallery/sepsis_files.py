"""The data of the icu-sepsis package, read without running any of its code.

`dynamics.npz` holds a law for each of 716 states and 25 actions. Actions that were taken too rarely
to be estimated, the inadmissible ones, got the mean law of their state's admissible actions; that
is checked here and their rows are left behind. Nothing is read before its announced shape and size
are the published ones, and the laws are read state by state: their 102 MB are never in memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import IO, TypeAlias
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, SparseMatrix
from journeyman.errors import InvalidFile, MissingExtra

PATIENTS, ACTIONS = 713, 25
DEATH, SURVIVAL, END = range(PATIENTS, PATIENTS + 3)
STATES = END + 1
KNOWN_VERSIONS = "2."
TEXT_LIMIT = 1 << 17
"""Bytes; all 25 actions in every state would take 50,000."""
MEAN_TOLERANCE = 1e-12
MEND = "Install it again: pip install --force-reinstall 'icu-sepsis>=2.0.1,<3'"

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SepsisFiles:
    """What was published: `laws` has one row per admissible action of a patient's state."""

    admissible: BoolArray
    initial: FloatArray
    clinicians: FloatArray
    sofa: FloatArray
    laws: SparseMatrix


def read_sepsis_files() -> SepsisFiles:
    """The files of the installed package, or what is wrong with them."""
    folder = _assets()
    try:
        admissible = _admissible(folder / "admissible_actions.txt")
        with ZipFile(folder / "dynamics.npz") as archive:
            return SepsisFiles(
                admissible,
                _array(archive, "d_0", (STATES,)),
                _array(archive, "expert_policy", (STATES, ACTIONS)),
                _array(archive, "sofa_scores", (STATES,)),
                _laws(archive, admissible),
            )
    except InvalidFile:
        raise
    except FileNotFoundError as fault:
        raise InvalidFile(f"icu-sepsis lacks its file {fault.filename}", MEND) from fault
    except Exception as fault:  # zipfile, zlib and numpy have many ways to say "damaged"
        raise InvalidFile(f"icu-sepsis has damaged files in {folder}: {fault}", MEND) from fault


def _assets() -> Path:
    """Where the data lie. Finding a package does not import it, and this one imports gym."""
    spec = util.find_spec("icu_sepsis")
    if spec is None:
        raise MissingExtra("icu-sepsis", "icu")
    if not spec.submodule_search_locations:
        raise InvalidFile(
            f"{spec.origin} stands before the package icu-sepsis", "Give that module another name"
        )
    try:
        version = metadata.version("icu-sepsis")
    except metadata.PackageNotFoundError:
        version = KNOWN_VERSIONS  # a bare copy: its files are checked all the same
    if not version.startswith(KNOWN_VERSIONS):
        raise InvalidFile(
            f"icu-sepsis {version} is installed, but only the files of 2.x are known", MEND
        )
    return Path(next(iter(spec.submodule_search_locations)), "envs", "assets")


def _admissible(path: Path) -> BoolArray:
    """(states x actions), from a line with the number of actions per state and a line for each."""
    with path.open(encoding="ascii") as stream:
        counts, *lines = stream.read(TEXT_LIMIT).splitlines()
    actions = [[int(word) for word in line.split()] for line in lines]
    sound = len(actions) == STATES and all(
        chosen and chosen == sorted(set(chosen) & set(range(ACTIONS))) for chosen in actions
    )
    if not sound or [len(chosen) for chosen in actions] != [int(word) for word in counts.split()]:
        raise InvalidFile(
            f"{path} of icu-sepsis does not list actions from 0 to 24 for each of {STATES} states",
            MEND,
        )
    mask = np.zeros((STATES, ACTIONS), dtype=bool)
    for state, chosen in enumerate(actions):
        mask[state, chosen] = True
    return mask


def _laws(archive: ZipFile, admissible: BoolArray) -> SparseMatrix:
    """The rows of admissible actions of patients; the premises about the others are checked."""
    kept = []
    for state, laws in enumerate(_slices(archive, "tx_mat", (STATES, ACTIONS, STATES))):
        offered, filled_in = laws[admissible[state]], laws[~admissible[state]]
        if (laws[:, END] != (state >= PATIENTS)).any():
            raise InvalidFile(f"tx_mat of icu-sepsis: state {state} does not end as known", MEND)
        if not (np.abs(filled_in - offered.mean(axis=0)) <= MEAN_TOLERANCE).all():
            raise InvalidFile(
                f"tx_mat of icu-sepsis: state {state} has an inadmissible action whose law is not "
                "the mean of the admissible ones",
                MEND,
            )
        if state < PATIENTS:
            kept.append(sparse.csr_array(offered))
    return sparse.vstack(kept, format="csr")


def _array(archive: ZipFile, name: str, shape: Shape) -> FloatArray:
    return np.array(list(_slices(archive, name, shape))).reshape(shape)


def _slices(archive: ZipFile, name: str, shape: Shape) -> Iterator[FloatArray]:
    """The array entry by entry of its first axis, once it is known to be as large as it should."""
    member = archive.getinfo(f"{name}.npy")
    size = 8 * int(np.prod(shape[1:], dtype=int))
    with archive.open(member) as stream:
        found = _announced(stream)
        if found != (shape, False, np.dtype("<f8")):
            raise InvalidFile(
                f"{name} of icu-sepsis is an array {found[0]} of {found[2]}"
                f"{' in Fortran order' * found[1]}, known is {shape} of float64",
                MEND,
            )
        if member.file_size - stream.tell() != shape[0] * size:
            raise InvalidFile(f"{name} of icu-sepsis does not hold what it announces", MEND)
        for _ in range(shape[0]):
            yield np.frombuffer(stream.read(size), dtype="<f8").reshape(shape[1:])


def _announced(stream: IO[bytes]) -> tuple[Shape, bool, np.dtype[np.generic]]:
    """Shape, order and type from the header of an array."""
    major, _ = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    return tuple(shape), bool(fortran), dtype
