"""Certificates: what is known about a policy's gap, before a run and after it."""

from journeyman.certificate.as_printed import AsPrinted, Figure, as_printed
from journeyman.certificate.requirements import (
    Attainable,
    Requirements,
    attainable,
    requirements,
)
from journeyman.certificate.sample_sizes import Rate, demonstrations_needed, radii

__all__ = [
    "AsPrinted",
    "Attainable",
    "Figure",
    "Rate",
    "Requirements",
    "as_printed",
    "attainable",
    "demonstrations_needed",
    "radii",
    "requirements",
]
