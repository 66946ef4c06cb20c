"""Certificates in words and as a table."""

from journeyman.certificate.certificate import Certificate
from journeyman.certificate.premises import Verdict

ROUNDING = 1e-10
"""Of the trivial bound: less is shown as zero in a sentence."""
MARKS = {Verdict.TESTED: "tested", Verdict.DECLARED: "declared", Verdict.FAILED: "FAILED"}


def summary(certificate: Certificate) -> str:
    """One sentence: the bound, its probability, the trivial bound and the best possible."""
    share = certificate.bound / (certificate.trivial_bound or 1.0)
    if not certificate.valid:
        failed = [one.name for one in certificate.premises if one.verdict is Verdict.FAILED]
        return (
            f"Nothing is certified because a premise failed ({'; '.join(failed)}); only the "
            f"trivial bound {certificate.trivial_bound:.4g} holds."
        )
    word = " and is vacuous" if certificate.vacuous else ""
    near, least = (
        _figure(certificate, x) for x in (certificate.gap_on_data, certificate.lower_bound)
    )
    return (
        f"With probability {1 - certificate.failure_probability:.4g} the policy costs at most "
        f"{certificate.bound:.4g} more than the expert under every cost of the class "
        f"({certificate.normalised_bound:.4g} per step), which is {share:.2g} of the trivial bound "
        f"{certificate.trivial_bound:.4g}{word}; on this data its gap is {near}, and no policy can "
        f"be below {least}."
    )


def _figure(certificate: Certificate, value: float) -> str:
    """A figure, zero when it is no more than rounding."""
    return f"{0.0 if abs(value) < ROUNDING * certificate.trivial_bound else value:.4g}"


def table(certificate: Certificate) -> str:
    """Terms, alternatives, budgets and premises."""
    best, horizon = certificate.best, certificate.problem.world.effective_horizon
    lines = [
        f"{'upper bound on the gap':<30}{certificate.bound:>12.6g}   per step "
        f"{certificate.normalised_bound:.6g}{'   vacuous' if certificate.vacuous else ''}",
        *(
            f"  {term.name:<28}{term.value:>12.6g}   {term.formula}  [{term.source}]"
            for term in best.terms
        ),
        f"{'trivial bound':<30}{certificate.trivial_bound:>12.6g}   per step "
        f"{certificate.trivial_bound / horizon:.6g}",
        f"{'gap on the data':<30}{certificate.gap_on_data:>12.6g}",
        f"{'lower bound on the data':<30}{certificate.lower_bound:>12.6g}   no policy is below",
        f"{'lower bound on the true gap':<30}{certificate.true_lower_bound:>12.6g}   no policy is "
        "below, with the same probability",
        *_reduced(certificate),
        f"{'failure probability':<30}{certificate.failure_probability:>12.6g}",
    ]
    return "\n".join(
        [*lines, *_alternatives(certificate), *_budgets(certificate), *_premises(certificate)]
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
        f"{'kept' if one.is_kept else 'NOT certified'}"
        for one in certificate.budgets
    ]


def _premises(certificate: Certificate) -> list[str]:
    if not certificate.premises:
        return []
    return ["", "premises"] + [
        f"  {MARKS[one.verdict]:<10}{one.name}: {one.detail}" for one in certificate.premises
    ]
