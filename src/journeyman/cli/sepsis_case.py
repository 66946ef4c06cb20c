"""The case of ICU-Sepsis: learn from the clinicians of the model, to surpass and to match them.

Everything beside the two apprentices is known exactly in an example: what the clinicians' policy
costs, and how many patients of the model survive under any policy. Not for clinical use.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

import journeyman as jm
from journeyman.arrays import FloatArray

DEMONSTRATIONS = 50_000
"""So many that the certificate can tell the apprentice from the clinicians."""
HORIZON = 1000
"""Steps after which a recording stops; the stays of the model last nine on average."""
DISCOUNT = 0.99
"""A stay of nine steps is discounted by a tenth; certificates grow with 1/(1 - discount)."""
ALMOST_ONE = 1 - 1e-6
"""The discount under which the best policy for survival is looked for."""
DOSE_LIMIT = 0.15
"""Discounted vasopressors of a stay, in steps at the highest level; clinicians give 0.33."""
BUDGETED = "vasopressors"
PATIENTS, SURVIVED = 713, 714
"""States below the first are patients' states; the second is where survivors stay."""
SEVERITIES = (0.0, 5.0, 9.0, 24.0)
"""SOFA scores that bound the groups in which treatments are compared."""


class Contrast(NamedTuple):
    """Treatments of patients whose SOFA score is at least `low` and below `high`, per step."""

    low: float
    high: float
    time: float
    """Share of the clinicians' time with patients."""
    clinicians: FloatArray
    """Mean levels of fluids and of vasopressors, 0 to 4."""
    apprentice: FloatArray


@dataclass(frozen=True, eq=False)
class SepsisCase:
    """The model, the demonstrations, and what was learned from them."""

    example: jm.gallery.ClinicalExample
    demonstrations: jm.Demonstrations
    surpassing: jm.Apprentice
    """No cost above the clinicians', and vasopressors within a budget."""
    matching: jm.Apprentice
    """Every cost as the clinicians'."""
    best: jm.Policy
    """Of the most survivals, whatever the doses."""

    @property
    def uniform(self) -> jm.Policy:
        return jm.Policy.uniform(self.example.world)

    def costs(self, policy: jm.Policy) -> FloatArray:
        """Expected discounted costs, by exact evaluation."""
        return jm.occupancy(self.example.world, policy).expectations(self.example.basis)

    def exact_gap(self, apprentice: jm.Apprentice) -> float:
        """How much more than the clinicians an apprentice costs in the worst case of its class."""
        difference = self.costs(apprentice.policy) - self.costs(self.example.expert)
        return apprentice.problem.cost_class.gap(difference)

    def survival(self, policy: jm.Policy) -> float:
        """The probability of leaving the ward alive, exact and without discounting."""
        steps = self._steps(policy)
        return float(self._visits(steps) @ steps[:, SURVIVED])

    def same_choices(self, policy: jm.Policy) -> float:
        """Share of the clinicians' time in which a policy's choice and theirs can be the same one:
        one minus the total variation distance of their laws."""
        world, clinicians = self.example.world, self.example.expert
        time = self._visits(self._steps(clinicians))
        common = world.pairs.total(np.minimum(policy.on(world), clinicians.on(world)))[:PATIENTS]
        return float(time @ common / time.sum())

    def contrasts(self, policy: jm.Policy) -> list[Contrast]:
        """Both treatments of the same patients, those the clinicians see, by severity."""
        sofa = 24 * self._per_state(self.example.expert)[:, 3]
        time = self._visits(self._steps(self.example.expert))
        levels = [4 * self._per_state(one)[:, 1:3] for one in (self.example.expert, policy)]
        found = []
        for low, high in pairwise(SEVERITIES):
            here = time * ((sofa >= low) & (sofa < high))
            means = [here @ level / here.sum() for level in levels]
            found.append(Contrast(low, high, float(here.sum() / time.sum()), *means))
        return found

    def _per_state(self, policy: jm.Policy) -> FloatArray:
        """Mean costs of a policy's next step in each of the patients' states."""
        world = self.example.world
        costs = np.asarray(self.example.basis.on(world))
        return np.asarray(world.pairs.total(policy.on(world)[:, np.newaxis] * costs))[:PATIENTS]

    def _steps(self, policy: jm.Policy) -> FloatArray:
        """Where patients go in one step: a row per patients' state."""
        world = self.example.world
        weighted = world.transition.multiply(policy.on(world)[:, np.newaxis])
        return np.asarray(world.pairs.total(weighted.toarray()))[:PATIENTS]

    def _visits(self, steps: FloatArray) -> FloatArray:
        """Expected visits to patients' states, without discounting: stays end."""
        staying = np.eye(PATIENTS) - steps[:, :PATIENTS]
        return np.asarray(np.linalg.solve(staying.T, self.example.world.initial[:PATIENTS]))


def learn_case(demonstrations: int = DEMONSTRATIONS, seed: int = 0) -> SepsisCase:
    """Record the clinicians of the model and learn from them twice.

    Raises `MissingExtra` when icu-sepsis is not installed.
    """
    example = jm.gallery.icu_sepsis(discount=DISCOUNT)
    world, basis, clinicians = example
    demos = jm.record(world, clinicians, trajectories=demonstrations, horizon=HORIZON, seed=seed)
    doses = np.asarray(basis.on(world))[:, basis.names.index(BUDGETED)]
    budget = jm.Budget(cost=doses, at_most=DOSE_LIMIT, name=BUDGETED)
    surpassing = jm.learn(
        world, basis, demos, cost_class=jm.Simplex(), constraints=budget,
        solver=jm.ColumnGeneration(),
    )  # fmt: skip
    matching = jm.learn(world, basis, demos, solver=jm.ColumnGeneration())
    return SepsisCase(example, demos, surpassing, matching, _most_survivals(world))


def _most_survivals(world: jm.World) -> jm.Policy:
    """A policy under which most patients survive."""
    farsighted = jm.World(world.transition, world.initial, ALMOST_ONE, choice_offsets=world.pairs)
    surviving = world.transition[:, [SURVIVED]].toarray().ravel()
    surviving[world.pairs.states >= PATIENTS] = 0.0
    return jm.plan(farsighted, -surviving).policy
