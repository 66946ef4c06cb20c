"""Types of the public names; `__init__.py` says how they are loaded."""

from journeyman import adapters as adapters
from journeyman import certificate as certificate
from journeyman import costs as costs
from journeyman import demonstrations as demonstrations
from journeyman import errors as errors
from journeyman import execution as execution
from journeyman import features as features
from journeyman import gallery as gallery
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
from journeyman.adapters.world_check import ObservedSteps as ObservedSteps
from journeyman.adapters.world_check import TransitionCheck as TransitionCheck
from journeyman.adapters.world_check import check_transitions as check_transitions
from journeyman.adapters.world_sources import read_world as read_world
from journeyman.apprentice import Apprentice as Apprentice
from journeyman.apprentice import learn as learn
from journeyman.certificate import Attainable as Attainable
from journeyman.certificate import Certificate as Certificate
from journeyman.certificate import Premise as Premise
from journeyman.certificate import PremiseStatus as PremiseStatus
from journeyman.certificate import Requirements as Requirements
from journeyman.certificate import Rollouts as Rollouts
from journeyman.certificate import SampledRows as SampledRows
from journeyman.certificate import Term as Term
from journeyman.certificate import attainable as attainable
from journeyman.certificate import certify as certify
from journeyman.certificate import demonstrations_needed as demonstrations_needed
from journeyman.certificate import requirements as requirements
from journeyman.certificate.code_references import Reference as Reference
from journeyman.certificate.saving import load_policy as load_policy
from journeyman.checker import Audit as Audit
from journeyman.checker import audit as audit
from journeyman.costs import CostBasis as CostBasis
from journeyman.costs import CostClass as CostClass
from journeyman.costs import CostFunctions as CostFunctions
from journeyman.costs import EuclideanBall as EuclideanBall
from journeyman.costs import InfinityBall as InfinityBall
from journeyman.costs import KnownCost as KnownCost
from journeyman.costs import L1Ball as L1Ball
from journeyman.costs import Polytope as Polytope
from journeyman.costs import PriorBall as PriorBall
from journeyman.costs import Simplex as Simplex
from journeyman.costs.functions import StepCosts as StepCosts
from journeyman.demonstrations import Blend as Blend
from journeyman.demonstrations import ControlVariate as ControlVariate
from journeyman.demonstrations import Demonstrations as Demonstrations
from journeyman.demonstrations import ExpertExpectation as ExpertExpectation
from journeyman.demonstrations import MonteCarlo as MonteCarlo
from journeyman.demonstrations import clone as clone
from journeyman.demonstrations.recording import record as record
from journeyman.demonstrations.simulation import EpisodeTotals as EpisodeTotals
from journeyman.demonstrations.simulation import record_totals as record_totals
from journeyman.errors import AuditFailed as AuditFailed
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
from journeyman.errors import NotCertified as NotCertified
from journeyman.errors import SupportWarning as SupportWarning
from journeyman.errors import TaskFailed as TaskFailed
from journeyman.errors import TooLarge as TooLarge
from journeyman.execution import Executor as Executor
from journeyman.execution import Processes as Processes
from journeyman.execution import Serial as Serial
from journeyman.execution import ranges_of as ranges_of
from journeyman.execution import seeds_of as seeds_of
from journeyman.execution import sum_in_order as sum_in_order
from journeyman.features import Features as Features
from journeyman.features.base import DrawnFeatures as DrawnFeatures
from journeyman.policy import FunctionPolicy as FunctionPolicy
from journeyman.policy import Occupancy as Occupancy
from journeyman.policy import Plan as Plan
from journeyman.policy import Policy as Policy
from journeyman.policy import RulePolicy as RulePolicy
from journeyman.policy import StatePolicy as StatePolicy
from journeyman.policy import expected_cost as expected_cost
from journeyman.policy import extract as extract
from journeyman.policy import occupancy as occupancy
from journeyman.policy import plan as plan
from journeyman.policy.function_policy import FeaturePolicy as FeaturePolicy
from journeyman.policy.mixture_policy import MixturePolicy as MixturePolicy
from journeyman.policy.planning import soft_plan as soft_plan
from journeyman.problem import Apprenticeship as Apprenticeship
from journeyman.problem import Budget as Budget
from journeyman.problem import Forward as Forward
from journeyman.problem import Witness as Witness
from journeyman.problem import best_witness as best_witness
from journeyman.problem import infeasibility_margin as infeasibility_margin
from journeyman.problem import least_cost_bound as least_cost_bound
from journeyman.problem import lower_bound as lower_bound
from journeyman.problem import witness_from_plan as witness_from_plan
from journeyman.problem.mixture_rollouts import MixtureRollouts as MixtureRollouts
from journeyman.problem.reduced import ExactPenalty as ExactPenalty
from journeyman.problem.reduced import FeatureMass as FeatureMass
from journeyman.problem.reduced import GivenRows as GivenRows
from journeyman.problem.reduced import Reduced as Reduced
from journeyman.problem.reduced import RowNorms as RowNorms
from journeyman.problem.reduced import SinglePenalty as SinglePenalty
from journeyman.problem.reduced import UniformRows as UniformRows
from journeyman.problem.surrogate import ReducedWitness as ReducedWitness
from journeyman.problem.surrogate import Surrogate as Surrogate
from journeyman.problem.surrogate import reduced_lower_bound as reduced_lower_bound
from journeyman.solvers import Answer as Answer
from journeyman.solvers import ColumnGeneration as ColumnGeneration
from journeyman.solvers import Engine as Engine
from journeyman.solvers import LinearProgram as LinearProgram
from journeyman.solvers import Relaxation as Relaxation
from journeyman.solvers import Solution as Solution
from journeyman.solvers import Solver as Solver
from journeyman.solvers import Status as Status
from journeyman.solvers import solve as solve
from journeyman.solvers.classics.adversarial_imitation import (
    AdversarialImitation as AdversarialImitation,
)
from journeyman.solvers.classics.behaviour_cloning import BehaviourCloning as BehaviourCloning
from journeyman.solvers.classics.dagger import DAgger as DAgger
from journeyman.solvers.classics.imitation_gradients import ImitationReinforce as ImitationReinforce
from journeyman.solvers.classics.imitation_gradients import (
    ImitationTrustRegion as ImitationTrustRegion,
)
from journeyman.solvers.classics.inverse_program import InverseProgram as InverseProgram
from journeyman.solvers.classics.inverse_program import (
    SampledInverseProgram as SampledInverseProgram,
)
from journeyman.solvers.classics.maximum_entropy import MaximumEntropy as MaximumEntropy
from journeyman.solvers.classics.maximum_margin_planning import (
    MaximumMarginPlanning as MaximumMarginPlanning,
)
from journeyman.solvers.classics.multiplicative_weights import (
    MultiplicativeWeights as MultiplicativeWeights,
)
from journeyman.solvers.classics.nearest_mixture import MaxMargin as MaxMargin
from journeyman.solvers.classics.nearest_mixture import Projection as Projection
from journeyman.solvers.classics.policy_matching import PolicyMatching as PolicyMatching
from journeyman.solvers.policy_mixture import PolicyMixture as PolicyMixture
from journeyman.solvers.reduced.descent import Optimisation as Optimisation
from journeyman.solvers.reduced.reduced_program import Hard as Hard
from journeyman.solvers.reduced.reduced_program import ReducedProgram as ReducedProgram
from journeyman.solvers.reduced.sampled_program import SampledProgram as SampledProgram
from journeyman.solvers.reduced.solution import ReducedSolution as ReducedSolution
from journeyman.solvers.reduced.step_rules import Constant as Constant
from journeyman.solvers.reduced.step_rules import CoordinateAdaptive as CoordinateAdaptive
from journeyman.solvers.reduced.step_rules import DualAveraging as DualAveraging
from journeyman.solvers.reduced.step_rules import InverseRoot as InverseRoot
from journeyman.solvers.reduced.step_rules import NormAdaptive as NormAdaptive
from journeyman.solvers.reduced.stochastic_subgradient import (
    StochasticSubgradient as StochasticSubgradient,
)
from journeyman.studies import Comparison as Comparison
from journeyman.studies import Trial as Trial
from journeyman.studies import compare as compare
from journeyman.world import Flow as Flow
from journeyman.world import LargeWorld as LargeWorld
from journeyman.world import MixedRadix as MixedRadix
from journeyman.world import Pairs as Pairs
from journeyman.world import Predecessors as Predecessors
from journeyman.world import Successors as Successors
from journeyman.world import World as World
from journeyman.world import expected_rewards as expected_rewards

__version__: str
__all__: list[str]
