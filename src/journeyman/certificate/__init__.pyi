"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.certificate.certificate import Certificate as Certificate
from journeyman.certificate.certify import certify as certify
from journeyman.certificate.code_references import Reference as Reference
from journeyman.certificate.concentration import radii as radii
from journeyman.certificate.evaluation import BudgetCertificate as BudgetCertificate
from journeyman.certificate.requirements import AsPrinted as AsPrinted
from journeyman.certificate.requirements import Attainable as Attainable
from journeyman.certificate.requirements import Quantity as Quantity
from journeyman.certificate.requirements import Requirements as Requirements
from journeyman.certificate.requirements import as_printed as as_printed
from journeyman.certificate.requirements import attainable as attainable
from journeyman.certificate.requirements import demonstrations_needed as demonstrations_needed
from journeyman.certificate.requirements import requirements as requirements
from journeyman.certificate.rollouts import Rollouts as Rollouts
from journeyman.certificate.sampled_rows import SampledRows as SampledRows
from journeyman.certificate.saving import load_policy as load_policy
from journeyman.certificate.terms import Combination as Combination
from journeyman.certificate.terms import Premise as Premise
from journeyman.certificate.terms import PremiseStatus as PremiseStatus
from journeyman.certificate.terms import Statistics as Statistics
from journeyman.certificate.terms import Term as Term
from journeyman.costs.cost_class import Rate as Rate

__all__: list[str]
