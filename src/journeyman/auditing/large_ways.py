"""The apprentice's side in a large world once more, from the statistics of what was drawn.

    walks      radius of their mean, and the time behind their ends
    mixture    both of every candidate, weighed with theta
    rows       2 N h V1 + N h V2 + radius of Psi' u, from means and ranges of the rows

No statistic is derived here: that needs the code (`large_draws`). Whether they can be statistics of
such a sample at all is checked.
"""

import math

import numpy as np

from journeyman.auditing.apprentice import EPSILON, Way
from journeyman.auditing.concentration import bernstein, hoeffding
from journeyman.auditing.large_inputs import LargeQuestion
from journeyman.auditing.large_run import MIXTURE, ROWS, WALKS, LargeRun
from journeyman.auditing.ledger import AGREEMENT, Figure, Ledger
from journeyman.auditing.reading import Refused
from journeyman.auditing.rollouts import sample_radius
from journeyman.auditing.seeds import large_seed
from journeyman.auditing.stored import Sample
from journeyman.auditing.tables import Floats

TRUNCATION, ROUNDING = "N h mean discount^T", "2 eps (summands + costs + 32) (1 + h) N h"
SUMS = ("Psi' u", "V1", "V2")


def large_way(run: LargeRun, exact: Floats | None, *, centred: bool) -> Way:
    """By one reading; `exact` is the part of Psi' u that is not sampled, None when not known."""
    if run.kind == ROWS:
        return _row_way(run, exact)
    return _mixture_way(run, centred) if run.kind == MIXTURE else _walk_way(run, centred)


def check_statistics(ledger: Ledger, run: LargeRun) -> None:
    """Counts, seeds, ranges, shares of the failure probability; figures a sample can have."""
    told, names = run.evaluation, [one.name for one in run.samples]
    wanted = {WALKS: ["rollouts"], ROWS: list(SUMS)}.get(
        run.kind, [f"rollouts of candidate {k}" for k in run.drawn]
    )
    if not ledger.equal("the list of samples", names, wanted):
        raise Refused("the samples are not those of the evaluation")
    count = told["rows"] if run.kind == ROWS else told["trajectories"]
    seed = large_seed(run.question, run.form, None)
    if seed is not None:
        ledger.equal("the seed of the draws", told["seed"], seed)
    for one, share in zip(run.samples, _shares(run), strict=True):
        figures = (one.count, one.seed, one.horizon)
        drawn = (count, told["seed"], told.get("horizon"))
        ledger.equal(f"count, seed and horizon of {one.name!r}", figures, drawn)
        what = f"the failure probability of {one.name!r}"
        ledger.close(what, one.failure_probability, share, 0.0)
        if run.kind == ROWS:
            _check_row_statistics(ledger, one)
        else:
            _check_walk_statistics(ledger, run.question, one)


def _shares(run: LargeRun) -> list[float]:
    share = run.shares[1]
    if run.kind == MIXTURE:
        parts = run.parts()
        return [float(parts[k]) * share for k in run.drawn]
    varying = [bool((one.ranges > 0).any()) for one in run.samples]
    return [share / sum(varying) if varies else 0.0 for varies in varying]


def _check_row_statistics(ledger: Ledger, one: Sample) -> None:
    most = one.ranges**2 / 4 * one.count / (one.count - 1) * (1 + 1e-9)
    ledger.check(
        (one.variances <= most).all() and (np.abs(one.means) <= one.ranges * (1 + 1e-9)).all(),
        f"means and variances of {one.name!r} are larger than their ranges allow",
    )
    ledger.check(one.unrecorded == 0, f"rows of {one.name!r} have no unrecorded time")


def _check_walk_statistics(ledger: Ledger, question: LargeQuestion, one: Sample) -> None:
    costs, h = question.costs, question.horizon
    widths, sizes = costs.ranges * h, costs.norms * h
    if one.means.size != len(question.names):
        raise Refused("the rollouts have not one mean for every cost")
    for k, name in enumerate(question.names):
        what = f"the range of {name!r} in {one.name}"
        ledger.close(what, float(one.ranges[k]), float(widths[k]), float(sizes[k]))
    cut = question.discount ** (one.horizon or 1) * h
    if question.sizes is not None:
        ledger.close(f"the unrecorded time of {one.name}", one.unrecorded, cut, 0.0)
    ledger.check(0 <= one.unrecorded <= h, f"{one.name} leave {one.unrecorded!r} of time")
    time, slack = h - one.unrecorded, AGREEMENT * sizes
    inside = (one.means >= costs.ends[0] * time - slack) & (
        one.means <= costs.ends[1] * time + slack
    )
    ledger.check(inside.all(), f"the means of {one.name} lie outside their ranges")
    most = (widths / 2 * math.sqrt(one.count / (one.count - 1)) + costs.ranges * h) ** 2
    ledger.check(
        (one.variances <= most + slack).all(), f"the variances of {one.name} are too large"
    )


