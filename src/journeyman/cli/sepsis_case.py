"""The case of ICU-Sepsis: learn from the clinicians of the model, to do better and to match them.

Everything beside the two apprentices is known exactly in an example: what the clinicians' policy
costs, and how many patients of the model survive under any policy. Not for clinical use.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

import journeyman as jm
from journeyman.arrays import FloatArray
from journeyman.cli.output import WIDTH

DEMONSTRATIONS = 50_000
"""So many that the certificate can distinguish the apprentice from the clinicians."""
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
    improving: jm.Apprentice
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
    improving = jm.learn(
        world, basis, demos, cost_class=jm.Simplex(), constraints=budget,
        solver=jm.ColumnGeneration(),
    )  # fmt: skip
    matching = jm.learn(world, basis, demos, solver=jm.ColumnGeneration())
    return SepsisCase(example, demos, improving, matching, _most_survivals(world))


def _most_survivals(world: jm.World) -> jm.Policy:
    """A policy under which most patients survive."""
    farsighted = jm.World(world.transition, world.initial, ALMOST_ONE, choice_offsets=world.pairs)
    surviving = world.transition[:, [SURVIVED]].toarray().ravel()
    surviving[world.pairs.states >= PATIENTS] = 0.0
    return jm.plan(farsighted, -surviving).policy


TITLE = "ICU-Sepsis: learning from clinicians"
WARNING = (
    "NOT FOR CLINICAL USE. This is a model for comparing algorithms, made from the MIMIC-III "
    "records; nothing below is advice about patients."
)
PUBLISHED = {"clinicians": "0.78", "uniform actions": "0.78", "optimum": "0.88"}
"""Choudhary, Gupta, Thomas, "ICU-Sepsis: a benchmark MDP built from real medical data", 2024."""
NEGLIGIBLE = 5e-5
"""Terms of a certificate below this, half of the last digit shown, are not listed."""
LIMITS_OF_IT = (
    "Nothing about patients. The laws of the model are estimates whose counts were not published, "
    "and the certificate takes them as exact; a policy that was optimised in them tends "
    "to look better than it is.",
    "Nothing about the published clinicians' doses. In 12 steps of 100 these take an action too "
    "rare for its effect to be known. The model gives it the mean effect of the others, and the "
    "clinicians here draw one of the others instead: as many survive, but a stay has less than "
    "half of the vasopressors.",
    "Nothing about other costs, nor about a single stay: it is about expected discounted totals.",
)


def run_case(
    demonstrations: int | None = None, seed: int = 0, report: Path | None = None
) -> tuple[dict[str, Any], str]:
    """What `journeyman demo --case icu-sepsis` prints, for machines and for people, and the report
    if one is asked for."""
    case = learn_case(demonstrations or DEMONSTRATIONS, seed)
    facts = case_facts(case) | {"seed": seed, "report": None if report is None else str(report)}
    if report is None:
        return facts, case_text(case)
    write_case_report(case, report)
    return facts, f"{case_text(case)}\n\nThe report, to be opened in a browser: {report}"


def case_facts(case: SepsisCase) -> dict[str, Any]:
    """The case in numbers; the results of both apprentices as `journeyman learn` gives them."""
    from journeyman.runs.learning import result_of

    policies, costs = _policies(case), case.example.basis.names
    return {
        "case": "icu-sepsis",
        "warning": WARNING,
        "trajectories": len(case.demonstrations),
        "survival": {name: case.survival(policy) for name, policy in policies.items()},
        "costs": {
            name: dict(zip(costs, case.costs(policy).tolist(), strict=True))
            for name, policy in policies.items()
        },
        "improve": result_of(case.improving),
        "match": result_of(case.matching),
    }


def write_case_report(case: SepsisCase, path: Path) -> None:
    """The HTML page about the apprentice to improve, headed by the warning."""
    jm.report.write_report(case.improving, path, title=TITLE, note=WARNING)


def case_text(case: SepsisCase) -> str:
    """What was learned, what is certified, and what is not."""
    sections = (_introduction, _survival, _costs, _certified, _not_certified, _differences)
    return "\n\n".join("\n".join(section(case)) for section in sections)


def _introduction(case: SepsisCase) -> list[str]:
    world, demos = case.example.world, case.demonstrations
    treatments = int((world.pairs.states < PATIENTS).sum())
    ended = "all" if demos.terminated.all() else f"{int(demos.terminated.sum())}"
    return [
        *wrap(WARNING, WIDTH),
        "",
        *wrap(
            f"ICU-Sepsis: {PATIENTS} groups of patients, {treatments} treatments (levels of fluids "
            f"and of vasopressors), discount {world.discount:g}. As demonstrations, stays are "
            f"drawn from the clinicians' policy in the model: {len(demos)} of them, {ended} to "
            f"their end, {demos.num_steps} steps, and not one patient's record. Two apprentices "
            "know them, the model and four costs:",
            WIDTH,
        ),
        f"  improve  no cost above the clinicians', vasopressors at most {_limit(case):g} a stay",
        "  match    every cost as the clinicians'",
    ]


def _policies(case: SepsisCase) -> dict[str, jm.Policy]:
    return {
        "clinicians": case.example.expert,
        "uniform actions": case.uniform,
        "apprentice: match": case.matching.policy,
        "apprentice: improve": case.improving.policy,
        "optimum": case.best,
    }


def _survival(case: SepsisCase) -> list[str]:
    return [
        f"{'Survival (exact, not discounted)':<34}{'here':>8}{'published':>12}",
        *(
            f"  {name:<32}{case.survival(policy):>8.4f}{PUBLISHED.get(name, '-'):>12}"
            for name, policy in _policies(case).items()
        ),
    ]


def _costs(case: SepsisCase) -> list[str]:
    columns = {
        "clinicians": case.costs(case.example.expert),
        "estimate": case.improving.problem.target,
        "match": case.costs(case.matching.policy),
        "improve": case.costs(case.improving.policy),
        "uniform": case.costs(case.uniform),
        "optimum": case.costs(case.best),
    }
    heading = "".join(f"{name:>12}" for name in columns)
    rows = (
        f"  {name:<14}" + "".join(f"{column[row]:>12.4f}" for column in columns.values())
        for row, name in enumerate(case.example.basis.names)
    )
    return [
        "Expected discounted costs of a stay (exact, but for the estimate from the demonstrations)",
        f"{'':<16}{heading}",
        *rows,
        *wrap(
            "  death: probability of it; fluids, vasopressors: steps at the highest level; SOFA: "
            "steps at the worst score.",
            WIDTH,
            subsequent_indent="  ",
        ),
    ]


def _certified(case: SepsisCase) -> list[str]:
    return [
        "What is certified (each with a probability of its own)",
        *_entry("improve", improving_in_words(case)),
        *_terms(case.improving.certificate),
        *_entry("match", matching_in_words(case)),
        *_terms(case.matching.certificate),
        *_entry("rests on", premises_in_words(case.improving.certificate)),
    ]


def improving_in_words(case: SepsisCase) -> str:
    """The bound of the one-sided class, and the budget."""
    certificate = case.improving.certificate
    if certificate.weak or not certificate.valid:
        return certificate.summary()
    (budget,) = certificate.budgets
    exactly = _bound_in_words(case.exact_gap(case.improving))
    kept = "kept" if budget.is_kept else "NOT SHOWN TO BE KEPT"
    return (
        f"With probability {1 - certificate.failure_probability:g} it costs "
        f"{_bound_in_words(certificate.bound)} than the clinicians, whichever of the four costs or "
        f"mixture of them is the one that counts (exactly: {exactly}). It spends at "
        f"most {budget.spent:.4f} of {budget.limit:g} {budget.name}: {kept}."
    )


def _bound_in_words(gap: float) -> str:
    return f"at least {-gap:.4f} less" if gap < 0 else f"at most {gap:.4f} more"


def matching_in_words(case: SepsisCase) -> str:
    """The bound of the infinity ball, which is one on a sum of distances."""
    certificate = case.matching.certificate
    if certificate.weak or not certificate.valid:
        return certificate.summary()
    return (
        f"With probability {1 - certificate.failure_probability:g} its four costs are within "
        f"{certificate.bound:.4f} of the clinicians', all distances added up (exactly: "
        f"{case.exact_gap(case.matching):.4f})."
    )


def premises_in_words(certificate: jm.Certificate) -> str:
    """What it all rests on, grouped by how it was treated."""
    groups: dict[str, list[str]] = {}
    for premise in certificate.premises:
        groups.setdefault(premise.status.value, []).append(premise.name)
    return "; ".join(f"{', '.join(names)} ({status})" for status, names in groups.items()) + "."


def _terms(certificate: jm.Certificate) -> list[str]:
    return [
        line
        for term in certificate.terms
        if abs(term.value) > NEGLIGIBLE
        for line in wrap(
            f"{term.name:<20}{term.value:>9.4f}  {term.source}",
            WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 35,
        )
    ]  # fmt: skip


def _not_certified(case: SepsisCase) -> list[str]:
    lines = ["What is not"]
    for sentence in LIMITS_OF_IT:
        lines += wrap(sentence, WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return lines


def _differences(case: SepsisCase) -> list[str]:
    shares = [
        case.same_choices(policy)
        for policy in (case.improving.policy, case.matching.policy, case.uniform)
    ]
    return [
        "Where the apprentice to improve differs from the clinicians (same patients, mean levels "
        "0 to 4)",
        f"  {'SOFA score':<14}{'time':>6}{'fluids: clinicians':>22}{'apprentice':>12}"
        f"{'vasopressors: clinicians':>28}{'apprentice':>12}",
        *map(_contrast, case.contrasts(case.improving.policy)),
        *wrap(
            f"  Its choices and the clinicians' have {shares[0]:.0%} in common (to match: "
            f"{shares[1]:.0%}, uniform actions: {shares[2]:.0%}): costs are learned here, not "
            "actions, and different treatments can cost the same.",
            WIDTH,
            subsequent_indent="  ",
        ),
    ]


def _contrast(row: Contrast) -> str:
    theirs, ours = row.clinicians, row.apprentice
    score = f"{row.low:g} to {row.high:g}"
    return (
        f"  {score:<14}{row.time:>6.0%}{theirs[0]:>22.2f}{ours[0]:>12.2f}"
        f"{theirs[1]:>28.2f}{ours[1]:>12.2f}"
    )


def _entry(name: str, words: str) -> list[str]:
    return wrap(f"  {name:<9}{words}", WIDTH, subsequent_indent=" " * 11)


def _limit(case: SepsisCase) -> float:
    (budget,) = case.improving.problem.constraints
    return budget.at_most
