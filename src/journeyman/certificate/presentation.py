"""Certificates in words, as a table, as JSON and as a data frame: the same names everywhere.

`summary` is a sentence for people, `table` all that is known as text, `advice` what dominates the
bound and what would halve it, `as_dict` the same as plain values. Pages take their names, symbols
and numbers from here as well.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from textwrap import wrap
from typing import Any

import numpy as np

from journeyman.arrays import BoolArray
from journeyman.certificate.agreement import advice as advice_of_records
from journeyman.certificate.certificate import WEAK, Certificate
from journeyman.certificate.concentration import fewest, radii, recorded_length
from journeyman.certificate.consistency import NAME as CONSISTENCY
from journeyman.certificate.expert_estimates import INDEPENDENT_SHARE
from journeyman.certificate.model_error import WORTHWHILE, enough_transitions, num_unobserved
from journeyman.certificate.premises import doubt_of_copies
from journeyman.certificate.regret import Regret
from journeyman.certificate.terms import Premise, PremiseStatus, Term, refuted
from journeyman.errors import InvalidInput
from journeyman.policy import occupancy
from journeyman.problem import Apprenticeship
from journeyman.problem.expert_premises import Rational
from journeyman.world import World
from journeyman.world.averages import Averages
from journeyman.world.estimation import observed_support
from journeyman.world.layers import Layers
from journeyman.world.levels import Level

ROUNDING = 1e-10
"""Of 2 N/(1 - discount): less is shown as zero in a sentence."""
NOTABLE = 0.01
"""Of the demonstrated steps: so many that a model does not know are worth a word."""
MARKS = {
    PremiseStatus.TESTED: "tested",
    PremiseStatus.DECLARED: "declared",
    PremiseStatus.FAILED: "FAILED",
}
MOSTLY = 0.5
"""Of the bound on the regret: so much of what was declared is worth a word."""
ALMOST = 0.9
"""Of that bound: where so much was declared, demonstrations hardly matter."""
LARGE = 0.1
"""Terms above this share of the bound are worth a word."""
NEGLIGIBLE = 1e-4
"""Of the largest term: smaller ones share a line."""
SAMPLING = {"sampling": 0.5}
"""Terms that fall with the number m of demonstrations, and the power of 1/m they fall with."""
MOST = 1e12
SAMPLED = (
    "rollout sampling",
    "rollout truncation",
    "negativity",
    "flow violation",
    "flow residual",
    "expectations",
)
"""Terms that come from samples of the policy or of its measure."""
GAP, COST = "gap to the estimate", "expected cost"
MEANINGS: Mapping[str, str] = {
    GAP: "how much more the policy costs than the estimate of the expert that this bound uses",
    COST: "what the policy costs, evaluated exactly",
    "evaluation": "the policy's own costs, as exactly as the linear system was solved",
    "rounding": "what double precision can have hidden",
    "sampling": "the expert is known from a sample only",
    "truncation": "records are finite: what they leave out",
    "disagreement": "what the policy may cost after it has taken another action than the expert",
    "model": "the world is an estimate: in the true one the policy may cost more",
    "rollout sampling": "the policy is known from rollouts only",
    "rollout truncation": "what happens after the rollouts end",
    "flow residual": "the measure behind the policy is not quite a flow",
    "flow violation": "the measure behind the policy is not quite a flow",
    "negativity": "the measure behind the policy is not quite positive",
    "expectations": "the policy's costs are known from sampled rows only",
    "worst cost": "what the policy costs more under the worst cost that the records allow",
    "declared": "what the expert may cost more than the best, by what was declared",
    "unseen": "what the records leave open about costs",
    "least cost": "what they leave open about prices of budgets, to the least cost there is",
    "Lemma 2": "the measure behind the policy is not quite one of visits",
}
"""What a term of the bound allows for."""


def one_line(certificate: Certificate) -> str:
    """The bound, its probability and what to compare it with."""
    state = "" if certificate.valid else "NOT VALID, "
    probability = 1 - certificate.failure_probability
    chance = f" with probability {probability:g}" if certificate.valid else ""
    strength = f", {certificate.strength}" if certificate.strength else ""
    what, where = ("cost", "cost") if certificate.known_cost else ("gap", "data")
    broken = sum(not budget.is_kept for budget in certificate.budgets)
    count = len(certificate.budgets)
    budgets = f", {broken} of {count} budgets NOT certified" if broken else ""
    least = f"{certificate.lower_bound:.6g}{_in_the_model(certificate)}"
    budgets += _regret_in_short(certificate)
    return (
        f"Certificate({state}{what} <= {certificate.bound:.6g}{chance}{strength}{budgets}; trivial "
        f"bound {certificate.trivial_bound:.6g}, lower bound on the {where} {least})"
    )


def summary(certificate: Certificate) -> str:
    """The bound and its probability, what to compare it with, and what it rests on."""
    if not certificate.valid:
        failed = "; ".join(one.name for one in refuted(certificate.premises))
        first = (
            f"Nothing is certified because a premise failed ({failed}); only the trivial bound "
            f"{certificate.trivial_bound:.4g} holds."
        )
        return _paragraphs([first, *_unobserved(certificate)], regret_in_words(certificate))
    first = (
        f"{_claim(certificate)} ({_in_units(certificate, certificate.bound, 4)}), "
        f"{worth(certificate)}{_beside(certificate)}."
    )
    parts = (_broken, _kept, _unobserved, _premises_by_name, _doubts, _left_out)
    sentences = [first, *(words for part in parts for words in part(certificate))]
    return _paragraphs(sentences, regret_in_words(certificate))


def brief(certificate: Certificate) -> str:
    """The result in one sentence, and one more on the regret where that is known."""
    regret = certificate.regret
    own = ""
    if regret is not None and regret.valid:
        own = (
            f" Under the expert's own cost it costs at most {regret.bound:.4g} more than the best "
            f"policy {_compared_with(certificate)}, {percent(regret_share(certificate))} of the "
            "largest possible, if what is declared about the expert is true."
        )
    if not certificate.valid:
        return f"{summary(certificate).splitlines()[0]}{own}"
    words = {"vacuous": ": as much holds for every policy", "weak": ", above half of that"}
    why = words.get(certificate.strength, "")
    claim = _claim(certificate).replace("of the class", "that was allowed for")
    return f"{claim}, {worth(certificate)}{why}.{own}"


def _paragraphs(*paragraphs: list[str]) -> str:
    """Sentences, each claim in a line of its own."""
    return "\n".join(" ".join(sentences) for sentences in paragraphs if sentences)


def has_goal(problem: Any) -> bool:
    """Whether totals are those of episodes, undiscounted until they end."""
    return bool(getattr(problem.world, "has_goal", False))


def _in_units(certificate: Certificate, value: float, digits: int = 6) -> str:
    """What a total is per step; with discount 1 that it is one of an episode."""
    if has_goal(certificate.problem):
        return "per episode"
    if averages_of(certificate.problem) is not None:
        return "a step, on average"
    per_step = f"{value / certificate.problem.total_time:.{digits}g}"
    return f"{per_step} per step" if digits < 6 else f"per step {per_step}"


def _regret_in_short(certificate: Certificate) -> str:
    regret = certificate.regret
    if regret is None:
        return ""
    state = "" if regret.valid else " NOT VALID,"
    return f",{state} regret <= {regret.bound:.6g} under the expert's own cost"


def regret_in_words(certificate: Certificate) -> list[str]:
    """The bound on the regret, what it is about, and what it rests on."""
    regret = certificate.regret
    if regret is None:
        return []
    if not regret.valid:
        named = "; ".join(one.name for one in refuted(regret.premises))
        return [
            f"Nothing is certified about the expert's own cost, because a premise failed ({named})."
        ]
    chance = regret.failure_probability
    often = f"with probability {1 - chance:.4g} " if chance else ""
    own = "; ".join(one.name for one in premises_of_the_regret(certificate))
    return [
        f"Under the expert's own cost, whichever of the class that is, {often}the policy costs at "
        f"most {regret.bound:.4g} more than the best policy {_compared_with(certificate)}, "
        f"{percent(regret.share)} of what bounded costs allow{_of_the_attainable(certificate)} "
        f"({_acting_at_random(certificate)}: at most {regret.uniform:.4g}); this rests on what is "
        f"declared about the expert: {own}."
    ]


def _compared_with(certificate: Certificate) -> str:
    """The best policy of all, or the best within the budgets, than which others may be better."""
    return "within the budgets" if certificate.problem.constraints else "there is"


def _acting_at_random(certificate: Certificate) -> str:
    """The policy that the premise is tested with."""
    return "a random policy" if certificate.problem.constraints else "acting uniformly at random"


def _of_the_attainable(certificate: Certificate) -> str:
    """The share of the largest possible gap, where that is smaller than bounded costs allow."""
    share = _attainable_share(certificate)
    return "" if share is None else f" and {percent(share)} of what policies of this world can lose"


def _attainable_share(certificate: Certificate) -> float | None:
    """Of the bound on the regret: its share of the largest possible gap, where plans show that it
    is smaller than bounded costs allow: no policy loses more than that to any other."""
    regret, largest = certificate.regret, certificate.trivial_bound
    any_two = certificate.ranges is not None and not certificate.problem.expectation.is_declared
    if regret is None or not any_two or not 0 < largest < regret.trivial_bound:
        return None
    return min(regret.bound / largest, 1.0)


def regret_share(certificate: Certificate) -> float:
    """The bound on the regret as a share of the most that is known to be possible; 1 without one
    that holds."""
    regret = certificate.regret
    if regret is None or not regret.valid:
        return 1.0
    attainable = _attainable_share(certificate)
    return min(regret.share if attainable is None else attainable, 1.0)


def regret_strength(certificate: Certificate) -> str:
    """`vacuous`, `weak` or nothing, as of a gap."""
    share = regret_share(certificate)
    return "vacuous" if share >= 1 else "weak" if share > WEAK else ""


def premises_of_the_regret(certificate: Certificate) -> tuple[Premise, ...]:
    """Those of the regret that are not premises of the other bound."""
    regret = certificate.regret
    known = {one.name for one in certificate.premises}
    return () if regret is None else tuple(one for one in regret.premises if one.name not in known)


def worth(certificate: Certificate) -> str:
    """The share of the trivial bound in words, and the word that belongs to it."""
    if certificate.nothing_matters:
        return "under these costs all policies are alike up to rounding"
    if certificate.known_cost:
        ends = (certificate.least_possible, certificate.trivial_bound)
        least, most = (_shown(certificate, end) for end in ends)
        scale = f"the way from the least possible cost {least} to the largest {most}"
    else:
        scale = f"the largest possible gap, {certificate.trivial_bound:.4g}"
        if certificate.bound <= 0:
            every = ", and every policy attains it: vacuous" if certificate.vacuous else ""
            return f"to be compared with {scale}{every}"
    words = {"vacuous": ", and therefore vacuous", "weak": ": a weak bound"}
    return f"which is {percent(certificate.share)} of {scale}{words.get(certificate.strength, '')}"


def percent(share: float) -> str:
    """A part of a whole. It is not rounded up to the whole, nor down to nothing.

    >>> percent(0.1234), percent(0.0), percent(1e-5), percent(0.9999), percent(1.0)
    ('12.3 %', '0 %', '< 0.1 %', '> 99.9 %', '100 %')
    """
    if 0 < share < 5e-4:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{100 * share:.3g} %"


def premises_in_words(premises: Iterable[Premise]) -> str:
    """The premises of a bound by their names: what was declared, and what was tested."""
    found = tuple(premises)
    marks = {PremiseStatus.DECLARED: "declared", PremiseStatus.TESTED: "tested and not refuted"}
    parts = [
        f"{mark}: {'; '.join(one.name for one in found if one.status is status)}"
        for status, mark in marks.items()
        if any(one.status is status for one in found)
    ]
    return f"Premises {'. Premises '.join(parts)}." if parts else ""


def _claim(certificate: Certificate) -> str:
    """The bound, and what it depends on."""
    bound = f"{certificate.bound:.4g}"
    sure = _is_certain(certificate)
    chance = "" if sure else f"With probability {1 - certificate.failure_probability:.4g} "
    if certificate.known_cost:
        return f"{chance}{'T' if sure else 't'}he policy's expected cost is at most {bound}"
    declared = "If the declared expectations are the expert's, " if sure else chance
    where = "of the class" if certificate.agreement is None else "in the declared range"
    spent = f"at most {bound} more" if certificate.bound >= 0 else f"at least {bound[1:]} less"
    return f"{declared}the policy costs {spent} than the expert under every cost {where}"


def _is_certain(certificate: Certificate) -> bool:
    """Whether nothing was estimated."""
    if certificate.problem.level is Level.RECORDED:
        return False
    known = certificate.problem.expectation.is_declared
    return known and not certificate.best.statistics and not _is_estimated(certificate)


def _is_estimated(certificate: Certificate) -> bool:
    """Whether the laws of the world are estimates."""
    problem = certificate.problem
    return problem.level is Level.EXPLICIT and problem.world.is_estimated


def _in_the_model(certificate: Certificate) -> str:
    return " in the model" if _is_estimated(certificate) else ""


def _known_least(certificate: Certificate) -> float:
    """What no known cost can be below, whatever the world does; zero of a gap."""
    problem = certificate.problem
    return float(problem.totals.basis.lowest.min()) * problem.total_time


def _beside(certificate: Certificate) -> str:
    """The gap on the data, and what no policy can be below if that is not known anyway."""
    problem, least = certificate.problem, certificate.lower_bound
    known = _known_least(certificate) if certificate.known_cost else 0.0
    there = _in_the_model(certificate)
    floor = ""
    if least > known + ROUNDING * problem.gap_scale:
        floor = f"no policy{_in_time(problem)} can be below {_shown(certificate, least)}{there}"
    if certificate.known_cost or certificate.gap_on_data is None:
        return f"; {floor}" if floor else ""
    near = f"; on this data its gap{there} is {_shown(certificate, certificate.gap_on_data)}"
    return f"{near}, and {floor}" if floor else near


def _shown(certificate: Certificate, value: float) -> str:
    """A number, zero when it is no more than rounding."""
    return f"{0.0 if abs(value) < ROUNDING * certificate.problem.gap_scale else value:.4g}"


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


def _unobserved(certificate: Certificate) -> list[str]:
    """Demonstrated steps that an estimated world does not know."""
    problem, demos = certificate.problem, certificate.problem.demonstrations
    if demos is None or not _is_estimated(certificate):
        return []
    count = num_unobserved(problem.world, demos)
    if not count or count < NOTABLE * demos.num_steps:
        return []
    share = percent(count / demos.num_steps)
    return [f"{share} of the demonstrated steps were never seen in the record of the model."]


def _left_out(certificate: Certificate) -> list[str]:
    """What there was no time for."""
    if not certificate.left_out:
        return []
    names = " and ".join(f"{name!r}" for name in certificate.left_out)
    return [f"For lack of time the expert was not estimated by {names}: with more the bound may "
            "be smaller."]  # fmt: skip


def _premises_by_name(certificate: Certificate) -> list[str]:
    return list(filter(None, [premises_in_words(certificate.premises)]))


def _doubts(certificate: Certificate) -> list[str]:
    """Premises that are possibly not true."""
    problem, found = certificate.problem, []
    if problem.level is Level.EXPLICIT and observed_support(problem.world)[0]:
        found.append(
            "The support equals the observed pattern: if it was taken from the record, the bound "
            "is too small."
        )
    return [*found, *doubt_of_copies(certificate.premises, problem.demonstrations)]


def numbers_beside(certificate: Certificate) -> list[tuple[str, float, str]]:
    """What stands beside the bound, each number with its name and its meaning: what was achieved,
    and what no policy can achieve. Texts and pages use the same names; nothing is there where the
    policy was not evaluated exactly."""
    achieved, least = certificate.gap_on_data, certificate.lower_bound
    if achieved is None:
        return []
    there = f",{_in_the_model(certificate)}" if _is_estimated(certificate) else ""
    exactly = f"of this policy, evaluated exactly{there}"
    if certificate.known_cost:
        return [
            ("expected cost", achieved, exactly),
            (
                "lower bound on the cost",
                least,
                f"no policy{_in_time(certificate.problem)} is below{there}",
            ),
        ]
    return [
        ("gap on the data", achieved, exactly),
        ("lower bound on the data", least, f"{_no_policy(least, certificate.problem)}{there}"),
    ]


def _no_policy(least: float, problem: Any) -> str:
    """What a lower bound on the gap says."""
    what = "does better than the expert by more" if least < 0 else "is below"
    return f"no policy{_in_time(problem)} {what}"


def _in_time(problem: Any) -> str:
    """With discount 1, which policies bounds are about."""
    return f" of at most {problem.effective_horizon:.6g} steps" if has_goal(problem) else ""


def _true_lower_bound(certificate: Certificate) -> list[tuple[str, float, str]]:
    """What no policy can be below in truth, where that says more than is known anyway."""
    problem, least = certificate.problem, certificate.true_lower_bound
    known = certificate.least_possible
    if certificate.known_cost:
        known = _known_least(certificate)
    if certificate.gap_on_data is None or least <= known + ROUNDING * problem.gap_scale:
        return []
    errors = ["model error"] * _is_estimated(certificate)
    errors += ["sampling"] * (not problem.expectation.is_declared)
    if not errors:
        return []
    allowed = f", allowing for {' and '.join(errors)}, with the same probability"
    if certificate.known_cost:
        within = f"no policy{_in_time(problem)} is below{allowed}"
        return [("lower bound on the true cost", least, within)]
    return [("lower bound on the true gap", least, f"{_no_policy(least, problem)}{allowed}")]


def table(certificate: Certificate, *, formulas: bool = True) -> str:
    """Terms in words, alternatives, budgets and premises; then, unless they are not wanted, the
    formulas of the terms and their symbols in words."""
    best = certificate.best
    of_what = "cost" if certificate.known_cost else "gap"
    failed = "NOT VALID: a premise has failed; only the trivial bound holds"
    beside = (*numbers_beside(certificate), *_true_lower_bound(certificate))
    reduced = certificate.reduced
    lines = [
        *([] if certificate.valid else [failed]),
        f"{'upper bound on the ' + of_what:<30}{certificate.bound:>12.6g}   "
        f"{_in_units(certificate, certificate.bound)}{_share_and_strength(certificate)}",
        *_term_lines(best.terms, best.bound, 2),
        f"{'trivial bound':<30}{certificate.trivial_bound:>12.6g}   "
        f"{_in_units(certificate, certificate.trivial_bound)}, "
        f"no policy{_in_time(certificate.problem)} has a larger {of_what}",
        *(f"{name:<30}{value:>12.6g}   {meaning}" for name, value, meaning in beside),
    ]
    if reduced is not None:
        least = f"least one at least {reduced.lower_bound:.6g}"
        lines.append(f"{'loss over the features':<30}{reduced.loss:>12.6g}   {least}")
    lines.append(f"{'failure probability':<30}{certificate.failure_probability:>12.6g}")
    lines += _regret_lines(certificate)
    if certificate.budgets:
        lines += ["", "budgets"] + [
            f"  {one.name:<28}{one.spent:>12.6g}   of {one.limit:.6g}   "
            f"{'kept' + one.chance if one.is_kept else 'NOT certified'}"
            for one in certificate.budgets
        ]
    if certificate.premises:
        lines += ["", "premises"] + [
            f"  {MARKS[one.status]:<10}{one.name}: {one.detail}" for one in certificate.premises
        ]
    text = "\n".join([*lines, *(_formula_lines(certificate) if formulas else ())])
    return with_names(certificate, text)


def with_names(certificate: Certificate, text: str) -> str:
    """The same text, with its name behind every number of a state or an action that has one."""
    world = certificate.problem.world
    return world.with_names(text) if isinstance(world, World) else text


def _share_and_strength(certificate: Certificate) -> str:
    """The bound as a share of what is possible, and the word that belongs to it."""
    if certificate.nothing_matters:
        return ", all policies are alike up to rounding"
    of_what = (
        "the way to the largest cost" if certificate.known_cost else "the largest possible gap"
    )
    if not certificate.known_cost and certificate.bound <= 0:
        return ", vacuous" if certificate.vacuous else ""
    strength = f": {certificate.strength}" if certificate.strength else ""
    return f", {percent(certificate.share)} of {of_what}{strength}"


def large_and_negligible(terms: Sequence[Term]) -> tuple[list[Term], list[Term]]:
    """Terms that matter, and those too small to be seen beside the largest."""
    least = NEGLIGIBLE * max((abs(term.value) for term in terms), default=0.0)
    large = [term for term in terms if abs(term.value) > least]
    return large or list(terms), [term for term in terms if large and abs(term.value) <= least]


def names_in_words(terms: Sequence[Term]) -> str:
    """The names of terms as part of a sentence."""
    *others, last = [term.name for term in terms]
    return f"{', '.join(others)} and {last}" if others else last


def _term_lines(terms: Sequence[Term], total: float, indent: int) -> list[str]:
    """A line for each term that matters, and one for all that do not."""
    large, negligible = large_and_negligible(terms)
    space = " " * indent
    lines = []
    for term in large:
        part = f"{percent(term.value / total)} of it" if 0 < term.value <= total else ""
        words = ", ".join(filter(None, [part, MEANINGS.get(term.name, "")]))
        lines.append(f"{space}{term.name:<{30 - indent}}{term.value:>12.6g}   {words}".rstrip())
    if negligible:
        rest = math.fsum(term.value for term in negligible)
        lines.append(
            f"{space}{'the rest':<{30 - indent}}{rest:>12.6g}   {names_in_words(negligible)}"
        )
    return lines


def _formula_lines(certificate: Certificate) -> list[str]:
    """The terms as formulas with their sources, every way to bound the gap, and the symbols."""
    regret = certificate.regret
    own = () if regret is None or not regret.valid else regret.terms
    lines = [
        "",
        "ways to bound it (evaluation, expert)",
        *(
            f"  {way.kind + ', ' + way.estimate:<44}{way.bound:>12.6g}"
            for way in certificate.combinations
        ),
        "",
        "formulas",
        *_formulas(certificate.terms),
        *(["", "formulas of the regret", *_formulas(own)] if own else []),
    ]
    kinds_seen = [way.kind for way in certificate.combinations]
    words = symbols_of(certificate, (*certificate.terms, *own), kinds_seen)
    if words:
        wrapped = wrap(words, WIDTH - 2, break_on_hyphens=False)
        lines += ["", "symbols", *(f"  {line}" for line in wrapped)]
    return lines


def _formulas(terms: Iterable[Term]) -> list[str]:
    return [
        f"  {term.name:<28}{term.value:>12.6g}   {term.formula}  [{term.source}]" for term in terms
    ]


def _regret_lines(certificate: Certificate) -> list[str]:
    """The regret under the expert's own cost: terms, what to compare it with, and premises."""
    regret, horizon = certificate.regret, certificate.problem.total_time
    if regret is None:
        return []
    state = "   NOT VALID: a premise has failed"
    if regret.valid:
        strength = regret_strength(certificate)
        word = f": {strength}" if strength else ""
        state = f", {percent(regret_share(certificate))} of the largest possible{word}"
    terms = _term_lines(regret.terms, regret.bound, 4) if regret.valid else []
    what, budgets = "no policy loses more under any cost", certificate.problem.constraints
    within = " within the budgets" if budgets else ""
    return [
        "",
        f"regret to the optimum{within} under the expert's own cost",
        f"  {'upper bound on the regret':<28}{regret.bound:>12.6g}   per step "
        f"{regret.bound / horizon:.6g}{state}",
        *terms,
        f"  {'of a random policy' if budgets else 'of the uniform policy':<28}"
        f"{regret.uniform:>12.6g}   which tests the premise",
        f"  {'trivial bound':<28}{regret.trivial_bound:>12.6g}   {what}",
        f"  {'failure probability':<28}{regret.failure_probability:>12.6g}",
        *(
            f"  {MARKS[one.status]:<10}{one.name}: {one.detail}"
            for one in premises_of_the_regret(certificate)
        ),
    ]


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
    "memory": "how far the cost that is still to come depends on the state, in ranges of a cost",
    "total": "discounted costs of a recorded episode, plain or shaped",
    "max_w": "largest over the costs of the class, w their weights",
    "lower": "lower bound on an expectation, by betting",
    "upper": "upper bound on an expectation, by betting",
    "F": "largest difference of what can follow and the potential",
    "err": "how far, in the 1-norm, counts leave laws open",
    "err0": "the same for the initial law",
    "y": "kappa + t counts - lam: flow that the expert was seen to take, less what was not best",
    "kappa": "prices of recorded pairs",
    "t": "price of the sum over all recorded steps",
    "tau": "prices of the expert's estimated expectations x",
    "x": "estimated expectations of the expert",
    "limit": "what a recorded pair may cost more than the best action, by the premise",
    "most": "what all recorded steps may cost more together, by the premise",
    "regret": "what the expert may cost more than the optimum, by the premise",
    "radius": "how far the estimates may be off",
    "sig": "(1 - tau - alpha) initial - (B - discount P)' y, in two parts by its sign",
    "alpha": "price of the least cost that is possible, with budgets; 0 without",
    "floor": "the least cost that is possible under every cost of the class",
    "sig+": "the positive part of sig",
    "low": "values below those of every cost of the class",
    "high": "values above those of every cost of the class",
    "sizes": "sizes of what is added up",
    "theta": "coefficients of the features",
    "theta_k": "share of candidate k",
    "s_k": "the smaller radius of candidate k",
    "S": "width of the declared range of costs",
    "Z": "expected discounted time after the first difference from the expert, given an episode",
    "U": "upper bound on the expectation of Z, by betting",
    "cut": "the part of Z behind a record that was cut off",
}
"""In the order in which they are explained."""
KINDS: Mapping[str, str] = {
    "A": "Lemma 2",
    "B": "the positive part of u",
    "B'": "the same times a factor",
    "C": "the same with centred costs",
    "D": "exact visits",
    "E": "rollouts",
}
"""Ways to evaluate a policy, by the letter before their first comma or blank."""


