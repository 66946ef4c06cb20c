"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.costs.basis import CostBasis as CostBasis
from journeyman.costs.cost_class import CostClass as CostClass
from journeyman.costs.euclidean_ball import EuclideanBall as EuclideanBall
from journeyman.costs.functions import CostFunctions as CostFunctions
from journeyman.costs.functions import StepCosts as StepCosts
from journeyman.costs.infinity_ball import InfinityBall as InfinityBall
from journeyman.costs.known_cost import KnownCost as KnownCost
from journeyman.costs.l1_ball import L1Ball as L1Ball
from journeyman.costs.polytope import Polytope as Polytope
from journeyman.costs.prior_ball import PriorBall as PriorBall
from journeyman.costs.simplex import Simplex as Simplex

__all__: list[str]
