"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.report.page import as_html as as_html
from journeyman.report.page import report_of_run as report_of_run
from journeyman.report.page import write_report as write_report
from journeyman.report.text import comparison as comparison
from journeyman.report.text import expert_in_words as expert_in_words
from journeyman.report.text import policy_map as policy_map
