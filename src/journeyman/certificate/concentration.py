"""Inequalities for means of n independent samples, each failing with probability delta at most.

| function                     | bounds                                                            |
|------------------------------|-------------------------------------------------------------------|
| `hoeffding_radius`           | R sqrt(log(1/delta)/(2n)),  R the width of the range              |
| `empirical_bernstein_radius` | sqrt(2 Var log(2/delta)/n) + 7 R log(2/delta)/(3(n - 1))          |

Few samples, and many directions at once, are for bets: `certificate.betting_means`.

*Reference*: Hoeffding (1963); Maurer and Pontil (2009), theorem 4.
"""

import math

from journeyman.arrays import require_between
from journeyman.costs.cost_class import Rate, Totals
from journeyman.errors import InvalidProblem
from journeyman.problem import Apprenticeship
from journeyman.world.layers import time_left
from journeyman.world.levels import require_discounted, require_totals


def hoeffding_radius(width: float, count: int, failure_probability: float) -> float:
    """One-sided radius of a mean whose samples lie in a range of this width."""
    return width * math.sqrt(math.log(1 / failure_probability) / (2 * count))


def empirical_bernstein_radius(
    variance: float, width: float, count: int, failure_probability: float
) -> float:
    """One-sided radius from the sample variance (divided by n - 1)."""
    if count < 2:
        return math.inf
    log = math.log(2 / failure_probability)
    return math.sqrt(2 * variance * log / count) + 7 * width * log / (3 * (count - 1))


def radii(
    problem: Apprenticeship,
    failure_probability: float,
    *,
    two_sided: bool = True,
    totals: Totals | None = None,
) -> tuple[Rate, ...]:
    """Every radius s(m, failure_probability) known for the problem's class; none is needed, and
    none returned, when the cost is known.

        P( gap_W(+-(estimate - truth)) > s(m, delta) ) <= delta         s = scale(delta)/sqrt(m)

    for the mean of m independent trajectories; each cost class has its own (`CostClass.rates`). A
    comparison of two policies needs both signs, a certificate of one policy only the first. What
    is known of `totals` is what the problem says, by default.

    Records that stop after H steps lose at most N h discount^H, whatever made them stop; the radii
    are for complete trajectories, so the two errors add.

    *Guarantee*: no radius looks at the data, so the smallest of them is free. It fails for
    trajectories that are not independent or do not start from `initial`; experts may depend on
    history.

    *Reference*: Hoeffding (1963); McDiarmid (1989).
    """
    delta = require_probability(failure_probability)
    if totals is None:
        require_discounted(problem.world, "a radius for any number of demonstrations")
        require_totals(problem.world, "a radius for any number of demonstrations")
    known = problem.totals if totals is None else totals
    return problem.cost_class.rates(known, delta, two_sided=two_sided)


def truncation(problem: Apprenticeship, recorded_length: int | None = None) -> float:
    """N h discount^H: what records of H steps can leave out.

    Without a length: what the problem's own records do, N times their mean unrecorded time.
    """
    if recorded_length is not None:
        require_discounted(problem.world, "a bound on what records of a length leave out")
        require_totals(problem.world, "a bound on what records of a length leave out")
        if getattr(problem.world, "layers", None) is None:
            return problem.gap_scale / 2 * problem.world.discount**recorded_length
        left = float(time_left(problem.world, recorded_length))
        return problem.gap_scale / 2 * left / problem.total_time
    if problem.expert is None:
        return 0.0
    unseen = problem.expectation.truncation_mass
    return problem.gap_scale / 2 * unseen / problem.total_time


def recorded_length(problem: Apprenticeship, target: float) -> int:
    """The least H, from 1, with `truncation(problem, H) <= target`."""
    if truncation(problem, 1) <= target:
        return 1
    ratio = problem.gap_scale / (2 * target)
    if getattr(problem.world, "layers", None) is not None:
        ratio = 1.0
    length = max(1, math.ceil(math.log(ratio) / -math.log(problem.world.discount)) - 1)
    while truncation(problem, length) > target:
        length += 1
    return length


def fewest(rates: tuple[Rate, ...], target: float) -> int:
    """The least number over the variants; 0 when there is nothing to estimate."""
    return min((rate.smallest(target) for rate in rates), default=0)


def require_probability(value: float) -> float:
    return require_between(
        "failure_probability", value, 0.0, 1.0, InvalidProblem, "Give for example 0.05"
    )
