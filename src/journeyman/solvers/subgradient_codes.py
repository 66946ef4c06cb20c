"""Numbers that stand for cost classes and step rules inside compiled code."""

from journeyman.costs import CostClass, EuclideanBall, InfinityBall, KnownCost, Simplex

INFINITY_BALL, EUCLIDEAN_BALL, SIMPLEX, KNOWN_COST = range(4)
CONSTANT, INVERSE_ROOT, NORM_ADAPTIVE, COORDINATE_ADAPTIVE, DUAL_AVERAGING = range(5)

WEIGHT, SQUARED_WEIGHT, REGRET, SQUARED_NORM = range(4)
"""Positions in `totals`: sums of w_t, w_t^2, w_t <g_t, theta_t> and |g_t|^2."""


def class_code(cost_class: CostClass) -> int:
    """The number of a cost class."""
    kinds: list[type[CostClass]] = [InfinityBall, EuclideanBall, Simplex, KnownCost]
    return kinds.index(type(cost_class))