WITH_GOAL: Mapping[str, str] = {
    "h": "steps: of the policy the longest expected time from where it gets to, proven; of the "
    "expert M, what it is declared or proven to expect at most",
    "mu": "expected visits of the policy",
    "T": "recorded length; discount^T is 0 where an episode came to its end within L steps",
    "total": "costs of an episode, cut after L steps, and M more",
    "R": "range of a total: L + M steps",
    "R_i": "range of the total of cost i: L + M steps",
}
"""What symbols stand for with discount 1."""


def symbols(terms: Iterable[Term], *, goal: bool = False) -> dict[str, str]:
    """Symbols in the formulas of `terms`, and what they stand for; with discount 1 if `goal`.

    >>> symbols([Term("truncation", 0.1, "N h mean discount^T", "recorded lengths")])["T"]
    'recorded length'
    """
    found = {word for term in terms for word in SYMBOL.findall(term.formula)}
    meanings = {**SYMBOLS, **WITH_GOAL} if goal else SYMBOLS
    return {symbol: words for symbol, words in meanings.items() if symbol in found}


def kinds(names: Iterable[str]) -> dict[str, str]:
    """Letters of the ways to evaluate a policy, and what they stand for."""
    letters = {re.split("[, ]", name)[0] for name in names}
    return {letter: words for letter, words in KINDS.items() if letter in letters}


