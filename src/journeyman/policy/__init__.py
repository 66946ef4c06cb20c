"""Policies: their laws, what they cost, and the best one for a known cost."""

from journeyman.policy.extraction import extract
from journeyman.policy.occupancy import Occupancy, expected_cost, occupancy
from journeyman.policy.planning import Plan, plan
from journeyman.policy.policy import Policy
from journeyman.policy.rule_policy import RulePolicy
from journeyman.policy.state_policy import FunctionPolicy, StatePolicy

__all__ = [
    "FunctionPolicy", "Occupancy", "Plan", "Policy", "RulePolicy", "StatePolicy", "expected_cost",
    "extract", "occupancy", "plan",
]  # fmt: skip
