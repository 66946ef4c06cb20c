"""Results for people to look at."""

from journeyman.report.text import comparison, expert_in_words, policy_map

__all__ = ["comparison", "expert_in_words", "policy_map"]
