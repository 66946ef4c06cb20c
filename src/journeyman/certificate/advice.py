"""What would help: the dominating terms of a bound and, in numbers, what halves it."""

import math

from journeyman.certificate.certificate import Certificate
from journeyman.certificate.estimated_world import enough_transitions
from journeyman.certificate.expert import LEAST_INDEPENDENT
from journeyman.certificate.model_error import WORTHWHILE
from journeyman.certificate.premises import refuted
from journeyman.certificate.sample_sizes import fewest, radii, recorded_length
from journeyman.certificate.terms import Term
from journeyman.errors import InvalidInput
from journeyman.policy import occupancy
from journeyman.problem import Apprenticeship

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
    if not isinstance(problem, Apprenticeship) or problem.demonstrations is None:
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
