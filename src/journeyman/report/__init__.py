"""Results for people to look at: text for terminals, one HTML page for everything else."""

from journeyman.report.page import as_html, report_of_run, write_report
from journeyman.report.text import comparison, expert_in_words, policy_map

__all__ = [
    "as_html",
    "comparison",
    "expert_in_words",
    "policy_map",
    "report_of_run",
    "write_report",
]
