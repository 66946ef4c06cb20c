"""Certificates in words and as a table."""

from journeyman.certificate.certificate import Certificate
from journeyman.certificate.legend import legend
from journeyman.certificate.model_agreement import num_unobserved
from journeyman.certificate.premises import Verdict, doubt_of_copies, in_words
from journeyman.problem import Apprenticeship
from journeyman.world.estimation import observed_support

ROUNDING = 1e-10
"""Of 2 N/(1 - discount): less is shown as zero in a sentence."""
NOTABLE = 0.01
"""Of the demonstrated steps: so many that a model does not know are worth a word."""
MARKS = {Verdict.TESTED: "tested", Verdict.DECLARED: "declared", Verdict.FAILED: "FAILED"}


def summary(certificate: Certificate) -> str:
    """The bound and its probability, what to compare it with, and what it rests on."""
    if not certificate.valid:
        failed = [one.name for one in certificate.premises if one.verdict is Verdict.FAILED]
        first = (
            f"Nothing is certified because a premise failed ({'; '.join(failed)}); only the "
            f"trivial bound {certificate.trivial_bound:.4g} holds."
        )
        return " ".join([first, *_unobserved(certificate)])
    first = (
        f"{_claim(certificate)} ({certificate.normalised_bound:.4g} per step), "
        f"{certificate.worth()}{_beside(certificate)}."
    )
    parts = (_broken, _kept, _unobserved, _grounds, _doubts)
    return " ".join([first, *(words for part in parts for words in part(certificate))])


def _beside(certificate: Certificate) -> str:
    """The gap on the data, and what no policy can be below if that is not known anyway."""
    problem, least = certificate.problem, certificate.lower_bound
    known = 0.0
    if not isinstance(problem, Apprenticeship):
        known = float(problem.basis.lowest.min()) * problem.world.effective_horizon
    said = least > known + ROUNDING * problem.gap_scale
    there = " in the model" if problem.world.is_estimated else ""
    floor = f"no policy can be below {_figure(certificate, least)}{there}" if said else ""
    if not isinstance(problem, Apprenticeship):
        return f"; {floor}" if floor else ""
    near = f"; on this data its gap{there} is {_figure(certificate, certificate.gap_on_data)}"
    return f"{near}, and {floor}" if floor else near


def figures_beside(certificate: Certificate) -> list[tuple[str, float, str]]:
    """What stands beside the bound, each figure with its name and its meaning: what was achieved,
    and what no policy can achieve. Texts and pages use the same names."""
    there = ", in the model" if certificate.problem.world.is_estimated else ""
    if certificate.known_cost:
        return [
            ("expected cost", certificate.gap_on_data, f"of this policy, evaluated exactly{there}"),
            ("lower bound on the cost", certificate.lower_bound, f"no policy is below{there}"),
        ]
    least = certificate.lower_bound
    return [
        ("gap on the data", certificate.gap_on_data, f"of this policy, evaluated exactly{there}"),
        ("lower bound on the data", least, f"{_no_policy(least)}{there}"),
    ]


def _no_policy(least: float) -> str:
    """What a lower bound on the gap says."""
    return "no policy surpasses the expert by more" if least < 0 else "no policy is below"


def _true_lower_bound(certificate: Certificate) -> list[tuple[str, float, str]]:
    """What no policy can be below in truth, where that says more than is known anyway."""
    problem, least = certificate.problem, certificate.true_lower_bound
    known = 0.0 if problem.cost_class.contains_zero else -certificate.trivial_bound
    if problem.exact_target is not None and not problem.cost_class.contains_zero:
        known = certificate.least_possible
    if certificate.known_cost:
        known = float(problem.basis.lowest.min()) * problem.world.effective_horizon
    if least <= known + ROUNDING * problem.gap_scale:
        return []
    errors = ["model error"] * problem.world.is_estimated
    if isinstance(problem, Apprenticeship) and not problem.expectation.is_declared:
        errors.append("sampling")
    if not errors:
        return []
    allowed = f", allowing for {' and '.join(errors)}, with the same probability"
    if certificate.known_cost:
        return [("lower bound on the true cost", least, f"no policy is below{allowed}")]
    return [("lower bound on the true gap", least, f"{_no_policy(least)}{allowed}")]


def _unobserved(certificate: Certificate) -> list[str]:
    """Demonstrated steps that an estimated world does not know."""
    problem = certificate.problem
    if not isinstance(problem, Apprenticeship) or problem.demonstrations is None:
        return []
    demos = problem.demonstrations
    count = num_unobserved(problem.world, demos)
    if not count or count < NOTABLE * demos.num_steps:
        return []
    share = f"{count / demos.num_steps:.0%}"
    return [f"{share} of the demonstrated steps were never seen in the record of the model."]