def symbols_of(certificate: Certificate, terms: Sequence[Term], kinds: Sequence[str]) -> str:
    """`symbols_in_words` of the world at hand: with a horizon, h is the time of an episode; with
    average costs that of the discounted world which stands for them; with
    discount 1 it bounds expected steps."""
    goal, layers = has_goal(certificate.problem), layers_of(certificate.problem)
    words = symbols_in_words(terms, kinds, goal=goal)
    if averages_of(certificate.problem) is not None:
        return words.replace(
            f"h: {SYMBOLS['h']}",
            "h: 1 for records, 1/(1 - discount) of the world that stands for averages otherwise",
        )
    if layers is None:
        return words
    return words.replace(
        f"h: {SYMBOLS['h']}", "h: 1/(1 - discount), at least the discounted steps of an episode"
    )


def averages_of(problem: Any) -> Averages | None:
    """Of a world of average costs."""
    return getattr(problem.world, "averages", None)


def layers_of(problem: Any) -> Layers | None:
    """Of a world with a horizon."""
    return getattr(problem.world, "layers", None)


def symbols_in_words(terms: Iterable[Term], ways: Iterable[str], *, goal: bool = False) -> str:
    """The symbols of formulas and ways in one sentence; empty where there are none."""
    found = symbols(terms, goal=goal) | kinds(ways)
    return "; ".join(f"{symbol}: {meaning}" for symbol, meaning in found.items())


