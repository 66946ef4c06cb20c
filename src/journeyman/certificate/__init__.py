"""Certificates: what is known about a policy's gap, before a run and after it."""

from journeyman.certificate.certificate import Certificate
from journeyman.certificate.certify import certify
from journeyman.certificate.concentration import radii
from journeyman.certificate.intervals import BudgetCertificate
from journeyman.certificate.requirements import (
    AsPrinted,
    Attainable,
    Quantity,
    Requirements,
    as_printed,
    attainable,
    demonstrations_needed,
    requirements,
)
from journeyman.certificate.rollouts import Rollouts
from journeyman.certificate.sampled_rows import SampledRows
from journeyman.certificate.terms import Combination, Premise, PremiseStatus, Statistics, Term
from journeyman.costs.rates import Rate

__all__ = [
    "AsPrinted",
    "Attainable",
    "BudgetCertificate",
    "Certificate",
    "Combination",
    "Premise",
    "PremiseStatus",
    "Quantity",
    "Rate",
    "Requirements",
    "Rollouts",
    "SampledRows",
    "Statistics",
    "Term",
    "as_printed",
    "attainable",
    "certify",
    "demonstrations_needed",
    "radii",
    "requirements",
]