def _claim(certificate: Certificate) -> str:
    """The bound, and what it depends on."""
    problem, bound = certificate.problem, f"{certificate.bound:.4g}"
    sure = _is_certain(certificate)
    chance = "" if sure else f"With probability {1 - certificate.failure_probability:.4g} "
    if not isinstance(problem, Apprenticeship):
        return f"{chance}{'T' if sure else 't'}he policy's expected cost is at most {bound}"
    declared = "If the declared expectations are the expert's, " if sure else chance
    spent = f"at most {bound} more" if certificate.bound >= 0 else f"at least {bound[1:]} less"
    return f"{declared}the policy costs {spent} than the expert under every cost of the class"


def _is_certain(certificate: Certificate) -> bool:
    """Whether nothing was estimated."""
    problem = certificate.problem
    known = not isinstance(problem, Apprenticeship) or problem.expectation.is_declared
    return known and not certificate.best.statistics and not problem.world.is_estimated


def _broken(certificate: Certificate) -> list[str]:
    return [
        f"The budget {one.name!r} is NOT shown to be kept: all that is shown is that at most "
        f"{one.spent:.4g} is spent{one.chance}, {one.spent - one.limit:.2g} more than allowed."
        for one in certificate.budgets
        if not one.is_kept
    ]


def _kept(certificate: Certificate) -> list[str]:
    """Budgets that are kept by laws that were estimated, and so not for certain."""
    return [
        f"The budget {one.name!r} is kept{one.chance}: at most {one.spent:.4g} of {one.limit:.4g} "
        "is spent."
        for one in certificate.budgets
        if one.is_kept and one.chance
    ]


def _grounds(certificate: Certificate) -> list[str]:
    """Every premise by its name."""
    return list(filter(None, [in_words(certificate.premises)]))


def _doubts(certificate: Certificate) -> list[str]:
    """Premises that are possibly not true."""
    problem = certificate.problem
    found = []
    if observed_support(problem.world)[0]:
        found.append(
            "The support equals the observed pattern: if it was taken from the record, the bound "
            "is too small."
        )
    demos = problem.demonstrations if isinstance(problem, Apprenticeship) else None
    return [*found, *doubt_of_copies(certificate.premises, demos)]


def _figure(certificate: Certificate, value: float) -> str:
    """A figure, zero when it is no more than rounding."""
    return f"{0.0 if abs(value) < ROUNDING * certificate.problem.gap_scale else value:.4g}"


def table(certificate: Certificate) -> str:
    """Terms, alternatives, budgets and premises, and the symbols in words."""
    best, horizon = certificate.best, certificate.problem.world.effective_horizon
    of_what = "cost" if certificate.known_cost else "gap"
    strength = f"   {certificate.strength}" if certificate.strength else ""
    lines = [
        *(
            []
            if certificate.valid
            else ["NOT VALID: a premise has failed; only the trivial bound holds"]
        ),
        f"{'upper bound on the ' + of_what:<30}{certificate.bound:>12.6g}   per step "
        f"{certificate.normalised_bound:.6g}{strength}",
        *(
            f"  {term.name:<28}{term.value:>12.6g}   {term.formula}  [{term.source}]"
            for term in best.terms
        ),
        f"{'trivial bound':<30}{certificate.trivial_bound:>12.6g}   per step "
        f"{certificate.trivial_bound / horizon:.6g}, no policy has a larger {of_what}",
        *(
            f"{name:<30}{value:>12.6g}   {meaning}"
            for name, value, meaning in (
                *figures_beside(certificate),
                *_true_lower_bound(certificate),
            )
        ),
        *_reduced(certificate),
        f"{'failure probability':<30}{certificate.failure_probability:>12.6g}",
    ]
    return "\n".join(
        [
            *lines,
            *_alternatives(certificate),
            *_budgets(certificate),
            *_premises(certificate),
            *legend(best.terms, [way.kind for way in certificate.combinations]),
        ]
    )


def _reduced(certificate: Certificate) -> list[str]:
    bounds = certificate.reduced
    if bounds is None:
        return []
    return [
        f"{'loss over the features':<30}{bounds.loss:>12.6g}   least one at least "
        f"{bounds.lower_bound:.6g}"
    ]


def _alternatives(certificate: Certificate) -> list[str]:
    return ["", "ways to bound it (evaluation, expert)"] + [
        f"  {way.kind + ', ' + way.estimate:<44}{way.bound:>12.6g}"
        for way in certificate.combinations
    ]


def _budgets(certificate: Certificate) -> list[str]:
    if not certificate.budgets:
        return []
    return ["", "budgets"] + [
        f"  {one.name:<28}{one.spent:>12.6g}   of {one.limit:.6g}   "
        f"{'kept' + one.chance if one.is_kept else 'NOT certified'}"
        for one in certificate.budgets
    ]


def _premises(certificate: Certificate) -> list[str]:
    if not certificate.premises:
        return []
    return ["", "premises"] + [
        f"  {MARKS[one.verdict]:<10}{one.name}: {one.detail}" for one in certificate.premises
    ]
