"""Types of the public names; `__init__.py` says which room each lives in."""

from journeyman import gallery as gallery
from journeyman import report as report
from journeyman import testing as testing
from journeyman.costs import CostBasis as CostBasis
from journeyman.costs import CostClass as CostClass
from journeyman.costs import EuclideanBall as EuclideanBall
from journeyman.costs import InfinityBall as InfinityBall
from journeyman.costs import KnownCost as KnownCost
from journeyman.costs import Simplex as Simplex
from journeyman.demonstrations import Demonstrations as Demonstrations
from journeyman.demonstrations import ExpertExpectation as ExpertExpectation
from journeyman.demonstrations import clone as clone
from journeyman.demonstrations.recording import record as record
from journeyman.errors import InvalidCosts as InvalidCosts
from journeyman.errors import InvalidDemonstrations as InvalidDemonstrations
from journeyman.errors import InvalidFile as InvalidFile
from journeyman.errors import InvalidInput as InvalidInput
from journeyman.errors import InvalidPolicy as InvalidPolicy
from journeyman.errors import InvalidProblem as InvalidProblem
from journeyman.errors import InvalidSolver as InvalidSolver
from journeyman.errors import InvalidWorld as InvalidWorld
from journeyman.errors import JourneymanError as JourneymanError
from journeyman.errors import MissingExtra as MissingExtra
from journeyman.errors import NoSolution as NoSolution
from journeyman.policy import Occupancy as Occupancy
from journeyman.policy import Plan as Plan
from journeyman.policy import Policy as Policy
from journeyman.policy import expected_cost as expected_cost
from journeyman.policy import extract as extract
from journeyman.policy import occupancy as occupancy
from journeyman.policy import plan as plan
from journeyman.problem import Apprenticeship as Apprenticeship
from journeyman.problem import Budget as Budget
from journeyman.problem import Forward as Forward
from journeyman.problem import Program as Program
from journeyman.problem import Witness as Witness
from journeyman.problem import infeasibility_margin as infeasibility_margin
from journeyman.problem import least_cost_bound as least_cost_bound
from journeyman.problem import lower_bound as lower_bound
from journeyman.problem import sharpest_witness as sharpest_witness
from journeyman.solvers import Answer as Answer
from journeyman.solvers import Engine as Engine
from journeyman.solvers import LinearProgram as LinearProgram
from journeyman.solvers import Relaxation as Relaxation
from journeyman.solvers import Solution as Solution
from journeyman.solvers import Solver as Solver
from journeyman.solvers import Status as Status
from journeyman.solvers import solve as solve
from journeyman.world import Flow as Flow
from journeyman.world import Pairs as Pairs
from journeyman.world import World as World
from journeyman.world import expected_rewards as expected_rewards

__version__: str
__all__: list[str]
