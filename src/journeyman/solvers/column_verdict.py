"""What the policy of a search is worth: figures recomputed from the data, and what they prove."""

from collections.abc import Callable

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.problem import Program, Witness
from journeyman.solvers.answer import Solution
from journeyman.solvers.column_search import ColumnSearch

SAFETY = 0.9
"""A search stops at this share of the tolerance; the rest is for rounding."""
EXACT = 1e-12
"""Accuracy of the second evaluation, should the first have been too rough."""
HURRIED = 1e-5
"""Accuracy of the only evaluation after a limit."""
ROUNDING = 1e-12
"""Value and bound may differ by this share of the value whatever the tolerance."""


def evaluated(
    problem: Program,
    search: ColumnSearch,
    witness: Witness,
    is_good: Callable[[Solution], bool],
) -> Solution:
    """The policy of the best mixture; once more exactly if the first one is not good.

    A search that was stopped has no time for an exact mixture; its figures are exact all the same.
    """
    stopped = search.watch.must_stop and search.gap > search.tolerance
    accuracy = max(search.accuracy, HURRIED) if stopped else search.accuracy
    rough = Solution.of(problem, search.policy(accuracy), witness)
    if search.mixture is None or stopped or is_good(rough):
        return rough
    fine = Solution.of(problem, search.policy(EXACT), witness)
    return min(rough, fine, key=lambda solution: solution.value)


def is_optimal(problem: Program, solution: Solution, tolerance: float) -> bool:
    """Whether value and bound agree to the tolerance and budgets are kept as exactly."""
    close = solution.value - solution.lower_bound <= allowance(solution, tolerance)
    return close and bool((solution.overspending <= overdrafts(problem, tolerance)).all())


def allowance(solution: Solution, tolerance: float) -> float:
    """By how much value and bound may differ."""
    return max(tolerance, ROUNDING * abs(solution.value))


def overdrafts(problem: Program, tolerance: float) -> FloatArray:
    """By how much each budget may be broken: in its own unit the tolerance of the gap."""
    return np.asarray(tolerance / problem.cost_unit * problem.budget_units)
