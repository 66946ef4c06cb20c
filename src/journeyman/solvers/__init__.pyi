"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.problem.reduced import ExactPenalty as ExactPenalty
from journeyman.problem.reduced import FeatureMass as FeatureMass
from journeyman.problem.reduced import GivenRows as GivenRows
from journeyman.problem.reduced import RowNorms as RowNorms
from journeyman.problem.reduced import SinglePenalty as SinglePenalty
from journeyman.problem.reduced import UniformRows as UniformRows
from journeyman.solvers.answer import Answer as Answer
from journeyman.solvers.answer import BoundedSolution as BoundedSolution
from journeyman.solvers.answer import CandidateRollouts as CandidateRollouts
from journeyman.solvers.answer import Details as Details
from journeyman.solvers.answer import LikelihoodEstimate as LikelihoodEstimate
from journeyman.solvers.answer import RegretSolution as RegretSolution
from journeyman.solvers.answer import Relaxation as Relaxation
from journeyman.solvers.answer import SampledSolution as SampledSolution
from journeyman.solvers.answer import Solution as Solution
from journeyman.solvers.classics.adversarial_imitation import (
    AdversarialImitation as AdversarialImitation,
)
from journeyman.solvers.classics.behaviour_cloning import BehaviourCloning as BehaviourCloning
from journeyman.solvers.classics.behaviour_cloning import CrossFittedClone as CrossFittedClone
from journeyman.solvers.classics.consistent_costs import ConsistentCosts as ConsistentCosts
from journeyman.solvers.classics.constrained_inverse import ConstrainedInverse as ConstrainedInverse
from journeyman.solvers.classics.dagger import DAgger as DAgger
from journeyman.solvers.classics.feature_construction import (
    FeatureConstruction as FeatureConstruction,
)
from journeyman.solvers.classics.gaussian_process_costs import (
    GaussianProcessCosts as GaussianProcessCosts,
)
from journeyman.solvers.classics.imitation_gradients import ImitationReinforce as ImitationReinforce
from journeyman.solvers.classics.imitation_gradients import (
    ImitationTrustRegion as ImitationTrustRegion,
)
from journeyman.solvers.classics.inverse_program import InverseProgram as InverseProgram
from journeyman.solvers.classics.inverse_program import (
    SampledInverseProgram as SampledInverseProgram,
)
from journeyman.solvers.classics.maximum_entropy import MaximumEntropy as MaximumEntropy
from journeyman.solvers.classics.maximum_likelihood import LikelihoodRatio as LikelihoodRatio
from journeyman.solvers.classics.maximum_likelihood import MaximumLikelihood as MaximumLikelihood
from journeyman.solvers.classics.maximum_likelihood import likelihood_ratio as likelihood_ratio
from journeyman.solvers.classics.maximum_margin_planning import (
    MaximumMarginPlanning as MaximumMarginPlanning,
)
from journeyman.solvers.classics.multiplicative_weights import (
    MultiplicativeWeights as MultiplicativeWeights,
)
from journeyman.solvers.classics.nearest_mixture import MaxMargin as MaxMargin
from journeyman.solvers.classics.nearest_mixture import Projection as Projection
from journeyman.solvers.classics.occupancy_mirror_descent import (
    OccupancyMirrorDescent as OccupancyMirrorDescent,
)
from journeyman.solvers.classics.policy_matching import PolicyMatching as PolicyMatching
from journeyman.solvers.classics.prior_mirror_descent import (
    PriorMirrorDescent as PriorMirrorDescent,
)
from journeyman.solvers.classics.proximal_point_imitation import (
    OfflineProximalImitation as OfflineProximalImitation,
)
from journeyman.solvers.classics.proximal_point_imitation import (
    ProximalPointImitation as ProximalPointImitation,
)
from journeyman.solvers.exact.banded_program import BandedProgram as BandedProgram
from journeyman.solvers.exact.column_generation import ColumnGeneration as ColumnGeneration
from journeyman.solvers.exact.engines import Engine as Engine
from journeyman.solvers.exact.linear_program import LinearProgram as LinearProgram
from journeyman.solvers.exact.rational_program import RationalProgram as RationalProgram
from journeyman.solvers.exact.sharded_columns import ShardedColumns as ShardedColumns
from journeyman.solvers.exact.smoothed_program import SmoothedProgram as SmoothedProgram
from journeyman.solvers.least_squares_planner import LeastSquaresPlanner as LeastSquaresPlanner
from journeyman.solvers.least_squares_planner import Radial as Radial
from journeyman.solvers.least_squares_planner import quadratic as quadratic
from journeyman.solvers.nonlinear_cost import NonlinearCost as NonlinearCost
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
from journeyman.solvers.reduced.stochastic_primal_dual import (
    StochasticPrimalDual as StochasticPrimalDual,
)
from journeyman.solvers.reduced.stochastic_subgradient import (
    StochasticSubgradient as StochasticSubgradient,
)
from journeyman.solvers.running import Status as Status
from journeyman.solvers.solve import Solver as Solver
from journeyman.solvers.solve import solve as solve

__all__: list[str]
