"""Problems: what is to be minimised, under which budgets, and what no policy can beat."""

from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.problem.budget import Budget
from journeyman.problem.duality import (
    Witness,
    infeasibility_margin,
    least_cost_bound,
    lower_bound,
    sharpest_witness,
    telling_witness,
)
from journeyman.problem.forward import Forward
from journeyman.problem.program import Program

__all__ = [
    "Apprenticeship",
    "Budget",
    "Forward",
    "Program",
    "Witness",
    "infeasibility_margin",
    "least_cost_bound",
    "lower_bound",
    "sharpest_witness",
    "telling_witness",
]
