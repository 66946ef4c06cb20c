"""Policies: their laws, what they cost, and the best one for a known cost."""

from journeyman.policy.acting import StatePolicy
from journeyman.policy.function_policy import FunctionPolicy, RulePolicy
from journeyman.policy.planning import Plan, plan
from journeyman.policy.policy_evaluation import Occupancy, expected_cost, occupancy
from journeyman.policy.table import Policy, extract

__all__ = [
    "FunctionPolicy", "Occupancy", "Plan", "Policy", "RulePolicy", "StatePolicy", "expected_cost",
    "extract", "occupancy", "plan",
]  # fmt: skip