def _walk_way(run: LargeRun, centred: bool) -> Way:
    (sample,), question = run.samples, run.question
    told = run.claimed[0].terms[1].get("formula")
    radius, formula, source = sample_radius(question.costs, question.horizon, sample, told)
    cut = question.costs.smaller * sample.unrecorded
    figures = (
        Figure.exactly("rollout sampling", formula, radius, source),
        Figure.exactly("rollout truncation", TRUNCATION, cut, "recorded lengths"),
        rounding(question, run.evaluation["horizon"], 1.0),
    )
    return Way("E", _completed(question, sample, centred), figures)


def _mixture_way(run: LargeRun, centred: bool) -> Way:
    question, weights, drawn = run.question, run.weights, run.drawn
    shares = weights[drawn]
    radii = [sample_radius(question.costs, question.horizon, one, None) for one in run.samples]
    formulas = {formula for _, formula, _ in radii}
    formula = f"sum_k theta_k ({formulas.pop()})" if len(formulas) == 1 else "sum_k theta_k s_k"
    count = run.evaluation["trajectories"]
    source = f"{len(drawn)} of {weights.size} candidates, {count} rollouts each"
    radius = _weighed(shares, [radius for radius, _, _ in radii])
    lost = _weighed(shares, [question.costs.smaller * one.unrecorded for one in run.samples])
    cut = f"sum_k theta_k ({TRUNCATION})"
    figures = (
        Figure.exactly("rollout sampling", formula, radius, source),
        Figure.exactly("rollout truncation", cut, lost, source),
        rounding(question, run.evaluation["horizon"] + len(drawn), 1.0),
    )  # fmt: skip
    values = np.array([_completed(question, one, centred) for one in run.samples])
    return Way("E (mixture)", shares @ values, figures)


def _row_way(run: LargeRun, exact: Floats | None) -> Way:
    question, theta = run.question, run.form.figures("coefficients", "policy")
    expected, *violations = run.samples
    V1, V2 = (
        min(float(one.ranges[0]), float(one.means[0] + _row_radii(one)[0])) for one in violations
    )
    size, mass = question.costs.plain * question.horizon, max(1.0, 3 * math.fsum(abs(theta)))
    source = f"{expected.count} rows"
    figures = (
        Figure.exactly("negativity", "2 N h V1", 2 * size * V1, source),
        Figure.exactly("flow violation", "N h V2", size * V2, source),
        Figure.exactly(
            "expectations", "radius of Psi' u", question.costs.spread_gap(_row_radii(expected)),
            source,
        ),
        rounding(question, theta.size + expected.count, mass),
    )  # fmt: skip
    unknown = None if exact is not None else np.full(expected.means.size, math.inf)
    means = expected.means if exact is None else expected.means + exact
    return Way("A (sampled)", means, figures, unknown, size * mass)


def rounding(question: LargeQuestion, summands: int, mass: float) -> Figure:
    """What double precision can have hidden."""
    h = question.horizon
    value = 2 * EPSILON * (summands + len(question.names) + 32) * (1 + h)
    formula = ROUNDING if mass == 1 else f"{ROUNDING} max(1, 3 |theta|_1)"
    value *= question.costs.plain * h * mass
    return Figure.exactly("rounding", formula, value, "double precision")


def _completed(question: LargeQuestion, sample: Sample, centred: bool) -> Floats:
    return sample.means + (question.costs.centre * sample.unrecorded if centred else 0.0)


def _weighed(weights: Floats, values: list[float]) -> float:
    return math.fsum(weights * np.array(values))


def _row_radii(sample: Sample) -> Floats:
    """Of every mean that varies: the smaller of two radii, to both sides."""
    varying = sample.ranges > 0
    delta = sample.failure_probability / (4 * max(1, int(varying.sum())))
    return np.array([
        min(hoeffding(float(width), sample.count, delta),
            bernstein(float(variance), float(width), sample.count, delta)) if varies else 0.0
        for width, variance, varies in zip(sample.ranges, sample.variances, varying, strict=True)
    ])  # fmt: skip
