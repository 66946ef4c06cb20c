"""The case of ICU-Sepsis in words: a page for a terminal."""

from pathlib import Path
from textwrap import wrap
from typing import Any

import journeyman as jm
from journeyman.cli.sepsis_case import DEMONSTRATIONS, PATIENTS, Contrast, SepsisCase, learn_case

WIDTH = 100
TITLE = "ICU-Sepsis: learning from clinicians"
WARNING = (
    "NOT FOR CLINICAL USE. This is a model for comparing algorithms, made from the MIMIC-III "
    "records; nothing below is advice about patients."
)
PUBLISHED = {"clinicians": "0.78", "uniform actions": "0.78", "optimum": "0.88"}
"""Choudhary, Gupta, Thomas, "ICU-Sepsis: a benchmark MDP built from real medical data", 2024."""
NEGLIGIBLE = 1e-6
"""Terms of a certificate below this are not listed."""
LIMITS_OF_IT = (
    "Nothing about patients. The laws of the model are estimates whose counts were not published, "
    "and the certificate takes them as exact; a policy that was optimised in them tends "
    "to look better than it is.",
    "Nothing about the published clinicians' doses. In 12 steps of 100 these take an action too "
    "rare for its effect to be known. The model gives it the mean effect of the others, and the "
    "clinicians here draw one of the others instead: as many survive, but a stay has less than "
    "half of the vasopressors.",
    "Nothing about other costs, nor about a single stay: it speaks of expected discounted totals.",
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
    """The case in figures; the results of both apprentices as `journeyman learn` gives them."""
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
        "surpass": result_of(case.surpassing),
        "match": result_of(case.matching),
    }


def write_case_report(case: SepsisCase, path: Path) -> None:
    """The HTML page about the apprentice to surpass, headed by the warning."""
    jm.report.write_report(case.surpassing, path, title=TITLE, note=WARNING)


def case_text(case: SepsisCase) -> str:
    """What was learned, what is certified, and what is not."""
    sections = (_setting, _survival, _costs, _certified, _not_certified, _differences)
    return "\n\n".join("\n".join(section(case)) for section in sections)


def _setting(case: SepsisCase) -> list[str]:
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
        f"  surpass  no cost above the clinicians', vasopressors at most {_limit(case):g} a stay",
        "  match    every cost as the clinicians'",
    ]


def _policies(case: SepsisCase) -> dict[str, jm.Policy]:
    return {
        "clinicians": case.example.expert,
        "uniform actions": case.uniform,
        "apprentice: match": case.matching.policy,
        "apprentice: surpass": case.surpassing.policy,
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
        "estimate": case.surpassing.problem.target,
        "match": case.costs(case.matching.policy),
        "surpass": case.costs(case.surpassing.policy),
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
        *_entry("surpass", surpassing_in_words(case)),
        *_terms(case.surpassing.certificate),
        *_entry("match", matching_in_words(case)),
        *_terms(case.matching.certificate),
        *_entry("rests on", premises_in_words(case.surpassing.certificate)),
    ]


def surpassing_in_words(case: SepsisCase) -> str:
    """The bound of the one-sided class, and the budget."""
    certificate = case.surpassing.certificate
    if certificate.weak or not certificate.valid:
        return certificate.summary()
    (budget,) = certificate.budgets
    exactly = _bound_in_words(case.exact_gap(case.surpassing))
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
        groups.setdefault(premise.verdict.value, []).append(premise.name)
    return "; ".join(f"{', '.join(names)} ({verdict})" for verdict, names in groups.items()) + "."


def _terms(certificate: jm.Certificate) -> list[str]:
    return [
        f"    {term.name:<20}{term.value:>9.4f}  {term.source}"
        for term in certificate.terms
        if abs(term.value) > NEGLIGIBLE
    ]


def _not_certified(case: SepsisCase) -> list[str]:
    lines = ["What is not"]
    for sentence in LIMITS_OF_IT:
        lines += wrap(sentence, WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return lines


def _differences(case: SepsisCase) -> list[str]:
    shares = [
        case.same_choices(policy)
        for policy in (case.surpassing.policy, case.matching.policy, case.uniform)
    ]
    return [
        "Where the apprentice to surpass differs from the clinicians (same patients, mean levels "
        "0 to 4)",
        f"  {'SOFA score':<14}{'time':>6}{'fluids: clinicians':>22}{'apprentice':>12}"
        f"{'vasopressors: clinicians':>28}{'apprentice':>12}",
        *map(_contrast, case.contrasts(case.surpassing.policy)),
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
    (budget,) = case.surpassing.problem.constraints
    return budget.at_most