def advice(certificate: Certificate) -> str:
    """Sentences: about the bound on the gap, then about that on the regret."""
    return with_names(certificate, _advice(certificate))


def _advice(certificate: Certificate) -> str:
    if not certificate.valid:
        failed = (f"{one.name}: {one.detail}" for one in refuted(certificate.premises))
        sentence = (
            f"A premise has failed; until that is repaired nothing else helps. {'; '.join(failed)}"
        )
        return "\n".join([sentence, *_about_the_regret(certificate)])
    bound = certificate.best.bound
    if bound <= 0:
        done = "The bound is not above zero: nothing needs to be done."
        return "\n".join([done, *_about_the_regret(certificate)])
    named = [f"{term.name} {percent(term.value / bound)}" for term in _large_terms(certificate)]
    strength = f" ({certificate.strength})" if certificate.strength else ""
    ways = (_more, _longer, _better, _known, _exactly)
    of_records = [] if certificate.agreement is None else advice_of_records(certificate)
    sentences = [f"The bound {bound:.4g}{strength} is made of {', '.join(named)}."]
    if certificate.bound < bound:
        sentences = [
            f"The terms add up to {bound:.4g}, so the trivial bound {certificate.bound:.4g} holds "
            f"in their place{strength}. They are {', '.join(named)}."
        ]
    if of_records:
        return "\n".join([*sentences, *of_records])
    sentences += filter(None, (way(certificate) for way in ways))
    return "\n".join([*sentences, *_about_the_regret(certificate)])


