"""Certificates in words and as a table."""

import math
import re
from collections.abc import Iterable, Mapping
from textwrap import wrap

from journeyman.certificate.certificate import Certificate
from journeyman.certificate.concentration import fewest, radii, recorded_length
from journeyman.certificate.expert import LEAST_INDEPENDENT
from journeyman.certificate.model_error import WORTHWHILE, enough_transitions, num_unobserved
from journeyman.certificate.premises import doubt_of_copies, in_words
from journeyman.certificate.terms import Term, Verdict, refuted
from journeyman.errors import InvalidInput
from journeyman.policy import occupancy
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
    if problem.expert is None:
        known = float(problem.basis.lowest.min()) * problem.world.effective_horizon
    said = least > known + ROUNDING * problem.gap_scale
    there = " in the model" if problem.world.is_estimated else ""
    floor = f"no policy can be below {_figure(certificate, least)}{there}" if said else ""
    if problem.expert is None:
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
    if problem.expert is not None and not problem.expectation.is_declared:
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
    if problem.expert is None or problem.demonstrations is None:
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
    if problem.expert is None:
        return f"{chance}{'T' if sure else 't'}he policy's expected cost is at most {bound}"
    declared = "If the declared expectations are the expert's, " if sure else chance
    spent = f"at most {bound} more" if certificate.bound >= 0 else f"at least {bound[1:]} less"
    return f"{declared}the policy costs {spent} than the expert under every cost of the class"


def _is_certain(certificate: Certificate) -> bool:
    """Whether nothing was estimated."""
    problem = certificate.problem
    known = problem.expert is None or problem.expectation.is_declared
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
    demos = problem.demonstrations if problem.expert is not None else None
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


# What the symbols in the formulas of a certificate stand for, as far as they occur.

WIDTH = 100
SYMBOL = re.compile(r"[A-Za-z][A-Za-z_]*\d*\+?")
SYMBOLS: Mapping[str, str] = {
    "gap_W": "largest total of its argument under a cost of the class",
    "N": "largest cost of the class in any pair",
    "N2": "the same in the 2-norm",
    "h": "1/(1 - discount)",
    "B": "pairs to their states",
    "P": "transition law",
    "Psi": "costs per pair",
    "c": "a cost that is taken off everywhere",
    "mu": "expected discounted visits of the policy",
    "u": "the vector over pairs, mu or near it, that defines the policy",
    "u+": "the positive part of u",
    "a": "a factor",
    "r": "initial - (B - discount P)' u+",
    "r+": "the positive part of r, in samples the norm of r",
    "V1": "sum of the negative part of u",
    "V2": "|initial - (B - discount P)' u|_1",
    "d": "the cost of the budget",
    "eps": "2^-52, the rounding of double precision",
    "m": "demonstrations or rollouts",
    "n": "costs",
    "R": "range of a total",
    "R_i": "range of the total of cost i",
    "Var": "sample variance of a total",
    "L": "log of 2 over a part of the failure probability",
    "delta": "a part of the failure probability",
    "T": "recorded length",
    "f": "gap_W per unit of the norm that the spread suggests",
    "S2": "bound on the mean square of shaped totals, in that norm",
    "b": "size at which shaped totals are stopped",
    "p": "share that may have been stopped or cut short",
    "H": "length that counts as recorded",
    "err": "how far, in the 1-norm, counts leave laws open",
    "err0": "the same for the initial law",
    "theta": "coefficients of the features",
    "theta_k": "share of candidate k",
    "s_k": "the smaller radius of candidate k",
}
"""In the order in which they are explained."""
MEASURED = "demonstrations that are measured"
"""What n is where totals are shaped."""
KINDS: Mapping[str, str] = {
    "A": "Lemma 2",
    "B": "the positive part of u",
    "B'": "the same times a factor",
    "C": "the same with centred costs",
    "D": "exact visits",
    "E": "rollouts",
}
"""Ways to evaluate a policy, by the letter before their first comma or blank."""


def symbols(terms: Iterable[Term]) -> dict[str, str]:
    """Symbols in the formulas of `terms`, and what they stand for.

    >>> symbols([Term("truncation", 0.1, "N h mean discount^T", "recorded lengths")])["T"]
    'recorded length'
    """
    found = {word for term in terms for word in SYMBOL.findall(term.formula)}
    told = {**SYMBOLS, "n": MEASURED} if "S2" in found else SYMBOLS
    return {symbol: words for symbol, words in told.items() if symbol in found}


def kinds(names: Iterable[str]) -> dict[str, str]:
    """Letters of the ways to evaluate a policy, and what they stand for."""
    letters = {re.split("[, ]", name)[0] for name in names}
    return {letter: words for letter, words in KINDS.items() if letter in letters}


