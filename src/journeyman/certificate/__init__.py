"""Certificates: what is known about a policy's gap, before a run and after it."""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)

# functions go before the modules of their names
from journeyman.certificate.certify import certify as certify  # noqa: E402
from journeyman.certificate.requirements import requirements as requirements  # noqa: E402