def _about_the_regret(certificate: Certificate) -> list[str]:
    """What is wrong with the bound on the regret, or what would lower it."""
    regret = certificate.regret
    if regret is None:
        return []
    if not regret.valid:
        failed = "; ".join(f"{one.name}: {one.detail}" for one in refuted(regret.premises))
        return [f"The regret is not certified. {failed}"]
    ways = (_next_demonstration(regret), _declared(regret), _without_a_choice(certificate))
    return [words for words in ways if words]


def _declared_share(regret: Regret) -> float:
    """How much of the bound on the regret is what was declared."""
    part = sum(term.value for term in regret.terms if term.name == "declared")
    return min(part / regret.bound, 1.0) if 0 < regret.bound < regret.trivial_bound else 0.0


def _declared(regret: Regret) -> str:
    """That the bound is little more than what was declared."""
    part = _declared_share(regret)
    if part < MOSTLY:
        return ""
    return (
        f"{percent(part)} of the bound on the regret, {regret.bound:.4g}, is the regret that was "
        "declared: it falls with what is declared, if less is true, and less with demonstrations."
    )


def _without_a_choice(certificate: Certificate) -> str:
    """That recorded steps without a choice count in a declared average."""
    problem, demos = certificate.problem, certificate.problem.demonstrations
    declared = [one for one in problem.expert_is if isinstance(one, Rational)]
    if demos is None or not declared or not declared[0].regret_per_step:
        return ""
    idle = int(_nothing_to_choose(problem)[demos.step_states].sum())
    steps, rate = demos.num_steps, declared[0].regret_per_step
    if idle < LARGE * steps:
        return ""
    others = steps - idle
    same = (
        f" {rate:g} a step of the others is {rate * others / steps:.4g} a step of all."
        if others
        else ""
    )
    return (
        f"{idle:,} of {steps:,} recorded steps are in absorbing states, where nothing can be "
        "chosen. They count in the declared average, which allows "
        f"{rate * steps:.4g} in total: end the records before them, or declare less.{same}"
    )


