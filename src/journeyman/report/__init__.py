"""Results for people to look at."""

from journeyman.report.text import comparison, policy_map

__all__ = ["comparison", "policy_map"]
