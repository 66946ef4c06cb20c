"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.problem.apprenticeship import Apprenticeship as Apprenticeship
from journeyman.problem.apprenticeship import Budget as Budget
from journeyman.problem.apprenticeship import Forward as Forward
from journeyman.problem.bounds import Witness as Witness
from journeyman.problem.bounds import best_witness as best_witness
from journeyman.problem.bounds import infeasibility_margin as infeasibility_margin
from journeyman.problem.bounds import least_cost_bound as least_cost_bound
from journeyman.problem.bounds import lower_bound as lower_bound
from journeyman.problem.bounds import witness_from_plan as witness_from_plan
from journeyman.problem.expert_premises import Deterministic as Deterministic
from journeyman.problem.expert_premises import NearlyOptimal as NearlyOptimal
from journeyman.problem.expert_premises import Rational as Rational
from journeyman.problem.expert_premises import SoftRational as SoftRational
from journeyman.problem.expert_premises import Stationary as Stationary
from journeyman.problem.family import Family as Family
from journeyman.problem.mixture_rollouts import MixtureRollouts as MixtureRollouts
from journeyman.problem.rational import CostRange as CostRange
from journeyman.problem.rational import cost_ranges as cost_ranges
from journeyman.problem.reduced import Reduced as Reduced
from journeyman.problem.surrogate import ReducedWitness as ReducedWitness
from journeyman.problem.surrogate import Surrogate as Surrogate
from journeyman.problem.surrogate import reduced_lower_bound as reduced_lower_bound

__all__: list[str]