def _nothing_to_choose(problem: Apprenticeship) -> BoolArray:
    """Absorbing states in which all actions cost the same: the advantage of each is zero there,
    whatever the cost."""
    world, pairs = problem.world, problem.world.pairs
    first = pairs.offsets[pairs.states]
    other = abs(problem.cost_matrix - problem.cost_matrix[first]).sum(axis=1)
    unequal = np.add.reduceat(np.asarray(other).ravel(), pairs.offsets[:-1]) > 0
    return np.asarray(world.absorbing & ~unequal)


def _next_demonstration(regret: Regret) -> str:
    """From where a further demonstration promises most for the bound on the regret."""
    state = regret.next_start()
    if state is None or regret.contributions is None or _declared_share(regret) > ALMOST:
        return ""
    part = regret.contributions[state] / regret.contributions.sum()
    return (
        f"The bound on the regret under the expert's own cost, {regret.bound:.4g}, falls fastest "
        f"with a demonstration from state {state}, the start that adds most to it "
        f"({percent(part)}; certificate.regret.next_start())."
    )


def _large_terms(certificate: Certificate) -> list[Term]:
    bound = certificate.best.bound
    return sorted(
        (term for term in certificate.terms if term.value >= LARGE * bound),
        key=lambda term: -term.value,
    )


