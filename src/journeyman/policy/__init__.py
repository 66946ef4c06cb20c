"""Policies: their laws, what they cost, and the best one for a known cost."""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
