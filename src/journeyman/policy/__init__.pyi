"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.policy.acting import StatePolicy as StatePolicy
from journeyman.policy.function_policy import FeaturePolicy as FeaturePolicy
from journeyman.policy.function_policy import FunctionPolicy as FunctionPolicy
from journeyman.policy.function_policy import RulePolicy as RulePolicy
from journeyman.policy.function_policy import SoftFeaturePolicy as SoftFeaturePolicy
from journeyman.policy.mixture_policy import MixturePolicy as MixturePolicy
from journeyman.policy.observation_policy import NetworkPolicy as NetworkPolicy
from journeyman.policy.observation_policy import ObservationPolicy as ObservationPolicy
from journeyman.policy.planning import Plan as Plan
from journeyman.policy.planning import plan as plan
from journeyman.policy.planning import soft_plan as soft_plan
from journeyman.policy.policy_evaluation import Occupancy as Occupancy
from journeyman.policy.policy_evaluation import expected_cost as expected_cost
from journeyman.policy.policy_evaluation import occupancy as occupancy
from journeyman.policy.table import Policy as Policy
from journeyman.policy.table import extract as extract

__all__: list[str]