def _more(certificate: Certificate) -> str:
    """How many demonstrations halve the bound if nothing else changes."""
    problem, bound = certificate.problem, certificate.best.bound
    records = problem.demonstrations or problem.records
    if records is None:
        return ""
    if certificate.best.estimate.startswith(CONSISTENCY):
        return (
            "Demonstrations that visit further states, or states with few visits, narrow what is "
            "consistent with the record; how many halve the bound is not known."
        )
    falling = {term.name: term.value for term in certificate.terms if term.name in SAMPLING}
    allowed = bound / 2 - (bound - sum(falling.values()))
    count = len(records)
    if allowed <= 0:
        return (
            "More demonstrations alone do not halve it: the other terms are more than half of it."
        )
    factor = 1.0
    while factor < MOST and _fallen(falling, factor) > allowed:
        factor *= 1.05
    sentence = f"About {math.ceil(count * factor):,} demonstrations (now {count:,}) halve it."
    if has_goal(problem) or averages_of(problem) is not None:
        return sentence  # radii depend on where episodes are cut, or on their lengths
    part = INDEPENDENT_SHARE * certificate.failure_probability
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
    if has_goal(certificate.problem):
        return "Records that go on until episodes end have less truncation, or none."
    demos = certificate.problem.demonstrations
    if averages_of(certificate.problem) is not None and demos is not None:
        times = truncation / (LARGE / 2 * certificate.best.bound)
        needed = math.ceil(times * float(demos.lengths.mean()))
        return f"Records of {needed:,} steps make the truncation negligible."
    length = recorded_length(certificate.problem, LARGE / 2 * certificate.best.bound)
    return f"Records of {length:,} steps make the truncation negligible."


