"""The checker: whether the claims of a saved run follow from its evidence. It shares no code with
the package that made them."""

from journeyman.checker.audit import Audit, audit

__all__ = ["Audit", "audit"]
