"""Policies: their laws, what they cost, and the best one for a known cost."""

from journeyman.policy.extraction import extract
from journeyman.policy.occupancy import Occupancy, expected_cost, occupancy
from journeyman.policy.planning import Plan, plan
from journeyman.policy.policy import Policy

__all__ = ["Occupancy", "Plan", "Policy", "expected_cost", "extract", "occupancy", "plan"]