def _better(certificate: Certificate) -> str:
    excess = certificate.optimality_gap
    if excess is None or excess < LARGE * certificate.best.bound:
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
    if model < LARGE * certificate.best.bound or not _is_estimated(certificate):
        return ""
    if problem.world.transition_counts is None:
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
    each = "pair" if problem.world.shared is None else "group of pairs that share a law"
    return (
        f"{needed:,} observed transitions of every {each} bring the model term below "
        f"{percent(WORTHWHILE)} of the trivial bound."
    )


def _exactly(certificate: Certificate) -> str:
    """What rollouts and sampled rows cost."""
    drawn = sum(term.value for term in certificate.terms if term.name in SAMPLED)
    if not certificate.best.statistics or drawn < LARGE * certificate.best.bound:
        return ""
    exactly = "; without evaluation= the policy is evaluated exactly"
    return (
        f"The evaluation of the policy by samples costs {drawn:.4g}, which falls with the square "
        f"root of their number{exactly if certificate.problem.level is Level.EXPLICIT else ''}."
    )


def as_dict(certificate: Certificate) -> dict[str, Any]:
    """All that is known as plain values, ready for JSON: infinities are words there."""
    names = (
        "failure_probability", "bound", "valid", "vacuous", "weak", "share", "trivial_bound",
        "least_possible", "lower_bound", "combinations", "premises", "alarm", "gap_on_data",
        "expectations", "lower_bounds", "budgets", "expert_intervals", "apprentice_intervals",
        "left_out",
    )  # fmt: skip
    found = {name: plain(getattr(certificate, name)) for name in names}
    found["regret"] = _regret_as_dict(certificate.regret)
    for one, budget in zip(certificate.budgets, found["budgets"], strict=True):
        budget["is_kept"] = one.is_kept
    return found


def _regret_as_dict(regret: Regret | None) -> dict[str, Any] | None:
    names = (
        "bound", "valid", "share", "trivial_bound", "uniform", "failure_probability", "terms",
        "uniform_terms", "premises", "contradiction",
    )  # fmt: skip
    return None if regret is None else {name: plain(getattr(regret, name)) for name in names}


def plain(value: Any) -> Any:
    """A value of a certificate as JSON knows it, fields by their names.

    >>> plain(Term("truncation", math.inf, "N h mean discount^T", "lengths"))["value"]
    'inf'
    """
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, tuple | np.ndarray):
        return [plain(one) for one in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value
