"""Every way in which a certificate may have evaluated the policy, in the world as it truly is.

In an estimated world every evaluation gets the term

    N h (discount <mu, err> + err0)

and one more is added: cost by cost under the worst laws. Its model term is what the gap under these
exceeds that in the model by. For a one-sided class the worst totals are enough, a ball needs both
ends of each cost's range.
"""

from dataclasses import replace

import numpy as np
from scipy import sparse

from journeyman.auditing.apprentice import Way, WorstEnds
from journeyman.auditing.costs import EUCLIDEAN, INFINITY
from journeyman.auditing.inputs import Budget
from journeyman.auditing.knowledge import FURTHEST, Distances
from journeyman.auditing.ledger import Figure, Ledger
from journeyman.auditing.reading import Refused
from journeyman.auditing.rollouts import check_rollouts, rollout_way
from journeyman.auditing.run import Run
from journeyman.auditing.sampled_rows import check_rows, row_ways
from journeyman.auditing.seeds import explicit_seed
from journeyman.auditing.stored import ROLLOUTS, samples_of
from journeyman.auditing.tables import Floats
from journeyman.auditing.worst_laws import worst_ends

WORST = "D, worst laws"
MODEL = "N h (discount <mu, err> + err0)"
RANGES = "gap_W under the worst laws - gap_W in the model"
SPENDING = "(max d - min d)/2 h (discount <mu, err> + err0), or the worst laws"


def check_samples(ledger: Ledger, run: Run) -> None:
    """Whether what was drawn can have been drawn, and paid for its part of the probability."""
    if run.sampling is None:
        return
    samples, part = samples_of(run.claimed), run.parts[1]
    seed = explicit_seed(run.world, run.apprentice.policy)
    ledger.equal("the seed of the draws", samples[0].seed, seed)
    if run.sampling == ROLLOUTS:
        if len(samples) != 1:
            raise Refused("rollouts are one sample")
        what = "the failure probability of the rollouts"
        ledger.close(what, samples[0].failure_probability, part, 0.0)
        check_rollouts(ledger, run.apprentice, samples[0], same_numpy=run.same_numpy)
    elif run.features is not None:
        check_rows(ledger, run.apprentice, run.features, samples, part, same_numpy=run.same_numpy)


def ways_in_the_model(run: Run, *, centred: bool) -> list[Way]:
    """Every evaluation that the inputs allow, by one reading of the rules."""
    if run.sampling is None:
        return list(run.apprentice.ways(run.points).values())
    samples = samples_of(run.claimed)
    if run.sampling == ROLLOUTS:
        told = [one.terms[1].get("formula") for one in run.claimed if one.kind == "E"]
        return [rollout_way(run.apprentice, samples[0], told[0], centred=centred)]
    if run.features is None:
        raise Refused("there are no features whose rows could have been sampled")
    return row_ways(run.apprentice, run.features, samples)


def distance_of(run: Run, distances: Distances) -> float:
    """How far the policy's occupancy in the true world can be from that in the model."""
    world = run.world
    ahead = float(run.apprentice.visits @ distances.transition)
    return min(world.discount * ahead + distances.initial, FURTHEST) * world.horizon


def model_figure(run: Run, distances: Distances) -> Figure:
    """What the model may hide from a gap."""
    value = run.question.costs.smaller * distance_of(run, distances)
    return Figure.exactly("model", MODEL, value, distances.source)


def with_model(way: Way, figure: Figure) -> Way:
    return replace(way, figures=(*way.figures, figure))


def worst_way(run: Run, distances: Distances) -> Way:
    """Every cost under the laws that are worst for it; the expectations are those in the model."""
    costs, matrix = run.question.costs, run.question.matrix
    dense = np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
    policy = run.apprentice.policy
    top, above = worst_ends(run.world, policy, dense, distances)
    bottom = below = None
    if costs.kind in (INFINITY, EUCLIDEAN):
        bottom, below = (-end for end in worst_ends(run.world, policy, -dense, distances))
    ends = WorstEnds(top, above, bottom, below, distances.source)
    return Way(WORST, run.apprentice.expectations, (), worst=ends)


def worst_figure(run: Run, ends: WorstEnds, values: Floats, gap: float) -> Figure:
    """By how much the gap to `values` under the worst laws exceeds `gap`, that in the model."""
    low = _worst_gap(run, ends.top, ends.bottom, values) - gap
    high = _worst_gap(run, ends.above, ends.below, values) - gap
    return Figure("model", RANGES, max(low, 0.0), max(high, 0.0), ends.source)


def _worst_gap(run: Run, greatest: Floats, least: Floats | None, values: Floats) -> float:
    difference = greatest - values
    if least is not None:
        difference = np.maximum(difference, values - least)
    return run.question.costs.gap(difference)


def budget_figure(run: Run, budget: Budget, distances: Distances) -> Figure:
    """What the model may hide from the spending of a budget."""
    half = float(budget.cost.max() - budget.cost.min()) / 2
    simple = half * distance_of(run, distances)
    spent = float(budget.cost @ run.apprentice.visits)
    ends = worst_ends(run.world, run.apprentice.policy, budget.cost[:, np.newaxis], distances)
    low, high = (min(simple, max(float(end[0]) - spent, 0.0)) for end in ends)
    return Figure("model", SPENDING, low, high, distances.source)
