"""The trivial bound once more: what no policy's gap exceeds, by the potentials that were saved.

For any V no policy totals less of a cost c than <initial, V> + h min over pairs (c + discount P V -
B V); in an estimated world <initial, V> and P V are the least means within the distances of the
laws. So one pass over the transitions proves the lower end of a cost's attainable range and, with
minus the cost, the upper end. Costs without potentials have h times their extremes for a range.

    largest gap = max of gap_W over the box of differences
                = gap_W(max(|low|, |high|)) for a ball, gap_W(high) for a one-sided class

or what bounded costs alone say, if that is smaller. Where a premise failed nothing else holds.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.auditing.apprentice import EPSILON
from journeyman.auditing.chain import column
from journeyman.auditing.costs import EUCLIDEAN, INFINITY, KNOWN, SIMPLEX
from journeyman.auditing.duality import Least
from journeyman.auditing.ledger import AGREEMENT
from journeyman.auditing.run import Run
from journeyman.auditing.tables import Floats

WEAK = 0.5
"""Of the trivial bound: a bound above it is weak."""
ROUNDING_STEPS = 256
"""Operations per step of the horizon: a possible gap below their rounding is none."""


@dataclass(frozen=True)
class Limits:
    """Where the trivial bound lies, and what the share of a bound is measured from."""

    trivial: tuple[float, float]
    least: tuple[float, float]


def limits_of(run: Run, *, valid: bool) -> Limits:
    """By the saved potentials, or by bounded costs alone."""
    costs, h, target = run.question.costs, run.world.horizon, run.exact_target
    plain = run.plain()
    known = costs.kind == KNOWN
    one_sided = costs.kind == SIMPLEX and target is not None
    lowest = -run.plain(-1.0) if known or one_sided else 0.0
    if not valid or run.points.ranged is None:
        return Limits((plain, plain), (lowest, lowest))
    low, high = costs.ends[0] * h, costs.ends[1] * h
    boxes = [_box(run, low, high, share) for share in _slacks(run)]
    found = [min(plain, _largest(run, *_differences(box, target))) for box in boxes]
    ends = [0.0]
    if known:
        ends = [float(box[0][0] - (0.0 if target is None else target[0])) for box in boxes]
    elif one_sided:
        ends = [costs.gap(_differences(box, target)[0]) for box in boxes]
    least = (min(ends), max(ends))
    return Limits((min(found), max(found)), least)


def _slacks(run: Run) -> tuple[float, float]:
    """Between no rounding and twice what there can be; at least half of it where it matters."""
    matters = any(_rounding(run, k) > AGREEMENT * run.floor for k in range(len(run.question.names)))
    return (0.5 if matters else 0.0), 2.0


def _box(run: Run, low: Floats, high: Floats, share: float) -> tuple[Floats, Floats]:
    """The ranges with so much of the rounding allowed for."""
    low, high, ranged = low.copy(), high.copy(), run.points.ranged
    assert ranged is not None
    least = Least(run.world, run.distances)
    for place, k in enumerate(ranged.costs.tolist()):
        cost, slack = column(run.question.matrix, k), share * _rounding(run, k)
        bottom = _least_total(run, least, cost, ranged.low[place]) - slack
        top = -_least_total(run, least, -cost, ranged.high[place]) + slack
        low[k], high[k] = max(low[k], bottom), min(high[k], top)
    return low, high


def _least_total(run: Run, least: Least, cost: Floats, values: Floats) -> float:
    world = run.world
    slack = cost + world.discount * least.steps(values) - values[world.state_of]
    return least.starts(values) + float(slack.min()) * world.horizon


def _rounding(run: Run, k: int) -> float:
    """What double precision can hide of one end of the range of cost k."""
    world, ranged = run.world, run.points.ranged
    assert ranged is not None
    places = np.flatnonzero(ranged.costs == k)
    if not places.size:
        return 0.0
    size = float(max(np.abs(ranged.low[places]).max(), np.abs(ranged.high[places]).max()))
    largest = float(run.question.costs.norms[k])
    steps = (world.branches + 8) * (largest + 2 * size) * world.horizon
    own = EPSILON * (steps + (world.num_states + 4) * size)
    return own + Least(world, run.distances).rounding(size)


def _differences(box: tuple[Floats, Floats], target: Floats | None) -> tuple[Floats, Floats]:
    low, high = box
    return (low - high, high - low) if target is None else (low - target, high - target)


def _largest(run: Run, low: Floats, high: Floats) -> float:
    costs = run.question.costs
    two_sided = costs.kind in (INFINITY, EUCLIDEAN)
    return costs.gap(np.maximum(np.abs(low), np.abs(high)) if two_sided else high)


def strength(
    bound: float, trivial: float, least: float, rounding: float, *, known_cost: bool
) -> tuple[bool, bool]:
    """Whether a bound is vacuous, and whether it is weak. Nothing is of no worth where the largest
    and the least possible gap differ by `rounding` only; a gap is measured from zero."""
    if abs(trivial - least) <= rounding:
        return False, False
    if bound >= trivial:
        return True, True
    zero = least if known_cost else 0.0
    possible = trivial - zero
    return False, possible > 0 and (bound - zero) / possible > WEAK


def rounding_of(horizon: float, largest_cost: float, num_states: int) -> float:
    """Of a possible gap; `num_states` where plans were made in all of them."""
    return (ROUNDING_STEPS * horizon + num_states) * EPSILON * 2 * largest_cost * horizon
