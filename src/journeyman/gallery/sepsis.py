"""ICU-Sepsis: treating sepsis in intensive care, with the clinicians as expert. A model for
comparing algorithms, *not for clinical use*.

713 states are clusters of patients' conditions in the MIMIC-III records. Each step gives fluids and
vasopressors, both at one of five levels, until the patient dies or survives. The choices of the
clinicians are published with it. By survival they are hardly better than uniform ones (.7818 and
.7801, exact and undiscounted; the best policy has .8751), so there are four costs:

    death          probability that the next state is death
    fluids         level / 4
    vasopressors   level / 4
    SOFA           mean organ failure score of the patients in the state / 24, the worst there is

Only admissible actions are offered, those taken often enough to be estimated. The published file
gives the others the mean law of their state's admissible ones. If they were offered, a policy could
choose its doses without any effect on the patient. The published policy takes them in 12 steps of
100; there the expert of this example draws an admissible action uniformly, which has the same law.
So its states, deaths and SOFA scores are the published ones, but not its doses: per stay,
undiscounted, it gives 0.36 of vasopressors instead of 0.81, and 4.24 of fluids instead of 4.25.

The laws are estimates whose counts were not published, and the world counts as exact: what a
certificate shows here, it shows about the model and not about patients.

Reference: Choudhary, Gupta, Thomas, "ICU-Sepsis: a benchmark MDP built from real medical data",
2024. The data are read from the package icu-sepsis (MIT), whose code is not run.
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
from journeyman.costs import CostBasis
from journeyman.errors import InvalidFile, MissingExtra
from journeyman.gallery.example import Example
from journeyman.policy import Policy
from journeyman.world import World

PATIENTS, ACTIONS = 713, 25
DEATH, SURVIVAL, END = range(PATIENTS, PATIENTS + 3)
STATES = END + 1
KNOWN_VERSIONS = "2."
TEXT_LIMIT = 1 << 17
"""Bytes; all 25 actions in every state would take 50,000."""
MEAN_TOLERANCE = 1e-12
REINSTALL = "Install it again: pip install --force-reinstall 'icu-sepsis>=2.0.1,<3'"

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SepsisFiles:
    """The data of the icu-sepsis package, read without running any of its code; `laws` has one row
    per admissible action of a patient's state.

    `dynamics.npz` holds a law for each of 716 states and 25 actions. Actions that were taken too
    rarely to be estimated, the inadmissible ones, got the mean law of their state's admissible
    actions; that is checked here and their rows are left behind. Nothing is read before its
    announced shape and size are the published ones, and the laws are read state by state: their
    102 MB are never in memory.
    """

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
        raise InvalidFile(f"icu-sepsis lacks its file {fault.filename}", REINSTALL) from fault
    except Exception as fault:  # zipfile, zlib and numpy report damage in many ways
        raise InvalidFile(
            f"icu-sepsis has damaged files in {folder}: {fault}", REINSTALL
        ) from fault


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
            f"icu-sepsis {version} is installed, but only the files of 2.x are known", REINSTALL
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
            REINSTALL,
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
            raise InvalidFile(
                f"tx_mat of icu-sepsis: state {state} does not end as known", REINSTALL
            )
        if not (np.abs(filled_in - offered.mean(axis=0)) <= MEAN_TOLERANCE).all():
            raise InvalidFile(
                f"tx_mat of icu-sepsis: state {state} has an inadmissible action whose law is not "
                "the mean of the admissible ones",
                REINSTALL,
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
                REINSTALL,
            )
        if member.file_size - stream.tell() != shape[0] * size:
            raise InvalidFile(f"{name} of icu-sepsis does not hold what it announces", REINSTALL)
        for _ in range(shape[0]):
            yield np.frombuffer(stream.read(size), dtype="<f8").reshape(shape[1:])


def _announced(stream: IO[bytes]) -> tuple[Shape, bool, np.dtype[np.generic]]:
    """Shape, order and type from the header of an array."""
    major, _ = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    return tuple(shape), bool(fortran), dtype


LEVELS = 5
"""Action a gives fluids at level a // 5 and vasopressors at level a % 5."""
WORST_SOFA = 24
COSTS = ("death", "fluids", "vasopressors", "SOFA")
ENDS = ("death", "survival", "end")


class ClinicalExample(Example):
    """An example made from patients' records: for comparing algorithms, not for clinical use."""

    __slots__ = ()

    @property
    def description(self) -> str:
        return (
            "ICU-Sepsis, a model of sepsis treatment made from the MIMIC-III records, for "
            "comparing algorithms. Not for clinical use."
        )

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"ClinicalExample(not for clinical use: {parts})"


def icu_sepsis(*, discount: float = 0.99) -> ClinicalExample:
    """World, costs and the clinicians' policy; not for clinical use.

    States are numbered as published; death and survival (713, 714) stay where they are and cost
    nothing, as episodes of the package end there, so that 715 is never reached. Actions have their
    published numbers, of which a state offers those that were taken there often enough.

    Raises `MissingExtra` when icu-sepsis is not installed: `pip install journeyman[icu]`.

    >>> example = icu_sepsis()
    >>> world, basis, expert = example
    >>> world.num_states, world.num_pairs, basis.names
    (716, 2241, ('death', 'fluids', 'vasopressors', 'SOFA'))
    >>> example.description[-21:]
    'Not for clinical use.'
    """
    files = read_sepsis_files()
    offered = files.admissible[:PATIENTS]
    ends = np.arange(PATIENTS, STATES)
    remain = (np.ones(ends.size), ends, np.arange(ends.size + 1))
    choices = np.append(offered.sum(axis=1), np.ones_like(ends))
    world = World(
        sparse.vstack([files.laws, sparse.csr_array(remain, shape=(ends.size, STATES))]),
        files.initial,
        discount,
        choice_offsets=np.append(0, np.cumsum(choices)),
        state_names=[*(f"patients {group}" for group in range(PATIENTS)), *ENDS],
        observed_actions=np.append(np.nonzero(offered)[1], np.zeros_like(ends)),
        sink=SURVIVAL if discount == 1 else None,
    )
    return ClinicalExample(world, CostBasis(_costs(files), COSTS), _clinicians(files, world))


def _costs(files: SepsisFiles) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """One row per pair, zero where the stay has ended."""
    states, actions = np.nonzero(files.admissible[:PATIENTS])
    fluids, vasopressors = np.divmod(actions, LEVELS)
    death = files.laws[:, [DEATH]].toarray().ravel()
    highest = LEVELS - 1
    treated = np.column_stack(
        [death, fluids / highest, vasopressors / highest, files.sofa[states] / WORST_SOFA]
    )
    return np.vstack([treated, np.zeros((STATES - PATIENTS, len(COSTS)))])


def _clinicians(files: SepsisFiles, world: World) -> Policy:
    """Inadmissible actions have the mean law of admissible ones: their share is spread evenly."""
    offered, published = files.admissible[:PATIENTS], files.clinicians[:PATIENTS]
    share = published.sum(axis=1, where=~offered) / offered.sum(axis=1)
    law = (published + share[:, np.newaxis])[offered]
    return Policy(np.append(law, np.ones(STATES - PATIENTS)), world.pairs)
