"""Certificates: what is known about a policy's gap, before a run and after it."""

from journeyman.certificate.as_printed import AsPrinted, Figure, as_printed
from journeyman.certificate.certificate import BudgetCertificate, Certificate
from journeyman.certificate.certify import certify
from journeyman.certificate.evaluation import Statistics
from journeyman.certificate.gap_bound import Combination
from journeyman.certificate.large_certificate import LargeCertificate
from journeyman.certificate.large_evaluation import LargeRows
from journeyman.certificate.premises import Premise, Verdict
from journeyman.certificate.requirements import (
    Attainable,
    Requirements,
    attainable,
    demonstrations_needed,
    requirements,
)
from journeyman.certificate.rollouts import Rollouts
from journeyman.certificate.sample_sizes import Rate, radii
from journeyman.certificate.sampled_rows import SampledRows
from journeyman.certificate.terms import Term

__all__ = [
    "AsPrinted",
    "Attainable",
    "BudgetCertificate",
    "Certificate",
    "Combination",
    "Figure",
    "LargeCertificate",
    "LargeRows",
    "Premise",
    "Rate",
    "Requirements",
    "Rollouts",
    "SampledRows",
    "Statistics",
    "Term",
    "Verdict",
    "as_printed",
    "attainable",
    "certify",
    "demonstrations_needed",
    "radii",
    "requirements",
]
