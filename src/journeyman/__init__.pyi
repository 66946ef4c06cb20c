"""Types of the public names; `__init__.py` says how they are loaded."""

from journeyman import adapters as adapters
from journeyman import certificate as certificate
from journeyman import costs as costs
from journeyman import demonstrations as demonstrations
from journeyman import errors as errors
from journeyman import execution as execution
from journeyman import features as features
from journeyman import gallery as gallery
from journeyman import plot as plot
from journeyman import policy as policy
from journeyman import problem as problem
from journeyman import report as report
from journeyman import solvers as solvers
from journeyman import studies as studies
from journeyman import testing as testing
from journeyman import world as world
from journeyman.adapters.cost_sources import read_costs as read_costs
from journeyman.adapters.demonstration_formats import (
    read_demonstrations as read_demonstrations,
)
from journeyman.adapters.demonstration_formats import (
    write_demonstrations as write_demonstrations,
)
from journeyman.adapters.gymnasium_simulator import GymnasiumSimulator as GymnasiumSimulator
from journeyman.adapters.ray import Ray as Ray
from journeyman.adapters.world_sources import read_world as read_world
from journeyman.apprentice import Apprentice as Apprentice
from journeyman.apprentice import learn as learn
from journeyman.certificate import Certificate as Certificate
from journeyman.certificate import Rollouts as Rollouts
from journeyman.certificate import SampledRows as SampledRows
from journeyman.certificate import certify as certify
from journeyman.certificate import requirements as requirements
from journeyman.checker import audit as audit
from journeyman.costs import CostBasis as CostBasis
from journeyman.costs import CostFunctions as CostFunctions
from journeyman.costs import EuclideanBall as EuclideanBall
from journeyman.costs import InfinityBall as InfinityBall
from journeyman.costs import L1Ball as L1Ball
from journeyman.costs import Polytope as Polytope
from journeyman.costs import PriorBall as PriorBall
from journeyman.costs import Simplex as Simplex
from journeyman.demonstrations import Demonstrations as Demonstrations
from journeyman.demonstrations import ExpertExpectation as ExpertExpectation
from journeyman.demonstrations import clone as clone
from journeyman.demonstrations.recording import record as record
from journeyman.demonstrations.simulation import EpisodeTotals as EpisodeTotals
from journeyman.errors import NotCertified as NotCertified
from journeyman.execution import Processes as Processes
from journeyman.execution import Serial as Serial
from journeyman.policy import FunctionPolicy as FunctionPolicy
from journeyman.policy import Policy as Policy
from journeyman.policy import expected_cost as expected_cost
from journeyman.policy import occupancy as occupancy
from journeyman.policy import plan as plan
from journeyman.problem import Apprenticeship as Apprenticeship
from journeyman.problem import Budget as Budget
from journeyman.problem import Forward as Forward
from journeyman.problem.expert_premises import Deterministic as Deterministic
from journeyman.problem.expert_premises import NearlyOptimal as NearlyOptimal
from journeyman.problem.expert_premises import Rational as Rational
from journeyman.problem.expert_premises import SoftRational as SoftRational
from journeyman.problem.expert_premises import Stationary as Stationary
from journeyman.problem.reduced import ExactPenalty as ExactPenalty
from journeyman.solvers import Answer as Answer
from journeyman.solvers import ColumnGeneration as ColumnGeneration
from journeyman.solvers import LinearProgram as LinearProgram
from journeyman.solvers import Status as Status
from journeyman.solvers import solve as solve
from journeyman.solvers.policy_mixture import PolicyMixture as PolicyMixture
from journeyman.solvers.reduced.reduced_program import ReducedProgram as ReducedProgram
from journeyman.solvers.reduced.stochastic_subgradient import (
    StochasticSubgradient as StochasticSubgradient,
)
from journeyman.studies import compare as compare
from journeyman.world import World as World
from journeyman.world import expected_rewards as expected_rewards

__version__: str
__all__: list[str]
