"""Results for people to look at: text for terminals, one HTML page for everything else."""

from journeyman.report.text import comparison, expert_in_words, policy_map
from journeyman.report.writing import as_html, report_of_run, write_report

__all__ = [
    "as_html",
    "comparison",
    "expert_in_words",
    "policy_map",
    "report_of_run",
    "write_report",
]
