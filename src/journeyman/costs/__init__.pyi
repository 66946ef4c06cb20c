"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.costs.basis import CostBasis as CostBasis
from journeyman.costs.classes import CostClass as CostClass
from journeyman.costs.classes import EuclideanBall as EuclideanBall
from journeyman.costs.classes import InfinityBall as InfinityBall
from journeyman.costs.classes import KnownCost as KnownCost
from journeyman.costs.classes import Simplex as Simplex
from journeyman.costs.functions import CostFunctions as CostFunctions
from journeyman.costs.step_costs import StepCosts as StepCosts

__all__: list[str]
