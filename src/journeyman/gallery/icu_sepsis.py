"""ICU-Sepsis: treating sepsis in intensive care, with the clinicians as expert. A model for
comparing algorithms, *not for clinical use*.

713 states are clusters of patients' conditions in the MIMIC-III records. Each step gives fluids and
vasopressors, both at one of five levels, until the patient dies or survives. The choices of the
clinicians are published with it. Survival hardly tells them from uniform ones (.7818 and .7801,
exact and undiscounted; the best policy has .8751), so there are four costs:

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
certificate says here, it says about the model and not about patients.

Reference: Choudhary, Gupta, Thomas, "ICU-Sepsis: a benchmark MDP built from real medical data",
2024. The data are read from the package icu-sepsis (MIT), whose code is not run.
"""

import numpy as np
from scipy import sparse

from journeyman.costs import CostBasis
from journeyman.gallery.example import Example
from journeyman.gallery.sepsis_files import (
    DEATH,
    PATIENTS,
    STATES,
    SepsisFiles,
    read_sepsis_files,
)
from journeyman.policy import Policy
from journeyman.world import World

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
