"""Auditing: a second opinion on saved runs, from code that shares nothing with the first."""

from journeyman.auditing.audit import Audit, audit

__all__ = ["Audit", "audit"]