def legend(terms: Iterable[Term], ways: Iterable[str]) -> list[str]:
    """Lines below a table: its symbols in words."""
    words = legend_in_words(terms, ways)
    wrapped = wrap(
        words, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    return ["", "symbols", *wrapped] if words else []


def legend_in_words(terms: Iterable[Term], ways: Iterable[str]) -> str:
    """The symbols of formulas and ways in one sentence; empty where there are none."""
    told = symbols(terms) | kinds(ways)
    return "; ".join(f"{symbol}: {meaning}" for symbol, meaning in told.items())


# What would help: the dominating terms of a bound and, in numbers, what halves it.

LARGE = 0.1
"""Terms above this share of the bound are worth a word."""
SAMPLING = {"sampling": 0.5, "outliers": 1.0}
"""Terms that fall with the number m of demonstrations, and the power of 1/m they fall with."""
MOST = 1e12
SAMPLED = (
    "rollout sampling",
    "rollout truncation",
    "negativity",
    "flow violation",
    "flow residual",
)
"""Terms that come from samples of the policy or of its measure."""


def advice(certificate: Certificate) -> str:
    """Sentences, the most useful first."""
    if not certificate.valid:
        failed = (f"{one.name}: {one.detail}" for one in refuted(certificate.premises))
        return f"A premise has failed; until that is mended nothing else helps. {'; '.join(failed)}"
    bound = certificate.best.bound
    if bound <= 0:
        return "The bound is not above zero: nothing needs to be done."
    named = [f"{term.name} {term.value / bound:.0%}" for term in _large_terms(certificate)]
    shown = f"{bound:.4g}" + (f" ({certificate.strength})" if certificate.strength else "")
    ways = (_more, _longer, _better, _known, _exactly)
    sentences = [f"The bound {shown} is made of {', '.join(named)}."]
    if certificate.bound < bound:
        sentences = [
            f"The terms add up to {bound:.4g}, so the trivial bound {certificate.bound:.4g} holds "
            f"in their place ({certificate.strength}). They are {', '.join(named)}."
        ]
    return "\n".join([*sentences, *filter(None, (way(certificate) for way in ways))])


def _large_terms(certificate: Certificate) -> list[Term]:
    bound = certificate.best.bound
    return sorted(
        (term for term in certificate.terms if term.value >= LARGE * bound),
        key=lambda term: -term.value,
    )


def _more(certificate: Certificate) -> str:
    """How many demonstrations halve the bound if nothing else changes."""
    problem, bound = certificate.problem, certificate.best.bound
    if problem.expert is None or problem.demonstrations is None:
        return ""
    falling = {term.name: term.value for term in certificate.terms if term.name in SAMPLING}
    allowed = bound / 2 - (bound - sum(falling.values()))
    count = len(problem.demonstrations)
    if allowed <= 0:
        return (
            "More demonstrations alone do not halve it: the other terms are more than half of it."
        )
    factor = 1.0
    while factor < MOST and _fallen(falling, factor) > allowed:
        factor *= 1.05
    sentence = f"About {math.ceil(count * factor):,} demonstrations (now {count:,}) halve it."
    part = LEAST_INDEPENDENT * certificate.failure_probability
    rates = radii(problem, part, two_sided=False)
    try:
        needed = fewest(rates, allowed)
    except InvalidInput:
        return sentence
    return f"{sentence} {needed:,} do so whatever their spread (Hoeffding)." if rates else sentence


def _fallen(falling: dict[str, float], factor: float) -> float:
    return math.fsum(value / factor ** SAMPLING[name] for name, value in falling.items())


def _longer(certificate: Certificate) -> str:
    truncation = sum(term.value for term in certificate.terms if term.name == "truncation")
    if truncation < LARGE * certificate.best.bound:
        return ""
    length = recorded_length(certificate.problem, LARGE / 2 * certificate.best.bound)
    return f"Records of {length:,} steps make the truncation negligible."


def _better(certificate: Certificate) -> str:
    excess = certificate.optimality_gap
    if excess < LARGE * certificate.best.bound:
        return ""
    return (
        f"A better policy is not excluded: the gap on the data, {certificate.gap_on_data:.4g}, may "
        f"fall to {certificate.lower_bound:.4g} with richer features, a longer run or the exact "
        "program."
    )


def _known(certificate: Certificate) -> str:
    """How often every transition would have to be observed."""
    problem = certificate.problem
    model = sum(term.value for term in certificate.terms if term.name == "model")
    if model < LARGE * certificate.best.bound or problem.world.transition_counts is None:
        return ""
    trivial = certificate.trivial_bound
    if model <= WORTHWHILE * trivial or trivial <= 0:
        return ""
    share = WORTHWHILE * trivial / problem.gap_scale
    policy, delta = certificate.policy, certificate.failure_probability
    visits = occupancy(problem.world, policy)
    try:
        needed = enough_transitions(problem, policy, visits, delta, share)
    except InvalidInput as refusal:
        return f"No number of transitions helps alone: {refusal}"
    return (
        f"{needed:,} observed transitions of every pair bring the model term below "
        f"{WORTHWHILE:.0%} of the trivial bound."
    )


def _exactly(certificate: Certificate) -> str:
    """What rollouts and sampled rows cost."""
    drawn = sum(term.value for term in certificate.terms if term.name in SAMPLED)
    if not certificate.best.statistics or drawn < LARGE * certificate.best.bound:
        return ""
    return (
        f"The evaluation of the policy by samples costs {drawn:.4g}, which falls with the square "
        "root of their number; without evaluation= the policy is evaluated exactly."
    )
